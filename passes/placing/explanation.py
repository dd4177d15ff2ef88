"""Why tiles have the layouts that they have, and what each conversion is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import BlockArgument, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.interfaces import Layouts, OperandAt
from fragir.errors import short_text
from fragir.passes.placing.candidates import Rank
from fragir.passes.placing.inference import Chosen, Inference, solve
from fragir.passes.placing.pbqp import Problem
from fragir.passes.placing.placement import owner_of
from fragir.passes.placing.relations import CONSEQUENCE, IN_ORDER, Demand, Plain
from fragir.passes.placing.sites import MemorySite, Site
from fragir.passes.placing.tables import Move, half_cycles


@dataclass(frozen=True)
class TileExplained:
    """A tile, its layout, and who asked for that."""

    name: str
    place: str
    """Line and column of what makes it; empty where that is not known."""
    layout: str
    asked_by: str

    def __repr__(self) -> str:
        return short_text(f"<{self.name}: {self.layout}, for {self.asked_by}>")


@dataclass(frozen=True)
class ConversionExplained:
    """A tile that is had in another layout than it is made in.

    `cost` is that of doing it once, in half cycles of an SM for a warp; it is done `trips` times.
    `steps` says how. `total_without` is the least total if the tile may not be converted there,
    None where the program is then impossible.
    """

    name: str
    place: str
    source: str
    target: str
    cost: float
    trips: float
    steps: str
    asked_by: str
    total_without: float | None

    def __repr__(self) -> str:
        return short_text(
            f"<{self.name} to {self.target}: {self.steps}, {self.cost:g} half cycles>"
        )


@dataclass(frozen=True)
class MemoryExplained:
    """Shared memory of which rows are wanted in another order than their numbers.

    `rows` is that order, as modes; `asked_by` whose columns or rows are counted so, and for whom.
    `kept` says why rows lie as they are all the same; it is empty where they lie in that order.
    """

    name: str
    place: str
    rows: str
    asked_by: str
    kept: str

    def __repr__(self) -> str:
        return short_text(f"<rows of {self.name}: {self.rows}, for {self.asked_by}>")


@dataclass(frozen=True)
class Explanation:
    """The layouts of a function's tiles.

    `total` is what the choice costs, as far as there was one: operations and conversions, times how
    often they are executed. `least` says whether it is proved that no other choice costs less.
    """

    function: str
    target: str
    total: float
    least: bool
    tiles: tuple[TileExplained, ...]
    conversions: tuple[ConversionExplained, ...]
    memories: tuple[MemoryExplained, ...] = ()

    def __repr__(self) -> str:
        kinds = f"{len(self.tiles)} tiles, {len(self.conversions)} conversions"
        what = f"layouts of {self.function} for {self.target}"
        return f"<{what}: {kinds}, {self.total:g} half cycles; print it>"

    def __str__(self) -> str:
        """Tables: the tiles, memory where there is a choice, the conversions."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"layouts of {self.function} for {self.target}"
        rows = [("tile", "made at", "asked for by", "layout")]
        rows += [(t.name, t.place, t.asked_by, t.layout) for t in self.tiles]
        yield from _columns(rows)
        if self.memories:
            yield "memory of which rows are wanted in another order"
            rows = [("memory", "made at", "order", "asked for by", "lies")]
            for memory in self.memories:
                lies = f"rows as they are: {memory.kept}" if memory.kept else "in this order"
                rows.append((memory.name, memory.place, memory.rows, memory.asked_by, lies))
            yield from _columns(rows)
        if not self.conversions:
            yield "no conversions"
            return
        proof = "" if self.least else " (not proved to be the least)"
        yield (f"conversions; all layouts together cost {self.total:g} half cycles a warp{proof}")
        rows = [("tile", "made at", "times", "cost", "steps", "asked for by", "without it", "to")]
        for one in self.conversions:
            without = "impossible" if one.total_without is None else f"{one.total_without:g}"
            trips, cost = f"{one.trips:g}", f"{one.cost:g}"
            more = (trips, cost, one.steps, one.asked_by, without, one.target)
            rows.append((one.name, one.place, *more))
        yield from _columns(rows)


def _columns(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Rows as lines, their columns under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells).rstrip()}"


def explain_function(
    function: str, target: str, plain: Plain, inference: Inference | None
) -> Explanation:
    """What was found of a function's tiles, before they get their types."""
    tiles: list[tuple[SSAValue, TileExplained]] = []
    for demand, values in plain.placed:
        asked = _asked_by(demand)
        tiles += [(value, _tile(value, demand.layout, asked)) for value in values]
    conversions: list[ConversionExplained] = []
    memories: list[MemoryExplained] = []
    total, least = 0.0, True
    for chosen in () if inference is None else inference.chosen:
        total += half_cycles(chosen.solution.total)
        least &= chosen.solution.exact
        memories += _memories(chosen)
        for site, candidate in chosen.layouts.items():
            if isinstance(site, MemorySite):
                continue
            asked = _reason(chosen, site)
            made = (point for point in site.points if isinstance(point, SSAValue))
            tiles += [(value, _tile(value, candidate.layout, asked)) for value in made]
    for chosen in () if inference is None else inference.chosen:
        rest = total - half_cycles(chosen.solution.total)
        conversions += [_conversion(chosen, move, rest) for move in chosen.moves]
        conversions += _written_conversions(chosen)
    order = {value: number for number, value in enumerate(_in_order(v for v, _ in tiles))}
    tiles.sort(key=lambda pair: order[pair[0]])
    shown = tuple(tile for _, tile in tiles)
    told = tuple(conversions), tuple(memories)
    return Explanation(function, target, total, least, shown, *told)


def together(parts: Sequence[Explanation]) -> Explanation:
    """Those of a function's roles as one."""
    if len(parts) == 1:
        return parts[0]
    return Explanation(
        parts[0].function,
        parts[0].target,
        sum(part.total for part in parts),
        all(part.least for part in parts),
        tuple(tile for part in parts for tile in part.tiles),
        tuple(one for part in parts for one in part.conversions),
        tuple(one for part in parts for one in part.memories),
    )


def _in_order(values: Iterable[SSAValue]) -> list[SSAValue]:
    """Values in the order of the program."""

    def key(value: SSAValue) -> tuple[int, int, int]:
        where = owner_of(value).location
        argument = int(not isinstance(value, BlockArgument))
        if not isinstance(where, FileLineColLoc):
            return 0, 0, argument
        return where.line.data, where.column.data, argument

    return sorted(values, key=key)


def _tile(value: SSAValue, layout: frag.LayoutAttr, asked: str) -> TileExplained:
    return TileExplained(_name(value), _place(owner_of(value)), str(layout), asked)


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else f"a {value.type}"


def _place(op: Operation) -> str:
    where = op.location
    return f"{where.line.data}:{where.column.data}" if isinstance(where, FileLineColLoc) else ""


def _at(op: Operation) -> str:
    place = _place(op)
    return f"{op.name} ({place})" if place else op.name


def _asked_by(demand: Demand) -> str:
    if demand.role == CONSEQUENCE:
        return f"what follows by {_at(demand.op)}"
    if demand.role == IN_ORDER:
        return f"nobody: {IN_ORDER}"
    return f"{demand.role} of {_at(demand.op)}"


def _memories(chosen: Chosen) -> Iterator[MemoryExplained]:
    """Memory of which rows are wanted in another order: each order once."""
    seen: set[tuple[MemorySite, frag.LayoutAttr]] = set()
    for site, order, op, part, by in chosen.component.rows:
        if (site, order) in seen:
            continue
        seen.add((site, order))
        kept = site.matrix.fixed_by
        if not kept and chosen.layouts[site].layout != order:
            kept = "costs less"
        yield MemoryExplained(
            _name(site.matrix.root),
            _place(owner_of(site.matrix.root)),
            _modes(order),
            f"{part} of {_at(op)}, as in {_asked_by(by)}",
            kept,
        )


def _modes(order: frag.LayoutAttr) -> str:
    from fragir.dialects.frag.row_orders import repeated_part

    assert isinstance(order, frag.ExplicitLayoutAttr)
    return " ".join(map(str, repeated_part(order.data).axes[0].modes))


def _reason(chosen: Chosen, start: Site) -> str:
    """Who a site has its layout from: the nearest site that has the same and is told so."""
    layout = chosen.layouts[start].layout
    if chosen.layouts[start].rank == Rank.MEMORY:
        priced = [a for a in chosen.component.asked if start in a.tiles.values()]
        named = [a.op for a in priced if type(a.model).proposals is not Layouts.proposals]
        if named:
            return f"wide accesses of {_at(named[0])}"
    beside: dict[Site, list[Site]] = {}
    for edge in chosen.tables.sites.edges:
        beside.setdefault(edge.source, []).append(edge.target)
        beside.setdefault(edge.target, []).append(edge.source)
    seen, queue = {start}, [start]
    for site in queue:
        if site.demands:
            demand = site.demands[0][1]
            return _asked_by(demand)
        for other in beside.get(site, []):
            if other not in seen and chosen.layouts[other].layout == layout:
                seen.add(other)
                queue.append(other)
    for site in queue:
        for asked in chosen.component.asked:
            if (
                site in asked.tiles.values()
                and type(asked.model).proposals is not Layouts.proposals
            ):
                return f"wide accesses of {_at(asked.op)}"
    if chosen.layouts[start].rank == Rank.DEFAULT:
        return f"nobody: {IN_ORDER}"
    for asked in chosen.component.asked:
        if start in asked.tiles.values() and type(asked.model).propagate is not Layouts.propagate:
            return f"what follows by {_at(asked.op)}"
    told = chosen.layouts[start].demand
    return "least cost" if told is None else _asked_by(told)


def _conversion(chosen: Chosen, move: Move, rest: float) -> ConversionExplained:
    """One conversion, with the least total of the function where it is forbidden."""
    operands = frozenset[OperandAt](edge.operand for edge in move.edges)
    tables = replace(chosen.tables, forbidden=operands, problem=Problem(), variables={})
    other = solve(tables)
    without = None if other is None else rest + half_cycles(other.solution.total)
    price = chosen.tables.price_of(move)
    cost, steps, trips = price.cost, price.words, move.trips
    if chosen.tables.is_made_again(move):
        again = chosen.tables.again(move.value, move.target)
        assert again is not None
        cost, steps = again, f"{owner_of(move.value).name} once more"
        trips = chosen.tables.trips.making(move.value)
    return ConversionExplained(
        _name(move.value),
        _place(owner_of(move.value)),
        str(move.source.layout),
        str(move.target.layout),
        cost,
        float(trips),
        steps,
        _reason(chosen, move.edges[0].target),
        without,
    )


def _written_conversions(chosen: Chosen) -> Iterator[ConversionExplained]:
    """The conversions that stand in the program."""
    for op, price in chosen.tables.written_conversions(chosen.layouts):
        have, want = (
            chosen.layouts[chosen.tables.sites.of(p)] for p in (OperandAt(op, 0), op.result)
        )
        yield ConversionExplained(
            _name(op.source),
            _place(op),
            str(have.layout),
            str(want.layout),
            price.cost,
            float(chosen.tables.trips.of(op)),
            price.words,
            f"as written ({_place(op)})",
            None,
        )
