"""Products of sizes that a kernel counts through in 32 bits, and a launch holds to that.

Dimensions that memory has as one (`memref.collapse_shape`) are as many places as their product
says. What a launch must keep below 2^31 is noted on the function.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, SSAValue

from fragir.dialects.ptx.tensor_maps import COUNTS
from fragir.passes.lowering.arithmetic import Distance, Stride
from fragir.passes.lowering.state import LoweringState


def names_of_sizes(state: LoweringState) -> dict[SSAValue, str]:
    """The names of dynamic sizes, by the values that they are in the kernel."""
    known = state.of_subject.setdefault("sizes", {})
    return cast("dict[SSAValue, str]", known)


def note_count(state: LoweringState, size: Stride) -> None:
    """Notes that a launch must keep a product of sizes below 2^31, where these are arguments'."""
    names = names_of_sizes(state)
    if not isinstance(size, Distance) or any(factor not in names for factor in size.factors):
        return
    words: list[Attribute] = [StringAttr(names[factor]) for factor in size.factors]
    count = ArrayAttr([IntegerAttr(size.scale, i64), *words])
    known = cast("ArrayAttr[Attribute]", state.attributes.get(COUNTS, ArrayAttr([])))
    if count not in known.data:
        state.attributes[COUNTS] = ArrayAttr([*known.data, count])
