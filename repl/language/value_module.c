// Modules: a script's global names. A name's place never moves, so nodes point at it; a name that was only read has a
// place without a value.
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"

td_module *td_module_new(td_interpreter *I, const char *name) {
  td_module *module = td_object_new(I, &td_module_type, sizeof *module);
  if (!module) return NULL;
  module->name = td_str_intern(I, name, strlen(name));
  module->index = module->name ? td_dict_new(I) : NULL;
  bool ok = module->index && td_module_put(I, module, I->names->name, td_ref(td_borrow(module->name)));
  if (ok) return module;
  td_unref(td_from(module));
  return NULL;
}

static bool grow(td_interpreter *I, td_module *module) {
  if (module->count < module->capacity) return true;
  int32_t capacity = module->capacity ? module->capacity * 2 : 16;
  td_global **grown = td_memory_resize(module->globals, (size_t)capacity * sizeof *grown);
  if (!grown) return td_raise_memory(I), false;
  module->globals = grown;
  module->capacity = capacity;
  return true;
}

static td_global *find_global(td_module *module, td_str *name) {
  if (!module->index) return NULL;
  td_value position = td_dict_get_str(module->index, name);
  return td_is_nil(position) ? NULL : module->globals[position.i];
}

td_global *td_module_global(td_interpreter *I, td_module *module, td_str *name) {
  td_global *global = find_global(module, name);
  if (global) return global;
  if (!grow(I, module)) return NULL;
  global = td_memory_new(sizeof *global);
  if (!global) return td_raise_memory(I), NULL;
  if (!td_dict_set_str(I, module->index, name, td_int(module->count))) {
    td_memory_free(global);
    return NULL;
  }
  *global = (td_global){.name = (td_str *)td_ref(td_borrow(name)).o, .value = TD_NIL, .builtin = TD_NIL};
  return module->globals[module->count++] = global;
}

td_value td_module_get(td_module *module, td_str *name) {
  const td_global *global = find_global(module, name);
  return global ? global->value : TD_NIL;
}

bool td_module_put(td_interpreter *I, td_module *module, td_str *name, td_value value) {
  td_global *global = td_module_global(I, module, name);
  if (!global) return td_unref(value), false;
  td_value old = global->value;
  global->value = value;
  td_unref(old);
  return true;
}

bool td_module_set(td_interpreter *I, td_module *module, const char *name, td_value value) {
  td_str *interned = td_str_intern(I, name, strlen(name));
  if (!interned) return td_unref(value), false;
  bool ok = td_module_put(I, module, interned, value);
  td_unref(td_from(interned));
  return ok;
}

static td_value module_dict(td_interpreter *I, const td_module *module) { // a copy
  td_dict *dict = td_dict_new(I);
  bool ok = dict != NULL;
  for (int32_t i = 0; ok && i < module->count; i++) {
    const td_global *global = module->globals[i];
    if (!td_is_nil(global->value)) ok = td_dict_set_str(I, dict, global->name, global->value);
  }
  if (ok) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static bool is_builtin(td_interpreter *I, td_module *module) {
  return module != I->main && td_is_nil(td_module_get(module, I->names->file));
}

// A builtin module's name that the library defines: its function random_shuffle is random.shuffle.
static td_value library_attribute(td_interpreter *I, const td_module *module, const td_str *name) {
  char text[120];
  int length = snprintf(text, sizeof text, "%s_%s", module->name->data, name->data);
  if (length >= (int)sizeof text) return TD_NIL;
  td_str *full = td_str_intern(I, text, (size_t)length);
  td_value found = full ? td_builtin_find(I, full) : TD_NIL;
  td_unref(td_from(full));
  return found;
}

td_value td_module_attribute(td_interpreter *I, td_module *module, td_str *name) {
  td_value found = td_module_get(module, name);
  if (!td_is_nil(found)) return td_ref(found);
  if (name == I->names->dict) return module_dict(I, module);
  return is_builtin(I, module) ? library_attribute(I, module, name) : TD_NIL;
}

static td_value module_attribute(td_interpreter *I, td_value v, td_str *name) {
  return td_module_attribute(I, (td_module *)v.o, name);
}

static bool module_set_attribute(td_interpreter *I, td_value v, td_str *name, td_value value) {
  td_module *module = (td_module *)v.o;
  if (td_is_nil(value) && td_is_nil(td_module_get(module, name))) {
    td_raise(I, TD_CLASS_ATTRIBUTE_ERROR, "module '%s' has no attribute '%s'", module->name->data, name->data);
    return false;
  }
  return td_module_put(I, module, name, td_ref(value));
}

static void library_names(td_interpreter *I, const td_module *module, td_list *names) {
  td_list *all = td_list_new(I, 0);
  if (!all) return;
  td_builtin_names(I, all);
  for (int64_t i = 0; i < all->count; i++) {
    const td_str *name = td_as_str(all->items[i]);
    size_t length = module->name->length;
    if (name->length <= length + 1 || strncmp(name->data, module->name->data, length) != 0 || name->data[length] != '_')
      continue;
    td_str *own = td_str_intern(I, name->data + length + 1, name->length - length - 1);
    if (own && td_is_nil(td_module_get((td_module *)module, own))) td_list_append(I, names, td_borrow(own));
    td_unref(td_from(own));
  }
  td_unref(td_from(all));
}

static void module_names(td_interpreter *I, td_value v, td_list *names) {
  td_module *module = (td_module *)v.o;
  if (is_builtin(I, module)) library_names(I, module, names);
  for (int32_t i = 0; i < module->count; i++)
    if (!td_is_nil(module->globals[i]->value)) td_list_append(I, names, td_borrow(module->globals[i]->name));
}

static bool module_repr(td_interpreter *I, td_value v, td_text *text) {
  td_module *module = (td_module *)v.o;
  td_value file = td_module_get(module, I->names->file);
  td_text_print(text, "<module '%s'", module->name->data);
  if (td_is(file, &td_str_type)) td_text_print(text, " from '%s'>", td_as_str(file)->data);
  else td_text_add(text, " (built-in)>");
  return true;
}

static void module_clear(td_object *object) { // places stay: code that points at them may still run
  td_module *module = (td_module *)object;
  for (int32_t i = 0; i < module->count; i++) {
    td_global *global = module->globals[i];
    td_value value = global->value, builtin = global->builtin;
    global->value = global->builtin = TD_NIL;
    td_unref(value);
    td_unref(builtin);
  }
}

static void module_release(td_object *object) {
  td_module *module = (td_module *)object;
  module_clear(object);
  for (int32_t i = 0; i < module->count; i++) {
    td_unref(td_from(module->globals[i]->name));
    td_memory_free(module->globals[i]);
  }
  td_memory_free(module->globals);
  td_unref(td_from(module->index));
  td_unref(td_from(module->name));
}

static void module_visit(td_object *object, td_visitor *visitor, void *argument) {
  td_module *module = (td_module *)object;
  if (module->index) visitor(&module->index->container.object, argument);
  for (int32_t i = 0; i < module->count; i++) {
    const td_global *global = module->globals[i];
    if (global->value.tag == TD_TAG_OBJECT) visitor(global->value.o, argument);
    if (global->builtin.tag == TD_TAG_OBJECT) visitor(global->builtin.o, argument);
  }
}

const td_type td_module_type = {
    .name = "module",
    .size = sizeof(td_module),
    .release = module_release,
    .visit = module_visit,
    .clear = module_clear,
    .repr = module_repr,
    .attribute = module_attribute,
    .set_attribute = module_set_attribute,
    .names = module_names,
    .doc = "The names of a script that was imported.",
};
