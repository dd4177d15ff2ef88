"""How many blocks a launch has, `#frag.grid`, and what a program promises of its sizes.

`frag.divisible`

    func.func @gemm(...) attributes {frag.divisible = {n = 16, k = 16}}

says that n and k are multiples of 16 in every launch. Names are those of `frag.sizes`, else what
the product calls its sizes (m, n, k); a dimension without a name is `a_d1`, a dynamic stride
`a_s0`, after the argument and the dimension. The compiler uses it for the width of accesses and to
leave out tests; a launch that breaks a promise is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.frag.attributes import ExplicitLayoutAttr, sizes_of
from fragir.dialects.shorthands import memref_type
from fragir.ptx.machines import grid_problem

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp


class Extent(NamedTuple):
    """One dimension of a grid: a number, or a named size divided by a tile and rounded up."""

    size: int | str
    divisor: int = 1

    def evaluate(self, sizes: dict[str, int]) -> int:
        """The number of blocks; KeyError where the size is not in `sizes`."""
        size = self.size if isinstance(self.size, int) else sizes[self.size]
        return -(-size // self.divisor)

    def least(self) -> int:
        """The blocks that there are whatever sizes are: those of a number, else 1."""
        return 1 if isinstance(self.size, str) else max(1, self.evaluate({}))

    @property
    def words(self) -> str:
        """To be read: `ceil(m / 128)`."""
        return str(self.size) if self.divisor == 1 else f"ceil({self.size} / {self.divisor})"

    def __str__(self) -> str:
        return str(self.size) if self.divisor == 1 else f"{self.size} by {self.divisor}"


class BlockCount(NamedTuple):
    """One dimension of a grid: a product of extents, and no more blocks than run at once.

    `resident`: the launch asks how many blocks the GPU holds at once, and starts no more. Blocks
    come in multiples of `cluster`.
    """

    factors: tuple[Extent, ...]
    resident: bool = False
    cluster: int = 1

    def evaluate(self, sizes: dict[str, int], resident: int | None = None) -> int:
        """The number of blocks where `resident` run at once; KeyError for an unknown size."""
        count = prod(factor.evaluate(sizes) for factor in self.factors)
        if not self.resident or resident is None:
            return count
        return min(count, max(1, resident // self.cluster) * self.cluster)

    def least(self) -> int:
        """The blocks that there are whatever sizes are."""
        return 1 if self.resident else prod(factor.least() for factor in self.factors)

    def __str__(self) -> str:
        text = " * ".join(map(str, self.factors))
        if not self.resident:
            return text
        text += " at most resident"
        return text if self.cluster == 1 else f"{text} cluster {self.cluster}"


def fixed_extents(extents: Sequence[Extent | BlockCount]) -> list[int]:
    """The extents that are numbers; 1 for those that are not known, or nothing at all."""
    return [extent.least() for extent in extents]


@irdl_attr_definition
class GridAttr(Data[tuple[Extent | BlockCount, ...]]):
    """How many blocks to launch: `#frag.grid<n by 128, m by 128>`, n / 128 rounded up and so on.

    Names are the sizes that the arguments' `frag.sizes` give to dynamic dimensions. A dimension may
    be a product, `m by 128 * n by 256`, and `at most resident`: as many blocks as run at once,
    in whole clusters with `cluster 2`.
    """

    name = "frag.grid"

    def evaluate(self, sizes: dict[str, int], resident: int | None = None) -> tuple[int, int, int]:
        """Blocks along x, y and z, where `resident` run at once (without it, any number)."""
        counts = [
            extent.evaluate(sizes)
            if isinstance(extent, Extent)
            else extent.evaluate(sizes, resident)
            for extent in self.data
        ]
        x, y, z = (*counts, 1, 1)[:3]
        return x, y, z

    @property
    def names(self) -> tuple[str, ...]:
        """The sizes that it names."""
        factors = (factor for extent in self.data for factor in _factors(extent))
        return tuple(factor.size for factor in factors if isinstance(factor.size, str))

    @property
    def asks_for_residents(self) -> bool:
        """Whether the number of blocks depends on how many run at once."""
        return any(isinstance(extent, BlockCount) and extent.resident for extent in self.data)

    @property
    def cluster(self) -> int:
        """In multiples of how many blocks those that run at once are counted."""
        return max((e.cluster for e in self.data if isinstance(e, BlockCount)), default=1)

    def verify(self) -> None:
        if not 1 <= len(self.data) <= 3:
            raise VerifyException("a grid has one to three dimensions")
        if any(factor.divisor < 1 for extent in self.data for factor in _factors(extent)):
            raise VerifyException("a grid's divisors are positive")
        if any(isinstance(extent, BlockCount) and extent.cluster < 1 for extent in self.data):
            raise VerifyException("a grid's clusters have one block or more")
        if self.asks_for_residents and len(self.data) > 1:
            raise VerifyException(
                "a grid of as many blocks as run at once has one dimension; write a product"
            )
        problem = grid_problem(fixed_extents(self.data))
        if problem is not None:
            raise VerifyException(problem[0])

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Extent | BlockCount, ...]:
        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parse_extent(parser))
        )

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))


def _factors(extent: Extent | BlockCount) -> tuple[Extent, ...]:
    return (extent,) if isinstance(extent, Extent) else extent.factors


def _parse_extent(parser: AttrParser) -> Extent | BlockCount:
    factors = [parse_extent(parser)]
    while parser.parse_optional_punctuation("*"):
        factors.append(parse_extent(parser))
    resident = parser.parse_optional_keyword("at") is not None
    if resident:
        parser.parse_keyword("most")
        parser.parse_keyword("resident")
    cluster = parser.parse_integer() if resident and parser.parse_optional_keyword("cluster") else 1
    if len(factors) == 1 and not resident:
        return factors[0]
    return BlockCount(tuple(factors), resident, cluster)


def parse_extent(parser: AttrParser) -> Extent:
    """`n by 128`, `n` or a number."""
    size = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    name = None if size is not None else parser.parse_identifier(": a number or a size")
    # `/` starts a comment in MLIR, so the divisor follows a keyword
    divisor = parser.parse_integer() if parser.parse_optional_keyword("by") else 1
    return Extent(size if size is not None else str(name), divisor)


# --- the least memory -----------------------------------------------------------------------------


@irdl_attr_definition
class LeastAttr(Data[tuple[Extent, ...]]):
    """Of an argument of a function: `{frag.least = #frag.least<m by 64, n by 64>}`.

    One extent a dimension, as of `#frag.grid`: a number, or a named size divided and rounded up. A
    launch with a smaller array is refused. `frag-tile` writes it for memory whose size depends on
    how a product is cut.
    """

    name = "frag.least"

    def verify(self) -> None:
        if any(extent.divisor < 1 for extent in self.data):
            raise VerifyException("what a size is divided by is positive")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Extent, ...]:
        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_extent(parser))
        )

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))


# --- promises -------------------------------------------------------------------------------------

DIVISIBLE = "frag.divisible"
LEAST = "frag.least"
Names = tuple[int | str, ...]


def promises_error(attribute: Attribute | None) -> str | None:
    """What is wrong with a `frag.divisible`; None where all is well."""
    if attribute is None:
        return None
    hint = "write a positive number for each size: frag.divisible = {n = 16}"
    if not isinstance(attribute, DictionaryAttr):
        return f"frag.divisible = {attribute} names no sizes; {hint}"
    for name, number in attribute.data.items():
        if not isinstance(number, IntegerAttr) or not 1 <= number.value.data < 1 << 31:
            return f"frag.divisible promises that {name} is a multiple of {number}; {hint}"
    return None


def promises_of(function: FuncOp) -> dict[str, int]:
    """What a function's `frag.divisible` promises: name of a size -> what divides it."""
    attribute = function.attributes.get(DIVISIBLE)
    if not isinstance(attribute, DictionaryAttr):
        return {}
    return {
        name: number.value.data
        for name, number in attribute.data.items()
        if isinstance(number, IntegerAttr)
    }


def least_of(function: FuncOp, index: int) -> tuple[Extent, ...]:
    """How large an argument must at least be (`frag.least`), one extent a dimension; () where
    nothing is said."""
    if function.arg_attrs is None:
        return ()
    given = function.arg_attrs.data[index].data.get(LEAST)
    if given is None:
        return ()
    return given.data if isinstance(given, LeastAttr) else ()


def size_names(function: FuncOp, index: int) -> tuple[Names, Names | None]:
    """The dimensions and the strides of a function's memory argument.

    Static ones are numbers, dynamic ones names. None for the strides of row-major order.
    """
    argument = function.body.block.args[index]
    type_ = memref_type(argument.type)
    base = argument.name_hint or f"arg{index}"
    given: tuple[str, ...] = ()
    if function.arg_attrs is not None:
        given = sizes_of(function.arg_attrs.data[index].data.get("frag.sizes"))
    dims = tuple(
        (given[d] if d < len(given) else f"{base}_d{d}") if size == DYNAMIC_INDEX else size
        for d, size in enumerate(type_.get_shape())
    )
    if isinstance(type_.layout, ExplicitLayoutAttr):
        known = type_.layout.get_strides()
        return dims, None if known is None else tuple(known)
    if not isinstance(type_.layout, StridedLayoutAttr):
        return dims, None
    strides = tuple(
        stride.data if isinstance(stride, IntAttr) else f"{base}_s{d}"
        for d, stride in enumerate(type_.layout.strides.data)
    )
    return dims, strides
