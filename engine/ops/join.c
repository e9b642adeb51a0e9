// Putting tensors together, and copies with a frame or a triangle of constants.
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/index.h"
#include "engine/ops/map.h"

#define TENSORS_PARAM \
  { .name = "tensors", .kind = TD_PARAM_TENSORS }
#define AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(0) }

// ---- concat, stack ----

static int join_infer(td_infer *infer, int *axis, bool stacks) {
  const td_meta *first = &infer->in[0];
  td_meta *out = &infer->out[0];
  if (!infer->in_count) return td_infer_fail(infer, TD_ERROR_VALUE, "needs at least one tensor");
  if (!stacks && !first->rank) {
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "0-d tensors have no axis to join along");
    td_error_hint(infer->context, "stack(tensors) makes a new axis");
    return code;
  }
  int code = td_infer_axis(infer, infer->args[0].i, first->rank + stacks, axis);
  if (code) return code;
  *out = *first;
  for (int i = 1; i < infer->in_count; i++) {
    const td_meta *in = &infer->in[i];
    out->dtype = td_dtype_promote(out->dtype, in->dtype);
    if (in->rank != first->rank)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "ranks differ: tensor 0 has %d, tensor %d has %d", first->rank, i,
                           in->rank);
    for (int d = 0; d < in->rank; d++)
      if (in->shape[d] != first->shape[d] && (stacks || d != *axis))
        return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d differs: tensor 0 has %lld, tensor %d has %lld", d,
                             (long long)first->shape[d], i, (long long)in->shape[d]);
  }
  return TD_OK;
}

static int concat_infer(td_infer *infer) {
  int axis = 0, code = join_infer(infer, &axis, false);
  for (int i = 1; !code && i < infer->in_count; i++)
    if (__builtin_add_overflow(infer->out[0].shape[axis], infer->in[i].shape[axis], &infer->out[0].shape[axis]))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d becomes too long", axis);
  return code;
}

static int stack_infer(td_infer *infer) {
  td_meta *out = &infer->out[0];
  int axis = 0, code = join_infer(infer, &axis, true);
  if (code) return code;
  if (out->rank == TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is the most that tensors can have", TD_RANK_MAX);
  for (int i = out->rank; i > axis; i--) out->shape[i] = out->shape[i - 1];
  out->shape[axis] = infer->in_count;
  out->rank++;
  return TD_OK;
}

// Each input fills, in every run of the result that begins at an axis before the joined one, its part behind the
// last's.
static int join_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  int axis = (int)(call->args[0].i < 0 ? call->args[0].i + out->rank : call->args[0].i);
  int64_t bytes = td_dtype_bytes(out->dtype), outer = 1, run = bytes, filled = 0;
  for (int i = 0; i < out->rank; i++) *(i < axis ? &outer : &run) *= out->shape[i];
  for (int i = 0; i < call->in_count && outer; i++) {
    td_flat flat;
    int code = td_flat_open(call, &call->in[i], out->dtype, &flat);
    if (code) return code;
    int64_t part = call->in[i].size / outer * bytes;
    for (int64_t o = 0; o < outer && part; o++)
      memcpy(out->data + o * run + filled, flat.data + o * part, (size_t)part);
    filled += part;
    td_flat_close(&flat);
  }
  return TD_OK;
}

static int concat_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  int rank = rule->out_meta[0].rank, axis = (int)(rule->args[0].i < 0 ? rule->args[0].i + rank : rule->args[0].i);
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX];
  for (int i = 0; i < rank; i++) step[i] = 1;
  for (int i = 0; i < rule->in_count; i++) {
    const td_tensor *in = rule->in[i];
    if (rule->needs[i]) rule->din[i] = td_slice_view(&rule->scope, c, start, step, in->shape);
    start[axis] += in->shape[axis];
  }
  return TD_OK;
}

static int stack_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  const td_meta *out = &rule->out_meta[0];
  int axis = (int)(rule->args[0].i < 0 ? rule->args[0].i + out->rank : rule->args[0].i);
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX], size[TD_RANK_MAX];
  for (int i = 0; i < out->rank; i++) {
    step[i] = 1;
    size[i] = i == axis ? 1 : out->shape[i];
  }
  for (int i = 0; i < rule->in_count; i++) {
    if (!rule->needs[i]) continue;
    start[axis] = i;
    rule->din[i] = td_reshape(&rule->scope, td_slice_view(&rule->scope, c, start, step, size), rule->in_meta[i].rank,
                              rule->in_meta[i].shape);
  }
  return TD_OK;
}

static const td_op concat = {
    .name = "concat",
    .params = {TENSORS_PARAM, AXIS_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .infer = concat_infer,
    .batch = td_batch_axes,
    .kernel = join_kernel,
    .vjp = concat_vjp,
    .saves = TD_SAVES_INPUTS, // their sizes
    .doc = "The tensors behind each other along an axis that they have; the other axes must agree.\n"
           "Gradient: each one's part of the cotangent.",
    .example = "concat([tensor([1, 2]), tensor([3])]).tolist()  # [1, 2, 3]",
    .samples = TD_SAMPLES{{"2,3; 1,3", NULL, -2, 2, NULL}, {"2,3; 2,1; 2,0", "axis=-1", -2, 2, NULL}, TD_SAMPLES_END},
};

static const td_op stack = {
    .name = "stack",
    .params = {TENSORS_PARAM, AXIS_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .infer = stack_infer,
    .batch = td_batch_result_axes,
    .kernel = join_kernel,
    .vjp = stack_vjp,
    .doc = "Tensors of one shape behind each other along a new axis.\nGradient: each one's part of the cotangent.",
    .example = "stack([tensor([1, 2]), tensor([3, 4])], axis=1).tolist()  # [[1, 3], [2, 4]]",
    .samples = TD_SAMPLES{{"2,3; 2,3", NULL, -2, 2, NULL},
                          {"2; 2; 2", "axis=-1", -2, 2, NULL},
                          {"-; -", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

td_tensor *td_concat(td_scope *s, td_tensor *a, td_tensor *b, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, &concat, args, 2, a, b);
}

td_tensor *td_concat_all(td_scope *s, td_tensor *const *parts, int count, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  td_tensor *out[TD_OUTPUT_MAX];
  for (int i = 0; i < count; i++) s->failed |= !parts[i];
  if (s->failed || td_op_apply(s->context, &concat, parts, count, args, out)) {
    s->failed = true;
    return NULL;
  }
  return td_scope_own(s, out[0]);
}

// ---- pad_constant ----

static int pad_infer(td_infer *infer) {
  const td_arg *before = &infer->args[0], *after = &infer->args[1];
  const td_meta *in = &infer->in[0];
  infer->out[0] = *in;
  if (before->count != in->rank || after->count != in->rank)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "%d sizes before and %d after for rank %d", before->count, after->count,
                         in->rank);
  for (int i = 0; i < in->rank; i++) {
    int64_t *size = &infer->out[0].shape[i];
    if (before->ints[i] < 0 || after->ints[i] < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "axis %d: sizes %lld and %lld must not be negative", i,
                           (long long)before->ints[i], (long long)after->ints[i]);
    if (__builtin_add_overflow(*size, before->ints[i], size) || __builtin_add_overflow(*size, after->ints[i], size))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d becomes too long", i);
  }
  return TD_OK;
}

static int pad_kernel(const td_call *call) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  int64_t offset = 0;
  td_cast_run(out->data, out->dtype, &call->args[2].f, TD_FLOAT64, 0, out->size, false);
  for (int i = 0; i < out->rank; i++) offset += call->args[0].ints[i] * out->strides[i];
  if (in->size)
    td_elements_place(out->data + offset * td_dtype_bytes(out->dtype), out->strides, in->data, in->strides,
                      td_dtype_bytes(in->dtype), in->rank, in->shape);
  return TD_OK;
}

static int pad_vjp(td_rule *rule) {
  const td_meta *in = &rule->in_meta[0];
  int64_t step[TD_RANK_MAX];
  for (int i = 0; i < in->rank; i++) step[i] = 1;
  rule->din[0] = td_slice_view(&rule->scope, rule->cotangent[0], rule->args[0].ints, step, in->shape);
  return TD_OK;
}

static const td_op pad_constant = {
    .name = "pad_constant",
    .params = {TD_X,
               {.name = "before", .kind = TD_PARAM_INTS, .required = true},
               {.name = "after", .kind = TD_PARAM_INTS, .required = true},
               {.name = "value", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0)}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .infer = pad_infer,
    .kernel = pad_kernel,
    .vjp = pad_vjp,
    .doc = "x in a frame of value: before[i] and after[i] elements along axis i.\nGradient: the cotangent without the "
           "frame.",
    .example = "pad_constant(tensor([1, 2]), (1,), (2,), 7).tolist()  # [7, 1, 2, 7, 7]",
    .samples = TD_SAMPLES{{"2,3", "before=(1, 0), after=(0, 2), value=5.0", -2, 2, NULL},
                          {"-", "before=(), after=()", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- tril, triu ----

static int triangle_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  if (infer->in[0].rank >= 2) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "needs matrices, the tensor has rank %d", infer->in[0].rank);
}

static int triangle_kernel(const td_call *call, bool upper) {
  const td_view *in = &call->in[0], *out = &call->out[0];
  int64_t bytes = td_dtype_bytes(out->dtype), rows = out->shape[out->rank - 2], columns = out->shape[out->rank - 1];
  double diagonal = (double)call->args[0].i; // may be any int
  td_elements_copy(call->context->pool, out->data, in->data, (int)bytes, in->rank, in->shape, in->strides);
  for (int64_t r = 0; out->size && r < out->size / columns; r++) {
    double border = (double)(r % rows) + diagonal + (upper ? 0 : 1); // first column above the diagonal, or on it
    int64_t at = border < 0 ? 0 : border > (double)columns ? columns : (int64_t)border;
    char *row = out->data + r * columns * bytes;
    if (upper) memset(row, 0, (size_t)(at * bytes));
    else memset(row + at * bytes, 0, (size_t)((columns - at) * bytes));
  }
  return TD_OK;
}

static int tril_kernel(const td_call *call) { return triangle_kernel(call, false); }
static int triu_kernel(const td_call *call) { return triangle_kernel(call, true); }

static int triangle_vjp(td_rule *rule) {
  rule->din[0] = td_scope_apply(&rule->scope, rule->op, rule->args, 1, rule->cotangent[0]);
  return TD_OK;
}

#define TRIANGLE(NAME, WORDS, EXAMPLE)                                                       \
  static const td_op NAME = {                                                                \
      .name = #NAME,                                                                         \
      .params = {TD_X, {.name = "k", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0)}},  \
      .kind = TD_KIND_INDEX,                                                                 \
      .flags = TD_LINEAR | TD_HALF,                                                          \
      .method = true,                                                                        \
      .infer = triangle_infer,                                                               \
      .kernel = NAME##_kernel,                                                               \
      .vjp = triangle_vjp,                                                                   \
      .doc = "The matrices of the last two axes with zeros " WORDS " their k-th diagonal.\n" \
             "Gradient: the same triangle of the cotangent.",                                \
      .example = EXAMPLE,                                                                    \
      .samples = TD_SAMPLES{{"3,4", NULL, -2, 2, NULL},                                      \
                            {"2,3,3", "k=1", -2, 2, NULL},                                   \
                            {"4,3", "k=-2", -2, 2, NULL},                                    \
                            TD_SAMPLES_END},                                                 \
  };
TRIANGLE(tril, "above", "tril(tensor([[1, 2], [3, 4]])).tolist()  # [[1, 0], [3, 4]]")
TRIANGLE(triu, "below", "triu(tensor([[1, 2], [3, 4]])).tolist()  # [[1, 2], [0, 4]]")

td_tensor *td_triangle(td_scope *s, td_tensor *x, bool upper, int64_t k) {
  return td_scope_apply(s, upper ? &triu : &tril, (const td_arg[]){TD_INT_ARG(k)}, 1, x);
}

const td_op *const td_family_join[] = {&concat, &stack, &pad_constant, &tril, &triu, NULL};
