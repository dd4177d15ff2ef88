"""Tiles that lose a dimension together, combined as a region says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import NoElementError, element_name
from fragir.dialects.frag.attributes import LayoutAttr
from fragir.dialects.frag.combinations import FLOATS, INTEGERS, PREDICATES
from fragir.dialects.frag.pointwise import YieldOp
from fragir.dialects.frag.reduction import reduced_layout, reduction_cost
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import LayoutInterface, Threads


@op_definition
class ReduceByOp(IRDLOperation, LayoutInterface):
    """n values for all elements of n tiles along a dimension, two by two as a region says.

    The region takes an element of each tile, or what elements have given so far, and another of
    each, 2 n scalars, and yields n. It must be associative and commutative, but for rounding:
    elements are combined as a tree of at most ceil(log2 n) + 1 levels, always the same one for a
    program and a target. Besides its arguments it may use scalars defined outside. Of tiles of one
    dimension numbers are left, the same in all threads.

    Elements are f16, bf16, f32, f64, i32 or i1.
    """

    name = "frag.reduce_by"
    dim = prop_def(IntegerAttr.constr(i64))
    tiles = var_operand_def(TileType)
    reduced = var_result_def()
    body = region_def("single_block")
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = "`dim` $dim $tiles attr-dict `:` type($tiles) `->` type($reduced) $body"

    def __init__(self, dim: int, tiles: Sequence[SSAValue | Operation], body: Region):
        types = [_without(tile_of(SSAValue.get(tile)), dim) for tile in tiles]
        super().__init__(
            operands=[tiles],
            properties={"dim": IntegerAttr(dim, i64)},
            regions=[body],
            result_types=[types],
        )

    @property
    def along(self) -> int:
        """The number of the dimension that goes."""
        return self.dim.value.data

    def verify_(self) -> None:
        tiles = [tile_of(tile) for tile in self.tiles]
        if not tiles:
            raise VerifyException("frag.reduce_by takes one tile or more")
        shape = tiles[0].shape
        for tile in tiles:
            if not tile.goes_with(tiles[0]):
                raise VerifyException(
                    f"frag.reduce_by: {tiles[0]} and {tile} differ in shape or layout"
                )
            if not _combines(tile.element_type):
                raise VerifyException(
                    f"frag.reduce_by: {tile.element_type} is not combined; cast the tile to f16, "
                    "bf16, f32, f64 or i32 before"
                )
        if not 0 <= self.along < len(shape):
            raise VerifyException(f"frag.reduce_by: {tiles[0]} has no dimension {self.along}")
        wanted = [_without(tile, self.along) for tile in tiles]
        found = [
            type_.with_layout(None) if isinstance(type_, TileType) else type_
            for type_ in self.reduced.types
        ]
        if wanted != found:
            raise VerifyException(
                f"frag.reduce_by: along dimension {self.along} there is left "
                f"{_listed(wanted)}, not {_listed(found)}"
            )
        self._verify_body([tile.element_type for tile in tiles])

    def _verify_body(self, elements: Sequence[Attribute]) -> None:
        block = self.body.block
        taken = [argument.type for argument in block.args]
        if taken != [*elements, *elements]:
            raise VerifyException(
                f"frag.reduce_by: the region takes ({_listed(taken)}), it needs an element of "
                f"each tile twice: ({_listed([*elements, *elements])})"
            )
        last = block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("frag.reduce_by: the region must end in frag.yield")
        given = [value.type for value in last.values]
        if given != list(elements):
            raise VerifyException(
                f"frag.reduce_by: the region yields ({_listed(given)}), it needs an element of "
                f"each tile: ({_listed(elements)})"
            )

    def same_layout(self) -> Iterable[Sequence[SSAValue]]:
        """All tiles; what is left of them."""
        return (tuple(self.tiles), tuple(self.reduced))

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterable[tuple[SSAValue, Attribute]]:
        """The results' from the tiles'."""
        for tile, result in zip(self.tiles, self.reduced, strict=True):
            if tile in known and isinstance(result.type, TileType):
                yield result, reduced_layout(known[tile], tile_of(tile).shape, self.along)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """What it costs to reduce every tile by one operation."""
        price = 0.0
        for tile in self.tiles:
            placement, type_ = layouts[tile], tile_of(tile)
            if isinstance(placement, LayoutAttr):
                layout = placement.layout(*type_.shape)
                price += reduction_cost(layout, self.along, type_.element_type)
        return price


def _without(tile: TileType, dim: int) -> Attribute:
    """What is left of a tile, without a layout."""
    shape = (*tile.shape[:dim], *tile.shape[dim + 1 :])
    return TileType(shape, tile.element_type) if shape else tile.element_type


def _combines(element: Attribute) -> bool:
    try:
        return element_name(element) in (*FLOATS, *INTEGERS, *PREDICATES)
    except NoElementError:
        return False


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
