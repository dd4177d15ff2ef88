"""Which schedule a product gets: what its attributes say, else what costs least for its sizes."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.isa.versions import has
from fragir.passes.tiling.gemm_schedule import (
    Schedule,
    ScheduleChoice,
    configuration_of,
    problem_of,
)
from fragir.passes.tiling.schedule import is_suitable, schedule_for


def choice_for(product: frag.MatmulOp, target: str, *, allocates: bool = False) -> ScheduleChoice:
    """The schedule of a product. Where no attribute says it, a cost model may find a better one
    than the usual, also one with roles: of sizes that are known, or of a sample of those that a
    launch may bring. `allocates`: whether a launch gives memory for parts of sums by itself.
    FragirError where there is none."""
    found = None
    if has_tensor_memory(target):
        from fragir.passes.tiling.tensor_schedule import in_tensor_memory  # few targets have it

        found = in_tensor_memory(product, target)
        if not isinstance(found, str):
            return found
    if product.is_scaled:
        from fragir.passes.tiling.block_scales import check_block_scales  # few products have them

        check_block_scales(product, target, found)
    usual = schedule_for(product, target)
    why = None
    if found is not None:
        why = f"the product goes to mma.sync, not to tcgen05.mma: {found}"
    elif product.pair is not None:
        why = (
            f"{target} has no tensor memory, in which pairs of blocks multiply; so each block "
            "multiplies alone"
        )
    if why is not None:
        usual = usual._replace(remarks=(why, *usual.remarks))
    choice = _in_one_go(product, usual, target)
    if product.through() and product.parts() is None:
        from fragir.passes.tiling.parts import with_parts  # few products have parts

        choice = choice._replace(schedule=with_parts(product, choice, target))
    elif allocates and not product.in_parts:
        from fragir.passes.tiling.parts_memory import with_own_parts

        choice = choice._replace(schedule=with_own_parts(product, choice, target))
    return choice._replace(schedule=_in_order(product, choice.schedule, target))


def has_tensor_memory(target: str) -> bool:
    """Whether a target multiplies in tensor memory."""
    return has("tcgen05.mma.kind::f16", target)


_LESS = 1.2
"""How much less of A and B must come from memory for tiles to be computed in groups."""
_SHARE = 0.25
"""Of a product's cycles, which memory must take for that to matter."""


def _in_order(product: frag.MatmulOp, schedule: Schedule, target: str) -> Schedule:
    """The schedule with tiles in groups, where blocks that run at once then share more of A and B:
    of sizes that are known, and where a block has a tile. Roles have that order anyway."""
    m, n, k = product.sizes()
    tiles = product.ends is None and all(product.batch()) and m and n and k
    if schedule.order is not None or schedule.parts is not None or not tiles:
        return schedule
    from fragir.scheduling.cost import estimate

    assert m
    assert n
    assert k
    problem = problem_of(product, (m, n, k), target)
    rows = configuration_of(schedule)
    if rows.problem(problem) is not None:
        return schedule
    before = estimate(problem, rows)
    if before.waves <= 1 or before.dram < _SHARE * before.cycles:
        return schedule
    grouped = schedule._replace(order="grouped")
    after = estimate(problem, configuration_of(grouped))
    return grouped if after.dram * _LESS < before.dram else schedule


def _in_one_go(product: frag.MatmulOp, usual: Schedule, target: str) -> ScheduleChoice:
    """The schedule of a product whose sums have as many parts as it says."""
    attributes = {"tile": product.tile, "warps": product.warps, "stages": product.stages}
    given = tuple(name for name, value in attributes.items() if value is not None)
    m, n, k = product.sizes()
    unknown = product.ends is not None or not all(product.batch())
    if given and (usual.roles or given not in (("tile",), ("stages",))):
        return ScheduleChoice(usual, usual, given)
    if unknown or not (m and n and k):
        if not usual.wgmma or 0 in (m, n, k):
            return ScheduleChoice(usual, usual, given)
        from fragir.passes.tiling.open_sizes import with_open_sizes

        return ScheduleChoice(with_open_sizes(product, usual), usual, given)
    from fragir.scheduling.candidates import FRAG_TILE
    from fragir.scheduling.choice import choose
    from fragir.scheduling.cost import deep

    between = may_lie_between(product, usual)
    space = FRAG_TILE._replace(parts=(usual.parts or (1, False),), between=between)
    if usual.roles:
        from fragir.passes.tiling.gemm_schedule import space_of

        known = space_of(usual)
        if known is None:
            return ScheduleChoice(usual, usual, given)
        space = known._replace(parts=space.parts, between=between)
    problem = problem_of(product, (m, n, k), target)
    found = configuration_of(usual)
    if not given:
        found = choose(problem, found, space=deep(space, problem))
    best = usual
    if usual.wgmma and not usual.roles:
        from fragir.passes.tiling.gemm_schedule import may_have_roles, search_limits, with_roles
        from fragir.scheduling.candidates import SPECIALISED

        if may_have_roles(product, problem, found):
            roles = SPECIALISED._replace(parts=space.parts, between=between)
            roles = roles._replace(**search_limits(product, usual))
            found = choose(problem, found, space=deep(roles, problem))
            best = with_roles(found, usual)
    best = best._replace(tile=found.tile, warps=found.warps, stages=found.stages)
    if not is_suitable(product, best):
        best = usual  # rather than one of which the model knows too little
    return ScheduleChoice(best, usual, given)


def may_lie_between(product: frag.MatmulOp, usual: Schedule) -> bool:
    """Whether tiles may have columns between powers of two: what is scaled or transposed wants
    tiles that its parts divide, old C registers for whole pieces of a tile."""
    epilogue = product.epilogue
    reads_old = epilogue is not None and any(True for _ in epilogue.block.args[1].uses)
    return not (product.is_scaled or usual.transposes or reads_old)
