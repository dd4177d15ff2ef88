/* Loads and stores of straight-line runs: included by straight_machine.h. */

/* Where a place of global memory is; 0 where it is in no buffer. `known`: the buffer found last. */
static uint64_t in_buffer(const Memory *m, int64_t place, int64_t size, int64_t *known) {
  const int64_t *starts = (const int64_t *)at(m->starts), *ends = (const int64_t *)at(m->ends);
  int64_t found = *known;
  if (found < 0 || place < starts[found] || place + size > ends[found]) {
    int64_t low = 0, high = m->buffers; /* the last that begins at or before the place */
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (starts[middle] <= place) low = middle + 1;
      else high = middle;
    }
    found = low - 1;
    if (found < 0 || place < 0 || place + size > ends[found]) return 0;
    *known = found;
  }
  return m->globals + (uint64_t)place;
}

static uint64_t in_block(uint64_t arena, uint64_t homes, int64_t home, uint64_t offset, int64_t size,
                         int64_t room) {
  if (offset > (uint64_t)room || (int64_t)offset + size > room) return 0;
  return arena + (uint64_t)((const int64_t *)at(homes))[home] + offset;
}

/* The same where all lanes take part and are in one buffer, or in their own memory: 0 where not. */
static int locate_all(const Code *code, const Operand *operand, const Memory *m, long warp,
                      long warps, int64_t size, uint64_t *places) {
  uint64_t room[GROUP], low = ~(uint64_t)0, high = 0, any = 0;
  const void *row = read_row(operand, warp, warps, room);
  long n = warps * LANES;
  if (code->space == GENERIC) return 0;
  if (operand->size == 4) {
    const uint32_t *addresses = row;
    uint32_t least = ~0u, most = 0, bits = 0, add = (uint32_t)code->immediate;
    for (long i = 0; i < n; i++) {
      uint32_t address = addresses[i] + add;
      least = address < least ? address : least;
      most = address > most ? address : most;
      bits |= address;
      places[i] = address;
    }
    low = least, high = most, any = bits;
  } else {
    const uint64_t *addresses = row;
    for (long i = 0; i < n; i++) {
      uint64_t address = addresses[i] + (uint64_t)code->immediate;
      low = address < low ? address : low;
      high = address > high ? address : high;
      any |= address;
      places[i] = address;
    }
  }
  if (any & (uint64_t)(size - 1)) return 0;
  if (code->space == GLOBAL) {
    int64_t known = -1, buffer;
    if (!in_buffer(m, (int64_t)(low - m->global_base), size, &known)) return 0;
    buffer = known;
    if (!in_buffer(m, (int64_t)(high - m->global_base), size, &known) || known != buffer) return 0;
    for (long i = 0; i < n; i++) places[i] += m->globals - m->global_base;
    return 1;
  }
  int own = code->space == SHARED;
  int64_t space = own ? m->shared_size : m->local_size;
  const int64_t *home = (const int64_t *)at(own ? m->shared_home : m->local_home) + warp * LANES;
  uint64_t arena = own ? m->shared : m->local;
  if (high > (uint64_t)space || (int64_t)high + size > space) return 0;
  for (long i = 0; i < n; i++) places[i] += arena + (uint64_t)home[i];
  return 1;
}

/* What a lane addresses, from the row of its registers. */
static inline uint64_t address_in(const Code *code, const Operand *operand, const void *row, long i) {
  if (operand->size == 8) return ((const uint64_t *)row)[i] + (uint64_t)code->immediate;
  return ((const uint32_t *)row)[i] + (uint32_t)code->immediate;
}

/* The space that a generic address is in. */
static int space_of(const Memory *m, uint64_t address) {
  if (address >= m->shared_window && address - m->shared_window < (uint64_t)1 << 32) return SHARED;
  if (address >= m->local_window && address - m->local_window < (uint64_t)1 << 32) return LOCAL;
  return GLOBAL;
}

/* The places of the lanes that take part; 0 where one may not be accessed, or not by this road. */
static int locate(const Code *code, const Operand *operand, const Memory *m, long warp, long warps,
                  const uint8_t *lanes, int64_t size, uint64_t *places) {
  uint64_t room[GROUP];
  int64_t known = -1;
  if (!lanes && locate_all(code, operand, m, warp, warps, size, places)) return 1;
  const void *row = read_row(operand, warp, warps, room);
  for (long i = 0; i < warps * LANES; i++) {
    if (lanes && !lanes[i]) continue;
    uint64_t address = address_in(code, operand, row, i);
    int64_t home = warp * LANES + i;
    uint64_t place = 0;
    if (address & (uint64_t)(size - 1)) return 0;
    int space = code->space;
    if (space == GENERIC) {
      space = space_of(m, address);
      if (space == SHARED && m->cluster > 1) return 0;
      address -= space == SHARED ? m->shared_window : space == LOCAL ? m->local_window : 0;
    }
    if (space == GLOBAL) place = in_buffer(m, (int64_t)(address - m->global_base), size, &known);
    else if (space == SHARED)
      place = in_block(m->shared, m->shared_home, home, address, size, m->shared_size);
    else place = in_block(m->local, m->local_home, home, address, size, m->local_size);
    if (!place) return 0;
    places[i] = place;
  }
  return 1;
}

/* The one space that all lanes access; -1: there are several. */
static int one_space(const Code *code, const Operand *operand, const Memory *m, long warp,
                     long warps, const uint8_t *lanes) {
  uint64_t room[GROUP];
  int found = -1;
  if (code->space != GENERIC) return code->space;
  const void *row = read_row(operand, warp, warps, room);
  for (long i = 0; i < warps * LANES; i++) {
    if (lanes && !lanes[i]) continue;
    uint64_t address = address_in(code, operand, row, i);
    int space = space_of(m, address);
    if (found >= 0 && space != found) return -1;
    found = space;
  }
  return found;
}

#define EACH_LANE for (long i = 0; i < n; i++) if (!lanes || lanes[i])

/* Whether elements of all lanes lie one behind the other. */
static int side_by_side(const uint64_t *places, long n, int width) {
  uint64_t off = 0;
  for (long i = 0; i < n; i++) off |= places[i] ^ (places[0] + (uint64_t)(i * width));
  return off == 0;
}

static void load_row(const Code *code, const Operand *out, long warp, long n, const uint8_t *lanes,
                     const uint64_t *places, long element) {
  long offset = element * code->width;
  char *base = at(out->base) + warp * out->warp;
  if (!lanes && code->count == 2 && code->width == out->size &&
      side_by_side(places, n, code->width)) {
    memcpy(base, at(places[0]), (size_t)(n * code->width));
    return;
  }
#define MOVE(into, from)                                    \
  EACH_LANE {                                               \
    from value;                                             \
    memcpy(&value, at(places[i]) + offset, sizeof value);   \
    ((into *)base)[i] = (into)value;                        \
  }                                                         \
  return;
  switch (code->width * 100 + out->size * 10 + code->is_signed) {
    case 110: case 111: MOVE(uint8_t, uint8_t)
    case 120: MOVE(uint16_t, uint8_t)
    case 140: MOVE(uint32_t, uint8_t)
    case 180: MOVE(uint64_t, uint8_t)
    case 121: MOVE(uint16_t, int8_t)
    case 141: MOVE(uint32_t, int8_t)
    case 181: MOVE(uint64_t, int8_t)
    case 220: case 221: MOVE(uint16_t, uint16_t)
    case 240: MOVE(uint32_t, uint16_t)
    case 280: MOVE(uint64_t, uint16_t)
    case 241: MOVE(uint32_t, int16_t)
    case 281: MOVE(uint64_t, int16_t)
    case 440: case 441: MOVE(uint32_t, uint32_t)
    case 480: MOVE(uint64_t, uint32_t)
    case 481: MOVE(uint64_t, int32_t)
    default: MOVE(uint64_t, uint64_t)
  }
#undef MOVE
}

static void store_lane(char *to, const void *row, long i, int width) {
  switch (width) {
    case 1: *(uint8_t *)to = ((const uint8_t *)row)[i]; break;
    case 2: memcpy(to, (const uint16_t *)row + i, 2); break;
    case 4: memcpy(to, (const uint32_t *)row + i, 4); break;
    default: memcpy(to, (const uint64_t *)row + i, 8);
  }
}

/* Notes accesses of `size` bytes to global memory, a mark for each unit. */
static void mark(const Memory *m, uint64_t marks, const uint64_t *places, long n, int64_t size,
                 const uint8_t *lanes) {
  int64_t units = size >> m->unit_shift;
  if (!lanes && side_by_side(places, n, (int)size)) {
    uint64_t first = places[0] - m->globals, last = first + (uint64_t)(n * size) - 1;
    if (last < (uint64_t)m->globals_size) {
      first >>= m->unit_shift, last >>= m->unit_shift;
      memset(at(marks) + first, 1, (size_t)(last - first + 1));
      return;
    }
  }
  EACH_LANE {
    uint64_t place = places[i] - m->globals;
    if (place >= (uint64_t)m->globals_size) continue;
    char *to = at(marks) + (place >> m->unit_shift);
    if (units <= 1) *to = 1;
    else memset(to, 1, (size_t)units);
  }
}

/* Whether memory has already what `warps` neighbours would store. */
static int stored(const Code *code, const Operand *operands, long warp, long warps,
                  const uint8_t *lanes, const uint64_t *places) {
  uint64_t room[GROUP], differ = 0;
  long n = warps * LANES;
  for (long e = 0; e < code->count - 1 && !differ; e++) {
    const void *values = read_row(operands + code->first + 1 + e, warp, warps, room);
#define COMPARE_AS(type)                                                  \
  EACH_LANE {                                                             \
    type there;                                                           \
    memcpy(&there, at(places[i]) + e * code->width, sizeof there);        \
    differ |= (uint64_t)(there ^ ((const type *)values)[i]);              \
  }                                                                       \
  break;
    switch (code->width) {
      case 1: COMPARE_AS(uint8_t)
      case 2: COMPARE_AS(uint16_t)
      case 4: COMPARE_AS(uint32_t)
      default: COMPARE_AS(uint64_t)
    }
#undef COMPARE_AS
  }
  return !differ;
}

/* One access by `warps` neighbours, after `locate`: the number of lanes. */
static long move(const Code *code, const Operand *operands, const Memory *m, long warp, long warps,
                 const uint8_t *lanes, const uint64_t *places) {
  long n = warps * LANES, count = 0;
  const Operand *rows = operands + code->first + 1;
  long elements = code->count - 1;
  if (code->kind == LOAD) {
    for (long e = 0; e < elements; e++)
      if (rows[e].base) load_row(code, rows + e, warp, n, lanes, places, e);
  } else {
    uint64_t rooms[8][GROUP];
    const void *values[8];
    for (long e = 0; e < elements; e++) values[e] = read_row(rows + e, warp, warps, rooms[e]);
    /* Lane by lane: the highest is the last where several write one place. */
    if (elements == 1 && !lanes && side_by_side(places, n, code->width)) {
      memcpy(at(places[0]), values[0], (size_t)(n * code->width));
    } else if (elements == 1) {
      EACH_LANE store_lane(at(places[i]), values[0], i, code->width);
    } else {
      EACH_LANE for (long e = 0; e < elements; e++)
        store_lane(at(places[i]) + e * code->width, values[e], i, code->width);
    }
  }
  EACH_LANE count++;
  uint64_t marks = code->kind == LOAD ? m->read : m->written;
  if (marks) mark(m, marks, places, n, elements * code->width, lanes);
  return count;
}
