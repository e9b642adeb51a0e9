// Advanced indexing by integer tensors: x[i, j], its adjoint, x[i, j] = v, and slices along one axis: take, index_add,
// embedding. Indices that are repeated add in gradients; the last of repeated writes stays.
#include "engine/ops/index.h"

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

static int read_at(const td_call *call, const td_view *x, const td_view *index, int count, const td_arg *axes) {
  td_gather_walk walk;
  int code = td_gather_open(call, x, index, count, axes, call->workspace, &walk);
  if (!code) td_gather_read(call->context->pool, &walk, call->out[0].data, x->data);
  return code;
}

static int index_kernel(const td_call *call) {
  return read_at(call, &call->in[0], &call->in[1], call->in_count - 1, &call->args[0]);
}

static int64_t index_workspace(const td_call *call) { return td_gather_bytes(&call->in[1], call->in_count - 1); }

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
    .flags = TD_LINEAR | TD_HIDDEN | TD_HALF,
    .infer = index_infer,
    .kernel = index_kernel,
    .workspace = index_workspace,
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

// ---- index_adjoint ----

static int index_adjoint_infer(td_infer *infer) {
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

static int index_adjoint_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  memset(out->data, 0, (size_t)(out->size * td_dtype_bytes(out->dtype)));
  return td_scatter_at(call, out, &call->in[0], &call->in[1], call->in_count - 1, &call->args[0], TD_SCATTER_ADD,
                       call->workspace);
}

static int64_t index_adjoint_workspace(const td_call *call) {
  return td_scatter_at_bytes(call->context->pool, &call->out[0], &call->in[0], &call->in[1], call->in_count - 1,
                             &call->args[0], TD_SCATTER_ADD);
}

static int index_adjoint_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = index_with(rule, rule->cotangent[0], 1, &rule->args[0]);
  return TD_OK;
}

static const td_op index_adjoint = {
    .name = "index_adjoint",
    .params = {TENSORS_PARAM, AXES_PARAM, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HIDDEN,
    .infer = index_adjoint_infer,
    .kernel = index_adjoint_kernel,
    .workspace = index_adjoint_workspace,
    .vjp = index_adjoint_vjp,
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
  return apply_list(&rule->scope, &index_adjoint, args, rule->in_count - first + 1, list);
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
  int code = infer->in_count < 3 ? td_infer_fail(infer, TD_ERROR_INDEX, "no index tensor is given")
                                 : td_gather_plan_make(infer, x, 2, &infer->args[0], &plan);
  if (!code) code = td_infer_written(infer, x, value);
  if (code) return code;
  td_gather_shape(&plan, x, x->dtype, &places);
  infer->out[0] = *x;
  return td_infer_fits(infer, "value of shape", value, &places);
}

static int index_put_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  td_elements_copy(call->context->pool, out->data, x->data, td_dtype_bytes(x->dtype), x->rank, x->shape, x->strides);
  return td_scatter_at(call, out, &call->in[1], &call->in[2], call->in_count - 2, &call->args[0], TD_SCATTER_SET,
                       call->workspace);
}

static int64_t index_put_workspace(const td_call *call) {
  return td_scatter_at_bytes(call->context->pool, &call->out[0], &call->in[1], &call->in[2], call->in_count - 2,
                             &call->args[0], TD_SCATTER_SET);
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
    .flags = TD_LINEAR | TD_HIDDEN | TD_HALF,
    .infer = index_put_infer,
    .kernel = index_put_kernel,
    .workspace = index_put_workspace,
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

// ---- index_put in place ----

int td_index_put_in_place(td_context *context, td_tensor *x, td_tensor *value, td_tensor *const *indices, int count,
                          const td_arg *axes) {
  td_tensor *in[TD_INPUT_MAX] = {x, value};
  td_infer infer;
  td_call call;
  infer.context = call.context = context;
  infer.op = call.op = &index_put;
  infer.args = axes;
  infer.tensors = in;
  infer.in_count = 2 + count;
  for (int i = 0; i < count; i++) in[2 + i] = indices[i];
  for (int i = 0; i < infer.in_count; i++) {
    infer.in[i] = td_tensor_meta(in[i]);
    td_view_of(&call.in[i], in[i]);
  }
  int code = td_op_infer(&infer);
  if (code) return code;
  int64_t bytes =
      td_scatter_at_bytes(context->pool, &call.in[0], &call.in[1], &call.in[2], count, axes, TD_SCATTER_SET);
  void *space = td_memory_new((size_t)bytes);
  if (!space) return td_error_memory(context, "assignment", bytes);
  code = td_scatter_at(&call, &call.in[0], &call.in[1], &call.in[2], count, axes, TD_SCATTER_SET, space);
  td_memory_free(space);
  return code;
}

// ---- rows along an axis ----

static td_arg axis_arg(int64_t axis) { return (td_arg){.given = 1, .count = 1, .ints = {axis}}; }

td_tensor *td_take_slices(td_scope *s, td_tensor *x, td_tensor *index, int64_t axis) {
  const td_arg args[] = {axis_arg(axis)};
  return td_scope_apply(s, &index_op, args, 2, x, index);
}

td_tensor *td_index_adjoint(td_scope *s, td_tensor *c, td_tensor *index, int64_t axis, int rank, const int64_t *shape) {
  const td_arg args[] = {axis_arg(axis), td_ints_arg(rank, shape)};
  return td_scope_apply(s, &index_adjoint, args, 2, c, index);
}

// ---- take ----

static td_meta take_from(const td_meta *x, const td_arg *axis) { // a line of all elements where axis is None
  if (axis->given) return *x;
  return (td_meta){.dtype = x->dtype, .rank = 1, .shape = {td_shape_size(x->rank, x->shape)}};
}

enum { RAISE, WRAP, CLIP };
static const char *const take_modes[] = {"raise", "wrap", "clip", NULL};

static int64_t take_count(const td_meta *x, const td_arg *axis) { // elements of the line that is read; -1: no such axis
  td_meta from = take_from(x, axis);
  int64_t at = axis->given ? axis->i : 0;
  if (at < 0) at += from.rank;
  return at >= 0 && at < from.rank ? from.shape[at] : -1;
}

static int take_infer(td_infer *infer) {
  td_gather_plan plan;
  td_arg axes = axis_arg(infer->args[0].given ? infer->args[0].i : 0);
  td_meta x = take_from(&infer->in[0], &infer->args[0]);
  int code = td_gather_plan_make(infer, &x, 1, &axes, &plan);
  if (!code) td_gather_shape(&plan, &x, x.dtype, &infer->out[0]);
  if (!code && infer->args[1].i && !take_count(&infer->in[0], &infer->args[0]) &&
      td_shape_size(infer->in[1].rank, infer->in[1].shape))
    return td_infer_fail(infer, TD_ERROR_INDEX, "there is nothing to take from: the axis is empty");
  return code;
}

static int64_t index_bytes(const td_view *index) { return index->size * (int64_t)sizeof(int64_t); }

// The index that wraps around, or is clipped to, a line of n: in space, as int64.
static td_view inside_line(const td_call *call, int64_t n, void *space) {
  td_view index = call->in[1];
  int64_t *at = space, stride = 1;
  const char *plain = td_flat_fill(call->context->pool, &index, TD_INT64, space);
  if (index.size && plain != space) memcpy(at, plain, (size_t)index_bytes(&index));
  for (int64_t i = 0; i < index.size; i++) {
    if (call->args[1].i == WRAP) at[i] = at[i] % n + (at[i] % n < 0 ? n : 0);
    else at[i] = at[i] < 0 ? 0 : at[i] < n ? at[i] : n - 1;
  }
  index.data = (char *)at;
  index.dtype = TD_INT64;
  for (int d = index.rank; d-- > 0; stride *= index.shape[d]) index.strides[d] = stride;
  return index;
}

static int take_kernel(const td_call *call) {
  td_view x = call->in[0];
  td_gather_walk walk;
  char *at = call->workspace;
  td_arg axes = axis_arg(call->args[0].given ? call->args[0].i : 0);
  td_view index = call->in[1];
  void *offsets = td_space_take(&at, td_gather_bytes(&index, 1));
  if (call->args[1].i) {
    td_meta of = {.rank = x.rank};
    memcpy(of.shape, x.shape, sizeof of.shape);
    index = inside_line(call, take_count(&of, &call->args[0]), td_space_take(&at, index_bytes(&index)));
  }
  if (!call->args[0].given) {
    x = (td_view){.size = x.size, .dtype = x.dtype, .rank = 1, .shape = {x.size}, .strides = {1}};
    x.data = (char *)td_flat_fill(call->context->pool, &call->in[0], x.dtype, at);
  }
  int code = td_gather_open(call, &x, &index, 1, &axes, offsets, &walk);
  if (!code) td_gather_read(call->context->pool, &walk, call->out[0].data, x.data);
  return code;
}

static int64_t take_workspace(const td_call *call) {
  int64_t offsets = td_space_bytes(td_gather_bytes(&call->in[1], 1));
  if (call->args[1].i) offsets += td_space_bytes(index_bytes(&call->in[1]));
  return offsets + (call->args[0].given ? 0 : td_flat_bytes(&call->in[0], call->in[0].dtype));
}

static int take_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *x = &rule->in_meta[0];
  td_meta line = take_from(x, &rule->args[0]);
  if (!rule->needs[0]) return TD_OK;
  int64_t axis = rule->args[0].given ? rule->args[0].i : 0, n = take_count(x, &rule->args[0]);
  td_tensor *index = rule->in[1] && rule->args[1].i ? td_cast(s, rule->in[1], TD_INT64) : rule->in[1];
  if (rule->args[1].i == WRAP && n) index = td_remainder(s, index, td_scope_number(s, (double)n, index));
  if (rule->args[1].i == CLIP && n)
    index = td_maximum(s, td_minimum(s, index, td_scope_number(s, (double)n - 1, index)), td_scope_number(s, 0, index));
  td_tensor *back = td_index_adjoint(s, rule->cotangent[0], index, axis, line.rank, line.shape);
  rule->din[0] = td_reshape(s, back, x->rank, x->shape);
  return TD_OK;
}

#define INDEX_PARAM \
  { .name = "index", .kind = TD_PARAM_INDEX, .alias = TD_ALIAS("indices", "ids") }

static const td_op take = {
    .name = "take",
    .alias = TD_ALIAS("index_select"),
    .params = {TD_X, INDEX_PARAM, {.name = "axis", .kind = TD_PARAM_AXIS},
               {.name = "mode", .kind = TD_PARAM_CHOICE, .choices = take_modes, .fallback = TD_INT_DEFAULT(RAISE)}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = take_infer,
    .kernel = take_kernel,
    .workspace = take_workspace,
    .vjp = take_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "The slices of x at integer indices along axis; the index's shape takes the axis's place. Without an axis, "
           "the elements at positions in row-major order, as in NumPy and PyTorch.\n"
           "Negative indices count from the end, others out of range are an error. mode=\"wrap\" counts around "
           "instead, \"clip\" takes the nearest place that there is, the first one for negative indices. PyTorch's "
           "order, index_select(x, axis, index), is understood.\n"
           "Gradient: the cotangent, added up at the places that were read.",
    .example = "take(tensor([[10, 20], [30, 40]]), [1, 0, 0], axis=0).tolist()  # [[30, 40], [10, 20], [10, 20]]",
    .samples = TD_SAMPLES{{"4,3; 5", NULL, -3, 2, "float64; int64"},
                          {"4,3; 5", "axis=0", -3, 2, "float64; int32"},
                          {"2,4,3; 2,2", "axis=1", -3, 2, "float64; int64"},
                          {"4,3; -", "axis=-1", -3, 2, "float64; int64"},
                          {"4,3; 0", "axis=1", -3, 2, "float64; int64"},
                          {"4,3; 5", "axis=0, mode=\"wrap\"", -9, 9, "float64; int64"},
                          {"4,3; 5", "mode=\"clip\"", -9, 20, "float64; int32"},
                          TD_SAMPLES_END},
};

// ---- index_add ----

static int index_add_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *source = &infer->in[2];
  int axis = 0, code = td_infer_axis(infer, infer->args[0].i, x->rank, &axis);
  if (!code) code = td_index_dtype(infer, &infer->in[1]);
  if (!code) code = td_infer_written(infer, x, source);
  if (code) return code;
  td_meta places = *x;
  if (infer->in[1].rank > 1)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "index must have rank 1, not %d", infer->in[1].rank);
  places.shape[axis] = infer->in[1].rank ? infer->in[1].shape[0] : 1;
  infer->out[0] = *x;
  return td_infer_fits(infer, "source of shape", source, &places);
}

static td_view as_line(const td_view *index) { // a 0-d index as one of rank 1
  td_view line = *index;
  if (index->rank) return line;
  line.rank = 1;
  line.shape[0] = 1;
  line.strides[0] = 0;
  return line;
}

static int index_add_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  td_view index = as_line(&call->in[1]);
  td_arg axes = axis_arg(call->args[0].i);
  td_elements_copy(call->context->pool, out->data, x->data, td_dtype_bytes(x->dtype), x->rank, x->shape, x->strides);
  return td_scatter_at(call, out, &call->in[2], &index, 1, &axes, TD_SCATTER_ADD, call->workspace);
}

static int64_t index_add_workspace(const td_call *call) {
  td_view index = as_line(&call->in[1]);
  td_arg axes = axis_arg(call->args[0].i);
  return td_scatter_at_bytes(call->context->pool, &call->out[0], &call->in[2], &index, 1, &axes, TD_SCATTER_ADD);
}

static int index_add_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const int64_t line[] = {rule->in[1]->size};
  if (rule->needs[0]) rule->din[0] = rule->cotangent[0];
  if (rule->needs[2])
    rule->din[2] = td_take_slices(s, rule->cotangent[0], td_reshape(s, rule->in[1], 1, line), rule->args[0].i);
  return TD_OK;
}

static const td_op index_add = {
    .name = "index_add",
    .params = {TD_X,
               INDEX_PARAM,
               TD_TENSOR_PARAM("source"),
               {.name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR,
    .method = true,
    .infer = index_add_infer,
    .kernel = index_add_kernel,
    .workspace = index_add_workspace,
    .vjp = index_add_vjp,
    .saves = TD_SAVES_IN1,
    .doc =
        "x with the slices of source added at the indices along axis, in their order; repeated ones add up. PyTorch's "
        "order, index_add(x, axis, index, source), is understood.\n"
        "Gradient: for x the cotangent, for source the cotangent's slices at the indices.",
    .example = "index_add(zeros(3), [0, 2, 0], tensor([1., 2., 3.])).tolist()  # [4.0, 0.0, 2.0]",
    .samples = TD_SAMPLES{{"4,3; 5; 5,3", NULL, -3, 2, "float64; int64; float64"},
                          {"2,4; 3; -", "axis=1", -3, 2, "float64; int64; float64"},
                          {"4,3; -; 3", NULL, -3, 2, "float64; int64; float64"},
                          TD_SAMPLES_END},
};

// ---- embedding ----

static int embedding_infer(td_infer *infer) {
  const td_meta *index = &infer->in[0], *weight = &infer->in[1];
  td_meta *out = &infer->out[0];
  int row, code = td_index_dtype(infer, index);
  if (!code && weight->rank != 2)
    code = td_infer_fail(infer, TD_ERROR_SHAPE, "weight must be a matrix, one row for each index, not of rank %d",
                         weight->rank);
  if (code) return code;
  if (index->rank == TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is the most that tensors can have", TD_RANK_MAX);
  *out = *index;
  out->shape[out->rank++] = weight->shape[1];
  out->dtype = weight->dtype;
  int64_t padding = infer->args[0].i, rows = weight->shape[0];
  row = infer->args[0].given && (padding < -rows || padding >= rows);
  return row ? td_infer_fail(infer, TD_ERROR_INDEX, "padding_idx %lld is out of range for %lld rows",
                             (long long)padding, (long long)rows)
             : TD_OK;
}

static int embedding_kernel(const td_call *call) {
  const td_arg axes = axis_arg(0);
  return read_at(call, &call->in[1], &call->in[0], 1, &axes);
}

static int64_t embedding_workspace(const td_call *call) { return td_gather_bytes(&call->in[0], 1); }

static int embedding_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *index = rule->in[0];
  const td_meta *weight = &rule->in_meta[1];
  if (!rule->needs[1]) return TD_OK;
  if (rule->args[0].given) { // a row's number counts from either end
    int64_t padding = rule->args[0].i, shape[TD_RANK_MAX] = {0};
    for (int i = 0; i < index->rank; i++) shape[i] = index->shape[i];
    shape[index->rank] = 1;
    int64_t other = padding < 0 ? padding + weight->shape[0] : padding - weight->shape[0];
    td_tensor *column = td_reshape(s, index, index->rank + 1, shape), *zero = td_scope_number(s, 0, c);
    c = td_where(s, td_equal(s, column, td_scope_number(s, (double)padding, index)), zero, c);
    c = td_where(s, td_equal(s, column, td_scope_number(s, (double)other, index)), zero, c);
  }
  rule->din[1] = td_index_adjoint(s, c, index, 0, weight->rank, weight->shape);
  return TD_OK;
}

static const td_op embedding = {
    .name = "embedding",
    .params = {INDEX_PARAM, TD_TENSOR_PARAM("weight"), {.name = "padding_idx", .kind = TD_PARAM_INT}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .infer = embedding_infer,
    .kernel = embedding_kernel,
    .workspace = embedding_workspace,
    .vjp = embedding_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "The rows of weight at the indices: [..., columns]. Negative indices count from the end.\n"
           "Gradient: the cotangent, added up in the rows that were read; none flows to the row padding_idx.",
    .example = "embedding([1, 0, 1], tensor([[1., 2.], [3., 4.]])).tolist()  # [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]",
    .samples = TD_SAMPLES{{"5; 4,3", NULL, 0, 2, "int64; float64"},
                          {"2,3; 4,3", "padding_idx=3", 0, 2, "int32; float64"},
                          {"2,3; 4,3", "padding_idx=-1", 0, 2, "int64; float64"},
                          {"-; 4,3", NULL, 0, 2, "int64; float64"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_index[] = {&index_op,  &index_adjoint, &index_put, &take,
                                        &index_add, &embedding,     NULL};
