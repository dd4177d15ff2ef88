"""Layouts where several are wanted of a tile: the choice that costs least, exactly.

What is demanded stays as it is demanded; between, every layout that somebody wants may be had, and
conversions cost what they cost (`tables`). The solution is the least total by these costs (`pbqp`).
Prices of conversions are lower bounds until they are chosen: then they are planned, and the choice
is made again while that changes it. So what is left is least by exact prices too: every other
choice costs at least its bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from xdsl.dialects import func
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.interfaces import Layouts, OperandAt, Threads, value_of
from fragir.errors import FragirError
from fragir.isa.features import features_of
from fragir.mlir.diagnostics import fail
from fragir.passes.placing.candidates import Candidate, Candidates, SiteComponent, components
from fragir.passes.placing.memories import Room
from fragir.passes.placing.pbqp import Problem, Solution
from fragir.passes.placing.placement import tile_text
from fragir.passes.placing.prices import Prices, Trips, Work
from fragir.passes.placing.relations import CONSEQUENCE, WRITTEN, Demand, is_same_placement
from fragir.passes.placing.sites import Site, SiteEdge, SiteGraph
from fragir.passes.placing.tables import Move, Tables
from fragir.passes.settling import rounds

TURNS = 1000
"""How often a choice is made again with better known prices; there are never so many prices."""


@dataclass
class Chosen:
    """The layouts of one component, and the tables that they are least by."""

    tables: Tables
    solution: Solution
    layouts: Mapping[Site, Candidate]
    moves: list[Move]

    @property
    def component(self) -> SiteComponent:
        return self.tables.component


@dataclass
class Inference:
    """The layouts of a function's tiles of which several are wanted."""

    sites: SiteGraph
    chosen: list[Chosen]


def infer(
    function: func.FuncOp,
    values: Collection[SSAValue],
    threads: Threads,
    count: int,
) -> Inference:
    """Layouts for some of a function's tiles, which `count` threads hold.

    Fails, naming the operations, where what is demanded cannot be had.
    """
    sites = SiteGraph(function, values, threads)
    for site in sites.all:
        _check(site)
    prices, trips = Prices(features_of(threads.target)), Trips()
    movable = {value for value, site in sites.memories.items() if not site.matrix.fixed_by}
    work = Work(threads, movable)
    room = Room(function, threads.target)
    chosen: list[Chosen] = []
    for component in components(sites):
        _fill(sites, component, threads, count, room)
        chosen.append(settle(Tables(component, sites, prices, work, trips)))
    return Inference(sites, chosen)


def settle(tables: Tables) -> Chosen:
    """The least choice, by exact prices of all that it converts. Fails where there is none."""
    return solve(tables) or _fail_unsolvable(tables)


def solve(tables: Tables) -> Chosen | None:
    """The least choice; None where there is none."""
    for _ in range(TURNS):
        solution = tables.problem.solve()
        if not solution.is_possible:
            return None
        layouts = tables.chosen_layouts(solution)
        moves = tables.moves(layouts)
        if not tables.settle(layouts, moves):
            return Chosen(tables, solution, layouts, moves)
        tables = replace(tables, problem=Problem(), variables={})
    raise AssertionError("every turn plans a conversion that had not been planned")


def _fill(
    sites: SiteGraph, component: SiteComponent, threads: Threads, count: int, room: Room
) -> None:
    """Gives every site its domain; one that nothing is known of has rows in order."""
    from fragir.passes.placing.placement import default_layout

    candidates = Candidates(sites, component, threads, room)
    for _ in rounds("the layouts of sites that nothing is known of", 1 + len(component.sites)):
        candidates.choose()
        unknown = [site for site in component.sites if not component.domains[site]]
        if not unknown:
            return
        site = unknown[0]
        tile = frag.tile_of(value_of(site.points[0]))
        try:
            layout = frag.ExplicitLayoutAttr(default_layout(tile, count))
        except FragirError as error:
            fail(site.owner, str(error))
        candidates.default(site, layout)


# --- what cannot be had ---------------------------------------------------------------------------


def _check(site: Site) -> None:
    """Fails where two layouts are demanded of one site: no conversion stands between."""
    if len(site.demands) < 2:
        return
    point, first = site.demands[0]
    for other, demand in site.demands[1:]:
        if not is_same_placement(
            first.layout, demand.layout, value_of(other), demand.role != CONSEQUENCE
        ):
            value = value_of(other if isinstance(point, OperandAt) else point)
            _two_layouts(value, first, demand)


def _two_layouts(value: SSAValue, first: Demand, second: Demand) -> NoReturn:
    name = tile_text(value)
    if WRITTEN in (first.role, second.role) and value.owner is second.op:
        way = (
            f"leave the layout of {name} out where it is made, and write frag.convert where it is "
            "wanted in another"
        )
    elif first.op is second.op:
        way = "the operation takes both in one layout; write frag.convert ahead of one of them"
    else:
        way = "write frag.convert between them"
    fail(
        second.op,
        f"{name} must have two layouts: {first.layout} ({first.role} of {first.op.name}) and "
        f"{second.layout} ({second.role} of {second.op.name}); {way}",
    )


def _fail_unsolvable(tables: Tables) -> NoReturn:
    """Fails with the operation, or the conversion, that makes a component impossible."""
    domains = tables.component.domains
    for op, model, tiles, _ in tables.component.asked:
        if type(model).propagate is Layouts.propagate:
            continue
        for value, site in tiles.items():
            for known in domains[site]:
                for other, layout in model.propagate({value: known.layout}):
                    target = tiles.get(other)
                    if target is None or not isinstance(layout, frag.LayoutAttr):
                        continue
                    if all(
                        not is_same_placement(c.layout, layout, other, False)
                        for c in domains[target]
                    ):
                        have = domains[target][0].demand or Demand(known.layout, op, CONSEQUENCE)
                        _two_layouts(other, have, Demand(layout, op, CONSEQUENCE))
    for edge, have, want in _impossible_edges(tables):
        by = f" ({want.demand.role} of {want.demand.op.name})" if want.demand else ""
        made = f" ({have.demand.role} of {have.demand.op.name})" if have.demand else ""
        tile = frag.tile_of(edge.value)
        why = tables.prices.why_not(have.places, want.places, tile.element_type)
        fail(
            edge.operand.op,
            f"{tile_text(edge.value)} must have two layouts, and there is no conversion from "
            f"{have.layout}{made} to {want.layout}{by}: {why}",
        )
    owner = tables.component.sites[0].owner
    fail(owner, "no layouts fit together for the tiles that hang on this one")


def _impossible_edges(tables: Tables) -> Iterator[tuple[SiteEdge, Candidate, Candidate]]:
    """Edges none of whose conversions can be done."""
    domains = tables.component.domains
    own = set(tables.component.sites)
    for edge in tables.sites.edges:
        if edge.source in own:
            pairs = [(a, b) for a in domains[edge.source] for b in domains[edge.target]]
            if all(tables.is_impossible(edge.value, a, b) for a, b in pairs):
                yield edge, *pairs[0]
