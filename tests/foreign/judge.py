"""Runs a kernel with every check on; nothing may be found. And how far floats are apart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import Report, run

from .compilers import CUDA, Missing, kept, nvcc

Array = npt.NDArray[Any]


def cuda(name: str, target: str, *options: str) -> str:
    """PTX of `cuda/name.cu`: kept, or made by nvcc where options are asked for.

    With the environment variable FRAGIR_FOREIGN="sm_100a -G" every source is compiled anew for
    this target, with these options; a kernel that is not for the target is then skipped.
    """
    wanted = os.environ.get("FRAGIR_FOREIGN", "").split()
    if wanted:
        target, *given = wanted
        options = (*given, *options)
    elif not options:
        return kept(name, target)
    try:
        return nvcc(CUDA / f"{name}.cu", target, *options)
    except Missing as error:
        pytest.skip(str(error))


def execute(
    ptx: str,
    entry: str,
    arguments: Sequence[object],
    *,
    grid: Sequence[int] = (1,),
    block: Sequence[int] = (128,),
    faults: Sequence[str] = (),
    **launch: Any,
) -> Report:
    """A run without findings, but for the kinds `faults` that its compiler has to answer for."""
    if f".entry {entry}(" not in ptx.replace(f".entry {entry} (", f".entry {entry}("):
        assert os.environ.get("FRAGIR_FOREIGN"), f"no {entry} in this PTX"
        pytest.skip(f"{entry} is not for this target")
    report = run(ptx, entry, arguments=arguments, grid=grid, block=block, check=True, **launch)
    found = [f for f in report.findings if f.kind not in faults]
    assert found == [], "\n".join(f"{f.line}: {f.kind}: {f.message}" for f in found)
    return report


def ulps(found: Array, exact: Array) -> float:
    """The largest distance in units in the last place of `found`'s type at `exact`."""
    assert np.isfinite(found).all()
    unit = np.spacing(np.abs(exact).astype(found.dtype)).astype(np.float64)
    return float((np.abs(found.astype(np.float64) - exact) / unit).max())


def rounded(x: Array, digits: int) -> Array:
    """f64 rounded to so many binary digits, half to even."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(mantissa, digits)), exponent - digits)
