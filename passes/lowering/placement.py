"""Where operations of the lane level are put: as far out of loops as they may stand."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

OpT = TypeVar("OpT", bound=Operation)


class Placement:
    """Appends operations to the blocks of one function; those without effects are made once."""

    def __init__(self, entry: Block):
        self.blocks = [entry]
        self.location: LocationAttr = UnknownLoc()
        self._depth: dict[Block, int] = {entry: 0}
        self._memo: dict[object, SSAValue] = {}
        self._branches: list[Block] = []
        self._floor = entry  # the outermost block that operations are put into

    @property
    def block(self) -> Block:
        """Where operations with effects go."""
        return self.blocks[-1]

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Builds a nested block."""
        self.blocks.append(block)
        self._depth[block] = len(self.blocks) - 1
        try:
            yield
        finally:
            self.blocks.pop()

    @contextmanager
    def branch(self, block: Block) -> Generator[None]:
        """Builds a nested block that may be passed by. What is computed from values of the loop
        that it stands in is computed in it: ahead of it, it would take registers meanwhile.
        """
        known = len(self._memo)
        self._branches.append(block)
        try:
            with self.inside(block):
                yield
        finally:
            self._branches.pop()
            depth = self._depth[block]
            for key in list(islice(self._memo, known, None)):
                if self.depth(self._memo[key]) >= depth:
                    del self._memo[key]

    @contextmanager
    def apart(self, block: Block) -> Generator[None]:
        """Builds a nested block that is rarely entered: what is computed for it stands inside of
        it, not further out, where it would be computed and kept in registers in any case.
        """
        memo, floor = self._memo.copy(), self._floor
        with self.inside(block):
            self._floor = block
            try:
                yield
            finally:
                self._memo, self._floor = memo, floor

    @contextmanager
    def at_top(self) -> Generator[None]:
        """Builds at the end of what the function's first block has so far: ahead of the loop or
        branch that is being built."""
        blocks, memo, floor = self.blocks, self._memo, self._floor
        self.blocks, self._floor = blocks[:1], blocks[0]
        self._memo = {key: value for key, value in memo.items() if self.depth(value) == 0}
        try:
            yield
        finally:
            self.blocks, self._memo, self._floor = blocks, self._memo | memo, floor

    def insert(self, op: OpT, name: str | None = None) -> OpT:
        """Appends an operation to the current block."""
        return self._place(op, self.block, name)

    def _place(self, op: OpT, block: Block, name: str | None) -> OpT:
        op.location = self.location
        block.add_op(op)
        if name is not None:
            for result in op.results:
                result.name_hint = name
        return op

    def pure(
        self,
        key: object,
        operands: Sequence[SSAValue],
        make: Callable[[], Operation],
        name: str | None = None,
    ) -> SSAValue:
        """The first result of an operation without effects, made once, as far out as possible."""
        found = self._memo.get(key)
        if found is not None:
            return found
        block = max(
            (self.owner(v) for v in operands), key=self._depth.__getitem__, default=self._floor
        )
        if self._depth[block] < self._depth[self._floor]:
            block = self._floor
        elif self._branches:
            block = self._within(block)
        op = self._place(make(), block, name)
        self._memo[key] = op.results[0]
        return op.results[0]

    def _within(self, block: Block) -> Block:
        """The branch in a block of a loop that is being built, if there is one."""
        depth = self._depth[block]
        while 0 < depth < len(self.blocks) - 1 and self.blocks[depth + 1] in self._branches:
            depth += 1
        return self.blocks[depth]

    def owner(self, value: SSAValue) -> Block:
        """The block that defines a value."""
        if type(value) is OpResult:
            block = value.op.parent
            assert block is not None
            return block
        assert isinstance(value, BlockArgument)
        return value.block

    def depth(self, value: int | SSAValue) -> int:
        """How many loops and branches deep a value is defined; 0 at the function's top."""
        return 0 if isinstance(value, int) else self._depth[self.owner(value)]
