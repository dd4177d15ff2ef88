"""Tiles of which every element becomes what those before it along a dimension give together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log2
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.attributes import LayoutAttr
from fragir.dialects.frag.reductions import COMBINATIONS, problem
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import DimensionsInterface, LayoutInterface, Names, Threads
from fragir.layout import Layout
from fragir.layout.reduction import gathered
from fragir.layout.scanning import runs

FLAGS = ("exclusive", "reverse")


@op_definition
class ScanOp(IRDLOperation, LayoutInterface, DimensionsInterface):
    """Every element becomes what all up to it along a dimension give: sums, products, the largest.

    The words are those of `frag.reduce` but argmax and argmin. `exclusive`: an element itself is
    not counted; the first becomes what changes nothing (0 of a sum, minus infinity of `max`, NaN of
    `maxnum`). `reverse`: from the end of the dimension to its beginning.

    Elements are combined in their own type, the i-th of n (counted from 0) of min(i, 2 ceil(log2
    n)) roundings at most for each element that it counts, always the same for a program and a
    target.
    """

    name = "frag.scan"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    kind = prop_def(StringAttr)
    dim = prop_def(IntegerAttr.constr(i64))
    exclusive = opt_prop_def(UnitAttr)
    reverse = opt_prop_def(UnitAttr)
    source = operand_def(TileType.constr() & _T)
    result = result_def(TileType.constr() & _T)
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())

    def __init__(
        self,
        kind: str,
        dim: int,
        source: SSAValue | Operation,
        *,
        exclusive: bool = False,
        reverse: bool = False,
    ):
        value = SSAValue.get(source)
        super().__init__(
            operands=[source],
            properties={
                "kind": StringAttr(kind),
                "dim": IntegerAttr(dim, i64),
                "exclusive": UnitAttr() if exclusive else None,
                "reverse": UnitAttr() if reverse else None,
            },
            result_types=[value.type],
        )

    @property
    def along(self) -> int:
        """The number of the dimension."""
        return self.dim.value.data

    @classmethod
    def parse(cls, parser: Parser) -> ScanOp:
        kind = parser.parse_identifier(f": {', '.join(COMBINATIONS)}")
        parser.parse_keyword("dim")
        dim = parser.parse_integer()
        flags = {f: UnitAttr() for f in FLAGS if parser.parse_optional_keyword(f) is not None}
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(source, type_)],
            properties={"kind": StringAttr(kind), "dim": IntegerAttr(dim, i64), **flags},
            attributes=attributes,
            result_types=[type_],
        )

    def print(self, printer: Printer) -> None:
        flags = "".join(f"{flag} " for flag in FLAGS if flag in self.properties)
        printer.print_string(f" {self.kind.data} dim {self.along} {flags}")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    def verify_(self) -> None:
        tile, kind = tile_of(self.source), self.kind.data
        if kind not in COMBINATIONS:
            raise VerifyException(f"frag.scan: {kind} is none of {', '.join(COMBINATIONS)}")
        if not 0 <= self.along < len(tile.shape):
            raise VerifyException(f"frag.scan: {tile} has no dimension {self.along}")
        wrong = problem(kind, tile.element_type, COMBINATIONS)
        if wrong is not None:
            raise VerifyException(f"frag.scan: {wrong}")

    def same_layout(self) -> Sequence[Sequence[SSAValue]]:
        """Source and result."""
        return ((self.source, self.result),)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """Operations within lanes, shuffles, and what warps tell each other."""
        placement, tile = layouts[self.source], tile_of(self.source)
        if not isinstance(placement, LayoutAttr):
            return 0.0
        return scan_cost(placement.layout(*tile.shape), self.along, tile.element_type)

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, element by element."""
        return self.source, names


def most_roundings_of_scan(count: int) -> int:
    """How many operations an element goes through at most on its way to the last of so many.

    Up through the sums of blocks and down through what comes before blocks: at every digit, of
    whatever size, at most twice the logarithm of its size (`fragir.layout.scanning.runs`).
    """
    return min(count - 1, 2 * ceil(log2(count))) if count > 1 else 0


def scan_cost(layout: Layout, dim: int, element: Attribute) -> float:
    """What a scan along a dimension costs a warp, in half cycles of an SM."""
    from fragir.layout.planning.costs import COSTS

    name, bits = layout.dims[dim], element_bits(element)
    words = max(1.0, bits / 32)
    found = runs(layout, name)
    if found is None:
        from fragir.layout.planning.bounds import conversion_bound

        every = gathered(layout, name)
        moved = conversion_bound(layout, every, bits) + conversion_bound(every, layout, bits)
        return moved + 2 * every.size("element") * words * COSTS.issue
    held = layout.size("element")
    price = held * words * COSTS.issue  # at the end what comes before is added
    for run in found:
        if run.axis == "element":
            price += 2 * held * words * COSTS.issue
            held //= run.size
        elif run.axis == "lane":
            steps = run.size.bit_length() - 1
            price += held * steps * words * (COSTS.shuffle + 4 * COSTS.issue)
        else:
            accesses = ceil(held * words / 4) * (1 + run.size)
            price += 2 * COSTS.block_barrier + accesses * (COSTS.wavefront + COSTS.issue)
            price += 3 * held * run.size * words * COSTS.issue
    return price
