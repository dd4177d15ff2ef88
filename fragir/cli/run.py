"""`fragir run`: compile, assemble, run, and hold the result against the program's meaning."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import click

from fragir.cli.common import (
    FINDING,
    Progress,
    command,
    json_option,
    note,
    print_json,
    print_table,
)
from fragir.cli.files import read_text
from fragir.cli.limit import NONE, Limit, limit_option
from fragir.cli.memory import refuse_too_large
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.compiler import Kernel
    from fragir.reference.comparison import Comparison, Verdict
    from fragir.reference.inputs import Kind, Slot

Place = Literal["emulator", "gpu"]
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
        if not 1 <= size < 1 << 31:
            raise click.BadParameter(f"`{text}`: a size is 1 to 2147483647")
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


def finite(
    _context: click.Context, _parameter: click.Parameter, value: float | None
) -> float | None:
    """A callback for a number that may be absent, but neither infinite nor NaN."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number")
    return value


@command()
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
    type=click.Choice(["normal", "onehot", "integers", "zeros"]),
    default="normal",
    show_default=True,
    help="What arrays hold that --arg does not give.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@limit_option
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
    callback=finite,
    metavar="X",
    help="How far from the answer, or else from a value without a bound, relative to it.",
)
@click.option(
    "--allow-unjudged",
    "allowed",
    type=click.FloatRange(0, 1),
    callback=finite,
    default=0.0,
    metavar="SHARE",
    help="The share of an output's elements, 0 to 1, of which nothing need be known.",
)
@json_option
def main(
    program: str,
    on: Literal["emulator", "gpu", "auto"],
    entry: str | None,
    target: str | None,
    sizes: dict[str, int],
    given: dict[str, str],
    inputs: Kind,
    seed: int,
    limit: Limit,
    expected: dict[str, str],
    rtol: float | None,
    allowed: float,
    as_json: bool,
) -> int | None:
    """Compile a program, run it, and check the result against its meaning in numpy.

    Results must lie within error bounds derived from types, sizes and operations; integer
    results must be equal. Where an element has neither a bound nor an --expect, the run is
    UNJUDGED.
    """
    from fragir.isa.targets import known

    if target is not None:
        known(target)
    place, machine = _place(on)
    target = target or machine or DEFAULT_TARGET
    name = "<stdin>" if program == "-" else program
    trial = Trial(read_text(program, "MLIR"), name, entry, target, place, machine, limit)
    if place == "gpu" and limit != NONE:
        raise FragirError("--limit is for the emulator", hint="add --on emulator")
    trial.compile()
    trial.prepare(sizes, given, inputs, seed)
    trial.assemble()
    trial.evaluate()
    trial.ask(expected)
    trial.execute()
    trial.judge(rtol, allowed)
    if as_json:
        print_json(trial.document())
    else:
        trial.show()
    return None if trial.passed else FINDING


def _place(on: Literal["emulator", "gpu", "auto"]) -> tuple[Place, str | None]:
    """Where to run, and the GPU's target."""
    if on == "emulator":
        return "emulator", None
    from fragir.toolchain import driver

    reason = driver.available()
    if reason is None:
        machine = driver.gpu().target
        # the features of exactly this machine, which wgmma is among
        return "gpu", f"{machine}a" if machine in ("sm_90", "sm_100", "sm_103") else machine
    if on == "gpu":
        driver.gpu()  # raises what is the matter
    note(f"no GPU, so this runs on the emulator: {' '.join(reason.split())}")
    return "emulator", None


@dataclass
class Trial:
    """One program, run once and judged."""

    text: str
    file: str
    entry: str | None
    target: str
    place: Place
    machine: str | None
    limit: Limit = NONE
    stages: dict[str, float] = field(default_factory=dict[str, float])
    kernel: Kernel = field(init=False)
    slots: list[Slot] = field(init=False)
    sizes: dict[str, int] = field(init=False)
    inputs: list[Any] = field(init=False)
    expected: dict[int, Any] = field(init=False)
    answers: dict[int, Any] = field(default_factory=dict[int, Any])
    rtol: float | None = None
    results: list[Any] = field(init=False)
    comparisons: dict[str, Comparison] = field(default_factory=dict[str, "Comparison"])
    registers: int | None = None
    spills: int | None = None
    shared: int = 0
    tensor_instructions: str | None = None

    def timed(self, stage: str, function: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = function()
        self.stages[stage] = (time.perf_counter() - start) * 1e3
        return result

    # --- the steps ----------------------------------------------------------------------------

    def compile(self) -> None:
        """MLIR to PTX; a stage for each pass."""
        from fragir import compiler

        try:
            self.kernel = compiler.compile(
                self.text, target=self.target, entry=self.entry, filename=self.file
            )
        except FragirError as error:
            error.file = error.file or self.file
            raise
        self.stages |= self.kernel.stages

    def prepare(self, sizes: dict[str, int], given: dict[str, str], kind: Kind, seed: int) -> None:
        """Sizes and contents of all arguments."""
        from fragir.reference.inputs import generate, resolve, slots

        function = self._function(bufferized=True)
        if "ptx.ntid" in function.attributes:
            raise FragirError(
                f"{self.kernel.name} is lane code, whose meaning is its PTX",
                self.file,
                hint="run it with `fragir emulate`",
            )
        self.slots = slots(function)
        values = self._given(given)
        arrays = {slot.name: values[slot.name] for slot in self.slots if slot.name in values}
        arrays = {name: value for name, value in arrays.items() if hasattr(value, "shape")}
        self.sizes = resolve(self.slots, sizes, arrays)
        refuse_too_large(self.slots, self.sizes)
        self.kernel.check(self.sizes)
        self.inputs = self.timed(
            "inputs", lambda: generate(function, self.slots, self.sizes, values, kind, seed)
        )

    def _function(self, bufferized: bool = False) -> Any:
        """The program as it was written: passes have changed the kernel's copy.

        Bufferized, its arguments are the kernel's: results of tensors are arguments too.
        """
        from xdsl.dialects import func

        from fragir import compiler
        from fragir.passes.frag_bufferize import FragBufferizePass

        module = compiler.parse(self.text, self.file)
        functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
        function = next(f for f in functions if f.sym_name.data == self.kernel.name)
        if bufferized:
            for other in functions:
                if other is not function:
                    other.detach()
            FragBufferizePass().apply(compiler.context(), module)
        return function

    def _given(self, given: dict[str, str]) -> dict[str, Any]:
        """The values of `--arg`."""
        from fragir.cli.arguments import read_array
        from fragir.reference.inputs import array_from, scalar_from

        known = {slot.name: slot for slot in self.slots}
        values: dict[str, Any] = {}
        for name, text in given.items():
            slot = known.get(name)
            if slot is None:
                raise FragirError(
                    f"{self.kernel.name} has no argument {name}",
                    hint=f"it has {', '.join(known) or 'none'}",
                )
            if slot.shape is None:
                values[name] = scalar_from(text, slot)
            else:
                values[name] = array_from(read_array(text), slot)
        return values

    def assemble(self) -> None:
        """PTX to a cubin, where there is a ptxas: an emulator needs none."""
        from fragir.lowering_notes import spill_notes
        from fragir.toolchain.find import PTXAS, find

        try:
            find(PTXAS)
        except FragirError as error:
            if self.place == "gpu":
                raise
            note(f"not assembled: {error.sentence}")
            return
        assembled = self.timed("ptxas", lambda: self.kernel.assembled)
        for code, message in assembled.warnings:
            note(f"warning: {code + ': ' if code else ''}{message}")
        info = assembled.entries[self.kernel.name]
        for words in spill_notes({self.kernel.name: info}):
            note(f"warning: {words}")
        self.registers = info.registers
        self.spills = info.spill_stores + info.spill_loads
        self.shared = info.shared
        self.tensor_instructions = _tensor_instructions(assembled.cubin)

    def evaluate(self) -> None:
        """What the outputs must be; errors of the program appear here with their place in it."""
        from fragir.dialects.frag import GridAttr
        from fragir.reference import evaluate, outputs

        function, bufferized = self._function(), self._function(bufferized=True)
        written = outputs(bufferized)
        if not written:
            raise FragirError(
                f"{self.kernel.name} writes none of its arguments", hint="there is nothing to check"
            )
        grid = bufferized.attributes.get("frag.grid")
        blocks = grid.evaluate(self.sizes) if isinstance(grid, GridAttr) else (1, 1, 1)
        expected = self.timed(
            "reference",
            lambda: evaluate(
                function,
                self.inputs,
                target=self.machine or self.target,
                grid=blocks,
                source=self.text,
            ),
        )
        self.expected = {i: expected[i] for i in written}

    def ask(self, expected: dict[str, str]) -> None:
        """What `--expect` says of outputs."""
        if expected:
            from fragir.cli.expect import answers

            self.answers = self.timed(
                "expect", lambda: answers(expected, self.slots, list(self.expected), self.inputs)
            )

    def execute(self) -> None:
        """Runs it on copies of the inputs."""
        self.shared += self.kernel.shared
        self.results = [x.copy() if hasattr(x, "copy") else x for x in self.inputs]
        grid = self.kernel.grid(self.sizes)
        with Progress("running") as progress:
            options: dict[str, Any] = {}
            if self.place == "emulator":
                options = {
                    "progress": progress,
                    "heartbeat": progress.beat,
                    "target": self.target,
                    "limit": self.limit,
                }
            self.timed(
                "run",
                lambda: self.kernel.launch(grid, None, *self.results, on=self.place, **options),
            )

    def judge(self, rtol: float | None = None, allowed: float = 0.0) -> None:
        """Compares every output with the reference, and with the answers from outside."""
        from fragir.reference import compare

        self.rtol = rtol
        for i, expected in self.expected.items():
            slot = self.slots[i]
            self.comparisons[slot.name] = compare(
                expected,
                self.results[i],
                slot.element,
                answer=self.answers.get(i),
                rtol=rtol,
                allow_unjudged=allowed,
            )

    # --- the verdict --------------------------------------------------------------------------

    @property
    def verdict(self) -> Verdict:
        """The worst of all outputs'."""
        verdicts = {found.verdict for found in self.comparisons.values()}
        if "FAIL" in verdicts:
            return "FAIL"
        return "UNJUDGED" if "UNJUDGED" in verdicts else "PASS"

    @property
    def passed(self) -> bool:
        return self.verdict == "PASS"

    @property
    def unjudged(self) -> int:
        return sum(found.unjudged for found in self.comparisons.values())

    @property
    def judged_by(self) -> str:
        """What judges elements besides their bounds."""
        if self.rtol is not None:
            return f"rtol {self.rtol:g}"
        return "expect" if self.answers else "bound"

    @property
    def mismatches(self) -> int:
        return sum(found.mismatches for found in self.comparisons.values())

    @property
    def worst(self) -> Comparison:
        """The comparison with the largest error, among those with mismatches if there are any."""

        def rank(found: Comparison) -> tuple[bool, float, float]:
            judged = not math.isnan(found.max_error)
            return (
                found.mismatches > 0,
                found.max_error if judged else -1.0,
                found.bound if judged else -1.0,
            )

        return max(self.comparisons.values(), key=rank)

    def document(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "entry": self.kernel.name,
            "target": self.target,
            "on": self.place,
            "stages": {name: round(ms, 3) for name, ms in self.stages.items()},
            "registers": self.registers,
            "spills": self.spills,
            "shared": self.shared,
            "max_error": _finite(self.worst.max_error),
            "bound": _finite(self.worst.bound),
            "mismatches": self.mismatches,
            "unjudged": self.unjudged,
            "judged_by": self.judged_by,
            "result": self.verdict,
        }

    def show(self) -> None:
        """Two tables and the verdict on stdout."""
        sizes = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        print(f"{self.kernel.name} for {self.target} on the {self.place}: {sizes}")
        print_table(["stage", "ms"], [(name, round(ms, 1)) for name, ms in self.stages.items()])
        rows: list[tuple[str, str]] = [
            ("registers", _or_unknown(self.registers)),
            ("spills", _or_unknown(self.spills, " bytes")),
            ("shared memory", f"{self.shared} bytes"),
            ("tensor-core instructions", self.tensor_instructions or "unknown"),
        ]
        for name, found in self.comparisons.items():
            rows += self._rows(name, found)
        print_table(["what", "value"], rows)
        print(self.verdict)

    def _rows(self, name: str, found: Comparison) -> Sequence[tuple[str, str]]:
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
        if found.unjudged:
            share = f"{found.unjudged} of {found.size} elements"
            if found.unbounded < found.unjudged:
                share += ", all NaN by the program, as any mistake would give"
            else:
                share += " may overflow or be no number; --expect gives an answer"
            rows.append((f"unjudged in {name}", share))
        return rows


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _or_unknown(number: int | None, unit: str = "") -> str:
    return "unknown" if number is None else f"{number}{unit}"


_TENSOR_OPCODES = (
    *("HMMA", "IMMA", "DMMA", "QMMA", "OMMA", "BMMA"),
    *("HGMMA", "IGMMA", "QGMMA", "BGMMA"),
)


def _tensor_instructions(cubin: bytes) -> str | None:
    """`32 HMMA`: how many stand in the SASS; None without an nvdisasm for this machine."""
    from fragir.toolchain.find import NVDISASM, find
    from fragir.toolchain.sass import disassemble, opcodes

    try:
        find(NVDISASM)
        counts = opcodes(disassemble(cubin))
    except FragirError:  # none, or one that knows this machine no more
        return None
    return ", ".join(f"{counts[name]} {name}" for name in _TENSOR_OPCODES if counts[name]) or "none"
