/* The arithmetic beside the fused primitive: integers, f64, software m8n8k4, groups of fp4. */
#ifndef FRAGIR_MMA_OTHERS_H
#define FRAGIR_MMA_OTHERS_H

#include <fenv.h>

#include "mma_fused.h"

/* f64: a chain of fused multiply-adds in the rounding that is set. */
NEVER void multiply_double(int m, int k, int columns, const double *a, const double *b,
                           uint64_t *c) {
    for (int row = 0; row < m; row++)
        for (int block = 0; block < columns / COLUMNS; block++) {
            double total[COLUMNS];
            uint64_t *to = c + row * columns + block * COLUMNS;
            for (int j = 0; j < COLUMNS; j++) total[j] = double_of(to[j]);
            for (int x = 0; x < k; x++)
                for (int j = 0; j < COLUMNS; j++)
                    total[j] = fma(a[row * k + x], b[(block * k + x) * COLUMNS + j], total[j]);
            for (int j = 0; j < COLUMNS; j++)
                to[j] = total[j] != total[j] ? NAN_F64 : bits_of_double(total[j]);
        }
}

/* total += a[k] b[k] for eight columns; no sum of one instruction needs more than 25 bits. */
ALWAYS void dot_integers(int depth, const int32_t *a, const int32_t *b, int32_t *total) {
#if LEVEL >= 1
    __m256i sum = _mm256_setzero_si256();
    for (int k = 0; k < depth; k++) {
        __m256i row = _mm256_loadu_si256((const __m256i *)(b + k * COLUMNS));
        sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(_mm256_set1_epi32(a[k]), row));
    }
    _mm256_storeu_si256((__m256i *)total, sum);
#else
    for (int k = 0; k < depth; k++)
        for (int j = 0; j < COLUMNS; j++) total[j] += a[k] * b[k * COLUMNS + j];
#endif
}

/* 8-bit and 4-bit integers. `full`: room for a row of A with the columns that are not kept. */
ALWAYS void integer_strip(const Plan *p, const int32_t *a, const int32_t *b, const int32_t *kept,
                          int32_t *full, uint32_t *c) {
    int32_t total[COLUMNS] = {0};
    int depth = p->k;
    if (kept) { /* a column that is kept twice counts once: the last */
        for (int k = 0; k < depth; k++) full[k] = 0;
        for (int k = 0; k < p->depth; k++) full[kept[k]] = a[k];
        a = full;
    }
    if (p->left.kind == BITS) {
        depth /= 32;
        for (int k = 0; k < depth; k++)
            for (int j = 0; j < COLUMNS; j++) {
                uint32_t x = (uint32_t)a[k], y = (uint32_t)b[k * COLUMNS + j];
                total[j] += __builtin_popcount(p->exclusive ? x ^ y : x & y);
            }
    } else
        dot_integers(depth, a, b, total);
    for (int j = 0; j < COLUMNS; j++) {
        int64_t sum = (int64_t)total[j] + (int32_t)c[j];
        if (p->clamps) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        c[j] = (uint32_t)sum;
    }
}

/* 32 single bits to a word, in place: `codes` as [outer][k][inner]. */
ALWAYS void pack_bits(int32_t *codes, int outer, int k, int inner) {
    int32_t *to = codes;
    for (int o = 0; o < outer; o++)
        for (int w = 0; w < k / 32; w++)
            for (int i = 0; i < inner; i++) {
                uint32_t word = 0;
                for (int x = 0; x < 32; x++)
                    word |= (uint32_t)codes[(o * k + w * 32 + x) * inner + i] << x;
                *to++ = (int32_t)word;
            }
}

ALWAYS float multiply_add(float a, float b, float c) {
    return (float)((double)a * (double)b + (double)c);
}

/* m8n8k4 of f16 as a routine of f32 arithmetic. */
ALWAYS void software_strip(const Plan *p, const Strip *s, uint32_t *c) {
    const float *a = s->special_a, *b = s->special_b;
    for (int j = 0; j < COLUMNS; j++) {
        float addend = float_of(c[j]); /* widened before where C is f16 */
        if (p->half_result) {
            float low = multiply_add(a[1], b[COLUMNS + j], a[0] * b[j]);
            float high = multiply_add(a[3], b[3 * COLUMNS + j], a[2] * b[2 * COLUMNS + j]);
            c[j] = half_code((addend + low) + high);
        } else {
            float total = 0;
            for (int k = 0; k < 4; k++) total = multiply_add(a[k], b[k * COLUMNS + j], total);
            c[j] = canonical(addend + total);
        }
    }
}

/* kind::mxf4 and mxf4nvf4: four groups, each an exact sum times its scales. */
ALWAYS void grouped_strip(const Plan *p, const Strip *s, const uint8_t *codes_a,
                          const uint8_t *codes_b, uint32_t *c) {
    enum { GROUPS = 4, FRACTION = 35, FLOOR = -139 };
    int size = p->depth / GROUPS;
    for (int j = 0; j < COLUMNS; j++) {
        double sum[GROUPS], significand[GROUPS];
        int power[GROUPS], dead[GROUPS];
        uint32_t magnitude = c[j] & 0x7FFFFFFF;
        int field = (int)(magnitude >> 23), bad = 0;
        int leading = magnitude ? (field > 1 ? field : 1) - 127 : FLOOR;
        double addend = float_of(c[j]), special = 0;
        leading = leading > FLOOR ? leading : FLOOR;
        for (int g = 0; g < GROUPS; g++) {
            int any = 0, block = g * p->scale_a.blocks / GROUPS;
            uint8_t x = codes_a[block], y = codes_b[block * COLUMNS + j];
            sum[g] = 0;
            for (int k = g * size; k < (g + 1) * size; k++) {
                float term = s->a[k] * s->b[column(s, k) * COLUMNS + j];
                any |= term != 0;
                sum[g] += term;
            }
            significand[g] = p->significand[x] * p->significand[y];
            power[g] = p->power[x] + p->power[y];
            dead[g] = !any || significand[g] == 0;
            bad |= significand[g] != significand[g];
            if (!dead[g]) special += sum[g] * significand[g];
            if (!dead[g] && power[g] > leading) leading = power[g];
        }
        special += addend;
        if (bad || special != special) {
            c[j] = NAN_F32;
            continue;
        }
        if (fabs(special) > 0x1p1000) continue; /* C is infinite, and stays */
        double total = trunc(ldexp(addend, FRACTION - leading));
        for (int g = 0; g < GROUPS; g++)
            total += trunc(ldexp(sum[g] * significand[g], power[g] - leading + FRACTION));
        c[j] = rounded(ldexp(total, leading - FRACTION), RZ_F32);
    }
}

#endif
