"""What tcgen05 has been asked for: work in flight, commits, accesses, and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from fragir.emulator.numbers.types import I64, U8, U32
from fragir.ptx import tree


@dataclass(frozen=True, eq=False, slots=True)
class TensorRegion:
    """Lanes and neighbouring columns of the tensor memory of a resident block."""

    block: int
    lanes: I64
    first: int
    count: int

    @property
    def columns(self) -> slice:
        return slice(self.first, self.first + self.count)

    def of(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What an array `[blocks, 128, 512]` has there, a copy."""
        return cells[self.block][self.lanes, self.columns]

    def put(self, cells: npt.NDArray[Any], value: npt.ArrayLike) -> None:
        cells[self.block][self.lanes, self.columns] = value


@dataclass(frozen=True, slots=True)
class TensorStatement:
    """A statement of the text, and its file, line and column."""

    instruction: tree.Instruction
    place: tuple[str | None, int | None, int | None]

    @property
    def text(self) -> str:
        return f"{self.instruction.mnemonic} of line {self.place[1]}"


@dataclass(eq=False, slots=True)
class TensorWork:
    """An mma, cp or shift that a thread (`lane`, flat) has issued.

    `run` does it: with the bytes of shared memory and the words of tensor memory that it reads and
    writes, and the real words, which say what is sparse. `spread` does the same with marks in their
    place. `writes`, `reads`: where in tensor memory; `shared`: positions of the chunks of 16 bytes
    that it reads; `whole`: whether all of `writes` is written; `kind`: what a queue orders without
    a wait (`checks/races/tensor_memory.py`).
    """

    form: TensorStatement
    lane: int
    group: int
    kind: tuple[object, ...]
    run: Callable[[U8, U32, U32], None]
    spread: Callable[[U8, U32, U32], None]
    writes: tuple[TensorRegion, ...]
    reads: tuple[TensorRegion, ...]
    shared: I64
    whole: bool = True


@dataclass(eq=False, slots=True)
class TensorCommit:
    """A commit: arrives at mbarriers (positions) when what `lane` has issued before is done."""

    form: TensorStatement
    lane: int
    group: int
    signals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorAccess:
    """A ld or st of one warp: the cells `[elements, 32]` of its block."""

    form: TensorStatement
    warp: int
    loads: bool
    lanes: I64
    columns: I64
