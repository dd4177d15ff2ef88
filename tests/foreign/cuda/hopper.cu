// sm_90a: wgmma fed by TMA through a ring of mbarriers, clusters, multicast, distributed shared memory.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>
namespace cg = cooperative_groups;

__device__ __forceinline__ uint32_t shared_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void init(uint32_t bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void expect(uint32_t bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(uint32_t bar, int parity) {
  asm volatile(
      "{\n.reg .pred P1;\nLAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(bar), "r"(parity) : "memory");
}
// An arrival at the barrier at the same place in another block of the cluster.
__device__ __forceinline__ void arrive_at(uint32_t bar, int block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(bar), "r"(block) : "memory");
}
__device__ __forceinline__ void load(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}
__device__ __forceinline__ void multicast(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t bar,
                                          uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar), "h"(mask) : "memory");
}
__device__ __forceinline__ uint32_t rank_in_cluster() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// 64x128 += 64x16 of A times 16x128 of B, both K-major with the 128-byte swizzle.
__device__ __forceinline__ void wgmma(float (&d)[64], uint64_t a, uint64_t b, int accumulate) {
#define F(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
      "%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,"
      "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p, 1, 1, 0, 0;\n}"
      : F(0), F(4), F(8), F(12), F(16), F(20), F(24), F(28), F(32), F(36), F(40), F(44), F(48), F(52), F(56), F(60)
      : "l"(a), "l"(b), "r"(accumulate));
#undef F
}
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (uint64_t)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// C (m x n) = A (m x k) B (n x k)^T. A block makes 128x128, two blocks of a cluster share B.
constexpr int STAGES = 3, STAGE_BYTES = 32768;

extern "C" __global__ void __cluster_dims__(1, 2, 1) __launch_bounds__(384)
gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float *c, int m, int n, int k) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
  int group = threadIdx.x / 128, thread = threadIdx.x % 128, rank = rank_in_cluster();
  int row = blockIdx.y * 128, col = blockIdx.x * 128, steps = (k + 63) / 64;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      init(shared_address(&full[s]), 1);
      init(shared_address(&empty[s]), 4);  // two warpgroups of each of the two blocks
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (thread == 0) {
      for (int step = 0; step < steps; ++step) {
        int stage = step % STAGES;
        uint32_t bar = shared_address(&full[stage]), to = shared_address(tiles) + stage * STAGE_BYTES;
        wait(shared_address(&empty[stage]), step / STAGES + 1 & 1);
        expect(bar, STAGE_BYTES);
        load(to, &map_a, step * 64, row, bar);
        multicast(to + 16384 + rank * 8192, &map_b, step * 64, col + rank * 64, bar, 3);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[64];
    for (int i = 0; i < 64; ++i) d[i] = 0;
    for (int step = 0; step < steps; ++step) {
      int stage = step % STAGES;
      uint32_t at = shared_address(tiles) + stage * STAGE_BYTES;
      wait(shared_address(&full[stage]), step / STAGES & 1);
      uint64_t a = descriptor(at + (group - 1) * 8192), b = descriptor(at + 16384);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      for (int kk = 0; kk < 4; ++kk) wgmma(d, a + 2 * kk, b + 2 * kk, 1);
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (thread < 2) arrive_at(shared_address(&empty[stage]), thread);
    }
    int warp = thread / 32, lane = thread % 32;
    for (int i = 0; i < 64; i += 2) {
      int r = row + (group - 1) * 64 + warp * 16 + lane / 4 + (i & 2) * 4, x = col + i / 4 * 8 + lane % 4 * 2;
      if (r < m && x < n) *(float2 *)&c[(size_t)r * n + x] = make_float2(d[i], d[i + 1]);
    }
  }
  cluster_sync();
}

// Tiles of 64x64 halves are loaded, doubled and stored by TMA; stores add to what is there.
extern "C" __global__ void __launch_bounds__(128)
doubled(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out) {
  __shared__ __align__(1024) __half tile[64 * 64];
  __shared__ __align__(8) uint64_t full;
  uint32_t bar = shared_address(&full), at = shared_address(tile);
  if (threadIdx.x == 0) {
    init(bar, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&in) : "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 8192);
    load(at, &in, blockIdx.x * 64, blockIdx.y * 64, bar);
  }
  wait(bar, 0);
  __half2 *pairs = (__half2 *)tile;
  for (int i = threadIdx.x; i < 2048; i += 128) pairs[i] = __hadd2(pairs[i], pairs[i]);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&out),
                 "r"(blockIdx.x * 64), "r"(blockIdx.y * 64), "r"(at) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// A histogram whose bins lie in the shared memory of four blocks, then a sum over the cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
cluster_histogram(const uint8_t *in, unsigned *out, unsigned *total, int n) {
  __shared__ unsigned bins[64], sums;
  cg::cluster_group cluster = cg::this_cluster();
  int rank = cluster.block_rank(), size = cluster.num_blocks();
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  if (threadIdx.x == 0) sums = 0;
  cluster.sync();
  cudaGridDependencySynchronize();
  for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads())
    atomicAdd(cluster.map_shared_rank(&bins[in[i] % 64], in[i] / 64), 1u);
  cluster.sync();
  cudaTriggerProgrammaticLaunchCompletion();
  if (threadIdx.x < 64) {
    unsigned count = bins[threadIdx.x];
    out[rank * 64 + threadIdx.x] = count;
    atomicAdd(cluster.map_shared_rank(&sums, 0), count * (rank + 1));
  }
  cluster.sync();
  if (rank == 0 && threadIdx.x < size) {
    total[1 + threadIdx.x] = *cluster.map_shared_rank(&bins[0], threadIdx.x);
    if (threadIdx.x == 0) *total = sums;
  }
  cluster.sync();
}
