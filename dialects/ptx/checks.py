"""What the operations of the tensor cores check: their instruction, its registers, its scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.elements import element_name, multiplied_as
from fragir.dialects.narrow import integers
from fragir.dialects.ptx.types import registers, scalar_type
from fragir.errors import FragirError


def known_instruction(op: Operation, mnemonic: StringAttr) -> isa.Instruction:
    """The instruction of an operation; VerifyException where there is none or it is refused."""
    try:
        instruction = isa.lookup(mnemonic.data)
    except FragirError as error:
        raise VerifyException(f"{op.name}: {error}") from error
    if instruction.refused:
        raise VerifyException(f"{op.name}: {instruction.mnemonic}: {instruction.refused}")
    return instruction


def check_count(op: Operation, instruction: isa.Instruction, name: str, type_: Attribute) -> None:
    """VerifyException unless a value has as many registers as the operand takes."""
    found, wanted = registers(type_), instruction.operands[name].registers.count
    if found != wanted:
        raise VerifyException(
            f"{op.name}: {name} has {found} registers ({type_}), {instruction.mnemonic} takes "
            f"{wanted}"
        )


def check_operand(op: Operation, instruction: isa.Instruction, name: str, type_: Attribute) -> None:
    """VerifyException unless a value has the operand's registers and elements."""
    check_count(op, instruction, name, type_)
    found, wanted = element_name(scalar_type(type_)), instruction.operands[name].element
    if multiplied_as(found) != wanted and (found, wanted) != ("e4m3", "ue4m3"):
        raise VerifyException(
            f"{op.name}: {name} holds {found}, {instruction.mnemonic} takes {wanted}"
        )


def check_operands(op: Operation, instruction: isa.Instruction, *values: SSAValue) -> None:
    """`check_operand` for a, b, c and d."""
    for name, value in zip("abcd", values, strict=True):
        check_operand(op, instruction, name, value.type)


def check_selector(op: Operation, instruction: isa.Instruction, selector: IntegerAttr[Any]) -> None:
    """VerifyException unless the sparsity selector is one of the instruction's."""
    if selector.value.data not in instruction.selectors:
        raise VerifyException(
            f"{op.name}: the selector is one of {instruction.selectors}, not {selector.value.data}"
        )


def check_scales(
    op: Operation,
    instruction: isa.Instruction,
    scales: Sequence[SSAValue],
    selectors: DenseArrayBase[Any] | None,
) -> None:
    """VerifyException unless the scales, and the bytes and lanes that supply them, fit.

    `selectors` are byte and thread of SFA, byte and thread of SFB (PTX ISA 9.2, section 9.7.14.3).
    """
    wanted = "sfa" in instruction.operands
    if len(scales) != 2 * wanted or (selectors is not None) != wanted:
        raise VerifyException(
            f"{op.name}: {instruction.mnemonic} takes "
            + ("two scales and four selectors" if wanted else "no scales")
        )
    if selectors is None:
        return
    for name, scale in zip(("sfa", "sfb"), scales, strict=True):
        check_operand(op, instruction, name, scale.type)
    from fragir.isa.selection import selected_layout

    numbers = integers(selectors)
    if len(numbers) != 4:
        raise VerifyException(f"{op.name}: byte and thread of SFA, then of SFB are four selectors")
    for i, name in enumerate(("sfa", "sfb")):
        byte, thread = numbers[2 * i : 2 * i + 2]
        try:
            selected_layout(instruction, name, byte=byte, thread=thread)
        except FragirError as error:
            raise VerifyException(f"{op.name}: {error}") from error
