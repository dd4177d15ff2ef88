"""`fragir sweep`: one of the long runs, on workers of this machine or a Dask cluster."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from fragir.cli.command import (
    FINDING,
    Document,
    Progress,
    command,
    json_option,
    note,
    print_json,
    print_table,
)
from fragir.cli.limits import workers_option
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.sweeps.definition import Sweep, Task
    from fragir.sweeps.journal import Journal
    from fragir.sweeps.runner import Perform, Summary

_SHOWN = 20


EXAMPLES = (
    ("Which sweeps there are:", "fragir sweep"),
    (
        "One, in this process, into a file:",
        "fragir sweep validation --serial --set 'only=mma*m8n8k4*f64*' --set cases=4"
        " -o results.jsonl",
    ),
    (
        "Go on with that file after a kill, on two processes:",
        "fragir sweep validation --set 'only=mma*m8n8k4*f64*' --set cases=4 --resume results.jsonl",
    ),
)


@command(examples=EXAMPLES)
@click.argument("name", required=False)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="So many tasks.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter.")
@click.option(
    "--task", "only", type=click.IntRange(min=0), multiple=True, metavar="N", help="This task only."
)
@click.option("--scheduler", metavar="ADDRESS", help="A Dask cluster, as in tcp://HOST:8786.")
@workers_option("Processes on this machine.")
@click.option("--serial", is_flag=True, help="In this process, without Dask.")
@click.option(
    "--seconds", type=click.FloatRange(0.1, 86400), metavar="S", help="Time limit of a task."
)
@click.option(
    "--memory", type=click.FloatRange(0.1, 4096), metavar="GIB", help="Memory limit of a worker."
)
@click.option("-o", "--output", metavar="FILE", help="Write JSON lines here, not to stdout.")
@click.option("--resume", metavar="FILE", help="Go on with this file of JSON lines, or begin it.")
@json_option
def main(
    name: str | None,
    seed: int,
    count: int | None,
    settings: tuple[str, ...],
    only: tuple[int, ...],
    scheduler: str | None,
    workers: int,
    serial: bool,
    seconds: float | None,
    memory: float | None,
    output: str | None,
    resume: str | None,
    as_json: bool,
) -> int | None:
    """Run many independent tasks: fuzzers, mutants, validation. Without NAME: list them.

    NAME is a sweep of the list, or a Python file with one (docs/sweeps.md).
    """
    if name is None:
        return _list(as_json)
    if scheduler is not None and serial:
        raise click.UsageError("--serial runs the tasks here; leave out --scheduler")
    if scheduler is not None and memory is not None:
        raise click.UsageError(
            "`dask worker --memory-limit` says the memory of a cluster's workers"
        )
    if output is not None and resume is not None:
        raise click.UsageError("--resume FILE also writes to FILE; leave out -o")
    from fragir.sweeps import catalogue, runner
    from fragir.sweeps.definition import GIB, Plan
    from fragir.sweeps.work import Limits

    source = catalogue.find(name)
    sweep = catalogue.load(source)
    plan = Plan(seed, count, _parameters(sweep, settings))
    tasks = sweep.all_tasks(plan)
    head = runner.head(source, plan, len(tasks))
    chosen = _chosen_tasks(tasks, only)
    limits = Limits(seconds or sweep.seconds)
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        journal = stack.enter_context(
            contextlib.closing(_journal(head, output, resume, quiet=as_json))
        )
        perform: Perform = runner.serial
        if not serial and _has_work_left(chosen, journal):
            from fragir.sweeps import cluster

            size = int(memory * GIB) if memory is not None else sweep.memory
            pool = stack.enter_context(
                cluster.local(workers, size)
                if scheduler is None
                else cluster.remote(scheduler, source)
            )
            perform = pool.perform
        progress = stack.enter_context(Progress(source.name))
        summary = runner.run(
            *(source, chosen, journal, limits, perform),
            lambda now: progress((now.done + len(now.failures)) / max(1, now.tasks)),
        )
    document = {
        **{key: head[key] for key in ("sweep", "seed", "count", "parameters", "versions")},
        **summary.document(),
        "seconds": round(time.monotonic() - started, 3),
    }
    if as_json:
        print_json(document)
    else:
        _show(summary, document, to_stdout=bool(output or resume))
    return None if summary.is_clean else FINDING


def _list(as_json: bool) -> None:
    from fragir.sweeps import catalogue

    found = [(name, catalogue.about(catalogue.find(name))) for name in catalogue.names()]
    if as_json:
        print_json([{"name": name, "about": about} for name, about in found])
    else:
        print_table(["sweep", "what it does"], found)


def _parameters(
    sweep: Sweep, settings: tuple[str, ...]
) -> dict[str, bool | int | float | str | None]:
    """The parameters of a sweep with what the user sets. FragirError for an unknown one."""
    found = dict(sweep.parameters)
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise click.UsageError(f"--set {setting}: write NAME=VALUE")
        if name not in found:
            hint = f"it has {', '.join(found)}" if found else "it has none"
            raise FragirError(f"this sweep has no parameter {name!r}", hint=hint)
        found[name] = _typed_value(name, value, sweep.parameters)
    return found


def _typed_value(name: str, value: str, defaults: Mapping[str, object]) -> bool | int | float | str:
    default = defaults[name]
    if isinstance(default, bool):
        if value not in ("true", "false"):
            raise FragirError(f"{name} is true or false, not {value!r}")
        return value == "true"
    if isinstance(default, int | float):
        try:
            return type(default)(value)
        except (ValueError, OverflowError):
            raise FragirError(f"{name} is a number, as in {default}, not {value!r}") from None
    return value


def _chosen_tasks(tasks: list[Task], only: tuple[int, ...]) -> list[Task]:
    """All tasks, or those asked for. FragirError for one that there is not."""
    for index in only:
        if index >= len(tasks):
            raise FragirError(f"there is no task {index}", hint=f"they are 0 to {len(tasks) - 1}")
    return [tasks[index] for index in sorted(set(only))] if only else tasks


def _has_work_left(tasks: list[Task], journal: Journal) -> bool:
    """Whether there is anything to do that is worth starting workers for."""
    return any((journal.earlier.get(t.index) or {"result": None})["result"] is None for t in tasks)


def _journal(
    head: dict[str, object], output: str | None, resume: str | None, *, quiet: bool
) -> Journal:
    from fragir.sweeps.journal import Journal

    if resume is not None:
        journal = Journal.resume(resume, head)
        if journal.earlier:
            done = sum(each["result"] is not None for each in journal.earlier.values())
            note(f"{done} of {head['tasks']} tasks taken over from {resume}")
        return journal
    if output is not None and output != "-":
        return Journal.create(output, head)
    return Journal(None) if quiet else Journal.to_stdout(head)


def _show(summary: Summary, document: Document, *, to_stdout: bool) -> None:
    """What was found, in words. Where stdout has the lines of the results, on stderr."""
    say = print if to_stdout else note
    lines = [f"task {i}: failed: {reason}" for i, reason in sorted(summary.failures.items())]
    lines += [
        f"task {i}: {each}" for i, found in sorted(summary.findings.items()) for each in found
    ]
    for line in lines[:_SHOWN]:
        say(line)
    if len(lines) > _SHOWN:
        say(f"... and {len(lines) - _SHOWN} more")
    totals = "".join(f", {value} {name}" for name, value in document["totals"].items())
    say(
        f"{summary.done} of {summary.tasks} tasks done{totals}; {len(summary.findings)} found "
        f"something, {len(summary.failures)} failed; {document['seconds']:.1f} s"
    )
