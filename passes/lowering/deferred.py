"""Tiles whose fragments are formed when a store asks for them, one after the other.

An epilogue loads a tile of C, maps it and stores it. Done tile by tile, all of it would be in
registers at once, on top of the accumulators; done fragment by fragment, only one fragment is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag

# what may stand between a load and the store that it feeds: nothing that writes memory
_QUIET = (frag.LoadOp, frag.MapOp, frag.CastOp, frag.FillOp, arith.ConstantOp)


class Deferred(Sequence[SSAValue]):
    """Fragments that are made on demand, each once."""

    def __init__(self, count: int, make: Callable[[int], SSAValue]):
        self._values: list[SSAValue | None] = [None] * count
        self._make = make

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


def defers(op: frag.LoadOp | frag.MapOp | frag.CastOp) -> bool:
    """Whether a tile may be formed fragment by fragment at the store it ends in.

    It must be used once, by a chain of maps and casts that ends in a store in the same block, with
    nothing that writes memory in between; and where that store writes the memory that was read, it
    must write each element where it was read.
    """
    user: Operation = op
    while not isinstance(user, frag.StoreOp):
        if not user.results[0].has_one_use():
            return False
        following = user.results[0].get_user_of_unique_use()
        if following is None or following.parent is not op.parent:
            return False
        if not isinstance(following, frag.MapOp | frag.CastOp | frag.StoreOp):
            return False
        user = following
    if isinstance(op, frag.LoadOp) and op.memory is user.memory and not _same_place(op, user):
        return False
    between = op.next_op
    while between is not user:
        if not isinstance(between, _QUIET):
            return False
        between = between.next_op
    return True


def _same_place(load: frag.LoadOp, store: frag.StoreOp) -> bool:
    return (
        load.all_indices() == store.all_indices()
        and load.transposed == store.transposed
        and load.broadcast is None
    )
