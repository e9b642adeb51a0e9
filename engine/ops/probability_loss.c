// Losses of probabilities and of the parameters of distributions: binary_cross_entropy, with logits too, kl_div,
// poisson_nll_loss, gaussian_nll_loss.
#include <math.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/math.h"
#include "engine/ops/pointwise.h"

#define PAIR TD_TENSOR_PARAM("input"), TD_TENSOR_PARAM("target")
#define GRADIENT_PARAMS PAIR, TD_TENSOR_PARAM("cotangent")
#define SHAPES_DOC "Shapes that differ are an error, unless broadcast=True.\n"
#define EPS_PARAM(standard) \
  { .name = "eps", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(standard) }
#define FULL_PARAM \
  { .name = "full", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }

static td_tensor *times(td_scope *s, td_tensor *x, double factor) {
  return td_multiply(s, x, td_scope_number(s, factor, x));
}
static td_tensor *plus(td_scope *s, td_tensor *x, double term) { return td_add(s, x, td_scope_number(s, term, x)); }

static td_tensor *fused_gradient(td_rule *rule, const td_op *op) {
  return td_scope_apply(&rule->scope, op, NULL, 3, rule->in[0], rule->in[1], td_pointwise_cotangent(rule));
}

// Of a loss that is linear in its target: the derivative, by two targets.
static td_tensor *target_slope(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *one = td_scope_number(s, 1, rule->in[1]), *zero = td_scope_number(s, 0, rule->in[1]);
  return td_subtract(s, td_pointwise_elements(rule, one, true), td_pointwise_elements(rule, zero, true));
}

static td_tensor *without_weight(td_rule *rule) { // the cotangent of each element's weighted loss
  td_tensor *weight = rule->in[2];
  rule->in[2] = NULL;
  td_tensor *c = td_pointwise_cotangent(rule);
  rule->in[2] = weight;
  return c;
}

static void weight_gradient(td_rule *rule) { // of input 2
  if (rule->in_count > 2 && rule->in[2] && rule->needs[2])
    rule->din[2] = td_chain(&rule->scope, without_weight(rule), td_pointwise_elements(rule, rule->in[1], true));
}

static const td_sample gradient_samples[] = {
    {"2,3; 2,3; -", NULL, 0.1, 0.9, NULL},
    {"3,1; 3; 3,3", NULL, 0.1, 0.9, NULL},
    {"0,3; 0,3; -", NULL, 0.1, 0.9, NULL},
    TD_SAMPLES_END,
};

// ---- binary_cross_entropy ----

#define SPREAD(x) MAXIMUM((x) * (1 - (x)), (T)1e-12)

TD_MAP3(TD_EACH_FLOAT, binary_gradient, FLOATING, T, z == 0 ? 0 : z * ((x - y) / SPREAD(x)))
TD_KERNEL(binary_gradient)

static int binary_gradient_vjp(td_rule *rule) { // 1 / d - (x - t) (1 - 2 x) / d^2 in x, -1 / d in t, with d = x (1 - x)
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *t = rule->in[1], *scale = td_multiply(s, rule->cotangent[0], rule->in[2]);
  td_tensor *d = td_multiply(s, x, plus(s, td_negative(s, x), 1));
  d = td_maximum(s, d, td_scope_number(s, 1e-12, x));
  if (rule->needs[1]) rule->din[1] = td_negative(s, td_chain_quotient(s, scale, d));
  if (rule->needs[2]) rule->din[2] = td_pointwise_slope(rule);
  if (!rule->needs[0]) return TD_OK;
  td_tensor *turn = td_divide(s, td_multiply(s, td_subtract(s, x, t), plus(s, times(s, x, -2), 1)), td_square(s, d));
  rule->din[0] = td_subtract(s, td_chain_quotient(s, scale, d), td_chain(s, scale, turn));
  return TD_OK;
}

static const td_op binary_cross_entropy_gradient = {
    .name = "binary_cross_entropy_gradient",
    .params = {GRADIENT_PARAMS},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_HIDDEN,
    .infer = td_map_floating,
    .kernel = binary_gradient_kernel,
    .expression = binary_gradient_text,
    .vjp = binary_gradient_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "(input - target) / (input (1 - input)) times the cotangent; the divisor is at least 1e-12.\n"
           "Gradient: by the quotient rule.",
    .samples = gradient_samples,
};

TD_LOSS2(binary, -(y *MAXIMUM(LOG(x), -100) + (1 - y) * MAXIMUM(LOG1P(-x), -100)))

static int binary_kernel(const td_call *call) {
  int code = td_pointwise_run(call, &binary_map, 0);
  if (!code) code = td_pointwise_check(call, 0, 0, 1, "probability");
  if (code) td_error_hint(call->context, "logits need binary_cross_entropy_with_logits");
  return code;
}

static int binary_vjp(td_rule *rule) {
  if (rule->needs[0]) rule->din[0] = fused_gradient(rule, &binary_cross_entropy_gradient);
  if (rule->needs[1]) rule->din[1] = td_chain(&rule->scope, td_pointwise_cotangent(rule), target_slope(rule));
  weight_gradient(rule);
  return TD_OK;
}

static const td_op binary_cross_entropy = {
    .name = "binary_cross_entropy",
    .params = {PAIR, TD_WEIGHT_PARAM, TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = binary_kernel,
    .vjp = binary_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "-(t log(p) + (1 - t) log(1 - p)) of probabilities p and targets t, times weight, averaged, summed or as it "
           "is. "
           "Logarithms are at least -100, as in PyTorch.\n" SHAPES_DOC
           "Gradient: (p - t) / (p (1 - p)), with a divisor of at least 1e-12, divided by n for the mean.",
    .example = "round(binary_cross_entropy(tensor([0.5, 1.]), tensor([1., 1.])).item(), 6)  # 0.346574",
    .samples = TD_SAMPLES{{"2,3; 2,3; none", NULL, 0.1, 0.9, NULL},
                          {"2,3; 2,3; none", "reduction=\"none\"", 0.1, 0.9, NULL},
                          {"2,3; 2,3; 3", "reduction=\"sum\"", 0.1, 0.9, NULL},
                          {"2,1; 3; 2,3", "broadcast=True", 0.1, 0.9, NULL},
                          {"3; 3; none", NULL, 0, 1, "float64; int64"},
                          {"0,3; 0,3; none", "reduction=\"sum\"", 0.1, 0.9, NULL},
                          TD_SAMPLES_END},
};

// ---- binary_cross_entropy_with_logits ----

TD_MAP3(TD_EACH_FLOAT, logits_gradient, FLOATING, T, z == 0 ? 0 : z * SIGMOID_LESS(x, y))
TD_KERNEL(logits_gradient)

static int logits_gradient_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *scale = td_multiply(s, rule->cotangent[0], rule->in[2]), *x = rule->in[0];
  if (rule->needs[0])
    rule->din[0] = td_chain(s, td_chain(s, scale, td_sigmoid(s, x)), td_sigmoid(s, td_negative(s, x)));
  if (rule->needs[1]) rule->din[1] = td_negative(s, scale);
  if (rule->needs[2]) rule->din[2] = td_pointwise_slope(rule);
  return TD_OK;
}

static const td_op binary_logits_gradient = {
    .name = "binary_cross_entropy_with_logits_gradient",
    .params = {GRADIENT_PARAMS},
    .kind = TD_KIND_ELEMENTWISE,
    .flags = TD_HIDDEN,
    .infer = td_map_floating,
    .kernel = logits_gradient_kernel,
    .expression = logits_gradient_text,
    .vjp = logits_gradient_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "(sigmoid(input) - target) cotangent, and 0 where that is 0.\nGradient: by sigmoid's.",
    .samples = gradient_samples,
};

// t softplus(-x) + (1 - t) softplus(x), t times z: what multiplies |x| may be 0, and then |x| may be infinite.
#define ABOVE(x) LOG1P(EXP(-ABS(x)))
#define TIMES(a, x) ((a) == 0 ? 0 : (a) * (x))
TD_LOSS2(logits, ABOVE(x) + TIMES(x > 0 ? 1 - y : y, ABS(x)))
TD_LOSS3(positive_logits, (y * z + (1 - y)) * ABOVE(x) + TIMES(x > 0 ? 1 - y : y * z, ABS(x)))

static int logits_kernel(const td_call *call) {
  return td_pointwise_run(call, call->in_count > 3 && call->in[3].data ? &positive_logits_map : &logits_map, 0);
}

// (1 - t) sigmoid(x) - p t sigmoid(-x)
static td_tensor *positive_slope(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0], *t = rule->in[1], *positive = td_multiply(s, t, rule->in[3]);
  td_tensor *negative = td_multiply(s, plus(s, td_negative(s, t), 1), td_sigmoid(s, x));
  return td_subtract(s, negative, td_multiply(s, positive, td_sigmoid(s, td_negative(s, x))));
}

static int logits_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *t = rule->in[1], *weight = rule->in_count > 3 ? rule->in[3] : NULL;
  if (rule->needs[0])
    rule->din[0] = weight ? td_chain(s, td_pointwise_cotangent(rule), positive_slope(rule))
                          : fused_gradient(rule, &binary_logits_gradient);
  if (rule->needs[1]) // softplus(-x) - softplus(x) is -x
    rule->din[1] =
        td_chain(s, td_pointwise_cotangent(rule), weight ? target_slope(rule) : td_negative(s, rule->in[0]));
  weight_gradient(rule);
  if (!weight || !rule->needs[3]) return TD_OK;
  td_tensor *ones = td_pointwise_elements(rule, td_scope_number(s, 1, t), false); // softplus(-x)
  rule->din[3] = td_chain(s, td_pointwise_cotangent(rule), td_multiply(s, t, ones));
  return TD_OK;
}

static const td_op binary_logits = {
    .name = "binary_cross_entropy_with_logits",
    .params = {PAIR,
               TD_WEIGHT_PARAM,
               {.name = "pos_weight", .kind = TD_PARAM_TENSOR_OPTIONAL},
               TD_REDUCTION_PARAM,
               TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = logits_kernel,
    .vjp = logits_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "binary_cross_entropy of sigmoid(input), stable for any logits: t softplus(-x) + (1 - t) softplus(x), "
           "averaged, "
           "summed or as it is.\nweight multiplies each element's loss; pos_weight the part of the positive "
           "targets.\n" SHAPES_DOC "Gradient: (sigmoid(x) - t), divided by n for the mean.",
    .example = "round(binary_cross_entropy_with_logits(tensor([0., 1000.]), tensor([1., 1.])).item(), 6)  # 0.346574",
    .samples = TD_SAMPLES{{"2,3; 2,3; none; none", NULL, 0.1, 0.9, NULL},
                          {"2,3; 2,3; none; none", "reduction=\"none\"", -2, 2, NULL},
                          {"2,3; 2,3; 3; 2,1", "reduction=\"sum\"", 0.1, 0.9, NULL},
                          {"2,3; 2,3; none; 3", NULL, -2, 2, NULL},
                          {"2,1; 3; 2,3; none", "broadcast=True", 0.1, 0.9, NULL},
                          {"3; 3; none; none", NULL, 0, 1, "float64; int64"},
                          {"0,3; 0,3; none; none", "reduction=\"sum\"", 0.1, 0.9, NULL},
                          TD_SAMPLES_END},
};

// ---- kl_div ----

static const char *const divergence_reductions[] = {"mean", "sum", "none", "batchmean", NULL};

TD_LOSS2(divergence, y == 0 ? 0 : y * (LOG(y) - x))
TD_LOSS2(log_divergence, TIMES(EXP(y), y - x))

static int divergence_kernel(const td_call *call) {
  return td_pointwise_run(call, call->args[1].i ? &log_divergence_map : &divergence_map, 0);
}

static int divergence_vjp(td_rule *rule) { // -p in x; log(p) + 1 - x in p, p times that in log(p)
  td_scope *s = &rule->scope;
  bool logarithm = rule->args[1].i;
  td_tensor *c = td_pointwise_cotangents(rule), *x = rule->in[0], *t = rule->in[1], *p = logarithm ? td_exp(s, t) : t;
  if (rule->needs[0]) rule->din[0] = td_negative(s, td_chain(s, c, p));
  if (!rule->needs[1]) return TD_OK;
  td_tensor *zero = td_scope_number(s, 0, t), *positive = td_greater(s, p, zero);
  td_tensor *logs = logarithm ? t : td_log(s, td_where(s, positive, p, td_scope_number(s, 1, p)));
  td_tensor *slope = plus(s, td_subtract(s, logs, x), 1);
  rule->din[1] = td_chain(s, c, logarithm ? td_chain(s, p, slope) : td_where(s, positive, slope, zero));
  return TD_OK;
}

static const td_op kl_div = {
    .name = "kl_div",
    .params = {PAIR,
               {.name = "reduction",
                .kind = TD_PARAM_CHOICE,
                .fallback = TD_INT_DEFAULT(TD_LOSS_MEAN),
                .choices = divergence_reductions},
               {.name = "log_target", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)},
               TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = divergence_kernel,
    .vjp = divergence_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc =
        "Kullback and Leibler's divergence t (log(t) - input), where input holds the logarithms of probabilities and t "
        "probabilities (their logarithms with log_target=True).\n"
        "reduction=\"batchmean\" divides the sum by the size of axis 0, which gives the divergence of one "
        "example.\n" SHAPES_DOC "Gradient: -t for input; log(t) + 1 - input for t, and 0 where t is 0.",
    .example = "kl_div(log(tensor([0.5, 0.5])), tensor([0.5, 0.5]), reduction=\"batchmean\").item()  # 0.0",
    .samples = TD_SAMPLES{{"2,3; 2,3", NULL, 0.1, 0.9, NULL},
                          {"2,3; 2,3", "reduction=\"batchmean\"", 0.1, 0.9, NULL},
                          {"2,3; 2,3", "reduction=\"none\", log_target=True", -2, 2, NULL},
                          {"2,1; 3", "reduction=\"sum\", broadcast=True", 0.1, 0.9, NULL},
                          {"0,3; 0,3", "reduction=\"sum\"", 0.1, 0.9, NULL},
                          TD_SAMPLES_END},
};

// ---- poisson_nll_loss ----

#define STIRLING(y) ((y) > 1 ? (y)*LOG(y) - (y) + LOG((T)(2 * M_PI) * (y)) / 2 : 0)
TD_LOSS2(rate, x - y * LOG(x + p))
TD_LOSS2(full_rate, x - y * LOG(x + p) + STIRLING(y))
TD_LOSS2(log_rate, EXP(x) - y * x)
TD_LOSS2(full_log_rate, EXP(x) - y * x + STIRLING(y))

static int poisson_kernel(const td_call *call) {
  bool full = call->args[1].i;
  const td_map *map =
      call->args[0].i ? (full ? &full_log_rate_map : &log_rate_map) : (full ? &full_rate_map : &rate_map);
  return td_pointwise_run(call, map, call->args[2].f);
}

static int poisson_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  bool logarithm = rule->args[0].i;
  td_tensor *c = td_pointwise_cotangents(rule), *x = rule->in[0], *t = rule->in[1];
  td_tensor *rate = logarithm ? x : plus(s, x, rule->args[2].f);
  if (rule->needs[0])
    rule->din[0] =
        td_chain(s, c, logarithm ? td_subtract(s, td_exp(s, x), t) : plus(s, td_negative(s, td_divide(s, t, rate)), 1));
  if (!rule->needs[1]) return TD_OK;
  td_tensor *slope = td_negative(s, logarithm ? x : td_log(s, rate));
  if (rule->args[1].i) {
    td_tensor *one = td_scope_number(s, 1, t), *large = td_greater(s, t, one), *u = td_where(s, large, t, one);
    td_tensor *more = td_add(s, td_log(s, u), td_divide(s, td_scope_number(s, 0.5, t), u));
    slope = td_add(s, slope, td_where(s, large, more, td_scope_number(s, 0, t)));
  }
  rule->din[1] = td_chain(s, c, slope);
  return TD_OK;
}

static const td_op poisson_nll_loss = {
    .name = "poisson_nll_loss",
    .params = {PAIR,
               {.name = "log_input", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)},
               FULL_PARAM,
               EPS_PARAM(1e-8),
               TD_REDUCTION_PARAM,
               TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = poisson_kernel,
    .vjp = poisson_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "Negative log-likelihood of counts t under a Poisson distribution: exp(x) - t x, or x - t log(x + eps) with "
           "log_input=False. full=True adds Stirling's approximation of log(t!) where t > 1.\n" SHAPES_DOC
           "Gradient: exp(x) - t, or 1 - t / (x + eps).",
    .example = "poisson_nll_loss(tensor([0., 0.]), tensor([1., 2.])).item()  # 1.0",
    .samples = TD_SAMPLES{{"2,3; 2,3", NULL, 0.1, 0.9, NULL},
                          {"2,3; 2,3", "log_input=False, reduction=\"none\"", 0.5, 2, NULL},
                          {"2,3; 2,3", "full=True, reduction=\"sum\"", 1.2, 3, NULL},
                          {"2,1; 3", "log_input=False, full=True, eps=0.01, broadcast=True", 0.2, 0.9, NULL},
                          {"0,3; 0,3", "reduction=\"sum\"", 0.1, 0.9, NULL},
                          TD_SAMPLES_END},
};

// ---- gaussian_nll_loss ----

#define SQUARE(x) ((x) * (x))
TD_LOSS3(gaussian, z < 0 ? (T)NAN : (LOG(MAXIMUM(z, p)) + SQUARE(x - y) / MAXIMUM(z, p)) / 2)
TD_LOSS3(full_gaussian, z < 0 ? (T)NAN : (LOG((T)(2 * M_PI) * MAXIMUM(z, p)) + SQUARE(x - y) / MAXIMUM(z, p)) / 2)

static int gaussian_kernel(const td_call *call) {
  int code = td_pointwise_run(call, call->args[0].i ? &full_gaussian_map : &gaussian_map, call->args[1].f);
  return code ? code : td_pointwise_check(call, 2, 0, INFINITY, "variance");
}

static int
gaussian_vjp(td_rule *rule) { // d / v in input; 1 / (2 v) - d^2 / (2 v^2) in var, as if it had not been raised
  td_scope *s = &rule->scope;
  td_tensor *c = td_pointwise_cotangent(rule), *d = td_subtract(s, rule->in[0], rule->in[1]);
  td_tensor *v = td_maximum(s, rule->in[2], td_scope_number(s, rule->args[1].f, rule->in[2]));
  td_tensor *ratio = td_divide(s, d, v);
  if (rule->needs[0]) rule->din[0] = td_chain(s, c, ratio);
  if (rule->needs[1]) rule->din[1] = td_negative(s, td_chain(s, c, ratio));
  if (!rule->needs[2]) return TD_OK;
  td_tensor *inverse = td_divide(s, td_scope_number(s, 1, v), v);
  rule->din[2] = td_chain(s, c, times(s, td_subtract(s, inverse, td_square(s, ratio)), 0.5));
  return TD_OK;
}

static const td_op gaussian_nll_loss = {
    .name = "gaussian_nll_loss",
    .params = {PAIR, TD_TENSOR_PARAM("var"), FULL_PARAM, EPS_PARAM(1e-6), TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = gaussian_kernel,
    .vjp = gaussian_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc =
        "Negative log-likelihood of target under a normal distribution with mean input and variance var, which is at "
        "least eps: (log(var) + (input - target)^2 / var) / 2; full=True adds log(2 pi) / 2.\n" SHAPES_DOC
        "Gradient: (input - target) / var for input, (1 - (input - target)^2 / var) / (2 var) for var, below eps too.",
    .example = "gaussian_nll_loss(tensor([1.]), tensor([3.]), tensor([1.])).item()  # 2.0",
    .samples = TD_SAMPLES{{"2,3; 2,3; 2,3", NULL, 0.5, 2, NULL},
                          {"2,3; 2,3; 2,1", "full=True, reduction=\"none\"", 0.5, 2, NULL},
                          {"2,1; 3; 3", "reduction=\"sum\", broadcast=True", 0.5, 2, NULL},
                          {"0,3; 0,3; 0,3", "reduction=\"sum\"", 0.5, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_probability_loss[] = {&binary_cross_entropy,
                                                   &binary_cross_entropy_gradient,
                                                   &binary_logits,
                                                   &binary_logits_gradient,
                                                   &kl_div,
                                                   &poisson_nll_loss,
                                                   &gaussian_nll_loss,
                                                   NULL};
