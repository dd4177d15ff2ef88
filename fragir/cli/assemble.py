"""`fragir assemble`: PTX to a cubin, with what ptxas says of it."""

from __future__ import annotations

import click

from fragir.cli.command import (
    Progress,
    command,
    json_option,
    note,
    print_json,
    print_table,
)
from fragir.cli.files import check_replaces_none_of, read_text, write_output

EXAMPLES = (
    (
        "Registers and spills, without a file:",
        "fragir assemble examples/hand_written.ptx",
    ),
    (
        "A cubin, and the same numbers as JSON:",
        "fragir assemble examples/store.ptx --target sm_90a -o store.cubin --json",
    ),
)


@command(examples=EXAMPLES)
@click.argument("ptx", metavar="K.ptx")
@click.option("--target", metavar="SM", help="As in sm_90a; .target's of the PTX if absent.")
@click.option("-o", "--output", metavar="K.cubin", help="Write the cubin here.")
@click.option("--ptxas", metavar="VERSION", help="Use this ptxas, as in 12.9.")
@json_option
def main(
    ptx: str, target: str | None, output: str | None, ptxas: str | None, as_json: bool
) -> None:
    """Assemble PTX with ptxas; show registers, spills and warnings of every kernel."""
    from dataclasses import asdict

    from fragir.toolchain.ptxas import assemble, own_target, targets

    check_replaces_none_of(output, ptx)
    name = "<stdin>" if ptx == "-" else ptx
    text = read_text(ptx, "PTX")
    target = own_target(text, name) if target is None else target
    if target not in targets(ptxas):
        from fragir.isa.targets import ask_packages

        ask_packages(target)
    with Progress("assembling"):
        result = assemble(text, target, version=ptxas, filename=name)
    if output is not None:
        write_output(output, result.cubin)
    if as_json:
        print_json(
            {
                "entries": {entry: asdict(info) for entry, info in result.entries.items()},
                "warnings": [{"code": c, "message": m} for c, m in result.warnings],
            }
        )
        return
    for code, message in result.warnings:
        note(f"warning: {code + ': ' if code else ''}{message}")
    if output == "-":
        return
    columns = ["entry", "registers", "spill stores", "spill loads", "shared", "stack", "barriers"]
    rows = [[entry, *asdict(info).values()] for entry, info in result.entries.items()]
    print_table(columns, rows)
