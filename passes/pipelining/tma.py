"""Which loads the tensor memory accelerator can make, and which of them a cluster shares."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from fragir.dialects import frag


def shared_tiles(loop: scf.ForOp) -> frozenset[SSAValue]:
    """The memories of which all blocks of a cluster load the same tile in every turn of a loop.

    The blocks of a cluster have tiles below each other (`frag.for_tiles`), so theirs are the loads
    whose place does not depend on the row.
    """
    around = loop.parent_op()
    while around is not None and not isinstance(around, frag.ForTilesOp):
        around = around.parent_op()
    if around is None or around.blocks == 1:
        return frozenset()
    row = around.places[-2]
    loads = [op for op in loop.body.block.ops if isinstance(op, frag.LoadOp)]
    dependent = {load.memory for load in loads if any(_needs(i, row) for i in load.indices)}
    return frozenset(load.memory for load in loads) - dependent


def _needs(value: SSAValue, other: SSAValue) -> bool:
    """Whether a value is computed from another one."""
    if value is other:
        return True
    owner = value.owner
    if isinstance(owner, Block):
        return False
    return any(_needs(operand, other) for operand in owner.operands)
