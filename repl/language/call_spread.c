// Calls with keywords, *values and **mappings: what is given is gathered, positional arguments on the value stack and
// keywords in a list, in the order in which it is written; then the callee binds it.
#include "engine/base/memory.h"
#include "repl/language/core.h"

static void drop_values(td_value *from, td_value *to) {
  for (; from < to; from++) td_unref(*from);
}

typedef struct keyword_list {
  int32_t count, capacity;
  td_str **names; // counted
  td_value *values; // counted
} keyword_list;

static void drop_keywords(keyword_list *k) {
  for (int32_t i = 0; i < k->count; i++) {
    td_unref(td_from(k->names[i]));
    td_unref(k->values[i]);
  }
  td_memory_free(k->names);
  td_memory_free(k->values);
}

// Takes over value; borrows name.
static bool add_keyword(td_interpreter *I, keyword_list *k, td_str *name, td_value value) {
  if (k->count == k->capacity) {
    int32_t capacity = k->capacity ? k->capacity * 2 : 8;
    td_str **names = td_memory_resize(k->names, (size_t)capacity * sizeof *names);
    if (names) k->names = names;
    td_value *values = names ? td_memory_resize(k->values, (size_t)capacity * sizeof *values) : NULL;
    if (!values) {
      td_unref(value);
      td_raise_memory(I);
      return false;
    }
    k->values = values;
    k->capacity = capacity;
  }
  name->object.refs++;
  k->names[k->count] = name;
  k->values[k->count++] = value;
  return true;
}

static const char *callee_name(td_value callee) {
  if (td_is(callee, &td_function_type)) return ((td_function *)callee.o)->qualified->data;
  if (td_is(callee, &td_builtin_type)) return ((td_builtin *)callee.o)->row->name;
  if (td_is_class(callee)) return td_as_class(callee)->name->data;
  if (td_is(callee, &td_bound_type)) return callee_name(((td_bound *)callee.o)->function);
  return td_type_of(callee)->name;
}

static bool add_mapping_entry(td_interpreter *I, td_value callee, keyword_list *k, td_value key, td_value value) {
  if (!td_is(key, &td_str_type)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "keywords must be strings");
    return false;
  }
  td_str *name = td_str_intern(I, td_as_str(key)->data, td_as_str(key)->length);
  if (!name) return false;
  bool ok = true;
  for (int32_t i = 0; i < k->count; i++) ok &= k->names[i] != name;
  if (ok) ok = add_keyword(I, k, name, td_ref(value));
  else
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s() got multiple values for keyword argument '%s'", callee_name(callee),
             name->data);
  td_unref(td_from(name));
  return ok;
}

static bool add_mapping(td_interpreter *I, td_value callee, keyword_list *k, td_value mapping) {
  td_dict *copy = NULL;
  if (!td_is(mapping, &td_dict_type)) {
    if (td_is_instance(mapping) && (copy = td_dict_new(I)) && td_dict_update(I, copy, mapping)) mapping = td_from(copy);
    else if (td_is_nil(I->raised))
      td_raise(I, TD_CLASS_TYPE_ERROR, "%s() argument after ** must be a mapping, not %s", callee_name(callee),
               td_type_name(I, mapping));
  }
  bool ok = td_is_nil(I->raised);
  int64_t position = 0;
  td_value key, value;
  while (ok && td_dict_next(td_as_dict(mapping), &position, &key, &value))
    ok = add_mapping_entry(I, callee, k, key, value);
  td_unref(td_from(copy));
  return ok;
}

static bool push_value(td_interpreter *I, td_value v) { // takes over v
  if (!td_stack_room(I, 1)) {
    td_unref(v);
    return false;
  }
  *I->stack_top++ = v;
  return true;
}

static int push_step(td_interpreter *I, void *state, td_value element) {
  (void)state;
  return push_value(I, element) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static bool push_starred(td_interpreter *I, td_value callee, td_value iterable) {
  const td_type *type = td_type_of(iterable);
  if (!type->iterate && !type->next) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s() argument after * must be an iterable, not %s", callee_name(callee),
             td_type_name(I, iterable));
    return false;
  }
  return td_each(I, iterable, push_step, NULL) != TD_FLOW_ERROR;
}

static bool push_argument(td_interpreter *I, td_value callee, const td_node *item, keyword_list *k) {
  bool wrapped = item->kind == TD_NODE_STARRED || item->kind == TD_NODE_KEYWORD || item->kind == TD_NODE_DOUBLE_STARRED;
  const td_node *expression = wrapped ? item->a : item;
  td_value v = expression->evaluate(I, expression);
  if (td_is_nil(v)) return false;
  if (!wrapped) return push_value(I, v);
  if (item->kind == TD_NODE_KEYWORD) {
    for (int32_t i = 0; i < k->count; i++) {
      if (k->names[i] != item->name) continue;
      td_raise(I, TD_CLASS_TYPE_ERROR, "%s() got multiple values for keyword argument '%s'", callee_name(callee),
               item->name->data);
      td_unref(v);
      return false;
    }
    return add_keyword(I, k, item->name, v);
  }
  td_mark(I, item);
  bool ok = item->kind == TD_NODE_STARRED ? push_starred(I, callee, v) : add_mapping(I, callee, k, v);
  td_unref(v);
  return ok;
}

static bool push_keyword_values(td_interpreter *I, keyword_list *k) {
  if (!td_stack_room(I, k->count)) return false;
  for (int32_t i = 0; i < k->count; i++) *I->stack_top++ = td_ref(k->values[i]);
  return true;
}

static td_value spread(td_interpreter *I, const td_node *n, td_value callee) {
  td_value *base = I->stack_top, result = TD_NIL;
  keyword_list k = {0};
  bool ok = true;
  for (int32_t i = 0; ok && i < n->count; i++) ok = push_argument(I, callee, n->items[i], &k);
  td_mark(I, n);
  if (ok && push_keyword_values(I, &k)) {
    int32_t total = (int32_t)(I->stack_top - base);
    result = td_call_keywords(I, callee, base, total - k.count, k.count, k.names);
  } else {
    drop_values(base, I->stack_top);
  }
  I->stack_top = base;
  drop_keywords(&k);
  return result;
}

td_value td_call_spread(td_interpreter *I, const td_node *n) {
  td_value callee = n->a->evaluate(I, n->a);
  if (td_is_nil(callee)) return TD_NIL;
  td_value result = spread(I, n, callee);
  td_unref(callee);
  return result;
}
