"""Tiles in other shapes: transposed, reshaped, sliced, concatenated, split and joined.

None of these computes: registers get other names, where the layout allows it
(`fragir.dialects.frag.regrouped`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
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
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import Canonical, op_definition
from fragir.dialects.frag.regrouped import Regrouped, RenamingOp, by
from fragir.dialects.frag.types import MOST_DIMENSIONS, TileType, tile_of
from fragir.dialects.interfaces import Names
from fragir.dialects.shorthands import integers
from fragir.layout.modes import Point
from fragir.layout.regrouping import (
    Cutout,
    around,
    reshaping_ways,
    turning_ways,
    window,
    with_last,
    without_last,
)

# --- lists of numbers as text ---------------------------------------------------------------------


@irdl_custom_directive
class Numbers(CustomDirective):
    """A property that is a list of whole numbers, in brackets; one that is optional may be away."""

    numbers: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        self.numbers.set(state, numbers(found))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        attribute = self.numbers.get(op)
        assert isinstance(attribute, DenseArrayBase)
        printer.print_string(brackets(integers(cast("DenseArrayBase", attribute))))

    def is_present(self, op: IRDLOperation) -> bool:
        return self.numbers.get(op) is not None

    def is_anchorable(self) -> bool:
        return True


def numbers(given: Sequence[int]) -> DenseArrayBase:
    """A list of numbers as a property."""
    return DenseArrayBase.from_list(i64, list(given))


def brackets(given: Sequence[int]) -> str:
    """The text of a list of numbers."""
    return f"[{', '.join(map(str, given))}]"


# --- operations -----------------------------------------------------------------------------------


@op_definition
class TransposeOp(IRDLOperation, RenamingOp):
    """The tile with its dimensions in another order: the result's dimension i is the source's
    dimension `permutation[i]`, as of numpy's `transpose`.
    """

    name = "frag.transpose"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(TileType.constr(element_type=_T))
    permutation = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure(), Canonical())
    custom_directives = (Numbers,)
    assembly_format = (
        "$source custom<Numbers>($permutation) attr-dict `:` type($source) `->` type($result)"
    )

    def __init__(self, source: SSAValue | Operation, permutation: Sequence[int]):
        tile = tile_of(SSAValue.get(source))
        shape = tuple(tile.shape[dim] for dim in permutation)
        super().__init__(
            operands=[source],
            properties={"permutation": numbers(permutation)},
            result_types=[TileType(shape, tile.element_type)],
        )

    @property
    def order(self) -> tuple[int, ...]:
        """The number of the source's dimension for each of the result's."""
        return tuple(integers(self.permutation))

    def regrouped(self) -> Iterator[Regrouped]:
        """The source in another order, and back."""
        order, shape = self.order, tile_of(self.source).shape
        back = tuple(order.index(dim) for dim in range(len(order)))
        turned_shape = self.result.type.shape
        yield Regrouped(
            self.source, self.result, turning_ways(shape, order), turning_ways(turned_shape, back)
        )

    def source_of(self, result: int, point: Point) -> tuple[int, Point]:
        """The same place, its coordinates in the order of the source."""
        order = self.order
        return 0, tuple(point[order.index(dim)] for dim in range(len(order)))

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, whose dimensions keep their names."""
        order = self.order
        return self.source, tuple(names[order.index(dim)] for dim in range(len(order)))

    def verify_(self) -> None:
        order, shape = self.order, tile_of(self.source).shape
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(
                f"{self.name}: {brackets(order)} is no order of {len(shape)} dimensions; write "
                f"each of the numbers 0 to {len(shape) - 1} once"
            )
        wanted = tuple(shape[dim] for dim in order)
        if self.result.type.shape != wanted:
            raise VerifyException(
                f"{self.name}: {by(shape)} in the order {brackets(order)} is {by(wanted)}, not "
                f"{by(self.result.type.shape)}"
            )
        self.verify_layouts()


@op_definition
class ReshapeOp(IRDLOperation, RenamingOp):
    """The same elements in another shape, in the order of rows: the last dimension is the fastest.

    Also a way to add a dimension of size 1, and to drop one.
    """

    name = "frag.reshape"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(TileType.constr(element_type=_T))
    result = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure(), Canonical())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue | Operation, result: TileType):
        super().__init__(operands=[source], result_types=[result])

    def regrouped(self) -> Iterator[Regrouped]:
        """The source in the other shape, and back."""
        old, new = tile_of(self.source).shape, self.result.type.shape
        yield Regrouped(
            self.source, self.result, reshaping_ways(old, new), reshaping_ways(new, old)
        )

    def source_of(self, result: int, point: Point) -> tuple[int, Point]:
        """The place with as many elements ahead of it."""
        place = 0
        for size, at in zip(self.result.type.shape, point, strict=True):
            place = place * size + at
        found: list[int] = []
        for size in reversed(tile_of(self.source).shape):
            place, at = divmod(place, size)
            found.append(at)
        return 0, tuple(reversed(found))

    def origin(self, names: Names) -> tuple[SSAValue, Names] | None:
        """The source, where no more than dimensions of size 1 come or go."""
        old, new = tile_of(self.source).shape, self.result.type.shape
        if [size for size in old if size > 1] != [size for size in new if size > 1]:
            return None
        left = iter([name for name, size in zip(names, new, strict=True) if size > 1])
        return self.source, tuple(next(left) if size > 1 else None for size in old)

    def verify_(self) -> None:
        old, new = tile_of(self.source).shape, self.result.type.shape
        if prod(old) != prod(new):
            raise VerifyException(
                f"{self.name}: {by(old)} has {prod(old)} elements, {by(new)} has {prod(new)}"
            )
        self.verify_layouts()


@op_definition
class SliceTileOp(IRDLOperation, RenamingOp):
    """A part of a tile: from `offsets` on, every element or, with `strides`, every so many-th.

    As many as the result's shape says. Both have a number for every dimension.
    """

    name = "frag.slice"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(TileType.constr(element_type=_T))
    offsets = prop_def(DenseArrayBase.constr(i64))
    strides = opt_prop_def(DenseArrayBase.constr(i64))
    result = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure(), Canonical())
    custom_directives = (Numbers,)
    assembly_format = (
        "$source custom<Numbers>($offsets) (`strides` custom<Numbers>($strides)^)? attr-dict"
        " `:` type($source) `->` type($result)"
    )

    def __init__(
        self,
        source: SSAValue | Operation,
        offsets: Sequence[int],
        result: TileType,
        strides: Sequence[int] = (),
    ):
        written = any(stride != 1 for stride in strides)
        super().__init__(
            operands=[source],
            properties={
                "offsets": numbers(offsets),
                "strides": numbers(strides) if written else None,
            },
            result_types=[result],
        )

    @property
    def cutouts(self) -> tuple[Cutout, ...]:
        """What is taken of every dimension."""
        old, new = tile_of(self.source).shape, self.result.type.shape
        strides = [1] * len(old) if self.strides is None else integers(self.strides)
        given = zip(old, integers(self.offsets), new, strides, strict=True)
        return tuple(Cutout(*numbers) for numbers in given)

    def regrouped(self) -> Iterator[Regrouped]:
        """The part in the whole, and the whole around it."""
        cutouts = self.cutouts
        yield Regrouped(self.source, self.result, window(cutouts), around(cutouts))

    def source_of(self, result: int, point: Point) -> tuple[int, Point]:
        """The offset and so many strides."""
        places = zip(self.cutouts, point, strict=True)
        return 0, tuple(cutout.start + cutout.step * at for cutout, at in places)

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source; a dimension of which a part is taken has no name there."""
        whole = (cutout.length == cutout.size for cutout in self.cutouts)
        named = zip(names, whole, strict=True)
        return self.source, tuple(name if is_whole else None for name, is_whole in named)

    def verify_(self) -> None:
        old, new = tile_of(self.source).shape, self.result.type.shape
        strides = [1] * len(old) if self.strides is None else integers(self.strides)
        for what, given in (("offsets", integers(self.offsets)), ("strides", strides)):
            if len(given) != len(old):
                raise VerifyException(
                    f"{self.name}: {brackets(given)} as {what} of {by(old)}; write one for each of "
                    f"the {len(old)} dimensions"
                )
        if len(new) != len(old):
            raise VerifyException(
                f"{self.name}: a part of {by(old)} has {len(old)} dimensions, not {len(new)}; drop "
                "those of size 1 with frag.reshape"
            )
        for dim, (size, offset, count, stride) in enumerate(self.cutouts):
            last = offset + stride * (count - 1)
            if offset < 0 or stride < 1 or last >= size:
                raise VerifyException(
                    f"{self.name}: {count} elements from {offset} on with stride {stride} are not "
                    f"all in dimension {dim} of {by(old)}, 0 to {size - 1}"
                )
        self.verify_layouts()


@op_definition
class ConcatenateOp(IRDLOperation, RenamingOp):
    """Two tiles behind each other along a dimension; the others are alike."""

    name = "frag.concat"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    first = operand_def(TileType.constr(element_type=_T))
    second = operand_def(TileType.constr(element_type=_T))
    dim = prop_def(IntegerAttr.constr(i64))
    result = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure(), Canonical())
    assembly_format = (
        "$first `,` $second `dim` $dim attr-dict"
        " `:` type($first) `,` type($second) `->` type($result)"
    )

    def __init__(self, first: SSAValue | Operation, second: SSAValue | Operation, dim: int):
        tile, other = (tile_of(SSAValue.get(value)) for value in (first, second))
        shape = list(tile.shape)
        shape[dim] += other.shape[dim]
        super().__init__(
            operands=[first, second],
            properties={"dim": IntegerAttr(dim, i64)},
            result_types=[TileType(shape, tile.element_type)],
        )

    @property
    def along(self) -> int:
        """The number of the dimension."""
        return self.dim.value.data

    def regrouped(self) -> Iterator[Regrouped]:
        """Either operand as a part of the result."""
        shape, dim, start = self.result.type.shape, self.along, 0
        for operand in (self.first, self.second):
            count = tile_of(operand).shape[dim]
            cutouts = tuple(
                Cutout(size, start, count) if number == dim else Cutout(size, 0, size)
                for number, size in enumerate(shape)
            )
            yield Regrouped(operand, self.result, around(cutouts), window(cutouts))
            start += count

    def source_of(self, result: int, point: Point) -> tuple[int, Point]:
        """The first operand up to its size, then the second."""
        dim, size = self.along, tile_of(self.first).shape[self.along]
        if point[dim] < size:
            return 0, point
        return 1, (*point[:dim], point[dim] - size, *point[dim + 1 :])

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The first operand; the dimension that grows has no name there."""
        return self.first, (*names[: self.along], None, *names[self.along + 1 :])

    def verify_(self) -> None:
        first, second, dim = tile_of(self.first).shape, tile_of(self.second).shape, self.along
        if not 0 <= dim < len(first):
            raise VerifyException(
                f"{self.name}: {by(first)} has the dimensions 0 to {len(first) - 1}, there is no "
                f"dimension {dim}"
            )
        rest = [shape[:dim] + shape[dim + 1 :] for shape in (first, second)]
        if len(first) != len(second) or rest[0] != rest[1]:
            raise VerifyException(
                f"{self.name}: {by(first)} and {by(second)} differ besides dimension {dim}"
            )
        wanted = (*first[:dim], first[dim] + second[dim], *first[dim + 1 :])
        if self.result.type.shape != wanted:
            raise VerifyException(
                f"{self.name}: {by(first)} and {by(second)} along dimension {dim} are "
                f"{by(wanted)}, not {by(self.result.type.shape)}"
            )
        self.verify_layouts()


@op_definition
class SplitOp(IRDLOperation, RenamingOp):
    """A tile whose last dimension is of size 2 as two tiles without it: what stands at 0, and at 1.

    `frag.join` is the way back.
    """

    name = "frag.split"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(TileType.constr(element_type=_T))
    first = result_def(TileType.constr(element_type=_T))
    second = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure(), Canonical())
    assembly_format = "$source attr-dict `:` type($source) `->` type($first) `,` type($second)"

    def __init__(self, source: SSAValue | Operation):
        tile = tile_of(SSAValue.get(source))
        part = TileType(tile.shape[:-1], tile.element_type)
        super().__init__(operands=[source], result_types=[part, part])

    def regrouped(self) -> Iterator[Regrouped]:
        """Either result at its place, and both of them."""
        shape = tile_of(self.source).shape
        for part in (self.first, self.second):
            back = with_last(shape[:-1], shape[-1])
            yield Regrouped(self.source, part, without_last(shape), back)

    def source_of(self, result: int, point: Point) -> tuple[int, Point]:
        """The result's number is the place along the last dimension."""
        return 0, (*point, result)

    def verify_(self) -> None:
        shape, parts = tile_of(self.source).shape, (self.first.type.shape, self.second.type.shape)
        if len(shape) < 2 or shape[-1] != 2:
            raise VerifyException(
                f"{self.name}: a tile of two dimensions or more, the last one of size 2, is split, "
                f"not {by(shape)}; frag.reshape can make one"
            )
        if parts != (shape[:-1], shape[:-1]):
            raise VerifyException(
                f"{self.name}: {by(shape)} is split into two of {by(shape[:-1])}, not "
                f"{by(parts[0])} and {by(parts[1])}"
            )
        self.verify_layouts()


@op_definition
class JoinOp(IRDLOperation, RenamingOp):
    """Two tiles of one shape as one with another dimension, of size 2, behind the others.

    With `frag.reshape` behind it elements take turns: x0 y0 x1 y1. `frag.split` is the way back.
    """

    name = "frag.join"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    first = operand_def(TileType.constr(element_type=_T))
    second = operand_def(TileType.constr(element_type=_T))
    result = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure(), Canonical())
    assembly_format = (
        "$first `,` $second attr-dict `:` type($first) `,` type($second) `->` type($result)"
    )

    def __init__(self, first: SSAValue | Operation, second: SSAValue | Operation):
        tile = tile_of(SSAValue.get(first))
        whole = TileType((*tile.shape, 2), tile.element_type)
        super().__init__(operands=[first, second], result_types=[whole])

    def regrouped(self) -> Iterator[Regrouped]:
        """Either operand at its place, and both of them."""
        shape = self.result.type.shape
        for part in (self.first, self.second):
            there = with_last(shape[:-1], shape[-1])
            yield Regrouped(part, self.result, there, without_last(shape))

    def source_of(self, result: int, point: Point) -> tuple[int, Point]:
        """The place along the last dimension is the operand's number."""
        return point[-1], point[:-1]

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The first operand, which lacks the last dimension."""
        return self.first, names[:-1]

    def verify_(self) -> None:
        first, second = tile_of(self.first).shape, tile_of(self.second).shape
        if first != second:
            raise VerifyException(f"{self.name}: {by(first)} and {by(second)} differ in shape")
        if len(first) == MOST_DIMENSIONS:
            raise VerifyException(
                f"{self.name}: {by(first)} has {MOST_DIMENSIONS} dimensions already, and no tile "
                "has more"
            )
        if self.result.type.shape != (*first, 2):
            raise VerifyException(
                f"{self.name}: two of {by(first)} make {by((*first, 2))}, not "
                f"{by(self.result.type.shape)}"
            )
        self.verify_layouts()
