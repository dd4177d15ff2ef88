"""A basic block of a ResNet, compiled from linalg and run on the emulator.

python examples/linalg/residual_block.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fragir

TEXT = Path(__file__).with_suffix(".mlir").read_text()
IMAGES, CHANNELS, SIZE = 2, 16, 12
Array = npt.NDArray[Any]


def convolution(x: Array, w: Array) -> Array:
    """x (n, c, h, w) with zeros around it by w (f, c, 3, 3), summed in f32."""
    x = np.pad(x.astype(np.float32), ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    return np.einsum("ncijyx,fcyx->nfij", parts, w.astype(np.float32))


def block(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    """The same in numpy."""
    hidden = np.maximum(convolution(x, w1) + b1[:, None, None], 0).astype(np.float16)
    return np.maximum(convolution(hidden, w2) + b2[:, None, None] + x, 0).astype(np.float16)


def arguments(seed: int = 0) -> list[Array]:
    """Normal inputs, weights that keep their size."""
    rng = np.random.default_rng(seed)
    kernel = (CHANNELS, CHANNELS, 3, 3)
    scale = (2 / (9 * CHANNELS)) ** 0.5
    x = rng.standard_normal((IMAGES, CHANNELS, SIZE, SIZE)).astype(np.float16)
    w1, w2 = ((scale * rng.standard_normal(kernel)).astype(np.float16) for _ in range(2))
    b1, b2 = (rng.standard_normal(CHANNELS).astype(np.float32) for _ in range(2))
    return [x, w1, b1, w2, b2]


if __name__ == "__main__":
    program = fragir.compile(TEXT, target="sm_80")
    print(program)
    given = arguments()
    y = np.zeros_like(given[0])
    program(*given, y, on="emulator", check=True)
    print("largest difference from numpy:", np.abs(y.astype(np.float32) - block(*given)).max())
