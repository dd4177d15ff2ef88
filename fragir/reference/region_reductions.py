"""The meaning of reductions by a region, whose elements may be combined in any order.

A region is associative but for rounding, so that without rounding every order gives the same. It is
evaluated along several trees as flat as the one that runs, where every result of arithmetic has a
bound, unless it has few bits (`bounded.any_order`): each tree's value is as near to the unrounded
one as its bound says. What runs is another such tree, so it may be as far again. What every tree
gives exactly is exact: places, the largest, sums of small integers. What is not covered are terms
that cancel exactly in all these trees, but are rounded in the one that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.reductions import most_roundings
from fragir.reference.bounded import Bounded, any_order, apart, bounded
from fragir.reference.formats import Array, Floats
from fragir.reference.run import Run

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
            trees = [_tree(run, op, items, pairs) for pairs in (_neighbours, _halves, _turned)]
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
    away: Floats = np.zeros(first.value.shape)
    for x in found:
        away = np.maximum(away, apart(x.value, first.value) + x.bound * more)
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


def _turned(places: Array) -> tuple[Array, Array, Array]:
    """Neighbours from the last on, the later one first."""
    return _neighbours(places[::-1])
