"""Memory that operations of xDSL's dialects touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.memref import AlterShapeOperation
from xdsl.ir import SSAValue

from fragir.dialects.interfaces import ACCESSES, Accesses


@ACCESSES.attach(memref.LoadOp)
class LoadAccesses(Accesses):
    def __init__(self, op: memref.LoadOp):
        self.op = op

    def reads(self) -> Sequence[SSAValue]:
        return (self.op.memref,)


@ACCESSES.attach(memref.StoreOp)
class StoreAccesses(Accesses):
    def __init__(self, op: memref.StoreOp):
        self.op = op

    def writes(self) -> Sequence[SSAValue]:
        return (self.op.memref,)


@ACCESSES.attach(memref.CopyOp)
class CopyAccesses(Accesses):
    def __init__(self, op: memref.CopyOp):
        self.op = op

    def reads(self) -> Sequence[SSAValue]:
        return (self.op.source,)

    def writes(self) -> Sequence[SSAValue]:
        return (self.op.destination,)


@ACCESSES.attach(memref.CastOp, memref.SubviewOp, AlterShapeOperation)
class ViewAccesses(Accesses):
    """The same memory under another type."""

    def __init__(self, op: Any):
        self.op = op

    def view_of(self) -> SSAValue:
        return self.op.operands[0]


@ACCESSES.attach(LinalgStructuredOperation)
class StructuredAccesses(Accesses):
    """Outputs in memory are written; a tensor takes the place of the output it is made from."""

    def __init__(self, op: LinalgStructuredOperation):
        self.op = op

    def reads(self) -> Sequence[SSAValue]:
        return self.op.inputs

    def writes(self) -> Sequence[SSAValue]:
        return [v for v in self.op.outputs if isinstance(v.type, MemRefType)]

    def view_of(self) -> SSAValue:
        return self.op.outputs[0]


@ACCESSES.attach(func.ReturnOp)
class ReturnAccesses(Accesses):
    """Tensors that are returned are written to arguments."""

    def __init__(self, op: func.ReturnOp):
        self.op = op

    def writes(self) -> Sequence[SSAValue]:
        return self.op.arguments
