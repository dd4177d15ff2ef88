"""How constants and accesses are spelt: literals by type, opcodes of moves, loads and stores."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from fragir.dialects import ptx
from fragir.dialects.elements import element_name
from fragir.dialects.narrow import is_vector
from fragir.errors import FragirError
from fragir.passes.writer.constants import is_small_float, small_float_bits, tf32
from fragir.ptx.spelling import float_literal, vector


def braced(names: Sequence[str]) -> str:
    """One register as it is, several in braces."""
    return names[0] if len(names) == 1 else vector(list(names))


def move_opcode(width: int) -> str:
    return "mov.pred" if width == 1 else f"mov.b{width}"


@lru_cache(maxsize=1024)
def held(type_: Attribute) -> tuple[int, int, str | None]:
    """How registers hold a value: their bits, how many, and what names them by default."""
    return ptx.register_bits(type_), ptx.registers(type_), default_hint(type_)


@lru_cache(maxsize=1024)
def default_hint(type_: Attribute) -> str | None:
    """A prefix that says what a register holds: f for f32, fd for f64."""
    apart = type_.name in ("ptx.ptr", "ptx.bits", "ptx.tensor_map")
    name = "" if apart else element_name(ptx.scalar_type(type_))
    return {"f32": "f", "f64": "fd"}.get(name)


@lru_cache(maxsize=1024)
def access(kind: str, pointer: Attribute, value: Attribute) -> str:
    """The opcode of a load or store: `ld.global.v4.b32`."""
    assert isinstance(pointer, ptx.PointerType)
    count = ptx.registers(value)
    width = ptx.bits(value)
    if is_vector(value):  # of a register that is not full only what is held
        width = min(ptx.register_bits(value), ptx.length(value) * width)
    words = [kind, pointer.space.data.value, *([f"v{count}"] if count > 1 else []), f"b{width}"]
    return ".".join(words)


def zero_literal(type_: Attribute) -> str:
    """Zero as a literal of the type an instruction expects."""
    name = element_name(ptx.scalar_type(type_))
    return float_literal(0.0, name) if name in ("f32", "f64") else "0"


def constant_names(attribute: Attribute, type_: Attribute) -> list[str]:
    """The literals of a constant, one a register."""
    scalar, count = ptx.scalar_type(type_), ptx.registers(type_)
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        values = list(attribute.get_values())
        if len(set(values)) != 1:
            raise FragirError("only vectors of one repeated constant are supported")
        value: float | int = values[0]
    elif isinstance(attribute, FloatAttr | IntegerAttr):
        value = attribute.value.data
    else:
        raise FragirError(f"{attribute} is no number")
    name = element_name(scalar)
    if name in ("f32", "f64", "f16", "bf16"):
        literal = float_literal(float(value), name)
        if is_vector(type_) and ptx.bits(scalar) == 16:
            literal = f"0x{int(literal, 0) * 0x10001:08X}"
        return [literal] * count
    if name == "tf32":
        return [float_literal(tf32(float(value)), "f32")] * count
    bits = ptx.bits(scalar)
    if bits == 1:
        return ["1" if value else "0"] * count
    number = small_float_bits(float(value), name) if is_small_float(name) else int(value)
    return [replicated(number, bits) if is_vector(type_) else str(number)] * count


def replicated(pattern: int, bits: int) -> str:
    """The literal of a register full of one element."""
    if bits >= 32:
        return str(pattern)
    ones = sum(1 << at for at in range(0, 32, bits))
    return f"0x{(pattern & (1 << bits) - 1) * ones:08X}"


def literal_bits(name: str) -> str:
    """A literal as an integer pattern, for instructions without a type; registers unchanged."""
    if name.startswith(("0f", "0d")):
        return f"0x{name[2:]}"
    return name


SHORT = 9
"""Characters of an operand: no number so short takes more than 32 bits."""
_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+)")
_OFFSET = re.compile(r"\[[^],]*\+(-?\d+)[],]")


def check_literal(opcode: str, operand: str) -> None:
    """FragirError for a number that ptxas would cut: beyond the operand's bits (PTX ISA 9.2,
    section 4.5.1), or an offset of an address beyond 32 with its sign (section 6.4.1).
    """
    offset = _OFFSET.match(operand)
    if offset is not None:
        number, low, high = int(offset[1]), -(1 << 31), 1 << 31
    elif _NUMBER.fullmatch(operand):
        *words, type_ = opcode.split(".")
        if type_[1:] != "32" or "L2::cache_hint" in words:  # a hint has 64
            return
        number, low = int(operand, 0), -(1 << 31)
        high = 1 << (31 if "wide" in words and type_[0] == "s" else 32)
    else:
        return
    if not low <= number < high:
        raise FragirError(f"{opcode} has no room for {number}")


def half_bits(value: float) -> int:
    """The pattern of an f16."""
    return struct.unpack("<H", struct.pack("<e", value))[0]
