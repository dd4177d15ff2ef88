// Groups larger than a warp, whose barriers lie in reserved shared memory, and grids that wait.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

template <int SIZE> __device__ void tile_sums(const int *in, int *out, int *shared) {
  auto tile = cg::tiled_partition<SIZE>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  shared[threadIdx.x] = in[i];
  tile.sync();
  int next = shared[threadIdx.x / SIZE * SIZE + (threadIdx.x + 1) % SIZE];
  int sum = cg::reduce(tile, in[i], cg::plus<int>());
  int before = cg::exclusive_scan(tile, in[i], cg::plus<int>());
  int most = cg::reduce(tile, in[i], cg::greater<int>());
  out[4 * i] = next;
  out[4 * i + 1] = sum;
  out[4 * i + 2] = before;
  out[4 * i + 3] = most + 10 * tile.any(in[i] > 99) + 100 * tile.shfl(in[i], SIZE - 1);
}

extern "C" __global__ void tiles64(const int *in, int *out) {
  __shared__ int shared[256];
  tile_sums<64>(in, out, shared);
}

extern "C" __global__ void tiles128(const int *in, int *out) {
  extern __shared__ int dynamic[];
  tile_sums<128>(in, out, dynamic);
}

extern "C" __global__ void tiles256(const int *in, int *out) {
  __shared__ int shared[256];
  tile_sums<256>(in, out, shared);
}

// The sum over all threads of a grid, by doubling steps with the grid's barrier between them.
extern "C" __global__ void sums(int *data, int *out) {
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank(), total = grid.size();
  for (int step = 1; step < total; step *= 2) {
    int v = data[i] + data[(i + step) % total];
    grid.sync();
    data[i] = v;
    grid.sync();
  }
  out[i] = data[(i + 37) % total];
}

// Jacobi's iteration of a heat equation; arriving and waiting are apart.
extern "C" __global__ void jacobi(float *a, float *b, int n, int steps) {
  auto grid = cg::this_grid();
  for (int s = 0; s < steps; s++) {
    for (int i = grid.thread_rank() + 1; i < n - 1; i += grid.size())
      b[i] = 0.5f * (a[i - 1] + a[i + 1]);
    auto token = grid.barrier_arrive();
    float *other = a;
    a = b, b = other;
    grid.barrier_wait(std::move(token));
  }
}

extern "C" __global__ void valid(int *out) {
  out[0] = cg::this_grid().is_valid();
  out[1] = cg::this_grid().num_blocks();
}
