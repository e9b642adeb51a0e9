// The methods that every instance has without its class defining them: what super().__init__() and
// object.__setattr__(self, name, value) reach.
#include "repl/language/core.h"

static td_value text_of(td_interpreter *I, bool ok, td_text *text) {
  if (ok) return td_from(td_str_take(I, text));
  td_text_clear(text);
  return TD_NIL;
}

static td_value object_init(td_interpreter *I, td_value self, td_value *arguments) {
  bool any = td_as_tuple(arguments[0])->count || td_as_dict(arguments[1])->count;
  if (any && !td_is(self, &td_exception_type) && td_is_nil(td_special(I, self, I->names->new_)))
    return td_raise(I, TD_CLASS_TYPE_ERROR,
                    "object.__init__() takes exactly one argument (the instance to initialize)");
  return TD_NONE;
}

static td_value object_repr(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_text text = {0};
  td_instance_repr_plainly(self, &text);
  return text_of(I, true, &text);
}

static td_value object_str(td_interpreter *I, td_value self, td_value *arguments) {
  (void)arguments;
  td_text text = {0};
  return text_of(I, td_repr(I, self, &text), &text);
}

static td_value object_format(td_interpreter *I, td_value self, td_value *arguments) {
  td_text text = {0};
  if (!td_is(arguments[0], &td_str_type) || td_as_str(arguments[0])->length)
    return td_raise(I, TD_CLASS_TYPE_ERROR, "unsupported format string passed to %s.__format__",
                    td_as_instance(self)->class->name->data);
  return text_of(I, td_print(I, self, &text), &text);
}

static td_value object_eq(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I;
  return arguments[0].tag == TD_TAG_OBJECT && arguments[0].o == self.o ? td_bool(true) : td_ref(TD_NOT_IMPLEMENTED);
}

static td_value object_ne(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I;
  return arguments[0].tag == TD_TAG_OBJECT && arguments[0].o == self.o ? td_bool(false) : td_ref(TD_NOT_IMPLEMENTED);
}

static td_value object_hash(td_interpreter *I, td_value self, td_value *arguments) {
  (void)I, (void)arguments;
  return td_int((int64_t)((uintptr_t)self.o >> 4));
}

static td_str *attribute_name(td_interpreter *I, td_value v) { // new reference
  if (td_is(v, &td_str_type)) return td_str_intern(I, td_as_str(v)->data, td_as_str(v)->length);
  td_raise(I, TD_CLASS_TYPE_ERROR, "attribute name must be string, not '%s'", td_type_name(I, v));
  return NULL;
}

static td_value object_setattr(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *name = attribute_name(I, arguments[0]);
  bool ok = name && td_instance_set_plainly(I, self, name, arguments[1]);
  td_unref(td_from(name));
  return ok ? TD_NONE : TD_NIL;
}

static td_value object_delattr(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *name = attribute_name(I, arguments[0]);
  bool ok = name && td_instance_set_plainly(I, self, name, TD_NIL);
  td_unref(td_from(name));
  return ok ? TD_NONE : TD_NIL;
}

static td_value object_getattribute(td_interpreter *I, td_value self, td_value *arguments) {
  td_str *name = attribute_name(I, arguments[0]);
  td_value value = name ? td_attribute(I, self, name) : TD_NIL;
  td_unref(td_from(name));
  return value;
}

static td_value object_new(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  if (td_is_class(arguments[0])) {
    td_value instance = td_instance_new(I, td_as_class(arguments[0]));
    if (td_is(instance, &td_exception_type)) ((td_exception *)instance.o)->arguments = td_ref(arguments[1]);
    return instance;
  }
  return td_raise(I, TD_CLASS_TYPE_ERROR, "object.__new__(X): X is not a type object (%s)",
                  td_type_name(I, arguments[0]));
}

static td_value object_init_subclass(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)I, (void)self, (void)arguments, TD_NONE;
}

const td_method td_object_methods[] = {
    {"__init__", "(*args, **kwargs)", object_init, NULL},
    {"__repr__", "()", object_repr, NULL},
    {"__str__", "()", object_str, NULL},
    {"__format__", "(format_spec, /)", object_format, NULL},
    {"__eq__", "(value, /)", object_eq, NULL},
    {"__ne__", "(value, /)", object_ne, NULL},
    {"__hash__", "()", object_hash, NULL},
    {"__setattr__", "(name, value, /)", object_setattr, NULL},
    {"__delattr__", "(name, /)", object_delattr, NULL},
    {"__getattribute__", "(name, /)", object_getattribute, NULL},
    {"__new__", "(cls, /, *args, **kwargs)", object_new, NULL},
    {"__init_subclass__", "(**kwargs)", object_init_subclass, NULL},
    {0},
};
