"""Faults of all kinds in kernels of Triton and nvcc that a tolerance passes, and the judge finds.

`fragir sweep planted-faults` has all of them.
"""

from __future__ import annotations

import pytest

from benchmarks.sweeps import planted_faults
from fragir.sweeps import Task
from tests.judge.planted import PLANTED

SAMPLE = {
    "alpha is 0.5002 for an eighth of the elements",
    ".ftz for every other element",
    "rounded to zero",
    "an element is summed in f16",
    "the last column is not written",
    "registers of A in another order",
    "two products may be on the way at the end",
    "no barrier before the tile is read",
}
FIRST = {one.why: number for number, one in reversed(list(enumerate(PLANTED)))}


def test_there_are_many_and_each_is_another() -> None:
    assert len(PLANTED) >= 40
    assert len({(one.kernel, one.text()) for one in PLANTED}) == len(PLANTED)
    assert all(one.text() != one.right() for one in PLANTED)


@pytest.mark.parametrize("number", [FIRST[why] for why in FIRST if why in SAMPLE])
def test_the_judge_finds_it(number: int) -> None:
    result = planted_faults.run(Task(0, [number, True]))
    assert result["findings"] == []
    assert (result["allclose_passes"], result["judge_finds"]) == (1, 1)


@pytest.mark.parametrize("why", ["alpha is 0.5002 for an eighth of the elements", ".ftz"])
def test_it_passes_without_the_fault(why: str) -> None:
    """wmma loads by a stride that a register has; sums of subnormal numbers."""
    result = planted_faults.run(Task(0, [FIRST[why], False]))
    assert (result["verdict"], result["findings"]) == ("pass", [])
