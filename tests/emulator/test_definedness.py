"""Uninitialised registers and shared memory: planted faults, mended twins, single instructions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragir.emulator import run
from fragir.emulator.checks.definedness.registers import logic, spread_to_parts
from fragir.ptx.opcodes.row import LOGIC

from .faults import Fault, faults

FAULTS = [f for f in faults() if f.kind == "uninitialised"]


def register(fault: Fault) -> str:
    """Which register (or `shared` for memory) the file says is found."""
    found = re.search(r"^// register (\S+)$", fault.text, re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
@pytest.mark.parametrize("schedule", [None, 3])
def test_planted_faults(fault: Fault, schedule: int | None) -> None:
    findings = fault.findings(mended=False, schedule=schedule)
    assert {f.kind for f in findings} == {"uninitialised"}
    assert findings[0].line == fault.line
    shuffles = "shfl" in fault.text  # then what uses their results is reported too
    assert shuffles or {f.line for f in findings} == {fault.line}
    assert register(fault) in {f.message.split()[0] for f in findings}
    assert all(f.warp is not None and f.lane is not None for f in findings)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
@pytest.mark.parametrize("schedule", [None, 3])
def test_mended_twins(fault: Fault, schedule: int | None) -> None:
    assert fault.findings(mended=True, schedule=schedule) == []


def test_a_shuffle_says_where_its_result_is_used() -> None:
    (fault,) = (f for f in FAULTS if f.name == "uninitialised-reduction")
    first, second, use = fault.findings(mended=False)
    assert (first.line, second.line) == (fault.line, (fault.line or 0) + 2)
    assert "it is shuffled, and what comes of it is used at line" in first.message
    assert f"line {use.line} " in first.message
    assert "stored to global memory" in use.message


def test_there_are_faults() -> None:
    assert len(FAULTS) >= 19


def test_a_path_names_the_lanes() -> None:
    (fault,) = (f for f in FAULTS if f.name == "uninitialised-path")
    (finding,) = fault.findings(mended=False)
    assert "in 7 lanes" in finding.message
    assert finding.lane == 0


def test_memory_is_named_by_its_address() -> None:
    (fault,) = (f for f in FAULTS if f.name == "uninitialised-bulk")
    (finding,) = fault.findings(mended=False)
    assert finding.address == 128


def test_nothing_without_check() -> None:
    out = np.zeros(1024, np.uint32)
    for fault in FAULTS:
        block = 128 if "block 128" in fault.text else 32
        text = fault.ptx(mended=False)
        if fault.name != "uninitialised-address":  # the pointer is 0 here
            assert run(text, block=(block,), arguments=[out]).findings == []


# -- single instructions ---------------------------------------------------------------------------

#: instruction on %x, of which only the low half is defined -> defined bits of %y.
SPREADS = {
    "mov.b32 %y, %x": 0x0000FFFF,
    "not.b32 %y, %x": 0x0000FFFF,
    "and.b32 %y, %x, 0xff0000ff": 0x00FFFFFF,
    "or.b32 %y, %x, 0xff000000": 0xFF00FFFF,
    "xor.b32 %y, %x, 5": 0x0000FFFF,
    "xor.b32 %y, %x, %x": 0xFFFFFFFF,
    "sub.u32 %y, %x, %x": 0xFFFFFFFF,
    "lop3.b32 %y, %x, 0xff, 0, 0xc0": 0xFFFFFFFF,
    "lop3.b32 %y, %x, %one, %one, 0x96": 0x0000FFFF,
    "shl.b32 %y, %x, 8": 0x00FFFFFF,
    "shl.b32 %y, %x, 16": 0xFFFFFFFF,
    "shr.u32 %y, %x, 8": 0xFF0000FF,
    "shr.s32 %y, %x, 8": 0x000000FF,
    "shf.l.wrap.b32 %y, %one, %x, 4": 0x000FFFFF,
    "bfe.u32 %y, %x, 4, 8": 0xFFFFFFFF,
    "bfe.u32 %y, %x, 12, 8": 0xFFFFFF0F,
    "bfe.s32 %y, %x, 12, 8": 0x0000000F,
    "bfi.b32 %y, %x, %one, 8, 8": 0xFFFFFFFF,
    "bfi.b32 %y, %one, %x, 16, 16": 0xFFFFFFFF,
    "prmt.b32 %y, %x, %one, 0x7410": 0xFFFFFFFF,
    "prmt.b32 %y, %x, %one, 0x4321": 0xFF0000FF,
    "brev.b32 %y, %x": 0xFFFF0000,
    "selp.b32 %y, %x, %one, %yes": 0x0000FFFF,
    "selp.b32 %y, %x, %one, !%yes": 0xFFFFFFFF,
    "add.u32 %y, %x, 1": 0x00000000,
    "mul.lo.u32 %y, %one, %x": 0x00000000,
    "add.rn.f16x2 %y, %x, %x": 0x0000FFFF,
    "fma.rn.f16x2 %y, %x, %one, %one": 0x0000FFFF,
    "popc.b32 %y, %x": 0x00000000,
    "cvt.s32.s8 %y, %x": 0xFFFFFFFF,
    "cvt.u32.u16 %y, %x": 0xFFFFFFFF,
    "cvt.rn.f32.u32 %y, %x": 0x00000000,
    "cvt.rn.f16x2.f32 %y, %one, %x": 0xFFFF0000,
    "cvt.rn.f16x2.f32 %y, %x, %one": 0x0000FFFF,
    "mad.lo.u32 %y, %one, %one, %one": 0xFFFFFFFF,
    "vote.sync.ballot.b32 %y, %no, 0xffffffff": 0x00000000,
    "redux.sync.add.u32 %y, %x, 0xffffffff": 0x00000000,
    "set.eq.u32.u32 %y, %x, 0": 0x00000000,
}


def kernel(instruction: str, probe: int) -> str:
    """Uses the bits `probe` of %y as a branch's condition."""
    return f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{{
    .reg .b32 %x, %y, %one, %z; .reg .b16 %low, %high; .reg .pred %yes, %no, %p;
    mov.u32 %one, 1; setp.eq.u32 %yes, %one, 1;
    mov.b16 %low, 0x1234; mov.b32 %x, {{%low, %high}};
    setp.eq.u32 %no, %x, 7;
    {instruction};
    and.b32 %z, %y, {probe};
    setp.eq.u32 %p, %z, 0;
    @%p bra END;
END:
    ret;
}}
"""


@pytest.mark.parametrize("instruction", list(SPREADS))
def test_how_undefined_bits_spread(instruction: str) -> None:
    defined = SPREADS[instruction]
    for shift in range(0, 32, 4):
        probe = 0xF << shift
        report = run(kernel(instruction, probe), check=True)
        found = [f.message.split()[0] for f in report.findings]
        assert found == ([] if defined & probe == probe else ["%p"]), hex(probe)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 255),
    st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255)), min_size=3, max_size=3),
)
def test_logic_is_exact(table: int, operands: list[tuple[int, int]]) -> None:
    """A bit is undefined where two ways to fill in the unknown bits differ: all are tried."""
    values = [np.array(v, np.uint8) for v, _ in operands]
    unknown = [np.array(u, np.uint8) for _, u in operands]
    result = int(logic(table, values, unknown))
    for bit in range(8):
        choices = [(0, 1) if u >> bit & 1 else (v >> bit & 1,) for v, u in operands]
        outcomes = {table >> (4 * a + 2 * b + c) & 1 for a, b, c in itertools.product(*choices)}
        assert result >> bit & 1 == (len(outcomes) == 2)


@pytest.mark.parametrize("word", ["and", "or", "xor", "not"])
def test_tables(word: str) -> None:
    """The tables are those of lop3."""
    table, count = LOGIC[word].table, LOGIC[word].operands
    assert table is not None
    functions: dict[str, Callable[[int, int], int]] = {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a, b: 1 - a,
    }
    function = functions[word]
    for a, b, c in itertools.product((0, 1), repeat=3):
        assert table >> (4 * a + 2 * b + c) & 1 == function(a, b)
    assert count == (1 if word == "not" else 2)


def test_spread_by_halves() -> None:
    rows = [np.array([[0x00010000, 1, 0]], np.uint32), np.array([[0, 0x80000000, 0]], np.uint32)]
    assert spread_to_parts(rows, 2, np.uint32).tolist() == [[0xFFFF0000, 0xFFFFFFFF, 0]]
    assert spread_to_parts(rows, 1, np.uint32).tolist() == [[0xFFFFFFFF, 0xFFFFFFFF, 0]]
