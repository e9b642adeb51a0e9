// Optimizer steps, fused: every element of a variable and its slots is read and written once.
#include "engine/ops/optimizer.h"

#include <math.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"

static const char no_rule[] = "an optimizer's update";

// ---- Adam ----

typedef struct adam_work {
  bool single, decoupled;
  char *variable, *m, *v;
  const char *gradient;
  double beta1, beta2, eps, decay, rate, root; // rate and root hold the corrections of m and v for their start at 0
  double shrink; // of the variable, by decoupled decay
} adam_work;

#define ADAM(T, name, ROOT)                                                                                         \
  TD_CLONES static void name##_adam(T *restrict variable, T *restrict m, T *restrict v, const T *restrict gradient, \
                                    int64_t n, const adam_work *w) {                                                \
    const T beta1 = (T)w->beta1, beta2 = (T)w->beta2, rest1 = (T)(1 - w->beta1), rest2 = (T)(1 - w->beta2);         \
    const T eps = (T)w->eps, decay = (T)w->decay, rate = (T)w->rate, root = (T)w->root, shrink = (T)w->shrink;      \
    for (int64_t i = 0; i < n; i++) {                                                                               \
      T g = gradient[i] + decay * variable[i];                                                                      \
      m[i] = beta1 * m[i] + rest1 * g;                                                                              \
      v[i] = beta2 * v[i] + rest2 * g * g;                                                                          \
      variable[i] = shrink * variable[i] - rate * m[i] / (ROOT(v[i]) * root + eps);                                 \
    }                                                                                                               \
  }
ADAM(float, single, sqrtf)
ADAM(double, twofold, sqrt)

static void adam_range(void *argument, int64_t first, int64_t last) {
  const adam_work *w = argument;
  if (w->single)
    single_adam((float *)w->variable + first, (float *)w->m + first, (float *)w->v + first,
                (const float *)w->gradient + first, last - first, w);
  else
    twofold_adam((double *)w->variable + first, (double *)w->m + first, (double *)w->v + first,
                 (const double *)w->gradient + first, last - first, w);
}

static void adam_run(td_pool *pool, uint8_t dtype, int64_t size, char *variable, char *m, char *v, const char *gradient,
                     const td_adam *s) {
  double step = (double)s->step;
  adam_work w = {.single = dtype == TD_FLOAT32,
                 .variable = variable,
                 .m = m,
                 .v = v,
                 .gradient = gradient,
                 .beta1 = s->beta1,
                 .beta2 = s->beta2,
                 .eps = s->eps,
                 .decay = s->decoupled ? 0 : s->weight_decay,
                 .rate = s->learning_rate / (1 - pow(s->beta1, step)),
                 .root = 1 / sqrt(1 - pow(s->beta2, step)),
                 .shrink = s->decoupled ? 1 - s->learning_rate * s->weight_decay : 1};
  td_ranges_run(pool, size, 2, adam_range, &w);
}

static int flat_gradient(td_context *context, const td_op *op, const td_tensor *gradient, uint8_t dtype,
                         td_flat *flat) {
  td_call call;
  td_view view;
  call.context = context;
  call.op = op;
  td_view_of(&view, gradient);
  return td_flat_open(&call, &view, dtype, flat);
}

static td_adam adam_of(const td_arg *args) {
  return (td_adam){.step = args[0].i,
                   .learning_rate = args[1].f,
                   .beta1 = args[2].f,
                   .beta2 = args[3].f,
                   .eps = args[4].f,
                   .weight_decay = args[5].f,
                   .decoupled = args[6].i};
}

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

static int adam_kernel(const td_call *call) {
  const td_view *out = call->out;
  td_scratch scratch = {.at = call->workspace};
  td_adam settings = adam_of(call->args);
  const char *gradient = gradient_of(call, &scratch);
  copy_to_outputs(call);
  adam_run(call->context->pool, out->dtype, out->size, out[0].data, out[1].data, out[2].data, gradient, &settings);
  return TD_OK;
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

int td_adam_update_in_place(td_context *context, td_tensor *variable, td_tensor *m, td_tensor *v,
                            const td_tensor *gradient, const td_adam *settings) {
  td_flat flat;
  int code = flat_gradient(context, &adam_update, gradient, variable->dtype, &flat);
  if (code) return code;
  adam_run(context->pool, variable->dtype, variable->size, variable->data, m->data, v->data, flat.data, settings);
  td_flat_close(&flat);
  return TD_OK;
}

// ---- SGD ----

typedef struct sgd_work {
  bool single, nesterov;
  char *variable, *velocity;
  const char *gradient;
  double rate, momentum;
} sgd_work;

#define SGD(T, name)                                                                                                  \
  TD_CLONES static void name##_sgd(T *restrict variable, T *restrict velocity, const T *restrict gradient, int64_t n, \
                                   const sgd_work *w) {                                                               \
    const T rate = (T)w->rate, momentum = (T)w->momentum;                                                             \
    if (!velocity) {                                                                                                  \
      for (int64_t i = 0; i < n; i++) variable[i] -= rate * gradient[i];                                              \
      return;                                                                                                         \
    }                                                                                                                 \
    for (int64_t i = 0; i < n; i++) velocity[i] = momentum * velocity[i] - rate * gradient[i];                        \
    if (w->nesterov)                                                                                                  \
      for (int64_t i = 0; i < n; i++) variable[i] += momentum * velocity[i] - rate * gradient[i];                     \
    else                                                                                                              \
      for (int64_t i = 0; i < n; i++) variable[i] += velocity[i];                                                     \
  }
SGD(float, single)
SGD(double, twofold)

enum { STRIP = 4096 }; // elements that stay in the cache between the loops

static void sgd_range(void *argument, int64_t first, int64_t last) {
  const sgd_work *w = argument;
  for (int64_t at = first; at < last; at += STRIP) {
    int64_t n = last - at < STRIP ? last - at : STRIP;
    if (w->single)
      single_sgd((float *)w->variable + at, w->velocity ? (float *)w->velocity + at : NULL,
                 (const float *)w->gradient + at, n, w);
    else
      twofold_sgd((double *)w->variable + at, w->velocity ? (double *)w->velocity + at : NULL,
                  (const double *)w->gradient + at, n, w);
  }
}

static int sgd_kernel(const td_call *call) {
  const td_view *out = call->out;
  td_scratch scratch = {.at = call->workspace};
  sgd_work w = {.single = out->dtype == TD_FLOAT32,
                .nesterov = call->args[2].i,
                .variable = out[0].data,
                .velocity = out[1].data,
                .gradient = gradient_of(call, &scratch),
                .rate = call->args[0].f,
                .momentum = call->args[1].f};
  copy_to_outputs(call);
  td_ranges_run(call->context->pool, out->size, 2, sgd_range, &w);
  return TD_OK;
}

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

int td_sgd_update_in_place(td_context *context, td_tensor *variable, td_tensor *velocity, const td_tensor *gradient,
                           double learning_rate, double momentum, bool nesterov) {
  td_flat flat;
  int code = flat_gradient(context, &sgd_update, gradient, variable->dtype, &flat);
  if (code) return code;
  sgd_work w = {variable->dtype == TD_FLOAT32,
                nesterov,
                variable->data,
                velocity ? velocity->data : NULL,
                flat.data,
                learning_rate,
                momentum};
  td_ranges_run(context->pool, variable->size, 2, sgd_range, &w);
  td_flat_close(&flat);
  return TD_OK;
}

const td_op *const td_family_optimizer[] = {&adam_update, &sgd_update, NULL};
