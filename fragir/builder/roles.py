"""Roles of warps in Python: the methods `role` and `turn` of a kernel."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, Region
from xdsl.traits import is_side_effect_free

from fragir.builder.checks import pair, whole, word
from fragir.builder.places import fail, place
from fragir.builder.tiles import TileOperations
from fragir.builder.trace import Trace
from fragir.dialects import frag

if TYPE_CHECKING:
    from fragir.dialects.frag.roles import Role

EXACTLY_ONE = 'write k.role("load", warps=(1, 1)), or warpgroups=(2, 1)'


class RoleBlock:
    """The `with` of one role; see `Kernel.role`."""

    def __init__(self, trace: Trace, role: Role):
        self._trace, self._role = trace, role
        self._location = place()

    def __enter__(self) -> None:
        if len(self._trace.scopes) != 1:
            kind = self._trace.scopes[-1].kind if self._trace.scopes else "kernel"
            fail(f"a role inside of a {kind}", "roles stand side by side in the kernel's `with`")
        self._trace.open("role", self._role.body.block)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._trace.close()
        if kind is not None:
            return
        roles, location = [self._role], self._location
        before = next((op for op in self._trace.block.ops if isinstance(op, frag.RolesOp)), None)
        if before is not None:
            _check_between(before)
            location = before.location
            roles = [*(role._replace(body=_taken(role.body)) for role in before.roles()), *roles]
            before.detach()
        self._trace.insert(frag.RolesOp(roles), location=location)


def _taken(region: Region) -> Region:
    """A region with the block of another one."""
    return Region(region.detach_block(0))


def _check_between(roles: Operation) -> None:
    """What stands between two roles is computed before them, so it may do nothing but compute."""
    op = roles.next_op
    while op is not None:
        if not is_side_effect_free(op):
            fail(f"{op.name} between two roles", "write it before the first one")
        op = op.next_op


class RoleOperations(TileOperations):
    """Warps that do different things."""

    def role(
        self,
        name: str,
        *,
        warps: tuple[int, int] | None = None,
        warpgroups: tuple[int, int] | None = None,
        registers: int | None = None,
    ) -> RoleBlock:
        """What some warps of a block do while those of other roles do something else.

            with k.role("load", warps=(1, 1), registers=24):
                ...
            with k.role("multiply", warpgroups=(2, 1), registers=240):
                ...

        The roles of a kernel run side by side, one after the other in the text. They meet in rings
        (`k.ring`); a tile belongs to the role that made it. `registers` a thread are moved between
        warpgroups where the machine can do that.
        """
        shape, groups = pair(warps, "warps"), pair(warpgroups, "warpgroups")
        if (shape is None) == (groups is None):
            fail("a role has either warps or warpgroups", EXACTLY_ONE)
        number = None if registers is None else whole(registers, "registers", 1)
        body = Region(Block())
        from fragir.dialects.frag.roles import Role  # few kernels have them

        return RoleBlock(self.trace, Role(word(name, "name"), body, shape, groups, number))

    @contextmanager
    def turn(self, name: str) -> Generator[None]:
        """`with k.turn("products"):` in loops of several roles: one after the other, round and
        round, each waits until the one before it has done its part."""
        self.trace.insert(frag.TakeTurnOp(word(name, "name")))
        yield
        self.trace.insert(frag.PassTurnOp(name))
