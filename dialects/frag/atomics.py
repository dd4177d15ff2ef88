"""Memory that several threads and blocks change at once: atomics on tiles, counts of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    MemRefType,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    base,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
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
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_name
from fragir.dialects.frag.indexed import INSTRUCTIONS, Indexed
from fragir.dialects.frag.memory_layout import check_inside
from fragir.dialects.frag.pointwise import elementwise_cost
from fragir.dialects.frag.tiles import Index, join_indices, split_indices
from fragir.dialects.frag.types import TileType, is_shared, tile_of
from fragir.dialects.interfaces import LayoutDemand, MemoryInterface, Threads
from fragir.dialects.shorthands import memref_type

_ADDED = {"s32": "s32", "u32": "u32", "s64": "u64"}  # two's complement: the sign plays no part
_INTEGERS = {"s32": "s32", "u32": "u32", "s64": "s64"}
_BITS = {"s32": "b32", "u32": "b32", "s64": "b64"}

#: Words of `frag.atomic`: by type of element what PTX says behind the operation.
KINDS: dict[str, dict[str, str]] = {
    "add": {"f16": "noftz.f16", "bf16": "noftz.bf16", "f32": "f32", "f64": "f64", **_ADDED},
    "max": _INTEGERS,
    "min": _INTEGERS,
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
    "exch": {"f32": "b32", "f64": "b64", **_BITS},
    "cas": _BITS,
}


@irdl_custom_directive
class Word(CustomDirective):
    """A string without quotes."""

    word: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        found = parser.parse_identifier(f": {', '.join(KINDS)}")
        self.word.set(state, StringAttr(found))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        word = self.word.get(op)
        assert isinstance(word, StringAttr)
        printer.print_string(word.data)
        state.last_was_punctuation, state.should_emit_space = False, True

    def is_present(self, op: IRDLOperation) -> bool:
        return True

    def set_empty(self, state: ParsingState) -> None:
        """There always is one."""


@op_definition
class AtomicOp(IRDLOperation, Indexed):
    """Changes each place of memory by an element of the tile, at once, in any order.

    Places are a tile's as in `frag.store`, or those that tiles of indices say, as in
    `frag.scatter`; words as there. `add`, `max` and `min` (integers), `and`, `or`, `xor`; `exch`
    writes the element, `cas` does where memory holds what `expected` has. The result, if there is
    one, is what memory held before, zero where nothing is accessed. Relaxed, at the scope of the
    GPU; f32 in global memory is added without subnormal numbers (PTX ISA 9.2, section 9.7.13.12).
    """

    name = "frag.atomic"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    kind = prop_def(StringAttr)
    tile = operand_def(_T)
    memory = operand_def(MemRefType)
    indices = var_operand_def(base(IndexType) | base(TileType))
    expected = opt_operand_def(_T)
    mask = opt_operand_def(TileType)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    masked = opt_prop_def(UnitAttr)
    old = opt_result_def(TileType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (DynamicIndexList, Word)
    assembly_format = (
        "custom<Word>($kind) $tile `,` $memory ``"
        " custom<DynamicIndexList>($indices, $static_indices) (`expected` $expected^)?"
        " (`masked` $masked^)? (`where` $mask^)? attr-dict `:` type($tile) `,` type($memory)"
        " (`,` type($indices)^)? (`where` type($mask)^)? (`->` type($old)^)?"
    )

    def __init__(
        self,
        kind: str,
        tile: SSAValue | Operation,
        memory: SSAValue | Operation,
        indices: Sequence[Index],
        *,
        expected: SSAValue | Operation | None = None,
        masked: bool = False,
        mask: SSAValue | Operation | None = None,
        old: bool = False,
    ):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[tile, memory, dynamic, expected, mask],
            properties={
                "kind": StringAttr(kind),
                "static_indices": static,
                "masked": UnitAttr() if masked else None,
            },
            result_types=[SSAValue.get(tile).type if old else None],
        )

    def all_indices(self) -> list[int | SSAValue]:
        """One index a dimension of the memory: a number, an index, or a tile of indices."""
        return join_indices(self.indices, self.static_indices)

    def tiles(self) -> tuple[SSAValue, ...]:
        """What memory is changed by, what it is compared with, what it held."""
        return tuple(t for t in (self.tile, self.expected, self.old) if t is not None)

    def reads(self) -> tuple[SSAValue]:
        """The memory."""
        return (self.memory,)

    def writes(self) -> tuple[SSAValue]:
        """The memory."""
        return (self.memory,)

    def proposals(self, layout: Attribute, threads: Threads) -> Iterator[LayoutDemand]:
        """None: no atomic is as wide as a store."""
        yield from ()

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """One for each element."""
        layout = layouts.get(self.tile)
        return 0.0 if layout is None else elementwise_cost(self.tile, layout, INSTRUCTIONS)

    def check_tiles(self, tile: TileType) -> None:
        """The same; but there may be no tile of indices."""
        if self.index_tiles():
            super().check_tiles(tile)
            return
        rank = len(self.all_indices())
        if rank < len(tile.shape):
            raise VerifyException(
                f"frag.atomic: a {len(tile.shape)}-dimensional tile needs as many dimensions of "
                f"memory, not {rank}"
            )
        if self.mask is not None and tile_of(self.mask).shape != tile.shape:
            raise VerifyException(f"frag.atomic: the mask is as large as the tile, {tile}")

    def verify_(self) -> None:
        kind = self.kind.data
        if kind not in KINDS:
            raise VerifyException(f"frag.atomic: {kind} is none of {', '.join(KINDS)}")
        if not isinstance(self.tile.type, TileType):
            raise VerifyException(f"frag.atomic takes a tile, not {self.tile.type}")
        self.check_places()
        element = self.tile.type.element_type
        if element_name(element) not in KINDS[kind]:
            able = ", ".join(
                word for word, types in KINDS.items() if element_name(element) in types
            )
            raise VerifyException(
                f"frag.atomic: memory of {element} has no atomic {kind}"
                + (f"; it has {able}" if able else "; cast the tile to f32, i32 or i64")
            )
        if (self.expected is not None) != (kind == "cas"):
            raise VerifyException("frag.atomic: `expected` is for cas, which takes it")
        if self.old is not None:
            old = tile_of(self.old)
            if (old.shape, old.element_type) != (self.tile.type.shape, element):
                raise VerifyException(f"frag.atomic: memory held a {self.tile.type}, not {old}")


# --- blocks that have come ------------------------------------------------------------------------


@op_definition
class ArriveOp(IRDLOperation, MemoryInterface):
    """Counts the blocks that have come here; true in the last of them.

        %last = frag.arrive %counts[%i, %j] of %parts : memref<?x?xi32>

    The number in global memory is zero before the first of %parts blocks arrives, and again when
    the last one has. What the others wrote to global memory before they arrived, by threads or by
    `frag.copy tma`, the last one's threads see. All threads of the block take part, in a role those
    of the role; none waits for another block. PTX ISA 9.2, sections 8.8 (release and acquire
    patterns) and 9.7.13.12.
    """

    name = "frag.arrive"
    memory = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    parts = operand_def(IndexType)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    is_last = result_def(i1)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$memory `` custom<DynamicIndexList>($indices, $static_indices) `of` $parts attr-dict"
        " `:` type($memory)"
    )

    def __init__(
        self,
        memory: SSAValue | Operation,
        indices: Sequence[Index],
        parts: SSAValue | Operation,
    ):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[memory, dynamic, parts],
            properties={"static_indices": static},
            result_types=[i1],
        )

    def all_indices(self) -> list[int | SSAValue]:
        """One index a dimension of the memory, constants as numbers."""
        return join_indices(self.indices, self.static_indices)

    def reads(self) -> Sequence[SSAValue]:
        """The counts."""
        return (self.memory,)

    def writes(self) -> Sequence[SSAValue]:
        """The counts."""
        return (self.memory,)

    def counters(self) -> Sequence[SSAValue]:
        """The counts."""
        return (self.memory,)

    def verify_(self) -> None:
        memory, indices = memref_type(self.memory.type), self.all_indices()
        if is_shared(memory) or memory.element_type != i32:
            raise VerifyException(
                f"{self.name}: blocks are counted in global memory of i32, not in {memory}"
            )
        rank = len(memory.get_shape())
        if len(indices) != rank:
            raise VerifyException(
                f"{self.name}: {memory} takes {rank} indices, one a dimension, but {len(indices)} "
                "are given"
            )
        check_inside(self.name, memory.get_shape(), indices, [1] * rank, maskable=False)
