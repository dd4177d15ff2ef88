"""A user's check over a launch of several waves, and of several processes: when it is told what,
and that what it gathers is what one process gathers in one wave.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest

from fragir.emulator import EmulationError, Hooks, Report, run
from fragir.emulator.checks.selection import MakesCheck

from .conftest import Divided
from .outcomes import kernel, turns, words

WARPS = 2
BLOCKS = 12
#: Blocks of a wave: three waves.
WAVE = 4
#: Each block stores as often as its number says, and once more.
STORES = kernel("add.u32 %r1, %block, 1;" + turns("%r1", "st.global.u32 [%rd0], %r15;"))
EXACT = {block: (block + 1) * 32 * WARPS for block in range(BLOCKS)}


def launched(check: MakesCheck, *, resident: int = WAVE * WARPS, jobs: int = 1) -> Report:
    out = words(BLOCKS * 32 * WARPS)
    how: dict[str, Any] = {"grid": (BLOCKS,), "block": (32 * WARPS,), "arguments": [out]}
    report = run(STORES, **how, checks=[check], resident=resident, jobs=jobs)
    assert (out.reshape(BLOCKS, -1) == np.arange(BLOCKS)[:, None]).all()
    return report


class Stores(Hooks):
    """How many lanes of each block have stored, which a remark says at the end."""

    def __init__(self, machine: Any, program: Any) -> None:
        super().__init__(machine, program)
        self.lanes: Counter[int] = Counter()

    def on_access(self, access: Any) -> None:
        if access.kind == "store":
            blocks = self.machine.first_block + self.machine.block_of[access.lanes.ravel() // 32]
            self.lanes.update(blocks.tolist())

    def on_launch_end(self) -> None:
        text = str(sorted(self.lanes.items()))
        self.found(self.program, self.program.code[0].ins.at, "stores", text, severity="remark")


class InParts(Stores):
    """The same, which processes may have a part of each."""

    def partial(self) -> Any:
        gathered, self.lanes = self.lanes, Counter()
        return gathered

    def merge(self, partial: Any) -> None:
        self.lanes.update(partial)


def told(report: Report) -> list[str]:
    return [remark.message for remark in report.remarks]


def test_a_check_is_told_when_what_begins_and_ends() -> None:
    events: list[str] = []

    class Life(Hooks):
        def on_launch_start(self) -> None:
            events.append("launch start")

        def on_wave_start(self) -> None:
            events.append(f"wave of {self.machine.first_block}")

        def on_access(self, access: Any) -> None:
            if events[-1] != "stores":
                events.append("stores")

        def on_wave_end(self) -> None:
            events.append("wave end")

        def on_launch_end(self) -> None:
            events.append("launch end")

    launched(Life)
    waves = ((f"wave of {first}", "stores", "wave end") for first in range(0, BLOCKS, WAVE))
    assert events == ["launch start", *chain(*waves), "launch end"]


def test_it_is_not_told_of_the_end_of_a_launch_that_fails() -> None:
    class Ends(Stores):
        def on_wave_end(self) -> None:
            if self.machine.first_block == WAVE:
                raise EmulationError("enough")

        def on_launch_end(self) -> None:
            raise AssertionError("the launch has failed")

    with pytest.raises(EmulationError, match="enough"):
        launched(Ends)


@pytest.mark.parametrize("resident", [WARPS, WAVE * WARPS, 256])
@pytest.mark.parametrize("check", [Stores, InParts])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_totals_are_exact(check: type[Hooks], resident: int, jobs: int, divided: Divided) -> None:
    """A remark in all, of every block; only a check whose parts merge has several processes."""
    assert told(launched(check, resident=resident, jobs=jobs)) == [str(sorted(EXACT.items()))]
    assert len(divided.pids) == (jobs - 1 if check is InParts else 0)
    assert divided.again == 0


def test_a_function_that_keeps_the_check_has_all_of_it(divided: Divided) -> None:
    made: list[InParts] = []

    def keeps(machine: Any, program: Any) -> InParts:
        made.append(InParts(machine, program))
        return made[-1]

    launched(keeps, jobs=2)
    assert len(divided.pids) == 1
    assert [check.lanes for check in made] == [EXACT]


def test_parts_are_merged_in_the_order_of_the_blocks(divided: Divided) -> None:
    made: list[Any] = []

    class Ordered(InParts):
        def __init__(self, machine: Any, program: Any) -> None:
            super().__init__(machine, program)
            self.order: list[int] = []
            made.append(self)

        def on_wave_end(self) -> None:
            first, count = self.machine.first_block, self.machine.resident // WARPS
            self.order += range(first, first + count)

        def partial(self) -> Any:
            gathered, self.order = (super().partial(), self.order), []
            return gathered

        def merge(self, partial: Any) -> None:
            lanes, order = partial
            super().merge(lanes)
            self.order += order

    launched(Ordered, resident=WARPS, jobs=3)
    assert len(divided.pids) == 2
    assert made[-1].order == list(range(BLOCKS))


def test_what_is_said_while_blocks_run_is_said_by_one_process(divided: Divided) -> None:
    class Says(InParts):
        def on_access(self, access: Any) -> None:
            super().on_access(access)
            if access.kind == "store" and self.machine.first_block >= WAVE:
                ins = access.instruction
                self.found(self.program, ins.at, "late", "stores", lane=0, severity="remark")

    one, two = (told(launched(Says, jobs=jobs)) for jobs in (1, 2))
    assert divided.again == 1
    assert one == two
    assert one[-1] == str(sorted(EXACT.items()))


def test_a_part_that_cannot_be_sent(divided: Divided) -> None:
    """Then one process does all."""

    class Locked(InParts):
        def partial(self) -> Any:
            return super().partial(), threading.Lock()

        def merge(self, partial: Any) -> None:
            super().merge(partial[0])

    assert told(launched(Locked, jobs=2)) == [str(sorted(EXACT.items()))]
    assert divided.again == 1


# -- old names -------------------------------------------------------------------------------------


def ran(*checks: MakesCheck) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for check in checks:
            launched(check)
    return caught


def test_old_names_work_and_warn_once() -> None:
    events: list[str] = []

    class Old(Hooks):
        def on_wave(self) -> None:
            super().on_wave()
            events.append("start")

        def on_finish(self) -> None:
            super().on_finish()
            events.append("end")

    found = ran(Old, Old)
    assert events == ["start", "end"] * 3 * 2
    assert [str(each.message).partition("Old.")[2] for each in found] == [
        "on_wave is on_wave_start now, and goes in fragir 0.3",
        "on_finish is on_wave_end now, and goes in fragir 0.3",
    ]
    functions: list[Callable[..., object]] = [Old.on_wave, Old.on_finish]
    lines = [function.__code__.co_firstlineno for function in functions]
    assert [(each.filename, each.lineno) for each in found] == [(__file__, n) for n in lines]


def test_a_check_that_knows_both_names_is_told_by_the_new_one() -> None:
    ends: list[str] = []

    class Both(Hooks):
        def on_finish(self) -> None:
            ends.append("old")

        def on_wave_end(self) -> None:
            ends.append("new")

    assert ran(Both) == []
    assert ends == ["new"] * 3
