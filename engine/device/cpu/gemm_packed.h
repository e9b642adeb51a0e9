// The product that works without any library: blocked, packed, vectorised. gemm.c cuts the work and calls it for a
// piece.
#ifndef TD_DEVICE_CPU_GEMM_PACKED_H
#define TD_DEVICE_CPU_GEMM_PACKED_H
#include "engine/device/cpu/blas.h"

// float32 or float64, on this thread. add: to what is in C. blocks: td_gemm_packed_bytes of the job, or of a larger
// one.
void td_gemm_packed(uint8_t dtype, const td_gemm_job *job, void *blocks, bool add);
int64_t td_gemm_packed_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k);
#endif
