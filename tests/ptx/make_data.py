"""Compiles tests/ptx/kernels/*.cu with nvcc; run as a script it renews tests/ptx/data/nvcc_*.ptx.

python tests/ptx/make_data.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = HERE / "kernels"
DATA = HERE / "data"

# kept in the repository: kernel file, target, options
KEPT = (
    ("basic", "sm_80", ("-lineinfo",)),
    ("calls", "sm_75", ()),
    ("tensor", "sm_90a", ()),
)
# made where nvcc is at hand
MADE = tuple(
    (name, target, options)
    for name in ("basic", "calls", "tensor")
    for target in ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120")
    for options in ((), ("-lineinfo",), ("-G",))
)


def compile_kernel(name: str, target: str, options: tuple[str, ...]) -> str:
    """The PTX that nvcc makes of a file, without its banner and the paths of this machine."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise FileNotFoundError("nvcc is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        command = [nvcc, "-std=c++17", f"-arch={target}", *options, "-ptx", f"{name}.cu", "-o", out]
        subprocess.run(command, cwd=KERNELS, check=True, capture_output=True)
        text = out.read_text("utf-8")
    text = re.sub(r"\A//.*?(?=\n\.version)", "", text, flags=re.DOTALL)
    return re.sub(r'"(?:[^"\n]*/)?([^"/\n]+)"(, \d+, \d+)?', r'"\1"', text)


def main() -> None:
    for name, target, options in KEPT:
        words = "_".join((name, target, *(x.strip("-") for x in options)))
        (DATA / f"nvcc_{words}.ptx").write_text(compile_kernel(name, target, options), "utf-8")


if __name__ == "__main__":
    main()
