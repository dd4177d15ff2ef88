"""`fragir compile`: MLIR to placed tiles, lanes, PTX or a cubin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fragir.cli.common import command, note, output_option
from fragir.cli.files import read_text, refuse_to_replace, write_output
from fragir.errors import FragirError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

LEVELS = ("placed", "lane", "ptx", "cubin")
_BY_ENDING = {".mlir": "lane", ".ptx": "ptx", ".cubin": "cubin"}


@command()
@click.argument("program", metavar="IN.mlir")
@click.option(
    "--to",
    "level",
    type=click.Choice(LEVELS),
    help="The level; by the ending of -o if absent (.mlir is lane), else ptx.",
)
@click.option("--target", metavar="SM", default="sm_80", show_default=True, help="As in sm_90a.")
@output_option
@click.option("--entry", metavar="NAME", help="Compile this function only.")
@click.option("--print-ir-after-all", is_flag=True, help="Print the IR after each pass on stderr.")
@click.option("--comments", is_flag=True, help="Say in the PTX which operation made it.")
def main(
    program: str,
    level: str | None,
    target: str,
    output: str | None,
    entry: str | None,
    print_ir_after_all: bool,
    comments: bool,
) -> None:
    """Compile matrix IR to placed tiles, lane code, PTX or a cubin."""
    from fragir.isa.targets import known

    level = level or _level_of(output)
    known(target)
    refuse_to_replace(output, program)
    name = "<stdin>" if program == "-" else program
    text = read_text(program, "MLIR")
    try:
        result, said = _compiled(text, name, level, target, entry, print_ir_after_all, comments)
    except FragirError as error:
        error.file = error.file or name
        raise
    for words in said:
        note(f"warning: {words}")
    write_output(output, result)


def _compiled(
    text: str,
    name: str,
    level: str,
    target: str,
    entry: str | None,
    print_ir_after_all: bool,
    comments: bool,
) -> tuple[str | bytes, list[str]]:
    """The result, and what ptxas warns of, spills too."""
    from fragir import compiler

    module = compiler.parse(text, name)
    if entry is not None:
        _keep_only(module, entry)
    observe = _print_ir if print_ir_after_all else None
    if level == "placed":
        compiler.lower(module, "placed", target, source=text, observe=observe)
    else:
        compiler.lower(module, "lane", target, source=text, observe=observe)
        _note_instructions(module, target)
    if level in ("placed", "lane"):
        return _text(module), []
    ptx = compiler.emit(module, target, comments=comments, source=text)
    if level == "ptx":
        return ptx, []
    from fragir.lowering_notes import spill_notes
    from fragir.toolchain.ptxas import assemble

    assembled = assemble(ptx, target, filename=f"PTX of {name}")
    warnings = [f"{code + ': ' if code else ''}{words}" for code, words in assembled.warnings]
    return assembled.cubin, warnings + spill_notes(assembled.entries)


def _note_instructions(module: ModuleOp, target: str) -> None:
    """One note on instructions that the target does not have natively."""
    from fragir.lowering_notes import instruction_notes, instructions_of

    notes = instruction_notes(instructions_of(module), target)
    if notes:
        note(f"note: {'; '.join(notes)}")


def _level_of(output: str | None) -> str:
    """The level that an output file's ending asks for."""
    if output is None or output == "-":
        return "ptx"
    import os.path

    ending = os.path.splitext(output)[1]
    if ending not in _BY_ENDING:
        raise click.UsageError(
            f"'{output}' does not tell the level: it ends in none of {', '.join(_BY_ENDING)};"
            f" give --to {'|'.join(LEVELS)}"
        )
    return _BY_ENDING[ending]


def _keep_only(module: ModuleOp, entry: str) -> None:
    """Removes every other function."""
    from xdsl.dialects import func

    from fragir.compiler import choose_entry

    name = choose_entry(module, entry)
    for op in list(module.ops):
        if isinstance(op, func.FuncOp) and op.sym_name.data != name:
            op.detach()


def _print_ir(pass_name: str, module: ModuleOp) -> None:
    print(f"// IR after {pass_name}\n{_text(module)}", file=sys.stderr)


def _text(module: ModuleOp) -> str:
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream).print_op(module)
    return f"{stream.getvalue()}\n"
