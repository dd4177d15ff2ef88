/* From registers to elements, and from elements to exact values with the exponents that the
 * hardware aligns by (tensor_cores/elements.py).
 */
#ifndef FRAGIR_MMA_DECODE_H
#define FRAGIR_MMA_DECODE_H

#include "mma.h"
#include "mma_numbers.h"

/* One operand, decoded. `exponent` holds integer elements where there is no exponent. */
typedef struct {
    float *value;
    float *special; /* value with Inf and NaN; written only where `specials` */
    int32_t *exponent;
    double *wide; /* f64 */
    int specials; /* some element is Inf or NaN */
    int extreme;  /* a non-zero exponent outside -50..60: float does not hold all products */
} Values;

ALWAYS void take(const Fragment *f, const uint32_t *words, uint32_t *codes) {
    const int32_t *restrict word = f->word, *restrict shift = f->shift;
    uint32_t mask = f->mask;
    if (mask == 0xFFFFFFFFu)
        for (int i = 0; i < f->elements; i++) codes[i] = words[word[i]];
    else
        for (int i = 0; i < f->elements; i++) codes[i] = words[word[i]] >> shift[i] & mask;
}

ALWAYS void decode_f16(const uint32_t *restrict codes, int count, Values *to) {
    float *restrict value = to->value;
    int32_t *restrict exponent = to->exponent;
    uint32_t top = 0;
    for (int i = 0; i < count; i++) {
        uint32_t magnitude = codes[i] & 0x7FFF;
        int32_t field = (int32_t)(magnitude >> 10);
        top = magnitude > top ? magnitude : top;
        value[i] = float_of(magnitude << 13 | (codes[i] & 0x8000) << 16) * 0x1p112f;
        exponent[i] = magnitude ? (field > 1 ? field : 1) - 15 : NOTHING;
    }
    to->extreme = 0;
    to->specials = top >= 0x7C00;
    if (!to->specials) return;
    for (int i = 0; i < count; i++) {
        to->special[i] = (float)half_value(codes[i]);
        if ((codes[i] & 0x7FFF) >= 0x7C00) value[i] = 0, exponent[i] = NOTHING;
    }
}

/* Formats with f32's exponent, from f32's bits. */
ALWAYS void decode_f32(const uint32_t *restrict bits, int count, Values *to) {
    float *restrict value = to->value;
    int32_t *restrict exponent = to->exponent;
    uint32_t top = 0;
    int32_t least = 0, most = 0;
    for (int i = 0; i < count; i++) {
        uint32_t magnitude = bits[i] & 0x7FFFFFFF;
        int32_t field = (int32_t)(magnitude >> 23);
        int32_t own = (field > 1 ? field : 1) - 127;
        top = magnitude > top ? magnitude : top;
        value[i] = float_of(bits[i]);
        exponent[i] = magnitude ? own : NOTHING;
        own = magnitude ? own : 0;
        least = own < least ? own : least;
        most = own > most ? own : most;
    }
    to->specials = top >= 0x7F800000;
    to->extreme = least < -50 || most > 60;
    if (!to->specials) return;
    for (int i = 0; i < count; i++) {
        to->special[i] = value[i];
        if ((bits[i] & 0x7FFFFFFF) >= 0x7F800000) value[i] = 0, exponent[i] = NOTHING;
    }
}

ALWAYS void decode_table(const Element *e, const uint32_t *restrict codes, int count, Values *to) {
    int specials = 0;
    for (int i = 0; i < count; i++) {
        to->value[i] = e->value[codes[i]];
        to->exponent[i] = e->exponent[codes[i]];
        to->special[i] = e->special[codes[i]];
        specials |= !(fabsf(to->special[i]) <= 0x1p100f);
    }
    to->specials = specials;
    to->extreme = 0;
}

/* `codes` are changed. */
ALWAYS void decode(const Element *e, uint32_t *restrict codes, int count, Values *to) {
    if (e->shift || e->mask != 0xFFFFFFFFu)
        for (int i = 0; i < count; i++) codes[i] = codes[i] >> e->shift & e->mask;
    switch (e->kind) {
    case F16:
        decode_f16(codes, count, to);
        break;
    case BF16:
        for (int i = 0; i < count; i++) codes[i] <<= 16;
        decode_f32(codes, count, to);
        break;
    case TF32:
        for (int i = 0; i < count; i++) codes[i] &= 0xFFFFE000u;
        decode_f32(codes, count, to);
        break;
    case TABLE:
        decode_table(e, codes, count, to);
        break;
    default: /* INTEGERS, BITS */
        for (int i = 0; i < count; i++)
            to->exponent[i] = (int32_t)(codes[i] ^ (uint32_t)e->sign) - e->sign;
        to->specials = to->extreme = 0;
    }
}

#endif
