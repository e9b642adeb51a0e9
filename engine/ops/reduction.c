// What reductions share: the shape of their result, the walk over their input, and their cotangent spread out again.
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/reduce.h"

void td_reduction_axes(const td_arg *axes, int rank, bool reduced[TD_RANK_MAX]) {
  for (int i = 0; i < TD_RANK_MAX; i++) reduced[i] = !axes->given && i < rank;
  for (int i = 0; axes->given && i < axes->count; i++)
    reduced[axes->ints[i] < 0 ? axes->ints[i] + rank : axes->ints[i]] = true;
}

int64_t td_reduction_count(const td_meta *in, const td_arg *axes) {
  bool reduced[TD_RANK_MAX];
  int64_t count = 1;
  td_reduction_axes(axes, in->rank, reduced);
  for (int i = 0; i < in->rank; i++)
    if (reduced[i]) count *= in->shape[i];
  return count;
}

int td_reduction_shape(td_infer *infer, const td_arg *axes, bool keepdims) {
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  bool reduced[TD_RANK_MAX];
  int code = td_infer_axes(infer, axes, in->rank, reduced), rank = 0;
  if (code) return code;
  for (int i = 0; i < in->rank; i++) {
    if (!reduced[i]) out->shape[rank++] = in->shape[i];
    else if (keepdims) out->shape[rank++] = 1;
  }
  out->rank = (uint8_t)rank;
  return TD_OK;
}

int td_reduction_infer(td_infer *infer) {
  infer->out[0].dtype = infer->in[0].dtype;
  return td_reduction_shape(infer, &infer->args[0], infer->args[1].i);
}

int td_reduction_infer_total(td_infer *infer) {
  int code = td_reduction_infer(infer);
  if (!td_dtype_is_float(infer->in[0].dtype)) infer->out[0].dtype = TD_INT64;
  return code;
}

int td_reduction_infer_floating(td_infer *infer) {
  int code = td_reduction_infer(infer);
  if (!td_dtype_is_float(infer->in[0].dtype)) infer->out[0].dtype = TD_FLOAT32;
  return code;
}

// The input is read as it lies when it is row-major and the reduced axes are neighbours (axes of size 1 aside);
// otherwise a copy has the kept axes first.
int td_reduction_open(const td_call *call, const bool reduced[TD_RANK_MAX], bool lines, uint8_t dtype,
                      td_reduction *r) {
  const td_view *in = &call->in[0];
  int axes[TD_RANK_MAX], kept = 0, first = in->rank, last = -1;
  bool neighbours = td_view_is_flat(in);
  *r = (td_reduction){1, 1, 1, {0}};
  for (int i = 0; i < in->rank; i++) {
    if (!reduced[i]) axes[kept++] = i;
    else if (in->shape[i] != 1) {
      if (first == in->rank) first = i;
      last = i;
    }
  }
  for (int i = 0, at = kept; i < in->rank; i++)
    if (reduced[i]) axes[at++] = i;
  for (int i = 0; i < in->rank; i++) {
    if (reduced[i]) r->count *= in->shape[i];
    else if (i < first) r->outer *= in->shape[i];
    else {
      r->inner *= in->shape[i];
      if (i < last && in->shape[i] != 1) neighbours = false;
    }
  }
  if (neighbours && (!lines || r->inner == 1)) return td_flat_open(call, in, dtype, &r->flat);
  r->outer *= r->inner;
  r->inner = 1;
  td_view permuted;
  td_view_permute(&permuted, in, axes);
  return td_flat_open(call, &permuted, dtype, &r->flat);
}

td_tensor *td_reduction_expand(td_rule *rule, td_tensor *t, const td_arg *axes, bool keepdims) {
  return keepdims ? t : td_expand_axes(&rule->scope, t, axes, rule->in_meta[0].rank);
}

td_tensor *td_shift_lines(td_scope *s, td_tensor *x, int64_t by, bool right, double fill) {
  if (!x) return NULL;
  const int64_t steps[] = {1, 1}, start[] = {0, right ? 0 : by}, size[] = {x->shape[0], x->shape[1] - by};
  td_meta gap = {.dtype = x->dtype, .rank = 2, .shape = {x->shape[0], by}};
  td_tensor *filled = td_scope_filled(s, fill, &gap), *rest = td_slice_view(s, x, start, steps, size);
  return right ? td_concat(s, filled, rest, 1) : td_concat(s, rest, filled, 1);
}

td_tensor *td_products_beside(td_scope *s, td_tensor *x, bool before) {
  td_tensor *running = td_shift_lines(s, x, 1, before, 1);
  for (int64_t by = 1; running && by < x->shape[1]; by *= 2)
    running = td_multiply(s, running, td_shift_lines(s, running, by, before, 1));
  return running;
}
