"""Blocks in several processes: the outcome is that of one, whatever the kernel does."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragir.emulator import Report, run
from fragir.emulator.launch import division
from fragir.emulator.machine.watch import Moment

from ..mutation import Subject
from ..patterns import PATTERNS
from ..subjects import BENCHMARK
from .conftest import Divided
from .outcomes import Array, alike, kernel, launched, turns, words

#: Each thread sums numbers that depend on its own, in turns that depend on its block.
SUMS = kernel(
    "and.b32 %r1, %block, 3; add.u32 %r1, %r1, 5; mov.u32 %r2, 0;"
    + turns("%r1", "xor.b32 %r3, %r15, %at; add.u32 %r2, %r2, %r3;")
    + "st.global.u32 [%rd0], %r2;"
)
BLOCKS, THREADS = 23, 64


def summed(blocks: int = BLOCKS, threads: int = THREADS) -> Array:
    """What SUMS gives, by numpy."""
    at = np.arange(blocks * threads, dtype=np.uint32)
    turn = np.arange(8, dtype=np.uint32)
    ends = (at // threads & 3) + 5
    parts = (turn[:, None] ^ at) * (turn[:, None] < ends)
    return parts.sum(axis=0, dtype=np.uint32)


@pytest.mark.parametrize("resident", [2, 6, 256])
@pytest.mark.parametrize("check", [False, True])
def test_blocks_that_do_not_meet(divided: Divided, resident: int, check: bool) -> None:
    call = launched(SUMS, grid=(BLOCKS,), block=(THREADS,), resident=resident, check=check)
    one = alike(call, [words(BLOCKS * THREADS)])
    assert one["arrays"] == [summed().tobytes()]
    assert (len(divided.pids), divided.again) == (1 + 2, 0)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    blocks=st.integers(2, 40),
    warps=st.integers(1, 3),
    resident=st.integers(1, 64),
    jobs=st.integers(2, 5),
    shift=st.integers(0, 200),
)
def test_any_cut(
    divided: Divided, blocks: int, warps: int, resident: int, jobs: int, shift: int
) -> None:
    """Blocks that store somewhere, perhaps where others do, the last one last."""
    text = SUMS.replace(
        "st.global.u32 [%rd0], %r2;",
        f"mul.lo.u32 %r4, %at, 5; rem.u32 %r4, %r4, {200 + shift}; mad.wide.u32 %rd0, %r4, 4, %out;"
        "ld.global.u32 %r5, [%rd0]; xor.b32 %r2, %r2, %r5; st.global.u32 [%rd0], %r2;",
    )
    call = launched(text, grid=(blocks,), block=(32 * warps,), resident=resident)
    alike(call, [words(400)], [jobs])


def test_a_gemm(divided: Divided) -> None:
    """A tile a block, cp.async in flight when it is divided; with and without checks."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (256, 64)).astype(np.float16) for _ in range(2))
    text, shared = BENCHMARK.gemm_ptx(), 2 * BENCHMARK.STAGES * BENCHMARK.STAGE_BYTES

    def call(a: Array, b: Array, c: Array, *, jobs: int, check: bool = False) -> Report:
        given = [a, b, c, 256, 64]
        return run(
            text, grid=(2, 2), block=(128,), shared=shared, arguments=given, jobs=jobs, check=check
        )

    arrays = [a, b, np.zeros((256, 256), np.float32)]
    one = alike(call, arrays, [2])
    expected = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float32)
    assert one["arrays"][2] == expected.tobytes()
    alike(partial(call, check=True), arrays, [2])
    assert (len(divided.pids), divided.again) == (2, 0)


COSTS = kernel(
    """
    shl.b32 %r1, %tid, 7; and.b32 %r1, %r1, 4095; mov.u32 %r2, memory; add.u32 %r2, %r2, %r1;
    mad.wide.u32 %rd1, %at, 128, %out;"""
    + turns("6", "st.shared.u32 [%r2], %r15; ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd1], %r3;"),
    before=".shared .align 4 .b8 memory[4096];",
)


@pytest.mark.parametrize("resident", [3, 256])
def test_remarks_are_summed(divided: Divided, resident: int) -> None:
    """32 lanes at one bank, and a sector for each word: costs of all blocks, said once."""
    call = launched(COSTS, grid=(9,), block=(32,), resident=resident, check=True)
    one = alike(call, [words(9 * 32 * 32)])
    assert [remark.kind for remark in one["remarks"]] == ["bank-conflict"] * 2 + ["uncoalesced"]
    assert "block (0, 0, 0)" in one["remarks"][0].message
    assert one["conflicts"]["passes"] == 9 * 6 * 2 * 32
    assert one["conflicts"]["sectors"] == 9 * 6 * 32
    assert divided.pids
    assert not divided.again


def test_a_barrier_and_its_wave(divided: Divided) -> None:
    """Warps that wait at a barrier while others are cut off; early and late copies."""
    text = kernel(
        """
    shl.b32 %r1, %tid, 2; mov.u32 %r2, memory; add.u32 %r2, %r2, %r1;
    xor.b32 %r3, %r1, 128; mov.u32 %r4, memory; add.u32 %r4, %r4, %r3; shr.u32 %r6, %tid, 5;
    mad.lo.u32 %r6, %r6, 7, 3;"""
        + turns("%r6", "add.u32 %r5, %r15, %at;")
        + "st.shared.u32 [%r2], %r5; bar.sync 0; ld.shared.u32 %r7, [%r4];"
        " st.global.u32 [%rd0], %r7;",
        before=".shared .align 4 .b8 memory[256];",
    )
    for check in (False, True):
        call = launched(text, grid=(6,), block=(64,), check=check)
        one = alike(call, [words(6 * 64)], [2, 4])
        at = np.arange(6 * 64, dtype=np.uint32)
        turn = 7 * (at // 32 & 1) + 2
        assert one["arrays"] == [(at + turn)[at ^ 32].tobytes()]
    assert divided.pids
    assert not divided.again


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("subject", [p[0] for p in PATTERNS], ids=[p[0].name for p in PATTERNS])
def test_kernels_as_people_write_them(divided: Divided, subject: Subject, check: bool) -> None:
    """Rings, clusters, multicast, bulk copies; those whose blocks wait for each other, too."""

    def call(*arrays: Array, jobs: int) -> Report:
        given = iter(arrays)
        arguments = [next(given) if isinstance(x, np.ndarray) else x for x in made]
        return run(
            subject.text,
            grid=subject.blocks,
            block=(subject.block,),
            cluster=(subject.cluster,),
            shared=subject.shared,
            arguments=arguments,
            check=check,
            jobs=jobs,
        )

    made = subject.arguments()
    alike(call, [x for x in made if isinstance(x, np.ndarray)], [2])


# -- blocks that meet ------------------------------------------------------------------------------

WAIT = turns("20", "add.u32 %r9, %r15, 1;", "W")


def test_a_race_is_found(divided: Divided) -> None:
    """Block 7 reads what block 0 writes: the message names both, as with one job."""
    text = kernel(
        f"""{WAIT}
    setp.eq.u32 %p0, %block, 0; @%p0 st.global.u32 [%out], 5;
    setp.eq.u32 %p1, %block, 7; @%p1 ld.global.u32 %r4, [%out];"""
    )
    call = launched(text, grid=(8,), block=(32,), check=True)
    one = alike(call, [words(1)])
    assert [finding.kind for finding in one["findings"]] == ["race"]
    assert divided.again == 2


def test_what_another_block_wrote_is_seen(divided: Divided) -> None:
    """Without checks: block 0 writes in its first wave, the others read in later ones."""
    text = kernel(
        f"""{WAIT}
    ld.global.u32 %r4, [%out]; add.u32 %r4, %r4, 1; add.u32 %r5, %at, 1;
    mad.wide.u32 %rd1, %r5, 4, %out; st.global.u32 [%rd1], %r4;
    setp.eq.u32 %p0, %at, 0; @%p0 st.global.u32 [%out], 41;"""
    )
    call = launched(text, grid=(8,), block=(32,), resident=1)
    one = alike(call, [words(8 * 32 + 1)])
    seen = np.frombuffer(one["arrays"][0], np.uint32)[1:]
    assert seen.tolist() == [1] * 32 + [42] * 7 * 32
    assert divided.again == 2


def test_the_last_block_wins(divided: Divided) -> None:
    call = launched(kernel(WAIT + "st.global.u32 [%out], %block;"), grid=(8,), block=(32,))
    assert alike(call, [words(1)])["arrays"] == [np.array([7], np.uint32).tobytes()]
    assert divided.again == 2


def test_a_launch_whose_blocks_use_atomics_is_not_divided(divided: Divided) -> None:
    call = launched(kernel(WAIT + "red.global.add.u32 [%out], 1;"), grid=(8,), block=(32,))
    assert alike(call, [words(1)])["arrays"] == [np.array([256], np.uint32).tobytes()]
    assert not divided.pids


@pytest.mark.parametrize(
    ("statement", "options"),
    [
        ("ld.volatile.global.u32 %r4, [%rd0];", {}),
        ("st.release.gpu.u32 [%rd0], 1;", {}),
        ("mov.u32 %r4, %clock;", {}),
        ("", {"schedule": 3}),
        ("", {"asynchrony": "random"}),
        ("", {"fragments": True}),
        ("", {"limit": (None, 100.0)}),
    ],
)
def test_what_is_one_for_all_blocks(
    divided: Divided, statement: str, options: dict[str, Any]
) -> None:
    call = launched(kernel(WAIT + statement), grid=(8,), block=(32,), **options)
    alike(call, [words(8 * 32)], [2])
    assert not divided.pids


def test_shared_atomics_may_be_divided(divided: Divided) -> None:
    text = kernel(
        WAIT + "mov.u32 %r4, memory; red.shared.add.u32 [%r4], 1; bar.sync 0;"
        "ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd0], %r5;",
        before=".shared .align 4 .b8 memory[4];",
    )
    one = alike(launched(text, grid=(8,), block=(64,)), [words(8 * 64)])
    assert one["arrays"] == [np.full(8 * 64, 64, np.uint32).tobytes()]
    assert divided.pids
    assert not divided.again


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [0, 5, 15])
def test_a_fault(divided: Divided, block: int) -> None:
    """The blocks before it have written, as far as they came; the message names its lane."""
    text = kernel(
        f"""{WAIT}
    st.global.u32 [%rd0], %at;
    setp.eq.u32 %p0, %block, {block}; @%p0 st.global.u32 [%rd0+40000], 1;"""
    )
    call = launched(text, grid=(16,), block=(32,), resident=4)
    one = alike(call, [words(16 * 32)])
    assert f"block ({block}, 0, 0) warp 0 lane 0" in one["error"]
    assert divided.again == 2


def test_an_instruction_limit(divided: Divided) -> None:
    """It stops where it does with one job, and is no hindrance where it is not reached."""
    call = launched(SUMS, grid=(8,), block=(32,), limit=10_000)
    assert "error" not in alike(call, [words(256)])
    assert (len(divided.pids), divided.again) == (3, 0)
    call = launched(SUMS, grid=(8,), block=(32,), limit=300)
    assert "limit of 300 warp instructions" in alike(call, [words(256)])["error"]


@pytest.mark.parametrize("check", [False, True])
def test_a_process_that_dies(
    divided: Divided, monkeypatch: pytest.MonkeyPatch, check: bool
) -> None:
    def dies(self: division.Division) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(division.Division, "_answer", dies)
    call = launched(SUMS, grid=(BLOCKS,), block=(THREADS,), check=check)
    assert alike(call, [words(BLOCKS * THREADS)])["arrays"] == [summed().tobytes()]
    assert (len(divided.pids), divided.again) == (3, 2)


def test_no_process_can_be_forked(divided: Divided, monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise OSError("no more processes")

    monkeypatch.setattr(os, "fork", fork)
    alike(launched(SUMS, grid=(BLOCKS,), block=(THREADS,)), [words(BLOCKS * THREADS)])
    assert not divided.pids


def test_an_interrupt_leaves_nothing_behind(divided: Divided) -> None:
    """Neither a process nor anything in the caller's arrays."""
    out = words(BLOCKS * THREADS)

    def interrupt(share: float) -> None:
        if divided.pids:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            SUMS,
            grid=(BLOCKS,),
            block=(THREADS,),
            arguments=[out],
            resident=4,
            jobs=3,
            progress=interrupt,
        )
    assert len(divided.pids) == 2
    for pid in divided.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not out.any()


def test_progress(divided: Divided, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares grow up to 1, moments tell of the instructions of all processes."""
    monkeypatch.setattr(division, "BEAT", 0.0)
    monkeypatch.setattr(division, "_TICK", 0.001)
    answer, tell = (getattr(division.Division, name) for name in ("_answer", "_tell"))

    def slowly(self: division.Division) -> None:
        tell(self)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        signal.sigwait([signal.SIGALRM])
        answer(self)

    monkeypatch.setattr(division.Division, "_answer", slowly)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    shares: list[float] = []
    moments: list[Moment] = []
    try:
        report = run(
            SUMS,
            grid=(BLOCKS,),
            block=(THREADS,),
            arguments=[words(BLOCKS * THREADS)],
            resident=4,
            jobs=2,
            progress=shares.append,
            heartbeat=moments.append,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert moments[-1].instructions == report.statistics.total
