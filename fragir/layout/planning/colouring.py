"""Any conversion inside of warps, from tables: as few shuffles as the busiest lane takes.

A word that one lane has to give another is an edge of a bipartite graph, of senders and readers. A
shuffle is a set of edges in which no sender and no reader stands twice: a colour. By Koenig's
theorem the edges can be coloured with as many colours as the busiest lane has edges, by
exchanging two colours along a path where none is free at both ends. Where lanes want the same word
of a sender, one colour may serve them all; then the colours are found one after another and may be
more.

Words are made, and taken apart where they arrive, by a chain of selects each. This serves layouts
of any digits, with predicates and copies; layouts over F2 are better planned by `exchange`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from fragir.layout.planning.building import OWN, Builder
from fragir.layout.planning.fitting import fitted
from fragir.layout.planning.program import Linear, Program
from fragir.layout.planning.registers import words_of

Points = Sequence[Sequence[Sequence[int | None]]]
"""What every element is, as [warp][lane][element]; None where there is nothing."""
Slot = tuple[int, int]
"""(lane, element)"""
LANES = 32


@dataclass(frozen=True, slots=True)
class Edge:
    """A word that a lane gives another: elements of the sender, and the unit in which each goes."""

    sender: int
    reader: int
    load: tuple[int, ...]
    units: tuple[int, ...]
    words: frozenset[int]
    """Words of the reader that it is for."""


@dataclass(frozen=True)
class TablePlan:
    """A conversion inside of each warp, from tables.

    `bound` is the number of words that the busiest lane takes or gives. Where no element has
    copies to choose from, no program in one hop can undercut it.
    """

    elements: tuple[int, int]
    """Elements of a thread, before and after."""
    bits: int
    bound: int
    _wanted: tuple[_Wanted, ...] = field(repr=False)
    _edges: tuple[tuple[Edge, ...], ...] = field(repr=False)

    @cached_property
    def program(self) -> Program:
        """The instructions of one thread."""
        return _Tables(self._wanted, self._edges, *self.elements, 32 // self.bits).program()

    @property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name."""
        return self.program.counts


def table_plan(source: Points, target: Points, bits: int) -> TablePlan | None:
    """How the target's registers are made of the source's; None where data cross warps.

    Elements have 8, 16, 32 or 64 bits. Warps are as many on both sides, lanes 32.
    """
    if bits == 64:
        return table_plan(_halves(source), _halves(target), 32)
    known: dict[tuple[_Warp, _Warp], _Wanted | None] = {}
    wanted: list[_Wanted] = []
    for held, asked in zip(source, target, strict=True):
        numbers: dict[int, int] = {}
        warp = _renumbered(held, numbers), _renumbered(asked, numbers)
        if warp not in known:
            known[warp] = _slots(*warp)
        slots = known[warp]
        if slots is None:
            return None
        wanted.append(slots)
    if len(set(wanted)) == 1:
        del wanted[1:]
    per = 32 // bits
    edges = [_edges(slots, per) for slots in wanted]
    elements = tuple(max(len(lane) for warp in side for lane in warp) for side in (source, target))
    bound = max(map(_busiest, edges, (per for _ in edges)), default=0)
    return TablePlan((elements[0], elements[1]), bits, bound, tuple(wanted), tuple(edges))


def _halves(points: Points) -> Points:
    """Elements of 64 bits as two of 32."""
    return [
        [[None if p is None else 2 * p + half for p in lane for half in (0, 1)] for lane in warp]
        for warp in points
    ]


_Warp = tuple[tuple[int | None, ...], ...]
_Wanted = tuple[tuple[Slot | None, ...], ...]


def _renumbered(lanes: Sequence[Sequence[int | None]], numbers: dict[int, int]) -> _Warp:
    """Points numbered as they come, so that warps that move alike are alike."""
    return tuple(
        tuple(None if p is None else numbers.setdefault(p, len(numbers)) for p in lane)
        for lane in lanes
    )


def _slots(held: _Warp, asked: _Warp) -> _Wanted | None:
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


def _edges(wanted: Sequence[Sequence[Slot | None]], per: int) -> tuple[Edge, ...]:
    """The words that lanes give each other, each filled with what its reader wants together."""
    pairs: defaultdict[tuple[int, int], dict[int, set[int]]] = defaultdict(dict)
    for reader, row in enumerate(wanted):
        for place, slot in enumerate(row):
            if slot is not None and slot[0] != reader:
                pairs[slot[0], reader].setdefault(slot[1], set()).add(place // per)
    edges: list[Edge] = []
    for (sender, reader), elements in sorted(pairs.items()):
        rest = list(elements)
        for first in range(0, len(rest), per):
            load = tuple(rest[first : first + per])
            words = frozenset(word for element in load for word in elements[element])
            edges.append(Edge(sender, reader, load, _units(load, per), words))
    return tuple(_shared(edges, per))


def _shared(edges: list[Edge], per: int) -> list[Edge]:
    """Lanes that give more words than any takes give what is left over to several at once."""
    most = max(Counter(edge.reader for edge in edges).values(), default=0)
    found: list[Edge] = []
    senders: defaultdict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        senders[edge.sender].append(edge)
    for given in senders.values():
        too_many = len({edge.load for edge in given}) - most
        words: list[list[Edge]] = []
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
            units = _units(load, per)
            found += [replace(edge, load=load, units=units) for edge in word]
    return found


def _loaded(edges: Sequence[Edge]) -> dict[int, None]:
    """The elements of some edges, each once."""
    return dict.fromkeys(element for edge in edges for element in edge.load)


def _busiest(edges: Sequence[Edge], per: int) -> int:
    """The most words that a lane takes, or must give: each of its elements once."""
    taken = Counter(edge.reader for edge in edges)
    given: defaultdict[int, set[int]] = defaultdict(set)
    for edge in edges:
        given[edge.sender].update(edge.load)
    return max([0, *taken.values(), *(-(-len(elements) // per) for elements in given.values())])


def _units(load: Sequence[int], per: int) -> tuple[int, ...]:
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


# --- colours -------------------------------------------------------------------------------------


def coloured(edges: Sequence[Edge], per: int) -> list[int]:
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

    def __init__(self, edges: Sequence[Edge], per: int) -> None:
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


def _koenig(edges: Sequence[Edge], taste: _Taste) -> list[int]:
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


def _first_fit(edges: Sequence[Edge], casts: list[list[int]], taste: _Taste) -> list[int]:
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


def _own(
    wanted: Sequence[Sequence[Slot | None]],
    edges: Sequence[Edge],
    colours: Sequence[int],
    per: int,
) -> tuple[list[Edge], list[int]]:
    """Words that lanes give themselves by shuffles there are, which saves a select.

    They join a colour in which the lane takes nothing and gives nothing else, and which has the
    same words of source and target in other lanes.
    """
    sending = {(edge.sender, colour): edge for edge, colour in zip(edges, colours, strict=True)}
    reading = {(edge.reader, colour) for edge, colour in zip(edges, colours, strict=True)}
    kin: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for edge, colour in zip(edges, colours, strict=True):
        for element, word in product(edge.load, edge.words):
            kin[element // per, word].add(colour)
    found: list[Edge] = []
    painted: list[int] = []
    for lane, row in enumerate(wanted):
        for word in range(words_of(len(row), 32 // per)):
            slots = row[word * per : word * per + per]
            load = tuple(dict.fromkeys(s[1] for s in slots if s is not None and s[0] == lane))
            common = [kin[element // per, word] for element in load]
            for colour in sorted(set[int]().union(*common).intersection(*common)):
                own = Edge(lane, lane, load, _units(load, per), frozenset({word}))
                given = sending.get((lane, colour), own)
                if (lane, colour) in reading or not set(load) <= set(given.load):
                    continue
                sending[lane, colour] = given
                reading.add((lane, colour))
                found.append(replace(given, reader=lane))
                painted.append(colour)
                break
    return found, painted


# --- the program ---------------------------------------------------------------------------------

Unit = tuple[int, int]
"""(word, unit) of an input of a chain"""


class _Tables:
    """Shuffles and chains of selects from the tables of all warps that differ."""

    def __init__(
        self,
        wanted: Sequence[Sequence[Sequence[Slot | None]]],
        edges: Sequence[Sequence[Edge]],
        inputs: int,
        outputs: int,
        per: int,
    ) -> None:
        self._wanted, self._per = wanted, per
        self._builder = Builder(words_of(inputs, 32 // per))
        self._outputs = words_of(outputs, 32 // per)
        self._colours = [coloured(warp, per) for warp in edges]
        own = [_own(*warp, per) for warp in zip(wanted, edges, self._colours, strict=True)]
        self._edges = [(*warp, *more) for warp, (more, _) in zip(edges, own, strict=True)]
        self._colours = [c + more for c, (_, more) in zip(self._colours, own, strict=True)]

    def program(self) -> Program:
        """The instructions."""
        count = 1 + max((colour for warp in self._colours for colour in warp), default=-1)
        received = [self._sent(colour) for colour in range(count)]
        arrived: list[dict[tuple[Slot, int], Unit]] = []
        for edges, colours in zip(self._edges, self._colours, strict=True):
            units: dict[tuple[Slot, int], Unit] = {}
            for edge, colour in zip(edges, colours, strict=True):
                for element, unit in zip(edge.load, edge.units, strict=True):
                    units[(edge.sender, element), edge.reader] = received[colour], unit
            arrived.append(units)
        return self._builder.program([self._taken(word, arrived) for word in range(self._outputs)])

    def _sent(self, colour: int) -> int:
        """The word that arrives by the shuffle of a colour."""
        units = self._nothing()
        lanes: list[list[int | None]] = [[None] * LANES for _ in self._edges]
        for warp, edges in enumerate(self._edges):
            for edge, painted in zip(edges, self._colours[warp], strict=True):
                if painted == colour:
                    lanes[warp][edge.reader] = edge.sender
                    for element, unit in zip(edge.load, edge.units, strict=True):
                        units[warp][edge.sender][unit] = divmod(element, self._per)
        word = self._chain(units)
        lane = fitted([(lanes, LANES - 1)], OWN)
        return self._builder.shuffle(word, self._builder.known(lane))

    def _taken(self, word: int, arrived: Sequence[dict[tuple[Slot, int], Unit]]) -> int:
        """A word of the target, from the own words and those that arrived."""
        units = self._nothing()
        per = self._per
        for warp, lanes in enumerate(self._wanted):
            for lane, row in enumerate(lanes):
                for unit, slot in enumerate(row[word * per : word * per + per]):
                    if slot is None:
                        continue
                    own = divmod(slot[1], per)
                    units[warp][lane][unit] = arrived[warp].get((slot, lane), own)
        return self._chain(units)

    def _nothing(self) -> list[list[list[Unit | None]]]:
        return [[[None] * self._per for _ in range(LANES)] for _ in self._edges]

    def _chain(self, units: Sequence[Sequence[Sequence[Unit | None]]]) -> int:
        """A word of units of any words: two words at first, then one more in each step."""
        words = sorted({unit[0] for warp in units for lane in warp for unit in lane if unit})
        if not words:
            return 0
        made = words[0]
        where = {words[0]: False}  # words in `made`, and whether units are in place there
        for word in words[1:] or words:
            demands: list[list[list[int | None]]] = []
            for warp in units:
                demands.append([self._demand(lane, word, where) for lane in warp])
            made = self._merged(made, word, demands)
            where = dict.fromkeys([*where, word], True)
        return made

    def _demand(
        self, lane: Sequence[Unit | None], word: int, where: dict[int, bool]
    ) -> list[int | None]:
        """For each unit the one of two words: of those made so far, or of `word` (from `per`)."""
        found: list[int | None] = []
        for place, unit in enumerate(lane):
            if unit is None:
                found.append(None)
            elif unit[0] == word:
                found.append(self._per + unit[1])
            elif unit[0] in where:
                found.append(place if where[unit[0]] else unit[1])
            else:
                found.append(None)
        return found

    def _merged(
        self, one: int, other: int, demands: Sequence[Sequence[Sequence[int | None]]]
    ) -> int:
        """One step: units of two words, by a select where whole words do."""
        per = self._per
        chosen: list[list[int | None]] = []
        whole = True
        for warp in demands:
            row: list[int | None] = []
            for lane in warp:
                words = {unit // per for unit in lane if unit is not None}
                stays = all(unit is None or unit % per == at for at, unit in enumerate(lane))
                whole = whole and stays and len(words) <= 1
                row.append(next(iter(words), None))
            chosen.append(row)
        if whole:
            number = fitted([(chosen, 1)])
            if number.constant:
                return other if number(0, 0) else one
            if isinstance(number, Linear) and number.start:
                one, other, number = other, one, replace(number, start=0)
            return self._builder.select(one, other, self._builder.known(number))
        size = 4 // per
        fields: list[tuple[list[list[int | None]], int]] = []
        for byte in range(4):
            shift = 4 * byte
            values = [
                [
                    None
                    if (unit := lane[byte // size]) is None
                    else (unit * size + byte % size) << shift
                    for lane in warp
                ]
                for warp in demands
            ]
            fields.append((values, 7 << shift))
        return self._builder.permute(one, other, self._builder.known(fitted(fields)))
