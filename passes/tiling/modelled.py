"""Products and their schedules as the cost model takes them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.passes.tiling.gemm_schedule import Schedule

if TYPE_CHECKING:
    from fragir.scheduling.candidates import Configuration, GemmProblem


class ScheduleChoice(NamedTuple):
    """A product's schedule, and what it was chosen from."""

    schedule: Schedule
    usual: Schedule
    """That of products of these types on this target."""
    given: tuple[str, ...]
    """The attributes that say it."""


def configuration_of(schedule: Schedule) -> Configuration:
    """A schedule as the cost model takes it."""
    from fragir.scheduling.candidates import Configuration

    parts, even = schedule.parts or (1, False)
    found = Configuration(
        schedule.tile,
        schedule.warps,
        schedule.stages,
        schedule.wgmma,
        persistent=even,
        parts=parts,
        even=even,
    )
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
