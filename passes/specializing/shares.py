"""Roles that do the same for different tiles, and take turns at what they read from rings.

Each visits every n-th tile of a block. What fills the rings goes from tile to tile; so the roles
await a ring's slots in turns, in the order of tiles. A turn at the products lasts until the last
one is issued: then the next role's begin, while this one waits for its own, and stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.ir import Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.diagnostics import fail
from fragir.dialects import frag

PRODUCTS = "products"
"""The first turn of a tile; others are numbered."""


class _Reading(NamedTuple):
    """Operations of a block, from one to another, that await slots of some rings."""

    first: int
    last: int
    rings: tuple[frag.RingOp, ...]


def check_shares(function: func.FuncOp, others: Iterable[Operation]) -> None:
    """Fails where what roles are to do by turns is not all done tile by tile."""
    for op in others:
        loop = _loop_of(op)
        if loop is None:
            fail(
                op,
                "several roles that multiply deal out tiles, and this is done once for all of "
                "them: write it into the loop frag.for_tiles",
            )
        if loop.persistent is None or loop.share is not None:
            fail(loop, "roles deal out the tiles of a loop that is persistent; write persistent")
        if loop.parent_op() is not function:
            fail(loop, "roles deal out the tiles of a loop at the top level of the function")


def _loop_of(op: Operation) -> frag.ForTilesOp | None:
    around = op.parent_op()
    while around is not None and not isinstance(around, frag.ForTilesOp):
        around = around.parent_op()
    return around


def deal_out(bodies: Sequence[Region]) -> None:
    """Gives each of some roles, which are alike, its share of tiles and its turns."""
    for number, body in enumerate(bodies):
        for loop in [op for op in body.block.ops if isinstance(op, frag.ForTilesOp)]:
            loop.share = DenseArrayBase.from_list(i64, [number, len(bodies)])
            _take_turns(loop)


def _take_turns(loop: frag.ForTilesOp) -> None:
    ops = list(loop.body.block.ops)
    for number, reading in enumerate(_readings(ops)):
        name = f"{PRODUCTS} {number}" if number else PRODUCTS
        for ring in reading.rings:
            ring.turns = StringAttr(name)
        take, give = frag.TakeTurnOp(name), frag.PassTurnOp(name)
        Rewriter.insert_op(take, InsertPoint.before(ops[reading.first]))
        Rewriter.insert_op(give, InsertPoint.after(ops[reading.last]))


def _readings(ops: Sequence[Operation]) -> list[_Reading]:
    """What is awaited where; what overlaps is one."""
    found: dict[frag.RingOp, list[int]] = {}
    for at, op in enumerate(ops):
        for inner in op.walk():
            if isinstance(inner, frag.AwaitOp) and isinstance(inner.source.owner, frag.RingOp):
                found.setdefault(inner.source.owner, []).append(at)
    merged: list[_Reading] = []
    for ring, places in found.items():  # in the order of their beginnings
        one = _Reading(places[0], places[-1], (ring,))
        while merged and one.first <= merged[-1].last:
            other = merged.pop()
            first, last = min(one.first, other.first), max(one.last, other.last)
            one = _Reading(first, last, (*other.rings, *one.rings))
        merged.append(one)
    return merged
