// Comparisons, logic, and where. Results are bool; NaN compares as IEEE 754 says: it equals nothing, itself included,
// and is neither less nor greater. Numbers count as true where they are not 0.
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

// ---- kinds of numbers: integers are cast, as they are all finite ----

TD_MAP1(TD_EACH_FLOAT, isnan, FLOATING, uint8_t, x != x)
TD_KERNEL(isnan)
TRUTH_ROW(isnan, NULL, TD_X, 0, true, "Whether x is NaN.\nNo gradient: the result is bool.",
          "isnan(tensor([1., nan, inf])).tolist()  # [False, True, False]", unary_samples)

TD_MAP1(TD_EACH_FLOAT, isinf, FLOATING, uint8_t, ABS(x) == (T)INFINITY)
TD_KERNEL(isinf)
TRUTH_ROW(isinf, NULL, TD_X, 0, true, "Whether x is an infinity, of either sign.\nNo gradient: the result is bool.",
          "isinf(tensor([1., nan, -inf])).tolist()  # [False, False, True]", unary_samples)

TD_MAP1(TD_EACH_FLOAT, isfinite, FLOATING, uint8_t, ABS(x) < (T)INFINITY)
TD_KERNEL(isfinite)
TRUTH_ROW(isfinite, NULL, TD_X, 0, true, "Whether x is neither NaN nor an infinity.\nNo gradient: the result is bool.",
          "isfinite(tensor([1., nan, inf])).tolist()  # [True, False, False]", unary_samples)

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
  .params = { TD_TENSOR_PARAM("condition"), TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = where_infer,
  .kernel = where_kernel,
  .expression = where_text,
  .vjp = where_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x where the condition is true, that is not 0, and y elsewhere.\n"
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
  &logical_xor_op, &logical_not_op, &isnan_op, &isinf_op, &isfinite_op, &where_op, NULL,
};
