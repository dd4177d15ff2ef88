"""Elements of A and B: from bits to exact values and the exponents that the hardware aligns by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import F32, F64, FORMATS
from fragir.errors import FragirError

Bits: TypeAlias = npt.NDArray[np.uint32]


# Exponent given to a zero element, so low that no product with it can lead; see `Values`.
ZERO_NARROW = -60


ZERO_WIDE = -2000


@dataclass(slots=True)
class Values:
    """Decoded elements of A or B, of any shape.

    `value`: exact, float32 or float64; 0 where the element is Inf or NaN. `exponent`: that of the
    encoding, floor(log2|x|) for normals and the smallest normal's for subnormals; int8 for formats
    of at most 5 exponent bits, else int16; ZERO_NARROW or ZERO_WIDE where `value` is 0. `special`:
    float64 values with Inf and NaN, or None where all elements are finite.
    """

    value: npt.NDArray[np.floating[Any]]
    exponent: npt.NDArray[np.signedinteger[Any]]
    special: F64 | None

    @property
    def narrow(self) -> bool:
        return self.exponent.dtype == np.int8

    def view(self, *shape: int) -> Values:
        special = None if self.special is None else self.special.reshape(shape)
        return Values(self.value.reshape(shape), self.exponent.reshape(shape), special)

    def __getitem__(self, index: Any) -> Values:
        special = None if self.special is None else self.special[index]
        return Values(self.value[index], self.exponent[index], special)


@cache
def _table(name: str) -> tuple[F32, npt.NDArray[np.int8], F64]:
    """Value, exponent and value with specials of every code of a format of at most 8 bits."""
    form = FORMATS[name]
    code = np.arange(1 << form.bits, dtype=np.int64)
    magnitude = code & ((1 << (form.bits - 1)) - 1)
    field = magnitude >> form.fraction
    part = magnitude & ((1 << form.fraction) - 1)
    exponent = np.maximum(field, 1) - form.bias
    significand = part + ((field > 0).astype(np.int64) << form.fraction)
    value = np.ldexp(significand.astype(np.float64), exponent - form.fraction)
    special = value.copy()
    if form.infinity:
        special[(field == field.max()) & (part == 0)] = np.inf
        special[(field == field.max()) & (part != 0)] = np.nan
    elif form.nan is not None:
        special[magnitude == magnitude.max()] = np.nan
    value[~np.isfinite(special)] = 0
    exponent[value == 0] = ZERO_NARROW
    sign = np.where(code >> (form.bits - 1) & 1, -1.0, 1.0)
    return (
        (value * sign).astype(np.float32),
        exponent.astype(np.int8),
        special * sign,
    )


def decode(name: str, bits: Bits) -> Values:
    """Elements from their bits (upper bits must be 0; tf32: all 32 bits of the register)."""
    match name:
        case "f16":
            return _decode_f16(bits)
        case "bf16":
            return _decode_wide(bits << np.uint32(16))
        case "tf32":
            return _decode_wide(bits & np.uint32(0xFFFFE000))
        case _ if name in FORMATS and FORMATS[name].bits <= 8:
            value, exponent, special = _table(name)
            infinite = not np.isfinite(special).all() and not np.isfinite(special[bits]).all()
            return Values(value[bits], exponent[bits], special[bits] if infinite else None)
        case _:
            raise FragirError(f"the emulator has no element format `{name}`")


_F16_SCALE = np.float32(2.0**112)


def _decode_f16(bits: Bits) -> Values:
    magnitude = bits & np.uint32(0x7FFF)
    # Moved to float32's place the exponent is 112 too small; subnormals come out right as well.
    moved = magnitude << np.uint32(13)
    moved |= (bits & np.uint32(0x8000)) << np.uint32(16)
    value = moved.view(np.float32) * _F16_SCALE
    magnitude = magnitude.astype(np.int16)
    exponent = (np.maximum(magnitude >> 10, 1) - 15).astype(np.int8)
    exponent[magnitude == 0] = ZERO_NARROW
    special = None
    if magnitude.size and int(magnitude.max()) >= 0x7C00:
        special = value.astype(np.float64)
        special[magnitude == 0x7C00] *= np.inf
        special[magnitude > 0x7C00] = np.nan
        value[magnitude >= 0x7C00] = 0
        exponent[magnitude >= 0x7C00] = ZERO_NARROW
    return Values(value, exponent, special)


def _decode_wide(bits: Bits) -> Values:
    """Formats with float32's exponent, from float32's bits."""
    magnitude = bits & np.uint32(0x7FFFFFFF)
    value = bits.view(np.float32)
    exponent = (np.maximum(magnitude >> np.uint32(23), 1).astype(np.int16)) - np.int16(127)
    exponent[magnitude == 0] = ZERO_WIDE
    special = None
    if magnitude.size and int(magnitude.max()) >= 0x7F800000:
        with np.errstate(invalid="ignore"):  # signalling NaNs
            special = value.astype(np.float64)
        value = value.copy()
        value[magnitude >= 0x7F800000] = 0
        exponent[magnitude >= 0x7F800000] = ZERO_WIDE
    return Values(value, exponent, special)


@cache
def f16_codes(name: str) -> Bits:
    """The f16 code of every code of e4m3 or e5m2 (always exact); NaN becomes 0x7FFF."""
    special = _table(name)[2]
    with np.errstate(invalid="ignore"):
        result = special.astype(np.float16).view(np.uint16).astype(np.uint32)
    result[np.isnan(special)] = 0x7FFF
    # A negative zero survives: -0.0 is a value of the table.
    return result
