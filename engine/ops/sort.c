// Sorting along an axis: sort, argsort, topk, kthvalue. Their indices lead the gradients back.
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/order.h"
#include "engine/ops/reduce.h"

// ---- kernels ----

enum { PART = 1 << 16 }; // results that are put between looks at whether the pool is stopped

typedef struct work {
  const td_call *call;
  int64_t count; // results of a line
  int64_t k; // kthvalue: the place in the order; else -1
  bool sorted;
  int64_t few; // so many first ones are enough; else 0
  int64_t inner; // elements from one result of a line to the next
  td_view *values, *indices; // values may be NULL
} work;

static void put(const work *w, const td_ordered *line, int64_t i, int64_t place) {
  int64_t at = (line->index / w->inner * w->count + i) * w->inner + line->index % w->inner;
  ((int64_t *)w->indices->data)[at] = place;
  if (!w->values) return;
  int bytes = td_dtype_bytes(w->values->dtype);
  const char *element = td_order_element(line, place);
  char *out = w->values->data + at * bytes;
  if (bytes == 4) memcpy(out, element, 4);
  else if (bytes == 8) memcpy(out, element, 8);
  else *out = *element;
}

static void sort_line(void *owner, td_ordered *line) {
  const work *w = owner;
  if (w->k >= 0) {
    put(w, line, 0, td_order_select(line, w->k, false));
    return;
  }
  if (w->count < line->ordering->n) {
    if (w->count) td_order_select(line, w->count - 1, true);
    if (w->sorted) td_order_sort(line, w->count);
  } else td_order_sort(line, w->count);
  for (int64_t i = 0; i < w->count && (i % PART || !td_pool_stopped(line->pool)); i++)
    put(w, line, i, td_order_place(line, i));
}

static void put_first(void *owner, const td_ordered *line, const int64_t *places) {
  const work *w = owner;
  if (w->k >= 0) put(w, line, 0, places[w->k]);
  else
    for (int64_t i = 0; i < w->count; i++) put(w, line, i, places[i]);
}

static int axis_of(const td_call *call, int arg) {
  int rank = call->in[0].rank ? call->in[0].rank : 1; // rank 0 is taken as one axis
  return (int)(call->args[arg].i < 0 ? call->args[arg].i + rank : call->args[arg].i);
}

static void open_axis(const td_call *call, int axis, bool downwards, td_ordering *o) {
  bool line[TD_RANK_MAX] = {0};
  if (axis < call->in[0].rank) line[axis] = true;
  td_order_open(o, &call->in[0], line, downwards);
}

static int order_kernel(const td_call *call, int axis, bool downwards, work *w) {
  td_ordering o;
  open_axis(call, axis, downwards, &o);
  w->call = call;
  w->inner = 1;
  for (int i = axis + 1; i < call->in[0].rank; i++) w->inner *= call->in[0].shape[i];
  if (w->few) td_order_first(&o, call->context->pool, w->few, put_first, w);
  else td_order_run(&o, call->context->pool, call->workspace, sort_line, w);
  return TD_OK;
}

static int64_t order_workspace(const td_call *call, int axis) {
  td_ordering o;
  open_axis(call, axis, false, &o);
  return td_order_bytes(&o, call->context->pool);
}

static int64_t length_along(const td_view *x, int axis) { return axis < x->rank ? x->shape[axis] : 1; }

static int64_t few_of(const td_call *call) { // of topk and kthvalue: k, where the first few of the lines are enough
  int64_t k = call->args[0].i;
  return k <= TD_ORDER_FEW && k < length_along(&call->in[0], axis_of(call, 1)) ? k : 0;
}

static int sort_kernel(const td_call *call) {
  td_view values = call->out[0], indices = call->out[1];
  int axis = axis_of(call, 0);
  work w = {.count = length_along(&call->in[0], axis), .k = -1, .values = &values, .indices = &indices};
  return order_kernel(call, axis, call->args[1].i, &w);
}

static int argsort_kernel(const td_call *call) {
  td_view indices = call->out[0];
  int axis = axis_of(call, 0);
  work w = {.count = length_along(&call->in[0], axis), .k = -1, .indices = &indices};
  return order_kernel(call, axis, call->args[1].i, &w);
}

static int topk_kernel(const td_call *call) {
  td_view values = call->out[0], indices = call->out[1];
  work w = {.count = call->args[0].i, .k = -1, .sorted = call->args[3].i, .values = &values, .indices = &indices};
  w.few = few_of(call);
  return order_kernel(call, axis_of(call, 1), call->args[2].i, &w);
}

static int kthvalue_kernel(const td_call *call) {
  td_view values = call->out[0], indices = call->out[1];
  work w = {.count = 1, .k = call->args[0].i - 1, .few = few_of(call), .values = &values, .indices = &indices};
  return order_kernel(call, axis_of(call, 1), false, &w);
}

static int64_t sort_workspace(const td_call *call) { return order_workspace(call, axis_of(call, 0)); }
static int64_t pick_workspace(const td_call *call) {
  return few_of(call) ? 0 : order_workspace(call, axis_of(call, 1));
}

// ---- shapes ----

// As in PyTorch a 0-d tensor is a line of one element.
static int line_axis(td_infer *infer, int arg, int *axis) {
  int rank = infer->in[0].rank;
  return td_infer_axis(infer, infer->args[arg].i, rank ? rank : 1, axis);
}

static int sort_infer(td_infer *infer) {
  int axis;
  infer->out[0] = infer->out[1] = infer->in[0];
  infer->out[1].dtype = TD_INT64;
  return line_axis(infer, 0, &axis);
}

static int argsort_infer(td_infer *infer) {
  int axis;
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = TD_INT64;
  return line_axis(infer, 0, &axis);
}

static int count_in_line(td_infer *infer, int64_t least, int *axis, int64_t *length) {
  int code = line_axis(infer, 1, axis);
  if (code) return code;
  int64_t k = infer->args[0].i;
  *length = infer->in[0].rank ? infer->in[0].shape[*axis] : 1;
  if (k >= least && k <= *length) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "k must be %lld to %lld, the size of axis %d, not %lld", (long long)least,
                       (long long)*length, *axis, (long long)k);
}

static int topk_infer(td_infer *infer) {
  int axis;
  int64_t length;
  int code = count_in_line(infer, 0, &axis, &length);
  infer->out[0] = infer->in[0];
  if (!code && infer->in[0].rank) infer->out[0].shape[axis] = infer->args[0].i;
  if (!code && !infer->in[0].rank && !infer->args[0].i)
    infer->out[0] = (td_meta){.dtype = infer->in[0].dtype, .rank = 1};
  infer->out[1] = infer->out[0];
  infer->out[1].dtype = TD_INT64;
  return code;
}

static int kthvalue_infer(td_infer *infer) {
  int axis;
  int64_t length;
  int code = count_in_line(infer, 1, &axis, &length);
  td_arg axes = {.given = 1, .count = infer->in[0].rank > 0, .ints = {infer->args[1].i}};
  infer->out[0].dtype = infer->in[0].dtype;
  if (!code) code = td_reduction_shape(infer, &axes, infer->args[2].i);
  infer->out[1] = infer->out[0];
  infer->out[1].dtype = TD_INT64;
  return code;
}

// ---- gradients ----

static int found_vjp(td_rule *rule, int axis_arg) { // cotangents go to the elements that were found
  const td_meta *in = &rule->in_meta[0];
  td_tensor *c = rule->cotangent[0], *index = rule->out[1];
  if (!c) return TD_OK;
  if (!in->rank) rule->din[0] = td_reshape(&rule->scope, td_sum(&rule->scope, c, NULL, false), 0, NULL);
  else rule->din[0] = td_gather_adjoint(&rule->scope, c, index, rule->args[axis_arg].i, in->rank, in->shape);
  return TD_OK;
}

static int sort_vjp(td_rule *rule) { return found_vjp(rule, 0); }
static int topk_vjp(td_rule *rule) { return found_vjp(rule, 1); }

static int kthvalue_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *in = &rule->in_meta[0];
  const td_arg axes = {.given = 1, .count = 1, .ints = {rule->args[1].i}};
  td_tensor *c = rule->cotangent[0], *index = rule->out[1];
  if (!c) return TD_OK;
  if (!in->rank) {
    rule->din[0] = c;
    return TD_OK;
  }
  if (!rule->args[2].i) {
    c = td_expand_axes(s, c, &axes, in->rank);
    index = td_expand_axes(s, index, &axes, in->rank);
  }
  rule->din[0] = td_gather_adjoint(s, c, index, rule->args[1].i, in->rank, in->shape);
  return TD_OK;
}

static int line_batch(td_batching *b) { // a 0-d example has no axis of its own
  return b->meta[0].rank ? td_batch_axes(b) : TD_BATCH_EACH;
}

// ---- rows ----

#define AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(-1) }
#define FLAG_PARAM(text, value) \
  { .name = text, .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(value) }
#define K_PARAM \
  { .name = "k", .kind = TD_PARAM_INT, .required = true }

static const td_sample sort_samples[] = {
    {"7", NULL, -2, 2, NULL},
    {"3,4", "axis=0, descending=True", -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL},
    {"2,40", NULL, -2, 2, NULL},
    {"0,3", "axis=0", -2, 2, NULL},
    {"3,0", NULL, -2, 2, NULL},
    {"-", NULL, -2, 2, NULL},
    {"3,5", NULL, -9, 9, "int64"},
    TD_SAMPLES_END,
};
static const td_sample topk_samples[] = {
    {"7", "k=3", -2, 2, NULL},
    {"3,4", "k=2, axis=0, largest=False", -2, 2, NULL},
    {"2,50", "k=40", -2, 2, NULL},
    {"2,3", "k=3", -2, 2, NULL},
    {"2,3", "k=0", -2, 2, NULL},
    {"-", "k=1", -2, 2, NULL},
    {"9", "k=4", 0, 99, "int32"},
    TD_SAMPLES_END,
};
static const td_sample kth_samples[] = {
    {"7", "k=3", -2, 2, NULL},
    {"3,4", "k=2, axis=0", -2, 2, NULL},
    {"2,50", "k=40, keepdims=True", -2, 2, NULL},
    {"-", "k=1", -2, 2, NULL},
    {"0,3", "k=2, axis=1", -2, 2, NULL},
    TD_SAMPLES_END,
};
#define ORDER_WORDS "NaN counts as larger than any number; equal elements keep their order."

static const td_op sort_op = {
    .name = "sort",
    .params = {TD_X, AXIS_PARAM, FLAG_PARAM("descending", 0), FLAG_PARAM("stable", 1)},
    .kind = TD_KIND_OPAQUE,
    .outputs = 2,
    .method = true,
    .infer = sort_infer,
    .kernel = sort_kernel,
    .workspace = sort_workspace,
    .batch = line_batch,
    .vjp = sort_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "The elements in order along axis, and where each one stood, as a tuple (values, indices).\n" ORDER_WORDS
           " It is always stable, also without stable=True.\n"
           "Gradient: each cotangent goes back to the element's place.",
    .example = "[t.tolist() for t in sort(tensor([3., 1., 2.]))]  # [[1.0, 2.0, 3.0], [1, 2, 0]]",
    .samples = sort_samples,
};

static const td_op argsort_op = {
    .name = "argsort",
    .params = {TD_X, AXIS_PARAM, FLAG_PARAM("descending", 0), FLAG_PARAM("stable", 1)},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = argsort_infer,
    .kernel = argsort_kernel,
    .workspace = sort_workspace,
    .batch = line_batch,
    .no_gradient = "integer result",
    .doc = "The indices that put the elements in order along axis. int64.\n" ORDER_WORDS,
    .example = "argsort(tensor([3., 1., 2.])).tolist()  # [1, 2, 0]",
    .samples = sort_samples,
};

static const td_op topk_op = {
    .name = "topk",
    .alias = TD_ALIAS("top_k"),
    .params = {TD_X, K_PARAM, AXIS_PARAM, FLAG_PARAM("largest", 1), FLAG_PARAM("sorted", 1)},
    .kind = TD_KIND_OPAQUE,
    .outputs = 2,
    .method = true,
    .infer = topk_infer,
    .kernel = topk_kernel,
    .workspace = pick_workspace,
    .batch = line_batch,
    .vjp = topk_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "The k largest elements along axis (the smallest with largest=False), as a tuple (values, indices).\n"
           ORDER_WORDS " sorted=False leaves them in any order.\n"
           "Gradient: each cotangent goes back to the element's place.",
    .example = "[t.tolist() for t in topk(tensor([3., 1., 4., 1.]), 2)]  # [[4.0, 3.0], [2, 0]]",
    .samples = topk_samples,
};

static const td_op kthvalue_op = {
    .name = "kthvalue",
    .params = {TD_X, K_PARAM, AXIS_PARAM, TD_KEEPDIMS_PARAM},
    .kind = TD_KIND_REDUCE,
    .outputs = 2,
    .method = true,
    .infer = kthvalue_infer,
    .kernel = kthvalue_kernel,
    .workspace = pick_workspace,
    .batch = line_batch,
    .vjp = kthvalue_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "The k-th smallest element along axis, k from 1 on, and where it stands, as a tuple (value, index).\n"
           ORDER_WORDS "\nGradient: the cotangent goes back to the element's place.",
    .example = "[t.item() for t in kthvalue(tensor([3., 1., 4.]), 2)]  # [3.0, 0]",
    .samples = kth_samples,
};

const td_op *const td_family_sort[] = {&sort_op, &argsort_op, &topk_op, &kthvalue_op, NULL};
