"""Mutants of a kernel: one synchronisation statement at a time is deleted or altered.

`mutants` yields what a person may forget or get wrong; `verdict` runs one as `fragir check` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator import EmulationError, run
from fragir.emulator.report import Asynchrony
from fragir.ptx import tree
from fragir.redundancy.statements import SYNCHRONISING, end_of, instructions, is_wait, loop_of

Arguments = list["npt.NDArray[Any] | int | float"]

#: The runs of `fragir check`.
RUNS: tuple[tuple[int | None, Asynchrony], ...] = (
    (None, "late"),
    (None, "early"),
    (1, "random"),
    (2, "random"),
)

#: Of tensor memory, which threads wait at as well.
ALLOCATING = re.compile(r"tcgen05\.(alloc|dealloc|relinquish_alloc_permit)")

_NUMBER = re.compile(r"(?<![\w%.])(0x[0-9a-fA-F]+|\d+)(?![\w.])")


@dataclass(frozen=True)
class Subject:
    """A correct kernel and how it is launched; `arguments` makes fresh ones."""

    name: str
    text: str
    arguments: Callable[[], Arguments]
    block: int
    grid: int | tuple[int, ...] = 1
    cluster: int = 1
    shared: int = 0
    result: tuple[int, npt.NDArray[Any]] | None = None
    """Which of the arguments must hold what in the end, where that is known."""

    @property
    def blocks(self) -> tuple[int, ...]:
        """The grid."""
        return (self.grid,) if isinstance(self.grid, int) else self.grid


@dataclass(frozen=True)
class Mutant:
    """`what`: the statement, `how` it was changed, in words; `line` in the original text.

    `which`: 0 for the first such statement of the text, 1 for the second.
    """

    line: int
    what: str
    how: str
    text: str
    which: int = 0

    @property
    def key(self) -> tuple[str, int, str]:
        return self.what, self.which, self.how

    @property
    def name(self) -> str:
        return f"{self.what} ({self.how})"


def mutants(text: str) -> list[Mutant]:
    """Every mutant of a kernel, in the order of the text."""
    seen: Counter[tuple[str, str]] = Counter()
    found: list[Mutant] = []
    for mutant in _mutants(text):
        found.append(replace(mutant, which=seen[mutant.what, mutant.how]))
        seen[mutant.what, mutant.how] += 1
    return found


def _mutants(text: str) -> Iterator[Mutant]:
    code = instructions(text)
    for number, ins in enumerate(code):
        start, end = ins.at, end_of(text, ins)
        whole = " ".join(text[start:end].split())
        line = text.count("\n", 0, start) + 1

        def changed(how: str, new: str, at: tuple[int, int] = (start, end)) -> Mutant:
            return Mutant(line, whole, how, text[: at[0]] + new + text[at[1] :])

        masked = "sync" in ins.opcode and ins.opcode[0] in ("shfl", "vote", "redux", "elect")
        if masked:
            old = re.search(r"(-1|0x[fF]{8})\s*;$", text[start:end])
            if old is not None:
                yield changed("half the mask", text[start : start + old.start()] + "0xffff;")
            continue
        for word in ("release", "acquire"):
            if word in ins.opcode and "wait" not in ins.mnemonic and "fence" not in ins.mnemonic:
                place = text.index(f".{word}", start)
                yield changed("relaxed", ".relaxed", (place, place + len(word) + 1))
        if "acq_rel" in ins.opcode and "fence" not in ins.mnemonic:
            place = text.index(".acq_rel", start)
            # not "release": to the emulator the next barrier acquires (docs/emulator.md)
            for word in ("relaxed", "acquire"):
                yield changed(f"{word} alone", f".{word}", (place, place + len(".acq_rel")))
        if not SYNCHRONISING.match(ins.mnemonic) and not ALLOCATING.match(ins.mnemonic):
            continue
        if is_wait(ins):
            branch = loop_of(text, code, number)
            if branch is not None:
                yield changed("not waited for", "", (branch.at, end_of(text, branch)))
            parity = _NUMBER.search(text[start:end])
            if parity is not None and "parity" in ins.opcode and parity[1] in ("0", "1"):
                new = str(1 - int(parity[1]))
                at = start + parity.start(), start + parity.end()
                yield changed("other parity", new, at)
            continue
        yield changed("deleted", "")
        if ins.guard is not None:
            name = text.index(ins.opcode[0], start)
            yield changed("without its guard", text[name:end])
        for shift, how in _numbers(ins):
            every = list(_NUMBER.finditer(text, text.index(ins.opcode[0], start), end))
            if every:
                last = every[-1]
                value = int(last[0], 0) + shift
                if value >= 0:
                    yield changed(how, str(value), (last.start(), last.end()))


def tasks_of(names: Iterable[str], of: Callable[[str], Sequence[Mutant]]) -> list[list[Any]]:
    """[kernel, number of the mutant, what it is] of kernels' mutants; -1 is the kernel itself."""
    every: list[list[Any]] = []
    for name in names:
        every.append([name, -1, "as it is"])
        every += [[name, at, f"line {one.line}: {one.name}"] for at, one in enumerate(of(name))]
    return every


def _numbers(ins: tree.Instruction) -> list[tuple[int, str]]:
    """Changes to the last number of a statement."""
    words = ins.opcode
    if "wait_group" in words:
        return [(1, "one more group stays")]
    if words[:2] == ("mbarrier", "init"):
        return [(1, "one arrival more"), (-1, "one arrival less")]
    if "expect_tx" in words:
        return [(16, "more bytes"), (-16, "fewer bytes")]
    if words[0] in ("bar", "barrier") and len(ins.operands) == 2 and "warp" not in words:
        return [(32, "one warp more"), (-32, "one warp less")]
    return []


def verdict(subject: Subject, text: str | None = None) -> list[str]:
    """The kinds of what `fragir check` finds; empty where it is silent.

    "open" where it says that it speaks for the schedules that ran, as an mbarrier is looked at
    without going back to the look: what that misses in them need not show.
    """
    first: list[bytes] | None = None
    up_to_it: list[str] = []
    for schedule, asynchrony in RUNS:
        arguments = subject.arguments()
        try:
            report = run(
                subject.text if text is None else text,
                grid=subject.blocks,
                block=(subject.block,),
                cluster=(subject.cluster,),
                arguments=arguments,
                shared=subject.shared,
                check=True,
                schedule=schedule,
                asynchrony=asynchrony,
            )
        except EmulationError as error:
            found = [f.kind for f in error.report.findings] if error.report else []
            return [*found, error.kind]
        if report.findings:
            return [f.kind for f in report.findings]
        assert report.schedules is not None
        up_to_it = [one.why for one in report.schedules.open]
        if subject.result is not None:
            number, expected = subject.result
            if not np.array_equal(arguments[number], expected):
                return ["wrong result"]
        results = [a.tobytes() for a in arguments if isinstance(a, np.ndarray)]
        if first is None:
            first = results
        elif first != results:
            return ["schedule-dependent"]
    return ["open"] if any("looked at once" in why for why in up_to_it) else []
