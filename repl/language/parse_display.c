// What stands between brackets: tuples and parentheses, lists, dicts, sets, their comprehensions, call arguments and
// subscripts. Each function begins at the opening bracket and takes the closing one.
#include "repl/language/parse.h"

// ---- comprehensions ----

// clause: 'for' targets 'in' disjunction { 'if' disjunction }
static td_node *parse_clause(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  p->at++;
  td_node *target = td_parse_targets(p);
  if (!target || !td_parser_expect(p, TD_TOKEN_IN, "the comprehension's target")) return NULL;
  td_node *iterable = td_parse_disjunction(p);
  if (!iterable) return NULL;
  int32_t pending = p->pending_count;
  while (td_parser_take(p, TD_TOKEN_IF)) {
    if (!td_parser_push(p, td_parse_disjunction(p))) return NULL;
  }
  if (td_parser_kind(p) == TD_TOKEN_ELSE) {
    const td_token *token = td_parser_token(p);
    return td_parser_fail(p, token->begin, token->end, "to choose a value, write [a if test else b for x in xs]",
                          "a comprehension's 'if' has no 'else'");
  }
  td_node *node = td_parser_node(p, TD_NODE_COMPREHENSION_FOR, begin);
  if (!td_parser_collect(p, node, pending)) return NULL;
  node->a = target;
  node->b = iterable;
  return td_parser_close(p, node);
}

static td_node *parse_comprehension(td_parser *p, int kind, td_node *element, td_node *value,
                                    uint32_t begin) { // at 'for'
  if (element->kind == TD_NODE_STARRED) {
    return td_parser_fail_node(p, element, NULL, "a comprehension's element can't be starred");
  }
  int32_t pending = p->pending_count;
  while (td_parser_kind(p) == TD_TOKEN_FOR) {
    if (!td_parser_push(p, parse_clause(p))) return NULL;
  }
  td_node *node = td_parser_node(p, kind, begin);
  if (!td_parser_collect(p, node, pending)) return NULL;
  node->a = element;
  node->b = value;
  return td_parser_close(p, node);
}

td_node *td_parse_generator(td_parser *p, td_node *element, uint32_t begin) {
  td_node *node = parse_comprehension(p, TD_NODE_GENERATOR, element, NULL, begin);
  td_str *name = node ? td_parser_intern(p, "<generator>", 11) : NULL;
  td_prototype *prototype = name ? td_parser_prototype(p, name, begin) : NULL;
  if (!prototype) return NULL;
  prototype->body = element;
  prototype->is_expression = true;
  prototype->span.end = node->end;
  node->prototype = prototype;
  node->c = node->items[0]->b;
  node->items[0]->b = NULL;
  return node;
}

static bool is_asynchronous(td_parser *p) { // 'async for': fails
  const td_token *token = td_parser_token(p);
  if (token->kind != TD_TOKEN_ASYNC) return false;
  td_parser_fail(p, token->begin, token->end, "write a plain 'for'", "'async' is not in this language");
  return true;
}

// ---- sequences ----

static td_node *close_bracket(td_parser *p, td_node *node, int closing) { // takes the bracket; the span includes it
  if (!node) return NULL;
  if (!td_parser_take(p, closing)) {
    td_parser_unexpected(p, closing == TD_TOKEN_RIGHT_PARENTHESIS ? "',' or ')'"
                            : closing == TD_TOKEN_RIGHT_BRACKET   ? "',' or ']'"
                                                                  : "',' or '}'");
    bool here = p->result == TD_PARSE_ERROR && p->diagnostic->span.begin == td_parser_token(p)->begin;
    if (here && td_parse_begins_expression(td_parser_kind(p)) && !p->diagnostic->hint[0]) {
      td_parser_hint(p, "a comma or an operator may be missing");
    }
    return NULL;
  }
  td_parser_leave(p);
  node->end = td_parser_end(p);
  return node;
}

static bool push_items(td_parser *p, int closing) { // { ',' starred } [ ',' ] up to the closing bracket
  while (td_parser_take(p, TD_TOKEN_COMMA)) {
    if (td_parser_kind(p) == closing) break;
    if (!td_parser_push(p, td_parse_starred(p))) return false;
  }
  return true;
}

// parentheses: '(' ')' | '(' expression ')' | '(' expression for-clauses ')' | '(' starred ',' ... ')'
td_node *td_parse_parentheses(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  int32_t pending = p->pending_count;
  td_node *node;
  if (td_parser_kind(p) == TD_TOKEN_RIGHT_PARENTHESIS) {
    node = td_parser_node(p, TD_NODE_TUPLE, begin);
    return close_bracket(p, node ? td_parser_close(p, node) : NULL, TD_TOKEN_RIGHT_PARENTHESIS);
  }
  td_node *first = td_parse_starred(p);
  if (!first || is_asynchronous(p)) return NULL;
  if (td_parser_kind(p) == TD_TOKEN_FOR) {
    node = td_parse_generator(p, first, begin);
  } else if (td_parser_kind(p) == TD_TOKEN_COMMA) {
    if (!td_parser_push(p, first) || !push_items(p, TD_TOKEN_RIGHT_PARENTHESIS)) return NULL;
    node = td_parser_node(p, TD_NODE_TUPLE, begin);
    if (!td_parser_collect(p, node, pending)) return NULL;
    node = td_parser_close(p, node);
  } else if (first->kind == TD_NODE_STARRED && td_parser_kind(p) == TD_TOKEN_RIGHT_PARENTHESIS) {
    return td_parser_fail_node(p, first, "write (*x,) for a tuple", "a starred expression can't stand alone");
  } else {
    node = first;
    node->begin = begin;
  }
  node = close_bracket(p, node, TD_TOKEN_RIGHT_PARENTHESIS);
  if (node) node->flags |= TD_NODE_PARENTHESES;
  return node;
}

// list: '[' ']' | '[' starred { ',' starred } [ ',' ] ']' | '[' expression for-clauses ']'
td_node *td_parse_list(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  int32_t pending = p->pending_count;
  if (td_parser_kind(p) != TD_TOKEN_RIGHT_BRACKET) {
    td_node *first = td_parse_starred(p);
    if (!first || is_asynchronous(p)) return NULL;
    if (td_parser_kind(p) == TD_TOKEN_FOR) {
      return close_bracket(p, parse_comprehension(p, TD_NODE_LIST_COMPREHENSION, first, NULL, begin),
                           TD_TOKEN_RIGHT_BRACKET);
    }
    if (!td_parser_push(p, first) || !push_items(p, TD_TOKEN_RIGHT_BRACKET)) return NULL;
  }
  td_node *node = td_parser_node(p, TD_NODE_LIST, begin);
  if (!td_parser_collect(p, node, pending)) return NULL;
  return close_bracket(p, td_parser_close(p, node), TD_TOKEN_RIGHT_BRACKET);
}

// entry: expression ':' expression | '**' operand; pushes key (NULL: none) and value
static bool parse_entry(td_parser *p) {
  if (td_parser_take(p, TD_TOKEN_POWER))
    return td_parser_push_optional(p, NULL) && td_parser_push(p, td_parse_operand(p));
  return td_parser_push(p, td_parse_expression(p)) && td_parser_expect(p, TD_TOKEN_COLON, "the key") &&
         td_parser_push(p, td_parse_expression(p));
}

static td_node *parse_dict(td_parser *p, td_node *key, uint32_t begin) { // after the first key; NULL: at '**' or '}'
  int32_t pending = p->pending_count;
  if (key) {
    if (!td_parser_expect(p, TD_TOKEN_COLON, "the key")) return NULL;
    td_node *value = td_parse_expression(p);
    if (!value || is_asynchronous(p)) return NULL;
    if (td_parser_kind(p) == TD_TOKEN_FOR) {
      return close_bracket(p, parse_comprehension(p, TD_NODE_DICT_COMPREHENSION, key, value, begin),
                           TD_TOKEN_RIGHT_BRACE);
    }
    if (!td_parser_push(p, key) || !td_parser_push(p, value)) return NULL;
  } else if (td_parser_kind(p) == TD_TOKEN_POWER && !parse_entry(p)) {
    return NULL;
  }
  while (td_parser_take(p, TD_TOKEN_COMMA)) {
    if (td_parser_kind(p) == TD_TOKEN_RIGHT_BRACE) break;
    if (!parse_entry(p)) return NULL;
  }
  td_node *node = td_parser_node(p, TD_NODE_DICT, begin);
  if (!td_parser_collect(p, node, pending)) return NULL;
  return close_bracket(p, td_parser_close(p, node), TD_TOKEN_RIGHT_BRACE);
}

// braces: '{' '}' | '{' entry { ',' entry } '}' | '{' starred { ',' starred } '}' | comprehensions of both
td_node *td_parse_braces(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  int kind = td_parser_kind(p);
  if (kind == TD_TOKEN_RIGHT_BRACE || kind == TD_TOKEN_POWER) return parse_dict(p, NULL, begin);
  td_node *first = td_parse_starred(p);
  if (!first || is_asynchronous(p)) return NULL;
  if (td_parser_kind(p) == TD_TOKEN_COLON) return parse_dict(p, first, begin);
  if (td_parser_kind(p) == TD_TOKEN_FOR) {
    return close_bracket(p, parse_comprehension(p, TD_NODE_SET_COMPREHENSION, first, NULL, begin),
                         TD_TOKEN_RIGHT_BRACE);
  }
  int32_t pending = p->pending_count;
  if (!td_parser_push(p, first) || !push_items(p, TD_TOKEN_RIGHT_BRACE)) return NULL;
  td_node *node = td_parser_node(p, TD_NODE_SET, begin);
  if (!td_parser_collect(p, node, pending)) return NULL;
  return close_bracket(p, td_parser_close(p, node), TD_TOKEN_RIGHT_BRACE);
}

// ---- calls ----

static td_node *parse_keyword(td_parser *p) { // NAME '=' expression
  uint32_t begin = td_parser_token(p)->begin;
  td_str *name = td_parser_name(p);
  if (!name) return NULL;
  p->at++;
  td_node *value = td_parse_expression(p), *node = value ? td_parser_node(p, TD_NODE_KEYWORD, begin) : NULL;
  if (!node) return NULL;
  node->name = name;
  node->a = value;
  return td_parser_close(p, node);
}

static td_node *parse_double_starred(td_parser *p) { // '**' expression
  uint32_t begin = td_parser_token(p)->begin;
  p->at++;
  td_node *value = td_parse_expression(p), *node = value ? td_parser_node(p, TD_NODE_DOUBLE_STARRED, begin) : NULL;
  if (!node) return NULL;
  node->a = value;
  return td_parser_close(p, node);
}

// argument: NAME '=' expression | '**' expression | starred [ for-clauses ]
static td_node *parse_argument(td_parser *p) {
  int kind = td_parser_kind(p);
  if (td_parser_next_kind(p) == TD_TOKEN_EQUAL && (kind == TD_TOKEN_NAME || td_token_is_keyword(kind)))
    return parse_keyword(p);
  if (kind == TD_TOKEN_POWER) return parse_double_starred(p);
  uint32_t begin = td_parser_token(p)->begin;
  td_node *value = td_parse_starred(p);
  if (!value || is_asynchronous(p)) return NULL;
  if (td_parser_kind(p) == TD_TOKEN_EQUAL) {
    return td_parser_fail(p, value->begin, td_parser_token(p)->end, "'==' compares",
                          "a keyword argument is a name before '='");
  }
  return td_parser_kind(p) == TD_TOKEN_FOR ? td_parse_generator(p, value, begin) : value;
}

static bool is_bare_generator(const td_node *node) {
  return node->kind == TD_NODE_GENERATOR && !(node->flags & TD_NODE_PARENTHESES);
}

static bool check_arguments(td_parser *p, const td_node *call) { // their order, and that no keyword comes twice
  bool mapping = false;
  int32_t named = 0, first = 0;
  for (int32_t i = 0; i < call->count; i++) {
    const td_node *item = call->items[i];
    if (is_bare_generator(item) && call->count > 1)
      return td_parser_fail_node(p, item, NULL, "a generator beside other arguments needs parentheses"), false;
    if (item->kind == TD_NODE_KEYWORD) {
      if (!named) first = i;
      for (int32_t k = first; k < i; k++) {
        bool same = call->items[k]->kind == TD_NODE_KEYWORD && call->items[k]->name == item->name;
        if (same)
          return td_parser_fail_node(p, item, NULL, "keyword argument '%s' is given twice", item->name->data), false;
      }
      if (++named > TD_ARGUMENTS_MAX)
        return td_parser_fail_node(p, item, NULL, "more than %d keyword arguments", TD_ARGUMENTS_MAX), false;
    } else if (item->kind == TD_NODE_DOUBLE_STARRED) {
      mapping = true;
    } else if (item->kind == TD_NODE_STARRED ? mapping : named || mapping) {
      return td_parser_fail_node(p, item, NULL, "%s after a keyword argument",
                                 item->kind == TD_NODE_STARRED ? "a *sequence stands" : "a positional argument stands"),
             false;
    }
  }
  return true;
}

// call: '(' [ argument { ',' argument } [ ',' ] ] ')'
td_node *td_parse_call(td_parser *p, td_node *callee) {
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  int32_t pending = p->pending_count;
  while (td_parser_kind(p) != TD_TOKEN_RIGHT_PARENTHESIS) {
    if (!td_parser_push(p, parse_argument(p))) return NULL;
    if (!td_parser_take(p, TD_TOKEN_COMMA)) break;
  }
  td_node *node = td_parser_node(p, TD_NODE_CALL, callee->begin);
  if (!td_parser_collect(p, node, pending)) return NULL;
  node->a = callee;
  node = close_bracket(p, td_parser_close(p, node), TD_TOKEN_RIGHT_PARENTHESIS);
  return node && check_arguments(p, node) ? node : NULL;
}

// ---- subscripts ----

static bool ends_bound(int kind) {
  return kind == TD_TOKEN_COLON || kind == TD_TOKEN_COMMA || kind == TD_TOKEN_RIGHT_BRACKET;
}

// slice: [ expression ] ':' [ expression ] [ ':' [ expression ] ] | starred
static td_node *parse_slice(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  td_node *parts[3] = {NULL};
  int count = 0;
  if (td_parser_kind(p) != TD_TOKEN_COLON) {
    parts[0] = td_parse_starred(p);
    if (!parts[0] || td_parser_kind(p) != TD_TOKEN_COLON) return parts[0];
  }
  while (count < 2 && td_parser_take(p, TD_TOKEN_COLON)) {
    count++;
    if (!ends_bound(td_parser_kind(p)) && !(parts[count] = td_parse_expression(p))) return NULL;
  }
  td_node *node = td_parser_node(p, TD_NODE_SLICE, begin);
  if (!node) return NULL;
  node->a = parts[0];
  node->b = parts[1];
  node->c = parts[2];
  return td_parser_close(p, node);
}

// subscripts: '[' slice { ',' slice } [ ',' ] ']'
td_node *td_parse_index(td_parser *p, td_node *value) {
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  uint32_t begin = td_parser_token(p)->begin;
  int32_t pending = p->pending_count;
  td_node *key = parse_slice(p);
  if (!key) return NULL;
  if (td_parser_kind(p) == TD_TOKEN_COMMA || key->kind == TD_NODE_STARRED) {
    if (!td_parser_push(p, key)) return NULL;
    while (td_parser_take(p, TD_TOKEN_COMMA)) {
      if (td_parser_kind(p) == TD_TOKEN_RIGHT_BRACKET) break;
      if (!td_parser_push(p, parse_slice(p))) return NULL;
    }
    key = td_parser_node(p, TD_NODE_TUPLE, begin);
    if (!td_parser_collect(p, key, pending) || !td_parser_close(p, key)) return NULL;
  }
  td_node *node = td_parser_node(p, TD_NODE_INDEX, value->begin);
  if (!node) return NULL;
  node->a = value;
  node->b = key;
  return close_bracket(p, td_parser_close(p, node), TD_TOKEN_RIGHT_BRACKET);
}
