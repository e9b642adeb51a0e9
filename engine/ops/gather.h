// What the families of indexing share: places in a tensor, read from index tensors, and moving elements to and from
// them.
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
void td_gather_plan_of(const td_view *index, int count, int rank, const td_arg *axes,
                       td_gather_plan *plan); // for kernels
void td_gather_shape(const td_gather_plan *plan, const td_meta *x, uint8_t dtype, td_meta *out);
int td_index_dtype(td_infer *infer, const td_meta *index); // error: not integers

// The places as runs: run r holds post_size elements of x, from offset base(r) on, r = pre position x index.
typedef struct td_gather_walk {
  int bytes;
  int64_t index_count, *offsets; // of each index, in elements of x; in the workspace
  int pre_rank, post_rank;
  int64_t pre_shape[TD_RANK_MAX], pre_strides[TD_RANK_MAX], post_shape[TD_RANK_MAX], post_strides[TD_RANK_MAX];
  int64_t pre_size, post_size;
} td_gather_walk;

// For kernels: read and check count indices; a negative one counts from the end. space holds td_gather_bytes. Errors:
// an index out of range names itself, axis and size.
int64_t td_gather_bytes(const td_view *index, int count);
int td_gather_open(const td_call *call, const td_view *x, const td_view *index, int count, const td_arg *axes,
                   void *space, td_gather_walk *walk);
// The same for one element each: for every element of index the place in x with the axis's number replaced by it. index
// has x's rank, and no axis longer than x's but the one.
int td_gather_along(const td_call *call, const td_view *x, const td_view *index, int axis, void *space,
                    td_gather_walk *walk);
void td_gather_read(td_pool *pool, const td_gather_walk *walk, char *out, const char *x);
// Without a plan: visit sees the places of n indices from the first on, in order within each group of so many, on any
// thread.
typedef void td_gather_visit(void *owner, const int64_t *places, int64_t first, int64_t n);
int td_gather_visit_along(const td_call *call, const td_view *x, const td_view *index, int axis, int64_t group,
                          td_gather_visit *visit, void *owner);
int td_gather_read_along(const td_call *call, const td_view *x, const td_view *index, int axis, char *out);

// What happens where elements are written to: each one is the last value, or all of them combined in the order of the
// indices, the old one first. The same bits on any number of threads.
enum td_scatter { TD_SCATTER_SET, TD_SCATTER_ADD, TD_SCATTER_MULTIPLY, TD_SCATTER_MAXIMUM, TD_SCATTER_MINIMUM };
// Along an axis, value by value (step 0: one for all), and what it takes of the workspace.
int64_t td_scatter_along_bytes(const td_pool *pool, const td_view *x, const td_view *index, int axis,
                               enum td_scatter mode);
int td_scatter_along(const td_call *call, const td_view *x, const td_view *index, int axis, enum td_scatter mode,
                     const char *values, int64_t step, void *space);
// The whole of it: value, broadcast to the shape that the indices read and cast to x's dtype, is written to x.
int64_t td_scatter_at_bytes(const td_pool *pool, const td_view *x, const td_view *value, const td_view *index,
                            int count, const td_arg *axes, enum td_scatter mode);
int td_scatter_at(const td_call *call, const td_view *x, const td_view *value, const td_view *index, int count,
                  const td_arg *axes, enum td_scatter mode, void *space);
#endif
