// The interpreter's life: what it is made of, in an order in which each part has what it needs, and how all of it
// goes. An interpreter whose making failed is taken apart by the same function as a whole one.
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "repl/language/core.h"
#include "repl/language/curve.h"
#include "repl/language/tensors.h"

// ---- names ----

static td_str **name_places(struct td_names *names, int *count) {
  *count = (int)(sizeof *names / sizeof(td_str *));
  return (td_str **)names;
}

static bool intern_to(td_interpreter *I, td_str **place, const char *prefix, const char *text) {
  char name[48];
  snprintf(name, sizeof name, "%s%s%s", prefix, text, *prefix ? "__" : "");
  return (*place = td_str_intern(I, name, strlen(name))) != NULL;
}

bool td_names_make(td_interpreter *I) {
  struct td_names *names = I->names = td_memory_new_zero(sizeof *names);
  static const char *const methods[] = {
#define X(NAME, spelling, method) method,
      TD_OPERATORS(X)
#undef X
  };
  bool ok = names != NULL;
#define X(member, text) ok = ok && intern_to(I, &names->member, "", text);
  TD_NAMES(X)
#undef X
  for (int i = 0; ok && i < TD_BINARY_COUNT; i++)
    ok = intern_to(I, &names->binary[i], "__", methods[i]) && intern_to(I, &names->reflected[i], "__r", methods[i]) &&
         intern_to(I, &names->in_place[i], "__i", methods[i]);
  return ok;
}

void td_names_drop(td_interpreter *I) {
  int count;
  td_str **places = name_places(I->names, &count);
  for (int i = 0; i < count; i++) td_unref(td_from(places[i]));
  td_memory_free(I->names);
  I->names = NULL;
}

// ---- making ----

static bool make_core(td_interpreter *I) {
  I->core = td_memory_new_zero(sizeof *I->core);
  I->stack = td_memory_new(TD_STACK_VALUES * sizeof *I->stack);
  if (!I->core || !I->stack) return false;
  I->stack_top = I->stack;
  I->stack_end = I->stack + TD_STACK_VALUES;
  I->depth_limit = TD_DEPTH_LIMIT;
  I->collect_at = 20000;
  I->containers.next = I->containers.previous = &I->containers;
  I->core->root.slots = I->stack;
  I->core->output_stream = 1;
  I->frame = &I->core->root;
  I->slots = I->stack;
  return true;
}

static bool make_memory_error(td_interpreter *I) {
  char room[96];
  memset(room, ' ', sizeof room);
  td_str *message = td_str_new(I, room, sizeof room);
  td_tuple *arguments = message ? td_tuple_new(I, 1) : NULL;
  if (!arguments) return td_unref(td_from(message)), false;
  arguments->items[0] = td_from(message);
  I->core->memory_error = td_exception_new(I, I->classes[TD_CLASS_MEMORY_ERROR], td_from(arguments));
  td_unref(td_from(arguments));
  return !td_is_nil(I->core->memory_error);
}

static bool define_classes(td_interpreter *I) {
  for (int i = 0; i < TD_CLASS_COUNT; i++)
    if (!td_builtin_define(I, I->classes[i]->name->data, td_ref(td_borrow(I->classes[i])))) return false;
  return td_builtin_define(I, "NotImplemented", td_ref(td_not_implemented)) &&
         td_builtin_define(I, "Ellipsis", td_ref(td_ellipsis));
}

static void describe(void *owner, td_place place, char *buffer,
                     int size) { // "line 3" at the prompt, "train.deck:14" in a script
  const td_interpreter *I = owner;
  const td_script *script = td_source_find(&I->sources, place);
  int line = 0, column = 0;
  if (script) td_source_position(script, (uint32_t)place, &line, &column);
  if (script) snprintf(buffer, (size_t)size, "%s:%d", script->name, line);
  else snprintf(buffer, (size_t)size, "an unknown line");
}

static void warn(void *owner, const char *message) { td_warn(owner, message); }

static bool make_context(td_interpreter *I, int threads) {
  I->context = td_context_new(threads);
  if (!I->context) return false;
  I->context->owner = I;
  I->context->describe = describe;
  I->context->warn = warn;
  return true;
}

static bool make_modules(td_interpreter *I) {
  I->builtins = td_module_new(I, "builtins");
  I->main = I->builtins ? td_module_new(I, "__main__") : NULL;
  I->core->root.module = I->main;
  return I->main != NULL;
}

static bool make_all(td_interpreter *I, int threads) {
  return make_core(I) && make_context(I, threads) && td_names_make(I) && td_classes_make(I) &&
         (I->modules = td_dict_new(I)) && (I->results = td_dict_new(I)) && (I->core->no_keywords = td_dict_new(I)) &&
         make_memory_error(I) && make_modules(I) && define_classes(I) && td_core_register(I) &&
         td_builtins_register(I) && td_tensors_register(I);
}

td_interpreter *td_interpreter_new(int threads) {
  td_interpreter *I = td_memory_new_zero(sizeof *I);
  if (!I) return NULL;
  td_stack_limit_find(I);
  if (make_all(I, threads)) return I;
  td_interpreter_free(I);
  return NULL;
}

// ---- taking apart ----

static void drop_type_entry(td_type_entry *entry) {
  for (int32_t i = 0; i < entry->method_count; i++) td_unref(td_from(entry->methods[i]));
  td_unref(td_from(entry->class));
  td_memory_free(entry);
}

static void drop_lookups(struct td_core *core) {
  for (int i = 0; i < TD_LOOKUPS; i++) {
    td_unref(td_from(core->lookups[i].name));
    core->lookups[i] = (td_lookup){0};
  }
}

static void drop_tables(td_interpreter *I, struct td_core *core) {
  drop_lookups(core);
  for (int32_t i = 0; i < core->type_count; i++) drop_type_entry(core->types[i]);
  for (int32_t i = 0; i < core->signature_count; i++) td_signature_free(core->signatures[i]);
  for (int32_t i = 0; i < core->module_count; i++) td_unref(td_from(core->modules[i]));
  for (int i = 0; core->decks && I->library[i].name; i++) td_unref(td_from(core->decks[i]));
  td_memory_free(core->types);
  td_memory_free(core->signatures);
  td_memory_free(core->rows);
  td_memory_free(core->modules);
  td_memory_free(core->decks);
  for (int i = 0; i < TD_DTYPE_COUNT; i++) td_unref(core->dtypes[i]);
  td_unref(core->memory_error);
  td_unref(td_from(core->no_keywords));
  td_unref(td_from(core->loggers));
  td_text_clear(&core->output);
}

static void drop_objects(td_interpreter *I) {
  td_workers_end(I);
  td_clear_raised(I);
  td_unref(I->handling);
  td_unref(I->last);
  td_unref(I->core->last_tape);
  td_tensor_unref(I->core->watched_gradient);
  I->core->watched_gradient = NULL;
  I->handling = I->last = I->core->last_tape = TD_NIL;
  td_plots_free(I);
  td_containers_clear(I);
  drop_tables(I, I->core);
  for (int i = 0; I->classes && i < TD_CLASS_COUNT; i++) td_unref(td_from(I->classes[i]));
  td_memory_free(I->classes);
  td_unref(td_from(I->main));
  td_unref(td_from(I->builtins));
  td_unref(td_from(I->modules));
  td_unref(td_from(I->results));
  td_unref(td_from(I->ops));
  td_containers_clear(I);
  if (I->names) td_names_drop(I);
}

void td_interpreter_free(td_interpreter *I) {
  if (!I) return;
  if (I->core && I->stack) drop_objects(I);
  td_sources_clear(&I->sources);
  td_unref(td_from(I->interned));
  if (I->context) td_tapes_free(I->context);
  td_context_free(I->context);
  td_memory_free(I->core);
  td_memory_free(I->stack);
  td_memory_free(I);
}
