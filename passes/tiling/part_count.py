"""Into how many parts the sums of a product are cut that gives memory for them and no number."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.dialects.frag.matmul_sums import most_parts
from fragir.passes.tiling.gemm_schedule import Schedule
from fragir.passes.tiling.modelled import ScheduleChoice, configuration_of, problem_of
from fragir.passes.tiling.schedule import suits
from fragir.scheduling.candidates import (
    FRAG_TILE,
    Configuration,
    GemmProblem,
    SearchSpace,
    in_parts,
)
from fragir.scheduling.choice import choose


def with_parts(product: frag.MatmulOp, choice: ScheduleChoice, target: str) -> Schedule:
    """The schedule of a choice, or one with parts that is a tenth cheaper. Sums stay whole where a
    size is not known: how many tiles there are decides it."""
    m, n, k = product.sizes()
    schedule = choice.schedule
    if not (m and n and k and all(product.batch())):
        return schedule
    problem = problem_of(product, (m, n, k), target)
    for given in (choice.given, ("tile",)):
        found = cheapest_in_parts(problem, choice._replace(given=given), most_parts(product))
        if found is None or found.parts == 1:
            return schedule
        cut = schedule._replace(
            tile=found.tile,
            warps=found.warps,
            stages=found.stages,
            parts=(found.parts, found.even),
        )
        if suits(product, cut):
            return cut
    return schedule


def cheapest_in_parts(
    problem: GemmProblem, choice: ScheduleChoice, most: int
) -> Configuration | None:
    """The cheapest schedule with up to `most` parts, or that of the choice itself; None where none
    is known. Where attributes say tile and the like, only the number of parts is open."""
    own = configuration_of(choice.schedule)
    parts = in_parts(most)
    if not parts:
        return own
    space = space_of_parts(choice.schedule)
    if space is None:
        return None
    if choice.given:
        shapes = (own.tile, own.warps, own.stages)
        return choose(problem, own, space=space._replace(parts=parts, only=shapes))
    return choose(problem, own, space=space._replace(parts=parts))


def space_of_parts(schedule: Schedule) -> SearchSpace | None:
    """What is enumerated beside a schedule: its roles and clusters stay."""
    if not schedule.roles:
        return FRAG_TILE
    from fragir.passes.tiling.role_schedule import space_of

    return space_of(schedule)
