"""`fragir validate`: probes of every instruction, on the emulator or on a GPU, and a report."""

from __future__ import annotations

import time
from collections.abc import Sequence
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
from fragir.cli.files import check_writable, read_text, write_output

if TYPE_CHECKING:
    from fragir.sweeps.definition import Task
    from fragir.validation.report import ValidationReport

_SAVE_SECONDS = 10.0


EXAMPLES = (
    (
        "Every m16n8k16 product of f16 into f32, on the emulator:",
        "fragir validate --only 'mma*m16n8k16*f16.f16.f32' --cases 8",
    ),
    (
        "What is only assumed of the copy engine:",
        "fragir validate --only 'tma-*'",
    ),
    (
        "With a report that a later run goes on with:",
        "fragir validate --only 'mma*m8n8k4*f64*' --cases 8 --report probes.json --resume",
    ),
)


@command(examples=EXAMPLES)
@click.option(
    "--on",
    "place",
    type=click.Choice(["emulator", "gpu"]),
    default="emulator",
    show_default=True,
    help="What runs the probes; a GPU's bits are also compared with the emulator's.",
)
@click.option("--only", metavar="PATTERN", help="Only mnemonics or facts like this: 'mma*f16*'.")
@click.option("--target", metavar="SM", help="On the emulator: this machine, for all of them.")
@click.option("--cases", type=click.IntRange(1, 10_000), default=32, show_default=True, metavar="N")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Of the random probes.",
)
@click.option("--report", metavar="FILE", help="Keep the results here, as JSON.")
@click.option("--resume", is_flag=True, help="Go on with the report: what is in it is not run.")
@json_option
def main(
    place: str,
    only: str | None,
    target: str | None,
    cases: int,
    seed: int,
    report: str | None,
    resume: bool,
    as_json: bool,
) -> int | None:
    """Probe instructions on the emulator or a GPU, with products known exactly.

    One-hot and random probes of every mma, wgmma and matrix copy, through the PTX of `fragir emit`;
    then what is only assumed of the machine, as how the copy engine writes the ends of rows.
    """
    if resume and report is None:
        raise click.UsageError("--resume needs --report FILE")
    if place == "gpu" and target is not None:
        raise click.UsageError("the GPU says the target; leave out --target")
    from fragir.sweeps.definition import Plan
    from fragir.validation.report import SWEEP, ValidationReport

    parameters = {"on": place, "only": only, "target": target, "cases": cases}
    facts = _facts(only)
    only_facts = bool(facts) and only is not None
    tasks = [] if only_facts else SWEEP.all_tasks(Plan(seed, None, parameters))
    if report is not None:
        check_writable(report)
    head = _head(place, cases, seed, target)
    results = ValidationReport(head)
    if resume and report is not None:
        taken = _resume_count(results, report)
        note(f"{taken} results taken over from {report}")
    try:
        _run(tasks, results, report)
        _ask(facts, results)
    finally:  # an interrupted run can be resumed
        if report is not None and results.entries:  # one of nothing replaces none
            _save(results, report)
    document = results.document()
    if as_json:
        print_json(document)
    else:
        _show(document)
    otherwise = any(fact["found"] != fact["assumed"] for fact in results.facts)
    return FINDING if document["summary"]["failed"] or otherwise else None


def _facts(only: str | None) -> list[str]:
    """The facts of a machine that are asked: all, or those that the pattern names."""
    from fnmatch import fnmatchcase

    from fragir.validation import facts

    return [name for name in facts.names() if only is None or fnmatchcase(name, only)]


def _ask(names: Sequence[str], results: ValidationReport) -> None:
    """What is only assumed of the machine; a GPU is asked what it can run, each in its process."""
    from fragir.validation import facts

    if results.head["on"] == "emulator":
        results.facts = [{"name": n, **facts.ask_machine(n, facts.on_emulator)} for n in names]
        return
    target: str = results.head["target"]
    number = int("".join(filter(str.isdigit, target)))
    some = [name for name in names if facts.lowest_target(name) <= number]
    results.facts = [{"name": name, **facts.asked_apart(name, target)} for name in some]


def _head(place: str, cases: int, seed: int, target: str | None) -> Document:
    """Where the probes run and with what: the first part of the report."""
    from datetime import UTC, datetime
    from importlib.metadata import version

    from fragir.toolchain.find import PTXAS, every

    device: Document | None = None
    if place == "gpu":
        from fragir.toolchain import driver
        from fragir.validation.report import target_of_gpu

        target = target_of_gpu()
        gpu = driver.gpu()
        device = {"name": gpu.name, "target": gpu.target, "driver": gpu.driver}
    tools = every(PTXAS)
    return {
        "on": place,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "fragir": version("fragir"),
        "device": device,
        "ptxas": tools[0].version if tools else None,
        "target": target,
        "cases": cases,
        "seed": seed,
    }


def _resume_count(results: ValidationReport, path: str) -> int:
    from pathlib import Path

    return results.resume(read_text(path, "a report"), path) if Path(path).exists() else 0


def _run(tasks: Sequence[Task], results: ValidationReport, path: str | None) -> None:
    """Every kernel that has no result yet; the report is saved now and then."""
    from fragir.sweeps import catalogue, runner
    from fragir.sweeps.work import Limits
    from fragir.validation import report
    from fragir.validation.report import entry_of

    left = [
        (task, job)
        for task, job in ((task, report.job_of(task)) for task in tasks)
        if job.key not in results.entries or not results.is_done(job, report.kernel_hash(job))
    ]
    saved = time.monotonic()
    source = catalogue.find("validation")
    outcomes = runner.serial(source, [task for task, _ in left], Limits(report.SWEEP.seconds))
    with Progress("probing") as progress:
        for number, ((_, job), outcome) in enumerate(zip(left, outcomes, strict=True)):
            progress((len(tasks) - len(left) + number + 1) / len(tasks))
            result = outcome["result"]
            entry = result["entry"] if result else entry_of(job, None, outcome["failed"])
            results.add(job, entry)
            if results.head["on"] == "gpu" and "GPU failed" in (entry["error"] or ""):
                note(f"stopped: {job.instruction.mnemonic}: {entry['error']}")
                return
            if path is not None and time.monotonic() - saved > _SAVE_SECONDS:
                _save(results, path)
                saved = time.monotonic()


def _save(results: ValidationReport, path: str) -> None:
    import json

    write_output(path, json.dumps(results.document(), indent=1) + "\n")


def _show(document: Document) -> None:
    rows = [
        [
            *(e["mnemonic"], e["variant"], e["target"], sum(e["cases"].values()), e["mismatches"]),
            e["error"] or e["first"] or "",
        ]
        for e in document["instructions"]
        if e["mismatches"] or e["error"]
    ]
    if rows:
        columns = ["mnemonic", "A from", "target", "cases", "mismatches", "first"]
        print_table(columns, rows)
    summary = document["summary"]
    print(
        f"{summary['instructions']} kernels, {summary['cases']} cases, "
        f"{summary['mismatches']} mismatches, {summary['failed']} kernels failed"
    )
    if facts := document["facts"]:
        wrong = [fact for fact in facts if fact["found"] != fact["assumed"]]
        for fact in wrong:
            print(f"{fact['name']}: {fact['asks']} {fact['found']} (not: {fact['assumed']})")
        print(f"{len(facts)} facts of the machine, {len(wrong)} otherwise than assumed")
