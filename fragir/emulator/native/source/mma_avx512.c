/* Tensor-core steps for processors with AVX-512 too: more registers. */

#include "core.h"

#if defined(__x86_64__) && defined(__GNUC__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512dq,avx512bw,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,avx512f,avx512dq,avx512bw,avx512vl")
#endif
#define LEVEL 2
#define NAME(x) fragir_##x##_avx512
#include "mma_body.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
