/* Accesses that checks look at: included by straight_machine.h.
 *
 * An access of which a check has something to say, or that it would have to keep in Python, is left
 * undone: then the step of the instruction does it.
 */

#include "straight_ledgers.h"

/* -- undefined bits, and what it costs ----------------------------------------------------------- */

/* Whether bytes that are loaded have undefined bits. */
static int undefined(const uint8_t *bits, const Group *g, const uint8_t *patterns) {
  uint8_t any = 0;
  for (int64_t i = 0; i < g->count;) {
    int line = patterns && patterns[i / LANES] == LINE;
    int64_t length = line ? g->size * LANES : g->size;
    const uint8_t *from = bits + g->at[i];
    uint32_t word = 0;
    if (length == 4) {
      memcpy(&word, from, 4);
      any |= word != 0;
    } else {
      for (int64_t b = 0; b < length; b++) any |= from[b];
    }
    i += line ? LANES : 1;
  }
  return any != 0;
}

static void define(uint8_t *bits, const Group *g, const uint8_t *patterns) {
  for (int64_t i = 0; i < g->count;) {
    int line = patterns && patterns[i / LANES] == LINE;
    if (line) memset(bits + g->at[i], 0, (size_t)(g->size * LANES));
    else if (g->size == 4) memset(bits + g->at[i], 0, 4);
    else for (int64_t b = 0; b < g->size; b++) bits[g->at[i] + b] = 0;
    i += line ? LANES : 1;
  }
}

/* Whether a row has undefined bits in one of the lanes that take part. */
static int undefined_row(const Checks *c, const Operand *row, long warp, long warps,
                         const uint8_t *lanes) {
  const RegisterFile *files = (const RegisterFile *)at(c->files);
  Operand beside = *row;
  uint64_t room[GROUP], any = 0;
  int64_t n = 0;
  while (n < c->widths && row->base - files[n].first >= files[n].size) n++;
  if (!row->base || n == c->widths) return 0; /* a constant */
  beside.base += files[n].bits - files[n].first;
  if (beside.how == INVERTED) beside.how = STRIDED;
  const void *bits = read_row(&beside, warp, warps, room);
#define LOOK(type)                                           \
  for (long i = 0; i < warps * LANES; i++)                  \
    if (!lanes || lanes[i]) any |= ((const type *)bits)[i]; \
  break;
  switch (row->size) {
    case 1: LOOK(uint8_t)
    case 2: LOOK(uint16_t)
    case 4: LOOK(uint32_t)
    default: LOOK(uint64_t)
  }
#undef LOOK
  return any != 0;
}

/* Whether an instruction reads undefined bits, or writes where there are some: `count` operations,
 * the first of which are its own. */
static int in_doubt(const Checks *c, const Code *codes, int64_t count, const Operand *operands,
                    long warp, long warps, const uint8_t *mask) {
  uint8_t lanes[GROUP];
  for (const Code *code = codes; code < codes + count && code->number == codes->number; code++) {
    if (undefined_row(c, &code->guard, warp, warps, mask)) return 1;
    Share share = taking_part(&code->guard, mask, warp, warps, lanes);
    const uint8_t *some = share == EVERY ? 0 : lanes;
    if (share == NONE) continue;
    for (long i = 0; i < code->count; i++)
      if (undefined_row(c, operands + code->first + i, warp, warps, some)) return 1;
    if (undefined_row(c, &code->out, warp, warps, some)) return 1;
    if (undefined_row(c, &code->other, warp, warps, some)) return 1;
  }
  return 0;
}

/* Passes of the lanes of a warp that lie apart: `groups` of them are served one after the other. */
static int64_t passes_apart(const int64_t *where, int64_t size, int64_t groups) {
  int64_t total = 0, words = size < 4 ? 1 : size / 4, lanes = LANES / groups;
  for (int64_t first = 0; first < LANES; first += lanes) {
    uint8_t used[32] = {0}, most = 0; /* different words of each bank */
    int64_t last = -1;
    for (int64_t i = first; i < first + lanes; i++)
      for (int64_t word = where[i] / 4; word < where[i] / 4 + words; word++) {
        if (word != last) used[word & 31]++;
        most = used[word & 31] > most ? used[word & 31] : most;
        last = word;
      }
    total += most;
  }
  return total;
}

static int64_t sectors_apart(const int64_t *where) {
  int64_t total = 1;
  for (int64_t i = 1; i < LANES; i++) total += where[i] >> 5 != where[i - 1] >> 5;
  return total;
}

static int64_t least_of(const int64_t *where) {
  int64_t least = where[0];
  for (int64_t i = 1; i < LANES; i++) least = where[i] < least ? where[i] : least;
  return least;
}

/* Of 32 numbers: which are those of one before. */
static void repeated(const int32_t *restrict number, int32_t *restrict again) {
  for (int i = 0; i < LANES; i++) again[i] = 0;
  for (int i = 0; i < LANES; i++)
    for (int j = 0; j < LANES; j++) again[j] |= (number[j] == number[i]) & (j > i);
}

/* Different ones among the distances of lanes from the least, in units of 2^shift bytes. */
static int64_t different(const int64_t *where, int64_t least, int shift) {
  int32_t number[LANES], again[LANES];
  int64_t count = LANES;
  for (int i = 0; i < LANES; i++) number[i] = (int32_t)((where[i] >> shift) - (least >> shift));
  repeated(number, again);
  for (int i = 0; i < LANES; i++) count -= again[i];
  return count;
}

/* Passes of lanes in any order that are served together: they have 32 words. */
static int64_t passes_together(const int64_t *where, int words) {
  int32_t word[LANES], again[LANES], first[LANES], used[LANES] = {0}, most = 0;
  for (int i = 0; i < LANES; i++) word[i] = (int32_t)(where[i / words] / 4) + i % words;
  repeated(word, again);
  for (int i = 0; i < LANES; i++) word[i] &= 31, first[i] = again[i] ? -1 : word[i];
  for (int i = 0; i < LANES; i++)
    for (int j = 0; j < LANES; j++) used[j] += word[j] == first[i];
  for (int i = 0; i < LANES; i++) most = used[i] > most ? used[i] : most;
  return most;
}

/* Sectors, and those that the different lanes' bytes would fill. An access is aligned: it lies in one
 * sector. 0: lanes are too far from each other. */
static int sectors_any(const int64_t *where, int64_t size, int64_t *found) {
  int64_t least = least_of(where), far = 0;
  int shift = 0;
  for (int64_t i = 0; i < LANES; i++) far |= where[i] - least > INT32_MAX;
  if (far) return 0;
  while (size >> shift > 1) shift++;
  found[0] = different(where, least, 5);
  found[1] = (different(where, least, shift) * size + 31) / 32;
  return 1;
}

/* fragir_prices, of whole warps without a long look. */
static int prices(const Group *g, int shared, const uint8_t *patterns, int64_t *found) {
  if (!patterns) return fragir_prices(g->at, g->lanes, g->first, g->count, g->size, shared, found);
  int64_t groups = g->size > 4 ? g->size / 4 : 1; /* lanes are served together up to 128 bytes */
  for (int64_t i = 0; i < g->count; i += LANES) {
    const int64_t *where = g->at + i;
    int64_t one[4] = {groups, groups, 0, number_of(g, i) / LANES};
    Pattern pattern = patterns[i / LANES];
    if (pattern == ANY && shared) {
      int64_t lanes = LANES / groups;
      one[0] = 0;
      for (int64_t first = 0; first < LANES; first += lanes)
        one[0] += passes_together(where + first, (int)groups);
    } else if (pattern == ANY) {
      if (!sectors_any(where, g->size, one) &&
          !fragir_prices(where, 0, number_of(g, i), LANES, g->size, 0, one))
        return 0;
    } else if (!shared) {
      int64_t length = pattern == SAME ? g->size : g->size * LANES;
      one[0] = pattern == APART ? sectors_apart(where)
                                : (where[0] + length - 1) / 32 - where[0] / 32 + 1;
      one[1] = (length + 31) / 32;
    } else if (pattern == APART) {
      one[0] = passes_apart(where, g->size, groups);
    }
    one[2] = one[0] - one[1];
    found[0] += one[0];
    found[1] += one[1];
    if (one[2] > found[2]) found[2] = one[2], found[3] = one[3];
  }
  return 1;
}

/* Whether a lane may access what lies beside the variable that it means. */
static int beside(const Checks *c, const Watched *w, int space, const Group *g) {
  if (w->space < 0) return 0;
  if (w->space != space) return 1;
  const int64_t *home = space == GLOBAL ? 0
                        : (const int64_t *)at(space == SHARED ? c->shared_home : c->local_home);
  int64_t bad = 0;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t own = g->at[i] - (home ? home[number_of(g, i)] : 0);
    bad |= (own < w->low) | (own > w->high);
  }
  return bad != 0;
}

/* -- values that are stored ----------------------------------------------------------------------- */

/* One access of all warps of a call; `base`: the arena in which positions are. */
typedef struct {
  const Code *code;
  const Operand *operands;
  const Memory *memory;
  const Warps *warps;
  int64_t base;
  int served; /* whether it is done already */
} Access;

/* Does an access at the positions that were found; `compare`: only looks whether a store would
 * change anything. */
static int serve(const Access *a, const int64_t *where, int compare) {
  uint64_t places[GROUP];
  uint8_t lanes[GROUP];
  int64_t count = 0, warp, n;
  const uint8_t *mask;
  for (int64_t index = 0; index < a->warps->count; index += n) {
    n = chunk(a->warps, index, &warp, &mask);
    Share share = taking_part(&a->code->guard, mask, warp, n, lanes);
    if (share == NONE) continue;
    const uint8_t *some = share == EVERY ? 0 : lanes;
    for (int64_t i = 0; i < n * LANES; i++)
      if (!some || some[i]) places[i] = (uint64_t)(where[count++] + a->base);
    if (!compare) move(a->code, a->operands, a->memory, warp, n, some, places);
    else if (!stored(a->code, a->operands, warp, n, some, places)) return 0;
  }
  return 1;
}

/* The bytes of an access of all lanes, to another place one behind the other, or back. */
static void keep_bytes(char *arena, const Group *g, char *kept, int back) {
#define KEEP_BYTES(size)                                                              \
  for (int64_t i = 0; i < g->count; i++) {                                            \
    char *there = arena + g->at[i], *here = kept + i * (size);                        \
    if (back) memcpy(there, here, (size_t)(size));                                    \
    else memcpy(here, there, (size_t)(size));                                         \
  }                                                                                   \
  break;
  switch (g->size) {
    case 4: KEEP_BYTES(4)
    case 8: KEEP_BYTES(8)
    default: KEEP_BYTES(g->size)
  }
#undef KEEP_BYTES
}

/* What is known of the values of a store (planes.h). Where memory has not got them it is done; what
 * was there is kept. */
static int values_of(Access *a, const Group *g, char *kept) {
  if (serve(a, g->at, 1)) return KEPT;
  keep_bytes(at((uint64_t)a->base), g, kept, 0);
  a->served = serve(a, g->at, 0);
  return serve(a, g->at, 1) ? AGREED : ANYTHING;
}

/* Notes an access, where that is all; a store may be harmless by its values, as it mostly is where
 * it was the last time. */
static int note(Checks *c, Watched *w, Access *a, int shared, const Group *g,
                const uint8_t *patterns) {
  Knowledge *k = (Knowledge *)at(c->knowledge);
  char *kept = at(c->bytes);
  int store = a->code->kind == STORE, done = 0;
  for (int turn = 0; turn <= store && !done; turn++) {
    int values = store && turn == !w->values;
    if (values) k->values = values_of(a, g, kept);
    if (!values || k->values != ANYTHING)
      done = shared ? note_shared(c, w, store, g, patterns) : note_global(c, w, store, g, patterns);
    if (a->served && !done) {
      keep_bytes(at((uint64_t)a->base), g, kept, 1);
      a->served = 0;
    }
    if (done) w->values = values;
    k->values = ANYTHING;
  }
  return done;
}

/* -- all of it ----------------------------------------------------------------------------------- */

/* Looks at an access to one space, and notes it; `full`: of all lanes of its warps. 0: it must be
 * looked at elsewhere. */
static int look(Checks *c, Watched *w, Access *a, int space, const Group *g, int full) {
  int store = a->code->kind == STORE;
  int64_t found[4] = {0, 0, 0, 0};
  uint8_t *patterns = full ? (uint8_t *)at(c->patterns) : 0;
  for (int64_t i = 0; full && i < g->count; i += LANES)
    patterns[i / LANES] = (uint8_t)pattern_of(g->at + i, g->size);
  int shared = space == SHARED;
  uint64_t plane = shared ? c->shared_bits : space == LOCAL ? c->local_bits : 0;
  if (beside(c, w, space, g)) return 0;
  if (plane && !store && undefined((const uint8_t *)at(plane), g, patterns)) return 0;
  if (w->priced && space != LOCAL) {
    if (!prices(g, shared, patterns, found)) return 0;
    int64_t warp = c->first_warp + found[3];
    if (found[2] && (found[2] > w->excess[shared] ||
                     (found[2] == w->excess[shared] && warp < w->warp[shared])))
      return 0;
  }
  if (w->races && space != LOCAL && !note(c, w, a, shared, g, patterns)) return 0;
  w->paid[shared] += found[0];
  w->needed[shared] += found[1];
  if (plane && store) define((uint8_t *)at(plane), g, patterns);
  return 1;
}

/* A barrier where all lanes of all blocks are. */
static void join(Checks *c) {
  int32_t *floor = (int32_t *)at(c->floor), now = (int32_t)c->now, lowest = now;
  for (int64_t i = 0; i < c->resident * LANES; i++) floor[i] = now;
  for (int64_t i = c->resident * LANES; i < c->warps * LANES; i++)
    lowest = floor[i] < lowest ? floor[i] : lowest;
  memset(at(c->uneven), 0, (size_t)c->resident);
  c->lowest = lowest;
  c->now++;
}
