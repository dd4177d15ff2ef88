"""How many jobs a launch has: its option, the environment, the command line."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.cli.main import main
from fragir.emulator import EmulationError, run
from fragir.emulator.launch import division as jobs_module
from fragir.emulator.launch.division import jobs_of
from fragir.errors import FragirError

from .conftest import Divided
from .outcomes import Array, alike, kernel, words
from .test_division import BLOCKS, SUMS, THREADS, summed

EXAMPLES = Path(__file__).parents[3] / "examples"
EMPTY = kernel("")


def test_what_is_asked_for_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FRAGIR_JOBS", "3")
    assert (jobs_of(None), jobs_of(5), jobs_of(1)) == (3, 5, 1)
    monkeypatch.setenv("FRAGIR_JOBS", "")

    def affinity(pid: int) -> set[int]:
        return {0, 2, 5}

    monkeypatch.setattr(os, "sched_getaffinity", affinity, raising=False)
    monkeypatch.setattr(jobs_module, "QUOTA", tmp_path / "cpu.max")
    assert jobs_of(None) == 3
    for quota, cores in (("max", 3), ("400000", 3), ("150000", 2), ("100000", 1), ("1000", 1)):
        (tmp_path / "cpu.max").write_text(f"{quota} 100000\n")
        assert jobs_of(None) == cores
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.delenv("FRAGIR_JOBS")
    assert jobs_of(None) == 1


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2", True])
def test_what_is_no_number_of_jobs(jobs: Any) -> None:
    with pytest.raises(FragirError, match="jobs is"):
        run(EMPTY, arguments=[None], jobs=jobs)


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5"])
def test_what_the_environment_must_not_say(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(jobs_module.VARIABLE, text)
    with pytest.raises(EmulationError, match=f"FRAGIR_JOBS is '{text}'"):
        run(EMPTY, arguments=[None])
    run(EMPTY, arguments=[None], jobs=1)


def test_small_launches_are_not_divided(divided: Divided, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fragir.emulator.launch.division.LEAST_WARPS", BLOCKS * THREADS // 32 + 1)
    run(SUMS, grid=(BLOCKS,), block=(THREADS,), arguments=[words(BLOCKS * THREADS)], jobs=2)
    assert not divided.pids


@pytest.mark.parametrize(("least", "forked"), [(12, 6), (30, 2), (46, 1)])
def test_each_process_has_half_of_the_least_launch_to_do(
    divided: Divided, monkeypatch: pytest.MonkeyPatch, least: int, forked: int
) -> None:
    """46 warps and as many jobs as one likes."""
    monkeypatch.setattr("fragir.emulator.launch.division.LEAST_WARPS", least)
    out = words(BLOCKS * THREADS)
    run(SUMS, grid=(BLOCKS,), block=(THREADS,), arguments=[out], jobs=100)
    assert len(divided.pids) == forked
    np.testing.assert_array_equal(out, summed())


@pytest.mark.parametrize("jobs", [[], ["--jobs", "1"], ["--jobs", "2"]])
@pytest.mark.parametrize("command", ["emulate", "check"])
def test_the_command_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    divided: Divided,
    command: str,
    jobs: list[str],
) -> None:
    monkeypatch.setenv("FRAGIR_JOBS", "3")
    (tmp_path / "k.ptx").write_text(SUMS)
    np.save(tmp_path / "out.npy", words(BLOCKS * THREADS))
    given = [str(tmp_path / "k.ptx"), "--grid", str(BLOCKS), "--block", str(THREADS)]
    given += ["--arg", f"out:{tmp_path / 'out.npy'}", "--json"]
    given += ["--seeds", "0"] if command == "check" else []
    assert main([command, *given, *jobs]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["findings"] == []
    if command == "emulate":
        np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), summed())
    runs = 2 if command == "check" else 1  # late and early
    assert len(divided.pids) == runs * (int(jobs[1]) - 1 if jobs else 2)


def test_the_run_command(capsys: pytest.CaptureFixture[str], divided: Divided) -> None:
    given = ["run", str(EXAMPLES / "rows" / "softmax.mlir"), "--on", "emulator", "--json"]
    given += ["--entry", "softmax", "--size", "m=40,n=70"]
    documents: list[dict[str, Any]] = []
    for jobs in ("1", "2"):
        assert main([*given, "--jobs", jobs]) == 0
        documents.append(json.loads(capsys.readouterr().out))
        del documents[-1]["stages"]
    assert documents[0] == documents[1]
    assert documents[0]["result"] == "PASS"
    assert (len(divided.pids), divided.again) == (1, 0)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_compiled_products(divided: Divided, target: str) -> None:
    """mma and wgmma, cp.async in flight when the wave is cut; with checks and without."""
    # alone: an entry for rows of whole 16 bytes has a grid too small to divide
    text = (EXAMPLES / "gemm.mlir").read_text()
    compiled = fragir.compile(text, target=target, alone=True)
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((200, 40), (40, 136)))
    c = np.zeros((200, 136), np.float32)

    def call(*arrays: Array, jobs: int, check: bool) -> Any:
        return compiled(*arrays, 2.0, 0.0, on="emulator", jobs=jobs, check=check)

    for check in (False, True):
        one = alike(partial(call, check=check), [a, b, c], [2])
        expected = 2 * (a.astype(np.float32) @ b.astype(np.float32))
        assert one["arrays"][2] == expected.tobytes()
    assert divided.again == 0
    assert len(divided.pids) == 2
