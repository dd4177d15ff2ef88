"""Conversions inside of a warp: by renaming, byte permutes, selects, shuffles and `movmatrix`.

Any linear map is done in one hop (`exchange`) with as many shuffles as the lower bound says
(`bounds`), where every lane has a word at least for each lane that it reads from. Where it has not,
several hops (`hops`), and `movmatrix` for what it is the transposition of, may be cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from fragir.errors import shortened
from fragir.layout.planning.bounds import moves_of
from fragir.layout.planning.building import lanewise
from fragir.layout.planning.costs import COSTS, FEATURES, Costs, Features
from fragir.layout.planning.exchange import Exchange
from fragir.layout.planning.hops import Route, direct, several
from fragir.layout.planning.local import LocalMap
from fragir.layout.planning.movmatrix import transposed
from fragir.layout.planning.program import LaneTable, WordProgram
from fragir.layout.planning.registers import LayoutPair, RegisterColumns, words_of

Kind = Literal["nothing", "registers", "bytes", "lanes"]


@dataclass(frozen=True)
class WarpPlan:
    """A conversion inside of each warp.

    `bound` is the least number of shuffles that any program of shuffles has. Counts and cost are
    those of the program, which is made when it is asked for; `reckoned` is what its instructions
    were thought to cost when ways were compared.
    """

    source: RegisterColumns
    target: RegisterColumns
    bits: int
    bound: int
    costs: Costs
    route: Route = field(repr=False)

    def __repr__(self) -> str:
        steps = " + ".join(f"{count} {name}" for name, count in self.counts.items())
        return shortened(f"<conversion inside of warps: {steps}; {self.bound} shuffles at least>")

    @cached_property
    def program(self) -> WordProgram:
        """The instructions of one thread."""
        return self.route.program(words_of(1 << len(self.source.element), self.bits))

    @property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name."""
        return self.program.counts

    @property
    def crosses(self) -> bool:
        """Whether data leave their lanes; known without the program."""
        return any(not isinstance(move, LocalMap) for move in self.route.moves)

    @property
    def reckoned(self) -> float:
        """The price without the program, close to `cost` and quickly known."""
        varies = any(
            isinstance(move, Exchange) or (isinstance(move, LocalMap) and any(move.threads))
            for move in self.route.moves
        )
        return self.route.price + (self.costs.formula if varies else 0)

    @cached_property
    def cost(self) -> float:
        """The price of the program."""
        return price(self.program, self.costs)

    @cached_property
    def kind(self) -> Kind:
        """What is moved: nothing, registers by renaming, inside of the lane, or across lanes."""
        counts = self.counts
        if not counts:
            program = self.program
            same = program.outputs == tuple(range(program.inputs))
            return "nothing" if same else "registers"
        return "lanes" if counts.keys() & {"shfl", "movmatrix"} else "bytes"


def warp_plan(
    source: RegisterColumns,
    target: RegisterColumns,
    bits: int,
    costs: Costs = COSTS,
    features: Features = FEATURES,
) -> WarpPlan | None:
    """How the target's registers are made of the source's; None where data cross warps.

    Elements have 8, 16, 32 or 64 bits. Of one hop, several hops and `movmatrix` the cheapest.
    """
    words = [tuple(range(words_of(1 << len(s.element), bits))) for s in (source, target)]
    moves = moves_of(LayoutPair(source, target, bits, (words[0],), (words[1],)))
    if moves.reach == "warps":
        return None
    inside = {8: 2, 16: 1}.get(bits, 0)
    sides = (source, target) if bits < 64 else (source.by_halves(), target.by_halves())
    ways = [direct(*sides, inside, costs)]
    if moves.mixed and moves.words < 1 << moves.mixed:
        ways.append(several(*sides, inside, costs))
    if moves.reach == "lanes" and features.movmatrix:
        ways.append(transposed(*sides, inside, costs))
    found = min((way for way in ways if way), key=lambda way: way.price, default=None)
    return found and WarpPlan(source, target, bits, moves.shuffles, costs, found)


def price(program: WordProgram, costs: Costs = COSTS) -> float:
    """What a program costs; linear numbers of lanes are computed together, each table apart."""
    counts = program.counts
    moves = counts.get("prmt", 0) + counts.get("selp", 0)
    total = (
        counts.get("shfl", 0) * costs.shuffle
        + counts.get("movmatrix", 0) * costs.transpose
        + moves * costs.move
        + sum(counts.values()) * costs.issue
    )
    named = {id(number): number for step in program.steps if (number := lanewise(step))}
    varying = {number for number in named.values() if not number.constant}
    tables = sum(isinstance(number, LaneTable) for number in varying)
    total += costs.formula * (tables + (tables < len(varying)))
    return total
