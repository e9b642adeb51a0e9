// Expressions from the loosest operator to the atom; the grammar rule stands above each function. Chains of binary
// operators, comparisons, calls and subscripts are loops; only nesting recurses, and nesting is bounded.
#include "repl/language/parse.h"

#include <string.h>

static td_node *parse_unary(td_parser *p);

static td_node *pair(td_parser *p, int kind, int op, td_node *a, td_node *b) { // a node with two operands
  td_node *node = a && b ? td_parser_node(p, kind, a->begin) : NULL;
  if (!node) return NULL;
  node->op = (uint8_t)op;
  node->a = a;
  node->b = b;
  return td_parser_close(p, node);
}

bool td_parse_begins_expression(int kind) {
  switch (kind) {
  case TD_TOKEN_NAME:
  case TD_TOKEN_INT:
  case TD_TOKEN_FLOAT:
  case TD_TOKEN_STRING:
  case TD_TOKEN_FSTRING_BEGIN:
  case TD_TOKEN_LEFT_PARENTHESIS:
  case TD_TOKEN_LEFT_BRACKET:
  case TD_TOKEN_LEFT_BRACE:
  case TD_TOKEN_ADD:
  case TD_TOKEN_SUBTRACT:
  case TD_TOKEN_INVERT:
  case TD_TOKEN_NOT:
  case TD_TOKEN_LAMBDA:
  case TD_TOKEN_NONE:
  case TD_TOKEN_TRUE:
  case TD_TOKEN_FALSE:
  case TD_TOKEN_ELLIPSIS:
  case TD_TOKEN_MULTIPLY:
  case TD_TOKEN_YIELD:
  case TD_TOKEN_AWAIT: return true;
  default: return false;
  }
}

// ---- atoms ----

static td_node *parse_name(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  td_str *name = td_parser_name(p);
  td_node *node = name ? td_parser_node(p, TD_NODE_NAME, begin) : NULL;
  if (!node) return NULL;
  node->name = name;
  return td_parser_close(p, node);
}

static td_node *parse_constant(td_parser *p, td_value value) {
  uint32_t begin = td_parser_token(p)->begin;
  p->at++;
  td_node *node = td_parser_node(p, TD_NODE_CONSTANT, begin);
  if (!node) return NULL;
  node->value = value;
  return td_parser_close(p, node);
}

static td_node *fail_missing(td_parser *p) { // a token that begins no expression
  const td_token *token = td_parser_token(p);
  static const struct {
    int kind;
    const char *message, *hint;
  } rows[] = {
      {TD_TOKEN_YIELD, "'yield' is not in this language",
       "collect the values in a list and return it, or write a generator expression"},
      {TD_TOKEN_AWAIT, "'await' is not in this language", "call the function: it runs to its end"},
      {TD_TOKEN_ASYNC, "'async' is not in this language", "write a plain function: calls run to their end"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].kind == token->kind)
      return td_parser_fail(p, token->begin, token->end, rows[i].hint, "%s", rows[i].message);
  }
  return td_parser_unexpected(p, "an expression");
}

// atom: NAME | number | string+ | 'None' | 'True' | 'False' | '...' | '(' ')' | '[' ']' | '{' '}' forms
static td_node *parse_atom(td_parser *p) {
  switch (td_parser_kind(p)) {
  case TD_TOKEN_NAME: return parse_name(p);
  case TD_TOKEN_INT:
  case TD_TOKEN_FLOAT: return td_parse_number(p, false);
  case TD_TOKEN_STRING:
  case TD_TOKEN_FSTRING_BEGIN: return td_parse_strings(p);
  case TD_TOKEN_NONE: return parse_constant(p, TD_NONE);
  case TD_TOKEN_TRUE: return parse_constant(p, td_bool(true));
  case TD_TOKEN_FALSE: return parse_constant(p, td_bool(false));
  case TD_TOKEN_ELLIPSIS: return parse_constant(p, td_ellipsis);
  case TD_TOKEN_LEFT_PARENTHESIS: return td_parse_parentheses(p);
  case TD_TOKEN_LEFT_BRACKET: return td_parse_list(p);
  case TD_TOKEN_LEFT_BRACE: return td_parse_braces(p);
  default: return fail_missing(p);
  }
}

static td_node *parse_attribute(td_parser *p, td_node *value) {
  p->at++;
  td_str *name = td_parser_name(p);
  td_node *node = name ? td_parser_node(p, TD_NODE_ATTRIBUTE, value->begin) : NULL;
  if (!node) return NULL;
  node->a = value;
  node->name = name;
  return td_parser_close(p, node);
}

// primary: atom { '.' NAME | '(' arguments ')' | '[' subscripts ']' }
static td_node *parse_primary(td_parser *p) {
  td_node *node = parse_atom(p);
  while (node) {
    int kind = td_parser_kind(p);
    if (kind == TD_TOKEN_DOT) node = parse_attribute(p, node);
    else if (kind == TD_TOKEN_LEFT_PARENTHESIS) node = td_parse_call(p, node);
    else if (kind == TD_TOKEN_LEFT_BRACKET) node = td_parse_index(p, node);
    else break;
  }
  return node;
}

// ---- operators ----

// power: primary [ '**' unary ]
static td_node *parse_power(td_parser *p) {
  td_node *base = parse_primary(p);
  if (!base || td_parser_kind(p) != TD_TOKEN_POWER) return base;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  td_node *exponent = parse_unary(p);
  td_parser_leave(p);
  return pair(p, TD_NODE_BINARY, TD_BINARY_POWER, base, exponent);
}

static bool is_negative_number(const td_parser *p) { // '-' number that nothing binds tighter to
  int kind = td_parser_next_kind(p);
  if (td_parser_kind(p) != TD_TOKEN_SUBTRACT || (kind != TD_TOKEN_INT && kind != TD_TOKEN_FLOAT)) return false;
  int after = p->tokens.items[p->at + 2].kind; // a token follows: the last one is no number
  return after != TD_TOKEN_POWER && after != TD_TOKEN_DOT && after != TD_TOKEN_LEFT_BRACKET &&
         after != TD_TOKEN_LEFT_PARENTHESIS;
}

// unary: ('-' | '+' | '~') unary | power
static td_node *parse_unary(td_parser *p) {
  int kind = td_parser_kind(p);
  if (kind != TD_TOKEN_SUBTRACT && kind != TD_TOKEN_ADD && kind != TD_TOKEN_INVERT) return parse_power(p);
  if (is_negative_number(p)) return td_parse_number(p, true);
  uint32_t begin = td_parser_token(p)->begin;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  td_node *operand = parse_unary(p), *node = operand ? td_parser_node(p, TD_NODE_UNARY, begin) : NULL;
  td_parser_leave(p);
  if (!node) return NULL;
  node->op = kind == TD_TOKEN_SUBTRACT ? TD_UNARY_NEGATIVE : kind == TD_TOKEN_ADD ? TD_UNARY_POSITIVE : TD_UNARY_INVERT;
  node->a = operand;
  return td_parser_close(p, node);
}

// binary: unary { operator binary }, operators by the precedence of their token's row
static td_node *parse_binary(td_parser *p, int precedence) {
  td_node *left = parse_unary(p);
  while (left) {
    const td_token_row *row = &td_token_rows[td_parser_kind(p)];
    if (!row->precedence || row->precedence < precedence) break;
    p->at++;
    left = pair(p, TD_NODE_BINARY, row->operator, left, parse_binary(p, row->precedence + 1));
  }
  return left;
}

td_node *td_parse_operand(td_parser *p) { return parse_binary(p, 1); }

static int take_comparison(td_parser *p) { // -1: none follows
  int kind = td_parser_kind(p), next = td_parser_next_kind(p);
  int comparison = -1, tokens = 1;
  switch (kind) {
  case TD_TOKEN_EQUAL_EQUAL:
  case TD_TOKEN_NOT_EQUAL:
  case TD_TOKEN_LESS:
  case TD_TOKEN_LESS_EQUAL:
  case TD_TOKEN_GREATER:
  case TD_TOKEN_GREATER_EQUAL: comparison = td_token_rows[kind].operator; break;
  case TD_TOKEN_IN: comparison = TD_COMPARE_IN; break;
  case TD_TOKEN_NOT:
    if (next == TD_TOKEN_IN) comparison = TD_COMPARE_NOT_IN, tokens = 2;
    break;
  case TD_TOKEN_IS:
    comparison = next == TD_TOKEN_NOT ? TD_COMPARE_IS_NOT : TD_COMPARE_IS;
    tokens = next == TD_TOKEN_NOT ? 2 : 1;
    break;
  default: break;
  }
  if (comparison >= 0) p->at += (uint32_t)tokens;
  return comparison;
}

// comparison: operand { ('==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not' 'in' | 'is' | 'is' 'not') operand }
static td_node *parse_comparison(td_parser *p) {
  td_node *left = td_parse_operand(p);
  int comparison = left ? take_comparison(p) : -1;
  if (comparison < 0) return left;
  int32_t pending = p->pending_count;
  size_t mark = p->bytes.length;
  for (; comparison >= 0; comparison = take_comparison(p)) {
    td_text_add_char(&p->bytes, (char)comparison);
    if (!td_parser_push(p, td_parse_operand(p))) return NULL;
  }
  td_node *node = td_parser_node(p, TD_NODE_COMPARE, left->begin);
  if (!td_parser_collect(p, node, pending)) return NULL;
  node->a = left;
  node->ops = p->bytes.failed ? NULL : td_arena_take(p->arena, (size_t)node->count);
  if (!node->ops) return td_parser_memory(p);
  memcpy(node->ops, p->bytes.data + mark, (size_t)node->count);
  p->bytes.length = mark;
  return td_parser_close(p, node);
}

// inversion: 'not' inversion | comparison
static td_node *parse_inversion(td_parser *p) {
  if (td_parser_kind(p) != TD_TOKEN_NOT) return parse_comparison(p);
  uint32_t begin = td_parser_token(p)->begin;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  td_node *operand = parse_inversion(p), *node = operand ? td_parser_node(p, TD_NODE_NOT, begin) : NULL;
  td_parser_leave(p);
  if (!node) return NULL;
  node->a = operand;
  return td_parser_close(p, node);
}

// conjunction: inversion { 'and' inversion }
static td_node *parse_conjunction(td_parser *p) {
  td_node *left = parse_inversion(p);
  while (left && td_parser_take(p, TD_TOKEN_AND)) left = pair(p, TD_NODE_AND, 0, left, parse_inversion(p));
  return left;
}

// disjunction: conjunction { 'or' conjunction }
td_node *td_parse_disjunction(td_parser *p) {
  td_node *left = parse_conjunction(p);
  while (left && td_parser_take(p, TD_TOKEN_OR)) left = pair(p, TD_NODE_OR, 0, left, parse_conjunction(p));
  return left;
}

static td_node *parse_conditional(td_parser *p, td_node *value) { // at 'if'
  p->at++;
  td_node *test = td_parse_disjunction(p);
  if (!test) return NULL;
  if (!td_parser_take(p, TD_TOKEN_ELSE)) return td_parser_unexpected(p, "'else' of the conditional expression");
  if (!td_parser_enter(p)) return NULL;
  td_node *otherwise = td_parse_expression(p), *node = pair(p, TD_NODE_CONDITIONAL, 0, value, test);
  if (!node || !otherwise) return NULL;
  td_parser_leave(p);
  node->c = otherwise;
  return td_parser_close(p, node);
}

// expression: disjunction [ 'if' disjunction 'else' expression ] | lambda
td_node *td_parse_expression(td_parser *p) {
  td_node *node = td_parser_kind(p) == TD_TOKEN_LAMBDA ? td_parse_lambda(p) : td_parse_disjunction(p);
  if (node && node->kind != TD_NODE_LAMBDA && td_parser_kind(p) == TD_TOKEN_IF) node = parse_conditional(p, node);
  if (node && td_parser_kind(p) == TD_TOKEN_WALRUS) node = td_parser_unexpected(p, "an operator");
  return node;
}

// ---- lists of expressions ----

// starred: '*' operand | expression
td_node *td_parse_starred(td_parser *p) {
  if (td_parser_kind(p) != TD_TOKEN_MULTIPLY) return td_parse_expression(p);
  uint32_t begin = td_parser_token(p)->begin;
  p->at++;
  td_node *value = td_parse_operand(p), *node = value ? td_parser_node(p, TD_NODE_STARRED, begin) : NULL;
  if (!node) return NULL;
  node->a = value;
  return td_parser_close(p, node);
}

// { ',' item } [ ','] after first: a tuple of first and the items
static td_node *parse_tuple(td_parser *p, td_node *first, td_node *(*item)(td_parser *)) {
  int32_t pending = p->pending_count;
  if (!td_parser_push(p, first)) return NULL;
  while (td_parser_take(p, TD_TOKEN_COMMA)) {
    if (!td_parse_begins_expression(td_parser_kind(p))) break;
    if (!td_parser_push(p, item(p))) return NULL;
  }
  td_node *node = td_parser_node(p, TD_NODE_TUPLE, first->begin);
  return td_parser_collect(p, node, pending) ? td_parser_close(p, node) : NULL;
}

// expressions: starred { ',' starred } [ ',' ]
td_node *td_parse_expressions(td_parser *p) {
  td_node *first = td_parse_starred(p);
  if (first && td_parser_kind(p) == TD_TOKEN_COMMA) return parse_tuple(p, first, td_parse_starred);
  return first;
}

bool td_parser_check_value(td_parser *p, const td_node *node) {
  if (!node) return false;
  if (node->kind != TD_NODE_STARRED) return true;
  return td_parser_fail_node(p, node, "write *x, for a tuple", "a starred expression can't stand alone"), false;
}

td_node *td_parse_value(td_parser *p) {
  td_node *node = td_parse_expressions(p);
  return td_parser_check_value(p, node) ? node : NULL;
}

static td_node *parse_target(td_parser *p) { // [ '*' ] operand
  return td_parser_kind(p) == TD_TOKEN_MULTIPLY ? td_parse_starred(p) : td_parse_operand(p);
}

// targets: target { ',' target } [ ',' ]
td_node *td_parse_targets(td_parser *p) {
  if (!td_parse_begins_expression(td_parser_kind(p))) return td_parser_unexpected(p, "a name to assign to");
  td_node *node = parse_target(p);
  if (node && td_parser_kind(p) == TD_TOKEN_COMMA) node = parse_tuple(p, node, parse_target);
  return node && td_parser_target(p, node) ? node : NULL;
}
