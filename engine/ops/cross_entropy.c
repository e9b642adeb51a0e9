// cross_entropy of logits and nll_loss of log-probabilities. A line is the scores of one example: the class axis is
// axis 1 (axis 0 of 1-d inputs). Targets are integer labels, one for each line, or (cross_entropy) one probability for
// each score. With weights w and smoothing s over C classes, a line's loss is -sum(w u log(softmax(x))) with u the
// target, times 1 - s, plus s / C. One fused kernel gives the loss and one its gradient, both stable for any finite
// logits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/device/cpu/clones.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/index.h"
#include "engine/ops/lines.h"
#include "engine/ops/pointwise.h"

enum { REDUCTION, IGNORE, SMOOTHING }; // arguments
enum { INPUT, TARGET, WEIGHT, COTANGENT }; // inputs

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

static int target_mismatch(td_infer *infer, const td_meta *labels, bool dense) {
  const td_meta *input = &infer->in[INPUT], *target = &infer->in[TARGET];
  bool floating = td_dtype_is_float(target->dtype);
  td_text text = {0};
  td_shape_print(&text, input->rank, input->shape);
  td_text_add(&text, " needs integer labels ");
  td_shape_print(&text, labels->rank, labels->shape);
  if (dense) {
    td_text_add(&text, " or probabilities ");
    td_shape_print(&text, input->rank, input->shape);
  }
  td_text_print(&text, ", not %s ", td_dtype_name(target->dtype));
  td_shape_print(&text, target->rank, target->shape);
  int code = td_infer_fail(infer, TD_ERROR_SHAPE, "input %s", text.data ? text.data : "");
  td_text_clear(&text);
  if (floating && same_shape(labels, target)) td_error_hint(infer->context, "cast the labels: target.astype(int64)");
  else if (target->rank == labels->rank + 1 && target->shape[target->rank - 1] == 1)
    td_error_hint(infer->context, "target.squeeze(-1) drops its last axis");
  return code;
}

static int check_weight(td_infer *infer) {
  const td_meta *input = &infer->in[INPUT];
  int64_t classes = input->shape[class_axis(input->rank)];
  if (infer->in_count <= WEIGHT || infer->in[WEIGHT].rank > TD_RANK_MAX) return TD_OK;
  const td_meta *weight = &infer->in[WEIGHT];
  if (weight->rank == 1 && weight->shape[0] == classes) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "weight needs one number for each of the %lld classes",
                       (long long)classes);
}

static int check_inputs(td_infer *infer, bool dense) {
  const td_meta *input = &infer->in[INPUT], *target = &infer->in[TARGET];
  td_meta labels;
  if (!td_dtype_is_float(input->dtype)) {
    int code = td_infer_fail(infer, TD_ERROR_DTYPE, "input holds %s and must be floating, not %s",
                             dense ? "logits" : "log-probabilities", td_dtype_name(input->dtype));
    td_error_hint(infer->context, td_dtype_is_float(target->dtype) ? "the order is (input, target): swap them"
                                                                   : "cast it: input.astype(float32)");
    return code;
  }
  if (!input->rank) return td_infer_fail(infer, TD_ERROR_SHAPE, "input is 0-d; it needs an axis of classes");
  without_axis(input, class_axis(input->rank), &labels);
  bool fits = !td_dtype_is_float(target->dtype) && same_shape(&labels, target);
  if (!fits && !(dense && same_shape(input, target))) return target_mismatch(infer, &labels, dense);
  return check_weight(infer);
}

static int loss_infer(td_infer *infer, bool dense) {
  const td_meta *input = &infer->in[INPUT];
  int code = check_inputs(infer, dense);
  infer->out[0] = (td_meta){.dtype = input->dtype};
  if (!code && infer->args[REDUCTION].i == TD_LOSS_NONE) without_axis(input, class_axis(input->rank), &infer->out[0]);
  return code;
}

static int check_smoothing(td_infer *infer) {
  double s = infer->args[SMOOTHING].f;
  return s >= 0 && s <= 1 ? TD_OK
                          : td_infer_fail(infer, TD_ERROR_VALUE, "label_smoothing must be from 0 to 1, not %g", s);
}

static int cross_entropy_infer(td_infer *infer) {
  int code = loss_infer(infer, true);
  return code ? code : check_smoothing(infer);
}

static int nll_infer(td_infer *infer) { return loss_infer(infer, false); }

static int adjoint_infer(td_infer *infer) {
  infer->out[0] = infer->in[INPUT];
  return check_inputs(infer, true);
}

// ---- kernels ----

typedef struct entropy {
  bool single;
  int64_t lines, classes, ignore;
  double smoothing, weight_total, divisor; // divisor: of the mean
  const char *input, *probabilities; // lines x classes; probabilities NULL: targets are labels
  const int64_t *labels; // one for each line
  const double *weights; // one for each class; NULL: all 1
  double *losses; // one for each line
  const double *cotangents; // one, or one for each line
  bool cotangent_each;
  char *gradient; // lines x classes
} entropy;

static double weight_of(const entropy *e, int64_t class) { return e->weights ? e->weights[class] : 1; }

static bool is_ignored(const entropy *e, int64_t line) { return e->labels && e->labels[line] == e->ignore; }

// What multiplies -log(softmax(x)) of a class: its weight times the smoothed target.
#define TARGET_OF(p, label, i) \
  (weight_of(e, i) *           \
   ((p ? (double)p[i] : (double)(i == label)) * (1 - e->smoothing) + e->smoothing / (double)e->classes))

// The sum of a line's exponentials, but for one class, is kept apart: where that class has nearly all, the others' sum
// would have lost its digits beside it.
#define ENTROPY(T, name)                                                                                          \
  static int64_t name##_apart(const entropy *e, const T *x, int64_t line, T largest) { /* the class */            \
    return e->labels && e->smoothing == 0 ? e->labels[line] : td_##name##_first(x, e->classes, largest);          \
  }                                                                                                               \
  static double name##_spread_loss(const entropy *e, const T *x, const T *p, int64_t label, double largest,       \
                                   double rest) {                                                                 \
    double loss = 0;                                                                                              \
    for (int64_t i = 0; i < e->classes; i++) {                                                                    \
      double t = TARGET_OF(p, label, i);                                                                          \
      if (t != 0) loss += t * (rest - ((double)x[i] - largest));                                                  \
    }                                                                                                             \
    return loss;                                                                                                  \
  }                                                                                                               \
  static double name##_loss(const entropy *e, int64_t line) {                                                     \
    const T *x = (const T *)e->input + line * e->classes;                                                         \
    const T *p = e->probabilities ? (const T *)e->probabilities + line * e->classes : NULL;                       \
    int64_t label = e->labels ? e->labels[line] : 0;                                                              \
    T largest = td_##name##_largest(x, e->classes);                                                               \
    int64_t apart = name##_apart(e, x, line, largest);                                                            \
    double others = td_##name##_exponentials(x, e->classes, apart, largest, NULL);                                \
    double below = (double)x[apart] - (double)largest;                                                            \
    double rest = below == 0 ? log1p(others) : log(others + exp(below));                                          \
    if (p || e->smoothing > 0) return name##_spread_loss(e, x, p, label, (double)largest, rest);                  \
    return weight_of(e, label) * (rest - ((double)x[label] - (double)largest));                                   \
  }                                                                                                               \
  static double name##_score(const entropy *e, int64_t line) {                                                    \
    int64_t label = e->labels[line];                                                                              \
    return -weight_of(e, label) * (double)((const T *)e->input)[line * e->classes + label];                       \
  }                                                                                                               \
  static void name##_spread_gradient(const entropy *e, const T *p, int64_t label, T *out, double c,               \
                                     int64_t apart, double others, double sum) {                                  \
    double rest = 0;                                                                                              \
    for (int64_t i = 0; i < e->classes; i++) rest += i == apart ? 0 : TARGET_OF(p, label, i);                     \
    double total = rest + TARGET_OF(p, label, apart), scale = c * total / sum;                                    \
    for (int64_t i = 0; i < e->classes; i++) out[i] = (T)((double)out[i] * scale - c * TARGET_OF(p, label, i));   \
    out[apart] = (T)(c * rest - scale * others);                                                                  \
  }                                                                                                               \
  TD_CLONES static void name##_scale(T *x, int64_t n, T factor) {                                                 \
    for (int64_t i = 0; i < n; i++) x[i] *= factor;                                                               \
  }                                                                                                               \
  static void name##_gradient(const entropy *e, int64_t line, double c) {                                         \
    const T *x = (const T *)e->input + line * e->classes;                                                         \
    const T *p = e->probabilities ? (const T *)e->probabilities + line * e->classes : NULL;                       \
    T *out = (T *)e->gradient + line * e->classes;                                                                \
    int64_t label = e->labels ? e->labels[line] : 0;                                                              \
    T largest = td_##name##_largest(x, e->classes);                                                               \
    int64_t apart = name##_apart(e, x, line, largest);                                                            \
    double others = td_##name##_exponentials(x, e->classes, apart, largest, out);                                 \
    double sum = others + (double)out[apart];                                                                     \
    if (p || e->smoothing > 0) {                                                                                  \
      name##_spread_gradient(e, p, label, out, c, apart, others, sum);                                            \
      return;                                                                                                     \
    }                                                                                                             \
    double scale = c * weight_of(e, label) / sum;                                                                 \
    name##_scale(out, e->classes, (T)scale);                                                                      \
    out[label] = (T)(-scale * others);                                                                            \
  }
ENTROPY(float, single)
ENTROPY(double, twofold)

static int label_fail(const td_call *call, const entropy *e, int64_t line, int64_t label) {
  int64_t index[TD_RANK_MAX], rest = line;
  const td_view *target = &call->in[TARGET];
  for (int i = target->rank; i-- > 0;) {
    index[i] = rest % target->shape[i];
    rest /= target->shape[i];
  }
  td_text text = {0};
  td_shape_print(&text, target->rank, index);
  int code =
      td_error_set(call->context, TD_ERROR_INDEX, "%s: target: label %lld at index %s is out of range for %lld classes",
                   call->op->name, (long long)label, text.data ? text.data : "", (long long)e->classes);
  td_text_clear(&text);
  if (label == e->classes) td_error_hint(call->context, "labels count from 0");
  return code;
}

// Checks the labels and adds up the weights of those that count.
static int count_labels(const td_call *call, entropy *e) {
  int64_t counted = 0;
  double total = 0;
  for (int64_t i = 0; i < e->lines; i++) {
    if (is_ignored(e, i)) continue;
    if (e->labels[i] < 0 || e->labels[i] >= e->classes) return label_fail(call, e, i, e->labels[i]);
    counted++;
    if (e->weights) total += e->weights[e->labels[i]];
  }
  e->divisor = e->weights ? total : (double)counted;
  if (counted || call->args[REDUCTION].i != TD_LOSS_MEAN || call->op->flags & TD_HIDDEN || !call->context->warn)
    return TD_OK;
  char message[100];
  snprintf(message, sizeof message, "%s: every label is ignored, so the loss is 0", call->op->name);
  call->context->warn(call->context->owner, message);
  return TD_OK;
}

static void class_last(const td_view *view, td_view *turned) {
  int axes[TD_RANK_MAX], axis = class_axis(view->rank);
  for (int i = 0; i < view->rank; i++) axes[i] = i < axis ? i : i + 1 < view->rank ? i + 1 : axis;
  td_view_permute(turned, view, axes);
}

static const void *place_lines(const td_call *call, td_scratch *scratch, int input, uint8_t dtype) {
  td_view turned;
  class_last(&call->in[input], &turned);
  return td_scratch_view(scratch, call->context->pool, &turned, dtype);
}

static bool is_given(const td_call *call, int input) { return input < call->in_count && call->in[input].data; }

static void place(const td_call *call, td_scratch *scratch, entropy *e) {
  const td_view *input = &call->in[INPUT], *target = &call->in[TARGET];
  td_pool *pool = call->context->pool;
  *e = (entropy){.single = input->dtype == TD_FLOAT32, .ignore = call->args[IGNORE].i};
  e->classes = input->shape[class_axis(input->rank)];
  e->lines = 1;
  for (int i = 0; i < input->rank; i++)
    if (i != class_axis(input->rank)) e->lines *= input->shape[i];
  e->input = place_lines(call, scratch, INPUT, input->dtype);
  if (target->rank < input->rank) e->labels = td_scratch_view(scratch, pool, target, TD_INT64);
  else e->probabilities = place_lines(call, scratch, TARGET, input->dtype);
  if (is_given(call, WEIGHT)) e->weights = td_scratch_view(scratch, pool, &call->in[WEIGHT], TD_FLOAT64);
  e->divisor = (double)e->lines;
}

static void place_loss(const td_call *call, td_scratch *scratch, entropy *e) {
  place(call, scratch, e);
  e->losses = td_scratch_take(scratch, e->lines, sizeof *e->losses);
}

static void place_adjoint(const td_call *call, td_scratch *scratch, entropy *e) {
  const td_view *out = &call->out[0];
  place(call, scratch, e);
  e->cotangents = td_scratch_view(scratch, call->context->pool, &call->in[COTANGENT], TD_FLOAT64);
  e->cotangent_each = call->args[REDUCTION].i == TD_LOSS_NONE;
  e->gradient = out->rank > 2 ? td_scratch_take(scratch, out->size, td_dtype_bytes(out->dtype)) : out->data;
}

static int64_t loss_workspace(const td_call *call) {
  td_scratch scratch = {0};
  entropy e;
  place_loss(call, &scratch, &e);
  return scratch.used;
}

static int64_t adjoint_workspace(const td_call *call) {
  td_scratch scratch = {0};
  entropy e;
  place_adjoint(call, &scratch, &e);
  return scratch.used;
}

static void loss_lines(void *argument, int64_t first, int64_t last) {
  const entropy *e = argument;
  for (int64_t i = first; i < last; i++)
    e->losses[i] = is_ignored(e, i) ? 0 : e->single ? single_loss(e, i) : twofold_loss(e, i);
}

static void score_lines(void *argument, int64_t first, int64_t last) {
  const entropy *e = argument;
  for (int64_t i = first; i < last; i++)
    e->losses[i] = is_ignored(e, i) ? 0 : e->single ? single_score(e, i) : twofold_score(e, i);
}

static void gradient_lines(void *argument, int64_t first, int64_t last) {
  const entropy *e = argument;
  size_t bytes = (size_t)e->classes * (e->single ? sizeof(float) : sizeof(double));
  for (int64_t i = first; i < last; i++) {
    double c = e->cotangents[e->cotangent_each ? i : 0] / (e->divisor != 0 ? e->divisor : 1);
    if (c == 0 || is_ignored(e, i)) memset(e->gradient + (size_t)i * bytes, 0, bytes);
    else if (e->single) single_gradient(e, i, c);
    else twofold_gradient(e, i, c);
  }
}

static void store(const td_view *out, int64_t index, double value) {
  if (out->dtype == TD_FLOAT32) ((float *)out->data)[index] = (float)value;
  else ((double *)out->data)[index] = value;
}

static int run_loss(const td_call *call, td_range *lines) {
  td_scratch scratch = {.at = call->workspace};
  int64_t how = call->args[REDUCTION].i;
  entropy e;
  place_loss(call, &scratch, &e);
  if (lines == loss_lines) e.smoothing = call->args[SMOOTHING].f;
  int code = e.labels ? count_labels(call, &e) : TD_OK;
  if (code) return code;
  td_ranges_run(call->context->pool, e.lines, lines == loss_lines ? e.classes * 4 : 1, lines, &e);
  double total = 0;
  for (int64_t i = 0; i < e.lines; i++) {
    total += e.losses[i];
    if (how == TD_LOSS_NONE) store(&call->out[0], i, e.losses[i]);
  }
  if (how != TD_LOSS_NONE) store(&call->out[0], 0, how == TD_LOSS_MEAN && e.divisor != 0 ? total / e.divisor : total);
  return TD_OK;
}

static int cross_entropy_kernel(const td_call *call) { return run_loss(call, loss_lines); }
static int nll_kernel(const td_call *call) { return run_loss(call, score_lines); }

static void turn_back(const td_view *out, const char *lines) { // lines with the class axis last, to the result
  int64_t strides[TD_RANK_MAX], stride = 1;
  td_view turned;
  class_last(out, &turned);
  for (int i = out->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= turned.shape[i];
  }
  td_elements_place(out->data, turned.strides, lines, strides, td_dtype_bytes(out->dtype), out->rank, turned.shape);
}

static int adjoint_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  entropy e;
  place_adjoint(call, &scratch, &e);
  e.smoothing = call->args[SMOOTHING].f;
  int code = e.labels ? count_labels(call, &e) : TD_OK;
  if (code) return code;
  if (call->args[REDUCTION].i != TD_LOSS_MEAN) e.divisor = 1;
  td_ranges_run(call->context->pool, e.lines, e.classes * 4, gradient_lines, &e);
  if (e.gradient != call->out[0].data) turn_back(&call->out[0], e.gradient);
  return TD_OK;
}

// ---- gradients ----

// A rule's inputs as tensors that broadcast against the input.
typedef struct parts {
  td_tensor *weight; // of each class; NULL: all 1
  td_tensor *labels; // 1 at the label of each line that counts; NULL: targets are probabilities
  td_tensor *target; // u
  td_tensor *divisor; // of the mean; NULL: no mean
  td_tensor *lines; // cotangent of each line's loss
} parts;

static td_tensor *at_class_axis(td_scope *s, td_tensor *t, int rank,
                                bool classes) { // t[C], or t[N, ...] without classes
  int64_t shape[TD_RANK_MAX];
  int axis = class_axis(rank);
  for (int i = 0, from = 0; i < rank && t; i++) shape[i] = (i == axis) == classes ? t->shape[from++] : 1;
  return td_reshape(s, t, rank, shape);
}

static td_tensor *one_at_labels(td_scope *s, const td_tensor *input, td_tensor *target, int64_t ignore) {
  int rank = input->rank;
  td_tensor *classes = at_class_axis(s, td_arange(s, input->shape[class_axis(rank)]), rank, true);
  td_tensor *labels = at_class_axis(s, td_cast(s, target, TD_INT64), rank, false);
  td_tensor *none = td_scope_own(s, td_tensor_from_int(s->context, ignore, TD_INT64));
  td_tensor *outside = td_scope_own(s, td_tensor_from_int(s->context, -1, TD_INT64));
  td_tensor *counted = td_where(s, td_equal(s, labels, none), outside, labels);
  return td_where(s, td_equal(s, counted, classes), td_scope_number(s, 1, input), td_scope_number(s, 0, input));
}

static td_tensor *sum_classes(td_scope *s, td_tensor *t) {
  td_arg axis = {.given = 1, .count = 1, .ints = {t ? class_axis(t->rank) : 0}};
  return td_sum(s, t, &axis, true);
}

static td_tensor *weighted(td_scope *s, td_tensor *t, const parts *p) {
  return p->weight ? td_multiply(s, t, p->weight) : t;
}

static td_tensor *smoothed(td_scope *s, td_tensor *t, td_tensor *counted, double smoothing, int64_t classes) {
  if (smoothing == 0) return t;
  td_tensor *rest = td_scope_number(s, smoothing / (double)classes, t);
  t = td_multiply(s, t, td_scope_number(s, 1 - smoothing, t));
  return td_add(s, t, counted ? td_multiply(s, counted, rest) : rest);
}

static void take_apart(td_rule *rule, td_tensor *cotangent, double smoothing, parts *p) {
  td_scope *s = &rule->scope;
  const td_tensor *input = rule->in[INPUT];
  td_tensor *target = rule->in[TARGET];
  int64_t how = rule->args[REDUCTION].i, classes = input->shape[class_axis(input->rank)];
  *p = (parts){.lines = cotangent};
  if (rule->in_count > WEIGHT && rule->in[WEIGHT]) p->weight = at_class_axis(s, rule->in[WEIGHT], input->rank, true);
  if (target->rank < input->rank) p->labels = one_at_labels(s, input, target, rule->args[IGNORE].i);
  td_tensor *counted = p->labels ? sum_classes(s, p->labels) : NULL;
  p->target = smoothed(s, p->labels ? p->labels : target, counted, smoothing, classes);
  if (how == TD_LOSS_NONE) p->lines = at_class_axis(s, cotangent, input->rank, false);
  if (how == TD_LOSS_MEAN) {
    td_tensor *zero = td_scope_number(s, 0, input), *one = td_scope_number(s, 1, input);
    td_tensor *total = p->labels ? td_sum(s, weighted(s, p->labels, p), NULL, false)
                                 : td_scope_number(s, (double)(input->size / (classes ? classes : 1)), input);
    p->divisor = td_where(s, td_equal(s, total, zero), one, total);
    p->lines = td_divide(s, cotangent, p->divisor);
  }
  if (counted) p->lines = td_multiply(s, p->lines, counted);
}

// The gradient in weight: of sum(weight part), and of the mean's divisor, where whole is the mean times its cotangent.
static td_tensor *weight_gradient(td_rule *rule, const parts *p, td_tensor *part, td_tensor *whole) {
  td_scope *s = &rule->scope;
  td_arg axes = {.given = 1};
  int rank = rule->in[INPUT]->rank;
  for (int i = 0; i < rank; i++)
    if (i != class_axis(rank)) axes.ints[axes.count++] = i;
  if (p->labels && p->divisor) part = td_subtract(s, part, td_multiply(s, td_divide(s, whole, p->divisor), p->labels));
  return td_sum(s, part, &axes, false);
}

static td_tensor *adjoint(td_rule *rule, td_tensor *cotangent);

static bool needs_weight(const td_rule *rule) {
  return rule->in_count > WEIGHT && rule->in[WEIGHT] && rule->needs[WEIGHT];
}

static int cross_entropy_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *input = rule->in[INPUT], *c = rule->cotangent[0];
  if (rule->needs[INPUT]) rule->din[INPUT] = adjoint(rule, c);
  if (!rule->needs[TARGET] && !needs_weight(rule)) return TD_OK;
  parts p;
  take_apart(rule, c, rule->args[SMOOTHING].f, &p);
  td_tensor *losses = td_chain(s, p.lines, td_negative(s, td_log_softmax(s, input, class_axis(input->rank))));
  if (rule->needs[TARGET])
    rule->din[TARGET] =
        td_multiply(s, weighted(s, losses, &p), td_scope_number(s, 1 - rule->args[SMOOTHING].f, losses));
  if (needs_weight(rule))
    rule->din[WEIGHT] = weight_gradient(rule, &p, td_chain(s, p.target, losses), td_multiply(s, c, rule->out[0]));
  return TD_OK;
}

// The adjoint is g (P y - t): g the lines' cotangents, y the softmax, t the weighted target, P its sum.
static int adjoint_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *input = rule->in[INPUT], *c = rule->cotangent[0];
  parts p;
  take_apart(rule, rule->in[COTANGENT], rule->args[SMOOTHING].f, &p);
  td_tensor *y = td_softmax(s, input, class_axis(input->rank)), *inner = sum_classes(s, td_multiply(s, c, y));
  td_tensor *turn = td_multiply(s, p.lines, td_subtract(s, inner, c)); // cotangent of t
  if (rule->needs[INPUT]) {
    td_tensor *total = sum_classes(s, weighted(s, p.target, &p));
    rule->din[INPUT] = td_negative(s, td_multiply(s, total, td_multiply(s, y, turn)));
  }
  if (rule->needs[TARGET])
    rule->din[TARGET] = td_multiply(s, weighted(s, turn, &p), td_scope_number(s, 1 - rule->args[SMOOTHING].f, turn));
  if (needs_weight(rule)) {
    td_tensor *whole = td_sum(s, td_multiply(s, c, rule->out[0]), NULL, false);
    rule->din[WEIGHT] = weight_gradient(rule, &p, td_multiply(s, p.target, turn), whole);
  }
  if (!rule->needs[COTANGENT]) return TD_OK;
  td_tensor *each = td_multiply(s, c, adjoint(rule, td_scope_filled(s, 1, &rule->in_meta[COTANGENT])));
  td_arg axis = {.given = 1, .count = 1, .ints = {class_axis(input->rank)}};
  rule->din[COTANGENT] = td_sum(s, each, rule->args[REDUCTION].i == TD_LOSS_NONE ? &axis : NULL, false);
  return TD_OK;
}

static int nll_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *c = rule->cotangent[0];
  parts p;
  take_apart(rule, c, 0, &p);
  td_tensor *at = td_negative(s, td_multiply(s, p.lines, p.target));
  if (rule->needs[INPUT]) rule->din[INPUT] = weighted(s, at, &p);
  if (needs_weight(rule))
    rule->din[WEIGHT] = weight_gradient(rule, &p, td_chain(s, at, rule->in[INPUT]), td_multiply(s, c, rule->out[0]));
  return TD_OK;
}

// ---- rows ----

static int line_batch(td_batching *b) { // one line each: as many losses as lines, of which each is its own mean
  if (b->meta[INPUT].rank != 1 || (b->in_count > WEIGHT && b->in[WEIGHT])) return TD_BATCH_EACH;
  b->args[REDUCTION].i = TD_LOSS_NONE;
  return td_batch_axes(b);
}

#define LABEL_INPUTS TD_TENSOR_PARAM("input"), TD_TENSOR_PARAM("target"), TD_WEIGHT_PARAM
#define LABEL_ARGS \
  TD_REDUCTION_PARAM, { .name = "ignore_index", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(-100) }
#define SMOOTHING_PARAM \
  { .name = "label_smoothing", .kind = TD_PARAM_FLOAT, .fallback = TD_FLOAT_DEFAULT(0) }

static const td_op cross_entropy = {
    .name = "cross_entropy",
    .params = {LABEL_INPUTS, LABEL_ARGS, SMOOTHING_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = cross_entropy_infer,
    .batch = line_batch,
    .workspace = loss_workspace,
    .kernel = cross_entropy_kernel,
    .vjp = cross_entropy_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc = "Cross entropy of logits: -log(softmax(input)[label]) for each example, averaged, summed or as it is.\n"
           "input: [N, C] (or [C], or [N, C, ...]: classes on axis 1). target: integer labels [N], or one-hot rows or "
           "class probabilities [N, C].\nweight has a number for each class; the mean of labels is then divided by the "
           "sum of their weights. label_smoothing mixes so much of the even distribution into the targets.\n"
           "Labels equal to ignore_index don't count; when all are ignored the mean is 0, with a warning.\n"
           "Gradient: (softmax(input) - target) / N.",
    .example = "round(cross_entropy(tensor([[1., 2., 3.]]), tensor([2])).item(), 5)  # 0.40761",
    .samples =
        TD_SAMPLES{{"3,4; 3; none", NULL, 0, 3, "float64; int64"},
                   {"3,4; 3,4; none", NULL, 0.1, 1, NULL},
                   {"3,4; 3; none", "reduction=\"none\", ignore_index=1", 0, 3, "float64; int64"},
                   {"4; -; none", "reduction=\"sum\"", 0, 3, "float64; int64"},
                   {"2,4,3; 2,3; none", NULL, 0, 3, "float64; int64"},
                   {"2,4,3; 2,4,3; none", "reduction=\"none\"", 0.1, 1, NULL},
                   {"5,3; 5; 3", "ignore_index=1", 0.4, 2.4, "float64; int64; float64"},
                   {"5,3; 5; 3", "label_smoothing=0.25, ignore_index=1", 0.4, 2.4, "float64; int64; float64"},
                   {"5,3; 5; none", "label_smoothing=0.25, reduction=\"sum\"", 0.4, 2.4, "float64; int64; float64"},
                   {"2,3,4; 2,4; 3", "label_smoothing=0.25, reduction=\"none\"", 0.4, 2.4, "float64; int64"},
                   {"3,4; 3,4; 4", "label_smoothing=0.5", 0.1, 1, NULL},
                   {"2,3,2,2; 2,2,2; 3", NULL, 0.4, 2.4, "float64; int64; float64"},
                   TD_SAMPLES_END},
};

static const td_op cross_entropy_adjoint = {
    .name = "cross_entropy_adjoint",
    .params = {LABEL_INPUTS, TD_TENSOR_PARAM("cotangent"), LABEL_ARGS, SMOOTHING_PARAM},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = adjoint_infer,
    .batch = line_batch,
    .workspace = adjoint_workspace,
    .kernel = adjoint_kernel,
    .vjp = adjoint_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc = "Gradient of cross_entropy in its input: cotangent (softmax(input) - target), divided by the number of "
           "examples where the loss is their mean.\nGradient: by softmax's.",
    .samples = TD_SAMPLES{{"3,4; 3; none; -", NULL, 0, 3, "float64; int64; float64; float64"},
                          {"3,4; 3,4; none; 3", "reduction=\"none\"", 0.1, 1, NULL},
                          {"5,3; 5; 3; -", "label_smoothing=0.25, ignore_index=1", 0.4, 2.4,
                           "float64; int64; float64; float64"},
                          {"2,3,4; 2,3,4; 3; -", "label_smoothing=0.5", 0.1, 1, NULL},
                          TD_SAMPLES_END},
};

static td_tensor *adjoint(td_rule *rule, td_tensor *cotangent) {
  td_scope *s = &rule->scope;
  td_tensor *weight = rule->in_count > WEIGHT ? rule->in[WEIGHT] : NULL, *out[TD_OUTPUT_MAX];
  td_tensor *in[] = {rule->in[INPUT], rule->in[TARGET], weight, cotangent};
  if (s->failed || !cotangent || td_op_apply(s->context, &cross_entropy_adjoint, in, 4, rule->args, out)) {
    s->failed = true;
    return NULL;
  }
  return td_scope_own(s, out[0]);
}

static const td_op nll_loss = {
    .name = "nll_loss",
    .params = {LABEL_INPUTS, LABEL_ARGS},
    .kind = TD_KIND_OPAQUE,
    .infer = nll_infer,
    .batch = line_batch,
    .workspace = loss_workspace,
    .kernel = nll_kernel,
    .vjp = nll_vjp,
    .saves = TD_SAVES_INPUTS | TD_SAVES_OUTPUT,
    .doc =
        "Negative log-likelihood of labels: -input[label] for each example, where input holds log-probabilities, "
        "averaged, summed or as it is.\ninput: [N, C] (or [C], or [N, C, ...]). weight, ignore_index and the mean are "
        "those of cross_entropy.\nGradient: -weight[label] at each label, divided by the sum of weights for the mean.",
    .example = "nll_loss(tensor([[-1., -2.], [-3., -4.]]), tensor([0, 1])).item()  # 2.5",
    .samples = TD_SAMPLES{{"3,4; 3; none", NULL, 0, 3, "float64; int64"},
                          {"3,4; 3; none", "reduction=\"none\", ignore_index=1", 0, 3, "float64; int64"},
                          {"4; -; none", "reduction=\"sum\"", 0, 3, "float64; int64"},
                          {"5,3; 5; 3", "ignore_index=1", 0.4, 2.4, "float64; int64; float64"},
                          {"2,3,2,2; 2,2,2; 3", "reduction=\"none\"", 0.4, 2.4, "float64; int64; float64"},
                          {"2,3,2,2; 2,2,2; 3", NULL, 0.4, 2.4, "float64; int64; float64"},
                          TD_SAMPLES_END},
};

const td_op *const td_family_cross_entropy[] = {&cross_entropy, &cross_entropy_adjoint, &nll_loss, NULL};
