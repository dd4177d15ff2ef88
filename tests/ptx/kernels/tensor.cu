// Tensor cores: mma.sync with ldmatrix and cp.async, and on sm_90a wgmma, TMA, mbarriers, clusters.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(128) gemm(const __half *a, const __half *b, float *c, int n, int k) {
  __shared__ __align__(128) __half as[2][64 * 32], bs[2][32 * 64];
  float acc[2][4][4] = {};
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.y * 64, col = blockIdx.x * 64;
  auto fetch = [&](int stage, int k0) {
    for (int i = threadIdx.x; i < 64 * 32 / 8; i += 128) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&as[stage][i * 8])),
                   "l"(a + (size_t)(row + i / 4) * k + k0 + i % 4 * 8));
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(&bs[stage][i * 8])),
                   "l"(b + (size_t)(k0 + i / 8) * n + col + i % 8 * 8), "r"(k0 < k ? 16 : 0));
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(0, 0);
  for (int k0 = 0; k0 < k; k0 += 32) {
    int stage = k0 / 32 & 1;
    if (k0 + 32 < k) { fetch(stage ^ 1, k0 + 32); asm volatile("cp.async.wait_group 1;" ::: "memory"); }
    else asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      uint32_t fa[2][4], fb[4][2];
      for (int m = 0; m < 2; m++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[m][0]), "=r"(fa[m][1]), "=r"(fa[m][2]), "=r"(fa[m][3])
                     : "r"(shared_address(&as[stage][(warp / 2 * 32 + m * 16 + lane % 16) * 32 + kk + lane / 16 * 8])));
      for (int j = 0; j < 4; j++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(fb[j][0]), "=r"(fb[j][1])
                     : "r"(shared_address(&bs[stage][(kk + lane % 16) * 64 + warp % 2 * 32 + j * 8])));
      for (int m = 0; m < 2; m++)
        for (int j = 0; j < 4; j++)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(acc[m][j][0]), "+f"(acc[m][j][1]), "+f"(acc[m][j][2]), "+f"(acc[m][j][3])
                       : "r"(fa[m][0]), "r"(fa[m][1]), "r"(fa[m][2]), "r"(fa[m][3]), "r"(fb[j][0]), "r"(fb[j][1]));
    }
    __syncthreads();
  }
  for (int m = 0; m < 2; m++)
    for (int j = 0; j < 4; j++)
      for (int i = 0; i < 4; i++)
        c[(size_t)(row + warp / 2 * 32 + m * 16 + lane / 4 + i / 2 * 8) * n + col + warp % 2 * 32 + j * 8 + lane % 4 * 2 + i % 2] = acc[m][j][i];
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
hopper(const __grid_constant__ CUtensorMap ma, const __grid_constant__ CUtensorMap mb, float *c) {
  __shared__ __align__(1024) __half a[64 * 64], b[64 * 64];
  __shared__ __align__(8) uint64_t full;
  uint32_t bar = shared_address(&full), sa = shared_address(a), sb = shared_address(b);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(bar));
    asm volatile("fence.proxy.async;");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;");
  float d[32] = {};
  if (threadIdx.x == 0) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], 16384; }" ::"r"(bar));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(sa), "l"(&ma), "r"(0), "r"(64 * blockIdx.x), "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(sb), "l"(&mb), "r"(0), "r"(0), "r"(bar) : "memory");
  }
  asm volatile("{\n\t.reg .pred P1;\n\tLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t@P1 bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}" ::"r"(bar), "r"(0) : "memory");
  uint64_t da = (uint64_t)(sa >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
  uint64_t db = (uint64_t)(sb >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),
        "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]) : "l"(da), "l"(db), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
  uint32_t other;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(bar), "r"(1));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(other));
  asm volatile("{.reg .pred q; elect.sync _|q, 0xffffffff; @q griddepcontrol.launch_dependents;}");
  for (int i = 0; i < 16; i++) c[threadIdx.x * 16 + i] = d[i];
}
#endif
