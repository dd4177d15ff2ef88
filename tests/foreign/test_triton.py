"""Kernels that Triton compiled, for Ampere, Ada, Hopper and Blackwell, against numpy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fragir.emulator import TensorMap

from .compilers import TRITON
from .judge import Array, execute

f16, f32, i32 = np.float16, np.float32, np.int32
LAUNCHES: dict[str, dict[str, Any]] = json.loads((TRITON / "launches.json").read_text("utf-8"))
SCHEDULES = pytest.mark.parametrize("schedule", [None, 1])

# What is wrong by the letter of the ISA in Triton's code: 3.6, and 3.9 for sm_100.
LETTERS = {
    # TMA signals mbarriers without a fence behind their initialisation, and comes to where
    # tcgen05.alloc has left its address
    "gemm_tma.sm_100": ["proxy-fence"],
    # the same; and roles of a warp each have a setmaxnreg of their own
    "gemm_special.sm_100": ["divergent", "proxy-fence"],
    # cp.async writes in the generic proxy, wgmma reads in the asynchronous one, without a fence
    "attention.sm_90": ["proxy-fence"],
    "gemm.sm_90": ["proxy-fence"],
    "gemm_fp8.sm_90": ["proxy-fence"],
    # TMA signals mbarriers without a fence behind their initialisation
    "gemm_tma.sm_90": ["proxy-fence"],
    # the same; and mbarriers that nobody uses are initialised twice and then overwritten, without
    # mbarrier.inval; parities are 0 and -1
    "gemm_special.sm_90": ["mbarrier", "operand", "proxy-fence"],
}


def launch(
    name: str, target: int, arguments: Sequence[object], grid: Sequence[int] = (1,), **more: Any
) -> None:
    """Triton's kernels take two more pointers: scratch memory, and the profiler's."""
    title = f"{name}.sm_{target}"
    made = LAUNCHES[title]
    text = (TRITON / f"{title}.ptx").read_text("utf-8")
    programs = int(np.prod(grid))
    scratch = np.zeros(programs * made["scratch"], np.uint8) if made["scratch"] else None
    execute(
        text,
        made["entry"],
        [*arguments, scratch, None],
        grid=grid,
        block=(32 * made["warps"],),
        shared=made["shared"],
        letters=LETTERS.get(title, ()),
        **more,
    )


def tensors(name: str, target: int, *arrays: Array) -> list[object]:
    """How Triton passes tensor descriptors: for each the map, the shape, the strides."""
    arguments: list[object] = []
    for array, made in zip(arrays, LAUNCHES[f"{name}.sm_{target}"]["maps"], strict=True):
        rows, columns = array.shape
        tensor_map = TensorMap(array, tuple(made["box"]), made["swizzle"])
        arguments += [tensor_map, rows, columns, columns, 1]
    return arguments


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def small(rng: np.random.Generator, *shape: int, dtype: Any = f16) -> Array:
    """Numbers of which every sum of products is exact, in whatever order."""
    return rng.integers(-3, 4, shape).astype(dtype)


def test_vector_add(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 1000)).astype(f32)
    c = np.zeros_like(a)
    launch("vector_add", 80, [a, b, c, 1000], (4,))
    assert (c == a + b).all()


def test_softmax(rng: np.random.Generator) -> None:
    x = (rng.normal(size=(5, 250)) * 4).astype(f32)
    y = np.zeros_like(x)
    launch("softmax", 80, [x, y, 250], (5,))
    difference = (x - x.max(1, keepdims=True)).astype(float)
    e = np.exp(difference)
    # exp is exp2 of a product rounded at up to 2^5 (2^-19 of the result), and exp2's own 2 ulp;
    # 8 roundings of the sum, 2 ulp of the division
    bound = 2 * (2**-19 + 2 * 2**-23) + (8 + 4) * 2**-24
    p = e / e.sum(1, keepdims=True)
    assert (np.abs(y - p) <= bound * p).all()


def test_layer_norm(rng: np.random.Generator) -> None:
    x = (rng.normal(size=(5, 300)) + 3).astype(f32)
    weight, bias = rng.normal(size=(2, 300)).astype(f32)
    y = np.zeros_like(x)
    launch("layer_norm", 80, [x, weight, bias, y, 300, 1e-5], (5,))
    e = x.astype(float)
    scale = 1 / np.sqrt(e.var(1, keepdims=True) + 1e-5)
    expected = (e - e.mean(1, keepdims=True)) * scale * weight + bias
    # sums of 3 + 7 roundings; the difference from the mean, its scale and the rest: a few ulp
    mean_error = 10 * 2**-24 * np.abs(e).mean(1, keepdims=True)
    bound = (mean_error + 12 * 2**-24 * np.abs(e)) * scale * np.abs(weight)
    assert (np.abs(y - expected) <= bound + 2**-22 * (np.abs(expected) + np.abs(bias))).all()


GEMMS = [
    ("gemm", 80, f16, f16),
    ("gemm", 90, f16, f16),
    ("gemm_bf16", 80, ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    ("gemm_tf32", 80, f32, f32),
    ("gemm_int8", 80, np.int8, np.int8),
    ("gemm_fp8", 89, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    ("gemm_fp8", 90, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
]


@SCHEDULES
@pytest.mark.parametrize(("name", "target", "a_type", "b_type"), GEMMS)
def test_gemm(
    rng: np.random.Generator, name: str, target: int, a_type: Any, b_type: Any, schedule: int | None
) -> None:
    """Sizes are multiples of 16, as Triton was told, but not of the tile."""
    m, n, k = 80, 48, 176
    out = i32 if name == "gemm_int8" else f32
    a, b = small(rng, m, k, dtype=a_type), small(rng, k, n, dtype=b_type)
    c = np.zeros((m, n), out)
    tile = 32 if name == "gemm_tf32" else 64
    grid = (-(-n // tile), -(-m // tile))
    launch(name, target, [a, b, c, m, n, k], grid, schedule=schedule)
    assert (c == a.astype(f32) @ b.astype(f32)).all()


@pytest.mark.parametrize("target", [80, 90])
def test_gemm_of_random_halves(rng: np.random.Generator, target: int) -> None:
    m, n, k = 64, 64, 160
    a, b = rng.normal(size=(m, k)).astype(f16), rng.normal(size=(n, k)).astype(f16).T.copy()
    c = np.zeros((m, n), f32)
    launch("gemm", target, [a, b, c, m, n, k])
    exact, magnitude = a.astype(float) @ b.astype(float), np.abs(a.astype(float)) @ np.abs(b)
    # 20 blocks of 8 products (Hopper: 10 of 16), each cut at 2^-24 of the largest term
    assert (np.abs(c - exact) <= 20 * 9 * 2**-23 * magnitude).all()


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
def test_wgmma_and_tma(rng: np.random.Generator, asynchrony: str) -> None:
    m, n, k = 200, 136, 328
    a, b, c = small(rng, m, k), small(rng, n, k), np.zeros((m, n), f16)
    arguments = [*tensors("gemm_tma", 90, a, b, c), n, k]
    launch("gemm_tma", 90, arguments, (3, 2), asynchrony=asynchrony)
    assert (c == (a.astype(f32) @ b.astype(f32).T).astype(f16)).all()


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
def test_warp_specialisation(rng: np.random.Generator, asynchrony: str) -> None:
    m, n, k = 128, 128, 320
    a, b, c = small(rng, m, k), small(rng, n, k), np.zeros((m, n), f32)
    arguments = [*tensors("gemm_special", 90, a, b), c, n, k]
    launch("gemm_special", 90, arguments, (1, 2), asynchrony=asynchrony)
    assert (c == a.astype(f32) @ b.astype(f32).T).all()


def test_tensor_maps_made_on_the_device(rng: np.random.Generator) -> None:
    m, n, k = 200, 112, 144
    a, b, c = small(rng, m, k), small(rng, n, k), np.zeros((m, n), f32)
    launch("gemm_persistent", 90, [a, b, c, m, n, k], (2,))
    assert (c == a.astype(f32) @ b.astype(f32).T).all()


# -- tcgen05 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "element"), [("gemm", f16), ("gemm_fp8", "float8_e4m3fn")])
def test_tcgen05(rng: np.random.Generator, name: str, element: Any) -> None:
    m, n, k = 80, 48, 176
    dtype = getattr(ml_dtypes, element) if isinstance(element, str) else element
    a, b, c = small(rng, m, k, dtype=dtype), small(rng, k, n, dtype=dtype), np.zeros((m, n), f32)
    launch(name, 100, [a, b, c, m, n, k], (1, 2))
    assert (c == a.astype(f32) @ b.astype(f32)).all()


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
def test_tcgen05_and_tma(rng: np.random.Generator, asynchrony: str) -> None:
    m, n, k = 200, 136, 328
    a, b, c = small(rng, m, k), small(rng, n, k), np.zeros((m, n), f16)
    arguments = [*tensors("gemm_tma", 100, a, b, c), n, k]
    launch("gemm_tma", 100, arguments, (3, 2), asynchrony=asynchrony)
    assert (c == (a.astype(f32) @ b.astype(f32).T).astype(f16)).all()


@pytest.mark.parametrize("asynchrony", ["late", "random"])
def test_tcgen05_by_roles(rng: np.random.Generator, asynchrony: str) -> None:
    m, n, k = 128, 128, 320
    a, b, c = small(rng, m, k), small(rng, n, k), np.zeros((m, n), f32)
    arguments = [*tensors("gemm_special", 100, a, b), c, n, k]
    launch("gemm_special", 100, arguments, (1, 2), asynchrony=asynchrony)
    assert (c == a.astype(f32) @ b.astype(f32).T).all()


def test_tcgen05_persistent(rng: np.random.Generator) -> None:
    m, n, k = 200, 112, 144
    a, b, c = small(rng, m, k), small(rng, n, k), np.zeros((m, n), f32)
    launch("gemm_persistent", 100, [a, b, c, m, n, k], (2,))
    assert (c == a.astype(f32) @ b.astype(f32).T).all()


@pytest.mark.parametrize("name", ["mxfp8", "mxfp4", "nvfp4"])
def test_block_scales(rng: np.random.Generator, name: str) -> None:
    """Of two tiles; every sum of scaled products is exact."""
    m, n, k = 128, 256, 256
    block = 16 if name == "nvfp4" else 32
    x, y = (rng.integers(-3, 4, (extent, k)) / 2.0 for extent in (m, n))
    if name == "mxfp8":
        a, b = (values.astype(ml_dtypes.float8_e4m3fn) for values in (x, y))
    else:
        codes = (values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) for values in (x, y))
        a, b = (np.ascontiguousarray(c[:, ::2] | c[:, 1::2] << 4) for c in codes)
    sizes = (m, k // block), (n, k // block)
    if name == "nvfp4":
        fa, fb = (rng.choice([0.5, 1.0, 1.5, 2.0], size) for size in sizes)
        sa, sb = (f.astype(ml_dtypes.float8_e4m3fn) for f in (fa, fb))
    else:
        sa, sb = (rng.integers(125, 130, size).astype(np.uint8) for size in sizes)
        fa, fb = (2.0 ** (codes.astype(float) - 127) for codes in (sa, sb))
    c = np.zeros((m, n), f32)
    launch(f"gemm_{name}", 100, [a, b, c, sa, sb, n, k], (2, 1))
    assert (c == (x * np.repeat(fa, block, 1)) @ (y * np.repeat(fb, block, 1)).T).all()


def attend(q: Array, k: Array, v: Array, scale: float, causal: bool) -> tuple[Array, Array]:
    """The result, and a bound of the error of what is computed with P in f16 and sums in f32."""
    x, y, z = (t.astype(float) for t in (q, k, v))
    scores = x @ y.T * scale
    if causal:
        scores = np.where(np.tri(len(q), len(k), dtype=bool), scores, -np.inf)
    p = np.exp2(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    # P is rounded to f16 (2^-11, below 2^-14 to a step of 2^-24). A score is off by
    # 2^-19 |q| |k| and so is an exponent; the rest are few roundings to f32.
    off = 2**-11 + 2**-19 * float((np.abs(x) @ np.abs(y).T).max() * scale) + 40 * 2**-24
    return p @ z, 2 * off * (p @ np.abs(z)) + 2**-24 * np.abs(z).sum(0)


@pytest.mark.parametrize(("target", "keys"), [(80, 100), (80, 128), (90, 100)])
def test_flash_attention(rng: np.random.Generator, target: int, keys: int) -> None:
    q = rng.normal(size=(128, 64)).astype(f16)
    k, v = rng.normal(size=(2, keys, 64)).astype(f16)
    out = np.zeros((128, 64), f32)
    launch("attention", target, [q, k, v, out, keys, 0.18], (2,))
    expected, bound = attend(q, k, v, float(f32(0.18)), False)
    assert (np.abs(out - expected) <= bound).all()


def test_attention_in_tensor_memory(rng: np.random.Generator) -> None:
    """P is an A in tensor memory."""
    q = rng.normal(size=(128, 64)).astype(f16)
    k, v = rng.normal(size=(2, 160, 64)).astype(f16)
    out = np.zeros((128, 64), f32)
    launch("attention_wide", 100, [q, k, v, out, 160, 0.18])
    expected, bound = attend(q, k, v, float(f32(0.18)), False)
    assert (np.abs(out - expected) <= bound).all()


def test_causal_attention(rng: np.random.Generator) -> None:
    q, k, v = rng.normal(size=(3, 128, 32)).astype(f16)
    out = np.zeros((128, 32), f32)
    launch("attention_causal", 80, [q, k, v, out, 128, 0.25], (2,))
    expected, bound = attend(q, k, v, 0.25, True)
    assert (np.abs(out - expected) <= bound).all()


@SCHEDULES
def test_atomics(rng: np.random.Generator, schedule: int | None) -> None:
    x = rng.integers(-99, 99, 2000).astype(f32)
    total, most = np.zeros(1, f32), np.full(1, -1000, f32)
    launch("atomic_sum", 80, [x, total, most, 2000], (4,), schedule=schedule)
    assert (total[0], most[0]) == (x.sum(), x.max())
    where, y, out = rng.integers(0, 20, 500).astype(i32), x[:500].astype(i32), np.zeros(20, i32)
    launch("scattered", 80, [where, y, out, 500], (4,), schedule=schedule)
    assert (out == np.bincount(where, weights=y, minlength=20)).all()


def test_while(rng: np.random.Generator) -> None:
    x, steps = rng.integers(1, 2000, 12).astype(i32), np.zeros(12, i32)
    launch("collatz", 80, [x, steps], (12,))

    def collatz(n: int) -> int:
        return 0 if n == 1 else 1 + collatz(3 * n + 1 if n % 2 else n // 2)

    assert steps.tolist() == [collatz(n) for n in x.tolist()]


def test_scans(rng: np.random.Generator) -> None:
    x, y, z = rng.integers(-99, 99, (16, 64)).astype(i32), *np.zeros((2, 16, 64), i32)
    launch("scan", 80, [x, y, z])
    assert (y == np.cumsum(x, 1)).all()
    assert (z == np.cumsum(x[::-1], 0)[::-1]).all()


def test_sort(rng: np.random.Generator) -> None:
    x, y = rng.integers(-99, 99, (4, 64)).astype(i32), np.zeros((4, 64), i32)
    launch("sort", 80, [x, y])
    assert (y == np.sort(x, 1)).all()


def test_histogram(rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 32, 900).astype(i32), np.zeros(32, i32)
    launch("histogram", 80, [x, out, 900], (2,))
    assert (out == np.bincount(x, minlength=32)).all()


def test_where_the_extremes_are(rng: np.random.Generator) -> None:
    x = rng.integers(-50, 50, (4, 256)).astype(f32)  # some are equal: the first counts
    values, places = np.zeros((4, 2), f32), np.zeros((4, 2), i32)
    launch("extremes", 80, [x, values, places], (4,))
    assert (values == np.stack([x.max(1), x.min(1)], 1)).all()
    assert (places == np.stack([x.argmax(1), x.argmin(1)], 1)).all()


def test_transposition(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(64, 32)).astype(f16), np.zeros((32, 64), f16)
    launch("turned", 80, [x, y])
    assert (y == x.T).all()
