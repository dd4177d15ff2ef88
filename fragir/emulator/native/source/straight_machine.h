/* The register machine of straight-line runs, for one kind of CPU: MACHINE is its name.
 *
 * Operations between two accesses to memory are executed for CHUNK warps, then for the next CHUNK,
 * so that rows stay in the cache; an access is checked for all warps before any lane makes it.
 */
#include <string.h>

#include "straight_functions.h"

static char *at(uint64_t address) { return (char *)(uintptr_t)address; }

/* -- rows -------------------------------------------------------------------------------------- */

/* The lanes of `warps` neighbours from `warp` on, side by side; `room` is used where they are not. */
static void *read_row(const Operand *operand, long warp, long warps, void *room) {
  char *base = at(operand->base) + warp * operand->warp;
  uint8_t inverted = operand->how == INVERTED;
  if (operand->how == DIRECT) return base;
#define COPY(type, change)                                            \
  for (long w = 0; w < warps; w++)                                    \
    for (long l = 0; l < LANES; l++) {                                \
      const char *from = base + w * operand->warp + l * operand->lane; \
      ((type *)room)[w * LANES + l] = *(const type *)from change;     \
    }                                                                 \
  break;
  switch (operand->size) {
    case 1: COPY(uint8_t, ^ inverted)
    case 2: COPY(uint16_t, )
    case 4: COPY(uint32_t, )
    default: COPY(uint64_t, )
  }
#undef COPY
  return room;
}

typedef enum { NONE, SOME, EVERY } Share;

/* Which of n lanes take part, by mask and guard; written to `lanes` where that is SOME. */
static Share taking_part(const Operand *guard, const uint8_t *mask, long warp, long warps,
                         uint8_t *lanes) {
  long n = warps * LANES;
  uint8_t room[GROUP];
  if (!guard->base && !mask) return EVERY;
  const uint8_t *holds = guard->base ? read_row(guard, warp, warps, room) : mask;
  uint64_t all = 0x0101010101010101u, any = 0;
  for (long i = 0; i < n; i += 8) {
    uint64_t part, other;
    memcpy(&part, holds + i, 8);
    if (mask) {
      memcpy(&other, mask + i, 8);
      part &= other;
    }
    memcpy(lanes + i, &part, 8);
    all &= part, any |= part;
  }
  return !any ? NONE : all == 0x0101010101010101u ? EVERY : SOME;
}

/* Values into the lanes of a row that take part. */
static void write_row(const Operand *out, long warp, long n, const void *values,
                      const uint8_t *lanes) {
  char *base = at(out->base) + warp * out->warp;
  switch (out->size) {
#define KEEP(type)                                                       \
  for (long i = 0; i < n; i++) {                                         \
    type *o = (type *)base + i, v = ((const type *)values)[i];           \
    *o = lanes[i] ? v : *o;                                              \
  }                                                                      \
  break;
    case 1: KEEP(uint8_t)
    case 2: KEEP(uint16_t)
    case 4: KEEP(uint32_t)
    default: KEEP(uint64_t)
#undef KEEP
  }
}

/* -- operations on registers --------------------------------------------------------------------- */

/* Which lane each lane reads, its own where that is out of range (PTX ISA 9.2, section 9.7.9.6). */
static void shuffle(const Code *code, void *const *in, long n, uint32_t *result, uint8_t *valid) {
  const uint32_t *a = in[0], *b = in[1], *c = in[2];
  for (long i = 0; i < n; i++) {
    int lane = (int)(i % LANES), by = b[i] & 31, segment = c[i] >> 8 & 31, clamp = c[i] & 31;
    int highest = (lane & segment) | (clamp & ~segment), from;
    switch (code->immediate) {
      case UP: from = lane - by; break;
      case DOWN: from = lane + by; break;
      case ACROSS: from = lane ^ by; break;
      default: from = (lane & segment) | (by & ~segment);
    }
    valid[i] = code->immediate == UP ? from >= highest : from <= highest;
    result[i] = a[i - lane + (valid[i] ? from & 31 : lane)];
  }
}

/* What the lanes of each warp that take part say. */
static void vote(const Code *code, const uint8_t *says, long n, const uint8_t *lanes,
                 uint32_t *ballots, uint8_t *answers) {
  for (long first = 0; first < n; first += LANES) {
    uint32_t yes = 0, no = 0;
    for (long i = 0; i < LANES; i++) {
      yes |= (uint32_t)(says[first + i] & lanes[first + i]) << i;
      no |= (uint32_t)(!says[first + i] && lanes[first + i]) << i;
    }
    uint8_t answer = code->immediate == ANYBODY ? yes != 0
                     : code->immediate == EVERYBODY ? no == 0 : !(yes && no);
    for (long i = first; i < first + LANES; i++) {
      if (code->immediate == BALLOT) ballots[i] = yes;
      else answers[i] = answer;
    }
  }
}

static void compute(const Code *code, const Operand *operands, long warp, long warps,
                    const uint8_t *mask) {
  uint64_t rooms[4][GROUP], result[GROUP];
  uint8_t lanes[GROUP];
  void *in[4];
  long n = warps * LANES;
  Share share = taking_part(&code->guard, mask, warp, warps, lanes);
  if (share == NONE) return;
  const Operand *sources = operands + code->first;
  long read = code->kind == COMPARE ? 2 : code->count;
  for (long i = 0; i < read; i++) in[i] = read_row(sources + i, warp, warps, rooms[i]);
  Function function = FUNCTIONS[code->function];
  if (code->kind == ELEMENTS) {
    if (share == EVERY) {
      function(at(code->out.base) + warp * code->out.warp, in, n * code->times, code->immediate);
    } else {
      function(result, in, n * code->times, code->immediate);
      write_row(&code->out, warp, n, result, lanes);
    }
    return;
  }
  uint8_t *p = (uint8_t *)result, *q = p + GROUP;
  if (share == EVERY) memset(lanes, 1, (size_t)n);
  if (code->kind == SHUFFLE || code->kind == VOTE) {
    uint8_t valid[GROUP];
    if (code->kind == SHUFFLE) shuffle(code, in, n, (uint32_t *)result, valid);
    else vote(code, in[0], n, lanes, (uint32_t *)result, p);
    if (code->out.base) write_row(&code->out, warp, n, result, lanes);
    if (code->other.base) write_row(&code->other, warp, n, valid, lanes);
    return;
  }
  function(p, in, n, code->immediate);
  for (long i = 0; i < n; i++) q[i] = p[i] ^ 1;
  if (code->combine) {
    const uint8_t *c = read_row(sources + 2, warp, warps, rooms[2]);
    if (code->combine == AND) for (long i = 0; i < n; i++) p[i] &= c[i], q[i] &= c[i];
    if (code->combine == OR) for (long i = 0; i < n; i++) p[i] |= c[i], q[i] |= c[i];
    if (code->combine == XOR) for (long i = 0; i < n; i++) p[i] ^= c[i], q[i] ^= c[i];
  }
  if (code->out.base) write_row(&code->out, warp, n, p, lanes);
  if (code->other.base) write_row(&code->other, warp, n, q, lanes);
}

/* The warps of one call, a chunk of neighbours at a time. */
typedef struct {
  int64_t first, count;
  const int64_t *list;
  const uint8_t *mask;
} Warps;

static int64_t chunk(const Warps *warps, int64_t index, int64_t *warp, const uint8_t **mask) {
  int64_t most = warps->count - index < CHUNK ? warps->count - index : CHUNK, n = 1;
  *warp = warps->list ? warps->list[index] : warps->first + index;
  *mask = warps->mask ? warps->mask + index * LANES : 0;
  if (!warps->list) return most;
  while (n < most && warps->list[index + n] == *warp + n) n++;
  return n;
}

#include "straight_memory.h"
#include "straight_watch.h"

/* -- the machine --------------------------------------------------------------------------------- */

/* An access where checks look at it: all lanes are found, then looked at, then served. */
static int watched_access(const Code *code, const Operand *operands, const Memory *memory,
                          const Warps *warps, Checks *checks) {
  uint64_t places[GROUP];
  uint8_t lanes[GROUP];
  const uint64_t arenas[] = {memory->globals, memory->shared, memory->local};
  int64_t *where = (int64_t *)at(checks->positions), *who = (int64_t *)at(checks->lanes);
  int64_t size = (int64_t)code->width * (code->count - 1), count = 0, warp, n, base = 0;
  const uint8_t *mask;
  int space = -1, all = 1, neighbours = !warps->list && !warps->mask && !code->guard.base;
  for (int64_t index = 0; index < warps->count; index += n) {
    n = chunk(warps, index, &warp, &mask);
    Share share = taking_part(&code->guard, mask, warp, n, lanes);
    all &= share == EVERY;
    if (share == NONE) continue;
    const uint8_t *some = share == EVERY ? 0 : lanes;
    int here = one_space(code, operands + code->first, memory, warp, n, some);
    if (here < 0 || (count && here != space)) return 0;
    if (!locate(code, operands + code->first, memory, warp, n, some, size, places)) return 0;
    space = here, base = (int64_t)arenas[space];
    for (int64_t i = 0; i < n * LANES && !some; i++) where[count + i] = (int64_t)places[i] - base;
    for (int64_t i = 0; i < n * LANES && !some && !neighbours; i++) who[count + i] = warp * LANES + i;
    if (!some) count += n * LANES;
    for (int64_t i = 0; i < n * LANES && some; i++) {
      if (!some[i]) continue;
      where[count] = (int64_t)places[i] - base;
      who[count++] = warp * LANES + i;
    }
  }
  if (!count) return 1;
  const Group group = {where, neighbours ? 0 : who, warps->first * LANES, count, size};
  Watched *watched = (Watched *)at(checks->rows) + code->watched;
  Access access = {code, operands, memory, warps, base, 0};
  if (!look(checks, watched, &access, space, &group, all)) return 0;
  if (!access.served) serve(&access, where, 0);
  int64_t *totals = (int64_t *)at(memory->totals);
  totals[code->space + (code->kind == STORE ? 4 : 0)] += size * count;
  return 1;
}

static int access_memory(const Code *code, const Operand *operands, const Memory *memory,
                         const Warps *warps) {
  uint64_t places[GROUP];
  uint8_t lanes[GROUP];
  int64_t size = (int64_t)code->width * (code->count - 1), moved = 0, warp, n;
  const uint8_t *mask;
  int whole = warps->count <= CHUNK && !warps->list;
  for (int pass = whole; pass < 2; pass++) {
    for (int64_t index = 0; index < warps->count; index += n) {
      n = chunk(warps, index, &warp, &mask);
      Share share = taking_part(&code->guard, mask, warp, n, lanes);
      const uint8_t *some = share == EVERY ? 0 : lanes;
      if (share == NONE) continue;
      if (!locate(code, operands + code->first, memory, warp, n, some, size, places)) return 0;
      if (pass) moved += move(code, operands, memory, warp, n, some, places);
    }
  }
  int64_t *totals = (int64_t *)at(memory->totals);
  totals[code->space + (code->kind == STORE ? 4 : 0)] += size * moved;
  return 1;
}

/* Which of the lanes that are there take a branch. */
static Share taking(const Operand *branch, const Warps *warps) {
  int64_t warp, n;
  const uint8_t *mask;
  uint8_t room[GROUP];
  int any = 0, all = 1;
  for (int64_t index = 0; index < warps->count; index += n) {
    n = chunk(warps, index, &warp, &mask);
    const uint8_t *taken = read_row(branch, warp, n, room);
    for (long i = 0; i < n * LANES; i++) {
      uint8_t there = mask ? mask[i] : 1;
      any |= taken[i] & there, all &= taken[i] | !there;
    }
    if (any && !all) return SOME;
  }
  return all ? EVERY : NONE;
}

/* Whether an instruction must be looked at by the check for undefined bits. */
static int doubtful(const Checks *checks, const Code *codes, int64_t count, const Operand *operands,
                    const Warps *warps) {
  int64_t warp, n;
  const uint8_t *mask;
  for (int64_t index = 0; index < warps->count; index += n) {
    n = chunk(warps, index, &warp, &mask);
    if (in_doubt(checks, codes, count, operands, warp, n, mask)) return 1;
  }
  return 0;
}

/* Whether an instruction begins with an operation, some of whose registers are in doubt. */
static int begins_in_doubt(const Code *codes, int64_t i) {
  return codes[i].doubt && (i == 0 || codes[i - 1].number != codes[i].number);
}

/* The operations of a piece: the instruction that stopped it, or their number. */
static int64_t run_piece(const Piece *piece, const Memory *memory, const Warps *warps,
                         int64_t from, Checks *checks) {
  const Code *codes = (const Code *)at(piece->codes);
  const Operand *operands = (const Operand *)at(piece->operands);
  int64_t i = 0, count = piece->count;
  while (i < count && codes[i].number < from) i++;
  while (i < count) {
    int64_t end = i, n, warp;
    const uint8_t *part;
    if (checks && begins_in_doubt(codes, i) &&
        doubtful(checks, codes + i, count - i, operands, warps))
      return codes[i].number;
    while (end < count && codes[end].kind < LOAD && !(end > i && begins_in_doubt(codes, end))) end++;
    for (int64_t index = 0; index < warps->count && end > i; index += n) {
      n = chunk(warps, index, &warp, &part);
      for (int64_t c = i; c < end; c++) compute(codes + c, operands, warp, n, part);
    }
    if (end > i) {
      i = end;
      continue;
    }
    int done = codes[i].watched < 0 || !checks
                   ? access_memory(codes + i, operands, memory, warps)
                   : watched_access(codes + i, operands, memory, warps, checks);
    if (!done) return codes[i].number;
    i++;
  }
  return piece->instructions;
}

/* Whether what a branch asks has undefined bits. */
static int asks_in_doubt(const Checks *checks, const Piece *piece, const Warps *warps) {
  const Code asks = {.guard = piece->branch};
  return piece->doubt && doubtful(checks, &asks, 1, 0, warps);
}

int64_t MACHINE(Walk *walk, int64_t first, int64_t count, const int64_t *list, const uint8_t *mask,
                int64_t from, int64_t on) {
  const Piece *pieces = (const Piece *)at(walk->pieces);
  const Memory *memory = (const Memory *)at(walk->memory);
  int64_t *runs = (int64_t *)at(walk->runs), *taken = (int64_t *)at(walk->taken);
  const Warps warps = {first, count, list, mask};
  Checks *checks = (Checks *)at(walk->checks);
  for (;;) {
    const Piece *piece = pieces + walk->piece;
    int64_t stopped = run_piece(piece, memory, &warps, from, checks);
    if (stopped < piece->instructions || !on) return stopped;
    int jumps = piece->ending == JUMP;
    if (piece->ending == OTHER) return stopped;
    if (piece->ending == BARRIER && (!walk->whole || (checks && !checks->joins))) return stopped;
    if (piece->ending == BRANCH) {
      if (checks && asks_in_doubt(checks, piece, &warps)) return stopped;
      Share share = taking(&piece->branch, &warps);
      if (share == SOME) return stopped;
      jumps = share == EVERY;
    }
    int64_t next = jumps ? piece->to : piece->next;
    int64_t position = jumps ? piece->to_position : piece->next_position;
    int back = jumps && position <= piece->position;
    if (next < 0 || position >= walk->others || (mask && pieces[next].together)) return stopped;
    if (back && taken[piece->position] >= walk->budget) return stopped;
    if (walk->left < count * pieces[next].size) return stopped;
    if (back) taken[piece->position]++;
    if (piece->ending == BARRIER && checks) join(checks);
    walk->left -= count * pieces[next].size;
    runs[next] += count;
    walk->piece = next;
    from = 0;
  }
}
