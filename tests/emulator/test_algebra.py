"""Which function a kernel computes: foreign kernels, and every kind of instruction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

from fragir.algebra import Values
from fragir.emulator import run
from fragir.emulator.checks.algebra.algebra import Followed, follow

Array = numpy.ndarray[Any, Any]
TRITON = Path(__file__).parents[1] / "foreign" / "triton_ptx"
LAUNCHES = json.loads((TRITON / "launches.json").read_text("utf-8"))
np: Any = numpy  # its functions over values give values, which its types do not say
RNG = np.random.default_rng(0)
f16, f32 = np.float16, np.float32


def given(*arrays: Array) -> list[Values]:
    return [Values.random(a, RNG) for a in arrays]


def triton(
    name: str,
    arguments: Sequence[object],
    inputs: Sequence[tuple[Array, str, Values]],
    grid: Sequence[int],
    ptx: str | None = None,
) -> Followed:
    launch = LAUNCHES[name]
    followed = follow(inputs)
    run(
        ptx or (TRITON / f"{name}.ptx").read_text("utf-8"),
        launch["entry"],
        arguments=[*arguments, None, None],
        grid=grid,
        block=(32 * launch["warps"],),
        shared=launch["shared"],
        checks=[followed],
    )
    return followed


def assert_equal(followed: Followed, array: Array, form: str, wanted: Values) -> None:
    got = followed.output(array, form)
    assert not followed.opaque
    assert (got.p == wanted.p).all()


def softmax(x: Values) -> Values:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "form", "dtype", "tile"),
    [
        ("gemm.sm_80", "f16", f16, 64),
        ("gemm.sm_90", "f16", f16, 64),
        ("gemm.sm_100", "f16", f16, 64),
        ("gemm_tf32.sm_80", "f32", f32, 32),
    ],
)
def test_product(name: str, form: str, dtype: Any, tile: int):
    m, n, k = 80, 48, 80
    a, b = RNG.normal(size=(m, k)).astype(dtype), RNG.normal(size=(k, n)).astype(dtype)
    x, y = given(a, b)
    grid = (-(-n // tile), -(-m // tile))
    out = np.zeros((m, n), f32)
    followed = triton(name, [a, b, out, m, n, k], [(a, form, x), (b, form, y)], grid)
    assert_equal(followed, out, "f32", x @ y)


def test_softmax():
    x = RNG.normal(size=(5, 250)).astype(f32)
    (values,) = given(x)
    out = np.zeros_like(x)
    followed = triton("softmax.sm_80", [x, out, 250], [(x, "f32", values)], (5,))
    assert_equal(followed, out, "f32", softmax(values))
    assert followed.compared  # the largest


def layer_norm(epsilon: float) -> tuple[Values, Values]:
    x, w, b = (RNG.normal(size=s).astype(f32) for s in ((5, 300), (300,), (300,)))
    values, weight, bias = given(x, w, b)
    inputs = [(x, "f32", values), (w, "f32", weight), (b, "f32", bias)]
    out = np.zeros_like(x)
    followed = triton("layer_norm.sm_80", [x, w, b, out, 300, epsilon], inputs, (5,))
    away = values - values.mean(-1, keepdims=True)
    root = np.sqrt(np.square(away).mean(-1, keepdims=True) + float(f32(1e-5)))
    return followed.output(out, "f32"), away / root * weight + bias


def test_layer_norm():
    got, wanted = layer_norm(1e-5)
    assert (got.p == wanted.p).all()


def test_twice_the_epsilon_is_another_function_though_the_numbers_are_close():
    got, wanted = layer_norm(2e-5)
    np.testing.assert_allclose(got.real, wanted.real, rtol=1e-2, atol=1e-2)
    assert (got.p != wanted.p).all()


@pytest.mark.parametrize(
    ("name", "keys", "depth", "scale"),
    [
        ("attention.sm_80", 100, 64, 0.18),
        ("attention_causal.sm_80", 128, 32, 0.25),
        ("attention_wide.sm_100", 160, 64, 0.18),
    ],
)
def test_attention(name: str, keys: int, depth: int, scale: float):
    q, k, v = (RNG.normal(size=s).astype(f16) for s in ((128, depth), (keys, depth), (keys, depth)))
    values = given(q, k, v)
    inputs = [(a, "f16", x) for a, x in zip((q, k, v), values, strict=True)]
    out = np.zeros((128, depth), f32)
    grid = (1,) if "wide" in name else (2,)
    followed = triton(name, [q, k, v, out, keys, scale], inputs, grid)
    scores = (values[0] @ values[1].T) * float(f32(scale))
    if "causal" in name:
        scores = np.where(np.tri(128, keys, dtype=bool), scores, -np.inf)
    weights = np.exp2(scores - scores.max(-1, keepdims=True))
    assert_equal(followed, out, "f32", weights / weights.sum(-1, keepdims=True) @ values[2])


# -- instructions ----------------------------------------------------------------------------------

HEAD = """
.version 8.7
.target sm_100a
.address_size 64
.shared .align 16 .b8 s[1024];
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pd)
{
.reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %l<20>; .reg .b16 %h<20>; .reg .pred %p<8>;
.reg .f64 %d<8>;
ld.param.u64 %l1, [pa]; ld.param.u64 %l2, [pb]; ld.param.u64 %l3, [pd];
mov.u32 %r0, %tid.x; mul.wide.u32 %l0, %r0, 4;
add.u64 %l1, %l1, %l0; add.u64 %l2, %l2, %l0; add.u64 %l3, %l3, %l0;
"""


def one(
    body: str, a: Array, b: Array | None = None, form: str = "f32"
) -> tuple[Followed, Values, Any]:
    """A kernel of 32 lanes: words of a and b in, words of d out."""
    b = a.copy() if b is None else b
    x, y = given(a, b)
    out = np.zeros(32 * 4 // a.itemsize, a.dtype)
    followed = follow([(a, form, x), (b, form, y)])
    run(HEAD + body + "\nret;\n}\n", "k", arguments=[a, b, out], checks=[followed])
    return followed, followed.output(out, form), (x, y)


WORDS = "ld.global.b32 %r1, [%l1]; ld.global.b32 %r2, [%l2];"
FLOATS = "ld.global.f32 %f1, [%l1]; ld.global.f32 %f2, [%l2];"
OF_F32: dict[str, Callable[[Any, Any], Any]] = {
    "add.f32 %f3, %f1, %f2;": lambda x, y: x + y,
    "sub.rz.f32 %f3, %f1, %f2;": lambda x, y: x - y,
    "mul.ftz.f32 %f3, %f1, %f2;": lambda x, y: x * y,
    "fma.rn.f32 %f3, %f1, %f2, %f1;": lambda x, y: x * y + x,
    "div.full.f32 %f3, %f1, %f2;": lambda x, y: x / y,
    "rcp.approx.f32 %f3, %f1;": lambda x, y: 1.0 / x,
    "neg.f32 %f3, %f1;": lambda x, y: -x,
    "abs.f32 %f3, %f1;": lambda x, y: np.abs(x),
    "max.f32 %f3, %f1, %f2;": lambda x, y: np.maximum(x, y),
    "min.f32 %f3, %f1, %f2;": lambda x, y: np.minimum(x, y),
    "ex2.approx.f32 %f3, %f1;": lambda x, y: np.exp2(x),
    "tanh.approx.f32 %f3, %f1;": lambda x, y: np.tanh(x),
    "mul.f32 %f4, %f1, 0f3FC00000; add.f32 %f3, %f4, %f2;": lambda x, y: x * 1.5 + y,
    "cvt.f64.f32 %d1, %f1; cvt.f64.f32 %d2, %f2; mul.f64 %d1, %d1, %d2; cvt.rn.f32.f64 %f3, %d1;": (
        lambda x, y: x * y
    ),
    "setp.gt.f32 %p1, %f1, %f2; selp.f32 %f3, %f1, %f2, %p1;": lambda x, y: np.maximum(x, y),
    "setp.gt.f32 %p1, %f1, 0f00000000; @%p1 mul.f32 %f1, %f1, %f2; mov.f32 %f3, %f1;": (
        lambda x, y: np.where(x > 0, x * y, x)
    ),
    "shfl.sync.bfly.b32 %f4, %f1, 1, 31, -1; add.f32 %f3, %f1, %f4;": (
        lambda x, y: x + x.reshape(16, 2)[:, ::-1].reshape(32)
    ),
    "cvta.shared.u64 %l4, s; add.u64 %l4, %l4, %l0; st.f32 [%l4], %f1; bar.warp.sync -1;"
    "ld.f32 %f3, [%l4]; mul.f32 %f3, %f3, %f2;": lambda x, y: x * y,
    "cvt.rn.bf16x2.f32 %r3, %f1, %f2; prmt.b32 %r4, %r3, 0, 0x3244; mov.b32 %f3, %r4;": (
        lambda x, y: x
    ),
    "mov.b32 %r3, %f1; shr.u32 %r3, %r3, 16; cvt.u16.u32 %h1, %r3; cvt.f32.bf16 %f3, %h1;": (
        lambda x, y: x
    ),
    "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.rn.f16x2.e4m3x2 %r3, %h1;"
    "mov.b32 {%h2, %h3}, %r3; cvt.f32.f16 %f3, %h3;": lambda x, y: x,
    "red.global.add.f32 [%l2], %f1; ld.global.f32 %f3, [%l2];": lambda x, y: x + y,
    "mov.f32 %f4, 0f41200000; rcp.approx.f32 %f4, %f4; mul.f32 %f3, %f1, %f4;": (
        lambda x, y: x / 10.0
    ),
    "cvt.rn.f32.u32 %f4, %r0; mul.f32 %f3, %f1, %f4;": lambda x, y: x * np.arange(32.0),
}


@pytest.mark.parametrize("body", OF_F32)
def test_arithmetic(body: str):
    a, b = (RNG.normal(size=32).astype(f32) for _ in range(2))
    followed, got, (x, y) = one(f"{FLOATS} {body} st.global.f32 [%l3], %f3;", a, b)
    wanted = OF_F32[body](x, y)
    assert not followed.opaque
    assert (got.p == wanted.p).all()
    tolerance = 0.1 if "e4m3" in body or "bf16" in body else 1e-5
    np.testing.assert_allclose(got.real, wanted.real, rtol=tolerance, atol=1e-3)


PACKED: dict[str, Callable[[Any, Any], Any]] = {
    "fma.rn.f16x2 %r3, %r1, %r2, %r1;": lambda x, y: x * y + x,
    "add.rn.f16x2 %r3, %r1, %r2;": lambda x, y: x + y,
    "max.f16x2 %r3, %r1, %r2;": lambda x, y: np.maximum(x, y),
    "mov.b32 {%h1, %h2}, %r1; mov.b32 %r3, {%h2, %h1};": (
        lambda x, y: x.reshape(32, 2)[:, ::-1].reshape(64)
    ),
    "prmt.b32 %r3, %r1, %r2, 0x5410;": (lambda x, y: np.stack([x[::2], y[::2]], 1).reshape(64)),
    "red.global.add.noftz.f16x2 [%l2], %r1; ld.global.b32 %r3, [%l2];": lambda x, y: x + y,
}


@pytest.mark.parametrize("body", PACKED)
def test_packed_arithmetic(body: str):
    a, b = (RNG.normal(size=64).astype(f16) for _ in range(2))
    followed, got, (x, y) = one(f"{WORDS} {body} st.global.b32 [%l3], %r3;", a, b, "f16")
    wanted = PACKED[body](x, y)
    assert not followed.opaque
    assert (got.p == wanted.p).all()


@pytest.mark.parametrize(
    "body",
    [
        "mov.b32 %r3, %f1; add.s32 %r3, %r3, 1; mov.b32 %f3, %r3;",  # the next float
        "mov.b32 %r3, %f1; and.b32 %r3, %r3, 0xFFFF0F00; mov.b32 %f3, %r3; add.f32 %f3, %f3, %f1;",
        "mov.b32 %r3, %f1; mul.lo.u32 %r3, %r3, 3; mov.b32 %f3, %r3;",
        "cvt.rn.f16.f32 %h1, %f1; cvt.f32.bf16 %f3, %h1;",  # one format read as another
        "mov.b32 %r3, %f1; cvt.rn.f32.u32 %f3, %r3;",
        "mov.b32 %r3, %f1; atom.global.xor.b32 %r3, [%l2], %r3; mov.b32 %f3, %r3;",
    ],
)
def test_bits_that_are_used_for_something_else_are_told(body: str):
    a = RNG.normal(size=32).astype(f32)
    followed, _, _ = one(f"{FLOATS} {body} st.global.f32 [%l3], %f3;", a)
    assert followed.opaque


def test_a_whole_number_that_comes_out_is_told():
    body = "add.f32 %f3, %f1, 0f4B400000; add.f32 %f3, %f3, 0fCB400000; mul.f32 %f3, %f3, %f2;"
    a = (10 * RNG.normal(size=32)).astype(f32)
    b = RNG.normal(size=32).astype(f32)
    followed, got, (_, y) = one(f"{FLOATS} {body} st.global.f32 [%l3], %f3;", a, b)
    assert followed.rounded
    assert (got.p == (y * np.rint(a.astype(np.float64))).p).all()


def test_a_fault_of_one_lane_is_found():
    """The distance of a shuffle: sums of 16 lanes in place of 32."""
    body = "".join(
        f"shfl.sync.bfly.b32 %f4, %f1, {n}, 31, -1; add.f32 %f1, %f1, %f4;" for n in (8, 8, 4, 2, 1)
    )
    a = np.full(32, 1e-3, f32)
    _, got, (x, _) = one(f"{FLOATS} {body} st.global.f32 [%l3], %f1;", a)
    np.testing.assert_allclose(got.real, x.real.sum(), rtol=1e-5)
    assert (got.p != x.sum().p).all()


def test_rows_that_nobody_names_are_dropped(monkeypatch: pytest.MonkeyPatch):
    from fragir.emulator.checks.algebra import numbers

    monkeypatch.setattr(numbers, "_ROOM", 256)
    x = RNG.normal(size=(5, 250)).astype(f32)
    (values,) = given(x)
    out = np.zeros_like(x)
    followed = triton("softmax.sm_80", [x, out, 250], [(x, "f32", values)], (5,))
    assert_equal(followed, out, "f32", softmax(values))
