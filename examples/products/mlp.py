"""Y = gelu(X W1 + bias) W2, two products: f16 in memory, f32 sums, gelu exact (erf).

Two kernels. In one, a block would need all hidden values of its rows, and compute them again for
every part of the columns of Y, or keep sums for all of these columns in registers: hidden sizes
of thousands fit neither. So the hidden values go through memory once, rounded to f16, as gelu's
argument was never stored.

    python examples/products/mlp.py
"""

from __future__ import annotations

from math import erf, sqrt

import numpy as np

import fragir
from fragir import Scalar, f16, f32

with fragir.kernel("mlp_hidden") as k:
    x = k.memory("x", f16, ("m", "k"))
    w = k.memory("w", f16, ("k", "h"))
    bias = k.memory("bias", f32, ("h",))
    hidden = k.memory("hidden", f16, ("m", "h"))

    def gelu(total: Scalar, old: Scalar, shift: Scalar) -> Scalar:
        v = total + shift
        return (v * 0.5 * (1 + k.erf(v * sqrt(0.5)))).cast(f16)

    k.matmul(x, w, into=hidden, extra=[bias], epilogue=gelu, tile=(64, 64, 32))

with fragir.kernel("mlp_out") as out:
    hidden = out.memory("hidden", f16, ("m", "h"))
    w = out.memory("w", f16, ("h", "n"))
    y = out.memory("y", f32, ("m", "n"))
    out.matmul(hidden, w, into=y, tile=(64, 64, 32))


def main() -> None:
    rng = np.random.default_rng(0)
    first, second = k.compile(), out.compile()
    for m, depth, h, n in ((70, 45, 130, 33), (1, 1, 1, 1), (2, 0, 3, 4), (2, 3, 0, 4)):
        x = rng.standard_normal((m, depth)).astype(np.float16)
        w1 = (rng.standard_normal((depth, h)) / max(depth, 1) ** 0.5).astype(np.float16)
        w2 = (rng.standard_normal((h, n)) / max(h, 1) ** 0.5).astype(np.float16)
        bias = rng.standard_normal(h).astype(np.float32)
        hidden, y = np.empty((m, h), np.float16), np.full((m, n), np.nan, np.float32)
        first(x, w1, bias, hidden)
        second(hidden, w2, y)
        v = x.astype(np.float64) @ w1.astype(np.float64) + bias
        wanted = (v * 0.5 * (1 + np.vectorize(erf, otypes=[float])(v / sqrt(2)))) @ w2.astype(float)
        error = np.abs(y - wanted).max()
        print(f"{m} x {depth} x {h} x {n}: error {error:.1e}")
        if not error < 4e-3:  # hidden values up to 5 round to 11 bits
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
