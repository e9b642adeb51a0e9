// Functions, lambdas and classes: parameters, annotations that are read and dropped, decorators, docstrings. What a
// definition's frame needs besides (slots, cells, captures) is the resolver's.
#include <string.h>

#include "repl/language/parse.h"

typedef struct parameters { // of one kind, growing in the arena
  td_parameter *items;
  int32_t count, capacity;
} parameters;

typedef struct signature {
  parameters positional, keyword_only, star, double_star;
} signature;

static td_parameter *add_parameter(td_parser *p, parameters *list) {
  if (list->count == list->capacity) {
    int32_t capacity = list->capacity ? list->capacity * 2 : 4;
    td_parameter *items = td_arena_take(p->arena, (size_t)capacity * sizeof *items);
    if (!items) return td_parser_memory(p);
    if (list->count) memcpy(items, list->items, (size_t)list->count * sizeof *items);
    list->items = items;
    list->capacity = capacity;
  }
  return &list->items[list->count++];
}

static bool is_taken(const parameters *list, const td_str *name, const td_parameter *except) {
  for (int32_t i = 0; i < list->count; i++) {
    if (&list->items[i] != except && list->items[i].name == name) return true;
  }
  return false;
}

// NAME [ ':' expression ]; a fallback follows where the caller allows it
static td_parameter *parse_parameter(td_parser *p, parameters *list, const signature *all, bool annotated) {
  uint32_t begin = td_parser_token(p)->begin;
  td_str *name = td_parser_name(p);
  td_parameter *added = name ? add_parameter(p, list) : NULL;
  if (!added) return NULL;
  *added = (td_parameter){name, NULL, begin, td_parser_end(p)};
  int32_t count = all->positional.count + all->keyword_only.count;
  if (count > TD_ARGUMENTS_MAX)
    return td_parser_fail(p, begin, added->end, NULL, "more than %d parameters", TD_ARGUMENTS_MAX);
  if (is_taken(&all->positional, name, added) || is_taken(&all->keyword_only, name, added) ||
      is_taken(&all->star, name, added) || is_taken(&all->double_star, name, added)) {
    return td_parser_fail(p, begin, added->end, NULL, "parameter '%s' is there twice", name->data);
  }
  if (annotated && td_parser_take(p, TD_TOKEN_COLON) && !td_parse_starred(p)) return NULL;
  return added;
}

static bool parse_plain(td_parser *p, signature *all, bool after_star, bool annotated) { // parameter [ '=' expression ]
  td_parameter *added = parse_parameter(p, after_star ? &all->keyword_only : &all->positional, all, annotated);
  if (!added) return false;
  if (td_parser_take(p, TD_TOKEN_EQUAL)) return (added->fallback = td_parse_expression(p));
  if (!after_star && all->positional.count > 1 && added[-1].fallback) {
    return td_parser_fail(p, added->begin, added->end, "give it a default too, or put it first",
                          "parameter '%s' without a default follows one with a default", added->name->data),
           false;
  }
  return true;
}

static bool parse_star(td_parser *p, signature *all, bool *after_star, int closing,
                       bool annotated) { // '*' [ parameter ]
  const td_token *token = td_parser_token(p);
  if (*after_star) return td_parser_fail(p, token->begin, token->end, NULL, "a second '*' among the parameters"), false;
  *after_star = true;
  p->at++;
  if (td_parser_kind(p) != TD_TOKEN_COMMA) return parse_parameter(p, &all->star, all, annotated);
  int next = td_parser_next_kind(p);
  if (next != closing && next != TD_TOKEN_POWER) return true;
  return td_parser_fail(p, token->begin, token->end, NULL, "named parameters must follow a bare '*'"), false;
}

static bool parse_slash(td_parser *p, signature *all, int32_t *positional_only, bool after_star) {
  const td_token *token = td_parser_token(p);
  const char *problem = after_star         ? "'/' must come before '*'"
                        : *positional_only ? "a second '/' among the parameters"
                                           : "parameters must come before '/'";
  if (after_star || *positional_only || !all->positional.count)
    return td_parser_fail(p, token->begin, token->end, NULL, "%s", problem), false;
  *positional_only = all->positional.count;
  p->at++;
  return true;
}

static bool finish_parameters(td_parser *p, td_prototype *prototype, const signature *all, int32_t positional_only) {
  const parameters *lists[] = {&all->positional, &all->keyword_only, &all->star, &all->double_star};
  int32_t count = 0;
  for (int i = 0; i < 4; i++) count += lists[i]->count;
  prototype->positional = all->positional.count;
  prototype->positional_only = positional_only;
  prototype->keyword_only = all->keyword_only.count;
  prototype->star = all->star.count;
  prototype->double_star = all->double_star.count;
  if (!count) return true;
  prototype->parameters = td_arena_take(p->arena, (size_t)count * sizeof *prototype->parameters);
  if (!prototype->parameters) return td_parser_memory(p), false;
  for (int i = 0, at = 0; i < 4; at += lists[i++]->count) {
    if (lists[i]->count)
      memcpy(prototype->parameters + at, lists[i]->items, (size_t)lists[i]->count * sizeof(td_parameter));
  }
  return true;
}

// parameters: { plain | '/' | '*' [ parameter ] | '**' parameter } with commas between and perhaps one at the end
bool td_parse_parameters(td_parser *p, td_prototype *prototype, int closing, bool annotated) {
  signature all = {0};
  int32_t positional_only = 0;
  bool after_star = false;
  while (td_parser_kind(p) != closing) {
    const td_token *token = td_parser_token(p);
    if (all.double_star.count)
      return td_parser_fail(p, token->begin, token->end, NULL, "nothing can follow the **parameter"), false;
    bool done;
    if (token->kind == TD_TOKEN_MULTIPLY) done = parse_star(p, &all, &after_star, closing, annotated);
    else if (token->kind == TD_TOKEN_DIVIDE) done = parse_slash(p, &all, &positional_only, after_star);
    else if (td_parser_take(p, TD_TOKEN_POWER)) done = parse_parameter(p, &all.double_star, &all, annotated);
    else done = parse_plain(p, &all, after_star, annotated);
    if (!done) return false;
    if (td_parser_kind(p) != closing && !td_parser_take(p, TD_TOKEN_COMMA)) {
      return td_parser_unexpected(p, closing == TD_TOKEN_COLON ? "',' or ':'" : "',' or ')'"), false;
    }
  }
  return finish_parameters(p, prototype, &all, positional_only);
}

// lambda: 'lambda' parameters ':' expression
td_node *td_parse_lambda(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  td_str *name = td_parser_intern(p, "<lambda>", 8);
  td_prototype *prototype = name ? td_parser_prototype(p, name, begin) : NULL;
  if (!prototype || !td_parse_parameters(p, prototype, TD_TOKEN_COLON, false)) return NULL;
  p->at++;
  prototype->body = td_parse_expression(p);
  td_node *node = prototype->body ? td_parser_node(p, TD_NODE_LAMBDA, begin) : NULL;
  if (!node) return NULL;
  prototype->is_expression = true;
  prototype->span.end = node->end;
  node->prototype = prototype;
  node->slot = prototype->body->slot; // its height; the body runs in a frame of its own
  td_parser_leave(p);
  return node;
}

static void take_docstring(td_prototype *prototype) { // a str that stands first in the body moves to doc
  td_node *body = prototype->body;
  if (!body->count || body->items[0]->kind != TD_NODE_EXPRESSION) return;
  const td_node *first = body->items[0]->a;
  if (first->kind != TD_NODE_CONSTANT || !td_is(first->value, &td_str_type)) return;
  prototype->doc = td_as_str(first->value);
  body->items++;
  body->count--;
}

static td_node *name_target(td_parser *p) { // takes a NAME as what a definition assigns to
  uint32_t begin = td_parser_token(p)->begin;
  td_str *name = td_parser_name(p);
  td_node *node = name ? td_parser_node(p, TD_NODE_NAME, begin) : NULL;
  if (node) node->name = name;
  return node;
}

static td_node *finish_definition(td_parser *p, td_node *node, td_prototype *prototype, const char *what) { // at ':'
  prototype->body = td_parse_block(p, what);
  if (!prototype->body) return NULL;
  take_docstring(prototype);
  node->end = prototype->span.end = td_parser_end(p);
  node->prototype = prototype;
  return node;
}

// function: 'def' NAME '(' parameters ')' [ '->' expression ] block
td_node *td_parse_function(td_parser *p, uint32_t begin) {
  p->at++;
  td_node *target = name_target(p), *node = target ? td_parser_node(p, TD_NODE_FUNCTION, begin) : NULL;
  td_prototype *prototype = node ? td_parser_prototype(p, target->name, begin) : NULL;
  if (!prototype) return NULL;
  node->a = target;
  if (!td_parser_expect(p, TD_TOKEN_LEFT_PARENTHESIS, "the function's name")) return NULL;
  if (!td_parse_parameters(p, prototype, TD_TOKEN_RIGHT_PARENTHESIS, true)) return NULL;
  p->at++;
  if (td_parser_take(p, TD_TOKEN_ARROW) && !td_parse_expression(p)) return NULL;
  return finish_definition(p, node, prototype, "def");
}

static bool parse_bases(td_parser *p, td_node *node) { // [ '(' [ expression ] ')' ]
  if (!td_parser_take(p, TD_TOKEN_LEFT_PARENTHESIS)) return true;
  while (td_parser_kind(p) != TD_TOKEN_RIGHT_PARENTHESIS) {
    const td_token *token = td_parser_token(p);
    if (token->kind == TD_TOKEN_NAME && td_parser_next_kind(p) == TD_TOKEN_EQUAL) {
      bool meta = td_parser_is_word(p, p->at, "metaclass");
      return td_parser_fail(p, token->begin, token->end,
                            meta ? "use a decorator of the class, or a function that makes it" : NULL,
                            meta ? "metaclasses are not in this language" : "a class takes no keyword arguments"),
             false;
    }
    td_node *base = td_parse_expression(p);
    if (!base) return false;
    if (node->b) {
      td_parser_fail_node(p, base, "inherit from one class and keep an instance of the other as an attribute",
                          "multiple inheritance is not in this language");
      return false;
    }
    node->b = base;
    if (!td_parser_take(p, TD_TOKEN_COMMA)) break;
  }
  return td_parser_expect(p, TD_TOKEN_RIGHT_PARENTHESIS, "the base class");
}

// class: 'class' NAME [ '(' [ expression ] ')' ] block
td_node *td_parse_class(td_parser *p, uint32_t begin) {
  p->at++;
  td_node *target = name_target(p), *node = target ? td_parser_node(p, TD_NODE_CLASS, begin) : NULL;
  td_prototype *prototype = node ? td_parser_prototype(p, target->name, begin) : NULL;
  if (!prototype) return NULL;
  node->a = target;
  node->name = target->name;
  if (!parse_bases(p, node)) return NULL;
  td_str *outer = p->class_name;
  p->class_name = target->name;
  node = finish_definition(p, node, prototype, "class");
  p->class_name = outer;
  return node;
}

// decorated: { '@' expression NEWLINE } ( function | class )
td_node *td_parse_decorated(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  int32_t pending = p->pending_count;
  while (td_parser_take(p, TD_TOKEN_MATMUL)) {
    if (!td_parser_push(p, td_parse_expression(p))) return NULL;
    if (!td_parser_take(p, TD_TOKEN_NEWLINE)) return td_parser_unexpected(p, "the end of the decorator's line");
  }
  td_node *node = NULL;
  int kind = td_parser_kind(p);
  if (kind == TD_TOKEN_DEF) node = td_parse_function(p, begin);
  else if (kind == TD_TOKEN_CLASS) node = td_parse_class(p, begin);
  else if (td_parser_is_over(p)) td_parser_incomplete(p, begin, "a decorator stands above a 'def' or 'class'");
  else if (kind == TD_TOKEN_ASYNC) td_parse_expression(p); // which says why not
  else td_parser_unexpected(p, "'def' or 'class' after a decorator");
  if (!node) return NULL;
  return td_parser_collect(p, node, pending) ? node : NULL;
}
