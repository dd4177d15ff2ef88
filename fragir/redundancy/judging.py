"""Whether a kernel does without some of its synchronisation: one run of a launch with checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fragir.emulator import EmulationError, Finding, Hooks, Report, run
from fragir.emulator.checks.races.races import Races
from fragir.emulator.checks.schedules.choices import ASSUMPTIONS as OF_SCHEDULES
from fragir.emulator.launch.arguments import arrays_of
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import BarrierEvent
    from fragir.emulator.machine.lanes import Mask, Select, Step
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.numbers.types import I64
    from fragir.emulator.program.program import Program
    from fragir.emulator.report import Schedules
    from fragir.ptx.tree import Instruction

#: A mutant may wait for ever: it gets so many times the instructions and seconds of the kernel.
TIMES = 20
LEAST_SECONDS = 10.0

#: What "not needed" takes for granted, beside what a verdict for every schedule does.
ASSUMPTIONS = {
    **OF_SCHEDULES,
    "launches": "it holds for the launches that ran, with their sizes and values; others may need "
    "what these do not: a wait that finds nothing pending for a short K is needed for a long one",
    "wgmma-waits": "what one warp waits for by wgmma.wait_group its whole warpgroup has read",
    "exited-threads": "threads that have exited count as arrived at a bar without a number of "
    "threads, of which the ISA is silent",
    "time": "nothing is said of time: ptxas schedules by barriers and lets lanes meet at them, so "
    "that a kernel may be slower without one",
}

Pairs = frozenset[tuple[int, int]]


class Reached(Hooks):
    """Which instructions, by `Instruction.at`, some lane has executed."""

    def __init__(self, machine: Machine, program: Program, places: frozenset[int]) -> None:
        super().__init__(machine, program)
        self.places, self.reached = places, set[int]()
        self._barrier = -1

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        at, reached = group[0].at, self.reached
        if at not in self.places:
            return step

        def run_step(sel: Select, mask: Mask) -> None:
            if mask is None or mask.any():
                reached.add(at)
            step(sel, mask)

        return run_step

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        at = instruction.at
        if at not in self.places or "barrier" not in self.program.opcode(instruction).ends:
            return terminator

        def run_terminator(sel: Select, mask: Mask) -> int | None:
            self._barrier = at
            return terminator(sel, mask)

        return run_terminator

    def on_barrier(
        self,
        kind: BarrierEvent,
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        if kind != "release" and len(lanes):
            self.reached.add(self._barrier)


class EqualWrites(Hooks):
    """Pairs of writes, by their places in the program, that nothing orders and that are no race as
    they leave the bytes as they are: with other values they might not. Where the other one is not
    known, the pair is of one write."""

    pairs: Pairs = frozenset()

    def on_launch_end(self) -> None:
        for hook in self.machine.hooks:
            if isinstance(hook, Races):
                alone = np.flatnonzero(hook.excuses.excused).tolist()
                pairs = hook.shared.excused | hook.globally.excused
                self.pairs = frozenset(pairs | {(site, site) for site in alone})


@dataclass(slots=True)
class Baseline:
    """What the kernel itself does in a launch: its results, letters, equal writes, and cost."""

    results: list[bytes]
    letters: frozenset[tuple[object, ...]]
    equal: Pairs
    instructions: int
    seconds: float
    schedules: Schedules
    reached: frozenset[int] = field(default_factory=frozenset[int])


def _letters(report: Report) -> frozenset[tuple[object, ...]]:
    return frozenset((f.kind, f.line, f.col) for f in report.findings if f.severity == "letter")


def _errors(report: Report) -> Iterator[Finding]:
    return (one for one in report.findings if one.severity == "error")


def _run(
    text: str,
    launch: Mapping[str, Any],
    *further: Callable[[Machine, Program], Hooks],
    **options: Any,
) -> tuple[Report, list[bytes]]:
    """The report, and what all arrays hold in the end."""
    given = dict(launch)
    made = given.pop("arguments", list)()
    variables = given.pop("variables", dict)()
    report = run(
        text,
        arguments=made,
        variables=variables,
        check=True,
        checks=further,
        jobs=1,
        **given,
        **options,
    )
    arrays = [array for value in made for _, array in arrays_of(value, "")]
    arrays += [array for value in variables.values() for _, array in arrays_of(value, "")]
    return report, [np.ascontiguousarray(array).tobytes() for array in arrays]


def baseline(text: str, launch: Mapping[str, Any], places: frozenset[int]) -> Baseline:
    """What a launch does. `places`: of instructions of which it is asked whether they run.

    FragirError where the question has no answer: the kernel has an error, or its verdict does not
    hold for every schedule.
    """
    made: dict[type[Hooks], Any] = {}

    def reached(machine: Machine, program: Program) -> Hooks:
        return made.setdefault(Reached, Reached(machine, program, places))

    def equal(machine: Machine, program: Program) -> Hooks:
        return made.setdefault(EqualWrites, EqualWrites(machine, program))

    wrong: EmulationError | Finding | None
    try:
        report, results = _run(text, launch, reached, equal)
        wrong = next(_errors(report), None)
    except EmulationError as error:
        if error.report is None:
            raise  # the launch is wrong, not the kernel
        wrong, report, results = error, error.report, []
    if wrong is not None:
        raise FragirError(
            "what is not needed can be asked of a kernel without errors; here line "
            f"{wrong.line} has one, {wrong.kind}",
            hint="`fragir check` shows it",
        )
    assert report.schedules is not None
    if not report.schedules.every:
        one = report.schedules.open[0]
        raise FragirError(
            "what is not needed can be asked of a kernel whose verdict holds for every schedule; "
            f"here line {one.line} is up to the schedule: {one.why}",
        )
    statistics = report.statistics
    return Baseline(
        results,
        _letters(report),
        made[EqualWrites].pairs,
        statistics.total,
        statistics.seconds,
        report.schedules,
        frozenset(made[Reached].reached),
    )


def refuted(
    text: str, launch: Mapping[str, Any], known: Baseline, **options: Any
) -> tuple[str, bool]:
    """Why a text is not as good as the kernel in a launch; empty where it is. And whether that was
    judged at all: a text that is no program any more was not."""
    made: list[EqualWrites] = []

    def equal(machine: Machine, program: Program) -> Hooks:
        made.append(EqualWrites(machine, program))
        return made[-1]

    limit = TIMES * known.instructions, max(TIMES * known.seconds, LEAST_SECONDS)
    try:
        report, results = _run(text, launch, equal, limit=limit, **options)
    except EmulationError as error:
        if error.report is None:
            return error.sentence, False
        found = next(_errors(error.report), None)
        return (error.kind if found is None else f"{found.kind} at line {found.line}"), True
    except FragirError as error:
        return error.sentence, False
    wrong = next(_errors(report), None)
    if wrong is not None:
        return f"{wrong.kind} at line {wrong.line}", True
    letters = sorted(_letters(report) - known.letters, key=repr)
    if letters:
        return f"{letters[0][0]} at line {letters[0][1]}, by the letter", True
    if report.schedules is None or not report.schedules.every:
        return "its verdict does not hold for every schedule", True
    if results != known.results:
        return "another result", True
    if not made[0].pairs <= known.equal:
        return "a race, but that the values written are equal here", True
    return "", True
