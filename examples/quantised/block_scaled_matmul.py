"""C = A W in the microscaling formats by `k.matmul`: the compiler chooses tiles and roles.

`k` is mxfp8: e4m3 with a power of two (ue8m0) for each 32 numbers of a row, a matrix of scales.
`nvfp4` has e2m1, two to a byte, with an e4m3 scale for each 16; scales lie in chunks of 128 rows by
four blocks, as tensor memory takes them. `w` has a row for each column of W.

    python examples/quantised/block_scaled_matmul.py [M N K]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

import fragir
from fragir import bf16, e2m1x2, e4m3, f32, ue8m0
from fragir.reference.formats import decode, encode

Array = npt.NDArray[Any]
TARGET = "sm_100a"
ROWS, BLOCKS = 128, 4  # of a chunk

with fragir.kernel("mxfp8", target=TARGET) as k:
    a = k.memory("a", e4m3, ("m", "k"))
    w = k.memory("w", e4m3, ("n", "k"))
    a_scale = k.memory("a_scale", ue8m0, ("m", "blocks"))
    w_scale = k.memory("w_scale", ue8m0, ("n", "blocks"))
    c = k.memory("c", bf16, ("m", "n"))
    k.divisible(k=32)
    k.matmul(
        a,
        w,
        into=c,
        transposed_b=True,
        scale_a=a_scale,
        block_a=(1, 32),
        scale_b=w_scale,
        block_b=(32, 1),
        transposed_scale_b=True,
    )

with fragir.kernel("nvfp4", target=TARGET) as nvfp4:
    a = nvfp4.memory("a", e2m1x2, ("m", "k"))
    w = nvfp4.memory("w", e2m1x2, ("n", "k"))
    a_scale = nvfp4.memory("a_scale", e4m3, ("rows", "deep", 2, 256))
    w_scale = nvfp4.memory("w_scale", e4m3, ("columns", "deep", 2, 256))
    c = nvfp4.memory("c", f32, ("m", "n"))
    nvfp4.divisible(k=32)
    nvfp4.matmul(
        a,
        w,
        into=c,
        transposed_b=True,
        scale_a=a_scale,
        block_a=(1, 16),
        scale_b=w_scale,
        block_b=(16, 1),
        transposed_scale_b=True,
    )


def chunks(scales: Array) -> Array:
    """A matrix of rows by blocks in chunks: row r, block j at byte 16 (r % 32) + 4 (r / 32) + j."""
    rows, blocks = scales.shape
    across, along = -(-rows // ROWS), -(-blocks // BLOCKS)
    whole = np.zeros((across * ROWS, along * BLOCKS), scales.dtype)
    whole[:rows, :blocks] = scales
    parts = whole.reshape(across, BLOCKS, 32, along, BLOCKS)  # quarters of 32 rows
    return parts.transpose(0, 3, 2, 1, 4).reshape(across, along, 2, 256)


def main(m: int = 150, n: int = 72, depth: int = 352) -> None:
    rng = np.random.default_rng(0)
    for kernel, element, scale, block in ((k, "e4m3", "ue8m0", 32), (nvfp4, "e2m1x2", "e4m3", 16)):
        sides: list[tuple[Array, Array, Array]] = []
        for size in (m, n):
            numbers = encode(rng.standard_normal((size, depth)) * 2, element)
            scales = encode(2.0 ** rng.integers(-2, 3, (size, -(-depth // block))), scale)
            real = decode(numbers, element) * np.repeat(decode(scales, scale), block, 1)[:, :depth]
            sides.append((numbers, scales if block == 32 else chunks(scales), real))
        (a, a_scale, x), (w, w_scale, y) = sides
        narrow = kernel is k
        c = np.zeros((m, n), np.uint16 if narrow else np.float32)
        built = kernel.compile()
        built(a, w, a_scale, w_scale, c, on="emulator")
        error = np.abs((decode(c, "bf16") if narrow else c) - x @ y.T)
        bound = (2.0**-8 if narrow else 2.0**-12) * (np.abs(x) @ np.abs(y).T)
        print(f"{built.name}, {m} x {n} x {depth}, {built.target}")
        print(f"largest error {error.max(initial=0):.1e}")
        if not (error <= bound).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
