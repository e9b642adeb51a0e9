// Assignment statements, and the quicker forms of common ones: a name, an item of a list or dict, an attribute of an
// instance. A quick form that meets a value of another kind goes the way of assign.c. Arithmetic on numbers stays here
// (quick); what is left goes through td_in_place, for which the old value leaves its place, so that text and tensors
// that nobody else holds are changed without a copy.
#include "repl/language/assign.h"

#include <stdio.h>
#include <string.h>

#include "repl/language/habit.h"
#include "repl/language/tensors.h"

// ---- assignment ----

static int execute_assign(td_interpreter *I, const td_node *n) {
  td_value value = n->b->evaluate(I, n->b);
  if (td_is_nil(value)) return TD_FLOW_ERROR;
  for (int32_t i = 0; i + 1 < n->count; i++) {
    if (!td_assign(I, n->items[i], td_ref(value))) {
      td_unref(value);
      return TD_FLOW_ERROR;
    }
  }
  return td_assign(I, n->items[n->count - 1], value) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static int execute_assign_local(td_interpreter *I, const td_node *n) {
  td_value value = n->b->evaluate(I, n->b);
  if (TD_UNLIKELY(td_is_nil(value))) return TD_FLOW_ERROR;
  td_value *slot = &I->slots[n->items[0]->slot], old = *slot;
  *slot = value;
  td_unref(old);
  return TD_FLOW_NEXT;
}

static int execute_assign_global(td_interpreter *I, const td_node *n) {
  td_value value = n->b->evaluate(I, n->b);
  if (TD_UNLIKELY(td_is_nil(value))) return TD_FLOW_ERROR;
  td_global *global = n->items[0]->global;
  td_value old = global->value;
  global->value = value;
  td_unref(old);
  return TD_FLOW_NEXT;
}

// a, b = c, d: values wait on the stack, no tuple is made.
static int execute_assign_parallel(td_interpreter *I, const td_node *n) {
  const td_node *target = n->items[0], *values = n->b;
  td_value *base = I->stack_top;
  int32_t count = values->count, done = 0;
  if (!td_stack_room(I, count)) return TD_FLOW_ERROR;
  I->stack_top = base + count;
  for (; done < count; done++) {
    base[done] = values->items[done]->evaluate(I, values->items[done]);
    if (td_is_nil(base[done])) break;
  }
  bool ok = done == count;
  int32_t given = 0;
  while (ok && given < count) {
    ok = td_assign(I, target->items[given], base[given]);
    given++;
  }
  for (; given < done; given++) td_unref(base[given]);
  I->stack_top = base;
  return ok ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

// While a is updated in place it may leave the name that holds it only if nothing that runs could look: a holds no
// objects (text, tensors), and b has no methods of its own.
static bool may_move(td_value a, td_value b) {
  if (a.tag != TD_TAG_OBJECT || a.o->flags & TD_OBJECT_CONTAINER) return false;
  return b.tag != TD_TAG_OBJECT || !(b.o->flags & TD_OBJECT_CONTAINER);
}

// Text and tensors know how to become a op b themselves.
static bool updates_itself(int op, td_value a, td_value b) {
  if (td_is(a, &td_str_type)) return op == TD_BINARY_ADD && td_is(b, &td_str_type);
  return td_type_of(a)->in_place != NULL;
}

// The target as it is written; "v" where that is long.
static void spell_target(td_interpreter *I, const td_node *target, char *text, size_t size) {
  const td_script *script = td_source_find(&I->sources, (td_place)target->script << 32 | target->begin);
  size_t length = target->end - target->begin;
  bool fits = script && length < size && !memchr(script->text + target->begin, '\n', length);
  snprintf(text, size, "%.*s", fits ? (int)length : 1, fits ? script->text + target->begin : "v");
}

// p -= x of a Variable p: the name has a tensor then, and the Variable is as it was.
static void warn_of_rebinding(td_interpreter *I, const td_node *n) {
  char name[50], message[240], remedy[120];
  const char *sign = td_operator_spelling(n->op);
  spell_target(I, n->a, name, sizeof name);
  if (n->op == TD_BINARY_ADD) snprintf(remedy, sizeof remedy, "%s.assign_add(...)", name);
  else if (n->op == TD_BINARY_SUBTRACT) snprintf(remedy, sizeof remedy, "%s.assign_sub(...)", name);
  else snprintf(remedy, sizeof remedy, "%s.assign(%s %s ...)", name, name, sign);
  snprintf(message, sizeof message, "%s %s= makes a tensor, and the Variable keeps its value; write %s", name, sign,
           remedy);
  td_mark(I, n);
  td_warn(I, message);
  ((td_node *)n)->flags |= TD_NODE_WARNED; // once for each place
}

// Takes over a where all goes well.
static td_value augmented(td_interpreter *I, const td_node *n, td_value a, td_value b) {
  bool rebinds = td_is(a, &td_variable_type) && !(n->flags & TD_NODE_WARNED);
  td_value result = td_in_place(I, n->op, a, b);
  if (TD_UNLIKELY(rebinds) && td_is(result, &td_tensor_type)) warn_of_rebinding(I, n);
  return result;
}

// Takes over b. A local's value leaves its slot meanwhile: nothing that runs can look there.
static int update_local(td_interpreter *I, const td_node *n, td_value *slot, td_value b, bool in_place) {
  td_value a = *slot, result;
  td_mark(I, n);
  *slot = TD_NIL;
  if (in_place || (may_move(a, b) && updates_itself(n->op, a, b))) {
    result = augmented(I, n, a, b);
  } else {
    result = td_binary(I, n->op, a, b);
    if (!td_is_nil(result)) td_unref(a);
  }
  *slot = td_is_nil(result) ? a : result;
  td_unref(b);
  return td_is_nil(result) ? TD_FLOW_ERROR : TD_FLOW_NEXT;
}

// Takes over a, the name's value before b was evaluated, and b.
static int update_shared(td_interpreter *I, const td_node *n, const td_node *name, td_value a, td_value b) {
  td_value *place = td_name_place(I, name);
  bool moved = may_move(a, b) && place->tag == TD_TAG_OBJECT && place->o == a.o;
  td_mark(I, n);
  if (moved) {
    td_unref(*place);
    *place = TD_NIL;
  }
  td_value result = augmented(I, n, a, b);
  td_unref(b);
  if (!td_is_nil(result)) return td_assign_name(I, name, result), TD_FLOW_NEXT;
  if (moved) *place = a;
  else td_unref(a);
  return TD_FLOW_ERROR;
}

static inline bool unbound(td_interpreter *I, const td_node *name) {
  if (TD_LIKELY(!td_is_nil(*td_name_place(I, name)))) return false;
  if (name->scope == TD_SCOPE_GLOBAL || name->scope == TD_SCOPE_CLASS) {
    td_value outer = td_name_missing(I, name); // a builtin's value becomes the name's own
    return td_is_nil(outer) || !td_assign_name(I, name, outer);
  }
  return td_is_nil(td_name_missing(I, name));
}

// a op b for two numbers of one kind without overflow; NIL: the slow way is needed.
static inline td_value quick(int op, td_value a, td_value b) {
  int64_t i;
  if (td_is_int(a) && td_is_int(b)) {
    if (op == TD_BINARY_ADD && !__builtin_add_overflow(a.i, b.i, &i)) return td_int(i);
    if (op == TD_BINARY_SUBTRACT && !__builtin_sub_overflow(a.i, b.i, &i)) return td_int(i);
    if (op == TD_BINARY_MULTIPLY && !__builtin_mul_overflow(a.i, b.i, &i)) return td_int(i);
  } else if (td_is_double(a) && td_is_number(b)) {
    double f = td_number_double(b);
    if (op == TD_BINARY_ADD) return td_double(a.f + f);
    if (op == TD_BINARY_SUBTRACT) return td_double(a.f - f);
    if (op == TD_BINARY_MULTIPLY) return td_double(a.f * f);
  }
  return TD_NIL;
}

static inline int update_slot(td_interpreter *I, const td_node *n, const td_node *name, const td_node *operand,
                              bool in_place) {
  if (unbound(I, name)) return TD_FLOW_ERROR;
  td_value b = operand->evaluate(I, operand);
  if (TD_UNLIKELY(td_is_nil(b))) return TD_FLOW_ERROR;
  td_value *slot = &I->slots[name->slot], result = quick(n->op, *slot, b);
  if (td_is_nil(result)) return update_local(I, n, slot, b, in_place);
  *slot = result;
  return TD_FLOW_NEXT;
}

static int execute_augment_local(td_interpreter *I, const td_node *n) { return update_slot(I, n, n->a, n->b, true); }

static int execute_augment_shared(td_interpreter *I, const td_node *n) {
  if (unbound(I, n->a)) return TD_FLOW_ERROR;
  td_value a = td_ref(*td_name_place(I, n->a)), b = n->b->evaluate(I, n->b);
  if (TD_UNLIKELY(td_is_nil(b))) return td_unref(a), TD_FLOW_ERROR;
  td_value result = quick(n->op, a, b);
  if (td_is_nil(result)) return update_shared(I, n, n->a, a, b);
  return td_assign_name(I, n->a, result), TD_FLOW_NEXT;
}

// i += 1 in a function
static int execute_count_local(td_interpreter *I, const td_node *n) {
  td_value *slot = &I->slots[n->a->slot], b = n->b->value;
  int64_t sum;
  if (TD_LIKELY(td_is_int(*slot) && !(n->op == TD_BINARY_ADD ? __builtin_add_overflow(slot->i, b.i, &sum)
                                                             : __builtin_sub_overflow(slot->i, b.i, &sum)))) {
    slot->i = sum;
    return TD_FLOW_NEXT;
  }
  return execute_augment_local(I, n);
}

// x = x + ...: as x += ..., but objects that can be changed are not
static int execute_assign_updated(td_interpreter *I, const td_node *n) {
  return update_slot(I, n->b, n->items[0], n->b->b, false);
}

// Takes over old, the target's value, and b.
static int augment_with(td_interpreter *I, const td_node *n, td_chain *c, td_value old, td_value b) {
  td_value result = quick(n->op, old, b);
  if (td_is_nil(result)) {
    bool moves = may_move(old, b);
    td_mark(I, n);
    if (moves) td_chain_detach(I, c, 0, old);
    result = augmented(I, n, old, b);
    if (td_is_nil(result)) {
      td_value raised = td_take_raised(I);
      if (moves) td_chain_store(I, c, 0, td_ref(old));
      td_clear_raised(I);
      td_put_raised(I, raised);
      td_unref(old);
    }
  }
  td_unref(b);
  return !td_is_nil(result) && td_chain_store(I, c, 0, result) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static int augment_chain(td_interpreter *I, const td_node *n, td_chain *c) {
  td_value old = td_chain_load(I, c);
  if (td_is_nil(old)) return TD_FLOW_ERROR;
  td_value b = n->b->evaluate(I, n->b);
  if (!td_is_nil(b)) return augment_with(I, n, c, old, b);
  td_unref(old);
  return TD_FLOW_ERROR;
}

static int execute_augment_place(td_interpreter *I, const td_node *n) {
  td_chain c;
  if (!td_chain_open(I, n->a, &c)) return TD_FLOW_ERROR;
  int flow = augment_chain(I, n, &c);
  td_chain_close(&c);
  return flow;
}

// ---- items of lists and dicts ----

static inline td_value *list_place(td_value list, td_value key) { // NULL: no list, or no such index
  if (!td_is(list, &td_list_type) || !td_is_int(key)) return NULL;
  const td_list *l = td_as_list(list);
  int64_t index = key.i < 0 ? key.i + l->count : key.i;
  return (uint64_t)index < (uint64_t)l->count ? &l->items[index] : NULL;
}

static inline void replace(td_value *place, td_value value) { // takes over value
  td_value old = *place;
  *place = value;
  td_unref(old);
}

static __attribute__((noinline)) bool store_slowly(td_interpreter *I, const td_node *target, td_value container,
                                                   td_value key, td_value value) { // takes over value
  td_mark(I, target);
  bool ok = td_set_item(I, container, key, value);
  td_unref(value);
  return ok;
}

static inline bool store_item(td_interpreter *I, const td_node *target, td_value container, td_value key,
                              td_value value) { // takes over value
  td_value *place = list_place(container, key);
  if (TD_UNLIKELY(!place)) return store_slowly(I, target, container, key, value);
  replace(place, value);
  return true;
}

static bool is_list_or_dict(td_value v) { return td_is(v, &td_list_type) || td_is(v, &td_dict_type); }

// A local x of x[i] is borrowed. Takes over value.
static int assign_item(td_interpreter *I, const td_node *target, td_value value, bool local) {
  td_value container = *td_name_place(I, target->a);
  if (!is_list_or_dict(container)) return td_assign(I, target, value) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
  if (!local) td_ref(container);
  td_value key = target->b->evaluate(I, target->b);
  bool ok = false;
  if (TD_UNLIKELY(td_is_nil(key))) td_unref(value);
  else ok = store_item(I, target, container, key, value);
  td_unref(key);
  if (!local) td_unref(container);
  return ok ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static int execute_assign_item_local(td_interpreter *I, const td_node *n) {
  td_value value = n->b->evaluate(I, n->b);
  return TD_LIKELY(!td_is_nil(value)) ? assign_item(I, n->items[0], value, true) : TD_FLOW_ERROR;
}

static int execute_assign_item_shared(td_interpreter *I, const td_node *n) {
  td_value value = n->b->evaluate(I, n->b);
  return TD_LIKELY(!td_is_nil(value)) ? assign_item(I, n->items[0], value, false) : TD_FLOW_ERROR;
}

// The same of a local i: it too is read where it is.
static int execute_assign_item_locals(td_interpreter *I, const td_node *n) {
  const td_node *target = n->items[0];
  td_value value = n->b->evaluate(I, n->b);
  if (TD_UNLIKELY(td_is_nil(value))) return TD_FLOW_ERROR;
  td_value container = I->slots[target->a->slot], key = I->slots[target->b->slot];
  if (TD_UNLIKELY(!is_list_or_dict(container) || td_is_nil(key))) return assign_item(I, target, value, true);
  return TD_LIKELY(store_item(I, target, container, key, value)) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

// x[i] op= v, where a number of a list stays a number
static int execute_augment_item(td_interpreter *I, const td_node *n) {
  const td_node *target = n->a;
  td_value container = td_ref(*td_name_place(I, target->a));
  if (!is_list_or_dict(container)) return td_unref(container), execute_augment_place(I, n);
  td_value key = target->b->evaluate(I, target->b);
  if (td_is_nil(key)) return td_unref(container), TD_FLOW_ERROR;
  td_chain c;
  td_chain_of(&c, target, container, key);
  const td_value *place = list_place(container, key);
  td_value old = place ? td_ref(*place) : td_chain_load(I, &c), b = td_is_nil(old) ? TD_NIL : n->b->evaluate(I, n->b),
           result = TD_NIL;
  int flow = TD_FLOW_ERROR;
  if (!td_is_nil(b)) result = quick(n->op, old, b);
  if (!td_is_nil(result)) flow = store_item(I, target, container, key, result) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
  else if (!td_is_nil(b)) flow = augment_with(I, n, &c, old, b);
  else td_unref(old);
  td_chain_close(&c);
  return flow;
}

// ---- attributes of instances ----

static int execute_assign_attribute(td_interpreter *I, const td_node *n) {
  const td_node *target = n->items[0];
  td_value value = n->b->evaluate(I, n->b);
  if (TD_UNLIKELY(td_is_nil(value))) return TD_FLOW_ERROR;
  td_value object = target->a->evaluate(I, target->a), *place;
  bool ok = !td_is_nil(object);
  if (TD_LIKELY(ok && (place = td_fast_attribute(I, target, object)))) {
    td_value old = *place;
    *place = value;
    td_unref(old);
  } else {
    td_mark(I, target);
    ok = ok && td_set_attribute(I, object, target->name, value);
    td_unref(value);
  }
  td_unref(object);
  return ok ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static int execute_augment_attribute(td_interpreter *I, const td_node *n) {
  const td_node *target = n->a;
  td_value object = target->a->evaluate(I, target->a), *place;
  if (td_is_nil(object)) return TD_FLOW_ERROR;
  place = td_fast_attribute(I, target, object);
  td_chain c;
  td_chain_of(&c, target, object, TD_NIL);
  td_value old = place ? td_ref(*place) : td_chain_load(I, &c), b = td_is_nil(old) ? TD_NIL : n->b->evaluate(I, n->b),
           result = TD_NIL;
  int flow = TD_FLOW_ERROR;
  if (!td_is_nil(b)) result = quick(n->op, old, b);
  place = td_is_nil(result) ? NULL : td_fast_attribute(I, target, object); // b may have moved it
  if (place) {
    td_value last = *place;
    *place = result;
    td_unref(last);
    flow = TD_FLOW_NEXT;
  } else if (!td_is_nil(b)) {
    flow = augment_with(I, n, &c, old, b);
  } else {
    td_unref(old);
  }
  td_chain_close(&c);
  return flow;
}

static int execute_annotated(td_interpreter *I, const td_node *n) {
  if (!n->b) return TD_FLOW_NEXT;
  td_value value = n->b->evaluate(I, n->b);
  return !td_is_nil(value) && td_assign(I, n->a, value) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static bool has_starred(const td_node *n) { return td_find_starred(n) >= 0; }

// ---- values, places = max(x, axis=0) ----

// The name of a reduction that gives a pair elsewhere; NULL: n is no call of one along an axis.
static const char *pair_habit(const td_node *n, const td_node *target) {
  bool pair = target->kind == TD_NODE_TUPLE && target->count == 2 && !has_starred(target);
  if (!pair || n->kind != TD_NODE_CALL || (n->a->kind != TD_NODE_NAME && n->a->kind != TD_NODE_ATTRIBUTE)) return NULL;
  bool method = n->a->kind == TD_NODE_ATTRIBUTE, along = false;
  for (int32_t i = 0; i < n->count; i++) {
    bool named = n->items[i]->kind == TD_NODE_KEYWORD;
    const char *name = named ? n->items[i]->name->data : "";
    bool is_int = n->items[i]->kind == TD_NODE_UNARY ||
                  (n->items[i]->kind == TD_NODE_CONSTANT && td_is_int(n->items[i]->value));
    along |= named ? !strcmp(name, "axis") || !strcmp(name, "dim") : i == !method && is_int;
  }
  return along ? td_habit(TD_HABIT_PAIR, n->a->name->data) : NULL;
}

static void warn_of_rows(td_interpreter *I, const td_node *n, const char *habit) {
  char message[200];
  snprintf(message, sizeof message, "%s gives the values alone, and their rows are unpacked here: %s",
           n->b->a->name->data, habit);
  td_mark(I, n->b);
  td_warn(I, message);
  ((td_node *)n)->execute = execute_assign; // once for each place
}

static int execute_assign_pair(td_interpreter *I, const td_node *n) {
  const td_node *target = n->items[0];
  td_value value = n->b->evaluate(I, n->b);
  if (td_is_nil(value)) return TD_FLOW_ERROR;
  const td_tensor *t = td_is(value, &td_tensor_type) ? td_unbox_tensor(value) : NULL;
  const char *habit = pair_habit(n->b, target);
  bool is_tensor = t != NULL;
  if (t && t->rank > 0 && t->shape[0] == 2) warn_of_rows(I, n, habit);
  if (td_assign(I, target, value)) return TD_FLOW_NEXT;
  if (is_tensor && td_raised_is(I, TD_CLASS_EXCEPTION))
    td_raise_hint(I, "%s gives the values alone: %s", n->b->a->name->data, habit);
  return TD_FLOW_ERROR;
}


static bool is_local(const td_node *n) { return n->kind == TD_NODE_NAME && n->scope == TD_SCOPE_LOCAL; }

static td_execute *augment_choose(const td_node *n) {
  if (n->a->kind == TD_NODE_ATTRIBUTE) return execute_augment_attribute;
  if (n->a->kind == TD_NODE_INDEX && n->a->a->kind == TD_NODE_NAME) return execute_augment_item;
  if (n->a->kind != TD_NODE_NAME) return execute_augment_place;
  if (n->a->scope != TD_SCOPE_LOCAL) return execute_augment_shared;
  bool counts = n->b->kind == TD_NODE_CONSTANT && td_is_int(n->b->value) &&
                (n->op == TD_BINARY_ADD || n->op == TD_BINARY_SUBTRACT);
  return counts ? execute_count_local : execute_augment_local;
}

static td_execute *assign_item_choose(const td_node *target) {
  if (!is_local(target->a)) return execute_assign_item_shared;
  return is_local(target->b) ? execute_assign_item_locals : execute_assign_item_local;
}

td_execute *td_assign_choose(const td_node *n) {
  if (n->kind == TD_NODE_AUGMENT) return augment_choose(n);
  if (n->kind == TD_NODE_ANNOTATED) return execute_annotated;
  const td_node *target = n->items[0];
  if (n->count > 1) return execute_assign;
  bool sequences = (target->kind == TD_NODE_TUPLE || target->kind == TD_NODE_LIST) && n->b->kind == TD_NODE_TUPLE;
  if (sequences && target->count == n->b->count && !has_starred(target) && !has_starred(n->b))
    return execute_assign_parallel;
  if (pair_habit(n->b, target)) return execute_assign_pair;
  if (target->kind == TD_NODE_ATTRIBUTE) return execute_assign_attribute;
  if (target->kind == TD_NODE_INDEX && target->a->kind == TD_NODE_NAME) return assign_item_choose(target);
  if (target->kind != TD_NODE_NAME) return execute_assign;
  if (target->scope == TD_SCOPE_GLOBAL) return execute_assign_global;
  if (target->scope != TD_SCOPE_LOCAL) return execute_assign;
  if (n->b->kind == TD_NODE_BINARY && is_local(n->b->a) && n->b->a->slot == target->slot) return execute_assign_updated;
  return execute_assign_local;
}
