// How a contraction is computed.
//  1. Each operand becomes a term: axes of size 1 are left out, an operand's axes with one label become one (a
//     diagonal).
//  2. A label that only one term has, and not the result, is summed there.
//  3. Two terms at a time become one: labels of both that are still wanted are batches of a matrix product, wanted
//     ones of one term its rows or columns, the others its inner axis. The pair whose product is smallest beside its
//     terms goes first. The last product is written in the result's order where it can be.
//  4. The term that is left is copied into the result. The same steps run once to learn how much workspace they take.
#include "engine/ops/contract.h"

#include <stdio.h>
#include <string.h>

#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/product.h"
#include "engine/ops/reduce.h"

enum { ALIGNMENT = 64 };

typedef struct term {
  const char *data;
  uint8_t dtype;
  int rank;
  uint8_t labels[TD_RANK_MAX];
  int64_t strides[TD_RANK_MAX]; // sizes are the contraction's
} term;

typedef struct run {
  const td_call *call;
  const td_contraction *c;
  uint8_t dtype; // of the result
  int count;
  term terms[TD_INPUT_MAX];
  char *workspace; // NULL: measured only
  int64_t taken;
  bool written; // the last product went to the result itself
} run;

static void *take(run *r, int64_t bytes) {
  char *at = r->workspace ? r->workspace + r->taken : NULL;
  r->taken += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return at;
}

static int axis_of(const term *t, uint8_t label) { // -1: it lacks it
  for (int i = 0; i < t->rank; i++)
    if (t->labels[i] == label) return i;
  return -1;
}

static int place_in_result(const run *r, uint8_t label) {
  for (int i = 0; i < r->c->out_rank; i++)
    if (r->c->out[i] == label) return i;
  return -1;
}

// Wanted by the result, or by a term other than these two.
static bool is_wanted(const run *r, uint8_t label, int first, int second) {
  if (place_in_result(r, label) >= 0) return true;
  for (int i = 0; i < r->count; i++)
    if (i != first && i != second && axis_of(&r->terms[i], label) >= 0) return true;
  return false;
}

static int64_t size_of(const run *r, const term *t) {
  int64_t size = 1;
  for (int i = 0; i < t->rank; i++) size *= r->c->size[t->labels[i]];
  return size;
}

static void make_dense(const run *r, term *t) { // strides of a new term
  int64_t stride = 1;
  for (int i = t->rank; i-- > 0;) {
    t->strides[i] = stride;
    stride *= r->c->size[t->labels[i]];
  }
  t->dtype = r->dtype;
}

static void term_open(const run *r, int operand, term *t) {
  const td_view *view = &r->call->in[operand];
  *t = (term){.data = view->data, .dtype = view->dtype};
  for (int i = 0; i < view->rank; i++) {
    uint8_t label = r->c->labels[operand][i];
    if (view->shape[i] == 1) continue;
    int axis = axis_of(t, label);
    if (axis < 0) {
      axis = t->rank++;
      t->labels[axis] = label;
      t->strides[axis] = 0;
    }
    t->strides[axis] += view->strides[i];
  }
}

// ---- sums of one term ----

static void sum_alone(run *r, int index) { // the labels that nobody else wants
  term from = r->terms[index], *to = &r->terms[index];
  bool truths = from.dtype == TD_BOOL && r->dtype == TD_BOOL, gone[TD_RANK_MAX];
  const td_reducer *reducer = truths ? td_reducer_of_any(from.dtype) : td_reducer_of_sum(from.dtype);
  td_view in = {.data = (char *)from.data, .size = size_of(r, &from), .dtype = from.dtype, .rank = (uint8_t)from.rank};
  to->rank = 0;
  for (int i = 0; i < from.rank; i++) {
    in.shape[i] = r->c->size[from.labels[i]];
    in.strides[i] = from.strides[i];
    gone[i] = !is_wanted(r, from.labels[i], index, index);
    if (!gone[i]) to->labels[to->rank++] = from.labels[i];
  }
  if (to->rank == from.rank) {
    *to = from;
    return;
  }
  make_dense(r, to);
  if (!truths && !td_dtype_is_float(from.dtype)) to->dtype = TD_INT64;
  td_view out = {.size = size_of(r, to), .dtype = to->dtype};
  out.data = take(r, out.size * td_dtype_bytes(to->dtype));
  to->data = out.data;
  void *work = take(r, td_reduce_view_workspace(&in, gone, reducer));
  if (r->workspace)
    td_reduce_view(r->call->context->pool, &in, gone, reducer, from.dtype, 0, &out, 1, work);
}

// ---- a product of two terms ----

typedef struct pairing {
  int batch, rows, columns, inner; // how many labels of each kind, and which:
  uint8_t batches[TD_RANK_MAX], row[TD_RANK_MAX], column[TD_RANK_MAX], sums[TD_RANK_MAX];
} pairing;

static void pair_labels(const run *r, int first, int second, pairing *p) {
  const term *a = &r->terms[first], *b = &r->terms[second];
  *p = (pairing){0};
  for (int i = 0; i < a->rank; i++) {
    uint8_t label = a->labels[i];
    bool wanted = is_wanted(r, label, first, second), shared = axis_of(b, label) >= 0;
    if (shared && wanted) p->batches[p->batch++] = label;
    else if (shared) p->sums[p->inner++] = label;
    else p->row[p->rows++] = label;
  }
  for (int i = 0; i < b->rank; i++)
    if (axis_of(a, b->labels[i]) < 0) p->column[p->columns++] = b->labels[i];
}

static void by_result(const run *r, uint8_t *labels, int count) { // in the order of the result; insertion sort of few
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && place_in_result(r, labels[j]) < place_in_result(r, labels[j - 1]); j--) {
      uint8_t label = labels[j];
      labels[j] = labels[j - 1];
      labels[j - 1] = label;
    }
}

static void add_group(const run *r, const term *t, const uint8_t *labels, int count, td_axes_group *group) {
  for (int i = 0; i < count; i++) // t lacks no label but those of size 1
    if (r->c->size[labels[i]] != 1) td_group_add(group, r->c->size[labels[i]], t->strides[axis_of(t, labels[i])]);
}

static bool is_in_order(const run *r, const term *t) { // dense, as the result is
  int at = 0;
  for (int i = 0; i < r->c->out_rank; i++) {
    if (r->c->size[r->c->out[i]] == 1) continue;
    if (at == t->rank || t->labels[at++] != r->c->out[i]) return false;
  }
  return at == t->rank;
}

static void term_of_pair(const run *r, const pairing *p, term *t) {
  *t = (term){0};
  for (int i = 0; i < p->batch; i++) t->labels[t->rank++] = p->batches[i];
  for (int i = 0; i < p->rows; i++) t->labels[t->rank++] = p->row[i];
  for (int i = 0; i < p->columns; i++) t->labels[t->rank++] = p->column[i];
  make_dense(r, t);
}

static td_product product_of(const run *r, const pairing *p, const term *a, const term *b) {
  td_product product = {.dtype = r->dtype, .rank = p->batch};
  for (int i = 0; i < p->batch; i++) {
    product.shape[i] = r->c->size[p->batches[i]];
    product.a.batch[i] = a->strides[axis_of(a, p->batches[i])];
    product.b.batch[i] = b->strides[axis_of(b, p->batches[i])];
  }
  product.a.data = a->data;
  product.b.data = b->data;
  product.a.dtype = a->dtype;
  product.b.dtype = b->dtype;
  add_group(r, a, p->row, p->rows, &product.a.rows);
  add_group(r, a, p->sums, p->inner, &product.a.columns);
  add_group(r, b, p->sums, p->inner, &product.b.rows);
  add_group(r, b, p->column, p->columns, &product.b.columns);
  product.m = td_group_size(&product.a.rows);
  product.k = td_group_size(&product.a.columns);
  product.n = td_group_size(&product.b.columns);
  return product;
}

static void multiply_pair(run *r, int first, int second) {
  pairing p;
  term made;
  pair_labels(r, first, second, &p);
  by_result(r, p.batches, p.batch);
  by_result(r, p.row, p.rows);
  by_result(r, p.column, p.columns);
  term_of_pair(r, &p, &made);
  bool last = r->count == 2;
  if (last && !is_in_order(r, &made)) { // the other way round it may be
    int other = first;
    pairing turned = p;
    memcpy(turned.row, p.column, sizeof turned.row);
    memcpy(turned.column, p.row, sizeof turned.column);
    turned.rows = p.columns;
    turned.columns = p.rows;
    term_of_pair(r, &turned, &made);
    if (is_in_order(r, &made)) {
      p = turned;
      first = second;
      second = other;
    } else term_of_pair(r, &p, &made);
  }
  td_product product = product_of(r, &p, &r->terms[first], &r->terms[second]);
  int64_t size = size_of(r, &made);
  r->written = last && is_in_order(r, &made);
  product.out = r->written ? r->call->out[0].data : take(r, size * td_dtype_bytes(r->dtype));
  made.data = product.out;
  void *work = take(r, size ? td_product_workspace(&product) : 0);
  if (r->workspace && size) td_product_run(r->call->context->pool, &product, work);
  int low = first < second ? first : second, high = first < second ? second : first;
  r->terms[low] = made;
  r->terms[high] = r->terms[--r->count];
}

// What a product adds to what is there, negative where it shrinks; false: its rank is too high.
static bool cost_of(const run *r, int first, int second, double *growth) {
  const term *a = &r->terms[first], *b = &r->terms[second];
  int wanted = 0;
  double size = 1;
  for (int i = 0; i < a->rank; i++)
    if (axis_of(b, a->labels[i]) < 0 || is_wanted(r, a->labels[i], first, second)) {
      size *= (double)r->c->size[a->labels[i]];
      wanted++;
    }
  for (int i = 0; i < b->rank; i++)
    if (axis_of(a, b->labels[i]) < 0) {
      size *= (double)r->c->size[b->labels[i]];
      wanted++;
    }
  *growth = size - (double)size_of(r, a) - (double)size_of(r, b);
  return wanted <= TD_RANK_MAX;
}

static bool choose_pair(const run *r, int *first, int *second) { // false: none fits
  double least = 0;
  bool found = false;
  for (int i = 0; i < r->count; i++)
    for (int j = i + 1; j < r->count; j++) {
      double growth;
      if (!cost_of(r, i, j, &growth) || (found && growth >= least)) continue;
      found = true;
      least = growth;
      *first = i;
      *second = j;
    }
  return found;
}

// ---- the whole ----

static void copy_out(const run *r, const term *t) {
  const td_call *call = r->call;
  td_axes_group axes = {0};
  add_group(r, t, r->c->out, r->c->out_rank, &axes);
  td_group_copy(call->context->pool, &axes, t->data, t->dtype, call->out[0].data, call->out[0].dtype);
}

static int run_all(run *r, const td_call *call, const td_contraction *c, char *workspace) {
  int first = 0, second = 0;
  r->call = call;
  r->c = c;
  r->dtype = call->out[0].dtype;
  r->workspace = workspace;
  r->taken = 0;
  r->written = false;
  r->count = r->c->count;
  for (int i = 0; i < r->count; i++) term_open(r, i, &r->terms[i]);
  for (int i = 0; i < r->count; i++) sum_alone(r, i);
  while (r->count > 1) {
    if (!choose_pair(r, &first, &second)) return TD_ERROR_SHAPE;
    multiply_pair(r, first, second);
    for (int i = 0; i < r->count; i++) sum_alone(r, i);
  }
  if (r->workspace && !r->written) copy_out(r, &r->terms[0]);
  return TD_OK;
}

int64_t td_contraction_workspace(const td_call *call, const td_contraction *c) {
  run r;
  run_all(&r, call, c, NULL);
  return r.taken + ALIGNMENT;
}

int td_contraction_run(const td_call *call, const td_contraction *c) {
  run r;
  if (!call->out[0].size) return TD_OK;
  int code = run_all(&r, call, c, call->workspace);
  if (!code) return TD_OK;
  code = td_error_set(call->context, code, "%s: the products on the way have more than %d axes", call->op->name,
                      TD_RANK_MAX);
  td_error_hint(call->context, "contract two operands at a time");
  return code;
}

// ---- sizes ----

bool td_contraction_sizes(td_contraction *c, const td_meta *in, char problem[TD_PROBLEM_TEXT]) {
  int where[TD_LABELS_MAX] = {0};
  for (int i = 0; i < c->label_count; i++) c->size[i] = 1;
  for (int k = 0; k < c->count; k++)
    for (int i = 0; i < c->rank[k]; i++) {
      int label = c->labels[k][i];
      int64_t size = in[k].shape[i];
      for (int j = 0; j < i; j++) {
        if (c->labels[k][j] != label || in[k].shape[j] == size) continue;
        snprintf(problem, TD_PROBLEM_TEXT, "'%c' stands for two axes of operand %d, of sizes %lld and %lld",
                 c->names[label], k, (long long)in[k].shape[j], (long long)size);
        return false;
      }
      if (size == 1 || size == c->size[label]) continue;
      if (c->size[label] != 1) {
        snprintf(problem, TD_PROBLEM_TEXT, "'%c' has size %lld in operand %d and %lld in operand %d", c->names[label],
                 (long long)c->size[label], where[label], (long long)size, k);
        return false;
      }
      c->size[label] = size;
      where[label] = k;
    }
  return true;
}

uint8_t td_contraction_dtype(const td_infer *infer) {
  uint8_t dtype = infer->in[0].dtype;
  for (int i = 1; i < infer->in_count; i++) dtype = td_dtype_promote(dtype, infer->in[i].dtype);
  return dtype;
}

void td_call_metas(const td_call *call, td_meta *metas) {
  for (int k = 0; k < call->in_count; k++) {
    metas[k].rank = call->in[k].rank;
    metas[k].dtype = call->in[k].dtype;
    memcpy(metas[k].shape, call->in[k].shape, sizeof metas[k].shape);
  }
}

// ---- gradients ----

static char letter_of(int label) { return (char)(label < 26 ? 'a' + label : 'A' + label - 26); }

typedef struct subscripts { // text of an einsum, and its operands
  char text[sizeof((td_arg *)NULL)->text];
  int length, count;
  bool failed; // it doesn't fit
  td_tensor *in[TD_INPUT_MAX];
  int next_label;
} subscripts;

static void add_char(subscripts *s, char letter) {
  if (s->length + 1 >= (int)sizeof s->text) s->failed = true;
  else s->text[s->length++] = letter;
}

static void add_operand(subscripts *s, td_tensor *t, const uint8_t *labels, int rank) {
  if (s->count == TD_INPUT_MAX) {
    s->failed = true;
    return;
  }
  if (s->count) add_char(s, ',');
  for (int i = 0; i < rank; i++) add_char(s, letter_of(labels[i]));
  s->in[s->count++] = t;
}

static bool has_elsewhere(const td_rule *rule, const td_contraction *c, int operand,
                          uint8_t label) { // in its full size
  for (int i = 0; i < c->out_rank; i++)
    if (c->out[i] == label) return true;
  for (int k = 0; k < c->count; k++)
    for (int i = 0; i < c->rank[k] && k != operand; i++)
      if (c->labels[k][i] == label && rule->in[k]->shape[i] == c->size[label]) return true;
  return false;
}

// Where an operand's axis has a label that nobody else has the cotangent is repeated, by a vector of ones; where two of
// its axes have one label only their diagonal has a gradient, by a unit matrix.
static td_tensor *gradient_in(td_rule *rule, const td_contraction *c, int operand, td_tensor *cotangent) {
  td_scope *scope = &rule->scope;
  subscripts s = {.next_label = c->label_count};
  uint8_t labels[TD_RANK_MAX];
  add_operand(&s, cotangent, c->out, c->out_rank);
  for (int k = 0; k < c->count; k++)
    if (k != operand) add_operand(&s, rule->in[k], c->labels[k], c->rank[k]);
  for (int i = 0; i < c->rank[operand]; i++) {
    uint8_t label = labels[i] = c->labels[operand][i];
    int64_t n = rule->in[operand]->shape[i];
    int earlier = 0;
    while (c->labels[operand][earlier] != label) earlier++;
    if (earlier < i) {
      if (s.next_label == TD_LABELS_MAX) s.failed = true;
      else labels[i] = (uint8_t)s.next_label++;
      add_operand(&s, td_eye(scope, n, cotangent->dtype), (const uint8_t[]){label, labels[i]}, 2);
    } else if (!has_elsewhere(rule, c, operand, label)) {
      const td_meta ones = {.dtype = cotangent->dtype, .rank = 1, .shape = {n}};
      add_operand(&s, td_scope_filled(scope, 1, &ones), &label, 1);
    }
  }
  add_char(&s, '-');
  add_char(&s, '>');
  for (int i = 0; i < c->rank[operand]; i++) add_char(&s, letter_of(labels[i]));
  if (!s.failed) return td_einsum(scope, s.text, s.count, s.in);
  td_error_set(scope->context, TD_ERROR_GRADIENT, "%s: its gradient needs more subscripts than fit", rule->op->name);
  scope->failed = true;
  return NULL;
}

int td_contraction_vjp(td_rule *rule, const td_contraction *c, td_tensor *cotangent) {
  for (int k = 0; k < c->count && cotangent; k++)
    if (rule->needs[k]) rule->din[k] = gradient_in(rule, c, k, cotangent);
  return TD_OK;
}
