/* Straight-line runs: what the functions compute, and the machine for the CPU that it runs on. */
#include "straight.h"

static const char NAMES[] =
#define OF1(name, R, A, e) #R " " #A ": " #e "\n"
#define OF2(name, R, A, B, e) #R " " #A " " #B ": " #e "\n"
#define OF3(name, R, A, B, C, e) #R " " #A " " #B " " #C ": " #e "\n"
#define OF4(name, R, A, B, C, D, e) #R " " #A " " #B " " #C " " #D ": " #e "\n"
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
