/* Tensor-core steps for processors with AVX2, FMA and F16C. */

#include "core.h"

#if defined(__x86_64__) && defined(__GNUC__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define LEVEL 1
#define NAME(x) fragir_##x##_avx2
#include "mma_body.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
