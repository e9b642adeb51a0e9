// softmax and log_softmax along an axis. Each line is shifted by its own largest element, so nothing overflows.
#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/lines.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

enum { COLUMNS = 256, WORK = 1 << 13 }; // side by side; elements of a unit, about

#define SOFTMAX(T, name)                                                                                       \
  TD_CLONES static void name##_softmax(const T *x, T *out, int64_t n) {                                        \
    T scale = (T)(1 / td_##name##_exponentials(x, n, -1, td_##name##_largest(x, n), out));                     \
    for (int64_t i = 0; i < n; i++) out[i] *= scale;                                                           \
  }                                                                                                            \
  TD_CLONES static void name##_log_softmax(const T *x, T *out, int64_t n) {                                    \
    T largest = td_##name##_largest(x, n);                                                                     \
    /* the others are added up without one of the largest, or their digits are lost */                         \
    int64_t first = td_##name##_first(x, n, largest);                                                          \
    double others = td_##name##_exponentials(x, n, first, largest, NULL);                                      \
    T rest = (T)log1p(x[first] == largest ? others : NAN); /* no number is the largest */                      \
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] - largest) - rest;                                          \
  }                                                                                                            \
  /* Lines side by side: n rows of so many columns, pitch apart. x and out may be the same. */                 \
  TD_CLONES static void name##_softmax_columns(const T *x, T *out, int64_t n, int64_t columns, int64_t pitch,          \
                                       bool logarithm) {                                                       \
    T largest[COLUMNS];                                                                                        \
    double sum[COLUMNS] = {0}, first[COLUMNS] = {0}; /* 1, the first largest's, is added at last */            \
    for (int64_t c = 0; c < columns; c++) largest[c] = x[c];                                                   \
    for (int64_t r = 1; r < n; r++)                                                                            \
      for (int64_t c = 0; c < columns; c++) largest[c] = MAXIMUM(x[r * pitch + c], largest[c]);                \
    for (int64_t r = 0; r < n; r++) { /* loops apart: each vectorises */                                       \
      T d[COLUMNS], e[COLUMNS];                                                                                \
      for (int64_t c = 0; c < columns; c++) d[c] = x[r * pitch + c] - largest[c];                              \
      for (int64_t c = 0; c < columns; c++) e[c] = EXP(d[c]);                                                  \
      for (int64_t c = 0; c < columns; c++) {                                                                  \
        double own = (d[c] == 0) & (first[c] == 0);                                                            \
        sum[c] += (double)e[c] - own;                                                                          \
        first[c] += own;                                                                                       \
      }                                                                                                        \
      memcpy(out + r * pitch, logarithm ? d : e, (size_t)columns * sizeof(T));                                 \
    }                                                                                                          \
    for (int64_t c = 0; c < columns; c++) sum[c] = logarithm ? (double)(T)log1p(sum[c]) : 1 / (1 + sum[c]);    \
    for (int64_t r = 0; r < n; r++)                                                                            \
      TD_INDEPENDENT for (int64_t c = 0; c < columns; c++) {                                                   \
        T v = out[r * pitch + c];                                                                              \
        out[r * pitch + c] = logarithm ? v - (T)sum[c] : v * (T)sum[c];                                        \
      }                                                                                                        \
  }
SOFTMAX(float, single)
SOFTMAX(double, twofold)

// y (c - sum(c y))
#define ADJOINT(T, name)                                                                                       \
  TD_CLONES static void name##_adjoint(const T *restrict y, const T *restrict c, T *restrict out, int64_t n) { \
    enum { LANES = 32, BLOCK = 512 }; /* so few numbers that their sum may be a T */                           \
    double sum = 0;                                                                                            \
    for (int64_t i = 0; i < n;) {                                                                              \
      int64_t end = n - i < BLOCK ? n : i + BLOCK;                                                             \
      T lanes[LANES] = {0};                                                                                    \
      for (; i + LANES <= end; i += LANES) {                                                                   \
        __builtin_prefetch(y + i + BLOCK);                                                                     \
        __builtin_prefetch(y + i + BLOCK + LANES / 2);                                                         \
        __builtin_prefetch(c + i + BLOCK);                                                                     \
        __builtin_prefetch(c + i + BLOCK + LANES / 2);                                                         \
        for (int l = 0; l < LANES; l++) lanes[l] += y[i + l] * c[i + l];                                       \
      }                                                                                                        \
      for (int half = LANES / 2; half; half /= 2)                                                              \
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                                            \
      sum += (double)lanes[0];                                                                                 \
      for (; i < end; i++) sum += (double)y[i] * (double)c[i];                                                 \
    }                                                                                                          \
    T share = (T)sum;                                                                                          \
    for (int64_t i = 0; i < n; i++) out[i] = y[i] * (c[i] - share);                                            \
  }                                                                                                            \
  TD_CLONES static void name##_adjoint_columns(const T *restrict y, const T *restrict c, T *restrict out,      \
                                               int64_t n, int64_t columns, int64_t pitch) {                    \
    double sum[COLUMNS] = {0};                                                                                 \
    for (int64_t r = 0; r < n; r++)                                                                            \
      for (int64_t i = 0; i < columns; i++) sum[i] += (double)y[r * pitch + i] * (double)c[r * pitch + i];     \
    for (int64_t r = 0; r < n; r++)                                                                            \
      for (int64_t i = 0; i < columns; i++)                                                                    \
        out[r * pitch + i] = y[r * pitch + i] * (c[r * pitch + i] - (T)sum[i]);                                \
  }
ADJOINT(float, single)
ADJOINT(double, twofold)

// c - exp(y) sum(c). An element that has more than half is c (1 - exp(y)) - exp(y) (sum(c) - c): then nothing cancels.
#define LOG_ADJOINT(T, name)                                                                                       \
  static inline T name##_lone_gradient(T y, T c, double total) {                                                   \
    return (T)(-(double)EXPM1(y) * (double)c - (double)EXP(y) * (total - (double)c));                              \
  }                                                                                                                \
  TD_CLONES static double name##_log_sum(const T *c, int64_t n) {                                                  \
    enum { LANES = 32 };                                                                                           \
    double lanes[LANES] = {0}, rest = 0;                                                                           \
    int64_t i = 0;                                                                                                 \
    for (; i + LANES <= n; i += LANES)                                                                             \
      for (int l = 0; l < LANES; l++) lanes[l] += (double)c[i + l];                                                \
    for (; i < n; i++) rest += (double)c[i];                                                                       \
    for (int half = LANES / 2; half; half /= 2)                                                                    \
      for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];                                                  \
    return lanes[0] + rest;                                                                                        \
  }                                                                                                                \
  TD_CLONES static void name##_log_adjoint(const T *restrict y, const T *restrict c, T *restrict out, int64_t n) { \
    double total = name##_log_sum(c, n);                                                                           \
    T share = (T)total, largest = td_##name##_largest(y, n);                                                       \
    for (int64_t i = 0; i < n; i++) out[i] = c[i] - EXP(y[i]) * share;                                             \
    if (!(largest > (T)-0.69)) return;                                                                             \
    int64_t lone = td_##name##_first(y, n, largest);                                                               \
    out[lone] = name##_lone_gradient(y[lone], c[lone], total);                                                     \
  }                                                                                                                \
  TD_CLONES static void name##_log_adjoint_columns(const T *restrict y, const T *restrict c, T *restrict out,      \
                                                   int64_t n, int64_t columns, int64_t pitch) {                    \
    double total[COLUMNS] = {0};                                                                                   \
    for (int64_t r = 0; r < n; r++)                                                                                \
      for (int64_t i = 0; i < columns; i++) total[i] += (double)c[r * pitch + i];                                  \
    for (int64_t r = 0; r < n; r++, y += pitch, c += pitch, out += pitch) {                                        \
      for (int64_t i = 0; i < columns; i++) out[i] = c[i] - EXP(y[i]) * (T)total[i];                               \
      for (int64_t i = 0; i < columns; i++)                                                                        \
        if (y[i] > (T)-0.69) out[i] = name##_lone_gradient(y[i], c[i], total[i]);                                  \
    }                                                                                                              \
  }
LOG_ADJOINT(float, single)
LOG_ADJOINT(double, twofold)

enum kind { SOFTMAX_OF_LINES, LOGARITHM_OF_LINES, ADJOINT_OF_LINES, LOG_ADJOINT_OF_LINES };

typedef struct work { // outer x n x inner elements
  const char *x, *c; // c: of the adjoints alone
  char *out;
  int64_t outer, n, inner, lines, blocks; // lines: outer ones of a unit; blocks: of columns
  bool single;
  enum kind kind;
} work;

static void run_line(const work *w, int64_t place) {
  int64_t at = place * (w->single ? 4 : 8);
  const void *x = w->x + at, *c = w->c ? w->c + at : NULL;
  void *out = w->out + at;
  if (w->kind == ADJOINT_OF_LINES && w->single) single_adjoint(x, c, out, w->n);
  else if (w->kind == ADJOINT_OF_LINES) twofold_adjoint(x, c, out, w->n);
  else if (w->kind == LOG_ADJOINT_OF_LINES && w->single) single_log_adjoint(x, c, out, w->n);
  else if (w->kind == LOG_ADJOINT_OF_LINES) twofold_log_adjoint(x, c, out, w->n);
  else if (w->single) (w->kind == LOGARITHM_OF_LINES ? single_log_softmax : single_softmax)(x, out, w->n);
  else (w->kind == LOGARITHM_OF_LINES ? twofold_log_softmax : twofold_softmax)(x, out, w->n);
}

static void run_columns(const work *w, int64_t place, int64_t columns) {
  int64_t at = place * (w->single ? 4 : 8);
  const void *x = w->x + at, *c = w->c ? w->c + at : NULL;
  void *out = w->out + at;
  if (w->kind == ADJOINT_OF_LINES && w->single)
    single_adjoint_columns(x, c, out, w->n, columns, w->inner);
  else if (w->kind == ADJOINT_OF_LINES)
    twofold_adjoint_columns(x, c, out, w->n, columns, w->inner);
  else if (w->kind == LOG_ADJOINT_OF_LINES && w->single)
    single_log_adjoint_columns(x, c, out, w->n, columns, w->inner);
  else if (w->kind == LOG_ADJOINT_OF_LINES)
    twofold_log_adjoint_columns(x, c, out, w->n, columns, w->inner);
  else if (w->single) single_softmax_columns(x, out, w->n, columns, w->inner, w->kind == LOGARITHM_OF_LINES);
  else twofold_softmax_columns(x, out, w->n, columns, w->inner, w->kind == LOGARITHM_OF_LINES);
}

static void run_unit(void *argument, int64_t unit) {
  const work *w = argument;
  int64_t column = unit % w->blocks * COLUMNS, outer = unit / w->blocks * w->lines;
  int64_t last = outer + w->lines < w->outer ? outer + w->lines : w->outer;
  int64_t columns = w->inner - column < COLUMNS ? w->inner - column : COLUMNS;
  for (; outer < last; outer++) {
    if (w->inner == 1) run_line(w, outer * w->n);
    else run_columns(w, outer * w->n * w->inner + column, columns);
  }
}

static int run(const td_call *call, enum kind kind) {
  const td_view *out = &call->out[0];
  work w = {.out = out->data, .outer = 1, .n = 1, .inner = 1, .kind = kind};
  const char *data[TD_INPUT_MAX];
  int axis = (int)(call->args[0].i < 0 ? call->args[0].i + out->rank : call->args[0].i);
  if (!out->size) return TD_OK;
  w.single = out->dtype == TD_FLOAT32;
  if (kind == ADJOINT_OF_LINES || kind == LOG_ADJOINT_OF_LINES) {
    td_inputs_place(call, out->dtype, data);
    w.x = data[0];
    w.c = data[1];
  } else {
    w.x = td_view_bring(call);
  }
  for (int i = 0; i < out->rank; i++) *(i < axis ? &w.outer : i == axis ? &w.n : &w.inner) *= out->shape[i];
  int64_t columns = w.inner < COLUMNS ? w.inner : COLUMNS, size = w.n * columns;
  w.blocks = (w.inner + columns - 1) / columns;
  w.lines = size < WORK ? WORK / size : 1;
  td_pool_run(call->context->pool, (w.outer + w.lines - 1) / w.lines * w.blocks, run_unit, &w);
  return TD_OK;
}

static int softmax_kernel(const td_call *call) { return run(call, SOFTMAX_OF_LINES); }
static int log_softmax_kernel(const td_call *call) { return run(call, LOGARITHM_OF_LINES); }

static int adjoint_kernel(const td_call *call) { return run(call, ADJOINT_OF_LINES); }
static int log_adjoint_kernel(const td_call *call) { return run(call, LOG_ADJOINT_OF_LINES); }
static int64_t adjoint_workspace(const td_call *call) { return td_inputs_bytes(call, call->out[0].dtype); }

static int adjoint_infer(td_infer *infer) {
  const td_meta *y = &infer->in[0], *c = &infer->in[1];
  int axis;
  infer->out[0] = *y;
  infer->out[0].dtype = td_dtype_promote(y->dtype, c->dtype);
  if (!td_dtype_is_float(infer->out[0].dtype)) infer->out[0].dtype = TD_FLOAT32;
  if (!td_shape_equal(y->rank, y->shape, c->rank, c->shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "y and c differ in shape");
  return td_infer_axis(infer, infer->args[0].i, y->rank, &axis);
}

static int softmax_infer(td_infer *infer) {
  int axis;
  infer->out[0] = infer->in[0];
  if (!td_dtype_is_float(infer->in[0].dtype)) infer->out[0].dtype = TD_FLOAT32;
  return td_infer_axis(infer, infer->args[0].i, infer->in[0].rank, &axis);
}

static const td_op softmax_adjoint;

static td_tensor *sum_along(td_rule *rule, td_tensor *t) {
  td_arg axis = {.given = 1, .count = 1, .ints = {rule->args[0].i}};
  return td_sum(&rule->scope, t, &axis, true);
}

static td_tensor *apply_adjoint(td_rule *rule, td_tensor *y, td_tensor *c) {
  return td_scope_apply(&rule->scope, &softmax_adjoint, rule->args, 2, y, c);
}

static int softmax_vjp(td_rule *rule) {
  rule->din[0] = apply_adjoint(rule, rule->out[0], rule->cotangent[0]);
  return TD_OK;
}

static int adjoint_vjp(td_rule *rule) { // u (c - sum(c y)) - c sum(u y) in y
  td_scope *s = &rule->scope;
  td_tensor *y = rule->in[0], *c = rule->in[1], *u = rule->cotangent[0];
  td_tensor *rest = td_subtract(s, c, sum_along(rule, td_multiply(s, c, y)));
  if (rule->needs[0])
    rule->din[0] = td_subtract(s, td_multiply(s, u, rest), td_multiply(s, c, sum_along(rule, td_multiply(s, u, y))));
  if (rule->needs[1]) rule->din[1] = apply_adjoint(rule, y, u);
  return TD_OK;
}

static const td_op log_softmax_adjoint;

static int log_softmax_vjp(td_rule *rule) {
  rule->din[0] =
      td_scope_apply(&rule->scope, &log_softmax_adjoint, rule->args, 2, rule->out[0], rule->cotangent[0]);
  return TD_OK;
}

static int log_adjoint_vjp(td_rule *rule) { // -u exp(y) sum(c) in y, u - sum(u exp(y)) in c
  td_scope *s = &rule->scope;
  td_tensor *u = rule->cotangent[0], *share = td_negative(s, td_chain(s, u, td_exp(s, rule->in[0])));
  if (rule->needs[0]) rule->din[0] = td_chain(s, share, sum_along(rule, rule->in[1]));
  if (rule->needs[1]) rule->din[1] = td_add(s, u, sum_along(rule, share));
  return TD_OK;
}

static const td_sample line_samples[] = {
    {"3,4", NULL, -2, 2, NULL}, {"2,3,4", "axis=1", -2, 2, NULL}, {"5", "axis=0", -2, 2, NULL},
    {"0,3", NULL, -2, 2, NULL}, {"2,1", NULL, -2, 2, NULL},       TD_SAMPLES_END,
};
#define AXIS_PARAM \
  { .name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(-1) }

static const td_op softmax = {
    .name = "softmax",
    .params = {TD_X, AXIS_PARAM},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = softmax_infer,
    .kernel = softmax_kernel,
    .batch = td_batch_axes,
    .vjp = softmax_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "exp(x) / sum(exp(x)) along axis, shifted by each line's largest element so that nothing overflows.\n"
           "A line of -inf alone, or with inf or NaN in it, is NaN.\n"
           "Gradient: y (c - sum(c y)) for the result y and its cotangent c.",
    .example = "softmax(tensor([[0., 0.], [1000., 1000.]])).tolist()  # [[0.5, 0.5], [0.5, 0.5]]",
    .samples = line_samples,
};

static const td_op log_softmax = {
    .name = "log_softmax",
    .params = {TD_X, AXIS_PARAM},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = softmax_infer,
    .kernel = log_softmax_kernel,
    .batch = td_batch_axes,
    .vjp = log_softmax_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "x - log(sum(exp(x))) along axis, without overflow. A line of -inf alone, or with NaN in it, is NaN; so is "
           "inf.\n"
           "Gradient: c - softmax(x) sum(c) for the cotangent c.",
    .example = "log_softmax(tensor([1000., 0.])).tolist()  # [0.0, -1000.0]",
    .samples = line_samples,
};

static const td_op softmax_adjoint = {
    .name = "softmax_adjoint",
    .params = {TD_TENSOR_PARAM("y"), TD_TENSOR_PARAM("c"), AXIS_PARAM},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = adjoint_infer,
    .kernel = adjoint_kernel,
    .workspace = adjoint_workspace,
    .batch = td_batch_axes,
    .vjp = adjoint_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "The gradient of softmax for its result y and the cotangent c: y (c - sum(c y)).\n"
           "Gradient: by itself in c, by sums in y.",
    .samples = TD_SAMPLES{{"3,4; 3,4", NULL, -2, 2, NULL},
                          {"2,3,4; 2,3,4", "axis=1", -2, 2, NULL},
                          {"2,70; 2,70", NULL, -2, 2, NULL},
                          {"0,3; 0,3", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op log_softmax_adjoint = {
    .name = "log_softmax_adjoint",
    .params = {TD_TENSOR_PARAM("y"), TD_TENSOR_PARAM("c"), AXIS_PARAM},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = adjoint_infer,
    .kernel = log_adjoint_kernel,
    .workspace = adjoint_workspace,
    .batch = td_batch_axes,
    .vjp = log_adjoint_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "The gradient of log_softmax for its result y and the cotangent c: c - exp(y) sum(c).\n"
           "Gradient: for the cotangent u, -u exp(y) sum(c) in y, u - sum(u exp(y)) in c.",
    .samples = TD_SAMPLES{{"3,4; 3,4", NULL, -2, -0.1, NULL},
                          {"2,3,4; 2,3,4", "axis=1", -2, -0.1, NULL},
                          {"2,70; 2,70", NULL, -9, -0.8, NULL},
                          {"0,3; 0,3", NULL, -2, -0.1, NULL},
                          TD_SAMPLES_END},
};

td_tensor *td_softmax(td_scope *s, td_tensor *x, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, &softmax, args, 1, x);
}

td_tensor *td_log_softmax(td_scope *s, td_tensor *x, int64_t axis) {
  const td_arg args[] = {TD_INT_ARG(axis)};
  return td_scope_apply(s, &log_softmax, args, 1, x);
}

const td_op *const td_family_softmax[] = {&softmax, &log_softmax, &softmax_adjoint, &log_softmax_adjoint, NULL};
