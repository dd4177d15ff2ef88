"""Examples are judged as `fragir judge` judges PTX, against what they mean.

`fragir sweep judge-examples` has all of them.
"""

from __future__ import annotations

import pytest

from benchmarks.sweeps.judge_examples import Example, examples, judge_example, of_scripts

EVERY = {(one.program, one.entry): one for one in examples()}
SAMPLE = [
    # the function as it is; integers, which are compared; data that says which element is taken
    ("mma_m16n8k8_f16.mlir", "f16_f32", "exact (2^-60)", 1),
    ("mma_m16n8k32_s8.mlir", "s8", "numbers", 1),
    ("data/embedding.mlir", "backward", "exact (2^-60)", 0),
]


@pytest.mark.parametrize(("program", "entry", "equality", "value"), SAMPLE)
def test_a_program_passes(program: str, entry: str, equality: str, value: int) -> None:
    found = judge_example(EVERY[program, entry])
    assert (found["verdict"], found["reasons"]) == ("pass", [])
    assert (found["equality"], found["every_schedule"]) == (equality, 1)
    assert found["every_value"] == value


def test_a_script_passes() -> None:
    (one,) = of_scripts([EVERY["elementwise/vector_add.mlir", "add_f16"]])
    assert one.program == "elementwise/vector_add.py"
    assert judge_example(one)["verdict"] == "pass"


def test_what_is_not_decided_is_told() -> None:
    found = judge_example(EVERY["stmatrix.mlir", "stmatrix"])
    assert found["verdict"] == "incomplete"
    assert "whose meaning is its PTX" in found["reasons"][0]


def test_groups_that_overlap_fail() -> None:
    """Two blocks write one row, times different matrices."""
    right = EVERY["products/grouped.mlir", "grouped"]
    beyond = Example(right.program, right.entry, right.target, right.sizes, {**right.given})
    beyond.given["starts"] = [0, 65, 66]
    found = judge_example(beyond)
    assert found["verdict"] == "fail"
    assert "race" in " ".join(found["reasons"])
