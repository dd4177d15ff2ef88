#include <cuda_fp16.h>
#include <mma.h>
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[16][17], bs[16][17];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y*16+y, col = blockIdx.x*16+x;
  float sum = 0;
  for (int t = 0; t < k; t += 16) {
    as[y][x] = row < m && t+x < k ? a[row*k+t+x] : 0;
    bs[y][x] = t+y < k && col < n ? b[(t+y)*n+col] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[y][i]*bs[i][x];
    __syncthreads();
  }
  if (row < m && col < n) c[row*n+col] = sum;
}
extern "C" __global__ void total(const float* in, float* out, unsigned* count, int n) {
  __shared__ float part[32]; __shared__ bool last;
  float v = 0;
  for (int i = blockIdx.x*blockDim.x+threadIdx.x; i < n; i += gridDim.x*blockDim.x) v += in[i];
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x%32 == 0) part[threadIdx.x/32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x/32 ? part[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x == 0) { out[1+blockIdx.x] = v; __threadfence(); last = atomicInc(count, gridDim.x) == gridDim.x-1; }
  }
  __syncthreads();
  if (last) {
    if (threadIdx.x < 32) {
      v = 0;
      for (int i = threadIdx.x; i < gridDim.x; i += 32) v += ((volatile float*)out)[1+i];
      for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
      if (threadIdx.x == 0) out[0] = v;
    }
  }
}
extern "C" __global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x*blockDim.x+threadIdx.x; i < n; i += gridDim.x*blockDim.x) atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}
