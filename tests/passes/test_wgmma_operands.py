"""Products by wgmma of types that it reads K-major only, from memory in every order: what lies
across K is read into registers, C is formed or its transpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.compiler import parse
from fragir.passes.tiling.schedule import schedule_for

from .test_operand_layouts import SUMS, compiled, operand, run

Array = npt.NDArray[Any]
TARGET = "sm_90a"
ONE = [(True, True), (False, False)]  # A and B transposed: one of them lies across K


BOTH = True, False


@pytest.mark.parametrize(
    ("element", "sides"),
    [("si8", ONE[0]), ("f8E4M3FN", ONE[1]), ("tf32", ONE[1]), ("f8E5M2", BOTH), ("tf32", BOTH)],
    ids=str,
)
def test_static_sizes(element: str, sides: tuple[bool, bool]) -> None:
    """wgmma, no conflicts, whole sectors, and nothing that ptxas has to say."""
    sizes = 128, 128, 160
    kernel = compiled(element, sizes, sides, target=TARGET)
    assert "wgmma.mma_async" in kernel.ptx
    assert "mma.sync" not in kernel.ptx
    assert kernel.assembled.warnings == []
    conflicts = run(kernel, element, sizes, sides).statistics.conflicts
    assert conflicts["passes"] == conflicts["passes_needed"]
    assert conflicts["sectors"] == conflicts["sectors_needed"]


@pytest.mark.parametrize(
    ("element", "sides"), [("si8", ONE[1]), ("tf32", ONE[0]), ("ui8", BOTH)], ids=str
)
def test_sizes_known_at_run_time(element: str, sides: tuple[bool, bool]) -> None:
    """No multiples of anything."""
    kernel = compiled(element, None, sides, target=TARGET)
    assert "wgmma.mma_async" in kernel.ptx
    for sizes in ((65, 67, 71), (1, 130, 16)):
        run(kernel, element, sizes, sides)


def test_two_warpgroups() -> None:
    """The largest tile: its columns are the rows of C^T, two blocks of them a warpgroup's."""
    sizes = 128, 256, 64
    kernel = compiled("tf32", sizes, (False, False), "128, 256, 32", target=TARGET)
    assert kernel.ptx.count("wgmma.mma_async.sync.aligned.m64n128k8") == 8
    assert kernel.assembled.warnings == []
    run(kernel, "tf32", sizes, (False, False))


@pytest.mark.parametrize(("m", "n"), [(128, 64), (64, 128)])
def test_either_is_transposed(m: int, n: int) -> None:
    """Of both A, unless its part of a tile is too small for all warps; then B."""
    kernel = compiled("si8", (m, n, 64), BOTH, f"{m}, {n}, 64", target=TARGET)
    assert "wgmma.mma_async" in kernel.ptx
    assert "stmatrix" in kernel.ptx
    run(kernel, "si8", (m, n, 64), BOTH)


def test_tiles_for_warps() -> None:
    """What only mma.sync can cut so is multiplied by it."""
    sizes = 64, 24, 64
    kernel = compiled("si8", sizes, (False, False), "64, 24, 64", target=TARGET)
    assert "mma.sync" in kernel.ptx
    run(kernel, "si8", sizes, (False, False))


@pytest.mark.parametrize("element", ["si8", "tf32"])
def test_epilogue(element: str) -> None:
    """C is read and written, a bias of columns and one of rows are added, where C^T is formed."""
    out = SUMS.get(element, "f32")
    add = "arith.addi" if out == "i32" else "arith.addf"
    types = f"memref<?x?x{element}>, memref<?x?x{element}>", f"memref<?x?x{out}>"
    text = f"""
func.func @gemm(%a: memref<?x?x{element}>, %b: memref<?x?x{element}>, %c: {types[1]},
                %bias: memref<?x{out}>, %rows: memref<?x1x{out}>) {{
  frag.matmul %a, %b into %c with %bias, %rows
      : {types[0]} into {types[1]} with memref<?x{out}>, memref<?x1x{out}> epilogue {{
  ^bb0(%sum: {out}, %old: {out}, %x: {out}, %y: {out}):
    %p = {add} %sum, %old : {out}
    %q = {add} %p, %x : {out}
    %r = {add} %q, %y : {out}
    frag.yield %r : {out}
  }}
  func.return
}}
"""
    kernel = fragir.compile(text, target=TARGET)
    assert "wgmma.mma_async" in kernel.ptx
    rng = np.random.default_rng(1)
    m, n, k = 70, 131, 40
    a, left = operand(rng, element, (m, k))
    b, right = operand(rng, element, (k, n))
    type_ = np.int32 if out == "i32" else np.float32
    c, bias, rows = (rng.integers(-9, 9, shape).astype(type_) for shape in ((m, n), n, (m, 1)))
    expected = left @ right + c + bias + rows
    report = kernel(a, b, c, bias, rows, on="emulator", check=True)
    assert report.findings == []
    np.testing.assert_array_equal(c, expected)


def test_warps_are_of_rows_and_columns() -> None:
    """`warps` counts along M and N, also where C^T is formed."""
    text = (
        "func.func @gemm(%a: memref<256x64xsi8>, %b: memref<64x128xsi8>,\n"
        "                %c: memref<256x128xi32>) {\n"
        "  frag.matmul %a, %b into %c {tile = array<i64: 256, 128, 64>, warps = array<i64: 2, 1>}\n"
        "      : memref<256x64xsi8>, memref<64x128xsi8> into memref<256x128xi32>\n"
        "  func.return\n}\n"
    )
    (product,) = [op for op in parse(text).walk() if op.name == "frag.matmul"]
    schedule: Any = schedule_for(product, TARGET)  # type: ignore[arg-type]
    assert (schedule.warps, schedule.turned, schedule.wgmma) == ((2, 1), True, True)
    kernel = fragir.compile(text, target=TARGET)
    run(kernel, "si8", (256, 128, 64), (False, False))
