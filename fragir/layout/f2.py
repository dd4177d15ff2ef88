"""Linear algebra over F2: vectors of bits are numbers, sums are exclusive or."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fragir.layout.modes import Point


def xor(a: Point, b: Point) -> Point:
    """The sum of two points without carry, dimension by dimension."""
    return tuple(x ^ y for x, y in zip(a, b, strict=True))


def packed_bits(point: Point, bits: Iterable[int]) -> int:
    """The coordinates of a point as one number, the first in the lowest bits."""
    packed = place = 0
    for value, width in zip(point, bits, strict=True):
        packed |= value << place
        place += width
    return packed


def unpacked_bits(packed: int, bits: Iterable[int]) -> Point:
    """The coordinates that `packed_bits` made one number of."""
    values: list[int] = []
    for width in bits:
        values.append(packed & ((1 << width) - 1))
        packed >>= width
    return tuple(values)


class Subspace:
    """A space of vectors, each with the combination of given vectors that makes it.

    `add` puts a vector in and says whether it was new; `solve` gives the combination that makes a
    vector, or None. Combinations are the caller's bits, added up without carry.
    """

    __slots__ = ("_rows",)

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        self._rows: dict[int, tuple[int, int]] = {}
        for index, vector in enumerate(vectors):
            self.add(vector, 1 << index)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, vector: int) -> bool:
        return not self._reduce(vector, 0)[0]

    def __iter__(self) -> Iterator[int]:
        """A basis of the space."""
        return (vector for vector, _ in self._rows.values())

    def copy(self) -> Subspace:
        """The same space, to be added to."""
        other = Subspace()
        other._rows = dict(self._rows)
        return other

    def add(self, vector: int, combination: int = 0) -> bool:
        """Whether the vector was new; then the space holds it from now on."""
        rows = self._rows
        while vector:
            top = vector.bit_length()
            row = rows.get(top)
            if row is None:
                rows[top] = vector, combination
                return True
            vector ^= row[0]
            combination ^= row[1]
        return False

    def solve(self, vector: int) -> int | None:
        """The combination that makes the vector; None if it lies outside."""
        vector, combination = self._reduce(vector, 0)
        return None if vector else combination

    def rest(self, vector: int) -> int:
        """The vector modulo the space: the same number for all vectors of a coset."""
        for top in sorted(self._rows, reverse=True):
            if vector >> (top - 1) & 1:
                vector ^= self._rows[top][0]
        return vector

    def _reduce(self, vector: int, combination: int) -> tuple[int, int]:
        rows = self._rows
        while vector:
            row = rows.get(vector.bit_length())
            if row is None:
                break
            vector ^= row[0]
            combination ^= row[1]
        return vector, combination


def image(columns: Sequence[int], vector: int) -> int:
    """What a matrix, given by its columns, makes of a vector."""
    result = index = 0
    while vector:
        if vector & 1:
            result ^= columns[index]
        vector >>= 1
        index += 1
    return result


def rank(columns: Iterable[int]) -> int:
    """The dimension of the space that the columns span."""
    return len(Subspace(columns))


def independent(columns: Iterable[int]) -> list[int]:
    """The columns that are no combination of those before them."""
    span = Subspace()
    return [column for column in columns if span.add(column)]


def kernel(columns: Sequence[int]) -> list[int]:
    """A basis of the vectors that a matrix maps to zero; each owns its highest bit."""
    span, found = Subspace(), list[int]()
    for index, column in enumerate(columns):
        combination = span.solve(column)
        if combination is None:
            span.add(column, 1 << index)
        else:
            found.append(combination | 1 << index)
    return found


def inverse_columns(columns: Sequence[int]) -> list[int] | None:
    """The columns of the inverse matrix; None where there is none."""
    span = Subspace(columns)
    found = [span.solve(1 << index) for index in range(len(columns))]
    return None if None in found else [column for column in found if column is not None]
