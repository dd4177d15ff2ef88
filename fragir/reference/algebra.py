"""Programs evaluated over elements of two finite fields: which functions of their inputs they are.

In a field nothing rounds, so a bound has nothing to say. Inside of `exactly_followed` the bounds of
a `Bounded` are numbers instead: rows of a table of `Values`, which go where their values go, and 0
for what is the number that its value is. What computes floats asks `over_elements` first. Bounds
that something else has computed are seen not to be rows: what they belong to is `lost`, and so is
all that is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from fragir.algebra.numpy_door import Values
from fragir.algebra.values import ROUNDS, any_of, join
from fragir.reference.bounded import Bounded
from fragir.reference.formats import FLOATS, Array, Floats, round_to

P = ParamSpec("P")
T = TypeVar("T")
_LOST = 1
"""The row of what nothing is known of."""
#: The factor of a logarithm of base 10 as f32, as `passes/writer` has it.
_LOG10_2 = float(np.float32(np.log10(2)))


class ElementRows:
    """A table of elements, and what the numbers are."""

    def __init__(self, rounds: int = ROUNDS) -> None:
        self.rounds = rounds
        self._room = Values.of(np.zeros(1 << 10), rounds).copy()
        self._count = 2

    def add(self, values: Values) -> Floats:
        """The rows of new elements, in their shape."""
        first, end = self._count, self._count + values.size
        while end > self._room.size:
            self._room = join(np.concatenate, [self._room, self._room])
        for name in Values.PARTS:
            part = getattr(self._room, name)
            part[first:end] = getattr(values, name).reshape(values.size, *part.shape[1:])
        self._count = end
        return np.arange(first, end, dtype=np.float64).reshape(values.shape)

    def look(self, x: Bounded) -> tuple[Values, Array]:
        """What values are as elements, and where they are lost."""
        shape = np.broadcast_shapes(np.shape(x.value), np.shape(x.bound))
        real = np.broadcast_to(np.asarray(x.value, np.float64), shape)
        bound = np.broadcast_to(x.bound, shape)
        fits = np.isfinite(bound) & (bound >= 0) & (bound < self._count)
        rows = np.where(fits, bound, _LOST).astype(np.int64)
        fits &= rows == np.where(fits, bound, _LOST)
        found = self._room.take(rows)
        same = (found.real == real) | (np.isnan(found.real) & np.isnan(real))
        lost = ~fits | (rows == _LOST) | ((rows > _LOST) & ~same)
        if not rows.all():
            found = (
                Values.of(real, self.rounds) if not rows.any() else found.filled(rows == 0, real)
            )
        return found, lost

    def bounded(self, values: Values, lost: Array, form: str) -> Bounded:
        """Values of a format with their rows."""
        real = round_to(values.real, FLOATS[form])
        values.real = real
        shape = np.broadcast_shapes(real.shape, np.shape(lost))
        rows = np.broadcast_to(self.add(values), shape)
        if not values.data.all():
            plain = Values.of(real, self.rounds)
            same = (values.p == plain.p) & (values.q == plain.q)
            rows = np.where(~values.data & np.logical_and.reduce(same, -1), 0.0, rows)
        rows = np.where(np.isfinite(real), rows, 0.0)
        return Bounded(np.broadcast_to(real, shape), np.where(lost, float(_LOST), rows))


_CURRENT: ContextVar[ElementRows | None] = ContextVar("elements", default=None)


@contextmanager
def exactly_followed(rounds: int = ROUNDS) -> Generator[ElementRows]:
    """Inside, bounds are rows of elements."""
    rows = ElementRows(rounds)
    token = _CURRENT.set(rows)
    try:
        yield rows
    finally:
        _CURRENT.reset(token)


def over_elements(function: Callable[..., Bounded]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """What computes bounds, and `function` instead where elements are followed."""

    def decorate(plain: Callable[P, T]) -> Callable[P, T]:
        @wraps(plain)
        def either(*args: P.args, **named: P.kwargs) -> T:
            if _CURRENT.get() is None:
                return plain(*args, **named)
            return function(*args, **named)  # type: ignore[return-value]

        return either

    return decorate


def is_followed() -> bool:
    """Whether elements are followed now."""
    return _CURRENT.get() is not None


def _rows() -> ElementRows:
    rows = _CURRENT.get()
    assert rows is not None
    return rows


def computed(function: Callable[..., Values], operands: Sequence[Bounded], form: str) -> Bounded:
    """A function of elements."""
    rows = _rows()
    looked = [rows.look(x) for x in operands]
    with np.errstate(all="ignore"):
        found = function(*(values for values, _ in looked))
    shape = np.broadcast_shapes(found.shape, *(np.shape(lost) for _, lost in looked))
    lost = np.zeros(shape, np.bool_)
    for _, one in looked:
        lost = lost | one
    return rows.bounded(found, lost, form)


# -- elementwise -----------------------------------------------------------------------------------


def _log2(x: Values) -> Values:
    return x.named("log2", np.log2)


def _log10(x: Values) -> Values:
    return _log2(x) * _LOG10_2


def _hash_of(name: str, function: Callable[[Array], Array]) -> Callable[[Values], Values]:
    return lambda x: x.named(name, function)


def _fma(x: Values, y: Values, z: Values) -> Values:
    return x * y + z


def _rsqrt(x: Values) -> Values:
    return x.sqrt().inverse()


#: What operations on floats are.
FUNCTIONS: dict[str, Callable[..., Values]] = {
    "arith.addf": Values.__add__,
    "arith.subf": Values.__sub__,
    "arith.mulf": Values.__mul__,
    "arith.divf": Values.__truediv__,
    "arith.maximumf": Values.maximum,
    "arith.minimumf": Values.minimum,
    "arith.maxnumf": Values.maximum,
    "arith.minnumf": Values.minimum,
    "arith.negf": Values.__neg__,
    "math.fma": _fma,
    "math.absf": Values.__abs__,
    "math.sqrt": Values.sqrt,
    "math.rsqrt": _rsqrt,
    "math.exp2": Values.exp2,
    "math.exp": Values.exp,
    "math.log2": _log2,
    "math.log": Values.log,
    "math.log10": _log10,
    "math.tanh": _hash_of("tanh", np.tanh),
    "math.sin": _hash_of("sin", np.sin),
    "math.cos": _hash_of("cos", np.cos),
}


def applied(name: str, operands: Sequence[Bounded], form: str) -> Bounded | None:
    """An operation on floats where elements are followed; None where they are not.

    What has no meaning for elements is lost.
    """
    if _CURRENT.get() is None:
        return None
    function = FUNCTIONS.get(name)
    if function is None:
        return None
    return computed(function, operands, form)


def lost(x: Bounded) -> Bounded:
    """Values of which nothing more is known."""
    depends = np.asarray(x.bound != 0)
    return Bounded(x.value, np.where(depends, float(_LOST), 0.0))


def converted(x: Bounded, form: str) -> Bounded:
    """A float of another format."""
    return computed(Values.__pos__, [x], form)


def selected(condition: Bounded, x: Bounded, y: Bounded) -> Bounded:
    """One of two, by a condition that is known."""
    chosen = np.asarray(condition.value, np.bool_)
    return Bounded(np.where(chosen, x.value, y.value), np.where(chosen, x.bound, y.bound))


def compared(holds: Array) -> Bounded:
    """A comparison comes out as the numbers are."""
    return Bounded(holds, np.zeros(np.shape(holds)))


# -- sums ------------------------------------------------------------------------------------------


def _folded(function: Callable[[Values], Values], x: Bounded, form: str, each: bool) -> Bounded:
    """Along the first dimension: of all, or of all up to each place."""
    rows = _rows()
    values, bad = rows.look(x)
    found = function(values)
    by = np.logical_or.accumulate(bad, 0) if each else np.logical_or.reduce(bad, 0)
    return rows.bounded(found, by, form)


def summed(x: Bounded, form: str, *, each: bool = False) -> Bounded:
    """The sum along the first dimension, or all up to each place."""

    def total(v: Values) -> Values:
        return v.cumsum(0) if each else v.sum(0)

    return _folded(total, x, form, each)


def multiplied(x: Bounded, form: str, *, each: bool = False) -> Bounded:
    """The product along the first dimension, or all up to each place."""

    def product(v: Values) -> Values:
        parts = [v[0]]
        for i in range(1, len(v)):
            parts.append(parts[-1] * v[i])
        return join(np.stack, parts) if each else parts[-1]

    return _folded(product, x, form, each)


def dot(
    a: Bounded,
    b: Bounded,
    c: Bounded | None,
    form: str,
    scales: tuple[Floats, Floats] | None = None,
) -> Bounded:
    """`c + a b`, with the scales of every element."""

    def product(x: Values, y: Values, *z: Values) -> Values:
        if scales is not None:
            x, y = x * scales[0], y * scales[1]
        found = x @ y
        return found + z[0] if z else found

    rows = _rows()
    looked = [rows.look(v) for v in (a, b, *(() if c is None else (c,)))]
    with np.errstate(all="ignore"):
        found = product(*(values for values, _ in looked))
    left, right = looked[0][1], looked[1][1]
    bad = any_of(left, -1)[..., :, None] | any_of(right, -2)[..., None, :]
    if c is not None:
        bad = bad | looked[2][1]
    return rows.bounded(found, bad, form)


def added_at(memory: tuple[Array, Floats], at: Array, x: Bounded, form: str) -> None:
    """Adds elements to those at places of a memory, of which some may be the same."""
    value, bound = memory
    rows = _rows()
    cells, index = np.unique(at, return_inverse=True)
    old, bad = rows.look(Bounded(value[cells], bound[cells]))
    new, worse = rows.look(x)
    total = old
    # term by term of each place: as often as the place with the most terms has
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(len(cells) + 1))
    turn = np.arange(len(index)) - starts[index[order]]
    lost_at = bad.copy()
    for t in range(int(turn.max(initial=-1)) + 1):
        now = order[turn == t]
        term = Values.of(np.zeros(len(cells)), rows.rounds)
        term[index[now]] = new.take(now)
        total = total + term
    np.logical_or.at(lost_at, index, np.broadcast_to(worse, index.shape))
    found = rows.bounded(total, lost_at, form)
    value[cells], bound[cells] = found.value, found.bound
