"""Operations on whole tiles: fill, load, store, convert, cast, map."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    MemRefType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import is_predicate
from fragir.dialects.frag.in_bounds import check_inside
from fragir.dialects.frag.types import TileType, is_shared
from fragir.dialects.interfaces import (
    DimensionsInterface,
    FragmentwiseInterface,
    LayoutInterface,
    MemoryInterface,
    Names,
    made_of,
)
from fragir.dialects.narrow import integers, memref_type

Index = int | SSAValue | Operation


def split_indices(indices: Sequence[Index]) -> tuple[list[SSAValue], DenseArrayBase[Any]]:
    """The operands and the static list that `custom<DynamicIndexList>` prints as `[%i, 0]`."""
    dynamic = [SSAValue.get(i) for i in indices if not isinstance(i, int)]
    static = [i if isinstance(i, int) else DYNAMIC_INDEX for i in indices]
    return dynamic, DenseArrayBase.from_list(i64, static)


def join_indices(dynamic: Sequence[SSAValue], static: DenseArrayBase[Any]) -> list[int | SSAValue]:
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
    if transposed and wanted != 2:
        raise VerifyException(f"{op.name}: only a tile of two dimensions can be transposed")
    if masked:
        return
    extents = tile.shape[::-1] if transposed else tile.shape
    sizes = memory.get_shape()
    if broadcast:
        along = zip(sizes, extents[wanted - rank :], strict=True)
        extents = tuple(1 if size == 1 else extent for size, extent in along)
    check_inside(op.name, sizes, indices, (*[1] * (rank - len(extents)), *extents))


@op_definition
class FillOp(IRDLOperation, FragmentwiseInterface):
    """A tile whose elements all have one value."""

    name = "frag.fill"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(_T)
    tile = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($tile)"

    def __init__(self, value: SSAValue | Operation, tile: TileType):
        super().__init__(operands=[value], result_types=[tile])


@op_definition
class LoadOp(IRDLOperation, FragmentwiseInterface, MemoryInterface, DimensionsInterface):
    """Reads a tile from global or shared memory; the indices are those of its first element.

    The tile covers the last dimensions of the memory. `transposed`: memory holds the transposed
    matrix, so that the tile's element (r, c) stands at [i + c, j + r]. `masked`: elements outside
    the memory's shape read as zero; without it they must not exist. `broadcast`: a memref of one
    dimension is one value a column, and a dimension of size 1 stands for every row or column.
    """

    name = "frag.load"
    memory = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    transposed = opt_prop_def(UnitAttr)
    masked = opt_prop_def(UnitAttr)
    broadcast = opt_prop_def(UnitAttr)
    tile = result_def(TileType)
    traits = traits_def(MemoryReadEffect())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$memory `` custom<DynamicIndexList>($indices, $static_indices)"
        " (`transposed` $transposed^)? (`masked` $masked^)? (`broadcast` $broadcast^)? attr-dict"
        " `:` type($memory) `->` type($tile)"
    )

    def __init__(
        self,
        memory: SSAValue | Operation,
        indices: Sequence[Index],
        tile: TileType,
        *,
        transposed: bool = False,
        masked: bool = False,
        broadcast: bool = False,
    ):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[memory, dynamic],
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
        turned = names if self.transposed is None else names[::-1]
        return self.memory, (*[None] * leading, *turned)

    def verify_(self) -> None:
        memory, tile = memref_type(self.memory.type), self.tile.type
        if self.broadcast is not None:
            if self.transposed is not None or is_shared(memory) or len(tile.shape) != 2:
                raise VerifyException(
                    "frag.load: `broadcast` reads global memory into a tile of two dimensions"
                )
            if len(memory.get_shape()) not in (1, 2):
                raise VerifyException("frag.load: `broadcast` reads one or two dimensions")
        check_access(
            self,
            memory,
            tile,
            self.all_indices(),
            transposed=self.transposed is not None,
            masked=self.masked is not None,
            broadcast=self.broadcast is not None,
        )


@op_definition
class StoreOp(IRDLOperation, FragmentwiseInterface, MemoryInterface, DimensionsInterface):
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

    def writes(self) -> tuple[SSAValue]:
        """The memory."""
        return (self.memory,)

    def where(self) -> Hashable:
        """What tells where each element lies."""
        return tuple(self.all_indices()), self.transposed is not None

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """What is stored is taken for C of a product."""
        tile = self.tile.type
        assert isinstance(tile, TileType)
        if len(tile.shape) in (2, 3):
            names = made_of(self.tile, ("m", "n", "p")[: len(tile.shape)])
            yield self.memory, names if self.transposed is None else names[::-1]

    def verify_(self) -> None:
        memory, tile = memref_type(self.memory.type), self.tile.type
        assert isinstance(tile, TileType)
        check_access(
            self,
            memory,
            tile,
            self.all_indices(),
            transposed=self.transposed is not None,
            masked=self.masked is not None,
        )


def _check_shapes(name: str, source: SSAValue, result: SSAValue) -> None:
    """Whether two tiles have one shape."""
    shapes = [tile.type.shape for tile in (source, result) if isinstance(tile.type, TileType)]
    if shapes[0] != shapes[1]:
        text = " and ".join("x".join(map(str, shape)) for shape in shapes)
        raise VerifyException(f"{name}: {text} differ in shape")


@op_definition
class ConvertOp(IRDLOperation, DimensionsInterface):
    """The same tile in another layout: moves elements between registers, lanes and warps."""

    name = "frag.convert"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(TileType.constr(element_type=_T))
    result = result_def(TileType.constr(element_type=_T))
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue | Operation, result: TileType):
        super().__init__(operands=[source], result_types=[result])

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, element by element."""
        return self.source, names

    def verify_(self) -> None:
        _check_shapes(self.name, self.source, self.result)


@op_definition
class CastOp(IRDLOperation, LayoutInterface, FragmentwiseInterface, DimensionsInterface):
    """The same tile with elements of another type, rounded to nearest even; layout unchanged.

    Of i1, true becomes 1 and false 0.
    """

    name = "frag.cast"
    _L: ClassVar = VarConstraint("L", AnyAttr())
    source = operand_def(TileType.constr(layout=_L))
    result = result_def(TileType.constr(layout=_L))
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue | Operation, result: TileType):
        super().__init__(operands=[source], result_types=[result])

    def same_layout(self) -> Iterable[Sequence[SSAValue]]:
        """Source and result."""
        return ((self.source, self.result),)

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, element by element."""
        return self.source, names

    def verify_(self) -> None:
        _check_shapes(self.name, self.source, self.result)
        if is_predicate(_element(self.result)) and not is_predicate(_element(self.source)):
            raise VerifyException("frag.cast gives no i1; compare in frag.map (arith.cmpf, cmpi)")


@op_definition
class MapOp(IRDLOperation, LayoutInterface, FragmentwiseInterface):
    """Applies scalar operations to every element: the region gets one element of each tile.

    All tiles have one shape and one layout. Besides its arguments the region may use scalars
    defined outside.
    """

    name = "frag.map"
    tiles = var_operand_def(TileType)
    body = region_def("single_block")
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$tiles attr-dict `:` type($tiles) `->` type($result) $body"

    def __init__(self, tiles: Sequence[SSAValue | Operation], body: Region, result: TileType):
        super().__init__(operands=[tiles], regions=[body], result_types=[result])

    def same_layout(self) -> Iterable[Sequence[SSAValue]]:
        """All tiles."""
        return ((*self.tiles, self.result),)

    def verify_(self) -> None:
        wanted = self.result.type
        for tile in self.tiles:
            assert isinstance(tile.type, TileType)
            if tile.type.shape != wanted.shape or tile.type.layout != wanted.layout:
                raise VerifyException(
                    f"frag.map: {tile.type} and the result {wanted} differ in shape or layout"
                )
        check_elementwise(self.name, self.body.block, [_element(t) for t in self.tiles])
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        if last.value.type != wanted.element_type:
            raise VerifyException(
                f"frag.map yields {last.value.type}, its result holds {wanted.element_type}"
            )


def _element(value: SSAValue) -> Attribute:
    assert isinstance(value.type, TileType)
    return value.type.element_type


def check_elementwise(name: str, block: Block, expected: Sequence[Attribute]) -> None:
    """Whether a region takes scalars of these types and ends in frag.yield."""
    found = [argument.type for argument in block.args]
    if found != list(expected):
        raise VerifyException(
            f"{name}: the region takes ({', '.join(map(str, found))}), "
            f"it needs ({', '.join(map(str, expected))})"
        )
    if not isinstance(block.last_op, YieldOp):
        raise VerifyException(f"{name}: the region must end in frag.yield")


@op_definition
class YieldOp(IRDLOperation):
    """The value of an elementwise region for one element."""

    name = "frag.yield"
    value = operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])
