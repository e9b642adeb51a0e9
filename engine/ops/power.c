// Powers, roots and lengths. The gradients hold at the edges: x**0 is flat everywhere, 0 as a base gives 0 for the
// exponent, and so do the derivatives of higher order, because every factor that is exactly 0 decides its product.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample positive_samples[] = {
  { .shapes = "3,4; 3,4", .low = 0.3, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = 0.3, .high = 2 },
  { .shapes = "5; -", .low = 0.3, .high = 2 },
  { .shapes = "0,3; 3", .low = 0.3, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample away_samples[] = {
  { .shapes = "3,4", .low = 0.3, .high = 2 },
  { .shapes = "2,3", .low = -2, .high = -0.3 },
  { .shapes = "-", .low = 0.3, .high = 2 },
  { .shapes = "0,3", .low = 0.3, .high = 2 },
  TD_SAMPLES_END,
};

// ---- square and reciprocal ----

static const char square_text[] = "x * x";
TD_LOOP1(BOOL, _Bool, square, T, x & x)
TD_EACH_NUMBER_WRAPPING(TD_LOOP1, square, T, x * x)
TD_MAP_TABLE(TD_EACH_DTYPE_WRAPPING, square, 1, COMMON)
TD_KERNEL(square)

static int square_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_add(s, rule->in[0], rule->in[0]));
  return TD_OK;
}

static const td_op square_op = {
  .name = "square",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_common,
  .kernel = square_kernel,
  .expression = square_text,
  .vjp = square_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The square x * x.\n"
         "Gradient: cotangent * 2 * x. Integers wrap around.",
  .example = "square(tensor([-3., 2.])).tolist()  # [9.0, 4.0]",
  .samples = away_samples,
};

td_tensor *td_square(td_scope *s, td_tensor *x) { return td_scope_apply(s, &square_op, NULL, 1, x); }

TD_MAP1(TD_EACH_FLOAT, reciprocal, FLOATING, T, 1 / x)
TD_KERNEL(reciprocal)

static int reciprocal_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_negative(s, td_chain(s, rule->cotangent[0], td_square(s, rule->out[0])));
  return TD_OK;
}

static const td_op reciprocal_op = {
    .name = "reciprocal",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = reciprocal_kernel,
    .expression = reciprocal_text,
    .vjp = reciprocal_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "The reciprocal 1 / x, an infinity at 0; integers give float32.\n"
           "Gradient: -cotangent / x**2.",
    .example = "reciprocal(tensor([4., -2.])).tolist()  # [0.25, -0.5]",
    .samples = away_samples,
};

// ---- the derivatives of power ----

static td_tensor *one_less(td_scope *s, td_tensor *exponent) {
  return td_subtract(s, exponent, td_scope_number(s, 1, exponent));
}

TD_MAP2(TD_EACH_FLOAT, power_slope, FLOATING, T, y == 0 ? 0 : y * POWER(x, y - 1))

// Exponents that powers mostly have, far cheaper than others.
#define UNARY_MAP(name, expression)                                                                                    \
  TD_EACH_FLOAT(TD_LOOP1, name, T, expression)                                                                         \
  TD_MAP_TABLE(TD_EACH_FLOAT, name, 1, COMMON)
UNARY_MAP(square_slope, x + x)
UNARY_MAP(cube, x * x * x)
UNARY_MAP(cube_slope, 3 * (x * x))
UNARY_MAP(root, x == -(T)INFINITY ? (T)INFINITY : SQRT(x + 0)) // of -0 it is 0
UNARY_MAP(root_slope, x == -(T)INFINITY ? 0 : (T)0.5 / SQRT(x + 0))
UNARY_MAP(reciprocal_slope, -((1 / x) * (1 / x)))
UNARY_MAP(reciprocal_square, (1 / x) * (1 / x))
UNARY_MAP(reciprocal_square_slope, -2 * ((1 / x) * (1 / x) * (1 / x)))

typedef struct cheap_power {
  double exponent;
  const td_map *power, *slope;
} cheap_power;

static const cheap_power cheap_powers[] = {
  { 2, &square_map, &square_slope_map },
  { 3, &cube_map, &cube_slope_map },
  { 0.5, &root_map, &root_slope_map },
  { -1, &reciprocal_map, &reciprocal_slope_map },
  { -2, &reciprocal_square_map, &reciprocal_square_slope_map },
};

// NULL: the exponent is none of these, or not one number.
static const cheap_power *cheap_power_of(const td_call *call) {
  const td_view *x = &call->in[0], *y = &call->in[1], *out = &call->out[0];
  if (y->size != 1 || x->size != out->size || x->dtype != out->dtype) return NULL;
  double exponent;
  td_cast_run(&exponent, TD_FLOAT64, y->data, y->dtype, 0, 1, false);
  for (size_t i = 0; i < sizeof cheap_powers / sizeof *cheap_powers; i++)
    if (cheap_powers[i].exponent == exponent && cheap_powers[i].power->loops[x->dtype]) return &cheap_powers[i];
  return NULL;
}

static int power_slope_kernel(const td_call *call) {
  const cheap_power *cheap = cheap_power_of(call);
  return td_map_run(call, cheap ? cheap->slope : &power_slope_map, 0);
}

static td_tensor *power_slope(td_scope *s, td_tensor *x, td_tensor *y);

static int power_slope_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *y = rule->in[1], *less = one_less(s, y);
  if (rule->needs[0]) rule->din[0] = td_chain(s, c, td_chain(s, y, power_slope(s, x, less)));
  if (!rule->needs[1]) return TD_OK;
  td_tensor *bend = td_chain(s, power_slope(s, x, y), td_log(s, x));
  rule->din[1] = td_chain(s, c, td_add(s, td_power(s, x, less), bend));
  return TD_OK;
}

static const td_op power_slope_op = {
  .name = "power_slope",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = power_slope_kernel,
  .expression = power_slope_text,
  .vjp = power_slope_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The derivative of x**y in x, y * x**(y - 1): 0 where y is 0.\n"
         "Gradient: y * (y - 1) * x**(y - 2) for x, x**(y - 1) * (1 + y * log(x)) for y.",
  .samples = positive_samples,
};

static td_tensor *power_slope(td_scope *s, td_tensor *x, td_tensor *y) {
  return td_scope_apply(s, &power_slope_op, NULL, 2, x, y);
}

TD_MAP2(TD_EACH_FLOAT, power_log, FLOATING, T, ((x == 0) & (y >= 0)) ? 0 : POWER(x, y) * LOG(x))
TD_KERNEL(power_log)

static td_tensor *power_log(td_scope *s, td_tensor *x, td_tensor *y);

static int power_log_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *y = rule->in[1];
  if (rule->needs[0]) {
    td_tensor *less = one_less(s, y), *bend = td_chain(s, y, power_log(s, x, less));
    rule->din[0] = td_chain(s, c, td_add(s, td_power(s, x, less), bend));
  }
  if (rule->needs[1]) rule->din[1] = td_chain(s, c, td_chain(s, power_log(s, x, y), td_log(s, x)));
  return TD_OK;
}

static const td_op power_log_op = {
  .name = "power_log",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = power_log_kernel,
  .expression = power_log_text,
  .vjp = power_log_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The derivative of x**y in y, x**y * log(x): 0 where x is 0 and y is not negative.\n"
         "Gradient: x**(y - 1) * (1 + y * log(x)) for x, x**y * log(x)**2 for y.",
  .samples = positive_samples,
};

static td_tensor *power_log(td_scope *s, td_tensor *x, td_tensor *y) {
  return td_scope_apply(s, &power_log_op, NULL, 2, x, y);
}

// ---- power ----

TD_MAP2(TD_EACH_NUMBER, power, COMMON, T, POWER(x, y))

// Powers of one positive number in float32, whose logarithm is taken once.
TD_LOOP1(FLOAT32, float, powers_of, T, (T)td_math_exp_wide((double)x * arguments[0]))
static const td_map powers_of_map = {
  .inputs = 1, .compute = TD_COMPUTE_COMMON, .loops = { [TD_FLOAT32] = powers_of_loop_FLOAT32 }
};

static bool has_one_base(const td_call *call) {
  const td_view *x = &call->in[0], *y = &call->in[1], *out = &call->out[0];
  if (x->size != 1 || y->size != out->size || x->dtype != TD_FLOAT32 || y->dtype != TD_FLOAT32) return false;
  float base = *(const float *)x->data;
  return base > 0 && base < INFINITY && base != 1;
}

static int power_kernel(const td_call *call) {
  const cheap_power *cheap = cheap_power_of(call);
  if (cheap) return td_map_run(call, cheap->power, 0);
  if (has_one_base(call)) {
    td_call exponents = *call;
    exponents.in[0] = call->in[1];
    return td_map_run(&exponents, &powers_of_map, log((double)*(const float *)call->in[0].data));
  }
  if (td_dtype_is_float(call->out[0].dtype) || call->out[0].size == 0) return td_map_run(call, &power_map, 0);
  int64_t negative = td_map_find(&call->in[1], true);
  if (negative < 0) return td_map_run(call, &power_map, 0);
  td_error_set(call->context, TD_ERROR_VALUE,
               "power: integers to negative powers are no integers: element %lld of y is negative",
               (long long)negative);
  td_error_hint(call->context, "make the base floating: x.astype(float32) ** y");
  return TD_ERROR_VALUE;
}

static int power_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *y = rule->in[1];
  if (rule->needs[0]) rule->din[0] = td_chain(s, c, power_slope(s, x, y));
  if (rule->needs[1]) rule->din[1] = td_chain(s, c, power_log(s, x, y));
  return TD_OK;
}

static const td_op power_op = {
    .name = "power",
    .alias = TD_ALIAS("pow"),
    .params = {TD_XY},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_number,
    .kernel = power_kernel,
    .expression = power_text,
    .vjp = power_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc =
        "The power x ** y.\n"
        "Gradient: cotangent * y * x**(y - 1) for x, which is 0 where y is 0; cotangent * x**y * log(x) for y, which\n"
        "is 0 where x is 0 and y >= 0. Integers wrap around, and their negative powers are an error.\n"
        "x**0 and 1**y are 1, of NaN too; 0 to a negative power is an infinity, a negative x to a power that is not\n"
        "whole NaN.",
    .example = "power(tensor([2., 3.]), 2).tolist()  # [4.0, 9.0]",
    .samples = positive_samples,
};

td_tensor *td_power(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &power_op, NULL, 2, a, b); }

TD_MAP2(TD_EACH_DOUBLE, float_power, DOUBLE, T, POWER(x, y))
TD_KERNEL(float_power)

static int float_power_infer(td_infer *infer) {
  int code = td_map_common(infer);
  infer->out[0].dtype = TD_FLOAT64;
  return code;
}

static int float_power_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  td_tensor *x = td_cast(s, rule->in[0], TD_FLOAT64), *y = td_cast(s, rule->in[1], TD_FLOAT64);
  if (rule->needs[0]) rule->din[0] = td_chain(s, c, power_slope(s, x, y));
  if (rule->needs[1]) rule->din[1] = td_chain(s, c, power_log(s, x, y));
  return TD_OK;
}

static const td_op float_power_op = {
  .name = "float_power",
  .params = { TD_XY },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = float_power_infer,
  .kernel = float_power_kernel,
  .expression = float_power_text,
  .vjp = float_power_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The power x ** y in float64, whatever the dtypes: integers have negative powers here.\n"
         "Gradient: that of power.",
  .example = "float_power(tensor([2, 4]), -1).tolist()  # [0.5, 0.25]",
  .samples = positive_samples,
};

// ---- roots and lengths ----

TD_MAP1(TD_EACH_FLOAT, cbrt, FLOATING, T, CBRT(x))
TD_KERNEL(cbrt)

static int cbrt_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *square = td_square(s, rule->out[0]);
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], td_multiply(s, square, td_scope_number(s, 3, square)));
  return TD_OK;
}

static const td_op cbrt_op = {
  .name = "cbrt",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = cbrt_kernel,
  .expression = cbrt_text,
  .vjp = cbrt_vjp,
  .saves = TD_SAVES_OUTPUT,
  .doc = "The cube root of x, negative where x is.\n"
         "Gradient: cotangent / (3 * cbrt(x)**2), an infinity at 0 unless the cotangent is 0.",
  .example = "cbrt(tensor([8., -27.])).tolist()  # [2.0, -3.0]",
  .samples = away_samples,
};

static const char hypot_text[] = "HYPOT(x, y)";
TD_LOOP2(FLOAT32, float, hypot, T, HYPOT(x, y))
TD_LOOP2_NEAR(FLOAT64, double, hypot, !TD_MATH_MEASURES(x, y), 1, td_math_hypot_near_double(x, y), HYPOT(x, y))
TD_MAP_TABLE(TD_EACH_FLOAT, hypot, 2, FLOATING)
TD_KERNEL(hypot)

static int hypot_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  for (int i = 0; i < 2; i++)
    if (rule->needs[i])
      rule->din[i] = td_chain_quotient(s, td_chain(s, rule->cotangent[0], rule->in[i]), rule->out[0]);
  return TD_OK;
}

static const td_op hypot_op = {
    .name = "hypot",
    .params = {TD_XY},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_COMMUTATIVE,
    .method = true,
    .infer = td_map_floating,
    .kernel = hypot_kernel,
    .expression = hypot_text,
    .vjp = hypot_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .doc =
        "The length sqrt(x**2 + y**2), which neither overflows nor vanishes on the way; of an infinity and NaN inf.\n"
        "Gradient: cotangent * x / hypot(x, y) for x, the same with y for y; 0 at the origin.",
    .example = "hypot(tensor([3., 5.]), tensor([4., 12.])).tolist()  # [5.0, 13.0]",
    .samples = positive_samples,
};

td_tensor *td_hypot(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &hypot_op, NULL, 2, a, b); }

const td_op *const td_family_power[] = {
  &power_op, &float_power_op, &square_op, &reciprocal_op, &cbrt_op, &hypot_op, &power_slope_op, &power_log_op, NULL,
};
