"""Clusters of blocks in Python: the methods `cluster` and `cluster_rank` of a kernel."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import DenseArrayBase, i64

from fragir.builder.checks import whole
from fragir.builder.places import fail
from fragir.builder.tiles import TileOperations
from fragir.builder.values import Scalar
from fragir.dialects import frag
from fragir.dialects.frag.kernels import CLUSTER, MOST_BLOCKS


class ClusterOperations(TileOperations):
    """Blocks that run side by side and see each other's shared memory."""

    def cluster(self, x: int, y: int = 1, z: int = 1) -> None:
        """So many blocks along each dimension of the grid are a cluster; at most 8."""
        sizes = [whole(size, "the size of a cluster") for size in (x, y, z)]
        if min(sizes) < 1 or prod(sizes) > MOST_BLOCKS:
            fail(f"a cluster has 1 to {MOST_BLOCKS} blocks, not {'x'.join(map(str, sizes))}")
        self.trace.attributes[CLUSTER] = DenseArrayBase.from_list(i64, sizes)

    def cluster_rank(self) -> Scalar:
        """The block's number in its cluster, from 0 on, x fastest."""
        return Scalar(self.trace, self.trace.insert(frag.ClusterRankOp(), "rank").result)
