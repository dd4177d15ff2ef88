"""Layouts of operands whose supplying lanes the instruction selects with an immediate."""

from __future__ import annotations

from dataclasses import replace

from fragir.errors import FragirError
from fragir.isa import fragments
from fragir.isa.fragments import scale_blocks
from fragir.isa.model import Instruction
from fragir.layout import Layout


def immediates(instruction: Instruction, operand: str) -> tuple[str, ...]:
    """The immediates, as `selected_layout` names them, that an operand's layout depends on."""
    if operand == "registers" and instruction.form.shape == "16x32bx2":
        return ("offset",)
    if instruction.operand(operand).layout is None:  # in tensor memory
        return ()
    return {"e": ("selector",), "sfa": ("byte", "thread"), "sfb": ("byte", "thread")}.get(
        operand, ()
    )


def selected_layout(
    instruction: Instruction,
    operand: str,
    *,
    selector: int = 0,
    byte: int = 0,
    thread: int = 0,
    offset: int = 0,
) -> Layout:
    """The layout of an operand under the instruction's immediates.

    `selector` is the sparsity selector (operand e); `byte` and `thread` the selectors of a scale
    (sfa, sfb); `offset` immHalfSplitoff of tcgen05.ld and .st with 16x32bx2 (registers). They
    are ignored by operands that do not depend on them. Errors for a descriptor, which has no
    layout in lanes, and for a selector that is out of range (PTX ISA 9.2, sections 9.7.14.3 and
    9.7.14.6).
    """
    layout = instruction.operand(operand).layout
    if layout is None:
        raise FragirError(f"operand {operand} of {instruction.mnemonic} has no map of lanes")
    if operand == "e":
        return _metadata(instruction, selector, layout)
    if operand in ("sfa", "sfb"):
        return _scale(instruction, operand, byte, thread, layout)
    if instruction.form.shape == "16x32bx2" and operand == "registers":
        packed = instruction.operands[operand].element == "b16"
        return fragments.tensor_memory("16x32bx2", instruction.shape[2], packed, offset)
    return layout


def _metadata(instruction: Instruction, selector: int, layout: Layout) -> Layout:
    if selector not in instruction.selectors:
        legal = ", ".join(map(str, instruction.selectors))
        raise FragirError(f"selector {selector} of {instruction.mnemonic} is not one of {legal}")
    if selector == 0:
        return layout
    return _selecting(layout, lane=selector)


def _scale(
    instruction: Instruction, operand: str, byte: int, thread: int, layout: Layout
) -> Layout:
    blocks = scale_blocks(instruction.form)
    threads = 2 if operand == "sfa" else 4
    if byte not in range(0, 4, blocks) or thread not in range(threads):
        legal = ", ".join(map(str, range(0, 4, blocks)))
        raise FragirError(
            f"selectors {{{byte}, {thread}}} of {operand} are out of range",
            hint=f"byte {legal}; thread 0 to {threads - 1}",
        )
    return _selecting(layout, lane=thread, element=byte // blocks)


def _selecting(layout: Layout, **values: int) -> Layout:
    """The row's layout, in which the selectors are 0, with others in its conditions."""
    where = (replace(c, value=values.get(c.axis, c.value)) for c in layout.where)
    return replace(layout, where=tuple(where))
