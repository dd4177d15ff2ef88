"""A block's place in its cluster."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.func import FuncOp

from fragir.dialects import frag
from fragir.dialects.frag.kernels import cluster_of
from fragir.reference.bounded import exactly
from fragir.reference.run import Run


def rank(run: Run, op: frag.ClusterRankOp) -> None:
    function = op.parent_op()
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    sizes = (1, 1, 1) if function is None else cluster_of(function)
    x, y, z = (at % size for at, size in zip(run.block_id, sizes, strict=True))
    run[op.result] = exactly(np.int64(x + sizes[0] * (y + sizes[1] * z)))
