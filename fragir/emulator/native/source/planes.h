/* What checks remember beside memory: who accessed a place last (checks/races).
 *
 * A record is one access in 63 bits (checks/races/clocks.py): from high to low its time, one bit of
 * strength, 16 of its instruction, 16 of its column: the lane in its cluster, or an agent. Functions
 * here do the common case of an access, or say that numpy must do it: then they have changed nothing.
 */
#ifndef FRAGIR_PLANES_H
#define FRAGIR_PLANES_H

#include "core.h"

#define COLUMN ((int64_t)0xFFFF)
#define WARP (COLUMN >> 5 << 5)
#define STRONG ((int64_t)1 << 32)

enum { TIME = 33, SITE = 16 }; /* bits of a record below these */
/* What of a place of global memory is kept: the last write, read, read of another cluster. */
enum { WRITE_KIND = 0, READ_KIND = 1, FAR_KIND = 2 };

/* What is known of the values of a store: nothing; that lanes store the same where they share bytes;
 * that memory has them already. */
enum { ANYTHING = 0, AGREED = 1, KEPT = 2 };

/* Who knows what of whom: checks/races/clocks.py has the arrays, by lane of the machine. */
typedef struct {
  const int32_t *floor, *warp_floor;
  const int32_t *known; /* [lane][column]; its first plane */
  const int64_t *own;   /* the column of each lane */
  int64_t width;        /* columns */
  int64_t block;        /* lanes of a block */
  const int32_t *owner_of;
  const int8_t *strengths; /* of the instructions, the last for all others */
  int64_t sites;
  int64_t entire;   /* whether what would leave anything to numpy leaves all to it */
  int64_t values;   /* what is known of those of the store at hand, where it is so */
  int64_t *old;     /* where that has to be taken back: room for what was there, */
  int32_t *old_owners;
  int64_t old_room; /* so many places */
  uint8_t *excused; /* of each site: its bytes had to be those of another store; behind them: those
                     * that a kernel has found */
} Knowledge;

/* The instruction of a record was excused from a race by the bytes that were stored. */
static inline void excuse(const Knowledge *k, int64_t rec) { k->excused[rec >> SITE & COLUMN] = 1; }

/* The same of an access to global memory: what was there may be from before the launch. */
static inline void excuse_there(const Knowledge *k, int64_t rec, int32_t owner) {
  if (owner) excuse(k, rec);
  else k->excused[COLUMN + 1] = 1;
}

/* Whether a lane does not know an access (Clocks.unordered). */
static inline int unknown(const Knowledge *k, int64_t lane, int64_t own, int64_t rec) {
  int64_t time = rec >> TIME;
  if (time <= k->floor[lane]) return 0;
  int64_t column = rec & COLUMN;
  if (column == own) return 0;
  if (column >> 5 == own >> 5 && time <= k->warp_floor[lane]) return 0;
  if (column >= k->width) column = k->width - 1;
  return time > k->known[lane * k->width + column];
}

/* Whether a write is of a live mbarrier, or still to come. */
static inline int special(int64_t rec, int64_t now) {
  return ((rec & COLUMN) == COLUMN) | (rec >> TIME > now);
}

/* Whether the last access to a place of global memory is of the warp of a lane. */
static inline int of_own_warp(int64_t rec, int32_t owner, int64_t own, int32_t mine) {
  return (owner == mine) & (((rec ^ own) & WARP) == 0);
}

/* The same of the lane itself. */
static inline int of_own_lane(int64_t rec, int32_t owner, int64_t own, int32_t mine) {
  return (owner == mine) & (((rec ^ own) & COLUMN) == 0);
}

/* The lanes of an access: at[i] is the byte position of lanes[i], or of first + i. */
typedef struct {
  const int64_t *at, *lanes;
  int64_t first, count, size; /* size: bytes of each */
} Group;

/* checks/races/shared_places.py. */
typedef struct {
  int64_t *written, *read;
  uint32_t *masks;
  int32_t *read_time;
  uint8_t *logged;
  const int64_t *slot_of, *block_of;
  int64_t columns, places, shift, stride, alone; /* read, masks: [column][place] */
  const int64_t *chunks; /* [16 bytes][slot]: what the asynchronous proxy has read */
  int64_t slots;
  /* Room for what a call has to remember of each place that it accesses, and for what it gives
   * back: reads that it has pushed out. */
  int64_t *before, *pushed_places, *pushed_records;
  uint32_t *before_masks, *pushed_masks;
  int64_t pushed, room; /* how many were pushed out; places that there is room for */
} SharedLedger;

/* checks/races/ledger.py: [write, read, read elsewhere][row]. */
typedef struct {
  int64_t *records;
  int32_t *owners;
  int64_t rows;
  const int64_t *table; /* of pages; NULL: a row is a place */
  int64_t start, size, shift, page_shift;
  int64_t noted;  /* a bit for each kind that may have records */
  int64_t copied; /* whether copies have read what is not noted yet */
} GlobalLedger;

/* The row of the first place of an access; -1: its page has none, or it is in another buffer. */
static inline int64_t row_of(const GlobalLedger *l, int64_t at) {
  int64_t offset = at - l->start;
  if (offset < 0 || offset >= l->size) return -1;
  if (!l->table) return offset >> l->shift;
  int64_t page = l->table[offset >> l->page_shift];
  int64_t inside = offset & (((int64_t)1 << l->page_shift) - 1);
  return page < 0 ? -1 : (page << (l->page_shift - l->shift)) + (inside >> l->shift);
}

enum {
  DONE = 0,
  BY_NUMPY = 1, /* nothing is done */
  OVERLAP = 2,  /* several lanes of the step have written one place; in global memory, warps */
  LANES_TOO = 4, /* lanes of a warp have, and an update of that place may be lost */
  PUSHED = 8,    /* reads were pushed out */
  LOGGED = 16,   /* the log has reads of these places */
  ELSEWHERE = 32 /* reads of another cluster were noted */
};

/* `base`: the record without its column; `lowest`: the time up to which all know all. */
EXPORT int fragir_shared_read(const Knowledge *k, SharedLedger *s, const Group *g, int64_t base,
                              int64_t lowest);
EXPORT int fragir_shared_write(const Knowledge *k, SharedLedger *s, const Group *g, int64_t base,
                               int64_t lowest, int logs);

/* `scope`: of a strong access, else 0. `noted`: a bit for each kind that may have records.
 * `updates`: whether the stored values may come from loads. */
EXPORT int fragir_global_read(const Knowledge *k, const GlobalLedger *l, const Group *g,
                              int64_t base, int scope, int noted);
EXPORT int fragir_global_write(const Knowledge *k, const GlobalLedger *l, const Group *g,
                               int64_t base, int scope, int noted, int updates);

/* What accesses of `count` ascending lanes cost, of `size` bytes each: passes of shared memory
 * (checks/conflicts.py), or sectors of global memory. `found`: paid, needed, the most that a warp
 * pays more than it must, and the first warp that does. 0: lanes do not ascend, nothing is done. */
EXPORT int fragir_prices(const int64_t *at, const int64_t *lanes, int64_t first, int64_t count,
                         int64_t size, int shared, int64_t *found);

#endif
