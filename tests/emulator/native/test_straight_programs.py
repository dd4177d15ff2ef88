"""Programs with and without straight-line runs: memory, statistics and traces are equal."""

from __future__ import annotations

import io
import re
from copy import copy
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.emulator import EmulationError, run
from fragir.emulator.launch import decoding
from fragir.emulator.machine import scheduler
from fragir.emulator.machine.straight_blocks import StraightBlocks
from fragir.emulator.native.straight import functions
from fragir.emulator.report import Report
from tests.emulator.native.straight_forms import forms

pytestmark = pytest.mark.skipif(functions() is None, reason="the compiled core is not in use")

FORMS = [f for f in forms() if not f.startswith("mov.u32 %r0, %")]
#: What programs access: %d6 is the lane's place in global memory (64 bytes), %r6 in shared memory.
ACCESSES = [
    "ld.global.u32 %r0, [%d6]",
    "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d6+16]",
    "ld.global.s16 %r0, [%d6+2]",
    "ld.global.u8 %h0, [%d6+5]",
    "ld.global.s8 %d0, [%d6+7]",
    "ld.global.v2.u64 {%d0, %d1}, [%d6+32]",
    "ld.u64 %d0, [%d6+8]",
    "st.global.u32 [%d6+4], %r0",
    "st.global.v2.b32 [%d6+8], {%r0, %r1}",
    "st.global.u8 [%d6+3], %r0",
    "st.global.u16 [%d6+18], %h0",
    "st.u64 [%d6+56], %d0",
    "st.shared.v4.u32 [%r6], {%r0, %r1, %r2, %r3}",
    "st.shared.u16 [%r6+6], %r0",
    "ld.shared.u32 %r0, [%r6+8]",
    "ld.shared.v2.u16 {%h0, %h1}, [%r6+4]",
    "ld.shared.s32 %d0, [%r6+12]",
    "st.global.u32 [common], %r0",
    "ld.global.u32 %r0, [common]",
    "ld.param.u32 %r0, [n]",
    "ld.const.u32 %r0, [table+4]",
]

HEAD = """.version 8.7
.target sm_100a
.address_size 64
.global .align 16 .b32 common;
.const .align 8 .u32 table[2] = {7, 0x80000001};
.visible .entry k(.param .u64 p, .param .u32 n)
{ .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<4>;
  .shared .align 16 .b8 own[4096];
  ld.param.u64 %d7, [p]; mov.u32 %r6, %tid.x; mov.u32 %r7, %ctaid.x; mov.u32 %r5, %ntid.x;
  mad.lo.u32 %r7, %r7, %r5, %r6; mul.wide.u32 %d6, %r7, 64; add.u64 %d6, %d6, %d7;
  shl.b32 %r6, %r6, 4; mov.u32 %r5, own; add.u32 %r6, %r6, %r5;
  ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d6]; ld.global.v2.u32 {%r4, %r5}, [%d6+16];
  ld.global.v2.u64 {%d0, %d1}, [%d6+32]; mov.u64 %d2, %d0; mov.u64 %d3, %d1;
  ld.global.v4.u16 {%h0, %h1, %h2, %h3}, [%d6+24]; mov.u16 %h4, %h0;
  setp.lt.s32 %p0, %r0, %r1; setp.gt.u32 %p1, %r2, %r3; setp.ne.u32 %p2, %r4, %r5;
  mov.u32 %r7, 0;
"""
TAIL = """
  st.global.v4.u32 [%d6], {%r0, %r1, %r2, %r3}; st.global.v2.u32 [%d6+16], {%r4, %r5};
  st.global.v2.u64 [%d6+32], {%d0, %d1}; st.global.v4.u16 [%d6+24], {%h0, %h1, %h2, %h3};
  ret; }
"""


@dataclass
class Outcome:
    """What is to be seen of a launch."""

    memory: bytes
    error: tuple[Any, ...] | None
    statistics: tuple[Any, ...]
    trace: str

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Outcome)
        assert self.error == other.error
        assert self.statistics == other.statistics
        assert self.trace == other.trace
        return self.memory == other.memory


def outcome(text: str, arguments: list[Any], traced: bool = False, **options: Any) -> Outcome:
    """Runs a kernel on copies of its arguments."""
    copies: list[Any] = [copy(a) for a in arguments]
    trace = io.StringIO()
    error = None
    try:
        report = run(text, arguments=copies, trace=trace if traced else None, jobs=1, **options)
    except EmulationError as problem:
        report = cast("Report", problem.report)
        error = (str(problem), problem.kind, problem.warp, problem.lane, problem.address)
    s = report.statistics
    counts = (dict(s.instructions), s.lanes, dict(s.loaded), dict(s.stored), s.rounds)
    memory = b"".join(bytes(a) for a in copies if not isinstance(a, int))
    return Outcome(memory, error, counts, trace.getvalue())


def both(text: str, arguments: list[Any], warm: int = 1, **options: Any) -> Outcome:
    """The outcome of a launch, which is the same step by step and in runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "WARM", warm)
        found = outcome(text, arguments, **options)
        # Another launch of the program takes what the first has encoded.
        assert found == outcome(text, arguments, **options)
        patch.setattr(decoding, "functions", lambda: None)
        assert found == outcome(text, arguments, **options)
    return found


def buffer(warps: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    words = random.integers(0, 1 << 32, (warps * 32, 16), np.uint32)
    small = random.random(words.shape) < 0.3
    return np.where(small, words % 40, words).astype(np.uint32)


def statement(form: str, random: Random) -> str:
    """One with other registers, and a guard perhaps."""

    def other(match: re.Match[str]) -> str:
        letter, number = match.groups()
        if int(number) >= 6 or match.string[match.end() :].startswith("."):
            return match[0]
        return f"%{letter}{random.randrange({'p': 3, 'd': 4, 'h': 5}.get(letter, 6))}"

    text = re.sub(r"%([hrdp])(\d)", other, form)
    names = re.search(r"\{([^}]*)\}", text)
    if names and form.split()[0].startswith(("ld", "mov")):
        written = names[1].split(", ")
        if len(set(written)) < len(written):
            text = form
    guard = random.choice(["", "", "", "@%p0 ", "@!%p1 ", "@%p2 "])
    return f"{guard}{text};"


@st.composite
def programs(draw: st.DrawFn) -> str:
    random = draw(st.randoms(use_true_random=False))
    pieces: list[str] = []
    for number in range(random.randrange(1, 4)):
        body = [
            statement(random.choice(FORMS if random.random() < 0.75 else ACCESSES), random)
            for _ in range(random.randrange(1, 12))
        ]
        if random.random() < 0.5:
            cut = random.randrange(len(body) + 1)
            guard = random.choice(["%p0", "!%p1", "%p2"])
            body[cut:cut] = [f"@{guard} bra S{number};"]
            body.append(f"S{number}:")
        elif random.random() < 0.2:
            body.append("bar.sync 0;")
        pieces += body
    turns = random.randrange(3, 30)
    bound = random.choice(
        [f"mov.u32 %r5, {turns};", f"and.b32 %r5, %r6, 7; add.u32 %r5, %r5, {turns};"]
    )
    if "bar.sync" in " ".join(pieces):
        bound = f"mov.u32 %r5, {turns};"
    loop = (
        f"L: {' '.join(pieces)} {bound} add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, %r5; @%p3 bra L;"
    )
    return f"{HEAD}  {loop}{TAIL}"


@settings(deadline=None, max_examples=60)
@given(programs(), st.integers(0, 1 << 20), st.sampled_from([(1, 32), (3, 64), (2, 50), (9, 32)]))
def test_programs_run_as_step_by_step(text: str, seed: int, shape: tuple[int, int]) -> None:
    grid, block = shape
    warps = grid * ((block + 31) // 32)
    both(text, [buffer(warps, seed), 12345], grid=(grid,), block=(block,))


LOOP = f"""{HEAD}
L: {{body}}
  add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, {{turns}}; @%p3 bra L;{TAIL}"""


def _loop(body: str, turns: str = "40") -> str:
    return LOOP.replace("{body}", body).replace("{turns}", turns)


#: An access that goes wrong in the 21st turn, of one lane or many, between others that do not.
FAULTS = {
    "past its buffer": "mad.wide.u32 %d5, %r7, %r4, %d6; ld.global.u32 %r0, [%d5];",
    "past its buffer, stored": "mad.wide.u32 %d5, %r7, %r4, %d6; st.global.u32 [%d5], %r0;",
    "a vector": "mad.wide.u32 %d5, %r7, %r4, %d6; ld.global.v2.u32 {%r0, %r1}, [%d5];",
    "in no space": "mul.wide.u32 %d5, %r4, %r4; add.u64 %d5, %d5, %d6; st.u32 [%d5], %r0;",
    "past the block's memory": "mad.lo.u32 %r5, %r7, %r4, %r6; ld.shared.u32 %r0, [%r5];",
    "misaligned": "shr.u32 %r5, %r4, 12; add.u32 %r5, %r5, %r6; st.shared.u32 [%r5], %r0;",
    "guarded": "setp.ne.u32 %p1, %r4, 0; @%p1 ld.shared.u32 %r0, [%r6+4096];",
    "another width": "shr.u32 %r5, %r4, 10; mul.wide.u32 %d5, %r5, 1; add.u64 %d5, %d5, %d6;"
    " ld.global.v2.u64 {%d0, %d1}, [%d5];",
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("lane", ["-1", "37"])
def test_a_fault_in_the_middle_is_that_of_its_step(name: str, lane: str) -> None:
    # %r4 is 0 but for that lane, or for all, in that turn.
    which = "mov.u32 %r4, %tid.x; setp.eq.u32 %p0, %r4, LANE;".replace("LANE", lane)
    if lane == "-1":
        which = "setp.eq.u32 %p0, %r4, %r4;"
    body = f"""{which} setp.eq.and.u32 %p0, %r7, 20, %p0; selp.u32 %r4, 4096, 0, %p0;
      st.global.u32 [%d6+44], %r7; st.shared.u32 [%r6+8], %r7; {FAULTS[name]}
      st.global.u32 [%d6+48], %r0;"""
    found = both(_loop(body), [buffer(6, 3), 1], grid=(3,), block=(64,))
    assert found.error is not None
    assert "lane" in found.error[0]


@pytest.mark.parametrize("limit", [1, 37, 500, 1001, 20000, 40000])
@pytest.mark.parametrize("grid", [1, 5])
def test_limits_stop_at_the_same_instruction(limit: int, grid: int) -> None:
    text = _loop("xor.b32 %r0, %r0, %r7; fma.rn.f32 %r1, %r0, %r2, %r3;", "9000")
    found = both(text, [buffer(grid, 1), 1], grid=(grid,), limit=limit)
    assert found.error is not None
    assert found.error[1] == "limit"


@pytest.mark.parametrize("turns", [5000, 9000])
def test_a_loop_that_is_parked_is_parked_after_as_many_turns(turns: int) -> None:
    """The other lanes wait in a higher place: they run when the loop's budget is spent."""
    text = f"""{HEAD}
      mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 7; @%p0 bra H;
    L: add.u32 %r7, %r7, 1; st.global.u32 [common], %r7; setp.lt.u32 %p3, %r7, {turns}; @%p3 bra L;
      bra E;
    H: ld.global.u32 %r1, [common];
    E: ld.global.u32 %r2, [common]; {TAIL}"""
    assert both(text, [buffer(2, 5), 1], grid=(2,)).error is None


def test_traces_and_schedules_are_the_same() -> None:
    text = _loop(
        "add.u32 %r0, %r0, %r7; @%p0 st.global.u32 [%d6+4], %r0; @%p1 bra S; not.b32 %r1, %r0; S:"
    )
    for options in ({"traced": True}, {"schedule": 3}, {"schedule": 3, "traced": True}):
        found = both(text, [buffer(4, 9), 1], grid=(2,), block=(64,), **options)
        assert found.error is None


def test_a_copy_that_is_pending_is_found_in_a_run() -> None:
    body = """setp.eq.u32 %p0, %r7, 30; @%p0 cp.async.ca.shared.global [%r6], [%d6], 16;
      L2: add.u32 %r1, %r1, 1; ld.shared.u32 %r0, [%r6+4]; add.u32 %r0, %r0, 1;"""
    found = both(_loop(body), [buffer(2, 2), 1], grid=(1,), block=(64,))
    assert found.error is not None
    assert found.error[1] == "pending-copy"


def test_runs_are_made_and_go_on_from_block_to_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparisons above compare something."""
    calls: list[int] = []
    plain = StraightBlocks.go

    def counted(self: StraightBlocks, *arguments: Any) -> Any:
        result = plain(self, *arguments)
        calls.append(int(self.runs.sum()))
        return result

    monkeypatch.setattr(StraightBlocks, "go", counted)
    for body in (
        "xor.b32 %r0, %r0, %r7; ld.shared.u32 %r2, [%r6];",
        "xor.b32 %r0, %r0, %r7; bar.sync 0; add.u32 %r0, %r0, 3;",
        "and.b32 %r0, %r7, 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra S; add.u32 %r1, %r1, 1; S:",
    ):
        calls.clear()
        outcome(_loop(body, "400"), [buffer(1, 1), 1])
        # Blocks that call after call has begun by itself, all but those before they were known.
        assert calls[-1] >= 350
        assert len(calls) <= 20


def test_checks_see_what_a_launch_without_them_has_encoded() -> None:
    """The race is in the 31st turn: a block that is known is run straight from its second on."""
    text = _loop("setp.eq.u32 %p0, %r7, 30; @%p0 st.global.u32 [%d7], %r6;")
    for check in (False, True, False, True):
        report = run(text, arguments=[buffer(4, 1), 1], grid=(2,), block=(64,), check=check, jobs=1)
        assert bool(report.findings) == check


@pytest.mark.parametrize("second", ["%p1", "%p0"])
def test_an_instruction_may_write_its_own_guard(second: str) -> None:
    """The guard is looked at once: both results reach the lanes where it held."""
    compare = f"@%p0 setp.lt.u32 %p0|{second}, %r0, %r1;"
    text = f"""{HEAD} setp.gt.u32 %p0, %r2, 2147483647; setp.ne.u32 %p1, %r2, %r2; {compare}
  selp.u32 %r3, 1, 0, %p0; selp.u32 %r4, 1, 0, {second};{TAIL}"""
    words = buffer(1, 5)
    found = np.frombuffer(both(text, [words, 1], block=(32,)).memory, np.uint32).reshape(-1, 16)
    held, less = words[:, 2] > 2147483647, words[:, 0] < words[:, 1]
    assert held.any()
    assert not held.all()
    last = held & ~less
    np.testing.assert_array_equal(found[:, 3], last if second == "%p0" else held & less)
    np.testing.assert_array_equal(found[:, 4], last)
