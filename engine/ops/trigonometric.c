// Circular and hyperbolic functions and their inverses, angles in radians. Integers and bool give float32.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample any_samples[] = {
  { .shapes = "3,4", .low = -2, .high = 2 },
  { .shapes = "-", .low = -1, .high = 1 },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample inner_samples[] = {
  { .shapes = "3,4", .low = -0.8, .high = 0.8 },
  { .shapes = "-", .low = -0.4, .high = 0.4 },
  { .shapes = "0,3", .low = -0.8, .high = 0.8 },
  TD_SAMPLES_END,
};

static td_tensor *one_plus(td_scope *s, td_tensor *x) { return td_add(s, x, td_scope_number(s, 1, x)); }
static td_tensor *one_minus(td_scope *s, td_tensor *x) { return td_subtract(s, td_scope_number(s, 1, x), x); }
static td_tensor *one_below(td_scope *s, td_tensor *x) { return td_subtract(s, x, td_scope_number(s, 1, x)); }
// (1 - x) (1 + x) and its root: near 1 the square would have lost the digits that count
static td_tensor *below(td_scope *s, td_tensor *x) { return td_multiply(s, one_minus(s, x), one_plus(s, x)); }
static td_tensor *root_below(td_scope *s, td_tensor *x) { return td_sqrt(s, below(s, x)); }

// ---- circular functions ----

// float32 has three kinds of blocks: near, far, and those that need the C library.
#define ANGLE_LOOP(name, expression)                                                                                   \
  TD_LOOP1_NEAR(FLOAT32, float, name##_far, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_ANGLE_FAR),                    \
                td_math_##name##_far(x), expression)                                                                   \
  TD_LOOP_HEAD(FLOAT32, float, name)                                                                                   \
  T *result = out;                                                                                                     \
  const T *at_x = in_x;                                                                                                \
  TD_NEAR_BLOCKS(const T x = at_x[i], TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_ANGLE_NEAR), td_single_##name(x),    \
                 name##_far_loop_FLOAT32(end - done, result + done, at_x + done, in_y, in_z, fixed, arguments);)       \
  }

#define ANGLE_MAP(name, expression)                                                                                    \
  static const char name##_text[] = #expression;                                                                       \
  ANGLE_LOOP(name, expression)                                                                                         \
  TD_LOOP1_NEAR(FLOAT64, double, name, !(fabs(x) < TD_MATH_NEAR_DOUBLE), 1, td_math_##name##_near_double(x),           \
                expression)                                                                                            \
  TD_MAP_TABLE(TD_EACH_FLOAT, name, 1, FLOATING)

static td_tensor *cosine(td_scope *s, td_tensor *x);

ANGLE_MAP(sin, SIN(x))
TD_KERNEL(sin)

static int sin_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], cosine(s, rule->in[0]));
  return TD_OK;
}

static const td_op sin_op = {
    .name = "sin",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = sin_kernel,
    .expression = sin_text,
    .vjp = sin_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "The sine of x; of infinities NaN.\n"
           "Gradient: cotangent * cos(x).",
    .example = "sin(tensor([0., -0.])).tolist()  # [0.0, -0.0]",
    .samples = any_samples,
};

ANGLE_MAP(cos, COS(x))
TD_KERNEL(cos)

static int cos_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_negative(s, td_chain(s, rule->cotangent[0], td_scope_apply(s, &sin_op, NULL, 1, rule->in[0])));
  return TD_OK;
}

static const td_op cos_op = {
    .name = "cos",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = cos_kernel,
    .expression = cos_text,
    .vjp = cos_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "The cosine of x; of infinities NaN.\n"
           "Gradient: -cotangent * sin(x).",
    .example = "cos(tensor([0.])).tolist()  # [1.0]",
    .samples = any_samples,
};

static td_tensor *cosine(td_scope *s, td_tensor *x) { return td_scope_apply(s, &cos_op, NULL, 1, x); }

ANGLE_MAP(tan, TAN(x))
TD_KERNEL(tan)

static int tan_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], one_plus(s, td_square(s, rule->out[0])));
  return TD_OK;
}

static const td_op tan_op = {
    .name = "tan",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = tan_kernel,
    .expression = tan_text,
    .vjp = tan_vjp,
    .saves = TD_SAVES_OUTPUT,
    .doc = "The tangent of x; of infinities NaN.\n"
           "Gradient: cotangent * (1 + tan(x)**2).",
    .example = "tan(tensor([0.])).tolist()  # [0.0]",
    .samples = inner_samples,
};

TD_MAP1(TD_EACH_FLOAT, asin, FLOATING, T, ASIN(x))
TD_KERNEL(asin)

static int asin_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], root_below(s, rule->in[0]));
  return TD_OK;
}

static const td_op asin_op = {
    .name = "asin",
    .alias = TD_ALIAS("arcsin"),
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = asin_kernel,
    .expression = asin_text,
    .vjp = asin_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "The angle in [-pi/2, pi/2] whose sine is x; NaN outside of [-1, 1].\n"
           "Gradient: cotangent / sqrt(1 - x**2), an infinity at -1 and 1.",
    .example = "asin(tensor([0.])).tolist()  # [0.0]",
    .samples = inner_samples,
};

TD_MAP1(TD_EACH_FLOAT, acos, FLOATING, T, ACOS(x))
TD_KERNEL(acos)

static int acos_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_negative(s, td_chain_quotient(s, rule->cotangent[0], root_below(s, rule->in[0])));
  return TD_OK;
}

static const td_op acos_op = {
    .name = "acos",
    .alias = TD_ALIAS("arccos"),
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .method = true,
    .infer = td_map_floating,
    .kernel = acos_kernel,
    .expression = acos_text,
    .vjp = acos_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "The angle in [0, pi] whose cosine is x; NaN outside of [-1, 1].\n"
           "Gradient: -cotangent / sqrt(1 - x**2), an infinity at -1 and 1.",
    .example = "acos(tensor([1.])).tolist()  # [0.0]",
    .samples = inner_samples,
};

TD_MAP1(TD_EACH_FLOAT, atan, FLOATING, T, ATAN(x))
TD_KERNEL(atan)

static int atan_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], one_plus(s, td_square(s, rule->in[0])));
  return TD_OK;
}

static const td_op atan_op = {
  .name = "atan",
  .alias = TD_ALIAS("arctan"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = atan_kernel,
  .expression = atan_text,
  .vjp = atan_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The angle in [-pi/2, pi/2] whose tangent is x.\n"
         "Gradient: cotangent / (1 + x**2).",
  .example = "atan(tensor([0.])).tolist()  # [0.0]",
  .samples = any_samples,
};

TD_MAP2(TD_EACH_FLOAT, atan2, FLOATING, T, ATAN2(x, y))
TD_KERNEL(atan2)

static int atan2_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *y = rule->in[0], *x = rule->in[1];
  td_tensor *c = rule->cotangent[0], *radius = td_hypot(s, x, y); // divided by twice: its square may overflow
  td_tensor *gradients[] = {td_chain(s, c, x), td_negative(s, td_chain(s, c, y))};
  for (int i = 0; i < 2; i++)
    if (rule->needs[i]) rule->din[i] = td_chain_quotient(s, td_chain_quotient(s, gradients[i], radius), radius);
  return TD_OK;
}

static const td_op atan2_op = {
  .name = "atan2",
  .alias = TD_ALIAS("arctan2"),
  .params = { TD_TENSOR_PARAM("y"), TD_TENSOR_PARAM("x") },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = atan2_kernel,
  .expression = atan2_text,
  .vjp = atan2_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "The angle in [-pi, pi] of the point with abscissa x and ordinate y, in this order: atan2(y, x).\n"
         "Gradient: cotangent * x / (x**2 + y**2) for y, -cotangent * y / (x**2 + y**2) for x; both 0 at the origin.",
  .example = "atan2(tensor([0., -0.]), 1).tolist()  # [0.0, -0.0]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 3,4", .low = 0.3, .high = 2 },
    { .shapes = "2,1,3; 4,1", .low = -2, .high = -0.3 },
    { .shapes = "5; -", .low = 0.3, .high = 2 },
    { .shapes = "0,3; 3", .low = 0.3, .high = 2 },
    TD_SAMPLES_END,
  },
};

// ---- hyperbolic functions ----

static td_tensor *hyperbolic_cosine(td_scope *s, td_tensor *x);

TD_MAP1(TD_EACH_FLOAT, sinh, FLOATING, T, SINH(x))
TD_KERNEL(sinh)

static int sinh_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], hyperbolic_cosine(s, rule->in[0]));
  return TD_OK;
}

static const td_op sinh_op = {
  .name = "sinh",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = sinh_kernel,
  .expression = sinh_text,
  .vjp = sinh_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The hyperbolic sine of x.\n"
         "Gradient: cotangent * cosh(x).",
  .example = "sinh(tensor([0.])).tolist()  # [0.0]",
  .samples = any_samples,
};

TD_MAP1(TD_EACH_FLOAT, cosh, FLOATING, T, COSH(x))
TD_KERNEL(cosh)

static int cosh_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_scope_apply(s, &sinh_op, NULL, 1, rule->in[0]));
  return TD_OK;
}

static const td_op cosh_op = {
  .name = "cosh",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = cosh_kernel,
  .expression = cosh_text,
  .vjp = cosh_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The hyperbolic cosine of x.\n"
         "Gradient: cotangent * sinh(x).",
  .example = "cosh(tensor([0.])).tolist()  # [1.0]",
  .samples = any_samples,
};

static td_tensor *hyperbolic_cosine(td_scope *s, td_tensor *x) { return td_scope_apply(s, &cosh_op, NULL, 1, x); }

// The cotangent x through tanh's slope at y, in one pass. It is computed from tanh's argument: the result has lost its
// digits where it is near 1.
TD_MAP2_NEAR(tanh_gradient, TD_SINGLE_SIZE(y), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR / 2),
             x == 0 ? 0 : x * td_single_tanh_slope(y), x == 0 ? 0 : x * TANH_SLOPE(y))
TD_KERNEL(tanh_gradient)

static td_tensor *tanh_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x);

static int tanh_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[1];
  if (rule->needs[0]) rule->din[0] = tanh_gradient(s, c, x);
  if (!rule->needs[1]) return TD_OK;
  td_tensor *bent = td_chain(s, tanh_gradient(s, td_chain(s, c, rule->in[0]), x), td_tanh(s, x));
  rule->din[1] = td_negative(s, td_add(s, bent, bent));
  return TD_OK;
}

static const td_op tanh_gradient_op = {
  .name = "tanh_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = tanh_gradient_kernel,
  .expression = tanh_gradient_text,
  .vjp = tanh_gradient_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "A cotangent times the derivative of tanh at x: 0 where the cotangent is exactly 0.\n"
         "Gradient: that of the product; the derivative's own is -2 * tanh(x) times it.",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 3,4", .low = -0.9, .high = 0.9 },
    { .shapes = "0,3; 3", .low = -0.9, .high = 0.9 },
    TD_SAMPLES_END,
  },
};

static td_tensor *tanh_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x) {
  return td_scope_apply(s, &tanh_gradient_op, NULL, 2, cotangent, x);
}

TD_MAP1(TD_EACH_FLOAT, tanh, FLOATING, T, TANH(x))
TD_KERNEL(tanh)

static int tanh_vjp(td_rule *rule) {
  rule->din[0] = tanh_gradient(&rule->scope, rule->cotangent[0], rule->in[0]);
  return TD_OK;
}

static const td_op tanh_op = {
  .name = "tanh",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = tanh_kernel,
  .expression = tanh_text,
  .vjp = tanh_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The hyperbolic tangent of x.\n"
         "Gradient: cotangent * (1 - tanh(x)**2), from x: exact also where tanh(x) is 1.",
  .example = "tanh(tensor([0., inf])).tolist()  # [0.0, 1.0]",
  .samples = any_samples,
};

td_tensor *td_tanh(td_scope *s, td_tensor *x) { return td_scope_apply(s, &tanh_op, NULL, 1, x); }

// ---- the inverse hyperbolic functions ----

TD_MAP1(TD_EACH_FLOAT, asinh, FLOATING, T, ASINH(x))
TD_KERNEL(asinh)

static int asinh_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0];
  rule->din[0] = td_chain_quotient(s, rule->cotangent[0], td_hypot(s, x, td_scope_number(s, 1, x)));
  return TD_OK;
}

TD_MAP1(TD_EACH_FLOAT, acosh, FLOATING, T, ACOSH(x))
TD_KERNEL(acosh)

static int acosh_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0];
  td_tensor *left = td_sqrt(s, one_below(s, x)), *right = td_sqrt(s, one_plus(s, x)); // their product does not overflow
  rule->din[0] = td_chain_quotient(s, td_chain_quotient(s, rule->cotangent[0], left), right);
  return TD_OK;
}

TD_MAP1(TD_EACH_FLOAT, atanh, FLOATING, T, ATANH(x))
TD_KERNEL(atanh)

static int atanh_vjp(td_rule *rule) {
  rule->din[0] = td_chain_quotient(&rule->scope, rule->cotangent[0], below(&rule->scope, rule->in[0]));
  return TD_OK;
}

#define INVERSE_ROW(title, other, summary, shown, fed)                                                                 \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .alias = TD_ALIAS(other),                                                                                          \
    .params = { TD_X },                                                                                                \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .method = true,                                                                                                    \
    .infer = td_map_floating,                                                                                          \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = title##_vjp,                                                                                                \
    .saves = TD_SAVES_IN0,                                                                                             \
    .doc = summary,                                                                                                    \
    .example = shown,                                                                                                  \
    .samples = fed,                                                                                                    \
  };

static const td_sample above_samples[] = {
  { .shapes = "3,4", .low = 1.3, .high = 4 },
  { .shapes = "-", .low = 2, .high = 9 },
  { .shapes = "0,3", .low = 1.3, .high = 4 },
  TD_SAMPLES_END,
};

INVERSE_ROW(asinh, "arcsinh", "The number whose hyperbolic sine is x.\nGradient: cotangent / sqrt(1 + x**2).",
            "asinh(tensor([0., -0.])).tolist()  # [0.0, -0.0]", any_samples)
INVERSE_ROW(acosh, "arccosh",
            "The number that is not negative whose hyperbolic cosine is x; NaN below 1.\n"
            "Gradient: cotangent / sqrt(x**2 - 1), an infinity at 1.",
            "acosh(tensor([1., inf])).tolist()  # [0.0, inf]", above_samples)
INVERSE_ROW(atanh, "arctanh",
            "The number whose hyperbolic tangent is x; infinities at -1 and 1, NaN beyond.\n"
            "Gradient: cotangent / (1 - x**2), an infinity at -1 and 1.",
            "atanh(tensor([0., 1.])).tolist()  # [0.0, inf]", inner_samples)

// ---- degrees and radians ----

#define FACTOR_ROW(title, other, factor, summary, shown)                                                               \
  TD_MAP1(TD_EACH_FLOAT, title, FLOATING, T, x * (T)(factor))                                                          \
  TD_KERNEL(title)                                                                                                     \
  static int title##_vjp(td_rule *rule) {                                                                              \
    td_tensor *c = rule->cotangent[0];                                                                                 \
    rule->din[0] = td_multiply(&rule->scope, c, td_scope_number(&rule->scope, factor, c));                             \
    return TD_OK;                                                                                                      \
  }                                                                                                                    \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .alias = TD_ALIAS(other),                                                                                          \
    .params = { TD_X },                                                                                                \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .flags = TD_LINEAR,                                                                                                \
    .method = true,                                                                                                    \
    .infer = td_map_floating,                                                                                          \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = title##_vjp,                                                                                                \
    .doc = summary,                                                                                                    \
    .example = shown,                                                                                                  \
    .samples = any_samples,                                                                                            \
  };

FACTOR_ROW(deg2rad, "radians", TD_PI / 180, "Degrees in radians, x * pi / 180.\nGradient: cotangent * pi / 180.",
           "deg2rad(tensor([0., 180.], dtype=float64)).tolist()  # [0.0, 3.141592653589793]")
FACTOR_ROW(rad2deg, "degrees", 180 / TD_PI, "Radians in degrees, x * 180 / pi.\nGradient: cotangent * 180 / pi.",
           "rad2deg(tensor([0., pi], dtype=float64)).tolist()  # [0.0, 180.0]")

const td_op *const td_family_trigonometric[] = {
  &sin_op, &cos_op, &tan_op, &asin_op, &acos_op, &atan_op, &atan2_op, &sinh_op, &cosh_op, &tanh_op,
  &asinh_op, &acosh_op, &atanh_op, &deg2rad_op, &rad2deg_op, &tanh_gradient_op, NULL,
};
