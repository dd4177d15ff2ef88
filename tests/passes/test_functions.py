"""Functions of several instructions, within the reference's bounds: f16 whole, f32 at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.errors import FragirError
from fragir.reference import elementwise, functions, integers
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import FLOATS, INTEGERS, decode
from tests.properties.judge import judge

Array = npt.NDArray[Any]
TILE = 128
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, np.inf, -np.inf, np.nan, 1e-45, 1e-38, 3e38, 88.7,
         89.1, -88.0, -104.0, 0.49999997, 8388609.0, 1.5, 2.5, 0.9277, 16384.0, 1e5]  # fmt: skip


def program(operation: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """Block b does `operation`, of %v0, %v1 to %r0, %r1, on elements 128 b and on."""
    every = [*(f"%x{i}: memref<?x{t}>" for i, t in enumerate(inputs))]
    every += [f"%y{i}: memref<?x{t}>" for i, t in enumerate(outputs)]
    lines = [f"func.func @k({', '.join(every)}) {{", "%b = frag.block_id x"]
    lines += [f"%size = arith.constant {TILE} : index", "%at = arith.muli %b, %size : index"]
    for i, t in enumerate(inputs):
        lines.append(f"%a{i} = frag.load %x{i}[%at] : memref<?x{t}> -> !frag.tile<{TILE}x{t}>")
    tiles = ", ".join(f"%a{i}" for i in range(len(inputs)))
    types = ", ".join(f"!frag.tile<{TILE}x{t}>" for t in inputs)
    arguments = ", ".join(f"%v{i}: {t}" for i, t in enumerate(inputs))
    for i, t in enumerate(outputs):
        lines.append(f"%t{i} = frag.map {tiles} : {types} -> !frag.tile<{TILE}x{t}> {{")
        lines += [f"^bb0({arguments}):", operation, f"frag.yield %r{i} : {t} }}"]
        lines.append(f"frag.store %t{i}, %y{i}[%at] : !frag.tile<{TILE}x{t}>, memref<?x{t}>")
    return "\n".join([*lines, "func.return }"])


def executed(
    text: str, arrays: Sequence[Array], outputs: Sequence[str], target: str = "sm_80"
) -> list[Array]:
    """What the emulator gives, checked where there is little; ptxas has nothing to say."""
    kernel = fragir.compile(text, target=target)
    assert kernel.assembled.warnings == []
    results = [np.zeros(len(arrays[0]), t) for t in outputs]
    blocks = len(arrays[0]) // TILE
    check = blocks <= 32
    report = kernel.launch((blocks,), (32,), *arrays, *results, on="emulator", check=check)
    assert report.findings == []
    return results


def within(result: Array, name: str, expected: Bounded) -> None:
    found = decode(result, name)
    with np.errstate(invalid="ignore"):
        close = np.abs(found - expected.value) <= expected.bound
    same = (found == expected.value) | (np.isnan(found) & np.isnan(expected.value))
    right = close | same | np.isinf(expected.bound)
    assert right.all(), (np.flatnonzero(~right)[:5], found[~right][:5], expected.value[~right][:5])


def wide(x: Array) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return x.astype(np.float64)


def every_f16() -> Array:
    return np.arange(65536, dtype=np.uint16).view(np.float16)


def numbers(seed: int, count: int = 4096) -> Array:
    """f32 of every exponent, many near 1, and the special ones."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (rng.standard_normal(count) * 4).astype(np.float32)
    x = np.where(rng.random(count) < 0.6, near, bits)
    x[: len(EDGES)] = EDGES
    return x


@pytest.mark.parametrize("name", sorted(functions.UNARY))
def test_functions_of_one_number(name: str) -> None:
    for type_, x in (("f32", numbers(1)), ("f16", every_f16())):
        text = program(f"%r0 = {name} %v0 : {type_}", [type_], [type_])
        (y,) = executed(text, [x], [x.dtype.str])
        with np.errstate(all="ignore"):
            expected = elementwise.UNARY[name](exactly(wide(x)), FLOATS[type_])
        within(y, type_, expected)
        # what the bounds say is close: two ulp of f16, some ulp of f32
        finite = np.isfinite(expected.value) & np.isfinite(expected.bound)
        allowed = {"f16": 2.0**-10, "f32": 2.0**-20}[type_]
        small = {"f16": 2.0**-24, "f32": 2.0**-145}[type_]
        largest = allowed * np.abs(expected.value[finite]) + small
        assert (expected.bound[finite] <= largest).all()
        near = np.abs(np.nan_to_num(wide(x), nan=np.inf)) < 80
        assert np.isfinite(expected.bound[near]).mean() > 0.99
        odd = name not in ("math.cosh", "math.acos", "math.acosh")
        if odd:
            zeros = x == 0
            assert (np.signbit(y[zeros]) == np.signbit(x[zeros])).all()


POWERS = [
    (0.0, -1.0), (-0.0, -3.0), (-0.0, 2.0), (-2.0, 3.0), (-2.0, 2.0), (-2.0, 0.5), (1.0, np.nan),
    (np.nan, 0.0), (-1.0, np.inf), (-1.0, -np.inf), (0.5, np.inf), (2.0, -np.inf), (np.inf, -1.0),
    (-np.inf, 3.0), (-np.inf, -2.0), (-np.inf, 0.5), (1e-40, 2.0), (1e-40, 0.5), (3e38, 1.0),
    (2.0, 127.9999), (2.0, -149.0), (0.999999, 1e7), (np.nan, 1.0), (2.0, np.nan),
]  # fmt: skip


@pytest.mark.parametrize("name", ["math.powf", "math.atan2", "math.copysign"])
def test_functions_of_two_numbers(name: str) -> None:
    rng = np.random.default_rng(7)
    x, y = numbers(2), numbers(3)
    every = [(a, b) for a in EDGES for b in EDGES] + POWERS
    x[: len(every)], y[: len(every)] = np.array(every, np.float32).T
    if name == "math.powf":  # where the power is neither 0 nor infinite
        x[2048:] = np.abs(x[2048:])
        with np.errstate(all="ignore"):
            exponent = rng.uniform(-150, 130, 2048) / np.log2(x[2048:])
        y[2048:] = np.nan_to_num(exponent, nan=1.0, posinf=1.0, neginf=1.0).astype(np.float32)
    for type_, a, b in (("f32", x, y), ("f16", every_f16(), np.roll(every_f16(), 12345))):
        text = program(f"%r0 = {name} %v0, %v1 : {type_}", [type_, type_], [type_])
        (found,) = executed(text, [a, b], [a.dtype.str])
        with np.errstate(all="ignore"):
            x, y = exactly(wide(a)), exactly(wide(b))
            expected = elementwise.BINARY[name](x, y, FLOATS[type_])
        within(found, type_, expected)
        zeros = (found == 0) & (expected.value == 0)
        assert (np.signbit(found) == np.signbit(expected.value))[zeros].all()


def test_whole_powers() -> None:
    rng = np.random.default_rng(9)
    x = (rng.standard_normal(2048) * 2).astype(np.float32)
    n = rng.integers(-30, 31, 2048).astype(np.int32)
    x[:6], n[:6] = [1 + 2.0**-23, -1, 0, -0.0, 2, -1], [2**25 + 1, 2**25 + 1, 0, -3, -149, -(2**31)]
    text = program("%r0 = math.fpowi %v0, %v1 : f32, i32", ["f32", "i32"], ["f32"])
    (found,) = executed(text, [x, n], ["f4"])
    with np.errstate(all="ignore"):
        operands = exactly(wide(x)), exactly(wide(n))
        expected = elementwise.BINARY["math.fpowi"](*operands, FLOATS["f32"])
    within(found, "f32", expected)
    assert np.isfinite(expected.bound).all()
    for bits, type_ in ((32, np.int32), (64, np.int64)):
        a = rng.integers(-5, 6, 512).astype(type_)
        b = rng.integers(-3, 40, 512).astype(type_)
        b[a == 0] = np.abs(b[a == 0])
        operation = "%r0 = math.ipowi %v0, %v1 : i32"
        if bits == 64:
            operation = """
            %x = arith.extsi %v0 : i32 to i64
            %n = arith.extsi %v1 : i32 to i64
            %p = math.ipowi %x, %n : i64
            %r0 = arith.trunci %p : i64 to i32"""
        text = program(operation, ["i32", "i32"], ["i32"])
        (found,) = executed(text, [a.astype(np.int32), b.astype(np.int32)], ["i4"])
        wanted = [_whole(int(p), int(q)) for p, q in zip(a, b, strict=True)]
        assert found.tolist() == wanted


def _whole(x: int, n: int) -> int:
    power = x**n if n >= 0 else (x ** (-n) if abs(x) == 1 else 0)
    return (power + 2**31) % 2**32 - 2**31


def _quotient(name: str, a: int, b: int) -> int:
    if name == "ceildivui":
        return -(-(a % 2**32) // (b % 2**32))
    return -(-a // b) if name == "ceildivsi" else a // b


QUOTIENTS = ["ceildivui", "ceildivsi", "floordivsi"]


@pytest.mark.parametrize("name", [*QUOTIENTS, "ctlz", "cttz", "ctpop", "bitcast"])
def test_integers(name: str) -> None:
    rng = np.random.default_rng(11)
    x, y = (
        (rng.integers(-(2**31), 2**31, 1024) >> rng.integers(0, 31, 1024)).astype(np.int32)
        for _ in range(2)
    )
    y[y == 0] = 3
    x[:5], y[:5] = [0, 7, -7, 7, -8], [5, 2, 2, -2, 2]
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    if name in QUOTIENTS:
        text = program(f"%r0 = arith.{name} %v0, %v1 : i32", ["i32", "i32"], ["i32"])
        (found,) = executed(text, [x, y], ["i4"])
        wanted = [_quotient(name, a, b) for a, b in pairs]
        assert (found.astype(np.int64) % 2**32).tolist() == [w % 2**32 for w in wanted]
    elif name == "bitcast":
        text = program("%r0 = arith.bitcast %v0 : i32 to f32", ["i32"], ["f32"])
        (found,) = executed(text, [x], ["f4"])
        assert (found.view(np.int32) == x).all()
        text = program("%r0 = arith.bitcast %v0 : f32 to i32", ["f32"], ["i32"])
        assert (executed(text, [found], ["i4"])[0] == x).all()
    else:
        (found,) = executed(program(f"%r0 = math.{name} %v0 : i32", ["i32"], ["i32"]), [x], ["i4"])
        bits = [format(a % 2**32, "032b") for a in x.tolist()]
        wanted = {
            "ctlz": [32 - len(b.lstrip("0")) for b in bits],
            "cttz": [32 - len(b.rstrip("0")) for b in bits],
            "ctpop": [b.count("1") for b in bits],
        }[name]
        assert found.tolist() == wanted


@pytest.mark.parametrize("name", ["mului_extended", "mulsi_extended", "addui_extended"])
def test_two_results(name: str) -> None:
    rng = np.random.default_rng(13)
    x, y = (rng.integers(-(2**31), 2**31, 256).astype(np.int32) for _ in range(2))
    second = "i1" if name == "addui_extended" else "i32"
    operation = f'%r0, %s = "arith.{name}"(%v0, %v1) : (i32, i32) -> (i32, {second})'
    widen = "\n%r1 = arith.extui %s : i1 to i32" if second == "i1" else ""
    operation += widen
    if not widen:
        operation = operation.replace("%s", "%r1")
    low, high = executed(program(operation, ["i32", "i32"], ["i32", "i32"]), [x, y], ["i4", "i4"])
    for a, b, p, q in zip(x.tolist(), y.tolist(), low.tolist(), high.tolist(), strict=True):
        if name == "mulsi_extended":
            assert (q << 32) + p % 2**32 == a * b
        else:
            both = a % 2**32 * (b % 2**32) if name[0] == "m" else a % 2**32 + b % 2**32
            assert ((q % 2**32) << 32) + p % 2**32 == both


def test_in_f64() -> None:
    x = np.random.default_rng(5).standard_normal(256) * 100
    x[:6] = [0.5, -0.5, 2.5, 0.49999999999999994, 4503599627370497.0, np.inf]
    for operation, wanted in (("math.round %v0 : f64", functions.round_away),):
        (found,) = executed(program(f"%r0 = {operation}", ["f64"], ["f64"]), [x], ["f8"])
        with np.errstate(invalid="ignore"):
            assert (found == wanted(exactly(x), FLOATS["f64"]).value).all()
    (found,) = executed(program("%r0 = math.rsqrt %v0 : f64", ["f64"], ["f64"]), [abs(x)], ["f8"])
    within(found, "f64", elementwise.UNARY["math.rsqrt"](exactly(abs(x)), FLOATS["f64"]))
    assert np.allclose(found, 1 / np.sqrt(abs(x)), rtol=1e-15)


def test_f64_is_refused_where_it_has_no_instructions() -> None:
    with pytest.raises(FragirError, match=r"no instruction for math\.erf on f64") as caught:
        fragir.compile(program("%r0 = math.erf %v0 : f64", ["f64"], ["f64"]), target="sm_80")
    assert "cast to f32 around it" in str(caught.value)


def test_a_program_of_all_of_them() -> None:
    """Through the interpreter of the reference, uncertain operands included."""
    judge("""
    func.func @k(%x: memref<128xf32>, %y: memref<128xf32>, %z: memref<128xi32>) {
      %a = frag.load %x[0] : memref<128xf32> -> !frag.tile<128xf32>
      %b = frag.map %a : !frag.tile<128xf32> -> !frag.tile<128xf32> {
      ^bb0(%v: f32):
        %1 = math.exp %v : f32
        %2 = math.log1p %1 : f32
        %3 = math.erf %2 : f32
        %4 = math.sinh %3 : f32
        %5 = math.cosh %4 : f32
        %6 = math.powf %5, %3 : f32
        %7 = math.atan2 %6, %v : f32
        %8 = math.copysign %7, %v : f32
        %9 = math.cbrt %8 : f32
        %10 = math.atan %9 : f32
        %11 = math.expm1 %10 : f32
        %12 = math.asinh %11 : f32
        %13 = math.log10 %5 : f32
        %14 = math.tan %3 : f32
        %15 = arith.addf %12, %13 : f32
        %16 = arith.addf %15, %14 : f32
        frag.yield %16 : f32
      }
      %c = frag.map %a : !frag.tile<128xf32> -> !frag.tile<128xi32> {
      ^bb0(%v: f32):
        %i = arith.bitcast %v : f32 to i32
        %j = math.ctpop %i : i32
        %seven = arith.constant 7 : i32
        %k = arith.ceildivsi %i, %seven : i32
        %low, %high = "arith.mulsi_extended"(%k, %i) : (i32, i32) -> (i32, i32)
        %s = arith.addi %high, %j : i32
        %n = math.ipowi %s, %j : i32
        frag.yield %n : i32
      }
      frag.store %b, %y[0] : !frag.tile<128xf32>, memref<128xf32>
      frag.store %c, %z[0] : !frag.tile<128xi32>, memref<128xi32>
      func.return
    }
    """, "sm_80")  # fmt: skip


DOMAINS = {
    "math.acosh": (1.1, 9.0), "math.atanh": (-0.9, 0.9), "math.asin": (-0.9, 0.9),
    "math.acos": (-0.9, 0.9), "math.log1p": (-0.9, 9.0),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*functions.UNARY, *functions.BINARY}))
def test_uncertain_operands(name: str) -> None:
    """Whatever the operands are within their bounds, the result is within its own."""
    rng = np.random.default_rng(3)
    f32 = FLOATS["f32"]
    low, high = DOMAINS.get(name, (-4.0, 4.0))
    x = Bounded(rng.uniform(low, high, 500), np.exp2(rng.integers(-20, -4, 500).astype(float)))
    y = Bounded(rng.uniform(-4, 4, 500), np.exp2(rng.integers(-20, -4, 500).astype(float)))
    if name == "math.powf":
        x = Bounded(np.abs(x.value) + 0.1, x.bound)
    if name == "math.fpowi":
        y = exactly(np.rint(y.value))
        x = Bounded(np.abs(x.value) + 0.1, x.bound)
    with np.errstate(all="ignore"):
        if name in functions.UNARY:
            result = functions.UNARY[name](x, f32)
        else:
            result = functions.BINARY[name](x, y, f32)
        for _ in range(4):
            a, b = (v.value + v.bound * rng.choice([-1.0, 0.3, 1.0], 500) for v in (x, y))
            exact = (
                functions.UNARY[name](exactly(a), f32)
                if name in functions.UNARY
                else functions.BINARY[name](exactly(a), exactly(b), f32)
            )
            assert not (np.abs(exact.value - result.value) > result.bound).any()
    assert np.isfinite(result.bound).mean() > 0.7


def test_nothing_is_known_of_functions_of_the_unknown() -> None:
    unknown = Bounded(np.array(0.5), np.array(np.inf))
    with np.errstate(all="ignore"):
        for name, apply in functions.UNARY.items():
            assert np.isinf(apply(unknown, FLOATS["f32"]).bound), name


def test_integer_powers_and_counts_of_the_reference() -> None:
    x = exactly(np.array([0, 1, -1, 2**62, -(2**63)]))
    found = integers.bit_counts("math.ctlz", x, INTEGERS["s64"]).value
    assert found.tolist() == [64, 63, 0, 1, 0]
    assert math.isinf(
        integers.apply("math.ipowi", x, exactly(np.full(5, -1)), INTEGERS["s64"]).bound[0]
    )
