"""The memory of a function's tensors: where each lies, and where a new one may."""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    UnrankedTensorType,
)
from xdsl.dialects.linalg import ops
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.diagnostics import fail
from fragir.dialects.narrow import memref_type
from fragir.passes.bufferizing.tenants import Tenants
from fragir.passes.structured.memory import identity_copy, root_of, size_of

Size = SSAValue | int


def is_tensor(type_: Attribute) -> TypeGuard[TensorType[Attribute]]:
    """Whether a type is a tensor of known rank."""
    return isinstance(type_, TensorType)


def is_any_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType | UnrankedTensorType)


def name_of(value: SSAValue) -> str:
    """A tensor as messages call it."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"argument {value.index}" if isinstance(value, BlockArgument) else "a tensor"


class TensorMemory:
    """One function, front to back. An empty tensor has no memory before something is put there."""

    def __init__(self, function: func.FuncOp):
        self.function = function
        self.block = Block() if function.is_declaration else function.body.block
        self.tenants = Tenants(self.block)
        self.replaced: list[Operation] = []
        """Operations on tensors for which others stand by now."""
        self.returned: set[SSAValue] = set()
        """The arguments that results are computed in the place of."""
        self._memory: dict[SSAValue, SSAValue] = {}

    def __contains__(self, value: SSAValue) -> bool:
        return value in self._memory

    def __getitem__(self, value: SSAValue) -> SSAValue:
        return self._memory[value]

    # --- what is there ------------------------------------------------------------------------

    def type_of(self, op: Operation, type_: Attribute) -> MemRefType[Attribute]:
        """The memory of a tensor that has memory of its own."""
        if not is_tensor(type_) or not isinstance(type_.encoding, NoneAttr):
            fail(op, f"{type_} is not supported; take a tensor with a rank and without an encoding")
        return MemRefType(type_.element_type, type_.get_shape())

    def begin(self, argument: SSAValue) -> None:
        """An argument, memory by now, holds what it is called with."""
        self._memory[argument] = argument
        self.tenants.add(argument, argument)

    def look(self, value: SSAValue, memory: SSAValue) -> None:
        """A tensor is a view of what lies in memory."""
        self._keep(value, memory)
        self.tenants.add(memory, value)

    def write(self, value: SSAValue, memory: SSAValue) -> None:
        """A tensor has been written to memory."""
        self._keep(value, memory)
        self.tenants.replace(memory, value)

    def moved(self, memory: SSAValue, to: SSAValue) -> None:
        """What lay in an allocation that is no more lies elsewhere."""
        for value, held in self._memory.items():
            if held is memory:
                self._memory[value] = to

    def _keep(self, value: SSAValue, memory: SSAValue) -> None:
        self._memory[value] = memory
        if memory.name_hint is None:
            memory.name_hint = value.name_hint

    def held(self, op: Operation, value: SSAValue) -> SSAValue:
        """The memory of a tensor that is read."""
        if value not in self._memory:
            fail(op, f"{op.name} reads {name_of(value)}, which is empty; linalg.fill it before")
        return self._memory[value]

    def sizes(self, op: Operation, value: SSAValue) -> list[Size]:
        """How large a tensor is, ahead of an operation."""
        shape = _tensor_type(value).get_shape()
        if isinstance(value.owner, tensor.EmptyOp):
            given = iter(value.owner.dynamic_sizes)
            return [next(given) if size == DYNAMIC_INDEX else size for size in shape]
        return [
            size if size >= 0 else size_of(self._memory[value], dim, lambda x: self.put(op, x))
            for dim, size in enumerate(shape)
        ]

    # --- what is made -------------------------------------------------------------------------

    def insert(self, before: Operation, op: Operation) -> None:
        op.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))

    def put(self, before: Operation, op: Operation) -> SSAValue:
        self.insert(before, op)
        return op.results[0]

    def number(self, before: Operation, size: Size) -> SSAValue:
        """A size as a value."""
        if isinstance(size, int):
            return self.put(before, arith.ConstantOp(IntegerAttr(size, IndexType())))
        return size

    def allocate(self, op: Operation, like: SSAValue) -> SSAValue:
        """New memory of a tensor's shape."""
        type_ = self.type_of(op, _tensor_type(like))
        every = zip(self.sizes(op, like), type_.get_shape(), strict=True)
        sizes = [self.number(op, size) for size, static in every if static == DYNAMIC_INDEX]
        return self.put(op, memref.AllocOp(sizes, (), type_))

    def copy(self, op: Operation, source: SSAValue, target: SSAValue) -> None:
        """Copies what lies in memory, ahead of an operation."""
        made = identity_copy(source, target)
        for inner in made.body.walk():
            inner.location = op.location
        self.insert(op, made)

    def destination(
        self, op: Operation, start: SSAValue, reads: bool, obstacle: bool, but: Use | None = None
    ) -> SSAValue:
        """Memory to compute in what takes the place of a tensor: the tensor's own, if nobody reads
        that later (but for one use) and nothing else is in the way; else new memory, with a copy
        where the old elements are read.
        """
        if start not in self._memory:
            return self.allocate(op, start)
        memory = self._memory[start]
        root = root_of(memory)
        foreign = isinstance(root, BlockArgument) and root not in self.returned
        if not (obstacle or foreign or self.tenants.read_after(memory, op, but)):
            return memory
        new = self.allocate(op, start)
        if reads and isinstance(start.owner, ops.FillOp):  # filled once more
            self.insert(op, ops.FillOp([start.owner.inputs[0]], [new], []))
        elif reads:
            self.copy(op, memory, new)
        return new


def _tensor_type(value: SSAValue) -> TensorType[Attribute]:
    """The type of a tensor, also of an argument that is memory by now."""
    if is_tensor(value.type):
        return value.type
    type_ = memref_type(value.type)
    return TensorType(type_.element_type, type_.get_shape())
