"""Spills are said on stderr: nobody reads SASS to find them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Fragir = Callable[..., Any]

FEW = """\
func.func @f(%a: memref<128x512xf16>, %b: memref<512x256xf16>, %c: memref<128x256xf32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 128, 256, 32>, warps = array<i64: 2, 2>}
    : memref<128x512xf16>, memref<512x256xf16> into memref<128x256xf32>
  func.return
}
"""


def test_the_command_line_says_so(fragir: Fragir, in_folder: Path) -> None:
    Path("few.mlir").write_text(FEW)
    Path("enough.mlir").write_text(FEW.replace(", warps = array<i64: 2, 2>", ""))
    for command in (("compile", "few.mlir", "-o", "few.cubin"), ("run", "few.mlir")):
        result = fragir(*command)
        assert result.code == 0
        assert "warning: f spills: " in result.err
        assert result.err.count("spills") == 1
    assert "spills" not in fragir("compile", "enough.mlir", "-o", "enough.cubin").err
    assert "spills" not in fragir("compile", "few.mlir", "-o", "few.ptx").err
