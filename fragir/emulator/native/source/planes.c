/* What checks remember beside memory: see planes.h. */

#include "planes.h"

enum { BLOCK_SCOPE = 1, CLUSTER_SCOPE = 2, DEVICE_SCOPE = 3 };

static inline int64_t lane_of(const Group *g, int64_t i) {
  return g->lanes ? g->lanes[i] : g->first + i;
}

/* Whether positions ascend: then no two lanes access one place. */
static int apart(const Group *g) {
  for (int64_t i = 1; i < g->count; i++)
    if (g->at[i] <= g->at[i - 1]) return 0;
  return 1;
}

/* -- shared memory ----------------------------------------------------------------------------- */

static inline int64_t parts_of(int64_t size, int64_t shift) {
  int64_t parts = size >> shift;
  return parts < 1 ? 1 : parts;
}

/* The reads of a lane are kept in the column of its warp, those of other blocks in the last one. */
static inline int64_t slot(const SharedLedger *s, int64_t at, int64_t lane) {
  if (s->alone || at / s->stride == s->block_of[lane]) return s->slot_of[lane];
  return s->columns - 1;
}

static void note_reads(const Knowledge *k, SharedLedger *s, const Group *g, int64_t base,
                       int64_t lowest, int single, int settled) {
  int64_t parts = parts_of(g->size, s->shift), count = 0;
  int late = 0;
  for (int64_t i = 0; i < g->count && !settled; i++) {
    int64_t column = slot(s, g->at[i], lane_of(g, i));
    for (int64_t p = 0; p < parts; p++, count++) {
      int64_t index = column * s->places + (g->at[i] >> s->shift) + p;
      s->before[count] = s->read[index];
      s->before_masks[count] = s->masks[index];
      late |= s->before[count] >> TIME > lowest;
    }
  }
  for (int64_t i = 0; i < g->count; i++) {
    int64_t lane = lane_of(g, i), column = slot(s, g->at[i], lane);
    for (int64_t p = 0; p < parts; p++) {
      int64_t place = (g->at[i] >> s->shift) + p, index = column * s->places + place;
      s->read[index] = base | k->own[lane];
      s->masks[index] = (uint32_t)1 << (lane & 31);
      s->read_time[place] = (int32_t)(base >> TIME);
    }
  }
  if (single && !late) return;
  for (int64_t i = 0; i < g->count && !single; i++) { /* several lanes read one place together */
    int64_t lane = lane_of(g, i), column = slot(s, g->at[i], lane);
    for (int64_t p = 0; p < parts; p++) {
      int64_t index = column * s->places + (g->at[i] >> s->shift) + p;
      if (s->read[index] != (base | k->own[lane]))
        s->masks[index] |= (uint32_t)1 << (lane & 31);
    }
  }
  if (!late) return;
  count = 0;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t lane = lane_of(g, i), column = slot(s, g->at[i], lane), own = k->own[lane];
    for (int64_t p = 0; p < parts; p++, count++) {
      int64_t place = (g->at[i] >> s->shift) + p, index = column * s->places + place;
      int64_t before = s->before[count];
      if (before >> TIME <= lowest || s->read[index] != (base | own)) continue;
      if (!((before ^ own) & WARP) && !(s->before_masks[count] & ~s->masks[index])) continue;
      s->pushed_places[s->pushed] = place;
      s->pushed_records[s->pushed] = before;
      s->pushed_masks[s->pushed++] = s->before_masks[count];
    }
  }
}

EXPORT int fragir_shared_read(const Knowledge *k, SharedLedger *s, const Group *g, int64_t base,
                              int64_t lowest) {
  int64_t parts = parts_of(g->size, s->shift);
  if (!k->entire) s->pushed = 0;
  if (s->pushed + parts * g->count > s->room) return BY_NUMPY;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t lane = lane_of(g, i);
    for (int64_t p = 0; p < parts; p++) {
      int64_t rec = s->written[(g->at[i] >> s->shift) + p];
      if (rec >> TIME <= lowest || (base & rec & STRONG)) continue;
      if (unknown(k, lane, k->own[lane], rec)) return BY_NUMPY;
    }
  }
  int64_t first = s->pushed;
  note_reads(k, s, g, base, lowest, apart(g), 0);
  for (int64_t i = first; k->entire && i < s->pushed; i++) s->logged[s->pushed_places[i]] = 1;
  return s->pushed > first ? PUSHED : DONE;
}

/* Whether a lane does not know one of the last reads of a place. */
static int unknown_read(const Knowledge *k, const SharedLedger *s, int64_t place, int64_t lane,
                        int64_t lowest, int64_t strong) {
  int64_t own = k->own[lane];
  for (int64_t c = 0; c < s->columns; c++) {
    int64_t rec = s->read[c * s->places + place];
    if (rec >> TIME <= lowest || (strong & rec)) continue;
    uint32_t mask = s->masks[c * s->places + place];
    if (!(mask & (mask - 1))) {
      if (unknown(k, lane, own, rec)) return 1;
      continue;
    }
    for (int64_t other = 0; other < 32; other++)
      if (mask >> other & 1 && unknown(k, lane, own, (rec & ~(int64_t)31) | other)) return 1;
  }
  return 0;
}

EXPORT int fragir_shared_write(const Knowledge *k, SharedLedger *s, const Group *g, int64_t base,
                               int64_t lowest, int logs) {
  int64_t parts = parts_of(g->size, s->shift), strong = base & STRONG;
  int64_t kept = 0;
  int result = DONE, single = apart(g), back = k->entire && !single;
  if (back && parts * g->count > k->old_room) return BY_NUMPY;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t lane = lane_of(g, i);
    for (int64_t p = 0; p < parts; p++) {
      int64_t place = (g->at[i] >> s->shift) + p, rec = s->written[place];
      if (back) k->old[kept++] = rec;
      int32_t time = s->read_time[place];
      if (rec >> TIME > lowest && !(strong & rec) && unknown(k, lane, k->own[lane], rec)) {
        if (k->values != KEPT || special(rec, base >> TIME)) return BY_NUMPY;
        excuse(k, rec), excuse(k, base);
      }
      if (time > lowest && time > k->floor[lane] &&
          unknown_read(k, s, place, lane, lowest, strong))
        return BY_NUMPY;
      if (logs && s->logged[place]) result |= LOGGED;
    }
  }
  if (k->entire && result) return BY_NUMPY;
  for (int64_t i = 0; i < g->count; i++)
    for (int64_t p = 0; p < parts; p++)
      s->written[(g->at[i] >> s->shift) + p] = base | k->own[lane_of(g, i)];
  int told = !single && k->values == ANYTHING; /* else it does not matter who was the last */
  if (!single && !told) excuse(k, base);
  for (int64_t i = 0; i < g->count && told && !(result & OVERLAP); i++)
    for (int64_t p = 0; p < parts; p++)
      if (s->written[(g->at[i] >> s->shift) + p] != (base | k->own[lane_of(g, i)]))
        result |= OVERLAP;
  if (back && result) {
    kept = 0;
    for (int64_t i = 0; i < g->count; i++)
      for (int64_t p = 0; p < parts; p++)
        s->written[(g->at[i] >> s->shift) + p] = k->old[kept++];
    return BY_NUMPY;
  }
  if (strong) note_reads(k, s, g, base, lowest, single, 1);
  return result;
}

/* -- global memory ----------------------------------------------------------------------------- */

/* Whether both are strong, and the scope of each has the other thread. */
static int both_strong(const Knowledge *k, int64_t rec, int64_t own, int here, int scope) {
  if (!(rec & STRONG)) return 0;
  int64_t site = rec >> SITE & COLUMN;
  int reach = k->strengths[site < k->sites ? site : k->sites - 1];
  int same = (rec & COLUMN) / k->block == own / k->block;
  int needed = !here ? DEVICE_SCOPE : same ? BLOCK_SCOPE : CLUSTER_SCOPE;
  return (reach < scope ? reach : scope) >= needed;
}

/* Whether numpy must look at an access after the last one of a kind. */
static inline int clashes(const Knowledge *k, const GlobalLedger *l, int kind, int64_t row,
                          int64_t lane, int scope) {
  int32_t owner = l->owners[kind * l->rows + row], mine = k->owner_of[lane];
  if (!owner) return 0;
  int64_t rec = l->records[kind * l->rows + row], own = k->own[lane];
  if (of_own_lane(rec, owner, own, mine)) return 0;
  if (scope && both_strong(k, rec, own, owner == mine, scope)) return 0;
  return owner != mine || unknown(k, lane, own, rec);
}

EXPORT int fragir_global_read(const Knowledge *k, const GlobalLedger *l, const Group *g,
                              int64_t base, int scope, int noted) {
  int64_t parts = parts_of(g->size, l->shift);
  int64_t *records = l->records + READ_KIND * l->rows, *far = l->records + FAR_KIND * l->rows;
  int32_t *owners = l->owners + READ_KIND * l->rows, *far_owners = l->owners + FAR_KIND * l->rows;
  int result = DONE;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t row = row_of(l, g->at[i]);
    if (row < 0) return BY_NUMPY;
    for (int64_t p = 0; p < parts && noted & 1 << WRITE_KIND; p++)
      if (clashes(k, l, WRITE_KIND, row + p, lane_of(g, i), scope)) return BY_NUMPY;
  }
  for (int64_t i = 0; i < g->count && noted & 1 << READ_KIND; i++) {
    int64_t row = row_of(l, g->at[i]);
    int32_t mine = k->owner_of[lane_of(g, i)];
    for (int64_t p = row; p < row + parts; p++)
      if (owners[p] != mine && owners[p]) {
        far[p] = records[p], far_owners[p] = owners[p];
        result = ELSEWHERE;
      }
  }
  for (int64_t i = 0; i < g->count; i++) {
    int64_t row = row_of(l, g->at[i]), lane = lane_of(g, i);
    for (int64_t p = row; p < row + parts; p++)
      records[p] = base | k->own[lane], owners[p] = k->owner_of[lane];
  }
  if (apart(g)) return result;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t row = row_of(l, g->at[i]), lane = lane_of(g, i);
    for (int64_t p = row; p < row + parts; p++)
      if (owners[p] != k->owner_of[lane]) {
        far[p] = base | k->own[lane], far_owners[p] = k->owner_of[lane];
        result = ELSEWHERE;
      }
  }
  return result;
}

/* Whether what a lane stores may overwrite what another of its warp has made of the same bytes: a
 * lane of the warp was the last to read them (LostUpdates). */
static int may_be_lost(const Knowledge *k, const GlobalLedger *l, int64_t row, int64_t lane) {
  row += READ_KIND * l->rows;
  return of_own_warp(l->records[row], l->owners[row], k->own[lane], k->owner_of[lane]);
}

/* A store that leaves bytes as they are clashes with nothing, by what was stored. */
static void excuse_store(const Knowledge *k, const GlobalLedger *l, int64_t row, int64_t base) {
  for (int kind = WRITE_KIND; kind <= FAR_KIND; kind++)
    if (kind == WRITE_KIND || l->owners[kind * l->rows + row])
      excuse_there(k, l->records[kind * l->rows + row], l->owners[kind * l->rows + row]);
  excuse(k, base);
}

EXPORT int fragir_global_write(const Knowledge *k, const GlobalLedger *l, const Group *g,
                               int64_t base, int scope, int noted, int updates) {
  int64_t parts = parts_of(g->size, l->shift);
  int64_t *records = l->records + WRITE_KIND * l->rows;
  int32_t *owners = l->owners + WRITE_KIND * l->rows;
  int64_t kept = 0;
  int result = DONE, single = apart(g), back = k->entire && !single;
  if (back && parts * g->count > k->old_room) return BY_NUMPY;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t row = row_of(l, g->at[i]), lane = lane_of(g, i), own = k->own[lane];
    if (row < 0) return BY_NUMPY;
    for (int64_t p = row; p < row + parts; p++) {
      if (back) k->old[kept] = records[p], k->old_owners[kept++] = owners[p];
      int bad = 0;
      for (int kind = WRITE_KIND; kind <= FAR_KIND; kind++)
        bad |= noted >> kind & 1 && clashes(k, l, kind, p, lane, scope);
      if (updates && noted & 1 << WRITE_KIND) { /* another lane of the warp has written there */
        int64_t differ = (records[p] ^ own) & COLUMN;
        bad |= differ && differ < 32 && owners[p] == k->owner_of[lane] && may_be_lost(k, l, p, lane);
      }
      if (bad && k->values != KEPT) return BY_NUMPY;
      if (bad) excuse_store(k, l, p, base); /* what leaves bytes as they are clashes with nothing */
    }
  }
  for (int64_t i = 0; i < g->count; i++) {
    int64_t row = row_of(l, g->at[i]), lane = lane_of(g, i);
    for (int64_t p = row; p < row + parts; p++)
      records[p] = base | k->own[lane], owners[p] = k->owner_of[lane];
  }
  if (!single && k->values != ANYTHING) excuse(k, base);
  if (single || k->values == KEPT) return result;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t row = row_of(l, g->at[i]), lane = lane_of(g, i);
    for (int64_t p = row; p < row + parts; p++) {
      int64_t differ = (records[p] ^ k->own[lane]) & COLUMN;
      int others = owners[p] != k->owner_of[lane];
      if (differ && differ < 32 && !others && updates && may_be_lost(k, l, p, lane))
        result |= LANES_TOO;
      if ((differ || others) && k->values == ANYTHING) result |= OVERLAP;
    }
  }
  if (!back || !result) return result;
  kept = 0;
  for (int64_t i = 0; i < g->count; i++) {
    int64_t row = row_of(l, g->at[i]);
    for (int64_t p = row; p < row + parts; p++, kept++)
      records[p] = k->old[kept], owners[p] = k->old_owners[kept];
  }
  return BY_NUMPY;
}

/* -- what accesses cost ------------------------------------------------------------------------ */

enum { BANKS = 32, WORD = 4, SECTOR = 32 };

/* Passes of the lanes that are served together: the most different words in one bank. */
static int64_t passes(const int64_t *at, int64_t count, int64_t size) {
  int64_t words[BANKS][BANKS];
  int used[BANKS] = {0}, most = 0;
  int64_t parts = size < WORD ? 1 : size / WORD;
  for (int64_t i = 0; i < count; i++)
    for (int64_t p = 0; p < parts; p++) {
      int64_t word = at[i] / WORD + p;
      int bank = (int)(word & (BANKS - 1)), n = 0;
      while (n < used[bank] && words[bank][n] != word) n++;
      if (n < used[bank]) continue;
      words[bank][used[bank]++] = word;
      if (used[bank] > most) most = used[bank];
    }
  return most;
}

/* Adds a number to a list of different ones; `most`: the greatest so far, as they mostly ascend. */
static inline int add(int64_t *list, int count, int64_t *most, int64_t number) {
  if (count && number <= *most)
    for (int i = count; i-- > 0;)
      if (list[i] == number) return count;
  if (!count || number > *most) *most = number;
  list[count] = number;
  return count + 1;
}

static void sectors(const int64_t *at, int64_t count, int64_t size, int64_t *paid,
                    int64_t *needed) {
  int64_t starts[32], touched[64], last = 0, farthest = 0;
  int different = 0, sectors_ = 0;
  for (int64_t i = 0; i < count; i++) {
    different = add(starts, different, &last, at[i]);
    sectors_ = add(touched, sectors_, &farthest, at[i] / SECTOR);
    sectors_ = add(touched, sectors_, &farthest, (at[i] + size - 1) / SECTOR);
  }
  *paid = sectors_;
  *needed = (different * size + SECTOR - 1) / SECTOR;
}

EXPORT int fragir_prices(const int64_t *at, const int64_t *lanes, int64_t first, int64_t count,
                         int64_t size, int shared, int64_t *found) {
  int group = 5; /* 2^group lanes are served together */
  while (group > 0 && (size << group) > BANKS * WORD) group--;
  for (int64_t i = 1; lanes && i < count; i++)
    if (lanes[i] <= lanes[i - 1]) return 0;
  found[0] = found[1] = found[2] = found[3] = 0;
  for (int64_t i = 0; i < count;) {
    int64_t warp = (lanes ? lanes[i] : first + i) >> 5, paid = 0, needed = 0, end = i;
    if (shared) {
      while (end < count && (lanes ? lanes[end] : first + end) >> 5 == warp) {
        int64_t start = end, part = (lanes ? lanes[end] : first + end) >> group;
        while (end < count && (lanes ? lanes[end] : first + end) >> group == part) end++;
        paid += passes(at + start, end - start, size);
        needed++;
      }
    } else {
      while (end < count && (lanes ? lanes[end] : first + end) >> 5 == warp) end++;
      sectors(at + i, end - i, size, &paid, &needed);
    }
    found[0] += paid;
    found[1] += needed;
    if (paid - needed > found[2]) {
      found[2] = paid - needed;
      found[3] = warp;
    }
    i = end;
  }
  return 1;
}
