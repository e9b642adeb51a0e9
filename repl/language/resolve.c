// Names to places. First the whole tree is walked: scopes open and close, each NAME gets the symbol of its scope, and
// what Python refuses before running is refused. Then the scopes are settled (resolve_scope.c), then the nodes are
// finished from the leaves up (resolve_finish.c). The long chains of a tree, left operands and elifs, are loops, not
// recursion.
#include "repl/language/resolve.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/base/memory.h"

static bool walk(td_resolver *r, td_node *node);

bool td_resolver_fail(td_resolver *r, const td_node *node, const char *hint, const char *format, ...) {
  if (r->failed) return false;
  r->failed = true;
  td_diagnostic *diagnostic = r->diagnostic;
  diagnostic->span = node ? (td_span){node->begin, node->end} : (td_span){0, 0};
  va_list list;
  va_start(list, format);
  vsnprintf(diagnostic->message, sizeof diagnostic->message, format, list);
  va_end(list);
  snprintf(diagnostic->hint, sizeof diagnostic->hint, "%s", hint ? hint : "");
  return false;
}

// ---- names ----

static td_symbol *attach(td_resolver *r, td_node *name) { // the NAME's symbol in the current scope
  return name->symbol = td_symbol_get(r, r->scope, name->name);
}

static bool use(td_resolver *r, td_node *name) {
  td_symbol *symbol = attach(r, name);
  if (!symbol) return false;
  return symbol->used = true;
}

static bool bind(td_resolver *r, td_node *name) {
  td_symbol *symbol = attach(r, name);
  if (!symbol) return false;
  return symbol->bound = true;
}

static bool walk_items(td_resolver *r, const td_node *node) {
  for (int32_t i = 0; i < node->count; i++) {
    if (node->items[i] && !walk(r, node->items[i])) return false;
  }
  return true;
}

static bool walk_optional(td_resolver *r, td_node *node) { return !node || walk(r, node); }

static bool bind_target(td_resolver *r,
                        td_node *target) { // a NAME, or names inside tuples and lists; others are walked
  switch (target->kind) {
  case TD_NODE_NAME: return bind(r, target);
  case TD_NODE_STARRED: return bind_target(r, target->a);
  case TD_NODE_TUPLE:
  case TD_NODE_LIST:
    for (int32_t i = 0; i < target->count; i++) {
      if (!bind_target(r, target->items[i])) return false;
    }
    return true;
  default: return walk(r, target);
  }
}

static bool declare(td_resolver *r, const td_node *statement) { // global, nonlocal
  bool nonlocal = statement->op == 'n';
  const char *word = nonlocal ? "nonlocal" : "global";
  for (int32_t i = 0; i < statement->count; i++) {
    td_node *name = statement->items[i];
    if (nonlocal && r->scope->kind == TD_IN_MODULE) {
      return td_resolver_fail(r, name, NULL, "'nonlocal' outside a function: names of the top level are global");
    }
    td_symbol *symbol = attach(r, name);
    if (!symbol) return false;
    const char *text = name->name->data;
    if (symbol->parameter) return td_resolver_fail(r, name, NULL, "'%s' is a parameter and can't be %s", text, word);
    if (nonlocal ? symbol->global_declared : symbol->nonlocal) {
      return td_resolver_fail(r, name, NULL, "'%s' is declared both global and nonlocal", text);
    }
    bool early = r->scope->kind != TD_IN_MODULE && !symbol->declared && (symbol->bound || symbol->used);
    if (early)
      return td_resolver_fail(r, name, "put the declaration first", "'%s' is used before its '%s' declaration", text,
                              word);
    symbol->declared = name;
    if (nonlocal) symbol->nonlocal = true;
    else symbol->global_declared = true;
  }
  return true;
}

// ---- frames ----

static bool walk_fallbacks(td_resolver *r, const td_prototype *prototype) { // in the scope around the definition
  int32_t count = prototype->positional + prototype->keyword_only;
  for (int32_t i = 0; i < count; i++) {
    if (!walk_optional(r, prototype->parameters[i].fallback)) return false;
  }
  return true;
}

static bool bind_parameters(td_resolver *r,
                            const td_prototype *prototype) { // first in the scope: their slots are the first
  int32_t count = prototype->positional + prototype->keyword_only + prototype->star + prototype->double_star;
  for (int32_t i = 0; i < count; i++) {
    td_symbol *symbol = td_symbol_get(r, r->scope, prototype->parameters[i].name);
    if (!symbol) return false;
    symbol->bound = symbol->parameter = true;
  }
  return true;
}

static bool walk_frame(td_resolver *r, enum td_name_scope_kind kind, td_prototype *prototype) {
  int32_t loops = r->loops;
  r->loops = 0;
  if (!td_resolve_open(r, kind, prototype, NULL) || !bind_parameters(r, prototype) || !walk(r, prototype->body))
    return false;
  td_resolve_close(r);
  r->loops = loops;
  return true;
}

static bool walk_lambda(td_resolver *r, const td_node *node) {
  return walk_fallbacks(r, node->prototype) && walk_frame(r, TD_IN_FUNCTION, node->prototype);
}

static bool walk_function(td_resolver *r, const td_node *node) {
  return walk_items(r, node) && walk_fallbacks(r, node->prototype) && bind(r, node->a) &&
         walk_frame(r, TD_IN_FUNCTION, node->prototype);
}

static bool walk_class(td_resolver *r, const td_node *node) {
  return walk_items(r, node) && walk_optional(r, node->b) && bind(r, node->a) &&
         walk_frame(r, TD_IN_CLASS, node->prototype);
}

static bool walk_clauses(td_resolver *r, const td_node *node) { // the first iterable was walked outside
  for (int32_t i = 0; i < node->count; i++) {
    td_node *clause = node->items[i];
    clause->symbol = td_symbol_hidden(r, r->scope);
    if (!clause->symbol || (i && !walk_optional(r, clause->b)) || !bind_target(r, clause->a) || !walk_items(r, clause))
      return false;
  }
  return walk(r, node->a) && (node->kind != TD_NODE_DICT_COMPREHENSION || walk(r, node->b));
}

static bool walk_comprehension(td_resolver *r, td_node *node) {
  bool generator = node->kind == TD_NODE_GENERATOR;
  if (!walk(r, generator ? node->c : node->items[0]->b)) return false;
  if (!td_resolve_open(r, generator ? TD_IN_FUNCTION : TD_IN_COMPREHENSION, generator ? node->prototype : NULL, node))
    return false;
  if (!walk_clauses(r, node)) return false;
  td_resolve_close(r);
  return true;
}

// ---- statements ----

static bool walk_loop(td_resolver *r, td_node *body) {
  r->loops++;
  bool done = walk(r, body);
  r->loops--;
  return done;
}

static bool walk_for(td_resolver *r, const td_node *node) {
  return walk(r, node->b) && bind_target(r, node->a) && walk_loop(r, node->c) && walk_optional(r, node->d);
}

static bool walk_assign(td_resolver *r, const td_node *node) {
  if (!walk(r, node->b)) return false;
  for (int32_t i = 0; i < node->count; i++) {
    if (!bind_target(r, node->items[i])) return false;
  }
  return true;
}

static bool walk_with(td_resolver *r, const td_node *node) {
  for (int32_t i = 0; i < node->count; i += 2) {
    if (!walk(r, node->items[i]) || (node->items[i + 1] && !bind_target(r, node->items[i + 1]))) return false;
  }
  return walk(r, node->c);
}

static bool walk_imports(td_resolver *r, const td_node *node) {
  if (!node->count && r->scope->kind != TD_IN_MODULE) {
    return td_resolver_fail(r, node, "name what you import", "'import *' stands only at the top level");
  }
  for (int32_t i = 0; i < node->count; i++) {
    if (!bind(r, node->items[i]->a)) return false;
  }
  return true;
}

static bool walk_delete(td_resolver *r, const td_node *node) {
  for (int32_t i = 0; i < node->count; i++) {
    if (!bind_target(r, node->items[i])) return false;
  }
  return true;
}

static bool check_return(td_resolver *r, const td_node *node) {
  if (r->scope->frame->kind != TD_IN_FUNCTION) return td_resolver_fail(r, node, NULL, "'return' outside a function");
  return walk_optional(r, node->a);
}

static bool walk_children(td_resolver *r, const td_node *node, const td_node *spine) { // all but spine
  td_node *parts[] = {node->a, node->b, node->c, node->d};
  for (int i = 0; i < 4; i++) {
    if (parts[i] && parts[i] != spine && !walk(r, parts[i])) return false;
  }
  return walk_items(r, node);
}

static bool walk_special(td_resolver *r, td_node *node, bool *special) { // nodes with a rule of their own
  *special = true;
  switch (node->kind) {
  case TD_NODE_CONSTANT: return true;
  case TD_NODE_NAME: return use(r, node);
  case TD_NODE_LAMBDA: return walk_lambda(r, node);
  case TD_NODE_GENERATOR:
  case TD_NODE_LIST_COMPREHENSION:
  case TD_NODE_SET_COMPREHENSION:
  case TD_NODE_DICT_COMPREHENSION: return walk_comprehension(r, node);
  case TD_NODE_FUNCTION: return walk_function(r, node);
  case TD_NODE_CLASS: return walk_class(r, node);
  case TD_NODE_ASSIGN: return walk_assign(r, node);
  case TD_NODE_AUGMENT: return walk(r, node->b) && bind_target(r, node->a);
  case TD_NODE_ANNOTATED: return walk_optional(r, node->b) && bind_target(r, node->a);
  case TD_NODE_WHILE: return walk(r, node->a) && walk_loop(r, node->b) && walk_optional(r, node->c);
  case TD_NODE_FOR: return walk_for(r, node);
  case TD_NODE_WITH: return walk_with(r, node);
  case TD_NODE_EXCEPT: return walk_optional(r, node->a) && (!node->b || bind(r, node->b)) && walk(r, node->c);
  case TD_NODE_DELETE: return walk_delete(r, node);
  case TD_NODE_GLOBAL: return declare(r, node);
  case TD_NODE_IMPORT: return bind(r, node->a);
  case TD_NODE_FROM_IMPORT: return walk_imports(r, node);
  case TD_NODE_RETURN: return check_return(r, node);
  case TD_NODE_BREAK:
  case TD_NODE_CONTINUE:
    if (r->loops) return true;
    return td_resolver_fail(r, node, NULL, "'%s' outside a loop", node->kind == TD_NODE_BREAK ? "break" : "continue");
  default: return *special = false;
  }
}

static bool walk(td_resolver *r, td_node *node) {
  while (node) {
    bool special, done = walk_special(r, node, &special);
    if (special) return done;
    td_node *spine = node->kind == TD_NODE_IF ? node->c : node->a;
    if (!walk_children(r, node, spine)) return false;
    node = spine;
  }
  return true;
}

static td_prototype *module_prototype(td_resolver *r, td_node *tree) {
  td_str *name = td_str_intern(r->interpreter, "<module>", 8);
  td_prototype *prototype =
      name && td_arena_hold(r->arena, td_from(name)) ? td_arena_take(r->arena, sizeof *prototype) : NULL;
  if (!prototype) return td_resolver_fail(r, NULL, NULL, "out of memory"), NULL;
  prototype->name = name;
  prototype->script = r->script;
  prototype->arena = r->arena;
  prototype->span = (td_span){0, r->script->length};
  prototype->body = tree;
  return prototype;
}

td_prototype *td_resolve(td_interpreter *interpreter, td_script *script, td_arena *arena, td_module *module,
                         td_node *tree, td_diagnostic *diagnostic) {
  *diagnostic = (td_diagnostic){0};
  td_resolver r = {
      .interpreter = interpreter, .script = script, .arena = arena, .module = module, .diagnostic = diagnostic};
  r.scratch = td_arena_new();
  td_prototype *prototype = r.scratch ? module_prototype(&r, tree) : NULL;
  bool done =
      prototype && walk_frame(&r, TD_IN_MODULE, prototype) && td_resolve_settle(&r) && td_resolve_finish(&r, tree);
  td_arena_unref(r.scratch);
  td_memory_free(r.table);
  return done ? prototype : NULL;
}
