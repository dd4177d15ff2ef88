"""What `emulate` and `check` share: the options of a launch, and the run on the emulator."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar

import click
from click.core import ParameterSource

from fragir.cli.arguments import (
    ArrayArgument,
    CommandArgument,
    Loaded,
    LoadedArguments,
    Tensor,
    files_of,
    read_arguments,
    variable_option,
)
from fragir.cli.command import Document, Progress, note, print_table, why_json
from fragir.cli.files import read_text
from fragir.cli.limits import NONE, Limit, jobs_option, limit_option
from fragir.cli.query import is_count
from fragir.errors import FragirError, printable

if TYPE_CHECKING:
    from fragir.emulator import EmulationError, Finding, Report, Severity
    from fragir.emulator.checks.selection import MakesCheck
    from fragir.ptx import Module

F = TypeVar("F", bound=Callable[..., object])
Asynchrony = Literal["late", "early", "random"]


def read_extent(
    _context: click.Context, _parameter: click.Parameter, value: str
) -> tuple[int, int, int]:
    """A callback for `X[,Y[,Z]]`: a number of blocks or threads in every direction."""
    parts = value.split(",")
    if not 1 <= len(parts) <= 3 or not all(map(is_count, parts)):
        raise click.BadParameter(f"`{value}` is not of the form X[,Y[,Z]]")
    x, y, z = (*map(int, parts), 1, 1, 1)[:3]
    if min(x, y, z) < 1:
        raise click.BadParameter(f"`{value}` has a 0")
    return x, y, z


def _extent(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(
        name,
        default=default,
        show_default=True,
        callback=read_extent,
        metavar="X[,Y[,Z]]",
        help=text,
    )


@dataclass(frozen=True, slots=True)
class LaunchedGrid:
    """A kernel of a file, and its grid and arguments."""

    entry: str | None
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    args: tuple[CommandArgument, ...]


@dataclass(frozen=True, slots=True)
class LaunchOptions(LaunchedGrid):
    """A launch as read from the command line; `then`: grids behind it, each its predecessor's
    programmatic dependent."""

    ptx: str
    target: str | None
    ptxas: str | None = None
    variables: Mapping[str, ArrayArgument] = field(default_factory=dict[str, ArrayArgument])
    limit: Limit = NONE
    jobs: int | None = None
    then: tuple[LaunchedGrid, ...] = ()

    @property
    def all_args(self) -> tuple[CommandArgument, ...]:
        """The arguments of all grids."""
        return self.args + tuple(a for grid in self.then for a in grid.args)


def _read_then(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[LaunchedGrid, ...]:
    """A callback for `--then`: options of a grid in one word."""
    name = str(parameter.opts[0])
    reader = click.Command(name, params=_grid_options(), add_help_option=False)
    found: list[LaunchedGrid] = []
    for value in values:
        try:
            words = shlex.split(value)
            found.append(LaunchedGrid(**reader.make_context(reader.name, words, context).params))
        except (ValueError, click.UsageError) as error:
            said = error.format_message() if isinstance(error, click.UsageError) else str(error)
            raise click.BadParameter(f"`{value}`: {said}") from error
    return tuple(found)


def _grid_options() -> list[click.Parameter]:
    """What says which kernel is launched, how, and with which arguments."""

    def takes() -> None: ...

    function: Any = takes
    for option in reversed(_GRID):
        function = option(function)
    return list(reversed(function.__click_params__))


_GRID: tuple[Callable[[Any], Any], ...] = (
    click.option("--entry", metavar="NAME", help="The kernel; needed if there are several."),
    _extent("--grid", "1", "Blocks."),
    _extent("--block", "32", "Threads a block."),
    _extent("--cluster", "1", "Blocks a cluster."),
    click.option(
        "--shared",
        type=click.IntRange(min=0),
        default=0,
        metavar="BYTES",
        help="Dynamic shared memory.",
    ),
    click.option(
        "--arg",
        "args",
        multiple=True,
        callback=read_arguments,
        metavar="KIND:VALUE",
        help="An argument, in the order of the parameters: in:FILE.npy, out:FILE.npy,"
        " inout:FILE.npy, s8..s64:, u8..u64:, b8..b64:HEX, f16:, bf16:, f32:, f64:,"
        " bytes:HEX, bytes:@FILE, null, tma:FILE.npy,box=64x64[,swizzle=128]...,"
        " tma-pointer:..., ptr:FILE.npy, pointers:A.npy,B.npy,"
        " struct:OFFSET=ptr:FILE.npy,OFFSET=s32:5,...",
    ),
)


def launch_options(function: F) -> F:
    """Adds the options that make a `Launch`; the function gets them by its field names."""
    options: list[Callable[[F], F]] = [
        click.argument("ptx", metavar="K.ptx"),
        *_GRID,
        click.option(
            "--then",
            multiple=True,
            callback=_read_then,
            metavar="OPTIONS",
            help="A grid behind it on the same memory, its programmatic dependent (griddepcontrol):"
            " --entry, --grid, --block, --cluster, --shared and --arg in one word.",
        ),
        click.option(
            "--target", metavar="SM", help="The machine it runs on; the file's .target if absent."
        ),
        click.option(
            "--ptxas",
            metavar="VERSION",
            help="Imitate what this ptxas makes of instructions that the machine lacks.",
        ),
        limit_option,
        jobs_option,
        variable_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


def read_module(launch: LaunchOptions) -> Module:
    """The PTX file as a tree; of its functions are read those that the launch gets to."""
    from fragir.ptx import parse

    name = "<stdin>" if launch.ptx == "-" else launch.ptx
    module = parse(read_text(launch.ptx, "PTX"), name, lazy=True)
    if launch.target is not None:
        _check_target(launch.target, module, name)
    return module


def _check_target(target: str, module: Module, name: str) -> None:
    """Raises FragirError where code for the file's `.target` does not run on `target`."""
    from fragir.isa.targets import require_target, supports
    from fragir.ptx.tree import Target

    require_target(target)
    for item in module.items:
        if isinstance(item, Target) and not supports(target, item.words[0]):
            line, col = module.source.place(item.at) if module.source else (None, None)
            source = module.source.line(line) if module.source and line else None
            message = f"this is code for {item.words[0]}, which does not run on {target}"
            raise FragirError(message, name, line, col, source)


def note_lone_block(launch: LaunchOptions, module: Module) -> None:
    """Says on stderr that one block is run, of a kernel that asks which, where nobody said so."""
    context = click.get_current_context()
    if context.get_parameter_source("grid") is not ParameterSource.DEFAULT:
        return
    entries = module.entries
    names = [launch.entry] if launch.entry is not None else list(entries)
    kernel = entries.get(names[0]) if len(names) == 1 else None
    body = None if kernel is None else kernel.body
    if body is None or module.source is None:
        return
    if "%ctaid" in module.source.text[body.at : body.end]:
        note(f"one block is run, and {names[0]} asks which it is (%ctaid): --grid X,Y,Z runs more")


def emulate(
    launch: LaunchOptions,
    module: Module,
    values: LoadedArguments,
    *,
    check: bool,
    checks: Sequence[MakesCheck] = (),
    fragments: bool = False,
    schedule: int | None,
    asynchrony: Asynchrony,
    trace: TextIO | None = None,
    output: TextIO | None = None,
    progress: Progress | None = None,
    limit: Limit | None = None,
    structure: Sequence[int | str] | None = None,
) -> Report:
    """One run; the arrays among `values` are changed in place, printf prints to `output`.

    `limit`: another one than the launch's. `structure`: as `run` has it.
    """
    from fragir.emulator import run

    one = partial(
        run,
        module,
        variables=values.variables,
        target=launch.target,
        ptxas=launch.ptxas,
        check=check,
        checks=checks,
        fragments=fragments,
        schedule=schedule,
        asynchrony=asynchrony,
        trace=trace,
        output=output,
        progress=progress,
        heartbeat=progress.beat if progress is not None else None,
        limit=limit or launch.limit,
        jobs=launch.jobs,
    )
    if not launch.then:
        return one(**grid_of(launch), arguments=values, structure=structure)
    return _one_after_the_other(launch, module, one, values, structure)


def grid_of(grid: LaunchedGrid) -> Document:
    """What `run` is told of a grid, without its arguments."""
    names = ("entry", "grid", "block", "cluster", "shared")
    return {name: getattr(grid, name) for name in names}


def _one_after_the_other(
    launch: LaunchOptions,
    module: Module,
    one: Callable[..., Report],
    values: LoadedArguments,
    structure: Sequence[int | str] | None,
) -> Report:
    """The runs of a launch and of its dependents, told as one; each knows the names of `structure`
    that are its own, and the first one all that are nobody else's."""
    from fragir.emulator import EmulationError, Report, Stream

    stream, whole, first = Stream(), Report(), 0
    names = [_names(module, grid.entry) for grid in (launch, *launch.then)]
    for number, grid in enumerate((launch, *launch.then)):
        arguments = values[first : first + len(grid.args)]
        first += len(grid.args)
        own = structure and [
            name
            for name in structure
            if name in names[number] or (not number and not any(name in some for some in names))
        ]
        try:
            whole.add(
                one(
                    **grid_of(grid),
                    arguments=arguments,
                    stream=stream,
                    programmatic=number > 0,
                    structure=own,
                )
            )
        except EmulationError as error:
            if error.report is not None:
                whole.add(error.report)
                error.report = whole
            raise
    return whole


def _names(module: Module, entry: str | None) -> set[str]:
    """The parameters of a kernel, and the module's variables."""
    kernels = module.entries
    if entry is None and len(kernels) == 1:
        entry = next(iter(kernels))
    kernel = None if entry is None else kernels.get(entry)
    parameters = () if kernel is None else kernel.parameters or ()
    declared = (*parameters, *module.declarations)
    return {variable.name.text for one in declared for variable in one.variables}


def written_files(launch: LaunchOptions) -> Iterator[ArrayArgument | Tensor]:
    """The files that a launch is to write."""
    given = [file for argument in launch.all_args for file in files_of(argument)]
    for file in (*given, *launch.variables.values()):
        if file.written:
            yield file


def print_notes(report: Report) -> None:
    """On stderr, what the report says of the launch."""
    for text in report.notes:
        of_a_check = text.startswith("races: ")
        note(text if of_a_check else f"{text} (--variable NAME=in:FILE.npy sets it)")


def load(launch: LaunchOptions) -> Loaded:
    """The arguments with their files read."""
    return Loaded(launch.all_args, launch.variables)


def finding_json(finding: Finding) -> Document:
    """A finding of the emulator as the document of `check` shows it; of a compiled kernel at the
    program's line, with that of the PTX as `ptx_line`."""
    document = asdict(finding)
    for inner in ("subject", "other", "places", "why", "compiled_from"):
        del document[inner]
    if finding.places:
        file, line, col = finding.places[0].rsplit(":", 2)
        document |= {"file": file, "line": int(line), "col": int(col), "ptx_line": finding.line}
    elif finding.compiled_from:
        document["source"], *other = finding.compiled_from
        if other and finding.other is not None:
            document["message"] += f"; line {finding.other[0]} is of {other[0]}"
    if finding.why is not None:
        document["why"] = why_json(finding.why)
    return document


def finding_without_line(
    kind: str, message: str, file: str | None, severity: Severity = "error"
) -> Finding:
    """A finding without a line."""
    from fragir.emulator import Finding

    return Finding(kind, message, file, severity=severity)


def stop_finding(error: EmulationError) -> Finding:
    """What stops a run; a deadlock has no line: many lanes wait in many places."""
    from fragir.emulator import Finding

    found = Finding(
        error.kind,
        error.sentence,
        error.file,
        error.line,
        error.col,
        error.warp,
        error.lane,
        error.address,
        why=error.why,
        compiled_from=(error.compiled_from,) if error.compiled_from else (),
    )
    if error.ptx_line is None:
        return found
    at = f"{error.file}:{error.line}:{error.col}"
    return replace(found, file=None, line=error.ptx_line, col=None, places=(at,))


def print_findings(findings: Sequence[Document]) -> None:
    """A table, and below it what barriers have to do with a finding, line by line."""
    print_table(FINDING_COLUMNS, [finding_row(finding) for finding in findings])
    for finding in findings:
        if text := finding.get("why", {}).get("text"):
            place = finding_row(finding)[2] or finding["file"]
            lines = "" if "ptx_line" in finding else ", by lines of the PTX"
            print(f"{finding['kind']} at {place}{lines}:")
            print("".join(f"    {printable(line)}\n" for line in text), end="")


FINDING_COLUMNS = ("severity", "kind", "place", "warp", "lane", "address", "message")


def finding_place(finding: Document) -> str:
    """`race.mlir:7:3 (PTX 61)`, of PTX `k.ptx:61:5`, with `(k.cu:7:3)` where that is known."""
    place = ":".join(str(finding[k]) for k in ("file", "line", "col") if finding[k] is not None)
    if finding.get("ptx_line") is not None:
        return f"{place} (PTX {finding['ptx_line']})"
    return f"{place} ({finding['source']})" if "source" in finding else place


def finding_row(finding: Document) -> list[str]:
    address, count = finding["address"], finding["count"]
    times = "times" if address is None else "accesses"
    return [
        finding["severity"],
        finding["kind"],
        finding_place(finding),
        "" if finding["warp"] is None else str(finding["warp"]),
        "" if finding["lane"] is None else str(finding["lane"]),
        "" if address is None else f"{address:#x}",
        finding["message"] + (f" ({count} {times})" if count > 1 else ""),
    ]
