"""Every mma, mma.sp and wgmma form on every generation, against a model in exact rationals.

The parameters are typed here from the literature (docs/arithmetic.md); the model shares nothing
with the emulator. Inputs: raw bits, exponents close together, many zeros, the smallest numbers,
and Inf and NaN among ordinary numbers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator.tensor_cores import Mma, Settings, Wgmma, tensor_instruction
from fragir.emulator.tensor_cores.compute import ScaleCodes

from . import floats
from .test_arithmetic import FORMATS, Number, codes, read, step, towards_zero, write

Bits: TypeAlias = npt.NDArray[Any]
KINDS = ["raw", "near", "zeros", "tiny", "special", "floor"]
OUTPUTS = 7  # of each instruction and kind
TARGETS = "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a".split()
NUMBERS = {name: int(name[3:].rstrip("a")) for name in TARGETS}
FP8 = ("e4m3", "e5m2")
SMALL = (*FP8, "e3m2", "e2m3", "e2m1")


@dataclass(frozen=True)
class How:
    fraction: int
    floor: int
    step: int
    rounding: str


def how(
    target: str, element: str, accumulator: str, *, wgmma: bool = False, volta: bool = False
) -> How:
    """The parameters of section 2 of the published models, by compute capability."""
    number = NUMBERS[target]
    if element in SMALL:
        if number == 89:
            fraction, products, least = 13, 16, -132
        elif wgmma:
            fraction, products, least = 13, 32, -133
        else:
            fraction, products, least = 25, 32, -133
    elif number < 75 or volta:
        fraction, products, least = 23, 4, -131
    elif number < 90:
        fraction, products, least = 24, (4 if element == "tf32" else 8), -132
    else:
        fraction, products, least = 25, (8 if element == "tf32" else 16), -133
    if accumulator == "f16":
        return How(fraction, least + 112, products, "RNE-f16")
    return How(fraction, least, products, "RZ-E8M13" if fraction == 13 else "RZ-f32")


def chain(names: tuple[str, str], a: list[int], b: list[int], c: int, by: How) -> int:
    accumulator = "f16" if by.rounding == "RNE-f16" else "f32"
    for start in range(0, len(a), by.step):
        part = slice(start, start + by.step)
        pairs = [
            (read(names[0], x), read(names[1], y)) for x, y in zip(a[part], b[part], strict=True)
        ]
        c = step(pairs, read(accumulator, c), by.fraction, by.floor, by.rounding)
    return c


def emulated(
    names: tuple[str, str], a: list[int], b: list[int], c: int, acc: str, version: str
) -> int:
    """fp8 without hardware: two instructions of f16, then additions of IEEE."""
    by = how("sm_90a", "f16", acc)
    f16 = floats.F16
    form = f16 if acc == "f16" else floats.F32
    halves = [
        [f16.write(floats.FORMATS[n].read(x), "rn") for x in values]
        for n, values in zip(names, (a, b), strict=True)
    ]
    first = [k for k in range(len(a)) if k % 4 < 2]
    second = [k for k in range(len(a)) if k % 4 > 1]

    def part(which: list[int], addend: int) -> int:
        left, right = ([side[k] for k in which] for side in halves)
        return chain(("f16", "f16"), left, right, addend, by)

    def add(x: int, y: int) -> int:
        return form.write(floats.add(form.read(x), form.read(y), "rn"), "rn")

    if version == "12.4" and acc == "f32":
        return add(c, add(part(first, 0), part(second, 0)))
    return add(c, part(second, part(first, 0)))


def inputs(name: str, shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Bits:
    """Codes of an element (or accumulator) in the low bits."""
    if kind == "floor":  # products near the least number of the results
        exponent, fraction, *_ = FORMATS[name]
        place = 23 if name == "tf32" else fraction
        middle, spread = (52, 7) if exponent == 8 else (3, 3)
        field = rng.integers(middle - spread, middle + spread, shape).astype(np.uint32)
        keep = np.uint32(~(((1 << exponent) - 1) << place) & 0xFFFFFFFF)
        return codes(name, shape, "raw", rng) & keep | field << np.uint32(place)
    if kind != "special":
        return codes(name, shape, kind, rng)
    made = codes(name, shape, "near", rng)
    exponent, fraction, has_inf, has_nan = FORMATS[name]
    top = (1 << exponent) - 1
    place = 23 if name == "tf32" else fraction
    infinity = np.uint32(top << place)
    rare = rng.random(shape)
    if has_inf:
        sign = rng.integers(0, 2, shape).astype(np.uint32) << np.uint32(place + exponent)
        made = np.where(rare < 0.02, infinity | sign, made)
    if has_nan:
        full = infinity | np.uint32(((1 << fraction) - 1) << (place - fraction))
        made = np.where(rare > 0.997, full, made)
    return np.where((rare > 0.1) & (rare < 0.15), np.uint32(0), made).astype(np.uint32)


def addends(accumulator: str, shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Bits:
    if kind == "floor":  # any other C would lead
        sign = 1 << (15 if accumulator == "f16" else 31)
        return (rng.integers(0, 2, shape) * sign).astype(np.uint32)
    made = inputs(accumulator, shape, kind, rng)
    if kind in ("near", "special") and accumulator == "f32":
        field = rng.integers(122, 132, shape).astype(np.uint32) << np.uint32(23)
        ordinary = (made & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
        made = np.where(ordinary, made & np.uint32(0x807FFFFF) | field, made)
    return made.astype(np.uint32)


@dataclass(frozen=True)
class Form:
    target: str
    words: str
    a: str
    b: str
    d: str
    shape: tuple[int, int, int]
    sparse: bool = False
    version: str = "13.2"  # of ptxas

    @property
    def name(self) -> str:
        return f"{self.target}-{self.words.removeprefix('sync.aligned.')}-{self.version}"


def dense(target: str, shape: str, a: str, b: str, d: str, before: str = "", **more: Any) -> Form:
    m, n, k = (int(x) for x in shape[1:].replace("n", " ").replace("k", " ").split())
    words = f"sync.aligned.{shape}.row.col.{before}{d}.{a}.{b}.{d}"
    return Form(target, words, a, b, d, (m, n, k), **more)


def sparse(target: str, shape: str, a: str, b: str, d: str, before: str = "") -> Form:
    made = dense(target, shape, a, b, d, before, sparse=True)
    return Form(target, "sp::ordered_metadata." + made.words, a, b, d, made.shape, True)


def floating_forms() -> list[Form]:
    result: list[Form] = []
    both = ("f16", "f32")
    for target, number in NUMBERS.items():
        if number >= 75:
            result += [dense(target, "m16n8k8", "f16", "f16", d) for d in both]
        if number < 80:
            continue
        result += [dense(target, "m16n8k16", "f16", "f16", d) for d in both]
        result += [dense(target, s, "bf16", "bf16", "f32") for s in ("m16n8k8", "m16n8k16")]
        result += [dense(target, s, "tf32", "tf32", "f32") for s in ("m16n8k4", "m16n8k8")]
        result += [
            sparse(target, s, "f16", "f16", d) for s in ("m16n8k16", "m16n8k32") for d in both
        ]
        result += [sparse(target, s, "bf16", "bf16", "f32") for s in ("m16n8k16", "m16n8k32")]
        result += [sparse(target, s, "tf32", "tf32", "f32") for s in ("m16n8k8", "m16n8k16")]
        if number < 89:
            continue
        for shape, d in itertools.product(("m16n8k16", "m16n8k32"), both):
            result.append(dense(target, shape, "e4m3", "e5m2", d))
        result.append(sparse(target, "m16n8k64", "e5m2", "e4m3", "f32"))
        if number in (90, 100):
            result.append(dense(target, "m16n8k32", "e5m2", "e5m2", "f32", version="12.4"))
            result.append(dense(target, "m16n8k32", "e5m2", "e5m2", "f16", version="12.4"))
        if number >= 120:
            for a, b in (("e4m3", "e4m3"), ("e3m2", "e2m3"), ("e2m1", "e5m2"), ("e2m1", "e2m1")):
                result += [dense(target, "m16n8k32", a, b, d, "kind::f8f6f4.") for d in both]
                result += [sparse(target, "m16n8k64", a, b, d, "kind::f8f6f4.") for d in both]
    return result


def kept_columns(form: Form, rng: np.random.Generator) -> Bits:
    """Full columns of the kept elements, `[K/2, m, 1]`: two of four, of tf32 one of two."""
    m, _, k = form.shape
    if form.a == "tf32":
        return (2 * np.arange(k // 2)[:, None] + rng.integers(0, 2, (k // 2, m)))[..., None]
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    chosen = pairs[rng.integers(0, 6, (k // 4, m))]  # [chunks, m, 2]
    full = chosen + 4 * np.arange(k // 4)[:, None, None]
    return np.moveaxis(full, 2, 1).reshape(k // 2, m)[..., None]


def in_container(form: Form, name: str, bits: Bits) -> Bits:
    return bits << np.uint32(2) if "kind" in form.words and name == "e2m1" else bits


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", floating_forms(), ids=lambda f: f.name)
def test_floating(form: Form, kind: str) -> None:
    version = tuple(int(x) for x in form.version.split("."))
    settings = Settings((version[0], version[1]))
    op = tensor_instruction(("mma", *form.words.split(".")), form.target, settings)
    assert isinstance(op, Mma)
    m, n, k = form.shape
    rng = np.random.default_rng(sum(map(ord, form.name + kind)))
    a = inputs(form.a, (k // 2 if form.sparse else k, m, 1), kind, rng)
    b = inputs(form.b, (k, n, 1), kind, rng)
    c = addends(form.d, (m, n, 1), kind, rng)
    kept = kept_columns(form, rng) if form.sparse else None
    found = op.plan.compute(
        in_container(form, form.a, a), in_container(form, form.b, b), c, kept, None
    )
    native = form.a not in SMALL or NUMBERS[form.target] in (89, 120, 121)
    by = how(form.target, form.a if native else "f16", form.d)
    for _ in range(OUTPUTS):
        i, j = int(rng.integers(m)), int(rng.integers(n))
        left = a[:, i, 0].tolist()
        right = (b[:, j, 0] if kept is None else b[kept[:, i, 0], j, 0]).tolist()
        addend = int(c[i, j, 0])
        if native:
            wanted = chain((form.a, form.b), left, right, addend, by)
        else:
            wanted = emulated((form.a, form.b), left, right, addend, form.d, form.version)
        assert int(found[i, j, 0]) == wanted, (i, j, hex(int(found[i, j, 0])), hex(wanted))


WGMMA = [
    *((a, a, d, k) for a, d, k in (("f16", "f16", 16), ("f16", "f32", 16), ("bf16", "f32", 16),
                                   ("tf32", "f32", 8))),
    *((a, b, d, 32) for a in FP8 for b in FP8 for d in ("f16", "f32")),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_metadata", [False, True])
@pytest.mark.parametrize("case", WGMMA, ids=lambda c: "-".join(map(str, c)))
def test_wgmma(case: tuple[str, str, str, int], with_metadata: bool, kind: str) -> None:
    a_name, b_name, d, k = case
    k *= 1 + with_metadata
    sp = "sp." if with_metadata else ""
    words = f"mma_async.{sp}sync.aligned.m64n16k{k}.{d}.{a_name}.{b_name}"
    op = tensor_instruction(("wgmma", *words.split(".")), "sm_90a")
    assert isinstance(op, Wgmma)
    rng = np.random.default_rng(sum(map(ord, words + kind)))
    form = Form("sm_90a", words, a_name, b_name, d, (64, 16, k), with_metadata)
    a = inputs(a_name, (k // 2 if with_metadata else k, 64, 1), kind, rng)
    b = inputs(b_name, (k, 16, 1), kind, rng)
    c = addends(d, (64, 16, 1), kind, rng)
    kept = kept_columns(form, rng) if with_metadata else None
    found = op.plan.compute(a, b, c, kept, None)
    by = how("sm_90a", a_name, d, wgmma=True)
    for _ in range(OUTPUTS):
        i, j = int(rng.integers(64)), int(rng.integers(16))
        right = b[:, j, 0] if kept is None else b[kept[:, i, 0], j, 0]
        wanted = chain((a_name, b_name), a[:, i, 0].tolist(), right.tolist(), int(c[i, j, 0]), by)
        assert int(found[i, j, 0]) == wanted, (i, j, hex(int(found[i, j, 0])), hex(wanted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["sm_70", "sm_75"])
@pytest.mark.parametrize("types", ["f16.f16.f16.f16", "f32.f16.f16.f32", "f32.f16.f16.f16"])
def test_m8n8k4(types: str, target: str, kind: str) -> None:
    """Volta's own instruction. A C of f16 under a D of f32 counts with at least f16's exponent."""
    d, _, _, c_name = types.split(".")
    op = tensor_instruction(("mma", *f"sync.aligned.m8n8k4.row.col.{types}".split(".")), target)
    assert isinstance(op, Mma)
    rng = np.random.default_rng(sum(map(ord, types + target + kind)))
    a, b = (inputs("f16", (4, 4, 8, 1), kind, rng) for _ in range(2))
    c = addends(c_name, (4, 8, 8, 1), kind, rng)
    found = op.plan.compute(a, b, c, None, None)
    by = how(target, "f16", d, volta=True)
    for p, i, j in itertools.product(range(4), (0, 3, 7), (1, 6)):
        pairs = [(read("f16", int(x)), read("f16", int(y)))
                 for x, y in zip(a[:, p, i, 0], b[:, p, j, 0], strict=True)]  # fmt: skip
        addend = read(c_name, int(c[p, i, j, 0]))
        assert int(found[p, i, j, 0]) == step(pairs, addend, by.fraction, by.floor, by.rounding)


def single(name: str, values: list[int]) -> int:
    """One IEEE operation on f32 bits."""
    form = floats.F32
    return form.write(floats.apply(name, [form.read(x) for x in values], "rn"), "rn")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("types", ["f16.f16.f16.f16", "f32.f16.f16.f32", "f32.f16.f16.f16"])
def test_m8n8k4_in_software(types: str, target: str, kind: str) -> None:
    """From sm_80 on: f32 arithmetic in the order of ptxas's routine, a zero with IEEE's sign."""
    d, _, _, c_name = types.split(".")
    op = tensor_instruction(("mma", *f"sync.aligned.m8n8k4.col.row.{types}".split(".")), target)
    assert isinstance(op, Mma)
    rng = np.random.default_rng(sum(map(ord, types + target + kind)))
    a, b = (inputs("f16", (4, 4, 8, 1), kind, rng) for _ in range(2))
    c = addends(c_name, (4, 8, 8, 1), kind, rng)
    a[:, 0, 0], c[0, 0] = 0x8000, 0x8000 if c_name == "f16" else 1 << 31
    found = op.plan.compute(a, b, c, None, None)
    half, wide = floats.F16, floats.F32
    for p, i, j in itertools.product(range(4), (0, 3, 7), (0, 6)):
        x, y = ([wide.write(half.read(int(v)), "rn") for v in side]
                for side in (a[:, p, i, 0], b[:, p, j, 0]))  # fmt: skip
        addend = int(c[p, i, j, 0])
        addend = wide.write(half.read(addend), "rn") if c_name == "f16" else addend
        if d == "f16":
            low = single("fma", [x[1], y[1], single("mul", [x[0], y[0]])])
            high = single("fma", [x[3], y[3], single("mul", [x[2], y[2]])])
            total = single("add", [single("add", [addend, low]), high])
            wanted = half.write(wide.read(total), "rn")
        else:
            total = 0
            for k in range(4):
                total = single("fma", [x[k], y[k], total])
            wanted = single("add", [addend, total])
        assert int(found[p, i, j, 0]) == wanted, (p, i, j)


DOUBLES = [
    ("m8n8k4", "sm_80"),
    ("m16n8k4", "sm_90a"),
    ("m16n8k8", "sm_90a"),
    ("m16n8k16", "sm_100a"),
]


@pytest.mark.parametrize("mode", ["", "rn", "rz", "rm", "rp"])
@pytest.mark.parametrize(("shape", "target"), DOUBLES)
def test_double(shape: str, target: str, mode: str) -> None:
    """Fused multiply-adds in ascending k, each rounded as the instruction says."""
    m, n, k = (int(x) for x in shape[1:].replace("n", " ").replace("k", " ").split())
    words = f"sync.aligned.{shape}.row.col.f64.f64.f64.f64" + f".{mode}" * bool(mode)
    op = tensor_instruction(("mma", *words.split(".")), target)
    assert isinstance(op, Mma)
    rng = np.random.default_rng(k + len(mode))
    a, b, c = (rng.standard_normal(s) * 2.0 ** rng.integers(-40, 40, s)
               for s in ((k, m, 1), (k, n, 1), (m, n, 1)))  # fmt: skip
    a[rng.random(a.shape) < 0.1] = 0
    a[0, 0], b[0, 1], c[2, 2], a[1, 3] = np.inf, 0.0, np.nan, 5e-324
    a[-1, 4], b[:, 4] = 1e300, 1e300
    c[5, 5], a[:, 5] = -0.0, 0.0
    found = op.plan.compute(a.view(np.uint64), b.view(np.uint64), c.view(np.uint64), None, None)
    form = floats.F64
    for i, j in itertools.product(range(m), range(n)):
        total = int(c.view(np.uint64)[i, j, 0])
        for x, y in zip(a[:, i, 0].view(np.uint64), b[:, j, 0].view(np.uint64), strict=True):
            values = [form.read(int(x)), form.read(int(y)), form.read(total)]
            total = form.write(floats.apply("fma", values, mode or "rn"), mode or "rn")
        assert int(found[i, j, 0]) == total, (i, j)


INTEGERS = [
    *((s, a, b, t) for s in ("m8n8k16", "m16n8k16", "m16n8k32") for a in ("s8", "u8")
      for b in ("s8", "u8") for t in ("sm_80", "sm_90a")),
    *((s, a, b, t) for s in ("m8n8k32", "m16n8k64") for a in ("s4", "u4")
      for b in ("s4", "u4") for t in ("sm_75" if s == "m8n8k32" else "sm_80", "sm_120a")),
    *((s, "b1", "b1", t) for s in ("m8n8k128", "m16n8k256") for t in ("sm_80", "sm_100a")),
]  # fmt: skip


@pytest.mark.parametrize("tail", ["", "satfinite.", "and", "xor"])
@pytest.mark.parametrize("case", INTEGERS, ids="-".join)
def test_integer(case: tuple[str, str, str, str], tail: str) -> None:
    """Exact sums; C at the ends of its range wraps, or is clamped once."""
    shape, a_name, b_name, target = case
    if (a_name == "b1") != (tail in ("and", "xor")):
        return
    m, n, k = (int(x) for x in shape[1:].replace("n", " ").replace("k", " ").split())
    head, end = (tail, "") if a_name != "b1" else ("", f".{tail}.popc")
    words = f"sync.aligned.{shape}.row.col.{head}s32.{a_name}.{b_name}.s32{end}"
    op = tensor_instruction(("mma", *words.split(".")), target)
    assert isinstance(op, Mma)
    bits = int(a_name[1:])
    rng = np.random.default_rng(len(words))
    a, b = (rng.integers(0, 1 << bits, s).astype(np.uint32) for s in ((k, m, 1), (k, n, 1)))
    c = rng.integers(0, 1 << 32, (m, n, 1)).astype(np.uint32)
    c[0], c[1], c[2] = 0x7FFFFFFF, 0x80000000, 0x7FFFFF00
    found = op.plan.compute(a, b, c, None, None)

    def value(x: int, name: str, width: int) -> int:
        return x - (1 << width) if name[0] == "s" and x >> (width - 1) else x

    for i, j in itertools.product(range(m), range(n)):
        pairs = [(int(x), int(y)) for x, y in zip(a[:, i, 0], b[:, j, 0], strict=True)]
        if a_name == "b1":
            total = sum(x & y if tail == "and" else x ^ y for x, y in pairs)
        else:
            total = sum(value(x, a_name, bits) * value(y, b_name, bits) for x, y in pairs)
        total += value(int(c[i, j, 0]), "s", 32)
        if tail == "satfinite.":
            total = max(-(1 << 31), min((1 << 31) - 1, total))
        assert int(found[i, j, 0]) == total & 0xFFFFFFFF, (i, j)


# -- block scales ----------------------------------------------------------------------------------

# kind, scale_vec, type of the scales, A, B, K, blocks along K
SCALED = [
    ("mxf8f6f4", "", "ue8m0", "e4m3", "e5m2", 32, 1),
    ("mxf8f6f4", "scale_vec::1X.", "ue8m0", "e2m1", "e3m2", 32, 1),
    ("mxf4", "", "ue8m0", "e2m1", "e2m1", 64, 2),
    ("mxf4nvf4", "scale_vec::2X.", "ue8m0", "e2m1", "e2m1", 64, 2),
    ("mxf4nvf4", "scale_vec::4X.", "ue8m0", "e2m1", "e2m1", 64, 4),
    ("mxf4nvf4", "scale_vec::4X.", "ue4m3", "e2m1", "e2m1", 64, 4),
]


def scale_factor(kind: str, code: int) -> tuple[Fraction | None, int]:
    """Significand (None: NaN) and exponent."""
    if kind == "ue8m0":
        return (None if code == 255 else Fraction(1)), code - 127
    number = read("e4m3", code & 0x7F)
    if isinstance(number.value, str):
        return None, 0
    return number.value / Fraction(2) ** number.exponent, number.exponent


def grouped(
    pairs: list[tuple[Number, Number]], sa: list[int], sb: list[int], c: Number, kind: str
) -> int:
    """kind::mxf4 and mxf4nvf4: exact sums of 16 products are the terms."""
    terms: list[tuple[Fraction, int]] = []
    size = len(pairs) // 4
    for group in range(4):
        part = pairs[group * size : (group + 1) * size]
        block = group * len(sa) // 4
        (x, ex), (y, ey) = scale_factor(kind, sa[block]), scale_factor(kind, sb[block])
        if x is None or y is None:
            return write("nan", "RZ-f32")
        products = [p.value * q.value for p, q in part
                    if isinstance(p.value, Fraction) and isinstance(q.value, Fraction)]  # fmt: skip
        assert len(products) == size
        if any(products) and x * y:
            terms.append((sum(products, Fraction(0)) * x * y * Fraction(2) ** (ex + ey), ex + ey))
    if isinstance(c.value, str):
        return write(c.value, "RZ-f32")
    if c.value:
        terms.append((c.value, c.exponent))
    unit = Fraction(2) ** (max([-139, *(e for _, e in terms)]) - 35)
    return write(sum(towards_zero(v / unit) for v, _ in terms) * unit, "RZ-f32")


@pytest.mark.parametrize("kind", ["raw", "near", "zeros", "special"])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("case", SCALED, ids=lambda c: "-".join(map(str, c[:5])))
def test_block_scales(
    case: tuple[str, str, str, str, str, int, int], ordered: bool, kind: str
) -> None:
    name, vector, scale, a_name, b_name, k, blocks = case
    k *= 1 + ordered
    words = (
        "sp::ordered_metadata."
        * ordered
        + f"sync.aligned.m16n8k{k}.row.col.kind::{name}.block_scale."
        f"{vector}f32.{a_name}.{b_name}.f32.{scale}"
    )
    op = tensor_instruction(("mma", *words.split(".")), "sm_120a")
    assert isinstance(op, Mma)
    rng = np.random.default_rng(sum(map(ord, words + kind)))
    form = Form(
        "sm_120a", "kind" if name == "mxf8f6f4" else "", a_name, b_name, "f32", (16, 8, k), ordered
    )
    a = inputs(a_name, (k // 2 if ordered else k, 16, 1), kind, rng)
    b = inputs(b_name, (k, 8, 1), kind, rng)
    c = addends("f32", (16, 8, 1), kind, rng)
    spread = (0, 256) if kind == "raw" else (120, 136) if scale == "ue8m0" else (0x20, 0x58)
    sa, sb = (rng.integers(*spread, (x, blocks, 1)).astype(np.uint32) for x in (16, 8))
    kept = kept_columns(form, rng) if ordered else None
    scales = ScaleCodes(sa, sb)
    found = op.plan.compute(
        in_container(form, a_name, a), in_container(form, b_name, b), c, kept, scales
    )
    for _ in range(2 * OUTPUTS):
        i, j = int(rng.integers(16)), int(rng.integers(8))
        right = b[:, j, 0] if kept is None else b[kept[:, i, 0], j, 0]
        pairs = [(read(a_name, int(x)), read(b_name, int(y)))
                 for x, y in zip(a[:, i, 0], right, strict=True)]  # fmt: skip
        addend = read("f32", int(c[i, j, 0]))
        if name != "mxf8f6f4":
            wanted = grouped(pairs, sa[i, :, 0].tolist(), sb[j, :, 0].tolist(), addend, scale)
        else:
            (x, ex), (y, ey) = (
                scale_factor(scale, int(s[at, 0, 0])) for s, at in ((sa, i), (sb, j))
            )
            if x is None or y is None:
                wanted = write("nan", "RZ-f32")
            else:
                raised = [(scaled(p, ex), scaled(q, ey)) for p, q in pairs]
                wanted = step(raised, addend, 25, -133, "RZ-f32")
        assert int(found[i, j, 0]) == wanted, (i, j, hex(int(found[i, j, 0])), hex(wanted))


def scaled(x: Number, exponent: int) -> Number:
    value = x.value if isinstance(x.value, str) else x.value * Fraction(2) ** exponent
    return Number(value, x.exponent + exponent, x.negative)
