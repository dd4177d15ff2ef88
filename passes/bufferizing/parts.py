"""Parts and other shapes of tensors as views of memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue, Use

from fragir.dialects.memory_types import (
    collapsed_type,
    expanded_type,
    kept_dims,
    mixed_numbers,
    part_type,
    root_of,
)
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.mlir.diagnostics import fail
from fragir.passes.bufferizing.tensor_memory import Size, TensorMemory, is_tensor

Part = tensor.ExtractSliceOp | tensor.InsertSliceOp
Reshape = tensor.CollapseShapeOp | tensor.ExpandShapeOp
VIEWS = (tensor.CastOp, tensor.CollapseShapeOp, tensor.ExpandShapeOp, tensor.ExtractSliceOp)
"""Operations on tensors whose result lies in the memory of their operand."""


class TensorParts:
    """What such operations become."""

    def __init__(self, memory: TensorMemory):
        self._memory = memory

    def view(self, op: Operation) -> None:
        """An operation of `VIEWS`: its result lies where its operand does."""
        source, result = op.operands[0], op.results[0]
        if not is_tensor(result.type):
            fail(op, f"{result.type} is not supported; take a tensor of known rank")
        self._memory.replaced.append(op)
        if source not in self._memory:
            self._place_empty(op, source, result)
            return
        held = self._memory[source]
        if isinstance(op, tensor.CastOp):
            type_ = memref_type(held.type)
            new = MemRefType(type_.element_type, result.type.get_shape(), type_.layout)
            made: Operation = memref.CastOp.get(held, new)
        elif isinstance(op, tensor.ExtractSliceOp):
            made = self._part(op, held, result.type.get_shape())
        else:
            assert isinstance(op, Reshape)
            made = self._reshape(op, held)
        self._memory.look(result, self._memory.put(op, made))

    def insert(self, op: tensor.InsertSliceOp) -> None:
        """A part of memory is overwritten, of a copy where others need what lay there."""
        memory = self._memory
        source = memory.memory_of(op, op.source)
        memory.replaced.append(op)
        before = memory[op.dest] if op.dest in memory else None
        origin = in_place(op)
        if origin is not None and before is not None and _is_part(source, before):
            memory.write(op.result, before)  # it was computed there
            return
        meets = before is not None and root_of(before) is root_of(source)
        target = memory.destination(op, op.dest, reads=True, obstacle=meets)
        part = memory.put(op, self._part(op, target, memref_type(source.type).get_shape()))
        memory.copy(op, source, part)
        memory.write(op.result, target)

    # --- views --------------------------------------------------------------------------------

    def _part(self, op: Part, held: SSAValue, shape: Sequence[int]) -> Operation:
        offsets, sizes, strides = _entries(op)
        try:
            type_ = part_type(memref_type(held.type), offsets, sizes, strides, shape)
        except FragirError as error:
            fail(op, str(error))
        return memref.SubviewOp.get(held, offsets, sizes, strides, type_)

    def _reshape(self, op: Reshape, held: SSAValue) -> Operation:
        type_, result = memref_type(held.type), op.results[0].type
        assert is_tensor(result)
        groups = [[entry.value.data for entry in group] for group in op.reassociation]
        if isinstance(op, tensor.ExpandShapeOp):
            new = expanded_type(type_, groups, result.get_shape())
            return expansion(held, op.reassociation, _sizes_of(op), new)
        found = collapsed_type(type_, groups)
        if found is None:  # of a part, whose rows lie apart
            whole = self._memory.allocate(op, op.operands[0])
            self._memory.copy(op, held, whole)
            held, found = whole, collapsed_type(memref_type(whole.type), groups)
            assert found is not None
        found = MemRefType(found.element_type, result.get_shape(), found.layout)
        return collapse(held, op.reassociation, found)

    def _place_empty(self, op: Operation, source: SSAValue, result: SSAValue) -> None:
        """Of nothing: an empty tensor of the same size."""
        assert is_tensor(result.type)
        memory, shape = self._memory, result.type.get_shape()
        sizes: list[Size]
        if isinstance(op, tensor.ExtractSliceOp):
            given = mixed_numbers(op.static_sizes, op.sizes)
            sizes = [given[dim] for dim in kept_dims(given, shape, op.name)]
        elif isinstance(op, tensor.ExpandShapeOp):
            sizes = _sizes_of(op)
        elif isinstance(op, tensor.CollapseShapeOp):
            from fragir.passes.structured.memory import product_of

            known = memory.sizes(op, source)
            sizes = [
                product_of(
                    [known[entry.value.data] for entry in group], lambda x: memory.put(op, x)
                )
                for group in op.reassociation
            ]
        else:
            sizes = memory.sizes(op, source)
        every = zip(sizes, shape, strict=True)
        dynamic = [memory.number(op, size) for size, known in every if known == DYNAMIC_INDEX]
        made = tensor.EmptyOp(dynamic, result.type)
        memory.insert(op, made)
        made.tensor.name_hint = result.name_hint
        result.replace_all_uses_with(made.tensor)
        memory.replaced.insert(len(memory.replaced) - 1, made)


def in_place(op: tensor.InsertSliceOp) -> Use | None:
    """Where an insertion puts back what was computed in the place of the same part: the use of
    its destination, which reads nothing of that part.
    """
    from fragir.dialects.linalg.destinations import destination_of

    start = destination_of(op.source)
    part = start.owner if start is not None else None
    if not isinstance(part, tensor.ExtractSliceOp) or part.source is not op.dest:
        return None
    if _entries(part) != _entries(op) or part.result.type != op.source.type:
        return None
    return next(use for use in op.dest.uses if use.operation is op and use.index == 1)


def collapse(
    held: SSAValue, groups: ArrayAttr[ArrayAttr[IntegerAttr]], type_: MemRefType
) -> memref.CollapseShapeOp:
    """Memory with several dimensions as one."""
    return memref.CollapseShapeOp.build(
        operands=[held], properties={"reassociation": groups}, result_types=[type_]
    )


def expansion(
    held: SSAValue, groups: ArrayAttr[ArrayAttr[IntegerAttr]], sizes: list[Size], type_: MemRefType
) -> memref.ExpandShapeOp:
    """Memory with one dimension as several, of these sizes."""
    from xdsl.dialects.builtin import DenseArrayBase, i64

    static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    return memref.ExpandShapeOp.build(
        operands=[held, [size for size in sizes if isinstance(size, SSAValue)]],
        properties={
            "reassociation": groups,
            "static_output_shape": DenseArrayBase.from_list(i64, static),
        },
        result_types=[type_],
    )


def _sizes_of(op: tensor.ExpandShapeOp) -> list[Size]:
    return mixed_numbers(op.static_output_shape, op.dynamic_output_shape)


def _entries(op: Part) -> tuple[list[Size], list[Size], list[Size]]:
    return (
        mixed_numbers(op.static_offsets, op.offsets),
        mixed_numbers(op.static_sizes, op.sizes),
        mixed_numbers(op.static_strides, op.strides),
    )


def _is_part(memory: SSAValue, whole: SSAValue) -> bool:
    return isinstance(memory.owner, memref.SubviewOp) and memory.owner.source is whole
