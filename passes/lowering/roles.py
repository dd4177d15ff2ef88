"""Roles of warps at lane level.

Their turns at what they share, and how many registers each gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, Region

from fragir.dialects import frag, ptx
from fragir.dialects.frag.kernels import BLOCKS_PER_SM, role_of
from fragir.dialects.frag.rings import roles_of_turn, turns_of
from fragir.dialects.frag.roles import GROUP, REGISTERS, UNIT, Role
from fragir.errors import FragirError
from fragir.isa.versions import has
from fragir.passes.lowering import ring_use
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.ring_use import SUBJECT
from fragir.passes.lowering.state import LoweringState
from fragir.passes.lowering.team import BARRIERS, BarrierNumbers, Team

# -- turns -----------------------------------------------------------------------------------------
# Turns of roles: a named barrier for each role that takes them.
#
# A role waits at its own barrier, where the role before it arrives without waiting when it passes
# its turn on; both are counted (PTX ISA 9.2, section 9.7.13.1). So that the first role's first turn
# comes too, the last role arrives there when it begins.

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
        found = _role_turns(lanes.state).of[role, turn]
        if found.is_last:
            if SUBJECT in lanes.state.of_subject:
                ring_use.begin(lanes, turn)
            _arrive(lanes, found.following)


def take_turn(lanes: Lanes, op: frag.TakeTurnOp) -> None:
    """Waits at the role's barrier."""
    state, found = lanes.state, _of(lanes, op)
    barrier = found.own
    state.ar.insert(ptx.NamedBarrierOp(state.ar.value(barrier.number), barrier.threads))
    if SUBJECT in state.of_subject:
        ring_use.take(lanes, op.turn.data, found.place)


def pass_turn(lanes: Lanes, op: frag.PassTurnOp) -> None:
    """Arrives at the next role's barrier."""
    found = _of(lanes, op)
    if SUBJECT in lanes.state.of_subject:
        ring_use.hand_on(lanes, op.turn.data, found.following_place)
    _arrive(lanes, found.following)


def _arrive(lanes: Lanes, barrier: TurnBarrier) -> None:
    lanes.state.ar.insert(ptx.InstructionOp(f"bar.arrive {barrier.number}, {barrier.threads}"))


def _of(lanes: Lanes, op: frag.TakeTurnOp | frag.PassTurnOp) -> RoleTurn:
    role = role_of(op)
    assert role is not None
    return _role_turns(lanes.state).of[role, op.turn.data]


def _role_turns(state: LoweringState) -> RoleTurns:
    found = state.of_subject[TURNS]
    assert isinstance(found, RoleTurns)
    return found


# -- role registers --------------------------------------------------------------------------------
# How many registers a thread of each role gets (setmaxnreg).
#
# ptxas compiles a kernel that a multiprocessor runs one block of (`.minnctapersm 1`) for as many
# registers a thread as its 65,536 give to each of the block's; setmaxnreg moves them between
# warpgroups. In all they stay within what the block was launched with, or who wants more waits for
# ever (PTX ISA 9.2, section 9.7.19.5).

RESIDENT = "ptx.minnctapersm"
"""The attribute of a function of lanes: blocks that a multiprocessor is to hold at least."""
MOVE = "setmaxnreg.{}.sync.aligned.u32"
WITHOUT_TILES = 40
"""For index arithmetic and copies: what CUTLASS's loading warps have beside two warpgroups."""
MOST = 240
"""ptxas compiles no kernel that has setmaxnreg for more."""


def at_launch(threads: int) -> int:
    """Registers a thread has at first, where a block has a multiprocessor for itself."""
    return min(MOST, REGISTERS // threads // UNIT * UNIT)


def planned_registers(op: frag.RolesOp, target: str) -> list[int] | None:
    """The registers of a thread of each role; None where they stay as they are.

    A role that does not say how many gets 40 if it has no tiles; the others share what is left.
    If none says, they are moved where that gives those that have tiles more.
    """
    roles, extents = op.roles(), op.extents()
    if not has(MOVE.format("dec"), target) or op.packed is not None:
        return None
    threads = sum(extents)
    if not op.moves_registers:
        idle = [not has_tiles(role) for role in roles]
        whole = all(extent % GROUP == 0 for extent in extents)
        if not whole or all(idle) or not any(idle) or at_launch(threads) == MOST:
            return None
    return shared_out(roles, extents)


def check_shared_out(operations: Iterable[Operation], target: str) -> None:
    """FragirError where roles share out what a multiprocessor has: it holds one such block."""
    if any(isinstance(op, frag.RolesOp) and planned_registers(op, target) for op in operations):
        raise FragirError(
            "roles with registers of their own share out those of a whole multiprocessor, which "
            "holds one block then",
            hint=f"leave {BLOCKS_PER_SM} out",
        )


def shared_out(roles: Sequence[Role], extents: Sequence[int]) -> list[int]:
    """What the roles ask for; for the others what is left of the registers at the launch.

    The verifier sees to it that they get 24 at least.
    """
    threads = sum(extents)
    asked = [role.registers or 0 for role in roles]
    left = REGISTERS // threads // UNIT * UNIT * threads - _total(asked, extents)
    found = asked
    for which in (False, True):
        rest = [n for n, number in enumerate(found) if not number]
        taken = [n for n in rest if which or not has_tiles(roles[n])]
        if taken:
            each = left // sum(extents[n] for n in rest) // UNIT * UNIT
            each = min(each, MOST if which else WITHOUT_TILES)
            found = [each if n in taken else number for n, number in enumerate(found)]
            left -= each * sum(extents[n] for n in taken)
    return found


def _total(numbers: Sequence[int], extents: Sequence[int]) -> int:
    return sum(number * extent for number, extent in zip(numbers, extents, strict=True))


def has_tiles(role: Role) -> bool:
    """Whether a role holds tiles in registers."""
    return any(
        frag.held_tile(value.type) is not None
        for outer in role.body.block.ops
        for op in outer.walk()
        for value in (*op.operands, *op.results)
    )
