"""`fragir validate`: probes of every instruction, on the emulator or on a GPU, and a report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from fragir.cli.common import FINDING, Progress, command, json_option, note, print_json, print_table
from fragir.cli.files import read_text, write_output
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.validation.probes import Outcome
    from fragir.validation.report import Job, Report

_SAVE_SECONDS = 10.0


@command()
@click.option(
    "--on",
    "place",
    type=click.Choice(["emulator", "gpu"]),
    default="emulator",
    show_default=True,
    help="What runs the probes; a GPU's bits are also compared with the emulator's.",
)
@click.option("--only", metavar="PATTERN", help="Only mnemonics like this, as in 'mma*f16*'.")
@click.option("--target", metavar="SM", help="On the emulator: this machine, for all of them.")
@click.option("--cases", type=click.IntRange(min=1), default=32, show_default=True, metavar="N")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random probes.")
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

    One-hot and random probes of every mma, wgmma and matrix copy, through the PTX of `fragir emit`.
    """
    if resume and report is None:
        raise click.UsageError("--resume needs --report FILE")
    if place == "gpu" and target is not None:
        raise click.UsageError("the GPU says the target; leave out --target")
    from fragir.isa.targets import known
    from fragir.validation.report import Report, jobs

    if target is not None:
        known(target)
    head = _head(place, cases, seed, target)
    found = jobs(only, head["target"])
    results = Report(head)
    if resume and report is not None:
        taken = _resumed(results, report)
        note(f"{taken} results taken over from {report}")
    try:
        _run(found, results, report)
    finally:  # an interrupted run can be resumed
        if report is not None:
            _save(results, report)
    document = results.document()
    if as_json:
        print_json(document)
    else:
        _show(document)
    return FINDING if document["summary"]["failed"] else None


def _head(place: str, cases: int, seed: int, target: str | None) -> dict[str, Any]:
    """Where the probes run and with what: the first part of the report."""
    from datetime import UTC, datetime
    from importlib.metadata import version

    from fragir.toolchain.find import PTXAS, every

    device: dict[str, Any] | None = None
    if place == "gpu":
        from fragir.toolchain import driver
        from fragir.validation.probes import gpu_target

        reason = driver.available()
        if reason is not None:
            raise FragirError(f"no GPU can be used: {reason}", hint="--on emulator needs none")
        gpu = driver.gpu()
        device = {"name": gpu.name, "target": gpu.target, "driver": gpu.driver}
        target = gpu_target(gpu.target)
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


def _resumed(results: Report, path: str) -> int:
    from pathlib import Path

    return results.resume(read_text(path, "a report"), path) if Path(path).exists() else 0


def _run(found: list[Job], results: Report, path: str | None) -> None:
    """Every job that has no result yet; the report is saved now and then."""
    import hashlib

    from fragir.isa.emit import emit_ptx

    saved = time.monotonic()
    with Progress("probing") as progress:
        for index, job in enumerate(found):
            progress(index / len(found))
            ptx = emit_ptx(job.instruction, job.target, job.variant)
            if results.is_done(job, hashlib.sha256(ptx.encode()).hexdigest()):
                continue
            try:
                results.add(job, _outcome(job, results.head))
            except FragirError as error:
                results.add(job, None, error.sentence)
                if results.head["on"] == "gpu" and "GPU failed" in error.message:
                    note(f"stopped: {job.instruction.mnemonic}: {error.sentence}")
                    return
            if path is not None and time.monotonic() - saved > _SAVE_SECONDS:
                _save(results, path)
                saved = time.monotonic()


def _outcome(job: Job, head: dict[str, Any]) -> Outcome:
    from fragir.validation import probes

    on_gpu = head["on"] == "gpu"
    return probes.probe(
        job.instruction,
        job.variant,
        job.target,
        probes.gpu_runner if on_gpu else probes.emulator_runner,
        against=probes.emulator_runner if on_gpu else None,
        cases=head["cases"],
        seed=head["seed"],
    )


def _save(results: Report, path: str) -> None:
    import json

    write_output(path, json.dumps(results.document(), indent=1) + "\n")


def _show(document: dict[str, Any]) -> None:
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
