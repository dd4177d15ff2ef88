"""The memory of a load or store, as far as costs depend on it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.constants import constant_of
from fragir.dialects.frag.access_cost import WIDEST, TileMemory, together
from fragir.dialects.frag.attributes import SharedAttr
from fragir.dialects.frag.promises import promises_of, size_names
from fragir.dialects.frag.types import TileType
from fragir.dialects.narrow import memref_type
from fragir.isa.registry import per_table
from fragir.isa.versions import has


def memory_of(
    op: Operation,
    memory: SSAValue,
    indices: Sequence[int | SSAValue],
    tile: TileType,
    *,
    transposed: bool,
    masked: bool,
    target: str,
) -> TileMemory | None:
    """Where a tile lies that an operation loads or stores; None where that has no price.

    A dynamic index counts as aligned: tiles begin at multiples of their extents.
    """
    type_ = memref_type(memory.type)
    bits = ptx.bits(type_.element_type)
    if bits < 8 or not tile.shape:
        return None
    along = len(tile.shape) - (2 if transposed else 1)
    space = type_.memory_space
    if isinstance(space, SharedAttr):
        if len(type_.get_shape()) < 2:
            return None
        name = "stmatrix" if not op.results else "ldmatrix"
        matrices = not masked and _has_matrices(name, target)
        widest = WIDEST * 8 // bits
        swizzle = space.swizzle.data
        return TileMemory(along, bits, widest, type_.get_shape(), swizzle, matrices)
    pitches = _pitches(op, memory, type_)
    if pitches is None:
        return TileMemory(along, bits, 1, masked=masked)
    known = [index for index in map(_number, indices) if index is not None]
    edge = [pitches[-1]] if masked else []  # a row may end inside of an access
    steps = together(bits, (*pitches, *known[-1:], *edge))
    return TileMemory(along, bits, steps, masked=masked)


@per_table
def _has_matrices(name: str, target: str) -> bool:
    return has(f"{name}.sync.aligned.m8n8.x1.shared.b16", target)


def _pitches(op: Operation, memory: SSAValue, type_: MemRefType[Attribute]) -> list[int] | None:
    """What divides the steps between rows, and the last extent; None where neighbours do not lie
    side by side."""
    promised = _promises(op, memory)
    sizes, strides = promised if promised is not None else (type_.get_shape(), None)
    extents = [1 if size == DYNAMIC_INDEX else size for size in sizes]
    if strides is None and not isinstance(type_.layout, StridedLayoutAttr):
        return extents[-1:]
    if strides is None or strides[-1] != 1:
        return None
    return [*strides[:-1], extents[-1]]


def _promises(op: Operation, memory: SSAValue) -> tuple[Sequence[int], Sequence[int] | None] | None:
    """What divides a function argument's extents and strides; None for other memory."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, func.FuncOp):
        parent = parent.parent_op()
    if parent is None or not isinstance(memory, BlockArgument):
        return None
    if memory.owner is not parent.body.block:
        return None
    promises = promises_of(parent)
    names, strides = size_names(parent, memory.index)
    found = [promises.get(n, 1) if isinstance(n, str) else n for n in names]
    if strides is None:
        return found, None
    return found, [promises.get(s, 1) if isinstance(s, str) else s for s in strides]


def _number(index: int | SSAValue) -> int | None:
    """An index that is a number."""
    return index if isinstance(index, int) else constant_of(index)
