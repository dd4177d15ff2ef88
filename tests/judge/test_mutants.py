"""Numerical faults that `fragir judge` finds and a tolerance does not.

`fragir sweep judge-mutants` has all of them.
"""

from __future__ import annotations

import pytest

from benchmarks.sweeps import judge_mutants
from fragir.sweeps import Task
from tests.emulator.numeric_mutation import numeric_mutants

CONSTANT = "a constant 0.1 % off"


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_a_fault_that_a_tolerance_passes(name: str) -> None:
    """The last constant of the kernel: log2 e, and the 1 that is divided by the root."""
    found = numeric_mutants(judge_mutants.text_of(judge_mutants.KERNELS[name]))
    number = max(i for i, mutant in enumerate(found) if mutant.what == CONSTANT)
    result = judge_mutants.run(Task(0, [name, number]))
    assert (result["only_judge"], result["verdict"]) == (1, "fail")
    assert result["findings"] == []
