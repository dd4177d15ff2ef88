"""W4A16 of few rows, as a model answers token by token: K is divided among blocks.

The weights are what takes time: each is read once, and as many bytes must be on their way as memory
wants. 64 blocks of 128 columns would not have them. So each of `PARTS` blocks adds up a part of K
for 16 x 128 of C, of more than 16 rows 32 x 128; it writes its sums to `parts`, and the last one
of a tile to come adds them up in their order. `counts` has a number for each tile, which is zero
before and after a launch. `a`, `w`,
`scale` and `c` are as of `w4a16.py`, whose `packed_order` puts the weights so.

The file's `w4a16_few` in IR is this kernel; its `decode` allocates `parts` and `counts` at each
call, and sets the counts to zero.

    python examples/quantised/w4a16_few.py [M N K]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import fragir
from fragir import Scalar, f16, f32, s4, s32
from fragir.builder import KernelBuilder

N, K = 128, 64  # of which a block has so many at a time; K weights share a scale
STAGES, PARTS = 4, 8


def few(rows: int) -> KernelBuilder:
    """The kernel of which a block has so many rows."""
    with fragir.kernel("w4a16_few", warps=(1, 4)) as k:
        a = k.memory("a", f16, ("m", "k"))
        w = k.memory("w", s4, ("n", "packed"))
        scale = k.memory("scale", f16, ("groups", "n"))
        c = k.memory("c", f16, ("m", "n"))
        parts = k.memory("parts", f32, (PARTS, "m", "n"))
        counts = k.memory("counts", s32, ("rows", "columns"))
        k.divisible(packed=32)
        a_stages = k.shared((STAGES, rows, K), f16, swizzle=128)
        w_stages = k.shared((STAGES, N, K), s4, swizzle=32)
        sizes, depth = (k.size("m"), k.size("n")), k.size("k")
        with k.for_tiles(sizes, (rows, N), along=(depth, K), split=PARTS) as share:
            row, col, start, end, part, count = share

            def copy(slot: Scalar | int, at: Scalar) -> None:
                """Starts to fill a stage with the group that begins at `at`."""
                k.copy(a, (row, at), a_stages, (slot,), masked=True, asynchronous=True)
                k.copy(w, (col, at), w_stages, (slot,), masked=True, asynchronous=True)

            for i in range(STAGES - 1):
                with k.if_(start + i * K < end):
                    copy(i, start + i * K)
                k.commit()
            zero = k.fill(0, (rows, N), f32)
            with k.loop(start, end, K, acc=zero, stage=0) as loop:
                stage: Scalar = loop.stage
                k.wait(STAGES - 2)
                k.barrier()  # this stage has arrived, and all have read the one that is filled next
                ahead = loop.index + (STAGES - 1) * K
                with k.if_(ahead < end):
                    copy(k.select(stage == 0, STAGES - 1, stage - 1), ahead)
                k.commit()
                x = k.load(a_stages, (stage, 0, 0), shape=(rows, K))
                held = k.load(w_stages, (stage, 0, 0), shape=(N, K))
                y = held.reshape(-1, 4, 2, 4).transpose(0, 3, 1, 2).reshape(N, K).T
                sums = k.mma(x, y.cast(f16), zero)
                group = k.load(scale, (loop.index // K, col), shape=(N,), masked=True)
                loop.acc = k.fma(sums, group.cast(f32).broadcast(0, rows), loop.acc)
                loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)
            k.wait(0)
            k.store(loop.acc, parts, (part, row, col), masked=True)
            last = k.arrive(counts, (row // rows, col // N), count)
            with k.if_(last):
                first = k.load(parts, (0, row, col), shape=(rows, N), masked=True)
                with k.loop(1, count, acc=first) as total:
                    total.acc += k.load(
                        parts, (total.index, row, col), shape=(rows, N), masked=True
                    )
                k.store(total.acc.cast(f16), c, (row, col), masked=True)
    return k


k = few(16)


def main(m: int = 5, n: int = 136, depth: int = 1100) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    from w4a16 import packed_order

    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, depth)).astype(np.float16)
    w = np.zeros((n, -(-depth // 32) * 32), np.int8)
    w[:, :depth] = rng.integers(-8, 8, (n, depth))
    scale = rng.uniform(0.01, 0.1, (-(-depth // K), n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    parts = np.empty((PARTS, m, n), np.float32)
    rows = 16 if m <= 16 else 32
    counts = np.zeros((-(-m // rows), -(-n // N)), np.int32)
    gemm = few(rows).compile()
    gemm(a, packed_order(w), scale, c, parts, counts)
    real = w[:, :depth].T * np.repeat(scale.astype(np.float64), K, axis=0)[:depth]
    exact = a.astype(np.float64) @ real
    error = np.abs(c - exact)
    bound = 2.0**-10 * np.abs(exact) + (depth + 8) * 2.0**-23 * np.abs(a) @ np.abs(real)
    info = gemm.assembled.entries[gemm.name]
    print(f"{m} x {n} x {depth}, {gemm.target}: {info.registers} registers")
    print(f"largest error {error.max(initial=0):.1e}")
    if not (error <= bound).all() or counts.any():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
