"""PTX of the kernels in this folder, by the compilers that they are written for.

`python tests/foreign/compilers.py [PYTHON [PYTHON]]` renews what is kept of nvcc's PTX in `cuda/`
and, given a Python that has Triton 3.6 and one that has Triton 3.9, of Triton's in `triton_ptx/`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CUDA = HERE / "cuda"

# What is kept: each source for the oldest target that has all it uses, some for a newer one too.
KEPT = {
    "collective": ("sm_80",),
    "cooperative": ("sm_80",),
    "control": ("sm_75",),
    "elementwise": ("sm_90a",),
    "hopper": ("sm_90a",),
    "libcu": ("sm_80", "sm_90a"),
    "mma": ("sm_89",),
    "wmma": ("sm_80",),
}
TRITON = HERE / "triton_ptx"
#: Of Triton 3.6, and of Triton 3.9.
KEPT_TRITON = {
    "sm_80": (
        *("atomic_sum", "attention", "attention_causal", "collatz", "extremes", "gemm"),
        *("gemm_bf16", "gemm_int8", "gemm_tf32", "histogram", "layer_norm", "scan"),
        *("scattered", "softmax", "sort", "turned", "vector_add"),
    ),
    "sm_89": ("gemm_fp8",),
    "sm_90": ("attention", "gemm", "gemm_fp8", "gemm_persistent", "gemm_special", "gemm_tma"),
}
KEPT_TRITON_39 = {
    "sm_100": (
        *("attention_wide", "gemm", "gemm_fp8", "gemm_mxfp4", "gemm_mxfp8", "gemm_nvfp4"),
        *("gemm_persistent", "gemm_special", "gemm_tma"),
    ),
}


class Missing(Exception):
    """A compiler that is not here, or does not know the target."""


@functools.cache
def nvcc(source: Path, target: str, *options: str) -> str:
    """The PTX that nvcc makes of a file, without its banner and the paths of this machine."""
    tool = shutil.which("nvcc")
    if tool is None:
        raise Missing("nvcc is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        command = [tool, "-std=c++17", "-w", f"-arch={target}", *options, "-ptx", source.name]
        done = subprocess.run(
            [*command, "-o", str(out)],
            cwd=source.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Missing(f"nvcc: {(done.stderr + done.stdout).strip().splitlines()[:1]}")
        text = out.read_text("utf-8")
    text = re.sub(r"\A//.*?(?=\n\.version)", "", text, flags=re.DOTALL)
    return re.sub(r'"(?:[^"\n]*/)?([^"/\n]+)"(, \d+, \d+)?', r'"\1"', text)


def kept(name: str, target: str) -> str:
    """What nvcc made of `cuda/name.cu` when it was last renewed."""
    return (CUDA / f"{name}.{target}.ptx").read_text("utf-8")


def main() -> None:
    for name, targets in KEPT.items():
        for target in targets:
            text = nvcc(CUDA / f"{name}.cu", target)
            (CUDA / f"{name}.{target}.ptx").write_text(text, "utf-8")
    for python, kept_of in zip(sys.argv[1:], (KEPT_TRITON, KEPT_TRITON_39), strict=False):
        titles = [f"{name}.{target}" for target, names in kept_of.items() for name in names]
        script = HERE / "triton_kernels.py"
        environment = {**os.environ, "TRITON_DISABLE_LINE_INFO": "1"}
        subprocess.run([python, script, TRITON, *titles], check=True, env=environment)


if __name__ == "__main__":
    sys.exit(main())
