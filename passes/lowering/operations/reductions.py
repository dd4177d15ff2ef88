"""Tiles that lose a dimension, by words or a region, that gain one, and scans along one."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.dialects.frag.reductions import PLACES, reduced_layout
from fragir.dialects.frag.types import tile_of
from fragir.passes.lowering.combining import Combining, RegionCombining
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.reduction import Reduction
from fragir.passes.lowering.scan import Scan

# --- reductions and repetition --------------------------------------------------------------------


def reduce(lanes: Lanes, op: frag.ReduceOp) -> None:
    kind = op.kind.data
    combining = Combining(lanes, kind, element_name(tile_of(op.source).element_type))
    found = Reduction(lanes, [op.source], op.along, combining, places=kind in PLACES).run()
    bind_reduced(lanes, op.source, op.along, op.result, found[-1])


def bind_reduced(
    lanes: Lanes, source: SSAValue, along: int, result: SSAValue, values: Sequence[SSAValue]
) -> None:
    """Gives a tile of a dimension less, or a number, its values in the order of that layout."""
    if not isinstance(result.type, frag.TileType):
        lanes.bind_scalar(result, values[0])
        return
    tile = tile_of(source)
    found = result.type.with_layout(reduced_layout(tile.layout, tile.shape, along))
    lanes.bind(result, lanes.convert(found, result.type, values))


def broadcast(lanes: Lanes, op: frag.BroadcastOp) -> None:
    """Every element is one that the lane has already, in another register or the same one."""
    source, result = tile_of(op.source), op.result.type
    layout = reduced_layout(result.layout, result.shape, op.dim)
    wanted = source.with_layout(layout)
    elements = lanes.convert(source, wanted, lanes.elements(op.source))
    held = dict(zip(lanes.points_of(wanted), elements, strict=True))
    places = (point[: op.dim] + point[op.dim + 1 :] for point in lanes.points(op.result))
    lanes.bind(op.result, [held[place] for place in places])


# --- reductions by a region -----------------------------------------------------------------------


def reduce_by(lanes: Lanes, op: frag.ReduceByOp) -> None:
    combining = RegionCombining(lanes, op.body.block)
    found = Reduction(lanes, op.tiles, op.along, combining).run()
    for tile, result, values in zip(op.tiles, op.reduced, found, strict=True):
        bind_reduced(lanes, tile, op.along, result, values)


# --- scans ----------------------------------------------------------------------------------------


def scan(lanes: Lanes, op: frag.ScanOp) -> None:
    lanes.bind(op.result, Scan(lanes, op).run())
