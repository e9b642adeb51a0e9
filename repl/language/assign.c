// Targets: names, attributes, items and nested sequences of them, for assignment, augmented assignment and del. Values
// that are not changed but rebound (tensors: their type has with_item) are moved out of the place that holds them
// while they are updated, so that one which nobody else holds is updated without a copy; an exception puts them back.
#include "repl/language/assign.h"

// ---- names ----

td_value *td_name_place(td_interpreter *I, const td_node *name) {
  if (name->scope == TD_SCOPE_GLOBAL) return &name->global->value;
  if (name->scope == TD_SCOPE_CELL) return &((td_cell *)I->slots[name->slot].o)->value;
  return &I->slots[name->slot];
}

bool td_assign_name(td_interpreter *I, const td_node *target, td_value value) {
  td_value *place = td_name_place(I, target), old = *place;
  *place = value;
  td_unref(old);
  return true;
}

// ---- chains: what a target means once its parts are evaluated ----

static td_value link_load(td_interpreter *I, const td_link *p) {
  td_mark(I, p->node);
  return p->node->kind == TD_NODE_ATTRIBUTE ? td_attribute(I, p->object, p->node->name) : td_item(I, p->object, p->key);
}

td_value td_chain_load(td_interpreter *I, const td_chain *c) { return link_load(I, &c->links[0]); }

void td_chain_close(td_chain *c) {
  for (int i = 0; i < c->count; i++) {
    td_unref(c->links[i].object);
    td_unref(c->links[i].key);
  }
}

bool td_chain_open(td_interpreter *I, const td_node *target, td_chain *c) {
  c->count = 0;
  const td_node *node = target;
  while (c->count < TD_CHAIN_MAX && (node->kind == TD_NODE_ATTRIBUTE || node->kind == TD_NODE_INDEX)) {
    c->links[c->count++] = (td_link){.node = node};
    node = node->a;
  }
  c->root = node;
  td_value object = node->evaluate(I, node);
  for (int i = c->count - 1; i >= 0; i--) {
    td_link *p = &c->links[i];
    if (td_is_nil(object)) break;
    p->object = object;
    if (p->node->kind == TD_NODE_INDEX && td_is_nil(p->key = p->node->b->evaluate(I, p->node->b))) break;
    if (i == 0) return true;
    object = link_load(I, p);
  }
  td_chain_close(c);
  return false;
}

void td_chain_detach(td_interpreter *I, const td_chain *c, int level, td_value object) {
  td_value *held = NULL;
  if (level == c->count) {
    if (c->root->kind == TD_NODE_NAME) held = td_name_place(I, c->root);
  } else {
    const td_link *p = &c->links[level];
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

static bool store_updated(td_interpreter *I, td_chain *c, int level, td_value value) {
  td_link *p = &c->links[level];
  if (level + 1 == c->count && c->root->kind != TD_NODE_NAME) {
    td_raise_at(I, p->node, TD_CLASS_TYPE_ERROR, "a %s is a value: assigning to an item of a result has no effect",
                td_type_name(I, p->object));
    td_raise_hint(I, "give it a name first: x = ...; x[...] = ...");
    return false;
  }
  td_value object = p->object, kept = TD_NIL;
  p->object = TD_NIL;
  td_chain_detach(I, c, level + 1, object);
  td_mark(I, p->node);
  td_value updated = td_type_of(object)->with_item(I, object, p->key, value, &kept);
  if (!td_is_nil(updated)) return td_chain_store(I, c, level + 1, updated);
  td_value raised = td_take_raised(I);
  td_chain_store(I, c, level + 1, kept);
  td_clear_raised(I);
  td_put_raised(I, raised);
  return false;
}

// Takes over value.
bool td_chain_store(td_interpreter *I, td_chain *c, int level, td_value value) {
  if (level == c->count) return td_assign_name(I, c->root, value);
  td_link *p = &c->links[level];
  bool ok;
  td_mark(I, p->node);
  if (p->node->kind == TD_NODE_ATTRIBUTE) ok = td_set_attribute(I, p->object, p->node->name, value);
  else if (td_type_of(p->object)->with_item) ok = store_updated(I, c, level, value);
  else ok = td_set_item(I, p->object, p->key, value);
  td_unref(value);
  return ok;
}

static bool assign_chain(td_interpreter *I, const td_node *target, td_value value) {
  td_chain c;
  if (!td_chain_open(I, target, &c)) {
    td_unref(value);
    return false;
  }
  bool ok = td_chain_store(I, &c, 0, value);
  td_chain_close(&c);
  return ok;
}

// ---- sequences of targets ----

static bool raise_count(td_interpreter *I, const td_node *target, int64_t expected, int64_t got, bool at_least) {
  if (got < expected)
    td_raise_at(I, target, TD_CLASS_VALUE_ERROR, "not enough values to unpack (expected %s%lld, got %lld)",
                at_least ? "at least " : "", (long long)expected, (long long)got);
  else td_raise_at(I, target, TD_CLASS_VALUE_ERROR, "too many values to unpack (expected %lld)", (long long)expected);
  return false;
}

int32_t td_find_starred(const td_node *target) {
  for (int32_t i = 0; i < target->count; i++)
    if (target->items[i]->kind == TD_NODE_STARRED) return i;
  return -1;
}

static bool assign_items(td_interpreter *I, const td_node *target, int32_t begin, int32_t end, const td_value *values) {
  for (int32_t i = begin; i < end; i++)
    if (!td_assign(I, target->items[i], td_ref(values[i - begin]))) return false;
  return true;
}

static bool assign_around_star(td_interpreter *I, const td_node *target, int32_t star, const td_value *values,
                               int64_t count) {
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
  int32_t star = td_find_starred(target);
  if (star >= 0) return assign_around_star(I, target, star, values, count);
  if (count != target->count) return raise_count(I, target, target->count, count, false);
  return assign_items(I, target, 0, target->count, values);
}

typedef struct bounded {
  td_list *list;
  int64_t limit;
} bounded;

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
  bounded b = {.list = td_list_new(I, target->count),
               .limit = td_find_starred(target) >= 0 ? INT64_MAX : target->count};
  td_mark(I, target);
  bool ok = b.list && td_each(I, value, bounded_step, &b) != TD_FLOW_ERROR &&
            assign_values(I, target, b.list->items, b.list->count);
  td_unref(td_from(b.list));
  return ok;
}

static bool assign_unpack(td_interpreter *I, const td_node *target, td_value value) {
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
    td_chain c;
    td_chain_of(&c, target, object, key);
    ok = td_chain_store(I, &c, 0, td_ref(value));
    td_chain_close(&c);
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
  case TD_NODE_NAME: return td_assign_name(I, target, value);
  case TD_NODE_ATTRIBUTE: return assign_attribute(I, target, value);
  case TD_NODE_INDEX: return assign_item(I, target, value);
  default: return assign_unpack(I, target, value);
  }
}

static bool delete_name(td_interpreter *I, const td_node *target) {
  td_value *place = td_name_place(I, target), old = *place;
  if (td_is_nil(old)) {
    if (target->scope == TD_SCOPE_GLOBAL || target->scope == TD_SCOPE_CLASS)
      td_raise_at(I, target, TD_CLASS_NAME_ERROR, "name '%s' is not defined", target->name->data);
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
