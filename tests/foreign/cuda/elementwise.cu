// Loops over arrays and scalar arithmetic: what one thread does by itself.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

#define FOR_EACH(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n) {
  FOR_EACH(i, n) c[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy4(float alpha, const float4 *x, float4 *y, int n) {
  FOR_EACH(i, n) {
    float4 u = __ldg(&x[i]), v = y[i];
    y[i] = make_float4(fmaf(alpha, u.x, v.x), fmaf(alpha, u.y, v.y), fmaf(alpha, u.z, v.z),
                       fmaf(alpha, u.w, v.w));
  }
}

// 16-bit pairs: each of the operators, one row of the output for each.
extern "C" __global__ void half2_rows(const __half2 *a, const __half2 *b, __half2 *out, int n) {
  FOR_EACH(i, n) {
    __half2 x = a[i], y = b[i], one = __float2half2_rn(1.f);
    out[0 * n + i] = __hadd2(x, y);
    out[1 * n + i] = __hmul2(x, y);
    out[2 * n + i] = __hfma2(x, y, one);
    out[3 * n + i] = __hsub2_sat(x, y);
    out[4 * n + i] = __hmax2(x, y);
    out[5 * n + i] = __hneg2(__habs2(x));
    out[6 * n + i] = __h2div(x, y);
    out[7 * n + i] = h2sqrt(__habs2(x));
    out[8 * n + i] = __hgt2(x, y);
    out[9 * n + i] = __lowhigh2highlow(x);
    out[10 * n + i] = h2rint(__hmul2(x, __float2half2_rn(8.f)));
    out[11 * n + i] = __halves2half2(hexp(__low2half(x)), hlog(__habs(__high2half(x))));
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
extern "C" __global__ void bfloat_rows(const __nv_bfloat16 *a, const __nv_bfloat16 *b,
                                       __nv_bfloat16 *out, int n) {
  FOR_EACH(i, n) {
    __nv_bfloat16 x = a[i], y = b[i];
    out[0 * n + i] = __hadd(x, y);
    out[1 * n + i] = __hmul(x, y);
    out[2 * n + i] = __hfma(x, y, __float2bfloat16(1.f));
    out[3 * n + i] = __hmin(x, y);
    out[4 * n + i] = __float2bfloat16_rz(__bfloat162float(x) * 1.01f);
    out[5 * n + i] = __habs(x);
    out[6 * n + i] = __float2bfloat16(sqrtf(__bfloat162float(__habs(x))));
  }
}
#endif

// float -> e4m3 and e5m2 and back; pairs and quadruples.
extern "C" __global__ void fp8_round_trip(const float4 *in, uint32_t *e4m3, float4 *back,
                                          uint16_t *e5m2, int n) {
  FOR_EACH(i, n) {
    __nv_fp8x4_e4m3 q(in[i]);
    e4m3[i] = q.__x;
    back[i] = static_cast<float4>(q);
    e5m2[i] = __nv_cvt_float2_to_fp8x2(make_float2(in[i].x, in[i].w), __NV_SATFINITE, __NV_E5M2);
  }
}

extern "C" __global__ void fast_math(const float *in, float *out, int n) {
  FOR_EACH(i, n) {
    float x = in[i], s, c;
    __sincosf(x, &s, &c);
    out[0 * n + i] = s;
    out[1 * n + i] = c;
    out[2 * n + i] = __expf(x);
    out[3 * n + i] = __logf(fabsf(x) + 1.f);
    out[4 * n + i] = __fdividef(x, 3.f);
    out[5 * n + i] = rsqrtf(fabsf(x) + 1.f);
    out[6 * n + i] = __powf(fabsf(x) + 1.f, 1.5f);
    out[7 * n + i] = __saturatef(x);
    out[8 * n + i] = __frcp_rn(x + 10.f);
    out[9 * n + i] = __fsqrt_rz(fabsf(x));
  }
}

// The library's accurate functions: long PTX with slow paths in functions and local memory.
extern "C" __global__ void accurate(const float *in, float *out, int n) {
  FOR_EACH(i, n) {
    float x = in[i];
    out[0 * n + i] = sinf(x * 1000.f);
    out[1 * n + i] = cosf(x * 1e6f);
    out[2 * n + i] = expf(x);
    out[3 * n + i] = logf(fabsf(x));
    out[4 * n + i] = powf(fabsf(x), x);
    out[5 * n + i] = erff(x);
    out[6 * n + i] = cbrtf(x);
    out[7 * n + i] = tanhf(x);
    out[8 * n + i] = atan2f(x, 0.5f);
    out[9 * n + i] = fmodf(x * 100.f, 0.7f);
    out[10 * n + i] = x / 3.f;
    out[11 * n + i] = lgammaf(fabsf(x) + 0.5f);
  }
}

extern "C" __global__ void doubles(const double *a, const double *b, double *out, int n) {
  FOR_EACH(i, n) {
    double x = a[i], y = b[i];
    out[0 * n + i] = x / y;
    out[1 * n + i] = sqrt(fabs(x));
    out[2 * n + i] = exp(x);
    out[3 * n + i] = log(fabs(x));
    out[4 * n + i] = sin(x * 1e5);
    out[5 * n + i] = fma(x, y, 1.0);
    out[6 * n + i] = __dadd_ru(x, y);
    out[7 * n + i] = __ddiv_rd(x, y);
    out[8 * n + i] = rint(x * 4);
    out[9 * n + i] = trunc(x * 4) + ceil(y) - floor(y);
    out[10 * n + i] = pow(fabs(x), y);
    out[11 * n + i] = (double)(float)x;
    out[12 * n + i] = rsqrt(fabs(y));
  }
}

// 64-bit and bit arithmetic: rows of u64.
extern "C" __global__ void wide(const uint64_t *a, const uint64_t *b, uint64_t *out, int n) {
  FOR_EACH(i, n) {
    uint64_t x = a[i], y = b[i];
    uint32_t u = (uint32_t)x, v = (uint32_t)y;
    out[0 * n + i] = x * y;
    out[1 * n + i] = __umul64hi(x, y);
    out[2 * n + i] = (uint64_t)__mul64hi((int64_t)x, (int64_t)y);
    out[3 * n + i] = x / y;
    out[4 * n + i] = x % y;
    out[5 * n + i] = (uint64_t)((int64_t)x / (int64_t)(y >> 40 | 1));
    out[6 * n + i] = (uint64_t)((int64_t)x >> (y & 63));
    out[7 * n + i] = __clzll(x) | __popcll(x) << 8 | __ffsll(x) << 16;
    out[8 * n + i] = __brevll(x);
    out[9 * n + i] = __funnelshift_l(u, v, v) | (uint64_t)__funnelshift_rc(u, v, v & 63) << 32;
    out[10 * n + i] = __byte_perm(u, v, 0x5140) | (uint64_t)__sad((int)u, (int)v, 7u) << 32;
    out[11 * n + i] = (uint32_t)__dp4a((int)u, (int)v, 11) | (uint64_t)__dp4a(u, v, 11u) << 32;
    out[12 * n + i] = __umul24(u, v) | (uint64_t)__umulhi(u, v) << 32;
    out[13 * n + i] = u / (v | 1) | (uint64_t)(u % 1000003u) << 32;
    out[14 * n + i] = (uint64_t)(int64_t)__double2ll_rz((double)(int64_t)x * 0.25);
    out[15 * n + i] = (uint64_t)__vadd4(u, v) | (uint64_t)__vmaxs2(u, v) << 32;
    unsigned __int128 product = (unsigned __int128)x * y + x;
    out[16 * n + i] = (uint64_t)(product >> 64);
  }
}
