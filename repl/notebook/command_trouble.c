// %nan, %health: where numbers go wrong.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/tape/finite.h"
#include "repl/language/nest.h"
#include "repl/notebook/commands.h"

// ---- %nan ----

static void report(void *owner, const char *text) { td_warn(owner, text); }

static td_value nan_on(td_interpreter *I, bool infinite) {
  if (td_finite_of(I->context)) td_finite_stop(I->context, td_finite_of(I->context));
  return td_finite_start(I->context, infinite, report, I) ? TD_NONE : td_raise_engine(I);
}

static td_value nan_state(td_interpreter *I) {
  const td_finite *finite = td_finite_of(I->context);
  td_text text = {0};
  if (!finite) td_text_add(&text, "nobody looks for NaN: %nan on does\n");
  else if (!td_finite_found(finite)) td_text_add(&text, "no NaN so far\n");
  else td_text_print(&text, "%s\n", td_finite_found(finite));
  td_output_text(I, &text);
  return TD_NONE;
}

static td_value run_nan(td_interpreter *I, const char *arguments) {
  if (!*arguments) return nan_state(I);
  if (strcmp(arguments, "on") == 0) return nan_on(I, false);
  if (strcmp(arguments, "on --inf") == 0 || strcmp(arguments, "--inf") == 0) return nan_on(I, true);
  if (strcmp(arguments, "off") != 0)
    return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%nan takes on, on --inf or off, not %.60s", arguments);
  if (td_finite_of(I->context)) td_finite_stop(I->context, td_finite_of(I->context));
  return TD_NONE;
}

// ---- %health ----

static double norm_of(const td_tensor *t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++) {
    double x = td_tensor_get_float(t, i);
    sum += x * x;
  }
  return sqrt(sum);
}

static const char health_forms[] = "%health m; %health on m; %health variables, gradients; %health tape";

typedef struct health {
  td_text text;
  int count;
  const td_tensor **gradients; // of Variables in order, or NULL: what backward() left in them
  int gradient_count;
} health;

static void print_gradient(td_text *text, const td_tensor *gradient) {
  if (!gradient) {
    td_text_add(text, " gradient none");
    return;
  }
  double norm = norm_of(gradient);
  const char *flag = norm != norm ? "  NaN" : norm < 1e-7 ? "  vanishing" : norm > 1e3 ? "  exploding" : "";
  td_text_print(text, " gradient %.4g%s", norm, flag);
}

static bool health_leaf(td_interpreter *I, td_value leaf, void *argument) {
  health *h = argument;
  if (!td_is(leaf, &td_variable_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%%health needs Variables, a model or a tape, not %s", td_type_name(I, leaf));
    td_raise_hint(I, "%s", health_forms);
    return false;
  }
  const td_variable *v = td_unbox_variable(leaf);
  char unnamed[24];
  int index = h->count++;
  snprintf(unnamed, sizeof unnamed, "variable %d", index);
  size_t start = h->text.length;
  td_text_print(&h->text, "%s", v->name[0] ? v->name : unnamed);
  td_text_pad(&h->text, start + 20, ' ');
  td_text_print(&h->text, " value %-10.4g", norm_of(v->value));
  print_gradient(&h->text, !h->gradients ? v->grad : index < h->gradient_count ? h->gradients[index] : NULL);
  td_text_add_char(&h->text, '\n');
  return true;
}

static bool is_gradient(td_value v) { return td_is_none(v) || td_is(v, &td_tensor_type); }

// "variables, gradients": a pair whose second part is a list of tensors.
static const td_value *gradients_of(td_value v, int *count) {
  if (!td_is(v, &td_tuple_type) || td_as_tuple(v)->count != 2) return NULL;
  td_value second = td_as_tuple(v)->items[1];
  const td_value *items = td_is(second, &td_list_type)    ? td_as_list(second)->items
                          : td_is(second, &td_tuple_type) ? td_as_tuple(second)->items
                                                          : NULL;
  *count = items ? (int)(td_is(second, &td_list_type) ? td_as_list(second)->count : td_as_tuple(second)->count) : 0;
  for (int i = 0; i < *count; i++)
    if (!is_gradient(items[i])) return NULL;
  return *count ? items : NULL;
}

static bool variables_health(td_interpreter *I, td_value v, health *h) {
  enum { MOST = 1024 };
  const td_tensor *gradients[MOST];
  const td_value *items = gradients_of(v, &h->gradient_count);
  if (!items || h->gradient_count > MOST) return td_nest_each(I, v, health_leaf, h);
  for (int i = 0; i < h->gradient_count; i++) gradients[i] = td_is_none(items[i]) ? NULL : td_tensor_of(items[i]);
  h->gradients = gradients;
  return td_nest_each(I, td_as_tuple(v)->items[0], health_leaf, h);
}

static bool tape_health(td_interpreter *I, const td_tape *tape, health *h) { // units that pass no gradient on
  for (int64_t n = 0; n < td_tape_length(tape); n++) {
    td_record *record = (td_record *)td_tape_record_at(tape, n);
    int64_t units, dead;
    char place[64];
    if (td_tape_dead(I->context, record, &units, &dead) != TD_OK) return td_raise_engine(I), false;
    if (!units) continue;
    size_t start = h->text.length;
    td_text_print(&h->text, "%s", td_record_name_of(record).text);
    td_text_pad(&h->text, start + 20, ' ');
    td_place_describe(I->context, record->place, place, sizeof place);
    td_text_print(&h->text, " %lld of %lld units pass no gradient on (%.1f%%)  %s\n", (long long)dead, (long long)units,
                  100.0 * (double)dead / (double)units, place);
  }
  if (h->text.length) return true;
  td_text_add(&h->text, "no activation on this tape keeps what it needs for its gradient\n");
  if (td_tape_is_spent(tape)) td_text_print(&h->text, "%s\n", td_spent_text);
  return true;
}

// ---- models that are watched ----

static bool is_layer(td_interpreter *I, td_value v) {
  td_str *name = td_str_intern(I, "Layer", 5);
  td_value layer = name && td_is(v, &td_instance_type) ? td_builtin_find(I, name) : TD_NIL;
  td_unref(td_from(name));
  bool is = td_is(layer, &td_class_type) && td_isinstance(I, v, (td_class *)layer.o);
  td_unref(layer);
  return is;
}

static td_value watch_health(td_interpreter *I, const char *function, const char *model) {
  td_value v = td_evaluate_text(I, model, "%health"), result = TD_NIL;
  if (td_is_nil(v)) return TD_NIL;
  if (is_layer(I, v)) result = td_call_library(I, function, 1, &v);
  else if (td_is_nil(I->raised))
    td_raise(I, TD_CLASS_TYPE_ERROR, "%%health on and off take a model, not %s", td_type_name(I, v));
  td_unref(v);
  if (td_is_nil(result)) return TD_NIL;
  td_unref(result);
  return TD_NONE;
}

static bool watched_health(td_interpreter *I, td_value model, td_value watcher, health *h) { // watcher None: nobody
  static const char hint[] =
      "%health on m watches the training of m: dead units, gradients and updates of each layer\n";
  if (!td_is_none(watcher)) return td_print(I, watcher, &h->text) && (td_text_add_char(&h->text, '\n'), true);
  if (!variables_health(I, model, h)) return false;
  td_text_add(&h->text, hint);
  return true;
}

static bool model_health(td_interpreter *I, td_value model, health *h) {
  td_value watcher = td_call_library(I, "health_of", 1, &model);
  bool ok = !td_is_nil(watcher) && watched_health(I, model, watcher, h);
  td_unref(watcher);
  return ok;
}

static td_value run_health(td_interpreter *I, const char *arguments) {
  if (strncmp(arguments, "on ", 3) == 0) return watch_health(I, "health_on", arguments + 3);
  if (strncmp(arguments, "off ", 4) == 0) return watch_health(I, "health_off", arguments + 4);
  if (!*arguments) {
    td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%health needs Variables, a model or a tape");
    return td_raise_hint(I, "%s", health_forms), TD_NIL;
  }
  td_value v = td_evaluate_text(I, arguments, "%health");
  if (td_is_nil(v)) return TD_NIL;
  health h = {0};
  bool ok = td_is(v, &td_tape_type) ? tape_health(I, ((td_tape_value *)v.o)->tape, &h)
            : is_layer(I, v)        ? model_health(I, v, &h)
                                    : variables_health(I, v, &h);
  td_unref(v);
  if (ok) td_output_text(I, &h.text);
  td_text_clear(&h.text);
  return ok ? TD_NONE : TD_NIL;
}

const td_command_row td_commands_trouble[] = {
    {"nan", "%nan on | on --inf | off", run_nan,
     "Names the first op, forward or backward, that makes a NaN (or an infinity): line, element, operands."},
    {"health", "%health [on|off] MODEL, VARIABLES[, GRADIENTS] or TAPE", run_health,
     "Norms of values and gradients, those below 1e-7 and above 1e3 marked; of a tape, activations' dead units. "
     "%health "
     "on m watches a model: by layer dead units, gradients and updates, which %health m shows."},
    {NULL, NULL, NULL, NULL}};
