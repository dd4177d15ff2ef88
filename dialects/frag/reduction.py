"""Tiles that lose a dimension, and tiles that gain one: reductions along it, repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, log2
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.attributes import ExplicitLayoutAttr, LayoutAttr
from fragir.dialects.frag.combinations import PLACES, WORDS, problem
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import DimensionsInterface, LayoutInterface, Names, Threads
from fragir.isa.registry import per_table
from fragir.layout import Layout
from fragir.layout.reduction import exchange, gathered, reduced, spread


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
    traits = traits_def(Pure())
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
