"""mma and wgmma by numba, register file to register file, where the C of `source` was not built.

`tensor_cores/numba_core.py` calls what `entries` gives. Matrices lie as in C (source/mma.h), but C
and D do as `[product][n / 8][m][8]`; `numbers` holds what `NUMBERS` names.
"""

# numba has no types, and its intrinsics have an argument more than their callers give.
# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import inspect
import zlib
from functools import cache
from typing import Any

import numpy as np
from numba import config, float32, float64, int32, int64, njit, uint32, uint64

from fragir.emulator.native import numba_steps, numba_vectors
from fragir.emulator.native.numba_steps import (
    INTEGERS,
    RNE_F16,
    ROWS,
    bits_of,
    chain,
    decode,
    float_of,
    half_code,
    half_value,
    integer_products,
    jit,
)

if config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT is set")

NUMBERS = (
    *("arithmetic", "products", "m", "n", "k", "depth", "d_count", "d_per", "d_bits"),
    *("chunk", "kept", "group", "fraction", "floor", "step", "rounding", "half_addend"),
    *("widens", "narrows", "chained", "clamps"),
    *("kind_a", "shift_a", "mask_a", "sign_a", "kind_b", "shift_b", "mask_b", "sign_b"),
    *("take_a", "take_b", "take_c", "count_a", "count_b", "count_c"),
    *("bits", "transposed_a", "transposed_b", "negate_a", "negate_b"),
)
"""What `numbers` holds, in this order: the fields of `Plan`, `Element` and `Wgmma` of mma.h."""
(
    ARITHMETIC, PRODUCTS, M, N, K, DEPTH, D_COUNT, D_PER, D_BITS,
    CHUNK, KEPT, GROUP, FRACTION, FLOOR, STEP, ROUNDING, HALF_ADDEND,
    WIDENS, NARROWS, CHAINED, CLAMPS,
    KIND_A, SHIFT_A, MASK_A, SIGN_A, KIND_B, SHIFT_B, MASK_B, SIGN_B,
    TAKE_A, TAKE_B, TAKE_C, COUNT_A, COUNT_B, COUNT_C,
    BITS, TRANSPOSED_A, TRANSPOSED_B, NEGATE_A, NEGATE_B,
) = range(len(NUMBERS))  # fmt: skip

EMULATED, INTEGER = 1, 4  # of `arithmetic`: else FUSED


@jit
def _read(file, rows, i, at, count, words):
    """Registers of one instruction, `[count][32]`."""
    for r in range(count):
        row = uint64(rows[r, i])
        for x in range(32):
            words[uint64(r * 32 + x)] = file[row, uint64(at), x]


@jit
def _take(words, word, shift, mask, codes):
    for i in range(word.size):
        codes[i] = uint32(uint32(words[word[i]] >> shift[i]) & mask)


@jit
def _fill(kind, shift, mask, sign, codes, count, at, to, tables):
    """Elements from bits, into `to` from place `at` on; returns what they have (`decode`)."""
    shift, mask, sign = uint32(shift), uint32(mask), int32(sign)
    if shift != uint32(0) or mask != uint32(0xFFFFFFFF):
        for i in range(count):
            codes[i] = uint32(uint32(codes[i] >> shift) & mask)
    if kind != INTEGERS:
        return decode(kind, codes, count, at, to, tables)
    for i in range(count):
        to[1][uint64(at + i)] = int32(int32(int32(codes[i]) ^ sign) - sign)
    return 0


@jit
def _left(numbers, codes, count, at, to, tables):
    return _fill(
        numbers[KIND_A], numbers[SHIFT_A], numbers[MASK_A], numbers[SIGN_A],
        codes, count, at, to, tables,
    )  # fmt: skip


@jit
def _right(numbers, codes, count, at, to, tables):
    return _fill(
        numbers[KIND_B], numbers[SHIFT_B], numbers[MASK_B], numbers[SIGN_B],
        codes, count, at, to, tables,
    )  # fmt: skip


@jit
def _metadata(numbers, e, lane, shift, order, kept):
    """The column of every kept element, from the metadata register of each lane."""
    m, k, depth, chunk, group = (
        numbers[M],
        numbers[K],
        numbers[DEPTH],
        numbers[CHUNK],
        numbers[GROUP],
    )
    chunks = k // chunk
    each = depth // chunks
    found = np.empty(8, np.int32)
    for row in range(m):
        for x in range(chunks):
            place = uint64(row * chunks + x)
            index = int64((e[uint64(lane[place])] >> shift[place]) & uint32(15))
            for g in range(group):
                if numbers[KEPT] == 1:
                    # The nibble spans two columns of 2 bits: the index is bit 1.
                    found[g] = ((index >> 1) & 1) + g
                else:
                    found[g] = (index & 3) * group + g
                    found[group + g] = (index >> 2) * group + g
            for i in range(each):
                to = int64(order[uint64(x * each + i)])
                kept[uint64(row * depth + to)] = x * chunk + found[i]


@jit
def _add(numbers, rows, c, at, one, two):
    """fp8 as two products of f16: C is added to them last."""
    for x in range(rows * 8):
        place = uint64(at + x)
        if numbers[ROUNDING] == RNE_F16:
            c[place] = half_code(float64(float32(half_value(c[place]) + half_value(two[x]))))
            continue
        products = float_of(two[x])
        if not numbers[CHAINED]:
            products = float32(float_of(one[x]) + products)
        found = float32(float_of(c[place]) + products)
        c[place] = uint32(0x7FFFFFFF) if found != found else bits_of(found)


@jit
def _compute(numbers, left, right, base_a, base_b, kept, sparse, c, first, last, state, scratch):
    """D = A B + C of one instance, in `c`, for rows from first to last."""
    m, n, k, depth = numbers[M], numbers[N], numbers[K], numbers[DEPTH]
    how = (numbers[FRACTION], numbers[FLOOR], numbers[STEP], numbers[ROUNDING])
    half_addend, emulated = numbers[HALF_ADDEND] != 0, numbers[ARITHMETIC] == EMULATED
    one, two = scratch[1]
    if numbers[WIDENS]:
        for x in range(c.size):
            c[x] = bits_of(half_value(c[x]))
    blocks = n // 8
    for strip in range(numbers[PRODUCTS] * blocks):
        at_b = base_b + strip * k * 8
        for row in range(first, last, ROWS):
            rows = min(ROWS, last - row)
            at_a = base_a + (strip // blocks * m + row) * depth
            at_c, at_kept = (strip * m + row) * 8, row * depth
            if numbers[ARITHMETIC] == INTEGER:
                integer_products(
                    left, right, kept, sparse, at_a, at_b, at_kept, rows, depth,
                    c, at_c, numbers[CLAMPS] != 0, scratch[0],
                )  # fmt: skip
                continue
            to, at, start, stop = c, at_c, 0, depth
            for part in range(2 if emulated else 1):
                if emulated:
                    to, at, start, stop = two, 0, part * (depth // 2), (part + 1) * (depth // 2)
                    for x in range(rows * 8):
                        one[x] = two[x]
                        two[x] = two[x] if part and numbers[CHAINED] else uint32(0)
                chain(
                    left, right, kept, sparse, at_a, at_b, at_kept, rows, depth, start, stop,
                    to, at, half_addend, how, state, scratch[0],
                )  # fmt: skip
            if emulated:
                _add(numbers, rows, c, at_c, one, two)
    if numbers[NARROWS]:
        for x in range(c.size):
            c[x] = half_code(float64(float_of(c[x])))


@jit
def _put(numbers, c, parts, words):
    """Registers `[count][lanes]` from the codes of D."""
    for i in range(words.size):
        words[i] = c[parts[0, i]]
    for part in range(1, numbers[D_PER]):
        by = uint32(part * numbers[D_BITS])
        for i in range(words.size):
            words[i] = uint32(words[i] | uint32(c[parts[part, i]] << by))


@jit
def _room(count):
    """Elements of one operand: value, exponent, value with Inf and NaN."""
    return np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.float32)


@jit
def _scratch():
    size = ROWS * 8
    words, more = np.empty((2, size), np.int32), np.empty(size, np.float64)
    sums = np.empty((2, size), np.uint32)
    return (words[0], words[1], np.empty(size, np.float32), more), (sums[0], sums[1])


@jit
def _no_specials(operand, state, at, size):
    """Where the other operand has Inf or NaN and this has none: its values count."""
    if state & 1 == 0:
        for x in range(at, at + size):
            operand[2][uint64(x)] = operand[0][uint64(x)]


@jit
def _gather(numbers, left, memory, home, chunk, rows, depth, codes):
    """Bits of an operand in shared memory, in the order of A or B (source/mma_body.h: gather)."""
    bits = numbers[BITS]
    transposed = numbers[TRANSPOSED_A if left else TRANSPOSED_B] != 0
    flip = uint32(numbers[NEGATE_A if left else NEGATE_B])
    each = 128 // bits
    outer, inner = (depth, rows) if transposed else (rows, depth)
    for o in range(outer):
        for x in range(inner // each):
            at = home + int64(chunk[uint64(o * (inner // each) + x)])
            for i in range(each):
                mn, k = (x * each + i, o) if transposed else (o, x * each + i)
                byte = at + (i * bits >> 3)
                code = uint32(memory[uint64(byte)])
                if bits >= 16:
                    code = uint32(code | uint32(uint32(memory[uint64(byte + 1)]) << uint32(8)))
                if bits == 32:
                    code = uint32(code | uint32(uint32(memory[uint64(byte + 2)]) << uint32(16)))
                    code = uint32(code | uint32(uint32(memory[uint64(byte + 3)]) << uint32(24)))
                to = mn * depth + k if left else ((mn >> 3) * depth + k) * 8 + (mn & 7)
                codes[uint64(to)] = uint32(code ^ flip)


@jit
def _read_group(file, rows, warp, count, words):
    """Registers of a warpgroup, `[count][128]`."""
    for r in range(count):
        row = uint64(rows[r, 0])
        for x in range(128):
            words[uint64(r * 128 + x)] = file[row, uint64(warp + (x >> 5)), uint64(x & 31)]


def _entries(stamp: int) -> tuple[Any, Any]:
    """Functions that Python calls. `stamp` is part of what they are found by on disk."""

    def mma(
        numbers, files, rows, slots, by_place, warps, e, part, words_of, shifts, parts, meta, tables
    ):
        """Instructions part[2]..part[3] of the warps part[0]..part[1] of the selection."""
        if not stamp:
            return
        d, a, b, c = files
        products, m, n = numbers[PRODUCTS], numbers[M], numbers[N]
        size_a, size_b = products * m * numbers[DEPTH], products * n * numbers[K]
        sparse = numbers[CHUNK] != 0
        slots_a, slots_b = slots[0][slots[0].size - 1], slots[1][slots[1].size - 1]
        left, right = _room(size_a * slots_a), _room(size_b * slots_b)
        state_a, state_b = np.empty(slots_a, np.int64), np.empty(slots_b, np.int64)
        codes = np.empty(max(size_a, size_b), np.uint32)
        found = np.empty(products * m * n, np.uint32)
        kept = np.empty(m * numbers[DEPTH], np.int32)
        count_a, count_b, count_c = numbers[COUNT_A], numbers[COUNT_B], numbers[COUNT_C]
        words = np.empty(32 * max(count_a, count_b, count_c), np.uint32)
        result = np.empty(32 * numbers[D_COUNT], np.uint32)
        scratch = _scratch()
        for w in range(part[0], part[1]):
            warp = warps[w]
            for x in range(state_a.size):
                state_a[x] = -1
            for y in range(state_b.size):
                state_b[y] = -1
            if sparse:
                _metadata(numbers, e[w], meta[0], meta[1], meta[2], kept)
            for i in range(part[2], part[3]):
                x, y = int64(slots[0][i]), int64(slots[1][i])
                if state_a[x] < 0:
                    _read(a, rows[1], i, w if by_place[1] else warp, count_a, words)
                    _take(words, words_of[0], shifts[0], uint32(numbers[TAKE_A]), codes)
                    state_a[x] = _left(numbers, codes, size_a, x * size_a, left, tables[0])
                if state_b[y] < 0:
                    _read(b, rows[2], i, w if by_place[2] else warp, count_b, words)
                    _take(words, words_of[1], shifts[1], uint32(numbers[TAKE_B]), codes)
                    state_b[y] = _right(numbers, codes, size_b, y * size_b, right, tables[1])
                _read(c, rows[3], i, w if by_place[3] else warp, count_c, words)
                _take(words, words_of[2], shifts[2], uint32(numbers[TAKE_C]), found)
                state = state_a[x] | state_b[y]
                if state & 1:
                    _no_specials(left, state_a[x], x * size_a, size_a)
                    _no_specials(right, state_b[y], y * size_b, size_b)
                _compute(
                    numbers, left, right, x * size_a, y * size_b, kept, sparse, found,
                    0, m, state, scratch,
                )  # fmt: skip
                _put(numbers, found, parts, result)
                at = uint64(w if by_place[0] else warp)
                for r in range(numbers[D_COUNT]):
                    row = uint64(rows[0][r, i])
                    for lane in range(32):
                        d[row, at, lane] = result[uint64(r * 32 + lane)]

    def wgmma(
        numbers,
        files,
        rows,
        from_registers,
        warps,
        e,
        shared,
        home,
        chunks,
        accumulates,
        part,
        words_of,
        shifts,
        parts,
        meta,
        tables,
    ):
        """Warpgroups part[0]..part[1], of each the warps part[2]..part[3] (16 rows each)."""
        if not stamp:
            return
        d, a = files
        n, k, depth = numbers[N], numbers[K], numbers[DEPTH]
        size_a, size_b = 64 * depth, n * k
        sparse = numbers[CHUNK] != 0
        left, right = _room(size_a), _room(size_b)
        codes = np.empty(max(size_a, size_b), np.uint32)
        found = np.empty(64 * n, np.uint32)
        kept = np.empty(size_a, np.int32)
        words = np.empty(128 * max(numbers[COUNT_A], numbers[D_COUNT]), np.uint32)
        result = np.empty(128 * numbers[D_COUNT], np.uint32)
        scratch = _scratch()
        for g in range(part[0], part[1]):
            warp = warps[g]
            if sparse:
                _metadata(numbers, e[g], meta[0], meta[1], meta[2], kept)
            if from_registers:
                _read_group(a, rows[1], warp, numbers[COUNT_A], words)
                _take(words, words_of[0], shifts[0], uint32(numbers[TAKE_A]), codes)
                flip = uint32(numbers[NEGATE_A])
                for i in range(size_a):
                    codes[i] = uint32(codes[i] ^ flip)
            else:
                _gather(numbers, True, shared, home[g], chunks[0][g], 64, depth, codes)
            state_a = _left(numbers, codes, size_a, 0, left, tables[0])
            _gather(numbers, False, shared, home[g], chunks[1][g], n, k, codes)
            state_b = _right(numbers, codes, size_b, 0, right, tables[1])
            if (state_a | state_b) & 1:
                _no_specials(left, state_a, 0, size_a)
                _no_specials(right, state_b, 0, size_b)
            if accumulates[g]:
                _read_group(d, rows[0], warp, numbers[D_COUNT], words)
                _take(words, words_of[1], shifts[1], uint32(numbers[TAKE_C]), found)
            else:
                for x in range(found.size):
                    found[x] = uint32(0)
            _compute(
                numbers, left, right, 0, 0, kept, sparse, found, 16 * part[2], 16 * part[3],
                state_a | state_b, scratch,
            )  # fmt: skip
            _put(numbers, found, parts, result)
            for r in range(numbers[D_COUNT]):
                row = uint64(rows[0][r, 0])
                for x in range(32 * part[2], 32 * part[3]):
                    d[row, uint64(warp + (x >> 5)), uint64(x & 31)] = result[uint64(r * 128 + x)]

    return _kept(mma), _kept(wgmma)


def _kept(function: Any) -> Any:
    """Compiled once on a machine, where numba finds a directory that it can write."""
    try:
        return njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # "no locator available"
        return jit(function)


@cache
def entries() -> tuple[Any, Any]:
    """`mma` and `wgmma`. numba looks at one file for changes: all three count here."""
    text = "".join(inspect.getsource(m) for m in (numba_steps, numba_vectors))
    return _entries(zlib.crc32(text.encode()) | 1)


def cache_path() -> str | None:
    """The directory where numba keeps them; None where it finds none that it can write."""
    mma, _ = entries()
    path: str | None = mma.stats.cache_path
    return path
