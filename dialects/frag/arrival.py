"""Blocks that work at one thing, and the last of which goes on with it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, MemRefType, i1, i32, i64
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.in_bounds import check_inside
from fragir.dialects.frag.tiles import Index, join_indices, split_indices
from fragir.dialects.frag.types import is_shared
from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.narrow import memref_type


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
