"""Loops and branches, which stay structured: tiles become the registers that they carry."""

from __future__ import annotations

from math import gcd

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from fragir.dialects import ptx
from fragir.dialects.frag.kernels import RARE
from fragir.passes.lowering.arithmetic import INDEX
from fragir.passes.lowering.lane_builder import Lanes


def loop(lanes: Lanes, op: scf.ForOp) -> None:
    state, ar = lanes.state, lanes.state.ar
    starts = [flat for value in op.iter_args for flat in state.flat(value)]
    starts += state.flat_hidden(op)
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
        from fragir.passes.lowering.in_flight import wait_for_products  # few programs need it

        wait_for_products(lanes, op)
    values = [flat for value in op.operands for flat in lanes.state.flat(value)]
    values += lanes.state.flat_hidden(op.parent_op())
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
                state.ar.insert(scf.YieldOp(*state.flat_hidden(op)))
        regions.append(Region(block))
    yielded = regions[0].block.last_op
    types = [] if yielded is None else [v.type for v in yielded.operands]
    lowered = state.ar.insert(scf.IfOp(condition, types, regions[0], regions[1]))
    results: list[SSAValue] = list(lowered.results)
    for result in op.results:
        state.bind_flat(result, results)
    state.bind_hidden(op, results)
