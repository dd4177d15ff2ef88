"""What checks look at in straight-line runs, as the compiled library takes it: source/watch.h."""

from __future__ import annotations

import ctypes

import numpy as np

#: One instruction's accesses. Where there are two numbers: of global memory, of shared memory.
WATCHED = np.dtype(
    [
        *((name, "i8") for name in ("site", "races", "priced", "cached", "updates")),
        *((name, "i8") for name in ("ledger", "values")),
        *((name, "i8") for name in ("space", "low", "high")),
        *((name, "i8", 2) for name in ("paid", "needed", "excess", "warp")),
    ]
)


class WatchedLaunch(ctypes.Structure):
    """`Checks` there."""

    buffers: int
    resident: int
    now: int
    lowest: int
    logs: int
    first_warp: int
    joins: int
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("knowledge", "shared", "ledgers")),
        ("buffers", ctypes.c_int64),
        ("files", ctypes.c_uint64),
        ("widths", ctypes.c_int64),
        *((name, ctypes.c_uint64) for name in ("shared_bits", "local_bits")),
        *((name, ctypes.c_uint64) for name in ("positions", "lanes", "patterns", "bytes")),
        *((name, ctypes.c_uint64) for name in ("floor", "uneven", "shared_home", "local_home")),
        *((name, ctypes.c_int64) for name in ("warps", "resident", "now", "lowest", "logs")),
        *((name, ctypes.c_int64) for name in ("first_warp", "joins")),
        ("rows", ctypes.c_uint64),
    )
