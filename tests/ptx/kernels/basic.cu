// Elementwise work, loops that diverge, shared memory, atomics, local memory, constants, printf-free.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__constant__ float weights[16] = {1.f, -2.f, .5f, 3e10f, 1e-20f};
__device__ int counter = 3;
__device__ unsigned char bytes[5] = {1, 2, 3, 4, 250};
__device__ const char *message = "a // comment? no; and a } brace";
extern __shared__ float dynamic_shared[];

struct Pair { float a; double b; short c[3]; };

extern "C" __global__ void add(const float *__restrict__ x, const float *__restrict__ y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

extern "C" __global__ void __launch_bounds__(256, 2) softmax(const float *x, float *y, int columns) {
  __shared__ float partial[32];
  const float *row = x + (size_t)blockIdx.x * columns;
  float largest = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) largest = fmaxf(largest, row[c]);
  for (int offset = 16; offset; offset >>= 1)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = largest;
  __syncthreads();
  for (int w = 0; w < blockDim.x / 32; w++) largest = fmaxf(largest, partial[w]);
  float sum = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += __expf(row[c] - largest);
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicAdd(&partial[0], sum);
  __syncthreads();
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    y[(size_t)blockIdx.x * columns + c] = __expf(row[c] - largest) / partial[0];
}

extern "C" __global__ void collatz(const unsigned *x, unsigned *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned value = x[i], count = 0;
  while (value > 1) { value = value % 2 ? 3 * value + 1 : value / 2; count++; }
  steps[i] = count;
  if (count > 100) atomicMax((unsigned *)&counter, count);
}

extern "C" __global__ void structs(Pair p, Pair *out, double s) {
  double local[20];
  for (int i = 0; i < 20; i++) local[i] = i * s + p.a;
  out->a = weights[threadIdx.x & 15] + bytes[threadIdx.x % 5] + message[threadIdx.x % 7];
  out->b = local[threadIdx.x % 20] * p.b / sqrt(s);
  out->c[1] = p.c[threadIdx.x % 3];
  dynamic_shared[threadIdx.x] = (float)out->b;
  __syncthreads();
  out->a += dynamic_shared[threadIdx.x ^ 1];
}

extern "C" __global__ void halves(const __half2 *x, const __nv_bfloat162 *y, __half2 *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = __hfma2(x[i], __float22half2_rn(__bfloat1622float2(y[i])), x[0]);
}

extern "C" __global__ void vectors(const float4 *x, float4 *y, const int2 *at, cudaTextureObject_t t) {
  int2 where = at[threadIdx.x];
  float4 v = x[where.x];
  float4 w = tex2D<float4>(t, where.x + .5f, where.y);
  y[where.y] = make_float4(v.w + w.x, v.z, v.y, sinf(v.x));
}

extern "C" __global__ void pick(int *out, int which) {
  switch (which) {
    case 0: *out = clock(); break;
    case 1: *out = __popc(which) + __clz(*out); break;
    case 2: *out = __brev(*out); break;
    case 3: *out *= 7; break;
    case 4: asm volatile("// inline; {text}\n\tmov.u32 %0, %%laneid;" : "=r"(*out)); break;
    case 5: *out = __ballot_sync(~0u, *out & 1); break;
    case 6: *out = __dp4a(*out, 3, 4); break;
    default: *out = -1;
  }
}
