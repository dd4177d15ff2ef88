"""Products of narrow numbers with scales, from IR and from Python: `examples/quantised`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.examples.judged import EXAMPLES, Array, judged, script

FOLDER = EXAMPLES / "quantised"


def sources(name: str, kernel: str = "k") -> list[Any]:
    """The kernel from IR and from Python."""
    return [FOLDER / f"{name}.mlir", script(f"quantised/{name}.py")[kernel].mlir]


def w4a16(a: Array, w: Array, scale: Array) -> Array:
    """From the values in memory, in memory's order: number 8 t + 4 h + p of 32 is 8 p + 2 t + h."""
    depth = a.shape[1]
    place = np.arange(w.shape[1])
    within = place % 32
    number = place - within + within % 4 * 8 + within // 8 * 2 + within // 4 % 2
    real = np.zeros(w.shape)
    real[:, number] = w
    scales = np.repeat(scale, 64, axis=0)[:depth]
    return a @ (real.T[:depth] * scales)


@pytest.mark.parametrize("source", sources("w4a16"), ids=["ir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(45, 71, 150), (1, 1, 1), (0, 3, 7), (5, 3, 0)])
def test_w4a16(m: int, n: int, k: int, source: Any) -> None:
    sizes = {"m": m, "n": n, "k": k, "packed": -(-k // 32) * 32, "groups": -(-k // 64)}
    judged(source, sizes, {"c": w4a16})
