"""Mutants of what kernels compute: who sees them, a tolerance of 1e-2 or elements of two fields.

A task is one mutant of a kernel of `tests/emulator/numeric_mutation.py`. A finding is one that the
tolerance sees and the fields do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator.numeric_mutation import SUBJECTS, numeric_mutants, subject_named, verdict

#: Of a kernel; more are taken at regular distances.
MOST = 40


def tasks(plan: Plan) -> Sequence[Any]:
    found: list[tuple[str, int]] = []
    for name in SUBJECTS:
        count = len(numeric_mutants(subject_named(name).text))
        found += [(name, i * count // min(count, MOST)) for i in range(min(count, MOST))]
    return sample(found, plan)


def run(task: Task) -> Result:
    name, number = str(task.what[0]), int(task.what[1])
    subject = subject_named(name)
    mutant = numeric_mutants(subject.text)[number]
    seen = verdict(subject, mutant.text)
    findings: list[str] = []
    if seen == "tolerance only":
        findings = [f"{name}, line {mutant.line}: {mutant.what}: only the tolerance sees it"]
    return {"seen": seen, "what": mutant.what, "line": mutant.line, "findings": findings}


SWEEP = Sweep(tasks, run, seconds=120.0)
