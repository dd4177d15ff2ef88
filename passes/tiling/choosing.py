"""Which schedule a product gets: what its attributes say, else what costs least for its sizes."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.tiling.gemm_schedule import Schedule
from fragir.passes.tiling.modelled import ScheduleChoice, configuration_of, problem_of
from fragir.passes.tiling.schedule import schedule_for, suits


def choice_for(product: frag.MatmulOp, target: str) -> ScheduleChoice:
    """The schedule of a product. Where no attribute says it, a cost model may find a better one
    than the usual, also one with roles: of sizes that are known, or of a sample of those that a
    launch may bring. FragirError where there is none."""
    usual = schedule_for(product, target)
    choice = _in_one_go(product, usual, target)
    if product.through() and product.parts() is None:
        from fragir.passes.tiling.part_count import with_parts  # few products have parts

        return choice._replace(schedule=with_parts(product, choice, target))
    return choice


def _in_one_go(product: frag.MatmulOp, usual: Schedule, target: str) -> ScheduleChoice:
    """The schedule of a product whose sums have as many parts as it says."""
    attributes = {"tile": product.tile, "warps": product.warps, "stages": product.stages}
    given = tuple(name for name, value in attributes.items() if value is not None)
    m, n, k = product.sizes()
    unknown = product.ends is not None or not all(product.batch())
    if given:
        return ScheduleChoice(usual, usual, given)
    if unknown or not (m and n and k):
        if not usual.wgmma or 0 in (m, n, k):
            return ScheduleChoice(usual, usual, given)
        from fragir.passes.tiling.open_sizes import with_open_sizes

        return ScheduleChoice(with_open_sizes(product, usual), usual, given)
    from fragir.scheduling.candidates import FRAG_TILE
    from fragir.scheduling.choice import choose

    space = FRAG_TILE._replace(parts=(usual.parts or (1, False),))
    if usual.roles:
        from fragir.passes.tiling.role_schedule import space_of

        known = space_of(usual)
        if known is None:
            return ScheduleChoice(usual, usual, given)
        space = known._replace(parts=space.parts)
    problem = problem_of(product, (m, n, k), target)
    found = choose(problem, configuration_of(usual), space=space)
    best = usual
    if usual.wgmma and not usual.roles:
        from fragir.passes.tiling.role_schedule import may_have_roles, with_roles
        from fragir.scheduling.candidates import SPECIALISED

        if may_have_roles(product, problem, found):
            found = choose(problem, found, space=SPECIALISED._replace(parts=space.parts))
            best = with_roles(found, usual)
    best = best._replace(tile=found.tile, warps=found.warps, stages=found.stages)
    if not suits(product, best):
        best = usual  # rather than one of which the model knows too little
    return ScheduleChoice(best, usual, given)
