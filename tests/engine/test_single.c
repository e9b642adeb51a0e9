// Functions of float32 at arguments of every magnitude, against the C library's in double: within so many units of the
// last place. And an element's value is the same whatever lies beside it, though blocks without NaN, infinities and
// other far arguments go through loops of their own.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/op.h"

enum { COUNT = 1 << 18 };

// ck_assert_msg writes to a file each time: too slow for single elements.
#define REQUIRE(condition, ...)                                                                                        \
  if (!(condition)) ck_abort_msg(__VA_ARGS__)

static td_context *context;
static int64_t live_before;

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(2);
  ck_assert_ptr_nonnull(context);
}

static void finish(void) {
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double sigmoid_slope(double x) { return exp(-fabs(x)) / (1 + exp(-fabs(x))) / (1 + exp(-fabs(x))); }
static double tanh_slope(double x) { return 4 * sigmoid_slope(2 * x); }
static double silu(double x) { return x == -INFINITY ? -0. : x * sigmoid(x); }
static double silu_slope(double x) { return fabs(x) > 800 ? x > 0 : sigmoid(x) * (1 + x * sigmoid(-x)); }
static double softplus(double x) { return isnan(x) ? x : fmax(x, 0) + log1p(exp(-fabs(x))); }
static double log_sigmoid(double x) { return -softplus(-x); }
static double gelu(double x) { return x == -INFINITY ? -0. : x / 2 * erfc(-x * M_SQRT1_2); }
static double gelu_slope(double x) {
  return fabs(x) > 50 ? x > 0 : erfc(-x * M_SQRT1_2) / 2 + x * exp(-x * x / 2) * 0.39894228040143267794;
}
static double rsqrt(double x) { return 1 / sqrt(x); }
static double logit(double x) { return fabs(x - 0.5) < 0.25 ? log1p((2 * x - 1) / (1 - x)) : log(x / (1 - x)); }
static double tanhshrink(double x) {
  double z = x * x, near = x * z * (1. / 3 - z * (2. / 15 - z * (17. / 315 - z * 62. / 2835)));
  return fabs(x) < 0.01 ? near : fabs(x) == INFINITY ? x : x - tanh(x);
}
static double elu(double x) { return x > 0 ? x : expm1(x); }
static double square(double x) { return x * x; }
static double cube(double x) { return pow(x, 3); }
static double root(double x) { return pow(x, 0.5); }
static double inverse(double x) { return pow(x, -1); }
static double inverse_square(double x) { return pow(x, -2); }
static double cube_slope(double x) { return 3 * pow(x, 2); }
static double root_slope(double x) { return 0.5 * pow(x, -0.5); }
static double inverse_slope(double x) { return -pow(x, -2); }
static double inverse_square_slope(double x) { return -2 * pow(x, -3); }

typedef struct row {
  const char *op;
  double (*reference)(double);
  double bound;
  double scale; // of what the value is the difference of
  double first, second; // the operand before x, or after it; 0: none
} row;

static const row rows[] = {
    {.op = "exp", .reference = exp, .bound = 1.25},
    {.op = "exp2", .reference = exp2, .bound = 1.25},
    {.op = "expm1", .reference = expm1, .bound = 1.75},
    {.op = "log", .reference = log, .bound = 1.25},
    {.op = "log2", .reference = log2, .bound = 2.75},
    {.op = "log10", .reference = log10, .bound = 2.5},
    {.op = "log1p", .reference = log1p, .bound = 2},
    {.op = "sqrt", .reference = sqrt, .bound = 0.5},
    {.op = "rsqrt", .reference = rsqrt, .bound = 2.25},
    {.op = "sin", .reference = sin, .bound = 2},
    {.op = "cos", .reference = cos, .bound = 2.25},
    {.op = "tan", .reference = tan, .bound = 3.75},
    {.op = "asin", .reference = asin, .bound = 2.5},
    {.op = "acos", .reference = acos, .bound = 1.25},
    {.op = "atan", .reference = atan, .bound = 1.75},
    {.op = "sinh", .reference = sinh, .bound = 1},
    {.op = "cosh", .reference = cosh, .bound = 1},
    {.op = "tanh", .reference = tanh, .bound = 2.75},
    {.op = "asinh", .reference = asinh, .bound = 1},
    {.op = "acosh", .reference = acosh, .bound = 1},
    {.op = "atanh", .reference = atanh, .bound = 2.75},
    {.op = "sigmoid", .reference = sigmoid, .bound = 2.5},
    {.op = "log_sigmoid", .reference = log_sigmoid, .bound = 2.5},
    {.op = "softplus", .reference = softplus, .bound = 2.5},
    {.op = "silu", .reference = silu, .bound = 3.25},
    {.op = "silu_slope", .reference = silu_slope, .bound = 4, .scale = 0.25},
    {.op = "gelu", .reference = gelu, .bound = 5.5},
    {.op = "gelu_slope", .reference = gelu_slope, .bound = 4, .scale = 0.25},
    {.op = "elu", .reference = elu, .bound = 1.75},
    {.op = "lgamma", .reference = lgamma, .bound = 1},
    {.op = "square", .reference = square, .bound = 0.5},
    {.op = "reciprocal", .reference = inverse, .bound = 0.5},
    {.op = "cbrt", .reference = cbrt, .bound = 1},
    {.op = "floor", .reference = floor, .bound = 0},
    {.op = "ceil", .reference = ceil, .bound = 0},
    {.op = "round", .reference = rint, .bound = 0},
    {.op = "trunc", .reference = trunc, .bound = 0},
    {.op = "tanhshrink", .reference = tanhshrink, .bound = 4},
    {.op = "erf", .reference = erf, .bound = 2},
    {.op = "erfc", .reference = erfc, .bound = 4.5},
    {.op = "logit", .reference = logit, .bound = 4},
    {.op = "sigmoid_gradient", .reference = sigmoid_slope, .bound = 2.5, .first = 1},
    {.op = "tanh_gradient", .reference = tanh_slope, .bound = 2.5, .first = 1},
    {.op = "power", .reference = cube, .bound = 1.5, .second = 3},
    {.op = "power", .reference = root, .bound = 0.5, .second = 0.5},
    {.op = "power", .reference = inverse, .bound = 0.5, .second = -1},
    {.op = "power", .reference = inverse_square, .bound = 2, .second = -2},
    {.op = "power", .reference = exp2, .bound = 1, .first = 2},
    {.op = "power_slope", .reference = cube_slope, .bound = 1.5, .second = 3},
    {.op = "power_slope", .reference = root_slope, .bound = 1.5, .second = 0.5},
    {.op = "power_slope", .reference = inverse_slope, .bound = 2, .second = -1},
    {.op = "power_slope", .reference = inverse_square_slope, .bound = 3.5, .second = -2},
};
enum { ROWS = sizeof rows / sizeof *rows };

// In units of the last place that float32 has at wanted, or at scale.
static double ulps(float got, double wanted, double scale) {
  int exponent;
  if (isnan(wanted) || isnan(got)) return isnan(wanted) && isnan(got) ? 0 : INFINITY;
  if (isinf(got)) return (float)wanted == got || fabs(wanted) > 0x1.fffffcp127 ? 0 : INFINITY;
  frexp(fmax(fabs(wanted), scale), &exponent);
  return fabs((double)got - wanted) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static td_tensor *apply(const row *r, td_tensor *x) { // takes over x
  td_tensor *in[] = {x, NULL}, *out[TD_OUTPUT_MAX];
  double beside = r->first + r->second;
  if (beside) in[1] = td_tensor_from_float(context, beside, TD_FLOAT32);
  if (r->first) in[0] = in[1], in[1] = x;
  int code = td_op_apply(context, td_op_find(r->op), in, beside ? 2 : 1, NULL, out);
  if (code) ck_abort_msg("%s", context->error.message);
  td_tensor_unref(in[0]);
  td_tensor_unref(in[1]);
  return out[0];
}

static td_tensor *floats(float **data) {
  td_tensor *x = td_tensor_new(context, TD_FLOAT32, 1, (int64_t[]){COUNT});
  ck_assert_ptr_nonnull(x);
  *data = (float *)x->data;
  return x;
}

START_TEST(values_at_every_magnitude) {
  static const uint32_t special[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x3f800000};
  const row *r = &rows[_i];
  float *data, *inputs = td_memory_new(COUNT * sizeof *inputs);
  td_tensor *x = floats(&data);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t bits = i * 16411; // steps through all numbers, both signs and NaN
    if (i < 64) bits = special[i % 8];
    memcpy(&data[i], &bits, sizeof bits);
  }
  memcpy(inputs, data, COUNT * sizeof *inputs);
  td_tensor *y = apply(r, x);
  const float *got = (const float *)y->data;
  for (int i = 0; i < COUNT; i++) {
    double wanted = r->reference((double)inputs[i]), off = ulps(got[i], wanted, r->scale);
    REQUIRE(off <= r->bound + 1e-3, "%s(%a) is %a, not %a: off by %g ulp", r->op, inputs[i], got[i], wanted, off);
    REQUIRE(wanted != 0 || got[i] != 0 || r->scale || !signbit(wanted) == !signbit(got[i]), "%s(%a) is %a", r->op,
                  inputs[i], got[i]);
  }
  td_tensor_unref(y);
  td_memory_free(inputs);
}
END_TEST

START_TEST(values_do_not_depend_on_neighbours) {
  const row *r = &rows[_i];
  const float far[] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 1e-40f, -3};
  float *data;
  td_tensor *results[2];
  for (int other = 0; other < 2; other++) {
    td_tensor *x = floats(&data);
    for (int i = 0; i < COUNT; i++) data[i] = (float)(i % 7919) * (i & 1 ? 1e-4f : 1e-2f) + 1e-6f;
    for (int i = 0; other && i < COUNT; i += 509) data[i] = far[i % 7];
    results[other] = apply(r, x);
  }
  const float *quiet = (const float *)results[0]->data, *mixed = (const float *)results[1]->data;
  for (int i = 0; i < COUNT; i++)
    REQUIRE(i % 509 == 0 || !memcmp(&quiet[i], &mixed[i], sizeof *quiet) || (isnan(quiet[i]) && isnan(mixed[i])),
                  "%s: element %d is %a, beside others %a", r->op, i, quiet[i], mixed[i]);
  for (int i = 0; i < 2; i++) td_tensor_unref(results[i]);
}
END_TEST

// Remainders are exact, and whole quotients too where they have a place in float32.
START_TEST(divisions_are_exact) {
  static const char *const ops[] = {"fmod", "remainder", "floor_divide"};
  float *data, *x = td_memory_new(COUNT * sizeof *x), *y = td_memory_new(COUNT * sizeof *y);
  uint64_t state = 1;
  for (int i = 0; i < COUNT; i++) {
    for (int k = 0; k < 2; k++) {
      state = state * 6364136223846793005 + 1442695040888963407;
      float number = (float)((int64_t)state >> 40) * (i % 3 ? 1e-3f : 1);
      (k ? y : x)[i] = i % 5 ? number : truncf(number / 4096);
    }
    if (i % 17 == 0) y[i] = (const float[]){0, INFINITY, -INFINITY, NAN, 1e-42f, 1e38f}[i / 17 % 6];
  }
  for (int k = 0; k < 3; k++) {
    td_tensor *in[2], *out[TD_OUTPUT_MAX];
    for (int i = 0; i < 2; i++) {
      in[i] = floats(&data);
      memcpy(data, i ? y : x, COUNT * sizeof *data);
    }
    if (td_op_apply(context, td_op_find(ops[k]), in, 2, NULL, out)) ck_abort_msg("%s", context->error.message);
    const float *got = (const float *)out[0]->data;
    for (int i = 0; i < COUNT; i++) {
      float rest = fmodf(x[i], y[i]), wanted = rest;
      if (k) wanted = rest == 0 ? copysignf(0, y[i]) : (rest < 0) != (y[i] < 0) ? rest + y[i] : rest;
      if (k == 2 && !(fabsf(x[i]) < 4e6f * fabsf(y[i]) && fabsf(y[i]) < INFINITY)) continue;
      if (k == 2) wanted = (float)floor((double)x[i] / (double)y[i]);
      REQUIRE(got[i] == wanted || (isnan(got[i]) && isnan(wanted)), "%s(%a, %a) is %a, not %a", ops[k], x[i], y[i],
                    got[i], wanted);
      REQUIRE(wanted != 0 || k == 2 || !signbit(wanted) == !signbit(got[i]), "%s(%a, %a)", ops[k], x[i], y[i]);
    }
    for (int i = 0; i < 2; i++) td_tensor_unref(in[i]);
    td_tensor_unref(out[0]);
  }
  td_memory_free(x);
  td_memory_free(y);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("single");
  TCase *values = tcase_create("values");
  tcase_add_checked_fixture(values, start, finish);
  tcase_set_timeout(values, 120);
  tcase_add_loop_test(values, values_at_every_magnitude, 0, ROWS);
  tcase_add_loop_test(values, values_do_not_depend_on_neighbours, 0, ROWS);
  tcase_add_test(values, divisions_are_exact);
  suite_add_tcase(suite, values);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
