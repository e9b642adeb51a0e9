// Sums, products, extremes and truths over axes. Floats are added in double precision, float32 in fours.
#include <math.h>
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/reduce.h"
#include "engine/ops/states.h"

// ---- reducers ----

#define PLUS(a, x, A) ((a) + (A)(x))
#define TIMES(a, x, A) ((a) * (A)(x))
#define LARGER(a, x, A) ((((x) > (a)) | ((x) != (x))) ? (A)(x) : (a)) // a NaN stays
#define SMALLER(a, x, A) ((((x) < (a)) | ((x) != (x))) ? (A)(x) : (a))
#define OR(a, x, A) ((A)((a) | ((x) != 0)))
#define AND(a, x, A) ((A)((a) & ((x) != 0)))
#define COUNT(a, x, A) ((a) + (A)((x) != 0))
// Those that pass over NaN. An extreme starts as NaN.
#define PLUS_NUMBER(a, x, A) ((a) + ((x) == (x) ? (A)(x) : (A)0))
#define TIMES_NUMBER(a, x, A) ((a) * ((x) == (x) ? (A)(x) : (A)1))
#define LARGER_NUMBER(a, x, A) ((((x) > (a)) | ((a) != (a))) ? (A)(x) : (a))
#define SMALLER_NUMBER(a, x, A) ((((x) < (a)) | ((a) != (a))) ? (A)(x) : (a))

static void finish_total(const void *states, int64_t count, const td_finish *to) {
  for (int64_t i = 0; i < count; i++) td_finish_number(to, 0, i, ((const double *)states)[i]);
}

static void finish_mean(const void *states, int64_t count, const td_finish *to) {
  for (int64_t i = 0; i < count; i++) td_finish_number(to, 0, i, ((const double *)states)[i] / (double)to->n);
}

TD_STORE(finish_uint8, uint8_t)
TD_STORE(finish_int32, int32_t)
TD_STORE(finish_int64, int64_t)
TD_STORE(finish_float, float)
TD_STORE(finish_double, double)

// Of signed types: an int32 is widened with its sign, then wraps as int64.
#define INTEGERS(name, START, STEP, FINISH)                            \
  TD_STATES(uint8_t, uint64_t, name##_uint8, START, STEP, STEP, FINISH)   \
  TD_STATES(int32_t, uint64_t, name##_int32, START, STEP, STEP, FINISH)   \
  TD_STATES(int64_t, uint64_t, name##_int64, START, STEP, STEP, FINISH)
#define FLOATS(name, START, STEP, COMBINE, FINISH)                           \
  TD_STATES(float, double, name##_float32, START, STEP, COMBINE, FINISH)        \
  TD_STATES(double, double, name##_float64, START, STEP, COMBINE, FINISH)
#define TABLE(name, integers, floats)                                                                       \
  static const td_reducer *const name##_reducers[TD_DTYPE_COUNT] = {                                        \
      [TD_BOOL] = &integers##_uint8_reducer,  [TD_UINT8] = &integers##_uint8_reducer,                       \
      [TD_INT32] = &integers##_int32_reducer, [TD_INT64] = &integers##_int64_reducer,                       \
      [TD_FLOAT32] = &floats##_float32_reducer, [TD_FLOAT64] = &floats##_float64_reducer};

INTEGERS(sum, 0, PLUS, finish_int64)
FLOATS(wide_sum, 0, PLUS, PLUS, finish_total)
FLOATS(wide_mean, 0, PLUS, PLUS, finish_mean)

// ---- sums of floats ----

// Four floats are added as floats, such fours as doubles: that costs half of what it takes to widen each, and what the
// roundings add averages out. A four may overflow where the sum doesn't: then the unit is folded without fours.
enum { NARROW_LANES = 64, SIDE_BY_SIDE = 8 /* short lines */ };

TD_CLONES static void quick_lines(void *states, const td_piece *piece) {
  double *a = states;
  const float *x = piece->x;
  int64_t n = piece->n, pitch = piece->pitch, r = 0;
  for (; n < 2 * TD_LANES && r + SIDE_BY_SIDE <= piece->rows; r += SIDE_BY_SIDE, x += SIDE_BY_SIDE * pitch)
    for (int64_t i = 0; i < n; i++)
      for (int l = 0; l < SIDE_BY_SIDE; l++) a[r + l] += (double)x[l * pitch + i];
  for (; r < piece->rows; r++, x += pitch) {
    double all = a[r];
    int64_t i = 0;
    if (n >= 2 * TD_LANES) {
      double lanes[TD_LANES] = {0};
      for (; i + 4 * TD_LANES <= n; i += 4 * TD_LANES) {
        float fours[TD_LANES];
        TD_FETCH(x + i, 4 * TD_LANES);
        for (int l = 0; l < TD_LANES; l++)
          fours[l] = (x[i + l] + x[i + l + TD_LANES]) + (x[i + l + 2 * TD_LANES] + x[i + l + 3 * TD_LANES]);
        for (int l = 0; l < TD_LANES; l++) lanes[l] += (double)fours[l];
      }
      for (; i + TD_LANES <= n; i += TD_LANES)
        for (int l = 0; l < TD_LANES; l++) lanes[l] += (double)x[i + l];
      for (int half = TD_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
      all += lanes[0];
    }
    for (; i < n; i++) all += (double)x[i];
    a[r] = all;
  }
}

// Few columns without gaps: several rows are one of as many lanes.
TD_CLONES static int64_t quick_narrow(double *a, const float *x, int64_t rows, int64_t columns) {
  double lanes[NARROW_LANES] = {0};
  int64_t together = NARROW_LANES / columns, width = together * columns, row = 0;
  for (; row + 4 * together <= rows; row += 4 * together, x += 4 * width) {
    TD_FETCH(x, 4 * NARROW_LANES);
    for (int64_t l = 0; l < width; l++)
      lanes[l] += (double)((x[l] + x[l + width]) + (x[l + 2 * width] + x[l + 3 * width]));
  }
  for (int64_t l = 0; l < width; l++) a[l % columns] += lanes[l];
  return row;
}

TD_CLONES static void quick_columns(void *states, const td_piece *piece) {
  double *restrict a = states;
  const float *restrict x = piece->x;
  int64_t rows = piece->rows, columns = piece->n, pitch = piece->pitch, row = 0;
  if (columns <= TD_NARROW && pitch == columns) {
    row = quick_narrow(a, x, rows, columns);
    x += row * pitch;
  }
  for (; row + 4 <= rows; row += 4, x += 4 * pitch)
    for (int64_t c = 0; c < columns; c++)
      a[c] += (double)((x[c] + x[c + pitch]) + (x[c + 2 * pitch] + x[c + 3 * pitch]));
  for (; row < rows; row++, x += pitch)
    for (int64_t c = 0; c < columns; c++) a[c] += (double)x[c];
}

#define QUICK(name, FINISH)                                                                                     \
  static const td_reducer name##_float32_reducer = {                                                            \
      sizeof(double), false, wide_##name##_float32_start, quick_lines, quick_columns, wide_##name##_float32_combine, \
      FINISH, &wide_##name##_float32_reducer};
QUICK(sum, finish_total)
QUICK(mean, finish_mean)
#define sum_float64_reducer wide_sum_float64_reducer
TABLE(sum, sum, sum)

// ---- products, and what passes over NaN ----

FLOATS(nansum, 0, PLUS_NUMBER, PLUS, finish_total)
TABLE(nansum, sum, nansum)

INTEGERS(prod, 1, TIMES, finish_int64)
FLOATS(prod, 1, TIMES, TIMES, finish_total)
TABLE(prod, prod, prod)
FLOATS(nanprod, 1, TIMES_NUMBER, TIMES, finish_total)
TABLE(nanprod, prod, nanprod)

#define EXTREMES(name, STEP, least_uint8, least_int32, least_int64, least)                      \
  TD_STATES(uint8_t, uint8_t, name##_uint8, least_uint8, STEP, STEP, finish_uint8)                 \
  TD_STATES(int32_t, int32_t, name##_int32, least_int32, STEP, STEP, finish_int32)                 \
  TD_STATES(int64_t, int64_t, name##_int64, least_int64, STEP, STEP, finish_int64)                 \
  TD_STATES(float, float, name##_float32, least, STEP, STEP, finish_float)                         \
  TD_STATES(double, double, name##_float64, (double)least, STEP, STEP, finish_double)              \
  TD_STATES(float, float, nan##name##_float32, NAN, STEP##_NUMBER, STEP##_NUMBER, finish_float)    \
  TD_STATES(double, double, nan##name##_float64, (double)NAN, STEP##_NUMBER, STEP##_NUMBER, finish_double) \
  TABLE(name, name, name)                                                                       \
  TABLE(nan##name, name, nan##name)
EXTREMES(max, LARGER, 0, INT32_MIN, INT64_MIN, -INFINITY)
EXTREMES(min, SMALLER, UINT8_MAX, INT32_MAX, INT64_MAX, INFINITY)

#define TRUTHS(STATE, name, START, STEP, COMBINE, FINISH)                   \
  TD_STATES(uint8_t, STATE, name##_uint8, START, STEP, COMBINE, FINISH)        \
  TD_STATES(int32_t, STATE, name##_int32, START, STEP, COMBINE, FINISH)        \
  TD_STATES(int64_t, STATE, name##_int64, START, STEP, COMBINE, FINISH)        \
  TD_STATES(float, STATE, name##_float32, START, STEP, COMBINE, FINISH)        \
  TD_STATES(double, STATE, name##_float64, START, STEP, COMBINE, FINISH)       \
  TABLE(name, name, name)
TRUTHS(uint8_t, any, 0, OR, OR, finish_uint8)
TRUTHS(uint8_t, all, 1, AND, AND, finish_uint8)
TRUTHS(int64_t, count_nonzero, 0, COUNT, PLUS, finish_int64)

const td_reducer *td_reducer_of_sum(uint8_t dtype) { return sum_reducers[dtype]; }
const td_reducer *td_reducer_of_any(uint8_t dtype) { return any_reducers[dtype]; }

// ---- kernels ----

#define KERNEL(name)                                                                                    \
  static int name##_kernel(const td_call *call) {                                                       \
    uint8_t dtype = call->in[0].dtype;                                                                  \
    return td_reduce(call, &call->args[0], name##_reducers[dtype], dtype, 0);                           \
  }                                                                                                     \
  static int64_t name##_workspace(const td_call *call) {                                                \
    return td_reduce_workspace(call, &call->args[0], name##_reducers[call->in[0].dtype]);               \
  }
KERNEL(sum)
KERNEL(nansum)
KERNEL(prod)
KERNEL(nanprod)
KERNEL(max)
KERNEL(nanmax)
KERNEL(min)
KERNEL(nanmin)
KERNEL(any)
KERNEL(all)
KERNEL(count_nonzero)

static const td_reducer *mean_reducer(const td_call *call) { // integers are exact in double up to 2^53
  return call->in[0].dtype == TD_FLOAT32 ? &mean_float32_reducer : &wide_mean_float64_reducer;
}

static int mean_kernel(const td_call *call) {
  int64_t count = td_reduction_view_count(&call->in[0], &call->args[0]);
  if (!count && call->out[0].size && call->context->warn)
    call->context->warn(call->context->owner, "mean of an empty tensor is NaN");
  uint8_t dtype = call->in[0].dtype == TD_FLOAT32 ? TD_FLOAT32 : TD_FLOAT64;
  return td_reduce(call, &call->args[0], mean_reducer(call), dtype, 0);
}

static int64_t mean_workspace(const td_call *call) {
  return td_reduce_workspace(call, &call->args[0], mean_reducer(call));
}

// The smallest into the first output, the largest into the second one.
static int aminmax_kernel(const td_call *call) {
  td_call half = *call;
  half.out_count = 1;
  min_kernel(&half);
  half.out[0] = call->out[1];
  return max_kernel(&half);
}

static int64_t aminmax_workspace(const td_call *call) { return max_workspace(call); }

// ---- shapes ----

static int truth_infer(td_infer *infer) {
  int code = td_reduction_infer(infer);
  infer->out[0].dtype = TD_BOOL;
  return code;
}

static int count_infer(td_infer *infer) {
  int code = td_reduction_infer(infer);
  infer->out[0].dtype = TD_INT64;
  return code;
}

static int aminmax_infer(td_infer *infer) {
  int code = td_reduction_infer_extreme(infer);
  infer->out[1] = infer->out[0];
  return code;
}

// ---- gradients ----

static td_tensor *spread(td_rule *rule, td_tensor *t) { // t, as a tensor that broadcasts against the input
  return td_reduction_expand(rule, t, &rule->args[0], rule->args[1].i);
}

static td_tensor *spread_over(td_rule *rule, td_tensor *t) { // t, in the input's shape
  const td_meta *in = &rule->in_meta[0];
  return td_broadcast_to(&rule->scope, spread(rule, t), in->rank, in->shape);
}

static int sum_vjp(td_rule *rule) {
  rule->din[0] = spread_over(rule, rule->cotangent[0]);
  return TD_OK;
}

static int mean_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  int64_t count = td_reduction_count(&rule->in_meta[0], &rule->args[0]);
  rule->din[0] =
      spread_over(rule, td_divide(s, rule->cotangent[0], td_scope_number(s, (double)count, rule->cotangent[0])));
  return TD_OK;
}

static int nansum_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *c = spread(rule, rule->cotangent[0]);
  rule->din[0] = td_where(s, td_equal(s, x, x), c, td_scope_number(s, 0, c));
  return TD_OK;
}

// Elements that equal the result share its cotangent. In a group whose result is NaN those are the NaNs.
static td_tensor *extreme_gradient(td_rule *rule, int output) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *y = spread(rule, rule->out[output]);
  if (!x || !y) return NULL;
  td_tensor *yes = td_scope_number(s, 1, x), *no = td_scope_number(s, 0, x);
  td_tensor *lost = td_where(s, td_equal(s, y, y), no, yes); // 1 where the result is NaN
  td_tensor *chosen = td_where(s, td_equal(s, x, x), td_where(s, td_equal(s, x, y), yes, no), lost);
  td_tensor *share = td_divide(s, chosen, td_sum(s, chosen, &rule->args[0], true));
  return td_multiply(s, spread(rule, rule->cotangent[output]), share);
}

static int extreme_vjp(td_rule *rule) {
  rule->din[0] = extreme_gradient(rule, 0);
  return TD_OK;
}

static int aminmax_vjp(td_rule *rule) {
  for (int k = 0; k < 2; k++) {
    if (!rule->cotangent[k]) continue;
    td_tensor *part = extreme_gradient(rule, k);
    rule->din[0] = rule->din[0] ? td_add(&rule->scope, rule->din[0], part) : part;
  }
  return TD_OK;
}

// The products of the elements before and after each one, without dividing.
static td_tensor *prod_gradient(td_rule *rule, td_tensor *x) {
  td_scope *s = &rule->scope;
  td_turn turn = td_turn_of(&rule->in_meta[0], &rule->args[0]);
  if (!turn.flat[0] || !turn.flat[1]) return NULL;
  td_tensor *lines = td_turn_to_lines(s, &turn, x);
  td_tensor *others = td_multiply(s, td_cumprod(s, lines, 1, false, true), td_cumprod(s, lines, 1, true, true));
  return td_chain(s, spread(rule, rule->cotangent[0]), td_turn_from_lines(s, &turn, others));
}

static int prod_vjp(td_rule *rule) {
  rule->din[0] = prod_gradient(rule, rule->in[0]);
  return TD_OK;
}

static int nanprod_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *number = td_equal(s, x, x);
  td_tensor *gradient = prod_gradient(rule, td_where(s, number, x, td_scope_number(s, 1, x)));
  if (gradient) rule->din[0] = td_where(s, number, gradient, td_scope_number(s, 0, gradient));
  return TD_OK;
}

// ---- rows ----

static const td_sample reduce_samples[] = {
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    {"2,3,4", "axis=-1", -2, 2, NULL},
    {"-", NULL, -2, 2, NULL},
    {"3,1", "axis=1", -2, 2, NULL},
    TD_SAMPLES_END,
};
// Also of nothing, where that has an answer.
static const td_sample total_samples[] = {
    {"2,3", NULL, -2, 2, NULL},
    {"2,3,4", "axis=1", -2, 2, NULL},
    {"2,3,4", "axis=(0, 2), keepdims=True", -2, 2, NULL},
    {"2,3,4", "axis=-1", -2, 2, NULL},
    {"-", NULL, -2, 2, NULL},
    {"0,3", "axis=0", -2, 2, NULL},
    {"0,3", "axis=1", -2, 2, NULL},
    {"2,3", NULL, -9, 9, "int64"},
    {"2,3", "axis=0", 0, 9, "uint8"},
    TD_SAMPLES_END,
};

#define REDUCE_ROW(NAME, ALIAS, INFER, ...)                                                                     \
  static const td_op NAME = {.name = #NAME,                                                                     \
                             .alias = ALIAS,                                                                    \
                             .params = TD_REDUCE_PARAMS,                                                        \
                             .kind = TD_KIND_REDUCE,                                                            \
                             .method = true,                                                                    \
                             .infer = INFER,                                                                    \
                             .kernel = NAME##_kernel,                                                           \
                             .workspace = NAME##_workspace,                                                     \
                             .batch = td_batch_axes,                                                            \
                             __VA_ARGS__};

REDUCE_ROW(sum, TD_ALIAS("reduce_sum"), td_reduction_infer_total, .flags = TD_LINEAR, .vjp = sum_vjp,
           .doc = "Sum of the elements over axis (all axes when None); keepdims keeps them with size 1.\n"
                  "Sums of integers and bools are int64. The sum of nothing is 0. Floats are added in double "
                  "precision, float32 four at a time.\n"
                  "Gradient: the cotangent, for every element.",
           .example = "sum(tensor([[1., 2.], [3., 4.]]), axis=0).tolist()  # [4.0, 6.0]", .samples = total_samples)

REDUCE_ROW(nansum, NULL, td_reduction_infer_total, .vjp = nansum_vjp, .saves = TD_SAVES_IN0,
           .doc = "Sum of the elements over axis that are not NaN; 0 where there is none.\n"
                  "Gradient: the cotangent, and 0 for NaN.",
           .example = "nansum(tensor([1., nan, 2.])).item()  # 3.0", .samples = total_samples)

REDUCE_ROW(mean, TD_ALIAS("reduce_mean"), td_reduction_infer_floating, .flags = TD_LINEAR, .vjp = mean_vjp,
           .doc = "Mean of the elements over axis (all axes when None).\n"
                  "Means of integers and bools are float32. The mean of nothing is NaN, with a warning.\n"
                  "Gradient: the cotangent divided by the number of elements, for every element.",
           .example = "mean(tensor([[1., 2.], [3., 4.]]), axis=1).tolist()  # [1.5, 3.5]", .samples = reduce_samples)

REDUCE_ROW(prod, TD_ALIAS("reduce_prod"), td_reduction_infer_total, .vjp = prod_vjp, .saves = TD_SAVES_IN0,
           .doc = "Product of the elements over axis (all axes when None).\n"
                  "Products of integers and bools are int64. The product of nothing is 1.\n"
                  "Gradient: for each element the product of the others, found without dividing, so zeros are right.",
           .example = "prod(tensor([2., 3., 4.])).item()  # 24.0", .samples = total_samples)

REDUCE_ROW(nanprod, NULL, td_reduction_infer_total, .vjp = nanprod_vjp, .saves = TD_SAVES_IN0,
           .doc = "Product of the elements over axis that are not NaN; 1 where there is none.\n"
                  "Gradient: the product of the others, and 0 for NaN.",
           .example = "nanprod(tensor([2., nan, 3.])).item()  # 6.0", .samples = total_samples)

#define EXTREME_ROW(NAME, ALIAS, WORDS, EXAMPLE)                                                                \
  REDUCE_ROW(NAME, ALIAS, td_reduction_infer_extreme, .vjp = extreme_vjp,                                       \
             .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,                                                           \
             .doc = WORDS "\nOf nothing it is an error. argmax and argmin tell where it stands.\n"              \
                          "Gradient: the cotangent; elements that tie share it equally.",                       \
             .example = EXAMPLE, .samples = reduce_samples)
static const char *const max_alias[] = {"amax", "reduce_max", NULL}, *const min_alias[] = {"amin", "reduce_min", NULL};
EXTREME_ROW(max, max_alias, "Largest element over axis (all axes when None); NaN where there is one.",
            "max(tensor([[1., 5.], [7., 3.]]), axis=1).tolist()  # [5.0, 7.0]")
EXTREME_ROW(min, min_alias, "Smallest element over axis (all axes when None); NaN where there is one.",
            "min(tensor([[1., 5.], [7., 3.]]), axis=1).tolist()  # [1.0, 3.0]")
EXTREME_ROW(nanmax, NULL, "Largest element over axis that is not NaN; NaN where there is none.",
            "nanmax(tensor([1., nan, 3.])).item()  # 3.0")
EXTREME_ROW(nanmin, NULL, "Smallest element over axis that is not NaN; NaN where there is none.",
            "nanmin(tensor([1., nan, 3.])).item()  # 1.0")

REDUCE_ROW(aminmax, NULL, aminmax_infer, .outputs = 2, .vjp = aminmax_vjp, .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
           .doc = "The smallest and the largest element over axis (all axes when None), as a tuple.\n"
                  "NaN where there is one; of nothing an error. Gradient: of each its cotangent; elements that tie "
                  "share it.",
           .example = "aminmax(tensor([3., 1., 2.]))[1].item()  # 3.0", .samples = reduce_samples)

REDUCE_ROW(any, TD_ALIAS("reduce_any"), truth_infer, .no_gradient = "bool result",
           .doc = "True where an element over axis is not 0. NaN counts as not 0. Of nothing: False.",
           .example = "any(tensor([0., 2.])).item()  # True", .samples = total_samples)

REDUCE_ROW(all, TD_ALIAS("reduce_all"), truth_infer, .no_gradient = "bool result",
           .doc = "True where no element over axis is 0. Of nothing: True.",
           .example = "all(tensor([0., 2.])).item()  # False", .samples = total_samples)

REDUCE_ROW(count_nonzero, NULL, count_infer, .no_gradient = "integer result",
           .doc = "Number of elements over axis that are not 0, as int64. NaN counts as not 0; of nothing it is 0.",
           .example = "count_nonzero(tensor([0., 2., 3.])).item()  # 2", .samples = total_samples)

// ---- builders ----

static td_tensor *reduce_with(td_scope *s, const td_op *op, td_tensor *x, const td_arg *axes, bool keepdims) {
  td_arg args[2] = {{.given = 0}, {.given = 1, .i = keepdims}};
  if (axes) args[0] = *axes;
  return td_scope_apply(s, op, args, 1, x);
}

td_tensor *td_sum(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims) {
  return reduce_with(s, &sum, x, axes, keepdims);
}

td_tensor *td_largest(td_scope *s, td_tensor *x, const td_arg *axes) { return reduce_with(s, &max, x, axes, true); }

td_tensor *td_mean(td_scope *s, td_tensor *x, const td_arg *axes, bool keepdims) {
  return reduce_with(s, &mean, x, axes, keepdims);
}

td_tensor *td_sum_to(td_scope *s, td_tensor *x, int rank, const int64_t *shape) {
  if (!x || td_shape_equal(x->rank, x->shape, rank, shape)) return x;
  td_arg axes = {.given = 1};
  for (int i = 0; i < x->rank; i++) {
    int to = i - (x->rank - rank);
    if (to < 0 || (shape[to] == 1 && x->shape[i] != 1)) axes.ints[axes.count++] = i;
  }
  td_tensor *summed = axes.count ? td_sum(s, x, &axes, true) : x;
  return summed && summed->rank == rank ? summed : td_reshape(s, summed, rank, shape);
}

const td_op *const td_family_reduce[] = {&sum,    &nansum, &mean,    &prod, &nanprod, &max,           &min, &nanmax,
                                         &nanmin, &aminmax, &any, &all,     &count_nonzero, NULL};
