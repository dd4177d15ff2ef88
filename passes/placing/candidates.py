"""Which layouts a site may have: those that somebody wants, and those that would suit somebody.

A site of which a layout is demanded has that one. Any other may have every layout that is demanded
of tiles of its shape in its component (sites joined by edges or an operation's relations), what
operations propose beside these, and what follows from them by the operations' relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.interfaces import IN_LANE, LayoutDemand, Layouts, Threads, Tile, value_of
from fragir.isa.registry import per_table
from fragir.layout import Layout
from fragir.passes.placing.memories import Room
from fragir.passes.placing.relations import CONSEQUENCE, WRITTEN, Demand, asking, require_layout
from fragir.passes.placing.sites import Asked, Choosing, MemorySite, Site, SiteGraph
from fragir.passes.settling import rounds

MOST = 8
"""Layouts that a site chooses from; the first of those, by rank, that come up."""
ROUNDS = 4
"""How far layouts follow from each other through relations."""

Shape: TypeAlias = tuple[int, ...]


class Rank(IntEnum):
    """Who names a layout; of equally good ones the lowest is taken."""

    USER = 0
    INSTRUCTION = 1
    FOLLOWING = 2
    MEMORY = 3
    DEFAULT = 4


class Candidate(NamedTuple):
    """A layout that a site may have."""

    layout: frag.LayoutAttr
    places: Layout
    """The layout of the site's shape, simplified."""
    rank: Rank
    demand: Demand | None = None
    """Who wants it; None for a proposal."""


class Together(NamedTuple):
    """Sites whose layouts an operation takes in some combinations only."""

    sites: tuple[Site, ...]
    sets: tuple[tuple[frag.LayoutAttr, ...], ...]


class RowsWanted(NamedTuple):
    """Memory whose rows an operation would have in another order, so that a tile may be had in the
    layout that is demanded elsewhere."""

    site: MemorySite
    order: frag.LayoutAttr
    op: Operation
    part: str
    """What of the operation's is in that order: "columns", "rows"."""
    by: Demand


@dataclass
class SiteComponent:
    """Sites that have to do with each other."""

    sites: list[Site] = field(default_factory=list[Site])
    asked: list[Asked] = field(default_factory=list[Asked])
    choosing: list[Choosing] = field(default_factory=list[Choosing])
    together: list[Together] = field(default_factory=list[Together])
    rows: list[RowsWanted] = field(default_factory=list[RowsWanted])
    domains: dict[Site, list[Candidate]] = field(default_factory=dict[Site, list[Candidate]])

    @property
    def plain(self) -> bool:
        """Whether there is nothing to choose."""
        return all(len(domain) == 1 for domain in self.domains.values())


def components(sites: SiteGraph) -> list[SiteComponent]:
    """The components of a function's sites, each in order."""
    leader = {site: site for site in sites.all}

    def find(site: Site) -> Site:
        while leader[site] is not site:
            leader[site] = leader[leader[site]]
            site = leader[site]
        return site

    def unite(some: Iterable[Site]) -> None:
        found = sorted({find(site) for site in some}, key=lambda site: site.number)
        for site in found[1:]:
            leader[site] = found[0]

    for edge in sites.edges:
        unite((edge.source, edge.target))
    for asked in sites.asked:
        unite(asked.sites.values())
    for choosing in sites.choosing:
        unite((*choosing.sites, *choosing.memories.values()))
    result: dict[Site, SiteComponent] = {}
    for site in sites.all:
        result.setdefault(find(site), SiteComponent()).sites.append(site)
    for asked in sites.asked:
        for site in list(asked.sites.values())[:1]:
            result[find(site)].asked.append(asked)
    for choosing in sites.choosing:
        for site in choosing.sites[:1]:
            result[find(site)].choosing.append(choosing)
    return list(result.values())


class Candidates:
    """The layouts that come up in one component, by shape."""

    def __init__(self, sites: SiteGraph, component: SiteComponent, threads: Threads, room: Room):
        self._sites, self._component = sites, component
        self._threads, self._room = threads, room
        self._others: dict[Site, list[Candidate]] = {}
        self._shapes: dict[Shape, dict[frag.LayoutAttr, Candidate]] = {}
        self._own: dict[Site, dict[frag.LayoutAttr, Candidate]] = {}
        self._beside: dict[Site, list[Site]] = {}

    def choose(self) -> None:
        """Gives every site of the component its domain."""
        for site in self._component.sites:
            if isinstance(site, MemorySite):
                continue
            for _, demand in site.demands:
                rank = Rank.USER if demand.role == WRITTEN else Rank.INSTRUCTION
                self._add(
                    self._shapes.setdefault(site.shape, {}), site, demand.layout, rank, demand
                )
        self._component.together.clear()
        self._component.rows.clear()
        for choosing in self._component.choosing:
            self._choose_between(choosing)
        for asked in self._component.asked:
            if type(asked.model).proposals is not Layouts.proposals:
                self._propose(asked)
                if asked.memories:
                    self._propose_rows(asked)
        following = [
            asked
            for asked in self._component.asked
            if type(asked.model).propagate is not Layouts.propagate
        ]
        self._beside = self._neighbours() if following else {}
        for _ in range(ROUNDS):
            if not any([self._follow(asked) for asked in following]):
                break
            following.reverse()  # down a chain of operations in one round, and up in the next
        if following:
            for asked in self._component.asked:
                if type(asked.model).proposals is not Layouts.proposals:
                    self._propose(asked, followed=True)
        for site in self._component.sites:
            self._component.domains[site] = self.of(site)

    def of(self, site: Site) -> list[Candidate]:
        """The layouts of a site, the best-named first."""
        if site.demands:
            demand = site.demands[0][1]
            rank = Rank.USER if demand.role == WRITTEN else Rank.INSTRUCTION
            told = Candidate(demand.layout, _places(demand.layout, site.shape), rank, demand)
            return [told, *self._others.get(site, [])]
        found = {**self._own.get(site, {}), **self._shapes.get(site.shape, {})}
        return sorted(found.values(), key=lambda candidate: candidate.rank)[:MOST]

    def _choose_between(self, choosing: Choosing) -> None:
        """The other sets of demands that an operation would take."""
        op, model = choosing.op, choosing.model
        if any(demand.op is not op for site in choosing.sites for _, demand in site.demands):
            return  # what others demand of them too stays
        sets: list[dict[Site, Demand]] = []
        for value, known in self._may_be_had(choosing):
            with asking(op):
                others = list(model.alternatives(value, known.layout, self._threads))
            for other in others:
                told = self._told_demands(choosing, known, other)
                if not told or told in sets or len(sets) == MOST - 1:
                    continue
                sets.append(told)
                for site, demand in told.items():
                    self._other(site, demand)
        # memory that nobody wants otherwise is read as it lies
        sites = tuple(
            dict.fromkeys((*(s for told in sets for s in told), *choosing.memories.values()))
        )
        plain = {site: site.demands[0][1] for site in sites}
        combined = tuple(
            tuple({**plain, **told}[site].layout for site in sites) for told in (plain, *sets)
        )
        if sites:
            self._component.together.append(Together(sites, combined))

    def _told_demands(
        self, choosing: Choosing, known: Candidate, demands: Sequence[LayoutDemand]
    ) -> dict[Site, Demand]:
        """What an operation would demand of its sites; nothing where one of them cannot follow."""
        op, told = choosing.op, dict[Site, Demand]()
        for tile, layout, role in demands:
            value = value_of(tile)
            if frag.held_tile(value.type) is not None:
                site = self._site(op, tile)
                layout = require_layout(op, value, layout)
            else:
                site = choosing.memories.get(value)
            if site is None or site.demands[0][1].role == WRITTEN:
                return {}
            assert isinstance(layout, frag.LayoutAttr)
            if isinstance(site, MemorySite):
                assert known.demand is not None
                self._component.rows.append(RowsWanted(site, layout, op, "columns", known.demand))
                if site.matrix.fixed_by:
                    return {}
            told[site] = Demand(layout, op, role)
        return told

    def _may_be_had(self, choosing: Choosing) -> list[tuple[SSAValue, Candidate]]:
        """The operands of an operation and the layouts that are demanded of their shapes."""
        return [
            (value, candidate)
            for value in dict.fromkeys(choosing.op.operands)
            if frag.held_tile(value.type) is not None
            for candidate in self._shapes.get(frag.tile_of(value).shape, {}).values()
            if candidate.rank <= Rank.INSTRUCTION
        ]

    def _site(self, op: Operation, tile: Tile) -> Site | None:
        points = self._sites.points_of(op, tile)
        site = self._sites.of(points[0]) if points else None
        return site if site is not None and site.demands else None

    def _other(self, site: Site, demand: Demand) -> None:
        """Another layout that would do where one is demanded, and may be had by others."""
        places = _places(demand.layout, site.shape)
        self._others.setdefault(site, []).append(
            Candidate(demand.layout, places, Rank.FOLLOWING, demand)
        )
        everywhere = self._shapes.get(site.shape, {})
        if demand.layout in everywhere:
            return
        shared = Candidate(demand.layout, places, Rank.FOLLOWING, demand)
        known = [candidate.places for candidate in everywhere.values()]
        for other in self._on_the_way(site):
            if not other.demands and all(places is not one for one in known):
                self._own.setdefault(other, {}).setdefault(demand.layout, shared)

    def _on_the_way(self, start: Site) -> list[Site]:
        """The sites that values pass on their way to a site, or from it."""
        if not self._beside:
            for edge in self._sites.edges:
                self._beside.setdefault(edge.source, []).append(edge.target)
                self._beside.setdefault(edge.target, []).append(edge.source)
        found = {start: None}
        queue = [start]
        for site in queue:
            for other in self._beside.get(site, []):
                if other not in found:
                    found[other] = None
                    queue.append(other)
        return queue[1:]

    def default(self, site: Site, layout: frag.LayoutAttr) -> None:
        """A layout for a site of which nothing is known."""
        self._add(self._shapes.setdefault(site.shape, {}), site, layout, Rank.DEFAULT, None)

    def _add(
        self,
        known: dict[frag.LayoutAttr, Candidate],
        site: Site,
        layout: frag.LayoutAttr,
        rank: Rank,
        demand: Demand | None,
    ) -> bool:
        places = _places(layout, site.shape)
        old = known.get(layout)
        if old is None and rank > Rank.INSTRUCTION:
            # another name for a layout that is there already is of no use
            if any(candidate.places == places for candidate in known.values()):
                return False
        if old is None or rank < old.rank:
            known[layout] = Candidate(layout, places, rank, demand)
        return old is None

    def _propose(self, asked: Asked, *, followed: bool = False) -> None:
        """What an operation proposes where a tile may be had in layouts that are demanded, or in
        those that `followed`: of these, what takes no memory.
        """
        for value, site in asked.tiles.items():
            # what is not needed must not take memory that others may
            room = not followed and self._room.fits(value, asked.op)
            for known in self.of(site):
                if known.rank == Rank.MEMORY or (known.rank == Rank.FOLLOWING) != followed:
                    continue
                with asking(asked.op):
                    said = list(asked.model.proposals(known.layout, self._threads))
                for tile, layout, role in said:
                    if value_of(tile) is value and (room or role == IN_LANE):
                        fitting = require_layout(asked.op, value, layout)
                        domain = self._shapes.setdefault(site.shape, {})
                        self._add(domain, site, fitting, Rank.MEMORY, None)

    def _propose_rows(self, asked: Asked) -> None:
        """Orders of rows of memory that suit what a tile may be had in."""
        for site in asked.tiles.values():
            for known in self.of(site):
                with asking(asked.op):
                    said = list(asked.model.proposals(known.layout, self._threads))
                for tile, order, _ in said:
                    memory = asked.memories.get(value_of(tile))
                    if memory is None or known.demand is None:
                        continue
                    assert isinstance(order, frag.LayoutAttr)
                    wanted = RowsWanted(memory, order, asked.op, "rows", known.demand)
                    self._component.rows.append(wanted)
                    if not memory.matrix.fixed_by:
                        self._other(memory, Demand(order, asked.op, "rows"))

    def _follow(self, asked: Asked) -> bool:
        """Whether new layouts follow from those of an operation's tiles, one by one."""
        news = False
        for value, site in asked.tiles.items():
            before: list[Candidate] = []
            for _ in rounds("the layouts of a tile", 2 + MOST):  # one may follow for itself
                if len(now := self.of(site)) <= len(before):
                    break
                before = now
                news |= self._follow_from(asked, value, now)
        return news

    def _follow_from(self, asked: Asked, value: SSAValue, layouts: list[Candidate]) -> bool:
        """Whether new layouts follow from those of one tile."""
        news = False
        for known in layouts:
            with asking(asked.op):
                said = list(asked.model.propagate({value: known.layout}))
            for other, layout in said:
                target = asked.tiles.get(other)
                if target is None or target.demands:
                    continue
                fitting = require_layout(asked.op, other, layout)
                news |= self._is_own_news(target, Demand(fitting, asked.op, CONSEQUENCE))
        return news

    def _is_own_news(self, site: Site, demand: Demand) -> bool:
        """Whether it is news that a site may have a layout, which follows from others.

        What a value is converted to or from may be had there as well: then nothing is moved.
        """
        domain = self._own.setdefault(site, {})
        if len(domain) >= MOST:
            return False
        if not self._add(domain, site, demand.layout, Rank.FOLLOWING, demand):
            return False
        for other in self._beside.get(site, ()):
            if not other.demands:
                self._is_own_news(other, demand)
        return True

    def _neighbours(self) -> dict[Site, list[Site]]:
        """The sites that values come from and go to, of each site of the component."""
        beside: dict[Site, list[Site]] = {site: [] for site in self._component.sites}
        for edge in self._sites.edges:
            if edge.source in beside:
                beside[edge.source].append(edge.target)
                beside[edge.target].append(edge.source)
        return beside


@per_table
def _places(layout: frag.LayoutAttr, shape: Shape) -> Layout:
    return _one(layout.layout(*shape).simplified())


@lru_cache(maxsize=1024)
def _one(layout: Layout) -> Layout:
    """The same object for equal layouts, so that they are compared at once."""
    return layout
