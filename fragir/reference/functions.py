"""What functions of several instructions do to bounded values: erf, pow, tan and their like.

`_ERRORS` has how far the instructions' result in f32 may be from the true value: relative to it, in
units of 2^-24 (half an ulp of 1), and in units of 2^-149 for what is subnormal on the way. They are
the largest that `benchmarks/functions.py` finds when every approximate instruction errs by as much
as the PTX ISA allows, up or down, and a margin; docs/accuracy.md has both. What is rounded
correctly all the way (round, copysign, integers) has no error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fragir.reference.bounded import UNIT, Bounded, bounded, interval_bound, rounded
from fragir.reference.formats import FLOATS, Array, FloatFormat, Floats

Unary = Callable[[Bounded, FloatFormat], Bounded]
Binary = Callable[[Bounded, Bounded, FloatFormat], Bounded]
F32 = FLOATS["f32"]

_ERRORS: dict[str, tuple[float, float]] = {
    "math.erf": (2.5, 2),
    "math.expm1": (2.5, 2),
    "math.sinh": (7, 8),
    "math.cosh": (2.5, 0),
    "math.cbrt": (2, 0),
    "math.log1p": (2, 2),
    "math.asinh": (3.5, 2),
    "math.acosh": (5, 2),
    "math.atanh": (8, 4),
    "math.tan": (6, 2),
    "math.atan": (3.5, 2),
    "math.asin": (6.5, 2),
    "math.acos": (5, 0),
    "math.powf": (12, 8),
    "math.fpowi": (12, 8),
    "math.atan2": (3.5, 2),
}
FARTHEST = 1e5
"""Up to here tan is reduced with 72 bits of pi / 2; beyond nothing is said."""

_erf: Any = np.vectorize(math.erf, otypes=[np.float64])


def _of_f32(name: str, value: Floats, reach: Floats, exact: Array) -> Bounded:
    """A result in f32: `value` of which the true one is `reach` away at most, and the error."""
    relative, tiny = _ERRORS[name]
    magnitude = np.where(np.isfinite(value), np.abs(value), 0.0) + reach
    bound = reach + (relative * 2.0**-24 + 8 * UNIT) * magnitude + tiny * F32.smallest
    bound = np.where(exact | ~np.isfinite(value) & (reach == 0), 0.0, bound)
    most, least = np.abs(value) + bound, np.abs(value) - bound
    over = (least >= 2.0**128) & ~exact
    may = (most >= F32.largest) & np.isfinite(value)
    value = np.where(over, np.copysign(np.inf, value), value)
    return bounded(value, np.where(over, 0.0, np.where(may, np.inf, bound)))


def _through_f32(function: Callable[[Bounded], Bounded]) -> Unary:
    def apply(x: Bounded, form: FloatFormat) -> Bounded:
        result = function(x)
        return result if form.name == "f32" else rounded(result, form, correct=False)

    return apply


def _monotone(
    name: str,
    function: Callable[[Floats], Floats],
    low: float = -np.inf,
    high: float = np.inf,
    fixed: tuple[float, ...] = (0.0,),
) -> Unary:
    """A rising or falling function on [low, high]; NaN outside. `fixed`: results that are exact."""

    def apply(x: Bounded) -> Bounded:
        left, right = x.value - x.bound, x.value + x.bound
        value = function(x.value)
        reach = interval_bound(
            function(np.maximum(left, low)), function(np.minimum(right, high)), value
        )
        certain = x.bound == 0
        outside = (right < low) | (left > high)
        reach = np.where(certain | (outside & ~x.unknown), 0.0, reach)
        unsure = ~certain & ~outside & ((left < low) | (right > high)) | x.unknown
        reach = np.where(unsure | np.isnan(reach), np.inf, reach)
        return _of_f32(name, value, reach, certain & np.isin(value, fixed))

    return _through_f32(apply)


def _cosh(x: Bounded) -> Bounded:
    nearest = np.maximum(np.abs(x.value) - x.bound, 0.0)
    value = np.cosh(x.value)
    reach = interval_bound(np.cosh(nearest), np.cosh(x.magnitude), value)
    reach = np.where(x.bound == 0, 0.0, np.where(x.unknown | np.isnan(reach), np.inf, reach))
    return _of_f32("math.cosh", value, reach, (x.bound == 0) & (value == 1))


def _tan(x: Bounded) -> Bounded:
    value = np.tan(x.value)
    left, right = x.value - x.bound, x.value + x.bound
    reach = interval_bound(np.tan(left), np.tan(right), value)
    poles = np.floor(left / np.pi + 0.5) != np.floor(right / np.pi + 0.5)
    far = (x.magnitude > FARTHEST) & np.isfinite(x.value)
    reach = np.where(x.bound == 0, 0.0, np.where(poles | np.isnan(reach), np.inf, reach))
    return _of_f32("math.tan", value, np.where(far | x.unknown, np.inf, reach), value == 0)


def _round(x: Floats) -> Floats:
    """The nearest whole number, ties away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def round_away(x: Bounded, form: FloatFormat) -> Bounded:
    value = np.where(np.isfinite(x.value), _round(x.value), x.value)
    reach = interval_bound(_round(x.value - x.bound), _round(x.value + x.bound), value)
    reach = np.where(x.unknown | np.isnan(reach), np.inf, reach)
    return bounded(value, np.where(x.bound == 0, 0.0, reach))


def copysign(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    value = np.copysign(x.value, y.value)
    sure = y.signed & ~np.isnan(y.value) | (x.value == 0) & (x.bound == 0) & ~y.unknown
    either = 2 * np.abs(x.value) + x.bound
    return Bounded(value, np.where(sure | x.nan, x.bound, either))


def _powers(name: str) -> Binary:
    def apply(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
        value = np.power(x.value, y.value)
        if name == "math.fpowi":  # the lowest bit of an exponent that float64 does not hold
            odd = (y.value.astype(np.int64) & 1 == 1) & np.signbit(x.value)
            value = np.where(y.bound == 0, np.copysign(value, np.where(odd, -1.0, 1.0)), value)
        reach = np.zeros(value.shape)
        for base in (x.value - x.bound, x.value + x.bound):
            for exponent in (y.value - y.bound, y.value + y.bound):
                corner = np.abs(np.power(base, exponent) - value)
                reach = np.maximum(reach, np.where(np.isnan(corner), np.inf, corner))
        # between positive corners it is monotone in both; of others only numbers are known
        certain = (x.bound == 0) & (y.bound == 0)
        one = (x.value == 1) & (x.bound == 0) | (y.value == 0) & (y.bound == 0)
        positive = (x.value - x.bound > 0) & ~x.unknown & ~y.unknown
        reach = np.where(certain | one, 0.0, np.where(positive, reach, np.inf))
        # exponents beyond 2^24 are rounded to f32: 2^-24 of |y log x|, which is below 104
        more = np.where(np.abs(y.value) > 2.0**24, 104 * 2.0**-24 * np.abs(value), 0.0)
        more = np.where(np.isfinite(more) & (name == "math.fpowi"), more, 0.0)
        result = _of_f32(name, value, reach + more, one | certain & (value == 0) & (x.value == 0))
        return result if form.name == "f32" else rounded(result, form, correct=False)

    return apply


def atan2(y: Bounded, x: Bounded, form: FloatFormat) -> Bounded:
    value = np.arctan2(y.value, x.value)
    moved = np.hypot(y.bound, x.bound)
    distance = np.hypot(y.value, x.value)
    turn = np.where(moved < distance, np.pi / 2 * moved / distance, 2 * np.pi)
    cut = (np.abs(y.value) <= y.bound) & (y.bound > 0) & (x.value - x.bound <= 0)
    turn = np.where(cut, 2 * np.pi, turn)
    certain = (x.bound == 0) & (y.bound == 0)
    reach = np.where(certain | x.nan | y.nan, 0.0, turn)
    unknown = (x.unknown | y.unknown) & ~x.nan & ~y.nan
    exact = certain & (value == 0) & (y.value == 0)
    result = _of_f32("math.atan2", value, np.where(unknown, np.inf, reach), exact)
    return result if form.name == "f32" else rounded(result, form, correct=False)


UNARY: dict[str, Unary] = {
    "math.erf": _monotone("math.erf", _erf, fixed=(0.0, 1.0, -1.0)),
    "math.expm1": _monotone("math.expm1", np.expm1),
    "math.sinh": _monotone("math.sinh", np.sinh),
    "math.cosh": _through_f32(_cosh),
    "math.cbrt": _monotone("math.cbrt", np.cbrt),
    "math.log1p": _monotone("math.log1p", np.log1p, low=-1.0),
    "math.asinh": _monotone("math.asinh", np.arcsinh),
    "math.acosh": _monotone("math.acosh", np.arccosh, low=1.0),
    "math.atanh": _monotone("math.atanh", np.arctanh, low=-1.0, high=1.0),
    "math.tan": _through_f32(_tan),
    "math.atan": _monotone("math.atan", np.arctan),
    "math.asin": _monotone("math.asin", np.arcsin, low=-1.0, high=1.0),
    "math.acos": _monotone("math.acos", np.arccos, low=-1.0, high=1.0),
    "math.round": round_away,
}
BINARY: dict[str, Binary] = {
    "math.powf": _powers("math.powf"),
    "math.fpowi": _powers("math.fpowi"),
    "math.atan2": atan2,
    "math.copysign": copysign,
}
