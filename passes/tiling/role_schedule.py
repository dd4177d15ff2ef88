"""Schedules with roles: which products can have them, and how the cost model knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.dialects import frag
from fragir.passes.tiling.mapped import unmapped_rows

if TYPE_CHECKING:
    from fragir.passes.tiling.gemm_schedule import Schedule
    from fragir.scheduling.candidates import Configuration, GemmProblem, SearchSpace

KINDS = {1: "cooperative", 2: "ping-pong"}
"""What the cost model calls so many roles that multiply."""


def may_have_roles(product: frag.MatmulOp, problem: GemmProblem, alone: Configuration) -> bool:
    """Whether roles are looked at for a product that asks for none, and has this schedule without.

    What they gain is that a block goes on from tile to tile, which takes a tile for each block
    that there is room for. Of fewer the cost model has not been held against kernels that were
    measured.
    """
    from fragir.scheduling.cost import at_least

    return (
        product.cluster is None
        and product.consumers is None
        and alone.problem(problem) is None
        and at_least(problem, alone).waves >= 1
        and unmapped_rows(product) is None
    )


def with_roles(found: Configuration, schedule: Schedule) -> Schedule:
    """A schedule with the roles, if any, of one that the cost model found."""
    consumers = next((count for count, kind in KINDS.items() if kind == found.roles), 0)
    return schedule._replace(
        roles=consumers > 0,
        consumers=max(1, consumers),
        cluster=found.cluster,
        order=found.order if found.persistent else None,
        staged=found.staged,
    )


def space_of(schedule: Schedule) -> SearchSpace | None:
    """What is left to choose of a schedule whose roles and cluster are said; None: nothing."""
    from fragir.scheduling.candidates import SPECIALISED

    kind = KINDS.get(schedule.consumers)
    if kind is None:
        return None
    return SPECIALISED._replace(roles=(kind,), clusters=(schedule.cluster,))


def configuration_with_roles(found: Configuration, schedule: Schedule) -> Configuration:
    """A schedule with roles as the cost model takes it."""
    from fragir.scheduling.devices import device_for
    from fragir.scheduling.l2 import best_group

    (m, n, _), cluster = schedule.tile, schedule.cluster
    running = device_for(schedule.target).sms // cluster
    return found._replace(
        roles=KINDS.get(schedule.consumers, "ping-pong"),
        cluster=cluster,
        persistent=True,
        order="grouped",
        group=best_group(m * cluster, n, running),
        staged=schedule.staged,
    )
