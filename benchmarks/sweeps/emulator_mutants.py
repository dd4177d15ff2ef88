"""Correct kernels with one synchronisation deleted or altered: fragir check must report each.

A task is one mutant of a kernel of `tests/emulator/subjects.py`, run as `fragir check` does; those
that are as right as the original must stay silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator import subjects
from tests.emulator.mutation import tasks_of, verdict

NAMES = (*(s.name for s in subjects.SUBJECTS), subjects.GEMM_BY_HAND.name, *subjects.COMPILED)


def tasks(plan: Plan) -> Sequence[Any]:
    """Those of `tasks_of`."""
    return sample(tasks_of(NAMES, subjects.mutants_of), plan)


def run(task: Task) -> Result:
    name, what = str(task.what[0]), task.what[2]
    number = int(task.what[1])
    subject = subjects.subject_called(name)
    mutant = subjects.mutants_of(name)[number] if number >= 0 else None
    kinds = verdict(subject, mutant.text if mutant is not None else None)
    silent = mutant is None or subjects.is_equivalent(name, mutant)
    findings: list[str] = []
    if silent and kinds:
        findings = [f"{name}, {what}: is right, and {kinds} is reported"]
    elif not silent and not kinds:
        findings = [f"{name}, {what}: nothing is reported"]
    return {"kinds": kinds, "reported": int(bool(kinds)), "findings": findings}


SWEEP = Sweep(tasks, run, seconds=300.0)
