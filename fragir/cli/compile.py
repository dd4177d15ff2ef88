"""`fragir compile`: MLIR to placed tiles, lanes, PTX or a cubin; PTX to lanes and back."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from fragir.cli.command import Progress, command, note, output_option, passes_option
from fragir.cli.files import check_replaces_none_of, read_text, write_output
from fragir.errors import FragirError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from fragir.compilation.pipeline import Observer
    from fragir.passes.writer.text import Origins

LEVELS = ("placed", "lane", "ptx", "cubin")
_BY_ENDING = {".mlir": "lane", ".ptx": "ptx", ".cubin": "cubin"}


EXAMPLES = (
    (
        "PTX for Hopper, into a file:",
        "fragir compile examples/gemm.mlir --target sm_90a -o gemm.ptx",
    ),
    ("The tiles and their layouts:", "fragir compile examples/gemm.mlir --to placed"),
    (
        "Who asked for each layout, and what each conversion costs:",
        "fragir compile examples/gemm_frag.mlir --to placed --explain-layouts -o placed.mlir",
    ),
    (
        "A C program that launches the kernel:",
        "fragir compile examples/gemm.mlir --launcher c -o gemm.c",
    ),
)


@command(examples=EXAMPLES)
@click.argument("program", metavar="IN.mlir|IN.ptx")
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
@passes_option
@click.option(
    "--print-pipeline", is_flag=True, help="Print the passes that are applied, as for -p."
)
@click.option(
    "--explain-layouts",
    is_flag=True,
    help="Say on stderr who asked for each layout, and what each conversion costs and is for.",
)
@click.option(
    "--explain-schedule",
    is_flag=True,
    help="Say on stderr which schedules a product might have, and what each would cost.",
)
@click.option("--comments", is_flag=True, help="Say in the PTX which operation made it.")
@click.option(
    "--lines",
    is_flag=True,
    help="Let debuggers and profilers find the program's lines: .loc in the PTX.",
)
@click.option(
    "--launcher",
    type=click.Choice(("c", "python", "json", "mlir")),
    help="Write what launches the kernel without fragir: a program, or its description.",
)
def main(
    program: str,
    level: str | None,
    target: str,
    output: str | None,
    entry: str | None,
    print_ir_after_all: bool,
    passes: str | None,
    print_pipeline: bool,
    explain_layouts: bool,
    explain_schedule: bool,
    comments: bool,
    lines: bool,
    launcher: str | None,
) -> None:
    """Compile matrix IR to placed tiles, lane code, PTX or a cubin.

    PTX becomes lane code (--to lane), which is compiled back to PTX for the target that it names.
    """
    from fragir.isa.targets import require_target

    if launcher is not None:
        if level is not None or print_pipeline or program.endswith(".ptx"):
            raise click.UsageError("--launcher is of a program, without --to and --print-pipeline")
        level = "cubin"
    level = level or _level_of(output)
    require_target(target)
    if program.endswith(".ptx") and level == "placed":
        raise click.UsageError("PTX has no tiles: give --to lane")
    given = click.get_current_context().get_parameter_source("target")
    check_replaces_none_of(output, program)
    name = "<stdin>" if program == "-" else program
    listed = None if passes is None else _passes(passes, target)
    what = "PTX" if program.endswith(".ptx") else "MLIR"
    text, observe = read_text(program, what), _print_ir if print_ir_after_all else None
    work = Compilation(
        text,
        name,
        level,
        target,
        given is ParameterSource.COMMANDLINE,
        entry,
        listed,
        comments,
        lines,
        observe,
        explain_layouts,
        explain_schedule,
        [],
    )
    try:
        with nullcontext() if print_ir_after_all else Progress("compiling"):
            if launcher is not None:
                result: str | bytes = work.launcher(launcher)
            else:
                result = f"{work.pipeline()}\n" if print_pipeline else work.result()
    except FragirError as error:
        error.file = error.file or name
        raise
    for words in work.warnings:
        note(f"warning: {words}")
    write_output(output, result)


def _passes(text: str, target: str) -> list[ModulePass]:
    from fragir.compilation import pipeline

    return pipeline.parse(text, target)


class Compilation(NamedTuple):
    """One program on its way to a level."""

    text: str
    name: str
    level: str
    target: str
    target_given: bool
    entry: str | None
    passes: list[ModulePass] | None
    comments: bool
    lines: bool
    observe: Observer | None
    explain: bool
    explain_schedule: bool
    warnings: list[str]
    """What ptxas warns of, spills too."""

    def pipeline(self) -> str:
        """The passes that are applied, as pass-pipeline text."""
        return self._lower()[1]

    def launcher(self, language: str) -> str:
        """What launches the kernel without fragir."""
        from fragir import compiler, launchers

        kernel = compiler.compile(
            self.text,
            target=self.target,
            entry=self.entry,
            passes=self.passes,
            filename=self.name,
            comments=self.comments,
            lines=self.lines,
            alone=True,
            observe=self.observe,
        )
        if language in ("c", "python"):  # the others need no ptxas
            self.warnings.extend(kernel.notes)
        return launchers.launcher(kernel, language)

    def result(self) -> str | bytes:
        """MLIR, PTX or a cubin."""
        from fragir.compilation import program

        module, _ = self._lower()
        target = self._target(module)
        if self.level != "placed" and target == self.target:
            _note_instructions(module, self.target)
        if self.level in ("placed", "lane"):
            return _text(module)
        ptx, origins = program.emit_with_origins(
            module, target, comments=self.comments, lines=self.lines, source=self.text
        )
        return ptx if self.level == "ptx" else self._assemble(ptx, target, origins)

    def _target(self, module: ModuleOp) -> str:
        """The target; lifted PTX names its own."""
        from fragir.passes.writer.module import FOREIGN

        if not any(op.name in FOREIGN for op in module.ops):
            return self.target
        from fragir.passes.writer.foreign import target_of

        own = target_of(module)
        if self.target_given and own != self.target:
            raise FragirError(
                f"the program is PTX for {own}, not for {self.target}",
                hint="change its .target; `fragir assemble` compiles it for newer machines",
            )
        return own

    def _lower(self) -> tuple[ModuleOp, str]:
        """The module, and the passes that were applied to it."""
        from fragir.compilation import pipeline, program

        if self.name.endswith(".ptx"):
            module = program.lift(self.text, self.name)
        else:
            module = program.parse(self.text, self.name)
        if self.entry is not None:
            program.keep_only(module, program.choose_entry(module, self.entry))
        program.check_sizes(module, self.text)
        steps = program.steps(
            module, "placed" if self.level == "placed" else "lane", self.target, self.passes
        )
        if self.explain:
            steps = _explaining(steps)
        if self.explain_schedule:
            steps = _with_schedules(steps, module)
        done = pipeline.run(steps, module, source=self.text, observe=self.observe)
        if self.explain_schedule and not self.name.endswith(".ptx"):
            _tell_slow(self)
        return module, pipeline.text_of(done)

    def _assemble(self, ptx: str, target: str, origins: Origins) -> bytes:
        from fragir.compilation.notes import schedule_notes
        from fragir.toolchain.ptxas import assemble

        assembled = assemble(ptx, target, filename=f"PTX of {self.name}")
        self.warnings.extend(
            f"{code + ': ' if code else ''}{words}" for code, words in assembled.other_warnings
        )
        self.warnings.extend(schedule_notes(assembled, ptx, target, origins))
        return assembled.cubin


def _explaining(steps: Iterable[ModulePass]) -> Iterator[ModulePass]:
    """The same passes; why tiles are placed as they are is printed when they have been."""
    from fragir.compilation.layout_choices import Explanation, explaining

    told: list[Explanation] = []
    for one in explaining(steps, told):
        yield one
        for explanation in told:
            note(str(explanation))
        told.clear()


def _with_schedules(steps: Iterable[ModulePass], module: ModuleOp) -> Iterator[ModulePass]:
    """The same passes; what `frag-tile` will do with each product is printed ahead of it."""
    from fragir.passes.frag_tile import FragTilePass
    from fragir.passes.tiling.explained import explain_schedules

    found = False
    for one in steps:
        if isinstance(one, FragTilePass):
            for explanation in explain_schedules(module, one.target):
                found = True
                note(str(explanation))
        yield one
    if not found:
        note("no frag.matmul is tiled here, so there is no schedule to explain")


def _tell_slow(given: Compilation) -> None:
    """What makes the launches slow, the worst first."""
    from fragir import compiler

    kernel = compiler.compile(
        given.text,
        target=given.target,
        entry=given.entry,
        passes=given.passes,
        filename=given.name,
        alone=True,
    )
    for remark in kernel.own_lint():  # of this PTX, which is all that others launch
        note(f"note: {remark}")


def _note_instructions(module: ModuleOp, target: str) -> None:
    """One note on what the lowering says, and instructions that the target has not natively."""
    from fragir.compilation.notes import instruction_notes, instructions_of, remarks_of

    notes = remarks_of(module) + instruction_notes(instructions_of(module), target)
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


def _print_ir(pass_name: str, module: ModuleOp) -> None:
    print(f"// IR after {pass_name}\n{_text(module)}", file=sys.stderr)


def _text(module: ModuleOp) -> str:
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream).print_op(module)
    return f"{stream.getvalue()}\n"
