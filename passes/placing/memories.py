"""Memory where layouts are chosen.

Room for conversions, and the order of shared matrices' rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from math import prod
from typing import NamedTuple

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.access_cost import memory_of
from fragir.dialects.interfaces import FragmentwiseInterface, accesses_of, root_of
from fragir.dialects.shorthands import is_memref, memref_type, operations_in
from fragir.layout.planning.costs import FEATURES
from fragir.passes.dead_memory import DeadMemory, bytes_of_type, dead_memory
from fragir.passes.lowering.lane_builder import defers
from fragir.ptx.machines import STATIC_SHARED


class SharedMatrix(NamedTuple):
    """Memory with its views, all that touches it, and why its rows stay where they are.

    `fixed_by` is empty where they may lie in another order.
    """

    values: tuple[SSAValue, ...]
    """The memory itself, then its views."""
    users: tuple[Operation, ...]
    fixed_by: str

    @property
    def root(self) -> SSAValue:
        return self.values[0]

    @property
    def rows(self) -> int:
        return memref_type(self.root.type).get_shape()[-2]


def shared_matrix(
    memory: SSAValue, tiles: Collection[SSAValue] | None = None
) -> SharedMatrix | None:
    """The matrix, or stack of matrices, that a memref is or is a view of.

    None where it has no rows of a known number. `tiles` are those whose layouts are still to be
    chosen, all unless given.
    """
    root = root_of(memory)
    if not is_memref(root.type):
        return None
    shape = memref_type(root.type).get_shape()
    if len(shape) < 2 or DYNAMIC_INDEX in shape:
        return None
    values, users = [root], list[Operation]()
    fixed_by = _as_made(root)
    for value in values:
        for use in value.uses:
            op = use.operation
            model = accesses_of(op)
            if op not in users:
                users.append(op)
            if isinstance(op, memref.DeallocOp):
                continue
            if model is None or not model.takes_rows_in_any_order(value):
                fixed_by = fixed_by or f"{op.name} takes it as it lies"
            elif model.view_of() is value:
                values += op.results
            if tiles is not None and any(tile not in tiles for tile in _tiles(op)):
                fixed_by = fixed_by or f"the tiles of {op.name} are placed"
    return SharedMatrix(tuple(values), tuple(users), fixed_by)


def _as_made(root: SSAValue) -> str:
    """Why memory stays as it is made; empty where it need not."""
    type_ = memref_type(root.type)
    if not isinstance(root.owner, memref.AllocOp):
        return "it is not allocated in this function"
    if not isinstance(type_.memory_space, frag.SharedAttr):
        return "it is no shared memory"
    if not isinstance(type_.layout, NoneAttr):
        return "its layout is written"
    return ""


def tiles_at(matrix: SharedMatrix) -> Iterator[SSAValue]:
    """The tiles of those who touch a matrix."""
    for op in matrix.users:
        yield from _tiles(op)


def _tiles(op: Operation) -> list[SSAValue]:
    return [v for v in (*op.operands, *op.results) if frag.held_tile(v.type) is not None]


# -- memory room -----------------------------------------------------------------------------------
# Where a conversion that a function could do without has room: in shared memory, in registers.

WIDE = 64
"""Bits of an access for which all of an accumulator may be converted."""


class Room:
    """Shared memory of a function that conversions may take."""

    def __init__(self, function: func.FuncOp, target: str):
        self._left = STATIC_SHARED - _taken_bytes(function)
        self._function, self._target = function, target

    @cached_property
    def _dead_memory(self) -> DeadMemory | None:
        return dead_memory(self._function)

    def fits(self, tile: SSAValue, op: Operation) -> bool:
        """Whether a tile goes through memory for an operation.

        In one piece through what a kernel may have without asking for more at its launch, or in
        rounds through what the operation finds dead, if it accesses several registers at once then:
        for less, so many registers are not worth it. Where a tile is streamed, what it is made of
        may go through dead memory, which is taken from nobody.
        """
        if not op.results and is_streamed(tile):
            converted = list(_converted_values(tile))
            return bool(converted) and all(self._finds(made, op) for made in converted)
        return _bytes(tile) <= self._left or self._finds(tile, op)

    def _finds(self, tile: SSAValue, op: Operation) -> bool:
        """Whether an operation finds memory dead through which a tile goes."""
        dead = self._dead_memory
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


def _taken_bytes(function: func.FuncOp) -> int:
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


def _converted_values(tile: SSAValue) -> Iterator[SSAValue]:
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
            yield from _converted_values(value)


def is_streamed(tile: SSAValue, ends: dict[Operation, Operation | None] | None = None) -> bool:
    """Whether a tile is made fragment by fragment of what is loaded for it.

    To convert it, all of that would have to be in registers at once. `ends` is as in `defers`.
    """
    op, ends = tile.owner, {} if ends is None else ends
    if not isinstance(op, FragmentwiseInterface) or not defers(op, ends):
        return False
    tiles = [v for v in op.operands if frag.held_tile(v.type) is not None]
    return isinstance(op, frag.LoadOp) or any(is_streamed(v, ends) for v in tiles)
