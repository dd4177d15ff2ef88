"""How undefined bits spread through single instructions.

A row of undefined bits has a one where the register's bit is not known. Functions here take and
give such rows; `values` are what the machine's own registers hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fragir.ptx.tree import Instruction

_PAIRS = {"f16x2", "bf16x2", "u16x2", "s16x2"}


def logic(table: int, values: Sequence[Any], undefined: Sequence[Any]) -> Any:
    """Bits of the result that depend on an undefined bit."""
    ones = [v | u for v, u in zip(values, undefined, strict=True)]
    zeros = [~v | u for v, u in zip(values, undefined, strict=True)]
    count = len(values)
    possible: list[Any] = [None, None]
    for row in range(1 << count):
        # Operand i is bit count-1-i of the row; tables are written for three operands.
        minterm = row << (3 - count)
        bit = table >> minterm & 1
        term: Any = None
        for index in range(count):
            part = ones[index] if row >> (count - 1 - index) & 1 else zeros[index]
            term = part if term is None else term & part
        possible[bit] = term if possible[bit] is None else possible[bit] | term
    if possible[0] is None or possible[1] is None:
        return np.zeros_like(undefined[0])
    return possible[0] & possible[1]


def lanes_of(ins: Instruction, widths: Sequence[int]) -> int:
    """Independent parts of an arithmetic instruction: 2 where it works on halves."""
    return 2 if ins.opcode[-1] in _PAIRS and all(w == 32 for w in widths) else 1


def spread(rows: Sequence[Any], parts: int, dtype: Any) -> Any:
    """All ones in every part of the result for which any operand has an undefined bit there."""
    if parts == 2:
        total = rows[0]
        for row in rows[1:]:
            total = total | row
        low = (total & np.uint32(0xFFFF)) != 0
        high = (total >> np.uint32(16)) != 0
        return low * np.uint32(0xFFFF) | high * np.uint32(0xFFFF0000)
    bad = rows[0] != 0
    for row in rows[1:]:
        bad = bad | (row != 0)
    return full(bad, dtype)


def full(bad: Any, dtype: Any) -> Any:
    """All ones where `bad`, else zero."""
    dtype = np.dtype(dtype)
    return bad if dtype == np.bool_ else bad * dtype.type((1 << 8 * dtype.itemsize) - 1)
