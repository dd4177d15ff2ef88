"""Branches and loops of lane-level code, in which each thread goes its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.control import MOST_TURNS
from fragir.reference.lanes.threads import BlockThreads


def branch(threads: BlockThreads, op: Any) -> None:
    condition = threads.require_certain(op.cond, "the condition of scf.if").astype(bool)
    outside = threads.active
    found = [threads.anything(result.type) for result in op.results]
    for holds, region in ((condition, op.true_region), (~condition, op.false_region)):
        threads.active = outside & holds
        if region.blocks and threads.active.any():
            found = _update_active(threads, threads.run_block(region.block), found)
    threads.active = outside
    _bind(threads, op.results, found)


def loop(threads: BlockThreads, op: Any) -> None:
    lower, upper, by = (
        threads.require_certain(v, "a bound of scf.for") for v in (op.lb, op.ub, op.step)
    )
    outside, counter = threads.active, np.array(lower)
    carried = [threads[value] for value in op.iter_args]
    block = op.body.block
    while True:
        threads.active = outside & (counter < upper)
        if not threads.active.any():
            break
        threads[block.args[0]] = exactly(counter)
        _bind(threads, block.args[1:], carried)
        carried = _update_active(threads, threads.run_block(block), carried)
        counter = counter + np.where(threads.active, by, 0)
    threads.active = outside
    _bind(threads, op.results, carried)


def while_(threads: BlockThreads, op: Any) -> None:
    before, after = op.before_region.block, op.after_region.block
    outside = threads.active
    carried = [threads[value] for value in op.arguments]
    passed = [threads.anything(result.type) for result in op.results]
    for _ in range(MOST_TURNS):
        _bind(threads, before.args, carried)
        values = threads.run_block(before)
        held = threads.require_certain(before.last_op.condition, "the condition of scf.while")
        passed = _update_active(threads, values[1:], passed)
        threads.active = threads.active & held.astype(bool)
        if not threads.active.any():
            threads.active = outside
            _bind(threads, op.results, passed)
            return
        _bind(threads, after.args, passed)
        carried = _update_active(threads, threads.run_block(after), carried)
    raise FragirError(
        f"scf.while has gone on for {MOST_TURNS} turns", hint="does its condition ever fail?"
    )


def _update_active(
    threads: BlockThreads, new: Sequence[Bounded], old: Sequence[Bounded]
) -> list[Bounded]:
    """New values in the threads that execute."""
    pairs = zip(new, old, strict=True)
    return [threads.select(threads.active, x, y) for x, y in pairs]


def _bind(threads: BlockThreads, values: Sequence[SSAValue], found: Sequence[Bounded]) -> None:
    for value, x in zip(values, found, strict=True):
        threads[value] = x
