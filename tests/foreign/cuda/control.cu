// Control flow: divergence, calls, function pointers, jump tables, local memory, per-lane locks.
#include <stdint.h>

extern "C" __global__ void collatz(const uint32_t *in, uint32_t *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint64_t x = in[i];
  uint32_t count = 0;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    ++count;
  }
  steps[i] = count;
}

// A loop within a loop, both left early, and lanes that meet again for a shuffle.
extern "C" __global__ void nested(const int *limits, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int limit = i < n ? limits[i] : 0, total = 0;
  for (int a = 0; a < limit; ++a) {
    if (a * a > limit) break;
    for (int b = a; b < limit; b += 3) {
      if ((a ^ b) % 5 == 4) continue;
      if (b > 20) goto out;
      total += a * b + 1;
    }
  }
out:
  total += __shfl_xor_sync(~0u, total, 1);
  if (i < n) out[i] = total;
}

__device__ __noinline__ int twice(int x, int) { return 2 * x; }
__device__ __noinline__ int minus(int x, int y) { return x - y; }
__device__ __noinline__ int times(int x, int y) { return x * y; }
__device__ __noinline__ int either(int x, int y) { return x & 1 ? times(x, y) : minus(y, x); }
typedef int (*Binary)(int, int);
__device__ const Binary table[4] = {twice, minus, times, either};

struct Pair { int first; double second; short third[3]; };

__device__ __noinline__ Pair swapped(Pair p) {
  Pair q = {(int)p.second, (double)p.first, {p.third[2], p.third[1], p.third[0]}};
  return q;
}

extern "C" __global__ void pointers(const int *which, const int *x, const int *y, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[which[i] & 3](x[i], y[i]);
}

extern "C" __global__ void structures(Pair given, const int *x, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Pair p = given;
  p.first += x[i];
  p.third[i % 3] = (short)x[i];
  p = swapped(p);
  out[i] = p.first + 10 * (int)p.second + 100 * p.third[0] + 1000 * p.third[2];
}

// A dense switch, which becomes a tree of comparisons.
extern "C" __global__ void interpreter(const uint8_t *code, int length, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int stack[16], top = 0;
  for (int at = 0; at < length; ++at) {
    int op = code[i * length + at];
    switch (op) {
      case 0: stack[top & 15] = i; ++top; break;
      case 1: stack[top & 15] = at; ++top; break;
      case 2: if (top > 1) { --top; stack[(top - 1) & 15] += stack[top & 15]; } break;
      case 3: if (top > 1) { --top; stack[(top - 1) & 15] *= stack[top & 15]; } break;
      case 4: if (top > 1) { --top; stack[(top - 1) & 15] ^= stack[top & 15]; } break;
      case 5: if (top > 0) { stack[top & 15] = stack[(top - 1) & 15]; ++top; } break;
      case 6: if (top > 0) stack[(top - 1) & 15] = -stack[(top - 1) & 15]; break;
      case 7: if (top > 0) stack[(top - 1) & 15] <<= 1; break;
      case 8: if (top > 0 && stack[(top - 1) & 15] & 1) ++at; break;
      case 9: if (top > 0) --top; break;
      default: if (top > 0) stack[(top - 1) & 15] += op;
    }
    if (top > 16) top = 16;
  }
  out[i] = top > 0 ? stack[(top - 1) & 15] : -1;
}

// A jump table, which nvcc does not make of a switch.
extern "C" __global__ void jump(const int *which, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = which[i], y;
  asm volatile(
      "{\n.reg .u32 at;\nways: .branchtargets FIRST, SECOND, SECOND, THIRD;\n"
      "and.b32 at, %1, 3;\nbrx.idx at, ways;\n"
      "FIRST:\nadd.s32 %0, %1, 100;\nbra.uni END;\n"
      "SECOND:\nmul.lo.s32 %0, %1, %1;\nbra.uni END;\n"
      "THIRD:\nneg.s32 %0, %1;\n"
      "END:\n}"
      : "=r"(y) : "r"(x));
  out[i] = y + (x & 8);
}

// An array in local memory, sorted by each thread for itself.
extern "C" __global__ void local_sort(const float *in, float *out, int n) {
  float v[24];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; ++j) v[j] = in[i * n + j];
  for (int j = 1; j < n; ++j) {
    float x = v[j];
    int k = j;
    for (; k > 0 && v[k - 1] > x; --k) v[k] = v[k - 1];
    v[k] = x;
  }
  for (int j = 0; j < n; ++j) out[i * n + j] = v[j];
}

// Every lane takes one lock in turn; what it guards is added to without an atomic.
extern "C" __global__ void locks(int *lock, int *sums, const int *where, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int slot = where[i];
  for (bool done = false; !done;) {
    if (atomicCAS(&lock[slot], 0, 1) == 0) {
      __threadfence();
      *(volatile int *)&sums[slot] += i;
      __threadfence();
      atomicExch(&lock[slot], 0);
      done = true;
    }
  }
}

__constant__ float coefficients[8] = {1.f, -0.5f, 0.25f, -0.125f, 0.0625f, 3.f, 1e-3f, 2.f};
__device__ unsigned counter;

extern "C" __global__ void polynomial(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 7; k >= 0; --k) sum = __fadd_rn(__fmul_rn(sum, x[i]), coefficients[k]);
  y[i] = sum;
  atomicAdd(&counter, 1u);
  if (i == n - 1) y[n] = (float)sizeof(coefficients);
}
