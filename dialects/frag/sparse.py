"""Sparse products of tiles: A with two of four elements kept, and metadata that say which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
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
from fragir.dialects.frag import product_layouts
from fragir.dialects.frag.instructions import (
    How,
    check_target,
    check_words,
    is_mma,
    mma,
    parse_name,
)
from fragir.dialects.frag.products import (
    METADATA,
    A,
    B,
    C,
    TileTypes,
    check_metadata,
    flag,
    of_accumulators,
    of_scales,
    optional_string,
    read_scales,
    tile_types,
    word,
)
from fragir.dialects.frag.types import TileType, tile_of
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
from fragir.isa.products import SPARSE, multiplied, shapes
from fragir.isa.spelling import mnk

ORDERED, PLAIN_SPARSE = "mma.sp::ordered_metadata", "mma.sp"


def choose_sparse(
    a: TileType,
    b: TileType,
    c: TileType,
    d: TileType,
    how: How,
    using: str = "",
    target: str | None = None,
) -> isa.Instruction:
    """The mma.sp for these tiles; FragirError where none fits or is there."""
    m, n, k = c.rows, c.cols, b.rows
    types = a.element, b.element, c.element, d.element
    known = dict.fromkeys((*multiplied(SPARSE, False), *multiplied(SPARSE, True)))
    if types[0] not in known:
        raise FragirError(
            f"no sparse mma multiplies {types[0]}", hint=f"it takes {', '.join(known)}"
        )
    check_words(types, how)
    every = shapes(SPARSE, types[0], bool(how.scale))
    if using:
        shape, type_, _ = parse_name(using)
        if type_ != types[0] or shape not in every:
            raise FragirError(
                f"there is no sparse {using} for A of {types[0]}",
                hint=f"write {' or '.join(f'{shape}.{types[0]}' for shape in every)}",
            )
        every = (shape,)
    fitting = [
        shape
        for shape in every
        if all(size % s == 0 for size, s in zip((m, n, k), mnk(shape), strict=True))
    ]
    if not fitting:
        raise FragirError(
            f"no sparse mma of {types[0]} divides {m}x{n}x{k} (M x N x K)",
            hint=f"make the tile a multiple of {' or '.join(every)}",
        )
    shape = next((shape for shape in fitting if is_mma(shape, types, how)), fitting[0])
    try:
        instruction = mma(shape, *types, how=how)
    except FragirError as error:
        raise FragirError(
            f"there is no sparse {shape} of {types[0]} x {types[1]} + {types[2]} -> "
            f"{types[3]}" + (" with unordered metadata" if how.sparse == PLAIN_SPARSE else ""),
            hint=_way_out(shape, types, how),
        ) from error
    check_target(instruction, target)
    return instruction


def _way_out(shape: str, types: tuple[str, str, str, str], how: How) -> str | None:
    """What exists instead: ordered metadata, or another type of C and D."""
    try:
        mma(shape, *types, how=how._replace(sparse=ORDERED))
    except FragirError:
        return "C and D have one type, f32, f16 or i32"
    return "leave `unordered` out and let the metadata name rising indices"


def dense_name(instruction: isa.Instruction, a: str) -> str:
    """The dense instruction of half the K, whose fragments A, C and D are; B is two of its B.

    `a` is the element type of A's tile.
    """
    m, n, k = instruction.shape
    return f"m{m}n{n}k{k // 2}.{a}"


@op_definition
class MmaSparseOp(IRDLOperation, LayoutInterface, DimensionsInterface):
    """`d = a b + c` with a sparse A: of every four elements along K two are kept.

    `a` is the packed A, M x K/2; `b` is K x N. `metadata` has a nibble for every chunk of a row of
    A, M x K/4 of ui4 (tf32: chunks of two, one kept, M x K/2; s4 and packed f4E2M1FN: chunks of
    eight in pairs, M x K/8): bits 1:0 name the first element that is kept, bits 3:2 the second, in
    rising order. `unordered` takes them in any order (mma.sp without ordered_metadata, which newer
    machines sort first). The other words are those of frag.mma; one scale of mxf8f6f4 serves 64
    elements of K, of mxf4 64, of mxf4nvf4 64 or 32. PTX ISA 9.2, section 9.7.14.6.
    """

    name = "frag.mma_sparse"
    _M: ClassVar = IntVarConstraint("M", AnyInt())
    _N: ClassVar = IntVarConstraint("N", AnyInt())
    a = operand_def(TileType.constr(_M))
    b = operand_def(TileType.constr(None, _N))
    c = operand_def(TileType.constr(_M, _N))
    metadata = operand_def(TileType.constr(_M))
    scales = var_operand_def(TileType)
    unordered = opt_prop_def(UnitAttr)
    satfinite = opt_prop_def(UnitAttr)
    kind = opt_prop_def(StringAttr)
    using = opt_prop_def(StringAttr)
    d = result_def(TileType.constr(_M, _N))
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$a `,` $b `,` $c `,` $metadata (`unordered` $unordered^)? (`scaled` $scales^)?"
        " (`satfinite` $satfinite^)? (`kind` $kind^)? (`using` $using^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `,` type($metadata) (`,` type($scales)^)?"
        " `->` type($d)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        metadata: SSAValue | Operation,
        d: TileType | None = None,
        *,
        scales: Sequence[SSAValue | Operation] = (),
        unordered: bool = False,
        satfinite: bool = False,
        kind: str = "",
        using: str = "",
    ):
        super().__init__(
            operands=[a, b, c, metadata, scales],
            properties={
                "unordered": flag(unordered),
                "satfinite": flag(satfinite),
                "kind": optional_string(kind),
                "using": optional_string(using),
            },
            result_types=[d or SSAValue.get(c).type],
        )

    def tile_types(self) -> TileTypes:
        """The types of a, b, c and d."""
        return tile_types(self.a, self.b, self.c, self.d)

    def how(self) -> How:
        """What it says besides shapes and types; FragirError where the scales do not fit."""
        _, b, _, d = self.tile_types()
        scale, block = read_scales(self.scales, d.rows, d.cols, b.rows)
        return How(
            satfinite=self.satfinite is not None,
            kind=word(self.kind),
            scale=scale,
            block=block,
            sparse=ORDERED if self.unordered is None else PLAIN_SPARSE,
        )

    def instruction(self, target: str | None = None) -> isa.Instruction:
        """The instruction this becomes; FragirError where there is none."""
        return choose_sparse(*self.tile_types(), self.how(), word(self.using), target)

    def same_layout(self) -> Iterable[Sequence[Tile]]:
        """C and D, where they are of one type."""
        return of_accumulators(self.tile_types(), OperandAt(self, C), self.d)

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """The fragments of the dense instruction of half the K, and what lanes select from."""
        instruction = self.instruction(threads.target)
        name = dense_name(instruction, self.tile_types()[0].element)
        tiles = (OperandAt(self, A), OperandAt(self, B), OperandAt(self, C), self.d)
        operands = [(tile, name, role) for tile, role in zip(tiles, "abcc", strict=True)]
        warps = product_layouts.warps_for(name, self.d.type, threads.warps)
        yield from product_layouts.fragments(operands, "abcd", warps)
        yield product_layouts.selected_demand(instruction, "e", OperandAt(self, METADATA), warps)
        yield from product_layouts.scales(instruction, self, self.scales, warps)

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """Those of the dense product; A and the metadata are packed along K."""
        yield self.a, ("m", None)
        yield self.b, ("k", "n")
        yield self.metadata, ("m", None)
        yield from of_scales(self.scales)

    def sparsity(self) -> tuple[SSAValue, int]:
        """The metadata and their chunk."""
        return self.metadata, self.instruction().operands["e"].chunk

    def verify_(self) -> None:
        a, b, _, _ = self.tile_types()
        metadata = tile_of(self.metadata)
        if b.rows != 2 * a.cols:
            raise VerifyException(
                f"frag.mma_sparse: B has {b.rows} rows, A {a.cols} packed columns; A "
                "keeps half of K"
            )
        try:
            instruction = self.instruction()
            tiles = (self.a, self.b, self.c, self.d)
            product_layouts.check_in_order(tiles, "metadata are for rows and K as they are")
        except FragirError as error:
            raise VerifyException(f"frag.mma_sparse: {error}") from error
        check_metadata(self.name, instruction, metadata, a.rows, b.rows)
