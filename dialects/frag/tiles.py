"""Tiles from and to memory: load and store."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    MemRefType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    MemoryReadEffect,
    MemoryWriteEffect,
)
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_bits, is_predicate
from fragir.dialects.frag.attributes import (
    DIMENSIONS,
    ExplicitLayoutAttr,
    LayoutAttr,
    MmaLayoutAttr,
)
from fragir.dialects.frag.memory_layout import check_inside, check_memory, last_two_turned
from fragir.dialects.frag.types import TileType, is_shared, tile_of
from fragir.dialects.interfaces import (
    IN_LANE,
    DimensionsInterface,
    FragmentwiseInterface,
    LayoutDemand,
    LayoutInterface,
    MemoryInterface,
    Names,
    Threads,
    made_of,
)
from fragir.dialects.shorthands import integers, memref_type
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.dialects.frag.access_cost import TileMemory

Index = int | SSAValue | Operation


def split_indices(indices: Sequence[Index]) -> tuple[list[SSAValue], DenseArrayBase]:
    """The operands and the static list that `custom<DynamicIndexList>` prints as `[%i, 0]`."""
    dynamic = [SSAValue.get(i) for i in indices if not isinstance(i, int)]
    static = [i if isinstance(i, int) else DYNAMIC_INDEX for i in indices]
    return dynamic, DenseArrayBase.from_list(i64, static)


def join_indices(dynamic: Sequence[SSAValue], static: DenseArrayBase) -> list[int | SSAValue]:
    """Every index of `[%i, 0]` in order, constants as numbers."""
    values = iter(dynamic)
    return [next(values) if n == DYNAMIC_INDEX else n for n in integers(static)]


def check_access(
    op: Operation,
    memory: MemRefType[Attribute],
    tile: TileType,
    indices: Sequence[int | SSAValue],
    *,
    transposed: bool,
    masked: bool,
    broadcast: bool = False,
) -> None:
    """Whether a tile fits into a memref at these indices; VerifyException with a way out."""
    check_memory(op.name, memory)
    rank, wanted = len(memory.get_shape()), len(tile.shape)
    if len(indices) != rank:
        raise VerifyException(
            f"{op.name}: {memory} takes {rank} indices, one a dimension, but {len(indices)} are "
            "given"
        )
    if rank < wanted and not broadcast:
        raise VerifyException(f"{op.name}: a {wanted}-dimensional tile needs as many of {memory}")
    if is_predicate(tile.element_type):
        raise VerifyException(
            f"{op.name}: memory holds no i1; store i8 (frag.cast), load i8 and compare in frag.map"
        )
    if memory.element_type != tile.element_type:
        raise VerifyException(
            f"{op.name}: the memory holds {memory.element_type}, the tile {tile.element_type}; "
            "load what is there and use frag.cast"
        )
    if transposed and wanted < 2:
        raise VerifyException(f"{op.name}: a tile of one dimension cannot be transposed")
    if masked:
        return
    extents = last_two_turned(tile.shape) if transposed else tile.shape
    sizes = memory.get_shape()
    if broadcast:
        along = zip(sizes[-wanted:], extents[max(0, wanted - rank) :], strict=True)
        extents = tuple(1 if size == 1 else extent for size, extent in along)
    check_inside(op.name, sizes, indices, (*[1] * (rank - len(extents)), *extents))


@op_definition
class LoadOp(
    IRDLOperation, LayoutInterface, FragmentwiseInterface, MemoryInterface, DimensionsInterface
):
    """Reads a tile from global or shared memory; the indices are those of its first element.

    The tile covers the last dimensions of the memory. `transposed`: memory holds the transposed
    matrix, so that the tile's element (r, c) stands at [i + c, j + r]; of more dimensions the last
    two are turned. `masked`: elements outside
    the memory's shape, on whichever side, read as `other`, a scalar, or as zero; without it they
    must not exist. `broadcast`: a memref of one dimension is one value a column, and one of size 1
    of the last two dimensions stands for every row or column.
    """

    name = "frag.load"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    memory = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    other = opt_operand_def(_T)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    transposed = opt_prop_def(UnitAttr)
    masked = opt_prop_def(UnitAttr)
    broadcast = opt_prop_def(UnitAttr)
    tile = result_def(TileType.constr(element_type=_T))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$memory `` custom<DynamicIndexList>($indices, $static_indices)"
        " (`transposed` $transposed^)? (`masked` $masked^)? (`other` $other^)?"
        " (`broadcast` $broadcast^)? attr-dict `:` type($memory) `->` type($tile)"
    )

    def __init__(
        self,
        memory: SSAValue | Operation,
        indices: Sequence[Index],
        tile: TileType,
        *,
        transposed: bool = False,
        masked: bool = False,
        other: SSAValue | Operation | None = None,
        broadcast: bool = False,
    ):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[memory, dynamic, other],
            properties={
                "static_indices": static,
                "transposed": UnitAttr() if transposed else None,
                "masked": UnitAttr() if masked else None,
                "broadcast": UnitAttr() if broadcast else None,
            },
            result_types=[tile],
        )

    def all_indices(self) -> list[int | SSAValue]:
        """One index a dimension of the memory, constants as numbers."""
        return join_indices(self.indices, self.static_indices)

    def proposals(self, layout: Attribute, threads: Threads) -> Iterator[LayoutDemand]:
        """The tile in wide accesses, each warp with the same part of it; and rows of memory in the
        order in which the tile has them.
        """
        yield from _wide_demands(self, self.tile, layout, threads)
        yield from _rows(self, layout)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """The accesses of a warp."""
        return _access_cost(self, self.tile, layouts, threads)

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """Where it is known which rows of the memory the tile has."""
        return _knows_rows(self)

    def repeats(self) -> bool:
        """Always: right behind it memory is as it was."""
        return True

    def reads(self) -> tuple[SSAValue]:
        """The memory."""
        return (self.memory,)

    def where(self) -> Hashable:
        """What tells where each element lies; a broadcast reads one element for many places."""
        if self.broadcast is not None:
            return None
        return tuple(self.all_indices()), self.transposed is not None

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The memory: the tile covers its last dimensions."""
        if len(names) == 2 and len(self.tile.type.shape) == 3:
            names = (*names, "p")
        rank = len(memref_type(self.memory.type).get_shape())
        leading = rank - len(self.tile.type.shape)
        turned = names if self.transposed is None else last_two_turned(names)
        return self.memory, (*[None] * leading, *turned)

    def verify_(self) -> None:
        memory, tile = memref_type(self.memory.type), self.tile.type
        if self.broadcast is not None:
            if self.transposed is not None or is_shared(memory) or len(tile.shape) != 2:
                raise VerifyException(
                    "frag.load: `broadcast` reads global memory into a tile of two dimensions"
                )
            if not memory.get_shape():
                raise VerifyException("frag.load: `broadcast` reads one dimension or more")
        if self.other is not None:
            _check_other(self, tile)
        check_access(
            self,
            memory,
            tile,
            self.all_indices(),
            transposed=self.transposed is not None,
            masked=self.masked is not None,
            broadcast=self.broadcast is not None,
        )


def _check_other(op: LoadOp, tile: TileType) -> None:
    """Whether elements of the tile may stand for what lies outside."""
    if op.masked is None:
        raise VerifyException("frag.load: `other` is read outside of the memory; write `masked`")
    if element_bits(tile.element_type) < 8:
        raise VerifyException(
            f"frag.load: no single {tile.element_type} is a scalar; what lies outside is zero"
        )


@op_definition
class StoreOp(
    IRDLOperation, LayoutInterface, FragmentwiseInterface, MemoryInterface, DimensionsInterface
):
    """Writes a tile to global or shared memory; words as in `frag.load`."""

    name = "frag.store"
    tile = operand_def(TileType)
    memory = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    transposed = opt_prop_def(UnitAttr)
    masked = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryWriteEffect())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$tile `,` $memory `` custom<DynamicIndexList>($indices, $static_indices)"
        " (`transposed` $transposed^)? (`masked` $masked^)? attr-dict"
        " `:` type($tile) `,` type($memory)"
    )

    def __init__(
        self,
        tile: SSAValue | Operation,
        memory: SSAValue | Operation,
        indices: Sequence[Index],
        *,
        transposed: bool = False,
        masked: bool = False,
    ):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[tile, memory, dynamic],
            properties={
                "static_indices": static,
                "transposed": UnitAttr() if transposed else None,
                "masked": UnitAttr() if masked else None,
            },
        )

    def all_indices(self) -> list[int | SSAValue]:
        """One index a dimension of the memory, constants as numbers."""
        return join_indices(self.indices, self.static_indices)

    def proposals(self, layout: Attribute, threads: Threads) -> Iterator[LayoutDemand]:
        """The tile in wide accesses, each warp with the same part of it."""
        yield from _wide_demands(self, self.tile, layout, threads)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """The accesses of a warp."""
        return _access_cost(self, self.tile, layouts, threads)

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """Where it is known which rows of the memory the tile has."""
        return _knows_rows(self)

    def writes(self) -> tuple[SSAValue]:
        """The memory."""
        return (self.memory,)

    def where(self) -> Hashable:
        """What tells where each element lies."""
        return tuple(self.all_indices()), self.transposed is not None

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """What is stored is taken for C of a product."""
        tile = tile_of(self.tile)
        if len(tile.shape) in (2, 3):
            names = made_of(self.tile, ("m", "n", "p")[: len(tile.shape)])
            yield self.memory, names if self.transposed is None else last_two_turned(names)

    def verify_(self) -> None:
        memory, tile = memref_type(self.memory.type), tile_of(self.tile)
        check_access(
            self,
            memory,
            tile,
            self.all_indices(),
            transposed=self.transposed is not None,
            masked=self.masked is not None,
        )


def _access_cost(
    op: LoadOp | StoreOp, tile: SSAValue, layouts: Mapping[SSAValue, Attribute], threads: Threads
) -> float:
    """What it costs to load or store a tile in a layout."""
    from fragir.dialects.frag.access_cost import access_cost

    memory, layout = memory_at(op, tile, threads), layouts[tile]
    if memory is None or not isinstance(layout, LayoutAttr):
        return 0.0
    places = layout.layout(*tile_of(tile).shape)
    order = layouts.get(op.memory)
    if isinstance(order, ExplicitLayoutAttr):
        from fragir.dialects.frag.row_orders import tile_in_rows_order  # few programs need it

        row = op.all_indices()[-2]
        assert isinstance(row, int)
        found = tile_in_rows_order(places, 1 - memory.along, row, order.data)
        if found is None:
            return inf
        places = found
    if memory.swizzle is None and isinstance(layout, MmaLayoutAttr) and layout.data.orders:
        from fragir.dialects.frag.access_cost import beside  # few programs need it

        return access_cost(beside(places, memory.along), places.size("element"), memory)
    return access_cost(places, layout.chunk, memory)


def _rows(op: LoadOp | StoreOp, layout: Attribute) -> Iterator[LayoutDemand]:
    """The order of rows of shared memory in which a tile's fragments have them as if in order."""
    if not isinstance(layout, MmaLayoutAttr) or not layout.data.orders or not _knows_rows(op):
        return
    memory = memref_type(op.memory.type)
    if not is_shared(memory):
        return
    from fragir.dialects.frag.row_orders import row_order  # few programs need it

    row = DIMENSIONS[layout.data.operand][0 if op.transposed is None else 1]
    for name, order in layout.data.orders:
        if name == row:
            with suppress(FragirError):
                rows = row_order(order, memory.get_shape()[-2])
                yield LayoutDemand(op.memory, rows, "rows")


def _knows_rows(op: LoadOp | StoreOp) -> bool:
    """Whether a tile is a matrix whose first row in memory is known."""
    matrix = len(tile_of(op.tile).shape) == 2 and len(op.static_indices) >= 2
    return matrix and isinstance(op.all_indices()[-2], int)


def _wide_demands(
    op: LoadOp | StoreOp, tile: SSAValue, layout: Attribute, threads: Threads
) -> Iterator[LayoutDemand]:
    """The layouts beside a layout in which accesses are wide."""
    from fragir.dialects.frag.access_cost import neighbours_first, rows_beside, rows_of_block

    memory = memory_at(op, tile, threads)
    if memory is not None and isinstance(layout, LayoutAttr):
        places = layout.layout(*tile_of(tile).shape)
        if memory.swizzle is not None:
            found = neighbours_first(places, memory)
            if found is not None:
                yield LayoutDemand(tile, ExplicitLayoutAttr(found), IN_LANE)
            return
        rows = rows_of_block(places, layout.chunk, memory) if isinstance(op, StoreOp) else None
        for found, role in ((rows_beside(places, memory), "wide accesses"), (rows, "whole rows")):
            if found is not None:
                yield LayoutDemand(tile, ExplicitLayoutAttr(found), role)


def memory_at(op: LoadOp | StoreOp, tile: SSAValue, threads: Threads) -> TileMemory | None:
    """Where a tile lies in memory; None where that has no price."""
    from fragir.dialects.frag.access_cost import memory_of

    if isinstance(op, LoadOp) and op.broadcast is not None:
        return None
    return memory_of(
        op,
        op.memory,
        op.all_indices(),
        tile_of(tile),
        transposed=op.transposed is not None,
        masked=op.masked is not None,
        target=threads.target,
    )
