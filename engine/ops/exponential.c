// Exponentials, logarithms and roots. Integers and bool give float32. Arguments outside of a function's domain give
// NaN, its poles infinities, as in the C library.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample any_samples[] = {
  { .shapes = "3,4", .low = -2, .high = 2 },
  { .shapes = "-", .low = -1, .high = 1 },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample positive_samples[] = {
  { .shapes = "3,4", .low = 0.3, .high = 3 },
  { .shapes = "-", .low = 0.5, .high = 2 },
  { .shapes = "0,3", .low = 0.3, .high = 3 },
  TD_SAMPLES_END,
};

static td_tensor *times(td_scope *s, td_tensor *x, double factor) {
  return td_multiply(s, x, td_scope_number(s, factor, x));
}
static td_tensor *plus(td_scope *s, td_tensor *x, double term) { return td_add(s, x, td_scope_number(s, term, x)); }

// With a shorter form of the expression for float64 too.
#define NEAR_MAP(name, measure, limit, near_double, expression)                                                        \
  static const char name##_text[] = #expression;                                                                       \
  TD_LOOP1_NEAR(FLOAT32, float, name, measure, limit, td_single_##name(x), expression)                                 \
  TD_LOOP1_NEAR(FLOAT64, double, name, !(near_double), 1, td_math_##name##_near_double(x), expression)                 \
  TD_MAP_TABLE(TD_EACH_FLOAT, name, 1, FLOATING)

NEAR_MAP(exp, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR), fabs(x) < TD_MATH_EXP_NEAR, EXP(x))
TD_KERNEL(exp)

static int exp_vjp(td_rule *rule) {
  rule->din[0] = td_chain(&rule->scope, rule->cotangent[0], rule->out[0]);
  return TD_OK;
}

static const td_op exp_op = {
  .name = "exp",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = exp_kernel,
  .expression = exp_text,
  .vjp = exp_vjp,
  .saves = TD_SAVES_OUTPUT,
  .doc = "e to the power of x.\n"
         "Gradient: cotangent * exp(x).",
  .example = "exp(tensor([0., -inf])).tolist()  # [1.0, 0.0]",
  .samples = any_samples,
};

td_tensor *td_exp(td_scope *s, td_tensor *x) { return td_scope_apply(s, &exp_op, NULL, 1, x); }

TD_MAP1_NEAR(exp2, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_EXP2_NEAR), td_single_exp2(x), EXP2(x))
TD_KERNEL(exp2)

static int exp2_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], times(s, rule->out[0], TD_LN2));
  return TD_OK;
}

static const td_op exp2_op = {
  .name = "exp2",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = exp2_kernel,
  .expression = exp2_text,
  .vjp = exp2_vjp,
  .saves = TD_SAVES_OUTPUT,
  .doc = "2 to the power of x.\n"
         "Gradient: cotangent * exp2(x) * log(2).",
  .example = "exp2(tensor([3., -inf])).tolist()  # [8.0, 0.0]",
  .samples = any_samples,
};

TD_MAP1_NEAR(expm1, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR), x == 0 ? x : td_single_expm1(x), EXPM1(x))
TD_KERNEL(expm1)

static int expm1_vjp(td_rule *rule) { // the result and 1 would lose exp(x) where it is small
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_exp(s, rule->in[0]));
  return TD_OK;
}

static const td_op expm1_op = {
  .name = "expm1",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = expm1_kernel,
  .expression = expm1_text,
  .vjp = expm1_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "exp(x) - 1, exact also for tiny x.\n"
         "Gradient: cotangent * exp(x).",
  .example = "expm1(tensor([0., -inf])).tolist()  # [0.0, -1.0]",
  .samples = any_samples,
};

NEAR_MAP(log, TD_SINGLE_NORMAL(x), TD_SINGLE_NORMALS, TD_MATH_NORMAL(x), LOG(x))
TD_KERNEL(log)

static int log_vjp(td_rule *rule) {
  rule->din[0] = td_chain_quotient(&rule->scope, rule->cotangent[0], rule->in[0]);
  return TD_OK;
}

static const td_op log_op = {
  .name = "log",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = log_kernel,
  .expression = log_text,
  .vjp = log_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The natural logarithm of x.\n"
         "Gradient: cotangent / x. log(0) is -inf, of negative numbers NaN.",
  .example = "log(tensor([1., 0.])).tolist()  # [0.0, -inf]",
  .samples = positive_samples,
};

td_tensor *td_log(td_scope *s, td_tensor *x) { return td_scope_apply(s, &log_op, NULL, 1, x); }

NEAR_MAP(log2, TD_SINGLE_NORMAL(x), TD_SINGLE_NORMALS, TD_MATH_NORMAL(x), LOG2(x))
TD_KERNEL(log2)

static int log2_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], times(s, rule->in[0], TD_LN2));
  return TD_OK;
}

static const td_op log2_op = {
    .name = "log2",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = log2_kernel,
    .expression = log2_text,
    .vjp = log2_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "The logarithm of x to the base 2.\n"
           "Gradient: cotangent / (x * log(2)). log2(0) is -inf, of negative numbers NaN.",
    .example = "log2(tensor([8., 0.5])).tolist()  # [3.0, -1.0]",
    .samples = positive_samples,
};

NEAR_MAP(log10, TD_SINGLE_NORMAL(x), TD_SINGLE_NORMALS, TD_MATH_NORMAL(x), LOG10(x))
TD_KERNEL(log10)

static int log10_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], times(s, rule->in[0], 1 / TD_LOG10E));
  return TD_OK;
}

static const td_op log10_op = {
    .name = "log10",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = log10_kernel,
    .expression = log10_text,
    .vjp = log10_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "The logarithm of x to the base 10.\n"
           "Gradient: cotangent / (x * log(10)). log10(0) is -inf, of negative numbers NaN.",
    .example = "log10(tensor([1000., 1.])).tolist()  # [3.0, 0.0]",
    .samples = positive_samples,
};

TD_MAP1_NEAR(log1p, td_single_bits(1 + x) - 1, TD_SINGLE_BITS(0x1p100f), x == 0 ? x : td_single_log1p(x), LOG1P(x))
TD_KERNEL(log1p)

static int log1p_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], plus(s, rule->in[0], 1));
  return TD_OK;
}

static const td_op log1p_op = {
    .name = "log1p",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = log1p_kernel,
    .expression = log1p_text,
    .vjp = log1p_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "log(1 + x), exact also for tiny x.\n"
           "Gradient: cotangent / (1 + x). log1p(-1) is -inf, NaN below.",
    .example = "log1p(tensor([0., -1.])).tolist()  # [0.0, -inf]",
    .samples = positive_samples,
};

td_tensor *td_log1p(td_scope *s, td_tensor *x) { return td_scope_apply(s, &log1p_op, NULL, 1, x); }

TD_MAP1(TD_EACH_FLOAT, sqrt, FLOATING, T, SQRT(x))
TD_KERNEL(sqrt)

static int sqrt_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], td_add(s, rule->out[0], rule->out[0]));
  return TD_OK;
}

static const td_op sqrt_op = {
    .name = "sqrt",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = sqrt_kernel,
    .expression = sqrt_text,
    .vjp = sqrt_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "The square root of x; of negative numbers NaN.\n"
           "Gradient: cotangent / (2 * sqrt(x)), an infinity at 0 unless the cotangent is 0.",
    .example = "sqrt(tensor([4., 0.25])).tolist()  # [2.0, 0.5]",
    .samples = positive_samples,
};

td_tensor *td_sqrt(td_scope *s, td_tensor *x) { return td_scope_apply(s, &sqrt_op, NULL, 1, x); }

TD_MAP1_NEAR(rsqrt, TD_SINGLE_NORMAL(x), TD_SINGLE_NORMALS, td_single_rsqrt(x), RSQRT(x))
TD_KERNEL(rsqrt)

static int rsqrt_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *y = rule->out[0];
  rule->din[0] = td_chain(s, rule->cotangent[0], times(s, td_multiply(s, y, td_square(s, y)), -0.5));
  return TD_OK;
}

static const td_op rsqrt_op = {
    .name = "rsqrt",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = rsqrt_kernel,
    .expression = rsqrt_text,
    .vjp = rsqrt_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "The reciprocal of the square root of x; inf at 0, of negative numbers NaN.\n"
           "Gradient: -cotangent / (2 * x * sqrt(x)).",
    .example = "rsqrt(tensor([4., 0.25])).tolist()  # [0.5, 2.0]",
    .samples = positive_samples,
};

// ---- sums of exponentials, by their logarithms ----

TD_MAP2_NEAR(logaddexp, TD_SINGLE_SIZE(x - y), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR), td_single_logaddexp(x, y),
             LOGADDEXP(x, y))
TD_KERNEL(logaddexp)
TD_MAP2_NEAR(logaddexp2, TD_SINGLE_SIZE(x - y), TD_SINGLE_BITS(TD_SINGLE_EXP2_NEAR), td_single_logaddexp2(x, y),
             LOGADDEXP2(x, y))
TD_KERNEL(logaddexp2)

// x's share of e^(factor x) + e^(factor y): half of two equal ones, none of nothing.
static td_tensor *share_of(td_scope *s, td_tensor *x, td_tensor *y, double factor) {
  td_tensor *zero = td_scope_number(s, 0, x), *apart = td_subtract(s, x, y);
  td_tensor *both = td_where(s, td_equal(s, x, y), zero, apart); // infinite; elsewhere it has no derivative
  apart = td_where(s, td_equal(s, apart, apart), apart, both);
  td_tensor *nothing = td_equal(s, x, td_scope_number(s, -INFINITY, x));
  return td_where(s, nothing, zero, td_sigmoid(s, times(s, apart, factor)));
}

static int shares(td_rule *rule, double factor) {
  td_scope *s = &rule->scope;
  for (int i = 0; i < 2; i++)
    if (rule->needs[i])
      rule->din[i] = td_chain(s, rule->cotangent[0], share_of(s, rule->in[i], rule->in[1 - i], factor));
  return TD_OK;
}
static int logaddexp_vjp(td_rule *rule) { return shares(rule, 1); }
static int logaddexp2_vjp(td_rule *rule) { return shares(rule, TD_LN2); }

#define SUM_ROW(title, summary, shown)                                                                                 \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .params = { TD_XY },                                                                                               \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .flags = TD_COMMUTATIVE,                                                                                           \
    .method = true,                                                                                                    \
    .infer = td_map_floating,                                                                                          \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = title##_vjp,                                                                                                \
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,                                                                              \
    .doc = summary "\nGradient: the cotangent, shared as the two powers share their sum; 0 where both are -inf.",      \
    .example = shown,                                                                                                  \
    .samples = sum_samples,                                                                                            \
  };

static const td_sample sum_samples[] = {
  { .shapes = "3,4; 3,4", .low = -2, .high = 2 },
  { .shapes = "2,1,3; 4,1", .low = -30, .high = 30 },
  { .shapes = "5; -", .low = 0.3, .high = 2 },
  { .shapes = "0,3; 3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};

SUM_ROW(logaddexp, "log(exp(x) + exp(y)), which does not overflow.",
        "logaddexp(tensor([1000., -inf]), -inf).tolist()  # [1000.0, -inf]")
SUM_ROW(logaddexp2, "log2(2**x + 2**y), which does not overflow.",
        "logaddexp2(tensor([1000., 3.]), 3).tolist()  # [1000.0, 4.0]")

const td_op *const td_family_exponential[] = {
  &exp_op, &exp2_op, &expm1_op, &log_op, &log2_op, &log10_op, &log1p_op, &sqrt_op, &rsqrt_op, &logaddexp_op,
  &logaddexp2_op, NULL,
};
