// How reductions walk their input: as outer x count x inner elements, of which count are reduced. Private to the
// families of reductions.
#ifndef TD_OPS_REDUCE_H
#define TD_OPS_REDUCE_H
#include "engine/ops/flat.h"

typedef struct td_reduction {
  int64_t outer, count, inner; // the result has outer x inner elements, row-major
  td_flat flat;
} td_reduction;

// Opens input 0 for a reduction over axes, as dtype. lines: inner is 1, so that what is reduced lies behind each other.
int td_reduction_open(const td_call *call, const bool reduced[TD_RANK_MAX], bool lines, uint8_t dtype, td_reduction *r);
void td_reduction_axes(const td_arg *axes, int rank, bool reduced[TD_RANK_MAX]); // of arguments that infer has checked

// Infer rules of rows with params x, axis, keepdims (first two arguments): shape, and the dtype of the input.
int td_reduction_infer(td_infer *infer); // any dtype
int td_reduction_infer_total(td_infer *infer); // integers and bool give int64
int td_reduction_infer_floating(td_infer *infer); // integers and bool give float32
int td_reduction_shape(td_infer *infer, const td_arg *axes, bool keepdims); // shape alone
int64_t td_reduction_count(const td_meta *in, const td_arg *axes); // elements that one result is made of

// Parts of gradients: a result, or its cotangent, as a tensor that broadcasts against the input.
td_tensor *td_reduction_expand(td_rule *rule, td_tensor *t, const td_arg *axes, bool keepdims);

// x[lines, n] moved by so many places along its last axis, to the right or to the left, with fill where nothing comes
// from.
td_tensor *td_shift_lines(td_scope *s, td_tensor *x, int64_t by, bool right, double fill);
// Products of all elements before each one of x[lines, n] (before) or after it, by doubling.
td_tensor *td_products_beside(td_scope *s, td_tensor *x, bool before);

#define TD_AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXES }
#define TD_KEEPDIMS_PARAM \
  { .name = "keepdims", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }
#define TD_REDUCE_PARAMS \
  { TD_X, TD_AXIS_PARAM, TD_KEEPDIMS_PARAM }
#endif
