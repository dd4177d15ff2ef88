"""The parts of the check for races, one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fragir.emulator import run
from fragir.emulator.checks.races.clocks import (
    ASYNC,
    COLUMN_MASK,
    PENDING,
    SITE_MASK,
    STRONG,
    TIME_SHIFT,
    Clocks,
    later,
    record,
    site_of,
)
from fragir.emulator.checks.races.hearsay import Told, covers
from fragir.emulator.checks.races.ledger import READ, READ_ELSEWHERE, WRITE, Ledger
from fragir.emulator.checks.races.shared_places import COMPACT, ReadLog
from fragir.emulator.checks.synchronisation import Sites


def numbers(*values: Any) -> Any:
    return np.array(values, np.int64)


def clocks(proxies: int = 0, cluster: int = 1) -> Clocks:
    """Of two blocks of two warps."""
    machine: Any = SimpleNamespace(warps=4, warps_per_block=2, cluster_size=cluster)
    return Clocks(machine, proxies, ())


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize(
    ("time", "column", "site"), [(1, 0, 0), (PENDING, COLUMN_MASK, SITE_MASK), (ASYNC, 5, 7)]
)
def test_a_record_holds_all_of_an_access(time: int, column: int, site: int, strong: bool) -> None:
    rec = record(time, column, site, strong)
    assert (rec >> TIME_SHIFT, rec & COLUMN_MASK, site_of(rec)) == (time, column, site)
    assert bool(rec & STRONG) == strong
    assert 0 < rec < 1 << 63


# -- clocks --------------------------------------------------------------------------------------


def test_lanes_know_themselves_and_what_they_are_told() -> None:
    c = clocks()
    mine = numbers(record(c.now, 3, 0))
    assert not c.unordered(numbers(3), mine).any()
    assert c.unordered(numbers(4), mine).all()
    c.join(numbers(3, 4))
    assert not c.unordered(numbers(4), mine).any()
    assert c.unordered(numbers(5), mine).all()
    c.acquire(numbers(5), c.publish(numbers(4)))  # from one to the next
    assert not c.unordered(numbers(5), mine).any()
    assert c.unordered(numbers(4), numbers(record(c.now, 3, 0))).all()  # what comes later is not


def test_whole_warps_and_whole_blocks() -> None:
    c = clocks()
    mine = numbers(record(c.now, 3, 0))
    c.join_warps(np.arange(32))
    assert not c.unordered(numbers(31), mine).any()
    assert c.unordered(numbers(32), mine).all()
    c.join_blocks(np.arange(64))
    assert not c.unordered(numbers(63), mine).any()
    assert not c.are_settled(mine)  # the other block has not come
    c.join_blocks(np.arange(64, 128))
    assert c.are_settled(mine)


def test_what_is_asynchronous_no_barrier_covers() -> None:
    c = clocks()
    column = c.agent(0, "mbarrier", 64)
    assert column == 64 == c.agent(1, "mbarrier", 64) != c.agent(0, "mbarrier", 72)
    copied = numbers(record(ASYNC + c.now, column, 0))
    c.join_blocks(np.arange(64))
    assert c.unordered(numbers(0), copied).all()
    c.known[0, 0, column] = ASYNC + c.now
    assert not c.unordered(numbers(0), copied).any()


def test_the_asynchronous_proxy_sees_what_is_fenced() -> None:
    c = clocks(proxies=1)
    mine = numbers(record(c.now, 3, 0))
    assert c.invisible(numbers(3), mine).all()  # its own writes too
    c.fence(numbers(3), c.proxy)
    assert not c.invisible(numbers(3), mine).any()
    c.join(numbers(3, 40))
    assert not c.invisible(numbers(40), mine).any()


def test_later_times_of_different_widths() -> None:
    a, b = np.array([[1, 5]], np.int32), np.array([[3, 2, 4]], np.int32)
    assert later(a, b).tolist() == later(b, a).tolist() == [[3, 5, 4]]
    assert later(a, None) is a
    assert covers(later(a, b), a)
    assert covers(later(a, b), b)
    assert not covers(a, b)
    assert not covers(np.array([[9, 9]], np.int32), b)
    assert covers(np.array([[3, 2]], np.int32), np.array([[3, 2, 0]], np.int32))


# -- what is remembered of places ----------------------------------------------------------------


def test_pushed_out_reads_come_back_once_a_row_for_each_lane() -> None:
    log = ReadLog(8)
    read = record(5, 32, 9)
    log.push(numbers(3), numbers(read), np.array([0b101], np.uint32), 0)
    log.push(numbers(6), numbers(read), np.array([0b1], np.uint32), 0)
    assert log.forgotten_reads(numbers(2, 4)) is None
    found = log.forgotten_reads(numbers(2, 3))
    assert found is not None
    assert found[0].tolist() == [1, 1]
    assert found[1].tolist() == [record(5, 32, 9), record(5, 34, 9)]
    assert log.forgotten_reads(numbers(2, 3)) is None
    assert log.entries == 1


def test_a_long_log_keeps_the_latest_of_each_warp() -> None:
    log = ReadLog(4)
    mask = np.array([1], np.uint32)
    log.push(
        numbers(1), numbers(record(2, 0, 0)), mask, 0
    )  # settled when the log is looked through
    for time in range(10, 10 + COMPACT):
        log.push(numbers(2), numbers(record(time, 32 * (time % 2), 0)), mask, 5)
    assert log.entries == 2
    settled = log.forgotten_reads(numbers(1))
    assert settled is None or not len(settled[0])
    found = log.forgotten_reads(numbers(2))
    assert found is not None
    assert sorted(r >> TIME_SHIFT for r in found[1].tolist()) == [COMPACT + 8, COMPACT + 9]


def test_a_ledger_keeps_a_read_of_another_cluster() -> None:
    ledger = Ledger(4096, 64)
    places = ledger.places(numbers(4096 + 16), 16)
    assert places.tolist() == [[1]]
    for owner in (1, 2):
        ledger.note_read(places, numbers(record(owner, 0, 0)), np.array([owner], np.int32))
    assert ledger.owners[[READ, READ_ELSEWHERE], 1].tolist() == [2, 1]
    smaller = ledger.places(numbers(4096 + 20), 4)  # places become smaller, and keep what they had
    assert smaller.tolist() == [[5]]
    assert ledger.owners[READ, 4:8].tolist() == [2, 2, 2, 2]
    assert not ledger.note_write(smaller, numbers(record(3, 0, 0)), np.array([1], np.int32))
    assert ledger.records[WRITE, 4:7].tolist() == [0, record(3, 0, 0), 0]


def test_several_writers_of_one_place() -> None:
    ledger = Ledger(0, 64)
    places = ledger.places(numbers(0, 0), 16)
    one = np.array([1, 1], np.int32)
    lanes, warps = ([record(1, 0, 0), record(1, c, 0)] for c in (1, 32))
    assert ledger.note_write(places, numbers(*lanes), one)
    assert ledger.note_write(places, numbers(*warps), one)
    assert ledger.others(places, numbers(0, 32), one).tolist() == [True, False]


def test_lanes_are_told_by_a_shuffle_what_one_has_acquired() -> None:
    told = Told(clocks(1), "", "")
    times = np.zeros((2, 64), np.int32)
    times[0, 40] = 7
    told.tell_warps(numbers(1))  # nobody has acquired anything
    told.acquire(times, {2: np.full((1, 3), 9, np.int32)}, numbers(0))
    assert not told.knows(1, record(7, 40, 0), None)
    told.tell_warps(numbers(1, 33))
    assert not told.knows(1, record(7, 40, 0), None)  # not by one that has acquired it
    told.tell_warps(numbers(0, 1, 33))
    assert told.knows(1, record(7, 40, 0), None)
    assert not told.knows(1, record(8, 40, 0), None)
    assert not told.knows(33, record(7, 40, 0), None)  # another warp
    assert told.knows(1, record(9, 2, 0), 2)
    assert not told.knows(1, record(9, 3, 0), 2)  # a column that came later
    assert not told.knows(1, record(9, 2, 0), 3)


def test_sites_of_long_programs_share_the_last() -> None:
    code: Any = [SimpleNamespace(ins=SimpleNamespace(opcode=(w,))) for w in "abcd"]
    program: Any = SimpleNamespace(code=code)
    assert [Sites(program).of(p.ins) for p in code] == [0, 1, 2, 3]
    sites = Sites(program, 2)
    assert [sites.of(p.ins) for p in code] == [0, 1, 2, 2]
    assert sites.words() == ("a",)
    seen: list[int] = []
    step = sites.during(code[1].ins, lambda sel, mask: seen.append(sites.current))
    step(slice(None), None)
    assert (seen, sites.words()) == ([1], ("b",))


def test_ldmatrix_is_a_read() -> None:
    """Warp 1 stores, without a barrier, what warp 0 has read; or the other way round."""
    ptx = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
    .reg .b32 %r<9>; .reg .pred %p<4>; .shared .align 16 .b8 s[512];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 3; mov.u32 %r3, s; add.u32 %r2, %r3, %r2;
    st.shared.v2.u32 [%r2], {%r1, %r1}; bar.sync 0;
    setp.lt.u32 %p1, %r1, 32; @!%p1 bra B;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r3]; ret;
B:
    add.u32 %r2, %r2, -256; st.shared.u32 [%r2], 9; ret;
}
"""
    (finding,) = run(ptx, block=(64,), arguments=[], check=True).findings
    assert "nothing orders this after the read of the same bytes: ldmatrix" in finding.message
