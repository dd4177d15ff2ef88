"""Compiles Triton's kernels to cubins, in an environment of its own and without a GPU.

Requests are lines of JSON on stdin: `kernel`, a function below; `signature`, the types of its
arguments, as in `{"a": "*bf16:16", "eps": "fp32"}`, with `:16` for addresses and numbers that are
multiples of 16, and `tensordesc<bf16[128,64]>` for tensor maps; `constants`; `warps`, `stages`,
`target` (80 or 90). Or `ttgir`, the text of a module, and `target`: the passes of that stage do
not run on it.

An answer has `cubin`, made by Triton's own ptxas, and `ptx`, both in base 64; `entry`; bytes of
`shared` memory; `warps`; `scratch`, how many pointers to memory of Triton's own stand behind the
arguments, none of which is used; `maps`, the `box` and `swizzle` (bytes) of each tensor map, which
is followed by its sizes (i32) and strides (i64), in elements; `triton`, the version; `options`. Or
`error`, also for kernels that do need memory of Triton's own.
"""

# Triton is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportIndexIssue=false
# pyright: reportFunctionMemberAccess=false

from __future__ import annotations

import base64
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_attention import attention, dkdv, dq

# Products: tiles divide sizes ---------------------------------------------------------------------


@triton.jit
def place(number, M: tl.constexpr, N: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr,
          GROUP: tl.constexpr):  # fmt: skip
    """Row and column of a tile: GROUP rows of tiles, one column after the other."""
    width = GROUP * (N // TN)
    first = number // width * GROUP
    height = min(M // TM - first, GROUP)
    return (first + number % width % height) * TM, number % width // height * TN


@triton.jit
def gemm(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr,
         TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """C = A B, a tile a program, through pointers; TURNED: B lies as N x K."""
    row, column = place(tl.program_id(0), M, N, TM, TN, GROUP)
    i, j, depth = row + tl.arange(0, TM), column + tl.arange(0, TN), tl.arange(0, TK)
    at_a = a + i[:, None] * K + depth[None, :]
    if TURNED:
        at_b = b + depth[:, None] + j[None, :] * K
    else:
        at_b = b + depth[:, None] * N + j[None, :]
    total = tl.zeros((TM, TN), tl.float32)
    for _ in range(0, K, TK):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += TK
        at_b += TK if TURNED else TK * N
    tl.store(c + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty))


@triton.jit
def gemm_maps(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr,
              TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, GROUP: tl.constexpr,
              PROGRAMS: tl.constexpr):  # fmt: skip
    """As `gemm`, by TMA; a program takes each PROGRAMS-th tile."""
    for number in tl.range(
        tl.program_id(0), M // TM * (N // TN), PROGRAMS, flatten=PROGRAMS < M // TM * (N // TN)
    ):
        row, column = place(number, M, N, TM, TN, GROUP)
        total = tl.zeros((TM, TN), tl.float32)
        for k in range(0, K, TK):
            x = a.load([row, k])
            y = b.load([column, k]).T if TURNED else b.load([k, column])
            total = tl.dot(x, y, total)
        c.store([row, column], total.to(c.dtype))


# Rows: a program each; TILE is a power of two -----------------------------------------------------


@triton.jit
def softmax(x, y, COLUMNS: tl.constexpr, TILE: tl.constexpr):
    """Rows that are longer than a tile are read twice."""
    j = tl.arange(0, TILE)
    at = tl.program_id(0).to(tl.int64) * COLUMNS + j
    if COLUMNS <= TILE:
        v = tl.load(x + at, j < COLUMNS, -float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), j < COLUMNS)
    else:
        top, total = largest_and_sum(x + at, COLUMNS, TILE)
        for t in range(0, COLUMNS, TILE):
            v = tl.load(x + at + t, t + j < COLUMNS, 0.0).to(tl.float32)
            e = tl.exp(v - top) / total
            tl.store(y + at + t, e.to(y.dtype.element_ty), t + j < COLUMNS)


@triton.jit
def largest_and_sum(at, COLUMNS: tl.constexpr, TILE: tl.constexpr):
    """The largest of a row and the sum of e^(x - largest), each lane with its own until the end."""
    j = tl.arange(0, TILE)
    tops = tl.full((TILE,), -3.4028235e38, tl.float32)
    totals = tl.zeros((TILE,), tl.float32)
    for t in range(0, COLUMNS, TILE):
        v = tl.load(at + t, t + j < COLUMNS, -float("inf")).to(tl.float32)
        higher = tl.maximum(tops, v)
        totals = totals * tl.exp(tops - higher) + tl.exp(v - higher)
        tops = higher
    top = tl.max(tops, 0)
    return top, tl.sum(totals * tl.exp(tops - top), 0)


@triton.jit
def cross_entropy(x, targets, losses, logsums, ignored, COLUMNS: tl.constexpr,
                  TILE: tl.constexpr):  # fmt: skip
    """The loss of each row and the logarithm of its sum of e^x, as in examples/rows."""
    row = tl.program_id(0)
    at = x + row.to(tl.int64) * COLUMNS
    top, total = largest_and_sum(at + tl.arange(0, TILE), COLUMNS, TILE)
    logsum = top + tl.log(total)
    target = tl.load(targets + row)
    counts = target != ignored
    found = tl.load(at + target, counts, 0.0).to(tl.float32)
    tl.store(losses + row, tl.where(counts, logsum - found, 0.0))
    tl.store(logsums + row, logsum)


@triton.jit
def layer_norm(x, gamma, beta, y, means, rstds, eps, COLUMNS: tl.constexpr, TILE: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, TILE)
    at, inside = row.to(tl.int64) * COLUMNS + j, j < COLUMNS
    v = tl.load(x + at, inside, 0.0).to(tl.float32)
    mean = tl.sum(v, 0) / COLUMNS
    d = tl.where(inside, v - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, 0) / COLUMNS + eps)
    r = d * rstd * tl.load(gamma + j, inside, 0.0) + tl.load(beta + j, inside, 0.0)
    tl.store(y + at, r.to(y.dtype.element_ty), inside)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)


@triton.jit
def rms_norm(x, gamma, y, rstds, eps, COLUMNS: tl.constexpr, TILE: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, TILE)
    at, inside = row.to(tl.int64) * COLUMNS + j, j < COLUMNS
    v = tl.load(x + at, inside, 0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(v * v, 0) / COLUMNS + eps)
    r = v * rstd * tl.load(gamma + j, inside, 0.0)
    tl.store(y + at, r.to(y.dtype.element_ty), inside)
    tl.store(rstds + row, rstd)


@triton.jit
def transpose(x, y, M: tl.constexpr, N: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr):
    """y = x transposed, x of M x N; programs as tiles of x: columns, then rows."""
    i = tl.program_id(1) * TM + tl.arange(0, TM)
    j = tl.program_id(0) * TN + tl.arange(0, TN)
    inside = (i < M)[:, None] & (j < N)[None, :]
    v = tl.load(x + i[:, None].to(tl.int64) * N + j[None, :], inside)
    tl.store(y + j[:, None].to(tl.int64) * M + i[None, :], v.T, inside.T)


FUNCTIONS = {
    function.__name__: function
    for function in (gemm, gemm_maps, softmax, cross_entropy, layer_norm, rms_norm, transpose,
                     attention, dkdv, dq)
}  # fmt: skip

# Answers ------------------------------------------------------------------------------------------


def compiled(request: dict[str, Any]) -> tuple[Any, int]:
    """The kernel, and how many parameters its arguments are."""
    target = GPUTarget("cuda", request["target"], 32)
    if "ttgir" in request:
        with tempfile.TemporaryDirectory(prefix="fragir-bench-") as folder:
            path = Path(folder, "kernel.ttgir")
            path.write_text(request["ttgir"], "utf-8")
            kernel = triton.compile(str(path), target=target)
        listed = re.search(r"tt\.func public @\w+\((.*?)\)", request["ttgir"], re.S)
        return kernel, listed[1].count("%") if listed else 0
    function, constants = FUNCTIONS[request["kernel"]], request["constants"]
    names = list(function.arg_names)
    types: dict[str, str] = request["signature"]
    if wrong := (set(names) ^ types.keys()) ^ constants.keys():
        raise ValueError(f"neither types nor constants, or both, or no arguments: {sorted(wrong)}")
    signature = {name: types.get(name, "constexpr").removesuffix(":16") for name in names}
    aligned = {
        (names.index(name),): [["tt.divisibility", 16]]
        for name, kind in types.items()
        if kind.endswith(":16")
    }
    kernel = triton.compile(
        ASTSource(function, signature, constants, aligned),
        target=target,
        options={"num_warps": request["warps"], "num_stages": request["stages"]},
    )
    # a tensor map of d dimensions is followed by d sizes and d strides
    maps = [kind for kind in types.values() if kind.startswith("tensordesc")]
    return kernel, len(types) + sum(2 * (kind.count(",") + 1) for kind in maps)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    kernel, count = compiled(request)
    data, ptx = kernel.metadata, kernel.asm["ptx"]
    needed = data.global_scratch_size, data.profile_scratch_size
    if any(needed):
        raise ValueError(f"it needs {max(needed)} bytes of memory of Triton's own")
    parameters = re.findall(r"\.param ([^\n]*)", ptx.partition(".entry")[2].partition(")")[0])
    behind = parameters[count:]
    if len(parameters) < count or not all(one.startswith(".u64 .ptr") for one in behind):
        raise ValueError(f"the PTX has other parameters than {count} arguments: {parameters}")
    cubin, known = kernel.asm["cubin"], ("constants", "warps", "stages")
    return {
        "cubin": base64.b64encode(cubin).decode(),
        "ptx": base64.b64encode(ptx.encode()).decode(),
        "entry": data.name,
        "shared": data.shared,
        "warps": data.num_warps,
        "scratch": len(behind),
        "maps": [
            # 1, 2, 3: rows of 32, 64 and 128 bytes (CUtensorMapSwizzle in cuda.h)
            {"box": list(one["block_size"]), "swizzle": (0, 32, 64, 128)[one["swizzle"]]}
            for one in getattr(data, "tensordesc_meta", None) or ()
        ],
        "triton": triton.__version__,
        "options": {key: request[key] for key in known if key in request},
    }


def main() -> None:
    triton.knobs.compilation.always_compile = True
    triton.knobs.compilation.disable_line_info = True
    # what Triton prints is no answer, and nobody reads it
    answers, nothing = os.fdopen(os.dup(1), "w"), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    for line in sys.stdin:
        try:
            found = answer(json.loads(line))
        except Exception as error:
            found = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:400]}
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
