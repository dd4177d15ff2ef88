"""`fragir emulate`: runs a PTX kernel on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fragir.cli.arguments import ArrayArgument
from fragir.cli.command import (
    FINDING,
    Progress,
    command,
    json_option,
    note,
    print_json,
)
from fragir.cli.files import check_replaces_none_of, check_writable, write_files
from fragir.cli.launch import (
    Asynchrony,
    LaunchOptions,
    emulate,
    finding_json,
    finding_row,
    launch_options,
    load,
    note_lone_block,
    print_findings,
    print_notes,
    read_module,
    written_files,
)
from fragir.cli.terminal import STDERR, STDOUT
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.emulator import Statistics


EXAMPLES = (
    (
        "A file with room for the result, and a kernel that fills it:",
        "python -c \"import numpy; numpy.save('x.npy', numpy.zeros(32, numpy.uint32))\"",
    ),
    ("", "fragir emulate examples/store.ptx --arg out:x.npy --arg u32:7"),
    (
        "Every instruction as it runs, on stderr:",
        "fragir emulate examples/store.ptx --arg out:x.npy --arg u32:7 --trace",
    ),
)


@command(examples=EXAMPLES)
@launch_options
@click.option("--check", is_flag=True, help="Look for races, missing waits and the like.")
@click.option("--schedule", type=int, metavar="SEED", help="Permute the order of the warps.")
@click.option(
    "--async",
    "asynchrony",
    type=click.Choice(["late", "early", "random"]),
    default="late",
    show_default=True,
    help="When asynchronous copies and wgmma retire.",
)
@click.option("--trace", is_flag=True, help="Print every instruction on stderr.")
@json_option
def main(
    check: bool,
    schedule: int | None,
    asynchrony: Asynchrony,
    trace: bool,
    as_json: bool,
    **options: Any,
) -> int | None:
    """Run a PTX kernel on the CPU, to the bit.

    Files given as out: and inout: are replaced once the kernel has ended without an error.
    """
    launch = LaunchOptions(**options)
    for file in written_files(launch):
        check_replaces_none_of(file.path, launch.ptx)
        if not (isinstance(file, ArrayArgument) and file.if_changed):
            check_writable(file.path)
    module, arguments = read_module(launch), load(launch)
    note_lone_block(launch, module)
    values = arguments.values()
    with Progress("emulating") as progress:
        try:
            result = emulate(
                launch,
                module,
                values,
                check=check,
                schedule=schedule,
                asynchrony=asynchrony,
                trace=STDERR if trace else None,
                output=None if as_json else STDOUT,
                progress=progress,
            )
        except FragirError as error:
            for finding in getattr(getattr(error, "report", None), "findings", ()):
                _, kind, *words = finding_row(finding_json(finding))
                note(f"found before: {kind}: {words[0]}: {words[-1]}")
                for line in () if finding.why is None else finding.why.lines():
                    note(f"    {line}")
            raise
    print_notes(result)
    findings = [finding_json(finding) for finding in result.findings]
    wrong = any(finding["severity"] == "error" for finding in findings)
    contents = {} if wrong else arguments.results(values)
    write_files(contents)
    counts = result.statistics
    if as_json:
        print_json(
            {
                "instructions": counts.total,
                "opcodes": dict(counts.instructions),
                "mma": counts.mma,
                "loaded": dict(counts.loaded),
                "stored": dict(counts.stored),
                "conflicts": dict(counts.conflicts),
                "seconds": counts.seconds,
                "printed": "".join(result.printed),
                "findings": findings,
                "notes": result.notes,
                "written": list(contents),
            }
        )
    else:
        print(f"{counts.total} warp instructions, {counts.mma} of them on the tensor cores")
        _print_counts(counts)
        if findings:
            print_findings(findings)
        if wrong:
            note("no file is written because of the errors")
        if result.remarks:
            note(f"{len(result.remarks)} remarks on performance; fragir check lists them")
        for name in contents:
            note(f"wrote {name}")
    return FINDING if wrong else None


def _print_counts(counts: Statistics) -> None:
    """What was executed, by kind, and what it moved; a line for each that there is."""
    kinds = ", ".join(f"{name} {number}" for name, number in counts.instructions.most_common())
    print(f"instructions: {kinds}")
    for word, by_space in (("loaded", counts.loaded), ("stored", counts.stored)):
        moved = ", ".join(f"{space} {number}" for space, number in by_space.items() if number)
        if moved:
            print(f"bytes {word}: {moved}")
    for word, what in (("passes", "shared memory"), ("sectors", "global memory")):
        if counts.conflicts[word]:
            needed = counts.conflicts[f"{word}_needed"]
            print(f"{what}: {counts.conflicts[word]} {word}, {needed} would do")
