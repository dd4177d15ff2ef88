"""wmma: fragments in memory and registers, products against numpy and the exact model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import run
from fragir.emulator.report import EmulationError
from fragir.emulator.tensor_cores import Wmma, WmmaAccess, tensor_instruction
from fragir.emulator.tensor_cores.arithmetic import fused_parameters, target
from fragir.errors import FragirError

from .test_arithmetic import chain, codes, width

Array = npt.NDArray[Any]
STORED: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
}
SHAPES = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}
ALL = SHAPES | {
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
    "m8n8k32": (8, 8, 32),
    "m8n8k128": (8, 8, 128),
}


@dataclass(frozen=True)
class Form:
    """One wmma: the types of D, A and B, C, and what stands in its mnemonic besides."""

    shape: str
    d: str
    a: str
    c: str
    tail: str = ""
    head: str = ""
    target: str = "sm_80"

    @property
    def types(self) -> str:
        return f"{self.d}.{self.c}" if self.a == "f16" else f"{self.d}.{self.a}.{self.a}.{self.c}"

    def mnemonic(self, layouts: tuple[str, str]) -> str:
        return (
            f"wmma.mma{self.head}.sync.aligned.{'.'.join(layouts)}.{self.shape}.{self.types}"
            + self.tail
        )


FORMS = [
    *(Form(s, d, "f16", c) for s in SHAPES for d in ("f16", "f32") for c in ("f16", "f32")),
    *(Form(s, "f32", "f16", "f32", target=t) for s in SHAPES for t in ("sm_70", "sm_75", "sm_90a")),
    *(Form(s, "f32", "bf16", "f32", target="sm_100a") for s in SHAPES),
    *(
        Form(s, "s32", a, "s32", t)
        for s in SHAPES
        for a in ("s8", "u8")
        for t in ("", ".satfinite")
    ),
    Form("m16n16k8", "f32", "tf32", "f32", target="sm_90a"),
    Form("m8n8k4", "f64", "f64", "f64"),
    Form("m8n8k32", "s32", "s4", "s32"),
    Form("m8n8k32", "s32", "u4", "s32", ".satfinite"),
    Form("m8n8k128", "s32", "b1", "s32", head=".xor.popc"),
    Form("m8n8k128", "s32", "b1", "s32", head=".and.popc"),
]


def registers(form: Form, operand: str) -> int:
    kind = {"a": form.a, "b": form.a, "c": form.c, "d": form.d}[operand]
    m, n, k = ALL[form.shape]
    if kind == "f16" and operand in "ab":
        return 8
    bits = {"f64": 64, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
    elements = {"a": m * k, "b": k * n, "c": m * n, "d": m * n}[operand] // 32
    return max(1, elements * bits.get(kind, 32) // (64 if kind == "f64" else 32))


def vector(form: Form, operand: str) -> str:
    return "{" + ", ".join(f"%{operand}{i}" for i in range(registers(form, operand))) + "}"


def stored(values: Array, kind: str, layout: str, stride: int) -> Array:
    """The bytes of a matrix in memory, its rows or columns `stride` elements apart."""
    lines = values if layout == "row" else values.T
    count, length = lines.shape
    if kind in ("s4", "u4", "b1"):
        bits = 1 if kind == "b1" else 4
        raised = np.zeros((count, stride * bits), np.uint8)
        for bit in range(bits):
            raised[:, bit : length * bits : bits] = lines.astype(np.int64) >> bit & 1
        return np.packbits(raised, axis=1, bitorder="little").reshape(-1)
    image = np.full((count, stride), 99, STORED[kind])
    image[:, :length] = lines.astype(STORED[kind])
    return image.reshape(-1).view(np.uint8)


def wide(form: Form, kind: str) -> str:
    return "b64" if kind == "f64" else "b32"


def kernel(
    form: Form, layouts: tuple[str, str], strides: dict[str, int], space: str, cd: str
) -> str:
    """Loads A, B and C, multiplies, stores D; `space`: global, generic or shared."""
    moved = ""
    base = {"a": "%pa", "b": "%pb", "c": "%pc", "d": "%pd"}
    suffix = {"global": ".global", "generic": "", "shared": ".shared"}[space]
    if space == "shared":
        base = {"a": "sa", "b": "sb", "c": "sc", "d": "%pd"}
        for name in "abc":
            moved += f"""
mov.u32 %t1, %laneid; shl.b32 %t1, %t1, 2;
LOOP{name}: cvt.u64.u32 %q, %t1; add.u64 %q, %q, %p{name}; ld.global.b32 %t2, [%q];
mov.u32 %t3, s{name}; add.u32 %t3, %t3, %t1; st.shared.b32 [%t3], %t2;
add.u32 %t1, %t1, 128; setp.lt.u32 %k, %t1, 8192; @%k bra LOOP{name};
"""
        moved += "bar.sync 0;"
    store = ".global" if space == "shared" else suffix
    kinds = {"a": form.a, "b": form.a, "c": form.c, "d": form.d}
    sides = {"a": layouts[0], "b": layouts[1], "c": cd, "d": cd}
    loads = "".join(
        f"wmma.load.{o}.sync.aligned.{sides[o]}.{form.shape}{suffix}.{kinds[o]} {vector(form, o)}, "
        f"[{base[o]}], {strides[o]};\n"
        for o in "abc"
    )
    declared = "".join(f".reg .{wide(form, kinds[o])} %{o}<{registers(form, o)}>; " for o in "abcd")
    return f"""
.version 8.6
.target {form.target}
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)
{{
.shared .align 32 .b8 sa[8192]; .shared .align 32 .b8 sb[8192]; .shared .align 32 .b8 sc[8192];
{declared}
.reg .b64 %pa, %pb, %pc, %pd, %q; .reg .b32 %t<4>; .reg .pred %k;
ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pc, [pc]; ld.param.u64 %pd, [pd];
{moved}
{loads}
{form.mnemonic(layouts)} {", ".join(vector(form, o) for o in "dabc")};
wmma.store.d.sync.aligned.{cd}.{form.shape}{store}.{form.d} [{base["d"]}],
    {vector(form, "d")}, {strides["d"]};
ret;
}}
"""


def small(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    low, high = {"u8": (0, 250), "s8": (-128, 128), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}.get(
        kind, (-4, 5)
    )
    return rng.integers(low, high, shape)


def layouts_of(form: Form) -> list[tuple[str, str]]:
    if form.a in ("s4", "u4", "b1"):
        return [("row", "col")]
    return [(a, b) for a in ("row", "col") for b in ("row", "col")]


@pytest.mark.parametrize(
    "form", FORMS, ids=lambda f: f"{f.target}-{f.shape}-{f.types}{f.tail}{f.head}"
)
def test_products(form: Form) -> None:
    """Small integers; every layout of every operand, strides wider than the matrix."""
    m, n, k = ALL[form.shape]
    rng = np.random.default_rng(4)
    for number, layouts in enumerate(layouts_of(form)):
        cd = ("row", "col")[number % 2]
        space = ("global", "generic", "shared")[number % 3]
        a, b = small(form.a, (m, k), rng), small(form.a, (k, n), rng)
        c = rng.integers(-9, 10, (m, n))
        unit = {"s4": 32, "u4": 32, "b1": 128}.get(form.a, 16)
        lengths = {"a": k if layouts[0] == "row" else m, "b": n if layouts[1] == "row" else k}
        lengths["c"] = lengths["d"] = n if cd == "row" else m
        strides = {o: x + (unit if o in "ab" else 8) * number for o, x in lengths.items()}
        images = [
            np.resize(np.append(stored(x, kind, side, strides[o]), np.zeros(1, np.uint8)), 8192)
            for o, x, kind, side in (("a", a, form.a, layouts[0]), ("b", b, form.a, layouts[1]),
                                     ("c", c, form.c, cd))
        ]  # fmt: skip
        lines, length = (m, n) if cd == "row" else (n, m)
        d = np.zeros((lines, strides["d"]), STORED[form.d])
        text = kernel(form, layouts, strides, space, cd)
        report = run(text, arguments=[*images, d], check=True)
        assert not report.findings
        found = d[:, :length] if cd == "row" else d[:, :length].T
        if form.a == "b1":
            pairs = a[:, :, None] ^ b[None] if "xor" in form.head else a[:, :, None] & b[None]
            wanted = pairs.sum(1) + c
        else:
            wanted = a.astype(np.int64) @ b.astype(np.int64) + c
        np.testing.assert_array_equal(found.astype(np.float64), wanted)
        assert not d[:, length:].any()


# Register -> (row, column) of an element for lane groups g = lane / 4 and t = lane % 4, typed from
# the addresses in the SASS that ptxas 13.2 makes of wmma.load.
Where: TypeAlias = Callable[[int, int, int, int], tuple[int, int]]
PLACES: dict[tuple[str, str, str], Where] = {
    ("m16n16k16", "f16", "a"): lambda g, t, r, e: (g + 8 * (r & 1), 2 * t + e + 8 * (r >> 1 & 1)),
    ("m16n16k16", "f16", "b"): lambda g, t, r, e: (2 * t + e + 8 * (r & 1), g + 8 * (r >> 1 & 1)),
    ("m32n8k16", "f16", "a"): lambda g, t, r, e: (
        g + 8 * (r & 1) + 16 * (r >> 2),
        2 * t + e + 8 * (r >> 1 & 1),
    ),
    ("m32n8k16", "f16", "b"): lambda g, t, r, e: (2 * t + e + 8 * (r & 1), g),
    ("m8n32k16", "f16", "a"): lambda g, t, r, e: (g, 2 * t + e + 8 * (r & 1)),
    ("m8n32k16", "bf16", "b"): lambda g, t, r, e: (
        2 * t + e + 8 * (r >> 1 & 1),
        g + 8 * (r & 1) + 16 * (r >> 2),
    ),
    ("m16n16k16", "s8", "a"): lambda g, t, r, e: (g + 8 * r, 4 * t + e),
    ("m8n32k16", "u8", "b"): lambda g, t, r, e: (4 * t + e, g + 8 * r),
    ("m16n16k8", "tf32", "a"): lambda g, t, r, e: (g + 8 * (r & 1), t + 4 * (r >> 1)),
    ("m16n16k8", "tf32", "b"): lambda g, t, r, e: (t + 4 * (r & 1), g + 8 * (r >> 1)),
    ("m16n16k16", "f32", "c"): lambda g, t, r, e: (
        g + 8 * (r >> 1 & 1),
        2 * t + (r & 1) + 8 * (r >> 2),
    ),
    ("m16n16k16", "f16", "c"): lambda g, t, r, e: (g + 8 * (r & 1), 2 * t + e + 8 * (r >> 1)),
    ("m32n8k16", "s32", "c"): lambda g, t, r, e: (g + 8 * (r >> 1), 2 * t + (r & 1)),
    ("m8n32k16", "f32", "c"): lambda g, t, r, e: (2 * t + (r & 1), g + 8 * (r >> 1)),
    ("m8n32k16", "f16", "c"): lambda g, t, r, e: (2 * t + e, g + 8 * r),
    ("m8n8k4", "f64", "b"): lambda g, t, r, e: (t, g),
    ("m8n8k32", "s4", "a"): lambda g, t, r, e: (g, 8 * t + e),
    ("m8n8k128", "b1", "b"): lambda g, t, r, e: (32 * t + e, g),
}  # fmt: skip


@pytest.mark.parametrize("key", PLACES, ids="-".join)
def test_registers_hold_what_ptxas_loads(key: tuple[str, str, str]) -> None:
    shape, kind, operand = key
    m, n, k = ALL[shape]
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[operand]
    bits = {"f64": 64, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "b1": 1}.get(kind, 32)
    only = {"a": ["row"], "b": ["col"]}.get(operand) if bits < 8 else None
    values = np.random.default_rng(2).integers(0, 1 << min(bits, 16), (rows, columns))
    for layout in only or ["row", "col"]:
        text = f"wmma.load.{operand}.sync.aligned.{layout}.{shape}.global.{kind}"
        op = tensor_instruction(tuple(text.split(".")), "sm_80")
        assert isinstance(op, WmmaAccess)
        stride = columns if layout == "row" else rows
        assert op.stride == stride
        raised = np.zeros((rows * columns, bits), np.uint8)
        for bit in range(min(bits, 16)):
            lines = values if layout == "row" else values.T
            raised[:, bit] = (lines >> bit & 1).reshape(-1)
        memory = np.packbits(raised.reshape(-1), bitorder="little")
        at = op.addresses(np.zeros((1, 32), np.uint64), np.array(stride))
        assert not (at % op.unit).any()
        loaded = memory.view(f"u{op.unit}")[at // op.unit]
        words = op.join(loaded)
        assert words.shape == (op.r.count, 1, 32)
        np.testing.assert_array_equal(op.split(words), loaded)
        per = op.r.width // bits
        for r, lane, e in itertools.product(range(op.r.count), range(32), range(per)):
            row, column = PLACES[key](lane // 4, lane % 4, r % (op.r.count // op.repeats), e)
            found = int(words[r, 0, lane]) >> bits * e & (1 << bits) - 1
            assert found == int(values[row, column]), (layout, r, lane, e)


STEPS = [
    ("sm_70", "f16", "f32", 4), ("sm_70", "f16", "f16", 4), ("sm_75", "f16", "f32", 8),
    ("sm_80", "f16", "f16", 8), ("sm_90", "f16", "f32", 16), ("sm_100a", "bf16", "f32", 16),
    ("sm_80", "tf32", "f32", 4), ("sm_90a", "tf32", "f32", 4), ("sm_120a", "tf32", "f32", 4),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["raw", "near", "zeros"])
@pytest.mark.parametrize("case", STEPS, ids=lambda c: "-".join(map(str, c)))
def test_bits(case: tuple[str, str, str, int], kind: str) -> None:
    """The chain of the instructions that ptxas makes of it, in exact rationals."""
    name, element, accumulator, step = case
    shape = "m16n16k8" if element == "tf32" else "m8n32k16"
    m, n, k = ALL[shape]
    types = f"{accumulator}.{accumulator}" if element == "f16" else f"f32.{element}.{element}.f32"
    text = f"wmma.mma.sync.aligned.row.col.{shape}.{types}"
    op = tensor_instruction(tuple(text.split(".")), name)
    assert isinstance(op, Wmma)
    rng = np.random.default_rng(len(name + kind) + step)
    a, b = codes(element, (k, m, 1), kind, rng), codes(element, (k, n, 1), kind, rng)
    c = codes(accumulator, (m, n, 1), kind, rng)
    if kind == "near" and accumulator == "f32":
        c = c & np.uint32(0x807FFFFF) | rng.integers(122, 131, c.shape).astype(
            np.uint32
        ) << np.uint32(23)
    found = op.plan.compute(a, b, c, None, None)
    how = fused_parameters(target(name).architecture, element, accumulator, volta=name == "sm_70")
    how = replace(how, step=step)
    assert width(element) in (16, 32)
    for i, j in itertools.product(range(0, m, 3), range(0, n, 3)):
        wanted = chain(
            (element, element), a[:, i, 0].tolist(), b[:, j, 0].tolist(), int(c[i, j, 0]), how
        )
        assert int(found[i, j, 0]) == wanted, (i, j)


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90a"])
def test_mixed_accumulators(name: str) -> None:
    """C of f16 is widened, D of f16 rounded from f32."""
    rng = np.random.default_rng(8)
    a, b = (codes("f16", (16, 16, 1), "near", rng) for _ in range(2))
    c = codes("f16", (16, 16, 1), "tiny", rng)
    wide_c = c.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)

    def compute(types: str, addend: Array) -> Array:
        op = tensor_instruction(
            tuple(f"wmma.mma.sync.aligned.row.row.m16n16k16.{types}".split(".")), name
        )
        assert isinstance(op, Wmma)
        return op.plan.compute(a, b, addend, None, None)

    single = compute("f32.f32", wide_c)
    np.testing.assert_array_equal(compute("f32.f16", c), single)
    halves = single.view(np.float32).astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(compute("f16.f32", wide_c), halves)


def test_elementwise_on_equal_fragments() -> None:
    """What is done to every register of an accumulator is done to every element of the matrix."""
    form = Form("m32n8k16", "f32", "f16", "f32")
    text = kernel(form, ("row", "col"), {"a": 16, "b": 16, "c": 8, "d": 8}, "global", "row")
    relu = "".join(f"max.f32 %d{i}, %d{i}, 0f00000000;\n" for i in range(8))
    text = text.replace("wmma.store", relu + "wmma.store")
    rng = np.random.default_rng(3)
    a, b = rng.integers(-3, 4, (32, 16)), rng.integers(-3, 4, (16, 8))
    c = rng.integers(-20, 20, (32, 8)).astype(np.float32)
    d = np.zeros((32, 8), np.float32)
    run(text, arguments=[a.astype(np.float16), b.T.astype(np.float16).copy(), c, d])
    np.testing.assert_array_equal(d, np.maximum(a @ b + c, 0))


# Warp 0 stores an accumulator to shared memory, warp 1 loads it: BARRIER may stand between.
EXCHANGE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 d)
{
.shared .align 32 .b8 s[2048];
.reg .b64 %pa, %pd; .reg .b32 %w, %a<8>, %b<8>, %c<8>, %z; .reg .pred %p;
ld.param.u64 %pa, [a]; ld.param.u64 %pd, [d]; mov.u32 %w, %tid.x; setp.ge.u32 %p, %w, 32;
@%p bra READ;
wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%pa], 16;
wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, [%pa];
INIT
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7},
    {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7},
    {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7};
wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [s+OFFSET],
    {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, 16;
READ:
BARRIER
@!%p bra END;
wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, [s], 16;
wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%pd], {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, 16;
END:
ret;
}
"""
ZEROS = "".join(f"mov.b32 %c{i}, 0; " for i in range(8))


def exchange(
    barrier: str = "bar.sync 0;", init: str = ZEROS, offset: str = "0"
) -> tuple[Any, Array, Array]:
    text = EXCHANGE.replace("BARRIER", barrier).replace("INIT", init).replace("OFFSET", offset)
    a = np.random.default_rng(1).integers(-3, 4, (16, 16)).astype(np.float16)
    d = np.zeros((16, 16), np.float32)
    report = run(text, block=(64,), arguments=[a, d], check=True, fragments=True)
    return report, a, d


def test_checks_are_silent_on_a_correct_exchange() -> None:
    report, a, d = exchange()
    assert not report.findings
    np.testing.assert_array_equal(d, a.astype(np.float32) @ a.T.astype(np.float32))


def test_a_missing_barrier_is_a_race() -> None:
    report, *_ = exchange(barrier="")
    assert {f.kind for f in report.findings} >= {"race"}


def test_uninitialised_accumulators_are_reported() -> None:
    report, *_ = exchange(init=ZEROS.replace("mov.b32 %c5, 0;", ""))
    (finding,) = [f for f in report.findings if f.kind == "uninitialised"]
    assert finding.subject == "%c5"


def test_unwritten_shared_memory_is_reported() -> None:
    text = EXCHANGE.replace("BARRIER", "bar.sync 0;").replace("INIT", ZEROS).replace("OFFSET", "0")
    start, end = text.index("wmma.store.d"), text.index("READ:\n")
    text = text[:start] + text[end:]
    d = np.zeros((16, 16), np.float32)
    report = run(text, block=(64,), arguments=[np.zeros((16, 16), np.float16), d], check=True)
    assert {f.kind for f in report.findings} == {"uninitialised"}


@pytest.mark.parametrize(("offset", "kind"), [("2", "misaligned"), ("1056", "out-of-bounds")])
def test_bad_addresses(offset: str, kind: str) -> None:
    with pytest.raises(EmulationError) as caught:
        exchange(offset=offset)
    assert caught.value.kind == kind
    assert caught.value.lane is not None


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite", "sm_80", "integers only"),
        ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.bf16.bf16.f32", "sm_80", "no such shape"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", "sm_75", "needs sm_80"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32", "sm_80", "no such shape"),
        ("wmma.mma.sync.aligned.col.col.m8n8k32.s32.s4.s4.s32", "sm_80", "only as .row.col"),
        (
            "wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
            "sm_80",
            "it needs one of .xor, .and",
        ),
        ("wmma.load.a.sync.aligned.col.m8n8k32.s4", "sm_80", "A is .row"),
        ("wmma.load.d.sync.aligned.row.m16n16k16.f32", "sm_80", ".d is no modifier of wmma.load"),
        (
            "wmma.store.d.sync.aligned.row.m16n16k16.bf16",
            "sm_80",
            ".bf16 is no modifier of wmma.store.d",
        ),
        ("wmma.load.a.sync.aligned.row.m16n16k16.s8", "sm_70", "needs sm_72"),
        ("wmma.fill.sync.aligned.m16n16k16.f32", "sm_80", ".fill is no modifier of wmma"),
    ],
)
def test_refusals(text: str, name: str, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        tensor_instruction(tuple(text.split(".")), name)
