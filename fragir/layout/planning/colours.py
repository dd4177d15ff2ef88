"""Edges of a bipartite graph coloured: in a colour no sender and no reader stands twice.

By Koenig's theorem as many colours do as the busiest end has edges: where no colour is free at both
ends of an edge, two colours are exchanged along a path. Edges of one word to several readers may
have one colour; then colours are found one after another and may be more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from fragir.layout.planning.registers import words_of

# -- edges -----------------------------------------------------------------------------------------
# The words that lanes of a warp give each other, from tables of what each holds and wants.

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


def renumber_points(lanes: Sequence[Sequence[int | None]], numbers: dict[int, int]) -> Warp:
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
    return tuple(_shared_edges(edges, per))


def _shared_edges(edges: list[WordEdge], per: int) -> list[WordEdge]:
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
            fitting = (w for w in words if len({*edge.load, *_loaded_elements(w)}) <= per)
            word = next(fitting, None) if too_many > 0 else None
            if word is None:
                words.append([edge])
            else:
                word.append(edge)
                too_many -= 1
        for word in words:
            load = tuple(_loaded_elements(word))
            units = units_of(load, per)
            found += [replace(edge, load=load, units=units) for edge in word]
    return found


def _loaded_elements(edges: Sequence[WordEdge]) -> dict[int, None]:
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


def colour_edges(edges: Sequence[WordEdge], per: int) -> list[int]:
    """The colour of every edge."""
    casts: defaultdict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for number, edge in enumerate(edges):
        casts[edge.sender, edge.load].append(number)
    taste = _Taste(edges, per)
    if all(len(group) == 1 for group in casts.values()):
        return _koenig(edges, taste)
    return _first_fit(edges, list(casts.values()), taste)


class _Taste:
    """Which colours an edge fits best: those with edges of its words, on both sides."""

    def __init__(self, edges: Sequence[WordEdge], per: int) -> None:
        self._keys = [
            [
                *(("from", element // per) for element in edge.load),
                *(("to", word) for word in sorted(edge.words)),
                ("by", edge.sender ^ edge.reader),
            ]
            for edge in edges
        ]
        self._used: Counter[tuple[int, str, int]] = Counter()

    def best(self, edge: int, colours: Sequence[int]) -> int:
        """The best of some colours, the lowest of equals."""
        keys = self._keys[edge]
        return max(colours, key=lambda c: (sum(self._used[c, *key] for key in keys), -c))

    def use(self, edge: int, colour: int, times: int = 1) -> None:
        """An edge has got (or lost) a colour."""
        for key in self._keys[edge]:
            self._used[colour, *key] += times


def _koenig(edges: Sequence[WordEdge], taste: _Taste) -> list[int]:
    """As many colours as the busiest end has edges."""
    degrees = Counter(("from", edge.sender) for edge in edges)
    degrees += Counter(("to", edge.reader) for edge in edges)
    count = max(degrees.values(), default=0)
    colours = [-1] * len(edges)
    at: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)

    def ends(number: int) -> tuple[tuple[str, int], tuple[str, int]]:
        return ("from", edges[number].sender), ("to", edges[number].reader)

    def paint(number: int, colour: int) -> None:
        colours[number] = colour
        taste.use(number, colour)
        for end in ends(number):
            at[end][colour] = number

    for number in range(len(edges)):
        sender, reader = ends(number)
        free = [c for c in range(count) if c not in at[sender] and c not in at[reader]]
        if free:
            paint(number, taste.best(number, free))
            continue
        one = next(c for c in range(count) if c not in at[sender])
        other = next(c for c in range(count) if c not in at[reader])
        # from the reader along edges of both colours in turn; the sender is not on this path
        path: list[int] = []
        end, colour = reader, one
        while colour in at[end]:
            edge = at[end][colour]
            path.append(edge)
            first, second = ends(edge)
            end = second if end == first else first
            colour = other if colour == one else one
        for edge in path:
            taste.use(edge, colours[edge], -1)
            for end in ends(edge):
                del at[end][colours[edge]]
        for edge in path:
            paint(edge, other if colours[edge] == one else one)
        paint(number, one)
    return colours


def _first_fit(edges: Sequence[WordEdge], casts: list[list[int]], taste: _Taste) -> list[int]:
    """Words that several lanes want of one take one colour where they can."""
    colours = [-1] * len(edges)
    sending: set[tuple[int, int]] = set()
    reading: set[tuple[int, int]] = set()
    count = 0
    for group in sorted(casts, key=len, reverse=True):
        rest = group
        while rest:
            sender = edges[rest[0]].sender
            served = {
                colour: sum((edges[n].reader, colour) not in reading for n in rest)
                for colour in range(count + 1)
                if (sender, colour) not in sending
            }
            most = max(served.values())
            old = [c for c, n in served.items() if n == most and c < count]
            colour = taste.best(rest[0], old) if old else count
            count = max(count, colour + 1)
            sending.add((sender, colour))
            left: list[int] = []
            for number in rest:
                if (edges[number].reader, colour) in reading:
                    left.append(number)
                else:
                    colours[number] = colour
                    reading.add((edges[number].reader, colour))
                    taste.use(number, colour)
            rest = left
    return colours


def own_edges(
    wanted: Sequence[Sequence[Slot | None]],
    edges: Sequence[WordEdge],
    colours: Sequence[int],
    per: int,
) -> tuple[list[WordEdge], list[int]]:
    """Words that lanes give themselves by shuffles there are, which saves a select.

    They join a colour in which the lane takes nothing and gives nothing else, and which has the
    same words of source and target in other lanes.
    """
    sending = {(edge.sender, colour): edge for edge, colour in zip(edges, colours, strict=True)}
    reading = {(edge.reader, colour) for edge, colour in zip(edges, colours, strict=True)}
    kin: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for edge, colour in zip(edges, colours, strict=True):
        for element, word in product(edge.load, edge.words):  # any order
            kin[element // per, word].add(colour)
    found: list[WordEdge] = []
    painted: list[int] = []
    for lane, row in enumerate(wanted):
        for word in range(words_of(len(row), 32 // per)):
            slots = row[word * per : word * per + per]
            load = tuple(dict.fromkeys(s[1] for s in slots if s is not None and s[0] == lane))
            common = [kin[element // per, word] for element in load]
            for colour in sorted(set[int]().union(*common).intersection(*common)):
                own = WordEdge(lane, lane, load, units_of(load, per), frozenset({word}))
                given = sending.get((lane, colour), own)
                if (lane, colour) in reading or not set(load) <= set(given.load):
                    continue
                sending[lane, colour] = given
                reading.add((lane, colour))
                found.append(replace(given, reader=lane))
                painted.append(colour)
                break
    return found, painted
