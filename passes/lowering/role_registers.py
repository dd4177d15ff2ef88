"""How many registers a thread of each role gets (setmaxnreg).

ptxas compiles a kernel that a multiprocessor runs one block of (`.minnctapersm 1`) for as many
registers a thread as its 65,536 give to each of the block's; setmaxnreg moves them between
warpgroups. In all they stay within what the block was launched with, or who wants more waits for
ever (PTX ISA 9.2, section 9.7.19.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation

from fragir.dialects import frag
from fragir.dialects.frag.kernels import BLOCKS_PER_SM
from fragir.dialects.frag.roles import GROUP, REGISTERS, UNIT, Role
from fragir.errors import FragirError
from fragir.isa.versions import has

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
    if not has(MOVE.format("dec"), target):
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
