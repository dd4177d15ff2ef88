"""Shifts, bit fields, counts and byte permutations on arrays (PTX ISA 9.2, 9.7.1 and 9.7.8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fragir.emulator.instructions.alu import Function, of3
from fragir.emulator.numbers.types import dtype_of, where, width_of

Array = Any


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


def funnel(right: bool, wrap: bool) -> Function:
    """shf: the 64-bit value b:a shifted by c (mod 32, or clamped to 32); one half of it."""

    def function(a: Array, b: Array, c: Array) -> Array:
        n = (c & 31 if wrap else np.minimum(c, 32)).astype(np.uint64)
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        if right:
            return (both >> n).astype(np.uint32)
        return ((both << n) >> np.uint64(32)).astype(np.uint32)

    return function


def population(a: Array) -> Array:
    return np.bitwise_count(a).astype(np.uint32)


def highest_bit(a: Array) -> Array:
    """Position of the most significant one bit, -1 where there is none (int64)."""
    a = a.astype(np.uint64)
    upper, lower = a >> np.uint64(32), a & np.uint64(0xFFFFFFFF)
    high = np.frexp(upper.astype(np.float64))[1].astype(np.int64) - 1
    low = np.frexp(lower.astype(np.float64))[1].astype(np.int64) - 1
    return where(upper != 0, high + 32, low)


def leading_zeros(a: Array) -> Array:
    return (a.dtype.itemsize * 8 - 1 - highest_bit(a)).astype(np.uint32)


def reverse_bits(a: Array) -> Array:
    one = a.dtype.type
    masks = {1: 0x5555555555555555, 2: 0x3333333333333333, 4: 0x0F0F0F0F0F0F0F0F}
    for shift, pattern in masks.items():
        part = one(pattern & ((1 << (a.dtype.itemsize * 8)) - 1))
        a = ((a >> one(shift)) & part) | ((a & part) << one(shift))
    return a.byteswap()


def find_bit(kind: str, amount: bool) -> Function:
    """bfind: the highest bit that is not the sign; 0xffffffff where there is none."""
    width = width_of(kind)

    def function(a: Array) -> Array:
        u = a.view(np.dtype(f"u{a.dtype.itemsize}"))
        if kind[0] == "s":
            u = where(a < 0, ~u, u)
        found = highest_bit(u)
        if amount:
            found = where(found >= 0, width - 1 - found, -1)
        return found.astype(np.uint32)

    return function


def find_nth(mask: Array, base: Array, offset: Array) -> Array:
    """fns: position of the offset-th set bit from base on (downwards where negative)."""
    result = np.full(mask.shape, 0xFFFFFFFF, np.uint32)
    mask, base, offset = np.broadcast_arrays(mask, base, offset)
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


def extract(kind: str) -> Function:
    """bfe: c bits of a from position b; sign-extended for s types."""
    width = width_of(kind)

    def function(a: Array, b: Array, c: Array) -> Array:
        position = (b & 0xFF).astype(np.int64)
        length = (c & 0xFF).astype(np.int64)
        u = a.astype(np.dtype(f"{kind[0].replace('s', 'i')}8"))
        bits = u.view(np.uint64) if kind[0] == "u" else u.view(np.int64)
        inside = position < width
        shifted = where(
            inside,
            bits >> np.minimum(position, 63).astype(bits.dtype),
            bits >> bits.dtype.type(63) if kind[0] == "s" else bits.dtype.type(0),
        ).view(np.uint64)
        full = length >= 64
        ones = (np.uint64(1) << where(full, 0, length).astype(np.uint64)) - np.uint64(1)
        ones = where(full, ~np.uint64(0), ones)
        result = shifted & ones
        if kind[0] == "s":
            # The sign bit is the field's last, or the register's last where the field sticks out.
            at = np.minimum(position + length - 1, width - 1)
            sign = (u.view(np.int64) >> np.clip(at, 0, 63)) & 1
            extended = where(sign == 1, result | ~ones, result)
            result = where(length == 0, np.uint64(0), extended)
        return result.astype(np.dtype(f"u{width // 8}")).view(dtype_of(kind))

    return function


def insert(a: Array, b: Array, c: Array, d: Array) -> Array:
    """bfi: d bits of a put into b at position c."""
    kind = a.dtype.type
    width = a.dtype.itemsize * 8
    position = np.minimum((c & 0xFF).astype(np.int64), 64)
    length = np.minimum((d & 0xFF).astype(np.int64), 64)
    ones = where(
        length >= 64,
        ~np.uint64(0),
        (np.uint64(1) << (length & 63).astype(np.uint64)) - np.uint64(1),
    )
    inside = position < width
    shift = where(inside, position, 0).astype(np.uint64)
    field = where(inside, ones << shift, np.uint64(0))
    moved = where(inside, a.astype(np.uint64) << shift, np.uint64(0))
    return ((b.astype(np.uint64) & ~field) | (moved & field)).astype(kind)


def bit_mask(wrap: bool) -> Function:
    """bmsk: b ones from position a on."""

    def function(a: Array, b: Array) -> Array:
        start = (a & 31 if wrap else np.minimum(a, 32)).astype(np.uint64)
        length = (b & 31 if wrap else np.minimum(b, 32)).astype(np.uint64)
        ones = (np.uint64(1) << length) - np.uint64(1)
        return (ones << start).astype(np.uint32)

    return function


def extend(signed: bool, wrap: bool) -> Function:
    """szext: sign- or zero-extend the b-bit number in a."""

    def function(a: Array, b: Array) -> Array:
        length = (b & 31 if wrap else np.minimum(b, 32)).astype(np.int64)
        u = a.view(np.uint32).astype(np.int64)
        low = u & ((np.int64(1) << length) - 1)
        if signed:
            sign = (low >> np.maximum(length - 1, 0)) & (length > 0)
            low = low - (sign << length)
        return low.astype(np.uint32).view(a.dtype)

    return function


def look_up(table: int) -> Function:
    """lop3 with an immediate truth table, as the cheapest sum of products."""
    quick: dict[int, Function] = {
        0x00: of3(lambda a, b, c: np.zeros_like(a)),
        0x96: of3(lambda a, b, c: a ^ b ^ c),
        0x80: of3(lambda a, b, c: a & b & c),
        0xFE: of3(lambda a, b, c: a | b | c),
        0xC0: of3(lambda a, b, c: a & b),
        0x3C: of3(lambda a, b, c: a ^ b),
        0xFC: of3(lambda a, b, c: a | b),
        0xEA: of3(lambda a, b, c: (a & b) | c),
        0xF8: of3(lambda a, b, c: a | (b & c)),
        0x78: of3(lambda a, b, c: a ^ (b & c)),
        0x6A: of3(lambda a, b, c: (a & b) ^ c),
        0xE8: of3(lambda a, b, c: (a & b) | (a & c) | (b & c)),
        0xCA: of3(lambda a, b, c: (a & b) | (~a & c)),
        0x0F: of3(lambda a, b, c: ~a),
        0xFF: of3(lambda a, b, c: ~np.zeros_like(a)),
    }
    if table in quick:
        return quick[table]

    def function(a: Array, b: Array, c: Array) -> Array:
        result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), a.dtype)
        for row in range(8):
            if table >> row & 1:
                result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return result

    return function


#: Mode of prmt -> which bytes of b:a the result has, lowest first, by the low bits of c.
PERMUTATIONS: dict[str, list[list[int]]] = {
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[i] * 4 for i in range(4)],
    "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}


def permute(mode: str | None) -> Function:
    """prmt: four bytes chosen from b:a by the nibbles of c, or by a mode and c's low bits."""

    def pick(a: Array, b: Array, selectors: list[Array]) -> Array:
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        result = np.zeros(both.shape, np.uint32)
        for at, selector in enumerate(selectors):
            byte = (both >> (selector & 7).astype(np.uint64) * np.uint64(8)) & np.uint64(0xFF)
            sign = (byte >> np.uint64(7)) * np.uint64(0xFF)
            byte = where(selector & 8, sign, byte)
            result |= byte.astype(np.uint32) << np.uint32(8 * at)
        return result

    def general(a: Array, b: Array, c: Array) -> Array:
        return pick(a, b, [(c >> np.uint32(4 * at)) & np.uint32(15) for at in range(4)])

    if mode is None:
        return general
    table = np.array(PERMUTATIONS[mode], np.uint32)

    def by_mode(a: Array, b: Array, c: Array) -> Array:
        chosen = table[c & 3]
        return pick(a, b, [chosen[..., at] for at in range(4)])

    return by_mode


def dot(a_signed: bool, b_signed: bool, parts: int, high: bool = False) -> Function:
    """dp4a (parts 4) and dp2a (parts 2, with the low or high half of b)."""

    def fields(x: Array, bits: int, signed: bool) -> list[Array]:
        kind = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
        return [
            (x.view(np.uint32) >> np.uint32(bits * i)).astype(np.dtype(f"u{bits // 8}")).view(kind)
            for i in range(32 // bits)
        ]

    def function(a: Array, b: Array, c: Array) -> Array:
        left = fields(a, 8 if parts == 4 else 16, a_signed)
        right = fields(b, 8, b_signed)
        if parts == 2:
            right = right[2:] if high else right[:2]
        total = c.astype(np.int64)
        for x, y in zip(left, right, strict=True):
            total = total + x.astype(np.int64) * y
        return total.astype(np.uint32).view(c.dtype)

    return function
