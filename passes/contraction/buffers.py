"""Gives every tensor of a function the memory that its destination names."""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    UnrankedTensorType,
)
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.diagnostics import fail
from fragir.dialects.constants import constant_of
from fragir.dialects.linalg.hidden_body import maps_of
from fragir.dialects.narrow import memref_type
from fragir.passes.contraction.product import is_reduction
from fragir.passes.contraction.scalars import erase_dead, owners

# A (m, k), B (k, n), C (m, n)
PLAIN_MAPS = [
    AffineMap(3, 0, tuple(AffineExpr.dimension(dim) for dim in dims))
    for dims in ((0, 2), (2, 1), (0, 1))
]


def is_tensor(type_: Attribute) -> TypeGuard[TensorType[Attribute]]:
    """Whether a type is a tensor of known rank."""
    return isinstance(type_, TensorType)


class Bufferization:
    """One function; front to back, knowing which tensor each piece of memory holds by then."""

    def __init__(self, function: func.FuncOp):
        self.function = function
        self.block = Block() if function.is_declaration else function.body.block
        self.memory: dict[SSAValue, SSAValue] = {}
        self.holds: dict[SSAValue, SSAValue] = {}
        self.position: dict[Operation, int] = {}
        self.returned: set[SSAValue] = set()
        self.replaced: list[Operation] = []

    def run(self) -> None:
        """Replaces every tensor of the function."""
        if self.function.is_declaration:
            fail(self.function, "a kernel has a body; this function of tensors has none")
        if len(self.function.body.blocks) > 1:
            fail(self.function, "a function of tensors has one block, without branches")
        for argument in list(self.block.args):
            if _is_any_tensor(argument.type):
                type_ = self._memory_type(self.function, argument.type)
                new = Rewriter.replace_value_with_new_type(argument, type_)
                self.memory[new] = self.holds[new] = new
        operations = list(self.block.ops)
        self.position = {op: i for i, op in enumerate(operations)}
        end = operations[-1]
        if not isinstance(end, func.ReturnOp):
            fail(end, f"a function of tensors ends in func.return, not {end.name}")
        self.returned = {self._root(value) for value in end.operands}
        for op in operations[:-1]:
            self._step(op)
        self._return(end)
        self._clean()

    def _memory_type(self, op: Operation, type_: Attribute) -> MemRefType[Attribute]:
        if not is_tensor(type_) or not isinstance(type_.encoding, NoneAttr):
            fail(op, f"{type_} is not supported; take a tensor with a rank and without an encoding")
        return MemRefType(type_.element_type, type_.get_shape())

    def _root(self, value: SSAValue) -> SSAValue:
        """The tensor that a chain of destinations starts from."""
        while isinstance(value, OpResult) and isinstance(value.op, LinalgStructuredOperation):
            value = value.op.outputs[value.index]
        return value

    # --- front to back ------------------------------------------------------------------------

    def _step(self, op: Operation) -> None:
        if isinstance(op, LinalgStructuredOperation) and op.res:
            self._structured(op)
        elif isinstance(op, tensor.EmptyOp):
            self._memory_type(op, op.tensor.type)
            self.replaced.append(op)
        elif isinstance(op, tensor.DimOp):
            self._dim(op)
        elif any(_touches(inner, self.memory) for inner in op.walk()):
            hint = "write linalg operations on whole tensors"
            if isinstance(op, arith.ConstantOp):
                hint = "write tensor.empty and linalg.fill"
            elif op.name.startswith("linalg."):
                hint = "run linalg-normalize before, or write a linalg.generic"
            fail(op, f"{op.name} on tensors is not supported; {hint}")

    def _structured(self, op: LinalgStructuredOperation) -> None:
        if any(_touches(inner, self.memory) for inner in op.body.walk()):
            fail(op, f"the body of {op.name} uses a whole tensor; it computes with elements only")
        inputs = [self._input(op, value) for value in op.inputs]
        outputs: list[SSAValue] = []
        for index in range(len(op.outputs)):
            outputs.append(self._destination(op, index, inputs, outputs))
        new = _on_memory(op, inputs, outputs)
        Rewriter.insert_op(new, InsertPoint.before(op))
        self.replaced.append(op)
        for memory, result in zip(outputs, op.res, strict=True):
            self.memory[result] = memory
            self.holds[memory] = result
            if memory.name_hint is None:
                memory.name_hint = result.name_hint

    def _input(self, op: Operation, value: SSAValue) -> SSAValue:
        """The memory of a tensor that is read."""
        if value not in self.memory:
            if isinstance(value.owner, tensor.EmptyOp):
                fail(op, f"{op.name} reads {_name(value)}, which is empty; linalg.fill it before")
            return value
        memory = self.memory[value]
        # memory is not overwritten while what it holds is still read (_obstacle)
        assert self.holds[memory] is value
        return memory

    def _destination(
        self,
        op: LinalgStructuredOperation,
        index: int,
        inputs: list[SSAValue],
        taken: list[SSAValue],
    ) -> SSAValue:
        """The memory that a result is computed in; `taken` is that of the results before it."""
        start = op.outputs[index]
        reads = _reads_output(op, index)
        if start not in self.memory:
            if reads:
                fail(op, f"{op.name} adds to {_name(start)}, which is empty; linalg.fill it before")
            return self._allocate(op, start)
        memory = self._input(op, start) if reads else self.memory[start]
        obstacle = self._obstacle(op, index, inputs, memory)
        if memory in taken:
            obstacle = "another result is computed there"
        if obstacle is None:
            return memory
        if reads and isinstance(start.owner, ops.FillOp):
            memory = self._allocate(op, start)  # filled once more
            self._insert(op, ops.FillOp([start.owner.inputs[0]], [memory], []))
            return memory
        if reads:
            fail(
                op,
                f"{op.name} cannot overwrite {_name(start)}, since {obstacle}; this would need a "
                "copy: let it start from another tensor, like a filled tensor.empty",
            )
        return self._allocate(op, start)

    def _obstacle(
        self,
        op: LinalgStructuredOperation,
        index: int,
        inputs: list[SSAValue],
        memory: SSAValue,
    ) -> str | None:
        """Why a result cannot be computed in place of what memory holds."""
        if isinstance(memory, BlockArgument) and memory not in self.returned:
            return "that argument is not what the function returns"
        maps = maps_of(op)
        output = maps[len(inputs) + index]
        for value, map_ in zip(inputs, maps, strict=False):
            if value is memory and (is_reduction(op) or map_ != output):
                return "it is read at other places too"
        if any(
            self.position[use.operation] > self.position[op] and _reads(use)
            for use in self.holds[memory].uses
            if use.operation in self.position
        ):
            return "it is read later"
        return None

    def _allocate(self, op: Operation, start: SSAValue) -> SSAValue:
        """New memory of a tensor's shape."""
        held = self.memory.get(start)
        type_ = memref_type(held.type) if held is not None else self._memory_type(op, start.type)
        sizes: list[SSAValue] = []
        if isinstance(start.owner, tensor.EmptyOp):
            sizes = list(start.owner.dynamic_sizes)
        else:
            for dim, size in enumerate(type_.get_shape()):
                if size == DYNAMIC_INDEX:
                    number = arith.ConstantOp(IntegerAttr(dim, IndexType()))
                    length = memref.DimOp(self.memory[start], number)
                    self._insert(op, number)
                    self._insert(op, length)
                    sizes.append(length.result)
        allocation = memref.AllocOp(sizes, (), type_)
        self._insert(op, allocation)
        return allocation.memref

    def _insert(self, before: Operation, op: Operation) -> None:
        op.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))

    def _dim(self, op: tensor.DimOp) -> None:
        """tensor.dim of memory, or of an empty tensor, whose sizes are known."""
        memory = self.memory.get(op.source)
        if memory is not None:
            length = memref.DimOp(memory, op.index)
            self._insert(op, length)
            length.result.name_hint = op.result.name_hint
            op.result.replace_all_uses_with(length.result)
        else:
            op.result.replace_all_uses_with(self._size(op))
        Rewriter.erase_op(op)

    def _size(self, op: tensor.DimOp) -> SSAValue:
        empty, dim, type_ = op.source.owner, constant_of(op.index), op.source.type
        if not isinstance(empty, tensor.EmptyOp) or not is_tensor(type_):
            fail(op, f"tensor.dim of {type_} is not supported; take a tensor of known rank")
        shape = type_.get_shape()
        if dim is None or not 0 <= dim < len(shape):
            fail(op, f"tensor.dim takes the constant number of a dimension of {type_}")
        if shape[dim] == DYNAMIC_INDEX:
            return empty.dynamic_sizes[shape[:dim].count(DYNAMIC_INDEX)]
        constant = arith.ConstantOp(IntegerAttr(shape[dim], IndexType()))
        self._insert(op, constant)
        return constant.result

    # --- the end ------------------------------------------------------------------------------

    def _return(self, end: func.ReturnOp) -> None:
        """Results become arguments."""
        seen: set[SSAValue] = set()
        attributes = self._attributes(self.function.arg_attrs, len(self.block.args))
        given = self._attributes(self.function.res_attrs, len(end.operands))
        candidates: list[Operation] = []
        for value, more in zip(end.operands, given, strict=True):
            if value not in self.memory:
                fail(
                    end, f"the function returns {_name(value)}, which no linalg operation computes"
                )
            memory, root = self._input(end, value), self._root(value)
            if memory in seen or value is memory:
                what = "twice" if memory in seen else "as it came"
                fail(end, f"the function returns {_name(value)} {what}; this would need a copy")
            if isinstance(root, BlockArgument) and memory is not root:
                fail(
                    end,
                    f"{_name(value)} starts from {_name(root)}, but is not computed in its place, "
                    "since that is read later; this would need a copy: let it start from "
                    "tensor.empty",
                )
            if not isinstance(memory, BlockArgument):
                memory = self._argument(memory, value, candidates)
                attributes.append(DictionaryAttr({}))
            seen.add(memory)
            assert isinstance(memory, BlockArgument)
            merged = {**more.data, **attributes[memory.index].data}
            attributes[memory.index] = DictionaryAttr(merged)
        new = func.ReturnOp()
        new.location = end.location
        Rewriter.insert_op(new, InsertPoint.before(end))
        self.replaced.append(end)
        self.function.properties.pop("res_attrs", None)
        if any(entry.data for entry in attributes):
            self.function.arg_attrs = ArrayAttr(attributes)
        erase_dead(candidates, self.block)

    @staticmethod
    def _attributes(given: ArrayAttr[DictionaryAttr] | None, count: int) -> list[DictionaryAttr]:
        return list(given.data) if given is not None else [DictionaryAttr({})] * count

    def _argument(
        self, memory: SSAValue, value: SSAValue, candidates: list[Operation]
    ) -> BlockArgument:
        """A new last argument in the place of allocated memory."""
        allocation = memory.owner
        assert isinstance(allocation, memref.AllocOp)
        argument = self.block.insert_arg(memory.type, len(self.block.args))
        argument.name_hint = value.name_hint or self._root(value).name_hint or "result"
        memory.replace_all_uses_with(argument)
        candidates += owners(allocation)
        Rewriter.erase_op(allocation)
        return argument

    def _clean(self) -> None:
        candidates: list[Operation] = []
        for op in reversed(self.replaced):
            candidates += owners(op)
            Rewriter.erase_op(op)
        erase_dead([op for op in candidates if op.parent is self.block], self.block)
        self.function.update_function_type()


def _on_memory(
    op: LinalgStructuredOperation, inputs: list[SSAValue], outputs: list[SSAValue]
) -> Operation:
    """The same operation on memory; takes the body away from the old one."""
    if isinstance(op, ops.MatmulOp) and maps_of(op) == PLAIN_MAPS:
        new: Operation = ops.MatmulOp(inputs, outputs)
    elif isinstance(op, ops.GenericOp | ops.MatmulOp):
        # xDSL does not print the maps of a linalg.matmul, so transposes would be lost on the way
        maps, loops = op.get_indexing_maps(), op.get_iterator_types()
        new = ops.GenericOp(inputs, outputs, op.detach_region(op.body), maps, loops)
    else:
        new = type(op).create(
            operands=[*inputs, *outputs],
            properties=dict(op.properties),
            regions=[op.detach_region(op.body)],
        )
    new.attributes.update(op.attributes)
    new.location = op.location
    return new


def _reads_output(op: LinalgStructuredOperation, index: int) -> bool:
    """Whether the body uses what the output held before."""
    return op.body.block.args[len(op.inputs) + index].uses.get_length() > 0


def _reads(use: Use) -> bool:
    """Whether a use of a tensor needs its elements."""
    op = use.operation
    if isinstance(op, tensor.DimOp):
        return False
    if not isinstance(op, LinalgStructuredOperation) or use.index < len(op.inputs):
        return True
    return _reads_output(op, use.index - len(op.inputs))


def _is_any_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType | UnrankedTensorType)


def _touches(op: Operation, memory: dict[SSAValue, SSAValue]) -> bool:
    values = (*op.operands, *op.results)
    return any(value in memory or _is_any_tensor(value.type) for value in values)


def _name(value: SSAValue) -> str:
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"argument {value.index}" if isinstance(value, BlockArgument) else "a tensor"
