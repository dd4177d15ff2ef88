"""Products of tiles: frag.mma by warps, frag.wgmma by warpgroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyInt,
    BaseAttr,
    IntVarConstraint,
    IRDLOperation,
    VarConstraint,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_name
from fragir.dialects.frag import demands
from fragir.dialects.frag.choice import check_wgmma, choose, wgmma_n
from fragir.dialects.frag.instructions import instruction_of, operand_name, wgmma
from fragir.dialects.frag.memory_layout import check_memory
from fragir.dialects.frag.qualifiers import How
from fragir.dialects.frag.scales import check_metadata, of_scales, read_scales
from fragir.dialects.frag.types import TileType, is_shared, tile_of
from fragir.dialects.interfaces import (
    DimensionsInterface,
    LayoutDemand,
    LayoutInterface,
    MemoryInterface,
    Names,
    OperandAt,
    Threads,
    Tile,
    WarpgroupCollective,
)
from fragir.dialects.narrow import is_memref, memref_type
from fragir.errors import FragirError
from fragir.isa.products import wgmma_k
from fragir.layout import Layout

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
        operands = [
            (tile, operand_name(name, operand, accumulator), operand)
            for tile, operand, accumulator in (
                (OperandAt(self, A), "a", ""),
                (OperandAt(self, B), "b", ""),
                (OperandAt(self, C), "c", c.element),
                (self.d, "c", d.element),
            )
        ]
        yield from demands.fragments(operands, "abcd", threads.warps)
        if self.scales:
            instruction = self.instruction(threads.target)
            yield from demands.scales(instruction, self, self.scales, threads.warps)

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


@op_definition
class WgmmaOp(IRDLOperation, LayoutInterface, DimensionsInterface, MemoryInterface):
    """`d = a b + c` by warpgroups (wgmma): b, and a unless it is a tile, lie in shared memory.

    In memory A is M x K and B is K x N; `transposed` says that the memory holds K x M or N x K.
    It must be swizzled, complete and visible to all (frag.wait, frag.barrier) beforehand.
    `negated` flips the sign of a float operand; `satfinite` clamps sums of integers, at every
    instruction. `sparse %metadata` multiplies a packed A, M x K/2, as in frag.mma_sparse.
    The result is there when the operation is done. PTX ISA 9.2, section 9.7.15.
    """

    name = "frag.wgmma"
    _C: ClassVar = VarConstraint("C", BaseAttr(TileType))
    a = operand_def(BaseAttr(TileType) | BaseAttr(MemRefType))
    b = operand_def(MemRefType)
    c = operand_def(_C)
    metadata = opt_operand_def(TileType)
    a_transposed = opt_prop_def(UnitAttr)
    b_transposed = opt_prop_def(UnitAttr)
    a_negated = opt_prop_def(UnitAttr)
    b_negated = opt_prop_def(UnitAttr)
    satfinite = opt_prop_def(UnitAttr)
    d = result_def(_C)
    traits = traits_def(MemoryReadEffect(), WarpgroupCollective())
    assembly_format = (
        "$a (`transposed` $a_transposed^)? (`negated` $a_negated^)?"
        " `,` $b (`transposed` $b_transposed^)? (`negated` $b_negated^)?"
        " `,` $c (`sparse` $metadata^)? (`satfinite` $satfinite^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) (`,` type($metadata)^)?"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        *,
        a_transposed: bool = False,
        b_transposed: bool = False,
        a_negated: bool = False,
        b_negated: bool = False,
        metadata: SSAValue | Operation | None = None,
        satfinite: bool = False,
    ):
        super().__init__(
            operands=[a, b, c, metadata],
            properties={
                "a_transposed": flag(a_transposed),
                "b_transposed": flag(b_transposed),
                "a_negated": flag(a_negated),
                "b_negated": flag(b_negated),
                "satfinite": flag(satfinite),
            },
            result_types=[SSAValue.get(c).type],
        )

    def how(self) -> How:
        """What it says besides shapes and types."""
        return How(satfinite=self.satfinite is not None, sparse="wgmma.sp" if self.metadata else "")

    def shapes(self) -> tuple[int, int, int]:
        """(M, N, K) of the whole product; VerifyException where the operands disagree."""
        c = tile_of(self.d)
        m, n = c.rows, c.cols
        a, b = _matrix(self.a, self.a_transposed), _matrix(self.b, self.b_transposed)
        if a[0] != m or b[1] != n or a[1] * (2 if self.metadata else 1) != b[0]:
            packed = "the packed " if self.metadata else ""
            raise VerifyException(
                f"frag.wgmma: {packed}{a[0]}x{a[1]} times {b[0]}x{b[1]} is not {m}x{n}; "
                "write `transposed` after an operand that memory holds the other way round"
            )
        return m, n, b[0]

    def elements(self) -> tuple[Attribute, Attribute]:
        """The element types of A and B."""
        a = self.a.type
        first = a.element_type if isinstance(a, TileType) else memref_type(a).element_type
        return first, memref_type(self.b.type).element_type

    def instruction(self, n: int) -> isa.Instruction:
        """The instruction with this N."""
        a, b = (element_name(type_) for type_ in self.elements())
        d = tile_of(self.d)
        return wgmma(n, a, b, d.element, self.how())

    def same_layout(self) -> Iterable[Sequence[Tile]]:
        """C and D."""
        return ((OperandAt(self, C), self.d),)

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """The accumulator's fragments, and those of what A has in registers."""
        tile, a, groups = tile_of(self.d), self.a.type, threads.warpgroups
        element = element_name(self.elements()[0])
        part = tile
        if tile.placement is None:
            # one warpgroup's share of the columns
            part = TileType((tile.rows, tile.cols // groups[1]), tile.element_type)
        n = wgmma_n(part, element)
        name = f"m64n{n}k{wgmma_k(element)}.{element}"
        operands: list[tuple[Tile, str, str]] = [(self.d, name, "c")]
        if isinstance(a, TileType):
            operands.append((OperandAt(self, A), name, "a"))
        yield from demands.fragments(operands, "da"[: len(operands)], groups)
        if self.metadata is not None:
            yield demands.selected(self.instruction(n), "e", OperandAt(self, METADATA), groups)

    def alternatives(
        self, value: SSAValue, layout: Attribute, threads: Threads
    ) -> Iterator[Sequence[LayoutDemand]]:
        """D with its columns in the order in which `layout` has them, and B's rows in memory so."""
        if value is not self.c or self.b_transposed is None or self.metadata is not None:
            return
        yield from demands.columns_and_rows(next(self.demands(threads)), OperandAt(self, B), layout)

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """B's, where they are columns of D: those are counted alike (`alternatives`)."""
        return memory is self.b and memory is not self.a and self.b_transposed is not None

    def orders(self) -> dict[str, Layout]:
        """Dimensions that its tiles have in another order than the instruction's; what lies in
        memory is read in that order.
        """
        tiles = (v for v in (self.a, self.c, self.d) if isinstance(v.type, TileType))
        return demands.orders_of(tiles)

    def reads(self) -> list[SSAValue]:
        """B, and A unless it is in registers."""
        return [v for v in (self.a, self.b) if is_memref(v.type)]

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """M x K and K x N, turned where memory holds them so; K of a packed A is another."""
        yield self.a, turned(("m", "k" if self.metadata is None else None), self.a_transposed)
        yield self.b, turned(("k", "n"), self.b_transposed)
        if self.metadata is not None:
            yield self.metadata, ("m", None)

    def sparsity(self) -> tuple[SSAValue, int] | None:
        """The metadata and their chunk, which is the same for every N."""
        if self.metadata is None:
            return None
        return self.metadata, self.instruction(8).operands["e"].chunk

    def verify_(self) -> None:
        m, _, k = self.shapes()
        a, b, c = self.a.type, memref_type(self.b.type), tile_of(self.d)
        for name, operand in (("a", a), ("b", b)):
            if is_memref(operand):
                check_memory(self.name, operand)
            if is_memref(operand) and not is_shared(operand):
                raise VerifyException(
                    f"frag.wgmma: {name} lies in {operand}; wgmma reads shared memory only, so "
                    "copy it to a memref in #frag.shared<swizzle = ...> first"
                )
        if isinstance(a, TileType) and self.a_transposed:
            raise VerifyException("frag.wgmma: a tile in registers cannot be transposed")
        negated = self.a_negated is not None or self.b_negated is not None
        first, second = self.elements()
        try:
            check_wgmma(first, second, c, k, self.how(), negated)
            if self.metadata is not None:
                tiles = (v for v in (self.a, self.c, self.d) if isinstance(v.type, TileType))
                demands.check_in_order(tiles, "metadata are for rows and K as they are")
                metadata = tile_of(self.metadata)
                instruction = self.instruction(wgmma_n(c, element_name(first)))
                check_metadata(self.name, instruction, metadata, m, k)
        except FragirError as error:
            raise VerifyException(f"frag.wgmma: {error}") from error


def _matrix(operand: SSAValue, transposed: UnitAttr | None) -> tuple[int, int]:
    type_ = operand.type
    if isinstance(type_, TileType):
        return type_.rows, type_.cols
    shape = memref_type(type_).get_shape()
    if len(shape) != 2:
        raise VerifyException(
            f"frag.wgmma: {type_} is no matrix; pick one of a stack with frag.view"
        )
    if DYNAMIC_INDEX in shape:
        raise VerifyException(f"frag.wgmma: {type_} has dynamic sizes; wgmma's are static")
    return (shape[1], shape[0]) if transposed else (shape[0], shape[1])
