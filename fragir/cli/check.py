"""`fragir check`: runs a PTX kernel with every check on, under several schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

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
from fragir.cli.files import import_object
from fragir.cli.launch import (
    Asynchrony,
    LaunchOptions,
    emulate,
    finding_json,
    finding_without_line,
    grid_of,
    launch_options,
    load,
    note_lone_block,
    print_findings,
    print_notes,
    read_module,
    stop_finding,
)
from fragir.cli.limits import Budget
from fragir.emulator.report import DEPENDS
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.cli.arguments import Loaded
    from fragir.emulator import Finding, FragmentUse
    from fragir.emulator.checks.selection import MakesCheck
    from fragir.emulator.report import ArrayValues, Schedules
    from fragir.ptx import Module

EXAMPLES = (
    (
        "Races, missing waits, uninitialised values, under eight schedules:",
        "python -c \"import numpy; numpy.save('x.npy', numpy.zeros(32, numpy.uint32))\"",
    ),
    ("", "fragir check examples/store.ptx --arg out:x.npy --arg u32:7 --seeds 6"),
    (
        "Bank conflicts and uncoalesced accesses too:",
        "fragir check examples/store.ptx --arg out:x.npy --arg u32:7 --performance",
    ),
)


@command(examples=EXAMPLES)
@launch_options
@click.option(
    "--seeds",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="Random schedules to try beside the regular ones.",
)
@click.option(
    "--fragments",
    is_flag=True,
    help="Say which elements of which buffer arrive in A, B and C of every tensor-core"
    " instruction, and find those in the wrong place.",
)
@click.option(
    "--performance",
    is_flag=True,
    help="Bank conflicts and uncoalesced accesses are findings too.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="What is wrong by the text of the PTX ISA alone makes the exit code 1 too.",
)
@click.option(
    "--with",
    "further",
    multiple=True,
    metavar="MODULE:CLASS",
    help="A check of one's own beside ours, a class of fragir.emulator.Hooks.",
)
@click.option(
    "--structure",
    multiple=True,
    metavar="NAME",
    help="A parameter (its name, or its number from 0) or variable whose contents are part of the"
    " launch, as sizes and page tables are, not data.",
)
@click.option(
    "--not-needed",
    "asks_need",
    is_flag=True,
    help="Say which barriers, fences and waits this launch could do without, each judged by a run"
    " without it.",
)
@json_option
def main(
    seeds: int,
    fragments: bool,
    performance: bool,
    strict: bool,
    further: tuple[str, ...],
    structure: tuple[str, ...],
    asks_need: bool,
    as_json: bool,
    **options: Any,
) -> int | None:
    """Emulate a PTX kernel with every check on, under several schedules.

    The first schedule is the regular one, with asynchronous work retiring as late as it may;
    then as early as it may; then random ones. No file is written.
    """
    launch = LaunchOptions(**options)
    module, arguments = read_module(launch), load(launch)
    note_lone_block(launch, module)
    uses: list[FragmentUse] | None = [] if fragments else None
    checks = [import_object(text, "--with takes MODULE:CLASS") for text in further]
    examined = examine(launch, module, arguments, seeds, uses, checks, structure)
    findings, remarks, instructions, of_schedules, of_data = examined
    remarks = remarks + _judged_by_ptxas(launch, module, performance)
    listed = [r for r in remarks if performance or r.kind == "fragment"]
    findings, remarks = findings + listed, [r for r in remarks if r not in listed]
    if remarks:
        number = f"{len(remarks)} remark{'s' if len(remarks) > 1 else ''}"
        note(f"{number} on performance; --performance lists them")
    counting = {"error", *(["letter"] if strict else ()), *(["remark"] if performance else ())}
    exit_code = FINDING if any(f.severity in counting for f in findings) else None
    need = _need(launch, module, arguments) if asks_need else None
    if as_json:
        found = list(map(finding_json, findings))
        document: Document = {"findings": found, "instructions": instructions}
        if of_schedules is not None:
            document["schedules"] = schedules_json(of_schedules, seeds + 2)
        if of_data is not None:
            document["data"] = data_json(of_data)
            document["structure"] = of_data.structure
        if uses is not None:
            document["fragments"] = [asdict(use) for use in uses]
        if need is not None:
            document["not_needed"] = need
        print_json(document)
        return exit_code
    if uses:
        print_table(_FRAGMENT_COLUMNS, [_fragment_row(use) for use in uses])
    if findings:
        print_findings(list(map(finding_json, findings)))
    else:
        print(f"no findings in {seeds + 2} runs, {instructions} warp instructions in the first")
    if not any(f.severity == "error" for f in findings):
        if of_schedules is not None:
            print_schedules(schedules_json(of_schedules, seeds + 2))
        if of_data is not None:
            _print_data(of_data)
    if need is not None:
        print_need(need)
    if not strict and exit_code is None and any(f.severity == "letter" for f in findings):
        note("wrong by the letter of the PTX ISA only; --strict makes these count")
    return exit_code


def schedules_json(found: Schedules, runs: int) -> Document:
    return {
        "judged": "every" if found.every else f"{runs} that ran",
        "open": [{"line": one.line, "why": one.why} for one in found.open],
        "assumptions": found.assumptions,
    }


def print_schedules(found: Document) -> None:
    """For which schedules this holds, with these values."""
    if found["judged"] == "every":
        assumed = f" (assumed: {', '.join(found['assumptions'])})" if found["assumptions"] else ""
        print(f"schedules: every{assumed}")
        return
    print(f"schedules: the {found['judged']}; up to the schedule are")
    print_table(("line", "why"), [[str(one["line"]), one["why"]] for one in found["open"]])


def data_json(found: ArrayValues) -> str | Document:
    if found.every:
        return "every value"
    return {"these": True, "open": [asdict(one) for one in found.open]}


def _print_data(found: ArrayValues) -> None:
    """For which contents of the arrays this holds, at these sizes."""
    taken = f" (structure: {', '.join(found.structure)})" if found.structure else ""
    if found.every:
        print(f"data: every value{taken}")
        return
    print(f"data: these values{taken}; what depends on them is")
    rows = [[str(one.line), one.what, one.argument or ""] for one in found.open]
    print_table(("line", "what", "argument"), rows)


def _need(launch: LaunchOptions, module: Module, arguments: Loaded) -> Document:
    """What of the synchronisation the launch does not need, or why that cannot be said."""
    from fragir.redundancy import not_needed

    text = module.source.text if module.source is not None else ""
    if launch.then:
        return {"refused": "what is not needed is asked of one grid, without --then"}
    call = {
        **grid_of(launch),
        "target": launch.target,
        "ptxas": launch.ptxas,
        "arguments": arguments.values,
        "variables": lambda: arguments.values().variables,
    }
    try:
        with Progress("leaving out") as progress:
            found = not_needed(text, [call], seconds=launch.limit[1], progress=progress)
    except FragirError as error:
        return {"refused": error.sentence}
    return found.document()


def print_need(found: Document) -> None:
    """A table of the statements that are not needed, and what that takes for granted."""
    if "refused" in found:
        print(f"not needed: not judged: {found['refused']}")
        return
    statements = found["statements"]
    times = "this launch" if found["launches"] == 1 else f"these {found['launches']} launches"
    rows = [
        (str(one["line"]), one["statement"], "yes" if index in found["together"] else "")
        for index, one in enumerate(statements)
        if one["verdict"] == "not needed"
    ]
    count = len(statements)
    if not rows:
        print(f"not needed in {times}: none of {count} statements that synchronise")
    else:
        print(f"not needed in {times}, one at a time: {len(rows)} of {count} that synchronise")
        print_table(("line", "statement", "all together"), rows)
    for verdict in ("not executed", "not judged"):
        lines = [str(one["line"]) for one in statements if one["verdict"] == verdict]
        if lines:
            print(f"{verdict}, so nothing is said of: line {', '.join(lines)}")
    for name, words in found["assumptions"].items() if rows else ():
        print(f"  {name}: {words}")


_FRAGMENT_COLUMNS = ("line", "operand", "shape", "buffer", "[0,0]", "row", "column", "times", "")


def _fragment_row(use: FragmentUse) -> list[str]:
    """One line of the table: strides and offsets in bytes."""
    first = f"{use.first}" if use.first == use.last else f"{use.first}..{use.last}"
    return [
        str(use.line),
        use.operand,
        f"{use.shape[0]}x{use.shape[1]}",
        use.buffer,
        first,
        f"{use.row_stride / 8:+g}",
        f"{use.column_stride / 8:+g}",
        str(use.count),
        "" if use.consistent else "no matrix",
    ]


class Examined(NamedTuple):
    """Findings of all runs, each once, remarks, the warp instructions of the first run, and for
    which schedules and values that one speaks; None where it was stopped."""

    findings: list[Finding]
    remarks: list[Finding]
    instructions: int
    schedules: Schedules | None
    data: ArrayValues | None


def examine(
    launch: LaunchOptions,
    module: Module,
    arguments: Loaded,
    seeds: int,
    uses: list[FragmentUse] | None = None,
    checks: Sequence[MakesCheck] = (),
    structure: Sequence[str] = (),
) -> Examined:
    """What all runs show.

    `uses`: where the fragments of the first run go, if they are wanted; `checks`: beside ours;
    `structure`: what `--structure` says.
    """
    from fragir.emulator import EmulationError
    from fragir.emulator.report import gather

    runs: list[list[Finding]] = []
    remarks: list[Finding] = []
    instructions, first, of_schedules, of_data = 0, None, None, None
    declared = [int(name) if name.isdecimal() else name for name in structure]
    budget = Budget(launch.limit)
    with Progress("checking") as progress:
        for index, (schedule, asynchrony) in enumerate(schedules(seeds)):
            if budget.is_spent:
                runs.append([_out_of_time(launch, index, seeds + 2)])
                break
            progress.say(f"checking, run {index + 1} of {seeds + 2}")
            values = arguments.values()
            try:
                result = emulate(
                    launch,
                    module,
                    values,
                    check=True,
                    checks=checks,
                    fragments=uses is not None and index == 0,
                    schedule=schedule,
                    asynchrony=asynchrony,
                    progress=progress,
                    limit=budget.next(),
                    structure=None if index else declared,
                )
            except EmulationError as error:
                if error.report is None:
                    raise  # the launch is wrong, not the kernel
                found = [*error.report.findings, stop_finding(error)]
                instructions = instructions or error.report.statistics.total
            else:
                found = result.findings
                if index == 0:
                    print_notes(result)
                    of_schedules, of_data = result.schedules, result.data
                if uses is not None:
                    uses += result.fragments
                remarks = remarks or result.remarks
                if first is None:
                    instructions, first = result.statistics.total, arguments.results(values)
                elif first != (results := arguments.results(values)):
                    found = [*found, _depends(launch, first, results, schedule, asynchrony)]
            runs.append(found)
            progress((index + 1) / (seeds + 2))
    return Examined(gather(*runs), remarks, instructions, of_schedules, of_data)


def schedules(seeds: int) -> Iterator[tuple[int | None, Asynchrony]]:
    """The schedules to try."""
    yield None, "late"
    yield None, "early"
    for seed in range(1, seeds + 1):
        yield seed, "random"


def _out_of_time(launch: LaunchOptions, done: int, wanted: int) -> Finding:
    message = f"{done} of {wanted} runs were done in {launch.limit[1]:g} seconds, the limit"
    return finding_without_line("limit", message, launch.ptx)


def _depends(
    launch: LaunchOptions,
    first: dict[str, bytes],
    other: dict[str, bytes],
    schedule: int | None,
    asynchrony: Asynchrony,
) -> Finding:
    names = ", ".join(name for name in first | other if first.get(name) != other.get(name))
    way = f"schedule {schedule}, " if schedule is not None else ""
    message = f"{names} differs between the regular schedule and {way}async {asynchrony}"
    return finding_without_line(DEPENDS, message, launch.ptx)


def _judged_by_ptxas(launch: LaunchOptions, module: Module, every: bool) -> list[Finding]:
    """What ptxas did to the schedule. It is asked where there are wgmma, or `every` time."""
    from fragir.ptx.source_lines import SourceLines
    from fragir.toolchain.find import PTXAS, find
    from fragir.toolchain.ptxas import assemble, own_target
    from fragir.toolchain.sass_loops import most_spilled

    text = module.source.text if module.source is not None else ""
    if not text or not (every or "wgmma.mma_async" in text or "setmaxnreg" in text):
        return []
    try:
        target = launch.target or own_target(text, launch.ptx)
        find(PTXAS, launch.ptxas)
        with Progress("assembling"):
            verdicts = assemble(text, target, version=launch.ptxas, filename=launch.ptx).verdicts
    except FragirError as error:
        note(f"not judged by ptxas: {error.sentence}")
        return []
    found: list[Finding] = []
    for verdict in verdicts:
        line = verdict.line
        if verdict.kind == "spill" and verdict.function is not None:
            line = most_spilled(text, target, verdict.function)
        finding = finding_without_line(verdict.kind, str(verdict), launch.ptx, "remark")
        source = "" if line is None else SourceLines(text).place(line)
        found.append(replace(finding, line=line, compiled_from=(source,) if source else ()))
    return found
