"""`fragir compile --launcher`: what launches a kernel without fragir."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fragir.cli.main import main
from tests.cli.test_json import validate

Fragir = Callable[..., Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["gemm.mlir", "rows/softmax.mlir", "leaky_relu.mlir"])
def test_the_document(fragir: Fragir, name: str) -> None:
    entry = ["--entry", "softmax"] if "softmax" in name else []
    result = fragir("compile", str(EXAMPLES / name), "--launcher", "json", *entry)
    document = json.loads(result.out)
    validate(document, "launcher")
    used = {one["size"] for one in document["parameters"] if one["kind"] == "size"}
    assert used <= set(document["sizes"])


def test_programs(fragir: Fragir) -> None:
    program = str(EXAMPLES / "gemm.mlir")
    text = fragir("compile", program, "--launcher", "c").out
    assert "static CUresult gemm_launch(" in text
    assert fragir("compile", program, "--launcher", "python", "-o", "gemm.py").code == 0
    tree = ast.parse(Path("gemm.py").read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {"launch", "load", "grid"} <= names


def test_usage(fragir: Fragir) -> None:
    program = str(EXAMPLES / "gemm.mlir")
    assert main(["compile", program, "--launcher", "c", "--to", "ptx"]) == 2
    assert main(["compile", program, "--launcher", "rust"]) == 2
    several = str(EXAMPLES / "rows" / "softmax.mlir")
    result = fragir("compile", several, "--launcher", "json")
    assert result.code == 1
    assert "--entry" in result.err
