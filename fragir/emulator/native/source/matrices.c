/* ldmatrix and stmatrix: rows of 16 bytes of shared memory to registers of whole warps, and back. */

#include "core.h"

#include <string.h>

/* instructions/warp_matrix.py has the same structure. Strides are in bytes. */
typedef struct {
  const char *address;     /* of warp 0, lane 0 */
  int64_t warp_stride, lane_stride;
  uint64_t offset;         /* added to every address */
  uint64_t window;         /* where shared memory begins among generic addresses of 64 bits */
  uint8_t *shared;         /* the arena */
  const int64_t *home;     /* [warp][32]: where the cluster's bytes begin in it */
  const uint8_t *poison;   /* a byte for four of shared memory; NULL: nothing is pending */
  int64_t size, stride;    /* of a block's shared memory: what it has, and from block to block */
  int64_t cluster;
  uint32_t *file;          /* registers [register][warp][32] */
  const int64_t *registers;
  int64_t pitch;           /* words from register to register */
  const int32_t *parts;    /* [32 / bits][count * 32]: units of the rows by registers */
  int32_t count, bits;
  int32_t rows;            /* addresses: of the lanes 0.. */
  int32_t wide;            /* addresses have 64 bits */
} Matrices;

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

enum { LANES = 32, ROW = 16, RANK_SHIFT = 24 };

/* Where the rows of a warp lie in the arena; 0: some lie nowhere, or are yet to be written. */
static int locate(const Matrices *m, int64_t warp, int64_t *at) {
  const char *address = m->address + warp * m->warp_stride;
  for (int row = 0; row < m->rows; row++, address += m->lane_stride) {
    uint64_t where;
    if (m->wide) {
      memcpy(&where, address, 8);
      where += m->offset;
      if (where >= m->window) where -= m->window;
    } else {
      uint32_t narrow;
      memcpy(&narrow, address, 4);
      where = (uint32_t)(narrow + (uint32_t)m->offset);
    }
    uint64_t rank = 0, offset = where;
    if (m->cluster > 1) rank = where >> RANK_SHIFT, offset = where & ((1 << RANK_SHIFT) - 1);
    if (offset & (ROW - 1) || offset + ROW > (uint64_t)m->size || rank >= (uint64_t)m->cluster)
      return 0;
    at[row] = (int64_t)offset + m->home[warp * LANES + row] + (int64_t)rank * m->stride;
    if (m->poison) {
      uint32_t pending;
      memcpy(&pending, m->poison + at[row] / 4, 4);
      if (pending) return 0;
    }
  }
  return 1;
}

ALWAYS_INLINE uint32_t unit(const uint8_t *rows, int32_t index, const int bits) {
  if (bits == 8) return rows[index];
  uint16_t half;
  memcpy(&half, rows + 2 * index, 2);
  return half;
}

ALWAYS_INLINE void load(const Matrices *m, int64_t warp, const uint8_t *rows, const int bits) {
  int words = m->count * LANES;
  for (int r = 0; r < m->count; r++) {
    uint32_t *to = m->file + m->registers[r] * m->pitch + warp * LANES;
    const int32_t *parts = m->parts + r * LANES;
    for (int lane = 0; lane < LANES; lane++) {
      uint32_t word = 0;
      for (int part = 0; part < 32 / bits; part++)
        word |= unit(rows, parts[part * words + lane], bits) << part * bits;
      to[lane] = word;
    }
  }
}

ALWAYS_INLINE void unload(const Matrices *m, int64_t warp, uint8_t *rows, const int bits) {
  int words = m->count * LANES;
  for (int r = 0; r < m->count; r++) {
    const uint32_t *from = m->file + m->registers[r] * m->pitch + warp * LANES;
    const int32_t *parts = m->parts + r * LANES;
    for (int lane = 0; lane < LANES; lane++)
      for (int part = 0; part < 32 / bits; part++) {
        uint32_t value = from[lane] >> part * bits;
        memcpy(rows + parts[part * words + lane] * (bits / 8), &value, bits / 8);
      }
  }
}

static int64_t warp_of(const int64_t *warps, int64_t first, int64_t i) {
  return warps ? warps[i] : first + i;
}

/* Whether all warps can be done: none is begun before. */
static int possible(const Matrices *m, const int64_t *warps, int64_t first, int64_t count) {
  int64_t at[LANES];
  for (int64_t i = 0; i < count; i++)
    if (!locate(m, warp_of(warps, first, i), at)) return 0;
  return 1;
}

/* Warps `warps[0..count)`, or `first` and those behind it. 0: not possible, and nothing is done.
 * The bytes of the arena are little-endian, as the processor must be. */
ALWAYS_INLINE int move(const Matrices *m, const int64_t *warps, int64_t first, int64_t count,
                       const int loads) {
  int64_t at[LANES];
  uint8_t rows[LANES * ROW];
  if (!possible(m, warps, first, count)) return 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t warp = warp_of(warps, first, i);
    locate(m, warp, at);
    if (loads) {
      for (int row = 0; row < m->rows; row++) memcpy(rows + row * ROW, m->shared + at[row], ROW);
      if (m->bits == 16) load(m, warp, rows, 16);
      else load(m, warp, rows, 8);
    } else {
      if (m->bits == 16) unload(m, warp, rows, 16);
      else unload(m, warp, rows, 8);
      for (int row = 0; row < m->rows; row++) memcpy(m->shared + at[row], rows + row * ROW, ROW);
    }
  }
  return 1;
}

EXPORT int fragir_load_matrices(const Matrices *m, const int64_t *warps, int64_t first,
                                int64_t count) {
  return move(m, warps, first, count, 1);
}

EXPORT int fragir_store_matrices(const Matrices *m, const int64_t *warps, int64_t first,
                                 int64_t count) {
  return move(m, warps, first, count, 0);
}
