/* Straight-line runs: neighbouring instructions of one basic block, for some warps, in one call.
 *
 * native/straight.py has the same structures for numpy. Addresses are 64-bit numbers there, so
 * they are here: nothing depends on the size of a pointer.
 */
#ifndef FRAGIR_STRAIGHT_H
#define FRAGIR_STRAIGHT_H

#include "watch.h"

enum { LANES = 32, CHUNK = 8, GROUP = CHUNK * LANES }; /* warps taken together, their lanes */

/* How an operand is read. */
enum {
  DIRECT = 0,   /* [warp][lane], or CHUNK equal warps of a constant (warp stride 0) */
  STRIDED = 1,  /* any other strides */
  INVERTED = 2, /* a predicate read through `!` */
};

/* A row: lane l of warp w lies at base + w * warp + l * lane. base 0: there is none. */
typedef struct {
  uint64_t base;
  int64_t warp;
  int32_t lane;
  int16_t size; /* bytes */
  int16_t how;
} Operand;

enum { ELEMENTS, COMPARE, SHUFFLE, VOTE, LOAD, STORE };  /* Code.kind */
enum { UP, DOWN, ACROSS, INDEXED };                      /* immediate of SHUFFLE */
enum { EVERYBODY, ANYBODY, UNIFORM, BALLOT };            /* immediate of VOTE */
enum { GLOBAL = 0, SHARED = 1, LOCAL = 2, GENERIC = 3 }; /* Code.space */
enum { AND = 1, OR = 2, XOR = 3 };                       /* Code.combine */

/* One operation. Its operands are `first`.. in the run's list, `count` of them:
 *   ELEMENTS: the sources; out is written
 *   COMPARE:  a, b, where combine is not 0 a predicate; out is p, other q
 *   SHUFFLE:  value, b, c; out, and in other whether the source lane is in range
 *   VOTE:     a predicate; out
 *   LOAD, STORE: the address, then a row for each element of `width` bytes */
typedef struct {
  int32_t kind, function; /* in the table of functions */
  int32_t number;         /* of the instruction within its run */
  int32_t first, count;
  int32_t times; /* elements in a lane of out: 2 of packed types */
  int32_t combine;
  int32_t space, width, is_signed; /* is_signed: loads into wider registers extend the sign */
  int32_t watched;                 /* LOAD, STORE: its row in Checks; -1: nobody looks */
  int32_t doubt;                   /* whether one of the instruction's registers is in doubt */
  int64_t immediate;               /* of the function; LOAD, STORE: added to the address */
  Operand guard, out, other;
} Code;

/* Memory of the machine. */
typedef struct {
  uint64_t globals, shared, local;        /* first bytes */
  uint64_t starts, ends;                  /* int64 [buffers]: of buffers in global memory */
  uint64_t shared_home, local_home;       /* int64 [warp][lane] */
  uint64_t totals;                        /* int64 [8]: bytes loaded by space, then stored */
  uint64_t read, written; /* a mark for each unit of global memory; 0: nobody asks (arena.py) */
  int64_t unit_shift, globals_size;
  int64_t buffers, shared_size, local_size, cluster;
  uint64_t global_base, shared_window, local_window;
} Memory;

/* How a piece ends. */
enum {
  OTHER = 0,   /* with what is not done here */
  FALLING = 1, /* it goes on behind it */
  JUMP = 2,    /* all lanes branch */
  BRANCH = 3,  /* the lanes that `branch` names do */
  BARRIER = 4, /* it goes on where all warps of the machine are there */
};

/* A straight piece of the program. */
typedef struct {
  uint64_t codes, operands;    /* of Code, of Operand */
  int64_t count, instructions; /* codes; instructions that they are made of */
  int64_t ending, position;    /* of the last instruction in the program */
  int64_t size;                /* what the watch counts: instructions and the ending */
  int64_t together;            /* whether it has instructions that whole warps come to */
  int64_t doubt;               /* whether what the branch asks is in doubt */
  int64_t next, to;            /* the pieces behind it and at the branch's target; -1: none known */
  int64_t next_position, to_position;
  Operand branch;
} Piece;

/* What one call may do, and where it came to. */
typedef struct {
  uint64_t pieces, memory; /* of Piece; one Memory */
  uint64_t runs, taken;    /* int64: warps that began each piece; branches back by position */
  uint64_t checks;         /* a Checks; 0: there are none */
  int64_t budget;          /* of those, in one round */
  int64_t left, others;    /* instructions until somebody looks; where other lanes stand */
  int64_t whole;           /* whether all warps of the machine are there */
  int64_t piece;           /* where it came to */
} Walk;

typedef void (*Function)(void *out, void *const *in, long n, int64_t immediate);

/* What the functions compute, a line each, in the order of the tables. */
EXPORT const char *fragir_straight_names(void);

/* Executes `count` warps: first.. or, where list is not 0, those of the int64 list; mask (bytes of
 * [count][lane]) says which lanes take part, 0 all. It begins at instruction `from` of walk->piece.
 * Where `on` it goes from piece to piece as long as all lanes go together, what comes next is known
 * below `others`, and `left` and `budget` allow it; it counts what it begins.
 * Result: the instruction of walk->piece at which it stopped, without any effect of that one; that
 * is its `instructions` where the ending is to be looked at, which has no effect yet. */
EXPORT int64_t fragir_straight(Walk *walk, int64_t first, int64_t count, const int64_t *list,
                               const uint8_t *mask, int64_t from, int64_t on);

/* The same for each kind of CPU. */
typedef int64_t Machine(Walk *, int64_t, int64_t, const int64_t *, const uint8_t *, int64_t, int64_t);
Machine straight_base, straight_avx2, straight_avx512;

#endif
