"""What integer operations of arith do: exact, modulo 2^bits, also on values of uncertain origin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fragir.reference import algebra
from fragir.reference.bounded import Bounded, bounded, rounded
from fragir.reference.formats import FLOATS, INTEGERS, Array, Integers

Operation = Callable[[Array, Array, Integers], Array]


def _as_unsigned(x: Array, form: Integers) -> Array:
    """The same bits read without a sign, as uint64."""
    bits = x.astype(np.int64).view(np.uint64)
    return bits if form.bits == 64 else bits & np.uint64((1 << form.bits) - 1)


def _as_signed(x: Array) -> Array:
    return np.asarray(x, np.uint64).view(np.int64)


def _without_sign(function: Callable[[Array, Array], Array]) -> Operation:
    def apply(x: Array, y: Array, form: Integers) -> Array:
        return _as_signed(function(_as_unsigned(x, form), _as_unsigned(y, form)))

    return apply


def _quotient(x: Array, y: Array, form: Integers) -> Array:
    """Rounded towards zero."""
    safe = np.where(y == 0, 1, y)
    down = x // safe
    return down + ((x % safe != 0) & ((x < 0) != (safe < 0)))


def _up(x: Array, y: Array, form: Integers) -> Array:
    """The quotient rounded up."""
    safe = np.where(y == 0, 1, y)
    return x // safe + (x % safe != 0)


def _power(x: Array, y: Array, form: Integers) -> Array:
    """x^y modulo 2^bits; of a negative exponent the quotient 1 / x^-y, rounded towards zero."""
    result, base = np.ones(np.broadcast_shapes(x.shape, y.shape), np.int64), x + np.zeros_like(y)
    left = np.abs(y)
    for _ in range(form.bits):
        result = np.where(left & 1 == 1, result * base, result)
        base, left = base * base, (left >> 1) & ((1 << (form.bits - 1)) - 1)
    return np.where((y < 0) & (np.abs(x) != 1), 0, result)


def _high(x: Array, y: Array, form: Integers, signed: bool) -> Array:
    """The upper half of the product."""
    unsigned = [_as_unsigned(v, form).astype(object) for v in (x, y)]
    whole = x.astype(object) * y.astype(object) if signed else unsigned[0] * unsigned[1]
    half = (whole >> form.bits) & ((1 << form.bits) - 1)
    return np.asarray(half, object).astype(np.uint64).view(np.int64)


def extended_result(name: str, x: Bounded, y: Bounded, form: Integers) -> tuple[Bounded, Bounded]:
    """Both halves of a product, or a sum and its carry."""
    if name == "arith.addui_extended":
        low = apply("arith.addi", x, y, form)
        carry = _as_unsigned(low.value, form) < _as_unsigned(x.value, form)
        unsure = np.where(x.bound + y.bound > 0, 1.0, 0.0) + np.zeros(carry.shape)
        return low, Bounded(carry, unsure)
    low = apply("arith.muli", x, y, form)
    high = form.wrap(_high(x.value, y.value, form, name == "arith.mulsi_extended"))
    return low, Bounded(high, np.where(x.bound + y.bound > 0, np.inf, 0.0) + np.zeros(high.shape))


def bit_counts(name: str, x: Bounded, form: Integers) -> Bounded:
    """The bits that are set (ctpop), or zeros at the upper (ctlz) or the lower end (cttz)."""
    bits = _as_unsigned(x.value, form)[..., None] >> np.arange(form.bits, dtype=np.uint64)
    ones = (bits & np.uint64(1)).astype(np.int64)
    if name == "math.ctpop":
        value = ones.sum(-1)
    else:
        seen = np.maximum.accumulate(ones if name == "math.cttz" else ones[..., ::-1], -1)
        value = form.bits - seen.sum(-1)
    return Bounded(value, np.where(x.bound > 0, np.inf, 0.0))


def _shift(left: bool, signed: bool) -> Operation:
    """Counts of the width and more shift everything out (PTX ISA 9.2, section 9.7.8.8)."""

    def apply(x: Array, y: Array, form: Integers) -> Array:
        count = np.minimum(_as_unsigned(y, form), np.uint64(form.bits)).astype(np.int64)
        if not left and signed:
            return x >> np.minimum(count, form.bits - 1)
        # two shifts, since numpy leaves a shift by 64 open
        bits, half = _as_unsigned(x, form), (count // 2).astype(np.uint64)
        rest = count.astype(np.uint64) - half
        moved = bits << half << rest if left else bits >> half >> rest
        return _as_signed(moved)

    return apply


BINARY: dict[str, Operation] = {
    "arith.addi": lambda x, y, form: x + y,
    "arith.subi": lambda x, y, form: x - y,
    "arith.muli": lambda x, y, form: x * y,
    "arith.divsi": _quotient,
    "arith.remsi": lambda x, y, form: x - _quotient(x, y, form) * y,
    "arith.divui": _without_sign(lambda x, y: x // np.where(y == 0, np.uint64(1), y)),
    "arith.remui": _without_sign(lambda x, y: x % np.where(y == 0, np.uint64(1), y)),
    "arith.ceildivui": _without_sign(
        lambda x, y: (
            x // np.where(y == 0, np.uint64(1), y) + (x % np.where(y == 0, np.uint64(1), y) != 0)
        )
    ),
    "arith.ceildivsi": _up,
    "arith.floordivsi": lambda x, y, form: x // np.where(y == 0, 1, y),
    "math.ipowi": _power,
    "arith.minsi": lambda x, y, form: np.minimum(x, y),
    "arith.maxsi": lambda x, y, form: np.maximum(x, y),
    "arith.minui": _without_sign(np.minimum),
    "arith.maxui": _without_sign(np.maximum),
    "arith.andi": lambda x, y, form: x & y,
    "arith.ori": lambda x, y, form: x | y,
    "arith.xori": lambda x, y, form: x ^ y,
    "arith.shli": _shift(left=True, signed=False),
    "arith.shrui": _shift(left=False, signed=False),
    "arith.shrsi": _shift(left=False, signed=True),
}
_DIVISIONS = tuple(
    f"arith.{name}" for name in "divsi remsi divui remui ceildivui ceildivsi floordivsi".split()
)


def apply(name: str, x: Bounded, y: Bounded, form: Integers) -> Bounded:
    """A binary operation on integers of one format."""
    value = form.wrap(np.asarray(BINARY[name](x.value, y.value, form)))
    bound = np.zeros(value.shape)
    if name in _DIVISIONS:
        bound = np.where(y.value == 0, np.inf, bound)
    if name == "math.ipowi":  # one through zero
        bound = np.where((x.value == 0) & (y.value < 0), np.inf, bound)
    if x.exact and y.exact:
        return Bounded(value, bound)
    return bounded(value, np.maximum(bound, _uncertain(name, x, y, form)))


def _uncertain(name: str, x: Bounded, y: Bounded, form: Integers) -> Array:
    """The bound where an operand is uncertain: sums and products; nothing is known of others."""
    slack = x.bound + y.bound
    if name in ("arith.addi", "arith.subi"):
        reach = x.magnitude + y.magnitude
    elif name == "arith.muli":
        slack = np.abs(x.value) * y.bound + x.bound * y.magnitude
        reach = x.magnitude * y.magnitude
    else:
        return np.where(slack > 0, np.inf, 0.0)
    return np.where((slack > 0) & (reach >= 2.0 ** (form.bits - 1)), np.inf, slack)


# arith.cmpi's predicates in MLIR's order, and whether they see a sign
_COMPARE: tuple[tuple[Callable[[Array, Array], Array], bool], ...] = (
    (np.equal, True),
    (np.not_equal, True),
    (np.less, True),
    (np.less_equal, True),
    (np.greater, True),
    (np.greater_equal, True),
    (np.less, False),
    (np.less_equal, False),
    (np.greater, False),
    (np.greater_equal, False),
)


def compare(predicate: int, x: Bounded, y: Bounded, form: Integers) -> Bounded:
    """arith.cmpi; a bound of 1 says that it may go either way."""
    function, signed = _COMPARE[predicate]
    left, right = (
        (x.value, y.value)
        if signed
        else (
            _as_unsigned(x.value, form),
            _as_unsigned(y.value, form),
        )
    )
    holds = np.asarray(function(left, right))
    slack = x.bound + y.bound
    near = (slack > 0) & (np.abs(x.value - y.value) <= slack) if signed else slack > 0
    return Bounded(holds, np.where(near, 1.0, 0.0) + np.zeros(holds.shape))


# Casts -------------------------------------------------------------------------------------------


def cast(x: Bounded, source: str, target: str) -> Bounded:
    """An element of another type, as PTX's cvt does it.

    Between floats one rounding to nearest; to integers towards zero, clamped (section 9.7.9.22);
    between integers by sign or zero extension, or the low bits.
    """
    if target in FLOATS and algebra.is_followed():
        if source in FLOATS:
            return algebra.converted(x, target)
        whole = _as_unsigned(x.value, INTEGERS["u64"]) if source == "u64" else x.value
        return Bounded(whole.astype(np.float64), np.zeros(np.shape(x.value)))
    if target in FLOATS:
        wide = source in ("s64", "u64")
        whole = _as_unsigned(x.value, INTEGERS["u64"]) if source == "u64" else x.value
        value = whole.astype(np.float64)
        if wide:  # float64 has 53 bits
            own = np.where(np.abs(value) > 2.0**53, np.spacing(np.abs(value)), 0.0)
            return rounded(Bounded(value, x.bound + own), FLOATS[target])
        return rounded(Bounded(value, x.bound), FLOATS[target])
    form = INTEGERS[target]
    if source not in FLOATS:
        value = form.wrap(x.value.astype(np.int64))
        kept = value == x.value
        bound = np.where(kept | (x.bound == 0), x.bound, np.inf)
        return Bounded(value, bound)
    value = _towards_zero(x.value, form, source == "f64" or form.bits == 64)
    if algebra.is_followed():
        return algebra.compared(value)
    near = [_towards_zero(x.value + by, form, False) for by in (x.bound, -x.bound)]
    spread = np.maximum(*(np.abs(_real(n, form) - _real(value, form)) for n in near))
    return Bounded(value, np.where(x.bound == 0, 0.0, spread))


def _towards_zero(values: Array, form: Integers, marked: bool) -> Array:
    """Floats as integers, clamped. NaN is 0; `marked`, of 64 bits on either side, 2^(bits - 1)."""
    low = -(2 ** (form.bits - 1)) if form.signed else 0
    high = 2**form.bits - 1 + low
    nan = low or min(2 ** (max(form.bits, 8) - 1), high)
    # what is beyond is clamped after all: the largest of 64 bits is no float64
    clipped = np.clip(np.trunc(np.nan_to_num(values, nan=0.0)), low, np.nextafter(high + 1.0, 0))
    if form.bits == 64 and not form.signed:
        upper = clipped >= 2.0**63
        kept = np.where(upper, clipped - 2.0**63, clipped).astype(np.int64)
        kept = np.where(upper, kept + np.iinfo(np.int64).min, kept)
        kept = np.where(values >= 2.0**64, -1, kept)
        nan = np.iinfo(np.int64).min
    else:
        kept = np.where(values > high, high, np.clip(clipped.astype(np.int64), low, high))
    return np.where(np.isnan(values), nan if marked else 0, kept)


def _real(values: Array, form: Integers) -> Array:
    wide = form.bits == 64 and not form.signed
    return (_as_unsigned(values, form) if wide else values).astype(np.float64)
