"""What benchmarks/emulator.py runs: launches with their arguments, and what they should give."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from emulator_kernels import (
    GATHER,
    HISTOGRAM,
    LOOP,
    MEMORY_LOOP,
    PROBE,
    STAGE_BYTES,
    STAGES,
    TILE,
    TOGETHER,
    gemm_ptx,
)
from programs import ROOT

import fragir
from fragir.emulator import TensorMap

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = list[Array]
Reading: TypeAlias = Literal["same", "new", "module"]
TURNS = 300
"""Of the loops."""
WARPS_OF_A_BLOCK = 8
"""Of the loop over memory, at most."""


@dataclass(frozen=True)
class Launch:
    """A launch that any revision of the emulator can do.

    `parameters` of the kernel name arrays by their objects. `expected`: what the last of `arrays`
    holds afterwards, in exact numbers or f64. `options` are those of `run`. It is done `times` in a
    row, read each time from the `same` text, from one that is `new`, or from a parsed `module`.
    `warps`: how many execute an instruction together, where that is to be told.
    """

    ptx: str
    arrays: Arrays
    parameters: list[object]
    options: dict[str, object]
    expected: Callable[[Arrays], Array]
    warps: int = 0
    times: int = 1
    reading: Reading = "same"

    def write(self, path: Path) -> None:
        """A file for workers/emulator_worker.py, which knows none of these classes."""
        told = {
            "ptx": self.ptx,
            "arrays": self.arrays,
            "parameters": [self._told(parameter) for parameter in self.parameters],
            "options": self.options,
            "times": self.times,
            "reading": self.reading,
        }
        with path.open("wb") as file:
            pickle.dump(told, file, protocol=5)

    def _told(self, parameter: object) -> tuple[str, object, object]:
        """An array or a tensor map by the number of its array, anything else as it is."""
        of = parameter.array if isinstance(parameter, TensorMap) else parameter
        number = next((i for i, array in enumerate(self.arrays) if array is of), None)
        if isinstance(parameter, TensorMap):
            assert number is not None
            names = [each.name for each in fields(parameter) if each.name != "array"]
            return "map", number, {name: getattr(parameter, name) for name in names}
        assert number is not None or not isinstance(parameter, np.ndarray)
        return ("value", parameter, None) if number is None else ("array", number, None)

    def error(self, results: Arrays) -> float:
        """The largest difference from what is expected."""
        wanted = self.expected(self.arrays).astype(np.float64)
        return float(np.abs(results[-1].astype(np.float64) - wanted).max())


@dataclass(frozen=True)
class Case:
    """A row of the tables; `launch` makes it when it is its turn."""

    name: str
    launch: Callable[[], Launch]
    quick: bool = field(default=False)


def cases() -> list[Case]:
    """All of them, in the tables' order."""
    found = [
        Case(f"f16 product by hand, {n}^3", partial(by_hand, n), quick=n == 128)
        for n in (128, 256, 512, 1024)
    ]
    found += [
        Case("examples/gemm.mlir, sm_80, 512^3", partial(example_product, 512, "sm_80")),
        Case("examples/gemm.mlir, sm_90a, 512^3", partial(example_product, 512, "sm_90a")),
        Case("TMA, wgmma, roles, 512^3", partial(roles, 512)),
        Case("softmax, 256 x 1024", partial(softmax, 256, 1024)),
        Case("histogram in global memory, 65,536", partial(compiled_histogram, 1 << 16)),
        Case("histogram in shared memory, 131,072", partial(shared_histogram, 32, 16)),
        Case("one-warp probe, new text", partial(probe, "new")),
        Case("one-warp probe, same text", partial(probe, "same")),
        Case("one-warp probe, module", partial(probe, "module"), quick=True),
    ]
    found += [
        Case(f"loop, {n} warp{'s' * (n > 1)}", partial(loop, n), quick=n == 4)
        for n in (1, 4, 16, 64, 256, 1024)
    ]
    found += [
        Case(f"memory loop, {n} warp{'s' * (n > 1)}", partial(memory_loop, n))
        for n in (1, 4, 16, 64, 256)
    ]
    found += [
        Case(f"{name}, {n} warps", partial(made, n))
        for name, made in (("gathers", gathers), ("one place for a warp", together))
        for n in (16, 256)
    ]
    return found


def by_hand(size: int) -> Launch:
    """The product of A and the transpose of B."""
    arrays = _matrices(size)
    return Launch(
        gemm_ptx(),
        arrays,
        [*arrays, size, size],
        _options((size // TILE, size // TILE), 128, 2 * STAGES * STAGE_BYTES),
        lambda arrays: _wide(arrays[0]) @ _wide(arrays[1]).T,
    )


def example_product(size: int, target: str) -> Launch:
    """examples/gemm.mlir: any sizes, alpha and beta."""
    text = (ROOT / "examples/gemm.mlir").read_text("utf-8")
    kernel = fragir.compile(text, target=target)
    return _compiled(kernel, _matrices(size), _product, (np.float32(1), np.float32(0)))


def roles(size: int) -> Launch:
    """One warp copies by TMA into a ring, two warpgroups multiply."""
    a, c = (f"memref<{size}x{size}x{element}>" for element in ("f16", "f32"))
    text = f"""func.func @product(%a: {a}, %b: {a}, %c: {c}) {{
  frag.matmul %a, %b into %c {{roles, tile = array<i64: 128, 128, 64>, stages = 3 : i64}}
      : {a}, {a} into {c}
  func.return
}}
"""
    kernel = fragir.compile(text, target="sm_90a")
    return _compiled(kernel, _matrices(size), _product)


def softmax(rows: int, columns: int) -> Launch:
    """examples/rows/softmax.mlir, forward."""

    def expected(arrays: Arrays) -> Array:
        x = _wide(arrays[0])
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    text = (ROOT / "examples/rows/softmax.mlir").read_text("utf-8")
    kernel = fragir.compile(text, target="sm_80", entry="softmax")
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    return _compiled(kernel, [x, np.zeros_like(x)], expected)


def compiled_histogram(count: int) -> Launch:
    """examples/data/histogram.mlir: an atomic in global memory for each number."""
    text = (ROOT / "examples/data/histogram.mlir").read_text("utf-8")
    return _compiled(fragir.compile(text, target="sm_80"), _numbers(count), _counts)


def shared_histogram(blocks: int, each: int) -> Launch:
    """Blocks of 256 threads, each of which counts so many numbers in shared memory."""
    arrays = _numbers(256 * blocks * each)
    return Launch(HISTOGRAM, arrays, [*arrays, each], _options((blocks,), 256), _counts)


def probe(reading: Reading) -> Launch:
    """A kernel of nine instructions for one warp, 20 times."""
    x = np.arange(0, 320, 10).astype(np.uint32)
    arrays = [x, np.zeros_like(x)]

    def expected(arrays: Arrays) -> Array:
        return np.array([int(value).bit_count() for value in arrays[0]])

    return Launch(
        PROBE, arrays, list(arrays), _options((1,), 32), expected, times=20, reading=reading
    )


def loop(warps: int) -> Launch:
    """Blocks of one warp, all on the machine together."""
    out = np.zeros(32 * warps, np.float32)

    def expected(arrays: Arrays) -> Array:
        i = np.arange(32)
        f = i.astype(np.float64)
        for turn in range(TURNS):
            i = ((i + turn ^ i) * 3 + i + turn) & 1023
            f = f * (1 - 2.0**-24) + 1
        return np.tile(f + 2 + i, warps)

    options = {**_options((warps,), 32), "resident": warps}
    return Launch(LOOP, [out], [out, TURNS], options, expected, warps=warps)


def memory_loop(warps: int) -> Launch:
    """Blocks of up to 8 warps, all on the machine together."""
    threads = 32 * min(warps, WARPS_OF_A_BLOCK)
    data = np.arange(32 * warps, dtype=np.uint32)

    def expected(arrays: Arrays) -> Array:
        return np.roll(arrays[0].reshape(-1, threads), -TURNS, 1).ravel() + TURNS

    return Launch(MEMORY_LOOP, [data], [data, TURNS], _blocks(warps), expected, warps=warps)


def gathers(warps: int) -> Launch:
    """Reads in no order, by blocks of 8 warps."""
    table, sums = np.arange(1 << 16, dtype=np.uint32), np.zeros(32 * warps, np.uint32)

    def expected(arrays: Arrays) -> Array:
        thread = np.arange(32 * warps, dtype=np.uint32)[:, None]
        turn, by = np.arange(1, TURNS + 1, dtype=np.uint32), np.uint32(1664525)
        return arrays[0][((thread * by + turn) * by) >> np.uint32(16)].sum(1, dtype=np.uint32)

    parameters: list[object] = [table, sums, TURNS]
    return Launch(GATHER, [table, sums], parameters, _blocks(warps), expected, warps=warps)


def together(warps: int) -> Launch:
    """All lanes of a warp store one value to one place."""
    sums = np.zeros(32 * warps, np.uint32)

    def expected(arrays: Arrays) -> Array:
        return np.full(len(arrays[0]), TURNS * (TURNS + 1) // 2, np.uint32)

    return Launch(TOGETHER, [sums], [sums, TURNS], _blocks(warps), expected, warps=warps)


def _blocks(warps: int) -> dict[str, object]:
    """Options of so many warps in blocks of up to 8, all on the machine together."""
    threads = 32 * min(warps, WARPS_OF_A_BLOCK)
    return {**_options((32 * warps // threads,), threads), "resident": warps}


def _compiled(
    kernel: Any,
    arrays: Arrays,
    expected: Callable[[Arrays], Array],
    scalars: tuple[object, ...] = (),
) -> Launch:
    """A launch of a compiled kernel, as `Kernel.__call__` makes it on the emulator."""
    values = (*arrays, *scalars)
    grid = kernel.grid(kernel.sizes(values), kernel.resident("emulator"))
    options = {
        "entry": kernel.name,
        "grid": grid,
        "block": kernel.block,
        "cluster": kernel.cluster,
        "shared": kernel.shared,
    }
    return Launch(kernel.ptx, arrays, kernel.parameters(values), options, expected)


def _options(grid: tuple[int, ...], threads: int, shared: int = 0) -> dict[str, object]:
    return {"grid": grid, "block": (threads,), "shared": shared}


def _matrices(size: int) -> Arrays:
    """A and B of normal(0, 1) in f16, and C of zeros."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    return [a, b, np.zeros((size, size), np.float32)]


def _product(arrays: Arrays) -> Array:
    return _wide(arrays[0]) @ _wide(arrays[1])


def _wide(array: Array) -> npt.NDArray[np.float64]:
    return array.astype(np.float64)


def _numbers(count: int) -> Arrays:
    """So many numbers below 256, and their counts, all zero."""
    x = np.random.default_rng(0).integers(0, 256, count).astype(np.int32)
    return [x, np.zeros(256, np.int32)]


def _counts(arrays: Arrays) -> Array:
    return np.bincount(arrays[0], minlength=256)
