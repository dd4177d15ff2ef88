"""Who computed what an operation reads: another operation of the kernel, or nobody in it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import SSAValue

from fragir.dialects.narrow import is_memref
from fragir.passes.contraction.views import root_of
from fragir.passes.generics.axes import NoKernelError

Structured = LinalgStructuredOperation


class OperandOrigins:
    """Of each operand the operation that wrote it last before; None of what memory held at first.

    Operations write whole buffers: what lies between two views of one is not known.
    """

    def __init__(self, work: Sequence[Structured]):
        self._of: dict[tuple[Structured, int], Structured | None] = {}
        self.last: dict[SSAValue, Structured] = {}
        """Who wrote memory last, by the values that name it."""
        writers: dict[SSAValue, tuple[SSAValue, Structured]] = {}
        for op in work:
            for number, value in enumerate(op.operands):
                if not is_memref(value.type):
                    continue
                written, writer = writers.get(root_of(value), (value, None))
                if written is not value:
                    raise NoKernelError(
                        op, f"{op.name} reads a view of what {_name(writer)} writes"
                    )
                self._of[op, number] = writer
            for value in op.outputs:
                writers[root_of(value)] = value, op
                self.last[value] = op

    def of(self, op: Structured, number: int) -> Structured | None:
        """Who computed an operand of an operation, by the operand's number."""
        return self._of[op, number]


def _name(op: Structured | None) -> str:
    assert op is not None
    return op.name
