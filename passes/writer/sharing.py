"""Which values may be written over others: registers updated in place instead of copied."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue, Use

from fragir.dialects import ptx
from fragir.dialects.shorthands import is_vector
from fragir.passes.writer.arith import CASTS

# -- flight ----------------------------------------------------------------------------------------
# Registers that wgmma may still write: they are never copied, so what carries them shares them.


def is_in_flight(value: SSAValue, seen: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a product may be under way that writes a value's registers."""
    if not is_vector(value.type) or value in seen:
        return False
    if isinstance(value.owner, ptx.WgmmaOp):
        return True
    return any(is_in_flight(source, seen | {value}) for source in _sources(value))


def is_kept_in_place(value: SSAValue, op: Operation) -> bool:
    """Whether what an operation makes of a value may be in flight, in the same registers."""
    if isinstance(op, ptx.WgmmaOp | ptx.WgmmaWaitOp) or is_in_flight(value):
        return True
    if isinstance(op, scf.ForOp) and value in op.iter_args:
        return is_in_flight(op.results[list(op.iter_args).index(value)])
    return False


def _sources(value: SSAValue) -> list[SSAValue]:
    """What a value is on the different ways to it, where a loop or branch gives it."""
    if isinstance(value, BlockArgument):
        loop, index = value.block.parent_op(), value.index
        if isinstance(loop, scf.ForOp) and index:
            return [loop.iter_args[index - 1], _passed_values(loop.body.block)[index - 1]]
        if isinstance(loop, scf.WhileOp):
            if value.block is loop.before_region.block:
                return [loop.arguments[index], _passed_values(loop.after_region.block)[index]]
            return [_passed_values(loop.before_region.block)[index + 1]]
        return []
    assert isinstance(value, OpResult)
    op, index = value.op, value.index
    if isinstance(op, scf.ForOp):
        return [op.iter_args[index], _passed_values(op.body.block)[index]]
    if isinstance(op, scf.WhileOp):
        return [_passed_values(op.before_region.block)[index + 1]]
    if isinstance(op, scf.IfOp):
        return [_passed_values(region.block)[index] for region in op.regions if region.blocks]
    return []


def _passed_values(block: Block) -> list[SSAValue]:
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
        return _passed_values(owner.before_region.block)[value.index + 1]
    if isinstance(owner, scf.IfOp):  # all of its branches have the same
        blocks = [region.block for region in owner.regions]
        roots = [first_registers(_passed_values(block)[value.index], block) for block in blocks]
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


# operations that only name registers of their operands
ALIASES = (ptx.SliceOp, ptx.ConcatOp, ptx.BitcastOp, ptx.SplatOp, ptx.UnpackOp, ptx.PackOp)


def is_alias(op: Operation) -> bool:
    """Whether results may be registers of the operands: so too casts that change no bit."""
    return isinstance(op, (*ALIASES, ptx.CvtOp, ptx.WgmmaWaitOp)) or op.name in CASTS


def block_of(value: SSAValue) -> Block | None:
    """The block that defines a value."""
    if isinstance(value, BlockArgument):
        return value.block
    owner = value.owner
    return owner.parent if isinstance(owner, Operation) else owner


def dies_at(value: SSAValue, op: Operation) -> bool:
    """Whether `op` is the only use of a value, in the block that defines it.

    A use in a nested loop is none of these: the loop would find the value overwritten when it
    comes round. Of a tile in flight it may stand in a branch, and others in other branches.
    """
    if block_of(value) is not op.parent:
        return is_kept_in_place(value, op) and dies_in_branch(value, op)
    return value.has_one_use() and value.get_user_of_unique_use() is op


def last_use(
    value: SSAValue,
    body: Block,
    position: dict[Operation, int],
    known: dict[SSAValue, int],
) -> int:
    """The place in `body` of the last operation that reads a value or an alias of it; -1: none.

    `known`: what has been found in this body. Slices that are put together again are each other's
    aliases by more ways than can be gone one by one.
    """
    found = known.get(value)
    if found is None:
        found = known[value] = _last_use(value, body, position, known)
    return found


def _last_use(
    value: SSAValue,
    body: Block,
    position: dict[Operation, int],
    known: dict[SSAValue, int],
) -> int:
    last = -1
    for use in value.uses:
        op = use.operation
        top: Operation | None = op
        while top is not None and top.parent is not body:
            top = top.parent_op()
        if top is None:
            return len(position) + 1
        last = max(last, position[top])
        if isinstance(op, ptx.WgmmaOp) and value is not op.c:
            last = max(last, _flight_ends(op.d, body, position))
        if is_alias(op):
            last = max(last, *(last_use(result, body, position, known) for result in op.results))
        elif (result := _of_loop(use)) is not None:  # the loop goes on in the same registers
            last = max(last, last_use(result, body, position, known))
    return last


def _of_loop(use: Use) -> SSAValue | None:
    """The result of a loop that begins with a value."""
    op = use.operation
    return op.results[use.index - 3] if op.name == "scf.for" and use.index >= 3 else None


def _flight_ends(value: SSAValue, body: Block, position: dict[Operation, int]) -> int:
    """The place in `body` where the product is waited for that a value in flight is made by: until
    then it reads its registers.
    """
    last = -1
    for use in value.uses:
        top: Operation | None = use.operation
        while top is not None and top.parent is not body:
            top = top.parent_op()
        if isinstance(use.operation, ptx.WgmmaOp):
            last = max(last, _flight_ends(use.operation.d, body, position))
        elif isinstance(use.operation, ptx.WgmmaWaitOp) and top is not None:
            last = max(last, position[top])
        else:
            return len(position) + 1
    return last


# written register by register, each after the operands' registers of the same number are read
_IN_PLACE = ("arith.addf", "arith.subf", "arith.mulf", "math.fma")


def _origin(value: SSAValue) -> SSAValue:
    """The value in whose registers wgmma leaves its sums: they are updated where they are.

    Each step is the only use of what it updates: the writer refuses anything else.
    """
    while True:
        owner = value.owner
        match owner:
            case ptx.WgmmaWaitOp():
                value = owner.accumulators[owner.completed.index(value)]
            case ptx.WgmmaOp():
                value = owner.c
            case ptx.CopyOp() if dies_at(owner.source, owner):
                value = owner.source
            case _:
                return value


def _copied_values(value: SSAValue) -> list[SSAValue]:
    """The copies that sums in flight begin with: they may go to a variable's registers, too."""
    found: list[SSAValue] = []
    if is_in_flight(value):
        while isinstance(value.owner, ptx.WgmmaOp | ptx.WgmmaWaitOp | ptx.CopyOp):
            owner = value.owner
            if isinstance(owner, ptx.WgmmaWaitOp):
                value = owner.accumulators[owner.completed.index(value)]
            elif isinstance(owner, ptx.CopyOp):
                found.append(value)
                value = owner.source
            else:
                value = owner.c
    return found[::-1]


def _can_read_in_place(op: Operation, variable: SSAValue) -> bool:
    """Whether an instruction may write where it reads the variable."""
    value = op.results[0]
    if ptx.registers(value.type) == 1:
        return True
    if op.name not in _IN_PLACE or ptx.scalar_type(value.type) != f32:
        return False
    same = [variable]  # what has the variable's registers, in their order
    for value in same:
        same += [result for use in value.uses if (result := _of_loop(use)) is not None]
    return sum(use.operation is op for value in same for use in value.uses) == sum(
        any(_is_variable(operand, value) for value in same) for operand in op.operands
    )


def _is_variable(value: SSAValue, variable: SSAValue) -> bool:
    """Whether a value is the variable, or may be its registers in another order."""
    owner = value.owner
    return value is variable or (
        isinstance(owner, Operation)
        and is_alias(owner)
        and any(_is_variable(operand, variable) for operand in owner.operands)
    )


def reusable(loop: scf.ForOp) -> dict[SSAValue, SSAValue]:
    """Value -> loop-carried variable whose register it may be computed into.

    That is so where the variable is read for the last time before the value is computed, or by
    the very instruction that computes it. The value is what is yielded, or of wgmma what its sums
    are added to.
    """
    body = loop.body.block
    last = body.last_op
    assert last is not None
    position = {op: i for i, op in enumerate(body.ops)}
    result: dict[SSAValue, SSAValue] = {}
    known: dict[SSAValue, int] = {}
    for variable, yielded in zip(body.args[1:], last.operands, strict=True):
        if any(use.operation is last for use in variable.uses):
            continue
        used = last_use(variable, body, position, known)
        for value in (_origin(yielded), *_copied_values(yielded)):
            owner = value.owner
            if not isinstance(owner, Operation) or owner.parent is not body or value in result:
                continue
            if is_alias(owner) or owner.regions:
                continue
            at = position[owner]
            if used < at or (used == at and _can_read_in_place(owner, variable)):
                result[value] = variable
                break
    return result
