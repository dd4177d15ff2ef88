"""x"""
from __future__ import annotations
import sys
import numpy as np
import fragir
from fragir import Scalar, Tile, f16, f32, s4

M, N, K = 32, 64, 64  # what a block does at a time; K: the weights that share a scale
STAGES = 3

with fragir.kernel("w4a16", warps=(1, 4)) as k:
    a = k.memory("a", f16, ("m", "k"))
    w = k.memory("w", s4, ("n", "packed"))
    scale = k.memory("scale", f16, ("groups", "n"))
    c = k.memory("c", f16, ("m", "n"))
    k.grid(f"n / {N}", f"m / {M}")
    k.divisible(packed=32)
    depth = k.size("packed")
    row = k.block_id("y") * M
    col = k.block_id("x") * N
    a_stages = k.shared((STAGES, M, K), f16, swizzle=128)
    w_stages = k.shared((STAGES, N, K), s4, swizzle=32)

    def copy(slot: Scalar | int, at: Scalar | int) -> None:
        k.copy(a, (row, at), a_stages, (slot,), masked=True, asynchronous=True)
        k.copy(w, (col, at), w_stages, (slot,), masked=True, asynchronous=True)

    for i in range(STAGES - 1):
        copy(i, i * K)
        k.commit()
    zero = k.fill(0, (M, N), f32)
    with k.loop(0, depth, K, acc=zero, stage=0) as loop:
        stage: Scalar = loop.stage
        k.wait(STAGES - 2)
        k.barrier()
        with k.if_(loop.index + (STAGES - 1) * K < depth):
            copy(k.select(stage == 0, STAGES - 1, stage - 1), loop.index + (STAGES - 1) * K)
        k.commit()
        x = k.load(a_stages, (stage, 0, 0), shape=(M, K))
        y = k.load(w_stages, (stage, 0, 0), shape=(K, N), transposed=True)
        part = k.mma(x, y.cast(f16), zero)
        s = k.load(scale, (loop.index // K, col), shape=(N,), masked=True).cast(f32)
        loop.acc = loop.acc + part * s.broadcast(0, M)
        loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)
    k.store(loop.acc.cast(f16), c, (row, col), masked=True)
