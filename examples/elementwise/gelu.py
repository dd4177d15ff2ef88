"""GELU of vectors of any length, f16 computed in f32: by erf, and by the tanh that stands for it.

python examples/elementwise/gelu.py
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import fragir
from fragir import Tile, f16, f32
from fragir.builder import KernelBuilder

TILE = 1024


def elementwise(name: str, function: Callable[[KernelBuilder, Tile], Tile]) -> KernelBuilder:
    """A kernel that applies a function to every element of a vector."""
    with fragir.kernel(name, warps=(4, 1)) as k:
        x = k.memory("x", f16, ("n",))
        y = k.memory("y", f16, ("n",))
        k.grid(f"n / {TILE}")
        at = (k.block_id() * TILE,)
        values = k.load(x, at, shape=(TILE,), masked=True).cast(f32)
        k.store(function(k, values).cast(f16), y, at, masked=True)
    return k


def exact(k: KernelBuilder, x: Tile) -> Tile:
    return 0.5 * x * (1 + k.erf(x * math.sqrt(0.5)))


def by_tanh(k: KernelBuilder, x: Tile) -> Tile:
    return 0.5 * x * (1 + k.tanh(math.sqrt(2 / math.pi) * (x * k.fma(x * x, 0.044715, 1))))


k = elementwise("gelu", exact)
with_tanh = elementwise("gelu_tanh", by_tanh)


def main() -> None:
    x = np.linspace(-6, 6, 3001).astype(np.float16)
    v = x.astype(np.float64)
    cubic = math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)
    answers = {
        k: v / 2 * (1 + np.array([math.erf(e * math.sqrt(0.5)) for e in v])),
        with_tanh: v / 2 * (1 + np.tanh(cubic)),
    }
    for kernel, wanted in answers.items():
        y = np.empty_like(x)
        kernel.compile()(x, y)
        error = np.abs(y - wanted).max()
        print(f"{kernel.name}: largest error {error:.1e}")
        if not np.allclose(y, wanted, rtol=1e-3, atol=2e-3):
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
