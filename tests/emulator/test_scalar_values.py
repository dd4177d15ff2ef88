"""Scalar floating point on all pairs of edge values, against rationals; properties exhaustively."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from . import floats
from .batch import evaluate_all
from .floats import FORMATS, NAN, Format

MODES = ("rn", "rz", "rm", "rp")
PLACE = {"f16": "h", "bf16": "h", "f32": "r", "f64": "q"}


def edges(form: Format, many: int = 24, seed: int = 0) -> list[int]:
    """Zeros, subnormals, ends, specials, neighbours of one, and random ones, of both signs."""
    top = 1 << (form.width - 1)
    one = form.bias << form.fraction
    infinity = ((1 << form.exponent) - 1) << form.fraction
    plain = [0, 1, (1 << form.fraction) - 1, 1 << form.fraction, one - 1, one, one + 1]
    plain += [one + (1 << form.fraction) - 1, infinity - 1, infinity, infinity + 1]
    plain += [one + (form.fraction << form.fraction), one - ((form.fraction + 1) << form.fraction)]
    rng = np.random.default_rng(seed)
    plain += [int(x) for x in rng.integers(0, infinity, many - len(plain), dtype=np.uint64)]
    return [x | s for x in plain for s in (0, top)]


def same(got: int, wanted: int, form: Format) -> bool:
    """Equal bits; f64 NaN keep their payload, so any will do there."""
    if form is floats.F64 and form.read(wanted)[0] == NAN:
        return form.read(got)[0] == NAN
    return got == wanted


def flush(bits: int, form: Format) -> int:
    exponent = bits >> form.fraction & ((1 << form.exponent) - 1)
    return bits if exponent else bits & 1 << (form.width - 1)


def finish(bits: int, form: Format, words: str) -> int:
    """What .ftz, .sat and .relu make of a result."""
    if "ftz" in words:
        bits = flush(bits, form)
    number, sign, size = form.read(bits)
    if "sat" in words:
        if number == NAN or sign:
            return 0
        return form.bias << form.fraction if number != "finite" or size > 1 else bits
    return 0 if "relu" in words and sign and number != NAN else bits


def model(name: str, operands: list[int], form: Format, words: str) -> int:
    mode = next((m for m in MODES if m in words.split(".")), "rn")
    if "ftz" in words:
        operands = [flush(x, form) for x in operands]
    exact = floats.apply("fma" if name == "mad" else name, [form.read(x) for x in operands], mode)
    return finish(form.write(exact, mode), form, words)


def lines_of(kind: str) -> list[tuple[str, str]]:
    """(instruction, words) of one type."""
    modes = ("", ".rn") if kind in ("f16", "bf16") else ("", ".rn", ".rz", ".rm", ".rp")
    tails = {"f16": ("", ".ftz", ".sat", ".ftz.sat"), "bf16": ("",), "f64": ("",)}.get(
        kind, ("", ".ftz", ".sat", ".ftz.sat")
    )
    result = [(n, m + t) for n in ("add", "sub", "mul") for m in modes for t in tails]
    fused = (".rn",) if kind == "f16" else (".rn", ".rz", ".rm", ".rp")
    tails += (".relu",) if kind in ("f16", "bf16") else ()
    result += [("fma", m + t) for m in fused for t in tails]
    if kind in ("f32", "f64"):
        plain = ("", ".ftz") if kind == "f32" else ("",)
        result += [(n, m + t) for n in ("div", "rcp", "sqrt") for m in fused for t in plain]
    return result


ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1, "sqrt": 1}


@pytest.mark.parametrize("kind", PLACE)
def test_all_pairs_of_edges(kind: str) -> None:
    form, place = FORMATS[kind], PLACE[kind]
    values = edges(form, 17 if kind == "f64" else 22)
    pairs = np.array(list(itertools.product(values, repeat=2)), np.uint64)
    third = np.resize(np.array(values, np.uint64), len(pairs) + 5)[5:]
    columns = [pairs[:, 0], pairs[:, 1], third]
    names = lines_of(kind)
    lines = [
        f"{n}{w}.{kind} %{place}0, " + ", ".join(f"%{place}{i + 1}" for i in range(ARITY[n]))
        for n, w in names
    ]
    got = evaluate_all(lines, {f"{place}{i + 1}": c for i, c in enumerate(columns)})
    pick = np.random.default_rng(1).permutation(len(pairs))[:260]
    for (name, words), line, result in zip(names, lines, got, strict=True):
        for at in pick:
            operands = [int(c[at]) for c in columns[: ARITY[name]]]
            wanted = model(name, operands, form, words)
            assert same(int(result[at]), wanted, form), (
                line,
                [hex(x) for x in operands],
                hex(int(result[at])),
                hex(wanted),
            )


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2", "f32x2"])
def test_packed_is_each_half(kind: str) -> None:
    """The packed instruction equals the scalar one on each half."""
    scalar = kind[:-2]
    form, place = FORMATS[scalar], PLACE[scalar]
    whole = {"h": "r", "r": "q"}[place]
    rng = np.random.default_rng(2)
    values = np.array(edges(form, 40), np.uint64)
    low, high = ([rng.choice(values, 1000) for _ in range(3)] for _ in range(2))
    names = [(n, w) for n, w in lines_of(scalar) if ARITY[n] > 1 and n != "div"]
    if kind == "f32x2":
        names = [(n, w) for n, w in names if "sat" not in w]
    packed = evaluate_all(
        [f"{n}{w}.{kind} %{whole}0, %{whole}1, %{whole}2" + f", %{whole}3" * (n == "fma")
         for n, w in names],
        {f"{whole}{i + 1}": h << np.uint64(form.width) | x
         for i, (x, h) in enumerate(zip(low, high, strict=True))},
    )  # fmt: skip
    halves = [
        evaluate_all(
            [f"{n}{w}.{scalar} %{place}0, %{place}1, %{place}2" + f", %{place}3" * (n == "fma")
             for n, w in names],
            {f"{place}{i + 1}": x for i, x in enumerate(part)},
        )
        for part in (low, high)
    ]  # fmt: skip
    np.testing.assert_array_equal(packed, halves[1] << np.uint64(form.width) | halves[0])


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_mixed_precision(kind: str) -> None:
    """add, sub, fma of f32 with narrow operands: one rounding, to f32."""
    narrow, wide = FORMATS[kind], FORMATS["f32"]
    rng = np.random.default_rng(3)
    a, b = (rng.choice(np.array(edges(narrow, 40), np.uint64), 300) for _ in range(2))
    c = rng.choice(np.array(edges(wide, 60), np.uint64), 300)
    c[::3] = rng.integers(0x3F000000, 0x40000000, len(c[::3]))
    names = [(n, f".{m}{s}") for n in ("add", "sub", "fma") for m in MODES for s in ("", ".sat")]
    lines = [f"{n}{w}.f32.{kind} %r0, %h1, " + "%h2, " * (n == "fma") + "%r3" for n, w in names]
    got = evaluate_all(lines, {"h1": a, "h2": b, "r3": c})
    for (name, words), line, result in zip(names, lines, got, strict=True):
        for x, y, z, bits in zip(a, b, c, result, strict=True):
            values = [narrow.read(int(x)), wide.read(int(z))]
            if name == "fma":
                values.insert(1, narrow.read(int(y)))
            exact = floats.apply(name, values, words[1:3])
            wanted = finish(wide.write(exact, words[1:3]), wide, words)
            assert int(bits) == wanted, (line, hex(int(x)), hex(int(y)), hex(int(z)))


def order(bits: int, form: Format) -> tuple[int, int]:
    sign = bits >> (form.width - 1)
    size = bits & ((1 << (form.width - 1)) - 1)
    return (-sign, -size if sign else size)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
def test_extremes(kind: str) -> None:
    """min and max with every modifier, from the pseudocode of PTX ISA 9.2, section 9.7.3."""
    form, place = FORMATS[kind], PLACE[kind]
    top = 1 << (form.width - 1)
    values = np.array(edges(form, 20), np.uint64)
    pairs = np.array(list(itertools.product(values, repeat=2)), np.uint64)
    third = np.resize(values, len(pairs) + 7)[7:]
    words = [f"{nan}{sign}" for nan in ("", ".NaN") for sign in ("", ".xorsign.abs")]
    lines = [
        f"{name}{f}{w}.{kind} %{place}0, %{place}1, %{place}2"
        for name in ("min", "max")
        for f in ([""] if kind == "bf16" else ["", ".ftz"])
        for w in words
    ]
    if kind == "f32":
        lines += [
            f"{name}{f}{n}{a}.f32 %r0, %r1, %r2, %r3"
            for name in ("min", "max")
            for f in ("", ".ftz")
            for n in ("", ".NaN")
            for a in ("", ".abs")
        ]

    def choose(a: int, b: int, line: str) -> int:
        nans = [form.read(x)[0] == NAN for x in (a, b)]
        if all(nans) or (any(nans) and ".NaN" in line):
            return form.nan
        if any(nans):
            return b if nans[0] else a
        return (min if line.startswith("min") else max)(a, b, key=lambda x: order(x, form))

    def wanted(line: str, operands: list[int]) -> int:
        if "ftz" in line:
            operands = [flush(x, form) for x in operands]
        sign = (operands[0] ^ operands[1]) & top
        if ".abs" in line:
            operands = [x & ~top for x in operands]
        result = operands[0]
        for other in operands[1:]:
            result = choose(result, other, line)
        if "xorsign" in line and form.read(result)[0] != NAN:
            result |= sign
        return result

    got = evaluate_all(
        lines, {f"{place}1": pairs[:, 0], f"{place}2": pairs[:, 1], f"{place}3": third}
    )
    for line, result in zip(lines, got, strict=True):
        count = line.count("%") - 1
        for (a, b), c, bits in zip(pairs, third, result, strict=True):
            operands = [int(a), int(b), int(c)][:count]
            assert int(bits) == wanted(line, operands), (line, [hex(x) for x in operands])


ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}  # fmt: skip


@cache
def number(bits: int, form: Format) -> Any:
    """A value that compares as the format's; None for NaN."""
    kind, sign, size = form.read(bits)
    if kind == NAN:
        return None
    if kind == "inf":
        return float("-inf") if sign else float("inf")
    return -size if sign else size


@pytest.mark.parametrize("kind", PLACE)
def test_comparisons(kind: str) -> None:
    form, place = FORMATS[kind], PLACE[kind]
    values = np.array(edges(form, 16), np.uint64)
    pairs = np.array(list(itertools.product(values, repeat=2)), np.uint64)
    words = [*ORDERED, *(f"{w}u" for w in ORDERED), "num", "nan"]
    flushes = [""] if kind in ("bf16", "f64") else ["", ".ftz"]
    lines = [f"setp.{w}{f}.{kind} %p0, %{place}1, %{place}2" for w in words for f in flushes]
    lines += [f"set.{w}{f}.u32.{kind} %r0, %{place}1, %{place}2" for w in words for f in flushes]
    lines += [f"set.{w}{f}.f32.{kind} %r0, %{place}1, %{place}2" for w in words for f in flushes
              if kind in ("f32", "f64")]  # fmt: skip
    got = evaluate_all(lines, {f"{place}1": pairs[:, 0], f"{place}2": pairs[:, 1]})
    for line, result in zip(lines, got, strict=True):
        word = line.split(".")[1]
        truth = 1 if line[3] == "p" else 0x3F800000 if ".f32." in line[4:] else 0xFFFFFFFF
        if line.startswith("set.") and f".u32.{kind}" in line:
            truth = 0xFFFFFFFF
        for (a, b), bits in zip(pairs, result, strict=True):
            operands = [int(a), int(b)]
            if "ftz" in line:
                operands = [flush(x, form) for x in operands]
            x, y = (number(v, form) for v in operands)
            if x is None or y is None:
                holds = word == "nan" or (word.endswith("u") and word != "num")
            else:
                holds = word == "num" or (word != "nan" and ORDERED[word.rstrip("u")](x, y))
            assert int(bits) == (truth if holds else 0), (line, [hex(v) for v in operands])


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_signs_of_all_codes(kind: str) -> None:
    codes = np.arange(1 << 16, dtype=np.uint64)
    got = evaluate_all([f"neg.{kind} %h0, %h1", f"abs.{kind} %h0, %h1"], {"h1": codes})
    np.testing.assert_array_equal(got[0], codes ^ np.uint64(0x8000))
    np.testing.assert_array_equal(got[1], codes & np.uint64(0x7FFF))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_properties(kind: str) -> None:
    form, place = FORMATS[kind], PLACE[kind]
    values = edges(form, 60)
    words = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
    lines = [f"testp.{w}.{kind} %p0, %{place}1" for w in words]
    lines.append(f"copysign.{kind} %{place}0, %{place}1, %{place}2")
    other = values[::-1]
    columns = {f"{place}1": np.array(values, np.uint64), f"{place}2": np.array(other, np.uint64)}
    *got, signs = evaluate_all(lines, columns)
    least = 2.0 ** (1 - form.bias)
    for at, bits in enumerate(values):
        state, _, size = form.read(bits)
        expected = {
            "finite": state == "finite",
            "infinite": state == "inf",
            "number": state != NAN,
            "notanumber": state == NAN,
            "normal": state == "finite" and (size >= least or size == 0),
            "subnormal": state == "finite" and 0 < size < least,
        }
        assert [int(x[at]) for x in got] == [int(expected[w]) for w in words], hex(bits)
        top = 1 << (form.width - 1)
        assert int(signs[at]) == (other[at] & ~top | bits & top)


def test_oob_gives_zero() -> None:
    """fma.oob: +0 where a or b has the bits that mark an element outside a tensor."""
    a = np.array([0x7FF7, 0x3C00, 0x3C00, 0x7E00, 0xFFF7, 0x3C00], np.uint64)
    b = np.array([0x3C00, 0x7FF7, 0x3C00, 0x3C00, 0x3C00, 0xBC00], np.uint64)
    c = np.array([0xBC00, 0xBC00, 0x7FF7, 0x3C00, 0x3C00, 0x3800], np.uint64)
    plain, relu, packed = evaluate_all(
        ["fma.rn.oob.f16 %h0, %h1, %h2, %h3", "fma.rn.oob.relu.f16 %h0, %h1, %h2, %h3",
         "fma.rn.oob.f16x2 %r0, %r1, %r2, %r3"],
        {"h1": a, "h2": b, "h3": c, "r1": a << np.uint64(16) | a[::-1],
         "r2": b << np.uint64(16) | b[::-1], "r3": c << np.uint64(16) | c[::-1]},
    )  # fmt: skip
    assert plain.tolist() == [0, 0, 0x7FFF, 0x7FFF, 0x7FFF, 0xB800]
    assert relu.tolist() == [0, 0, 0x7FFF, 0x7FFF, 0x7FFF, 0]
    np.testing.assert_array_equal(packed, plain << np.uint64(16) | plain[::-1])


def halves(name: str) -> npt.NDArray[np.float64]:
    """The value of every 16-bit code."""
    codes = np.arange(1 << 16, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        if name == "f16":
            return codes.astype(np.uint16).view(np.float16).astype(np.float64)
        return (codes << np.uint32(16)).view(np.float32).astype(np.float64)


def test_ftz_of_cvt_is_for_single_precision_only() -> None:
    """cvt.ftz.f32.f16 keeps f16 subnormals, cvt.ftz.f32.bf16 makes zeros of f32 ones."""
    codes = np.arange(1 << 16, dtype=np.uint64)
    half, brain = evaluate_all(
        ["cvt.ftz.f32.f16 %r0, %h1", "cvt.ftz.f32.bf16 %r0, %h1"], {"h1": codes}, "sm_90a"
    )
    values = halves("f16")
    known = ~np.isnan(values)
    wanted = values[known].astype(np.float32).view(np.uint32)
    np.testing.assert_array_equal(half[known], wanted)
    values = halves("bf16")
    known = ~np.isnan(values)
    wide = values[known].astype(np.float32)
    wanted = np.where(np.abs(wide) < 2.0**-126, np.copysign(np.float32(0), wide), wide)
    np.testing.assert_array_equal(brain[known], wanted.view(np.uint32))


TRUTH = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
COMBINE: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64", "b32", "b64"])
def test_integer_comparisons(kind: str) -> None:
    """Signed and unsigned orders; the result combined with a predicate or its negation."""
    width = int(kind[1:])
    place = {16: "h", 32: "r", 64: "q"}[width]
    top = 1 << width - 1
    values = np.array([0, 1, 2, top - 1, top, top + 1, 2 * top - 1, 77], np.uint64)
    pairs = np.array(list(itertools.product(values, repeat=2)), np.uint64)
    words = ["eq", "ne"] if kind[0] == "b" else list(ORDERED)
    words += ["lo", "ls", "hi", "hs"] if kind[0] == "u" else []
    a_b = f"%{place}1, %{place}2"
    cases: list[tuple[str, str, str, int]] = []
    for word in words:
        cases += [(f"setp.{word}.{kind} %p0, {a_b}", word, "", 1)]
        for name in COMBINE:
            cases += [(f"setp.{word}.{name}.{kind} %p0, {a_b}, %p3", word, name, 1)]
            cases += [(f"setp.{word}.{name}.{kind} %p0, {a_b}, !%p3", word, f"!{name}", 1)]
            if kind[0] != "b":
                into = ("u32", "f32")[len(cases) % 2]
                text = f"set.{word}.{name}.{into}.{kind} %r0, {a_b}, %p3"
                cases += [(text, word, name, TRUTH[into])]
    got = evaluate_all(
        [text for text, *_ in cases],
        {f"{place}1": pairs[:, 0], f"{place}2": pairs[:, 1]},
        before=f"setp.lt.u{width} %p3, %{place}1, 2;",
    )
    plain = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    for (text, word, how, truth), result in zip(cases, got, strict=True):
        for (a, b), bits in zip(pairs.tolist(), result.tolist(), strict=True):
            x, y = ((v - 2 * top if kind[0] == "s" and v >= top else v) for v in (a, b))
            holds = ORDERED[plain.get(word, word)](x, y)
            if how:
                holds = COMBINE[how.lstrip("!")](holds, (a < 2) != how.startswith("!"))
            assert bits == (truth if holds else 0), (text, a, b)


def test_both_predicates_and_both_halves() -> None:
    """`p|q` of one value is the result and its negation, of f16x2 the low and the high half."""
    form = floats.F16
    values = np.array(edges(form, 20), np.uint64)
    rng = np.random.default_rng(5)
    low, high = ([rng.choice(values, 400) for _ in range(2)] for _ in range(2))
    a, b = (h << np.uint64(16) | x for x, h in zip(low, high, strict=True))
    ones = "selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 2, 0, %p2; or.b32 %r0, %r5, %r6"
    lines = [
        f"setp.ltu.xor.f16x2 %p1|%p2, %r1, %r2, %p3; {ones}",
        "cvt.f32.f16 %r3, %h1; cvt.f32.f16 %r4, %h2;"  # of f16 itself there is one result
        f" setp.gt.and.f32 %p1|%p2, %r3, %r4, %p3; {ones}",
        "set.le.f16x2.f16x2 %r0, %r1, %r2",
        "set.le.u32.f16x2 %r0, %r1, %r2",
        "set.neu.or.u16.f16 %h0, %h1, %h2, %p3",
        "set.ge.bf16.f16 %h0, %h1, %h2",
    ]
    lines = [x.replace("setp", "mov.u32 %r0, 0; setp", 1) for x in lines]
    got = evaluate_all(
        lines,
        {"r1": a, "r2": b, "h1": low[0], "h2": low[1]},
        before="setp.lt.u32 %p3, %r1, 0x40000000;",
    )
    for at in range(len(a)):
        third = int(a[at]) < 0x40000000
        pairs = [[number(int(side[at]), form) for side in part] for part in (low, high)]
        ltu = [x is None or y is None or x < y for x, y in pairs]
        le = [x is not None and y is not None and x <= y for x, y in pairs]
        x, y = pairs[0]
        gt = x is not None and y is not None and x > y
        wanted = [
            (ltu[0] != third) + 2 * (ltu[1] != third),
            (gt and third) + 2 * (not gt and third),
            0x3C00 * le[0] + (0x3C00 << 16) * le[1],
            0xFFFF * le[0] + (0xFFFF << 16) * le[1],
            0xFFFF * (x is None or y is None or x != y or third),
            0x3F80 * (x is not None and y is not None and x >= y),
        ]
        assert [int(result[at]) for result in got] == wanted, (hex(int(a[at])), hex(int(b[at])))
