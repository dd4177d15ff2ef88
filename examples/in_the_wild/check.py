"""Kernels of public projects, launched from their PTX, with every check on.

docs/in-the-wild.md says what is found, and how to get the PTX of each:

    python examples/in_the_wild/check.py softmax4 softmax.ptx
    python examples/in_the_wild/check.py layernorm9 layernorm.ptx
    python examples/in_the_wild/check.py matmul12 matmul.ptx
    python examples/in_the_wild/check.py marlin marlin.ptx
    python examples/in_the_wild/check.py cute-wgmma wgmma_sm90.ptx
    python examples/in_the_wild/check.py triton-device gemm.ptx

Without arguments it checks the small kernels beside this file: each has the parameters of one of
those and the same fault, in our own words.

    python examples/in_the_wild/check.py
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fragir.emulator import EmulationError, Finding, TensorMap, run

Array = npt.NDArray[Any]
HERE = Path(__file__).parent
# As `fragir check`: as late and as early as the copies may come, and two other orders of the warps.
SCHEDULES: tuple[tuple[Literal["late", "early", "random"], int | None], ...] = (
    ("late", None),
    ("early", None),
    ("random", 1),
    ("random", 2),
)


@dataclass(frozen=True)
class Launch:
    """How a kernel is started: a part of its name, and what the project's own host code gives it,
    with sizes that are as small as the kernel allows."""

    entry: str
    arguments: Sequence[object]
    grid: tuple[int, ...]
    block: int
    shared: int
    cluster: int = 1


def bf16(values: Array) -> Array:
    """The upper half of f32: enough for numbers whose values do not matter."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def softmax(rng: np.random.Generator) -> Launch:
    """llm.c, dev/cuda/softmax_forward.cu: (out, inp, N, C), a float for every warp."""
    rows, columns, block = 2, 256, 128
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    arguments = [np.zeros_like(x), x, rows, columns]
    return Launch("softmax_forward_kernel4", arguments, (rows,), block, block // 32 * 4)


def layernorm(rng: np.random.Generator, kernel: int) -> Launch:
    """llm.c, dev/cuda/layernorm_backward.cu: (dinp, dweight, dbias, scratch, dout, inp, weight,
    mean, rstd, B, T, C); the launchers' shared memory for two warps."""
    b, t, c, block, blocks = 2, 4, 256, 64, 2
    rows = b * t
    outputs = [np.zeros(shape, np.uint16) for shape in ((rows, c), (c,), (c,))]
    scratch = np.zeros(32 + 2 * c * blocks, np.float32)  # a flag in a line of its own
    shapes = ((rows, c), (rows, c), (c,), (rows,), (rows,))
    inputs = [bf16(rng.standard_normal(shape)) for shape in shapes]
    floats = 2 * c + 2 * block + 1 if kernel == 9 else 2 * c + 2 * (block - 32) * 4
    arguments = [*outputs, scratch, *inputs, b, t, c]
    return Launch(f"layernorm_backward_kernel{kernel}", arguments, (blocks,), block, floats * 4)


def matmul(rng: np.random.Generator, kernel: int) -> Launch:
    """fast.cu, examples/matmul/matmul_8.cuh to matmul_12.cuh: the first cluster of two blocks.

    C is stored by columns. Kernels 8 to 10 count their tiles, 2048 x 2048 at least, and one is this
    cluster's; 11 and 12 are told theirs by a list, here two.
    """
    listed = kernel > 10
    m, n, k = (256, 512, 256) if listed else (2048, 2048, 256)
    a, b = (bf16(rng.integers(-3, 4, (side, k))) for side in (m, n))
    c = np.zeros((n, m), np.uint16)
    maps = [_chunks(a, (1, 128, 64), 128), _chunks(b, (1, 256, 64), 128)]
    stages = 3 * 2 * 64 * (128 + 256)
    if kernel < 10:
        shared = stages
        arguments: list[object] = [m, n, k, c, *maps]
    else:
        c_map = _chunks(c, (1, 256, 72) if kernel == 12 else (2, 256, 64))
        arguments = [m, n, k, c_map, *maps]
        shared = stages + 2 * 256 * (144 if kernel == 12 else 128) + 6 * 8
    if listed:
        places = np.full((64, 128), -1, np.int32)
        places[0, :2] = 0, 1  # row << 16 | column, of tiles of a cluster
        arguments.append(places)
        shared += places[0].nbytes
    # up to a multiple of 128, the struct's alignment
    return Launch(f"matmulKernel{kernel}", arguments, (2,), 384, -(-shared // 128) * 128, 2)


def _chunks(matrix: Array, box: tuple[int, int, int], swizzle: Literal[0, 128] = 0) -> TensorMap:
    """fast.cu's maps of bf16: (columns / 64, rows, 64)."""
    rows, columns = matrix.shape
    shape, strides = (columns // 64, rows, 64), (128, 2 * columns, 2)
    return TensorMap(matrix, box, swizzle, strides=strides, shape=shape, kind="bf16")


def marlin(rng: np.random.Generator) -> Launch:
    """marlin/marlin_cuda_kernel.cu: (A, B, C, s, m, n, k, locks). Batch 32, groups of 128, tiles of
    64 of K in four stages; two blocks, each with two column slices of its own."""
    m, n, k = 32, 512, 1024
    a = rng.integers(-2, 3, (m, k)).astype(np.float16)
    b = rng.integers(0, 2**32, (k // 16, n * 16 // 8), np.uint32)
    s = rng.integers(1, 5, (k // 128, n)).astype(np.float16)
    c, locks = np.zeros((m, n), np.float16), np.zeros(n // 128 * 16, np.int32)
    entry = "MarlinILi256ELi2ELi16ELi4ELi4ELi8E"
    return Launch(entry, [a, b, c, s, m, n, k, locks], (2,), 256, 96 * 1024)


def cute(rng: np.random.Generator) -> Launch:
    """CUTLASS, examples/cute/tutorial/hopper/wgmma_sm90.cu, the NT product: (sizes, tile, A, its
    pitch, layout and copy, B and its three, C, its pitch, the product, alpha, beta). What has a
    type and no value is a byte; the product says that it adds to its accumulators."""
    m, n, k = 128, 128, 256
    a, b = (rng.integers(-2, 3, (k, side)).astype(np.float16) for side in (m, n))
    c, empty = np.zeros((n, m), np.float16), bytes(1)
    sizes, adds = np.int32([m, n, k]).tobytes(), np.int32([1, 1]).tobytes()
    numbers = [np.float16(x).tobytes() for x in (1, 0)]
    operands = [[x, np.int32(x.shape[1]).tobytes(), empty, empty] for x in (a, b)]
    arguments = [sizes, empty, *operands[0], *operands[1], c, np.int32(m).tobytes(), adds, *numbers]
    return Launch("gemm_device", arguments, (1, 1), 128, 3 * 2 * (128 + 128) * 64)


def triton(rng: np.random.Generator, descriptors: Literal["device", "host"]) -> Launch:
    """examples/in_the_wild/triton_gemm.py: one tile of 128 x 64. Behind the arguments come
    Triton's own: scratch memory (for tensor maps made on the device) and the profiler's."""
    m, n, k = 128, 64, 128
    a, b = (rng.integers(-3, 4, (side, k)).astype(np.float16) for side in (m, n))
    c, scratch = np.zeros((m, n), np.float32), np.zeros(4096, np.uint8)
    if descriptors == "device":
        arguments: list[object] = [a, b, c, m, n, k, scratch, None]
    else:  # Triton's launcher passes the map, the shape and the strides of each
        maps = [(TensorMap(x, (len(x), 64), 128), *x.shape, k, 1) for x in (a, b)]
        arguments = [*maps[0], *maps[1], c, n, k, None, None]
    return Launch("gemm", arguments, (1,), 384, 227 * 1024)


CASES: dict[str, Callable[[np.random.Generator], Launch]] = {
    "softmax4": softmax,
    **{f"layernorm{kernel}": partial(layernorm, kernel=kernel) for kernel in (9, 10)},
    **{f"matmul{kernel}": partial(matmul, kernel=kernel) for kernel in range(8, 13)},
    "marlin": marlin,
    "cute-wgmma": cute,
    "triton-device": partial(triton, descriptors="device"),
    "triton-host": partial(triton, descriptors="host"),
}
STAND_INS = {
    "softmax4": "shared_maximum.ptx",
    "layernorm9": "last_block.ptx",
    "matmul12": "remote_arrival.ptx",
    "marlin": "stage_refilled.ptx",
    "cute-wgmma": "own_copies.ptx",
    "triton-device": "two_halves.ptx",
}


def findings(case: str, ptx: str) -> list[Finding]:
    """What the checks find under all schedules, each place once; what stops a run comes last."""
    found: dict[tuple[object, ...], Finding] = {}
    for asynchrony, schedule in SCHEDULES:
        launch = CASES[case](np.random.default_rng(0))
        entry = _entry(launch.entry, ptx)
        required = re.search(rf"{entry}\([^{{]*\.reqntid\s+(\d+)", ptx)
        try:
            report = run(
                ptx,
                entry,
                arguments=launch.arguments,
                grid=launch.grid,
                block=(int(required[1]) if required else launch.block,),
                cluster=(launch.cluster,),
                shared=launch.shared,
                schedule=schedule,
                asynchrony=asynchrony,
                check=True,
            )
        except EmulationError as error:
            if error.report is None:  # the launch is wrong, not the kernel
                sys.exit(str(error))
            report = error.report
            stop = Finding(error.kind, error.message, line=error.line)
            found.setdefault((stop.kind, stop.line), stop)
        for finding in report.findings:
            key = (finding.kind, finding.line, finding.subject)
            found.setdefault(key, finding)
    return list(found.values())


def _entry(part: str, ptx: str) -> str:
    """The kernel in whose name, which C++ mangles, this part is."""
    names = re.findall(r"\.entry\s+(\w+)", ptx)
    for name in names:
        if re.search(rf"{part}(?!\d)", name):
            return name
    return sys.exit(f"there is no kernel {part} in this PTX, but {', '.join(names) or 'none'}")


def show(case: str, ptx: str) -> None:
    """The first finding of every kind and severity, and how many there are."""
    found = findings(case, ptx)
    number = Counter((finding.severity, finding.kind) for finding in found)
    for finding in sorted(found, key=lambda finding: finding.severity):
        severity, kind = finding.severity, finding.kind
        if more := number.pop((severity, kind), 0):
            others = f" (and {more - 1} like it)" if more > 1 else ""
            print(f"{severity}, {kind}{others}\n  line {finding.line}: {finding.message}")
    if not found:
        print("nothing is found")


def main(words: Sequence[str]) -> None:
    if not words:
        for case, name in STAND_INS.items():
            print(f"{name}, launched as {case}")
            show(case, (HERE / name).read_text("utf-8"))
    elif len(words) == 2 and words[0] in CASES:
        show(words[0], Path(words[1]).read_text("utf-8"))
    else:
        sys.exit(f"usage: check.py [CASE FILE.ptx], where CASE is one of {', '.join(CASES)}")


if __name__ == "__main__":
    main(sys.argv[1:])
