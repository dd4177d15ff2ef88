"""Kernels that the passes write with one arrival, wait, fence, count, phase or mask changed.

A task is one mutant of a kernel of `tests/emulator/generated.py`, run as `fragir check` does, and
its result compared with the product. Those of `tests/emulator/equivalent.py` must stay silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator.equivalent import Rule, rules_of
from tests.emulator.generated import NAMES, launches
from tests.emulator.mutation import Mutant, mutants, tasks_of, verdict
from tests.emulator.ring_mutation import ring_mutants


@cache
def mutants_of(name: str) -> tuple[Mutant, ...]:
    """Every mutant of a kernel."""
    text = launches(name)[0].text
    return (*mutants(text), *ring_mutants(text))


@cache
def right_ones(name: str) -> dict[Mutant, Rule]:
    """Those that are as right as the kernel, and why."""
    return rules_of(name, mutants_of(name))


def tasks(plan: Plan) -> Sequence[Any]:
    """Those of `tasks_of`."""
    return sample(tasks_of(NAMES, mutants_of), plan)


def run(task: Task) -> Result:
    name, what = str(task.what[0]), task.what[2]
    number = int(task.what[1])
    mutant = mutants_of(name)[number] if number >= 0 else None
    text = None if mutant is None else mutant.text
    every = (verdict(launch, text) for launch in launches(name))
    kinds = next(filter(None, every), list[str]())
    rule = None if mutant is None else right_ones(name).get(mutant)
    findings: list[str] = []
    if mutant is None and kinds:
        findings = [f"{name}: is right, and {kinds} is reported"]
    elif rule is not None and kinds:
        findings = [f"{name}, {what}: said to be right ({rule.why}), and {kinds} is reported"]
    elif mutant is not None and rule is None and not kinds:
        findings = [f"{name}, {what}: nothing is reported"]
    told = "" if rule is None else rule.sentence
    return {"kinds": kinds, "right": told, "reported": int(bool(kinds)), "findings": findings}


SWEEP = Sweep(tasks, run, seconds=120.0)
