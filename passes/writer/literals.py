"""How constants and accesses are spelt: literals by type, opcodes of moves, loads and stores."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from fragir.dialects import ptx
from fragir.dialects.elements import element_name
from fragir.dialects.shorthands import is_vector
from fragir.errors import FragirError
from fragir.ptx.spelling import float_literal, vector

# -- constants -------------------------------------------------------------------------------------
# Bits of constants whose types have no literals in PTX: tf32 and floats of a byte or less.

# bits of the exponent, bits of the fraction, the largest finite number's code, NaN's code
# (OCP 8-bit floating point specification; OCP microscaling formats specification)
_SMALL: dict[str, tuple[int, int, int, int | None]] = {
    "e4m3": (4, 3, 0x7E, 0x7F),
    "e5m2": (5, 2, 0x7B, 0x7F),
    "e3m2": (3, 2, 0x1F, None),
    "e2m3": (2, 3, 0x1F, None),
    "e2m1": (2, 1, 0x07, None),
}


def is_small_float(name: str) -> bool:
    """Whether a PTX type is a float that takes a byte or less."""
    return name in _SMALL or name == "ue8m0"


def small_float_bits(value: float, name: str) -> int:
    """The code of the nearest number, ties to even; beyond the largest, the largest (satfinite)."""
    if name == "ue8m0":
        return _power_of_two(value)
    exponent_bits, fraction_bits, largest, nan = _SMALL[name]
    sign = (math.copysign(1.0, value) < 0) << exponent_bits + fraction_bits
    if math.isnan(value):
        if nan is None:
            raise FragirError(f"{name} has no NaN")
        return sign | nan
    bias = (1 << exponent_bits - 1) - 1

    def number(code: int) -> float:
        exponent, fraction = divmod(code, 1 << fraction_bits)
        significand = fraction + (1 << fraction_bits) * (exponent > 0)
        return math.ldexp(significand, max(exponent, 1) - bias - fraction_bits)

    wanted = min(abs(value), number(largest))
    nearest = min(range(largest + 1), key=lambda code: (abs(number(code) - wanted), code & 1))
    return sign | nearest


def _power_of_two(value: float) -> int:
    """The code of a scale, which must be a power of two (OCP microscaling formats)."""
    if math.isnan(value):
        return 0xFF
    fraction, exponent = math.frexp(value)
    if fraction != 0.5 or not -127 <= exponent - 1 <= 127:
        raise FragirError(f"{value} is no scale", hint="f8E8M0FNU holds 2^-127 to 2^127")
    return exponent - 1 + 127


def tf32(value: float) -> float:
    """The nearest tf32 (11 bits of significand), ties away from zero as cvt.rna does."""
    if not math.isfinite(value) or value == 0:
        return value
    _, exponent = math.frexp(value)
    step = max(exponent, -125) - 11
    whole = math.floor(math.ldexp(abs(value), -step) + 0.5)
    rounded = math.ldexp(whole, step)
    return math.copysign(rounded if rounded < 2.0**128 else math.inf, value)


def brace(names: Sequence[str]) -> str:
    """One register as it is, several in braces."""
    return names[0] if len(names) == 1 else vector(list(names))


def move_opcode(width: int) -> str:
    return "mov.pred" if width == 1 else f"mov.b{width}"


@lru_cache(maxsize=1024)
def register_form(type_: Attribute) -> tuple[int, int, str | None]:
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
    return [replicate(number, bits) if is_vector(type_) else str(number)] * count


def replicate(pattern: int, bits: int) -> str:
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
