"""What compilers make is silent: fragir's own kernels, and nvcc's of `kernels.cu`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir.emulator
import fragir.emulator.launch.launch
from fragir.cli.main import main
from fragir.emulator import Report, run

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = Path(__file__).with_name("kernels.cu")
SIZES = ["--size", "m=50,n=40,k=72"]


@pytest.mark.parametrize(
    ("example", "target", "options"),
    [
        *(("gemm", t, SIZES) for t in ("sm_80", "sm_90a")),
        *(("gemm_frag", t, SIZES) for t in ("sm_80", "sm_90a")),
        *(("gemm_placed", t, []) for t in ("sm_80", "sm_90a")),
        *(("linalg_matmul", t, SIZES) for t in ("sm_80", "sm_90a")),
        *(("ldmatrix", "sm_80", ["--entry", e]) for e in ("swizzled", "transposed")),
        ("explicit_layout", "sm_80", ["--entry", "transpose"]),
        ("mma_m16n8k16_f16", "sm_80", ["--entry", "f16_f32"]),
        ("mma_m16n8k32_s8", "sm_80", ["--entry", "s8_u8"]),
        *(("wgmma_registers", "sm_90a", ["--entry", e]) for e in ("mn_major", "k_major")),
        ("wgmma_shared", "sm_90a", []),
        ("wgmma_warpgroups", "sm_90a", []),
    ],
)
def test_our_own(
    monkeypatch: pytest.MonkeyPatch, example: str, target: str, options: list[str]
) -> None:
    reports: list[Report] = []

    def checked(*arguments: Any, **named: Any) -> Report:
        reports.append(run(*arguments, **named, check=True))
        return reports[-1]

    monkeypatch.setattr(fragir.emulator.launch.launch, "run", checked)
    monkeypatch.setattr(fragir.emulator, "run", checked, raising=False)
    command = ["run", str(EXAMPLES / f"{example}.mlir"), "--target", target, "--on", "emulator"]
    code = main([*command, *options])
    assert reports
    assert [f for r in reports for f in r.findings] == []
    assert code == 0


def compiled(tmp_path: Path, edit: tuple[str, str] = ("", "")) -> str:
    """nvcc's PTX of `kernels.cu`, of which the first occurrence of a text was replaced."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    source = SOURCE.read_text()
    assert edit[0] in source
    (tmp_path / "k.cu").write_text(source.replace(edit[0], edit[1], 1))
    command = [nvcc, "-ptx", "-arch=sm_80", "-O3", "k.cu", "-o", "k.ptx"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nvcc does not compile here: {done.stderr.splitlines()[:1]}")
    return (tmp_path / "k.ptx").read_text()


def multiply(text: str, schedule: int | None) -> tuple[list[str], bool]:
    """Kinds of findings, and whether the product is right."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (50, 35)).astype(np.float32)
    b = rng.integers(-3, 4, (35, 40)).astype(np.float32)
    c = np.zeros((50, 40), np.float32)
    report = run(
        text,
        "gemm",
        grid=(3, 4),
        block=(16, 16),
        arguments=[a, b, c, 50, 40, 35],
        check=True,
        schedule=schedule,
    )
    return [f.kind for f in report.findings], bool((c == a @ b).all())


def test_nvcc(tmp_path: Path) -> None:
    """A GEMM through shared memory, a sum whose last block finishes, a histogram by atomics."""
    text = compiled(tmp_path)
    rng = np.random.default_rng(0)
    for schedule in (None, 1):
        assert multiply(text, schedule) == ([], True)
        numbers = rng.integers(0, 9, 5000).astype(np.float32)
        out, count = np.zeros(9, np.float32), np.zeros(1, np.uint32)
        report = run(
            text,
            "total",
            grid=(8,),
            block=(256,),
            arguments=[numbers, out, count, 5000],
            check=True,
            schedule=schedule,
        )
        assert (report.findings, out[0]) == ([], numbers.sum())
        letters = rng.integers(0, 256, 20000).astype(np.uint8)
        bins = np.zeros(256, np.uint32)
        report = run(
            text,
            "histogram",
            grid=(4,),
            block=(256,),
            arguments=[letters, bins, 20000],
            check=True,
            schedule=schedule,
        )
        assert report.findings == []
        assert (bins == np.bincount(letters, minlength=256)).all()


def test_nvcc_without_a_barrier(tmp_path: Path) -> None:
    text = compiled(tmp_path, ("__syncthreads();", ""))
    kinds, _ = multiply(text, None)
    assert set(kinds) <= {"race", "uninitialised"}
    assert "race" in kinds
