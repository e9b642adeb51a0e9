// What the library's layers ask about values: the parameters of a callable.
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

const td_method td_layer_builtins[] = {
    {"parameter_names", "(callable, /)", parameter_names,
     "The names of what a callable takes, in order, self left out; *args and **kwargs keep their stars.\n"
     ">>> parameter_names(lambda x, y: x)"},
    {NULL, NULL, NULL, NULL}};
