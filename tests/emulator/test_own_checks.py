"""Checks of a user's: what they find is in the report, what they raise is their own fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fragir.emulator import CheckFailure, EmulationError, Hooks, Report, run
from fragir.emulator.checks.selection import MakesCheck
from fragir.emulator.program.failure import EmulatorFailure
from fragir.ptx.opcodes import table

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 P)
{
    .reg .b32 %r<4>; .reg .b64 %p; .reg .pred %q;
    ld.param.u64 %p, [P];
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %q, %r1, 7;
    @%q popc.b32 %r1, %r1;
    st.global.u32 [%p], %r1;
    ret;
}
"""
LOAD, POPC, STORE, RET = 7, 10, 11, 12


def ran(*checks: MakesCheck, check: bool = False, size: int = 4, threads: int = 32) -> Report:
    data = np.zeros(size, np.uint8)
    return run(PTX, block=(threads,), arguments=[data], checks=checks, check=check)


class Stores(Hooks):
    def on_access(self, access: Any) -> None:
        if access.kind == "store":
            ins = access.instruction
            text = f"{access.lanes.size} lanes store"
            self.found(self.program, ins.at, "store", text, lane=3, subject="p")


@pytest.mark.parametrize("check", [False, True])
def test_findings_of_a_check(check: bool) -> None:
    found = ran(Stores, check=check, threads=64).findings
    assert [f.kind for f in found] == ["store", *["race"] * check]
    assert (found[0].line, found[0].lane) == (STORE, 3)
    assert found[0].message == "64 lanes store (block (0, 0, 0) warp 0 lane 3)"


def test_a_function_that_keeps_the_check() -> None:
    class Counts(Hooks):
        stores = 0

        def on_access(self, access: Any) -> None:
            self.stores += access.kind == "store"

    made: list[Counts] = []

    def counts(machine: Any, program: Any) -> Counts:
        made.append(Counts(machine, program))
        return made[-1]

    ran(counts, counts)
    assert [check.stores for check in made] == [1, 1]


def test_only_where_it_concerns() -> None:
    class Matrix(Stores):
        @classmethod
        def concerns(cls, program: Any) -> bool:
            return any(p.ins.opcode[0] == "mma" for p in program.code)

    assert not ran(Matrix).findings


def test_steps_are_wrapped() -> None:
    seen: list[str] = []

    class Steps(Hooks):
        def wrap(self, d: Any, group: Sequence[Any], step: Any) -> Any:
            return self.around(f"step {group[0].opcode[0]}", step)

        def wrap_guard(self, d: Any, instruction: Any, step: Any) -> Any:
            return self.around("guard", step)

        def wrap_terminator(self, d: Any, instruction: Any, terminator: Any) -> Any:
            return self.around("end", terminator)

        @staticmethod
        def around(word: str, step: Any) -> Any:
            def run_it(sel: Any, mask: Any) -> Any:
                seen.append(word)
                return step(sel, mask)

            return run_it

    ran(Steps)
    assert seen == "step ld,step mov,step setp,guard,step popc,step st,end".split(",")


# -- faults of a check ---------------------------------------------------------------------------


def breaks(*_: Any) -> Any:
    raise KeyError("mine")


def gives_what_breaks(self: Any, d: Any, instruction: Any, step: Any) -> Any:
    return breaks


def gives_nothing(self: Any, d: Any, instruction: Any, step: Any) -> Any:
    return None


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("method", "function", "words", "line"),
    [
        ("__init__", breaks, "KeyError: 'mine'", None),
        ("concerns", breaks, "KeyError: 'mine'", None),
        ("on_launch_start", breaks, "KeyError: 'mine'", None),
        ("on_wave_start", breaks, "KeyError: 'mine'", None),
        ("on_wave_end", breaks, "KeyError: 'mine'", None),
        ("on_launch_end", breaks, "KeyError: 'mine'", None),
        ("on_access", breaks, "KeyError: 'mine'", LOAD),
        ("wrap", breaks, "KeyError: 'mine'", LOAD),
        ("wrap", gives_what_breaks, "KeyError: 'mine'", LOAD),
        ("wrap", gives_nothing, "wrap returns None, no step", LOAD),
        ("wrap_guard", gives_what_breaks, "KeyError: 'mine'", POPC),
        ("wrap_terminator", gives_what_breaks, "KeyError: 'mine'", RET),
        ("wrap_terminator", gives_nothing, "wrap_terminator returns None, no step", RET),
    ],
)
def test_a_fault_of_a_check_is_told_as_its_own(
    method: str, function: Any, words: str, line: int | None, check: bool
) -> None:
    broken: Any = type("Broken", (Hooks,), {method: function})
    with pytest.raises(CheckFailure, match=f"the check Broken failed: .*{words}") as e:
        ran(broken, check=check)
    assert not isinstance(e.value, EmulationError | EmulatorFailure)
    assert e.value.line == line
    assert e.value.message.startswith("at ") == (line is not None)
    assert e.value.hint is not None
    assert "a fault of that check" in e.value.hint


def gives_a_broken_step(d: Any, ins: Any) -> Any:
    return breaks


class Through(Hooks):
    """Wraps everything, and calls it."""

    def wrap(self, d: Any, group: Sequence[Any], step: Any) -> Any:
        def run_it(sel: Any, mask: Any) -> None:
            step(sel, mask)

        return run_it


class Looks(Hooks):
    """Asks where an access goes, before it happens."""

    def on_access(self, access: Any) -> None:
        access.parts()


@pytest.mark.parametrize("check", [Through, Looks])
def test_the_kernels_error_passes_through(check: type[Hooks]) -> None:
    with pytest.raises(EmulationError, match="global") as e:
        ran(check, size=2)
    assert e.value.line == STORE


def test_the_emulators_fault_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    row = table.OPCODES.find(("popc", "b32"), 2).opcode
    assert row is not None
    monkeypatch.setitem(row.__dict__, "decode", gives_a_broken_step)
    with pytest.raises(EmulatorFailure, match=r"the emulator failed here, at popc\.b32: KeyError"):
        ran(Through)


def test_a_check_that_stops_the_run() -> None:
    class Stops(Hooks):
        def on_access(self, access: Any) -> None:
            raise EmulationError("enough", kind="stopped")

    with pytest.raises(EmulationError, match="enough"):
        ran(Stops)


def gives_a_number(machine: Any, program: Any) -> int:
    return 3


@pytest.mark.parametrize("checks", [Stores, 3, "Stores"])
def test_what_is_no_list(checks: Any) -> None:
    with pytest.raises(EmulationError, match=r"checks is a list of classes of Hooks, not .*write"):
        run(PTX, checks=checks)


@pytest.mark.parametrize(
    ("makes", "words"),
    [
        ("races", "a check is a class of Hooks, or a function .*, not str"),
        (gives_a_number, "makes no check .* but int"),
    ],
)
def test_what_is_no_check(makes: Any, words: str) -> None:
    with pytest.raises(EmulationError, match=words):
        ran(makes)
