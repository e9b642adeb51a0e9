// See watch.h.
#include "repl/language/watch.h"
#include <math.h>
#include <time.h>
#include "engine/base/memory.h"
#include "engine/tensor/probe.h"
#include "repl/language/core.h"
#include "repl/language/turn.h"

enum { WANTED_MILLISECONDS = 10000, APART_MILLISECONDS = 50, IDLE_APART_MILLISECONDS = 500 };
enum { GRADIENT_SAMPLE = 2048, UPDATE_SAMPLE = 256 };

static int64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void td_watch_ask(td_interpreter *I) { I->core->watch_until = milliseconds() + WANTED_MILLISECONDS; }

static td_context *main_context(td_interpreter *I) { return I->turn ? I->turn->main.context : I->context; }

void td_watch_ask_tapes(td_interpreter *I) {
  td_watch_ask(I);
  main_context(I)->timed = true;
}

static bool is_wanted(td_interpreter *I, int64_t at) {
  if (I->core->watch_until && at > I->core->watch_until) {
    I->core->watch_until = 0;
    main_context(I)->timed = false;
    td_watch_closely(I, NULL);
  }
  return I->core->watch_until != 0;
}

bool td_watch_is_due(td_interpreter *I, bool update) {
  if (!I->core->watch_until && update) return false;
  int64_t at = milliseconds(), *last = &I->core->watched_at[update];
  if (!is_wanted(I, at) && update) return false;
  if (at - *last < (I->core->watch_until ? APART_MILLISECONDS : IDLE_APART_MILLISECONDS)) return false;
  *last = at;
  return true;
}

void td_watch_closely(td_interpreter *I, const td_variable *v) {
  uint64_t id = v ? v->id : 0;
  if (I->core->watched_variable == id) return;
  td_tensor_unref(I->core->watched_gradient);
  I->core->watched_gradient = NULL;
  I->core->watched_variable = id;
}

const td_tensor *td_watch_last_gradient(const td_interpreter *I, const td_variable *v) {
  return v->grad || I->core->watched_variable != v->id ? v->grad : I->core->watched_gradient;
}

static void keep(td_interpreter *I, const td_variable *v, const td_tensor *gradient) {
  if (I->core->watched_variable != v->id || gradient == I->core->watched_gradient) return;
  td_tensor_unref(I->core->watched_gradient);
  I->core->watched_gradient = td_tensor_ref((td_tensor *)gradient);
}

void td_watch_gradient(td_interpreter *I, td_variable *v, const td_tensor *gradient) {
  if (!td_dtype_is_float(gradient->dtype) || gradient->flags & TD_TENSOR_BATCHED) return;
  td_probe s;
  td_probe_take(gradient, GRADIENT_SAMPLE, &s);
  v->gradient_norm = (float)td_probe_norm(gradient, &s);
  v->gradient_glanced = false;
  keep(I, v, gradient);
  v->gradient_zeros = s.count ? (float)s.zeros / (float)s.count : 0;
}

bool td_watch_is_on(const td_interpreter *I) { return I->core->watch_until != 0; }

void td_watch_glance(td_variable *v, const td_tensor *gradient) {
  bool exact;
  if (!td_dtype_is_float(gradient->dtype) || gradient->flags & TD_TENSOR_BATCHED) return;
  v->gradient_norm = td_probe_glance(gradient, &exact);
  v->gradient_glanced = !exact;
  v->gradient_zeros = NAN;
}

void td_watch_tape(td_interpreter *I, td_value tape) {
  td_value last = I->core->last_tape;
  if (!I->core->watch_until && td_is_nil(last)) return;
  bool wanted = is_wanted(I, milliseconds()) && main_context(I)->timed;
  I->core->last_tape = wanted ? td_ref(tape) : TD_NIL;
  td_unref(last);
}

td_value td_watch_last_tape(const td_interpreter *I) { return I->core->last_tape; }

// ---- what a step changes ----

typedef struct before { // of one Variable
  td_variable *variable; // borrowed: the step holds it
  int64_t step, count;
  double values[UPDATE_SAMPLE];
} before;

struct td_watched {
  int64_t count;
  before each[];
};

td_watched *td_watch_before(td_variable *const *variables, int64_t count) {
  td_watched *w = td_memory_new(sizeof *w + (size_t)count * sizeof *w->each);
  if (!w) return NULL;
  w->count = count;
  for (int64_t i = 0; i < count; i++) {
    before *b = &w->each[i];
    const td_tensor *value = variables[i]->value;
    b->variable = variables[i];
    b->step = td_probe_step(value, UPDATE_SAMPLE);
    b->count = (value->size + b->step - 1) / b->step;
    td_probe_values(value, b->step, b->count, b->values);
  }
  return w;
}

static double ratio(const before *b, const double *after) {
  double moved = 0, was = 0;
  for (int64_t i = 0; i < b->count; i++) {
    moved += (after[i] - b->values[i]) * (after[i] - b->values[i]);
    was += b->values[i] * b->values[i];
  }
  return was > 0 ? sqrt(moved / was) : moved > 0 ? INFINITY : 0;
}

void td_watch_after(td_watched *w) {
  double after[UPDATE_SAMPLE];
  for (int64_t i = 0; w && i < w->count; i++) {
    const before *b = &w->each[i];
    td_probe_values(b->variable->value, b->step, b->count, after);
    b->variable->update_ratio = (float)ratio(b, after);
  }
  td_memory_free(w);
}
