"""PTX's types as numpy's, and the formats of its floats (PTX ISA 9.2, section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.report import EmulationError

#: Numbers of any type: a register's row, bytes of memory, elements of a matrix.
Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = np.dtype[Any]
Bools: TypeAlias = npt.NDArray[np.bool_]
U8: TypeAlias = npt.NDArray[np.uint8]
U32: TypeAlias = npt.NDArray[np.uint32]
U64: TypeAlias = npt.NDArray[np.uint64]
I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]
F32: TypeAlias = npt.NDArray[np.float32]
F64: TypeAlias = npt.NDArray[np.float64]
#: What the fill of tensor copies writes for 16-bit floats outside the tensor, and what `fma.oob`
#: takes for such an element; the ISA names it without giving its bits.
OOB_NAN = 0x7FF7
#: PTX type -> (numpy dtype that holds its bits for arithmetic, width in bits). bf16 and the
#: packed and narrow formats have no numpy dtype: their raw bits.
DTYPES: dict[str, tuple[DType, int]] = {
    "pred": (np.dtype(np.bool_), 1),
    **{f"u{n}": (np.dtype(f"u{n // 8}"), n) for n in (8, 16, 32, 64)},
    **{f"b{n}": (np.dtype(f"u{n // 8}"), n) for n in (8, 16, 32, 64)},
    **{f"s{n}": (np.dtype(f"i{n // 8}"), n) for n in (8, 16, 32, 64)},
    "f16": (np.dtype(np.float16), 16),
    "f32": (np.dtype(np.float32), 32),
    "f64": (np.dtype(np.float64), 64),
    "bf16": (np.dtype(np.uint16), 16),
    "f16x2": (np.dtype(np.uint32), 32),
    "bf16x2": (np.dtype(np.uint32), 32),
    "f32x2": (np.dtype(np.uint64), 64),
    "u16x2": (np.dtype(np.uint32), 32),
    "s16x2": (np.dtype(np.uint32), 32),
    "u8x4": (np.dtype(np.uint32), 32),
    "s8x4": (np.dtype(np.uint32), 32),
    "tf32": (np.dtype(np.uint32), 32),
    "e4m3": (np.dtype(np.uint8), 8),
    "e5m2": (np.dtype(np.uint8), 8),
    "e4m3x2": (np.dtype(np.uint16), 16),
    "e5m2x2": (np.dtype(np.uint16), 16),
    "e2m1x2": (np.dtype(np.uint8), 8),
    "e2m3x2": (np.dtype(np.uint16), 16),
    "e3m2x2": (np.dtype(np.uint16), 16),
    "ue8m0x2": (np.dtype(np.uint16), 16),
    "s2f6x2": (np.dtype(np.uint16), 16),
    **{f"{e}x4": (np.dtype(np.uint32), 32) for e in ("e4m3", "e5m2", "e2m3", "e3m2")},
    "e2m1x4": (np.dtype(np.uint16), 16),
    "b128": (np.dtype(np.uint64), 128),
}


#: Unsigned dtype by width in bytes.
UINT: dict[int, DType] = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def dtype_of(kind: str) -> DType:
    """The numpy dtype of a PTX type (`f32`, `b64`, ...)."""
    return layout_of(kind)[0]


def width_of(kind: str) -> int:
    """The width of a PTX type in bits."""
    return layout_of(kind)[1]


def layout_of(kind: str) -> tuple[DType, int]:
    """The numpy dtype of a PTX type, and its bits. EmulationError for other words."""
    found = DTYPES.get(kind)
    if found is None:
        raise EmulationError(f".{kind} is no type that is known here")
    return found


def kind_of(opcode: tuple[str, ...]) -> str:
    """The type that an opcode names (modifiers come in any order). EmulationError without one."""
    return word_of(tuple(reversed(opcode)), DTYPES, "type")


def word_of(
    opcode: Sequence[str], known: Sequence[str] | Mapping[str, object], what: str = "modifier"
) -> str:
    """The first word of an opcode that is one of those known. EmulationError where none is."""
    choices = list(known)
    for word in opcode:
        if word in choices:
            return word
    some = ", ".join(f".{word}" for word in choices[:12])
    more = ", ..." if len(choices) > 12 else ""
    raise EmulationError(f"it needs a {what}, one of {some}{more}")


def count_of(opcode: tuple[str, ...]) -> int:
    """Elements of a vector access, 1 for a scalar one."""
    return next((int(w[1:]) for w in opcode if w in ("v2", "v4", "v8")), 1)


#: np.where with all three arguments; numpy's own stub gives up on arrays of any type.
where: Callable[[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], Array] = np.where


def address_of(array: Array) -> int:
    """Where an array's first element lies on the host."""
    return int(array.__array_interface__["data"][0])


def bytes_of(array: Array) -> U8:
    """The bytes of a C-contiguous array, in place."""
    return array.reshape(-1).view(np.uint8)


def some(flags: Bools) -> bool:
    """Whether any is set. Of a few hundred, four times as fast as their method `any`."""
    return 1 in flags.tobytes()


def every(flags: Bools) -> bool:
    """Whether all are set, as fast."""
    return 0 not in flags.tobytes()


def distinct(values: Array) -> Array:
    """Its values in ascending order, each once.

    np.unique needs numpy.ma for that, a tenth of the time that a small launch takes.
    """
    ascending = np.sort(values, axis=None)
    new = np.ones(ascending.shape, np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return ascending[new]


def among(values: Array, ascending: Array) -> Array:
    """The values that are among given ones: each once, in ascending order, as those are."""
    if not ascending.size:
        return ascending
    places = np.minimum(np.searchsorted(ascending, values), ascending.size - 1)
    return distinct(values[ascending[places] == values])


# -- formats ---------------------------------------------------------------------------------------
# Floating-point formats: one table (PTX ISA 9.2, section 5.2.3 and its references).


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format of `1 + exponent + fraction` bits.

    `infinity`: whether its top exponent holds Inf and NaN, as IEEE 754 has it. `nan`: the bits of
    the NaN that instructions give; None: the format has none. A format with a NaN and no infinity
    has the NaN at S.11..1 and numbers at all other codes.
    """

    name: str
    exponent: int
    fraction: int
    infinity: bool = True
    nan: int | None = None

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def lowest(self) -> int:
        """Exponent of the smallest normal, and of every subnormal."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The largest finite number."""
        unit = 2.0**-self.fraction
        if self.infinity:
            return (2 - unit) * 2.0**self.bias
        return (2 - (unit if self.nan is None else 2 * unit)) * 2.0 ** (self.bias + 1)


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("f64", 11, 52, nan=0x7FF8 << 48),
        Format("f32", 8, 23, nan=0x7FFFFFFF),
        Format("tf32", 8, 10, nan=0x7FFFFFFF),
        Format("bf16", 8, 7, nan=0x7FFF),
        Format("f16", 5, 10, nan=0x7FFF),
        Format("e5m2", 5, 2, nan=0x7F),
        Format("e4m3", 4, 3, infinity=False, nan=0x7F),
        Format("e3m2", 3, 2, infinity=False),
        Format("e2m3", 2, 3, infinity=False),
        Format("e2m1", 2, 1, infinity=False),
    )
}
