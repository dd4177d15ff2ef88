"""The functions that a text may name, on numpy arrays of integers and bits; C has the same names.

What PTX defines by pseudocode is written so here: upper halves of products, division, shifts, bit
fields, permutations of bytes (PTX ISA 9.2, sections 9.7.1 to 9.7.3 and 9.7.8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fragir.emulator.numbers.types import U64, Array, where


def high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        double = np.dtype(f"{a.dtype.kind}{bits // 4}")
        product = np.multiply(a, b, dtype=double)
        return (product >> double.type(bits)).astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.view(np.uint64), b.astype(a.dtype).view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    second = x0 * y1 + (middle & low)
    upper = x1 * y1 + (middle >> half) + (second >> half)
    if a.dtype.kind == "i":
        upper = upper - where(a < 0, y, np.uint64(0)) - where(b < 0, x, np.uint64(0))
    return upper.view(a.dtype)


def divide(a: Array, b: Array) -> Array:
    """Quotient towards zero; division by zero gives all ones (PTX: machine-specific)."""
    zero = b == 0
    safe = where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
    else:
        u = np.dtype(f"u{a.dtype.itemsize}")
        magnitude = np.abs(a).view(u) // np.abs(safe).view(u)
        quotient = where((a < 0) != (safe < 0), np.negative(magnitude), magnitude).view(a.dtype)
    return where(zero, ~b.dtype.type(0), quotient)


def remainder(a: Array, b: Array) -> Array:
    """a - b * (a / b); the dividend where b is zero (PTX: machine-specific)."""
    zero = b == 0
    quotient = divide(a, where(zero, b.dtype.type(1), b))
    return where(zero, a, a - quotient * b)


def shift_left(a: Array, b: Array) -> Array:
    """a << b, zero from the register's width on."""
    bits = a.dtype.itemsize * 8
    inside = b < bits
    return where(inside, a << where(inside, b, 0).astype(a.dtype), a.dtype.type(0))


def shift_right(a: Array, b: Array) -> Array:
    """a >> b, filling with the sign where a is signed."""
    bits = a.dtype.itemsize * 8
    if a.dtype.kind == "i":
        return a >> np.minimum(b, bits - 1).astype(a.dtype)
    inside = b < bits
    return where(inside, a >> where(inside, b, 0).astype(a.dtype), a.dtype.type(0))


def population(a: Array) -> Array:
    return np.bitwise_count(a).astype(np.uint32)


def leading_zeros(a: Array) -> Array:
    wide = a.astype(np.uint64)
    upper, lower = wide >> np.uint64(32), wide & np.uint64(0xFFFFFFFF)
    above = np.frexp(upper.astype(np.float64))[1].astype(np.int64) - 1
    below = np.frexp(lower.astype(np.float64))[1].astype(np.int64) - 1
    highest = where(upper != 0, above + 32, below)
    return (a.dtype.itemsize * 8 - 1 - highest).astype(np.uint32)


def reverse_bits(a: Array) -> Array:
    one = a.dtype.type
    masks = {1: 0x5555555555555555, 2: 0x3333333333333333, 4: 0x0F0F0F0F0F0F0F0F}
    for shift, pattern in masks.items():
        part = one(pattern & ((1 << (a.dtype.itemsize * 8)) - 1))
        a = ((a >> one(shift)) & part) | ((a & part) << one(shift))
    return a.byteswap()


def find_nth(mask: Array, base: Array, offset: Array) -> Array:
    """fns: position of the offset-th set bit from base on (downwards where negative)."""
    result = np.full(mask.shape, 0xFFFFFFFF, np.uint32)
    mask, base, offset = np.broadcast_arrays(mask, base, offset.view(np.int32))
    for at in np.ndindex(mask.shape):
        m, b, n = int(mask[at]), int(base[at]), int(offset[at])
        if n == 0:
            if m >> b & 1:
                result[at] = b
            continue
        step, position = (1, b) if n > 0 else (-1, b)
        left = abs(n)
        while 0 <= position < 32:
            left -= m >> position & 1
            if left == 0:
                result[at] = position
                break
            position += step
    return result


def ones(n: Array) -> U64:
    """The lowest n bits of 64."""
    full = n >= 64
    bits = (np.uint64(1) << where(full, 0, n).astype(np.uint64)) - np.uint64(1)
    return where(full, ~np.uint64(0), bits)


def permute(a: Array, b: Array, c: Array) -> Array:
    """prmt: four bytes of b:a by the nibbles of c, whose highest bit spreads the byte's sign."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    result = np.zeros(both.shape, np.uint32)
    for at in range(4):
        selector = (c >> np.uint32(4 * at)) & np.uint32(15)
        byte = (both >> (selector & 7).astype(np.uint64) * np.uint64(8)) & np.uint64(0xFF)
        sign = (byte >> np.uint64(7)) * np.uint64(0xFF)
        byte = where(selector & 8, sign, byte)
        result |= byte.astype(np.uint32) << np.uint32(8 * at)
    return result


#: Truth tables as what is quick: the sum of products below takes up to 24 operations.
_TABLES: dict[int, Callable[[Array, Array, Array], Array]] = {
    0x00: lambda a, b, c: np.zeros_like(a),
    0x96: lambda a, b, c: a ^ b ^ c,
    0x80: lambda a, b, c: a & b & c,
    0xFE: lambda a, b, c: a | b | c,
    0xC0: lambda a, b, c: a & b,
    0x3C: lambda a, b, c: a ^ b,
    0xFC: lambda a, b, c: a | b,
    0xEA: lambda a, b, c: (a & b) | c,
    0xF8: lambda a, b, c: a | (b & c),
    0x78: lambda a, b, c: a ^ (b & c),
    0x6A: lambda a, b, c: (a & b) ^ c,
    0xE8: lambda a, b, c: (a & b) | (a & c) | (b & c),
    0xCA: lambda a, b, c: (a & b) | (~a & c),
    0x0F: lambda a, b, c: ~a,
    0xFF: lambda a, b, c: ~np.zeros_like(a),
}


def look_up(a: Array, b: Array, c: Array, table: int) -> Array:
    """lop3: the truth table over a = 0xF0, b = 0xCC, c = 0xAA."""
    table &= 0xFF
    if table in _TABLES:
        return _TABLES[table](a, b, c)
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), a.dtype)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def _dot(a: Array, b: Array, c: Array, width: int, first: int) -> Array:
    """c and the products of the parts of a, of `width` bits, and the bytes of b from `first` on."""

    def fields(x: Array, bits: int) -> list[Array]:
        kind, u = np.dtype(f"{x.dtype.kind}{bits // 8}"), np.dtype(f"u{bits // 8}")
        bits_of = x.view(np.uint32)
        return [(bits_of >> np.uint32(bits * i)).astype(u).view(kind) for i in range(32 // bits)]

    total = c.astype(np.int64)
    for x, y in zip(fields(a, width), fields(b, 8)[first:], strict=False):
        total = total + x.astype(np.int64) * y
    return total.astype(np.uint32)


def dot4(a: Array, b: Array, c: Array) -> Array:
    return _dot(a, b, c, 8, 0)


def dot2(a: Array, b: Array, c: Array) -> Array:
    return _dot(a, b, c, 16, 0)


def dot2_high(a: Array, b: Array, c: Array) -> Array:
    return _dot(a, b, c, 16, 2)


class NamedFunction(NamedTuple):
    """A function: on arrays, and the type of its result ("" as its first operand's).

    `moves`: every bit of the result is one of the operand; `counts`: what it gives is a number,
    whatever it is given.
    """

    arrays: Callable[..., Array]
    type: str = ""
    moves: bool = False
    counts: bool = False


FUNCTIONS: dict[str, NamedFunction] = {
    "high": NamedFunction(high),
    "popc": NamedFunction(population, "u32", counts=True),
    "clz": NamedFunction(leading_zeros, "u32", counts=True),
    "brev": NamedFunction(reverse_bits, moves=True),
    "fns": NamedFunction(find_nth, "u32", counts=True),
    "ones": NamedFunction(ones, "u64"),
    "permute": NamedFunction(permute, "u32"),
    "look_up": NamedFunction(look_up, "u32"),
    "dot4": NamedFunction(dot4, "u32"),
    "dot2": NamedFunction(dot2, "u32"),
    "dot2_high": NamedFunction(dot2_high, "u32"),
}
