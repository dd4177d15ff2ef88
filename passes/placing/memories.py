"""Shared matrices whose rows may lie in another order than their numbers, and who forbids it.

The columns of a product whose B lies in shared memory are B's rows there: in which order they are
counted is free where memory is allocated here without a layout of its own, and where all who touch
it, or a view of it, take rows in any order (`Accesses.takes_rows_in_any_order`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.interfaces import accesses_of, root_of
from fragir.dialects.narrow import is_memref, memref_type


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
