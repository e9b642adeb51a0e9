// Comparisons, logic, and where. Results are bool; NaN compares as IEEE 754 says: it equals nothing, itself included,
// and is neither less nor greater. Numbers count as true where they are not 0.
#include <string.h>
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample pair_samples[] = {
  { .shapes = "3,4; 3,4", .low = -2, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = -3, .high = 3, .dtypes = "int64; int64" },
  { .shapes = "-; 5", .low = -2, .high = 2 },
  { .shapes = "0,3; 3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample unary_samples[] = {
  { .shapes = "3,4", .low = -2, .high = 2 },
  { .shapes = "-", .low = -2, .high = 2, .dtypes = "int32" },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};

#define TRUTH_ROW(title, aliases, count_params, more_flags, is_method, summary, shown, fed)                            \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .alias = aliases,                                                                                                  \
    .params = { count_params },                                                                                        \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .flags = more_flags,                                                                                               \
    .method = is_method,                                                                                               \
    .infer = td_map_truth,                                                                                             \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .no_gradient = "bool result",                                                                                      \
    .doc = summary,                                                                                                    \
    .example = shown,                                                                                                  \
    .samples = fed,                                                                                                    \
  };

// ---- comparisons ----

TD_MAP2(TD_EACH_DTYPE, equal, COMMON, uint8_t, x == y)
TD_KERNEL(equal)
TRUTH_ROW(equal, TD_ALIAS("eq"), TD_XY, TD_COMMUTATIVE, true,
          "Whether x == y, element by element.\nNo gradient: the result is bool. NaN equals nothing.",
          "equal(tensor([1, 2, 3]), tensor([1, 0, 3])).tolist()  # [True, False, True]", pair_samples)

TD_MAP2(TD_EACH_DTYPE, not_equal, COMMON, uint8_t, x != y)
TD_KERNEL(not_equal)
TRUTH_ROW(not_equal, TD_ALIAS("ne"), TD_XY, TD_COMMUTATIVE, true,
          "Whether x != y, element by element.\nNo gradient: the result is bool. NaN differs from all numbers and NaN.",
          "not_equal(tensor([1, 2, 3]), tensor([1, 0, 3])).tolist()  # [False, True, False]", pair_samples)

TD_MAP2(TD_EACH_DTYPE, less, COMMON, uint8_t, x < y)
TD_KERNEL(less)
TRUTH_ROW(less, TD_ALIAS("lt"), TD_XY, 0, true,
          "Whether x < y, element by element.\nNo gradient: the result is bool. With NaN it is False.",
          "less(tensor([1, 2, 3]), 2).tolist()  # [True, False, False]", pair_samples)

TD_MAP2(TD_EACH_DTYPE, less_equal, COMMON, uint8_t, x <= y)
TD_KERNEL(less_equal)
TRUTH_ROW(less_equal, TD_ALIAS("le"), TD_XY, 0, true,
          "Whether x <= y, element by element.\nNo gradient: the result is bool. With NaN it is False.",
          "less_equal(tensor([1, 2, 3]), 2).tolist()  # [True, True, False]", pair_samples)

TD_MAP2(TD_EACH_DTYPE, greater, COMMON, uint8_t, x > y)
TD_KERNEL(greater)
TRUTH_ROW(greater, TD_ALIAS("gt"), TD_XY, 0, true,
          "Whether x > y, element by element.\nNo gradient: the result is bool. With NaN it is False.",
          "greater(tensor([1, 2, 3]), 2).tolist()  # [False, False, True]", pair_samples)

TD_MAP2(TD_EACH_DTYPE, greater_equal, COMMON, uint8_t, x >= y)
TD_KERNEL(greater_equal)
TRUTH_ROW(greater_equal, TD_ALIAS("ge"), TD_XY, 0, true,
          "Whether x >= y, element by element.\nNo gradient: the result is bool. With NaN it is False.",
          "greater_equal(tensor([1, 2, 3]), 2).tolist()  # [False, True, True]", pair_samples)

td_tensor *td_greater(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &greater_op, NULL, 2, a, b); }
td_tensor *td_less(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &less_op, NULL, 2, a, b); }
td_tensor *td_less_equal(td_scope *s, td_tensor *a, td_tensor *b) {
  return td_scope_apply(s, &less_equal_op, NULL, 2, a, b);
}
td_tensor *td_equal(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &equal_op, NULL, 2, a, b); }

// ---- logic ----

TD_MAP2(TD_EACH_BOOL, logical_and, TRUTH, uint8_t, x & y)
TD_KERNEL(logical_and)
TRUTH_ROW(logical_and, NULL, TD_XY, TD_COMMUTATIVE | TD_ASSOCIATIVE, true,
          "Whether x and y are both true, that is not 0.\nNo gradient: the result is bool. NaN counts as true.",
          "logical_and(tensor([True, True]), tensor([True, False])).tolist()  # [True, False]", pair_samples)

TD_MAP2(TD_EACH_BOOL, logical_or, TRUTH, uint8_t, x | y)
TD_KERNEL(logical_or)
TRUTH_ROW(logical_or, NULL, TD_XY, TD_COMMUTATIVE | TD_ASSOCIATIVE, true,
          "Whether x or y is true, that is not 0.\nNo gradient: the result is bool. NaN counts as true.",
          "logical_or(tensor([True, False]), tensor([False, False])).tolist()  # [True, False]", pair_samples)

TD_MAP2(TD_EACH_BOOL, logical_xor, TRUTH, uint8_t, x ^ y)
TD_KERNEL(logical_xor)
TRUTH_ROW(logical_xor, NULL, TD_XY, TD_COMMUTATIVE | TD_ASSOCIATIVE, true,
          "Whether just one of x and y is true, that is not 0.\nNo gradient: the result is bool. NaN counts as true.",
          "logical_xor(tensor([True, True]), tensor([True, False])).tolist()  # [False, True]", pair_samples)

TD_MAP1(TD_EACH_BOOL, logical_not, TRUTH, uint8_t, !x)
TD_KERNEL(logical_not)
TRUTH_ROW(logical_not, NULL, TD_X, 0, true,
          "Whether x is false, that is 0.\nNo gradient: the result is bool. NaN counts as true.",
          "logical_not(tensor([True, False])).tolist()  # [False, True]", unary_samples)

// ---- closeness: equal numbers are close, infinities only to themselves ----

static const char isclose_text[] = "IS_CLOSE(x, y, p, q) | ((r != 0) & (x != x) & (y != y))";
TD_EACH_FLOAT(TD_LOOP2, isclose, uint8_t, IS_CLOSE(x, y, p, q))
TD_MAP_TABLE(TD_EACH_FLOAT, isclose, 2, FLOATING)
TD_EACH_FLOAT(TD_LOOP2, isclose_nan, uint8_t, IS_CLOSE(x, y, p, q) | ((x != x) & (y != y)))
TD_MAP_TABLE(TD_EACH_FLOAT, isclose_nan, 2, FLOATING)
// Integers are compared in float64, where all but the largest differences are exact.
TD_EACH_DOUBLE(TD_LOOP2, isclose_whole, uint8_t, IS_CLOSE(x, y, p, q))
TD_MAP_TABLE(TD_EACH_DOUBLE, isclose_whole, 2, DOUBLE)

static int isclose_kernel(const td_call *call) {
  const double arguments[TD_MAP_ARGUMENTS] = {call->args[0].f, call->args[1].f};
  bool floating = td_dtype_is_float(call->in[0].dtype) || td_dtype_is_float(call->in[1].dtype);
  const td_map *map = !floating ? &isclose_whole_map : call->args[2].i ? &isclose_nan_map : &isclose_map;
  return td_map_run_with(call, map, arguments);
}

static int isclose_infer(td_infer *infer) {
  for (int k = 0; k < 2; k++)
    if (!(infer->args[k].f >= 0))
      return td_infer_fail(infer, TD_ERROR_VALUE, "%s must not be negative, it is %g", infer->op->params[2 + k].name,
                           infer->args[k].f);
  return td_map_truth(infer);
}

#define CLOSENESS                                                                                                      \
  { .name = "rtol", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1e-5) },                                      \
    { .name = "atol", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1e-8) },                                    \
    { .name = "equal_nan", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }

static const td_sample close_samples[] = {
  { .shapes = "3,4; 3,4", .low = -2, .high = 2 },
  { .shapes = "2,1,3; 4,1", .args = "rtol=0.5, atol=0.1", .low = -2, .high = 2 },
  { .shapes = "-; 5", .args = "atol=3", .low = 0, .high = 9, .dtypes = "int64; int64" },
  { .shapes = "0,3; 3", .args = "equal_nan=True", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};

static const td_op isclose_op = {
    .name = "isclose",
    .params = {TD_XY, CLOSENESS},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = isclose_infer,
    .kernel = isclose_kernel,
    .expression = isclose_text,
    .no_gradient = "bool result",
    .doc = "Whether abs(x - y) <= atol + rtol * abs(y), element by element.\n"
           "No gradient: the result is bool. An infinity is close to itself only, NaN to nothing, or to NaN if "
           "equal_nan.\n"
           "A negative rtol or atol is an error, as in PyTorch.",
    .example = "isclose(tensor([1., 2.]), tensor([1.000001, 2.1])).tolist()  # [True, False]",
    .samples = close_samples,
};

static int allclose_infer(td_infer *infer) {
  int code = isclose_infer(infer);
  infer->out[0].rank = 0;
  return code;
}

// What isclose's result is, before all of it is seen to be true.
static void view_closeness(const td_call *call, td_call *each) {
  *each = *call;
  td_view *out = &each->out[0];
  const td_view *x = &call->in[0], *y = &call->in[1];
  int axis, rank = 0;
  (void)td_shape_broadcast(x->rank, x->shape, y->rank, y->shape, &rank, out->shape, &axis);
  out->rank = (uint8_t)rank;
  out->size = 1;
  for (int d = rank - 1; d >= 0; d--) {
    out->strides[d] = out->size;
    out->size *= out->shape[d];
  }
}

static int64_t allclose_workspace(const td_call *call) {
  td_call each;
  view_closeness(call, &each);
  return each.out[0].size;
}

static int allclose_kernel(const td_call *call) {
  td_call each;
  view_closeness(call, &each);
  each.out[0].data = call->workspace;
  int code = isclose_kernel(&each);
  *call->out[0].data = !each.out[0].size || !memchr(call->workspace, 0, (size_t)each.out[0].size);
  return code;
}

static const td_op allclose_op = {
  .name = "allclose",
  .params = { TD_XY, CLOSENESS },
  .kind = TD_KIND_REDUCE,
  .method = true,
  .infer = allclose_infer,
  .kernel = allclose_kernel,
  .workspace = allclose_workspace,
  .no_gradient = "bool result",
  .doc = "Whether all elements of x and y are close, as isclose says: a single bool.\n"
         "No gradient: the result is bool. Shapes broadcast; of no elements it is True.",
  .example = "allclose(tensor([1., 2.]), tensor([1.000001, 2.])).item()  # True",
  .samples = close_samples,
};

// ---- where ----

static int where_infer(td_infer *infer) {
  int code = td_map_common(infer);
  uint8_t x = infer->in[1].dtype, y = infer->in[2].dtype;
  infer->out[0].dtype = x == y ? x : td_dtype_promote(x, y);
  return code;
}

// A choice moves bits, so that one loop serves all dtypes of a width.
static const char where_text[] = "x ? y : z";
TD_EACH_WRAPPING(TD_LOOP3, where, uint8_t, x ? y : z)
static const td_map where_map = {
  .inputs = 3,
  .compute = TD_COMPUTE_SELECT,
  .loops = { [TD_BOOL] = where_loop_UINT8, [TD_UINT8] = where_loop_UINT8, [TD_INT32] = where_loop_INT32,
             [TD_INT64] = where_loop_INT64, [TD_FLOAT32] = where_loop_INT32, [TD_FLOAT64] = where_loop_INT64 },
};
TD_KERNEL(where)

static int where_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *zero = td_scope_number(s, 0, c);
  if (rule->needs[1]) rule->din[1] = td_where(s, rule->in[0], c, zero);
  if (rule->needs[2]) rule->din[2] = td_where(s, rule->in[0], zero, c);
  return TD_OK;
}

static const td_op where_op = {
  .name = "where",
  .params = { { .name = "condition", .kind = TD_PARAM_INDEX }, TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = where_infer,
  .kernel = where_kernel,
  .expression = where_text,
  .vjp = where_vjp,
  .saves = TD_SAVES_IN0,
  .lone = &td_nonzero_tuple_op,
  .doc = "x where the condition is true, that is not 0, and y elsewhere. where(condition) alone gives the positions of "
         "what is true, as NumPy does: a tuple of int64 tensors, one for each axis.\n"
         "Gradient: the cotangent for the side that was taken, 0 for the other, which never leaks NaN.\n"
         "The condition has none.",
  .example = "where(tensor([True, False]), tensor([1., 2.]), 0).tolist()  # [1.0, 0.0]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 3,4; 3,4", .low = -2, .high = 2, .dtypes = "bool; float64; float64" },
    { .shapes = "3,1; -; 4", .low = -2, .high = 2, .dtypes = "bool; float64; float64" },
    { .shapes = "3; 0,3; 3", .low = -2, .high = 2, .dtypes = "bool; float64; float64" },
    TD_SAMPLES_END,
  },
};

td_tensor *td_where(td_scope *s, td_tensor *condition, td_tensor *a, td_tensor *b) {
  return td_scope_apply(s, &where_op, NULL, 3, condition, a, b);
}

const td_op *const td_family_compare[] = {
  &equal_op, &not_equal_op, &less_op, &less_equal_op, &greater_op, &greater_equal_op, &logical_and_op, &logical_or_op,
  &logical_xor_op, &logical_not_op, &isclose_op, &allclose_op, &where_op, NULL,
};
