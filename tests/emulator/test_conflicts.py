"""Bank conflicts and uncoalesced accesses: who collides, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragir.emulator.conflicts import passes, passes_of, sectors, sectors_of
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
