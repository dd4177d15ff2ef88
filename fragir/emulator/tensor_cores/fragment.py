"""Fragments: from registers `[n, W, lanes]` to matrix elements `[..., W]` and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import distinct
from fragir.emulator.tensor_cores.maps import Formula, Ints
from fragir.emulator.tensor_cores.types import RegisterWords
from fragir.errors import FragirError

Codes = npt.NDArray[np.unsignedinteger[Any]]


class Fragment:
    """Where each element of a matrix lies in the registers of a warp (or warpgroup).

    `coordinates`: one array `[elements, lanes]` per dimension; `extents`: the matrix's extents,
    in the same order. `bits`: of one element; elements fill a register from its low bits up.
    Raises FragirError where the coordinates do not name every element exactly once.
    """

    def __init__(
        self, coordinates: Sequence[Ints], extents: tuple[int, ...], bits: int, width: int = 32
    ) -> None:
        elements, self.lanes = coordinates[0].shape
        self.extents = extents
        self.width = width
        self.per = width // bits if bits < width else 1
        self.count = -(-elements // self.per)
        self.mask = (1 << bits) - 1
        self.bits = bits
        place = np.ravel_multi_index(tuple(coordinates), extents)  # [elements, lanes]
        size = math.prod(extents)
        if place.size != size or distinct(place).size != size:
            raise FragirError(f"a fragment of extents {extents} is no one-to-one map")
        element, lane = np.indices(place.shape)
        self.word = np.empty(size, np.intp)  # which word (register * lanes + lane) holds it
        self.word[place] = element // self.per * self.lanes + lane
        dtype = np.uint64 if width == 64 else np.uint32
        self.shift = np.empty(size, dtype)
        self.shift[place] = element % self.per * bits
        # Where the parts of a word come from: [per][count * lanes].
        parts = place.reshape(self.count, self.per, self.lanes).transpose(1, 0, 2)
        self.parts = [np.ascontiguousarray(part).reshape(-1) for part in parts]

    def load(self, registers: RegisterWords) -> Codes:
        """Registers `[count, W, lanes]` -> elements' bits `[*extents, W]`."""
        count, warps, lanes = registers.shape
        words = registers.transpose(0, 2, 1).reshape(count * lanes, warps)
        codes = words[self.word]
        if self.per > 1:
            codes >>= self.shift[:, None]
            codes &= codes.dtype.type(self.mask)
        return codes.reshape(*self.extents, warps)

    def store(self, codes: Codes) -> RegisterWords:
        """Elements' bits `[*extents, W]` -> registers `[count, W, lanes]`."""
        warps = codes.shape[-1]
        flat = codes.reshape(-1, warps)
        words = flat[self.parts[0]]
        for number, part in enumerate(self.parts[1:], 1):
            words |= flat[part] << words.dtype.type(number * self.bits)
        return np.ascontiguousarray(words.reshape(self.count, self.lanes, warps).transpose(0, 2, 1))


def fragment(
    formula: Formula,
    names: Sequence[str],
    extents: tuple[int, ...],
    bits: int,
    *,
    width: int = 32,
    lanes: int = 32,
    elements: int | None = None,
) -> Fragment:
    """The fragment whose dimensions are the formula's `names`, e.g. `("col", "row")`.

    `elements`: only so many of the formula's elements (wgmma accumulators of smaller N).
    """
    return Fragment(
        [formula.evaluate(name, lanes)[:elements] for name in names], extents, bits, width
    )


def packed_column(formula: Formula, per: int) -> Ints:
    """Column among the kept elements of a sparse A, from the ISA's `firstcol`: `[elements, 32]`.

    A register's elements are the kept ones, in order, of columns firstcol to lastcol, and half of
    all columns are kept.
    """
    first = formula.evaluate("firstcol")
    return first // 2 + np.arange(formula.elements)[:, None] % per
