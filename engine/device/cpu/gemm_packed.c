// A product in three levels (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008): blocks
// of B stay in the outer cache, blocks of A in the inner one, a tile of C in registers.
//  1. A block of B (DEPTH x WIDE) is packed in strips of two vectors, a block of A (TALL x DEPTH) in strips of ROWS.
//  2. Strips at the edge are filled with zeros, so that a tile always has its full size; what lies outside is not
//     stored.
//  3. The first block along k stores into C unless it is to be added to, later ones add.
#include "engine/device/cpu/gemm_packed.h"

#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/tensor/dtype.h"

enum { ROWS = 6, DEPTH = 256, TALL = 96, WIDE = 1024, VECTOR_BYTES = 32, ALIGNMENT = 64 };

#define MIN(a, b) ((a) < (b) ? (a) : (b))

#define PACKED(type, name)                                                                                         \
  typedef type name##_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(type)), may_alias));         \
  enum { name##_lanes = VECTOR_BYTES / sizeof(type), name##_columns = 2 * name##_lanes };                          \
                                                                                                                   \
  /* rows x depth elements, element (i, p) at data[i * row + p * step], in strips of height. */                    \
  static void name##_pack(type *restrict out, const type *data, int64_t row, int64_t step, int64_t rows,           \
                          int64_t depth, int64_t height) {                                                         \
    for (int64_t top = 0; top < rows; top += height) {                                                             \
      int64_t there = MIN(rows - top, height);                                                                     \
      for (int64_t p = 0; p < depth; p++, out += height) {                                                         \
        const type *from = data + top * row + p * step;                                                            \
        if (row == 1 && there == height) memcpy(out, from, (size_t)height * sizeof(type));                         \
        else                                                                                                       \
          for (int64_t i = 0; i < height; i++) out[i] = i < there ? from[i * row] : 0;                             \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
                                                                                                                   \
  /* tile: ROWS x columns. a: depth x ROWS, b: depth x columns. */                                                 \
  static inline __attribute__((always_inline)) void name##_tile(type *tile, int64_t pitch, const type *a,          \
                                                                const type *b, int64_t depth, bool add) {          \
    name##_vector sums[ROWS][2] = {0};                                                                             \
    for (int64_t p = 0; p < depth; p++, a += ROWS, b += name##_columns) {                                          \
      name##_vector left = *(const name##_vector *)b, right = *(const name##_vector *)(b + name##_lanes);          \
      _Pragma("GCC unroll 6") for (int i = 0; i < ROWS; i++) {                                                     \
        sums[i][0] += a[i] * left;                                                                                 \
        sums[i][1] += a[i] * right;                                                                                \
      }                                                                                                            \
    }                                                                                                              \
    _Pragma("GCC unroll 6") for (int i = 0; i < ROWS; i++) {                                                       \
      name##_vector *left = (name##_vector *)(tile + i * pitch);                                                   \
      name##_vector *right = (name##_vector *)(tile + i * pitch + name##_lanes);                                   \
      *left = add ? (name##_vector)(*left + sums[i][0]) : sums[i][0];                                              \
      *right = add ? (name##_vector)(*right + sums[i][1]) : sums[i][1];                                            \
    }                                                                                                              \
  }                                                                                                                \
                                                                                                                   \
  TD_CLONES static void name##_block(type *c, int64_t ldc, const type *a, const type *b, int64_t m, int64_t n,     \
                                     int64_t depth, bool add) {                                                    \
    for (int64_t j = 0; j < n; j += name##_columns) {                                                              \
      for (int64_t i = 0; i < m; i += ROWS) {                                                                      \
        int64_t rows = MIN(m - i, ROWS), columns = MIN(n - j, name##_columns);                                     \
        const type *strip_a = a + i * depth, *strip_b = b + j * depth;                                             \
        type *at = c + i * ldc + j;                                                                                \
        if (rows == ROWS && columns == name##_columns) {                                                           \
          name##_tile(at, ldc, strip_a, strip_b, depth, add);                                                      \
          continue;                                                                                                \
        }                                                                                                          \
        type edge[ROWS * name##_columns];                                                                          \
        name##_tile(edge, name##_columns, strip_a, strip_b, depth, false);                                         \
        for (int64_t r = 0; r < rows; r++)                                                                         \
          for (int64_t s = 0; s < columns; s++)                                                                    \
            at[r * ldc + s] = add ? at[r * ldc + s] + edge[r * name##_columns + s] : edge[r * name##_columns + s]; \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
                                                                                                                   \
  static void name##_run(const td_gemm_job *job, type *block_a, type *block_b, bool add) {                         \
    int64_t a_row = job->a_transposed ? 1 : job->lda, a_step = job->a_transposed ? job->lda : 1;                   \
    int64_t b_row = job->b_transposed ? job->ldb : 1, b_step = job->b_transposed ? 1 : job->ldb;                   \
    const type *a = job->a, *b = job->b;                                                                           \
    type *c = job->c;                                                                                              \
    for (int64_t j = 0; j < job->n; j += WIDE) {                                                                   \
      int64_t wide = MIN(job->n - j, WIDE);                                                                        \
      for (int64_t p = 0; p < job->k; p += DEPTH) {                                                                \
        int64_t depth = MIN(job->k - p, DEPTH);                                                                    \
        name##_pack(block_b, b + j * b_row + p * b_step, b_row, b_step, wide, depth, name##_columns);              \
        for (int64_t i = 0; i < job->m; i += TALL) {                                                               \
          int64_t tall = MIN(job->m - i, TALL);                                                                    \
          name##_pack(block_a, a + i * a_row + p * a_step, a_row, a_step, tall, depth, ROWS);                      \
          name##_block(c + i * job->ldc + j, job->ldc, block_a, block_b, tall, wide, depth, add || p > 0);         \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
  }

PACKED(float, single)
PACKED(double, twofold)

static int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

static int64_t block_bytes(uint8_t dtype, int64_t m, int64_t k) { // of A
  return round_up(round_up(MIN(m, TALL), ROWS) * MIN(k, DEPTH) * td_dtype_bytes(dtype), ALIGNMENT);
}

int64_t td_gemm_packed_bytes(uint8_t dtype, int64_t m, int64_t n, int64_t k) {
  int64_t b_bytes = round_up(MIN(n, WIDE), single_columns) * MIN(k, DEPTH) * td_dtype_bytes(dtype);
  return block_bytes(dtype, m, k) + round_up(b_bytes, ALIGNMENT);
}

void td_gemm_packed(uint8_t dtype, const td_gemm_job *job, void *blocks, bool add) {
  char *block_b = (char *)blocks + block_bytes(dtype, job->m, job->k);
  if (dtype == TD_FLOAT32) single_run(job, blocks, (float *)block_b, add);
  else twofold_run(job, blocks, (double *)block_b, add);
}
