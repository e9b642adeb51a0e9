// import: a script NAME.deck beside the importing one, then in the current folder, then a builtin module, then a deck
// of the library. A module is in the table of imported ones before it runs, so modules that import each other find
// what the other has defined so far, as in Python.
#include <stdio.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/habit.h"

enum { SCRIPT_LIMIT = 64 << 20 };

// "a.b" in folder "lib" is "lib/a/b.deck"; each leading dot after the first goes up by a folder.
static bool path_of(td_interpreter *I, td_text *path, const char *folder, const char *name, const char *end) {
  td_text_add(path, folder);
  if (*folder && folder[strlen(folder) - 1] != '/') td_text_add_char(path, '/');
  for (bool first = true; *name == '.'; name++, first = false)
    if (!first) td_text_add(path, "../");
  for (; *name; name++) td_text_add_char(path, *name == '.' ? '/' : *name);
  td_text_add(path, end);
  if (!path->failed) return true;
  td_raise_memory(I);
  return false;
}

static td_value find_loaded(td_interpreter *I, const char *path) { // borrowed
  td_str *key = td_str_intern(I, path, strlen(path));
  td_value found = key ? td_dict_get_str(I->modules, key) : TD_NIL;
  td_unref(td_from(key));
  return found;
}

static bool note_loaded(td_interpreter *I, const char *path, td_value module) { // NIL: forget it
  td_str *key = td_str_intern(I, path, strlen(path));
  if (!key) return false;
  bool ok = td_is_nil(module) ? td_dict_remove(I, I->modules, td_borrow(key)) >= 0
                              : td_dict_set_str(I, I->modules, key, module);
  td_unref(td_from(key));
  return ok;
}

static const char *last_part(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? dot + 1 : name;
}

static td_value run_file(td_interpreter *I, const char *path, const char *name) {
  char *bytes;
  size_t size;
  if (td_file_read(I->context, path, SCRIPT_LIMIT, &bytes, &size) != TD_OK) return td_raise_engine(I);
  td_module *module = td_module_new(I, name + strspn(name, "."));
  td_value result = TD_NIL;
  if (module && td_module_put(I, module, I->names->file, td_from(td_str_from(I, path))) &&
      note_loaded(I, path, td_from(module))) {
    const char *slash = strrchr(path, '/');
    td_text folder = {0};
    if (slash) td_text_add_bytes(&folder, path, (size_t)(slash - path) + (slash == path));
    if (td_run_module(I, module, bytes, size, path, folder.data ? folder.data : "") == TD_RUN_DONE)
      result = td_ref(td_from(module));
    td_text_clear(&folder);
    if (td_is_nil(result)) {
      td_value raised = td_take_raised(I);
      note_loaded(I, path, TD_NIL);
      td_put_raised(I, raised);
    }
  }
  td_memory_free(bytes);
  td_unref(td_from(module));
  return result;
}

// NIL without exception: there is no such file.
static td_value load_from(td_interpreter *I, const char *folder, const char *name) {
  td_text path = {0};
  td_value module = TD_NIL;
  if (path_of(I, &path, folder, name, ".deck")) {
    module = td_ref(find_loaded(I, path.data));
    if (td_is_nil(module) && td_file_exists(path.data)) module = run_file(I, path.data, name);
  }
  td_text_clear(&path);
  return module;
}

static td_value load_builtin(td_interpreter *I, const char *name) {
  for (int32_t i = 0; i < I->core->module_count; i++)
    if (strcmp(I->core->modules[i]->name->data, name) == 0) return td_ref(td_borrow(I->core->modules[i]));
  int deck = td_deck_find(I, name);
  td_module *module = deck >= 0 ? td_deck_load(I, deck) : NULL;
  return module ? td_ref(td_borrow(module)) : TD_NIL;
}

static void add_hint(td_interpreter *I, const char *name) {
  char first[32];
  snprintf(first, sizeof first, "%.*s", (int)strcspn(name, "."), name);
  const char *habit = td_habit(TD_HABIT_MODULE, first), *absent = td_habit(TD_HABIT_ABSENT, first);
  if (absent) td_raise_hint(I, "%s", absent);
  else if (habit) td_raise_hint(I, "names are global here, without an import: %s", habit);
  else td_raise_hint(I, "looked for %s.deck beside the script, in the current folder and in the library", name);
}

static const char *folder_of(const td_interpreter *I, const td_node *node) {
  const td_script *script = node ? td_source_find(&I->sources, (td_place)node->script << 32) : NULL;
  return script ? script->folder : "";
}

// The package "a" of "import a.b": a script of that name, or a module that holds only b.
static td_value load_package(td_interpreter *I, const char *name, const td_node *node) {
  td_value module = load_from(I, folder_of(I, node), name);
  if (!td_is_nil(module) || !td_is_nil(I->raised)) return module;
  td_text key = {0};
  td_text_print(&key, "package %s/%s", folder_of(I, node), name);
  if (key.failed) return td_raise_memory(I);
  module = td_ref(find_loaded(I, key.data));
  if (td_is_nil(module)) module = td_from(td_module_new(I, name + strspn(name, ".")));
  if (!td_is_nil(module) && !note_loaded(I, key.data, module)) {
    td_unref(module);
    module = TD_NIL;
  }
  td_text_clear(&key);
  return module;
}

static bool is_folder(td_interpreter *I, const char *folder, const char *name) {
  td_text path = {0};
  bool found = path_of(I, &path, folder, name, "/") && td_file_exists(path.data);
  td_text_clear(&path);
  return found;
}

td_value td_module_load(td_interpreter *I, const char *name, const td_node *node) {
  const char *folder = folder_of(I, node);
  if (td_recursion(I)) return TD_NIL;
  td_value module = load_from(I, folder, name);
  if (td_is_nil(module) && td_is_nil(I->raised) && *folder && *name != '.') module = load_from(I, "", name);
  if (td_is_nil(module) && td_is_nil(I->raised)) module = load_builtin(I, name);
  if (td_is_nil(module) && td_is_nil(I->raised) && is_folder(I, folder, name)) module = load_package(I, name, node);
  if (td_is_nil(module) && td_is_nil(I->raised)) {
    td_raise(I, TD_CLASS_MODULE_NOT_FOUND_ERROR, "No module named '%s'", name);
    add_hint(I, name);
  }
  return module;
}

// ---- statements ----

// Loads a, a.b, a.b.c and puts each into the one before; gives the first.
static td_value load_chain(td_interpreter *I, const char *name, const td_node *node) {
  td_value first = TD_NIL, previous = TD_NIL;
  td_text part = {0};
  for (size_t length = 0;; length++) {
    length += strcspn(name + length, ".");
    part.length = 0;
    td_text_add_bytes(&part, name, length);
    if (part.failed) {
      td_raise_memory(I);
      break;
    }
    bool last = !name[length];
    td_value module = last ? td_module_load(I, part.data, node) : load_package(I, part.data, node);
    bool ok = !td_is_nil(module) &&
              (td_is_nil(previous) || td_module_set(I, (td_module *)previous.o, last_part(part.data), td_ref(module)));
    if (td_is_nil(first)) first = td_ref(module);
    td_unref(previous);
    previous = module;
    if (!ok || last) break;
  }
  td_unref(previous);
  td_text_clear(&part);
  if (td_is_nil(I->raised)) return first;
  td_unref(first);
  return TD_NIL;
}

int td_import_execute(td_interpreter *I, const td_node *n) {
  const char *name = td_as_str(n->value)->data;
  td_mark(I, n);
  td_value module = n->op || !strchr(name, '.') ? td_module_load(I, name, n) : load_chain(I, name, n);
  return !td_is_nil(module) && td_assign(I, n->a, module) ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}

static bool import_all(td_interpreter *I, td_module *module) {
  for (int32_t i = 0; i < module->count; i++) {
    const td_global *global = module->globals[i];
    if (td_is_nil(global->value) || global->name->data[0] == '_') continue;
    if (!td_module_put(I, I->frame->module, global->name, td_ref(global->value))) return false;
  }
  return true;
}

static void raise_no_name(td_interpreter *I, td_value module, td_str *name) {
  td_module *m = (td_module *)module.o;
  td_list *names = td_list_new(I, 16);
  if (names) td_module_type.names(I, module, names);
  td_clear_raised(I);
  td_raise(I, TD_CLASS_IMPORT_ERROR, "cannot import name '%s' from '%s'", name->data, m->name->data);
  const char *near = names ? td_suggest(name->data, names) : NULL;
  if (near) td_raise_hint(I, "did you mean '%s'?", near);
  td_unref(td_from(names));
}

static td_value import_name(td_interpreter *I, const td_node *n, td_value module, td_str *name) {
  td_value found = td_module_attribute(I, (td_module *)module.o, name);
  if (!td_is_nil(found) || !td_is_nil(I->raised)) return found;
  td_text path = {0};
  const char *parent = td_as_str(n->value)->data;
  td_text_print(&path, "%s%s%s", parent, parent[strlen(parent) - 1] == '.' ? "" : ".", name->data);
  if (!path.failed) found = load_from(I, folder_of(I, n), path.data);
  td_text_clear(&path);
  if (td_is_nil(found) && td_is_nil(I->raised)) raise_no_name(I, module, name);
  return found;
}

static bool only_dots(const char *name) { return name[strspn(name, ".")] == 0; }

int td_from_import_execute(td_interpreter *I, const td_node *n) {
  const char *name = td_as_str(n->value)->data;
  td_mark(I, n);
  td_value module = only_dots(name) ? load_package(I, name, n) : td_module_load(I, name, n);
  bool ok = !td_is_nil(module);
  if (ok && !n->count) ok = import_all(I, (td_module *)module.o);
  for (int32_t i = 0; ok && i < n->count; i++) {
    td_mark(I, n->items[i]);
    td_value value = import_name(I, n, module, n->items[i]->name);
    ok = !td_is_nil(value) && td_assign(I, n->items[i]->a, value);
  }
  td_unref(module);
  return ok ? TD_FLOW_NEXT : TD_FLOW_ERROR;
}
