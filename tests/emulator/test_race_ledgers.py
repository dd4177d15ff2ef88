"""What the check for races remembers of large and many buffers, and that it says where it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import Report, run
from fragir.emulator.checks.races import global_places, ledger
from fragir.emulator.checks.races.clocks import record
from fragir.emulator.checks.races.ledger import READ, SMALL, WRITE, Ledger, LedgerRoom
from fragir.emulator.machine.transfers import Region

from .faults import Fault, faults

PAGE = 1 << ledger.PAGE_SHIFT
ONE = np.array([1], np.int32)


def numbers(*values: int) -> Any:
    return np.array(values, np.int64)


# -- one ledger ----------------------------------------------------------------------------------


def test_pages_are_made_where_somebody_comes() -> None:
    book = Ledger(4096, 1 << 40)
    ends = numbers(4096 + PAGE - 16, 4096 + PAGE, 4096 + (1 << 40) - 16)
    rows, kept = book.rows(ends, 16)
    assert kept is None
    assert book.position(rows[:, 0]).tolist() == ends.tolist()
    assert len({*rows[:, 0].tolist()}) == 3
    assert book.rows_taken == 3 * PAGE // 16  # three pages of 2^24
    mine = numbers(*(record(7, lane, 0) for lane in range(3)))
    book.note_write(rows, mine, np.ones(3, np.int32))
    assert [
        a.tolist() if isinstance(a, np.ndarray) else a for a in book.accessed_places(WRITE)
    ] == [
        ends.tolist(),
        16,
    ]
    fine = book.rows(ends + 12, 4)[0]  # places become smaller, and keep what they had
    assert book.position(fine[:, 0]).tolist() == (ends + 12).tolist()
    assert book.records[WRITE][fine][:, 0].tolist() == mine.tolist()
    assert len(book.accessed_places(WRITE)[0]) == 12


def test_a_buffer_of_places_becomes_one_of_pages() -> None:
    size = 16 * (SMALL - 1)
    book = Ledger(0, size)
    assert book.table is None
    at = numbers(0, PAGE, size - 16)
    mine = numbers(record(1, 5, 0), record(2, 6, 0), record(3, 7, 0))
    book.note_read(book.places(at, 16), mine, np.array([1, 2, 3], np.int32))
    fine = book.places(at + 8, 8)
    assert book.table is not None
    assert book.records[READ][fine][:, 0].tolist() == mine.tolist()
    assert book.owners[READ][fine][:, 0].tolist() == [1, 2, 3]
    assert book.rows_taken == 3 * PAGE // 8


def test_what_has_no_room_is_left_out_and_told() -> None:
    told: list[int] = []
    book = Ledger(0, 1 << 30, LedgerRoom(2 * PAGE // 16), lambda: told.append(1))
    rows, kept = book.rows(numbers(0, 5 * PAGE, 9 * PAGE, 16), 16)
    assert kept is not None
    assert kept.tolist() == [True, True, False, True]
    assert book.position(rows[:, 0]).tolist() == [0, 5 * PAGE, 16]
    assert book.rows(numbers(9 * PAGE), 16)[0].shape == (0, 1)
    assert told == [1]
    book.note_write(rows, numbers(9, 9, 9), np.ones(3, np.int32))
    assert len(book.rows(numbers(0), 4)[0]) == 0  # finer places would take four times as much
    assert book.accessed_places(WRITE)[0].tolist() == []
    assert book.room.left == 2 * PAGE // 16


def test_a_ledger_says_which_copies_it_forgets() -> None:
    told: list[int] = []
    book = Ledger(0, 64, forgets=told.append)
    for _ in range(ledger.LATEST + 3):
        book.note_copy(Region(numbers(0), 16), record(3, 4, 0), 1)
    book.note_copied()
    assert told == [3]
    assert book.accessed_places(READ)[0].tolist() == [0]
    book.note_copied()
    assert told == [3]


@pytest.mark.parametrize("seed", range(3))
def test_pages_hold_what_places_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    plain = Ledger(256, 4 * PAGE)
    monkeypatch.setattr(ledger, "SMALL", 0)
    paged = Ledger(256, 4 * PAGE)
    for _ in range(60):
        size = int(rng.choice([16, 16, 8, 4]))
        at = 256 + rng.integers(0, 4 * PAGE // size, 32) * size
        mine, owner = rng.integers(1, 1 << 40, 32), rng.integers(1, 3, 32).astype(np.int32)
        for book in (plain, paged):
            book.note_write(book.places(at, size), mine, owner)
            book.note_read(book.places(at[::-1], size), mine, owner)
    for kind in range(3):
        (one, step), (other, other_step) = plain.accessed_places(kind), paged.accessed_places(kind)
        assert step == other_step
        assert sorted(other.tolist()) == one.tolist()
        there = paged.places(one, step)[:, 0]
        here = plain.places(one, step)[:, 0]
        assert (plain.records[kind][here] == paged.records[kind][there]).all()
        assert (plain.owners[kind][here] == paged.owners[kind][there]).all()


# -- whole launches ------------------------------------------------------------------------------

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 other, .param .u64 first, .param .u64 second)
{
    .reg .b32 %r<4>; .reg .b64 %d<8>; .reg .b16 %h<2>; .reg .pred %p;
    ld.param.u64 %d1, [data]; ld.param.u64 %d2, [other];
    ld.param.u64 %d3, [first]; ld.param.u64 %d4, [second];
    mov.u32 %r1, %ctaid.x; setp.eq.u32 %p, %r1, 0; selp.b64 %d3, %d3, %d4, %p;
    mov.u32 %r2, %tid.x; cvt.u64.u32 %d5, %r2; add.u64 %d3, %d3, %d5;
    add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3; add.u32 %r1, %r1, 1; cvt.u16.u32 %h1, %r1;
    st.global.u8 [%d1], %h1;
    st.global.u8 [%d2], %h1;
    ret;
}
"""
FAR = 1 << 23  # as many bytes were all that was followed once


def launch(first: int, second: int, size: int = FAR + 2 * PAGE) -> Report:
    data, other = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    return run(KERNEL, grid=(2,), arguments=[data, other, first, second], check=True, resident=1)


def found(report: Report) -> list[tuple[str, int | None]]:
    return [(f.message.split(": ")[0].split(" of argument")[0], f.line) for f in report.findings]


def line(text: str) -> int:
    return KERNEL[: KERNEL.index(text)].count("\n") + 1


@pytest.mark.parametrize("at", [FAR + PAGE + 40, FAR + PAGE - 1, 7])
def test_blocks_meet_far_out(at: int) -> None:
    report = launch(at, at)
    assert found(report) == [
        (f"st.global.u8 at byte {at}", line("st.global.u8 [%d1]")),
        (f"st.global.u8 at byte {at}", line("st.global.u8 [%d2]")),
    ]
    assert report.notes == []
    assert launch(at, at + 32).findings == []  # side by side, across a page's end


def test_in_the_middle_of_a_page_boundary() -> None:
    at = FAR + PAGE - 16
    report = launch(at, at + 31)  # one byte is common, in the next page
    assert found(report)[0] == (f"st.global.u8 at byte {at + 31}", line("st.global.u8 [%d1]"))


def test_what_is_not_followed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_places, "LedgerRoom", lambda: LedgerRoom(PAGE))
    report = launch(FAR, FAR)
    assert [f.line for f in report.findings] == [line("st.global.u8 [%d1]")]
    (note,) = report.notes
    assert note.startswith("races: not all of argument 1 (other) is followed")


def test_many_buffers() -> None:
    count = 40
    parameters = ", ".join(f".param .u64 p{i}" for i in range(count))
    stores = "\n".join(
        f"ld.param.u64 %d, [p{i}]; add.u64 %d, %d, %o; st.global.u32 [%d], %r;"
        for i in range(count)
    )
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k({parameters})
{{
    .reg .b32 %r, %t; .reg .b64 %d, %o;
    mov.u32 %r, %ctaid.x; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4;
{stores}
    ret;
}}
"""
    arrays: list[npt.NDArray[np.uint32]] = [np.zeros(32, np.uint32) for _ in range(count)]
    arrays[-1] = np.ones(32, np.uint32)  # both write to all of them: one race for each store
    report = run(text, grid=(2,), arguments=arrays, check=True)
    assert len(report.findings) == count
    assert {f.kind for f in report.findings} == {"race"}
    assert f"(p{count - 1})" in report.findings[-1].message


RACES = [f for f in faults() if f.kind in ("race", "proxy-fence")]


@pytest.mark.parametrize("fault", RACES, ids=lambda f: f.name)
def test_pages_find_what_places_find(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = fault.findings(mended=False)
    monkeypatch.setattr(ledger, "SMALL", 0)
    assert fault.findings(mended=False) == plain
    assert fault.findings(mended=True) == []
