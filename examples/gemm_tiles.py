"""C = relu(A B + bias) written by hand at tile level: what frag.matmul compiles to, in Python.

A block of 4 warps computes 128 x 128 of C. The K loop keeps three stages of A and B under way
into swizzled shared memory (cp.async), loads fragments from there (ldmatrix) and multiplies
(mma.sync m16n8k16). Sizes are known at the launch only and need not be multiples of the tile.

    python examples/gemm_tiles.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import Scalar, f16, f32

M, N, K = 128, 128, 32  # what a block does at a time
STAGES = 3

with fragir.kernel("gemm_tiles", warps=(2, 2)) as k:
    a = k.memory("a", f16, ("m", "k"))
    b = k.memory("b", f16, ("k", "n"))
    bias = k.memory("bias", f32, ("n",))
    c = k.memory("c", f32, ("m", "n"))
    k.grid(f"n / {N}", f"m / {M}")
    depth = k.size("k")
    row = k.block_id("y") * M
    col = k.block_id("x") * N
    a_tile = k.shared((STAGES, M, K), f16, swizzle=64)
    b_tile = k.shared((STAGES, K, N), f16, swizzle=128)

    def copy(slot: Scalar | int, at: Scalar | int) -> None:
        """Starts to fill a stage with the part of A and B that begins at `at`."""
        k.copy(a, (row, at), a_tile, (slot,), masked=True, asynchronous=True)
        k.copy(b, (at, col), b_tile, (slot,), masked=True, asynchronous=True)

    for i in range(STAGES - 1):  # Python's loop: unrolled
        copy(i, i * K)
        k.commit()

    zero = k.fill(0, (M, N), f32)
    with k.loop(0, depth, K, acc=zero, stage=0) as loop:  # the kernel's loop
        k.wait(STAGES - 2)
        k.barrier()  # this stage has arrived, and all have read the one that is filled next
        ahead = loop.index + (STAGES - 1) * K
        stage: Scalar = loop.stage
        slot = k.select(stage == 0, STAGES - 1, stage - 1)
        with k.if_(ahead < depth):
            copy(slot, ahead)
        k.commit()
        x = k.load(a_tile, (stage, 0, 0), shape=(M, K))
        y = k.load(b_tile, (stage, 0, 0), shape=(K, N))
        loop.acc = k.mma(x, y, loop.acc)
        loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)

    shift = k.load(bias, (col,), shape=(M, N), masked=True, broadcast=True)
    k.store(k.max(loop.acc + shift, 0), c, (row, col), masked=True)


def main(m: int = 200, n: int = 136, depth: int = 96) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, depth)).astype(np.float16)
    b = rng.standard_normal((depth, n)).astype(np.float16)
    bias = rng.standard_normal(n).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    gemm = k.compile()
    gemm(a, b, bias, c)
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    error = np.abs(c - exact).max()
    # every product and sum rounds once, relative to the sum of the magnitudes
    bound = (depth + 2) * 2.0**-23 * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)))
    bound += 2.0**-23 * np.abs(bias)
    info = gemm.assembled.entries[gemm.name]
    print(f"{m} x {n} x {depth}, {gemm.target}: {info.registers} registers")
    print(f"largest error {error:.1e}, bound {bound.max():.1e}")
    if not (np.abs(c - exact) <= bound).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
