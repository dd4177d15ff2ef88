"""mma.sync and mma.sp on registers, against numpy on whole matrices.

Registers are filled and read by rules typed here (from CUTLASS's and the ISA's figures: one rule
covers every dense shape but m8n8k4 of f16), not by the emulator's maps; the numbers are small
integers, whose products every architecture adds exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator.tensor_cores import Mma, tensor_instruction
from fragir.errors import FragirError

Array: TypeAlias = npt.NDArray[Any]

STORED: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
}
BITS = (
    {name: 32 for name in ("tf32", "f32", "s32")}
    | {"f64": 64, "f16": 16, "bf16": 16}
    | {
        "s4": 4,
        "u4": 4,
        "b1": 1,
    }
)
RANGE = {"u8": (0, 256), "s8": (-128, 128), "u4": (0, 16), "s4": (-8, 8), "b1": (0, 2)}


def decode_op(words: str, target: str) -> Mma:
    op = tensor_instruction(("mma", *words.split(".")), target)
    assert isinstance(op, Mma)
    return op


def encode(name: str, values: Array) -> Array:
    """Codes of exactly representable values, in the low bits of a u64."""
    if name in STORED:
        stored = values.astype(STORED[name])
        return stored.view(f"u{stored.dtype.itemsize}").astype(np.uint64)
    bits = BITS.get(name, 8)
    return values.astype(np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)


def pack(
    codes: Array, place: Callable[[int, int], tuple[int, ...]], count: int, bits: int
) -> Array:
    """Codes `[W, ...]` -> registers `[count, W, 32]`; `place(element, lane)` is an index."""
    width = 64 if bits == 64 else 32
    per = width // bits
    registers = np.zeros((count, len(codes), 32), np.uint64)
    for element in range(count * per):
        for lane in range(32):
            value = codes[(slice(None), *place(element, lane))]
            registers[element // per, :, lane] |= value << np.uint64(element % per * bits)
    return registers.astype(np.uint64 if width == 64 else np.uint32)


def unpack(
    registers: Array,
    place: Callable[[int, int], tuple[int, ...]],
    shape: tuple[int, ...],
    name: str,
) -> Array:
    """Registers -> values `[W, *shape]` of f16, f32, s32 or f64."""
    bits = BITS[name]
    per = (64 if bits == 64 else 32) // bits
    kind: Any = np.int32 if name == "s32" else STORED[name]
    result = np.full((registers.shape[1], *shape), np.nan)
    for element in range(registers.shape[0] * per):
        for lane in range(32):
            word = registers[element // per, :, lane]
            code = word >> word.dtype.type(element % per * bits)
            code = code.astype(f"u{bits // 8}")
            result[(slice(None), *place(element, lane))] = code.view(kind)
    return result


def a_place(bits: int, rows: int) -> Callable[[int, int], tuple[int, int]]:
    per = (64 if bits == 64 else 32) // bits

    def place(element: int, lane: int) -> tuple[int, int]:
        register, e = divmod(element, per)
        group, thread = divmod(lane, 4)
        if rows == 8:
            return group, per * thread + e
        return group + 8 * (register & 1), per * thread + e + 4 * per * (register >> 1)

    return place


def b_place(bits: int) -> Callable[[int, int], tuple[int, int]]:
    per = (64 if bits == 64 else 32) // bits

    def place(element: int, lane: int) -> tuple[int, int]:
        register, e = divmod(element, per)
        return per * (lane % 4) + e + 4 * per * register, lane // 4

    return place


def c_place(element: int, lane: int) -> tuple[int, int]:
    return lane // 4 + 8 * (element >> 1), 2 * (lane % 4) + (element & 1)


def values(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    low, high = RANGE.get(name, (-3, 4) if name != "e2m1" else (-4, 5))
    return rng.integers(low, high, shape).astype(np.float64)


@dataclass(frozen=True)
class Form:
    shape: tuple[int, int, int]
    types: tuple[str, str, str, str]  # D, A, B, C
    target: str
    extra: str = ""  # words before the types
    tail: str = ""  # words after them

    @property
    def words(self) -> str:
        m, n, k = self.shape
        return f"sync.aligned.m{m}n{n}k{k}.row.col.{self.extra}{'.'.join(self.types)}{self.tail}"


def forms() -> list[Form]:
    result: list[Form] = []
    for target in ("sm_80", "sm_90a", "sm_120a"):
        for acc in ("f16", "f32"):
            for k in (8, 16):
                result.append(Form((16, 8, k), (acc, "f16", "f16", acc), target))
        for k in (8, 16):
            result.append(Form((16, 8, k), ("f32", "bf16", "bf16", "f32"), target))
        for k in (4, 8):
            result.append(Form((16, 8, k), ("f32", "tf32", "tf32", "f32"), target))
    for acc in ("f16", "f32"):
        result.append(Form((16, 8, 8), (acc, "f16", "f16", acc), "sm_75"))
        for a, b in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e4m3", "e5m2")):
            for k in (16, 32):
                for target in ("sm_89", "sm_90", "sm_100a", "sm_120"):
                    result.append(Form((16, 8, k), (acc, a, b, acc), target))
        for a, b in (("e3m2", "e2m1"), ("e2m1", "e5m2"), ("e2m3", "e3m2"), ("e4m3", "e2m3")):
            result.append(Form((16, 8, 32), (acc, a, b, acc), "sm_120a", "kind::f8f6f4."))
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        for rounding in ("", ".rz"):
            result.append(Form((m, 8, k), ("f64", "f64", "f64", "f64"), "sm_90", tail=rounding))
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            for m, k in ((8, 16), (16, 16), (16, 32)):
                result.append(Form((m, 8, k), ("s32", a, b, "s32"), "sm_80"))
    for a, b in (("s4", "s4"), ("u4", "s4"), ("u4", "u4")):
        for m, k in ((8, 32), (16, 32), (16, 64)):
            result.append(Form((m, 8, k), ("s32", a, b, "s32"), "sm_90a"))
    for m, k in ((8, 128), (16, 128), (16, 256)):
        for op in (".and.popc", ".xor.popc"):
            result.append(Form((m, 8, k), ("s32", "b1", "b1", "s32"), "sm_80", tail=op))
    return result


def shown(form: Form) -> str:
    return f"{form.target}-{form.words.removeprefix('sync.aligned.')}"


def product(form: Form, a: Array, b: Array) -> Array:
    if "xor" in form.tail:
        return (a[:, :, :, None] != b[:, None]).sum(2).astype(np.float64)
    return a @ b


@pytest.mark.parametrize("form", forms(), ids=shown)
def test_dense(form: Form) -> None:
    """Random small integers, and one element of A by one of B at every place in turn."""
    op = decode_op(form.words, form.target)
    (m, n, k), (d, left, right, c) = form.shape, form.types
    size = 8 if form.extra else BITS.get(left, 8)
    rng = np.random.default_rng(1)
    warps = 40
    a, b = values(left, (warps, m, k), rng), values(right, (warps, k, n), rng)
    addend = rng.integers(-9, 9, (warps, m, n)).astype(np.float64)
    for w in range(4, warps):  # one-hot
        x, y, z = (int(rng.integers(e)) for e in (m, k, n))
        keep = a[w, x, y] or 1.0, b[w, y, z] or 1.0
        a[w], b[w], addend[w] = 0, 0, 0
        a[w, x, y], b[w, y, z] = keep
    shift = {"e2m1": 2}
    codes_a = encode(left, a) << np.uint64(shift.get(left, 0) if form.extra else 0)
    codes_b = encode(right, b) << np.uint64(shift.get(right, 0) if form.extra else 0)
    registers = (
        pack(codes_a, a_place(size, m), op.a.count, size),
        pack(codes_b, b_place(size), op.b.count, size),
        pack(encode(c, addend), c_place, op.c.count, BITS[c]),
    )
    for array, operand in zip(registers, (op.a, op.b, op.c), strict=True):
        assert array.dtype == operand.dtype
    before = [each.copy() for each in registers]
    result = op.execute(*registers)
    assert result.shape == (op.d.count, warps, 32)
    assert result.dtype == op.d.dtype
    found = unpack(result, c_place, (m, n), d)
    np.testing.assert_array_equal(found, product(form, a, b) + addend)
    for array, old in zip(registers, before, strict=True):
        np.testing.assert_array_equal(array, old)


def quad(lane: int) -> tuple[int, int, int]:
    """Of m8n8k4: product, lane within the quad, 4 for the upper half of the warp."""
    return lane % 16 // 4, lane % 4, 4 if lane >= 16 else 0


M8N8K4: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "a.row": lambda i, lane: (quad(lane)[0], quad(lane)[1] + quad(lane)[2], i),
    "a.col": lambda i, lane: (quad(lane)[0], i + quad(lane)[2], quad(lane)[1]),
    "b.row": lambda i, lane: (quad(lane)[0], quad(lane)[1], i + quad(lane)[2]),
    "b.col": lambda i, lane: (quad(lane)[0], i, quad(lane)[1] + quad(lane)[2]),
    "f16": lambda i, lane: (quad(lane)[0], quad(lane)[1] + quad(lane)[2], i),
    "f32": lambda i, lane: (
        quad(lane)[0],
        (lane & 1) + (i & 2) + quad(lane)[2],
        (i & 4) + (lane & 2) + (i & 1),
    ),
}


@pytest.mark.parametrize("target", ["sm_70", "sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("layouts", ["row.row", "row.col", "col.row", "col.col"])
@pytest.mark.parametrize("types", [("f16", "f16"), ("f32", "f16"), ("f32", "f32")])
def test_four_products_of_m8n8k4(target: str, layouts: str, types: tuple[str, str]) -> None:
    d, c = types
    op = decode_op(f"sync.aligned.m8n8k4.{layouts}.{d}.f16.f16.{c}", target)
    rng = np.random.default_rng(2)
    a, b = values("f16", (3, 4, 8, 4), rng), values("f16", (3, 4, 4, 8), rng)
    addend = values("f16", (3, 4, 8, 8), rng)
    layout_a, layout_b = layouts.split(".")
    result = op.execute(
        pack(encode("f16", a), M8N8K4[f"a.{layout_a}"], op.a.count, 16),
        pack(encode("f16", b), M8N8K4[f"b.{layout_b}"], op.b.count, 16),
        pack(encode(c, addend), M8N8K4[c], op.c.count, BITS[c]),
    )
    found = unpack(result, M8N8K4[d], (4, 8, 8), d)
    np.testing.assert_array_equal(found, a @ b + addend)


# shape, type, chunk, lanes that hold the metadata of (row, chunk) under selector F, and its nibble.
def class1(row: int, chunk: int, f: int) -> tuple[int, int]:
    return 4 * (row % 8) + f, 4 * (row // 8) + chunk


def class2(row: int, chunk: int, f: int) -> tuple[int, int]:
    return 4 * (row % 8) + 2 * f + chunk // 4, 4 * (row // 8) + chunk % 4


def class3(row: int, chunk: int, f: int) -> tuple[int, int]:
    return 4 * (row % 8) + 2 * f + row // 8, chunk


def class4(row: int, chunk: int, f: int) -> tuple[int, int]:
    return 4 * (row % 8) + 2 * (chunk // 8) + row // 8, chunk % 8


@dataclass(frozen=True)
class Sparse(Form):
    where: Callable[[int, int, int], tuple[int, int]] = class4
    selectors: int = 1


def sparse_forms() -> list[Sparse]:
    half, single = ("f16", "f32"), ("f32",)
    result: list[Sparse] = []
    for a, accumulators in (("f16", half), ("bf16", single)):
        for acc in accumulators:
            result += [
                Sparse((16, 8, 16), (acc, a, a, acc), "sm_80", where=class1, selectors=4),
                Sparse((16, 8, 32), (acc, a, a, acc), "sm_90a", where=class2, selectors=2),
            ]
    tf32 = ("f32", "tf32", "tf32", "f32")
    result += [
        Sparse((16, 8, 8), tf32, "sm_80", where=class1, selectors=4),
        Sparse((16, 8, 16), tf32, "sm_80", where=class2, selectors=2),
        Sparse((16, 8, 32), ("s32", "s8", "u8", "s32"), "sm_80", where=class3, selectors=2),
        Sparse((16, 8, 64), ("s32", "u8", "s8", "s32"), "sm_80"),
        Sparse((16, 8, 64), ("s32", "s4", "u4", "s32"), "sm_80", where=class3, selectors=2),
        Sparse((16, 8, 128), ("s32", "u4", "u4", "s32"), "sm_80"),
        Sparse((16, 8, 64), ("f32", "e4m3", "e5m2", "f32"), "sm_89"),
        Sparse((16, 8, 64), ("f32", "e4m3", "e5m2", "f32"), "sm_90a"),
        Sparse((16, 8, 64), ("f16", "e4m3", "e2m1", "f16"), "sm_120a", "kind::f8f6f4."),
    ]
    return result


def spellings() -> list[tuple[str, Sparse]]:
    """Forms with a .kind exist with ordered metadata only."""
    ordered = [("sp::ordered_metadata", form) for form in sparse_forms()]
    return ordered + [("sp", form) for form in sparse_forms() if not form.extra]


@pytest.mark.parametrize(
    ("spelling", "form"), spellings(), ids=lambda x: x if isinstance(x, str) else shown(x)
)
def test_sparse(spelling: str, form: Sparse) -> None:
    op = decode_op(f"{spelling}.{form.words}", form.target)
    assert op.selectors == tuple(range(form.selectors))
    (m, n, k), (d, left, right, c) = form.shape, form.types
    size = 8 if form.extra else BITS.get(left, 8)
    rng = np.random.default_rng(4)
    for selector in op.selectors:
        warps = 3
        full = np.zeros((warps, m, k))
        kept = values(left, (warps, m, k // 2), rng)
        b = values(right, (warps, k, n), rng)
        addend = rng.integers(-9, 9, (warps, m, n)).astype(np.float64)
        metadata = rng.integers(0, 1 << 32, (1, warps, 32), dtype=np.uint32)
        width = 2 if left == "tf32" else 8 if left in ("s4", "u4") else 4
        for w, row, chunk in np.ndindex(warps, m, k // width):
            if width == 2:
                first = int(rng.integers(2))
                columns, nibble = [first], 0b1110 if first else 0b0100
            else:
                x, y = sorted(rng.choice(4, 2, replace=False).tolist())
                columns, nibble = [x, y], x | y << 2
            if width == 8:
                columns = [2 * g + e for g in columns for e in (0, 1)]
            number = len(columns)
            for position, column in enumerate(columns):
                full[w, row, chunk * width + column] = kept[w, row, chunk * number + position]
            lane, at = form.where(row, chunk, selector)
            metadata[0, w, lane] &= ~np.uint32(0xF << 4 * at)
            metadata[0, w, lane] |= np.uint32(nibble << 4 * at)
        shift = np.uint64(2 if form.extra and right == "e2m1" else 0)
        result = op.execute(
            pack(encode(left, kept), a_place(size, m), op.a.count, size),
            pack(encode(right, b) << shift, b_place(size), op.b.count, size),
            pack(encode(c, addend), c_place, op.c.count, BITS[c]),
            e=metadata,
            selector=selector,
        )
        np.testing.assert_array_equal(unpack(result, c_place, (m, n), d), full @ b + addend)


def test_infinity_beside_a_dropped_column_does_no_harm() -> None:
    """An unselected Inf of B must not meet a zero."""
    op = decode_op("sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a")
    a = np.full((op.a.count, 1, 32), 0x3C003C00, np.uint32)
    b = np.zeros((op.b.count, 1, 32), np.uint32)
    b[0] = 0x7C000000  # column 1 of each first pair
    metadata = np.full((1, 1, 32), 0x88888888, np.uint32)  # keep 0 and 2 of each chunk
    zero = np.zeros((op.c.count, 1, 32), np.uint32)
    assert (op.execute(a, b, zero, e=metadata, selector=0) == 0).all()


SCALED = [
    ("mxf8f6f4", "1X", "ue8m0", "e4m3", "e5m2", 32),
    ("mxf8f6f4", "1X", "ue8m0", "e2m1", "e3m2", 32),
    ("mxf4", "2X", "ue8m0", "e2m1", "e2m1", 64),
    ("mxf4nvf4", "2X", "ue8m0", "e2m1", "e2m1", 64),
    ("mxf4nvf4", "4X", "ue8m0", "e2m1", "e2m1", 64),
    ("mxf4nvf4", "4X", "ue4m3", "e2m1", "e2m1", 64),
]


@pytest.mark.parametrize("case", SCALED, ids=lambda case: "-".join(map(str, case)))
def test_block_scales(case: tuple[str, str, str, str, str, int]) -> None:
    """Every selector; scales are powers of two (ue4m3: also 1.5), so that all is exact."""
    kind, vector, stored, left, right, k = case
    blocks = int(vector[0])
    op = decode_op(
        f"sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale.scale_vec::{vector}."
        f"f32.{left}.{right}.f32.{stored}",
        "sm_120a",
    )
    assert op.scales
    size = 8 if kind == "mxf8f6f4" else 4
    rng = np.random.default_rng(6)
    warps = 2
    a, b = values(left, (warps, 16, k), rng), values(right, (warps, k, 8), rng)
    addend = rng.integers(-9, 9, (warps, 16, 8)).astype(np.float64)
    shift = {"e2m1": np.uint64(2 if size == 8 else 0)}
    zero = np.uint64(0)
    registers = (
        pack(encode(left, a) << shift.get(left, zero), a_place(size, 16), op.a.count, size),
        pack(encode(right, b) << shift.get(right, zero), b_place(size), op.b.count, size),
        pack(encode("f32", addend), c_place, op.c.count, 32),
    )
    choices = [0.5, 1.0, 2.0, 4.0] + ([1.5, 3.0] if stored == "ue4m3" else [])

    def codes(scale: Array) -> Array:
        if stored == "ue8m0":
            return (np.log2(scale) + 127).astype(np.uint32)
        return scale.astype(ml_dtypes.float8_e4m3fn).view(np.uint8).astype(np.uint32)

    for byte in range(0, 4, blocks):
        for thread_a, thread_b in ((0, 0), (1, 2), (0, 3), (1, 1)):
            scale_a = rng.choice(choices, (warps, 16, blocks))
            scale_b = rng.choice(choices, (warps, blocks, 8))
            words = rng.integers(0, 1 << 32, (2, 1, warps, 32), dtype=np.uint32)
            for block in range(blocks):
                place = np.uint32(8 * (byte + block))
                for row in range(16):
                    lane = 4 * (row % 8) + 2 * thread_a + row // 8
                    words[0, 0, :, lane] &= ~(np.uint32(0xFF) << place)
                    words[0, 0, :, lane] |= codes(scale_a[:, row, block]) << place
                for column in range(8):
                    lane = 4 * column + thread_b
                    words[1, 0, :, lane] &= ~(np.uint32(0xFF) << place)
                    words[1, 0, :, lane] |= codes(scale_b[:, block, column]) << place
            result = op.execute(
                *registers,
                sfa=words[0],
                select_a=(byte, thread_a),
                sfb=words[1],
                select_b=(byte, thread_b),
            )
            scaled_a = a * np.repeat(scale_a, k // blocks, axis=2)
            scaled_b = b * np.repeat(scale_b, k // blocks, axis=1)
            found = unpack(result, c_place, (16, 8), "f32")
            np.testing.assert_array_equal(found, scaled_a @ scaled_b + addend)


def test_batches_do_not_depend_on_their_size() -> None:
    """Many warps are computed in parts; the parts are the same as single warps."""
    op = decode_op("sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a")
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.integers(0, 1 << 32, (each.count, 700, 32), dtype=np.uint32)
        for each in (op.a, op.b, op.c)
    )
    together = op.execute(a, b, c)
    for w in (0, 255, 256, 511, 699):
        one = slice(w, w + 1)
        np.testing.assert_array_equal(op.execute(a[:, one], b[:, one], c[:, one]), together[:, one])


REFUSED = [
    ("m16n8k16.row.col.f32.f16.bf16.f32", "sm_90a", "no product of f16 and bf16"),
    ("m16n8k16.col.col.f32.f16.f16.f32", "sm_90a", "only as .row.col"),
    ("m16n8k16.row.col.f32.f16.f16.f16", "sm_90a", "are not added to C of f16"),
    ("m16n8k16.row.col.f32.f16.f16.f32", "sm_75", "needs sm_80"),
    ("m16n8k4.row.col.f64.f64.f64.f64", "sm_80", "needs sm_90"),
    ("m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_86", "needs sm_89"),
    ("m16n8k16.row.col.satfinite.f32.f16.f16.f32", "sm_90a", "satfinite is for s32"),
    ("m16n8k32.row.col.f32.e2m1.e2m1.f32", "sm_120a", "needs one of .kind::f8f6f4"),
    ("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32", "sm_90a", "needs sm_120a"),
    ("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32", "sm_120", "needs sm_120a"),
    ("m8n8k128.row.col.s32.b1.b1.s32.and.popc", "sm_75", ".and needs sm_80"),
    ("m8n8k4.row.col.f32.bf16.bf16.f32", "sm_90a", "no shape m8n8k4"),
    ("m16n8k16.row.col.f32.f16.f16", "sm_90a", "needs one of .f16, .f32, .f64, .s32"),
    ("m16n8k16.row.col.f32.f16.f16.f32.wide", "sm_90a", ".wide is no modifier of mma"),
]


@pytest.mark.parametrize(("words", "target", "message"), REFUSED)
def test_refusals_say_why(words: str, target: str, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        decode_op(f"sync.aligned.{words}", target)


def test_selectors_are_checked() -> None:
    op = decode_op("sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_90a")
    a, b, c, e = (np.zeros((count, 1, 32), np.uint32) for count in (4, 4, 4, 1))
    with pytest.raises(FragirError, match="selector 2 is not one of"):
        op.execute(a, b, c, e=e, selector=2)
    with pytest.raises(FragirError, match=r"it needs one of \.sync"):
        decode_op("aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a")
    with pytest.raises(FragirError, match="is no tensor-core instruction"):
        tensor_instruction(("add", "f32"), "sm_90a")
