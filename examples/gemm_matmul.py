"""C = alpha A B + beta C from one frag.matmul, written in Python, for any M, N and K.

The compiler chooses tiles, warps, stages and the instruction: mma.sync on sm_80, wgmma on sm_90a.

    python examples/gemm_matmul.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import Scalar, f16, f32

with fragir.kernel("gemm_matmul") as k:
    a = k.memory("a", f16, ("m", "k"))
    b = k.memory("b", f16, ("k", "n"))
    c = k.memory("c", f32, ("m", "n"))
    alpha = k.scalar("alpha", f32)
    beta = k.scalar("beta", f32)

    def epilogue(total: Scalar, old: Scalar) -> Scalar:
        return alpha * total + beta * old

    k.matmul(a, b, into=c, epilogue=epilogue)


def main(m: int = 100, n: int = 70, depth: int = 50, alpha: float = 2.0, beta: float = 0.5) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, depth)).astype(np.float16)
    b = rng.standard_normal((depth, n)).astype(np.float16)
    old = rng.standard_normal((m, n)).astype(np.float32)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = alpha * (wide_a @ wide_b) + beta * old
    # products are exact in f32; every sum, and each step of the epilogue, rounds once
    bound = (
        2.0**-22 * (depth + 2) * (alpha * (np.abs(wide_a) @ np.abs(wide_b)) + np.abs(beta * old))
    )
    for target in ("sm_80", "sm_90a"):
        gemm = k.compile(target)
        c = old.copy()
        # on the emulator: a GPU would have to be the target's
        gemm(a, b, c, alpha, beta, on="emulator")
        error = np.abs(c - exact)
        print(f"{target}: {m} x {n} x {depth}, largest error {error.max():.1e}", end=", ")
        print(f"bound {bound.max():.1e}")
        if not (error <= bound).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
