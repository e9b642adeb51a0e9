// Rows by number: one_hot makes them, segment ops bring together those of one number.
#include <math.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/gather.h"
#include "engine/ops/map.h"

static const td_arg first_axis = {.given = 1, .count = 1, .ints = {0}};

// The count of numbers that an argument gives, or, where it is None, one more than the largest in ids.
static int numbers_count(td_infer *infer, int ids, const td_arg *given, int64_t *n) {
  if (given->given && given->i < 0 && given->i != -1)
    return td_infer_fail(infer, TD_ERROR_VALUE, "n is negative: %lld", (long long)given->i);
  *n = given->i;
  if (given->given && given->i >= 0) return TD_OK;
  if (!infer->tensors)
    return td_infer_fail(infer, TD_ERROR_VALUE, "without n the shape of the result depends on values");
  const td_tensor *t = infer->tensors[ids];
  *n = 0;
  for (int64_t i = 0; i < t->size; i++) {
    int64_t next = td_tensor_get_int(t, i);
    if (next == INT64_MAX) return td_infer_fail(infer, TD_ERROR_VALUE, "the largest number is %lld", (long long)next);
    if (next >= *n) *n = next + 1;
  }
  return TD_OK;
}

// ---- one_hot ----

static int one_hot_infer(td_infer *infer) {
  td_meta *out = &infer->out[0];
  int code = td_index_dtype(infer, &infer->in[0]);
  if (code) return code;
  if (infer->in[0].rank == TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "rank %d is the most that tensors can have", TD_RANK_MAX);
  *out = infer->in[0];
  out->dtype = (uint8_t)infer->args[1].i;
  return numbers_count(infer, 0, &infer->args[0], &out->shape[out->rank++]);
}

static int one_hot_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  int64_t n = out->shape[out->rank - 1], count = call->in[0].size, bytes = td_dtype_bytes(out->dtype);
  const int64_t one = 1;
  uint64_t bits = 0;
  const int64_t *index = (const int64_t *)td_flat_fill(call->context->pool, &call->in[0], TD_INT64, call->workspace);
  memset(out->data, 0, (size_t)(out->size * bytes));
  td_cast_run(&bits, out->dtype, &one, TD_INT64, 0, 1, false);
  for (int64_t i = 0; i < count; i++) {
    if (index[i] < 0 || index[i] >= n)
      return td_error_set(call->context, TD_ERROR_INDEX,
                          "one_hot: element %lld of index is %lld, out of range for n = %lld", (long long)i,
                          (long long)index[i], (long long)n);
    memcpy(out->data + (i * n + index[i]) * bytes, &bits, (size_t)bytes);
  }
  return TD_OK;
}

static int64_t one_hot_workspace(const td_call *call) { return td_flat_bytes(&call->in[0], TD_INT64); }

static const td_op one_hot = {
    .name = "one_hot",
    .params = {{.name = "index", .kind = TD_PARAM_INDEX, .alias = TD_ALIAS("indices")},
               {.name = "n", .kind = TD_PARAM_INT, .alias = TD_ALIAS("num_classes", "depth")},
               {.name = "dtype", .kind = TD_PARAM_DTYPE, .fallback = TD_INT_DEFAULT(TD_FLOAT32)}},
    .kind = TD_KIND_INDEX,
    .flags = TD_HALF,
    .infer = one_hot_infer,
    .kernel = one_hot_kernel,
    .workspace = one_hot_workspace,
    .no_gradient = "integer input",
    .doc =
        "Rows of n zeros with a 1 at each index: [..., n]. An index outside 0 to n - 1 is an error. Without n, or with "
        "PyTorch's -1, n is the largest index + 1.",
    .example = "one_hot([2, 0], 3).tolist()  # [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]",
    .samples = TD_SAMPLES{{"4", "n=3", 0, 2, "int64"},
                          {"2,2", "n=3, dtype=int64", 0, 2, "uint8"},
                          {"-", "n=3", 0, 2, "int64"},
                          {"5", NULL, 0, 2, "int32"},
                          TD_SAMPLES_END},
};

// ---- segments ----

static int segment_infer(td_infer *infer) {
  const td_meta *source = &infer->in[0], *ids = &infer->in[1];
  td_meta *out = &infer->out[0];
  int code = td_index_dtype(infer, ids);
  if (code) return code;
  if (ids->rank > source->rank || !td_shape_equal(ids->rank, ids->shape, ids->rank, source->shape) || !ids->rank)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "ids must have the shape of source's first axes");
  out->dtype = source->dtype;
  out->rank = 1;
  for (int i = ids->rank; i < source->rank; i++) out->shape[out->rank++] = source->shape[i];
  return numbers_count(infer, 1, &infer->args[0], &out->shape[0]);
}

static int segment_mean_infer(td_infer *infer) {
  int code = segment_infer(infer);
  if (!td_dtype_is_float(infer->out[0].dtype)) infer->out[0].dtype = TD_FLOAT32;
  return code;
}

static int combine(const td_call *call, enum td_scatter mode, void *space) {
  return td_scatter_at(call, &call->out[0], &call->in[0], &call->in[1], 1, &first_axis, mode, space);
}

static int64_t combine_bytes(const td_call *call, enum td_scatter mode) {
  return td_scatter_at_bytes(call->context->pool, &call->out[0], &call->in[0], &call->in[1], 1, &first_axis, mode);
}

static int64_t sum_workspace(const td_call *call) { return combine_bytes(call, TD_SCATTER_ADD); }
static int64_t extreme_workspace(const td_call *call) { return combine_bytes(call, TD_SCATTER_MAXIMUM); }

static void fill_zero(const td_view *out) { memset(out->data, 0, (size_t)(out->size * td_dtype_bytes(out->dtype))); }

static int segment_sum_kernel(const td_call *call) {
  fill_zero(&call->out[0]);
  return combine(call, TD_SCATTER_ADD, call->workspace);
}

static int segment_sum_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = td_take_slices(&rule->scope, rule->cotangent[0], rule->in[1], 0);
  return TD_OK;
}

// Sums divided by how many there were, which are counted in the workspace's first part.
static int segment_mean_kernel(const td_call *call) {
  const td_view *out = &call->out[0], *ids = &call->in[1];
  int64_t n = out->shape[0], row = n ? out->size / n : 0;
  char *at = call->workspace;
  int64_t *counts = td_space_take(&at, n * (int64_t)sizeof *counts);
  fill_zero(out);
  int code = combine(call, TD_SCATTER_ADD, at);
  if (code) return code;
  const int64_t *numbers = (const int64_t *)td_flat_fill(call->context->pool, ids, TD_INT64, at);
  if (n) memset(counts, 0, (size_t)n * sizeof *counts);
  for (int64_t i = 0; i < ids->size; i++) counts[numbers[i] < 0 ? numbers[i] + n : numbers[i]]++;
  for (int64_t k = 0; k < n; k++) {
    double count = counts[k] ? (double)counts[k] : 1;
    if (out->dtype == TD_FLOAT32)
      for (int64_t i = 0; i < row; i++) ((float *)out->data)[k * row + i] /= (float)count;
    else
      for (int64_t i = 0; i < row; i++) ((double *)out->data)[k * row + i] /= count;
  }
  return TD_OK;
}

static int64_t segment_mean_workspace(const td_call *call) {
  int64_t numbers = td_flat_bytes(&call->in[1], TD_INT64), bytes = sum_workspace(call);
  return td_space_bytes(call->out[0].shape[0] * (int64_t)sizeof(int64_t)) + (bytes > numbers ? bytes : numbers);
}

static td_tensor *segment_with(td_scope *s, const td_op *op, td_tensor *source, td_tensor *ids, int64_t n) {
  const td_arg args[] = {TD_INT_ARG(n)};
  return td_scope_apply(s, op, args, 2, source, ids);
}

static const td_op segment_sum;

// A column for each segment that goes with rows of out's shape.
static td_tensor *counts_of(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_meta *out = &rule->out_meta[0];
  int64_t shape[TD_RANK_MAX] = {out->shape[0]};
  for (int i = 1; i < out->rank; i++) shape[i] = 1;
  td_meta ones = {.dtype = out->dtype, .rank = rule->in[1]->rank};
  memcpy(ones.shape, rule->in[1]->shape, sizeof ones.shape);
  td_tensor *counts = segment_with(s, &segment_sum, td_scope_filled(s, 1, &ones), rule->in[1], out->shape[0]);
  return td_reshape(s, counts, out->rank, shape);
}

static int segment_mean_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (!rule->needs[0]) return TD_OK;
  rule->din[0] = td_take_slices(s, td_chain_quotient(s, rule->cotangent[0], counts_of(rule)), rule->in[1], 0);
  return TD_OK;
}

// The identity of max (lowest) or min in every place.
static void fill_identity(const td_view *out, bool lowest) {
  double infinite = lowest ? -INFINITY : INFINITY;
  bool whole = !td_dtype_is_float(out->dtype);
  int64_t limit = lowest ? INT64_MIN : INT64_MAX;
  td_cast_run(out->data, out->dtype, whole ? (const void *)&limit : &infinite, whole ? TD_INT64 : TD_FLOAT64, 0,
              out->size, true);
}

static int segment_max_kernel(const td_call *call) {
  fill_identity(&call->out[0], true);
  return combine(call, TD_SCATTER_MAXIMUM, call->workspace);
}

static int segment_min_kernel(const td_call *call) {
  fill_identity(&call->out[0], false);
  return combine(call, TD_SCATTER_MINIMUM, call->workspace);
}

static int segment_extreme_vjp(td_rule *rule) { // those that tie share alike
  td_scope *s = &rule->scope;
  td_tensor *ids = rule->in[1], *c = rule->cotangent[0];
  if (!rule->needs[0]) return TD_OK;
  td_tensor *is_it = td_equal(s, rule->in[0], td_take_slices(s, rule->out[0], ids, 0));
  td_tensor *one = is_it ? td_cast(s, is_it, c->dtype) : NULL;
  td_tensor *share = td_chain_quotient(s, c, segment_with(s, &segment_sum, one, ids, c->shape[0]));
  rule->din[0] = td_where(s, is_it, td_take_slices(s, share, ids, 0), td_scope_number(s, 0, c));
  return TD_OK;
}

#define SEGMENT_PARAMS                                                                                  \
  {                                                                                                     \
    TD_TENSOR_PARAM("source"), {.name = "ids", .kind = TD_PARAM_INDEX, .alias = TD_ALIAS("segment_ids")}, { \
      .name = "n", .kind = TD_PARAM_INT, .alias = TD_ALIAS("num_segments")                              \
    }                                                                                                   \
  }
#define SEGMENT_WORDS                                                                                       \
  ", for each number from 0 to n - 1: [n, ...]. ids has the shape of source's first axes and need not be sorted. " \
  "Without n it is the largest number + 1.\n"
#define SEGMENT_SAMPLES                                               \
  TD_SAMPLES {                                                        \
    {"5; 5", "n=4", 0, 2, "float64; int64"},                          \
        {"5,3; 5", NULL, 0, 2, "float64; int64"},                     \
        {"2,3,2; 2,3", "n=3", 0, 2, "float64; int32"},                \
        {"0,3; 0", "n=2", 0, 2, "float64; int64"}, TD_SAMPLES_END     \
  }

static const td_op segment_sum = {
    .name = "segment_sum",
    .alias = TD_ALIAS("unsorted_segment_sum"),
    .params = SEGMENT_PARAMS,
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR,
    .infer = segment_infer,
    .kernel = segment_sum_kernel,
    .workspace = sum_workspace,
    .vjp = segment_sum_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "Sum of the rows of source that have one number in ids" SEGMENT_WORDS
           "Added in the order of the rows, on any number of threads.\n"
           "Gradient: the cotangent's row of each number.",
    .example = "segment_sum(tensor([1., 2., 3.]), [0, 2, 0], 3).tolist()  # [4.0, 0.0, 2.0]",
    .samples = SEGMENT_SAMPLES,
};

static const td_op segment_mean = {
    .name = "segment_mean",
    .alias = TD_ALIAS("unsorted_segment_mean"),
    .params = SEGMENT_PARAMS,
    .kind = TD_KIND_INDEX,
    .flags = TD_LINEAR,
    .infer = segment_mean_infer,
    .kernel = segment_mean_kernel,
    .workspace = segment_mean_workspace,
    .vjp = segment_mean_vjp,
    .saves = TD_SAVES_IN1,
    .doc = "Mean of the rows of source that have one number in ids" SEGMENT_WORDS
           "0 for a number that is not there. Integers give float32.\n"
           "Gradient: the cotangent's row of each number over how many have it.",
    .example = "segment_mean(tensor([1., 2., 3.]), [0, 2, 0], 3).tolist()  # [2.0, 0.0, 2.0]",
    .samples = SEGMENT_SAMPLES,
};

#define SEGMENT_EXTREME(NAME, LONG, WORD, EMPTY, EXAMPLE)                                                            \
  static const td_op NAME = {                                                                                        \
      .name = #NAME,                                                                                                 \
      .alias = TD_ALIAS(LONG),                                                                                       \
      .params = SEGMENT_PARAMS,                                                                                      \
      .kind = TD_KIND_INDEX,                                                                                         \
      .infer = segment_infer,                                                                                        \
      .kernel = NAME##_kernel,                                                                                       \
      .workspace = extreme_workspace,                                                                                \
      .vjp = segment_extreme_vjp,                                                                                    \
      .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,                                                                    \
      .doc = WORD                                                                                                    \
      " of the rows of source that have one number in ids" SEGMENT_WORDS EMPTY                                       \
      " for a number that is not there, an integer dtype's limit. NaN where there is one, which gets no gradient.\n" \
      "Gradient: the cotangent's row of each number for the element found; those that tie share it.",                \
      .example = EXAMPLE,                                                                                            \
      .samples = TD_SAMPLES{{"8; 8", "n=3", 0, 2, "float64; int64"},                                                 \
                            {"3,3,2; 3,3", NULL, 0, 2, "float64; int32"},                                            \
                            TD_SAMPLES_END},                                                                         \
  };
SEGMENT_EXTREME(segment_max, "unsorted_segment_max", "Largest", "-inf",
                "segment_max(tensor([1., 2., 3.]), [0, 1, 0], 2).tolist()  # [3.0, 2.0]")
SEGMENT_EXTREME(segment_min, "unsorted_segment_min", "Smallest", "inf",
                "segment_min(tensor([1., 2., 3.]), [0, 1, 0], 2).tolist()  # [1.0, 2.0]")

const td_op *const td_family_segment[] = {&one_hot, &segment_sum, &segment_mean, &segment_max, &segment_min, NULL};
