// Statements that fit on a line: expressions, the forms of assignment, imports, and those that begin with a keyword.
// Several may stand on a line with semicolons between; each is pushed on the parser's pending list.
#include "repl/language/parse.h"

static bool ends_statement(int kind) {
  return kind == TD_TOKEN_NEWLINE || kind == TD_TOKEN_SEMICOLON || kind == TD_TOKEN_END;
}

// ---- assignment ----

// assign: expressions { '=' expressions }: all but the last are targets
static td_node *parse_assign(td_parser *p, td_node *first) { // at '='
  int32_t pending = p->pending_count;
  td_node *value = first;
  while (td_parser_kind(p) == TD_TOKEN_EQUAL) {
    if (!td_parser_target(p, value) || !td_parser_push(p, value)) return NULL;
    p->at++;
    int kind = td_parser_kind(p);
    if (kind == TD_TOKEN_EXCLAMATION || kind == TD_TOKEN_REMAINDER) return td_parser_unexpected(p, "a value");
    if (!(value = td_parse_expressions(p))) return NULL;
  }
  td_node *node = td_parser_check_value(p, value) ? td_parser_node(p, TD_NODE_ASSIGN, first->begin) : NULL;
  if (!td_parser_collect(p, node, pending)) return NULL;
  node->b = value;
  return node;
}

// augment: target operator'=' expressions
static td_node *parse_augment(td_parser *p, td_node *target) {
  int operator= td_token_rows[td_parser_kind(p)].operator;
  if (target->kind == TD_NODE_TUPLE || target->kind == TD_NODE_LIST) {
    return td_parser_fail_node(p, target, NULL, "'%s' changes one target, not a list of them",
                               td_token_rows[td_parser_kind(p)].spelling);
  }
  if (!td_parser_target(p, target)) return NULL;
  p->at++;
  td_node *value = td_parse_value(p), *node = value ? td_parser_node(p, TD_NODE_AUGMENT, target->begin) : NULL;
  if (!node) return NULL;
  node->op = (uint8_t) operator;
  node->a = target;
  node->b = value;
  return node;
}

// annotated: target ':' expression [ '=' expressions ]
static td_node *parse_annotated(td_parser *p, td_node *target) {
  const td_token *colon = td_parser_token(p);
  if (td_parser_next_kind(p) == TD_TOKEN_NEWLINE) {
    return td_parser_fail(p, colon->begin, colon->end, "blocks begin with if, for, while, def, class, with or try",
                          "this ':' opens no block");
  }
  if (target->kind == TD_NODE_TUPLE || target->kind == TD_NODE_LIST) {
    return td_parser_fail_node(p, target, NULL, "an annotation belongs to one target");
  }
  if (!td_parser_target(p, target)) return NULL;
  p->at++;
  if (!td_parse_expression(p)) return NULL;
  td_node *value = NULL;
  if (td_parser_take(p, TD_TOKEN_EQUAL) && !(value = td_parse_value(p))) return NULL;
  td_node *node = td_parser_node(p, TD_NODE_ANNOTATED, target->begin);
  if (!node) return NULL;
  node->a = target;
  node->b = value;
  return node;
}

static td_node *parse_expression_statement(td_parser *p) {
  td_node *value = td_parse_expressions(p);
  if (!value) return NULL;
  int kind = td_parser_kind(p);
  if (kind == TD_TOKEN_EQUAL) return parse_assign(p, value);
  if (kind >= TD_TOKEN_POWER_EQUAL && kind <= TD_TOKEN_XOR_EQUAL && kind != TD_TOKEN_ELLIPSIS)
    return parse_augment(p, value);
  if (kind == TD_TOKEN_COLON) return parse_annotated(p, value);
  td_node *node = td_parser_check_value(p, value) ? td_parser_node(p, TD_NODE_EXPRESSION, value->begin) : NULL;
  if (node) node->a = value;
  return node;
}

// ---- statements that begin with a keyword ----

static td_node *keyword_node(td_parser *p, int kind) { // takes the keyword
  p->at++;
  return td_parser_node(p, kind, p->tokens.items[p->at - 1].begin);
}

// return: 'return' [ expressions ]
static td_node *parse_return(td_parser *p) {
  td_node *node = keyword_node(p, TD_NODE_RETURN);
  if (node && !ends_statement(td_parser_kind(p)) && !(node->a = td_parse_value(p))) return NULL;
  return node;
}

// raise: 'raise' [ expression [ 'from' expression ] ]
static td_node *parse_raise(td_parser *p) {
  td_node *node = keyword_node(p, TD_NODE_RAISE);
  if (!node || ends_statement(td_parser_kind(p))) return node;
  if (!(node->a = td_parse_expression(p))) return NULL;
  const td_token *token = td_parser_token(p);
  if (token->kind == TD_TOKEN_COMMA) {
    return td_parser_fail(p, token->begin, token->end, "write raise ValueError(\"text\")",
                          "'raise' takes one exception");
  }
  if (td_parser_take(p, TD_TOKEN_FROM) && !(node->b = td_parse_expression(p))) return NULL;
  return node;
}

// assert: 'assert' expression [ ',' expression ]
static td_node *parse_assert(td_parser *p) {
  td_node *node = keyword_node(p, TD_NODE_ASSERT);
  if (!node || !(node->a = td_parse_expression(p))) return NULL;
  if (td_parser_take(p, TD_TOKEN_COMMA) && !(node->b = td_parse_expression(p))) return NULL;
  return node;
}

static bool check_deletable(td_parser *p, const td_node *node) {
  if (node->kind == TD_NODE_NAME || node->kind == TD_NODE_ATTRIBUTE || node->kind == TD_NODE_INDEX) return true;
  if (node->kind != TD_NODE_TUPLE && node->kind != TD_NODE_LIST) {
    return td_parser_fail_node(p, node, NULL, "'del' takes names, attributes and items"), false;
  }
  for (int32_t i = 0; i < node->count; i++) {
    if (!check_deletable(p, node->items[i])) return false;
  }
  return true;
}

// delete: 'del' target { ',' target } [ ',' ]
static td_node *parse_delete(td_parser *p) {
  td_node *node = keyword_node(p, TD_NODE_DELETE), *targets = node ? td_parse_expressions(p) : NULL;
  if (!targets || !check_deletable(p, targets)) return NULL;
  int32_t pending = p->pending_count;
  bool several = targets->kind == TD_NODE_TUPLE && !(targets->flags & TD_NODE_PARENTHESES);
  for (int32_t i = 0; several && i < targets->count; i++) {
    if (!td_parser_push(p, targets->items[i])) return NULL;
  }
  if (!several && !td_parser_push(p, targets)) return NULL;
  return td_parser_collect(p, node, pending) ? node : NULL;
}

static td_node *parse_name_node(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  td_str *name = td_parser_name(p);
  td_node *node = name ? td_parser_node(p, TD_NODE_NAME, begin) : NULL;
  if (node) node->name = name;
  return node;
}

// global: ('global' | 'nonlocal') NAME { ',' NAME }
static td_node *parse_global(td_parser *p) {
  bool nonlocal = td_parser_kind(p) == TD_TOKEN_NONLOCAL;
  td_node *node = keyword_node(p, TD_NODE_GLOBAL);
  int32_t pending = p->pending_count;
  do {
    if (!td_parser_push(p, parse_name_node(p))) return NULL;
  } while (td_parser_take(p, TD_TOKEN_COMMA));
  if (!td_parser_collect(p, node, pending)) return NULL;
  if (nonlocal) node->op = 'n';
  return node;
}

// ---- imports ----

static bool add_dotted(td_parser *p) { // NAME { '.' NAME }, added to the scratch
  for (;;) {
    td_str *name = td_parser_name(p);
    if (!name) return false;
    td_text_add_bytes(&p->bytes, name->data, name->length);
    if (!td_parser_take(p, TD_TOKEN_DOT)) return true;
    td_text_add_char(&p->bytes, '.');
  }
}

static bool take_module(td_parser *p, td_node *node, size_t mark) { // the scratch from mark on becomes node's value
  td_str *name = p->bytes.failed ? td_parser_memory(p)
                                 : td_parser_intern(p, p->bytes.data + mark, (uint32_t)(p->bytes.length - mark));
  p->bytes.length = mark;
  if (!name) return false;
  node->value = (td_value){.tag = TD_TAG_OBJECT, .o = &name->object};
  return true;
}

static td_node *first_name(td_parser *p, const td_node *node,
                           uint32_t begin) { // of a dotted name: what import a.b binds
  const td_str *module = td_as_str(node->value);
  uint32_t length = 0;
  while (length < module->length && module->data[length] != '.') length++;
  td_str *name = td_parser_intern(p, module->data, length);
  td_node *target = name ? td_parser_node(p, TD_NODE_NAME, begin) : NULL;
  if (target) target->name = name;
  return target;
}

// import: 'import' dotted [ 'as' NAME ] { ',' dotted [ 'as' NAME ] }; pushes one node for each
static bool parse_import(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  p->at++;
  do {
    uint32_t name_begin = td_parser_token(p)->begin;
    size_t mark = p->bytes.length;
    td_node *node = add_dotted(p) ? td_parser_node(p, TD_NODE_IMPORT, begin) : NULL;
    if (!node || !take_module(p, node, mark)) return false;
    node->op = td_parser_take(p, TD_TOKEN_AS);
    node->a = node->op ? parse_name_node(p) : first_name(p, node, name_begin);
    node->end = td_parser_end(p);
    if (!node->a || !td_parser_push(p, node)) return false;
  } while (td_parser_take(p, TD_TOKEN_COMMA));
  return true;
}

static td_node *parse_imported(td_parser *p) { // NAME [ 'as' NAME ]
  uint32_t begin = td_parser_token(p)->begin;
  td_node *target = parse_name_node(p), *node = target ? td_parser_node(p, TD_NODE_KEYWORD, begin) : NULL;
  if (!node) return NULL;
  node->name = target->name;
  node->a = td_parser_take(p, TD_TOKEN_AS) ? parse_name_node(p) : target;
  node->end = td_parser_end(p);
  return node->a ? node : NULL;
}

static bool parse_imported_names(td_parser *p) { // '*' | names | '(' names [ ',' ] ')'
  if (td_parser_take(p, TD_TOKEN_MULTIPLY)) return true;
  bool parentheses = td_parser_take(p, TD_TOKEN_LEFT_PARENTHESIS);
  do {
    if (!td_parser_push(p, parse_imported(p))) return false;
  } while (td_parser_take(p, TD_TOKEN_COMMA) && !(parentheses && td_parser_kind(p) == TD_TOKEN_RIGHT_PARENTHESIS));
  return !parentheses || td_parser_expect(p, TD_TOKEN_RIGHT_PARENTHESIS, "the imported names");
}

// from: 'from' { '.' } dotted 'import' names
static td_node *parse_from(td_parser *p) {
  td_node *node = keyword_node(p, TD_NODE_FROM_IMPORT);
  if (!node) return NULL;
  size_t mark = p->bytes.length;
  for (;;) {
    if (td_parser_take(p, TD_TOKEN_DOT)) td_text_add(&p->bytes, ".");
    else if (td_parser_take(p, TD_TOKEN_ELLIPSIS)) td_text_add(&p->bytes, "...");
    else break;
  }
  bool relative = p->bytes.length > mark;
  if ((!relative || td_parser_kind(p) == TD_TOKEN_NAME) && !add_dotted(p)) return NULL;
  if (!take_module(p, node, mark) || !td_parser_expect(p, TD_TOKEN_IMPORT, "the module's name")) return NULL;
  int32_t pending = p->pending_count;
  if (!parse_imported_names(p) || !td_parser_collect(p, node, pending)) return NULL;
  node->end = td_parser_end(p);
  static const char future[] = "__future__"; // tells Python what this language does anyway
  const td_str *module = td_as_str(node->value);
  bool none = module->length == sizeof future - 1 && __builtin_memcmp(module->data, future, sizeof future - 1) == 0;
  return none ? td_parser_node(p, TD_NODE_PASS, node->begin) : node;
}

// ---- lines ----

static td_node *parse_small(td_parser *p) { // one statement that makes one node
  switch (td_parser_kind(p)) {
  case TD_TOKEN_PASS: return keyword_node(p, TD_NODE_PASS);
  case TD_TOKEN_BREAK: return keyword_node(p, TD_NODE_BREAK);
  case TD_TOKEN_CONTINUE: return keyword_node(p, TD_NODE_CONTINUE);
  case TD_TOKEN_RETURN: return parse_return(p);
  case TD_TOKEN_RAISE: return parse_raise(p);
  case TD_TOKEN_ASSERT: return parse_assert(p);
  case TD_TOKEN_DEL: return parse_delete(p);
  case TD_TOKEN_GLOBAL:
  case TD_TOKEN_NONLOCAL: return parse_global(p);
  case TD_TOKEN_FROM: return parse_from(p);
  default: return parse_expression_statement(p);
  }
}

static bool parse_one(td_parser *p) {
  td_node *node = parse_small(p);
  if (node) node->end = td_parser_end(p);
  return td_parser_push(p, node);
}

static bool is_compound(int kind) {
  return kind == TD_TOKEN_IF || kind == TD_TOKEN_FOR || kind == TD_TOKEN_WHILE || kind == TD_TOKEN_DEF ||
         kind == TD_TOKEN_CLASS || kind == TD_TOKEN_WITH || kind == TD_TOKEN_TRY || kind == TD_TOKEN_ELIF ||
         kind == TD_TOKEN_ELSE;
}

bool td_parse_simple_line(td_parser *p) {
  for (;;) {
    const td_token *token = td_parser_token(p);
    if (is_compound(token->kind)) {
      return td_parser_fail(p, token->begin, token->end, NULL, "'%s' must begin a line of its own",
                            td_token_rows[token->kind].spelling),
             false;
    }
    if (token->kind == TD_TOKEN_IMPORT ? !parse_import(p) : !parse_one(p)) return false;
    if (!td_parser_take(p, TD_TOKEN_SEMICOLON)) break;
    if (td_parser_kind(p) != TD_TOKEN_NEWLINE) continue;
    td_node *last = p->pending[p->pending_count - 1];
    if (last->kind == TD_NODE_EXPRESSION && !p->blocks) last->flags |= TD_NODE_HIDE;
    break;
  }
  if (td_parser_take(p, TD_TOKEN_NEWLINE)) return true;
  td_parser_unexpected(p, "the end of the line");
  return false;
}
