"""Straight-line runs as the compiled library takes them: source/straight.h for numpy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragir.emulator.native import library

LANES, CHUNK = 32, 8
GROUP = LANES * CHUNK
DIRECT, STRIDED, INVERTED = 0, 1, 2
ELEMENTS, COMPARE, SHUFFLE, VOTE, LOAD, STORE = range(6)
SHUFFLES = {"up": 0, "down": 1, "bfly": 2, "idx": 3}
VOTES = {"all": 0, "any": 1, "uni": 2, "ballot": 3}
SPACES = ("global", "shared", "local", "generic")
COMBINE = {"and": 1, "or": 2, "xor": 3}
#: Elements of a load or store, and sources of another operation, at most.
MOST = 8

OPERAND = np.dtype(
    [("base", "u8"), ("warp", "i8"), ("lane", "i4"), ("size", "i2"), ("how", "i2")], align=True
)
CODE = np.dtype(
    [
        *((name, "i4") for name in ("kind", "function", "number", "first", "count", "times")),
        *((name, "i4") for name in ("combine", "space", "width", "signed", "watched", "doubt")),
        ("immediate", "i8"),
        *((name, OPERAND) for name in ("guard", "out", "other")),
    ],
    align=True,
)
MEMORY = np.dtype(
    [
        *((name, "u8") for name in ("globals", "shared", "local", "starts", "ends")),
        *((name, "u8") for name in ("shared_home", "local_home", "totals", "read", "written")),
        *((name, "i8") for name in ("unit_shift", "globals_size")),
        *((name, "i8") for name in ("buffers", "shared_size", "local_size", "cluster")),
        *((name, "u8") for name in ("global_base", "shared_window", "local_window")),
    ],
    align=True,
)
PIECE = np.dtype(
    [
        *((name, "u8") for name in ("codes", "operands")),
        *((name, "i8") for name in ("count", "instructions", "ending", "position")),
        *((name, "i8") for name in ("size", "together", "doubt")),
        *((name, "i8") for name in ("next", "to", "next_position", "to_position")),
        ("branch", OPERAND),
    ],
    align=True,
)
OTHER, FALLING, JUMP, BRANCH, BARRIER = range(5)


class Walk(ctypes.Structure):
    """What one call may do, and where it came to."""

    pieces: int
    memory: int
    runs: int
    taken: int
    checks: int
    budget: int
    left: int
    others: int
    whole: int
    piece: int
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("pieces", "memory", "runs", "taken", "checks")),
        *((name, ctypes.c_int64) for name in ("budget", "left", "others", "whole", "piece")),
    ]


class RowOperand(NamedTuple):
    """A row of registers as the library reads it, and what keeps its memory alive.

    `file`: the register file that it is in (its width), where another launch has it at the same
    place in that; 0: other launches can take it as it is; -1: they cannot.
    """

    fields: tuple[int, int, int, int, int]
    keeps: object
    file: int = -1


NO_ROW = RowOperand((0, 0, 0, 0, 0), None, 0)


def row_operand(row: npt.NDArray[np.generic], warps: int, inverted: bool = False) -> RowOperand:
    """A row [warp, lane] of any strides; `inverted`: a predicate that is read through `!`."""
    size = row.dtype.itemsize
    if row.shape != (warps, LANES):
        row = np.broadcast_to(row, (warps, LANES))
    warp, lane = row.strides
    if not inverted and warp == 0 and lane == 0:  # a constant, for all warps of a chunk
        row = np.full(GROUP, row[0, 0])
        lane = size
    direct = not inverted and lane == size and warp in (0, LANES * size)
    if direct and warp == 0 and row.size != GROUP:
        direct = False
    how = INVERTED if inverted else DIRECT if direct else STRIDED
    base: int = row.__array_interface__["data"][0]
    return RowOperand((base, warp, lane, size, how), row)


class StraightFunctions(NamedTuple):
    """What the library has: its call, and its functions' numbers by what they compute."""

    call: Callable[..., int]
    numbers: dict[str, int]


def functions() -> StraightFunctions | None:
    """The compiled library's; None where it is not in use."""
    return None if library.quick() is None else _functions()


@cache
def _functions() -> StraightFunctions:
    found = library.quick()
    assert found is not None
    found.fragir_straight_names.restype = ctypes.c_char_p
    names: bytes = found.fragir_straight_names()
    call: Any = found.fragir_straight
    call.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2]
    call.argtypes += [ctypes.c_int64] * 2
    call.restype = ctypes.c_int64
    return StraightFunctions(
        call, {name: at for at, name in enumerate(names.decode().splitlines())}
    )


def address_of(array: npt.NDArray[np.generic]) -> int:
    """The address of an array's first element."""
    if array.dtype.names is not None:  # of a structure, the interface lists all fields
        return array.ctypes.data
    address: int = array.__array_interface__["data"][0]
    return address


def operands_array(operands: Sequence[RowOperand]) -> npt.NDArray[np.void]:
    """Operands beside each other, as the library takes them."""
    return np.array([operand.fields for operand in operands] or [NO_ROW.fields], OPERAND)


# -- watched ---------------------------------------------------------------------------------------
# What checks look at in straight-line runs, as the compiled library takes it: source/watch.h.

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
