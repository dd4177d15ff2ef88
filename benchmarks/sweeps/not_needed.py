"""What kernels that the passes write do not need, against schedules and sentences of the ISA.

A task is a kernel of `tests/emulator/generated.py`. What is not needed in any of its launches, one
statement at a time, must be right by a sentence of `tests/emulator/equivalent.py`; without all
that can go at once the kernel is run under `schedules` more schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fragir.emulator import EmulationError
from fragir.emulator import run as emulate
from fragir.errors import FragirError
from fragir.redundancy import not_needed
from fragir.redundancy.statements import synchronising, without
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator.equivalent import rules_of
from tests.emulator.generated import NAMES, launches
from tests.emulator.mutation import Subject, mutants


def tasks(plan: Plan) -> Sequence[Any]:
    """The kernels, by name."""
    return sample(list(NAMES), plan)


def launch_of(subject: Subject) -> dict[str, Any]:
    """How it is launched, without its arguments."""
    return {
        "grid": subject.blocks,
        "block": (subject.block,),
        "cluster": (subject.cluster,),
        "shared": subject.shared,
    }


def refuted(subject: Subject, text: str, schedule: int) -> str:
    """What a schedule shows of a text; empty where nothing is wrong."""
    arguments = subject.arguments()
    how: dict[str, Any] = {**launch_of(subject), "schedule": schedule, "asynchrony": "random"}
    try:
        report = emulate(text, arguments=arguments, check=True, **how)
    except EmulationError as error:
        return error.kind
    if any(one.severity == "error" for one in report.findings):
        return report.findings[0].kind
    assert subject.result is not None
    number, expected = subject.result
    return "" if np.array_equal(arguments[number], expected) else "wrong result"


def run(task: Task) -> Result:
    """What one kernel does not need."""
    name = str(task.what)
    subjects = launches(name)
    text = subjects[0].text
    try:
        calls = [{**launch_of(one), "arguments": one.arguments} for one in subjects]
        found = not_needed(text, calls)
    except FragirError as error:
        return {"refused": error.sentence, "findings": []}
    right = {one.line: rule for one, rule in rules_of(name, mutants(text)).items()}
    singly = [one for one in found.statements if one.verdict == "not needed"]
    findings = [
        f"{name}: line {one.line}, {one.statement}: no sentence says that it can go"
        for one in singly
        if one.line not in right
    ]
    every = list(synchronising(text))
    left = without(text, [every[index] for index in found.together])
    for subject in subjects:
        for schedule in range(int(task.parameters["schedules"])):
            if wrong := refuted(subject, left, schedule):
                findings.append(f"{name}: {wrong} under schedule {schedule} without what can go")
    return {
        "statements": len(found.statements),
        "not_needed": len(singly),
        "together": len(found.together),
        "findings": findings,
    }


SWEEP = Sweep(tasks, run, parameters={"schedules": 20}, seconds=1200.0)
