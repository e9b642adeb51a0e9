// Losses. cross_entropy works on logits: one fused kernel for the loss, one for its gradient, both stable for any
// finite logits. A line is the scores of one example: the class axis is axis 1 (axis 0 of 1-d logits). Targets are
// integer labels, one for each line, or one probability for each score.
#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/index.h"
#include "engine/ops/lines.h"
#include "engine/ops/map.h"

enum { MEAN, SUM, NONE };
static const char *const reductions[] = {"mean", "sum", "none", NULL};
#define REDUCTION_PARAM \
  { .name = "reduction", .kind = TD_PARAM_CHOICE, .fallback = TD_INT_DEFAULT(MEAN), .choices = reductions }

static int class_axis(int rank) { return rank > 1 ? 1 : 0; }

// ---- shapes ----

static bool same_shape(const td_meta *a, const td_meta *b) {
  return td_shape_equal(a->rank, a->shape, b->rank, b->shape);
}

static void without_axis(const td_meta *in, int axis, td_meta *out) {
  out->rank = 0;
  for (int i = 0; i < in->rank; i++)
    if (i != axis) out->shape[out->rank++] = in->shape[i];
}

static int target_mismatch(td_infer *infer, const td_meta *labels) {
  const td_meta *input = &infer->in[0], *target = &infer->in[1];
  bool floating = td_dtype_is_float(target->dtype);
  td_text text = {0};
  td_shape_print(&text, input->rank, input->shape);
  td_text_add(&text, " needs integer labels ");
  td_shape_print(&text, labels->rank, labels->shape);
  td_text_add(&text, " or probabilities ");
  td_shape_print(&text, input->rank, input->shape);
  td_text_print(&text, ", not %s ", td_dtype_name(target->dtype));
  td_shape_print(&text, target->rank, target->shape);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "input %s", text.data ? text.data : "");
  td_text_clear(&text);
  if (floating && same_shape(labels, target)) td_error_hint(infer->context, "cast the labels: target.astype(int64)");
  else if (target->rank == labels->rank + 1 && target->shape[target->rank - 1] == 1)
    td_error_hint(infer->context, "target.squeeze(-1) drops its last axis");
  return code;
}

static int cross_entropy_check(td_infer *infer) {
  const td_meta *input = &infer->in[0], *target = &infer->in[1];
  td_meta labels;
  if (!td_dtype_is_float(input->dtype)) {
    int code = td_infer_fail(infer, TD_ERROR_DTYPE, "input holds logits and must be floating, not %s",
                             td_dtype_name(input->dtype));
    td_error_hint(infer->context, td_dtype_is_float(target->dtype) ? "the order is (input, target): swap them"
                                                                   : "cast it: input.astype(float32)");
    return code;
  }
  if (!input->rank) return td_infer_fail(infer, TD_ERROR_SHAPE, "input is 0-d; it needs an axis of classes");
  without_axis(input, class_axis(input->rank), &labels);
  if (same_shape(input, target) || (!td_dtype_is_float(target->dtype) && same_shape(&labels, target))) return TD_OK;
  return target_mismatch(infer, &labels);
}

static int cross_entropy_infer(td_infer *infer) {
  const td_meta *input = &infer->in[0];
  int code = cross_entropy_check(infer);
  infer->out[0] = (td_meta){.dtype = input->dtype};
  if (!code && infer->args[0].i == NONE) without_axis(input, class_axis(input->rank), &infer->out[0]);
  return code;
}

// ---- kernels ----

typedef struct entropy {
  bool single, labelled;
  int64_t lines, classes, ignore, counted; // counted: lines that are not ignored
  td_flat input, labels, probabilities;
  double *losses; // one for each line
  const double *weights; // one for each line: its cotangent
  char *gradient; // lines x classes
} entropy;

#define ENTROPY(T, name)                                                                                     \
  static double name##_loss(const entropy *e, int64_t line) {                                                \
    const T *x = (const T *)e->input.data + line * e->classes;                                               \
    int64_t label = e->labelled ? ((const int64_t *)e->labels.data)[line] : 0;                               \
    if (e->labelled && label == e->ignore) return 0;                                                         \
    T largest = td_##name##_largest(x, e->classes);                                                          \
    double rest = log(td_##name##_exponentials(x, e->classes, largest, NULL)), loss = 0;                     \
    if (e->labelled) return rest - ((double)x[label] - (double)largest);                                     \
    const T *p = (const T *)e->probabilities.data + line * e->classes;                                       \
    for (int64_t i = 0; i < e->classes; i++)                                                                 \
      if (p[i] != 0) loss += (double)p[i] * (rest - ((double)x[i] - (double)largest));                       \
    return loss;                                                                                             \
  }                                                                                                          \
  static void name##_gradient(const entropy *e, int64_t line) {                                              \
    const T *x = (const T *)e->input.data + line * e->classes;                                               \
    T *out = (T *)e->gradient + line * e->classes;                                                           \
    int64_t label = e->labelled ? ((const int64_t *)e->labels.data)[line] : 0;                               \
    double weight = e->weights[line], total = 0;                                                             \
    if (weight == 0 || (e->labelled && label == e->ignore)) {                                                \
      memset(out, 0, (size_t)e->classes * sizeof(T));                                                        \
      return;                                                                                                \
    }                                                                                                        \
    const T *p = e->labelled ? NULL : (const T *)e->probabilities.data + line * e->classes;                  \
    for (int64_t i = 0; p && i < e->classes; i++) total += (double)p[i];                                     \
    double sum = td_##name##_exponentials(x, e->classes, td_##name##_largest(x, e->classes), out);           \
    double scale = weight * (p ? total : 1) / sum;                                                           \
    if (p)                                                                                                   \
      for (int64_t i = 0; i < e->classes; i++) out[i] = (T)((double)out[i] * scale - (double)p[i] * weight); \
    else {                                                                                                   \
      double at = (double)out[label] * scale - weight;                                                       \
      for (int64_t i = 0; i < e->classes; i++) out[i] = (T)((double)out[i] * scale);                         \
      out[label] = (T)at;                                                                                    \
    }                                                                                                        \
  }
ENTROPY(float, single)
ENTROPY(double, twofold)

static int label_fail(const td_call *call, const entropy *e, int64_t line, int64_t label) {
  int64_t index[TD_RANK_MAX], rest = line;
  const td_view *target = &call->in[1];
  for (int i = target->rank; i-- > 0;) {
    index[i] = rest % target->shape[i];
    rest /= target->shape[i];
  }
  td_text text = {0};
  td_shape_print(&text, target->rank, index);
  int code = td_error_set(call->context, TD_ERROR_INDEX,
                          "cross_entropy: label %lld at index %s is out of range for %lld classes", (long long)label,
                          text.data ? text.data : "", (long long)e->classes);
  td_text_clear(&text);
  if (label == e->classes) td_error_hint(call->context, "labels count from 0");
  return code;
}

static int check_labels(const td_call *call, entropy *e) {
  const int64_t *labels = (const int64_t *)e->labels.data;
  e->counted = 0;
  for (int64_t i = 0; i < e->lines; i++) {
    if (labels[i] == e->ignore) continue;
    if (labels[i] < 0 || labels[i] >= e->classes) return label_fail(call, e, i, labels[i]);
    e->counted++;
  }
  return TD_OK;
}

static void entropy_close(entropy *e) {
  td_flat_close(&e->input);
  td_flat_close(&e->labels);
  td_flat_close(&e->probabilities);
}

static int open_lines(const td_call *call, int input, uint8_t dtype, td_flat *flat) { // with the class axis last
  const td_view *view = &call->in[input];
  int axes[TD_RANK_MAX], axis = class_axis(view->rank);
  td_view turned;
  for (int i = 0; i < view->rank; i++) axes[i] = i < axis ? i : i + 1 < view->rank ? i + 1 : axis;
  td_view_permute(&turned, view, axes);
  return td_flat_open(call, &turned, dtype, flat);
}

static int entropy_open(const td_call *call, entropy *e) {
  const td_view *input = &call->in[0], *target = &call->in[1];
  uint8_t dtype = input->dtype;
  *e = (entropy){
      .single = dtype == TD_FLOAT32, .labelled = target->rank < input->rank, .ignore = call->args[1].i, .lines = 1};
  e->classes = input->shape[class_axis(input->rank)];
  for (int i = 0; i < input->rank; i++)
    if (i != class_axis(input->rank)) e->lines *= input->shape[i];
  int code = open_lines(call, 0, dtype, &e->input);
  if (!code && e->labelled) code = td_flat_open(call, target, TD_INT64, &e->labels);
  if (!code && !e->labelled) code = open_lines(call, 1, dtype, &e->probabilities);
  e->counted = e->lines;
  if (!code && e->labelled) code = check_labels(call, e);
  if (code) entropy_close(e);
  return code;
}

static void loss_lines(void *argument, int64_t first, int64_t last) {
  const entropy *e = argument;
  for (int64_t i = first; i < last; i++) e->losses[i] = e->single ? single_loss(e, i) : twofold_loss(e, i);
}

static void gradient_lines(void *argument, int64_t first, int64_t last) {
  const entropy *e = argument;
  for (int64_t i = first; i < last; i++) {
    if (e->single) single_gradient(e, i);
    else twofold_gradient(e, i);
  }
}

static void store(const td_view *out, int64_t index, double value) {
  if (out->dtype == TD_FLOAT32) ((float *)out->data)[index] = (float)value;
  else ((double *)out->data)[index] = value;
}

static int cross_entropy_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  int64_t how = call->args[0].i;
  entropy e;
  int code = entropy_open(call, &e);
  if (code) return code;
  e.losses = td_memory_new((size_t)e.lines * sizeof *e.losses);
  if (!e.losses) code = td_error_memory(call->context, "cross_entropy", e.lines * (int64_t)sizeof *e.losses);
  else {
    td_ranges_run(call->context->pool, e.lines, e.classes * 4, loss_lines, &e);
    double total = 0;
    for (int64_t i = 0; i < e.lines; i++) {
      total += e.losses[i];
      if (how == NONE) store(out, i, e.losses[i]);
    }
    if (how != NONE) store(out, 0, how == MEAN && e.counted ? total / (double)e.counted : total);
    if (how == MEAN && !e.counted && call->context->warn)
      call->context->warn(call->context->owner, "cross_entropy: every label is ignored, so the loss is 0");
  }
  td_memory_free(e.losses);
  entropy_close(&e);
  return code;
}

static int adjoint_infer(td_infer *infer) {
  infer->out[0] = infer->in[0];
  return cross_entropy_check(infer);
}

static void turn_back(const td_call *call, const char *lines) { // lines with the class axis last, to the result
  const td_view *out = &call->out[0];
  int axes[TD_RANK_MAX], axis = class_axis(out->rank);
  int64_t strides[TD_RANK_MAX], stride = 1;
  td_view turned;
  for (int i = 0; i < out->rank; i++) axes[i] = i < axis ? i : i + 1 < out->rank ? i + 1 : axis;
  td_view_permute(&turned, out, axes);
  for (int i = out->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= turned.shape[i];
  }
  td_elements_place(out->data, turned.strides, lines, strides, td_dtype_bytes(out->dtype), out->rank, turned.shape);
}

static int adjoint_kernel(const td_call *call) {
  const td_view *out = &call->out[0];
  int64_t how = call->args[0].i;
  bool apart = out->rank > 2;
  entropy e;
  td_flat cotangent;
  int code = entropy_open(call, &e);
  if (code) return code;
  code = td_flat_open(call, &call->in[2], TD_FLOAT64, &cotangent);
  if (!code) {
    int64_t bytes = out->size * td_dtype_bytes(out->dtype), weight_bytes = e.lines * (int64_t)sizeof(double);
    double *weights = td_memory_new((size_t)weight_bytes);
    e.gradient = apart ? td_memory_new((size_t)bytes) : out->data;
    const double *given = (const double *)cotangent.data;
    if (weights && e.gradient) {
      for (int64_t i = 0; i < e.lines; i++)
        weights[i] = how == NONE ? given[i] : how == MEAN && e.counted ? *given / (double)e.counted : *given;
      e.weights = weights;
      td_ranges_run(call->context->pool, e.lines, e.classes * 4, gradient_lines, &e);
      if (apart) turn_back(call, e.gradient);
    } else code = td_error_memory(call->context, "cross_entropy", weights ? bytes : weight_bytes);
    td_memory_free(weights);
    if (apart) td_memory_free(e.gradient);
    td_flat_close(&cotangent);
  }
  entropy_close(&e);
  return code;
}

// ---- gradients ----

// The cotangent of each line, as a tensor that broadcasts against the input.
static td_tensor *line_weights(td_scope *s, const td_tensor *input, td_tensor *target, td_tensor *c,
                               const td_arg *args) {
  td_meta lines = {.rank = input->rank};
  int axis = class_axis(input->rank);
  int64_t count = 1;
  for (int i = 0; i < input->rank; i++) {
    lines.shape[i] = i == axis ? 1 : input->shape[i];
    count *= lines.shape[i];
  }
  if (args[0].i == NONE) c = td_reshape(s, c, lines.rank, lines.shape);
  if (target->rank == input->rank)
    return args[0].i == MEAN ? td_divide(s, c, td_scope_number(s, (double)(count ? count : 1), c)) : c;
  td_tensor *one = td_scope_number(s, 1, c), *zero = td_scope_number(s, 0, c);
  td_tensor *ignore = td_scope_own(s, td_tensor_from_int(s->context, args[1].i, TD_INT64));
  td_tensor *counts = td_where(s, td_equal(s, target, ignore), zero, one);
  if (args[0].i == MEAN) {
    td_tensor *counted = td_sum(s, counts, NULL, false);
    c = td_divide(s, c, td_where(s, td_equal(s, counted, zero), one, counted));
  }
  return td_multiply(s, c, td_reshape(s, counts, lines.rank, lines.shape));
}

static td_tensor *adjoint(td_scope *s, td_tensor *input, td_tensor *target, td_tensor *c, const td_arg *args);

static int cross_entropy_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *input = rule->in[0], *target = rule->in[1], *c = rule->cotangent[0];
  if (rule->needs[0]) rule->din[0] = adjoint(s, input, target, c, rule->args);
  if (!rule->needs[1]) return TD_OK;
  td_tensor *logs = td_log_softmax(s, input, class_axis(input->rank));
  rule->din[1] = td_negative(s, td_multiply(s, line_weights(s, input, target, c, rule->args), logs));
  return TD_OK;
}

// The adjoint is g (P y - t): g the lines' weights, y the softmax, t the target, P its sum (1 for labels).
static int adjoint_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *input = rule->in[0], *target = rule->in[1], *g = rule->in[2], *c = rule->cotangent[0];
  bool labelled = target->rank < input->rank;
  td_arg axis = {.given = 1, .count = 1, .ints = {class_axis(input->rank)}};
  td_tensor *y = td_softmax(s, input, axis.ints[0]), *w = line_weights(s, input, target, g, rule->args);
  td_tensor *inner = td_sum(s, td_multiply(s, c, y), &axis, true);
  if (rule->needs[0]) {
    td_tensor *d = td_multiply(s, w, td_multiply(s, y, td_subtract(s, c, inner)));
    rule->din[0] = labelled ? d : td_multiply(s, d, td_sum(s, target, &axis, true));
  }
  if (rule->needs[1]) rule->din[1] = td_multiply(s, w, td_subtract(s, inner, c));
  if (!rule->needs[2]) return TD_OK;
  const td_meta *meta = &rule->in_meta[2];
  td_tensor *unit = adjoint(s, input, target, td_scope_filled(s, 1, meta), rule->args);
  rule->din[2] = td_sum(s, td_multiply(s, c, unit), rule->args[0].i == NONE ? &axis : NULL, false);
  return TD_OK;
}

#define ENTROPY_ARGS \
  REDUCTION_PARAM, { .name = "ignore_index", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(-100) }

static const td_op cross_entropy = {
    .name = "cross_entropy",
    .params = {TD_TENSOR_PARAM("input"), TD_TENSOR_PARAM("target"), ENTROPY_ARGS},
    .kind = TD_KIND_OPAQUE,
    .infer = cross_entropy_infer,
    .kernel = cross_entropy_kernel,
    .vjp = cross_entropy_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc = "Cross entropy of logits: -log(softmax(input)[label]) for each example, averaged, summed or as it is.\n"
           "input: [N, C] (or [C], or [N, C, ...]: classes on axis 1). target: integer labels [N], or one-hot rows or "
           "class "
           "probabilities [N, C].\nLabels equal to ignore_index don't count; when all are ignored the mean is 0, with "
           "a warning.\n"
           "Gradient: (softmax(input) - target) / N.",
    .example = "round(cross_entropy(tensor([[1., 2., 3.]]), tensor([2])).item(), 5)  # 0.40761",
    .samples = TD_SAMPLES{{"3,4; 3", NULL, 0, 3, "float64; int64"},
                          {"3,4; 3,4", NULL, 0.1, 1, NULL},
                          {"3,4; 3", "reduction=\"none\", ignore_index=1", 0, 3, "float64; int64"},
                          {"4; -", "reduction=\"sum\"", 0, 3, "float64; int64"},
                          {"2,4,3; 2,3", NULL, 0, 3, "float64; int64"},
                          {"2,4,3; 2,4,3", "reduction=\"none\"", 0.1, 1, NULL},
                          TD_SAMPLES_END},
};

static const td_op cross_entropy_adjoint = {
    .name = "cross_entropy_adjoint",
    .params = {TD_TENSOR_PARAM("input"), TD_TENSOR_PARAM("target"), TD_TENSOR_PARAM("cotangent"), ENTROPY_ARGS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = adjoint_infer,
    .kernel = adjoint_kernel,
    .vjp = adjoint_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc = "Gradient of cross_entropy in its input: cotangent (softmax(input) - target), divided by the number of "
           "examples "
           "where the loss is their mean.\nGradient: by softmax's.",
    .samples = TD_SAMPLES{{"3,4; 3; -", NULL, 0, 3, "float64; int64; float64"},
                          {"3,4; 3,4; 3", "reduction=\"none\"", 0.1, 1, NULL},
                          TD_SAMPLES_END},
};

static td_tensor *adjoint(td_scope *s, td_tensor *input, td_tensor *target, td_tensor *c, const td_arg *args) {
  return td_scope_apply(s, &cross_entropy_adjoint, args, 3, input, target, c);
}

// ---- mse_loss ----

enum { BLOCK = 1 << 14 };

static int mse_mismatch(td_infer *infer) {
  const td_meta *input = &infer->in[0], *target = &infer->in[1];
  td_text text = {0};
  td_shape_print(&text, input->rank, input->shape);
  td_text_add(&text, " and ");
  td_shape_print(&text, target->rank, target->shape);
  td_text_add(&text, " would broadcast to ");
  td_shape_print(&text, infer->out[0].rank, infer->out[0].shape);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "shapes %s", text.data ? text.data : "");
  td_text_clear(&text);
  td_shape_print(&text, input->rank, input->shape);
  if (td_shape_size(input->rank, input->shape) == td_shape_size(target->rank, target->shape) && text.data)
    td_error_hint(infer->context, "target.reshape((%.*s%s)) fits; broadcast=True compares all pairs",
                  (int)text.length - 2, text.data + 1, input->rank == 1 ? "," : "");
  else td_error_hint(infer->context, "broadcast=True repeats the smaller one");
  td_text_clear(&text);
  return code;
}

static int mse_infer(td_infer *infer) {
  const td_meta *input = &infer->in[0], *target = &infer->in[1];
  td_meta *out = &infer->out[0];
  int code = td_infer_broadcast(infer, 0, 1, out);
  if (code) return code;
  out->dtype = td_dtype_promote(input->dtype, target->dtype);
  if (!td_dtype_is_float(out->dtype)) out->dtype = TD_FLOAT32;
  if (!same_shape(input, target) && !infer->args[1].i) return mse_mismatch(infer);
  if (infer->args[0].i != NONE) out->rank = 0;
  return TD_OK;
}

typedef struct squares {
  bool single;
  int64_t size;
  const char *input, *target;
  char *out; // one for each element, or NULL
  double *sums; // one for each block
} squares;

#define SQUARES(T, name)                                                                     \
  TD_CLONES static double name##_squares(const T *a, const T *b, T *out, int64_t n) {        \
    enum { LANES = 8 };                                                                      \
    double sums[LANES] = {0}, sum = 0;                                                       \
    int64_t i = 0;                                                                           \
    for (; out && i < n; i++) out[i] = (a[i] - b[i]) * (a[i] - b[i]);                        \
    for (; i + LANES <= n; i += LANES)                                                       \
      for (int l = 0; l < LANES; l++) {                                                      \
        double d = (double)a[i + l] - (double)b[i + l];                                      \
        sums[l] += d * d;                                                                    \
      }                                                                                      \
    for (; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]); \
    for (int l = 0; l < LANES; l++) sum += sums[l];                                          \
    return sum;                                                                              \
  }
SQUARES(float, single)
SQUARES(double, twofold)

static void square_blocks(void *argument, int64_t first, int64_t last) {
  const squares *w = argument;
  for (int64_t b = first; b < last; b++) {
    int64_t at = b * BLOCK, n = w->size - at < BLOCK ? w->size - at : BLOCK;
    if (w->single)
      w->sums[b] = single_squares((const float *)w->input + at, (const float *)w->target + at,
                                  w->out ? (float *)w->out + at : NULL, n);
    else
      w->sums[b] = twofold_squares((const double *)w->input + at, (const double *)w->target + at,
                                   w->out ? (double *)w->out + at : NULL, n);
  }
}

static int mse_run(const td_call *call, int64_t size, const char *input, const char *target) {
  const td_view *out = &call->out[0];
  int64_t blocks = (size + BLOCK - 1) / BLOCK, how = call->args[0].i;
  squares w = {out->dtype == TD_FLOAT32, size, input, target, how == NONE ? out->data : NULL, NULL};
  w.sums = td_memory_new((size_t)blocks * sizeof *w.sums);
  if (!w.sums) return td_error_memory(call->context, "mse_loss", blocks * (int64_t)sizeof *w.sums);
  td_ranges_run(call->context->pool, blocks, BLOCK, square_blocks, &w);
  double total = 0;
  for (int64_t b = 0; b < blocks; b++) total += w.sums[b];
  if (how != NONE) store(out, 0, how == MEAN ? total / (double)size : total);
  td_memory_free(w.sums);
  return TD_OK;
}

static int mse_kernel(const td_call *call) {
  const td_view *input = &call->in[0], *target = &call->in[1];
  int64_t shape[TD_RANK_MAX];
  int rank;
  td_view spread[2];
  td_flat a, b;
  td_shape_broadcast(input->rank, input->shape, target->rank, target->shape, &rank, shape, NULL);
  td_view_broadcast(&spread[0], input, rank, shape);
  td_view_broadcast(&spread[1], target, rank, shape);
  int code = td_flat_open(call, &spread[0], call->out[0].dtype, &a);
  if (code) return code;
  code = td_flat_open(call, &spread[1], call->out[0].dtype, &b);
  if (!code) {
    code = mse_run(call, spread[0].size, a.data, b.data);
    td_flat_close(&b);
  }
  td_flat_close(&a);
  return code;
}

static int mse_vjp(td_rule *rule) { // 2 (input - target) c, divided by the number of pairs where the loss is their mean
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0], *difference = td_subtract(s, rule->in[0], rule->in[1]);
  double size = rule->args[0].i == MEAN && difference ? (double)difference->size : 1;
  td_tensor *d = td_chain(s, td_multiply(s, c, td_scope_number(s, 2 / size, c)), difference);
  if (rule->needs[0]) rule->din[0] = d;
  if (rule->needs[1]) rule->din[1] = td_negative(s, d);
  return TD_OK;
}

static const td_op mse_loss = {
    .name = "mse_loss",
    .params = {TD_TENSOR_PARAM("input"),
               TD_TENSOR_PARAM("target"),
               REDUCTION_PARAM,
               {.name = "broadcast", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_OPAQUE,
    .infer = mse_infer,
    .kernel = mse_kernel,
    .vjp = mse_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .doc = "Squared differences of input and target, averaged, summed or as they are.\n"
           "Shapes that differ are an error, because (n, 1) and (n,) would compare all pairs; broadcast=True asks for "
           "that.\n"
           "Gradient: 2 (input - target) / n for the mean.",
    .example = "mse_loss(tensor([1., 2.]), tensor([1., 4.])).item()  # 2.0",
    .samples = TD_SAMPLES{{"2,3; 2,3", NULL, -2, 2, NULL},
                          {"2,3; 2,3", "reduction=\"none\"", -2, 2, NULL},
                          {"3,1; 3", "broadcast=True, reduction=\"sum\"", -2, 2, NULL},
                          {"3,1; 3", "broadcast=True", -2, 2, NULL},
                          TD_SAMPLES_END},
};

const td_op *const td_family_loss[] = {&cross_entropy, &cross_entropy_adjoint, &mse_loss, NULL};
