"""Whoever forgets one synchronisation statement of a correct kernel is told so.

Every statement that synchronises is deleted or altered, one at a time; `fragir check`'s runs must
report something for each mutant but those of `EQUIVALENT`, which are as right as the original.
A sample is tried; `fragir sweep emulator-mutants` tries all.
"""

from __future__ import annotations

import pytest

from benchmarks.sweeps import emulator_mutants
from fragir.sweeps import Plan, Task

from .mutation import verdict
from .subjects import (
    COMPILED,
    EQUIVALENT,
    GEMM_BY_HAND,
    SUBJECTS,
    mutants_of,
    subject_called,
    survivors,
)


@pytest.mark.parametrize("name", [subject.name for subject in SUBJECTS])
def test_every_mutant_is_reported(name: str) -> None:
    every = mutants_of(name)
    assert survivors(name, every[sum(map(ord, name)) % 4 :: 4] or every[:1]) == []


@pytest.mark.parametrize("name", [GEMM_BY_HAND.name, *COMPILED])
def test_gemms(name: str) -> None:
    every = mutants_of(name)
    assert every
    assert verdict(subject_called(name)) == []
    assert survivors(name, every[:: 6 if name in COMPILED else 3]) == []


def test_the_sweep_judges_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong and silent is found, and what is right and reported."""
    tasks = emulator_mutants.SWEEP.all_tasks(Plan())
    assert len(tasks) > 200
    assert {task.what[0] for task in tasks} == {
        *(s.name for s in SUBJECTS),
        GEMM_BY_HAND.name,
        *COMPILED,
    }
    ring = [task for task in tasks if task.what[0] == "ring"]
    right, wrong = ring[0], next(t for t in ring if t.what[2].endswith("bar.sync 0; (deleted)"))
    assert [emulator_mutants.run(task)["findings"] for task in (right, wrong)] == [[], []]

    def judged(task: Task, kinds: list[str]) -> list[str]:
        def verdict(*_: object) -> list[str]:
            return kinds

        monkeypatch.setattr(emulator_mutants, "verdict", verdict)
        return emulator_mutants.run(task)["findings"]

    assert judged(right, ["race"]) == ["ring, as it is: is right, and ['race'] is reported"]
    assert judged(wrong, []) == [f"ring, {wrong.what[2]}: nothing is reported"]


@pytest.mark.parametrize("key", EQUIVALENT, ids=lambda k: f"{k[0]}-{k[1][:20]}")
def test_equivalents_exist_and_are_silent(key: tuple[str, str, int, str]) -> None:
    """The list holds nothing that the checks would report after all."""
    (mutant,) = (m for m in mutants_of(key[0]) if m.key == key[1:])
    assert verdict(subject_called(key[0]), mutant.text) == []
