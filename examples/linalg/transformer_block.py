"""A transformer's block, compiled from linalg and run on the emulator.

python examples/linalg/transformer_block.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fragir

TEXT = Path(__file__).with_suffix(".mlir").read_text()
ROWS, WIDTH, HEADS, HIDDEN = 48, 64, 2, 128
Array = npt.NDArray[Any]


def half(x: Array) -> Array:
    """Rounded to f16, as operands of products are."""
    return x.astype(np.float16).astype(np.float32)


def norm(x: Array, gain: Array) -> Array:
    """RMS norm of rows."""
    return half(x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * gain)


def block(
    x: Array, g1: Array, g2: Array, wq: Array, wk: Array, wv: Array, wo: Array, w1: Array, w2: Array
) -> Array:
    """The same in numpy."""
    wq, wk, wv, wo, w1, w2 = (w.astype(np.float32) for w in (wq, wk, wv, wo, w1, w2))
    n = norm(x, g1)
    q, k, v = (half(n @ w).reshape(ROWS, HEADS, -1).transpose(1, 0, 2) for w in (wq, wk, wv))
    scores = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    scores = np.where(np.tril(np.ones((ROWS, ROWS), bool)), scores, -np.inf)
    powers = np.exp(scores - scores.max(2, keepdims=True))
    weights = half(powers / powers.sum(2, keepdims=True))
    mixed = half(weights @ v).transpose(1, 0, 2).reshape(ROWS, WIDTH)
    x = x + mixed @ wo
    up = norm(x, g2) @ w1
    return x + half(up / (1 + np.exp(-up))) @ w2


def arguments(seed: int = 0) -> list[Array]:
    """Normal inputs, weights that keep their size."""
    rng = np.random.default_rng(seed)

    def weight(k: int, n: int) -> Array:
        return (rng.standard_normal((k, n)) * k**-0.5).astype(np.float16)

    x = rng.standard_normal((ROWS, WIDTH)).astype(np.float32)
    gains = [rng.uniform(0.5, 1.5, WIDTH).astype(np.float32) for _ in range(2)]
    square = [weight(WIDTH, WIDTH) for _ in range(4)]
    return [x, *gains, *square, weight(WIDTH, HIDDEN), weight(HIDDEN, WIDTH)]


if __name__ == "__main__":
    program = fragir.compile(TEXT, target="sm_80")
    print(program)
    given = arguments()
    y = np.zeros((ROWS, WIDTH), np.float32)
    program(*given, y, on="emulator", check=True)
    print("largest difference from numpy:", np.abs(y - block(*given)).max())
