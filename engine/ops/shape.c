// Views: the same elements in the same order under another shape. Only a reshape of elements that lie apart makes a
// copy.
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

static int keep(td_infer *infer) { // dtype, and as a start the shape
  infer->out[0] = infer->in[0];
  return TD_OK;
}

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
      return td_infer_fail(infer, TD_ERROR_SHAPE, "shape: size of axis %d is negative: %lld", i,
                           (long long)shape->ints[i]);
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
    .alias = TD_ALIAS("view"),
    .params = {TD_X, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = reshape_infer,
    .batch = td_batch_axes,
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
  const int axes = in->rank ? in->rank : 1; // rank 0 is taken as one axis, which becomes the result's
  code = td_infer_axis(infer, infer->args[0].i, axes, &start);
  if (!code) code = td_infer_axis(infer, infer->args[1].i, axes, &end);
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
    .alias = TD_ALIAS("ravel"),
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
    .alias = TD_ALIAS("unsqueeze"),
    .params = {TD_X, {.name = "axis", .kind = TD_PARAM_AXES, .required = true}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = expand_dims_infer,
    .batch = td_batch_result_axes,
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

// -1 keeps the size of an axis that x has.
static td_arg kept_sizes(const td_arg *shape, const td_meta *in) {
  td_arg kept = *shape;
  for (int i = 0; i < kept.count; i++) {
    int from = i - (kept.count - in->rank);
    if (kept.ints[i] == -1 && from >= 0) kept.ints[i] = in->shape[from];
  }
  return kept;
}

static int broadcast_to_infer(td_infer *infer) {
  const td_meta *in = &infer->in[0];
  const td_arg kept = kept_sizes(&infer->args[0], in), *shape = &kept;
  td_meta *out = &infer->out[0];
  for (int i = 0; i < shape->count; i++)
    if (shape->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "shape: size of axis %d is negative: %lld", i,
                           (long long)shape->ints[i]);
  *out = (td_meta){.dtype = in->dtype, .rank = (uint8_t)shape->count};
  memcpy(out->shape, shape->ints, (size_t)shape->count * sizeof *out->shape);
  return td_infer_fits(infer, "shape", in, out);
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
    .alias = TD_ALIAS("expand"),
    .params = {TD_X, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true, .alias = TD_ALIAS("size")}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = broadcast_to_infer,
    .batch = td_batch_broadcast,
    .view = broadcast_to_view,
    .vjp = broadcast_to_vjp,
    .doc = "x repeated along new axes in front and along axes of size 1, without copying. A size of -1 keeps x's.\n"
           "Gradient: the cotangent, summed over the axes that were repeated.",
    .example = "broadcast_to(tensor([1, 2]), (2, 2)).tolist()  # [[1, 2], [1, 2]]",
    .samples = TD_SAMPLES{{"3", "shape=(2, 3)", -2, 2, NULL},
                          {"2,1", "shape=(4, 2, 3)", -2, 2, NULL},
                          {"-", "shape=(2,)", -2, 2, NULL},
                          {"1", "shape=(0,)", -2, 2, NULL},
                          {"3,1", "shape=(2, -1, 4)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- atleast_1d, atleast_2d, atleast_3d ----

static int atleast_infer(td_infer *infer, int before, int rank) { // new axes stand before the first, then at the end
  const td_meta *in = &infer->in[0];
  td_meta *out = &infer->out[0];
  int front = in->rank < rank && in->rank <= before ? before + 1 - in->rank : 0;
  if (front > rank - in->rank) front = rank - in->rank;
  keep(infer);
  if (in->rank >= rank) return TD_OK;
  for (int i = 0; i < rank; i++) out->shape[i] = i < front || i >= front + in->rank ? 1 : in->shape[i - front];
  out->rank = (uint8_t)rank;
  return TD_OK;
}

static int atleast_1d_infer(td_infer *infer) { return atleast_infer(infer, 0, 1); }
static int atleast_2d_infer(td_infer *infer) { return atleast_infer(infer, 1, 2); }
static int atleast_3d_infer(td_infer *infer) { return atleast_infer(infer, 1, 3); }

#define ATLEAST(NAME, WORDS, EXAMPLE)                                                                       \
  static const td_op NAME = {                                                                               \
      .name = #NAME,                                                                                        \
      .params = {TD_X},                                                                                     \
      .kind = TD_KIND_VIEW,                                                                                 \
      .flags = TD_LINEAR,                                                                                   \
      .infer = NAME##_infer,                                                                                \
      .view = reshape_view,                                                                                 \
      .vjp = reshape_back_vjp,                                                                              \
      .doc = "x with axes of size 1 added " WORDS ", as in NumPy.\nGradient: the cotangent, reshaped back.", \
      .example = EXAMPLE,                                                                                   \
      .samples = TD_SAMPLES{{"-", NULL, -2, 2, NULL},                                                       \
                            {"3", NULL, -2, 2, NULL},                                                       \
                            {"2,3", NULL, -2, 2, NULL},                                                     \
                            {"2,1,3,2", NULL, -2, 2, NULL},                                                 \
                            TD_SAMPLES_END},                                                                \
  };
ATLEAST(atleast_1d, "until it has 1", "atleast_1d(3.5).shape  # (1,)")
ATLEAST(atleast_2d, "in front until it has 2", "atleast_2d(zeros(3)).shape  # (1, 3)")
ATLEAST(atleast_3d, "until it has 3: n becomes 1 x n x 1, m x n becomes m x n x 1",
        "atleast_3d(zeros((2, 3))).shape  # (2, 3, 1)")

// ---- builders ----

td_tensor *td_reshape(td_scope *s, td_tensor *x, int rank, const int64_t *shape) {
  if (x && td_shape_equal(x->rank, x->shape, rank, shape)) return x;
  const td_arg args[] = {td_ints_arg(rank, shape)};
  return td_scope_apply(s, &reshape, args, 1, x);
}

td_tensor *td_broadcast_to(td_scope *s, td_tensor *x, int rank, const int64_t *shape) {
  if (x && td_shape_equal(x->rank, x->shape, rank, shape)) return x;
  const td_arg args[] = {td_ints_arg(rank, shape)};
  return td_scope_apply(s, &broadcast_to, args, 1, x);
}

td_tensor *td_expand_axes(td_scope *s, td_tensor *x, const td_arg *axes, int rank) {
  int64_t shape[TD_RANK_MAX];
  for (int i = 0, from = 0; x && i < rank; i++) {
    bool removed = !axes || !axes->given;
    for (int j = 0; axes && j < axes->count; j++) removed |= axes->ints[j] == i || axes->ints[j] == i - rank;
    shape[i] = removed ? 1 : x->shape[from++];
  }
  return td_reshape(s, x, rank, shape);
}

const td_op *const td_family_shape[] = {&reshape,    &flatten,    &expand_dims, &squeeze, &broadcast_to,
                                        &atleast_1d, &atleast_2d, &atleast_3d,  NULL};
