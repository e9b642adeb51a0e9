// gemm_tile.inc for AVX-512, for AVX2 with FMA, and for any machine; the first call picks.
#include "engine/device/cpu/gemm_kernel.h"

#include <string.h>

#include "engine/tensor/dtype.h"

#define TURN_FLOATS(from, to)                                                        \
  do {                                                                               \
    block t0 = __builtin_shufflevector(from[0], from[1], 0, 4, 1, 5);                \
    block t1 = __builtin_shufflevector(from[0], from[1], 2, 6, 3, 7);                \
    block t2 = __builtin_shufflevector(from[2], from[3], 0, 4, 1, 5);                \
    block t3 = __builtin_shufflevector(from[2], from[3], 2, 6, 3, 7);                \
    to[0] = __builtin_shufflevector(t0, t2, 0, 1, 4, 5);                             \
    to[1] = __builtin_shufflevector(t0, t2, 2, 3, 6, 7);                             \
    to[2] = __builtin_shufflevector(t1, t3, 0, 1, 4, 5);                             \
    to[3] = __builtin_shufflevector(t1, t3, 2, 3, 6, 7);                             \
  } while (0)
#define TURN_DOUBLES(from, to)                                    \
  do {                                                            \
    to[0] = __builtin_shufflevector(from[0], from[1], 0, 2);      \
    to[1] = __builtin_shufflevector(from[0], from[1], 1, 3);      \
  } while (0)

enum { FLOAT_RUN = 64, DOUBLE_RUN = 1 << 20 };

#if defined __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma")))
#define AVX2 __attribute__((target("avx2,fma")))

#define NAME(part) single_avx512_##part
#define T float
#define BYTES 64
#define ROWS 14
#define RUN FLOAT_RUN
#define TARGET AVX512
#define TURN TURN_FLOATS
#include "engine/device/cpu/gemm_tile.inc"

#define NAME(part) double_avx512_##part
#define T double
#define BYTES 64
#define ROWS 14
#define RUN DOUBLE_RUN
#define TARGET AVX512
#define TURN TURN_DOUBLES
#include "engine/device/cpu/gemm_tile.inc"

#define NAME(part) single_avx2_##part
#define T float
#define BYTES 32
#define ROWS 6
#define RUN FLOAT_RUN
#define TARGET AVX2
#define TURN TURN_FLOATS
#include "engine/device/cpu/gemm_tile.inc"

#define NAME(part) double_avx2_##part
#define T double
#define BYTES 32
#define ROWS 6
#define RUN DOUBLE_RUN
#define TARGET AVX2
#define TURN TURN_DOUBLES
#include "engine/device/cpu/gemm_tile.inc"
#endif

#define NAME(part) single_##part
#define T float
#define BYTES 16
#define ROWS 6
#define RUN FLOAT_RUN
#define TARGET
#define TURN TURN_FLOATS
#include "engine/device/cpu/gemm_tile.inc"

#define NAME(part) double_##part
#define T double
#define BYTES 16
#define ROWS 6
#define RUN DOUBLE_RUN
#define TARGET
#define TURN TURN_DOUBLES
#include "engine/device/cpu/gemm_tile.inc"

const td_gemm_kernel *td_gemm_kernel_of(uint8_t dtype) {
  bool single = dtype == TD_FLOAT32;
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return single ? &single_avx512_kernel : &double_avx512_kernel;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return single ? &single_avx2_kernel : &double_avx2_kernel;
#endif
  return single ? &single_kernel : &double_kernel;
}
