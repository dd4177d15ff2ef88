"""From what operations say of their tiles' layouts to one layout for every tile, where it is plain.

Operations unite tiles that share a layout (`same_layout`) and dictate layouts (`demands`); from
those, others follow (`propagate`) until nothing changes. What is still open then gets rows in
order, the largest class first, and others may follow from that in turn. A class of tiles of which
different layouts are wanted is not plain: it is left, with all that hangs on it, to
`fragir.passes.placing.inference`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from heapq import heappop, heappush
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects import func, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.interfaces import IN_LANE, LAYOUTS, Layouts, OperandAt, Threads, Tile, value_of
from fragir.errors import FragirError
from fragir.mlir.diagnostics import asking, fail
from fragir.passes.placing.placement import owner_of
from fragir.passes.settling import rounds

if TYPE_CHECKING:
    from fragir.passes.placing.memories import Room


# -- classes ---------------------------------------------------------------------------------------
# Tiles that must have one layout.


class Classes:
    """Tiles that must have one layout, as a union-find forest over values."""

    def __init__(self) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}

    def find(self, value: SSAValue) -> SSAValue:
        """The representative of a value's class."""
        self._parent.setdefault(value, value)
        root = value
        while self._parent[root] is not root:
            root = self._parent[root]
        while self._parent[value] is not root:
            self._parent[value], value = root, self._parent[value]
        return root

    def unite(self, values: Iterable[Tile]) -> None:
        """All tiles among the values belong together."""
        found = [value_of(v) for v in values]
        tiles = [v for v in found if frag.held_tile(v.type) is not None]
        for value in tiles:
            self._parent[self.find(value)] = self.find(tiles[0])

    def members(self) -> dict[SSAValue, list[SSAValue]]:
        """Every class: representative -> its values."""
        result: dict[SSAValue, list[SSAValue]] = {}
        for value in self._parent:
            result.setdefault(self.find(value), []).append(value)
        return result


LAYOUTS.found_in("fragir.passes.placing")

CONSEQUENCE = "consequence"
"""The role of a layout that follows from others."""
WRITTEN = "as written"
"""The role of a layout that stands in the program."""
IN_ORDER = "rows in order"
"""The role of a layout that nobody asks for."""


class Demand(NamedTuple):
    """A layout and who wants it."""

    layout: frag.LayoutAttr
    op: Operation
    role: str


class Plain(NamedTuple):
    """The classes that have one layout each, and the tiles of those that are wanted in several.

    `asserted` are the conversions that must be free.
    """

    placed: list[tuple[Demand, list[SSAValue]]]
    open: list[SSAValue]
    asserted: list[frag.ConvertOp]


class Relations:
    """Tiles of a function that the same threads hold, in classes, and the layouts that are known
    of them.

    `operations` are those that these threads run.
    """

    def __init__(
        self,
        function: func.FuncOp,
        operations: Iterable[Operation],
        tiles: Iterable[SSAValue],
        threads: Threads,
        count: int,
    ):
        self._function, self._threads, self._count = function, threads, count
        self._room: Room | None = None
        self._classes = Classes()
        self._found: dict[SSAValue, Demand] = {}
        self._open: set[SSAValue] = set()  # classes of which several layouts are wanted
        self._opened: list[SSAValue] = []  # those that others have not been looked for yet
        self._others: dict[SSAValue, list[frag.LayoutAttr]] = {}  # of those, but the first
        self._told: set[tuple[Operation, SSAValue, frag.LayoutAttr]] = set()
        """Operations that have told what they would take where a tile may be had in a layout."""
        for value in tiles:
            self._classes.find(value)
        self._ops = list(operations)
        self._asked = list(_models(self._ops))
        self._following = [
            (op, m) for op, m in self._asked if type(m).propagate is not Layouts.propagate
        ]
        self._touching: dict[SSAValue, set[int]] = {}
        """Which of these have a class among their tiles, of those that were asked."""

    def solve(self) -> Plain:
        """The layout of every class of tiles that has one only."""
        for op, model in self._asked:
            if type(model).same_layout is not Layouts.same_layout:
                with asking(op):
                    for group in model.same_layout():
                        self._classes.unite(group)
        models = dict(self._asked)
        for op in self._ops:
            self._demand(op, models.get(op))
        self._infer()
        self._look_for_gains()
        self._look_for_orders()
        self._spread_from_class()
        placed: list[tuple[Demand, list[SSAValue]]] = []
        rest: list[SSAValue] = []
        for root, values in self._classes.members().items():
            if root in self._open:
                rest += values
            else:
                placed.append((self._found[root], values))
        converts = (op for op, _ in self._asked if isinstance(op, frag.ConvertOp))
        return Plain(placed, rest, [op for op in converts if op.assert_free is not None])

    def _demand(self, op: Operation, model: Layouts | None) -> None:
        """Takes up what is written in an operation's types, and what the operation dictates."""
        for value in (*op.operands, *op.results):
            tile = frag.held_tile(value.type)
            if tile is not None and tile.placement is not None:
                self._require(value, Demand(tile.placement, op, WRITTEN))
        if model is None or type(model).demands is Layouts.demands:
            return
        with asking(op):
            demands = list(model.demands(self._threads))
        for tile, layout, role in demands:
            value = value_of(tile)
            self._require(value, Demand(require_layout(op, value, layout), op, role))

    def _require(self, value: SSAValue, demand: Demand) -> bool:
        """Records a layout; whether it is news."""
        root = self._classes.find(value)
        other = self._found.get(root)
        if other is None:
            self._found[root] = demand
            if root in self._open:
                self._opened.append(root)
            return True
        # a layout that follows says nothing of fragments: Lanes hides them
        fragments = demand.role != CONSEQUENCE
        if not is_same_placement(other.layout, demand.layout, value, fragments):
            self._others.setdefault(root, []).append(demand.layout)
            self._open_class(root)
        return False

    def _open_class(self, root: SSAValue) -> None:
        """Leaves a class that is wanted in several layouts, or in yet another one."""
        self._open.add(root)
        self._opened.append(root)

    def _infer(self) -> None:
        """Follows the operations' relations; what none tells of gets rows in order."""
        self._spread_from_class()
        self._follow_all(range(len(self._following)))
        self._spread_from_class()  # that has layouts to choose from
        roots = list(self._classes.members())
        if self._following:  # what is known of one may say what another has: the largest goes first
            roots.sort(key=_size, reverse=True)
        for root in roots:
            if root not in self._found and root not in self._open:
                self._found[root] = self._default(root)
                self._follow_all(self._touching.get(root, ()))
                self._spread_from_class()

    def _follow_all(self, asked: Iterable[int]) -> None:
        """Asks operations what follows from their tiles, and those again whose tiles it tells of,
        until nothing does: in order, as often as there is one behind that tells one before.
        """
        later = set(asked)
        for _ in rounds("what follows from tiles"):
            if not later:
                return
            now, later = sorted(later), set[int]()
            while now:
                index = heappop(now)
                while now and now[0] == index:
                    heappop(now)
                for root in self._follow(index):
                    for other in self._touching.get(root, ()):
                        if other > index:
                            heappush(now, other)
                        else:
                            later.add(other)

    def _look_for_gains(self) -> None:
        """Opens the classes of tiles that are stored so badly that a conversion may pay."""
        for op, model in self._asked:
            if op.results or type(model).proposals is Layouts.proposals:
                continue
            for value in op.operands:
                demand = self._found.get(self._classes.find(value)) if _is_tile(value) else None
                if demand is None or demand.role in (WRITTEN, IN_ORDER):
                    continue
                with asking(op):
                    if self._gains(op, model, value, demand):
                        self._open_class(self._classes.find(value))

    def _look_for_orders(self) -> None:
        """Opens what a written conversion is between, where a product could do without it."""
        converts = [op for op, _ in self._asked if isinstance(op, frag.ConvertOp)]
        if not converts:
            return
        if all(type(model).alternatives is Layouts.alternatives for _, model in self._asked):
            return
        for op in converts:
            roots = [self._classes.find(value) for value in (op.source, op.result)]
            have, want = (self._found.get(root) for root in roots)
            if have is None or want is None:  # open already
                continue
            if have.role == want.role == WRITTEN:
                continue
            if not is_same_placement(have.layout, want.layout, op.source, False):
                for root in roots:
                    self._open_class(root)

    def _gains(self, op: Operation, model: Layouts, value: SSAValue, demand: Demand) -> bool:
        """Whether an operation saves more in a layout it proposes than a conversion takes at least,
        and there is room for that."""
        now = model.cost({value: demand.layout}, self._threads)
        if not now:
            return False
        for _, layout, role in model.proposals(demand.layout, self._threads):
            if not isinstance(layout, frag.LayoutAttr):
                continue
            gain = now - model.cost({value: layout}, self._threads)
            if gain <= _least_between_lanes(value, demand.layout, layout):
                continue
            if gain > _least_price(value, demand.layout, layout):
                return role == IN_LANE or self._has_room(value, op)
        return False

    def _has_room(self, value: SSAValue, op: Operation) -> bool:
        """Whether there is room left for converting a tile for an operation."""
        from fragir.passes.placing.memories import Room

        if self._room is None:
            self._room = Room(self._function, self._threads.target)
        return self._room.fits(value, op)

    def _spread_from_class(self) -> None:
        """What hangs on an open class by an operation's relations, or is converted to or from it,
        is open too."""
        while self._opened:
            root = self._opened.pop()
            for other in self._links.get(root, set()) | self._alternatives(root):  # any order
                if other not in self._open:
                    self._open_class(other)

    @cached_property
    def _links(self) -> dict[SSAValue, set[SSAValue]]:
        """Classes that operations' relations and conversions link to each."""
        related = [op for op, _ in self._following]
        related += [op for op, _ in self._asked if isinstance(op, frag.ConvertOp)]
        found: dict[SSAValue, set[SSAValue]] = {}
        for roots in map(self._roots, related):
            for root in roots:
                found.setdefault(root, set()).update(roots)
        return found

    @cached_property
    def _takers(self) -> dict[SSAValue, list[tuple[Operation, Layouts, SSAValue]]]:
        """Operations that take a tile of a class, and may take it in other layouts."""
        found: dict[SSAValue, list[tuple[Operation, Layouts, SSAValue]]] = {}
        for op, model in self._asked:
            if type(model).alternatives is not Layouts.alternatives:
                for value in filter(_is_tile, dict.fromkeys(op.operands)):
                    found.setdefault(self._classes.find(value), []).append((op, model, value))
        return found

    def _alternatives(self, root: SSAValue) -> set[SSAValue]:
        """The classes of what operations would take in other layouts, as a class of it is open."""
        found: set[SSAValue] = set()
        known = self._found.get(root)
        if known is None or known.role == WRITTEN:
            return found
        layouts = dict.fromkeys((known.layout, *self._others.get(root, ())))
        for op, model, value in self._takers.get(root, ()):
            for layout in layouts:
                if (op, value, layout) in self._told:
                    continue
                self._told.add((op, value, layout))
                with asking(op):
                    for demands in model.alternatives(value, layout, self._threads):
                        for demand in demands:
                            found |= self._touched_values(value_of(demand.value))
        return found

    def _touched_values(self, value: SSAValue) -> set[SSAValue]:
        """The class of a tile, and of those in the shared memory that it is loaded from; of memory
        those of all tiles that go through it.
        """
        if _is_tile(value):
            found = {self._classes.find(value)}
            if isinstance(value.owner, frag.LoadOp) and frag.is_shared(value.owner.memory.type):
                found |= self._touched_values(value.owner.memory)
            return found
        from fragir.passes.placing.memories import shared_matrix, tiles_at  # few programs need them

        matrix = shared_matrix(value)
        if matrix is None or matrix.fixed_by:
            return set()
        return {self._classes.find(tile) for tile in tiles_at(matrix)}

    def _roots(self, op: Operation) -> set[SSAValue]:
        tiles = (v for v in (*op.operands, *op.results) if frag.held_tile(v.type) is not None)
        return {self._classes.find(v) for v in tiles}

    def _follow(self, index: int) -> list[SSAValue]:
        """The classes of which a layout follows from an operation's tiles, and none was known."""
        op, model = self._following[index]
        roots = {v: self._classes.find(v) for v in (*op.operands, *op.results) if _is_tile(v)}
        if not self._open.isdisjoint(roots.values()):
            return []
        found = {value: self._found.get(root) for value, root in roots.items()}
        known = {value: demand.layout for value, demand in found.items() if demand is not None}
        with asking(op):
            follows = list(model.propagate(known))
        news: list[SSAValue] = []
        for value, layout in follows:
            root = roots[value] = self._classes.find(value)
            if self._require(value, Demand(require_layout(op, value, layout), op, CONSEQUENCE)):
                news.append(root)
        for root in roots.values():
            self._touching.setdefault(root, set()).add(index)
        return news

    def _default(self, root: SSAValue) -> Demand:
        from fragir.passes.placing.placement import default_layout  # few programs need it

        tile, owner = frag.tile_of(root), owner_of(root)
        try:
            together = self._together(root)
            layout = frag.ExplicitLayoutAttr(default_layout(tile, self._count, together))
        except FragirError as error:
            fail(owner, str(error))
        return Demand(layout, owner, IN_ORDER)

    def _together(self, root: SSAValue) -> int | None:
        """How many elements of a class of tiles global memory lets be accessed at once, where it is
        the same for all that load or store them; None where nobody does."""
        own = self._global_accesses.get(root, ())
        return None if None in own else max((at for at in own if at is not None), default=None)

    @cached_property
    def _global_accesses(self) -> dict[SSAValue, list[int | None]]:
        """Of the classes of tiles that are loaded or stored in global memory: how many elements it
        lets be accessed at once; None where rows lie across."""
        from fragir.dialects.frag.tiles import memory_at

        found: dict[SSAValue, list[int | None]] = {}
        for op in self._ops:
            if op.name not in ("frag.load", "frag.store"):
                continue
            assert isinstance(op, frag.LoadOp | frag.StoreOp)
            value = op.results[0] if op.results else op.operands[0]
            memory = memory_at(op, value, self._threads)
            if memory is None or memory.swizzle is not None:
                continue
            # lanes that lie beside each other would be far apart across rows
            across = memory.along != len(frag.tile_of(value).shape) - 1
            own = found.setdefault(self._classes.find(value), [])
            own.append(None if across else memory.together)
        return found


def tiles_of(operations: Iterable[Operation]) -> list[SSAValue]:
    """Every tile that operations make, in order."""
    values: list[SSAValue] = []
    for op in operations:
        values += op.results
        for region in op.regions:
            for block in region.blocks:
                values += block.args
    return [v for v in values if frag.held_tile(v.type) is not None]


def _models(ops: Iterable[Operation]) -> Iterable[tuple[Operation, Layouts]]:
    """The operations that say something of layouts."""
    for op in ops:
        model = LAYOUTS.of(type(op))
        if model is not None:
            yield op, model(op)


def _least_between_lanes(value: SSAValue, have: frag.LayoutAttr, want: frag.LayoutAttr) -> float:
    """What a conversion takes at the very least: half of the words come from other lanes.

    Nothing where lanes and warps may keep what they have.
    """
    from fragir.layout.planning.costs import COSTS

    tile = frag.tile_of(value)
    shape, bits = tile.shape, element_bits(tile.element_type)
    first, second = (side.layout(*shape) for side in (have, want))
    if all(first.axis(name).modes == second.axis(name).modes for name in first.names[:-1]):
        return 0.0
    words = first.size("element") * bits / 32
    return words / 2 * (COSTS.shuffle + COSTS.issue)


def _least_price(value: SSAValue, have: frag.LayoutAttr, want: frag.LayoutAttr) -> float:
    """What converting a tile takes at least."""
    from fragir.dialects import ptx
    from fragir.layout.planning.bounds import conversion_bound  # few programs need it

    tile = frag.tile_of(value)
    shape, bits = tile.shape, ptx.bits(tile.element_type)
    return conversion_bound(have.layout(*shape), want.layout(*shape), bits)


def _is_tile(value: SSAValue) -> bool:
    return frag.held_tile(value.type) is not None


def _size(value: SSAValue) -> int:
    return prod(frag.tile_of(value).shape)


def require_layout(op: Operation, value: SSAValue, layout: Attribute) -> frag.LayoutAttr:
    """A layout that an operation gave, if it is one that the tile can have."""
    tile = frag.held_tile(value.type)
    if tile is None:
        fail(op, f"{op.name} gives a layout to {value.type}, which is no tile")
    if not isinstance(layout, frag.LayoutAttr):
        fail(op, f"{op.name} gives {tile} the layout {layout}, which is none")
    if not isinstance(layout, frag.MmaLayoutAttr):  # that is told at the tile it does not fit
        try:
            layout.layout(*tile.shape)
        except FragirError as error:
            fail(op, f"{op.name} gives {tile} the layout {layout}: {error}")
    return layout


def is_same_placement(
    first: frag.LayoutAttr, second: frag.LayoutAttr, value: SSAValue, fragments: bool
) -> bool:
    """Whether two layouts put every element of a tile in the same place, and fragment if asked."""
    if first == second:
        return True
    shape = frag.tile_of(value).shape
    return (first.chunk == second.chunk or not fragments) and first.layout(
        *shape
    ).simplified() == second.layout(*shape).simplified()


# -- control ---------------------------------------------------------------------------------------
# Layouts across control flow: what a loop or a branch passes on keeps its layout.

STARTS = 3
"""Where the starts of a loop's variables begin among its operands: behind its bounds and step."""


class ForLayouts(Layouts):
    """A variable's start, its value in the body, what is yielded for it, and the result."""

    def __init__(self, op: scf.ForOp):
        self.op = op

    def same_layout(self) -> Iterator[tuple[Tile, ...]]:
        op, body = self.op, self.op.body.block
        starts = [OperandAt(op, index) for index in range(STARTS, len(op.operands))]
        return zip(starts, body.args[1:], _yielded_operands(body), op.results, strict=True)


class IfLayouts(Layouts):
    """A result and what each branch yields for it."""

    def __init__(self, op: scf.IfOp):
        self.op = op

    def same_layout(self) -> Iterator[tuple[Tile, ...]]:
        for region in self.op.regions:
            if region.blocks:
                yield from zip(self.op.results, _yielded_operands(region.block), strict=True)


class WhileLayouts(Layouts):
    """What comes into the condition's block each time; what goes from it into the body, and out."""

    def __init__(self, op: scf.WhileOp):
        self.op = op

    def same_layout(self) -> Iterator[tuple[Tile, ...]]:
        op, before, after = self.op, self.op.before_region.block, self.op.after_region.block
        starts = [OperandAt(op, index) for index in range(len(op.operands))]
        # where their numbers differ, the lowering says so
        yield from zip(starts, before.args, _yielded_operands(after), strict=False)
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        passed = [OperandAt(condition, 1 + index) for index in range(len(condition.args))]
        yield from zip(passed, after.args, op.results, strict=False)


def _yielded_operands(block: Block) -> list[OperandAt]:
    last = block.last_op
    if not isinstance(last, scf.YieldOp):
        return []
    return [OperandAt(last, index) for index in range(len(last.operands))]
