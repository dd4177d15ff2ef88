"""Threads inside a step: parts in their order, all of them ended, products to the bit."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from fragir.emulator.native.threads import pieces, side_by_side
from fragir.emulator.tensor_cores import Mma, Wgmma, tensor_instruction, wgmma
from fragir.emulator.tensor_cores import mma as mma_module


@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
def test_results_in_the_order_of_parts(jobs: int) -> None:
    parts = [lambda n=n: n * n for n in range(5)]
    assert side_by_side(jobs, parts) == [0, 1, 4, 9, 16]
    assert side_by_side(jobs, []) == []


def test_the_first_part_is_the_callers() -> None:
    seen = side_by_side(2, [threading.get_ident, lambda: (time.sleep(0.01), 1)[1]])
    assert seen[0] == threading.get_ident()


def test_parts_run_at_the_same_time() -> None:
    """Each waits for the other."""
    barrier = threading.Barrier(2, timeout=10)
    assert sorted(side_by_side(2, [barrier.wait, barrier.wait])) == [0, 1]


def test_all_parts_have_ended_when_one_fails() -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        time.sleep(0.05)
        ended.set()

    def fails() -> None:
        assert begun.wait(10)
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        side_by_side(2, [fails, slow])
    assert ended.is_set()


def test_other_threads_warn_of_nothing() -> None:
    barrier = threading.Barrier(2, timeout=10)

    def divide() -> float:
        barrier.wait()
        return float((np.ones(1) / np.zeros(1))[0])

    with np.errstate(all="ignore"):
        assert side_by_side(2, [divide, divide]) == [np.inf, np.inf]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    barrier = threading.Barrier(2, timeout=10)
    side_by_side(2, [barrier.wait, barrier.wait])
    pid = os.fork()
    if not pid:
        again = threading.Barrier(2, timeout=10)
        os._exit(len(side_by_side(2, [again.wait, again.wait])))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2


@pytest.mark.parametrize(
    ("count", "jobs", "least", "expected"),
    [
        (10, 2, 1, [(0, 5), (5, 10)]),
        (10, 3, 1, [(0, 3), (3, 6), (6, 10)]),
        (10, 3, 4, [(0, 5), (5, 10)]),
        (3, 2, 2, [(0, 3)]),
        (0, 2, 1, [(0, 0)]),
    ],
)
def test_pieces(count: int, jobs: int, least: int, expected: list[tuple[int, int]]) -> None:
    assert [(p.start, p.stop) for p in pieces(count, jobs, least)] == expected


MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = (
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
    ".f32.e4m3.e4m3.f32.ue8m0"
)


@pytest.mark.parametrize(
    ("mnemonic", "target"), [(MMA, "sm_80"), (SPARSE, "sm_80"), (SCALED, "sm_120a")]
)
def test_mma(monkeypatch: pytest.MonkeyPatch, mnemonic: str, target: str) -> None:
    """Shares of the instances, with metadata and scales, give what all at once give."""
    monkeypatch.setattr(mma_module, "SHARED", 2)
    op = tensor_instruction(tuple(mnemonic.split(".")), target)
    assert isinstance(op, Mma)
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.integers(0, 1 << 32, (n.count, 9, 32), dtype=np.uint32) for n in (op.a, op.b, op.c)
    )
    options: dict[str, np.ndarray] = {}
    if op.e is not None:
        options["e"] = np.full((1, 9, 32), 0x44444444, np.uint32)
    if op.scales:
        options |= {
            k: rng.integers(0, 1 << 32, (1, 9, 32), dtype=np.uint32) for k in ("sfa", "sfb")
        }
    one = op.execute(a, b, c, **options)  # pyright: ignore[reportArgumentType]
    for jobs in (2, 3):
        several = op.execute(a, b, c, **options, jobs=jobs)  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize(("n", "groups"), [(8, 9), (64, 3)])
def test_wgmma(monkeypatch: pytest.MonkeyPatch, n: int, groups: int) -> None:
    monkeypatch.setattr(wgmma, "_SHARED", 1)
    monkeypatch.setattr(wgmma, "_CHUNK", 16 * n * 64)
    words = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16".split(".")
    op = tensor_instruction(tuple(words), "sm_90a")
    assert isinstance(op, Wgmma)
    rng = np.random.default_rng(0)
    d = rng.integers(0, 1 << 32, (op.d.count, groups, 4, 32), dtype=np.uint32)
    a = rng.integers(0, 1 << 32, (4, groups, 4, 32), dtype=np.uint32)
    b = np.full(groups, 1 << 46 | 1 << 16 | 64 << 32, np.uint64)
    memory = rng.integers(0, 256, (groups, 1 << 14, 16), dtype=np.uint8)

    def read(addresses: np.ndarray) -> np.ndarray:
        return np.stack([memory[g, each >> 4] for g, each in enumerate(addresses)])

    one = op.execute(d, a, b, read)
    for jobs in (2, 3):
        np.testing.assert_array_equal(one, op.execute(d, a, b, read, jobs=jobs))
