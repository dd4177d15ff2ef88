/* Accesses that checks look at: included by straight_machine.h.
 *
 * An access of which a check has something to say, or that it would have to keep in Python, is left
 * undone. Mostly the lanes of a warp access places side by side: a line. Lines are looked at here,
 * in loops of 32 equal turns; whatever is no line, or not at once beyond doubt, by planes.c. Reads
 * of some warps may have been noted when those of others turn out to be left undone: to note them
 * again changes nothing.
 */

enum { WRITTEN_ = 1, READ_ = 2, FAR_ = 4 }; /* of GlobalLedger.noted */

/* A line's lanes: the first one's number, its column, what all of them know. */
typedef struct {
  int64_t lane, own, known;   /* `known`: no record before it is unknown to any of them */
  int64_t same;               /* the same for records of their own warp */
  int64_t parts, first;       /* places of each lane, as a power of two; the first place */
} Line;

static int is_line(const int64_t *where, int64_t step) {
  int64_t off = 0;
  for (int64_t i = 0; i < LANES; i++) off |= where[i] ^ (where[0] + i * step);
  return off == 0;
}

static int64_t after(int64_t time) { return (time + 1) << TIME; }

static Line line_of(const Knowledge *k, int64_t lane, int64_t size, int64_t shift) {
  int32_t floor = k->floor[lane], warp = k->warp_floor[lane];
  for (int64_t i = 1; i < LANES; i++) {
    floor = k->floor[lane + i] < floor ? k->floor[lane + i] : floor;
    warp = k->warp_floor[lane + i] < warp ? k->warp_floor[lane + i] : warp;
  }
  Line line = {lane, k->own[lane], after(floor), after(warp > floor ? warp : floor), 0, 0};
  while (size >> shift >> line.parts > 1) line.parts++;
  return line;
}

/* Whether a lane of a line may not know the last write of one of its places. */
static int unknown_writes(const Line *l, const int64_t *written) {
  int64_t bad = 0, warp = l->own & WARP;
  for (int64_t i = 0; i < LANES << l->parts; i++) {
    int64_t rec = written[i], column = rec & COLUMN;
    bad |= (rec >= l->known) & (column != l->own + (i >> l->parts)) &
           !(((column & WARP) == warp) & (rec < l->same));
  }
  return bad != 0;
}

/* -- shared memory ------------------------------------------------------------------------------- */

static int read_line(const Knowledge *k, SharedLedger *s, int64_t lane, int64_t position,
                     int64_t size, int64_t base, int64_t lowest) {
  const Line l = line_of(k, lane, size, s->shift);
  int64_t first = position >> s->shift, index = s->slot_of[lane] * s->places + first;
  int64_t *read = s->read + index, bad = 0, settled = after(lowest);
  uint32_t *masks = s->masks + index;
  int32_t *times = s->read_time + first, now = (int32_t)(base >> TIME);
  if (unknown_writes(&l, s->written + first)) return 0;
  for (int64_t i = 0; i < LANES << l.parts; i++) /* of which reads would be pushed out */
    bad |= (read[i] >= settled) &
           ((((read[i] ^ l.own) & WARP) != 0) | ((masks[i] & ~((uint32_t)1 << (i >> l.parts))) != 0));
  if (bad) return 0;
  for (int64_t i = 0; i < LANES << l.parts; i++) {
    read[i] = base | (l.own + (i >> l.parts));
    masks[i] = (uint32_t)1 << (i >> l.parts);
    times[i] = now;
  }
  return 1;
}

/* Whether what a line has read last, or others have, may be unknown to who writes there. */
static int unknown_reads(const SharedLedger *s, const Line *l, int64_t first) {
  int64_t n = (int64_t)LANES << l->parts, known = l->known >> TIME;
  int32_t late = 0;
  for (int64_t i = 0; i < n; i++) late |= s->read_time[first + i] >= known;
  if (!late) return 0;
  int64_t bad = 0;
  for (int64_t c = 0; c < s->columns; c++) {
    const int64_t *read = s->read + c * s->places + first;
    const uint32_t *masks = s->masks + c * s->places + first;
    for (int64_t i = 0; i < n; i++) /* but those of the lane itself */
      bad |= (read[i] >= l->known) & (((read[i] & COLUMN) != l->own + (i >> l->parts)) |
                                      ((masks[i] & (masks[i] - 1)) != 0));
  }
  return bad != 0;
}

/* Whether all warps of a group have lines, one behind the other: then no two lanes share a place. */
static int ascending_lines(const Group *g) {
  for (int64_t i = 0; i < g->count; i += LANES) {
    if (!is_line(g->at + i, g->size)) return 0;
    if (i && g->at[i] <= g->at[i - 1]) return 0;
  }
  return 1;
}

static int write_lines(const Knowledge *k, SharedLedger *s, const Group *g, int64_t base) {
  if (!ascending_lines(g)) return 0;
  for (int64_t i = 0; i < g->count; i += LANES) {
    const Line l = line_of(k, g->lanes[i], g->size, s->shift);
    int64_t first = g->at[i] >> s->shift;
    if (unknown_writes(&l, s->written + first) || unknown_reads(s, &l, first)) return 0;
  }
  for (int64_t i = 0; i < g->count; i += LANES) {
    const Line l = line_of(k, g->lanes[i], g->size, s->shift);
    int64_t *written = s->written + (g->at[i] >> s->shift);
    for (int64_t p = 0; p < LANES << l.parts; p++) written[p] = base | (l.own + (p >> l.parts));
  }
  return 1;
}

static int note_shared(Checks *c, const Watched *w, int store, const Group *g, int full) {
  const Knowledge *k = (const Knowledge *)at(c->knowledge);
  SharedLedger *s = (SharedLedger *)at(c->shared);
  int64_t base = c->now << TIME | w->site << SITE, logs = c->logs || s->pushed;
  /* of one block alone; each of its warps has a column of its own */
  full &= s->alone && (s->columns > 2 || k->block == LANES);
  if (store) {
    if (full && !logs && write_lines(k, s, g, base)) return 1;
    return !(fragir_shared_write(k, s, g, base, c->lowest, logs != 0) & BY_NUMPY);
  }
  if (!full) return !(fragir_shared_read(k, s, g, base, c->lowest) & BY_NUMPY);
  int64_t done = 0; /* lanes; those up to i are no line */
  for (int64_t i = 0; i <= g->count; i += LANES) {
    int line = i < g->count && is_line(g->at + i, g->size);
    if (!line && i < g->count) continue;
    const Group rest = {g->at + done, g->lanes + done, 0, i - done, g->size};
    if (rest.count && fragir_shared_read(k, s, &rest, base, c->lowest) & BY_NUMPY) return 0;
    done = i;
    if (line && read_line(k, s, g->lanes[i], g->at[i], g->size, base, c->lowest)) done = i + LANES;
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

/* The row of the first place of a line; -1: it has none, or they do not lie side by side. */
static int64_t line_row(const GlobalLedger *l, int64_t position, int64_t size) {
  int64_t offset = position - l->start, last = offset + LANES * size - 1;
  if (offset < 0 || last >= l->size) return -1;
  if (!l->table) return offset >> l->shift;
  int64_t page = l->table[offset >> l->page_shift];
  if (page < 0 || offset >> l->page_shift != last >> l->page_shift) return -1;
  int64_t inside = offset & (((int64_t)1 << l->page_shift) - 1);
  return (page << (l->page_shift - l->shift)) + (inside >> l->shift);
}

/* Whether a lane may have to be compared with the last access of a kind to its places. `updates`:
 * whether it matters that another lane of the warp was that. */
static int clash_in_line(const GlobalLedger *g, const Line *l, int kind, int64_t row, int32_t mine,
                         int updates) {
  const int64_t *records = g->records + kind * g->rows + row;
  const int32_t *owners = g->owners + kind * g->rows + row;
  int64_t bad = 0;
  for (int64_t i = 0; i < LANES << l->parts; i++) {
    int64_t rec = records[i], differ = (rec ^ (l->own + (i >> l->parts))) & COLUMN;
    int other = ((rec ^ l->own) & WARP) != 0;
    bad |= (owners[i] != 0) & ((owners[i] != mine) | (other & (rec >= l->known)));
    bad |= updates & (owners[i] == mine) & (differ != 0) & (differ < LANES);
  }
  return bad != 0;
}

static void note_line(GlobalLedger *g, const Line *l, int kind, int64_t row, int32_t mine,
                      int64_t base) {
  int64_t *records = g->records + kind * g->rows + row;
  int32_t *owners = g->owners + kind * g->rows + row;
  for (int64_t i = 0; i < LANES << l->parts; i++) {
    records[i] = base | (l->own + (i >> l->parts));
    owners[i] = mine;
  }
}

static int read_global_line(const Knowledge *k, GlobalLedger *g, int64_t lane, int64_t position,
                            int64_t size, int64_t base) {
  int64_t row = line_row(g, position, size);
  if (row < 0) return 0;
  const Line l = line_of(k, lane, size, g->shift);
  int32_t mine = k->owner_of[lane], others = 0;
  if (g->noted & WRITTEN_ && clash_in_line(g, &l, 0, row, mine, 0)) return 0;
  const int32_t *owners = g->owners + g->rows + row;
  for (int64_t i = 0; i < LANES << l.parts; i++) others |= (owners[i] != 0) & (owners[i] != mine);
  if (others) return 0;
  note_line(g, &l, 1, row, mine, base);
  return 1;
}

static int write_global_lines(const Knowledge *k, GlobalLedger *g, const Group *group, int64_t base,
                              int updates) {
  if (!ascending_lines(group)) return 0;
  for (int64_t i = 0; i < group->count; i += LANES) {
    int64_t lane = group->lanes[i], row = line_row(g, group->at[i], group->size);
    if (row < 0) return 0;
    const Line l = line_of(k, lane, group->size, g->shift);
    for (int kind = 0; kind < 3; kind++)
      if (g->noted >> kind & 1 &&
          clash_in_line(g, &l, kind, row, k->owner_of[lane], updates && !kind))
        return 0;
  }
  for (int64_t i = 0; i < group->count; i += LANES) {
    int64_t lane = group->lanes[i], row = line_row(g, group->at[i], group->size);
    const Line l = line_of(k, lane, group->size, g->shift);
    note_line(g, &l, 0, row, k->owner_of[lane], base);
  }
  return 1;
}

static int note_global(Checks *c, Watched *w, int store, const Group *g, int full) {
  const Knowledge *k = (const Knowledge *)at(c->knowledge);
  GlobalLedger *l = ledger_of(c, w, g->at[0]);
  if (!l || (g->size & -g->size) < (int64_t)1 << l->shift) return 0; /* its places become smaller */
  int64_t base = (c->now + store) << TIME | w->site << SITE;
  if (store) {
    int updates = (int)w->updates;
    if (l->copied) return 0;
    if (!(full && write_global_lines(k, l, g, base, updates)) &&
        fragir_global_write(k, l, g, base, 0, (int)l->noted, updates) & BY_NUMPY)
      return 0;
    l->noted |= WRITTEN_;
    c->now++; /* later than what has been read */
    return 1;
  }
  if (w->cached && l->noted & WRITTEN_) return 0;
  int64_t done = 0, step = full ? LANES : g->count;
  for (int64_t i = 0; i <= g->count; i += step) {
    int line = full && i < g->count && is_line(g->at + i, g->size);
    if (!line && i < g->count) continue;
    const Group rest = {g->at + done, g->lanes + done, 0, i - done, g->size};
    if (rest.count) {
      int found = fragir_global_read(k, l, &rest, base, 0, (int)l->noted);
      if (found & BY_NUMPY) return 0;
      if (found & ELSEWHERE) l->noted |= FAR_;
      l->noted |= READ_;
    }
    done = i;
    if (line && read_global_line(k, l, g->lanes[i], g->at[i], g->size, base)) {
      done = i + LANES;
      l->noted |= READ_;
    }
  }
  return 1;
}

/* -- undefined bits, and what it costs ----------------------------------------------------------- */

/* Whether bytes that are loaded have undefined bits. */
static int undefined(const uint8_t *bits, const Group *g, int full) {
  uint8_t any = 0;
  for (int64_t i = 0; i < g->count;) {
    int line = full && is_line(g->at + i, g->size);
    int64_t length = line ? g->size * LANES : g->size;
    const uint8_t *from = bits + g->at[i];
    for (int64_t b = 0; b < length; b++) any |= from[b];
    i += line ? LANES : 1;
  }
  return any != 0;
}

static void define(uint8_t *bits, const Group *g, int full) {
  for (int64_t i = 0; i < g->count;) {
    int line = full && is_line(g->at + i, g->size);
    memset(bits + g->at[i], 0, (size_t)(line ? g->size * LANES : g->size));
    i += line ? LANES : 1;
  }
}

/* fragir_prices, where warps have lines or access one place without a long look. */
static int prices(const Group *g, int shared, int full, int64_t *found) {
  if (!full) return fragir_prices(g->at, g->lanes, 0, g->count, g->size, shared, found);
  int64_t groups = g->size > 4 ? g->size / 4 : 1; /* lanes are served together up to 128 bytes */
  for (int64_t i = 0; i < g->count; i += LANES) {
    const int64_t *where = g->at + i;
    int64_t one[4] = {groups, groups, 0, g->lanes[i] / LANES};
    int line = is_line(where, g->size);
    if (!line && !is_line(where, 0)) {
      if (!fragir_prices(where, 0, g->lanes[i], LANES, g->size, shared, one)) return 0;
    } else if (!shared) {
      int64_t length = line ? g->size * LANES : g->size;
      one[0] = (where[0] + length - 1) / 32 - where[0] / 32 + 1; /* sectors */
      one[1] = (length + 31) / 32;
      one[2] = one[0] - one[1];
    }
    found[0] += one[0];
    found[1] += one[1];
    if (one[2] > found[2]) found[2] = one[2], found[3] = one[3];
  }
  return 1;
}

/* -- all of it ----------------------------------------------------------------------------------- */

/* Looks at an access to one space, and notes it; `full`: of all lanes of its warps. 0: it must be
 * looked at elsewhere. */
static int look(Checks *c, Watched *w, int store, int space, const Group *g, int full) {
  int64_t found[4] = {0, 0, 0, 0};
  int shared = space == SHARED;
  uint64_t plane = shared ? c->shared_bits : space == LOCAL ? c->local_bits : 0;
  if (plane && !store && undefined((const uint8_t *)at(plane), g, full)) return 0;
  if (w->priced) {
    if (!prices(g, shared, full, found)) return 0;
    int64_t warp = c->first_warp + found[3];
    if (found[2] && (found[2] > w->excess[shared] ||
                     (found[2] == w->excess[shared] && warp < w->warp[shared])))
      return 0;
  }
  if (w->races &&
      !(shared ? note_shared(c, w, store, g, full) : note_global(c, w, store, g, full)))
    return 0;
  w->paid[shared] += found[0];
  w->needed[shared] += found[1];
  if (plane && store) define((uint8_t *)at(plane), g, full);
  return 1;
}

/* A barrier where all lanes of the machine are. */
static void join(Checks *c) {
  int32_t *floor = (int32_t *)at(c->floor), now = (int32_t)c->now;
  for (int64_t i = 0; i < c->threads; i++) floor[i] = now;
  memset(at(c->uneven), 0, (size_t)c->warps);
  c->lowest = c->now++;
}
