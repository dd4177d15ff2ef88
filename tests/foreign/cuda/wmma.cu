// The wmma interface of the CUDA toolkit.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// One warp for each 16x16 tile of C; A by rows, B by columns in LAYOUT; sizes are multiples of 16.
template <class T, class Acc, class Layout>
__device__ void product(const T *a, const T *b, Acc *c, int n, int k, Acc alpha) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, Layout> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Acc> fc;
  constexpr bool columns = std::is_same<Layout, wmma::col_major>::value;
  int row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fill_fragment(fc, Acc(0.f));
  for (int s = 0; s < k; s += 16) {
    wmma::load_matrix_sync(fa, a + row * k + s, k);
    wmma::load_matrix_sync(fb, columns ? b + col * k + s : b + s * n + col, columns ? k : n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = alpha * fc.x[i];
  wmma::store_matrix_sync(c + row * n + col, fc, n, wmma::mem_row_major);
}

extern "C" __global__ void gemm_f16(const __half *a, const __half *b, float *c, int n, int k) {
  product<__half, float, wmma::row_major>(a, b, c, n, k, 0.5f);
}

extern "C" __global__ void gemm_f16_f16(const __half *a, const __half *b, __half *c, int n, int k) {
  product<__half, __half, wmma::col_major>(a, b, c, n, k, __float2half(2.f));
}

extern "C" __global__ void gemm_s8(const signed char *a, const signed char *b, int *c, int n, int k) {
  product<signed char, int, wmma::col_major>(a, b, c, n, k, 3);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
extern "C" __global__ void gemm_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
  product<__nv_bfloat16, float, wmma::col_major>(a, b, c, n, k, 1.f);
}

// A tile of A in shared memory, tf32 products, C by columns.
extern "C" __global__ void gemm_tf32(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ __align__(32) float tile[16 * 8];
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
  int row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::load_matrix_sync(fc, c + col * m + row, m, wmma::mem_col_major);
  for (int s = 0; s < k; s += 8) {
    __syncwarp();
    for (int i = threadIdx.x; i < 128; i += 32) tile[i] = a[(row + i / 8) * k + s + i % 8];
    __syncwarp();
    wmma::load_matrix_sync(fa, tile, 8);
    wmma::load_matrix_sync(fb, b + s * n + col, n);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
    for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + col * m + row, fc, m, wmma::mem_col_major);
}
#endif
