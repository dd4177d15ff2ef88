"""Where a conversion that a function could do without has room: in shared memory, in registers."""

from __future__ import annotations

from math import prod

from xdsl.dialects import func, memref
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.interfaces import FragmentwiseInterface
from fragir.dialects.narrow import memref_type
from fragir.passes.lowering.deferred import defers
from fragir.ptx.machines import STATIC_SHARED


def room_of(function: func.FuncOp) -> int:
    """Bytes up to what a kernel may have without asking for more at its launch."""
    taken = 0
    for op in function.walk():
        if isinstance(op, memref.AllocOp):
            taken += _bytes(op.memref.type)
        elif op.name == "frag.ring":
            assert isinstance(op, frag.RingOp)
            taken += op.count * sum(map(_bytes, op.ring.type.parts))
    return STATIC_SHARED - taken


def _bytes(memory: Attribute) -> int:
    type_ = memref_type(memory)
    return prod(type_.get_shape()) * ptx.bits(type_.element_type) // 8


def fits(tile: SSAValue, room: int) -> bool:
    """Whether a tile goes through that much memory in one piece."""
    type_ = frag.tile_of(tile)
    return prod(type_.shape) * ptx.bits(type_.element_type) // 8 <= room


def is_streamed(tile: SSAValue) -> bool:
    """Whether a tile is made fragment by fragment of what is loaded for it.

    To convert it, all of that would have to be in registers at once.
    """
    op = tile.owner
    if not isinstance(op, FragmentwiseInterface) or not defers(op):
        return False
    tiles = [v for v in op.operands if frag.held_tile(v.type) is not None]
    return isinstance(op, frag.LoadOp) or any(is_streamed(v) for v in tiles)
