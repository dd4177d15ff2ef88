"""Shared memory that nothing reads or writes any more: conversions behind that may have it.

The stages of a product are such memory in its epilogue. What is counted is memory that a function
allocates at its top level, whose last access is known, and whose copies are waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from xdsl.dialects import func, memref
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.memory_layout import own_part
from fragir.dialects.shorthands import memref_type
from fragir.passes.remarks import align_buffer

HELD = ("frag.ring", "frag.slot", "frag.in_flight")
"""Types of rings, what they hold, and products under way."""


class DeadMemory(NamedTuple):
    """Allocations that stand side by side, and the operation of the function's top level behind
    which all of their accesses are over, in every thread for itself."""

    allocations: tuple[Operation, ...]
    behind: Operation

    @property
    def bytes(self) -> int:
        """How much that is."""
        return sum(map(_bytes, self.allocations))

    def is_dead_at(self, op: Operation) -> bool:
        """Whether an operation, in a loop or not, comes behind."""
        block = self.behind.parent
        assert block is not None
        at = _at(op, block)
        return at is not None and self.behind.is_before_in_block(at)


def bytes_of_type(memory: Attribute) -> int:
    """The bytes of static memory in a block."""
    type_ = own_part(memref_type(memory))
    return prod(type_.get_shape()) * ptx.bits(type_.element_type) // 8


def dead_memory(function: func.FuncOp) -> DeadMemory | None:
    """The largest piece that is dead before the function ends; None where there is none."""
    block = function.body.block
    runs: list[list[tuple[Operation, Operation]]] = [[]]
    for op in block.ops:
        if isinstance(op, memref.AllocOp):
            behind = _over(op, block)
            if behind is None:
                runs.append([])
            else:
                runs[-1].append((op, behind))
        elif isinstance(op, frag.RingOp):
            runs.append([(op, behind)] if (behind := _after_ring(op, function)) else [])
            runs.append([])
    found = [_dead_memory(run) for run in runs if run]
    return max(found, key=lambda dead: dead.bytes, default=None)


def _dead_memory(run: Sequence[tuple[Operation, Operation]]) -> DeadMemory:
    last = run[0][1]
    for _, behind in run:
        if last.is_before_in_block(behind):
            last = behind
    return DeadMemory(tuple(alloc for alloc, _ in run), last)


def _bytes(op: Operation) -> int:
    if isinstance(op, frag.RingOp):
        return sum(align_buffer(op.count * bytes_of_type(part)) for part in op.ring.type.parts)
    return align_buffer(bytes_of_type(op.results[0].type))


def _after_ring(ring: frag.RingOp, function: func.FuncOp) -> Operation | None:
    """The operation behind which no slot of a ring is held and no product under way.

    None where other threads or the copy engine fill it: who has it at the end, this does not know.
    """
    last: Operation | None = None
    for op in function.body.block.ops:
        for inner in op.walk():
            if inner.name == "frag.roles" or "tma" in inner.properties:
                return None
            types = [v.type for v in (*inner.operands, *inner.results)]
            if any(t.name in HELD for t in types):
                last = op
    return last if last is not ring else None


def _over(alloc: memref.AllocOp, block: Block) -> Operation | None:
    """The operation of the block behind which memory is not accessed; None where there is none."""
    last: Operation = alloc
    copied = False
    for user in _users(alloc.memref):
        at = None if user is None else _at(user, block)
        if user is None or at is None:
            return None
        if last.is_before_in_block(at):
            last = at
        copied = copied or (isinstance(user, frag.CopyOp) and user.is_async is not None)
    if last is alloc:
        return None
    if copied:
        return _wait_behind(last)
    return last


def _users(memory: SSAValue) -> Iterator[Operation | None]:
    """What accesses memory; None for an operation of which it is not known until when."""
    for use in memory.uses:
        op = use.operation
        if isinstance(op, frag.ViewOp):
            yield from _users(op.matrix)
        elif isinstance(op, frag.LoadOp | frag.StoreOp) or _is_complete(op):
            yield op
        else:
            yield None


def _is_complete(op: Operation) -> bool:
    """Whether a product is not under way, and a copy one that `frag.wait` waits for."""
    if isinstance(op, frag.CopyOp):
        return op.tma is None
    return op.name == "frag.wgmma" and all(type(r.type) is frag.TileType for r in op.results)


def _wait_behind(op: Operation | None) -> Operation | None:
    """The first operation behind that waits for all copies."""
    while op is not None:
        op = op.next_op
        if isinstance(op, frag.WaitOp) and op.pending.value.data == 0:
            return op
    return None


def _at(op: Operation, block: Block) -> Operation | None:
    """The operation of a block that another is in."""
    found: Operation | None = op
    while found is not None and found.parent is not block:
        found = found.parent_op()
    return found
