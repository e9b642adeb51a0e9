// norm: the length of vectors of any order.
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"
#include "engine/ops/reduce.h"
#include "engine/ops/states.h"

enum { BLOCK = 256 };

// ---- orders whose states are plain numbers ----

#define PLUS(a, b, A) ((a) + (b))
#define PLUS_ABS(a, x, A) ((a) + fabs((A)(x)))
#define PLUS_SQUARE(a, x, A) ((a) + (A)(x) * (A)(x))
#define PLUS_ONE(a, x, A) ((a) + ((x) != 0 ? 1 : 0))
#define LARGER_ABS(a, x, A) (((fabs((A)(x)) > (a)) | ((x) != (x))) ? fabs((A)(x)) : (a)) // a NaN stays
#define SMALLER_ABS(a, x, A) (((fabs((A)(x)) < (a)) | ((x) != (x))) ? fabs((A)(x)) : (a))

static void finish_plain(const void *states, int64_t count, const td_finish *to) {
  for (int64_t i = 0; i < count; i++) td_finish_number(to, 0, i, ((const double *)states)[i]);
}

static void finish_root(const void *states, int64_t count, const td_finish *to) {
  for (int64_t i = 0; i < count; i++) td_finish_number(to, 0, i, sqrt(((const double *)states)[i]));
}

#define BOTH(name, START, STEP, COMBINE, FINISH)                                  \
  TD_STATES(float, double, single_##name, START, STEP, COMBINE, FINISH)           \
  TD_STATES(double, double, twofold_##name, START, STEP, COMBINE, FINISH)         \
  static const td_reducer *const name##_reducers[2] = {&single_##name##_reducer, &twofold_##name##_reducer};
BOTH(count, 0, PLUS_ONE, PLUS, finish_plain)
BOTH(total, 0, PLUS_ABS, PLUS, finish_plain)
BOTH(square, 0, PLUS_SQUARE, PLUS, finish_root)
BOTH(largest, 0, LARGER_ABS, LARGER_ABS, finish_plain)
BOTH(smallest, (double)INFINITY, SMALLER_ABS, SMALLER_ABS, finish_plain)

// ---- any order, without overflow ----

typedef struct powers {
  double scale, sum; // of (|x| / scale)^order; scale is the largest |x| so far, for orders below 0 the smallest
} powers;

static void powers_start(void *states, int64_t count) {
  for (int64_t i = 0; i < count; i++) ((powers *)states)[i] = (powers){1, 0};
}

static void powers_add(powers *a, powers b, double order) {
  if (b.sum == 0) return;
  if (a->sum == 0) *a = b;
  else if ((b.scale > a->scale) == (order > 0)) *a = (powers){b.scale, b.sum + a->sum * pow(a->scale / b.scale, order)};
  else a->sum += b.sum * pow(b.scale / a->scale, order);
}

static void powers_combine(void *states, const void *more, int64_t count, double order) {
  for (int64_t i = 0; i < count; i++) powers_add((powers *)states + i, ((const powers *)more)[i], order);
}

static void finish_powers(const void *states, int64_t count, const td_finish *to) {
  const powers *a = states;
  double order = to->parameter;
  for (int64_t i = 0; i < count; i++)
    td_finish_number(to, 0, i, a[i].scale * (order == 2 ? sqrt(a[i].sum) : pow(a[i].sum, 1 / order)));
}

#define POWERS(T, name)                                                                               \
  TD_CLONES static void name##_powers_block(powers *a, const T *x, int64_t n, double order) {         \
    double edge = fabs((double)x[0]), sum = 0;                                                        \
    for (int64_t i = 1; i < n; i++) {                                                                 \
      double size = fabs((double)x[i]);                                                               \
      edge = (order > 0 ? size > edge : size < edge) ? size : edge;                                   \
    }                                                                                                 \
    if (!(edge > 0 && edge < (double)INFINITY)) edge = 1;                                             \
    if (order == 2)                                                                                   \
      for (int64_t i = 0; i < n; i++) sum += (double)x[i] / edge * ((double)x[i] / edge);             \
    else                                                                                              \
      for (int64_t i = 0; i < n; i++) sum += (double)POWER((T)(fabs((double)x[i]) / edge), (T)order); \
    powers_add(a, (powers){edge, sum}, order);                                                        \
  }                                                                                                   \
  static void name##_powers_lines(void *states, const td_piece *piece) {                              \
    for (int64_t r = 0; r < piece->rows; r++)                                                         \
      for (int64_t i = 0; i < piece->n; i += BLOCK)                                                   \
        name##_powers_block((powers *)states + r, (const T *)piece->x + r * piece->pitch + i,         \
                            piece->n - i < BLOCK ? piece->n - i : BLOCK, piece->parameter);           \
  }                                                                                                   \
  static void name##_powers_columns(void *states, const td_piece *piece) {                            \
    T column[BLOCK];                                                                                  \
    for (int64_t row = 0; row < piece->rows; row += BLOCK) {                                          \
      int64_t n = piece->rows - row < BLOCK ? piece->rows - row : BLOCK;                              \
      for (int64_t c = 0; c < piece->n; c++) {                                                        \
        for (int64_t r = 0; r < n; r++) column[r] = ((const T *)piece->x)[(row + r) * piece->pitch + c]; \
        name##_powers_block((powers *)states + c, column, n, piece->parameter);                       \
      }                                                                                               \
    }                                                                                                 \
  }                                                                                                   \
  static const td_reducer name##_powers_reducer = {                                                   \
      sizeof(powers), false, powers_start, name##_powers_lines, name##_powers_columns, powers_combine, finish_powers, \
      NULL};
POWERS(float, single)
POWERS(double, twofold)
static const td_reducer *const powers_reducers[2] = {&single_powers_reducer, &twofold_powers_reducer};

// ---- kernel ----

static const td_reducer *reducer_of(const td_call *call, double order) {
  bool twofold = call->out[0].dtype == TD_FLOAT64;
  if (order == 0) return count_reducers[twofold];
  if (order == 1) return total_reducers[twofold];
  if (order == 2) return square_reducers[twofold];
  if (isinf(order)) return (order > 0 ? largest_reducers : smallest_reducers)[twofold];
  return powers_reducers[twofold];
}

// The squares of doubles may have overflowed, or vanished.
static bool is_doubtful(const td_view *out) {
  if (out->dtype != TD_FLOAT64) return false;
  for (int64_t i = 0; i < out->size; i++) {
    double y = ((const double *)out->data)[i];
    if (!(y > 1e-140 && y < 1e150)) return true;
  }
  return false;
}

static int norm_kernel(const td_call *call) {
  double order = call->args[0].f;
  const td_arg *axes = &call->args[1];
  uint8_t dtype = call->out[0].dtype;
  int code = td_reduce(call, axes, reducer_of(call, order), dtype, order);
  if (!code && order == 2 && is_doubtful(&call->out[0]))
    code = td_reduce(call, axes, &twofold_powers_reducer, dtype, order);
  return code;
}

static int64_t norm_workspace(const td_call *call) {
  return td_reduce_workspace(call, &call->args[1], &twofold_powers_reducer);
}

static int norm_infer(td_infer *infer) {
  double order = infer->args[0].f;
  infer->out[0].dtype = td_dtype_is_float(infer->in[0].dtype) ? infer->in[0].dtype : TD_FLOAT32;
  int code = td_reduction_shape(infer, &infer->args[1], infer->args[2].i);
  if (code) return code;
  if (isnan(order)) return td_infer_fail(infer, TD_ERROR_VALUE, "ord is NaN");
  if (td_reduction_count(&infer->in[0], &infer->args[1]) || (order >= 0 && !isinf(order))) return TD_OK;
  if (!td_shape_size(infer->out[0].rank, infer->out[0].shape)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "no identity for ord %g: the reduced axes hold no element", order);
}

// Of |x| / y with y the norm: sign(x) (|x| / y)^(ord - 1); 0 where x or the norm is 0.
static int norm_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  double order = rule->args[0].f;
  td_tensor *x = rule->in[0];
  td_tensor *y = td_reduction_expand(rule, rule->out[0], &rule->args[1], rule->args[2].i);
  td_tensor *c = td_reduction_expand(rule, rule->cotangent[0], &rule->args[1], rule->args[2].i);
  if (!x || !y || order == 0) return TD_OK;
  td_tensor *zero = td_scope_number(s, 0, x), *one = td_scope_number(s, 1, x), *minus = td_scope_number(s, -1, x);
  td_tensor *none = td_equal(s, x, zero), *slope;
  td_tensor *sign = td_where(s, td_greater(s, x, zero), one, td_where(s, td_less(s, x, zero), minus, zero));
  if (order == 1) slope = sign;
  else if (order == 2) slope = td_multiply(s, x, td_reciprocal_or_zero(s, y));
  else if (isinf(order)) {
    td_tensor *same = td_where(s, td_equal(s, td_multiply(s, x, sign), y), one, zero);
    slope = td_multiply(s, sign, td_divide(s, same, td_sum(s, same, &rule->args[1], true)));
  } else {
    td_tensor *ratio = td_multiply(s, td_multiply(s, x, sign), td_reciprocal_or_zero(s, y));
    td_tensor *flat = td_equal(s, y, zero);
    ratio = td_where(s, flat, one, td_where(s, none, one, ratio));
    slope = td_multiply(s, td_where(s, flat, zero, sign), td_power(s, ratio, td_scope_number(s, order - 1, x)));
  }
  rule->din[0] = td_chain(s, c, slope);
  return TD_OK;
}

static const td_op norm_op = {
    .name = "norm",
    .params = {TD_X,
               {.name = "ord", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(2), .alias = TD_ALIAS("p")},
               TD_AXIS_PARAM,
               TD_KEEPDIMS_PARAM},
    .kind = TD_KIND_REDUCE,
    .method = true,
    .infer = norm_infer,
    .kernel = norm_kernel,
    .workspace = norm_workspace,
    .batch = td_batch_axes,
    .vjp = norm_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .doc = "Length of the vectors along axis (of all elements when None): (sum |x|^ord)^(1/ord).\n"
           "ord = inf is the largest |x|, -inf the smallest, 0 the number of elements that are not 0. Matrices are "
           "taken as vectors of their elements.\n"
           "Gradient: c sign(x) (|x| / norm)^(ord - 1); 0 where x or the norm is 0, and for ord = 0; elements that tie "
           "for an infinite ord share.",
    .example = "norm(tensor([3., 4.])).item()  # 5.0",
    .samples = TD_SAMPLES{{"2,3", NULL, 0.5, 2, NULL},
                          {"2,3,4", "axis=1, ord=1", 0.5, 2, NULL},
                          {"2,3,4", "axis=(0, 2), keepdims=True, ord=3", 0.5, 2, NULL},
                          {"2,3", "ord=0.5, axis=0", 0.5, 2, NULL},
                          {"2,3", "ord=-1.5", 0.5, 2, NULL},
                          {"2,3", "ord=inf, axis=-1", 0.5, 2, NULL},
                          {"2,3", "ord=-inf, axis=-1", 0.5, 2, NULL},
                          {"2,3", "ord=0", 0.5, 2, NULL},
                          {"0,3", "axis=0", 0.5, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_norm[] = {&norm_op, NULL};
