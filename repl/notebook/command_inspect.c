// %who, %whos, %mem, %tape, %health: what the session holds.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/nest.h"
#include "repl/notebook/commands.h"

static bool is_user_name(const td_global *global) { return !td_is_nil(global->value) && global->name->data[0] != '_'; }

static td_value run_who(td_interpreter *I, const char *arguments) {
  (void)arguments;
  td_text text = {0};
  for (int i = 0; i < I->main->count; i++)
    if (is_user_name(I->main->globals[i]))
      td_text_print(&text, "%s%s", text.length ? "  " : "", I->main->globals[i]->name->data);
  td_text_add(&text, text.length ? "\n" : "nothing is defined yet\n");
  td_output_text(I, &text);
  return TD_NONE;
}

static void describe(td_interpreter *I, td_value v, td_text *text) {
  const td_tensor *t = td_tensor_of(v);
  if (t) {
    td_meta_print(text, t->dtype, t->rank, t->shape);
    td_text_print(text, "  %lld bytes", (long long)(t->size * td_dtype_bytes(t->dtype)));
    return;
  }
  td_text shown = {0};
  if (!td_repr(I, v, &shown)) td_clear_raised(I);
  for (size_t i = 0; i < shown.length && i < 60; i++)
    td_text_add_char(text, shown.data[i] == '\n' ? ' ' : shown.data[i]);
  if (shown.length > 60) td_text_add(text, "...");
  td_text_clear(&shown);
}

static td_value run_whos(td_interpreter *I, const char *arguments) {
  (void)arguments;
  td_text text = {0};
  for (int i = 0; i < I->main->count; i++) {
    const td_global *global = I->main->globals[i];
    if (!is_user_name(global)) continue;
    size_t start = text.length;
    td_text_add(&text, global->name->data);
    td_text_pad(&text, start + 16, ' ');
    td_text_print(&text, " %s", td_type_name(I, global->value));
    td_text_pad(&text, start + 28, ' ');
    td_text_add_char(&text, ' ');
    describe(I, global->value, &text);
    td_text_add_char(&text, '\n');
  }
  if (!text.length) td_text_add(&text, "nothing is defined yet\n");
  td_output_text(I, &text);
  return TD_NONE;
}

static td_value run_mem(td_interpreter *I, const char *arguments) {
  (void)arguments;
  td_text text = {0};
  long long variables = td_variable_count();
  td_text_print(&text, "live %lld bytes, peak %lld bytes, %lld Variable%s\n", (long long)td_memory_live(),
                (long long)td_memory_peak(), variables, variables == 1 ? "" : "s");
  td_output_text(I, &text);
  return TD_NONE;
}

static void record_print(td_interpreter *I, const td_record *record, int64_t index, td_text *text) {
  char place[64];
  size_t start = text->length;
  td_text_print(text, "%6lld  %s", (long long)index, record->op ? record->op->name : "leaf");
  td_text_pad(text, start + 28, ' ');
  td_meta_print(text, record->out_meta[0].dtype, record->out_meta[0].rank, record->out_meta[0].shape);
  td_text_pad(text, start + 52, ' ');
  td_place_describe(I->context, record->place, place, sizeof place);
  td_text_print(text, " %8lld bytes  %s\n", (long long)td_record_bytes(record), place);
}

static td_value run_tape(td_interpreter *I, const char *arguments) {
  td_value v = td_evaluate_text(I, *arguments ? arguments : "tape", "%tape");
  if (td_is_nil(v)) return TD_NIL;
  if (!td_is(v, &td_tape_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%%tape needs a GradientTape, not %s", td_type_name(I, v));
    td_unref(v);
    return TD_NIL;
  }
  const td_tape *tape = ((td_tape_value *)v.o)->tape;
  int64_t count = td_tape_length(tape), shown = count > 200 ? 200 : count;
  td_text text = {0};
  td_text_print(&text, "%lld records\n", (long long)count);
  for (int64_t i = 0; i < shown; i++) record_print(I, td_tape_record_at(tape, i), i, &text);
  if (shown < count) td_text_print(&text, "... %lld more\n", (long long)(count - shown));
  td_output_text(I, &text);
  td_unref(v);
  return TD_NONE;
}

// ---- %health: norms of values and gradients, layer by layer ----

static double norm_of(const td_tensor *t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++) {
    double x = td_tensor_get_float(t, i);
    sum += x * x;
  }
  return sqrt(sum);
}

typedef struct health { td_text text; int count; } health;

static bool health_leaf(td_interpreter *I, td_value leaf, void *argument) {
  health *h = argument;
  if (!td_is(leaf, &td_variable_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%%health needs Variables or a model, not %s", td_type_name(I, leaf));
    return false;
  }
  const td_variable *v = td_unbox_variable(leaf);
  char unnamed[24];
  snprintf(unnamed, sizeof unnamed, "variable %d", h->count++);
  size_t start = h->text.length;
  td_text_print(&h->text, "%s", v->name[0] ? v->name : unnamed);
  td_text_pad(&h->text, start + 20, ' ');
  td_text_print(&h->text, " value %-10.4g", norm_of(v->value));
  if (v->grad) {
    double norm = norm_of(v->grad);
    const char *flag = norm != norm ? "  NaN" : norm < 1e-7 ? "  vanishing" : norm > 1e3 ? "  exploding" : "";
    td_text_print(&h->text, " gradient %-10.4g%s", norm, flag);
  } else td_text_add(&h->text, " gradient none");
  td_text_add_char(&h->text, '\n');
  return true;
}

static td_value run_health(td_interpreter *I, const char *arguments) {
  if (!*arguments) return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%health needs a list of Variables or a model");
  td_value v = td_evaluate_text(I, arguments, "%health");
  if (td_is_nil(v)) return TD_NIL;
  health h = {0};
  bool ok = td_nest_each(I, v, health_leaf, &h);
  td_unref(v);
  if (ok) td_output_text(I, &h.text);
  td_text_clear(&h.text);
  return ok ? TD_NONE : TD_NIL;
}

const td_command_row td_commands_inspect[] = {
    {"who", "%who", run_who, "The names that this session defined."},
    {"whos", "%whos", run_whos, "The names with types, shapes and bytes."},
    {"mem", "%mem", run_mem, "Bytes that tensors and values hold now, and the most so far."},
    {"tape", "%tape TAPE", run_tape, "The records of a tape: op, shape, bytes held, source line."},
    {"health", "%health VARIABLES", run_health,
     "Norms of values and gradients; marks gradients below 1e-7 and above 1e3."},
    {NULL, NULL, NULL, NULL}};
