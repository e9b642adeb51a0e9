// Expressions: one function for each kind of node, found through the node. A value returned is owned by the caller;
// NIL says that an exception is set. evaluate_fast.c has quicker forms of the common ones, call.c the calls,
// comprehension.c the comprehensions.
#include <stdio.h>
#include <string.h>

#include "repl/language/core.h"
#include "repl/language/habit.h"

static td_value evaluate_constant(td_interpreter *I, const td_node *n) {
  (void)I;
  return td_ref(n->value);
}

// ---- names ----

// The built-in module that is called so, or has a member that is: the hint goes to text.
static bool module_hint(td_interpreter *I, td_str *name, char *text, size_t size) {
  for (int32_t i = 0; i < I->core->module_count; i++) {
    td_module *module = I->core->modules[i];
    bool itself = strcmp(module->name->data, name->data) == 0;
    td_value member = itself ? TD_NIL : td_module_attribute(I, module, name);
    if (!itself && td_is_nil(member)) continue;
    td_unref(member);
    bool known = !td_is_nil(td_module_get(I->builtins, module->name));
    if (itself) snprintf(text, size, "write 'import %s' first", name->data);
    else if (known) snprintf(text, size, "did you mean '%s.%s'?", module->name->data, name->data);
    else snprintf(text, size, "write 'from %s import %s' first", module->name->data, name->data);
    return true;
  }
  return false;
}

static void name_hint(td_interpreter *I, const td_node *n) {
  td_value raised = td_take_raised(I);
  td_list *names = td_list_new(I, 64);
  const char *near = NULL;
  if (names) {
    const td_prototype *p = I->frame->prototype;
    for (int32_t i = 0; p && i < p->slot_count; i++)
      if (p->slot_names[i] && p->slot_names[i] != n->name && !td_is_nil(I->slots[i]))
        td_list_append(I, names, td_borrow(p->slot_names[i]));
    td_module *module = I->frame->module;
    for (int32_t i = 0; i < module->count; i++)
      if (!td_is_nil(module->globals[i]->value)) td_list_append(I, names, td_borrow(module->globals[i]->name));
    td_builtin_names(I, names);
    near = td_suggest(n->name->data, names);
  }
  char text[200];
  bool in_module = module_hint(I, n->name, text, sizeof text);
  td_clear_raised(I);
  td_put_raised(I, raised);
  const char *habit = td_habit(TD_HABIT_NAME, n->name->data);
  if (td_habit_is_module(n->name->data)) td_habit_module_hint(I, n, names);
  else if (habit) td_raise_hint(I, "%s", habit);
  else if (in_module) td_raise_hint(I, "%s", text);
  else if (near) td_raise_hint(I, "did you mean '%s'?", near);
  td_unref(td_from(names));
}

static td_value global_missing(td_interpreter *I, const td_node *n) {
  td_global *global = n->global;
  if (td_is_nil(global->builtin)) global->builtin = td_builtin_find(I, global->name);
  if (!td_is_nil(global->builtin)) return td_ref(global->builtin);
  if (!td_is_nil(I->raised)) return TD_NIL;
  td_raise_at(I, n, TD_CLASS_NAME_ERROR, "name '%s' is not defined", n->name->data);
  name_hint(I, n);
  return TD_NIL;
}

static bool is_captured(const td_prototype *p, int32_t slot) {
  for (int32_t i = 0; i < p->capture_count; i++)
    if (p->captures[i].inner == slot) return true;
  return false;
}

td_value td_name_missing(td_interpreter *I, const td_node *n) {
  if (n->scope == TD_SCOPE_GLOBAL || n->scope == TD_SCOPE_CLASS) return global_missing(I, n);
  if (n->scope == TD_SCOPE_CELL && is_captured(I->frame->prototype, n->slot))
    return td_raise_at(I, n, TD_CLASS_NAME_ERROR,
                       "cannot access free variable '%s' where it is not associated with a value in enclosing scope",
                       n->name->data);
  return td_raise_at(I, n, TD_CLASS_UNBOUND_LOCAL_ERROR,
                     "cannot access local variable '%s' where it is not associated with a value", n->name->data);
}

static td_value evaluate_local(td_interpreter *I, const td_node *n) {
  td_value v = I->slots[n->slot];
  return TD_LIKELY(!td_is_nil(v)) ? td_ref(v) : td_name_missing(I, n);
}

static td_value evaluate_global(td_interpreter *I, const td_node *n) {
  const td_global *global = n->global;
  if (TD_LIKELY(!td_is_nil(global->value))) return td_ref(global->value);
  if (TD_LIKELY(!td_is_nil(global->builtin))) return td_ref(global->builtin);
  return td_name_missing(I, n);
}

static td_value evaluate_cell(td_interpreter *I, const td_node *n) {
  td_value v = ((td_cell *)I->slots[n->slot].o)->value;
  return TD_LIKELY(!td_is_nil(v)) ? td_ref(v) : td_name_missing(I, n);
}

static td_value evaluate_class_name(td_interpreter *I, const td_node *n) {
  td_value v = I->slots[n->slot];
  return td_is_nil(v) ? evaluate_global(I, n) : td_ref(v);
}

static td_evaluate *name_choose(const td_node *n) {
  switch (n->scope) {
  case TD_SCOPE_LOCAL: return evaluate_local;
  case TD_SCOPE_CELL: return evaluate_cell;
  case TD_SCOPE_CLASS: return evaluate_class_name;
  default: return evaluate_global;
  }
}

// ---- displays ----

static int append_step(td_interpreter *I, void *state, td_value element) {
  bool ok = td_list_append(I, state, element);
  td_unref(element);
  return ok ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

// Evaluates item, or the elements of a STARRED one, into step; false: exception.
static bool each_item(td_interpreter *I, const td_node *item, td_step *step, void *state) {
  bool starred = item->kind == TD_NODE_STARRED;
  const td_node *expression = starred ? item->a : item;
  td_value v = expression->evaluate(I, expression);
  if (td_is_nil(v)) return false;
  if (!starred) return step(I, state, v) != TD_FLOW_ERROR;
  td_mark(I, item);
  int flow = td_each(I, v, step, state);
  if (flow == TD_FLOW_ERROR && td_raised_is(I, TD_CLASS_TYPE_ERROR) && !td_type_of(v)->iterate &&
      !td_type_of(v)->next) {
    td_clear_raised(I);
    td_raise(I, TD_CLASS_TYPE_ERROR, "Value after * must be an iterable, not %s", td_type_name(I, v));
  }
  td_unref(v);
  return flow != TD_FLOW_ERROR;
}

static td_value evaluate_list(td_interpreter *I, const td_node *n) {
  td_list *list = td_list_new(I, n->count);
  bool ok = list != NULL;
  for (int32_t i = 0; ok && i < n->count; i++) ok = each_item(I, n->items[i], append_step, list);
  if (ok) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

static td_value tuple_spread(td_interpreter *I, const td_node *n) {
  td_value list = evaluate_list(I, n);
  if (td_is_nil(list)) return TD_NIL;
  int64_t count = td_as_list(list)->count;
  td_tuple *tuple = td_tuple_new(I, count);
  for (int64_t i = 0; tuple && i < count; i++) tuple->items[i] = td_ref(td_as_list(list)->items[i]);
  td_unref(list);
  return td_from(tuple);
}

static td_value evaluate_tuple(td_interpreter *I, const td_node *n) {
  for (int32_t i = 0; i < n->count; i++)
    if (n->items[i]->kind == TD_NODE_STARRED) return tuple_spread(I, n);
  td_tuple *tuple = td_tuple_new(I, n->count);
  if (!tuple) return TD_NIL;
  for (int32_t i = 0; i < n->count; i++) {
    tuple->items[i] = n->items[i]->evaluate(I, n->items[i]);
    if (td_is_nil(tuple->items[i])) return td_unref(td_from(tuple)), TD_NIL;
  }
  return td_from(tuple);
}

static int add_step(td_interpreter *I, void *state, td_value element) {
  bool ok = td_set_add(I, state, element);
  td_unref(element);
  return ok ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

// CPython makes a set display of three or more constants of a constant, which was itself built anew once, each time in
// the order of its elements: that shows in the order of printing.
static bool is_constant_display(const td_node *n) {
  for (int32_t i = 0; i < n->count; i++) {
    const td_node *item = n->items[i]->kind == TD_NODE_UNARY ? n->items[i]->a : n->items[i];
    if (item->kind != TD_NODE_CONSTANT) return false;
  }
  return n->count > 2;
}

static td_value as_constant(td_interpreter *I, td_value set) { // takes over set
  td_value elements = td_list_from(I, set), constant = td_is_nil(elements) ? TD_NIL : td_set_from(I, elements);
  td_value result = td_is_nil(constant) ? TD_NIL : td_set_from(I, constant);
  td_unref(set);
  td_unref(elements);
  td_unref(constant);
  return result;
}

static td_value evaluate_set(td_interpreter *I, const td_node *n) {
  td_set *set = td_set_new(I);
  bool ok = set != NULL;
  td_mark(I, n);
  for (int32_t i = 0; ok && i < n->count; i++) ok = each_item(I, n->items[i], add_step, set);
  if (ok && is_constant_display(n)) return as_constant(I, td_from(set));
  if (ok) return td_from(set);
  td_unref(td_from(set));
  return TD_NIL;
}

static bool dict_merge(td_interpreter *I, td_dict *dict, td_value mapping) {
  if (td_is(mapping, &td_dict_type) || td_is_instance(mapping)) return td_dict_update(I, dict, mapping);
  td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not a mapping", td_type_name(I, mapping));
  return false;
}

static td_value evaluate_dict(td_interpreter *I, const td_node *n) {
  td_dict *dict = td_dict_new(I);
  bool ok = dict != NULL;
  for (int32_t i = 0; ok && i < n->count; i += 2) {
    const td_node *key_node = n->items[i], *value_node = n->items[i + 1];
    td_value key = key_node ? key_node->evaluate(I, key_node) : TD_NONE;
    td_value value = td_is_nil(key) ? TD_NIL : value_node->evaluate(I, value_node);
    ok = !td_is_nil(value);
    td_mark(I, key_node ? key_node : value_node);
    if (ok) ok = key_node ? td_dict_set(I, dict, key, value) : dict_merge(I, dict, value);
    td_unref(key);
    td_unref(value);
  }
  if (ok) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

// ---- operators ----

static td_value evaluate_unary(td_interpreter *I, const td_node *n) {
  td_value v = n->a->evaluate(I, n->a);
  if (td_is_nil(v)) return TD_NIL;
  if (n->op == TD_UNARY_NEGATIVE) {
    if (td_is_double(v)) return td_double(-v.f);
    if (td_is_int(v) && v.i != INT64_MIN) return td_int(-v.i);
  }
  td_mark(I, n);
  td_value result = td_unary(I, n->op, v);
  td_unref(v);
  return result;
}

// Takes over v.
static inline int truth_of(td_interpreter *I, const td_node *n, td_value v) {
  if (TD_LIKELY(v.tag == TD_TAG_BOOL)) return (int)v.i;
  if (TD_UNLIKELY(td_is_nil(v))) return -1;
  td_mark(I, n);
  int truth = td_truth(I, v);
  td_unref(v);
  return truth;
}

static td_value evaluate_not(td_interpreter *I, const td_node *n) {
  int truth = truth_of(I, n->a, n->a->evaluate(I, n->a));
  return truth < 0 ? TD_NIL : td_bool(!truth);
}

static td_value evaluate_binary(td_interpreter *I, const td_node *n) {
  td_value a = n->a->evaluate(I, n->a);
  if (td_is_nil(a)) return TD_NIL;
  td_value b = n->b->evaluate(I, n->b), result = TD_NIL;
  if (!td_is_nil(b)) {
    td_mark(I, n);
    result = td_binary(I, n->op, a, b);
    td_unref(b);
  }
  td_unref(a);
  return result;
}

td_value td_compare_any(td_interpreter *I, int comparison, td_value a, td_value b) {
  switch (comparison) {
  case TD_COMPARE_IN:
  case TD_COMPARE_NOT_IN: {
    int found = td_contains(I, b, a);
    return found < 0 ? TD_NIL : td_bool(found == (comparison == TD_COMPARE_IN));
  }
  case TD_COMPARE_IS: return td_bool(a.tag == b.tag && a.i == b.i);
  case TD_COMPARE_IS_NOT: return td_bool(a.tag != b.tag || a.i != b.i);
  default: break;
  }
  if (td_is_int(a) && td_is_int(b)) return td_bool(td_compare_ints(comparison, a.i, b.i));
  if (td_is_double(a) && td_is_double(b)) return td_bool(td_compare_doubles(comparison, a.f, b.f));
  return td_compare(I, comparison, a, b);
}

// a < b < c: every operand is evaluated once, and no further than the first comparison that is false.
static td_value evaluate_compare(td_interpreter *I, const td_node *n) {
  td_value left = n->a->evaluate(I, n->a), result = TD_NIL;
  for (int32_t i = 0; i < n->count && !td_is_nil(left); i++) {
    const td_node *operand = n->items[i];
    td_value right = operand->evaluate(I, operand);
    if (td_is_nil(right)) {
      result = TD_NIL;
    } else {
      td_mark(I, n);
      result = td_compare_any(I, n->ops[i], left, right);
    }
    td_unref(left);
    left = right;
    if (td_is_nil(result) || i + 1 == n->count) break;
    int truth = result.tag == TD_TAG_BOOL ? (int)result.i : td_truth(I, result);
    if (truth == 1) {
      td_unref(result);
      continue;
    }
    if (truth < 0) {
      td_unref(result);
      result = TD_NIL;
    }
    break;
  }
  td_unref(left);
  return result;
}

// and, or: the value that decided
static inline td_value evaluate_either(td_interpreter *I, const td_node *n, int decides) {
  td_value v = n->a->evaluate(I, n->a);
  if (td_is_nil(v)) return TD_NIL;
  int truth = v.tag == TD_TAG_BOOL ? (int)v.i : (td_mark(I, n->a), td_truth(I, v));
  if (truth == decides) return v;
  td_unref(v);
  return truth < 0 ? TD_NIL : n->b->evaluate(I, n->b);
}

static td_value evaluate_and(td_interpreter *I, const td_node *n) { return evaluate_either(I, n, 0); }
static td_value evaluate_or(td_interpreter *I, const td_node *n) { return evaluate_either(I, n, 1); }

static td_value evaluate_conditional(td_interpreter *I, const td_node *n) {
  int truth = truth_of(I, n->b, n->b->evaluate(I, n->b));
  if (truth < 0) return TD_NIL;
  return truth ? n->a->evaluate(I, n->a) : n->c->evaluate(I, n->c);
}

// ---- attributes and items ----

static td_value evaluate_attribute(td_interpreter *I, const td_node *n) {
  td_value v = n->a->evaluate(I, n->a);
  if (td_is_nil(v)) return TD_NIL;
  td_mark(I, n);
  td_value result = td_attribute(I, v, n->name);
  td_unref(v);
  return result;
}

static td_value evaluate_index(td_interpreter *I, const td_node *n) {
  td_value v = n->a->evaluate(I, n->a);
  if (td_is_nil(v)) return TD_NIL;
  td_value key = n->b->evaluate(I, n->b), result = TD_NIL;
  if (!td_is_nil(key)) {
    td_mark(I, n);
    result = td_item(I, v, key);
    td_unref(key);
  }
  td_unref(v);
  return result;
}

static td_value optional(td_interpreter *I, const td_node *n) { return n ? n->evaluate(I, n) : TD_NONE; }

static td_value evaluate_slice(td_interpreter *I, const td_node *n) {
  td_value start = optional(I, n->a), result = TD_NIL;
  td_value stop = td_is_nil(start) ? TD_NIL : optional(I, n->b);
  td_value step = td_is_nil(stop) ? TD_NIL : optional(I, n->c);
  if (!td_is_nil(step)) result = td_slice_new(I, start, stop, step);
  td_unref(start);
  td_unref(stop);
  td_unref(step);
  return result;
}

// ---- functions and text ----

static td_value evaluate_lambda(td_interpreter *I, const td_node *n) { return td_function_define(I, n->prototype); }

static bool format_into(td_interpreter *I, const td_node *n, td_text *text);

static bool fstring_into(td_interpreter *I, const td_node *n, td_text *text) {
  for (int32_t i = 0; i < n->count; i++) {
    const td_node *item = n->items[i];
    if (item->kind == TD_NODE_CONSTANT)
      td_text_add_bytes(text, td_as_str(item->value)->data, td_as_str(item->value)->length);
    else if (!format_into(I, item, text)) return false;
  }
  return true;
}

static bool add_formatted(td_interpreter *I, int conversion, td_value v, const char *spec, td_text *text) {
  if (!conversion) return td_format(I, v, spec, text);
  if (!*spec)
    return conversion == 'r' ? td_repr(I, v, text) : conversion == 'a' ? td_ascii(I, v, text) : td_print(I, v, text);
  td_text converted = {0};
  bool ok = add_formatted(I, conversion, v, "", &converted);
  td_value str = ok ? td_from(td_str_take(I, &converted)) : TD_NIL;
  ok = !td_is_nil(str) && td_format(I, str, spec, text);
  td_unref(str);
  td_text_clear(&converted);
  return ok;
}

static bool format_into(td_interpreter *I, const td_node *n, td_text *text) {
  if (!td_is_nil(n->value)) td_text_add_bytes(text, td_as_str(n->value)->data, td_as_str(n->value)->length);
  td_value v = n->a->evaluate(I, n->a);
  if (td_is_nil(v)) return false;
  td_text spec = {0};
  bool ok = !n->b || fstring_into(I, n->b, &spec);
  if (ok && spec.failed) ok = (td_raise_memory(I), false);
  int conversion = n->op ? n->op : !td_is_nil(n->value) && !n->b ? 'r' : 0;
  td_mark(I, n);
  if (ok) ok = add_formatted(I, conversion, v, spec.data ? spec.data : "", text);
  td_text_clear(&spec);
  td_unref(v);
  return ok;
}

static td_value evaluate_fstring(td_interpreter *I, const td_node *n) {
  td_text text = {0};
  if (fstring_into(I, n, &text)) return td_from(td_str_take(I, &text));
  td_text_clear(&text);
  return TD_NIL;
}

static td_evaluate *const evaluators[TD_NODE_COUNT] = {
    [TD_NODE_CONSTANT] = evaluate_constant,
    [TD_NODE_TUPLE] = evaluate_tuple,
    [TD_NODE_LIST] = evaluate_list,
    [TD_NODE_SET] = evaluate_set,
    [TD_NODE_DICT] = evaluate_dict,
    [TD_NODE_UNARY] = evaluate_unary,
    [TD_NODE_NOT] = evaluate_not,
    [TD_NODE_BINARY] = evaluate_binary,
    [TD_NODE_COMPARE] = evaluate_compare,
    [TD_NODE_AND] = evaluate_and,
    [TD_NODE_OR] = evaluate_or,
    [TD_NODE_CONDITIONAL] = evaluate_conditional,
    [TD_NODE_ATTRIBUTE] = evaluate_attribute,
    [TD_NODE_INDEX] = evaluate_index,
    [TD_NODE_SLICE] = evaluate_slice,
    [TD_NODE_LAMBDA] = evaluate_lambda,
    [TD_NODE_FSTRING] = evaluate_fstring,
};

td_evaluate *td_evaluate_choose(const td_node *n) {
  switch (n->kind) {
  case TD_NODE_NAME: return name_choose(n);
  case TD_NODE_CALL: return td_call_choose(n);
  case TD_NODE_LIST_COMPREHENSION:
  case TD_NODE_SET_COMPREHENSION:
  case TD_NODE_DICT_COMPREHENSION:
  case TD_NODE_GENERATOR: return td_comprehension_choose(n);
  default: break;
  }
  td_evaluate *fast = td_fast_choose(n);
  return fast ? fast : evaluators[n->kind];
}
