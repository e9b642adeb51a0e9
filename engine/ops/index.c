// Advanced indexing by integer tensors: x[i, j], its adjoint, x[i, j] = v, take, gather, one_hot. Indices that are
// repeated add in gradients; the last of repeated writes stays.
#include <string.h>

#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/ops/gather.h"
#include "engine/ops/map.h"

#define TENSORS_PARAM \
  { .name = "tensors", .kind = TD_PARAM_TENSORS }
#define AXES_PARAM \
  { .name = "axes", .kind = TD_PARAM_INTS, .required = true }

// Runs an op on a list: first tensors, then the index tensors of a rule.
static td_tensor *apply_list(td_scope *s, const td_op *op, const td_arg *args, int count, td_tensor *const *list) {
  td_tensor *out[TD_OUTPUT_MAX];
  bool missing = s->failed;
  for (int i = 0; i < count; i++) missing |= !list[i];
  if (!missing && td_op_apply(s->context, op, list, count, args, out) == TD_OK) return td_scope_own(s, out[0]);
  s->failed = true;
  return NULL;
}

// ---- index ----

static int index_infer(td_infer *infer) {
  td_gather_plan plan;
  int code = td_gather_plan_make(infer, &infer->in[0], 1, &infer->args[0], &plan);
  if (!code) td_gather_shape(&plan, &infer->in[0], infer->in[0].dtype, &infer->out[0]);
  return code;
}

static int index_kernel(const td_call *call) {
  td_gather_walk walk;
  int code = td_gather_open(call, &call->in[0], 1, &call->args[0], &walk);
  if (code) return code;
  td_gather_read(call->context->pool, &walk, call->out[0].data, call->in[0].data);
  td_gather_close(&walk);
  return TD_OK;
}

static td_tensor *index_back(td_rule *rule, td_tensor *c, int first, const td_meta *x, const td_arg *axes);
static td_tensor *index_with(td_rule *rule, td_tensor *x, int first, const td_arg *axes);

static int index_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = index_back(rule, rule->cotangent[0], 1, &rule->in_meta[0], &rule->args[0]);
  return TD_OK;
}

static const td_op index_op = {
    .name = "index",
    .params = {TENSORS_PARAM, AXES_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_HIDDEN | TD_HALF,
    .infer = index_infer,
    .kernel = index_kernel,
    .vjp = index_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "x[i, j, ...] for integer tensors that broadcast to one shape: tensors are x, i, j, ..., axes the axes of x "
           "that they "
           "index.\nTheir shape stands where the axes were when these are neighbours, else in front, as in NumPy. "
           "Negative "
           "indices count from the end.\nGradient: the cotangent, added up at the places that were read.",
    .samples = TD_SAMPLES{{"4,3; 2", "axes=(0,)", -3, 2, "float64; int64"},
                          {"4,3; 5; 5", "axes=(0, 1)", -3, 2, "float64; int64; int64"},
                          {"3,4,5; 2,1; 3", "axes=(0, 2)", -3, 2, "float64; int64; int32"},
                          {"3,4,5; 2", "axes=(1,)", -3, 2, "float64; int64"},
                          {"4; -", "axes=(0,)", -3, 2, "float64; int64"},
                          {"4,3; 0", "axes=(0,)", -3, 2, "float64; int64"},
                          TD_SAMPLES_END},
};

// ---- index_add ----

static int index_add_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[1];
  td_meta x = {.rank = (uint8_t)shape->count}, want;
  td_gather_plan plan;
  for (int i = 0; i < shape->count; i++) x.shape[i] = shape->ints[i];
  int code = td_gather_plan_make(infer, &x, 1, &infer->args[0], &plan);
  if (code) return code;
  td_gather_shape(&plan, &x, infer->in[0].dtype, &want);
  if (!td_shape_equal(want.rank, want.shape, infer->in[0].rank, infer->in[0].shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the tensor's shape is not what the indices read");
  infer->out[0] = x;
  infer->out[0].dtype = infer->in[0].dtype;
  return TD_OK;
}

static int index_add_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  td_gather_walk walk;
  td_flat flat;
  memset(out->data, 0, (size_t)(out->size * td_dtype_bytes(out->dtype)));
  int code = td_gather_open(call, out, 1, &call->args[0], &walk);
  if (code) return code;
  code = td_flat_open(call, &call->in[0], out->dtype, &flat);
  if (!code) {
    td_gather_add(call->context->pool, &walk, out->dtype, out->data, flat.data);
    td_flat_close(&flat);
  }
  td_gather_close(&walk);
  return code;
}

static int index_add_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = index_with(rule, rule->cotangent[0], 1, &rule->args[0]);
  return TD_OK;
}

static const td_op index_add = {
    .name = "index_add",
    .params = {TENSORS_PARAM, AXES_PARAM, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HIDDEN,
    .infer = index_add_infer,
    .kernel = index_add_kernel,
    .vjp = index_add_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "Zeros of a shape, to which the elements of the first tensor are added at the places that index reads by "
           "the others: "
           "the gradient of index. In the order of the indices, so the sum is always the same.\n"
           "Gradient: the cotangent, indexed.",
    .samples = TD_SAMPLES{{"5,3; 5", "axes=(0,), shape=(4, 3)", -3, 2, "float64; int64"},
                          {"3,2; 2; 3,1", "axes=(0, 1), shape=(4, 3)", -3, 2, "float64; int64; int64"},
                          {"2,3,4; 2,1; 3", "axes=(0, 2), shape=(3, 4, 5)", -3, 2, "float64; int64; int64"},
                          TD_SAMPLES_END},
};

static td_tensor *index_back(td_rule *rule, td_tensor *c, int first, const td_meta *x, const td_arg *axes) {
  const td_arg args[] = {*axes, td_ints_arg(x->rank, x->shape)};
  td_tensor *list[TD_INPUT_MAX] = {c};
  for (int i = first; i < rule->in_count; i++) list[i - first + 1] = rule->in[i];
  return apply_list(&rule->scope, &index_add, args, rule->in_count - first + 1, list);
}

static td_tensor *index_with(td_rule *rule, td_tensor *x, int first, const td_arg *axes) {
  td_tensor *list[TD_INPUT_MAX] = {x};
  for (int i = first; i < rule->in_count; i++) list[i - first + 1] = rule->in[i];
  return apply_list(&rule->scope, &index_op, axes, rule->in_count - first + 1, list);
}

// ---- index_put ----

static int index_put_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *value = &infer->in[1];
  td_gather_plan plan;
  td_meta places;
  int64_t shape[TD_RANK_MAX];
  int rank;
  int code = infer->in_count < 3 ? td_infer_fail(infer, TD_ERROR_INDEX, "no index tensor is given")
                                 : td_gather_plan_make(infer, x, 2, &infer->args[0], &plan);
  if (code) return code;
  td_gather_shape(&plan, x, x->dtype, &places);
  infer->out[0] = *x;
  if (value->rank <= places.rank &&
      td_shape_broadcast(value->rank, value->shape, places.rank, places.shape, &rank, shape, NULL) &&
      td_shape_equal(rank, shape, places.rank, places.shape))
    return TD_OK;
  td_text text = {0};
  td_shape_print(&text, value->rank, value->shape);
  td_text_add(&text, " doesn't broadcast to ");
  td_shape_print(&text, places.rank, places.shape);
  code = td_infer_fail(infer, TD_ERROR_SHAPE, "value of shape %s", text.data ? text.data : "");
  td_text_clear(&text);
  return code;
}

static int index_put_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  td_gather_walk walk;
  td_flat flat;
  int code = td_gather_open(call, out, 2, &call->args[0], &walk);
  if (code) return code;
  td_gather_plan plan;
  td_meta shape = {.rank = x->rank}, places;
  td_view spread;
  memcpy(shape.shape, x->shape, x->rank * sizeof *x->shape);
  td_gather_plan_of(call, x->rank, 2, &call->args[0], &plan);
  td_gather_shape(&plan, &shape, x->dtype, &places);
  td_view_broadcast(&spread, &call->in[1], places.rank, places.shape);
  code = td_flat_open(call, &spread, out->dtype, &flat);
  if (!code) {
    td_elements_copy(call->context->pool, out->data, x->data, walk.bytes, x->rank, x->shape, x->strides);
    td_gather_write(&walk, out->data, flat.data);
    td_flat_close(&flat);
  }
  td_gather_close(&walk);
  return code;
}

// Of values that were written to one place only the last is seen: numbers of the writes, put and read again, tell
// which.
static td_tensor *seen_only(td_rule *rule, td_tensor *values) {
  td_scope *s = &rule->scope;
  if (!values) return NULL;
  td_meta counts = rule->out_meta[0];
  counts.dtype = TD_INT64;
  td_tensor *numbers = td_reshape(s, td_arange(s, values->size), values->rank, values->shape);
  td_tensor *list[TD_INPUT_MAX] = {td_scope_filled(s, 0, &counts), numbers};
  for (int i = 2; i < rule->in_count; i++) list[i] = rule->in[i];
  td_tensor *last = index_with(rule, apply_list(s, rule->op, rule->args, rule->in_count, list), 2, &rule->args[0]);
  return td_where(s, td_equal(s, last, numbers), values, td_scope_number(s, 0, values));
}

static int index_put_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) {
    td_tensor *list[TD_INPUT_MAX] = {c, td_scope_number(s, 0, c)};
    for (int i = 2; i < rule->in_count; i++) list[i] = rule->in[i];
    rule->din[0] = apply_list(s, rule->op, rule->args, rule->in_count, list);
  }
  if (rule->needs[1]) rule->din[1] = seen_only(rule, index_with(rule, c, 2, &rule->args[0]));
  return TD_OK;
}

static const td_op index_put = {
    .name = "index_put",
    .params = {TENSORS_PARAM, AXES_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_HIDDEN | TD_HALF,
    .infer = index_put_infer,
    .kernel = index_put_kernel,
    .vjp = index_put_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "x with the elements that index reads replaced by value, which broadcasts and takes x's dtype: tensors are "
           "x, value, i, "
           "j, ... Of repeated places the last value stays.\n"
           "Gradient: for x the cotangent with zeros at the replaced places, for value the cotangent there (0 for a "
           "value that "
           "was replaced itself).",
    .samples = TD_SAMPLES{{"4,3; 2,3; 2", "axes=(0,)", -3, 2, "float64; float64; int64"},
                          {"4,3; -; 2; 2", "axes=(0, 1)", -3, 2, "float64; float64; int64; int64"},
                          {"3,4,5; 3,4; 2,1; 3", "axes=(0, 2)", 0, 2, "float64; float64; int64; int64"},
                          TD_SAMPLES_END},
};

// ---- take ----

static int take_axis(const td_arg *args, int rank) { return (int)(args[0].i < 0 ? args[0].i + rank : args[0].i); }

static td_arg take_axes(const td_arg *args) { return (td_arg){.given = 1, .count = 1, .ints = {args[0].i}}; }

static int take_infer(td_infer *infer) {
  td_gather_plan plan;
  td_arg axes = take_axes(infer->args);
  int code = td_gather_plan_make(infer, &infer->in[0], 1, &axes, &plan);
  if (!code) td_gather_shape(&plan, &infer->in[0], infer->in[0].dtype, &infer->out[0]);
  return code;
}

static int take_kernel(const td_call *call) {
  td_gather_walk walk;
  td_arg axes = take_axes(call->args);
  int code = td_gather_open(call, &call->in[0], 1, &axes, &walk);
  if (code) return code;
  td_gather_read(call->context->pool, &walk, call->out[0].data, call->in[0].data);
  td_gather_close(&walk);
  return TD_OK;
}

static int take_vjp(td_rule *rule) {
  td_arg axes = take_axes(rule->args);
  if (rule->needs[0]) rule->din[0] = index_back(rule, rule->cotangent[0], 1, &rule->in_meta[0], &axes);
  return TD_OK;
}

static const td_op take = {
    .name = "take",
    .params = {TD_X, TD_TENSOR_PARAM("index"), {.name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .method = true,
    .infer = take_infer,
    .kernel = take_kernel,
    .vjp = take_vjp,
    .saves = TD_SAVES_IN1,
    .doc =
        "The slices of x at integer indices along axis; the index's shape takes the axis's place. Negative indices "
        "count from "
        "the end, others out of range are an error.\nGradient: the cotangent, added up at the places that were read.",
    .example = "take(tensor([10, 20, 30]), tensor([2, 0, 0])).tolist()  # [30, 10, 10]",
    .samples = TD_SAMPLES{{"4,3; 5", NULL, -3, 2, "float64; int64"},
                          {"2,4,3; 2,2", "axis=1", -3, 2, "float64; int64"},
                          {"4,3; -", "axis=-1", -3, 2, "float64; int64"},
                          TD_SAMPLES_END},
};

// ---- gather ----

// Index tensors that read x like gather does would be as large as the index for each axis; gather walks by itself
// instead: for each of the index's elements, the place with the axis's number replaced by it.
static int gather_walk(const td_call *call, const td_view *x, const td_view *index, int axis, int64_t **offsets) {
  td_flat flat;
  int64_t at[TD_RANK_MAX] = {0}, offset = 0, size = x->shape[axis];
  int code = td_flat_open(call, index, TD_INT64, &flat);
  if (code) return code;
  int64_t bytes = index->size * (int64_t)sizeof **offsets, *out = *offsets = td_memory_new((size_t)bytes);
  if (!out) code = td_error_memory(call->context, call->op->name, bytes);
  for (int64_t i = 0; i < index->size && !code; i++) {
    int64_t given = ((const int64_t *)flat.data)[i], place = given < 0 ? given + size : given;
    if (place < 0 || place >= size) code = td_index_fail(call, given, axis, size);
    else out[i] = offset + place * x->strides[axis];
    for (int d = index->rank; d-- > 0;) {
      int64_t step = d == axis ? 0 : x->strides[d];
      offset += step;
      if (++at[d] < index->shape[d]) break;
      offset -= step * index->shape[d];
      at[d] = 0;
    }
  }
  td_flat_close(&flat);
  if (!code) return TD_OK;
  td_memory_free(out);
  *offsets = NULL;
  return code;
}

static int gather_check(td_infer *infer, const td_meta *x, const td_meta *index, int64_t given) {
  int axis, code = td_infer_axis(infer, given, x->rank, &axis);
  if (code) return code;
  if (td_dtype_category(index->dtype) != 1)
    return td_infer_fail(infer, TD_ERROR_DTYPE, "indices must be integers, not %s", td_dtype_name(index->dtype));
  if (index->rank != x->rank)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "index has rank %d, the tensor has rank %d", index->rank, x->rank);
  for (int i = 0; i < x->rank; i++)
    if (i != axis && index->shape[i] > x->shape[i])
      return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d: index has size %lld, the tensor has %lld", i,
                           (long long)index->shape[i], (long long)x->shape[i]);
  return TD_OK;
}

static int gather_infer(td_infer *infer) {
  infer->out[0] = infer->in[1];
  infer->out[0].dtype = infer->in[0].dtype;
  return gather_check(infer, &infer->in[0], &infer->in[1], infer->args[0].i);
}

static int gather_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  int64_t *offsets;
  if (!out->size) return TD_OK;
  int code = gather_walk(call, x, &call->in[1], take_axis(call->args, x->rank), &offsets);
  if (code) return code;
  switch (td_dtype_bytes(x->dtype)) {
#define CASE(bytes, type)                                                                                 \
  case bytes:                                                                                             \
    for (int64_t i = 0; i < out->size; i++) ((type *)out->data)[i] = ((const type *)x->data)[offsets[i]]; \
    break;
    CASE(1, uint8_t)
    CASE(2, uint16_t)
    CASE(4, uint32_t)
    CASE(8, uint64_t)
#undef CASE
  }
  td_memory_free(offsets);
  return TD_OK;
}

static td_tensor *gather_back(td_scope *s, td_tensor *c, td_tensor *index, const td_meta *x, const td_arg *axis);
static td_tensor *gather_with(td_scope *s, td_tensor *x, td_tensor *index, const td_arg *axis);

static int gather_vjp(td_rule *rule) {
  if (rule->needs[0])
    rule->din[0] = gather_back(&rule->scope, rule->cotangent[0], rule->in[1], &rule->in_meta[0], &rule->args[0]);
  return TD_OK;
}

#define GATHER_AXIS \
  { .name = "axis", .kind = TD_PARAM_AXIS, .required = true }

static const td_op gather = {
    .name = "gather",
    .params = {TD_X, TD_TENSOR_PARAM("index"), GATHER_AXIS},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .method = true,
    .infer = gather_infer,
    .kernel = gather_kernel,
    .vjp = gather_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "For each element of index the element of x at the same place, with its position along axis replaced by the "
           "index: "
           "for axis 1 out[i, j] = x[i, index[i, j]]. The result has index's shape.\n"
           "Gradient: the cotangent, added up at the places that were read.",
    .example = "gather(tensor([[1, 2], [3, 4]]), tensor([[1], [0]]), axis=1).tolist()  # [[2], [3]]",
    .samples = TD_SAMPLES{{"3,4; 3,2", "axis=1", -3, 2, "float64; int64"},
                          {"4,3; 5,2", "axis=0", -3, 2, "float64; int64"},
                          TD_SAMPLES_END},
};

// ---- gather_adjoint ----

static int gather_adjoint_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[1];
  td_meta x = {.dtype = infer->in[0].dtype, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) x.shape[i] = shape->ints[i];
  infer->out[0] = x;
  if (!td_shape_equal(infer->in[0].rank, infer->in[0].shape, infer->in[1].rank, infer->in[1].shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the tensor's shape is not the index's");
  return gather_check(infer, &x, &infer->in[1], infer->args[0].i);
}

static int gather_adjoint_kernel(const td_call *call) {
  const td_view *out = &call->out[0], *index = &call->in[1];
  int64_t *offsets;
  td_flat flat;
  memset(out->data, 0, (size_t)(out->size * td_dtype_bytes(out->dtype)));
  if (!index->size) return TD_OK;
  int code = gather_walk(call, out, index, take_axis(call->args, out->rank), &offsets);
  if (code) return code;
  code = td_flat_open(call, &call->in[0], out->dtype, &flat);
  if (!code) {
    if (out->dtype == TD_FLOAT32)
      for (int64_t i = 0; i < index->size; i++) ((float *)out->data)[offsets[i]] += ((const float *)flat.data)[i];
    else
      for (int64_t i = 0; i < index->size; i++) ((double *)out->data)[offsets[i]] += ((const double *)flat.data)[i];
    td_flat_close(&flat);
  }
  td_memory_free(offsets);
  return code;
}

static int gather_adjoint_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = gather_with(&rule->scope, rule->cotangent[0], rule->in[1], &rule->args[0]);
  return TD_OK;
}

static const td_op gather_adjoint = {
    .name = "gather_adjoint",
    .params = {TD_X,
               TD_TENSOR_PARAM("index"),
               GATHER_AXIS,
               {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HIDDEN,
    .infer = gather_adjoint_infer,
    .kernel = gather_adjoint_kernel,
    .vjp = gather_adjoint_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "Zeros of a shape, to which the elements of a floating x are added at the places that gather reads: its "
           "gradient.\n"
           "Gradient: the cotangent, gathered.",
    .samples = TD_SAMPLES{{"3,2; 3,2", "axis=1, shape=(3, 4)", -3, 2, "float64; int64"}, TD_SAMPLES_END},
};

static td_tensor *gather_back(td_scope *s, td_tensor *c, td_tensor *index, const td_meta *x, const td_arg *axis) {
  const td_arg args[] = {*axis, td_ints_arg(x->rank, x->shape)};
  return td_scope_apply(s, &gather_adjoint, args, 2, c, index);
}

static td_tensor *gather_with(td_scope *s, td_tensor *x, td_tensor *index, const td_arg *axis) {
  return td_scope_apply(s, &gather, axis, 2, x, index);
}

// ---- one_hot ----

static int one_hot_infer(td_infer *infer) {
  const td_meta *index = &infer->in[0];
  td_meta *out = &infer->out[0];
  if (td_dtype_category(index->dtype) != 1)
    return td_infer_fail(infer, TD_ERROR_DTYPE, "indices must be integers, not %s", td_dtype_name(index->dtype));
  if (infer->args[0].i < 0)
    return td_infer_fail(infer, TD_ERROR_VALUE, "n is negative: %lld", (long long)infer->args[0].i);
  if (index->rank == TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is the most that tensors can have", TD_RANK_MAX);
  *out = *index;
  out->shape[out->rank++] = infer->args[0].i;
  out->dtype = (uint8_t)infer->args[1].i;
  return TD_OK;
}

static int one_hot_kernel(const td_call *call) {
  const td_view *index = &call->in[0], *out = &call->out[0];
  int64_t n = call->args[0].i, bytes = td_dtype_bytes(out->dtype);
  const int64_t one = 1;
  uint64_t bits = 0;
  td_flat flat;
  int code = td_flat_open(call, index, TD_INT64, &flat);
  if (code) return code;
  memset(out->data, 0, (size_t)(out->size * bytes));
  td_cast_run(&bits, out->dtype, &one, TD_INT64, 0, 1, false);
  for (int64_t i = 0; i < index->size && !code; i++) {
    int64_t value = ((const int64_t *)flat.data)[i];
    if (value >= 0 && value < n) memcpy(out->data + (i * n + value) * bytes, &bits, (size_t)bytes);
    else
      code = td_error_set(call->context, TD_ERROR_INDEX, "one_hot: element %lld is %lld, outside 0 to %lld",
                          (long long)i, (long long)value, (long long)n - 1);
  }
  td_flat_close(&flat);
  return code;
}

static const td_op one_hot = {
    .name = "one_hot",
    .params = {TD_TENSOR_PARAM("index"),
               {.name = "n", .kind = TD_PARAM_INT, .required = true},
               {.name = "dtype", .kind = TD_PARAM_DTYPE, .fallback = TD_INT_DEFAULT(TD_FLOAT32)}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .infer = one_hot_infer,
    .kernel = one_hot_kernel,
    .no_gradient = "integer input",
    .doc = "Rows of n zeros with a 1 at each index: [..., n]. An index outside 0 to n - 1 is an error.",
    .example = "one_hot(tensor([2, 0]), 3).tolist()  # [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]",
    .samples = TD_SAMPLES{{"4", "n=3", 0, 2, "int64"},
                          {"2,2", "n=3, dtype=int64", 0, 2, "uint8"},
                          {"-", "n=3", 0, 2, "int64"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_index[] = {&index_op, &index_add,      &index_put, &take,
                                        &gather,   &gather_adjoint, &one_hot,   NULL};
