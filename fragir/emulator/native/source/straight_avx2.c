/* Straight-line runs for AVX2, FMA and F16C. */
#include "straight.h"
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#define __FMA__ 1
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define MACHINE straight_avx2
#include "straight_machine.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
