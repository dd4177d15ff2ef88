"""Loops that go on while a condition holds: what they carry has registers of its own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.passes.writer.flight import in_flight
from fragir.passes.writer.text import KernelText


def while_(w: KernelText, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    condition, again = before.last_op, after.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert again is not None
    for start, variable in zip(op.arguments, before.args, strict=True):
        over = w.take_over(start, op) if in_flight(variable) else None
        if over is not None:
            w.own(variable, over)
        else:
            w.define(variable)
    for variable in after.args:
        if not in_flight(variable):
            w.define(variable)
    _carry(w, op.arguments, before.args)
    loop, done = w.labels.fresh("while"), w.labels.fresh("done")
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
        if in_flight(value) and w.names[value] != w.names[variable]:
            raise FragirError(
                "a wgmma's accumulator is carried round the loop in other registers while it is "
                "under way",
                hint="give the loop's own variable to the wgmma as c",
            )
        width = ptx.register_bits(variable.type)
        pairs = zip(w.names[variable], w.names[value], strict=True)
        moves += [(t, s, width) for t, s in pairs]
    w.parallel_move(moves)
