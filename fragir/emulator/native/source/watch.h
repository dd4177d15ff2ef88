/* What checks are told of straight-line runs: checks/compiled_runs.py fills it in, straight_watch.h
 * looks at accesses. Addresses are 64-bit numbers, as in straight.h.
 */
#ifndef FRAGIR_WATCH_H
#define FRAGIR_WATCH_H

#include "planes.h"

/* One instruction's accesses; the last four are of global memory, then of shared memory. */
typedef struct {
  int64_t site;            /* in records */
  int64_t races, priced;   /* whether they are noted, and what they cost */
  int64_t cached, updates; /* whether loads may see old bytes; whether stores may come from loads */
  int64_t ledger;          /* of the buffer that was accessed last */
  int64_t values;          /* whether its last store was harmless by its values */
  int64_t space, low, high; /* where in which space they begin that stay within a variable: counted
                               from the lane's own bytes; -1: anywhere */
  int64_t paid[2], needed[2];
  int64_t excess[2], warp[2]; /* of the dearest so far; its warp, counted through the grid */
} Watched;

/* Registers of one width; one bit beside each of theirs says whether it is undefined. */
typedef struct {
  uint64_t first, size, bits; /* bytes */
} RegisterFile;

typedef struct {
  uint64_t knowledge, shared, ledgers; /* a Knowledge, a SharedLedger, GlobalLedgers */
  int64_t buffers;                     /* how many of those */
  uint64_t files;                      /* of RegisterFile */
  int64_t widths;                      /* how many of those */
  uint64_t shared_bits, local_bits;    /* undefined bits of all bytes */
  /* Room: int64 for each lane of the machine; bytes by warp; the bytes of an access of all lanes. */
  uint64_t positions, lanes, patterns, bytes;
  uint64_t floor, uneven;              /* int32 by lane, bytes by warp: checks/races/clocks.py */
  uint64_t shared_home, local_home;    /* int64 by lane: its own bytes */
  int64_t warps, resident;             /* of the machine; those that have blocks */
  int64_t now, lowest;
  int64_t logs;       /* whether the log has reads */
  int64_t first_warp; /* of the machine, counted through the grid */
  int64_t joins;      /* whether a barrier of everybody is nothing but a floor */
  uint64_t rows;      /* of Watched */
} Checks;

#endif
