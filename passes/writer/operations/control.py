"""Loops and branches: registers that they carry, updated in place where nobody else reads them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, OpResult, SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.passes.writer.literals import default_hint
from fragir.passes.writer.sharing import ends_in, first_registers, is_in_flight, reusable
from fragir.passes.writer.text import KernelText


def loop(w: KernelText, op: scf.ForOp) -> None:
    body = op.body.block
    moves: list[tuple[str, str, int]] = []
    for start, variable in zip(op.iter_args, body.args[1:], strict=True):
        over = w.take_over(start, op)
        if over is not None:
            w.own(variable, over)
            continue
        width = ptx.register_bits(variable.type)
        hint = variable.name_hint or start.name_hint or default_hint(variable.type)
        names = tuple(
            w.registers.fresh_register(width, hint) for _ in range(ptx.registers(variable.type))
        )
        w.own(variable, names)
        moves += [(t, s, width) for t, s in zip(names, w.names[start], strict=True)]
    counter = w.define(body.args[0])[0]
    kind = f"s{max(32, ptx.bits(op.lb.type))}"
    lower, upper, step = (w.one(v) for v in (op.lb, op.ub, op.step))
    w.parallel_move([*moves, (counter, lower, ptx.register_bits(op.lb.type))])
    loop, done = w.labels.fresh_label("loop"), w.labels.fresh_label("done")
    if not _runs_once(lower, upper):
        skip = w.registers.fresh_register(1)
        w.emit(f"setp.ge.{kind}", skip, counter, upper)
        w.emit("bra", done, guard=skip)
    w.label(loop)
    if ptx.NO_UNROLL in op.attributes:
        w.pragma("nounroll")
    for value, variable in reusable(op).items():
        w.reserved[value] = w.names[variable]
    w.block(body)
    last = body.last_op
    assert last is not None
    back: list[tuple[str, str, int]] = []
    for value, variable in zip(last.operands, body.args[1:], strict=True):
        width = ptx.register_bits(variable.type)
        pairs = zip(w.names[variable], w.names[value], strict=True)
        back += [(t, s, width) for t, s in pairs]
    _check_in_flight(w, op, body)
    w.parallel_move(back)
    again = w.registers.fresh_register(1)
    w.emit(f"add.{kind}", counter, counter, step)
    w.emit(f"setp.lt.{kind}", again, counter, upper)
    w.emit("bra", loop, guard=again)
    w.label(done)
    for result, variable in zip(op.results, body.args[1:], strict=True):
        w.own(result, w.names[variable])


def _check_in_flight(w: KernelText, op: scf.ForOp, body: Block) -> None:
    """Refuses to copy an accumulator that a wgmma still writes."""
    last = body.last_op
    assert last is not None
    for value, variable in zip(last.operands, body.args[1:], strict=True):
        if w.names[value] != w.names[variable] and is_in_flight(value):
            raise FragirError(
                "a wgmma's accumulator is carried round the loop in other registers while it "
                "is under way",
                hint="give the loop's own variable to the wgmma as c",
            )


def yield_(w: KernelText, op: scf.YieldOp) -> None:
    """The loop or branch around it writes the copies."""


def branch(w: KernelText, op: scf.IfOp) -> None:
    condition = w.register(op.cond)
    for result in op.results:
        if is_in_flight(result):
            _share(w, op, result)
        else:
            w.define(result)
    otherwise = w.labels.fresh_label("else")
    w.emit("bra", otherwise, guard=f"!{condition}")
    _branch(w, op, op.true_region.block)
    if op.false_region.blocks and len(list(op.false_region.block.ops)) > (not op.results):
        done = w.labels.fresh_label("endif")
        w.emit("bra.uni", done)
        w.label(otherwise)
        _branch(w, op, op.false_region.block)
        w.label(done)
    else:
        w.label(otherwise)


def _share(w: KernelText, op: scf.IfOp, result: OpResult) -> None:
    """Gives a tile in flight the registers that it has in every branch."""
    blocks = [region.block for region in op.regions]
    passed = [block.last_op for block in blocks]
    roots = [
        first_registers(last.operands[result.index], block)
        for last, block in zip(passed, blocks, strict=True)
        if last is not None
    ]
    outside = [root for root in roots if root in w.names]
    if len(set(outside)) > 1:
        raise FragirError(
            "branches give different tiles in flight, and copying one then is undefined",
            hint="let both begin with the same one, or await them in the branches",
        )
    if not outside:
        names = w.define(result)
    elif outside[0] in w.owned and ends_in(outside[0], op):
        names = w.names[outside[0]]
        w.own(result, names)
    else:
        raise FragirError(
            "a tile in flight is used behind the branch that adds to it, and copying it then is "
            "undefined",
            hint="use what scf.if gives",
        )
    for root in roots:
        if root not in w.names:
            w.reserved[root] = names


def _branch(w: KernelText, op: scf.IfOp, block: Block) -> None:
    w.block(block)
    last = block.last_op
    if last is None:
        return
    moves: list[tuple[str, str, int]] = []
    for value, result in zip(last.operands, op.results, strict=True):
        if w.names[value] != w.names[result] and is_in_flight(value):
            raise FragirError(
                "a branch gives a tile in flight in other registers than the branch before it, and "
                "copying it then is undefined",
                hint="let both begin with the same one, or await them in the branches",
            )
        width = ptx.register_bits(result.type)
        pairs = zip(w.names[result], w.names[value], strict=True)
        moves += [(t, s, width) for t, s in pairs]
    w.parallel_move(moves)


def _runs_once(lower: str, upper: str) -> bool:
    """Whether constant bounds let the loop run at least once."""
    return not lower.startswith("%") and not upper.startswith("%") and int(lower) < int(upper)


# -- loops -----------------------------------------------------------------------------------------
# Loops that go on while a condition holds: what they carry has registers of its own.


def while_(w: KernelText, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    condition, again = before.last_op, after.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert again is not None
    for start, variable in zip(op.arguments, before.args, strict=True):
        over = w.take_over(start, op) if is_in_flight(variable) else None
        if over is not None:
            w.own(variable, over)
        else:
            w.define(variable)
    for variable in after.args:
        if not is_in_flight(variable):
            w.define(variable)
    _carry(w, op.arguments, before.args)
    loop, done = w.labels.fresh_label("while"), w.labels.fresh_label("done")
    w.label(loop)
    w.block(before)
    for value, variable in zip(condition.args, after.args, strict=True):
        if variable not in w.names:  # in flight: it is what it is
            w.own(variable, w.names[value])
    _carry(w, condition.args, after.args)
    held = w.register(condition.condition)
    if after.first_op is again and held not in {n for v in before.args for n in w.names[v]}:
        _carry(w, again.operands, before.args)  # nothing but the next turn: one branch will do
        w.emit("bra", loop, guard=held)
        for result, variable in zip(op.results, after.args, strict=True):
            w.own(result, w.names[variable])
        return
    w.emit("bra", done, guard=f"!{held}")
    w.block(after)
    _carry(w, again.operands, before.args)
    w.emit("bra.uni", loop)
    w.label(done)
    for result, variable in zip(op.results, after.args, strict=True):
        w.own(result, w.names[variable])


def condition(w: KernelText, op: scf.ConditionOp) -> None:
    """The loop around it writes the copies and the branch."""


def _carry(w: KernelText, values: Sequence[SSAValue], variables: Sequence[SSAValue]) -> None:
    """Copies values to the registers of variables, all at once."""
    moves: list[tuple[str, str, int]] = []
    for value, variable in zip(values, variables, strict=True):
        if is_in_flight(value) and w.names[value] != w.names[variable]:
            raise FragirError(
                "a wgmma's accumulator is carried round the loop in other registers while it is "
                "under way",
                hint="give the loop's own variable to the wgmma as c",
            )
        width = ptx.register_bits(variable.type)
        pairs = zip(w.names[variable], w.names[value], strict=True)
        moves += [(t, s, width) for t, s in pairs]
    w.parallel_move(moves)
