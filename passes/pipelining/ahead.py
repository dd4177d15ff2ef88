"""Slots filled ahead of the turn that reads them, by the threads that read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag, ptx
from fragir.dialects.shorthands import constant_of, index_constant
from fragir.errors import FragirError
from fragir.isa.spelling import mnk
from fragir.passes.pipelining.insertion import insert_before
from fragir.passes.tiling.operand_layouts import instruction_of

# -- fragments -------------------------------------------------------------------------------------
# Fragments of a turn that the turn before loads, ahead of its last products.
#
# Where a turn awaits its slot and then loads from it, the tensor cores wait for all of that. So
# where a slot has two instructions along K, the fragments of the first are carried round the loop:
# a turn loads those of the second, multiplies the first, awaits the next slot, loads its first
# fragments and multiplies the second meanwhile. All that a slot holds is in registers by then, so
# that it is filled again in the same turn. (Of more instructions all but the first would have to be
# in registers before the next slot is awaited, for ptxas moves that ahead of products: they do not
# fit.)

REGISTERS = 255
"""Of a thread (CUDA programming guide, technical specifications per compute capability)."""
PLAIN, TESTED = 56, 96
"""Of these for addresses: where copies are not tested for a matrix's end, and else, or where a loop
over tiles needs some. As ptxas has them."""


class FragmentLoads(NamedTuple):
    """A turn that multiplies what it loads from one slot, by two instructions along K."""

    awaited: frag.AwaitOp
    a: frag.LoadOp
    b: frag.LoadOp
    product: frag.MmaOp
    release: frag.ReleaseOp
    depth: int
    """Of an instruction along K."""


def fragment_loads(
    loop: scf.ForOp, ring: frag.RingOp, warps: tuple[int, int], target: str
) -> FragmentLoads | None:
    """What of a loop's loads from a ring can go ahead; None where nothing can."""
    body = loop.body.block
    awaits = [op for op in body.ops if isinstance(op, frag.AwaitOp) and op.source is ring.ring]
    if ring.count < 2 or len(awaits) != 1 or _is_short(loop, ring.count):
        return None
    (awaited,) = awaits
    users = [use.operation for use in awaited.result.uses]
    releases = [op for op in users if isinstance(op, frag.ReleaseOp)]
    parts = [op for op in users if isinstance(op, frag.PartOp)]
    loads = [use.operation for part in parts for use in part.memory.uses]
    if len(releases) + len(parts) != len(users) or len(loads) != 2:
        return None
    for product in (op for op in body.ops if isinstance(op, frag.MmaOp)):
        a, b = product.a.owner, product.b.owner
        if not (isinstance(a, frag.LoadOp) and isinstance(b, frag.LoadOp)):
            continue
        whole = all(_is_whole(load) and load in loads for load in (a, b))
        if a is b or not whole or product.c.type != product.d.type:
            continue
        try:
            name = instruction_of(product, warps, False, target)
            depth = mnk(name.partition(".")[0])[2]
        except FragirError:  # what it is, frag-place says
            return None
        if frag.tile_of(product.a).cols != 2 * depth or not _has_room(loop, product, warps):
            return None
        return FragmentLoads(awaited, a, b, product, releases[0], depth)
    return None


def _has_room(loop: scf.ForOp, product: frag.MmaOp, warps: tuple[int, int]) -> bool:
    """Whether a thread has registers for the sums, what is loaded for two instructions along K, and
    the addresses of the copies.
    """
    c, a = frag.tile_of(product.d), frag.tile_of(product.a)
    rows, columns = c.rows // warps[0], c.cols // warps[1]
    sums = rows * columns * ptx.bits(c.element_type) // 1024
    loaded = (rows + columns) * a.cols * ptx.bits(a.element_type) // 1024
    copies = [op for op in loop.walk() if isinstance(op, frag.CopyOp)]
    hard = is_repeated(loop) or any(op.masked is not None for op in copies)
    return sums + loaded + (TESTED if hard else PLAIN) <= REGISTERS


def is_repeated(loop: scf.ForOp) -> bool:
    """Whether a loop stands in another one."""
    parent = loop.parent_op()
    while parent is not None and parent.name in ("scf.for", "scf.if", "scf.while"):
        if parent.name != "scf.if":
            return True
        parent = parent.parent_op()
    return isinstance(parent, frag.ForTilesOp)


def _is_short(loop: scf.ForOp, slots: int) -> bool:
    """Whether a loop is known to fill a slot never: there is nothing to load ahead then."""
    first, end, step = (constant_of(value) for value in (loop.lb, loop.ub, loop.step))
    if first is None or end is None or step is None:
        return False
    return -(-(end - first) // step) < slots


def _is_whole(load: frag.LoadOp) -> bool:
    """Whether a load takes a whole matrix, for one product."""
    one = load.tile.uses.get_length() == 1
    plain = load.masked is None and len(frag.tile_of(load.tile).shape) == 2
    return one and plain and all(index == 0 for index in load.all_indices())


class CarriedFragments:
    """Rewrites a loop so that it carries the next turn's first fragments, and the slot they are of.

    The operations that fill slots stay where they are.
    """

    def __init__(self, loop: scf.ForOp, found: FragmentLoads):
        self._old, self._found = loop, found

    def run(self) -> tuple[scf.ForOp, Operation]:
        """The new loop, and the operation in it ahead of which the slot can be filled again."""
        old, found, ring = self._old, self._found, self._found.awaited.source
        before = InsertPoint.before(old)
        slot = insert_before(frag.AwaitOp(ring), before, "slot")
        starts = [slot, *self._loads(slot, 0, before)]
        region = old.detach_region(old.body)
        body = region.block
        held, *first = (body.insert_arg(x.type, len(body.args)) for x in starts)
        for value, start in zip((held, *first), starts, strict=True):
            value.name_hint = start.name_hint
        found.awaited.result.replace_all_uses_with(held)
        at = InsertPoint.before(found.product)
        rest = self._loads(held, found.depth, at)
        sums = self._multiply(first, found.product.c, at)
        found.release.detach()
        Rewriter.insert_op(found.release, at)
        following = insert_before(frag.AwaitOp(ring), at, "next")
        ahead = self._loads(following, 0, at)
        sums = self._multiply(rest, sums, at)
        found.product.d.replace_all_uses_with(sums)
        for op in (found.product, found.a, found.b, found.awaited):
            self._erase(op)
        terminator = body.last_op
        assert isinstance(terminator, scf.YieldOp)
        Rewriter.replace_op(terminator, scf.YieldOp(*terminator.operands, following, *ahead))
        loop = self._replace(region, starts)
        last = sums.owner
        assert isinstance(last, Operation)
        return loop, last

    def _replace(self, region: Region, starts: Sequence[SSAValue]) -> scf.ForOp:
        """The loop with this body in the old one's place; its last slot is released."""
        old = self._old
        made = scf.ForOp(old.lb, old.ub, old.step, [*old.iter_args, *starts], region)
        made.attributes, made.location = dict(old.attributes), old.location
        Rewriter.insert_op(made, InsertPoint.before(old))
        for result, new in zip(old.results, made.results, strict=False):
            new.name_hint = result.name_hint
            result.replace_all_uses_with(new)
        release = frag.ReleaseOp(made.results[len(old.results)])
        Rewriter.insert_op(release, InsertPoint.after(made))
        old.detach()
        old.erase()
        return made

    def _loads(self, slot: SSAValue, first: int, at: InsertPoint) -> tuple[SSAValue, SSAValue]:
        """One instruction's part of A and B along K, from a slot."""
        found = self._found
        a, b = (self._load(load, slot, first, at) for load in (found.a, found.b))
        return a, b

    def _load(self, load: frag.LoadOp, slot: SSAValue, first: int, at: InsertPoint) -> SSAValue:
        part = load.memory.owner
        assert isinstance(part, frag.PartOp)
        tile, transposed = frag.tile_of(load.tile), load.transposed is not None
        is_a, depth = load is self._found.a, self._found.depth
        shape = (tile.rows, depth) if is_a else (depth, tile.cols)
        places: list[int | SSAValue] = [0, 0]
        places[0 if is_a == transposed else 1] = first  # of memory
        memory = insert_before(frag.PartOp(slot, part.number.value.data), at, part.memory.name_hint)
        made = frag.LoadOp(
            memory,
            places,
            frag.TileType(shape, tile.element_type, tile.placement),
            transposed=transposed,
        )
        made.location = load.location
        return insert_before(made, at, load.tile.name_hint)

    def _multiply(self, pair: Sequence[SSAValue], sums: SSAValue, at: InsertPoint) -> SSAValue:
        product, (a, b) = self._found.product, pair
        made = product.clone({product.a: a, product.b: b, product.c: sums})
        return insert_before(made, at, product.d.name_hint)

    def _erase(self, op: Operation) -> None:
        sources: Sequence[SSAValue] = op.operands
        Rewriter.erase_op(op)
        for value in sources:
            if isinstance(value.owner, frag.PartOp) and not value.uses:
                Rewriter.erase_op(value.owner)


INDEX = IndexType()


@dataclass
class Filling:
    """How a turn of a loop fills a slot: acquire, the copies with their parts, publish."""

    acquire: frag.AcquireOp
    inner: list[Operation]
    """Parts and copies, in order."""
    publish: frag.PublishOp

    @property
    def operations(self) -> list[Operation]:
        return [self.acquire, *self.inner, self.publish]


def fillings_of(loop: scf.ForOp) -> list[Filling]:
    """What a loop's body fills from memory in the turn that it is read in, ring by ring."""
    found: list[Filling] = []
    for op in loop.body.block.ops:
        if not isinstance(op, frag.AcquireOp):
            continue
        inner: list[Operation] = []
        publish: frag.PublishOp | None = None
        for use in op.slot.uses:
            user = use.operation
            if isinstance(user, frag.PublishOp):
                publish = user
            elif isinstance(user, frag.PartOp):
                inner += [user, *(use.operation for use in user.memory.uses)]
        plain = all(
            isinstance(x, frag.PartOp | frag.CopyOp) and x.parent is op.parent for x in inner
        )
        if publish is not None and publish.parent is op.parent and plain:
            order = {x: at for at, x in enumerate(loop.body.block.ops)}
            inner.sort(key=order.__getitem__)
            found.append(Filling(op, inner, publish))
    return found


class Prefetch:
    """Moves what a loop fills so many turns ahead that all slots of its ring but one are full.

    With `fragments` the loop carries the first of them, and all slots are full.
    """

    def __init__(self, loop: scf.ForOp, filling: Filling, fragments: FragmentLoads | None = None):
        self._loop, self._filling, self._fragments = loop, filling, fragments
        ring = filling.acquire.ring.owner
        assert isinstance(ring, frag.RingOp)
        self._turns = ring.count - (fragments is None)

    def run(self) -> None:
        """Fills the first slots before the loop, and in it that of a turn to come."""
        if self._turns == 0:
            return
        loop, filling = self._loop, self._filling
        before = InsertPoint.before(loop)
        if self._turns > 1 and self._is_long():
            self._before_in_turn(before)
        else:
            for turn in range(self._turns):
                self._before(self._ahead(loop.lb, turn, before), before)
        if self._fragments is None:
            behind = self._place()
        else:
            self._loop, behind = CarriedFragments(loop, self._fragments).run()
            loop = self._loop
        point = InsertPoint.before(behind)
        at = self._ahead(loop.body.block.args[0], self._turns, point, "ahead")
        more = insert_before(arith.CmpiOp(at, loop.ub, "slt"), point, "more")
        self._within(at, more, point)
        for op in reversed(filling.operations):
            Rewriter.erase_op(op)
        if is_repeated(loop):
            self._drain()

    def _ahead(
        self, at: SSAValue, turns: int, point: InsertPoint, name: str | None = None
    ) -> SSAValue:
        """The loop's counter so many turns later."""
        step, first = constant_of(self._loop.step), constant_of(at)
        if step is not None and first is not None:
            return insert_before(index_constant(first + turns * step), point, name)
        if turns == 0:
            return at
        by = self._loop.step
        if step is not None:
            by = insert_before(index_constant(turns * step), point)
        elif turns > 1:
            by = insert_before(arith.MuliOp(by, insert_before(index_constant(turns), point)), point)
        return insert_before(arith.AddiOp(at, by), point, name)

    def _is_long(self) -> bool:
        """Whether a filling tests what lies outside of memory: then it is written once."""
        masked = any(isinstance(x, frag.CopyOp) and x.masked for x in self._filling.inner)
        return masked and constant_of(self._loop.ub) is None

    def _before_in_turn(self, point: InsertPoint) -> None:
        """Fills the first slots in a loop of their own."""
        first, one = (
            insert_before(index_constant(0), point),
            insert_before(index_constant(1), point),
        )
        turns = insert_before(index_constant(self._turns), point)
        body = Block(arg_types=[INDEX])
        inner = InsertPoint.at_end(body)
        at = insert_before(arith.MuliOp(body.args[0], self._loop.step), inner)
        if constant_of(self._loop.lb) != 0:
            at = insert_before(arith.AddiOp(self._loop.lb, at), inner)
        self._before(at, inner)
        Rewriter.insert_op(scf.YieldOp(), InsertPoint.at_end(body))
        Rewriter.insert_op(scf.ForOp(first, turns, one, [], body), point)

    def _before(self, at: SSAValue, point: InsertPoint) -> None:
        """Fills a slot before the loop; masked, as the loop may have fewer turns."""
        values: dict[SSAValue, SSAValue] = {self._loop.body.block.args[0]: at}
        first, end = constant_of(at), constant_of(self._loop.ub)
        for op in self._filling.operations:
            beyond = first is not None and end is not None and first >= end
            if beyond and isinstance(op, frag.CopyOp):
                continue
            made = self._again(op, values, point)
            if isinstance(made, frag.CopyOp) and (first is None or end is None):
                made.masked = UnitAttr()

    def _within(self, at: SSAValue, more: SSAValue, point: InsertPoint) -> None:
        """Fills the slot of a turn to come, if it comes."""
        values: dict[SSAValue, SSAValue] = {self._loop.body.block.args[0]: at}
        block = Block()
        inner = InsertPoint.at_end(block)
        for op in self._filling.operations:
            if op is self._filling.publish:
                Rewriter.insert_op(scf.YieldOp(), inner)
                Rewriter.insert_op(scf.IfOp(more, [], Region(block)), point)
            self._again(op, values, inner if isinstance(op, frag.CopyOp) else point)

    def _again(
        self, op: Operation, values: dict[SSAValue, SSAValue], point: InsertPoint
    ) -> Operation:
        """An operation of the body for another turn, and what of the body it is computed from."""
        body = self._loop.body.block
        for operand in op.operands:
            owner = operand.owner
            if operand not in values and isinstance(owner, Operation) and owner.parent is body:
                self._again(owner, values, point)
        made = op.clone(values)
        Rewriter.insert_op(made, point)
        return made

    def _drain(self) -> None:
        """Takes the slots that are full of turns which do not come: the next run of the loop
        finds a ring that is free.
        """
        last: Operation = self._loop
        for _ in range(self._turns - (self._fragments is not None)):
            taken = frag.AwaitOp(self._filling.acquire.ring)
            for op in (taken, frag.ReleaseOp(taken.result)):
                Rewriter.insert_op(op, InsertPoint.after(last))
                last = op

    def _place(self) -> Operation:
        """Ahead of what it is filled: behind what this turn waits for and gives back.

        A slot is free as soon as the turn before has been read: where products stay under way into
        the next turn, behind the release of its slot, else behind the await. Products of wgmma that
        this turn waits for go first: they run while copies are issued.
        """
        body = self._loop.body.block
        found: Operation | None = None
        for op in body.ops:
            if isinstance(op, frag.AwaitOp) and op.source is self._filling.acquire.ring:
                found = op if found is None else found
            if isinstance(op, frag.ReleaseOp) and op.slot in body.args:
                if op.slot.type == self._filling.acquire.slot.type:
                    found = op
        assert found is not None
        following = _behind_products(found).next_op
        assert following is not None
        return following


def _behind_products(op: Operation) -> Operation:
    """The last product that is under way before any is awaited; the operation if none is."""
    last, at = op, op.next_op
    while at is not None and at.name != "frag.await" and not at.regions:
        if at.name == "frag.wgmma" and "asynchronous" in at.properties:
            last = at
        at = at.next_op
    return last
