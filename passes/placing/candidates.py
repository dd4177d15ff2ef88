"""Which layouts a site may have: those that somebody wants, and those that would suit somebody.

A site of which a layout is demanded has that one. Any other may have every layout that is demanded
of tiles of its shape in its component (sites joined by edges or an operation's relations), what
operations propose beside these, and what follows from them by the operations' relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from fragir.dialects import frag
from fragir.dialects.interfaces import Layouts, Threads, value_of
from fragir.layout import Layout
from fragir.passes.placing.memory_room import fits, is_streamed
from fragir.passes.placing.relations import WRITTEN, Demand, asking, checked
from fragir.passes.placing.sites import Asked, Site, SiteGraph

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


@dataclass
class SiteComponent:
    """SiteGraph that have to do with each other."""

    sites: list[Site] = field(default_factory=list[Site])
    asked: list[Asked] = field(default_factory=list[Asked])
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
        unite(asked.tiles.values())
    result: dict[Site, SiteComponent] = {}
    for site in sites.all:
        result.setdefault(find(site), SiteComponent()).sites.append(site)
    for asked in sites.asked:
        for site in list(asked.tiles.values())[:1]:
            result[find(site)].asked.append(asked)
    return list(result.values())


class Candidates:
    """The layouts that come up in one component, by shape."""

    def __init__(self, component: SiteComponent, threads: Threads, room: int):
        self._component, self._threads, self._room = component, threads, room
        self._shapes: dict[Shape, dict[frag.LayoutAttr, Candidate]] = {}
        self._own: dict[Site, dict[frag.LayoutAttr, Candidate]] = {}

    def choose(self) -> None:
        """Gives every site of the component its domain."""
        for site in self._component.sites:
            for _, demand in site.demands:
                rank = Rank.USER if demand.role == WRITTEN else Rank.INSTRUCTION
                self._add(
                    self._shapes.setdefault(site.shape, {}), site, demand.layout, rank, demand
                )
        for asked in self._component.asked:
            if type(asked.model).proposals is not Layouts.proposals:
                self._propose(asked)
        following = [
            asked
            for asked in self._component.asked
            if type(asked.model).propagate is not Layouts.propagate
        ]
        for _ in range(ROUNDS):
            if not any([self._follow(asked) for asked in following]):
                break
        for site in self._component.sites:
            self._component.domains[site] = self.of(site)

    def of(self, site: Site) -> list[Candidate]:
        """The layouts of a site, the best-named first."""
        if site.demands:
            demand = site.demands[0][1]
            rank = Rank.USER if demand.role == WRITTEN else Rank.INSTRUCTION
            return [Candidate(demand.layout, _places(demand.layout, site.shape), rank, demand)]
        found = {**self._own.get(site, {}), **self._shapes.get(site.shape, {})}
        return sorted(found.values(), key=lambda candidate: candidate.rank)[:MOST]

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

    def _propose(self, asked: Asked) -> None:
        for value, site in asked.tiles.items():
            if not fits(value, self._room) or (not asked.op.results and is_streamed(value)):
                continue  # what is not needed must not take memory that others may
            for known in [c for c in self.of(site) if c.rank <= Rank.INSTRUCTION]:
                with asking(asked.op):
                    said = list(asked.model.proposals(known.layout, self._threads))
                for tile, layout, _ in said:
                    if value_of(tile) is value:
                        fitting = checked(asked.op, value, layout)
                        domain = self._shapes.setdefault(site.shape, {})
                        self._add(domain, site, fitting, Rank.MEMORY, None)

    def _follow(self, asked: Asked) -> bool:
        """Whether new layouts follow from those of an operation's tiles, one by one."""
        news = False
        for value, site in asked.tiles.items():
            for known in self.of(site):
                with asking(asked.op):
                    said = list(asked.model.propagate({value: known.layout}))
                for other, layout in said:
                    target = asked.tiles.get(other)
                    if target is None or target.demands:
                        continue
                    domain = self._own.setdefault(target, {})
                    if len(domain) < MOST:
                        fitting = checked(asked.op, other, layout)
                        news |= self._add(domain, target, fitting, Rank.FOLLOWING, None)
        return news


def _places(layout: frag.LayoutAttr, shape: Sequence[int]) -> Layout:
    return layout.layout(*shape).simplified()
