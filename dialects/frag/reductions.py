"""Tiles that lose a dimension, reduced by a word or a region, and tiles that gain one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf, log2, nan
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import Canonical, op_definition
from fragir.dialects.elements import NoElementError, element_bits, element_name
from fragir.dialects.frag.attributes import ExplicitLayoutAttr, LayoutAttr
from fragir.dialects.frag.pointwise import YieldOp
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import DimensionsInterface, LayoutInterface, Names, Threads
from fragir.isa.registry import per_table
from fragir.layout import Layout
from fragir.layout.reduction import exchange, gathered, reduced, spread

# --- words ----------------------------------------------------------------------------------------

#: Types of elements that are combined: those that arith computes with.
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("s8", "s16", "s32", "u32", "s64")
PREDICATES = ("pred",)


class Combination(NamedTuple):
    """An operation of `arith` for each kind of elements; None where there is none."""

    floats: str | None
    integers: str | None
    predicates: str | None = None
    unsigned: str | None = None
    """Of ui32, where that is another operation."""

    def operation(self, element: str) -> str | None:
        """The name of arith's operation for a type of elements."""
        if element in FLOATS:
            return self.floats
        if element in PREDICATES:
            return self.predicates
        if element == "u32" and self.unsigned is not None:
            return self.unsigned
        return self.integers if element in INTEGERS else None


COMBINATIONS = {
    "add": Combination("arith.addf", "arith.addi"),
    "mul": Combination("arith.mulf", "arith.muli"),
    "max": Combination("arith.maximumf", "arith.maxsi", unsigned="arith.maxui"),
    "min": Combination("arith.minimumf", "arith.minsi", unsigned="arith.minui"),
    "maxnum": Combination("arith.maxnumf", None),
    "minnum": Combination("arith.minnumf", None),
    "maxui": Combination(None, "arith.maxui"),
    "minui": Combination(None, "arith.minui"),
    "and": Combination(None, "arith.andi", "arith.andi"),
    "or": Combination(None, "arith.ori", "arith.ori"),
    "xor": Combination(None, "arith.xori", "arith.xori"),
}
"""The operations that combine two elements to one of the same type."""

PLACES = ("argmax", "argmin")
"""The place of the largest or smallest element along the dimension, the first of equals, as i32."""

WORDS = (*COMBINATIONS, *PLACES)


def problem(word: str, element: Attribute, words: Iterable[str] = WORDS) -> str | None:
    """Why elements of a type are not combined so; None where they are. `words` may be named."""
    try:
        name = element_name(element)
    except NoElementError:
        name = ""
    able = [other for other in words if _combines(other, name)]
    if word in able:
        return None
    if able:
        return f"{element} is not combined by {word}; it is by {', '.join(able)}"
    return f"{element} is not combined; cast the tile to f32 or i32 before"


def _combines(word: str, element: str) -> bool:
    """Whether elements of a type, by its PTX name, are combined so."""
    if word in PLACES:
        return element in (*FLOATS, *INTEGERS)
    return COMBINATIONS[word].operation(element) is not None


def neutral(word: str, element: str) -> float | int:
    """What changes no element that it is combined with; of integers as bits with a sign."""
    half = 2 ** (int(element[1:]) - 1) if element in INTEGERS else 0
    low, high = (0, -1) if element == "u32" or word.endswith("ui") else (-half, half - 1)
    if element in FLOATS:
        low, high = -inf, inf
    if element in PREDICATES:
        return word == "and"
    return {"add": 0, "mul": 1, "maxnum": nan, "minnum": nan, "and": -1, "or": 0, "xor": 0}.get(
        word, low if word.startswith("max") else high
    )


# --- reductions and repetition --------------------------------------------------------------------


@per_table
def reduced_layout(placement: Attribute, shape: tuple[int, ...], dim: int) -> ExplicitLayoutAttr:
    """The layout of a tile without a dimension, from that of one of this shape with it."""
    assert isinstance(placement, LayoutAttr)
    layout = placement.layout(*shape)
    return ExplicitLayoutAttr(reduced(layout, layout.dims[dim]))


@op_definition
class ReduceOp(IRDLOperation, LayoutInterface, DimensionsInterface):
    """One value for all elements along a dimension: a tile of one dimension less.

    Of a tile of one dimension it is a scalar, the same in all threads. The words are `add`, `mul`,
    `max` and `min` (of floats NaN if one is; of integers signed unless they are ui32), `maxnum` and
    `minnum` (NaN only if all are), `maxui`, `minui`, `and`, `or`, `xor`; of i1 `and` says whether
    all hold, `or` whether any does. `argmax` and `argmin` give the place, i32, of the first of the
    largest or smallest, or of the first NaN.

    Elements are combined in their own type, as a tree of at most ceil(log2 n) + 1 roundings for
    each of n elements, always the same one for a program and a target.
    """

    name = "frag.reduce"
    kind = prop_def(StringAttr)
    dim = prop_def(IntegerAttr.constr(i64))
    source = operand_def(TileType)
    result = result_def()
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())

    def __init__(self, kind: str, dim: int, source: SSAValue | Operation):
        value = SSAValue.get(source)
        super().__init__(
            operands=[source],
            properties={"kind": StringAttr(kind), "dim": IntegerAttr(dim, i64)},
            result_types=[_result_type(kind, dim, tile_of(value))],
        )

    @property
    def along(self) -> int:
        """The number of the dimension that goes."""
        return self.dim.value.data

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        kind = parser.parse_identifier(f": {', '.join(WORDS)}")
        parser.parse_keyword("dim")
        dim = parser.parse_integer()
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        op = cls.create(
            operands=[parser.resolve_operand(source, type_)],
            properties={"kind": StringAttr(kind), "dim": IntegerAttr(dim, i64)},
            attributes=attributes,
            result_types=[result],
        )
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} dim {self.along} ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        tile, kind = tile_of(self.source), self.kind.data
        if kind not in WORDS:
            raise VerifyException(f"frag.reduce: {kind} is none of {', '.join(WORDS)}")
        if not 0 <= self.along < len(tile.shape):
            raise VerifyException(f"frag.reduce: {tile} has no dimension {self.along}")
        wrong = problem(kind, tile.element_type)
        if wrong is not None:
            raise VerifyException(f"frag.reduce: {wrong}")
        wanted, found = _result_type(kind, self.along, tile), self.result.type
        if isinstance(found, TileType):
            found = found.with_layout(None)
        if wanted != found:
            raise VerifyException(
                f"frag.reduce: {kind} of {tile} along dimension {self.along} gives {wanted}, "
                f"not {self.result.type}"
            )

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterable[tuple[SSAValue, Attribute]]:
        """The result's from the source's."""
        if self.source in known and isinstance(self.result.type, TileType):
            shape = tile_of(self.source).shape
            yield self.result, reduced_layout(known[self.source], shape, self.along)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """Operations within lanes, shuffles, and what warps tell each other."""
        placement, tile = layouts[self.source], tile_of(self.source)
        if not isinstance(placement, LayoutAttr):
            return 0.0
        return reduction_cost(placement.layout(*tile.shape), self.along, tile.element_type)

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, whose dimension that goes has no name here."""
        return self.source, (*names[: self.along], None, *names[self.along :])


def _result_type(kind: str, dim: int, tile: TileType) -> Attribute:
    """What a reduction gives, without a layout."""
    element = i32 if kind in PLACES else tile.element_type
    shape = (*tile.shape[:dim], *tile.shape[dim + 1 :])
    return TileType(shape, element) if shape else element


def reduction_cost(layout: Layout, dim: int, element: Attribute) -> float:
    """What combining elements along a dimension costs a warp, in half cycles of an SM."""
    from fragir.layout.planning.costs import COSTS

    name = layout.dims[dim]
    parts = spread(layout, name)
    words = max(1.0, element_bits(element) / 32)
    if parts is None:
        from fragir.layout.planning.bounds import conversion_bound

        every = gathered(layout, name)
        moved = conversion_bound(layout, every, element_bits(element))
        return moved + every.size("element") * words * COSTS.issue
    held = layout.size("element")
    rows = held // parts.elements
    price = (held - rows) * words * COSTS.issue
    if element_bits(element) == 32:
        price += exchange(rows, len(parts.masks)).price
    else:
        price += rows * len(parts.masks) * words * (COSTS.shuffle + 2 * COSTS.issue)
    if parts.warps > 1:
        price += 2 * COSTS.block_barrier
        accesses = ceil(rows * words / 4) * (1 + parts.warps)
        price += accesses * (COSTS.wavefront + COSTS.issue)
        price += rows * (parts.warps - 1) * words * COSTS.issue
    return price


def most_roundings(count: int) -> int:
    """How many operations an element of so many goes through at most, one after the other.

    Trees within a lane, between lanes (a power of two) and between warps, of two of which the sizes
    may be no power of two.
    """
    return ceil(log2(count)) + 1 if count > 1 else 0


@op_definition
class BroadcastOp(IRDLOperation, LayoutInterface, DimensionsInterface):
    """A tile repeated along a new dimension, `along` in the result: takes no instruction."""

    name = "frag.broadcast"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(TileType.constr(element_type=_T))
    along = prop_def(IntegerAttr.constr(i64))
    result = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure(), Canonical())
    assembly_format = "$source `along` $along attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue | Operation, along: int, size: int):
        tile = tile_of(SSAValue.get(source))
        shape = (*tile.shape[:along], size, *tile.shape[along:])
        super().__init__(
            operands=[source],
            properties={"along": IntegerAttr(along, i64)},
            result_types=[TileType(shape, tile.element_type)],
        )

    @property
    def dim(self) -> int:
        """The number of the dimension in the result."""
        return self.along.value.data

    def verify_(self) -> None:
        source, result = tile_of(self.source).shape, self.result.type.shape
        if (*result[: self.dim], *result[self.dim + 1 :]) != source or not self.repeated():
            raise VerifyException(
                f"frag.broadcast: {self.source.type} repeated along dimension {self.dim} is not "
                f"{self.result.type}"
            )

    def repeated(self) -> bool:
        """Whether the result has the dimension."""
        return 0 <= self.dim < len(self.result.type.shape)

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterable[tuple[SSAValue, Attribute]]:
        """The source's from the result's."""
        if self.result in known:
            yield self.source, reduced_layout(known[self.result], self.result.type.shape, self.dim)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """Nothing."""
        return 0.0

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, without the dimension."""
        return self.source, (*names[: self.dim], *names[self.dim + 1 :])


# --- reductions by a region -----------------------------------------------------------------------


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
            if not _is_combined_alone(tile.element_type):
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
                f"{_type_list(wanted)}, not {_type_list(found)}"
            )
        self._verify_body([tile.element_type for tile in tiles])

    def _verify_body(self, elements: Sequence[Attribute]) -> None:
        block = self.body.block
        taken = [argument.type for argument in block.args]
        if taken != [*elements, *elements]:
            raise VerifyException(
                f"frag.reduce_by: the region takes ({_type_list(taken)}), it needs an element of "
                f"each tile twice: ({_type_list([*elements, *elements])})"
            )
        last = block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("frag.reduce_by: the region must end in frag.yield")
        given = [value.type for value in last.values]
        if given != list(elements):
            raise VerifyException(
                f"frag.reduce_by: the region yields ({_type_list(given)}), it needs an element of "
                f"each tile: ({_type_list(elements)})"
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


def _is_combined_alone(element: Attribute) -> bool:
    try:
        return element_name(element) in (*FLOATS, *INTEGERS, *PREDICATES)
    except NoElementError:
        return False


def _type_list(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
