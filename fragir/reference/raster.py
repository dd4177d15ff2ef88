"""The meaning of loops over tiles: each block its share."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from fragir.dialects import frag
from fragir.dialects.interfaces import MEANINGS
from fragir.reference.bounded import exactly
from fragir.reference.run import Run
from fragir.scheduling.orders import tile_order


@MEANINGS.attach(frag.ForTilesOp)
def for_tiles(run: Run, op: frag.ForTilesOp) -> None:
    for starts in _share(run, op):
        for argument, start in zip(op.body.block.args, starts, strict=True):
            run[argument] = exactly(np.int64(start))
        run.run_block(op.body.block)


@MEANINGS.attach(frag.GridSizeOp)
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
    cluster = 1 if blocks % op.blocks else op.blocks
    tile, extents = op.tile_shape, run.numbers(op.all_extents())
    *outer, rows, columns = (-(-n // size) for n, size in zip(extents, tile, strict=True))
    order = "rows" if op.order is None else op.order.data
    group = 8 if op.group is None else op.group.value.data
    places = [
        (*matrix, cluster * row + number % cluster, column)
        for matrix in ([(i,) for i in range(outer[0])] if outer else [()])
        for row, column in tile_order(-(-rows // cluster), columns, order, group)
    ]
    share, shares = op.shared_out
    for place in places[number // cluster :: blocks // cluster][share::shares]:
        yield [i * size for i, size in zip(place, tile, strict=True)]
