"""`fragir run` of a program that promises what divides its sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fragir = Callable[..., Any]

PROGRAM = """\
func.func @gemm(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>)
    attributes {frag.divisible = {n = 16, k = 8}} {
  frag.matmul %a, %b into %c {tile = array<i64: 64, 64, 32>}
    : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gemm.mlir").write_text(PROGRAM)


def test_kept(fragir: Fragir) -> None:
    done = fragir("run", "gemm.mlir", "--size", "m=65,n=80,k=40", "--on", "emulator")
    assert done.code == 0
    assert "PASS" in done.out


@pytest.mark.parametrize("k", [1, 3, 7, 20, 33])
def test_broken(fragir: Fragir, k: int) -> None:
    """Said before anything is run."""
    done = fragir("run", "gemm.mlir", "--size", f"m=65,n=80,k={k}", "--on", "emulator")
    assert done.code == 1
    assert f"error: k = {k}, but gemm is promised multiples of 8" in done.err
    assert "PASS" not in done.out
