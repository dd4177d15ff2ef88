"""Layer norm of rows of any length, forward and backward: f16 in memory, f32 in registers.

y = (x - mean) rstd gamma + beta, where rstd = 1 / sqrt(variance + eps). The forward kernel keeps
mean and rstd of every row. The gradients of gamma and beta are summed in two steps without atomics,
so that they are the same in every run: each block sums part of the rows, a second kernel
(column_sums.py) adds the parts.

    python examples/rows/layer_norm.py
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

import fragir
from fragir import Scalar, Tile, f16, f32

ROWS, PART = 1, 1024

with fragir.kernel("layer_norm", warps=(4, 1)) as k:
    x = k.memory("x", f16, ("m", "n"))
    gamma = k.memory("gamma", f32, ("n",))
    beta = k.memory("beta", f32, ("n",))
    y = k.memory("y", f16, ("m", "n"))
    means = k.memory("means", f32, ("m",))
    rstds = k.memory("rstds", f32, ("m",))
    eps = k.scalar("eps", f32)
    k.grid(f"m / {ROWS}")
    row = k.block_id("x") * ROWS
    n = k.size("n")
    count = k.max(n.cast(f32), 1)
    zero = k.fill(0, (ROWS, PART), f32)
    with k.loop(0, n, PART, sums=zero) as loop:
        loop.sums += k.load(x, (row, loop.index), shape=(ROWS, PART), masked=True).cast(f32)
    mean = loop.sums.sum(1) / count
    k.store(mean, means, (row,), masked=True)
    place = k.iota(1, (ROWS, PART))
    with k.loop(0, n, PART, squares=zero) as spread:
        v = k.load(x, (row, spread.index), shape=(ROWS, PART), masked=True).cast(f32)
        d = v - mean[:, None]
        left = (n - spread.index).cast(fragir.s32)
        spread.squares = k.select(place < left, k.fma(d, d, spread.squares), spread.squares)
    rstd = k.rsqrt(spread.squares.sum(1) / count + eps)
    k.store(rstd, rstds, (row,), masked=True)
    with k.loop(0, n, PART) as last:
        v = k.load(x, (row, last.index), shape=(ROWS, PART), masked=True).cast(f32)
        g = k.load(gamma, (last.index,), shape=(PART,), masked=True)
        bias = k.load(beta, (last.index,), shape=(PART,), masked=True)
        r = k.fma((v - mean[:, None]) * rstd[:, None], g, bias)
        k.store(r.cast(f16), y, (row, last.index), masked=True)

# dx = rstd (g - mean of g - xhat mean of g xhat) with g = dy gamma, xhat = (x - mean) rstd
with fragir.kernel("layer_norm_backward", warps=(4, 1)) as backward:
    b = backward
    x = b.memory("x", f16, ("m", "n"))
    gamma = b.memory("gamma", f32, ("n",))
    means = b.memory("means", f32, ("m",))
    rstds = b.memory("rstds", f32, ("m",))
    dy = b.memory("dy", f16, ("m", "n"))
    dx = b.memory("dx", f16, ("m", "n"))
    b.grid(f"m / {ROWS}")
    row = b.block_id("x") * ROWS
    n = b.size("n")
    count = b.max(n.cast(f32), 1)
    mean = b.load(means, (row,), shape=(ROWS,), masked=True)[:, None]
    rstd = b.load(rstds, (row,), shape=(ROWS,), masked=True)[:, None]

    def part(j: Scalar) -> tuple[Tile, Tile]:
        """xhat and g of the columns from j on."""
        v = b.load(x, (row, j), shape=(ROWS, PART), masked=True).cast(f32)
        u = b.load(dy, (row, j), shape=(ROWS, PART), masked=True).cast(f32)
        return (v - mean) * rstd, u * b.load(gamma, (j,), shape=(PART,), masked=True)

    zero = b.fill(0, (ROWS, PART), f32)
    with b.loop(0, n, PART, sums=zero, products=zero) as loop:
        xhat, g = part(loop.index)  # g is 0 outside
        loop.sums += g
        loop.products = b.fma(g, xhat, loop.products)
    shift = (loop.sums.sum(1) / count)[:, None]
    slope = (loop.products.sum(1) / count)[:, None]
    with b.loop(0, n, PART) as last:
        xhat, g = part(last.index)
        r = rstd * (g - shift - xhat * slope)
        b.store(r.cast(f16), dx, (row, last.index), masked=True)

# Block (i, p) sums columns i COLUMNS ... of the rows p HEIGHT ..., (p + parts) HEIGHT ..., ...
HEIGHT, COLUMNS = 16, 128

with fragir.kernel("layer_norm_weights", warps=(4, 1)) as weights:
    w = weights
    x = w.memory("x", f16, ("m", "n"))
    means = w.memory("means", f32, ("m",))
    rstds = w.memory("rstds", f32, ("m",))
    dy = w.memory("dy", f16, ("m", "n"))
    dgammas = w.memory("dgammas", f32, ("parts", "n"))
    dbetas = w.memory("dbetas", f32, ("parts", "n"))
    w.grid(f"n / {COLUMNS}", "parts / 1")
    column = w.block_id("x") * COLUMNS
    first = w.block_id("y")
    zero = w.fill(0, (HEIGHT, COLUMNS), f32)
    step = w.size("parts") * HEIGHT
    with w.loop(first * HEIGHT, w.size("m"), step, dgamma=zero, dbeta=zero) as loop:
        v = w.load(x, (loop.index, column), shape=(HEIGHT, COLUMNS), masked=True).cast(f32)
        g = w.load(dy, (loop.index, column), shape=(HEIGHT, COLUMNS), masked=True).cast(f32)
        mean = w.load(means, (loop.index,), shape=(HEIGHT,), masked=True)[:, None]
        rstd = w.load(rstds, (loop.index,), shape=(HEIGHT,), masked=True)[:, None]
        loop.dgamma = w.fma(g, (v - mean) * rstd, loop.dgamma)
        loop.dbeta += g
    w.store(loop.dgamma.sum(0)[None, :], dgammas, (first, column), masked=True)
    w.store(loop.dbeta.sum(0)[None, :], dbetas, (first, column), masked=True)


def main() -> None:
    rng = np.random.default_rng(0)
    eps, parts = 1e-5, 2
    sums = runpy.run_path(str(Path(__file__).with_name("column_sums.py")))["k"].compile()
    forward, gradient, partial = k.compile(), backward.compile(), weights.compile()
    for m, n in ((37, 300), (1, 1)):
        a, u = (rng.standard_normal((m, n)).astype(np.float16) for _ in range(2))
        scale, shift = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
        out, da = np.empty_like(a), np.empty_like(a)
        mean, inverse = (np.empty(m, np.float32) for _ in range(2))
        dscales, dshifts = (np.empty((parts, n), np.float32) for _ in range(2))
        dscale, dshift = (np.empty(n, np.float32) for _ in range(2))
        forward(a, scale, shift, out, mean, inverse, eps)
        gradient(a, scale, mean, inverse, u, da)
        partial(a, mean, inverse, u, dscales, dshifts)
        sums(dscales, dscale)
        sums(dshifts, dshift)
        v, g = a.astype(np.float64), u.astype(np.float64)
        d = v - v.mean(1, keepdims=True)
        factor = 1 / np.sqrt((d * d).mean(1, keepdims=True) + eps)
        hat, scaled = d * factor, g * scale
        slope = (scaled * hat).mean(1, keepdims=True)
        wanted = factor * (scaled - scaled.mean(1, keepdims=True) - hat * slope)
        judged = (out, hat * scale + shift), (da, wanted)
        errors = [np.abs(x.astype(np.float64) - y).max() for x, y in judged]
        columns = np.abs(dscale - (g * hat).sum(0)).max(), np.abs(dshift - g.sum(0)).max()
        shown = ", ".join(f"{error:.1e}" for error in (*errors, max(columns)))
        print(f"{m} x {n}: errors of y, dx, columns: {shown}")
        allowed = [2**-11 * np.abs(y).max() + 1e-5 for _, y in judged]  # half an ulp of f16
        if not (errors[0] <= allowed[0] and errors[1] <= allowed[1] and max(columns) < 1e-4):
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
