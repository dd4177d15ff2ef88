// Names of cuBLAS, for `nvcc -ptx` of files whose host code calls it: kernels are the same with and
// without. For what docs/in-the-wild.md compiles; nothing can be linked with it.
#pragma once
#include <library_types.h>

typedef struct cublasContext* cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT };

template <class... T> cublasStatus_t cublasCreate(T...);
template <class... T> cublasStatus_t cublasDestroy(T...);
template <class... T> cublasStatus_t cublasSetMathMode(T...);
template <class... T> cublasStatus_t cublasGemmEx(T...);
