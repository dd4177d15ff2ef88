/* Sums of products in Z/m for m = 2^bits - rest: see fragir/algebra/fields.py. */

#include "core.h"

enum { AT_ONCE = 4, /* products below 2^62 each, and what was folded before */
       BLOCK = 128 };

static inline uint64_t folded(uint64_t x, int bits, uint64_t rest) {
  return (x >> bits) * rest + (x & (((uint64_t)1 << bits) - 1));
}

/* d[m][n][w] = c[m][n][w] + sum over k of a[k][m][w] * b[k][n][w], elements below m. */
EXPORT void fragir_field_products(const uint32_t *a, const uint32_t *b, const uint32_t *c,
                                  uint32_t *d, int64_t k, int64_t m, int64_t n, int64_t w,
                                  int32_t bits, uint32_t rest) {
  const uint64_t modulus = ((uint64_t)1 << bits) - rest;
  uint64_t sum[BLOCK];
  for (int64_t first = 0; first < w; first += BLOCK) {
    const int64_t count = w - first < BLOCK ? w - first : BLOCK;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        const uint32_t *old = c + (i * n + j) * w + first;
        uint32_t *to = d + (i * n + j) * w + first;
        for (int64_t x = 0; x < count; x++) sum[x] = old[x];
        for (int64_t start = 0; start < k; start += AT_ONCE) {
          const int64_t end = start + AT_ONCE < k ? start + AT_ONCE : k;
          for (int64_t at = start; at < end; at++) {
            const uint32_t *left = a + (at * m + i) * w + first;
            const uint32_t *right = b + (at * n + j) * w + first;
            for (int64_t x = 0; x < count; x++) sum[x] += (uint64_t)left[x] * right[x];
          }
          for (int64_t x = 0; x < count; x++) sum[x] = folded(sum[x], bits, rest);
        }
        for (int64_t x = 0; x < count; x++) {
          uint64_t y = folded(folded(sum[x], bits, rest), bits, rest);
          while (y >= modulus) y -= modulus;
          to[x] = (uint32_t)y;
        }
      }
  }
}

/* -- elements beside bytes: see fragir/emulator/checks/algebra/numbers.py ------------------------ */

enum { PLANES = 4, IN_ELEMENT = 8, DATA = 0x80 };
#define DOUBT ((uint32_t)1 << 31)

static inline uint64_t word_at(const void *words, int64_t i, int32_t item) {
  switch (item) {
    case 1: return ((const uint8_t *)words)[i];
    case 2: return ((const uint16_t *)words)[i];
    case 4: return ((const uint32_t *)words)[i];
    default: return ((const uint64_t *)words)[i];
  }
}

/* The row that stands in `size` bytes of the words, the `part`th such of each, of every plane: 0
 * where there is none. broken: where there are numbers of bytes that are no element of that form.
 * How many are broken. */
EXPORT int64_t fragir_element_rows(const void *const *planes, int32_t item, int32_t size,
                                   int32_t part, int32_t form, const uint8_t *flags, int64_t count,
                                   int64_t *rows, uint8_t *broken) {
  const uint64_t mask = size == 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * size) - 1;
  const uint64_t ones = 0x0101010101010101u & mask, steps = 0x0706050403020100u & mask;
  const int shift = 8 * size * part;
  int64_t found = 0;
  for (int64_t i = 0; i < count; i++) {
    uint64_t id = 0, some = 0;
    int fits = 1;
    for (int plane = 0; plane < PLANES; plane++) {
      uint64_t word = word_at(planes[plane], i, item) >> shift & mask;
      uint64_t byte = word & 0xFF;
      fits &= word == byte * ones + (plane ? 0 : steps);
      some |= word;
      id |= byte << 8 * plane;
    }
    fits = fits && id && id % IN_ELEMENT == 0 && (flags[id / IN_ELEMENT] & ~DATA) == form;
    rows[i] = fits ? (int64_t)(id / IN_ELEMENT) : 0;
    broken[i] = some && !fits;
    found += broken[i];
  }
  return found;
}

/* Rows of the table: how many of them are row 0. */
EXPORT int64_t fragir_element_values(const uint32_t *table_p, const uint32_t *table_q,
                                     const uint8_t *flags, int64_t rounds, const int64_t *rows,
                                     int64_t count, uint64_t *p, uint64_t *q, uint8_t *doubt,
                                     uint8_t *data) {
  int64_t none = 0;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t *from_p = table_p + rows[i] * rounds, *from_q = table_q + rows[i] * rounds;
    for (int64_t r = 0; r < rounds; r++) {
      uint32_t value = from_p[r];
      p[i * rounds + r] = value & ~DOUBT;
      doubt[i * rounds + r] = value >= DOUBT;
      q[i * rounds + r] = from_q[r];
    }
    data[i] = flags[rows[i]] >= DATA;
    none += rows[i] == 0;
  }
  return none;
}

/* What bytes of every plane name together. */
static inline uint32_t id_at(uint8_t *const *planes, int64_t i) {
  return planes[0][i] | (uint32_t)planes[1][i] << 8 | (uint32_t)planes[2][i] << 16 |
         (uint32_t)planes[3][i] << 24;
}

/* Marks the rows that bytes name. */
EXPORT void fragir_element_mark(uint8_t *const *planes, int64_t count, uint8_t *alive) {
  for (int64_t i = 0; i < count; i++) alive[id_at(planes, i) / IN_ELEMENT] = 1;
}

/* Names the places to which rows have moved. */
EXPORT void fragir_element_move(uint8_t *const *planes, int64_t count, const int64_t *places) {
  for (int64_t i = 0; i < count; i++) {
    uint32_t id = id_at(planes, i);
    if (!id) continue;
    uint32_t moved = (uint32_t)(IN_ELEMENT * places[id / IN_ELEMENT] + id % IN_ELEMENT);
    for (int plane = 0; plane < PLANES; plane++) planes[plane][i] = (uint8_t)(moved >> 8 * plane);
  }
}
