"""A program, compiled here or PTX from elsewhere, as the model of the page."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from fragir.compilation import pipeline
from fragir.compilation.pipeline import Given
from fragir.compilation.program import (
    check_sizes,
    choose_entry,
    emit_with_origins,
    keep_only,
    lift,
    parse,
    steps,
)
from fragir.compilation.signature import Interface, interface_of
from fragir.dialects.frag.kernels import kernels_of
from fragir.errors import FragirError, check_kind
from fragir.explain.drawn import Gallery, instructions_shown
from fragir.explain.report import (
    ErrorShown,
    MachineFunction,
    MachineLine,
    Mark,
    OpenShown,
    ProgramReport,
    PtxShown,
    SchedulesShown,
    SourceText,
    StageShown,
    ValueShown,
)
from fragir.explain.stages import StageRecorder
from fragir.explain.texts import PrintedModule, place_in, print_module
from fragir.isa.targets import require_target
from fragir.passes.frag_place import FragPlacePass
from fragir.passes.stages import is_lanes

if TYPE_CHECKING:
    from fragir.emulator import Finding, FragmentUse
    from fragir.emulator.report import Schedules
    from fragir.passes.writer.text import LineOrigin
    from fragir.toolchain.verdicts import ScheduleVerdict


# -- judged ----------------------------------------------------------------------------------------
# What is said of a program, at the lines it is about: by ptxas, by checks, by ourselves.


def from_compiler(module: ModuleOp, target: str) -> Iterator[Mark]:
    """Remarks of the lowering, and on instructions that the target does not have natively."""
    from fragir.compilation.notes import instruction_notes, instructions_of, remarks_of

    for words in (*remarks_of(module), *instruction_notes(instructions_of(module), target)):
        yield Mark("compiler", "remark", "remark", words)


def from_findings(
    findings: Sequence[Finding], source: Sequence[int], gallery: Gallery
) -> Iterator[Mark]:
    """Findings of a run, at their lines of PTX and of the source."""
    for one in findings:
        line = one.line or 0
        words = one.message
        if one.warp is not None and "warp" not in words:
            words += f" (warp {one.warp}" + (")" if one.lane is None else f" lane {one.lane})")
        where = line, at(source, line)
        why, picture = (), None
        if one.why is not None:
            why, picture = tuple(one.why.lines()), gallery.protocol(one.why)
        yield Mark("check", one.kind, one.severity, words, *where, why, picture)


def shown_schedules(found: Schedules | None) -> SchedulesShown | None:
    """For which schedules a run speaks."""
    if found is None:
        return None
    open_ = tuple(OpenShown(one.line or 0, one.why) for one in found.open)
    return SchedulesShown(open_, tuple(found.assumptions))


def from_fragments(uses: Sequence[FragmentUse]) -> Iterator[Mark]:
    """What arrived in the operands of tensor-core instructions, at their lines of PTX."""
    for one in uses:
        first = f"{one.first}" if one.first == one.last else f"{one.first} to {one.last}"
        rows, cols = one.shape
        words = (
            f"{one.operand.upper()} is {rows} x {cols} of {one.buffer}: [0,0] at byte {first}, "
            f"a row {one.row_stride / 8:+g} bytes, a column {one.column_stride / 8:+g}; "
            f"{one.count} times"
            if one.consistent
            else f"{one.operand.upper()} is no matrix of {one.buffer}"
        )
        line = one.line or 0
        yield Mark("check", "operand", "remark", words, line, line)


def at(source: Sequence[int], line: int) -> int:
    """The line of the source that a line of PTX comes from."""
    return source[line - 1] if 0 < line <= len(source) else 0


def machine_of(
    ptx: str, target: str
) -> tuple[tuple[MachineFunction, ...], list[tuple[ScheduleVerdict, int]], str]:
    """The machine code by lines of PTX, ptxas's verdicts with the line that each is about, and why
    there is no machine code, or none of its lines."""
    from fragir.explain.machine import machine_code, spills_by_line
    from fragir.toolchain.ptxas import assemble

    code = machine_code(ptx, target)
    if not code.entries:
        return (), [], code.reason or "ptxas finds no kernel"
    functions = tuple(
        MachineFunction(
            name,
            info.registers,
            info.spill_stores,
            info.spill_loads,
            info.shared,
            info.stack,
            info.barriers,
            tuple(
                MachineLine(one.text, one.line or 0, one.live, one.spills)
                for one in code.functions.get(name, ())
            ),
        )
        for name, info in code.entries.items()
    )
    verdicts: list[tuple[ScheduleVerdict, int]] = []
    for verdict in assemble(ptx, target).verdicts:
        line = verdict.line
        if verdict.kind == "spill" and verdict.function is not None:
            spilled = spills_by_line(code, verdict.function)
            line = max(spilled, key=lambda at: spilled[at], default=None)
        verdicts.append((verdict, line or 0))
    return functions, verdicts, code.reason or ""


def from_ptxas(
    verdicts: Sequence[tuple[ScheduleVerdict, int]], source: Sequence[int]
) -> Iterator[Mark]:
    """What ptxas did to the schedule, at lines of PTX and of the source."""
    for verdict, line in verdicts:
        yield Mark("ptxas", verdict.kind, "remark", str(verdict), line, at(source, line))


_NAME = re.compile(r"%[\w$.-]+")
LANES = "<lanes>"
"""What places are called that count in the program at the lane level."""


class Ran(NamedTuple):
    """What a run of the program gave: how it was run, findings, values, for which schedules.

    `runs`: under how many schedules it was run.
    """

    how: str
    findings: Sequence[Finding] = ()
    fragments: Sequence[FragmentUse] = ()
    values: Sequence[ValueShown] = ()
    schedules: Schedules | None = None
    runs: int = 1


def explain(
    program: ModuleOp | str,
    *,
    target: str = "sm_80",
    entry: str | None = None,
    passes: str | Sequence[Given] | None = None,
    filename: str = "<input>",
    sass: bool = True,
    ran: Callable[[str], Ran] | None = None,
) -> ProgramReport:
    """A program after every pass, its layouts, its PTX and its machine code.

    `program`, `target`, `entry` and `passes` are as of `fragir.compile`; without `entry` every
    function is compiled. `sass=False` leaves ptxas and nvdisasm out. `ran(ptx)` is asked what a
    run gave. The report's `html()` is the page; a notebook shows it. FragirError where the text
    cannot be read; a program that fails later gives a report with an `error`.
    """
    check_kind(program, str | ModuleOp, "explain takes the text of a program or a ModuleOp")
    require_target(target)
    text = program if isinstance(program, str) else None
    start = time.perf_counter()
    module = parse(program, filename) if isinstance(program, str) else program.clone()
    parsed = (time.perf_counter() - start) * 1e3
    if entry is not None:
        keep_only(module, choose_entry(module, entry), text)
    check_sizes(module, text)
    chosen = steps(module, "lane", target, passes)
    source = (
        SourceText(filename, tuple(text.split("\n"))) if text is not None else _source_file(module)
    )
    found = _Program(module, text, source, target, listed=passes is not None)
    return found.report(chosen, parsed, sass, ran)


def _source_file(module: ModuleOp) -> SourceText:
    """The file that most operations of a module come from, as Python programs say it."""
    names = Counter(
        op.location.filename.data for op in module.walk() if isinstance(op.location, FileLineColLoc)
    )
    for name, _ in names.most_common(1):
        try:
            with open(name, encoding="utf-8") as file:
                return SourceText(name, tuple(file.read().split("\n")))
        except (OSError, UnicodeDecodeError, ValueError):
            return SourceText(name, ())
    return SourceText("a module", ())


class _Program:
    """One program, taken as far as it goes."""

    def __init__(
        self, module: ModuleOp, text: str | None, source: SourceText, target: str, *, listed: bool
    ) -> None:
        self.module, self.text, self.source, self.target = module, text, source, target
        self.listed = listed
        self.times: dict[str, float] = {}
        self.gallery = Gallery()
        self.recorder = StageRecorder(module, source.name, self.times, self.gallery)
        self.ptx: PtxShown | None = None
        self.machine: tuple[MachineFunction, ...] = ()
        self.no_machine = ""
        self.marks: list[Mark] = []
        self.interfaces: dict[str, Interface] = {}

    def report(
        self,
        chosen: Iterable[ModulePass],
        parsed: float,
        sass: bool,
        ran: Callable[[str], Ran] | None,
    ) -> ProgramReport:
        """All that can be had; where something fails, what came before."""
        self.recorder.begin(parsed)
        error: FragirError | None = None
        told = Ran("")
        try:
            self._lower(chosen)
            self._emit()
            self._assemble(sass)
            told = self._run(ran)
        except FragirError as found:
            error = found
            error.file = error.file or self.source.name
        lines = () if self.ptx is None else self.ptx.lines
        return ProgramReport(
            kind="mlir",
            target=self.target,
            source=self.source,
            pipeline=pipeline.text_of(self.recorder.applied),
            stages=tuple(self.recorder.stages),
            ptx=self.ptx,
            machine=self.machine,
            no_machine=self.no_machine,
            types=tuple(self.recorder.types.values()),
            tiles=tuple(self.recorder.tiles),
            conversions=tuple(self.recorder.conversions),
            instructions=instructions_shown(lines, self.gallery),
            pictures=tuple(self.gallery.pictures),
            marks=tuple(self.marks),
            ran=told.how,
            schedules=shown_schedules(told.schedules),
            values=tuple(placed_values(told.values, self.recorder.stages)),
            error=None if error is None else ErrorShown.of(error, self.recorder.doing),
            exception=error,
        )

    def _lower(self, chosen: Iterable[ModulePass]) -> None:
        passes = self.recorder.steps(chosen)
        try:
            pipeline.run(passes, self.module, source=self.text, times=self.times, before=self._look)
        except FragirError:
            unplaced = self.recorder.unplaced
            if unplaced is None:
                raise
            # its places are those of another text: again, for those of the source
            pipeline.run([FragPlacePass(unplaced.target)], unplaced.module, source=self.text)
            raise

    def _look(self, module: ModuleOp) -> None:
        """Takes down what the kernels take, as long as the program still says so."""
        for function in kernels_of(module):
            if not is_lanes(function) and len(function.body.blocks) == 1:
                self.interfaces[function.sym_name.data] = interface_of(function)

    def _slow(self, source: Sequence[int]) -> Iterator[Mark]:
        """What makes the launches slow, at lines of the source."""
        from fragir.compilation.lint import launch_model
        from fragir.roofline.lint import remarks

        for function in kernels_of(self.module):
            interface = self.interfaces.get(function.sym_name.data)
            if interface is None:
                continue
            for one in remarks(launch_model(interface, function, self.target)):
                at_line = one.operation and one.operation.location
                line = at_line.line.data if isinstance(at_line, FileLineColLoc) else 0
                words = f"{one.words}; it costs about {one.factor:.1f} times"
                yield Mark("compiler", "slow", "remark", words, 0, at(source, line))

    def _emit(self) -> None:
        """PTX, and from where its lines come: the operations are told apart by their lines.

        None where the passes that were asked for end before the lane level.
        """
        if self.listed and not all(is_lanes(function) for function in kernels_of(self.module)):
            self.no_machine = "the passes end before the lane level"
            return
        ptx, _ = emit_with_origins(self.module, self.target, source=self.text)
        lanes = self.recorder.last
        _locate(lanes)
        again, origins = emit_with_origins(self.module, self.target)
        assert again == ptx, "PTX depends on where the program was written"
        lines = tuple(ptx.split("\n"))
        came_from = tuple(lines_of(lines, origins))
        stage = self.recorder.stages[-1].source
        self.ptx = PtxShown(lines, came_from, tuple(stage[n - 1] if n else 0 for n in came_from))
        self.marks += from_compiler(self.module, self.target)
        self.marks += self._slow(stage)

    def _assemble(self, sass: bool) -> None:
        if self.ptx is None:
            return
        if not sass:
            self.no_machine = "it was not asked for"
            return
        text = "\n".join(self.ptx.lines)
        self.machine, verdicts, self.no_machine = machine_of(text, self.target)
        self.marks += from_ptxas(verdicts, self.ptx.source)

    def _run(self, ran: Callable[[str], Ran] | None) -> Ran:
        if ran is None or self.ptx is None:
            return Ran("")
        told = ran("\n".join(self.ptx.lines))
        self.marks += from_findings(told.findings, self.ptx.source, self.gallery)
        return told


def placed_values(
    values: Iterable[ValueShown], stages: Sequence[StageShown]
) -> Iterator[ValueShown]:
    """Values of tiles with the last line of the stages that defines a value of their name."""
    for value in values:
        found = _NAME.search(value.at)
        name = re.escape(found[0]) if found else None
        defines = re.compile(rf"^\s*(?:%[\w$.-]+, )*{name}(?:, %[\w$.-]+)* = |[(,] ?{name} = ")
        for number, stage in reversed([*enumerate(stages)]) if name else ():
            line = next((n for n, text in enumerate(stage.lines, 1) if defines.search(text)), 0)
            if line and "frag.tile" in stage.lines[line - 1]:
                value = replace(value, stage=number, line=line)
                break
        yield value


def _locate(printed: PrintedModule) -> None:
    name = StringAttr(LANES)
    for op, line, col in printed.places:
        op.location = FileLineColLoc(name, IntAttr(line), IntAttr(col))


def lines_of(lines: Sequence[str], origins: Sequence[LineOrigin]) -> Iterator[int]:
    """For every line of PTX the line that it comes from; 0 for what is of no operation.

    What stands ahead of a kernel's first operation, its head and its registers, is of none.
    """
    starts = {origin.ptx_line: origin.line for origin in origins}
    now = 0
    for number, line in enumerate(lines, 1):
        if line.startswith((".visible .entry", ".entry", ".extern", ".shared", ".global")):
            now = 0
        now = starts.get(number, now)
        yield now if line.strip() else 0


# -- foreign ---------------------------------------------------------------------------------------
# PTX from elsewhere as the model of the page: no passes, but its lifted form if it has one.

_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)


def explain_ptx(
    text: str,
    *,
    target: str | None = None,
    filename: str = "<ptx>",
    sass: bool = True,
    ran: Callable[[str], Ran] | None = None,
) -> ProgramReport:
    """PTX with its machine code, the fragments of its instructions, and its lifted form.

    `target` is the machine that ptxas assembles for, the text's own if absent. The rest is as of
    `explain`. FragirError where the text is no PTX.
    """
    check_kind(text, str, "explain_ptx takes PTX text")
    from fragir.ptx import parse

    parse(text, filename)  # raises the place of what is wrong
    lines = tuple(text.split("\n"))
    own = _TARGET.search(text)
    machine = target or (own[1] if own else "sm_80")
    gallery, marks = Gallery(), list[Mark]()
    stages, came_from = _lifted_stage(text, filename, len(lines))
    functions: tuple[MachineFunction, ...] = ()
    no_machine, error = "" if sass else "it was not asked for", None
    every = tuple(range(1, len(lines) + 1))
    told = Ran("")
    if sass:
        functions, verdicts, no_machine = machine_of(text, machine)
        functions = tuple(_at_statements(one, statements(lines)) for one in functions)
        marks += from_ptxas(verdicts, every)
    try:
        if ran is not None:
            told = ran(text)
            marks += from_findings(told.findings, every, gallery)
            marks += from_fragments(told.fragments)
    except FragirError as found:
        error = found
        error.file = error.file or filename
    return ProgramReport(
        kind="ptx",
        target=machine,
        source=SourceText(filename, lines),
        stages=stages,
        ptx=PtxShown(lines, came_from, every),
        machine=functions,
        no_machine=no_machine,
        instructions=instructions_shown(lines, gallery),
        pictures=tuple(gallery.pictures),
        marks=tuple(marks),
        ran=told.how,
        schedules=shown_schedules(told.schedules),
        values=tuple(told.values),
        error=None if error is None else ErrorShown.of(error),
        exception=error,
    )


def statements(lines: Sequence[str]) -> list[int]:
    """For every line, counted from 1, the line that its statement begins at."""
    found: list[int] = []
    begins = 0
    for number, line in enumerate(lines, 1):
        code = line.partition("//")[0].strip()
        if not code:
            found.append(number)
            continue
        found.append(begins := begins or number)
        if code[-1] in ";{}:()" or code[0] == ".":
            begins = 0
    return found


def _at_statements(function: MachineFunction, begins: Sequence[int]) -> MachineFunction:
    """Machine code whose lines of PTX are those at which statements begin: ptxas names the last."""
    lines = (
        replace(line, ptx=begins[line.ptx - 1]) if line.ptx else line for line in function.lines
    )
    return replace(function, lines=tuple(lines))


def _lifted_stage(
    text: str, filename: str, count: int
) -> tuple[tuple[StageShown, ...], tuple[int, ...]]:
    """The lifted form as a stage, and the line of it that every line of PTX is in; none where
    there is no such form."""
    came_from = [0] * count
    start = time.perf_counter()
    try:
        module = lift(text, filename)
    except FragirError:
        return (), tuple(came_from)
    ms = (time.perf_counter() - start) * 1e3
    now = print_module(module)
    source = [0] * len(now.lines)
    for op, line, _ in now.first_of_lines():
        at = place_in(op, filename)
        source[line - 1] = at
        if 0 < at <= count and not came_from[at - 1]:
            came_from[at - 1] = line
    nothing = (0,) * len(now.lines)
    return (StageShown("lift", ms, now.lines, nothing, tuple(source), ()),), tuple(came_from)
