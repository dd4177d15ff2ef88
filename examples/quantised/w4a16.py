"""C = A W with weights of four bits and f16 activations: W4A16, f32 sums, scales of groups.

`w` has a row for each column of W, two weights to a byte along K, and `scale` an f16 for each 64
of K and each column. A block of 4 warps computes 32 x 64 of C; A and the weights come through
shared memory in three stages. Weights are cast to f16 in registers, where they are operand B of
mma; sums are scaled, so products are exact.

M, N and K are any; rows of `w` are padded to whole 16 bytes (`packed` is a multiple of 32). Of
every 32 weights of a row those that one lane multiplies lie together, in the order in which a
register is unpacked with the fewest instructions: `packed_order` puts them so.

    python examples/quantised/w4a16.py [M N K]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

import fragir
from fragir import Scalar, f16, f32, s4

M, N, K = 32, 64, 64  # what a block does at a time; K weights share a scale
STAGES = 3

with fragir.kernel("w4a16", warps=(1, 4)) as k:
    a = k.memory("a", f16, ("m", "k"))
    w = k.memory("w", s4, ("n", "packed"))
    scale = k.memory("scale", f16, ("groups", "n"))
    c = k.memory("c", f16, ("m", "n"))
    k.grid(f"n / {N}", f"m / {M}")
    k.divisible(packed=32)
    depth = k.size("k")
    row = k.block_id("y") * M
    col = k.block_id("x") * N
    a_stages = k.shared((STAGES, M, K), f16, swizzle=128)
    w_stages = k.shared((STAGES, N, K), s4, swizzle=32)

    def copy(slot: Scalar | int, at: Scalar | int) -> None:
        """Starts to fill a stage with the group that begins at `at`."""
        k.copy(a, (row, at), a_stages, (slot,), masked=True, asynchronous=True)
        k.copy(w, (col, at), w_stages, (slot,), masked=True, asynchronous=True)

    for i in range(STAGES - 1):
        copy(i, i * K)
        k.commit()
    zero = k.fill(0, (M, N), f32)
    with k.loop(0, depth, K, acc=zero, stage=0) as loop:
        stage: Scalar = loop.stage
        k.wait(STAGES - 2)
        k.barrier()  # this stage has arrived, and all have read the one that is filled next
        ahead = loop.index + (STAGES - 1) * K
        with k.if_(ahead < depth):
            copy(k.select(stage == 0, STAGES - 1, stage - 1), ahead)
        k.commit()
        x = k.load(a_stages, (stage, 0, 0), shape=(M, K))
        held = k.load(w_stages, (stage, 0, 0), shape=(N, K))
        # memory has of each 32 weights lane, pair's half, number; K counts number, lane, half
        y = held.reshape(-1, 4, 2, 4).transpose(0, 3, 1, 2).reshape(N, K).T
        sums = k.mma(x, y.cast(f16), zero)
        group = k.load(scale, (loop.index // K, col), shape=(N,), masked=True)
        loop.acc = k.fma(sums, group.cast(f32).broadcast(0, M), loop.acc)
        loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)
    k.wait(0)  # where K ends before what is under way
    k.store(loop.acc.cast(f16), c, (row, col), masked=True)


def packed_order(w: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Weights (N x K, K a multiple of 32) as the kernel takes them, two to a byte."""
    n, depth = w.shape
    ordered = w.reshape(n, depth // 32, 4, 4, 2).transpose(0, 1, 3, 4, 2).reshape(n, depth)
    nibbles = ordered.astype(np.uint8) & 15
    return (nibbles[:, ::2] | nibbles[:, 1::2] << 4).astype(np.uint8)


def main(m: int = 45, n: int = 71, depth: int = 150) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, depth)).astype(np.float16)
    w = np.zeros((n, -(-depth // 32) * 32), np.int8)
    w[:, :depth] = rng.integers(-8, 8, (n, depth))
    scale = rng.uniform(0.01, 0.1, (-(-depth // K), n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    gemm = k.compile()
    gemm(a, packed_order(w), scale, c)
    real = w[:, :depth].T * np.repeat(scale.astype(np.float64), K, axis=0)[:depth]
    exact = a.astype(np.float64) @ real
    error = np.abs(c - exact)
    bound = 2.0**-10 * np.abs(exact) + (depth + 8) * 2.0**-23 * np.abs(a) @ np.abs(real)
    info = gemm.assembled.entries[gemm.name]
    print(f"{m} x {n} x {depth}, {gemm.target}: {info.registers} registers")
    print(f"largest error {error.max(initial=0):.1e}")
    if not (error <= bound).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
