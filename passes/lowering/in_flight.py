"""Products in flight: how many groups `wgmma.wait_group` may leave under way, and where it stands.

Every asynchronous product is a group of its own. It is waited for

* by `frag.await` of its accumulator,
* by `frag.release` of a slot of which it reads a part,
* at the end of a loop's body, where A or metadata are registers that the next turn writes anew.

What is waited for has an *age*: how many groups have been committed since its own, the least of all
ways to that place. That many may be under way behind the wait. What is complete on every way, since
something else was waited for, is not waited for again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.interfaces import accesses_of
from fragir.passes.lowering.forward import Forward

if TYPE_CHECKING:
    from fragir.passes.lowering.lane_builder import Lanes
    from fragir.passes.lowering.state import LoweringState

SUBJECT = "products in flight"
"""Under which name the lowering keeps what is known of them, once that has been asked for."""
MOST_PENDING = 7
"""Groups that a wait may leave under way: what an instruction of the machine has room for."""


class ReadRegisters(NamedTuple):
    """A tile whose registers a product reads while it is under way."""

    tile: SSAValue


class Flying(NamedTuple):
    """What is known of groups of products on all paths to a place."""

    ages: Mapping[Hashable, int]
    """Of tiles in flight, slots and `ReadRegisters`, the age of the youngest group of each."""
    complete: int
    """Groups of this age and older are complete."""

    def committed(self, concerned: Sequence[Hashable]) -> Flying:
        """One group more, which concerns these."""
        ages = {key: min(age + 1, MOST_PENDING) for key, age in self.ages.items()}
        ages.update(dict.fromkeys(concerned, 0))
        return Flying(ages, min(self.complete + 1, MOST_PENDING + 1))

    def waited(self, pending: int | None) -> Flying:
        """No more than the `pending` youngest groups are under way."""
        return self if pending is None else self._replace(complete=min(self.complete, pending))

    def merged(self, other: Flying) -> Flying:
        """What is known where two paths meet."""
        ages = dict(self.ages)
        for key, age in other.ages.items():
            ages[key] = min(age, ages.get(key, age))
        return Flying(ages, max(self.complete, other.complete))

    def passed_on(self, values: Sequence[SSAValue], names: Sequence[SSAValue]) -> Flying:
        """The same for those that take the values over."""
        found = {
            name: self.ages[value]
            for value, name in zip(values, names, strict=False)
            if value in self.ages
        }
        others = {key: age for key, age in self.ages.items() if key not in names}
        return self._replace(ages={**others, **found})

    def pending(self, op: Operation) -> int | None:
        """How many groups an operation that waits leaves under way; None where it need not."""
        if op.name == "frag.await" and frag.held_tile(op.operands[0].type) is not None:
            # without an age no product adds to it; what is complete is so for fewer groups, too,
            # and ptxas sees that better
            age = self.ages.get(op.operands[0], MOST_PENDING)
            return min(age, self.complete)
        keys: list[Hashable] = []
        if op.name == "frag.release":
            keys = [op.operands[0]]
        elif isinstance(op, scf.YieldOp) and isinstance(op.parent_op(), scf.ForOp | scf.WhileOp):
            read = [key for key in self.ages if isinstance(key, ReadRegisters)]
            keys += [key for key in read if _is_made_in(key.tile, op.parent_op())]
        found = [self.ages[key] for key in keys if key in self.ages]
        return min((age for age in found if age < self.complete), default=None)


def _step(op: Operation, flying: Flying) -> Flying:
    if not isinstance(op, frag.WgmmaOp):
        return flying.waited(flying.pending(op))
    if op.asynchronous is None:
        return flying.committed(()).waited(0)
    concerned: list[Hashable] = [op.d]
    for operand in (op.a, op.b, op.metadata):
        if operand is not None and frag.held_tile(operand.type) is not None:
            concerned.append(ReadRegisters(operand))
        elif operand is not None:
            slot = slot_of(operand)
            concerned += [] if slot is None else [slot]
    return flying.committed(concerned)


def slot_of(memory: SSAValue) -> SSAValue | None:
    """The slot of a ring of which memory is a part, or a view of one."""
    while isinstance(memory.owner, Operation):
        owner = memory.owner
        if owner.name == "frag.part":
            return owner.operands[0]
        model = accesses_of(owner)
        below = None if model is None else model.view_of()
        if below is None:
            break
        memory = below
    return None


def _is_made_in(value: SSAValue, loop: Operation | None) -> bool:
    """Whether a value is made in a loop's body, so that each turn writes its registers."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        parent = block.parent_op()
        if parent is loop:
            return True
        block = None if parent is None else parent.parent
    return False


class _Known(NamedTuple):
    """What is known of products in flight ahead of each operation."""

    before: Mapping[Operation, Flying]


# --- lowering -------------------------------------------------------------------------------------


def pending_behind(state: LoweringState, op: Operation) -> int | None:
    """How many groups an operation that waits leaves under way; None where it need not."""
    known = state.of_subject.get(SUBJECT)
    if known is None:
        function: Operation | None = op
        while not isinstance(function, func.FuncOp):
            assert function is not None
            function = function.parent_op()
        forward = Forward[Flying](_step, Flying.merged, Flying.passed_on)
        forward.run(function.body.block, Flying({}, 0))
        known = state.of_subject[SUBJECT] = _Known(forward.before)
    assert isinstance(known, _Known)
    return known.before[op].pending(op)


def wait_for_products(lanes: Lanes, op: Operation) -> None:
    """Waits for the products that an operation must not overtake: before `frag.release`."""
    pending = pending_behind(lanes.state, op)
    if pending is not None:
        _keep_behind(lanes, op)
        lanes.insert(ptx.WgmmaWaitOp(pending, ()))


def wait_for_tile(lanes: Lanes, op: frag.AwaitOp) -> None:
    """`frag.await` of a tile in flight: its registers behind the wait."""
    tiles = lanes.state.tiles
    pending = pending_behind(lanes.state, op)
    assert pending is not None
    _keep_behind(lanes, op)
    wait = lanes.insert(ptx.WgmmaWaitOp(pending, list(tiles[op.source])))
    tiles[op.result] = list(wait.completed)


def _keep_behind(lanes: Lanes, op: Operation) -> None:
    """Keeps a wait behind what has been computed while the product was under way.

    ptxas moves `wgmma.wait_group` up to the last instruction that it orders, so that nothing is
    left to be done in the meantime. It moves nothing across a branch: here one that is never taken,
    which it cannot know, to a wait that would do no harm.
    """
    if not _computes_before(op):
        return
    ar = lanes.state.ar
    size = ar.pure("dynamic_smem_size", (), lambda: _dynamic_size())
    all_ones = ar.compare("eq", size, -1)
    assert isinstance(all_ones, SSAValue)
    block = Block()
    with ar.inside(block):
        lanes.insert(ptx.WgmmaWaitOp(0, ()))
        lanes.insert(scf.YieldOp())
    lanes.insert(scf.IfOp(all_ones, [], Region(block), Region()))


def _dynamic_size() -> Operation:
    return ptx.InstructionOp("mov.u32 $0, %dynamic_smem_size", (), (IndexType(),))


def _computes_before(op: Operation) -> bool:
    """Whether tiles are computed between a product, or what waits for one, and an operation."""
    before = op.prev_op
    while before is not None and not isinstance(before, frag.WgmmaOp | scf.ForOp | scf.WhileOp):
        tiles = [v for v in before.results if isinstance(v.type, frag.TileType)]
        if before.name == "frag.await" and tiles:
            return False
        if tiles and before.name not in _NOT_COMPUTED:
            return True
        before = before.prev_op
    return False


_NOT_COMPUTED = ("frag.fill", "frag.iota", "frag.undefined", "frag.broadcast")
"""What makes tiles without an instruction that may wait."""
