// Order statistics over axes: median, quantile and percentile, with and without NaN. Each result lies between two
// elements of the order; their places and the weight of the upper one are hidden outputs, which lead the gradient back.
#include <math.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/order.h"
#include "engine/ops/reduce.h"

enum method { LINEAR, LOWER, HIGHER, NEAREST, MIDPOINT };
static const char *const methods[] = {"linear", "lower", "higher", "nearest", "midpoint", NULL};
enum { AXIS, KEEPDIMS, METHOD }; // arguments of quantiles
enum { RESULTS, LOWS, HIGHS, WEIGHTS, SORT_FROM = 3 /* from so many quantiles on a line is sorted */ };

typedef struct work {
  const td_call *call;
  int64_t count; // quantiles
  const double *quantiles;
  double scale; // 100: they are percentages
  enum method method;
  bool pass_nan; // NaN are left out
  int64_t lines;
} work;

typedef struct between {
  int64_t low, high; // ranks
  double weight; // of the higher one
} between;

static between ranks_of(const work *w, int64_t which, int64_t numbers) {
  double rank = w->quantiles[which] / w->scale * (double)(numbers - 1), low = floor(rank);
  between b = {(int64_t)low, (int64_t)ceil(rank), rank - low};
  switch (w->method) {
  case LOWER: b.high = b.low; break;
  case HIGHER: b.low = b.high; break;
  case NEAREST: b.low = b.high = (int64_t)rint(rank); break;
  case MIDPOINT: b.weight = b.low == b.high ? 0 : 0.5; break;
  default: break;
  }
  if (b.low == b.high) b.weight = 0;
  return b;
}

static double number_at(const td_ordered *line, int64_t place) {
  const char *at = td_order_element(line, place);
  switch (line->ordering->x->dtype) {
  case TD_BOOL:
  case TD_UINT8: return *(const uint8_t *)at;
  case TD_INT32: return *(const int32_t *)at;
  case TD_INT64: return (double)*(const int64_t *)at;
  case TD_FLOAT32: return (double)*(const float *)at;
  default: return *(const double *)at;
  }
}

static void put_number(const td_view *out, int64_t at, double value) {
  if (out->dtype == TD_FLOAT32) ((float *)out->data)[at] = (float)value;
  else ((double *)out->data)[at] = value;
}

// Between a and b, a <= b, which may be infinite and equal.
static double mix(double a, double b, double weight) {
  if (a == b || weight == 0) return a;
  if (isinf(a) || isinf(b)) return a * (1 - weight) + b * weight;
  return weight < 0.5 ? a + (b - a) * weight : b - (b - a) * (1 - weight);
}

static void quantile_line(void *owner, td_ordered *line) {
  const work *w = owner;
  const td_view *out = w->call->out;
  bool sorted = w->count >= SORT_FROM;
  int64_t n = line->ordering->n, numbers = w->pass_nan ? line->numbers : n;
  if (sorted) td_order_sort(line, n);
  if (td_pool_stopped(line->pool)) return;
  for (int64_t q = 0; q < w->count; q++) {
    int64_t at = q * w->lines + line->index;
    between b = ranks_of(w, q, numbers > 0 ? numbers : 1);
    if (line->numbers < n && (!w->pass_nan || !line->numbers)) b = (between){n - 1, n - 1, 0}; // a NaN
    int64_t low = sorted ? td_order_place(line, b.low) : td_order_select(line, b.low, false), high = low;
    if (b.high != b.low) high = sorted ? td_order_place(line, b.high) : td_order_select(line, b.high, false);
    put_number(&out[RESULTS], at, mix(number_at(line, low), number_at(line, high), b.weight));
    ((int64_t *)out[LOWS].data)[at] = low;
    ((int64_t *)out[HIGHS].data)[at] = high;
    put_number(&out[WEIGHTS], at, b.weight);
  }
}

static void open_axes(const td_call *call, const td_arg *axes, td_ordering *o) {
  bool line[TD_RANK_MAX];
  td_reduction_axes(axes, call->in[0].rank, line);
  td_order_open(o, &call->in[0], line, false);
}

// Of nothing: NaN, as the mean is.
static void fill_empty(const td_call *call) {
  for (int k = LOWS; k <= WEIGHTS; k++)
    if (call->out[k].size)
      memset(call->out[k].data, 0, (size_t)(call->out[k].size * td_dtype_bytes(call->out[k].dtype)));
  for (int64_t i = 0; i < call->out[RESULTS].size; i++) put_number(&call->out[RESULTS], i, (double)NAN);
  if (call->out[RESULTS].size && call->context->warn)
    call->context->warn(call->context->owner, "an order statistic of no elements is NaN");
}

static int order_statistic(const td_call *call, const td_arg *axes, void *space, work *w) {
  td_ordering o;
  open_axes(call, axes, &o);
  w->call = call;
  w->lines = o.lines;
  if (!o.n) fill_empty(call);
  td_order_run(&o, call->context->pool, space, quantile_line, w);
  return TD_OK;
}

static int median_run(const td_call *call, bool pass_nan) {
  static const double half = 0.5;
  work w = {.count = 1, .quantiles = &half, .scale = 1, .method = MIDPOINT, .pass_nan = pass_nan};
  return order_statistic(call, &call->args[0], call->workspace, &w);
}

static double scale_of(const td_op *op) { return strstr(op->name, "percentile") ? 100 : 1; }

static int quantile_run(const td_call *call, bool pass_nan) {
  td_scratch scratch = {.at = call->workspace};
  const double *q = td_scratch_view(&scratch, NULL, &call->in[1], TD_FLOAT64);
  work w = {.count = call->in[1].size, .quantiles = q, .scale = scale_of(call->op), .pass_nan = pass_nan};
  w.method = (enum method)call->args[METHOD].i;
  for (int64_t i = 0; i < w.count; i++)
    if (!(q[i] >= 0 && q[i] <= w.scale))
      return td_error_set(call->context, TD_ERROR_VALUE, "%s: q must be 0 to %g, not %g", call->op->name, w.scale,
                          q[i]);
  return order_statistic(call, &call->args[AXIS], td_scratch_take(&scratch, 0, 1), &w);
}

static int median_kernel(const td_call *call) { return median_run(call, false); }
static int nanmedian_kernel(const td_call *call) { return median_run(call, true); }
static int quantile_kernel(const td_call *call) { return quantile_run(call, false); }
static int nanquantile_kernel(const td_call *call) { return quantile_run(call, true); }

static int64_t workspace_over(const td_call *call, const td_arg *axes) {
  td_ordering o;
  open_axes(call, axes, &o);
  return td_order_bytes(&o, call->context->pool);
}

static int64_t median_workspace(const td_call *call) { return workspace_over(call, &call->args[0]); }
static int64_t quantile_workspace(const td_call *call) {
  td_scratch scratch = {0};
  td_scratch_view(&scratch, NULL, &call->in[1], TD_FLOAT64);
  return scratch.used + workspace_over(call, &call->args[AXIS]);
}

// ---- shapes ----

static void hide(td_infer *infer) {
  infer->out[LOWS] = infer->out[HIGHS] = infer->out[WEIGHTS] = infer->out[RESULTS];
  infer->out[LOWS].dtype = infer->out[HIGHS].dtype = TD_INT64;
}

static int median_infer(td_infer *infer) {
  int code = td_reduction_infer_floating(infer);
  hide(infer);
  return code;
}

// The axes of q stand before those of the reduction.
static int quantile_infer(td_infer *infer) {
  const td_meta *q = &infer->in[1];
  td_meta *out = &infer->out[RESULTS];
  out->dtype = td_dtype_is_float(infer->in[0].dtype) ? infer->in[0].dtype : TD_FLOAT32;
  int code = td_reduction_shape(infer, &infer->args[AXIS], infer->args[KEEPDIMS].i);
  if (code) return code;
  if (q->dtype == TD_BOOL) return td_infer_fail(infer, TD_ERROR_DTYPE, "q must be numbers, not bool");
  if (out->rank + q->rank > TD_RANK_MAX)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the result's rank would be above %d", TD_RANK_MAX);
  memmove(out->shape + q->rank, out->shape, out->rank * sizeof *out->shape);
  memcpy(out->shape, q->shape, q->rank * sizeof *out->shape);
  out->rank = (uint8_t)(out->rank + q->rank);
  hide(infer);
  return TD_OK;
}

// ---- gradients ----

// Cotangents of count results for each line, as [lines, count]; so are index and weight.
static td_tensor *as_lines(td_scope *s, td_tensor *t, int64_t count, int64_t lines) {
  const int64_t shape[] = {count, lines};
  return td_swap_last(s, td_reshape(s, t, 2, shape));
}

// The share of each of the two elements, in x.
static td_tensor *gradient_in_x(td_rule *rule, const td_turn *turn, td_tensor *c, int64_t count) {
  td_scope *s = &rule->scope;
  int64_t lines = turn->flat[0];
  c = as_lines(s, c, count, lines);
  td_tensor *weight = as_lines(s, rule->out[WEIGHTS], count, lines);
  td_tensor *upper = td_multiply(s, c, weight), *lower = td_subtract(s, c, upper);
  lower = td_gather_adjoint(s, lower, as_lines(s, rule->out[LOWS], count, lines), 1, 2, turn->flat);
  upper = td_gather_adjoint(s, upper, as_lines(s, rule->out[HIGHS], count, lines), 1, 2, turn->flat);
  return td_turn_from_lines(s, turn, td_add(s, lower, upper));
}

static int median_vjp(td_rule *rule) {
  td_turn turn = td_turn_of(&rule->in_meta[0], &rule->args[0]);
  td_tensor *c = rule->cotangent[RESULTS];
  if (c && turn.flat[0] && turn.flat[1]) rule->din[0] = gradient_in_x(rule, &turn, c, 1);
  return TD_OK;
}

// On the line between two elements the result moves with q by their difference times the number of steps between all
// elements, and the weight of the upper one by that number.
static td_tensor *gradient_in_q(td_rule *rule, const td_turn *turn, int64_t count) {
  td_scope *s = &rule->scope;
  int64_t lines = turn->flat[0];
  td_tensor *c = rule->cotangent[RESULTS], *to_weight = rule->cotangent[WEIGHTS];
  td_tensor *x = td_cast(s, td_turn_to_lines(s, turn, rule->in[0]), rule->out_meta[RESULTS].dtype);
  td_tensor *low = td_gather(s, x, as_lines(s, rule->out[LOWS], count, lines), 1);
  td_tensor *high = td_gather(s, x, as_lines(s, rule->out[HIGHS], count, lines), 1);
  td_tensor *slope = c ? td_chain(s, as_lines(s, c, count, lines), td_subtract(s, high, low)) : NULL;
  if (to_weight) {
    to_weight = as_lines(s, to_weight, count, lines);
    slope = slope ? td_add(s, slope, to_weight) : to_weight;
  }
  td_arg last = {.given = 1, .count = 1, .ints = {1}}, first = {.given = 1, .count = 1, .ints = {0}};
  td_tensor *steps = td_scope_number(s, (double)(turn->flat[1] - 1), x);
  if (strstr(rule->op->name, "nan")) {
    td_tensor *zero = td_scope_number(s, 0, x), *one = td_scope_number(s, 1, x);
    steps = td_subtract(s, td_sum(s, td_where(s, td_equal(s, x, x), one, zero), &last, true), one);
  }
  slope = td_multiply(s, slope, td_divide(s, steps, td_scope_number(s, scale_of(rule->op), x)));
  return td_reshape(s, td_sum(s, slope, &first, false), rule->in_meta[1].rank, rule->in_meta[1].shape);
}

static int quantile_vjp(td_rule *rule) {
  const td_meta x = td_tensor_meta(rule->in[0]);
  td_turn turn = td_turn_of(&x, &rule->args[AXIS]);
  td_tensor *c = rule->cotangent[RESULTS];
  int64_t count = td_shape_size(rule->out_meta[0].rank, rule->out_meta[0].shape);
  if (!count || !turn.flat[1]) return TD_OK;
  count /= turn.flat[0];
  if (rule->needs[0] && c) rule->din[0] = gradient_in_x(rule, &turn, c, count);
  if (rule->needs[1] && rule->args[METHOD].i == LINEAR) rule->din[1] = gradient_in_q(rule, &turn, count);
  return TD_OK;
}

// ---- rows ----

#define MEDIAN_ROW(NAME, WORDS, EXAMPLE)                                                                     \
  static const td_op NAME##_op = {                                                                           \
      .name = #NAME,                                                                                         \
      .params = TD_REDUCE_PARAMS,                                                                            \
      .kind = TD_KIND_REDUCE,                                                                                \
      .outputs = 4,                                                                                          \
      .shown = 1,                                                                                            \
      .method = true,                                                                                        \
      .infer = median_infer,                                                                                 \
      .kernel = NAME##_kernel,                                                                               \
      .workspace = median_workspace,                                                                         \
      .vjp = median_vjp,                                                                                     \
      .saves = TD_SAVES_OUTPUT,                                                                              \
      .doc = WORDS "\nOf an even number of elements it is the mean of the two in the middle, as in NumPy; "  \
                   "PyTorch gives the lower one, quantile(x, 0.5, method=\"lower\").\n"                      \
                   "Gradient: the cotangent for the element in the middle, halved where there are two.",     \
      .example = EXAMPLE,                                                                                    \
      .samples = median_samples,                                                                             \
  };
static const td_sample median_samples[] = {
    {"7", NULL, -2, 2, NULL},
    {"3,4", "axis=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    {"-", NULL, -2, 2, NULL},
    {"0,3", "axis=1", -2, 2, NULL},
    {"2,4", NULL, -9, 9, "int64"},
    TD_SAMPLES_END,
};
MEDIAN_ROW(median, "The middle element over axis (all axes when None); NaN where there is one, and of nothing.",
           "median(tensor([4., 1., 3., 2.])).item()  # 2.5")
MEDIAN_ROW(nanmedian, "The middle one of the elements over axis that are not NaN; NaN where there is none.",
           "nanmedian(tensor([4., nan, 3.])).item()  # 3.5")

#define QUANTILE_ROW(NAME, KERNEL, WORDS, SAMPLES, EXAMPLE)                                                    \
  static const td_op NAME##_op = {                                                                             \
      .name = #NAME,                                                                                           \
      .params = {TD_X,                                                                                         \
                 {.name = "q", .kind = TD_PARAM_INDEX},                                                        \
                 TD_AXIS_PARAM,                                                                                \
                 TD_KEEPDIMS_PARAM,                                                                            \
                 {.name = "method",                                                                            \
                  .kind = TD_PARAM_CHOICE,                                                                     \
                  .fallback = TD_INT_DEFAULT(LINEAR),                                                          \
                  .choices = methods,                                                                          \
                  .alias = TD_ALIAS("interpolation")}},                                                        \
      .kind = TD_KIND_REDUCE,                                                                                  \
      .outputs = 4,                                                                                            \
      .shown = 1,                                                                                              \
      .method = true,                                                                                          \
      .infer = quantile_infer,                                                                                 \
      .kernel = KERNEL,                                                                                        \
      .workspace = quantile_workspace,                                                                         \
      .vjp = quantile_vjp,                                                                                     \
      .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,                                                                 \
      .doc = WORDS "\nWhere it falls between two elements, method says what it is: on the line between them "   \
                   "(linear), the lower, the higher, the nearest or their midpoint. The axes of q, a number or a "  \
                   "tensor of any rank, stand before those of the result.\n"                                   \
                   "Gradient: the cotangent, shared by the two elements as they were mixed; in q, between two " \
                   "elements of a line, their difference times the number of steps from the least to the largest.", \
      .example = EXAMPLE,                                                                                      \
      .samples = SAMPLES,                                                                                      \
  };
// q lies between the elements' places, where its derivative is one number.
static const td_sample quantile_samples[] = {
    {"7; -", NULL, 0.55, 0.65, NULL},
    {"3,4; 3", "axis=1", 0.4, 0.6, NULL},
    {"2,3,4; -", "axis=-1, keepdims=True, method=\"lower\"", 0.4, 0.6, NULL},
    {"6; 2", "method=\"higher\"", 0.7, 0.75, NULL},
    {"6; -", "method=\"nearest\"", 0.42, 0.45, NULL},
    {"6,2; -", "axis=0, method=\"midpoint\"", 0.45, 0.55, NULL},
    {"3,4; 2,10", "axis=(0, 1)", 0.65, 0.7, NULL},
    {"-; -", NULL, 0.2, 0.9, NULL},
    {"0,3; -", "axis=1", 0.2, 0.9, NULL},
    {"3,2; 0", "axis=1", 0.2, 0.9, NULL},
    TD_SAMPLES_END,
};
static const td_sample percentile_samples[] = {
    {"7; -", NULL, 55, 65, NULL},
    {"3,4; 3", "axis=1", 40, 60, NULL},
    TD_SAMPLES_END,
};
QUANTILE_ROW(
    quantile, quantile_kernel,
    "The value below which a share q (0 to 1) of the elements over axis lies; NaN where there is one, and of nothing.",
    quantile_samples, "quantile(tensor([1., 2., 3., 4., 5.]), 0.25).item()  # 2.0")
QUANTILE_ROW(nanquantile, nanquantile_kernel,
             "quantile of the elements over axis that are not NaN; NaN where there is none.", quantile_samples,
             "nanquantile(tensor([1., nan, 3.]), 0.5).item()  # 2.0")
QUANTILE_ROW(percentile, quantile_kernel, "quantile with q in percent, 0 to 100.", percentile_samples,
             "percentile(tensor([1., 2., 3., 4., 5.]), 75).item()  # 4.0")
QUANTILE_ROW(nanpercentile, nanquantile_kernel, "nanquantile with q in percent, 0 to 100.", percentile_samples,
             "nanpercentile(tensor([1., nan, 3.]), 50).item()  # 2.0")

const td_op *const td_family_quantile[] = {&median_op,      &nanmedian_op,    &quantile_op, &nanquantile_op,
                                           &percentile_op, &nanpercentile_op, NULL};
