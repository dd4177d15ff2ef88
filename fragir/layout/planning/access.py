"""Instructions that move a fragment to or from shared memory, and the ways to use them.

`SharedAccess` is one instruction of every thread, as a plan has it. A `Way` is how one side of a
conversion could be moved: what its instructions hold together and which lanes they serve at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from fragir.layout.f2 import Subspace, independent
from fragir.layout.planning.banks import Reach
from fragir.layout.planning.program import Linear

MATRICES: dict[str, Literal["stmatrix", "ldmatrix"]] = {"st": "stmatrix", "ld": "ldmatrix"}
MOST_BYTES = 16  # of a lane in one access, and of a row of a matrix


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """One instruction of every thread.

    `st` and `ld` move `size` bytes (1, 2, 4, 8 or 16) of a thread at its address; those of less
    than a word are the lowest of the word stored, and of the word loaded (its others are zero).
    `stmatrix` and `ldmatrix` move `matrices` (1, 2 or 4) of 8 rows of 16 bytes, transposed with
    `trans`; lane i gives the address of row i % 8 of matrix i // 8 (PTX ISA 9.2, sections
    9.7.14.5.15 and 9.7.14.5.16). Addresses are bytes from the start of the scratch memory.

    `words` are the numbers of the words of the program before (a store) or of the inputs of the
    program after (a load). Threads for which `unless` is not zero take no part.
    """

    kind: Literal["st", "ld", "stmatrix", "ldmatrix"]
    size: int
    words: tuple[int, ...]
    address: Linear
    matrices: int = 0
    trans: bool = False
    unless: Linear | None = None

    @property
    def name(self) -> str:
        """As people say it: `st.128`, `ldmatrix.x4.trans`."""
        if self.matrices:
            return f"{self.kind}.x{self.matrices}" + ".trans" * self.trans
        return f"{self.kind}.{8 * self.size}"


@dataclass(frozen=True, slots=True)
class Way:
    """How one side could be moved: `reach` for the banks, then what its instructions are.

    `word` are the registers that one word holds; `rows` the columns that lanes 0 to 2 add to the
    address of a matrix' row. `passes` without conflicts and `permutes` (about) are of a thread's
    whole fragment.
    """

    reach: Reach
    size: int
    word: tuple[int, ...]
    count: int
    passes: int
    permutes: int
    matrices: int = 0
    trans: bool = False
    rows: tuple[int, ...] = ()
    spared: int = 0
    """Lanes with one of these bits take no part."""


@dataclass(frozen=True)
class SharedSide:
    """One layout in the coordinates of the scratch memory.

    `element` are independent columns, each with the registers (bits of the element's number) that
    make it in `slots`. `inside` bits of an element's number are its place in a word.
    """

    element: tuple[int, ...]
    slots: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]
    inside: int
    unit: int
    """Bytes of an element."""
    copies: int = 0
    """Lanes with one of these bits hold what others hold, and need not store it."""

    @property
    def whole(self) -> bool:
        """Whether the registers fill a word."""
        return len(self.element) >= self.inside

    @cached_property
    def numbers(self) -> Subspace:
        """Makes points of the bits of an element's number."""
        span = Subspace()
        for column, slots in zip(self.element, self.slots, strict=True):
            span.add(column, slots)
        return span


def ways(side: SharedSide, other: SharedSide, matrix: bool, order: Sequence[int]) -> list[Way]:
    """The ways to move a side; `order` are its registers, those to hold together first."""
    most = min((MOST_BYTES // side.unit).bit_length() - 1, len(side.element))
    vectors = _vectors(side, other, order)
    held = dict.fromkeys(v[:count] for count in range(most, -1, -1) for v in vectors)
    found = [_plain_way(side, low) for low in held]
    if matrix and side.whole:
        found += _matrix_ways(side, order)
    return found


def common_order(source: SharedSide, target: SharedSide) -> tuple[list[int], list[int]]:
    """The registers of each side, those that both have first, in one order.

    Those that lie inside of words come first of all, or narrow elements would be stored one by one.
    """
    both = Subspace(target.element)
    words = [side.element[: side.inside] for side in (source, target)]
    shared = [column for column in source.element if column in both]
    shared.sort(key=lambda column: -sum(column in word for word in words))
    orders: list[list[int]] = []
    for side in (source, target):
        span = Subspace(side.element)
        first = [column for column in shared if column in span]
        chosen = Subspace(first)
        orders.append(first + [column for column in side.element if chosen.add(column)])
    return orders[0], orders[1]


def _vectors(side: SharedSide, other: SharedSide, order: Sequence[int]) -> list[tuple[int, ...]]:
    """Orders of registers in which a plain access could hold them together."""
    own = side.element
    found = [tuple(order), own]
    inside = other.element[: other.inside]
    half = other.element[: other.inside - 1] if other.inside else ()
    for wanted in ((*inside, *other.lane[:2]), (*half, *other.lane[2:5])):
        kept = 0  # what one matrix of the other side keeps together
        while kept < len(wanted) and wanted[kept] in own:
            kept += 1
        if kept:
            first = wanted[:kept]
            found.append((*first, *(column for column in own if column not in first)))
    return list(dict.fromkeys(found))


def _plain_way(side: SharedSide, low: tuple[int, ...]) -> Way:
    size = side.unit << len(low)
    served = 3 if size == 16 else 4 if size == 8 else 5
    count = 1 << (len(side.element) - len(low))
    word = low[: side.inside]
    threads = side.lane + side.warp
    # lanes with copies are worth a condition where it spares whole groups that are served at once
    groups = max(1, size // 4)
    left = groups >> (side.copies >> served).bit_count()
    return Way(
        Reach(low, side.lane[:served], threads, threads),
        size,
        word,
        count,
        count * left,
        _permutes(side, word, count),
        spared=side.copies if left < groups else 0,
    )


def _matrix_ways(side: SharedSide, order: Sequence[int]) -> list[Way]:
    inside = side.inside
    found: list[Way] = []
    for word in dict.fromkeys((side.element[:inside], tuple(order[:inside]))):
        rest = _completed(word, side.element)
        words = 1 << len(rest)
        matrices = min(4, words)
        fixed = (*rest, *side.warp)
        together = (*rest[:2], 0, 0)[:2]
        permutes = _permutes(side, word, words)
        # one row: the words of four lanes, or the same half of the words of eight
        shapes = [(False, (*word, *side.lane[:2]), side.lane[2:5])]
        if inside:
            shapes.append((True, (*word[:-1], *side.lane[2:5]), (word[-1], *side.lane[:2])))
        found += [
            Way(
                Reach(low, rows, (*fixed, *rows), (*rows, *together, *side.warp)),
                4 * matrices,
                word,
                words // matrices,
                words,
                permutes,
                matrices,
                trans,
                rows,
            )
            for trans, low, rows in shapes
            if len(Subspace(low)) == len(low)
        ]
    return found


def registers_beside(way: Way, side: SharedSide) -> list[int]:
    """The registers that number the words of a matrix' way, lowest first."""
    return _completed(way.word, side.element)


def _completed(word: Sequence[int], element: Sequence[int]) -> list[int]:
    span = Subspace(word)
    return [column for column in element if span.add(column)]


def _permutes(side: SharedSide, word: Sequence[int], count: int) -> int:
    """Byte permutes that make such words of a fragment's words, or the other way round.

    None where they are the fragment's own; one a word, or two where each comes of four.
    """
    if not side.inside:
        return 0
    places = [side.numbers.solve(column) or 0 for column in word]
    ordered = places == [1 << i for i in range(len(places))]
    fragment = 1 << max(0, len(side.element) - side.inside)
    if len(word) < side.inside and side.whole:
        return count - fragment if ordered else count
    spread = len(independent(place >> side.inside for place in places))
    return 0 if ordered else fragment * max(1, spread)
