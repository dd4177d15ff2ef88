"""Integer, SIMD and video instructions on edge values, against Python integers, one lane a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from fragir.emulator import run
from fragir.ptx.opcodes.table import OPCODES

from .batch import evaluate_all
from .test_integer import clamp, signed, towards_zero

Model = Callable[..., int]
Three = Callable[[int, int, int], int]
SMALL = [0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 255]


def edges(width: int, many: int = 22) -> list[int]:
    top = (1 << width) - 1
    plain = [x & top for x in SMALL]
    plain += [top, top - 1, top >> 1, (top >> 1) + 1, (top >> 1) + 2, 0x8080808080808080 & top]
    rng = np.random.default_rng(width)
    plain += [int(x) for x in rng.integers(0, top, many - len(plain), dtype=np.uint64)]
    return plain


def range_of(kind: str) -> tuple[int, int]:
    width = int(kind[1:])
    return (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)


def as_kind(x: int, kind: str) -> int:
    width = int(kind[1:])
    return signed(x, width) if kind[0] == "s" else x & (1 << width) - 1


def scalar(kind: str) -> dict[str, Three]:
    """Instructions of one type with their operands: a model; the result is cut to the type."""
    width = int(kind[1:])
    low, high = range_of(kind)

    def divided(a: int, b: int) -> int:
        return towards_zero(a, b) if b else -1

    def rest(a: int, b: int) -> int:
        return a - b * towards_zero(a, b) if b else a

    models: dict[str, Three] = {
        f"add.{kind} a b": lambda a, b, c: a + b,
        f"sub.{kind} a b": lambda a, b, c: a - b,
        f"mul.lo.{kind} a b": lambda a, b, c: a * b,
        f"mul.hi.{kind} a b": lambda a, b, c: a * b >> width,
        f"mad.lo.{kind} a b c": lambda a, b, c: a * b + c,
        f"mad.hi.{kind} a b c": lambda a, b, c: (a * b >> width) + c,
        f"div.{kind} a b": lambda a, b, c: divided(a, b),
        f"rem.{kind} a b": lambda a, b, c: rest(a, b),
        f"min.{kind} a b": lambda a, b, c: min(a, b),
        f"max.{kind} a b": lambda a, b, c: max(a, b),
        f"sad.{kind} a b c": lambda a, b, c: c + abs(a - b),
    }
    if kind[0] == "s":
        models |= {
            f"abs.{kind} a": lambda a, b, c: abs(a),
            f"neg.{kind} a": lambda a, b, c: -a,
        }
    if kind == "s32":
        models |= {
            "add.sat.s32 a b": lambda a, b, c: clamp(a + b, low, high),
            "sub.sat.s32 a b": lambda a, b, c: clamp(a - b, low, high),
            "mad.hi.sat.s32 a b c": lambda a, b, c: clamp((a * b >> 32) + c, low, high),
            "min.relu.s32 a b": lambda a, b, c: max(min(a, b), 0),
            "max.relu.s32 a b": lambda a, b, c: max(a, b, 0),
        }
    if kind == "u32":
        models["add.sat.u32 a b"] = lambda a, b, c: clamp(a + b, low, high)
    if width == 32:
        part = 24
        cut: Callable[[int], int] = (
            (lambda x: signed(x, part)) if kind[0] == "s" else (lambda x: x & 0xFFFFFF)
        )
        models |= {
            f"mul24.lo.{kind} a b": lambda a, b, c: cut(a) * cut(b),
            f"mul24.hi.{kind} a b": lambda a, b, c: cut(a) * cut(b) >> 16,
            f"mad24.lo.{kind} a b c": lambda a, b, c: cut(a) * cut(b) + c,
            f"mad24.hi.{kind} a b c": lambda a, b, c: (cut(a) * cut(b) >> 16) + c,
        }
        if kind == "s32":
            models["mad24.hi.sat.s32 a b c"] = lambda a, b, c: clamp(
                (cut(a) * cut(b) >> 16) + c, low, high
            )
    return models


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_scalar(kind: str) -> None:
    width = int(kind[1:])
    place = {16: "h", 32: "r", 64: "q"}[width]
    values = edges(width)
    pairs = list(itertools.product(values, repeat=2))
    third = [values[(7 * i) % len(values)] for i in range(len(pairs))]
    models = {tuple(k.split(" ", 1)): v for k, v in scalar(kind).items()}
    lines = [
        f"{name} %{place}0, " + ", ".join(f"%{place}{'abc'.index(x) + 1}" for x in used.split())
        for name, used in models
    ]
    columns = [np.array(c, np.uint64) for c in (*zip(*pairs, strict=True), third)]
    got = evaluate_all(lines, {f"{place}{i + 1}": c for i, c in enumerate(columns)}, "sm_120a")
    for ((name, _), model), result in zip(models.items(), got, strict=True):
        for (a, b), c, bits in zip(pairs, third, result, strict=True):
            x, y, z = (as_kind(v, kind) for v in (a, b, c))
            assert int(bits) == model(x, y, z) & (1 << width) - 1, (name, x, y, z)


def parts(x: int, kind: str, count: int) -> list[int]:
    width = 32 // count
    return [as_kind(x >> width * i, f"{kind[0]}{width}") for i in range(count)]


@pytest.mark.parametrize("kind", ["u16x2", "s16x2", "u8x4", "s8x4"])
def test_packed(kind: str) -> None:
    count = int(kind[-1])
    width = 32 // count
    low, high = range_of(f"{kind[0]}{width}")
    models: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "min": min,
        "max": max,
        "add.sat": lambda a, b: clamp(a + b, low, high),
    }
    if count == 4:
        models["sub.sat"] = lambda a, b: clamp(a - b, low, high)
    if kind[0] == "s":
        models |= {
            "min.relu": lambda a, b: max(min(a, b), 0),
            "max.relu": lambda a, b: max(a, b, 0),
        }
    if kind == "s8x4":
        models["neg"] = lambda a, b: -a
    else:  # ptxas 13.5 takes it on no target
        assert OPCODES.find(("neg", kind), 2).opcode is None
    values = edges(32, 30)
    pairs = list(itertools.product(values, repeat=2))
    lines = [f"{n}.{kind} %r0, %r1" + ", %r2" * (n != "neg") for n in models]
    a, b = (np.array(c, np.uint64) for c in zip(*pairs, strict=True))
    got = evaluate_all(lines, {"r1": a, "r2": b}, "sm_120a")
    for (name, model), result in zip(models.items(), got, strict=True):
        for (x, y), bits in zip(pairs, result, strict=True):
            each = zip(parts(x, kind, count), parts(y, kind, count), strict=True)
            wanted = 0
            for i, (p, q) in enumerate(each):
                wanted |= (model(p, q) & (1 << width) - 1) << width * i
            assert int(bits) == wanted, (name, hex(x), hex(y))


def find_nth(mask: int, base: int, offset: int) -> int:
    """fns, from the loop of PTX ISA 9.2, section 9.7.1.18."""
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else 0xFFFFFFFF
    position, left, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if left == 0:
                return position
            left -= 1
        position += step
    return 0xFFFFFFFF


def test_bits() -> None:
    values = edges(32, 30)
    pairs = list(itertools.product(values, repeat=2))
    rng = np.random.default_rng(3)
    third = [int(x) for x in rng.integers(0, 40, len(pairs))]
    models: dict[str, Callable[[int, int, int], int]] = {
        "fns.b32 %r0, %r1, %r3, %r4": lambda a, b, c: find_nth(a, c, c % 7 - 3),
        "szext.clamp.s32 %r0, %r1, %r3": lambda a, b, c: signed(a, min(c, 32)) if c else 0,
        "szext.clamp.u32 %r0, %r1, %r3": lambda a, b, c: a & (1 << min(c, 32)) - 1,
        "szext.wrap.s32 %r0, %r1, %r3": lambda a, b, c: signed(a, c % 32) if c % 32 else 0,
        "szext.wrap.u32 %r0, %r1, %r3": lambda a, b, c: a & (1 << c % 32) - 1,
        "bmsk.wrap.b32 %r0, %r1, %r3": lambda a, b, c: ((1 << c % 32) - 1) << a % 32,
        "bmsk.clamp.b32 %r0, %r1, %r3": lambda a, b, c: ((1 << min(c, 32)) - 1) << min(a, 32),
        "lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 0x80, %p1": lambda a, b, c: a & b & c,
        "lop3.or.b32 _|%p0, %r1, %r2, %r3, 0x80, !%p1; selp.u32 %r0, 1, 0, %p0": (
            lambda a, b, c: int(a & b & c != 0 or c >= 20)
        ),
        "lop3.and.b32 _|%p0, %r1, %r2, %r3, 0x80, %p1; selp.u32 %r0, 1, 0, %p0": (
            lambda a, b, c: int(a & b & c != 0 and c < 20)
        ),
        "slct.s32.f32 %r0, %r1, %r2, %r5": lambda a, b, c: a if c % 2 else b,
        "slct.ftz.u32.f32 %r0, %r1, %r2, 0f80000001": lambda a, b, c: a,
        "slct.u32.s32 %r0, %r1, %r2, %r1": lambda a, b, c: b if a >> 31 else a,
    }
    for mode, lists in {
        "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
        "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
        "rc8": [[i] * 4 for i in range(4)],
        "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
        "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
        "rc16": [[0, 1, 0, 1], [2, 3, 2, 3]] * 2,
    }.items():

        def chosen(a: int, b: int, c: int, lists: list[list[int]] = lists) -> int:
            data = (b << 32 | a).to_bytes(8, "little")
            return int.from_bytes(bytes(data[i] for i in lists[c & 3]), "little")

        models[f"prmt.b32.{mode} %r0, %r1, %r2, %r3"] = chosen
    for x, y in itertools.product("us", repeat=2):

        def dot4(a: int, b: int, c: int, p: str = x, q: str = y) -> int:
            return c + sum(
                as_kind(a >> 8 * i, f"{p}8") * as_kind(b >> 8 * i, f"{q}8") for i in range(4)
            )

        models[f"dp4a.{x}32.{y}32 %r0, %r1, %r2, %r3"] = dot4
        for half in (0, 1):

            def dot2(a: int, b: int, c: int, p: str = x, q: str = y, half: int = half) -> int:
                return c + sum(
                    as_kind(a >> 16 * i, f"{p}16") * as_kind(b >> 8 * (i + 2 * half), f"{q}8")
                    for i in range(2)
                )

            models[f"dp2a.{('lo', 'hi')[half]}.{x}32.{y}32 %r0, %r1, %r2, %r3"] = dot2
    a, b = (np.array(c, np.uint64) for c in zip(*pairs, strict=True))
    got = evaluate_all(
        list(models),
        {
            "r1": a,
            "r2": b,
            "r3": np.array(third, np.uint64),
            "r4": np.array([c % 7 - 3 & 0xFFFFFFFF for c in third], np.uint64),
            "r5": np.array([0x3F800000 if c % 2 else 0xBF800000 for c in third], np.uint64),
        },
        before="setp.lt.u32 %p1, %r3, 20;",
    )
    for (name, model), result in zip(models.items(), got, strict=True):
        for (x, y), c, bits in zip(pairs, third, result, strict=True):
            assert int(bits) == model(x, y, c) & 0xFFFFFFFF, (name, hex(x), hex(y), c)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_carry_chains(kind: str) -> None:
    """The flag is the adder's: of a subtraction it says that nothing was borrowed."""
    width = int(kind[1:])
    place = {32: "r", 64: "q"}[width]
    mask = (1 << width) - 1
    values = edges(width, 18)
    rng = np.random.default_rng(6)
    a, b, c = (rng.permutation(np.resize(np.array(values, np.uint64), 600)) for _ in range(3))
    p = f"%{place}"
    first: dict[str, Callable[[int, int], int]] = {
        f"add.cc.{kind} {p}5, {p}1, {p}2": lambda x, y: x + y >> width,
        f"sub.cc.{kind} {p}5, {p}1, {p}2": lambda x, y: int(x >= y),
        f"mad.lo.cc.{kind} {p}5, {p}1, {p}2, {p}1": lambda x, y: (x * y & mask) + x >> width,
    }

    def value(x: int) -> int:
        return as_kind(x, kind)

    second: dict[str, Callable[[int, int, int], int]] = {
        f"addc.{kind} {p}0, {p}2, {p}3": lambda y, z, f: y + z + f,
        f"subc.{kind} {p}0, {p}2, {p}3": lambda y, z, f: y - z - (1 - f),
        f"madc.hi.{kind} {p}0, {p}2, {p}3, {p}1": (
            lambda y, z, f: (value(y) * value(z) >> width) + f
        ),
    }
    lines = [f"{x}; {y}".replace(f"{p}5", f"{p}0", 1) for x in first for y in second]
    got = evaluate_all(lines, {f"{place}1": a, f"{place}2": b, f"{place}3": c})
    pairs = itertools.product(first.values(), second.items())
    for (flag, (name, model)), result in zip(pairs, got, strict=True):
        for x, y, z, bits in zip(a.tolist(), b.tolist(), c.tolist(), result.tolist(), strict=True):
            wanted = model(y, z, flag(x, y)) + (x if "madc" in name else 0)
            assert bits == wanted & mask, (name, hex(x), hex(y), hex(z))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_long_chains(kind: str) -> None:
    """Sums, differences and products of several registers: each link hands the flag on."""
    width = int(kind[1:])
    p = {32: "%r", 64: "%q"}[width]
    limbs, count = 4, 400
    rng = np.random.default_rng(7)
    values = np.array(edges(width), np.uint64)
    a = [rng.choice(values, count) for _ in range(limbs)]
    b = [np.where(rng.random(count) < 0.6, x, rng.choice(values, count)) for x in a]
    numbers = [
        [
            sum(int(part) << width * i for i, part in enumerate(parts))
            for parts in zip(*x, strict=True)
        ]
        for x in (a, b)
    ]
    links = {
        "add": [f"{n}.{kind} {p}0, {p}{i}, {p}{i + 4}" for i, n in enumerate(
            ["add.cc", "addc.cc", "addc.cc", "addc"], 1)],
        "sub": [f"{n}.{kind} {p}0, {p}{i}, {p}{i + 4}" for i, n in enumerate(
            ["sub.cc", "subc.cc", "subc.cc", "subc"], 1)],
        # What a holds, and the product of the lowest parts; then of the middle ones.
        "mad": [
            f"mad.lo.cc.{kind} {p}0, {p}1, {p}5, {p}1", f"madc.hi.cc.{kind} {p}0, {p}1, {p}5, {p}2",
            f"madc.lo.cc.{kind} {p}0, {p}3, {p}7, {p}3", f"madc.hi.{kind} {p}0, {p}3, {p}7, {p}4",
        ],
    }  # fmt: skip
    models: dict[str, Callable[[int, int], int]] = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mad": lambda x, y: x + product(x, y, 0) + (product(x, y, 2) << 2 * width),
    }

    def product(x: int, y: int, part: int) -> int:
        """Of one part of each, as numbers of the type; the two halves of its bits."""
        one, other = (as_kind(z >> width * part & (1 << width) - 1, kind) for z in (x, y))
        return one * other & (1 << 2 * width) - 1

    lines = ["; ".join(some[: i + 1]) for some in links.values() for i in range(limbs)]
    operands = {f"{p[1]}{i}": part for i, part in enumerate([*a, *b], 1)}
    got = iter(evaluate_all(lines, operands))
    for name, model in models.items():
        for part, result in zip(range(limbs), got, strict=False):
            for x, y, bits in zip(*numbers, result.tolist(), strict=True):
                whole = model(x, y) >> width * part & (1 << width) - 1
                assert bits == whole, (name, part, hex(x), hex(y))


def field(x: int, part: str, is_signed: bool) -> int:
    low, width = {
        "": (0, 32),
        "h": (16 * int(part[1:] or 0), 16),
        "b": (8 * int(part[1:] or 0), 8),
    }[part[:1]]
    x = x >> low & (1 << width) - 1
    return signed(x, width) if is_signed else x


VIDEO: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vshl.clamp": lambda a, b: a << min(b, 32),
    "vshl.wrap": lambda a, b: a << (b & 31),
    "vshr.clamp": lambda a, b: a >> min(b, 32),
    "vshr.wrap": lambda a, b: a >> (b & 31),
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
}


def triples(seed: int, many: int = 120) -> list[tuple[int, int, int]]:
    rng = np.random.default_rng(seed)
    values = np.array([*edges(32, 40), 0x80, 0xFF7F, 0x7F80FFFF, 0x00800080], np.uint64)
    return [tuple(int(v) for v in rng.choice(values, 3)) for _ in range(many)]  # pyright: ignore[reportReturnType]


def run_video(lines: list[str], cases: list[tuple[int, int, int]]) -> list[list[int]]:
    a, b, c = (np.array(x, np.uint64) for x in zip(*cases, strict=True))
    return evaluate_all(lines, {"r1": a, "r2": b, "r3": c}).tolist()


def test_scalar_video() -> None:
    """From the pseudocode of PTX ISA 9.2, section 9.7.20.1."""
    rng = np.random.default_rng(9)
    lines: list[str] = []
    models: list[Model] = []
    selectors = ["", "b0", "b1", "b2", "b3", "h0", "h1"]
    for name, d, a, b, sat in itertools.product(VIDEO, "us", "us", "us", ("", ".sat")):
        head, _, mode = name.partition(".")
        b = "u" if mode else b
        x, y, z = (selectors[int(i)] for i in rng.integers(0, 7, 3))
        spelled = f"{head}.{d}32.{a}32.{b}32{sat}{'.' * bool(mode)}{mode}"
        sources = f"%r1{'.' * bool(x)}{x}, %r2{'.' * bool(y)}{y}"
        for tail in ("", "merge", "add", "min", "max"):

            def model(
                p: int, q: int, c: int, name: str = name,
                how: tuple[str, ...] = (d, a, b, sat, x, y, z), tail: str = tail,
            ) -> int:  # fmt: skip
                d, a, b, sat, x, y, z = how
                value = VIDEO[name](field(p, x, a == "s"), field(q, y, b == "s"))
                part = z if tail == "merge" else ""
                width = {"": 32, "h": 16, "b": 8}[part[:1]]
                if sat:
                    value = clamp(value, *range_of(f"{d}{width}"))
                if tail in ("add", "min", "max"):
                    value = signed(value, 33)
                    addend = as_kind(c, f"{d}32")
                    value = {"add": sum, "min": min, "max": max}[tail]((value, addend))
                if part:
                    low = width * int(part[1])
                    mask = (1 << width) - 1
                    return c & ~(mask << low) | (value & mask) << low
                return value

            if tail == "merge" and not z:
                continue
            into = f"%r0.{z}" if tail == "merge" else "%r0"
            word = "" if tail in ("", "merge") else f".{tail}"
            lines.append(f"{spelled}{word} {into}, {sources}" + ", %r3" * bool(tail))
            models.append(model)
    cases = triples(1)
    for line, model, result in zip(lines, models, run_video(lines, cases), strict=True):
        for case, bits in zip(cases, result, strict=True):
            assert bits == model(*case) & 0xFFFFFFFF, (line, [hex(x) for x in case])


def test_multiply_add_video() -> None:
    """vmad: the negations, one more, the shifts and the final clamp by the sign of the result."""
    lines: list[str] = []
    models: list[Model] = []
    signs = list(itertools.product(("", "-"), repeat=3))
    for a, b, sat, shift in itertools.product("us", "us", ("", ".sat"), ("", ".shr7", ".shr15")):
        for na, nb, nc in [*signs, ("po", "", "")]:
            one = na == "po"
            na = "" if one else na
            if (na != nb and nc) or (na and nb and not one):
                continue

            def model(
                p: int, q: int, c: int, how: tuple[str, ...] = (a, b, sat, shift, na, nb, nc),
                one: bool = one,
            ) -> int:  # fmt: skip
                a, b, sat, shift, na, nb, nc = how
                is_signed = "s" in (a, b) or na != nb or nc != ""
                product = field(p, "b1", a == "s") * field(q, "", b == "s")
                addend = as_kind(c, "s32" if is_signed else "u32")
                value = (-product if na != nb else product) + (-addend if nc else addend) + one
                value >>= int(shift[4:] or 0)
                if sat:
                    value = clamp(value, *range_of("s32" if is_signed else "u32"))
                return value

            po = ".po" if one else ""
            lines.append(f"vmad.s32.{a}32.{b}32{po}{sat}{shift} %r0, {na}%r1.b1, {nb}%r2, {nc}%r3")
            models.append(model)
    cases = triples(2)
    for line, model, result in zip(lines, models, run_video(lines, cases), strict=True):
        for case, bits in zip(cases, result, strict=True):
            assert bits == model(*case) & 0xFFFFFFFF, (line, [hex(x) for x in case])


def average(a: int, b: int) -> int:
    return (a + b + 1 >> 1) if a + b >= 0 else (a + b >> 1)


@pytest.mark.parametrize("many", [2, 4])
def test_simd_video(many: int) -> None:
    """Selected parts of a and b, clamped, then merged into c where the mask says so, or added."""
    rng = np.random.default_rng(many)
    letter, width = ("h", 16) if many == 2 else ("b", 8)
    functions: dict[str, Callable[[int, int], int]] = {
        k: v for k, v in VIDEO.items() if "." not in k
    } | {"vavrg": average}
    functions |= {f"vset.{w}": f for w, f in COMPARE.items()}
    lines: list[str] = []
    models: list[Model] = []
    for name, d, a, b, tail in itertools.product(functions, "us", "us", "us", ("", ".sat", ".add")):
        head, _, word = name.partition(".")
        if word and (d == "s" or tail == ".sat"):
            continue
        first, second = ([int(i) for i in rng.integers(0, 2 * many, many)] for _ in range(2))
        mask = [i for i in range(many) if rng.random() < 0.6] or [0]
        if rng.random() < 0.2:
            first, second = list(range(many)), list(range(many, 2 * many))
            named = ("", "")
        else:
            named = tuple(f".{letter}" + "".join(map(str, reversed(s))) for s in (first, second))
        into = "" if rng.random() < 0.2 else f".{letter}" + "".join(map(str, reversed(mask)))
        mask = mask if into else list(range(many))

        def model(
            p: int, q: int, c: int, name: str = name, how: tuple[str, ...] = (d, a, b, tail),
            sides: tuple[list[int], list[int], list[int]] = (first, second, mask),
        ) -> int:  # fmt: skip
            d, a, b, tail = how
            whole = q << 32 | p
            values: list[int] = []
            for x, y in zip(sides[0], sides[1], strict=True):
                left = as_kind(whole >> width * x, f"{a}{width}")
                right = as_kind(whole >> width * y, f"{b}{width}")
                value = int(functions[name](left, right))
                values.append(clamp(value, *range_of(f"{d}{width}")) if tail == ".sat" else value)
            if tail == ".add":
                return c + sum(values[i] for i in sides[2])
            result = 0
            for i in range(many):
                value = values[i] if i in sides[2] else c >> width * i
                result |= (value & (1 << width) - 1) << width * i
            return result

        types = f"{a}32.{b}32.{word}" if word else f"{d}32.{a}32.{b}32"
        lines.append(f"{head}{many}.{types}{tail} %r0{into}, %r1{named[0]}, %r2{named[1]}, %r3")
        models.append(model)
    cases = triples(3)
    for line, model, result in zip(lines, models, run_video(lines, cases), strict=True):
        for case, bits in zip(cases, result, strict=True):
            assert bits == model(*case) & 0xFFFFFFFF, (line, [hex(x) for x in case])


def test_parts_of_registers_are_seen_by_the_checks() -> None:
    """What a video instruction writes is written; an undefined part of a source is seen."""
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b64 %q; .reg .b32 %r<5>;
ld.param.u64 %q, [out]; mov.u32 %r1, 5;
SOURCE
vadd.u32.u32.u32 %r0.b1, %r1.b0, %r2.h1, %r1;
vadd2.u32.u32.u32 %r3.h10, %r0.h10, %r1.h32, %r1;
st.global.b32 [%q], %r3; ret;
}
"""
    out = np.zeros(1, np.uint32)
    defined = run(text.replace("SOURCE", "mov.u32 %r2, 0x70000;"), arguments=[out], check=True)
    assert not [f for f in defined.findings if f.kind == "uninitialised"]
    assert int(out[0]) == 0x0C05 + 5
    undefined = run(text.replace("SOURCE", ""), arguments=[out], check=True)
    assert [f.subject for f in undefined.findings if f.kind == "uninitialised"] == ["%r3"]
