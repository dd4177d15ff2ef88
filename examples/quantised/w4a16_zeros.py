"""C = A W, unsigned weights of four bits packed along N, with zero points: W4A16 as AWQ has it.

`w` is K x N, two weights of a row to a byte, `zeros` the same for each group of 128 of K, `scale` a
bf16 for each group and column: a weight stands for (w - zero) scale. A block of 4 warps computes
64 x 64 of C. Columns of W are counted so that those in a lane's byte are its own (`COLUMNS`);
subtracting zero points is exact in bf16, and sums are scaled in f32.

M, N and K are any; rows of `w` and `zeros` are padded to whole 16 bytes (`packed`).

    python examples/quantised/w4a16_zeros.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

import fragir
from fragir import Scalar, bf16, f32, u4
from fragir.reference.formats import decode, encode

M, N, K = 64, 64, 128  # what a block does at a time; K weights of a column share scale and zero
STAGES = 2
WARPS = (2, 2)
# the 32 columns of a warp: lanes are 4 apart, the 4 products of 8 columns beside each other
COLUMNS = "8:4 4:1"

with fragir.kernel("w4a16_zeros", warps=WARPS) as k:
    a = k.memory("a", bf16, ("m", "k"))
    w = k.memory("w", u4, ("k", "packed"))
    zeros = k.memory("zeros", u4, ("groups", "packed"))
    scale = k.memory("scale", bf16, ("groups", "n"))
    c = k.memory("c", bf16, ("m", "n"))
    k.grid(f"n / {N}", f"m / {M}")
    k.divisible(packed=32)
    depth = k.size("k")
    row = k.block_id("y") * M
    col = k.block_id("x") * N
    a_stages = k.shared((STAGES, M, K), bf16, swizzle=128)
    w_stages = k.shared((STAGES, K, N), u4, swizzle=32)

    def copy(slot: Scalar | int, at: Scalar | int) -> None:
        """Starts to fill a stage with the group that begins at `at`."""
        k.copy(a, (row, at), a_stages, (slot,), masked=True, asynchronous=True)
        k.copy(w, (at, col), w_stages, (slot,), masked=True, asynchronous=True)

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
        order = fragir.fragment("m16n8k16.bf16", "b", WARPS, n=COLUMNS)
        held = k.load(w_stages, (stage, 0, 0), shape=(K, N), layout=order)
        group = (loop.index // K, col)
        middle = k.load(zeros, group, shape=(N,), masked=True).cast(bf16)
        y = held.cast(bf16) - middle.broadcast(0, K)
        sums = k.mma(x, y, zero)
        scales = k.load(scale, group, shape=(N,), masked=True).cast(f32)
        loop.acc = k.fma(sums, scales.broadcast(0, M), loop.acc)
        loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)
    k.wait(0)  # where K ends before what is under way
    k.store(loop.acc.cast(bf16), c, (row, col), masked=True)


def packed(x: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Rows padded to a multiple of 32, two numbers to a byte."""
    wide = np.pad(x, ((0, 0), (0, -x.shape[1] % 32)))
    return (wide[:, ::2] | wide[:, 1::2] << 4).astype(np.uint8)


def main(m: int = 45, n: int = 71, depth: int = 150) -> None:
    rng = np.random.default_rng(0)
    groups = -(-depth // K)
    a = encode(rng.standard_normal((m, depth)), "bf16")
    w = rng.integers(0, 16, (depth, n)).astype(np.uint8)
    zeros = rng.integers(0, 16, (groups, n)).astype(np.uint8)
    scale = encode(rng.uniform(0.01, 0.1, (groups, n)), "bf16")
    c = np.zeros((m, n), np.uint16)
    gemm = k.compile()
    gemm(a, packed(w), packed(zeros), scale, c)
    numbers = zeros.astype(np.float64), decode(scale, "bf16")
    below, by = (np.repeat(x, K, axis=0)[:depth] for x in numbers)
    x, y = decode(a, "bf16"), (w - below) * by
    exact = x @ y
    error = np.abs(decode(c, "bf16") - exact)
    bound = 2.0**-8 * np.abs(exact) + (depth + 8) * 2.0**-23 * (np.abs(x) @ np.abs(y))
    registers = gemm.assembled.entries[gemm.name].registers
    print(f"{m} x {n} x {depth}, {gemm.target}: {registers} registers")
    print(f"largest error {error.max(initial=0):.1e}")
    if not (error <= bound).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
