// %tape TAPE --step [EXPRESSION]: a backward pass of the tape, record by record. At each stop the record, its line, the
// cotangent that came and those that go on are shown; what goes on can be set before the pass takes it.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/ops/families.h"
#include "repl/language/core.h"
#include "repl/notebook/commands.h"
#include "repl/notebook/report_tape.h"

enum { SHOWN_MOST = 400 };

typedef struct stepper {
  td_interpreter *interpreter;
  const td_tape *tape;
  bool goes_on, quit; // without stops; the pass is left
} stepper;

typedef struct stop { // one record
  stepper *owner;
  td_context *context;
  const td_pass_step *step;
  int64_t index; // on the tape
} stop;

// ---- what there is to show ----

static int64_t index_of(const td_tape *tape, const td_record *record) { // -1: another tape's
  int64_t first = 0, last = td_tape_length(tape);
  while (first < last) {
    int64_t middle = first + (last - first) / 2;
    const td_record *at = td_tape_record_at(tape, middle);
    if (at == record) return middle;
    if (at->serial < record->serial) first = middle + 1;
    else last = middle;
  }
  return -1;
}

static void input_name(const td_record *record, int input, char name[40]) {
  if (td_op_takes_list(record->op)) snprintf(name, 40, "%s%d", record->op->params[0].name, input);
  else snprintf(name, 40, "%s", record->op->params[input].name);
}

static void add_value(td_interpreter *I, td_tensor *t, td_text *text) { // on one line
  td_value v = td_tensor_box(I, td_tensor_ref(t));
  td_text shown = {0};
  if (td_is_nil(v) || !td_print(I, v, &shown)) td_clear_raised(I);
  for (size_t i = 0; i < shown.length && i < SHOWN_MOST; i++) {
    td_text_add_char(text, shown.data[i] == '\n' ? ' ' : shown.data[i]);
    if (shown.data[i] == '\n') i += strspn(shown.data + i + 1, " ");
  }
  td_text_add(text, shown.length > SHOWN_MOST ? " ...\n" : "\n");
  td_text_clear(&shown);
  td_unref(v);
}

static void add_row(td_interpreter *I, const char *mark, const char *name, td_tensor *t, td_text *text) {
  size_t start = text->length;
  td_text_print(text, "  %s%s", mark, name);
  td_text_pad(text, start + 20, ' ');
  td_text_add_char(text, ' ');
  if (!t) {
    td_text_add(text, "nothing\n");
    return;
  }
  td_meta_print(text, t->dtype, t->rank, t->shape);
  td_text_add(text, "  ");
  add_value(I, t, text);
}

static void add_source(td_interpreter *I, td_place place, td_text *text) {
  const td_script *script = td_source_find(&I->sources, place);
  int line, length;
  if (!script) return;
  td_source_position(script, (uint32_t)place, &line, NULL);
  const char *source = td_source_line(script, line, &length);
  while (length && (*source == ' ' || *source == '\t')) source++, length--;
  td_text_add(text, "-> ");
  td_source_print(text, source, (size_t)length);
  td_text_add_char(text, '\n');
}

static void add_onward(const stop *s, td_text *text) {
  const td_record *record = s->step->record;
  for (int i = 0; i < record->in_count; i++) {
    char name[40];
    input_name(record, i, name);
    if (s->step->needs[i]) add_row(s->owner->interpreter, "to ", name, s->step->din[i], text);
  }
}

static void add_cotangents(const stop *s, td_text *text) {
  td_interpreter *I = s->owner->interpreter;
  const td_record *record = s->step->record;
  for (int i = 0; i < record->out_count; i++)
    if (s->step->cotangent[i])
      add_row(I, "", record->out_count > 1 ? "a cotangent" : "cotangent", s->step->cotangent[i], text);
  add_onward(s, text);
}

static void tell_stop(const stop *s) { // to faces that show tapes
  td_interpreter *I = s->owner->interpreter;
  const td_record *record = s->step->record;
  char place[64];
  if (!I->sink) return;
  td_place_describe(s->context, record->place, place, sizeof place);
  td_text onward = {0};
  add_onward(s, &onward);
  td_record_name name = td_record_name_of(record);
  td_event event = {.kind = TD_EVENT_STEP,
                    .cell = I->cell,
                    .text = name.text,
                    .length = strlen(name.text),
                    .detail = place,
                    .done = s->index,
                    .total = td_tape_length(s->owner->tape),
                    .payload = td_report_record_step(I, s->owner->tape, s->index, s->step->cotangent[0],
                                                     onward.data ? onward.data : "")};
  td_text_clear(&onward);
  const td_script *script = td_source_find(&I->sources, record->place);
  if (script)
    event.name = script->name, td_source_position(script, (uint32_t)record->place, &event.line, &event.column);
  I->sink->emit(I->sink->owner, &event);
}

static void show_stop(const stop *s) {
  td_interpreter *I = s->owner->interpreter;
  const td_record *record = s->step->record;
  char place[64];
  td_text text = {0};
  td_place_describe(s->context, record->place, place, sizeof place);
  td_text_print(&text, "> record %lld of %lld: %s at %s\n", (long long)s->index,
                (long long)td_tape_length(s->owner->tape), td_record_name_of(record).text, place);
  add_source(I, record->place, &text);
  add_cotangents(s, &text);
  td_output_text(I, &text);
}

// ---- expressions: cotangent, and the inputs' names for what goes on to them ----

static td_value evaluate(const stop *s, const char *expression) {
  td_interpreter *I = s->owner->interpreter;
  const td_record *record = s->step->record;
  td_value values[1 + TD_INPUT_MAX];
  int count = 0;
  td_text text = {0};
  td_text_add(&text, "lambda ");
  for (int i = -1; i < record->in_count; i++) {
    char name[40] = "cotangent";
    if (i >= 0) input_name(record, i, name);
    td_tensor *t = i >= 0 ? s->step->needs[i] ? s->step->din[i] : NULL : s->step->cotangent[0];
    td_value v = t ? td_tensor_box(I, td_tensor_ref(t)) : TD_NIL;
    if (td_is_nil(v)) continue;
    td_text_print(&text, "%s%s", count ? ", " : "", name);
    values[count++] = v;
  }
  td_text_print(&text, ": (%s)", expression);
  td_value callee = text.failed ? td_raise_memory(I) : td_evaluate_text(I, text.data, "%tape");
  td_value result = td_is_nil(callee) ? TD_NIL : td_call_values(I, callee, count, values);
  for (int i = 0; i < count; i++) td_unref(values[i]);
  td_unref(callee);
  td_text_clear(&text);
  return result;
}

static void show_expression(const stop *s, const char *expression) {
  td_interpreter *I = s->owner->interpreter;
  td_value v = evaluate(s, expression);
  td_text text = {0};
  if (td_is_nil(v)) td_output_raised(I);
  else if (td_repr(I, v, &text)) td_text_add_char(&text, '\n'), td_output_text(I, &text);
  else td_output_raised(I);
  td_text_clear(&text);
  td_unref(v);
}

// ---- set ----

// "NAME = EXPRESSION", or an expression alone where one input leads on. -1: it can't be told.
static int set_target(const stop *s, const char **expression) {
  const td_record *record = s->step->record;
  int only = -1, leading = 0;
  for (int i = 0; i < record->in_count; i++) {
    char name[40];
    input_name(record, i, name);
    if (!s->step->needs[i]) continue;
    only = i;
    leading++;
    size_t length = strlen(name), space = strspn(*expression + length, " ");
    const char *after = *expression + length + space;
    if (strncmp(*expression, name, length) != 0 || after[0] != '=' || after[1] == '=') continue;
    *expression = after + 1;
    return i;
  }
  return leading == 1 ? only : -1;
}

static bool like_of(const td_pass_step *step, int input, td_meta *like) { // what goes to an input looks like
  const td_record *record = step->record;
  if (step->din[input]) return *like = td_tensor_meta(step->din[input]), true;
  const td_record *parent = record->parents[input];
  if (!parent) return false;
  *like = parent->out_meta[record->parent_output[input]];
  return true;
}

static bool fits(const td_tensor *t, const td_meta *like) { // it broadcasts
  if (t->rank > like->rank) return false;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] != 1 && t->shape[i] != like->shape[like->rank - t->rank + i]) return false;
  return true;
}

static void set_cotangent(const stop *s, const char *expression) {
  td_interpreter *I = s->owner->interpreter;
  td_text text = {0};
  td_meta like;
  int input = set_target(s, &expression);
  if (input < 0 || !like_of(s->step, input, &like)) {
    td_text_add(&text, "set NAME = EXPRESSION: it goes on to several inputs\n");
    td_output_text(I, &text);
    return;
  }
  td_value v = evaluate(s, expression);
  td_tensor *t = td_is_nil(v) ? NULL : td_to_tensor_of(I, v, like.dtype);
  td_unref(v);
  if (!t) {
    td_output_raised(I);
    return;
  }
  td_scope_own(s->step->scope, t);
  char name[40];
  input_name(s->step->record, input, name);
  if (fits(t, &like)) {
    s->step->din[input] = td_broadcast_to(s->step->scope, t, like.rank, like.shape);
    add_row(I, "to ", name, s->step->din[input], &text);
  } else {
    td_text_print(&text, "what goes to %s has the shape ", name);
    td_shape_print(&text, like.rank, like.shape);
    td_text_add(&text, ", and this ");
    td_shape_print(&text, t->rank, t->shape);
    td_text_add_char(&text, '\n');
  }
  td_output_text(I, &text);
}

// ---- keys ----

static const char keys_text[] =
    "  n          takes the step and stops at the next record; so does an empty line\n"
    "  c          goes on without stops\n"
    "  p          shows the cotangents again; p EXPR, or EXPR: a value. cotangent is the one that came, an input's "
    "name\n"
    "             what goes on to it\n"
    "  set EXPR   puts another one in its place; set NAME = EXPR where several inputs lead on\n"
    "  q          leaves the pass\n";

static bool is_one_of(const char *line, const char *words) { // words: each between spaces
  char padded[16];
  return strlen(line) < 12 && snprintf(padded, sizeof padded, " %s ", line) > 0 && strstr(words, padded);
}

static const char *argument_of(const char *line, const char *word) { // NULL: another word
  size_t length = strlen(word);
  if (strncmp(line, word, length) != 0 || (line[length] != ' ' && line[length] != '\t')) return NULL;
  return line + length + strspn(line + length, " \t");
}

static bool obey(const stop *s, const char *line) { // true: the pass goes on
  const char *argument;
  td_text text = {0};
  if (!*line || is_one_of(line, " n next s step ")) return true;
  if (is_one_of(line, " c cont continue ")) return s->owner->goes_on = true;
  if (is_one_of(line, " q quit exit ")) return s->owner->quit = true;
  if (is_one_of(line, " h help ? ")) td_output(s->owner->interpreter, 1, keys_text, sizeof keys_text - 1);
  else if (is_one_of(line, " p ")) {
    add_cotangents(s, &text);
    td_output_text(s->owner->interpreter, &text);
  } else if ((argument = argument_of(line, "set"))) {
    set_cotangent(s, argument);
    tell_stop(s);
  } else show_expression(s, (argument = argument_of(line, "p")) ? argument : line);
  return false;
}

static bool ask(const stop *s) { // false: an exception is in flight
  td_interpreter *I = s->owner->interpreter;
  for (bool goes_on = false; !goes_on;) {
    td_output_flush(I);
    char *line = I->read_line ? I->read_line(I, "(step) ") : NULL;
    if (!line && !td_is_nil(I->raised)) return false;
    char *start = line ? line + strspn(line, " \t") : NULL;
    for (size_t end = start ? strlen(start) : 0; end && strchr(" \t\r", start[end - 1]); end--) start[end - 1] = 0;
    if (!start) s->owner->quit = true;
    goes_on = !start || obey(s, start);
    td_memory_free(line);
    if (!td_is_nil(I->raised)) return false;
  }
  return true;
}

static int on_step(void *owner, td_context *context, const td_pass_step *step) {
  stepper *st = owner;
  stop s = {st, context, step, index_of(st->tape, step->record)};
  td_place place = context->place;
  if (st->goes_on || s.index < 0) return TD_OK;
  td_no_grad_enter(context);
  tell_stop(&s);
  show_stop(&s);
  bool ok = ask(&s);
  td_no_grad_leave(context);
  context->place = place;
  if (ok && st->quit) td_raise(st->interpreter, TD_CLASS_KEYBOARD_INTERRUPT, "the pass was left");
  return ok && !st->quit ? TD_OK : td_error_set(context, TD_ERROR_CALLBACK, "the pass was left");
}

td_value td_tape_step(td_interpreter *I, const td_tape *tape, const char *expression) {
  stepper s = {.interpreter = I, .tape = tape};
  td_observer observer = {on_step, &s};
  if (!*expression) {
    td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%tape --step needs the pass to step through");
    td_raise_hint(I, "%%tape t --step t.gradient(loss, w)");
    return TD_NIL;
  }
  if (td_tape_observe(I->context, &observer) != TD_OK) return td_raise_engine(I);
  td_value v = td_evaluate_text(I, expression, "%tape");
  td_tape_observe(I->context, NULL);
  if (!s.quit || !td_is_nil(v)) return v;
  td_clear_raised(I);
  return TD_NONE;
}
