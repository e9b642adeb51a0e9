// ctc_loss: connectionist temporal classification, the negative logarithm of the probability that a sequence of class
// scores spells its labels, with blanks between them. The labels with blanks around each are the states of a chain;
// sums over its paths run forward (alpha) and back (beta) in logarithms. The gradient is fused; while a tape records
// it is made of ops, so any order of derivative works.
#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/ops/ctc.h"
#include "engine/ops/pointwise.h"

enum { BLANK, REDUCTION, ZERO_INFINITY }; // arguments

// ---- shapes ----

static bool is_integer(const td_meta *in) { return !td_dtype_is_float(in->dtype) && in->dtype != TD_BOOL; }

static int check_lengths(td_infer *infer, int input, int64_t batch, bool batched) {
  const td_meta *in = &infer->in[input];
  const char *name = infer->op->params[input].name;
  if (!is_integer(in))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "%s must be integers, not %s", name, td_dtype_name(in->dtype));
  if (in->rank == batched && (!batched || in->shape[0] == batch)) return TD_OK;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "%s needs one length for each of the %lld sequences", name,
                       (long long)batch);
}

static int ctc_infer(td_infer *infer) {
  const td_meta *scores = &infer->in[TD_CTC_SCORES], *targets = &infer->in[TD_CTC_TARGETS];
  bool batched = scores->rank == 3;
  if (!td_dtype_is_float(scores->dtype))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "log_probs must be floating, not %s", td_dtype_name(scores->dtype));
  if (!batched && scores->rank != 2)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "log_probs needs the axes time, batch, classes, or time, classes");
  int64_t batch = batched ? scores->shape[1] : 1, classes = scores->shape[scores->rank - 1];
  if (!is_integer(targets))
    return td_infer_fail(infer, TD_ERROR_DTYPE, "targets must be integers, not %s", td_dtype_name(targets->dtype));
  bool fits = batched ? targets->rank == 1 || (targets->rank == 2 && targets->shape[0] == batch) : targets->rank == 1;
  if (!fits)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "targets needs the axes batch, labels, or all labels in a row");
  int code = check_lengths(infer, TD_CTC_TIMES, batch, batched);
  if (!code) code = check_lengths(infer, TD_CTC_LABELS, batch, batched);
  if (code) return code;
  int64_t blank = infer->args[BLANK].i;
  if (blank < 0 || blank >= classes)
    return td_infer_fail(infer, TD_ERROR_VALUE, "blank must be a class, 0 to %lld, not %lld", (long long)classes - 1,
                         (long long)blank);
  infer->out[0] = (td_meta){.dtype = scores->dtype};
  if (infer->args[REDUCTION].i != TD_LOSS_NONE || !batched) return TD_OK;
  infer->out[0].rank = 1;
  infer->out[0].shape[0] = batch;
  return TD_OK;
}

static int gradient_infer(td_infer *infer) {
  int code = ctc_infer(infer);
  infer->out[0] = infer->in[TD_CTC_SCORES];
  return code;
}

// ---- sequences ----

typedef struct sequences {
  const double *scores; // T x N x C
  const int64_t *targets, *times, *labels;
  int64_t longest, batch, classes, blank, width; // width: of targets' rows; 0: they lie in a row
  int64_t states; // of the longest chain
  double *alpha; // forward: two lines for each sequence; gradient: T lines
  double *beta; // gradient: two lines for each sequence
  double *losses; // one for each sequence
  int64_t *starts; // of each sequence's labels
  bool keep;
  const double *cotangents; // of each sequence's loss
  double *gradient; // as scores
} sequences;

// The largest of the lengths, up to most: what lies outside is refused later.
static int64_t longest_of(const td_view *lengths, int64_t most) {
  int64_t longest = 0, step = lengths->rank ? lengths->strides[0] : 0;
  for (int64_t n = 0; n < lengths->size; n++) {
    int64_t length;
    td_cast_run(&length, TD_INT64, lengths->data + n * step * td_dtype_bytes(lengths->dtype), lengths->dtype, 0, 1,
                false);
    if (length > longest) longest = length < most ? length : most;
  }
  return longest;
}

static void place(const td_call *call, td_scratch *scratch, bool keep, sequences *q) {
  const td_view *scores = &call->in[TD_CTC_SCORES], *targets = &call->in[TD_CTC_TARGETS];
  td_pool *pool = call->context->pool;
  *q = (sequences){.longest = scores->shape[0], .classes = scores->shape[scores->rank - 1], .keep = keep};
  q->batch = scores->rank == 3 ? scores->shape[1] : 1;
  q->blank = call->args[BLANK].i;
  q->width = targets->rank == 2 ? targets->shape[1] : 0;
  q->states = 2 * (targets->rank == 2 ? q->width : longest_of(&call->in[TD_CTC_LABELS], targets->size)) + 1;
  q->scores = td_scratch_view(scratch, pool, scores, TD_FLOAT64);
  q->targets = td_scratch_view(scratch, pool, targets, TD_INT64);
  q->times = td_scratch_view(scratch, pool, &call->in[TD_CTC_TIMES], TD_INT64);
  q->labels = td_scratch_view(scratch, pool, &call->in[TD_CTC_LABELS], TD_INT64);
  q->losses = td_scratch_take(scratch, q->batch, sizeof *q->losses);
  q->starts = td_scratch_take(scratch, q->batch, sizeof *q->starts);
  q->alpha = td_scratch_take(scratch, q->batch * (keep ? q->longest : 2), q->states * (int64_t)sizeof *q->alpha);
  q->beta = td_scratch_take(scratch, keep ? q->batch * 2 : 0, q->states * (int64_t)sizeof *q->beta);
}

static int fail_length(const td_call *call, int input, int64_t n, int64_t length, int64_t most) {
  return td_error_set(call->context, TD_ERROR_VALUE, "%s: %s[%lld] is %lld; it must be from 0 to %lld", call->op->name,
                      call->op->params[input].name, (long long)n, (long long)length, (long long)most);
}

// Checks lengths and labels, and finds where each sequence's labels start.
static int open_sequences(const td_call *call, const sequences *q) {
  int64_t total = call->in[TD_CTC_TARGETS].size, at = 0;
  for (int64_t n = 0; n < q->batch; n++) {
    int64_t most = q->width || call->in[TD_CTC_TARGETS].rank == 2 ? q->width : total - at;
    if (q->times[n] < 0 || q->times[n] > q->longest) return fail_length(call, TD_CTC_TIMES, n, q->times[n], q->longest);
    if (q->labels[n] < 0 || q->labels[n] > most) return fail_length(call, TD_CTC_LABELS, n, q->labels[n], most);
    q->starts[n] = call->in[TD_CTC_TARGETS].rank == 2 ? n * q->width : at;
    at += q->labels[n];
    for (int64_t i = 0; i < q->labels[n]; i++) {
      int64_t label = q->targets[q->starts[n] + i];
      if (label < 0 || label >= q->classes)
        return td_error_set(call->context, TD_ERROR_INDEX,
                            "%s: label %lld of sequence %lld is out of range for %lld classes", call->op->name,
                            (long long)label, (long long)n, (long long)q->classes);
    }
  }
  return TD_OK;
}

static double log_sum(double a, double b, double c) {
  double largest = fmax(a, fmax(b, c));
  if (largest == -INFINITY) return largest;
  return largest + log(exp(a - largest) + exp(b - largest) + exp(c - largest));
}

static int64_t class_of(const sequences *q, int64_t n, int64_t state) {
  return state % 2 ? q->targets[q->starts[n] + state / 2] : q->blank;
}

static bool may_skip(const sequences *q, int64_t n,
                     int64_t state) { // the blank before a label, from the label before it
  return state % 2 && state > 1 && class_of(q, n, state) != class_of(q, n, state - 2);
}

static const double *scores_at(const sequences *q, int64_t time, int64_t n) {
  return q->scores + (time * q->batch + n) * q->classes;
}

static double *alpha_at(const sequences *q, int64_t n, int64_t time) {
  return q->alpha + (q->keep ? n * q->longest + time : n * 2 + time % 2) * q->states;
}

static void run_forward(const sequences *q, int64_t n) {
  int64_t states = 2 * q->labels[n] + 1, last = q->times[n] - 1;
  for (int64_t t = 0; t <= last; t++) {
    const double *scores = scores_at(q, t, n), *before = t ? alpha_at(q, n, t - 1) : NULL;
    double *now = alpha_at(q, n, t);
    for (int64_t s = 0; s < states; s++) {
      double reached =
          before  ? log_sum(before[s], s ? before[s - 1] : -INFINITY, may_skip(q, n, s) ? before[s - 2] : -INFINITY)
          : s < 2 ? 0
                  : -INFINITY;
      now[s] = reached + scores[class_of(q, n, s)];
    }
  }
  if (last < 0) q->losses[n] = states == 1 ? 0 : INFINITY;
  else {
    const double *end = alpha_at(q, n, last);
    q->losses[n] = -log_sum(end[states - 1], states > 1 ? end[states - 2] : -INFINITY, -INFINITY);
  }
}

static void forward_range(void *argument, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; n++) run_forward(argument, n);
}

// -exp(alpha + beta - log(P)) for each state, added up where its class is.
static void run_back(const sequences *q, int64_t n) {
  int64_t states = 2 * q->labels[n] + 1, last = q->times[n] - 1;
  double c = q->cotangents[n];
  if (!isfinite(q->losses[n]) || c == 0) return;
  for (int64_t t = last; t >= 0; t--) {
    const double *after = q->beta + (n * 2 + (t + 1) % 2) * q->states, *alpha = alpha_at(q, n, t);
    const double *scores = t < last ? scores_at(q, t + 1, n) : NULL;
    double *now = q->beta + (n * 2 + t % 2) * q->states, *out = q->gradient + (t * q->batch + n) * q->classes;
    for (int64_t s = 0; s < states; s++) {
      double stay = -INFINITY, next = -INFINITY, skip = -INFINITY;
      if (!scores) stay = s + 2 >= states ? 0 : -INFINITY;
      else {
        stay = after[s] + scores[class_of(q, n, s)];
        if (s + 1 < states) next = after[s + 1] + scores[class_of(q, n, s + 1)];
        if (s + 2 < states && may_skip(q, n, s + 2)) skip = after[s + 2] + scores[class_of(q, n, s + 2)];
      }
      now[s] = log_sum(stay, next, skip);
      out[class_of(q, n, s)] -= c * exp(alpha[s] + now[s] + q->losses[n]);
    }
  }
}

static void back_range(void *argument, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; n++) {
    run_forward(argument, n);
    run_back(argument, n);
  }
}

static int64_t cost_of(const sequences *q) { return q->longest * q->states * 64; }

// ---- kernels ----

static int64_t ctc_workspace(const td_call *call) {
  td_scratch scratch = {0};
  sequences q;
  place(call, &scratch, false, &q);
  return scratch.used;
}

static void store(const td_view *out, int64_t index, double value) {
  if (out->dtype == TD_FLOAT32) ((float *)out->data)[index] = (float)value;
  else ((double *)out->data)[index] = value;
}

static double share_of(int reduction, int64_t labels, int64_t batch) { // of one loss in the result
  return reduction == TD_LOSS_MEAN ? 1 / ((double)(labels > 0 ? labels : 1) * (double)batch) : 1;
}

static int ctc_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  int how = (int)call->args[REDUCTION].i;
  sequences q;
  double total = 0;
  place(call, &scratch, false, &q);
  int code = open_sequences(call, &q);
  if (code) return code;
  td_ranges_run(call->context->pool, q.batch, cost_of(&q), forward_range, &q);
  for (int64_t n = 0; n < q.batch; n++) {
    if (call->args[ZERO_INFINITY].i && q.losses[n] == INFINITY) q.losses[n] = 0;
    if (how == TD_LOSS_NONE) store(&call->out[0], n, q.losses[n]);
    total += q.losses[n] * share_of(how, q.labels[n], q.batch);
  }
  if (how != TD_LOSS_NONE) store(&call->out[0], 0, total);
  return TD_OK;
}

static double *place_gradient(const td_call *call, td_scratch *scratch, sequences *q) {
  const td_view *c = &call->in[TD_CTC_COTANGENT], *out = &call->out[0];
  place(call, scratch, true, q);
  q->cotangents = td_scratch_view(scratch, call->context->pool, c, TD_FLOAT64);
  q->gradient = out->dtype == TD_FLOAT64 ? (double *)out->data : td_scratch_take(scratch, out->size, sizeof(double));
  return td_scratch_take(scratch, q->batch, sizeof(double));
}

static int64_t gradient_workspace(const td_call *call) {
  td_scratch scratch = {0};
  sequences q;
  place_gradient(call, &scratch, &q);
  return scratch.used;
}

static int gradient_kernel(const td_call *call) {
  td_scratch scratch = {.at = call->workspace};
  const td_view *out = &call->out[0];
  int how = (int)call->args[REDUCTION].i;
  sequences q;
  double *each = place_gradient(call, &scratch, &q);
  int code = open_sequences(call, &q);
  if (code) return code;
  for (int64_t n = 0; n < q.batch; n++)
    each[n] = q.cotangents[how == TD_LOSS_NONE ? n : 0] * share_of(how, q.labels[n], q.batch);
  q.cotangents = each;
  if (out->size) memset(q.gradient, 0, (size_t)out->size * sizeof(double));
  td_ranges_run(call->context->pool, q.batch, 2 * cost_of(&q), back_range, &q);
  for (int64_t i = 0; i < out->size && out->dtype == TD_FLOAT32; i++) ((float *)out->data)[i] = (float)q.gradient[i];
  return TD_OK;
}

static int ctc_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (s->context->recorder) {
    rule->din[TD_CTC_SCORES] = td_ctc_gradient(rule, (int)rule->args[REDUCTION].i, rule->args[BLANK].i);
    return TD_OK;
  }
  rule->din[TD_CTC_SCORES] =
      td_scope_apply(s, &td_ctc_loss_gradient, rule->args, 5, rule->in[TD_CTC_SCORES], rule->in[TD_CTC_TARGETS],
                     rule->in[TD_CTC_TIMES], rule->in[TD_CTC_LABELS], rule->cotangent[0]);
  return TD_OK;
}

// ---- rows ----

#define SEQUENCES                                                                             \
  TD_TENSOR_PARAM("log_probs"), TD_TENSOR_PARAM("targets"), TD_TENSOR_PARAM("input_lengths"), \
      TD_TENSOR_PARAM("target_lengths")
#define CTC_ARGS                                                                                \
  {.name = "blank", .kind = TD_PARAM_INT, .fallback = TD_INT_DEFAULT(0)}, TD_REDUCTION_PARAM, { \
    .name = "zero_infinity", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)               \
  }
#define LENGTHS "float64; int64; int64; int64"

static const td_op ctc_loss = {
    .name = "ctc_loss",
    .params = {SEQUENCES, CTC_ARGS},
    .kind = TD_KIND_OPAQUE,
    .infer = ctc_infer,
    .workspace = ctc_workspace,
    .kernel = ctc_kernel,
    .vjp = ctc_vjp,
    .saves = TD_SAVES_INPUTS,
    .doc =
        "Connectionist temporal classification: -log of the probability that log_probs spells targets, with blanks "
        "anywhere between labels and each label as often as it lasts.\n"
        "log_probs: [T, N, C] from log_softmax, or [T, C]; targets: labels [N, S], or all of them in a row; lengths: "
        "[N]. "
        "The mean is that of each loss divided by its number of labels. Targets that don't fit into their time have an "
        "infinite loss (0 with zero_infinity=True).\n"
        "Gradient: minus the probability of being at a class at a time, given the labels; 0 where the loss is "
        "infinite. "
        "It is that of log_probs themselves, which PyTorch joins with log_softmax's.",
    .example =
        "round(ctc_loss(log_softmax(zeros(4, 1, 3)), tensor([[1, 2]]), tensor([4]), tensor([2])).item(), 5)  # 0.8432",
    .source = "Graves et al., ICML 2006",
    .samples = TD_SAMPLES{{"4,1,3; 1,1; 1; 1", NULL, 1, 1.9, LENGTHS},
                          {"4,2,3; 2,3; 2; 2", "reduction=\"sum\"", 1, 2.9, LENGTHS},
                          {"4,3,3; 3,2; 3; 3", "reduction=\"none\", zero_infinity=True", 1, 2.9, LENGTHS},
                          {"4,3,3; 6; 3; 3", "zero_infinity=True", 1, 2.9, LENGTHS},
                          {"5,3; 2; -; -", "blank=2", 1, 1.9, LENGTHS},
                          TD_SAMPLES_END},
};

const td_op td_ctc_loss_gradient = {
    .name = "ctc_loss_gradient",
    .params = {SEQUENCES, TD_TENSOR_PARAM("cotangent"), CTC_ARGS},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = gradient_infer,
    .workspace = gradient_workspace,
    .kernel = gradient_kernel,
    .no_gradient = "the fused form of ctc_loss's first derivative: further ones are taken of the same made of ops",
    .doc = "The gradient of ctc_loss in log_probs.",
    .samples =
        TD_SAMPLES{{"4,3,3; 3,2; 3; 3; 3", "reduction=\"none\", zero_infinity=True", 1, 2.9, LENGTHS "; float64"},
                   TD_SAMPLES_END},
};

const td_op *const td_family_ctc[] = {&ctc_loss, &td_ctc_loss_gradient, NULL};
