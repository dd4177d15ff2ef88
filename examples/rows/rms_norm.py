"""RMS norm of rows of any length, forward and backward: bf16 in memory, f32 in registers.

y = x rstd gamma, where rstd = 1 / sqrt(mean of x^2 + eps), kept for the backward kernels. The
gradient of gamma is summed in parts, which column_sums.py adds.

    python examples/rows/rms_norm.py
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

import fragir
from fragir import bf16, f32
from fragir.reference.formats import decode, encode

ROWS, PART = 1, 1024

with fragir.kernel("rms_norm", warps=(4, 1)) as k:
    x = k.memory("x", bf16, ("m", "n"))
    gamma = k.memory("gamma", f32, ("n",))
    y = k.memory("y", bf16, ("m", "n"))
    rstds = k.memory("rstds", f32, ("m",))
    eps = k.scalar("eps", f32)
    k.grid(f"m / {ROWS}")
    row = k.block_id("x") * ROWS
    n = k.size("n")
    count = k.max(n.cast(f32), 1)
    with k.loop(0, n, PART, squares=k.fill(0, (ROWS, PART), f32)) as loop:
        v = k.load(x, (row, loop.index), shape=(ROWS, PART), masked=True).cast(f32)
        loop.squares = k.fma(v, v, loop.squares)
    rstd = k.rsqrt(loop.squares.sum(1) / count + eps)
    k.store(rstd, rstds, (row,), masked=True)
    with k.loop(0, n, PART) as last:
        v = k.load(x, (row, last.index), shape=(ROWS, PART), masked=True).cast(f32)
        r = v * rstd[:, None] * k.load(gamma, (last.index,), shape=(PART,), masked=True)
        k.store(r.cast(bf16), y, (row, last.index), masked=True)

# dx = rstd (g - xhat mean of g xhat) with g = dy gamma, xhat = x rstd
with fragir.kernel("rms_norm_backward", warps=(4, 1)) as backward:
    b = backward
    x = b.memory("x", bf16, ("m", "n"))
    gamma = b.memory("gamma", f32, ("n",))
    rstds = b.memory("rstds", f32, ("m",))
    dy = b.memory("dy", bf16, ("m", "n"))
    dx = b.memory("dx", bf16, ("m", "n"))
    b.grid(f"m / {ROWS}")
    row = b.block_id("x") * ROWS
    n = b.size("n")
    count = b.max(n.cast(f32), 1)
    rstd = b.load(rstds, (row,), shape=(ROWS,), masked=True)[:, None]
    with b.loop(0, n, PART, products=b.fill(0, (ROWS, PART), f32)) as loop:
        v = b.load(x, (row, loop.index), shape=(ROWS, PART), masked=True).cast(f32)
        u = b.load(dy, (row, loop.index), shape=(ROWS, PART), masked=True).cast(f32)
        g = u * b.load(gamma, (loop.index,), shape=(PART,), masked=True)
        loop.products = b.fma(g, v * rstd, loop.products)
    slope = (loop.products.sum(1) / count)[:, None]
    with b.loop(0, n, PART) as last:
        v = b.load(x, (row, last.index), shape=(ROWS, PART), masked=True).cast(f32)
        u = b.load(dy, (row, last.index), shape=(ROWS, PART), masked=True).cast(f32)
        g = u * b.load(gamma, (last.index,), shape=(PART,), masked=True)
        r = rstd * (g - v * rstd * slope)
        b.store(r.cast(bf16), dx, (row, last.index), masked=True)

# Block (i, p) sums columns i COLUMNS ... of the rows p HEIGHT ..., (p + parts) HEIGHT ..., ...
HEIGHT, COLUMNS = 16, 128

with fragir.kernel("rms_norm_weights", warps=(4, 1)) as weights:
    w = weights
    x = w.memory("x", bf16, ("m", "n"))
    rstds = w.memory("rstds", f32, ("m",))
    dy = w.memory("dy", bf16, ("m", "n"))
    dgammas = w.memory("dgammas", f32, ("parts", "n"))
    w.grid(f"n / {COLUMNS}", "parts / 1")
    column = w.block_id("x") * COLUMNS
    first = w.block_id("y")
    step = w.size("parts") * HEIGHT
    zero = w.fill(0, (HEIGHT, COLUMNS), f32)
    with w.loop(first * HEIGHT, w.size("m"), step, dgamma=zero) as loop:
        v = w.load(x, (loop.index, column), shape=(HEIGHT, COLUMNS), masked=True).cast(f32)
        g = w.load(dy, (loop.index, column), shape=(HEIGHT, COLUMNS), masked=True).cast(f32)
        rstd = w.load(rstds, (loop.index,), shape=(HEIGHT,), masked=True)[:, None]
        loop.dgamma = w.fma(g, v * rstd, loop.dgamma)
    w.store(loop.dgamma.sum(0)[None, :], dgammas, (first, column), masked=True)


def main() -> None:
    rng = np.random.default_rng(0)
    eps, parts = 1e-5, 2
    sums = runpy.run_path(str(Path(__file__).with_name("column_sums.py")))["k"].compile()
    forward, gradient, partial = k.compile(), backward.compile(), weights.compile()
    for m, n in ((37, 300), (1, 1)):
        a, u = (encode(rng.standard_normal((m, n)), "bf16") for _ in range(2))
        scale = rng.standard_normal(n).astype(np.float32)
        out, da = np.empty_like(a), np.empty_like(a)
        kept, dscales = np.empty(m, np.float32), np.empty((parts, n), np.float32)
        dscale = np.empty(n, np.float32)
        forward(a, scale, out, kept, eps)
        gradient(a, scale, kept, u, da)
        partial(a, kept, u, dscales)
        sums(dscales, dscale)
        v, g = decode(a, "bf16"), decode(u, "bf16")
        inverse = 1 / np.sqrt((v * v).mean(1, keepdims=True) + eps)
        hat, scaled = v * inverse, g * scale
        wanted = inverse * (scaled - hat * (scaled * hat).mean(1, keepdims=True))
        found = (
            (decode(out, "bf16"), hat * scale),
            (decode(da, "bf16"), wanted),
            (dscale, (g * hat).sum(0)),
        )
        errors = [np.abs(x - y).max() for x, y in found]
        print(f"{m} x {n}: errors of y {errors[0]:.1e}, dx {errors[1]:.1e}, dgamma {errors[2]:.1e}")
        largest = [2**-8 * np.abs(y).max() for _, y in found[:2]]  # half an ulp of bf16
        if not (errors[0] <= largest[0] and errors[1] <= largest[1] + 1e-6 and errors[2] < 1e-4):
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
