"""Tiles in and out of memory: the widest accesses that layout and alignment allow, or ldmatrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, i32
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.shorthands import is_vector
from fragir.layout.modes import Point
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate
from fragir.passes.lowering.ldmatrix import MatrixAccess, has_ldmatrix, has_stmatrix
from fragir.passes.lowering.memory import ACCESS_BITS, alignment, inside
from fragir.passes.lowering.tile_places import TilePlaces


class TileAccess(TilePlaces):
    """One tile's elements, read from or written to one memory."""

    @cached_property
    def _loaded_values(self) -> dict[tuple[SSAValue, int, SSAValue | None], SSAValue]:
        """What is read already: a broadcast reads one element for many places."""
        return {}

    @cached_property
    def width(self) -> int:
        """Elements of one access: neighbours in the fragment that are neighbours in memory."""
        bits = self.memory.bits
        width = min(ACCESS_BITS // bits, self.chunk)
        while width > 1 and (width * bits < 32 or not self.lie_together(width)):
            width //= 2
        return width if self.chunk % max(width, 1) == 0 else 1

    @cached_property
    def _beside(self) -> list[list[int]]:
        """Elements that lie side by side in memory though not in the fragment, as where an
        instruction's dimension is counted in another order; none where that gains nothing."""
        placement, contiguous = self.tile.placement, self.memory.contiguous()
        if isinstance(placement, frag.MmaLayoutAttr):
            if not placement.data.orders:
                return []
        elif self.memory.layout is None:  # or a part of such a tile, in shared memory
            return []
        if contiguous is None or self.layout.where or self.layout.exclusive:
            return []

        known = alignment(self.ar, self.memory, self.places[0], self.masked)
        most = gcd(ACCESS_BITS // self.memory.bits, known)
        return neighbours(self.constants, contiguous, self.width, most)

    def _predicate(self, first: int) -> Predicate:
        held = self.holds(first) if self.layout.where else True
        if not self.masked:
            return held
        within = inside(self.ar, self.memory, self.places[first], self.constants[first])
        return self.ar.both(held, within)

    def load(self) -> list[SSAValue]:
        """The tile as one vector a chunk."""
        matrices = has_ldmatrix(self.target)
        loaded = MatrixAccess(self).load() if matrices else None
        if loaded is None and self.memory.bits == 8 and self.memory.layout is not None:
            from fragir.passes.lowering.ldmatrix import ByteMatrices  # few programs need it

            loaded = ByteMatrices(self).load() if matrices else None
            if loaded is None:
                pairs = BytePairs(self)
                loaded = pairs.load() if pairs.fit else None
        if loaded is not None:
            return loaded
        return [self.load_chunk(i) for i in range(self.count // self.chunk)]

    def load_chunk(self, number: int) -> SSAValue:
        """One chunk by plain loads."""
        if self._beside:
            return self._load_beside(number)
        width = self.width
        first = number * self.chunk
        element = self.memory.element
        type_: Attribute = element if width == 1 else ptx.vector_type(element, width)
        parts: list[SSAValue] = []
        for e in range(first, first + self.chunk, width):
            predicate = self.ar.predicate(self._predicate(e))
            pointer, offset = self.address(e)
            known = self._loaded_values.get((pointer, offset, predicate))
            if known is None:
                otherwise = None if predicate is None else self._otherwise(type_, width)
                op = ptx.LoadOp(pointer, offset, type_, predicate, otherwise)
                known = self._loaded_values[pointer, offset, predicate] = self.ar.insert(op).value
            parts.append(known)
        return join(self.ar, parts)

    def _load_beside(self, number: int) -> SSAValue:
        """One chunk of elements that are loaded with those of other chunks."""
        wanted = range(number * self.chunk, (number + 1) * self.chunk)
        for element in wanted:
            if element in self._known_elements:
                continue
            group = self._group_of[element]
            type_ = ptx.vector_type(self.memory.element, len(group))
            predicate = self.ar.predicate(self._predicate(group[0]))
            otherwise = None if predicate is None else self._otherwise(type_, len(group))
            op = ptx.LoadOp(*self.address(group[0]), type_, predicate, otherwise)
            scalars = split(self.ar, self.ar.insert(op).value, 1)
            self._known_elements.update(zip(group, scalars, strict=True))
        return self.ar.insert(ptx.PackOp([self._known_elements[e] for e in wanted])).result

    @cached_property
    def _group_of(self) -> dict[int, list[int]]:
        return {element: group for group in self._beside for element in group}

    @cached_property
    def _known_elements(self) -> dict[int, SSAValue]:
        """Elements that have been loaded beside others."""
        return {}

    def _otherwise(self, type_: Attribute, width: int) -> SSAValue:
        """What stands for an access outside of the memory."""
        if self.other is None:
            return self.ar.zero(type_)
        return self.other if width == 1 else self.ar.splat(self.other, width)

    def store(self, fragments: Sequence[SSAValue]) -> None:
        """Writes the tile, one vector a chunk."""
        if has_stmatrix(self.target) and MatrixAccess(self).store(fragments):
            return
        if self.memory.bits == 8 and self.memory.layout is not None:
            pairs = BytePairs(self)
            if pairs.fit:
                pairs.store(fragments)
                return
        self.store_parts(fragments)

    def store_parts(self, fragments: Sequence[SSAValue]) -> None:
        """The same by plain stores."""
        if self._beside:
            self._store_beside(fragments)
            return
        width = self.width
        for number, fragment in enumerate(fragments):
            first = number * self.chunk
            for i, part in enumerate(split(self.ar, fragment, width)):
                e = first + i * width
                held = self._predicate(e)
                if held is False:
                    continue
                predicate = self.ar.predicate(held)
                pointer, offset = self.address(e)
                self.ar.insert(ptx.StoreOp(part, pointer, offset, predicate))

    def _store_beside(self, fragments: Sequence[SSAValue]) -> None:
        """The same where neighbours are elements of several fragments."""
        scalars: dict[int, list[SSAValue]] = {}
        for group in self._beside:
            for number in sorted({e // self.chunk for e in group} - scalars.keys()):
                scalars[number] = split(self.ar, fragments[number], 1)
            parts = [scalars[e // self.chunk][e % self.chunk] for e in group]
            value = self.ar.insert(ptx.PackOp(parts)).result
            predicate = self.ar.predicate(self._predicate(group[0]))
            self.ar.insert(ptx.StoreOp(value, *self.address(group[0]), predicate))


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
        ar.insert(ptx.SliceOp(vector, first, ptx.vector_type(element, width))).result
        for first in range(0, total, width)
    ]


# -- byte pairs ------------------------------------------------------------------------------------
# Tiles of bytes in shared memory whose lanes have two neighbours, as accumulators do.
#
# A register has four bytes, two pairs at two places: each pair is one access of 16 bits. The low
# pair is stored as it stands, the high one is shifted down; loaded pairs become a register by
# `prmt`.

PER = 4  # bytes of a register
PAIR = ptx.vector_type(IntegerType(8), 2)
BOTH = 0x5410
"""prmt: the low halves of two registers."""


class BytePairs:
    """Two accesses for every register of a tile of bytes."""

    def __init__(self, access: TilePlaces):
        self._access, self._ar = access, access.ar

    @property
    def fit(self) -> bool:
        """Whether lanes have pairs of bytes that lie side by side, and no more of them."""
        access = self._access
        return (
            access.memory.layout is not None
            and not access.masked
            and not access.layout.where
            and access.chunk % PER == 0
            and access.lie_together(2)
            and not access.lie_together(4)
        )

    def store(self, fragments: Sequence[SSAValue]) -> None:
        """Writes the tile, one vector a chunk."""
        access, ar = self._access, self._ar
        for number, fragment in enumerate(fragments):
            count = access.chunk // PER
            low = ar.insert(ptx.BitcastOp(fragment, ptx.vector_type(i32, count))).result
            half = ar.splat(self._sixteen_bits(), count)
            high = ar.insert(arith.ShRUIOp(low, half)).result
            pairs = [ar.insert(ptx.UnpackOp(words)).scalars for words in (low, high)]
            for word in range(count):
                for place, words in enumerate(pairs):
                    part = ar.insert(ptx.BitcastOp(words[word], PAIR)).result
                    at = access.address(number * access.chunk + word * PER + 2 * place)
                    ar.insert(ptx.StoreOp(part, *at))

    def load(self) -> list[SSAValue]:
        """The tile as one vector a chunk."""
        access, ar = self._access, self._ar
        type_ = ptx.vector_type(access.memory.element, access.chunk)
        chunks: list[SSAValue] = []
        for first in range(0, access.count, access.chunk):
            low, high = self._words(first), self._words(first + 2)
            words = ar.insert(ptx.PermuteOp(low, high, ar.constant(BOTH))).result
            chunks.append(ar.insert(ptx.BitcastOp(words, type_)).result)
        return chunks

    def _words(self, first: int) -> SSAValue:
        """Every second pair of a chunk from an element on, each in a register."""
        access, ar = self._access, self._ar
        words: list[SSAValue] = []
        for element in range(first, first + access.chunk, PER):
            pointer, offset = access.address(element)
            loaded = ar.insert(ptx.LoadOp(pointer, offset, PAIR)).value
            words.append(ar.insert(ptx.BitcastOp(loaded, i32)).result)
        return ar.insert(ptx.PackOp(words)).result

    def _sixteen_bits(self) -> SSAValue:
        return self._ar.literal(IntegerAttr(16, i32))


# -- neighbours ------------------------------------------------------------------------------------
# Which elements of a lane lie side by side in memory, wherever its fragments have them.


def neighbours(constants: Sequence[Point], along: int, least: int, most: int) -> list[list[int]]:
    """Elements in groups of as many as lie side by side along a dimension of memory.

    Groups have up to `most` elements, a power of two, and begin at multiples of their size; they
    come in the order of their first elements. Empty where they would have `least` at most.

    >>> neighbours([(0, 0), (0, 2), (0, 1), (0, 3)], 1, 1, 4)
    [[0, 2, 1, 3]]
    """
    while most > least:
        groups: dict[Point, list[int]] = {}
        for element, place in enumerate(constants):
            begin = (*place[:along], place[along] - place[along] % most, *place[along + 1 :])
            groups.setdefault(begin, []).append(element)
        for group in groups.values():
            group.sort(key=lambda element: constants[element][along])
        if all(
            [constants[e][along] % most for e in group] == list(range(most))
            for group in groups.values()
        ):
            return list(groups.values())
        most //= 2
    return []
