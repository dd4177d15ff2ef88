"""What tcgen05 has been asked for: work in flight, commits, accesses, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import I64, U8, U32, Bools
from fragir.emulator.tensor_cores.tcgen05 import TensorProduct
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


class Multiply(Protocol):
    """As `TensorProduct.multiply`."""

    def __call__(
        self,
        a: U32,
        b: U32,
        c: U32,
        kept: I64 | None = None,
        scales: tuple[U32, U32] | None = None,
    ) -> U32: ...


@dataclass(frozen=True, slots=True)
class ProductPart:
    """What one mma computes of one block's D: that in lanes `rows` and `columns`.

    `a`, `b`, `c`, `kept`, `scales`: as `TensorProduct.multiply` takes them; `before`: the words
    that are there, `stays`: the rows of them that are not written (None: no row).
    """

    product: TensorProduct
    block: int
    rows: I64
    columns: slice
    a: U32
    b: U32
    c: U32
    kept: I64 | None
    scales: tuple[U32, U32] | None
    before: U32
    stays: Bools | None
    shift: int

    def put(self, words: U32, result: U32) -> None:
        """Writes D to words `[blocks, 128, 512]`."""
        if self.stays is not None:
            result = np.where(self.stays[:, None], self.before, result)
        words[self.block][self.rows, self.columns] = result


@dataclass(eq=False, slots=True)
class TensorWork:
    """An mma, cp or shift that a thread (`lane`, flat) has issued.

    Either `move` does it, with the bytes of shared memory and the words of tensor memory, or it is
    made of products: `parts` gives them, from the same and the real words, which say what is sparse
    (for planes beside the machine). `writes`, `reads`: where in tensor memory; `shared`: positions
    of the chunks of 16 bytes that it reads; `whole`: whether all of `writes` is written; `kind`:
    what a queue orders without a wait (`checks/races/tensor_memory.py`).
    """

    form: TensorStatement
    lane: int
    group: int
    kind: tuple[object, ...]
    move: Callable[[U8, U32], None] | None
    parts: Callable[[U8, U32, U32], Iterator[ProductPart]] | None
    writes: tuple[TensorRegion, ...]
    reads: tuple[TensorRegion, ...]
    shared: I64
    whole: bool = True

    def run(self, shared: U8, words: U32, real: U32, multiply: Multiply | None = None) -> None:
        """Does it; `multiply`: in place of the arithmetic."""
        if self.move is not None:
            self.move(shared, words)
        elif self.parts is not None:
            for part in self.parts(shared, words, real):
                compute = part.product.multiply if multiply is None else multiply
                part.put(words, compute(part.a, part.b, part.c, part.kept, part.scales))


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
