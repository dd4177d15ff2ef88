"""What an operation stands in."""

from __future__ import annotations

from xdsl.ir import Operation, Region

RARE = "frag.rare"
"""The attribute of an scf.if that seldom holds: its branches compute all they need themselves."""


def is_rare(op: Operation) -> bool:
    """Whether an operation stands where a condition seldom leads."""
    while (parent := op.parent_op()) is not None:
        if RARE in parent.attributes and op.parent is parent.regions[0].first_block:
            return True
        op = parent
    return False


def role_of(op: Operation) -> Region | None:
    """The role that an operation belongs to; None outside of `frag.roles`."""
    above: Operation | None = op
    while above is not None:
        parent = above.parent_op()
        if parent is not None and parent.name == "frag.roles":
            return above.parent_region()
        above = parent
    return None
