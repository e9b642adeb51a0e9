// Optimizer steps, fused: every element of a variable and its slots is read and written once. What a rule does is a row
// of optimizer_rules.c; here it is run over variables, and two of the rules stand as ops that leave their inputs alone.
#include "engine/ops/optimizer.h"

#include <math.h>

#include "engine/base/memory.h"
#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

static const char no_rule[] = "an optimizer's update";

enum { STRIP = 4096, LANES = 8 }; // elements whose squares are added up together; sums side by side

// ---- one variable ----

typedef struct update_work {
  const td_update_rule *rule;
  const td_update_factors *factors;
  bool single;
  int64_t size;
  char *variable, *slots[TD_UPDATE_SLOTS];
  const char *gradient;
  double *squares; // of each strip of the variable and of its direction, in turn
  double along; // the direction is taken so far
} update_work;

static void update_range(void *argument, int64_t first, int64_t last) {
  const update_work *w = argument;
  int64_t offset = first * (w->single ? (int64_t)sizeof(float) : (int64_t)sizeof(double));
  void *slots[TD_UPDATE_SLOTS];
  for (int i = 0; i < TD_UPDATE_SLOTS; i++) slots[i] = w->slots[i] ? w->slots[i] + offset : NULL;
  td_update_loop *loop = w->single ? w->rule->single : w->rule->twofold;
  loop(last - first, w->variable + offset, slots, w->gradient + offset, w->factors);
}

#define SQUARES(T)                                                                                 \
  TD_CLONES static double squares_##T(const T *x, int64_t n) {                                     \
    double lanes[LANES] = {0}, sum = 0;                                                            \
    int64_t i = 0;                                                                                 \
    for (; i + LANES <= n; i += LANES)                                                             \
      for (int k = 0; k < LANES; k++) lanes[k] += (double)x[i + k] * x[i + k];                     \
    for (; i < n; i++) sum += (double)x[i] * x[i];                                                 \
    for (int k = 0; k < LANES; k++) sum += lanes[k];                                               \
    return sum;                                                                                    \
  }                                                                                                \
  TD_CLONES static void along_##T(T *restrict x, const T *restrict direction, int64_t n, T rate) { \
    for (int64_t i = 0; i < n; i++) x[i] -= rate * direction[i];                                   \
  }
SQUARES(float)
SQUARES(double)

static double squares_of(const update_work *w, const char *x, int64_t at, int64_t n) {
  return w->single ? squares_float((const float *)x + at, n) : squares_double((const double *)x + at, n);
}

static void direction_range(void *argument, int64_t first, int64_t last) { // counts strips
  const update_work *w = argument;
  for (int64_t strip = first; strip < last; strip++) {
    int64_t at = strip * STRIP, n = w->size - at < STRIP ? w->size - at : STRIP;
    update_range(argument, at, at + n);
    w->squares[2 * strip] = squares_of(w, w->variable, at, n);
    w->squares[2 * strip + 1] = squares_of(w, w->slots[2], at, n);
  }
}

static void along_range(void *argument, int64_t first, int64_t last) {
  const update_work *w = argument;
  int64_t n = last - first;
  if (w->single) along_float((float *)w->variable + first, (const float *)w->slots[2] + first, n, (float)w->along);
  else along_double((double *)w->variable + first, (const double *)w->slots[2] + first, n, w->along);
}

static void update_one(td_pool *pool, update_work *w, double rate) {
  if (!w->rule->trusts) {
    td_ranges_run(pool, w->size, 2, update_range, w);
    return;
  }
  int64_t strips = (w->size + STRIP - 1) / STRIP;
  double variable = 0, direction = 0;
  td_ranges_run(pool, strips, 2 * STRIP, direction_range, w);
  for (int64_t i = 0; i < strips; i++) variable += w->squares[2 * i], direction += w->squares[2 * i + 1];
  w->along = variable > 0 && direction > 0 ? rate * sqrt(variable / direction) : rate;
  td_ranges_run(pool, w->size, 2, along_range, w);
}

// ---- all variables ----

static td_update_factors factors_of(const td_update *update) {
  td_update_factors factors = {.scale = update->scale,
                               .decay = update->decoupled ? 0 : update->weight_decay,
                               .shrink = update->decoupled ? 1 - update->rate * update->weight_decay : 1};
  update->rule->prepare(update, &factors);
  return factors;
}

static int flat_gradient(td_context *context, const td_update_item *item, td_flat *flat) {
  static const td_op named = {.name = "an optimizer's update"}; // for an error's text
  td_call call;
  td_view view;
  call.context = context;
  call.op = &named;
  td_view_of(&view, item->gradient);
  return td_flat_open(&call, &view, item->variable->dtype, flat);
}

// The direction of the largest variable and its strips' squares: the variables use them one after the other.
static int open_scratch(td_context *context, const td_update *update, const td_update_item *items, int64_t count,
                        char **scratch, double **squares) {
  int64_t most = 0;
  for (int64_t i = 0; i < count; i++)
    if (items[i].variable->size > most) most = items[i].variable->size;
  int64_t strips = (most + STRIP - 1) / STRIP, bytes = (most + 2 * strips) * (int64_t)sizeof(double);
  if (!update->rule->trusts) return TD_OK;
  *squares = td_memory_new((size_t)bytes);
  if (!*squares) return td_error_memory(context, "LAMB", bytes);
  *scratch = (char *)(*squares + 2 * strips);
  return TD_OK;
}

static void run_all(td_context *context, const td_update *update, const td_update_item *items, int64_t count,
                    const td_flat *gradients, char *scratch, double *squares) {
  td_update_factors factors = factors_of(update);
  for (int64_t i = 0; i < count; i++) {
    const td_update_item *item = &items[i];
    update_work w = {.rule = update->rule,
                     .factors = &factors,
                     .single = item->variable->dtype == TD_FLOAT32,
                     .size = item->variable->size,
                     .variable = item->variable->data,
                     .gradient = gradients[i].data,
                     .squares = squares};
    for (int k = 0; k < update->rule->slots; k++) w.slots[k] = item->slots[k]->data;
    if (update->rule->trusts) w.slots[2] = scratch;
    update_one(context->pool, &w, update->rate);
  }
}

int td_update_run(td_context *context, const td_update *update, const td_update_item *items, int64_t count) {
  td_flat few[16], *gradients = count <= 16 ? few : td_memory_new((size_t)count * sizeof *gradients);
  if (!gradients) return td_error_memory(context, "an optimizer's update", count * (int64_t)sizeof *gradients);
  char *scratch = NULL;
  double *squares = NULL;
  int code = open_scratch(context, update, items, count, &scratch, &squares);
  int64_t open = 0;
  for (; open < count && !code; open++) code = flat_gradient(context, &items[open], &gradients[open]);
  if (!code) run_all(context, update, items, count, gradients, scratch, squares);
  if (code && open) open--;
  while (open-- > 0) td_flat_close(&gradients[open]);
  td_memory_free(squares);
  if (gradients != few) td_memory_free(gradients);
  return code;
}

// ---- as ops ----

// Variable and slots (all inputs but the last) must agree in dtype and shape; the gradient in shape.
static int update_infer(td_infer *infer) {
  const td_meta *variable = &infer->in[0];
  if (!td_dtype_is_float(variable->dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "variable must be floating, not %s", td_dtype_name(variable->dtype));
  for (int i = 1; i < infer->in_count; i++) {
    const td_meta *in = &infer->in[i];
    if (!td_shape_equal(in->rank, in->shape, variable->rank, variable->shape))
      return td_infer_fail(infer, TD_ERROR_SHAPE, "%s has another shape than variable", infer->op->params[i].name);
    if (i + 1 < infer->in_count && in->dtype != variable->dtype)
      return td_infer_fail(infer, TD_ERROR_DTYPE, "%s is %s, variable is %s", infer->op->params[i].name,
                           td_dtype_name(in->dtype), td_dtype_name(variable->dtype));
  }
  for (int i = 0; i < infer->out_count; i++) infer->out[i] = *variable;
  return TD_OK;
}

static int adam_infer(td_infer *infer) {
  const td_arg *args = infer->args;
  if (args[0].i < 1) return td_infer_fail(infer, TD_ERROR_VALUE, "step counts from 1, not %lld", (long long)args[0].i);
  for (int i = 2; i < 4; i++)
    if (!(args[i].f >= 0 && args[i].f < 1))
      return td_infer_fail(infer, TD_ERROR_VALUE, "beta%d must be in [0, 1), not %g", i - 1, args[i].f);
  return update_infer(infer);
}

static void copy_to_outputs(const td_call *call) { // all inputs but the gradient
  for (int i = 0; i < call->out_count; i++)
    td_elements_copy(call->context->pool, call->out[i].data, call->in[i].data, td_dtype_bytes(call->in[i].dtype),
                     call->in[i].rank, call->in[i].shape, call->in[i].strides);
}

static const char *gradient_of(const td_call *call, td_scratch *scratch) { // the last input
  return td_scratch_view(scratch, call->context->pool, &call->in[call->in_count - 1], call->out[0].dtype);
}

static int64_t update_workspace(const td_call *call) {
  td_scratch scratch = {0};
  gradient_of(call, &scratch);
  return scratch.used;
}

static int update_kernel(const td_call *call, const td_update *update) {
  td_scratch scratch = {.at = call->workspace};
  td_update_factors factors = factors_of(update);
  update_work w = {.rule = update->rule,
                   .factors = &factors,
                   .single = call->out[0].dtype == TD_FLOAT32,
                   .size = call->out[0].size,
                   .variable = call->out[0].data,
                   .gradient = gradient_of(call, &scratch)};
  for (int i = 1; i < call->out_count; i++) w.slots[i - 1] = call->out[i].data;
  copy_to_outputs(call);
  update_one(call->context->pool, &w, update->rate);
  return TD_OK;
}

static int adam_kernel(const td_call *call) {
  const td_arg *args = call->args;
  td_update update = {.rule = td_update_rule_find("adam"),
                      .step = args[0].i,
                      .rate = args[1].f,
                      .numbers = {args[2].f, args[3].f, args[4].f},
                      .scale = 1,
                      .weight_decay = args[5].f,
                      .decoupled = args[6].i};
  return update_kernel(call, &update);
}

static int sgd_kernel(const td_call *call) {
  td_update update = {.rule = td_update_rule_find("momentum"),
                      .step = 1,
                      .rate = call->args[0].f,
                      .numbers = {call->args[1].f, (double)call->args[2].i},
                      .scale = 1};
  return update_kernel(call, &update);
}

#define FLOAT_PARAM(text, standard) \
  { .name = text, .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(standard) }

static const td_op adam_update = {
    .name = "adam_update",
    .params = {TD_TENSOR_PARAM("variable"),
               TD_TENSOR_PARAM("m"),
               TD_TENSOR_PARAM("v"),
               TD_TENSOR_PARAM("gradient"),
               {.name = "step", .kind = TD_PARAM_INT, .required = true},
               FLOAT_PARAM("lr", 0.001),
               FLOAT_PARAM("beta1", 0.9),
               FLOAT_PARAM("beta2", 0.999),
               FLOAT_PARAM("eps", 1e-8),
               FLOAT_PARAM("weight_decay", 0),
               {.name = "decoupled", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)}},
    .kind = TD_KIND_OPAQUE,
    .outputs = 3,
    .infer = adam_infer,
    .workspace = update_workspace,
    .kernel = adam_kernel,
    .no_gradient = no_rule,
    .doc = "One step of Adam: new variable, m and v. m and v are running means of g and g g, corrected for their start "
           "at 0 by "
           "step, which counts from 1.\nvariable - lr m / (sqrt(v) + eps): eps stands outside the root, as in the "
           "paper and in "
           "PyTorch (TensorFlow's stands elsewhere).\nweight_decay shrinks the variable by lr weight_decay (AdamW), or "
           "with "
           "decoupled=False is added to the gradient.",
    .example = "adam_update(tensor([1.]), tensor([0.]), tensor([0.]), tensor([2.]), 1, lr=0.5)[0].tolist()  # [0.5]",
    .source = "Kingma and Ba, ICLR 2015; Loshchilov and Hutter, ICLR 2019",
    .samples = TD_SAMPLES{{"2,3; 2,3; 2,3; 2,3", "step=3", 0.1, 2, NULL},
                          {"5; 5; 5; 5", "step=1, lr=0.1, weight_decay=0.1, decoupled=False", 0.1, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op sgd_update = {
    .name = "sgd_update",
    .params = {TD_TENSOR_PARAM("variable"),
               TD_TENSOR_PARAM("velocity"),
               TD_TENSOR_PARAM("gradient"),
               FLOAT_PARAM("lr", 0.01),
               FLOAT_PARAM("momentum", 0),
               {.name = "nesterov", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_OPAQUE,
    .outputs = 2,
    .infer = update_infer,
    .workspace = update_workspace,
    .kernel = sgd_kernel,
    .no_gradient = no_rule,
    .doc = "One step of gradient descent: new variable and velocity. velocity = momentum velocity - lr gradient; "
           "variable + "
           "velocity, or with nesterov variable + momentum velocity - lr gradient (Keras's form).",
    .example = "sgd_update(tensor([1.]), tensor([0.]), tensor([2.]), lr=0.25)[0].tolist()  # [0.5]",
    .source = "Sutskever et al., ICML 2013",
    .samples = TD_SAMPLES{{"2,3; 2,3; 2,3", NULL, -2, 2, NULL},
                          {"5; 5; 5", "lr=0.1, momentum=0.9, nesterov=True", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_optimizer[] = {&adam_update, &sgd_update, NULL};
