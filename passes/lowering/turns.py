"""Turns of roles: a named barrier for each role that takes them.

A role waits at its own barrier, where the role before it arrives without waiting when it passes its
turn on; both are counted (PTX ISA 9.2, section 9.7.13.1). So that the first role's first turn comes
too, the last role arrives there when it begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Region

from fragir.dialects import frag, ptx
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.frag.rings import roles_of_turn, turns_of
from fragir.errors import FragirError
from fragir.passes.lowering import ring_turns
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.ring_turns import SUBJECT
from fragir.passes.lowering.state import LoweringState
from fragir.passes.lowering.team import BARRIERS, BarrierNumbers, Team

TURNS = "turns"
"""What `LoweringState.of_subject` knows them by."""


class TurnBarrier(NamedTuple):
    """Where a role waits for its turn."""

    number: int
    threads: int
    """Those that wait, and those of the role before, which arrive."""


class RoleTurn(NamedTuple):
    """The turns of one role at one thing."""

    own: TurnBarrier
    following: TurnBarrier
    """That of the role to which the turn is passed."""
    place: int
    """Which of the roles that take these turns it is, counted from 0."""
    following_place: int
    is_last: bool


class RoleTurns(NamedTuple):
    """Those of all roles of a function."""

    of: Mapping[tuple[Region, str], RoleTurn]
    """By the role and the turn's name."""


def role_turns(op: frag.RolesOp, teams: Sequence[Team], numbers: BarrierNumbers) -> RoleTurns:
    """The turns of all roles. FragirError where the block has too few barriers."""
    found: dict[tuple[Region, str], RoleTurn] = {}
    for turn in dict.fromkeys(turn for body in op.bodies for turn in turns_of(body)):
        order = roles_of_turn(op.bodies[0], turn)
        first = numbers.take(len(order))
        if first is None:
            raise FragirError(
                f"roles and turns of a block take more than its {BARRIERS} barriers",
                hint="let fewer roles take turns",
            )
        barriers = [
            TurnBarrier(first + at, teams[role].threads + teams[order[at - 1]].threads)
            for at, role in enumerate(order)
        ]
        for at, role in enumerate(order):
            after = (at + 1) % len(order)
            is_last = at == len(order) - 1
            found[op.bodies[role], turn] = RoleTurn(
                barriers[at], barriers[after], at, after, is_last
            )
    return RoleTurns(found)


def open_turns(lanes: Lanes, role: Region) -> None:
    """The last role lets the first have its first turn."""
    for turn in turns_of(role):
        found = _known(lanes.state).of[role, turn]
        if found.is_last:
            if SUBJECT in lanes.state.of_subject:
                ring_turns.begin(lanes, turn)
            _arrive(lanes, found.following)


def take_turn(lanes: Lanes, op: frag.TakeTurnOp) -> None:
    """Waits at the role's barrier."""
    state, found = lanes.state, _of(lanes, op)
    barrier = found.own
    state.ar.insert(ptx.NamedBarrierOp(state.ar.value(barrier.number), barrier.threads))
    if SUBJECT in state.of_subject:
        ring_turns.take(lanes, op.turn.data, found.place)


def pass_turn(lanes: Lanes, op: frag.PassTurnOp) -> None:
    """Arrives at the next role's barrier."""
    found = _of(lanes, op)
    if SUBJECT in lanes.state.of_subject:
        ring_turns.hand_on(lanes, op.turn.data, found.following_place)
    _arrive(lanes, found.following)


def _arrive(lanes: Lanes, barrier: TurnBarrier) -> None:
    lanes.state.ar.insert(ptx.InstructionOp(f"bar.arrive {barrier.number}, {barrier.threads}"))


def _of(lanes: Lanes, op: frag.TakeTurnOp | frag.PassTurnOp) -> RoleTurn:
    role = role_of(op)
    assert role is not None
    return _known(lanes.state).of[role, op.turn.data]


def _known(state: LoweringState) -> RoleTurns:
    found = state.of_subject[TURNS]
    assert isinstance(found, RoleTurns)
    return found
