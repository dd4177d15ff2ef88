"""Rows, selections and steps: what all of the machine is said in.

A *row* is one register of every resident warp: an array [warp, lane]. A *step* is one decoded
instruction: it is called with the warps that stand there (`sel`, a slice or an index array) and
the lanes among them that take part (`mask`, None where all do).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import U32, Array, Bools

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Row: TypeAlias = Array
Select: TypeAlias = slice | npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_] | None
Step: TypeAlias = Callable[[Select, Mask], None]
LANES = 32
LANE_BITS: U32 = np.left_shift(np.uint32(1), np.arange(LANES, dtype=np.uint32))


def is_slice(sel: Select) -> TypeIs[slice]:
    """Whether the selected warps are neighbours (rows are then views, not copies)."""
    return type(sel) is slice


def number_of(sel: Select) -> int:
    """How many warps a selection has."""
    return sel.stop - sel.start if is_slice(sel) else len(sel)


def store(row: Row, sel: Select, mask: Mask, value: npt.ArrayLike) -> None:
    """Write `value` into the selected lanes of a row."""
    if mask is None:
        row[sel] = value
    elif is_slice(sel):
        np.copyto(row[sel], value, where=mask, casting="unsafe")
    else:
        row[sel] = np.where(mask, value, row[sel])


def active(sel: Select, mask: Mask, warps: int) -> Bools:
    """The mask written out: [selected warps, 32]."""
    if mask is not None:
        return mask
    count = len(range(*sel.indices(warps))) if is_slice(sel) else len(sel)
    return np.ones((count, LANES), np.bool_)
