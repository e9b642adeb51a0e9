// See nest.h. The walk recurses as deep as the structure; the interpreter's guard bounds it.
#include <string.h>
#include "repl/language/nest.h"

// A model stands for the list of its trainable_variables. NIL without exception: v is no model.
static td_value variables_of(td_interpreter *I, td_value v) {
  if (!td_is(v, &td_instance_type)) return TD_NIL;
  td_str *name = td_str_intern(I, "trainable_variables", strlen("trainable_variables"));
  if (!name) return TD_NIL;
  td_value variables = td_attribute_find(I, v, name);
  td_unref(td_from(name));
  return variables;
}

static bool each_of(td_interpreter *I, td_value *items, int64_t count, td_nest_leaf *leaf, void *argument) {
  for (int64_t i = 0; i < count; i++)
    if (!td_nest_each(I, items[i], leaf, argument)) return false;
  return true;
}

bool td_nest_each(td_interpreter *I, td_value v, td_nest_leaf *leaf, void *argument) {
  if (td_recursion(I)) return false;
  if (td_is(v, &td_list_type)) return each_of(I, td_as_list(v)->items, td_as_list(v)->count, leaf, argument);
  if (td_is(v, &td_tuple_type)) return each_of(I, td_as_tuple(v)->items, td_as_tuple(v)->count, leaf, argument);
  if (td_is(v, &td_dict_type)) {
    int64_t position = 0;
    td_value key, value;
    while (td_dict_next(td_as_dict(v), &position, &key, &value))
      if (!td_nest_each(I, value, leaf, argument)) return false;
    return true;
  }
  td_value variables = variables_of(I, v);
  if (td_is_nil(variables)) return td_is_nil(I->raised) && leaf(I, v, argument);
  bool ok = td_nest_each(I, variables, leaf, argument);
  td_unref(variables);
  return ok;
}

static td_value build_dict(td_interpreter *I, td_value v, const td_value *leaves, int *next) {
  td_dict *dict = td_dict_new(I);
  int64_t position = 0;
  td_value key, value;
  bool ok = dict != NULL;
  while (ok && td_dict_next(td_as_dict(v), &position, &key, &value)) {
    td_value built = td_nest_build(I, value, leaves, next);
    ok = !td_is_nil(built) && td_dict_set(I, dict, key, built);
    td_unref(built);
  }
  if (ok) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static td_value build_list(td_interpreter *I, td_value v, const td_value *leaves, int *next) {
  td_list *list = td_list_new(I, td_as_list(v)->count);
  bool ok = list != NULL;
  for (int64_t i = 0; ok && i < td_as_list(v)->count; i++) {
    td_value built = td_nest_build(I, td_as_list(v)->items[i], leaves, next);
    ok = !td_is_nil(built) && td_list_append(I, list, built);
    td_unref(built);
  }
  if (ok) return td_from(list);
  td_unref(td_from(list));
  return TD_NIL;
}

static td_value build_tuple(td_interpreter *I, td_value v, const td_value *leaves, int *next) {
  td_tuple *tuple = td_tuple_new(I, td_as_tuple(v)->count);
  bool ok = tuple != NULL;
  for (int64_t i = 0; ok && i < td_as_tuple(v)->count; i++) {
    tuple->items[i] = td_nest_build(I, td_as_tuple(v)->items[i], leaves, next);
    ok = !td_is_nil(tuple->items[i]);
  }
  if (ok) return td_from(tuple);
  td_unref(td_from(tuple));
  return TD_NIL;
}

td_value td_nest_build(td_interpreter *I, td_value v, const td_value *leaves, int *next) {
  if (td_recursion(I)) return TD_NIL;
  if (td_is(v, &td_list_type)) return build_list(I, v, leaves, next);
  if (td_is(v, &td_tuple_type)) return build_tuple(I, v, leaves, next);
  if (td_is(v, &td_dict_type)) return build_dict(I, v, leaves, next);
  td_value variables = variables_of(I, v);
  if (!td_is_nil(variables)) {
    td_value built = td_nest_build(I, variables, leaves, next);
    td_unref(variables);
    return built;
  }
  return td_is_nil(I->raised) ? td_ref(leaves[(*next)++]) : TD_NIL;
}

static bool count_leaf(td_interpreter *I, td_value leaf, void *argument) {
  (void)I, (void)leaf;
  ++*(int *)argument;
  return true;
}

int td_nest_count(td_interpreter *I, td_value v) {
  int count = 0;
  return td_nest_each(I, v, count_leaf, &count) ? count : -1;
}
