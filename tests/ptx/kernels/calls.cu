// Device functions that are called: direct, recursive, through a pointer, virtual, variadic printf.
#include <cstdio>

typedef int (*Function)(int, float);
__device__ __noinline__ int twice(int x, float f) { return 2 * x + (int)f; }
__device__ __noinline__ int square(int x, float f) { return x * x - (int)f; }
__device__ Function table[2] = {twice, square};
__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

struct Shape { __device__ virtual float area() const = 0; float scale = 1; };
struct Square : Shape { float a; __device__ Square(float a) : a(a) {} __device__ float area() const override { return a * a; } };
struct Disc : Shape { float r; __device__ Disc(float r) : r(r) {} __device__ float area() const override { return 3.14159f * r * r; } };

struct Big { int v[12]; };
__device__ __noinline__ Big shuffle(Big b, int k) { Big c; for (int i = 0; i < 12; i++) c.v[i] = b.v[(i * k) % 12]; return c; }

template <typename T> __global__ void generic(T *x, T y) { x[threadIdx.x] += y * (T)factorial(threadIdx.x & 7); }
template __global__ void generic<float>(float *, float);
template __global__ void generic<double>(double *, double);
template __global__ void generic<unsigned long long>(unsigned long long *, unsigned long long);

extern "C" __global__ void dispatch(int *out, int which, Big *big) {
  out[0] = table[which & 1](out[0], 1.5f);
  Square a(2.f);
  Disc d(out[1]);
  Shape *shape = which ? (Shape *)&a : (Shape *)&d;
  out[1] = shape->area();
  *big = shuffle(*big, which);
  printf("which %d: %f\n", which, shape->area());
}
