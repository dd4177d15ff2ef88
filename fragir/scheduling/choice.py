"""Schedules in the order of what they cost, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
