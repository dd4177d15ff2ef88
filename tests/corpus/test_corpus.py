"""PTX that other compilers made reads, writes the same and assembles to the same.

By default a sample: what is kept in tests/foreign, and a few files that nvcc makes where there is
one. All of them: `python benchmarks/corpus.py FOLDER`, then this with FRAGIR_CORPUS=FOLDER, or
`python tests/corpus/check.py FOLDER` for a table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fragir.ptx import parse, write

from .check import assemble, compare, judge

ROOT = Path(__file__).parents[2]
KEPT = sorted((ROOT / "tests/foreign").rglob("*.ptx"))
# Long to assemble, and of the same compilers as others that are.
ONLY_READ = {"attention_causal.sm_80", "elementwise.sm_90a", "gemm_bf16.sm_80", "gemm_int8.sm_80"}
WHOLE = os.environ.get("FRAGIR_CORPUS")
FILES = sorted(Path(WHOLE).rglob("*.ptx")) if WHOLE else []


def complaint(path: Path, sass: bool = True) -> str:
    return judge(path, sass).error


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_is_kept(path: Path) -> None:
    verdict = judge(path, path.stem not in ONLY_READ)
    assert verdict.error == ""
    assert verdict.assembled is not False


def test_what_nvcc_makes(tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    command = [sys.executable, str(ROOT / "benchmarks/corpus.py"), str(tmp_path), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = list(tmp_path.rglob("*.ptx"))
    if not files:
        pytest.skip(f"nvcc does not compile here: {done.stderr.splitlines()[:1]}")
    assert len(files) == 8, done.stderr
    assert [f"{path.stem}: {words}" for path in files if (words := complaint(path, False))] == []


@pytest.mark.skipif(not FILES, reason="FRAGIR_CORPUS names no folder with a corpus")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_whole_corpus(path: Path) -> None:
    assert complaint(path) == ""


def test_the_judge_sees_another_instruction() -> None:
    """Of the instructions that are no addition of addresses, one is changed."""
    text = next(path for path in KEPT if path.stem == "vector_add.sm_80").read_text("utf-8")
    assert compare(text, write(parse(text))) == (True, "")
    taken, error = compare(text, text.replace("add.f32", "sub.f32", 1))
    assert taken
    assert ".text.vector_add" in error
    assert compare(text, text + "nonsense")[1] == "ptxas refuses what was written"
    assert compare(text + "nonsense", text) == (False, "")


def test_the_judge_sees_another_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from . import check

    path = tmp_path / "kernel.ptx"
    path.write_text(".version 8.0\n.target sm_80\n.entry k()\n{\n\tret;\n}\n", "utf-8")
    assert judge(path).error == ""
    monkeypatch.setattr(check, "write", lambda module: write(module).replace("ret", "exit"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert judge(path).error == "what was written reads as another tree"
    path.write_text("nonsense;\n", "utf-8")
    assert "kernel.ptx:1" in judge(path).error


def test_sections_are_those_of_the_code() -> None:
    text = next(path for path in KEPT if path.stem == "vector_add.sm_80").read_text("utf-8")
    found = assemble(text)
    assert found is not None
    assert {".text.vector_add", ".nv.constant0.vector_add"} <= found.keys()
    assert not any("debug" in name for name in found)
