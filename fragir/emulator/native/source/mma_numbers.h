/* Numbers: bits to values and back, exactly as numbers/ieee.py and tensor_cores/elements.py. */
#ifndef FRAGIR_MMA_NUMBERS_H
#define FRAGIR_MMA_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))
#define NEVER static __attribute__((noinline))

/* Exponent of a zero element: no product with it can lead. */
#define NOTHING (-1000)

#define NAN_F32 0x7FFFFFFFu
#define NAN_F16 0x7FFFu
#define NAN_F64 0x7FF8000000000000u

ALWAYS float float_of(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
ALWAYS uint32_t bits_of(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
ALWAYS double double_of(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
ALWAYS uint64_t bits_of_double(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }

/* 2^exponent, a normal double. */
ALWAYS double power_of_two(int exponent) { return double_of((uint64_t)(exponent + 1023) << 52); }

ALWAYS double half_value(uint32_t code) {
    uint32_t magnitude = code & 0x7FFF, sign = (code & 0x8000) << 16;
    if (magnitude >= 0x7C00) return float_of(0x7F800000u | sign | (magnitude & 0x3FF) << 13);
    return float_of(magnitude << 13 | sign) * 0x1p112f;
}

/* To nearest even; NaN is 0x7FFF. */
ALWAYS uint32_t half_code(double value) {
    uint64_t bits = bits_of_double(value);
    uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
    double size = fabs(value);
    if (value != value) return NAN_F16;
    if (size >= 65520.0) return sign | 0x7C00;
    if (size < 0x1p-14) return sign | (uint32_t)((size * 0x1p24 + 0x1p52) - 0x1p52);
    bits &= ~(1ull << 63);
    bits += (1ull << 41) - 1 + (bits >> 42 & 1);
    return sign | (uint32_t)((bits >> 42) - ((1023 - 15) << 10));
}

ALWAYS uint32_t canonical(float value) { return value != value ? NAN_F32 : bits_of(value); }

/* A finite sum becomes the result; a zero result is +0. */
ALWAYS uint32_t rounded(double value, int rounding) {
    if (rounding == RNE_F16) {
        uint32_t code = half_code(value);
        return code == 0x8000 ? 0 : code;
    }
    int kept = rounding == RZ_F32 ? 23 : 13;
    if (fabs(value) < 0x1p-126) {
        double least = rounding == RZ_F32 ? 0x1p149 : 0x1p139;
        return bits_of((float)(trunc(value * least) / least + 0.0));
    }
    return bits_of((float)double_of(bits_of_double(value) & ~0ull << (52 - kept)));
}

#endif
