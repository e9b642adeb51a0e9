// Reductions that look at a line more than once: variance, standard deviation, logsumexp, norm.
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/lines.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"

// ---- the walk: one number from each line ----

typedef struct work work;
typedef double line_function(const work *w, int64_t line);

struct work {
  td_reduction r;
  bool single; // lines are float, else double
  double parameter; // ddof, or the norm's order
  line_function *line;
  td_view out;
};

static void run_lines(void *argument, int64_t first, int64_t last) {
  const work *w = argument;
  for (int64_t i = first; i < last; i++) {
    double value = w->line(w, i);
    if (w->out.dtype == TD_FLOAT32) ((float *)w->out.data)[i] = (float)value;
    else ((double *)w->out.data)[i] = value;
  }
}

static int reduce_lines(const td_call *call, const td_arg *axes, double parameter, line_function *line) {
  work w = {.single = call->out[0].dtype == TD_FLOAT32, .parameter = parameter, .line = line, .out = call->out[0]};
  bool reduced[TD_RANK_MAX];
  td_reduction_axes(axes, call->in[0].rank, reduced);
  int code = td_reduction_open(call, reduced, true, call->out[0].dtype, &w.r);
  if (code) return code;
  td_ranges_run(call->context->pool, w.r.outer, w.r.count * 2, run_lines, &w);
  td_flat_close(&w.r.flat);
  return TD_OK;
}

// ---- var, std ----

// Elements are taken relative to the first, so a constant line gives exactly 0.
#define VARIANCE(T, name)                                             \
  static double name##_variance(const T *x, int64_t n, double ddof) { \
    double sum = 0, squares = 0, rest = (double)n - ddof;             \
    if (!n) return NAN;                                               \
    double first = (double)x[0];                                      \
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] - first;      \
    double mean = sum / (double)n;                                    \
    for (int64_t i = 0; i < n; i++) {                                 \
      double d = ((double)x[i] - first) - mean;                       \
      squares += d * d;                                               \
    }                                                                 \
    return squares / (rest > 0 ? rest : 0);                           \
  }
VARIANCE(float, single)
VARIANCE(double, twofold)

static double line_variance(const work *w, int64_t line) {
  int64_t n = w->r.count, at = line * n;
  return w->single ? single_variance((const float *)w->r.flat.data + at, n, w->parameter)
                   : twofold_variance((const double *)w->r.flat.data + at, n, w->parameter);
}

static double line_deviation(const work *w, int64_t line) { return sqrt(line_variance(w, line)); }

static int spread_kernel(const td_call *call, line_function *line) {
  const td_view *in = &call->in[0];
  td_meta meta = {.rank = in->rank};
  for (int i = 0; i < in->rank; i++) meta.shape[i] = in->shape[i];
  int64_t count = td_reduction_count(&meta, &call->args[0]);
  if (count <= call->args[2].i && call->out[0].size && call->context->warn)
    call->context->warn(call->context->owner, "var or std of no more elements than ddof: there is no such number");
  return reduce_lines(call, &call->args[0], (double)call->args[2].i, line);
}

static int var_kernel(const td_call *call) { return spread_kernel(call, line_variance); }
static int std_kernel(const td_call *call) { return spread_kernel(call, line_deviation); }

static td_tensor *centred(td_rule *rule) { // x - mean(x)
  td_scope *s = &rule->scope;
  return td_subtract(s, rule->in[0], td_mean(s, rule->in[0], &rule->args[0], true));
}

static double freedom(const td_rule *rule) {
  double rest = (double)(td_reduction_count(&rule->in_meta[0], &rule->args[0]) - rule->args[2].i);
  return rest > 0 ? rest : 0;
}

static td_tensor *expanded(td_rule *rule, td_tensor *t) {
  return td_reduction_expand(rule, t, &rule->args[0], rule->args[1].i);
}

static int var_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = expanded(rule, rule->cotangent[0]);
  td_tensor *scaled = td_multiply(s, c, td_scope_number(s, 2 / freedom(rule), c));
  rule->din[0] = td_multiply(s, scaled, centred(rule));
  return TD_OK;
}

// 1 / t, and 0 where t is 0
static td_tensor *reciprocal(td_scope *s, td_tensor *t) {
  td_tensor *zero = td_scope_number(s, 0, t), *one = td_scope_number(s, 1, t), *none = td_equal(s, t, zero);
  return td_where(s, none, zero, td_divide(s, one, td_where(s, none, one, t)));
}

static int std_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *y = rule->out[0], *c = rule->cotangent[0];
  td_tensor *scaled = td_multiply(s, c, td_divide(s, reciprocal(s, y), td_scope_number(s, freedom(rule), y)));
  rule->din[0] = td_multiply(s, expanded(rule, scaled), centred(rule));
  return TD_OK;
}

// ---- logsumexp ----

static double line_logsumexp(const work *w, int64_t line) {
  int64_t n = w->r.count, at = line * n;
  if (w->single) {
    const float *x = (const float *)w->r.flat.data + at;
    float largest = td_single_largest(x, n);
    return isinf(largest) ? (double)largest : (double)largest + log(td_single_exponentials(x, n, largest, NULL));
  }
  const double *x = (const double *)w->r.flat.data + at;
  double largest = td_twofold_largest(x, n);
  return isinf(largest) ? largest : largest + log(td_twofold_exponentials(x, n, largest, NULL));
}

static int logsumexp_kernel(const td_call *call) { return reduce_lines(call, &call->args[0], 0, line_logsumexp); }

// exp(x - y), divided by its sum, which undoes the rounding of y: 0 for a line of -inf alone.
static int logsumexp_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *y = expanded(rule, rule->out[0]);
  if (!y || !x) return TD_OK;
  td_tensor *nothing = td_equal(s, y, td_scope_number(s, -INFINITY, y));
  y = td_where(s, nothing, td_scope_number(s, 0, y), y);
  td_tensor *share = td_where(s, td_equal(s, x, y), td_scope_number(s, 1, x), td_exp(s, td_subtract(s, x, y)));
  td_tensor *whole = td_where(s, nothing, td_scope_number(s, 1, x), td_sum(s, share, &rule->args[0], true));
  rule->din[0] = td_chain(s, expanded(rule, rule->cotangent[0]), td_divide(s, share, whole));
  return TD_OK;
}

// ---- norm ----

#define NORM(T, name)                                                                                      \
  static double name##_norm(const T *x, int64_t n, double order) {                                         \
    double largest = 0, sum = 0;                                                                           \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      double a = fabs((double)x[i]);                                                                       \
      largest = a > largest || a != a ? a : largest;                                                       \
    }                                                                                                      \
    if (isinf(order) || !(largest > 0) || isinf(largest)) return largest;                                  \
    double scale = order == 1 ? 1 : ldexp(1, -ilogb(largest)); /* nothing overflows, and no bit is lost */ \
    if (order == 1)                                                                                        \
      for (int64_t i = 0; i < n; i++) sum += fabs((double)x[i]);                                           \
    else if (order == 2)                                                                                   \
      for (int64_t i = 0; i < n; i++) sum += ((double)x[i] * scale) * ((double)x[i] * scale);              \
    else                                                                                                   \
      for (int64_t i = 0; i < n; i++) sum += pow(fabs((double)x[i]) * scale, order);                       \
    return (order == 1 ? sum : order == 2 ? sqrt(sum) : pow(sum, 1 / order)) / scale;                      \
  }
NORM(float, single)
NORM(double, twofold)

static double line_norm(const work *w, int64_t line) {
  int64_t n = w->r.count, at = line * n;
  return w->single ? single_norm((const float *)w->r.flat.data + at, n, w->parameter)
                   : twofold_norm((const double *)w->r.flat.data + at, n, w->parameter);
}

static int norm_kernel(const td_call *call) { return reduce_lines(call, &call->args[1], call->args[0].f, line_norm); }

static int norm_infer(td_infer *infer) {
  double order = infer->args[0].f;
  if (!(order >= 1)) return td_infer_fail(infer, TD_ERROR_VALUE, "ord must be at least 1, not %g", order);
  infer->out[0].dtype = td_dtype_is_float(infer->in[0].dtype) ? infer->in[0].dtype : TD_FLOAT32;
  return td_reduction_shape(infer, &infer->args[1], infer->args[2].i);
}

// Of |x| / y with y the norm: sign(x) (|x| / y)^(ord - 1); 0 where the norm is 0.
static int norm_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  double order = rule->args[0].f;
  td_tensor *x = rule->in[0];
  td_tensor *y = td_reduction_expand(rule, rule->out[0], &rule->args[1], rule->args[2].i);
  td_tensor *c = td_reduction_expand(rule, rule->cotangent[0], &rule->args[1], rule->args[2].i);
  if (!x || !y) return TD_OK;
  td_tensor *zero = td_scope_number(s, 0, x), *one = td_scope_number(s, 1, x), *minus = td_scope_number(s, -1, x);
  td_tensor *sign = td_where(s, td_greater(s, x, zero), one, td_where(s, td_less(s, x, zero), minus, zero)), *slope;
  if (order == 1) slope = sign;
  else if (order == 2) slope = td_multiply(s, x, reciprocal(s, y));
  else if (isinf(order)) {
    td_tensor *same = td_where(s, td_equal(s, td_multiply(s, x, sign), y), one, zero);
    slope = td_multiply(s, sign, td_divide(s, same, td_sum(s, same, &rule->args[1], true)));
  } else {
    td_tensor *ratio = td_multiply(s, td_multiply(s, x, sign), reciprocal(s, y));
    slope = td_multiply(s, sign, td_power(s, ratio, td_scope_number(s, order - 1, x)));
  }
  rule->din[0] = td_chain(s, c, slope);
  return TD_OK;
}

// ---- rows ----

static const td_sample spread_samples[] = {
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1, ddof=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    {"2,3", "axis=-1", -2, 2, NULL},
    TD_SAMPLES_END,
};
#define SPREAD_PARAMS                                                                                               \
  {                                                                                                                 \
    TD_X, TD_AXIS_PARAM, TD_KEEPDIMS_PARAM, { .name = "ddof", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0) } \
  }

static const td_op var = {
    .name = "var",
    .params = SPREAD_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = td_reduction_infer_floating,
    .batch = td_batch_axes,
    .kernel = var_kernel,
    .vjp = var_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "Mean squared distance from the mean, divided by n - ddof. The default ddof=0 is NumPy's; ddof=1 gives the "
           "unbiased "
           "estimate that PyTorch defaults to.\nGradient: 2 c (x - mean(x)) / (n - ddof).",
    .example = "var(tensor([1., 2., 3., 4.])).item()  # 1.25",
    .samples = spread_samples,
};

static const td_op std_op = {
    .name = "std",
    .params = SPREAD_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = td_reduction_infer_floating,
    .batch = td_batch_axes,
    .kernel = std_kernel,
    .vjp = std_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .doc = "Standard deviation, the root of var. The default ddof=0 is NumPy's; ddof=1 divides by n - 1, as PyTorch "
           "does by "
           "default.\nGradient: c (x - mean(x)) / ((n - ddof) std), and 0 where the deviation is 0.",
    .example = "std(tensor([1., 3.])).item()  # 1.0",
    .samples = spread_samples,
};

static const td_op logsumexp = {
    .name = "logsumexp",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = td_reduction_infer_floating,
    .batch = td_batch_axes,
    .kernel = logsumexp_kernel,
    .vjp = logsumexp_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .doc = "log(sum(exp(x))) over axis, without overflow. Of nothing, and of -inf alone, it is -inf.\n"
           "Gradient: c softmax(x), and 0 where all elements are -inf.",
    .example = "logsumexp(tensor([1000., 0.])).item()  # 1000.0",
    .samples = TD_SAMPLES{{"2,3", NULL, -2, 2, NULL},
                          {"2,3,4", "axis=1", -2, 2, NULL},
                          {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
                          {"0,3", "axis=1", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op norm = {
    .name = "norm",
    .params = {TD_X,
               {.name = "ord", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(2)},
               TD_AXIS_PARAM,
               TD_KEEPDIMS_PARAM},
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = norm_infer,
    .batch = td_batch_axes,
    .kernel = norm_kernel,
    .vjp = norm_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .doc = "Length of the vectors along axis (of all elements when None): (sum |x|^ord)^(1/ord), the largest |x| for "
           "ord = inf. "
           "Matrices are taken as vectors of their elements.\n"
           "Gradient: c sign(x) (|x| / norm)^(ord - 1); 0 where the norm is 0; elements that tie for ord = inf share.",
    .example = "norm(tensor([3., 4.])).item()  # 5.0",
    .samples = TD_SAMPLES{{"2,3", NULL, 0.5, 2, NULL},
                          {"2,3,4", "axis=1, ord=1", 0.5, 2, NULL},
                          {"2,3,4", "axis=(0, 2), keepdims=True, ord=3", 0.5, 2, NULL},
                          {"2,3", "ord=inf, axis=-1", 0.5, 2, NULL},
                          {"0,3", "axis=0", 0.5, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_statistics[] = {&var, &std_op, &logsumexp, &norm, NULL};
