"""Products whose sums several blocks add up: what `split_k` and `stream_k` go together with, and
how many parts there may be where a program gives memory for them and no number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, i32
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_name
from fragir.dialects.frag.atomics import KINDS
from fragir.dialects.frag.types import is_shared
from fragir.dialects.limits import MOST_PARTS
from fragir.dialects.narrow import memref_type


class SummedInParts(Protocol):
    """What is asked of a `frag.matmul` here."""

    @property
    def split_k(self) -> Attribute | None: ...
    @property
    def stream_k(self) -> Attribute | None: ...
    @property
    def extra(self) -> Sequence[SSAValue]: ...
    @property
    def epilogue(self) -> Region | None: ...
    def parts(self) -> tuple[int, bool] | None: ...
    def through(self) -> tuple[SSAValue, SSAValue] | tuple[()]: ...
    def accumulator(self) -> Attribute: ...
    def memories(
        self,
    ) -> tuple[MemRefType[Attribute], MemRefType[Attribute], MemRefType[Attribute]]: ...


def check_parts(op: SummedInParts) -> None:
    """VerifyException where the parts of a product's sums cannot come together."""
    if op.split_k is not None and op.stream_k is not None:
        raise VerifyException("frag.matmul: sums are cut by split_k or by stream_k, not by both")
    count, even = op.parts() or (1, False)
    if count < (2 if even else 1):
        name, least = ("stream_k", 2) if even else ("split_k", 1)
        raise VerifyException(f"frag.matmul: {name} is {count}, it must be {least} or more")
    if op.through():
        _check_through(op, count)
    elif not adds_to_old(op):
        raise VerifyException(
            "frag.matmul: parts are added to C by atomics only for the epilogue `sum + old`; write "
            "that and set C before, or give memory for the parts: through %partial, %counts"
        )
    elif op.accumulator() != op.memories()[2].element_type:
        raise VerifyException(
            f"frag.matmul: parts of {op.accumulator()} are not added to a C of "
            f"{op.memories()[2].element_type}; give memory for them: through %partial, %counts"
        )
    elif element_name(op.accumulator()) not in KINDS["add"]:
        raise VerifyException(f"frag.matmul: no atomic adds {op.accumulator()}")


def _check_through(op: SummedInParts, count: int) -> None:
    partial, counts = (memref_type(value.type) for value in op.through())
    c, total = op.memories()[2], op.accumulator()
    shape = c.get_shape()
    first = count if op.parts() is not None else DYNAMIC_INDEX
    wanted = "x".join("?" if n == DYNAMIC_INDEX else str(n) for n in (first, *shape))
    given = partial.get_shape()
    if (
        partial.element_type != total
        or is_shared(partial)
        or len(given) != len(shape) + 1
        or (given[0] != DYNAMIC_INDEX and given[0] < count)
        or any(x != y and DYNAMIC_INDEX not in (x, y) for x, y in zip(given[1:], shape))
    ):
        raise VerifyException(
            f"frag.matmul: parts of sums go through memref<{wanted}x{total}>, not {partial}"
        )
    if counts.element_type != i32 or is_shared(counts) or len(counts.get_shape()) != len(shape):
        raise VerifyException(
            f"frag.matmul: the parts of each tile of C are counted in a memref of i32 with "
            f"{len(shape)} dimensions, not in {counts}"
        )


def most_parts(op: SummedInParts) -> int:
    """How many parts a sum of a product may have: as many as it says, else as it gives memory for,
    or `MOST_PARTS` where that is as large as a launch makes it."""
    parts, memory = op.parts(), op.through()
    if parts is not None or not memory:
        return 1 if parts is None else parts[0]
    given = memref_type(memory[0].type).get_shape()[0]
    return MOST_PARTS if given == DYNAMIC_INDEX else max(1, min(given, MOST_PARTS))


def adds_to_old(op: SummedInParts) -> bool:
    """Whether the epilogue is the sum plus the old value of C, and nothing else."""
    if op.epilogue is None or op.extra:
        return False
    block = op.epilogue.block
    add = block.first_op
    if not isinstance(add, arith.AddfOp | arith.AddiOp) or add.next_op is not block.last_op:
        return False
    assert block.last_op is not None
    return set(add.operands) == set(block.args) and block.last_op.operands[0] is add.result
