"""The meaning of scans: at every place the bound of the tree that leads there."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.reductions import neutral
from fragir.dialects.frag.scan import most_roundings
from fragir.dialects.frag.types import tile_of
from fragir.reference.bounded import Bounded
from fragir.reference.element_types import PREDICATE, type_name
from fragir.reference.formats import FLOATS, INTEGERS, Array
from fragir.reference.reductions import Fold, logic, of_two, product, rows_of, total
from fragir.reference.run import Run


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
    return INTEGERS[element].wrapped(number) if element in INTEGERS else number


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
    roundings = np.minimum(numbers, most_roundings(count))
    return Fold(_up_to_each, numbers + 1, roundings)


def _up_to_each(function: np.ufunc, x: Array) -> Array:
    return function.accumulate(x, axis=0)
