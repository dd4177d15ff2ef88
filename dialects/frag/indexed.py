"""Memory by tiles of indices: gather and scatter, element by element or row by row.

An index list has an entry for every dimension of the memory, each a number, an `index` or a tile of
i32. There are two forms. *Elements*: the tiles of indices have the tile's shape and say where each
element lies; numbers among them are the same for all. *Rows*: one tile of indices, of one
dimension, says where each part of the tile along its first dimension lies; the entries behind it
say where there the rest of the tile begins, as in `frag.load`.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IndexType, MemRefType, UnitAttr, i64
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    base,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_bits, element_name, is_predicate
from fragir.dialects.frag.attributes import ExplicitLayoutAttr, LayoutAttr
from fragir.dialects.frag.memory_layout import check_inside
from fragir.dialects.frag.pointwise import elementwise_cost
from fragir.dialects.frag.tiles import Index, join_indices, split_indices
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import (
    LayoutDemand,
    LayoutInterface,
    MemoryInterface,
    Threads,
)
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.layout import Layout

if TYPE_CHECKING:
    from fragir.dialects.frag.access_cost import TileMemory

#: Instructions for an element: its address, its access, the test of its place.
INSTRUCTIONS = 3


class Indexed(LayoutInterface, MemoryInterface):
    """What gather, scatter and atomics have in common: a tile, a memory, places in it."""

    if TYPE_CHECKING:  # what the operations define
        memory: SSAValue
        indices: Sequence[SSAValue]
        mask: SSAValue | None
        static_indices: DenseArrayBase
        masked: UnitAttr | None

    @abc.abstractmethod
    def tiles(self) -> tuple[SSAValue, ...]:
        """The tiles of elements, which have one layout."""

    def all_indices(self) -> list[int | SSAValue]:
        """One index a dimension of the memory: a number, an index, or a tile of indices."""
        return join_indices(self.indices, self.static_indices)

    def index_tiles(self) -> dict[int, SSAValue]:
        """The tiles of indices by dimension of the memory."""
        found = enumerate(self.all_indices())
        return {
            dim: index
            for dim, index in found
            if not isinstance(index, int) and isinstance(index.type, TileType)
        }

    @property
    def by_rows(self) -> bool:
        """Whether an index stands for a whole row: whatever the tile has behind its first
        dimension."""
        shape, tiles = tile_of(self.tiles()[0]).shape, self.index_tiles().values()
        return bool(tiles) and all(tile_of(tile).shape != shape for tile in tiles)

    @property
    def behind(self) -> int:
        """How many of the tile's last dimensions lie in memory as in `frag.load`."""
        dims = len(tile_of(self.tiles()[0]).shape)
        if not self.index_tiles():
            return dims
        return dims - 1 if self.by_rows else 0

    def _placing(self) -> list[SSAValue]:
        """The tiles that say where, and whether."""
        mask = [] if self.mask is None else [self.mask]
        return [*self.index_tiles().values(), *mask]

    def same_layout(self) -> Iterator[tuple[SSAValue, ...]]:
        """Who holds an element knows its place."""
        if self.by_rows:
            yield self.tiles()
            yield tuple(self._placing())
        else:
            yield (*self.tiles(), *self._placing())

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterator[tuple[SSAValue, Attribute]]:
        """Who holds a part of a row knows where the row lies."""
        tile = self.tiles()[0]
        if self.by_rows and tile in known:
            layout = rows_layout(known[tile], tile_of(tile).shape)
            yield from ((value, layout) for value in self._placing())

    def proposals(self, layout: Attribute, threads: Threads) -> Iterator[LayoutDemand]:
        """Of rows, the tile in wide accesses."""
        from fragir.dialects.frag.access_cost import rows_beside

        tile, memory = self.tiles()[0], self._row_memory(threads)
        places = None if memory is None else _layout_of(layout, tile)
        if memory is not None and places is not None:
            found = rows_beside(places, memory)
            if found is not None:
                yield LayoutDemand(tile, ExplicitLayoutAttr(found), "wide accesses")

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """The accesses of a warp: of rows as of a load or store, else one for each element."""
        from fragir.dialects.frag.access_cost import access_cost

        tile = self.tiles()[0]
        layout, memory = layouts.get(tile), self._row_memory(threads)
        if not isinstance(layout, LayoutAttr):
            return 0.0
        places = _layout_of(layout, tile)
        if memory is None or places is None:
            return elementwise_cost(tile, layout, INSTRUCTIONS)
        return access_cost(places, layout.chunk, memory)

    def _row_memory(self, threads: Threads) -> TileMemory | None:
        from fragir.dialects.frag.access_cost import memory_of

        if not self.by_rows:
            return None
        return memory_of(
            self,
            self.memory,
            self.all_indices(),
            tile_of(self.tiles()[0]),
            transposed=False,
            masked=self.masked is not None,
            target=threads.target,
        )

    def check_places(self) -> None:
        """VerifyException where the places do not fit the memory and the tile."""
        memory, tile = memref_type(self.memory.type), tile_of(self.tiles()[0])
        indices, rank = self.all_indices(), len(memory.get_shape())
        if len(indices) != rank:
            raise VerifyException(
                f"{self.name}: {memory} takes {rank} indices, one a dimension, but {len(indices)} "
                "are given"
            )
        if is_predicate(tile.element_type) or element_bits(tile.element_type) < 8:
            raise VerifyException(
                f"{self.name}: elements of {tile.element_type} have no place of their own in memory"
            )
        if memory.element_type != tile.element_type:
            raise VerifyException(
                f"{self.name}: the memory holds {memory.element_type}, the tile "
                f"{tile.element_type}; use frag.cast"
            )
        self.check_tiles(tile)
        if self.masked is None:
            rest = tile.shape[len(tile.shape) - self.behind :]
            extents = (*[1] * (rank - len(rest)), *rest)
            check_inside(self.name, memory.get_shape(), indices, extents)

    def check_tiles(self, tile: TileType) -> None:
        """VerifyException where shapes and types of indices and mask do not fit the tile."""
        if not self.index_tiles():
            raise VerifyException(f"{self.name}: no index is a tile; use frag.load or frag.store")
        _check_tiles(self, tile)


def _layout_of(placement: Attribute, tile: SSAValue) -> Layout | None:
    """A layout of a tile; None where it is one of other tiles, as of rows' indices."""
    if not isinstance(placement, LayoutAttr):
        return None
    try:
        return placement.layout(*tile_of(tile).shape)
    except FragirError:
        return None


def rows_layout(placement: Attribute, shape: tuple[int, ...]) -> ExplicitLayoutAttr:
    """The layout of one value for each row of a tile, from the tile's."""
    from fragir.layout.reduction import reduced

    assert isinstance(placement, LayoutAttr)
    layout = placement.layout(*shape)
    while layout.rank > 1:
        layout = reduced(layout, layout.dims[-1])
    return ExplicitLayoutAttr(layout)


def _check_tiles(op: Indexed, tile: TileType) -> None:
    """Whether shapes and types of the tiles of indices, and of the mask, fit."""
    tiles = op.index_tiles()
    types = {dim: tile_of(value) for dim, value in tiles.items()}
    for type_ in types.values():
        if element_name(type_.element_type) != "s32":
            raise VerifyException(f"{op.name}: indices are i32, not {type_.element_type}")
    shape, rank = tile.shape, len(op.all_indices())
    wanted = shape[:1] if op.by_rows else shape
    if any(type_.shape != wanted for type_ in types.values()) or (
        op.by_rows and [*types] != [rank - len(shape)]
    ):
        given = ", ".join(
            f"{'x'.join(map(str, type_.shape))} in dimension {dim}" for dim, type_ in types.items()
        )
        first = rank - len(shape)
        rows = f", or one has {shape[0]} indices of rows, in dimension {first} of the memory"
        raise VerifyException(
            f"{op.name}: tiles of indices have the shape of the tile, "
            f"{'x'.join(map(str, shape))}{rows if len(shape) > 1 else ''}, not {given}"
        )
    if op.mask is not None:
        mask = tile_of(op.mask)
        if mask.shape != wanted or not is_predicate(mask.element_type):
            raise VerifyException(
                f"{op.name}: the mask is a tile of i1 as large as the indices, not {mask}"
            )


def _properties(static: Attribute, masked: bool) -> dict[str, Attribute | None]:
    return {"static_indices": static, "masked": UnitAttr() if masked else None}


@op_definition
class GatherOp(IRDLOperation, Indexed):
    """Reads a tile from places that other tiles say.

    `masked`: elements outside the memory's shape read as `other`, a scalar, or as zero; without it
    they must not exist. `where`: so do those of which the mask does not hold.
    """

    name = "frag.gather"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    memory = operand_def(MemRefType)
    indices = var_operand_def(base(IndexType) | base(TileType))
    mask = opt_operand_def(TileType)
    other = opt_operand_def(_T)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    masked = opt_prop_def(UnitAttr)
    tile = result_def(TileType.constr(element_type=_T))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$memory `` custom<DynamicIndexList>($indices, $static_indices) (`masked` $masked^)?"
        " (`where` $mask^)? (`other` $other^)? attr-dict `:` type($memory) `,` type($indices)"
        " (`where` type($mask)^)? `->` type($tile)"
    )

    def __init__(
        self,
        memory: SSAValue | Operation,
        indices: Sequence[Index],
        tile: TileType,
        *,
        masked: bool = False,
        mask: SSAValue | Operation | None = None,
        other: SSAValue | Operation | None = None,
    ):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[memory, dynamic, mask, other],
            properties=_properties(static, masked),
            result_types=[tile],
        )

    def tiles(self) -> tuple[SSAValue, ...]:
        """What is read."""
        return (self.tile,)

    def repeats(self) -> bool:
        """Right behind it memory is as it was; but rows have indices in another layout."""
        return not self.by_rows

    def reads(self) -> tuple[SSAValue]:
        """The memory."""
        return (self.memory,)

    def verify_(self) -> None:
        self.check_places()
        if self.other is not None and self.masked is None and self.mask is None:
            raise VerifyException(
                "frag.gather: `other` stands for what is not read; write `masked` or `where`"
            )


@op_definition
class ScatterOp(IRDLOperation, Indexed):
    """Writes a tile to places that other tiles say; words as in `frag.gather`.

    Of several elements at one place one is written, it is not said which.
    """

    name = "frag.scatter"
    tile = operand_def(TileType)
    memory = operand_def(MemRefType)
    indices = var_operand_def(base(IndexType) | base(TileType))
    mask = opt_operand_def(TileType)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    masked = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$tile `,` $memory `` custom<DynamicIndexList>($indices, $static_indices)"
        " (`masked` $masked^)? (`where` $mask^)? attr-dict `:` type($tile) `,` type($memory) `,`"
        " type($indices) (`where` type($mask)^)?"
    )

    def __init__(
        self,
        tile: SSAValue | Operation,
        memory: SSAValue | Operation,
        indices: Sequence[Index],
        *,
        masked: bool = False,
        mask: SSAValue | Operation | None = None,
    ):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[tile, memory, dynamic, mask], properties=_properties(static, masked)
        )

    def tiles(self) -> tuple[SSAValue, ...]:
        """What is written."""
        return (self.tile,)

    def writes(self) -> tuple[SSAValue]:
        """The memory."""
        return (self.memory,)

    def verify_(self) -> None:
        self.check_places()
