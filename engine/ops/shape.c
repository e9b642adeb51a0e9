// Views: the same elements under another shape. Only a reshape of elements that lie apart makes a copy.
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

static int keep(td_infer *infer) { // dtype, and as a start the shape
  infer->out[0] = infer->in[0];
  return TD_OK;
}

static int wrapped(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

static int fail_rank(td_infer *infer, int rank) {
  return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is more than the %d that tensors can have", rank, TD_RANK_MAX);
}

static int reshape_back_vjp(td_rule *rule) { // of all views that keep the elements' order
  rule->din[0] = td_reshape(&rule->scope, rule->cotangent[0], rule->in_meta[0].rank, rule->in_meta[0].shape);
  return TD_OK;
}

// ---- reshape ----

static int reshape_mismatch(td_infer *infer, const td_arg *shape, int64_t size) {
  td_text text = {0};
  td_shape_print(&text, shape->count, shape->ints);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "%lld elements don't fit shape %s", (long long)size,
                           text.data ? text.data : "");
  td_text_clear(&text);
  return code;
}

static int reshape_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[0];
  int64_t size = td_shape_size(infer->in[0].rank, infer->in[0].shape), known = 1;
  int open = -1;
  for (int i = 0; i < shape->count; i++) {
    infer->out[0].shape[i] = shape->ints[i];
    if (shape->ints[i] == -1) {
      if (open >= 0) return td_infer_fail(infer, TD_ERROR_SHAPE, "more than one size is -1; only one can be inferred");
      open = i;
    } else if (shape->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "size of axis %d is negative: %lld", i, (long long)shape->ints[i]);
    else if (__builtin_mul_overflow(known, shape->ints[i], &known)) return reshape_mismatch(infer, shape, size);
  }
  if (open >= 0 && known > 0 && size % known == 0) infer->out[0].shape[open] = size / known;
  else if (open >= 0 || known != size) return reshape_mismatch(infer, shape, size);
  infer->out[0].rank = (uint8_t)shape->count;
  infer->out[0].dtype = infer->in[0].dtype;
  return TD_OK;
}

// Strides that give in's elements another shape without moving them. Axes of both shapes are matched in runs that hold
// equally many elements; a run of in's must lie without gaps. False: they have to move.
static bool reshape_strides(const td_tensor *in, const td_meta *out, int64_t *strides) {
  int from = 0, to = 0;
  int64_t shape[TD_RANK_MAX], steps[TD_RANK_MAX];
  int rank = 0;
  for (int i = 0; i < in->rank; i++) {
    if (in->shape[i] == 1) continue;
    shape[rank] = in->shape[i];
    steps[rank++] = in->strides[i];
  }
  while (to < out->rank) {
    if (out->shape[to] == 1) {
      strides[to++] = 1;
      continue;
    }
    int first = from, end = to + 1;
    int64_t have = shape[from++], want = out->shape[to];
    while (have != want) {
      if (have < want) have *= shape[from++];
      else want *= out->shape[end++];
    }
    for (int i = first; i + 1 < from; i++)
      if (steps[i] != steps[i + 1] * shape[i + 1]) return false;
    int64_t stride = steps[from - 1];
    for (int i = end; i-- > to;) {
      strides[i] = stride;
      stride *= out->shape[i];
    }
    to = end;
  }
  return true;
}

static td_tensor *reshape_view(td_context *context, td_tensor *in, const td_infer *infer) {
  const td_meta *out = &infer->out[0];
  int64_t strides[TD_RANK_MAX] = {0};
  if (!in->size) return td_tensor_new(context, in->dtype, out->rank, out->shape);
  if (reshape_strides(in, out, strides)) return td_tensor_view(context, in, out->rank, out->shape, strides, 0);
  td_tensor *moved = td_tensor_new(context, in->dtype, out->rank, out->shape);
  if (!moved) return NULL;
  td_elements_copy(context->pool, moved->data, in->data, td_dtype_bytes(in->dtype), in->rank, in->shape, in->strides);
  moved->flags = in->flags;
  return moved;
}

static const td_op reshape = {
    .name = "reshape",
    .params = {TD_X, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = reshape_infer,
    .view = reshape_view,
    .vjp = reshape_back_vjp,
    .doc = "The same elements in row-major order under another shape; one size may be -1 and is inferred.\n"
           "Shares memory where the elements lie in order, else copies.\nGradient: the cotangent, reshaped back.",
    .example = "reshape(arange(6), (2, -1)).tolist()  # [[0, 1, 2], [3, 4, 5]]",
    .samples = TD_SAMPLES{{"2,3", "shape=(3, 2)", -2, 2, NULL},
                          {"2,3", "shape=(-1,)", -2, 2, NULL},
                          {"4,3", "shape=(2, 2, 1, 3)", -2, 2, NULL},
                          {"-", "shape=(1, 1)", -2, 2, NULL},
                          {"0,3", "shape=(3, 0)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- flatten ----

static int flatten_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  int start = 0, end = 0, rank = 0, code = TD_OK;
  keep(infer);
  if (in->rank) code = td_infer_axis(infer, infer->args[0].i, in->rank, &start);
  if (!code && in->rank) code = td_infer_axis(infer, infer->args[1].i, in->rank, &end);
  if (code) return code;
  if (end < start) return td_infer_fail(infer, TD_ERROR_VALUE, "start_dim %d is behind end_dim %d", start, end);
  int64_t merged = 1;
  for (int i = 0; i < in->rank; i++) {
    if (i >= start && i <= end) merged *= in->shape[i];
    if (i == end) infer->out[0].shape[rank++] = merged;
    else if (i < start || i > end) infer->out[0].shape[rank++] = in->shape[i];
  }
  if (!in->rank) infer->out[0].shape[rank++] = 1;
  infer->out[0].rank = (uint8_t)rank;
  return TD_OK;
}

static const td_op flatten = {
    .name = "flatten",
    .params = {TD_X,
               {.name = "start_dim", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(0)},
               {.name = "end_dim", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(-1)}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = flatten_infer,
    .view = reshape_view,
    .vjp = reshape_back_vjp,
    .doc = "The axes from start_dim to end_dim as one axis; all of them by default.\n"
           "Gradient: the cotangent, reshaped back.",
    .example = "flatten(tensor([[1, 2], [3, 4]])).tolist()  # [1, 2, 3, 4]",
    .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL},
                          {"2,3,4", "start_dim=1", -2, 2, NULL},
                          {"-", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- transpose, swapaxes ----

static int transpose_axes(td_infer *infer, int *axes) {
  const td_arg *given = &infer->args[0];
  int rank = infer->in[0].rank;
  bool seen[TD_RANK_MAX] = {false};
  for (int i = 0; !given->given && i < rank; i++) axes[i] = rank - 1 - i;
  if (!given->given) return TD_OK;
  if (given->count != rank) {
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "%d axes are named, the tensor has rank %d", given->count, rank);
    if (given->count == 2)
      td_error_hint(infer->context, "swapaxes(%lld, %lld) swaps two axes", (long long)given->ints[0],
                    (long long)given->ints[1]);
    return code;
  }
  for (int i = 0; i < rank; i++) {
    int code = td_infer_axis(infer, given->ints[i], rank, &axes[i]);
    if (code) return code;
    if (seen[axes[i]]) return td_infer_fail(infer, TD_ERROR_VALUE, "axis %d is named twice", axes[i]);
    seen[axes[i]] = true;
  }
  return TD_OK;
}

static int permuted(td_infer *infer, const int *axes) {
  keep(infer);
  for (int i = 0; i < infer->in[0].rank; i++) infer->out[0].shape[i] = infer->in[0].shape[axes[i]];
  return TD_OK;
}

static td_tensor *permuted_view(td_context *context, td_tensor *in, const td_meta *out, const int *axes) {
  int64_t strides[TD_RANK_MAX] = {0};
  for (int i = 0; i < in->rank; i++) strides[i] = in->strides[axes[i]];
  return td_tensor_view(context, in, out->rank, out->shape, strides, 0);
}

static int transpose_infer(td_infer *infer) {
  int axes[TD_RANK_MAX];
  int code = transpose_axes(infer, axes);
  return code ? code : permuted(infer, axes);
}

static td_tensor *transpose_view(td_context *context, td_tensor *in, const td_infer *infer) {
  const td_arg *given = &infer->args[0];
  int axes[TD_RANK_MAX];
  for (int i = 0; i < in->rank; i++) axes[i] = given->given ? wrapped(given->ints[i], in->rank) : in->rank - 1 - i;
  return permuted_view(context, in, &infer->out[0], axes);
}

static int transpose_vjp(td_rule *rule) {
  const td_arg *given = &rule->args[0];
  int rank = rule->in_meta[0].rank, back[TD_RANK_MAX];
  for (int i = 0; i < rank; i++) back[given->given ? wrapped(given->ints[i], rank) : rank - 1 - i] = i;
  rule->din[0] = td_permute(&rule->scope, rule->cotangent[0], back);
  return TD_OK;
}

static const td_op transpose = {
    .name = "transpose",
    .params = {TD_X, {.name = "axes", .kind = TD_PARAM_AXES}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = transpose_infer,
    .view = transpose_view,
    .vjp = transpose_vjp,
    .doc = "The axes in another order: axis i of the result is axis axes[i] of x. All are reversed when axes is None, "
           "as in x.T.\n"
           "Gradient: the cotangent with the axes moved back.",
    .example = "transpose(tensor([[1, 2], [3, 4]])).tolist()  # [[1, 3], [2, 4]]",
    .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL},
                          {"2,3,4", "axes=(1, 2, 0)", -2, 2, NULL},
                          {"2,3,4", "axes=(-1, 0, 1)", -2, 2, NULL},
                          {"-", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

static void swapped_axes(const td_arg *args, int rank, int *axes) {
  int first = wrapped(args[0].i, rank), second = wrapped(args[1].i, rank);
  for (int i = 0; i < rank; i++) axes[i] = i == first ? second : i == second ? first : i;
}

static int swapaxes_infer(td_infer *infer) {
  int axes[TD_RANK_MAX], rank = infer->in[0].rank;
  for (int i = 0; i < 2; i++) {
    int code = td_infer_axis(infer, infer->args[i].i, rank, axes);
    if (code) return code;
  }
  swapped_axes(infer->args, rank, axes);
  return permuted(infer, axes);
}

static td_tensor *swapaxes_view(td_context *context, td_tensor *in, const td_infer *infer) {
  int axes[TD_RANK_MAX];
  swapped_axes(infer->args, in->rank, axes);
  return permuted_view(context, in, &infer->out[0], axes);
}

static td_tensor *swap_axes(td_scope *s, td_tensor *x, int64_t first, int64_t second);

static int swapaxes_vjp(td_rule *rule) {
  rule->din[0] = swap_axes(&rule->scope, rule->cotangent[0], rule->args[0].i, rule->args[1].i);
  return TD_OK;
}

static const td_op swapaxes = {
    .name = "swapaxes",
    .params = {TD_X,
               {.name = "axis0", .kind = TD_PARAM_AXIS, .required = true},
               {.name = "axis1", .kind = TD_PARAM_AXIS, .required = true}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = swapaxes_infer,
    .view = swapaxes_view,
    .vjp = swapaxes_vjp,
    .doc = "Two axes exchanged.\nGradient: the cotangent with the same axes exchanged.",
    .example = "swapaxes(zeros((2, 3, 4)), 0, -1).shape  # (4, 3, 2)",
    .samples = TD_SAMPLES{{"2,3,4", "axis0=0, axis1=-1", -2, 2, NULL}, TD_SAMPLES_END},
};

static td_tensor *swap_axes(td_scope *s, td_tensor *x, int64_t first, int64_t second) {
  const td_arg args[] = {TD_INT_ARG(first), TD_INT_ARG(second)};
  return td_scope_apply(s, &swapaxes, args, 1, x);
}

// ---- axes of size 1 ----

static int expand_dims_infer(td_infer *infer) {
  const td_arg *axes = &infer->args[0];
  const td_meta *in = &infer->in[0];
  bool added[TD_RANK_MAX];
  int rank = in->rank + axes->count;
  if (rank > TD_RANK_MAX) return fail_rank(infer, rank);
  int code = td_infer_axes(infer, axes, rank, added);
  if (code) return code;
  for (int i = 0, from = 0; i < rank; i++) infer->out[0].shape[i] = added[i] ? 1 : in->shape[from++];
  infer->out[0].rank = (uint8_t)rank;
  infer->out[0].dtype = in->dtype;
  return TD_OK;
}

static const td_op expand_dims = {
    .name = "expand_dims",
    .params = {TD_X, {.name = "axis", .kind = TD_PARAM_AXES, .required = true}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = expand_dims_infer,
    .view = reshape_view,
    .vjp = reshape_back_vjp,
    .doc = "New axes of size 1 at the given places of the result.\nGradient: the cotangent without them.",
    .example = "expand_dims(tensor([1, 2]), -1).tolist()  # [[1], [2]]",
    .samples = TD_SAMPLES{{"2,3", "axis=1", -2, 2, NULL},
                          {"2,3", "axis=(0, -1)", -2, 2, NULL},
                          {"-", "axis=0", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static int squeeze_infer(td_infer *infer) {
  const td_arg *axes = &infer->args[0];
  const td_meta *in = &infer->in[0];
  bool named[TD_RANK_MAX];
  int code = td_infer_axes(infer, axes, in->rank, named), rank = 0;
  if (code) return code;
  for (int i = 0; i < in->rank; i++) {
    if (named[i] && axes->given && in->shape[i] != 1)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d has size %lld, not 1", i, (long long)in->shape[i]);
    if (!named[i] || in->shape[i] != 1) infer->out[0].shape[rank++] = in->shape[i];
  }
  infer->out[0].rank = (uint8_t)rank;
  infer->out[0].dtype = in->dtype;
  return TD_OK;
}

static const td_op squeeze = {
    .name = "squeeze",
    .params = {TD_X, {.name = "axis", .kind = TD_PARAM_AXES}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = squeeze_infer,
    .view = reshape_view,
    .vjp = reshape_back_vjp,
    .doc = "Axes of size 1 left out: the named ones, or all. Naming an axis of another size is an error.\n"
           "Gradient: the cotangent with them put back.",
    .example = "squeeze(zeros((1, 3, 1))).shape  # (3,)",
    .samples = TD_SAMPLES{{"1,3,1", NULL, -2, 2, NULL}, {"1,3,1", "axis=-1", -2, 2, NULL}, TD_SAMPLES_END},
};

// ---- broadcast_to ----

static int broadcast_to_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[0];
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  int rank = 0;
  bool fits = shape->count >= in->rank &&
              td_shape_broadcast(in->rank, in->shape, shape->count, shape->ints, &rank, out->shape, NULL) &&
              td_shape_equal(rank, out->shape, shape->count, shape->ints);
  if (!fits) {
    td_text text = {0};
    td_shape_print(&text, in->rank, in->shape);
    td_text_add(&text, " doesn't broadcast to ");
    td_shape_print(&text, shape->count, shape->ints);
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "shape %s", text.data ? text.data : "");
    td_text_clear(&text);
    return code;
  }
  out->rank = (uint8_t)rank;
  out->dtype = in->dtype;
  return TD_OK;
}

static td_tensor *broadcast_to_view(td_context *context, td_tensor *in, const td_infer *infer) {
  td_view from, to;
  td_view_of(&from, in);
  td_view_broadcast(&to, &from, infer->out[0].rank, infer->out[0].shape);
  return td_tensor_view(context, in, to.rank, to.shape, to.strides, 0);
}

static int broadcast_to_vjp(td_rule *rule) { // the tape sums it to the input's shape
  rule->din[0] = rule->cotangent[0];
  return TD_OK;
}

static const td_op broadcast_to = {
    .name = "broadcast_to",
    .params = {TD_X, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = broadcast_to_infer,
    .view = broadcast_to_view,
    .vjp = broadcast_to_vjp,
    .doc = "x repeated along new axes in front and along axes of size 1, without copying.\n"
           "Gradient: the cotangent, summed over the axes that were repeated.",
    .example = "broadcast_to(tensor([1, 2]), (2, 2)).tolist()  # [[1, 2], [1, 2]]",
    .samples = TD_SAMPLES{{"3", "shape=(2, 3)", -2, 2, NULL},
                          {"2,1", "shape=(4, 2, 3)", -2, 2, NULL},
                          {"-", "shape=(2,)", -2, 2, NULL},
                          {"1", "shape=(0,)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- flip ----

static int flip_infer(td_infer *infer) {
  bool named[TD_RANK_MAX];
  keep(infer);
  return td_infer_axes(infer, &infer->args[0], infer->in[0].rank, named);
}

static td_tensor *flip_view(td_context *context, td_tensor *in, const td_infer *infer) {
  const td_arg *axes = &infer->args[0];
  int64_t strides[TD_RANK_MAX] = {0}, offset = 0;
  for (int i = 0; i < in->rank; i++) {
    bool named = !axes->given;
    for (int j = 0; j < axes->count; j++) named |= axes->ints[j] == i || axes->ints[j] == i - in->rank;
    strides[i] = named ? -in->strides[i] : in->strides[i];
    if (named && in->size) offset += (in->shape[i] - 1) * in->strides[i];
  }
  return td_tensor_view(context, in, in->rank, in->shape, strides, offset);
}

static int flip_vjp(td_rule *rule) {
  rule->din[0] = td_flip(&rule->scope, rule->cotangent[0], &rule->args[0]);
  return TD_OK;
}

static const td_op flip = {
    .name = "flip",
    .params = {TD_X, {.name = "axis", .kind = TD_PARAM_AXES}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = flip_infer,
    .view = flip_view,
    .vjp = flip_vjp,
    .doc = "The elements in reversed order along axis; along all axes when None. No copy.\n"
           "Gradient: the cotangent, reversed likewise.",
    .example = "flip(tensor([1, 2, 3])).tolist()  # [3, 2, 1]",
    .samples =
        TD_SAMPLES{
            {"2,3", NULL, -2, 2, NULL}, {"2,3", "axis=-1", -2, 2, NULL}, {"0,3", NULL, -2, 2, NULL}, TD_SAMPLES_END},
};

// ---- builders ----

td_tensor *td_reshape(td_scope *s, td_tensor *x, int rank, const int64_t *shape) {
  if (x && td_shape_equal(x->rank, x->shape, rank, shape)) return x;
  const td_arg args[] = {td_ints_arg(rank, shape)};
  return td_scope_apply(s, &reshape, args, 1, x);
}

td_tensor *td_permute(td_scope *s, td_tensor *x, const int *axes) {
  td_arg args[1] = {{.given = 1, .count = x ? x->rank : 0}};
  for (int i = 0; i < args[0].count; i++) args[0].ints[i] = axes[i];
  return td_scope_apply(s, &transpose, args, 1, x);
}

td_tensor *td_swap_last(td_scope *s, td_tensor *x) { return swap_axes(s, x, -1, -2); }

td_tensor *td_broadcast_to(td_scope *s, td_tensor *x, int rank, const int64_t *shape) {
  if (x && td_shape_equal(x->rank, x->shape, rank, shape)) return x;
  const td_arg args[] = {td_ints_arg(rank, shape)};
  return td_scope_apply(s, &broadcast_to, args, 1, x);
}

td_tensor *td_flip(td_scope *s, td_tensor *x, const td_arg *axes) { return td_scope_apply(s, &flip, axes, 1, x); }

td_tensor *td_expand_axes(td_scope *s, td_tensor *x, const td_arg *axes, int rank) {
  int64_t shape[TD_RANK_MAX];
  for (int i = 0, from = 0; x && i < rank; i++) {
    bool removed = !axes || !axes->given;
    for (int j = 0; axes && j < axes->count; j++) removed |= axes->ints[j] == i || axes->ints[j] == i - rank;
    shape[i] = removed ? 1 : x->shape[from++];
  }
  return td_reshape(s, x, rank, shape);
}

const td_op *const td_family_shape[] = {&reshape, &flatten,      &transpose, &swapaxes, &expand_dims,
                                        &squeeze, &broadcast_to, &flip,      NULL};
