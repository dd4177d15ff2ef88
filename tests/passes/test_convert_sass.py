"""What ptxas makes of some conversions; `fragir sweep conversions-sass` looks at all."""

from __future__ import annotations

from benchmarks.sweeps.conversions_sass import SWEEP
from fragir.sweeps import Plan


def test_machine_code_is_as_planned() -> None:
    """Data instructions as planned, numbers of lanes in few more."""
    tasks = SWEEP.all_tasks(Plan(seed=4, count=6, parameters=dict(SWEEP.parameters)))
    results = [SWEEP.run(task) for task in tasks]
    assert not [finding for result in results for finding in result["findings"]]
    assert {result["way"] for result in results} >= {"shuffles", "shared"}
