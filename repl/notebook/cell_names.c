// See cell_names.h. The resolved tree is walked in the order in which it runs, so that a name which the cell has surely
// bound is no use of an older value. Bodies of functions are walked last: they run when the cell's names are bound.
#include "repl/notebook/cell_names.h"
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/core.h"

typedef struct found_name {
  td_str *name;
  unsigned does;
} found_name;

typedef struct reader {
  td_interpreter *interpreter;
  td_arena *arena;
  found_name *table; // by the name's address; owned
  uint32_t count, capacity;
  const td_prototype **later; // bodies of functions, to be walked; owned
  int later_count, later_capacity;
  int unsure; // bodies around that may not run
  bool failed; // no memory
} reader;

static void walk(reader *r, const td_node *node);

// ---- what was found ----

static found_name *slot_of(const reader *r, const td_str *name) {
  uint32_t mask = r->capacity - 1, at = (uint32_t)(((uint64_t)(uintptr_t)name >> 4) * 0x9e3779b97f4a7c15u >> 32) & mask;
  while (r->table[at].name && r->table[at].name != name) at = (at + 1) & mask;
  return &r->table[at];
}

static bool grow(reader *r) {
  reader old = *r;
  uint32_t capacity = old.capacity ? old.capacity * 2 : 64;
  r->table = td_memory_new_zero(capacity * sizeof *r->table);
  if (!r->table) {
    r->table = old.table;
    r->failed = true;
    return false;
  }
  r->capacity = capacity;
  for (uint32_t i = 0; i < old.capacity; i++)
    if (old.table[i].name) *slot_of(r, old.table[i].name) = old.table[i];
  td_memory_free(old.table);
  return true;
}

static void note(reader *r, td_str *name, unsigned does) {
  if (r->count * 2 >= r->capacity && !grow(r)) return;
  found_name *found = slot_of(r, name);
  if ((does & TD_NAME_USES) && (found->does & TD_NAME_BINDS)) does &= ~(unsigned)TD_NAME_USES;
  r->count += !found->name;
  found->name = name;
  found->does |= does;
}

static bool is_global(const td_node *name) { return name->scope == TD_SCOPE_GLOBAL || name->scope == TD_SCOPE_CLASS; }

static void use(reader *r, const td_node *name) {
  if (is_global(name)) note(r, name->name, TD_NAME_USES);
}

static void bind(reader *r, const td_node *name, unsigned also) {
  if (name->scope == TD_SCOPE_GLOBAL) note(r, name->name, also | (r->unsure ? TD_NAME_MAY_BIND : TD_NAME_BINDS));
}

static void walk_later(reader *r, const td_prototype *prototype) {
  if (r->later_count == r->later_capacity) {
    int capacity = r->later_capacity ? r->later_capacity * 2 : 16;
    const td_prototype **later = td_memory_resize(r->later, (size_t)capacity * sizeof *later);
    if (!later) {
      r->failed = true;
      return;
    }
    r->later = later;
    r->later_capacity = capacity;
  }
  r->later[r->later_count++] = prototype;
}

// ---- targets and changes ----

static const td_node *root_of(const td_node *node) { // of a.b[c].d; NULL: no name
  while (node->kind == TD_NODE_ATTRIBUTE || node->kind == TD_NODE_INDEX) node = node->a;
  return node->kind == TD_NODE_NAME && is_global(node) ? node : NULL;
}

static void target(reader *r, const td_node *node) {
  switch (node->kind) {
  case TD_NODE_NAME: bind(r, node, 0); break;
  case TD_NODE_STARRED: target(r, node->a); break;
  case TD_NODE_TUPLE:
  case TD_NODE_LIST:
    for (int32_t i = 0; i < node->count; i++) target(r, node->items[i]);
    break;
  default: {
    const td_node *root = root_of(node);
    walk(r, node);
    if (root) note(r, root->name, TD_NAME_CHANGES);
  }
  }
}

// Tensors and texts are values, so their methods change nothing; lists, dicts and sets have some of the same names.
static bool changes_nothing(td_interpreter *I, td_str *method) {
  static const td_type *const containers[] = {&td_list_type, &td_dict_type, &td_set_type};
  for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
    if (td_type_method(I, containers[i], method)) return false;
  return !td_is_nil(td_dict_get_str(I->ops, method)) || td_type_method(I, &td_str_type, method);
}

static void walk_call(reader *r, const td_node *node) {
  if (node->a->kind != TD_NODE_ATTRIBUTE) return;
  const td_node *root = root_of(node->a->a);
  if (root && !changes_nothing(r->interpreter, node->a->name)) note(r, root->name, TD_NAME_CALLS);
}

// ---- statements ----

static void walk_optional(reader *r, const td_node *node) {
  if (node) walk(r, node);
}

static void walk_items(reader *r, const td_node *node) {
  for (int32_t i = 0; i < node->count; i++) walk_optional(r, node->items[i]);
}

static void walk_unsure(reader *r, const td_node *node) {
  r->unsure++;
  walk_optional(r, node);
  r->unsure--;
}

static void walk_fallbacks(reader *r, const td_prototype *prototype) {
  for (int32_t i = 0; i < prototype->positional + prototype->keyword_only; i++)
    walk_optional(r, prototype->parameters[i].fallback);
}

static void walk_clauses(reader *r, const td_node *node) {
  walk_optional(r, node->c);
  for (int32_t i = 0; i < node->count; i++) {
    walk_optional(r, node->items[i]->b);
    target(r, node->items[i]->a);
    walk_items(r, node->items[i]);
  }
  walk(r, node->a);
  if (node->kind == TD_NODE_DICT_COMPREHENSION) walk(r, node->b);
}

static void walk_with(reader *r, const td_node *node) {
  for (int32_t i = 0; i < node->count; i += 2) {
    walk(r, node->items[i]);
    if (node->items[i + 1]) target(r, node->items[i + 1]);
  }
  walk(r, node->c);
}

static void walk_imports(reader *r, const td_node *node) {
  for (int32_t i = 0; i < node->count; i++) bind(r, node->items[i]->a, TD_NAME_IMPORTS);
}

static void walk_delete(reader *r, const td_node *node) {
  for (int32_t i = 0; i < node->count; i++) {
    if (node->items[i]->kind == TD_NODE_NAME) use(r, node->items[i]);
    target(r, node->items[i]);
  }
}

// Words of a % command count as uses, but for its own.
static void walk_command(reader *r, const td_node *node) {
  if (node->op != '%') return;
  const char *text = td_as_str(node->value)->data;
  for (text += strcspn(text, " "); *text;) {
    size_t length = 0;
    while (text[length] == '_' || (text[length] & 0x80) || (text[length] >= 'a' && text[length] <= 'z') ||
           (text[length] >= 'A' && text[length] <= 'Z') || (length && text[length] >= '0' && text[length] <= '9'))
      length++;
    td_str *word = length ? td_str_intern(r->interpreter, text, length) : NULL;
    if (word && td_arena_hold(r->arena, td_from(word))) note(r, word, TD_NAME_USES);
    text += length ? length : 1;
  }
}

static void walk_loop(reader *r, const td_node *node) { // for and while, b or c their body
  if (node->kind == TD_NODE_FOR) {
    walk(r, node->b);
    target(r, node->a);
    walk_unsure(r, node->c);
    walk_unsure(r, node->d);
  } else {
    walk(r, node->a);
    walk_unsure(r, node->b);
    walk_unsure(r, node->c);
  }
}

static void walk_definition(reader *r, const td_node *node) {
  walk_items(r, node);
  if (node->kind == TD_NODE_FUNCTION) {
    walk_fallbacks(r, node->prototype);
    walk_later(r, node->prototype);
  } else {
    walk_optional(r, node->b);
    walk(r, node->prototype->body);
  }
  bind(r, node->a, 0);
}

static bool walk_statement(reader *r, const td_node *node) { // false: none with a rule of its own
  switch (node->kind) {
  case TD_NODE_ASSIGN:
    walk(r, node->b);
    for (int32_t i = 0; i < node->count; i++) target(r, node->items[i]);
    return true;
  case TD_NODE_AUGMENT:
    if (node->a->kind == TD_NODE_NAME) use(r, node->a);
    walk(r, node->b);
    target(r, node->a);
    return true;
  case TD_NODE_ANNOTATED:
    walk_optional(r, node->b);
    if (node->b) target(r, node->a);
    return true;
  case TD_NODE_WHILE:
  case TD_NODE_FOR: walk_loop(r, node); return true;
  case TD_NODE_FUNCTION:
  case TD_NODE_CLASS: walk_definition(r, node); return true;
  case TD_NODE_WITH: walk_with(r, node); return true;
  case TD_NODE_TRY:
    walk_unsure(r, node->a);
    r->unsure++;
    walk_items(r, node);
    r->unsure--;
    walk_unsure(r, node->c);
    walk_optional(r, node->d);
    return true;
  case TD_NODE_EXCEPT:
    walk_optional(r, node->a);
    if (node->b) target(r, node->b);
    walk(r, node->c);
    return true;
  case TD_NODE_DELETE: walk_delete(r, node); return true;
  case TD_NODE_GLOBAL: return true;
  case TD_NODE_IMPORT: bind(r, node->a, TD_NAME_IMPORTS); return true;
  case TD_NODE_FROM_IMPORT: walk_imports(r, node); return true;
  case TD_NODE_COMMAND: walk_command(r, node); return true;
  default: return false;
  }
}

static bool walk_expression(reader *r, const td_node *node) { // false: none with a rule of its own
  switch (node->kind) {
  case TD_NODE_CONSTANT: return true;
  case TD_NODE_NAME: use(r, node); return true;
  case TD_NODE_LAMBDA:
    walk_fallbacks(r, node->prototype);
    walk_later(r, node->prototype);
    return true;
  case TD_NODE_GENERATOR:
  case TD_NODE_LIST_COMPREHENSION:
  case TD_NODE_SET_COMPREHENSION:
  case TD_NODE_DICT_COMPREHENSION: walk_clauses(r, node); return true;
  default: return false;
  }
}

// The long chains of a tree, left operands and elifs, are loops, not recursion.
static void walk(reader *r, const td_node *node) {
  int unsure = 0;
  while (node && !walk_expression(r, node) && !walk_statement(r, node)) {
    const td_node *spine = node->kind == TD_NODE_IF ? node->c : node->a;
    if (node->kind == TD_NODE_IF) {
      walk(r, node->a);
      r->unsure++;
      unsure++;
      walk(r, node->b);
    } else {
      walk_optional(r, node->b);
      walk_optional(r, node->c);
      walk_optional(r, node->d);
      walk_items(r, node);
      if (node->kind == TD_NODE_CALL) walk_call(r, node);
    }
    node = spine;
  }
  r->unsure -= unsure;
}

// ---- a text ----

static void read_tree(reader *r, const td_node *tree) {
  walk(r, tree);
  r->unsure++;
  for (int i = 0; i < r->later_count && !r->failed; i++) walk(r, r->later[i]->body);
}

static void read_text(reader *r, const char *text, size_t length) {
  td_interpreter *I = r->interpreter;
  td_script *script = td_source_add(&I->sources, "<names>", "", text, length);
  td_module *module = script ? td_module_new(I, "<names>") : NULL;
  r->failed = !module;
  td_diagnostic diagnostic;
  td_node *tree;
  if (script) td_arena_keep(r->arena, script);
  if (module && td_parse(script, r->arena, I, &tree, &diagnostic) == TD_PARSED &&
      td_resolve(I, script, r->arena, module, tree, &diagnostic))
    read_tree(r, tree);
  if (module) td_unref(td_from(module));
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const td_cell_name *)a)->name, ((const td_cell_name *)b)->name);
}

static td_cell_names *pack(const reader *r) { // names behind their rows, in one block
  size_t rows = sizeof(td_cell_names) + r->count * sizeof(td_cell_name), bytes = rows;
  for (uint32_t i = 0; i < r->capacity; i++)
    if (r->table[i].name) bytes += r->table[i].name->length + 1;
  td_cell_names *names = td_memory_new(bytes);
  if (!names) return NULL;
  names->count = 0;
  char *at = (char *)names + rows;
  for (uint32_t i = 0; i < r->capacity; i++) {
    const td_str *name = r->table[i].name;
    if (!name) continue;
    names->items[names->count++] = (td_cell_name){memcpy(at, name->data, name->length + 1), r->table[i].does};
    at += name->length + 1;
  }
  qsort(names->items, (size_t)names->count, sizeof *names->items, by_name);
  return names;
}

td_cell_names *td_cell_names_read(td_interpreter *I, const char *text, size_t length) {
  reader r = {.interpreter = I, .arena = td_arena_new()};
  if (r.arena) read_text(&r, text, length);
  td_cell_names *names = r.arena && !r.failed ? pack(&r) : NULL;
  td_clear_raised(I);
  td_memory_free(r.table);
  td_memory_free(r.later);
  if (r.arena) td_arena_unref(r.arena);
  return names;
}

void td_cell_names_free(td_cell_names *names) { td_memory_free(names); }

unsigned td_cell_names_find(const td_cell_names *names, const char *name) {
  td_cell_name key = {.name = name};
  const td_cell_name *found =
      names ? bsearch(&key, names->items, (size_t)names->count, sizeof *names->items, by_name) : NULL;
  return found ? found->does : 0;
}
