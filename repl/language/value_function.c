// Functions and what else can be called or bound: builtin functions, bound methods, properties, static and class
// methods, cells. A function keeps the arena of its script, so its tree lives as long as it does.
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"

static void visit_value(td_value v, td_visitor *visitor, void *argument) {
  if (v.tag == TD_TAG_OBJECT) visitor(v.o, argument);
}

static void drop(td_value *v) {
  td_value old = *v;
  *v = TD_NIL;
  td_unref(old);
}

// ---- cells ----

static void cell_clear(td_object *object) { drop(&((td_cell *)object)->value); }
static void cell_visit(td_object *object, td_visitor *visitor, void *argument) {
  visit_value(((td_cell *)object)->value, visitor, argument);
}

const td_type td_cell_type = {
    .name = "cell", .size = sizeof(td_cell), .release = cell_clear, .visit = cell_visit, .clear = cell_clear};

td_cell *td_cell_new(td_interpreter *I, td_value value) {
  td_cell *cell = td_object_new(I, &td_cell_type, sizeof *cell);
  if (cell) cell->value = value;
  else td_unref(value);
  return cell;
}

// ---- functions ----

// The name with the path of definitions around it; the frame is the one that defines it.
td_str *td_qualified_name(td_interpreter *I, td_prototype *p) {
  if (p->qualified) return p->qualified;
  const td_frame *frame = I->frame;
  td_text text = {0};
  if (frame->owner && frame->prototype->qualified) td_text_print(&text, "%s.", frame->prototype->qualified->data);
  else if (frame->function) td_text_print(&text, "%s.<locals>.", frame->function->qualified->data);
  td_text_add(&text, p->name->data);
  td_str *name = td_str_take(I, &text);
  if (!name) return NULL;
  if (!td_arena_hold(p->arena, td_from(name))) {
    td_raise_memory(I);
    return NULL;
  }
  return p->qualified = name;
}

static bool is_plain(const td_prototype *p) {
  return !p->keyword_only && !p->star && !p->double_star && !p->cell_count && !p->capture_count;
}

td_value td_function_new(td_interpreter *I, td_prototype *p, td_module *module) {
  td_str *qualified = td_qualified_name(I, p);
  if (!qualified) return TD_NIL;
  int32_t parameters = p->positional + p->keyword_only;
  size_t bytes =
      sizeof(td_function) + (size_t)parameters * sizeof(td_value) + (size_t)p->capture_count * sizeof(td_cell *);
  td_function *f = td_object_new(I, &td_function_type, bytes);
  if (!f) return TD_NIL;
  f->fallbacks = (td_value *)(f + 1);
  f->captured = (td_cell **)(f->fallbacks + parameters);
  f->prototype = p;
  td_arena_ref(p->arena);
  f->module = module;
  module->container.object.refs++;
  for (int32_t i = 0; i < p->capture_count; i++) f->captured[i] = (td_cell *)td_ref(I->slots[p->captures[i].outer]).o;
  f->owner = I->frame->owner ? I->frame->owner : I->frame->function ? I->frame->function->owner : NULL;
  if (f->owner) f->owner->container.object.refs++;
  f->name = (td_str *)td_ref(td_borrow(p->name)).o;
  f->qualified = (td_str *)td_ref(td_borrow(qualified)).o;
  f->plain = is_plain(p);
  return td_from(f);
}

td_value td_function_define(td_interpreter *I, td_prototype *p) {
  td_value v = td_function_new(I, p, I->frame->module);
  if (td_is_nil(v)) return TD_NIL;
  td_function *f = (td_function *)v.o;
  for (int32_t i = 0; i < p->positional + p->keyword_only; i++) {
    const td_node *fallback = p->parameters[i].fallback;
    if (!fallback) continue;
    f->fallbacks[i] = fallback->evaluate(I, fallback);
    if (!td_is_nil(f->fallbacks[i])) continue;
    td_unref(v);
    return TD_NIL;
  }
  return v;
}

static void function_clear(td_object *object) {
  td_function *f = (td_function *)object;
  td_prototype *p = f->prototype;
  for (int32_t i = 0; i < p->positional + p->keyword_only; i++) drop(&f->fallbacks[i]);
  td_dict *attributes = f->attributes;
  f->attributes = NULL;
  td_unref(td_from(attributes));
}

static void function_release(td_object *object) {
  td_function *f = (td_function *)object;
  function_clear(object);
  for (int32_t i = 0; i < f->prototype->capture_count; i++) td_unref(td_from(f->captured[i]));
  td_unref(td_from(f->owner));
  td_unref(td_from(f->module));
  td_unref(td_from(f->name));
  td_unref(td_from(f->qualified));
  td_arena_unref(f->prototype->arena);
}

static void function_visit(td_object *object, td_visitor *visitor, void *argument) {
  td_function *f = (td_function *)object;
  td_prototype *p = f->prototype;
  for (int32_t i = 0; i < p->positional + p->keyword_only; i++) visit_value(f->fallbacks[i], visitor, argument);
  for (int32_t i = 0; i < p->capture_count; i++) visitor(&f->captured[i]->container.object, argument);
  if (f->owner) visitor(&f->owner->container.object, argument);
  if (f->attributes) visitor(&f->attributes->container.object, argument);
  visitor(&f->module->container.object, argument);
}

static bool function_repr(td_interpreter *I, td_value v, td_text *text) {
  (void)I;
  td_text_print(text, "<function %s at %p>", ((td_function *)v.o)->qualified->data, (void *)v.o);
  return true;
}

static td_dict *function_dict(td_interpreter *I, td_function *f) {
  if (!f->attributes) f->attributes = td_dict_new(I);
  return f->attributes;
}

static td_value function_defaults(td_interpreter *I, const td_function *f) {
  int32_t positional = f->prototype->positional, first = 0;
  while (first < positional && td_is_nil(f->fallbacks[first])) first++;
  if (first == positional) return TD_NONE;
  td_tuple *tuple = td_tuple_new(I, positional - first);
  for (int32_t i = first; tuple && i < positional; i++) tuple->items[i - first] = td_ref(f->fallbacks[i]);
  return td_from(tuple);
}

static td_value function_attribute(td_interpreter *I, td_value v, td_str *name) {
  td_function *f = (td_function *)v.o;
  td_value own = f->attributes ? td_dict_get_str(f->attributes, name) : TD_NIL;
  if (!td_is_nil(own)) return td_ref(own);
  if (name == I->names->name) return td_ref(td_borrow(f->name));
  if (name == I->names->qualname) return td_ref(td_borrow(f->qualified));
  if (name == I->names->doc) return f->prototype->doc ? td_ref(td_borrow(f->prototype->doc)) : TD_NONE;
  if (name == I->names->module) return f->module->name ? td_ref(td_borrow(f->module->name)) : TD_NONE;
  if (name == I->names->defaults) return function_defaults(I, f);
  if (name == I->names->dict) return function_dict(I, f) ? td_ref(td_borrow(f->attributes)) : TD_NIL;
  return TD_NIL;
}

static bool function_set_attribute(td_interpreter *I, td_value v, td_str *name, td_value value) {
  td_function *f = (td_function *)v.o;
  if (name == I->names->name || name == I->names->qualname) {
    if (!td_is(value, &td_str_type)) {
      td_raise(I, TD_CLASS_TYPE_ERROR, "%s must be set to a string object", name->data);
      return false;
    }
    td_str **place = name == I->names->name ? &f->name : &f->qualified;
    td_unref(td_from(*place));
    *place = (td_str *)td_ref(value).o;
    return true;
  }
  td_dict *attributes = function_dict(I, f);
  if (!attributes) return false;
  if (!td_is_nil(value)) return td_dict_set_str(I, attributes, name, value);
  int found = td_dict_remove(I, attributes, td_borrow(name));
  if (!found) td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "'function' object has no attribute '%s'", name->data);
  return found == 1;
}

static void function_names(td_interpreter *I, td_value v, td_list *names) {
  td_dict *attributes = ((td_function *)v.o)->attributes;
  td_value key, value;
  int64_t position = 0;
  while (attributes && td_dict_next(attributes, &position, &key, &value)) td_list_append(I, names, key);
}

static td_value invoke(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  return td_invoke(I, callee, arguments);
}

const td_type td_function_type = {
    .name = "function",
    .size = sizeof(td_function),
    .release = function_release,
    .visit = function_visit,
    .clear = function_clear,
    .repr = function_repr,
    .attribute = function_attribute,
    .set_attribute = function_set_attribute,
    .names = function_names,
    .call = invoke,
    .doc = "A function of the language, made by def or lambda.",
};

// ---- builtin functions ----

td_value td_builtin_new(td_interpreter *I, const td_method *row, td_value self, const void *data) {
  td_signature *signature = td_signature_of_row(I, row);
  if (!signature) return TD_NIL;
  td_builtin *builtin = td_object_new(I, &td_builtin_type, sizeof *builtin);
  if (!builtin) return TD_NIL;
  builtin->row = row;
  builtin->signature = signature;
  builtin->self = td_ref(self);
  builtin->data = data;
  return td_from(builtin);
}

static void builtin_clear(td_object *object) { drop(&((td_builtin *)object)->self); }
static void builtin_visit(td_object *object, td_visitor *visitor, void *argument) {
  visit_value(((td_builtin *)object)->self, visitor, argument);
}

static bool builtin_repr(td_interpreter *I, td_value v, td_text *text) {
  const td_builtin *builtin = (td_builtin *)v.o;
  if (!td_is_nil(builtin->self))
    td_text_print(text, "<built-in method %s of %s object at %p>", builtin->row->name, td_type_name(I, builtin->self),
                  (void *)v.o);
  else if (builtin->method_of)
    td_text_print(text, "<method '%s' of '%s' objects>", builtin->row->name, builtin->method_of->name);
  else td_text_print(text, "<built-in function %s>", builtin->row->name);
  return true;
}

static td_value builtin_attribute(td_interpreter *I, td_value v, td_str *name) {
  const td_builtin *builtin = (td_builtin *)v.o;
  if (name == I->names->name || name == I->names->qualname) return td_from(td_str_from(I, builtin->row->name));
  if (name == I->names->doc) return builtin->row->doc ? td_from(td_str_from(I, builtin->row->doc)) : TD_NONE;
  if (name == I->names->self) return td_is_nil(builtin->self) ? TD_NONE : td_ref(builtin->self);
  if (name == I->names->module) return td_from(td_str_from(I, "builtins"));
  return TD_NIL;
}

static td_value builtin_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  (void)I;
  if (comparison > TD_COMPARE_NOT_EQUAL || !td_is(b, &td_builtin_type)) return td_ref(TD_NOT_IMPLEMENTED);
  const td_builtin *left = (td_builtin *)a.o, *right = (td_builtin *)b.o;
  bool same = left->row == right->row && left->data == right->data && left->self.tag == right->self.tag &&
              left->self.i == right->self.i;
  return td_bool(same == (comparison == TD_COMPARE_EQUAL));
}

static bool builtin_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  (void)I;
  const td_builtin *builtin = (td_builtin *)v.o;
  *hash = (uint64_t)(uintptr_t)builtin->row >> 4 ^ (uint64_t)builtin->self.i;
  return true;
}

const td_type td_builtin_type = {
    .name = "builtin_function_or_method",
    .size = sizeof(td_builtin),
    .release = builtin_clear,
    .visit = builtin_visit,
    .clear = builtin_clear,
    .repr = builtin_repr,
    .attribute = builtin_attribute,
    .call = invoke,
    .compare = builtin_compare,
    .hash = builtin_hash,
    .doc = "A function written in C.",
};

// ---- bound methods ----

static void bound_clear(td_object *object) {
  drop(&((td_bound *)object)->self);
  drop(&((td_bound *)object)->function);
}

static void bound_visit(td_object *object, td_visitor *visitor, void *argument) {
  visit_value(((td_bound *)object)->self, visitor, argument);
  visit_value(((td_bound *)object)->function, visitor, argument);
}

static bool bound_repr(td_interpreter *I, td_value v, td_text *text) {
  const td_bound *bound = (td_bound *)v.o;
  const char *name =
      td_is(bound->function, &td_function_type) ? ((td_function *)bound->function.o)->qualified->data : "?";
  td_text_print(text, "<bound method %s of ", name);
  if (!td_repr(I, bound->self, text)) return false;
  td_text_add_char(text, '>');
  return true;
}

static td_value bound_attribute(td_interpreter *I, td_value v, td_str *name) {
  const td_bound *bound = (td_bound *)v.o;
  if (name == I->names->self) return td_ref(bound->self);
  if (name == I->names->func) return td_ref(bound->function);
  return name == I->names->class_ ? TD_NIL : td_attribute_find(I, bound->function, name);
}

static td_value bound_compare(td_interpreter *I, int comparison, td_value a, td_value b) {
  (void)I;
  if (comparison > TD_COMPARE_NOT_EQUAL || !td_is(b, &td_bound_type)) return td_ref(TD_NOT_IMPLEMENTED);
  const td_bound *left = (td_bound *)a.o, *right = (td_bound *)b.o;
  bool same =
      left->self.tag == right->self.tag && left->self.i == right->self.i && left->function.o == right->function.o;
  return td_bool(same == (comparison == TD_COMPARE_EQUAL));
}

static bool bound_hash(td_interpreter *I, td_value v, uint64_t *hash) {
  (void)I;
  const td_bound *bound = (td_bound *)v.o;
  *hash = (uint64_t)bound->self.i >> 4 ^ (uint64_t)bound->function.i;
  return true;
}

const td_type td_bound_type = {
    .name = "method",
    .size = sizeof(td_bound),
    .release = bound_clear,
    .visit = bound_visit,
    .clear = bound_clear,
    .repr = bound_repr,
    .attribute = bound_attribute,
    .call = invoke,
    .compare = bound_compare,
    .hash = bound_hash,
    .doc = "A function together with the instance it was taken from.",
};

static td_value bound_new(td_interpreter *I, td_value self, td_value function) {
  td_bound *bound = td_object_new(I, &td_bound_type, sizeof *bound);
  if (!bound) return TD_NIL;
  bound->self = td_ref(self);
  bound->function = td_ref(function);
  return td_from(bound);
}

td_value td_bind_method(td_interpreter *I, td_value found, td_value self, td_class *class) {
  if (found.tag != TD_TAG_OBJECT) return found;
  const td_type *type = found.o->type;
  bool from_class = td_is_nil(self);
  if (type == &td_function_type) return from_class ? td_ref(found) : bound_new(I, self, found);
  if (type == &td_builtin_type && !from_class && ((td_builtin *)found.o)->method_of &&
      td_is_nil(((td_builtin *)found.o)->self))
    return bound_new(I, self, found);
  if (type == &td_static_type) return td_ref(((td_wrapper *)found.o)->function);
  if (type == &td_class_method_type) return bound_new(I, td_borrow(class), ((td_wrapper *)found.o)->function);
  if (type == &td_property_type && !from_class) {
    td_property *property = (td_property *)found.o;
    if (!td_is_none(property->get)) return td_call_values(I, property->get, 1, &self);
    return td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "property of '%s' object has no getter", class->name->data);
  }
  if (td_is_instance(found)) {
    td_value get = td_special(I, found, I->names->get);
    td_value arguments[2] = {from_class ? TD_NONE : self, td_borrow(class)};
    if (!td_is_nil(get)) return td_special_call(I, get, found, 2, arguments);
  }
  return td_ref(found);
}

// ---- property, staticmethod, classmethod ----

static void property_clear(td_object *object) {
  drop(&((td_property *)object)->get);
  drop(&((td_property *)object)->set);
  drop(&((td_property *)object)->remove);
}

static void property_visit(td_object *object, td_visitor *visitor, void *argument) {
  visit_value(((td_property *)object)->get, visitor, argument);
  visit_value(((td_property *)object)->set, visitor, argument);
  visit_value(((td_property *)object)->remove, visitor, argument);
}

static td_value property_make(td_interpreter *I, td_value get, td_value set, td_value remove) {
  td_property *property = td_object_new(I, &td_property_type, sizeof *property);
  if (!property) return TD_NIL;
  property->get = td_ref(get);
  property->set = td_ref(set);
  property->remove = td_ref(remove);
  return td_from(property);
}

static td_value property_getter(td_interpreter *I, td_value self, td_value *arguments) {
  td_property *p = (td_property *)self.o;
  return property_make(I, arguments[0], p->set, p->remove);
}

static td_value property_setter(td_interpreter *I, td_value self, td_value *arguments) {
  td_property *p = (td_property *)self.o;
  return property_make(I, p->get, arguments[0], p->remove);
}

static td_value property_deleter(td_interpreter *I, td_value self, td_value *arguments) {
  td_property *p = (td_property *)self.o;
  return property_make(I, p->get, p->set, arguments[0]);
}

static td_value property_attribute(td_interpreter *I, td_value v, td_str *name) {
  td_property *p = (td_property *)v.o;
  if (strcmp(name->data, "fget") == 0) return td_ref(p->get);
  if (strcmp(name->data, "fset") == 0) return td_ref(p->set);
  if (name == I->names->doc) return td_is_none(p->get) ? TD_NONE : td_attribute_find(I, p->get, name);
  return TD_NIL;
}

static const td_method property_methods[] = {
    {"getter", "(function)", property_getter, "The property with another function that reads it."},
    {"setter", "(function)", property_setter, "The property with a function that assigns it."},
    {"deleter", "(function)", property_deleter, "The property with a function that deletes it."},
    {0},
};

const td_type td_property_type = {
    .name = "property",
    .size = sizeof(td_property),
    .release = property_clear,
    .visit = property_visit,
    .clear = property_clear,
    .attribute = property_attribute,
    .methods = property_methods,
    .doc = "An attribute computed by a function: put @property above a method without arguments.",
};

static td_value construct_property(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return property_make(I, arguments[0], arguments[1], arguments[2]);
}

static void wrapper_clear(td_object *object) { drop(&((td_wrapper *)object)->function); }
static void wrapper_visit(td_object *object, td_visitor *visitor, void *argument) {
  visit_value(((td_wrapper *)object)->function, visitor, argument);
}

static td_value wrapper_attribute(td_interpreter *I, td_value v, td_str *name) {
  td_value function = ((td_wrapper *)v.o)->function;
  if (name == I->names->func || name == I->names->wrapped) return td_ref(function);
  return name == I->names->class_ ? TD_NIL : td_attribute_find(I, function, name);
}

static td_value wrapper_call(td_interpreter *I, td_value callee, const td_arguments *arguments) {
  return td_invoke(I, ((td_wrapper *)callee.o)->function, arguments);
}

const td_type td_static_type = {
    .name = "staticmethod",
    .size = sizeof(td_wrapper),
    .release = wrapper_clear,
    .visit = wrapper_visit,
    .clear = wrapper_clear,
    .attribute = wrapper_attribute,
    .call = wrapper_call,
    .doc = "A function in a class that takes no self.",
};

const td_type td_class_method_type = {
    .name = "classmethod",
    .size = sizeof(td_wrapper),
    .release = wrapper_clear,
    .visit = wrapper_visit,
    .clear = wrapper_clear,
    .attribute = wrapper_attribute,
    .doc = "A function in a class that takes the class as its first argument.",
};

static td_value wrap(td_interpreter *I, const td_type *type, td_value function) {
  td_wrapper *wrapper = td_object_new(I, type, sizeof *wrapper);
  if (wrapper) wrapper->function = td_ref(function);
  return td_from(wrapper);
}

static td_value construct_static(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, wrap(I, &td_static_type, arguments[0]);
}
static td_value construct_class_method(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, wrap(I, &td_class_method_type, arguments[0]);
}
static td_value construct_super(td_interpreter *I, td_value self, td_value *arguments) {
  return (void)self, td_super_new(I, arguments[0], arguments[1]);
}

static const struct {
  const td_type *type;
  td_method row;
} constructors[] = {
    {&td_property_type, {"property", "(fget=None, fset=None, fdel=None, doc=None)", construct_property, NULL}},
    {&td_static_type, {"staticmethod", "(function, /)", construct_static, NULL}},
    {&td_class_method_type, {"classmethod", "(function, /)", construct_class_method, NULL}},
    {&td_super_type, {"super", "(type=None, object=None, /)", construct_super, NULL}},
};

bool td_core_register(td_interpreter *I) {
  for (size_t i = 0; i < sizeof constructors / sizeof *constructors; i++) {
    td_class *class = td_class_of_type(I, constructors[i].type);
    td_value maker = class ? td_builtin_new(I, &constructors[i].row, TD_NIL, NULL) : TD_NIL;
    if (td_is_nil(maker)) return false;
    class->maker = (td_builtin *)maker.o;
    if (!td_builtin_define(I, constructors[i].row.name, td_ref(td_borrow(class)))) return false;
  }
  return true;
}
