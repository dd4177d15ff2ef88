"""Recursion, tables, printf, the heap and assertions, as nvcc compiles them (`functions.cu`)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fragir.emulator import EmulationError, run

SOURCE = Path(__file__).with_name("functions.cu")
THREADS = 64


@pytest.fixture(scope="module", params=["kept", "-lineinfo", "-G"])
def ptx(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "kept":
        return SOURCE.with_suffix(".sm_90.ptx").read_text(encoding="utf-8")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    out = tmp_path_factory.mktemp("ptx") / "functions.ptx"
    command = [nvcc, "-arch=sm_90", request.param, "-ptx", str(SOURCE), "-o", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return out.read_text(encoding="utf-8")


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


@pytest.mark.parametrize("check", [False, True])
def test_results_and_what_is_printed(ptx: str, check: bool) -> None:
    out = np.zeros(THREADS, np.int32)
    report = run(ptx, "functions", block=(THREADS,), arguments=[out, 1.25], check=check)
    wanted = [
        fibonacci(t % 10)
        + 1000 * ackermann(2, t % 4)
        + 100000 * (t * t if t & 1 else t + 1)
        + 10000000 * sum(range(t % 5 + 1))
        for t in range(THREADS)
    ]
    assert out.tolist() == wanted
    assert report.findings == []
    assert sorted(report.printed) == [
        f"t={t} f=1.250 {word} {'abc'[t]} 4000000000 -1234567890123 99.50%\n"
        for t, word in enumerate(("other", "one", "other"))
    ]


def test_another_order_prints_the_same(ptx: str) -> None:
    out = np.zeros(THREADS, np.int32)
    report = run(ptx, "functions", block=(THREADS,), arguments=[out, 2.0], schedule=5)
    assert len(report.printed) == 3


def test_assertions(ptx: str) -> None:
    values = np.zeros(THREADS, np.int32)
    values[41] = 7
    words = r'assertion failed: out\[threadIdx.x\] == 0 && "zero", .*functions.cu:\d+, in'
    with pytest.raises(EmulationError, match=words) as error:
        run(ptx, "failing", block=(THREADS,), arguments=[values])
    assert (error.value.warp, error.value.lane) == (1, 9)
