// See finite.h. An op made a NaN when one of its results has it and none of its operands (for elementwise ops: none of
// the operands' elements there). A NaN that no op made came in from outside; the first op that reads it is named. An
// infinity that later turned into a NaN, as in 0 * inf, is remembered with the op that made it.
#include "engine/tape/finite.h"
#include <math.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tape/state.h"

enum { SOURCES = 64 };

typedef struct source { // an op that made an infinity out of finite numbers
  const td_storage *storage;
  const td_op *op;
  const td_op *of; // in the derivative of this one; NULL: in no derivative
  bool pushing; // a forward one
  td_place place;
} source;

struct td_finite {
  td_inspector inspector;
  bool infinite;
  void (*report)(void *owner, const char *text);
  void *owner;
  td_text found;
  source sources[SOURCES]; // a ring
  int64_t source_count;
};

enum wanted { WANT_NAN, WANT_INFINITE, WANT_EITHER };

static bool is_wanted(double x, enum wanted wanted) {
  if (wanted == WANT_NAN) return isnan(x);
  return wanted == WANT_INFINITE ? isinf(x) : !isfinite(x);
}

static bool is_floating(const td_tensor *t) {
  return t && td_dtype_is_float(t->dtype) && !(t->flags & TD_TENSOR_BATCHED);
}

// Row-major index of the first wanted element; -1: none.
static int64_t find(const td_tensor *t, enum wanted wanted) {
  if (!is_floating(t)) return -1;
  if (td_tensor_is_contiguous(t) && !td_dtype_is_half(t->dtype)) { // a sum is finite only if all elements are
    double sum = 0;
    if (t->dtype == TD_FLOAT32)
      for (int64_t i = 0; i < t->size; i++) sum += 0 * (double)((const float *)t->data)[i];
    else
      for (int64_t i = 0; i < t->size; i++) sum += 0 * ((const double *)t->data)[i];
    if (sum == 0) return -1;
  }
  for (int64_t i = 0; i < t->size; i++)
    if (is_wanted(td_tensor_get_float(t, i), wanted)) return i;
  return -1;
}

// ---- places ----

static void indices_of(const td_tensor *t, int64_t index, int64_t *at) {
  for (int i = t->rank; i-- > 0;) {
    at[i] = index % t->shape[i];
    index /= t->shape[i];
  }
}

// The element of operand x that result element `at` (of rank axes) was computed from, by broadcasting.
static double operand_at(const td_tensor *x, int rank, const int64_t *at) {
  int64_t index = 0;
  for (int i = 0; i < x->rank; i++) {
    int64_t k = at[rank - x->rank + i];
    index = index * x->shape[i] + (x->shape[i] == 1 ? 0 : k);
  }
  return td_tensor_get_float(x, index);
}

static bool broadcasts(const td_tensor *x, const td_tensor *out) {
  int64_t shape[TD_RANK_MAX];
  int rank, axis;
  return td_shape_broadcast(x->rank, x->shape, out->rank, out->shape, &rank, shape, &axis) &&
         td_shape_equal(rank, shape, out->rank, out->shape);
}

static source here(const td_context *context, const td_op *op) {
  const td_tapes *tapes = context->tapes;
  return (source){.op = op,
                  .of = tapes ? td_derived_op(tapes) : NULL,
                  .pushing = tapes && tapes->pushing,
                  .place = context->place};
}

// Of a derivative, users know the op that it is of, and what else it calls, but no hidden op.
static void name_op(td_context *context, td_text *text, const source *s) {
  char line[80];
  td_place_describe(context, s->place, line, sizeof line);
  if (!s->of) {
    td_text_print(text, "%s at %s", s->op->name, line);
    return;
  }
  td_text_print(text, "the %s of %s at %s", s->pushing ? "forward derivative" : "backward pass", s->of->name, line);
  if (!(s->op->flags & TD_HIDDEN)) td_text_print(text, " (%s)", s->op->name);
}

static void print_number(td_text *text, double x) {
  char number[TD_NUMBER_TEXT];
  td_number_print(number, x);
  td_text_add(text, number);
}

static void print_index(td_text *text, const td_tensor *t, int64_t index) {
  int64_t at[TD_RANK_MAX];
  indices_of(t, index, at);
  td_text_add(text, "[");
  for (int i = 0; i < t->rank; i++) td_text_print(text, i ? ", %lld" : "%lld", (long long)at[i]);
  td_text_add(text, "]");
}

static void print_range(td_text *text, const td_tensor *t) {
  double low = INFINITY, high = -INFINITY;
  int64_t odd = 0;
  for (int64_t i = 0; i < t->size; i++) {
    double x = td_tensor_get_float(t, i);
    if (!isfinite(x)) odd++;
    else {
      low = fmin(low, x);
      high = fmax(high, x);
    }
  }
  td_meta_print(text, t->dtype, t->rank, t->shape);
  if (low <= high) {
    td_text_add(text, ", from ");
    print_number(text, low);
    td_text_add(text, " to ");
    print_number(text, high);
  }
  if (odd) td_text_print(text, ", %lld not finite", (long long)odd);
}

static void print_operands(td_text *text, const td_op *op, td_tensor *const *in, int in_count, const td_tensor *out,
                           int64_t index) {
  int64_t at[TD_RANK_MAX];
  bool list = td_op_takes_list(op);
  indices_of(out, index, at);
  for (int i = 0; i < in_count && i < 8; i++) {
    if (!in[i] || in[i]->flags & TD_TENSOR_BATCHED) continue;
    if (list) td_text_print(text, "\n  %s[%d] = ", op->params[0].name, i);
    else td_text_print(text, "\n  %s = ", op->params[i].name);
    if (op->kind == TD_KIND_ELEMENTWISE && broadcasts(in[i], out)) print_number(text, operand_at(in[i], out->rank, at));
    else print_range(text, in[i]);
  }
}

// ---- infinities on their way ----

static void remember(td_finite *f, td_context *context, const td_op *op, const td_tensor *out) {
  source made = here(context, op);
  made.storage = out->storage;
  f->sources[f->source_count++ % SOURCES] = made;
}

static const source *source_of(const td_finite *f, const td_tensor *t) { // the latest
  for (int64_t n = f->source_count; n-- > 0 && n >= f->source_count - SOURCES;)
    if (f->sources[n % SOURCES].storage == t->storage) return &f->sources[n % SOURCES];
  return NULL;
}

// Results that carry an infinity of an operand on keep its source.
static void pass_on(td_finite *f, td_context *context, const td_op *op, td_tensor *const *in, int in_count,
                    const td_tensor *out) {
  for (int i = 0; i < in_count; i++) {
    if (find(in[i], WANT_INFINITE) < 0) continue;
    const source *known = source_of(f, in[i]);
    if (!known) return;
    source carried = *known;
    carried.storage = out->storage;
    f->sources[f->source_count++ % SOURCES] = carried;
    return;
  }
  remember(f, context, op, out);
}

static void print_source(td_finite *f, td_context *context, td_tensor *const *in, int in_count) {
  for (int i = 0; i < in_count; i++) {
    const source *s = find(in[i], WANT_INFINITE) >= 0 ? source_of(f, in[i]) : NULL;
    if (!s) continue;
    td_text_add(&f->found, "\n  the infinity was made by ");
    name_op(context, &f->found, s);
    return;
  }
}

// ---- the inspector ----

static void tell(td_finite *f) {
  if (f->report && f->found.data) f->report(f->owner, f->found.data);
}

// Whether the element was there before: in the operands, or for elementwise ops at that place of theirs.
static bool was_there(const td_op *op, td_tensor *const *in, int in_count, const td_tensor *out, int64_t index,
                      enum wanted wanted) {
  int64_t at[TD_RANK_MAX];
  indices_of(out, index, at);
  for (int i = 0; i < in_count; i++) {
    if (!is_floating(in[i])) continue;
    bool placed = op->kind == TD_KIND_ELEMENTWISE && broadcasts(in[i], out);
    if (placed ? is_wanted(operand_at(in[i], out->rank, at), wanted) : find(in[i], wanted) >= 0) return true;
  }
  return false;
}

static void came_in(td_finite *f, td_context *context, const td_op *op, td_tensor *const *in, int in_count,
                    enum wanted wanted) {
  for (int i = 0; i < in_count; i++) {
    int64_t index = find(in[i], wanted);
    if (index < 0) continue;
    double x = td_tensor_get_float(in[i], index);
    td_text_print(&f->found, "%s came in from outside: element ", isnan(x) ? "NaN" : "infinity");
    print_index(&f->found, in[i], index);
    bool list = td_op_takes_list(op);
    td_text_print(&f->found, " of operand %s of ", list ? op->params[0].name : op->params[i].name);
    const source reader = here(context, op);
    name_op(context, &f->found, &reader);
    tell(f);
    return;
  }
}

static void look(td_finite *f, td_context *context, const td_op *op, td_tensor *const *in, int in_count,
                 const td_tensor *out) {
  enum wanted wanted = f->infinite ? WANT_EITHER : WANT_NAN;
  int64_t index = find(out, WANT_EITHER);
  if (index < 0) return;
  if (!f->infinite && find(out, WANT_INFINITE) >= 0) pass_on(f, context, op, in, in_count, out);
  for (index = find(out, wanted); index >= 0 && index < out->size; index++) { // the first one that was made here
    double x = td_tensor_get_float(out, index);
    if (!is_wanted(x, wanted)) continue;
    if (!was_there(op, in, in_count, out, index, wanted)) {
      const source maker = here(context, op);
      td_text_print(&f->found, "%s: ", isnan(x) ? "NaN" : "infinity");
      name_op(context, &f->found, &maker);
      td_text_add(&f->found, " made the first one");
      if (out->rank) td_text_add(&f->found, ", in element ");
      if (out->rank) print_index(&f->found, out, index);
      print_operands(&f->found, op, in, in_count, out, index);
      print_source(f, context, in, in_count);
      tell(f);
      return;
    }
    if (op->kind != TD_KIND_ELEMENTWISE) break;
  }
  if (index >= 0) came_in(f, context, op, in, in_count, wanted);
}

static void inspect(td_context *context, const td_op *op, td_tensor *const *in, int in_count, td_tensor *const *out,
                    int out_count) {
  td_finite *f = (td_finite *)context->inspector;
  for (int k = 0; k < out_count && !f->found.length; k++)
    if (is_floating(out[k])) look(f, context, op, in, in_count, out[k]);
}

td_finite *td_finite_start(td_context *context, bool infinite, void (*report)(void *owner, const char *text),
                           void *owner) {
  td_finite *f = td_memory_new_zero(sizeof *f);
  if (!f) {
    td_error_memory(context, "%nan", (int64_t)sizeof *f);
    return NULL;
  }
  f->inspector.ran = inspect;
  f->infinite = infinite;
  f->report = report;
  f->owner = owner;
  context->inspector = &f->inspector;
  return f;
}

void td_finite_stop(td_context *context, td_finite *f) {
  if (context->inspector == &f->inspector) context->inspector = NULL;
  td_text_clear(&f->found);
  td_memory_free(f);
}

td_finite *td_finite_of(const td_context *context) { return (td_finite *)context->inspector; }

const char *td_finite_found(const td_finite *f) { return f->found.length ? f->found.data : NULL; }
