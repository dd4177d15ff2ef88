"""Loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Region, SSAValue

from fragir.dialects import ptx
from fragir.dialects.frag.kernels import RARE
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import INDEX
from fragir.passes.lowering.lane_builder import Lanes


def loop(lanes: Lanes, op: scf.ForOp) -> None:
    state, ar = lanes.state, lanes.state.ar
    starts = [flat for value in op.iter_args for flat in state.flatten(value)]
    starts += state.flatten_hidden(op)
    lower, upper, step = (state.values[v] for v in (op.lb, op.ub, op.step))
    body = Block(arg_types=[op.lb.type, *(value.type for value in starts)])
    old = op.body.block
    body.args[0].name_hint = old.args[0].name_hint
    state.values[old.args[0]] = body.args[0]
    if op.lb.type == INDEX:
        ar.assume_divisor(body.args[0], gcd(ar.divisor(lower), ar.divisor(step)))
    flat: list[SSAValue] = list(body.args[1:])
    for argument in old.args[1:]:
        before = len(flat)
        state.bind_flat(argument, flat)
        for value in body.args[len(body.args) - before : len(body.args) - len(flat)]:
            value.name_hint = argument.name_hint
    state.bind_hidden(op, flat)
    with ar.inside(body):
        state.lower_block(old)
    first, last, by = (ar.value(v) for v in (lower, upper, step))
    lowered = ar.insert(scf.ForOp(first, last, by, starts, body))
    if ptx.NO_UNROLL in op.attributes:
        lowered.attributes[ptx.NO_UNROLL] = op.attributes[ptx.NO_UNROLL]
    results: list[SSAValue] = list(lowered.results)
    for result in op.results:
        state.bind_flat(result, results)
    state.bind_hidden(op, results)


def yield_(lanes: Lanes, op: scf.YieldOp) -> None:
    if "products in flight" in lanes.state.of_subject:  # there is one under way, perhaps
        from fragir.passes.lowering.multiply import wait_for_products  # few programs need it

        wait_for_products(lanes, op)
    values = [flat for value in op.operands for flat in lanes.state.flatten(value)]
    values += lanes.state.flatten_hidden(op.parent_op())
    lanes.state.ar.insert(scf.YieldOp(*values))


def branch(lanes: Lanes, op: scf.IfOp) -> None:
    state = lanes.state
    condition = state.scalar(op.cond)
    regions: list[Region] = []
    hidden = {name: state.hidden[name] for name in state.hidden_in(op)}
    for region in op.regions:
        state.hidden.update(hidden)  # as they are ahead of the branch
        if not region.blocks and not hidden:
            regions.append(Region())
            continue
        block = Block()
        with state.ar.apart(block) if RARE in op.attributes else state.ar.branch(block):
            if region.blocks:
                state.lower_block(region.block)
            else:
                state.ar.insert(scf.YieldOp(*state.flatten_hidden(op)))
        regions.append(Region(block))
    yielded = regions[0].block.last_op
    types = [] if yielded is None else [v.type for v in yielded.operands]
    lowered = state.ar.insert(scf.IfOp(condition, types, regions[0], regions[1]))
    results: list[SSAValue] = list(lowered.results)
    for result in op.results:
        state.bind_flat(result, results)
    state.bind_hidden(op, results)


# --- loops while a condition holds ----------------------------------------------------------------


def while_(lanes: Lanes, op: scf.WhileOp) -> None:
    state = lanes.state
    old, body = op.before_region.block, op.after_region.block
    condition, again = old.last_op, body.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert again is not None
    _check("scf.yield", again.operands, old.arg_types, "the first block takes")
    _check("scf.condition", condition.args, body.arg_types, "the second block takes")
    _check("scf.condition", condition.args, op.result_types, "the loop gives")
    starts = [flat for value in op.arguments for flat in state.flatten(value)]
    starts += state.flatten_hidden(op)
    before = _block(lanes, op, old, starts)
    with state.ar.inside(before):
        state.lower_block(old)
        passed = [flat for value in condition.args for flat in state.flatten(value)]
        passed += state.flatten_hidden(op)
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
