"""The meaning of `affine.apply` and `affine.min`."""

from __future__ import annotations

from functools import reduce

import numpy as np
from xdsl.dialects import affine
from xdsl.ir.affine import AffineExpr

from fragir.reference.bounded import exactly
from fragir.reference.loops import place_at
from fragir.reference.run import Run


def apply(run: Run, op: affine.ApplyOp | affine.MinOp) -> None:
    """The least of the map's results: of one, that."""
    map_ = op.map.data
    values = [run[value].value for value in op.operands]
    dims = [AffineExpr.dimension(at) for at in range(map_.num_dims)]
    symbols = [AffineExpr.dimension(map_.num_dims + at) for at in range(map_.num_symbols)]
    found = [place_at(e.replace_dims_and_symbols(dims, symbols), values) for e in map_.results]
    run[op.results[0]] = exactly(reduce(np.minimum, found))
