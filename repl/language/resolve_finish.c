// The last walk over the tree, from the leaves up: places into names and comprehension clauses, then the function that
// runs the node, which may look at its finished children. Left operands and elifs can be a chain of thousands, so that
// link is turned round on the way down and back on the way up instead of recursing along it.
#include "repl/language/resolve.h"

static void place_name(td_node *node) {
  const td_symbol *symbol = node->symbol, *origin = symbol->origin;
  node->global = symbol->global;
  node->slot = symbol->slot;
  if (!origin) {
    node->scope = TD_SCOPE_GLOBAL;
    node->slot = 0;
  } else if (origin->scope->kind == TD_IN_CLASS) {
    node->scope = TD_SCOPE_CLASS;
  } else {
    node->scope = origin->cell ? TD_SCOPE_CELL : TD_SCOPE_LOCAL;
  }
}

static td_node **spine_of(td_node *node) { return node->kind == TD_NODE_IF ? &node->c : &node->a; }

static bool finish_prototype(td_resolver *r, const td_prototype *prototype) {
  int32_t count = prototype->positional + prototype->keyword_only;
  for (int32_t i = 0; i < count; i++) {
    td_node *fallback = prototype->parameters[i].fallback;
    if (fallback && !td_resolve_finish(r, fallback)) return false;
  }
  return td_resolve_finish(r, prototype->body);
}

static bool has_prototype(const td_node *node) { // whose body is not among its children
  return node->kind == TD_NODE_LAMBDA || node->kind == TD_NODE_FUNCTION || node->kind == TD_NODE_CLASS;
}

static bool finish_node(td_resolver *r, td_node *node) { // its spine is done
  td_node *parts[] = {node->a, node->b, node->c, node->d}, *spine = *spine_of(node);
  for (int i = 0; i < 4; i++) {
    if (parts[i] && parts[i] != spine && !td_resolve_finish(r, parts[i])) return false;
  }
  for (int32_t i = 0; i < node->count; i++) {
    if (node->items[i] && !td_resolve_finish(r, node->items[i])) return false;
  }
  if (has_prototype(node) && !finish_prototype(r, node->prototype)) return false;
  if (node->kind == TD_NODE_NAME) {
    place_name(node);
  } else {
    bool clause = node->kind == TD_NODE_COMPREHENSION_FOR;
    node->slot = clause ? node->symbol->slot : 0;
    if (clause) node->symbol = NULL;
  }
  if (node->kind < TD_NODE_BLOCK) node->evaluate = td_evaluate_choose(node);
  else node->execute = td_execute_choose(node);
  return true;
}

bool td_resolve_finish(td_resolver *r, td_node *node) {
  td_node *above = NULL;
  while (node) {
    td_node **spine = spine_of(node), *next = *spine;
    *spine = above;
    above = node;
    node = next;
  }
  bool done = true;
  for (td_node *below = NULL; above;) {
    td_node **spine = spine_of(above), *next = *spine;
    *spine = below;
    done = done && finish_node(r, above);
    below = above;
    above = next;
  }
  return done;
}
