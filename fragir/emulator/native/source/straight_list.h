/* The functions of straight-line runs: straight_functions.h says what they are made into.
 *
 * OF1(name, R, A, expression of a), OF2, OF3, OF4: the result has type R, operands a, b, c, d of
 * types A, B, C, D; k is the instruction's immediate. Names: what it does, then the type.
 */

#undef INTEGERS2
#define INTEGERS2(name, e) OF2(name##_16, u16, u16, u16, e) OF2(name##_32, u32, u32, u32, e) \
  OF2(name##_64, u64, u64, u64, e)
#define EXTREMES(name, op) \
  OF2(name##_u16, u16, u16, u16, a op b ? a : b) OF2(name##_s16, s16, s16, s16, a op b ? a : b) \
  OF2(name##_u32, u32, u32, u32, a op b ? a : b) OF2(name##_s32, s32, s32, s32, a op b ? a : b) \
  OF2(name##_u64, u64, u64, u64, a op b ? a : b) OF2(name##_s64, s64, s64, s64, a op b ? a : b)

/* -- integers and bits ----------------------------------------------------------------------- */
OF1(copy_8, u8, u8, a) OF1(copy_16, u16, u16, a) OF1(copy_32, u32, u32, a) OF1(copy_64, u64, u64, a)
INTEGERS2(add, a + b) INTEGERS2(sub, a - b)
INTEGERS2(and, a & b) INTEGERS2(or, a | b) INTEGERS2(xor, a ^ b)
OF2(and_8, u8, u8, u8, a & b) OF2(or_8, u8, u8, u8, a | b) OF2(xor_8, u8, u8, u8, a ^ b)
OF1(invert_8, u8, u8, !a)
OF1(not_16, u16, u16, ~a) OF1(not_32, u32, u32, ~a) OF1(not_64, u64, u64, ~a)
OF1(neg_16, u16, u16, 0 - a) OF1(neg_32, u32, u32, 0 - a) OF1(neg_64, u64, u64, 0 - a)
OF1(abs_16, u16, s16, a < 0 ? 0 - (u32)a : (u32)a) OF1(abs_32, u32, s32, a < 0 ? 0 - (u32)a : (u32)a)
OF1(abs_64, u64, s64, magnitude(a))
EXTREMES(min, <) EXTREMES(max, >)
OF2(mul_16, u16, u16, u16, (u32)a * b) OF2(mul_32, u32, u32, u32, a * b) OF2(mul_64, u64, u64, u64, a * b)
OF3(mad_16, u16, u16, u16, u16, (u32)a * b + c) OF3(mad_32, u32, u32, u32, u32, a * b + c)
OF3(mad_64, u64, u64, u64, u64, a * b + c)
OF2(high_u16, u16, u16, u16, (u32)a * b >> 16) OF2(high_s16, u16, s16, s16, (s32)a * b >> 16)
OF2(high_u32, u32, u32, u32, (u64)a * b >> 32) OF2(high_s32, u32, s32, s32, (s64)a * b >> 32)
OF2(high_u64, u64, u64, u64, high_u64(a, b)) OF2(high_s64, u64, s64, s64, high_s64(a, b))
OF3(mad_high_u32, u32, u32, u32, u32, (u32)((u64)a * b >> 32) + c)
OF3(mad_high_s32, u32, s32, s32, u32, (u32)((s64)a * b >> 32) + c)
OF3(mad_high_u64, u64, u64, u64, u64, high_u64(a, b) + c)
OF3(mad_high_s64, u64, s64, s64, u64, high_s64(a, b) + c)
OF2(wide_u16, u32, u16, u16, (u32)a * b) OF2(wide_s16, u32, s16, s16, (s32)a * b)
OF2(wide_u32, u64, u32, u32, (u64)a * b) OF2(wide_s32, u64, s32, s32, (s64)a * b)
OF3(mad_wide_u16, u32, u16, u16, u32, (u32)a * b + c)
OF3(mad_wide_s16, u32, s16, s16, u32, (u32)((s32)a * b) + c)
OF3(mad_wide_u32, u64, u32, u32, u64, (u64)a * b + c)
OF3(mad_wide_s32, u64, s32, s32, u64, (u64)((s64)a * b) + c)
OF2(div_u16, u16, u16, u16, b ? a / b : 0xFFFF) OF2(rem_u16, u16, u16, u16, b ? a % b : a)
OF2(div_u32, u32, u32, u32, b ? a / b : ~0u) OF2(rem_u32, u32, u32, u32, b ? a % b : a)
OF2(div_u64, u64, u64, u64, b ? a / b : ~(u64)0) OF2(rem_u64, u64, u64, u64, b ? a % b : a)
OF2(div_s16, u16, s16, s16, divide(a, b)) OF2(rem_s16, u16, s16, s16, rest_of(a, b))
OF2(div_s32, u32, s32, s32, divide(a, b)) OF2(rem_s32, u32, s32, s32, rest_of(a, b))
OF2(div_s64, u64, s64, s64, divide(a, b)) OF2(rem_s64, u64, s64, s64, rest_of(a, b))
OF2(shl_16, u16, u16, u32, b < 16 ? (u32)a << b : 0) OF2(shl_32, u32, u32, u32, b < 32 ? a << b : 0)
OF2(shl_64, u64, u64, u32, b < 64 ? a << b : 0)
OF2(shr_u16, u16, u16, u32, b < 16 ? a >> b : 0) OF2(shr_u32, u32, u32, u32, b < 32 ? a >> b : 0)
OF2(shr_u64, u64, u64, u32, b < 64 ? a >> b : 0)
OF2(shr_s16, u16, s16, u32, a >> (b < 15 ? b : 15)) OF2(shr_s32, u32, s32, u32, a >> (b < 31 ? b : 31))
OF2(shr_s64, u64, s64, u32, a >> (b < 63 ? b : 63))
OF3(funnel_l_clamp, u32, u32, u32, u32, funnel(a, b, c < 32 ? c : 32, 0))
OF3(funnel_r_clamp, u32, u32, u32, u32, funnel(a, b, c < 32 ? c : 32, 1))
OF3(funnel_l_wrap, u32, u32, u32, u32, funnel(a, b, c & 31, 0))
OF3(funnel_r_wrap, u32, u32, u32, u32, funnel(a, b, c & 31, 1))
OF1(popc_32, u32, u32, (u32)__builtin_popcount(a)) OF1(popc_64, u32, u64, (u32)__builtin_popcountll(a))
OF1(clz_32, u32, u32, zeros32(a)) OF1(clz_64, u32, u64, zeros64(a))
OF1(brev_32, u32, u32, reverse(a) >> 32) OF1(brev_64, u64, u64, reverse(a))
OF3(bfe_u32, u32, u32, u32, u32, extract_unsigned(a, b, c, 32))
OF3(bfe_s32, u32, s32, u32, u32, extract_signed(a, b, c, 32))
OF3(bfe_u64, u64, u64, u32, u32, extract_unsigned(a, b, c, 64))
OF3(bfe_s64, u64, s64, u32, u32, extract_signed(a, b, c, 64))
OF4(bfi_32, u32, u32, u32, u32, u32, insert(a, b, c, d, 32))
OF4(bfi_64, u64, u64, u64, u32, u32, insert(a, b, c, d, 64))
OF3(prmt, u32, u32, u32, u32, permute(a, b, c))
OF3(lop3, u32, u32, u32, u32, look_up(a, b, c, k))
OF3(selp_16, u16, u8, u16, u16, a ? b : c) OF3(selp_32, u32, u8, u32, u32, a ? b : c)
OF3(selp_64, u64, u8, u64, u64, a ? b : c)
/* mov between registers and their parts, the lowest first. */
OF1(part_8_16, u8, u16, a >> k) OF1(part_8_32, u8, u32, a >> k) OF1(part_8_64, u8, u64, a >> k)
OF1(part_16_32, u16, u32, a >> k) OF1(part_16_64, u16, u64, a >> k) OF1(part_32_64, u32, u64, a >> k)
OF2(join_16_32, u32, u16, u16, a | (u32)b << 16) OF2(join_32_64, u64, u32, u32, a | (u64)b << 32)
OF4(join_16_64, u64, u16, u16, u16, u16, a | (u64)b << 16 | (u64)c << 32 | (u64)d << 48)
OF4(join_8_32, u32, u8, u8, u8, u8, a | (u32)b << 8 | (u32)c << 16 | (u32)d << 24)

/* -- comparisons ----------------------------------------------------------------------------- */
#define EQUAL(t) OF2(eq_##t, u8, t, t, a == b) OF2(ne_##t, u8, t, t, a != b)
#define ORDER(t) OF2(lt_##t, u8, t, t, a < b) OF2(le_##t, u8, t, t, a <= b) \
  OF2(gt_##t, u8, t, t, a > b) OF2(ge_##t, u8, t, t, a >= b)
EQUAL(u16) ORDER(u16) EQUAL(u32) ORDER(u32) EQUAL(u64) ORDER(u64)
EQUAL(s16) ORDER(s16) EQUAL(s32) ORDER(s32) EQUAL(s64) ORDER(s64)
#define NAN_OF(a, b) (a != a || b != b)
#define COMPARED(t, bits, v) \
  OF2(eq_##t, u8, bits, bits, v(a) == v(b)) OF2(ne_##t, u8, bits, bits, v(a) < v(b) || v(a) > v(b)) \
  OF2(lt_##t, u8, bits, bits, v(a) < v(b)) OF2(le_##t, u8, bits, bits, v(a) <= v(b)) \
  OF2(gt_##t, u8, bits, bits, v(a) > v(b)) OF2(ge_##t, u8, bits, bits, v(a) >= v(b)) \
  OF2(equ_##t, u8, bits, bits, !(v(a) < v(b) || v(a) > v(b))) OF2(neu_##t, u8, bits, bits, v(a) != v(b)) \
  OF2(ltu_##t, u8, bits, bits, !(v(a) >= v(b))) OF2(leu_##t, u8, bits, bits, !(v(a) > v(b))) \
  OF2(gtu_##t, u8, bits, bits, !(v(a) <= v(b))) OF2(geu_##t, u8, bits, bits, !(v(a) < v(b))) \
  OF2(num_##t, u8, bits, bits, !NAN_OF(v(a), v(b))) OF2(nan_##t, u8, bits, bits, NAN_OF(v(a), v(b)))
#define FLUSHED32(x) value32(flush32(x))
#define FLUSHED16(x) half(flush16(x, 0x7C00))
COMPARED(f32, u32, value32) COMPARED(f32_ftz, u32, FLUSHED32) COMPARED(f64, u64, value64)
COMPARED(f16, u16, half) COMPARED(f16_ftz, u16, FLUSHED16) COMPARED(bf16, u16, brain)

/* -- f32: plain, .ftz, and all other modifiers and roundings by k ----------------------------- */
#define F(x) value32(x)
#define Z(x) value32(flush32(x))
#define K(x) value32(input32(x, k))
OF2(add_f32, u32, u32, u32, canonical32(F(a) + F(b)))
OF2(sub_f32, u32, u32, u32, canonical32(F(a) - F(b)))
OF2(mul_f32, u32, u32, u32, canonical32(F(a) * F(b)))
OF2(div_f32, u32, u32, u32, canonical32(F(a) / F(b)))
OF3(fma_f32, u32, u32, u32, u32, fma32(a, b, c))
OF1(sqrt_f32, u32, u32, canonical32(__builtin_sqrtf(F(a))))
OF1(rcp_f32, u32, u32, canonical32(1.0f / F(a)))
OF2(add_f32_ftz, u32, u32, u32, flush32(canonical32(Z(a) + Z(b))))
OF2(sub_f32_ftz, u32, u32, u32, flush32(canonical32(Z(a) - Z(b))))
OF2(mul_f32_ftz, u32, u32, u32, flush32(canonical32(Z(a) * Z(b))))
OF2(div_f32_ftz, u32, u32, u32, flush32(canonical32(Z(a) / Z(b))))
OF3(fma_f32_ftz, u32, u32, u32, u32, flush32(fma32(flush32(a), flush32(b), flush32(c))))
OF1(sqrt_f32_ftz, u32, u32, flush32(canonical32(__builtin_sqrtf(Z(a)))))
OF1(rcp_f32_ftz, u32, u32, flush32(canonical32(1.0f / Z(a))))
/* The approximations: the value in f64, rounded once. */
OF2(div_approx_f32, u32, u32, u32, divide_approximately(a, b))
OF2(div_approx_f32_ftz, u32, u32, u32, flush32(divide_approximately(flush32(a), flush32(b))))
OF1(rsqrt_f32, u32, u32, canonical32((f32)(1.0 / __builtin_sqrt((f64)F(a)))))
OF1(rsqrt_f32_ftz, u32, u32, flush32(canonical32((f32)(1.0 / __builtin_sqrt((f64)Z(a))))))
OF2(add_f32_by, u32, u32, u32, finish32(add_mode32(K(a), K(b), k), k))
OF2(sub_f32_by, u32, u32, u32, finish32(add_mode32(K(a), -(f64)K(b), k), k))
OF2(mul_f32_by, u32, u32, u32, finish32(round32((f64)K(a) * K(b), k), k))
OF3(fma_f32_by, u32, u32, u32, u32, finish32(add_mode32((f64)K(a) * K(b), K(c), k), k))
OF2(min_f32, u32, u32, u32, extreme32(a, b, 0, 0)) OF2(max_f32, u32, u32, u32, extreme32(a, b, 1, 0))
OF2(min_f32_by, u32, u32, u32, extreme32(a, b, 0, k)) OF2(max_f32_by, u32, u32, u32, extreme32(a, b, 1, k))
OF1(neg_f32, u32, u32, input32(input32(a, k) ^ 0x80000000u, k))
OF1(abs_f32, u32, u32, input32(input32(a, k) & 0x7FFFFFFFu, k))
OF1(neg_f64, u64, u64, a ^ (u64)1 << 63) OF1(abs_f64, u64, u64, a & ~((u64)1 << 63))

/* -- f16, bf16; packed pairs are twice as many ------------------------------------------------- */
/* The same without modifiers, and with those of k. */
#undef SMALL
#define SMALL(suffix, k) \
  OF2(add_f16##suffix, u16, u16, u16, out_half(half_of(sum_odd32(H(a, k), H(b, k)), RN), k)) \
  OF2(sub_f16##suffix, u16, u16, u16, out_half(half_of(sum_odd32(H(a, k), -H(b, k)), RN), k)) \
  OF2(mul_f16##suffix, u16, u16, u16, out_half(half_of(canonical32(H(a, k) * H(b, k)), RN), k)) \
  OF3(fma_f16##suffix, u16, u16, u16, u16, out_half(half_of(sum_odd32(H(a, k) * H(b, k), H(c, k)), RN), k)) \
  OF2(min_f16##suffix, u16, u16, u16, extreme_half(a, b, 0, k)) \
  OF2(max_f16##suffix, u16, u16, u16, extreme_half(a, b, 1, k)) \
  OF1(neg_f16##suffix, u16, u16, in_half(in_half(a, k) ^ 0x8000, k)) \
  OF1(abs_f16##suffix, u16, u16, in_half(in_half(a, k) & 0x7FFF, k)) \
  OF2(add_bf16##suffix, u16, u16, u16, out_brain(brain_of(sum_odd32(brain(a), brain(b)), RN), k)) \
  OF2(sub_bf16##suffix, u16, u16, u16, out_brain(brain_of(sum_odd32(brain(a), -brain(b)), RN), k)) \
  OF2(mul_bf16##suffix, u16, u16, u16, out_brain(brain_odd((f64)brain(a) * brain(b)), k)) \
  OF3(fma_bf16##suffix, u16, u16, u16, u16, out_brain(brain_odd(sum_odd((f64)brain(a) * brain(b), brain(c))), k)) \
  OF2(min_bf16##suffix, u16, u16, u16, extreme_brain(a, b, 0, k)) \
  OF2(max_bf16##suffix, u16, u16, u16, extreme_brain(a, b, 1, k))
#undef H
#define H(x, k) half(in_half(x, k))
SMALL(, 0) SMALL(_by, k)
OF1(neg_bf16, u16, u16, a ^ 0x8000) OF1(abs_bf16, u16, u16, a & 0x7FFF)

/* -- conversions ------------------------------------------------------------------------------- */
#define WIDENED(r) OF1(cvt_##r##_u8, r, u8, a) OF1(cvt_##r##_s8, r, s8, a) OF1(cvt_##r##_u16, r, u16, a) \
  OF1(cvt_##r##_s16, r, s16, a) OF1(cvt_##r##_u32, r, u32, a) OF1(cvt_##r##_s32, r, s32, a) \
  OF1(cvt_##r##_u64, r, u64, a)
WIDENED(u8) WIDENED(u16) WIDENED(u32) WIDENED(u64)
#define FROM_INTEGER(t) OF1(cvt_f32_##t, u32, t, round32((f64)a, k)) OF1(cvt_f16_##t, u16, t, half_of(odd32(a), k)) \
  OF1(cvt_bf16_##t, u16, t, brain_of(odd32(a), k)) OF1(cvt_f64_##t, u64, t, bits64((f64)a))
FROM_INTEGER(u8) FROM_INTEGER(s8) FROM_INTEGER(u16) FROM_INTEGER(s16) FROM_INTEGER(u32) FROM_INTEGER(s32)
OF1(cvt_f32_rn_s32, u32, s32, bits32((f32)a)) OF1(cvt_f32_rn_u32, u32, u32, bits32((f32)a))
OF1(cvt_f32_rn_s64, u32, s64, bits32((f32)a)) OF1(cvt_f32_rn_u64, u32, u64, bits32((f32)a))
#define TO_INTEGER(f, bits, v, nan) \
  OF1(cvt_u16_##f, u16, bits, to_unsigned(v(a), k, 0xFFFF, nan >> 48)) \
  OF1(cvt_s16_##f, u16, bits, to_signed(v(a), k, -0x8000, 0x7FFF, nan >> 48)) \
  OF1(cvt_u32_##f, u32, bits, to_unsigned(v(a), k, 0xFFFFFFFFu, nan >> 32)) \
  OF1(cvt_s32_##f, u32, bits, to_signed(v(a), k, -0x7FFFFFFF - 1, 0x7FFFFFFF, nan >> 32)) \
  OF1(cvt_u64_##f, u64, bits, to_unsigned(v(a), k, ~(u64)0, (u64)1 << 63)) \
  OF1(cvt_s64_##f, u64, bits, to_signed(v(a), k, INT64_MIN, INT64_MAX, (u64)1 << 63))
TO_INTEGER(f32, u32, K, (u64)0) TO_INTEGER(f16, u16, half, (u64)0) TO_INTEGER(bf16, u16, brain, (u64)0)
TO_INTEGER(f64, u64, value64, (u64)1 << 63)
OF1(cvt_f32_f16, u32, u16, canonical32(half(a))) OF1(cvt_f32_bf16, u32, u16, input32(canonical32(brain(a)), k))
OF1(cvt_f16_f32, u16, u32, half_of(a, RN)) OF1(cvt_f16_f32_by, u16, u32, half_of(input32(a, k), k))
OF1(cvt_bf16_f32, u16, u32, brain_of(input32(a, k), k))
OF1(cvt_f64_f32, u64, u32, canonical64((f64)K(a))) OF1(cvt_f32_f64, u32, u64, input32(round32(value64(a), k), k))
OF1(cvt_f32_f32, u32, u32, input32(canonical32(K(a)), k))
OF1(cvt_f32_whole, u32, u32, input32(canonical32((f32)whole(K(a), k)), k))
/* Two f32 to a pair; the second operand is the low half. */
OF2(cvt_f16x2_f32, u32, u32, u32, (u32)half_of(a, RN) << 16 | half_of(b, RN))
OF2(cvt_f16x2_f32_by, u32, u32, u32, (u32)half_of(a, k) << 16 | half_of(b, k))
OF2(cvt_bf16x2_f32, u32, u32, u32, (u32)brain_of(a, k) << 16 | brain_of(b, k))
