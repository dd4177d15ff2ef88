"""The words that lanes of a warp give each other, from tables of what each holds and wants."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

Slot = tuple[int, int]
"""(lane, element)"""

Warp = tuple[tuple[int | None, ...], ...]
"""What the elements of a warp's lanes are, numbered as they come; None where there is nothing."""
Wanted = tuple[tuple[Slot | None, ...], ...]
"""For each lane and element the slot it comes from."""


@dataclass(frozen=True, slots=True)
class WordEdge:
    """A word that a lane gives another: elements of the sender, and the unit in which each goes."""

    sender: int
    reader: int
    load: tuple[int, ...]
    units: tuple[int, ...]
    words: frozenset[int]
    """Words of the reader that it is for."""


def renumbered(lanes: Sequence[Sequence[int | None]], numbers: dict[int, int]) -> Warp:
    """Points numbered as they come, so that warps that move alike are alike."""
    return tuple(
        tuple(None if p is None else numbers.setdefault(p, len(numbers)) for p in lane)
        for lane in lanes
    )


def slots_of(held: Warp, asked: Warp) -> Wanted | None:
    """For each element that is asked for the slot it comes from: the own lane's first."""
    where: defaultdict[int, list[Slot]] = defaultdict(list)
    for lane, row in enumerate(held):
        for element, point in enumerate(row):
            if point is not None:
                where[point].append((lane, element))
    busy: Counter[int] = Counter()
    known: set[tuple[int, int]] = set()
    found: list[tuple[Slot | None, ...]] = []
    for lane, row in enumerate(asked):
        slots: list[Slot | None] = []
        for point in row:
            if point is None:
                slots.append(None)
                continue
            ways = where.get(point)
            if not ways:
                return None
            own = [slot for slot in ways if slot[0] == lane]
            if own:
                slots.append(own[0])
                continue
            # a lane that is asked already, then the least busy one, then the nearest
            best = min(ways, key=lambda s: ((s[0], lane) not in known, busy[s[0]], s[0] ^ lane, s))
            busy[best[0]] += 1
            known.add((best[0], lane))
            slots.append(best)
        found.append(tuple(slots))
    return tuple(found)


def edges_of(wanted: Sequence[Sequence[Slot | None]], per: int) -> tuple[WordEdge, ...]:
    """The words that lanes give each other, each filled with what its reader wants together."""
    pairs: defaultdict[tuple[int, int], dict[int, set[int]]] = defaultdict(dict)
    for reader, row in enumerate(wanted):
        for place, slot in enumerate(row):
            if slot is not None and slot[0] != reader:
                pairs[slot[0], reader].setdefault(slot[1], set()).add(place // per)
    edges: list[WordEdge] = []
    for (sender, reader), elements in sorted(pairs.items()):
        rest = list(elements)
        for first in range(0, len(rest), per):
            load = tuple(rest[first : first + per])
            words = frozenset(word for element in load for word in elements[element])
            edges.append(WordEdge(sender, reader, load, units_of(load, per), words))
    return tuple(_shared(edges, per))


def _shared(edges: list[WordEdge], per: int) -> list[WordEdge]:
    """Lanes that give more words than any takes give what is left over to several at once."""
    most = max(Counter(edge.reader for edge in edges).values(), default=0)
    found: list[WordEdge] = []
    senders: defaultdict[int, list[WordEdge]] = defaultdict(list)
    for edge in edges:
        senders[edge.sender].append(edge)
    for given in senders.values():
        too_many = len({edge.load for edge in given}) - most
        words: list[list[WordEdge]] = []
        for edge in sorted(given, key=lambda edge: len(edge.load), reverse=True):
            fitting = (w for w in words if len({*edge.load, *_loaded(w)}) <= per)
            word = next(fitting, None) if too_many > 0 else None
            if word is None:
                words.append([edge])
            else:
                word.append(edge)
                too_many -= 1
        for word in words:
            load = tuple(_loaded(word))
            units = units_of(load, per)
            found += [replace(edge, load=load, units=units) for edge in word]
    return found


def _loaded(edges: Sequence[WordEdge]) -> dict[int, None]:
    """The elements of some edges, each once."""
    return dict.fromkeys(element for edge in edges for element in edge.load)


def busiest(edges: Sequence[WordEdge], per: int) -> int:
    """The most words that a lane takes, or must give: each of its elements once."""
    taken = Counter(edge.reader for edge in edges)
    given: defaultdict[int, set[int]] = defaultdict(set)
    for edge in edges:
        given[edge.sender].update(edge.load)
    return max([0, *taken.values(), *(-(-len(elements) // per) for elements in given.values())])


def units_of(load: Sequence[int], per: int) -> tuple[int, ...]:
    """Where in the word each element goes: where it is, if that is free."""
    free = set(range(per))
    units: dict[int, int] = {}
    for element in load:
        if element % per in free:
            units[element] = element % per
            free.discard(element % per)
    for element in load:
        if element not in units:
            units[element] = min(free)
            free.discard(units[element])
    return tuple(units[element] for element in load)
