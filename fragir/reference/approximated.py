"""What approximations do to bounded values: math.exp and its like.

Bounds are the maximum errors that the PTX ISA documents (PTX ISA 9.2, sections 9.7.3.16 to
9.7.3.22). Halves are computed in f32 where they have no instruction, and rounded again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fragir.reference.bounded import UNIT, Bounded, bounded, evaluated, rounded, spread
from fragir.reference.formats import FLOATS, Array, FloatFormat, Floats

F32 = FLOATS["f32"]
_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453
_LOG10_2 = 0.3010299956639812

Unary = Callable[[Bounded, FloatFormat], Bounded]


def monotone(function: Callable[[Floats], Floats], x: Bounded, *, pole: bool = False) -> Bounded:
    """A rising function of what is not negative, to a few units of float64, uncertain or not.

    What is negative for certain gives NaN. `pole`: the function is infinite at 0.
    """
    value = function(x.value)
    low, high = x.value - x.bound, x.value + x.bound
    bound = spread(function(np.maximum(low, 0.0)), function(high), value)
    bound = bound + 8 * UNIT * (np.abs(value) + bound)
    outside = (low <= 0) if pole else (low < 0)
    bound = np.where(outside | x.unknown, np.inf, np.where(x.bound == 0, 0.0, bound))
    return _settled(bounded(value, bound), x, negative=high < 0)


def _settled(result: Bounded, x: Bounded, negative: Array | bool = False) -> Bounded:
    """Certain where a certain argument or its result is infinite or NaN.

    So is NaN for an uncertain argument that is `negative`.
    """
    special = (x.bound == 0) & ~(np.isfinite(result.value) & np.isfinite(x.value))
    none = np.isnan(result.value) & negative & ~x.unknown
    return Bounded(result.value, np.where(special | none, 0.0, result.bound))


def _through_f32(function: Unary) -> Unary:
    """The function in f32, and for other types one more rounding."""

    def apply(x: Bounded, form: FloatFormat) -> Bounded:
        result = function(x, F32)
        return result if form.name == "f32" else rounded(result, form, correct=False)

    return apply


def _exp2_of(x: Floats, bound: Floats, flushed: bool = False) -> Bounded:
    """ex2.approx.f32: at most 2 ulp from the correctly rounded result (section 9.7.3.21).

    `flushed`: what is subnormal may be 0.
    """
    value = np.exp2(x)
    # the ends of the interval, each rounded once more by float64
    high, low = np.nextafter(x + bound, np.inf), np.nextafter(x - bound, -np.inf)
    above, below = (np.exp2(np.where(bound == 0, x, end)) for end in (high, low))
    above, below = above * (1 + 8 * UNIT), below * (1 - 8 * UNIT)
    # 2 ulp and the half ulp of the correctly rounded result, which may be a binade higher
    relative, least = 2.5 * 2.0**-23 * (1 + 2.0**-20), 2.5 * F32.smallest
    most = above * (1 + relative) + least
    fewest = np.maximum(below * (1 - relative) - least, 0.0)
    if flushed:
        fewest = np.where(fewest < 2.0**F32.lowest, 0.0, fewest)
    # exp2 of 0 is 1 and that of infinities is exact: only of these float64 is no approximation
    exact = (bound == 0) & ((x == 0) | ~np.isfinite(x))
    overflows = (fewest >= 2.0**128) & ~exact
    may = most >= F32.largest
    error = np.where(may, np.inf, np.maximum(most - value, value - fewest))
    error = np.where(exact | overflows, 0.0, np.where(np.isinf(bound), np.inf, error))
    return bounded(np.where(overflows, np.inf, value), error)


def exp2(x: Bounded, flushed: bool = False) -> Bounded:
    return _exp2_of(x.value, x.bound, flushed)


def exp(x: Bounded, flushed: bool = False) -> Bounded:
    """x log2(e) rounded to f32, with a rounded constant, then ex2.approx."""
    scaled = x.value * _LOG2_E
    exact = (x.bound == 0) & ((x.value == 0) | ~np.isfinite(x.value))
    bound = x.bound * _LOG2_E
    bound = bound + (2.0**-23 + 2.0**-46 + 4 * UNIT) * (np.abs(scaled) + bound) + F32.smallest
    return _exp2_of(scaled, np.where(exact, 0.0, bound), flushed)


def _log2(x: Bounded, form: FloatFormat) -> Bounded:
    """lg2.approx.f32: absolute error 2^-22 in (0.5, 2), else relative 2^-22 (section 9.7.3.20)."""
    plain = monotone(np.log2, x, pole=True)
    low, high = x.value - x.bound, x.value + x.bound
    near = (high > 0.5) & (low < 2)
    error = 2.0**-22 * np.where(near, np.maximum(1.0, plain.magnitude), plain.magnitude)
    error = error + 8 * UNIT * np.abs(plain.value)
    return _settled(bounded(plain.value, plain.bound + error), x, negative=high < 0)


def _log(factor: float) -> Unary:
    """lg2.approx times ln 2 or log10 2, a rounded constant, rounded."""

    def apply(x: Bounded, form: FloatFormat) -> Bounded:
        binary = _log2(x, form)
        scaled = evaluated(binary.value * factor, binary.bound * factor)
        relative = np.where(np.isfinite(scaled.value), scaled.magnitude * 2.0**-24 * 1.01, 0.0)
        return rounded(bounded(scaled.value, scaled.bound + relative), F32, correct=False)

    return apply


def _tanh(x: Bounded, form: FloatFormat) -> Bounded:
    """tanh.approx.f32: relative error 2^-11 (section 9.7.3.22); no slope exceeds 1."""
    value = np.tanh(x.value)
    bound = np.where(x.unknown, np.inf, np.minimum(x.bound, 2.0))
    error = np.where(value == 0, 0.0, (2.0**-11 + 8 * UNIT) * np.abs(value)) + 2.0**-11 * bound
    return _settled(bounded(value, bound + error), x)


def _circular(function: Callable[[Floats], Floats]) -> Unary:
    """sin.approx and cos.approx: absolute error 2^-20.5 up to 2 pi, 2^-14.7 up to 100 pi, and no
    word beyond (sections 9.7.3.18 and 19)."""

    def apply(x: Bounded, form: FloatFormat) -> Bounded:
        value = function(x.value)
        far = np.where(x.magnitude <= 100 * np.pi, 2.0**-14.7, np.inf)
        error = np.where(x.magnitude <= 2 * np.pi, 2.0**-20.5, far)
        bound = np.minimum(x.bound, 2.0) + error + 8 * UNIT
        bound = np.where((x.value == 0) & (x.bound == 0), 0.0, bound)  # 0 and 1
        return _settled(bounded(value, bound), x)

    return apply


def _rsqrt(x: Bounded, form: FloatFormat) -> Bounded:
    """rsqrt.approx.f32: relative error 2^-22.9 (section 9.7.3.16). In f64 a root and a reciprocal,
    each rounded once."""
    value = 1 / np.sqrt(x.value)
    low, high = x.value - x.bound, x.value + x.bound
    bound = spread(1 / np.sqrt(low), 1 / np.sqrt(high), value)
    bound = np.where(x.bound == 0, 0.0, np.where((low <= 0) | x.unknown, np.inf, bound))
    own = 0.0 if form.name == "f64" else 2.0**-22.9
    error = (own + 8 * UNIT) * (np.abs(value) + bound)
    return _settled(bounded(value, bound + error), x, negative=high < 0)


APPROXIMATED: dict[str, Unary] = {
    "math.rsqrt": lambda x, form: (_rsqrt if form.name == "f64" else _through_f32(_rsqrt))(x, form),
    "math.exp2": _through_f32(lambda x, form: exp2(x)),
    "math.exp": _through_f32(lambda x, form: exp(x)),
    "math.log2": _through_f32(_log2),
    "math.log": _through_f32(_log(_LN_2)),
    "math.log10": _through_f32(_log(_LOG10_2)),
    "math.tanh": _through_f32(_tanh),
    "math.sin": _through_f32(_circular(np.sin)),
    "math.cos": _through_f32(_circular(np.cos)),
}
