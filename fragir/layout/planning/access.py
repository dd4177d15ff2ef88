"""Instructions that move a fragment to or from shared memory, and the ways to use them.

`SharedAccess` is one instruction of every thread, as a plan has it. A `Way` is how one side of a
conversion could be moved: what its instructions hold together and which lanes they serve at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from fragir.layout.f2 import Subspace, image, independent, inverse_columns, kernel
from fragir.layout.planning.program import Linear

# -- banks -----------------------------------------------------------------------------------------
# Where points of a tile stand in shared memory, so that accesses meet no bank twice.
#
# An address map is linear over F2: address = A point. Its low bits count what one access holds
# together (the vector of a lane, or the 16 bytes of a matrix row), the bits up to a line of 128
# bytes choose the bank, and what lies above is the *segment*: two words of one bank differ in it.
# The lanes that are served together span, with their vectors, a space P of points; a pass is lost
# for every pair of them that differs in the segment alone, so P takes 2^dim(P n Seg) passes, where
# Seg is the space of the points whose address lies above a line.
#
# Two spaces of no more dimensions than a line has always have a common complement
# (`common_complement`). So a store and a load that hold the same vector together never conflict:
# take Seg as a complement of both. The second condition is alignment: the low address bits must
# vanish on the columns of lanes and warps. Let f be those bits as functionals; then everything
# takes place in their kernel K, and P n K is what must miss Seg. Address bits inside of a word of 4
# bytes are no matter of banks: with elements of less than a word all this is meant modulo those
# bits.

LINE_BYTES = 128  # 32 banks of 4 bytes

Order: TypeAlias = Callable[[Iterable[int]], list[int]]


def common_complement(
    first: Sequence[int], second: Sequence[int], dims: int, order: Order = sorted
) -> list[int]:
    """A space that meets both given ones in zero only, as large as there is one.

    The given vectors lie in `dims` dimensions. Let I be what both spaces share, a_i and b_i what
    completes I to each. The sums a_i + b_i with a complement of both spaces together meet neither:
    a sum that lies in the first space has its b part there, hence in I, hence is zero. The
    dimension is `dims` less that of the larger space. Any `order` of the a_i and b_i will do.
    """
    firsts, seconds = independent(first), independent(second)
    mask = (1 << len(firsts)) - 1
    shared = Subspace(image(firsts, k & mask) for k in kernel(firsts + seconds))
    rests: list[list[int]] = []
    for vectors in (firsts, seconds):
        span = shared.copy()
        rests.append(order(vector for vector in vectors if span.add(vector)))
    found = [a ^ b for a, b in zip(*rests, strict=False)]
    together = Subspace(firsts + seconds)
    return found + [unit for unit in (1 << i for i in range(dims)) if together.add(unit)]


# Orders of what completes the intersection, and whether the segment is sorted then: among these is
# nearly always one that keeps the bits of a thread's number side by side in its address.
ARRANGEMENTS: tuple[tuple[Order, bool], ...] = ((sorted, False), (sorted, True), (list, False))


@dataclass(frozen=True, slots=True)
class Reach:
    """What one kind of access of one side touches, as points.

    `low` is what each access holds together, lowest address bit first; `served` the columns of
    the lanes that are served in one pass; `fixed` those that may not move inside of `low`;
    `threads` what the bits of a thread's number add to its address.
    """

    low: tuple[int, ...]
    served: tuple[int, ...]
    fixed: tuple[int, ...]
    threads: tuple[int, ...]


def address_columns(
    wide: Reach,
    narrow: Reach,
    dims: int,
    unit: int,
    simple: bool = False,
    ahead: Sequence[int] = (),
) -> list[int] | None:
    """The address of every unit point, in elements of `unit` bytes (1, 2 or 4), for two accesses.

    `wide` holds at least what `narrow` does, in the same order. None where no map aligns both.
    Bank conflicts are the fewest there can be: none where the low bits of `wide` have full rank
    on what `narrow` serves in one pass, else 2^missing. Of some maps that are as good in this the
    first is taken, or with `simple` the one whose addresses are made by the fewest shifts. Points
    `ahead` come first of those that stand behind a line, where they may.
    """
    low = wide.low
    width = len(low)
    mask = (1 << width) - 1
    numbers = Subspace()
    for index, vector in enumerate(low):
        numbers.add(vector, 1 << index)
    if len(numbers) < width:
        return None
    units = [1 << index for index in range(dims)]
    for vector in (*wide.fixed, *units):
        numbers.add(vector)
    place = [(numbers.solve(unit) or 0) & mask for unit in units]  # f
    for side in (wide, narrow):
        held = (1 << len(side.low)) - 1  # what lies above may move in the wider access
        if any(image(place, vector) & held for vector in side.fixed):
            return None
    inside = Subspace()  # K, with coordinates of its own
    basis: list[int] = []
    for index, bit in enumerate(units):
        vector = bit ^ image(low, place[index])
        if inside.add(vector, 1 << len(basis)):
            basis.append(vector)
    # bits inside of a word are no matter of banks; those beyond the vector are the first of K
    word = (4 // unit).bit_length() - 1
    within = min(word, width)
    more = min(word - within, len(basis))
    served: list[list[int]] = []
    for side in (wide, narrow):
        columns = independent((*side.low, *side.served))
        met = (image(columns, k) for k in kernel([image(place, c) >> within for c in columns]))
        inner = (inside.solve(v ^ image(low, image(place, v))) or 0 for v in met)
        served.append(independent(vector >> more for vector in inner))
    rest = dims - width - more
    most = max(0, (LINE_BYTES // unit).bit_length() - 1 - width - more)
    first, second = (vectors[:most] for vectors in served)
    wanted = [(inside.solve(v ^ image(low, image(place, v))) or 0) >> more for v in ahead]
    found: list[list[int]] = []
    for order, upside in ARRANGEMENTS if simple else ARRANGEMENTS[:1]:
        segment = common_complement(first, second, rest, order)[: max(0, rest - most)]
        if upside:
            segment.sort()
        if ahead:
            whole, led = Subspace(segment), Subspace()
            inner = (vector for vector in wanted if vector in whole)
            segment = [vector for vector in (*inner, *segment) if led.add(vector)]
        span = Subspace(segment)
        banks = [v for v in (*served[0], *served[1], *units[:rest]) if span.add(v)]
        lifted = (image(basis[more:], vector) for vector in (*banks, *segment))
        columns = inverse_columns([*low, *basis[:more], *lifted])
        assert columns is not None, "a basis"
        found.append(columns)
    if not simple:
        return found[0]

    def work(columns: Sequence[int]) -> int:
        sides = ([image(columns, c) for c in side.threads] for side in (wide, narrow))
        return sum(len(shifts(side)) for side in sides)

    return min(found, key=work)


def shifts(columns: Iterable[int]) -> set[int]:
    """By what distances a thread's bits are shifted to make its address, given their columns."""
    return {
        place - bit
        for bit, column in enumerate(columns)
        for place in range(column.bit_length())
        if column >> place & 1
    }


def passes_of(addresses: Sequence[int], element: int) -> int:
    """Passes over the banks for lanes whose vectors span such addresses, in elements of so many
    bytes. Lanes that want one word share it.
    """
    scaled = [address * element for address in addresses]
    words = independent(address // 4 for address in scaled)
    return 1 << len(kernel([word % (LINE_BYTES // 4) for word in words]))


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
    def is_whole(self) -> bool:
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
    if matrix and side.is_whole:
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
        rest = _completed_word(word, side.element)
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
    return _completed_word(way.word, side.element)


def _completed_word(word: Sequence[int], element: Sequence[int]) -> list[int]:
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
    if len(word) < side.inside and side.is_whole:
        return count - fragment if ordered else count
    spread = len(independent(place >> side.inside for place in places))
    return 0 if ordered else fragment * max(1, spread)
