"""`fragir explain`: a program after every pass, its layouts, PTX and machine code, as a page."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fragir.cli.check import print_schedules, schedules_json
from fragir.cli.command import (
    FINDING,
    F,
    Progress,
    command,
    json_option,
    passes_option,
    print_json,
    report,
)
from fragir.cli.files import check_replaces_none_of, deliver, read_text
from fragir.cli.launch import finding_json, print_findings, read_extent
from fragir.cli.limits import Limit, limit_option
from fragir.cli.run import read_sizes
from fragir.emulator.report import counted
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.emulator import EmulationError
    from fragir.explain import ProgramReport, Ran

DEFAULT_TARGET = "sm_80"
_ONE = ((1, 1, 1), (32, 1, 1), (1, 1, 1), 0)


def _extent(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(
        name, default=default, callback=read_extent, metavar="X[,Y[,Z]]", help=f"Of PTX: {text}."
    )


@command(
    examples=(
        (
            "The page of a product, opened in a browser where there is one:",
            "fragir explain examples/gemm.mlir --target sm_90a",
        ),
        (
            "PTX from elsewhere, with its machine code and its fragments:",
            "fragir explain examples/hand_written.ptx -o product.html",
        ),
        (
            "What the accumulator held at the end, with the lane that held each number:",
            "fragir explain examples/gemm_frag.mlir --size m=64,n=64,k=64"
            " --values %total --no-sass -o total.html",
        ),
    )
)
@click.argument("program", metavar="IN.mlir|IN.ptx")
@click.option(
    "-o",
    "--output",
    metavar="PAGE.html",
    help="Write the page here instead of opening it in a browser.",
)
@click.option(
    "--target", metavar="SM", help=f"As in sm_90a; if absent that of the PTX, or {DEFAULT_TARGET}."
)
@click.option("--entry", metavar="NAME", help="Compile, or run, this function only.")
@passes_option
@click.option("--no-sass", is_flag=True, help="Leave ptxas and nvdisasm out.")
@click.option(
    "--values",
    "values",
    multiple=True,
    metavar="AT",
    help="Run it; show what was held: of MLIR a tile, as %acc@last, or a place, as 72:12;"
    " of PTX a line, as 58, or registers, as 58:%r1,%r2=f16x2. [1,0] behind it names a block.",
)
@click.option("--check", is_flag=True, help="Run it with every check on; findings are marked.")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    callback=read_sizes,
    metavar="NAME=N,...",
    help="Of MLIR: dynamic sizes, to run it with every check on.",
)
@click.option(
    "--arg",
    "given",
    multiple=True,
    metavar="ARGUMENT",
    help="To run it: of MLIR NAME=VALUE as of `fragir run`, of PTX KIND:VALUE as of `check`.",
)
@_extent("--grid", "1", "blocks")
@_extent("--block", "32", "threads a block")
@_extent("--cluster", "1", "blocks a cluster")
@click.option(
    "--shared",
    type=click.IntRange(min=0),
    default=0,
    metavar="BYTES",
    help="Of PTX: dynamic shared memory.",
)
@limit_option
@json_option
@click.pass_context
def main(
    ctx: click.Context,
    program: str,
    output: str | None,
    target: str | None,
    entry: str | None,
    passes: str | None,
    no_sass: bool,
    check: bool,
    as_json: bool,
    **options: Any,
) -> int | None:
    """Show a program after every pass, its layouts, PTX and machine code, as one page.

    The page needs no network. It has the IR after each pass beside the one before, every layout
    drawn, who asked for it and what each conversion costs, and the PTX and machine code of every
    operation. Of PTX it has the machine code and the fragments of the instructions.
    """
    check_replaces_none_of(output, program)
    is_ptx = program.endswith(".ptx")
    if is_ptx and passes is not None:
        raise click.UsageError("--passes is of MLIR: PTX goes through none")
    name = "<stdin>" if program == "-" else program
    text = read_text(program, "PTX" if is_ptx else "MLIR")
    given = bool(options["sizes"] or options["given"])
    checks = check or (given and not options["values"])
    wanted = _Run(ctx, text, name, entry, target, passes, checks, **options)
    asked = checks or bool(options["values"])
    ran: list[Ran] = []
    with Progress("explaining"):
        explained = wanted.of_ptx if is_ptx else wanted.of_mlir
        found = explained(not no_sass, ran.append if asked else None)
    if as_json:
        print_json(found.document())
    else:
        stem = os.path.splitext(os.path.basename(program))[0].strip("-") or "program"
        deliver(found.html(), output, stem)
        if checks:
            with redirect_stdout(sys.stderr if output == "-" else sys.stdout):
                _show(ran)
    if found.exception is not None and not as_json:
        report(found.exception, as_json=False)
    wrong = any(mark.severity == "error" for mark in found.marks)
    return FINDING if wrong or found.error is not None else None


def _show(ran: Sequence[Ran]) -> None:
    """What the checks found, and of which runs that speaks; nothing where it was not run."""
    for told in ran:
        findings = [finding_json(one) for one in told.findings]
        if findings:
            print_findings(findings)
        else:
            print(f"no findings in {counted(told.runs, 'run')} {told.how}")
        if told.schedules is not None and all(one["severity"] != "error" for one in findings):
            print_schedules(schedules_json(told.schedules, told.runs))


class _Run(NamedTuple):
    """A program, and how it is run."""

    ctx: click.Context
    text: str
    name: str
    entry: str | None
    target: str | None
    passes: str | None
    checks: bool
    values: tuple[str, ...]
    sizes: dict[str, int]
    given: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    limit: Limit

    def of_mlir(self, sass: bool, note: Callable[[Ran], object] | None) -> ProgramReport:
        """The report of a program."""
        from fragir.explain import explain

        if (self.grid, self.block, self.cluster, self.shared) != _ONE:
            raise click.UsageError("--grid, --block, --cluster and --shared are of PTX")
        return explain(
            self.text,
            target=self.target or DEFAULT_TARGET,
            entry=self.entry,
            passes=self.passes,
            filename=self.name,
            sass=sass,
            ran=_noted(self._run_program, note),
        )

    def of_ptx(self, sass: bool, note: Callable[[Ran], object] | None) -> ProgramReport:
        """The report of PTX."""
        from fragir.explain import explain_ptx

        if self.sizes:
            raise click.UsageError("--size is of MLIR: PTX is given --grid, --block and --arg")
        return explain_ptx(
            self.text,
            target=self.target,
            filename=self.name,
            sass=sass,
            ran=_noted(self._run_ptx, note),
        )

    def _run_program(self, _ptx: str) -> Ran:
        """Runs a program on the emulator: with every check on, and to look at values."""
        from fragir.cli.run import read_given
        from fragir.cli.trial import Trial
        from fragir.compilation import pipeline
        from fragir.emulator import EmulationError
        from fragir.explain import Ran
        from fragir.explain.values import shown_value

        target = self.target or DEFAULT_TARGET
        trial = Trial(self.text, self.name, self.entry, target, "emulator", None, self.limit)
        if self.passes is not None:
            trial.passes = pipeline.parse(self.passes, target)
        trial.compile()
        trial.prepare(self.sizes, read_given(self.ctx, self._parameter, self.given), "normal", 0)
        sizes = "".join(f", {name} = {size}" for name, size in self.sizes.items())
        told = Ran(f"on the emulator{sizes}")
        if self.values:
            from fragir.explain.values import several_values

            found = several_values(
                self.text,
                trial.inputs,
                self.values,
                target=target,
                entry=self.entry,
                passes=self.passes,
                filename=self.name,
                limit=self.limit,
            )
            shown = [shown_value(*pair) for pair in zip(self.values, found, strict=True)]
            told = told._replace(values=shown)
        if not self.checks:
            return told
        told = told._replace(how=f"on the emulator with every check on{sizes}")
        try:
            report = trial.kernel(*trial.inputs, on="emulator", check=True, limit=self.limit)
        except EmulationError as error:
            return told._replace(findings=_findings_of(error))
        return told._replace(findings=report.findings, schedules=report.schedules)

    def _run_ptx(self, ptx: str) -> Ran:
        """Runs PTX on the emulator, with every check on as `fragir check` does."""
        from fragir.cli.arguments import Loaded, read_arguments
        from fragir.cli.check import examine
        from fragir.cli.launch import LaunchOptions
        from fragir.emulator import FragmentUse
        from fragir.explain import Ran
        from fragir.explain.values import shown_value
        from fragir.ptx import parse

        launch = LaunchOptions(
            ptx=self.name,
            entry=self.entry,
            grid=self.grid,
            block=self.block,
            cluster=self.cluster,
            shared=self.shared,
            args=tuple(read_arguments(self.ctx, self._parameter, self.given)),
            target=self.target,
            limit=self.limit,
        )
        loaded = Loaded(launch.args)
        blocks, threads = ("x".join(map(str, size)) for size in (self.grid, self.block))
        told = Ran(f"on the emulator, {blocks} blocks of {threads} threads")
        if self.values:
            from fragir.explain.line_values import line_values

            options = {
                "entry": self.entry,
                "grid": self.grid,
                "block": self.block,
                "cluster": self.cluster,
                "shared": self.shared,
                "target": self.target,
                "limit": self.limit,
            }
            try:
                shown = [
                    shown_value(at, held)
                    for at in self.values
                    for held in line_values(ptx, at, arguments=loaded.values(), **options)
                ]
            except FragirError as error:
                error.file = self.name  # it was given the text
                raise
            told = told._replace(values=shown)
        if not self.checks:
            return told
        uses: list[FragmentUse] = []
        found = examine(launch, parse(self.text, self.name), loaded, 0, uses)
        return told._replace(
            how=f"{told.how}, every check on",
            findings=found.findings,
            fragments=uses,
            schedules=found.schedules,
            runs=2,
        )

    @property
    def _parameter(self) -> click.Parameter:
        """That of `--arg`, for messages."""
        return next(one for one in self.ctx.command.params if one.name == "given")


def _noted(
    run: Callable[[str], Ran], note: Callable[[Ran], object] | None
) -> Callable[[str], Ran] | None:
    """A run of whose outcome is taken note; None where none is asked for."""
    if note is None:
        return None

    def noted(ptx: str) -> Ran:
        told = run(ptx)
        note(told)
        return told

    return noted


def _findings_of(error: EmulationError) -> list[object]:
    """The findings before a run was stopped, and what stopped it."""
    from fragir.cli.launch import stop_finding

    if error.report is None:
        raise error  # the launch is wrong, not the program
    return [*error.report.findings, stop_finding(error)]
