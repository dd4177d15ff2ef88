"""Conversions inside of a warp: by renaming, byte permutes, selects and shuffles.

Any linear map is done in one hop with as many shuffles as the lower bound says (`bounds`), where
every lane has a word at least for each lane that it reads from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from fragir.layout.planning.bounds import moves_of
from fragir.layout.planning.building import Builder, lanewise
from fragir.layout.planning.costs import COSTS, Costs
from fragir.layout.planning.exchange import Exchange, exchange
from fragir.layout.planning.local import LocalMap
from fragir.layout.planning.program import Program
from fragir.layout.planning.pull import Pull, element_of, lane_of, pull_of
from fragir.layout.planning.registers import Pair, Registers, words_of

Kind = Literal["nothing", "registers", "bytes", "lanes"]


@dataclass(frozen=True)
class WarpPlan:
    """A conversion inside of each warp.

    `bound` is the least number of shuffles that any program has. Counts and cost are those of the
    program, which is made when it is asked for.
    """

    source: Registers
    target: Registers
    bits: int
    bound: int
    costs: Costs
    _hop: Exchange | LocalMap = field(repr=False)

    @cached_property
    def program(self) -> Program:
        """The instructions of one thread."""
        inputs = words_of(1 << len(self.source.element), self.bits)
        if isinstance(self._hop, Exchange):
            return self._hop.program(inputs)
        builder = Builder(inputs)
        return builder.program(self._hop.emit(builder, lambda word: word))

    @property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name."""
        return self.program.counts

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
    source: Registers, target: Registers, bits: int, costs: Costs = COSTS
) -> WarpPlan | None:
    """How the target's registers are made of the source's; None where data cross warps.

    Elements have 8, 16, 32 or 64 bits.
    """
    words = (tuple(range(words_of(1 << len(s.element), bits))) for s in (source, target))
    pair = Pair(source, target, bits, (next(words),), (next(words),))
    bound = moves_of(pair).shuffles
    inside = {8: 2, 16: 1}.get(bits, 0)
    sides = (source, target) if bits < 64 else (doubled(source), doubled(target))
    pull = pull_of(*sides)
    if pull is None:
        return None
    hop = _local(pull, inside) or exchange(pull, inside)
    return None if hop is None else WarpPlan(source, target, bits, bound, costs, hop)


def price(program: Program, costs: Costs = COSTS) -> float:
    """What a program costs; numbers of lanes are computed once."""
    counts = program.counts
    moves = counts.get("prmt", 0) + counts.get("selp", 0)
    total = (
        counts.get("shfl", 0) * costs.shuffle
        + counts.get("movmatrix", 0) * costs.transpose
        + moves * costs.move
        + sum(counts.values()) * costs.issue
    )
    numbers = (lanewise(step) for step in program.steps)
    if any(number is not None and not number.constant for number in numbers):
        total += costs.formula
    return total


def doubled(side: Registers) -> Registers:
    """Elements of 64 bits as two words each, of which the lower comes first."""
    element, lane, warp = (
        tuple(column << 1 for column in columns) for columns in (side.element, side.lane, side.warp)
    )
    return Registers((1, *element), lane, warp)


def _local(pull: Pull, inside: int) -> LocalMap | None:
    """What is done without another lane; None where one is needed."""
    if pull.others or not pull.own or any(map(lane_of, pull.warp)):
        return None
    elements = [element_of(slot) for slot in pull.element]
    whole = [0] * len(pull.whole)
    for bit, kept in enumerate(pull.whole):
        for index, element in enumerate(elements):
            if kept >> index & 1:
                whole[bit] ^= element
    lane, warp = (tuple(map(element_of, side)) for side in (pull.lane, pull.warp))
    return LocalMap(inside, tuple(whole[inside:]), tuple(whole[:inside]), lane, warp)
