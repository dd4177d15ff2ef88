"""Bank conflicts and uncoalesced accesses: who collides, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragir.emulator import Report, run
from fragir.emulator.checks.conflicts import passes, passes_of, sectors, sectors_of
from fragir.emulator.report import PERFORMANCE

from .faults import Fault, faults

#: Loaded machines make examples slowly.
UNDER_LOAD = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
FAULTS = [f for f in faults() if f.kind in PERFORMANCE]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_the_fault_is_reported(fault: Fault) -> None:
    assert [(f.kind, f.line) for f in fault.findings(mended=False)] == [(fault.kind, fault.line)]
    assert fault.findings(mended=True) == []


def test_the_lanes_that_collide_are_named() -> None:
    lanes = ", ".join(map(str, range(32)))
    (found,) = next(f for f in FAULTS if f.name == "bank-conflict").findings(mended=False)
    assert f"32-way bank conflict between lanes {lanes} " in found.message
    (found,) = next(f for f in FAULTS if f.name == "bank-conflict-matrix").findings(mended=False)
    assert "4-way bank conflict between lanes 0, 2, 4, 6 " in found.message


@pytest.mark.parametrize(
    ("stride", "size", "paid", "needed"),
    [
        (4, 4, 1, 1),
        (0, 4, 1, 1),  # one word for all
        (8, 4, 2, 1),
        (132, 4, 1, 1),
        (128, 4, 32, 1),
        (2, 2, 1, 1),  # two lanes share a word
        (8, 8, 2, 2),
        (16, 16, 4, 4),
        (32, 16, 8, 4),
        (144, 16, 4, 4),
    ],
)
def test_passes(stride: int, size: int, paid: int, needed: int) -> None:
    assert passes(np.arange(32, dtype=np.int64) * stride, size)[:2] == (paid, needed)


def test_absent_lanes_do_not_collide() -> None:
    pattern = np.arange(32, dtype=np.int64) * 64
    pattern[1::2] = -1
    assert passes(pattern, 4)[:2] == (16, 1)
    pattern[2:] = -1
    assert passes(pattern, 4)[:2] == (1, 1)


@UNDER_LOAD
@given(st.lists(st.integers(0, 255), min_size=32, max_size=32), st.sampled_from([4, 8, 16]))
def test_passes_agree_with_counting(words: list[int], size: int) -> None:
    starts = [w * size for w in words]
    group = min(32, 128 // size)
    expected = 0
    for first in range(0, 32, group):
        banks: dict[int, set[int]] = {}
        for start in starts[first : first + group]:
            for byte in range(start, start + size, 4):
                banks.setdefault(byte // 4 % 32, set()).add(byte // 4)
        expected += max(len(b) for b in banks.values())
    assert passes(np.array(starts, np.int64), size)[0] == expected


@pytest.mark.parametrize(
    ("stride", "size", "touched", "needed"),
    [(4, 4, 4, 4), (0, 4, 1, 1), (32, 4, 32, 4), (16, 16, 16, 16), (36, 4, 32, 4)],
)
def test_sectors(stride: int, size: int, touched: int, needed: int) -> None:
    assert sectors(np.arange(32, dtype=np.int64) * stride, size)[:2] == (touched, needed)


@UNDER_LOAD
@given(
    st.lists(st.lists(st.integers(-1, 300), min_size=32, max_size=32), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_many_warps_at_once(rows: list[list[int]], size: int) -> None:
    """The prices of many warps are those of each."""
    patterns = np.array(rows, np.int64)
    patterns = np.where(patterns < 0, -1, patterns * size)
    patterns[:, 0] = np.maximum(patterns[:, 0], 0)
    for many, one in ((passes_of, passes), (sectors_of, sectors)):
        paid, needed = many(patterns, size)
        assert [one(p, size)[:2] for p in patterns] == list(zip(paid, needed, strict=True))


# -- whole launches against counting ---------------------------------------------------------------

ROUNDS, WARPS = 3, 3


def launch(space: str, size: int, offsets: npt.NDArray[np.int32]) -> Report:
    """Every lane reads `size` bytes at its offset in each round; below 0 it does not take part.

    `offsets`: [round, thread]. They are read from global memory themselves, one word a lane.
    """
    count = max(1, size // 4)
    kind = f"{f'v{count}.' if count > 1 else ''}b{min(8 * size, 32)}"
    registers = ", ".join(f"%x{i}" for i in range(count))
    target = f"{{{registers}}}" if count > 1 else registers
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 offsets, .param .u64 data)
{{
    .shared .align 128 .b8 buffer[16384];
    .reg .b32 %r<8>, %x<8>; .reg .b64 %rd<8>; .reg .pred %p, %q;
    mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r6, buffer;
    ld.param.u64 %rd1, [offsets]; ld.param.u64 %rd2, [data]; mad.wide.u32 %rd1, %r1, 4, %rd1;
LOOP:
    ld.global.b32 %r3, [%rd1]; add.u64 %rd1, %rd1, {4 * 32 * WARPS};
    setp.ge.s32 %p, %r3, 0; cvt.s64.s32 %rd3, %r3; add.s64 %rd4, %rd2, %rd3; add.s32 %r4, %r6, %r3;
    @%p ld.{space}.{kind} {target}, [{"%rd4" if space == "global" else "%r4"}];
    add.u32 %r2, %r2, 1; setp.lt.u32 %q, %r2, {ROUNDS}; @%q bra LOOP;
    ret;
}}
"""
    data = np.zeros(4096, np.uint32)
    return run(text, block=(32 * WARPS,), arguments=[offsets, data], check=True)


def counted(space: str, size: int, offsets: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    """(paid, needed) of each warp in each round, counted byte by byte."""
    found: list[tuple[int, int]] = []
    for row in offsets.reshape(-1, 32).tolist():
        lanes = [(lane, at) for lane, at in enumerate(row) if at >= 0]
        if not lanes:
            continue
        if space == "global":
            touched = {byte for _, at in lanes for byte in range(at, at + size)}
            found.append((len({b // 32 for b in touched}), -(-len(touched) // 32)))
            continue
        group = 32 // max(1, size // 4)
        paid = needed = 0
        for first in range(0, 32, group):
            words = {
                byte // 4
                for lane, at in lanes
                if first <= lane < first + group
                for byte in range(at, at + size)
            }
            paid += max((sum(w % 32 == bank for w in words) for bank in range(32)), default=0)
            needed += bool(words)
        found.append((paid, needed))
    return found


def drawn(rng: np.random.Generator, size: int) -> npt.NDArray[np.int32]:
    """Offsets of all lanes: strides, permutations, anything; some lanes absent, some warps too."""
    lanes = np.arange(32)
    rows: list[npt.NDArray[np.int64]] = []
    for _ in range(ROUNDS * WARPS):
        way = rng.integers(5)
        row = lanes * (1 if way == 0 else rng.integers(0, 8)) + rng.integers(0, 9)
        if way == 2:
            row = rng.permutation(row)
        if way == 3:
            row = rng.integers(0, 256, 32)
        if rng.random() < 0.4:
            row = np.where(rng.random(32) < rng.random(), -1, row)
        rows.append(row)
    if rng.random() < 0.3:  # one pattern for all
        rows = [rows[0]] * len(rows)
    return (np.array(rows) * size).clip(-1).astype(np.int32).reshape(ROUNDS, -1)


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_launches_cost_what_counting_says(space: str, size: int) -> None:
    rng = np.random.default_rng([size, len(space)])
    for _ in range(12):
        offsets = drawn(rng, size)
        prices = counted(space, size, offsets)
        word = "sectors" if space == "global" else "passes"
        paid, needed = (sum(p) for p in zip(*prices, strict=True)) if prices else (0, 0)
        own = 4 * ROUNDS * WARPS if space == "global" else 0  # the offsets themselves
        report = launch(space, size, offsets)
        totals = report.statistics.conflicts
        assert (totals[word], totals[f"{word}_needed"]) == (paid + own, needed + own)
        worst = max((p - n for p, n in prices), default=0)
        if space == "shared":
            wrong = paid > needed
        else:  # twice what is needed, and more than what an unaligned start costs
            wrong = paid >= 2 * needed and worst >= 2
        assert [f.kind for f in report.remarks] == (
            [("uncoalesced" if space == "global" else "bank-conflict")] if wrong else []
        )
        if not wrong:
            continue
        (remark,) = report.remarks
        rows = [(row, number % WARPS) for number, row in enumerate(offsets.reshape(-1, 32))]
        dear = [
            (number, int(np.flatnonzero(row >= 0)[0]))
            for (row, number), (p, n) in zip(
                [r for r in rows if (r[0] >= 0).any()], prices, strict=True
            )
            if p - n == worst
        ]
        assert (remark.warp, remark.lane) in dear


#: Half of a warp in two sectors, the other half spread over four: six where four would do.
SPREAD = [*range(0, 64, 4), *range(64, 192, 8)]


@pytest.mark.parametrize(
    ("size", "offsets", "touched", "needed", "reported"),
    [
        (4, range(0, 128, 4), 4, 4, False),
        (4, range(28, 156, 4), 5, 4, False),  # unaligned
        (4, range(0, 256, 8), 8, 4, True),
        (4, SPREAD, 6, 4, False),
        (4, [*SPREAD[:-1], 1024], 7, 4, False),
        (4, [*SPREAD[:-2], 1024, 2048], 8, 4, True),
        (1, range(32), 1, 1, False),
        (1, range(16, 48), 2, 1, False),  # twice, but by its start alone
        (1, range(0, 96, 3), 3, 1, True),
        (16, range(16, 528, 16), 17, 16, False),
    ],
)
def test_the_limit_of_uncoalesced_accesses(
    size: int, offsets: Sequence[int], touched: int, needed: int, reported: bool
) -> None:
    """Reported from twice the sectors that the bytes would fill, and two more than those."""
    row = np.tile(np.array(offsets, np.int32), (ROUNDS, WARPS))
    assert set(counted("global", size, row)) == {(touched, needed)}
    kinds = [f.kind for f in launch("global", size, row).remarks]
    assert kinds == (["uncoalesced"] if reported else [])


@pytest.mark.parametrize("resident", [1, 2, 256])
def test_the_verdict_is_of_the_whole_launch(resident: int) -> None:
    """Each block doubles the distance between its lanes' words: the last one's is the dearest."""
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<4>;
    .shared .b32 words[1024];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    add.u32 %r1, %r1, 2;
    shl.b32 %r0, %r0, %r1;
    mov.u32 %r2, words;
    add.u32 %r2, %r2, %r0;
    st.shared.u32 [%r2], %r1;
    ret;
}
"""
    report = run(text, grid=(6,), resident=resident, check=True)
    lanes = ", ".join(map(str, range(32)))
    assert [remark.message for remark in report.remarks] == [
        f"st.shared.u32: 32-way bank conflict between lanes {lanes} (block (5, 0, 0) warp 0 lane 0)"
    ]
    assert report.statistics.conflicts == {"passes": 1 + 2 + 4 + 8 + 16 + 32, "passes_needed": 6}
