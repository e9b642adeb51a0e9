// Names that every module has without defining them: builtin functions and classes, the engine's ops, and, last, what
// the library's decks define (a deck runs when one of its names is first looked up). Also the methods of builtin
// types, which are made of their rows when they are first called.
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"

// ---- methods of builtin types ----

static bool grow_types(td_interpreter *I, struct td_core *core) {
  if (core->type_count < core->type_capacity) return true;
  int32_t capacity = core->type_capacity ? core->type_capacity * 2 : 64;
  td_type_entry **grown = td_memory_resize(core->types, (size_t)capacity * sizeof *grown);
  if (!grown) return td_raise_memory(I), false;
  core->types = grown;
  core->type_capacity = capacity;
  return true;
}

td_type_entry *td_type_entry_of(td_interpreter *I, const td_type *type) {
  struct td_core *core = I->core;
  td_type_entry **recent = &core->recent_types[((uintptr_t)type >> 5) % TD_RECENT_TYPES];
  if (TD_LIKELY(*recent && (*recent)->type == type)) return *recent;
  for (int32_t i = 0; i < core->type_count; i++)
    if (core->types[i]->type == type) return *recent = core->types[i];
  int32_t count = 0;
  while (type->methods && type->methods[count].name) count++;
  if (!grow_types(I, core)) return NULL;
  td_type_entry *entry = td_memory_new_zero(sizeof *entry + (size_t)count * sizeof *entry->methods);
  if (!entry) return td_raise_memory(I), NULL;
  entry->type = type;
  entry->method_count = count;
  entry->methods = (td_builtin **)(entry + 1);
  return core->types[core->type_count++] = entry;
}

// These get the class, not an instance, as their first argument.
static bool takes_no_self(const char *name) {
  return strcmp(name, "__new__") == 0 || strcmp(name, "__init_subclass__") == 0;
}

static td_builtin *make_method(td_interpreter *I, td_type_entry *entry, int32_t index) {
  if (entry->methods[index]) return entry->methods[index];
  const td_method *row = &entry->type->methods[index];
  td_builtin *method = (td_builtin *)td_builtin_new(I, row, TD_NIL, NULL).o;
  if (method && !takes_no_self(row->name)) method->method_of = entry->type;
  return entry->methods[index] = method;
}

static td_builtin *find_method(td_interpreter *I, const td_type *type, const td_str *name, bool *failed) {
  int32_t index = 0;
  *failed = false;
  while (type->methods[index].name && strcmp(type->methods[index].name, name->data) != 0) index++;
  if (!type->methods[index].name) return NULL;
  td_type_entry *entry = td_type_entry_of(I, type);
  td_builtin *method = entry ? make_method(I, entry, index) : NULL;
  *failed = !method;
  return method;
}

td_builtin *td_type_method(td_interpreter *I, const td_type *type, td_str *name) {
  struct td_core *core = I->core;
  td_lookup *found = &core->lookups[((uintptr_t)type >> 5 ^ (uintptr_t)name >> 4) % TD_LOOKUPS];
  if (TD_LIKELY(found->owner == type && found->name == name))
    return found->value.tag ? (td_builtin *)found->value.o : NULL;
  bool failed;
  td_builtin *method = find_method(I, type, name, &failed);
  if (failed || !(name->object.flags & TD_OBJECT_INTERNED)) return method;
  td_str *old = found->name;
  name->object.refs++;
  *found = (td_lookup){.owner = type, .name = name, .value = TD_NIL};
  if (method) found->value = td_borrow(method);
  td_unref(td_from(old));
  return method;
}

// ---- the library's decks ----

static int count_decks(const td_interpreter *I) {
  int count = 0;
  while (I->library && I->library[count].name) count++;
  return count;
}

static bool lists_name(const char *names, const td_str *name) {
  for (const char *at = names; (at = strstr(at, name->data)); at += name->length) {
    bool begins = at == names || at[-1] == ' ', ends = at[name->length] == 0 || at[name->length] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

static bool make_deck_table(td_interpreter *I) {
  if (I->core->decks) return true;
  I->core->decks = td_memory_new_zero((size_t)(count_decks(I) + 1) * sizeof *I->core->decks);
  if (!I->core->decks) td_raise_memory(I);
  return I->core->decks != NULL;
}

// A deck that is being loaded is found with the names that it has defined so far.
td_module *td_deck_load(td_interpreter *I, int index) {
  if (!make_deck_table(I)) return NULL;
  td_module **deck = &I->core->decks[index], *loaded = *deck;
  if (loaded) return loaded;
  const td_library_deck *row = &I->library[index];
  char name[80];
  snprintf(name, sizeof name, "%s.deck", row->name);
  td_module *module = td_module_new(I, row->name);
  if (!module) return NULL;
  *deck = module;
  I->core->loading++;
  td_run_result result = td_run_module(I, module, row->text, strlen(row->text), name, "");
  I->core->loading--;
  if (result == TD_RUN_DONE) return module;
  *deck = NULL;
  td_unref(td_from(module));
  return NULL;
}

bool td_deck_is(const td_interpreter *I, const td_module *module) {
  for (int i = 0; I->core->decks && i < count_decks(I); i++)
    if (I->core->decks[i] == module) return true;
  return false;
}

int td_deck_find(const td_interpreter *I, const char *name) { // -1: none
  for (int i = 0; i < count_decks(I); i++)
    if (strcmp(I->library[i].name, name) == 0) return i;
  return -1;
}

static td_value find_in_library(td_interpreter *I, td_str *name) {
  if (!name->length) return TD_NIL;
  for (int i = 0; I->library && I->library[i].name; i++) {
    if (!lists_name(I->library[i].names, name)) continue;
    td_module *module = td_deck_load(I, i);
    return module ? td_ref(td_module_get(module, name)) : TD_NIL;
  }
  return TD_NIL;
}

// ---- names ----

// A name that the library defines is no op's: random_split is of datasets, the op is random.split.
td_value td_builtin_find(td_interpreter *I, td_str *name) {
  td_value found = td_module_get(I->builtins, name);
  if (!td_is_nil(found)) return td_ref(found);
  found = find_in_library(I, name);
  if (!td_is_nil(found) || !td_is_nil(I->raised) || !I->ops) return found;
  return td_ref(td_dict_get_str(I->ops, name));
}

static void add_name(td_interpreter *I, td_list *names, const char *bytes, size_t length) {
  td_value name = td_from(td_str_new(I, bytes, length));
  if (!td_is_nil(name)) td_list_append(I, names, name);
  td_unref(name);
}

static void add_deck_names(td_interpreter *I, td_list *names, const char *text) {
  while (*text) {
    size_t length = strcspn(text, " ");
    add_name(I, names, text, length);
    text += length + (text[length] == ' ');
  }
}

void td_builtin_names(td_interpreter *I, td_list *names) {
  for (int32_t i = 0; i < I->builtins->count; i++) {
    const td_global *global = I->builtins->globals[i];
    if (!td_is_nil(global->value)) td_list_append(I, names, td_borrow(global->name));
  }
  td_value key, value;
  int64_t position = 0;
  while (I->ops && td_dict_next(I->ops, &position, &key, &value)) td_list_append(I, names, key);
  for (int i = 0; I->library && I->library[i].name; i++) add_deck_names(I, names, I->library[i].names);
}

bool td_builtin_define(td_interpreter *I, const char *name, td_value value) {
  return td_module_set(I, I->builtins, name, value);
}

static bool define_rows(td_interpreter *I, td_module *module, const td_method *rows) {
  for (; rows->name; rows++) {
    td_value function = td_builtin_new(I, rows, TD_NIL, NULL);
    if (td_is_nil(function) || !td_module_set(I, module, rows->name, function)) return false;
  }
  return true;
}

bool td_builtin_define_rows(td_interpreter *I, const td_method *rows) { return define_rows(I, I->builtins, rows); }

td_module *td_module_define(td_interpreter *I, const char *name, const td_method *rows) {
  struct td_core *core = I->core;
  if (core->module_count == core->module_capacity) {
    int32_t capacity = core->module_capacity ? core->module_capacity * 2 : 8;
    td_module **grown = td_memory_resize(core->modules, (size_t)capacity * sizeof *grown);
    if (!grown) return td_raise_memory(I), NULL;
    core->modules = grown;
    core->module_capacity = capacity;
  }
  td_module *module = td_module_new(I, name);
  if (!module) return NULL;
  core->modules[core->module_count++] = module;
  return !rows || define_rows(I, module, rows) ? module : NULL;
}

td_module *td_module_builtin(td_interpreter *I, const char *name) {
  struct td_core *core = I->core;
  for (int32_t i = 0; i < core->module_count; i++)
    if (strcmp(core->modules[i]->name->data, name) == 0) return core->modules[i];
  td_module *module = td_module_define(I, name, NULL);
  if (!module) return NULL;
  return td_builtin_define(I, name, td_ref(td_borrow(module))) ? module : NULL;
}
