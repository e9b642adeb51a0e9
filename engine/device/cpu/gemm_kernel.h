// The innermost part of a matrix product: strips of A times strips of B, in the registers of the machine that runs it.
// gemm.c cuts products into such strips.
#ifndef TD_DEVICE_CPU_GEMM_KERNEL_H
#define TD_DEVICE_CPU_GEMM_KERNEL_H
#include <stdbool.h>
#include <stdint.h>

// Rows of A in strips of side, of which the last may have fewer: element p of row i in strip s is
// data[s * strip + i * line + p * step].
typedef struct td_row_strips {
  const void *data;
  int64_t side, strip, line, step;
} td_row_strips;

// Columns of B in strips of the kernel's columns: element p of column j in strip s is data[s * strip + at[p] + j]. Of
// the last one, lanes or all of the kernel's columns are read.
typedef struct td_column_strips {
  const void *data;
  const int64_t *at;
  int64_t strip;
} td_column_strips;

// Dot products of lines in segments: c[i * ldc + q] is added the sum over segments s and j below length, a multiple of
// lanes, of a[i * a_line + s * a_segment + j] * b[at[q] + s * b_segment + j].
typedef struct td_dots {
  const void *a, *b;
  const int64_t *at;
  double *c;
  int64_t m, n, segments, length, a_line, a_segment, b_segment, ldc;
} td_dots;

typedef struct td_gemm_kernel {
  int rows, columns, lanes; // of a tile of C, at most; of a vector
  // C (m x n), or what is added to it, is the product over a depth of strips.
  void (*multiply)(const td_row_strips *a, const td_column_strips *b, int64_t m, int64_t n, int64_t depth, void *c,
                   int64_t ldc, bool add);
  // Strips of lines: out[s * strip + p * side + i] from line s * side + i, whose element p is data[line * pitch + p]
  // where lines lie across, else data[p * pitch + line]. Writes up to TD_STRIP_SLACK elements past a strip.
  void (*pack)(void *out, int64_t side, int64_t strip, const void *data, int64_t pitch, bool across, int64_t lines,
               int64_t depth);
  void (*dot)(const td_dots *dots);
} td_gemm_kernel;

enum { TD_STRIP_SLACK = 3 };

const td_gemm_kernel *td_gemm_kernel_of(uint8_t dtype); // of this machine, float32 or float64
#endif
