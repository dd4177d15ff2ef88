/* What all files of the compiled core share.
 *
 * Plain C11 without Python's headers: one library serves every Python, which calls it by ctypes.
 * Functions that Python calls are EXPORT and named fragir_*; they keep no state of their own, so
 * that several threads may call them at once.
 */
#ifndef FRAGIR_CORE_H
#define FRAGIR_CORE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

/* To be changed with every change of what an exported function takes or gives;
 * VERSION in library.py is the same number, a library with another one is not used. */
#define FRAGIR_CORE_VERSION 9

/* Levels of a CPU. Code for more than LEVEL_BASE stands in files that name its target, as
 * `#pragma GCC target("avx2,fma,f16c")`, and is called where fragir_core_level() allows it. */
enum {
  LEVEL_BASE = 0,   /* what the compiler takes without being told */
  LEVEL_AVX2 = 1,   /* AVX2, FMA and F16C */
  LEVEL_AVX512 = 2, /* and AVX-512 F, DQ, BW, VL */
};

EXPORT int fragir_core_version(void);

/* The number of the sources that the library was built from, as setup.py computes it. */
EXPORT uint32_t fragir_core_sources(void);

/* The highest level that this CPU and its system have; the environment variable FRAGIR_CORE_LEVEL
 * (0, 1 or 2) lowers it. Asked once, then remembered. */
EXPORT int fragir_core_level(void);

#endif
