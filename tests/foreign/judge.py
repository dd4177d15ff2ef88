"""Runs a kernel with every check on; nothing may be found. And how far floats are apart.

With the environment variable FRAGIR_FOREIGN_LIFTED=1 every kernel is lifted to the `ptx` dialect,
printed, parsed and written back as PTX before it runs.

A kernel whose run speaks for every content of its arrays runs once more with another one, or
FRAGIR_FOREIGN_VALUES=10 times: it executes the same statements.

With the environment variable FRAGIR_FOREIGN_RECORD=FOLDER the first launch of each kernel is kept
there, for the sweep `every-schedule`.

With the environment variable FRAGIR_FOREIGN_ON=gpu the arrays that tests look at come from the GPU,
after the same run on the emulator.
"""

from __future__ import annotations

import functools
import os
import pickle
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from fragir.compilation import program
from fragir.emulator import Report, TensorMap, run
from fragir.errors import FragirError
from fragir.ptx import parse
from fragir.toolchain import driver, ptxas
from fragir.toolchain.driver import Extent
from fragir.validation.probes import gpu_target

from ..emulator.other_values import executed, other_values
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
    letters: Sequence[str] = (),
    **launch: Any,
) -> Report:
    """A run without findings, but for `letters`: kinds of what only the ISA's text forbids."""
    if f".entry {entry}(" not in ptx.replace(f".entry {entry} (", f".entry {entry}("):
        assert os.environ.get("FRAGIR_FOREIGN"), f"no {entry} in this PTX"
        pytest.skip(f"{entry} is not for this target")
    if os.environ.get("FRAGIR_FOREIGN_LIFTED"):
        ptx = lifted(ptx)
    gpu = os.environ.get("FRAGIR_FOREIGN_ON") == "gpu"
    given = copies(arguments) if gpu else arguments
    before = copies(arguments)
    if folder := os.environ.get("FRAGIR_FOREIGN_RECORD"):
        _record(Path(folder), ptx, entry, before, {"grid": grid, "block": block, **launch})
    report = run(ptx, entry, arguments=given, grid=grid, block=block, check=True, **launch)
    found = [f for f in report.findings if f.severity == "error" or f.kind not in letters]
    assert found == [], "\n".join(f"{f.line}: {f.kind}: {f.message}" for f in found)
    _for_every_value(report, ptx, entry, before, {"grid": grid, "block": block, **launch})
    if gpu:
        _on_the_gpu(ptx, entry, arguments, tuple(grid), tuple(block), **launch)
    return report


def _record(
    folder: Path, ptx: str, entry: str, arguments: Sequence[object], launch: dict[str, Any]
) -> None:
    """Keeps a launch, pickled: (text, entry, arguments, how it is launched)."""
    folder.mkdir(parents=True, exist_ok=True)
    number = zlib.crc32(f"{entry}\n{ptx}".encode())
    file = folder / f"{entry}-{number:08x}.pickle"
    how = {name: value for name, value in launch.items() if name in HOW}
    if not file.exists():
        file.write_bytes(pickle.dumps((ptx, entry, list(arguments), how)))


#: What says how a kernel is launched, of what may be said of a run.
HOW = ("grid", "block", "cluster", "shared")

#: Kernels of which, by some compiler, more than data depends on the contents of arrays, and what.
BY_VALUE = {
    **dict.fromkeys(("histogram", "cluster_histogram", "scattered"), "which bin"),
    **dict.fromkeys(("collatz", "nested", "local_sort", "bitonic"), "how often a loop runs"),
    **dict.fromkeys(("interpreter", "jump", "pointers"), "which code runs"),
    **dict.fromkeys(("accurate", "doubles", "wide", "half2_rows"), "slow ways of functions"),
    **dict.fromkeys(("fp8_round_trip", "votes", "groups"), "branches on values"),
    **dict.fromkeys(("scan", "last_block", "locks"), "what other blocks have left"),
    "atomic_sum": "whether a sum is added at all",
    "gemm_special": "whether two warpgroups store the same",
    "extremes": "which of two values that nothing has written",
}
#: So many other contents of its arrays a kernel is run with that is judged for every one.
OTHERS = int(os.environ.get("FRAGIR_FOREIGN_VALUES", "1"))


def _for_every_value(
    report: Report, ptx: str, entry: str, arguments: Sequence[object], launch: dict[str, Any]
) -> None:
    """The kernels whose run speaks for every value execute the same with other ones."""
    data = report.data
    assert data is not None
    if not os.environ.get("FRAGIR_FOREIGN"):
        assert data.every or entry in BY_VALUE, data.open
    if not data.every or launch.get("asynchrony") == "random":
        return
    first = executed(ptx, entry, copies(arguments), **launch)
    for seed in range(OTHERS):
        others = other_values(arguments, np.random.default_rng(seed))
        assert executed(ptx, entry, others, **launch) == first


@functools.cache
def lifted(ptx: str) -> str:
    """The text through the `ptx` dialect and back; skips what has indirect branches."""
    try:
        return program.emit(program.parse(str(program.lift(ptx))))
    except FragirError as error:
        if "indirect branches" not in error.message:
            raise
        pytest.skip(error.message)


def copies(arguments: Sequence[object]) -> list[object]:
    """The arguments with arrays of their own; what was one array stays one."""
    made: dict[int, Array] = {}

    def copy(value: object) -> object:
        if isinstance(value, np.ndarray):
            array = cast("Array", value)
            return made.setdefault(id(array), array.copy())
        if isinstance(value, TensorMap):
            return replace(value, array=copy(value.array))
        return value

    return [copy(value) for value in arguments]


def _on_the_gpu(
    ptx: str, entry: str, arguments: Sequence[object], grid: Extent, block: Extent, **launch: Any
) -> None:
    """The same launch by the driver; skips what this GPU cannot run."""
    reason = driver.available()
    if reason is not None:
        pytest.skip(reason)
    target = gpu_target(driver.gpu().target)
    made_for = parse(ptx).target[0]
    if made_for[-1].isalpha() and made_for != target:
        pytest.skip(f"the PTX is for {made_for}, the GPU is an {target}")
    driver.launch(
        ptxas.assemble(ptx, target).cubin,
        entry,
        grid=grid,
        block=block,
        arguments=arguments,
        shared=launch.get("shared", 0),
        cluster=launch.get("cluster", (1, 1, 1)),
        cooperative="%envreg2" in ptx,
    )


def ulps(found: Array, exact: Array) -> float:
    """The largest distance in units in the last place of `found`'s type at `exact`."""
    assert np.isfinite(found).all()
    unit = np.spacing(np.abs(exact).astype(found.dtype)).astype(np.float64)
    return float((np.abs(found.astype(np.float64) - exact) / unit).max())


def rounded(x: Array, digits: int) -> Array:
    """f64 rounded to so many binary digits, half to even."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(mantissa, digits)), exponent - digits)
