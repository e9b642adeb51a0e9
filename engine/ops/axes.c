// The axes of a tensor in another order or direction. All of them are views but roll, which copies blocks.
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/index.h"
#include "engine/ops/map.h"

static int wrapped(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

// ---- orders: axis i of the result is axis axes[i] of x ----

typedef void order(const td_arg *args, int rank, int *axes); // of arguments that infer let through

static int ordered(td_infer *infer, order *find) {
  int axes[TD_RANK_MAX];
  find(infer->args, infer->in[0].rank, axes);
  infer->out[0] = infer->in[0];
  for (int i = 0; i < infer->in[0].rank; i++) infer->out[0].shape[i] = infer->in[0].shape[axes[i]];
  return TD_OK;
}

static td_tensor *ordered_view(td_context *context, td_tensor *in, const td_infer *infer, order *find) {
  int axes[TD_RANK_MAX];
  int64_t strides[TD_RANK_MAX] = {0};
  find(infer->args, in->rank, axes);
  for (int i = 0; i < in->rank; i++) strides[i] = in->strides[axes[i]];
  return td_tensor_view(context, in, in->rank, infer->out[0].shape, strides, 0);
}

static int ordered_vjp(td_rule *rule, order *find) {
  int axes[TD_RANK_MAX], back[TD_RANK_MAX], rank = rule->in_meta[0].rank;
  find(rule->args, rank, axes);
  for (int i = 0; i < rank; i++) back[axes[i]] = i;
  rule->din[0] = td_permute(&rule->scope, rule->cotangent[0], back);
  return TD_OK;
}

#define ORDER(name)                                                                                   \
  static td_tensor *name##_view(td_context *context, td_tensor *in, const td_infer *infer) {         \
    return ordered_view(context, in, infer, name##_order);                                            \
  }                                                                                                   \
  static int name##_vjp(td_rule *rule) { return ordered_vjp(rule, name##_order); }

// Axes in range, none of them twice.
static int check_axes(td_infer *infer, const td_arg *axes) {
  bool named[TD_RANK_MAX];
  return axes->given ? td_infer_axes(infer, axes, infer->in[0].rank, named) : TD_OK;
}

// ---- transpose ----

static void transpose_order(const td_arg *args, int rank, int *axes) {
  for (int i = 0; i < rank; i++) axes[i] = args[0].given ? wrapped(args[0].ints[i], rank) : rank - 1 - i;
}
ORDER(transpose)

static int transpose_infer(td_infer *infer) {
  const td_arg *given = &infer->args[0];
  int rank = infer->in[0].rank, code;
  if (given->given && given->count != rank) {
    code = td_infer_fail(infer, TD_ERROR_SHAPE, "%d ax%s named, the tensor has rank %d", given->count,
                         given->count == 1 ? "is is" : "es are", rank);
    if (given->count == 2)
      td_error_hint(infer->context, "swapaxes(%lld, %lld) swaps two axes", (long long)given->ints[0],
                    (long long)given->ints[1]);
    return code;
  }
  code = check_axes(infer, given);
  return code ? code : ordered(infer, transpose_order);
}

// vmap: the axis of the examples stays in front.
static int transpose_batch(td_batching *b) {
  int axes[TD_RANK_MAX], rank = b->meta[0].rank;
  if (rank == TD_RANK_MAX) return TD_BATCH_EACH;
  transpose_order(b->args, rank, axes);
  b->args[0] = (td_arg){.given = 1, .count = rank + 1};
  for (int i = 0; i < rank; i++) b->args[0].ints[i + 1] = axes[i] + 1;
  return TD_OK;
}

static const td_op transpose = {
    .name = "transpose",
    .alias = TD_ALIAS("permute", "permute_dims"),
    .params = {TD_X, {.name = "axes", .kind = TD_PARAM_AXES, .alias = TD_ALIAS("dims", "perm")}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = transpose_infer,
    .batch = transpose_batch,
    .view = transpose_view,
    .vjp = transpose_vjp,
    .doc = "The axes in another order: axis i of the result is axis axes[i] of x. All are reversed when axes is None, "
           "as in x.T.\n"
           "Gradient: the cotangent with the axes moved back.\n"
           "PyTorch's transpose(x, 0, 1), two axes exchanged, is swapaxes.",
    .example = "transpose(tensor([[1, 2], [3, 4]])).tolist()  # [[1, 3], [2, 4]]",
    .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL},
                          {"2,3,4", "axes=(1, 2, 0)", -2, 2, NULL},
                          {"2,3,4", "axes=(-1, 0, 1)", -2, 2, NULL},
                          {"-", NULL, -2, 2, NULL},
                          {"2,1,3,1,2,1,1,2", "axes=(7, 0, 6, 1, 5, 2, 4, 3)", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- swapaxes ----

static void swapaxes_order(const td_arg *args, int rank, int *axes) {
  int first = wrapped(args[0].i, rank), second = wrapped(args[1].i, rank);
  for (int i = 0; i < rank; i++) axes[i] = i == first ? second : i == second ? first : i;
}
ORDER(swapaxes)

static int swapaxes_infer(td_infer *infer) {
  int axis, code = td_infer_axis(infer, infer->args[0].i, infer->in[0].rank, &axis);
  if (!code) code = td_infer_axis(infer, infer->args[1].i, infer->in[0].rank, &axis);
  return code ? code : ordered(infer, swapaxes_order);
}

static const td_op swapaxes = {
    .name = "swapaxes",
    .alias = TD_ALIAS("swapdims"),
    .params = {TD_X,
               {.name = "axis0", .kind = TD_PARAM_AXIS, .required = true, .alias = TD_ALIAS("dim0")},
               {.name = "axis1", .kind = TD_PARAM_AXIS, .required = true, .alias = TD_ALIAS("dim1", "axis2")}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = swapaxes_infer,
    .batch = td_batch_axes,
    .view = swapaxes_view,
    .vjp = swapaxes_vjp,
    .doc = "Two axes exchanged.\nGradient: the cotangent with the same axes exchanged.",
    .example = "swapaxes(zeros((2, 3, 4)), 0, -1).shape  # (4, 3, 2)",
    .samples = TD_SAMPLES{{"2,3,4", "axis0=0, axis1=-1", -2, 2, NULL},
                          {"2,3", "axis0=1, axis1=1", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- moveaxis ----

static void moveaxis_order(const td_arg *args, int rank, int *axes) {
  bool moved[TD_RANK_MAX] = {false};
  for (int i = 0; i < rank; i++) axes[i] = -1;
  for (int i = 0; i < args[0].count; i++) {
    axes[wrapped(args[1].ints[i], rank)] = wrapped(args[0].ints[i], rank);
    moved[wrapped(args[0].ints[i], rank)] = true;
  }
  for (int i = 0, from = 0; i < rank; i++) {
    if (axes[i] >= 0) continue;
    while (moved[from]) from++;
    axes[i] = from++;
  }
}
ORDER(moveaxis)

static int moveaxis_infer(td_infer *infer) {
  const td_arg *args = infer->args;
  if (args[0].count != args[1].count)
    return td_infer_fail(infer, TD_ERROR_VALUE, "%d axes in source, %d in destination", args[0].count, args[1].count);
  int code = check_axes(infer, &args[0]);
  if (!code) code = check_axes(infer, &args[1]);
  return code ? code : ordered(infer, moveaxis_order);
}

static const td_op moveaxis = {
    .name = "moveaxis",
    .alias = TD_ALIAS("movedim"),
    .params = {TD_X,
               {.name = "source", .kind = TD_PARAM_AXES, .required = true},
               {.name = "destination", .kind = TD_PARAM_AXES, .required = true}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = moveaxis_infer,
    .batch = td_batch_axes,
    .view = moveaxis_view,
    .vjp = moveaxis_vjp,
    .doc = "The axes of source at the places of destination; the others keep their order.\n"
           "Gradient: the cotangent with the axes moved back.",
    .example = "moveaxis(zeros((2, 3, 4)), 0, -1).shape  # (3, 4, 2)",
    .samples = TD_SAMPLES{{"2,3,4", "source=0, destination=-1", -2, 2, NULL},
                          {"2,3,4,2", "source=(0, -1), destination=(-2, 0)", -2, 2, NULL},
                          {"2,3", "source=(), destination=()", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- flip ----

static td_tensor *flipped(td_context *context, td_tensor *in, const bool *named) {
  int64_t strides[TD_RANK_MAX] = {0}, offset = 0;
  for (int i = 0; i < in->rank; i++) {
    strides[i] = named[i] ? -in->strides[i] : in->strides[i];
    if (named[i] && in->size) offset += (in->shape[i] - 1) * in->strides[i];
  }
  return td_tensor_view(context, in, in->rank, in->shape, strides, offset);
}

static int flip_infer(td_infer *infer) {
  bool named[TD_RANK_MAX];
  infer->out[0] = infer->in[0];
  return td_infer_axes(infer, &infer->args[0], infer->in[0].rank, named);
}

static td_tensor *flip_view(td_context *context, td_tensor *in, const td_infer *infer) {
  const td_arg *axes = &infer->args[0];
  bool named[TD_RANK_MAX];
  for (int i = 0; i < in->rank; i++) {
    named[i] = !axes->given;
    for (int j = 0; j < axes->count; j++) named[i] |= wrapped(axes->ints[j], in->rank) == i;
  }
  return flipped(context, in, named);
}

static int same_op_vjp(td_rule *rule) { // of ops that undo themselves
  rule->din[0] = td_scope_apply(&rule->scope, rule->op, rule->args, 1, rule->cotangent[0]);
  return TD_OK;
}

static const td_op flip = {
    .name = "flip",
    .params = {TD_X, {.name = "axis", .kind = TD_PARAM_AXES, .alias = TD_ALIAS("dims")}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = flip_infer,
    .batch = td_batch_axes,
    .view = flip_view,
    .vjp = same_op_vjp,
    .doc = "The elements in reversed order along axis; along all axes when None. No copy.\n"
           "Gradient: the cotangent, reversed likewise.",
    .example = "flip(tensor([1, 2, 3])).tolist()  # [3, 2, 1]",
    .samples =
        TD_SAMPLES{
            {"2,3", NULL, -2, 2, NULL}, {"2,3", "axis=-1", -2, 2, NULL}, {"0,3", NULL, -2, 2, NULL}, TD_SAMPLES_END},
};

static int flip_of(td_infer *infer, int axis) {
  infer->out[0] = infer->in[0];
  if (infer->in[0].rank > axis) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "needs at least rank %d, the tensor has rank %d", axis + 1,
                       infer->in[0].rank);
}

#define FLIP(NAME, AXIS, WORDS, EXAMPLE)                                                                            \
  static int NAME##_infer(td_infer *infer) { return flip_of(infer, AXIS); }                                         \
  static td_tensor *NAME##_view(td_context *context, td_tensor *in, const td_infer *infer) {                        \
    const bool named[TD_RANK_MAX] = {[AXIS] = true};                                                                \
    (void)infer;                                                                                                    \
    return flipped(context, in, named);                                                                             \
  }                                                                                                                 \
  static const td_op NAME = {                                                                                       \
      .name = #NAME,                                                                                                \
      .params = {TD_X},                                                                                             \
      .kind = TD_KIND_VIEW,                                                                                         \
      .flags = TD_LINEAR,                                                                                           \
      .method = true,                                                                                               \
      .infer = NAME##_infer,                                                                                        \
      .view = NAME##_view,                                                                                          \
      .vjp = same_op_vjp,                                                                                           \
      .doc = WORDS " in reversed order. No copy.\nGradient: the cotangent, reversed likewise.",                     \
      .example = EXAMPLE,                                                                                           \
      .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL}, {"2,3,2", NULL, -2, 2, NULL}, TD_SAMPLES_END},              \
  };
FLIP(flipud, 0, "The rows, along axis 0,", "flipud(tensor([[1, 2], [3, 4]])).tolist()  # [[3, 4], [1, 2]]")
FLIP(fliplr, 1, "The columns, along axis 1,", "fliplr(tensor([[1, 2], [3, 4]])).tolist()  # [[2, 1], [4, 3]]")

// ---- rot90 ----

static int rot90_turns(const td_arg *args) { return (int)(((args[0].i % 4) + 4) % 4); }

static int rot90_infer(td_infer *infer) {
  const td_arg *axes = &infer->args[1];
  int rank = infer->in[0].rank;
  if (axes->count != 2) return td_infer_fail(infer, TD_ERROR_VALUE, "needs two axes, %d are named", axes->count);
  int code = check_axes(infer, axes), first = wrapped(axes->ints[0], rank), second = wrapped(axes->ints[1], rank);
  if (code) return code;
  infer->out[0] = infer->in[0];
  if (rot90_turns(infer->args) % 2 == 0) return TD_OK;
  infer->out[0].shape[first] = infer->in[0].shape[second];
  infer->out[0].shape[second] = infer->in[0].shape[first];
  return TD_OK;
}

static td_tensor *rot90_view(td_context *context, td_tensor *in, const td_infer *infer) {
  int turns = rot90_turns(infer->args);
  int axes[2] = {wrapped(infer->args[1].ints[0], in->rank), wrapped(infer->args[1].ints[1], in->rank)};
  int64_t strides[TD_RANK_MAX] = {0}, offset = 0;
  for (int i = 0; i < in->rank; i++) strides[i] = in->strides[i];
  for (int k = 0; k < 2; k++) { // result's axes[k] runs along from, backwards or not
    int from = turns % 2 ? axes[1 - k] : axes[k];
    bool backwards = turns == 2 || (turns == 1 && k == 0) || (turns == 3 && k == 1);
    strides[axes[k]] = backwards ? -in->strides[from] : in->strides[from];
    if (backwards && in->size) offset += (in->shape[from] - 1) * in->strides[from];
  }
  return td_tensor_view(context, in, in->rank, infer->out[0].shape, strides, offset);
}

static int rot90_vjp(td_rule *rule) {
  const td_arg args[] = {TD_INT_ARG(4 - rot90_turns(rule->args)), rule->args[1]};
  rule->din[0] = td_scope_apply(&rule->scope, rule->op, args, 1, rule->cotangent[0]);
  return TD_OK;
}

static const td_op rot90 = {
    .name = "rot90",
    .params = {TD_X,
               {.name = "k", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(1)},
               {.name = "axes",
                .kind = TD_PARAM_AXES,
                .fallback = {.given = 1, .count = 2, .ints = {0, 1}},
                .alias = TD_ALIAS("dims")}},
    .kind = TD_KIND_VIEW,
    .flags = TD_LINEAR,
    .method = true,
    .infer = rot90_infer,
    .batch = td_batch_axes,
    .view = rot90_view,
    .vjp = rot90_vjp,
    .doc = "x turned by k quarters in the plane of two axes, from the first toward the second. No copy.\n"
           "Gradient: the cotangent, turned back.",
    .example = "rot90(tensor([[1, 2], [3, 4]])).tolist()  # [[2, 4], [1, 3]]",
    .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL},
                          {"2,3", "k=2", -2, 2, NULL},
                          {"2,3", "k=-1", -2, 2, NULL},
                          {"2,3,4", "k=3, axes=(-1, 0)", -2, 2, NULL},
                          {"2,3", "k=0", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- roll ----

// How far each axis moves, 0 to its size - 1. Without axes the elements are one line: shift is that of all.
static void roll_shifts(const td_arg *args, int rank, const int64_t *shape, int64_t *shifts) {
  const td_arg *shift = &args[0], *axes = &args[1];
  int count = axes->count > shift->count ? axes->count : shift->count;
  for (int i = 0; i < rank; i++) shifts[i] = 0;
  for (int i = 0; i < count; i++) {
    int axis = axes->given ? wrapped(axes->ints[axes->count == 1 ? 0 : i], rank) : 0;
    int64_t size = shape[axis];
    if (size) shifts[axis] = (shifts[axis] + shift->ints[shift->count == 1 ? 0 : i] % size + size) % size;
  }
}

static int roll_infer(td_infer *infer) {
  const td_arg *shift = &infer->args[0], *axes = &infer->args[1];
  infer->out[0] = infer->in[0];
  if (!axes->given && shift->count == 1) return TD_OK;
  if (!axes->given)
    return td_infer_fail(infer, TD_ERROR_VALUE, "shift has %d numbers, but no axis is named", shift->count);
  if (shift->count != axes->count && shift->count != 1 && axes->count != 1)
    return td_infer_fail(infer, TD_ERROR_VALUE, "shift has %d numbers for %d axes", shift->count, axes->count);
  for (int i = 0; i < axes->count; i++) {
    int axis, code = td_infer_axis(infer, axes->ints[i], infer->in[0].rank, &axis);
    if (code) return code;
  }
  return TD_OK;
}

// Every part of x that stays together: along each axis what moves on, and what comes round from the end.
static void roll_parts(const td_call *call, const td_view *in, const td_view *out, const int64_t *shifts) {
  int64_t bytes = td_dtype_bytes(in->dtype);
  for (unsigned part = 0; part < 1u << in->rank; part++) {
    int64_t size[TD_RANK_MAX], from = 0, to = 0;
    bool empty = false;
    for (int i = 0; i < in->rank; i++) {
      bool round = part >> i & 1;
      size[i] = round ? shifts[i] : in->shape[i] - shifts[i];
      if (round) from += (in->shape[i] - shifts[i]) * in->strides[i];
      else to += shifts[i] * out->strides[i];
      empty |= size[i] == 0;
    }
    if (!empty)
      td_elements_move(call->context->pool, out->data + to * bytes, out->strides, in->data + from * bytes, in->strides,
                       (int)bytes, in->rank, size);
  }
}

static int roll_kernel(const td_call *call) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  int64_t shifts[TD_RANK_MAX], bytes = td_dtype_bytes(out->dtype), size = out->size;
  if (!size) return TD_OK;
  if (call->args[1].given) {
    roll_shifts(call->args, in->rank, in->shape, shifts);
    roll_parts(call, in, out, shifts);
    return TD_OK;
  }
  td_view line = {
      .data = call->workspace, .size = size, .dtype = in->dtype, .rank = 1, .shape = {size}, .strides = {1}};
  td_view result = line;
  result.data = out->data;
  if (td_view_is_flat(in)) line.data = in->data;
  else td_elements_copy(call->context->pool, line.data, in->data, (int)bytes, in->rank, in->shape, in->strides);
  roll_shifts(call->args, 1, &size, shifts);
  roll_parts(call, &line, &result, shifts);
  return TD_OK;
}

static int64_t roll_workspace(const td_call *call) {
  const td_view *in = &call->in[0];
  return call->args[1].given || td_view_is_flat(in) ? 0 : in->size * td_dtype_bytes(in->dtype);
}

static int roll_vjp(td_rule *rule) {
  const td_meta *in = &rule->in_meta[0];
  int64_t shifts[TD_RANK_MAX], size = td_shape_size(in->rank, in->shape);
  bool line = !rule->args[1].given;
  int rank = line ? 1 : in->rank;
  roll_shifts(rule->args, rank, line ? &size : in->shape, shifts);
  td_arg args[2] = {{.given = 1, .count = rank}, {.given = !line, .count = line ? 0 : rank}};
  for (int i = 0; i < rank; i++) {
    args[0].ints[i] = -shifts[i];
    args[1].ints[i] = i;
  }
  rule->din[0] = rank ? td_scope_apply(&rule->scope, rule->op, args, 1, rule->cotangent[0]) : rule->cotangent[0];
  return TD_OK;
}

static int roll_batch(td_batching *b) { // a line of all elements is each example's own
  return b->args[1].given ? td_batch_axes(b) : TD_BATCH_EACH;
}

static const td_op roll = {
    .name = "roll",
    .params = {TD_X,
               {.name = "shift", .kind = TD_PARAM_INTS, .required = true, .alias = TD_ALIAS("shifts")},
               {.name = "axis", .kind = TD_PARAM_AXES, .alias = TD_ALIAS("dims")}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = roll_infer,
    .batch = roll_batch,
    .kernel = roll_kernel,
    .workspace = roll_workspace,
    .vjp = roll_vjp,
    .doc = "The elements moved on by shift along axis; what leaves at the end comes in at the start. A shift for each "
           "axis, or one for all; without an axis the elements move in row-major order.\n"
           "Gradient: the cotangent, moved back.",
    .example = "roll(tensor([1, 2, 3, 4]), 1).tolist()  # [4, 1, 2, 3]",
    .samples = TD_SAMPLES{{"2,3", "shift=1", -2, 2, NULL},
                          {"2,3", "shift=-7", -2, 2, NULL},
                          {"4,3", "shift=1, axis=0", -2, 2, NULL},
                          {"4,3,2", "shift=(1, -1), axis=(0, -1)", -2, 2, NULL},
                          {"4,3", "shift=2, axis=(0, 1)", -2, 2, NULL},
                          {"4,3", "shift=(1, 5), axis=(0, 0)", -2, 2, NULL},
                          {"0,3", "shift=1, axis=1", -2, 2, NULL},
                          {"-", "shift=1", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- builders ----

td_tensor *td_permute(td_scope *s, td_tensor *x, const int *axes) {
  td_arg args[1] = {{.given = 1, .count = x ? x->rank : 0}};
  for (int i = 0; i < args[0].count; i++) args[0].ints[i] = axes[i];
  return td_scope_apply(s, &transpose, args, 1, x);
}

td_tensor *td_swap_last(td_scope *s, td_tensor *x) {
  const td_arg args[] = {TD_INT_ARG(-1), TD_INT_ARG(-2)};
  return td_scope_apply(s, &swapaxes, args, 1, x);
}

td_tensor *td_flip(td_scope *s, td_tensor *x, const td_arg *axes) { return td_scope_apply(s, &flip, axes, 1, x); }

const td_op *const td_family_axes[] = {&transpose, &swapaxes, &moveaxis, &flip, &flipud, &fliplr, &rot90, &roll, NULL};
