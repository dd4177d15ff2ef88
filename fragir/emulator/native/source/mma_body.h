/* mma and wgmma, register file to register file; compiled once for each level of processor, with
 * LEVEL (0, 1, 2) and NAME(x) defined.
 */
#include <stdlib.h>

#include "mma_others.h"

/* Room for one call. */
typedef struct {
    Values *a, *b;     /* by slot */
    uint32_t *codes;   /* of one operand */
    uint64_t *words;   /* registers of one operand */
    uint64_t *c;       /* codes of C, then of D: [product][m][n] */
    int32_t *kept;     /* [m][depth] */
    int32_t *full;     /* [k] */
    uint8_t *scale_a;  /* [m][blocks] */
    uint8_t *scale_b;  /* [n / 8][blocks][8] */
    void *memory;
} Room;

static size_t aligned(size_t size) { return (size + 63) & ~(size_t)63; }

/* NULL in `memory` where there is none. `wide`: registers have 64 bits. */
static Room make_room(const Plan *p, int slots_a, int slots_b) {
    size_t a = (size_t)p->products * p->m * p->depth, b = (size_t)p->products * p->n * p->k;
    size_t c = (size_t)p->products * p->m * p->n, most = a > b ? a : b;
    size_t wide = p->left.kind == F64 ? 8 : 0;
    size_t one_a = aligned(4 * a) * 3 + aligned(wide * a), one_b = aligned(4 * b) * 3 + aligned(wide * b);
    size_t words = (size_t)p->a.count * p->a.lanes;
    if ((size_t)p->b.count * p->b.lanes > words) words = (size_t)p->b.count * p->b.lanes;
    if ((size_t)p->c.count * p->c.lanes > words) words = (size_t)p->c.count * p->c.lanes;
    most = c > most ? c : most;
    int blocks = p->scale_a.blocks;
    size_t sizes[] = {
        aligned(sizeof(Values) * slots_a), aligned(sizeof(Values) * slots_b), one_a * slots_a,
        one_b * slots_b, aligned(4 * most), aligned(8 * words), aligned(8 * c),
        aligned(4 * (size_t)p->m * p->depth), aligned(4 * (size_t)p->k),
        aligned((size_t)p->m * blocks), aligned((size_t)p->n * blocks),
    };
    size_t total = 64;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) total += sizes[i];
    Room room = {0};
    room.memory = malloc(total);
    if (!room.memory) return room;
    char *at = (char *)aligned((size_t)room.memory);
    room.a = (Values *)at, at += sizes[0];
    room.b = (Values *)at, at += sizes[1];
    for (int side = 0; side < 2; side++) {
        Values *values = side ? room.b : room.a;
        size_t each = aligned(4 * (side ? b : a));
        for (int slot = 0; slot < (side ? slots_b : slots_a); slot++) {
            values[slot].value = (float *)at, at += each;
            values[slot].special = (float *)at, at += each;
            values[slot].exponent = (int32_t *)at, at += each;
            values[slot].wide = (double *)at, at += aligned(wide * (side ? b : a));
        }
    }
    room.codes = (uint32_t *)at, at += sizes[4];
    room.words = (uint64_t *)at, at += sizes[5];
    room.c = (uint64_t *)at, at += sizes[6];
    room.kept = (int32_t *)at, at += sizes[7];
    room.full = (int32_t *)at, at += sizes[8];
    room.scale_a = (uint8_t *)at, at += sizes[9];
    room.scale_b = (uint8_t *)at;
    return room;
}

/* Elements from the bits in `room.codes`. */
ALWAYS void fill(const Plan *p, int left, uint32_t *codes, Values *to) {
    const Element *element = left ? &p->left : &p->right;
    int count = p->products * (left ? p->m * p->depth : p->n * p->k);
    decode(element, codes, count, to);
    if (element->kind == BITS)
        pack_bits(to->exponent, left ? p->m : p->n / COLUMNS, p->k, left ? 1 : COLUMNS);
}

ALWAYS void read_values(const Plan *p, int left, Room *room, Values *to) {
    const Fragment *f = left ? &p->a : &p->b;
    if (p->left.kind == F64) {
        for (int i = 0; i < f->elements; i++) to->wide[i] = double_of(room->words[f->word[i]]);
        return;
    }
    take(f, (const uint32_t *)room->words, room->codes);
    fill(p, left, room->codes, to);
}

/* The column of every kept element, from the metadata register of each lane. */
ALWAYS void read_metadata(const Plan *p, const uint32_t *e, int32_t *kept) {
    int chunks = p->k / p->chunk, each = p->depth / chunks;
    for (int m = 0; m < p->m; m++) {
        int32_t found[8], *to = kept + m * p->depth;
        for (int x = 0; x < chunks; x++) {
            uint32_t index = e[p->metadata_lane[m * chunks + x]] >> p->metadata_shift[m * chunks + x] & 15;
            int at = 0;
            if (p->kept == 1) /* the nibble spans two columns of 2 bits: the index is bit 1 */
                for (int g = 0; g < p->group; g++) found[at++] = (int)(index >> 1 & 1) + g;
            else {
                for (int g = 0; g < p->group; g++) found[at++] = (int)(index & 3) * p->group + g;
                for (int g = 0; g < p->group; g++) found[at++] = (int)(index >> 2) * p->group + g;
            }
            for (int i = 0; i < each; i++) {
                int k = x * each + i;
                to[p->order ? p->order[k] : k] = x * p->chunk + found[i];
            }
        }
    }
}

/* D = A B + C of one instance, in `room->c`, for rows first <= m < last. */
ALWAYS void compute(const Plan *p, Room *room, const Values *a, const Values *b, int sparse,
                    int first, int last) {
    int blocks = p->n / COLUMNS, scales = p->scale_a.blocks;
    if (p->arithmetic == DOUBLE) {
        for (int x = 0; x < p->products; x++)
            multiply_double(p->m, p->k, p->n, a->wide + x * p->m * p->k, b->wide + x * p->n * p->k,
                            room->c + x * p->m * p->n);
        return;
    }
    uint32_t *codes = (uint32_t *)room->c;
    if (p->widens)
        for (int i = 0; i < p->products * p->m * p->n; i++)
            codes[i] = bits_of((float)half_value(codes[i]));
    double factor_b[COLUMNS];
    int32_t power_b[COLUMNS];
    for (int x = 0; x < p->products; x++)
        for (int block = 0; block < blocks; block++) {
            int at_b = (x * blocks + block) * p->k * COLUMNS;
            Strip s = {0};
            s.b = b->value + at_b;
            s.special_b = (b->specials ? b->special : b->value) + at_b;
            s.exponent_b = b->exponent + at_b;
            s.specials = a->specials | b->specials;
            s.extreme = a->extreme | b->extreme;
            if (p->arithmetic == INTEGER && p->left.kind == BITS) s.exponent_b = b->exponent + at_b / 32;
            const uint8_t *scale_b = room->scale_b + block * scales * COLUMNS;
            if (p->arithmetic == SCALED) {
                for (int j = 0; j < COLUMNS; j++) {
                    power_b[j] = p->power[scale_b[j]];
                    factor_b[j] = p->significand[scale_b[j]] * power_of_two(power_b[j]);
                }
                s.factor_b = factor_b, s.power_b = power_b;
            }
            for (int m = first; m < last; m++) {
                int at_a = (x * p->m + m) * p->depth;
                uint32_t *c = codes + (x * p->m + m) * p->n + block * COLUMNS;
                s.a = a->value + at_a;
                s.special_a = (a->specials ? a->special : a->value) + at_a;
                s.exponent_a = a->exponent + at_a;
                s.kept = sparse ? room->kept + m * p->depth : NULL;
                switch (p->arithmetic) {
                case SCALED: {
                    uint8_t code = room->scale_a[m * scales];
                    s.power_a = p->power[code];
                    s.factor_a = p->significand[code] * power_of_two(s.power_a);
                }
                /* fallthrough */
                case FUSED:
                    chain_of(p, &s, 0, p->depth, c, p->half_addend);
                    break;
                case EMULATED: {
                    uint32_t one[COLUMNS] = {0}, two[COLUMNS] = {0};
                    int half = p->rounding == RNE_F16, middle = p->depth / 2;
                    chain_of(p, &s, 0, middle, one, 0);
                    if (p->chained) memcpy(two, one, sizeof one);
                    chain_of(p, &s, middle, p->depth, two, 0);
                    for (int j = 0; j < COLUMNS; j++)
                        if (half)
                            c[j] = half_code(half_value(c[j]) + half_value(two[j]));
                        else if (p->chained)
                            c[j] = canonical(float_of(c[j]) + float_of(two[j]));
                        else
                            c[j] = canonical(float_of(c[j]) + (float_of(one[j]) + float_of(two[j])));
                    break;
                }
                case SOFTWARE:
                    software_strip(p, &s, c);
                    break;
                case GROUPED:
                    grouped_strip(p, &s, room->scale_a + m * scales, scale_b, c);
                    break;
                default:
                    if (p->left.kind == BITS) s.exponent_a = a->exponent + at_a / 32;
                    integer_strip(p, s.exponent_a, s.exponent_b, s.kept, room->full, c);
                }
            }
        }
    if (p->narrows)
        for (int i = 0; i < p->products * p->m * p->n; i++)
            codes[i] = half_code(float_of(codes[i]));
}

/* Rows first.. of registers [count][lanes] from the codes of D. */
ALWAYS void put_words(const Plan *p, const Room *room, uint32_t *words, int lanes) {
    const uint32_t *codes = (const uint32_t *)room->c;
    int count = p->d_count * lanes;
    for (int i = 0; i < count; i++) words[i] = codes[p->parts[i]];
    for (int part = 1; part < p->d_per; part++) {
        const int32_t *from = p->parts + part * count;
        for (int i = 0; i < count; i++) words[i] |= codes[from[i]] << part * p->d_bits;
    }
}

ALWAYS char *row_of(const Operand *o, int64_t count, int r, int64_t i, int64_t at, int size) {
    return (char *)o->base + (o->rows[r * count + i] * o->pitch + at * 32) * size;
}

/* One register of a warp; the sizes are constants, so that no loop is called for it. */
ALWAYS void copy_row(void *to, const void *from, int wide) {
    if (wide) memcpy(to, from, 256);
    else memcpy(to, from, 128);
}

/* Rows of one warp lie far apart, at multiples of a power of two as a rule: without this each of
 * them would be waited for.
 */
ALWAYS void fetch_rows(const Operand *o, int64_t count, int registers, int64_t i, int64_t at,
                       int wide) {
    for (int r = 0; r < registers; r++) {
        const char *row = row_of(o, count, r, i, at, wide ? 8 : 4);
        for (int line = 0; line < (wide ? 256 : 128); line += 64) __builtin_prefetch(row + line);
    }
}

/* Instructions i0 <= i < i1 of warps first <= w < last of the selection; 1: no memory. */
int NAME(mma)(const Mma *j, int64_t first, int64_t last, int64_t i0, int64_t i1) {
    const Plan *p = j->plan;
    const int wide = p->left.kind == F64, size = wide ? 8 : 4;
    Room room = make_room(p, j->a.slots, j->b.slots);
    char *done = malloc((size_t)j->a.slots + (size_t)j->b.slots);
    if (!room.memory || !done) {
        free(room.memory);
        free(done);
        return 1;
    }
    int mode = fegetround();
    if (p->direction) {
        static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
        fesetround(modes[p->direction]);
    }
    for (int64_t w = first; w < last; w++) {
        int64_t warp = j->warps ? j->warps[w] : j->origin + w;
        memset(done, 0, (size_t)j->a.slots + (size_t)j->b.slots);
        if (p->metadata_lane) read_metadata(p, j->e + w * 32, room.kept);
        for (int x = 0; x < p->scale_a.blocks; x++) {
            for (int m = 0; m < p->m; m++)
                room.scale_a[m * p->scale_a.blocks + x] =
                    (uint8_t)(j->scale_a[w * 32 + p->scale_a.lane[m]] >> (p->scale_a.shift + 8 * x));
            for (int n = 0; n < p->n; n++)
                room.scale_b[(n / COLUMNS * p->scale_a.blocks + x) * COLUMNS + n % COLUMNS] =
                    (uint8_t)(j->scale_b[w * 32 + p->scale_b.lane[n]] >> (p->scale_b.shift + 8 * x));
        }
        for (int64_t i = i0; i < i1; i++) {
            int64_t next = i + 1 < i1 ? i + 1 : i0; /* then that of the next warp */
            int64_t of = i + 1 < i1 || w + 1 == last ? w : w + 1;
            int64_t then = j->warps ? j->warps[of] : j->origin + of;
            fetch_rows(&j->c, j->count, p->c.count, next, j->c.by_place ? of : then, wide);
            if (of != w || !done[j->a.slot[next]])
                fetch_rows(&j->a, j->count, p->a.count, next, j->a.by_place ? of : then, wide);
            if (of != w || !done[j->a.slots + j->b.slot[next]])
                fetch_rows(&j->b, j->count, p->b.count, next, j->b.by_place ? of : then, wide);
            for (int side = 0; side < 2; side++) {
                const Operand *o = side ? &j->b : &j->a;
                const Fragment *f = side ? &p->b : &p->a;
                char *flag = done + (side ? j->a.slots : 0) + o->slot[i];
                if (*flag) continue;
                *flag = 1;
                for (int r = 0; r < f->count; r++)
                    copy_row((char *)room.words + r * 32 * size,
                             row_of(o, j->count, r, i, o->by_place ? w : warp, size), wide);
                read_values(p, !side, &room, (side ? room.b : room.a) + o->slot[i]);
            }
            for (int r = 0; r < p->c.count; r++)
                copy_row((char *)room.words + r * 32 * size,
                         row_of(&j->c, j->count, r, i, j->c.by_place ? w : warp, size), wide);
            if (wide)
                for (int x = 0; x < p->c.elements; x++) room.c[x] = room.words[p->c.word[x]];
            else
                take(&p->c, (const uint32_t *)room.words, (uint32_t *)room.c);
            compute(p, &room, room.a + j->a.slot[i], room.b + j->b.slot[i], p->metadata_lane != NULL,
                    0, p->m);
            if (wide)
                for (int x = 0; x < p->d_count * 32; x++) room.words[x] = room.c[p->parts[x]];
            else
                put_words(p, &room, (uint32_t *)room.words, 32);
            for (int r = 0; r < p->d_count; r++)
                copy_row(row_of(&j->d, j->count, r, i, j->d.by_place ? w : warp, size),
                         (char *)room.words + r * 32 * size, wide);
        }
    }
    if (p->direction) fesetround(mode);
    free(room.memory);
    free(done);
    return 0;
}

/* Element bits of an operand in shared memory, in the order of A ([m][k]) or B ([n / 8][k][8]).
 * Chunks are [row of m or n][x] along K, or transposed [k][x] along M or N.
 */
ALWAYS void gather(const Wgmma *j, int64_t g, int left, int rows, int depth, uint32_t *codes) {
    const uint32_t *chunk = (left ? j->chunks_a : j->chunks_b) + g * (left ? j->count_a : j->count_b);
    const uint8_t *memory = j->shared + j->home[g];
    const int transposed = left ? j->transposed_a : j->transposed_b, bits = j->bits;
    const int each = 128 / bits, outer = transposed ? depth : rows, inner = transposed ? rows : depth;
    const uint32_t flip = left ? j->negate_a : j->negate_b;
    for (int o = 0; o < outer; o++)
        for (int x = 0; x < inner / each; x++) {
            const uint8_t *at = memory + chunk[o * (inner / each) + x];
            for (int i = 0; i < each; i++) {
                int mn = transposed ? x * each + i : o, k = transposed ? o : x * each + i;
                uint32_t code;
                if (bits == 16) {
                    uint16_t half;
                    memcpy(&half, at + 2 * i, 2);
                    code = half;
                } else if (bits == 8)
                    code = at[i];
                else if (bits == 32)
                    memcpy(&code, at + 4 * i, 4);
                else
                    code = at[i >> 3] >> (i & 7) & 1;
                codes[left ? mn * depth + k : (mn / COLUMNS * depth + k) * COLUMNS + mn % COLUMNS] =
                    code ^ flip;
            }
        }
}

/* Warpgroups first <= g < last, of each the warps v0 <= v < v1 (16 rows each); 1: no memory. */
int NAME(wgmma)(const Wgmma *j, int64_t first, int64_t last, int v0, int v1) {
    const Plan *p = j->plan;
    Room room = make_room(p, 1, 1);
    if (!room.memory) return 1;
    for (int64_t g = first; g < last; g++) {
        int64_t warp = j->warps[g];
        if (p->metadata_lane) read_metadata(p, j->e + g * 128, room.kept);
        if (j->a.base) {
            for (int r = 0; r < p->a.count; r++)
                memcpy((uint32_t *)room.words + r * 128, row_of(&j->a, 1, r, 0, warp, 4), 512);
            take(&p->a, (const uint32_t *)room.words, room.codes);
            if (j->negate_a)
                for (int i = 0; i < p->a.elements; i++) room.codes[i] ^= j->negate_a;
        } else
            gather(j, g, 1, p->m, p->depth, room.codes);
        fill(p, 1, room.codes, room.a);
        gather(j, g, 0, p->n, p->k, room.codes);
        fill(p, 0, room.codes, room.b);
        if (j->accumulates[g]) {
            for (int r = 0; r < p->c.count; r++)
                memcpy((uint32_t *)room.words + r * 128, row_of(&j->d, 1, r, 0, warp, 4), 512);
            take(&p->c, (const uint32_t *)room.words, (uint32_t *)room.c);
        } else
            memset(room.c, 0, 4 * (size_t)p->m * p->n);
        compute(p, &room, room.a, room.b, p->metadata_lane != NULL, 16 * v0, 16 * v1);
        put_words(p, &room, (uint32_t *)room.words, 128);
        for (int r = 0; r < p->d_count; r++)
            memcpy(row_of(&j->d, 1, r, 0, warp + v0, 4), (uint32_t *)room.words + r * 128 + 32 * v0,
                   128 * (size_t)(v1 - v0));
    }
    free(room.memory);
    return 0;
}
