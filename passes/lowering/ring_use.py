"""How a program uses a ring: who fills its slots, who reads them, and by what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.frag.ring_types import PART, carried
from fragir.dialects.interfaces import WarpgroupCollective, accesses_of
from fragir.dialects.narrow import is_memref


class RingUse(NamedTuple):
    """How the slots of a ring are filled and read."""

    tma: bool
    by_threads: bool
    """Whether threads store into them, other than by cp.async."""
    by_cp_async: bool
    by_wgmma: bool
    """Whether wgmma reads them, and nothing else does."""
    proxy: bool
    """Whether wgmma or TMA reads them, among others."""
    multicast: bool


def use_of(ring: SSAValue) -> RingUse:
    """How a program uses a ring."""
    writers = list(_users(ring, "frag.acquire"))
    readers = list(_users(ring, "frag.await"))
    copies = [op for op in writers if isinstance(op, frag.CopyOp)]
    tma = [op for op in copies if op.tma is not None]
    cp_async = [op for op in copies if op.is_async is not None]
    collective = [op.has_trait(WarpgroupCollective) for op in readers]
    stores = [op for op in readers if isinstance(op, frag.CopyOp) and op.tma is not None]
    return RingUse(
        bool(tma),
        len(writers) > len(tma) + len(cp_async),
        bool(cp_async),
        bool(collective) and all(collective),
        any(collective) or bool(stores),
        any(op.multicast is not None for op in tma),
    )


def needs_barriers(ring: SSAValue) -> bool:
    """Whether a ring has mbarriers: copies by TMA count at them, and roles wait at them."""
    if any(role_of(use.operation) is not None for use in ring.uses):
        return True
    return use_of(ring).tma


def _users(ring: SSAValue, maker: str) -> Iterator[Operation]:
    """What uses the memory of slots that were acquired, or awaited."""
    for use in ring.uses:
        if use.operation.name == maker:
            for slot in carried(use.operation.results[0]):
                for part in slot.uses:
                    if part.operation.name == PART:
                        yield from users_of_memory(part.operation.results[0])


def users_of_memory(memory: SSAValue) -> Iterator[Operation]:
    for use in memory.uses:
        op = use.operation
        model = accesses_of(op)
        if model is not None and model.view_of() is memory:
            for result in op.results:
                if is_memref(result.type):
                    yield from users_of_memory(result)
        else:
            yield op
