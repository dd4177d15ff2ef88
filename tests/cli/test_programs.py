"""Programs of several kernels on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.host.test_programs import CHAIN, KERNEL
from tests.linalg.held import layers, weights


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "chain.mlir"
    path.write_text(CHAIN + KERNEL)
    return str(path)


@pytest.mark.parametrize("rows", [0, 21])
def test_run(fragir: Any, file: str, rows: int) -> None:
    result = fragir("run", file, "--size", f"n={rows}", "--on", "emulator", "--json")
    assert result.code == 0
    document = json.loads(result.out)
    assert (document["entry"], document["result"]) == ("main", "PASS")
    assert document["spills"] == 0


def test_compile(fragir: Any, file: str, tmp_path: Path) -> None:
    result = fragir("compile", file)
    assert result.out.count(".visible .entry twice(") == 1
    assert "frag.host" in fragir("compile", file, "--to", "lane").out
    assert fragir("compile", file, "-o", str(tmp_path / "k.cubin")).code == 0
    assert (tmp_path / "k.cubin").read_bytes()[:4] == b"\x7fELF"


def test_what_else_takes_a_program(fragir: Any, file: str) -> None:
    result = fragir("compile", file, "--launcher", "c")
    assert result.code == 1
    assert "launches several kernels" in result.err
    assert fragir("sass", file).code == 0


def test_constants_of_the_text(fragir: Any, tmp_path: Path) -> None:
    """They are no inputs, and numbers where functions of the inputs are compared."""
    path = tmp_path / "layers.mlir"
    path.write_text(layers(weights()))
    result = fragir("run", str(path), "--on", "emulator", "--json", "--exact", "--check")
    document = json.loads(result.out)
    assert (result.code, document["result"], document["findings"]) == (0, "PASS", [])
    assert document["exact"]["result"]["verdict"] == "the same function"
    assert fragir("explain", str(path), "--check", "-o", str(tmp_path / "page.html")).code == 0
