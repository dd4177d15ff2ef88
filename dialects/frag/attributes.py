"""Layouts, memory spaces and grids as attributes of the `frag` dialect.

A tile's layout says which lane holds which element in which register. Two forms:

* `#frag.mma<m16n8k16.f16, a, warps = [2, 2]>`: the fragment that an instruction demands, repeated
  over the tile and spread over warps. `warps = [wm, wn]` cuts the result C of the product into
  wm x wn equal blocks, one a warp; warp w owns block (w mod wm, w div wm). A is the same in the wn
  warps of one block row, B in the wm warps of one block column. For wgmma the unit is the
  warpgroup (4 warps, 64 rows) instead of the warp.
* `#frag.layout<"warp [...] lane [...] element [...]">`: any layout, written out, in any notation
  (`read_layout`; a notation that does not say the tile's shape is not enough). As the layout of a
  memref it maps the indices to elements, `#frag.layout<"row [...] col [...]">`.

The dimensions of a product may be counted in another order, alike in the operands that share them:
`#frag.mma<m16n8k32.e4m3, a, k = "2:1 2:8 4:2">` says which k of the tile stands where the
instruction has its k = 0, 1, 2, ... (a layout's modes; beyond them it repeats). D is the same for
any order of K in A and B; rows of A may be in the order of C's rows, columns of B in that of C's
columns.

The name of the instruction is its shape and type of A: `m16n8k16.f16`, `m8n8k16.u8`,
`m64n128k16.bf16`. `m8n8k4.f16` has four products a warp and needs more words: `.row` or `.col` for
A and B, and for C and D the accumulator's type (`m8n8k4.f32`).
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefLayoutAttr, StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.frag.instructions import fragment_instruction, parse_name
from fragir.errors import FragirError
from fragir.isa.registry import per_table
from fragir.isa.tiling import tile_layout
from fragir.layout import Layout

SWIZZLES = (0, 32, 64, 128)  # bytes; 0: none. TMA and wgmma know these (PTX ISA 9.2, 5.5.7)


#: Which dimensions of the product an operand's rows and columns are.
DIMENSIONS = {"a": "mk", "b": "kn", "c": "mn"}

#: Dimensions of a product that are counted in another order than the instruction's.
Orders = tuple[tuple[str, Layout], ...]


class MmaFragment(NamedTuple):
    """An operand of an instruction, spread over warps (wgmma: warpgroups).

    `orders` are bijections, one dimension to itself: from the instruction's m, n or k to the
    tile's.
    """

    instruction: str
    operand: str
    warps: tuple[int, int] = (1, 1)
    orders: Orders = ()

    @property
    def mnk(self) -> tuple[int, int, int]:
        """The shape of one instruction."""
        return fragment_instruction(self.instruction, self.operand).shape

    @property
    def is_wgmma(self) -> bool:
        return parse_name(self.instruction).is_by_warpgroups

    def resolve(self) -> isa.Operand:
        """The operand of the instruction in the table; FragirError where there is none."""
        return fragment_instruction(self.instruction, self.operand).operands[self.operand]

    def layout(self, *shape: int) -> Layout:
        """The layout of a tile of this shape."""
        return _tile_layout(self, shape)


@per_table
def _tile_layout(fragment: MmaFragment, shape: tuple[int, ...]) -> Layout:
    if len(shape) not in (2, 3):
        text = "x".join(map(str, shape))
        raise FragirError(f"{fragment.instruction} takes matrices, not a tile of {text}")
    instruction = fragment_instruction(fragment.instruction, fragment.operand)
    if shape[2:] == (1,):
        shape = shape[:2]
    layout = tile_layout(instruction, fragment.operand, shape, fragment.warps)
    if not fragment.orders:
        return layout
    if len(shape) != 2:
        raise FragirError(f"{fragment.instruction} counts its dimensions in one order only")
    from fragir.layout.reorder import in_order  # few programs need it

    for name, order in fragment.orders:
        layout = in_order(layout, DIMENSIONS[fragment.operand].index(name), order)
    return layout


class LayoutAttr(Attribute, abc.ABC):
    """An attribute that says where a tile's elements lie; any dialect may define one."""

    @abc.abstractmethod
    def layout(self, *shape: int) -> Layout:
        """The layout of a tile of this shape; FragirError where it has none."""

    @property
    @abc.abstractmethod
    def chunk(self) -> int:
        """How many of a lane's elements, in order, make one fragment; it divides their number."""


@irdl_attr_definition
class MmaLayoutAttr(Data[MmaFragment], LayoutAttr):
    """The fragment of an operand of an mma or wgmma instruction."""

    name = "frag.mma"

    def verify(self) -> None:
        try:
            self.data.resolve()
        except FragirError as error:
            raise VerifyException(str(error)) from error
        for name, order in self.data.orders:
            if name not in DIMENSIONS[self.data.operand]:
                raise VerifyException(f"operand {self.data.operand} has no dimension {name}")
            if not order.is_bijection():
                raise VerifyException(
                    f'{name} = "{_modes(order)}" does not name every {name} of its extent once'
                )

    def layout(self, *shape: int) -> Layout:
        """The layout of a tile; FragirError where the shape does not fit."""
        return self.data.layout(*shape)

    @property
    def chunk(self) -> int:
        """Elements that one lane holds of one instruction's operand."""
        layout = self.data.resolve().layout
        assert layout is not None
        return layout.size("element")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MmaFragment:
        with parser.in_angle_brackets():
            name = parser.parse_identifier(" like m16n8k16.f16")
            parser.parse_punctuation(",")
            operand = parser.parse_identifier(": a, b or c")
            warps, orders = (1, 1), list[tuple[str, Layout]]()
            while parser.parse_optional_punctuation(","):
                word = parser.parse_identifier(": warps, m, n or k")
                parser.parse_punctuation("=")
                if word == "warps":
                    warps = _parse_warps(parser)
                elif word in ("m", "n", "k") and all(word != name for name, _ in orders):
                    orders.append((word, _parse_order(parser, word)))
                else:
                    parser.raise_error(f"write warps, m, n or k, each once, not {word}")
        return MmaFragment(name, operand, warps, tuple(sorted(orders)))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.data.instruction}, {self.data.operand}")
            if self.data.warps != (1, 1):
                printer.print_string(f", warps = [{self.data.warps[0]}, {self.data.warps[1]}]")
            for name, order in self.data.orders:
                printer.print_string(f', {name} = "{_modes(order)}"')


def _parse_warps(parser: AttrParser) -> tuple[int, int]:
    warps = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    if len(warps) != 2 or min(warps) < 1:
        parser.raise_error("warps takes two positive numbers: rows, columns")
    return warps[0], warps[1]


def _parse_order(parser: AttrParser, dimension: str) -> Layout:
    modes = parser.parse_str_literal("modes such as 2:1 2:8 4:2")
    try:
        return Layout.parse(f"{dimension} [{modes}] dims ({dimension})")
    except FragirError as error:
        parser.raise_error(str(error))


def _modes(order: Layout) -> str:
    return " ".join(map(str, order.axes[0].modes))


@irdl_attr_definition
class ExplicitLayoutAttr(MemRefLayoutAttr, Data[Layout], LayoutAttr):
    """Any layout, written out as in `fragir.layout`: of a tile, or of a memref.

    A memref's has an axis for every dimension and one dimension, the number of elements:
    `memref<64x64xf16, #frag.layout<"row [64:72] col [64:1]">, #frag.shared>`. Operations of this
    dialect verify it (`fragir.dialects.frag.memory_layout`).
    """

    name = "frag.layout"

    def get_affine_map(self) -> AffineMap:
        """From a memref's indices to the number of elements before the one there."""
        return affine_map(self.data)

    def get_strides(self) -> Sequence[int] | None:
        """One stride a dimension; None where a dimension has no single one."""
        return strides_of_layout(self.data)

    def get_offset(self) -> int | None:
        """0 where there are strides, else None."""
        return None if self.get_strides() is None else 0

    def layout(self, *shape: int) -> Layout:
        """The layout itself; FragirError where it does not have the tile's shape."""
        if self.data.shape != shape:
            raise FragirError(
                f"the layout covers {'x'.join(map(str, self.data.shape))}, "
                f"the tile is {'x'.join(map(str, shape))}"
            )
        return self.data

    @classmethod
    def read(cls, text: str) -> ExplicitLayoutAttr:
        """The layout of a text in any notation; FragirError for one that is no layout of digits."""
        from fragir.isa.layout_texts import digit_layout  # compiles its expressions

        return cls(digit_layout(text))

    @property
    def chunk(self) -> int:
        """All elements of a lane: an explicit layout has no smaller unit."""
        return self.data.size("element")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        with parser.in_angle_brackets():
            text = parser.parse_str_literal("the layout's text in quotes")
        try:
            return cls.read(text).data
        except FragirError as error:
            parser.raise_error(str(error))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


@irdl_attr_definition
class SharedAttr(ParametrizedAttribute):
    """Shared memory, as a memref's memory space: `memref<64x64xf16, #frag.shared<swizzle = 128>>`.

    The last two dimensions form a matrix. Without a swizzle it lies row after row, or as the
    memref's own layout says. A swizzle of W bytes is short for such a layout, the one that wgmma
    and TMA expect and that frees ldmatrix from bank conflicts: `fragir.layout.shared`.

    `#frag.shared<swizzle = 128, pair = row>` is shared memory of a pair of blocks: the even block
    has the first half of the matrix's rows, or columns, the odd one the other half, each laid out
    as a matrix of its own. `frag.tcgen05_mma pair` reads it.
    """

    name = "frag.shared"
    swizzle: IntAttr
    pair: StringAttr

    def __init__(self, swizzle: int | IntAttr = 0, pair: str | StringAttr = ""):
        super().__init__(
            IntAttr(swizzle) if isinstance(swizzle, int) else swizzle,
            StringAttr(pair) if isinstance(pair, str) else pair,
        )

    def verify(self) -> None:
        if self.swizzle.data not in SWIZZLES:
            raise VerifyException(f"swizzle is one of 0, 32, 64, 128, not {self.swizzle.data}")
        if self.pair.data not in ("", *HALVED):
            raise VerifyException(f"a pair shares row or col, not {self.pair.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        if not parser.parse_optional_punctuation("<"):
            return [IntAttr(0), StringAttr("")]
        parser.parse_keyword("swizzle")
        parser.parse_punctuation("=")
        swizzle, pair = parser.parse_integer(), ""
        if parser.parse_optional_punctuation(","):
            parser.parse_keyword("pair")
            parser.parse_punctuation("=")
            pair = parser.parse_identifier("row or col")
        parser.parse_punctuation(">")
        return [IntAttr(swizzle), StringAttr(pair)]

    def print_parameters(self, printer: Printer) -> None:
        if self.swizzle.data or self.pair.data:
            pair = f", pair = {self.pair.data}" if self.pair.data else ""
            printer.print_string(f"<swizzle = {self.swizzle.data}{pair}>")


HALVED = ("row", "col")
"""The dimension that a pair of blocks divides."""


SCALES, OPERAND = "scales", "operand"
"""What `#frag.tensor` may hold besides sums."""


@irdl_attr_definition
class TensorMemoryAttr(ParametrizedAttribute):
    """Tensor memory, as a memref's memory space: `memref<128x64xf32, #frag.tensor>`.

    128 lanes by 512 columns of 32 bits, in which `frag.tcgen05_mma` adds up. Rows of a matrix are
    lanes, 128 at a time, its columns are columns; further rows lie in the columns behind.
    `#frag.tensor<scales>` holds a scale for each block of a row, as `frag.tcgen05_copy` puts them
    there, `#frag.tensor<operand>` an A, M x K, whose elements share columns, as
    `frag.tcgen05_store` puts them there. PTX ISA 9.2, sections 9.7.16.1 and 9.7.16.10.
    """

    name = "frag.tensor"
    holds: StringAttr

    def __init__(self, holds: str | StringAttr = ""):
        super().__init__(StringAttr(holds) if isinstance(holds, str) else holds)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        if not parser.parse_optional_punctuation("<"):
            return [StringAttr("")]
        place = parser.pos
        holds = parser.parse_identifier(f"{SCALES} or {OPERAND}")
        if holds not in (SCALES, OPERAND):
            parser.raise_error(f"tensor memory holds sums, {SCALES} or {OPERAND}", place)
        parser.parse_punctuation(">")
        return [StringAttr(holds)]

    def print_parameters(self, printer: Printer) -> None:
        if self.holds.data:
            printer.print_string(f"<{self.holds.data}>")


def sizes_error(attribute: Attribute | None, shape: Sequence[int]) -> str | None:
    """What is wrong with the `frag.sizes` of memory of this shape; None where all is well.

    Every dynamic dimension (a negative size) has a name; static ones after the last one may go
    without.
    """
    if attribute is None:
        return None
    example = ", ".join(f'"{name}"' for name in "mnpqrstu"[: len(shape)])
    hint = f"write a name for each dimension: frag.sizes = [{example}]"
    if not isinstance(attribute, ArrayAttr):
        return f"frag.sizes = {attribute} is no list of strings; {hint}"
    names = cast("ArrayAttr[Attribute]", attribute)
    if not all(isinstance(name, StringAttr) and name.data for name in names):
        return f"frag.sizes = {attribute} is no list of strings; {hint}"
    needed = 1 + max((dim for dim, size in enumerate(shape) if size < 0), default=-1)
    if not needed <= len(names) <= len(shape):
        return (
            f"frag.sizes = {attribute} has {len(names)} names for {len(shape)} dimensions; {hint}"
        )
    return None


def sizes_of(attribute: Attribute | None) -> tuple[str, ...]:
    """The names in an argument's `frag.sizes = ["m", "k"]`; () without one."""
    if not isinstance(attribute, ArrayAttr):
        return ()
    names = cast("ArrayAttr[Attribute]", attribute)
    return tuple(name.data for name in names if isinstance(name, StringAttr))


# --- affine maps ----------------------------------------------------------------------------------


def affine_map(layout: Layout) -> AffineMap:
    """From one coordinate an axis to the layout's one dimension.

    >>> print(affine_map(Layout.parse("row [64:72] col [64:1]")))
    (d0, d1) -> (((d0 * 72) + d1))
    """
    layout = layout.simplified()
    result = AffineExpr.constant(layout.origin[0])
    flips: dict[int, list[AffineExpr]] = {}
    for number, axis in enumerate(layout.axes):
        coordinate, place, size = AffineExpr.dimension(number), 1, axis.size
        for mode in axis.modes:
            if mode.xor:
                for bit, flipped in _bits(coordinate, place, mode.size, mode.step[0]):
                    flips.setdefault(bit, []).append(flipped)
            elif mode.step[0]:
                digit = _floor(coordinate, place)
                if place * mode.size < size:
                    digit = digit % mode.size
                result = result + digit * mode.stride[0]
            place *= mode.size
    total = result
    for bit, flipped in sorted(flips.items()):
        old = _floor(total, 1 << bit) % 2
        new = old
        for one in flipped:
            new = new + one
        result = result - old * (1 << bit) + new % 2 * (1 << bit)
    return AffineMap(len(layout.axes), 0, (result,))


def strides_of_layout(layout: Layout) -> tuple[int, ...] | None:
    """One stride an axis; None where an axis has no single one, or elements begin later on."""
    if layout.exclusive:
        layout = layout.simplified()
    if layout.exclusive or layout.offset:
        return None
    strides: list[int] = []
    for axis in layout.simplified().axes:
        if len(axis.modes) > 1:
            return None
        strides.append(axis.modes[0].stride[0] if axis.modes else 1)
    return tuple(strides)


def _bits(
    coordinate: AffineExpr, place: int, size: int, column: int
) -> Iterator[tuple[int, AffineExpr]]:
    """Which bits a flipped digit flips: (number of the bit, 0 or 1)."""
    for number in range(size.bit_length() - 1):
        moved = column << number
        for bit in range(moved.bit_length()):
            if moved >> bit & 1:
                yield bit, _floor(coordinate, place << number) % 2


def _floor(value: AffineExpr, divisor: int) -> AffineExpr:
    return value if divisor == 1 else value // divisor
