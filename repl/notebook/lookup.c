// See lookup.h.
#include "repl/notebook/lookup.h"
#include <string.h>
#include "repl/language/core.h"
#include "repl/language/tensors.h"

static td_value native_method(td_interpreter *I, const td_type *type, td_str *name) {
  td_builtin *method = type && type->methods ? td_type_method(I, type, name) : NULL;
  return method ? td_from(method) : TD_NIL;
}

static td_value attribute_of_class(td_interpreter *I, td_class *class, td_str *name) {
  td_value found = td_class_lookup(class, name, NULL);
  return td_is_nil(found) ? native_method(I, class->instance_type, name) : found;
}

static td_value plain_attribute(td_interpreter *I, td_value v, td_str *name) { // borrowed
  if (td_is(v, &td_module_type)) return td_module_get((td_module *)v.o, name);
  if (td_is_class(v)) return attribute_of_class(I, td_as_class(v), name);
  if (td_is_instance(v)) {
    td_dict *attributes = td_as_instance(v)->attributes;
    td_value own = attributes ? td_dict_get_str(attributes, name) : TD_NIL;
    return td_is_nil(own) ? attribute_of_class(I, td_as_instance(v)->class, name) : own;
  }
  const td_type *made = td_type_made_by(v), *type = made ? made : td_type_of(v);
  bool tensor = type == &td_tensor_type || type == &td_variable_type;
  td_value method = native_method(I, type, name);
  return td_is_nil(method) && tensor && I->ops ? td_dict_get_str(I->ops, name) : method;
}

td_value td_lookup_path(td_interpreter *I, const char *path, size_t length) {
  td_value v = TD_NIL;
  for (size_t at = 0, end; at < length; at = end + 1) {
    for (end = at; end < length && path[end] != '.'; end++) continue;
    td_str *name = td_str_intern(I, path + at, end - at);
    if (!name) return td_unref(v), TD_NIL;
    td_value next = td_ref(at ? plain_attribute(I, v, name) : td_module_get(I->main, name));
    if (td_is_nil(next) && !at) next = td_builtin_find(I, name);
    td_unref(td_from(name));
    td_unref(v);
    v = next;
    if (td_is_nil(v)) return v;
  }
  return v;
}
