// Kernels in C for LLVM's NVPTX backend: clang --target=nvptx64-nvidia-cuda.
#define KERNEL __attribute__((nvptx_kernel))
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))

typedef float float4 __attribute__((ext_vector_type(4)));

static int thread(void) {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}

KERNEL void saxpy(float a, const GLOBAL float *x, GLOBAL float *y, int n) {
  for (int i = thread(); i < n; i += __nvvm_read_ptx_sreg_ntid_x() * __nvvm_read_ptx_sreg_nctaid_x())
    y[i] = a * x[i] + y[i];
}

KERNEL void vectors(const GLOBAL float4 *x, GLOBAL float4 *y, float4 scale) {
  y[thread()] = x[thread()].wzyx * scale + (float4)(1.f);
}

static SHARED int part[128];

KERNEL void total(const GLOBAL int *x, GLOBAL int *out) {
  int t = __nvvm_read_ptx_sreg_tid_x();
  part[t] = x[thread()];
  for (int d = 64; d; d >>= 1) {
    __syncthreads();
    if (t < d) part[t] += part[t + d];
  }
  if (t == 0) __nvvm_atom_add_gen_i((int *)out, part[0]);
}

struct Node { int value; struct Node *next; short weights[5]; };

__attribute__((noinline)) static long walk(const struct Node *node, int depth) {
  long sum = 0;
  for (; node && depth; node = node->next, --depth) sum += node->value * node->weights[depth % 5];
  return sum;
}

KERNEL void lists(struct Node *const *heads, long *sums, int depth) {
  sums[thread()] = walk(heads[thread()], depth);
}

KERNEL void classify(const GLOBAL int *x, GLOBAL int *y) {
  int v = x[thread()], r;
  switch (v & 15) {
    case 0: r = v * 3; break;
    case 1: r = v / 7; break;
    case 2: r = v % 11; break;
    case 3: r = __builtin_popcount(v); break;
    case 4: r = __builtin_clz(v | 1); break;
    case 5: r = v << (v & 7); break;
    case 6: r = __builtin_bitreverse32(v); break;
    case 7: r = -v; break;
    case 8: r = v ^ 0x55; break;
    case 9: r = __nvvm_shfl_sync_bfly_i32(-1, v, 1, 31); break;
    default: r = 0;
  }
  y[thread()] = r;
}

static const double table[6] = {1.0, -0.5, 1.0 / 6, 1e-300, 3.0e8, 0.1};

KERNEL void series(const GLOBAL double *x, GLOBAL double *y) {
  double v = x[thread()], s = 0, local[6];
  for (int i = 0; i < 6; ++i) local[i] = table[i] * v;
  for (int i = 0; i < 6; ++i) s = s * v + local[(i * (int)v) % 6 < 0 ? 0 : (i * (int)v & 3)];
  y[thread()] = __builtin_sqrt(s) / v;
}
