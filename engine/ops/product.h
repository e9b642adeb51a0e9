// A batch of matrix products on strided operands: what matmul and the contractions of einsum come down to. An operand
// goes to the product as it lies where its axes allow that; else, or when it has another dtype, it is copied once
// into the workspace.
#ifndef TD_OPS_PRODUCT_H
#define TD_OPS_PRODUCT_H
#include "engine/device/cpu/gemm.h"
#include "engine/ops/op.h"

typedef struct td_axes_group { // axes that act as one, row-major
  int rank;
  int64_t shape[TD_RANK_MAX], strides[TD_RANK_MAX];
} td_axes_group;

typedef struct td_factor { // rows x columns matrices
  const char *data;
  uint8_t dtype;
  int64_t batch[TD_RANK_MAX]; // strides of the batch axes; 0: the same matrix
  td_axes_group rows, columns;
} td_factor;

typedef struct td_product { // out[batch, m, n] = a[batch, m, k] b[batch, k, n], out row-major without gaps
  uint8_t dtype; // computed in, and of out
  int rank; // batch axes
  int64_t shape[TD_RANK_MAX];
  int64_t m, n, k;
  td_factor a, b;
  char *out;
} td_product;

int64_t td_product_workspace(const td_product *product); // bytes; data and out are not looked at
void td_product_run(td_pool *pool, const td_product *product, void *workspace);
// Whether td_gemm can read a rows x columns matrix with these strides as it lies, and how.
bool td_matrix_reads(int64_t rows, int64_t columns, int64_t row, int64_t column, bool *transposed, int64_t *leading);
int64_t td_group_size(const td_axes_group *group);
// Elements at data into a plain array of another dtype or the same.
void td_group_copy(td_pool *pool, const td_axes_group *group, const char *data, uint8_t from, char *out, uint8_t to);
void td_group_add(td_axes_group *group, int64_t size,
                  int64_t stride); // an axis at the end; axes of size 1 are left out
#endif
