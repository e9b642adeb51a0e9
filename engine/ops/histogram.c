// Counting and finding places among sorted edges: searchsorted, bucketize, bincount, histogram.
#include <math.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

// ---- places among sorted numbers ----

// The first place at which v could be put in order among n numbers; right: behind those that equal it. NaN counts as
// larger than any number.
#define PLACE(T, name)                                                            \
  static int64_t name(const char *edges, int64_t n, int64_t step, T v, bool right) { \
    int64_t low = 0, high = n;                                                    \
    while (low < high) {                                                          \
      int64_t middle = low + (high - low) / 2;                                    \
      T edge = *(const T *)(edges + middle * step);                               \
      bool below = edge < v || (v != v && edge == edge);                          \
      if (below || (right && (edge == v || (v != v && edge != edge)))) low = middle + 1; \
      else high = middle;                                                         \
    }                                                                             \
    return low;                                                                   \
  }
PLACE(int64_t, place_int64)
PLACE(double, place_float64)

typedef struct search {
  const td_view *edges;
  bool right, whole; // whole: both are integers
  int64_t line; // values of one line of edges
  const char *values; // row-major in int64 or float64
  int64_t *out;
} search;

static void search_range(void *argument, int64_t first, int64_t last) {
  const search *s = argument;
  const td_view *e = s->edges;
  int64_t n = e->shape[e->rank - 1];
  for (int64_t i = first; i < last; i++) {
    const char *edges = e->data + (e->rank > 1 ? i / s->line * n * 8 : 0);
    if (s->whole) s->out[i] = place_int64(edges, n, 8, ((const int64_t *)s->values)[i], s->right);
    else s->out[i] = place_float64(edges, n, 8, ((const double *)s->values)[i], s->right);
  }
}

static uint8_t compared_dtype(const td_call *call) {
  return td_dtype_is_float(td_dtype_promote(call->in[0].dtype, call->in[1].dtype)) ? TD_FLOAT64 : TD_INT64;
}

static int64_t search_workspace(const td_call *call) { // the edges lie first, whichever input they are
  uint8_t dtype = compared_dtype(call);
  return td_space_bytes(td_flat_bytes(&call->in[0], dtype)) + td_space_bytes(td_flat_bytes(&call->in[1], dtype));
}

static int search_run(const td_call *call, const td_view *edges, const td_view *values, bool right) {
  uint8_t dtype = compared_dtype(call);
  char *space = call->workspace;
  td_view flat = *edges;
  search s = {.edges = &flat, .right = right, .whole = dtype == TD_INT64, .line = 1};
  s.out = (int64_t *)call->out[0].data;
  if (!values->size) return TD_OK;
  flat.data = (char *)td_flat_fill(call->context->pool, edges, dtype,
                                   td_space_take(&space, td_flat_bytes(edges, dtype)));
  s.values = td_flat_fill(call->context->pool, values, dtype, space);
  if (values->rank) s.line = values->shape[values->rank - 1];
  td_ranges_run(call->context->pool, values->size, 32, search_range, &s);
  return TD_OK;
}

static int searchsorted_kernel(const td_call *call) { // right is PyTorch's word for side="right"
  return search_run(call, &call->in[0], &call->in[1], call->args[0].i || call->args[1].i);
}

// PyTorch's right: an edge belongs to the bucket on its left unless right is set, so value v is in (low, high].
static int bucketize_kernel(const td_call *call) {
  return search_run(call, &call->in[1], &call->in[0], call->args[0].i);
}

static int digitize_kernel(const td_call *call) {
  return search_run(call, &call->in[1], &call->in[0], !call->args[0].i);
}

static int search_infer(td_infer *infer) {
  const td_meta *edges = &infer->in[0], *values = &infer->in[1];
  infer->out[0] = *values;
  infer->out[0].dtype = TD_INT64;
  if (!edges->rank) return td_infer_fail(infer, TD_ERROR_SHAPE, "the sorted sequence must have an axis");
  if (edges->rank == 1) return TD_OK;
  bool fits = edges->rank == values->rank;
  for (int i = 0; fits && i < edges->rank - 1; i++) fits = edges->shape[i] == values->shape[i];
  if (fits) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE,
                       "the sorted sequences must be one line, or have the values' axes but the last");
}

static int bucket_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = TD_INT64;
  if (infer->in[1].rank == 1) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "the boundaries must be 1-d");
}

// ---- bincount ----

static int64_t integer_at(const td_view *x, int64_t i) { // of a 1-d view
  const char *at = x->data + i * x->strides[0] * td_dtype_bytes(x->dtype);
  switch (x->dtype) {
  case TD_BOOL:
  case TD_UINT8: return *(const uint8_t *)at;
  case TD_INT32: return *(const int32_t *)at;
  default: return *(const int64_t *)at;
  }
}

static double float_at(const td_view *x, int64_t i) {
  const char *at = x->data + i * x->strides[0] * td_dtype_bytes(x->dtype);
  return x->dtype == TD_FLOAT32 ? (double)*(const float *)at : *(const double *)at;
}

static int bincount_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *weights = &infer->in[1];
  int64_t least = infer->args[0].i, largest = -1;
  bool weighted = weights->rank <= TD_RANK_MAX;
  if (td_dtype_is_float(x->dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "counts integers, not %s", td_dtype_name(x->dtype));
  if (x->rank != 1) return td_infer_fail(infer, TD_ERROR_SHAPE, "x must be 1-d");
  if (least < 0)
    return td_infer_fail(infer, TD_ERROR_VALUE, "minlength must not be negative, it is %lld", (long long)least);
  if (weighted && !td_shape_equal(x->rank, x->shape, weights->rank, weights->shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "weights must have the shape of x");
  if (weighted && !td_dtype_is_float(weights->dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "weights must be floating");
  if (!infer->tensors) return td_infer_fail(infer, TD_ERROR_VALUE, "the shape of the result depends on values");
  td_view view;
  td_view_of(&view, infer->tensors[0]);
  for (int64_t i = 0; i < view.size; i++) {
    int64_t value = integer_at(&view, i);
    if (value < 0)
      return td_infer_fail(infer, TD_ERROR_VALUE, "element %lld is %lld: only numbers from 0 on can be counted",
                           (long long)i, (long long)value);
    if (value > largest) largest = value;
  }
  if (largest >= ((int64_t)1 << 48))
    return td_infer_fail(infer, TD_ERROR_VALUE, "the largest number, %lld, is too large", (long long)largest);
  infer->out[0] = (td_meta){.dtype = weighted ? weights->dtype : TD_INT64, .rank = 1};
  infer->out[0].shape[0] = largest + 1 > least ? largest + 1 : least;
  return TD_OK;
}

static int bincount_kernel(const td_call *call) {
  const td_view *x = &call->in[0], *weights = &call->in[1], *out = &call->out[0];
  double *sums = out->dtype == TD_FLOAT32 ? call->workspace : (double *)out->data;
  if (out->size) memset(sums, 0, (size_t)out->size * sizeof *sums); // counts are of 64 bits too
  for (int64_t i = 0; i < x->size; i++) {
    int64_t at = integer_at(x, i);
    if (!weights->data) ((int64_t *)out->data)[at]++;
    else sums[at] += float_at(weights, i);
  }
  if (out->dtype == TD_FLOAT32)
    for (int64_t i = 0; i < out->size; i++) ((float *)out->data)[i] = (float)sums[i];
  return TD_OK;
}

static int64_t bincount_workspace(const td_call *call) { // sums of float32 in double precision
  return call->out[0].dtype == TD_FLOAT32 ? call->out[0].size * (int64_t)sizeof(double) : 0;
}

static int bincount_vjp(td_rule *rule) {
  if (rule->needs[1]) rule->din[1] = td_take_slices(&rule->scope, rule->cotangent[0], rule->in[0], 0);
  return TD_OK;
}

// ---- rows ----

#define FLAG_PARAM(text) \
  { .name = text, .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }
static const char *const sides[] = {"left", "right", NULL};

static const td_op searchsorted = {
    .name = "searchsorted",
    .params = {{.name = "sorted_sequence", .kind = TD_PARAM_TENSOR, .alias = TD_ALIAS("a")},
               {.name = "values", .kind = TD_PARAM_TENSOR, .alias = TD_ALIAS("v")},
               {.name = "side", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(0), .choices = sides},
               FLAG_PARAM("right")},
    .kind = TD_KIND_OPAQUE,
    .infer = search_infer,
    .kernel = searchsorted_kernel,
    .workspace = search_workspace,
    .no_gradient = "integer result",
    .doc = "Where each of values could be put into a sorted sequence so that it stays sorted, as int64.\n"
           "side \"left\": before the elements that equal it, \"right\": behind them. The sequence is one line, or has "
           "the axes of values with a line of its own for each of theirs. NaN counts as larger than any number.",
    .example = "searchsorted(tensor([1., 3., 5.]), tensor([3., 4.])).tolist()  # [1, 2]",
    .samples = TD_SAMPLES{{"1; 3,4", NULL, -2, 2, NULL},
                          {"2,1; 2,3", "side=\"right\"", -2, 2, NULL},
                          {"0; 2", NULL, -2, 2, NULL},
                          {"1; -", NULL, -9, 9, "int64; int64"},
                          TD_SAMPLES_END},
};

#define BUCKET_ROW(NAME, EDGES, WORDS, EXAMPLE)                                                \
  static const td_op NAME = {                                                                  \
      .name = #NAME,                                                                           \
      .params = {TD_X, TD_TENSOR_PARAM(EDGES), FLAG_PARAM("right")},                           \
      .kind = TD_KIND_OPAQUE,                                                                  \
      .infer = bucket_infer,                                                                   \
      .kernel = NAME##_kernel,                                                                 \
      .workspace = search_workspace,                                                           \
      .no_gradient = "integer result",                                                         \
      .doc = WORDS,                                                                            \
      .example = EXAMPLE,                                                                      \
      .samples = TD_SAMPLES{{"3,4; 1", NULL, -2, 2, NULL},                                     \
                            {"5; 1", "right=True", -2, 2, NULL},                               \
                            {"2; 0", NULL, -2, 2, NULL},                                       \
                            TD_SAMPLES_END},                                                   \
  };
BUCKET_ROW(bucketize, "boundaries",
           "The bucket between sorted boundaries that each element falls into, as int64: 0 below the first.\n"
           "An element that equals a boundary is in the bucket on its left, with right=True in the one on its right, "
           "as in PyTorch; digitize has it the other way round.",
           "bucketize(tensor([0., 1., 2.]), tensor([1., 2.])).tolist()  # [0, 0, 1]")
BUCKET_ROW(digitize, "bins",
           "The bucket between sorted bins that each element falls into, as int64: 0 below the first.\n"
           "An element that equals an edge is in the bucket on its right, with right=True in the one on its left, as "
           "in NumPy; bucketize has it the other way round.",
           "digitize(tensor([0., 1., 2.]), tensor([1., 2.])).tolist()  # [0, 1, 2]")

static const td_op bincount = {
    .name = "bincount",
    .params = {TD_X,
               {.name = "weights", .kind = TD_PARAM_TENSOR_OPTIONAL},
               {.name = "minlength", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_LINEAR,
    .method = true,
    .infer = bincount_infer,
    .kernel = bincount_kernel,
    .workspace = bincount_workspace,
    .vjp = bincount_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "How often each number from 0 on stands in x, 1-d integers; with weights the sums of those.\n"
           "The result has the largest number + 1 elements, at least minlength. Counts are int64.\n"
           "Gradient, for weights: the cotangent at the place that each was added to.",
    .example = "bincount(tensor([0, 2, 2])).tolist()  # [1, 0, 2]",
    .samples = TD_SAMPLES{{"7; none", NULL, 0, 4, "int64"},
                          {"5; 5", "minlength=6", 0, 4, "int64; float64"},
                          {"0; none", "minlength=2", 0, 4, "int32"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_histogram[] = {&searchsorted, &bucketize, &digitize, &bincount, NULL};
