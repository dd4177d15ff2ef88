"""Which tensors lie in which memory, and which of them are still read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import tensor
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.ir.affine import AffineMap

from fragir.passes.structured.memory import root_of


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

    def read_after(self, memory: SSAValue, op: Operation, but: Use | None = None) -> bool:
        """Whether an operation behind another one reads what lies there now; one use does not
        count."""
        at = self._position[op]
        return any(
            use != but and self.position(use.operation) > at and reads(use)
            for value in self._of.get(root_of(memory), ())
            for use in value.uses
        )

    def position(self, op: Operation) -> int:
        """Where an operation, or the one that it is within, stands in the function."""
        top = self._block.find_ancestor_op_in_block(op)
        # what the pass itself inserts stands with those that it replaces
        return -1 if top is None else self._position.get(top, -1)


def reads(use: Use) -> bool:
    """Whether a use of a tensor needs its elements."""
    op = use.operation
    if isinstance(op, tensor.DimOp):
        return False
    if not isinstance(op, LinalgStructuredOperation) or use.index < len(op.inputs):
        return True
    return reads_output(op, use.index - len(op.inputs))


def reads_output(op: Operation, index: int) -> bool:
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
