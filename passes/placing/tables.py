"""A component's choice of layouts as a problem of least sums (`pbqp`).

A site is a variable, its domain the values. Tables say what operations cost in the layouts of their
tiles, and what values cost on their way: each times how often that happens. A value that is made
less often than it is wanted is converted where it is made. Where one of its operands has to be in
some layout, that is done once for all that take it: a variable of its own says whether there is
such a copy. (Operands that may choose pay each for itself; what is emitted is shared among them
too, so the total is then too high.) Else it is converted at the operand. What is made again cheaper
than it is converted (a load, a constant, what is computed of such) is made again.

Costs are whole numbers: `UNIT`s of half a cycle, then what decides between equal ones: the rank of
the layouts' names, then the number of conversions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf
from typing import NamedTuple

from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag
from fragir.dialects.interfaces import Layouts, OperandAt
from fragir.passes.placing.candidates import Candidate, Rank, SiteComponent, Together
from fragir.passes.placing.memories import is_streamed
from fragir.passes.placing.pbqp import FORBIDDEN, Problem, Solution
from fragir.passes.placing.prices import Price, Prices, Trips, Work
from fragir.passes.placing.relations import asking, is_same_placement
from fragir.passes.placing.sites import Asked, Site, SiteEdge, SiteGraph

UNIT = 64
"""Parts of a half cycle: branches are taken every second time."""
RANKS = 16
"""Bits for the number of conversions."""
TIES = 40
"""Bits for what decides between equal costs."""
ASSERTED = 1 << 100
"""What it costs to convert where the program asserts that nothing has to be done."""


def weighted_cost(cost: float, trips: Fraction | float, conversions: int = 0) -> int:
    """A cost that is paid so often, with conversions for the tie."""
    if cost == inf:
        return FORBIDDEN
    return (round(cost * UNIT * trips) << TIES) + conversions


def half_cycles(total: int) -> float:
    """The cost of a total, without what only decides ties."""
    return (total >> TIES) / UNIT


class Move(NamedTuple):
    """A value that is had in another layout than it is made in."""

    value: SSAValue
    source: Candidate
    target: Candidate
    edges: tuple[SiteEdge, ...]
    trips: Fraction
    at_value: bool
    """Whether where it is made, else at its operand."""


@dataclass
class Tables:
    """The problem of one component, and what its variables mean."""

    component: SiteComponent
    sites: SiteGraph
    prices: Prices
    work: Work
    trips: Trips
    forbidden: frozenset[OperandAt] = frozenset()
    """Operands whose values must not be converted, for explanations."""
    problem: Problem = field(default_factory=Problem)
    variables: dict[Site, int] = field(default_factory=dict[Site, int])
    _known: dict[tuple[int, int, int], float] = field(
        init=False, default_factory=dict[tuple[int, int, int], float]
    )
    """Prices by the identity of layouts, which candidates keep alive, and of element types."""
    _pairs: dict[tuple[object, ...], list[int]] = field(
        init=False, default_factory=dict[tuple[object, ...], list[int]]
    )
    """Tables of edges, by the identity of their candidates and by how often what is paid."""

    def __post_init__(self) -> None:
        for site in self.component.sites:
            domain = self.component.domains[site]
            variable = self.variables[site] = self.problem.variable(len(domain))
            self.problem.add((variable,), [int(c.rank) << RANKS for c in domain])
        for asked in self.component.asked:
            self._operation(asked)
        for together in self.component.together:
            self._together(together)
        for edges in self._values().values():
            self._value(edges)

    # --- operations -------------------------------------------------------------------------------

    def _operation(self, asked: Asked) -> None:
        """What an operation costs in its tiles' layouts, and which do not go together."""
        model = type(asked.model)
        priced = model.cost is not Layouts.cost
        related = model.propagate is not Layouts.propagate
        converted = isinstance(asked.op, frag.ConvertOp)
        if not priced and not related and not converted:
            return
        places = asked.sites
        sites = list(dict.fromkeys(places.values()))
        domains = [self.component.domains[site] for site in sites]
        if not related and not converted and all(len(domain) == 1 for domain in domains):
            return  # what it costs is not a matter of choice
        trips = self.trips.of(asked.op)
        entries: list[int] = []
        for chosen in product(*domains):
            of = dict(zip(sites, chosen, strict=True))
            layouts = {value: of[site].layout for value, site in places.items()}
            if related and not _is_consistent(asked, layouts):
                entries.append(FORBIDDEN)
                continue
            entry = 0
            if priced:
                entry = weighted_cost(self.work.cost(asked, layouts), trips)
            if isinstance(asked.op, frag.ConvertOp):
                entry += self._written_price(asked.op, asked.tiles, of, trips)
            entries.append(entry)
        self.problem.add([self.variables[site] for site in sites], entries)

    def _together(self, together: Together) -> None:
        """Only the combinations that an operation takes."""
        domains = [self._domain(site) for site in together.sites]
        entries = [
            0 if tuple(c.layout for c in chosen) in together.sets else FORBIDDEN
            for chosen in product(*domains)
        ]
        self.problem.add([self.variables[site] for site in together.sites], entries)

    def _written_price(
        self,
        op: frag.ConvertOp,
        tiles: Mapping[SSAValue, Site],
        of: Mapping[Site, Candidate],
        trips: Fraction,
    ) -> int:
        """The price of a conversion that stands in the program."""
        source, target = of[tiles[op.source]], of[tiles[op.result]]
        price = self.prices.price(
            source.places, target.places, frag.tile_of(op.result).element_type
        )
        asserted = ASSERTED if op.assert_free is not None and price.cost else 0
        return weighted_cost(price.cost, trips) + asserted

    # --- values -----------------------------------------------------------------------------------

    def _values(self) -> dict[SSAValue, list[SiteEdge]]:
        """The edges of the component, by value."""
        own = set(self.component.sites)
        found: dict[SSAValue, list[SiteEdge]] = {}
        for edge in self.sites.edges:
            if edge.source in own:
                found.setdefault(edge.value, []).append(edge)
        return found

    def _value(self, edges: list[SiteEdge]) -> None:
        """The conversions of one value."""
        value, source = edges[0].value, edges[0].source
        making = self.trips.making(value)
        early, late = self._times(edges, making)
        for edge, trips in late:
            self._pair(edge, [(trips, False)] * len(self._domain(edge.target)))
        targets = list(dict.fromkeys(edge.target for edge in early))
        wanted = Counter(c.layout for target in targets for c in self._domain(target))
        told = {domain[0].layout for t in targets if len(domain := self._domain(t)) == 1}
        shared = [layout for layout, count in wanted.items() if count > 1 and layout in told]
        by_target = {edge.target: edge for edge in reversed(early)}
        for target in targets:
            weights = [(making, c.layout in shared) for c in self._domain(target)]
            self._pair(by_target[target], weights)
        for layout in shared:
            self._copy(value, source, targets, layout, making)

    def _times(
        self, edges: Iterable[SiteEdge], making: Fraction
    ) -> tuple[list[SiteEdge], list[tuple[SiteEdge, Fraction]]]:
        """Edges whose value is converted where it is made, and others with how often."""
        early: list[SiteEdge] = []
        late: list[tuple[SiteEdge, Fraction]] = []
        for edge in edges:
            trips = self.trips.of(edge.operand.op)
            if trips >= making:
                early.append(edge)
            else:
                late.append((edge, trips))
        return early, late

    def _domain(self, site: Site) -> list[Candidate]:
        return self.component.domains[site]

    def _pair(self, edge: SiteEdge, weights: list[tuple[Fraction, bool]]) -> None:
        """The table of an edge: how often for each layout wanted, and whether a copy is paid for
        apart."""
        value, forbidden = edge.value, edge.operand in self.forbidden
        element, making = frag.tile_of(value).element_type, self.trips.making(value)
        haves, wants = self._domain(edge.source), self._domain(edge.target)
        paid: list[tuple[float, bool, float]] = []
        for want, (trips, shared) in zip(wants, weights, strict=True):
            again = None if shared else self.again(value, want)
            made = inf if again is None else again * float(making / trips)
            paid.append((float(trips), shared, made))
        # the same for most edges of a chain: candidates live as long as the component
        streamed = any(want.rank is Rank.MEMORY for want in wants) and is_streamed(value)
        key = (*map(id, haves), *map(id, wants), id(element), forbidden, streamed, *paid)
        entries = self._pairs.get(key)
        if entries is None:
            entries = self._pairs[key] = self._entries(
                haves, wants, element, forbidden, streamed, paid
            )
        self._add(edge.source, edge.target, entries)

    def _entries(
        self,
        haves: Iterable[Candidate],
        wants: Sequence[Candidate],
        element: Attribute,
        forbidden: bool,
        streamed: bool,
        paid: Sequence[tuple[float, bool, float]],
    ) -> list[int]:
        """The table of a conversion: how often for each layout wanted, whether a copy is paid for
        apart, what it costs to make the value again instead. A streamed value is not converted for
        the sake of accesses."""
        entries: list[int] = []
        known = self._known
        for have in haves:
            for want, (trips, shared, made) in zip(wants, paid, strict=True):
                if have.layout == want.layout:
                    entries.append(0)
                elif (
                    forbidden or (streamed and want.rank is Rank.MEMORY)
                ) and have.places != want.places:
                    entries.append(FORBIDDEN)
                elif shared:
                    entries.append(0)
                else:
                    key = id(have.places), id(want.places), id(element)
                    price = known.get(key)
                    if price is None:
                        price = self.prices.price(have.places, want.places, element).cost
                        known[key] = price
                    entries.append(weighted_cost(min(price, made), trips, 1))
        return entries

    def _add(self, source: Site, target: Site, entries: list[int]) -> None:
        self.problem.add((self.variables[source], self.variables[target]), entries)

    def _copy(
        self,
        value: SSAValue,
        source: Site,
        targets: Iterable[Site],
        layout: frag.LayoutAttr,
        making: Fraction,
    ) -> None:
        """A copy of a value in one layout for several operands: there or not."""
        copy = self.problem.variable(2)
        own = self.variables[source]
        wanted = next(c for t in targets for c in self._domain(t) if c.layout == layout)
        entries: list[int] = []
        for have in self._domain(source):
            there = 0
            if have.layout != layout:
                there = weighted_cost(self.cost(value, have, wanted, making), making, 1)
            entries += [0, there]
        self.problem.add((own, copy), entries)
        for target in targets:
            domain = self._domain(target)
            if all(c.layout != layout for c in domain):
                continue
            entries = []
            for want in domain:
                entries += [FORBIDDEN if want.layout == layout else 0, 0]
            self.problem.add((self.variables[target], copy), entries)

    # --- prices -----------------------------------------------------------------------------------

    def cost(self, value: SSAValue, have: Candidate, want: Candidate, trips: Fraction) -> float:
        """The least of converting a value and making it again."""
        price = self.prices.price(have.places, want.places, frag.tile_of(value).element_type).cost
        again = self.again(value, want)
        if again is None:
            return price
        return min(price, again * float(self.trips.making(value) / trips))

    def again(self, value: SSAValue, want: Candidate) -> float | None:
        """What it costs to make a value again in a layout; None where that is not to be had."""
        return self.work.again(value, want.layout)

    def is_made_again(self, move: Move) -> bool:
        """Whether a value is made again instead of being converted."""
        repeated = self.again(move.value, move.target)
        return repeated is not None and (
            repeated * self.trips.making(move.value) < self.price_of(move).cost * move.trips
        )

    def price_of(self, move: Move) -> Price:
        """The price of one conversion."""
        element = frag.tile_of(move.value).element_type
        return self.prices.price(move.source.places, move.target.places, element)

    def settle(self, chosen: Mapping[Site, Candidate], moves: Iterable[Move]) -> bool:
        """Plans what a choice converts; whether that changes a price."""
        changed = False
        for move in moves:
            element = frag.tile_of(move.value).element_type
            if not self.is_made_again(move):
                changed |= self.prices.settle(move.source.places, move.target.places, element)
        for op, have, want in self._conversions(chosen):
            changed |= self.prices.settle(
                have.places, want.places, frag.tile_of(op.result).element_type
            )
        return changed

    def is_impossible(self, value: SSAValue, have: Candidate, want: Candidate) -> bool:
        """Whether there is no way from one layout to the other."""
        self.prices.settle(have.places, want.places, frag.tile_of(value).element_type)
        return self.cost(value, have, want, Fraction(1)) == inf

    # --- solutions --------------------------------------------------------------------------------

    def chosen_layouts(self, solution: Solution) -> dict[Site, Candidate]:
        """The layout of every site."""
        return {
            site: self._domain(site)[solution.choice[variable]]
            for site, variable in self.variables.items()
        }

    def moves(self, chosen: Mapping[Site, Candidate]) -> list[Move]:
        """The conversions of a choice, in the order of their values."""
        found: list[Move] = []
        for value, edges in self._values().items():
            have = chosen[edges[0].source]
            making = self.trips.making(value)
            early, late = self._times(edges, making)
            groups: dict[Attribute, list[SiteEdge]] = {}
            for edge in early:
                groups.setdefault(chosen[edge.target].layout, []).append(edge)
            for group in groups.values():
                want = chosen[group[0].target]
                if want.layout != have.layout:
                    found.append(Move(value, have, want, tuple(group), making, True))
            for edge, trips in late:
                want = chosen[edge.target]
                if want.layout != have.layout:
                    found.append(Move(value, have, want, (edge,), trips, False))
        return found

    def written_conversions(
        self, chosen: Mapping[Site, Candidate]
    ) -> list[tuple[frag.ConvertOp, Price]]:
        """The conversions that stand in the program, with their prices."""
        return [
            (op, self.prices.price(have.places, want.places, frag.tile_of(op.result).element_type))
            for op, have, want in self._conversions(chosen)
        ]

    def _conversions(
        self, chosen: Mapping[Site, Candidate]
    ) -> list[tuple[frag.ConvertOp, Candidate, Candidate]]:
        return [
            (op, chosen[tiles[op.source]], chosen[tiles[op.result]])
            for op, _, tiles, _ in self.component.asked
            if isinstance(op, frag.ConvertOp)
        ]


def _is_consistent(asked: Asked, layouts: Mapping[SSAValue, frag.LayoutAttr]) -> bool:
    """Whether an operation's relation agrees with a layout for each of its tiles."""
    with asking(asked.op):
        return all(
            value not in layouts
            or (
                isinstance(layout, frag.LayoutAttr)
                and is_same_placement(layouts[value], layout, value, False)
            )
            for value, layout in asked.model.propagate(layouts)
        )
