"""Conversions inside of a warp: by renaming, byte permutes, selects, shuffles and `movmatrix`.

Any linear map is done in one hop (`exchange`) with as many shuffles as the lower bound says
(`bounds`), where every lane has a word at least for each lane that it reads from. Where it has not,
several hops (`hops`), and `movmatrix` for what it is the transposition of, may be cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Literal

from fragir.errors import short_text
from fragir.layout.f2 import Subspace
from fragir.layout.planning.bounds import moves_of
from fragir.layout.planning.costs import COSTS, FEATURES, Costs, Features
from fragir.layout.planning.exchange import Exchange, Pull, element_of, lane_of, pull_of
from fragir.layout.planning.local import LocalMap
from fragir.layout.planning.packing import exchange
from fragir.layout.planning.program import Builder, LaneTable, WordProgram, chain_programs, lanewise
from fragir.layout.planning.registers import LayoutPair, RegisterColumns, words_of

# -- hops ------------------------------------------------------------------------------------------
# Conversions inside of a warp as moves one after another: what one hop cannot do well.
#
# A hop from 2^m lanes takes a shuffle for each of them, with words that are partly filled where a
# lane has fewer words than that. Two or more hops through layouts between, each exchanging some
# bits of elements with bits of lanes, then take fewer shuffles.


@dataclass(frozen=True, slots=True)
class Turn:
    """`movmatrix` of every word."""

    words: int


Move = LocalMap | Exchange | Turn


@dataclass(frozen=True)
class Route:
    """Moves one after another. `price` is reckoned without the program."""

    moves: tuple[Move, ...]
    price: float

    def __add__(self, other: Route) -> Route:
        return Route(self.moves + other.moves, self.price + other.price)

    def program(self, inputs: int) -> WordProgram:
        """The instructions, for so many words of the source."""
        program = _program(self.moves[0], inputs)
        for move in self.moves[1:]:
            program = chain_programs(program, _program(move, len(program.outputs)))
        return program


def _program(move: Move, inputs: int) -> WordProgram:
    if isinstance(move, Exchange):
        return move.program(inputs)
    builder = Builder(inputs)
    if isinstance(move, Turn):
        return builder.program([builder.transpose(word) for word in range(inputs)])
    return builder.program(move.emit(builder, lambda word: word))


def direct(
    source: RegisterColumns, target: RegisterColumns, inside: int, costs: Costs, most: int = 64
) -> Route | None:
    """In one hop or within lanes; None where that cannot be.

    2^`inside` elements are a word; `most` ways to fill words are looked at.
    """
    pull = pull_of(source, target)
    if pull is None:
        return None
    local = _local(pull, inside)
    if local is not None:
        return Route((local,), local.steps * (costs.move + costs.issue))
    hop = exchange(pull, inside, costs, most)
    if hop is None:
        return None
    shuffles = hop.shuffles * (costs.shuffle + costs.issue)
    return Route((hop,), shuffles + hop.steps * (costs.move + costs.issue))


def _local(pull: Pull, inside: int) -> LocalMap | None:
    """What is done without another lane; None where one is needed."""
    if pull.others or not pull.own or any(map(lane_of, pull.warp)):
        return None
    elements = [element_of(slot) for slot in pull.element]
    whole = [0] * len(pull.whole)
    for bit, kept in enumerate(pull.whole):
        for index, element in enumerate(elements):
            if kept >> index & 1:
                whole[bit] ^= element
    lane, warp = (tuple(map(element_of, side)) for side in (pull.lane, pull.warp))
    return LocalMap(inside, tuple(whole[inside:]), tuple(whole[:inside]), lane, warp)


# --- several hops --------------------------------------------------------------------------------


def several(
    source: RegisterColumns, target: RegisterColumns, inside: int, costs: Costs
) -> Route | None:
    """The cheapest way through layouts between, each one exchange further; None where none is.

    Layouts between are chosen one exchange after another: of those that leave the target fewer
    lanes to read, the one from which a single hop is cheapest. Then the cheapest way along them.
    """
    found: list[RegisterColumns] = [source]
    while len(found) < _MOST:
        between = _nearest(found[-1], target, inside, costs)
        if between is None:
            break
        found.append(between)
    if len(found) == 1:
        return None
    nodes = [*found, target]
    best: list[Route | None] = [Route((), 0.0)]
    for end in range(1, len(nodes)):
        ways: list[Route] = []
        for start in range(end):
            before = best[start]
            if before is None or (start, end) == (0, len(nodes) - 1):
                continue
            route = direct(nodes[start], nodes[end], inside, costs, most=4)
            if route is not None:
                ways.append(before + route)
        best.append(min(ways, key=lambda route: route.price, default=None))
    return best[-1]


_MOST = 5
"""Layouts between a source and a target, the source counted."""
_TRIED = 4
"""Exchanges that are compared for each layout between."""


def _nearest(
    source: RegisterColumns, target: RegisterColumns, inside: int, costs: Costs
) -> RegisterColumns | None:
    """The best layout one exchange from the source, on the way to the target."""
    wanted = Subspace(target.element)
    held = Subspace(source.element)
    lacking = sum(held.add(column) for column in target.element)
    if 1 << max(0, len(wanted) - inside) >= 1 << lacking:
        return None  # words are full: one hop does
    best: tuple[float, RegisterColumns] | None = None
    for between in islice(_exchange_layouts(source, target, wanted), _TRIED):
        rest = direct(between, target, inside, costs, most=1)
        if rest is not None and (best is None or rest.price < best[0]):
            best = rest.price, between
    return None if best is None else best[1]


def _exchange_layouts(
    source: RegisterColumns, target: RegisterColumns, wanted: Subspace
) -> Iterator[RegisterColumns]:
    """Layouts in which an element bit of the target has changed places with a bit of a lane.

    First those in which the lane gets what it has in the target, then those in which the element
    is where it is in the target.
    """
    count = len(source.element)
    every = Subspace(source.element + source.lane)
    held = Subspace(source.element)
    given = [bit for bit, column in enumerate(source.element) if column not in wanted]
    ways: list[tuple[bool, bool, int, int, int]] = []
    for place, column in enumerate(target.element):
        slot = every.solve(column)
        if column in held or slot is None:
            continue
        lane = slot >> count
        lanes = [bit for bit in range(len(source.lane)) if lane >> bit & 1]
        for bit in given:
            fitting = [k for k in lanes if target.lane[k] == source.element[bit]]
            ways += [(not fitting, place != bit, bit, k, column) for k in fitting or lanes[:1]]
    for _, _, bit, k, column in sorted(ways):
        yield replace(
            source,
            element=_with(source.element, bit, column),
            lane=_with(source.lane, k, source.element[bit]),
        )


def _with(columns: tuple[int, ...], bit: int, column: int) -> tuple[int, ...]:
    return (*columns[:bit], column, *columns[bit + 1 :])


# -- movmatrix -------------------------------------------------------------------------------------
# `movmatrix`, the transposition of 8 by 8 halves across a warp, where it saves shuffles.
#
# `movmatrix.sync.aligned.m8n8.trans.b16` (PTX ISA, "Warp-level matrix transpose instruction") takes
# the bit of the half to bit 2 of the lane, bits 0 and 1 of the lane to bits 3 and 4, and back.
# Halves are elements of 16 bits or pairs of bytes.

HALF = {1: 0, 2: 1}
"""The bit of the element that is the half, by the number of element bits in a word."""


def turned_columns(side: RegisterColumns, half: int) -> RegisterColumns:
    """The layout after every word was transposed."""
    low, high = side.lane[:2], side.lane[3:]
    lane = (*high, side.element[half], *low)
    element = (*side.element[:half], side.lane[2], *side.element[half + 1 :])
    return replace(side, element=element, lane=lane)


def movmatrix_route(
    source: RegisterColumns, target: RegisterColumns, inside: int, costs: Costs
) -> Route | None:
    """Repacking inside of lanes, one `movmatrix` a word, and the rest; None where it cannot be."""
    half = HALF.get(inside)
    if half is None or len(source.element) < inside:
        return None
    wanted = Subspace(target.element)
    now = _strange(source, wanted)
    words = 1 << len(source.element) - inside
    best: Route | None = None
    for bit in range(half, len(source.element)):
        packed = replace(source, element=_swap_columns(source.element, half, bit))
        after = turned_columns(packed, half)
        if _strange(after, wanted) >= max(now, 1):
            continue  # no fewer lanes to read than before
        first = direct(source, packed, inside, costs)
        rest = direct(after, target, inside, costs, most=8)
        if first is None or rest is None:
            continue
        turn = Route((Turn(words),), words * (costs.transpose + costs.issue))
        route = first + turn + rest
        if best is None or route.price < best.price:
            best = route
    return best


def _strange(side: RegisterColumns, wanted: Subspace) -> int:
    """How many independent bits of the wanted elements lie in other lanes."""
    held = Subspace(side.element)
    return sum(held.add(column) for column in wanted)


def _swap_columns(columns: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    changed = list(columns)
    changed[i], changed[j] = changed[j], changed[i]
    return tuple(changed)


Kind = Literal["nothing", "registers", "bytes", "lanes"]


@dataclass(frozen=True)
class WarpPlan:
    """A conversion inside of each warp.

    `bound` is the least number of shuffles that any program of shuffles has. Counts and cost are
    those of the program, which is made when it is asked for; `reckoned` is what its instructions
    were thought to cost when ways were compared.
    """

    source: RegisterColumns
    target: RegisterColumns
    bits: int
    bound: int
    costs: Costs
    route: Route = field(repr=False)

    def __repr__(self) -> str:
        steps = " + ".join(f"{count} {name}" for name, count in self.counts.items())
        return short_text(f"<conversion inside of warps: {steps}; {self.bound} shuffles at least>")

    @cached_property
    def program(self) -> WordProgram:
        """The instructions of one thread."""
        return self.route.program(words_of(1 << len(self.source.element), self.bits))

    @property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name."""
        return self.program.counts

    @property
    def crosses(self) -> bool:
        """Whether data leave their lanes; known without the program."""
        return any(not isinstance(move, LocalMap) for move in self.route.moves)

    @property
    def reckoned(self) -> float:
        """The price without the program, close to `cost` and quickly known."""
        varies = any(
            isinstance(move, Exchange) or (isinstance(move, LocalMap) and any(move.threads))
            for move in self.route.moves
        )
        return self.route.price + (self.costs.formula if varies else 0)

    @cached_property
    def cost(self) -> float:
        """The price of the program."""
        return price(self.program, self.costs)

    @cached_property
    def kind(self) -> Kind:
        """What is moved: nothing, registers by renaming, inside of the lane, or across lanes."""
        counts = self.counts
        if not counts:
            program = self.program
            same = program.outputs == tuple(range(program.inputs))
            return "nothing" if same else "registers"
        return "lanes" if counts.keys() & {"shfl", "movmatrix"} else "bytes"


def warp_plan(
    source: RegisterColumns,
    target: RegisterColumns,
    bits: int,
    costs: Costs = COSTS,
    features: Features = FEATURES,
) -> WarpPlan | None:
    """How the target's registers are made of the source's; None where data cross warps.

    Elements have 8, 16, 32 or 64 bits. Of one hop, several hops and `movmatrix` the cheapest.
    """
    words = [tuple(range(words_of(1 << len(s.element), bits))) for s in (source, target)]
    moves = moves_of(LayoutPair(source, target, bits, (words[0],), (words[1],)))
    if moves.reach == "warps":
        return None
    inside = {8: 2, 16: 1}.get(bits, 0)
    sides = (source, target) if bits < 64 else (source.by_halves(), target.by_halves())
    ways = [direct(*sides, inside, costs)]
    if moves.mixed and moves.words < 1 << moves.mixed:
        ways.append(several(*sides, inside, costs))
    if moves.reach == "lanes" and features.movmatrix:
        ways.append(movmatrix_route(*sides, inside, costs))
    found = min((way for way in ways if way), key=lambda way: way.price, default=None)
    return found and WarpPlan(source, target, bits, moves.shuffles, costs, found)


def price(program: WordProgram, costs: Costs = COSTS) -> float:
    """What a program costs; linear numbers of lanes are computed together, each table apart."""
    counts = program.counts
    moves = counts.get("prmt", 0) + counts.get("selp", 0)
    total = (
        counts.get("shfl", 0) * costs.shuffle
        + counts.get("movmatrix", 0) * costs.transpose
        + moves * costs.move
        + sum(counts.values()) * costs.issue
    )
    named = {id(number): number for step in program.steps if (number := lanewise(step))}
    varying = {number for number in named.values() if not number.constant}
    tables = sum(isinstance(number, LaneTable) for number in varying)
    total += costs.formula * (tables + (tables < len(varying)))
    return total
