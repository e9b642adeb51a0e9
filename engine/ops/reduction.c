// What reductions share: the shape of their result, and parts of their gradients.
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

int64_t td_reduction_view_count(const td_view *in, const td_arg *axes) {
  td_meta meta = {.rank = in->rank};
  memcpy(meta.shape, in->shape, in->rank * sizeof *in->shape);
  return td_reduction_count(&meta, axes);
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

int td_reduction_infer_extreme(td_infer *infer) {
  int code = td_reduction_infer(infer);
  if (code || td_reduction_count(&infer->in[0], &infer->args[0])) return code;
  if (!td_shape_size(infer->out[0].rank, infer->out[0].shape)) return TD_OK; // there is no result to be made of nothing
  code = td_infer_fail(infer, TD_ERROR_VALUE, "no identity: the reduced axes hold no element");
  td_error_hint(infer->context, "test x.size first");
  return code;
}

td_tensor *td_reduction_expand(td_rule *rule, td_tensor *t, const td_arg *axes, bool keepdims) {
  return keepdims ? t : td_expand_axes(&rule->scope, t, axes, rule->in_meta[0].rank);
}

td_turn td_turn_of(const td_meta *in, const td_arg *axes) {
  bool reduced[TD_RANK_MAX];
  td_turn turn = {.rank = in->rank, .flat = {1, 1}};
  int at = 0;
  td_reduction_axes(axes, in->rank, reduced);
  for (int last = 0; last < 2; last++)
    for (int i = 0; i < in->rank; i++)
      if (reduced[i] == last) turn.axes[at++] = i;
  for (int i = 0; i < in->rank; i++) {
    turn.back[turn.axes[i]] = i;
    turn.shape[i] = in->shape[turn.axes[i]];
    turn.flat[reduced[turn.axes[i]]] *= turn.shape[i];
  }
  return turn;
}

td_tensor *td_turn_to_lines(td_scope *s, const td_turn *turn, td_tensor *x) {
  return td_reshape(s, td_permute(s, x, turn->axes), 2, turn->flat);
}

td_tensor *td_turn_from_lines(td_scope *s, const td_turn *turn, td_tensor *lines) {
  return td_permute(s, td_reshape(s, lines, turn->rank, turn->shape), turn->back);
}

td_tensor *td_reciprocal_or_zero(td_scope *s, td_tensor *t) {
  td_tensor *zero = td_scope_number(s, 0, t), *one = td_scope_number(s, 1, t), *none = td_equal(s, t, zero);
  return td_where(s, none, zero, td_divide(s, one, td_where(s, none, one, t)));
}
