"""Values with a rigorous bound on how far an execution may be from them.

A `Bounded` is an array of values and an array of bounds: every execution that the semantics
allows, of any rounding that the machine may do, gives a result r with |r - value| <= bound.
Bounds are propagated by each operation (a running error analysis); nothing is fitted. Rounding in
the reference itself, which computes in float64, is part of the bounds. docs/accuracy.md derives
the formulas.

An infinite bound says that nothing is known: the result may be any number, infinite, or NaN. A
value that is itself infinite or NaN is certain, with the bound 0, or unknown: nothing lies near it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from fragir.reference.formats import (
    Array,
    FloatFormat,
    Floats,
    half_spacing,
    overflow,
    round_to,
)

UNIT = 2.0**-53
"""Relative error of one operation of the reference itself."""
_INFLATE = 1 + 2.0**-48
"""Bounds are float64 too: this covers the handful of roundings in forming one."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """Values (float64, or int64 for integers, bool for predicates) and bounds, of one shape."""

    value: Array
    bound: Floats

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.value.shape)) or "one"
        largest = "exact" if self.exact else f"bounds up to {self.bound.max():.3g}"
        return f"<{size} {self.value.dtype}, {largest}>"

    @property
    def exact(self) -> bool:
        """Whether every execution gives these very values."""
        return not self.bound.any()

    @property
    def magnitude(self) -> Floats:
        """How large a result may be."""
        return np.abs(self.value.astype(np.float64)) + self.bound

    @property
    def unknown(self) -> Array:
        """Where a result may be anything, NaN too."""
        return np.isinf(self.bound)

    @property
    def nan(self) -> Array:
        """Where every execution gives NaN."""
        return np.isnan(self.value) & (self.bound == 0)

    @property
    def infinite(self) -> Array:
        """Where every execution gives an infinity, of the sign of the value."""
        return np.isinf(self.value) & (self.bound == 0)

    @property
    def signed(self) -> Array:
        """Where every execution gives the same sign, and 0 everywhere or nowhere."""
        return (self.bound == 0) | (np.abs(self.value) > self.bound)


def exactly(value: object) -> Bounded:
    """Values that every execution has."""
    array = np.asarray(value)
    return Bounded(array, np.zeros(array.shape))


def bounded(value: Array, bound: Array) -> Bounded:
    """A value whose bound was just computed: rounded up; a bound that is no number is infinite.

    An exact value keeps bound 0; a value that is NaN needs no bound where it is exact.
    """
    value, bound = np.broadcast_arrays(value, np.asarray(bound, np.float64))
    bound = np.where(np.isnan(bound), np.inf, bound * _INFLATE)
    return Bounded(value, bound)


_ANY_ORDER = ContextVar("any order", default=False)


@contextmanager
def any_order() -> Generator[None]:
    """Within it, exact results count as rounded: in another order of operations they might be.

    Those of at most half of the format's bits stay exact, as zeros, counts, and sums of small
    integers are.
    """
    token = _ANY_ORDER.set(True)
    try:
        yield
    finally:
        _ANY_ORDER.reset(token)


def rounded(x: Bounded, form: FloatFormat, correct: bool = True) -> Bounded:
    """`x` after one rounding to nearest of the format.

    Exact values are rounded here, so that they stay exact, unless the float64 value is not
    accurate enough for that (`correct` false); all others gain half a spacing.
    """
    value, bound = x.value.astype(np.float64), x.bound
    exact = (bound == 0) & (correct | ~np.isfinite(value))
    nearest = round_to(value, form)
    if _ANY_ORDER.get():
        exact &= (_coarse(value, form.precision // 2) == value) | ~np.isfinite(value)
    if exact.all():
        return Bounded(nearest, np.zeros(nearest.shape))
    magnitude = np.abs(value) + bound
    more = bound + half_spacing(np.where(np.isfinite(magnitude), magnitude, 0.0), form)
    if form.saturates:
        value = np.clip(value, -form.largest, form.largest)
    elif form.name != "f64":
        limit = overflow(form)
        certain = np.abs(value) - bound >= limit
        value = np.where(certain, np.copysign(np.inf, value), value)
        more = np.where(certain, 0.0, np.where(magnitude >= limit, np.inf, more))
    else:
        more = np.where(magnitude >= form.largest, np.inf, more)
    result = bounded(value, more)
    return Bounded(np.where(exact, nearest, result.value), np.where(exact, 0.0, result.bound))


def _coarse(value: Array, bits: int) -> Array:
    """Numbers rounded to so many bits."""
    mantissa, exponent = np.frexp(value)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


def evaluated(value: Array, bound: Array) -> Bounded:
    """A float64 result of the reference with its own rounding added where it is not exact.

    What is not finite has been rounded nowhere.
    """
    inexact = (np.asarray(bound) != 0) & np.isfinite(value)
    return bounded(value, np.asarray(bound) + np.where(inexact, 2 * UNIT * np.abs(value), 0.0))


def special(x: Bounded, operands: tuple[Bounded, ...], decided: Array | bool = True) -> Bounded:
    """`x`, which was formed as if its operands were finite, by IEEE 754 where they are not.

    A NaN makes the result NaN whatever the others are. Of an unknown operand nothing is known. An
    infinite one determines the result where it is `decided`: what the others may be changes
    nothing, so the value is certain. An overflow of the reference's own float64 says nothing.
    """
    infinite: Array = np.zeros(x.value.shape, bool)
    nan, unknown = infinite, infinite
    for operand in operands:
        infinite, nan = infinite | operand.infinite, nan | operand.nan
        unknown = unknown | operand.unknown
    overflowed = ~np.isfinite(x.value) & ~infinite & (x.bound > 0)
    bound = np.where(infinite, np.where(decided, 0.0, np.inf), x.bound)
    bound = np.where(nan, 0.0, np.where(unknown | overflowed, np.inf, bound))
    return Bounded(np.where(nan, np.nan, x.value), bound)


def distance_between(x: Array, y: Array) -> Floats:
    """How far two values are apart: equal infinities not at all, nor two NaN."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    distance = np.where(same, 0.0, np.abs(x - y))
    return np.where(np.isnan(distance), np.inf, distance)


def interval_bound(low: Floats, high: Floats, value: Floats) -> Floats:
    """The bound of a value of which only the ends of its interval are known."""
    return np.maximum(np.abs(high - value), np.abs(low - value))
