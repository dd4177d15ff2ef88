"""`fragir run --check`: the kernel with every check on, under the schedules of `fragir check`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fragir.cli.check import DEPENDS, schedules, stopped
from fragir.cli.command import Progress
from fragir.cli.launch import finding_json
from fragir.cli.limit import Budget

if TYPE_CHECKING:
    from fragir.cli.trial import Trial

SEEDS = 2
"""Random schedules beside the regular ones, as `fragir check` has them unless told."""


def examine(trial: Trial) -> list[dict[str, Any]]:
    """The findings of all runs, each once, at the program's lines where they are known."""
    from fragir.emulator import EmulationError

    findings: dict[tuple[Any, ...], dict[str, Any]] = {}
    places = _places(trial)
    first: list[Any] | None = None
    budget = Budget(trial.limit)
    runs = list(schedules(SEEDS))
    with Progress("checking") as progress:
        for index, (schedule, asynchrony) in enumerate(runs):
            if budget.spent:
                text = f"{index} of {len(runs)} runs were done in {trial.limit[1]:g} seconds"
                findings["limit",] = _whole(trial, "limit", f"{text}, the limit")
                break
            progress.say(f"checking, run {index + 1} of {len(runs)}")
            results = trial.copies()
            try:
                report = trial.run_once(
                    results,
                    {
                        "check": True,
                        "schedule": schedule,
                        "asynchrony": asynchrony,
                        "progress": progress,
                        "heartbeat": progress.beat,
                        "target": trial.target,
                        "limit": budget.next(),
                        "jobs": trial.jobs,
                    },
                )
            except EmulationError as error:
                if error.report is None:
                    raise  # the launch is wrong, not the program
                found = [*map(finding_json, error.report.findings), stopped(error)]
            else:
                if report is None:  # nothing to run
                    break
                found = [finding_json(one) for one in report.findings]
                if first is None:
                    first = results
                elif trial.differ(first, results):
                    way = f"schedule {schedule}, " if schedule is not None else ""
                    names = ", ".join(trial.differ(first, results))
                    text = f"{names} differs between the regular schedule and {way}async"
                    found.append(_whole(trial, DEPENDS, f"{text} {asynchrony}"))
            for one in found:
                key = tuple(one[word] for word in ("kind", "file", "line", "col"))
                if findings.setdefault(key, one)["severity"] == "letter":
                    findings[key] = one  # one run may show that it is worse
            progress((index + 1) / len(runs))
    return [_placed(trial, places, one) for one in findings.values()]


def _whole(trial: Trial, kind: str, message: str) -> dict[str, Any]:
    """A finding without a line."""
    words = dict.fromkeys(("line", "col", "warp", "lane", "address"))
    return {"kind": kind, "message": message, "file": trial.file, "severity": "error"} | words


def _places(trial: Trial) -> list[tuple[int, int] | None]:
    """Line and column of the program that each line of the PTX was made of.

    Of several kernels, whose lines findings do not tell apart, none.
    """
    if len(trial.kernel.parts) != 1:
        return []
    found: list[tuple[int, int] | None] = []
    at: tuple[int, int] | None = None
    for line in trial.kernel.ptx.split("\n"):
        loc = re.match(r"\s*\.loc\s+1\s+(\d+)\s+(\d+)", line)
        if loc is not None:
            at = int(loc[1]), int(loc[2])
        elif line.startswith(("}", "{")):
            at = None
        found.append(at)
    return found


def _placed(
    trial: Trial, places: list[tuple[int, int] | None], finding: dict[str, Any]
) -> dict[str, Any]:
    """A finding at the program's line; what it says of the PTX is the statement there."""
    number: int | None = finding["line"]
    if number is None or not 0 < number <= len(places):
        return finding | {"file": trial.file, "line": None, "col": None}
    line, col = places[number - 1] or (None, None)
    text: str = trial.kernel.ptx.split("\n")[number - 1]
    message = f"{finding['message']} (PTX: {text.strip()})"
    return finding | {"file": trial.file, "line": line, "col": col, "message": message}
