"""Values of several blocks in registers: which may share one, so that a way needs no copy.

What a block is given, and what an operation holds before (`into`), shares the register of the
value that is given where the two are never needed at once. Lifted code is so by nature: the values
of one register of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import cf
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from fragir.dialects import ptx
from fragir.passes.lifting.module import live


def ways(block: Block) -> list[tuple[Block, Sequence[SSAValue]]]:
    """Where a block goes on, and what it gives."""
    last = block.last_op
    if isinstance(last, cf.BranchOp):
        return [(last.successor, last.arguments)]
    if isinstance(last, cf.ConditionalBranchOp):
        return [(last.then_block, last.then_arguments), (last.else_block, last.else_arguments)]
    return []


def crossing(region: Region) -> set[SSAValue]:
    """Values that another block than that of their definition reads, and all arguments."""
    found: set[SSAValue] = set()
    for block in region.blocks:
        found.update(block.args)
        for op in block.ops:
            for inner in op.walk():
                for operand in inner.operands:
                    if _block(operand, region) is not block:
                        found.add(operand)
    return found


def _block(value: SSAValue, region: Region) -> Block | None:
    """The block of the region that a value is defined in, deep inside or not."""
    if isinstance(value, BlockArgument):
        block: Block | None = value.block
    else:
        owner = value.owner
        block = owner.parent if isinstance(owner, Operation) else owner
    while block is not None and block.parent is not region:
        above = block.parent_op()
        block = None if above is None else above.parent
    return block


class Sharing:
    """Classes of values that share a register, of those that meet others."""

    def __init__(self, region: Region):
        self.region = region
        self.pairs = list(_pairs(region))
        self.numbers: dict[SSAValue, int] = {}
        for pair in self.pairs:
            for value in pair:
                self.numbers.setdefault(value, len(self.numbers))
        self.conflicts = [0] * len(self.numbers)
        self._find_conflicts()
        self._above = list(range(len(self.numbers)))
        self._members = [1 << number for number in self._above]
        for first, second in self.pairs:
            self._join(self.numbers[first], self.numbers[second])

    def classes(self) -> Iterator[list[SSAValue]]:
        """Values with one register, two or more."""
        found: dict[int, list[SSAValue]] = {}
        for value, number in self.numbers.items():
            found.setdefault(self._top(number), []).append(value)
        return (members for members in found.values() if len(members) > 1)

    def _top(self, number: int) -> int:
        while self._above[number] != number:
            self._above[number] = number = self._above[self._above[number]]
        return number

    def _join(self, first: int, second: int) -> None:
        a, b = self._top(first), self._top(second)
        if a != b and not self.conflicts[a] & self._members[b]:
            self._above[b] = a
            self._members[a] |= self._members[b]
            self.conflicts[a] |= self.conflicts[b]

    # --- what is needed at once ---------------------------------------------------------------

    def _bits(self, values: Iterable[SSAValue]) -> int:
        found = 0
        for value in values:
            if value in self.numbers:
                found |= 1 << self.numbers[value]
        return found

    def _find_conflicts(self) -> None:
        blocks = list(self.region.blocks)
        places = {block: at for at, block in enumerate(blocks)}
        after = [[places[to] for to, _ in ways(block)] for block in blocks]
        used, written = [0] * len(blocks), [0] * len(blocks)
        for at, block in enumerate(blocks):
            written[at] = self._bits(block.args)
            for op in block.ops:
                used[at] |= self._bits(_read(op)) & ~written[at]
                written[at] |= self._bits(op.results)
        _, ends = live(after, used, written)
        for at, block in enumerate(blocks):
            needed = ends[at]
            for op in reversed(list(block.ops)):
                results = self._bits(op.results)
                if isinstance(op, ptx.InstructionOp) and op.before:
                    self._before(op, needed)
                else:
                    self._conflict(op.results, needed | results)
                needed = (needed & ~results) | self._bits(_read(op))
            arguments = self._bits(block.args)
            self._conflict(block.args, needed | arguments)

    def _before(self, op: ptx.InstructionOp, needed: int) -> None:
        """Copies of what is held before are made ahead of the reading."""
        results = self._bits(op.outputs)
        for before, result in zip(op.before, op.outputs, strict=True):
            others = self._bits(v for v in op.operands if v is not before)
            self._conflict((result,), needed | results | others)

    def _conflict(self, values: Iterable[SSAValue], others: int) -> None:
        for value in values:
            number = self.numbers.get(value)
            if number is None:
                continue
            bit = 1 << number
            rest = others & ~bit & ~self.conflicts[number]
            self.conflicts[number] |= rest
            while rest:
                low = rest & -rest
                self.conflicts[low.bit_length() - 1] |= bit
                rest ^= low


def _pairs(region: Region) -> Iterator[tuple[SSAValue, SSAValue]]:
    for block in region.blocks:
        for op in block.ops:
            if isinstance(op, ptx.InstructionOp) and op.before:
                yield from zip(op.outputs, op.before, strict=True)
        for to, given in ways(block):
            yield from zip(to.args, given, strict=True)


def _read(op: Operation) -> Iterator[SSAValue]:
    for inner in op.walk():
        yield from inner.operands
