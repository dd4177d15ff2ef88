"""Exact products of small integer matrices, as the instructions form them; and what to multiply.

Everything here is int64 without overflow and knows no lanes and no bits. Arrays have the case as
their first axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fragir.errors import FragirError
from fragir.isa import Instruction, Operand
from fragir.isa.query import View

# -- codes -----------------------------------------------------------------------------------------
# Small integers as the bits of any element type, and codes packed into registers.
#
# Written from the formats themselves (PTX ISA 9.2, section 5.2 and its tables of fp8, fp6 and fp4),
# apart from the emulator's and the reference's conversions.

Ints = NDArray[np.int64]
Codes = NDArray[np.uint64]
Words = NDArray[np.unsignedinteger]

# Exponent bits, mantissa bits, bias; one sign bit, but none for the types of scales.
_SMALL: dict[str, tuple[int, int, int]] = {
    "e4m3": (4, 3, 7),
    "e5m2": (5, 2, 15),
    "e2m3": (2, 3, 1),
    "e3m2": (3, 2, 3),
    "e2m1": (2, 1, 1),
    "ue4m3": (4, 3, 7),
}
NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
SIGNED = ("s4", "s8", "s32", "f16", "bf16", "tf32", "f32", "f64", *NARROW)
_INTEGERS = {"s4": 4, "u4": 4, "s8": 8, "u8": 8, "s32": 32, "b1": 1, "b4": 4}


@cache
def _table(element: str) -> dict[int, int]:
    """The codes of the integers that a small float type has exactly."""
    exponents, mantissas, bias = _SMALL[element]
    found: dict[int, int] = {}
    for code in range(1 << (exponents + mantissas)):
        exponent, mantissa = code >> mantissas, code & ((1 << mantissas) - 1)
        significand = mantissa + (1 << mantissas if exponent else 0)
        scale = max(exponent, 1) - bias - mantissas
        value = significand * 2.0**scale
        if value == int(value):
            found.setdefault(int(value), code)
    return found


def encode(element: str, values: Ints) -> Codes:
    """The codes of integers; FragirError for one that the type does not have."""
    if element in _INTEGERS:
        return (values & ((1 << _INTEGERS[element]) - 1)).astype(np.uint64)
    if element == "f64":
        return values.astype(np.float64).view(np.uint64)
    if element in ("f32", "tf32"):
        return values.astype(np.float32).view(np.uint32).astype(np.uint64)
    if element == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint64)
    if element == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint64)
    if element == "ue8m0":
        exponents = np.round(np.log2(values)).astype(np.int64)
        return (exponents + 127).astype(np.uint64)
    codes = np.zeros(values.shape, np.uint64)
    exponents, mantissas, _ = _SMALL[element]
    for value in np.unique(values):
        code = _table(element).get(abs(int(value)))
        if code is None or (value < 0 and element not in SIGNED):
            raise FragirError(f"{element} has no {value}")
        sign = 1 << (exponents + mantissas) if value < 0 else 0
        codes[values == value] = code | sign
    return codes


def packed_e2m1(instruction: Instruction) -> bool:
    """Whether e2m1 stands in 4 bits, not in a byte."""
    return any(flag.startswith("kind::mxf4") for flag in instruction.form.flags)


def pack(view: View, codes: Codes, empty: int = 0) -> Words:
    """Registers [case, lane, register] that hold `codes` [case, row, col, ...] as the view says."""
    operand = view.operand
    bits, shift, width = _slot(view)
    points = view.points()
    held = points[..., 0] >= 0
    at = np.moveaxis(np.where(held[..., None], points, 0), -1, 0)
    slots = codes[(slice(None), *at)]
    slots = np.where(held[None], slots, np.uint64(empty)) << np.uint64(shift)
    count = operand.registers.count
    cases = codes.shape[0]
    grouped = slots.reshape(cases, view.lanes, count, -1)
    places = np.arange(grouped.shape[-1], dtype=np.uint64) * np.uint64(bits)
    words = np.bitwise_or.reduce(grouped << places, axis=-1)
    return np.ascontiguousarray(words.astype(np.uint64 if width == 64 else np.uint32))


def unpack(view: View, words: Words) -> Codes:
    """The codes [case, row, col, ...] that registers hold; the first holder of each counts."""
    bits, shift, width = _slot(view)
    per = width // bits
    places = np.arange(per, dtype=np.uint64) * np.uint64(bits) + np.uint64(shift)
    slots = words.astype(np.uint64)[..., None] >> places
    mask = np.uint64((1 << bits) - 1) if bits < 64 else np.uint64(0xFFFFFFFFFFFFFFFF)
    slots = (slots & mask).reshape(words.shape[0], view.lanes, -1)
    owners = view.owners()
    return slots[:, owners[..., 0], owners[..., 1]]


def _slot(view: View) -> tuple[int, int, int]:
    """Bits from one element to the next, bits below the first, bits of a register."""
    operand: Operand = view.operand
    width = 64 if operand.registers.type.endswith("64") else 32
    bits = width * operand.registers.count // view.elements
    return bits, view.place(0, 0).low, width


Matrices = dict[str, Ints]
MAXIMUM = 2**31 - 1

# Legal nibbles of metadata by chunk length: one kept element or pair of two, or two of four.
_NIBBLES = {2: (4, 14), 4: (4, 8, 9, 12, 13, 14), 8: (4, 8, 9, 12, 13, 14)}


def unpack_sparse(a: Ints, e: Ints, chunk: int) -> Ints:
    """The full A of a packed one: nibbles name the kept columns (pairs) of each chunk."""
    cases, rows, kept = a.shape
    full = np.zeros((cases, rows, 2 * kept), np.int64)
    columns: Ints = np.arange(kept, dtype=np.int64)
    at: Ints = 2 * columns // chunk
    nibbles = e[:, :, at]
    inside: Ints
    if chunk == 2:
        inside = np.where(nibbles == 4, 0, 1)
    elif chunk == 4:
        inside = nibbles >> (2 * (columns % 2)) & 3
    else:
        inside = 2 * (nibbles >> (2 * (columns // 2 % 2)) & 3) + columns % 2
    np.put_along_axis(full, chunk * at + inside, a, axis=2)
    return full


def product(instruction: Instruction, m: Matrices) -> Ints:
    """A B + C of every case."""
    a, b, c = m["a"], m["b"], m["c"]
    if "e" in m:
        a = unpack_sparse(a, m["e"], instruction.operands["e"].chunk)
    if "sfa" in m:
        a = a * np.repeat(m["sfa"], instruction.operands["sfa"].chunk, 2)
        b = b * np.repeat(m["sfb"], instruction.operands["sfb"].chunk, 1)
    if a.ndim == 4:
        return np.einsum("cikp,ckjp->cijp", a, b) + c
    if "xor" in instruction.form.flags:
        ones = a.sum(2)[:, :, None] + b.sum(1)[:, None, :]
        return ones - 2 * (a @ b) + c
    result = a @ b + c
    if "satfinite" in instruction.form.flags:
        return np.clip(result, -MAXIMUM - 1, MAXIMUM)
    return result


def zeros(instruction: Instruction, cases: int) -> Matrices:
    """Zero matrices, metadata that is legal, scales of one."""
    made: Matrices = {}
    for name, operand in instruction.operands.items():
        if name in ("d", "a-shared") or not operand.shape:
            continue
        value = {"e": 4, "sfa": 1, "sfb": 1}.get(name, 0)
        made[name] = np.full((cases, *operand.shape), value, np.int64)
    return made


def _values(element: str, most: int) -> tuple[int, int]:
    """Lowest and highest integer to draw."""
    if element == "b1":
        return 0, 1
    return (-most if element in SIGNED else 0), most


def random(instruction: Instruction, cases: int, seed: int) -> Matrices:
    """Integers small enough that every sum is exact; random metadata and scales.

    Of a saturating instruction every second case has C at the ends of its range.
    """
    rng = np.random.default_rng(seed)
    made = zeros(instruction, cases)
    for name in made:
        operand = instruction.operands[name]
        shape = made[name].shape
        if name == "e":
            made[name] = rng.choice(np.array(_NIBBLES[operand.chunk]), shape)
        elif name in ("sfa", "sfb"):
            made[name] = rng.integers(1, 3, shape)
        else:
            low, high = _values(operand.element, 2)
            made[name] = rng.integers(low, high + 1, shape)
    if "satfinite" in instruction.form.flags:
        ends = np.array([-MAXIMUM - 1, MAXIMUM - 1])
        made["c"][::2] = rng.choice(ends, made["c"][::2].shape)
    return made


Ones = tuple[Ints, Ints, Ints, int]


def one_hot(instruction: Instruction) -> Iterator[Ones]:
    """(i, k, j, product) of the ones in A and B, an array each, a case at a time.

    A has ones at the (i, k), B at the (k, j), so that D has them at the (i, j) and nowhere else.
    Together the cases touch every element of A, B and D. One warp's instructions have a single one;
    of wgmma's larger matrices several are done at once that share no row, column or k. Each of
    the four products of m8n8k4 has cases of its own.
    """
    m, n, *rest = instruction.operands["d"].shape
    k = instruction.operands["b"].shape[0]
    products = rest[0] if rest else 1
    together = min(m, n, k) if instruction.warps == 4 else 1
    sides = ((m, k), (n, k), (m, n))
    for side, (along, across) in enumerate(sides):
        for shift in range(across):
            for start in range(0, along, together):
                x = np.arange(start, min(start + together, along))
                y = (x + shift) % across
                other = (x + shift) % (n, m, k)[side]
                i, k_, j = ((x, y, other), (other, y, x), (x, other, y))[side]
                for product_ in range(products):
                    yield i, k_, j, product_


def one_hot_count(instruction: Instruction) -> int:
    """How many cases `one_hot` gives."""
    m, n, *rest = instruction.operands["d"].shape
    k = instruction.operands["b"].shape[0]
    products = rest[0] if rest else 1
    together = min(m, n, k) if instruction.warps == 4 else 1
    sides = ((m, k), (n, k), (m, n))
    return products * sum(-(-along // together) * across for along, across in sides)


def one_hot_matrices(instruction: Instruction, chosen: list[Ones]) -> Matrices:
    """The matrices of some cases of `one_hot`.

    A sparse A has its one where the metadata's first choice, 0 and 1 of four, puts it: only the
    columns that it keeps are reached, the others by the second choice, 2 and 3. b1 with xor counts
    differing bits, so there the expected D is not one-hot; A and B are.
    """
    made = zeros(instruction, len(chosen))
    a, b = made["a"], made["b"]
    for case, (i, k, j, product_) in enumerate(chosen):
        if "e" in made:
            chunk = instruction.operands["e"].chunk
            kept = chunk // 2
            upper = k % chunk >= kept
            made["e"][case, i[upper], k[upper] // chunk] = 14
            a[case, i, k // chunk * kept + k % kept] = 1
        elif a.ndim == 4:
            a[case, i, k, product_] = 1
            b[case, k, j, product_] = 1
            continue
        else:
            a[case, i, k] = 1
        b[case, k, j] = 1
    return made
