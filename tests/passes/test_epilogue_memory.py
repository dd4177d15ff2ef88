"""C of two bytes leaves a product in whole sectors, through the memory that its stages had.

Inputs are small integers, so every sum is exact and results are compared exactly.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import fragir
from tests.properties.judge import judge

BETA = """ epilogue {
  ^bb0(%sum: f32, %old: f16):
    %wide = arith.extf %old : f16 to f32
    %added = arith.addf %sum, %wide : f32
    %r = arith.truncf %added : f32 to f16
    frag.yield %r : f16
  }"""
BIAS = BETA.replace("%old: f16", "%old: f16, %bias: f16").replace("extf %old", "extf %bias")


def gemm(epilogue: str = "", promises: str = "", stages: int = 3) -> str:
    """C = A B + what an epilogue adds, in tiles of 128x128x32."""
    matrix, row = "memref<?x?xf16>", "memref<?xf16>"
    bias = epilogue == BIAS
    types = f"{matrix}, {matrix} into {matrix}" + (f" with {row}" if bias else "")
    arguments = f"%a: {matrix}, %b: {matrix}, %c: {matrix}" + (f", %d: {row}" if bias else "")
    return (
        f"func.func @gemm({arguments}){promises} {{\n"
        f"  frag.matmul %a, %b into %c{' with %d' if bias else ''} "
        f"{{tile = array<i64: 128, 128, 32>, stages = {stages} : i64}} : {types}{epilogue}\n"
        "  func.return\n}\n"
    )


PROMISED = " attributes {frag.divisible = {m = 8, n = 8, k = 8}}"


def accesses(kernel: fragir.Kernel) -> Counter[str]:
    """Accesses of global memory, by name."""
    return Counter(re.findall(r"(?:st|ld)\.global[a-z0-9.]*", kernel.ptx))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("epilogue", ["", BETA, BIAS], ids=["plain", "beta", "bias"])
def test_whole_sectors(target: str, epilogue: str) -> None:
    kernel = fragir.compile(gemm(epilogue, PROMISED), target=target)
    found = accesses(kernel)
    assert {name for name in found if name.startswith("st.")} == {"st.global.v4.b32"}
    if epilogue == BETA:  # C is read as it is written
        assert found["ld.global.v4.b32"] == found["st.global.v4.b32"]
    assert kernel.shared == 0  # no more than the 48 KiB of its stages
    rng = np.random.default_rng(1)
    m, n, k = 136, 120, 40
    a, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((m, k), (k, n)))
    c, d = np.full((m, n), 5, np.float16), rng.integers(-3, 4, n).astype(np.float16)
    inputs = (a, b, c, d) if epilogue == BIAS else (a, b, c)
    report = kernel.launch((1, 2, 1), None, *inputs, on="emulator", check=True, asynchrony="late")
    assert report.findings == []
    added = d.astype(np.float32) if epilogue == BIAS else 5 if epilogue == BETA else 0
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + added)


def test_a_machine_without_cp_async() -> None:
    """There is nothing to wait for before C takes the memory of the slots."""
    program = """func.func @f(%a: memref<16x112xf16>, %b: memref<16x?xf16>, %c: memref<112x?xf16>) {
  frag.matmul %a transposed, %b into %c accumulate f16
    : memref<16x112xf16>, memref<16x?xf16> into memref<112x?xf16>
  func.return
}"""
    for n in (16, 130):
        kernel = judge(program, "sm_75", {"m": 112, "n": n, "k": 16})
    assert "cp.async" not in kernel.ptx
    assert "cp.async.wait_group" in fragir.compile(program, target="sm_80").ptx
