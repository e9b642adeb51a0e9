// The gradient of ctc_loss made of ops: alpha and beta of all sequences side by side, [N, states], step by step. States
// that can't be reached hold -inf, whose exponential is 0, so nothing flows through them.
#include <math.h>

#include "engine/base/memory.h"
#include "engine/ops/ctc.h"
#include "engine/ops/pointwise.h"

typedef struct chains {
  td_scope *s;
  td_tensor *scores; // T x N x C
  int64_t longest, batch, classes, states, most; // most: labels of the longest sequence
  td_tensor *classes_of; // int64 [N, states]: a state's class
  td_tensor *skips, *ends; // bool [N, states]: may be entered from two before; the last two of a chain
  td_tensor *nothing; // -inf [N, states]
  const td_tensor *times;
} chains;

static td_tensor *plane(const chains *q, uint8_t dtype) {
  const int64_t shape[] = {q->batch, q->states};
  return td_scope_own(q->s, td_tensor_zeros(q->s->context, dtype, 2, shape));
}

static void fill_states(chains *q, const td_tensor *targets, const td_tensor *labels, int64_t blank) {
  q->classes_of = plane(q, TD_INT64);
  q->skips = plane(q, TD_BOOL);
  q->ends = plane(q, TD_BOOL);
  if (q->s->failed) return;
  int64_t *class_of = (int64_t *)q->classes_of->data, at = 0;
  uint8_t *skips = (uint8_t *)q->skips->data, *ends = (uint8_t *)q->ends->data;
  for (int64_t n = 0; n < q->batch; n++) {
    int64_t count = td_tensor_get_int(labels, n), first = targets->rank == 2 ? n * targets->shape[1] : at;
    at += count;
    for (int64_t s = 0; s < q->states; s++) {
      int64_t i = n * q->states + s;
      bool label = s % 2 && s / 2 < count;
      class_of[i] = label ? td_tensor_get_int(targets, first + s / 2) : blank;
      skips[i] = label && s > 1 && class_of[i] != class_of[i - 2];
      ends[i] = s <= 2 * count && s + 2 > 2 * count;
    }
  }
}

static int64_t most_labels(const td_tensor *labels, int64_t batch) {
  int64_t most = 0;
  for (int64_t n = 0; n < batch; n++) {
    int64_t count = td_tensor_get_int(labels, n);
    if (count > most) most = count;
  }
  return most;
}

// Moves columns by places to the right, or to the left where places is negative; fill comes in.
static td_tensor *moved(const chains *q, td_tensor *t, int64_t places, td_tensor *fill) {
  int64_t by = places < 0 ? -places : places;
  if (by > q->states) by = q->states;
  const int64_t step[] = {1, 1}, kept[] = {q->batch, q->states - by}, new[] = {q->batch, by}, zero[] = {0, 0};
  const int64_t from[] = {0, places < 0 ? by : 0};
  td_tensor *rest = td_slice_view(q->s, t, from, step, kept), *edge = td_slice_view(q->s, fill, zero, step, new);
  return places < 0 ? td_concat(q->s, rest, edge, 1) : td_concat(q->s, edge, rest, 1);
}

static td_tensor *log_sum(const chains *q, td_tensor *a, td_tensor *b, td_tensor *c) {
  const int64_t shape[] = {1, q->batch, q->states};
  td_arg axis = {.given = 1, .count = 1};
  td_tensor *parts[] = {td_reshape(q->s, a, 3, shape), td_reshape(q->s, b, 3, shape), td_reshape(q->s, c, 3, shape)};
  return td_logsumexp(q->s, td_concat_all(q->s, parts, 3, 0), &axis, false);
}

static td_tensor *scores_of_states(const chains *q, int64_t time) { // [N, states]
  const int64_t start[] = {time, 0, 0}, step[] = {1, 1, 1}, size[] = {1, q->batch, q->classes};
  td_tensor *line = td_reshape(q->s, td_slice_view(q->s, q->scores, start, step, size), 2, size + 1);
  return td_take_along_axis(q->s, line, q->classes_of, 1);
}

static td_tensor *where_time(const chains *q, int64_t time, int order) { // bool [N, 1]: the last time is equal or later
  const int64_t shape[] = {q->batch, 1};
  td_tensor *t = td_scope_own(q->s, td_tensor_zeros(q->s->context, TD_BOOL, 2, shape));
  for (int64_t n = 0; t && n < q->batch; n++) {
    int64_t last = td_tensor_get_int(q->times, n) - 1;
    ((uint8_t *)t->data)[n] = order ? last > time : last == time;
  }
  return t;
}

static void run_alpha(const chains *q, td_tensor **scores, td_tensor **alpha) {
  td_scope *s = q->s;
  for (int64_t t = 0; t < q->longest && !s->failed; t++) {
    scores[t] = scores_of_states(q, t);
    if (t) {
      td_tensor *skip = td_where(s, q->skips, moved(q, alpha[t - 1], 2, q->nothing), q->nothing);
      alpha[t] = td_add(s, log_sum(q, alpha[t - 1], moved(q, alpha[t - 1], 1, q->nothing), skip), scores[t]);
      continue;
    }
    const int64_t start[] = {0, 0}, step[] = {1, 1}, two[] = {q->batch, q->states < 2 ? q->states : 2};
    td_tensor *first = td_slice_view(s, scores[0], start, step, two);
    const int64_t rest[] = {q->batch, q->states - two[1]};
    alpha[0] = td_concat(s, first, td_slice_view(s, q->nothing, start, step, rest), 1);
  }
}

static td_tensor *log_probability(const chains *q, td_tensor **alpha) { // [N, 1]
  td_scope *s = q->s;
  td_tensor *end = q->nothing;
  td_arg axis = {.given = 1, .count = 1, .ints = {1}};
  for (int64_t t = 0; t < q->longest; t++) end = td_where(s, where_time(q, t, 0), alpha[t], end);
  return td_logsumexp(s, td_where(s, q->ends, end, q->nothing), &axis, true);
}

// exp(alpha + beta - log(P)) at a time, added up at each class: [N, C]
static td_tensor *posterior(const chains *q, td_tensor *alpha, td_tensor *beta, td_tensor *total) {
  td_scope *s = q->s;
  const int64_t states[] = {q->batch, 1, q->states}, one_by_one[] = {q->batch, q->states, 1},
                line[] = {q->batch, q->classes};
  const int64_t names[] = {1, 1, q->classes};
  td_tensor *zero = td_scope_number(s, 0, alpha), *one = td_scope_number(s, 1, alpha);
  td_tensor *lost = td_equal(s, total, td_scope_number(s, -INFINITY, total));
  td_tensor *found = td_subtract(s, td_add(s, alpha, beta), td_where(s, lost, zero, total));
  td_tensor *share = td_where(s, lost, zero, td_exp(s, found));
  td_tensor *classes = td_reshape(s, td_arange(s, q->classes), 3, names);
  td_tensor *same = td_equal(s, td_reshape(s, q->classes_of, 3, one_by_one), classes);
  td_tensor *product = td_matmul(s, td_reshape(s, share, 3, states), td_where(s, same, one, zero));
  return td_reshape(s, product, 2, line);
}

static void run_beta(const chains *q, td_tensor **scores, td_tensor **alpha, td_tensor *total, td_tensor **posteriors) {
  td_scope *s = q->s;
  const int64_t shape[] = {1, q->batch, q->classes};
  td_tensor *beta = q->nothing, *zero = td_scope_number(s, 0, q->nothing),
            *start = td_where(s, q->ends, zero, q->nothing);
  td_tensor *none = plane(q, TD_BOOL),
            *enters = moved(q, q->skips, -2, none); // skips are entered; from here they leave
  for (int64_t t = q->longest - 1; t >= 0 && !s->failed; t--) {
    if (t + 1 < q->longest) {
      td_tensor *after = td_add(s, beta, scores[t + 1]);
      td_tensor *skip = td_where(s, enters, moved(q, after, -2, q->nothing), q->nothing);
      beta = td_where(s, where_time(q, t, 1), log_sum(q, after, moved(q, after, -1, q->nothing), skip), q->nothing);
    }
    beta = td_where(s, where_time(q, t, 0), start, beta);
    posteriors[t] = td_reshape(s, posterior(q, alpha[t], beta, total), 3, shape);
  }
}

static td_tensor *shares(const chains *q, td_rule *rule, int reduction) { // cotangent of each loss, [1, N, 1]
  td_scope *s = q->s;
  const int64_t shape[] = {1, q->batch, 1};
  const td_tensor *labels = rule->in[TD_CTC_LABELS];
  td_tensor *c = rule->cotangent[0];
  if (reduction == TD_LOSS_NONE) return td_reshape(s, c, 3, shape);
  if (reduction == TD_LOSS_SUM) return c;
  td_tensor *each = td_scope_own(s, td_tensor_zeros(s->context, TD_FLOAT64, 3, shape));
  for (int64_t n = 0; each && n < q->batch; n++) {
    int64_t count = td_tensor_get_int(labels, n);
    ((double *)each->data)[n] = 1 / ((double)(count > 0 ? count : 1) * (double)q->batch);
  }
  return td_multiply(s, c, td_cast(s, each, q->scores->dtype));
}

static td_tensor *joined(td_scope *s, td_tensor **parts, int64_t count) { // along axis 0
  while (count > 1) {
    int64_t groups = 0;
    for (int64_t first = 0; first < count; first += TD_INPUT_MAX)
      parts[groups++] =
          td_concat_all(s, parts + first, (int)(count - first < TD_INPUT_MAX ? count - first : TD_INPUT_MAX), 0);
    count = groups;
  }
  return parts[0];
}

static void open_chains(chains *q, td_rule *rule, int64_t blank) {
  td_scope *s = q->s;
  td_tensor *scores = rule->in[TD_CTC_SCORES];
  q->longest = scores->shape[0];
  q->batch = scores->rank == 3 ? scores->shape[1] : 1;
  q->classes = scores->shape[scores->rank - 1];
  const int64_t shape[] = {q->longest, q->batch, q->classes};
  q->scores = td_reshape(s, scores, 3, shape);
  q->times = rule->in[TD_CTC_TIMES];
  q->states = 2 * most_labels(rule->in[TD_CTC_LABELS], q->batch) + 1;
  td_meta meta = {.dtype = scores->dtype, .rank = 2, .shape = {q->batch, q->states}};
  q->nothing = td_scope_filled(s, -INFINITY, &meta);
  fill_states(q, rule->in[TD_CTC_TARGETS], rule->in[TD_CTC_LABELS], blank);
}

td_tensor *td_ctc_gradient(td_rule *rule, int reduction, int64_t blank) {
  td_scope *s = &rule->scope;
  const td_tensor *given = rule->in[TD_CTC_SCORES];
  chains q = {.s = s};
  open_chains(&q, rule, blank);
  if (s->failed || !given->size) return NULL;
  td_tensor **room = td_memory_new((size_t)q.longest * 3 * sizeof *room), *found = NULL;
  if (!room) {
    s->failed = td_error_memory(s->context, "ctc_loss", q.longest * 3 * (int64_t)sizeof *room) != TD_OK;
    return NULL;
  }
  td_tensor **scores = room, **alpha = room + q.longest, **posteriors = room + 2 * q.longest;
  run_alpha(&q, scores, alpha);
  td_tensor *total = s->failed ? NULL : log_probability(&q, alpha);
  if (!s->failed) run_beta(&q, scores, alpha, total, posteriors);
  if (!s->failed) found = td_multiply(s, joined(s, posteriors, q.longest), td_negative(s, shares(&q, rule, reduction)));
  td_memory_free(room);
  return found ? td_reshape(s, found, given->rank, given->shape) : NULL;
}
