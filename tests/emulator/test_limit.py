"""Kernels that do not end: limits of instructions and seconds, and how far a run is."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir
from fragir import compiler
from fragir.cli.main import main
from fragir.emulator import EmulationError, run
from fragir.emulator.machine.watch import BEAT, Moment
from fragir.emulator.native.library import library

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ENDLESS = f"""{HEAD}.visible .entry k(.param .u64 out) {{
    .reg .u32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 0;
    st.global.u32 [%rd1], 7;
L:  add.u32 %r1, %r1, 1;
    bra L;
}}
"""


def stopped(text: str, **options: Any) -> EmulationError:
    with pytest.raises(EmulationError) as caught:
        run(text, **options)
    assert caught.value.kind == "limit"
    return caught.value


def test_instructions() -> None:
    """Two warps: 3 instructions each before the loop, which has 2."""
    out = np.zeros(1, np.uint32)
    error = stopped(ENDLESS, arguments=[out], block=(64,), limit=1000)
    assert "k was stopped at its limit of 1000 warp instructions" in error.message
    assert "64 lanes, first block (0, 0, 0) warp 0 lane 0, stands at line 9: add.u32" in str(error)
    assert (error.line, error.warp) == (9, 0)
    assert error.report is not None
    assert 1000 < error.report.statistics.total <= 1004


def test_seconds() -> None:
    started = time.perf_counter()
    error = stopped(ENDLESS, arguments=[np.zeros(1, np.uint32)], limit=(None, 0.3))
    assert 0.3 < time.perf_counter() - started < 3
    assert "at its limit of 0.3 seconds" in error.message


def test_a_kernel_that_ends_in_time_is_not_stopped() -> None:
    """5 instructions a warp in each of 100 blocks: the limit is reached, not passed."""
    text = f"""{HEAD}.visible .entry k() {{
    .reg .u32 %r<4>;
    mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r0, 0;
    ret;
}}
"""
    for resident in (1, 7, 256):
        assert run(text, grid=(100,), limit=500, resident=resident).statistics.total == 500
        assert "stands at" in stopped(text, grid=(100,), limit=499, resident=resident).message


def test_warps_that_wait_are_named_too() -> None:
    """Warp 1 waits at a barrier for warp 0, which never comes."""
    text = f"""{HEAD}.visible .entry k() {{
    .reg .u32 %r<4>; .reg .pred %p;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, 32;
    @%p bra W;
L:  add.u32 %r2, %r2, 1;
    bra L;
W:  bar.sync 0;
    ret;
}}
"""
    error = stopped(text, block=(64,), limit=10000)
    assert "warp 0 lane 0, stands at line 9: add.u32" in error.message
    assert "warp 1 lane 0, blocked at line 11: bar.sync" in error.message
    assert "not here: warps 0" in error.message


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("schedule", [None, 3])
def test_whatever_the_way_of_running(check: bool, schedule: int | None) -> None:
    out = np.zeros(1, np.uint32)
    stopped(ENDLESS, arguments=[out], limit=2000, check=check, schedule=schedule)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "9", (1, 2, 3), (None, 0), (1, "x"), (True,)])
def test_no_limit(limit: Any) -> None:
    with pytest.raises(EmulationError, match="is no limit"):
        run(ENDLESS, arguments=[None], limit=limit)


def test_heartbeat() -> None:
    moments: list[Moment] = []
    out = np.zeros(1, np.uint32)
    stopped(ENDLESS, arguments=[out], limit=(None, 4 * BEAT), heartbeat=moments.append)
    assert 1 <= len(moments) <= 4
    counts = [moment.instructions for moment in moments]
    assert counts == sorted(counts)
    assert counts[0] > 0
    assert {moment.line for moment in moments} == {9}


def test_kernels_of_programs() -> None:
    kernel = compiler.compile("func.func @f(%a: memref<16x16xf32>) {\n  func.return\n}\n")
    a = np.zeros((16, 16), np.float32)
    total = kernel.launch(9, None, a, on="emulator", limit=1000).statistics.total
    kernel.launch(9, None, a, on="emulator", limit=total)
    with pytest.raises(fragir.FragirError, match=f"limit of {total - 1} warp instructions"):
        kernel.launch(9, None, a, on="emulator", limit=total - 1)


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(ENDLESS)
    np.save("out.npy", np.zeros(1, np.uint32))
    return tmp_path


def test_emulate(endless: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for limit in ("1000", "1e3", "1000,60", ",0.1"):
        assert main(["emulate", "k.ptx", "--arg", "out:out.npy", "--limit", limit]) == 1
        assert "k.ptx:9:5: k was stopped at its limit of" in capfd.readouterr().err
    assert np.load("out.npy")[0] == 0
    for limit in ("0", "1000,", "1000,0", ",", "", "1.5", "-1", "1000,nan", "1000,inf", "1000,1,1"):
        assert main(["emulate", "k.ptx", "--arg", "out:out.npy", "--limit", limit]) == 2
        assert "INSTRUCTIONS[,SECONDS]" in capfd.readouterr().err


def test_check(endless: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["check", "k.ptx", "--arg", "out:out.npy", "--json", "--limit", "1000"]
    assert main(command) == 1
    document = json.loads(capfd.readouterr().out)
    assert [finding["kind"] for finding in document["findings"]] == ["limit"]
    assert document["findings"][0]["line"] == 9
    assert document["instructions"] > 1000


def test_check_of_very_many_runs(endless: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("k.ptx").write_text(f"{HEAD}.visible .entry k() {{ ret; }}\n")
    assert main(["check", "k.ptx", "--seeds", "1000000000", "--json", "--limit", ",0.2"]) == 1
    (finding,) = json.loads(capfd.readouterr().out)["findings"]
    assert finding["kind"] == "limit"
    assert "of 1000000002 runs were done in 0.2 seconds" in finding["message"]


def test_run(endless: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("k.mlir").write_text(
        "func.func @f(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>) {\n"
        "  frag.matmul %a, %b into %c : memref<64x64xf16>, memref<64x64xf16> "
        "into memref<64x64xf32>\n"
        "  func.return\n}\n"
    )
    assert main(["run", "k.mlir", "--on", "emulator", "--limit", "50"]) == 1
    assert "limit of 50 warp instructions" in capfd.readouterr().err
    assert main(["run", "k.mlir", "--on", "emulator", "--limit", "1e6,60"]) == 0


def test_interrupt_leaves_the_files_alone(endless: Path) -> None:
    """Ctrl-C: 130, one line, and out.npy is as it was."""
    import signal

    code = (  # a background job of a shell is started with the signal ignored
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from fragir.cli.main import main; print('on', flush=True); sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "emulate", "k.ptx", "--arg", "out:out.npy"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.8)
        for _ in range(20):  # while Python imports, one may get lost in a callback
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=2)
                break
        assert process.stderr is not None
        err = process.stderr.read()
    assert (process.returncode, err.strip()) == (130, "interrupted")
    assert np.load("out.npy")[0] == 0
    assert sorted(p.name for p in endless.iterdir() if p.suffix != ".cache") == ["k.ptx", "out.npy"]


def test_a_long_computation_is_no_deadlock() -> None:
    """Ten million turns without a store: more than the rounds that a polling loop is given."""
    text = f"""{HEAD}.visible .entry k(.param .u64 out, .param .u32 turns) {{
        .reg .pred %p; .reg .u32 %r<4>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [out]; ld.param.u32 %r2, [turns]; mov.u32 %r1, 0; mov.u32 %r3, 1;
    L:  mad.lo.u32 %r3, %r3, 1664525, 1013904223; add.u32 %r1, %r1, 1;
        setp.lt.u32 %p, %r1, %r2; @%p bra L;
        st.global.u32 [%rd1], %r3; ret;
    }}
    """
    turns = 10_000_000 if library() is not None else 10_000
    out = np.zeros(1, np.uint32)
    run(text, arguments=[out, turns])
    factor, term, power, total = 1664525, 1013904223, turns, 1
    while power:  # the turns of a linear generator by squaring
        if power & 1:
            total = (total * factor + term) % (1 << 32)
        factor, term = factor * factor % (1 << 32), (factor + 1) * term % (1 << 32)
        power >>= 1
    assert int(out[0]) == total
