"""What a schedule of a matrix product says, with roles too, and how the cost model takes it."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.versions import has

if TYPE_CHECKING:
    from fragir.scheduling.candidates import Configuration, GemmProblem, SearchSpace


class Schedule(NamedTuple):
    """One block computes tile_m x tile_n of C, tile_k at a time."""

    tile: tuple[int, int, int]
    warps: tuple[int, int]  # warpgroups where wgmma is used
    stages: int
    wgmma: bool
    target: str
    turned: bool = False
    """Whether C^T = B^T A^T is formed: wgmma reads its first operand from registers."""
    transposes: bool = False
    """Whether wgmma's second operand is transposed in shared memory: it, too, lies across K."""
    roles: bool = False
    """Whether warps of their own fetch, by the tensor memory accelerator."""
    cluster: int = 1
    """Blocks that share what they fetch of B."""
    consumers: int = 1
    """Roles that multiply, each of `warps`, whole tiles by turns."""
    order: str | None = None
    """Of the tiles, as `frag.for_tiles` says it."""
    parts: tuple[int, bool] | None = None
    """Into how many parts sums are cut, and whether that is at most so many, in even shares."""
    remarks: tuple[str, ...] = ()
    """What the program's author is to know of it."""
    staged: bool = True
    """With roles: whether C leaves through shared memory, as far as the cost model knows."""
    tensor: bool = False
    """Whether sums are added up in tensor memory; `warps` are warpgroups that store them."""
    pair: bool = False
    """Whether the two blocks of a cluster multiply together (cta_group::2)."""

    @property
    def threads(self) -> int:
        return self.warps[0] * self.warps[1] * (128 if self.wgmma or self.tensor else 32)


# -- role schedule ---------------------------------------------------------------------------------
# Schedules with roles: which products can have them, and how the cost model knows them.

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
    that there is room for; or, where memory is what a product waits for, that a block has many
    copies under way. Of others the cost model has not been held against kernels that were measured.
    """
    from fragir.scheduling.cost import at_least, is_bound_by_memory

    said = product.tile is not None or product.stages is not None
    return (
        product.cluster is None
        and product.consumers is None
        and alone.problem(problem) is None
        and (
            at_least(problem, alone).waves >= 1
            or (is_bound_by_memory(problem) and not product.in_parts and not said)
        )
        and unmapped_rows(product) is None
    )


def search_limits(product: frag.MatmulOp, usual: Schedule) -> dict[str, Any]:
    """What a product's attributes say of a search for roles: a tile or stages, which leave roles
    open."""
    from fragir.scheduling.candidates import WarpTile

    found: dict[str, Any] = {}
    if product.tile is not None:
        found["tile"] = WarpTile(usual.tile, usual.warps)
    if product.stages is not None:
        found["stages"] = usual.stages
    return found


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
    return found._replace(
        roles=KINDS.get(schedule.consumers, "ping-pong"),
        cluster=schedule.cluster,
        persistent=True,
        order="grouped",
        group=group_of(schedule),
        staged=schedule.staged,
    )


# -- modelled --------------------------------------------------------------------------------------
# Products and their schedules as the cost model takes them.


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
    if schedule.tensor:
        from fragir.scheduling.candidates import IN_TENSOR_MEMORY

        found = configuration_with_roles(found, schedule)
        found = found._replace(roles=IN_TENSOR_MEMORY, pair=schedule.pair)
    elif schedule.roles:
        found = configuration_with_roles(found, schedule)
    elif schedule.order is not None:
        found = found._replace(order=schedule.order, group=group_of(schedule))
    return found


def group_of(schedule: Schedule) -> int:
    """Rows of tiles of a group, as `frag-raster` takes them."""
    from fragir.scheduling.devices import device_for
    from fragir.scheduling.l2 import best_group

    (m, n, _), cluster = schedule.tile, schedule.cluster
    return best_group(m * cluster, n, device_for(schedule.target).sms // cluster)


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
