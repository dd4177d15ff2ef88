"""Kernels written in Python, run on the emulator against numpy."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir import Scalar, Tile, bf16, f16, f32, f64, index, s8, s32
from fragir.builder import KernelBuilder
from fragir.errors import FragirError

Array = npt.NDArray[Any]
Build = Callable[[KernelBuilder, Tile, Tile], Tile]
Numpy = Callable[[Array, Array], Array]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name))


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float16)


def within(found: Array, a: Array, b: Array, exact: Array, extra: float = 0.0) -> None:
    """Whether products summed in f32 are as exact as that allows.

    Each of K additions and the epilogue's steps is off by at most one unit of the last place of
    the sum of magnitudes (tensor cores cut off where others round).
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    bound = (a.shape[1] + 4) * 2.0**-23 * (np.abs(a) @ np.abs(b) + extra) + 1e-30
    assert (np.abs(found - exact) <= bound).all()


@pytest.mark.parametrize("name", ["gemm_tiles.py", "gemm_matmul.py", "wgmma_tile.py"])
def test_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example(name)["main"]()
    assert capsys.readouterr().out.splitlines()[-1] == "PASS"


@pytest.mark.parametrize("sizes", [(128, 128, 32), (1, 1, 1), (130, 8, 33), (40, 200, 100)])
def test_gemm_tiles(sizes: tuple[int, int, int]) -> None:
    gemm = example("gemm_tiles.py")["k"].compile()
    m, n, depth = sizes
    rng = np.random.default_rng(m)
    a, b = normal(rng, m, depth), normal(rng, depth, n)
    bias = normal(rng, n).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    gemm(a, b, bias, c, on="emulator")
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    within(c, a, b, exact, float(np.abs(bias).max()))


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_matmul_with_bias_and_activation(target: str) -> None:
    with fragir.kernel("dense") as k:
        x = k.memory("x", f16, ("m", "k"))
        w = k.memory("w", f16, ("n", "k"))
        bias = k.memory("bias", f32, ("n",))
        scale = k.memory("scale", f32, ("m", 1))
        y = k.memory("y", f32, ("m", "n"))
        k.matmul(
            x,
            w,
            into=y,
            transposed_b=True,
            extra=[bias, scale],
            epilogue=lambda total, old, shift, factor: k.max(total * factor + shift, 0),
            tile=(64, 64, 32),
        )
    rng = np.random.default_rng(0)
    x, w = normal(rng, 50, 40), normal(rng, 70, 40)
    bias, scale = normal(rng, 70).astype(np.float32), np.abs(normal(rng, 50, 1)).astype(np.float32)
    y = np.zeros((50, 70), np.float32)
    k.compile(target)(x, w, bias, scale, y, on="emulator")
    exact = np.maximum(x.astype(np.float64) @ w.T.astype(np.float64) * scale + bias, 0)
    within(y / scale, x, w.T, exact / scale, float(np.abs(bias / scale).max()))


def elementwise(build: Build) -> Array:
    """A function of two f32 tiles, x = -6..6 and y = 0.25..."""
    with fragir.kernel("unary") as k:
        x = k.memory("x", f32, (16, 8))
        y = k.memory("y", f32, (16, 8))
        z = k.memory("z", f32, (16, 8))
        first, second = (k.load(memory, (0, 0), shape=(16, 8)) for memory in (x, y))
        k.store(build(k, first, second), z, (0, 0))
    z = np.zeros((16, 8), np.float32)
    k.compile()(*inputs(), z, on="emulator")
    return z


def inputs() -> tuple[Array, Array]:
    x = np.linspace(-6, 6, 128, dtype=np.float32).reshape(16, 8)
    y = np.linspace(0.25, 9, 128, dtype=np.float32).reshape(16, 8)
    x[3, 3] = y[3, 3]
    return x, y


# name -> (the kernel's, numpy's); exact but for the approximate instructions
EXACT: dict[str, tuple[Build, Numpy]] = {
    "add": (lambda k, x, y: x + y, lambda x, y: x + y),
    "radd": (lambda k, x, y: 1 + x, lambda x, y: 1 + x),
    "sub": (lambda k, x, y: x - y, lambda x, y: x - y),
    "rsub": (lambda k, x, y: 2.5 - x, lambda x, y: np.float32(2.5) - x),
    "mul": (lambda k, x, y: x * y, lambda x, y: x * y),
    "rmul": (lambda k, x, y: float(np.float32(3)) * x, lambda x, y: 3 * x),
    "div": (lambda k, x, y: x / y, lambda x, y: x / y),
    "rdiv": (lambda k, x, y: 1 / y, lambda x, y: 1 / y),
    "floordiv": (
        lambda k, x, y: ((x * 2).cast(s32) // -5 + 7 // ((y * 4).cast(s32) + 1)).cast(f32),
        lambda x, y: np.trunc(x * 2) // -5 + 7 // (np.trunc(y * 4) + 1),
    ),
    "mod": (
        lambda k, x, y: ((x * 2).cast(s32) % -5 * 10 + (x * 2).cast(s32) % 7).cast(f32),
        lambda x, y: np.trunc(x * 2) % -5 * 10 + np.trunc(x * 2) % 7,
    ),
    "shifts": (
        lambda k, x, y: (((x * 2).cast(s32) << 3) + ((x * 8).cast(s32) >> 2)).cast(f32),
        lambda x, y: np.trunc(x * 2) * 8 + np.floor(np.trunc(x * 8) / 4),
    ),
    "neg": (lambda k, x, y: -x, lambda x, y: -x),
    "abs": (lambda k, x, y: abs(x), lambda x, y: np.abs(x)),
    "max": (lambda k, x, y: k.max(x, y), lambda x, y: np.maximum(x, y)),
    "min": (lambda k, x, y: k.min(0.5, x), lambda x, y: np.minimum(x, 0.5)),
    "fma": (lambda k, x, y: k.fma(x, 2, y), lambda x, y: 2 * x.astype(float) + y),
    "sqrt": (lambda k, x, y: k.sqrt(y), lambda x, y: np.sqrt(y)),
    "floor": (lambda k, x, y: k.floor(x), lambda x, y: np.floor(x)),
    "ceil": (lambda k, x, y: k.ceil(x), lambda x, y: np.ceil(x)),
    "round": (lambda k, x, y: k.round(x), lambda x, y: np.rint(x)),
    "trunc": (lambda k, x, y: k.trunc(x), lambda x, y: np.trunc(x)),
    "less": (lambda k, x, y: k.select(x < y, 1, 2 * y), lambda x, y: np.where(x < y, 1, 2 * y)),
    "equal": (lambda k, x, y: k.select(x == y, x, 0), lambda x, y: np.where(x == y, x, 0)),
    "unequal": (lambda k, x, y: k.select(x != y, x, 0), lambda x, y: np.where(x != y, x, 0)),
    "logic": (
        lambda k, x, y: k.select(((x > 0) & (x <= 3)) | ~(y >= 1), x, y),
        lambda x, y: np.where(((x > 0) & (x <= 3)) | ~(y >= 1), x, y),
    ),
    "xor": (
        lambda k, x, y: k.select((x > 0) ^ (y > 3), x, y),
        lambda x, y: np.where((x > 0) ^ (y > 3), x, y),
    ),
    "cast": (
        lambda k, x, y: x.cast(f16).cast(f32) + y,
        lambda x, y: x.astype(np.float16).astype(np.float32) + y,
    ),
    "map": (
        lambda k, x, y: k.map(lambda p, q: k.max(p, q) + p.cast(s32).cast(f32), x, y),
        lambda x, y: np.maximum(x, y) + np.trunc(x),
    ),
}


def by_bits(count: Callable[[int], int], x: Array) -> Array:
    """A function of whole numbers on every element."""
    return np.array([count(int(n)) for n in x.flat]).reshape(x.shape)


# these have instructions of limited accuracy: about 2^-22 relative, 2^-11 for tanh (PTX ISA 9.2,
# sections 9.7.3.16 to 9.7.3.22), more where an argument is scaled first
APPROXIMATE: dict[str, tuple[Build, Numpy, float]] = {
    "exp": (lambda k, x, y: k.exp(x), lambda x, y: np.exp(x), 2e-6),
    "exp2": (lambda k, x, y: k.exp2(x), lambda x, y: np.exp2(x), 1e-6),
    "log": (lambda k, x, y: k.log(y + 1), lambda x, y: np.log(y + 1), 2e-6),
    "log2": (lambda k, x, y: k.log2(y + 1), lambda x, y: np.log2(y + 1), 2e-6),
    "log10": (lambda k, x, y: k.log10(y + 1), lambda x, y: np.log10(y + 1), 2e-6),
    "log1p": (lambda k, x, y: k.log1p(y), lambda x, y: np.log1p(y), 1e-6),
    "expm1": (lambda k, x, y: k.expm1(x), lambda x, y: np.expm1(x), 1e-6),
    "erf": (lambda k, x, y: k.erf(x), lambda x, y: np.vectorize(math.erf)(x), 1e-6),
    "pow": (lambda k, x, y: k.pow(y + 1, x), lambda x, y: (y + 1) ** x, 1e-6),
    "cbrt": (lambda k, x, y: k.cbrt(x), lambda x, y: np.cbrt(x), 1e-6),
    "sinh": (lambda k, x, y: k.sinh(x), lambda x, y: np.sinh(x), 1e-6),
    "cosh": (lambda k, x, y: k.cosh(x), lambda x, y: np.cosh(x), 1e-6),
    "tan": (lambda k, x, y: k.tan(x / 8), lambda x, y: np.tan(x / 8), 1e-6),
    "asin": (lambda k, x, y: k.asin(y / 64), lambda x, y: np.arcsin(y / 64), 1e-6),
    "acos": (lambda k, x, y: k.acos(y / 64), lambda x, y: np.arccos(y / 64), 1e-6),
    "atan": (lambda k, x, y: k.atan(x), lambda x, y: np.arctan(x), 1e-6),
    "atan2": (lambda k, x, y: k.atan2(x, y), lambda x, y: np.arctan2(x, y), 1e-6),
    "asinh": (lambda k, x, y: k.asinh(x), lambda x, y: np.arcsinh(x), 1e-6),
    "acosh": (lambda k, x, y: k.acosh(y + 1), lambda x, y: np.arccosh(y + 1), 1e-6),
    "atanh": (lambda k, x, y: k.atanh(y / 64), lambda x, y: np.arctanh(y / 64), 2e-6),
    "copysign": (lambda k, x, y: k.copysign(y, x), lambda x, y: np.copysign(y, x), 0.0),
    "count_ones": (
        lambda k, x, y: k.count_ones((y * 64).cast(s32)).cast(f32),
        lambda x, y: by_bits(lambda n: n.bit_count(), y * 64),
        0.0,
    ),
    "leading_zeros": (
        lambda k, x, y: k.leading_zeros((y * 64).cast(s32)).cast(f32),
        lambda x, y: by_bits(lambda n: 32 - n.bit_length(), y * 64),
        0.0,
    ),
    "trailing_zeros": (
        lambda k, x, y: k.trailing_zeros((y * 64).cast(s32) + 1).cast(f32),
        lambda x, y: by_bits(lambda n: (n & -n).bit_length() - 1, np.floor(y * 64) + 1),
        0.0,
    ),
    "rsqrt": (lambda k, x, y: k.rsqrt(y), lambda x, y: 1 / np.sqrt(y), 1e-6),
    "tanh": (lambda k, x, y: k.tanh(x), lambda x, y: np.tanh(x), 6e-4),
    "sin": (lambda k, x, y: k.sin(x / 2) + 2, lambda x, y: np.sin(x / 2) + 2, 2e-6),
    "cos": (lambda k, x, y: k.cos(x / 2) + 2, lambda x, y: np.cos(x / 2) + 2, 2e-6),
}


@pytest.mark.parametrize("name", EXACT)
def test_elementwise(name: str) -> None:
    build, numpy = EXACT[name]
    assert np.array_equal(elementwise(build), numpy(*inputs()).astype(np.float32))


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate(name: str) -> None:
    build, numpy, accuracy = APPROXIMATE[name]
    exact = numpy(*(x.astype(np.float64) for x in inputs()))
    assert np.allclose(elementwise(build), exact, rtol=accuracy, atol=1e-6)


def test_functions_are_covered() -> None:
    from fragir.builder.functions import FUNCTIONS

    words = {
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "&",
        "|",
        "^",
        "<<",
        ">>",
        "<",
        "<=",
        ">",
        ">=",
        "==",
        "!=",
    }
    assert set(FUNCTIONS) - words <= set(EXACT) | set(APPROXIMATE)


def scalars() -> KernelBuilder:
    """Writes what is computed from scalars into the places of a row."""
    with fragir.kernel("scalars") as k:
        out = k.memory("out", s32, (32, 16))
        n = k.scalar("n", index)
        i = k.scalar("i", s32)
        x = k.scalar("x", f32)
        found: list[Scalar] = [
            (n * 3 + 5) // 4 % 7,
            100 - n,
            k.max(i, -4) + k.min(i, 2),
            -i,
            ~i,
            abs(i) & 6 | 1,
            (x * 10).cast(s32),
            (n.cast(f32) / 2).cast(s32),
            k.select(x > 0.5, i, n.cast(s32)),
            (n == 9).cast(s32) + (i < 0).cast(s32),
            i.cast(index).cast(s32) ^ 3,
            i // 4 * 100 + i % 4,
            -100 // (i * 2 + 1) % (i * 2 + 1),
        ]
        for place, value in enumerate(found):
            k.store(k.fill(k_s32(value), (32, 1), s32), out, (0, place))
    return k


def k_s32(value: Scalar) -> Scalar:
    return value if value.type == s32 else value.cast(s32)


@pytest.mark.parametrize(("n", "i", "x"), [(9, -7, 0.75), (40, 5, -2.5), (0, 0, 0.0)])
def test_scalars(n: int, i: int, x: float) -> None:
    out = np.zeros((32, 16), np.int32)
    scalars().compile()(out, n, i, x, on="emulator")
    expected = [
        (n * 3 + 5) // 4 % 7,
        100 - n,
        max(i, -4) + min(i, 2),
        -i,
        ~i,
        abs(i) & 6 | 1,
        int(x * 10),
        int(n / 2),
        i if x > 0.5 else n,
        (n == 9) + (i < 0),
        i ^ 3,
        i // 4 * 100 + i % 4,
        -100 // (i * 2 + 1) % (i * 2 + 1),
    ]
    assert out[0, : len(expected)].tolist() == expected
    assert (out == out[0]).all()


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_loop_and_branch(turns: int) -> None:
    with fragir.kernel("control", warps=(2, 1)) as k:
        c = k.memory("c", f32, ("m", 8))
        turns_ = k.scalar("turns", index)
        k.grid("m / 32")
        row = k.block_id() * 32
        tile = k.load(c, (row, 0), shape=(32, 8), masked=True)
        with k.loop(0, turns_, tile=tile, odd=0) as loop:
            with k.if_(loop.odd == 1, tile=loop.tile) as branch:
                branch.tile = branch.tile * 2
            with branch.else_():
                branch.tile = branch.tile + loop.index.cast(f32)
            loop.tile = branch.tile
            loop.odd = 1 - loop.odd
        with k.if_(row == 0):
            k.store(loop.tile, c, (row, 0), masked=True)
        with k.if_(row != 0):
            k.store(-loop.tile, c, (row, 0), masked=True)
    c = np.arange(45 * 8, dtype=np.float32).reshape(45, 8)
    expected = c.copy()
    for turn in range(turns):
        expected = expected * 2 if turn % 2 else expected + turn
    expected[32:] *= -1
    k.compile()(c, turns, on="emulator")
    assert np.array_equal(c, expected)


def test_integers_and_doubles() -> None:
    with fragir.kernel("integers") as k:
        a = k.memory("a", s8, (32, 64))
        b = k.memory("b", s8, (16, 64))
        c = k.memory("c", s32, (32, 16))
        x = k.load(a, (0, 0), shape=(32, 64))
        y = k.load(b, (0, 0), shape=(64, 16), transposed=True)
        k.store(k.mma(x, y, k.load(c, (0, 0), shape=(32, 16))), c, (0, 0))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((32, 64), (16, 64)))
    c = rng.integers(-1000, 1000, (32, 16)).astype(np.int32)
    expected = c + a.astype(np.int32) @ b.T.astype(np.int32)
    k.compile()(a, b, c, on="emulator")
    assert np.array_equal(c, expected)

    with fragir.kernel("doubles") as k:
        a, b, c = (k.memory(name, f64, (16, 16)) for name in "abc")
        x, y, z = (k.load(memory, (0, 0), shape=(16, 16)) for memory in (a, b, c))
        k.store(k.mma(x, y, z), c, (0, 0))
    a, b, c = (np.round(rng.standard_normal((16, 16)) * 64) for _ in range(3))
    expected = a @ b + c  # whole numbers: exact
    k.compile()(a, b, c, on="emulator")
    assert np.array_equal(c, expected)


def test_conversion_between_layouts() -> None:
    """Two products in a row: the first's result becomes the second's A."""
    with fragir.kernel("twice", warps=(2, 2)) as k:
        a, b = (k.memory(name, f16, (32, 32)) for name in "ab")
        c = k.memory("c", f32, (32, 32))
        x, y = (k.load(memory, (0, 0), shape=(32, 32)) for memory in (a, b))
        zero = k.fill(0, (32, 32), f32)
        first = k.mma(x, y, zero).cast(f16)
        again = k.convert(first, fragir.fragment("m16n8k16.f16", "a", warps=(2, 2)))
        k.store(k.mma(again, y, zero), c, (0, 0))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (32, 32)).astype(np.float16) for _ in range(2))
    c = np.zeros((32, 32), np.float32)
    k.compile()(a, b, c, on="emulator")
    assert np.array_equal(c, (a.astype(int) @ b @ b).astype(np.float32))  # small whole numbers


@pytest.mark.parametrize("shape", [(192,), (3, 16, 8), (2, 2, 4, 24)])
def test_tiles_of_any_rank(shape: tuple[int, ...]) -> None:
    """A whole array as one tile, of one to four dimensions."""
    with fragir.kernel("k", warps=(2, 1)) as k:
        x, y = (k.memory(name, f32, shape) for name in "xy")
        tile = k.load(x, [0] * len(shape), shape=shape)
        k.store(2 * tile + tile, y, [0] * len(shape))
    a, b = np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.zeros(shape, np.float32)
    k.compile(target="sm_80").launch((1,), (64,), a, b, on="emulator", check=True)
    assert (b == 3 * a).all()


def test_products_take_matrices() -> None:
    with fragir.kernel("k", warps=(1, 1)) as k:
        x = k.memory("x", f16, (64,))
        tile = k.load(x, [0], shape=(64,))
        with pytest.raises(FragirError, match=r"tile 64 of f16.* is no matrix"):
            k.mma(tile, tile, tile)


def test_reductions() -> None:
    with fragir.kernel("rows", warps=(4, 1)) as k:
        x = k.memory("x", f16, ("m", 200))
        y = k.memory("y", f16, ("m", 200))
        best = k.memory("best", s32, ("m",))
        counts = k.memory("counts", s32, ("m",))
        k.grid("m / 16")
        row = k.block_id("x") * 16
        t = k.load(x, (row, 0), shape=(16, 256), masked=True)
        inside = k.iota(-1, (16, 256)) < 200
        wide = k.select(inside, t.cast(f32), -1e30)
        e = k.exp(wide - wide.max(1).broadcast(1, 256))
        k.store((e / e.sum(1).broadcast(1, 256)).cast(f16), y, (row, 0), masked=True)
        k.store(wide.argmax(-1), best, (row,), masked=True)
        positive = (t > 0).any(1)
        ones = k.select(positive, k.fill(1, (16,), s32), 0)
        total = ones.sum()
        k.store(k.map(lambda i: i * total, ones), counts, (row,), masked=True)
    rng = np.random.default_rng(1)
    source = normal(rng, 40, 200)
    source[3:7] = -np.abs(source[3:7])
    target, places = np.zeros_like(source), np.zeros(40, np.int32)
    found = np.zeros(40, np.int32)
    report = k.compile()(source, target, places, found, on="emulator", check=True)
    assert report.findings == []
    e = np.exp(source.astype(np.float64) - source.max(1, keepdims=True))
    np.testing.assert_allclose(target, e / e.sum(1, keepdims=True), rtol=2**-10)
    np.testing.assert_array_equal(places, source.argmax(1))
    some = (source > 0).any(1).astype(np.int32)
    totals = np.add.reduceat(some, (0, 16, 32)).repeat(16)[:40]
    np.testing.assert_array_equal(found, some * totals)


@pytest.mark.parametrize("element", [f16, bf16])
def test_sums_of_16_bits_are_formed_in_32(element: Any) -> None:
    with fragir.kernel("total") as k:
        x = k.memory("x", element, (2048,))
        y = k.memory("y", element, (1,))
        t = k.load(x, (0,), shape=(2048,))
        k.store(k.fill(t.sum(), (1,), element), y, (0,))
    dtype = np.float16 if element == f16 else ml_dtypes.bfloat16
    ones, one = np.ones(2048, dtype), np.zeros(1, dtype)
    k.compile()(ones, one, on="emulator")
    assert one == 2048  # of f16, 2048 + 1 is 2048
