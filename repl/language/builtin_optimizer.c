// Fused updates of Variables: what the optimizers of the library call. All arguments are checked before the first
// Variable changes, so an update happens whole or not at all.
#include "engine/base/memory.h"
#include "engine/ops/optimizer.h"
#include "repl/language/diagnose.h"
#include "repl/language/habit.h"
#include "repl/language/tensors.h"
#include "repl/language/watch.h"

typedef struct update_call {
  td_interpreter *interpreter;
  const char *who; // the optimizer, for messages
  td_update update;
  td_list *variables, *gradients;
  td_dict *slots; // Variable: its slots
  double initial; // value of a new slot
  td_variable **changed; // those of the Variables that have a gradient
  td_update_item *items; // their tensors; a gradient is held
  int64_t count;
} update_call;

// ---- arguments ----

static bool fail(td_interpreter *I, const char *who, const char *problem, td_value v) {
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s: %s, not %s", who, problem, td_type_name(I, v));
  return false;
}

static void name_rules(td_interpreter *I, td_list *names) {
  for (int i = 0; td_update_rule_at(i); i++) {
    td_value name = td_from(td_str_from(I, td_update_rule_at(i)->name));
    td_list_append(I, names, name);
    td_unref(name);
  }
}

static bool find_rule(td_interpreter *I, td_value v, const td_update_rule **rule) {
  if (!td_is(v, &td_str_type)) return fail(I, "apply_update", "rule must be a str", v);
  *rule = td_update_rule_find(td_as_str(v)->data);
  if (*rule) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "apply_update: there is no rule '%.40s'", td_as_str(v)->data);
  td_list *names = td_list_new(I, 0);
  if (!names) return false;
  name_rules(I, names);
  const char *near = td_suggest(td_as_str(v)->data, names);
  if (near) td_raise_hint(I, "did you mean '%s'?", near);
  td_unref(td_from(names));
  return false;
}

static bool read_numbers(td_interpreter *I, td_value v, td_update *update) {
  const td_update_rule *rule = update->rule;
  int wanted = 0;
  while (rule->numbers[wanted]) wanted++;
  bool ok = td_is(v, &td_tuple_type);
  if (!ok) return fail(I, "apply_update", "numbers must be a tuple", v);
  if (td_as_tuple(v)->count > wanted) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "apply_update: the rule '%s' takes %d numbers, not %lld", rule->name, wanted,
             (long long)td_as_tuple(v)->count);
    return false;
  }
  for (int64_t i = 0; ok && i < td_as_tuple(v)->count; i++)
    update->numbers[i] = td_to_double(I, td_as_tuple(v)->items[i], &ok);
  return ok;
}

static bool is_gradient(td_interpreter *I, const char *who, int64_t i, td_value gradient, const td_variable *variable) {
  const td_tensor *g = td_tensor_of(gradient), *value = variable->value;
  if (!g) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: gradient %lld is %s, not a tensor", who, (long long)i,
             td_type_name(I, gradient));
    return false;
  }
  if (!td_dtype_is_float(value->dtype) || td_dtype_is_half(value->dtype)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: Variable %lld is %s; float32 and float64 can be updated", who, (long long)i,
             td_dtype_name(value->dtype));
    return false;
  }
  if (td_shape_equal(g->rank, g->shape, value->rank, value->shape)) return true;
  td_text shapes = {0};
  td_shape_print(&shapes, value->rank, value->shape);
  td_text_add(&shapes, ", its gradient ");
  td_shape_print(&shapes, g->rank, g->shape);
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: Variable %lld has shape %s", who, (long long)i,
           shapes.data ? shapes.data : "");
  td_raise_hint(I, "gradients and Variables must stand in the same order");
  td_text_clear(&shapes);
  return false;
}

// ---- slots ----

static td_value new_slot(update_call *c, const td_tensor *value) {
  td_interpreter *I = c->interpreter;
  td_scope scope;
  td_scope_open(&scope, I->context);
  td_meta meta = td_tensor_meta(value);
  td_tensor *filled = td_scope_filled(&scope, c->initial, &meta);
  td_variable *slot = filled ? td_variable_new(I->context, filled, "", false) : NULL;
  td_scope_close(&scope);
  return slot ? td_variable_box(I, slot) : td_raise_engine(I);
}

static bool make_slots(update_call *c, td_value variable, td_value *slots) {
  td_interpreter *I = c->interpreter;
  td_list *made = td_list_new(I, c->update.rule->slots);
  bool ok = made != NULL;
  for (int i = 0; ok && i < c->update.rule->slots; i++) {
    td_value slot = new_slot(c, td_unbox_variable(variable)->value);
    ok = !td_is_nil(slot) && td_list_append(I, made, slot);
    td_unref(slot);
  }
  *slots = td_from(made);
  ok = ok && td_dict_set(I, c->slots, variable, *slots);
  td_unref(*slots); // the dict holds it
  return ok;
}

static bool slot_fits(td_value slot, const td_tensor *value) {
  if (!td_is(slot, &td_variable_type)) return false;
  const td_tensor *t = td_unbox_variable(slot)->value;
  return t->dtype == value->dtype && td_shape_equal(t->rank, t->shape, value->rank, value->shape);
}

static bool find_slots(update_call *c, td_value variable, td_value *slots) {
  td_interpreter *I = c->interpreter;
  int found = td_dict_get(I, c->slots, variable, slots);
  if (found < 0) return false;
  if (!found) return make_slots(c, variable, slots);
  bool fits = td_is(*slots, &td_list_type) && td_as_list(*slots)->count == c->update.rule->slots;
  for (int i = 0; fits && i < c->update.rule->slots; i++)
    fits = slot_fits(td_as_list(*slots)->items[i], td_unbox_variable(variable)->value);
  if (fits) return true;
  td_raise(I, TD_CLASS_VALUE_ERROR, "%s: the slots of a Variable must be %d Variables of its shape and dtype", c->who,
           c->update.rule->slots);
  return false;
}

// ---- Variables that can be written in place ----

// Makes the Variable's value one that nobody else sees: it is used as it is when that holds already, else copied.
static bool make_sole(td_interpreter *I, td_variable *variable) {
  td_tensor *value = variable->value;
  bool alone =
      atomic_load(&value->refs) == 1 && atomic_load(&value->storage->refs) == 1 && td_tensor_is_contiguous(value);
  if (!alone) {
    td_tensor *copy = td_tensor_new(I->context, value->dtype, value->rank, value->shape);
    if (!copy) return false;
    td_elements_copy(I->context->pool, copy->data, value->data, td_dtype_bytes(value->dtype), value->rank, value->shape,
                     value->strides);
    td_tensor_unref(value);
    variable->value = copy;
    return true;
  }
  td_origin_unref(value->origin);
  value->origin = NULL;
  return true;
}

// ---- one update ----

static bool add_item(update_call *c, int64_t i) {
  td_interpreter *I = c->interpreter;
  td_value variable = c->variables->items[i], gradient = c->gradients->items[i], slots;
  if (!td_is(variable, &td_variable_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s: Variable %lld is %s, not a Variable", c->who, (long long)i,
             td_type_name(I, variable));
    td_raise_hint(I, "only a Variable can be updated: w = Variable(value)");
    return false;
  }
  td_variable *changed = td_unbox_variable(variable);
  if (td_is_none(gradient) || !changed->trainable) return true;
  if (!is_gradient(I, c->who, i, gradient, changed) || !find_slots(c, variable, &slots)) return false;
  c->changed[c->count] = changed;
  td_update_item *item = &c->items[c->count++];
  *item = (td_update_item){.gradient = td_tensor_ref(td_tensor_of(gradient))};
  for (int k = 0; k < c->update.rule->slots; k++) {
    td_variable *slot = td_unbox_variable(td_as_list(slots)->items[k]);
    if (!make_sole(I, slot)) return !td_is_nil(td_raise_engine(I));
    item->slots[k] = slot->value;
  }
  return true;
}

static td_watched *watch(update_call *c) {
  for (int64_t i = 0; i < c->count; i++) td_watch_gradient(c->interpreter, c->changed[i], c->items[i].gradient);
  return td_watch_before(c->changed, c->count);
}

static bool run_update(update_call *c) {
  td_interpreter *I = c->interpreter;
  for (int64_t i = 0; i < c->variables->count; i++)
    if (!add_item(c, i)) return false;
  for (int64_t i = 0; i < c->count; i++) {
    if (!make_sole(I, c->changed[i])) return !td_is_nil(td_raise_engine(I));
    c->items[i].variable = c->changed[i]->value;
  }
  td_watched *watched = td_watch_is_due(I, true) ? watch(c) : NULL;
  int code = td_update_run(I->context, &c->update, c->items, c->count);
  td_watch_after(watched);
  if (code != TD_OK) return !td_is_nil(td_raise_engine(I));
  for (int64_t i = 0; i < c->count; i++) {
    c->changed[i]->assigned = I->context->place;
    td_tape_note_cut(I->context, TD_CUT_ASSIGN, NULL, c->changed[i]);
  }
  return true;
}

static td_value run_call(update_call *c) {
  td_interpreter *I = c->interpreter;
  int64_t most = c->variables->count + 1;
  c->changed = td_memory_new((size_t)most * sizeof *c->changed);
  c->items = td_memory_new((size_t)most * sizeof *c->items);
  if (!c->changed || !c->items) td_raise_memory(I);
  bool done = c->changed && c->items && run_update(c);
  for (int64_t i = 0; i < c->count; i++) td_tensor_unref((td_tensor *)c->items[i].gradient);
  td_memory_free(c->items);
  td_memory_free(c->changed);
  return done ? td_int(c->count) : TD_NIL;
}

static bool read_call(td_interpreter *I, td_value *a, update_call *c) {
  bool ok = true;
  int decoupled = td_truth(I, a[10]);
  if (!td_is(a[0], &td_str_type)) return fail(I, "apply_update", "name must be a str", a[0]);
  c->who = td_as_str(a[0])->data;
  if (decoupled < 0 || !find_rule(I, a[1], &c->update.rule)) return false;
  if (!td_is(a[2], &td_list_type)) return fail(I, c->who, "variables must be a list", a[2]);
  if (!td_is(a[3], &td_dict_type)) return fail(I, c->who, "slots must be a dict", a[3]);
  if (!td_is(a[4], &td_list_type)) return fail(I, c->who, "gradients must be a list", a[4]);
  c->variables = td_as_list(a[2]);
  c->slots = td_as_dict(a[3]);
  c->gradients = td_as_list(a[4]);
  if (c->variables->count != c->gradients->count) {
    td_raise(I, TD_CLASS_VALUE_ERROR, "%s.apply: %lld gradients but %lld Variables", c->who,
             (long long)c->gradients->count, (long long)c->variables->count);
    return false;
  }
  c->update.step = td_to_int(I, a[5], &ok);
  double *numbers[] = {&c->update.rate, NULL, &c->update.scale, &c->update.weight_decay};
  for (int i = 0; ok && i < 4; i++)
    if (numbers[i]) *numbers[i] = td_to_double(I, a[6 + i], &ok);
  if (ok) c->initial = td_to_double(I, a[11], &ok);
  c->update.decoupled = decoupled;
  return ok && read_numbers(I, a[7], &c->update);
}

static td_value builtin_apply_update(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  update_call c = {.interpreter = I};
  if (!read_call(I, a, &c)) return TD_NIL;
  if (td_recording(I->context) && td_truth(I, a[12]) == 1)
    td_warn(I, "Variables are updated while a tape records: leave its with block first, or update inside no_grad()");
  return run_call(&c);
}

// ---- for the decks ----

static td_value builtin_constrained(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  if (!td_is(a[0], &td_list_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "_constrained: needs a list of Variables");
  td_list *found = td_list_new(I, 0);
  if (!found) return TD_NIL;
  for (int64_t i = 0; i < td_as_list(a[0])->count; i++) {
    td_value v = td_as_list(a[0])->items[i];
    if (!td_is(v, &td_variable_type) || td_is_none(((td_variable_value *)v.o)->constraint)) continue;
    if (td_list_append(I, found, v)) continue;
    td_unref(td_from(found));
    return TD_NIL;
  }
  return td_from(found);
}

static td_value builtin_gathering(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  td_gathering_set(I->context, td_truth(I, a[0]) == 1);
  return TD_NONE;
}

static td_value builtin_warn(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  if (!td_is(a[0], &td_str_type)) return td_raise(I, TD_CLASS_TYPE_ERROR, "_warn: needs a str");
  td_warn(I, td_as_str(a[0])->data);
  return TD_NONE;
}

static td_value builtin_near(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  if (!td_is(a[0], &td_str_type) || !td_is(a[1], &td_list_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "_near: needs a str and a list of str");
  const char *near = td_suggest(td_as_str(a[0])->data, td_as_list(a[1]));
  return near ? td_from(td_str_from(I, near)) : TD_NONE;
}

static td_value builtin_refuse_keyword(td_interpreter *I, td_value self, td_value *a) {
  (void)self;
  if (!td_is(a[0], &td_str_type) || !td_is(a[1], &td_str_type) || !td_is(a[2], &td_list_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "_refuse_keyword: needs two str and a list of str");
  return td_refuse_keyword(I, td_as_str(a[0])->data, td_as_str(a[1]), td_as_list(a[2]));
}

const td_method td_optimizer_builtins[] = {
    {"_gathering", "(on)", builtin_gathering,
     "With True, backward() adds to an old grad without a warning, until a call with False."},
    {"_constrained", "(variables)", builtin_constrained, "Those of a list of Variables that have a constraint."},
    {"_warn", "(message)", builtin_warn, "A warning that names the line of the user's that runs."},
    {"_refuse_keyword", "(callee, keyword, names)", builtin_refuse_keyword,
     "Raises what a call with a keyword raises that is none of names, with the nearest of them as its hint."},
    {"_near", "(word, names)", builtin_near, "The one of names that word was probably meant to be, or None."},
    {"apply_update",
     "(name, rule, variables, slots, gradients, step, rate, numbers, scale=1.0, weight_decay=0.0, decoupled=True, "
     "initial=0.0, warn=True)",
     builtin_apply_update,
     "One step of an update rule on a list of Variables, in place, in one pass over memory: what an optimizer's apply "
     "calls.\n"
     "rule is \"sgd\", \"momentum\", \"adam\" or another one of the engine; numbers are its own, in its order. slots "
     "maps "
     "a Variable to\n"
     "the list of its slots; those that lack are made, filled with initial. The gradients are multiplied by scale. "
     "step counts from 1.\n"
     "A None among the gradients leaves its Variable as it is, so does trainable=False. Returns how many were "
     "updated."},
    {NULL, NULL, NULL, NULL}};
