"""PTX from elsewhere as the model of the page: no passes, but its lifted form if it has one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from fragir.errors import FragirError, of_kind
from fragir.explain.drawn import Gallery, instructions_shown
from fragir.explain.judged import from_findings, from_fragments, from_ptxas, machine_of
from fragir.explain.programs import Ran
from fragir.explain.report import (
    ErrorShown,
    MachineFunction,
    Mark,
    ProgramReport,
    PtxShown,
    SourceText,
    StageShown,
)
from fragir.explain.texts import place_in, printed
from fragir.program import lift

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
    of_kind(text, str, "explain_ptx takes PTX text")
    from fragir.ptx import parse

    parse(text, filename)  # raises the place of what is wrong
    lines = tuple(text.split("\n"))
    own = _TARGET.search(text)
    machine = target or (own[1] if own else "sm_80")
    gallery, marks = Gallery(), list[Mark]()
    stages, came_from = _lifted(text, filename, len(lines))
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
            marks += from_findings(told.findings, every)
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


def _lifted(text: str, filename: str, count: int) -> tuple[tuple[StageShown, ...], tuple[int, ...]]:
    """The lifted form as a stage, and the line of it that every line of PTX is in; none where
    there is no such form."""
    came_from = [0] * count
    start = time.perf_counter()
    try:
        module = lift(text, filename)
    except FragirError:
        return (), tuple(came_from)
    ms = (time.perf_counter() - start) * 1e3
    now = printed(module)
    source = [0] * len(now.lines)
    for op, line, _ in now.first_of_lines():
        at = place_in(op, filename)
        source[line - 1] = at
        if 0 < at <= count and not came_from[at - 1]:
            came_from[at - 1] = line
    nothing = (0,) * len(now.lines)
    return (StageShown("lift", ms, now.lines, nothing, tuple(source), ()),), tuple(came_from)
