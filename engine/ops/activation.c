// Smooth activation functions of layers; those with corners are in rectifier.c. Integers and bool give float32. All are
// computed so that large arguments of either sign neither overflow nor cancel, infinities included.
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/math.h"

static const td_sample any_samples[] = {
  { .shapes = "3,4", .low = -2, .high = 2 },
  { .shapes = "-", .low = -1, .high = 1 },
  { .shapes = "0,3", .low = -2, .high = 2 },
  TD_SAMPLES_END,
};
static const td_sample corner_samples[] = {
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

// ---- sigmoid and its kin ----

// The cotangent x through the sigmoid's slope at y, in one pass. It is computed from sigmoid's argument: the result has
// lost its digits where it is near 1.
TD_MAP2_NEAR(sigmoid_gradient, TD_SINGLE_SIZE(y), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR),
             x == 0 ? 0 : x * td_single_sigmoid_slope(y), x == 0 ? 0 : x * SIGMOID_SLOPE(y))
TD_KERNEL(sigmoid_gradient)

static td_tensor *sigmoid_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x);

// The slope's own derivative is -tanh(x / 2) times it.
static int sigmoid_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[1];
  if (rule->needs[0]) rule->din[0] = sigmoid_gradient(s, c, x);
  if (!rule->needs[1]) return TD_OK;
  rule->din[1] = td_negative(s, td_chain(s, sigmoid_gradient(s, td_chain(s, c, rule->in[0]), x),
                                         td_tanh(s, times(s, x, 0.5))));
  return TD_OK;
}

static const td_op sigmoid_gradient_op = {
  .name = "sigmoid_gradient",
  .params = { TD_TENSOR_PARAM("cotangent"), TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = sigmoid_gradient_kernel,
  .expression = sigmoid_gradient_text,
  .vjp = sigmoid_gradient_vjp,
  .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
  .doc = "A cotangent times the derivative of sigmoid at x: 0 where the cotangent is exactly 0.\n"
         "Gradient: that of the product; the derivative's own is -tanh(x / 2) times it.",
  .samples = gradient_samples,
};

static td_tensor *sigmoid_gradient(td_scope *s, td_tensor *cotangent, td_tensor *x) {
  return td_scope_apply(s, &sigmoid_gradient_op, NULL, 2, cotangent, x);
}

TD_MAP1_NEAR(sigmoid, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR), td_single_sigmoid(x), SIGMOID(x))
TD_KERNEL(sigmoid)

static int sigmoid_vjp(td_rule *rule) {
  rule->din[0] = sigmoid_gradient(&rule->scope, rule->cotangent[0], rule->in[0]);
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
  .saves = TD_SAVES_IN0,
  .doc = "The logistic function 1 / (1 + exp(-x)).\n"
         "Gradient: cotangent * y * (1 - y), y the result, from x: exact also where y is 1.",
  .example = "sigmoid(tensor([0., inf])).tolist()  # [0.5, 1.0]",
  .samples = any_samples,
};

td_tensor *td_sigmoid(td_scope *s, td_tensor *x) { return td_scope_apply(s, &sigmoid_op, NULL, 1, x); }

TD_MAP1_NEAR(log_sigmoid, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR), -td_single_softplus(-x),
             -SOFTPLUS(-x))
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

TD_MAP1(TD_EACH_FLOAT, softplus, FLOATING, T, x * p > q ? x : SOFTPLUS(x * p) / p)

static int softplus_kernel(const td_call *call) {
  const td_arg *threshold = &call->args[1];
  const double arguments[TD_MAP_ARGUMENTS] = {call->args[0].f, threshold->given ? threshold->f : INFINITY};
  return td_map_run_with(call, &softplus_map, arguments);
}

static int softplus_infer(td_infer *infer) {
  if (infer->args[0].f > 0) return td_map_floating(infer);
  return td_infer_fail(infer, TD_ERROR_VALUE, "beta must be above 0, not %g", infer->args[0].f);
}

static int softplus_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0];
  td_tensor *steep = rule->args[0].f == 1 ? x : times(s, x, rule->args[0].f);
  rule->din[0] = td_chain(s, c, td_sigmoid(s, steep));
  if (!rule->args[1].given) return TD_OK;
  td_tensor *line = td_greater(s, steep, td_scope_number(s, rule->args[1].f, x));
  rule->din[0] = td_where(s, line, c, rule->din[0]);
  return TD_OK;
}

static const td_op softplus_op = {
  .name = "softplus",
  .params = { TD_X,
              { .name = "beta", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1) },
              { .name = "threshold", .kind = TD_PARAM_FLOAT } },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = softplus_infer,
  .kernel = softplus_kernel,
  .expression = softplus_text,
  .vjp = softplus_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The smooth relu log(1 + exp(beta * x)) / beta; where beta * x is above threshold, x itself.\n"
         "Gradient: cotangent * sigmoid(beta * x), above the threshold the cotangent.\n"
         "No threshold is needed against overflow: without one the result is exact everywhere.",
  .example = "softplus(tensor([-inf, 1000.])).tolist()  # [0.0, 1000.0]",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = -2, .high = 2 },
    { .shapes = "-", .low = -1, .high = 1 },
    { .shapes = "0,3", .low = -2, .high = 2 },
    { .shapes = "4", .args = "beta=2.", .low = -2, .high = 2 },
    { .shapes = "4", .args = "beta=0.5, threshold=1.", .low = 2.5, .high = 4 },
    TD_SAMPLES_END,
  },
};

static td_tensor *softplus(td_scope *s, td_tensor *x) { return td_scope_apply(s, &softplus_op, NULL, 1, x); }

// ---- tanh's kin ----

TD_MAP1(TD_EACH_FLOAT, softsign, FLOATING, T, ABS(x) == (T)INFINITY ? SIGN(x) : x / (1 + ABS(x)))
TD_KERNEL(softsign)

static int softsign_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *below = plus(s, td_abs(s, rule->in[0]), 1);
  rule->din[0] = td_chain_quotient(s, td_chain_quotient(s, rule->cotangent[0], below), below);
  return TD_OK;
}

static const td_op softsign_op = {
  .name = "softsign",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = softsign_kernel,
  .expression = softsign_text,
  .vjp = softsign_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x / (1 + abs(x)).\n"
         "Gradient: cotangent / (1 + abs(x))**2.",
  .example = "softsign(tensor([-1., inf])).tolist()  # [-0.5, 1.0]",
  .samples = corner_samples,
};

TD_MAP1(TD_EACH_FLOAT, tanhshrink, FLOATING, T, TANHSHRINK(x))
TD_KERNEL(tanhshrink)

static int tanhshrink_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_square(s, td_tanh(s, rule->in[0])));
  return TD_OK;
}

static const td_op tanhshrink_op = {
  .name = "tanhshrink",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = tanhshrink_kernel,
  .expression = tanhshrink_text,
  .vjp = tanhshrink_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x - tanh(x).\n"
         "Gradient: cotangent * tanh(x)**2.",
  .example = "tanhshrink(tensor([0., inf])).tolist()  # [0.0, inf]",
  .samples = any_samples,
};

// ---- silu, mish and gelu: each with its slope as an op of its own, so that a gradient is one pass and a product ----

TD_MAP1_NEAR(silu_slope, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR), td_single_silu_slope(x), SILU_SLOPE(x))
TD_KERNEL(silu_slope)

// s' (2 - x tanh(x / 2)) with s' the sigmoid's slope
static int silu_slope_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *bend = td_multiply(s, x, td_tanh(s, times(s, x, 0.5)));
  bend = td_subtract(s, td_scope_number(s, 2, x), bend);
  rule->din[0] = td_chain(s, sigmoid_gradient(s, rule->cotangent[0], x), bend);
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
         "Gradient: cotangent * y * (1 - y) * (2 - x * tanh(x / 2)).",
  .samples = any_samples,
};

TD_MAP1_NEAR(silu, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_EXP_NEAR), td_single_silu(x), SILU(x))
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

TD_MAP1(TD_EACH_FLOAT, mish_slope, FLOATING, T, MISH_SLOPE(x))
TD_KERNEL(mish_slope)

// With t = tanh(v), v = softplus(x), y = sigmoid(x): t' = tanh'(v) y, t'' = t' (1 - y - 2 t y); the slope's is
// 2 t' + x t''. tanh'(v) is 4 sigmoid'(2 v).
static int mish_slope_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *y = td_sigmoid(s, x), *v = softplus(s, x), *t = td_tanh(s, v);
  td_tensor *steep = times(s, sigmoid_gradient(s, td_chain(s, rule->cotangent[0], y), times(s, v, 2)), 4);
  td_tensor *bend = td_subtract(s, td_sigmoid(s, td_negative(s, x)), times(s, td_multiply(s, t, y), 2));
  rule->din[0] = td_chain(s, steep, plus(s, td_multiply(s, x, bend), 2));
  return TD_OK;
}

static const td_op mish_slope_op = {
  .name = "mish_slope",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .flags = TD_HIDDEN,
  .infer = td_map_floating,
  .kernel = mish_slope_kernel,
  .expression = mish_slope_text,
  .vjp = mish_slope_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The derivative of mish.\n"
         "Gradient: its second derivative times the cotangent.",
  .samples = any_samples,
};

TD_MAP1(TD_EACH_FLOAT, mish, FLOATING, T, MISH(x))
TD_KERNEL(mish)

static int mish_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_chain(s, rule->cotangent[0], td_scope_apply(s, &mish_slope_op, NULL, 1, rule->in[0]));
  return TD_OK;
}

static const td_op mish_op = {
  .name = "mish",
  .params = { TD_X },
  .kind = TD_KIND_ELEMENTWISE,
  .infer = td_map_floating,
  .kernel = mish_kernel,
  .expression = mish_text,
  .vjp = mish_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "x * tanh(softplus(x)).\n"
         "Gradient: cotangent * (t + x * (1 - t**2) * sigmoid(x)) with t = tanh(softplus(x)).",
  .example = "mish(tensor([0., inf, -inf])).tolist()  # [0.0, inf, -0.0]",
  .source = "Misra: Mish, a Self Regularized Non-Monotonic Activation Function, 2019",
  .samples = any_samples,
};

static const char gelu_text[] = "p != 0 ? GELU_TANH(x) : GELU(x)";
TD_LOOP1_NEAR(FLOAT32, float, gelu, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_BELL_NEAR), td_single_gelu(x), GELU(x))
TD_LOOP1(FLOAT64, double, gelu, T, GELU(x))
TD_MAP_TABLE(TD_EACH_FLOAT, gelu, 1, FLOATING)
TD_LOOP1_NEAR(FLOAT32, float, gelu_tanh, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_GELU_NEAR),
              td_single_gelu_tanh(x), GELU_TANH(x))
TD_LOOP1(FLOAT64, double, gelu_tanh, T, GELU_TANH(x))
TD_MAP_TABLE(TD_EACH_FLOAT, gelu_tanh, 1, FLOATING)

static const char gelu_slope_text[] = "p != 0 ? GELU_TANH_SLOPE(x) : GELU_SLOPE(x)";
TD_LOOP1_NEAR(FLOAT32, float, gelu_slope, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_BELL_NEAR),
              td_single_gelu_slope(x), GELU_SLOPE(x))
TD_LOOP1(FLOAT64, double, gelu_slope, T, GELU_SLOPE(x))
TD_MAP_TABLE(TD_EACH_FLOAT, gelu_slope, 1, FLOATING)
TD_LOOP1_NEAR(FLOAT32, float, gelu_tanh_slope, TD_SINGLE_SIZE(x), TD_SINGLE_BITS(TD_SINGLE_GELU_NEAR),
              td_single_gelu_tanh_slope(x), GELU_TANH_SLOPE(x))
TD_LOOP1(FLOAT64, double, gelu_tanh_slope, T, GELU_TANH_SLOPE(x))
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

// With u = 2 sqrt(2 / pi) (x + 0.044715 x^3) and y' the sigmoid's slope there: y' (2 u' + x (u'' - tanh(u / 2) u'^2))
static td_tensor *gelu_tanh_bent(td_scope *s, td_tensor *cotangent, td_tensor *x) {
  td_tensor *square = td_square(s, x);
  td_tensor *u = td_multiply(s, x, plus(s, times(s, square, TD_GELU_3), TD_GELU_1));
  td_tensor *u1 = plus(s, times(s, square, 3 * TD_GELU_3), TD_GELU_1), *u2 = times(s, x, 6 * TD_GELU_3);
  td_tensor *inner = td_subtract(s, u2, td_multiply(s, td_tanh(s, times(s, u, 0.5)), td_square(s, u1)));
  return td_chain(s, sigmoid_gradient(s, cotangent, u), td_add(s, times(s, u1, 2), td_multiply(s, x, inner)));
}

static int gelu_slope_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *c = rule->cotangent[0];
  rule->din[0] = rule->args[0].i ? gelu_tanh_bent(s, c, x) : td_chain(s, c, gelu_bend(s, x));
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

// ---- glu ----

static int glu_infer(td_infer *infer) {
  td_meta *out = &infer->out[0];
  int axis = 0, code = td_map_floating(infer);
  if (!code) code = td_infer_axis(infer, infer->args[0].i, infer->in[0].rank, &axis);
  if (code) return code;
  if (out->shape[axis] % 2)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "axis %d has the odd size %lld and can't be halved", axis,
                         (long long)out->shape[axis]);
  out->shape[axis] /= 2;
  return TD_OK;
}

TD_EACH_FLOAT(TD_LOOP2, glu, T, x * SIGMOID(y))
TD_MAP_TABLE(TD_EACH_FLOAT, glu, 2, FLOATING)

static int glu_kernel(const td_call *call) {
  td_call halves = *call;
  int rank = call->in[0].rank;
  int64_t axis = call->args[0].i < 0 ? call->args[0].i + rank : call->args[0].i, half = call->out[0].shape[axis];
  halves.in[1] = halves.in[0];
  halves.in[1].data += half * call->in[0].strides[axis] * td_dtype_bytes(call->in[0].dtype);
  for (int i = 0; i < 2; i++) {
    halves.in[i].shape[axis] = half;
    halves.in[i].size = call->out[0].size;
  }
  halves.in_count = 2;
  return td_map_run(&halves, &glu_map, 0);
}

static int glu_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *c = rule->cotangent[0], *parts[2];
  int64_t start[TD_RANK_MAX] = {0}, step[TD_RANK_MAX], axis = rule->args[0].i;
  for (int d = 0; d < x->rank; d++) step[d] = 1;
  if (axis < 0) axis += x->rank;
  for (int i = 0; i < 2; i++) {
    start[axis] = i * rule->out_meta[0].shape[axis];
    parts[i] = td_slice_view(s, x, start, step, rule->out_meta[0].shape);
  }
  td_tensor *gate = td_sigmoid(s, parts[1]), *bent = sigmoid_gradient(s, td_chain(s, c, parts[0]), parts[1]);
  rule->din[0] = td_concat(s, td_chain(s, c, gate), bent, axis);
  return TD_OK;
}

static const td_op glu_op = {
  .name = "glu",
  .params = { TD_X, { .name = "axis", .kind = TD_PARAM_AXIS, .fallback = TD_INT_DEFAULT(-1) } },
  .kind = TD_KIND_OPAQUE,
  .method = true,
  .infer = glu_infer,
  .kernel = glu_kernel,
  .batch = td_batch_axes,
  .vjp = glu_vjp,
  .saves = TD_SAVES_IN0,
  .doc = "The gated linear unit a * sigmoid(b), a and b the halves of x along axis, whose size is even.\n"
         "Gradient: cotangent * sigmoid(b) for a, cotangent * a * y * (1 - y) with y = sigmoid(b) for b.",
  .example = "glu(tensor([2., 0.])).tolist()  # [1.0]",
  .source = "Dauphin, Fan, Auli, Grangier: Language Modeling with Gated Convolutional Networks, 2017",
  .samples = TD_SAMPLES{
    { .shapes = "3,4", .low = -2, .high = 2 },
    { .shapes = "4,3", .args = "axis=0", .low = -2, .high = 2 },
    { .shapes = "2,4,3", .args = "axis=-2", .low = -2, .high = 2 },
    { .shapes = "0,4", .low = -2, .high = 2 },
    { .shapes = "3,0", .low = -2, .high = 2 },
    TD_SAMPLES_END,
  },
};

const td_op *const td_family_activation[] = {
  &sigmoid_op, &log_sigmoid_op, &softplus_op, &softsign_op, &tanhshrink_op, &silu_op, &mish_op, &gelu_op, &glu_op,
  &sigmoid_gradient_op, &silu_slope_op, &mish_slope_op, &gelu_slope_op, NULL,
};
