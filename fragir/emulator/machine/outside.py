"""What is said of accesses to shared memory that is not there."""

from __future__ import annotations

CLUSTER_SHIFT = 24
"""Above it stand the bits of an address of shared memory that name the block of the cluster."""

MOST_BLOCKS = 16
"""Of a cluster (CUDA C++ Programming Guide, non-portable cluster sizes)."""


def outside_shared(at: int, size: int, room: int, cluster: int) -> str:
    """Why `size` bytes at an address are in no block's `room` of a cluster of so many."""
    block, offset = at >> CLUSTER_SHIFT, at & (1 << CLUSTER_SHIFT) - 1
    if at < 0 or (cluster == 1 and block >= MOST_BLOCKS):  # no block is meant
        return f"{size} bytes at shared offset {at}; the block has {room}"
    if block >= cluster:
        return f"the address is of {no_block(block, cluster)}"
    return f"{size} bytes at shared offset {offset}; the block has {room}"


def no_block(block: int, cluster: int) -> str:
    """A block that a cluster does not have."""
    if cluster == 1:
        return f"block {block} of a cluster, and this launch has clusters of one block (--cluster)"
    return f"block {block}, and the cluster has {cluster} blocks"
