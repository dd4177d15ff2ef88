"""Roles: each warp of a block runs what its role does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, Region

from fragir.dialects import frag, ptx
from fragir.dialects.frag.roles import REGISTERS, UNIT, Role
from fragir.dialects.interfaces import LOWERINGS
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.state import LoweringState
from fragir.passes.lowering.team import role_team

WARP = 32


class _Part(NamedTuple):
    """A role with its place in the block."""

    role: Role
    first: int
    """The first of its threads."""
    threads: int
    """Its threads, those included that only fill up a warpgroup."""


@LOWERINGS.attach(frag.RolesOp)
def roles(lanes: Lanes, op: frag.RolesOp) -> None:
    """Branches on the number of the warp, which all of its lanes know to be the same."""
    state, extents = lanes.state, op.extents()
    firsts = [sum(extents[:at]) for at in range(len(extents))]
    parts = [
        _Part(role, first, threads)
        for role, first, threads in zip(op.roles(), firsts, extents, strict=True)
    ]
    _branch(lanes, parts, _warp(state), op.moves_registers)


def _warp(state: LoweringState) -> ptx.ShuffleOp:
    """The number of the warp in a register that is the same in all lanes."""
    ar = state.ar
    warp = ar.value(ar.div(state.hardware.special("tid.x", "tid"), WARP))
    return ar.insert(ptx.ShuffleOp(warp, ar.value(0)), "warp")


def _branch(lanes: Lanes, parts: Sequence[_Part], warp: ptx.ShuffleOp, moves: bool) -> None:
    """The first of some roles, or the rest of them."""
    part, *rest = parts
    if not rest:
        _run(lanes, part, warp, moves)
        return
    ar = lanes.state.ar
    here = ar.compare("ult", warp.result, rest[0].first // WARP)
    assert not isinstance(here, bool)
    then, other = Block(), Block()
    with ar.inside(then):
        _run(lanes, part, warp, moves)
        ar.insert(scf.YieldOp())
    with ar.inside(other):
        _branch(lanes, rest, warp, moves)
        ar.insert(scf.YieldOp())
    ar.insert(scf.IfOp(here, [], Region(then), Region(other)))


def _run(lanes: Lanes, part: _Part, warp: ptx.ShuffleOp, moves: bool) -> None:
    """What the warps of a role do; those that only fill up a warpgroup do nothing."""
    state, ar = lanes.state, lanes.state.ar
    if moves and part.role.registers is not None:
        _move_registers(state, part.role.registers)
    team = role_team(ar, part.role.threads, part.first, state.barrier_numbers)
    body = part.role.body.block
    if part.role.threads == part.threads:
        with state.in_role(team):
            state.lower_block(body)
        return
    last = (part.first + part.role.threads) // WARP
    held = ar.compare("ult", warp.result, last)
    assert not isinstance(held, bool)
    block = Block()
    with ar.inside(block), state.in_role(team):
        state.lower_block(body)
        ar.insert(scf.YieldOp())
    ar.insert(scf.IfOp(held, [], Region(block)))


def _move_registers(state: LoweringState, registers: int) -> None:
    """setmaxnreg, by which warpgroups give registers back or take what others gave.

    PTX ISA 9.2, section 9.7.19.5: `dec` where the kernel has more at its launch.
    """
    at_launch = registers_at_launch(state.block_threads)
    if registers == at_launch:
        return
    way = "dec" if registers < at_launch else "inc"
    state.ar.insert(ptx.InstructionOp(f"setmaxnreg.{way}.sync.aligned.u32 {registers}"))


def registers_at_launch(threads: int) -> int:
    """Registers a thread of a block that has a multiprocessor for itself: ptxas gives no more."""
    return min(255, REGISTERS // threads // UNIT * UNIT)
