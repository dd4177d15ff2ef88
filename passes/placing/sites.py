"""Where layouts are chosen: operands and results that their operations want alike are one site.

A value has the layout of the site that makes it. Every operand at which an operation cares for the
layout belongs to a site as well, and between the two lies an edge: where their layouts differ, the
value is converted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from xdsl.dialects import func
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from fragir.dialects import frag
from fragir.dialects.interfaces import LAYOUTS, Layouts, OperandAt, Threads, Tile, value_of
from fragir.passes.placing.placement import owner_of
from fragir.passes.placing.relations import IN_ORDER, WRITTEN, Demand, asking, require_layout

if TYPE_CHECKING:
    from fragir.passes.placing.memories import SharedMatrix

Point: TypeAlias = "SSAValue | OperandAt"
"""A value where it is made, or an operand of an operation."""


@dataclass(eq=False)
class Site:
    """Operands and results that have one layout."""

    number: int
    shape: tuple[int, ...]
    owner: Operation
    points: list[Point] = field(default_factory=list[Point])
    demands: list[tuple[Point, Demand]] = field(default_factory=list[tuple[Point, Demand]])


@dataclass(eq=False)
class MemorySite(Site):
    """Shared memory, the order of whose rows is chosen: its layouts are orders of rows."""

    matrix: SharedMatrix = field(kw_only=True)


class SiteEdge(NamedTuple):
    """A value on its way from where it is made to an operand that cares for its layout."""

    value: SSAValue
    operand: OperandAt
    source: Site
    target: Site


class Asked(NamedTuple):
    """An operation with something to say, and the sites of its tiles."""

    op: Operation
    model: Layouts
    tiles: Mapping[SSAValue, Site]
    memories: Mapping[SSAValue, MemorySite]

    @property
    def sites(self) -> Mapping[SSAValue, Site]:
        """Those of tiles and of memory."""
        return {**self.tiles, **self.memories} if self.memories else self.tiles


class Choosing(NamedTuple):
    """An operation with several sets of demands that would do, and the sites of its operands."""

    op: Operation
    model: Layouts
    sites: tuple[Site, ...]
    memories: Mapping[SSAValue, MemorySite]


class SiteGraph:
    """The sites, edges and operations of a function that have to do with some of its values."""

    def __init__(self, function: func.FuncOp, values: Collection[SSAValue], threads: Threads):
        self._values = set(values)
        self._parent: dict[Point, Point] = {}
        demands: list[tuple[Point, Demand]] = []
        talking: list[tuple[Operation, Layouts]] = []
        choosing: list[tuple[Operation, Layouts]] = []
        for value in values:
            self._find(value)
            tile = frag.tile_of(value)
            if tile.placement is not None:
                demands.append((value, Demand(tile.placement, owner_of(value), WRITTEN)))
        for op in function.walk():
            if not any(value in self._values for value in (*op.operands, *_made_values(op))):
                continue
            make = LAYOUTS.of(type(op))
            if make is None:
                continue
            model = make(op)
            with asking(op):
                more = _says_more(model) or isinstance(op, frag.ConvertOp)
                self._relate(op, model, more)
                self._keep_in_flight(op)
                if isinstance(op, frag.ConvertOp) and op.source in self._values:
                    self._unite([op.source, OperandAt(op, 0)])  # it takes what there is
                said = list(model.demands(threads))
            for tile, layout, role in said:
                demand = Demand(require_layout(op, value_of(tile), layout), op, role)
                for point in self._points(op, tile):
                    self._find(point)
                    demands.append((point, demand))
            if more:
                talking.append((op, model))
            if type(model).alternatives is not Layouts.alternatives:
                choosing.append((op, model))
        self._sites = self._numbered_sites()
        for point, demand in demands:
            self.of(point).demands.append((point, demand))
        self.all = list(dict.fromkeys(self._sites.values()))
        self.edges = list(self._edges())
        self.memories = self._memories((*choosing, *talking)) if choosing else {}
        self.asked = [Asked(op, m, self._tiles(op), self._memories_of(op)) for op, m in talking]
        self.choosing = [
            Choosing(op, m, self._operands_of(op), self._memories_of(op)) for op, m in choosing
        ]

    def of(self, point: Point) -> Site:
        """The site of a value where it is made, or of an operand."""
        return self._sites[self._find(point)]

    # --- building ---------------------------------------------------------------------------------

    def _find(self, point: Point) -> Point:
        parent = self._parent
        root = parent.setdefault(point, point)
        while parent[root] is not root:
            root = parent[root]
        while parent[point] is not root:
            parent[point], point = root, parent[point]
        return root

    def _unite(self, points: Iterable[Point]) -> None:
        first = None
        for point in points:
            root = self._find(point)
            first = root if first is None else first
            self._parent[root] = self._find(first)

    def _points(self, op: Operation, tile: Tile) -> list[Point]:
        """Where an operation has a tile: as its own result or argument, or as operands."""
        if isinstance(tile, OperandAt):
            return [tile] if tile.value in self._values else []
        if tile not in self._values:
            return []
        if _maker(tile) is op:
            return [tile]
        return [operand for operand in _operands(op) if operand.value is tile]

    def _relate(self, op: Operation, model: Layouts, more: bool) -> None:
        for group in model.same_layout():
            self._unite([point for tile in group for point in self._points(op, tile)])
        if more:  # it speaks of values
            for value in dict.fromkeys(op.operands):
                self._unite(self._points(op, value))

    def _keep_in_flight(self, op: Operation) -> None:
        """What products still write is not converted: its operand has its layout."""
        for operand in _operands(op):
            if operand.value in self._values and not isinstance(operand.value.type, frag.TileType):
                self._unite([operand.value, operand])

    def _numbered_sites(self) -> dict[Point, Site]:
        sites: dict[Point, Site] = {}
        for point in list(self._parent):
            root = self._find(point)
            value = value_of(point)
            if root not in sites:
                owner = point.op if isinstance(point, OperandAt) else owner_of(point)
                sites[root] = Site(len(sites), frag.tile_of(value).shape, owner)
            sites[root].points.append(point)
        return sites

    def _edges(self) -> Iterator[SiteEdge]:
        for point in list(self._parent):
            if isinstance(point, OperandAt):
                source, target = self.of(point.value), self.of(point)
                if source is not target:
                    yield SiteEdge(point.value, point, source, target)

    def _operands_of(self, op: Operation) -> tuple[Site, ...]:
        places = (OperandAt(op, number) for number in range(len(op.operands)))
        return tuple(dict.fromkeys(self.of(place) for place in places if place in self._parent))

    def _memories(
        self, touching: Iterable[tuple[Operation, Layouts]]
    ) -> dict[SSAValue, MemorySite]:
        """Memory in which operations may want rows in another order, with its views."""
        found: dict[SSAValue, MemorySite] = {}
        values = [v for op, _ in touching for v in op.operands if frag.is_shared(v.type)]
        for value in values:
            if value in found:
                continue
            from fragir.passes.placing.memories import shared_matrix  # few programs need it

            matrix = shared_matrix(value, self._values)
            if matrix is not None:
                site = memory_site(len(self.all), matrix)
                self.all.append(site)
                found.update(dict.fromkeys(matrix.values, site))
        return found

    def _memories_of(self, op: Operation) -> dict[SSAValue, MemorySite]:
        if not self.memories:
            return {}
        return {v: self.memories[v] for v in op.operands if v in self.memories}

    def points_of(self, op: Operation, tile: Tile) -> list[Point]:
        """Where an operation has a tile."""
        return self._points(op, tile)

    def _tiles(self, op: Operation) -> dict[SSAValue, Site]:
        found: dict[SSAValue, Site] = {}
        for value in (*op.operands, *op.results):
            for point in self._points(op, value)[:1]:
                found[value] = self.of(point)
        return found


def memory_site(number: int, matrix: SharedMatrix) -> MemorySite:
    """The site of memory, whose rows lie as they are unless somebody wants them otherwise."""
    from fragir.dialects.frag.row_orders import rows_as_they_are

    owner = owner_of(matrix.root)
    site = MemorySite(number, (matrix.rows,), owner, list(matrix.values), matrix=matrix)
    site.demands.append((matrix.root, Demand(rows_as_they_are(matrix.rows), owner, IN_ORDER)))
    return site


def _made_values(op: Operation) -> Iterator[SSAValue]:
    """What an operation makes: results, and arguments of its regions."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def _maker(value: SSAValue) -> Operation:
    if isinstance(value, BlockArgument):
        parent = value.owner.parent_op()
        assert parent is not None
        return parent
    return owner_of(value)


def _operands(op: Operation) -> Iterator[OperandAt]:
    """The operands of an operation, and of what its regions end in."""
    for index in range(len(op.operands)):
        yield OperandAt(op, index)
    for region in op.regions:
        for block in region.blocks:
            last = block.last_op
            if last is not None and last.has_trait(IsTerminator):
                for index in range(len(last.operands)):
                    yield OperandAt(last, index)


def _says_more(model: Layouts) -> bool:
    """Whether a model relates, proposes or prices layouts."""
    kind = type(model)
    return (
        kind.propagate is not Layouts.propagate
        or kind.cost is not Layouts.cost
        or kind.proposals is not Layouts.proposals
    )
