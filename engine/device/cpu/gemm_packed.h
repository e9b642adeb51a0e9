// The product that works without any library: blocked, packed, vectorised. gemm.c cuts the work and calls it for a
// piece.
#ifndef TD_DEVICE_CPU_GEMM_PACKED_H
#define TD_DEVICE_CPU_GEMM_PACKED_H
#include "engine/device/cpu/blas.h"

bool td_gemm_packed(uint8_t dtype, const td_gemm_job *job); // float32 or float64, on this thread; false: no memory
#endif
