/* The primitive of the floating-point tensor cores (tensor_cores/fused.py), for eight neighbouring
 * columns of a row at once. `exact_step` computes one output of one step whatever its operands are;
 * `chain` is the fast way for finite operands and leaves to `exact_step` what it does not cover.
 *
 * Why it is fast: the product of two elements is exact in float (if their exponents are moderate)
 * and so is its multiple by 2^(F-E), so that the conversion to an integer is the hardware's
 * truncation; the terms of a step fit in int32, and only the addend takes part as double.
 */
#ifndef FRAGIR_MMA_FUSED_H
#define FRAGIR_MMA_FUSED_H

#include "mma_decode.h"

#if LEVEL >= 1
#include <immintrin.h>
#endif

#define COLUMNS 8

/* A row of A against eight columns of B. */
typedef struct {
    const float *a, *special_a; /* [depth] */
    const int32_t *exponent_a;
    const float *b, *special_b; /* [k][8] */
    const int32_t *exponent_b;
    const int32_t *kept; /* [depth]: rows of B that the elements of A meet; NULL: in order */
    const double *factor_b; /* [8]: SCALED; NULL: none */
    const int32_t *power_b;
    double factor_a;
    int32_t power_a;
    int specials; /* of A or B */
    int extreme;
} Strip;

ALWAYS int column(const Strip *s, int k) { return s->kept ? s->kept[k] : k; }

NEVER uint32_t exact_step(const Plan *p, const Strip *s, int first, int last, int j, uint32_t c,
                          int half_addend) {
    int half = p->rounding == RNE_F16;
    double addend;
    int own;
    if (half) {
        uint32_t magnitude = c & 0x7FFF;
        int field = (int)(magnitude >> 10);
        addend = half_value(c);
        own = magnitude ? (field > 1 ? field : 1) - 15 : NOTHING;
    } else {
        uint32_t magnitude = c & 0x7FFFFFFF;
        int field = (int)(magnitude >> 23);
        addend = float_of(c);
        own = magnitude ? (field > 1 ? field : 1) - 127 : NOTHING;
        if (half_addend && magnitude && own < -14) own = -14;
    }
    int finite = fabs(addend) <= 0x1p200;
    if (!finite || s->specials || s->factor_b) {
        double total = finite ? 0.0 : addend;
        if (s->specials) {
            const float *a = s->special_a, *b = s->special_b;
            for (int k = first; k < last; k++)
                total += (double)a[k] * (double)b[column(s, k) * COLUMNS + j];
        }
        if (s->factor_b) total += (s->factor_a + s->factor_b[j]) * 0.0; /* NaN scales */
        if (total != total) return half ? NAN_F16 : NAN_F32;
        if (fabs(total) > 0x1p1000) return (half ? 0x7C00u : 0x7F800000u) | (total < 0 ? (half ? 0x8000u : 1u << 31) : 0);
    }
    int power = s->factor_b ? s->power_a + s->power_b[j] : 0;
    int leading = own > p->floor ? own : p->floor;
    for (int k = first; k < last; k++) {
        int one = s->exponent_a[k] + s->exponent_b[column(s, k) * COLUMNS + j] + power;
        leading = one > leading ? one : leading;
    }
    double scale = power_of_two(p->fraction - leading), total = 0;
    double factor = s->factor_b ? s->factor_a * s->factor_b[j] * scale : scale;
    for (int k = first; k < last; k++) {
        double term = (double)s->a[k] * (double)s->b[column(s, k) * COLUMNS + j];
        total += trunc(term * factor);
    }
    if (finite) total += trunc(addend * scale);
    return rounded(total * power_of_two(leading - p->fraction), p->rounding);
}

#if LEVEL >= 1

/* Four sums, integers in doubles, to results in f32's place: cut, or f16 codes. */
ALWAYS __m128i results(__m256d sum, __m256d back, int rounding) {
    __m256i bits = _mm256_castpd_si256(_mm256_mul_pd(sum, back));
    if (rounding == RNE_F16) { /* to odd in float, then once to nearest */
        __m256i cut = _mm256_and_si256(bits, _mm256_set1_epi64x((long long)(~0ull << 29)));
        __m256i same = _mm256_cmpeq_epi64(cut, bits);
        __m256i odd = _mm256_or_si256(cut, _mm256_set1_epi64x(1ll << 29));
        bits = _mm256_blendv_epi8(odd, cut, same);
        __m128 value = _mm256_cvtpd_ps(_mm256_castsi256_pd(bits));
        __m128i code = _mm_cvtepu16_epi32(_mm_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
        return _mm_andnot_si128(_mm_cmpeq_epi32(code, _mm_set1_epi32(0x8000)), code);
    }
    long long kept = rounding == RZ_F32 ? (long long)(~0ull << 29) : (long long)(~0ull << 39);
    bits = _mm256_and_si256(bits, _mm256_set1_epi64x(kept));
    return _mm_castps_si128(_mm256_cvtpd_ps(_mm256_castsi256_pd(bits)));
}

ALWAYS __m256d powers(__m128i exponent) {
    __m256i wide = _mm256_cvtepi32_epi64(_mm_add_epi32(exponent, _mm_set1_epi32(1023)));
    return _mm256_castsi256_pd(_mm256_slli_epi64(wide, 52));
}

/* c += a b for k in [first, last): STEP products at a time. `extreme`: products as doubles. */
ALWAYS void chain(const Plan *p, const Strip *s, int first, int last, uint32_t *c, int half_addend,
                  const int step, const int sparse, const int rounding, const int extreme) {
    const __m256i floor = _mm256_set1_epi32(p->floor), fraction = _mm256_set1_epi32(p->fraction);
    const __m128i fraction4 = _mm_set1_epi32(p->fraction);
    const int half = rounding == RNE_F16;
    const int run = p->fraction >= 29 ? 1 : 1 << (29 - p->fraction); /* terms that fit in int32 */
    __m256i code = _mm256_loadu_si256((const __m256i *)c);
    for (int k0 = first; k0 < last; k0 += step) {
        int k1 = k0 + step < last ? k0 + step : last;
        __m256i size = _mm256_and_si256(code, _mm256_set1_epi32(half ? 0x7FFF : 0x7FFFFFFF));
        __m256i top = _mm256_set1_epi32(half ? 0x7BFF : 0x7F7FFFFF);
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(size, top))) goto slowly;
        __m256i field = _mm256_srli_epi32(size, half ? 10 : 23);
        __m256i own = _mm256_sub_epi32(_mm256_max_epi32(field, _mm256_set1_epi32(1)),
                                       _mm256_set1_epi32(half ? 15 : 127));
        if (half_addend) own = _mm256_max_epi32(own, _mm256_set1_epi32(-14));
        __m256i none = _mm256_cmpeq_epi32(size, _mm256_setzero_si256());
        __m256i leading = _mm256_max_epi32(_mm256_blendv_epi8(own, floor, none), floor);
        __m256 addend;
        if (half) {
            __m256i sign = _mm256_slli_epi32(_mm256_and_si256(code, _mm256_set1_epi32(0x8000)), 16);
            __m256i moved = _mm256_or_si256(_mm256_slli_epi32(size, 13), sign);
            addend = _mm256_mul_ps(_mm256_castsi256_ps(moved), _mm256_set1_ps(0x1p112f));
        } else
            addend = _mm256_castsi256_ps(code);
        for (int k = k0; k < k1; k++) {
            int row = sparse ? s->kept[k] : k;
            __m256i b = _mm256_loadu_si256((const __m256i *)(s->exponent_b + row * COLUMNS));
            leading = _mm256_max_epi32(leading,
                                       _mm256_add_epi32(_mm256_set1_epi32(s->exponent_a[k]), b));
        }
        __m128i low = _mm256_castsi256_si128(leading), high = _mm256_extracti128_si256(leading, 1);
        __m256d scale_low = powers(_mm_sub_epi32(fraction4, low));
        __m256d scale_high = powers(_mm_sub_epi32(fraction4, high));
        __m256d sum_low = _mm256_setzero_pd(), sum_high = sum_low;
        if (extreme) {
            for (int k = k0; k < k1; k++) {
                int row = sparse ? s->kept[k] : k;
                __m256d a = _mm256_set1_pd(s->a[k]);
                __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(s->b + row * COLUMNS));
                __m256d y = _mm256_cvtps_pd(_mm_loadu_ps(s->b + row * COLUMNS + 4));
                x = _mm256_mul_pd(_mm256_mul_pd(a, x), scale_low);
                y = _mm256_mul_pd(_mm256_mul_pd(a, y), scale_high);
                sum_low = _mm256_add_pd(sum_low, _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
                sum_high = _mm256_add_pd(sum_high, _mm256_round_pd(y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
            }
        } else {
            /* Where the leading exponent is below -100 every product is zero. */
            __m256i by = _mm256_max_epi32(leading, _mm256_set1_epi32(-100));
            by = _mm256_sub_epi32(_mm256_add_epi32(fraction, _mm256_set1_epi32(127)), by);
            __m256 scale = _mm256_castsi256_ps(_mm256_slli_epi32(by, 23));
            for (int start = k0; start < k1; start += run) {
                int stop = start + run < k1 ? start + run : k1;
                __m256i total = _mm256_setzero_si256();
                for (int k = start; k < stop; k++) {
                    int row = sparse ? s->kept[k] : k;
                    __m256 b = _mm256_loadu_ps(s->b + row * COLUMNS);
                    __m256 term = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(s->a[k]), b), scale);
                    total = _mm256_add_epi32(total, _mm256_cvttps_epi32(term));
                }
                sum_low = _mm256_add_pd(sum_low, _mm256_cvtepi32_pd(_mm256_castsi256_si128(total)));
                sum_high = _mm256_add_pd(sum_high, _mm256_cvtepi32_pd(_mm256_extracti128_si256(total, 1)));
            }
        }
        __m256d x = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(addend)), scale_low);
        __m256d y = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(addend, 1)), scale_high);
        sum_low = _mm256_add_pd(sum_low, _mm256_cvtepi32_pd(_mm256_cvttpd_epi32(x)));
        sum_high = _mm256_add_pd(sum_high, _mm256_cvtepi32_pd(_mm256_cvttpd_epi32(y)));
        if (!half) { /* subnormal results */
            __m256i tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(p->fraction - 126), leading);
            if (_mm256_movemask_epi8(tiny)) {
                __m256d zero = _mm256_setzero_pd();
                int some = _mm256_movemask_pd(_mm256_cmp_pd(sum_low, zero, _CMP_NEQ_UQ)) |
                           _mm256_movemask_pd(_mm256_cmp_pd(sum_high, zero, _CMP_NEQ_UQ)) << 4;
                if (some & _mm256_movemask_ps(_mm256_castsi256_ps(tiny))) goto slowly;
            }
        }
        low = results(sum_low, powers(_mm_sub_epi32(low, fraction4)), rounding);
        high = results(sum_high, powers(_mm_sub_epi32(high, fraction4)), rounding);
        code = _mm256_set_m128i(high, low);
        half_addend = 0;
        continue;
    slowly:
        _mm256_storeu_si256((__m256i *)c, code);
        for (int j = 0; j < COLUMNS; j++) c[j] = exact_step(p, s, k0, k1, j, c[j], half_addend);
        code = _mm256_loadu_si256((const __m256i *)c);
        half_addend = 0;
    }
    _mm256_storeu_si256((__m256i *)c, code);
}

#else

/* The same in loops that any compiler turns into vectors. */
ALWAYS void chain(const Plan *p, const Strip *s, int first, int last, uint32_t *c, int half_addend,
                  const int step, const int sparse, const int rounding, const int extreme) {
    const int half = rounding == RNE_F16;
    const int run = p->fraction >= 29 ? 1 : 1 << (29 - p->fraction);
    for (int k0 = first; k0 < last; k0 += step, half_addend = 0) {
        int k1 = k0 + step < last ? k0 + step : last;
        int32_t leading[COLUMNS], total[COLUMNS], least = 1000;
        float scale[COLUMNS], addend[COLUMNS];
        double sum[COLUMNS];
        int special = 0;
        for (int j = 0; j < COLUMNS; j++) {
            uint32_t size = c[j] & (half ? 0x7FFF : 0x7FFFFFFF);
            int32_t field = (int32_t)(size >> (half ? 10 : 23));
            int32_t own = (field > 1 ? field : 1) - (half ? 15 : 127);
            special |= size > (half ? 0x7BFFu : 0x7F7FFFFFu);
            own = half_addend && own < -14 ? -14 : own;
            own = size ? own : p->floor;
            leading[j] = own > p->floor ? own : p->floor;
            addend[j] = half ? float_of(size << 13 | (c[j] & 0x8000) << 16) * 0x1p112f : float_of(c[j]);
            sum[j] = 0;
        }
        for (int k = k0; k < k1; k++) {
            const int32_t *b = s->exponent_b + (sparse ? s->kept[k] : k) * COLUMNS;
            for (int j = 0; j < COLUMNS; j++) {
                int32_t one = s->exponent_a[k] + b[j];
                leading[j] = one > leading[j] ? one : leading[j];
            }
        }
        for (int j = 0; j < COLUMNS; j++) {
            int32_t by = leading[j] > -100 ? leading[j] : -100;
            scale[j] = float_of((uint32_t)(p->fraction + 127 - by) << 23);
            least = leading[j] < least ? leading[j] : least;
        }
        if (special || extreme) goto slowly;
        for (int start = k0; start < k1; start += run) {
            int stop = start + run < k1 ? start + run : k1;
            for (int j = 0; j < COLUMNS; j++) total[j] = 0;
            for (int k = start; k < stop; k++) {
                const float *b = s->b + (sparse ? s->kept[k] : k) * COLUMNS;
                for (int j = 0; j < COLUMNS; j++)
                    total[j] += (int32_t)((s->a[k] * b[j]) * scale[j]);
            }
            for (int j = 0; j < COLUMNS; j++) sum[j] += total[j];
        }
        for (int j = 0; j < COLUMNS; j++) {
            double by = power_of_two(p->fraction - leading[j]);
            sum[j] += (double)(int32_t)((double)addend[j] * by);
        }
        if (!half && least < p->fraction - 126) {
            int some = 0;
            for (int j = 0; j < COLUMNS; j++)
                some |= leading[j] < p->fraction - 126 && sum[j] != 0;
            if (some) goto slowly;
        }
        for (int j = 0; j < COLUMNS; j++) {
            double value = sum[j] * power_of_two(leading[j] - p->fraction);
            if (half)
                c[j] = rounded(value, RNE_F16);
            else {
                int lost = rounding == RZ_F32 ? 29 : 39;
                c[j] = bits_of((float)double_of(bits_of_double(value) & ~0ull << lost));
            }
        }
        continue;
    slowly:
        for (int j = 0; j < COLUMNS; j++) c[j] = exact_step(p, s, k0, k1, j, c[j], half_addend);
    }
}

#endif

/* `chain`, compiled for the steps that there are. */
ALWAYS void any_chain(const Plan *p, const Strip *s, int first, int last, uint32_t *c,
                     int half_addend, const int rounding) {
    if (s->specials || s->factor_b) {
        for (int k = first; k < last; k += p->step, half_addend = 0) {
            int stop = k + p->step < last ? k + p->step : last;
            for (int j = 0; j < COLUMNS; j++) c[j] = exact_step(p, s, k, stop, j, c[j], half_addend);
        }
    } else if (s->extreme) {
        if (s->kept) chain(p, s, first, last, c, half_addend, p->step, 1, rounding, 1);
        else chain(p, s, first, last, c, half_addend, p->step, 0, rounding, 1);
    } else if (s->kept)
        chain(p, s, first, last, c, half_addend, p->step, 1, rounding, 0);
    else if (p->step == 8 && (last - first) % 8 == 0)
        chain(p, s, first, last, c, half_addend, 8, 0, rounding, 0);
    else if (p->step == 16 && (last - first) % 16 == 0)
        chain(p, s, first, last, c, half_addend, 16, 0, rounding, 0);
    else
        chain(p, s, first, last, c, half_addend, p->step, 0, rounding, 0);
}

NEVER void chain_f32(const Plan *p, const Strip *s, int first, int last, uint32_t *c, int half) {
    any_chain(p, s, first, last, c, half, RZ_F32);
}

NEVER void chain_f16(const Plan *p, const Strip *s, int first, int last, uint32_t *c, int half) {
    any_chain(p, s, first, last, c, half, RNE_F16);
}

NEVER void chain_e8m13(const Plan *p, const Strip *s, int first, int last, uint32_t *c, int half) {
    any_chain(p, s, first, last, c, half, RZ_E8M13);
}

/* c += a b for k in [first, last). `half`: c was widened from f16. */
ALWAYS void chain_of(const Plan *p, const Strip *s, int first, int last, uint32_t *c, int half) {
    if (p->rounding == RZ_F32) chain_f32(p, s, first, last, c, half);
    else if (p->rounding == RNE_F16) chain_f16(p, s, first, last, c, half);
    else chain_e8m13(p, s, first, last, c, half);
}

#endif
