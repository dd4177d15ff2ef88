"""Memory at computed places: single numbers that all lanes read, gather, scatter."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.utils.exceptions import VerifyException

from fragir.dialects import frag, ptx
from fragir.dialects.frag.memory_layout import check_inside
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.passes.lowering.indexed_access import IndexedAccess
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.memory import MemoryPlace, address
from fragir.passes.lowering.positions import NOWHERE


def load_scalar(lanes: Lanes, op: memref.LoadOp) -> None:
    """One element, at the same place for every lane of the block."""
    type_, state = memref_type(op.memref.type), lanes.state
    if frag.is_shared(type_):
        raise FragirError(
            f"a scalar is read from global memory, not from {type_}",
            hint="load a tile of it: frag.load",
        )
    if ptx.bits(type_.element_type) < 8:
        raise FragirError(f"no single {type_.element_type} is a scalar; load a tile of them")
    memory, at = lanes.memory(op.memref), [state.values[index] for index in op.indices]
    known = [index if isinstance(index, int) else value for index, value in zip(at, op.indices)]
    try:
        check_inside(op.name, type_.get_shape(), known, [1] * len(known), maskable=False)
    except VerifyException as error:
        raise FragirError(str(error).removeprefix(f"{op.name}: ")) from error
    place = MemoryPlace((NOWHERE,) * len(at), tuple(at))
    pointer, offset = address(state.ar, memory, place, (0,) * len(at))
    loaded = state.ar.insert(ptx.LoadOp(pointer, offset, type_.element_type), op.res.name_hint)
    lanes.bind_scalar(op.res, loaded.value)


def gather(lanes: Lanes, op: frag.GatherOp) -> None:
    other = None if op.other is None else lanes.scalar(op.other)
    access = IndexedAccess(lanes, op, writes=False, other=other)
    lanes.bind_each(op.tile, access.load_chunk)


def scatter(lanes: Lanes, op: frag.ScatterOp) -> None:
    IndexedAccess(lanes, op, writes=True).store_parts(lanes.fragments(op.tile))
