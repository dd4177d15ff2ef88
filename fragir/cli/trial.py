"""One program, run once and judged: the steps of `fragir run`."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fragir.cli.check import schedules, schedules_json
from fragir.cli.command import Document, Progress, note
from fragir.cli.launch import finding_json, finding_without_line, stop_finding
from fragir.cli.limits import NONE, Budget, Limit, check_fits_memory
from fragir.cli.terminal import STDERR
from fragir.compilation.notes import origin_of
from fragir.emulator.report import DEPENDS
from fragir.errors import FragirError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Operation
    from xdsl.passes import ModulePass

    from fragir.algebra.equality import ElementEquality
    from fragir.cli.machines import OnMachine
    from fragir.compilation.kernel import Compiled, Kernel
    from fragir.emulator import Finding, Report
    from fragir.emulator.numbers.types import Array
    from fragir.emulator.report import OpenSchedule, Schedules
    from fragir.reference.bounded import Bounded
    from fragir.reference.comparison import Comparison, Verdict
    from fragir.reference.inputs import Kind, ProgramArgument
    from fragir.roofline.lint import LaunchRemark


RanOn = Literal["emulator", "gpu"]
T = TypeVar("T")


@dataclass
class Trial:
    """One program, run once and judged."""

    text: str
    file: str
    entry: str | None
    target: str
    place: RanOn
    machine: str | None
    limit: Limit = NONE
    jobs: int | None = None
    passes: list[ModulePass] | None = None
    """Those that are applied, where not those that the program needs."""
    resident: int | None = None
    """Blocks that run at once, where not those that the kernel says."""
    stages: dict[str, float] = field(default_factory=dict[str, float])
    kernel: Kernel = field(init=False)
    modules: dict[bool, ModuleOp] = field(default_factory=dict[bool, "ModuleOp"])
    """The program as it was written, and bufferized."""
    slots: list[ProgramArgument] = field(init=False)
    sizes: dict[str, int] = field(init=False)
    inputs: list[Any] = field(init=False)
    expected: dict[int, Bounded] = field(init=False)
    answers: dict[int, Array] = field(default_factory=dict[int, "Array"])
    rtol: float | None = None
    results: list[Any] = field(init=False)
    unknown: list[str] = field(default_factory=list[str])
    comparisons: dict[str, Comparison] = field(default_factory=dict[str, "Comparison"])
    registers: int | None = None
    spills: int | None = None
    shared: int = 0
    tensor_instructions: str | None = None
    promised: dict[str, int] = field(default_factory=dict[str, int])
    """What the entry that runs relies on beyond what the program promises."""
    equalities: dict[str, ElementEquality] | None = None
    """Of `--exact`, by output."""
    machines: list[OnMachine] = field(default_factory=list["OnMachine"])
    """Of `--as`: what it does on each machine."""
    findings: list[Document] | None = None
    #: For which schedules the first run with checks speaks.
    of_schedules: Document | None = None
    """Of the checks, where they were asked for."""

    def run_timed(self, stage: str, label: str | None, function: Callable[[], T]) -> T:
        """What a function gives; `label` is beside the bar, where it takes long."""
        start = time.perf_counter()
        with nullcontext() if label is None else Progress(label):
            result = function()
        self.stages[stage] = (time.perf_counter() - start) * 1e3
        return result

    # --- the steps ----------------------------------------------------------------------------

    def compile(self) -> None:
        """MLIR to PTX; a stage for each pass."""
        from fragir import compiler

        try:
            with Progress("compiling"):
                self.kernel = compiler.compile(
                    self.text,
                    target=self.target,
                    entry=self.entry,
                    passes=self.passes,
                    filename=self.file,
                )
        except FragirError as error:
            error.file = error.file or self.file
            raise
        self.stages |= self.kernel.stages
        for words in self.kernel.lowering_notes:
            note(f"note: {words}")

    def prepare(
        self, sizes: dict[str, int], given: dict[str, str], kinds: Kind | dict[str, Kind], seed: int
    ) -> None:
        """Sizes and contents of all arguments; `kinds` of all, or by name, the others' under ""."""
        from fragir.reference.inputs import generate, resolve, slots

        function = self.function(bufferized=True)
        if "ptx.ntid" in function.attributes:
            raise FragirError(
                f"{self.kernel.name} is lane code, whose meaning is its PTX",
                self.file,
                hint="run it with `fragir emulate`",
            )
        compiled = [argument.dims for argument in self.kernel.signature]
        of_linalg = any(op.name.startswith(("linalg.", "memref.copy")) for op in function.walk())
        self.slots = slots(function, compiled if of_linalg else ())
        held = self.kernel.held.arrays
        constants = {self.slots[at].name: array for at, array in held.items()}
        values = constants | self._given(given)
        arrays = {slot.name: values[slot.name] for slot in self.slots if slot.name in values}
        arrays = {name: value for name, value in arrays.items() if hasattr(value, "shape")}
        self.sizes = resolve(self.slots, sizes, arrays)
        check_fits_memory(self.slots, self.sizes)
        self.kernel.check(self.sizes)
        self.inputs = self.run_timed(
            "inputs",
            "making inputs",
            lambda: generate(function, self.slots, self.sizes, values, kinds, seed),
        )

    def choose_entry(self) -> None:
        """Takes the entry that a call with these sizes runs."""
        start = time.perf_counter()
        entry = self.kernel.entry_for(self.sizes)
        if entry is self.kernel:
            return
        self.promised = _beyond(entry, self.kernel)
        self.stages["second entry"] = (time.perf_counter() - start) * 1e3
        self.kernel = entry

    def function(self, bufferized: bool = False) -> FuncOp:
        """The program as it was written: passes have changed the kernel's copy.

        Bufferized, its arguments are the kernel's: results of tensors are arguments too.
        """
        from xdsl.dialects import func

        from fragir import compiler
        from fragir.compilation.program import keep_only
        from fragir.passes.frag_bufferize import FragBufferizePass
        from fragir.passes.func_inline import FuncInlinePass
        from fragir.passes.linalg_normalize import LinalgNormalizePass, is_expanded

        module = self.modules.get(bufferized)
        if module is None and bufferized:
            self.function()
            module = self.modules[False].clone()
            keep_only(module, self.kernel.name)
            FuncInlinePass().apply(compiler.context(), module)
            if is_expanded(module):
                LinalgNormalizePass().apply(compiler.context(), module)
            FragBufferizePass().apply(compiler.context(), module)
        elif module is None:
            module = compiler.parse(self.text, self.file)
        self.modules[bufferized] = module
        functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
        return next(f for f in functions if f.sym_name.data == self.kernel.name)

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
        from fragir.toolchain.find import PTXAS, find
        from fragir.toolchain.sass import tensor_instructions

        try:
            find(PTXAS)
        except FragirError as error:
            if self.place == "gpu":
                raise
            note(f"not assembled: {error.sentence}")
            return
        assembled = self.run_timed("ptxas", "assembling", lambda: self.kernel.assembled)
        for code, message in assembled.other_warnings:
            note(f"warning: {code + ': ' if code else ''}{message}")
        entries = list(assembled.entries.values())
        for remark in self._slow:
            note(f"note: {remark}")
        for words in self.kernel.schedule_notes():
            note(f"warning: {words}")
        self.registers = max(info.registers for info in entries)
        self.spills = sum(info.spill_stores + info.spill_loads for info in entries)
        self.shared = max(info.shared for info in entries)
        self.tensor_instructions = tensor_instructions(assembled.cubin)

    def evaluate(self) -> None:
        """What the outputs must be; errors of the program appear here with their place in it."""
        from fragir.reference import evaluate, outputs

        function, bufferized = self.function(), self.function(bufferized=True)
        written = outputs(bufferized)
        if not written:
            raise FragirError(
                f"{self.kernel.name} writes none of its arguments", hint="there is nothing to check"
            )
        found = self.run_timed(
            "reference",
            "evaluating the reference",
            lambda: evaluate(
                function,
                self.of_written(self.inputs),
                target=self.machine or self.target,
                grid=self.blocks(),
                source=self.text,
                unknown=self._note_unknown,
            ),
        )
        expected = dict(zip(self.of_written(range(len(self.inputs))), found, strict=True))
        self.expected = {i: x for i, x in expected.items() if x is not None and i in written}

    def of_written(self, values: Sequence[T]) -> list[T]:
        """Of one value for each of the kernel's arguments those of the program as it was written:
        it has its constants itself.
        """
        held = self.kernel.held.arrays
        return [value for at, value in enumerate(values) if at not in held]

    def blocks(self) -> tuple[int, int, int]:
        """The grid that the reference evaluates: of a program without blocks one."""
        attributes = self.function(bufferized=True).attributes
        in_blocks = {"frag.grid", "frag.cluster"} & attributes.keys()
        return self.kernel.grid(self.sizes) if in_blocks else (1, 1, 1)

    def _note_unknown(self, op: Operation) -> None:
        """Says once of an operation that the reference does not know what it means."""
        from fragir.mlir.diagnostics import error_at_operation

        if op.name not in self.unknown:
            self.unknown.append(op.name)
            message = f"the reference does not know {op.name}: only --expect judges what it gives"
            note(str(error_at_operation(op, message)))

    def ask(self, expected: dict[str, str]) -> None:
        """What `--expect` says of outputs."""
        if expected:
            from fragir.cli.expect import answers

            self.answers = self.run_timed(
                "expect",
                "asking for answers",
                lambda: answers(expected, self.slots, list(self.expected), self.inputs),
            )

    def copies(self) -> list[Any]:
        """The inputs, for one run."""
        return [x.copy() if hasattr(x, "copy") else x for x in self.inputs]

    def differ(self, first: list[Any], other: list[Any]) -> list[str]:
        """The arguments whose bytes are not the same after two runs."""
        pairs = zip(self.slots, first, other, strict=True)
        return [x.name for x, a, b in pairs if hasattr(a, "tobytes") and a.tobytes() != b.tobytes()]

    def execute(self) -> None:
        """Runs it on copies of the inputs."""
        self.shared += max(kernel.shared for kernel in self.kernel.parts)
        self.launch()
        for kernel in self.kernel.parts:  # those of a program of the host have entries themselves
            for entry in kernel.second_entries:
                self.promised |= _beyond(entry, kernel)

    def launch(self) -> None:
        """One run on copies of the inputs; of no blocks, where arrays are empty, nothing runs."""
        self.results = self.copies()
        with Progress("running") as progress:
            options: dict[str, object] = {}
            if self.place == "emulator":
                options = {
                    "progress": progress,
                    "heartbeat": progress.beat,
                    "target": self.machine or self.target,
                    "limit": self.limit,
                    "jobs": self.jobs,
                    "output": STDERR,
                }
            self.run_timed("run", None, lambda: self.run_once(self.results, options))

    def run_once(self, results: list[Any], options: dict[str, Any]) -> Report | None:
        """One launch; what the kernel prints goes to stderr, as stdout has the report.

        The emulator's report; None of a GPU, or where there is nothing to run.
        """
        sizes = {**self.sizes, **self.kernel.sizes(results)}
        if 0 in self.kernel.grid(sizes):
            return None
        grid = self.kernel.grid(sizes, self.resident or self.kernel.resident(self.place, sizes))
        with _stdout_to_stderr() if self.place == "gpu" else nullcontext():
            if self.kernel.is_program:
                return self.kernel(*results, on=self.place, resident=self.resident, **options)
            return self.kernel.launch(grid, None, *results, on=self.place, **options)

    def judge(self, rtol: float | None = None, allowed: float = 0.0) -> None:
        """Compares every output with the reference, and with the answers from outside."""
        from fragir.reference import compare
        from fragir.reference.inputs import are_finite

        self.rtol = rtol
        given = not are_finite(self.slots, self.inputs)
        for i, expected in self.expected.items():
            slot = self.slots[i]
            self.comparisons[slot.name] = compare(
                expected,
                self.results[i],
                slot.element,
                answer=self.answers.get(i),
                rtol=rtol,
                allow_unjudged=allowed,
                nan_given=given,
            )

    def run_on_others(
        self, machines: Sequence[str], rtol: float | None = None, allowed: float = 0.0
    ) -> None:
        """Runs and judges it on further machines; `machines` has the one that it has run on first.

        The comparisons that are kept are the first's, or those of the first machine that fails.
        """
        from fragir.cli.machines import OnMachine, differences

        first, comparisons = self.results, self.comparisons
        found = [OnMachine(machines[0], self.worst_verdict)]
        for machine in machines[1:]:
            self.machine, self.comparisons = machine, {}
            self.evaluate()
            self.launch()
            self.judge(rtol, allowed)
            pairs = {
                self.slots[i].name: differences(first[i], self.results[i], self.slots[i].element)
                for i in self.expected
            }
            differing = {name: one for name, one in pairs.items() if one is not None}
            if self.worst_verdict == "FAIL" and all(each.verdict != "FAIL" for each in found):
                comparisons = self.comparisons
            found.append(OnMachine(machine, self.worst_verdict, differing))
        self.machine, self.results, self.comparisons = machines[0], first, comparisons
        self.machines = found

    # --- the verdict ----------------------------------------------------------------------------

    @property
    def verdict(self) -> Verdict:
        """The worst of all outputs'; FAIL where checks have found an error, or `--exact` another
        function."""
        if any(found.different for found in (self.equalities or {}).values()):
            return "FAIL"
        if any(x["severity"] == "error" for x in self.findings or ()):
            return "FAIL"
        return _worst([self.worst_verdict, *(each.verdict for each in self.machines)])

    @property
    def worst_verdict(self) -> Verdict:
        """The worst of all outputs', by the values alone."""
        return _worst([found.verdict for found in self.comparisons.values()])

    @property
    def has_passed(self) -> bool:
        return self.verdict == "PASS"

    @property
    def unjudged_count(self) -> int:
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

    @cached_property
    def _slow(self) -> list[LaunchRemark]:
        """What makes its launches slow at sizes that matter."""
        return self.kernel.own_lint()

    def _exact_document(self) -> Document:
        return {name: found.document() for name, found in (self.equalities or {}).items()}

    def document(self) -> Document:
        """What `--json` prints."""
        return {
            "entry": self.kernel.name,
            "target": self.target,
            "on": self.place,
            "stages": {name: round(ms, 3) for name, ms in self.stages.items()},
            "registers": self.registers,
            "spills": self.spills,
            "shared": self.shared,
            "max_error": _finite_or_none(self.worst.max_error),
            "bound": _finite_or_none(self.worst.bound),
            "mismatches": self.mismatches,
            "unjudged": self.unjudged_count,
            "judged_by": self.judged_by,
            "result": self.verdict,
            **({"promised": self.promised} if self.promised else {}),
            **({"slow": [one.document for one in self._slow]} if self._slow else {}),
            **({} if self.equalities is None else {"exact": self._exact_document()}),
            **({"machines": [one.document for one in self.machines]} if self.machines else {}),
            **({} if self.findings is None else {"findings": self.findings}),
            **({} if self.of_schedules is None else {"schedules": self.of_schedules}),
        }


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    if "FAIL" in verdicts:
        return "FAIL"
    return "UNJUDGED" if "UNJUDGED" in verdicts else "PASS"


def _beyond(entry: Compiled, kernel: Compiled) -> dict[str, int]:
    """What an entry relies on that a kernel does not."""
    return {name: by for name, by in entry.promises.items() if by != kernel.promises.get(name)}


@contextmanager
def _stdout_to_stderr() -> Generator[None]:
    """Of the whole process: the driver writes what kernels print to its stdout."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None


# -- trial check -----------------------------------------------------------------------------------
# `fragir run --check`: the kernel with every check on, under the schedules of `fragir check`.

SEEDS = 2
"""Random schedules beside the regular ones, as `fragir check` has them unless told."""


def examine(trial: Trial) -> list[Document]:
    """The findings of all runs, each once, at the program's lines where they are known."""
    from fragir.emulator import EmulationError
    from fragir.emulator.report import gather

    found_in: list[list[Finding]] = []
    first: list[Any] | None = None
    budget = Budget(trial.limit)
    runs = list(schedules(SEEDS))
    with Progress("checking") as progress:
        for index, (schedule, asynchrony) in enumerate(runs):
            if budget.is_spent:
                text = f"{index} of {len(runs)} runs were done in {trial.limit[1]:g} seconds"
                found_in.append([finding_without_line("limit", f"{text}, the limit", trial.file)])
                break
            progress.say(f"checking, run {index + 1} of {len(runs)}")
            results = trial.copies()
            try:
                report = trial.run_once(
                    results,
                    {
                        "check": True,
                        "schedule": schedule,
                        "asynchrony": asynchrony,
                        "progress": progress,
                        "heartbeat": progress.beat,
                        "target": trial.target,
                        "limit": budget.next(),
                        "jobs": trial.jobs,
                    },
                )
            except EmulationError as error:
                if error.report is None:
                    raise  # the launch is wrong, not the program
                found = [*error.report.findings, stop_finding(error)]
            else:
                if report is None:  # nothing to run
                    break
                found = report.findings
                if index == 0:
                    trial.of_schedules = _placed_schedules(trial, report.schedules)
                if first is None:
                    first = results
                elif trial.differ(first, results):
                    way = f"schedule {schedule}, " if schedule is not None else ""
                    names = ", ".join(trial.differ(first, results))
                    text = f"{names} differs between the regular schedule and {way}async"
                    found = [
                        *found,
                        finding_without_line(DEPENDS, f"{text} {asynchrony}", trial.file),
                    ]
            found_in.append(found)
            progress((index + 1) / len(runs))
    return [_placed_finding(trial, one) for one in gather(*found_in)]


def _placed_finding(trial: Trial, found: Finding) -> Document:
    """A finding at the program's line, and what it says of the PTX: the statement there."""
    place, statement = _origin(trial, found.line)
    if place and not found.places:
        found = replace(found, places=(place,))
    finding = finding_json(found)
    if not found.places:
        finding |= {"file": trial.file, "line": None, "col": None}
    finding["message"] += statement
    return finding


def _placed_schedules(trial: Trial, found: Schedules | None) -> Document | None:
    """The same of what is up to the schedule."""

    def placed(one: OpenSchedule) -> OpenSchedule:
        place, statement = _origin(trial, one.line)
        line = int(place.rsplit(":", 2)[1]) if place else None
        return replace(one, line=line, why=one.why + statement)

    shown = found and replace(found, open=[placed(one) for one in found.open])
    return shown and schedules_json(shown, SEEDS + 2)


def _origin(trial: Trial, line: int | None) -> tuple[str, str]:
    """Where a line of the PTX comes from, FILE:LINE:COL, and its statement in brackets; both empty
    where that is not known."""
    parts = trial.kernel.parts
    if line is None or len(parts) != 1:
        return "", ""
    statement = parts[0].ptx.split("\n")[line - 1].strip()
    return str(origin_of(line, parts[0].origins) or ""), f" (PTX: {statement})"
