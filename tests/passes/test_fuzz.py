"""A sample of the sweep of mutated programs."""

from __future__ import annotations

import random

import pytest

from benchmarks.sweeps import matrix_programs
from fragir import compiler
from fragir.sweeps import Task


def test_mutants() -> None:
    """`fragir sweep matrix-programs` runs many more."""
    result = matrix_programs.run(Task(0, None, 1, {"batch": 25}))
    assert result["findings"] == []
    assert result["mutants"] == 25


def test_mutants_reach_every_level() -> None:
    """Some mutants are texts that are read; most are not."""
    rng = random.Random(3)
    texts = [matrix_programs.mutant(rng) for _ in range(120)]
    assert len(set(texts)) == 120
    assert 5 < sum(_reads(text) for text in texts) < 60


def _reads(text: str) -> bool:
    try:
        compiler.parse(text)
    except Exception:
        return False
    return True


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that is no error for users is a finding, and so is one told as our fault."""

    def broken(text: str, target: str) -> None:
        raise KeyError("x")

    monkeypatch.setattr(matrix_programs, "to_lanes", broken)
    result = matrix_programs.run(Task(0, None, 1, {"batch": 1}))
    assert "KeyError" in result["findings"][0]
    assert "to_kernel" not in result["findings"][0]


def test_an_unforeseen_exception_of_a_pass_is_told_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from fragir.errors import FragirError
    from fragir.passes.lowering.function import FunctionLowering

    def broken(self: object, op: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(FunctionLowering, "lower", broken)
    program = "func.func @f() {\n  frag.barrier\n  func.return\n}\n"
    with pytest.raises(FragirError, match=r"x\.mlir:2:3: unexpected KeyError.*fault of fragir"):
        compiler.compile(program, filename="x.mlir")
