"""The meaning of `frag.lanes`.

Tiles to each thread's registers, its branches and loops, and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.passes.scopes import threads_at
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.control import MOST_TURNS
from fragir.reference.formats import Array, type_name
from fragir.reference.indexed import write_one
from fragir.reference.lanes import collective as collective
from fragir.reference.lanes import computing as computing
from fragir.reference.lanes.threads import WARP, BlockThreads
from fragir.reference.memory import BoundedMemory, unwritten_memory
from fragir.reference.run import Run


def points(layout: Layout, threads: Array) -> Array:
    """Where each thread's elements stand: [threads, elements, dimensions], -1 where none is held.

    BlockThreads beyond the layout's are those at its beginning again.
    """
    table = layout.array()
    own = {"lane": threads % WARP, "warp": threads // WARP, "thread": threads}
    names = [name for name in layout.names if name != "element"]
    if "element" in layout.names:
        table = np.moveaxis(table, layout.names.index("element"), -2)
    else:
        table = table[..., None, :]
    where = tuple(own[name] % layout.size(name) for name in names)
    found = table[where]
    shape = (len(threads), *table.shape[-2:])
    return np.broadcast_to(found, shape)


def lanes(run: Run, op: frag.LanesOp) -> None:
    threads = BlockThreads(run, threads_at(op))
    block, held = op.body.block, op.held()
    run[block.args[0]] = exactly(threads.lane)
    run[block.args[1]] = exactly(threads.number // WARP)
    for argument, tile, own in zip(block.args[2:], op.tiles, held, strict=False):
        run[argument] = _elements_of_threads(
            run[tile], points(own.placed_type.resolve(), threads.number)
        )
    values = threads.run_block(block)
    for output, x, own in zip(op.outputs, values, held[len(op.tiles) :], strict=True):
        run[output] = _tile_of_threads(
            output.type, x, points(own.placed_type.resolve(), threads.number)
        )


def _elements_of_threads(x: Bounded, at: Array) -> Bounded:
    """Each thread's elements of a tile; where a layout gives it none there may be anything."""
    where = tuple(np.moveaxis(at, -1, 0))
    none = (at < 0).any(axis=-1)
    return Bounded(x.value[where], np.where(none, np.inf, x.bound[where]))


def _tile_of_threads(tile: frag.TileType, x: Bounded, at: Array) -> Bounded:
    """A tile of each thread's elements; one that several hold is any of theirs."""
    element = type_name(tile.element_type)
    made = unwritten_memory(tile.shape, element)
    if x.value.dtype == bool:
        made = BoundedMemory(np.zeros(tile.shape, bool), np.full(tile.shape, np.inf), element)
    held = (at >= 0).all(axis=-1)
    flat = np.ravel_multi_index(tuple(np.moveaxis(at[held], -1, 0)), tile.shape)
    write_one(made, np.asarray(flat), Bounded(x.value[held], x.bound[held]))
    return made.content


def coordinates(threads: BlockThreads, op: frag.CoordinatesOp) -> None:
    layout = replace(op.held().placed_type.resolve(), where=())
    at = points(layout, threads.number)[:, op.element.value.data]
    for dim, place in enumerate(op.place):
        threads[place] = exactly(at[:, dim])


# -- control ---------------------------------------------------------------------------------------
# Branches and loops of lane-level code, in which each thread goes its own way.


def branch(threads: BlockThreads, op: scf.IfOp) -> None:
    condition = threads.require_certain(op.cond, "the condition of scf.if").astype(bool)
    outside = threads.active
    found = [threads.anything(result.type) for result in op.results]
    for holds, region in ((condition, op.true_region), (~condition, op.false_region)):
        threads.active = outside & holds
        if region.blocks and threads.active.any():
            found = _update_active(threads, threads.run_block(region.block), found)
    threads.active = outside
    _bind(threads, op.results, found)


def loop(threads: BlockThreads, op: scf.ForOp) -> None:
    lower, upper, by = (
        threads.require_certain(v, "a bound of scf.for") for v in (op.lb, op.ub, op.step)
    )
    outside, counter = threads.active, np.array(lower)
    carried = [threads[value] for value in op.iter_args]
    block = op.body.block
    while True:
        threads.active = outside & (counter < upper)
        if not threads.active.any():
            break
        threads[block.args[0]] = exactly(counter)
        _bind(threads, block.args[1:], carried)
        carried = _update_active(threads, threads.run_block(block), carried)
        counter = counter + np.where(threads.active, by, 0)
    threads.active = outside
    _bind(threads, op.results, carried)


def while_(threads: BlockThreads, op: Any) -> None:
    before, after = op.before_region.block, op.after_region.block
    outside = threads.active
    carried = [threads[value] for value in op.arguments]
    passed = [threads.anything(result.type) for result in op.results]
    for _ in range(MOST_TURNS):
        _bind(threads, before.args, carried)
        values = threads.run_block(before)
        held = threads.require_certain(before.last_op.condition, "the condition of scf.while")
        passed = _update_active(threads, values[1:], passed)
        threads.active = threads.active & held.astype(bool)
        if not threads.active.any():
            threads.active = outside
            _bind(threads, op.results, passed)
            return
        _bind(threads, after.args, passed)
        carried = _update_active(threads, threads.run_block(after), carried)
    raise FragirError(
        f"scf.while has gone on for {MOST_TURNS} turns", hint="does its condition ever fail?"
    )


def _update_active(
    threads: BlockThreads, new: Sequence[Bounded], old: Sequence[Bounded]
) -> list[Bounded]:
    """New values in the threads that execute."""
    pairs = zip(new, old, strict=True)
    return [threads.select(threads.active, x, y) for x, y in pairs]


def _bind(threads: BlockThreads, values: Sequence[SSAValue], found: Sequence[Bounded]) -> None:
    for value, x in zip(values, found, strict=True):
        threads[value] = x
