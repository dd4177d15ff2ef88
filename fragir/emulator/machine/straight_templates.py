"""Straight-line runs of a program for the next launch of it: only addresses differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.straight import Ending, StraightCode
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import RowOperand

#: The first byte of each register file, by its width.
Bases: TypeAlias = Mapping[int, int]


@dataclass(slots=True)
class EncodedRun:
    """The operations of one run as the library takes them, for register files at `bases`.

    `files`: of guards, results and operands, which register file they are in; None where other
    launches have some of them elsewhere.
    """

    codes: npt.NDArray[Any]
    operands: npt.NDArray[Any]
    files: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None
    bases: Bases
    accesses: bool
    keeps: Any

    def moved(self, bases: Bases) -> EncodedRun:
        """The same for another launch."""
        assert self.files is not None
        change = changes(self.bases, bases)
        codes, operands = self.codes.copy(), self.operands.copy()
        for name, files in zip(("guard", "out", "other"), self.files[0], strict=True):
            codes[name]["base"] += change[files]
        operands["base"] += change[self.files[1]]
        return EncodedRun(codes, operands, self.files, bases, self.accesses, self.keeps)


def changes(old: Bases, new: Bases) -> npt.NDArray[np.uint64]:
    """How far each register file lies from where it was, by its width."""
    change = np.zeros(max(old) + 1, np.uint64)
    for width, base in old.items():
        change[width] = (new[width] - base) & 0xFFFFFFFFFFFFFFFF
    return change


def encode_run(
    encoded: Sequence[StraightCode],
    of: Sequence[int],
    numbers: Mapping[str, int],
    bases: Bases,
) -> EncodedRun:
    """Operations beside each other; `of`: of which instruction each of them is."""
    operands: list[RowOperand] = []
    rows: list[Any] = []
    for code, instruction in zip(encoded, of, strict=True):
        rows.append(
            (
                code.kind,
                numbers[code.function] if code.function else 0,
                instruction,
                len(operands),
                len(code.sources),
                code.times,
                code.combine,
                code.space,
                code.width,
                code.signed,
                code.watched,
                0,
                _signed(code.immediate),
                code.guard.fields,
                code.out.fields,
                code.other.fields,
            )
        )
        operands += code.sources
    results = [[code.guard.file, code.out.file, code.other.file] for code in encoded]
    read = [operand.file for operand in operands]
    files = None
    if min([*read, *(file for each in results for file in each)], default=0) >= 0:
        of_codes = np.array(results, np.intp).reshape(-1, 3).T
        files = of_codes, np.array(read or [0], np.intp)
    return EncodedRun(
        np.array(rows, native.CODE),
        native.operands_array(operands),
        files,
        bases,
        any(code.kind >= native.LOAD for code in encoded),
        encoded,
    )


@dataclass(slots=True)
class EncodedBlock:
    """A block as `StraightBlocks` has looked it through.

    `parts`: runs, with their first instruction and the one behind the last, counted in the block;
    `ending`: of a block that is one run.
    """

    positions: list[int]
    parts: list[tuple[int, int, EncodedRun]]
    ending: Ending | None
    bases: Bases

    def lasts(self) -> bool:
        """Whether other launches can take it."""
        ends = self.ending is None or self.ending.row.file >= 0
        return ends and all(run.files is not None for _, _, run in self.parts)

    def moved(self, bases: Bases) -> EncodedBlock:
        """The same for another launch."""
        ending = self.ending
        if ending is not None and ending.row.file > 0:
            file, (base, *rest) = ending.row.file, ending.row.fields
            base += bases[file] - self.bases[file]
            row = ending.row._replace(fields=(base, rest[0], rest[1], rest[2], rest[3]))
            ending = ending._replace(row=row)
        parts = [(first, end, run.moved(bases)) for first, end, run in self.parts]
        return EncodedBlock(self.positions, parts, ending, bases)


class EncodedBlocks(dict[tuple[int, ...], EncodedBlock]):
    """Blocks of a program by where they begin and the shape of the launch."""


class CheckedBlocks:
    """The blocks of a program by what checks look at: most launches with checks have the same."""

    KEPT = 8

    def __init__(self) -> None:
        self._known: dict[tuple[frozenset[int], frozenset[int]], EncodedBlocks] = {}

    def of(self, wrapped: Iterable[int], watched: Iterable[int]) -> EncodedBlocks:
        """Those of launches in which checks look at these instructions (`Decoder`)."""
        key = frozenset(wrapped), frozenset(watched)
        found = self._known.get(key)
        if found is None:
            if len(self._known) == self.KEPT:
                del self._known[next(iter(self._known))]
            found = self._known[key] = EncodedBlocks()
        return found


def _signed(value: int) -> int:
    """A number of 64 bits as int64 has it."""
    return ((value & 0xFFFFFFFFFFFFFFFF) ^ (1 << 63)) - (1 << 63)
