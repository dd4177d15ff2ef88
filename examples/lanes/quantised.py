"""C = A B in bytes: each group of 8 columns of a row is scaled by its largest magnitude.

A group lies in the four lanes of a quad, as mma leaves it, so two shuffles find that, and nothing
else moves. `quantised.mlir` is the same kernel.

    python examples/lanes/quantised.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import Scalar, f16, f32, s8
from fragir.builder.lane import Lane, LaneRegisters
from fragir.layout import Layout

M, N, K, GROUP = 64, 16, 16, 8  # what a block does at a time; columns of a group
SUMS = fragir.fragment("m16n8k16.f16", "c", warps=(4, 1))
# a row's scales, the same in the four lanes of its quad
SCALES = Layout.parse("warp [4:(16,0)] lane [4:(0,0) 8:(1,0)] element [2:(8,0) 2:(0,1)]")

with fragir.kernel("quantised", warps=(4, 1)) as k:
    a = k.memory("a", f16, ("m", "k"))
    b = k.memory("b", f16, ("k", "n"))
    c = k.memory("c", s8, ("m", "n"))
    scales = k.memory("scales", f32, ("m", "groups"))
    k.grid(f"n / {N}", f"m / {M}")
    row, col = k.block_id("y") * M, k.block_id("x") * N

    zero = k.fill(0, (M, N), f32)
    with k.loop(0, k.size("k"), K, sums=zero) as loop:
        x = k.load(a, (row, loop.index), shape=(M, K), masked=True)
        y = k.load(b, (loop.index, col), shape=(K, N), masked=True)
        loop.sums = k.mma(x, y, loop.sums)

    def scaled(lane: Lane, sums: LaneRegisters) -> tuple[list[Scalar], list[Scalar]]:
        """Pairs of neighbours share a row and a group: two rows, and the next group."""
        numbers: list[Scalar] = []
        steps: list[Scalar] = []
        for x, y in zip(sums[::2], sums[1::2], strict=True):
            largest = k.max(abs(x), abs(y))
            for mask in (1, 2):  # the lanes of the quad
                largest = k.max(largest, lane.shuffle_xor(largest, mask))
            factor = k.select(largest > 0.0, 127.0 / largest, 0.0)
            numbers += [k.round(x * factor), k.round(y * factor)]
            steps.append(largest / 127.0)
        return numbers, steps

    whole, steps = k.lanes(
        scaled,
        loop.sums,
        layouts=SUMS,
        results=[((M, N), SUMS), ((M, N // GROUP), SCALES)],
    )
    k.store(whole.cast(s8), c, (row, col), masked=True)
    k.store(steps, scales, (row, k.block_id("x") * (N // GROUP)), masked=True)


def main(m: int = 70, n: int = 40, depth: int = 33) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, depth)).astype(np.float16)
    b = rng.standard_normal((depth, n)).astype(np.float16)
    groups = -(-n // GROUP)
    c, scales = np.zeros((m, n), np.int8), np.zeros((m, groups), np.float32)
    k.compile()(a, b, c, scales)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    steps = np.repeat(scales, GROUP, axis=1)[:, :n]
    error = np.abs(c * steps - exact)
    print(
        f"{m} x {n} x {depth}: largest error {(error / np.maximum(steps, 1e-30)).max():.3f} steps"
    )
    # half a step, and what the product has lost
    if not (error <= 0.5 * steps + 1e-4).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
