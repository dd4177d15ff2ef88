"""What arith and math operations do to bounded values of floating-point type.

Bounds of approximations are the maximum errors that the PTX ISA documents (PTX ISA 9.2, sections
9.7.3.16 to 9.7.3.22); add, sub, mul, div, fma and sqrt round once to nearest. Halves are computed
in f32 where they have no instruction, and rounded again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fragir.reference.bounded import UNIT, Bounded, bounded, evaluated, rounded, spread
from fragir.reference.formats import FLOATS, Floats, Format

F32 = FLOATS["f32"]
_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453

Unary = Callable[[Bounded, Format], Bounded]
Binary = Callable[[Bounded, Bounded, Format], Bounded]


# Rounded once ------------------------------------------------------------------------------------


def add(x: Bounded, y: Bounded, form: Format) -> Bounded:
    return _sum(x, y.value, y.bound, form)


def sub(x: Bounded, y: Bounded, form: Format) -> Bounded:
    return _sum(x, -y.value, y.bound, form)


def _sum(x: Bounded, y: Floats, y_bound: Floats, form: Format) -> Bounded:
    # float64 has more than twice the bits of f32 and two: rounding twice is rounding once
    # (Figueroa, "When is double rounding innocuous?", SIGNUM 30, 1995)
    return rounded(evaluated(x.value + y, x.bound + y_bound), form)


def mul(x: Bounded, y: Bounded, form: Format) -> Bounded:
    return rounded(_product(x, y), form)


def _product(x: Bounded, y: Bounded) -> Bounded:
    bound = _times(np.abs(x.value), y.bound) + _times(x.bound, y.magnitude)
    return evaluated(x.value * y.value, bound)


def _times(x: Floats, y: Floats) -> Floats:
    """A product of magnitudes in which 0 times infinity is 0: nothing is uncertain there."""
    return np.where((x == 0) | (y == 0), 0.0, x * y)


def fma(x: Bounded, y: Bounded, z: Bounded, form: Format) -> Bounded:
    product = _product(x, y)
    total, bound = product.value + z.value, product.bound + z.bound
    if form.name == "f64":
        own = 4 * UNIT * (np.abs(product.value) + np.abs(total))
        exact = np.zeros(np.shape(total), bool) | (product.value == 0) & (bound == 0)
        return rounded(bounded(total, bound + np.where(exact, 0.0, own)), form)
    odd = _round_to_odd(product.value, z.value, total)
    return rounded(evaluated(odd, bound), form)


def _round_to_odd(x: Floats, y: Floats, total: Floats) -> Floats:
    """x + y rounded to odd, after which one more rounding is as good as a single one."""
    part = total - x
    error = (x - (total - part)) + (y - part)
    even = np.ascontiguousarray(total).view(np.int64).reshape(np.shape(total)) & 1 == 0
    inexact = np.isfinite(total) & (error != 0) & even
    return np.where(inexact, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


def div(x: Bounded, y: Bounded, form: Format) -> Bounded:
    below = np.abs(y.value) - y.bound
    bound = (_times(x.bound, np.abs(y.value)) + _times(np.abs(x.value), y.bound)) / (
        np.abs(y.value) * below
    )
    uncertain = (x.bound > 0) | (y.bound > 0)
    bound = np.where(uncertain, np.where(below > 0, bound, np.inf), 0.0)
    return rounded(evaluated(x.value / y.value, bound), form)


def sqrt(x: Bounded, form: Format) -> Bounded:
    return rounded(_monotone(np.sqrt, x, 0.0), form)


# Exact -------------------------------------------------------------------------------------------


def neg(x: Bounded, form: Format) -> Bounded:
    return Bounded(-x.value, x.bound)


def absolute(x: Bounded, form: Format) -> Bounded:
    return Bounded(np.abs(x.value), x.bound)


def _extremum(pick: Callable[..., Floats]) -> Binary:
    def apply(x: Bounded, y: Bounded, form: Format) -> Bounded:
        value = pick(x.value, y.value)
        return bounded(value, np.maximum(x.bound, y.bound) + np.zeros(np.shape(value)))

    return apply


def _integral(function: Callable[[Floats], Floats]) -> Unary:
    def apply(x: Bounded, form: Format) -> Bounded:
        value = function(x.value)
        bound = spread(function(x.value - x.bound), function(x.value + x.bound), value)
        return bounded(value, np.where(x.bound == 0, 0.0, bound))

    return apply


# Approximated ------------------------------------------------------------------------------------


def _monotone(
    function: Callable[[Floats], Floats], x: Bounded, relative: float, lowest: float = 0.0
) -> Bounded:
    """A monotone function that float64 computes to a few units, of an uncertain argument.

    Arguments below `lowest` make the bound infinite where the value itself is defined.
    """
    value = function(x.value)
    low = x.value - x.bound
    bound = spread(function(np.maximum(low, lowest)), function(x.value + x.bound), value)
    bound = np.where(low < lowest, np.inf, bound)
    bound = np.where(x.bound == 0, 0.0, bound)
    own = np.where((x.bound > 0) | (relative > 0), 8 * UNIT * np.abs(value), 0.0)
    return bounded(value, _finite(bound + own + relative * (np.abs(value) + bound), value, x))


def _finite(bound: Floats, value: Floats, x: Bounded) -> Floats:
    """No bound is needed for a value that is infinite or no number for certain."""
    return np.where(~np.isfinite(value) & (x.bound == 0), 0.0, bound)


def _through_f32(function: Unary) -> Unary:
    """The function in f32, and for other types one more rounding."""

    def apply(x: Bounded, form: Format) -> Bounded:
        result = function(x, F32)
        return result if form.name == "f32" else rounded(result, form, correct=False)

    return apply


def _exp2_of(x: Floats, bound: Floats) -> Bounded:
    """ex2.approx.f32: at most 2 ulp from the correctly rounded result (section 9.7.3.21)."""
    value = np.exp2(x)
    changed = np.where(bound == 0, 0.0, value * np.expm1(np.log(2.0) * bound))
    # 2 ulp and the half ulp of the correctly rounded result, which may be a binade higher
    error = 2.5 * 2.0**-23 * (1 + 2.0**-20) * (value + changed) + 2.5 * F32.smallest
    result = value, changed + error + 8 * UNIT * value
    special = ~np.isfinite(x) & (bound == 0)
    total = np.where(special | ((x == 0) & (bound == 0)), 0.0, result[1])
    return _limited(bounded(value, total))


def _limited(x: Bounded) -> Bounded:
    """f32 results that may overflow."""
    may = np.isfinite(x.value) & (x.magnitude >= F32.largest)
    return Bounded(x.value, np.where(may, np.inf, x.bound))


def _exp2(x: Bounded, form: Format) -> Bounded:
    return _exp2_of(x.value, x.bound)


def _exp(x: Bounded, form: Format) -> Bounded:
    """x log2(e) rounded to f32, with a rounded constant, then ex2.approx."""
    scaled = x.value * _LOG2_E
    bound = x.bound * _LOG2_E + np.where(
        x.value == 0, 0.0, (2.0**-23 + 2.0**-46 + 4 * UNIT) * (np.abs(scaled) + x.bound * _LOG2_E)
    )
    bound = np.where(np.isfinite(x.value), bound + np.where(x.value == 0, 0.0, F32.smallest), 0.0)
    return _exp2_of(scaled, bound)


def _log2(x: Bounded, form: Format) -> Bounded:
    """lg2.approx.f32: absolute error 2^-22 in (0.5, 2), else relative 2^-22 (section 9.7.3.20)."""
    plain = _monotone(np.log2, x, 0.0)
    low, high = x.value - x.bound, x.value + x.bound
    near = (high > 0.5) & (low < 2)
    error = 2.0**-22 * np.where(near, np.maximum(1.0, plain.magnitude), plain.magnitude)
    error = _finite(error + 8 * UNIT * np.abs(plain.value), plain.value, x)
    return bounded(plain.value, plain.bound + error)


def _log(x: Bounded, form: Format) -> Bounded:
    """lg2.approx times ln 2, a rounded constant, rounded."""
    binary = _log2(x, form)
    scaled = evaluated(binary.value * _LN_2, binary.bound * _LN_2)
    relative = np.where(np.isfinite(scaled.value), scaled.magnitude * 2.0**-24 * 1.01, 0.0)
    return rounded(bounded(scaled.value, scaled.bound + relative), F32, correct=False)


def _tanh(x: Bounded, form: Format) -> Bounded:
    """tanh.approx.f32: relative error 2^-11 (section 9.7.3.22); no slope exceeds 1."""
    value = np.tanh(x.value)
    bound = np.minimum(x.bound, 2.0)
    own = np.where((value == 0) | np.isinf(x.value), 0.0, 8 * UNIT * np.abs(value))
    error = np.where(np.isinf(x.value) & (x.bound == 0), 0.0, 2.0**-11 * (np.abs(value) + bound))
    return bounded(value, _finite(bound + error + own, value, x))


def _circular(function: Callable[[Floats], Floats]) -> Unary:
    """sin.approx and cos.approx: absolute error 2^-20.5 up to 2 pi, 2^-14.7 up to 100 pi, and no
    word beyond (sections 9.7.3.18 and 19)."""

    def apply(x: Bounded, form: Format) -> Bounded:
        value = function(x.value)
        far = np.where(x.magnitude <= 100 * np.pi, 2.0**-14.7, np.inf)
        error = np.where(x.magnitude <= 2 * np.pi, 2.0**-20.5, far)
        bound = np.minimum(x.bound, 2.0) + error + 8 * UNIT
        return bounded(value, _finite(np.where(x.value == 0, x.bound + 0.0, bound), value, x))

    return apply


def _rsqrt(x: Bounded, form: Format) -> Bounded:
    """rsqrt.approx.f32: relative error 2^-22.9 (section 9.7.3.16)."""
    value = 1 / np.sqrt(x.value)
    low = x.value - x.bound
    bound = np.where(
        x.bound == 0, 0.0, spread(1 / np.sqrt(low), 1 / np.sqrt(x.value + x.bound), value)
    )
    bound = np.where((low <= 0) & (x.bound > 0), np.inf, bound)
    error = (2.0**-22.9 + 8 * UNIT) * (np.abs(value) + bound)
    return bounded(value, _finite(bound + error, value, x))


UNARY: dict[str, Unary] = {
    "arith.negf": neg,
    "math.absf": absolute,
    "math.sqrt": sqrt,
    "math.floor": _integral(np.floor),
    "math.ceil": _integral(np.ceil),
    "math.trunc": _integral(np.trunc),
    "math.roundeven": _integral(np.rint),
    "math.rsqrt": _through_f32(_rsqrt),
    "math.exp2": _through_f32(_exp2),
    "math.exp": _through_f32(_exp),
    "math.log2": _through_f32(_log2),
    "math.log": _through_f32(_log),
    "math.tanh": _through_f32(_tanh),
    "math.sin": _through_f32(_circular(np.sin)),
    "math.cos": _through_f32(_circular(np.cos)),
}
BINARY: dict[str, Binary] = {
    "arith.addf": add,
    "arith.subf": sub,
    "arith.mulf": mul,
    "arith.divf": div,
    "arith.maximumf": _extremum(np.maximum),
    "arith.minimumf": _extremum(np.minimum),
    "arith.maxnumf": _extremum(np.fmax),
    "arith.minnumf": _extremum(np.fmin),
}

# Comparisons -------------------------------------------------------------------------------------

# arith.cmpf's predicates in MLIR's order: what holds for <, =, > and for no order at all
_ORDERS = ("", "=", ">", ">=", "<", "<=", "<>", "<=>")


def compare(predicate: int, x: Bounded, y: Bounded) -> Bounded:
    """arith.cmpf: 1 where it holds; a bound of 1 says that it may go either way."""
    unordered = np.isnan(x.value) | np.isnan(y.value)
    if predicate == 7:
        wanted, nan_value = "<=>", False
    elif predicate == 14:
        wanted, nan_value = "", True
    elif predicate == 15:
        wanted, nan_value = "<=>", True
    elif predicate == 0:
        wanted, nan_value = "", False
    elif predicate < 7:
        wanted, nan_value = _ORDERS[predicate], False
    else:
        wanted, nan_value = _ORDERS[predicate - 7], True
    holds = np.zeros(np.broadcast_shapes(x.value.shape, y.value.shape), bool)
    if "<" in wanted:
        holds = holds | (x.value < y.value)
    if "=" in wanted:
        holds = holds | (x.value == y.value)
    if ">" in wanted:
        holds = holds | (x.value > y.value)
    holds = np.where(unordered, nan_value, holds)
    slack = x.bound + y.bound
    # an infinite minus itself is no number, but equal for certain where nothing is uncertain
    near = ~(np.abs(x.value - y.value) > slack) & (slack > 0)
    constant = wanted in ("", "<=>") and not unordered.any()
    return Bounded(holds, np.where(near & (not constant), 1.0, 0.0))


def select(condition: Bounded, x: Bounded, y: Bounded) -> Bounded:
    """arith.select; where the condition is uncertain the bound covers both."""
    value = np.where(condition.value, x.value, y.value)
    chosen = np.where(condition.value, x.bound, y.bound)
    other_value = np.where(condition.value, y.value, x.value)
    other = np.where(condition.value, y.bound, x.bound) + np.abs(
        other_value.astype(np.float64) - value.astype(np.float64)
    )
    return bounded(value, np.where(condition.bound > 0, np.maximum(chosen, other), chosen))
