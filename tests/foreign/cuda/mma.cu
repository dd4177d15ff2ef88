// Tensor cores up to Ada: mma.sync, ldmatrix, a ring of cp.async.
#include <cuda_fp16.h>
#include <stdint.h>

__device__ __forceinline__ uint32_t shared_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void copy16(uint32_t to, const void *from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
}

// C (m x n, f32) = A (m x k) B (k x n); k and n are multiples of 8; 64x64x32 a block, STAGES deep.
// Rows of 64 bytes (A) and 128 bytes (B) are swizzled in chunks of 16 bytes.
constexpr int STAGES = 3;

extern "C" __global__ void __launch_bounds__(128)
gemm(const __half *a, const __half *b, float *c, int m, int n, int k) {
  __shared__ __align__(128) __half as[STAGES][64 * 32], bs[STAGES][32 * 64];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.y * 64, col = blockIdx.x * 64, steps = (k + 31) / 32;
  auto at_a = [](int r, int chunk) { return r * 32 + (chunk ^ (r >> 1 & 3)) * 8; };
  auto at_b = [](int r, int chunk) { return r * 64 + (chunk ^ (r & 7)) * 8; };
  auto fetch = [&](int step) {
    int stage = step % STAGES, k0 = step * 32;
    if (step < steps) {
      for (int i = threadIdx.x; i < 256; i += 128) {
        int r = i / 4, x = i % 4;
        bool inside = row + r < m && k0 + x * 8 < k;
        copy16(shared_address(&as[stage][at_a(r, x)]), inside ? a + (size_t)(row + r) * k + k0 + x * 8 : a, inside);
        r = i / 8, x = i % 8;
        inside = k0 + r < k && col + x * 8 < n;
        copy16(shared_address(&bs[stage][at_b(r, x)]), inside ? b + (size_t)(k0 + r) * n + col + x * 8 : b, inside);
      }
    }
    asm volatile("cp.async.commit_group;");
  };
  float acc[2][4][4] = {};
  for (int s = 0; s < STAGES - 1; ++s) fetch(s);
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    fetch(step + STAGES - 1);
    const __half *sa = as[step % STAGES], *sb = bs[step % STAGES];
    for (int kk = 0; kk < 2; ++kk) {
      uint32_t fa[2][4], fb[4][2];
      for (int i = 0; i < 2; ++i)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                     : "r"(shared_address(&sa[at_a(warp / 2 * 32 + i * 16 + lane % 16, kk * 2 + lane / 16)])) : "memory");
      for (int j = 0; j < 4; j += 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j + 1][0]), "=r"(fb[j + 1][1])
                     : "r"(shared_address(&sb[at_b(kk * 16 + lane % 16, warp % 2 * 4 + j + lane / 16)])) : "memory");
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                       : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
    }
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int h = 0; h < 2; ++h) {
        int r = row + warp / 2 * 32 + i * 16 + h * 8 + lane / 4, x = col + warp % 2 * 32 + j * 8 + lane % 4 * 2;
        if (r < m && x < n) *(float2 *)&c[(size_t)r * n + x] = make_float2(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
      }
}

// One warp, 16x8 of C: A (16 x k) by rows, B (8 x k) by rows (that is, transposed), 8-bit elements.
#define SMALL_GEMM(name, type, words)                                                              \
  extern "C" __global__ void name(const uint32_t *a, const uint32_t *b, type *c, int k) {          \
    int lane = threadIdx.x, q = lane % 4, r = lane / 4, w = k / 4;                                 \
    type d[4] = {};                                                                                \
    for (int s = 0; s < w; s += 8) {                                                               \
      uint32_t x0 = a[r * w + s + q], x1 = a[(r + 8) * w + s + q];                                 \
      uint32_t x2 = a[r * w + s + q + 4], x3 = a[(r + 8) * w + s + q + 4];                         \
      uint32_t y0 = b[r * w + s + q], y1 = b[r * w + s + q + 4];                                   \
      asm volatile("mma.sync.aligned.m16n8k32.row.col." words                                      \
                   " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                        \
                   : OUT(d[0]), OUT(d[1]), OUT(d[2]), OUT(d[3])                                    \
                   : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(y0), "r"(y1));                        \
    }                                                                                              \
    c[r * 8 + q * 2] = d[0];                                                                       \
    c[r * 8 + q * 2 + 1] = d[1];                                                                   \
    c[(r + 8) * 8 + q * 2] = d[2];                                                                 \
    c[(r + 8) * 8 + q * 2 + 1] = d[3];                                                             \
  }
#define OUT(x) "+r"(x)
SMALL_GEMM(gemm_s8, int, "s32.s8.s8.s32")
#undef OUT
#define OUT(x) "+f"(x)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
SMALL_GEMM(gemm_e4m3, float, "f32.e4m3.e4m3.f32")
#endif

// Attention scores of one head: softmax(Q K^T) V for 64 keys; tf32 products, f32 softmax.
extern "C" __global__ void __launch_bounds__(32)
scores_tf32(const float *q, const float *k, float *out, int depth) {
  int lane = threadIdx.x, r = lane / 4, x = lane % 4;
  float d[4] = {};
  auto tf32 = [](float v) { uint32_t u; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(v)); return u; };
  for (int s = 0; s < depth; s += 8) {
    uint32_t a0 = tf32(q[r * depth + s + x]), a1 = tf32(q[(r + 8) * depth + s + x]);
    uint32_t a2 = tf32(q[r * depth + s + x + 4]), a3 = tf32(q[(r + 8) * depth + s + x + 4]);
    uint32_t b0 = tf32(k[r * depth + s + x]), b1 = tf32(k[r * depth + s + x + 4]);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  for (int h = 0; h < 2; ++h) {
    float top = fmaxf(d[2 * h], d[2 * h + 1]);
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    float e0 = __expf(d[2 * h] - top), e1 = __expf(d[2 * h + 1] - top), sum = e0 + e1;
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    out[(r + 8 * h) * 8 + 2 * x] = e0 / sum;
    out[(r + 8 * h) * 8 + 2 * x + 1] = e1 / sum;
  }
}
