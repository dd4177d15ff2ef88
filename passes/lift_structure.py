"""`lift-structure`: branches of lifted PTX as `scf.if`, loops as `scf.while`, where they are that.

What is no branch with one way out, or no loop with one way back, stays blocks of `cf`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from fragir.dialects import ptx
from fragir.passes.settling import rounds
from fragir.passes.writer.blocks import ways


class LiftStructurePass(ModulePass):
    """Raises the blocks of every `ptx.function` to structured control flow, from the inside out."""

    name = "lift-structure"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, ptx.FunctionOp)]:
            # each step takes a block away, or makes a loop of one
            for _ in rounds("the blocks of a function", 1 + 2 * len(function.body.blocks)):
                if not any(_raise_structure(block) for block in function.body.blocks):
                    break


def _raise_structure(block: Block) -> bool:
    """Raises what begins at a block; whether anything did."""
    return _join_following(block) or _raise_branch(block) or _raise_loop(block)


def _before(block: Block) -> list[Block]:
    """The blocks that lead to a block, as often as they do."""
    region = block.parent
    assert region is not None
    return [other for other in region.blocks for to, _ in ways(other) if to is block]


def _inline(block: Block, given: Sequence[SSAValue]) -> list[Operation]:
    """A block's operations, taken out of it, with what it is given for its arguments."""
    for argument, value in zip(block.args, given, strict=True):
        argument.replace_all_uses_with(value)
    operations = list(block.ops)
    for op in operations:
        op.detach()
    return operations


def _remove(block: Block) -> None:
    region = block.parent
    assert region is not None
    region.detach_block(block)
    block.erase()


def _join_following(block: Block) -> bool:
    """Joins a block with the only one behind it, if nothing else leads there."""
    last = block.last_op
    if not isinstance(last, cf.BranchOp) or last.successor is block:
        return False
    to, given = last.successor, list(last.arguments)
    region = block.parent
    if region is None or to is region.blocks[0] or len(_before(to)) != 1:
        return False
    last.detach()
    last.erase()
    block.add_ops(_inline(to, given))
    _remove(to)
    return True


def _raise_branch(block: Block) -> bool:
    """A branch of which both ways meet again at once."""
    last = block.last_op
    if not isinstance(last, cf.ConditionalBranchOp):
        return False
    sides = [(last.then_block, list(last.then_arguments))]
    sides.append((last.else_block, list(last.else_arguments)))
    inner = [_side(to, block) for to, _ in sides]
    meeting = [way[0] if way else to for way, (to, _) in zip(inner, sides, strict=True)]
    if meeting[0] is not meeting[1] or not any(inner):
        return False
    to = meeting[0]
    if any(side is to for way, (side, _) in zip(inner, sides, strict=True) if way):
        return False
    regions: list[Region] = []
    for way, (side, given) in zip(inner, sides, strict=True):
        made = Block()
        if way is None:
            made.add_op(scf.YieldOp(*given))
        else:
            operations = _inline(side, given)
            end = operations.pop()
            assert isinstance(end, cf.BranchOp)
            made.add_ops([*operations, scf.YieldOp(*end.arguments)])
            end.erase()
        regions.append(Region(made))
    then, otherwise = regions
    choice = scf.IfOp(last.cond, [a.type for a in to.args], then, otherwise)
    choice.location = last.location
    last.detach()
    last.erase()
    for way, (side, _) in zip(inner, sides, strict=True):
        if way is not None:
            _remove(side)
    for argument, result in zip(to.args, choice.results, strict=True):
        result.name_hint = argument.name_hint
    block.add_ops([choice, cf.BranchOp(to, *choice.results)])
    return True


def _side(side: Block, block: Block) -> tuple[Block, Sequence[SSAValue]] | None:
    """Where a way of a branch goes on, if nothing else leads into it, or reads what it makes."""
    last = side.last_op
    if side is block or not isinstance(last, cf.BranchOp) or len(_before(side)) != 1:
        return None
    return (last.successor, last.arguments) if not _outside(side) else None


def _outside(block: Block) -> list[SSAValue]:
    """What a block makes that others read."""
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    return [v for v in values if any(_top(use.operation) is not block for use in v.uses)]


def _top(op: Operation) -> Block | None:
    """The block of the function that an operation stands in, deep inside or not."""
    above = op.parent_op()
    while above is not None and not isinstance(above, ptx.FunctionOp):
        op, above = above, above.parent_op()
    return op.parent


def _raise_loop(block: Block) -> bool:
    """A block that goes back to itself, or on."""
    last = block.last_op
    if not isinstance(last, cf.ConditionalBranchOp):
        return False
    ways_on = [(last.then_block, last.then_arguments), (last.else_block, last.else_arguments)]
    back = [given for to, given in ways_on if to is block]
    on = [(to, list(given)) for to, given in ways_on if to is not block]
    if len(back) != 1:
        return False
    again = list(back[0])
    ((to, given),) = on
    later = _outside(block)
    # what the next turn is given, what those behind it read, and what the next block is given
    carried = list(dict.fromkeys([*again, *later, *given]))
    condition, negated = last.cond, last.then_block is not block
    last.detach()
    last.erase()
    body = Block(arg_types=[argument.type for argument in block.args])
    inner: dict[SSAValue, SSAValue] = dict(zip(block.args, body.args, strict=True))
    operations = list(block.ops)
    inside = {op for top in operations for op in top.walk()}
    for op in operations:
        op.detach()
    body.add_ops(operations)
    for argument, variable in inner.items():
        variable.name_hint = argument.name_hint
        argument.replace_uses_with_if(variable, lambda use: use.operation in inside)
    condition = inner.get(condition, condition)
    if negated:
        flip = ptx.InstructionOp("not.pred $0, $1", [condition], [i1])
        body.add_op(flip)
        condition = flip.outputs[0]
    turn = scf.ConditionOp(condition, *(inner.get(value, value) for value in carried))
    body.add_op(turn)
    after = Block(arg_types=[value.type for value in carried])
    places = {value: at for at, value in enumerate(carried)}
    after.add_op(scf.YieldOp(*(after.args[places[value]] for value in again)))
    types = [value.type for value in carried]
    loop = scf.WhileOp(block.args, types, Region(body), Region(after))
    block.add_op(loop)
    for value, result in zip(carried, loop.results, strict=True):
        result.name_hint = value.name_hint
        if value in later:
            apart = {*inside, turn, loop}
            value.replace_uses_with_if(result, lambda use, apart=apart: use.operation not in apart)
    block.add_op(cf.BranchOp(to, *(loop.results[places[value]] for value in given)))
    return True
