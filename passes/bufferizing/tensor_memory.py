"""The memory of a function's tensors: where each lies, and where a new one may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.memory_types import root_of
from fragir.dialects.shorthands import memref_type
from fragir.mlir.diagnostics import fail
from fragir.passes.structured.memory import identity_copy, size_of

# -- tenants ---------------------------------------------------------------------------------------
# Which tensors lie in which memory, and which of them are still read.


class Tenants:
    """Tensors by the arguments and allocations that hold them, front to back."""

    def __init__(self, block: Block):
        self._block = block
        self._position = {op: at for at, op in enumerate(block.ops)}
        self._of: dict[SSAValue, list[SSAValue]] = {}

    def add(self, memory: SSAValue, value: SSAValue) -> None:
        """A tensor lies there beside those that do already: another view of the same elements."""
        self._of.setdefault(root_of(memory), []).append(value)

    def replace(self, memory: SSAValue, value: SSAValue) -> None:
        """A tensor was written there; what else lay there is gone, or lies in it."""
        self._of[root_of(memory)] = [value]

    def move(self, old: SSAValue, new: SSAValue) -> None:
        """Memory has become other memory."""
        self._of[new] = self._of.pop(old, [])

    def is_read_after(self, memory: SSAValue, op: Operation, but: Use | None = None) -> bool:
        """Whether an operation behind another one reads what lies there now; one use does not
        count."""
        at = self._position[op]
        return any(
            use != but and self.position(use.operation) > at and is_read(use)
            for value in self._of.get(root_of(memory), ())
            for use in value.uses
        )

    def position(self, op: Operation) -> int:
        """Where an operation, or the one that it is within, stands in the function."""
        top = self._block.find_ancestor_op_in_block(op)
        # what the pass itself inserts stands with those that it replaces
        return -1 if top is None else self._position.get(top, -1)


def is_read(use: Use) -> bool:
    """Whether a use of a tensor needs its elements."""
    op = use.operation
    if isinstance(op, tensor.DimOp):
        return False
    if not isinstance(op, LinalgStructuredOperation) or use.index < len(op.inputs):
        return True
    return is_output_read(op, use.index - len(op.inputs))


def is_output_read(op: Operation, index: int) -> bool:
    """Whether an operation uses what its output held before."""
    if not isinstance(op, LinalgStructuredOperation):
        return True
    return bool(op.body.block.args[len(op.inputs) + index].uses)


def read_elsewhere(
    maps: Sequence[AffineMap], inputs: Sequence[SSAValue], output: AffineMap, memory: SSAValue
) -> Iterator[SSAValue]:
    """The inputs that are read of memory at other places than an output is written there."""
    whole = len(output.results) == output.num_dims
    for value, map_ in zip(inputs, maps, strict=False):
        same = value is memory and map_ == output and whole
        if root_of(value) is root_of(memory) and not same:
            yield value


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

    def note_moved(self, memory: SSAValue, to: SSAValue) -> None:
        """What lay in an allocation that is no more lies elsewhere."""
        for value, held in self._memory.items():
            if held is memory:
                self._memory[value] = to

    def _keep(self, value: SSAValue, memory: SSAValue) -> None:
        self._memory[value] = memory
        if memory.name_hint is None:
            memory.name_hint = value.name_hint

    def memory_of(self, op: Operation, value: SSAValue) -> SSAValue:
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
        if not (obstacle or foreign or self.tenants.is_read_after(memory, op, but)):
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
