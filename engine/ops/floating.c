// What floating numbers are made of: their signs, neighbours, steps, and what stands for NaN and the infinities.
#include <float.h>
#include <math.h>

#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample pair_samples[] = {
  { .shapes = "3,4; 3,4", .low = 0.3, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = -2, .high = -0.3 },
  { .shapes = "5; -", .low = 0.3, .high = 2 },
  { .shapes = "0,3; 3", .low = 0.3, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample unary_samples[] = {
  { .shapes = "3,4", .low = -2, .high = 2 },
  { .shapes = "-", .low = -1, .high = 1 },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};

static td_tensor *flat(td_rule *rule, int input) {
  return td_scope_filled(&rule->scope, 0, &rule->in_meta[input]);
}

// ---- copysign ----

TD_MAP2(TD_EACH_FLOAT, copysign, FLOATING, T, COPYSIGN(x, y))
TD_KERNEL(copysign)

// The cotangent with its sign turned where copysign turns that of x; 0 where x is 0.
TD_MAP3(TD_EACH_FLOAT, copysign_gradient, FLOATING, T, y == 0 ? 0 : SIGNBIT(y) == SIGNBIT(z) ? x : -x)
TD_KERNEL(copysign_gradient)

static td_tensor *copysign_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, td_tensor *y);

static int copysign_gradient_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = copysign_gradient(&rule->scope, rule->cotangent[0], rule->in[1], rule->in[2]);
  for (int i = 1; i < 3; i++)
    if (rule->needs[i]) rule->din[i] = flat(rule, i);
  return TD_OK;
}

static const td_op copysign_gradient_op = {
  .name = "copysign_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = copysign_gradient_kernel,
  .expression = copysign_gradient_text,
  .vjp = copysign_gradient_vjp,
  .saves = TD_SAVES_IN1 | TD_SAVES_IN2,
  .doc = "The cotangent, its sign turned where x and y have different ones; 0 where x is 0.\n"
         "Gradient: the same of its cotangent; 0 for x and y.",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 3,4; -", .low = 0.2, .high = 2 },
    { .shapes = "0,3; 3; 3", .low = -2, .high = -0.2 },
    TD_SAMPLES_END,
  },
};

static td_tensor *copysign_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, td_tensor *y) {
  return td_scope_apply(s, &copysign_gradient_op, NULL, 3, cotangent, x, y);
}

static int copysign_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = copysign_gradient(&rule->scope, rule->cotangent[0], rule->in[0], rule->in[1]);
  if (rule->needs[1]) rule->din[1] = flat(rule, 1);
  return TD_OK;
}

static const td_op copysign_op = {
  .name = "copysign",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = copysign_kernel,
  .expression = copysign_text,
  .vjp = copysign_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The magnitude of x with the sign of y, that of -0.0 and NaN included.\n"
         "Gradient: the cotangent for x, negative where the sign turned, 0 where x is 0; 0 for y.",
  .example = "copysign(tensor([1., 2.]), tensor([-0., 3.])).tolist()  # [-1.0, 2.0]",
  .samples = pair_samples,
};

// ---- neighbours, steps ----

TD_MAP2(TD_EACH_FLOAT, nextafter, FLOATING, T, NEXTAFTER(x, y))
TD_KERNEL(nextafter)

static const td_op nextafter_op = {
  .name = "nextafter",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = nextafter_kernel,
  .expression = nextafter_text,
  .no_gradient = "a step from number to number",
  .doc = "The next number after x in the direction of y; y where they are equal.\n"
         "No gradient: it steps from number to number. Half floats step as float32, and round back.",
  .example = "nextafter(tensor([0.]), 1).tolist()  # [1.401298464324817e-45]",
  .samples = pair_samples,
};

TD_MAP2(TD_EACH_NUMBER, heaviside, COMMON, T, ISNAN(x) ? x : x == 0 ? y : (T)(x > 0))
TD_KERNEL(heaviside)

static int heaviside_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *zero = td_scope_number(s, 0, c);
  if (rule->needs[0]) rule->din[0] = flat(rule, 0);
  if (rule->needs[1])
    rule->din[1] = td_where(s, td_equal(s, rule->in[0], td_scope_number(s, 0, rule->in[0])), c, zero);
  return TD_OK;
}

static const td_op heaviside_op = {
  .name = "heaviside",
  .params = { TD_X, TD_TENSOR_PARAM("values") },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_number,
  .kernel = heaviside_kernel,
  .expression = heaviside_text,
  .vjp = heaviside_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The step function: 0 where x < 0, 1 where x > 0, values where x is 0; NaN stays.\n"
         "Gradient: 0 for x, also at the step; the cotangent for values where x is 0.",
  .example = "heaviside(tensor([-1., 0., 2.]), 0.5).tolist()  # [0.0, 0.5, 1.0]",
  .samples = pair_samples,
};

// ---- ldexp, frexp ----

static double scaled_by_two(double x, double n) { // at once, so that it neither over- nor underflows on the way
  return n == rint(n) && fabs(n) < 1e5 ? ldexp(x, (int)n) : x * exp2(n);
}

static int32_t exponent_of(double x) {
  int exponent = 0;
  if (isfinite(x)) (void)frexp(x, &exponent);
  return exponent;
}

static double mantissa_of(double x) {
  int exponent;
  return frexp(x, &exponent);
}

TD_MAP2(TD_EACH_FLOAT, ldexp, FLOATING, T, scaled_by_two(x, y))
TD_KERNEL(ldexp)
static const td_op ldexp_op;

static td_tensor *ldexp_by(td_scope *s, td_tensor *x, td_tensor *n) {
  return td_scope_apply(s, &ldexp_op, NULL, 2, x, n);
}

static int ldexp_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = ldexp_by(s, c, rule->in[1]);
  if (rule->needs[1])
    rule->din[1] = td_chain(s, c, td_multiply(s, rule->out[0], td_scope_number(s, log(2), rule->out[0])));
  return TD_OK;
}

static const td_op ldexp_op = {
  .name = "ldexp",
  .params = { TD_X, TD_TENSOR_PARAM("n") },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = ldexp_kernel,
  .expression = ldexp_text,
  .vjp = ldexp_vjp,
  .saves = TD_SAVES_IN1 | TD_SAVES_OUTPUT,
  .doc = "x * 2**n, without overflow where 2**n alone has one.\n"
         "Gradient: cotangent * 2**n for x, cotangent * log(2) times the result for a floating n.",
  .example = "ldexp(tensor([1., 3.]), tensor([4, -1])).tolist()  # [16.0, 1.5]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 4", .low = -3, .high = 3, .dtypes = "float64; int64" },
    { .shapes = "3,4; -", .low = 0.3, .high = 2 },
    { .shapes = "0,3; 3", .low = -3, .high = 3, .dtypes = "float64; int32" },
    TD_SAMPLES_END,
  },
};

TD_EACH_FLOAT(TD_LOOP1, mantissa, T, mantissa_of(x))
TD_MAP_TABLE(TD_EACH_FLOAT, mantissa, 1, FLOATING)
TD_EACH_FLOAT(TD_LOOP1, exponent, int32_t, exponent_of(x))
TD_MAP_TABLE(TD_EACH_FLOAT, exponent, 1, FLOATING)

static int frexp_infer(td_infer *infer) {
  int code = td_map_floating(infer);
  infer->out[1] = infer->out[0];
  infer->out[1].dtype = TD_INT32;
  return code;
}

static int frexp_kernel(const td_call *call) {
  td_call exponents = *call;
  exponents.out[0] = call->out[1];
  int code = td_map_run(call, &mantissa_map, 0);
  return code ? code : td_map_run(&exponents, &exponent_map, 0);
}

static int frexp_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (rule->cotangent[0]) rule->din[0] = ldexp_by(s, rule->cotangent[0], td_negative(s, rule->out[1]));
  return TD_OK;
}

static const td_op frexp_op = {
  .name = "frexp",
  .params = { TD_X },
  .kind = TD_KIND_OPAQUE,
  .outputs = 2,
  .method = true,
  .infer = frexp_infer,
  .kernel = frexp_kernel,
  .vjp = frexp_vjp,
  .saves = TD_SAVES_OUTPUT,
  .doc = "The mantissa m, 0.5 <= abs(m) < 1, and the exponent n, int32, of x = m * 2**n: a tuple. 0, NaN and the "
         "infinities have the exponent 0.\n"
         "Gradient: cotangent / 2**n for the mantissa, none for the exponent.",
  .example = "frexp(tensor([6., 0.5]))[0].tolist()  # [0.75, 0.5]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = 0.55, .high = 0.95 },
    { .shapes = "5", .low = -12, .high = -9 },
    { .shapes = "-", .low = 3, .high = 4 },
    { .shapes = "0,3", .low = -2, .high = 2 },
    TD_SAMPLES_END,
  },
};

// ---- nan_to_num ----

static const char nan_to_num_text[] = "x != x ? p : x == (T)INFINITY ? q : x == -(T)INFINITY ? r : x";
TD_EACH_FLOAT(TD_LOOP1, nan_to_num, T, x != x ? p : x == (T)INFINITY ? q : x == -(T)INFINITY ? r : x)
TD_EACH_INTEGRAL(TD_LOOP1, nan_to_num, T, x)
// Half floats by their bits, as their infinities are not those of float32.
TD_LOOP1(FLOAT16, uint16_t, nan_to_num, T, (x & 0x7fff) > 0x7c00 ? p : x == 0x7c00 ? q : x == 0xfc00 ? r : x)
TD_LOOP1(BFLOAT16, uint16_t, nan_to_num, T, (x & 0x7fff) > 0x7f80 ? p : x == 0x7f80 ? q : x == 0xff80 ? r : x)
#define EACH_STORED(X, ...) TD_EACH_DTYPE(X, __VA_ARGS__) X(FLOAT16, , __VA_ARGS__) X(BFLOAT16, , __VA_ARGS__)
TD_MAP_TABLE(EACH_STORED, nan_to_num, 1, COMMON)

static double largest_of(uint8_t dtype) {
  switch (dtype) {
  case TD_FLOAT16: return 65504;
  case TD_BFLOAT16: return 0x1.fep127;
  case TD_FLOAT32: return FLT_MAX;
  default: return DBL_MAX;
  }
}

static double as_stored(uint8_t dtype, double value) {
  if (dtype == TD_FLOAT16) return td_half_from_float((float)value);
  return dtype == TD_BFLOAT16 ? td_bfloat_from_float((float)value) : value;
}

static int nan_to_num_kernel(const td_call *call) {
  const td_arg *args = call->args;
  uint8_t dtype = call->out[0].dtype;
  double arguments[TD_MAP_ARGUMENTS] = {args[0].f, args[1].given ? args[1].f : largest_of(dtype),
                                        args[2].given ? args[2].f : -largest_of(dtype)};
  for (int i = 0; i < TD_MAP_ARGUMENTS; i++)
    arguments[i] = td_dtype_is_float(dtype) ? as_stored(dtype, arguments[i]) : 0;
  return td_map_run_with(call, &nan_to_num_map, arguments);
}

static int nan_to_num_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *difference = td_subtract(s, x, x); // 0, or NaN
  rule->din[0] = td_where(s, td_equal(s, difference, difference), c, td_scope_number(s, 0, c));
  return TD_OK;
}

static const td_op nan_to_num_op = {
    .name = "nan_to_num",
    .params = {TD_X,
               {.name = "nan", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0)},
               {.name = "posinf", .kind = TD_PARAM_FLOAT},
               {.name = "neginf", .kind = TD_PARAM_FLOAT}},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_IDEMPOTENT | TD_HALF,
    .method = true,
    .infer = td_map_common,
    .kernel = nan_to_num_kernel,
    .expression = nan_to_num_text,
    .vjp = nan_to_num_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "x with numbers for NaN and the infinities: posinf is the dtype's largest where it is None, neginf its "
           "negative.\n"
           "Gradient: the cotangent where x is finite, 0 elsewhere. Integers stay as they are.",
    .example = "nan_to_num(tensor([nan, 1., inf]), posinf=9.).tolist()  # [0.0, 1.0, 9.0]",
    .samples =
        TD_SAMPLES{
            {.shapes = "3,4", .low = -2, .high = 2},
            {.shapes = "-", .args = "nan=1.5, posinf=3., neginf=-3.", .low = -1, .high = 1},
            {.shapes = "5", .low = -9, .high = 9, .dtypes = "int64"},
            {.shapes = "0,3", .low = -2, .high = 2},
            TD_SAMPLES_END,
        },
};

// ---- kinds of numbers: integers are cast, as they are all finite ----

#define KIND_ROW(title, test, summary, shown)                                                                          \
  TD_MAP1(TD_EACH_FLOAT, title, FLOATING, uint8_t, test)                                                               \
  TD_KERNEL(title)                                                                                                     \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .params = { TD_X },                                                                                                \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .method = true,                                                                                                    \
    .infer = td_map_truth,                                                                                             \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .no_gradient = "bool result",                                                                                      \
    .doc = summary "\nNo gradient: the result is bool.",                                                               \
    .example = shown,                                                                                                  \
    .samples = unary_samples,                                                                                          \
  };

KIND_ROW(isnan, x != x, "Whether x is NaN.", "isnan(tensor([1., nan, inf])).tolist()  # [False, True, False]")
KIND_ROW(isinf, ABS(x) == (T)INFINITY, "Whether x is an infinity, of either sign.",
         "isinf(tensor([1., nan, -inf])).tolist()  # [False, False, True]")
KIND_ROW(isposinf, x == (T)INFINITY, "Whether x is the positive infinity.",
         "isposinf(tensor([inf, nan, -inf])).tolist()  # [True, False, False]")
KIND_ROW(isneginf, x == -(T)INFINITY, "Whether x is the negative infinity.",
         "isneginf(tensor([inf, nan, -inf])).tolist()  # [False, False, True]")
KIND_ROW(isfinite, ABS(x) < (T)INFINITY, "Whether x is neither NaN nor an infinity.",
         "isfinite(tensor([1., nan, inf])).tolist()  # [True, False, False]")
KIND_ROW(signbit, SIGNBIT(x), "Whether x is negative; of -0.0 and NaN, whether their sign is set.",
         "signbit(tensor([-0., 0., -2.])).tolist()  # [True, False, True]")

const td_op *const td_family_floating[] = {
  &copysign_op, &nextafter_op, &heaviside_op, &ldexp_op, &frexp_op, &nan_to_num_op, &isnan_op, &isinf_op, &isposinf_op,
  &isneginf_op, &isfinite_op, &signbit_op, &copysign_gradient_op, NULL,
};
