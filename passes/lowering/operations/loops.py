"""Loops that go on while a condition holds (scf.while)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Region, SSAValue

from fragir.errors import FragirError
from fragir.passes.lowering.lane_builder import Lanes


def while_(lanes: Lanes, op: scf.WhileOp) -> None:
    state = lanes.state
    old, body = op.before_region.block, op.after_region.block
    condition, again = old.last_op, body.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert again is not None
    _check("scf.yield", again.operands, old.arg_types, "the first block takes")
    _check("scf.condition", condition.args, body.arg_types, "the second block takes")
    _check("scf.condition", condition.args, op.result_types, "the loop gives")
    starts = [flat for value in op.arguments for flat in state.flat(value)]
    starts += state.flat_hidden(op)
    before = _block(lanes, op, old, starts)
    with state.ar.inside(before):
        state.lower_block(old)
        passed = [flat for value in condition.args for flat in state.flat(value)]
        passed += state.flat_hidden(op)
        state.ar.insert(scf.ConditionOp(state.scalar(condition.condition), *passed))
    after = _block(lanes, op, body, passed)
    with state.ar.inside(after):
        state.lower_block(body)
    types = [value.type for value in passed]
    lowered = state.ar.insert(scf.WhileOp(starts, types, Region(before), Region(after)))
    results: list[SSAValue] = list(lowered.results)
    for result in op.results:
        state.bind_flat(result, results)
    state.bind_hidden(op, results)


def condition(lanes: Lanes, op: scf.ConditionOp) -> None:
    """Written with the loop, which needs what it passes on."""


def _block(lanes: Lanes, op: scf.WhileOp, old: Block, values: Sequence[SSAValue]) -> Block:
    """A block with the registers of another's arguments, which are bound to them."""
    block = Block(arg_types=[value.type for value in values])
    flat: list[SSAValue] = list(block.args)
    for argument in old.args:
        count = len(flat)
        lanes.state.bind_flat(argument, flat)
        for value in block.args[len(block.args) - count : len(block.args) - len(flat)]:
            value.name_hint = argument.name_hint
    lanes.state.bind_hidden(op, flat)
    return block


def _check(name: str, values: Sequence[SSAValue], wanted: Sequence[Attribute], whose: str) -> None:
    """FragirError where a terminator passes on other types than are taken."""
    found = [value.type for value in values]
    if found != list(wanted):
        texts = (", ".join(map(str, types)) or "nothing" for types in (found, wanted))
        given, taken = texts
        raise FragirError(f"{name} passes on {given}, but {whose} {taken}")
