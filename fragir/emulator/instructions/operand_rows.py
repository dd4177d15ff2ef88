"""Rows that are made of others whenever they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from fragir.emulator.machine.lanes import Row


class Negated:
    """A predicate row read through `!`."""

    dtype = np.dtype(np.bool_)

    def __init__(self, row: Row) -> None:
        self.row = row
        self.shape = row.shape

    def __getitem__(self, sel: Any) -> Any:
        return ~self.row[sel]


class Framed:
    """The address of a variable of a recursive function: where the frame of the call is."""

    def __init__(self, frame: Row, offset: int, dtype: Any) -> None:
        self.frame, self.offset, self.dtype = frame, offset, np.dtype(dtype)
        self.shape = frame.shape

    def view(self, dtype: Any) -> Framed:
        return Framed(self.frame, self.offset, dtype)

    def __getitem__(self, sel: Any) -> Any:
        return (self.frame[sel] + np.uint64(self.offset)).astype(self.dtype)


class Moved:
    """Something with a constant added, as integers of its width."""

    def __init__(self, row: Any, amount: int) -> None:
        self.row, self.amount = row, amount
        self.dtype = row.dtype
        self.shape: tuple[int, ...] = getattr(row, "shape", ())  # a clock has none

    def view(self, dtype: Any) -> Moved:
        return Moved(self.row.view(dtype), self.amount)

    def __getitem__(self, sel: Any) -> Any:
        value = self.row[sel]
        whole = np.dtype(f"u{value.dtype.itemsize}")
        return (value.view(whole) + whole.type(self.amount)).view(value.dtype)


class Widened:
    """An address of 32 bits read as one of 64, so that a window can be added to it."""

    dtype = np.dtype(np.uint64)

    def __init__(self, row: Row) -> None:
        self.row, self.shape = row, row.shape

    def __getitem__(self, sel: Any) -> Any:
        return self.row[sel].astype(np.uint64)
