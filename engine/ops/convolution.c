// Convolutions of 1, 2 and 3 axes and their adjoints, the transposed convolutions, in PyTorch's layout: x [N, C, ...],
// w [outputs, inputs of a group, ...]. Their derivatives are three hidden rows, one for each map of convolution.h,
// which are each other's derivatives, so that any order exists.
#include "engine/ops/convolution.h"

#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/spatial.h"

enum { STRIDE, PADDING, DILATION, GROUPS, SIZES }; // arguments of all rows but conv_transpose
enum { T_STRIDE, T_PADDING, T_OUTPUT_PADDING, T_GROUPS, T_DILATION }; // PyTorch's order
enum { SAME, VALID };
static const char *const paddings[] = {"same", "valid", NULL};

// ---- sizes ----

// Ranks and channels. transposed: x has the convolution's outputs.
static int check_operands(td_infer *infer, int n, int64_t groups, bool transposed) {
  const td_meta *x = &infer->in[0], *w = &infer->in[1];
  int code = td_spatial_rank(infer, n);
  if (code) return code;
  if (w->rank != n + 2)
    return td_infer_fail(infer, TD_ERROR_SHAPE,
                         "w must have rank %d, [%s, channels of a group, kernel]; it has rank %d", n + 2,
                         transposed ? "inputs" : "outputs", w->rank);
  if (groups < 1) return td_infer_fail(infer, TD_ERROR_VALUE, "groups must be at least 1, not %lld", (long long)groups);
  int64_t channels = x->shape[x->rank - n - 1];
  for (int i = 0; i < n; i++)
    if (!w->shape[2 + i]) return td_infer_fail(infer, TD_ERROR_SHAPE, "w has a kernel of size 0");
  if (w->shape[0] % groups || (groups > 1 && groups > w->shape[0]))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the %lld channels of w's axis 0 don't part into %lld groups",
                         (long long)w->shape[0], (long long)groups);
  bool fits = transposed ? channels == w->shape[0] : channels % groups == 0 && channels / groups == w->shape[1];
  if (fits) return TD_OK;
  td_text text = {0};
  td_text_add(&text, "x ");
  td_shape_print(&text, x->rank, x->shape);
  td_text_print(&text, " has %lld channels, w ", (long long)channels);
  td_shape_print(&text, w->rank, w->shape);
  if (transposed || groups == 1) td_text_print(&text, " takes %lld", (long long)w->shape[transposed ? 0 : 1]);
  else td_text_print(&text, " takes %lld in each of %lld groups", (long long)w->shape[1], (long long)groups);
  code = td_infer_fail(infer, TD_ERROR_SHAPE, "%s", text.data ? text.data : "");
  td_text_clear(&text);
  int64_t wanted = transposed ? w->shape[0] : w->shape[1] * groups, share = w->shape[1];
  if (x->shape[x->rank - 1] == wanted)
    td_error_hint(infer->context, "channels come first: moveaxis(x, -1, %d) if x has them last", x->rank - n - 1);
  else if (!transposed && share && channels && channels % share == 0 && w->shape[0] % (channels / share) == 0)
    td_error_hint(infer->context, "groups=%lld fits", (long long)(channels / share));
  else
    td_error_hint(infer->context, "w's axis %d must have size %lld", transposed ? 0 : 1,
                  (long long)(transposed          ? channels
                              : channels % groups ? channels
                                                  : channels / groups));
  return code;
}

// The dtype computed in: integers are taken as float32.
static int set_dtype(td_infer *infer) {
  uint8_t dtype = infer->in[0].dtype;
  for (int i = 1; i < infer->in_count; i++)
    if (infer->in[i].rank <= TD_RANK_MAX) dtype = td_dtype_promote(dtype, infer->in[i].dtype);
  infer->out[0].dtype = td_dtype_is_float(dtype) ? dtype : TD_FLOAT32;
  return TD_OK;
}

static int check_bias(td_infer *infer, int64_t channels) {
  const td_meta *b = &infer->in[2];
  if (b->rank > TD_RANK_MAX || (b->rank == 1 && b->shape[0] == channels)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "b must hold one number for each of %lld output channels, [%lld]",
                       (long long)channels, (long long)channels);
}

static void set_shape(td_infer *infer, int n, int64_t channels, const int64_t *sizes) {
  td_meta *out = &infer->out[0];
  int rank = infer->in[0].rank;
  out->rank = (uint8_t)rank;
  if (rank == n + 2) out->shape[0] = infer->in[0].shape[0];
  out->shape[rank - n - 1] = channels;
  for (int i = 0; i < n; i++) out->shape[rank - n + i] = sizes[i];
}

// ---- from shapes and arguments to a convolution ----

static void unit_axes(td_convolution *v) { // what isn't set: one element, one tap
  for (int i = 0; i < 3; i++) {
    v->in[i] = v->out[i] = v->kernel[i] = v->stride[i] = v->dilation[i] = 1;
    v->padding[i] = 0;
  }
}

// Result size and padding before of one axis. False: the kernel is longer than the padded input.
static bool conv_axis(const td_arg *args, int axis, int64_t in, int64_t kernel, int64_t *out, int64_t *before) {
  int64_t stride = td_spatial_number(&args[STRIDE], axis),
          reach = td_spatial_number(&args[DILATION], axis) * (kernel - 1) + 1, total;
  if (args[PADDING].given == TD_GIVEN_CHOICE && args[PADDING].i == SAME) { // as many results as strides fit in
    *out = (in + stride - 1) / stride;
    total = *out ? (*out - 1) * stride + reach - in : 0;
    total = total > 0 ? total : 0;
    *before = total / 2;
    return true;
  }
  *before = args[PADDING].given == TD_GIVEN_CHOICE ? 0 : td_spatial_number(&args[PADDING], axis);
  total = in + 2 * *before - reach;
  *out = total < 0 ? 0 : total / stride + 1;
  return total >= 0;
}

static void conv_fill(int n, const td_arg *args, const int64_t *in, const int64_t *kernel, td_convolution *v) {
  int first = 3 - n;
  for (int at = first; at < 3; at++) {
    v->in[at] = in[at - first];
    v->kernel[at] = kernel[at - first];
    v->stride[at] = td_spatial_number(&args[STRIDE], at - first);
    v->dilation[at] = td_spatial_number(&args[DILATION], at - first);
  }
}

static int conv_check(td_infer *infer, int n) {
  int code = check_operands(infer, n, infer->args[GROUPS].i, false);
  if (!code) code = td_spatial_check(infer, &infer->args[STRIDE], n, "stride", 1);
  if (!code) code = td_spatial_check(infer, &infer->args[PADDING], n, "padding", 0);
  if (!code) code = td_spatial_check(infer, &infer->args[DILATION], n, "dilation", 1);
  if (!code && infer->in_count > 2) code = check_bias(infer, infer->in[1].shape[0]);
  for (int i = 0; i < n && !code; i++)
    if (infer->in[1].shape[2 + i] > TD_SPATIAL_MAX / td_spatial_number(&infer->args[DILATION], i) ||
        infer->in[0].shape[infer->in[0].rank - n + i] > TD_SPATIAL_MAX)
      code = td_infer_fail(infer, TD_ERROR_VALUE, "the dilated kernel or x is too large along axis %d", i);
  return code;
}

static int conv_infer(td_infer *infer, int n) {
  const td_meta *x = &infer->in[0], *w = &infer->in[1];
  int64_t sizes[3] = {0}, before;
  int code = conv_check(infer, n);
  for (int i = 0; i < n && !code; i++) {
    int64_t in = x->shape[x->rank - n + i], kernel = w->shape[2 + i];
    if (conv_axis(infer->args, i, in, kernel, &sizes[i], &before)) continue;
    int64_t reach = td_spatial_number(&infer->args[DILATION], i) * (kernel - 1) + 1;
    code =
        td_infer_fail(infer, TD_ERROR_SHAPE, "the kernel spans %lld along spatial axis %d%s, x has %lld with padding",
                      (long long)reach, i, reach > kernel ? " with its dilation" : "", (long long)(in + 2 * before));
    td_error_hint(infer->context, "padding=%lld fits, \"same\" keeps the size", (long long)((reach - in + 1) / 2));
  }
  if (code) return code;
  set_shape(infer, n, w->shape[0], sizes);
  return set_dtype(infer);
}

static int conv1d_infer(td_infer *infer) { return conv_infer(infer, 1); }
static int conv2d_infer(td_infer *infer) { return conv_infer(infer, 2); }
static int conv3d_infer(td_infer *infer) { return conv_infer(infer, 3); }

// Spatial axes, images and channels of x [N, C, ...] or [C, ...] and of w.
static void channels_of(const td_view *x, const td_view *w, int64_t groups, td_convolution *v) {
  int n = w->rank - 2;
  v->images = x->rank == n + 2 ? x->shape[0] : 1;
  v->groups = groups;
  v->outputs = w->shape[0] / groups;
  v->inputs = w->shape[1];
}

static td_convolution conv_of(const td_call *call) {
  const td_view *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
  td_convolution v = {.dtype = y->dtype};
  int n = w->rank - 2;
  unit_axes(&v);
  channels_of(x, w, call->args[GROUPS].i, &v);
  conv_fill(n, call->args, x->shape + x->rank - n, w->shape + 2, &v);
  for (int i = 0; i < n; i++)
    conv_axis(call->args, i, v.in[3 - n + i], v.kernel[3 - n + i], &v.out[3 - n + i], &v.padding[3 - n + i]);
  return v;
}

// The arguments of a hidden row: stride, padding, dilation, groups, sizes of the map's result.
static td_convolution hidden_of(const td_call *call, const td_view *x, const td_view *w, const td_view *y) {
  const td_arg *args = call->args;
  td_convolution v = {.dtype = call->out[0].dtype};
  int n = w->rank - 2;
  unit_axes(&v);
  channels_of(x, w, args[GROUPS].i, &v);
  conv_fill(n, args, x->shape + x->rank - n, w->shape + 2, &v);
  for (int i = 0; i < n; i++) {
    v.out[3 - n + i] = y->shape[y->rank - n + i];
    v.padding[3 - n + i] = td_spatial_number(&args[PADDING], i);
  }
  return v;
}

// ---- running ----

static int run(const td_call *call, const td_convolution *v, bool adjoint) { // x or y, w, bias
  const char *data[3] = {NULL};
  void *room = td_inputs_place(call, v->dtype, data);
  td_convolution_run(call->context->pool, v, adjoint, data[0], data[1], data[2], call->out[0].data, room);
  return TD_OK;
}

static int64_t workspace_of(const td_call *call, const td_convolution *v, bool adjoint) {
  return td_inputs_bytes(call, v->dtype) + td_convolution_workspace(call->context->pool, v, adjoint);
}

static int conv_kernel(const td_call *call) {
  td_convolution v = conv_of(call);
  return run(call, &v, false);
}

static int64_t conv_workspace(const td_call *call) {
  td_convolution v = conv_of(call);
  return workspace_of(call, &v, false);
}

// ---- the hidden rows ----

// Rules know the sizes that they ask for, so that there is little to check.
static int hidden_check(td_infer *infer, int n) {
  static const struct {
    int index, lowest;
    const char *name;
  } rows[] = {{STRIDE, 1, "stride"}, {PADDING, 0, "padding"}, {DILATION, 1, "dilation"}, {SIZES, 0, "sizes"}};
  const td_arg *args = infer->args;
  if (n < 1 || n > 3) return td_infer_fail(infer, TD_ERROR_SHAPE, "the operands have no 1 to 3 spatial axes");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const td_arg *arg = &args[rows[i].index];
    if (arg->count != n)
      return td_infer_fail(infer, TD_ERROR_VALUE, "%s has %d numbers for %d axes", rows[i].name, arg->count, n);
    int code = td_spatial_check(infer, arg, n, rows[i].name, rows[i].lowest);
    if (code) return code;
  }
  if (args[GROUPS].i < 1) return td_infer_fail(infer, TD_ERROR_VALUE, "groups must be at least 1");
  return set_dtype(infer);
}

static int forward_infer(td_infer *infer) {
  int n = infer->args[SIZES].count, code = hidden_check(infer, n);
  if (!code) code = check_operands(infer, n, infer->args[GROUPS].i, false);
  if (!code) set_shape(infer, n, infer->in[1].shape[0], infer->args[SIZES].ints);
  return code;
}

static int adjoint_infer(td_infer *infer) {
  int n = infer->args[SIZES].count, code = hidden_check(infer, n);
  if (!code) code = check_operands(infer, n, infer->args[GROUPS].i, true);
  if (!code) set_shape(infer, n, infer->in[1].shape[1] * infer->args[GROUPS].i, infer->args[SIZES].ints);
  return code;
}

static int weight_infer(td_infer *infer) {
  const td_meta *x = &infer->in[0], *y = &infer->in[1];
  td_meta *out = &infer->out[0];
  int n = infer->args[SIZES].count, code = hidden_check(infer, n);
  if (code) return code;
  if (x->rank != y->rank || (x->rank != n + 1 && x->rank != n + 2) || (x->rank == n + 2 && x->shape[0] != y->shape[0]))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "x and y don't belong to one convolution");
  int64_t groups = infer->args[GROUPS].i, inputs = x->shape[x->rank - n - 1], outputs = y->shape[y->rank - n - 1];
  if (inputs % groups || outputs % groups || (groups > 1 && groups > outputs))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the channels don't part into groups");
  out->rank = (uint8_t)(n + 2);
  out->shape[0] = outputs;
  out->shape[1] = inputs / groups;
  for (int i = 0; i < n; i++) out->shape[2 + i] = infer->args[SIZES].ints[i];
  return TD_OK;
}

static td_convolution forward_of(const td_call *call) {
  return hidden_of(call, &call->in[0], &call->in[1], &call->out[0]);
}
static td_convolution adjoint_of(const td_call *call) {
  return hidden_of(call, &call->out[0], &call->in[1], &call->in[0]);
}
static td_convolution weight_of(const td_call *call) {
  return hidden_of(call, &call->in[0], &call->out[0], &call->in[1]);
}

static int forward_kernel(const td_call *call) {
  td_convolution v = forward_of(call);
  return run(call, &v, false);
}
static int adjoint_kernel(const td_call *call) {
  td_convolution v = adjoint_of(call);
  return run(call, &v, true);
}
static int weight_kernel(const td_call *call) {
  td_convolution v = weight_of(call);
  const char *data[2];
  void *room = td_inputs_place(call, v.dtype, data);
  td_convolution_weight_run(call->context->pool, &v, data[0], data[1], call->out[0].data, room);
  return TD_OK;
}

static int64_t forward_workspace(const td_call *call) {
  td_convolution v = forward_of(call);
  return workspace_of(call, &v, false);
}
static int64_t adjoint_workspace(const td_call *call) {
  td_convolution v = adjoint_of(call);
  return workspace_of(call, &v, true);
}
static int64_t weight_workspace(const td_call *call) {
  td_convolution v = weight_of(call);
  return td_inputs_bytes(call, v.dtype) + td_convolution_weight_workspace(call->context->pool, &v);
}

static td_tensor *conv_forward(td_scope *s, td_tensor *x, td_tensor *w, const td_arg *args, const td_tensor *y);
static td_tensor *conv_adjoint(td_scope *s, td_tensor *y, td_tensor *w, const td_arg *args, const td_tensor *x);
static td_tensor *conv_weight(td_scope *s, td_tensor *x, td_tensor *y, const td_arg *args, const td_tensor *w);

static int forward_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = conv_adjoint(&rule->scope, c, rule->in[1], rule->args, rule->in[0]);
  if (rule->needs[1]) rule->din[1] = conv_weight(&rule->scope, rule->in[0], c, rule->args, rule->in[1]);
  return TD_OK;
}

static int adjoint_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = conv_forward(&rule->scope, c, rule->in[1], rule->args, rule->in[0]);
  if (rule->needs[1]) rule->din[1] = conv_weight(&rule->scope, c, rule->in[0], rule->args, rule->in[1]);
  return TD_OK;
}

static int weight_vjp(td_rule *rule) {
  td_tensor *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = conv_adjoint(&rule->scope, rule->in[1], c, rule->args, rule->in[0]);
  if (rule->needs[1]) rule->din[1] = conv_forward(&rule->scope, rule->in[0], c, rule->args, rule->in[1]);
  return TD_OK;
}

#define INTS_PARAM(text) \
  { .name = text, .kind = TD_PARAM_INTS, .required = true }
#define HIDDEN_ROW(row, text, first, second, map, words, ...)                \
  static const td_op row = {                                                 \
      .name = text,                                                          \
      .params = {TD_TENSOR_PARAM(first),                                     \
                 TD_TENSOR_PARAM(second),                                    \
                 INTS_PARAM("stride"),                                       \
                 INTS_PARAM("padding"),                                      \
                 INTS_PARAM("dilation"),                                     \
                 {.name = "groups", .kind = TD_PARAM_INT, .required = true}, \
                 INTS_PARAM("sizes")},                                       \
      .kind = TD_KIND_OPAQUE,                                                \
      .flags = TD_HIDDEN | TD_MULTILINEAR,                                   \
      .infer = map##_infer,                                                  \
      .kernel = map##_kernel,                                                \
      .workspace = map##_workspace,                                          \
      .vjp = map##_vjp,                                                      \
      .saves = TD_SAVES_IN0 | TD_SAVES_IN1,                                  \
      .doc = words,                                                          \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                    \
  };

HIDDEN_ROW(forward_op, "convolution", "x", "w", forward,
           "The convolution of x by w with padding in front and results of the given sizes.\n"
           "Gradient: convolution_adjoint for x, convolution_weight for w.",
           {"2,2,5; 3,2,2", "stride=(2,), padding=(1,), dilation=(2,), groups=1, sizes=(3,)", -2, 2, NULL},
           {"1,4,3,4; 2,2,2,3", "stride=(1, 2), padding=(0, 1), dilation=(1, 1), groups=2, sizes=(2, 2)", -2, 2, NULL})
HIDDEN_ROW(adjoint_op, "convolution_adjoint", "y", "w", adjoint,
           "The gradient of convolution in x, of the given sizes, for the cotangent y.\n"
           "Gradient: convolution for y, convolution_weight for w.",
           {"2,3,3; 3,2,2", "stride=(2,), padding=(1,), dilation=(2,), groups=1, sizes=(5,)", -2, 2, NULL},
           {"1,2,2,2; 2,2,2,3", "stride=(1, 2), padding=(0, 1), dilation=(1, 1), groups=2, sizes=(3, 4)", -2, 2, NULL})
HIDDEN_ROW(weight_op, "convolution_weight", "x", "y", weight,
           "The gradient of convolution in w, of the given kernel sizes, for the cotangent y.\n"
           "Gradient: convolution_adjoint for x, convolution for y.",
           {"2,2,5; 2,3,3", "stride=(2,), padding=(1,), dilation=(2,), groups=1, sizes=(2,)", -2, 2, NULL},
           {"1,4,3,4; 1,2,2,2", "stride=(1, 2), padding=(0, 1), dilation=(1, 1), groups=2, sizes=(2, 3)", -2, 2, NULL},
           {"2,8,4; 2,8,4", "stride=(1,), padding=(1,), dilation=(1,), groups=2, sizes=(3,)", -2, 2, NULL})

// args: the first four arguments of a hidden row; like: the tensor whose spatial sizes the result has.
static td_tensor *apply_hidden(td_scope *s, const td_op *op, td_tensor *a, td_tensor *b, const td_arg *args,
                               const td_tensor *like) {
  td_arg all[SIZES + 1];
  int n = args[STRIDE].count;
  if (!like) return NULL;
  memcpy(all, args, SIZES * sizeof *all);
  all[SIZES] = td_ints_arg(n, like->shape + like->rank - n);
  return td_scope_apply(s, op, all, 2, a, b);
}

static td_tensor *conv_forward(td_scope *s, td_tensor *x, td_tensor *w, const td_arg *args, const td_tensor *y) {
  return apply_hidden(s, &forward_op, x, w, args, y);
}
static td_tensor *conv_adjoint(td_scope *s, td_tensor *y, td_tensor *w, const td_arg *args, const td_tensor *x) {
  return apply_hidden(s, &adjoint_op, y, w, args, x);
}
static td_tensor *conv_weight(td_scope *s, td_tensor *x, td_tensor *y, const td_arg *args, const td_tensor *w) {
  return apply_hidden(s, &weight_op, x, y, args, w);
}

// ---- conv: its rules ----

// Arguments of the hidden rows for a call of conv.
static void conv_arguments(const td_rule *rule, td_arg args[SIZES]) {
  const td_tensor *x = rule->in[0], *w = rule->in[1];
  int n = w->rank - 2;
  for (int i = STRIDE; i <= DILATION; i++) args[i] = (td_arg){.given = 1, .count = n};
  args[GROUPS] = rule->args[GROUPS];
  for (int i = 0; i < n; i++) {
    int64_t out;
    args[STRIDE].ints[i] = td_spatial_number(&rule->args[STRIDE], i);
    args[DILATION].ints[i] = td_spatial_number(&rule->args[DILATION], i);
    conv_axis(rule->args, i, x->shape[x->rank - n + i], w->shape[2 + i], &out, &args[PADDING].ints[i]);
  }
}

static td_tensor *bias_gradient(td_rule *rule) { // sum over all axes but that of channels
  td_tensor *c = rule->cotangent[0];
  td_arg axes = {.given = 1};
  int channel = c->rank - rule->in[1]->rank + 1;
  for (int i = 0; i < c->rank; i++)
    if (i != channel) axes.ints[axes.count++] = i;
  return td_sum(&rule->scope, c, &axes, false);
}

static int conv_vjp(td_rule *rule) {
  td_arg args[SIZES];
  td_tensor *c = rule->cotangent[0];
  conv_arguments(rule, args);
  if (rule->needs[0]) rule->din[0] = conv_adjoint(&rule->scope, c, rule->in[1], args, rule->in[0]);
  if (rule->needs[1]) rule->din[1] = conv_weight(&rule->scope, rule->in[0], c, args, rule->in[1]);
  if (rule->in_count > 2 && rule->needs[2]) rule->din[2] = bias_gradient(rule);
  return TD_OK;
}

// A bias's tangent as a tensor that broadcasts against the result.
static td_tensor *bias_spread(td_rule *rule) {
  td_tensor *b = rule->tangent[2];
  int n = rule->in[1]->rank - 2;
  int64_t shape[TD_RANK_MAX] = {b->shape[0], 1, 1, 1};
  return td_reshape(&rule->scope, b, n + 1, shape);
}

static td_tensor *total(td_scope *s, td_tensor *sum, td_tensor *more) { return sum ? td_add(s, sum, more) : more; }

static int push(td_rule *rule, td_tensor *from_x, td_tensor *from_w) {
  td_scope *s = &rule->scope;
  if (from_x) rule->dout[0] = total(s, rule->dout[0], from_x);
  if (from_w) rule->dout[0] = total(s, rule->dout[0], from_w);
  if (rule->in_count > 2 && rule->tangent[2]) rule->dout[0] = total(s, rule->dout[0], bias_spread(rule));
  return TD_OK;
}

static td_tensor sized(const td_meta *meta) { // the shape alone
  td_tensor t = {.rank = meta->rank};
  memcpy(t.shape, meta->shape, sizeof t.shape);
  return t;
}

static int conv_jvp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_arg args[SIZES];
  td_tensor y = sized(&rule->out_meta[0]), *dx = rule->tangent[0], *dw = rule->tangent[1];
  conv_arguments(rule, args);
  return push(rule, dx ? conv_forward(s, dx, rule->in[1], args, &y) : NULL,
              dw ? conv_forward(s, rule->in[0], dw, args, &y) : NULL);
}

// ---- conv: rows ----

#define STRIDE_PARAM                                                                            \
  {                                                                                             \
    .name = "stride", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {1} } \
  }
#define DILATION_PARAM                                                                            \
  {                                                                                               \
    .name = "dilation", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {1} } \
  }
#define ZEROS_PARAM(text)                                                                   \
  {                                                                                         \
    .name = text, .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {0} } \
  }
#define PADDING_PARAM \
  { .name = "padding", .kind = TD_PARAM_INTS, .fallback = {.given = 1, .count = 1, .ints = {0}}, .choices = paddings }
#define GROUPS_PARAM \
  { .name = "groups", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(1) }
#define BIAS_PARAM \
  { .name = "b", .kind = TD_PARAM_TENSOR_OPTIONAL }

#define CONV_DOC(layout)                                                                                              \
  "Cross-correlation of x, " layout                                                                                   \
  " or without N, by the kernels w, [outputs, C / groups, ...], plus b, [outputs].\n"                                 \
  "stride, padding and dilation are one number or one for each spatial axis. padding=\"valid\" is 0; \"same\" gives " \
  "ceil(size / stride) results, what is odd of its zeros stands at the end. Each of groups parts of the channels "    \
  "makes its part of the outputs. Integers are taken as float32.\n"                                                   \
  "Gradient: the transposed convolution of the cotangent by w for x, the correlation of x with the cotangent for w, " \
  "its sum over images and places for b."

#define CONV_ROW(row, layout, text, ...)                                                                             \
  static const td_op row = {                                                                                         \
      .name = #row,                                                                                                  \
      .params = {TD_X, TD_TENSOR_PARAM("w"), BIAS_PARAM, STRIDE_PARAM, PADDING_PARAM, DILATION_PARAM, GROUPS_PARAM}, \
      .kind = TD_KIND_OPAQUE,                                                                                        \
      .infer = row##_infer,                                                                                          \
      .kernel = conv_kernel,                                                                                         \
      .workspace = conv_workspace,                                                                                   \
      .vjp = conv_vjp,                                                                                               \
      .jvp = conv_jvp,                                                                                               \
      .saves = TD_SAVES_IN0 | TD_SAVES_IN1,                                                                          \
      .doc = CONV_DOC(layout),                                                                                       \
      .example = text,                                                                                               \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                                                            \
  };

CONV_ROW(conv1d, "[N, C, L]",
         "conv1d(tensor([[[1., 2., 3., 4.]]]), tensor([[[1., -1.]]])).tolist()  # [[[-1.0, -1.0, -1.0]]]",
         {"2,3,5; 4,3,2; 4", NULL, -2, 2, NULL}, {"2,2,5; 3,2,2; none", "stride=2, padding=1, dilation=2", -2, 2, NULL},
         {"1,4,6; 6,2,3; 6", "groups=2, padding=2", -2, 2, NULL}, {"3,5; 2,3,2; 2", "padding=\"same\"", -2, 2, NULL},
         {"2,1,7; 2,1,2; none", "stride=3", -2, 2, NULL}, {"0,3,5; 4,3,2; 4", NULL, -2, 2, NULL},
         {"2,3,5; 3,1,3; 3", "groups=3, padding=1", -2, 2, NULL})
CONV_ROW(conv2d, "[N, C, H, W]",
         "conv2d(ones((1, 1, 3, 3)), ones((1, 1, 3, 3)), padding=\"same\")[0, 0].tolist()"
         "  # [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]",
         {"2,2,4,3; 4,2,2,2; 4", NULL, -2, 2, NULL},
         {"1,2,5,4; 5,2,3,2; none", "stride=(2, 1), padding=(1, 2), dilation=(1, 2)", -2, 2, NULL},
         {"2,4,3,3; 8,2,2,2; 8", "groups=2, padding=\"same\"", -2, 2, NULL},
         {"1,3,4,4; 3,1,3,3; 3", "groups=3, padding=1, stride=2", -2, 2, NULL},
         {"2,5,3,2; 4,5,1,1; 4", NULL, -2, 2, NULL}, {"1,1,6,6; 1,1,2,2; none", "stride=4", -2, 2, NULL},
         {"2,3,3; 4,2,2,2; 4", "padding=\"valid\"", -2, 2, NULL},
         {"1,1,5,5; 4,1,2,3; none", "stride=2, padding=\"same\"", -2, 2, NULL})
CONV_ROW(conv3d, "[N, C, D, H, W]", "conv3d(ones((1, 1, 2, 2, 2)), ones((1, 1, 2, 2, 2))).item()  # 8.0",
         {"1,2,3,2,3; 4,2,2,2,2; 4", NULL, -2, 2, NULL},
         {"2,1,3,3,2; 4,1,2,1,2; none", "stride=2, padding=(1, 0, 1), dilation=(2, 1, 1)", -2, 2, NULL},
         {"2,2,2,3,2; 2,1,2,2,2; 2", "groups=2, padding=\"same\"", -2, 2, NULL})

// ---- conv_transpose ----

static void transpose_arguments(const td_arg *given, int n, td_arg args[SIZES]) { // those of a hidden row
  static const int from[] = {T_STRIDE, T_PADDING, T_DILATION};
  for (int k = STRIDE; k <= DILATION; k++) {
    args[k] = (td_arg){.given = 1, .count = n};
    for (int i = 0; i < n; i++) args[k].ints[i] = td_spatial_number(&given[from[k]], i);
  }
  args[GROUPS] = given[T_GROUPS];
}

static int transpose_sizes(td_infer *infer, int n, int64_t *sizes) {
  const td_meta *x = &infer->in[0], *w = &infer->in[1];
  for (int i = 0; i < n; i++) {
    int64_t in = x->shape[x->rank - n + i], stride = td_spatial_number(&infer->args[T_STRIDE], i), size = 0, reach = 0;
    int64_t dilation = td_spatial_number(&infer->args[T_DILATION], i),
            extra = td_spatial_number(&infer->args[T_OUTPUT_PADDING], i);
    if (extra >= stride && extra >= dilation) {
      int code = td_infer_fail(infer, TD_ERROR_VALUE, "output_padding %lld must be below stride %lld or dilation %lld",
                               (long long)extra, (long long)stride, (long long)dilation);
      td_error_hint(infer->context, "output_padding adds what a stride that doesn't divide has left out");
      return code;
    }
    if (__builtin_mul_overflow(in - 1, stride, &size) ||
        __builtin_mul_overflow(w->shape[2 + i] - 1, dilation, &reach) || size > TD_SPATIAL_MAX ||
        reach > TD_SPATIAL_MAX)
      return td_infer_fail(infer, TD_ERROR_SHAPE, "spatial axis %d becomes too long", i);
    sizes[i] = in ? size - 2 * td_spatial_number(&infer->args[T_PADDING], i) + reach + extra + 1 : 0;
    if (sizes[i] < 0 || (in && !sizes[i])) {
      int code = td_infer_fail(infer, TD_ERROR_SHAPE,
                               "spatial axis %d would have size %lld: padding takes away more "
                               "than there is",
                               i, (long long)sizes[i]);
      td_error_hint(infer->context, "padding=%lld fits", (long long)((size + reach + extra) / 2));
      return code;
    }
  }
  return TD_OK;
}

static int transpose_infer(td_infer *infer, int n) {
  int64_t sizes[3] = {0}, groups = infer->args[T_GROUPS].i;
  int code = check_operands(infer, n, groups, true);
  if (!code) code = td_spatial_check(infer, &infer->args[T_STRIDE], n, "stride", 1);
  if (!code) code = td_spatial_check(infer, &infer->args[T_PADDING], n, "padding", 0);
  if (!code) code = td_spatial_check(infer, &infer->args[T_OUTPUT_PADDING], n, "output_padding", 0);
  if (!code) code = td_spatial_check(infer, &infer->args[T_DILATION], n, "dilation", 1);
  if (!code) code = check_bias(infer, infer->in[1].shape[1] * groups);
  if (!code) code = transpose_sizes(infer, n, sizes);
  if (code) return code;
  set_shape(infer, n, infer->in[1].shape[1] * groups, sizes);
  return set_dtype(infer);
}

static int conv_transpose1d_infer(td_infer *infer) { return transpose_infer(infer, 1); }
static int conv_transpose2d_infer(td_infer *infer) { return transpose_infer(infer, 2); }
static int conv_transpose3d_infer(td_infer *infer) { return transpose_infer(infer, 3); }

static td_convolution transpose_of(const td_call *call) {
  td_arg args[SIZES];
  td_call same = {.args = args};
  transpose_arguments(call->args, call->in[1].rank - 2, args);
  same.out[0].dtype = call->out[0].dtype;
  return hidden_of(&same, &call->out[0], &call->in[1], &call->in[0]);
}

static int transpose_kernel(const td_call *call) {
  td_convolution v = transpose_of(call);
  return run(call, &v, true);
}

static int64_t transpose_workspace(const td_call *call) {
  td_convolution v = transpose_of(call);
  return workspace_of(call, &v, true);
}

static int transpose_vjp(td_rule *rule) {
  td_arg args[SIZES];
  td_tensor *c = rule->cotangent[0];
  transpose_arguments(rule->args, rule->in[1]->rank - 2, args);
  if (rule->needs[0]) rule->din[0] = conv_forward(&rule->scope, c, rule->in[1], args, rule->in[0]);
  if (rule->needs[1]) rule->din[1] = conv_weight(&rule->scope, c, rule->in[0], args, rule->in[1]);
  if (rule->in_count > 2 && rule->needs[2]) rule->din[2] = bias_gradient(rule);
  return TD_OK;
}

static int transpose_jvp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_arg args[SIZES];
  td_tensor y = sized(&rule->out_meta[0]), *dx = rule->tangent[0], *dw = rule->tangent[1];
  transpose_arguments(rule->args, rule->in[1]->rank - 2, args);
  return push(rule, dx ? conv_adjoint(s, dx, rule->in[1], args, &y) : NULL,
              dw ? conv_adjoint(s, rule->in[0], dw, args, &y) : NULL);
}

#define TRANSPOSE_DOC(layout)                                                                                       \
  "Transposed convolution of x, " layout " or without N, by w, [C, outputs / groups, ...], plus b, [outputs]: the " \
  "gradient of a convolution in its input.\n"                                                                       \
  "Each spatial size becomes (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1.\n"   \
  "Gradient: the convolution of the cotangent by w for x, its correlation with x for w, its sum for b."

#define TRANSPOSE_ROW(row, layout, text, ...)                                                  \
  static const td_op row = {                                                                   \
      .name = #row,                                                                            \
      .params = {TD_X, TD_TENSOR_PARAM("w"), BIAS_PARAM, STRIDE_PARAM, ZEROS_PARAM("padding"), \
                 ZEROS_PARAM("output_padding"), GROUPS_PARAM, DILATION_PARAM},                 \
      .kind = TD_KIND_OPAQUE,                                                                  \
      .infer = row##_infer,                                                                    \
      .kernel = transpose_kernel,                                                              \
      .workspace = transpose_workspace,                                                        \
      .vjp = transpose_vjp,                                                                    \
      .jvp = transpose_jvp,                                                                    \
      .saves = TD_SAVES_IN0 | TD_SAVES_IN1,                                                    \
      .doc = TRANSPOSE_DOC(layout),                                                            \
      .example = text,                                                                         \
      .samples = TD_SAMPLES{__VA_ARGS__, TD_SAMPLES_END},                                      \
  };

TRANSPOSE_ROW(conv_transpose1d, "[N, C, L]",
              "conv_transpose1d(tensor([[[1., 2.]]]), tensor([[[1., 1.]]]), stride=2).tolist()"
              "  # [[[1.0, 1.0, 2.0, 2.0]]]",
              {"2,3,4; 3,2,2; 2", NULL, -2, 2, NULL},
              {"1,4,3; 4,4,3; none", "stride=3, padding=1, output_padding=2, dilation=2", -2, 2, NULL},
              {"2,4,3; 4,2,3; 4", "groups=2, stride=2, output_padding=1", -2, 2, NULL},
              {"3,4; 3,2,2; 2", NULL, -2, 2, NULL}, {"0,3,4; 3,2,2; 2", NULL, -2, 2, NULL})
TRANSPOSE_ROW(conv_transpose2d, "[N, C, H, W]",
              "conv_transpose2d(ones((1, 1, 2, 2)), ones((1, 1, 2, 2)))[0, 0].tolist()"
              "  # [[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]",
              {"2,2,3,2; 2,4,2,2; 4", NULL, -2, 2, NULL},
              {"1,2,3,3; 2,4,3,2; none", "stride=(2, 3), padding=(1, 0), output_padding=(1, 2)", -2, 2, NULL},
              {"1,2,2,3; 2,1,3,3; 2", "groups=2, dilation=2, padding=2", -2, 2, NULL},
              {"1,1,2,2; 1,1,2,2; none", "stride=4", -2, 2, NULL})
TRANSPOSE_ROW(conv_transpose3d, "[N, C, D, H, W]",
              "conv_transpose3d(ones((1, 1, 1, 1, 1)), ones((1, 1, 2, 2, 2))).sum().item()  # 8.0",
              {"1,2,2,1,2; 2,4,2,2,2; 4", NULL, -2, 2, NULL},
              {"1,1,2,2,2; 1,1,2,1,3; none", "stride=2, padding=(0, 0, 1), output_padding=(1, 0, 1)", -2, 2, NULL})

const td_op *const td_family_convolution[] = {
    &conv1d,           &conv2d,     &conv3d,     &conv_transpose1d, &conv_transpose2d,
    &conv_transpose3d, &forward_op, &adjoint_op, &weight_op,        NULL};
