// Reductions that weigh their elements against each other: mean without NaN, variance, standard deviation, logsumexp.
#include <math.h>
#include <stdio.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/lines.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"
#include "engine/ops/reduce.h"

enum { BLOCK = 2048, LANES = 8, WIDTH = 1024 }; // BLOCK: elements looked at twice while they are in the cache

// ---- moments: mean and variance ----

typedef struct moments {
  double n, mean, squares; // squares: sum of (x - mean)^2
} moments;

static void moments_start(void *states, int64_t count) {
  for (int64_t i = 0; i < count; i++) ((moments *)states)[i] = (moments){0};
}

// T. F. Chan, G. H. Golub, R. J. LeVeque: Updating formulae and a pairwise algorithm for computing sample variances.
static void moments_add(moments *a, moments b) {
  if (!b.n) return;
  if (!a->n) {
    *a = b;
    return;
  }
  double n = a->n + b.n, apart = b.mean - a->mean;
  a->squares += b.squares + apart * apart * (a->n * b.n / n);
  a->mean = isfinite(apart) ? a->mean + apart * (b.n / n) : a->mean + b.mean;
  a->n = n;
}

static void moments_combine(void *states, const void *more, int64_t count, double parameter) {
  (void)parameter;
  for (int64_t i = 0; i < count; i++) moments_add((moments *)states + i, ((const moments *)more)[i]);
}

// Elements are taken relative to one of them, so constant ones have a variance of exactly 0. KEEP(x): does it count?
#define MOMENTS(T, name, KEEP)                                                                                   \
  static double name##_shift(const T *x, int64_t n, int64_t step) {                                              \
    int64_t i = 0;                                                                                               \
    while (i < n && !KEEP(x[i * step])) i++;                                                                     \
    return i < n && isfinite(x[i * step]) ? (double)x[i * step] : 0;                                             \
  }                                                                                                              \
  TD_CLONES static moments name##_block(const T *x, int64_t n) {                                                 \
    double sums[LANES] = {0}, counts[LANES] = {0}, squares[LANES] = {0}, shift = name##_shift(x, n, 1);          \
    double sum = 0, count = 0, square = 0;                                                                       \
    int64_t i = 0;                                                                                               \
    for (; i + LANES <= n; i += LANES)                                                                           \
      for (int l = 0; l < LANES; l++) {                                                                          \
        sums[l] += KEEP(x[i + l]) ? (double)x[i + l] - shift : 0;                                                \
        counts[l] += KEEP(x[i + l]) ? 1 : 0;                                                                     \
      }                                                                                                          \
    for (; i < n; i++) {                                                                                         \
      sum += KEEP(x[i]) ? (double)x[i] - shift : 0;                                                              \
      count += KEEP(x[i]) ? 1 : 0;                                                                               \
    }                                                                                                            \
    for (int l = 0; l < LANES; l++) {                                                                            \
      sum += sums[l];                                                                                            \
      count += counts[l];                                                                                        \
    }                                                                                                            \
    double mean = count ? sum / count : 0;                                                                       \
    for (i = 0; i + LANES <= n; i += LANES)                                                                      \
      for (int l = 0; l < LANES; l++) {                                                                          \
        double d = KEEP(x[i + l]) ? ((double)x[i + l] - shift) - mean : 0;                                       \
        squares[l] += d * d;                                                                                     \
      }                                                                                                          \
    for (; i < n; i++) {                                                                                         \
      double d = KEEP(x[i]) ? ((double)x[i] - shift) - mean : 0;                                                 \
      square += d * d;                                                                                           \
    }                                                                                                            \
    for (int l = 0; l < LANES; l++) square += squares[l];                                                        \
    return (moments){count, shift + mean, square};                                                               \
  }                                                                                                              \
  static void name##_lines(void *states, const td_piece *piece) {                                                \
    for (int64_t r = 0; r < piece->rows; r++) {                                                                  \
      const T *x = (const T *)piece->x + r * piece->pitch;                                                       \
      for (int64_t i = 0; i < piece->n; i += BLOCK)                                                              \
        moments_add((moments *)states + r, name##_block(x + i, piece->n - i < BLOCK ? piece->n - i : BLOCK));    \
    }                                                                                                            \
  }                                                                                                              \
  TD_CLONES static void name##_rows(moments *a, const T *x, int64_t rows, int64_t columns, int64_t pitch) {      \
    double shift[WIDTH], mean[WIDTH], count[WIDTH], square[WIDTH];                                               \
    for (int64_t c = 0; c < columns; c++) {                                                                      \
      shift[c] = name##_shift(x + c, rows, pitch);                                                               \
      mean[c] = count[c] = square[c] = 0;                                                                        \
    }                                                                                                            \
    for (int64_t r = 0; r < rows; r++)                                                                           \
      for (int64_t c = 0; c < columns; c++) {                                                                    \
        T v = x[r * pitch + c];                                                                                  \
        mean[c] += KEEP(v) ? (double)v - shift[c] : 0;                                                           \
        count[c] += KEEP(v) ? 1 : 0;                                                                             \
      }                                                                                                          \
    for (int64_t c = 0; c < columns; c++) mean[c] = count[c] ? mean[c] / count[c] : 0;                           \
    for (int64_t r = 0; r < rows; r++)                                                                           \
      for (int64_t c = 0; c < columns; c++) {                                                                    \
        T v = x[r * pitch + c];                                                                                  \
        double d = KEEP(v) ? ((double)v - shift[c]) - mean[c] : 0;                                               \
        square[c] += d * d;                                                                                      \
      }                                                                                                          \
    for (int64_t c = 0; c < columns; c++) moments_add(a + c, (moments){count[c], shift[c] + mean[c], square[c]}); \
  }                                                                                                              \
  static void name##_columns(void *states, const td_piece *piece) {                                              \
    int64_t rows = piece->rows, together = 4 * BLOCK / piece->n;                                                 \
    for (int64_t r = 0; r < rows; r += together)                                                                 \
      name##_rows(states, (const T *)piece->x + r * piece->pitch, rows - r < together ? rows - r : together,     \
                  piece->n, piece->pitch);                                                                       \
  }
#define ANY(x) 1
#define NUMBER(x) ((x) == (x))
MOMENTS(float, single_moments, ANY)
MOMENTS(double, twofold_moments, ANY)
MOMENTS(float, single_numbers, NUMBER)
MOMENTS(double, twofold_numbers, NUMBER)

static double variance(const moments *a, double ddof) {
  double rest = a->n - ddof;
  return a->n ? a->squares / (rest > 0 ? rest : 0) : (double)NAN;
}

static void finish_var(const void *states, int64_t count, const td_finish *to) {
  for (int64_t i = 0; i < count; i++)
    td_finish_number(to, 0, i, variance((const moments *)states + i, to->parameter));
}

static void finish_std(const void *states, int64_t count, const td_finish *to) {
  for (int64_t i = 0; i < count; i++)
    td_finish_number(to, 0, i, sqrt(variance((const moments *)states + i, to->parameter)));
}

static void finish_means(const void *states, int64_t count, const td_finish *to, int output) {
  const moments *a = states;
  for (int64_t i = 0; i < count; i++) td_finish_number(to, output, i, a[i].n ? a[i].mean : (double)NAN);
}

static void finish_nanmean(const void *states, int64_t count, const td_finish *to) {
  finish_means(states, count, to, 0);
}

static void finish_var_mean(const void *states, int64_t count, const td_finish *to) {
  finish_var(states, count, to);
  finish_means(states, count, to, 1);
}

static void finish_std_mean(const void *states, int64_t count, const td_finish *to) {
  finish_std(states, count, to);
  finish_means(states, count, to, 1);
}

// name_kernel and name_workspace, of reducers for both types.
#define MOMENTS_KERNEL(name, of, FINISH, PARAMETER)                                                              \
  static const td_reducer name##_reducers[2] = {                                                                 \
      {sizeof(moments), false, moments_start, single_##of##_lines, single_##of##_columns, moments_combine, FINISH, \
       NULL}, \
      {sizeof(moments), false, moments_start, twofold_##of##_lines, twofold_##of##_columns, moments_combine, FINISH, \
       NULL}}; \
  static int name##_kernel(const td_call *call) {                                                                \
    uint8_t dtype = call->out[0].dtype;                                                                          \
    warn_of_few(call, PARAMETER);                                                                                \
    return td_reduce(call, &call->args[0], &name##_reducers[dtype == TD_FLOAT64], dtype, PARAMETER);             \
  }                                                                                                              \
  static int64_t name##_workspace(const td_call *call) {                                                         \
    return td_reduce_workspace(call, &call->args[0], &name##_reducers[0]);                                       \
  }
#define DDOF ((double)call->args[2].i)

static void warn_of_few(const td_call *call, double ddof) {
  int64_t count = td_reduction_view_count(&call->in[0], &call->args[0]);
  if ((double)count > ddof || !call->out[0].size || !call->context->warn) return;
  char message[120];
  snprintf(message, sizeof message, "%s of no more elements than ddof: there is no such number", call->op->name);
  call->context->warn(call->context->owner, message);
}

MOMENTS_KERNEL(var, moments, finish_var, DDOF)
MOMENTS_KERNEL(std, moments, finish_std, DDOF)
MOMENTS_KERNEL(var_mean, moments, finish_var_mean, DDOF)
MOMENTS_KERNEL(std_mean, moments, finish_std_mean, DDOF)
MOMENTS_KERNEL(nanvar, numbers, finish_var, DDOF)
MOMENTS_KERNEL(nanstd, numbers, finish_std, DDOF)
MOMENTS_KERNEL(nanmean, numbers, finish_nanmean, 0)

static int pair_infer(td_infer *infer) {
  int code = td_reduction_infer_floating(infer);
  infer->out[1] = infer->out[0];
  return code;
}

// ---- their gradients ----

static td_tensor *expanded(td_rule *rule, td_tensor *t) {
  return td_reduction_expand(rule, t, &rule->args[0], rule->args[1].i);
}

static double freedom(const td_rule *rule) {
  double rest = (double)(td_reduction_count(&rule->in_meta[0], &rule->args[0]) - rule->args[2].i);
  return rest > 0 ? rest : 0;
}

static td_tensor *less_mean(td_rule *rule, td_tensor *x) {
  return td_subtract(&rule->scope, x, td_mean(&rule->scope, x, &rule->args[0], true));
}

// x - mean(x), and once more: the mean of numbers far from 0 is rounded coarsely beside their spread. NaN where no
// freedom is left, so that all derivatives are.
static td_tensor *centred(td_rule *rule) {
  if (freedom(rule) == 0) return td_scope_filled(&rule->scope, (double)NAN, &rule->in_meta[0]);
  return less_mean(rule, less_mean(rule, rule->in[0]));
}

static td_tensor *var_gradient(td_rule *rule, td_tensor *c) { // c: of the variance
  td_scope *s = &rule->scope;
  td_tensor *scaled = td_multiply(s, c, td_scope_number(s, 2 / freedom(rule), c));
  return td_multiply(s, expanded(rule, scaled), centred(rule));
}

static td_tensor *std_gradient(td_rule *rule, td_tensor *c) {
  td_scope *s = &rule->scope;
  td_tensor *y = rule->out[0];
  td_tensor *slope = td_divide(s, td_reciprocal_or_zero(s, y), td_scope_number(s, freedom(rule), y));
  return td_multiply(s, expanded(rule, td_multiply(s, c, slope)), centred(rule));
}

static int var_vjp(td_rule *rule) {
  rule->din[0] = var_gradient(rule, rule->cotangent[0]);
  return TD_OK;
}

static int std_vjp(td_rule *rule) {
  rule->din[0] = std_gradient(rule, rule->cotangent[0]);
  return TD_OK;
}

// Of the second output, the mean, beside that of the first.
static int with_mean_vjp(td_rule *rule, td_tensor *(*gradient)(td_rule *, td_tensor *)) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[1];
  if (rule->cotangent[0]) rule->din[0] = gradient(rule, rule->cotangent[0]);
  if (!c) return TD_OK;
  double count = (double)td_reduction_count(&rule->in_meta[0], &rule->args[0]);
  td_tensor *part = expanded(rule, td_divide(s, c, td_scope_number(s, count, c)));
  rule->din[0] = rule->din[0] ? td_add(s, rule->din[0], part) : part;
  return TD_OK;
}

static int var_mean_vjp(td_rule *rule) { return with_mean_vjp(rule, var_gradient); }
static int std_mean_vjp(td_rule *rule) { return with_mean_vjp(rule, std_gradient); }

typedef struct numbers { // of x: where they are, and how many
  td_tensor *mask, *zero, *count;
} numbers;

static numbers numbers_of(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0];
  numbers n = {td_equal(s, x, x), td_scope_number(s, 0, x), NULL};
  td_tensor *one = td_where(s, n.mask, td_scope_number(s, 1, x), n.zero);
  n.count = td_sum(s, one, &rule->args[0], true);
  return n;
}

static int nanmean_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  numbers n = numbers_of(rule);
  td_tensor *share = td_divide(s, expanded(rule, rule->cotangent[0]), n.count);
  rule->din[0] = td_where(s, n.mask, share, n.zero);
  return TD_OK;
}

// As var's and std's, of the numbers alone.
static td_tensor *numbers_gradient(td_rule *rule, td_tensor *c) {
  td_scope *s = &rule->scope;
  numbers n = numbers_of(rule);
  td_tensor *x = td_where(s, n.mask, rule->in[0], n.zero);
  td_tensor *mean = td_divide(s, td_sum(s, x, &rule->args[0], true), n.count);
  td_tensor *rest = td_subtract(s, n.count, td_scope_number(s, (double)rule->args[2].i, x));
  rest = td_where(s, td_greater(s, rest, n.zero), rest, td_scope_number(s, (double)NAN, x));
  td_tensor *slope = td_divide(s, td_subtract(s, x, mean), rest);
  return td_where(s, n.mask, td_multiply(s, expanded(rule, c), slope), n.zero);
}

static int nanvar_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  rule->din[0] = numbers_gradient(rule, td_multiply(&rule->scope, c, td_scope_number(&rule->scope, 2, c)));
  return TD_OK;
}

static int nanstd_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = numbers_gradient(rule, td_multiply(s, rule->cotangent[0], td_reciprocal_or_zero(s, rule->out[0])));
  return TD_OK;
}

// ---- logsumexp ----

typedef struct exponentials {
  double shift, sum; // of exp(x - shift); shift is the largest x so far
} exponentials;

static void exponentials_start(void *states, int64_t count) {
  for (int64_t i = 0; i < count; i++) ((exponentials *)states)[i] = (exponentials){-(double)INFINITY, 0};
}

static void exponentials_add(exponentials *a, exponentials b) {
  if (b.sum == 0) return; // nothing but -inf
  if (a->sum == 0) *a = b;
  else if (b.shift > a->shift) *a = (exponentials){b.shift, b.sum + a->sum * exp(a->shift - b.shift)};
  else a->sum += b.sum * exp(b.shift - a->shift);
}

static void exponentials_combine(void *states, const void *more, int64_t count, double parameter) {
  (void)parameter;
  for (int64_t i = 0; i < count; i++) exponentials_add((exponentials *)states + i, ((const exponentials *)more)[i]);
}

static void finish_logsumexp(const void *states, int64_t count, const td_finish *to) {
  const exponentials *a = states;
  for (int64_t i = 0; i < count; i++)
    td_finish_number(to, 0, i, a[i].sum == 0 ? -(double)INFINITY : a[i].shift + log(a[i].sum));
}

#define EXPONENTIALS(T, name)                                                                                    \
  static void name##_logsumexp_lines(void *states, const td_piece *piece) {                                      \
    for (int64_t r = 0; r < piece->rows; r++)                                                                    \
      for (int64_t i = 0; i < piece->n; i += BLOCK) {                                                            \
        const T *x = (const T *)piece->x + r * piece->pitch + i;                                                 \
        int64_t n = piece->n - i < BLOCK ? piece->n - i : BLOCK;                                                 \
        T largest = td_##name##_largest(x, n), shift = isfinite(largest) ? largest : 0;                               \
        exponentials_add((exponentials *)states + r,                                                             \
                         (exponentials){(double)shift, td_##name##_exponentials(x, n, -1, shift, NULL)});        \
      }                                                                                                          \
  }                                                                                                              \
  TD_CLONES static void name##_logsumexp_rows(exponentials *a, const T *x, int64_t rows, int64_t columns,        \
                                              int64_t pitch) {                                                   \
    T shift[WIDTH];                                                                                              \
    double sum[WIDTH];                                                                                           \
    for (int64_t c = 0; c < columns; c++) {                                                                      \
      shift[c] = x[c];                                                                                           \
      sum[c] = 0;                                                                                                \
    }                                                                                                            \
    for (int64_t r = 1; r < rows; r++)                                                                           \
      for (int64_t c = 0; c < columns; c++) shift[c] = MAXIMUM(x[r * pitch + c], shift[c]);                      \
    for (int64_t c = 0; c < columns; c++) shift[c] = isfinite(shift[c]) ? shift[c] : 0;                          \
    for (int64_t r = 0; r < rows; r++)                                                                           \
      for (int64_t c = 0; c < columns; c++) sum[c] += (double)EXP((T)(x[r * pitch + c] - shift[c]));             \
    for (int64_t c = 0; c < columns; c++) exponentials_add(a + c, (exponentials){(double)shift[c], sum[c]});     \
  }                                                                                                              \
  static void name##_logsumexp_columns(void *states, const td_piece *piece) {                                    \
    int64_t rows = piece->rows, together = 4 * BLOCK / piece->n;                                                 \
    for (int64_t r = 0; r < rows; r += together)                                                                 \
      name##_logsumexp_rows(states, (const T *)piece->x + r * piece->pitch,                                      \
                            rows - r < together ? rows - r : together, piece->n, piece->pitch);                  \
  }
EXPONENTIALS(float, single)
EXPONENTIALS(double, twofold)

static const td_reducer logsumexp_reducers[2] = {
    {sizeof(exponentials), false, exponentials_start, single_logsumexp_lines, single_logsumexp_columns,
     exponentials_combine, finish_logsumexp, NULL},
    {sizeof(exponentials), false, exponentials_start, twofold_logsumexp_lines, twofold_logsumexp_columns,
     exponentials_combine, finish_logsumexp, NULL},
};

static int logsumexp_kernel(const td_call *call) {
  uint8_t dtype = call->out[0].dtype;
  return td_reduce(call, &call->args[0], &logsumexp_reducers[dtype == TD_FLOAT64], dtype, 0);
}

static int64_t logsumexp_workspace(const td_call *call) {
  return td_reduce_workspace(call, &call->args[0], &logsumexp_reducers[0]);
}

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

// ---- rows ----

static const td_sample spread_samples[] = {
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1, ddof=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    {"2,3", "axis=-1", -2, 2, NULL},
    TD_SAMPLES_END,
};
static const td_sample total_samples[] = {
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    TD_SAMPLES_END,
};
#define DDOF_PARAM \
  { .name = "ddof", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0) }
#define DDOF_WORDS "The default ddof=0 is NumPy's; ddof=1 divides by n - 1, as PyTorch does by default."

#define SPREAD_ROW(NAME, ALIAS, INFER, ...)                                         \
  static const td_op NAME##_op = {.name = #NAME,                                    \
                                  .alias = ALIAS,                                   \
                                  .params = {TD_X, TD_AXIS_PARAM, TD_KEEPDIMS_PARAM, DDOF_PARAM}, \
                                  .kind = TD_KIND_REDUCE,                           \
                                  .method = true,                                   \
                                  .infer = INFER,                                   \
                                  .kernel = NAME##_kernel,                          \
                                  .workspace = NAME##_workspace,                    \
                                  .batch = td_batch_axes,                           \
                                  .vjp = NAME##_vjp,                                \
                                  .samples = spread_samples,                        \
                                  __VA_ARGS__};

SPREAD_ROW(var, TD_ALIAS("reduce_variance"), td_reduction_infer_floating, .saves = TD_SAVES_IN0,
           .doc = "Mean squared distance from the mean: the sum of squares divided by n - ddof.\n" DDOF_WORDS
                  " Where n - ddof is not above 0 it is infinite or NaN, with a warning.\n"
                  "Gradient: 2 c (x - mean(x)) / (n - ddof), and NaN where n - ddof is not above 0.",
           .example = "var(tensor([1., 2., 3., 4.])).item()  # 1.25")

SPREAD_ROW(std, TD_ALIAS("reduce_std"), td_reduction_infer_floating, .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
           .doc = "Standard deviation, the root of var.\n" DDOF_WORDS
                  "\nGradient: c (x - mean(x)) / ((n - ddof) std), and 0 where the deviation is 0.",
           .example = "std(tensor([1., 3.])).item()  # 1.0")

SPREAD_ROW(var_mean, NULL, pair_infer, .outputs = 2, .saves = TD_SAVES_IN0,
           .doc = "Variance and mean over axis, as a tuple, found together.\n" DDOF_WORDS
                  "\nGradient: that of var and that of mean.",
           .example = "[t.item() for t in var_mean(tensor([1., 2., 3., 4.]))]  # [1.25, 2.5]")

SPREAD_ROW(std_mean, NULL, pair_infer, .outputs = 2, .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
           .doc = "Standard deviation and mean over axis, as a tuple, found together.\n" DDOF_WORDS
                  "\nGradient: that of std and that of mean.",
           .example = "[t.item() for t in std_mean(tensor([1., 3.]))]  # [1.0, 2.0]")

SPREAD_ROW(nanvar, NULL, td_reduction_infer_floating, .saves = TD_SAVES_IN0,
           .doc = "Variance of the elements over axis that are not NaN; NaN where there is none.\n" DDOF_WORDS
                  "\nGradient: var's, of those elements, and 0 for NaN.",
           .example = "nanvar(tensor([1., nan, 3.])).item()  # 1.0")

SPREAD_ROW(nanstd, NULL, td_reduction_infer_floating, .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
           .doc = "Standard deviation of the elements over axis that are not NaN; NaN where there is none.\n" DDOF_WORDS
                  "\nGradient: std's, of those elements, and 0 for NaN.",
           .example = "nanstd(tensor([1., nan, 3.])).item()  # 1.0")

static const td_op nanmean_op = {
    .name = "nanmean",
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = td_reduction_infer_floating,
    .kernel = nanmean_kernel,
    .workspace = nanmean_workspace,
    .batch = td_batch_axes,
    .vjp = nanmean_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "Mean of the elements over axis that are not NaN; NaN where there is none.\n"
           "Gradient: the cotangent divided by their number, and 0 for NaN.",
    .example = "nanmean(tensor([1., nan, 3.])).item()  # 2.0",
    .samples = total_samples,
};

static const td_op logsumexp_op = {
    .name = "logsumexp",
    .alias = TD_ALIAS("reduce_logsumexp"),
    .params = TD_REDUCE_PARAMS,
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = td_reduction_infer_floating,
    .kernel = logsumexp_kernel,
    .workspace = logsumexp_workspace,
    .batch = td_batch_axes,
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

td_tensor *td_logsumexp(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims) {
  const td_arg none = TD_AXES_NONE, args[] = {axes ? *axes : none, TD_INT_ARG(keepdims)};
  return td_scope_apply(s, &logsumexp_op, args, 1, x);
}

const td_op *const td_family_statistics[] = {&var_op,    &std_op,    &var_mean_op, &std_mean_op,  &nanvar_op,
                                             &nanstd_op, &nanmean_op, &logsumexp_op, NULL};
