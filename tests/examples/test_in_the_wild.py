"""The kernels of docs/in-the-wild.md in our own words: each fault is found where it is, and no
other, and where it is mended, as the comments of the file say, nothing is found."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import run
from fragir.toolchain import ptxas

FOLDER = Path(__file__).parents[2] / "examples" / "in_the_wild"
SOFTMAX, LAYERNORM, MATMUL, TRITON = "softmax4", "layernorm9", "matmul12", "triton-device"
MARLIN, CUTE = "marlin", "cute-wgmma"
# case -> (severity, kind, the word that marks the line) of what is to be found
FAULTS = {
    SOFTMAX: {("error", "race", "SUM")},
    LAYERNORM: {("error", "race", "PART")},
    MATMUL: {
        ("error", "proxy-fence", "COPY"),
        ("letter", "unretired", "COPY"),
        ("error", "race", "ARRIVE"),
    },
    MARLIN: {
        ("error", "race", "REFILL"),
        ("error", "race", "READ"),
        ("error", "pending-copy", "READ"),
    },
    CUTE: {("error", "race", "PRODUCT")},
    TRITON: {("error", "out-of-bounds", "STORE")},
}


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("in_the_wild_check", FOLDER / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def text_of(check: ModuleType, case: str) -> str:
    return (FOLDER / check.STAND_INS[case]).read_text("utf-8")


def mended(text: str, case: str) -> str:
    """What the comments say, done to the text."""
    if case == SOFTMAX:
        old, new = "// MAXIMUM", "bar.sync 0;"
    elif case == LAYERNORM:
        line = next(line for line in text.splitlines() if line.endswith("// COUNT"))
        fence = "fence.acq_rel.gpu;"
        old, new = line, f"{fence}\n{line}\n{fence}"
    elif case in (MATMUL, MARLIN, CUTE):
        old, new = "    // MEND ", "    "
    else:
        old, new = "%row, 128;  // TWICE", "%row, 64;"
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize("case", FAULTS)
def test_each_fault_is_found_where_it_is(check: ModuleType, case: str) -> None:
    text = text_of(check, case)
    marks = {
        number: line.rpartition("// ")[2] for number, line in enumerate(text.splitlines(), start=1)
    }
    found = check.findings(case, text)
    assert {(f.severity, f.kind, marks[f.line]) for f in found} == FAULTS[case]


@pytest.mark.parametrize("case", FAULTS)
def test_nothing_is_found_once_it_is_mended(check: ModuleType, case: str) -> None:
    assert check.findings(case, mended(text_of(check, case), case)) == []


@pytest.mark.parametrize(
    "change", ["fence.proxy.async;", "cp.async.bulk.wait_group 0;", "barrier."]
)
def test_each_mend_is_needed(check: ModuleType, change: str) -> None:
    text = text_of(check, MATMUL).replace(f"    // MEND {change}", f"    // {change}")
    assert len(check.findings(MATMUL, mended(text, MATMUL))) == 1


@pytest.mark.parametrize("case", FAULTS)
def test_ptxas_takes_them(check: ModuleType, case: str) -> None:
    text = text_of(check, case)
    target = "sm_90a" if ".target sm_90a" in text else "sm_80"
    for ptx in (text, mended(text, case)):
        assert ptxas.assemble(ptx, target).warnings == []


def executed(check: ModuleType, case: str) -> list[npt.NDArray[Any]]:
    """The arguments after one run of the mended kernel."""
    launch = check.CASES[case](np.random.default_rng(3))
    ptx = mended(text_of(check, case), case)
    run(
        ptx,
        arguments=launch.arguments,
        grid=launch.grid,
        block=(launch.block,),
        shared=launch.shared,
    )
    return launch.arguments


def test_what_they_compute(check: ModuleType) -> None:
    """They are the kernels that they say they are."""
    out, x, _, _ = executed(check, SOFTMAX)
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)
    _, _, dbias, _, dout, *_ = executed(check, LAYERNORM)
    values = (dout.astype(np.uint32) << 16).view(np.float32).astype(float)
    sums = (dbias.astype(np.uint32) << 16).view(np.float32)
    # seven roundings to f32 of what is at most the sum of magnitudes, and one to bf16
    bound = 2**-8 * np.abs(values.sum(0)) + 8 * 2**-24 * np.abs(values).sum(0)
    assert (np.abs(sums - values.sum(0)) <= bound).all()
    _, _, c, scales, *_ = executed(check, MARLIN)
    bits = scales.view(np.uint16).sum(0, dtype=np.uint32)
    assert (c.view(np.uint32).ravel()[:512] == 2 * bits).all()  # each row is read in two turns
    _, _, a, *_, b, _, _, _, c, _, _, _, _ = executed(check, CUTE)
    left = a.ravel()[:1024].reshape(2, 8, 8, 8).transpose(1, 2, 0, 3).reshape(64, 16)
    right = b.ravel()[:128].reshape(2, 8, 8).transpose(1, 0, 2).reshape(8, 16)
    assert (c.ravel()[:512].reshape(64, 8) == left @ right.T).all()


@pytest.mark.parametrize("case", ["matmul8", "matmul11", "layernorm10", "triton-host"])
def test_a_file_without_the_kernel(
    check: ModuleType, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Says which kernels there are; the launch itself is made."""
    assert check.CASES[case](np.random.default_rng(0)).arguments
    file = tmp_path / "other.ptx"
    file.write_text(text_of(check, SOFTMAX), "utf-8")
    with pytest.raises(SystemExit, match=r"no kernel .* but softmax_forward_kernel4"):
        check.main([case, str(file)])
    with pytest.raises(SystemExit, match="usage"):
        check.main(["nothing", str(file)])
    assert capsys.readouterr().out == ""


def test_without_triton() -> None:
    """One line that says what it needs."""
    if importlib.util.find_spec("triton") is not None:
        pytest.skip("Triton is installed")
    command = [sys.executable, str(FOLDER / "triton_gemm.py"), "device", "gemm.ptx"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (
        1,
        "this needs Triton: pip install triton==3.6.0",
    )


def test_headers_for_an_nvcc_without_cublas(tmp_path: Path) -> None:
    """What the recipes' sources call compiles, and leaves the kernel as it is."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on the PATH")
    kernel = "__global__ void one(float* x) { *x = 1; }\n"
    host = """#include <cublas_v2.h>
#include <cublasLt.h>
cublasHandle_t handle;
cublasLtHandle_t lt;
bool begin() {
    return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS && cublasLtCreate(&lt) == 0
        && cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_SUCCESS;
}
"""
    made: list[str] = []
    for text in (host + kernel, kernel):
        (tmp_path / "one.cu").write_text(text, "utf-8")
        command = ["nvcc", "-ptx", "-arch=sm_80", f"-I{FOLDER / 'headers'}", "one.cu"]
        subprocess.run([*command, "-o", "one.ptx"], cwd=tmp_path, check=True)
        made.append((tmp_path / "one.ptx").read_text("utf-8").partition(".version")[2])
    assert made[0] == made[1]
    assert ".entry" in made[0]
