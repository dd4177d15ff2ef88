// Threads together: shuffles, votes, shared memory, atomics, cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <stdint.h>
namespace cg = cooperative_groups;

__device__ __forceinline__ float warp_sum(float v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
  for (int d = 16; d; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}

template <bool MAX> __device__ float block_reduce(float v, float *part) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = MAX ? warp_max(v) : warp_sum(v);
  __syncthreads();
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = lane < blockDim.x / 32 ? part[lane] : (MAX ? -INFINITY : 0.f);
  return MAX ? warp_max(v) : warp_sum(v);
}

extern "C" __global__ void total(const float *in, float *out, int n) {
  __shared__ float part[32];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
  v = block_reduce<false>(v, part);
  if (threadIdx.x == 0) atomicAdd(out, v);
}

extern "C" __global__ void softmax(const float *in, float *out, int columns) {
  __shared__ float part[32];
  in += (size_t)blockIdx.x * columns;
  out += (size_t)blockIdx.x * columns;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) top = fmaxf(top, in[i]);
  top = block_reduce<true>(top, part);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(in[i] - top);
  sum = block_reduce<false>(sum, part);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(in[i] - top) / sum;
}

extern "C" __global__ void layer_norm(const float *in, const float *weight, const float *bias,
                                      float *out, int columns, float eps) {
  extern __shared__ float row[];
  __shared__ float part[32];
  in += (size_t)blockIdx.x * columns;
  out += (size_t)blockIdx.x * columns;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] = in[i];
  float mean = block_reduce<false>(sum, part) / columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
  float scale = rsqrtf(block_reduce<false>(squares, part) / columns + eps);
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[i] = (row[i] - mean) * scale * weight[i] + bias[i];
}

// Inclusive sums of 4 elements a thread; the last block's total comes from the blocks before it.
extern "C" __global__ void scan(const int4 *in, int4 *out, volatile int *totals, volatile int *ready) {
  __shared__ int part[32], before;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, at = blockIdx.x * blockDim.x + threadIdx.x;
  int4 v = in[at];
  v.y += v.x; v.z += v.y; v.w += v.z;
  int sum = v.w;
  for (int d = 1; d < 32; d <<= 1) {
    int other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) part[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int w = lane < blockDim.x / 32 ? part[lane] : 0;
    for (int d = 1; d < 32; d <<= 1) {
      int other = __shfl_up_sync(~0u, w, d);
      if (lane >= d) w += other;
    }
    part[lane] = w;
    if (lane == 31) {
      int base = 0;
      if (blockIdx.x) {
        while (!ready[blockIdx.x - 1]) {}
        __threadfence();
        base = totals[blockIdx.x - 1];
      }
      totals[blockIdx.x] = base + w;
      __threadfence();
      ready[blockIdx.x] = 1;
      before = base;
    }
  }
  __syncthreads();
  int base = before + (warp ? part[warp - 1] : 0) + sum - v.w;
  out[at] = make_int4(v.x + base, v.y + base, v.z + base, v.w + base);
}

extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void histogram(const uint8_t *in, unsigned *out, int n) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (bins[i]) atomicAdd(&out[i], bins[i]);
}

extern "C" __global__ void bitonic(int *values) {
  extern __shared__ int keys[];
  int i = threadIdx.x;
  keys[i] = values[blockIdx.x * blockDim.x + i];
  for (int k = 2; k <= blockDim.x; k *= 2)
    for (int j = k / 2; j; j /= 2) {
      __syncthreads();
      int other = i ^ j;
      if (other > i && (keys[i] > keys[other]) == ((i & k) == 0)) {
        int t = keys[i];
        keys[i] = keys[other];
        keys[other] = t;
      }
    }
  __syncthreads();
  values[blockIdx.x * blockDim.x + i] = keys[i];
}

// Eight words for each lane.
extern "C" __global__ void votes(const int *in, unsigned *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, x = in[i];
  unsigned *at = out + 8 * i;
  at[0] = __ballot_sync(~0u, x & 1);
  at[1] = __any_sync(~0u, x > 90) | __all_sync(~0u, x >= 0) << 1;
#if __CUDA_ARCH__ >= 700
  at[2] = __match_any_sync(~0u, x % 7);
  int same;
  unsigned all = __match_all_sync(~0u, x / 1000, &same);
  at[3] = all ^ (unsigned)same;
#endif
#if __CUDA_ARCH__ >= 800
  at[4] = __reduce_add_sync(~0u, x);
  at[5] = (unsigned)__reduce_min_sync(~0u, x - 50);
  at[6] = __reduce_xor_sync(~0u, (unsigned)x);
#endif
  at[7] = 0;
  if (x % 3 == 0) {  // among the lanes that are here
    unsigned here = __activemask();
    unsigned rank = __popc(here & ((1u << lane) - 1));
    at[7] = rank | __popc(here) << 8;
  }
}

extern "C" __global__ void groups(const int *in, int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i];
  int *at = out + 6 * i;
  at[0] = cg::reduce(tile, x, cg::plus<int>());
  at[1] = tile.shfl_down(x, 3);
  at[2] = cg::inclusive_scan(tile, x);
  at[3] = cg::reduce(tile, x, cg::greater<int>());
  at[4] = -1;
  if (x & 1) {
    auto odd = cg::coalesced_threads();
    at[4] = odd.thread_rank() + 100 * odd.size();
  }
  block.sync();
  at[5] = tile.meta_group_rank() * 1000 + tile.thread_rank() + (int)tile.any(x > 95) * 100000;
}
