// Element by element along an axis: gather reads x where an index says, scatter writes there. The index has x's rank;
// in the forms named ..._along_axis, NumPy's, it is broadcast to x along the other axes.
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/gather.h"
#include "engine/ops/map.h"

static int wrapped(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

#define INDEX_PARAM \
  { .name = "index", .kind = TD_PARAM_INDEX, .alias = TD_ALIAS("indices") }
#define AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXIS, .required = true }

static int check(td_infer *infer, const td_meta *x, const td_meta *index, int64_t given, int *axis) {
  int code = td_infer_axis(infer, given, x->rank, axis);
  if (!code) code = td_index_dtype(infer, index);
  if (code) return code;
  if (index->rank == x->rank) return TD_OK;
  code = td_infer_fail(infer, TD_ERROR_SHAPE, "index has rank %d, the tensor has rank %d", index->rank, x->rank);
  td_error_hint(infer->context, "take(x, index, axis) reads whole slices");
  return code;
}

static int check_inside(td_infer *infer, const td_meta *x, const td_meta *index, int64_t given) {
  int axis = 0, code = check(infer, x, index, given, &axis);
  for (int i = 0; i < x->rank && !code; i++)
    if (i != axis && index->shape[i] > x->shape[i])
      return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d: index has size %lld, the tensor has %lld", i,
                           (long long)index->shape[i], (long long)x->shape[i]);
  return code;
}

// Shape of x and index broadcast along all axes but one, which stays index's.
static int check_broadcast(td_infer *infer, const td_meta *x, const td_meta *index, int64_t given, bool both,
                           td_meta *out) {
  int axis = 0, code = check(infer, x, index, given, &axis);
  *out = *index;
  for (int i = 0; i < x->rank && !code; i++) {
    int64_t from = x->shape[i], size = index->shape[i];
    if (i == axis || from == size) continue;
    if (size != 1 && !(both && from == 1))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d: index has size %lld, the tensor has %lld", i,
                           (long long)size, (long long)from);
    out->shape[i] = size == 1 ? from : size;
  }
  return code;
}

// x and index as check_broadcast saw them.
static void spread(const td_view *x, const td_view *index, int axis, td_view *wide_x, td_view *wide_index) {
  int64_t shape[TD_RANK_MAX], from[TD_RANK_MAX];
  for (int i = 0; i < x->rank; i++) {
    shape[i] = index->shape[i] == 1 && i != axis ? x->shape[i] : index->shape[i];
    from[i] = i == axis ? x->shape[i] : shape[i];
  }
  td_view_broadcast(wide_index, index, x->rank, shape);
  td_view_broadcast(wide_x, x, x->rank, from);
}

// index as check_broadcast saw it, for rules; x is what has out's shape.
static td_tensor *spread_index(td_rule *rule, int axis) {
  const td_tensor *index = rule->in[1];
  const td_meta *x = &rule->out_meta[0];
  int64_t shape[TD_RANK_MAX];
  for (int i = 0; i < index->rank; i++) shape[i] = index->shape[i] == 1 && i != axis ? x->shape[i] : index->shape[i];
  return td_broadcast_to(&rule->scope, rule->in[1], index->rank, shape);
}

// ---- gather, take_along_axis ----

static int gather_infer(td_infer *infer) {
  infer->out[0] = infer->in[1];
  infer->out[0].dtype = infer->in[0].dtype;
  return check_inside(infer, &infer->in[0], &infer->in[1], infer->args[0].i);
}

static int gather_kernel(const td_call *call) {
  const td_view *x = &call->in[0];
  return td_gather_read_along(call, x, &call->in[1], wrapped(call->args[0].i, x->rank), call->out[0].data);
}

static td_tensor *gather_back(td_scope *s, td_tensor *c, td_tensor *index, int64_t axis, int rank,
                              const int64_t *shape);

static int gather_vjp(td_rule *rule) {
  const td_meta *x = &rule->in_meta[0];
  if (rule->needs[0])
    rule->din[0] = gather_back(&rule->scope, rule->cotangent[0], rule->in[1], rule->args[0].i, x->rank, x->shape);
  return TD_OK;
}

static const td_op gather = {
    .name = "gather",
    .params = {TD_X, INDEX_PARAM, AXIS_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = gather_infer,
    .batch = td_batch_axes,
    .kernel = gather_kernel,
    .vjp = gather_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "For each element of index the element of x at the same place, with its position along axis replaced by the "
           "index: for axis 1 out[i, j] = x[i, index[i, j]]. The result has index's shape. PyTorch's order, "
           "gather(x, axis, index), is understood.\n"
           "Negative indices count from the end, others out of range are an error.\n"
           "Gradient: the cotangent, added up at the places that were read.",
    .example = "gather(tensor([[1, 2], [3, 4]]), tensor([[1], [0]]), axis=1).tolist()  # [[2], [3]]",
    .samples = TD_SAMPLES{{"3,4; 3,2", "axis=1", -3, 2, "float64; int64"},
                          {"4,3; 5,2", "axis=0", -3, 2, "float64; int32"},
                          {"3,4,2; 2,4,1", "axis=-3", -3, 2, "float64; int64"},
                          {"3,4; 0,2", "axis=1", -3, 2, "float64; int64"},
                          TD_SAMPLES_END},
};

static td_tensor *gather_with(td_scope *s, td_tensor *x, td_tensor *index, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, &gather, args, 2, x, index);
}

static int take_along_axis_infer(td_infer *infer) {
  int code = check_broadcast(infer, &infer->in[0], &infer->in[1], infer->args[0].i, true, &infer->out[0]);
  infer->out[0].dtype = infer->in[0].dtype;
  return code;
}

static int take_along_axis_kernel(const td_call *call) {
  td_view x, index;
  int axis = wrapped(call->args[0].i, call->in[0].rank);
  spread(&call->in[0], &call->in[1], axis, &x, &index);
  return td_gather_read_along(call, &x, &index, axis, call->out[0].data);
}

static int take_along_axis_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *x = &rule->in_meta[0], *out = &rule->out_meta[0];
  int axis = wrapped(rule->args[0].i, x->rank);
  int64_t shape[TD_RANK_MAX];
  if (!rule->needs[0]) return TD_OK;
  for (int i = 0; i < x->rank; i++) shape[i] = i == axis ? x->shape[i] : out->shape[i];
  td_tensor *index = td_broadcast_to(s, rule->in[1], out->rank, out->shape);
  rule->din[0] = gather_back(s, rule->cotangent[0], index, axis, x->rank, shape); // the tape sums it to x's shape
  return TD_OK;
}

static const td_op take_along_axis = {
    .name = "take_along_axis",
    .alias = TD_ALIAS("take_along_dim"),
    .params = {TD_X, INDEX_PARAM, AXIS_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = take_along_axis_infer,
    .batch = td_batch_axes,
    .kernel = take_along_axis_kernel,
    .vjp = take_along_axis_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "As gather, with x and index broadcast together along the other axes: what puts x in the order that argsort "
           "or argmax with keepdims found.\n"
           "Gradient: the cotangent, added up at the places that were read.",
    .example = "take_along_axis(tensor([[3, 1], [2, 4]]), tensor([[1, 0]]), axis=1).tolist()  # [[1, 3], [4, 2]]",
    .samples = TD_SAMPLES{{"3,4; 3,2", "axis=1", -3, 2, "float64; int64"},
                          {"3,4; 1,2", "axis=1", -3, 2, "float64; int64"},
                          {"4,1,2; 2,3,1", "axis=0", -3, 2, "float64; int64"},
                          TD_SAMPLES_END},
};

td_tensor *td_take_along_axis(td_scope *s, td_tensor *x, td_tensor *index, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, &take_along_axis, args, 2, x, index);
}

// ---- gather_adjoint ----

static int gather_adjoint_infer(td_infer *infer) {
  const td_arg *shape = &infer->args[1];
  td_meta x = {.dtype = infer->in[0].dtype, .rank = (uint8_t)shape->count};
  for (int i = 0; i < shape->count; i++) x.shape[i] = shape->ints[i];
  infer->out[0] = x;
  if (!td_shape_equal(infer->in[0].rank, infer->in[0].shape, infer->in[1].rank, infer->in[1].shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the tensor's shape is not the index's");
  return check_inside(infer, &x, &infer->in[1], infer->args[0].i);
}

// source as it is written: broadcast to index's shape, or one for all.
static void view_written(const td_view *index, const td_view *source, td_view *values) {
  if (source->size == 1) *values = *source;
  else td_view_broadcast(values, source, index->rank, index->shape);
}

static int write_along(const td_call *call, const td_view *out, const td_view *index, const td_view *source, int axis,
                       enum td_scatter mode) {
  td_view values;
  char *at = call->workspace;
  view_written(index, source, &values);
  char *space = td_space_take(&at, td_flat_bytes(&values, out->dtype));
  const char *flat = td_flat_fill(call->context->pool, &values, out->dtype, space);
  return td_scatter_along(call, out, index, axis, mode, flat, source->size != 1, at);
}

static int64_t write_bytes(const td_call *call, const td_view *out, const td_view *index, const td_view *source,
                           int axis, enum td_scatter mode) {
  td_view values;
  view_written(index, source, &values);
  return td_space_bytes(td_flat_bytes(&values, out->dtype)) +
         td_scatter_along_bytes(call->context->pool, out, index, axis, mode);
}

static int gather_adjoint_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  memset(out->data, 0, (size_t)(out->size * td_dtype_bytes(out->dtype)));
  return write_along(call, out, &call->in[1], &call->in[0], wrapped(call->args[0].i, out->rank), TD_SCATTER_ADD);
}

static int64_t gather_adjoint_workspace(const td_call *call) {
  const td_view *out = &call->out[0];
  return write_bytes(call, out, &call->in[1], &call->in[0], wrapped(call->args[0].i, out->rank), TD_SCATTER_ADD);
}

static int gather_adjoint_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = gather_with(&rule->scope, rule->cotangent[0], rule->in[1], rule->args[0].i);
  return TD_OK;
}

static const td_op gather_adjoint = {
    .name = "gather_adjoint",
    .params = {TD_X, INDEX_PARAM, AXIS_PARAM, {.name = "shape", .kind = TD_PARAM_SHAPE, .required = true}},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HIDDEN,
    .infer = gather_adjoint_infer,
    .batch = td_batch_axes,
    .kernel = gather_adjoint_kernel,
    .workspace = gather_adjoint_workspace,
    .vjp = gather_adjoint_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "Zeros of a shape, to which the elements of x are added at the places that gather reads: its gradient.\n"
           "Gradient: the cotangent, gathered.",
    .samples = TD_SAMPLES{{"3,2; 3,2", "axis=1, shape=(3, 4)", -3, 2, "float64; int64"}, TD_SAMPLES_END},
};

static td_tensor *gather_back(td_scope *s, td_tensor *c, td_tensor *index, int64_t axis, int rank,
                              const int64_t *shape) {
  const td_arg args[] = {TD_INT_ARG(axis), td_ints_arg(rank, shape)};
  return td_scope_apply(s, &gather_adjoint, args, 2, c, index);
}

td_tensor *td_gather(td_scope *s, td_tensor *x, td_tensor *index, int64_t axis) {
  return gather_with(s, x, index, axis);
}

td_tensor *td_gather_adjoint(td_scope *s, td_tensor *c, td_tensor *index, int64_t axis, int rank,
                             const int64_t *shape) {
  return gather_back(s, c, index, axis, rank, shape);
}

// ---- scatter, scatter_add, put_along_axis ----

// Modes under all the names that users bring.
static const struct {
  const char *name;
  enum td_scatter mode;
} modes[] = {{"set", TD_SCATTER_SET},      {"add", TD_SCATTER_ADD},      {"mul", TD_SCATTER_MULTIPLY},
             {"max", TD_SCATTER_MAXIMUM},  {"min", TD_SCATTER_MINIMUM},  {"sum", TD_SCATTER_ADD},
             {"prod", TD_SCATTER_MULTIPLY}, {"multiply", TD_SCATTER_MULTIPLY}, {"amax", TD_SCATTER_MAXIMUM},
             {"amin", TD_SCATTER_MINIMUM}};
static const char *const mode_names[] = {"set",  "add",      "mul",  "max",  "min", "sum",
                                         "prod", "multiply", "amax", "amin", NULL};
enum { MODE_SET, MODE_ADD };

static const td_op scatter, scatter_add, put_along_axis;

static enum td_scatter mode_of(const td_op *op, const td_arg *args) {
  return op == &scatter_add ? TD_SCATTER_ADD : op == &scatter ? modes[args[1].i].mode : TD_SCATTER_SET;
}

static int scatter_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *source = &infer->in[2];
  td_meta index = infer->in[1];
  int code = infer->op == &put_along_axis ? check_broadcast(infer, x, &infer->in[1], infer->args[0].i, false, &index)
                                          : check_inside(infer, x, &index, infer->args[0].i);
  if (!code) code = td_infer_written(infer, x, source);
  if (code) return code;
  infer->out[0] = *x;
  return td_infer_fits(infer, "source of shape", source, &index);
}

static void scatter_index(const td_call *call, td_view *index) {
  td_view same;
  if (call->op == &put_along_axis)
    spread(&call->in[0], &call->in[1], wrapped(call->args[0].i, call->in[0].rank), &same, index);
  else *index = call->in[1];
}

static int scatter_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *out = &call->out[0];
  td_view index;
  scatter_index(call, &index);
  td_elements_copy(call->context->pool, out->data, x->data, td_dtype_bytes(x->dtype), x->rank, x->shape, x->strides);
  return write_along(call, out, &index, &call->in[2], wrapped(call->args[0].i, x->rank),
                     mode_of(call->op, call->args));
}

static int64_t scatter_workspace(const td_call *call) {
  td_view index;
  scatter_index(call, &index);
  return write_bytes(call, &call->out[0], &index, &call->in[2], wrapped(call->args[0].i, call->in[0].rank),
                     mode_of(call->op, call->args));
}

static td_tensor *scatter_with(td_scope *s, td_tensor *x, td_tensor *index, td_tensor *source, int64_t axis, int mode) {
  const td_arg args[] = {TD_INT_ARG(axis), TD_INT_ARG(mode)};
  return td_scope_apply(s, &scatter, args, 3, x, index, source);
}

static td_tensor *as_float(td_scope *s, td_tensor *truth, const td_tensor *like) {
  return truth && like ? td_cast(s, truth, like->dtype) : NULL;
}

// What the rules of all modes read: index and source in the index's full shape.
typedef struct written {
  td_scope *s;
  int64_t axis;
  td_tensor *c, *x, *index, *source, *out;
} written;

static td_tensor *back(const written *w, td_tensor *t) { return gather_with(w->s, t, w->index, w->axis); }

static td_tensor *added(const written *w, td_tensor *values) { // values added up in zeros of x's shape
  return w->c ? gather_back(w->s, values, w->index, w->axis, w->c->rank, w->c->shape) : NULL;
}

static void set_vjp(td_rule *rule, const written *w) { // numbers of the writes, put and read again, tell which stayed
  td_scope *s = w->s;
  td_tensor *zero = td_scope_number(s, 0, w->c);
  if (rule->needs[0]) rule->din[0] = scatter_with(s, w->c, w->index, zero, w->axis, MODE_SET);
  if (!rule->needs[2] || !w->index) return;
  td_meta counts = rule->out_meta[0];
  counts.dtype = TD_INT64;
  td_tensor *numbers = td_reshape(s, td_arange(s, w->index->size), w->index->rank, w->index->shape);
  td_tensor *last = scatter_with(s, td_scope_filled(s, 0, &counts), w->index, numbers, w->axis, MODE_SET);
  rule->din[2] = td_where(s, td_equal(s, back(w, last), numbers), back(w, w->c), zero);
}

// The product of a target's other factors, for each of its factors; zeros: those that are 0, counted. Nothing is
// divided by 0: a zero factor enters by itself, as what is left when it is the only other one, so that derivatives of
// the product of the others are right too.
static td_tensor *other_factors(td_scope *s, td_tensor *factor, td_tensor *product, td_tensor *zeros, td_tensor *sum) {
  td_tensor *zero = td_scope_number(s, 0, product), *one = td_scope_number(s, 1, product);
  td_tensor *is_zero = td_equal(s, factor, zero), *is_one = td_equal(s, zeros, one);
  td_tensor *with_zero = td_multiply(s, product, sum), *two = td_scope_number(s, 2, product);
  td_tensor *beside = td_where(s, td_equal(s, zeros, zero), product, td_where(s, is_one, with_zero, zero));
  td_tensor *other_zero = td_multiply(s, product, td_subtract(s, sum, factor));
  td_tensor *of_zero = td_where(s, is_one, product, td_where(s, td_equal(s, zeros, two), other_zero, zero));
  return td_where(s, is_zero, of_zero, td_divide(s, beside, td_where(s, is_zero, one, factor)));
}

// product: of the factors that aren't 0; sum: of those that are, which is 0 but has a derivative.
static void multiply_vjp(td_rule *rule, const written *w) {
  td_scope *s = w->s;
  td_tensor *zero = td_scope_number(s, 0, w->c), *one = td_scope_number(s, 1, w->c);
  td_tensor *source_is_zero = td_equal(s, w->source, zero), *x_is_zero = td_equal(s, w->x, zero);
  td_tensor *factors = td_where(s, source_is_zero, one, w->source);
  td_tensor *product = scatter_with(s, td_where(s, x_is_zero, one, w->x), w->index, factors, w->axis, 2);
  td_tensor *zeros = td_add(s, as_float(s, x_is_zero, w->c), added(w, as_float(s, source_is_zero, w->c)));
  td_tensor *sources = added(w, td_where(s, source_is_zero, w->source, zero));
  td_tensor *sum = td_add(s, td_where(s, x_is_zero, w->x, zero), sources);
  if (rule->needs[0]) rule->din[0] = td_chain(s, w->c, other_factors(s, w->x, product, zeros, sum));
  if (rule->needs[2])
    rule->din[2] = td_chain(s, back(w, w->c),
                            other_factors(s, w->source, back(w, product), back(w, zeros), back(w, sum)));
}

static void extreme_vjp(td_rule *rule, const written *w) { // those that are the largest share alike
  td_scope *s = w->s;
  td_tensor *zero = td_scope_number(s, 0, w->c);
  td_tensor *x_is_it = td_equal(s, w->x, w->out), *source_is_it = td_equal(s, w->source, back(w, w->out));
  td_tensor *count = td_add(s, as_float(s, x_is_it, w->c), added(w, as_float(s, source_is_it, w->c)));
  td_tensor *share = td_chain_quotient(s, w->c, count);
  if (rule->needs[0]) rule->din[0] = td_where(s, x_is_it, share, zero);
  if (rule->needs[2]) rule->din[2] = td_where(s, source_is_it, back(w, share), zero);
}

static int scatter_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  enum td_scatter mode = mode_of(rule->op, rule->args);
  written w = {s, rule->args[0].i, rule->cotangent[0], rule->in[0], rule->in[1], rule->in[2], rule->out[0]};
  if (rule->op == &put_along_axis) w.index = spread_index(rule, wrapped(w.axis, rule->out_meta[0].rank));
  if (w.index && w.source) {
    if (w.source->dtype != w.c->dtype) w.source = td_cast(s, w.source, w.c->dtype);
    w.source = td_broadcast_to(s, w.source, w.index->rank, w.index->shape);
  }
  if (mode == TD_SCATTER_SET) set_vjp(rule, &w);
  else if (mode == TD_SCATTER_MULTIPLY) multiply_vjp(rule, &w);
  else if (mode != TD_SCATTER_ADD) extreme_vjp(rule, &w);
  else {
    if (rule->needs[0]) rule->din[0] = w.c;
    if (rule->needs[2]) rule->din[2] = back(&w, w.c);
  }
  return TD_OK;
}

static int scatter_batch(td_batching *b) { // source broadcasts to the index
  int code = td_batch_axes(b);
  return code ? code : td_batch_elementwise(b);
}

#define SOURCE_PARAM \
  { .name = "source", .kind = TD_PARAM_TENSOR, .alias = TD_ALIAS("src", "value", "values") }

static const td_op scatter = {
    .name = "scatter",
    .alias = TD_ALIAS("scatter_reduce"),
    .params = {TD_X,
               INDEX_PARAM,
               SOURCE_PARAM,
               AXIS_PARAM,
               {.name = "mode",
                .kind = TD_PARAM_CHOICE,
                .fallback = TD_INT_DEFAULT(MODE_SET),
                .choices = mode_names,
                .alias = TD_ALIAS("reduce")}},
    .kind = TD_KIND_INDEX,
    .method = true,
    .infer = scatter_infer,
    .batch = scatter_batch,
    .kernel = scatter_kernel,
    .workspace = scatter_workspace,
    .vjp = scatter_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc =
        "x with source written to the places that gather reads: for axis 1 out[i, index[i, j]] = source[i, j]. source "
        "broadcasts to index's shape and takes x's dtype. mode says what happens to the element there: \"set\" (of "
        "repeated places the last one stays), \"add\", \"mul\", \"max\" or \"min\", in the order of the indices; "
        "PyTorch's words \"sum\", \"prod\", \"amax\" and \"amin\" and its order scatter(x, axis, index, source) are "
        "understood.\n"
        "Gradient: of what was overwritten 0; of \"max\" and \"min\" those that tie share it.",
    .example = "scatter(zeros(3), [2, 0], tensor([5., 6.]), axis=0).tolist()  # [6.0, 0.0, 5.0]",
    .samples = TD_SAMPLES{{"3,4; 3,2; 3,2", "axis=1", -3, 2, "float64; int64; float64"},
                          {"4,3; 5,2; -", "axis=0", -3, 2, "float64; int64; float64"},
                          {"3,4; 3,6; 3,6", "axis=1, mode=\"add\"", -3, 2, "float64; int64; float64"},
                          {"4,3; 6,2; 6,2", "axis=0, mode=\"mul\"", -3, 2, "float64; int64; float64"},
                          {"3,4; 2,6; 2,6", "axis=-1, mode=\"amax\"", -3, 2, "float64; int64; float64"},
                          {"3,4; 2,6; 6", "axis=-1, mode=\"min\"", -3, 2, "float64; int32; float64"},
                          {"3,4; 2,0; -", "axis=-1", -3, 2, "float64; int32; float64"},
                          TD_SAMPLES_END},
};

static const td_op scatter_add = {
    .name = "scatter_add",
    .params = {TD_X, INDEX_PARAM, SOURCE_PARAM, AXIS_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR,
    .method = true,
    .infer = scatter_infer,
    .batch = scatter_batch,
    .kernel = scatter_kernel,
    .workspace = scatter_workspace,
    .vjp = scatter_vjp,
    .saves = TD_SAVES_IN1,
    .doc =
        "x with source added at the places that gather reads, in the order of the indices: scatter with mode=\"add\".\n"
        "Gradient: for x the cotangent, for source the cotangent, gathered.",
    .example = "scatter_add(zeros(3), [2, 0, 2], tensor([1., 2., 3.]), axis=0).tolist()  # [2.0, 0.0, 4.0]",
    .samples = TD_SAMPLES{{"3,4; 3,6; 3,6", "axis=1", -3, 2, "float64; int64; float64"}, TD_SAMPLES_END},
};

static const td_op put_along_axis = {
    .name = "put_along_axis",
    .params = {TD_X, INDEX_PARAM, SOURCE_PARAM, AXIS_PARAM},
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR | TD_HALF,
    .method = true,
    .infer = scatter_infer,
    .batch = scatter_batch,
    .kernel = scatter_kernel,
    .workspace = scatter_workspace,
    .vjp = scatter_vjp,
    .saves = TD_SAVES_IN1,
    .doc =
        "x with source written to the places that take_along_axis reads: scatter with the index broadcast to x along "
        "the other axes. Tensors are values, so the result is a new one.\n"
        "Gradient: of what was overwritten 0.",
    .example = "put_along_axis(zeros((2, 2)), tensor([[1], [0]]), 5., axis=1).tolist()  # [[0.0, 5.0], [5.0, 0.0]]",
    .samples = TD_SAMPLES{{"3,4; 3,2; 3,2", "axis=1", -3, 2, "float64; int64; float64"},
                          {"3,4; 1,2; -", "axis=1", -3, 2, "float64; int64; float64"},
                          {"3,4; 2,1; 4", "axis=0", -3, 2, "float64; int64; float64"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_scatter[] = {&gather,  &take_along_axis, &gather_adjoint,
                                          &scatter, &scatter_add,     &put_along_axis, NULL};
