// Normalization over layers, groups, instances and batches, and by root mean square. Each row lays x out as norms.h
// says and runs its kernel; the gradients are one hidden row over that layout, which is made of itself and of ops, so
// that any order of derivative exists.
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/norms.h"

#define EPS_PARAM \
  { .name = "eps", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(1e-5) }
#define WEIGHT_PARAM \
  { .name = "w", .kind = TD_PARAM_TENSOR_OPTIONAL }
#define SHIFT_PARAM \
  { .name = "b", .kind = TD_PARAM_TENSOR_OPTIONAL }

enum { OVER_BATCH, CENTRED, EPS }; // arguments of the hidden rows

// ---- shapes ----

static bool given(const td_meta *meta) { return meta->rank <= TD_RANK_MAX; }

static int set_output(td_infer *infer) { // x's shape, in the dtype that all promote to
  uint8_t dtype = infer->in[0].dtype;
  for (int i = 1; i < infer->in_count; i++)
    if (given(&infer->in[i])) dtype = td_dtype_promote(dtype, infer->in[i].dtype);
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = td_dtype_is_float(dtype) ? dtype : TD_FLOAT32;
  return TD_OK;
}

static int check_eps(td_infer *infer, const td_arg *eps) {
  if (!eps->given || eps->f >= 0) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_VALUE, "eps must not be negative, it is %g", eps->f);
}

// Input index, if it is given, must be one number for each of count channels.
static int check_channels(td_infer *infer, int index, int64_t count) {
  const td_meta *meta = &infer->in[index];
  if (!given(meta) || (meta->rank == 1 && meta->shape[0] == count)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "%s must hold one number for each of x's %lld channels, [%lld]",
                       infer->op->params[index].name, (long long)count, (long long)count);
}

static int check_image(td_infer *infer, int least_rank) {
  const td_meta *x = &infer->in[0];
  if (x->rank >= least_rank) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "x must be [N, C%s, ...]; it has rank %d", least_rank > 2 ? ", L" : "",
                       x->rank);
}

// ---- layouts ----

static td_norm layout_of(int rank, const int64_t *shape, int leading, int64_t groups, bool per_channel) {
  td_norm v = {.batch = 1, .groups = groups, .channels = 1, .places = 1, .centred = true};
  for (int i = 0; i < rank; i++)
    *(i < leading ? &v.batch : per_channel && i > leading ? &v.places : &v.channels) *= shape[i];
  if (per_channel) v.channels /= groups;
  return v;
}

static td_norm layer_layout(int rank, const int64_t *shape, int axes) {
  return layout_of(rank, shape, rank - axes, 1, false);
}

static td_norm channel_layout(int rank, const int64_t *shape, int64_t groups) { // x [N, C, ...]
  return layout_of(rank, shape, 1, groups, true);
}

// ---- running ----

static int run_norm(const td_call *call, td_norm *v) { // x, w, b
  const char *data[3] = {NULL};
  v->dtype = call->out[0].dtype;
  td_inputs_place(call, v->dtype, data);
  if (call->out[0].size)
    td_norm_run(call->context->pool, v, data[0], data[1], data[2], call->out[0].data, NULL, NULL);
  return TD_OK;
}

static int64_t norm_workspace(const td_call *call) { return td_inputs_bytes(call, call->out[0].dtype); }

// ---- the hidden rows: x is [batch, groups, channels, places] ----

static td_norm hidden_layout(const td_call *call) {
  const td_view *x = &call->in[0];
  return (td_norm){.dtype = call->out[0].dtype,
                   .batch = x->shape[0],
                   .groups = x->shape[1],
                   .channels = x->shape[2],
                   .places = x->shape[3],
                   .over_batch = call->args[OVER_BATCH].i,
                   .centred = call->args[CENTRED].i,
                   .eps = call->args[EPS].f};
}

static int hidden_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  if (x->rank != 4 || (infer->args[OVER_BATCH].i && x->shape[2] != 1))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "x must be [batch, groups, channels, places]");
  int64_t weights = x->shape[1] * x->shape[2];
  int code = check_channels(infer, 1, weights);
  return code ? code : set_output(infer);
}

static int standardize_infer(td_infer *infer) {
  int code = hidden_infer(infer);
  return code ? code : check_channels(infer, 2, infer->in[0].shape[1] * infer->in[0].shape[2]);
}

static int standardize_kernel(const td_call *call) {
  td_norm v = hidden_layout(call);
  return run_norm(call, &v);
}

static int adjoint_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *c = &infer->in[2];
  int code = hidden_infer(infer);
  if (!code && !td_shape_equal(x->rank, x->shape, c->rank, c->shape))
    code = td_infer_fail(infer, TD_ERROR_SHAPE, "c must have the shape of x");
  if (code) return code;
  infer->out[1] = (td_meta){.dtype = infer->out[0].dtype, .rank = 1, .shape = {x->shape[1] * x->shape[2]}};
  infer->out[2] = infer->out[1];
  return TD_OK;
}

static int adjoint_kernel(const td_call *call) {
  td_norm v = hidden_layout(call);
  const char *data[3];
  void *room = td_inputs_place(call, v.dtype, data);
  td_norm_adjoint_run(call->context->pool, &v, data[0], data[1], data[2], call->out[0].data, call->out[1].data,
                      call->out[2].data, room);
  return TD_OK;
}

static int64_t adjoint_workspace(const td_call *call) {
  td_norm v = hidden_layout(call);
  return norm_workspace(call) + td_norm_workspace(&v);
}

static const td_op adjoint_op, standardize_op;

static void apply_adjoint(td_scope *s, const td_arg *args, td_tensor *x, td_tensor *w, td_tensor *c,
                          td_tensor *out[3]) {
  td_tensor *in[] = {x, w, c}, *made[TD_OUTPUT_MAX];
  memset(out, 0, 3 * sizeof *out);
  if (s->failed || !x || !c || td_op_apply(s->context, &adjoint_op, in, 3, args, made)) s->failed = true;
  else
    for (int i = 0; i < 3; i++) out[i] = td_scope_own(s, made[i]);
}

static td_tensor *apply_standardize(td_scope *s, const td_arg *args, td_tensor *x) {
  td_tensor *in[] = {x, NULL, NULL}, *made[TD_OUTPUT_MAX];
  if (s->failed || !x || td_op_apply(s->context, &standardize_op, in, 3, args, made)) {
    s->failed = true;
    return NULL;
  }
  return td_scope_own(s, made[0]);
}

static int standardize_vjp(td_rule *rule) {
  td_tensor *out[3];
  apply_adjoint(&rule->scope, rule->args, rule->in[0], rule->in[1], rule->cotangent[0], out);
  for (int i = 0; i < 3; i++) rule->din[i] = out[i];
  return TD_OK;
}

// What formulas over the layout need. h = standardized x; scale = 1 / sqrt(variance + eps).
typedef struct formula {
  td_scope *s;
  const td_arg *args;
  td_tensor *x, *w, *h, *scale; // w: [1, groups, channels, 1], or NULL for 1
} formula;

static td_tensor *mean_of(const formula *f, td_tensor *t) {
  td_arg axes = {.given = 1, .count = 2, .ints = {f->args[OVER_BATCH].i ? 0 : 2, 3}};
  return td_mean(f->s, t, &axes, true);
}

static td_tensor *sum_of_weights(const formula *f, td_tensor *t) { // to [groups * channels]
  td_arg axes = {.given = 1, .count = 2, .ints = {0, 3}};
  const td_tensor *x = f->x;
  return x ? td_reshape(f->s, td_sum(f->s, t, &axes, false), 1, (int64_t[]){x->shape[1] * x->shape[2]}) : NULL;
}

static td_tensor *spread_weights(const formula *f, td_tensor *w) { // [groups * channels] against x
  const td_tensor *x = f->x;
  return w && x ? td_reshape(f->s, w, 4, (int64_t[]){1, x->shape[1], x->shape[2], 1}) : NULL;
}

static td_tensor *times_w(const formula *f, td_tensor *t) { return f->w ? td_multiply(f->s, t, f->w) : t; }
static td_tensor *plus(td_scope *s, td_tensor *sum, td_tensor *more) { return sum ? td_add(s, sum, more) : more; }

static formula formula_open(td_scope *s, const td_arg *args, td_tensor *x, td_tensor *w) {
  formula f = {.s = s, .args = args, .x = x};
  f.w = spread_weights(&f, w);
  f.h = apply_standardize(s, args, x);
  td_tensor *off = args[CENTRED].i ? td_subtract(s, x, mean_of(&f, x)) : x;
  td_tensor *variance = mean_of(&f, td_square(s, off));
  td_tensor *one = td_scope_number(s, 1, x), *eps = td_scope_number(s, args[EPS].f, x);
  f.scale = td_divide(s, one, td_sqrt(s, td_add(s, variance, eps)));
  return f;
}

static td_tensor *project(const formula *f, td_tensor *t) { // the Jacobian of h, which is symmetric, times t
  td_tensor *out[3];
  apply_adjoint(f->s, f->args, f->x, NULL, t, out);
  return out[0];
}

// Part of the derivative that comes from u, the cotangent of dx = scale (P g - h mean(g h)), g = c w, P taking means
// off: with J the symmetric Jacobian of h and t = mean(u P g) - mean(u h) mean(g h), <u, dx> changes with x by
// -scale^2 t h - J scale (mean(g h) u + mean(u h) g).
static td_tensor *bend(const formula *f, td_tensor *u, td_tensor *g) {
  td_scope *s = f->s;
  td_tensor *a = mean_of(f, td_multiply(s, u, f->h)), *b = mean_of(f, td_multiply(s, g, f->h));
  td_tensor *t = td_subtract(s, mean_of(f, td_multiply(s, u, g)), td_multiply(s, a, b));
  if (f->args[CENTRED].i) t = td_subtract(s, t, td_multiply(s, mean_of(f, u), mean_of(f, g)));
  td_tensor *inner = td_multiply(s, f->scale, td_add(s, td_multiply(s, b, u), td_multiply(s, a, g)));
  td_tensor *outer = td_multiply(s, td_multiply(s, td_square(s, f->scale), t), f->h);
  return td_negative(s, td_add(s, outer, project(f, inner)));
}

static int adjoint_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->in[2], *u = rule->cotangent[0], *v = rule->cotangent[1], *q = rule->cotangent[2];
  formula f = formula_open(s, rule->args, rule->in[0], rule->in[1]);
  td_tensor *spread = spread_weights(&f, v), *pushed = u ? project(&f, u) : NULL;
  if (rule->needs[2]) {
    if (u) rule->din[2] = times_w(&f, pushed);
    if (v) rule->din[2] = plus(s, rule->din[2], td_multiply(s, spread, f.h));
    if (q) rule->din[2] = plus(s, rule->din[2], td_broadcast_to(s, spread_weights(&f, q), c->rank, c->shape));
  }
  if (rule->needs[1] && u) rule->din[1] = sum_of_weights(&f, td_multiply(s, c, pushed));
  if (!rule->needs[0]) return TD_OK;
  if (u) rule->din[0] = bend(&f, u, times_w(&f, c));
  if (v) rule->din[0] = plus(s, rule->din[0], project(&f, td_multiply(s, spread, c)));
  return TD_OK;
}

#define HIDDEN_PARAMS                                                           \
  {.name = "over_batch", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}, \
      {.name = "centred", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)}, EPS_PARAM

static const td_op standardize_op = {
    .name = "standardize",
    .params = {TD_X, WEIGHT_PARAM, SHIFT_PARAM, HIDDEN_PARAMS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = standardize_infer,
    .kernel = standardize_kernel,
    .workspace = norm_workspace,
    .vjp = standardize_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc = "x [batch, groups, channels, places] with mean 0 and variance 1 over its last two axes, or over the batch "
           "and places.\nGradient: standardize_adjoint.",
    .samples = TD_SAMPLES{{"2,2,3,2; 6; 6", NULL, -2, 2, NULL},
                          {"3,2,1,2; none; none", "over_batch=True", -2, 2, NULL},
                          {"2,1,4,1; 4; none", "centred=False, eps=1e-3", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op adjoint_op = {
    .name = "standardize_adjoint",
    .params = {TD_X, WEIGHT_PARAM, TD_TENSOR_PARAM("c"), HIDDEN_PARAMS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .outputs = 3,
    .infer = adjoint_infer,
    .kernel = adjoint_kernel,
    .workspace = adjoint_workspace,
    .vjp = adjoint_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "The gradients of standardize in x, w and b for the cotangent c.\nGradient: by itself and means.",
    .samples = TD_SAMPLES{{"2,2,3,2; 6; 2,2,3,2", NULL, -2, 2, NULL},
                          {"3,2,1,2; 2; 3,2,1,2", "over_batch=True", -2, 2, NULL},
                          {"2,1,4,1; none; 2,1,4,1", "centred=False, eps=1e-3", -2, 2, NULL},
                          TD_SAMPLES_END},
};

// The gradients of a row with this layout in x, w and b, which are its inputs 0, first and first + 1.
static int norm_vjp(td_rule *rule, const td_norm *v, int first) {
  td_scope *s = &rule->scope;
  const int64_t shape[] = {v->batch, v->groups, v->channels, v->places};
  const td_arg args[] = {TD_INT_ARG(v->over_batch), TD_INT_ARG(v->centred), TD_FLOAT_ARG(v->eps)};
  td_tensor *w = rule->in[first], *x = rule->in[0], *out[3];
  if (w) w = td_reshape(s, w, 1, (int64_t[]){v->groups * v->channels});
  apply_adjoint(s, args, td_reshape(s, x, 4, shape), w, td_reshape(s, rule->cotangent[0], 4, shape), out);
  if (rule->needs[0]) rule->din[0] = td_reshape(s, out[0], x->rank, x->shape);
  for (int i = 0; i < 2 && first + i < rule->in_count; i++) {
    const td_meta *meta = &rule->in_meta[first + i];
    if (rule->needs[first + i]) rule->din[first + i] = td_reshape(s, out[1 + i], meta->rank, meta->shape);
  }
  return TD_OK;
}

// ---- layer_norm, rms_norm ----

enum { L_EPS, L_SHAPE };

static int layer_axes(int rank_of_w, const td_arg *shape) { // how many axes at the end are normalized
  return shape->given ? shape->count : rank_of_w <= TD_RANK_MAX ? rank_of_w : 1;
}

static int layer_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  const td_arg *shape = &infer->args[L_SHAPE];
  int axes = layer_axes(infer->in[1].rank, shape), code = check_eps(infer, &infer->args[L_EPS]);
  if (code) return code;
  if (axes < 1 || axes > x->rank)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the last %d axes are to be normalized, x has rank %d", axes, x->rank);
  const int64_t *sizes = x->shape + x->rank - axes;
  if (shape->given && !td_shape_equal(axes, sizes, shape->count, shape->ints))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "normalized_shape isn't the shape of x's last %d axes", axes);
  for (int i = 1; i < infer->in_count; i++) {
    const td_meta *w = &infer->in[i];
    if (!given(w) || td_shape_equal(axes, sizes, w->rank, w->shape)) continue;
    td_text text = {0};
    td_shape_print(&text, axes, sizes);
    code = td_infer_fail(infer, TD_ERROR_SHAPE, "%s must have the shape of x's last ax%s, %s",
                         infer->op->params[i].name, axes == 1 ? "is" : "es", text.data ? text.data : "");
    td_text_clear(&text);
    return code;
  }
  return set_output(infer);
}

static td_norm layer_of(const td_op *op, int rank, const int64_t *shape, int axes, const td_arg *args, uint8_t dtype) {
  td_norm v = layer_layout(rank, shape, axes);
  double epsilon = dtype == TD_FLOAT64    ? DBL_EPSILON
                   : dtype == TD_FLOAT16  ? 0x1p-10
                   : dtype == TD_BFLOAT16 ? 0x1p-7
                                          : FLT_EPSILON;
  v.centred = strcmp(op->name, "rms_norm") != 0;
  v.eps = args[L_EPS].given ? args[L_EPS].f : epsilon;
  v.dtype = dtype;
  return v;
}

static td_norm layer_call(const td_call *call) {
  const td_view *x = &call->in[0];
  int axes = layer_axes(call->in[1].data ? call->in[1].rank : UINT8_MAX, &call->args[L_SHAPE]);
  return layer_of(call->op, x->rank, x->shape, axes, call->args, call->out[0].dtype);
}

static int layer_kernel(const td_call *call) {
  td_norm v = layer_call(call);
  return run_norm(call, &v);
}

static int layer_vjp(td_rule *rule) {
  const td_tensor *x = rule->in[0], *w = rule->in[1];
  int axes = layer_axes(w ? w->rank : UINT8_MAX, &rule->args[L_SHAPE]);
  td_norm v = layer_of(rule->op, x->rank, x->shape, axes, rule->args, rule->out_meta[0].dtype);
  return norm_vjp(rule, &v, 1);
}

#define SHAPE_PARAM \
  { .name = "normalized_shape", .kind = TD_PARAM_SHAPE }

static const td_op layer_norm = {
    .name = "layer_norm",
    .params = {TD_X, WEIGHT_PARAM, SHIFT_PARAM, EPS_PARAM, SHAPE_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = layer_infer,
    .kernel = layer_kernel,
    .workspace = norm_workspace,
    .vjp = layer_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc = "(x - mean) / sqrt(variance + eps) * w + b over the last axes: those of normalized_shape, else of w, else "
           "the last one.\nGradient: with h the result before w and b and g = c w, (g - mean(g) - h mean(g h)) / "
           "sqrt(variance + eps) for x, the sum of c h for w, of c for b.",
    .example = "layer_norm(tensor([[1., 3.], [2., 2.]]), eps=0.).tolist()  # [[-1.0, 1.0], [nan, nan]]",
    .source = "Ba, Kiros, Hinton: Layer Normalization, 2016",
    .samples = TD_SAMPLES{{"3,5; 5; 5", NULL, -2, 2, NULL},
                          {"2,3,4; 3,4; 3,4", "eps=1e-3", -2, 2, NULL},
                          {"2,3,4; none; none", "normalized_shape=(3, 4)", -2, 2, NULL},
                          {"2,4; none; none", NULL, -2, 2, NULL},
                          {"2,4; 4; none", NULL, -2, 2, NULL},
                          {"40,3; none; 3", NULL, -2, 2, NULL},
                          {"0,4; 4; 4", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op rms_norm = {
    .name = "rms_norm",
    .params = {TD_X, WEIGHT_PARAM, {.name = "eps", .kind = TD_PARAM_FLOAT}, SHAPE_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = layer_infer,
    .kernel = layer_kernel,
    .workspace = norm_workspace,
    .vjp = layer_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc =
        "x / sqrt(mean(x**2) + eps) * w over the last axes: those of normalized_shape, else of w, else the last one. "
        "eps None is the dtype's epsilon.\nGradient: with h the result before w and g = c w, (g - h mean(g h)) / "
        "sqrt(mean(x**2) + eps) for x, the sum of c h for w.",
    .example = "rms_norm(tensor([3., 3.]), eps=0.).tolist()  # [1.0, 1.0]",
    .source = "Zhang, Sennrich: Root Mean Square Layer Normalization, 2019",
    .samples = TD_SAMPLES{{"3,5; 5", "eps=1e-5", -2, 2, NULL},
                          {"2,3,4; 3,4", "eps=1e-3", -2, 2, NULL},
                          {"2,4; none", NULL, -2, 2, NULL},
                          {"0,4; 4", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- group_norm, instance_norm ----

enum { G_EPS, G_GROUPS };

static int group_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  int64_t groups = infer->args[G_GROUPS].i;
  int code = check_image(infer, 2);
  if (!code) code = check_eps(infer, &infer->args[G_EPS]);
  if (!code && groups < 1)
    code = td_infer_fail(infer, TD_ERROR_VALUE, "num_groups must be at least 1, not %lld", (long long)groups);
  if (!code && x->shape[1] % groups)
    code = td_infer_fail(infer, TD_ERROR_SHAPE, "x's %lld channels don't part into num_groups, %lld",
                         (long long)x->shape[1], (long long)groups);
  for (int i = 1; i < 3 && !code; i++) code = check_channels(infer, i, x->shape[1]);
  return code ? code : set_output(infer);
}

static int instance_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  int code = check_image(infer, 3);
  if (!code) code = check_eps(infer, &infer->args[G_EPS]);
  for (int i = 1; i < 3 && !code; i++) code = check_channels(infer, i, x->shape[1]);
  if (!code && td_shape_size(x->rank - 2, x->shape + 2) == 1) {
    code = td_infer_fail(infer, TD_ERROR_SHAPE, "there is one value per instance and channel: nothing varies");
    td_error_hint(infer->context, "layer_norm(x, ...) or group_norm(x, ...) take several channels together");
  }
  return code ? code : set_output(infer);
}

static td_norm group_call(const td_call *call) {
  const td_view *x = &call->in[0];
  td_norm v = channel_layout(x->rank, x->shape, call->args[G_GROUPS].i);
  v.eps = call->args[G_EPS].f;
  return v;
}

static td_norm instance_layout(int rank, const int64_t *shape, double eps) {
  td_norm v = channel_layout(rank, shape, 1);
  v.groups = v.channels;
  v.channels = 1;
  v.eps = eps;
  return v;
}

static int group_kernel(const td_call *call) {
  td_norm v = group_call(call);
  return run_norm(call, &v);
}

static int instance_kernel(const td_call *call) {
  td_norm v = instance_layout(call->in[0].rank, call->in[0].shape, call->args[G_EPS].f);
  return run_norm(call, &v);
}

static int group_vjp(td_rule *rule) {
  const td_tensor *x = rule->in[0];
  td_norm v = channel_layout(x->rank, x->shape, rule->args[G_GROUPS].i);
  v.eps = rule->args[G_EPS].f;
  return norm_vjp(rule, &v, 1);
}

static int instance_vjp(td_rule *rule) {
  td_norm v = instance_layout(rule->in[0]->rank, rule->in[0]->shape, rule->args[G_EPS].f);
  return norm_vjp(rule, &v, 1);
}

static const td_op group_norm = {
    .name = "group_norm",
    .params = {TD_X,
               WEIGHT_PARAM,
               SHIFT_PARAM,
               EPS_PARAM,
               {.name = "num_groups", .kind = TD_PARAM_INT, .required = true, .keyword = true}},
    .kind = TD_KIND_OPAQUE,
    .infer = group_infer,
    .kernel = group_kernel,
    .workspace = norm_workspace,
    .vjp = group_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc =
        "(x - mean) / sqrt(variance + eps) * w + b for x [N, C, ...] over each of num_groups parts of each example's "
        "channels; w and b are [C].\nGradient: as layer_norm's, over the same elements.",
    .example = "group_norm(tensor([[1., 3., 5., 5.]]), num_groups=2).round().tolist()  # [[-1.0, 1.0, 0.0, 0.0]]",
    .source = "Wu, He: Group Normalization, 2018",
    .samples = TD_SAMPLES{{"2,4,3; 4; 4", "num_groups=2", -2, 2, NULL},
                          {"2,6,2,2; 6; none", "num_groups=3, eps=1e-3", -2, 2, NULL},
                          {"3,4; none; 4", "num_groups=2", -2, 2, NULL},
                          {"0,4,3; 4; 4", "num_groups=4", -2, 2, NULL},
                          TD_SAMPLES_END},
};

static const td_op instance_norm = {
    .name = "instance_norm",
    .params = {TD_X, WEIGHT_PARAM, SHIFT_PARAM, EPS_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = instance_infer,
    .kernel = instance_kernel,
    .workspace = norm_workspace,
    .vjp = instance_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc =
        "(x - mean) / sqrt(variance + eps) * w + b for x [N, C, L, ...] over each example's channel; w and b are [C].\n"
        "Gradient: as layer_norm's, over the same elements.",
    .example = "instance_norm(tensor([[[1., 3.], [4., 4.]]])).round().tolist()  # [[[-1.0, 1.0], [0.0, 0.0]]]",
    .source = "Ulyanov, Vedaldi, Lempitsky: Instance Normalization, 2016",
    .samples = TD_SAMPLES{{"2,3,4; 3; 3", NULL, -2, 2, NULL},
                          {"2,2,2,3; none; none", "eps=1e-3", -2, 2, NULL},
                          {"0,2,3; 2; 2", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
};

// ---- batch_norm ----

enum { B_MEAN = 1, B_VARIANCE, B_WEIGHT, B_SHIFT }; // inputs
enum { B_TRAINING, B_MOMENTUM, B_EPS };

static td_norm batch_layout(int rank, const int64_t *shape, double eps) {
  td_norm v = instance_layout(rank, shape, eps);
  v.over_batch = true;
  return v;
}

static int batch_check_training(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  td_norm v = batch_layout(x->rank, x->shape, 0);
  if (!infer->args[B_TRAINING].i) {
    if (given(&infer->in[B_MEAN]) && given(&infer->in[B_VARIANCE])) return TD_OK;
    int code = td_infer_fail(infer, TD_ERROR_VALUE, "needs mean and var unless training");
    td_error_hint(infer->context, "training=True takes those of the batch");
    return code;
  }
  if (v.batch * v.places > 1 || !v.groups) return TD_OK;
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "training needs more than one value per channel, x has %lld",
                           (long long)(v.batch * v.places));
  td_error_hint(infer->context, "a larger batch, training=False, or layer_norm");
  return code;
}

static int batch_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0];
  int code = check_image(infer, 2);
  if (!code) code = check_eps(infer, &infer->args[B_EPS]);
  for (int i = B_MEAN; i <= B_SHIFT && !code; i++) code = check_channels(infer, i, x->shape[1]);
  if (!code) code = batch_check_training(infer);
  if (code) return code;
  set_output(infer);
  infer->out[1] = (td_meta){.dtype = infer->out[0].dtype, .rank = 1, .shape = {x->shape[1]}};
  infer->out[2] = infer->out[1];
  return TD_OK;
}

static double element(const char *data, uint8_t dtype, int64_t at) {
  return dtype == TD_FLOAT32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static void store(const td_view *out, int64_t at, double value) {
  if (out->dtype == TD_FLOAT32) ((float *)out->data)[at] = (float)value;
  else ((double *)out->data)[at] = value;
}

// The running statistics moved towards the batch's; those of the batch themselves where there are none.
static void move_statistics(const td_call *call, const td_norm *v, const double *found, const char *running, int k) {
  double momentum = call->args[B_MOMENTUM].f, n = (double)(v->batch * v->places), unbiased = k == 2 ? n / (n - 1) : 1;
  for (int64_t i = 0; i < v->groups; i++) {
    double value = found[i] * unbiased;
    if (running) value = (1 - momentum) * element(running, v->dtype, i) + momentum * value;
    store(&call->out[k], i, value);
  }
}

typedef struct inference {
  const td_norm *v;
  const char *x, *mean, *variance, *w, *b;
  char *y;
} inference;

#define INFERENCE(T, name)                                                                                     \
  TD_CLONES static void name##_line(const T *restrict x, T *restrict y, int64_t n, double mean, double factor, \
                                    double shift) {                                                            \
    for (int64_t i = 0; i < n; i++) y[i] = (T)(((double)x[i] - mean) * factor + shift);                        \
  }
INFERENCE(float, single)
INFERENCE(double, twofold)

static void inference_lines(void *argument, int64_t first, int64_t last) { // of one example and channel each
  const inference *w = argument;
  const td_norm *v = w->v;
  for (int64_t line = first; line < last; line++) {
    int64_t g = line % v->groups, at = line * v->places;
    double factor = 1 / sqrt(element(w->variance, v->dtype, g) + v->eps), mean = element(w->mean, v->dtype, g);
    if (w->w) factor *= element(w->w, v->dtype, g);
    double shift = w->b ? element(w->b, v->dtype, g) : 0;
    if (v->dtype == TD_FLOAT32)
      single_line((const float *)w->x + at, (float *)w->y + at, v->places, mean, factor, shift);
    else twofold_line((const double *)w->x + at, (double *)w->y + at, v->places, mean, factor, shift);
  }
}

static void infer_batch(const td_call *call, const td_norm *v, const char *const data[5]) {
  inference w = {v, data[0], data[B_MEAN], data[B_VARIANCE], data[B_WEIGHT], data[B_SHIFT], call->out[0].data};
  td_ranges_run(call->context->pool, v->batch * v->groups, v->places + 16, inference_lines, &w);
  for (int k = 1; k < 3; k++) memcpy(call->out[k].data, data[k], (size_t)(v->groups * td_dtype_bytes(v->dtype)));
}

static int64_t statistics_bytes(const td_norm *v) { return (v->groups * 2 * (int64_t)sizeof(double) + 63) / 64 * 64; }

static int64_t batch_workspace(const td_call *call) {
  td_norm v = batch_layout(call->in[0].rank, call->in[0].shape, call->args[B_EPS].f);
  return norm_workspace(call) + statistics_bytes(&v);
}

static int batch_kernel(const td_call *call) {
  td_norm v = batch_layout(call->in[0].rank, call->in[0].shape, call->args[B_EPS].f);
  const char *data[5] = {NULL};
  v.dtype = call->out[0].dtype;
  char *room = td_inputs_place(call, v.dtype, data);
  if (!call->args[B_TRAINING].i) {
    infer_batch(call, &v, data);
    return TD_OK;
  }
  double *mean = (double *)room, *variance = mean + v.groups;
  td_norm_run(call->context->pool, &v, data[0], data[B_WEIGHT], data[B_SHIFT], call->out[0].data, mean, variance);
  move_statistics(call, &v, mean, data[B_MEAN], 1);
  move_statistics(call, &v, variance, data[B_VARIANCE], 2);
  return TD_OK;
}

static td_tensor *per_channel(td_rule *rule, td_tensor *t) { // [C] against x
  int64_t shape[TD_RANK_MAX];
  int rank = rule->in[0]->rank;
  for (int i = 0; i < rank; i++) shape[i] = i == 1 ? rule->in[0]->shape[1] : 1;
  return td_reshape(&rule->scope, t, rank, shape);
}

static td_tensor *over_channels(td_rule *rule, td_tensor *t, bool mean, bool keepdims) { // of x's shape to [C]
  td_arg axes = {.given = 1};
  for (int i = 0; i < rule->in[0]->rank; i++)
    if (i != 1) axes.ints[axes.count++] = i;
  return (mean ? td_mean : td_sum)(&rule->scope, t, &axes, keepdims);
}

static td_tensor *scaled(td_scope *s, td_tensor *t, double factor) {
  return td_multiply(s, t, td_scope_number(s, factor, t));
}

// What reaches the inputs through the moved statistics: momentum / n of mean's cotangent, and 2 momentum (x - mean) /
// (n - 1) of variance's.
static void statistics_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *x = rule->in[0];
  td_norm v = batch_layout(x->rank, x->shape, 0);
  double n = (double)(v.batch * v.places);
  for (int k = B_MEAN; k <= B_VARIANCE; k++) {
    td_tensor *c = rule->cotangent[k];
    if (!c) continue;
    double momentum = rule->in[k] ? rule->args[B_MOMENTUM].f : 1;
    if (rule->in[k] && rule->needs[k]) rule->din[k] = scaled(s, c, 1 - momentum);
    if (!rule->needs[0]) continue;
    td_tensor *d = per_channel(rule, scaled(s, c, k == B_MEAN ? momentum / n : 2 * momentum / (n - 1)));
    if (k == B_VARIANCE) d = td_multiply(s, d, td_subtract(s, x, over_channels(rule, x, true, true)));
    else d = td_broadcast_to(s, d, x->rank, x->shape);
    rule->din[0] = plus(s, rule->din[0], d);
  }
}

static int batch_vjp_inference(td_rule *rule) { // y = (x - mean) scale w + b
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *x = rule->in[0];
  for (int k = B_MEAN; k <= B_VARIANCE; k++)
    if (rule->needs[k] && rule->cotangent[k]) rule->din[k] = rule->cotangent[k];
  if (!c) return TD_OK;
  td_tensor *eps = td_scope_number(s, rule->args[B_EPS].f, c), *one = td_scope_number(s, 1, c);
  td_tensor *scale = td_divide(s, one, td_sqrt(s, td_add(s, rule->in[B_VARIANCE], eps)));
  td_tensor *factor = rule->in[B_WEIGHT] ? td_multiply(s, scale, rule->in[B_WEIGHT]) : scale;
  if (rule->needs[0]) rule->din[0] = td_multiply(s, c, per_channel(rule, factor));
  td_tensor *total = over_channels(rule, c, false, false);
  td_tensor *off = td_subtract(s, x, per_channel(rule, rule->in[B_MEAN]));
  td_tensor *moment = over_channels(rule, td_multiply(s, c, off), false, false);
  if (rule->needs[B_MEAN])
    rule->din[B_MEAN] = plus(s, rule->din[B_MEAN], td_negative(s, td_multiply(s, total, factor)));
  if (rule->needs[B_VARIANCE]) {
    td_tensor *d = scaled(s, td_multiply(s, moment, td_multiply(s, factor, td_square(s, scale))), -0.5);
    rule->din[B_VARIANCE] = plus(s, rule->din[B_VARIANCE], d);
  }
  if (rule->needs[B_WEIGHT]) rule->din[B_WEIGHT] = td_multiply(s, moment, scale);
  if (rule->needs[B_SHIFT]) rule->din[B_SHIFT] = total;
  return TD_OK;
}

static int batch_vjp(td_rule *rule) {
  if (!rule->args[B_TRAINING].i) return batch_vjp_inference(rule);
  const td_tensor *x = rule->in[0];
  td_norm v = batch_layout(x->rank, x->shape, rule->args[B_EPS].f);
  if (rule->cotangent[0]) norm_vjp(rule, &v, B_WEIGHT);
  statistics_vjp(rule);
  return TD_OK;
}

static const td_op batch_norm = {
    .name = "batch_norm",
    .params = {TD_X,
               {.name = "mean", .kind = TD_PARAM_TENSOR_OPTIONAL},
               {.name = "var", .kind = TD_PARAM_TENSOR_OPTIONAL},
               WEIGHT_PARAM,
               SHIFT_PARAM,
               {.name = "training", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)},
               {.name = "momentum", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0.1)},
               EPS_PARAM},
    .kind = TD_KIND_OPAQUE,
    .outputs = 3,
    .infer = batch_infer,
    .kernel = batch_kernel,
    .workspace = batch_workspace,
    .vjp = batch_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "(y, mean, var): x [N, C, ...] normalized for each channel, (x - mean) / sqrt(var + eps) * w + b, and the "
           "running statistics.\n"
           "Training takes mean and variance of the batch, which must have more than one value per channel, and gives "
           "the running ones moved: (1 - momentum) * mean + momentum * the batch's; var takes the unbiased variance. "
           "Without running ones the batch's come back. A layer that keeps them in Variables does\n"
           "  y, m, v = batch_norm(x, self.mean, self.var, self.w, self.b, training=True); self.mean.assign(m)\n"
           "Otherwise mean and var are those given, and come back as they are.\n"
           "Gradient: as layer_norm's, over batch and places; also through the moved statistics.",
    .example = "batch_norm(tensor([[1.], [3.]]), training=True)[1].item()  # 2.0",
    .source = "Ioffe, Szegedy: Batch Normalization, 2015",
    .samples = TD_SAMPLES{{"4,3; none; none; 3; 3", "training=True", 0.5, 2, NULL},
                          {"2,3,4; 3; 3; 3; 3", "training=True, momentum=0.3", 0.5, 2, NULL},
                          {"2,2,3,2; 2; 2; none; none", "training=True, eps=1e-3", 0.5, 2, NULL},
                          {"1,2,6,6; none; none; 2; none", "training=True", 0.5, 2, NULL},
                          {"2,3,4; 3; 3; 3; 3", NULL, 0.5, 2, NULL},
                          {"3,2; 2; 2; none; 2", "eps=1e-3", 0.5, 2, NULL},
                          {"0,3,4; 3; 3; 3; 3", NULL, 0.5, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_normalization[] = {&layer_norm, &rms_norm,       &group_norm, &instance_norm,
                                                &batch_norm, &standardize_op, &adjoint_op, NULL};
