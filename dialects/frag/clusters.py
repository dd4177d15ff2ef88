"""Clusters of blocks: `frag.cluster` of a function, and a block's place in its cluster.

    func.func @f(...) attributes {frag.cluster = array<i64: 2, 1, 1>}

Blocks along x, y and z of the grid that run side by side and see each other's shared memory (PTX
ISA 9.2, sections 2.2.2 and 11.3). A grid is rounded up to whole clusters where all accesses to
global memory are masked; else a launch with another grid is refused.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, result_def, traits_def
from xdsl.traits import NoMemoryEffect, Pure

from fragir.dialects.definition import op_definition
from fragir.dialects.narrow import integers, is_array
from fragir.errors import FragirError

CLUSTER = "frag.cluster"
MOST_BLOCKS = 8
"""What every machine with clusters runs (CUDA programming guide, thread block clusters)."""


@op_definition
class ClusterRankOp(IRDLOperation):
    """The block's number in its cluster, from 0 on, x fastest; 0 where there is no cluster."""

    name = "frag.cluster_rank"
    result = result_def(IndexType)
    traits = traits_def(NoMemoryEffect(), Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[IndexType()])


def cluster_of(function: FuncOp) -> tuple[int, int, int]:
    """The blocks of a function's clusters; (1, 1, 1) without `frag.cluster`.

    FragirError for what is no cluster.
    """
    attribute: Attribute | None = function.attributes.get(CLUSTER)
    if attribute is None:
        return 1, 1, 1
    sizes = integers(attribute) if is_array(attribute) else []
    if len(sizes) == 3 and min(sizes) > 0 and prod(sizes) <= MOST_BLOCKS:
        return sizes[0], sizes[1], sizes[2]
    raise FragirError(
        f"{CLUSTER} = {attribute} is no cluster of at most {MOST_BLOCKS} blocks",
        hint=f"write {CLUSTER} = array<i64: 2, 1, 1>",
    )
