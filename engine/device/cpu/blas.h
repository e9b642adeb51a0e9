// Matrix products on the CPU. Large floating ones are OpenBLAS's, opened at the first of them and told to use one
// thread; the pool runs pieces whose cut depends on the shape alone, so results have the same bits on any number of
// threads. Vectors, tiny matrices, integers, and all of it where OpenBLAS is absent, are our own kernels'.
#ifndef TD_DEVICE_CPU_BLAS_H
#define TD_DEVICE_CPU_BLAS_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/base/threads.h"

typedef struct td_gemm_job { // C (m x n, row-major) = op(A) (m x k) op(B) (k x n); leading dimensions count elements
  bool a_transposed, b_transposed; // A is stored k x m; B is stored n x k
  int64_t m, n, k;
  const void *a, *b;
  void *c; // apart from a and b; overwritten
  int64_t lda, ldb, ldc; // at least the stored columns, and 1
} td_gemm_job;

// C = op(A) op(B) in one dtype: float32, float64, int32, int64, uint8 (wrapping) or bool (or of ands). pool may be
// NULL. workspace: td_gemm_workspace bytes, 64-byte aligned; how many they are follows from the job's sizes and flags
// alone.
void td_gemm(td_pool *pool, uint8_t dtype, const td_gemm_job *job, void *workspace);
int64_t td_gemm_workspace(uint8_t dtype, const td_gemm_job *job);

// A float32 or float64 product on this thread, k at least 1: for kernels that cut their work themselves. room:
// td_gemm_single_bytes of the job, or of a larger one, 64-byte aligned.
void td_gemm_single(uint8_t dtype, const td_gemm_job *job, void *room);
int64_t td_gemm_single_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k);

bool td_blas_takes(const td_gemm_job *job); // OpenBLAS is there, and the sizes fit its ints
bool td_blas_is_quick(void); // it has kernels of its own for small matrices, as on cores with AVX-512
void td_blas_gemm(uint8_t dtype, const td_gemm_job *job, bool add); // on this thread; float32 or float64. add: to C
// a routine of the library that was opened; NULL: neither it nor the library is there
void *td_blas_symbol(const char *name);
const char *td_blas_name(void); // file that was opened ("libopenblas.so.0"), or "internal"; opens it
#endif
