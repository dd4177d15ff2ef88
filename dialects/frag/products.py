"""Products of tiles by warps: frag.mma, and what it has in common with others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyInt,
    IntVarConstraint,
    IRDLOperation,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.definition import op_definition
from fragir.dialects.frag import demands
from fragir.dialects.frag.choice import choose
from fragir.dialects.frag.instructions import instruction_of, operand_name
from fragir.dialects.frag.qualifiers import How
from fragir.dialects.frag.scales import of_scales, read_scales
from fragir.dialects.frag.types import TileType
from fragir.dialects.interfaces import (
    DimensionsInterface,
    LayoutDemand,
    LayoutInterface,
    Names,
    OperandAt,
    Threads,
    Tile,
)
from fragir.errors import FragirError

A, B, C, METADATA = range(4)
"""The places of a product's first operands."""


def word(attribute: StringAttr | None) -> str:
    """The string of a property, empty where it is not given."""
    return "" if attribute is None else attribute.data


def given(text: str) -> StringAttr | None:
    """A property for a string, none for an empty one."""
    return StringAttr(text) if text else None


def flag(on: bool) -> UnitAttr | None:
    """A property that is there or not."""
    return UnitAttr() if on else None


TileTypes: TypeAlias = tuple[TileType, TileType, TileType, TileType]


def tile_types(a: SSAValue, b: SSAValue, c: SSAValue, d: SSAValue) -> TileTypes:
    """The types of the tiles of a product."""
    types = a.type, b.type, c.type, d.type
    for type_ in types:
        assert isinstance(type_, TileType)
    return cast("TileTypes", types)


def of_accumulators(types: TileTypes, c: Tile, d: SSAValue) -> Iterable[Sequence[Tile]]:
    """C and D have one layout where they are of one type."""
    return ((c, d),) if types[2].element_type == types[3].element_type else ()


def turned(names: Names, transposed: UnitAttr | None) -> Names:
    """The names of dimensions as memory has them."""
    return names if transposed is None else names[::-1]


@op_definition
class MmaOp(IRDLOperation, LayoutInterface, DimensionsInterface):
    """`d = a b + c` on tiles of any multiple of an mma.sync's shape, over the warps of a block.

    The instruction is that of the tiles' layouts, else the one named by `using` (like
    "m16n8k8.f16"), else the largest that fits shape and types. `scaled %sfa, %sfb` multiplies
    blocks along K by scales: SFA is M x blocks, SFB blocks x N. `satfinite` clamps sums of
    integers, at every instruction; `rounding "rz"` rounds sums of f64 so; `bitop "xor"` counts
    where single bits differ instead of where both are set; `kind "mxf4nvf4"` names the kind where
    the types leave it open. PTX ISA 9.2, sections 9.7.14.5 and 9.7.14.3.
    """

    name = "frag.mma"
    _M: ClassVar = IntVarConstraint("M", AnyInt())
    _N: ClassVar = IntVarConstraint("N", AnyInt())
    _K: ClassVar = IntVarConstraint("K", AnyInt())
    _P: ClassVar = IntVarConstraint("P", AnyInt())
    a = operand_def(TileType.constr(_M, _K, _P))
    b = operand_def(TileType.constr(_K, _N, _P))
    c = operand_def(TileType.constr(_M, _N, _P))
    scales = var_operand_def(TileType)
    satfinite = opt_prop_def(UnitAttr)
    rounding = opt_prop_def(StringAttr)
    bitop = opt_prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    using = opt_prop_def(StringAttr)
    d = result_def(TileType.constr(_M, _N, _P))
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$a `,` $b `,` $c (`scaled` $scales^)? (`satfinite` $satfinite^)?"
        " (`rounding` $rounding^)? (`bitop` $bitop^)? (`kind` $kind^)? (`using` $using^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) (`,` type($scales)^)? `->` type($d)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        d: TileType | None = None,
        *,
        using: str | None = None,
        scales: Sequence[SSAValue | Operation] = (),
        satfinite: bool = False,
        rounding: str = "",
        bitop: str = "",
        kind: str = "",
    ):
        super().__init__(
            operands=[a, b, c, scales],
            properties={
                "using": given(using or ""),
                "satfinite": flag(satfinite),
                "rounding": given(rounding),
                "bitop": given(bitop),
                "kind": given(kind),
            },
            result_types=[d or SSAValue.get(c).type],
        )

    def tile_types(self) -> TileTypes:
        """The types of a, b, c and d."""
        return tile_types(self.a, self.b, self.c, self.d)

    def how(self) -> How:
        """What it says besides shapes and types; FragirError where the scales do not fit."""
        a, _, _, d = self.tile_types()
        scale, block = read_scales(self.scales, d.rows, d.cols, a.cols)
        return How(
            self.satfinite is not None,
            word(self.rounding),
            word(self.bitop),
            word(self.kind),
            scale,
            block,
        )

    def instruction_name(self, target: str | None = None) -> str:
        """The short name of the instruction this becomes; FragirError where there is none."""
        a, b, c, d = self.tile_types()
        using = None if self.using is None else self.using.data
        return choose(a, b, c, d, using, target, self.how())

    def instruction(self, target: str | None = None) -> isa.Instruction:
        """The instruction this becomes; FragirError where there is none."""
        a, b, c, d = (tile.element for tile in self.tile_types())
        return instruction_of(self.instruction_name(target), a, b, c, d, self.how())

    def same_layout(self) -> Iterable[Sequence[Tile]]:
        """C and D, where they are of one type."""
        return of_accumulators(self.tile_types(), OperandAt(self, C), self.d)

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """The fragments of the instruction that the target has for these tiles."""
        name = self.instruction_name(threads.target)
        _, _, c, d = self.tile_types()
        warps = demands.warps_for(name, d, threads.warps)
        operands = [
            (tile, operand_name(name, operand, accumulator), operand)
            for tile, operand, accumulator in (
                (OperandAt(self, A), "a", ""),
                (OperandAt(self, B), "b", ""),
                (OperandAt(self, C), "c", c.element),
                (self.d, "c", d.element),
            )
        ]
        yield from demands.fragments(operands, "abcd", warps)
        if self.scales:
            instruction = self.instruction(threads.target)
            yield from demands.scales(instruction, self, self.scales, warps)

    def alternatives(
        self, value: SSAValue, layout: Attribute, threads: Threads
    ) -> Iterator[Sequence[LayoutDemand]]:
        """A and B with K in the order in which `layout` has the columns of A in its lanes; B, C
        and D with N in that in which `layout` has those of C.
        """
        if value not in (self.a, self.c) or self.scales:
            return
        a, b, c, d = self.demands(threads)
        if value is self.a:
            yield from demands.reordered(a, b, layout)
        if value is self.c:
            yield from demands.columns_reordered(b, c, d, layout)

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """M x K, K x N, and of the scales what they share with A and B."""
        yield self.a, ("m", "k")
        yield self.b, ("k", "n")
        yield from of_scales(self.scales)

    def verify_(self) -> None:
        try:
            self.instruction_name()
            if self.scales:
                tiles = (self.a, self.b, self.c, self.d)
                demands.check_in_order(tiles, "scales are for blocks of K as it is")
        except FragirError as error:
            raise VerifyException(f"frag.mma: {error}") from error
