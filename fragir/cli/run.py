"""`fragir run`: compile, assemble, run, and hold the result against the program's meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from fragir.cli.check import print_schedules
from fragir.cli.command import (
    FINDING,
    command,
    json_option,
    note,
    passes_option,
    print_json,
    print_table,
)
from fragir.cli.files import read_text
from fragir.cli.launch import finding_place, print_findings
from fragir.cli.limits import NONE, Limit, jobs_option, limit_option
from fragir.cli.machines import common_target, read_machines
from fragir.cli.trial import SEEDS, RanOn, Trial
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.cli.machines import OnMachine
    from fragir.reference.comparison import Comparison
    from fragir.reference.inputs import Kind

__all__ = ["RanOn", "Trial", "main"]

DEFAULT_TARGET = "sm_80"
_NAME = r"[A-Za-z_][\w$.-]*"


def read_sizes(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    """A callback for `--size m=250,n=130`: sizes by name."""
    sizes: dict[str, int] = {}
    for text in [part for value in values for part in value.split(",")]:
        match = re.fullmatch(rf"({_NAME})=([0-9]{{1,99}})", text.strip(), re.ASCII)
        if match is None:
            raise click.BadParameter(f"`{text}` is not of the form NAME=NUMBER")
        name, size = match[1], int(match[2])
        if not 0 <= size < 1 << 31:
            raise click.BadParameter(f"`{text}`: a size is 0 to 2147483647")
        if sizes.setdefault(name, size) != size:
            raise click.BadParameter(f"{name} is both {sizes[name]} and {size}")
    return sizes


def read_given(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """A callback for `--arg NAME=VALUE`: texts by the argument's name."""
    given: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise click.BadParameter(f"`{text}` is not of the form NAME=VALUE or NAME=FILE.npy")
        if name in given:
            raise click.BadParameter(f"{name} is given twice")
        given[name] = value
    return given


def require_finite(
    _context: click.Context, _parameter: click.Parameter, value: float | None
) -> float | None:
    """A callback for a number that may be absent, but neither infinite nor NaN."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number")
    return value


class InputsWord(click.Choice[str]):
    """A kind of contents, or NAME=KIND of one array."""

    KINDS = ("normal", "onehot", "integers", "zeros", "positive", "sorted", "permutation", "spd")

    def __init__(self) -> None:
        super().__init__(self.KINDS)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "[NAME=]KIND"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        name, equals, kind = str(value).rpartition("=")
        return f"{name}{equals}{super().convert(kind, param, ctx)}"


def read_inputs(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """A callback for `--inputs [NAME=]KIND`: kinds by the argument's name, "" for all others."""
    kinds: dict[str, str] = {}
    for text in values:
        name, equals, kind = text.rpartition("=")
        if equals and not name:
            raise click.BadParameter(f"`{text}` is not of the form NAME=KIND")
        if kinds.setdefault(name, kind) != kind:
            raise click.BadParameter(f"{name or 'all others'} is both {kinds[name]} and {kind}")
    return kinds


EXAMPLES = (
    (
        "On the emulator, with random inputs of these sizes:",
        "fragir run examples/gemm.mlir --on emulator --size m=100,n=60,k=40",
    ),
    (
        "Only wgmma, inputs of one element each, the answer as JSON:",
        "fragir run examples/gemm.mlir --on emulator --target sm_90a --size m=64,n=64,k=64"
        " --inputs onehot --json",
    ),
    (
        "With numbers of one's own; FILE.npy for an array:",
        "fragir run examples/gemm.mlir --on emulator --size m=16,n=16,k=16 --arg alpha=2"
        " --arg beta=0",
    ),
)


@command(examples=EXAMPLES)
@click.argument("program", metavar="IN.mlir")
@click.option(
    "--on",
    type=click.Choice(["emulator", "gpu", "auto"]),
    default="auto",
    show_default=True,
    help="Where to run; auto is a GPU where there is one.",
)
@click.option("--entry", metavar="NAME", help="The function; needed if there are several.")
@click.option(
    "--target", metavar="SM", help=f"The GPU's if absent, or {DEFAULT_TARGET} on the emulator."
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    callback=read_sizes,
    metavar="NAME=N,...",
    help="Dynamic sizes, as in m=250,n=130,k=77.",
)
@click.option(
    "--arg",
    "given",
    multiple=True,
    callback=read_given,
    metavar="NAME=VALUE",
    help="An argument: a number, or FILE.npy for an array.",
)
@click.option(
    "--inputs",
    multiple=True,
    type=InputsWord(),
    callback=read_inputs,
    help="What arrays hold that --arg does not give, all or one: normal (unless given), onehot,"
    " integers, zeros, positive, sorted, permutation, spd (symmetric positive definite).",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@limit_option
@jobs_option
@click.option(
    "--expect",
    "expected",
    multiple=True,
    callback=read_given,
    metavar="NAME=ANSWER",
    help="What an output must be as well: FILE.npy, or MODULE:FUNCTION of the arguments' values.",
)
@click.option(
    "--rtol",
    type=click.FloatRange(min=0),
    callback=require_finite,
    metavar="X",
    help="How far from the answer, or else from a value without a bound, relative to it.",
)
@click.option(
    "--allow-unjudged",
    "allowed",
    type=click.FloatRange(0, 1),
    callback=require_finite,
    default=0.0,
    metavar="SHARE",
    help="The share of an output's elements, 0 to 1, of which nothing need be known.",
)
@click.option(
    "--resident",
    type=click.IntRange(min=1),
    metavar="N",
    help="Blocks that run at once, for grids that go by it; the GPU is asked if absent.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Look for races, missing waits and the like, under the schedules of `fragir check`.",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Say whether outputs are the same functions of the inputs as the program means, whatever"
    " is rounded.",
)
@click.option(
    "--as",
    "machines",
    callback=read_machines,
    metavar="SM,SM...",
    help="Run the same kernel with the arithmetic of each of these machines, and say where the bits"
    " differ.",
)
@passes_option
@json_option
def main(
    program: str,
    on: Literal["emulator", "gpu", "auto"],
    entry: str | None,
    target: str | None,
    sizes: dict[str, int],
    given: dict[str, str],
    inputs: dict[str, Kind],
    seed: int,
    limit: Limit,
    jobs: int | None,
    expected: dict[str, str],
    rtol: float | None,
    allowed: float,
    resident: int | None,
    check: bool,
    exact: bool,
    machines: tuple[str, ...],
    passes: str | None,
    as_json: bool,
) -> int | None:
    """Compile a program, run it, and check the result against its meaning in numpy.

    Results must lie within error bounds derived from types, sizes and operations; integer
    results must be equal. Where an element has neither a bound nor an --expect, the run is
    UNJUDGED.
    """
    from fragir.isa.targets import require_target

    if target is not None:
        require_target(target)
    place, machine = _place(on)
    if machines and place == "emulator":
        machine = machines[0]
        target = common_target(machines, target)
    target = target or machine or DEFAULT_TARGET
    name = "<stdin>" if program == "-" else program
    trial = Trial(read_text(program, "MLIR"), name, entry, target, place, machine, limit, jobs)
    for option, asked in (
        ("--limit", limit != NONE),
        ("--jobs", jobs is not None),
        ("--check", check),
        ("--exact", exact),
        ("--as", bool(machines)),
    ):
        if place == "gpu" and asked:
            raise FragirError(f"{option} is for the emulator", hint="add --on emulator")
    trial.resident = resident
    if passes is not None:
        from fragir.compilation import pipeline

        trial.passes = pipeline.parse(passes, target)
    trial.compile()
    trial.prepare(sizes, given, inputs, seed)
    trial.choose_entry()
    trial.assemble()
    trial.evaluate()
    trial.ask(expected)
    if check:
        from fragir.cli.trial import examine

        trial.findings = trial.run_timed("check", None, lambda: examine(trial))
    trial.execute()
    trial.judge(rtol, allowed)
    if machines:
        trial.run_on_others(machines, rtol, allowed)
    if exact:
        from fragir.cli.exact import follow_trial

        trial.equalities = trial.run_timed(
            "exact", "following elements", lambda: follow_trial(trial, seed)
        )
    if as_json:
        print_json(trial.document())
    else:
        show(trial)
        if trial.has_passed and not check:
            how = "--on emulator --check" if place == "gpu" else "--check"
            note(f"the values are right; races and missing waits were not looked for: {how}")
    return None if trial.has_passed else FINDING


def _place(on: Literal["emulator", "gpu", "auto"]) -> tuple[RanOn, str | None]:
    """Where to run, and the GPU's target."""
    if on == "emulator":
        return "emulator", None
    from fragir.toolchain import driver

    reason = driver.available()
    if reason is None:
        from fragir.isa.targets import with_features

        # the features of exactly this machine, which wgmma is among
        return "gpu", with_features(driver.gpu().target)
    if on == "gpu":
        driver.gpu()  # raises what is the matter
    note(f"no GPU, so this runs on the emulator: {' '.join(reason.split())}")
    return "emulator", None


# -- report ----------------------------------------------------------------------------------------
# What is printed of a trial: its tables and its verdict.


def show(trial: Trial) -> None:
    """Two tables and the verdict on stdout."""
    sizes = " ".join(f"{name}={size}" for name, size in trial.sizes.items())
    print(f"{trial.kernel.name} for {trial.target} on the {trial.place}: {sizes}")
    print_table(["stage", "ms"], [(name, round(ms, 1)) for name, ms in trial.stages.items()])
    words = ", ".join(f"{name} is a multiple of {by}" for name, by in trial.promised.items())
    rows: list[tuple[str, str]] = [
        *([("the entry relies on", words)] if words else []),
        ("registers", _or_unknown(trial.registers)),
        ("spills", _or_unknown(trial.spills, " bytes")),
        ("shared memory", f"{trial.shared} bytes"),
        ("tensor-core instructions", trial.tensor_instructions or "unknown"),
    ]
    for name, found in trial.comparisons.items():
        rows += _rows(name, found, trial.unknown)
    for name, equality in (trial.equalities or {}).items():
        rows.append((f"{name} is", equality.sentence))
    for one in trial.machines:
        rows += _beside(one, trial)
    print_table(["what", "value"], rows)
    if trial.findings:
        print_findings(trial.findings)
    elif trial.findings is not None:
        print(f"no findings in {SEEDS + 2} runs with every check on")
    if trial.of_schedules and not any(x["severity"] == "error" for x in trial.findings or ()):
        print_schedules(trial.of_schedules)
    print(_verdict(trial))


def _verdict(trial: Trial) -> str:
    """The verdict; where checks have found an error, the first of them and its place."""
    errors = [one for one in trial.findings or () if one["severity"] == "error"]
    if trial.verdict != "FAIL" or not errors:
        return trial.verdict
    place = finding_place(errors[0])
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    return f"FAIL: {errors[0]['kind']} at {place}{more}"


def _rows(name: str, found: Comparison, unknown: Sequence[str]) -> Sequence[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if not math.isnan(found.max_error):
        limit = f"(bound {found.bound:.3g})"
        rows.append((f"largest error in {name}", f"{found.max_error:.3g} {limit}"))
    if found.worst is not None:
        place = ", ".join(map(str, found.worst))
        rows.append((f"mismatches in {name}", str(found.mismatches)))
        rows.append(
            (f"worst, {name}[{place}]", f"{found.found:.9g}, expected {found.expected:.9g}")
        )
    if found.nan:
        about = f"{found.nan} of {found.size} elements are NaN by the program, as any mistake would"
        about += " make them; give inputs of which it makes numbers (--inputs, --arg), or --expect"
        rows.append((f"unjudged in {name}", about))
    if open_ := found.unjudged - found.nan:
        share = f"{open_} of {found.size} elements"
        if unknown:
            share += f" may depend on {' and '.join(unknown)}; --expect gives an answer"
        else:
            share += " may overflow or be no number; --expect gives an answer"
        rows.append((f"unjudged in {name}", share))
    return rows


def _beside(one: OnMachine, trial: Trial) -> Sequence[tuple[str, str]]:
    """What a kernel does on one of several machines."""
    if one is trial.machines[0]:
        return [(f"on {one.target}", one.verdict)]
    told = [f"{name} has {found.words}" for name, found in one.differing.items()]
    said = told or [f"the bits of {trial.machines[0].target}"]
    return [(f"on {one.target}", f"{one.verdict}, {words}") for words in said]


def _or_unknown(number: int | None, unit: str = "") -> str:
    return "unknown" if number is None else f"{number}{unit}"
