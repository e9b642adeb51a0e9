// Classes: their attributes and how they are looked up, making instances, super, and the classes of builtin types.
// Lookups go through a cache in the interpreter that any change of any class empties at once by a version number.
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"

// ---- lookup ----

bool td_class_is_subclass(const td_class *class, const td_class *base) {
  for (; class; class = class->base)
    if (class == base) return true;
  return false;
}

td_value td_class_lookup(td_class *class, td_str *name, td_class **where) {
  for (; class; class = class->base) {
    td_value found = class->attributes ? td_dict_get_str(class->attributes, name) : TD_NIL;
    if (td_is_nil(found)) continue;
    if (where) *where = class;
    return found;
  }
  return TD_NIL;
}

static void class_changed(td_interpreter *I) { I->core->class_version++; }

td_value td_class_find(td_interpreter *I, td_class *class, td_str *name) {
  struct td_core *core = I->core;
  td_lookup *entry = &core->lookups[((uintptr_t) class >> 5 ^ (uintptr_t)name >> 4) % TD_LOOKUPS];
  if (TD_LIKELY(entry->owner == class && entry->name == name && entry->version == core->class_version))
    return entry->value;
  td_value found = td_class_lookup(class, name, NULL);
  if (!(name->object.flags & TD_OBJECT_INTERNED)) return found;
  td_str *old = entry->name;
  name->object.refs++;
  *entry = (td_lookup){.owner = class, .name = name, .value = found, .version = core->class_version};
  td_unref(td_from(old));
  return found;
}

td_class *td_class_of(td_interpreter *I, td_value v) {
  return td_is_instance(v) ? td_as_instance(v)->class : td_class_of_type(I, td_type_of(v));
}

bool td_isinstance(td_interpreter *I, td_value v, td_class *class) {
  if (class == I->classes[TD_CLASS_OBJECT]) return true;
  td_class *own = td_class_of(I, v);
  return own && td_class_is_subclass(own, class);
}

// ---- making classes ----

static td_class *class_new(td_interpreter *I, td_str *name, td_class *base, td_dict *attributes) {
  td_class *class = td_object_new(I, &td_class_type, sizeof *class);
  if (!class) return NULL;
  class->name = (td_str *)td_ref(td_borrow(name)).o;
  class->qualified = (td_str *)td_ref(td_borrow(name)).o;
  class->base = base;
  class->instance_type = base ? base->instance_type : &td_instance_type;
  if (base) base->container.object.refs++;
  class->attributes = attributes;
  if (attributes) attributes->container.object.refs++;
  class_changed(I);
  return class;
}

static bool base_accepted(td_interpreter *I, td_str *name, const td_class *base) {
  if (base->instance_type == &td_instance_type || base->instance_type == &td_exception_type) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "type '%s' is not an acceptable base type", base->name->data);
  td_raise_hint(I, "class %s can hold a %s in an attribute and pass on what it needs", name->data, base->name->data);
  return false;
}

// Descriptors learn the name that they were given in a class.
static bool tell_names(td_interpreter *I, td_class *class) {
  td_value key, value;
  int64_t position = 0;
  while (td_dict_next(class->attributes, &position, &key, &value)) {
    td_value method = td_is_instance(value) ? td_special(I, value, I->names->set_name) : TD_NIL;
    if (td_is_nil(method)) continue;
    td_value arguments[2] = {td_borrow(class), key}, result = td_special_call(I, method, value, 2, arguments);
    td_unref(result);
    if (td_is_nil(result)) return false;
  }
  return true;
}

static bool tell_base(td_interpreter *I, td_class *class) {
  td_value method = td_class_find(I, class->base, I->names->init_subclass);
  if (td_is_nil(method)) return true;
  if (td_is(method, &td_class_method_type)) method = ((td_wrapper *)method.o)->function;
  td_value self = td_borrow(class), result = td_call_values(I, method, 1, &self);
  td_unref(result);
  return !td_is_nil(result);
}

td_value td_class_build(td_interpreter *I, td_str *name, td_class *base, td_dict *attributes, td_module *module,
                        td_str *qualified) {
  if (!base_accepted(I, name, base)) return TD_NIL;
  bool unhashable =
      !td_is_nil(td_dict_get_str(attributes, I->names->eq)) && td_is_nil(td_dict_get_str(attributes, I->names->hash));
  if (unhashable && !td_dict_set_str(I, attributes, I->names->hash, TD_NONE)) return TD_NIL;
  td_class *class = class_new(I, name, base, attributes);
  if (!class) return TD_NIL;
  td_unref(td_from(class->qualified));
  class->qualified = (td_str *)td_ref(td_borrow(qualified)).o;
  class->module = module;
  module->container.object.refs++;
  td_value doc = td_dict_get_str(attributes, I->names->doc);
  if (td_is(doc, &td_str_type)) class->doc = (td_str *)td_ref(doc).o;
  if (tell_names(I, class) && tell_base(I, class)) return td_from(class);
  td_unref(td_from(class));
  return TD_NIL;
}

td_class *td_class_of_type(td_interpreter *I, const td_type *type) {
  if (type == &td_instance_type) return I->classes[TD_CLASS_OBJECT];
  if (type == &td_exception_type) return I->classes[TD_CLASS_BASE_EXCEPTION];
  td_type_entry *entry = td_type_entry_of(I, type);
  if (!entry || entry->class) return entry ? entry->class : NULL;
  td_str *name = td_str_intern(I, type->name, strlen(type->name));
  td_class *class = name ? class_new(I, name, I->classes[TD_CLASS_OBJECT], NULL) : NULL;
  td_unref(td_from(name));
  if (!class) return NULL;
  class->instance_type = type;
  return entry->class = class;
}

static bool make_builtin_class(td_interpreter *I, int index, const char *text, int base) {
  td_str *name = td_str_intern(I, text, strlen(text));
  if (!name) return false;
  td_class *class = class_new(I, name, index == base ? NULL : I->classes[base], NULL);
  td_unref(td_from(name));
  if (!class) return false;
  I->classes[index] = class;
  if (index == TD_CLASS_BASE_EXCEPTION) class->instance_type = &td_exception_type;
  return true;
}

bool td_classes_make(td_interpreter *I) {
  I->classes = td_memory_new_zero(TD_CLASS_COUNT * sizeof *I->classes);
  return I->classes
#define X(NAME, text, base) &&make_builtin_class(I, TD_CLASS_##NAME, text, TD_CLASS_##base)
      TD_BUILTIN_CLASSES(X)
#undef X
      ;
}

// ---- the class as a value ----

static void class_clear(td_object *object) {
  td_class *class = (td_class *)object;
  td_dict *attributes = class->attributes;
  class->attributes = NULL;
  td_unref(td_from(attributes));
}

static void class_release(td_object *object) {
  td_class *class = (td_class *)object;
  class_clear(object);
  td_unref(td_from(class->base));
  td_unref(td_from(class->name));
  td_unref(td_from(class->qualified));
  td_unref(td_from(class->doc));
  td_unref(td_from(class->module));
  td_unref(td_from(class->maker));
}

static void class_visit(td_object *object, td_visitor *visitor, void *argument) {
  td_class *class = (td_class *)object;
  if (class->base) visitor(&class->base->container.object, argument);
  if (class->attributes) visitor(&class->attributes->container.object, argument);
  if (class->module) visitor(&class->module->container.object, argument);
  if (class->maker) visitor(&class->maker->container.object, argument);
}

static bool class_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_class *class = td_as_class(v);
  if (class->module) td_text_print(text, "<class '%s.%s'>", class->module->name->data, class->qualified->data);
  else td_text_print(text, "<class '%s'>", class->name->data);
  return true;
}

static td_value class_bases(td_interpreter *I, td_class *class) {
  td_tuple *tuple = td_tuple_new(I, class->base ? 1 : 0);
  if (tuple && class->base) tuple->items[0] = td_ref(td_borrow(class->base));
  return td_from(tuple);
}

static td_value class_mro(td_interpreter *I, td_class *class) {
  int64_t count = 0;
  for (td_class *c = class; c; c = c->base) count++;
  td_tuple *tuple = td_tuple_new(I, count);
  for (int64_t i = 0; tuple && i < count; i++, class = class->base) tuple->items[i] = td_ref(td_borrow(class));
  return td_from(tuple);
}

static td_value class_dict(td_interpreter *I, td_class *class) {
  return td_from(class->attributes ? td_dict_copy(I, class->attributes) : td_dict_new(I));
}

static td_value class_own(td_interpreter *I, td_class *class, td_str *name) { // what every class has
  if (name == I->names->name) return td_ref(td_borrow(class->name));
  if (name == I->names->qualname) return td_ref(td_borrow(class->qualified));
  if (name == I->names->module)
    return class->module ? td_ref(td_borrow(class->module->name)) : td_from(td_str_from(I, "builtins"));
  if (name == I->names->doc) {
    if (class->doc) return td_ref(td_borrow(class->doc));
    return !class->module && class->instance_type->doc ? td_from(td_str_from(I, class->instance_type->doc)) : TD_NONE;
  }
  if (name == I->names->dict) return class_dict(I, class);
  if (name == I->names->bases) return class_bases(I, class);
  if (name == I->names->base) return class->base ? td_ref(td_borrow(class->base)) : TD_NONE;
  if (name == I->names->mro) return class_mro(I, class);
  return TD_NIL;
}

// A method written in C that instances of the class have: str.upper, object.__repr__. Borrowed.
static td_value native_method(td_interpreter *I, const td_type *type, td_str *name) {
  td_builtin *method = type->methods ? td_type_method(I, type, name) : NULL;
  if (!method && td_is_nil(I->raised) && type != &td_instance_type) method = td_type_method(I, &td_instance_type, name);
  return method ? td_borrow(method) : TD_NIL;
}

static td_value class_attribute(td_interpreter *I, td_value v, td_str *name) {
  td_class *class = td_as_class(v);
  td_value own = class_own(I, class, name);
  if (!td_is_nil(own) || !td_is_nil(I->raised)) return own;
  td_value found = td_class_find(I, class, name);
  if (!td_is_nil(found)) return td_bind_method(I, found, TD_NIL, class);
  if (name == I->names->class_) return td_ref(td_borrow(td_class_of_type(I, &td_class_type)));
  return td_ref(native_method(I, class->instance_type, name));
}

static bool class_set_attribute(td_interpreter *I, td_value v, td_str *name, td_value value) {
  td_class *class = td_as_class(v);
  if (!class->module) {
    td_raise(I, TD_CLASS_TYPE_ERROR, "cannot set '%s' attribute of immutable type '%s'", name->data, class->name->data);
    return false;
  }
  class_changed(I);
  if (name == I->names->name && td_is(value, &td_str_type)) {
    td_unref(td_from(class->name));
    class->name = (td_str *)td_ref(value).o;
    return true;
  }
  if (!td_is_nil(value)) return td_dict_set_str(I, class->attributes, name, value);
  int found = td_dict_remove(I, class->attributes, td_borrow(name));
  if (!found)
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "type object '%s' has no attribute '%s'", class->name->data, name->data);
  return found == 1;
}

static void add_row_names(td_interpreter *I, const td_method *rows, td_list *names) {
  for (; rows && rows->name; rows++) {
    td_value text = td_from(td_str_from(I, rows->name));
    if (!td_is_nil(text)) td_list_append(I, names, text);
    td_unref(text);
  }
}

static void add_class_names(td_interpreter *I, td_class *class, td_list *names) {
  add_row_names(I, class->instance_type->methods, names);
  for (; class; class = class->base) {
    td_value key, value;
    int64_t position = 0;
    while (class->attributes && td_dict_next(class->attributes, &position, &key, &value)) td_list_append(I, names, key);
  }
}

static void class_names(td_interpreter *I, td_value v, td_list *names) { add_class_names(I, td_as_class(v), names); }

static td_value class_call(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  return td_invoke(I, callee, arguments);
}

const td_type td_class_type = {
    .name = "type",
    .size = sizeof(td_class),
    .release = class_release,
    .visit = class_visit,
    .clear = class_clear,
    .repr = class_repr,
    .attribute = class_attribute,
    .set_attribute = class_set_attribute,
    .names = class_names,
    .call = class_call,
    .doc = "A class: calling it makes an instance.",
};

// ---- making instances ----

static td_value construct_native(td_interpreter *I, td_class *class, td_value *base, int32_t count,
                                 int32_t keyword_count, td_str **keywords) {
  td_tuple *positional = td_tuple_new(I, count);
  td_dict *named = keyword_count ? td_dict_new(I) : (td_dict *)td_ref(td_borrow(I->core->no_keywords)).o;
  bool ok = positional && named;
  for (int32_t i = 0; ok && i < count; i++) positional->items[i] = td_ref(base[i]);
  for (int32_t i = 0; ok && i < keyword_count; i++) ok = td_dict_set_str(I, named, keywords[i], base[count + i]);
  td_value arguments[2] = {td_from(positional), td_from(named)}, result = TD_NIL;
  if (ok && !td_recursion(I)) result = class->construct(I, td_borrow(class), arguments);
  td_unref(arguments[0]);
  td_unref(arguments[1]);
  return result;
}

td_value td_instance_new(td_interpreter *I, td_class *class) {
  bool exception = class->instance_type == &td_exception_type;
  td_instance *instance = td_object_new(I, class->instance_type, exception ? sizeof(td_exception) : sizeof *instance);
  if (!instance) return TD_NIL;
  instance->class = class;
  class->container.object.refs++;
  if (exception) ((td_exception *)instance)->cause = TD_NONE;
  return td_from(instance);
}

static bool keep_arguments(td_interpreter *I, td_value instance, const td_value *base,
                           int32_t count) { // of an exception
  td_tuple *tuple = td_tuple_new(I, count);
  if (!tuple) return false;
  for (int32_t i = 0; i < count; i++) tuple->items[i] = td_ref(base[i]);
  td_exception *e = (td_exception *)instance.o;
  td_unref(e->arguments);
  e->arguments = td_from(tuple);
  return true;
}

// Runs __init__ on the instance, which stands in base[-1] beneath the arguments. Takes over all of them.
static bool initialise(td_interpreter *I, td_class *class, td_value init, td_value instance, td_value *base,
                       int32_t count, int32_t keyword_count, td_str **keywords) {
  td_ref(init);
  td_value result;
  if (td_is(init, &td_function_type)) {
    result = td_call_keywords(I, init, base - 1, count + 1, keyword_count, keywords);
  } else { // a callable that is no function is bound as any attribute
    td_value bound = td_bind_method(I, init, instance, class);
    result = td_is_nil(bound) ? TD_NIL : td_call_keywords(I, bound, base, count, keyword_count, keywords);
    td_unref(bound);
    td_unref(base[-1]);
    I->stack_top = base - 1;
  }
  td_unref(init);
  if (td_is_nil(result) || td_is_none(result)) return td_is_none(result);
  td_raise(I, TD_CLASS_TYPE_ERROR, "__init__() should return None, not '%s'", td_type_name(I, result));
  td_unref(result);
  return false;
}

// __new__ of the language's classes gets the class and all arguments.
static td_value make_with_new(td_interpreter *I, td_class *class, td_value method, const td_value *base, int32_t count,
                              int32_t keyword_count, td_str **keywords) {
  if (td_is(method, &td_static_type)) method = ((td_wrapper *)method.o)->function;
  int32_t total = count + keyword_count;
  if (!td_stack_room(I, total + 1)) return TD_NIL;
  td_value *copy = I->stack_top;
  copy[0] = td_ref(td_borrow(class));
  for (int32_t i = 0; i < total; i++) copy[i + 1] = td_ref(base[i]);
  I->stack_top = copy + total + 1;
  return td_call_keywords(I, method, copy, count + 1, keyword_count, keywords);
}

static void drop_arguments(td_interpreter *I, td_value *base, int32_t total) {
  for (int32_t i = 0; i < total; i++) td_unref(base[i]);
  I->stack_top = base;
}

static bool refuse_arguments(td_interpreter *I, const td_class *class, int32_t count) {
  if (!count) return false;
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s() takes no arguments", class->name->data);
  return true;
}

static td_value construct_instance(td_interpreter *I, td_class *class, td_value *base, int32_t count,
                                   int32_t keyword_count, td_str **keywords) {
  int32_t total = count + keyword_count;
  td_value maker = td_class_find(I, class, I->names->new_), init = td_class_find(I, class, I->names->init);
  td_value instance = td_is_nil(maker) ? td_instance_new(I, class)
                                       : make_with_new(I, class, maker, base, count, keyword_count, keywords);
  bool exception = td_is(instance, &td_exception_type), own = !td_is_nil(instance) && td_isinstance(I, instance, class);
  bool ok = !td_is_nil(instance) && (!exception || !own || keep_arguments(I, instance, base, count));
  bool initialised = ok && own && !td_is_nil(init);
  if (ok && own && !initialised && td_is_nil(maker))
    ok = !refuse_arguments(I, class, exception ? keyword_count : total);
  if (initialised && !td_stack_room(I, 1)) initialised = ok = false;
  if (initialised) {
    memmove(base + 1, base, (size_t)total * sizeof *base);
    base[0] = td_ref(instance);
    I->stack_top = base + total + 1;
    ok = initialise(I, class, init, instance, base + 1, count, keyword_count, keywords);
  } else {
    drop_arguments(I, base, total);
  }
  if (ok) return instance;
  td_unref(instance);
  return TD_NIL;
}

td_value td_class_construct(td_interpreter *I, td_class *class, td_value *base, int32_t count, int32_t keyword_count,
                            td_str **keywords) {
  if (class->instance_type == &td_instance_type || class->instance_type == &td_exception_type)
    return construct_instance(I, class, base, count, keyword_count, keywords);
  if (class->maker) return td_call_keywords(I, td_borrow(class->maker), base, count, keyword_count, keywords);
  td_value result;
  if (class->construct) result = construct_native(I, class, base, count, keyword_count, keywords);
  else result = td_raise(I, TD_CLASS_TYPE_ERROR, "cannot create '%s' instances", class->name->data);
  drop_arguments(I, base, count + keyword_count);
  return result;
}

// ---- super ----

typedef struct super {
  td_container container;
  td_class *class;
  td_value self;
} super; // attributes are looked up above class

static void super_clear(td_object *object) {
  super *s = (super *)object;
  td_value self = s->self;
  s->self = TD_NIL;
  td_unref(self);
}

static void super_release(td_object *object) {
  super_clear(object);
  td_unref(td_from(((super *)object)->class));
}

static void super_visit(td_object *object, td_visitor *visitor, void *argument) {
  super *s = (super *)object;
  visitor(&s->class->container.object, argument);
  if (s->self.tag == TD_TAG_OBJECT) visitor(s->self.o, argument);
}

static td_value super_attribute(td_interpreter *I, td_value v, td_str *name) {
  super *s = (super *)v.o;
  if (name == I->names->class_) return TD_NIL;
  td_class *base = s->class->base;
  td_value found = base ? td_class_find(I, base, name) : TD_NIL;
  bool of_class = td_is_class(s->self);
  td_class *class = of_class ? td_as_class(s->self) : td_as_instance(s->self)->class;
  if (!td_is_nil(found)) return td_bind_method(I, found, of_class ? TD_NIL : s->self, class);
  td_value native = native_method(I, class->instance_type, name);
  if (td_is_nil(native)) return TD_NIL;
  const td_builtin *method = (td_builtin *)native.o;
  return of_class ? td_ref(native) : td_builtin_new(I, method->row, s->self, method->data);
}

static bool super_repr(td_interpreter *I, td_value v, td_text *text) {
  super *s = (super *)v.o;
  td_text_print(text, "<super: <class '%s'>, <%s object>>", s->class->name->data, td_type_name(I, s->self));
  return true;
}

const td_type td_super_type = {
    .name = "super",
    .size = sizeof(super),
    .release = super_release,
    .visit = super_visit,
    .clear = super_clear,
    .repr = super_repr,
    .attribute = super_attribute,
    .doc = "The methods of the base class: super().__init__() calls the base's.",
};

static bool running_method(td_interpreter *I, td_value *class, td_value *self) {
  const td_frame *frame = I->frame;
  const td_function *f = frame->function;
  if (!f || !f->prototype->positional) return td_raise(I, TD_CLASS_RUNTIME_ERROR, "super(): no arguments"), false;
  if (!f->owner || td_is_nil(f->owner->value))
    return td_raise(I, TD_CLASS_RUNTIME_ERROR, "super(): __class__ cell not found"), false;
  *class = f->owner->value;
  *self = frame->slots[0];
  if (td_is(*self, &td_cell_type)) *self = ((td_cell *)self->o)->value;
  if (td_is_nil(*self)) return td_raise(I, TD_CLASS_RUNTIME_ERROR, "super(): arg[0] deleted"), false;
  return true;
}

td_value td_super_new(td_interpreter *I, td_value class, td_value self) {
  if (td_is_none(class) && !running_method(I, &class, &self)) return TD_NIL;
  if (!td_is_class(class))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "super() argument 1 must be a type, not %s", td_type_name(I, class));
  td_class *own = td_is_class(self) ? td_as_class(self) : td_is_instance(self) ? td_as_instance(self)->class : NULL;
  if (!own || !td_class_is_subclass(own, td_as_class(class)))
    return td_raise(I, TD_CLASS_TYPE_ERROR, "super(type, obj): obj must be an instance or subtype of type");
  super *s = td_object_new(I, &td_super_type, sizeof *s);
  if (!s) return TD_NIL;
  s->class = td_as_class(td_ref(class));
  s->self = td_ref(self);
  return td_from(s);
}
