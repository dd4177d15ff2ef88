/* Numbers of straight-line runs: bits to values and back, as the functions on arrays do it. */
#ifndef FRAGIR_STRAIGHT_MATH_H
#define FRAGIR_STRAIGHT_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define ALWAYS static inline __attribute__((always_inline))
#else
#define ALWAYS static inline
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

enum { RN, RZ, RM, RP };                           /* roundings, two bits of an immediate */
enum { FTZ = 4, SAT = 8, RELU = 16, ALL_NAN = 32 }; /* modifiers, the others */

#define NAN32 0x7FFFFFFFu
#define NAN16 0x7FFFu
#define NAN64 0x7FF8000000000000u
#define INF32 0x7F800000u

ALWAYS f32 value32(u32 bits) { f32 x; memcpy(&x, &bits, 4); return x; }
ALWAYS u32 bits32(f32 x) { u32 b; memcpy(&b, &x, 4); return b; }
ALWAYS f64 value64(u64 bits) { f64 x; memcpy(&x, &bits, 8); return x; }
ALWAYS u64 bits64(f64 x) { u64 b; memcpy(&b, &x, 8); return b; }
ALWAYS u32 canonical32(f32 x) { return x == x ? bits32(x) : NAN32; }
ALWAYS u64 canonical64(f64 x) { return x == x ? bits64(x) : NAN64; }

/* -- f32 ------------------------------------------------------------------------------------- */

ALWAYS u32 flush32(u32 b) { return b & INF32 ? b : b & 0x80000000u; }
ALWAYS u32 input32(u32 b, s64 how) { return how & FTZ ? flush32(b) : b; }
ALWAYS u32 saturate32(u32 b) { /* to [0, 1]; NaN is 0 */
  b = (b & 0x7FFFFFFFu) > INF32 || b >> 31 ? 0 : b;
  return b < 0x3F800000u ? b : 0x3F800000u;
}
ALWAYS u32 finish32(u32 b, s64 how) {
  if (how & FTZ) b = flush32(b);
  if (how & SAT) b = saturate32(b);
  return b;
}

/* a + b rounded to odd: the last bit is set where anything was cut off. */
ALWAYS f64 sum_odd(f64 a, f64 b) {
  f64 total = a + b, part = total - a;
  f64 error = (a - (total - part)) + (b - part);
  u64 bits = bits64(total), sign = bits64(error) ^ bits;
  u64 step = error > 0 || error < 0 ? (sign >> 63 ? ~(u64)0 : 1) : 0;
  return value64(bits & 1 ? bits : bits + step);
}

/* A value that is exact or rounded to odd, to f32 rounded to odd. */
ALWAYS u32 odd32(f64 x) {
  f32 near = (f32)x;
  f64 back = near;
  u32 bits = canonical32(near);
  /* Towards x: magnitudes grow with their bits, below infinity lies the largest number. */
  f64 size = fabs(x), other = fabs(back);
  u32 step = size > other ? 1 : size < other ? 0xFFFFFFFFu : 0;
  return bits & 1 ? bits : bits + step;
}

/* a + b of f32 rounded to odd, where nothing underflows. */
ALWAYS u32 sum_odd32(f32 a, f32 b) {
  f32 total = a + b, part = total - a;
  f32 error = (a - (total - part)) + (b - part);
  u32 bits = canonical32(total), sign = bits32(error) ^ bits32(total);
  u32 step = error > 0 || error < 0 ? (sign >> 31 ? 0xFFFFFFFFu : 1) : 0;
  return bits & 1 ? bits : bits + step;
}

/* The same to f32, by a rounding. */
ALWAYS u32 round32(f64 x, s64 mode) {
  f32 near = (f32)x;
  f64 size = fabs(x), other = fabs((f64)near);
  u32 bits = canonical32(near);
  mode &= 3;
  int away = mode == RM ? x < 0 : mode == RP ? x > 0 : 0;
  u32 up = size > other && away ? 1 : 0, down = size < other && !away ? 1 : 0;
  return mode == RN ? bits : bits + up - down;
}

/* Sums by a rounding: an exact zero of unlike signs is -0 downwards. */
ALWAYS u32 add_mode32(f64 a, f64 b, s64 how) {
  f64 sum = sum_odd(a, b);
  if ((how & 3) == RM && sum == 0 && (bits64(a) ^ bits64(b)) >> 63) return 0x80000000u;
  return round32(sum, how);
}

ALWAYS u32 fma32(u32 a, u32 b, u32 c) {
#ifdef __FMA__
  return canonical32(__builtin_fmaf(value32(a), value32(b), value32(c)));
#else
  return canonical32((f32)sum_odd((f64)value32(a) * value32(b), value32(c)));
#endif
}

/* a * (1/b), where 1/b is zero for |b| above 2^126. */
ALWAYS u32 divide_approximately(u32 a, u32 b) {
  u32 m = b & 0x7FFFFFFFu;
  f32 lost = value32(a) * value32(b & 0x80000000u);
  return canonical32(m > 0x7E800000u && m < INF32 ? lost : value32(a) / value32(b));
}

/* min, max: a number wins over NaN unless `.NaN`, -0 < +0. */
ALWAYS u32 extreme32(u32 a, u32 b, int largest, s64 how) {
  a = input32(a, how), b = input32(b, how);
  f32 x = value32(a), y = value32(b);
  u32 r = (largest ? x > y : x < y) ? a : b;
  int bad = how & ALL_NAN ? x != x || y != y : x != x && y != y;
  r = x == y ? (largest ? a & b : a | b) : r;
  if (!(how & ALL_NAN)) r = x != x ? b : y != y ? a : r;
  r = bad ? NAN32 : r;
  return input32(r, how);
}

/* -- 16 bits --------------------------------------------------------------------------------- */

ALWAYS f32 half(u16 h) {
  u32 m = (u32)(h & 0x7FFF) << 13;
  u32 b = (h & 0x7C00) == 0x7C00 ? m | INF32 : bits32(value32(m) * 0x1p112f);
  return value32(b | (u32)(h & 0x8000) << 16);
}

ALWAYS f32 brain(u16 h) { return value32((u32)h << 16); }

/* f32 bits to f16 by a rounding. */
ALWAYS u16 half_of(u32 b, s64 mode) {
  u32 m = b & 0x7FFFFFFFu, negative = b >> 31;
  s32 e = (s32)(m >> 23) - 127;
  u32 shift = e >= -14 ? 13 : e < -26 ? 25 : (u32)(-1 - e);
  u32 s = (m & 0x7FFFFFu) | (m >= 0x800000u ? 0x800000u : 0);
  u32 q = s >> shift, rest = s & ((1u << shift) - 1), tie = 1u << (shift - 1);
  u32 up = 0, most = 0x7C00;
  mode &= 3;
  if (mode == RN) up = rest > tie || (rest == tie && (q & 1));
  if (mode == RM) up = rest && negative;
  if (mode == RP) up = rest && !negative;
  if (mode == RZ || (mode == RM && !negative) || (mode == RP && negative)) most = 0x7BFF;
  u32 r = (e >= -14 ? (u32)(e + 14) << 10 : 0) + q + up;
  r = r >= 0x7C00 ? most : r;
  r = m >= INF32 ? 0x7C00 : r;
  r |= negative << 15;
  return (u16)(m > INF32 ? NAN16 : r);
}

/* f32 bits to bf16 by a rounding. */
ALWAYS u16 brain_of(u32 b, s64 mode) {
  u32 m = b & 0x7FFFFFFFu, add = 0;
  mode &= 3;
  if (mode == RN) add = 0x7FFFu + (m >> 16 & 1);
  if (mode == (b >> 31 ? RM : RP)) add = 0xFFFFu;
  u32 r = m >= INF32 ? m : m + add;
  return (u16)(m > INF32 ? NAN16 : r >> 16 | (b >> 31 << 15));
}

ALWAYS u16 flush16(u16 b, u16 exponent) { return b & exponent ? b : b & 0x8000; }
/* .relu, .sat of 16 bits: one is the code of 1. */
ALWAYS u16 finish16(u16 b, s64 how, u16 exponent, u16 one) {
  int nan = (b & 0x7FFF) > exponent;
  if (how & FTZ) b = flush16(b, exponent);
  if (how & (SAT | RELU)) b = b & 0x8000 && !nan ? 0 : b;
  if (how & SAT) b = nan ? 0 : b < one ? b : one;
  return b;
}
ALWAYS u16 in_half(u16 b, s64 how) { return how & FTZ ? flush16(b, 0x7C00) : b; }
ALWAYS u16 out_half(u16 b, s64 how) { return finish16(b, how, 0x7C00, 0x3C00); }
ALWAYS u16 out_brain(u16 b, s64 how) { return finish16(b, how, 0x7F80, 0x3F80); }
ALWAYS u16 brain_odd(f64 x) { return brain_of(odd32(x), RN); }

ALWAYS u16 extreme16(u16 a, u16 b, f32 x, f32 y, int largest, s64 how) {
  u16 r = (largest ? x > y : x < y) ? a : b;
  int bad = how & ALL_NAN ? x != x || y != y : x != x && y != y;
  r = x == y ? (largest ? a & b : a | b) : r;
  if (!(how & ALL_NAN)) r = x != x ? b : y != y ? a : r;
  return bad ? NAN16 : r;
}
ALWAYS u16 extreme_half(u16 a, u16 b, int largest, s64 how) {
  a = in_half(a, how), b = in_half(b, how);
  return in_half(extreme16(a, b, half(a), half(b), largest, how), how);
}
ALWAYS u16 extreme_brain(u16 a, u16 b, int largest, s64 how) {
  return extreme16(a, b, brain(a), brain(b), largest, how);
}

/* -- floating point to integers -------------------------------------------------------------- */

/* Rounded to an integer in the value's own format, its sign kept. */
ALWAYS f64 whole(f64 x, s64 mode) {
  f64 r;
  switch (mode & 3) {
    case RZ: r = __builtin_trunc(x); break;
    case RM: r = __builtin_floor(x); break;
    case RP: r = __builtin_ceil(x); break;
    default: r = __builtin_rint(x);
  }
  return __builtin_copysign(r, x);
}

/* Out of range: the nearest end; nan: what NaN gives. */
ALWAYS u64 to_signed(f64 x, s64 mode, s64 low, s64 high, u64 nan) {
  f64 r = whole(x, mode);
  if (r != r) return nan;
  if (r >= -(f64)low) return (u64)high; /* -low is high + 1, exactly */
  if (r < (f64)low) return (u64)low;
  return (u64)(s64)r;
}
ALWAYS u64 to_unsigned(f64 x, s64 mode, u64 high, u64 nan) {
  f64 r = whole(x, mode);
  if (r != r) return nan;
  if (r >= (f64)(high / 2 + 1) * 2) return high;
  if (r < 0) return 0;
  return (u64)r;
}

/* -- integers -------------------------------------------------------------------------------- */

#define EXTREMES(t) \
  ALWAYS t min_##t(t x, t y) { return x < y ? x : y; } \
  ALWAYS t max_##t(t x, t y) { return x > y ? x : y; }
EXTREMES(u8) EXTREMES(u16) EXTREMES(u32) EXTREMES(u64)
EXTREMES(s8) EXTREMES(s16) EXTREMES(s32) EXTREMES(s64)

ALWAYS u64 high_u64(u64 x, u64 y) {
  u64 x0 = (u32)x, x1 = x >> 32, y0 = (u32)y, y1 = y >> 32;
  u64 middle = x1 * y0 + ((x0 * y0) >> 32);
  u64 second = x0 * y1 + (u32)middle;
  return x1 * y1 + (middle >> 32) + (second >> 32);
}
ALWAYS u64 high_s64(s64 x, s64 y) {
  return high_u64((u64)x, (u64)y) - (x < 0 ? (u64)y : 0) - (y < 0 ? (u64)x : 0);
}
ALWAYS u64 magnitude(s64 x) { return x < 0 ? 0 - (u64)x : (u64)x; }

/* Division by zero gives all ones, its remainder is the dividend. */
ALWAYS s64 divide(s64 a, s64 b) {
  if (b == 0) return -1;
  u64 q = magnitude(a) / magnitude(b);
  return (s64)((a < 0) != (b < 0) ? 0 - q : q);
}
ALWAYS s64 rest_of(s64 a, s64 b) {
  return b == 0 ? a : (s64)((u64)a - (u64)divide(a, b) * (u64)b);
}

ALWAYS u32 zeros32(u32 x) { return x ? (u32)__builtin_clz(x) : 32; }
ALWAYS u32 zeros64(u64 x) { return x ? (u32)__builtin_clzll(x) : 64; }

ALWAYS u64 reverse(u64 x) {
  x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
  x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
  x = (x >> 4 & 0x0F0F0F0F0F0F0F0Fu) | (x & 0x0F0F0F0F0F0F0F0Fu) << 4;
  x = (x >> 8 & 0x00FF00FF00FF00FFu) | (x & 0x00FF00FF00FF00FFu) << 8;
  x = (x >> 16 & 0x0000FFFF0000FFFFu) | (x & 0x0000FFFF0000FFFFu) << 16;
  return x >> 32 | x << 32;
}

ALWAYS u64 ones(u32 length) { return length >= 64 ? ~(u64)0 : ((u64)1 << length) - 1; }

ALWAYS u32 permute(u32 a, u32 b, u32 c) {
  u64 both = (u64)b << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; i++) {
    u32 by = c >> (4 * i);
    u32 byte = (u32)(both >> ((by & 7) * 8)) & 255;
    byte = by & 8 ? (byte >> 7) * 255 : byte;
    result |= byte << (8 * i);
  }
  return result;
}

/* The truth table over a = 0xF0, b = 0xCC, c = 0xAA. */
ALWAYS u32 look_up(u32 a, u32 b, u32 c, s64 table) {
  u32 result = 0;
  for (int row = 0; row < 8; row++) {
    u32 take = 0 - (u32)(table >> row & 1);
    result |= take & (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  }
  return result;
}

#endif
