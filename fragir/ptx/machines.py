"""What a machine takes of a launch, by target: the one table for compiler, emulator and launchers.

Numbers without another source are those of the CUDA programming guide, "Compute capabilities",
table "Technical specifications". Sizes are in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fragir.ptx.targets import MACHINES

#: Blocks of a grid and threads of a block in x, y and z, and threads of a block in all.
GRID = (2**31 - 1, 65535, 65535)
BLOCK = (1024, 1024, 64)
THREADS = 1024
#: Blocks of a cluster: where nothing is asked for, and at most. Machines before 9.0 have none.
PORTABLE_CLUSTER, LARGEST_CLUSTER, FIRST_WITH_CLUSTERS = 8, 16, 90
#: Static shared memory of a block on most targets; more must be dynamic.
STATIC_SHARED = 48 << 10
#: All `.const` variables together, and the local memory of a thread.
CONSTANT, LOCAL = 64 << 10, 512 << 10

# Compute capability -> bytes of shared memory; those that are missing are like the one before them.
_SHARED = {0: 48 << 10, **{machine.number: machine.shared for machine in MACHINES}}

_TARGET = re.compile(r"(?:sm|compute)_([0-9]+)([af]?)")

Problem = tuple[str, str | None]
"""What is wrong, and how to go on."""


class BlockLimits(NamedTuple):
    """What a target takes of a block.

    `shared`: bytes of shared memory, static and dynamic together; `static_shared`: those that its
    code may declare; `cluster`: blocks of a cluster at most, 1 where it has none. A target of a
    user's own is `like` one of NVIDIA's, whose instructions and arithmetic it has; `assembled_as`
    is the one to name to a ptxas that does not know it, if any.
    """

    shared: int
    static_shared: int
    cluster: int
    like: str = ""
    assembled_as: str = ""


_declared: Mapping[str, BlockLimits] = {}


def declare(targets: Mapping[str, BlockLimits]) -> None:
    """Targets besides NVIDIA's, until the next call: what a table of instructions has of them."""
    global _declared
    _declared = targets


def declared_limits(target: str) -> BlockLimits | None:
    """A target besides NVIDIA's; None for any other."""
    return _declared.get(target)


def nvidia(target: str) -> str:
    """NVIDIA's target that a declared one is like; any other is itself."""
    found = _declared.get(target)
    return target if found is None else found.like


def machine(target: str) -> BlockLimits:
    """The limits of a target such as sm_90a. ValueError where it is no target's name."""
    if target in _declared:
        return _declared[target]
    found = _TARGET.fullmatch(target)
    if found is None:
        raise ValueError(f"{target!r} is no target")
    number, suffix = int(found[1]), found[2]
    shared = _SHARED[max(n for n in _SHARED if n <= number)]
    clusters = number >= FIRST_WITH_CLUSTERS
    # asked of ptxas 13.5: code for exactly one machine may declare all that this machine has
    static = shared if clusters and suffix == "a" else STATIC_SHARED
    return BlockLimits(shared, static, LARGEST_CLUSTER if clusters else 1)


def parameter_bytes(target: str, version: tuple[int, int]) -> int:
    """Bytes that the parameters of a kernel may have (PTX ISA 9.2, section 5.1.6.1)."""
    found = _TARGET.fullmatch(target)
    return 32764 if version >= (8, 1) and found and int(found[1]) >= 70 else 4352


#: The version that allows more than 4352 bytes of parameters.
LARGE_PARAMETERS = "8.1"


def launch_problem(
    target: str,
    *,
    grid: Sequence[int],
    block: Sequence[int],
    cluster: Sequence[int] = (1, 1, 1),
    shared: int = 0,
    static: int = 0,
) -> Problem | None:
    """What a machine refuses of a launch; None where it takes it.

    `shared` are the bytes of dynamic shared memory, `static` those that the kernel declares.
    """
    limits = machine(target)
    return (
        grid_problem(grid)
        or _extent_problem("a block", "threads", block, BLOCK)
        or _threads_problem(block)
        or _cluster_problem(target, limits, grid, cluster)
        or shared_problem(target, shared, static)
    )


def grid_problem(grid: Sequence[int]) -> Problem | None:
    """What no machine takes of a grid's size, in blocks."""
    return _extent_problem("a grid", "blocks", grid, GRID)


def shared_problem(target: str, shared: int, static: int = 0) -> Problem | None:
    """What a machine refuses of a block's dynamic and static shared memory."""
    most = machine(target).shared
    if shared < 0:
        return f"there is no shared memory of {shared} bytes", None
    if shared + static <= most:
        return None
    parts = f", {static} of them static" if shared and static else ""
    larger = sorted({name for name in _LARGE if machine(name).shared >= shared + static})
    hint = f"{larger[0]} has {machine(larger[0]).shared}" if larger else None
    return f"{shared + static} bytes of shared memory{parts}; {target} has at most {most}", hint


#: Targets that are named as a way out where shared memory is short.
_LARGE = ("sm_80", "sm_90")


def _extent_problem(
    what: str, of: str, extent: Sequence[int], limits: Sequence[int]
) -> Problem | None:
    for size, limit, axis in zip(extent, limits, "xyz", strict=False):
        if size < 1:
            return f"{what} has {size} {of} in {axis}; it must be 1 or more", None
        if size > limit:
            return f"{what} has at most {limit} {of} in {axis}, not {size}", None
    return None


def _threads_problem(block: Sequence[int]) -> Problem | None:
    threads = product(block)
    if threads <= THREADS:
        return None
    return f"a block has at most {THREADS} threads, not {threads}", None


def _cluster_problem(
    target: str, limits: BlockLimits, grid: Sequence[int], cluster: Sequence[int]
) -> Problem | None:
    if min(cluster) < 1:
        return f"a cluster has 1 block or more in x, y and z, not {tuple(cluster)}", None
    blocks = product(cluster)
    if blocks > 1 and limits.cluster == 1:
        return f"{target} has no clusters", f"they came with sm_{FIRST_WITH_CLUSTERS}"
    if blocks > limits.cluster:
        return (
            f"a cluster has at most {limits.cluster} blocks, not {blocks}",
            f"{PORTABLE_CLUSTER} on every machine",
        )
    if any(g % c for g, c in zip(grid, cluster, strict=False)):
        return f"the grid {tuple(grid)} is no multiple of the cluster {tuple(cluster)}", None
    return None


def product(sizes: Iterable[int]) -> int:
    """Exact, however large."""
    total = 1
    for size in sizes:
        total *= size
    return total
