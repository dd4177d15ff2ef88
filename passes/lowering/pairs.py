"""Products in tensor memory of a pair of blocks, which the even one of them starts.

The leader's barriers are those at which both blocks' copies into shared memory count, and at which
both give tensor memory back; what is done is told to both (PTX ISA 9.2, section 9.7.16.5). So the
role that multiplies is the leader's alone, and the roles at the other ends of its rings are in both
blocks.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Region, SSAValue
from xdsl.traits import is_side_effect_free

from fragir.dialects import frag
from fragir.dialects.frag.kernels import role_of
from fragir.errors import FragirError
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.multiply import slot_of
from fragir.passes.lowering.ring_use import use_of

BLOCKS = 2
LEADER = 0
"""The rank of the block that starts the products."""


def group_of(lanes: Lanes) -> int:
    """Blocks whose tensor memory a kernel's products go through together."""
    products = [op for op in lanes.state.operations if isinstance(op, frag.TensorMmaOp)]
    groups = [op.group for op in products]
    copies = any(isinstance(op, frag.TensorCopyOp) for op in lanes.state.operations)
    if BLOCKS in groups and (copies or min(groups) != BLOCKS):
        raise FragirError(
            "some products or copies in tensor memory are of a pair of blocks and some of one",
            hint="all tcgen05 of a kernel say the same cta_group: write `pair` at all or at none",
        )
    group = max(groups, default=1)
    if group == BLOCKS and lanes.state.cluster != (BLOCKS, 1, 1):
        raise FragirError(
            "a pair are the two blocks of a cluster",
            hint="write frag.cluster = array<i64: 2, 1, 1> at the function",
        )
    for product in products:
        if group == BLOCKS and role_of(product) is None:
            raise FragirError(
                "a pair's products are started by one of the two blocks",
                hint="give them a role of their own, frag.roles",
            )
    return group


_BESIDE = ("frag.acquire", "frag.await", "frag.part", "frag.publish", "frag.release")


def multiplies_for_pair(region: Region, of_slot: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether a role multiplies for a pair, so that the leader alone runs it; `of_slot` are the
    rings of slots. FragirError where it does something else, too."""
    ops = list(region.walk())
    products = [op for op in ops if isinstance(op, frag.TensorMmaOp) and op.pair is not None]
    for op in ops if products else ():
        if op in products or op.name in _BESIDE or op.name.startswith(("scf.", "arith.")):
            continue
        if not is_side_effect_free(op):
            raise FragirError(
                f"{op.name} stands in the role that multiplies for a pair of blocks, which only "
                "one of them runs",
                hint="let another role do it",
            )
    for product in products:
        for memory in (product.a, product.b, product.d):
            slot = slot_of(memory)
            if slot is None:
                raise FragirError("a pair multiplies what lies in slots of rings")
            _check_ring(of_slot[slot], region, filled_here=memory is product.d)
    return bool(products)


def _check_ring(ring: SSAValue, region: Region, *, filled_here: bool) -> None:
    """FragirError unless a role of both blocks is at the other end of a ring."""
    here, there = ("frag.acquire", "frag.await") if filled_here else ("frag.await", "frag.acquire")
    for use in ring.uses:
        name, role = use.operation.name, role_of(use.operation)
        if (name == here and role is not region) or (name == there and role in (region, None)):
            raise FragirError(
                f"one block of a pair runs the role that multiplies, which must do every {here} "
                f"of its ring, and another role every {there}",
            )
    use = use_of(ring)
    if not filled_here and (use.by_threads or use.by_cp_async or not use.by_tensor_products):
        raise FragirError(
            "a pair multiplies what frag.copy tma alone has brought, and nothing else reads that"
        )
