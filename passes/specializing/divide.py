"""A kernel as roles: what fills rings, and all the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from fragir.dialects import frag
from fragir.dialects.frag.rings import PART
from fragir.dialects.frag.roles import Role
from fragir.dialects.shorthands import is_memref
from fragir.mlir.diagnostics import fail
from fragir.passes.lowering.multiply import slot_of

# -- shares ----------------------------------------------------------------------------------------
# Roles that do the same for different tiles, and take turns at what they read from rings.
#
# Each visits every n-th tile of a block. What fills the rings goes from tile to tile; so the roles
# await a ring's slots in turns, in the order of tiles. A turn at the products lasts until the last
# one is issued: then the next role's begin, while this one waits for its own, and stores them.

PRODUCTS = "products"
"""The first turn of a tile; others are numbered."""


class _Reading(NamedTuple):
    """Operations of a block, from one to another, that await slots of some rings."""

    first: int
    last: int
    rings: tuple[frag.RingOp, ...]


def check_shares(function: func.FuncOp, others: Iterable[Operation]) -> None:
    """Fails where what roles are to do by turns is not all done tile by tile."""
    for op in others:
        loop = _loop_of(op)
        if loop is None:
            fail(
                op,
                "several roles that multiply deal out tiles, and this is done once for all of "
                "them: write it into the loop frag.for_tiles",
            )
        if loop.persistent is None or loop.share is not None:
            fail(loop, "roles deal out the tiles of a loop that is persistent; write persistent")
        if loop.parent_op() is not function:
            fail(loop, "roles deal out the tiles of a loop at the top level of the function")


def _loop_of(op: Operation) -> frag.ForTilesOp | None:
    around = op.parent_op()
    while around is not None and not isinstance(around, frag.ForTilesOp):
        around = around.parent_op()
    return around


def deal_out(bodies: Sequence[Region]) -> None:
    """Gives each of some roles, which are alike, its share of tiles and its turns."""
    for number, body in enumerate(bodies):
        for loop in [op for op in body.block.ops if isinstance(op, frag.ForTilesOp)]:
            loop.share = DenseArrayBase.from_list(i64, [number, len(bodies)])
            _take_turns(loop)


def _take_turns(loop: frag.ForTilesOp) -> None:
    ops = list(loop.body.block.ops)
    for number, reading in enumerate(_readings(ops)):
        name = f"{PRODUCTS} {number}" if number else PRODUCTS
        for ring in reading.rings:
            ring.turns = StringAttr(name)
        take, give = frag.TakeTurnOp(name), frag.PassTurnOp(name)
        Rewriter.insert_op(take, InsertPoint.before(ops[reading.first]))
        Rewriter.insert_op(give, InsertPoint.after(ops[reading.last]))


def _readings(ops: Sequence[Operation]) -> list[_Reading]:
    """What is awaited where; what overlaps is one."""
    found: dict[frag.RingOp, list[int]] = {}
    for at, op in enumerate(ops):
        for inner in op.walk():
            if isinstance(inner, frag.AwaitOp) and isinstance(inner.source.owner, frag.RingOp):
                found.setdefault(inner.source.owner, []).append(at)
    merged: list[_Reading] = []
    for ring, places in found.items():  # in the order of their beginnings
        one = _Reading(places[0], places[-1], (ring,))
        while merged and one.first <= merged[-1].last:
            other = merged.pop()
            first, last = min(one.first, other.first), max(one.last, other.last)
            one = _Reading(first, last, (*other.rings, *one.rings))
        merged.append(one)
    return merged


# -- slices ----------------------------------------------------------------------------------------
# The part of a structured program that some of its operations need.


class Slice:
    """What `roots` need: the operations that compute their operands, and the loops and branches
    around both. Of what a loop carries, and what a branch yields, only that which is needed.

    Nothing is followed beyond `within`: what stands before it is there for all.
    """

    def __init__(self, roots: Iterable[Operation], within: Sequence[Operation]):
        self._within = frozenset(within)
        self.operations: dict[Operation, None] = {}  # in an order
        self._positions: set[tuple[Operation, int]] = set()
        """(loop or branch, number of a value that it carries)."""
        self._work: list[Operation | SSAValue] = list(roots)
        while self._work:
            item = self._work.pop()
            if isinstance(item, Operation):
                self._need(item)
            else:
                self._need_value(item)

    def _need(self, op: Operation) -> None:
        """All of an operation; of a loop or branch, what is around its contents."""
        if op in self.operations:
            return
        self._need_around(op)
        if not isinstance(op, scf.ForOp | scf.IfOp):
            for region in op.regions:
                self._work += [inner for block in region.blocks for inner in block.ops]

    def _need_around(self, op: Operation) -> None:
        """An operation without the contents of its regions, and what it stands in."""
        if op in self.operations:
            return
        self.operations[op] = None
        self._work += (op.lb, op.ub, op.step) if isinstance(op, scf.ForOp) else op.operands
        parent = op.parent_op()
        if parent is not None and op not in self._within:
            self._need_around(parent)

    def _need_value(self, value: SSAValue) -> None:
        if isinstance(value, OpResult):
            owner = value.owner
            if not self._is_within(owner):
                return
            if isinstance(owner, scf.ForOp | scf.IfOp):
                self._need_around(owner)
                self._carry(owner, value.index)
            else:
                self._work.append(owner)
            return
        block = value.owner
        assert isinstance(block, Block)
        owner = block.parent_op()
        if owner is None or not self._is_within(owner):
            return
        if isinstance(owner, scf.ForOp) and value is not block.args[0]:
            self._carry(owner, block.args.index(value) - 1)

    def _is_within(self, op: Operation) -> bool:
        at: Operation | None = op
        while at is not None:
            if at in self._within:
                return True
            at = at.parent_op()
        return False

    def _carry(self, op: Operation, position: int) -> None:
        if (op, position) in self._positions:
            return
        self._positions.add((op, position))
        if isinstance(op, scf.ForOp):
            self._work.append(op.iter_args[position])
        for region in op.regions:
            if region.blocks:
                terminator = region.block.last_op
                assert terminator is not None
                self._work.append(terminator.operands[position])

    def values_of(self, op: Operation) -> list[SSAValue]:
        """The values that an operation of the slice takes and makes, in the slice."""
        if isinstance(op, scf.ForOp | scf.IfOp):
            return [op.results[at] for at in self._kept_results(op, len(op.results))]
        return [*op.operands, *op.results]

    # --- a copy of it -------------------------------------------------------------------------

    def copy(self, ops: Iterable[Operation], values: dict[SSAValue, SSAValue]) -> list[Operation]:
        """Copies of those of some operations that belong to it; `values` maps old to new."""
        return [self._copy(op, values) for op in ops if op in self.operations]

    def _copy(self, op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
        if isinstance(op, scf.ForOp):
            made: Operation = self._loop(op, values)
        elif isinstance(op, scf.IfOp):
            made = self._branch(op, values)
        else:
            made = op.clone_without_regions(values)
            for region, new in zip(op.regions, made.regions, strict=True):
                for block in region.blocks:
                    new.add_block(self._block(block, list(block.args), values))
        made.location = op.location
        return made

    def _kept_results(self, op: Operation, count: int) -> list[int]:
        return [at for at in range(count) if (op, at) in self._positions]

    def _loop(self, op: scf.ForOp, values: dict[SSAValue, SSAValue]) -> scf.ForOp:
        kept = self._kept_results(op, len(op.iter_args))
        old = op.body.block
        starts = [_new(op.iter_args[at], values) for at in kept]
        body = self._block(old, [old.args[0], *(old.args[1 + at] for at in kept)], values)
        terminator = old.last_op
        assert terminator is not None
        body.add_op(scf.YieldOp(*(_new(terminator.operands[at], values) for at in kept)))
        lower, upper, step = (_new(value, values) for value in (op.lb, op.ub, op.step))
        made = scf.ForOp(lower, upper, step, starts, body)
        made.attributes = dict(op.attributes)
        _bind(op, kept, made, values)
        return made

    def _branch(self, op: scf.IfOp, values: dict[SSAValue, SSAValue]) -> scf.IfOp:
        kept = self._kept_results(op, len(op.results))
        regions: list[Region] = []
        for region in op.regions:
            if not region.blocks:
                regions.append(Region())
                continue
            block = self._block(region.block, [], values)
            terminator = region.block.last_op
            assert terminator is not None
            block.add_op(scf.YieldOp(*(_new(terminator.operands[at], values) for at in kept)))
            regions.append(Region(block))
        types = [op.results[at].type for at in kept]
        made = scf.IfOp(_new(op.cond, values), types, regions[0], regions[1])
        _bind(op, kept, made, values)
        return made

    def _block(
        self, old: Block, arguments: Sequence[SSAValue], values: dict[SSAValue, SSAValue]
    ) -> Block:
        """A copy of what is needed of a block, without scf's terminator."""
        made = Block(arg_types=[argument.type for argument in arguments])
        for argument, new in zip(arguments, made.args, strict=True):
            values[argument] = new
            new.name_hint = argument.name_hint
        for op in old.ops:
            if op in self.operations:
                made.add_op(self._copy(op, values))
        return made


def _new(value: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
    return values.get(value, value)


def _bind(
    old: Operation, kept: Sequence[int], new: Operation, values: dict[SSAValue, SSAValue]
) -> None:
    for at, result in zip(kept, new.results, strict=True):
        values[old.results[at]] = result
        result.name_hint = old.results[at].name_hint


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
    starting = _starting(function)
    _check(function, filling)
    for_all, within = _divide_operations(function)
    parts = _parted(filling) if starting else [filling]
    feeding = [Slice(part, within) for part in parts]
    for each, op in ((each, op) for each in feeding for op in each.operations):
        if any(frag.held_tile(value.type) for value in each.values_of(op)):
            fail(
                op,
                "what this copies, or where, depends on tiles, which warps that only fetch have "
                "not: compute it from scalars and loops' counters",
            )
    others = list(_others(within, [*filling, *starting]))
    if consumers > 1:
        check_shares(function, others)
    rest = Slice(others, within)
    after = InsertPoint.before(within[0])
    for op in for_all:
        op.detach()
        Rewriter.insert_op(op, after)
    fetching = [
        Role(name, _region(each, within), warps=(_loaders(part, bool(starting)), 1))
        for name, each, part in zip(("load", "scales"), feeding, parts, strict=False)
    ]
    multiply = _threads(function, Role("multiply", Region(), warps=(1, 1)))
    bodies = [_region(rest, within) for _ in range(consumers)]
    last = "store" if starting else "multiply"
    names = [last] if consumers == 1 else [f"multiply {at}" for at in range(consumers)]
    if consumers > 1:
        deal_out(bodies)
    multiplying = [
        multiply._replace(name=name, body=body) for name, body in zip(names, bodies, strict=True)
    ]
    if starting:
        start = Role("multiply", _region(Slice(starting, within), within), warps=(1, 1))
        multiplying.insert(0, start)
    roles = frag.RolesOp([*fetching, *multiplying], packed=bool(starting))
    Rewriter.insert_op(roles, after)
    for op in reversed(within):
        Rewriter.erase_op(op, safe_erase=False)
    return True


def _filling(function: func.FuncOp) -> list[Operation]:
    """What fills slots: acquire, publish, and what writes into the slots' memory between."""
    found: list[Operation] = []
    for op in function.walk():
        if not isinstance(op, frag.AcquireOp) or _is_of_tensor_memory(op):
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


def _starting(function: func.FuncOp) -> list[Operation]:
    """What one thread does that starts products in tensor memory: acquires and publishes their
    sums, awaits and releases what they read."""
    found: list[Operation] = []
    for op in function.walk():
        if isinstance(op, frag.AcquireOp) and _is_of_tensor_memory(op):
            found += [op, *(use.operation for use in op.slot.uses if use.operation.name != PART)]
        elif isinstance(op, frag.TensorMmaOp | frag.TensorCopyOp):
            found.append(op)
            for memory in (op.a, op.b) if isinstance(op, frag.TensorMmaOp) else (op.source,):
                slot = slot_of(memory)
                if slot is not None and slot.owner not in found:
                    assert isinstance(slot.owner, Operation)
                    users = (use.operation for use in slot.uses)
                    found += [slot.owner, *(user for user in users if user.name != PART)]
    return found


def _is_of_tensor_memory(op: frag.AcquireOp) -> bool:
    assert isinstance(op.ring.type, frag.RingType)
    return frag.is_tensor_memory(op.ring.type.parts.data[0])


def _parted(filling: Sequence[Operation]) -> list[list[Operation]]:
    """What the tensor memory accelerator fills, and what threads do, each ring by itself: these
    wait for what they copy, and the copies of the others run ahead meanwhile."""
    by_threads: list[Operation] = []
    for op in filling:
        if isinstance(op, frag.AcquireOp):
            memory = [use.operation.results for use in op.slot.uses if use.operation.name == PART]
            users = [use.operation for (part,) in memory for use in part.uses]
            if any(user in filling and not _is_by_tma(user) for user in users):
                by_threads += [op, *(use.operation for use in op.slot.uses), *users]
    rest = [op for op in filling if op not in by_threads]
    if not (by_threads and rest):
        return [[*filling]]
    return [rest, [op for op in filling if op in by_threads]]


def _is_by_tma(op: Operation) -> bool:
    return isinstance(op, frag.CopyOp) and op.tma is not None


def _loaders(filling: Sequence[Operation], few: bool) -> int:
    """Warps that fetch: one for the tensor memory accelerator, four for copies by threads; two, if
    they are few, which leave room in a warpgroup for those that fetch and multiply."""
    copies = [op for op in filling if isinstance(op, frag.CopyOp)]
    return 1 if all(map(_is_by_tma, copies)) else 2 if few else 4


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


def _divide_operations(function: func.FuncOp) -> tuple[list[Operation], list[Operation]]:
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
