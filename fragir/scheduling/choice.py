"""Schedules in the order of what they cost, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import inf
from typing import NamedTuple

from fragir.scheduling.candidates import (
    FRAG_TILE,
    Configuration,
    GemmProblem,
    SearchSpace,
    configurations,
)
from fragir.scheduling.cost import Estimate, at_least, estimate

Cost = Callable[[GemmProblem, Configuration], Estimate]
BETTER = 1.1
"""How much less another schedule must cost than the usual one: the model is no better than that."""


class Ranked(NamedTuple):
    """A candidate and its cost."""

    candidate: Configuration
    estimate: Estimate

    def __repr__(self) -> str:
        return f"<{self.estimate.cycles:.0f} cycles: {self.candidate!r}>"


def rank(
    problem: GemmProblem,
    among: Iterable[Configuration] | None = None,
    *,
    space: SearchSpace = FRAG_TILE,
    cost: Cost = estimate,
) -> list[Ranked]:
    """All schedules of a space, or those that are given, the cheapest first."""
    every = configurations(problem, space) if among is None else among
    found = [Ranked(candidate, cost(problem, candidate)) for candidate in every]
    # of equals the one with fewer threads, then with more copies ahead: no order of chance
    return sorted(
        found,
        key=lambda one: (
            round(one.estimate.cycles),
            one.candidate.threads,
            -one.candidate.stages,
            one.candidate,
        ),
    )


@cache
def choose_for_several(
    problems: Sequence[GemmProblem],
    usual: Configuration,
    *,
    space: SearchSpace,
    cost: Cost = estimate,
    bound: Cost = at_least,
) -> Configuration:
    """A schedule for sizes of which a sample is known: of those that cost more than the usual one
    for none, and a tenth less for the last, the one that costs least on the average; or the usual
    one."""
    before = [cost(problem, usual).cycles for problem in problems]

    def shares(by: Cost, one: Configuration) -> float:
        """The sum of what it costs beside the usual one; infinite where that is not less."""
        total = 0.0
        for problem, cycles in zip(reversed(problems), reversed(before), strict=True):
            share = by(problem, one).cycles / cycles
            if share > (1.0 if total else 1 / BETTER):
                return inf
            total += share
        return total

    every = [(shares(bound, one), one) for one in configurations(problems[-1], space)]
    best, least = usual, inf
    for low, one in sorted(every, key=lambda pair: pair[0]):
        if low >= least:
            break
        total = shares(cost, one)
        if total < least:
            best, least = one, total
    return best


@cache
def choose(
    problem: GemmProblem,
    usual: Configuration,
    *,
    space: SearchSpace = FRAG_TILE,
    cost: Cost = estimate,
    bound: Cost = at_least,
) -> Configuration:
    """The cheapest schedule of a space, or the usual one where it fits and costs hardly more.

    What `bound` says is never more than what `cost` does, and spares asking it.
    """
    every = list(configurations(problem, space))
    if usual.problem(problem) is None:
        best, least = usual, cost(problem, usual).cycles / BETTER
    elif every:
        best, least = every[0], inf
    else:
        return usual
    bounds = sorted((bound(problem, one).cycles, place) for place, one in enumerate(every))
    for low, place in bounds:
        if low >= least:
            break
        cycles = cost(problem, every[place]).cycles
        if cycles < least:
            best, least = every[place], cycles
    return best
