"""The meaning of reductions: bounds for every tree of few levels; and of what gains a dimension.

What is added up to a place of a scan is added like what a reduction adds, so sums and products take
a `Fold`: all along the first dimension at once, or all up to each place of it.

Reductions by a region:
A region is associative but for rounding, so that without rounding every order gives the same. It is
evaluated along several trees as flat as the one that runs, where every result of arithmetic has a
bound, unless it has few bits (`bounded.any_order`): each tree's value is as near to the unrounded
one as its bound says. What runs is another such tree, so it may be as far again. What every tree
gives exactly is exact: places, the largest, sums of small integers. What is not covered are terms
that cancel exactly in all these trees, but are rounded in the one that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.reductions import COMBINATIONS, PLACES, most_roundings, neutral
from fragir.dialects.frag.scan import most_roundings_of_scan
from fragir.dialects.frag.types import tile_of
from fragir.reference import algebra, elementwise, integers
from fragir.reference.bounded import UNIT, Bounded, any_order, bounded, distance_between, exactly
from fragir.reference.formats import (
    FLOATS,
    INTEGERS,
    PREDICATE,
    Array,
    FloatFormat,
    Floats,
    overflow,
    type_name,
)
from fragir.reference.run import Run


def reduction(run: Run, op: frag.ReduceOp) -> None:
    """Sums and products by a bound for every order; the rest do not depend on the order."""
    x = run[op.source]
    first = Bounded(np.moveaxis(x.value, op.along, 0), np.moveaxis(x.bound, op.along, 0))
    kind, element = op.kind.data, type_name(tile_of(op.source).element_type)
    if kind in PLACES:
        found = place(first, largest=kind == "argmax", unsigned=element == "u32")
    elif kind == "add" and element in FLOATS:
        found = total(first, FLOATS[element])
    elif kind == "mul" and element in FLOATS:
        found = product(first, FLOATS[element])
    else:
        found = one_by_one(first, kind, element)
    run[op.result] = found


def broadcast(run: Run, op: frag.BroadcastOp) -> None:
    x, shape = run[op.source], op.result.type.shape
    value, bound = (np.expand_dims(array, op.dim) for array in (x.value, x.bound))
    run[op.result] = Bounded(np.broadcast_to(value, shape), np.broadcast_to(bound, shape))


def iota(run: Run, op: frag.IotaOp) -> None:
    run[op.tile] = exactly(np.indices(op.tile.type.shape)[op.along].astype(np.int64))


def one_by_one(x: Bounded, kind: str, element: str) -> Bounded:
    """What gives the same in every order: integers, largest and smallest, logic."""
    if element == PREDICATE:
        return logic(x, kind, whole_fold(len(x.value)))
    return reduce(of_two(kind, element), rows_of(x))


def rows_of(x: Bounded) -> list[Bounded]:
    """The parts along the first dimension."""
    return [Bounded(v, b) for v, b in zip(x.value, x.bound, strict=True)]


def of_two(kind: str, element: str) -> Callable[[Bounded, Bounded], Bounded]:
    """What a word makes of two, of floats or integers."""
    name = COMBINATIONS[kind].operation(element)
    assert name is not None
    if element in FLOATS:
        form, apply = FLOATS[element], elementwise.BINARY[name]
        return lambda a, b: apply(a, b, form)
    return lambda a, b: integers.apply(name, a, b, INTEGERS[element])


def logic(x: Bounded, kind: str, fold: Fold) -> Bounded:
    """All, any, or an odd number; uncertain where an uncertain one would change it."""
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[kind]
    value = np.asarray(fold.by(combine, x.value))
    open_ = x.bound > 0
    if kind == "xor":
        return Bounded(value, np.where(fold.any(open_), 1.0, 0.0))
    low, high = (fold.by(combine, np.where(open_, guess, x.value)) for guess in (False, True))
    return Bounded(value, np.where(low != high, 1.0, 0.0))


# Sums and products -------------------------------------------------------------------------------


class Fold(NamedTuple):
    """How arrays are combined along the first dimension, with functions of numpy's."""

    by: Callable[[np.ufunc, Array], Array]
    """(function, array): what `function.reduce` gives, or `function.accumulate`."""
    count: Any
    """How many are combined: a number, or an array of them that broadcasts to the result."""
    roundings: int | Array
    """How many operations each of them goes through at most."""

    def total(self, x: Array) -> Array:
        """The sum."""
        return self.by(np.add, x)

    def any(self, x: Array) -> Array:
        """Whether one holds."""
        return self.by(np.logical_or, x)

    def all(self, x: Array) -> Array:
        """Whether all hold."""
        return self.by(np.logical_and, x)


def _at_once(function: np.ufunc, x: Array) -> Array:
    return function.reduce(x, axis=0)


def whole_fold(count: int) -> Fold:
    """All of so many elements, as a tree of few levels."""
    return Fold(_at_once, count, most_roundings(count))


def in_any_order(count: int) -> Fold:
    """All of so many elements, one after the other if need be."""
    return Fold(_at_once, count, count)


def total(x: Bounded, form: FloatFormat, fold: Fold | None = None) -> Bounded:
    """The sum along the first dimension, of floats."""
    fold = whole_fold(len(x.value)) if fold is None else fold
    if algebra.is_followed():
        return algebra.summed(x, form.name, each=fold.by is _up_to_each)
    finite = np.where(np.isfinite(x.value), x.value, 0.0)
    value = fold.total(finite)
    magnitude = fold.total(np.abs(finite) + x.bound)
    # this sum's own roundings, in whichever order numpy adds
    own = fold.count * UNIT * magnitude
    unit = half_unit(form)
    error = fold.total(x.bound) + _growth(fold.roundings * unit) * magnitude + own
    exact = _sums_exactly(x, magnitude, form, fold)
    bound = np.where(exact, 0.0, error)
    # a partial sum that may overflow may be infinite, and then anything
    bound = np.where(magnitude * (1 + fold.count * unit) >= overflow(form), np.inf, bound)
    return _special(x, bounded(value, bound), fold)


def _growth(units: float | Array) -> Array:
    """The relative error of so many roundings, each of half a unit: gamma of Higham's."""
    return np.where(units < 1, units / np.where(units < 1, 1 - units, 1), np.inf)


def _sums_exactly(x: Bounded, magnitude: Floats, form: FloatFormat, fold: Fold) -> Array:
    """Where no order rounds: all are multiples of a number of which few make up all of them."""
    step = fold.by(np.minimum, lowest_bits(x.value))
    few = magnitude <= step / half_unit(form) / 2
    return fold.all(x.bound == 0) & (few | ~np.isfinite(step))


def lowest_bits(values: Floats) -> Floats:
    """The largest power of two that divides each number; infinite for 0, and for no number."""
    finite = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(finite, np.abs(values), 1.0))
    scaled = (mantissa * 2.0**53).astype(np.int64)
    lowest = (scaled & -scaled).astype(np.float64)
    return np.where(finite, np.ldexp(lowest, exponent - 53), np.inf)


def product(x: Bounded, form: FloatFormat, fold: Fold | None = None) -> Bounded:
    """The product along the first dimension, of floats."""
    fold = whole_fold(len(x.value)) if fold is None else fold
    if algebra.is_followed():
        return algebra.multiplied(x, form.name, each=fold.by is _up_to_each)
    count, times = fold.count, np.multiply
    finite = np.where(np.isfinite(x.value), x.value, 0.0)
    value = fold.by(times, finite)
    reach = np.abs(finite) + x.bound
    # any partial product is at most this, and what underflows is multiplied by no more
    largest = fold.by(times, np.maximum(reach, 1.0)) * (1 + count * half_unit(form)) ** 2
    growth = (1 + half_unit(form)) ** count * (1 + UNIT) ** (2 * count)
    every = fold.by(times, reach)
    error = every * growth - np.abs(value) + 4 * count * UNIT * every
    error = error + count * form.smallest * largest
    bound = np.where(largest >= overflow(form), np.inf, error)
    # powers of two and zeros of one sign, as long as nothing leaves the format
    powers = fold.all(np.frexp(np.abs(finite))[0] == 0.5) & fold.all(x.bound == 0)
    least = fold.by(times, np.minimum(np.abs(finite), 1.0))
    exact = powers & (least >= form.smallest) & (largest < overflow(form))
    return _special(x, bounded(value, np.where(exact, 0.0, bound)), fold, times=True)


def _special(x: Bounded, found: Bounded, fold: Fold, times: bool = False) -> Bounded:
    """By IEEE 754 where an element is infinite or NaN, and unknown where one is."""
    plus, minus = (fold.any(x.infinite & (np.sign(x.value) == sign)) for sign in (1, -1))
    some = plus | minus
    if times:
        decided = fold.all(x.signed & (np.abs(x.value) > 0))
        turned = fold.by(np.logical_xor, np.signbit(x.value))
        value = np.where(some, np.where(turned, -np.inf, np.inf), found.value)
        # infinity times zero is NaN, in whichever order
        zero = fold.any((x.value == 0) & (x.bound == 0))
        value = np.where(some & zero, np.nan, value)
        decided = decided | zero
    else:
        value = np.where(plus, np.inf, np.where(minus, -np.inf, found.value))
        value = np.where(plus & minus, np.nan, value)
        decided = np.ones(value.shape, bool)
    overflows = some & np.isinf(found.bound)
    bound = np.where(some, np.where(decided & ~overflows, 0.0, np.inf), found.bound)
    unknown, nan = fold.any(x.unknown), fold.any(x.nan)
    bound = np.where(nan, 0.0, np.where(unknown, np.inf, bound))
    return Bounded(np.where(nan, np.nan, value), bound)


def half_unit(form: FloatFormat) -> float:
    """The largest relative error of one rounding."""
    return 2.0**-form.precision


# Places ------------------------------------------------------------------------------------------


def place(x: Bounded, *, largest: bool, unsigned: bool = False) -> Bounded:
    """The place of the first of the largest or smallest, or of the first NaN.

    Where others may be as good, the bound covers all their places.
    """
    value = x.value & 0xFFFFFFFF if unsigned else x.value
    best = np.asarray((np.argmax if largest else np.argmin)(value, axis=0)).astype(np.int64)
    if algebra.is_followed():
        return algebra.compared(best)
    sure = (x.bound == 0).all(0)
    if sure.all():
        return exactly(best)
    sign = 1.0 if largest else -1.0
    floats = sign * value.astype(np.float64)
    low, high = floats - x.bound, floats + x.bound
    threshold = np.where(np.isnan(low), -np.inf, low).max(0)
    rival = (high >= threshold) | np.isnan(high) | x.unknown
    numbers = np.arange(len(value)).reshape(-1, *(1 for _ in best.shape))
    least = np.where(rival, numbers, len(value)).min(0)
    most = np.where(rival, numbers, -1).max(0)
    spread = np.maximum(best - least, most - best).astype(np.float64)
    return Bounded(best, np.where(sure, 0.0, spread))


# --- reductions by a region -----------------------------------------------------------------------

Items = list[Bounded]
"""Of every tile, elements along the first dimension."""
Pairing = Callable[[Array], tuple[Array, Array, Array]]
"""Which elements of a level are combined with which, and which are left."""


def reduce_by(run: Run, op: frag.ReduceByOp) -> None:
    items = [
        Bounded(*(np.moveaxis(array, op.along, 0) for array in (x.value, x.bound)))
        for x in (run[tile] for tile in op.tiles)
    ]
    count = len(items[0].value)
    if count > 1:
        with any_order():
            trees = [
                _tree(run, op, items, pairs) for pairs in (_neighbours, _halves, _reverse_places)
            ]
    else:
        trees = [items]
    # the tree that runs has at most so many levels for each of these
    levels = most_roundings(count)
    more = levels / (levels - 1) if levels > 1 else 1.0
    for number, result in enumerate(op.reduced):
        found = [Bounded(tree[number].value[0], tree[number].bound[0]) for tree in trees]
        run[result] = _together(found, more)


def _together(found: Sequence[Bounded], more: float) -> Bounded:
    """The first tree's value, and how far another tree may be from it."""
    first = found[0]
    if algebra.is_followed():
        return first
    away: Floats = np.zeros(first.value.shape)
    for x in found:
        away = np.maximum(away, distance_between(x.value, first.value) + x.bound * more)
    bound = np.where(away > 0, away + first.bound, 0.0)
    return bounded(first.value, bound)


def _tree(run: Run, op: frag.ReduceByOp, items: Items, pairing: Pairing) -> Items:
    while len(items[0].value) > 1:
        first, second, rest = pairing(np.arange(len(items[0].value)))
        arguments = [Bounded(x.value[at], x.bound[at]) for at in (first, second) for x in items]
        shape = arguments[0].value.shape
        combined = run.region(op.body.block, arguments, shape)
        items = [
            Bounded(
                np.concatenate([y.value, x.value[rest]]), np.concatenate([y.bound, x.bound[rest]])
            )
            for x, y in zip(items, combined, strict=True)
        ]
    return items


def _neighbours(places: Array) -> tuple[Array, Array, Array]:
    even = len(places) // 2 * 2
    return places[:even:2], places[1:even:2], places[even:]


def _halves(places: Array) -> tuple[Array, Array, Array]:
    half = len(places) // 2
    return places[:half], places[half : 2 * half], places[2 * half :]


def _reverse_places(places: Array) -> tuple[Array, Array, Array]:
    """Neighbours from the last on, the later one first."""
    return _neighbours(places[::-1])


# --- scans ----------------------------------------------------------------------------------------


def scan(run: Run, op: frag.ScanOp) -> None:
    x, along = run[op.source], op.along
    kind, element = op.kind.data, type_name(tile_of(op.source).element_type)
    value, bound = (np.moveaxis(array, along, 0) for array in (x.value, x.bound))
    if op.reverse is not None:
        value, bound = value[::-1], bound[::-1]
    found = _up_to(Bounded(value, bound), kind, element)
    value, bound = found.value, found.bound
    if op.exclusive is not None:
        first = np.full_like(value[:1], _neutral(kind, element))
        value = np.concatenate([first, value[:-1]])
        bound = np.concatenate([np.zeros_like(bound[:1]), bound[:-1]])
    if op.reverse is not None:
        value, bound = value[::-1], bound[::-1]
    run[op.result] = Bounded(np.moveaxis(value, 0, along), np.moveaxis(bound, 0, along))


def _neutral(kind: str, element: str) -> Array:
    """What the first place of an exclusive scan becomes."""
    number = np.asarray(neutral(kind, element))
    return INTEGERS[element].wrap(number) if element in INTEGERS else number


def _up_to(x: Bounded, kind: str, element: str) -> Bounded:
    """What all up to each place of the first dimension give."""
    if element in FLOATS and kind in ("add", "mul"):
        return (total if kind == "add" else product)(x, FLOATS[element], _every(x))
    if element == PREDICATE:
        return logic(x, kind, _every(x))
    found = list(accumulate(rows_of(x), of_two(kind, element)))
    return Bounded(np.stack([y.value for y in found]), np.stack([y.bound for y in found]))


def _every(x: Bounded) -> Fold:
    """All up to each place, as trees of as many levels as `frag.scan` promises."""
    count = len(x.value)
    numbers = np.arange(count).reshape(-1, *(1 for _ in x.value.shape[1:]))
    roundings = np.minimum(numbers, most_roundings_of_scan(count))
    return Fold(_up_to_each, numbers + 1, roundings)


def _up_to_each(function: np.ufunc, x: Array) -> Array:
    return function.accumulate(x, axis=0)
