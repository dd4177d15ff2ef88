"""Structured sparsity: which columns of the full A the kept elements stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from fragir.emulator.numbers.types import U32
from fragir.emulator.tensor_cores.maps import Formula, Ints


@dataclass(frozen=True, slots=True)
class Granularity:
    """`chunk` adjacent columns keep `kept` groups of `group` adjacent elements.

    Per chunk the metadata is one nibble: bits 1:0 and 3:2 are the indices of the first and second
    kept group (PTX ISA 9.7.14.6.1).
    """

    chunk: int
    kept: int
    group: int


@cache
def granularity(element: str, packed: bool) -> Granularity:
    """`packed`: two or more 4-bit elements a byte (s4, u4, and e2m1 of mxf4 kinds)."""
    if element == "tf32":
        return Granularity(2, 1, 1)
    if packed:
        return Granularity(8, 2, 2)
    return Granularity(4, 2, 1)


class Metadata:
    """Reads the metadata register of an instruction: `formula` is its `e` entry."""

    def __init__(
        self, formula: Formula, how: Granularity, rows: int, columns: int, lanes: int = 32
    ) -> None:
        self.formula, self.how, self.rows, self.lanes = formula, how, rows, lanes
        self.chunks = columns // how.chunk
        self.kept = columns // 2
        #: Of so many instructions the lanes' registers hold the nibbles, 8 a register.
        self.selectors = 8 * lanes // (rows * self.chunks)
        self.places: dict[int, tuple[Ints, Ints]] = {}

    def place(self, selector: int) -> tuple[Ints, Ints]:
        """Lane and nibble of each [row, chunk]."""
        if selector not in self.places:
            row, chunk, selected = (
                self.formula.evaluate(name, self.lanes, F=selector)
                for name in ("row", "chunk", "selected")
            )
            nibble, lane = np.nonzero(selected)
            at = (row[nibble, lane], chunk[nibble, lane])
            lanes = np.full((self.rows, self.chunks), -1, np.int64)
            nibbles = np.zeros((self.rows, self.chunks), np.int64)
            lanes[at], nibbles[at] = lane, nibble
            assert (lanes >= 0).all(), "a chunk without metadata"
            self.places[selector] = lanes, nibbles
        return self.places[selector]

    def columns(self, e: U32, selector: int) -> Ints:
        """Metadata `[W, lanes]` -> the full column of every kept element: `[K/2, rows, W]`."""
        lane, nibble = self.place(selector)
        index = e[:, lane].astype(np.int64) >> (4 * nibble) & 0xF  # [W, rows, chunks]
        base = np.arange(self.chunks) * self.how.chunk
        # A 1:2 chunk's nibble (0b0100 or 0b1110) spans two 2-bit columns: the index is bit 1.
        choices = (
            [index >> 1 & 1]
            if self.how.kept == 1
            else [(index & 3) * self.how.group, (index >> 2) * self.how.group]
        )
        kept = np.stack(
            [base + choice + part for choice in choices for part in range(self.how.group)], -1
        )  # [W, rows, chunks, kept * group]
        return np.moveaxis(kept.reshape(*kept.shape[:2], self.kept), (0, 1, 2), (2, 1, 0))
