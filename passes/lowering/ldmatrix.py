"""Tiles in shared memory by ldmatrix and stmatrix."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.isa.versions import has
from fragir.layout import Layout, Mode, XorMode, axis
from fragir.layout.modes import Axis, Point
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.memory import address
from fragir.passes.lowering.tile_places import TilePlaces

Register = tuple[SSAValue, int]  # a vector, and which of its registers
Origin = tuple[int, ...]


def has_stmatrix(target: str) -> bool:
    """Whether the target has stmatrix (PTX ISA 9.2, section 9.7.14.5.16)."""
    return has("stmatrix.sync.aligned.m8n8.x1.shared.b16", target)


def has_ldmatrix(target: str) -> bool:
    """Whether the target has ldmatrix (PTX ISA 9.2, section 9.7.14.5.15)."""
    return has("ldmatrix.sync.aligned.m8n8.x1.shared.b16", target)


class MatrixAccess:
    """A tile in shared memory by 8x8 matrices, where its layout is made of them.

    A register of ldmatrix and stmatrix has 32 bits of lane (g, t): those at byte 4t of row g of an
    8 x 16-byte matrix, or transposed, for 16-bit elements, rows 2t and 2t + 1 of column g (PTX ISA
    9.2, sections 9.7.14.5.15 and 9.7.14.5.16). Rows must be 16-byte aligned.
    """

    def __init__(self, access: TilePlaces):
        self.access = access
        self.ar, self.memory = access.ar, access.memory
        self.per = max(1, 32 // access.memory.bits)  # elements of one register
        self.turned = False
        self.rows: list[tuple[int, tuple[int, ...]]] = []
        """The rows of a matrix that is not turned, which may be any: digits with their steps."""

    def load(self) -> list[SSAValue] | None:
        """The tile, one vector a chunk; None where ldmatrix does not fit."""
        origins = self._origins()
        if origins is None:
            return None
        element = self.memory.element
        registers: list[Register] = []
        for group in self._groups(origins):
            pointer, offset = self._address(group)
            type_ = ptx.vector_type(element, len(group) * self.per)
            value = self.ar.insert(ptx.LdmatrixOp(pointer, offset, type_, self.turned)).value
            registers += [(value, i) for i in range(len(group))]
        size = self.access.chunk // self.per
        return [
            gather(self.ar, registers[first : first + size], self.per)
            for first in range(0, len(registers), size)
        ]

    def store(self, fragments: Sequence[SSAValue]) -> bool:
        """Writes the tile by stmatrix; False, and nothing written, where it does not fit."""
        origins = self._origins()
        if origins is None:
            return False
        size = self.access.chunk // self.per
        registers = [(fragment, i) for fragment in fragments for i in range(size)]
        position = 0
        for group in self._groups(origins):
            part = registers[position : position + len(group)]
            position += len(group)
            pointer, offset = self._address(group)
            value = gather(self.ar, part, self.per)
            self.ar.insert(ptx.StmatrixOp(value, pointer, offset, self.turned))
        return True

    def _origins(self) -> list[Origin] | None:
        """Where the matrix of every register of a lane begins; None where there are none."""
        access, memory = self.access, self.memory
        bits, per = memory.bits, self.per
        if memory.layout is None or access.masked or bits not in (8, 16, 32):
            return None
        if access.layout.exclusive or access.layout.where:
            return None
        if len(access.tile.shape) != 2 or access.chunk * bits % 32:
            return None
        along = memory.contiguous()
        if along is None or along < len(memory.shape) - 2:
            return None
        self.along, self.across = along, 2 * len(memory.shape) - 3 - along
        row, col = access.mapped[self.across], access.mapped[along]
        assert row is not None
        assert col is not None
        lane = [m for m in access.layout.axis("lane").modes if m.size > 1]
        if not lane or lane[0].size != 4 or not self._is_aligned(col):
            return None
        t, g = lane[0].stride, lane[1:]
        if prod(m.size for m in g) != 8:
            return None
        self.rows = [(m.size, m.stride) for m in g]
        plain = t[col] == per and t[row] == 0 and all(m.stride[col] == 0 for m in g)
        beside = len(g) == 1 and g[0].stride[row] == 0 and g[0].stride[col] == 1
        self.turned = bits == 16 and t[row] == 2 and t[col] == 0 and beside
        if not plain and not self.turned:
            return None
        step = along if plain else self.across
        origins: list[Origin] = []
        for first in range(0, access.count, per):
            origin = self._origin(first, step)
            if origin is None:
                return None
            origins.append(origin)
        return origins

    def _is_aligned(self, col: int) -> bool:
        """Whether lanes, warps and indices leave every row at a multiple of 16 bytes."""
        access, memory = self.access, self.memory
        per_row = 128 // memory.bits
        if memory.run % per_row or self.ar.divisor(access.indices[self.along]) % per_row:
            return False
        strides = [m.stride[col] for a in access.layout.axes if a.name == "warp" for m in a.modes]
        return all(stride % per_row == 0 for stride in strides)

    def _origin(self, first: int, step: int) -> Origin | None:
        """Where the matrix of one register begins, None where its elements are not neighbours in
        the dimension `step`."""
        constants = self.access.constants
        start = constants[first]
        for e in range(self.per):
            wanted = tuple(x + e * (d == step) for d, x in enumerate(start))
            if constants[first + e] != wanted:
                return None
        if start[self.along] % (128 // self.memory.bits):
            return None
        return start

    def _groups(self, origins: list[Origin]) -> list[list[Origin]]:
        """Four or two matrices an instruction, where their origins form a grid."""
        groups: list[list[Origin]] = []
        position = 0
        while position < len(origins):
            count = self._together(origins[position : position + 4])
            groups.append(origins[position : position + count])
            position += count
        return groups

    @staticmethod
    def _together(rest: list[Origin]) -> int:
        """How many of the next matrices one instruction takes; a layout has no negative steps."""
        if len(rest) < 2 or min(_minus(rest[1], rest[0])) < 0:
            return 1
        grid = len(rest) == 4 and _minus(rest[3], rest[2]) == _minus(rest[1], rest[0])
        return 4 if grid and min(_minus(rest[2], rest[0])) >= 0 else 2

    def _address(self, group: list[Origin]) -> tuple[SSAValue, int]:
        """The address each lane gives: lane 8m + r that of row r of matrix m."""
        access = self.access
        dims = len(access.layout.dims)
        next_row = tuple(int(d == self.across) for d in range(len(group[0])))
        modes = [(8, _from_memory(access.mapped, next_row, dims))] if self.turned else [*self.rows]
        if len(group) > 1:
            modes.append((2, _from_memory(access.mapped, _minus(group[1], group[0]), dims)))
        if len(group) > 2:
            modes.append((2, _from_memory(access.mapped, _minus(group[2], group[0]), dims)))
        warps = [a for a in access.layout.axes if a.name == "warp"]
        rows = Layout((*warps, axis("lane", *modes)), access.layout.dims)
        return address(self.ar, self.memory, access.place(rows), group[0])


def gather(ar: Arithmetic, registers: Sequence[Register], per: int) -> SSAValue:
    """Registers of `per` elements each as one vector, without a move."""
    runs: list[list[Register]] = []
    for register in registers:
        if runs and runs[-1][-1] == (register[0], register[1] - 1):
            runs[-1].append(register)
        else:
            runs.append([register])
    parts = [_slice(ar, run, per) for run in runs]
    return parts[0] if len(parts) == 1 else ar.insert(ptx.ConcatOp(parts)).result


def _slice(ar: Arithmetic, run: Sequence[Register], per: int) -> SSAValue:
    source, first = run[0]
    if len(run) * per == ptx.length(source.type):
        return source
    type_ = ptx.vector_type(ptx.scalar_type(source.type), len(run) * per)
    return ar.insert(ptx.SliceOp(source, first * per, type_)).result


def _minus(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip(x, y, strict=True))


def _from_memory(
    mapped: Sequence[int | None], point: tuple[int, ...], dims: int
) -> tuple[int, ...]:
    """A step in memory as a step in the tile."""
    result = [0] * dims
    for dim, tile_dim in enumerate(mapped):
        if tile_dim is not None:
            result[tile_dim] = point[dim]
    return tuple(result)


# -- byte matrices ---------------------------------------------------------------------------------
# Tiles of bytes that lie across the rows of shared memory: ldmatrix of pairs of bytes, and prmt.
#
# The operands of products want four bytes along K in a register. Where memory runs along the other
# dimension, n, those are in four rows. ldmatrix transposes pairs of bytes: lane (g, t) gets the
# bytes n = 2g and 2g + 1 of two rows; `prmt` takes the registers of two such matrices apart, to
# those of columns 2g and 2g + 1 with four rows each. So a lane must hold neighbours along n, as it
# does where the instruction's n are counted as "8:2 2:1".
#
#     rows of the two matrices: 0 1  4 5 | 10 11  14 15  and  2 3  6 7 | 8 9  12 13
#
# Lanes t = 2, 3 have the two matrices exchanged, and exchange them back by their selector: eight
# rows 0 1 4 5 8 9 12 13 would meet in the banks of a swizzle, these do not. PTX ISA 9.2, section
# 9.7.14.5.15.

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
                    chosen = ar.value(ar.xor(self._selector_difference(), selector))
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
        if not self._lanes_fit() or not self._is_aligned():
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

    def _is_aligned(self) -> bool:
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

    def _selector_difference(self) -> SSAValue:
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
