"""Names that products give to the dimensions of arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fragir
from fragir import f16, f32
from fragir.cli.main import main


def test_two_products_of_other_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes that are written into the types need not agree because both are an m, n or k."""
    with fragir.kernel("twice", warps=(2, 1)) as k:
        a, b = k.memory("a", f16, (32, 16)), k.memory("b", f16, (16, 32))
        c, d = k.memory("c", f16, (32, 8)), k.memory("d", f32, (32, 8))
        x = k.load(a, (0, 0), shape=(32, 16))
        y = k.load(b, (0, 0), shape=(16, 32))
        z = k.load(c, (0, 0), shape=(32, 8))
        first = k.mma(x, y, k.fill(0, (32, 32), f32)).cast(f16)
        k.store(k.mma(first, z, k.fill(0, (32, 8), f32)), d, (0, 0))
    file = tmp_path / "twice.mlir"
    file.write_text(k.mlir)
    assert main(["run", str(file), "--on", "emulator"]) == 0
    assert "PASS" in capsys.readouterr().out


def test_rows_that_are_reduced_have_no_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is stored after a reduction and a broadcast is not taken for C."""
    with fragir.kernel("repeated", warps=(1, 1)) as k:
        a, c = k.memory("a", f32, (16, 32)), k.memory("c", f32, (4, 16, 8))
        t = k.load(a, (0, 0), shape=(16, 32))
        k.store(t.sum(1)[:, None].broadcast_to((4, 16, 8)), c, (0, 0, 0))
    file = tmp_path / "repeated.mlir"
    file.write_text(k.mlir)
    assert main(["run", str(file), "--on", "emulator"]) == 0
    assert "PASS" in capsys.readouterr().out
    found = np.zeros((4, 16, 8), np.float32)
    k.compile()(np.ones((16, 32), np.float32), found, on="emulator")
    assert (found == 32).all()
