"""The operations of a program in order, in less time than `Operation.walk` takes."""

from __future__ import annotations

from xdsl.ir import Operation


def operations_in(op: Operation) -> list[Operation]:
    """An operation and all inside of it, in order: what `op.walk()` has, as a list."""
    found: list[Operation] = []
    _collect(op, found)
    return found


def _collect(op: Operation, found: list[Operation]) -> None:
    found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                if inner.regions:
                    _collect(inner, found)
                else:
                    found.append(inner)
                inner = inner.next_op
