"""Straight-line runs under checks: what is reported, and what checks remember, is the same."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.emulator import run
from fragir.emulator.checks.conflicts import Conflicts
from fragir.emulator.checks.definedness.definedness import Definedness
from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.races import ledger
from fragir.emulator.checks.races.races import Races
from fragir.emulator.launch import decoding, launch
from fragir.emulator.machine import scheduler
from fragir.emulator.native import library
from fragir.emulator.native.straight import functions

pytestmark = pytest.mark.skipif(functions() is None, reason="the compiled core is not in use")

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 turns)
{ .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .b64 %x, %y, %at; .reg .pred %p<6>;
  .reg .b32 %v<4>, %sum, %turn, %turns, %tid, %all, %to; .reg .b64 %w<2>;
  .shared .align 16 .b8 own[SIZE]; .shared .align 16 .b8 next[4096]; .local .align 16 .b8 mine[64];
  ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %turns, [turns];
  mov.u32 %tid, %tid.x; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x;
  mad.lo.u32 %all, %r0, %r1, %tid; mov.u32 %sum, 0; mov.u32 %turn, 0; mov.u32 %r11, next;
"""
TAIL = """
  add.u32 %turn, %turn, 1; setp.lt.u32 %p0, %turn, %turns;
  @%p0 bra LOOP;
  ret; }
"""
#: Bytes, and what is moved: the end of the opcode and the registers.
KINDS = [
    (1, "u8", "%r2"),
    (2, "u16", "%h0"),
    (4, "u32", "%r2"),
    (4, "u32", "%r2"),
    (8, "v2.u32", "{%r2, %r3}"),
    (8, "u64", "%w0"),
    (16, "v4.u32", "{%r2, %r3, %v0, %v1}"),
]


@dataclass
class Kept:
    """What is to be seen of a launch, and what its checks remember at the end."""

    memory: list[bytes]
    findings: list[Any]
    conflicts: dict[str, int]
    counts: list[Any]
    clocks: list[Any]
    shared: list[Any]
    globally: list[Any]
    costs: list[Any]
    undefined: list[Any]


def remembered(hooks: list[Hooks]) -> dict[str, list[Any]]:
    races = next(hook for hook in hooks if isinstance(hook, Races))
    conflicts = next(hook for hook in hooks if isinstance(hook, Conflicts))
    definedness = next(hook for hook in hooks if isinstance(hook, Definedness))
    clocks, shared = races.clocks, races.shared_places
    plane, undefined = definedness.plane, definedness.undefined
    for register in sorted(undefined.tracked, key=lambda r: (r.width, r.index)):
        assert undefined.doubtful & undefined.bits([register]) or not undefined.row(register).any()
    return {
        "clocks": [clocks.now, clocks.lowest, clocks.floor, clocks.warp_floor, clocks.uneven],
        "shared": [
            *(shared.written, shared.read, shared.masks, shared.read_time),
            sorted(shared.log.everything()),
        ],
        "globally": [
            (index, each.records, each.owners, each.noted, each.shift)
            for index, each in sorted(races.global_places.ledgers.items())
        ],
        "costs": [
            (cost.instruction.at, cost.shared, cost.paid, cost.needed, cost.worst)
            for _, cost in sorted(
                conflicts.costs.items(), key=lambda c: (c[1].instruction.at, c[0][1])
            )
        ],
        "undefined": [
            *(file for _, file in sorted(plane.machine.files.items())),
            plane.memory.shared.bytes,
        ],
    }


def kept(text: str, arrays: list[Any], turns: int, **options: Any) -> Kept:
    copies = [array.copy() for array in arrays]
    seen: list[list[Hooks]] = []
    whole = launch.hooks_for

    def hooks_for(*given: Any, **more: Any) -> list[Hooks]:
        seen.append(whole(*given, **more))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "hooks_for", hooks_for)
        report = run(text, arguments=[*copies, turns], check=True, jobs=1, **options)
    statistics = report.statistics
    counts = [statistics.instructions, statistics.loaded, statistics.stored, statistics.rounds]
    return Kept(
        [array.tobytes() for array in copies],
        [*report.findings, *report.remarks, *report.notes],
        dict(statistics.conflicts),
        counts,
        **remembered(seen[0]),
    )


def compare(one: Kept, other: Kept) -> None:
    for each in fields(Kept):
        np.testing.assert_equal(getattr(one, each.name), getattr(other, each.name), each.name)


def judged(text: str, arrays: list[Any], turns: int = 6, **options: Any) -> Kept:
    """The same in runs, step by step, and by numpy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "WARM", 1)
        found = kept(text, arrays, turns, **options)
        compare(found, kept(text, arrays, turns, **options))  # with what the first has encoded
        patch.setattr(decoding, "functions", lambda: None)
        compare(found, kept(text, arrays, turns, **options))
        patch.setattr(library, "quick", lambda: None)
        compare(found, kept(text, arrays, turns, **options))
    return found


def address(random: Random, size: int, room: int, thread: str) -> str:
    """Instructions that put an offset of one of `room` bytes into %to."""
    stride = random.choice([0, 1, 1, 1, 1, 2, 3, 33])
    how = random.choice(["add.u32", "add.u32", "add.u32", "xor.b32"])
    by = random.choice(["%turn", "0", "0", str(random.randrange(40))])
    together = random.choice([0, 0, 0, 0, 1, 5])  # lanes that share a place, as a power of two
    return (
        f"shr.u32 %to, {thread}, {together}; mul.lo.u32 %to, %to, {stride}; "
        f"{how} %to, %to, {by}; "
        f"and.b32 %to, %to, {room // size - 1}; mul.lo.u32 %to, %to, {size};"
    )


def access(random: Random) -> str:
    """One load or store, of shared or global memory."""
    size, end, registers = random.choice(KINDS)
    if random.random() < 0.1:
        place = f"[mine+{16 * random.randrange(4)}]"
        return random.choice(
            [f"ld.local.{end} {registers}, {place};", f"st.local.{end} {place}, {registers};"]
        )
    shared, load = random.random() < 0.6, random.random() < 0.5
    thread = "%tid" if shared else random.choice(["%all", "%all", "%tid"])
    lines = [address(random, size, 4096 if shared else 8192, thread)]
    if shared:
        lines.append("mov.u32 %r4, own; add.u32 %to, %to, %r4;")
        place, space = "[%to]", "shared"
    else:
        base = random.choice(["%x", "%y"])
        lines.append(f"cvt.u64.u32 %at, %to; add.u64 %at, %at, {base};")
        place, space = "[%at]", random.choice(["global", "global", "global.nc"])
    if not load and space == "global.nc":
        space = "global"
    space = f".{space}"
    if random.random() < 0.2:  # by a generic address
        if shared:
            lines.append("cvt.u64.u32 %at, %to; cvta.shared.u64 %at, %at;")
        place, space = "[%at]", ""
    guard = random.choice(["", "", "", "@%p1 ", "@!%p2 ", "@%p3 "])
    text = f"{guard}ld{space}.{end} {registers}, {place};"
    if not load:
        if size == 4:  # often one value for all lanes
            registers = random.choice(["%r2", "%r3", "%turn", "%r10", "%r10"])
        text = f"{guard}st{space}.{end} {place}, {registers};"
    return " ".join([*lines, text, "add.u32 %sum, %sum, %r2;" if load and size == 4 else ""])


def program(random: Random) -> str:
    lines = ["mov.u32 %r2, 5; mov.u32 %r3, %tid; mov.u16 %h0, 3; mov.u64 %w0, 9;"]
    lines.append("mov.u32 %v0, 1; mov.u32 %v1, 2; mov.u32 %r10, 7;")
    lines.append(f"setp.lt.u32 %p1, %tid, {random.choice([1, 16, 40])};")
    lines.append("and.b32 %r5, %tid, 1; setp.eq.u32 %p2, %r5, 0; setp.ge.u32 %p3, %tid, 32;")
    if random.random() < 0.7:
        lines.append("mov.u32 %r4, own; mad.lo.u32 %r4, %tid, 16, %r4;")
        lines.append("st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2}; bar.sync 0;")
    lines.append("LOOP:")
    for number in range(random.randrange(1, 7)):
        if random.random() < 0.2:  # some lanes alone
            there = [access(random) for _ in range(random.randrange(1, 3))]
            lines += [f"@%p{random.choice([1, 2, 3])} bra BEHIND{number};", *there]
            lines.append(f"BEHIND{number}:")
        else:
            lines.append(access(random))
        lines.append(random.choice(["", "bar.sync 0;", "bar.sync 0;"]))
    if random.random() < 0.3:
        lines.append("setp.gt.u32 %p4, %sum, 100; @%p4 add.u32 %sum, %sum, 1;")
    if random.random() < 0.3:
        lines.append("shfl.sync.bfly.b32 %r6, %sum, 1, 31, -1; add.u32 %sum, %sum, %r6;")
    if random.random() < 0.3:
        lines.append("add.u64 %at, %y, 8192; st.global.u32 [%at], %sum;")
    size = random.choice(
        [2048, 4096, 4096]
    )  # accesses stay within it, or come to the next variable
    return HEAD.replace("SIZE", str(size)) + "\n".join(lines) + TAIL


def arrays() -> list[Any]:
    return [np.arange(size, dtype=np.uint32) for size in (2048, 2052)]


def judge_random(seed: int) -> None:
    """A random program with some number of threads, in ledgers with pages or without."""
    random = Random(seed)
    text, turns = program(random), random.choice([3, 6, 12])
    threads, blocks = random.choice([32, 40, 64, 96, 128, 256]), random.randint(1, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "SMALL", random.choice([ledger.SMALL, 64]))
        resident = random.choice([1, 2, 4])
        judged(text, arrays(), turns, grid=(blocks,), block=(threads,), resident=resident)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 40))
def test_random_programs(seed: int) -> None:
    judge_random(seed)


def loop(body: str, before: str = "") -> str:
    return HEAD.replace("SIZE", "4096") + before + "LOOP:\n" + body + TAIL


EACH = """  mov.u32 %r4, own; mad.lo.u32 %r5, %tid, 4, %r4; mul.wide.u32 %at, %all, 4;
  add.u64 %at, %at, %x; mov.u32 %r3, 1; st.shared.u32 [%r5], %r3; bar.sync 0;
"""


def kinds(found: Kept) -> set[str]:
    return {finding.kind for finding in found.findings if hasattr(finding, "kind")}


def test_a_race_of_a_late_turn() -> None:
    """Quiet for 20 turns; then a lane reads what its neighbour has just written."""
    body = """setp.lt.u32 %p1, %turn, 20; selp.b32 %r6, 0, 128, %p1; add.u32 %r6, %r5, %r6;
  and.b32 %r6, %r6, 4095; st.shared.u32 [%r5], %r3; ld.shared.u32 %r7, [%r6]; bar.sync 0;"""
    text = loop(body, EACH + "and.b32 %r5, %r5, 4095;")
    assert kinds(judged(text, arrays(), 20, grid=(1,), block=(64,))) == set()
    assert kinds(judged(text, arrays(), 22, grid=(1,), block=(64,))) == {"race"}


def test_undefined_bytes_of_a_late_turn() -> None:
    body = """setp.eq.u32 %p1, %turn, 19; selp.b32 %r6, 2048, 0, %p1; add.u32 %r6, %r5, %r6;
  ld.shared.u32 %r7, [%r6]; st.global.u32 [%at], %r7;"""
    text = loop(body, EACH)
    assert kinds(judged(text, arrays(), 19, grid=(2,), block=(64,))) == set()
    assert kinds(judged(text, arrays(), 21, grid=(2,), block=(64,))) == {"uninitialised"}


def test_the_dearest_access_of_a_late_turn() -> None:
    body = """setp.eq.u32 %p1, %turn, 19; selp.b32 %r6, 128, 4, %p1; mul.lo.u32 %r6, %r6, %tid;
  and.b32 %r6, %r6, 2047; mov.u32 %r4, own; add.u32 %r6, %r6, %r4; ld.shared.u32 %r7, [%r6];"""
    before = "mov.u32 %r4, own; mad.lo.u32 %r5, %tid, 32, %r4; mov.u32 %r3, 1;"
    before += "st.shared.v4.u32 [%r5], {%r3, %r3, %r3, %r3};"
    before += "st.shared.v4.u32 [%r5+16], {%r3, %r3, %r3, %r3}; bar.sync 0;\n"
    text = loop(body, before)
    quiet, loud = (judged(text, arrays(), turns, grid=(1,), block=(64,)) for turns in (19, 21))
    (message,) = [f.message for f in loud.findings[len(quiet.findings) :]]
    # 16 words that are 128 bytes apart; lanes 16 to 31 read the same ones
    lanes = ", ".join(map(str, range(16)))
    assert f"16-way bank conflict between lanes {lanes} (" in message


def test_blocks_that_write_one_buffer() -> None:
    """Neighbouring blocks write the same places, in a late turn and in pages of a large buffer."""
    body = """setp.ge.u32 %p1, %turn, 19; selp.b32 %r6, %tid, %all, %p1; mul.wide.u32 %at, %r6, 4;
  add.u64 %at, %at, %x; st.global.u32 [%at], %all;"""
    for small in (ledger.SMALL, 16):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger, "SMALL", small)
            found = [
                kinds(judged(loop(body), arrays(), turns, grid=(2,), block=(64,)))
                for turns in (19, 21)
            ]
        assert found == [set(), {"race"}]


def told(body: str, before: str, turns: int, blocks: int = 2) -> int:
    """How many accesses the check for races is told one by one; it must find nothing."""
    count: list[int] = []
    on_access = Races.on_access

    def tell(self: Races, access: Any) -> None:
        count.append(1)
        on_access(self, access)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Races, "on_access", tell)
        options: dict[str, Any] = {"grid": (blocks,), "block": (64,), "check": True, "jobs": 1}
        report = run(loop(body, before), arguments=[*arrays(), turns], **options)
    assert not report.findings
    return len(count)


@pytest.mark.parametrize("guard", ["", "@%p1 "])
def test_runs_do_take_accesses_and_barriers(guard: str) -> None:
    """Few accesses of a loop are told to the checks one by one, though %r7 is never defined in
    lanes that a guard keeps out."""
    body = f"""{guard}ld.global.u32 %r7, [%at]; {guard}st.shared.u32 [%r5], %r7; bar.sync 0;
  {guard}ld.shared.u32 %r7, [%r5]; {guard}add.u32 %r7, %r7, 1; {guard}st.global.u32 [%at], %r7;
  bar.sync 0;"""
    assert told(body, EACH + "setp.lt.u32 %p1, %tid, 40;", 1000) < 100  # of 4,000


#: What threads store together: the body of a loop, and how many blocks do.
TOGETHER = {
    "what is there": ("st.shared.u32 [%r4], %r3;", 2),
    "what is there, in several blocks": ("st.global.u32 [%x], %r3;", 2),
    "what is there, after a load": (
        "ld.global.u32 %r7, [%x]; bar.sync 0; st.global.u32 [%x], %r7; bar.sync 0;",
        1,
    ),
    "a number of the turn": ("st.shared.u32 [%r4], %turn; bar.sync 0;", 2),
    "one of each warp": ("st.shared.u32 [%r8], %turn; bar.sync 0;", 2),
    "one of two lanes": ("st.shared.u32 [%r9], %turn; bar.sync 0;", 2),
    "to global memory": ("st.global.u32 [%x], %turn; bar.sync 0;", 1),
    "two words": ("st.global.v2.u32 [%x+64], {%turn, %r3}; bar.sync 0;", 1),
}


@pytest.mark.parametrize("how", TOGETHER)
def test_runs_take_stores_of_one_value_by_several_threads(how: str) -> None:
    before = EACH + "shr.u32 %r8, %tid, 5; mad.lo.u32 %r8, %r8, 4, %r4;"
    before += "shr.u32 %r9, %tid, 1; mad.lo.u32 %r9, %r9, 4, %r4;\n"
    body, blocks = TOGETHER[how]
    judged(loop(body, before), arrays(), grid=(blocks,), block=(64,))
    assert told(body, before, 1000, blocks) < 100


@pytest.mark.parametrize("space", ["shared", "global"])
def test_different_values_of_a_late_turn(space: str) -> None:
    """All threads store the number of the turn, and from turn 19 on the last one another."""
    body = f"""setp.eq.u32 %p1, %tid, 63; setp.ge.and.u32 %p1, %turn, 19, %p1;
  selp.b32 %r6, 5, %turn, %p1; st.{space}.u32 [{"%r4" if space == "shared" else "%x"}], %r6;
  bar.sync 0;"""
    assert kinds(judged(loop(body, EACH), arrays(), 19, grid=(1,), block=(64,))) == set()
    assert kinds(judged(loop(body, EACH), arrays(), 21, grid=(1,), block=(64,))) == {"race"}


def test_lost_updates_of_a_late_turn() -> None:
    """Lanes add to what they have read, and store the same sum: all but one are lost."""
    body = """setp.ge.u32 %p1, %turn, 19; selp.b32 %r6, 1, 0, %p1; ld.global.u32 %r7, [%x];
  add.u32 %r7, %r7, %r6; st.global.u32 [%x], %r7; bar.sync 0;"""
    assert kinds(judged(loop(body), arrays(), 19, grid=(1,), block=(32,))) == set()
    assert kinds(judged(loop(body), arrays(), 21, grid=(1,), block=(32,))) == {"race"}


def test_variables_that_lie_side_by_side() -> None:
    """Thread 63 stores 252 + 192 * turn bytes behind the start of a variable of 4096 bytes."""
    body = "mul.lo.u32 %r6, %turn, 192; add.u32 %r6, %r5, %r6; st.shared.u32 [%r6], %r3;"
    text = loop(body, EACH)
    assert kinds(judged(text, arrays(), 21, grid=(1,), block=(64,))) == set()
    assert kinds(judged(text, arrays(), 22, grid=(1,), block=(64,))) == {"out-of-bounds"}
