"""`fragir run --check`: the kernel with every check on, under the schedules of `fragir check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragir.cli.check import DEPENDS, schedules
from fragir.cli.command import Progress
from fragir.cli.launch import finding_json, stopped, whole
from fragir.cli.limit import Budget
from fragir.lowering_notes import origin_of

if TYPE_CHECKING:
    from fragir.cli.trial import Trial
    from fragir.emulator import Finding

SEEDS = 2
"""Random schedules beside the regular ones, as `fragir check` has them unless told."""


def examine(trial: Trial) -> list[dict[str, Any]]:
    """The findings of all runs, each once, at the program's lines where they are known."""
    from fragir.emulator import EmulationError
    from fragir.emulator.report import gathered

    found_in: list[list[Finding]] = []
    first: list[Any] | None = None
    budget = Budget(trial.limit)
    runs = list(schedules(SEEDS))
    with Progress("checking") as progress:
        for index, (schedule, asynchrony) in enumerate(runs):
            if budget.spent:
                text = f"{index} of {len(runs)} runs were done in {trial.limit[1]:g} seconds"
                found_in.append([whole("limit", f"{text}, the limit", trial.file)])
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
                found = [*error.report.findings, stopped(error)]
            else:
                if report is None:  # nothing to run
                    break
                found = report.findings
                if first is None:
                    first = results
                elif trial.differ(first, results):
                    way = f"schedule {schedule}, " if schedule is not None else ""
                    names = ", ".join(trial.differ(first, results))
                    text = f"{names} differs between the regular schedule and {way}async"
                    found = [*found, whole(DEPENDS, f"{text} {asynchrony}", trial.file)]
            found_in.append(found)
            progress((index + 1) / len(runs))
    return [_placed(trial, one) for one in gathered(*found_in)]


def _placed(trial: Trial, found: Finding) -> dict[str, Any]:
    """A finding at the program's line; what it says of the PTX is the statement there.

    What stops one of several kernels has none: its line does not say of which.
    """
    finding: dict[str, Any] = {**finding_json(found), "file": trial.file, "line": None, "col": None}
    line = found.line
    parts = trial.kernel.parts
    at = next(iter(found.places), "")
    if not at and line is not None and len(parts) == 1:
        at = str(origin_of(line, parts[0].origins) or "")
    if at:
        file, *numbers = at.rsplit(":", 2)
        finding |= {"file": file, **dict(zip(("line", "col"), map(int, numbers), strict=True))}
    if line is not None and len(parts) == 1:
        statement = parts[0].ptx.split("\n")[line - 1].strip()
        finding["message"] += f" (PTX: {statement})"
    return finding
