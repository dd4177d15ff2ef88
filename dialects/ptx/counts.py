"""What a launch must keep below 2^31: `ptx.counts = [[4, "m", "n"]]` is 4 m n."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

COUNTS = "ptx.counts"


def counts_of(function: FuncOp) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Numbers and the names of sizes, each a product."""
    found: list[tuple[int, tuple[str, ...]]] = []
    noted = function.attributes.get(COUNTS, ArrayAttr([]))
    for count in cast("ArrayAttr[ArrayAttr[Attribute]]", noted).data:
        parts = count.data
        numbers = [int(part.value.data) for part in parts if isinstance(part, IntegerAttr)]
        names = tuple(part.data for part in parts if isinstance(part, StringAttr))
        found.append((numbers[0] if numbers else 1, names))
    return tuple(found)
