"""What the kernels of `planted.py` are judged by, where those of `triton_cases.py` do not serve.

Numbers are often near one another, or small at the end of K: ordinary inputs of tests, with which
a tolerance sees little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from fragir.emulator import TensorMap
from fragir.judge import Case, KernelCall
from tests.judge.triton_cases import LAUNCHES, call, product, softmaxed

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
f16, f32 = np.float16, np.float32


def even(rng: Rng, shape: tuple[int, ...], kind: Any, digits: int = 3) -> Array:
    """Numbers from 1 to 1 + 2^-`digits`, which differ by 2^-`digits - 3`."""
    return (1 + rng.integers(0, 8, size=shape) * 2.0 ** -(digits + 3)).astype(kind)


def waning(rng: Rng, a: tuple[int, int], b: tuple[int, int], kind: Any, last: int) -> list[Array]:
    """A and B by rows, of which the `last` of K are 2^-9 times the others."""
    weights = np.where(np.arange(b[0]) < b[0] - last, 1.0, 2.0**-9)[:, None]
    left = rng.integers(-8, 9, size=a) / 8
    right = rng.integers(-8, 9, size=b) / 8 * weights
    return [left.astype(kind), right.astype(kind)]


# -- references -----------------------------------------------------------------------------------


def by_rows(a: Any, b: Any) -> Any:
    return a @ b.T


def halved(a: Any, b: Any) -> Any:
    return 0.5 * (a @ b)


def times_and_more(x: Any, y: Any) -> Any:
    return 2.5 * x + y


def doubled(x: Any, y: Any) -> Any:
    return y + 2 * x


def with_total(x: Any, out: Any) -> Any:
    return out + x.sum()


def turned(x: Any) -> Any:
    return x.T


def scores(q: Any, k: Any) -> Any:
    return softmaxed(q @ k.T)


# -- Triton's --------------------------------------------------------------------------------------


def layer_norm_centred(rng: Rng) -> Iterator[Case]:
    """Rows of which the mean is all but nothing."""
    x = rng.normal(size=(5, 300))
    x = (x - x.mean(-1, keepdims=True) + 0.02).astype(f32)
    weight, bias = (row.copy() for row in rng.normal(size=(2, 300)).astype(f32))

    def launched(arrays: list[Array]) -> KernelCall:
        return call("layer_norm.sm_80", [*arrays, 300, 1e-5], (5,))

    yield normed(x, weight, bias, launched)


def normed(x: Array, weight: Array, bias: Array, launched: Any) -> Case:
    def reference(x: Any, weight: Any, bias: Any) -> Any:
        apart = x - x.mean(axis=-1, keepdims=True)
        root = np.sqrt((apart * apart).mean(axis=-1, keepdims=True) + float(f32(1e-5)))
        return apart / root * weight + bias

    y = np.zeros_like(x)
    return Case(launched([x, weight, bias, y]), [x, weight, bias], [y], reference)


def softmax_even(rng: Rng) -> Iterator[Case]:
    x = (rng.normal(size=(5, 250)) * 0.02).astype(f32)
    y = np.zeros_like(x)
    yield Case(call("softmax.sm_80", [x, y, 250], (5,)), [x], [y], softmaxed)


def triton_product(title: str, a: Array, b: Array, out: Any = f32, **more: Any) -> Case:
    tile = 32 if "tf32" in title else 64
    (m, k), n = a.shape, b.shape[1]
    c = np.zeros((m, n), out)
    one = call(title, [a, b, c, m, n, k], (-(-n // tile), -(-m // tile)))
    return Case(one, [a, b], [c], product, **more)


def gemm_waning(rng: Rng) -> Iterator[Case]:
    yield triton_product("gemm.sm_80", *waning(rng, (80, 176), (176, 48), f16, 16))


def gemm_wgmma_waning(rng: Rng) -> Iterator[Case]:
    yield triton_product("gemm.sm_90", *waning(rng, (80, 176), (176, 48), f16, 16))


def gemm_fp8_waning(rng: Rng) -> Iterator[Case]:
    kind = ml_dtypes.float8_e4m3fn
    a, b = waning(rng, (80, 144), (144, 48), kind, 16)
    a = (a.astype(f32) / 4).astype(kind)
    yield triton_product("gemm_fp8.sm_89", a, b, sums="tf32")


def gemm_int8_waning(rng: Rng) -> Iterator[Case]:
    """Large numbers, and 1 in the last of K."""
    a = rng.integers(50, 100, size=(80, 176)).astype(np.int8)
    b = rng.integers(50, 100, size=(176, 48)).astype(np.int8)
    b[128:] = 1
    yield triton_product("gemm_int8.sm_80", a, b, np.int32)


def gemm_even(rng: Rng) -> Iterator[Case]:
    yield triton_product("gemm.sm_80", even(rng, (80, 176), f16), even(rng, (176, 48), f16))


def gemm_bf16_even(rng: Rng) -> Iterator[Case]:
    kind = ml_dtypes.bfloat16
    yield triton_product("gemm_bf16.sm_80", even(rng, (80, 176), kind), even(rng, (176, 48), kind))


def gemm_tf32_even(rng: Rng) -> Iterator[Case]:
    a, b = even(rng, (80, 176), f32), even(rng, (176, 48), f32)
    yield triton_product("gemm_tf32.sm_80", a, b, working="tf32", sums="tf32")


def gemm_tma_even(rng: Rng) -> Iterator[Case]:
    m, n, k = 100, 72, 136
    a, b, c = even(rng, (m, k), f16), even(rng, (n, k), f16), np.zeros((m, n), f16)
    arguments: list[object] = []
    for array, made in zip((a, b, c), LAUNCHES["gemm_tma.sm_90"]["maps"], strict=True):
        rows, columns = array.shape
        tensor_map = TensorMap(array, tuple(made["box"]), made["swizzle"])
        arguments += [tensor_map, rows, columns, columns, 1]
    one = call("gemm_tma.sm_90", [*arguments, n, k], (-(-m // 128) + 1, 2))
    yield Case(one, [a, b], [c], by_rows, rounding="nearest")


def attention_even(rng: Rng) -> Iterator[Case]:
    """Scores near one another."""
    q = (rng.normal(size=(128, 64)) * 0.004).astype(f16)
    k, v = (x.copy() for x in rng.normal(size=(2, 100, 64)).astype(f16))
    out, scale = np.zeros((128, 64), f32), float(f32(0.18))

    def reference(q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.T) * scale
        e = np.exp2(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    one = call("attention.sm_80", [q, k, v, out, 100, scale], (2,))
    yield Case(one, [q, k, v], [out], reference, working="f16")


def attention_causal_even(rng: Rng) -> Iterator[Case]:
    """Values near one another."""
    q, k = (x.copy() for x in rng.normal(size=(2, 128, 32)).astype(f16))
    v, out = even(rng, (128, 32), f16, digits=7), np.zeros((128, 32), f32)

    def reference(q: Any, k: Any, v: Any) -> Any:
        scores = np.where(np.tri(128, 128, dtype=bool), (q @ k.T) * 0.25, -np.inf)
        e = np.exp2(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    one = call("attention_causal.sm_80", [q, k, v, out, 128, 0.25], (2,))
    yield Case(one, [q, k, v], [out], reference, working="f16")


def subnormal(rng: Rng, n: int) -> list[Array]:
    """A and B, and a C of zeros; every fourth sum is too small for a normal number."""
    a, b = rng.normal(size=(2, n)).astype(f32)
    a[::4] *= f32(1e-39)
    b[::4] *= f32(1e-39)
    return [a.copy(), b.copy(), np.zeros(n, f32)]


def added(a: Any, b: Any) -> Any:
    return a + b


def vector_add(rng: Rng) -> Iterator[Case]:
    a, b, c = subnormal(rng, 1000)
    one = call("vector_add.sm_80", [a, b, c, 1000], (4,))
    yield Case(one, [a, b], [c], added, rounding="nearest")


# -- nvcc's ----------------------------------------------------------------------------------------


def cuda_vector_add(rng: Rng) -> Iterator[Case]:
    a, b, c = subnormal(rng, 1000)
    one = KernelCall("vector_add", [a, b, c, 1000], grid=3, block=128)
    yield Case(one, [a, b], [c], added, rounding="nearest")


def cuda_saxpy4(rng: Rng) -> Iterator[Case]:
    """y, which is data too, is read before it is written."""
    x, y = (one + rng.uniform(0, 2.0**-10, 1000) for one in even(rng, (2, 1000), f32, digits=7))
    x, y = x.astype(f32), y.astype(f32)
    one = KernelCall("saxpy4", [2.5, x, y, 250], block=128)
    yield Case(one, [x, y], [y], times_and_more, rounding="nearest")


def cuda_softmax(rng: Rng) -> Iterator[Case]:
    for columns in (250, 130):
        x = rng.normal(size=(5, columns)).astype(f32)
        y = np.zeros_like(x)
        one = KernelCall("softmax", [x, y, columns], grid=5, block=128)
        yield Case(one, [x], [y], softmaxed)


def cuda_layer_norm(rng: Rng) -> Iterator[Case]:
    x = (rng.normal(size=(5, 250)) + 3).astype(f32)
    weight, bias = (row.copy() for row in rng.normal(size=(2, 250)).astype(f32))

    def launched(arrays: list[Array]) -> KernelCall:
        return KernelCall("layer_norm", [*arrays, 250, 1e-5], grid=5, block=128, shared=1000)

    yield normed(x, weight, bias, launched)


def cuda_total(rng: Rng) -> Iterator[Case]:
    x, out = rng.uniform(0, 1, size=3000).astype(f32), np.zeros(1, f32)
    one = KernelCall("total", [x, out, 3000], grid=5, block=128)
    yield Case(one, [x, out], [out], with_total)


def cuda_transpose(rng: Rng) -> Iterator[Case]:
    x, out = even(rng, (50, 70), f32, digits=7), np.zeros((70, 50), f32)
    one = KernelCall("transpose", [x, out, 50, 70], grid=(3, 2), block=(32, 8))
    yield Case(one, [x], [out], turned, copies=True)


def cuda_product(a: Array, b: Array) -> Case:
    (m, k), n = a.shape, b.shape[1]
    c = np.zeros((m, n), f32)
    one = KernelCall("gemm", [a, b, c, m, n, k], grid=(-(-n // 64), -(-m // 64)), block=128)
    return Case(one, [a, b], [c], product)


def cuda_gemm_even(rng: Rng) -> Iterator[Case]:
    a, b = even(rng, (128, 96), f16, digits=6), even(rng, (96, 72), f16, digits=6)
    yield cuda_product(a, b)


def wmma_product(a: Array, b: Array) -> Case:
    (m, k), n = a.shape, b.shape[1]
    c = np.zeros((m, n), f32)
    one = KernelCall("gemm_f16", [a, b, c, n, k], grid=(n // 16, m // 16), block=32)
    return Case(one, [a, b], [c], halved)


def cuda_wmma_even(rng: Rng) -> Iterator[Case]:
    yield wmma_product(even(rng, (32, 80), f16), even(rng, (80, 48), f16))


def cuda_wmma_waning(rng: Rng) -> Iterator[Case]:
    yield wmma_product(*waning(rng, (32, 80), (80, 48), f16, 16))


def cuda_scores(rng: Rng) -> Iterator[Case]:
    q, k = even(rng, (16, 32), f32, digits=6), even(rng, (8, 32), f32, digits=6)
    out = np.zeros((16, 8), f32)
    one = KernelCall("scores_tf32", [q, k, out, 32], block=32)
    yield Case(one, [q, k], [out], scores, working="tf32")


def cuda_hopper(rng: Rng) -> Iterator[Case]:
    m, n, k = 250, 200, 328
    a, b = even(rng, (m, k), f16), even(rng, (n, k), f16)
    c = np.zeros((m, n), f32)
    maps = TensorMap(a, (128, 64), 128), TensorMap(b, (64, 64), 128)
    one = KernelCall(
        "gemm", [*maps, c, m, n, k], grid=(2, 2), block=384, cluster=(1, 2), shared=3 * 32768
    )
    yield Case(one, [a, b], [c], by_rows)


def cuda_doubled(rng: Rng) -> Iterator[Case]:
    """y, which is data too, is added to."""
    x, y = even(rng, (100, 136), f16), even(rng, (100, 136), f16)
    one = KernelCall("doubled", [TensorMap(x, (64, 64)), TensorMap(y, (64, 64))], (3, 2), 128)
    yield Case(one, [x, y], [y], doubled)


def cuda_fast_math(rng: Rng) -> Iterator[Case]:
    """Numbers of which some are a little more than 1."""
    x = np.where(rng.random(256) < 0.5, rng.uniform(0, 1, 256), 1 + rng.uniform(0, 0.008, 256))
    x, out = x.astype(f32), np.zeros((10, 256), f32)

    def reference(x: Any) -> Any:
        above = np.abs(x) + 1
        rows = [np.sin(x), np.cos(x), np.exp(x), np.log(above), x / 3, 1 / np.sqrt(above)]
        rows += [np.exp2(1.5 * np.log2(above)), np.minimum(np.maximum(x, 0), 1), 1 / (x + 10)]
        return np.stack([*rows, np.sqrt(np.abs(x))])

    yield Case(KernelCall("fast_math", [x, out, 256], block=128), [x], [out], reference)
