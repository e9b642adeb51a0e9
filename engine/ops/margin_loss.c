// Losses of labels 1 and -1: hinge_loss, soft_margin_loss, hinge_embedding_loss, margin_ranking_loss. A margin that is
// met exactly still has its gradient, as a bound of clip has; NaN has none.
#include "engine/ops/families.h"
#include "engine/ops/math.h"
#include "engine/ops/pointwise.h"

#define PAIR TD_TENSOR_PARAM("input"), TD_TENSOR_PARAM("target")
#define SHAPES_DOC "Shapes that differ are an error, unless broadcast=True.\n"
#define MARGIN_PARAM(standard) \
  { .name = "margin", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(standard) }

static td_tensor *plus(td_scope *s, td_tensor *x, double term) { return td_add(s, x, td_scope_number(s, term, x)); }

static td_tensor *where_not_negative(td_scope *s, td_tensor *x, td_tensor *value) { // 0 elsewhere
  return td_where(s, td_less_equal(s, td_scope_number(s, 0, x), x), value, td_scope_number(s, 0, value));
}

// ---- hinge_loss, soft_margin_loss: of the product target * input ----

TD_LOSS2(hinge, MAXIMUM(1 - x * y, 0))
TD_LOSS2(soft_margin, SOFTPLUS(-x *y))

static int hinge_kernel(const td_call *call) { return td_pointwise_run(call, &hinge_map, 0); }
static int soft_margin_kernel(const td_call *call) { return td_pointwise_run(call, &soft_margin_map, 0); }

static int product_gradients(td_rule *rule, td_tensor *c) { // c is the cotangent of -target * input
  td_scope *s = &rule->scope;
  c = td_negative(s, c);
  if (rule->needs[0]) rule->din[0] = td_chain(s, c, rule->in[1]);
  if (rule->needs[1]) rule->din[1] = td_chain(s, c, rule->in[0]);
  return TD_OK;
}

static td_tensor *negative_product(td_rule *rule) {
  return td_negative(&rule->scope, td_multiply(&rule->scope, rule->in[0], rule->in[1]));
}

static int hinge_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *rest = plus(s, negative_product(rule), 1);
  return product_gradients(rule, where_not_negative(s, rest, td_pointwise_cotangent(rule)));
}

static int soft_margin_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  return product_gradients(rule, td_chain(s, td_pointwise_cotangent(rule), td_sigmoid(s, negative_product(rule))));
}

static const td_sample label_samples[] = {
    {"2,3; 2,3", NULL, -2, -1.1, NULL},
    {"2,3; 2,3", "reduction=\"none\"", 0.1, 0.9, NULL},
    {"3,1; 3", "broadcast=True, reduction=\"sum\"", 0.1, 0.9, NULL},
    {"3; 3", NULL, -0.9, 0.9, "float64; int64"},
    {"0,3; 0,3", "reduction=\"sum\"", -2, 2, NULL},
    TD_SAMPLES_END,
};

static const td_op hinge_loss = {
    .name = "hinge_loss",
    .params = {PAIR, TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = hinge_kernel,
    .vjp = hinge_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "max(0, 1 - target input) for targets 1 and -1, averaged, summed or as it is.\n" SHAPES_DOC
           "Gradient: -target where target input <= 1, divided by n for the mean.",
    .example = "hinge_loss(tensor([0.5, 3.]), tensor([1., -1.])).item()  # 2.25",
    .samples = label_samples,
};

static const td_op soft_margin_loss = {
    .name = "soft_margin_loss",
    .params = {PAIR, TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = soft_margin_kernel,
    .vjp = soft_margin_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc =
        "log(1 + exp(-target input)) for targets 1 and -1, without overflow, averaged, summed or as it is.\n" SHAPES_DOC
        "Gradient: -target sigmoid(-target input), divided by n for the mean.",
    .example = "round(soft_margin_loss(tensor([0., 1000.]), tensor([1., 1.])).item(), 6)  # 0.346574",
    .samples = label_samples,
};

// ---- hinge_embedding_loss ----

TD_LOSS2(embedding, (y == -1 ? 0 : x) + (y == 1 ? 0 : MAXIMUM(p - x, 0)))

static int embedding_kernel(const td_call *call) { return td_pointwise_run(call, &embedding_map, call->args[0].f); }

static int embedding_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = td_pointwise_cotangent(rule), *x = rule->in[0], *t = rule->in[1];
  td_tensor *zero = td_scope_number(s, 0, c), *minus = td_scope_number(s, -1, t), *one = td_scope_number(s, 1, t);
  td_tensor *rest = plus(s, td_negative(s, x), rule->args[0].f);
  if (rule->needs[0])
    rule->din[0] = td_subtract(s, td_where(s, td_equal(s, t, minus), zero, c),
                               td_where(s, td_equal(s, t, one), zero, where_not_negative(s, rest, c)));
  if (rule->needs[1]) rule->din[1] = td_scope_filled(s, 0, &rule->in_meta[1]);
  return TD_OK;
}

static const td_op hinge_embedding_loss = {
    .name = "hinge_embedding_loss",
    .params = {PAIR, MARGIN_PARAM(1), TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = embedding_kernel,
    .vjp = embedding_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "input where target is 1, max(0, margin - input) where it is -1, averaged, summed or as it is.\n" SHAPES_DOC
           "Gradient: 1 where target is 1, -1 where it is -1 and input <= margin, else 0; none for target.",
    .example = "hinge_embedding_loss(tensor([0.5, 0.25]), tensor([1., -1.])).item()  # 0.625",
    .samples = TD_SAMPLES{{"2,3; 2,3", NULL, -1, 1, "float64; int64"},
                          {"2,3; 2,3", "margin=0.1, reduction=\"none\"", 0.3, 1.2, "float64; int64"},
                          {"3,1; 3", "margin=3.0, broadcast=True, reduction=\"sum\"", -1, 1, "float64; int64"},
                          {"2,3; 2,3", NULL, 0.1, 0.8, NULL},
                          TD_SAMPLES_END},
};

// ---- margin_ranking_loss ----

TD_LOSS3(ranking, MAXIMUM(p - z * (x - y), 0))

static int ranking_kernel(const td_call *call) { return td_pointwise_run(call, &ranking_map, call->args[0].f); }

static int ranking_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *d = td_subtract(s, rule->in[0], rule->in[1]), *t = rule->in[2];
  td_tensor *rest = plus(s, td_negative(s, td_multiply(s, t, d)), rule->args[0].f);
  td_tensor *c = where_not_negative(s, rest, td_pointwise_cotangent(rule));
  if (rule->needs[0]) rule->din[0] = td_negative(s, td_chain(s, c, t));
  if (rule->needs[1]) rule->din[1] = td_chain(s, c, t);
  if (rule->needs[2]) rule->din[2] = td_negative(s, td_chain(s, c, d));
  return TD_OK;
}

static const td_op margin_ranking_loss = {
    .name = "margin_ranking_loss",
    .params = {TD_TENSOR_PARAM("input1"), TD_TENSOR_PARAM("input2"), TD_TENSOR_PARAM("target"), MARGIN_PARAM(0),
               TD_REDUCTION_PARAM, TD_BROADCAST_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = td_pointwise_infer,
    .workspace = td_pointwise_workspace,
    .kernel = ranking_kernel,
    .vjp = ranking_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "max(0, margin - target (input1 - input2)): target is 1 where input1 should be the larger one, else -1; "
           "averaged, summed or as it is.\n" SHAPES_DOC
           "Gradient: -target for input1, target for input2 where the loss is not cut at 0.",
    .example = "margin_ranking_loss(tensor([1., 2.]), tensor([3., 0.]), tensor([1., 1.])).item()  # 1.0",
    .samples = TD_SAMPLES{{"2,3; 2,3; 2,3", "margin=9.0", -2, 2, NULL},
                          {"2,3; 2,3; 2,3", "margin=-9.0, reduction=\"none\"", -2, 2, NULL},
                          {"3,1; 3; 3", "margin=9.0, broadcast=True, reduction=\"sum\"", -2, 2, NULL},
                          {"0,3; 0,3; 0,3", "reduction=\"sum\"", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_margin_loss[] = {&hinge_loss, &soft_margin_loss, &hinge_embedding_loss,
                                              &margin_ranking_loss, NULL};
