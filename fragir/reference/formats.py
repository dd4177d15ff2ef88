"""The number formats of tiles and memory: values as float64, bits, rounding and spacing.

Written for the reference alone: the emulator has its own rounding, so that neither can hide a
mistake of the other. Layouts of the formats: IEEE 754 for f16, f32 and f64; bf16 and tf32 are f32
with fewer fraction bits; e4m3 and e5m2 as in the OCP 8-bit floating point specification (e4m3
has no infinity, and S.1111.111 is its only NaN); e3m2, e2m3, e2m1 (a byte each, in its lowest bits)
and the powers of two ue8m0 as in the OCP microscaling formats specification. s4, u4, b1 and e2m1x2,
which is e2m1 two to a byte, are packed, the first element lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.errors import FragirError

if TYPE_CHECKING:
    from xdsl.ir import Attribute

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point format: bits of significand with the leading one, lowest exponent, range."""

    name: str
    precision: int
    lowest: int
    """Exponent of the smallest normal number."""
    largest: float
    storage: str
    """The numpy type of its arrays; unsigned integers hold bits."""
    saturates: bool = False
    """Whether a conversion clamps at `largest` (cvt.satfinite) instead of giving infinity."""

    @property
    def smallest(self) -> float:
        """The smallest positive number, which is the spacing of the subnormal numbers."""
        return 2.0 ** (self.lowest - self.precision + 1)


@dataclass(frozen=True)
class Integers:
    """A two's complement or unsigned integer format."""

    name: str
    bits: int
    signed: bool

    @property
    def storage(self) -> str:
        if self.name == "pred":
            return "bool"
        return f"{'' if self.signed and self.bits >= 8 else 'u'}int{max(8, self.bits)}"

    def wrap(self, values: Array) -> Array:
        """Any integers modulo 2^bits, as int64; those of u64 from 2^63 on are negative there."""
        if self.bits == 64:
            return values
        mask = (1 << self.bits) - 1
        low = values & mask
        return (
            np.where(low >> (self.bits - 1) & 1, low - (1 << self.bits), low)
            if (self.signed)
            else low
        )


FLOATS: dict[str, FloatFormat] = {
    row.name: row
    for row in (
        FloatFormat("f16", 11, -14, 65504.0, "float16"),
        FloatFormat("bf16", 8, -126, 2.0**127 * (2 - 2.0**-7), "uint16"),
        FloatFormat("tf32", 11, -126, 2.0**127 * (2 - 2.0**-10), "float32"),
        FloatFormat("f32", 24, -126, 2.0**127 * (2 - 2.0**-23), "float32"),
        FloatFormat("f64", 53, -1022, float(np.finfo(np.float64).max), "float64"),
        FloatFormat("e4m3", 4, -6, 448.0, "uint8", saturates=True),
        FloatFormat("e5m2", 3, -14, 57344.0, "uint8", saturates=True),
        FloatFormat("e3m2", 3, -2, 28.0, "uint8", saturates=True),
        FloatFormat("e2m3", 4, 0, 7.5, "uint8", saturates=True),
        FloatFormat("e2m1", 2, 0, 6.0, "uint8", saturates=True),
        FloatFormat("e2m1x2", 2, 0, 6.0, "uint8", saturates=True),
        FloatFormat("ue8m0", 1, -127, 2.0**127, "uint8", saturates=True),
    )
}
INTEGERS: dict[str, Integers] = {
    row.name: row
    for row in (
        Integers("pred", 1, False),
        Integers("b1", 1, False),
        Integers("s4", 4, True),
        Integers("u4", 4, False),
        Integers("s8", 8, True),
        Integers("u8", 8, False),
        Integers("s16", 16, True),
        Integers("u16", 16, False),
        Integers("s32", 32, True),
        Integers("u32", 32, False),
        Integers("s64", 64, True),
        Integers("u64", 64, False),
    )
}


# Elements of a byte where there are several.
PER_BYTE = {"s4": 2, "u4": 2, "b1": 8, "e2m1x2": 2}
_SMALL = frozenset({"e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e2m1x2"})


def storage(name: str) -> np.dtype[Any]:
    """The numpy type in which arrays of this element type are kept; KeyError for others."""
    row = FLOATS.get(name) or INTEGERS[name]
    return np.dtype(row.storage)


# Rounding ----------------------------------------------------------------------------------------


def spacing(magnitude: Floats, form: FloatFormat) -> Floats:
    """The distance of neighbouring numbers of the format in the binade of each magnitude."""
    _, exponent = np.frexp(magnitude)
    exponent = np.where(magnitude == 0, form.lowest, np.maximum(exponent - 1, form.lowest))
    return np.ldexp(1.0, exponent - (form.precision - 1))


def half_spacing(magnitude: Floats, form: FloatFormat) -> Floats:
    """How far rounding to nearest moves a real number that is at most this large."""
    return spacing(magnitude, form) / 2


def round_to(values: Floats, form: FloatFormat) -> Floats:
    """Nearest number of the format: ties to even, for tf32 away from zero (cvt.rna).

    What is too large becomes infinite, or the largest number where the format saturates.
    """
    if form.name == "f64":
        return values
    finite = np.isfinite(values)
    safe = np.where(finite, values, 0.0)
    step = spacing(np.abs(safe), form)
    scaled = safe / step
    if form.name == "tf32":
        whole = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    else:
        whole = np.rint(scaled)
    rounded = whole * step
    limit = form.largest if form.saturates else np.inf
    rounded = np.where(np.abs(rounded) > form.largest, np.copysign(limit, rounded), rounded)
    result = np.where(finite, rounded, values)
    if form.name == "ue8m0":  # no sign and no zero
        return np.clip(result, form.smallest, limit)
    return np.clip(result, -limit, limit) if form.saturates else result


def overflow(form: FloatFormat) -> float:
    """The smallest magnitude that rounds to infinity."""
    return form.largest + float(spacing(np.array(form.largest), form)) / 2


# Bits --------------------------------------------------------------------------------------------


@cache
def _positive(name: str) -> Floats:
    """The value of each bit pattern of an 8-, 6- or 4-bit format without its sign bit."""
    form = FLOATS[name]
    fraction_bits = form.precision - 1
    exponent_bits = (2 - form.lowest).bit_length()  # the bias is 1 - lowest
    bits = np.arange(1 << fraction_bits + exponent_bits)
    field, fraction = bits >> fraction_bits, bits & ((1 << fraction_bits) - 1)
    significand = np.where(field == 0, fraction, fraction + (1 << fraction_bits))
    exponent = np.maximum(field, 1) - 1 + form.lowest - fraction_bits
    values = np.ldexp(significand.astype(np.float64), exponent)
    if name == "e4m3":
        values[127] = np.nan
    elif name == "e5m2":
        values[124] = np.inf
        values[125:] = np.nan
    return values


def _unpack_codes(array: Array, per: int) -> Array:
    """The codes of elements that stand several to a byte, along the contiguous dimension."""
    along = array.ndim - 1
    if array.size:  # an empty array may have any strides
        bytes_apart = [d for d in reversed(range(array.ndim)) if array.strides[d] == 1]
        along = next(iter(bytes_apart), along)
    shifts = (8 // per) * np.arange(per)
    codes = (np.moveaxis(array, along, -1)[..., None] >> shifts) & ((1 << 8 // per) - 1)
    # sizes are said, as those of an empty array cannot be found
    flat = codes.reshape(*codes.shape[:-2], codes.shape[-2] * per)
    return np.moveaxis(flat, -1, along)


def _pack_codes(codes: Array, per: int) -> Array:
    """Codes several to a byte along the last dimension."""
    parts = (*codes.shape[:-1], codes.shape[-1] // per, per)
    grouped = (codes & ((1 << 8 // per) - 1)).reshape(parts)
    return (grouped << (8 // per) * np.arange(per)).sum(-1).astype(np.uint8)


def decode(array: Array, name: str) -> Array:
    """The values of an array in its storage type: float64, or int64 for integers.

    A tf32 array is an f32 array of which the low 13 bits do not count. Elements smaller than a
    byte make the contiguous dimension longer.
    """
    kind = storage(name)
    if array.dtype.itemsize != kind.itemsize:
        raise FragirError(f"an array of {array.dtype} cannot hold {name}, which is {kind}")
    if name in PER_BYTE:
        array = _unpack_codes(array.view(kind), PER_BYTE[name])
    elif array.dtype != kind:
        array = np.ascontiguousarray(array).view(kind)
    if name in INTEGERS:
        return INTEGERS[name].wrap(array.astype(np.int64))
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return _float_values(array, name)


def _float_values(array: Array, name: str) -> Floats:
    if name == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if name == "tf32":
        bits = np.ascontiguousarray(array).view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)
    if name == "ue8m0":
        values = np.ldexp(1.0, array.astype(np.int64) - 127)
        return np.where(array == 255, np.nan, values)
    if name in _SMALL:
        positive = _positive(name)
        return np.concatenate([positive, -positive])[array & (2 * len(positive) - 1)]
    return array.astype(np.float64)


def encode(values: Array, name: str) -> Array:
    """An array in storage type of values rounded to the format; integers wrap.

    Elements smaller than a byte are packed along the last dimension.
    """
    kind = storage(name)
    if name in INTEGERS:
        wrapped = INTEGERS[name].wrap(np.asarray(values, np.int64))
        return _pack_codes(wrapped, PER_BYTE[name]) if name in PER_BYTE else wrapped.astype(kind)
    rounded = round_to(np.asarray(values, np.float64), FLOATS[name])
    if name == "bf16":
        return (rounded.astype(np.float32).view(np.uint32) >> 16).astype(kind)
    if name == "ue8m0":
        _, exponent = np.frexp(rounded)
        return np.where(np.isnan(rounded), 255, exponent + 126).astype(kind)
    if name not in _SMALL:
        return rounded.astype(kind)
    positive = _positive(name)
    usable = positive[~np.isnan(positive)]
    code = np.searchsorted(usable, np.abs(np.nan_to_num(rounded, nan=0.0, posinf=np.inf)))
    largest = len(positive) - 1
    code = np.where(np.isnan(rounded), largest, np.minimum(code, largest))
    code = code | np.where(np.signbit(rounded), len(positive), 0)
    return _pack_codes(code, PER_BYTE[name]) if name in PER_BYTE else code.astype(kind)


# -- element types ---------------------------------------------------------------------------------
# What the reference calls the types of elements: their PTX names.

PREDICATE = "pred"


def type_name(type_: Attribute) -> str:
    """The PTX name of a scalar's or tile's element type; FragirError for others."""
    from xdsl.dialects.builtin import ShapedType  # imports much; numbers alone need no IR

    from fragir.dialects import frag
    from fragir.dialects.elements import element_name

    if isinstance(type_, frag.TileType | ShapedType):
        type_ = getattr(type_, "element_type")
    try:
        return element_name(type_)
    except KeyError:
        raise FragirError(f"the reference does not know the type {type_}") from None
