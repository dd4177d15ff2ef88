"""Why the products of a module have the schedules that `frag-tile` gives them."""

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
from fragir.passes.tiling.choosing import choice_for, may_lie_between
from fragir.passes.tiling.gemm_schedule import ScheduleChoice, configuration_of
from fragir.passes.tiling.open_sizes import ROWS, SAMPLE, cheapest, known_rows, sample_problems
from fragir.passes.tiling.parts import cheapest_in_parts
from fragir.scheduling.candidates import (
    FRAG_TILE,
    SPECIALISED,
    Configuration,
    GemmProblem,
    SearchSpace,
    in_parts,
)
from fragir.scheduling.choice import BETTER, ScheduleExplanation, described, explain_choice
from fragir.scheduling.cost import deep, estimate


def explain_schedules(module: ModuleOp, target: str) -> Iterator[ScheduleExplanation]:
    """One explanation a `frag.matmul`. FragirError where a product has no schedule."""
    for function in kernels_of(module):
        for product in function.walk():
            if not isinstance(product, frag.MatmulOp):
                continue
            choice = choice_for(product, target)
            *_, problem = sample_problems(product, target)
            unknown = _assumed_sizes(product, problem)
            what = f"{product.name} in {function.sym_name.data}"
            remarks: list[str] = []
            among: list[Configuration] = []
            if choice.schedule.tensor:
                from fragir.passes.tiling.tensor_schedule import schedules  # few targets have it

                every = [configuration_of(one) for one in schedules(product, target)]
                among = [one for one in every if one.problem(problem) is None]
            elif unknown:
                remarks = _of_rows(product, choice)
            else:
                remarks = _of_parts(product, choice, problem)
            yield explain_choice(
                what,
                problem,
                configuration_of(choice.schedule),
                configuration_of(choice.usual),
                given=choice.given,
                assumed=unknown,
                spaces=[deep(space, problem) for space in _spaces(product, choice)],
                among=among,
                remarks=remarks,
                sampled=_sample_text(product) if unknown and not among else None,
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
    if choice.schedule.tensor:
        return []
    between = may_lie_between(product, choice.usual)
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
