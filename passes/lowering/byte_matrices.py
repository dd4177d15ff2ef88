"""Tiles of bytes that lie across the rows of shared memory: ldmatrix of pairs of bytes, and prmt.

The operands of products want four bytes along K in a register. Where memory runs along the other
dimension, n, those are in four rows. ldmatrix transposes pairs of bytes: lane (g, t) gets the bytes
n = 2g and 2g + 1 of two rows; `prmt` takes the registers of two such matrices apart, to those of
columns 2g and 2g + 1 with four rows each. So a lane must hold neighbours along n, as it does where
the instruction's n are counted as "8:2 2:1".

    rows of the two matrices: 0 1  4 5 | 10 11  14 15  and  2 3  6 7 | 8 9  12 13

Lanes t = 2, 3 have the two matrices exchanged, and exchange them back by their selector: eight rows
0 1 4 5 8 9 12 13 would meet in the banks of a swizzle, these do not. PTX ISA 9.2, section
9.7.14.5.15.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.layout import Layout, Mode, XorMode
from fragir.layout.modes import Axis, Point
from fragir.passes.lowering.memory import address
from fragir.passes.lowering.places import TilePlaces

PER = 4  # bytes of a register, and of two rows of a pair
ALIGNED = 16  # bytes of a row of a matrix
SELECTORS = (0x6420, 0x7531)  # of the first and the second column
EXCHANGED = 0x4444  # flips what is taken of the first and of the second register

Pair = tuple[int, int]  # two registers: of neighbouring columns


class ByteMatrices:
    """A tile of bytes whose rows, in memory, are not those of its registers."""

    def __init__(self, access: TilePlaces):
        self.access, self.ar, self.memory = access, access.ar, access.memory

    def load(self) -> list[SSAValue] | None:
        """The tile as one vector a chunk; None where it does not lie so."""
        pairs = self._pairs()
        if pairs is None:
            return None
        ar, access = self.ar, self.access
        words: dict[int, SSAValue] = {}
        position = 0
        while position < len(pairs):
            group = self._together(pairs[position : position + 2])
            position += len(group)
            loaded = self._matrices([self._origin(pair) for pair in group])
            for number, pair in enumerate(group):
                first, second = loaded[2 * number : 2 * number + 2]
                for register, selector in zip(pair, SELECTORS, strict=True):
                    chosen = ar.value(ar.xor(self._exchanged(), selector))
                    words[register] = ar.insert(ptx.PermuteOp(first, second, chosen)).result
        per_chunk, element = access.chunk // PER, self.memory.element
        chunks: list[SSAValue] = []
        for first in range(0, len(words), per_chunk):
            packed = ar.insert(ptx.PackOp([words[first + i] for i in range(per_chunk)])).result
            type_ = ptx.vector_type(element, access.chunk)
            chunks.append(ar.insert(ptx.BitcastOp(packed, type_)).result)
        return chunks

    # --- whether ------------------------------------------------------------------------------

    def _pairs(self) -> list[Pair] | None:
        """The registers two by two, in the order of the first; None where they do not fit."""
        access, memory = self.access, self.memory
        layout = access.layout
        if memory.bits != 8 or memory.layout is None or access.masked:
            return None
        if layout.exclusive or layout.where or len(access.tile.shape) != 2 or access.chunk % PER:
            return None
        along = memory.contiguous()
        if along is None or along < len(memory.shape) - 2:
            return None
        self.along, self.across = along, 2 * len(memory.shape) - 3 - along
        if not self._lanes_fit() or not self._aligned():
            return None
        return self._paired()

    def _lanes_fit(self) -> bool:
        """Whether lanes (g, t) are at columns 2g and rows 4t."""
        row, col = self.access.mapped[self.across], self.access.mapped[self.along]
        assert row is not None
        assert col is not None
        self.row, self.col = row, col
        lane = [m for m in self.access.layout.axis("lane").modes if m.size > 1]
        if len(lane) != 2 or [m.size for m in lane] != [4, 8]:
            return False
        t, g = (m.stride for m in lane)
        return (t[row], t[col], g[row], g[col]) == (PER, 0, 0, 2)

    def _aligned(self) -> bool:
        access, memory = self.access, self.memory
        if memory.run % ALIGNED or self.ar.divisor(access.indices[self.along]) % ALIGNED:
            return False
        warps = [m for a in access.layout.axes if a.name == "warp" for m in a.modes if m.size > 1]
        if self.ar.divisor(access.indices[self.across]) % ALIGNED:
            return False
        return all(m.stride[d] % ALIGNED == 0 for m in warps for d in (self.row, self.col))

    def _paired(self) -> list[Pair] | None:
        constants = self.access.constants
        registers: dict[Point, int] = {}
        for first in range(0, self.access.count, PER):
            start = constants[first]
            for e in range(PER):
                wanted = tuple(x + e * (d == self.across) for d, x in enumerate(start))
                if constants[first + e] != wanted:
                    return None
            registers[start] = first // PER
        pairs: list[Pair] = []
        for start, register in registers.items():
            if start[self.along] % 2:
                continue
            beside = tuple(x + (d == self.along) for d, x in enumerate(start))
            if start[self.along] % ALIGNED or start[self.across] % ALIGNED:
                return None
            if beside not in registers:
                return None
            pairs.append((register, registers[beside]))
        return pairs if 2 * len(pairs) == len(registers) else None

    # --- how ----------------------------------------------------------------------------------

    def _origin(self, pair: Pair) -> Point:
        return self.access.constants[pair[0] * PER]

    def _together(self, pairs: list[Pair]) -> list[Pair]:
        """Two pairs an instruction, where the second lies behind the first."""
        if len(pairs) < 2:
            return pairs
        first, second = (self._origin(pair) for pair in pairs)
        return pairs if all(b >= a for a, b in zip(first, second, strict=True)) else pairs[:1]

    def _exchanged(self) -> SSAValue:
        """What differs from lane to lane in the selectors."""
        lane = self.access.hardware.axis("lane")
        upper = self.ar.rem(self.ar.div(lane, 2), 2)
        return self.ar.value(self.ar.mul(upper, EXCHANGED))

    def _matrices(self, origins: list[Point]) -> list[SSAValue]:
        """Two registers for each origin, of the two matrices there."""
        ar = self.ar
        # lane 8m + r has the address of row r of matrix m
        modes: list[Mode] = [self._row(2, 1), self._row(2, 4), self._row(2, 10), self._row(2, 2)]
        if len(origins) > 1:
            step = [0, 0]
            step[self.row] = origins[1][self.across] - origins[0][self.across]
            step[self.col] = origins[1][self.along] - origins[0][self.along]
            modes.append(Mode(2, (step[0], step[1])))
        warps = [a for a in self.access.layout.axes if a.name == "warp"]
        rows = Layout((*warps, Axis("lane", tuple(modes))), self.access.layout.dims)
        pointer, offset = address(ar, self.memory, self.access.place(rows), origins[0])
        count = 2 * len(origins)
        type_ = ptx.vector_type(i32, count)
        value = ar.insert(ptx.LdmatrixOp(pointer, offset, type_, True)).value
        return list(ar.insert(ptx.UnpackOp(value)).scalars)

    def _row(self, size: int, step: int) -> XorMode:
        column = [0, 0]
        column[self.row] = step
        return XorMode(size, (column[0], column[1]))
