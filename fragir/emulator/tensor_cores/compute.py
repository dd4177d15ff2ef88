"""From decoded fragments to results: one class for each way in which mma is computed.

All take and return elements' bits: A `[k, ..., m, W]`, B `[K, ..., n, W]`, C and D
`[..., m, n, W]`. `kept` (sparse A): the full column of every kept element, `[k, m, W]`; then
k = K/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers import ieee
from fragir.emulator.numbers.types import F32, F64, U32
from fragir.emulator.tensor_cores.arithmetic import Fused, Rounding
from fragir.emulator.tensor_cores.forms import BITS
from fragir.emulator.tensor_cores.fused import ZERO_WIDE, DecodedValues, decode, dot, f16_codes
from fragir.emulator.tensor_cores.maps import Codes, Ints


@dataclass(frozen=True, slots=True)
class ScaleCodes:
    """Scale codes of A `[m, blocks, W]` and B `[n, blocks, W]`."""

    a: Codes
    b: Codes

    def __getitem__(self, part: slice) -> ScaleCodes:
        return ScaleCodes(self.a[..., part], self.b[..., part])


_Scalar = TypeVar("_Scalar", bound=np.generic)


class Compute(Protocol):
    """D's bits from those of A, B and C."""

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes: ...


def _select(b: npt.NDArray[_Scalar], kept: Ints) -> npt.NDArray[_Scalar]:
    """B's rows that the kept elements of A meet: `[K, n, W]` -> `[k, m, n, W]`."""
    _, columns, warps = b.shape
    return b[kept[:, :, None, :], np.arange(columns)[:, None], np.arange(warps)]


def spread_operands(
    a: DecodedValues, b: DecodedValues, kept: Ints | None
) -> tuple[DecodedValues, DecodedValues]:
    """A and B with the dimensions of their product: `[k, ..., m, n, W]`, extents 1 where shared."""
    left = a[..., None, :]
    if kept is None:
        return left, b[..., None, :, :]
    special = None if b.special is None else _select(b.special, kept)
    return left, DecodedValues(_select(b.value, kept), _select(b.exponent, kept), special)


class ElementPlace(NamedTuple):
    """An operand's element type and its place in its container (bits above `shift`)."""

    name: str
    shift: int = 0
    mask: int = 0xFFFFFFFF

    def decode(self, codes: Codes) -> DecodedValues:
        bits = codes.astype(np.uint32, copy=False)
        if self.shift:
            bits = bits >> np.uint32(self.shift)
        if self.mask != 0xFFFFFFFF:
            bits = bits & np.uint32(self.mask)
        return decode(self.name, bits)


@dataclass(frozen=True, slots=True)
class FusedMma:
    """The tensor core's own floating-point instructions."""

    a: ElementPlace
    b: ElementPlace
    how: Fused
    half_addend: bool = False  # C is f16 and D is f32

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        return self.add(*spread_operands(self.a.decode(a), self.b.decode(b), kept), c)

    def add(self, left: DecodedValues, right: DecodedValues, c: Codes) -> Codes:
        """The same of elements decoded and spread."""
        if self.half_addend:
            c = ieee.half_values(c.astype(np.uint32)).view(np.uint32)
        return dot(
            left, right, c.astype(np.uint32, copy=False), self.how, half_addend=self.half_addend
        )


@dataclass(frozen=True, slots=True)
class EmulatedFp8:
    """fp8 mma.sync where the hardware has none (sm_90, sm_100 and kin): ptxas emits f16 HMMAs.

    Elements become f16 (exact). The first HMMA takes the k whose k%4 is 0 or 1, the second the
    others. `chained` (ptxas 12.8 and later): the second adds to the first; else (12.4) the two are
    added as f32. C is added last. Read off the SASS of ptxas 12.4, 12.8, 12.9 and 13.2.
    """

    a: ElementPlace
    b: ElementPlace
    how: Fused
    chained: bool = True

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        halves_a = decode("f16", f16_codes(self.a.name)[a])
        halves_b = decode("f16", f16_codes(self.b.name)[b])
        left, right = spread_operands(halves_a, halves_b, kept)
        c = c.astype(np.uint32, copy=False)
        order: npt.NDArray[np.bool_] = np.arange(len(a)) % 4 < 2
        zero = np.zeros_like(c)
        first = dot(left[order], right[order], zero, self.how)
        half = self.how.rounding is Rounding.RNE_F16
        second = dot(left[~order], right[~order], first if self.chained else zero, self.how)
        with np.errstate(over="ignore", invalid="ignore"):
            if half:
                return ieee.add_f16(c, second)
            products = second.view(np.float32)
            if not self.chained:
                products = first.view(np.float32) + products
            return ieee.canonical_f32(c.view(np.float32) + products)


@dataclass(frozen=True, slots=True)
class SoftwareM8N8K4:
    """m8n8k4 of f16 from sm_80 on: a routine of shuffles and f32 arithmetic.

    Read off the SASS of ptxas 13.2 (`__cuda_sm_8x_mma_*`; the same arithmetic on sm_80, sm_90a and
    sm_100a). f32 result: FFMA for k = 0 to 3 from +0, then C is added. f16 result: with
    p = fma(a1, b1, a0*b0) and q = fma(a3, b3, a2*b2), (C + p) + q in f32, then one conversion.
    """

    half_addend: bool
    half_result: bool

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        left = ieee.half_values(a.astype(np.uint32))[..., None, :]
        right = ieee.half_values(b.astype(np.uint32))[..., None, :, :]
        bits = c.astype(np.uint32, copy=False)
        addend = ieee.half_values(bits) if self.half_addend else bits.view(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.half_result:
                low = ieee.fma_f32_of_f16(left[1], right[1], left[0] * right[0])
                high = ieee.fma_f32_of_f16(left[3], right[3], left[2] * right[2])
                return ieee.to_f16((addend + low) + high)
            total = np.zeros(addend.shape, np.float32)
            for k in range(4):
                total = ieee.fma_f32_of_f16(left[k], right[k], total)
            return ieee.canonical_f32(addend + total)


@dataclass(frozen=True, slots=True)
class Double:
    """f64: a chain of fused multiply-adds in ascending k, each rounded as the instruction says."""

    rounding: ieee.Rounding

    @classmethod
    def of(cls, words: frozenset[str]) -> Double:
        """With the rounding that is among words; to nearest even where none is."""
        return cls(next((each for each in get_args(ieee.Rounding)[1:] if each in words), "rn"))

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        left = a.view(np.float64)[:, :, None]
        right = b.view(np.float64)[:, None]
        total = np.ascontiguousarray(c).view(np.float64)
        for k in range(a.shape[0]):
            total = ieee.fma_f64(left[k], right[k], total, self.rounding)
        return total.view(np.uint64)


def integer_values(element: str, bits: U32) -> F32:
    """Elements of 8 bits or less (upper bits 0) as exact float32."""
    value = bits.astype(np.int32)
    if element[0] == "s":
        half = 1 << (BITS[element] - 1)
        value = (value ^ half) - half
    return value.astype(np.float32)


@dataclass(frozen=True, slots=True)
class IntegerProducts:
    """8-bit, 4-bit and single-bit products, added to s32: exactly, then wrapped or clamped."""

    a: str
    b: str
    clamp: bool = False
    xor: bool = False

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        left = np.moveaxis(integer_values(self.a, a.astype(np.uint32)), (0, 1, 2), (2, 1, 0))
        right = np.moveaxis(integer_values(self.b, b.astype(np.uint32)), (0, 1, 2), (1, 2, 0))
        if kept is not None:
            full = np.zeros((*left.shape[:2], b.shape[0]), np.float32)
            np.put_along_axis(full, np.moveaxis(kept, (0, 1, 2), (2, 1, 0)), left, axis=-1)
            left = full
        # Of 128 columns of 255 * 255 the sum is below 2^24: exact in any order.
        total = np.matmul(left, right).astype(np.int64)
        if self.xor:  # how many bits differ
            total = -2 * total
            total += np.add.reduce(left, axis=-1, keepdims=True).astype(np.int64)
            total += np.add.reduce(right, axis=-2, keepdims=True).astype(np.int64)
        addend = np.ascontiguousarray(np.moveaxis(c, -1, 0)).astype(np.uint32, copy=False)
        total = total + addend.view(np.int32)
        if self.clamp:
            np.clip(total, -(1 << 31), (1 << 31) - 1, out=total)
        result = total.astype(np.int32).view(np.uint32)
        return np.ascontiguousarray(np.moveaxis(result, 0, -1))


def scale_values(kind: str, codes: Codes) -> tuple[F64, Ints]:
    """Significand (or NaN) and exponent of scale factors: ue8m0, or ue4m3 (its sign ignored)."""
    bits = codes.astype(np.uint32)
    if kind == "ue8m0":
        significand = np.where(bits == 0xFF, np.nan, 1.0)
        return significand, bits.astype(np.int64) - 127
    values = decode("e4m3", bits & np.uint32(0x7F))
    value = values.value.astype(np.float64) if values.special is None else values.special
    exponent = np.maximum(((bits & 0x7F) >> 3).astype(np.int64), 1) - 7
    return value * np.exp2(-exponent), exponent


@dataclass(frozen=True, slots=True)
class Scaled:
    """kind::mxf8f6f4: one scale for a row of A and one for a column of B, powers of two."""

    a: ElementPlace
    b: ElementPlace
    how: Fused

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        assert scales is not None
        left = self._scale(self.a.decode(a), scales.a[:, 0])
        right = self._scale(self.b.decode(b), scales.b[:, 0])
        return dot(*spread_operands(left, right, kept), c.astype(np.uint32, copy=False), self.how)

    @staticmethod
    def _scale(values: DecodedValues, codes: Codes) -> DecodedValues:
        significand, power = scale_values("ue8m0", codes)
        factor = np.exp2(power.astype(np.float64))
        value = values.value * factor
        exponent = values.exponent.astype(np.int16) + power.astype(np.int16)
        special = values.special
        bad = np.broadcast_to(np.isnan(significand), value.shape)
        if special is not None or bad.any():
            special = (values.value if special is None else special) * factor * significand
            value = np.where(bad, 0.0, value)
        exponent = np.where(value == 0, np.int16(ZERO_WIDE), exponent)
        return DecodedValues(value, exponent, special)


@dataclass(frozen=True, slots=True)
class ScaledGroups:
    """kind::mxf4 and mxf4nvf4: the products of each 16 columns are added exactly, then scaled.

    A group's term counts with the exponent of its scales alone; terms are cut 35 bits below the
    largest, and the sum is rounded towards zero to f32 (MMA-Sim; not confirmed by others).
    """

    scale: str

    FRACTION = 35
    FLOOR = -139
    GROUP = 16

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        assert scales is not None
        element = ElementPlace("e2m1", mask=0xF)
        left, right = spread_operands(element.decode(a), element.decode(b), kept)
        products = left.value * right.value  # [k, m, n, W]; exact, and so are the sums
        groups = len(products) // self.GROUP
        parts = products.reshape(groups, self.GROUP, *products.shape[1:])
        sums = np.add.reduce(parts, axis=1).astype(np.float64)
        nothing = ~np.logical_or.reduce(parts != 0, axis=1)
        blocks = scales.a.shape[1]
        block = [group * blocks // groups for group in range(groups)]
        sig_a, exp_a = scale_values(self.scale, np.moveaxis(scales.a, 1, 0)[block])
        sig_b, exp_b = scale_values(self.scale, np.moveaxis(scales.b, 1, 0)[block])
        significand = sig_a[:, :, None] * sig_b[:, None]  # [groups, m, n, W]
        exponent = exp_a[:, :, None] + exp_b[:, None]
        addend = c.astype(np.uint32, copy=False)
        return group_sum(sums, significand, exponent, nothing, addend, self.FRACTION, self.FLOOR)


def group_sum(
    sums: F64,
    significand: F64,
    exponent: Ints,
    nothing: npt.NDArray[np.bool_],
    c: npt.NDArray[np.uint32],
    fraction: int,
    floor: int,
) -> npt.NDArray[np.uint32]:
    """c + sum of `sums * significand * 2^exponent` over axis 0, cut at `fraction`, RZ to f32."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        addend = c.view(np.float32).astype(np.float64)
    magnitude = (c & np.uint32(0x7FFFFFFF)).astype(np.int64)
    own = np.where(magnitude == 0, floor, np.maximum(magnitude >> 23, 1) - 127)
    dead = nothing | (significand == 0)
    leading = np.maximum(np.where(dead, floor, exponent).max(axis=0), np.maximum(own, floor))
    with np.errstate(invalid="ignore", over="ignore"):
        special = np.add.reduce(np.where(dead, 0.0, sums * significand), axis=0)
        special = special + np.where(np.isnan(significand).any(axis=0), np.nan, 0.0) + addend
        terms = np.trunc(sums * significand * np.exp2((exponent - leading + fraction) * 1.0))
        own_term = np.trunc(addend * np.exp2((fraction - leading) * 1.0))
        total = np.add.reduce(np.nan_to_num(terms), axis=0) + np.nan_to_num(own_term)
        value = total * np.exp2((leading - fraction) * 1.0)
        small = np.abs(value) < 2.0**-126
        cut: F64 = (value.view(np.int64) & np.int64(-1 << 29)).view(np.float64)
        cut = np.where(small, np.trunc(value * 2.0**149) * 2.0**-149, cut) + 0.0
        result: npt.NDArray[np.uint32] = cut.astype(np.float32).view(np.uint32)
    result[np.isnan(special)] = 0x7FFFFFFF
    return np.where(np.isinf(special), c, result)
