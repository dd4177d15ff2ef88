"""A kernel as roles: what fills rings, and all the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from fragir.diagnostics import fail
from fragir.dialects import frag
from fragir.dialects.frag.roles import Role
from fragir.dialects.narrow import is_memref
from fragir.passes.specializing.shares import check_shares, deal_out
from fragir.passes.specializing.slices import Slice

_STRUCTURE = ("scf.for", "scf.if", "frag.for_tiles")
_FOR_ALL = ("memref.alloc", "frag.ring")
"""Shared memory, which all roles see; other operations are for all if they are pure and scalar."""


def divide(function: func.FuncOp, consumers: int = 1) -> bool:
    """Puts a function's operations into roles, one that fetches and `consumers` that do all the
    rest by turns; whether it has a ring to divide it by.
    """
    filling = _filling(function)
    if not filling:
        return False
    _check(function, filling)
    for_all, within = _divided(function)
    feeding = Slice(filling, within)
    for op in feeding.operations:
        if any(frag.held_tile(value.type) for value in feeding.values_of(op)):
            fail(
                op,
                "what this copies, or where, depends on tiles, which warps that only fetch have "
                "not: compute it from scalars and loops' counters",
            )
    others = list(_others(within, filling))
    if consumers > 1:
        check_shares(function, others)
    rest = Slice(others, within)
    after = InsertPoint.before(within[0])
    for op in for_all:
        op.detach()
        Rewriter.insert_op(op, after)
    load = Role("load", _region(feeding, within), warps=(_loaders(filling), 1))
    multiply = _threads(function, Role("multiply", Region(), warps=(1, 1)))
    bodies = [_region(rest, within) for _ in range(consumers)]
    names = ["multiply"] if consumers == 1 else [f"multiply {at}" for at in range(consumers)]
    if consumers > 1:
        deal_out(bodies)
    multiplying = [
        multiply._replace(name=name, body=body) for name, body in zip(names, bodies, strict=True)
    ]
    roles = frag.RolesOp([load, *multiplying])
    Rewriter.insert_op(roles, after)
    for op in reversed(within):
        Rewriter.erase_op(op, safe_erase=False)
    return True


def _filling(function: func.FuncOp) -> list[Operation]:
    """What fills slots: acquire, publish, and what writes into the slots' memory between."""
    found: list[Operation] = []
    for op in function.walk():
        if not isinstance(op, frag.AcquireOp):
            continue
        found.append(op)
        memories: list[SSAValue] = [op.slot]
        for memory in memories:
            for use in memory.uses:
                user = use.operation
                if isinstance(user, frag.PublishOp):
                    found.append(user)
                elif user.results and is_memref(user.results[0].type):
                    memories.append(user.results[0])  # frag.part, frag.view
                else:
                    found.append(user)
    return found


def _loaders(filling: Sequence[Operation]) -> int:
    """Warps that fetch: one for the tensor memory accelerator, four for copies by threads."""
    copies = [op for op in filling if isinstance(op, frag.CopyOp)]
    return 1 if all(op.tma is not None for op in copies) else 4


def _check(function: func.FuncOp, filling: Sequence[Operation]) -> None:
    for op in function.walk():
        if op.name == "frag.roles":
            fail(op, "the kernel has roles already")
    for op in filling:
        parent = op.parent_op()
        while parent is not None and parent is not function:
            if parent.name not in _STRUCTURE:
                fail(op, f"a slot that is filled within {parent.name} has no role of its own yet")
            parent = parent.parent_op()


def _divided(function: func.FuncOp) -> tuple[list[Operation], list[Operation]]:
    """What all threads compute at the top of a function, and what belongs to roles."""
    for_all: list[Operation] = []
    within: list[Operation] = []
    for op in function.body.block.ops:
        if op is function.body.block.last_op:
            break
        inside = any(
            isinstance(value.owner, Operation) and value.owner in within for value in op.operands
        )
        (within if inside or not _is_for_all(op) else for_all).append(op)
    return for_all, within


def _is_for_all(op: Operation) -> bool:
    if op.name in _FOR_ALL:
        return True
    values = (*op.operands, *op.results)
    scalar = not any(
        frag.held_tile(value.type) or isinstance(value.type, frag.SlotType) for value in values
    )
    return scalar and not op.regions and is_side_effect_free(op)


def _others(within: Iterable[Operation], filling: Sequence[Operation]) -> Iterator[Operation]:
    """Operations with effects that fill no slots, those in loops and branches one by one."""
    for op in within:
        if op.name in _STRUCTURE:
            for region in op.regions:
                for block in region.blocks:
                    inner = [x for x in block.ops if x.name != "scf.yield"]
                    yield from _others(inner, filling)
        elif op not in filling and not is_side_effect_free(op):
            yield op


def _region(part: Slice, within: Sequence[Operation]) -> Region:
    return Region(Block(part.copy(within, {})))


def _threads(function: func.FuncOp, role: Role) -> Role:
    """A role with the warps that the function had."""
    from fragir.passes.scopes import warps_of

    warps, groups = (
        function.attributes.get("frag.warps"),
        function.attributes.get("frag.warpgroups"),
    )
    if groups is not None:
        role = role._replace(warps=None, warpgroups=warps_of(function, "frag.warpgroups"))
    elif warps is not None:
        role = role._replace(warps=warps_of(function, "frag.warps"))
    for name in ("frag.warps", "frag.warpgroups"):
        function.attributes.pop(name, None)
    return role
