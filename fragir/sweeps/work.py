"""One task of a sweep, from its description to a line of the results; runs here or on a worker."""

from __future__ import annotations

import faulthandler
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from fragir.sweeps import catalogue
from fragir.sweeps.attempt import OverTime, call_limited
from fragir.sweeps.catalogue import SweepSource
from fragir.sweeps.definition import Result, Task
from fragir.sweeps.faults import error_text

#: A task that its time limit could not stop ends with its process after so much longer.
GRACE = 5.0


class TaskOutcome(TypedDict):
    """A line of the results. Exactly one of `result` and `failed` is None."""

    task: int
    what: Any
    result: Result | None
    failed: str | None
    seconds: float | None


@dataclass(frozen=True)
class Limits:
    """Of a task: seconds, and for workers of this machine a folder for last words."""

    seconds: float
    folder: str | None = None


def perform(source: SweepSource, task: Task, limits: Limits) -> TaskOutcome:
    """Runs a task in this process; whatever goes wrong is in the outcome."""
    start = time.perf_counter()
    result: Result | None = None
    failed: str | None = None
    try:
        sweep = catalogue.load(source)
        result = call_limited(limits.seconds, lambda: sweep.run(task))
        # What is written is what a resumed run reads.
        result = json.loads(json.dumps(result, allow_nan=False))
        if not isinstance(result, dict):
            raise TypeError(f"run returned no dictionary but {result!r:.100}")
    except OverTime as error:
        result, failed = None, str(error)
    except Exception as error:
        result, failed = None, error_text(error)
    seconds = round(time.perf_counter() - start, 3)
    return TaskOutcome(
        task=task.index, what=task.what, result=result, failed=failed, seconds=seconds
    )


def perform_on_worker(source: SweepSource, task: Task, limits: Limits, alone: bool) -> TaskOutcome:
    """The same in a worker's process, which ends where the limit could not stop the task.

    So does a task that stays in C code. Only where the process runs nothing else (`alone`).
    """
    if not alone:
        return perform(source, task, limits)
    with Path(last_words(limits.folder, task.index) or os.devnull).open("w") as words:
        faulthandler.dump_traceback_later(limits.seconds + GRACE, exit=True, file=words)
        try:
            return perform(source, task, limits)
        finally:
            faulthandler.cancel_dump_traceback_later()


def last_words(folder: str | None, index: int) -> str | None:
    """The file that says where a task was when its process was ended."""
    return None if folder is None else os.path.join(folder, f"{index}.txt")


def stuck_in(folder: str | None, index: int) -> str | None:
    """The innermost frame of a task whose process ended by the time limit; None where it did not.

    Of all threads' stacks the task's is the one that goes through this module.
    """
    path = last_words(folder, index)
    if path is None or not os.path.exists(path):
        return None
    for stack in Path(path).read_text(errors="replace").split("\n\n"):
        frames = [line.strip() for line in stack.splitlines() if line.startswith("  File ")]
        if any(__file__ in frame for frame in frames):
            return frames[0].removeprefix("File ")
    return None


def died_outcome(task: Task, reason: str) -> TaskOutcome:
    """The outcome of a task that no worker survived."""
    return TaskOutcome(task=task.index, what=task.what, result=None, failed=reason, seconds=None)
