// As cublas_v2.h beside it.
#pragma once
#include <cublas_v2.h>

typedef struct cublasLtContext* cublasLtHandle_t;

template <class... T> cublasStatus_t cublasLtCreate(T...);
template <class... T> cublasStatus_t cublasLtDestroy(T...);
