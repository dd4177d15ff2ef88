"""The choice among schedules by what they cost, and why a product has the one it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import NamedTuple

from fragir.scheduling.candidates import (
    FRAG_TILE,
    SPECIALISED,
    Configuration,
    GemmProblem,
    SearchSpace,
    configurations,
)
from fragir.scheduling.cost import Estimate, at_least, estimate

Cost = Callable[[GemmProblem, Configuration], Estimate]
BETTER = 1.1
"""How much less another schedule must cost than the usual one: the model is no better than that."""
FINER = 1.03
"""The same of a tile with columns between powers of two, beside one without: its C leaves in
narrower boxes, which the model does not see."""
STAGE = 1 / 500
"""How much more each stage costs beyond those that are usual: of schedules that are alike the one
with fewer is taken."""
TURNS = 1.005
"""The same of roles that multiply by turns, for sizes that only a launch knows."""


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
        return total * _weight(one) * (TURNS if one.roles == "ping-pong" else 1.0)

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
    bounds = sorted(
        (_weight(one) * bound(problem, one).cycles, place) for place, one in enumerate(every)
    )
    for low, place in bounds:
        if low >= least:
            break
        cycles = _weight(every[place]) * cost(problem, every[place]).cycles
        if cycles < least:
            best, least = every[place], cycles
    return best


def _weight(one: Configuration) -> float:
    """What a cost is multiplied by for what the model does not see."""
    m, n, _ = one.tile
    between = FINER if m & (m - 1) or n & (n - 1) else 1.0
    space = FRAG_TILE if one.roles == "together" else SPECIALISED
    return between * (1 + STAGE * max(0, one.stages - space.most_stages))


# -- explanation -----------------------------------------------------------------------------------
# Why a product has its schedule: the candidates, what each costs, and what it waits for.

SHOWN = 8
_HEAD = (
    *("tile", "warps", "stages", "blocks/SM", "waves"),
    *("tensor", "shared", "L2", "memory", "all", "waits for"),
)


@dataclass(frozen=True)
class ScheduleExplanation:
    """One product's schedule among those that it might have."""

    what: str
    """The product, as in "frag.matmul in gemm"."""
    problem: GemmProblem
    assumed: tuple[str, ...]
    """Sizes that only a launch knows, for which numbers were taken."""
    chosen: Configuration
    why: str
    ranking: tuple[Ranked, ...]
    """The cheapest first."""
    remarks: tuple[str, ...] = ()
    """What the program might say to have another one."""

    def __str__(self) -> str:
        """A head, a table in thousands of cycles, and what was chosen."""
        problem, device = self.problem, self.problem.device
        sizes = f"{problem.m} x {problem.n} x {problem.k}"
        if problem.batch > 1:
            sizes = f"{problem.batch} of {sizes}"
        if self.assumed:
            sizes += f" ({', '.join(self.assumed)} assumed)"
        lines = [
            f"{self.what}: {sizes}, {problem.element} in {problem.sums}, {problem.target} "
            f"({device.name}, {device.sms} SMs)"
        ]
        lines[0] += "; thousands of cycles"
        shown = list(self.ranking[:SHOWN])
        own = next((one for one in self.ranking if one.candidate == self.chosen), None)
        if own is None and self.chosen.problem(problem) is None:
            own = Ranked(self.chosen, estimate(problem, self.chosen))
        if own is not None and own not in shown:
            shown.append(own)
        rows = [_HEAD, *(_row(one) for one in shown)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        for row, one in zip(rows, (None, *shown), strict=True):
            mark = ">" if one is not None and one.candidate == self.chosen else " "
            cells = [
                cell.ljust(width) if i in (0, len(row) - 1) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append(f"{mark} {'  '.join(cells)}".rstrip())
        lines.append(f"chosen: {described(self.chosen)}: {self.why}")
        lines += [f"remark: {remark}" for remark in self.remarks]
        return "\n".join(lines)


def explain_choice(
    what: str,
    problem: GemmProblem,
    chosen: Configuration,
    usual: Configuration,
    *,
    given: Sequence[str] = (),
    assumed: Sequence[str] = (),
    spaces: Sequence[SearchSpace] = (FRAG_TILE,),
    among: Sequence[Configuration] = (),
    remarks: Sequence[str] = (),
    sampled: str | None = None,
) -> ScheduleExplanation:
    """The ranking around a choice, of spaces and of some besides. `given`: the attributes that said
    the schedule; `sampled`: the sizes for which it was chosen where a launch brings its own."""
    every = [*among, *(one for space in spaces for one in configurations(problem, space))]
    ranking = tuple(rank(problem, every))
    misfit = chosen.problem(problem)
    if given:
        why = f"{', '.join(given)} of the product {'says' if len(given) == 1 else 'say'} so"
        if chosen.roles != usual.roles:
            share = estimate(problem, usual).cycles / estimate(problem, chosen).cycles
            why += f"; with roles {share:.2f} times as fast as without"
    elif sampled is not None and chosen != usual:
        share = estimate(problem, usual).cycles / estimate(problem, chosen).cycles
        why = (
            f"{share:.2f} times as fast as the usual {described(usual)}; of {sampled} it is slower "
            "for none"
        )
    elif sampled is not None or assumed:
        why = f"the usual one of {problem.element}: a launch brings other sizes"
    elif chosen == usual and ranking:
        share = estimate(problem, chosen).cycles / ranking[0].estimate.cycles
        why = (
            "the cheapest is the usual one"
            if share <= 1
            else f"the usual one; the cheapest costs {100 - 100 / share:.0f} % less, where "
            f"{100 - 100 / BETTER:.0f} % count"
        )
    else:
        share = estimate(problem, usual).cycles / estimate(problem, chosen).cycles
        why = f"{share:.2f} times as fast as the usual {described(usual)}"
    if misfit is not None:
        why += f"; {misfit}"
    return ScheduleExplanation(what, problem, tuple(assumed), chosen, why, ranking, tuple(remarks))


def described(candidate: Configuration) -> str:
    """A schedule in a few words."""
    kind = "warpgroups" if candidate.wgmma or candidate.tensor else "warps"
    words = [
        _by(candidate.tile),
        f"{_by(candidate.warps)} {kind}",
        f"{candidate.stages} stages",
        *([candidate.roles] if candidate.roles != "together" else []),
        *(["in pairs of blocks"] if candidate.pair else []),
        *(
            [f"clusters of {candidate.cluster}"]
            if candidate.cluster > 1 and not candidate.pair
            else []
        ),
        *(["persistent"] if candidate.persistent else []),
        *([f"{candidate.order} {candidate.group}"] if candidate.order == "grouped" else []),
        *(["C by shared memory"] if candidate.staged else []),
        *([parts_in_words(candidate)] if candidate.parts > 1 else []),
    ]
    return ", ".join(words)


def parts_in_words(candidate: Configuration) -> str:
    """Into how many parts sums are cut."""
    if candidate.even:
        return f"even shares of {candidate.parts} parts at most"
    return f"{candidate.parts} parts"


def _row(one: Ranked) -> tuple[str, ...]:
    candidate, cost = one
    extra = described(candidate).split(", ")[3:]
    return (
        _by(candidate.tile) + (f" ({', '.join(extra)})" if extra else ""),
        _by(candidate.warps),
        str(candidate.stages),
        str(cost.resident),
        f"{cost.waves:.2f}",
        *(_thousands(x) for x in (cost.tensor, cost.shared, cost.l2, cost.dram, cost.cycles)),
        cost.limit,
    )


def _by(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def _thousands(cycles: float) -> str:
    return f"{cycles / 1000:.1f}" if cycles < 100_000 else f"{cycles / 1000:.0f}"
