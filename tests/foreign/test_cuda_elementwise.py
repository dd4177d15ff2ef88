"""Scalar arithmetic that nvcc compiled: its instructions, and CUDA's library in PTX."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from .judge import Array, cuda, execute, rounded, ulps

N = 256
f32 = np.float32


@pytest.fixture(scope="module", params=["kept", "sm_80"])
def ptx(request: pytest.FixtureRequest) -> str:
    """For sm_90a as kept; for sm_80, where 8-bit floats and bf16 are long code, from nvcc."""
    if request.param == "kept":
        return cuda("elementwise", "sm_90a")
    return cuda("elementwise", request.param, "-O3")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_vectors(ptx: str, rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 1000)).astype(f32)
    c = np.zeros_like(a)
    execute(ptx, "vector_add", [a, b, c, 1000], grid=(3,))
    assert (c == a + b).all()
    y = b.copy()
    execute(ptx, "saxpy4", [2.5, a, y, 250])
    # a product of two f32 is exact in f64, and 2.5 a + b so nearly that it rounds once
    assert ulps(y, 2.5 * a.astype(float) + b) <= 0.5


def test_halves(ptx: str, rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 2 * N)).astype(np.float16)
    out = np.zeros((12, 2 * N), np.float16)
    execute(ptx, "half2_rows", [a, b, out, N])
    x, y = a.astype(float), b.astype(float)
    # sums and products of halves are exact in f64, so each is rounded once
    assert (out[0] == (x + y).astype(np.float16)).all()
    assert (out[1] == (x * y).astype(np.float16)).all()
    assert (out[2] == (x * y + 1).astype(np.float16)).all()
    assert (out[3] == np.clip(x - y, 0, 1).astype(np.float16)).all()
    assert (out[4] == np.maximum(a, b)).all()
    assert (out[5] == -np.abs(a)).all()
    assert (out[6] == (x / y).astype(np.float16)).all()
    assert (out[7] == np.sqrt(np.abs(x)).astype(np.float16)).all()
    assert (out[8] == (a > b)).all()
    assert (out[9] == a.reshape(-1, 2)[:, ::-1].ravel()).all()
    assert (out[10] == np.rint((8 * x).astype(np.float16))).all()
    # CUDA math API: half exponentials and logarithms are within 1 ulp
    assert ulps(out[11, ::2], np.exp(x[::2])) <= 1
    assert ulps(out[11, 1::2], np.log(np.abs(x[1::2]))) <= 1


def test_bfloats(ptx: str, rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, N)).astype(ml_dtypes.bfloat16)
    out = np.zeros((7, N), ml_dtypes.bfloat16)
    execute(ptx, "bfloat_rows", [a, b, out, N])
    x, y, z = a.astype(float), b.astype(float), out.astype(float)
    assert (z[0] == rounded(x + y, 8)).all()
    assert (z[1] == rounded(x * y, 8)).all()
    assert (z[2] == rounded(x * y + 1, 8)).all()
    assert (z[3] == np.minimum(x, y)).all()
    product = a.astype(f32) * f32(1.01)
    toward_zero = (product.view(np.uint32) & 0xFFFF0000).view(f32)
    assert (z[4] == toward_zero).all()
    assert (z[5] == np.abs(x)).all()
    assert (z[6] == rounded(np.sqrt(np.abs(x)), 8)).all()


def test_8_bit_floats(ptx: str, rng: np.random.Generator) -> None:
    x = (rng.normal(size=(N, 4)) * 10.0 ** rng.integers(-4, 3, (N, 4))).astype(f32)
    x[:3, 0] = 448, 500, -1e6
    bytes_e4m3, back = np.zeros((N, 4), np.uint8), np.zeros_like(x)
    bytes_e5m2 = np.zeros((N, 2), np.uint8)
    execute(ptx, "fp8_round_trip", [x, bytes_e4m3, back, bytes_e5m2, N])
    expected = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    assert (bytes_e4m3 == expected.view(np.uint8)).all()
    assert (back == expected.astype(f32)).all()
    narrow = np.clip(x[:, [0, 3]], -57344, 57344).astype(ml_dtypes.float8_e5m2)
    assert (bytes_e5m2 == narrow.view(np.uint8)).all()


def test_fast_math(ptx: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-3, 3, N).astype(f32)
    out = np.zeros((10, N), f32)
    execute(ptx, "fast_math", [x, out, N])
    e = x.astype(float)
    above = np.abs(x) + f32(1)
    # the bounds of the CUDA C++ Programming Guide, "Intrinsic Functions"
    assert np.abs(out[0] - np.sin(e)).max() < 2**-21.4
    assert np.abs(out[1] - np.cos(e)).max() < 2**-21.1
    assert ulps(out[2], np.exp(e)) <= 2 + math.floor(1.173 * 3)
    assert np.abs(out[3] - np.log(above.astype(float))).max() < 2**-21
    assert ulps(out[4], e / 3) <= 2
    assert ulps(out[5], above.astype(float) ** -0.5) <= 2
    # exp2(1.5 log2 x): its argument is below 3, so off by 2^-22 and a few roundings
    assert ulps(out[6], above.astype(float) ** 1.5) <= 8
    assert (out[7] == np.clip(x, 0, 1)).all()
    assert ulps(out[8], 1 / (x + f32(10)).astype(float)) <= 0.5
    root = np.sqrt(np.abs(e))
    down = root.astype(f32)
    down = np.where(down > root, np.nextafter(down, f32(0)), down)
    assert (out[9] == down).all()


def test_accurate_functions(ptx: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=N).astype(f32)
    out = np.zeros((12, N), f32)
    execute(ptx, "accurate", [x, out, N])
    e = x.astype(float)
    large = (x * f32(1000)).astype(float), (x * f32(1e6)).astype(float)
    exact: list[tuple[Array, float]] = [
        # the CUDA C++ Programming Guide's "Single-Precision Mathematical Functions", in ulps
        (np.sin(large[0]), 2),
        (np.cos(large[1]), 2),
        (np.exp(e), 2),
        (np.log(np.abs(e)), 1),
        (np.abs(e) ** e, 4),
        (np.array([math.erf(v) for v in e]), 2),
        (np.cbrt(e), 1),
        (np.tanh(e), 2),
        (np.arctan2(e, 0.5), 3),
        (np.fmod((x * f32(100)).astype(float), float(f32(0.7))), 0),
        (e / 3, 0.5),
        (np.array([math.lgamma(v) for v in np.abs(x) + f32(0.5)]), 6),
    ]
    for row, (values, bound) in enumerate(exact):
        if row == 11:  # near its zeros at 1 and 2 the bound is absolute
            assert np.abs(out[row] - values).max() < 6 * 2**-23
        else:
            assert ulps(out[row], values) <= bound + 1e-6, row


def test_doubles(ptx: str, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, N))
    out = np.zeros((13, N))
    execute(ptx, "doubles", [x, y, out, N])
    assert (out[0] == x / y).all()
    assert (out[1] == np.sqrt(np.abs(x))).all()
    # 1 ulp (sin, pow: 2) of the guide's "Double-Precision Mathematical Functions", and numpy's 1
    assert ulps(out[2], np.exp(x)) <= 2
    assert ulps(out[3], np.log(np.abs(x))) <= 2
    assert ulps(out[4], np.sin(x * 1e5)) <= 3
    longer = np.longdouble
    product = (longer(x) * longer(y) + 1).astype(float)
    assert ulps(out[5], product) <= 1  # numpy's long double has 64 digits, not 106
    total = x + y
    assert (out[6] >= total).all()
    assert ulps(out[6], total) <= 1
    assert (out[7] <= x / y).all()
    assert ulps(out[7], x / y) <= 1
    assert (out[7] * y != x).any()
    assert (out[8] == np.rint(x * 4)).all()
    assert (out[9] == np.trunc(x * 4) + np.ceil(y) - np.floor(y)).all()
    assert ulps(out[10], np.abs(x) ** y) <= 3
    assert (out[11] == x.astype(f32)).all()
    assert ulps(out[12], 1 / np.sqrt(np.abs(y))) <= 2


def test_wide_integers(ptx: str, rng: np.random.Generator) -> None:
    a = rng.integers(0, 2**64, N, dtype=np.uint64) >> rng.integers(0, 60, N).astype(np.uint64)
    b = (rng.integers(0, 2**64, N, dtype=np.uint64) >> rng.integers(0, 60, N).astype(np.uint64)) | 1
    out = np.zeros((17, N), np.uint64)
    execute(ptx, "wide", [a, b, out, N])
    for i in range(N):
        expected = wide(int(a[i]), int(b[i]))
        found = [int(v) for v in out[:, i]]
        assert found == expected, [r for r in range(17) if found[r] != expected[r]]


M32, M64 = 2**32 - 1, 2**64 - 1


def signed(x: int, bits: int) -> int:
    x &= 2**bits - 1
    return x - 2**bits if x >> (bits - 1) else x


def halves(low: int, high: int) -> int:
    return low & M32 | (high & M32) << 32


def by_bytes(x: int, y: int, add: int, sign: bool) -> int:
    fields = [(x >> s & 255, y >> s & 255) for s in (0, 8, 16, 24)]
    return add + sum(signed(p, 8) * signed(q, 8) if sign else p * q for p, q in fields)


def wide(x: int, y: int) -> list[int]:
    """The rows of the kernel `wide` in Python's integers."""
    u, v, sx, sy = x & M32, y & M32, signed(x, 64), signed(y, 64)
    su, sv = signed(u, 32), signed(v, 32)
    divisor = y >> 40 | 1
    quotient = abs(sx) // divisor * (1 if sx >= 0 else -1)
    left = (v << 32 | u) << (v & 31) >> 32
    # __funnelshift_rc shifts by at most 32
    right = (v << 32 | u) >> min(v & 63, 32)
    chosen = (u | v << 32).to_bytes(8, "little")
    permuted = int.from_bytes(bytes(chosen[s] for s in (0, 4, 1, 5)), "little")
    scaled = float(sx) * 0.25
    sums = [(u >> s & 255) + (v >> s & 255) & 255 for s in (0, 8, 16, 24)]
    tops = [max(signed(u >> s, 16), signed(v >> s, 16)) & 0xFFFF for s in (0, 16)]
    return [
        x * y & M64,
        x * y >> 64,
        (sx * sy >> 64) & M64,
        x // y,
        x % y,
        quotient & M64,
        (sx >> (y & 63)) & M64,
        64 - x.bit_length() | x.bit_count() << 8 | (x & -x).bit_length() << 16,
        int(f"{x:064b}"[::-1], 2),
        halves(left, right),
        halves(permuted, abs(su - sv) + 7),
        halves(by_bytes(u, v, 11, True), by_bytes(u, v, 11, False)),
        halves((u & 0xFFFFFF) * (v & 0xFFFFFF), u * v >> 32),
        halves(u // (v | 1), u % 1000003),
        max(-(2**63), min(2**63 - 1, int(scaled))) & M64,
        halves(
            int.from_bytes(bytes(sums), "little"),
            tops[0] | tops[1] << 16,
        ),
        x * y + x >> 64,
    ]
