"""Which elements travel in one word: the cheapest way to fill words and to pair lanes.

The choice is between few: how lanes are paired with those that they read (`_ways`), and which
elements of those that go together anyway share a word (`_packings`). What each costs follows from
ranks alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from fragir.layout.f2 import Subspace, image, kernel, rank
from fragir.layout.planning.costs import Costs
from fragir.layout.planning.exchange import (
    Exchange,
    Pull,
    element_of,
    lane_of,
    senders,
    spread_slots,
)
from fragir.layout.planning.local import steps
from fragir.layout.planning.program import OWN


def exchange(pull: Pull, inside: int, costs: Costs, most: int = 64) -> Exchange | None:
    """The cheapest hop, of `most` ways to fill words; None where no C can be made invertible."""
    best: tuple[float, int, Exchange] | None = None
    elements = [element_of(slot) for slot in pull.element]
    for lane, within in _ways(pull):
        bare = Exchange(pull, inside, lane, within, (), ())
        spans = _Spans(bare, elements)
        for packed in islice(_packings(pull, elements, inside), most):
            shuffles, steps = spans.counts(packed)
            price = shuffles * (costs.shuffle + costs.issue) + steps * (costs.move + costs.issue)
            if best is None or price < best[0]:
                best = price, steps, Exchange(pull, inside, lane, within, packed, ())
    if best is None:
        return None
    _, steps, found = best
    packed, beside = _bases(_together(pull), found.packed, inside)
    return Exchange(pull, inside, found.lane, found.within, packed, beside, steps)


def _ways(pull: Pull) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Slots of lanes, and X, such that every lane's step zero is readable."""
    lane, lanes = pull.lane, pull.lanes
    moved = [lane_of(slot) for slot in lane]
    if pull.own:
        yield lane, tuple(a ^ b for a, b in zip(moved, OWN, strict=True))
        if all(lane_of(slot) in lanes for slot in pull.warp):
            return
    elif not any(element_of(image(lane, same)) for same in kernel(moved)):
        # lanes that read one lane want the same of it
        yield lane, (0,) * len(lane)
    within = senders(moved, lanes)
    if within is None:
        lane = spread_slots(pull)
        within = senders([lane_of(slot) for slot in lane], lanes)
    if within is not None:
        yield lane, tuple(within)


def _together(pull: Pull) -> list[int]:
    """N: the elements, as sums of kept bits, that a lane reads from one lane."""
    lanes = pull.lanes
    found: list[int] = []
    for bit, slot in enumerate(pull.element):
        if bit not in pull.others:
            step = lanes.solve(lane_of(slot)) or 0
            found.append(1 << bit | image([1 << other for other in pull.others], step))
    return found


def _packings(pull: Pull, elements: Sequence[int], inside: int) -> Iterator[tuple[int, ...]]:
    """Bases of spaces of elements that could travel in one word."""
    together = _together(pull)
    size = min(inside, len(together))
    if not size:
        yield ()
        return
    units = [kept for kept in pull.whole[:inside] if kept]
    near_target = _meeting(together, units)
    words = [image(elements, vector) >> inside for vector in together]
    near_source = [image(together, vector) for vector in kernel(words)]
    vectors = list(dict.fromkeys([*near_target, *near_source, *together]))
    seen = set[frozenset[int]]()
    for packed in combinations(vectors, size):
        span = Subspace(packed)
        if len(span) == size:
            key = frozenset(image(packed, sum_) for sum_ in range(1, 1 << size))
            if key not in seen:
                seen.add(key)
                yield packed


def _meeting(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """A basis of what two spaces have in common."""
    mask = (1 << len(first)) - 1
    return [image(first, vector & mask) for vector in kernel([*first, *second])]


def _bases(
    together: Sequence[int], packed: Sequence[int], inside: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bases of what travels in a word and beside it, with as many plain bits as can be.

    Units of the target stay in their order where whole words of it travel.
    """
    low = (1 << inside) - 1
    reduced = Subspace(packed)
    plain = sorted(vector for vector in (1 << bit for bit in range(inside)) if vector in reduced)
    span = Subspace(plain)
    base = [*plain, *(vector for vector in packed if span.add(vector))]
    beside = list[int]()
    for vector in together:
        if span.add(vector):
            if len(plain) == len(base):
                vector &= ~(low & sum(plain))
            beside.append(vector)
    return tuple(base), tuple(beside)


class _Spans:
    """What the price of a hop hangs on, less the words' contents."""

    def __init__(self, bare: Exchange, elements: Sequence[int]) -> None:
        pull, b = bare.pull, bare.inside
        self._bare, self._elements = bare, elements
        before = bare.before
        self._sent = Subspace(c >> b for c in before.threads)
        parts = [pull.lanes.solve(part) or 0 for part in (*bare.within, *bare.warps[0])]
        others = [1 << bit for bit in pull.others]
        self._read = Subspace(
            [kept for kept in pull.whole[:b] if kept] + [image(others, p) for p in parts]
        )
        self._own = bare.keeps
        self._words = max(0, len(pull.element) - b)
        self._source = rank(c >> b for c in (*elements, *map(element_of, (*bare.lane, *pull.warp))))

    def counts(self, packed: Sequence[int]) -> tuple[int, int]:
        """Shuffles, and steps before and after."""
        bare, b = self._bare, self._bare.inside
        m, size = bare.mixed, len(packed)
        beside = len(self._elements) - m - size
        sent = self._sent.copy()
        for vector in packed:
            sent.add(image(self._elements, vector) >> b)
        read = self._read.copy()
        for vector in packed:
            read.add(vector)
        k_before, k_after = len(sent), len(read) - size
        arriving = m + beside
        own = self._own and m == 1 and k_after == 1 and k_before == 1
        before = steps(k_before, arriving, self._source)
        if own:
            before >>= 1
        after = steps(k_after, self._words, arriving)
        shuffles = (1 << arriving) - (1 << beside if self._own else 0)
        return shuffles, before + after
