"""Which threads run which operations: all of a block, or those of one of its roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects import func
from xdsl.ir import Attribute, Operation

from fragir.dialects.frag.kernels import role_of
from fragir.dialects.interfaces import Threads, WarpgroupCollective
from fragir.dialects.shorthands import integers, is_array, operations_in
from fragir.errors import FragirError
from fragir.mlir.diagnostics import fail
from fragir.ptx.machines import THREADS

if TYPE_CHECKING:
    from fragir.dialects import frag
    from fragir.dialects.frag.roles import Role

WARPS, WARPGROUPS = "frag.warps", "frag.warpgroups"
GROUP = 4
"""Warps of a warpgroup."""


class WarpScope(NamedTuple):
    """Operations that the same threads run."""

    operations: tuple[Operation, ...]
    """In order, those inside of others too."""
    threads: Threads
    """How tiles lie over the warps."""
    size: int
    """How many threads they are."""


def warps_of(function: func.FuncOp, name: str) -> tuple[int, int]:
    """The `frag.warps` or `frag.warpgroups` of a function; (1, 1) without one."""
    attribute: Attribute | None = function.attributes.get(name)
    if attribute is None:
        return 1, 1
    pair = integers(attribute) if is_array(attribute) else []
    if len(pair) == 2:
        m, n = pair
        if m > 0 and n > 0:
            return m, n
    raise FragirError(
        f"{name} = {attribute} is no pair of positive numbers",
        hint=f"write {name} = array<i64: 2, 2>",
    )


def threads_of(function: func.FuncOp) -> int:
    """Threads of a block: 32 for each of `frag.warps`, 128 for each of `frag.warpgroups`, or those
    of all roles."""
    roles = roles_of(function)
    if roles is not None:
        return roles.threads()
    warps, groups = warps_of(function, WARPS), warps_of(function, WARPGROUPS)
    collective = any(op.has_trait(WarpgroupCollective) for op in operations_in(function))
    threads = 32 * warps[0] * warps[1]
    if collective or WARPGROUPS in function.attributes:
        threads = max(threads, 128 * groups[0] * groups[1])
    if threads > THREADS:
        raise FragirError(f"a block of {threads} threads; the machine takes {THREADS} at most")
    return threads


def threads_at(op: Operation) -> int:
    """The threads that run an operation: those of its role, or of the block."""
    region = role_of(op)
    if region is not None:
        from fragir.dialects import frag

        roles = region.parent
        assert isinstance(roles, frag.RolesOp)
        return next(role.threads for role in roles.roles() if role.body is region)
    function = op
    while not isinstance(function, func.FuncOp):
        parent = function.parent_op()
        assert parent is not None
        function = parent
    return threads_of(function)


def roles_of(function: func.FuncOp) -> frag.RolesOp | None:
    """The roles of a function, if it has some."""
    for block in function.body.blocks:
        for op in block.ops:
            if op.name == "frag.roles":
                from fragir.dialects import frag

                assert isinstance(op, frag.RolesOp)
                return op
    return None


def scopes(function: func.FuncOp, target: str) -> list[WarpScope]:
    """The operations outside of roles, then those of each role."""
    roles, count = roles_of(function), threads_of(function)
    if roles is None:
        threads = Threads(target, warps_of(function, WARPS), warps_of(function, WARPGROUPS))
        return [WarpScope(tuple(operations_in(function)), threads, count)]
    for name in (WARPS, WARPGROUPS):
        if name in function.attributes:
            raise FragirError(
                f"a function with frag.roles has no {name}",
                hint="each role says its own: warps [2, 2], or warpgroups [2, 1]",
            )
    outside = Threads(target, (count // 32, 1), (max(1, count // 128), 1))
    found = [WarpScope(tuple(_outside(function, roles)), outside, count)]
    for role in roles.roles():
        inside = [op for outer in role.body.block.ops for op in operations_in(outer)]
        check_groups(role, inside)
        found.append(WarpScope(tuple(inside), _threads(role, target), role.threads))
    return found


def _outside(function: func.FuncOp, roles: Operation) -> Iterator[Operation]:
    yield function
    for block in function.body.blocks:
        for op in block.ops:
            if op is not roles:
                yield from operations_in(op)


def _threads(role: Role, target: str) -> Threads:
    if role.warpgroups is None:
        assert role.warps is not None
        return Threads(target, role.warps, (1, 1))
    m, n = role.warpgroups
    return Threads(target, (GROUP * m, n), role.warpgroups)


def check_groups(role: Role, operations: list[Operation]) -> None:
    """Ends the pass where a role multiplies with wgmma and is not said to have warpgroups."""
    if role.warpgroups is not None:
        return
    for op in operations:
        if op.has_trait(WarpgroupCollective):
            fail(
                op,
                f"{op.name} takes whole warpgroups; write warpgroups [1, 1] at the role "
                f"{role.name!r}",
            )
