"""Functions with heads of their own: ends, directives, and registers without a value."""

from __future__ import annotations

from xdsl.dialects import cf

from fragir.dialects import ptx
from fragir.passes.writer.text import KernelText


def undefined(w: KernelText, op: ptx.UndefinedOp) -> None:
    w.define(op.value)


def end(w: KernelText, op: ptx.EndOp) -> None:
    w.emit(op.word.data)


def text(w: KernelText, op: ptx.TextOp) -> None:
    w.lines.append(f"    {op.text.data}")


def branch(w: KernelText, op: cf.BranchOp) -> None:
    """The blocks around it write the copies and the branch."""


def conditional_branch(w: KernelText, op: cf.ConditionalBranchOp) -> None:
    """The same."""
