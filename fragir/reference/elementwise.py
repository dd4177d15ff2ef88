"""What arith and math operations do to bounded values of floating-point type.

Add, sub, mul, div, fma and sqrt round once to nearest; approximations are in `approximated`, what
takes several instructions is in `functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fragir.reference import algebra, functions
from fragir.reference.algebra import over_elements
from fragir.reference.bounded import (
    UNIT,
    Bounded,
    bounded,
    distance_between,
    evaluated,
    exactly,
    interval_bound,
    rounded,
    special,
)
from fragir.reference.formats import FLOATS, Array, FloatFormat, Floats

# -- approximated ----------------------------------------------------------------------------------
# What approximations do to bounded values: math.exp and its like.
#
# Bounds are the maximum errors that the PTX ISA documents (PTX ISA 9.2, sections 9.7.3.16 to
# 9.7.3.22). Halves are computed in f32 where they have no instruction, and rounded again.

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
    bound = interval_bound(function(np.maximum(low, 0.0)), function(high), value)
    bound = bound + 8 * UNIT * (np.abs(value) + bound)
    outside = (low <= 0) if pole else (low < 0)
    bound = np.where(outside | x.unknown, np.inf, np.where(x.bound == 0, 0.0, bound))
    return _settle_special(bounded(value, bound), x, negative=high < 0)


def _settle_special(result: Bounded, x: Bounded, negative: Array | bool = False) -> Bounded:
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
    return _settle_special(bounded(plain.value, plain.bound + error), x, negative=high < 0)


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
    return _settle_special(bounded(value, bound + error), x)


def _circular(function: Callable[[Floats], Floats]) -> Unary:
    """sin.approx and cos.approx: absolute error 2^-20.5 up to 2 pi, 2^-14.7 up to 100 pi, and no
    word beyond (sections 9.7.3.18 and 19)."""

    def apply(x: Bounded, form: FloatFormat) -> Bounded:
        value = function(x.value)
        far = np.where(x.magnitude <= 100 * np.pi, 2.0**-14.7, np.inf)
        error = np.where(x.magnitude <= 2 * np.pi, 2.0**-20.5, far)
        bound = np.minimum(x.bound, 2.0) + error + 8 * UNIT
        bound = np.where((x.value == 0) & (x.bound == 0), 0.0, bound)  # 0 and 1
        return _settle_special(bounded(value, bound), x)

    return apply


def _rsqrt(x: Bounded, form: FloatFormat) -> Bounded:
    """rsqrt.approx.f32: relative error 2^-22.9 (section 9.7.3.16). In f64 a root and a reciprocal,
    each rounded once."""
    value = 1 / np.sqrt(x.value)
    low, high = x.value - x.bound, x.value + x.bound
    bound = interval_bound(1 / np.sqrt(low), 1 / np.sqrt(high), value)
    bound = np.where(x.bound == 0, 0.0, np.where((low <= 0) | x.unknown, np.inf, bound))
    own = 0.0 if form.name == "f64" else 2.0**-22.9
    error = (own + 8 * UNIT) * (np.abs(value) + bound)
    return _settle_special(bounded(value, bound + error), x, negative=high < 0)


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


Binary = Callable[[Bounded, Bounded, FloatFormat], Bounded]


def _as(name: str) -> Callable[..., Bounded]:
    """An operation where elements are followed."""

    def of(*operands: Any) -> Bounded:
        return algebra.computed(algebra.FUNCTIONS[name], operands[:-1], operands[-1].name)

    return of


# Rounded once ------------------------------------------------------------------------------------


@over_elements(_as("arith.addf"))
def add(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    # float64 has more than twice the bits of f32 and two: rounding twice is rounding once
    # (Figueroa, "When is double rounding innocuous?", SIGNUM 30, 1995)
    total = evaluated(x.value + y.value, x.bound + y.bound)
    return rounded(special(total, (x, y)), form)


@over_elements(_as("arith.subf"))
def sub(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    return add(x, Bounded(-y.value, y.bound), form)


@over_elements(_as("arith.mulf"))
def mul(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    return _either_zero(rounded(_product(x, y), form), ~(x.signed & y.signed), form)


@over_elements(_as("arith.mulf"))
def contracted_product(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    """A product that is rounded, or formed together with the sum that it goes into."""
    whole, single = _product(x, y), mul(x, y, form)
    away = np.where(
        single.nan & np.isnan(whole.value), 0.0, distance_between(single.value, whole.value)
    )
    own = 0.0 if form.name != "f64" else UNIT * np.abs(whole.value)
    return bounded(single.value, np.where(single.unknown, np.inf, single.bound + away + own))


def _either_zero(x: Bounded, turned: Array, form: FloatFormat) -> Bounded:
    """The zeros whose sign may be either are not exact: what is divided by them shows it."""
    either = turned & (x.value == 0) & (x.bound == 0)
    return Bounded(x.value, np.where(either, form.smallest, x.bound)) if either.any() else x


def _product(x: Bounded, y: Bounded) -> Bounded:
    bound = np.abs(x.value) * y.bound + x.bound * y.magnitude
    # an infinity times what may be 0, or of either sign, may be anything
    return special(evaluated(x.value * y.value, bound), (x, y), x.signed & y.signed)


@over_elements(_as("math.fma"))
def fma(x: Bounded, y: Bounded, z: Bounded, form: FloatFormat) -> Bounded:
    product = _product(x, y)
    total, bound = product.value + z.value, product.bound + z.bound
    if form.name == "f64":
        own = 4 * UNIT * (np.abs(product.value) + np.abs(total))
        exact = np.zeros(np.shape(total), bool) | (product.value == 0) & (bound == 0)
        # the product is not rounded to float64: its overflow here says nothing
        overflowed = np.isinf(product.value) & ~(x.infinite | y.infinite)
        own = np.where(overflowed, np.inf, np.where(np.isfinite(total), own, 0.0))
        result = bounded(total, bound + np.where(exact, 0.0, own))
        product = Bounded(product.value, np.where(overflowed, np.inf, product.bound))
    else:
        result = evaluated(round_to_odd(product.value, z.value, total), bound)
    # -0 plus a product that is 0 has the product's sign
    turned = ~(x.signed & y.signed) & np.signbit(z.value)
    return _either_zero(rounded(special(result, (product, z)), form), turned, form)


def round_to_odd(x: Floats, y: Floats, total: Floats) -> Floats:
    """x + y rounded to odd, after which one more rounding is as good as a single one."""
    part = total - x
    error = (x - (total - part)) + (y - part)
    even = np.ascontiguousarray(total).view(np.int64).reshape(np.shape(total)) & 1 == 0
    inexact = np.isfinite(total) & (error != 0) & even
    return np.where(inexact, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


@over_elements(_as("arith.divf"))
def div(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    below = np.abs(y.value) - y.bound
    bound = (x.bound * np.abs(y.value) + np.abs(x.value) * y.bound) / (np.abs(y.value) * below)
    uncertain = (x.bound > 0) | (y.bound > 0)
    bound = np.where(uncertain, np.where(below > 0, bound, np.inf), 0.0)
    # a finite number divided by an infinity is 0; an infinity needs the sign of its divisor
    decided = y.infinite | y.signed
    result = rounded(special(evaluated(x.value / y.value, bound), (x, y), decided), form)
    return _either_zero(result, ~(x.signed & y.signed), form)


@over_elements(_as("math.sqrt"))
def sqrt(x: Bounded, form: FloatFormat) -> Bounded:
    return rounded(monotone(np.sqrt, x), form)


# Exact -------------------------------------------------------------------------------------------


@over_elements(_as("arith.negf"))
def neg(x: Bounded, form: FloatFormat) -> Bounded:
    return Bounded(-x.value, x.bound)


@over_elements(_as("math.absf"))
def absolute(x: Bounded, form: FloatFormat) -> Bounded:
    return Bounded(np.abs(x.value), x.bound)


def _extremum(pick: Callable[..., Floats], propagates: bool) -> Binary:
    """`propagates`: whether a NaN makes the result NaN; else the other operand is picked."""

    def apply(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
        value, bound = pick(x.value, y.value), np.maximum(x.bound, y.bound)
        if propagates:
            bound = np.where(x.nan | y.nan, 0.0, bound)
        else:
            bound = np.where(x.nan, y.bound, np.where(y.nan, x.bound, bound))
        return Bounded(value, np.where(np.isinf(value) & np.isfinite(bound), 0.0, bound))

    return apply


def _integral(function: Callable[[Floats], Floats]) -> Unary:
    def apply(x: Bounded, form: FloatFormat) -> Bounded:
        value = function(x.value)
        low, high = function(x.value - x.bound), function(x.value + x.bound)
        bound = np.where(x.unknown, np.inf, interval_bound(low, high, value))
        result = bounded(value, np.where(x.bound == 0, 0.0, bound))
        return _either_zero(result, np.signbit(low) != np.signbit(high), form)

    return apply


def _followed_unary(name: str, plain: Unary) -> Unary:
    """Of elements what `algebra` says; of what has no meaning for them nothing is known."""

    def apply(x: Bounded, form: FloatFormat) -> Bounded:
        if not algebra.is_followed():
            return plain(x, form)
        found = algebra.applied(name, [x], form.name)
        return (
            algebra.lost(Bounded(plain(exactly(x.value), form).value, x.bound))
            if found is None
            else found
        )

    return apply


def _followed_binary(name: str, plain: Binary) -> Binary:
    def apply(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
        if not algebra.is_followed():
            return plain(x, y, form)
        found = algebra.applied(name, [x, y], form.name)
        if found is not None:
            return found
        value = plain(exactly(x.value), exactly(y.value), form).value
        return algebra.lost(Bounded(value, np.maximum(x.bound, y.bound)))

    return apply


_PLAIN_UNARY: dict[str, Unary] = {
    "arith.negf": neg,
    "math.absf": absolute,
    "math.sqrt": sqrt,
    "math.floor": _integral(np.floor),
    "math.ceil": _integral(np.ceil),
    "math.trunc": _integral(np.trunc),
    "math.roundeven": _integral(np.rint),
    **APPROXIMATED,
    **functions.UNARY,
}
UNARY = {name: _followed_unary(name, plain) for name, plain in _PLAIN_UNARY.items()}
_PLAIN_BINARY: dict[str, Binary] = {
    "arith.addf": add,
    "arith.subf": sub,
    "arith.mulf": mul,
    "arith.divf": div,
    "arith.maximumf": _extremum(np.maximum, propagates=True),
    "arith.minimumf": _extremum(np.minimum, propagates=True),
    "arith.maxnumf": _extremum(np.fmax, propagates=False),
    "arith.minnumf": _extremum(np.fmin, propagates=False),
    **functions.BINARY,
}
BINARY = {name: _followed_binary(name, plain) for name, plain in _PLAIN_BINARY.items()}

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
    if algebra.is_followed():
        return algebra.compared(holds)
    slack = x.bound + y.bound
    decided = x.nan | y.nan
    if predicate in (0, 15):
        uncertain: Array = np.zeros(holds.shape, bool)
    elif predicate in (7, 14):
        uncertain = np.isinf(slack) & ~decided
    else:
        # an infinite minus itself is no number, but equal for certain where nothing is uncertain
        uncertain = ~(np.abs(x.value - y.value) > slack) & (slack > 0) & ~decided
        uncertain = uncertain | (np.isinf(slack) & ~decided)
    return Bounded(holds, np.where(uncertain, 1.0, 0.0))


@over_elements(algebra.selected)
def select(condition: Bounded, x: Bounded, y: Bounded) -> Bounded:
    """arith.select; where the condition is uncertain the bound covers both."""
    value = np.where(condition.value, x.value, y.value)
    chosen = np.where(condition.value, x.bound, y.bound)
    other_value = np.where(condition.value, y.value, x.value)
    other = np.where(condition.value, y.bound, x.bound) + distance_between(other_value, value)
    return bounded(value, np.where(condition.bound > 0, np.maximum(chosen, other), chosen))


# -- fast ------------------------------------------------------------------------------------------
# What `fastmath` flags do to bounded values: errors of approximate forms, flushing, contraction.
#
# afn lets functions and quotients be approximate and take subnormal numbers for zero, arcp makes a
# quotient a product with an approximate reciprocal, contract lets a product be formed with the sum
# that it goes into. The other flags change nothing. PTX ISA 9.2, sections 9.7.3.8, 13, 15 and 21.


_NORMAL = 2.0**-126


def apply(
    name: str, flags: frozenset[str], operands: Sequence[Bounded], result: str
) -> Bounded | None:
    """The result of an operation under its flags; None where they change nothing."""
    form = FLOATS[result]
    if algebra.is_followed():
        return None
    if name == "arith.mulf" and "contract" in flags:
        return contracted_product(operands[0], operands[1], form)
    if form.name not in ("f32", "f16", "bf16"):
        return None
    if name == "arith.divf" and flags & {"arcp", "afn"}:
        x, y = operands
        return _narrow_result(_quotient(x, y, "arcp" in flags), form)
    if "afn" not in flags:
        return None
    x = operands[0]
    if name in ("math.exp2", "math.exp"):
        found = exp2(x, True) if name == "math.exp2" else exp(x, True)
    elif name == "math.sqrt":
        found = _sqrt(x)
    elif name in ("math.log2", "math.log", "math.log10", "math.rsqrt"):
        found = APPROXIMATED[name](x, F32)
        found = _unless_subnormal(found, x)  # 0 has an infinite result
    elif name in ("math.sin", "math.cos"):  # what is lost is far less than their absolute error
        found = APPROXIMATED[name](x, F32)
    else:
        return None
    return _narrow_result(found, form)


def _narrow_result(x: Bounded, form: FloatFormat) -> Bounded:
    return x if form.name == "f32" else rounded(x, form, correct=False)


def _unless_subnormal(found: Bounded, x: Bounded) -> Bounded:
    """Nothing is known where an operand may be flushed to zero."""
    near = (np.abs(x.value) - x.bound < _NORMAL) & ((x.value != 0) | (x.bound > 0)) & ~x.nan
    return Bounded(found.value, np.where(near, np.inf, found.bound))


def _sqrt(x: Bounded) -> Bounded:
    """sqrt.approx.ftz: relative error 2^-23; a subnormal operand is 0, its root below 2^-63."""
    exact = monotone(np.sqrt, x)
    error = (2.0**-23 + 8 * UNIT) * exact.magnitude
    error = np.where(np.abs(x.value) - x.bound < _NORMAL, error + 2.0**-63, error)
    # a negative subnormal number is -0, too
    either = (x.value - x.bound < 0) & (x.value + x.bound > -_NORMAL) & ~x.unknown
    error = np.where(either, np.inf, error)
    sure = (~np.isfinite(exact.value) & ~either) | (x.value == 0) & (x.bound == 0)
    return bounded(exact.value, np.where(sure, exact.bound, exact.bound + error))


def _quotient(x: Bounded, y: Bounded, reciprocal: bool) -> Bounded:
    """div.full: 2 ulp. rcp.approx.ftz, 1 ulp, times x; beyond 2^126 the reciprocal is 0, and
    so is a subnormal divisor."""
    exact = div(x, y, F32)
    ulps = 2.0 if not reciprocal else 1.5
    size = np.where(np.isfinite(exact.value), np.abs(exact.value), 0.0) + exact.bound
    error = (ulps + 0.5) * 2.0**-23 * (1 + 2.0**-20) * size + 2.5 * F32.smallest
    if reciprocal:
        error = np.where(y.magnitude >= 2.0**126, error + size, error)
    zero = ((x.value == 0) & (x.bound == 0) | y.infinite) & (exact.value == 0)
    sure = ~np.isfinite(exact.value) | zero
    if reciprocal:
        # a finite quotient that overflowed in `exact` may be below by some ulp
        sure = sure & (y.infinite | (y.value == 0) | ~np.isfinite(x.value) | zero)
    else:
        sure = sure & (~np.isfinite(x.value) | ~np.isfinite(y.value) | (y.value == 0) | zero)
    bound = np.where(sure, exact.bound, exact.bound + error)
    if reciprocal:  # an infinity times 0
        lost = (y.magnitude >= 2.0**126) & ~y.infinite & ~y.nan & np.isinf(x.value)
        bound = np.where(lost, np.inf, bound)
    may = (np.abs(exact.value) + bound >= F32.largest) & ~sure
    found = Bounded(exact.value, np.where(may, np.inf, bound))
    return _unless_subnormal(found, y) if reciprocal else found
