/* Which library this is, and what the CPU can do. */

#include "core.h"

#include <stdlib.h>

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#include <cpuid.h>
#define IS_X86 1
#endif

#ifndef FRAGIR_CORE_SOURCES
#define FRAGIR_CORE_SOURCES 0
#endif

EXPORT int fragir_core_version(void) { return FRAGIR_CORE_VERSION; }

EXPORT uint32_t fragir_core_sources(void) { return (uint32_t)FRAGIR_CORE_SOURCES; }

static int level_of_cpu(void) {
#ifdef IS_X86
  /* __builtin_cpu_supports asks the system too whether it saves the wide registers. F16C has no
   * name in older compilers: its bit is read; what it needs of the system, AVX needs as well. */
  unsigned a = 0, b = 0, c = 0, d = 0;
  __builtin_cpu_init();
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_F16C)) return LEVEL_BASE;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return LEVEL_BASE;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return LEVEL_AVX512;
  return LEVEL_AVX2;
#else
  return LEVEL_BASE;
#endif
}

EXPORT int fragir_core_level(void) {
  static int known = -1; /* two threads that ask at once find the same */
  if (known < 0) {
    int level = level_of_cpu();
    const char *asked = getenv("FRAGIR_CORE_LEVEL");
    if (asked && asked[0] >= '0' && asked[0] <= '2' && !asked[1] && asked[0] - '0' < level)
      level = asked[0] - '0';
    known = level;
  }
  return known;
}
