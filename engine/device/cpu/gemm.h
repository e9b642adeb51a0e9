// Matrix products on the CPU. How the work is cut depends on the sizes alone, so results have the same bits on any
// number of threads.
#ifndef TD_DEVICE_CPU_GEMM_H
#define TD_DEVICE_CPU_GEMM_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/base/threads.h"
#include "engine/device/cpu/gemm_kernel.h"

typedef struct td_gemm_job { // C (m x n, row-major) = op(A) (m x k) op(B) (k x n); leading dimensions count elements
  bool a_transposed, b_transposed; // A is stored k x m; B is stored n x k
  int64_t m, n, k;
  const void *a, *b;
  void *c; // apart from a and b; overwritten
  int64_t lda, ldb, ldc; // at least the stored columns, and 1
  const void *a_packed, *b_packed; // the same by td_gemm_pack, or NULL
} td_gemm_job;

// C = op(A) op(B) in one dtype: float32, float64, int32, int64, uint8 (wrapping) or bool (or of ands). pool may be
// NULL. workspace: td_gemm_workspace bytes, 64-byte aligned; how many they are follows from the job's sizes and flags
// alone.
void td_gemm(td_pool *pool, uint8_t dtype, const td_gemm_job *job, void *workspace);
int64_t td_gemm_workspace(uint8_t dtype, const td_gemm_job *job);

// op(A) (left) or op(B) of a float32 or float64 product in the order that the kernels read, for many products with it:
// those of a job whose m (left) or n, and k, are the same. out: td_gemm_packed_bytes, 64-byte aligned. lines: m or n.
void td_gemm_pack(td_pool *pool, uint8_t dtype, const td_gemm_job *job, bool left, void *out);
int64_t td_gemm_packed_bytes(uint8_t dtype, bool left, int64_t lines, int64_t k);
// The strips of such an op(A) from depth first on: for kernels that call gemm_kernel.h themselves.
td_row_strips td_gemm_packed_rows(uint8_t dtype, int64_t m, int64_t k, const void *packed, int64_t first);

// A float32 or float64 product on this thread, k at least 1: for kernels that cut their work themselves. room:
// td_gemm_single_bytes of the job, or of a larger one, 64-byte aligned.
void td_gemm_single(uint8_t dtype, const td_gemm_job *job, void *room);
int64_t td_gemm_single_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k);
#endif
