// One record of a tape with its numbers, and how reports find tapes and rows (report_find.h).
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/turn.h"
#include "repl/language/watch.h"
#include "repl/notebook/lookup.h"
#include "repl/notebook/report_find.h"
#include "repl/notebook/report_tape.h"

enum { LOOKED_MOST = 1 << 18, PRINTED_MOST = 4000 };

// ---- which tape ----

static uint64_t newness(const td_tape *tape) {
  const td_record *last = td_tape_record_at(tape, td_tape_length(tape) - 1);
  return last ? last->serial : 0;
}

static void take(td_found_tape *found, td_tape *tape, const char *name, bool open, td_value value) {
  *found = (td_found_tape){tape, name, value, open};
}

static void take_value(td_found_tape *found, td_value v, const char *name) {
  const td_tape_value *value = (td_tape_value *)v.o;
  take(found, value->tape, name, value->open, v);
}

static td_found_tape find_newest(td_interpreter *I) {
  td_found_tape found = {.value = TD_NIL};
  for (int i = 0; i < I->main->count; i++) {
    td_value v = I->main->globals[i]->value;
    if (!td_is(v, &td_tape_type)) continue;
    if (!found.tape || newness(((td_tape_value *)v.o)->tape) > newness(found.tape))
      take_value(&found, v, I->main->globals[i]->name->data);
  }
  td_value last = td_watch_last_tape(I);
  if (td_is(last, &td_tape_type) && (!found.tape || newness(((td_tape_value *)last.o)->tape) > newness(found.tape)))
    take_value(&found, last, "");
  td_tape *open = found.tape ? NULL : td_tape_newest(I->turn ? I->turn->main.context : I->context);
  if (open) take(&found, open, "", true, TD_NIL);
  if (!found.tape) td_raise(I, TD_CLASS_NAME_ERROR, "there is no tape yet");
  return found;
}

td_found_tape td_tape_find(td_interpreter *I, const char *path) {
  td_found_tape found = {.value = TD_NIL};
  if (!*path) {
    found = find_newest(I);
    td_ref(found.value);
  } else {
    td_value v = td_lookup_path(I, path, strlen(path));
    if (td_is(v, &td_tape_type)) take_value(&found, v, path);
    else if (td_is_nil(I->raised)) td_raise(I, TD_CLASS_NAME_ERROR, "no tape is named %.60s", path);
    if (!found.tape) td_unref(v);
  }
  if (found.tape) td_tape_ref(found.tape);
  return found;
}

void td_tape_found_end(td_interpreter *I, td_found_tape *found) {
  td_tape_unref(I->context, found->tape);
  td_unref(found->value);
}

// ---- which row ----

static int64_t find_leaf(const td_tape *tape, const td_record *record) {
  int64_t first = 0, last = td_tape_leaf_count(tape);
  while (first < last) {
    int64_t middle = first + (last - first) / 2;
    if (td_tape_leaf_at(tape, middle)->serial < record->serial) first = middle + 1;
    else last = middle;
  }
  return td_tape_leaf_at(tape, first) == record ? td_tape_length(tape) + first : -1;
}

// Serials grow by one at least from record to record, so a record stands behind the place that their difference tells;
// usually right there.
int64_t td_tape_find_row(const td_tape *tape, const td_record *record, int64_t before) {
  const td_record *child = td_tape_record_at(tape, before);
  int64_t first = child ? before - (int64_t)(child->serial - record->serial) : 0, last = before, step = 1;
  if (record->op && first < 0) first = 0;
  if (!record->op || first >= before) return find_leaf(tape, record);
  while (first + step < before && td_tape_record_at(tape, first + step)->serial <= record->serial) {
    first += step;
    step *= 2;
  }
  if (first + step < last) last = first + step;
  while (first < last) {
    int64_t middle = first + (last - first) / 2;
    if (td_tape_record_at(tape, middle)->serial < record->serial) first = middle + 1;
    else last = middle;
  }
  return td_tape_record_at(tape, first) == record ? first : find_leaf(tape, record);
}

// ---- a record ----

// Borrowed; NULL: nothing kept it.
static const td_tensor *value_of(const td_tape *tape, const td_record *record, int64_t index) {
  for (int i = 0; record->op && i < record->out_count; i++)
    if (td_record_saved(record, record->in_count + i)) return td_record_saved(record, record->in_count + i);
  for (int64_t n = record->op ? index + 1 : 0; n < td_tape_length(tape); n++) {
    const td_record *child = td_tape_record_at(tape, n);
    for (int i = 0; child->parents && i < child->in_count; i++)
      if (child->parents[i] == record && td_record_saved(child, i)) return td_record_saved(child, i);
  }
  td_variable *v = record->variable ? td_variable_find(record->variable) : NULL;
  return v ? v->value : NULL;
}

static void add_arguments(const td_record *record, td_text *text) {
  if (!record->op || !record->args) return;
  int first = td_op_tensor_params(record->op), count = td_op_arg_count(record->op);
  for (int i = 0; i < count; i++) {
    td_text_print(text, "%s%s=", i ? ", " : "", record->op->params[first + i].name);
    td_arg_print(text, &record->op->params[first + i], &record->args[i]);
  }
}

static void add_source(td_interpreter *I, td_place place, td_text *text) {
  const td_script *script = td_source_find(&I->sources, place);
  int line, length;
  if (!script) return;
  td_source_position(script, (uint32_t)place, &line, NULL);
  const char *source = td_source_line(script, line, &length);
  while (length && (*source == ' ' || *source == '\t')) source++, length--;
  td_text_add_bytes(text, source, (size_t)length);
}

static void add_value(const td_tensor *t, td_text *text) {
  if (t->flags & TD_TENSOR_BATCHED) return;
  td_tensor_print(t, text, 200, "");
  if (text->length <= PRINTED_MOST) return;
  text->length = PRINTED_MOST;
  td_text_add(text, "...");
}

static char *name_of(const td_record *record) {
  const td_variable *v = record->variable ? td_variable_find(record->variable) : NULL;
  if (record->op) return td_memory_text(td_record_name_of(record).text);
  return td_memory_text(v && *v->name ? v->name : v ? "Variable" : "watched");
}

static void release(td_payload *payload) {
  td_report_record *r = (td_report_record *)payload;
  char *texts[] = {r->op, r->place, r->source, r->arguments, r->value, r->shape, r->cotangent, r->onward};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) td_memory_free(texts[i]);
  td_memory_free(r);
}

static char *taken(td_text *text) { return text->length ? td_text_take(text) : td_memory_text(""); }

static const td_tensor *gradient_of(td_interpreter *I, const td_record *record) { // borrowed; NULL: none is known
  td_variable *v = record->op || !record->variable ? NULL : td_variable_find(record->variable);
  if (v) td_watch_closely(I, v);
  return v ? td_watch_last_gradient(I, v) : NULL;
}

// cotangent NULL: none is known.
static bool fill(td_interpreter *I, const td_tape *tape, const td_record *record, const td_tensor *cotangent,
                 const char *onward, td_report_record *r) {
  td_text text = {0};
  char place[64];
  const td_tensor *value = value_of(tape, record, r->index);
  td_place_describe(I->context, record->place, place, sizeof place);
  r->op = name_of(record);
  r->place = td_memory_text(place);
  add_source(I, record->place, &text);
  r->source = taken(&text);
  add_arguments(record, &text);
  r->arguments = taken(&text);
  td_meta_print(&text, record->out_meta[0].dtype, record->out_meta[0].rank, record->out_meta[0].shape);
  r->shape = taken(&text);
  if (value) add_value(value, &text);
  r->value = taken(&text);
  if (value) td_report_histogram(value, LOOKED_MOST, &r->values);
  if (cotangent) add_value(cotangent, &text);
  r->cotangent = taken(&text);
  if (cotangent) td_report_histogram(cotangent, LOOKED_MOST, &r->cotangents);
  r->onward = td_memory_text(onward);
  td_text_clear(&text);
  return r->op && r->place && r->source && r->arguments && r->shape && r->value && r->cotangent && r->onward;
}

static td_payload *describe(td_interpreter *I, const td_tape *tape, const td_record *record, int64_t index,
                            const td_tensor *cotangent, const char *onward) { // NULL: no memory
  td_report_record *r = td_memory_new_zero(sizeof *r);
  if (!r) return NULL;
  r->payload = (td_payload){release, TD_REPORT_RECORD};
  r->index = index;
  if (fill(I, tape, record, cotangent, onward, r)) return &r->payload;
  release(&r->payload);
  return NULL;
}

td_payload *td_report_record_step(td_interpreter *I, const td_tape *tape, int64_t index, const td_tensor *cotangent,
                                  const char *onward) {
  return describe(I, tape, td_tape_record_at(tape, index), index, cotangent, onward);
}

static td_payload *make(td_interpreter *I, const td_tape *tape, int64_t index) {
  const td_record *record = td_tape_record_at(tape, index);
  if (!record) record = td_tape_leaf_at(tape, index - td_tape_length(tape));
  if (!record) {
    td_raise(I, TD_CLASS_INDEX_ERROR, "the tape has no record %lld", (long long)index);
    return NULL;
  }
  td_payload *payload = describe(I, tape, record, index, gradient_of(I, record), "");
  if (!payload) td_raise_memory(I);
  return payload;
}

td_payload *td_report_record_make(td_interpreter *I, const char *argument) {
  char *end;
  int64_t index = strtoll(argument, &end, 10);
  end += strspn(end, " ");
  td_watch_ask_tapes(I);
  td_found_tape found = td_tape_find(I, end);
  td_payload *payload = found.tape ? make(I, found.tape, index) : NULL;
  if (found.tape) td_tape_found_end(I, &found);
  return payload;
}
