"""The tensor cores at lane level.

Mma.sync, mma.sp and wgmma, one operation an instruction, and what they check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.definition import QuickOperation, op_definition
from fragir.dialects.elements import element_name, multiplied_as
from fragir.dialects.ptx.types import SHARED, i64_attr, registers, scalar_type
from fragir.dialects.shorthands import integers, is_vector
from fragir.errors import FragirError

# -- checks ----------------------------------------------------------------------------------------
# What the operations of the tensor cores check: their instruction, its registers, its scales.


def require_instruction(op: Operation, mnemonic: StringAttr) -> isa.Instruction:
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


def check_selector(op: Operation, instruction: isa.Instruction, selector: IntegerAttr) -> None:
    """VerifyException unless the sparsity selector is one of the instruction's."""
    if selector.value.data not in instruction.selectors:
        raise VerifyException(
            f"{op.name}: the selector is one of {instruction.selectors}, not {selector.value.data}"
        )


def check_scales(
    op: Operation,
    instruction: isa.Instruction,
    scales: Sequence[SSAValue],
    selectors: DenseArrayBase | None,
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


class Scales(NamedTuple):
    """The scales of one instruction: a register each, and byte and thread of SFA and of SFB."""

    registers: tuple[SSAValue, SSAValue]
    selectors: tuple[int, int, int, int]

    @property
    def attribute(self) -> DenseArrayBase:
        """The selectors as the operations keep them."""
        return DenseArrayBase.from_list(i64, self.selectors)


@op_definition
class MmaOp(QuickOperation):
    """`mma.sync`: d = a b + c by one warp. PTX ISA 9.2, sections 9.7.14.5 and 9.7.14.3.

    `scaled %sfa, %sfb [byte, thread, byte, thread]` gives the scales of blocks, one
    register each, and says which byte of which lanes' registers count, of SFA and of SFB.
    """

    name = "ptx.mma"
    instruction = prop_def(StringAttr)
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    c = operand_def(VectorType)
    scales = var_operand_def(VectorType)
    scale_selectors = opt_prop_def(DenseArrayBase.constr(i64))
    d = result_def(VectorType)
    # collective: not Pure, or loop-invariant code motion would take it out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$instruction $a `,` $b `,` $c (`scaled` $scales^ $scale_selectors)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) (`,` type($scales)^)? `->` type($d)"
    )

    def __init__(
        self,
        instruction: str,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        d: Attribute | None = None,
        scales: Scales | None = None,
    ):
        super().__init__(
            operands=[a, b, c, scales.registers if scales else ()],
            properties={
                "instruction": StringAttr(instruction),
                "scale_selectors": scales.attribute if scales else None,
            },
            result_types=[d or c.type],
        )

    def verify_(self) -> None:
        instruction = require_instruction(self, self.instruction)
        if not instruction.family.startswith("mma"):
            raise VerifyException(f"ptx.mma: {instruction.mnemonic} is no mma.sync")
        if instruction.family != "mma":
            raise VerifyException(
                f"ptx.mma: {instruction.mnemonic} takes more than a, b and c: sparse products are "
                "ptx.mma_sparse"
            )
        check_operands(self, instruction, self.a, self.b, self.c, self.d)
        check_scales(self, instruction, self.scales, self.scale_selectors)


@op_definition
class WgmmaOp(QuickOperation):
    """`wgmma.mma_async`: d = a b + c by a warpgroup, in the background.

    a is a vector of registers or a descriptor (i64), b a descriptor. c and d are tied: one set of
    registers, read and written in place, not to be touched before wgmma.wait_group. Without c the
    product alone is formed (scale-d = 0); with `if`, c counts only where the predicate holds.
    `negated` flips the sign of a or b; `sparse %metadata[selector]` goes with wgmma.sp.
    PTX ISA 9.2, sections 9.7.15.5 and 9.7.15.6.
    """

    name = "ptx.wgmma"
    instruction = prop_def(StringAttr)
    a = operand_def(BaseAttr(VectorType) | EqAttrConstraint(i64))
    b = operand_def(i64)
    c = operand_def(VectorType)
    metadata = opt_operand_def(VectorType)
    scale_d = opt_operand_def(i1)
    a_major = prop_def(StringAttr)
    b_major = prop_def(StringAttr)
    a_negated = opt_prop_def(UnitAttr)
    b_negated = opt_prop_def(UnitAttr)
    selector = opt_prop_def(IntegerAttr.constr(i64))
    d = result_def(VectorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$instruction $a $a_major (`negated` $a_negated^)? `,` $b $b_major (`negated` $b_negated^)?"
        " `,` $c (`sparse` $metadata^ `[` $selector `]`)? (`if` $scale_d^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) (`,` type($metadata)^)? `->` type($d)"
    )

    def __init__(
        self,
        instruction: str,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        *,
        scale_d: SSAValue | None = None,
        a_major: str = "k",
        b_major: str = "k",
        negated: tuple[bool, bool] = (False, False),
        metadata: tuple[SSAValue, int] | None = None,
    ):
        super().__init__(
            operands=[a, b, c, metadata[0] if metadata else None, scale_d],
            properties={
                "instruction": StringAttr(instruction),
                "a_major": StringAttr(a_major),
                "b_major": StringAttr(b_major),
                "a_negated": UnitAttr() if negated[0] else None,
                "b_negated": UnitAttr() if negated[1] else None,
                "selector": i64_attr(metadata[1]) if metadata else None,
            },
            result_types=[c.type],
        )

    def verify_(self) -> None:
        instruction = require_instruction(self, self.instruction)
        if not instruction.family.startswith("wgmma"):
            raise VerifyException(f"ptx.wgmma: {instruction.mnemonic} is no wgmma")
        if is_vector(self.a.type):
            check_operand(self, instruction, "a", self.a.type)
        check_operand(self, instruction, "d", self.d.type)
        if self.c.type != self.d.type:
            raise VerifyException("ptx.wgmma: c and d are one set of registers, of one type")
        for name, major in (("a", self.a_major.data), ("b", self.b_major.data)):
            if major not in ("k", "mn"):
                raise VerifyException(f'ptx.wgmma: {name} is "k" or "mn" major, not {major!r}')
        turned = "mn" in (self.a_major.data, self.b_major.data)
        if turned and "imm-trans-b" not in instruction.tail:
            raise VerifyException("ptx.wgmma: only f16 and bf16 can be MN-major in shared memory")
        negated = self.a_negated is not None or self.b_negated is not None
        if negated and "imm-scale-a" not in instruction.tail:
            raise VerifyException("ptx.wgmma: only floats can be negated")
        self._check_metadata(instruction)

    def _check_metadata(self, instruction: isa.Instruction) -> None:
        wanted = "e" in instruction.operands
        if (self.metadata is not None) != wanted:
            raise VerifyException(
                f"ptx.wgmma: {instruction.mnemonic} takes {'' if wanted else 'no '}metadata"
            )
        if self.metadata is not None and self.selector is not None:
            check_count(self, instruction, "e", self.metadata.type)
            check_selector(self, instruction, self.selector)


@op_definition
class WgmmaWaitOp(QuickOperation):
    """`wgmma.wait_group`: at most `pending` groups are still under way.

    The accumulators pass through it (tied, like c and d of ptx.wgmma), so that every use of what
    it completes comes after the wait. Without any it is for memory that products read.
    PTX ISA 9.2, section 9.7.15.7.2.
    """

    name = "ptx.wgmma_wait"
    accumulators = var_operand_def(VectorType)
    pending = prop_def(IntegerAttr.constr(i64))
    completed = var_result_def(VectorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$pending (`,` $accumulators^)? attr-dict (`:` type($accumulators)^ `->` type($completed))?"
    )

    def __init__(self, pending: int, accumulators: Sequence[SSAValue]):
        super().__init__(
            operands=[accumulators],
            properties={"pending": i64_attr(pending)},
            result_types=[value.type for value in accumulators],
        )

    def verify_(self) -> None:
        if self.accumulators.types != self.completed.types:
            raise VerifyException("ptx.wgmma_wait passes its accumulators through, types unchanged")


@op_definition
class DescriptorOp(QuickOperation):
    """A wgmma shared-memory descriptor: the constant fields `fields` and a start address.

    PTX ISA 9.2, section 9.7.15.5.1.2.
    """

    name = "ptx.descriptor"
    address = operand_def(SHARED)
    fields = prop_def(IntegerAttr.constr(i64))
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = "$address `,` $fields attr-dict"

    def __init__(self, address: SSAValue, fields: int):
        super().__init__(
            operands=[address],
            # a 64-bit pattern, kept as the signed number of the same bits
            properties={"fields": IntegerAttr(fields - (fields >> 63 << 64), i64)},
            result_types=[i64],
        )


# -- sparse ----------------------------------------------------------------------------------------
# Sparse products at lane level: one operation an instruction.


@op_definition
class MmaSparseOp(IRDLOperation):
    """`mma.sp`: d = a b + c by one warp; `metadata` is one register, `selector` says whose count.

    Scales as in ptx.mma. PTX ISA 9.2, section 9.7.14.6.
    """

    name = "ptx.mma_sparse"
    instruction = prop_def(StringAttr)
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    c = operand_def(VectorType)
    metadata = operand_def(VectorType)
    selector = prop_def(IntegerAttr.constr(i64))
    scales = var_operand_def(VectorType)
    scale_selectors = opt_prop_def(DenseArrayBase.constr(i64))
    d = result_def(VectorType)
    # collective: not Pure, or loop-invariant code motion would take it out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$instruction $a `,` $b `,` $c `,` $metadata `[` $selector `]`"
        " (`scaled` $scales^ $scale_selectors)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `,` type($metadata) (`,` type($scales)^)?"
        " `->` type($d)"
    )

    def __init__(
        self,
        instruction: str,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        metadata: SSAValue,
        selector: int = 0,
        d: Attribute | None = None,
        scales: Scales | None = None,
    ):
        super().__init__(
            operands=[a, b, c, metadata, scales.registers if scales else ()],
            properties={
                "instruction": StringAttr(instruction),
                "selector": i64_attr(selector),
                "scale_selectors": scales.attribute if scales else None,
            },
            result_types=[d or c.type],
        )

    def verify_(self) -> None:
        instruction = require_instruction(self, self.instruction)
        if not instruction.family.startswith("mma.sp"):
            raise VerifyException(f"ptx.mma_sparse: {instruction.mnemonic} is no mma.sp")
        check_selector(self, instruction, self.selector)
        check_operands(self, instruction, self.a, self.b, self.c, self.d)
        check_count(self, instruction, "e", self.metadata.type)
        check_scales(self, instruction, self.scales, self.scale_selectors)
