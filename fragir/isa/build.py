"""Operands of the matrix instructions, shared by the families: one function an operand."""

from __future__ import annotations

from collections.abc import Mapping

from fragir.isa import elements, fragments
from fragir.isa.elements import FLOAT8_6_4
from fragir.isa.model import Form, Lowering, Operand, RegisterClass, Registers
from fragir.isa.target_rows import number
from fragir.layout import Layout


def fragment(
    name: str, element: str, layout: Layout, shape: tuple[int, ...], container: int = 0
) -> Operand:
    """A fragment operand; its register count follows from its layout."""
    per = elements.per_register(element, container)
    count = max(1, layout.size("element") // per)
    registers = Registers(
        count, elements.register_type(element), "fragment", elements.accepts(element)
    )
    return Operand(name, registers, element, layout, shape)


def descriptor(name: str, element: str, shape: tuple[int, ...]) -> Operand:
    """A matrix in shared memory, named by a 64-bit descriptor."""
    return Operand(
        name, Registers(1, "b64", "descriptor", ("b64", "u64", "s64")), element, None, shape
    )


def word(
    name: str,
    cls: RegisterClass,
    element: str,
    layout: Layout,
    shape: tuple[int, ...],
    chunk: int,
) -> Operand:
    """One 32-bit register of metadata or scale factors."""
    return Operand(
        name,
        Registers(1, "b32", cls, ("b32", "u32", "s32")),
        element,
        layout,
        shape,
        chunk,
    )


def scale_operands(blocks: int, element: str, k: int) -> tuple[Operand, Operand]:
    """SFA and SFB with byte and thread selectors 0; a scale serves k / blocks elements."""
    layout_a, layout_b = fragments.scale_a(blocks, 0, 0), fragments.scale_b(blocks, 0, 0)
    return (
        word("sfa", "scale", element, layout_a, (16, blocks), k // blocks),
        word("sfb", "scale", element, layout_b, (blocks, 8), k // blocks),
    )


Steps = tuple[tuple[int, Lowering], ...]
"""From which machine on an instruction is what, in rising order; native before the first."""

# By the type of A, as read off the machine code of ptxas 13.5; others are native.
_BY_TYPE: Mapping[str, Steps] = {
    **dict.fromkeys(("s4", "u4"), ((90, "emulated"),)),
    **dict.fromkeys(FLOAT8_6_4, ((90, "emulated"), (120, "native"))),
}


def lowered(steps: Steps, form: Form, target: str) -> Lowering:
    """What ptxas makes of a form on a target; `()` says that the type of A decides."""
    machine = number(target)
    for first, lowering in reversed(steps or _BY_TYPE.get(form.types[1], ())):
        if machine >= first:
            return lowering
    return "native"


def container(form: Form, element: str) -> int:
    """Bits an element of A or B takes: 8 for the narrow floats but in `.kind::mxf4*`."""
    if element in FLOAT8_6_4:
        return 4 if form.flags & {"kind::mxf4", "kind::mxf4nvf4"} else 8
    return 0


def scale_blocks(form: Form) -> int:
    """Scale factors along K of one row: 1, 2 or 4; 0 without block scales."""
    for blocks in (1, 2, 4):
        if f"scale_vec::{blocks}X" in form.flags:
            return blocks
    return 0
