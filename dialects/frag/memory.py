"""Memory and threads at tile level: copies into shared memory, waits, barriers, block ids."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList, EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.memory_layout import check_inside, check_memory, memory_layout, one_matrix
from fragir.dialects.frag.tiles import Index, join_indices, split_indices
from fragir.dialects.frag.types import is_shared
from fragir.dialects.interfaces import DimensionsInterface, MemoryInterface, Names
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.errors import FragirError


@op_definition
class CopyOp(IRDLOperation, MemoryInterface, DimensionsInterface):
    """All threads together copy a matrix from global into shared memory.

    It covers the last two dimensions of `target` from the given indices of `source` on.
    `masked`: what lies outside the source is written as zero. `async`: the copy (cp.async, where
    alignment allows it) belongs to the next `frag.commit` and is complete after a `frag.wait` and
    a `frag.barrier`; without it, after a `frag.barrier`.

    `tma`: one thread starts it and the copy engine does it, always masked; then also from shared
    into global memory, where `add` adds to what is there. `multicast`: every block of the cluster
    fetches a part and sends it to all.
    `fragir.dialects.frag.tensor_copies` says what is complete when.
    """

    name = "frag.copy"
    source = operand_def(MemRefType)
    source_indices = var_operand_def(IndexType)
    target = operand_def(MemRefType)
    target_indices = var_operand_def(IndexType)
    static_source_indices = prop_def(DenseArrayBase.constr(i64))
    static_target_indices = prop_def(DenseArrayBase.constr(i64))
    masked = opt_prop_def(UnitAttr)
    is_async = opt_prop_def(UnitAttr, prop_name="async")
    tma = opt_prop_def(UnitAttr)
    multicast = opt_prop_def(UnitAttr)
    add = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "(`async` $async^)? (`tma` $tma^)? (`add` $add^)? $source ``"
        " custom<DynamicIndexList>($source_indices, $static_source_indices) `to` $target ``"
        " custom<DynamicIndexList>($target_indices, $static_target_indices) (`masked` $masked^)?"
        " (`multicast` $multicast^)? attr-dict `:` type($source) `to` type($target)"
    )

    def __init__(
        self,
        source: SSAValue | Operation,
        source_indices: Sequence[Index],
        target: SSAValue | Operation,
        target_indices: Sequence[Index],
        *,
        masked: bool = False,
        is_async: bool = False,
        tma: bool = False,
        multicast: bool = False,
        add: bool = False,
    ):
        dynamic_source, static_source = split_indices(source_indices)
        dynamic_target, static_target = split_indices(target_indices)
        super().__init__(
            operands=[source, dynamic_source, target, dynamic_target],
            properties={
                "static_source_indices": static_source,
                "static_target_indices": static_target,
                "masked": UnitAttr() if masked else None,
                "async": UnitAttr() if is_async else None,
                "tma": UnitAttr() if tma else None,
                "multicast": UnitAttr() if multicast else None,
                "add": UnitAttr() if add else None,
            },
        )

    def all_source_indices(self) -> list[int | SSAValue]:
        """One index a dimension of the source; of shared memory as of the target's."""
        return join_indices(self.source_indices, self.static_source_indices)

    def all_target_indices(self) -> list[int | SSAValue]:
        """One index for every leading dimension of the target, which is a stack of matrices; of
        global memory one for every dimension."""
        return join_indices(self.target_indices, self.static_target_indices)

    def reads(self) -> tuple[SSAValue]:
        """The source."""
        return (self.source,)

    def writes(self) -> tuple[SSAValue]:
        """The target, which `add` reads too."""
        return (self.target,)

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """The target's: what is copied at once lies in a row. TMA copies many rows at once."""
        return memory is self.target and self.tma is None

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source: a matrix is copied."""
        return self.source, names[-2:]

    def verify_(self) -> None:
        if self.tma or self.multicast or self.add:
            from fragir.dialects.frag.tensor_copies import check_tensor_copy  # few programs need it

            check_tensor_copy(self)
            return
        source, target = memref_type(self.source.type), memref_type(self.target.type)
        if is_shared(source) or not is_shared(target):
            raise VerifyException("frag.copy copies from global memory to #frag.shared memory")
        if source.element_type != target.element_type:
            raise VerifyException(
                f"frag.copy: source holds {source.element_type}, target {target.element_type}"
            )
        if len(source.get_shape()) < 2 or len(target.get_shape()) < 2:
            raise VerifyException("frag.copy: source and target have two dimensions or more")
        if len(self.static_source_indices) != len(source.get_shape()):
            raise VerifyException("frag.copy: give one index for every dimension of the source")
        if len(self.static_target_indices) != len(target.get_shape()) - 2:
            raise VerifyException(
                "frag.copy: give one index for every dimension of the target but the last two, "
                "which are filled whole"
            )
        check_memory(self.name, target)
        stack, (rows, cols) = target.get_shape()[:-2], target.get_shape()[-2:]
        ones = [1] * len(stack)
        check_inside(self.name, stack, self.all_target_indices(), ones, maskable=False)
        if self.masked is None:
            sizes = source.get_shape()
            extents = (*[1] * (len(sizes) - 2), rows, cols)
            check_inside(self.name, sizes, self.all_source_indices(), extents)


@op_definition
class ViewOp(IRDLOperation, MemoryInterface, DimensionsInterface):
    """One matrix of a stack in shared memory: the last two dimensions at the given indices."""

    name = "frag.view"
    memory = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    static_indices = prop_def(DenseArrayBase.constr(i64))
    matrix = result_def(MemRefType)
    traits = traits_def(Pure())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$memory `` custom<DynamicIndexList>($indices, $static_indices) attr-dict"
        " `:` type($memory) `->` type($matrix)"
    )

    def __init__(self, memory: SSAValue | Operation, indices: Sequence[Index]):
        dynamic, static = split_indices(indices)
        super().__init__(
            operands=[memory, dynamic],
            properties={"static_indices": static},
            result_types=[one_matrix(memref_type(SSAValue.get(memory).type))],
        )

    def all_indices(self) -> list[int | SSAValue]:
        """One index for every leading dimension."""
        return join_indices(self.indices, self.static_indices)

    def view_of(self) -> SSAValue:
        """The stack."""
        return self.memory

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """Always: the matrix has those of the stack."""
        return True

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The stack: a view leaves out leading dimensions."""
        missing = len(memref_type(self.memory.type).get_shape()) - len(names)
        return self.memory, (*[None] * missing, *names)

    def verify_(self) -> None:
        memory = memref_type(self.memory.type)
        matrix = memref_type(self.matrix.type)
        if not is_shared(memory) or memory.memory_space != matrix.memory_space:
            raise VerifyException("frag.view looks at #frag.shared memory")
        check_memory(self.name, memory)
        if matrix.get_shape() != memory.get_shape()[-2:]:
            raise VerifyException(f"frag.view: {matrix} is not the last two dimensions of {memory}")
        try:
            wanted = one_matrix(memory)
        except FragirError as error:
            raise VerifyException(f"frag.view: {error}") from error
        if matrix != wanted and memory_layout(matrix) != memory_layout(wanted):
            raise VerifyException(f"frag.view: one matrix of {memory} is {wanted}")
        if len(self.static_indices) != len(memory.get_shape()) - 2:
            raise VerifyException("frag.view: give one index for every dimension but the last two")
        stack = memory.get_shape()[:-2]
        check_inside(self.name, stack, self.all_indices(), [1] * len(stack), maskable=False)


@op_definition
class CommitOp(IRDLOperation):
    """Closes a group of asynchronous copies (cp.async.commit_group)."""

    name = "frag.commit"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@op_definition
class WaitOp(IRDLOperation):
    """Waits until at most `pending` of this thread's newest groups of copies are under way."""

    name = "frag.wait"
    pending = prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$pending attr-dict"

    def __init__(self, pending: int):
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})

    def verify_(self) -> None:
        if self.pending.value.data < 0:
            raise VerifyException("frag.wait takes a number of groups, 0 or more")


@op_definition
class BarrierOp(IRDLOperation):
    """All threads of the block wait for each other; shared memory is then seen by all."""

    name = "frag.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


class Dimension(StrEnum):
    """A dimension of the grid of blocks."""

    X = "x"
    Y = "y"
    Z = "z"


@irdl_attr_definition
class DimensionAttr(EnumAttribute[Dimension], SpacedOpaqueSyntaxAttribute):
    """x, y or z of the grid."""

    name = "frag.dimension"


@op_definition
class BlockIdOp(IRDLOperation):
    """The block's place in the grid. (gpu.block_id has no readable syntax and is not pure.)"""

    name = "frag.block_id"
    dimension = prop_def(DimensionAttr)
    result = result_def(IndexType)
    traits = traits_def(NoMemoryEffect(), Pure())
    assembly_format = "$dimension attr-dict"

    def __init__(self, dimension: Dimension):
        super().__init__(
            properties={"dimension": DimensionAttr(dimension)}, result_types=[IndexType()]
        )


# --- the first rows -------------------------------------------------------------------------------


@op_definition
class HeadOp(IRDLOperation, MemoryInterface):
    """A memory up to some row: what follows lies outside, where masked accesses do nothing.

        %rows = frag.head %c to %end : memref<?x64xf32>

    The result has %end in place of the first size, at most as many as there are, and all else of
    the memory in global memory.
    """

    name = "frag.head"
    memory = operand_def(MemRefType)
    end = operand_def(IndexType)
    result = result_def(MemRefType)
    traits = traits_def(NoMemoryEffect())

    def __init__(self, memory: SSAValue | Operation, end: SSAValue | Operation):
        memory = SSAValue.get(memory)
        super().__init__(
            operands=[memory, end], result_types=[open_ended_type(memref_type(memory.type))]
        )

    def view_of(self) -> SSAValue:
        """The memory."""
        return self.memory

    @classmethod
    def parse(cls, parser: Parser) -> HeadOp:
        memory = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        end = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type_ = parser.parse_type()
        if not is_memref(type_):
            parser.raise_error(f"frag.head takes memory, not {type_}", position)
        op = cls(
            parser.resolve_operand(memory, type_),
            parser.resolve_operand(end, IndexType()),
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memory)
        printer.print_string(" to ")
        printer.print_ssa_value(self.end)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memory.type)

    def verify_(self) -> None:
        memory = memref_type(self.memory.type)
        if is_shared(memory) or not memory.get_shape():
            raise VerifyException(
                f"{self.name}: global memory of one dimension or more has first rows, not {memory}"
            )
        if self.result.type != open_ended_type(memory):
            raise VerifyException(
                f"{self.name}: the result is {open_ended_type(memory)}, not {self.result.type}"
            )


def open_ended_type(memory: MemRefType[Attribute]) -> MemRefType[Attribute]:
    """The type of memory whose first size is known at run time only."""
    shape = (DYNAMIC_INDEX, *memory.get_shape()[1:])
    return MemRefType(memory.element_type, shape, memory.layout, memory.memory_space)
