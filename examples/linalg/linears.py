"""Three layers of torch.nn.Linear with ReLU between, compiled from linalg, run on the emulator.

python examples/linalg/linears.py
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fragir

TEXT = Path(__file__).with_suffix(".mlir").read_text()
WIDTHS = (64, 96, 48, 10)
Array = npt.NDArray[Any]


def layers(x: Array, *weights: Array) -> Array:
    """The same in numpy, in f32 with hidden values rounded to f16: x (n, 64), weights and biases in
    turn."""
    count = len(weights) // 2
    for number, (w, b) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        x = x.astype(np.float32) @ w.astype(np.float32).T + b.astype(np.float32)
        if number < count - 1:
            x = np.maximum(x, 0).astype(np.float16)
    return x


def arguments(rows: int, seed: int = 0) -> list[Array]:
    """Normal inputs, and weights as torch initialises them."""
    rng = np.random.default_rng(seed)
    found: list[Array] = [rng.standard_normal((rows, WIDTHS[0])).astype(np.float16)]
    for k, n in pairwise(WIDTHS):
        bound = k**-0.5
        found.append(rng.uniform(-bound, bound, (n, k)).astype(np.float16))
        found.append(rng.uniform(-bound, bound, n).astype(np.float16))
    return found


if __name__ == "__main__":
    program = fragir.compile(TEXT, target="sm_80")
    print(program)
    given = arguments(50)
    y = np.zeros((50, WIDTHS[-1]), np.float32)
    program(*given, y, on="emulator", check=True)
    print("largest difference from numpy:", np.abs(y - layers(*given)).max())
