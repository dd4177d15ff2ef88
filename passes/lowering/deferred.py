"""Tiles whose fragments are formed when a store asks for them, one after the other.

An epilogue loads a tile of C, maps it and stores it. Done tile by tile, all of it would be in
registers at once, on top of the accumulators; done fragment by fragment, only one fragment is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from xdsl.ir import Operation, SSAValue
from xdsl.traits import ConstantLike

from fragir.dialects.interfaces import FragmentwiseInterface, accesses_of


class Deferred(Sequence[SSAValue]):
    """Fragments that are made on demand, each once."""

    def __init__(self, count: int, make: Callable[[int], SSAValue]):
        self._values: list[SSAValue | None] = [None] * count
        self._make = make

    @property
    def made(self) -> Sequence[SSAValue | None]:
        """Those that were asked for; None in the place of others."""
        return self._values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> SSAValue: ...
    @overload
    def __getitem__(self, index: slice) -> list[SSAValue]: ...
    def __getitem__(self, index: int | slice) -> SSAValue | list[SSAValue]:
        if isinstance(index, slice):
            return [self.at(i) for i in range(*index.indices(len(self)))]
        return self.at(index)

    def at(self, index: int) -> SSAValue:
        """One fragment."""
        value = self._values[index]
        if value is None:
            value = self._values[index] = self._make(index)
        return value

    def __iter__(self) -> Iterator[SSAValue]:
        for index in range(len(self)):
            yield self.at(index)


def defers(op: FragmentwiseInterface) -> bool:
    """Whether a tile may be formed fragment by fragment at the store it ends in.

    It must be used once, by a chain of fragmentwise operations that ends in one without a result
    in the same block, with nothing that writes memory in between; and where that last one writes
    memory that was read, it must write each element where it was read.
    """
    user: Operation = op
    while user.results:
        if len(user.results) > 1 or not user.results[0].has_one_use():
            return False
        following = user.results[0].get_user_of_unique_use()
        if following is None or following.parent is not op.parent:
            return False
        if not isinstance(following, FragmentwiseInterface):
            return False
        user = following
    if not _each_where_it_was(op, user):
        return False
    between = op.next_op
    while between is not user:
        if between is None or not _quiet(between):
            return False
        between = between.next_op
    return True


def _quiet(op: Operation) -> bool:
    """Whether an operation may stand between a load and the store that it feeds."""
    return (isinstance(op, FragmentwiseInterface) and bool(op.results)) or op.has_trait(
        ConstantLike
    )


def _each_where_it_was(first: Operation, last: Operation) -> bool:
    """Whether memory that both touch is written where it was read, element by element."""
    read, written = accesses_of(first), accesses_of(last)
    if read is None or written is None:
        return True
    if not any(memory in written.writes() for memory in read.reads()):
        return True
    where = read.where()
    return where is not None and where == written.where()
