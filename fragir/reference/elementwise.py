"""What arith and math operations do to bounded values of floating-point type.

Add, sub, mul, div, fma and sqrt round once to nearest; approximations are in `approximated`, what
takes several instructions is in `functions`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fragir.reference import functions
from fragir.reference.approximated import APPROXIMATED, Unary, monotone
from fragir.reference.bounded import (
    UNIT,
    Bounded,
    apart,
    bounded,
    evaluated,
    rounded,
    special,
    spread,
)
from fragir.reference.formats import Array, FloatFormat, Floats

Binary = Callable[[Bounded, Bounded, FloatFormat], Bounded]


# Rounded once ------------------------------------------------------------------------------------


def add(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    # float64 has more than twice the bits of f32 and two: rounding twice is rounding once
    # (Figueroa, "When is double rounding innocuous?", SIGNUM 30, 1995)
    total = evaluated(x.value + y.value, x.bound + y.bound)
    return rounded(special(total, (x, y)), form)


def sub(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    return add(x, Bounded(-y.value, y.bound), form)


def mul(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    return _either_zero(rounded(_product(x, y), form), ~(x.signed & y.signed), form)


def mul_contracted(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    """A product that is rounded, or formed together with the sum that it goes into."""
    whole, single = _product(x, y), mul(x, y, form)
    away = np.where(single.nan & np.isnan(whole.value), 0.0, apart(single.value, whole.value))
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


def div(x: Bounded, y: Bounded, form: FloatFormat) -> Bounded:
    below = np.abs(y.value) - y.bound
    bound = (x.bound * np.abs(y.value) + np.abs(x.value) * y.bound) / (np.abs(y.value) * below)
    uncertain = (x.bound > 0) | (y.bound > 0)
    bound = np.where(uncertain, np.where(below > 0, bound, np.inf), 0.0)
    # a finite number divided by an infinity is 0; an infinity needs the sign of its divisor
    decided = y.infinite | y.signed
    result = rounded(special(evaluated(x.value / y.value, bound), (x, y), decided), form)
    return _either_zero(result, ~(x.signed & y.signed), form)


def sqrt(x: Bounded, form: FloatFormat) -> Bounded:
    return rounded(monotone(np.sqrt, x), form)


# Exact -------------------------------------------------------------------------------------------


def neg(x: Bounded, form: FloatFormat) -> Bounded:
    return Bounded(-x.value, x.bound)


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
        bound = np.where(x.unknown, np.inf, spread(low, high, value))
        result = bounded(value, np.where(x.bound == 0, 0.0, bound))
        return _either_zero(result, np.signbit(low) != np.signbit(high), form)

    return apply


UNARY: dict[str, Unary] = {
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
BINARY: dict[str, Binary] = {
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


def select(condition: Bounded, x: Bounded, y: Bounded) -> Bounded:
    """arith.select; where the condition is uncertain the bound covers both."""
    value = np.where(condition.value, x.value, y.value)
    chosen = np.where(condition.value, x.bound, y.bound)
    other_value = np.where(condition.value, y.value, x.value)
    other = np.where(condition.value, y.bound, x.bound) + apart(other_value, value)
    return bounded(value, np.where(condition.bound > 0, np.maximum(chosen, other), chosen))
