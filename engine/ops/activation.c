// Activation functions of layers. Integers and bool give float32. All are computed so that large arguments of either
// sign neither overflow nor cancel, infinities included.
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample any_samples[] = {
  { .shapes = "3,4", .low = -2, .high = 2 },
  { .shapes = "-", .low = -1, .high = 1 },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
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

static td_tensor *times(td_scope *s, td_tensor *x, double factor) {
  return td_multiply(s, x, td_scope_number(s, factor, x));
}
static td_tensor *plus(td_scope *s, td_tensor *x, double term) { return td_add(s, x, td_scope_number(s, term, x)); }

// ---- relu and its kin ----

TD_MAP2(TD_EACH_FLOAT, relu_gradient, FLOATING, T, y > 0 ? x : p == 0 ? 0 : x * p)

static double slope_of(const td_arg *args) { return args[0].f; }
static int relu_gradient_kernel(const td_call *call) {
  return td_map_run(call, &relu_gradient_map, slope_of(call->args));
}

static td_tensor *relu_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, double slope);

static int relu_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (rule->needs[0]) rule->din[0] = relu_gradient(s, rule->cotangent[0], rule->in[1], slope_of(rule->args));
  if (rule->needs[1]) rule->din[1] = td_scope_filled(s, 0, &rule->in_meta[1]);
  return TD_OK;
}

static const td_op relu_gradient_op = {
  .name = "relu_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X,
              { .name = "slope", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0) } },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = relu_gradient_kernel,
  .expression = relu_gradient_text,
  .vjp = relu_gradient_vjp,
  .saves = TD_SAVES_IN1,
  .doc = "The cotangent where x > 0, slope times it elsewhere.\n"
         "Gradient: the same of its cotangent; 0 for x.",
  .samples = gradient_samples,
};

static td_tensor *relu_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x, double slope) {
  td_arg args[] = { TD_FLOAT_DEFAULT(slope) };
  return td_scope_apply(s, &relu_gradient_op, args, 2, cotangent, x);
}

TD_MAP1(TD_EACH_NUMBER, relu, COMMON, T, MAXIMUM(x, 0))
TD_KERNEL(relu)

static int relu_vjp(td_rule *rule) {
  rule->din[0] = relu_gradient(&rule->scope, rule->cotangent[0], rule->in[0], 0);
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
         "Gradient: the cotangent where x > 0, 0 elsewhere, at 0 too.",
  .example = "relu(tensor([-1., 0., 2.])).tolist()  # [0.0, 0.0, 2.0]",
  .samples = off_zero_samples,
};

TD_MAP1(TD_EACH_FLOAT, leaky_relu, FLOATING, T, x > 0 ? x : x * p)

static int leaky_relu_kernel(const td_call *call) { return td_map_run(call, &leaky_relu_map, slope_of(call->args)); }

static int leaky_relu_vjp(td_rule *rule) {
  rule->din[0] = relu_gradient(&rule->scope, rule->cotangent[0], rule->in[0], slope_of(rule->args));
  return TD_OK;
}

static const td_op leaky_relu_op = {
  .name = "leaky_relu",
  .params = { TD_X, { .name = "slope", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0.01) } },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = leaky_relu_kernel,
  .expression = leaky_relu_text,
  .vjp = leaky_relu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x where it is positive, slope * x elsewhere.\n"
         "Gradient: the cotangent where x > 0, slope * cotangent elsewhere, at 0 too.",
  .example = "leaky_relu(tensor([-2., 2.]), slope=0.5).tolist()  # [-1.0, 2.0]",
  .samples = off_zero_samples,
};

TD_MAP1(TD_EACH_FLOAT, elu, FLOATING, T, x > 0 ? x : p * EXPM1(x))

static int elu_kernel(const td_call *call) { return td_map_run(call, &elu_map, call->args[0].f); }

static int elu_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0];
  td_tensor *below = td_multiply(s, td_exp(s, x), td_scope_number(s, rule->args[0].f, x));
  rule->din[0] = td_where(s, td_greater(s, x, td_scope_number(s, 0, x)), c, td_chain(s, c, below));
  return TD_OK;
}

static const td_op elu_op = {
  .name = "elu",
  .params = { TD_X, { .name = "alpha", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1) } },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = elu_kernel,
  .expression = elu_text,
  .vjp = elu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x where it is positive, alpha * (exp(x) - 1) elsewhere.\n"
         "Gradient: the cotangent where x > 0, alpha * exp(x) * cotangent elsewhere, at 0 too.",
  .example = "elu(tensor([-inf, 2.])).tolist()  # [-1.0, 2.0]",
  .source = "Clevert, Unterthiner, Hochreiter: Fast and Accurate Deep Network Learning by ELUs, 2016",
  .samples = off_zero_samples,
};

// ---- sigmoid and its kin ----

// The cotangent x through the sigmoid's slope, by the result y = sigmoid, in one pass.
TD_MAP2(TD_EACH_FLOAT, sigmoid_gradient, FLOATING, T, x == 0 ? 0 : x * (y * (1 - y)))
TD_KERNEL(sigmoid_gradient)

static td_tensor *sigmoid_gradient(td_scope *s, td_tensor *cotangent, td_tensor *result);

static int sigmoid_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *result = rule->in[1];
  if (rule->needs[0]) rule->din[0] = sigmoid_gradient(s, c, result);
  if (!rule->needs[1]) return TD_OK;
  td_tensor *bend = td_subtract(s, td_scope_number(s, 1, result), td_add(s, result, result));
  rule->din[1] = td_chain(s, c, td_chain(s, rule->in[0], bend));
  return TD_OK;
}

static const td_op sigmoid_gradient_op = {
  .name = "sigmoid_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_TENSOR_PARAM("result") },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = sigmoid_gradient_kernel,
  .expression = sigmoid_gradient_text,
  .vjp = sigmoid_gradient_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "A cotangent times result * (1 - result): 0 where the cotangent is exactly 0.\n"
         "Gradient: that of the product.",
  .samples = gradient_samples,
};

static td_tensor *sigmoid_gradient(td_scope *s, td_tensor *cotangent, td_tensor *result) {
  return td_scope_apply(s, &sigmoid_gradient_op, NULL, 2, cotangent, result);
}

TD_MAP1(TD_EACH_FLOAT, sigmoid, FLOATING, T, SIGMOID(x))
TD_KERNEL(sigmoid)

static int sigmoid_vjp(td_rule *rule) {
  rule->din[0] = sigmoid_gradient(&rule->scope, rule->cotangent[0], rule->out[0]);
  return TD_OK;
}

static const td_op sigmoid_op = {
  .name = "sigmoid",
  .alias = TD_ALIAS("expit"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .method = true,
  .infer = td_map_floating,
  .kernel = sigmoid_kernel,
  .expression = sigmoid_text,
  .vjp = sigmoid_vjp,
  .saves = TD_SAVES_OUTPUT,
  .doc = "The logistic function 1 / (1 + exp(-x)).\n"
         "Gradient: cotangent * y * (1 - y), y the result.",
  .example = "sigmoid(tensor([0., inf])).tolist()  # [0.5, 1.0]",
  .samples = any_samples,
};

td_tensor *td_sigmoid(td_scope *s, td_tensor *x) { return td_scope_apply(s, &sigmoid_op, NULL, 1, x); }

TD_MAP1(TD_EACH_FLOAT, log_sigmoid, FLOATING, T, -SOFTPLUS(-x))
TD_KERNEL(log_sigmoid)

static int log_sigmoid_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_sigmoid(s, td_negative(s, rule->in[0])));
  return TD_OK;
}

static const td_op log_sigmoid_op = {
  .name = "log_sigmoid",
  .alias = TD_ALIAS("logsigmoid"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = log_sigmoid_kernel,
  .expression = log_sigmoid_text,
  .vjp = log_sigmoid_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The logarithm of the sigmoid, -log(1 + exp(-x)).\n"
         "Gradient: cotangent * sigmoid(-x).",
  .example = "log_sigmoid(tensor([inf, -1000.])).tolist()  # [-0.0, -1000.0]",
  .samples = any_samples,
};

TD_MAP1(TD_EACH_FLOAT, softplus, FLOATING, T, SOFTPLUS(x))
TD_KERNEL(softplus)

static int softplus_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_sigmoid(s, rule->in[0]));
  return TD_OK;
}

static const td_op softplus_op = {
  .name = "softplus",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = softplus_kernel,
  .expression = softplus_text,
  .vjp = softplus_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The smooth relu log(1 + exp(x)).\n"
         "Gradient: cotangent * sigmoid(x).",
  .example = "softplus(tensor([-inf, 1000.])).tolist()  # [0.0, 1000.0]",
  .samples = any_samples,
};

// ---- silu and gelu: each with its slope as an op of its own, so that a gradient is one pass and a product ----

TD_MAP1(TD_EACH_FLOAT, silu_slope, FLOATING, T, SILU_SLOPE(x))
TD_KERNEL(silu_slope)

static int silu_slope_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *y = td_sigmoid(s, x), *steep = sigmoid_gradient(s, y, y); // y**2 (1 - y)
  td_tensor *slope = td_subtract(s, y, td_square(s, y));
  td_tensor *bend = td_multiply(s, x, td_subtract(s, slope, td_add(s, steep, steep)));
  rule->din[0] = td_chain(s, rule->cotangent[0], td_add(s, td_add(s, slope, slope), bend));
  return TD_OK;
}

static const td_op silu_slope_op = {
  .name = "silu_slope",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = silu_slope_kernel,
  .expression = silu_slope_text,
  .vjp = silu_slope_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The derivative of silu, y + x * y * (1 - y) with y = sigmoid(x).\n"
         "Gradient: cotangent * y * (1 - y) * (2 + x * (1 - 2 * y)).",
  .samples = any_samples,
};

TD_MAP1(TD_EACH_FLOAT, silu, FLOATING, T, SILU(x))
TD_KERNEL(silu)

static int silu_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_scope_apply(s, &silu_slope_op, NULL, 1, rule->in[0]));
  return TD_OK;
}

static const td_op silu_op = {
  .name = "silu",
  .alias = TD_ALIAS("swish"),
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = silu_kernel,
  .expression = silu_text,
  .vjp = silu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x * sigmoid(x), also called swish.\n"
         "Gradient: cotangent * (y + x * y * (1 - y)) with y = sigmoid(x).",
  .example = "silu(tensor([0., -inf])).tolist()  # [0.0, -0.0]",
  .source = "Elfwing, Uchibe, Doya: Sigmoid-Weighted Linear Units, 2018",
  .samples = any_samples,
};

static const char gelu_text[] = "p != 0 ? GELU_TANH(x) : GELU(x)";
TD_EACH_FLOAT(TD_LOOP1, gelu, T, GELU(x))
TD_MAP_TABLE(TD_EACH_FLOAT, gelu, 1, FLOATING)
TD_EACH_FLOAT(TD_LOOP1, gelu_tanh, T, GELU_TANH(x))
TD_MAP_TABLE(TD_EACH_FLOAT, gelu_tanh, 1, FLOATING)

static const char gelu_slope_text[] = "p != 0 ? GELU_TANH_SLOPE(x) : GELU_SLOPE(x)";
TD_EACH_FLOAT(TD_LOOP1, gelu_slope, T, GELU_SLOPE(x))
TD_MAP_TABLE(TD_EACH_FLOAT, gelu_slope, 1, FLOATING)
TD_EACH_FLOAT(TD_LOOP1, gelu_tanh_slope, T, GELU_TANH_SLOPE(x))
TD_MAP_TABLE(TD_EACH_FLOAT, gelu_tanh_slope, 1, FLOATING)

static const char *const approximations[] = { "none", "tanh", NULL };
#define APPROXIMATE \
  { .name = "approximate", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(0), .choices = approximations }

static int gelu_slope_kernel(const td_call *call) {
  return td_map_run(call, call->args[0].i ? &gelu_tanh_slope_map : &gelu_slope_map, 0);
}

// (2 - x^2) times the normal density
static td_tensor *gelu_bend(td_scope *s, td_tensor *x) {
  td_tensor *square = td_square(s, x);
  td_tensor *density = times(s, td_exp(s, times(s, square, -0.5)), TD_DENSITY_0);
  return td_multiply(s, density, td_subtract(s, td_scope_number(s, 2, x), square));
}

// 2 y' u' + x (y'' u'^2 + y' u'') with y = sigmoid(u), y' = y - y^2, y'' = y' - 2 y y'
static td_tensor *gelu_tanh_bend(td_scope *s, td_tensor *x) {
  td_tensor *square = td_square(s, x);
  td_tensor *u1 = plus(s, times(s, square, 3 * TD_GELU_3), TD_GELU_1), *u2 = times(s, x, 6 * TD_GELU_3);
  td_tensor *y = td_sigmoid(s, td_multiply(s, x, plus(s, times(s, square, TD_GELU_3), TD_GELU_1)));
  td_tensor *y1 = td_subtract(s, y, td_square(s, y));
  td_tensor *y2 = td_subtract(s, y1, times(s, td_multiply(s, y, y1), 2));
  td_tensor *inner = td_add(s, td_multiply(s, y2, td_square(s, u1)), td_multiply(s, y1, u2));
  return td_add(s, times(s, td_multiply(s, y1, u1), 2), td_multiply(s, x, inner));
}

static int gelu_slope_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *bend = rule->args[0].i ? gelu_tanh_bend(s, x) : gelu_bend(s, x);
  rule->din[0] = td_chain(s, rule->cotangent[0], bend);
  return TD_OK;
}

static const td_op gelu_slope_op = {
  .name = "gelu_slope",
  .params = { TD_X, APPROXIMATE },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = gelu_slope_kernel,
  .expression = gelu_slope_text,
  .vjp = gelu_slope_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The derivative of gelu.\n"
         "Gradient: its second derivative times the cotangent.",
  .samples = any_samples,
};

static int gelu_kernel(const td_call *call) {
  return td_map_run(call, call->args[0].i ? &gelu_tanh_map : &gelu_map, 0);
}

static int gelu_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_scope_apply(s, &gelu_slope_op, rule->args, 1, rule->in[0]));
  return TD_OK;
}

static const td_op gelu_op = {
  .name = "gelu",
  .params = { TD_X, APPROXIMATE },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = gelu_kernel,
  .expression = gelu_text,
  .vjp = gelu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x * P(x), P the probability that a standard normal number is below x.\n"
         "Gradient: cotangent * (P(x) + x * p(x)), p the normal density.\n"
         "approximate=\"tanh\" computes 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) instead.",
  .example = "gelu(tensor([0., inf, -inf])).tolist()  # [0.0, inf, -0.0]",
  .source = "Hendrycks, Gimpel: Gaussian Error Linear Units, 2016",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = -2, .high = 2 },
    { .shapes = "3,4", .args = "approximate=\"tanh\"", .low = -2, .high = 2 },
    { .shapes = "-", .low = -1, .high = 1 },
    { .shapes = "0,3", .low = -2, .high = 2 },
    TD_SAMPLES_END,
  },
};

const td_op *const td_family_activation[] = {
  &relu_op, &leaky_relu_op, &elu_op, &sigmoid_op, &log_sigmoid_op, &softplus_op, &silu_op, &gelu_op, &relu_gradient_op,
  &sigmoid_gradient_op, &silu_slope_op, &gelu_slope_op, NULL,
};
