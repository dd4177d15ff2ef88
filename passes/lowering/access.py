"""Tiles in and out of memory: the widest accesses that layout and alignment allow, or ldmatrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.narrow import is_vector
from fragir.layout import Layout, axis
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import ACCESS_BITS, Memory, Place, address, alignment, inside
from fragir.passes.lowering.shared import Lanes

NOWHERE = Lanes(0, 0)

Register = tuple[SSAValue, int]  # a vector, and which of its registers


class TileAccess:
    """One tile's elements in one memory."""

    def __init__(
        self,
        ar: Arithmetic,
        hardware: Hardware,
        tile: frag.TileType,
        memory: Memory,
        indices: Sequence[Value],
        *,
        transposed: bool,
        masked: bool,
        broadcast: bool = False,
    ):
        self.ar, self.hardware, self.memory, self.masked = ar, hardware, memory, masked
        self.tile = tile
        self.layout = tile.resolve()
        self.indices = tuple(indices)
        rank, dims = len(memory.shape), len(tile.shape)
        # dimension of the memory -> dimension of the tile, None for a leading one
        mapped: list[int | None] = [None] * (rank - dims) + list(range(dims))
        if broadcast:
            # a memory of one dimension runs along the columns; a size of 1 does not run at all
            mapped = [
                None if size == 1 else dim
                for size, dim in zip(memory.shape, range(dims - rank, dims), strict=True)
            ]
        if transposed:
            mapped[-1], mapped[-2] = mapped[-2], mapped[-1]
        self.mapped = tuple(mapped)
        # what is read already: a broadcast reads one element for many places
        self.loaded: dict[tuple[SSAValue, int, SSAValue | None], SSAValue] = {}
        placement = tile.placement
        assert placement is not None
        self.chunk = placement.chunk
        self.count = self.layout.size("element")
        zeros = {axis.name: 0 for axis in self.layout.axes}
        self.constants = [
            self._to_memory(self.layout(**{**zeros, "element": e}) or ()) for e in range(self.count)
        ]

    def _to_memory(self, point: Sequence[int]) -> tuple[int, ...]:
        return tuple(0 if d is None else point[d] for d in self.mapped)

    def place(self, layout: Layout | None = None) -> Place:
        """Where the lanes' elements begin; for ldmatrix with the layout of its addresses."""
        lanes = tuple(
            NOWHERE if d is None else self.hardware.coordinate(layout or self.layout, d)
            for d in self.mapped
        )
        return Place(lanes, self.indices)

    # --- plain loads and stores ---------------------------------------------------------------

    def width(self, place: Place) -> int:
        """Elements of one access: neighbours in the fragment that are neighbours in memory."""
        memory, bits = self.memory, self.memory.bits
        contiguous = memory.contiguous()
        known = alignment(self.ar, memory, place, self.masked)
        width = min(ACCESS_BITS // bits, self.chunk)
        while width > 1 and (width * bits < 32 or not self._runs(width, contiguous, known)):
            width //= 2
        return width if self.chunk % max(width, 1) == 0 else 1

    def _runs(self, width: int, contiguous: int | None, known: int) -> bool:
        if contiguous is None or known % width or self.chunk % width:
            return False
        for first in range(0, self.count, width):
            start = self.constants[first]
            if start[contiguous] % width:
                return False
            for i in range(1, width):
                wanted = tuple(x + i * (d == contiguous) for d, x in enumerate(start))
                if self.constants[first + i] != wanted:
                    return False
        return True

    def _predicate(self, place: Place, first: int) -> Predicate:
        if not self.masked:
            return True
        return inside(self.ar, self.memory, place, self.constants[first])

    def load(self) -> list[SSAValue]:
        """The tile as one vector a chunk."""
        if not self.masked:
            loaded = MatrixLoads(self).load()
            if loaded is not None:
                return loaded
        return [self.load_chunk(i) for i in range(self.count // self.chunk)]

    @cached_property
    def _ways(self) -> tuple[Place, int]:
        """Where plain accesses begin, and how many elements each takes."""
        place = self.place()
        return place, self.width(place)

    def load_chunk(self, number: int) -> SSAValue:
        """One chunk by plain loads."""
        place, width = self._ways
        first = number * self.chunk
        element = self.memory.element
        type_: Attribute = element if width == 1 else VectorType(element, [width])
        parts: list[SSAValue] = []
        for e in range(first, first + self.chunk, width):
            predicate = self.ar.predicate(self._predicate(place, e))
            pointer, offset = address(self.ar, self.memory, place, self.constants[e])
            known = self.loaded.get((pointer, offset, predicate))
            if known is None:
                otherwise = None if predicate is None else self.ar.zero(type_)
                op = ptx.LoadOp(pointer, offset, type_, predicate, otherwise)
                known = self.loaded[pointer, offset, predicate] = self.ar.insert(op).value
            parts.append(known)
        return join(self.ar, parts)

    def store(self, fragments: Sequence[SSAValue]) -> None:
        """Writes the tile, one vector a chunk."""
        place, width = self._ways
        for number, fragment in enumerate(fragments):
            first = number * self.chunk
            for i, part in enumerate(split(self.ar, fragment, width)):
                e = first + i * width
                predicate = self.ar.predicate(self._predicate(place, e))
                pointer, offset = address(self.ar, self.memory, place, self.constants[e])
                self.ar.insert(ptx.StoreOp(part, pointer, offset, predicate))


def join(ar: Arithmetic, parts: Sequence[SSAValue]) -> SSAValue:
    """One vector of parts that are all scalars or all vectors of whole registers."""
    if len(parts) == 1 and isinstance(parts[0].type, VectorType):
        return parts[0]
    if isinstance(parts[0].type, VectorType):
        return ar.insert(ptx.ConcatOp(parts)).result
    return ar.insert(ptx.PackOp(parts)).result


def split(ar: Arithmetic, vector: SSAValue, width: int) -> list[SSAValue]:
    """A vector in pieces of `width` elements; scalars for width 1."""
    total = ptx.length(vector.type)
    if total == width and width > 1:
        return [vector]
    if width == 1:
        assert is_vector(vector.type)
        return list(ar.insert(ptx.UnpackOp(vector)).scalars)
    element = ptx.scalar_type(vector.type)
    return [
        ar.insert(ptx.SliceOp(vector, first, VectorType(element, [width]))).result
        for first in range(0, total, width)
    ]


class MatrixLoads:
    """A tile in shared memory by ldmatrix, where its layout is that of 8x8 matrices.

    A register of ldmatrix gives lane (g, t) 32 bits: those at byte 4t of row g of an 8 x 16-byte
    matrix, or transposed, for 16-bit elements, rows 2t and 2t + 1 of column g (PTX ISA 9.2,
    section 9.7.14.5.15). Rows must be 16-byte aligned.
    """

    def __init__(self, access: TileAccess):
        self.access = access
        self.ar, self.memory = access.ar, access.memory

    def load(self) -> list[SSAValue] | None:
        """The tile, one vector a chunk; None where ldmatrix does not fit."""
        access, memory = self.access, self.memory
        bits = memory.bits
        if memory.matrix is None or bits not in (8, 16, 32) or access.tile.element == "f32":
            return None
        if len(access.tile.shape) != 2 or access.chunk * bits % 32:
            return None
        row, col = access.mapped[-2], access.mapped[-1]
        assert row is not None
        assert col is not None
        per = 32 // bits
        lane = [m for m in access.layout.axis("lane").modes if m.size > 1]
        if [m.size for m in lane] != [4, 8] or not self._aligned():
            return None
        t, g = lane[0].stride, lane[1].stride
        plain = t[col] == per and t[row] == 0 and g[col] == 0 and g[row] == 1
        turned = bits == 16 and t[row] == 2 and t[col] == 0 and g[row] == 0 and g[col] == 1
        if not plain and not turned:
            return None
        step = (0, 1) if plain else (1, 0)
        origins = [self._origin(r * per, per, step) for r in range(access.count // per)]
        if any(origin is None for origin in origins):
            return None
        registers = self._load_all([o for o in origins if o is not None], turned)
        return self._chunks(registers, per)

    def _aligned(self) -> bool:
        """Whether every row of every 8x8 matrix begins at a multiple of 16 bytes."""
        access, memory = self.access, self.memory
        assert memory.matrix is not None
        per_row = 128 // memory.bits
        if memory.matrix.width % 16 or self.ar.divisor(access.indices[-1]) % per_row:
            return False
        if any(c[-1] // per_row * per_row != c[-1] - c[-1] % per_row for c in access.constants):
            return False
        col = access.mapped[-1]
        assert col is not None
        strides = [m.stride[col] for a in access.layout.axes if a.name == "warp" for m in a.modes]
        return all(stride % per_row == 0 for stride in strides)

    def _origin(self, first: int, per: int, step: tuple[int, int]) -> tuple[int, ...] | None:
        """Where the matrix of one register begins, None where its elements are not side by side."""
        constants = self.access.constants
        start = constants[first]
        for e in range(per):
            wanted = (*start[:-2], start[-2] + e * step[0], start[-1] + e * step[1])
            if constants[first + e] != wanted:
                return None
        if start[-1] % (128 // self.memory.bits):
            return None
        return start

    def _load_all(self, origins: list[tuple[int, ...]], turned: bool) -> list[Register]:
        """One 32-bit register a matrix, each as a vector and a place in it."""
        registers: list[Register] = []
        element, per = self.memory.element, 32 // self.memory.bits
        position = 0
        while position < len(origins):
            count = self._group(origins, position)
            group = origins[position : position + count]
            place = self.access.place(self._addresses(group))
            pointer, offset = address(self.ar, self.memory, place, group[0])
            type_ = VectorType(element, [count * per])
            value = self.ar.insert(ptx.LdmatrixOp(pointer, offset, type_, turned)).value
            registers += [(value, i) for i in range(count)]
            position += count
        return registers

    def _group(self, origins: list[tuple[int, ...]], position: int) -> int:
        """How many matrices one ldmatrix loads: 4 or 2 where their origins form a grid."""
        rest = origins[position : position + 4]
        if len(rest) < 2 or min(_minus(rest[1], rest[0])) < 0:
            return 1
        if len(rest) < 4 or _minus(rest[3], rest[2]) != _minus(rest[1], rest[0]):
            return 2
        # a layout has no negative steps: a row of matrices may end within the group
        return 4 if min(_minus(rest[2], rest[0])) >= 0 else 2

    def _addresses(self, group: list[tuple[int, ...]]) -> Layout:
        """The layout of the row addresses: lane 8m + r gives row r of matrix m."""
        access = self.access
        dims = len(access.layout.dims)
        unit = _from_memory(access.mapped, (*[0] * (len(group[0]) - 2), 1, 0), dims)
        modes = [(8, unit)]
        if len(group) > 1:
            modes.append((2, _from_memory(access.mapped, _minus(group[1], group[0]), dims)))
        if len(group) > 2:
            modes.append((2, _from_memory(access.mapped, _minus(group[2], group[0]), dims)))
        warps = [a for a in access.layout.axes if a.name == "warp"]
        return Layout((*warps, axis("lane", *modes)), access.layout.dims)

    def _chunks(self, registers: list[Register], per: int) -> list[SSAValue]:
        """Registers gathered into one vector a chunk; whole loads are used as they are."""
        size = self.access.chunk // per
        return [
            gather(self.ar, registers[first : first + size], per)
            for first in range(0, len(registers), size)
        ]


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
    type_ = VectorType(ptx.scalar_type(source.type), [len(run) * per])
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
