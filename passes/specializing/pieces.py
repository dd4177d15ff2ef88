"""A store and what it stores, column by column of pieces: fewer registers, less memory at a time.

What is computed element by element for a store alone, loads among it, is computed for each piece;
of other tiles pieces are taken, which costs nothing where lanes hold whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.shorthands import memref_type
from fragir.passes.pipelining.insertion import insert_before

Index = int | SSAValue
TENSOR_LOAD = "frag.tcgen05_load"
_ALONG = ("frag.load", "frag.map", "frag.cast", "frag.fill", "frag.transpose", TENSOR_LOAD)


def chain_of(store: frag.StoreOp) -> Iterator[Operation]:
    """What is computed element by element for a store alone, in its block."""
    work = [store.tile]
    for value in work:
        op = value.owner
        if isinstance(op, Operation) and _goes_along(value, store):
            yield op
            work += [v for v in op.operands if frag.held_tile(v.type) is not None]


def _goes_along(value: SSAValue, store: frag.StoreOp) -> bool:
    op = value.owner
    if not isinstance(op, Operation) or op.name not in _ALONG:
        return False
    if op.parent is not store.parent or not value.has_one_use():
        return False
    if op.name == TENSOR_LOAD and isinstance(value.get_user_of_unique_use(), frag.TransposeOp):
        return False  # pieces of rows, which are lanes
    return frag.tile_of(value).placement is None and len(frag.tile_of(value).shape) == 2


def cut_into_pieces(store: frag.StoreOp, widths: Sequence[int]) -> list[frag.StoreOp]:
    """Stores of groups of so many columns, in place of a store of a tile of two dimensions."""
    at = InsertPoint.before(store)
    found: list[frag.StoreOp] = []
    for first, width in zip(accumulate(widths, initial=0), widths, strict=False):
        transposed, piece = store.transposed is not None, _Piece(store, at, first, width)
        made = frag.StoreOp(
            piece.of(store.tile, 1),
            store.memory,
            piece.moved_indices(store.all_indices(), 1, transposed),
            masked=store.masked is not None,
            transposed=transposed,
        )
        made.location = store.location
        Rewriter.insert_op(made, at)
        found.append(made)
    left = [store, *chain_of(store)]
    for op in left:
        if isinstance(op, frag.TensorLoadOp):
            _release_behind(op, found[-1])
    for op in left:
        Rewriter.erase_op(op, safe_erase=False)
    return found


def _release_behind(load: frag.TensorLoadOp, last: frag.StoreOp) -> None:
    """The slot of tensor memory is held until its last piece is stored."""
    part = load.memory.owner
    assert isinstance(part, frag.PartOp)
    for use in list(part.slot.uses):
        if isinstance(use.operation, frag.ReleaseOp):
            use.operation.detach()
            Rewriter.insert_op(use.operation, InsertPoint.before(last))


class _Piece:
    """Some columns of what is stored, or rows where it is transposed on the way."""

    def __init__(self, store: frag.StoreOp, at: InsertPoint, first: int, width: int):
        self._store, self._at, self._first, self._width = store, at, first, width
        self._indices: dict[SSAValue, SSAValue] = {}

    def of(self, value: SSAValue, dim: int) -> SSAValue:
        """The piece of a tile along a dimension."""
        type_ = self._narrow_type(value, dim)
        op = value.owner
        if not _goes_along(value, self._store):
            offsets = [self._first if d == dim else 0 for d in range(len(type_.shape))]
            return self._put(frag.SliceTileOp(value, offsets, type_), value)
        match op:
            case frag.LoadOp():
                return self._put(self._load(op, type_, dim), value)
            case frag.TensorLoadOp():
                return self._put(frag.TensorLoadOp(op.memory, type_, op.first + self._first), value)
            case frag.CastOp():
                return self._put(frag.CastOp(self.of(op.source, dim), type_), value)
            case frag.TransposeOp():
                return self._put(
                    frag.TransposeOp(self.of(op.source, op.order[dim]), op.order), value
                )
            case frag.MapOp():
                tiles = [self.of(tile, dim) for tile in op.tiles]
                body = Region()
                op.body.clone_into(body)
                return self._put(frag.MapOp(tiles, body, type_), value)
            case _:
                assert isinstance(op, frag.FillOp)
                return self._put(frag.FillOp(op.value, type_), value)

    def _load(self, op: frag.LoadOp, type_: frag.TileType, dim: int) -> frag.LoadOp:
        transposed, indices = op.transposed is not None, op.all_indices()
        if op.broadcast is not None:
            sizes = memref_type(op.memory.type).get_shape()
            place = dim - 2 + len(sizes)
            spread = place < 0 or sizes[place] == 1
            if not spread:
                indices = self.moved_indices(indices, dim, False)
        else:
            indices = self.moved_indices(indices, dim, transposed)
        return frag.LoadOp(
            op.memory,
            indices,
            type_,
            transposed=transposed,
            masked=op.masked is not None,
            other=op.other,
            broadcast=op.broadcast is not None,
        )

    def _narrow_type(self, value: SSAValue, dim: int) -> frag.TileType:
        type_ = frag.tile_of(value)
        shape = tuple(self._width if d == dim else size for d, size in enumerate(type_.shape))
        return frag.TileType(shape, type_.element_type)

    def _put(self, op: Operation, value: SSAValue) -> SSAValue:
        op.location = self._store.location
        return insert_before(op, self._at, value.name_hint)

    def moved_indices(self, indices: list[Index], dim: int, transposed: bool) -> list[Index]:
        """Indices of memory moved to the piece along a dimension of a tile of two."""
        if self._first == 0:
            return indices
        place = len(indices) - 2 + (1 - dim if transposed else dim)
        old = indices[place]
        if isinstance(old, int):
            new: Index = old + self._first
        else:
            known = self._indices.get(old)
            if known is None:
                step = insert_before(
                    arith.ConstantOp(IntegerAttr(self._first, IndexType())), self._at
                )
                known = insert_before(arith.AddiOp(old, step), self._at, old.name_hint)
                self._indices[old] = known
            new = known
        return [new if number == place else index for number, index in enumerate(indices)]
