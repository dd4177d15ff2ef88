"""Conversions alone in a loop: two halves of an area, one for turns of even number, one for odd.

A turn may then store before all threads have loaded what the turn before it stored. What the turn
before that one stored, in the same half, they have loaded: they have come past the barrier between
stores and loads of the turn between. So a turn waits once, not twice. The half is a bit of the
loop's counter, moved to where it is one of the address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from fragir.dialects import ptx
from fragir.dialects.constants import constant_of, index_constant

AccessOp: TypeAlias = ptx.LoadOp | ptx.StoreOp | ptx.LdmatrixOp | ptx.StmatrixOp


def takes_turns(accesses: Sequence[AccessOp], entry: Block) -> bool:
    """Whether accesses may: of each turn of a loop that is run through once, whose counter has a
    bit that changes from turn to turn. Pointers are computed before the loop.
    """
    loop = accesses[0].parent_op()
    if not isinstance(loop, scf.ForOp) or loop.parent is not entry:
        return False
    if not isinstance(loop.lb.type, IndexType):
        return False
    first, step = (constant_of(value) for value in (loop.lb, loop.step))
    if first is None or step is None or step <= 0 or step & (step - 1) or first % step:
        return False
    body = loop.body.block
    pointers = (access.pointer.owner for access in accesses)
    return all(access.parent is body for access in accesses) and not any(
        owner is body or (not isinstance(owner, Block) and owner.parent is body)
        for owner in pointers
    )


def half_of(size: int) -> int:
    """The bytes of a half for so many: a power of two, so that a bit chooses between them."""
    return 1 << (size - 1).bit_length()


def take_turns(accesses: Sequence[AccessOp], half: int) -> None:
    """Moves accesses by `half` bytes in every second turn of their loop."""
    first = accesses[0]
    loop, body = first.parent_op(), first.parent
    assert isinstance(loop, scf.ForOp)
    assert body is not None
    step = constant_of(loop.step)
    assert step is not None
    counter, distance = body.args[0], half.bit_length() - step.bit_length()
    made = [index_constant(abs(distance)), index_constant(half)]
    move = arith.ShLIOp if distance >= 0 else arith.ShRUIOp
    moved = move(counter, made[0].result)
    chosen = arith.AndIOp(moved.result, made[1].result)
    pointers: dict[SSAValue, ptx.OffsetOp] = {}
    for access in accesses:
        pointer = access.pointer
        if pointer not in pointers:
            pointers[pointer] = ptx.OffsetOp(pointer, chosen.result)
        access.operands[list(access.operands).index(pointer)] = pointers[pointer].result
    for op in (*made, moved, chosen, *pointers.values()):
        op.location = first.location
        body.insert_op_before(op, first)
