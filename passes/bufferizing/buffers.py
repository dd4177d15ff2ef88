"""Gives every tensor of a function the memory that its destination names."""

from __future__ import annotations

from xdsl.dialects import func, memref, tensor
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import BlockArgument, Operation, SSAValue, Use
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from fragir.dialects.linalg.generic_text import maps_of
from fragir.dialects.memory_types import root_of
from fragir.dialects.shorthands import constant_of
from fragir.mlir.diagnostics import fail
from fragir.passes.bufferizing.parts import VIEWS, TensorParts, in_place
from fragir.passes.bufferizing.results import Results
from fragir.passes.bufferizing.tensor_memory import (
    TensorMemory,
    is_any_tensor,
    is_output_read,
    is_tensor,
    name_of,
    read_elsewhere,
)
from fragir.passes.structured.memory import erase_dead, owners

# A (m, k), B (k, n), C (m, n)
PLAIN_MAPS = [
    AffineMap(3, 0, tuple(AffineExpr.dimension(dim) for dim in dims))
    for dims in ((0, 2), (2, 1), (0, 1))
]


class Bufferization:
    """One function; front to back, knowing which tensor each piece of memory holds by then."""

    def __init__(self, function: func.FuncOp):
        if len(function.body.blocks) > 1:
            fail(function, "a function of tensors has one block, without branches")
        self.function = function
        self.memory = TensorMemory(function)
        self.block = self.memory.block
        self.parts = TensorParts(self.memory)

    def run(self) -> None:
        """Replaces every tensor of the function."""
        if self.function.is_declaration:
            fail(self.function, "a kernel has a body; this function of tensors has none")
        operations = list(self.block.ops)
        end = operations[-1]
        if not isinstance(end, func.ReturnOp):
            fail(end, f"a function of tensors ends in func.return, not {end.name}")
        for argument in list(self.block.args):
            if is_any_tensor(argument.type):
                type_ = self.memory.type_of(self.function, argument.type)
                self.memory.begin(Rewriter.replace_value_with_new_type(argument, type_))
        results = Results(self.memory, end)
        for op in operations[:-1]:
            self._step(op)
        results.write()
        self._clean()

    # --- front to back ------------------------------------------------------------------------

    def _step(self, op: Operation) -> None:
        if isinstance(op, LinalgStructuredOperation) and op.res:
            self._bufferize_structured(op)
        elif isinstance(op, tensor.EmptyOp):
            self.memory.type_of(op, op.tensor.type)
            self.memory.replaced.append(op)
        elif isinstance(op, tensor.DimOp):
            self._dim(op)
        elif isinstance(op, tensor.InsertSliceOp):
            self.parts.insert(op)
        elif isinstance(op, VIEWS):
            self.parts.view(op)
        elif any(self._touches(inner) for inner in op.walk()):
            hint = "write linalg operations on whole tensors"
            if op.name.startswith(("linalg.", "tensor.", "arith.constant")):
                hint = "run linalg-normalize before, or write a linalg.generic"
            fail(op, f"{op.name} on tensors is not supported; {hint}")

    def _bufferize_structured(self, op: LinalgStructuredOperation) -> None:
        inputs = [
            self._input(op, value, argument) if self._is_tensor(value) else value
            for value, argument in zip(op.inputs, op.body.block.args, strict=False)
        ]
        seen = self._body(op)
        outputs: list[SSAValue] = []
        for index in range(len(op.outputs)):
            outputs.append(self._destination(op, index, inputs, seen, outputs))
        self.memory.insert(op, _on_memory(op, inputs, outputs))
        self.memory.replaced.append(op)
        for memory, result in zip(outputs, op.res, strict=True):
            self.memory.write(result, memory)

    def _input(
        self, op: LinalgStructuredOperation, value: SSAValue, argument: SSAValue
    ) -> SSAValue:
        """The memory of an input; of one that only says how far loops run it may be empty."""
        if argument.uses or value in self.memory:
            return self.memory.memory_of(op, value)
        return self.memory.allocate(op, value)

    def _body(self, op: LinalgStructuredOperation) -> list[SSAValue]:
        """Elements that a body reads, by memory; what it reads."""
        seen: list[SSAValue] = []
        for inner in list(op.body.walk()):
            if isinstance(inner, tensor.ExtractOp):
                seen.append(self.memory.memory_of(op, inner.tensor))
                load = memref.LoadOp.get(seen[-1], inner.indices)
                load.location, load.res.name_hint = inner.location, inner.result.name_hint
                Rewriter.replace_op(inner, load)
            elif isinstance(inner, tensor.DimOp):
                self._dim(inner)
            elif not isinstance(inner, memref.LoadOp) and self._touches(inner):
                fail(
                    op, f"the body of {op.name} uses a whole tensor; it computes with elements only"
                )
        return seen

    def _destination(
        self,
        op: LinalgStructuredOperation,
        index: int,
        inputs: list[SSAValue],
        seen: list[SSAValue],
        taken: list[SSAValue],
    ) -> SSAValue:
        """The memory that a result is computed in; `taken` is that of the results before it."""
        start, reads = op.outputs[index], is_output_read(op, index)
        if start not in self.memory:
            if reads:
                words = "which is empty; linalg.fill it before"
                fail(op, f"{op.name} adds to {name_of(start)}, {words}")
            return self.memory.allocate(op, start)
        memory = self.memory[start]
        root = root_of(memory)
        maps = maps_of(op)
        obstacle = any(read_elsewhere(maps, inputs, maps[len(inputs) + index], memory)) or any(
            root_of(other) is root for other in (*taken, *seen)
        )
        return self.memory.destination(op, start, reads, obstacle, _put_back(op.res[index]))

    def _dim(self, op: tensor.DimOp) -> None:
        """The size of memory, or of an empty tensor, whose sizes are known."""
        dim, type_ = constant_of(op.index), op.source.type
        held = self.memory[op.source] if op.source in self.memory else None
        if held is not None and (dim is None or isinstance(held, BlockArgument)):
            length = memref.DimOp(held, op.index)
            self.memory.insert(op, length)
            size: SSAValue | int = length.result
        else:
            rank = len(type_.get_shape()) if is_tensor(type_) else 0
            if not rank:
                fail(op, f"tensor.dim of {type_} is not supported; take a tensor of known rank")
            if dim is None or not 0 <= dim < rank:
                fail(op, f"tensor.dim takes the constant number of a dimension of {type_}")
            size = self.memory.sizes(op, op.source)[dim]
        found = self.memory.number(op, size)
        if found.name_hint is None:
            found.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(found)
        Rewriter.erase_op(op)

    # --- the end ------------------------------------------------------------------------------

    def _clean(self) -> None:
        candidates: list[Operation] = []
        for op in reversed(self.memory.replaced):
            candidates += owners(op)
            Rewriter.erase_op(op)
        erase_dead([op for op in candidates if op.parent is self.block], self.block)
        self.function.update_function_type()

    def _is_tensor(self, value: SSAValue) -> bool:
        return value in self.memory or is_tensor(value.type)

    def _touches(self, op: Operation) -> bool:
        return any(x in self.memory or is_any_tensor(x.type) for x in (*op.operands, *op.results))


def _put_back(result: SSAValue) -> Use | None:
    """The use of a tensor that only puts a result back where it is computed: it does not read."""
    uses = [use.operation for use in result.uses]
    if len(uses) == 1 and isinstance(uses[0], tensor.InsertSliceOp) and uses[0].source is result:
        return in_place(uses[0])
    return None


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
    return new
