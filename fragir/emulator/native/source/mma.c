/* Tensor-core steps: for any processor, and which of the versions runs. */

#include "core.h"

#define LEVEL 0
#define NAME(x) fragir_##x##_base
#include "mma_body.h"

#if defined(__x86_64__) && defined(__GNUC__)
int fragir_mma_avx2(const Mma *, int64_t, int64_t, int64_t, int64_t);
int fragir_mma_avx512(const Mma *, int64_t, int64_t, int64_t, int64_t);
int fragir_wgmma_avx2(const Wgmma *, int64_t, int64_t, int, int);
int fragir_wgmma_avx512(const Wgmma *, int64_t, int64_t, int, int);
#define CHOOSE(x, ...)                                                     \
  switch (fragir_core_level()) {                                           \
  case LEVEL_BASE: return fragir_##x##_base(__VA_ARGS__);                  \
  case LEVEL_AVX2: return fragir_##x##_avx2(__VA_ARGS__);                  \
  default: return fragir_##x##_avx512(__VA_ARGS__);                        \
  }
#else
#define CHOOSE(x, ...) return fragir_##x##_base(__VA_ARGS__);
#endif

/* The structures' sizes, for Python to compare with its own. */
EXPORT int fragir_mma_sizes(int which) {
  return which == 0 ? (int)sizeof(Plan) : which == 1 ? (int)sizeof(Mma) : (int)sizeof(Wgmma);
}

EXPORT int fragir_mma(const Mma *job, int64_t first, int64_t last, int64_t i0, int64_t i1) {
  CHOOSE(mma, job, first, last, i0, i1)
}

EXPORT int fragir_wgmma(const Wgmma *job, int64_t first, int64_t last, int v0, int v1) {
  CHOOSE(wgmma, job, first, last, v0, v1)
}
