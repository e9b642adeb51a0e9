// The innermost part of a matrix product: strips of A times strips of B, in the registers of the machine that runs it.
// gemm.c cuts products into such strips.
#ifndef TD_DEVICE_CPU_GEMM_KERNEL_H
#define TD_DEVICE_CPU_GEMM_KERNEL_H
#include <stdbool.h>
#include <stdint.h>

// Rows of A or columns of B in strips of side, of which the last may have fewer: element p of line i in strip s is
// data[s * strip + i * line + p * step]. Columns of B lie side by side: line is 1.
typedef struct td_strips {
  const void *data;
  int64_t side, strip, line, step;
} td_strips;

typedef struct td_gemm_kernel {
  int rows, columns; // of a tile of C: sides of A's strips are at most rows, those of B's are columns
  int lanes; // B's lines are read in multiples of this
  // C (m x n), or what is added to it, is the product over a depth of strips.
  void (*multiply)(const td_strips *a, const td_strips *b, int64_t m, int64_t n, int64_t depth, void *c, int64_t ldc,
                   bool add);
  // Strips of lines: out[s * strip + p * side + i] from line s * side + i, whose element p is data[line * pitch + p]
  // where lines lie across, else data[p * pitch + line]. Writes up to TD_STRIP_SLACK elements past a strip.
  void (*pack)(void *out, int64_t side, int64_t strip, const void *data, int64_t pitch, bool across, int64_t lines,
               int64_t depth);
} td_gemm_kernel;

enum { TD_STRIP_SLACK = 3 };

const td_gemm_kernel *td_gemm_kernel_of(uint8_t dtype); // of this machine, float32 or float64
#endif
