// Instances of the language's classes: attributes, and every operation as a call of the special method that the class
// defines. Special methods are looked up in the class, never in the instance.
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"

static td_class *class_of(td_value v) { return td_as_instance(v)->class; }

// ---- special methods ----

td_value td_special_call(td_interpreter *I, td_value method, td_value self, int count, const td_value *values) {
  if (!td_is(method, &td_function_type)) {
    td_value bound = td_bind_method(I, method, self, class_of(self));
    td_value result = td_is_nil(bound) ? TD_NIL : td_call_values(I, bound, count, (td_value *)values);
    td_unref(bound);
    return result;
  }
  if (!td_stack_room(I, count + 1)) return TD_NIL;
  td_value *base = I->stack_top;
  base[0] = td_ref(self);
  for (int i = 0; i < count; i++) base[i + 1] = td_ref(values[i]);
  I->stack_top = base + count + 1;
  td_ref(method);
  td_value result = td_call_stack(I, method, base, count + 1);
  td_unref(method);
  return result;
}

static bool defines(td_interpreter *I, td_value v, td_str *name) { return !td_is_nil(td_special(I, v, name)); }

// NOT_IMPLEMENTED (a new reference) when v's class has no such method.
static td_value ask(td_interpreter *I, td_value v, td_str *name, int count, const td_value *values) {
  td_value method = td_special(I, v, name);
  return td_is_nil(method) ? td_ref(TD_NOT_IMPLEMENTED) : td_special_call(I, method, v, count, values);
}

// ---- attributes ----

static td_value data_descriptor(td_interpreter *I, td_value found) { // its __set__; NIL: none
  return td_is_instance(found) ? td_special(I, found, I->names->set) : TD_NIL;
}

static td_value own_dict(td_interpreter *I, td_instance *instance) {
  if (!instance->attributes) instance->attributes = td_dict_new(I);
  return instance->attributes ? td_ref(td_borrow(instance->attributes)) : TD_NIL;
}

static td_value exception_attribute(td_interpreter *I, td_exception *e, td_str *name) {
  td_tuple *arguments = td_as_tuple(e->arguments);
  if (name == I->names->args) return td_ref(e->arguments);
  if (name == I->names->cause) return td_ref(e->cause);
  bool has_value = td_class_is_subclass(e->instance.class, I->classes[TD_CLASS_STOP_ITERATION]);
  bool has_code = td_class_is_subclass(e->instance.class, I->classes[TD_CLASS_SYSTEM_EXIT]);
  if ((has_value && name == I->names->value) || (has_code && name == I->names->code))
    return arguments->count ? td_ref(arguments->items[0]) : TD_NONE;
  if (strcmp(name->data, "__context__") == 0) return td_is_nil(e->context) ? TD_NONE : td_ref(e->context);
  if (strcmp(name->data, "__suppress_context__") == 0) return td_bool(e->suppresses);
  if (strcmp(name->data, "__traceback__") == 0) return TD_NONE;
  return TD_NIL;
}

static td_value general_attribute(td_interpreter *I, td_value v,
                                  td_str *name) { // what instances have without their class saying so
  td_instance *instance = td_as_instance(v);
  if (name == I->names->class_) return td_ref(td_borrow(instance->class));
  if (name == I->names->dict) return own_dict(I, instance);
  if (v.o->type == &td_exception_type) {
    td_value found = exception_attribute(I, (td_exception *)v.o, name);
    if (!td_is_nil(found)) return found;
  }
  if (name == I->names->doc || name == I->names->module) return td_attribute_find(I, td_borrow(instance->class), name);
  td_builtin *method = NULL;
  if (v.o->type->methods) method = td_type_method(I, v.o->type, name);
  if (!method && td_is_nil(I->raised)) method = td_type_method(I, &td_instance_type, name);
  return method ? td_builtin_new(I, method->row, v, method->data) : TD_NIL;
}

td_value td_instance_attribute(td_interpreter *I, td_value v, td_str *name) {
  td_instance *instance = td_as_instance(v);
  td_value found = td_class_find(I, instance->class, name);
  if (td_is(found, &td_property_type) || !td_is_nil(data_descriptor(I, found))) {
    td_value value = td_bind_method(I, found, v, instance->class);
    if (!td_is_nil(value) || !td_raised_is(I, TD_CLASS_ATTRIBUTE_ERROR) || !defines(I, v, I->names->getattr))
      return value;
    td_clear_raised(I);
    found = TD_NIL;
  } else {
    td_value own = instance->attributes ? td_dict_get_str(instance->attributes, name) : TD_NIL;
    if (!td_is_nil(own)) return td_ref(own);
    if (!td_is_nil(found)) return td_bind_method(I, found, v, instance->class);
    td_value general = general_attribute(I, v, name);
    if (!td_is_nil(general) || !td_is_nil(I->raised)) return general;
  }
  td_value method = td_special(I, v, I->names->getattr), argument = td_borrow(name);
  return td_is_nil(method) ? TD_NIL : td_special_call(I, method, v, 1, &argument);
}

static bool delete_own(td_interpreter *I, td_value v, td_str *name) {
  td_instance *instance = td_as_instance(v);
  int found = instance->attributes ? td_dict_remove(I, instance->attributes, td_borrow(name)) : 0;
  if (!found)
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "'%s' object has no attribute '%s'", instance->class->name->data, name->data);
  return found == 1;
}

static bool set_property(td_interpreter *I, td_value v, td_property *property, td_str *name, td_value value) {
  bool deletes = td_is_nil(value);
  td_value function = deletes ? property->remove : property->set, arguments[2] = {v, value};
  if (td_is_none(function)) {
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "property '%s' of '%s' object has no %s", name->data, class_of(v)->name->data,
             deletes ? "deleter" : "setter");
    return false;
  }
  td_value result = td_call_values(I, function, deletes ? 1 : 2, arguments);
  td_unref(result);
  return !td_is_nil(result);
}

// Without asking __setattr__ and __delattr__.
bool td_instance_set_plainly(td_interpreter *I, td_value v, td_str *name, td_value value) {
  td_instance *instance = td_as_instance(v);
  td_value found = td_class_find(I, instance->class, name);
  if (td_is(found, &td_property_type)) return set_property(I, v, (td_property *)found.o, name, value);
  td_value set = td_is_nil(value) ? TD_NIL : data_descriptor(I, found);
  if (!td_is_nil(set)) {
    td_value arguments[2] = {v, value}, result = td_special_call(I, set, found, 2, arguments);
    td_unref(result);
    return !td_is_nil(result);
  }
  if (td_is_nil(value)) return delete_own(I, v, name);
  if (v.o->type == &td_exception_type && name == I->names->args && td_is(value, &td_tuple_type)) {
    td_exception *e = (td_exception *)v.o;
    td_unref(e->arguments);
    e->arguments = td_ref(value);
    return true;
  }
  if (!instance->attributes && !(instance->attributes = td_dict_new(I))) return false;
  return td_dict_set_str(I, instance->attributes, name, value);
}

bool td_instance_set(td_interpreter *I, td_value v, td_str *name, td_value value) {
  bool deletes = td_is_nil(value);
  td_value method = td_special(I, v, deletes ? I->names->delattr : I->names->setattr);
  if (td_is_nil(method)) return td_instance_set_plainly(I, v, name, value);
  td_value arguments[2] = {td_borrow(name), value}, result = td_special_call(I, method, v, deletes ? 1 : 2, arguments);
  td_unref(result);
  return !td_is_nil(result);
}

static void instance_names(td_interpreter *I, td_value v, td_list *names) {
  td_instance *instance = td_as_instance(v);
  td_value key, value;
  int64_t position = 0;
  while (instance->attributes && td_dict_next(instance->attributes, &position, &key, &value))
    td_list_append(I, names, key);
  td_class_type.names(I, td_borrow(instance->class), names);
}

// ---- operators ----

static td_value reflected(td_interpreter *I, int op, td_value a, td_value b) {
  return ask(I, b, I->names->reflected[op], 1, &a);
}

static td_value instance_binary(td_interpreter *I, int op, td_value a, td_value b) {
  bool left = td_is_instance(a), right = td_is_instance(b), tried = false;
  td_value result = td_ref(TD_NOT_IMPLEMENTED);
  if (left && right) {
    td_class *own = class_of(a), *other = class_of(b);
    bool overrides = own != other && td_class_is_subclass(other, own) &&
                     td_special(I, a, I->names->reflected[op]).o != td_special(I, b, I->names->reflected[op]).o;
    if (overrides) {
      tried = true;
      result = reflected(I, op, a, b);
    }
    right = own != other;
  }
  if (left && td_is_not_implemented(result)) {
    td_unref(result);
    result = ask(I, a, I->names->binary[op], 1, &b);
  }
  if (right && !tried && td_is_not_implemented(result)) {
    td_unref(result);
    result = reflected(I, op, a, b);
  }
  return result;
}

static td_value instance_in_place(td_interpreter *I, int op, td_value a, td_value b) {
  return ask(I, a, I->names->in_place[op], 1, &b);
}

static td_value instance_unary(td_interpreter *I, int op, td_value v) {
  td_str *names[] = {I->names->neg, I->names->pos, I->names->invert};
  return ask(I, v, names[op - TD_UNARY_NEGATIVE], 0, NULL);
}

static td_value instance_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  td_str *names[] = {I->names->eq, I->names->ne, I->names->lt, I->names->le, I->names->gt, I->names->ge};
  td_value result = ask(I, a, names[comparison], 1, &b);
  if (comparison != TD_COMPARE_NOT_EQUAL || !td_is_not_implemented(result)) return result;
  td_value equal = ask(I, a, I->names->eq, 1, &b); // a != b is not a == b unless __ne__ says otherwise
  td_unref(result);
  if (td_is_nil(equal) || td_is_not_implemented(equal)) return equal;
  int truth = td_truth(I, equal);
  td_unref(equal);
  return truth < 0 ? TD_NIL : td_bool(!truth);
}

static bool instance_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  td_value method = td_special(I, v, I->names->hash);
  if (td_is_nil(method)) {
    *hash = (uint64_t)(uintptr_t)v.o >> 4;
    return true;
  }
  if (td_is_none(method)) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "unhashable type: '%s'", class_of(v)->name->data);
    return false;
  }
  td_value result = td_special_call(I, method, v, 0, NULL);
  *hash = (uint64_t)result.i;
  if (result.tag == TD_TAG_INT || result.tag == TD_TAG_BOOL) return true;
  if (!td_is_nil(result)) td_raise(I, TD_CLASS_TYPE_ERROR, "__hash__ method should return an integer");
  td_unref(result);
  return false;
}

static int64_t instance_length(td_interpreter *I, td_value v) {
  td_value result = ask(I, v, I->names->len, 0, NULL);
  bool whole = result.tag == TD_TAG_INT || result.tag == TD_TAG_BOOL;
  if (whole && result.i >= 0) return result.i;
  if (td_is_not_implemented(result))
    td_raise(I, TD_CLASS_TYPE_ERROR, "object of type '%s' has no len()", class_of(v)->name->data);
  else if (whole) td_raise(I, TD_CLASS_VALUE_ERROR, "__len__() should return >= 0");
  else if (!td_is_nil(result))
    td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object cannot be interpreted as an integer", td_type_name(I, result));
  td_unref(result);
  return -1;
}

static int instance_truth(td_interpreter *I, td_value v) {
  td_value method = td_special(I, v, I->names->bool_);
  if (td_is_nil(method)) {
    if (!defines(I, v, I->names->len)) return 1;
    int64_t length = instance_length(I, v);
    return length < 0 ? -1 : length > 0;
  }
  td_value result = td_special_call(I, method, v, 0, NULL);
  if (result.tag == TD_TAG_BOOL) return (int)result.i;
  if (!td_is_nil(result))
    td_raise(I, TD_CLASS_TYPE_ERROR, "__bool__ should return bool, returned %s", td_type_name(I, result));
  td_unref(result);
  return -1;
}

// ---- items and iteration ----

static td_value instance_item(td_interpreter *I, td_value v, td_value key) {
  td_value result = ask(I, v, I->names->getitem, 1, &key);
  if (!td_is_not_implemented(result)) return result;
  td_unref(result);
  return td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not subscriptable", class_of(v)->name->data);
}

static bool change_item(td_interpreter *I, td_value v, td_str *name, int count, const td_value *arguments,
                        const char *refusal) {
  td_value result = ask(I, v, name, count, arguments);
  if (td_is_not_implemented(result)) {
    td_unref(result);
    result = td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object %s", class_of(v)->name->data, refusal);
  }
  td_unref(result);
  return !td_is_nil(result);
}

static bool instance_set_item(td_interpreter *I, td_value v, td_value key, td_value value) {
  return change_item(I, v, I->names->setitem, 2, (td_value[]){key, value}, "does not support item assignment");
}

static bool instance_delete_item(td_interpreter *I, td_value v, td_value key) {
  return change_item(I, v, I->names->delitem, 1, &key, "doesn't support item deletion");
}

// Objects with __getitem__ alone are read at 0, 1, ... until IndexError.
typedef struct index_iterator {
  td_container container;
  td_value object;
  int64_t index;
} index_iterator;

static void index_clear(td_object *object) {
  td_value held = ((index_iterator *)object)->object;
  ((index_iterator *)object)->object = TD_NIL;
  td_unref(held);
}

static void index_visit(td_object *object, td_visitor *visitor, void *argument) {
  td_value held = ((index_iterator *)object)->object;
  if (held.tag == TD_TAG_OBJECT) visitor(held.o, argument);
}

static td_value index_next(td_interpreter *I, td_value v) {
  index_iterator *it = (index_iterator *)v.o;
  if (td_is_nil(it->object)) return TD_NIL;
  td_value element = instance_item(I, it->object, td_int(it->index++));
  if (!td_is_nil(element)) return element;
  if (td_raised_is(I, TD_CLASS_INDEX_ERROR) || td_raised_is(I, TD_CLASS_STOP_ITERATION)) td_clear_raised(I);
  index_clear(v.o);
  return TD_NIL;
}

static const td_type index_iterator_type = {.name = "iterator",
                                            .size = sizeof(index_iterator),
                                            .release = index_clear,
                                            .visit = index_visit,
                                            .clear = index_clear,
                                            .next = index_next};

static bool is_iterator(td_interpreter *I, td_value v) {
  return td_is_instance(v) ? defines(I, v, I->names->next) : td_type_of(v)->next != NULL;
}

static td_value instance_iterate(td_interpreter *I, td_value v) {
  td_value result = ask(I, v, I->names->iter, 0, NULL);
  if (td_is_nil(result) || (!td_is_not_implemented(result) && is_iterator(I, result))) return result;
  if (td_is_not_implemented(result) && defines(I, v, I->names->getitem)) {
    td_unref(result);
    index_iterator *it = td_object_new(I, &index_iterator_type, sizeof *it);
    if (it) it->object = td_ref(v);
    return td_from(it);
  }
  if (td_is_not_implemented(result))
    td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not iterable", class_of(v)->name->data);
  else td_raise(I, TD_CLASS_TYPE_ERROR, "iter() returned non-iterator of type '%s'", td_type_name(I, result));
  td_unref(result);
  return TD_NIL;
}

td_value td_instance_next(td_interpreter *I, td_value v) {
  td_value result = ask(I, v, I->names->next, 0, NULL);
  if (!td_is_not_implemented(result)) return result;
  td_unref(result);
  return td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not an iterator", class_of(v)->name->data);
}

static td_value instance_next(td_interpreter *I, td_value v) {
  td_value result = td_instance_next(I, v);
  if (td_is_nil(result) && td_raised_is(I, TD_CLASS_STOP_ITERATION)) td_clear_raised(I);
  return result;
}

static int search_step(td_interpreter *I, void *state, td_value element) {
  int equal = td_equal_values(I, element, *(td_value *)state);
  td_unref(element);
  return equal < 0 ? TD_FLOW_ERROR : equal ? TD_FLOW_BREAK : TD_FLOW_NEXT;
}

static int instance_contains(td_interpreter *I, td_value v, td_value item) {
  td_value method = td_special(I, v, I->names->contains);
  if (td_is_nil(method)) {
    if (!defines(I, v, I->names->iter) && !defines(I, v, I->names->getitem)) {
      td_raise(I, TD_CLASS_TYPE_ERROR, "argument of type '%s' is not iterable", class_of(v)->name->data);
      return -1;
    }
    int flow = td_each(I, v, search_step, &item);
    return flow == TD_FLOW_ERROR ? -1 : flow == TD_FLOW_BREAK;
  }
  td_value result = td_special_call(I, method, v, 1, &item);
  int truth = td_is_nil(result) ? -1 : td_truth(I, result);
  td_unref(result);
  return truth;
}

static td_value instance_call(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  td_value method = td_special(I, callee, I->names->call);
  if (td_is_nil(method))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "'%s' object is not callable", class_of(callee)->name->data);
  int32_t total = arguments->count + arguments->keyword_count;
  if (!td_is(method, &td_function_type)) {
    td_value bound = td_bind_method(I, method, callee, class_of(callee));
    td_value result = td_is_nil(bound) ? TD_NIL : td_invoke(I, bound, arguments);
    td_unref(bound);
    return result;
  }
  if (!td_stack_room(I, total + 1)) return TD_NIL;
  td_value *base = I->stack_top;
  base[0] = td_ref(callee);
  for (int32_t i = 0; i < total; i++) base[i + 1] = td_ref(arguments->values[i]);
  I->stack_top = base + total + 1;
  td_ref(method);
  td_value result =
      td_call_keywords(I, method, base, arguments->count + 1, arguments->keyword_count, arguments->keywords);
  td_unref(method);
  return result;
}

// ---- text ----

// Adds what the special method returned, which must be a str.
static bool add_text(td_interpreter *I, td_value result, const td_str *name, td_text *text) {
  bool ok = td_is(result, &td_str_type);
  if (ok) td_text_add_bytes(text, td_as_str(result)->data, td_as_str(result)->length);
  else if (!td_is_nil(result))
    td_raise(I, TD_CLASS_TYPE_ERROR, "%s returned non-string (type %s)", name->data, td_type_name(I, result));
  td_unref(result);
  return ok;
}

void td_instance_repr_plainly(td_value v, td_text *text) {
  const td_class *class = class_of(v);
  if (class->module) td_text_print(text, "<%s.", class->module->name->data);
  td_text_print(text, "%s%s object at %p>", class->module ? "" : "<", class->qualified->data, (void *)v.o);
}

static bool instance_repr(td_interpreter *I, td_value v, td_text *text) {
  td_value method = td_special(I, v, I->names->repr);
  if (td_is_nil(method)) return td_instance_repr_plainly(v, text), true;
  return add_text(I, td_special_call(I, method, v, 0, NULL), I->names->repr, text);
}

static bool instance_print(td_interpreter *I, td_value v, td_text *text) {
  td_value method = td_special(I, v, I->names->str);
  if (td_is_nil(method)) return instance_repr(I, v, text);
  return add_text(I, td_special_call(I, method, v, 0, NULL), I->names->str, text);
}

static bool instance_format(td_interpreter *I, td_value v, const char *spec, td_text *text) {
  td_value method = td_special(I, v, I->names->format);
  if (td_is_nil(method)) {
    if (!*spec) return td_print(I, v, text);
    td_raise(I, TD_CLASS_TYPE_ERROR, "unsupported format string passed to %s.__format__", class_of(v)->name->data);
    return false;
  }
  td_value argument = td_from(td_str_from(I, spec));
  if (td_is_nil(argument)) return false;
  td_value result = td_special_call(I, method, v, 1, &argument);
  td_unref(argument);
  return add_text(I, result, I->names->format, text);
}

// ---- the two records ----

static void instance_clear(td_object *object) {
  td_instance *instance = (td_instance *)object;
  td_dict *attributes = instance->attributes;
  instance->attributes = NULL;
  td_unref(td_from(attributes));
}

static void instance_release(td_object *object) {
  instance_clear(object);
  td_unref(td_from(((td_instance *)object)->class));
}

static void instance_visit(td_object *object, td_visitor *visitor, void *argument) {
  td_instance *instance = (td_instance *)object;
  visitor(&instance->class->container.object, argument);
  if (instance->attributes) visitor(&instance->attributes->container.object, argument);
}

const td_type td_instance_type = {
    .name = "object",
    .size = sizeof(td_instance),
    .release = instance_release,
    .visit = instance_visit,
    .clear = instance_clear,
    .truth = instance_truth,
    .repr = instance_repr,
    .print = instance_print,
    .format = instance_format,
    .attribute = td_instance_attribute,
    .set_attribute = td_instance_set,
    .names = instance_names,
    .item = instance_item,
    .set_item = instance_set_item,
    .delete_item = instance_delete_item,
    .length = instance_length,
    .iterate = instance_iterate,
    .next = instance_next,
    .contains = instance_contains,
    .call = instance_call,
    .binary = instance_binary,
    .in_place = instance_in_place,
    .unary = instance_unary,
    .compare = instance_compare,
    .hash = instance_hash,
    .methods = td_object_methods,
    .doc = "The base of all classes.",
};

static void exception_clear(td_object *object) {
  td_exception *e = (td_exception *)object;
  td_value held[] = {e->cause, e->context, e->evidence};
  e->cause = TD_NONE;
  e->context = e->evidence = TD_NIL;
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) td_unref(held[i]);
  instance_clear(object);
}

static void exception_release(td_object *object) {
  td_exception *e = (td_exception *)object;
  td_unref(e->cause);
  td_unref(e->context);
  td_unref(e->evidence);
  td_unref(e->arguments);
  td_report_drop(e);
  instance_release(object);
}

static void exception_visit(td_object *object, td_visitor *visitor, void *argument) {
  td_exception *e = (td_exception *)object;
  const td_value held[] = {e->arguments, e->cause, e->context, e->evidence};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++)
    if (held[i].tag == TD_TAG_OBJECT) visitor(held[i].o, argument);
  instance_visit(object, visitor, argument);
}

static bool exception_repr(td_interpreter *I, td_value v, td_text *text) {
  td_value method = td_special(I, v, I->names->repr);
  if (!td_is_nil(method)) return add_text(I, td_special_call(I, method, v, 0, NULL), I->names->repr, text);
  td_tuple *arguments = td_as_tuple(((td_exception *)v.o)->arguments);
  td_text_print(text, "%s(", class_of(v)->name->data);
  for (int64_t i = 0; i < arguments->count; i++) {
    if (i) td_text_add(text, ", ");
    if (!td_repr(I, arguments->items[i], text)) return false;
  }
  td_text_add_char(text, ')');
  return true;
}

static bool exception_print(td_interpreter *I, td_value v, td_text *text) {
  td_value method = td_special(I, v, I->names->str);
  if (!td_is_nil(method)) return add_text(I, td_special_call(I, method, v, 0, NULL), I->names->str, text);
  td_value arguments = ((td_exception *)v.o)->arguments;
  td_tuple *tuple = td_as_tuple(arguments);
  if (!tuple->count) return true;
  if (tuple->count > 1) return td_repr(I, arguments, text);
  bool key_error = td_class_is_subclass(class_of(v), I->classes[TD_CLASS_KEY_ERROR]);
  return key_error ? td_repr(I, tuple->items[0], text) : td_print(I, tuple->items[0], text);
}

static td_value text_of(td_interpreter *I, bool ok, td_text *text) {
  if (ok) return td_from(td_str_take(I, text));
  td_text_clear(text);
  return TD_NIL;
}

static td_value exception_str(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_text text = {0};
  td_value values = ((td_exception *)self.o)->arguments;
  td_tuple *tuple = td_as_tuple(values);
  bool ok = !tuple->count || (tuple->count == 1 ? td_print(I, tuple->items[0], &text) : td_repr(I, values, &text));
  return text_of(I, ok, &text);
}

static td_value exception_init(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I;
  td_exception *e = (td_exception *)self.o;
  td_unref(e->arguments);
  e->arguments = td_ref(arguments[0]);
  return TD_NONE;
}

static td_value exception_with_traceback(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)I, (void)arguments, td_ref(self);
}

static const td_method exception_methods[] = {
    {"__init__", "(*args)", exception_init, NULL},
    {"__str__", "()", exception_str, NULL},
    {"with_traceback", "(tb, /)", exception_with_traceback, "The exception itself: where it arose is kept by itself."},
    {0},
};

const td_type td_exception_type = {
    .name = "BaseException",
    .size = sizeof(td_exception),
    .release = exception_release,
    .visit = exception_visit,
    .clear = exception_clear,
    .truth = instance_truth,
    .repr = exception_repr,
    .print = exception_print,
    .format = instance_format,
    .attribute = td_instance_attribute,
    .set_attribute = td_instance_set,
    .names = instance_names,
    .item = instance_item,
    .set_item = instance_set_item,
    .delete_item = instance_delete_item,
    .length = instance_length,
    .iterate = instance_iterate,
    .next = instance_next,
    .contains = instance_contains,
    .call = instance_call,
    .binary = instance_binary,
    .in_place = instance_in_place,
    .unary = instance_unary,
    .compare = instance_compare,
    .hash = instance_hash,
    .methods = exception_methods,
    .doc = "The base of all exceptions.",
};
