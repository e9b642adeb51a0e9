// What the families of indexing share: positions along axes of a tensor, read from index tensors.
#ifndef TD_OPS_GATHER_H
#define TD_OPS_GATHER_H
#include "engine/ops/flat.h"

// A tensor x indexed along some of its axes by index tensors that broadcast to one shape. The result's axes are pre
// (axes of x), the index shape, post (axes of x). As in NumPy pre holds those before the indexed ones where these are
// neighbours, and nothing otherwise.
typedef struct td_gather_plan {
  int count; // indexed axes
  int axes[TD_RANK_MAX]; // of x, in the order of the index tensors
  int index_rank, pre_count, post_count;
  int64_t index_shape[TD_RANK_MAX];
  int pre[TD_RANK_MAX], post[TD_RANK_MAX];
} td_gather_plan;

// For infer rules. x: shape of the tensor that is indexed; indices are inputs first to in_count. axes: one for each.
int td_gather_plan_make(td_infer *infer, const td_meta *x, int first, const td_arg *axes, td_gather_plan *plan);
void td_gather_plan_of(const td_call *call, int rank, int first, const td_arg *axes,
                       td_gather_plan *plan); // for kernels
void td_gather_shape(const td_gather_plan *plan, const td_meta *x, uint8_t dtype, td_meta *out);

// Moves elements between x (row-major, or with strides) and the result's layout.
typedef struct td_gather_walk {
  int bytes;
  int64_t index_count, *offsets; // of each index, in elements of x; owned
  int pre_rank, post_rank;
  int64_t pre_shape[TD_RANK_MAX], pre_strides[TD_RANK_MAX], post_shape[TD_RANK_MAX], post_strides[TD_RANK_MAX];
  int64_t pre_size, post_size;
} td_gather_walk;

// For kernels: reads and checks the indices (inputs from first on); a negative one counts from the end. Errors: an
// index out of range names itself, axis and size.
int td_gather_open(const td_call *call, const td_view *x, int first, const td_arg *axes, td_gather_walk *walk);
void td_gather_close(td_gather_walk *walk);
void td_gather_read(td_pool *pool, const td_gather_walk *walk, char *out, const char *x);
void td_gather_write(const td_gather_walk *walk, char *x, const char *values); // in order: the last one stays
void td_gather_add(td_pool *pool, const td_gather_walk *walk, uint8_t dtype, char *x, const char *values); // in order
int td_index_fail(const td_call *call, int64_t index, int axis, int64_t size);
#endif
