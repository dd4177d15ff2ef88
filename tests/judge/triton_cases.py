"""What Triton's kernels of tests/foreign are judged by: a function a kernel, called as its PTX."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from fragir.emulator import TensorMap
from fragir.judge import Case, KernelCall

Rng = np.random.Generator
FOLDER = Path(__file__).resolve().parents[1] / "foreign" / "triton_ptx"
LAUNCHES: dict[str, dict[str, Any]] = json.loads((FOLDER / "launches.json").read_text("utf-8"))
f16, f32 = np.float16, np.float32


def call(title: str, arguments: Sequence[object], grid: Sequence[int]) -> KernelCall:
    """Triton's kernels take two more pointers: scratch memory, and the profiler's."""
    made = LAUNCHES[title]
    assert not made["scratch"]
    given, block = [*arguments, None, None], 32 * made["warps"]
    return KernelCall(made["entry"], given, grid=grid, block=block, shared=made["shared"])


def softmaxed(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax(rng: Rng) -> Iterator[Case]:
    for rows, columns in ((5, 250), (2, 256), (1, 1)):
        x = rng.normal(size=(rows, columns)).astype(f32)
        y = np.zeros_like(x)
        yield Case(call("softmax.sm_80", [x, y, columns], (rows,)), [x], [y], softmaxed)


def layer_norm(rng: Rng) -> Iterator[Case]:
    x = (rng.normal(size=(5, 300)) + 3).astype(f32)
    weight, bias = (row.copy() for row in rng.normal(size=(2, 300)).astype(f32))
    y = np.zeros_like(x)

    def reference(x: Any, weight: Any, bias: Any) -> Any:
        apart = x - x.mean(axis=-1, keepdims=True)
        root = np.sqrt((apart * apart).mean(axis=-1, keepdims=True) + float(f32(1e-5)))
        return apart / root * weight + bias

    arguments = [x, weight, bias, y, 300, 1e-5]
    yield Case(call("layer_norm.sm_80", arguments, (5,)), [x, weight, bias], [y], reference)


def product(a: Any, b: Any) -> Any:
    return a @ b


def gemm(rng: Rng, title: str, kind: Any, out: Any = f32, **more: Any) -> Iterator[Case]:
    m, n, k = 80, 48, 176
    tile = 32 if "tf32" in title else 64
    draw = rng.integers(-9, 9, size=(m + n, k)) if out != f32 else rng.normal(size=(m + n, k))
    a, b = draw[:m].astype(kind), draw[m:].T.copy().astype(kind)
    c = np.zeros((m, n), out)
    one = call(title, [a, b, c, m, n, k], (-(-n // tile), -(-m // tile)))
    yield Case(one, [a, b], [c], product, **more)


def gemm_f16(rng: Rng) -> Iterator[Case]:
    yield from gemm(rng, "gemm.sm_80", f16)


def gemm_wgmma(rng: Rng) -> Iterator[Case]:
    yield from gemm(rng, "gemm.sm_90", f16)


def gemm_bf16(rng: Rng) -> Iterator[Case]:
    yield from gemm(rng, "gemm_bf16.sm_80", ml_dtypes.bfloat16)


def gemm_tf32(rng: Rng) -> Iterator[Case]:
    """Inputs are cut off to tf32."""
    yield from gemm(rng, "gemm_tf32.sm_80", f32, working="tf32", sums="tf32")


def gemm_fp8(rng: Rng) -> Iterator[Case]:
    """Tensor cores add products of 8 bits in fewer bits than f32 has."""
    yield from gemm(rng, "gemm_fp8.sm_89", ml_dtypes.float8_e4m3fn, sums="tf32")


def gemm_fp8_in_f32(rng: Rng) -> Iterator[Case]:
    yield from gemm(rng, "gemm_fp8.sm_89", ml_dtypes.float8_e4m3fn)


def gemm_int8(rng: Rng) -> Iterator[Case]:
    yield from gemm(rng, "gemm_int8.sm_80", np.int8, np.int32)


def gemm_fp8_wgmma(rng: Rng) -> Iterator[Case]:
    yield from gemm(rng, "gemm_fp8.sm_90", ml_dtypes.float8_e4m3fn, sums="tf32")


def gemm_special(rng: Rng) -> Iterator[Case]:
    """Warps with roles of their own."""
    m, n, k = 128, 128, 192
    a, b = (rng.normal(size=shape).astype(f16) for shape in ((m, k), (n, k)))
    c = np.zeros((m, n), f32)
    arguments: list[object] = []
    for array, made in zip((a, b), LAUNCHES["gemm_special.sm_90"]["maps"], strict=True):
        rows, columns = array.shape
        tensor_map = TensorMap(array, tuple(made["box"]), made["swizzle"])
        arguments += [tensor_map, rows, columns, columns, 1]

    def reference(a: Any, b: Any) -> Any:
        return a @ b.T

    one = call("gemm_special.sm_90", [*arguments, c, n, k], (1, 2))
    yield Case(one, [a, b], [c], reference)


def gemm_tma(rng: Rng) -> Iterator[Case]:
    m, n, k = 100, 72, 136
    a, b = (rng.normal(size=shape).astype(f16) for shape in ((m, k), (n, k)))
    c = np.zeros((m, n), f16)
    arguments: list[object] = []
    for array, made in zip((a, b, c), LAUNCHES["gemm_tma.sm_90"]["maps"], strict=True):
        rows, columns = array.shape
        tensor_map = TensorMap(array, tuple(made["box"]), made["swizzle"])
        arguments += [tensor_map, rows, columns, columns, 1]

    def reference(a: Any, b: Any) -> Any:
        return a @ b.T

    one = call("gemm_tma.sm_90", [*arguments, n, k], (-(-m // 128) + 1, 2))
    yield Case(one, [a, b], [c], reference)


def attention(rng: Rng) -> Iterator[Case]:
    q = rng.normal(size=(128, 64)).astype(f16)
    k, v = (x.copy() for x in rng.normal(size=(2, 100, 64)).astype(f16))
    out = np.zeros((128, 64), f32)
    scale = float(f32(0.18))

    def reference(q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.T) * scale
        e = np.exp2(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    one = call("attention.sm_80", [q, k, v, out, 100, scale], (2,))
    yield Case(one, [q, k, v], [out], reference, working="f16")


def attention_causal(rng: Rng) -> Iterator[Case]:
    q, k, v = (x.copy() for x in rng.normal(size=(3, 128, 32)).astype(f16))
    out = np.zeros((128, 32), f32)

    def reference(q: Any, k: Any, v: Any) -> Any:
        kept = np.tri(128, 128, dtype=bool)
        scores = np.where(kept, (q @ k.T) * 0.25, -np.inf)
        e = np.exp2(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    one = call("attention_causal.sm_80", [q, k, v, out, 128, 0.25], (2,))
    yield Case(one, [q, k, v], [out], reference, working="f16")
