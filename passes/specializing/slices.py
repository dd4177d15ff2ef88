"""The part of a structured program that some of its operations need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue


class Slice:
    """What `roots` need: the operations that compute their operands, and the loops and branches
    around both. Of what a loop carries, and what a branch yields, only that which is needed.

    Nothing is followed beyond `within`: what stands before it is there for all.
    """

    def __init__(self, roots: Iterable[Operation], within: Sequence[Operation]):
        self._within = frozenset(within)
        self.operations: set[Operation] = set()
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
        self.operations.add(op)
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
            return [op.results[at] for at in self._kept(op, len(op.results))]
        return [*op.operands, *op.results]

    # --- a copy of it -------------------------------------------------------------------------

    def copy(self, ops: Iterable[Operation], values: dict[SSAValue, SSAValue]) -> list[Operation]:
        """Copies of those of some operations that belong to it; `values` maps old to new."""
        return [self._copied(op, values) for op in ops if op in self.operations]

    def _copied(self, op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
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

    def _kept(self, op: Operation, count: int) -> list[int]:
        return [at for at in range(count) if (op, at) in self._positions]

    def _loop(self, op: scf.ForOp, values: dict[SSAValue, SSAValue]) -> scf.ForOp:
        kept = self._kept(op, len(op.iter_args))
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
        kept = self._kept(op, len(op.results))
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
                made.add_op(self._copied(op, values))
        return made


def _new(value: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
    return values.get(value, value)


def _bind(
    old: Operation, kept: Sequence[int], new: Operation, values: dict[SSAValue, SSAValue]
) -> None:
    for at, result in zip(kept, new.results, strict=True):
        values[old.results[at]] = result
        result.name_hint = old.results[at].name_hint
