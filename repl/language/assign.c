// Targets: names, attributes, items and nested sequences of them, for assignment, augmented assignment and del.
// Values that are not changed but rebound (tensors: their type has with_item) are moved out of the place that holds them
// while they are updated, so that one which nobody else holds is updated without a copy; an exception puts them back.
#include "repl/language/core.h"

// ---- names ----

static bool assign_name(td_interpreter *I, const td_node *target, td_value value) {
  td_value *place;
  switch (target->scope) {
  case TD_SCOPE_GLOBAL: place = &target->global->value; break;
  case TD_SCOPE_CELL: place = &((td_cell *)I->slots[target->slot].o)->value; break;
  default: place = &I->slots[target->slot]; break;
  }
  td_value old = *place;
  *place = value;
  td_unref(old);
  return true;
}

static td_value *name_place(td_interpreter *I, const td_node *name) {
  if (name->scope == TD_SCOPE_GLOBAL) return &name->global->value;
  if (name->scope == TD_SCOPE_CELL) return &((td_cell *)I->slots[name->slot].o)->value;
  return &I->slots[name->slot];
}

// ---- places: what a target means once its parts are evaluated ----

enum { CHAIN_MAX = 12 };

typedef struct link {
  const td_node *node;
  td_value object, key;     // ATTRIBUTE: object; INDEX: both; owned
} link;

typedef struct chain {      // x.w[i][j]: places[0] is [j], then [i], then .w; root is x
  link places[CHAIN_MAX];
  int count;
  const td_node *root;
} chain;

static td_value place_load(td_interpreter *I, const link *p) {
  td_mark(I, p->node);
  return p->node->kind == TD_NODE_ATTRIBUTE ? td_attribute(I, p->object, p->node->name) : td_item(I, p->object, p->key);
}

static void chain_close(chain *c) {
  for (int i = 0; i < c->count; i++) {
    td_unref(c->places[i].object);
    td_unref(c->places[i].key);
  }
}

static bool chain_open(td_interpreter *I, const td_node *target, chain *c) {
  c->count = 0;
  const td_node *node = target;
  while (c->count < CHAIN_MAX && (node->kind == TD_NODE_ATTRIBUTE || node->kind == TD_NODE_INDEX)) {
    c->places[c->count++] = (link){ .node = node };
    node = node->a;
  }
  c->root = node;
  td_value object = node->evaluate(I, node);
  for (int i = c->count - 1; i >= 0; i--) {
    link *p = &c->places[i];
    if (td_is_nil(object)) break;
    p->object = object;
    if (p->node->kind == TD_NODE_INDEX && td_is_nil(p->key = p->node->b->evaluate(I, p->node->b))) break;
    if (i == 0) return true;
    object = place_load(I, p);
  }
  chain_close(c);
  return false;
}

// Takes the object out of the place that holds it, so that the reference of the caller is the only one of the two.
static void detach(td_interpreter *I, const chain *c, int level, td_value object) {
  td_value *held = NULL;
  if (level == c->count) {
    if (c->root->kind == TD_NODE_NAME) held = name_place(I, c->root);
  } else {
    const link *p = &c->places[level];
    if (p->node->kind == TD_NODE_ATTRIBUTE && td_is_instance(p->object)) {
      td_dict *attributes = td_as_instance(p->object)->attributes;
      td_value found = attributes ? td_dict_get_str(attributes, p->node->name) : TD_NIL;
      if (found.tag == TD_TAG_OBJECT && found.o == object.o) td_dict_set_str(I, attributes, p->node->name, TD_NONE);
    } else if (p->node->kind == TD_NODE_INDEX && (td_is(p->object, &td_list_type) || td_is(p->object, &td_dict_type))) {
      td_set_item(I, p->object, p->key, TD_NONE);
    }
  }
  if (held && held->tag == TD_TAG_OBJECT && held->o == object.o) {
    *held = TD_NIL;
    td_unref(object);
  }
}

static bool chain_store(td_interpreter *I, chain *c, int level, td_value value);

static bool store_updated(td_interpreter *I, chain *c, int level, td_value value) {
  link *p = &c->places[level];
  if (level + 1 == c->count && c->root->kind != TD_NODE_NAME) {
    td_raise_at(I, p->node, TD_CLASS_TYPE_ERROR, "a %s is a value: assigning to an item of a result has no effect", td_type_name(I, p->object));
    td_raise_hint(I, "give it a name first: x = ...; x[...] = ...");
    return false;
  }
  td_value object = p->object, kept = TD_NIL;
  p->object = TD_NIL;
  detach(I, c, level + 1, object);
  td_mark(I, p->node);
  td_value updated = td_type_of(object)->with_item(I, object, p->key, value, &kept);
  if (!td_is_nil(updated)) return chain_store(I, c, level + 1, updated);
  td_value raised = td_take_raised(I);
  chain_store(I, c, level + 1, kept);
  td_clear_raised(I);
  td_put_raised(I, raised);
  return false;
}

// Takes over value.
static bool chain_store(td_interpreter *I, chain *c, int level, td_value value) {
  if (level == c->count) return assign_name(I, c->root, value);
  link *p = &c->places[level];
  bool ok;
  td_mark(I, p->node);
  if (p->node->kind == TD_NODE_ATTRIBUTE) ok = td_set_attribute(I, p->object, p->node->name, value);
  else if (td_type_of(p->object)->with_item) ok = store_updated(I, c, level, value);
  else ok = td_set_item(I, p->object, p->key, value);
  td_unref(value);
  return ok;
}

static bool assign_chain(td_interpreter *I, const td_node *target, td_value value) {
  chain c;
  if (!chain_open(I, target, &c)) {
    td_unref(value);
    return false;
  }
  bool ok = chain_store(I, &c, 0, value);
  chain_close(&c);
  return ok;
}

// ---- sequences of targets ----

static bool raise_count(td_interpreter *I, const td_node *target, int64_t expected, int64_t got, bool at_least) {
  if (got < expected)
    td_raise_at(I, target, TD_CLASS_VALUE_ERROR, "not enough values to unpack (expected %s%lld, got %lld)", at_least ? "at least " : "", (long long)expected,
                (long long)got);
  else
    td_raise_at(I, target, TD_CLASS_VALUE_ERROR, "too many values to unpack (expected %lld)", (long long)expected);
  return false;
}

static int32_t find_starred(const td_node *target) {
  for (int32_t i = 0; i < target->count; i++)
    if (target->items[i]->kind == TD_NODE_STARRED) return i;
  return -1;
}

static bool assign_items(td_interpreter *I, const td_node *target, int32_t begin, int32_t end, const td_value *values) {
  for (int32_t i = begin; i < end; i++)
    if (!td_assign(I, target->items[i], td_ref(values[i - begin]))) return false;
  return true;
}

static bool assign_around_star(td_interpreter *I, const td_node *target, int32_t star, const td_value *values, int64_t count) {
  int64_t after = target->count - star - 1, middle = count - star - after;
  if (middle < 0) return raise_count(I, target, star + after, count, true);
  td_list *rest = td_list_new(I, middle);
  bool ok = rest != NULL;
  for (int64_t i = 0; ok && i < middle; i++) ok = td_list_append(I, rest, values[star + i]);
  ok = ok && assign_items(I, target, 0, star, values);
  if (ok) ok = td_assign(I, target->items[star]->a, td_ref(td_from(rest)));
  td_unref(td_from(rest));
  return ok && assign_items(I, target, star + 1, target->count, values + star + middle);
}

static bool assign_values(td_interpreter *I, const td_node *target, const td_value *values, int64_t count) {
  int32_t star = find_starred(target);
  if (star >= 0) return assign_around_star(I, target, star, values, count);
  if (count != target->count) return raise_count(I, target, target->count, count, false);
  return assign_items(I, target, 0, target->count, values);
}

typedef struct bounded { td_list *list; int64_t limit; } bounded;

static int bounded_step(td_interpreter *I, void *state, td_value element) {
  bounded *b = state;
  bool ok = td_list_append(I, b->list, element);
  td_unref(element);
  return !ok ? TD_FLOW_ERROR : b->list->count > b->limit ? TD_FLOW_BREAK : TD_FLOW_NEXT;
}

// An iterator without end is asked for no more than one element too many.
static bool unpack_iterable(td_interpreter *I, const td_node *target, td_value value) {
  const td_type *type = td_type_of(value);
  if (!type->iterate && !type->next) {
    td_raise_at(I, target, TD_CLASS_TYPE_ERROR, "cannot unpack non-iterable %s object", td_type_name(I, value));
    return false;
  }
  bounded b = { .list = td_list_new(I, target->count), .limit = find_starred(target) >= 0 ? INT64_MAX : target->count };
  td_mark(I, target);
  bool ok = b.list && td_each(I, value, bounded_step, &b) != TD_FLOW_ERROR && assign_values(I, target, b.list->items, b.list->count);
  td_unref(td_from(b.list));
  return ok;
}

bool td_assign_unpack(td_interpreter *I, const td_node *target, td_value value) {
  bool ok;
  if (td_is(value, &td_tuple_type)) ok = assign_values(I, target, td_as_tuple(value)->items, td_as_tuple(value)->count);
  else ok = unpack_iterable(I, target, value);
  td_unref(value);
  return ok;
}

// ---- any target ----

static bool assign_item(td_interpreter *I, const td_node *target, td_value value) {
  const td_node *base = target->a;
  if (base->kind != TD_NODE_NAME && base->kind != TD_NODE_CALL) return assign_chain(I, target, value);
  td_value object = base->evaluate(I, base), key = td_is_nil(object) ? TD_NIL : target->b->evaluate(I, target->b);
  bool ok = false;
  td_mark(I, target);
  if (td_is_nil(key)) {
    td_unref(object);
  } else if (td_type_of(object)->with_item) {
    chain c = { .places = { { .node = target, .object = object, .key = key } }, .count = 1, .root = base };
    ok = chain_store(I, &c, 0, td_ref(value));
    chain_close(&c);
    td_unref(value);
    return ok;
  } else {
    ok = td_set_item(I, object, key, value);
    td_unref(object);
  }
  td_unref(key);
  td_unref(value);
  return ok;
}

static bool assign_attribute(td_interpreter *I, const td_node *target, td_value value) {
  td_value object = target->a->evaluate(I, target->a);
  td_mark(I, target);
  bool ok = !td_is_nil(object) && td_set_attribute(I, object, target->name, value);
  td_unref(object);
  td_unref(value);
  return ok;
}

bool td_assign(td_interpreter *I, const td_node *target, td_value value) {
  switch (target->kind) {
  case TD_NODE_NAME: return assign_name(I, target, value);
  case TD_NODE_ATTRIBUTE: return assign_attribute(I, target, value);
  case TD_NODE_INDEX: return assign_item(I, target, value);
  default: return td_assign_unpack(I, target, value);
  }
}

static bool delete_name(td_interpreter *I, const td_node *target) {
  td_value *place = name_place(I, target), old = *place;
  if (td_is_nil(old)) {
    if (target->scope == TD_SCOPE_GLOBAL || target->scope == TD_SCOPE_CLASS) td_raise_at(I, target, TD_CLASS_NAME_ERROR, "name '%s' is not defined", target->name->data);
    else td_name_missing(I, target);
    return false;
  }
  *place = TD_NIL;
  td_unref(old);
  return true;
}

bool td_delete(td_interpreter *I, const td_node *target) {
  if (target->kind == TD_NODE_NAME) return delete_name(I, target);
  if (target->kind == TD_NODE_TUPLE || target->kind == TD_NODE_LIST) {
    for (int32_t i = 0; i < target->count; i++)
      if (!td_delete(I, target->items[i])) return false;
    return true;
  }
  td_value object = target->a->evaluate(I, target->a);
  if (td_is_nil(object)) return false;
  bool ok = false;
  if (target->kind == TD_NODE_ATTRIBUTE) {
    td_mark(I, target);
    ok = td_set_attribute(I, object, target->name, TD_NIL);
  } else {
    td_value key = target->b->evaluate(I, target->b);
    td_mark(I, target);
    ok = !td_is_nil(key) && td_delete_item(I, object, key);
    td_unref(key);
  }
  td_unref(object);
  return ok;
}

// ---- statements ----

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

// While a is updated in place it may leave the name that holds it only if nothing that runs could look: a holds no objects
// (text, tensors), and b has no methods of its own.
static bool may_move(td_value a, td_value b) {
  if (a.tag != TD_TAG_OBJECT || a.o->flags & TD_OBJECT_CONTAINER) return false;
  return b.tag != TD_TAG_OBJECT || !(b.o->flags & TD_OBJECT_CONTAINER);
}

// Text and tensors know how to become a op b themselves.
static bool updates_itself(int op, td_value a, td_value b) {
  if (td_is(a, &td_str_type)) return op == TD_BINARY_ADD && td_is(b, &td_str_type);
  return td_type_of(a)->in_place != NULL;
}

// Takes over b. A local's value leaves its slot meanwhile: nothing that runs can look there.
static int update_local(td_interpreter *I, const td_node *n, td_value *slot, td_value b, bool in_place) {
  td_value a = *slot, result;
  td_mark(I, n);
  *slot = TD_NIL;
  if (in_place || (may_move(a, b) && updates_itself(n->op, a, b))) {
    result = td_in_place(I, n->op, a, b);
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
  td_value *place = name_place(I, name);
  bool moved = may_move(a, b) && place->tag == TD_TAG_OBJECT && place->o == a.o;
  td_mark(I, n);
  if (moved) {
    td_unref(*place);
    *place = TD_NIL;
  }
  td_value result = td_in_place(I, n->op, a, b);
  td_unref(b);
  if (!td_is_nil(result)) return assign_name(I, name, result), TD_FLOW_NEXT;
  if (moved) *place = a;
  else td_unref(a);
  return TD_FLOW_ERROR;
}

static inline bool unbound(td_interpreter *I, const td_node *name) {
  if (TD_LIKELY(!td_is_nil(*name_place(I, name)))) return false;
  if (name->scope == TD_SCOPE_GLOBAL || name->scope == TD_SCOPE_CLASS) {
    td_value outer = td_name_missing(I, name); // a builtin's value becomes the name's own
    return td_is_nil(outer) || !assign_name(I, name, outer);
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

static inline int update_slot(td_interpreter *I, const td_node *n, const td_node *name, const td_node *operand, bool in_place) {
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
  td_value a = td_ref(*name_place(I, n->a)), b = n->b->evaluate(I, n->b);
  if (TD_UNLIKELY(td_is_nil(b))) return td_unref(a), TD_FLOW_ERROR;
  td_value result = quick(n->op, a, b);
  if (td_is_nil(result)) return update_shared(I, n, n->a, a, b);
  return assign_name(I, n->a, result), TD_FLOW_NEXT;
}

// i += 1 in a function
static int execute_count_local(td_interpreter *I, const td_node *n) {
  td_value *slot = &I->slots[n->a->slot], b = n->b->value;
  int64_t sum;
  if (TD_LIKELY(td_is_int(*slot) && !(n->op == TD_BINARY_ADD ? __builtin_add_overflow(slot->i, b.i, &sum) : __builtin_sub_overflow(slot->i, b.i, &sum)))) {
    slot->i = sum;
    return TD_FLOW_NEXT;
  }
  return execute_augment_local(I, n);
}

// x = x + ...: as x += ..., but objects that can be changed are not
static int execute_assign_updated(td_interpreter *I, const td_node *n) { return update_slot(I, n->b, n->items[0], n->b->b, false); }

static int augment_place(td_interpreter *I, const td_node *n, chain *c) {
  td_value old = place_load(I, &c->places[0]);
  if (td_is_nil(old)) return TD_FLOW_ERROR;
  td_value b = n->b->evaluate(I, n->b), result = TD_NIL;
  if (!td_is_nil(b)) {
    result = quick(n->op, old, b);
    if (td_is_nil(result)) {
      td_mark(I, n);
      if (may_move(old, b)) detach(I, c, 0, old);
      result = td_in_place(I, n->op, old, b);
      if (td_is_nil(result) && may_move(old, b)) {
        td_value raised = td_take_raised(I);
        chain_store(I, c, 0, td_ref(old));
        td_clear_raised(I);
        td_put_raised(I, raised);
      }
    }
    td_unref(b);
  }
  if (td_is_nil(result)) td_unref(old);
  return !td_is_nil(result) && chain_store(I, c, 0, result) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static int execute_augment_place(td_interpreter *I, const td_node *n) {
  chain c;
  if (!chain_open(I, n->a, &c)) return TD_FLOW_ERROR;
  int flow = augment_place(I, n, &c);
  chain_close(&c);
  return flow;
}

static int execute_annotated(td_interpreter *I, const td_node *n) {
  if (!n->b) return TD_FLOW_NEXT;
  td_value value = n->b->evaluate(I, n->b);
  return !td_is_nil(value) && td_assign(I, n->a, value) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static bool has_starred(const td_node *n) { return find_starred(n) >= 0; }

static bool is_local(const td_node *n) { return n->kind == TD_NODE_NAME && n->scope == TD_SCOPE_LOCAL; }

static td_execute *augment_choose(const td_node *n) {
  if (n->a->kind != TD_NODE_NAME) return execute_augment_place;
  if (n->a->scope != TD_SCOPE_LOCAL) return execute_augment_shared;
  bool counts = n->b->kind == TD_NODE_CONSTANT && td_is_int(n->b->value) && (n->op == TD_BINARY_ADD || n->op == TD_BINARY_SUBTRACT);
  return counts ? execute_count_local : execute_augment_local;
}

td_execute *td_assign_choose(const td_node *n) {
  if (n->kind == TD_NODE_AUGMENT) return augment_choose(n);
  if (n->kind == TD_NODE_ANNOTATED) return execute_annotated;
  const td_node *target = n->items[0];
  if (n->count > 1) return execute_assign;
  bool sequences = (target->kind == TD_NODE_TUPLE || target->kind == TD_NODE_LIST) && n->b->kind == TD_NODE_TUPLE;
  if (sequences && target->count == n->b->count && !has_starred(target) && !has_starred(n->b)) return execute_assign_parallel;
  if (target->kind != TD_NODE_NAME) return execute_assign;
  if (target->scope == TD_SCOPE_GLOBAL) return execute_assign_global;
  if (target->scope != TD_SCOPE_LOCAL) return execute_assign;
  if (n->b->kind == TD_NODE_BINARY && is_local(n->b->a) && n->b->a->slot == target->slot) return execute_assign_updated;
  return execute_assign_local;
}
