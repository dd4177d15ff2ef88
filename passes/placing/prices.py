"""What layouts cost.

Conversions, operations in the layouts of their tiles, and how often each is executed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.dialects.interfaces import LAYOUTS, Threads, value_of
from fragir.dialects.shorthands import constant_of
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.planning.bounds import conversion_bound
from fragir.layout.planning.costs import COSTS, Costs, Features
from fragir.passes.placing.relations import asking
from fragir.passes.placing.sites import Asked

if TYPE_CHECKING:
    from fragir.layout.planning.planner import ConversionPlan


class Price(NamedTuple):
    """Half cycles of an SM for each warp, whether that is exact, what is done for it, and the bytes
    of shared memory that it takes."""

    cost: float
    exact: bool
    words: str = ""
    scratch: int = 0


FREE = Price(0.0, True, "nothing")
IMPOSSIBLE = Price(inf, True, "impossible")


_Key: TypeAlias = "tuple[Layout, Layout, int, bool]"
_PLANNED: dict[tuple[Features, Costs], dict[_Key, Price]] = {}
"""Exact prices of earlier functions, for the machines they were for."""
_LEAST: dict[Costs, dict[_Key, Price]] = {}
"""Lower bounds of earlier functions."""
MOST_KEPT = 4096


class Prices:
    """Prices of the conversions of one function."""

    def __init__(self, features: Features, costs: Costs = COSTS):
        self._features, self._costs = features, costs
        self._exact = _PLANNED.setdefault((features, costs), {})
        self._least_known = _LEAST.setdefault(costs, {})
        for kept in (self._exact, self._least_known):
            if len(kept) > MOST_KEPT:
                kept.clear()
        self._kinds: dict[Attribute, tuple[int, bool]] = {}

    def _key(self, source: Layout, target: Layout, element: Attribute) -> _Key:
        kind = self._kinds.get(element)
        if kind is None:
            kind = self._kinds[element] = _moved_bits(element)
        return source, target, *kind

    def price(self, source: Layout, target: Layout, element: Attribute) -> Price:
        """What is known of the price of converting a tile with these elements."""
        if source == target:
            return FREE
        key = self._key(source, target, element)
        known = self._exact.get(key) or self._least_known.get(key)
        if known is None:
            known = self._least_known[key] = self._least(source, target, key[2])
        return known

    def settle(self, source: Layout, target: Layout, element: Attribute) -> bool:
        """Plans a conversion; whether its price is another than was known."""
        before = self.price(source, target, element)
        if before.exact:
            return False
        key = self._key(source, target, element)
        planned = self._exact[key] = self._planned_price(*key)
        return planned.cost != before.cost

    def why_not(self, source: Layout, target: Layout, element: Attribute) -> str:
        """Why there is no conversion."""
        from fragir.layout.planning.planner import plan_conversion  # few programs need it

        try:
            plan_conversion(source, target, _moved_bits(element)[0], self._features, self._costs)
        except FragirError as error:
            return error.sentence
        return "no plan is known"

    def _least(self, source: Layout, target: Layout, bits: int) -> Price:
        try:
            return Price(conversion_bound(source, target, bits, self._costs), False)
        except FragirError:
            return IMPOSSIBLE

    def _planned_price(self, source: Layout, target: Layout, bits: int, predicates: bool) -> Price:
        from fragir.layout.planning.planner import plan_conversion  # few programs need it

        try:
            plan = plan_conversion(source, target, bits, self._features, self._costs)
        except FragirError:
            return IMPOSSIBLE
        if not predicates or plan.free:
            return Price(plan.cost, True, words_of(plan), plan.scratch)
        # predicates are numbers while they move
        each = self._costs.move + self._costs.issue
        numbers = source.size("element") + target.size("element")
        return Price(plan.cost + numbers * each, True, words_of(plan), plan.scratch)


def words_of(plan: ConversionPlan) -> str:
    """What a plan does, in a few words."""
    if plan.way == "nothing":
        return "nothing"
    if plan.way == "registers":
        return "registers renamed"
    counts = " + ".join(f"{count} {name}" for name, count in plan.counts.items())
    return counts or "element by element through shared memory"


def _moved_bits(element: Attribute) -> tuple[int, bool]:
    """Bits of an element on its way, and whether it is a predicate."""
    return (32, True) if is_predicate(element) else (ptx.bits(element), False)


# -- work ------------------------------------------------------------------------------------------
# What operations cost in the layouts that their tiles may have.


class Work:
    """What operations of a function cost in which layouts, each asked once."""

    def __init__(self, threads: Threads, movable: Collection[SSAValue] = ()):
        """`movable` is memory whose rows may lie in several orders: there it is not known what
        loading once more costs."""
        self._threads, self._movable = threads, movable
        self._costs: dict[tuple[Operation, tuple[frag.LayoutAttr, ...]], float] = {}
        self._again: dict[tuple[SSAValue, frag.LayoutAttr], float | None] = {}

    def cost(self, asked: Asked, layouts: Mapping[SSAValue, frag.LayoutAttr]) -> float:
        """What an operation costs in its tiles' layouts."""
        key = asked.op, tuple(layouts.values())
        known = self._costs.get(key)
        if known is None:
            with asking(asked.op):
                known = self._costs[key] = asked.model.cost(layouts, self._threads)
        return known

    def again(self, value: SSAValue, layout: frag.LayoutAttr) -> float | None:
        """What it costs to make a value again in a layout, with all that it is made of.

        None where an operation on the way may not be repeated or does not have its tiles alike.
        """
        key = value, layout
        if key not in self._again:
            self._again[key] = self._made_price(value, layout)
        return self._again[key]

    def _made_price(self, value: SSAValue, layout: frag.LayoutAttr) -> float | None:
        if not isinstance(value, OpResult) or len(value.owner.results) != 1:
            return None
        op: Operation = value.owner
        make = LAYOUTS.of(type(op))
        if make is None:
            return None
        model = make(op)
        if not model.repeats() or list(model.demands(self._threads)):
            return None
        if self._movable and any(v in self._movable for v in op.operands):
            return None
        tiles = [v for v in op.operands if frag.held_tile(v.type) is not None]
        total = model.cost({v: layout for v in (*tiles, value)}, self._threads)
        alike = {value_of(tile) for group in model.same_layout() for tile in group}
        for tile in dict.fromkeys(tiles):
            below = self.again(tile, layout) if tile in alike else None
            if below is None:
                return None
            total += below
        return total


# -- trips -----------------------------------------------------------------------------------------
# How often an operation is executed, as far as the program tells.

UNKNOWN = 16
"""Turns of a loop whose bounds are not known."""
BRANCH = Fraction(1, 2)
"""How often one side of a branch is taken."""


class Trips:
    """How often the blocks of a function are executed, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[Block, Fraction] = {}

    def of(self, op: Operation) -> Fraction:
        """How often an operation is executed."""
        return Fraction(1) if op.parent is None else self._block(op.parent)

    def making(self, value: SSAValue) -> Fraction:
        """How often a value is made."""
        if isinstance(value, BlockArgument):
            return self._block(value.owner)
        assert isinstance(value.owner, Operation)
        return self.of(value.owner)

    def _block(self, block: Block) -> Fraction:
        known = self._known.get(block)
        if known is None:
            parent = block.parent_op()
            known = Fraction(1) if parent is None else self.of(parent) * _turns(parent)
            self._known[block] = known
        return known


def _turns(op: Operation) -> Fraction:
    """How often an operation executes its regions."""
    if isinstance(op, scf.IfOp):
        return BRANCH
    if isinstance(op, scf.WhileOp):
        return Fraction(UNKNOWN)
    if not isinstance(op, scf.ForOp):
        return Fraction(1)
    first, last, step = (constant_of(value) for value in (op.lb, op.ub, op.step))
    if first is None or last is None or not step:
        return Fraction(UNKNOWN)
    return Fraction(max(1, -(-(last - first) // step)))
