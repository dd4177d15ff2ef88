"""Who runs what: roles of warps, and what the blocks of a grid know of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i1, i32, i64
from xdsl.ir import Block, Region

from fragir.dialects import frag, ptx
from fragir.dialects.frag.roles import Role
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.layout_arithmetic import NOWHERE
from fragir.passes.lowering.memory import MemoryPlace, address
from fragir.passes.lowering.operations.rings import rings
from fragir.passes.lowering.pairs import LEADER, multiplies_for_pair
from fragir.passes.lowering.roles import (
    MOVE,
    RESIDENT,
    TURNS,
    at_launch,
    open_turns,
    planned_registers,
    role_turns,
)
from fragir.passes.lowering.roles import pass_turn as pass_turn
from fragir.passes.lowering.roles import take_turn as take_turn
from fragir.passes.lowering.state import LoweringState
from fragir.passes.lowering.team import Team, role_team
from fragir.passes.lowering.tensor_copies import statement

WARP = 32


class _Part(NamedTuple):
    """A role with its place in the block."""

    role: Role
    team: Team
    threads: int
    """Its threads, those included that only fill up a warpgroup."""
    registers: int | None
    """What each gets; None where they stay as they are."""


def roles(lanes: Lanes, op: frag.RolesOp) -> None:
    """Branches on the number of the warp."""
    state, extents = lanes.state, op.extents()
    registers = planned_registers(op, state.target)
    if registers is not None or not op.moves_registers:
        # or ptxas ignores setmaxnreg, and rather spills than to have fewer blocks side by side
        state.attributes[RESIDENT] = IntegerAttr(1, i64)
    elif op.moves_registers:
        state.remarks.append(
            f"{state.target} cannot move registers between warps, so that roles have as many as "
            "all threads (setmaxnreg: sm_90a and the machines of the a and f kinds since)"
        )
    parts: list[_Part] = []
    for at, (role, threads) in enumerate(zip(op.roles(), extents, strict=True)):
        # all teams before any body: conversions may take the barriers that are left
        team = role_team(state.ar, role.threads, sum(extents[:at]), state.barrier_numbers)
        parts.append(_Part(role, team, threads, registers[at] if registers else None))
    state.of_subject[TURNS] = role_turns(op, [part.team for part in parts], state.barrier_numbers)
    _branch(lanes, parts, _warp(state))


def _warp(state: LoweringState) -> ptx.ShuffleOp:
    """The number of the warp in a register that is the same in all lanes."""
    ar = state.ar
    warp = ar.value(ar.div(state.hardware.special("tid.x", "tid"), WARP))
    return ar.insert(ptx.ShuffleOp(warp, ar.value(0)), "warp")


def _branch(lanes: Lanes, parts: Sequence[_Part], warp: ptx.ShuffleOp) -> None:
    """The first of some roles, or the rest of them."""
    part, *rest = parts
    if not rest:
        _run(lanes, part, warp)
        return
    ar = lanes.state.ar
    here = ar.compare("ult", warp.result, rest[0].team.first // WARP)
    assert not isinstance(here, bool)
    then, other = Block(), Block()
    with ar.inside(then):
        _run(lanes, part, warp)
        ar.insert(scf.YieldOp())
    with ar.inside(other):
        _branch(lanes, rest, warp)
        ar.insert(scf.YieldOp())
    ar.insert(scf.IfOp(here, [], Region(then), Region(other)))


def _run(lanes: Lanes, part: _Part, warp: ptx.ShuffleOp) -> None:
    """What the warps of a role do; those that only fill up a warpgroup do nothing."""
    state, ar, team = lanes.state, lanes.state.ar, part.team
    if part.registers is not None:
        _move_registers(state, part.registers)
    if team.threads == part.threads:
        _lower(lanes, part, warp)
        return
    held = ar.compare("ult", warp.result, (team.first + team.threads) // WARP)
    assert not isinstance(held, bool)
    block = Block()
    with ar.inside(block):
        _lower(lanes, part, warp)
        ar.insert(scf.YieldOp())
    ar.insert(scf.IfOp(held, [], Region(block)))


def _lower(lanes: Lanes, part: _Part, warp: ptx.ShuffleOp) -> None:
    """The operations of a role, for its own threads.

    They have the number of their warp from the register that is alike in all lanes: ptxas then
    computes descriptors once for a warp.
    """
    own = lanes.state.ar.add(warp.result, -part.team.first // WARP, "warp")
    with lanes.state.in_role(part.team, own):
        open_turns(lanes, part.role.body)
        body = part.role.body
        if multiplies_for_pair(body, rings(lanes).of_slot):
            _by_leader(lanes, body)
            return
        lanes.state.lower_block(body.block)
        rings(lanes).end_of_role(body)


def _by_leader(lanes: Lanes, body: Region) -> None:
    """A role that only the leader of a pair of blocks runs."""
    ar = lanes.state.ar
    leads = ar.compare("eq", lanes.state.hardware.special("cluster_ctarank", "rank"), LEADER)
    assert not isinstance(leads, bool)
    block = Block()
    with ar.inside(block):
        lanes.state.lower_block(body.block)
        ar.insert(scf.YieldOp())
    ar.insert(scf.IfOp(leads, [], Region(block)))


def _move_registers(state: LoweringState, registers: int) -> None:
    """The warpgroup gives registers back, or takes what others gave."""
    now = at_launch(state.block_threads)
    if registers != now:
        way = "dec" if registers < now else "inc"
        state.ar.insert(ptx.InstructionOp(f"{MOVE.format(way)} {registers}"))


# -- grids -----------------------------------------------------------------------------------------
# What blocks of a grid know of it and of each other: its size, places in clusters, who is last.

# --- the grid -------------------------------------------------------------------------------------


def grid_size(lanes: Lanes, op: frag.GridSizeOp) -> None:
    state = lanes.state
    register = f"nctaid.{op.dimension.data.value}"
    state.values[op.result] = state.hardware.special(register, op.result.name_hint or "blocks")


# --- clusters -------------------------------------------------------------------------------------


def rank(lanes: Lanes, op: frag.ClusterRankOp) -> None:
    state = lanes.state
    alone = state.cluster == (1, 1, 1)
    state.values[op.result] = 0 if alone else state.hardware.special("cluster_ctarank", "rank")


# --- blocks that have come ------------------------------------------------------------------------


def arrive(lanes: Lanes, op: frag.ArriveOp) -> None:
    state, ar = lanes.state, lanes.state.ar
    state.wait_for_all()
    memory, at = lanes.memory(op.memory), state.indices(op.all_indices())
    place = MemoryPlace((NOWHERE,) * len(at), tuple(at))
    pointer, offset = address(ar, memory, place, (0,) * len(at))
    where = f"[$1+{offset}]" if offset else "[$1]"
    one = ar.predicate(ar.compare("eq", state.hardware.thread, 0))
    assert one is not None
    zero = ar.literal(IntegerAttr(0, i32))
    words = f"atom.acq_rel.gpu.global.add.u32 $0, {where}, 1"
    count = ptx.InstructionOp(words, (pointer,), (i32,), before=(zero,), predicate=one)
    (before,) = ar.insert(count).results
    others = ar.value(ar.sub(state.values[op.parts], 1))
    (last,) = statement(state, "setp.eq.u32 $0, $1, $2", (before, others), (i1,)).results
    (mine,) = statement(state, "and.pred $0, $1, $2", (last, one), (i1,)).results
    words = f"st.relaxed.gpu.global.u32 {where.replace('$1', '$0')}, 0"
    statement(state, words, (pointer,), predicate=mine)
    lanes.bind_scalar(op.is_last, state.team.any_of(mine))
