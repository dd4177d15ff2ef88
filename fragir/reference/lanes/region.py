"""The meaning of `frag.lanes`: tiles to each thread's registers, a region, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fragir.dialects import frag
from fragir.layout import Layout
from fragir.passes.scopes import threads_at
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import Array, type_name
from fragir.reference.indexed import write_one
from fragir.reference.lanes import collective as collective  # these attach what opcodes mean
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
