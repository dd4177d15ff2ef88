"""Registers that wgmma may still write: they are never copied, so what carries them shares them."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from fragir.dialects import ptx
from fragir.dialects.narrow import is_vector


def in_flight(value: SSAValue, seen: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a product may be under way that writes a value's registers."""
    if not is_vector(value.type) or value in seen:
        return False
    if isinstance(value.owner, ptx.WgmmaOp):
        return True
    return any(in_flight(source, seen | {value}) for source in _sources(value))


def is_kept_in_place(value: SSAValue, op: Operation) -> bool:
    """Whether what an operation makes of a value may be in flight, in the same registers."""
    if isinstance(op, ptx.WgmmaOp | ptx.WgmmaWaitOp) or in_flight(value):
        return True
    if isinstance(op, scf.ForOp) and value in op.iter_args:
        return in_flight(op.results[list(op.iter_args).index(value)])
    return False


def _sources(value: SSAValue) -> list[SSAValue]:
    """What a value is on the different ways to it, where a loop or branch gives it."""
    if isinstance(value, BlockArgument):
        loop, index = value.block.parent_op(), value.index
        if isinstance(loop, scf.ForOp) and index:
            return [loop.iter_args[index - 1], _passed(loop.body.block)[index - 1]]
        if isinstance(loop, scf.WhileOp):
            if value.block is loop.before_region.block:
                return [loop.arguments[index], _passed(loop.after_region.block)[index]]
            return [_passed(loop.before_region.block)[index + 1]]
        return []
    assert isinstance(value, OpResult)
    op, index = value.op, value.index
    if isinstance(op, scf.ForOp):
        return [op.iter_args[index], _passed(op.body.block)[index]]
    if isinstance(op, scf.WhileOp):
        return [_passed(op.before_region.block)[index + 1]]
    if isinstance(op, scf.IfOp):
        return [_passed(region.block)[index] for region in op.regions if region.blocks]
    return []


def _passed(block: Block) -> list[SSAValue]:
    last = block.last_op
    return [] if last is None else list(last.operands)


def first_registers(value: SSAValue, branch: Block) -> SSAValue:
    """The value whose registers a tile in flight has that a branch passes on.

    It is one from outside of the branch, or made in it by what is no product.
    """
    while _is_within(value, branch):
        before = _before(value)
        if before is None:
            break
        value = before
    return value


def _before(value: SSAValue) -> SSAValue | None:
    """A value in flight before the operation that gives it, in the same registers."""
    owner = value.owner
    if isinstance(owner, ptx.WgmmaOp):
        return owner.c
    if isinstance(value, BlockArgument):  # of the first block of scf.while, whose start it is
        loop = value.block.parent_op()
        return loop.operands[value.index] if isinstance(loop, scf.WhileOp) else None
    assert isinstance(value, OpResult)
    if isinstance(owner, ptx.WgmmaWaitOp):
        return owner.accumulators[value.index]
    if isinstance(owner, scf.ForOp):
        return owner.iter_args[value.index]
    if isinstance(owner, scf.WhileOp):
        return _passed(owner.before_region.block)[value.index + 1]
    if isinstance(owner, scf.IfOp):  # all of its branches have the same
        blocks = [region.block for region in owner.regions]
        roots = [first_registers(_passed(block)[value.index], block) for block in blocks]
        outside = (r for r, block in zip(roots, blocks, strict=True) if not _is_within(r, block))
        return next(outside, None)
    return None


def _is_within(value: SSAValue, branch: Block) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None and block is not branch:
        above = block.parent_op()
        block = None if above is None else above.parent
    return block is branch


def dies_in_branch(value: SSAValue, op: Operation) -> bool:
    """Whether `op`, in a branch of `scf.if`, is the last to use a value from outside of it."""
    return sum(use.operation is op for use in value.uses) == 1 and ends_in(value, op)


def ends_in(value: SSAValue, op: Operation) -> bool:
    """Whether `op`, or what is in it, is the last to use a value, whose other uses are in other
    branches of what `op` is in. No loop may lie between.
    """
    ways: dict[Operation, Block] = {}
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent
    block = op.parent
    while block is not None and block is not home:
        above = block.parent_op()
        if not isinstance(above, scf.IfOp):
            return False
        ways[above] = block
        block = above.parent
    return all(
        _is_in(use.operation, op) or _is_elsewhere(use.operation, ways) for use in value.uses
    )


def _is_in(op: Operation, outer: Operation) -> bool:
    above: Operation | None = op
    while above is not None and above is not outer:
        above = above.parent_op()
    return above is outer


def _is_elsewhere(op: Operation, ways: dict[Operation, Block]) -> bool:
    """Whether an operation stands in another branch than the one that is taken."""
    block = op.parent
    while block is not None:
        above = block.parent_op()
        if above is not None and above in ways:
            return ways[above] is not block
        block = None if above is None else above.parent
    return False
