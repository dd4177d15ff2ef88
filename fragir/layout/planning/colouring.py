"""Any conversion inside of warps, from tables: as few shuffles as the busiest lane takes.

The words that lanes give each other (`edges`) are coloured (`colours`), and every colour is one
shuffle. Words are made, and taken apart where they arrive, by a chain of selects each. This serves
layouts of any digits, with predicates and copies; layouts over F2 are better planned by `exchange`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from fragir.layout.f2 import Subspace
from fragir.layout.planning.colours import (
    Slot,
    Wanted,
    Warp,
    WordEdge,
    busiest,
    colour_edges,
    edges_of,
    own_edges,
    renumber_points,
    slots_of,
)
from fragir.layout.planning.program import OWN, Builder, LaneTable, Lanewise, Linear, WordProgram
from fragir.layout.planning.registers import LANE_BITS, words_of

# -- fitting ---------------------------------------------------------------------------------------
# Numbers of threads from tables with gaps: linear where they can be.

Gaps = Sequence[Sequence[int | None]]
"""A number for each warp and lane; None where any will do."""


def fit_fields(
    fields: Sequence[tuple[Gaps, int]], lane: Sequence[int] = (0,) * LANE_BITS
) -> Lanewise:
    """A number of several fields: the values of each, of which the bits of its mask count."""
    linear = [_linear(values, mask, lane) for values, mask in fields]
    start, columns, warps = 0, [0] * LANE_BITS, [0] * _warp_bits(len(fields[0][0]))
    for found in linear:
        if found is None:
            return _table(fields, lane)
        start |= found.start
        columns = [a | b for a, b in zip(columns, found.lane, strict=True)]
        warps = [a | b for a, b in zip(warps, found.warp, strict=True)]
    return Linear(start, tuple(columns), tuple(warps))


def _linear(values: Gaps, mask: int, lane: Sequence[int]) -> Linear | None:
    """The values as a sum of columns; None where they are none."""
    known = Subspace()  # of vectors (1, lane, warp), each with its value as the combination
    for warp, row in enumerate(values):
        for at, value in enumerate(row):
            if value is None:
                continue
            vector = 1 | at << 1 | warp << LANE_BITS + 1
            said = known.solve(vector)
            if said is None:
                known.add(vector, value & mask)
            elif said != value & mask:
                return None
    warps = _warp_bits(len(values))
    open_columns = [*(column & mask for column in lane), *([0] * warps)]
    for bit, column in enumerate(open_columns, 1):
        if known.solve(1 << bit) is None:
            known.add(1 << bit, column)
    known.add(1)
    columns = [known.solve(1 << bit) or 0 for bit in range(1, 1 + len(open_columns))]
    return Linear(known.solve(1) or 0, tuple(columns[:LANE_BITS]), tuple(columns[LANE_BITS:]))


def _table(fields: Sequence[tuple[Gaps, int]], lane: Sequence[int]) -> LaneTable:
    rows: list[tuple[int, ...]] = []
    for warp in range(len(fields[0][0])):
        row: list[int] = []
        for at in range(1 << LANE_BITS):
            number = 0
            for values, mask in fields:
                value = values[warp][at]
                if value is None:
                    value = 0
                    for bit, column in enumerate(lane):
                        value ^= column if at >> bit & 1 else 0
                number |= value & mask
            row.append(number)
        rows.append(tuple(row))
    return LaneTable(tuple(rows))


def _warp_bits(warps: int) -> int:
    return (warps - 1).bit_length()


Points = Sequence[Sequence[Sequence[int | None]]]
"""What every element is, as [warp][lane][element]; None where there is nothing."""
LANES = 32


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
    _wanted: tuple[Wanted, ...] = field(repr=False)
    _edges: tuple[tuple[WordEdge, ...], ...] = field(repr=False)

    @cached_property
    def program(self) -> WordProgram:
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
    known: dict[tuple[Warp, Warp], Wanted | None] = {}
    wanted: list[Wanted] = []
    for held, asked in zip(source, target, strict=True):
        numbers: dict[int, int] = {}
        warp = renumber_points(held, numbers), renumber_points(asked, numbers)
        if warp not in known:
            known[warp] = slots_of(*warp)
        slots = known[warp]
        if slots is None:
            return None
        wanted.append(slots)
    if len(set(wanted)) == 1:
        del wanted[1:]
    per = 32 // bits
    edges = [edges_of(slots, per) for slots in wanted]
    elements = tuple(max(len(lane) for warp in side for lane in warp) for side in (source, target))
    bound = max(map(busiest, edges, (per for _ in edges)), default=0)
    return TablePlan((elements[0], elements[1]), bits, bound, tuple(wanted), tuple(edges))


def _halves(points: Points) -> Points:
    """Elements of 64 bits as two of 32."""
    return [
        [[None if p is None else 2 * p + half for p in lane for half in (0, 1)] for lane in warp]
        for warp in points
    ]


# --- the program ---------------------------------------------------------------------------------

Unit = tuple[int, int]
"""(word, unit) of an input of a chain"""


class _Tables:
    """Shuffles and chains of selects from the tables of all warps that differ."""

    def __init__(
        self,
        wanted: Sequence[Sequence[Sequence[Slot | None]]],
        edges: Sequence[Sequence[WordEdge]],
        inputs: int,
        outputs: int,
        per: int,
    ) -> None:
        self._wanted, self._per = wanted, per
        self._builder = Builder(words_of(inputs, 32 // per))
        self._outputs = words_of(outputs, 32 // per)
        self._colours = [colour_edges(warp, per) for warp in edges]
        own = [own_edges(*warp, per) for warp in zip(wanted, edges, self._colours, strict=True)]
        self._edges = [(*warp, *more) for warp, (more, _) in zip(edges, own, strict=True)]
        self._colours = [c + more for c, (_, more) in zip(self._colours, own, strict=True)]

    def program(self) -> WordProgram:
        """The instructions."""
        count = 1 + max((colour for warp in self._colours for colour in warp), default=-1)
        received = [self._sent_word(colour) for colour in range(count)]
        arrived: list[dict[tuple[Slot, int], Unit]] = []
        for edges, colours in zip(self._edges, self._colours, strict=True):
            units: dict[tuple[Slot, int], Unit] = {}
            for edge, colour in zip(edges, colours, strict=True):
                for element, unit in zip(edge.load, edge.units, strict=True):
                    units[(edge.sender, element), edge.reader] = received[colour], unit
            arrived.append(units)
        return self._builder.program(
            [self._taken_word(word, arrived) for word in range(self._outputs)]
        )

    def _sent_word(self, colour: int) -> int:
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
        lane = fit_fields([(lanes, LANES - 1)], OWN)
        return self._builder.shuffle(word, self._builder.interned(lane))

    def _taken_word(self, word: int, arrived: Sequence[dict[tuple[Slot, int], Unit]]) -> int:
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
            made = self._merge(made, word, demands)
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

    def _merge(
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
                row.append(min(words) if words else None)
            chosen.append(row)
        if whole:
            number = fit_fields([(chosen, 1)])
            if number.constant:
                return other if number(0, 0) else one
            if isinstance(number, Linear) and number.start:
                one, other, number = other, one, replace(number, start=0)
            return self._builder.select(one, other, self._builder.interned(number))
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
        return self._builder.permute(one, other, self._builder.interned(fit_fields(fields)))
