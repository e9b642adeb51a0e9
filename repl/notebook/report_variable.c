// One value of the session with its numbers, and a Variable's gradient with its own: report_variables.h.
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/watch.h"
#include "repl/notebook/report_variables.h"

enum { PRINTED_MOST = 4000, LOOKED_MOST = 1 << 18 };

static char *taken(td_text *text) { return text->length ? td_text_take(text) : td_memory_text(""); }

static char *print_tensor(const td_tensor *t) {
  td_text text = {0};
  if (!(t->flags & TD_TENSOR_BATCHED)) td_tensor_print(t, &text, 200, "");
  if (text.length > PRINTED_MOST) {
    text.length = PRINTED_MOST;
    td_text_add(&text, "...");
  }
  return taken(&text);
}

// Units are the last axis of what a Dense layer has, the first of a convolution's kernel.
static void count_dead(const td_tensor *gradient, td_report_variable *r) {
  int rank = gradient->rank, axis = rank > 2 ? 0 : rank - 1;
  if (rank < 1 || gradient->size > LOOKED_MOST || gradient->flags & TD_TENSOR_BATCHED) return;
  int64_t units = gradient->shape[axis], inner = axis ? 1 : gradient->size / (units ? units : 1);
  bool *lives = td_memory_new_zero((size_t)units + 1);
  if (!lives) return;
  for (int64_t i = 0; i < gradient->size; i++)
    if (td_tensor_get_float(gradient, i) != 0) lives[axis ? i % units : i / inner] = true; // NaN lives
  r->units = units;
  for (int64_t i = 0; i < units; i++) r->dead += !lives[i];
  td_memory_free(lives);
}

static bool fill_value(td_interpreter *I, td_value v, td_report_variable *r) {
  td_text text = {0};
  const td_tensor *t = td_tensor_of(v);
  const td_tensor *gradient = NULL;
  if (td_is(v, &td_variable_type)) {
    td_watch_closely(I, td_unbox_variable(v));
    gradient = td_watch_last_gradient(I, td_unbox_variable(v));
  }
  if (t) td_meta_print(&text, t->dtype, t->rank, t->shape);
  else td_text_add(&text, td_type_name(I, v));
  r->type = taken(&text);
  if (!t) td_report_value(I, v, PRINTED_MOST, &text);
  r->value = t ? print_tensor(t) : taken(&text);
  r->gradient = gradient ? print_tensor(gradient) : td_memory_text("");
  if (t) td_report_histogram(t, LOOKED_MOST, &r->values);
  if (gradient) td_report_histogram(gradient, LOOKED_MOST, &r->gradients);
  if (gradient) count_dead(gradient, r);
  td_text_clear(&text);
  return r->path && r->type && r->value && r->gradient;
}

static void release_value(td_payload *payload) {
  td_report_variable *r = (td_report_variable *)payload;
  char *texts[] = {r->path, r->type, r->value, r->gradient};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) td_memory_free(texts[i]);
  td_memory_free(r);
}

td_payload *td_report_variable_make(td_interpreter *I, const char *argument) {
  td_watch_ask(I);
  td_value v = td_report_find(I, argument);
  td_report_variable *r = td_is_nil(v) ? NULL : td_memory_new_zero(sizeof *r);
  if (r) {
    r->payload = (td_payload){release_value, TD_REPORT_VARIABLE};
    r->path = td_memory_text(argument);
    if (!fill_value(I, v, r)) {
      release_value(&r->payload);
      r = NULL;
    }
  }
  if (!r && td_is_nil(I->raised)) td_raise_memory(I);
  td_unref(v);
  return r ? &r->payload : NULL;
}
