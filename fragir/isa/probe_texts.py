"""Statements that the probe kernels of all families have (`fragir.isa.emit`).

They use the registers %thread, %block, %index, %at, %word, %address, %base, %offset and %p.
"""

from __future__ import annotations

from collections.abc import Iterator

from fragir.isa.canonical import CanonicalLayout
from fragir.isa.model import Operand, Registers

# Which thread of the block this is, which block, and which thread of all.
PLACE = (
    "mov.u32 %thread, %tid.x;",
    "mov.u32 %block, %ctaid.x;",
    "mov.u32 %index, %ntid.x;",
    "mad.lo.u32 %index, %block, %index, %thread;",
)


def descriptor(register: str, name: str, layout: CanonicalLayout, target: str) -> Iterator[str]:
    """The descriptor of an operand's image, in a register called like the operand."""
    from fragir.isa.descriptors import describe

    strides = describe(layout, 0, target).word
    yield f"mov.u32 %address, {name}_{register}_image;"
    yield "and.b32 %address, %address, 0x3FFFF;"
    yield "shr.u32 %address, %address, 4;"
    yield f"cvt.u64.u32 %{register}, %address;"
    yield f"or.b64 %{register}, %{register}, {strides:#x};"


def word(name: str) -> str:
    """An operand's name as part of one of PTX's."""
    return name.replace("-", "_")


def declared(operand: Operand) -> str:
    """The declaration of an operand's registers."""
    return f".reg .{operand.registers.type} %{operand.name}<{operand.registers.count}>;"


def vector(operand: Operand) -> str:
    """An operand's registers in braces."""
    held = ", ".join(f"%{operand.name}{i}" for i in range(operand.registers.count))
    return f"{{{held}}}"


def register_bytes(registers: Registers) -> int:
    """Bytes of one register: 8 for the 64-bit types, else 4."""
    return 8 if registers.type.endswith("64") else 4


def moved(operand: Operand, name: str, what: str, parameter: str = "") -> Iterator[str]:
    """Load or store a lane's registers from or to `parameter` (the operand's own by default)."""
    size = register_bytes(operand.registers)
    yield from _base(parameter or operand.name, name)
    yield f"mul.wide.u32 %offset, %index, {size * operand.registers.count};"
    yield "add.s64 %base, %base, %offset;"
    for i in range(operand.registers.count):
        place, register = f"[%base+{i * size}]", f"%{operand.name}{i}"
        words = (register, place) if what == "ld" else (place, register)
        yield f"{what}.global.{operand.registers.type} {', '.join(words)};"


def _base(parameter: str, name: str) -> Iterator[str]:
    yield f"ld.param.u64 %base, [{name}_{word(parameter)}];"
    yield "cvta.to.global.u64 %base, %base;"


def copy_in(what: str, name: str, size: int, threads: int) -> Iterator[str]:
    """A block's image from memory to shared memory."""
    yield from _copy(what, name, size, threads)
    yield "ld.global.b32 %word, [%base];"
    yield "st.shared.b32 [%address], %word;"
    yield from _again(f"{name}_{word(what)}", size, threads)


def copy_out(what: str, name: str, size: int, threads: int) -> Iterator[str]:
    """The way back."""
    yield from _copy(what, name, size, threads)
    yield "ld.shared.b32 %word, [%address];"
    yield "st.global.b32 [%base], %word;"
    yield from _again(f"{name}_{word(what)}", size, threads)


def _copy(what: str, name: str, size: int, threads: int) -> Iterator[str]:
    """The head of a loop over the words of an image, one word a thread and round."""
    yield from _base(what, name)
    yield f"mul.wide.u32 %offset, %block, {size};"
    yield "add.s64 %base, %base, %offset;"
    yield f"mov.u32 %address, {name}_{word(what)}_image;"
    yield "shl.b32 %at, %thread, 2;"
    yield "cvt.u64.u32 %offset, %at;"
    yield "add.s64 %base, %base, %offset;"
    yield "add.u32 %address, %address, %at;"
    yield f"{name}_{word(what)}_next:"
    yield f"setp.ge.u32 %p, %at, {size};"
    yield f"@%p bra {name}_{word(what)}_done;"


def _again(label: str, size: int, threads: int) -> Iterator[str]:
    step = 4 * threads
    yield f"add.u32 %at, %at, {step};"
    yield f"add.s64 %base, %base, {step};"
    yield f"add.u32 %address, %address, {step};"
    yield f"bra {label}_next;"
    yield f"{label}_done:"
