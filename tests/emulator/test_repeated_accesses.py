"""Accesses under checks that are like earlier ones: what differs nevertheless is seen."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from fragir.emulator import EmulationError, Report, run
from fragir.emulator.checks import located
from fragir.emulator.checks.races import shared_places
from fragir.emulator.checks.races.shared_places import LIMIT
from fragir.emulator.checks.races.undisputed import BY_NUMPY, UndisputedGlobal, UndisputedShared
from fragir.emulator.launch import decoding
from fragir.emulator.machine import arena
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.native import library
from tests.emulator.native.test_watched_runs import EACH, Kept, compare, kept, loop, program
from tests.emulator.native.test_watched_runs import arrays as random_arrays

TURNS = 30
LATE = 20  # the turn in which something happens; accesses of those before are all alike

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) malloc (.param .b64 size);
.extern .func free (.param .b64 at);
.visible .entry k(.param .u64 x, .param .u64 y)
{
    .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %x, %y, %d<4>; .shared .align 16 .b8 own[512];
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, own; mad.lo.u32 %r3, %r1, 4, %r3; mul.wide.u32 %d1, %r1, 4; mov.u32 %r0, 0;
    add.u64 %x, %x, %d1; add.u64 %y, %y, %d1;
"""
TAIL = f"""
    add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, {TURNS};
    @%p0 bra LOOP;
    ret;
}}
"""


@pytest.fixture(autouse=True)
def by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Step by step, where every access is told to the checks."""
    monkeypatch.setattr(decoding, "functions", lambda: None)
    monkeypatch.setattr(library, "quick", lambda: None)


def done(body: str, before: str = "", x: int = 64, y: int = 64, **options: Any) -> list[Any]:
    """Arrays of so many words after a loop, and the report."""
    text = HEAD + before + "LOOP:\n" + body + TAIL
    arrays = [np.arange(size, dtype=np.uint32) for size in (x, y)]
    options = {"block": (64,), "check": True, **options}
    report = run(text, arguments=arrays, **options)
    assert isinstance(report, Report)
    return [*arrays, report]


def kinds(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings}


@pytest.mark.parametrize("room", [4096, 0])
def test_places_are_found_once(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "ROOM", room)
    calls: Counter[str] = Counter()

    def count(name: str) -> None:
        real = getattr(DeviceMemory, name)

        def counted(self: Any, *given: Any) -> Any:
            calls[name] += 1
            return real(self, *given)

        monkeypatch.setattr(DeviceMemory, name, counted)

    count("locate_global")
    count("locate_shared")
    body = """ld.global.u32 %r4, [%x]; st.shared.u32 [%r3], %r4; ld.shared.u32 %r4, [%r3];
    add.u32 %r4, %r4, 1; st.global.u32 [%x], %r4; add.u64 %y, %y, 4; ld.global.u32 %r5, [%y];"""
    x, _, report = done(body, y=64 + TURNS)
    assert (x == np.arange(64) + TURNS).all()
    assert not report.findings
    assert (sum(calls.values()) < TURNS) == (room > 0)  # of 5 accesses of that many turns


@pytest.mark.parametrize("step", [4, 64, -4])
def test_accesses_that_move_out_of_a_buffer(step: int) -> None:
    size = 64 + abs(step) // 4 * LATE
    start = 0 if step > 0 else -step * LATE
    before = f"add.u64 %x, %x, {start};"
    body = f"ld.global.u32 %r4, [%x]; add.u64 %x, %x, {step};"
    # lanes have moved that far when the first or the last is out of bounds
    text = f"4 bytes at offset {4 * size} of argument 0" if step > 0 else "4 bytes, 4 bytes before"
    with pytest.raises(EmulationError, match=text) as found:
        done(body, before, x=size)
    lane = 64 - step // 4 if step > 0 else 0  # the first lane that is out, of the block
    assert (found.value.warp, found.value.lane) == divmod(lane, 32)


def test_accesses_that_move_out_of_shared_memory() -> None:
    # 256 bytes of 512 are accessed, 16 bytes further each turn: the 17th ends behind 512
    body = "st.shared.u32 [%r3], %r1; add.u32 %r3, %r3, 16;"
    with pytest.raises(EmulationError, match="4 bytes at shared offset 512; the block has 512"):
        done(body)


def test_an_access_that_is_aligned_no_more() -> None:
    late = f"setp.ge.u32 %p1, %r0, {LATE}; @%p1 add.u64 %y, %x, 2; @!%p1 add.u64 %y, %x, 0;"
    with pytest.raises(EmulationError, match="a multiple of 4"):
        done(f"{late} ld.global.u32 %r4, [%y];", x=128)


def test_from_buffer_to_buffer() -> None:
    """The same pattern in x and y by turns: every turn adds 1 to one of the two."""
    body = """ld.global.u32 %r4, [%x]; add.u32 %r4, %r4, 1; st.global.u32 [%x], %r4;
    mov.u64 %d2, %x; mov.u64 %x, %y; mov.u64 %y, %d2;"""
    x, y, report = done(body)
    assert (x == np.arange(64) + TURNS // 2).all()
    assert (y == np.arange(64) + TURNS // 2).all()
    assert not report.findings


def test_a_piece_of_the_heap_that_is_freed() -> None:
    before = """setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKEN;
    { .param .b64 s; .param .b64 r; st.param.b64 [s], 256; call.uni (r), malloc, (s);
    ld.param.b64 %d2, [r]; } st.shared.u64 [own], %d2;
TAKEN: bar.sync 0; ld.shared.u64 %d2, [own]; add.u64 %d3, %d2, %d1;
"""
    body = f"""st.global.u32 [%d3], %r1; setp.eq.u32 %p1, %r0, {LATE};
    setp.eq.and.u32 %p1, %r1, 0, %p1; @!%p1 bra BEHIND;
    {{ .param .b64 s; st.param.b64 [s], %d2; call.uni free, (s); }}
BEHIND:"""
    quiet = body.replace(f"%r0, {LATE}", f"%r0, {TURNS - 1}")
    assert not done(quiet, before, block=(32,))[-1].findings
    with pytest.raises(EmulationError, match=r"4 bytes outside|4 bytes at|4 bytes, ") as found:
        done(body, before, block=(32,))
    assert "st.global.u32" in str(found.value)


@pytest.mark.parametrize("who", ["%tid.x", "%ctaid.x"])
def test_a_race_in_a_late_turn(who: str) -> None:
    """Blocks of one warp write places of their own; in a late turn one takes its neighbour's."""
    before = f"""mul.wide.u32 %d2, %r2, 128; add.u64 %x, %x, %d2;
    mov.u32 %r6, {who};"""
    body = f"""setp.eq.u32 %p1, %r0, {LATE}; setp.eq.and.u32 %p1, %r2, 0, %p1;
    @%p1 add.u64 %x, %x, 128; st.global.u32 [%x], %r6; @%p1 sub.u64 %x, %x, 128;"""
    *_, report = done(body, before, x=64, block=(32,), grid=(2,))
    # lanes of both write their numbers, which are the same; numbers of blocks differ
    assert kinds(report) == (set() if who == "%tid.x" else {"race"})


def test_a_race_in_shared_memory_in_a_late_turn() -> None:
    body = f"""st.shared.u32 [%r3], %r0; bar.sync 0; setp.lt.u32 %p1, %r0, {LATE};
    selp.b32 %r4, 0, 128, %p1; xor.b32 %r4, %r3, %r4; ld.shared.u32 %r5, [%r4];"""
    quiet = "bar.sync 0;"  # behind the load nobody writes before all have read
    *_, report = done(body + quiet)
    assert not report.findings
    *_, report = done(body)
    assert kinds(report) == {"race"}
    early = report.findings[0]
    assert "st.shared.u32" in early.message


def test_prices_of_accesses_that_move() -> None:
    """Words of 4 bytes that begin 4 bytes later each turn: 5 sectors instead of 4 in 7 of 8."""
    body = "ld.global.u32 %r4, [%x]; add.u64 %x, %x, 4;"
    *_, report = done(body, x=64 + TURNS)
    lines = [4 if turn % 8 == 0 else 5 for turn in range(TURNS)]
    counted = report.statistics.conflicts
    assert counted["sectors"] == 2 * sum(lines)  # two warps
    assert counted["sectors_needed"] == 2 * 4 * TURNS


#: What is asked first, and what it says where the general way is to be taken.
SHORTCUTS: list[tuple[type, str, object]] = [
    (UndisputedShared, "read", False),
    (UndisputedShared, "write", BY_NUMPY),
    (UndisputedGlobal, "access", BY_NUMPY),
]


def declined(result: object, *_: Any) -> object:
    return result


def same(text: str, turns: int, **options: Any) -> Kept:
    """What checks report and remember, with all that is quicker and without."""
    found = kept(text, random_arrays(), turns, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(located, "MISSES", 0)
        for kind, name, result in SHORTCUTS:
            patch.setattr(kind, name, partial(declined, result))
        compare(found, kept(text, random_arrays(), turns, **options))
    return found


#: Bodies of loops: %at is x + 4 all, %r5 is own + 4 tid. In a late turn there is a race.
RACES = {
    "one lane reads what another lane of its warp writes then": f"""
    setp.eq.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %tid, 0, %p1;
    st.shared.u32 [%r5], %turn; bar.sync 0; ld.shared.u32 %r7, [%r5];
    @%p1 ld.shared.u32 %r7, [%r5+80];""",
    "one lane writes what another lane of its warp writes then": f"""
    setp.eq.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %tid, 0, %p1;
    st.shared.u32 [%r5], %turn; bar.sync 0; @%p1 st.shared.u32 [%r5+80], %r5;""",
    "a warp reads what two lanes of another have read, and writes": f"""
    setp.eq.u32 %p1, %turn, {LATE}; mov.u32 %r6, own; selp.b32 %r6, %r5, %r6, %p1;
    st.shared.u32 [%r5+512], %turn; ld.shared.u32 %r7, [%r6]; setp.eq.u32 %p2, %turn, {LATE + 1};
    @!%p2 bar.sync 0; @%p2 st.shared.u32 [%r5], %turn; @%p2 bar.sync 0;""",
    "one lane writes what it has read together with another": f"""
    setp.eq.u32 %p1, %turn, {LATE}; and.b32 %r7, %tid, 1; setp.eq.and.u32 %p1, %r7, 1, %p1;
    and.b32 %r6, %r5, -8; ld.shared.u32 %r7, [%r6]; @%p1 st.shared.u32 [%r6], %turn;
    bar.sync 0;""",
    "one warp writes what another has written, in the same way": f"""
    setp.eq.u32 %p1, %turn, {LATE}; setp.lt.u32 %p2, %tid, 32; @%p2 st.global.u32 [%at], %turn;
    selp.b32 %r7, 0, 1024, %p1; add.u32 %r7, %r7, %tid; mul.wide.u32 %w0, %r7, 4;
    add.u64 %w0, %w0, %x; @!%p2 st.global.u32 [%w0+-128], %tid;""",
    "one lane writes what another warp reads then": f"""
    setp.eq.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %tid, 0, %p1;
    st.shared.u32 [%r5], %turn; bar.sync 0; @%p1 st.shared.u32 [%r5+160], %tid;
    ld.shared.u32 %r7, [%r5]; bar.sync 0;""",
    "one lane reads what another warp writes then": f"""
    setp.eq.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %tid, 0, %p1;
    st.shared.u32 [%r5], %turn; bar.sync 0; @%p1 ld.shared.u32 %r7, [%r5+128];""",
    "one lane writes what another warp writes": f"""
    setp.eq.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %tid, 0, %p1;
    st.global.u32 [%at], %turn; bar.sync 0; @%p1 st.global.u32 [%at+160], %tid;""",
    "one lane reads what another warp writes": f"""
    setp.eq.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %tid, 0, %p1;
    ld.global.u32 %r7, [%at]; bar.sync 0; @%p1 ld.global.u32 %r7, [%at+160];
    add.u32 %r7, %r7, 1; st.global.u32 [%at], %r7;""",
    "warps read what they do not write": f"""
    setp.eq.u32 %p1, %turn, {LATE}; xor.b32 %r6, %all, 32; mul.wide.u32 %w0, %r6, 4;
    add.u64 %w0, %w0, %x; st.global.u32 [%w0], %turn; @%p1 ld.global.u32 %r7, [%at];""",
    "lanes of a warp change what they have read together": f"""
    setp.eq.u32 %p1, %turn, {LATE}; ld.global.u32 %r7, [%at]; add.u32 %r7, %r7, 1;
    xor.b32 %r6, %all, 1; selp.b32 %r6, %r6, %all, %p1; mul.wide.u32 %w0, %r6, 4;
    add.u64 %w0, %w0, %x; st.global.u32 [%w0], %r7; add.u32 %r7, %r7, 1;
    st.global.u32 [%at], %r7;""",
}


#: Lanes that share places, or some alone. %r6 is the first word of `own`, %p2 holds in some lanes.
SHARED_PLACES = {
    "all read one word, and each its own": """
    st.shared.u32 [%r5], %turn; bar.sync 0; ld.shared.u32 %r7, [%r6+32];
    ld.shared.u32 %r8, [%r5]; ld.shared.u32 %r7, [%r6+32]; bar.sync 0;""",
    "warps read the same words one after the other": """
    st.shared.u32 [%r5], %turn; bar.sync 0; xor.b32 %r7, %r5, 128; ld.shared.u32 %r8, [%r7];
    xor.b32 %r7, %r5, 4; ld.shared.u32 %r8, [%r7]; ld.shared.u32 %r8, [%r5]; bar.sync 0;""",
    "pairs read one word": """
    and.b32 %r7, %r5, -8; ld.shared.u32 %r8, [%r7]; ld.shared.u32 %r8, [%r7]; bar.sync 0;
    st.shared.u32 [%r5], %r8; bar.sync 0;""",
    "lanes change what they have read": """
    ld.shared.u32 %r7, [%r5]; add.u32 %r7, %r7, 1; st.shared.u32 [%r5], %r7;
    st.shared.u32 [%r5], %r7; ld.shared.u32 %r7, [%r5]; xor.b32 %r5, %r5, 2048;""",
    "some lanes": """
    @%p2 ld.global.u32 %r7, [%at]; @%p2 st.global.u32 [%at], %turn;
    @%p2 st.shared.u32 [%r5], %turn; @!%p2 ld.shared.u32 %r7, [%r5]; xor.b32 %r5, %r5, 1024;""",
    "all read one word of global memory": """
    ld.global.u32 %r7, [%y]; st.global.u32 [%at], %turn; ld.global.u32 %r7, [%y+128];""",
    "words that all blocks read, one after the other": """
    ld.global.u32 %r7, [%y]; add.u64 %y, %y, 4;""",
    "half of the lanes, then the others": """
    add.u32 %r7, %tid, %turn; and.b32 %r7, %r7, 1; setp.eq.u32 %p2, %r7, 0;
    @%p2 st.global.u32 [%at], %turn; @%p2 ld.shared.u32 %r7, [%r5];""",
    "vectors": """
    st.shared.v2.u32 [%r9], {%turn, %r6}; ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%r10];
    ld.global.v2.u32 {%r7, %r8}, [%y];""",
}


@pytest.mark.parametrize("warps", [1, 2, 3])
@pytest.mark.parametrize("limit", [0, LIMIT])  # 0: one record for the reads of all warps
@pytest.mark.parametrize("name", SHARED_PLACES)
def test_what_is_kept_of_other_accesses(
    name: str, limit: int, warps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_places, "LIMIT", limit)
    before = """mov.u32 %r6, own; and.b32 %r7, %tid, 5; setp.ne.u32 %p2, %r7, 0;
    mad.lo.u32 %r9, %tid, 8, %r6; and.b32 %r10, %r9, -16;"""
    for blocks in (1, 2):
        options = {"grid": (blocks,), "block": (32 * warps,)}
        same(loop(SHARED_PLACES[name], EACH + before), TURNS, **options)


@pytest.mark.parametrize("limit", [0, LIMIT])
@pytest.mark.parametrize("name", RACES)
def test_what_others_have_done_in_between(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_places, "LIMIT", limit)
    text = loop(RACES[name], EACH)
    options = {"grid": (1,), "block": (64,)}
    assert not same(text, LATE, **options).findings
    assert {f.kind for f in same(text, TURNS, **options).findings} == {"race"}


def test_blocks_of_several_waves() -> None:
    """The second block writes what the first has written, by the same lanes."""
    body = "mul.wide.u32 %w0, %tid, 4; add.u64 %w0, %w0, %x; st.global.u32 [%w0], %r0;"
    found = same(loop(body, EACH), TURNS, grid=(2,), block=(64,), resident=1)
    assert {finding.kind for finding in found.findings} == {"race"}


def test_a_read_of_an_earlier_wave() -> None:
    """The second block has read last what it writes, but the first has read it too."""
    body = f"""mul.wide.u32 %w0, %tid, 4; add.u64 %w0, %w0, %x; ld.global.u32 %r7, [%w0];
    setp.ge.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %r0, 1, %p1; @%p1 add.u32 %r7, %r7, 1;
    @%p1 st.global.u32 [%w0], %r7;"""
    text, options = loop(body, EACH), {"block": (64,), "resident": 1}
    assert not same(text, LATE, grid=(2,), **options).findings
    assert {f.kind for f in same(text, TURNS, grid=(2,), **options).findings} == {"race"}


def test_places_that_become_smaller() -> None:
    body = f"""setp.eq.u32 %p1, %turn, {LATE}; setp.eq.and.u32 %p1, %tid, 0, %p1;
    st.global.u32 [%at], %turn; bar.sync 0; @%p1 ld.global.u8 %r7, [%at+200]; bar.sync 0;"""
    assert not same(loop(body, EACH), TURNS, grid=(1,), block=(64,)).findings


def test_warps_that_change_places_and_move_on() -> None:
    before = "xor.b32 %r6, %all, 32; mul.wide.u32 %w0, %r6, 4; add.u64 %w0, %w0, %x;"
    body = "st.global.u32 [%w0], %turn; add.u64 %w0, %w0, 256;"
    assert not same(loop(body, EACH + before), TURNS, grid=(1,), block=(64,)).findings


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    random = Random(seed)
    text, turns = program(random), random.choice([6, 12])
    threads, blocks = random.choice([32, 64, 96]), random.randint(1, 4)
    same(text, turns, grid=(blocks,), block=(threads,), resident=random.choice([1, 2]))
