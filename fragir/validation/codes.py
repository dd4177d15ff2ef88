"""Small integers as the bits of any element type, and codes packed into registers.

Written from the formats themselves (PTX ISA 9.2, section 5.2 and its tables of fp8, fp6 and fp4),
apart from the emulator's and the reference's conversions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fragir.errors import FragirError
from fragir.isa import Instruction, Operand
from fragir.isa.query import View

Ints = NDArray[np.int64]
Codes = NDArray[np.uint64]
Words = NDArray[np.unsignedinteger[Any]]

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
