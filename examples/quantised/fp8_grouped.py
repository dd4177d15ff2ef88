"""C = A W[g] in e4m3 for rows in groups, each with a matrix of W, as those of a mixture's experts.

Group g has the rows up to, not with, ends[g]; it begins where the one before it ends, and may be
empty. The scales are those of DeepSeek-V3: an f32 for 128 numbers of a row of A, one for 128 x 128
of a matrix of W, which has a row for each column. Each 128 of K is summed by the tensor cores,
scaled and added in f32. One role of a block fetches, another one multiplies; blocks go from tile to
tile, of which there are as many as the groups have rows for.

    python examples/quantised/fp8_grouped.py [N K LENGTH LENGTH ...]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import bf16, e4m3, f32, s32
from fragir.reference.formats import decode, encode

with fragir.kernel("fp8_grouped", target="sm_90a") as k:
    a = k.memory("a", e4m3, ("m", "k"))
    w = k.memory("w", e4m3, ("g", "n", "k"))
    a_scale = k.memory("a_scale", f32, ("m", "k_by_128"))
    w_scale = k.memory("w_scale", f32, ("g", "n_by_128", "k_by_128"))
    ends = k.memory("ends", s32, ("g",))
    c = k.memory("c", bf16, ("m", "n"))
    k.divisible(k=16)  # rows of multiples of 16 bytes, as the tensor memory accelerator takes them
    k.matmul(
        a,
        w,
        into=c,
        transposed_b=True,
        groups=ends,
        scale_a=a_scale,
        block_a=(1, 128),
        scale_b=w_scale,
        block_b=(128, 128),
        transposed_scale_b=True,
        roles=True,
    )


def main(n: int = 150, depth: int = 160, *given: int) -> None:
    lengths = given or (30, 0, 15)
    groups, ends = len(lengths), np.cumsum(lengths).astype(np.int32)
    m, parts, blocks = int(ends[-1]), -(-depth // 128), -(-n // 128)
    rng = np.random.default_rng(0)
    a = encode(rng.standard_normal((m, depth)), "e4m3")
    w = encode(rng.standard_normal((groups, n, depth)), "e4m3")
    a_scale = rng.uniform(0.5, 2, (m, parts)).astype(np.float32)
    w_scale = rng.uniform(0.5, 2, (groups, blocks, parts)).astype(np.float32)
    x = decode(a, "e4m3") * np.repeat(a_scale, 128, axis=1)[:, :depth]
    y = decode(w, "e4m3") * np.repeat(np.repeat(w_scale, 128, 1)[:, :n], 128, 2)[:, :, :depth]
    of = np.repeat(np.arange(groups), lengths)
    exact = np.einsum("mk,mnk->mn", x, y[of])
    size = np.einsum("mk,mnk->mn", np.abs(x), np.abs(y[of]))
    c = np.zeros((m, n), np.uint16)
    built = k.compile()
    built(a, w, a_scale, w_scale, ends, c, on="emulator")
    error = np.abs(decode(c, "bf16") - exact)
    registers = built.assembled.entries[built.name].registers
    print(f"{built.name}, rows {lengths}, {n} x {depth}, {built.target}: {registers} registers")
    print(f"largest error {error.max(initial=0):.1e}")
    # fp8's sums keep 13 bits below the largest product
    if not (error <= 2.0**-8 * np.abs(exact) + 2.0**-12 * size).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
