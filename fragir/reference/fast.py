"""What `fastmath` flags do to bounded values: errors of approximate forms, flushing, contraction.

afn lets functions and quotients be approximate and take subnormal numbers for zero, arcp makes a
quotient a product with an approximate reciprocal, contract lets a product be formed with the sum
that it goes into. The other flags change nothing. PTX ISA 9.2, sections 9.7.3.8, 13, 15 and 21.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fragir.reference import approximated, elementwise
from fragir.reference.bounded import UNIT, Bounded, bounded, rounded
from fragir.reference.formats import FLOATS, FloatFormat

F32 = FLOATS["f32"]
_NORMAL = 2.0**-126


def apply(
    name: str, flags: frozenset[str], operands: Sequence[Bounded], result: str
) -> Bounded | None:
    """The result of an operation under its flags; None where they change nothing."""
    form = FLOATS[result]
    if name == "arith.mulf" and "contract" in flags:
        return elementwise.mul_contracted(operands[0], operands[1], form)
    if form.name not in ("f32", "f16", "bf16"):
        return None
    if name == "arith.divf" and flags & {"arcp", "afn"}:
        x, y = operands
        return _narrowed(_quotient(x, y, "arcp" in flags), form)
    if "afn" not in flags:
        return None
    x = operands[0]
    if name in ("math.exp2", "math.exp"):
        found = approximated.exp2(x, True) if name == "math.exp2" else approximated.exp(x, True)
    elif name == "math.sqrt":
        found = _sqrt(x)
    elif name in ("math.log2", "math.log", "math.log10", "math.rsqrt"):
        found = approximated.APPROXIMATED[name](x, F32)
        found = _unless_subnormal(found, x)  # 0 has an infinite result
    elif name in ("math.sin", "math.cos"):  # what is lost is far less than their absolute error
        found = approximated.APPROXIMATED[name](x, F32)
    else:
        return None
    return _narrowed(found, form)


def _narrowed(x: Bounded, form: FloatFormat) -> Bounded:
    return x if form.name == "f32" else rounded(x, form, correct=False)


def _unless_subnormal(found: Bounded, x: Bounded) -> Bounded:
    """Nothing is known where an operand may be flushed to zero."""
    near = (np.abs(x.value) - x.bound < _NORMAL) & ((x.value != 0) | (x.bound > 0)) & ~x.nan
    return Bounded(found.value, np.where(near, np.inf, found.bound))


def _sqrt(x: Bounded) -> Bounded:
    """sqrt.approx.ftz: relative error 2^-23; a subnormal operand is 0, its root below 2^-63."""
    exact = approximated.monotone(np.sqrt, x)
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
    exact = elementwise.div(x, y, F32)
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
