"""Kernels whose rows are reduced, from IR and from Python: `examples/rows`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.judged import EXAMPLES, Array, judged


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize(("m", "n"), [(40, 300), (1, 1), (17, 129), (0, 5)])
def test_softmax(m: int, n: int) -> None:
    judged(EXAMPLES / "rows/softmax.mlir", {"m": m, "n": n}, {"y": softmax}, rtol=1e-5)
