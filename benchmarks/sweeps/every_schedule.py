"""What is said to hold for every schedule, against schedules: kernels, and their mutants.

A task is a kernel that the passes write (`tests/emulator/generated.py`), or that others have
written, or one of these with a synchronisation deleted or altered. Where its run with checks is
without an error and speaks for every schedule, `schedules` random ones must find no error and give
the same bits.
Of kernels as they are the class is told too: `every_schedule`, `every_value`, and what is open.

Those of others are launches that `FRAGIR_FOREIGN_RECORD=FOLDER python -m pytest tests/foreign`
keeps; `--set launches=FOLDER` takes them instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sweeps.not_needed import launch_of
from fragir.emulator import EmulationError, Report
from fragir.emulator import run as emulate
from fragir.redundancy.statements import synchronising
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator.generated import NAMES, launches
from tests.emulator.mutation import Mutant, mutants
from tests.foreign.judge import copies

#: A limit that is reached counts as a fault: of steps, not of the time that a busy machine takes.
LIMIT = (20_000_000, 600.0)


@dataclass(frozen=True)
class Launch:
    """A kernel, and one launch of it; `arguments` makes fresh ones."""

    text: str
    entry: str | None
    arguments: Callable[[], list[Any]]
    how: dict[str, Any]


def tasks(plan: Plan) -> Sequence[Any]:
    """[kernel, number of the mutant]; -1 is the kernel itself."""
    if folder := str(plan.parameters["launches"]):
        names = sorted(str(file) for file in Path(folder).glob("*.pickle"))
    else:
        names = [f"passes: {name}" for name in NAMES]
    every: list[list[Any]] = []
    for name in names:
        count, most = len(mutants_of(name)), int(plan.parameters["mutants"])
        some = min(count, most)
        every += [[name, -1], *([name, i * count // some] for i in range(some))]
    return sample(every, plan)


@cache
def launch_named(name: str) -> Launch:
    own = name.removeprefix("passes: ")
    if own != name:
        subject = launches(own)[0]
        return Launch(subject.text, None, subject.arguments, launch_of(subject))
    text, entry, arguments, how = pickle.loads(Path(name).read_bytes())
    return Launch(text, entry, lambda: copies(arguments), how)


@cache
def mutants_of(name: str) -> list[Mutant]:
    """Those of the statements of the kernel that is launched."""
    one = launch_named(name)
    kernels = None if one.entry is None else [one.entry]
    lines = {statement.line for statement in synchronising(one.text, kernels)}
    return [mutant for mutant in mutants(one.text) if mutant.line in lines]


def execution(one: Launch, text: str, **way: Any) -> tuple[Report, list[bytes]] | str:
    """The report and the arrays' bytes; the kind of what is wrong."""
    arguments = one.arguments()
    try:
        report = emulate(
            text, one.entry, arguments=arguments, check=True, limit=LIMIT, jobs=1, **one.how, **way
        )
    except EmulationError as error:
        return error.kind
    errors = [found.kind for found in report.findings if found.severity == "error"]
    results = [each.tobytes() for each in arguments if isinstance(each, np.ndarray)]
    return errors[0] if errors else (report, results)


def run(task: Task) -> Result:
    """The class of one kernel or mutant, and the schedules that refute it."""
    name, number = str(task.what[0]), int(task.what[1])
    one, what = launch_named(name), "as it is"
    text = one.text
    if number >= 0:
        mutant = mutants_of(name)[number]
        text, what = mutant.text, f"line {mutant.line}: {mutant.name}"
    first = execution(one, text)
    title = f"{Path(name).stem}, {what}"
    if isinstance(first, str):
        findings = [f"{title}: {first}"] if number < 0 else []
        return {"what": what, "reported": int(number >= 0), "findings": findings}
    report, results = first
    assert report.schedules is not None
    assert report.data is not None
    every = report.schedules.every
    bits = "float-sums" not in report.schedules.assumptions
    findings: list[str] = []
    for schedule in range(int(task.parameters["schedules"]) if every else 0):
        found = execution(one, text, schedule=schedule, asynchrony="random")
        if isinstance(found, str):
            findings.append(f"{title}: {found} under schedule {schedule}")
        elif bits and found[1] != results:
            findings.append(f"{title}: other results under schedule {schedule}")
    of_kernel: Result = {}
    if number < 0:
        of_kernel = {
            "every_schedule": int(every),
            "every_value": int(report.data.every),
            "open": sorted({f"{each.line}: {each.why}" for each in report.schedules.open}),
            "by_value": sorted({f"{each.line}: {each.what}" for each in report.data.open}),
        }
    return {
        "what": what,
        "passes": int(every and number >= 0),
        **of_kernel,
        "findings": findings,
    }


SWEEP = Sweep(tasks, run, {"launches": "", "mutants": 24, "schedules": 20}, seconds=1200.0)
