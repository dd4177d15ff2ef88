"""What operations mean, where a row says so."""

from typing import Any

import numpy as np

from fragir.reference.bounded import bounded

from .row_max import RowMaxOp


def row_max(run: Any, op: RowMaxOp) -> None:
    x = run[op.source]
    low, high = x.value - x.bound, x.value + x.bound
    value = np.broadcast_to(x.value.max(1, keepdims=True), x.value.shape)
    above = high.max(1, keepdims=True) - value
    below = value - low.max(1, keepdims=True)
    run[op.result] = bounded(value, np.maximum(above, below))
