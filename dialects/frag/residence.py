"""How many blocks of a kernel run on one multiprocessor at a time."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp

from fragir.errors import FragirError

BLOCKS_PER_SM = "frag.blocks_per_sm"
"""The attribute of a function with that number, at least: it bounds the registers of a thread."""
MOST_RESIDENT = 32
"""What the largest machines hold (CUDA programming guide, technical specifications per compute
capability: maximum number of resident blocks per SM)."""


def blocks_per_sm(function: FuncOp) -> int | None:
    """The blocks that a multiprocessor is to hold at least; None where a function does not say it.

    FragirError for what is no such number.
    """
    attribute = function.attributes.get(BLOCKS_PER_SM)
    if attribute is None:
        return None
    if isinstance(attribute, IntegerAttr) and 1 <= attribute.value.data <= MOST_RESIDENT:
        return attribute.value.data
    raise FragirError(
        f"{BLOCKS_PER_SM} = {attribute} is no number of blocks from 1 to {MOST_RESIDENT}",
        hint=f"write {BLOCKS_PER_SM} = 2 : i64",
    )
