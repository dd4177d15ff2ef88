"""Integer instructions against Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Evaluate

Model = Callable[..., int]
SETTINGS = settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def edge(width: int) -> st.SearchStrategy[int]:
    """Any bits, often with few ones, few zeros or the sign alone."""
    top = (1 << width) - 1
    special = [0, 1, 2, 3, top, top - 1, top >> 1, (top >> 1) + 1, 31, 32, 33, 63, 64, 255]
    return st.sampled_from([x & top for x in special]) | st.integers(0, top)


def rows(widths: list[int]) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[edge(w) for w in widths]), min_size=32, max_size=64)


def signed(x: int, width: int) -> int:
    x &= (1 << width) - 1
    return x - (1 << width) if x >> (width - 1) else x


def towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def of1(function: Callable[[int], int]) -> Model:
    return function


def of2(function: Callable[[int, int], int]) -> Model:
    return function


def of3(function: Callable[[int, int, int], int]) -> Model:
    return function


def binary(width: int, is_signed: bool, function: Callable[[int, int], int]) -> Model:
    def model(a: int, b: int) -> int:
        if is_signed:
            a, b = signed(a, width), signed(b, width)
        return function(a, b)

    return model


def high_half(width: int) -> Callable[[int, int], int]:
    def function(a: int, b: int) -> int:
        return a * b >> width

    return function


def case_name(value: object) -> str:
    return value if isinstance(value, str) and "." in value else ""


def clamp(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


def funnel(right: bool, wrap: bool) -> Model:
    def model(a: int, b: int, c: int) -> int:
        n = c & 31 if wrap else min(c, 32)
        both = b << 32 | a
        return both >> n if right else both << n >> 32

    return model


def extract(width: int, is_signed: bool) -> Model:
    """bfe, written from the loop of PTX ISA 9.7.1.19."""

    def model(a: int, b: int, c: int) -> int:
        position, length = b & 0xFF, c & 0xFF
        last = width - 1
        sign = 0
        if is_signed and length:
            sign = a >> min(position + length - 1, last) & 1
        result = 0
        for i in range(width):
            inside = i < length and position + i <= last
            result |= (a >> (position + i) & 1 if inside else sign) << i
        return result

    return model


def insert(width: int) -> Model:
    """bfi, written from the loop of PTX ISA 9.7.1.20."""

    def model(a: int, b: int, c: int, d: int) -> int:
        position, length = c & 0xFF, d & 0xFF
        result = b
        for i in range(length):
            if position + i >= width:
                break
            result = result & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return result

    return model


def permute(a: int, b: int, c: int) -> int:
    data = (b << 32 | a).to_bytes(8, "little")
    result = 0
    for i in range(4):
        nibble = c >> (4 * i) & 15
        byte = data[nibble & 7]
        if nibble & 8:
            byte = 0xFF if byte >> 7 else 0
        result |= byte << (8 * i)
    return result


def look_up(table: int) -> Model:
    def model(a: int, b: int, c: int) -> int:
        result = 0
        for i in range(32):
            row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
            result |= (table >> row & 1) << i
        return result

    return model


def dot4(a: int, b: int, c: int) -> int:
    total = c
    for i in range(4):
        total += signed(a >> (8 * i), 8) * (b >> (8 * i) & 0xFF)
    return total


def highest(width: int, is_signed: bool, amount: bool) -> Model:
    def model(a: int) -> int:
        if is_signed and a >> (width - 1):
            a = ~a & ((1 << width) - 1)
        if a == 0:
            return 0xFFFFFFFF
        return width - a.bit_length() if amount else a.bit_length() - 1

    return model


CASES: list[tuple[str, list[int], int, str, Model]] = [
    ("min.s32", [32, 32], 32, "", binary(32, True, min)),
    ("max.u64", [64, 64], 64, "", binary(64, False, max)),
    (
        "add.sat.s32",
        [32, 32],
        32,
        "",
        binary(32, True, lambda a, b: clamp(a + b, -(2**31), 2**31 - 1)),
    ),
    (
        "sub.sat.s32",
        [32, 32],
        32,
        "",
        binary(32, True, lambda a, b: clamp(a - b, -(2**31), 2**31 - 1)),
    ),
    ("abs.s32", [32], 32, "", of1(lambda a: abs(signed(a, 32)))),
    ("neg.s16", [16], 16, "", of1(lambda a: -signed(a, 16))),
    ("sad.s32", [32, 32, 32], 32, "", of3(lambda a, b, c: c + abs(signed(a, 32) - signed(b, 32)))),
    ("popc.b64", [64], 32, "", of1(lambda a: a.bit_count())),
    ("clz.b32", [32], 32, "", of1(lambda a: 32 - a.bit_length())),
    ("clz.b64", [64], 32, "", of1(lambda a: 64 - a.bit_length())),
    ("brev.b32", [32], 32, "", of1(lambda a: int(f"{a:032b}"[::-1], 2))),
    ("brev.b64", [64], 64, "", of1(lambda a: int(f"{a:064b}"[::-1], 2))),
    ("cnot.b32", [32], 32, "", of1(lambda a: int(a == 0))),
    ("bfind.u32", [32], 32, "", highest(32, False, False)),
    ("bfind.s32", [32], 32, "", highest(32, True, False)),
    ("bfind.shiftamt.u64", [64], 32, "", highest(64, False, True)),
    ("bfind.s64", [64], 32, "", highest(64, True, False)),
    ("bfe.u32", [32, 32, 32], 32, "", extract(32, False)),
    ("bfe.s32", [32, 32, 32], 32, "", extract(32, True)),
    ("bfe.s64", [64, 32, 32], 64, "", extract(64, True)),
    ("bfe.u64", [64, 32, 32], 64, "", extract(64, False)),
    ("bfi.b32", [32, 32, 32, 32], 32, "", insert(32)),
    ("bfi.b64", [64, 64, 32, 32], 64, "", insert(64)),
    ("shf.l.wrap.b32", [32, 32, 32], 32, "", funnel(False, True)),
    ("shf.l.clamp.b32", [32, 32, 32], 32, "", funnel(False, False)),
    ("shf.r.wrap.b32", [32, 32, 32], 32, "", funnel(True, True)),
    ("shf.r.clamp.b32", [32, 32, 32], 32, "", funnel(True, False)),
    ("prmt.b32", [32, 32, 32], 32, "", permute),
    ("dp4a.s32.u32", [32, 32, 32], 32, "", dot4),
    ("shl.b32", [32, 32], 32, "", of2(lambda a, n: a << n if n < 32 else 0)),
    ("shl.b64", [64, 32], 64, "", of2(lambda a, n: a << n if n < 64 else 0)),
    ("shr.u32", [32, 32], 32, "", of2(lambda a, n: a >> min(n, 32))),
    ("shr.s32", [32, 32], 32, "", of2(lambda a, n: signed(a, 32) >> min(n, 31))),
    ("shr.s64", [64, 32], 64, "", of2(lambda a, n: signed(a, 64) >> min(n, 63))),
    ("shr.s16", [16, 32], 16, "", of2(lambda a, n: signed(a, 16) >> min(n, 15))),
    ("bmsk.clamp.b32", [32, 32], 32, "", of2(lambda a, b: ((1 << min(b, 32)) - 1) << min(a, 32))),
    ("mul24.lo.u32", [32, 32], 32, "", of2(lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF))),
]
CASES.extend(
    [
        ("lop3.b32", [32, 32, 32], 32, f", 0x{t:x}", look_up(t))
        for t in (0x96, 0xE8, 0x1B, 0xCA, 0x2D)
    ]
)
for width in (16, 32, 64):
    for letter in "us":
        is_signed = letter == "s"
        kind = f"{letter}{width}"
        CASES.extend(
            [
                (
                    f"add.{kind}",
                    [width] * 2,
                    width,
                    "",
                    binary(width, is_signed, lambda a, b: a + b),
                ),
                (
                    f"mul.lo.{kind}",
                    [width] * 2,
                    width,
                    "",
                    binary(width, is_signed, lambda a, b: a * b),
                ),
                (
                    f"mul.hi.{kind}",
                    [width] * 2,
                    width,
                    "",
                    binary(width, is_signed, high_half(width)),
                ),
            ]
        )
        if width < 64:
            CASES.append(
                (
                    f"mul.wide.{kind}",
                    [width] * 2,
                    2 * width,
                    "",
                    binary(width, is_signed, lambda a, b: a * b),
                )
            )


@pytest.mark.parametrize(
    ("mnemonic", "widths", "output", "extra", "model"),
    CASES,
    ids=case_name,
)
@SETTINGS
@given(data=st.data())
def test_equals_python(
    mnemonic: str,
    widths: list[int],
    output: int,
    extra: str,
    model: Model,
    data: st.DataObject,
    evaluate: Evaluate,
) -> None:
    values = data.draw(rows(widths))
    inputs = [np.array([v[i] for v in values], f"u{w // 8}") for i, w in enumerate(widths)]
    got = evaluate(mnemonic, inputs, output, extra)
    mask = (1 << output) - 1
    wanted = [model(*v) & mask for v in values]
    assert [int(x) for x in got] == wanted


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64", "s16"])
@SETTINGS
@given(data=st.data())
def test_division(kind: str, data: st.DataObject, evaluate: Evaluate) -> None:
    width = int(kind[1:])
    values = [v for v in data.draw(rows([width, width])) if v[1]]
    if not values:
        return
    inputs = [np.array([v[i] for v in values], f"u{width // 8}") for i in range(2)]
    mask = (1 << width) - 1
    quotients, remainders = (evaluate(f"{op}.{kind}", inputs, width) for op in ("div", "rem"))
    for (a, b), q, r in zip(values, quotients, remainders, strict=True):
        if kind[0] == "s":
            a, b = signed(a, width), signed(b, width)
        wanted = towards_zero(a, b)
        assert int(q) == wanted & mask
        assert int(r) == (a - wanted * b) & mask


def test_carry_chain(evaluate: Evaluate) -> None:
    """A 64-bit sum and product from 32-bit halves."""
    from fragir.emulator import run

    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 1 << 64, 32, np.uint64) for _ in range(2))
    a[:4], b[:4] = 0xFFFFFFFFFFFFFFFF, [0, 1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF]
    sums, differences, products = (np.zeros(32, np.uint64) for _ in range(3))
    run(
        """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 s, .param .u64 m, .param .u64 d)
{
    .reg .b64 %p<9>; .reg .b32 %r<20>;
    mov.u32 %r0, %tid.x; mul.wide.u32 %p0, %r0, 8;
    ld.param.u64 %p1, [a]; add.u64 %p1, %p1, %p0; ld.global.v2.u32 {%r1, %r2}, [%p1];
    ld.param.u64 %p2, [b]; add.u64 %p2, %p2, %p0; ld.global.v2.u32 {%r3, %r4}, [%p2];
    add.cc.u32 %r5, %r1, %r3; addc.u32 %r6, %r2, %r4;
    ld.param.u64 %p3, [s]; add.u64 %p3, %p3, %p0; st.global.v2.u32 [%p3], {%r5, %r6};
    mul.lo.u32 %r7, %r1, %r3; mul.hi.u32 %r8, %r1, %r3;
    mad.lo.cc.u32 %r8, %r1, %r4, %r8; mad.lo.u32 %r8, %r2, %r3, %r8;
    ld.param.u64 %p4, [m]; add.u64 %p4, %p4, %p0; st.global.v2.u32 [%p4], {%r7, %r8};
    sub.cc.u32 %r9, %r1, %r3; subc.u32 %r10, %r2, %r4;
    ld.param.u64 %p5, [d]; add.u64 %p5, %p5, %p0; st.global.v2.u32 [%p5], {%r9, %r10};
    ret;
}
""",
        arguments=[a, b, sums, products, differences],
    )
    assert (sums == a + b).all()
    assert (products == a * b).all()
    assert (differences == a - b).all()
