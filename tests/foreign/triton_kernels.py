"""Kernels in Triton, and their PTX: run by a Python that has Triton; needs no GPU.

    python tests/foreign/triton_kernels.py FOLDER [NAME.TARGET ...]

Writes NAME.TARGET.ptx and, for a launch, `launches.json`: the entry, its warps, the bytes of shared
memory and of global scratch memory for a program, the boxes of tensor maps. Without names,
everything for every target.
"""

# Triton is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, at < n) + tl.load(b + at, at < n), at < n)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    values = tl.load(x + row + at, at < columns, -float("inf"))
    e = tl.exp(values - tl.max(values, 0))
    tl.store(y + row + at, e / tl.sum(e, 0), at < columns)


@triton.jit
def layer_norm(x, weight, bias, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row + at, at < columns, 0.0)
    mean = tl.sum(total, 0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        d = tl.where(at < columns, tl.load(x + row + at, at < columns, 0.0) - mean, 0.0)
        squares += d * d
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = (tl.load(x + row + at, at < columns) - mean) * scale
        v = v * tl.load(weight + at, at < columns) + tl.load(bias + at, at < columns)
        tl.store(y + row + at, v, at < columns)


@triton.jit
def gemm(a, b, c, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr,
         ACC: tl.constexpr):  # fmt: skip
    rows = tl.program_id(1) * TM + tl.arange(0, TM)
    cols = tl.program_id(0) * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    at_a = a + rows[:, None] * k + depth[None, :]
    at_b = b + depth[:, None] * n + cols[None, :]
    total = tl.zeros((TM, TN), ACC)
    for s in range(0, k, TK):
        x = tl.load(at_a, (rows[:, None] < m) & (depth[None, :] < k - s), 0.0)
        y = tl.load(at_b, (depth[:, None] < k - s) & (cols[None, :] < n), 0.0)
        total = tl.dot(x, y, total, out_dtype=ACC)
        at_a += TK
        at_b += TK * n
    tl.store(
        c + rows[:, None] * n + cols[None, :], total, (rows[:, None] < m) & (cols[None, :] < n)
    )


@triton.jit
def gemm_tma(a, b, c, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    """A, B (n x k) and C through tensor maps that the host has made."""
    row, col = tl.program_id(1) * TM, tl.program_id(0) * TN
    total = tl.zeros((TM, TN), tl.float32)
    for s in range(0, k, TK):
        total = tl.dot(a.load([row, s]), b.load([col, s]).T, total)
    c.store([row, col], total.to(tl.float16))


@triton.jit
def gemm_special(a, b, c, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    """Some warps copy, others multiply."""
    row, col = tl.program_id(1) * TM, tl.program_id(0) * TN
    total = tl.zeros((TM, TN), tl.float32)
    for s in tl.range(0, k, TK, warp_specialize=True):
        total = tl.dot(a.load([row, s]), b.load([col, s]).T, total)
    rows, cols = row + tl.arange(0, TM), col + tl.arange(0, TN)
    tl.store(c + rows[:, None] * n + cols[None, :], total)


@triton.jit
def gemm_persistent(a, b, c, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr,
                    PROGRAMS: tl.constexpr):  # fmt: skip
    """Tensor maps made on the device, and several tiles for a program."""
    da = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TM, TK])
    db = tl.make_tensor_descriptor(b, [n, k], [k, 1], [TN, TK])
    dc = tl.make_tensor_descriptor(c, [m, n], [n, 1], [TM, TN])
    columns = tl.cdiv(n, TN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, TM) * columns, PROGRAMS, flatten=True):
        row, col = tile // columns * TM, tile % columns * TN
        total = tl.zeros((TM, TN), tl.float32)
        for s in range(0, k, TK):
            total = tl.dot(da.load([row, s]), db.load([col, s]).T, total)
        dc.store([row, col], total)


@triton.jit
def attention(q, k, v, out, keys, scale, TM: tl.constexpr, TN: tl.constexpr, D: tl.constexpr,
              CAUSAL: tl.constexpr):  # fmt: skip
    """One head of flash attention; a program for TM queries."""
    rows = tl.program_id(0) * TM + tl.arange(0, TM)
    depth, cols = tl.arange(0, D), tl.arange(0, TN)
    queries = tl.load(q + rows[:, None] * D + depth[None, :])
    top = tl.full((TM,), -float("inf"), tl.float32)
    sums = tl.zeros((TM,), tl.float32)
    total = tl.zeros((TM, D), tl.float32)
    last = (tl.program_id(0) + 1) * TM if CAUSAL else keys
    for s in range(0, last, TN):
        there = s + cols < keys
        x = tl.load(k + (s + cols)[None, :] * D + depth[:, None], there[None, :], 0.0)
        scores = tl.dot(queries, x) * scale
        keep = there[None, :] & (rows[:, None] >= (s + cols)[None, :]) if CAUSAL else there[None, :]
        scores = tl.where(keep, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - higher[:, None])
        old = tl.exp2(top - higher)
        sums = sums * old + tl.sum(p, 1)
        y = tl.load(v + (s + cols)[:, None] * D + depth[None, :], there[:, None], 0.0)
        total = tl.dot(p.to(tl.float16), y, total * old[:, None])
        top = higher
    tl.store(out + rows[:, None] * D + depth[None, :], total / sums[:, None])


@triton.jit
def gemm_scaled(a, b, c, sa, sb, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr,
                KIND: tl.constexpr, PER: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """A[m, k] times B[n, k], PER elements a byte, with a scale for BLOCK of them along k."""
    rows = tl.program_id(1) * TM + tl.arange(0, TM)
    cols = tl.program_id(0) * TN + tl.arange(0, TN)
    depth, scales = tl.arange(0, TK // PER), tl.arange(0, TK // BLOCK)
    total = tl.zeros((TM, TN), tl.float32)
    for s in range(0, k, TK):
        x = tl.load(a + rows[:, None] * (k // PER) + (s // PER + depth)[None, :])
        y = tl.load(b + cols[:, None] * (k // PER) + (s // PER + depth)[None, :])
        fx = tl.load(sa + rows[:, None] * (k // BLOCK) + (s // BLOCK + scales)[None, :])
        fy = tl.load(sb + cols[:, None] * (k // BLOCK) + (s // BLOCK + scales)[None, :])
        total = tl.dot_scaled(x, fx, KIND, y.T, fy, KIND, total)
    tl.store(c + rows[:, None] * n + cols[None, :], total)


@triton.jit
def atomic_sum(x, out, most, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, 0.0)
    tl.atomic_add(out, tl.sum(v, 0))
    tl.atomic_max(most, tl.max(v, 0))


@triton.jit
def scattered(where, x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(where + at, at < n, 0), tl.load(x + at, at < n, 0), at < n)


@triton.jit
def collatz(x, steps):
    at = tl.program_id(0)
    v = tl.load(x + at)
    count = 0
    while v != 1:
        v = tl.where(v % 2 == 0, v // 2, 3 * v + 1)
        count += 1
    tl.store(steps + at, count)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def scan(x, y, z, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + at)
    tl.store(y + at, tl.cumsum(v, 1))
    tl.store(z + at, tl.associative_scan(v, 0, plus, reverse=True))


@triton.jit
def sort(x, y, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(y + at, tl.sort(tl.load(x + at), 1))


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, at < n, 0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def extremes(x, values, places, COLUMNS: tl.constexpr):
    """The largest and the smallest of each row, and where they are."""
    row = tl.program_id(0)
    v = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS))
    tl.store(values + row * 2, tl.max(v, 0))
    tl.store(values + row * 2 + 1, tl.min(v, 0))
    tl.store(places + row * 2, tl.argmax(v, 0))
    tl.store(places + row * 2 + 1, tl.argmin(v, 0))


@triton.jit
def turned(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, cols = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    v = tl.load(x + rows[:, None] * COLUMNS + cols[None, :])
    tl.store(y + cols[:, None] * ROWS + rows[None, :], tl.trans(v))


@dataclass(frozen=True)
class Made:
    """One specialisation: types of the arguments, constants, warps, stages."""

    function: Any
    types: str
    constants: dict[str, Any] = field(default_factory=dict)
    targets: tuple[int, ...] = (80, 90)
    warps: int = 4
    stages: int = 3

    def signature(self) -> dict[str, str]:
        names = self.function.arg_names
        given = dict(zip(names, self.types.split(), strict=False))
        return given | dict.fromkeys(self.constants, "constexpr")


def tiles(m: int, n: int, k: int, **more: Any) -> dict[str, Any]:
    return {"TM": m, "TN": n, "TK": k, **more}


F32 = {"ACC": tl.float32}
ALL = (75, 80, 89, 90, 100, 120)
KERNELS = {
    "vector_add": Made(vector_add, "*fp32 *fp32 *fp32 i32", {"BLOCK": 256}, ALL),
    "softmax": Made(softmax, "*fp32 *fp32 i32", {"BLOCK": 256}, ALL),
    "layer_norm": Made(layer_norm, "*fp32 *fp32 *fp32 *fp32 i32 fp32", {"BLOCK": 128}, ALL),
    "gemm": Made(gemm, "*fp16 *fp16 *fp32 i32 i32 i32", tiles(64, 64, 32) | F32, ALL),
    "gemm_bf16": Made(
        gemm, "*bf16 *bf16 *fp32 i32 i32 i32", tiles(64, 64, 64) | F32, (80, 90, 120)
    ),
    "gemm_tf32": Made(gemm, "*fp32 *fp32 *fp32 i32 i32 i32", tiles(32, 32, 32) | F32, (80, 90)),
    "gemm_int8": Made(gemm, "*i8 *i8 *i32 i32 i32 i32", tiles(64, 64, 64, ACC=tl.int32), (80, 90)),
    "gemm_fp8": Made(
        gemm, "*fp8e4nv *fp8e4nv *fp32 i32 i32 i32", tiles(64, 64, 64) | F32, (89, 90, 100, 120)
    ),
    "gemm_tma": Made(
        gemm_tma,
        "tensordesc<fp16[128,64]> tensordesc<fp16[64,64]> tensordesc<fp16[128,64]> i32 i32",
        tiles(128, 64, 64),
        (90, 100),
    ),
    "gemm_special": Made(
        gemm_special,
        # of 128 rows Triton 3.6 makes two halves for two warpgroups, and stores the second of them
        # 128 rows below the first
        "tensordesc<fp16[64,64]> tensordesc<fp16[128,64]> *fp32 i32 i32",
        tiles(64, 128, 64),
        (90, 100),
    ),
    "gemm_persistent": Made(
        gemm_persistent,
        "*fp16 *fp16 *fp32 i32 i32 i32",
        tiles(128, 64, 64, PROGRAMS=2),
        (90, 100),
    ),
    "attention": Made(
        attention,
        "*fp16 *fp16 *fp16 *fp32 i32 fp32",
        {"TM": 64, "TN": 32, "D": 64, "CAUSAL": False},
        (80, 90, 120),
        stages=2,
    ),
    "attention_causal": Made(
        attention,
        "*fp16 *fp16 *fp16 *fp32 i32 fp32",
        {"TM": 64, "TN": 64, "D": 32, "CAUSAL": True},
        stages=2,
    ),
    "attention_wide": Made(
        attention,
        "*fp16 *fp16 *fp16 *fp32 i32 fp32",
        {"TM": 128, "TN": 64, "D": 64, "CAUSAL": False},
        (100,),
        stages=2,
    ),
    **{
        f"gemm_{name}": Made(
            gemm_scaled,
            f"{elements} {elements} *fp32 {scales} {scales} i32 i32",
            tiles(128, 128, 128, KIND=kind, PER=per, BLOCK=block),
            (100,),
        )
        for name, elements, scales, kind, per, block in (
            ("mxfp8", "*fp8e4nv", "*u8", "e4m3", 1, 32),
            ("mxfp4", "*u8", "*u8", "e2m1", 2, 32),
            ("nvfp4", "*u8", "*fp8e4nv", "e2m1", 2, 16),
        )
    },
    "atomic_sum": Made(atomic_sum, "*fp32 *fp32 *fp32 i32", {"BLOCK": 512}, ALL),
    "scattered": Made(scattered, "*i32 *i32 *i32 i32", {"BLOCK": 128}, ALL),
    "collatz": Made(collatz, "*i32 *i32", warps=1),
    "scan": Made(scan, "*i32 *i32 *i32", {"ROWS": 16, "BLOCK": 64}),
    "sort": Made(sort, "*i32 *i32", {"ROWS": 4, "BLOCK": 64}),
    "histogram": Made(histogram, "*i32 *i32 i32", {"BLOCK": 512, "BINS": 32}),
    "extremes": Made(extremes, "*fp32 *fp32 *i32", {"COLUMNS": 256}),
    "turned": Made(turned, "*fp16 *fp16", {"ROWS": 64, "COLUMNS": 32}),
}


def without_ptxas(*given: Any) -> tuple[str, str] | None:
    """What Triton 3.6 calls with its backend and stages, and 3.9 also without, for a key."""
    if not given:
        return "no ptxas", "no ptxas"
    given[1]["cubin"] = lambda *_: b""
    return None


def compiled(made: Made, target: int) -> tuple[str, dict[str, Any]]:
    """The PTX and how it is launched."""
    signature = made.signature()
    divisible = {
        (i,): [["tt.divisibility", 16]]
        for i, kind in enumerate(signature.values())
        if kind.startswith("*") or (kind == "i32" and made.function in (gemm, gemm_persistent))
    }
    kernel = triton.compile(
        ASTSource(made.function, signature, made.constants, divisible),
        target=GPUTarget("cuda", target, 32),
        options={"num_warps": made.warps, "num_stages": made.stages},
    )
    meta = kernel.metadata
    launch = {
        "entry": meta.name,
        "shared": meta.shared,
        "warps": meta.num_warps,
        "scratch": meta.global_scratch_size,
    }
    if meta.tensordesc_meta:
        # what the driver is asked for: enumerators 0 to 3 are swizzles of 0, 32, 64, 128 bytes
        launch["maps"] = [
            {"box": m["block_size"], "swizzle": (0, 32, 64, 128)[m["swizzle"]]}
            for m in meta.tensordesc_meta
        ]
    return kernel.asm["ptx"], launch


def main() -> None:
    folder, *names = sys.argv[1:]
    triton.knobs.compilation.always_compile = True
    triton.knobs.runtime.add_stages_inspection_hook = without_ptxas
    kept = Path(folder, "launches.json")
    launches: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    every = [(n, t) for n, made in KERNELS.items() for t in made.targets]
    for name, target in every:
        title = f"{name}.sm_{target}"
        if names and title not in names:
            continue
        try:
            text, launches[title] = compiled(KERNELS[name], target)
        except Exception as error:
            print(f"{title}: {type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
            continue
        Path(folder, f"{title}.ptx").write_text(text, "utf-8")
    text = json.dumps(launches, indent=1, sort_keys=True)
    kept.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
