"""What one of those who hold an element alike knows of it, told to the others."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.layout.replicas import Holders
from fragir.passes.lowering.access import split
from fragir.passes.lowering.arithmetic import Predicate
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.scratch_access import ScratchAccess


class _OfOne(ScratchAccess):
    """Elements that the first of their holders writes."""

    holders = Holders()

    def _predicate(self, first: int) -> Predicate:
        return self.hardware.speaks(self.holders, first)


def told_to_all(
    lanes: Lanes,
    tile: frag.TileType,
    held: Sequence[SSAValue],
    holders: Holders,
) -> list[SSAValue]:
    """The elements of a tile in every lane that holds them, from those that the first of their
    holders has: through shared memory.
    """
    state, ar = lanes.state, lanes.arithmetic
    with state.scratch.passage(ScratchAccess.bytes_of(tile), state.scratch.whole):
        writing = _OfOne(state, tile)
        writing.holders = holders
        chunk = tile.chunk
        writing.store_parts(
            [
                ar.insert(ptx.PackOp(held[first : first + chunk])).result
                for first in range(0, len(held), chunk)
            ]
        )
        ar.insert(state.scratch.whole.barrier())
        loaded = ScratchAccess(state, tile).load()
    return [x for part in loaded for x in split(ar, part, 1)]
