"""A run of a sweep: what is left to do, who does it, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fragir.sweeps import catalogue
from fragir.sweeps.catalogue import SweepSource
from fragir.sweeps.definition import Plan, Task
from fragir.sweeps.journal import Journal
from fragir.sweeps.work import Limits, TaskOutcome, perform

Perform = Callable[[SweepSource, Sequence[Task], Limits], Iterator[TaskOutcome]]
"""Runs tasks somewhere; outcomes come in any order."""


def serial(source: SweepSource, tasks: Sequence[Task], limits: Limits) -> Iterator[TaskOutcome]:
    """The tasks one after the other, in this process."""
    return (perform(source, task, limits) for task in tasks)


def head(source: SweepSource, plan: Plan, tasks: int) -> dict[str, Any]:
    """The first line of the results. Another run with an equal one has equal results."""
    import platform
    from importlib.metadata import version

    return {
        "sweep": source.name,
        "digest": source.digest,
        "seed": plan.seed,
        "count": plan.count,
        "parameters": dict(plan.parameters),
        "tasks": tasks,
        "versions": {
            "fragir": version("fragir"),
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "xdsl": version("xdsl"),
        },
    }


@dataclass
class Summary:
    """What came of a sweep. `resumed`: how many of the `done` tasks an earlier run had finished."""

    tasks: int
    done: int = 0
    resumed: int = 0
    failures: dict[int, str] = field(default_factory=dict[int, str])
    findings: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    totals: Counter[str] = field(default_factory=Counter[str])

    def add(self, outcome: TaskOutcome) -> None:
        """Enters an outcome; one that had failed before may be entered again."""
        index, result = outcome["task"], outcome["result"]
        if result is None:
            self.failures[index] = outcome["failed"] or "failed"
            return
        self.failures.pop(index, None)
        self.done += 1
        if result.get("findings"):
            self.findings[index] = [str(each) for each in result["findings"]]
        for name, value in result.items():
            if isinstance(value, int):
                self.totals[name] += value

    @property
    def is_clean(self) -> bool:
        return not self.failures and not self.findings

    def document(self) -> dict[str, Any]:
        """As JSON, in the order of the tasks."""
        return {
            "tasks": self.tasks,
            "done": self.done,
            "resumed": self.resumed,
            "failed": len(self.failures),
            "found": len(self.findings),
            "totals": dict(sorted(self.totals.items())),
            "failures": [{"task": i, "reason": self.failures[i]} for i in sorted(self.failures)],
            "findings": [{"task": i, "findings": self.findings[i]} for i in sorted(self.findings)],
        }


def run(
    source: SweepSource,
    tasks: Sequence[Task],
    journal: Journal,
    limits: Limits,
    performed: Perform = serial,
    progress: Callable[[Summary], None] | None = None,
) -> Summary:
    """Runs the tasks that the journal lacks, or has as failed, and adds them to it."""
    summary = Summary(len(tasks))
    left: list[Task] = []
    for task in tasks:
        earlier = journal.earlier.get(task.index)
        if earlier is not None and earlier["result"] is not None:
            summary.add(earlier)
            summary.resumed += 1
        else:
            left.append(task)
    if progress is not None:
        progress(summary)
    if left:
        for outcome in performed(source, left, limits):
            journal.add(outcome)
            summary.add(outcome)
            if progress is not None:
                progress(summary)
    return summary


def results(name: str, plan: Plan | None = None) -> list[TaskOutcome]:
    """A sweep in this process, without a file: what a test samples. Its own limit of time holds."""
    source = catalogue.find(name)
    sweep = catalogue.load(source)
    given = plan or Plan()
    full = Plan(given.seed, given.count, {**sweep.parameters, **given.parameters})
    return list(serial(source, sweep.all_tasks(full), Limits(sweep.seconds)))
