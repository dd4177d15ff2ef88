"""Regions of lane-level code: the code itself, on the registers that hold the tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.lanes import HeldTile
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.lane_builder import REGISTER, Lanes
from fragir.passes.lowering.layout_arithmetic import NOWHERE
from fragir.passes.lowering.memory import MemoryPlace, address
from fragir.passes.lowering.tile_access import split


def region(lanes: Lanes, op: frag.LanesOp) -> None:
    state, block, held = lanes.state, op.body.block, op.held()
    numbers = (state.hardware.axis("lane"), state.hardware.axis("warp"))
    state.values.update(zip(block.args, numbers, strict=False))
    taken = block.args[len(numbers) :]
    for argument, tile, wanted in zip(taken, op.tiles, held, strict=False):
        _check(tile, wanted)
        state.values[argument] = _together(state.ar, state.tiles[tile])
    state.lower_block(block)
    last = block.last_op
    assert isinstance(last, frag.YieldOp)
    for output, value, wanted in zip(op.outputs, last.values, held[len(op.tiles) :], strict=True):
        _check(output, wanted)
        assert wanted.layout is not None
        state.tiles[output] = _split_fragments(state.ar, state.scalar(value), wanted.layout.chunk)


def _check(tile: SSAValue, wanted: HeldTile) -> None:
    """FragirError where a tile is in another layout than the region takes."""
    found = frag.tile_of(tile)
    if found.layout == wanted.layout:
        return
    if found.resolve().simplified() != wanted.placed_type.resolve().simplified():
        raise FragirError(
            f"it takes {wanted.placed_type}, not {found}", hint="run the pass frag-place first"
        )


def _is_whole(vector: SSAValue, count: int) -> bool:
    """Whether so many elements of a vector fill registers."""
    width = ptx.bits(vector.type)
    return width != 1 and width * count % REGISTER == 0


def _together(ar: Arithmetic, parts: Sequence[SSAValue]) -> SSAValue:
    """A lane's elements as one vector."""
    if len(parts) == 1:
        return parts[0]
    if all(_is_whole(part, ptx.length(part.type)) for part in parts):
        return ar.insert(ptx.ConcatOp(parts)).result
    return ar.insert(ptx.PackOp([x for part in parts for x in split(ar, part, 1)])).result


def _split_fragments(ar: Arithmetic, vector: SSAValue, chunk: int) -> list[SSAValue]:
    """A vector as one for each fragment."""
    count = ptx.length(vector.type)
    if count == chunk:
        return [vector]
    if chunk > 1 and _is_whole(vector, chunk):
        return split(ar, vector, chunk)
    scalars = split(ar, vector, 1)
    return [
        ar.insert(ptx.PackOp(scalars[first : first + chunk])).result
        for first in range(0, count, chunk)
    ]


def yield_(lanes: Lanes, op: frag.YieldOp) -> None:
    """The region around it takes the values."""


def coordinates(lanes: Lanes, op: frag.CoordinatesOp) -> None:
    tile, element = op.held().placed_type, op.element.value.data
    for dim, place in enumerate(op.place):
        lanes.state.values[place] = lanes.place(tile, dim, element)


def pointer(lanes: Lanes, op: frag.PointerOp) -> None:
    state = lanes.state
    at = tuple(state.values[index] for index in op.indices)
    place = MemoryPlace((NOWHERE,) * len(at), at)
    found, more = address(state.ar, lanes.memory(op.memory), place, (0,) * len(at))
    state.values[op.pointer] = state.ar.moved(found, more)
