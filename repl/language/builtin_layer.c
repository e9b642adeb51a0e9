// What the library's layers ask about values: the parameters of a callable, the parts that an object holds.
#include <stdio.h>
#include <string.h>
#include "repl/language/syntax.h"
#include "repl/language/tensors.h"

static bool add_name(td_interpreter *I, td_list *names, const char *stars, const td_str *name) {
  char text[160];
  snprintf(text, sizeof text, "%s%.150s", stars, name->data);
  td_value boxed = td_from(td_str_from(I, text));
  bool added = !td_is_nil(boxed) && td_list_append(I, names, boxed);
  td_unref(boxed);
  return added;
}

// plain names, then *args and **kwargs as far as there are; skip leaves out the leading ones (self).
static bool add_parameters(td_interpreter *I, td_list *names, td_str **all, int32_t plain, bool star, bool double_star,
                           int32_t skip) {
  bool added = true;
  for (int32_t i = skip; added && i < plain; i++) added = add_name(I, names, "", all[i]);
  if (added && star) added = add_name(I, names, "*", all[plain]);
  if (added && double_star) added = add_name(I, names, "**", all[plain + star]);
  return added;
}

static bool add_parameters_of(td_interpreter *I, td_value callee, td_list *names, int32_t skip) {
  if (td_is(callee, &td_bound_type))
    return add_parameters_of(I, ((td_bound *)callee.o)->function, names, skip + 1);
  if (td_is(callee, &td_function_type)) {
    const td_prototype *prototype = ((td_function *)callee.o)->prototype;
    return add_parameters(I, names, prototype->slot_names, prototype->positional + prototype->keyword_only,
                          prototype->star, prototype->double_star, skip);
  }
  if (td_is(callee, &td_builtin_type)) {
    const td_signature *signature = ((td_builtin *)callee.o)->signature;
    return !signature || add_parameters(I, names, signature->names, signature->positional + signature->keyword_only,
                                        signature->star, signature->double_star, 0);
  }
  if (td_is(callee, &td_op_type)) {
    const td_op_value *bound = (const td_op_value *)callee.o;
    for (int i = !td_is_nil(bound->self); i < td_op_tensor_params(bound->op) + td_op_arg_count(bound->op); i++) {
      td_value name = td_from(td_str_from(I, bound->op->params[i].name));
      bool added = !td_is_nil(name) && td_list_append(I, names, name);
      td_unref(name);
      if (!added) return false;
    }
    return true;
  }
  const char *entry = td_is(callee, &td_class_type) ? "__init__" : "__call__";
  td_str *name = td_str_intern(I, entry, strlen(entry));
  td_value function = name ? td_attribute_find(I, callee, name) : TD_NIL;
  td_unref(td_from(name));
  if (td_is_nil(function)) return td_is_nil(I->raised);
  bool through = td_is(function, &td_function_type) || td_is(function, &td_bound_type);
  bool added = !through || add_parameters_of(I, function, names, td_is(callee, &td_class_type));
  td_unref(function);
  return added;
}

static td_value parameter_names(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_list *names = td_list_new(I, 4);
  if (!names) return TD_NIL;
  if (add_parameters_of(I, arguments[0], names, 0)) return td_from(names);
  td_unref(td_from(names));
  return TD_NIL;
}

// ---- what an object holds ----

typedef struct parts {
  td_interpreter *interpreter;
  td_class *class;  // what counts beside Variables
  td_list *found;   // of tuples (path, part)
} parts;

static bool add_part(parts *p, const char *path, td_value part) {
  td_tuple *pair = td_tuple_new(p->interpreter, 2);
  if (!pair) return false;
  pair->items[0] = td_from(td_str_from(p->interpreter, path));
  pair->items[1] = td_ref(part);
  bool added = !td_is_nil(pair->items[0]) && td_list_append(p->interpreter, p->found, td_from(pair));
  td_unref(td_from(pair));
  return added;
}

static bool add_parts(parts *p, const char *path, td_value v);

static bool add_item(parts *p, const char *path, td_value key, td_value item) {
  if (item.tag != TD_TAG_OBJECT) return true;
  td_text inner = {0};
  td_text_print(&inner, "%s/", path);
  bool added = td_print(p->interpreter, key, &inner) && inner.data && add_parts(p, inner.data, item);
  td_text_clear(&inner);
  return added;
}

static bool add_parts(parts *p, const char *path, td_value v) {
  if (v.tag != TD_TAG_OBJECT) return true;
  if (td_is(v, &td_variable_type)) return add_part(p, path, v);
  if (td_is(v, &td_instance_type)) return !td_isinstance(p->interpreter, v, p->class) || add_part(p, path, v);
  if (td_recursion(p->interpreter)) return false;
  if (td_is(v, &td_list_type) || td_is(v, &td_tuple_type)) {
    bool added = true;
    for (int64_t i = 0; added; i++) { // the count is read anew: printing a key may run code of the user's
      int64_t count = td_is(v, &td_list_type) ? td_as_list(v)->count : td_as_tuple(v)->count;
      if (i >= count) break;
      added = add_item(p, path, td_int(i), td_is(v, &td_list_type) ? td_as_list(v)->items[i] : td_as_tuple(v)->items[i]);
    }
    return added;
  }
  if (!td_is(v, &td_dict_type)) return true;
  int64_t position = 0;
  td_value key, value;
  bool added = true;
  while (added && td_dict_next(td_as_dict(v), &position, &key, &value)) added = add_item(p, path, key, value);
  return added;
}

static td_value held_parts(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is(arguments[0], &td_instance_type) || !td_is(arguments[1], &td_class_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "held_parts: an instance and a class are needed, not %s and %s",
                    td_type_name(I, arguments[0]), td_type_name(I, arguments[1]));
  parts p = {I, (td_class *)arguments[1].o, td_list_new(I, 8)};
  td_dict *attributes = ((td_instance *)arguments[0].o)->attributes;
  int64_t position = 0;
  td_value key, value;
  bool added = p.found != NULL;
  while (added && attributes && td_dict_next(attributes, &position, &key, &value))
    added = add_parts(&p, td_as_str(key)->data, value);
  if (added) return td_from(p.found);
  td_unref(td_from(p.found));
  return TD_NIL;
}

static td_value session_value(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (!td_is(arguments[0], &td_str_type))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "session_value: a name is a str, not %s", td_type_name(I, arguments[0]));
  td_str *name = td_as_str(arguments[0]);
  td_value found = td_attribute_find(I, (td_value){.tag = TD_TAG_OBJECT, .o = (td_object *)I->main}, name);
  if (td_is_nil(found)) found = td_builtin_find(I, name);
  return td_is_nil(found) && td_is_nil(I->raised) ? TD_NONE : found;
}

const td_method td_layer_builtins[] = {
    {"session_value", "(name, /)", session_value,
     "What a name means at the prompt: the session's variable, or else the builtin or library name; None if nothing does."},
    {"held_parts", "(object, cls, /)", held_parts,
     "(path, part) for each Variable and each instance of cls that the attributes of object hold, also in lists, tuples\n"
     "and dicts, in their order: \"kernel\", \"blocks/0\", \"heads/left\"."},
    {"parameter_names", "(callable, /)", parameter_names,
     "The names of what a callable takes, in order, self left out; *args and **kwargs keep their stars.\n"
     ">>> parameter_names(lambda x, y: x)"},
    {NULL, NULL, NULL, NULL}};
