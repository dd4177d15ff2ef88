// The barriers and pipelines of libcu++, and asynchronous copies of cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;

// y = running sums of the tiles of x: each tile copied while the one before is added.
extern "C" __global__ void pipelined(const float *x, float *y, int tiles) {
  __shared__ alignas(16) float stage[2][256];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  x += (size_t)blockIdx.x * tiles * 256;
  y += (size_t)blockIdx.x * 256;
  float sum = 0;
  for (int t = 0, next = 0; t < tiles; ++t) {
    for (; next < tiles && next < t + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, stage[next % 2], x + next * 256, cuda::aligned_size_t<16>(1024), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += stage[t % 2][threadIdx.x] * (t + 1);
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}

// Threads exchange halves of an array through a barrier whose arrival and wait are apart.
extern "C" __global__ void split(const int *in, int *out) {
  __shared__ barrier bar;
  __shared__ int values[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    values[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x] + round;
    barrier::arrival_token token = bar.arrive();
    int local = threadIdx.x * round;
    bar.wait(std::move(token));
    out[(blockIdx.x * 3 + round) * 128 + threadIdx.x] = values[127 - threadIdx.x] + local;
    bar.arrive_and_wait();
  }
}

extern "C" __global__ void copied(const int4 *in, int4 *out) {
  __shared__ barrier bar;
  __shared__ alignas(16) int4 values[64];
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  cuda::memcpy_async(block, values, in + blockIdx.x * 64, cuda::aligned_size_t<16>(sizeof(values)), bar);
  bar.arrive_and_wait();
  out[blockIdx.x * 64 + threadIdx.x] = values[63 - threadIdx.x];
  cg::wait(block);
}

// The last of the blocks adds up what the others have left, in the order of blocks.
extern "C" __global__ void last_block(const float *in, float *parts, unsigned *count, float *out, int n) {
  __shared__ float sums[64];
  __shared__ bool last;
  float v = 0;
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) v += in[i];
  sums[threadIdx.x] = v;
  for (int d = 32; d; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sums[0];
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(*count);
    last = arrived.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += parts[b];
    *out = sum;
  }
}
