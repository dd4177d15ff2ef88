"""Conversions inside of a warp as moves one after another: what one hop cannot do well.

A hop from 2^m lanes takes a shuffle for each of them, with words that are partly filled where a
lane has fewer words than that. Two or more hops through layouts between, each exchanging some bits
of elements with bits of lanes, then take fewer shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from fragir.layout.f2 import Subspace
from fragir.layout.planning.building import Builder, chained
from fragir.layout.planning.costs import Costs
from fragir.layout.planning.exchange import Exchange
from fragir.layout.planning.local import LocalMap
from fragir.layout.planning.packing import exchange
from fragir.layout.planning.program import WordProgram
from fragir.layout.planning.pull import Pull, element_of, lane_of, pull_of
from fragir.layout.planning.registers import RegisterColumns


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
            program = chained(program, _program(move, len(program.outputs)))
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
    for between in islice(_exchanged(source, target, wanted), _TRIED):
        rest = direct(between, target, inside, costs, most=1)
        if rest is not None and (best is None or rest.price < best[0]):
            best = rest.price, between
    return None if best is None else best[1]


def _exchanged(
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
