"""Grids: loops over tiles that blocks share out, clusters, blocks that come last, first rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp

from fragir.dialects import frag
from fragir.dialects.frag.kernels import cluster_of
from fragir.dialects.frag.raster import Along
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.memory import BoundedMemory
from fragir.reference.run import Run
from fragir.scheduling.l2 import tile_order

# --- loops over tiles -----------------------------------------------------------------------------


def for_tiles(run: Run, op: frag.ForTilesOp) -> None:
    for starts in _share(run, op):
        for argument, start in zip(op.body.block.args, starts, strict=True):
            run[argument] = exactly(np.int64(start))
        run.run_block(op.body.block)


def grid_size(run: Run, op: frag.GridSizeOp) -> None:
    run[op.result] = exactly(np.int64(run.grid["xyz".index(op.dimension.data.value)]))


def _share(run: Run, op: frag.ForTilesOp) -> Iterator[list[int]]:
    """The first elements of the tiles that this block visits.

    Blocks are counted along x, y, z of the grid; the i-th of n clusters visits every n-th tile
    from the i-th on, of which each of its blocks has another row. A grid without whole clusters, as
    of a program whose grid is not chosen yet, is one of single blocks.
    """
    x, y, z = run.block_id
    number, blocks = x + run.grid[0] * (y + run.grid[1] * z), prod(run.grid)
    if op.ends is not None:
        yield from _of_groups(run, op, number, blocks)
        return
    cluster = 1 if blocks % op.blocks else op.blocks
    tile, extents = op.tile_shape, run.numbers(op.all_extents())
    *outer, rows, columns = (-(-n // size) for n, size in zip(extents, tile, strict=True))
    order = "rows" if op.order is None else op.order.data
    group = 8 if op.group is None else op.group.value.data
    places = [
        (*matrix, cluster * row + number % cluster, column)
        for matrix in product(*(range(count) for count in outer))
        for row, column in tile_order(-(-rows // cluster), columns, order, group)
    ]
    block, count = number // cluster, blocks // cluster
    along = op.along()
    if along is None:
        turns: Iterable[tuple[int, tuple[int, ...]]]
        turns = ((tile, ()) for tile in range(block, len(places), count))
    else:
        (extent,) = run.numbers([along.extent])
        turns = _parts(along, extent, len(places), block, count)
    share, shares = op.shared_out
    for at, part in islice(turns, share, None, shares):
        yield [*(i * size for i, size in zip(places[at], tile, strict=True)), *part]


def _of_groups(run: Run, op: frag.ForTilesOp, number: int, blocks: int) -> Iterator[list[int]]:
    """The tiles of groups of rows: bands of one after the other, from column to column."""
    assert op.ends is not None
    ends = run.memory(op.ends)
    if ends.bound.any():
        raise FragirError("where groups of rows end is not known here")
    rows, columns = op.tile_shape
    _, across = run.numbers(op.all_extents())
    places: list[list[int]] = []
    start = 0
    for group, end in enumerate(map(int, ends.value)):
        places += [
            [row, column, group, end]
            for row in range(start, end, rows)
            for column in range(0, across, columns)
        ]
        start = end
    share, shares = op.shared_out
    yield from places[number::blocks][share::shares]


def _parts(
    along: Along, extent: int, tiles: int, block: int, blocks: int
) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """The tiles of which a block adds up a part, each with from, to, part and parts."""
    size, count = along.step, -(-extent // along.step)

    def turn(tile: int, first: int, end: int, part: int, parts: int) -> Any:
        return tile, (first * size, min(end * size, extent), part, parts)

    if not along.even:
        each = -(-count // along.parts)
        for number in range(block, tiles * along.parts, blocks):
            part, tile = divmod(number, tiles)
            yield turn(tile, part * each, (part + 1) * each, part, along.parts)
        return
    count = max(count, 1)
    share = max(-(-tiles * count // blocks), -(-count // (along.parts - 1)))
    first, end = block * share, min((block + 1) * share, tiles * count)
    for tile in range(first // count, -(-end // count)):
        start, after = tile * count, (tile + 1) * count
        before, last = start // share, (after - 1) // share
        yield turn(
            tile,
            max(first, start) - start,
            min(end, after) - start,
            block - before,
            last - before + 1,
        )


# --- clusters -------------------------------------------------------------------------------------


def rank(run: Run, op: frag.ClusterRankOp) -> None:
    function = op.parent_op()
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    sizes = (1, 1, 1) if function is None else cluster_of(function)
    x, y, z = (at % size for at, size in zip(run.block_id, sizes, strict=True))
    run[op.result] = exactly(np.int64(x + sizes[0] * (y + sizes[1] * z)))


# --- blocks that have come ------------------------------------------------------------------------


def arrive(run: Run, op: frag.ArriveOp) -> None:
    """One block comes after the other."""
    (parts,) = run.numbers([op.parts])
    memory, place = run.memory(op.memory), tuple(run.numbers(op.all_indices()))
    count = memory.at(place)
    if count.bound.any():
        raise FragirError("how many blocks have arrived is not known here")
    there = int(count.value) + 1
    memory.value[place] = 0 if there == parts else there
    run[op.is_last] = exactly(np.bool_(there == parts))


# --- the first rows -------------------------------------------------------------------------------


def head(run: Run, op: frag.HeadOp) -> None:
    memory = run.memory(op.memory)
    (end,) = run.numbers([op.end])
    if not 0 <= end <= len(memory.value):
        raise FragirError(f"frag.head to {end} of {len(memory.value)} rows")
    run[op.result] = BoundedMemory(memory.value[:end], memory.bound[:end], memory.element)


# -- row groups ------------------------------------------------------------------------------------
# Products of groups of rows, each with a matrix of its own.

Finish = Callable[[Bounded, Bounded, Sequence[Bounded]], Bounded]


def grouped_product(
    run: Run,
    op: frag.MatmulOp,
    a: Bounded,
    b: Bounded,
    multiply: Callable[[Bounded, Bounded, int, slice], Bounded],
    finish: Finish,
) -> None:
    """Writes the rows of each group. `multiply` is given the group and which rows it has, too;
    `finish` is what follows a sum, given old rows and extras.
    """
    assert op.ends is not None
    ends = run.memory(op.ends)
    if ends.bound.any():
        raise FragirError("where groups of rows end is not known here")
    c, rows = run.memory(op.c), len(a.value)
    if len(ends.value) != len(b.value):
        raise FragirError(f"{len(ends.value)} groups of rows for {len(b.value)} matrices of B")
    start = 0
    for group, end in enumerate(map(int, ends.value)):
        if not start <= end <= rows:
            raise FragirError(f"group {group} of {rows} rows begins at {start} and ends at {end}")
        if end > start:
            own = slice(start, end)
            matrix = Bounded(b.value[group], b.bound[group])
            total = multiply(_rows(a, own), matrix, group, own)
            old = Bounded(c.value[own].copy(), c.bound[own].copy())
            extra = [_of_rows(run[value], own, rows) for value in op.extra]
            result = finish(total, old, extra)
            c.value[own], c.bound[own] = result.value, result.bound
        start = end


def _rows(x: Bounded, own: slice) -> Bounded:
    return Bounded(x.value[own], x.bound[own])


def _of_rows(x: Bounded, own: slice, rows: int) -> Bounded:
    """Some rows of what is broadcast to all."""
    has_rows = x.value.ndim == 2 and len(x.value) == rows and rows != 1
    return _rows(x, own) if has_rows else x
