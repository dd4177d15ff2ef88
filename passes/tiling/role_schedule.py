"""Schedules with roles: which products can have them, and how the cost model knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.dialects import frag
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.versions import has

if TYPE_CHECKING:
    from fragir.passes.tiling.gemm_schedule import Schedule
    from fragir.scheduling.candidates import Configuration, GemmProblem, SearchSpace


# -- mapped ----------------------------------------------------------------------------------------
# Which products the tensor memory accelerator can fetch the operands of.


def unmapped_reason(product: frag.MatmulOp, target: str) -> str | None:
    """Why A or B is not copied by TMA, as far as sizes are known; None where it may be."""
    from fragir.passes.lowering.tensor_copies import LOAD

    if not has(LOAD.format(2), target):
        return f"{target} has no tensor memory accelerator, so the product has no roles"
    return unmapped_rows(product)


def unmapped_rows(product: frag.MatmulOp) -> str | None:
    """Why no tensor map says A or B.

    Rows of a group begin anywhere. Where they are A's contiguous dimension, boxes would begin at
    elements that are no multiples of 16 bytes, at which the copy engine stops.
    """
    from fragir.dialects.frag.tensor_copies import check_strides, contiguous

    for name, memory in (("A", product.a), ("B", product.b)):
        try:
            along = contiguous(memory)
            check_strides(memref_type(memory.type), along)
        except FragirError as error:
            return _reason_text(name, error.message)
        m = memref_type(memory.type).get_num_dims() - (2 if product.a_transposed is None else 1)
        if product.ends is not None and memory is product.a and along == m:
            return _reason_text(
                name,
                "a group begins at any of its rows, which lie side by side, and a box of a tensor "
                "map begins at multiples of 16 bytes; A with K contiguous has boxes",
            )
    return None


def _reason_text(name: str, why: str) -> str:
    return (
        f"{name} is not copied by TMA, so that all threads copy and multiply, without roles: {why}"
    )


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
