"""Where a conversion that a function could do without has room: in shared memory, in registers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import prod

from xdsl.dialects import func, memref
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.access_cost import memory_of
from fragir.dialects.interfaces import FragmentwiseInterface
from fragir.dialects.walking import operations_in
from fragir.layout.planning.costs import FEATURES
from fragir.passes.dead_memory import DeadMemory, bytes_of_type, dead_memory
from fragir.passes.lowering.deferred import defers
from fragir.ptx.machines import STATIC_SHARED

WIDE = 64
"""Bits of an access for which all of an accumulator may be converted."""


class Room:
    """Shared memory of a function that conversions may take."""

    def __init__(self, function: func.FuncOp, target: str):
        self._left = STATIC_SHARED - _taken(function)
        self._function, self._target = function, target

    @cached_property
    def _dead(self) -> DeadMemory | None:
        return dead_memory(self._function)

    def fits(self, tile: SSAValue, op: Operation) -> bool:
        """Whether a tile goes through memory for an operation.

        In one piece through what a kernel may have without asking for more at its launch, or in
        rounds through what the operation finds dead, if it accesses several registers at once then:
        for less, so many registers are not worth it. Where a tile is streamed, what it is made of
        may go through dead memory, which is taken from nobody.
        """
        if not op.results and is_streamed(tile):
            converted = list(_converted(tile))
            return bool(converted) and all(self._finds(made, op) for made in converted)
        return _bytes(tile) <= self._left or self._finds(tile, op)

    def _finds(self, tile: SSAValue, op: Operation) -> bool:
        """Whether an operation finds memory dead through which a tile goes."""
        dead = self._dead
        if dead is None or min(_bytes(tile), FEATURES.scratch) > dead.bytes:
            return False
        return dead.is_dead_at(op) and self._at_once(op) >= WIDE

    def _at_once(self, op: Operation) -> int:
        """Bits of memory that one access of an operation may take."""
        if not isinstance(op, frag.LoadOp | frag.StoreOp) or "broadcast" in op.properties:
            return 0
        memory = memory_of(
            op,
            op.memory,
            op.all_indices(),
            frag.tile_of(op.tile),
            transposed=op.transposed is not None,
            masked=op.masked is not None,
            target=self._target,
        )
        return 0 if memory is None else memory.together * memory.bits


def _taken(function: func.FuncOp) -> int:
    taken = 0
    for op in operations_in(function):
        if isinstance(op, memref.AllocOp):
            taken += bytes_of_type(op.memref.type)
        elif op.name == "frag.ring":
            assert isinstance(op, frag.RingOp)
            for part in op.ring.type.parts:
                taken += op.count * bytes_of_type(part)
    return taken


def _bytes(tile: SSAValue) -> int:
    type_ = frag.tile_of(tile)
    return prod(type_.shape) * ptx.bits(type_.element_type) // 8


def _converted(tile: SSAValue) -> Iterator[SSAValue]:
    """What is converted that a streamed tile may be had in another layout."""
    maker = tile.owner
    if isinstance(maker, frag.LoadOp):
        return
    if not is_streamed(tile):
        yield tile
        return
    assert isinstance(maker, Operation)
    for value in maker.operands:
        if frag.held_tile(value.type) is not None:
            yield from _converted(value)


def is_streamed(tile: SSAValue) -> bool:
    """Whether a tile is made fragment by fragment of what is loaded for it.

    To convert it, all of that would have to be in registers at once.
    """
    op = tile.owner
    if not isinstance(op, FragmentwiseInterface) or not defers(op):
        return False
    tiles = [v for v in op.operands if frag.held_tile(v.type) is not None]
    return isinstance(op, frag.LoadOp) or any(is_streamed(v) for v in tiles)
