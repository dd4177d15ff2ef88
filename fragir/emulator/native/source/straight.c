/* Straight-line runs: the names of the functions, and the machine for the CPU that it runs on. */
#include "straight.h"

static const char NAMES[] =
#define OF1(name, ...) #name " "
#define OF2(name, ...) #name " "
#define OF3(name, ...) #name " "
#define OF4(name, ...) #name " "
#include "straight_list.h"
    ;

EXPORT const char *fragir_straight_names(void) { return NAMES; }

EXPORT int64_t fragir_straight(Walk *walk, int64_t first, int64_t count, const int64_t *list,
                               const uint8_t *mask, int64_t from, int64_t on) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
  int level = fragir_core_level();
  if (level >= LEVEL_AVX512) return straight_avx512(walk, first, count, list, mask, from, on);
  if (level >= LEVEL_AVX2) return straight_avx2(walk, first, count, list, mask, from, on);
#endif
  return straight_base(walk, first, count, list, mask, from, on);
}
