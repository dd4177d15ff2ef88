"""C = A Bᵀ in tensor memory, by three roles: tcgen05_ring.mlir from Python, for any sizes.

A warp fetches A and B by TMA, a thread of another starts the products, which add up in a ring of
tensor memory, and four warps store finished sums while the next tile is added up beside. Assembles
for sm_100a; runs on the emulator where there is no such GPU.

    python examples/tcgen05_ring.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import bf16, f32
from fragir.reference.formats import encode

TILE, DEPTH = (128, 64), 64


def gemm() -> fragir.Kernel:
    """The kernel; its sizes are those of the arrays, n and k multiples of 8."""
    with fragir.kernel("tcgen05_ring", target="sm_100a") as k:
        a = k.memory("a", bf16, ("m", "k"))
        b = k.memory("b", bf16, ("n", "k"))
        c = k.memory("c", f32, ("m", "n"))
        k.divisible(n=8, k=8)
        m, n, depth = k.size("m"), k.size("n"), k.size("k")
        ring = k.ring(4, [k.part((rows, DEPTH), bf16, swizzle=128) for rows in TILE])
        sums = k.ring(2, [k.tensor_part(TILE, f32)])

        with k.role("load", warps=(1, 1), packed=True):
            with k.for_tiles((m, n), TILE, persistent=True) as (row, col):
                with k.loop(0, depth, DEPTH) as loop:
                    slot = ring.acquire()
                    for memory, first, part in zip((a, b), (row, col), slot.parts, strict=True):
                        k.copy(memory, (first, loop.index), part, tma=True)
                    slot.publish()

        with k.role("multiply", warps=(1, 1), packed=True):
            with k.for_tiles((m, n), TILE, persistent=True) as (row, col):
                held = sums.acquire()
                (acc,) = held.parts
                with k.loop(0, depth, DEPTH) as loop:
                    slot = ring.wait()
                    left, right = slot.parts
                    later = loop.index != 0
                    k.tcgen05_mma(left, right, acc, accumulate=later, transposed_b=True)
                    slot.release()  # when the product is done, as is `held.publish`
                held.publish()

        with k.role("store", warpgroups=(1, 1), packed=True):
            with k.for_tiles((m, n), TILE, persistent=True) as (row, col):
                full = sums.wait()
                tile = k.tcgen05_load(full.parts[0])
                full.release()
                k.store(tile, c, (row, col), masked=True)
    return k.compile()


def main() -> None:
    kernel = gemm()
    info = kernel.assembled.entries[kernel.name]
    print(f"{kernel.name}: {info.registers} registers, {info.spill_stores} bytes spilled")
    rng = np.random.default_rng(0)
    for m, n, depth in ((200, 136, 104), (128, 64, 64), (1, 8, 8)):
        a, b = (rng.integers(-3, 4, (rows, depth)) for rows in (m, n))
        c = np.empty((m, n), np.float32)
        kernel(encode(a, "bf16"), encode(b, "bf16"), c, on="emulator")
        if not (c == a @ b.T).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
