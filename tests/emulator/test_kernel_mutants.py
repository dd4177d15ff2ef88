"""Who changes one synchronisation of a kernel that the passes write is told so.

One mutant of each kernel is tried; `fragir sweep kernel-mutants` tries all.
"""

from __future__ import annotations

import pytest

from benchmarks.sweeps import kernel_mutants
from benchmarks.sweeps.kernel_mutants import mutants_of, right_ones
from fragir.sweeps import Plan, Task

from .equivalent import RULES
from .generated import NAMES

TASKS = kernel_mutants.SWEEP.all_tasks(Plan())


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant(name: str) -> None:
    wrong = [
        task for task in TASKS if task.what[0] == name and not _right(task) and task.what[1] >= 0
    ]
    chosen = wrong[sum(map(ord, name)) * 7 % len(wrong)]
    assert kernel_mutants.run(chosen)["findings"] == []


def test_there_are_enough() -> None:
    assert len({task.what[0] for task in TASKS}) >= 10
    assert sum(not _right(task) for task in TASKS) > 500


def test_a_rule_is_about_a_mutant() -> None:
    used = {rule for name in NAMES for rule in right_ones(name).values()}
    assert [rule for rule in RULES if rule not in used] == []


def test_the_sweep_judges_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong and silent is found, and what is right and reported."""
    right = next(task for task in TASKS if _right(task))
    wrong = next(task for task in TASKS if task.what[1] >= 0 and not _right(task))

    def judged(task: Task, kinds: list[str]) -> list[str]:
        def verdict(*_: object) -> list[str]:
            return kinds

        monkeypatch.setattr(kernel_mutants, "verdict", verdict)
        return kernel_mutants.run(task)["findings"]

    assert judged(wrong, ["race"]) == judged(right, []) == []
    assert "nothing is reported" in judged(wrong, [])[0]
    assert "is reported" in judged(right, ["race"])[0]


def _right(task: Task) -> bool:
    name, number = str(task.what[0]), int(task.what[1])
    return number >= 0 and mutants_of(name)[number] in right_ones(name)
