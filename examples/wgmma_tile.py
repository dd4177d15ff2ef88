"""One wgmma tile, 64 x 96 x 64, with A from registers and with A from shared memory.

B lies in swizzled shared memory as N x K (K contiguous), A as M x K. The result of both is the
same to the bit. Assembles for sm_90a; runs on the emulator where there is no such GPU.

    python examples/wgmma_tile.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import f16, f32

M, N, K = 64, 96, 64


def tile(a_in_registers: bool) -> fragir.Kernel:
    """The kernel C = A Bᵀ by one warpgroup."""
    name = "wgmma_registers" if a_in_registers else "wgmma_shared"
    with fragir.kernel(name, warpgroups=(1, 1), target="sm_90a") as k:
        a = k.memory("a", f16, (M, K))
        b = k.memory("b", f16, (N, K))
        c = k.memory("c", f32, (M, N))
        b_tile = k.shared((N, K), f16, swizzle=128)
        k.copy(b, (0, 0), b_tile, asynchronous=True)
        if a_in_registers:
            left = k.load(a, (0, 0), shape=(M, K))
        else:
            left = k.shared((M, K), f16, swizzle=128)
            k.copy(a, (0, 0), left, asynchronous=True)
        k.commit()
        k.wait(0)
        k.barrier()
        acc = k.wgmma(left, b_tile, k.fill(0, (M, N), f32), transposed_b=True)
        k.store(acc, c, (0, 0))
    return k.compile()


def main() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((M, K)).astype(np.float16)
    b = rng.standard_normal((N, K)).astype(np.float16)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b.T
    bound = 2.0**-22 * K * (np.abs(wide_a) @ np.abs(wide_b).T)  # K sums, each rounded or cut off
    results: list[bytes] = []
    for a_in_registers in (True, False):
        kernel = tile(a_in_registers)
        c = np.zeros((M, N), np.float32)
        kernel(a, b, c, on="emulator")
        info = kernel.assembled.entries[kernel.name]
        print(
            f"{kernel.name}: {kernel.ptx.count('wgmma.mma_async')} wgmma, {info.registers} "
            f"registers, largest error {np.abs(c - exact).max():.1e}, bound {bound.max():.1e}"
        )
        if not (np.abs(c - exact) <= bound).all():
            raise SystemExit("FAIL")
        results.append(c.tobytes())
    if results[0] != results[1]:
        raise SystemExit("FAIL: the two differ")
    print("PASS")


if __name__ == "__main__":
    main()
