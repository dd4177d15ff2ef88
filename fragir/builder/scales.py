"""Scales of a `k.matmul`, as its arguments say them."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, f32, i64
from xdsl.ir import SSAValue

from fragir.builder.checks import positive, whole
from fragir.builder.trace import Trace
from fragir.builder.values import Memory, Scalar
from fragir.dialects import frag

Scale: TypeAlias = Memory | Scalar | float
"""One f32 for a whole operand, or memory with more."""
Blocks: TypeAlias = tuple[int, int] | None


def scale_value(trace: Trace, given: Scale | None, name: str) -> SSAValue | None:
    """A scale in the IR; an error at the user's line for what is none."""
    if given is None:
        return None
    return trace.use(given) if isinstance(given, Memory) else trace.scalar(given, f32, name)


def say_blocks(
    op: frag.MatmulOp, blocks: tuple[Blocks, Blocks], transposed: tuple[bool, bool]
) -> None:
    """Notes for which elements of A and B a scale is, and how memory holds them."""
    for operand, block, turned in zip("ab", blocks, transposed, strict=True):
        if block is not None:
            extents = positive(block, 2, f"block_{operand}")
            op.properties[f"{operand}_block"] = DenseArrayBase.from_list(i64, extents)
        if turned:
            op.properties[f"{operand}_scale_transposed"] = UnitAttr()


def say_promotion(op: frag.MatmulOp, promote: int | None) -> None:
    """Notes after how many of K a partial sum is added."""
    if promote is not None:
        op.attributes["promote"] = IntegerAttr(whole(promote, "promote", 1), i64)
