"""C = A W in the microscaling formats, whose scales the tensor cores apply themselves (sm_120a).

`k` is mxfp8: e4m3 with a power of two (ue8m0) for each 32 numbers of a row. `nvfp4` has e2m1, two
to a byte, with an e4m3 scale (without its sign) for each 16. `w` has a row for each column of W.
Rows of `nvfp4` are padded to whole 16 bytes, with zeros (`packed`, a multiple of 32).

    python examples/quantised/block_scaled.py [M N K]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute

import fragir
from fragir import Scalar, e2m1x2, e4m3, f32, ue8m0
from fragir.builder import KernelBuilder
from fragir.reference.formats import decode, encode

M, N, K = 64, 64, 128  # what a block does at a time
STAGES = 3


def gemm(name: str, element: Attribute, scale: Attribute, block: int) -> KernelBuilder:
    """The kernel of one format: its numbers, its scales, numbers to a scale."""
    with fragir.kernel(name, warps=(2, 2), target="sm_120a") as k:
        depth_name = "packed" if element == e2m1x2 else "k"
        a = k.memory("a", element, ("m", depth_name))
        w = k.memory("w", element, ("n", depth_name))
        a_scale = k.memory("a_scale", scale, ("m", "blocks"))
        w_scale = k.memory("w_scale", scale, ("n", "blocks"))
        c = k.memory("c", f32, ("m", "n"))
        k.grid(f"n / {N}", f"m / {M}")
        if element == e2m1x2:
            k.divisible(packed=32)
        depth = k.size(depth_name)
        row = k.block_id("y") * M
        col = k.block_id("x") * N
        swizzle = 64 if element == e2m1x2 else 128
        a_stages = k.shared((STAGES, M, K), element, swizzle=swizzle)
        w_stages = k.shared((STAGES, N, K), element, swizzle=swizzle)

        def copy(slot: Scalar | int, at: Scalar | int) -> None:
            """Starts to fill a stage with the part of A and W that begins at `at`."""
            k.copy(a, (row, at), a_stages, (slot,), masked=True, asynchronous=True)
            k.copy(w, (col, at), w_stages, (slot,), masked=True, asynchronous=True)

        for i in range(STAGES - 1):
            copy(i, i * K)
            k.commit()
        with k.loop(0, depth, K, acc=k.fill(0, (M, N), f32), stage=0) as loop:
            stage: Scalar = loop.stage
            k.wait(STAGES - 2)
            k.barrier()  # this stage has arrived, and all have read the one that is filled next
            ahead = loop.index + (STAGES - 1) * K
            with k.if_(ahead < depth):
                copy(k.select(stage == 0, STAGES - 1, stage - 1), ahead)
            k.commit()
            x = k.load(a_stages, (stage, 0, 0), shape=(M, K))
            y = k.load(w_stages, (stage, 0, 0), shape=(K, N), transposed=True)
            at = loop.index // block
            rows = k.load(a_scale, (row, at), shape=(M, K // block), masked=True)
            columns = k.load(
                w_scale, (col, at), shape=(K // block, N), transposed=True, masked=True
            )
            loop.acc = k.mma(x, y, loop.acc, scales=(rows, columns))
            loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)
        k.wait(0)  # where K ends before what is under way
        k.store(loop.acc, c, (row, col), masked=True)
    return k


k = gemm("mxfp8", e4m3, ue8m0, 32)
nvfp4 = gemm("nvfp4", e2m1x2, e4m3, 16)


def main(m: int = 45, n: int = 71, depth: int = 150) -> None:
    rng = np.random.default_rng(0)
    for kernel, element, scale, block, multiple in (
        (k, "e4m3", "ue8m0", 32, 1),
        (nvfp4, "e2m1x2", "e4m3", 16, 32),
    ):
        wide = -(-depth // multiple) * multiple
        blocks = -(-wide // block)
        sides: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = []
        for size in (m, n):
            numbers = np.zeros((size, wide))
            numbers[:, :depth] = rng.standard_normal((size, depth)) * 2
            scales = 2.0 ** rng.integers(-2, 3, (size, blocks))
            sides.append((encode(numbers, element), encode(scales, scale)))
        x, y = (
            decode(numbers, element) * np.repeat(decode(scales, scale), block, 1)[:, :wide]
            for numbers, scales in sides
        )
        (a, a_scale), (w, w_scale) = sides
        c = np.zeros((m, n), np.float32)
        built = kernel.compile()
        built(a, w, a_scale, w_scale, c, on="emulator")
        exact = x @ y.T
        error = np.abs(c - exact)
        bound = 2.0**-12 * (np.abs(x) @ np.abs(y).T)
        registers = built.assembled.entries[built.name].registers
        print(f"{built.name}, {m} x {n} x {depth}, {built.target}: {registers} registers")
        print(f"largest error {error.max(initial=0):.1e}")
        if not (error <= bound).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
