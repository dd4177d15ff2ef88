"""Kernels and programs as modules of MLIR's dialect gpu."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import fragir
from fragir.compilation.kernel import Kernel
from fragir.launchers import launcher
from tests.linalg.held import layers, weights

EXAMPLES = Path(__file__).parents[2] / "examples"
MLIR_OPT = shutil.which("mlir-opt-19") or shutil.which("mlir-opt")
#: program, entry, target, launches
PROGRAMS = [
    ("linalg/linears.mlir", None, "sm_80", 3),
    ("linalg/residual_block.mlir", None, "sm_90a", 2),
    ("linalg/transformer_block.mlir", None, "sm_80", 11),
    ("gemm.mlir", None, "sm_80", 1),
    ("rows/softmax.mlir", "softmax", "sm_80", 1),
    ("elementwise.mlir", None, "sm_90a", 1),
]
#: what PTX calls the types of parameters
PARAMETERS = {"u64": "!llvm.ptr", "u32": "i32", "s32": "i32", "b32": "i32", "f32": "f32"}


def compiled(name: str, entry: str | None, target: str) -> Kernel:
    return fragir.compile((EXAMPLES / name).read_text(), target=target, entry=entry)


@pytest.mark.parametrize(("name", "entry", "target", "launches"), PROGRAMS)
def test_launches_give_what_kernels_take(
    name: str, entry: str | None, target: str, launches: int
) -> None:
    kernel = compiled(name, entry, target)
    text = launcher(kernel, "mlir")
    found = re.findall(
        r'"gpu\.launch_func"\(.*?\) <\{kernel = @\w+::@(\w+),.*?\}> : \((.*?)\) -> \(\)', text
    )
    assert len(found) == launches
    for one, types in found:
        entry_text = kernel.ptx.partition(f".entry {one}(")[2].partition(")\n")[0]
        taken = [PARAMETERS[t] for t in re.findall(r"\.param \.(\w+)", entry_text)]
        assert types.split(", ")[7:] == taken  # behind the grid, the block and shared memory


def test_constants_are_globals() -> None:
    """The function copies them to memory of the device, and takes them no more."""
    held = weights()
    text = launcher(fragir.compile(layers(held)), "mlir")
    assert "func.func @layers(%arg0: memref<5x8xf32>, %result: memref<5x6xf32>)" in text
    for name, array in zip(("cst", "cst2", "cst3"), held, strict=True):
        shape = "x".join(map(str, array.shape))
        assert f'"memref.global"() <{{sym_name = "layers_{name}"' in text
        assert re.search(rf"memref.get_global @layers_{name} : memref<{shape}xf32>", text)
    assert text.count("gpu.memcpy") == 3
    assert text.count("gpu.alloc") == text.count("gpu.dealloc") == 4


@pytest.mark.skipif(MLIR_OPT is None, reason="no mlir-opt (Debian: mlir-19-tools)")
@pytest.mark.parametrize(("name", "entry", "target", "launches"), PROGRAMS)
def test_mlir_lowers_them(
    name: str, entry: str | None, target: str, launches: int, tmp_path: Path
) -> None:
    """Verified, and lowered to calls of the runtime."""
    path = tmp_path / "module.mlir"
    path.write_text(launcher(compiled(name, entry, target), "mlir"))
    assert MLIR_OPT is not None
    done = subprocess.run(
        [MLIR_OPT, "--gpu-to-llvm", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("gpu.launch_func") == launches


def test_memory_between_kernels_is_given_back() -> None:
    kernel = compiled("linalg/linears.mlir", None, "sm_80")
    text = launcher(kernel, "mlir")
    assert text.count('"gpu.alloc"') == text.count('"gpu.dealloc"') == 2


def test_the_ptx_is_the_programs() -> None:
    kernel = compiled("gemm.mlir", None, "sm_80")
    held = re.search(r'assembly = "(.*?)">', launcher(kernel, "mlir"))
    assert held is not None
    text = held[1].replace("\\0A", "\n").replace("\\09", "\t").replace('\\"', '"')
    assert text == kernel.ptx


def test_tensor_maps_are_refused() -> None:
    kernel = compiled("linalg/linears.mlir", None, "sm_90a")
    with pytest.raises(fragir.FragirError, match="takes tensor maps") as caught:
        launcher(kernel, "mlir")
    assert caught.value.hint is not None
