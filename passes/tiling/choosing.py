"""Which schedule a product gets: what its attributes say, else what costs least for its sizes."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.matmul_sums import adds_to_old, most_parts
from fragir.dialects.frag.tensor_copies import UNIT
from fragir.dialects.limits import MOST_PARTS
from fragir.dialects.shorthands import memref_type
from fragir.passes.tile_passes import kernels_of
from fragir.passes.tiling.gemm_schedule import (
    Schedule,
    ScheduleChoice,
    configuration_of,
    problem_of,
)
from fragir.passes.tiling.open_sizes import ROWS, SAMPLE, cheapest, known_rows, sample_problems
from fragir.passes.tiling.parts import cheapest_in_parts
from fragir.passes.tiling.schedule import is_suitable, schedule_for
from fragir.scheduling.candidates import FRAG_TILE, SPECIALISED, GemmProblem, SearchSpace, in_parts
from fragir.scheduling.choice import BETTER, ScheduleExplanation, described, explain_choice
from fragir.scheduling.cost import deep, estimate


def choice_for(product: frag.MatmulOp, target: str, *, allocates: bool = False) -> ScheduleChoice:
    """The schedule of a product. Where no attribute says it, a cost model may find a better one
    than the usual, also one with roles: of sizes that are known, or of a sample of those that a
    launch may bring. `allocates`: whether a launch gives memory for parts of sums by itself.
    FragirError where there is none."""
    usual = schedule_for(product, target)
    choice = _in_one_go(product, usual, target)
    if product.through() and product.parts() is None:
        from fragir.passes.tiling.parts import with_parts  # few products have parts

        choice = choice._replace(schedule=with_parts(product, choice, target))
    elif allocates and not product.in_parts:
        from fragir.passes.tiling.parts_memory import with_own_parts

        choice = choice._replace(schedule=with_own_parts(product, choice, target))
    return choice._replace(schedule=_in_order(product, choice.schedule, target))


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

    between = _may_lie_between(product, usual)
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


def _may_lie_between(product: frag.MatmulOp, usual: Schedule) -> bool:
    """Whether tiles may have columns between powers of two: what is scaled or transposed wants
    tiles that its parts divide, old C registers for whole pieces of a tile."""
    epilogue = product.epilogue
    reads_old = epilogue is not None and any(True for _ in epilogue.block.args[1].uses)
    return not (product.is_scaled or usual.transposes or reads_old)


# -- explained -------------------------------------------------------------------------------------
# Why the products of a module have the schedules that `frag-tile` gives them.


def explain_schedules(module: ModuleOp, target: str) -> Iterator[ScheduleExplanation]:
    """One explanation a `frag.matmul`. FragirError where a product has no schedule."""
    for function in kernels_of(module):
        for product in function.walk():
            if not isinstance(product, frag.MatmulOp):
                continue
            choice = choice_for(product, target)
            *_, problem = sample_problems(product, target)
            unknown = _assumed_sizes(product, problem)
            remarks = _of_parts(product, choice, problem)
            if unknown:
                remarks = _of_rows(product, choice)
            yield explain_choice(
                f"{product.name} in {function.sym_name.data}",
                problem,
                configuration_of(choice.schedule),
                configuration_of(choice.usual),
                given=choice.given,
                assumed=unknown,
                spaces=[deep(space, problem) for space in _spaces(product, choice)],
                remarks=remarks,
                sampled=_sample_text(product) if unknown else None,
            )


def _assumed_sizes(product: frag.MatmulOp, problem: GemmProblem) -> list[str]:
    """The sizes that only a launch knows, with what they are taken for."""
    m, n, k = product.sizes()
    found = [("m", m, problem.m), ("n", n, problem.n), ("k", k, problem.k)]
    if product.ends is not None:
        groups = memref_type(product.ends.type).get_shape()[0]
        known = None if groups == DYNAMIC_INDEX else groups
        found[:1] = [("rows of a group", None, problem.m), ("groups", known, problem.batch)]
    else:
        names = zip(product.batch_names(), product.batch(), strict=True)
        found += [(name, size, 1) for name, size in names]
    return [f"{name} = {taken}" for name, size, taken in found if size is None]


def _spaces(product: frag.MatmulOp, choice: ScheduleChoice) -> list[SearchSpace]:
    """What the schedule of a choice is ranked among."""
    between = _may_lie_between(product, choice.usual)
    spaces = [FRAG_TILE, SPECIALISED] if choice.schedule.roles else [FRAG_TILE]
    spaces = [space._replace(between=between) for space in spaces]
    if product.parts() is not None:
        return [space._replace(parts=(product.parts() or (1, False),)) for space in spaces]
    if product.through():
        spaces += [space._replace(parts=in_parts(most_parts(product))) for space in spaces]
    return spaces


def _of_rows(product: frag.MatmulOp, choice: ScheduleChoice) -> list[str]:
    """What roles would gain a product if it promised where rows begin."""
    if choice.given:
        return []
    rows = known_rows(product, choice.usual)
    if rows is None or not rows.unaligned:
        return []
    found = configuration_of(cheapest(product, choice.usual, rows.staged))
    if found.roles == "together":
        return []
    bits = max(8, element_bits(product.memories()[0].element_type))
    words = ", ".join(f"{name} = {8 * UNIT // bits}" for name in rows.unaligned)
    return [
        f"{described(found)} would be a tenth faster or more: promise that rows are multiples of "
        f"{UNIT} bytes, frag.divisible = {{{words}}}"
    ]


def _sample_text(product: frag.MatmulOp) -> str:
    """The sizes for which a schedule was taken that a launch brings others for."""
    sizes = sorted(ROWS if product.ends is not None else SAMPLE)
    names = [name for name, size in zip("mnk", product.sizes(), strict=True) if size is None]
    if product.ends is not None:
        names = ["rows of a group", *(name for name in names if name != "m")]
    return f"{', '.join(names)} = {', '.join(map(str, sizes))}"


def _of_parts(product: frag.MatmulOp, choice: ScheduleChoice, problem: GemmProblem) -> list[str]:
    """What sums in parts would gain a product that does not have them, and what to write."""
    if product.in_parts or product.is_scaled or product.ends is not None:
        return []
    # roles that were found for whole sums are not looked at for parts
    without = choice._replace(schedule=choice.usual)
    found = cheapest_in_parts(problem, without, MOST_PARTS)
    if found is None or found.parts == 1:
        return []
    own = configuration_of(choice.schedule)
    gain = estimate(problem, own).cycles / estimate(problem, found).cycles
    if gain < BETTER:
        return []
    c, total = product.memories()[2], product.accumulator()
    batch_and_sides = "x".join("?" if n == DYNAMIC_INDEX else str(n) for n in c.get_shape())
    counts = "x".join("?" * len(c.get_shape()))
    words = [
        f"{described(found)} would be {gain:.2f} times as fast: write "
        f"`through %partial, %counts`, of memref<?x{batch_and_sides}x{total}> and "
        f"memref<{counts}xi32>; Kernel.least_shapes tells how large"
    ]
    if c.element_type == total and (product.epilogue is None or adds_to_old(product)):
        way = f"{{{'stream_k' if found.even else 'split_k'} = {found.parts} : i64}}"
        old = "" if adds_to_old(product) else ", the epilogue `sum + old` and a C of zeros"
        words.append(
            f"or without that memory, by {way}{old}: parts are then added to C in any order, and "
            "its last bits differ from launch to launch"
        )
    return words
