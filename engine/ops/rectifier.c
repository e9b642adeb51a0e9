// Activation functions with corners, where the gradient is PyTorch's: that of the flatter side. So it is at NaN, by
// PyTorch's formulas; its CPU's vector loops have NaN there in elu's kin and hardswish, the loops' ends don't. Integers
// and bool give float32, but relu and relu6 keep integers.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample off_zero_samples[] = {
  { .shapes = "3,4", .low = 0.2, .high = 2 },
  { .shapes = "-", .low = -2, .high = -0.2 },
  { .shapes = "0,3", .low = 0.2, .high = 2 },
  { .shapes = "2,3", .low = -2, .high = -0.2 },
  TD_SAMPLES_END,
};
static const td_sample gradient_samples[] = {
  { .shapes = "3,4; 3,4", .low = 0.2, .high = 0.9 },
  { .shapes = "3,1; 4", .low = -0.9, .high = -0.2 },
  { .shapes = "0,3; 3", .low = 0.2, .high = 0.9 },
  TD_SAMPLES_END,
};

#define FLOAT_PARAM(title, number) { .name = title, .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(number) }
#define FIRST_ARGUMENTS(call) ((const double[TD_MAP_ARGUMENTS]){ (call)->args[0].f, (call)->args[1].f })

static td_tensor *times(td_scope *s, td_tensor *x, double factor) {
  return td_multiply(s, x, td_scope_number(s, factor, x));
}

// ---- relu and its kin ----

TD_MAP2(TD_EACH_FLOAT, above_gradient, FLOATING, T, y <= p ? 0 : x)

static int above_gradient_kernel(const td_call *call) {
  return td_map_run(call, &above_gradient_map, call->args[0].f);
}

static const td_op above_gradient_op;

static int above_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (rule->needs[0])
    rule->din[0] = td_scope_apply(s, &above_gradient_op, rule->args, 2, rule->cotangent[0], rule->in[1]);
  if (rule->needs[1]) rule->din[1] = td_scope_filled(s, 0, &rule->in_meta[1]);
  return TD_OK;
}

static const td_op above_gradient_op = {
  .name = "above_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X, FLOAT_PARAM("low", 0) },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = above_gradient_kernel,
  .expression = above_gradient_text,
  .vjp = above_gradient_vjp,
  .saves = TD_SAVES_IN1,
  .doc = "0 where x <= low, the cotangent elsewhere, at NaN too.\n"
         "Gradient: the same of its cotangent; 0 for x.",
  .samples = gradient_samples,
};

static td_tensor *above_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, double low) {
  td_arg args[] = { TD_FLOAT_DEFAULT(low) };
  return td_scope_apply(s, &above_gradient_op, args, 2, cotangent, x);
}

TD_MAP2(TD_EACH_FLOAT, leaky_gradient, FLOATING, T, y > 0 ? x : p == 0 ? 0 : x * p)

static double slope_of(const td_arg *args) { return args[0].f; }
static int leaky_gradient_kernel(const td_call *call) {
  return td_map_run(call, &leaky_gradient_map, slope_of(call->args));
}

static td_tensor *leaky_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, double slope);

static int leaky_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (rule->needs[0]) rule->din[0] = leaky_gradient(s, rule->cotangent[0], rule->in[1], slope_of(rule->args));
  if (rule->needs[1]) rule->din[1] = td_scope_filled(s, 0, &rule->in_meta[1]);
  return TD_OK;
}

static const td_op leaky_gradient_op = {
  .name = "leaky_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X,
              { .name = "slope", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0) } },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = leaky_gradient_kernel,
  .expression = leaky_gradient_text,
  .vjp = leaky_gradient_vjp,
  .saves = TD_SAVES_IN1,
  .doc = "The cotangent where x > 0, slope times it elsewhere.\n"
         "Gradient: the same of its cotangent; 0 for x.",
  .samples = gradient_samples,
};

static td_tensor *leaky_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, double slope) {
  td_arg args[] = { TD_FLOAT_DEFAULT(slope) };
  return td_scope_apply(s, &leaky_gradient_op, args, 2, cotangent, x);
}

TD_MAP1(TD_EACH_NUMBER, relu, COMMON, T, MAXIMUM(x, 0))
TD_KERNEL(relu)

static int relu_vjp(td_rule *rule) {
  rule->din[0] = above_gradient(&rule->scope, rule->cotangent[0], rule->in[0], 0);
  return TD_OK;
}

static const td_op relu_op = {
  .name = "relu",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_number,
  .kernel = relu_kernel,
  .expression = relu_text,
  .vjp = relu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x where it is positive, 0 elsewhere; NaN stays. Integers stay integers.\n"
         "Gradient: 0 where x <= 0, the cotangent elsewhere, at NaN too: a NaN stays in sight.",
  .example = "relu(tensor([-1., 0., 2.])).tolist()  # [0.0, 0.0, 2.0]",
  .samples = off_zero_samples,
};

TD_MAP1(TD_EACH_FLOAT, leaky_relu, FLOATING, T, x > 0 ? x : x * p)

static int leaky_relu_kernel(const td_call *call) { return td_map_run(call, &leaky_relu_map, slope_of(call->args)); }

static int leaky_relu_vjp(td_rule *rule) {
  rule->din[0] = leaky_gradient(&rule->scope, rule->cotangent[0], rule->in[0], slope_of(rule->args));
  return TD_OK;
}

static const td_op leaky_relu_op = {
  .name = "leaky_relu",
  .params = { TD_X, { .name = "slope", .alias = TD_ALIAS("negative_slope", "alpha"), .kind = TD_PARAM_FLOAT,
                .fallback = TD_FLOAT_DEFAULT(0.01) } },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = leaky_relu_kernel,
  .expression = leaky_relu_text,
  .vjp = leaky_relu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x where it is positive, slope * x elsewhere.\n"
         "Gradient: the cotangent where x > 0, slope * cotangent elsewhere, at 0 and NaN too.",
  .example = "leaky_relu(tensor([-2., 2.]), slope=0.5).tolist()  # [-1.0, 2.0]",
  .samples = off_zero_samples,
};

// ---- exponentials below 0: elu, celu, selu ----

// right x where x > 0, left expm1(rate x) elsewhere, by p, q and r
TD_MAP1(TD_EACH_FLOAT, elu, FLOATING, T, x > 0 ? p * x : q * EXPM1(x * r))

static int elu_vjp_of(td_rule *rule, double right, double left, double rate) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0];
  td_tensor *below = times(s, td_exp(s, rate == 1 ? x : times(s, x, rate)), left * rate);
  td_tensor *above = right == 1 ? c : times(s, c, right);
  rule->din[0] = td_where(s, td_less_equal(s, x, td_scope_number(s, 0, x)), td_chain(s, c, below), above);
  return TD_OK;
}

static int elu_kernel(const td_call *call) {
  return td_map_run_with(call, &elu_map, (const double[TD_MAP_ARGUMENTS]){ 1, call->args[0].f, 1 });
}
static int elu_vjp(td_rule *rule) { return elu_vjp_of(rule, 1, rule->args[0].f, 1); }

static const td_op elu_op = {
  .name = "elu",
  .params = { TD_X, FLOAT_PARAM("alpha", 1) },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = elu_kernel,
  .expression = elu_text,
  .vjp = elu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x where it is positive, alpha * (exp(x) - 1) elsewhere.\n"
         "Gradient: alpha * exp(x) * cotangent where x <= 0, the cotangent elsewhere, at NaN too.",
  .example = "elu(tensor([-inf, 2.])).tolist()  # [-1.0, 2.0]",
  .source = "Clevert, Unterthiner, Hochreiter: Fast and Accurate Deep Network Learning by ELUs, 2016",
  .samples = off_zero_samples,
};

static int celu_kernel(const td_call *call) {
  double alpha = call->args[0].f;
  return td_map_run_with(call, &elu_map, (const double[TD_MAP_ARGUMENTS]){ 1, alpha, 1 / alpha });
}
static int celu_vjp(td_rule *rule) { return elu_vjp_of(rule, 1, rule->args[0].f, 1 / rule->args[0].f); }
static int celu_infer(td_infer *infer) {
  if (infer->args[0].f != 0) return td_map_floating(infer);
  return td_infer_fail(infer, TD_ERROR_VALUE, "alpha must not be 0: x is divided by it");
}

static const td_op celu_op = {
  .name = "celu",
  .params = { TD_X, FLOAT_PARAM("alpha", 1) },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = celu_infer,
  .kernel = celu_kernel,
  .expression = elu_text,
  .vjp = celu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere.\n"
         "Gradient: exp(x / alpha) * cotangent where x <= 0, the cotangent elsewhere, at NaN too.",
  .example = "celu(tensor([-inf, 2.]), alpha=3.).tolist()  # [-3.0, 2.0]",
  .source = "Barron: Continuously Differentiable Exponential Linear Units, 2017",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = 0.2, .high = 2 },
    { .shapes = "2,3", .args = "alpha=1.5", .low = -2, .high = -0.2 },
    { .shapes = "0,3", .low = 0.2, .high = 2 },
    TD_SAMPLES_END,
  },
};

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717

static int selu_kernel(const td_call *call) {
  return td_map_run_with(call, &elu_map, (const double[TD_MAP_ARGUMENTS]){ SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1 });
}
static int selu_vjp(td_rule *rule) { return elu_vjp_of(rule, SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1); }

static const td_op selu_op = {
  .name = "selu",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = selu_kernel,
  .expression = elu_text,
  .vjp = selu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "scale * elu(x, alpha), scale = 1.0507... and alpha = 1.6732... keep mean 0 and variance 1.\n"
         "Gradient: scale * alpha * exp(x) * cotangent where x <= 0, scale * cotangent elsewhere, at NaN too.",
  .example = "selu(tensor([0., 1.])).tolist()  # [0.0, 1.0507010221481323]",
  .source = "Klambauer, Unterthiner, Mayr, Hochreiter: Self-Normalizing Neural Networks, 2017",
  .samples = off_zero_samples,
};

// ---- between two corners ----

TD_MAP2(TD_EACH_FLOAT, inside_gradient, FLOATING, T, ((y > p) & (y < q)) ? x * r : 0)

static int inside_gradient_kernel(const td_call *call) {
  const double arguments[TD_MAP_ARGUMENTS] = {call->args[0].f, call->args[1].f, call->args[2].f};
  return td_map_run_with(call, &inside_gradient_map, arguments);
}

static const td_op inside_gradient_op;

static int inside_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (rule->needs[0])
    rule->din[0] = td_scope_apply(s, &inside_gradient_op, rule->args, 2, rule->cotangent[0], rule->in[1]);
  if (rule->needs[1]) rule->din[1] = td_scope_filled(&rule->scope, 0, &rule->in_meta[1]);
  return TD_OK;
}

static const td_op inside_gradient_op = {
  .name = "inside_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X, FLOAT_PARAM("low", 0), FLOAT_PARAM("high", 1),
              FLOAT_PARAM("slope", 1) },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = inside_gradient_kernel,
  .expression = inside_gradient_text,
  .vjp = inside_gradient_vjp,
  .saves = TD_SAVES_IN1,
  .doc = "slope times the cotangent where low < x < high, 0 elsewhere, at NaN too.\n"
         "Gradient: the same of its cotangent; 0 for x.",
  .samples = gradient_samples,
};

static td_tensor *inside_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, double low, double high,
                                  double slope) {
  td_arg args[] = { TD_FLOAT_DEFAULT(low), TD_FLOAT_DEFAULT(high), TD_FLOAT_DEFAULT(slope) };
  return td_scope_apply(s, &inside_gradient_op, args, 2, cotangent, x);
}

TD_MAP1(TD_EACH_FLOAT, hardtanh, FLOATING, T, x < p ? p : x > q ? q : x)

static int hardtanh_infer(td_infer *infer) {
  if (infer->args[0].f <= infer->args[1].f) return td_map_floating(infer);
  return td_infer_fail(infer, TD_ERROR_VALUE, "min_val must not be above max_val: %g and %g", infer->args[0].f,
                       infer->args[1].f);
}
static int hardtanh_kernel(const td_call *call) { return td_map_run_with(call, &hardtanh_map, FIRST_ARGUMENTS(call)); }
static int hardtanh_vjp(td_rule *rule) {
  double low = rule->args[0].f, high = rule->args[1].f;
  rule->din[0] = inside_gradient(&rule->scope, rule->cotangent[0], rule->in[0], low, high, 1);
  return TD_OK;
}

static const td_op hardtanh_op = {
    .name = "hardtanh",
    .params = {TD_X, FLOAT_PARAM("min_val", -1), FLOAT_PARAM("max_val", 1)},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_IDEMPOTENT,
    .infer = hardtanh_infer,
    .kernel = hardtanh_kernel,
    .expression = hardtanh_text,
    .vjp = hardtanh_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "x moved between min_val and max_val; NaN stays.\n"
           "Gradient: the cotangent where min_val < x < max_val, 0 elsewhere, at the corners (not as clip) and at NaN.",
    .example = "hardtanh(tensor([-3., 0.5, 3.])).tolist()  # [-1.0, 0.5, 1.0]",
    .samples =
        TD_SAMPLES{
            {.shapes = "3,4", .low = -0.9, .high = 0.9},
            {.shapes = "2,3", .args = "min_val=-3., max_val=3.", .low = -2, .high = 2},
            {.shapes = "-", .low = 1.2, .high = 2},
            {.shapes = "0,3", .low = -2, .high = 2},
            TD_SAMPLES_END,
        },
};

TD_MAP1(TD_EACH_NUMBER, relu6, COMMON, T, MINIMUM(MAXIMUM(x, 0), 6))
TD_KERNEL(relu6)
static int relu6_vjp(td_rule *rule) {
  rule->din[0] = inside_gradient(&rule->scope, rule->cotangent[0], rule->in[0], 0, 6, 1);
  return TD_OK;
}

static const td_op relu6_op = {
    .name = "relu6",
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_IDEMPOTENT,
    .infer = td_map_number,
    .kernel = relu6_kernel,
    .expression = relu6_text,
    .vjp = relu6_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "x moved between 0 and 6; NaN stays. Integers stay integers.\n"
           "Gradient: the cotangent where 0 < x < 6, 0 elsewhere, at the two corners and NaN too.",
    .example = "relu6(tensor([-1., 3., 9.])).tolist()  # [0.0, 3.0, 6.0]",
    .samples = off_zero_samples,
};

TD_MAP1(TD_EACH_FLOAT, hardsigmoid, FLOATING, T, x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6)
TD_KERNEL(hardsigmoid)
static int hardsigmoid_vjp(td_rule *rule) {
  rule->din[0] = inside_gradient(&rule->scope, rule->cotangent[0], rule->in[0], -3, 3, 1. / 6);
  return TD_OK;
}

static const td_op hardsigmoid_op = {
    .name = "hardsigmoid",
    .alias = TD_ALIAS("hard_sigmoid"),
    .params = {TD_X},
    .kind = TD_KIND_ELEMENTWISE,
    .infer = td_map_floating,
    .kernel = hardsigmoid_kernel,
    .expression = hardsigmoid_text,
    .vjp = hardsigmoid_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "(x + 3) / 6 moved between 0 and 1; NaN stays.\n"
           "Gradient: cotangent / 6 where -3 < x < 3, 0 elsewhere, at the two corners and NaN too.",
    .example = "hardsigmoid(tensor([-4., 0., 3.])).tolist()  # [0.0, 0.5, 1.0]",
    .samples = off_zero_samples,
};

// The cotangent x through hardswish's slope at y.
TD_MAP2(TD_EACH_FLOAT, hardswish_gradient, FLOATING, T,
        y <= -3 ? 0 : ((y < 3) & (x != 0)) ? x * (y / 3 + (T)0.5) : x)
TD_KERNEL(hardswish_gradient)

static td_tensor *hardswish_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x);

static int hardswish_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[1];
  if (rule->needs[0]) rule->din[0] = hardswish_gradient(s, c, x);
  if (rule->needs[1]) rule->din[1] = inside_gradient(s, td_chain(s, c, rule->in[0]), x, -3, 3, 1. / 3);
  return TD_OK;
}

static const td_op hardswish_gradient_op = {
  .name = "hardswish_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = hardswish_gradient_kernel,
  .expression = hardswish_gradient_text,
  .vjp = hardswish_gradient_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "A cotangent times the derivative of hardswish at x: 0 where the cotangent is exactly 0.\n"
         "Gradient: that of the product; the derivative's own is 1 / 3 where -3 < x < 3, 0 elsewhere.",
  .samples = gradient_samples,
};

static td_tensor *hardswish_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x) {
  return td_scope_apply(s, &hardswish_gradient_op, NULL, 2, cotangent, x);
}

TD_MAP1(TD_EACH_FLOAT, hardswish, FLOATING, T, x < -3 ? 0 : x > 3 ? x : x * ((x + 3) / 6))
TD_KERNEL(hardswish)

static int hardswish_vjp(td_rule *rule) {
  rule->din[0] = hardswish_gradient(&rule->scope, rule->cotangent[0], rule->in[0]);
  return TD_OK;
}

static const td_op hardswish_op = {
  .name = "hardswish",
  .alias = TD_ALIAS("hard_swish", "hard_silu"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = hardswish_kernel,
  .expression = hardswish_text,
  .vjp = hardswish_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x * hardsigmoid(x).\n"
         "Gradient: cotangent * (x / 3 + 1 / 2) where -3 < x < 3, 0 up to -3, the cotangent elsewhere, at NaN too.",
  .example = "hardswish(tensor([-4., 0., 4.])).tolist()  # [0.0, 0.0, 4.0]",
  .source = "Howard and others: Searching for MobileNetV3, 2019",
  .samples = off_zero_samples,
};

// ---- thresholds ----

TD_MAP1(TD_EACH_FLOAT, threshold, FLOATING, T, x <= p ? q : x)

static int threshold_kernel(const td_call *call) {
  return td_map_run_with(call, &threshold_map, FIRST_ARGUMENTS(call));
}
static int threshold_vjp(td_rule *rule) {
  rule->din[0] = above_gradient(&rule->scope, rule->cotangent[0], rule->in[0], rule->args[0].f);
  return TD_OK;
}

static const td_op threshold_op = {
    .name = "threshold",
    .params = {TD_X,
               {.name = "threshold", .kind = TD_PARAM_FLOAT, .required = true},
               {.name = "value", .kind = TD_PARAM_FLOAT, .required = true}},
    .kind = TD_KIND_ELEMENTWISE,
    .infer = td_map_floating,
    .kernel = threshold_kernel,
    .expression = threshold_text,
    .vjp = threshold_vjp,
    .saves = TD_SAVES_IN0,
    .doc = "x where it is above threshold, value elsewhere; NaN stays.\n"
           "Gradient: 0 where x <= threshold, the cotangent elsewhere, at NaN too.",
    .example = "threshold(tensor([1., 3.]), 2, -1).tolist()  # [-1.0, 3.0]",
    .samples =
        TD_SAMPLES{
            {.shapes = "3,4", .args = "threshold=0., value=7.", .low = 0.2, .high = 2},
            {.shapes = "-", .args = "threshold=0., value=7.", .low = -2, .high = -0.2},
            {.shapes = "0,3", .args = "threshold=0., value=7.", .low = 0.2, .high = 2},
            TD_SAMPLES_END,
        },
};

TD_MAP1(TD_EACH_FLOAT, hardshrink, FLOATING, T, ABS(x) <= p ? 0 : x)
TD_MAP1(TD_EACH_FLOAT, softshrink, FLOATING, T, x > p ? x - p : x < -p ? x + p : x == x ? 0 : x)

static int hardshrink_kernel(const td_call *call) { return td_map_run(call, &hardshrink_map, call->args[0].f); }
static int softshrink_kernel(const td_call *call) { return td_map_run(call, &softshrink_map, call->args[0].f); }

// Of what lies in [-limit, limit] nothing is left.
static int shrink_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0];
  td_tensor *above = td_greater(s, td_abs(s, x), td_scope_number(s, rule->args[0].f, x));
  rule->din[0] = td_where(s, above, c, td_scope_number(s, 0, c));
  return TD_OK;
}
static int shrink_infer(td_infer *infer) {
  if (infer->args[0].f >= 0) return td_map_floating(infer);
  return td_infer_fail(infer, TD_ERROR_VALUE, "limit must not be below 0, and is %g", infer->args[0].f);
}

#define SHRINK_ROW(title, summary, shown)                                                                              \
  static const td_op title##_op = {                                                                                    \
    .name = #title,                                                                                                    \
    .params = { TD_X,                                                                                                  \
                { .name = "limit", .alias = TD_ALIAS("lambd"), .kind = TD_PARAM_FLOAT,                                 \
                  .fallback = TD_FLOAT_DEFAULT(0.5) } },                                                               \
    .kind = TD_KIND_ELEMENTWISE,                                                                                       \
    .infer = shrink_infer,                                                                                             \
    .kernel = title##_kernel,                                                                                          \
    .expression = title##_text,                                                                                        \
    .vjp = shrink_vjp,                                                                                                 \
    .saves = TD_SAVES_IN0,                                                                                             \
    .doc = summary "\nGradient: the cotangent where abs(x) > limit, 0 elsewhere, at NaN too.",                         \
    .example = shown,                                                                                                  \
    .samples = shrink_samples,                                                                                         \
  };

static const td_sample shrink_samples[] = {
  { .shapes = "3,4", .low = 0.7, .high = 2 },
  { .shapes = "2,3", .args = "limit=0.1", .low = -2, .high = -0.3 },
  { .shapes = "-", .low = -0.4, .high = 0.4 },
  { .shapes = "0,3", .low = 0.7, .high = 2 },
  TD_SAMPLES_END,
};

SHRINK_ROW(hardshrink, "x where abs(x) > limit, 0 elsewhere; NaN stays.",
           "hardshrink(tensor([-1., 0.2, 1.])).tolist()  # [-1.0, 0.0, 1.0]")
SHRINK_ROW(softshrink, "x moved toward 0 by limit, as far as 0; NaN stays.",
           "softshrink(tensor([-1., 0.2, 1.])).tolist()  # [-0.5, 0.0, 0.5]")

// ---- prelu ----

TD_EACH_FLOAT(TD_LOOP2, prelu, T, x > 0 ? x : x * y)
TD_MAP_TABLE(TD_EACH_FLOAT, prelu, 2, FLOATING)

// One weight, or one for each channel: axis 1 of x, or axis 0 where that is all.
static int channel_axis(int rank) { return rank > 1 ? 1 : 0; }

static int prelu_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *weight = &infer->in[1];
  int64_t count = 1, channels = x->rank ? x->shape[channel_axis(x->rank)] : 1;
  for (int d = 0; d < weight->rank; d++) count *= weight->shape[d];
  if (weight->rank > 1 || (count != 1 && count != channels))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "weight must be one number, or one for each of the %lld channels of x",
                         (long long)channels);
  infer->out[0] = *x;
  uint8_t dtype = td_dtype_promote(x->dtype, weight->dtype);
  infer->out[0].dtype = td_dtype_is_float(dtype) ? dtype : TD_FLOAT32;
  return TD_OK;
}

static int prelu_kernel(const td_call *call) {
  td_call shaped = *call;
  td_view *weight = &shaped.in[1];
  int rank = call->in[0].rank, axis = channel_axis(rank);
  int64_t stride = call->in[1].rank ? call->in[1].strides[0] : 0, size = weight->size;
  weight->rank = call->in[0].rank;
  for (int d = 0; d < rank; d++) {
    weight->shape[d] = d == axis ? size : 1;
    weight->strides[d] = d == axis && size > 1 ? stride : 0;
  }
  return td_map_run(&shaped, &prelu_map, 0);
}

static int prelu_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0], *weight = rule->in[1];
  int64_t shape[TD_RANK_MAX];
  int axis = channel_axis(x->rank);
  td_arg others = { .given = 1 };
  for (int d = 0; d < x->rank; d++) {
    shape[d] = d == axis ? weight->size : 1;
    if (d != axis || weight->size == 1) others.ints[others.count++] = d;
  }
  td_tensor *positive = td_greater(s, x, td_scope_number(s, 0, x));
  if (rule->needs[0])
    rule->din[0] = td_where(s, positive, c, td_chain(s, c, td_reshape(s, weight, x->rank, shape)));
  if (!rule->needs[1]) return TD_OK;
  td_tensor *each = td_where(s, positive, td_scope_number(s, 0, c), td_chain(s, c, x));
  rule->din[1] = td_reshape(s, td_sum(s, each, &others, false), weight->rank, weight->shape);
  return TD_OK;
}

static const td_op prelu_op = {
  .name = "prelu",
  .params = { TD_X, TD_TENSOR_PARAM("weight") },
  .kind = TD_KIND_OPAQUE,
  .method = true,
  .infer = prelu_infer,
  .kernel = prelu_kernel,
  .vjp = prelu_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "x where it is positive, weight * x elsewhere; weight is one number, or one for each channel (axis 1 of x).\n"
         "Gradient: for x the cotangent where x > 0, weight * cotangent elsewhere, at 0 and NaN too; for weight the\n"
         "sum of cotangent * x over what is not positive.",
  .example = "prelu(tensor([-2., 2.]), 0.5).tolist()  # [-1.0, 2.0]",
  .source = "He, Zhang, Ren, Sun: Delving Deep into Rectifiers, 2015",
  .samples = TD_SAMPLES{
    { .shapes = "3,4; 4", .low = -2, .high = -0.2 },
    { .shapes = "2,3,4; 3", .low = 0.2, .high = 2 },
    { .shapes = "3,4; -", .low = -2, .high = -0.2 },
    { .shapes = "3; 1", .low = -2, .high = -0.2 },
    { .shapes = "0,3; 3", .low = 0.2, .high = 2 },
    TD_SAMPLES_END,
  },
};

const td_op *const td_family_rectifier[] = {
  &relu_op, &leaky_relu_op, &prelu_op, &elu_op, &celu_op, &selu_op, &hardtanh_op, &relu6_op, &hardsigmoid_op,
  &hardswish_op, &threshold_op, &hardshrink_op, &softshrink_op, &above_gradient_op, &leaky_gradient_op,
  &inside_gradient_op, &hardswish_gradient_op, NULL,
};
