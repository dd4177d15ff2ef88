"""Which schedule a product gets: what its attributes say, else what costs least for its sizes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.errors import FragirError
from fragir.passes.tiling.gemm_schedule import Schedule
from fragir.passes.tiling.schedule import check, schedule_for

if TYPE_CHECKING:
    from fragir.scheduling.candidates import Configuration, GemmProblem


class ScheduleChoice(NamedTuple):
    """A product's schedule, and what it was chosen from."""

    schedule: Schedule
    usual: Schedule
    """That of products of these types on this target."""
    given: tuple[str, ...]
    """The attributes that say it."""


def choice_for(product: frag.MatmulOp, target: str) -> ScheduleChoice:
    """The schedule of a product. Where no attribute says it and all sizes are known, a cost model
    may find a better one than the usual, also one with roles. FragirError where there is none."""
    usual = schedule_for(product, target)
    attributes = {"tile": product.tile, "warps": product.warps, "stages": product.stages}
    given = tuple(name for name, value in attributes.items() if value is not None)
    m, n, k = product.sizes()
    unknown = product.ends is not None or not all(product.batch())
    if given or unknown or not (m and n and k):
        return ScheduleChoice(usual, usual, given)
    from fragir.scheduling.candidates import FRAG_TILE
    from fragir.scheduling.choice import choose

    space = FRAG_TILE
    if usual.roles:
        from fragir.passes.tiling.role_schedule import space_of

        known = space_of(usual)
        if known is None:
            return ScheduleChoice(usual, usual, given)
        space = known
    problem = problem_of(product, (m, n, k), target)
    found = choose(problem, configuration_of(usual), space=space)
    best = usual
    if usual.wgmma and not usual.roles:
        from fragir.passes.tiling.role_schedule import may_have_roles, with_roles
        from fragir.scheduling.candidates import SPECIALISED

        if may_have_roles(product, problem, found):
            found = choose(problem, found, space=SPECIALISED)
            best = with_roles(found, usual)
    best = best._replace(tile=found.tile, warps=found.warps, stages=found.stages)
    if best.transposes or product.is_scaled:
        try:
            check(best, problem.element, product.memories()[0], target)
            if product.is_scaled:
                from fragir.passes.tiling.scaled_sum import check_tile  # few products have scales

                check_tile(product, best.tile)
        except FragirError:  # rather the usual one than one of which the model knows too little
            best = usual
    return ScheduleChoice(best, usual, given)


def configuration_of(schedule: Schedule) -> Configuration:
    """A schedule as the cost model takes it."""
    from fragir.scheduling.candidates import Configuration

    found = Configuration(schedule.tile, schedule.warps, schedule.stages, schedule.wgmma)
    if schedule.roles:
        from fragir.passes.tiling.role_schedule import configuration_with_roles

        found = configuration_with_roles(found, schedule)
    return found


def problem_of(product: frag.MatmulOp, sizes: tuple[int, int, int], target: str) -> GemmProblem:
    """A product of these sizes as the cost model takes it."""
    from fragir.scheduling.candidates import GemmProblem
    from fragir.scheduling.devices import device_for

    a, _, c = product.memories()
    return GemmProblem(
        *sizes,
        element_name(a.element_type),
        element_name(product.accumulator()),
        element_name(c.element_type),
        product.a_transposed is not None,
        product.b_transposed is not None,
        target,
        device_for(target),
        product.promotion() or 0,
        prod(size or 1 for size in product.batch()),
    )
