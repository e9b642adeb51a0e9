// Putting tensors together: each input, brought to the result's rank, fills its part of one axis.
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

static const td_op concat, stack, vstack, hstack, dstack; // their rules ask which one it is

// ---- inputs at the result's rank ----

static void insert_one(td_view *v, int axis) { // an axis of size 1
  size_t behind = (size_t)(v->rank - axis) * sizeof *v->shape;
  memmove(v->shape + axis + 1, v->shape + axis, behind);
  memmove(v->strides + axis + 1, v->strides + axis, behind);
  v->shape[axis] = 1;
  v->strides[axis] = 0;
  v->rank++;
}

static void raise_rank(const td_op *op, int axis, td_view *v) {
  if (op == &stack) insert_one(v, axis);
  else if (op == &hstack && !v->rank) insert_one(v, 0);
  else if (op == &vstack)
    while (v->rank < 2) insert_one(v, 0);
  else if (op == &dstack)
    while (v->rank < 3) insert_one(v, v->rank < 2 ? 0 : v->rank);
}

static void raised_meta(const td_infer *infer, int axis, int i, td_view *v) { // the shape only
  const td_meta *in = &infer->in[i];
  *v = (td_view){.rank = in->rank, .dtype = in->dtype};
  memcpy(v->shape, in->shape, in->rank * sizeof *in->shape);
  raise_rank(infer->op, axis, v);
}

static int joined_axis(const td_op *op, const td_arg *args, int rank) { // rank of the result
  if (op == &concat || op == &stack) return (int)(args[0].i < 0 ? args[0].i + rank : args[0].i);
  return op == &vstack ? 0 : op == &dstack ? 2 : rank > 1;
}

static int check_axis(td_infer *infer) {
  const td_meta *first = &infer->in[0];
  int axis;
  if (!infer->in_count) return td_infer_fail(infer, TD_ERROR_VALUE, "needs at least one tensor");
  if (infer->op != &concat && infer->op != &stack) return TD_OK;
  if (infer->op == &concat && !first->rank) {
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "0-d tensors have no axis to join along");
    td_error_hint(infer->context, "stack(tensors) makes a new axis");
    return code;
  }
  if (infer->op == &stack && first->rank == TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is the most that tensors can have", TD_RANK_MAX);
  return td_infer_axis(infer, infer->args[0].i, first->rank + (infer->op == &stack), &axis);
}

// The one axis along which the sizes of concat's inputs differ, which is where they fit; -1: there is no such axis.
static int fitting_axis(const td_infer *infer) {
  const td_meta *first = &infer->in[0];
  int found = -1;
  for (int d = 0; d < first->rank; d++)
    for (int i = 1; i < infer->in_count; i++) {
      if (infer->in[i].rank != first->rank) return -1;
      if (infer->in[i].shape[d] == first->shape[d]) continue;
      if (found >= 0 && found != d) return -1;
      found = d;
    }
  return found;
}

static int refuse_size(td_infer *infer, int i, int d, int64_t wanted, int64_t given) {
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d differs: tensor 0 has %lld, tensor %d has %lld", d,
                           (long long)wanted, i, (long long)given);
  int fitting = infer->op == &concat ? fitting_axis(infer) : -1;
  if (fitting < 0) return code;
  bool last = fitting == infer->in[0].rank - 1;
  td_error_hint(infer->context, "they fit along axis=%d%s", last ? -1 : fitting,
                last ? ", which is where Keras joins unless told otherwise" : "");
  return code;
}

static int add_input(td_infer *infer, int i, int axis, const td_view *in) {
  td_meta *out = &infer->out[0];
  out->dtype = td_dtype_promote(out->dtype, in->dtype);
  if (in->rank != out->rank)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "ranks differ: tensor 0 has %d, tensor %d has %d", infer->in[0].rank, i,
                         infer->in[i].rank);
  for (int d = 0; d < in->rank; d++)
    if (in->shape[d] != out->shape[d] && d != axis)
      return refuse_size(infer, i, infer->op == &stack && d > axis ? d - 1 : d, out->shape[d], in->shape[d]);
  if (__builtin_add_overflow(out->shape[axis], in->shape[axis], &out->shape[axis]))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d becomes too long", axis);
  return TD_OK;
}

static int join_infer(td_infer *infer) {
  const td_op *op = infer->op;
  td_meta *out = &infer->out[0];
  td_view in;
  int code = check_axis(infer);
  if (code) return code;
  bool keeps = op == &concat || op == &stack; // the ranks of the inputs
  int axis = keeps ? joined_axis(op, infer->args, infer->in[0].rank + (op == &stack)) : 0;
  raised_meta(infer, axis, 0, &in);
  if (!keeps) axis = joined_axis(op, infer->args, in.rank);
  *out = (td_meta){.dtype = in.dtype, .rank = in.rank};
  memcpy(out->shape, in.shape, sizeof out->shape);
  for (int i = 1; i < infer->in_count && !code; i++) {
    if (keeps && infer->in[i].rank != infer->in[0].rank)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "ranks differ: tensor 0 has %d, tensor %d has %d", infer->in[0].rank,
                           i, infer->in[i].rank);
    raised_meta(infer, axis, i, &in);
    code = add_input(infer, i, axis, &in);
  }
  return code;
}

// ---- filling ----

typedef struct placing { // rows along the last axis, cast on their way
  char *out;
  const td_view *in, *to; // to: where they go, of in's shape
} placing;

static void place_rows(void *argument, int64_t first, int64_t last) {
  const placing *p = argument;
  const td_view *in = p->in, *to = p->to;
  int axis = in->rank - 1, from_bytes = td_dtype_bytes(in->dtype), to_bytes = td_dtype_bytes(to->dtype);
  for (int64_t row = first; row < last; row++) {
    int64_t rest = row, from = 0, at = 0;
    for (int d = axis; d-- > 0; rest /= in->shape[d]) {
      from += rest % in->shape[d] * in->strides[d];
      at += rest % in->shape[d] * to->strides[d];
    }
    td_cast_run(p->out + at * to_bytes, to->dtype, in->data + from * from_bytes, in->dtype,
                in->strides[axis] * from_bytes, in->shape[axis], false);
  }
}

static void place(td_pool *pool, char *out, const td_view *in, const td_view *to) {
  if (!in->size) return;
  if (in->dtype == to->dtype) {
    td_elements_move(pool, out, to->strides, in->data, in->strides, td_dtype_bytes(in->dtype), in->rank, in->shape);
    return;
  }
  placing p = {out, in, to};
  int64_t length = in->shape[in->rank - 1];
  td_ranges_run(pool, in->size / length, length, place_rows, &p);
}

static int join_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  int axis = joined_axis(call->op, call->args, out->rank);
  int64_t filled = 0;
  for (int i = 0; i < call->in_count; i++) {
    td_view in = call->in[i];
    raise_rank(call->op, axis, &in);
    place(call->context->pool, out->data + filled * out->strides[axis] * td_dtype_bytes(out->dtype), &in, out);
    filled += in.shape[axis];
  }
  return TD_OK;
}

static int join_vjp(td_rule *rule) {
  const td_meta *out = &rule->out_meta[0];
  int axis = joined_axis(rule->op, rule->args, out->rank);
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX];
  for (int i = 0; i < out->rank; i++) step[i] = 1;
  for (int i = 0; i < rule->in_count; i++) {
    const td_tensor *in = rule->in[i];
    td_view part;
    td_view_of(&part, in);
    raise_rank(rule->op, axis, &part);
    td_tensor *c = rule->needs[i] ? td_slice_view(&rule->scope, rule->cotangent[0], start, step, part.shape) : NULL;
    if (rule->needs[i]) rule->din[i] = td_reshape(&rule->scope, c, in->rank, in->shape);
    start[axis] += part.shape[axis];
  }
  return TD_OK;
}

// ---- rows ----

#define JOIN(NAME, ALIAS, PARAMS, BATCH, JOINED, WORDS, EXAMPLE, SAMPLES)                        \
  static const td_op NAME = {                                                     \
      .name = #NAME,                                                              \
      .alias = ALIAS,                                                             \
      .params = {TENSORS_PARAM, PARAMS},                                          \
      .kind = TD_KIND_INDEX,                                                      \
      .flags = TD_LINEAR | TD_HALF,                                               \
      .join = JOINED,                                                             \
      .infer = join_infer,                                                        \
      .batch = BATCH,                                                             \
      .kernel = join_kernel,                                                      \
      .vjp = join_vjp,                                                            \
      .saves = TD_SAVES_INPUTS, /* their sizes */                                 \
      .doc = WORDS "\nGradient: each one's part of the cotangent.",               \
      .example = EXAMPLE,                                                         \
      .samples = SAMPLES,                                                         \
  };
JOIN(concat, TD_ALIAS("cat", "concatenate"), AXIS_PARAM, td_batch_axes, "concat",
     "The tensors behind each other along an axis that they have; the other axes must agree.",
     "concat([tensor([1, 2]), tensor([3])]).tolist()  # [1, 2, 3]",
     (TD_SAMPLES{{"2,3; 1,3", NULL, -2, 2, NULL}, {"2,3; 2,1; 2,0", "axis=-1", -2, 2, NULL}, TD_SAMPLES_END}))
JOIN(stack, NULL, AXIS_PARAM, td_batch_result_axes, "concat",
     "Tensors of one shape behind each other along a new axis.",
     "stack([tensor([1, 2]), tensor([3, 4])], axis=1).tolist()  # [[1, 3], [2, 4]]",
     (TD_SAMPLES{{"2,3; 2,3", NULL, -2, 2, NULL},
                 {"2; 2; 2", "axis=-1", -2, 2, NULL},
                 {"2,3,2; 2,3,2", "axis=1", -2, 2, NULL},
                 {"-; -", NULL, -2, 2, NULL},
                 TD_SAMPLES_END}))
JOIN(vstack, TD_ALIAS("row_stack"), {.kind = TD_PARAM_END}, NULL, "vstack",
     "The tensors behind each other along axis 0; one of rank 1 is a row.",
     "vstack([tensor([1, 2]), tensor([3, 4])]).tolist()  # [[1, 2], [3, 4]]",
     (TD_SAMPLES{{"2,3; 3", NULL, -2, 2, NULL}, {"-; 1", NULL, -2, 2, NULL}, TD_SAMPLES_END}))
JOIN(hstack, NULL, {.kind = TD_PARAM_END}, NULL, "hstack",
     "The tensors behind each other along axis 1; those of rank 1, and numbers, along their one axis.",
     "hstack([tensor([[1], [2]]), tensor([[3], [4]])]).tolist()  # [[1, 3], [2, 4]]",
     (TD_SAMPLES{{"2,3; 2,1", NULL, -2, 2, NULL}, {"3; -; 2", NULL, -2, 2, NULL}, TD_SAMPLES_END}))
JOIN(dstack, NULL, {.kind = TD_PARAM_END}, NULL, "dstack",
     "The tensors behind each other along axis 2; matrices get one of size 1, and one of rank 1 is a row of them.",
     "dstack([tensor([1, 2]), tensor([3, 4])]).tolist()  # [[[1, 3], [2, 4]]]",
     (TD_SAMPLES{{"2,3; 2,3", NULL, -2, 2, NULL}, {"3; 1,3,2", NULL, -2, 2, NULL}, TD_SAMPLES_END}))

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

const td_op *const td_family_join[] = {&concat, &stack, &vstack, &hstack, &dstack, NULL};
