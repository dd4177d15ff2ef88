"""One access in a number of 63 bits: when, by whom, at which instruction, whether it is strong.

From high to low: the time, one bit of strength, the site of the instruction, and the column of the
lane or agent (`clocks.py`). Later records are greater ones; 0 is no access.
"""

from __future__ import annotations

from typing import Any

#: Times of asynchronous agents lie above all others: no floor covers them.
ASYNC = 1 << 29
#: Later than everything: a write that has not happened yet.
PENDING = (1 << 30) - 1

COLUMN_BITS, SITE_BITS = 16, 16
STRONG = 1 << (COLUMN_BITS + SITE_BITS)
TIME_SHIFT = COLUMN_BITS + SITE_BITS + 1
COLUMN_MASK = (1 << COLUMN_BITS) - 1
SITE_MASK = (1 << SITE_BITS) - 1
MBARRIER = COLUMN_MASK  # the column that holds a live mbarrier


def record(time: int, column: Any, site: int, strong: bool = False) -> Any:
    """A record; `column` may be an array, then there is one for each."""
    return (time << TIME_SHIFT) | (int(strong) << (TIME_SHIFT - 1)) | (site << COLUMN_BITS) | column


def site_of(rec: Any) -> Any:
    """The site of a record's instruction, or of those of an array."""
    return rec >> COLUMN_BITS & SITE_MASK


assert COLUMN_BITS > 5  # the lane is the lowest bits of a record
