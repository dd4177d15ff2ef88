"""What an operation stands in."""

from __future__ import annotations

from xdsl.ir import Operation, Region


def role_of(op: Operation) -> Region | None:
    """The role that an operation belongs to; None outside of `frag.roles`."""
    above: Operation | None = op
    while above is not None:
        parent = above.parent_op()
        if parent is not None and parent.name == "frag.roles":
            return above.parent_region()
        above = parent
    return None
