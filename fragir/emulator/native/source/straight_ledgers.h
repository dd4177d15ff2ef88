/* Accesses under the check for races: included by straight_watch.h.
 *
 * Accesses of whole warps are looked at here, in loops of 32 equal turns; others, and what is not at
 * once beyond doubt, by planes.c. Reads of some warps may have been noted when those of others turn out to be left undone: to note
 * them again changes nothing.
 */

/* How the 32 lanes of a warp lie in memory: side by side; apart, one after the other; at one place;
 * in any other way. */
typedef enum { LINE, APART, SAME, ANY } Pattern;

static Pattern pattern_of(const int64_t *where, int64_t size) {
  int64_t line = 0, same = 0, apart = 1;
  for (int64_t i = 0; i < LANES; i++) line |= where[i] ^ (where[0] + i * size);
  if (!line) return LINE;
  for (int64_t i = 0; i < LANES; i++) same |= where[i] ^ where[0];
  if (!same) return SAME;
  for (int64_t i = 1; i < LANES; i++) apart &= where[i] - where[i - 1] >= size;
  return apart ? APART : ANY;
}

enum { LARGEST = 32 }; /* places of one lane: bytes; as in checks/races/compiled.py */

/* The places of a warp, and what all of its lanes know. */
typedef struct {
  int64_t own;         /* the column of the first lane that is looked at */
  int64_t alone;       /* the same where no other lane has its place, else that of nobody */
  int64_t known;       /* no record before it is unknown to any of them */
  int64_t same;        /* the same for records of their own warp */
  int parts;           /* places of each lane, as a power of two */
  int whole;           /* whether all are at one place: then the last lane stands for all */
  int64_t count;       /* places that are looked at */
  int64_t first;       /* the first place, where they lie side by side */
  const int64_t *rows; /* all of them; 0: side by side */
  int64_t room[LANES * LARGEST];
} Places;

/* Of the n-th of all places, counted from `first`. */
#define SPOT(n) (rows ? rows[n] : (n))
#define EACH_PLACE for (int64_t i = 0; i < count; i++)
/* Names for what loops use: they store numbers, which might be these for all that is known. */
#define NAMED(l)                                                              \
  const int64_t own = (l)->own, alone = (l)->alone, known = (l)->known;       \
  const int64_t count = (l)->count, *restrict rows = (l)->rows;               \
  const int parts = (l)->parts;                                               \
  (void)known, (void)own, (void)alone, (void)parts

static int64_t number_of(const Group *g, int64_t n) { return g->lanes ? g->lanes[n] : g->first + n; }

/* The lanes of a group from one on up to another. */
static Group part_of(const Group *g, int64_t from, int64_t to) {
  return (Group){g->at + from, g->lanes ? g->lanes + from : 0, g->first + from, to - from, g->size};
}

static int64_t after(int64_t time) { return (time + 1) << TIME; }

/* Which lanes of a warp are looked at. */
static void lanes_of(Places *l, const Knowledge *k, int64_t lane, int64_t size, int64_t shift,
                     Pattern pattern) {
  l->known = l->same = 0;
  l->whole = pattern == SAME;
  l->own = k->own[lane] + (l->whole ? LANES - 1 : 0);
  l->alone = l->whole ? -1 : l->own;
  l->parts = 0;
  while (size >> shift >> l->parts > 1) l->parts++;
  l->count = (int64_t)(l->whole ? 1 : LANES) << l->parts;
}

/* What they know. */
static void knowledge_of(Places *l, const Knowledge *k, int64_t lane) {
  int32_t floor = k->floor[lane], warp = k->warp_floor[lane];
  for (int64_t i = 1; i < LANES; i++) {
    floor = k->floor[lane + i] < floor ? k->floor[lane + i] : floor;
    warp = k->warp_floor[lane + i] < warp ? k->warp_floor[lane + i] : warp;
  }
  l->known = after(floor);
  l->same = after(warp > floor ? warp : floor);
}

/* Whether a lane may not know the last write of one of its places. */
static int unknown_writes(const Places *l, const int64_t *written) {
  NAMED(l);
  int64_t bad = 0, warp = own & WARP, same = l->same;
  EACH_PLACE {
    int64_t rec = written[SPOT(i)], column = rec & COLUMN;
    bad |= (rec >= known) & (column != alone + (i >> parts)) &
           !(((column & WARP) == warp) & (rec < same));
  }
  return bad != 0;
}

/* Whether one of its last writes matters though the new one leaves the place as it is. */
static int special_writes(const Places *l, const int64_t *written, int64_t now) {
  NAMED(l);
  int64_t bad = 0;
  EACH_PLACE bad |= special(written[SPOT(i)], now);
  return bad != 0;
}

/* -- shared memory ------------------------------------------------------------------------------- */

static void shared_places(Places *l, const Knowledge *k, const SharedLedger *s, const int64_t *where,
                          int64_t lane, int64_t size, Pattern pattern) {
  lanes_of(l, k, lane, size, s->shift, pattern);
  l->rows = pattern == LINE ? 0 : l->room;
  l->first = pattern == LINE ? where[0] >> s->shift : 0;
  for (int64_t i = 0; i < l->count && l->rows; i++)
    l->room[i] = (where[i >> l->parts] >> s->shift) + (i & ((1 << l->parts) - 1));
}

static int read_places(const Knowledge *k, SharedLedger *s, const Group *g, int64_t from,
                       Pattern pattern, int64_t base, int64_t lowest) {
  Places places, *l = &places;
  shared_places(l, k, s, g->at + from, number_of(g, from), g->size, pattern);
  knowledge_of(l, k, number_of(g, from));
  NAMED(l);
  int64_t index = s->slot_of[number_of(g, from)] * s->places + l->first, bad = 0, settled = after(lowest);
  int64_t *restrict read = s->read + index;
  uint32_t *restrict masks = s->masks + index, all = l->whole ? ~(uint32_t)0 : 0;
  int32_t *restrict times = s->read_time + l->first, now = (int32_t)(base >> TIME);
  if (unknown_writes(l, s->written + l->first)) return 0;
  EACH_PLACE { /* of which reads would be pushed out */
    int64_t before = read[SPOT(i)];
    uint32_t others = masks[SPOT(i)] & ~(all | (uint32_t)1 << (i >> parts));
    bad |= (before >= settled) & ((((before ^ own) & WARP) != 0) | (others != 0));
  }
  if (bad) return 0;
  EACH_PLACE {
    read[SPOT(i)] = base | (own + (i >> parts));
    masks[SPOT(i)] = all | (uint32_t)1 << (i >> parts);
    times[SPOT(i)] = now;
  }
  if (pattern == ANY) /* others may have read the same places */
    EACH_PLACE if (read[SPOT(i)] != (base | (own + (i >> parts))))
      masks[SPOT(i)] |= (uint32_t)1 << (i >> parts);
  return 1;
}

/* Whether what others have read may be unknown to who writes there. */
static int unknown_reads(const SharedLedger *s, const Places *l) {
  NAMED(l);
  const int32_t *times = s->read_time + l->first;
  int64_t bad = 0, time = known >> TIME;
  int32_t late = 0;
  EACH_PLACE late |= times[SPOT(i)] >= time;
  for (int64_t c = 0; c < s->columns && late; c++) {
    const int64_t *read = s->read + c * s->places + l->first;
    const uint32_t *masks = s->masks + c * s->places + l->first;
    EACH_PLACE { /* but those of the lane itself */
      int64_t rec = read[SPOT(i)];
      uint32_t mask = masks[SPOT(i)];
      bad |= (rec >= known) &
             (((rec & COLUMN) != alone + (i >> parts)) | ((mask & (mask - 1)) != 0));
    }
  }
  return bad != 0;
}

/* Whether each lane accesses what lies behind all before it: then no two share a place. */
static int ascends(const Group *g, const uint8_t *patterns) {
  for (int64_t i = 0; i < g->count; i += LANES) {
    if (patterns[i / LANES] > APART) return 0;
    if (i && g->at[i] - g->at[i - 1] < g->size) return 0;
  }
  return 1;
}

/* How stores go over their warps: they look, write, see whether another lane has written there
 * too, and put back what was there. */
enum { LOOK, WRITE, VERIFY, UNDO };

/* The step behind one; UNDO + 1: it is over. `sure`: no two lanes share a place, or all that do
 * store the same there. */
static int next_step(int step, int sure, int shared_place) {
  if (step == WRITE && sure) return UNDO + 1;
  return step == VERIFY && !shared_place ? UNDO + 1 : step + 1;
}

static int write_places(const Knowledge *k, SharedLedger *s, const Group *g,
                        const uint8_t *patterns, int64_t base) {
  Places places, *l = &places;
  int apart = ascends(g, patterns), sure = k->values != ANYTHING || apart;
  int64_t twice = 0;
  if (!apart && sure) excuse(k, base);
  if (!sure && g->count * g->size >> s->shift > k->old_room) return 0;
  for (int step = LOOK; step <= UNDO; step = next_step(step, sure, twice != 0)) {
    int64_t *restrict old = k->old;
    for (int64_t n = 0; n < g->count; n += LANES) {
      shared_places(l, k, s, g->at + n, number_of(g, n), g->size, patterns[n / LANES]);
      if (step == LOOK) knowledge_of(l, k, number_of(g, n));
      NAMED(l);
      int64_t *restrict written = s->written + l->first;
      if (step == LOOK && unknown_reads(s, l)) return 0;
      if (step == LOOK && (k->values == KEPT ? special_writes(l, written, base >> TIME)
                                             : unknown_writes(l, written)))
        return 0;
      if (step == LOOK && k->values == KEPT && unknown_writes(l, written)) {
        EACH_PLACE excuse(k, written[SPOT(i)]);
        excuse(k, base);
      }
      if (!sure && l->whole) return 0; /* all lanes share a place */
      if (step == LOOK && !sure) EACH_PLACE old[i] = written[SPOT(i)];
      if (step == WRITE) EACH_PLACE written[SPOT(i)] = base | (own + (i >> parts));
      if (step == VERIFY) EACH_PLACE twice |= written[SPOT(i)] ^ (base | (own + (i >> parts)));
      if (step == UNDO) EACH_PLACE written[SPOT(i)] = old[i];
      old += LANES << parts;
    }
  }
  return !twice;
}

/* Whether the asynchronous proxy may still read what is written. */
static int still_read(const Knowledge *k, const SharedLedger *s, const Group *g) {
  for (int64_t i = 0; i < g->count && s->slots; i++) {
    int64_t lane = number_of(g, i);
    for (int64_t chunk = g->at[i] / 16; chunk <= (g->at[i] + g->size - 1) / 16; chunk++)
      for (int64_t slot = 0; slot < s->slots; slot++)
        if (unknown(k, lane, k->own[lane], s->chunks[chunk * s->slots + slot])) return 1;
  }
  return 0;
}

static int note_shared(Checks *c, const Watched *w, int store, const Group *g,
                       const uint8_t *patterns) {
  const Knowledge *k = (const Knowledge *)at(c->knowledge);
  SharedLedger *s = (SharedLedger *)at(c->shared);
  int64_t base = c->now << TIME | w->site << SITE, logs = c->logs || s->pushed;
  /* of one block alone; each of its warps has a column of its own */
  int full = patterns && s->alone && (s->columns > 2 || k->block == LANES);
  if (store) {
    if (still_read(k, s, g)) return 0;
    if (full && !logs && write_places(k, s, g, patterns, base)) return 1;
    return !(fragir_shared_write(k, s, g, base, c->lowest, logs != 0) & BY_NUMPY);
  }
  if (!full) return !(fragir_shared_read(k, s, g, base, c->lowest) & BY_NUMPY);
  for (int64_t i = 0; i < g->count; i += LANES) {
    const Group one = part_of(g, i, i + LANES);
    if (!read_places(k, s, g, i, patterns[i / LANES], base, c->lowest) &&
        fragir_shared_read(k, s, &one, base, c->lowest) & BY_NUMPY)
      return 0;
  }
  return 1;
}

/* -- global memory ------------------------------------------------------------------------------- */

/* The ledger of the buffer in which a position lies; 0: none is known. */
static GlobalLedger *ledger_of(const Checks *c, Watched *w, int64_t position) {
  GlobalLedger *ledgers = (GlobalLedger *)at(c->ledgers);
  for (int64_t n = -1; n < c->buffers; n++) {
    int64_t index = n < 0 ? w->ledger : n;
    if (index < 0 || index >= c->buffers) continue;
    int64_t offset = position - ledgers[index].start;
    if (offset < 0 || offset >= ledgers[index].size) continue;
    w->ledger = index;
    return ledgers + index;
  }
  return 0;
}

/* The rows of a warp; 0: not all of them are there. */
static int global_places(Places *l, const Knowledge *k, const GlobalLedger *g, const int64_t *where,
                         int64_t lane, int64_t size, Pattern pattern) {
  int64_t low = where[0] - g->start, high = where[LANES - 1] - g->start + size - 1, bad = 0;
  lanes_of(l, k, lane, size, g->shift, pattern);
  int page = !g->table || low >> g->page_shift == high >> g->page_shift;
  l->rows = pattern == LINE && page && high < g->size ? 0 : l->room;
  l->first = l->rows ? 0 : row_of(g, where[0]);
  if (l->first < 0) return 0;
  for (int64_t i = 0; i < l->count && l->rows; i++) {
    int64_t row = row_of(g, where[i >> l->parts]);
    bad |= row;
    l->room[i] = row + (i & ((1 << l->parts) - 1));
  }
  return bad >= 0;
}

/* Whether a lane may have to be compared with the last access of a kind to its places. `updates`:
 * whether it matters that another lane of the warp was that. */
static int clash_there(const GlobalLedger *g, const Places *l, int kind, int32_t mine, int updates) {
  NAMED(l);
  const int64_t *records = g->records + kind * g->rows + l->first;
  const int32_t *owners = g->owners + kind * g->rows + l->first;
  int64_t bad = 0, same = l->same;
  EACH_PLACE {
    int64_t rec = records[SPOT(i)];
    int32_t owner = owners[SPOT(i)];
    int other = ((rec ^ own) & WARP) != 0, late = (rec >= same) | updates;
    bad |= (owner != 0) & ((owner != mine) | (other & (rec >= known)));
    bad |= (owner == mine) & !other & late & ((rec & COLUMN) != alone + (i >> parts));
  }
  return bad != 0;
}

/* Whether lanes of the warp were the last to read one of its places. */
static int read_by_warp(const GlobalLedger *g, const Places *l, int32_t mine) {
  NAMED(l);
  const int64_t *records = g->records + READ_KIND * g->rows + l->first;
  const int32_t *owners = g->owners + READ_KIND * g->rows + l->first;
  int64_t bad = 0;
  EACH_PLACE bad |= of_own_warp(records[SPOT(i)], owners[SPOT(i)], own, mine);
  return bad != 0;
}

/* The same of a write and all accesses before it: of those of its own warp it matters which lane it
 * was where the warp has read what it writes. */
static int clash_of_write(const GlobalLedger *g, const Places *l, int32_t mine, int updates) {
  int written = g->noted >> WRITE_KIND & 1, read = g->noted >> READ_KIND & 1;
  if (written && clash_there(g, l, WRITE_KIND, mine, updates) &&
      (!updates || read_by_warp(g, l, mine) || clash_there(g, l, WRITE_KIND, mine, 0)))
    return 1;
  return (read && clash_there(g, l, READ_KIND, mine, 0)) ||
         (g->noted >> FAR_KIND & 1 && clash_there(g, l, FAR_KIND, mine, 0));
}

/* What clashes with none of the last accesses by what it stores. */
static void excuse_warp(const Knowledge *k, const GlobalLedger *g, const Places *l, int64_t base) {
  NAMED(l);
  for (int kind = WRITE_KIND; kind <= FAR_KIND; kind++) {
    const int64_t *records = g->records + kind * g->rows + l->first;
    const int32_t *owners = g->owners + kind * g->rows + l->first;
    EACH_PLACE if (kind == WRITE_KIND || owners[SPOT(i)])
      excuse_there(k, records[SPOT(i)], owners[SPOT(i)]);
  }
  excuse(k, base);
}

static void note_there(GlobalLedger *g, const Places *l, int kind, int32_t mine, int64_t base) {
  NAMED(l);
  int64_t *restrict records = g->records + kind * g->rows + l->first;
  int32_t *restrict owners = g->owners + kind * g->rows + l->first;
  EACH_PLACE {
    records[SPOT(i)] = base | (own + (i >> parts));
    owners[SPOT(i)] = mine;
  }
}

/* Keeps the reads of other clusters that a read pushes out. */
static void note_elsewhere(GlobalLedger *g, const Places *l, int32_t mine) {
  NAMED(l);
  const int64_t *records = g->records + READ_KIND * g->rows + l->first;
  const int32_t *owners = g->owners + READ_KIND * g->rows + l->first;
  int64_t *restrict far = g->records + FAR_KIND * g->rows + l->first;
  int32_t *restrict far_owners = g->owners + FAR_KIND * g->rows + l->first;
  EACH_PLACE {
    int32_t owner = owners[SPOT(i)];
    if (owner && owner != mine) far[SPOT(i)] = records[SPOT(i)], far_owners[SPOT(i)] = owner;
  }
  g->noted |= 1 << FAR_KIND;
}

static int read_global_places(const Knowledge *k, GlobalLedger *g, const Group *group, int64_t from,
                              Pattern pattern, int64_t base) {
  Places places, *l = &places;
  int64_t lane = number_of(group, from);
  if (!global_places(l, k, g, group->at + from, lane, group->size, pattern)) return 0;
  knowledge_of(l, k, lane);
  int32_t mine = k->owner_of[lane], others = 0;
  if (g->noted & 1 << WRITE_KIND && clash_there(g, l, WRITE_KIND, mine, 0)) return 0;
  const int32_t *owners = g->owners + READ_KIND * g->rows + l->first;
  NAMED(l);
  EACH_PLACE others |= (owners[SPOT(i)] != 0) & (owners[SPOT(i)] != mine);
  if (others) note_elsewhere(g, l, mine);
  note_there(g, l, READ_KIND, mine, base);
  return 1;
}

static int write_global_places(const Knowledge *k, GlobalLedger *g, const Group *group,
                               const uint8_t *patterns, int64_t base, int updates) {
  Places places, *l = &places;
  int apart = ascends(group, patterns), sure = k->values != ANYTHING || apart;
  int64_t twice = 0;
  if (!apart && sure) excuse(k, base);
  if (!sure && group->count * group->size >> g->shift > k->old_room) return 0;
  for (int step = LOOK; step <= UNDO; step = next_step(step, sure, twice != 0)) {
    int64_t *restrict old = k->old;
    int32_t *restrict old_owners = k->old_owners;
    for (int64_t n = 0; n < group->count; n += LANES) {
      int64_t lane = number_of(group, n);
      int32_t mine = k->owner_of[lane];
      if (!global_places(l, k, g, group->at + n, lane, group->size, patterns[n / LANES])) return 0;
      if (step == LOOK) knowledge_of(l, k, lane);
      if (step == LOOK && clash_of_write(g, l, mine, updates)) {
        if (k->values != KEPT) return 0;
        excuse_warp(k, g, l, base);
      }
      if (step == LOOK && k->values == AGREED && updates && read_by_warp(g, l, mine)) return 0;
      if (step == WRITE) note_there(g, l, WRITE_KIND, mine, base);
      if (sure) continue;
      NAMED(l);
      int64_t *restrict records = g->records + l->first;
      int32_t *restrict owners = g->owners + l->first;
      if (step == LOOK) EACH_PLACE old[i] = records[SPOT(i)], old_owners[i] = owners[SPOT(i)];
      if (step == VERIFY) {
        twice |= l->whole;
        EACH_PLACE twice |=
            (records[SPOT(i)] ^ (base | (own + (i >> parts)))) | (owners[SPOT(i)] ^ mine);
      }
      if (step == UNDO) EACH_PLACE records[SPOT(i)] = old[i], owners[SPOT(i)] = old_owners[i];
      old += LANES << parts, old_owners += LANES << parts;
    }
  }
  return !twice;
}

static int note_global(Checks *c, Watched *w, int store, const Group *g, const uint8_t *patterns) {
  const Knowledge *k = (const Knowledge *)at(c->knowledge);
  GlobalLedger *l = ledger_of(c, w, g->at[0]);
  if (!l || (g->size & -g->size) < (int64_t)1 << l->shift) return 0; /* its places become smaller */
  int64_t base = (c->now + store) << TIME | w->site << SITE;
  if (store) {
    int updates = (int)w->updates;
    if (l->copied) return 0;
    if (!(patterns && write_global_places(k, l, g, patterns, base, updates)) &&
        fragir_global_write(k, l, g, base, 0, (int)l->noted, updates) & BY_NUMPY)
      return 0;
    l->noted |= 1 << WRITE_KIND;
    c->now++; /* later than what has been read */
    return 1;
  }
  if (w->cached && l->noted & 1 << WRITE_KIND) return 0;
  int64_t step = patterns ? LANES : g->count;
  for (int64_t i = 0; i < g->count; i += step) {
    if (!patterns || !read_global_places(k, l, g, i, patterns[i / LANES], base)) {
      const Group one = part_of(g, i, i + step);
      int found = fragir_global_read(k, l, &one, base, 0, (int)l->noted);
      if (found & BY_NUMPY) return 0;
      if (found & ELSEWHERE) l->noted |= 1 << FAR_KIND;
    }
    l->noted |= 1 << READ_KIND;
  }
  return 1;
}
