// Assignment into a tensor that nobody else sees, for the language's x[key] = value.
#ifndef TD_OPS_INDEX_H
#define TD_OPS_INDEX_H
#include "engine/ops/op.h"

// Writes value, broadcast to size and cast to x's dtype, into x at start + k * step along each axis (x->rank numbers
// each). The caller guarantees td_tensor_is_sole(x); value may not share x's storage. Errors: shapes that don't fit,
// positions outside, floats for an integer x, memory; x is unchanged then.
int td_index_update_in_place(td_context *context, td_tensor *x, const td_tensor *value, const int64_t *start,
                             const int64_t *step, const int64_t *size);

// The same at the places that indices name along axes of x (count of each, see index_put), of repeated ones the last
// value stays. x may be any view of storage that nobody else sees.
int td_index_put_in_place(td_context *context, td_tensor *x, td_tensor *value, td_tensor *const *indices, int count,
                          const td_arg *axes);

// Writes rank-d elements of bytes each from data (strides in elements) to out (strides in elements); apart from each
// other.
void td_elements_place(char *out, const int64_t *out_strides, const char *data, const int64_t *strides, int bytes,
                       int rank, const int64_t *shape);
// The same, cut for the pool.
void td_elements_move(td_pool *pool, char *out, const int64_t *out_strides, const char *data, const int64_t *strides,
                      int bytes, int rank, const int64_t *shape);
#endif
