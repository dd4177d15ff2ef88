"""The last resort: other shapes of tiles through shared memory, where registers cannot hold them.

What only renames registers (`frag.reshape`, `frag.slice`, ...) may take so many of a lane, or ask
for layouts that do not go together. Then some of these operations are `staged`: their tiles have
any layouts, and their elements go through shared memory. A remark says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

from fragir.diagnostics import LocatedFailure, trial
from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.regrouped import STAGED, RenamingOp
from fragir.dialects.limits import LANE_REGISTERS
from fragir.errors import FragirError
from fragir.passes.placing.inference import Inference
from fragir.passes.placing.relations import Demand, Plain


class PlacedTiles(NamedTuple):
    """The layouts of the tiles that some threads hold."""

    plain: Plain
    inference: Inference | None

    def demands(self) -> Iterator[tuple[SSAValue, frag.LayoutAttr, Demand | None]]:
        """Every tile with its layout, and who wants that."""
        for demand, values in self.plain.placed:
            for value in values:
                yield value, demand.layout, demand
        for chosen in () if self.inference is None else self.inference.chosen:
            for site, candidate in chosen.layouts.items():
                for point in site.points:
                    if isinstance(point, SSAValue) and frag.held_tile(point.type) is not None:
                        yield point, candidate.layout, candidate.demand


Attempt = Callable[[], PlacedTiles]
"""Places all tiles, as the operations are now. Raises where that cannot be."""
_REFUSED = (PassFailedException, DiagnosticException, FragirError)


def placed(operations: Sequence[Operation], attempt: Attempt) -> tuple[PlacedTiles, list[str]]:
    """What an attempt finds with as few staged operations as it takes, and remarks on those."""
    renaming = [op for op in operations if isinstance(op, RenamingOp) and not op.staged]
    if not renaming:
        return attempt(), []
    staged: list[RenamingOp] = []
    while True:
        found: PlacedTiles | None = None
        refused_at: Operation | None = None
        try:
            with trial():
                found = attempt()
        except _REFUSED as error:
            refused_at = error.op if isinstance(error, LocatedFailure) else None
        if found is not None:
            culprits = _culprits(found)
        elif isinstance(refused_at, RenamingOp) and not refused_at.staged:
            culprits = [refused_at]
        else:
            culprits = renaming
        culprits = [op for op in culprits if not op.staged]
        if found is not None and not culprits:
            return found, [_remark(op) for op in staged]
        if not culprits:
            break
        for op in culprits:
            op.attributes[STAGED] = UnitAttr()
        staged += culprits
    for op in staged:  # nothing is won
        del op.attributes[STAGED]
    return attempt(), []


def _culprits(found: PlacedTiles) -> list[RenamingOp]:
    """The operations for which lanes hold too much of a tile: who asks for that, or else all that
    have to do with it."""
    asking: dict[RenamingOp, None] = {}
    touching: dict[RenamingOp, None] = {}
    for value, layout, demand in found.demands():
        if registers(value, layout) <= LANE_REGISTERS:
            continue
        if demand is not None and isinstance(demand.op, RenamingOp):
            asking[demand.op] = None
        for op in _beside(value):
            touching[op] = None
    return list(asking or touching)


def _beside(value: SSAValue) -> Iterable[RenamingOp]:
    ops = [use.operation for use in value.uses]
    if isinstance(value.owner, Operation):
        ops.append(value.owner)
    return (op for op in ops if isinstance(op, RenamingOp))


def registers(value: SSAValue, layout: frag.LayoutAttr) -> int:
    """How many 32-bit registers of a lane a tile takes in a layout."""
    tile = frag.tile_of(value)
    elements = layout.layout(*tile.shape).sizes.get("element", 1)
    return -(-elements * element_bits(tile.element_type) // 32)


def _remark(op: RenamingOp) -> str:
    tiles = [frag.tile_of(value) for value in (*op.operands, *op.results)]
    size = max(prod(t.shape) * max(8, element_bits(t.element_type)) // 8 for t in tiles)
    return (
        f"{op.name} of {tiles[0]} goes through shared memory, {size} bytes and a barrier: lanes "
        "would have to hold too much of it"
    )
