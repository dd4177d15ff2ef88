"""Numerical faults that `fragir judge` finds and a tolerance does not.

`fragir sweep judge-mutants` has all of them.
"""

from __future__ import annotations

import pytest

from benchmarks.sweeps import judge_mutants
from fragir.sweeps import Task

from .mutation import numerical_mutants

#: A kernel, and the first fault of a kind that allclose passes.
ONLY_JUDGE = [("softmax", "a constant 0.1 % off"), ("layer_norm", "a constant 0.1 % off")]


def test_faults_are_changes_of_one_line() -> None:
    for title in judge_mutants.KERNELS.values():
        text = judge_mutants.text_of(title)
        before = text.split("\n")
        for mutant in numerical_mutants(text):
            after = mutant.text.split("\n")
            changed = [
                i for i, pair in enumerate(zip(before, after, strict=True), 1) if len(set(pair)) > 1
            ]
            assert changed == [mutant.line]


@pytest.mark.parametrize(("name", "what"), ONLY_JUDGE)
def test_faults_that_a_tolerance_passes(name: str, what: str) -> None:
    found = numerical_mutants(judge_mutants.text_of(judge_mutants.KERNELS[name]))
    number = next(i for i, mutant in enumerate(found) if mutant.what == what)
    result = judge_mutants.run(Task(0, [name, number]))
    assert (result["only_judge"], result["verdict"]) == (1, "fail")
    assert result["findings"] == []
