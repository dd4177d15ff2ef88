"""The multi-stage GEMM of the benchmark: right as it is, and every planted fault is seen."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import EmulationError, run

from .subjects import BENCHMARK, SIZE


def mismatches(text: str, schedule: int | None = None) -> int:
    """How many elements differ from the exact product of small integers."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-3, 4, (SIZE, 2 * SIZE)).astype(np.float16) for _ in range(2))
    c = np.zeros((SIZE, SIZE), np.float32)
    run(
        text,
        block=(128,),
        arguments=[a, b, c, SIZE, 2 * SIZE],
        shared=2 * BENCHMARK.STAGES * BENCHMARK.STAGE_BYTES,
        schedule=schedule,
    )
    return int((c != a.astype(np.float64) @ b.astype(np.float64).T).sum())


@pytest.mark.parametrize("schedule", [None, 7])
def test_gemm(schedule: int | None) -> None:
    assert mismatches(BENCHMARK.gemm_ptx(), schedule) == 0


@pytest.mark.parametrize("wait", ["cp.async.wait_group 2;", "nanosleep.u32 1;"])
def test_too_little_waiting(wait: str) -> None:
    text = BENCHMARK.gemm_ptx().replace("cp.async.wait_group 1;", wait)
    with pytest.raises(EmulationError, match=r"ldmatrix.*pending"):
        mismatches(text)


def test_missing_barrier_shows_under_another_schedule() -> None:
    text = BENCHMARK.gemm_ptx().replace("bar.sync 0;", "")

    def wrong(seed: int) -> bool:
        try:
            return mismatches(text, seed) > 0
        except EmulationError:
            return True

    assert any(wrong(seed) for seed in range(3))


def test_swapped_registers_give_wrong_numbers() -> None:
    text = BENCHMARK.gemm_ptx().replace(
        "{%a0_0, %a0_1, %a0_2, %a0_3}, {%b0_0", "{%a0_0, %a0_2, %a0_1, %a0_3}, {%b0_0"
    )
    assert mismatches(text) > 0
