"""Sparse products of tiles: A with two of four elements kept, and metadata that say which."""

from __future__ import annotations

import re
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyInt,
    IntVarConstraint,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.frag.types import TileType
from fragir.errors import FragirError
from fragir.isa.targets import number

# Shapes of mma.sp to try for each type of A, the largest K first.
SPARSE_SHAPES: dict[str, tuple[str, ...]] = {
    "f16": ("m16n8k32", "m16n8k16"),
    "bf16": ("m16n8k32", "m16n8k16"),
    "tf32": ("m16n8k16", "m16n8k8"),
    "s8": ("m16n8k64", "m16n8k32"),
    "u8": ("m16n8k64", "m16n8k32"),
    "s4": ("m16n8k128", "m16n8k64"),
    "u4": ("m16n8k128", "m16n8k64"),
    "e4m3": ("m16n8k64",),
    "e5m2": ("m16n8k64",),
}


def choose_sparse(
    a: TileType, b: TileType, c: TileType, d: TileType, target: str | None = None
) -> isa.Instruction:
    """The mma.sp::ordered_metadata for these tiles; FragirError where none fits or is there."""
    m, n, k = c.rows.data, c.cols.data, b.rows.data
    if a.element not in SPARSE_SHAPES:
        raise FragirError(
            f"no sparse mma multiplies {a.element}", hint=f"it takes {', '.join(SPARSE_SHAPES)}"
        )
    fitting = [
        shape
        for shape in SPARSE_SHAPES[a.element]
        if all(size % s == 0 for size, s in zip((m, n, k), _sizes(shape), strict=True))
    ]
    if not fitting:
        raise FragirError(
            f"no sparse mma of {a.element} divides {m}x{n}x{k} (M x N x K)",
            hint=f"make the tile a multiple of {' or '.join(SPARSE_SHAPES[a.element])}",
        )
    types = f"{d.element}.{a.element}.{b.element}.{c.element}"
    instruction = isa.lookup(f"mma.sp::ordered_metadata.sync.aligned.{fitting[0]}.row.col.{types}")
    if target is not None and target not in instruction.targets:
        first = min(instruction.targets, key=number)
        raise FragirError(
            f"{target} has no {instruction.mnemonic}", hint=f"it exists from {first} on"
        )
    return instruction


def _sizes(shape: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", shape)))


def dense_name(instruction: isa.Instruction) -> str:
    """The dense instruction of half the K, whose fragments A, C and D are; B is two of its B."""
    m, n, k = instruction.shape
    return f"m{m}n{n}k{k // 2}.{instruction.types.a}"


@irdl_op_definition
class MmaSparseOp(IRDLOperation):
    """`d = a b + c` with a sparse A: of every four elements along K two are kept.

    `a` is the packed A, M x K/2; `b` is K x N. `metadata` has a nibble for every chunk of a row of
    A, M x K/4 of ui4 (tf32: chunks of two, one kept, M x K/2; s4: chunks of eight in pairs, M x
    K/8): bits 1:0 name the first element that is kept, bits 3:2 the second, in rising order.
    PTX ISA 9.2, section 9.7.14.6.
    """

    name = "frag.mma_sparse"
    _M: ClassVar = IntVarConstraint("M", AnyInt())
    _N: ClassVar = IntVarConstraint("N", AnyInt())
    a = operand_def(TileType.constr(_M))
    b = operand_def(TileType.constr(None, _N))
    c = operand_def(TileType.constr(_M, _N))
    metadata = operand_def(TileType.constr(_M))
    d = result_def(TileType.constr(_M, _N))
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$a `,` $b `,` $c `,` $metadata attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `,` type($metadata) `->` type($d)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        metadata: SSAValue | Operation,
        d: TileType | None = None,
    ):
        super().__init__(
            operands=[a, b, c, metadata],
            result_types=[d or SSAValue.get(c).type],
        )

    def tile_types(self) -> tuple[TileType, TileType, TileType, TileType]:
        """The types of a, b, c and d."""
        a, b, c = self.a.type, self.b.type, self.c.type
        assert isinstance(a, TileType)
        assert isinstance(b, TileType)
        assert isinstance(c, TileType)
        return a, b, c, self.d.type

    def instruction(self, target: str | None = None) -> isa.Instruction:
        """The instruction this becomes; FragirError where there is none."""
        return choose_sparse(*self.tile_types(), target)

    def verify_(self) -> None:
        a, b, _, _ = self.tile_types()
        metadata = self.metadata.type
        assert isinstance(metadata, TileType)
        if b.rows.data != 2 * a.cols.data:
            raise VerifyException(
                f"frag.mma_sparse: B has {b.rows.data} rows, A {a.cols.data} packed columns; A "
                "keeps half of K"
            )
        try:
            chunk = self.instruction().operands["e"].chunk
        except FragirError as error:
            raise VerifyException(f"frag.mma_sparse: {error}") from error
        wanted = b.rows.data // chunk
        if metadata.element != "u4" or metadata.cols.data != wanted:
            raise VerifyException(
                f"frag.mma_sparse: the metadata are a tile of {a.rows.data}x{wanted}xui4, a nibble "
                f"for every {chunk} elements of K, not {metadata}"
            )
