"""What ptxas makes of some conversions; `fragir sweep conversions-sass` looks at all."""

from __future__ import annotations

import pytest

from benchmarks.sweeps.conversions import cases
from benchmarks.sweeps.conversions_sass import SWEEP, planned
from fragir.sweeps import Plan, Task


def some(way: str, count: int) -> list[Task]:
    """The first pairs of a way among some that are drawn."""
    drawn = SWEEP.all_tasks(Plan(seed=4, count=60))
    found = [task for task in drawn if planned(cases()[int(task.what)]).way == way]
    return found[:count]


@pytest.mark.parametrize("way", ["shuffles", "shared"])
def test_machine_code_is_as_planned(way: str) -> None:
    """Data instructions as planned, numbers of lanes in few more."""
    tasks = some(way, 2)
    assert len(tasks) == 2
    assert not [finding for task in tasks for finding in SWEEP.run(task)["findings"]]
