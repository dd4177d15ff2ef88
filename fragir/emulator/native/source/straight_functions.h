/* All functions of straight-line runs, for the CPU that the file is compiled for. */
#include "straight.h"
#include "straight_math.h"

/* Operands are the result's own row or apart from it, so lanes do not depend on each other. */
#if defined(__clang__)
#define LANE_BY_LANE _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define LANE_BY_LANE _Pragma("GCC ivdep")
#else
#define LANE_BY_LANE
#endif

#define BODY(name, R, ROWS, READ, e)                              \
  static void run_##name(void *out, void *const *in, long n, int64_t k) { \
    R *o = out;                                                   \
    ROWS(void) k;                                                 \
    for (long at = 0; at < n; at += LANES) {                      \
      LANE_BY_LANE for (int lane = 0; lane < LANES; lane++) {     \
        long i = at + lane;                                       \
        READ                                                      \
        o[i] = (R)(e);                                            \
      }                                                           \
    }                                                             \
  }
#define ROW(T, name, number) const T *name = in[number];
#define ROWS1(A) ROW(A, a_, 0)
#define ROWS2(A, B) ROWS1(A) ROW(B, b_, 1)
#define ROWS3(A, B, C) ROWS2(A, B) ROW(C, c_, 2)
#define ROWS4(A, B, C, D) ROWS3(A, B, C) ROW(D, d_, 3)
#define READ1(A) A a = a_[i];
#define READ2(A, B) READ1(A) B b = b_[i];
#define READ3(A, B, C) READ2(A, B) C c = c_[i];
#define READ4(A, B, C, D) READ3(A, B, C) D d = d_[i];
#define OF1(name, R, A, e) BODY(name, R, ROWS1(A), READ1(A), e)
#define OF2(name, R, A, B, e) BODY(name, R, ROWS2(A, B), READ2(A, B), e)
#define OF3(name, R, A, B, C, e) BODY(name, R, ROWS3(A, B, C), READ3(A, B, C), e)
#define OF4(name, R, A, B, C, D, e) BODY(name, R, ROWS4(A, B, C, D), READ4(A, B, C, D), e)
#include "straight_list.h"
#undef OF1
#undef OF2
#undef OF3
#undef OF4

#define OF1(name, ...) run_##name,
#define OF2(name, ...) run_##name,
#define OF3(name, ...) run_##name,
#define OF4(name, ...) run_##name,
static const Function FUNCTIONS[] = {
#include "straight_list.h"
};
