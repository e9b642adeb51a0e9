// softmax and log_softmax along an axis. Each line is shifted by its own largest element, so nothing overflows.
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/lines.h"
#include "engine/ops/map.h"

#define SOFTMAX(T, name)                                                               \
  TD_CLONES static void name##_softmax(const T *x, T *out, int64_t n) {                \
    double scale = 1 / td_##name##_exponentials(x, n, td_##name##_largest(x, n), out); \
    for (int64_t i = 0; i < n; i++) out[i] = (T)(out[i] * scale);                      \
  }                                                                                    \
  TD_CLONES static void name##_log_softmax(const T *x, T *out, int64_t n) {            \
    T largest = td_##name##_largest(x, n);                                             \
    T rest = (T)log(td_##name##_exponentials(x, n, largest, NULL));                    \
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] - largest) - rest;                  \
  }
SOFTMAX(float, single)
SOFTMAX(double, twofold)

typedef struct work {
  td_lines lines;
  bool single, logarithm;
} work;

static void run_lines(void *argument, int64_t first, int64_t last) {
  const work *w = argument;
  int64_t n = w->lines.length;
  for (int64_t i = first * n; i < last * n; i += n) {
    if (w->single)
      (w->logarithm ? single_log_softmax : single_softmax)((const float *)w->lines.in + i, (float *)w->lines.out + i,
                                                           n);
    else
      (w->logarithm ? twofold_log_softmax : twofold_softmax)((const double *)w->lines.in + i,
                                                             (double *)w->lines.out + i, n);
  }
}

static int run(const td_call *call, bool logarithm) {
  const td_view *out = &call->out[0];
  int axis = (int)(call->args[0].i < 0 ? call->args[0].i + out->rank : call->args[0].i);
  work w = {.single = out->dtype == TD_FLOAT32, .logarithm = logarithm};
  int code = td_lines_open(call, axis, out->dtype, &w.lines);
  if (code) return code;
  td_ranges_run(call->context->pool, w.lines.count, w.lines.length * 4, run_lines, &w);
  td_lines_close(call, axis, &w.lines);
  return TD_OK;
}

static int softmax_kernel(const td_call *call) { return run(call, false); }
static int log_softmax_kernel(const td_call *call) { return run(call, true); }

static int softmax_infer(td_infer *infer) {
  int axis;
  infer->out[0] = infer->in[0];
  if (!td_dtype_is_float(infer->in[0].dtype)) infer->out[0].dtype = TD_FLOAT32;
  return td_infer_axis(infer, infer->args[0].i, infer->in[0].rank, &axis);
}

static td_tensor *sum_along(td_rule *rule, td_tensor *t) {
  td_arg axis = {.given = 1, .count = 1, .ints = {rule->args[0].i}};
  return td_sum(&rule->scope, t, &axis, true);
}

static int softmax_vjp(td_rule *rule) { // y (c - sum(c y))
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *y = rule->out[0];
  rule->din[0] = td_multiply(s, y, td_subtract(s, c, sum_along(rule, td_multiply(s, c, y))));
  return TD_OK;
}

static int log_softmax_vjp(td_rule *rule) { // c - softmax(x) sum(c)
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  rule->din[0] = td_subtract(s, c, td_multiply(s, td_exp(s, rule->out[0]), sum_along(rule, c)));
  return TD_OK;
}

static const td_sample line_samples[] = {
    {"3,4", NULL, -2, 2, NULL}, {"2,3,4", "axis=1", -2, 2, NULL}, {"5", "axis=0", -2, 2, NULL},
    {"0,3", NULL, -2, 2, NULL}, {"2,1", NULL, -2, 2, NULL},       TD_SAMPLES_END,
};
#define LINE_PARAMS                                                                 \
  {                                                                                 \
    TD_X, { .name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(-1) } \
  }

static const td_op softmax = {
    .name = "softmax",
    .params = LINE_PARAMS,
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = softmax_infer,
    .batch = td_batch_axes,
    .kernel = softmax_kernel,
    .vjp = softmax_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "exp(x) / sum(exp(x)) along axis, shifted by each line's largest element so that nothing overflows.\n"
           "Gradient: y (c - sum(c y)) for the result y and its cotangent c.",
    .example = "softmax(tensor([[0., 0.], [1000., 1000.]])).tolist()  # [[0.5, 0.5], [0.5, 0.5]]",
    .samples = line_samples,
};

static const td_op log_softmax = {
    .name = "log_softmax",
    .params = LINE_PARAMS,
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = softmax_infer,
    .batch = td_batch_axes,
    .kernel = log_softmax_kernel,
    .vjp = log_softmax_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "x - log(sum(exp(x))) along axis, without overflow.\nGradient: c - softmax(x) sum(c) for the cotangent c.",
    .example = "log_softmax(tensor([1000., 0.])).tolist()  # [0.0, -1000.0]",
    .samples = line_samples,
};

td_tensor *td_softmax(td_scope *s, td_tensor *x, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, &softmax, args, 1, x);
}

td_tensor *td_log_softmax(td_scope *s, td_tensor *x, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, &log_softmax, args, 1, x);
}

const td_op *const td_family_softmax[] = {&softmax, &log_softmax, NULL};
