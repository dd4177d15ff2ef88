"""What conversions cost: at least, by ranks alone, and exactly, by a plan.

Inference asks for many conversions and makes few. So a price is a lower bound first, told in
microseconds; `settle` plans one that is to be made and has its exact price from then on.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, TypeAlias

from xdsl.ir import Attribute

from fragir.dialects import ptx
from fragir.dialects.elements import is_predicate
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.planning.bounds import conversion_bound
from fragir.layout.planning.costs import COSTS, Costs, Features
from fragir.layout.planning.planner import ConversionPlan, plan_conversion


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
            kind = self._kinds[element] = _moved(element)
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
        planned = self._exact[key] = self._planned(*key)
        return planned.cost != before.cost

    def why_not(self, source: Layout, target: Layout, element: Attribute) -> str:
        """Why there is no conversion."""
        try:
            plan_conversion(source, target, _moved(element)[0], self._features, self._costs)
        except FragirError as error:
            return error.sentence
        return "no plan is known"

    def _least(self, source: Layout, target: Layout, bits: int) -> Price:
        try:
            return Price(conversion_bound(source, target, bits, self._costs), False)
        except FragirError:
            return IMPOSSIBLE

    def _planned(self, source: Layout, target: Layout, bits: int, predicates: bool) -> Price:
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


def _moved(element: Attribute) -> tuple[int, bool]:
    """Bits of an element on its way, and whether it is a predicate."""
    return (32, True) if is_predicate(element) else (ptx.bits(element), False)
