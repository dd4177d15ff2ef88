"""Operations with a result, put into a program."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter


def insert_before(op: Operation, at: InsertPoint, name: str | None = None) -> SSAValue:
    """Inserts an operation with one result, which it gives."""
    Rewriter.insert_op(op, at)
    op.results[0].name_hint = name
    return op.results[0]
