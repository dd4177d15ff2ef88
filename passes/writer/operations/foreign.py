"""Functions with heads of their own: ends, directives, and registers without a value."""

from __future__ import annotations

from xdsl.dialects import cf

from fragir.dialects import ptx
from fragir.dialects.interfaces import WRITERS
from fragir.passes.writer.text import KernelText


@WRITERS.attach(ptx.UndefinedOp)
def undefined(w: KernelText, op: ptx.UndefinedOp) -> None:
    w.define(op.value)


@WRITERS.attach(ptx.EndOp)
def end(w: KernelText, op: ptx.EndOp) -> None:
    w.emit(op.word.data)


@WRITERS.attach(ptx.TextOp)
def text(w: KernelText, op: ptx.TextOp) -> None:
    w.lines.append(f"    {op.text.data}")


@WRITERS.attach(cf.BranchOp)
def branch(w: KernelText, op: cf.BranchOp) -> None:
    """The blocks around it write the copies and the branch."""


@WRITERS.attach(cf.ConditionalBranchOp)
def conditional_branch(w: KernelText, op: cf.ConditionalBranchOp) -> None:
    """The same."""
