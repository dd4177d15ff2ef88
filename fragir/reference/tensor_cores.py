"""How tensor cores add products, as far as error bounds need it, and the bound of a product.

A step adds up to `step` exact products and the accumulator c. Every term t is cut off below
u = 2^(E - F), where 2^E is at most the largest term; the exact sum of what is left is rounded
once. A longer K is a chain of steps. F, step and rounding of each machine are published
measurements: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ
CS 330 (2021); Khattak and Mikaitis, arXiv 2512.07004; MMA-Sim, arXiv 2511.10909; fp8 mma.sync
where hardware has none, and m8n8k4 from sm_80 on, were read off ptxas 13.2 SASS.
docs/accuracy.md derives the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fragir import isa
from fragir.isa.model import FLOAT8_6_4
from fragir.isa.products import DENSE, has_wgmma, shapes, wgmma_k
from fragir.isa.spelling import fragment_name, mnk
from fragir.isa.targets import number
from fragir.ptx.machines import nvidia
from fragir.reference import algebra
from fragir.reference.bounded import UNIT, Bounded, bounded
from fragir.reference.formats import FLOATS, INTEGERS, Array, Floats, Integers, round_to


@dataclass(frozen=True)
class SumRounding:
    """What a step does to its exact sum."""

    relative: float
    tiny: float
    """Largest absolute error where the result is subnormal."""
    precision: int
    limit: float
    """From this magnitude on a result may be infinite."""


RZ_F32 = SumRounding(2.0**-23, 2.0**-149, 24, 2.0**128)
RZ_E8M13 = SumRounding(2.0**-13, 2.0**-139, 14, 2.0**128)
RNE_F16 = SumRounding(2.0**-11, 2.0**-25, 11, 65520.0)
RNE_F64 = SumRounding(2.0**-53, 2.0**-1075, 53, float(np.finfo(np.float64).max))
# to zero, down or up: a unit in the last place
DIRECTED_F64 = SumRounding(2.0**-52, 2.0**-1074, 53, float(np.finfo(np.float64).max))
# m8n8k4 by f32 instructions: four fused multiply-adds and an addition; with an f16 result three
# additions' roundings, one more as slack, and the conversion
FFMA_F32 = SumRounding(5 * 2.0**-24, 5 * 2.0**-150, 24, 2.0**128)
FFMA_F16 = SumRounding(4 * 2.0**-24 + 2.0**-11, 2.0**-24, 11, 65520.0)
# fp8 as f16: a step, then C added in f32 or f16 with a rounding of its own
RZ_F32_ADDED = SumRounding(2.0**-23 + 2.0**-24, 2.0**-148, 24, 2.0**128)
RNE_F16_ADDED = SumRounding(2 * 2.0**-11, 2.0**-24, 11, 65520.0)


@dataclass(frozen=True)
class Chain:
    """A way to form a long sum: instructions of `k` products, in steps of `step`."""

    k: int
    step: int
    fraction: int | None
    """F, the bits below the largest term's exponent that are kept; None: all."""
    rounding: SumRounding
    terms: int | None = None
    """How many numbers are cut off in a step, where sums of several products are; None: step."""

    def steps(self, k: int) -> int:
        """Steps for a sum of k products, padded to whole instructions."""
        return -(-k // self.k) * -(-self.k // self.step)

    @property
    def relative(self) -> float:
        """Error of one step, relative to the sum of its terms' magnitudes."""
        cut = 0.0 if self.fraction is None else self._cuts * 2.0**-self.fraction
        return (1 + cut) * (1 + self.rounding.relative) - 1

    @property
    def absolute(self) -> float:
        """Error of one step where everything is tiny; E does not sink below e_floor."""
        if self.fraction is None:
            return self.rounding.tiny
        # the highest floor of any machine
        floor = -19 if self.rounding.precision == 11 else -131
        return self.rounding.tiny + self._cuts * 2.0 ** (floor - self.fraction)

    @property
    def _cuts(self) -> int:
        """Numbers that are cut off in a step, the accumulator with them."""
        return (self.terms or self.step) + 1


_QUAD = "m8n8k4"


def chains(
    target: str,
    a: str,
    accumulator: str,
    instruction: str | None = None,
    *,
    rounding: str = "",
    scale: str = "",
) -> tuple[Chain, ...]:
    """Every way in which `target` may sum products of type `a`.

    `instruction` is a short name like m16n8k16.f16 or m64n128k16.f16; without one the compiler
    has the choice, and every instruction of the type counts. `rounding` is that of f64, `scale`
    the type of the scales of e2m1x2.
    """
    if a == "f64":
        return (Chain(1, 1, None, RNE_F64 if rounding in ("", "rn") else DIRECTED_F64),)
    if a == "e2m1x2":
        return (_chain_of_scaled(scale),)
    machine = number(nvidia(target))
    if instruction is None:
        ks = [(mnk(shape)[2], False) for shape in shapes(DENSE, a, False)]
        if has_wgmma(a, target):
            ks.append((wgmma_k(a), True))
        if a == "f16" and _quad_is_native(target):
            ks.append((4, False))
        return tuple(_chain(machine, a, accumulator, k, wgmma) for k, wgmma in ks)
    named = fragment_name(instruction)
    assert named is not None
    if named.shape == _QUAD and not _quad_is_native(target):
        half = accumulator == "f16"
        return (Chain(4, 4, None, FFMA_F16 if half else FFMA_F32),)
    k = mnk(named.shape)[2]
    return (_chain(machine, a, accumulator, k, named.is_by_warpgroups),)


def _chain_of_scaled(scale: str) -> Chain:
    """That of e2m1x2, whose scales have this type.

    Sums of 16 products are exact, then scaled and cut off 35 bits below the largest scale: 2 more
    than the smallest product, 6 more where a ue4m3 scales may be subnormal.
    """
    return Chain(64, 64, 33 if scale == "ue8m0" else 27, RZ_F32, terms=4)


def chain_in_tensor_memory(a: str, accumulator: str = "f32", scale: str = "") -> Chain:
    """How tcgen05.mma sums products of type `a`, with scales of a type or without, to f32 or f16
    (docs/arithmetic.md)."""
    if a == "e2m1x2":
        return _chain_of_scaled(scale)
    k = 32 if a in FLOAT8_6_4 else 8 if a == "tf32" else 16
    return Chain(k, k, 25, RNE_F16 if accumulator == "f16" else RZ_F32)


def _quad_is_native(target: str) -> bool:
    """Whether tensor cores form the four products of m8n8k4."""
    form = isa.Form("mma", _QUAD, ("row", "col"), ("f32", "f16", "f16", "f32"))
    quad = isa.current().resolve(form)
    return quad is not None and quad.lowering.get(target) == "native"


def _chain(machine: int, a: str, accumulator: str, k: int, wgmma: bool) -> Chain:
    half = accumulator == "f16"
    rounding = RNE_F16 if half else RZ_F32
    if a in FLOAT8_6_4:
        if machine >= 120:
            return Chain(k, min(k, 32), 25, rounding)
        if machine < 90 or wgmma:
            step = 32 if wgmma else 16
            return Chain(k, min(k, step), 13, RNE_F16 if half else RZ_E8M13)
        return Chain(k, k // 2, 25, RNE_F16_ADDED if half else RZ_F32_ADDED)
    wide = a != "tf32"
    if machine >= 90:
        return Chain(k, min(k, 16 if wide else 8), 25, rounding)
    if k == 4 and wide:
        return Chain(k, 4, 23, rounding)
    return Chain(k, min(k, 8 if wide else 4), 24, rounding)


# The bound ---------------------------------------------------------------------------------------


def dot(
    a: Bounded,
    b: Bounded,
    c: Bounded | None,
    types: tuple[str, str, str],
    ways: Sequence[Chain],
    addend: str | None = None,
    scales: tuple[Floats, Floats] | None = None,
    parts: int = 1,
) -> Bounded:
    """`c + a b` as any of the `ways` sums it: arrays (..., M, K), (..., K, N) and (..., M, N).

    `types` are the PTX names of A, B and the accumulator, `addend` that of c where it is another
    (m8n8k4 adds f16 to f32). `scales` are what every element of A and of B is multiplied by first,
    exactly. `parts`: so many sums, of any parts of K, are added up. Integers are exact, modulo
    2^32.
    """
    if types[2] in INTEGERS:
        return _integer_dot(a, b, c, INTEGERS[types[2]])
    if algebra.is_followed():
        return algebra.dot(a, b, c, types[2], scales)
    left, right = _sizes(a, types[0]), _sizes(b, types[1])
    if scales is not None:
        left, right = left * scales[0], right * scales[1]
        a, b = (
            bounded(x.value * factor, x.bound * factor)
            for x, factor in zip((a, b), scales, strict=True)
        )
    value = a.value @ b.value
    if c is not None:
        value = value + c.value
    k = a.value.shape[-1]
    total = left @ right
    if c is not None:
        total = total + _sizes(c, addend or types[2])
    grain = _grain(a, b, c)
    bound = np.zeros(value.shape)
    exact = np.ones(value.shape, bool)
    for way in ways:
        bound = np.maximum(bound, _way_bound(way, k, total))
        digits = min(way.rounding.precision, way.fraction or 53)
        finest = max(way.absolute, way.rounding.tiny)
        fits = (total <= 2.0**digits * grain) & (total < way.rounding.limit)
        exact &= fits & ((grain >= finest) | (total == 0))
    propagated = _propagated_bound(a, b, c)
    if parts > 1:
        sums = FLOATS[types[2]]
        rounded = 2.0**-sums.precision * (1.01 * total + bound) + 2.0**sums.lowest
        bound = bound + (parts - 1) * rounded
    bound = bound + (k + 8) * 1.01 * UNIT * total + propagated
    bound = np.where(exact, propagated, bound)
    if types[2] == "f16" and c is None:
        value, bound = _single(a, b, value, bound)
    result = bounded(value, bound)
    return result if np.isfinite(value).all() else _special(result, a, b, c)


def _special(x: Bounded, a: Bounded, b: Bounded, c: Bounded | None) -> Bounded:
    """A sum in which some terms are infinite or NaN; those that are not do not overflow."""
    nan = _meets_any(a.nan, b.nan)
    infinite = _meets_any(a.infinite, b.infinite)
    if c is not None:
        nan, infinite = nan | c.nan, infinite | c.infinite
    # infinities times what may be 0 or of either sign
    loose = _count_products(a.infinite, ~b.signed) + _count_products(~a.signed, b.infinite)
    bound = np.where(np.isfinite(x.value) | np.isinf(x.bound), x.bound, 0.0)
    bound = np.where(~np.isfinite(x.value) & ~infinite | (loose > 0), np.inf, bound)
    return Bounded(np.where(nan, np.nan, x.value), np.where(nan, 0.0, bound))


def _meets_any(a: Array, b: Array) -> Array:
    """[row, column]: whether any element of the row of A or the column of B is true."""
    rows, columns = a.any(axis=-1, keepdims=True), b.any(axis=-2, keepdims=True)
    return np.logical_or(rows, columns)


def _count_products(a: Array, b: Array) -> Floats:
    return a.astype(np.float64) @ b.astype(np.float64)


def _way_bound(way: Chain, k: int, total: Floats) -> Floats:
    steps = way.steps(k)
    growth = np.expm1(steps * np.log1p(way.relative))
    bound = growth * total + steps * way.absolute * (1 + growth)
    return np.where(total + bound >= way.rounding.limit, np.inf, bound)


def _sizes(x: Bounded, name: str) -> Floats:
    """Upper bounds of 2^exponent of every term: magnitudes, subnormal ones raised to normal."""
    size = np.where(np.isfinite(x.value), x.magnitude, 0.0)
    return np.where(size > 0, np.maximum(size, 2.0 ** FLOATS[name].lowest), 0.0)


def _propagated_bound(a: Bounded, b: Bounded, c: Bounded | None) -> Array:
    """What the operands' own bounds contribute."""
    result: Array = np.zeros(()) if c is None else c.bound
    if not b.exact:
        result = result + np.abs(_numbers(a.value)) @ b.bound
    if not a.exact:
        result = result + a.bound @ (np.abs(_numbers(b.value)) + b.bound)
    return result


def _numbers(values: Array) -> Floats:
    """Without infinities and NaN: 0 for them."""
    values = values.astype(np.float64)
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, 0.0)


def lowest_bit(values: Floats) -> Floats:
    """The value of the lowest bit that is set; infinite for 0."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    low = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(whole == 0, np.inf, low)


def _grain(a: Bounded, b: Bounded, c: Bounded | None) -> Floats:
    """A power of two of which every term of a sum is a multiple; 0 where terms are uncertain."""
    rows = np.where(a.bound > 0, 0.0, lowest_bit(a.value)).min(axis=-1, initial=np.inf)
    columns = np.where(b.bound > 0, 0.0, lowest_bit(b.value)).min(axis=-2, initial=np.inf)
    rows, columns = rows[..., :, None], columns[..., None, :]
    grain = np.where(np.isinf(rows) | np.isinf(columns), np.inf, rows * columns)
    if c is not None:
        grain = np.minimum(grain, np.where(c.bound > 0, 0.0, lowest_bit(c.value)))
    return np.where(np.isinf(grain), 1.0, grain)


def _single(a: Bounded, b: Bounded, value: Array, bound: Array) -> tuple[Array, Array]:
    """A sum of one product is that product, rounded once."""
    terms = (a.magnitude > 0).astype(np.float64) @ (b.magnitude > 0).astype(np.float64)
    alone = (terms <= 1) & (_propagated_bound(a, b, None) == 0)
    nearest = round_to(value, FLOATS["f16"])
    return np.where(alone, nearest, value), np.where(alone, 0.0, bound)


def _integer_dot(a: Bounded, b: Bounded, c: Bounded | None, form: Integers) -> Bounded:
    # products of bytes: float64 adds 2^37 of them exactly
    products = a.value.astype(np.float64) @ b.value.astype(np.float64)
    total = products.astype(np.int64)
    if c is not None:
        total = total + c.value
    bound = np.broadcast_to(_propagated_bound(a, b, c), total.shape)
    wrapped = form.wrap(total)
    uncertain = (bound > 0) & (np.abs(total) + bound >= 2.0 ** (form.bits - 1))
    return bounded(wrapped, np.where(uncertain, np.inf, bound))
