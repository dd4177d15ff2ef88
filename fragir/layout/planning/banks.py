"""Where points of a tile stand in shared memory, so that accesses meet no bank twice.

An address map is linear over F2: address = A point. Its low bits count what one access holds
together (the vector of a lane, or the 16 bytes of a matrix row), the bits up to a line of 128 bytes
choose the bank, and what lies above is the *segment*: two words of one bank differ in it. The lanes
that are served together span, with their vectors, a space P of points; a pass is lost for every
pair of them that differs in the segment alone, so P takes 2^dim(P n Seg) passes, where Seg is the
space of the points whose address lies above a line.

Two spaces of no more dimensions than a line has always have a common complement
(`common_complement`). So a store and a load that hold the same vector together never conflict:
take Seg as a complement of both. The second condition is alignment: the low address bits must
vanish on the columns of lanes and warps. Let f be those bits as functionals; then everything takes
place in their kernel K, and P n K is what must miss Seg. Address bits inside of a word of 4 bytes
are no matter of banks: with elements of less than a word all this is meant modulo those bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fragir.layout.f2 import Subspace, image, independent, inverted, kernel

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
        columns = inverted([*low, *basis[:more], *lifted])
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
