// Losses of a difference: mse_loss, l1_loss, huber_loss, smooth_l1_loss. Beside each stands its gradient in input as
// one fused op, (input, target, cotangent) to cotangent times slope, whose negative is the gradient in target.
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/math.h"
#include "engine/ops/pointwise.h"

#define PAIR TD_TENSOR_PARAM("input"), TD_TENSOR_PARAM("target")
#define GRADIENT_PARAMS PAIR, TD_TENSOR_PARAM("cotangent")
#define SHAPES_DOC \
  "Shapes that differ are an error, because (n, 1) and (n,) would compare all pairs; broadcast=True asks for that.\n"

static const td_sample plain_samples[] = {
    {"2,3; 2,3", NULL, -2, 2, NULL},
    {"2,3; 2,3", "reduction=\"none\"", -2, 2, NULL},
    {"3,1; 3", "broadcast=True, reduction=\"sum\"", -2, 2, NULL},
    {"3,1; 3", "broadcast=True", -2, 2, NULL},
    {"-; -", NULL, -2, 2, NULL},
    {"0,3; 0,3", "reduction=\"sum\"", -2, 2, NULL},
    {"3; 3", "reduction=\"none\"", 0, 3, "float64; int64"},
    TD_SAMPLES_END,
};
static const td_sample gradient_samples[] = {
    {"2,3; 2,3; -", NULL, -2, 2, NULL},
    {"3,1; 3; 3,3", NULL, -2, 2, NULL},
    {"0,3; 0,3; -", NULL, -2, 2, NULL},
    TD_SAMPLES_END,
};

// Both gradients from that in input.
static int difference_gradients(td_rule *rule, td_tensor *d) {
  if (rule->needs[0]) rule->din[0] = d;
  if (rule->needs[1]) rule->din[1] = td_negative(&rule->scope, d);
  return TD_OK;
}

static td_tensor *gradient(td_rule *rule, const td_op *op, double parameter) {
  const td_arg args[] = {TD_FLOAT_ARG(parameter)};
  return td_scope_apply(&rule->scope, op, args, 3, rule->in[0], rule->in[1], td_pointwise_cotangent(rule));
}

// Of a gradient c f'(input - target): its gradients, from f''; NULL: that is 0 everywhere.
static int gradient_gradients(td_rule *rule, td_tensor *bend) {
  td_scope *s = &rule->scope;
  if (rule->needs[2]) rule->din[2] = td_pointwise_slope(rule);
  if (!bend) return TD_OK;
  return difference_gradients(rule, td_chain(s, td_multiply(s, rule->cotangent[0], rule->in[2]), bend));
}

// 1 / divisor where |input - target| < bound, else 0.
static td_tensor *inside(td_rule *rule, double bound, double divisor) {
  td_scope *s = &rule->scope;
  td_tensor *d = td_subtract(s, rule->in[0], rule->in[1]), *zero = td_scope_number(s, 0, d);
  td_tensor *near = td_less(s, td_square(s, d), td_scope_number(s, bound * bound, d));
  return td_where(s, near, td_scope_number(s, 1 / divisor, d), zero);
}

// ---- mse_loss ----

TD_MAP3(TD_EACH_FLOAT, mse_gradient, FLOATING, T, z == 0 ? 0 : z * (2 * (x - y)))
TD_KERNEL(mse_gradient)

static int mse_gradient_vjp(td_rule *rule) {
  return gradient_gradients(rule, td_scope_number(&rule->scope, 2, rule->in[2]));
}

static const td_op mse_loss_gradient = {
    .name = "mse_loss_gradient",
    .params = {GRADIENT_PARAMS},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_HIDDEN,
    .infer = td_map_floating,
    .kernel = mse_gradient_kernel,
    .expression = mse_gradient_text,
    .vjp = mse_gradient_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "2 (input - target) cotangent, and 0 where that is 0.\nGradient: 2 cotangent for input, -2 for target.",
    .samples = gradient_samples,
};

TD_LOSS2(mse, (x - y) * (x - y))

static int mse_kernel(const td_call *call) { return td_pointwise_run(call, &mse_map, 0); }
static int mse_vjp(td_rule *rule) { return difference_gradients(rule, gradient(rule, &mse_loss_gradient, 0)); }

static const td_op mse_loss = {
    .name = "mse_loss",
    .params = {PAIR, TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = mse_kernel,
    .vjp = mse_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "Squared differences of input and target, averaged, summed or as they are.\n" SHAPES_DOC
           "Gradient: 2 (input - target) / n for the mean.",
    .example = "mse_loss(tensor([1., 2.]), tensor([1., 4.])).item()  # 2.0",
    .samples = plain_samples,
};

// ---- l1_loss ----

TD_MAP3(TD_EACH_FLOAT, l1_gradient, FLOATING, T, x > y ? z : x < y ? -z : 0)
TD_KERNEL(l1_gradient)

static int l1_gradient_vjp(td_rule *rule) { return gradient_gradients(rule, NULL); }

static const td_op l1_loss_gradient = {
    .name = "l1_loss_gradient",
    .params = {GRADIENT_PARAMS},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_HIDDEN,
    .infer = td_map_floating,
    .kernel = l1_gradient_kernel,
    .expression = l1_gradient_text,
    .vjp = l1_gradient_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "sign(input - target) cotangent, and 0 where they are equal or one is NaN.\n"
           "Gradient: 0 for input and target.",
    .samples = gradient_samples,
};

TD_LOSS2(l1, ABS(x - y))

static int l1_kernel(const td_call *call) { return td_pointwise_run(call, &l1_map, 0); }
static int l1_vjp(td_rule *rule) { return difference_gradients(rule, gradient(rule, &l1_loss_gradient, 0)); }

static const td_op l1_loss = {
    .name = "l1_loss",
    .params = {PAIR, TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = l1_kernel,
    .vjp = l1_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "Absolute differences of input and target, averaged, summed or as they are.\n" SHAPES_DOC
           "Gradient: sign(input - target) / n for the mean; 0 where they are equal and at NaN, as abs has.",
    .example = "l1_loss(tensor([1., 2.]), tensor([1., 4.])).item()  # 1.0",
    .samples = plain_samples,
};

// ---- huber_loss, smooth_l1_loss ----

#define DELTA_PARAM \
  { .name = "delta", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1) }
#define BETA_PARAM \
  { .name = "beta", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1) }

TD_MAP3(TD_EACH_FLOAT, huber_gradient, FLOATING, T, z == 0 ? 0 : z * (x - y > p ? p : x - y < -p ? -p : x - y))

static int huber_gradient_kernel(const td_call *call) { return td_map_run(call, &huber_gradient_map, call->args[0].f); }

static int huber_gradient_vjp(td_rule *rule) { return gradient_gradients(rule, inside(rule, rule->args[0].f, 1)); }

static const td_op huber_loss_gradient = {
    .name = "huber_loss_gradient",
    .params = {GRADIENT_PARAMS, DELTA_PARAM},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_HIDDEN,
    .infer = td_map_floating,
    .kernel = huber_gradient_kernel,
    .expression = huber_gradient_text,
    .vjp = huber_gradient_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "input - target, clipped to [-delta, delta], times the cotangent.\n"
           "Gradient: the cotangent where |input - target| < delta, else 0.",
    .samples = gradient_samples,
};

TD_LOSS2(huber, ABS(x - y) > p ? p * (ABS(x - y) - p / 2) : (x - y) * (x - y) / 2)

static int huber_infer(td_infer *infer) {
  double delta = infer->args[1].f;
  if (!(delta > 0)) return td_infer_fail(infer, TD_ERROR_VALUE, "delta must be above 0, not %g", delta);
  return td_pointwise_infer(infer);
}

static int huber_kernel(const td_call *call) { return td_pointwise_run(call, &huber_map, call->args[1].f); }

static int huber_vjp(td_rule *rule) {
  return difference_gradients(rule, gradient(rule, &huber_loss_gradient, rule->args[1].f));
}

static const td_op huber_loss = {
    .name = "huber_loss",
    .params = {PAIR, TD_REDUCTION_PARAM, DELTA_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = huber_infer,
    .workspace = td_pointwise_workspace,
    .kernel = huber_kernel,
    .vjp = huber_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc =
        "Half the squared difference d up to |d| = delta, delta (|d| - delta / 2) beyond, averaged, summed or as they "
        "are.\n" SHAPES_DOC "Gradient: d clipped to [-delta, delta], divided by n for the mean.",
    .example = "huber_loss(tensor([0., 3.]), tensor([1., 0.])).item()  # 1.5",
    .source = "Huber, Annals of Mathematical Statistics 1964",
    .samples = TD_SAMPLES{{"2,3; 2,3", NULL, -2, 2, NULL},
                          {"2,3; 2,3", "delta=0.5, reduction=\"none\"", -2, 2, NULL},
                          {"3,1; 3", "delta=2.0, broadcast=True, reduction=\"sum\"", -2, 2, NULL},
                          {"0,3; 0,3", "reduction=\"sum\"", -2, 2, NULL},
                          TD_SAMPLES_END},
};

TD_MAP3(TD_EACH_FLOAT, smooth_l1_gradient, FLOATING, T, z == 0 ? 0 : z * (ABS(x - y) < p ? (x - y) / p : SIGN(x - y)))

static int smooth_l1_gradient_kernel(const td_call *call) {
  return td_map_run(call, &smooth_l1_gradient_map, call->args[0].f);
}

static int smooth_l1_gradient_vjp(td_rule *rule) {
  return gradient_gradients(rule, inside(rule, rule->args[0].f, rule->args[0].f));
}

static const td_op smooth_l1_loss_gradient = {
    .name = "smooth_l1_loss_gradient",
    .params = {GRADIENT_PARAMS, BETA_PARAM},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_HIDDEN,
    .infer = td_map_floating,
    .kernel = smooth_l1_gradient_kernel,
    .expression = smooth_l1_gradient_text,
    .vjp = smooth_l1_gradient_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "(input - target) / beta, clipped to [-1, 1], times the cotangent.\n"
           "Gradient: the cotangent / beta where |input - target| < beta, else 0.",
    .samples = gradient_samples,
};

TD_LOSS2(smooth_l1, ABS(x - y) < p ? (x - y) * (x - y) / (2 * p) : ABS(x - y) - p / 2)

static int smooth_l1_infer(td_infer *infer) {
  double beta = infer->args[1].f;
  if (!(beta >= 0)) return td_infer_fail(infer, TD_ERROR_VALUE, "beta must not be negative, it is %g", beta);
  return td_pointwise_infer(infer);
}

static int smooth_l1_kernel(const td_call *call) { return td_pointwise_run(call, &smooth_l1_map, call->args[1].f); }

static int smooth_l1_vjp(td_rule *rule) {
  double beta = rule->args[1].f;
  return difference_gradients(rule, gradient(rule, beta > 0 ? &smooth_l1_loss_gradient : &l1_loss_gradient, beta));
}

static const td_op smooth_l1_loss = {
    .name = "smooth_l1_loss",
    .params = {PAIR, TD_REDUCTION_PARAM, BETA_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = smooth_l1_infer,
    .workspace = td_pointwise_workspace,
    .kernel = smooth_l1_kernel,
    .vjp = smooth_l1_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "d^2 / (2 beta) of a difference d up to |d| = beta, |d| - beta / 2 beyond, averaged, summed or as they are. "
           "beta=0 is l1_loss.\n" SHAPES_DOC "Gradient: d / beta clipped to [-1, 1], divided by n for the mean.",
    .example = "smooth_l1_loss(tensor([0., 3.]), tensor([1., 0.])).item()  # 1.5",
    .source = "Girshick, Fast R-CNN, ICCV 2015",
    .samples = TD_SAMPLES{{"2,3; 2,3", NULL, -2, 2, NULL},
                          {"2,3; 2,3", "beta=0.5, reduction=\"none\"", -2, 2, NULL},
                          {"3,1; 3", "beta=0.0, broadcast=True, reduction=\"sum\"", -2, 2, NULL},
                          {"0,3; 0,3", "reduction=\"sum\"", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_regression_loss[] = {
    &mse_loss,       &mse_loss_gradient,       &l1_loss, &l1_loss_gradient, &huber_loss, &huber_loss_gradient,
    &smooth_l1_loss, &smooth_l1_loss_gradient, NULL};
