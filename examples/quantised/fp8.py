"""C = A W in e4m3 with scales of blocks: 1 x 128 of A, 128 x 128 of W; sums promoted to f32.

The scales are those of DeepSeek-V3: an f32 for 128 numbers of a row of A, one for 128 x 128 of W.
Each 128 of K is summed by the tensor cores, whose sums of fp8 have less than f32's precision, then
scaled and added in f32. `w` has a row for each column of W. `k` uses mma (sm_89; sm_90 makes of it
a routine of other instructions), `by_warpgroups` wgmma (sm_90a), which reads shared memory.

    python examples/quantised/fp8.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import Scalar, bf16, e4m3, f32
from fragir.builder import KernelBuilder
from fragir.reference.formats import decode, encode

M, N, K = 64, 64, 128  # what a block does at a time; K numbers of a row share a scale
STAGES = 3


def gemm(name: str, target: str, grouped: bool = False) -> KernelBuilder:
    """The kernel by mma of four warps, or by wgmma of one warpgroup."""
    warps = {"warpgroups": (1, 1)} if grouped else {"warps": (2, 2)}
    with fragir.kernel(name, target=target, **warps) as k:
        a = k.memory("a", e4m3, ("m", "k"))
        w = k.memory("w", e4m3, ("n", "k"))
        a_scale = k.memory("a_scale", f32, ("groups", "m"))
        w_scale = k.memory("w_scale", f32, ("groups", "blocks"))
        c = k.memory("c", bf16, ("m", "n"))
        k.grid(f"n / {N}", f"m / {M}")
        depth = k.size("k")
        row = k.block_id("y") * M
        col = k.block_id("x") * N
        a_stages = k.shared((STAGES, M, K), e4m3, swizzle=128)
        w_stages = k.shared((STAGES, N, K), e4m3, swizzle=128)

        def copy(slot: Scalar | int, at: Scalar | int) -> None:
            """Starts to fill a stage with the part of A and W that begins at `at`."""
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
            if grouped:
                x, y = k.view(a_stages, (stage,)), k.view(w_stages, (stage,))
                sums = k.wgmma(x, y, zero, transposed_b=True)
            else:
                x = k.load(a_stages, (stage, 0, 0), shape=(M, K))
                y = k.load(w_stages, (stage, 0, 0), shape=(K, N), transposed=True)
                sums = k.mma(x, y, zero)
            of_rows = k.load(a_scale, (loop.index // K, row), shape=(M,), masked=True)
            of_block = k.load_scalar(w_scale, (loop.index // K, col // 128))
            loop.acc = k.fma(sums, (of_rows * of_block).broadcast(1, N), loop.acc)
            loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)
        k.wait(0)  # where K ends before what is under way
        k.store(loop.acc.cast(bf16), c, (row, col), masked=True)
    return k


k = gemm("fp8", "sm_89")
by_warpgroups = gemm("fp8_warpgroups", "sm_90a", grouped=True)


def main(m: int = 45, n: int = 150, depth: int = 150) -> None:
    rng = np.random.default_rng(0)
    a = encode(rng.standard_normal((m, depth)), "e4m3")
    w = encode(rng.standard_normal((n, depth)), "e4m3")
    parts, blocks = -(-depth // K), -(-n // 128)
    a_scale = rng.uniform(0.5, 2, (parts, m)).astype(np.float32)
    w_scale = rng.uniform(0.5, 2, (parts, blocks)).astype(np.float32)
    x = decode(a, "e4m3") * np.repeat(a_scale, K, axis=0)[:depth].T
    wide = np.repeat(np.repeat(w_scale, K, axis=0)[:depth], 128, axis=1)[:, :n]
    y = decode(w, "e4m3") * wide.T
    exact = x @ y.T
    for kernel in (k, by_warpgroups):
        c = np.zeros((m, n), np.uint16)
        built = kernel.compile()
        built(a, w, a_scale, w_scale, c, on="emulator")
        error = np.abs(decode(c, "bf16") - exact)
        # fp8's sums keep 13 bits below the largest product
        bound = 2.0**-8 * np.abs(exact) + 2.0**-12 * (np.abs(x) @ np.abs(y).T)
        registers = built.assembled.entries[built.name].registers
        print(f"{built.name}, {m} x {n} x {depth}, {built.target}: {registers} registers")
        print(f"largest error {error.max(initial=0):.1e}")
        if not (error <= bound).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
