// Elementwise ops: float64 against the C library in long double (float32: test_single.c), integers at their limits,
// strides, broadcasting and chunks against plain loops, casts, errors, and gradients where their formulas break.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/tape/tape.h"

static td_context *context;
static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(2);
  ck_assert_ptr_nonnull(context);
}

static void finish(void) {
  td_tapes_free(context);
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

// ---- helpers ----

// ck_assert_msg writes to a file each time: too slow for single elements.
#define REQUIRE(condition, ...)                                                                                        \
  if (!(condition)) ck_abort_msg(__VA_ARGS__)

static td_tensor *numbers(uint8_t dtype, int64_t count, const double *values) {
  td_tensor *t = td_tensor_new(context, dtype, 1, &count);
  for (int64_t i = 0; i < count; i++) {
    td_tensor *one = td_tensor_from_float(context, values[i], dtype);
    memcpy(t->data + i * td_dtype_bytes(dtype), one->data, (size_t)td_dtype_bytes(dtype));
    td_tensor_unref(one);
  }
  return t;
}
static td_tensor *integers(uint8_t dtype, int64_t count, const int64_t *values) {
  td_tensor *t = td_tensor_new(context, dtype, 1, &count);
  for (int64_t i = 0; i < count; i++) {
    td_tensor *one = td_tensor_from_int(context, values[i], dtype);
    memcpy(t->data + i * td_dtype_bytes(dtype), one->data, (size_t)td_dtype_bytes(dtype));
    td_tensor_unref(one);
  }
  return t;
}
#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))
#define FLOATS(dtype, ...) numbers(dtype, COUNT(((double[]){__VA_ARGS__})), (double[]){__VA_ARGS__})
#define INTS(dtype, ...) integers(dtype, COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__})

// Takes over a, b and c; those that are NULL are left out.
static int apply(const char *name, td_tensor *a, td_tensor *b, td_tensor *c, const td_arg *args, td_tensor **out) {
  td_tensor *in[3] = {a, b, c}, *outs[TD_OUTPUT_MAX] = {NULL};
  const td_op *op = td_op_find(name);
  ck_assert_msg(op != NULL, "no op %s", name);
  int code = td_op_apply(context, op, in, td_op_tensor_params(op), args, outs);
  for (int i = 0; i < 3; i++) td_tensor_unref(in[i]);
  *out = code ? NULL : outs[0];
  return code;
}

static td_tensor *done(const char *name, td_tensor *a, td_tensor *b, td_tensor *c) {
  td_tensor *out;
  if (apply(name, a, b, c, NULL, &out)) ck_abort_msg("%s", context->error.message);
  return out;
}

// Takes over t.
static void expect_floats(td_tensor *t, uint8_t dtype, int64_t count, const double *wanted) {
  ck_assert_str_eq(td_dtype_name(t->dtype), td_dtype_name(dtype));
  ck_assert_int_eq(t->size, count);
  for (int64_t i = 0; i < count; i++) {
    double got = td_tensor_get_float(t, i);
    bool same = isnan(wanted[i]) ? isnan(got) : got == wanted[i] && signbit(got) == signbit(wanted[i]);
    REQUIRE(same, "element %d is %.17g, not %.17g", (int)i, got, wanted[i]);
  }
  td_tensor_unref(t);
}
static void expect_ints(td_tensor *t, uint8_t dtype, int64_t count, const int64_t *wanted) {
  ck_assert_str_eq(td_dtype_name(t->dtype), td_dtype_name(dtype));
  ck_assert_int_eq(t->size, count);
  for (int64_t i = 0; i < count; i++) ck_assert_int_eq(td_tensor_get_int(t, i), wanted[i]);
  td_tensor_unref(t);
}
#define EXPECT_FLOATS(t, dtype, ...) expect_floats(t, dtype, COUNT(((double[]){__VA_ARGS__})), (double[]){__VA_ARGS__})
#define EXPECT_INTS(t, dtype, ...) expect_ints(t, dtype, COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__})

static void expect_error(const char *name, td_tensor *a, td_tensor *b, td_tensor *c, int code, const char *message,
                         const char *hint) {
  td_tensor *out;
  ck_assert_int_eq(apply(name, a, b, c, NULL, &out), code);
  ck_assert_msg(strstr(context->error.message, message) != NULL, "message: %s", context->error.message);
  ck_assert_msg(strstr(context->error.hint, hint) != NULL, "hint: %s", context->error.hint);
  td_error_clear(context);
}

// Distance in units of the last place that float32 has at wanted.
static double ulps(float got, double wanted) {
  if (isnan(wanted)) return isnan(got) ? 0 : INFINITY;
  if (isinf((float)wanted) || isinf(got)) return (float)wanted == got ? 0 : INFINITY;
  int exponent;
  frexp(wanted, &exponent);
  return fabs(got - wanted) / ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

// ---- float64 against the C library's long double ----

static long double sigmoid_long(long double x) { return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x)); }
static long double softplus_long(long double x) { return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x))); }

static const struct {
  const char *name;
  long double (*reference)(long double);
  double bound;
} wide_functions[] = {
    {"exp", expl, 1},       {"exp2", exp2l, 1},   {"expm1", expm1l, 2}, {"log", logl, 1},
    {"log1p", log1pl, 1},   {"sin", sinl, 1},     {"cos", cosl, 1},     {"sinh", sinhl, 2.5},
    {"cosh", coshl, 2},     {"tanh", tanhl, 2.5}, {"erf", erfl, 2},     {"erfc", erfcl, 6},
    {"asinh", asinhl, 2.5}, {"acosh", acoshl, 2}, {"atanh", atanhl, 2}, {"sigmoid", sigmoid_long, 2.5},
    {"softplus", softplus_long, 2}, {"log2", log2l, 1}, {"log10", log10l, 1}, {"tan", tanl, 2}, {"atan", atanl, 2},
    {"asin", asinl, 2}, {"acos", acosl, 1.25},
};

static double wide_ulps(double got, long double wanted) {
  if (isnan(wanted)) return isnan(got) ? 0 : INFINITY;
  if (isinf((double)wanted) || isinf(got)) return (double)wanted == got ? 0 : INFINITY;
  int exponent;
  frexpl(wanted, &exponent);
  return (double)fabsl(got - wanted) / ldexp(1, exponent - 53 < -1074 ? -1074 : exponent - 53);
}

// Every exponent of both signs, and numbers of moderate size.
static double wide_argument(int64_t i) {
  uint64_t bits = (uint64_t)i * 0x9e3779b97f4a7c15;
  double any;
  memcpy(&any, &bits, 8);
  return i % 2 ? any : (double)(int64_t)bits * 0x1p-63 * (i % 4 ? 40 : 3);
}

START_TEST(float64_is_within_its_bound) {
  int64_t count = 60000;
  td_tensor *x = td_tensor_new(context, TD_FLOAT64, 1, &count);
  for (int64_t i = 0; i < count; i++) ((double *)x->data)[i] = wide_argument(i);
  td_tensor *y = done(wide_functions[_i].name, td_tensor_ref(x), NULL, NULL);
  for (int64_t i = 0; i < count; i++) {
    double argument = ((double *)x->data)[i], got = ((double *)y->data)[i];
    double distance = wide_ulps(got, wide_functions[_i].reference(argument));
    REQUIRE(distance <= wide_functions[_i].bound, "%s(%a) is %a: off by %g ulp", wide_functions[_i].name, argument, got,
            distance);
  }
  td_tensor_unref(x);
  td_tensor_unref(y);
}
END_TEST

static const double edges[] = {0.,   -0., 1,        -1,        2,   -2,    3,      -3,   0.5,   -0.5,     2.5,
                               -2.5, 10,  INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 1e30, -1e30, 16777216, 8388609};

START_TEST(functions_of_two_hold_at_the_edges) {
  static const struct {
    const char *name;
    double (*reference)(double, double);
  } pairs[] = {{"power", pow}, {"atan2", atan2}, {"hypot", hypot}, {"fmod", fmod}, {"copysign", copysign}};
  for (int f = 0; f < COUNT(pairs); f++)
    for (int i = 0; i < COUNT(edges); i++) {
      td_tensor *y = done(pairs[f].name, FLOATS(TD_FLOAT32, edges[i]), numbers(TD_FLOAT32, COUNT(edges), edges), NULL);
      for (int j = 0; j < COUNT(edges); j++) {
        float a = (float)edges[i], b = (float)edges[j], got = ((float *)y->data)[j];
        double wanted = pairs[f].reference(a, b);
        REQUIRE(ulps(got, wanted) <= 1 && (isnan(wanted) || !signbit(got) == !signbit(wanted)),
                "%s(%g, %g) is %g, not %g", pairs[f].name, (double)a, (double)b, (double)got, wanted);
      }
      td_tensor_unref(y);
    }
}
END_TEST

START_TEST(power_is_within_one_ulp) {
  int64_t count = 200000;
  td_tensor *x = td_tensor_new(context, TD_FLOAT32, 1, &count), *y = td_tensor_new(context, TD_FLOAT32, 1, &count);
  srand(5);
  for (int64_t i = 0; i < count; i++) {
    ((float *)x->data)[i] = ldexpf(0.5f + (float)(rand() % 65536) / 131072, i % 2 ? rand() % 120 - 60 : 1);
    ((float *)y->data)[i] = (float)(rand() % 200001 - 100000) / (i % 2 ? 5e3f : 1e3f);
  }
  td_tensor *z = done("power", td_tensor_ref(x), td_tensor_ref(y), NULL);
  for (int64_t i = 0; i < count; i++) {
    double a = ((float *)x->data)[i], b = ((float *)y->data)[i];
    REQUIRE(ulps(((float *)z->data)[i], pow(a, b)) <= 1, "power(%a, %a) is %a", a, b, (double)((float *)z->data)[i]);
  }
  td_tensor_unref(x);
  td_tensor_unref(y);
  td_tensor_unref(z);
}
END_TEST

START_TEST(minus_zero_keeps_its_sign) {
  static const char *const odd[] = {"expm1", "log1p", "sin",   "tan",   "asin",  "atan",  "sinh", "tanh",
                                    "sqrt",  "floor", "round", "trunc", "asinh", "atanh", "erf",  "cbrt"};
  for (int i = 0; i < COUNT(odd); i++) {
    EXPECT_FLOATS(done(odd[i], FLOATS(TD_FLOAT32, -0., 0.), NULL, NULL), TD_FLOAT32, -0., 0.);
    EXPECT_FLOATS(done(odd[i], FLOATS(TD_FLOAT64, -0., 0.), NULL, NULL), TD_FLOAT64, -0., 0.);
  }
}
END_TEST

// The value must not depend on what stands beside it: large angles send the loop another way.
START_TEST(angles_do_not_depend_on_their_neighbours) {
  static const char *const names[] = {"sin", "cos", "tan"};
  for (int f = 0; f < 2 * COUNT(names); f++) {
    const char *name = names[f / 2];
    uint8_t dtype = f % 2 ? TD_FLOAT64 : TD_FLOAT32;
    td_tensor *alone = done(name, FLOATS(dtype, 1.25, -70000.5), NULL, NULL);
    td_tensor *beside = done(name, FLOATS(dtype, 1.25, -70000.5, 1e30, NAN), NULL, NULL);
    ck_assert_mem_eq(alone->data, beside->data, (size_t)(2 * td_dtype_bytes(dtype)));
    td_tensor_unref(alone);
    td_tensor_unref(beside);
  }
}
END_TEST

// ---- floating arithmetic ----

START_TEST(division_rounds_down) {
  for (uint8_t dtype = TD_FLOAT32; dtype <= TD_FLOAT64; dtype++) {
    EXPECT_FLOATS(done("floor_divide", FLOATS(dtype, -7, 7, -7, 7, 1, -1, 0, -0., 5),
                       FLOATS(dtype, 2, 2, -2, -2, 0, 0, 0, 3, INFINITY), NULL),
                  dtype, -4, 3, 3, -4, INFINITY, -INFINITY, NAN, -0., 0.);
    EXPECT_FLOATS(done("remainder", FLOATS(dtype, -7, 7, -7, 7, 5, -5, 4, -4),
                       FLOATS(dtype, 2, 2, -2, -2, 0, INFINITY, -2, 2), NULL),
                  dtype, 1, 1, -1, -1, NAN, INFINITY, -0., 0.);
  }
  EXPECT_FLOATS(done("divide", INTS(TD_INT64, 1, -1, 0), INTS(TD_INT64, 4, 0, 0), NULL), TD_FLOAT32, 0.25, -INFINITY,
                NAN);
}
END_TEST

START_TEST(nan_goes_through) {
  EXPECT_FLOATS(done("maximum", FLOATS(TD_FLOAT32, 1, NAN, 2), FLOATS(TD_FLOAT32, NAN, 1, 3), NULL), TD_FLOAT32, NAN,
                NAN, 3);
  EXPECT_FLOATS(done("minimum", FLOATS(TD_FLOAT64, 1, NAN, 2), FLOATS(TD_FLOAT64, NAN, 1, 3), NULL), TD_FLOAT64, NAN,
                NAN, 2);
  EXPECT_FLOATS(done("clip", FLOATS(TD_FLOAT32, NAN, -INFINITY, 0.5, 9), FLOATS(TD_FLOAT32, 0), FLOATS(TD_FLOAT32, 1)),
                TD_FLOAT32, NAN, 0, 0.5, 1);
  EXPECT_FLOATS(done("clip", FLOATS(TD_FLOAT32, -3, 3), NULL, FLOATS(TD_FLOAT32, 1)), TD_FLOAT32, -3, 1);
  EXPECT_FLOATS(done("clip", FLOATS(TD_FLOAT32, -3, 3), FLOATS(TD_FLOAT32, 1), NULL), TD_FLOAT32, 1, 3);
  EXPECT_FLOATS(done("sign", FLOATS(TD_FLOAT32, NAN, -2, 0), NULL, NULL), TD_FLOAT32, NAN, -1, 0);
  EXPECT_FLOATS(done("relu", FLOATS(TD_FLOAT32, NAN, -2, 2, -INFINITY), NULL, NULL), TD_FLOAT32, NAN, 0, 2, 0);
  EXPECT_INTS(done("isnan", FLOATS(TD_FLOAT32, NAN, INFINITY, 1), NULL, NULL), TD_BOOL, 1, 0, 0);
  EXPECT_INTS(done("isinf", FLOATS(TD_FLOAT64, NAN, -INFINITY, 1), NULL, NULL), TD_BOOL, 0, 1, 0);
  EXPECT_INTS(done("isfinite", FLOATS(TD_FLOAT32, NAN, INFINITY, 1), NULL, NULL), TD_BOOL, 0, 0, 1);
  EXPECT_INTS(done("isfinite", INTS(TD_INT64, 1), NULL, NULL), TD_BOOL, 1);
}
END_TEST

START_TEST(nan_compares_as_ieee_says) {
  static const struct {
    const char *name;
    int64_t wanted[4];
  } rows[] = {{"equal", {0, 0, 1, 0}},      {"not_equal", {1, 1, 0, 1}}, {"less", {0, 0, 0, 1}},
              {"less_equal", {0, 0, 1, 1}}, {"greater", {0, 0, 0, 0}},   {"greater_equal", {0, 0, 1, 0}}};
  for (int i = 0; i < COUNT(rows); i++) {
    expect_ints(done(rows[i].name, FLOATS(TD_FLOAT32, NAN, NAN, 1, 1), FLOATS(TD_FLOAT32, NAN, 1, 1, 2), NULL), TD_BOOL,
                4, rows[i].wanted);
    expect_ints(done(rows[i].name, FLOATS(TD_FLOAT64, NAN, NAN, 1, 1), FLOATS(TD_FLOAT32, NAN, 1, 1, 2), NULL), TD_BOOL,
                4, rows[i].wanted);
  }
}
END_TEST

// ---- integers and bool ----

START_TEST(integers_wrap) {
  EXPECT_INTS(done("add", INTS(TD_INT32, INT32_MAX), INTS(TD_INT32, 1), NULL), TD_INT32, INT32_MIN);
  EXPECT_INTS(done("subtract", INTS(TD_INT64, INT64_MIN), INTS(TD_INT64, 1), NULL), TD_INT64, INT64_MAX);
  EXPECT_INTS(done("multiply", INTS(TD_UINT8, 200, 16), INTS(TD_UINT8, 2, 17), NULL), TD_UINT8, 144, 16);
  EXPECT_INTS(done("negative", INTS(TD_INT32, INT32_MIN, 5), NULL, NULL), TD_INT32, INT32_MIN, -5);
  EXPECT_INTS(done("negative", INTS(TD_UINT8, 1), NULL, NULL), TD_UINT8, 255);
  EXPECT_INTS(done("abs", INTS(TD_INT64, INT64_MIN, -5), NULL, NULL), TD_INT64, INT64_MIN, 5);
  EXPECT_INTS(done("square", INTS(TD_INT32, 65536, -3), NULL, NULL), TD_INT32, 0, 9);
  EXPECT_INTS(done("power", INTS(TD_INT64, 3, -2, 0, 2), INTS(TD_INT64, 39, 3, 0, 64), NULL), TD_INT64,
              4052555153018976267, -8, 1, 0);
  EXPECT_INTS(done("sign", INTS(TD_INT32, -9, 0, 4), NULL, NULL), TD_INT32, -1, 0, 1);
  EXPECT_INTS(done("add", INTS(TD_UINT8, 250), INTS(TD_INT32, 10), NULL), TD_INT32, 260);
  EXPECT_INTS(done("floor", INTS(TD_INT64, INT64_MAX), NULL, NULL), TD_INT64, INT64_MAX);
}
END_TEST

START_TEST(integer_division_never_traps) {
  for (uint8_t dtype = TD_INT32; dtype <= TD_INT64; dtype++) {
    int64_t least = dtype == TD_INT32 ? INT32_MIN : INT64_MIN;
    EXPECT_INTS(done("floor_divide", INTS(dtype, -7, 7, -7, 7, least), INTS(dtype, 2, 2, -2, -2, -1), NULL), dtype, -4,
                3, 3, -4, least);
    EXPECT_INTS(done("remainder", INTS(dtype, -7, 7, -7, 7, least), INTS(dtype, 2, 2, -2, -2, -1), NULL), dtype, 1, 1,
                -1, -1, 0);
  }
  EXPECT_INTS(done("floor_divide", INTS(TD_UINT8, 255, 7), INTS(TD_UINT8, 255, 2), NULL), TD_UINT8, 1, 3);
  expect_error("floor_divide", INTS(TD_INT64, 5, 6, 7), INTS(TD_INT64, 1, 2, 0), NULL, TD_ERROR_ZERO_DIVISION,
               "element 2 of y is 0", "float32");
  expect_error("remainder", INTS(TD_UINT8, 5), INTS(TD_UINT8, 0), NULL, TD_ERROR_ZERO_DIVISION,
               "remainder: integer division", "float32");
  int64_t none = 0;
  td_tensor *empty = td_tensor_zeros(context, TD_INT64, 1, &none);
  expect_ints(done("remainder", empty, INTS(TD_INT64, 0), NULL), TD_INT64, 0, NULL);
}
END_TEST

START_TEST(shifts_are_defined_for_all_counts) {
  EXPECT_INTS(done("left_shift", INTS(TD_INT32, 1, 1, 1, 1), INTS(TD_INT32, 31, 32, -1, 4), NULL), TD_INT32, INT32_MIN,
              0, 0, 16);
  EXPECT_INTS(done("right_shift", INTS(TD_INT64, -5, -5, 5, -5), INTS(TD_INT64, 1, 64, 64, -1), NULL), TD_INT64, -3, -1,
              0, -1);
  EXPECT_INTS(done("left_shift", INTS(TD_UINT8, 255, 255), INTS(TD_UINT8, 1, 8), NULL), TD_UINT8, 254, 0);
  EXPECT_INTS(done("right_shift", INTS(TD_UINT8, 255, 255), INTS(TD_UINT8, 7, 8), NULL), TD_UINT8, 1, 0);
  EXPECT_INTS(done("bitwise_not", INTS(TD_BOOL, 1, 0), NULL, NULL), TD_BOOL, 0, 1);
  EXPECT_INTS(done("bitwise_xor", INTS(TD_UINT8, 12), INTS(TD_INT64, 10), NULL), TD_INT64, 6);
}
END_TEST

START_TEST(bool_is_logic) {
  EXPECT_INTS(done("add", INTS(TD_BOOL, 0, 1, 1), INTS(TD_BOOL, 0, 0, 1), NULL), TD_BOOL, 0, 1, 1);
  EXPECT_INTS(done("multiply", INTS(TD_BOOL, 0, 1, 1), INTS(TD_BOOL, 0, 0, 1), NULL), TD_BOOL, 0, 0, 1);
  EXPECT_INTS(done("maximum", INTS(TD_BOOL, 0, 1), INTS(TD_BOOL, 0, 0), NULL), TD_BOOL, 0, 1);
  EXPECT_INTS(done("logical_and", FLOATS(TD_FLOAT32, 0, 0.5, NAN), INTS(TD_INT64, 7, 7, 7), NULL), TD_BOOL, 0, 1, 1);
  EXPECT_INTS(done("logical_xor", FLOATS(TD_FLOAT64, 0, 0.5), INTS(TD_UINT8, 7, 7), NULL), TD_BOOL, 1, 0);
  EXPECT_INTS(done("logical_not", FLOATS(TD_FLOAT32, -0., 2), NULL, NULL), TD_BOOL, 1, 0);
  expect_error("subtract", INTS(TD_BOOL, 1), INTS(TD_BOOL, 0), NULL, TD_ERROR_DTYPE, "subtract: ", "logical_xor");
  expect_error("negative", INTS(TD_BOOL, 1), NULL, NULL, TD_ERROR_DTYPE, "negative: ", "astype");
  EXPECT_INTS(done("subtract", INTS(TD_BOOL, 0), INTS(TD_INT32, 1), NULL), TD_INT32, -1);
  EXPECT_FLOATS(done("exp", INTS(TD_BOOL, 0), NULL, NULL), TD_FLOAT32, 1);
}
END_TEST

START_TEST(errors_name_what_is_wrong) {
  expect_error("add", FLOATS(TD_FLOAT32, 1, 2, 3), FLOATS(TD_FLOAT32, 1, 2), NULL, TD_ERROR_SHAPE,
               "add: shapes [3] and [2]", "");
  expect_error("where", INTS(TD_BOOL, 1), FLOATS(TD_FLOAT32, 1, 2, 3), FLOATS(TD_FLOAT32, 1, 2), TD_ERROR_SHAPE,
               "[3] and [2]", "");
  expect_error("where", INTS(TD_BOOL, 1, 0), FLOATS(TD_FLOAT32, 1), FLOATS(TD_FLOAT32, 1, 2, 3), TD_ERROR_SHAPE,
               "[2] and [3]", "");
  expect_error("bitwise_and", FLOATS(TD_FLOAT32, 1), INTS(TD_INT32, 1), NULL, TD_ERROR_DTYPE,
               "needs integers, got float32", "int64");
  expect_error("power", INTS(TD_INT64, 2, 2), INTS(TD_INT64, 1, -1), NULL, TD_ERROR_VALUE, "element 1 of y",
               "x.astype(float32)");
  expect_error("clip", FLOATS(TD_FLOAT32, 1), NULL, NULL, TD_ERROR_TYPE, "one of low and high", "");
}
END_TEST

START_TEST(choice_takes_any_condition) {
  EXPECT_FLOATS(done("where", FLOATS(TD_FLOAT32, 0, 0.5, NAN), FLOATS(TD_FLOAT32, 1, 2, 3), INTS(TD_INT64, -1)),
                TD_FLOAT32, -1, 2, 3);
  EXPECT_INTS(done("where", INTS(TD_BOOL, 1, 0), INTS(TD_UINT8, 1), INTS(TD_INT32, 300)), TD_INT32, 1, 300);
  EXPECT_FLOATS(done("where", INTS(TD_BOOL, 1, 0), FLOATS(TD_FLOAT16, 1), FLOATS(TD_FLOAT16, 2)), TD_FLOAT16, 1, 2);
}
END_TEST

// ---- strides, broadcasting, chunks ----

static td_tensor *counting(uint8_t dtype, int rank, const int64_t *shape, int seed) {
  td_tensor *t = td_tensor_new(context, dtype, rank, shape);
  for (int64_t i = 0; i < t->size; i++) {
    td_tensor *one = td_tensor_from_int(context, (i * 7 + seed) % 97, dtype);
    memcpy(t->data + i * td_dtype_bytes(dtype), one->data, (size_t)td_dtype_bytes(dtype));
    td_tensor_unref(one);
  }
  return t;
}

// A view of t with its axes turned over and each axis d stepped by step[d], backwards where negative. Takes over t.
static td_tensor *turned(td_tensor *t, const int64_t *step) {
  int64_t shape[TD_RANK_MAX], strides[TD_RANK_MAX], offset = 0;
  for (int d = 0; d < t->rank; d++) {
    int from = t->rank - 1 - d;
    int64_t size = t->shape[from], by = llabs(step[d]);
    shape[d] = (size + by - 1) / by;
    strides[d] = t->strides[from] * step[d];
    if (step[d] < 0 && size > 0) offset += t->strides[from] * (shape[d] - 1) * by;
  }
  td_tensor *view = td_tensor_view(context, t, t->rank, shape, strides, offset);
  td_tensor_unref(t);
  return view;
}

// Element of t that broadcasting puts at the row-major index of a tensor of that shape.
static double broadcast_element(const td_tensor *t, int rank, const int64_t *shape, int64_t index) {
  int64_t at = 0, factor = 1;
  for (int d = rank - 1; d >= 0; d--) {
    int64_t i = index % shape[d];
    index /= shape[d];
    int axis = d - rank + t->rank;
    if (axis < 0) continue;
    if (t->shape[axis] != 1) at += i * factor;
    factor *= t->shape[axis];
  }
  return td_tensor_get_float(t, at);
}

static void expect_element(const td_tensor *t, int64_t index, double wanted) {
  double got = td_tensor_get_float(t, index);
  REQUIRE(got == wanted, "element %lld is %.17g, not %.17g", (long long)index, got, wanted);
}

// Takes over the operands; their numbers are small integers, so that all dtypes agree.
static void check_walk(td_tensor *x, td_tensor *y, td_tensor *z) {
  td_tensor *sum = done("add", td_tensor_ref(x), td_tensor_ref(y), NULL);
  for (int64_t i = 0; i < sum->size; i++)
    expect_element(sum, i,
                   broadcast_element(x, sum->rank, sum->shape, i) + broadcast_element(y, sum->rank, sum->shape, i));
  td_tensor_unref(sum);
  td_tensor *chosen = done("where", td_tensor_ref(z), td_tensor_ref(x), td_tensor_ref(y));
  for (int64_t i = 0; i < chosen->size; i++) {
    bool first = broadcast_element(z, chosen->rank, chosen->shape, i) != 0;
    expect_element(chosen, i, broadcast_element(first ? x : y, chosen->rank, chosen->shape, i));
  }
  td_tensor_unref(chosen);
  td_tensor *root = done("sqrt", td_tensor_ref(x), NULL, NULL);
  for (int64_t i = 0; i < root->size; i++) {
    double wanted = sqrt(td_tensor_get_float(x, i));
    expect_element(root, i, root->dtype == TD_FLOAT32 ? (double)(float)wanted : wanted);
  }
  td_tensor_unref(root);
  td_tensor_unref(x);
  td_tensor_unref(y);
  td_tensor_unref(z);
}
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

START_TEST(any_strides_and_dtypes) {
  static const uint8_t dtypes[] = {TD_INT32, TD_INT64, TD_FLOAT32, TD_FLOAT64};
  for (int a = 0; a < COUNT(dtypes); a++)
    for (int b = 0; b < COUNT(dtypes); b++) {
      uint8_t p = dtypes[a], q = dtypes[b];
      check_walk(counting(p, 3, SHAPE(3, 4, 5), 1), counting(q, 3, SHAPE(3, 4, 5), 2),
                 counting(TD_BOOL, 3, SHAPE(3, 4, 5), 3));
      check_walk(turned(counting(p, 3, SHAPE(9, 8, 5), 1), SHAPE(-2, 3, 1)),
                 turned(counting(q, 3, SHAPE(9, 3, 3), 2), SHAPE(1, -1, 1)), counting(TD_BOOL, 1, SHAPE(1), 1));
      check_walk(counting(p, 2, SHAPE(7, 1), 1), counting(q, 1, SHAPE(1300), 2), counting(TD_UINT8, 2, SHAPE(7, 1), 0));
      check_walk(counting(p, 0, NULL, 1), counting(q, 2, SHAPE(2, 3), 2), counting(TD_FLOAT32, 3, SHAPE(2, 1, 1), 0));
      check_walk(counting(p, 0, NULL, 1), counting(q, 0, NULL, 2), counting(TD_BOOL, 0, NULL, 1));
      check_walk(counting(p, 2, SHAPE(700, 3), 1), counting(q, 1, SHAPE(3), 2), counting(TD_BOOL, 2, SHAPE(700, 1), 1));
      check_walk(turned(counting(p, 2, SHAPE(3, 700), 1), SHAPE(1, 1)), counting(q, 0, NULL, 2),
                 counting(TD_BOOL, 0, NULL, 1));
      check_walk(counting(p, 2, SHAPE(0, 3), 1), counting(q, 1, SHAPE(3), 2), counting(TD_BOOL, 1, SHAPE(1), 1));
      check_walk(turned(counting(p, 2, SHAPE(1201, 3), 1), SHAPE(1, 2)), counting(q, 1, SHAPE(601), 2),
                 counting(TD_BOOL, 1, SHAPE(601), 1));
    }
}
END_TEST

START_TEST(repeated_views_are_read_rightly) { // strides of 0 in every operand
  td_tensor *x = FLOATS(TD_FLOAT32, 4), *y = FLOATS(TD_FLOAT32, 5);
  td_tensor *wide_x = td_tensor_view(context, x, 1, SHAPE(700), SHAPE(0), 0);
  td_tensor *wide_y = td_tensor_view(context, y, 1, SHAPE(700), SHAPE(0), 0);
  td_tensor_unref(x);
  td_tensor_unref(y);
  check_walk(wide_x, wide_y, counting(TD_BOOL, 1, SHAPE(700), 0));
}
END_TEST

START_TEST(chunks_do_not_show) { // one thread and two, one piece and many
  int64_t size = 300007;
  td_tensor *x = counting(TD_FLOAT32, 1, &size, 3), *y = counting(TD_FLOAT32, 1, &size, 5);
  td_context *alone = td_context_new(1), *both = context;
  td_tensor *two = done("atan2", td_tensor_ref(x), td_tensor_ref(y), NULL);
  context = alone;
  td_tensor *one = done("atan2", td_tensor_ref(x), td_tensor_ref(y), NULL);
  context = both;
  ck_assert_mem_eq(one->data, two->data, (size_t)size * 4);
  for (int64_t i = 0; i < size; i += 7919) {
    td_tensor *a = td_tensor_view(context, x, 0, NULL, NULL, i), *b = td_tensor_view(context, y, 0, NULL, NULL, i);
    td_tensor *single = done("atan2", a, b, NULL);
    ck_assert_mem_eq(single->data, two->data + 4 * i, 4);
    td_tensor_unref(single);
  }
  td_tensor_unref(one);
  td_tensor_unref(two);
  td_context_free(alone);
  check_walk(counting(TD_FLOAT32, 2, SHAPE(30001, 3), 1), counting(TD_FLOAT32, 1, SHAPE(3), 2), INTS(TD_BOOL, 1, 0, 1));
  td_tensor *column = td_tensor_view(context, y, 2, SHAPE(300, 1), SHAPE(1, 1), 0),
            *row = td_tensor_view(context, x, 1, SHAPE(1000), SHAPE(3), 0);
  check_walk(column, row, INTS(TD_BOOL, 1));
  td_tensor_unref(x);
  td_tensor_unref(y);
}
END_TEST

// ---- casts ----

static int cast(td_tensor *x, uint8_t dtype, bool saturate, td_tensor **out) {
  td_arg args[] = {TD_INT_DEFAULT(dtype), TD_INT_DEFAULT(saturate)};
  return apply("cast", x, NULL, NULL, args, out);
}
static td_tensor *casted(td_tensor *x, uint8_t dtype, bool saturate) {
  td_tensor *out;
  if (cast(x, dtype, saturate, &out)) ck_abort_msg("%s", context->error.message);
  return out;
}

START_TEST(every_dtype_casts_to_every_other) {
  for (uint8_t from = 0; from < TD_DTYPE_COUNT; from++)
    for (uint8_t to = 0; to < TD_DTYPE_COUNT; to++) {
      td_tensor *x = turned(counting(from, 2, SHAPE(6, 700), 0), SHAPE(-1, 2)),
                *y = casted(td_tensor_ref(x), to, false);
      for (int64_t i = 0; i < x->size; i++) {
        double value = td_tensor_get_float(x, i);
        expect_element(y, i, to == TD_BOOL ? value != 0 : value);
      }
      td_tensor_unref(x);
      td_tensor_unref(y);
    }
}
END_TEST

START_TEST(casts_truncate_wrap_and_saturate) {
  EXPECT_INTS(casted(FLOATS(TD_FLOAT32, 1.9, -1.9, 255.9, -0.9), TD_INT32, false), TD_INT32, 1, -1, 255, 0);
  EXPECT_INTS(casted(FLOATS(TD_FLOAT64, 255.9, -0.9), TD_UINT8, false), TD_UINT8, 255, 0);
  EXPECT_INTS(casted(FLOATS(TD_FLOAT64, 2147483647.9, -2147483648.9), TD_INT32, false), TD_INT32, INT32_MAX, INT32_MIN);
  EXPECT_INTS(casted(FLOATS(TD_FLOAT64, -0x1p63, 0x1.fffffffffffffp62), TD_INT64, false), TD_INT64, INT64_MIN,
              9223372036854774784);
  EXPECT_INTS(casted(INTS(TD_INT64, 256, -1, 300), TD_UINT8, false), TD_UINT8, 0, 255, 44);
  EXPECT_INTS(casted(INTS(TD_INT64, 256, -1, 30), TD_UINT8, true), TD_UINT8, 255, 0, 30);
  EXPECT_INTS(casted(INTS(TD_INT64, INT64_MAX, INT64_MIN, 7), TD_INT32, true), TD_INT32, INT32_MAX, INT32_MIN, 7);
  for (uint8_t from = TD_FLOAT16; from <= TD_FLOAT64; from++) {
    EXPECT_INTS(casted(FLOATS(from, NAN, INFINITY, -INFINITY, 2.5), TD_INT32, true), TD_INT32, 0, INT32_MAX, INT32_MIN,
                2);
    EXPECT_INTS(casted(FLOATS(from, NAN, INFINITY, -INFINITY, 2.5), TD_INT64, true), TD_INT64, 0, INT64_MAX, INT64_MIN,
                2);
    EXPECT_INTS(casted(FLOATS(from, NAN, INFINITY, -INFINITY, 2.5), TD_UINT8, true), TD_UINT8, 0, 255, 0, 2);
    EXPECT_INTS(casted(FLOATS(from, NAN, 0., -0., 0.5), TD_BOOL, false), TD_BOOL, 1, 0, 0, 1);
  }
}
END_TEST

START_TEST(what_does_not_fit_is_named) {
  static const double bad[] = {NAN, INFINITY, -INFINITY, 3e9, -3e9};
  static const char *const texts[] = {"nan", "inf", "-inf", "3000000000.0", "-3000000000.0"};
  for (int i = 0; i < COUNT(bad); i++) {
    td_tensor *flat = FLOATS(TD_FLOAT64, 1, 2, 3, 4, bad[i], bad[i]), *out;
    td_tensor *x = td_tensor_view(context, flat, 2, SHAPE(2, 3), SHAPE(3, 1), 0);
    td_tensor_unref(flat);
    ck_assert_int_eq(cast(x, TD_INT32, false, &out), TD_ERROR_VALUE);
    char wanted[100];
    snprintf(wanted, sizeof wanted, "cast: element [1, 1] is %s, which int32 can't hold", texts[i]);
    ck_assert_str_eq(context->error.message, wanted);
    ck_assert_ptr_nonnull(strstr(context->error.hint, "saturate=True"));
    td_error_clear(context);
  }
}
END_TEST

START_TEST(halves_are_rounded_once) {
  // 1 + 2^-11 is the middle of two float16; what lies just above it must go up, though float32 would see the middle
  // itself
  EXPECT_FLOATS(casted(FLOATS(TD_FLOAT64, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40, 1e300, NAN),
                       TD_FLOAT16, false),
                TD_FLOAT16, 1, 1 + 0x1p-10, 1, INFINITY, NAN);
  EXPECT_FLOATS(casted(FLOATS(TD_FLOAT64, 1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-40, -1e300), TD_BFLOAT16, false), TD_BFLOAT16,
                1, 1 + 0x1p-7, -INFINITY);
  EXPECT_FLOATS(casted(INTS(TD_INT32, 2049, 65520), TD_FLOAT16, false), TD_FLOAT16, 2048, INFINITY);
  EXPECT_FLOATS(done("add", FLOATS(TD_FLOAT16, 1, 2), FLOATS(TD_FLOAT16, 0x1p-11, 1), NULL), TD_FLOAT16, 1, 3);
}
END_TEST

// ---- gradients where formulas break ----

typedef td_tensor *formula(td_scope *s, td_tensor *x, td_tensor *y);

// Gradient of the sum of f(x, y), or of that gradient's sum when order is 2, in x (or y when second). Takes over x and
// y.
static td_tensor *gradient_of(formula *f, td_tensor *x, td_tensor *y, bool second, int order) {
  td_tape *tapes[2];
  td_scope s;
  td_scope_open(&s, context);
  for (int i = 0; i < order; i++) {
    tapes[i] = td_tape_new(context, true, false);
    ck_assert_int_eq(td_tape_open(context, tapes[i]), TD_OK);
    ck_assert_int_eq(td_tape_watch(context, tapes[i], x), TD_OK);
    if (y) ck_assert_int_eq(td_tape_watch(context, tapes[i], y), TD_OK);
  }
  td_tensor *target = f(&s, x, y), *gradient = NULL;
  for (int i = order - 1; i >= 0; i--) {
    td_tape_close(context, tapes[i]);
    td_source source = {.tensor = second ? y : x};
    if (!target || td_tape_gradient(context, tapes[i], &target, 1, NULL, &source, 1, true, &gradient))
      ck_abort_msg("%s", context->error.message);
    if (i) target = td_scope_own(&s, gradient);
  }
  for (int i = 0; i < order; i++) td_tape_unref(context, tapes[i]);
  td_scope_close(&s);
  td_tensor_unref(x);
  td_tensor_unref(y);
  return gradient;
}

static td_tensor *named(td_scope *s, const char *name, td_tensor *x) {
  return td_scope_apply(s, td_op_find(name), NULL, 1, x);
}
static td_tensor *number(td_scope *s, double value, td_tensor *like) { return td_scope_number(s, value, like); }

static td_tensor *root_where_positive(td_scope *s, td_tensor *x, td_tensor *y) {
  (void)y;
  return td_where(s, td_greater(s, x, number(s, 0, x)), td_sqrt(s, x), x);
}
static td_tensor *log_where_positive(td_scope *s, td_tensor *x, td_tensor *y) {
  (void)y;
  return td_where(s, td_greater(s, x, number(s, 0, x)), td_multiply(s, td_log(s, x), td_divide(s, x, x)), x);
}
static td_tensor *first_quotient(td_scope *s, td_tensor *x, td_tensor *y) {
  td_tensor *all = td_divide(s, x, y), *zero = number(s, 0, x);
  return td_where(s, td_greater(s, td_add(s, y, zero), zero), all, zero);
}
static td_tensor *magnitude(td_scope *s, td_tensor *x, td_tensor *y) { return (void)y, named(s, "abs", x); }
static td_tensor *larger(td_scope *s, td_tensor *x, td_tensor *y) { return td_maximum(s, x, y); }
static td_tensor *smaller(td_scope *s, td_tensor *x, td_tensor *y) {
  return td_scope_apply(s, td_op_find("minimum"), NULL, 2, x, y);
}
static td_tensor *rectified(td_scope *s, td_tensor *x, td_tensor *y) { return (void)y, named(s, "relu", x); }
static td_tensor *clipped(td_scope *s, td_tensor *x, td_tensor *y) {
  (void)y;
  return td_scope_apply(s, td_op_find("clip"), NULL, 3, x, number(s, 1, x), number(s, 4, x));
}

START_TEST(gradients_at_the_edges) {
  for (uint8_t d = TD_FLOAT32; d <= TD_FLOAT64; d++) {
    EXPECT_FLOATS(gradient_of(root_where_positive, FLOATS(d, -1, -4, 0), NULL, false, 1), d, 1, 1, 1);
    EXPECT_FLOATS(gradient_of(root_where_positive, FLOATS(d, -1, -4, 0), NULL, false, 2), d, 0, 0, 0);
    EXPECT_FLOATS(gradient_of(log_where_positive, FLOATS(d, -1, 0), NULL, false, 1), d, 1, 1);
    EXPECT_FLOATS(gradient_of(first_quotient, FLOATS(d, 1, 1, 1), FLOATS(d, 1, 0, 1), false, 1), d, 1, 0, 1);
    EXPECT_FLOATS(gradient_of(first_quotient, FLOATS(d, 1, 1, 1), FLOATS(d, 1, 0, 1), true, 1), d, -1, -0., -1);
    EXPECT_FLOATS(gradient_of(magnitude, FLOATS(d, -2, 0, 3), NULL, false, 1), d, -1, 0, 1);
    EXPECT_FLOATS(gradient_of(larger, FLOATS(d, 1, 2, 3), FLOATS(d, 2, 2, 2), false, 1), d, 0, 0.5, 1);
    EXPECT_FLOATS(gradient_of(larger, FLOATS(d, 1, 2, 3), FLOATS(d, 2, 2, 2), true, 1), d, 1, 0.5, 0);
    EXPECT_FLOATS(gradient_of(smaller, FLOATS(d, 1, 2, 3), FLOATS(d, 2, 2, 2), false, 1), d, 1, 0.5, 0);
    EXPECT_FLOATS(gradient_of(rectified, FLOATS(d, -1, 0, 2), NULL, false, 1), d, 0, 0, 1);
    EXPECT_FLOATS(gradient_of(clipped, FLOATS(d, 0, 1, 2, 4, 5), NULL, false, 1), d, 0, 1, 1, 1, 0);
  }
}
END_TEST

START_TEST(gradients_of_powers_at_the_edges) {
  for (uint8_t d = TD_FLOAT32; d <= TD_FLOAT64; d++) {
    double steep = d == TD_FLOAT32 ? (double)(float)(2 * M_LN2) : 2 * log(2);
    EXPECT_FLOATS(gradient_of(td_power, FLOATS(d, 0, 2), FLOATS(d, 1, 1), true, 1), d, 0, steep);
    EXPECT_FLOATS(gradient_of(td_power, FLOATS(d, 0, 2, -3), FLOATS(d, 0, 0, 0), false, 1), d, 0, 0, 0);
    EXPECT_FLOATS(gradient_of(td_power, FLOATS(d, 0, 2, -3), FLOATS(d, 0, 0, 0), false, 2), d, 0, 0, 0);
    EXPECT_FLOATS(gradient_of(td_power, FLOATS(d, 10, 0), FLOATS(d, 0, 1), false, 2), d, 0, 0);
    EXPECT_FLOATS(gradient_of(td_power, FLOATS(d, 0, 3, -2), FLOATS(d, 2), false, 1), d, 0, 6, -4);
    EXPECT_FLOATS(gradient_of(td_power, FLOATS(d, 0, 3, -2), FLOATS(d, 2), false, 2), d, 2, 2, 2);
    EXPECT_FLOATS(gradient_of(td_power, FLOATS(d, 0, 3, -2), FLOATS(d, 3), false, 2), d, 0, 18, -12);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("elementwise");
  TCase *values = tcase_create("values");
  tcase_add_checked_fixture(values, start, finish);
  tcase_set_timeout(values, 120);
  tcase_add_loop_test(values, float64_is_within_its_bound, 0, COUNT(wide_functions));
  tcase_add_test(values, functions_of_two_hold_at_the_edges);
  tcase_add_test(values, power_is_within_one_ulp);
  tcase_add_test(values, minus_zero_keeps_its_sign);
  tcase_add_test(values, angles_do_not_depend_on_their_neighbours);
  tcase_add_test(values, division_rounds_down);
  tcase_add_test(values, nan_goes_through);
  tcase_add_test(values, nan_compares_as_ieee_says);
  tcase_add_test(values, integers_wrap);
  tcase_add_test(values, integer_division_never_traps);
  tcase_add_test(values, shifts_are_defined_for_all_counts);
  tcase_add_test(values, bool_is_logic);
  tcase_add_test(values, errors_name_what_is_wrong);
  tcase_add_test(values, choice_takes_any_condition);
  tcase_add_test(values, any_strides_and_dtypes);
  tcase_add_test(values, repeated_views_are_read_rightly);
  tcase_add_test(values, chunks_do_not_show);
  tcase_add_test(values, every_dtype_casts_to_every_other);
  tcase_add_test(values, casts_truncate_wrap_and_saturate);
  tcase_add_test(values, what_does_not_fit_is_named);
  tcase_add_test(values, halves_are_rounded_once);
  tcase_add_test(values, gradients_at_the_edges);
  tcase_add_test(values, gradients_of_powers_at_the_edges);
  suite_add_tcase(suite, values);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
