"""Tiles that are made of no other: where an element stands, and random numbers (Philox 4x32-10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    eq,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.pointwise import elementwise_cost
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import LayoutInterface, Threads

# --- places ---------------------------------------------------------------------------------------


@op_definition
class IotaOp(IRDLOperation, LayoutInterface):
    """Every element's place along a dimension of the tile, i32 from 0 on."""

    name = "frag.iota"
    dim = prop_def(IntegerAttr.constr(i64))
    tile = result_def(TileType.constr(element_type=eq(i32)))
    traits = traits_def(Pure())
    assembly_format = "`dim` $dim attr-dict `:` type($tile)"

    def __init__(self, dim: int, tile: TileType):
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[tile])

    @property
    def along(self) -> int:
        """The number of the dimension."""
        return self.dim.value.data

    def verify_(self) -> None:
        if not 0 <= self.along < len(self.tile.type.shape):
            raise VerifyException(f"frag.iota: {self.tile.type} has no dimension {self.along}")

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """An instruction for each place."""
        return elementwise_cost(self.tile, layouts[self.tile], 1)

    def repeats(self) -> bool:
        """Always."""
        return True


# --- random numbers -------------------------------------------------------------------------------


class Philox(NamedTuple):
    """The numbers of Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
    easy as 1, 2, 3", SC 2011, table 2 and section 3.4)."""

    rounds: int = 10
    factors: tuple[int, int] = (0xD2511F53, 0xCD9E8D57)
    """What words 0 and 2 of the counter are multiplied by."""
    steps: tuple[int, int] = (0x9E3779B9, 0xBB67AE85)
    """What is added to the two words of the key after each round."""


PHILOX = Philox()
WORDS = 4  # of a counter, and of what comes out
INSTRUCTIONS = 6 * PHILOX.rounds  # two products of 64 bits, their halves in four exclusive or


@op_definition
class RandomOp(IRDLOperation, LayoutInterface):
    """Four tiles of random bits, each a function of the seed and of an element's counter.

    Philox 4x32-10. The key is the seed, i64, or i32 with its sign extended; the counter's words are
    the elements of up to four tiles of i32, the first one lowest, and zero. Equal counters give
    equal bits, in every layout and on every machine: with one tile of offsets those of Triton's
    `tl.randint4x(seed, offset)`.
    """

    name = "frag.random"
    _T: ClassVar = VarConstraint("T", base(TileType))
    seed = operand_def(eq(i32) | eq(i64))
    counter = operand_def(_T)
    more = var_operand_def(TileType)
    first = result_def(_T)
    second = result_def(_T)
    third = result_def(_T)
    fourth = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = (
        "$seed `,` $counter (`,` $more^)? attr-dict `:` type($seed) `,` type($counter)"
        " (`,` type($more)^)?"
    )

    def __init__(self, seed: SSAValue | Operation, counter: Sequence[SSAValue | Operation]):
        first, *more = counter
        tile = SSAValue.get(first).type
        super().__init__(operands=[seed, first, more], result_types=[tile] * WORDS)

    def words(self) -> tuple[SSAValue, ...]:
        """The words of the counter that are given, the lowest first."""
        return (self.counter, *self.more)

    def same_layout(self) -> Iterable[Sequence[SSAValue]]:
        """All tiles."""
        return ((*self.words(), *self.results),)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """Ten rounds for each element."""
        return elementwise_cost(self.counter, layouts[self.counter], INSTRUCTIONS)

    def repeats(self) -> bool:
        """Always."""
        return True

    def verify_(self) -> None:
        tile = tile_of(self.counter)
        if tile.element_type != i32:
            raise VerifyException(f"frag.random counts in i32, not in {tile.element_type}")
        if len(self.words()) > WORDS:
            raise VerifyException(
                f"frag.random: a counter has at most {WORDS} words, not {len(self.words())}"
            )
        for other in self.more:
            if other.type != tile:
                raise VerifyException(
                    f"frag.random: the words of the counter are {tile} and {other.type}"
                )
