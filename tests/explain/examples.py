"""The programs that the view is tried on, each explained once in a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fragir.explain import ProgramReport, explain, explain_ptx

ROOT = Path(__file__).resolve().parents[2]

#: name -> (file, target)
PROGRAMS = {
    "gemm80": ("examples/gemm.mlir", "sm_80"),
    "gemm90": ("examples/gemm.mlir", "sm_90a"),
    "attention": ("examples/attention/forward_wgmma.mlir", "sm_90a"),
    "softmax": ("examples/rows/softmax.mlir", "sm_80"),
    "kernels": ("examples/linalg/residual_block.mlir", "sm_80"),
}
WITH_SASS = ("gemm90",)


@cache
def report_of(name: str) -> ProgramReport:
    """The report of a program; with machine code where `WITH_SASS` says so."""
    file, target = PROGRAMS[name]
    text = (ROOT / file).read_text()
    return explain(text, target=target, filename=file, sass=name in WITH_SASS)


@cache
def foreign() -> ProgramReport:
    """The report of PTX that a person wrote."""
    file = "examples/hand_written.ptx"
    return explain_ptx((ROOT / file).read_text(), filename=file)
