"""One step of the tensor cores in numba: `chain` is the primitive of `tensor_cores/fused.py`.

The two roads of source/mma_fused.h: for finite operands, up to 16 rows of 8 columns at once; and
`_exact` for one output whatever its operands are.

Integers are 64 bits wide in numba unless each operation is cast; an index that is cast to `uint64`
is not compared with zero. What a compiled function calls must be a name of its module, or numba
compiles it anew in each process. Nothing here starts threads: a process that does may not fork.
"""

# numba has no types, and its intrinsics have an argument more than their callers give.
# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

from numba import float32, float64, int32, int64, njit, uint32, uint64

from fragir.emulator.native.numba_vectors import (
    bits_of,
    bits_of_double,
    double_of,
    float_of,
    integers,
    integers_sparse,
    leading,
    leading_sparse,
    terms,
    terms_sparse,
    trunc,
)

NOTHING = -1000
SPECIAL, EXTREME = 1, 2  # what an operand has: Inf or NaN; products that float does not hold
F16, BF16, TF32, TABLE, INTEGERS = 0, 1, 2, 3, 5
RZ_F32, RZ_E8M13, RNE_F16 = 0, 1, 2
ROWS = 16


def jit(function: Any) -> Any:
    """A function for others that numba compiles; it runs without the interpreter's lock."""
    return njit(nogil=True, error_model="numpy")(function)


# -- numbers ---------------------------------------------------------------------------------------


@jit
def power(exponent):
    """2.0 ** exponent, where that is normal."""
    return double_of(int64(int64(exponent) + 1023) << 52)


@jit
def half_value(code):
    size = uint32(code & uint32(0x7FFF))
    sign = uint32((code & uint32(0x8000)) << uint32(16))
    if size >= uint32(0x7C00):
        bits = uint32(0x7F800000) | sign | uint32((size & uint32(0x3FF)) << uint32(13))
        return float_of(uint32(bits))
    moved = uint32(size << uint32(13)) | sign
    return float32(float_of(uint32(moved)) * float32(2.0**112))


@jit
def half_code(value):
    """To nearest even; NaN is 0x7FFF."""
    bits = bits_of_double(value)
    sign = uint32((bits >> 48) & 0x8000)
    size = abs(value)
    if value != value:
        return uint32(0x7FFF)
    if size >= 65520.0:
        return uint32(sign | uint32(0x7C00))
    if size < 2.0**-14:
        return uint32(sign | uint32((size * 2.0**24 + 2.0**52) - 2.0**52))
    bits &= 0x7FFFFFFFFFFFFFFF
    bits += (1 << 41) - 1 + ((bits >> 42) & 1)
    return uint32(sign | uint32((bits >> 42) - ((1023 - 15) << 10)))


@jit
def rounded(value, rounding):
    """A finite sum becomes the result; a zero result is +0."""
    if rounding == RNE_F16:
        code = half_code(value)
        return uint32(0) if code == uint32(0x8000) else code
    if abs(value) < 2.0**-126:
        least = 2.0**149 if rounding == RZ_F32 else 2.0**139
        return bits_of(float32(trunc(value * least) / least + 0.0))
    cut = int64(-1) << (29 if rounding == RZ_F32 else 39)
    return bits_of(float32(double_of(bits_of_double(value) & cut)))


# -- from registers to elements --------------------------------------------------------------------


@jit
def decode(kind, codes, count, at, to, tables):
    """Elements from bits; returns what they have of SPECIAL and EXTREME."""
    value, exponent, special = to
    top, least, most = uint32(0), int32(0), int32(0)
    if kind == TABLE:
        found = 0
        for i in range(count):
            code = uint64(codes[i])
            value[uint64(at + i)] = tables[0][code]
            exponent[uint64(at + i)] = int32(tables[1][code])
            special[uint64(at + i)] = tables[2][code]
            if not abs(special[uint64(at + i)]) <= float32(2.0**100):
                found = SPECIAL
        return found
    if kind == F16:
        for i in range(count):
            code = codes[i]
            size = uint32(code & uint32(0x7FFF))
            top = max(top, size)
            moved = uint32((size << uint32(13)) | ((code & uint32(0x8000)) << uint32(16)))
            value[uint64(at + i)] = float_of(moved) * float32(2.0**112)
            own = int32(max(int32(size >> uint32(10)), int32(1)) - int32(15))
            exponent[uint64(at + i)] = int32(NOTHING) if size == uint32(0) else own
        if top < uint32(0x7C00):
            return 0
        for i in range(count):
            special[uint64(at + i)] = half_value(codes[i])
            if codes[i] & uint32(0x7FFF) >= uint32(0x7C00):
                value[uint64(at + i)] = float32(0.0)
                exponent[uint64(at + i)] = int32(NOTHING)
        return SPECIAL
    for i in range(count):
        if kind == BF16:
            bits = uint32(codes[i] << uint32(16))
        else:
            bits = uint32(codes[i] & uint32(0xFFFFE000))
        size = uint32(bits & uint32(0x7FFFFFFF))
        top = max(top, size)
        value[uint64(at + i)] = float_of(bits)
        own = int32(max(int32(size >> uint32(23)), int32(1)) - int32(127))
        exponent[uint64(at + i)] = int32(NOTHING) if size == uint32(0) else own
        own = int32(0) if size == uint32(0) else own
        least, most = min(least, own), max(most, own)
    found = EXTREME if least < -50 or most > 60 else 0
    if top < uint32(0x7F800000):
        return found
    for i in range(count):
        special[uint64(at + i)] = value[uint64(at + i)]
        if bits_of(value[uint64(at + i)]) & uint32(0x7FFFFFFF) >= uint32(0x7F800000):
            value[uint64(at + i)] = float32(0.0)
            exponent[uint64(at + i)] = int32(NOTHING)
    return found | SPECIAL


# -- steps -----------------------------------------------------------------------------------------


@jit
def _exact(
    left, right, kept, sparse, at_a, at_b, at_kept, first, last, j, c, half_addend, how, specials
):
    """One output of one step. `how`: fraction, floor, step, rounding."""
    fraction, floor, _, rounding = how
    half = rounding == RNE_F16
    if half:
        size = int64(c) & 0x7FFF
        addend = float64(half_value(c))
        own = max(size >> 10, 1) - 15
    else:
        size = int64(c) & 0x7FFFFFFF
        addend = float64(float_of(c))
        own = max(size >> 23, 1) - 127
        if half_addend:
            own = max(own, -14)
    finite = abs(addend) <= 2.0**200
    if not finite or specials:
        total = 0.0 if finite else addend
        if specials:
            for k in range(first, last):
                row = int64(kept[uint64(at_kept + k)]) if sparse else k
                b = right[2][uint64(at_b + row * 8 + j)]
                total += float64(left[2][uint64(at_a + k)]) * float64(b)
        if total != total:
            return uint32(0x7FFF) if half else uint32(0x7FFFFFFF)
        if abs(total) > 2.0**1000:
            if half:
                return uint32(0xFC00) if total < 0 else uint32(0x7C00)
            return uint32(0xFF800000) if total < 0 else uint32(0x7F800000)
    highest = max(own, floor) if size != 0 else floor
    for k in range(first, last):
        row = int64(kept[uint64(at_kept + k)]) if sparse else k
        one = int64(left[1][uint64(at_a + k)]) + int64(right[1][uint64(at_b + row * 8 + j)])
        highest = max(highest, one)
    scale = power(fraction - highest)
    total = 0.0
    for k in range(first, last):
        row = int64(kept[uint64(at_kept + k)]) if sparse else k
        a = float64(left[0][uint64(at_a + k)])
        total += trunc(a * float64(right[0][uint64(at_b + row * 8 + j)]) * scale)
    if finite:
        total += trunc(addend * scale)
    return rounded(total * power(highest - fraction), rounding)


@jit
def _own_f32(c, at, size, floor, least, out):
    """Exponents of addends of f32; returns the largest magnitude."""
    top, floor, least = uint32(0), int32(floor), int32(least)
    for x in range(size):
        magnitude = uint32(c[uint64(at + x)] & uint32(0x7FFFFFFF))
        top = max(top, magnitude)
        own = int32(max(int32(magnitude >> uint32(23)), int32(1)) - int32(127))
        own = floor if magnitude == uint32(0) else max(own, least)
        out[x] = max(own, floor)
    return top


@jit
def _own_f16(c, at, size, floor, out):
    top, floor = uint32(0), int32(floor)
    for x in range(size):
        magnitude = uint32(c[uint64(at + x)] & uint32(0x7FFF))
        top = max(top, magnitude)
        own = int32(max(int32(magnitude >> uint32(10)), int32(1)) - int32(15))
        own = floor if magnitude == uint32(0) else own
        out[x] = max(own, floor)
    return top


@jit
def _scales(size, exponents, fraction, out):
    """2^(F-E); where E is below -100 every product is zero. Returns the least exponent."""
    low = int32(1000)
    for x in range(size):
        low = min(low, exponents[x])
        by = int32(int32(fraction + 127) - max(exponents[x], int32(-100)))
        out[x] = float_of(uint32(uint32(by) << uint32(23)))
    return low


@jit
def _end_f32(c, at, size, exponents, total, more, fraction, cut):
    for x in range(size):
        own = int64(exponents[x])
        addend = float64(float_of(c[uint64(at + x)])) * power(fraction - own)
        value = (float64(total[x]) + more[x] + float64(int32(addend))) * power(own - fraction)
        c[uint64(at + x)] = bits_of(float32(double_of(bits_of_double(value) & cut)))


@jit
def _end_tiny(c, at, size, exponents, total, more, fraction, rounding):
    """The same where results may be subnormal."""
    for x in range(size):
        own = int64(exponents[x])
        addend = float64(float_of(c[uint64(at + x)])) * power(fraction - own)
        value = (float64(total[x]) + more[x] + float64(int32(addend))) * power(own - fraction)
        c[uint64(at + x)] = rounded(value, rounding)


@jit
def _end_f16(c, at, size, exponents, total, more, fraction):
    for x in range(size):
        own = int64(exponents[x])
        code = uint32(c[uint64(at + x)])
        moved = uint32((code & uint32(0x7FFF)) << uint32(13))
        moved = uint32(moved | uint32((code & uint32(0x8000)) << uint32(16)))
        addend = float64(float_of(moved) * float32(2.0**112)) * power(fraction - own)
        value = (float64(total[x]) + more[x] + float64(int32(addend))) * power(own - fraction)
        magnitude = abs(value)
        bits = bits_of_double(magnitude)
        normal = int32(((bits + (1 << 41) - 1 + ((bits >> 42) & 1)) >> 42) - ((1023 - 15) << 10))
        small = int32((magnitude * 2.0**24 + 2.0**52) - 2.0**52)
        found = small if magnitude < 2.0**-14 else normal
        found = int32(0x7C00) if magnitude >= 65520.0 else found
        sign = int32(0x8000) if value < 0.0 and found != int32(0) else int32(0)
        c[uint64(at + x)] = uint32(found | sign)


@jit
def chain(
    left, right, kept, sparse, at_a, at_b, at_kept, rows, depth, first, last,
    c, at_c, half_addend, how, state, scratch,
):  # fmt: skip
    """c += a b for k from first to last. `state`: what A or B have of SPECIAL and EXTREME."""
    fraction, floor, step, rounding = how
    exponents, total, scale, more = scratch
    size = rows * 8
    run = 1 << (29 - fraction) if fraction < 29 else 1  # terms that fit in 32 bits
    half = rounding == RNE_F16
    for k0 in range(first, last, step):
        k1 = min(k0 + step, last)
        widened = half_addend and k0 == first
        exact = state != 0
        if half:
            top = _own_f16(c, at_c, size, floor, exponents)
            exact = exact or top >= uint32(0x7C00)
        else:
            top = _own_f32(c, at_c, size, floor, -14 if widened else NOTHING, exponents)
            exact = exact or top >= uint32(0x7F800000)
        if exact:
            for x in range(size):
                of, place = (x >> 3) * depth, uint64(at_c + x)
                c[place] = _exact(
                    left, right, kept, sparse, at_a + of, at_b, at_kept + of,
                    k0, k1, x & 7, c[place], widened, how, (state & SPECIAL) != 0,
                )  # fmt: skip
            continue
        for m in range(rows):
            a, of = at_a + m * depth, at_kept + m * depth
            if sparse:
                leading_sparse(exponents, m * 8, left[1], a, right[1], at_b, kept, of, k0, k1)
            else:
                leading(exponents, m * 8, left[1], a, right[1], at_b, kept, of, k0, k1)
        low = _scales(size, exponents, fraction, scale)
        for x in range(size):
            more[x] = 0.0
            total[x] = 0
        for start in range(k0, k1, run):
            if start > k0:
                for x in range(size):
                    more[x] += total[x]
                    total[x] = 0
            stop = min(start + run, k1)
            for m in range(rows):
                a, of, at = at_a + m * depth, at_kept + m * depth, m * 8
                if sparse:
                    terms_sparse(
                        total, at, left[0], a, right[0], at_b, kept, of, start, stop, scale
                    )
                else:
                    terms(total, at, left[0], a, right[0], at_b, kept, of, start, stop, scale)
        if half:
            _end_f16(c, at_c, size, exponents, total, more, fraction)
        elif low < fraction - 126:
            _end_tiny(c, at_c, size, exponents, total, more, fraction, rounding)
        else:
            cut = int64(-1) << (39 if rounding == RZ_E8M13 else 29)
            _end_f32(c, at_c, size, exponents, total, more, fraction, cut)


@jit
def integer_products(
    left, right, kept, sparse, at_a, at_b, at_kept, rows, depth, c, at_c, clamps, scratch
):
    """c += a b in 32 bits, wrapping or clamped."""
    total = scratch[1]
    for x in range(rows * 8):
        total[x] = 0
    for m in range(rows):
        a, of = at_a + m * depth, at_kept + m * depth
        if sparse:
            integers_sparse(total, m * 8, left[1], a, right[1], at_b, kept, of, 0, depth)
        else:
            integers(total, m * 8, left[1], a, right[1], at_b, kept, of, 0, depth)
    for x in range(rows * 8):
        found = int64(int32(c[uint64(at_c + x)])) + int64(total[x])
        if clamps:
            found = min(max(found, -(1 << 31)), (1 << 31) - 1)
        c[uint64(at_c + x)] = uint32(found)
