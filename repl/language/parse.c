// The parser's ground: walking the tokens, failing with a place, making nodes, names, and the check of what can be
// assigned to. The height of an expression is kept in its node's slot while parsing, so that no tree gets so high that
// walking it could exhaust the stack.
#include "repl/language/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"

bool td_parser_take(td_parser *p, int kind) {
  if (td_parser_kind(p) != kind) return false;
  p->at++;
  return true;
}

bool td_parser_enter(td_parser *p) {
  if (++p->depth <= TD_NESTING_MAX) return true;
  const td_token *token = td_parser_token(p);
  td_parser_fail(p, token->begin, token->end, "give inner parts names of their own", "nested deeper than %d",
                 TD_NESTING_MAX);
  return false;
}

static void fail_list(td_parser *p, uint32_t begin, uint32_t end, const char *hint, const char *format, va_list list) {
  if (p->result != TD_PARSED) return;
  td_diagnostic *diagnostic = p->diagnostic;
  diagnostic->span = (td_span){begin, end};
  vsnprintf(diagnostic->message, sizeof diagnostic->message, format, list);
  snprintf(diagnostic->hint, sizeof diagnostic->hint, "%s", hint ? hint : "");
  p->result = TD_PARSE_ERROR;
  p->failed_at = p->at;
}

void *td_parser_fail(td_parser *p, uint32_t begin, uint32_t end, const char *hint, const char *format, ...) {
  va_list list;
  va_start(list, format);
  fail_list(p, begin, end, hint, format, list);
  va_end(list);
  return NULL;
}

void *td_parser_fail_node(td_parser *p, const td_node *node, const char *hint, const char *format, ...) {
  va_list list;
  va_start(list, format);
  fail_list(p, node->begin, node->end, hint, format, list);
  va_end(list);
  return NULL;
}

void td_parser_hint(td_parser *p, const char *hint) {
  snprintf(p->diagnostic->hint, sizeof p->diagnostic->hint, "%s", hint);
}

bool td_parser_is_over(const td_parser *p) {
  uint32_t at = p->at;
  while (p->tokens.items[at].kind == TD_TOKEN_DEDENT) at++;
  return p->tokens.items[at].kind == TD_TOKEN_END;
}

void *td_parser_incomplete(td_parser *p, uint32_t begin, const char *message) {
  if (p->result != TD_PARSED) return NULL;
  td_parser_fail(p, begin, td_parser_end(p), NULL, "%s", message);
  p->result = TD_PARSE_INCOMPLETE;
  return NULL;
}

void *td_parser_memory(td_parser *p) {
  if (p->result == TD_PARSED) p->result = TD_PARSE_MEMORY;
  return NULL;
}

static bool fail_lexical(td_parser *p) { // the lexer stopped here: its problem is the parse's
  int kind = td_parser_kind(p);
  if (kind != TD_TOKEN_ERROR && kind != TD_TOKEN_INCOMPLETE) return false;
  if (p->result != TD_PARSED) return true;
  *p->diagnostic = p->tokens.problem;
  p->result = kind == TD_TOKEN_ERROR ? TD_PARSE_ERROR : TD_PARSE_INCOMPLETE;
  p->failed_at = p->at;
  return true;
}

// An error on a later line than a bracket that is never closed is the bracket's.
static bool fail_bracket(td_parser *p) {
  const td_token *token = td_parser_token(p);
  if (token->bracket < 0) return false;
  const td_token *open = &p->tokens.items[token->bracket];
  int line, here;
  td_source_position(p->script, open->begin, &line, NULL);
  td_source_position(p->script, token->begin, &here, NULL);
  if (open->pair >= 0 || line == here) return false;
  td_parser_fail(p, open->begin, open->end, NULL, "'%c' is never closed", p->script->text[open->begin]);
  return true;
}

static void describe(const td_parser *p, const td_token *token, char *text, size_t size) {
  int length = (int)(token->end - token->begin);
  if (token->kind == TD_TOKEN_NAME)
    snprintf(text, size, "'%.*s'", length < 40 ? length : 40, p->script->text + token->begin);
  else if (token->kind >= TD_TOKEN_POWER_EQUAL) snprintf(text, size, "'%s'", td_token_rows[token->kind].spelling);
  else snprintf(text, size, "%s", td_token_rows[token->kind].spelling);
}

static const char *habit(const td_parser *p) { // a hint where tokens look like another language's
  const td_token *token = td_parser_token(p), *before = p->at ? token - 1 : token;
  bool touching = p->at && before->end == token->begin;
  int kind = token->kind, last = p->at ? before->kind : TD_TOKEN_END;
  int earlier = p->at > 1 && (before - 1)->end == before->begin ? (before - 1)->kind : TD_TOKEN_END;
  if (kind == TD_TOKEN_EXCLAMATION) return "write 'not x'";
  if (kind == TD_TOKEN_WALRUS) return "assign on a line of its own";
  if (touching && kind == TD_TOKEN_AND_BITS && last == TD_TOKEN_AND_BITS) return "write 'and'";
  if (touching && kind == TD_TOKEN_OR_BITS && last == TD_TOKEN_OR_BITS) return "write 'or'";
  if (touching && kind == TD_TOKEN_GREATER && last == TD_TOKEN_LESS) return "write '!='";
  if (touching && kind == TD_TOKEN_EQUAL && (last == TD_TOKEN_EQUAL_EQUAL || last == TD_TOKEN_NOT_EQUAL))
    return "write '==' or '!='";
  if (last == TD_TOKEN_ADD && earlier == TD_TOKEN_ADD) return "there is no '++': write x += 1";
  if (last == TD_TOKEN_SUBTRACT && earlier == TD_TOKEN_SUBTRACT) return "there is no '--': write x -= 1";
  if (kind == TD_TOKEN_FLOOR_DIVIDE || (kind == TD_TOKEN_DIVIDE && td_parser_next_kind(p) == TD_TOKEN_MULTIPLY))
    return "comments begin with '#'";
  if (kind == TD_TOKEN_REMAINDER || kind == TD_TOKEN_COMMAND) return "a %command stands alone on its line";
  return NULL;
}

void *td_parser_unexpected(td_parser *p, const char *expected) {
  if (fail_lexical(p) || fail_bracket(p)) return NULL;
  const td_token *token = td_parser_token(p);
  if (token->kind == TD_TOKEN_WALRUS) {
    return td_parser_fail(p, token->begin, token->end, habit(p), "':=' is not in this language");
  }
  char found[64];
  describe(p, token, found, sizeof found);
  uint32_t begin = token->begin, end = token->end;
  if (token->kind == TD_TOKEN_NEWLINE || token->kind == TD_TOKEN_DEDENT || token->kind == TD_TOKEN_END)
    begin = end = td_parser_end(p);
  return td_parser_fail(p, begin, end, habit(p), "expected %s, found %s", expected, found);
}

bool td_parser_expect(td_parser *p, int kind, const char *after) {
  if (td_parser_take(p, kind)) return true;
  char expected[120];
  snprintf(expected, sizeof expected, kind >= TD_TOKEN_POWER_EQUAL ? "'%s'%s%s" : "%s%s%s",
           td_token_rows[kind].spelling, after ? " after " : "", after ? after : "");
  td_parser_unexpected(p, expected);
  return false;
}

// ---- nodes ----

td_node *td_parser_node(td_parser *p, int kind, uint32_t begin) {
  td_node *node = td_node_new(p->arena, (td_kind_of_node)kind, p->script, begin, td_parser_end(p));
  return node ? node : td_parser_memory(p);
}

td_node *td_parser_close(td_parser *p, td_node *node) {
  const td_node *parts[] = {node->a, node->b, node->c, node->d};
  int32_t height = 0;
  for (int i = 0; i < 4; i++) {
    if (parts[i] && parts[i]->slot > height) height = parts[i]->slot;
  }
  for (int32_t i = 0; i < node->count; i++) {
    if (node->items[i] && node->items[i]->slot > height) height = node->items[i]->slot;
  }
  node->slot = height + 1;
  node->end = td_parser_end(p);
  if (node->slot <= TD_HEIGHT_MAX) return node;
  const td_token *token = td_parser_token(p);
  return td_parser_fail(p, token->begin, token->end, "add up a list with sum(), or split it into several lines",
                        "the expression chains more than %d operations", TD_HEIGHT_MAX);
}

bool td_parser_push_optional(td_parser *p, td_node *node) {
  if (p->pending_count == p->pending_capacity) {
    int32_t capacity = p->pending_capacity ? p->pending_capacity * 2 : 64;
    td_node **pending = td_memory_resize(p->pending, (size_t)capacity * sizeof *pending);
    if (!pending) return td_parser_memory(p), false;
    p->pending = pending;
    p->pending_capacity = capacity;
  }
  p->pending[p->pending_count++] = node;
  return true;
}

bool td_parser_push(td_parser *p, td_node *node) { return node && td_parser_push_optional(p, node); }

bool td_parser_collect(td_parser *p, td_node *node, int32_t mark) {
  int32_t count = p->pending_count - mark;
  p->pending_count = mark;
  if (!node) return false;
  if (!count) return true;
  node->items = td_arena_take(p->arena, (size_t)count * sizeof *node->items);
  if (!node->items) return td_parser_memory(p), false;
  memcpy(node->items, p->pending + mark, (size_t)count * sizeof *node->items);
  node->count = count;
  return true;
}

// ---- names ----

static uint32_t hash_bytes(const char *bytes, uint32_t length) { // FNV-1a
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
  return hash;
}

static td_str **find_name(const td_parser *p, const char *bytes, uint32_t length) { // its place in the table
  uint32_t mask = p->name_capacity - 1, at = hash_bytes(bytes, length) & mask;
  while (p->names[at] && (p->names[at]->length != length || memcmp(p->names[at]->data, bytes, length)))
    at = (at + 1) & mask;
  return &p->names[at];
}

static bool grow_names(td_parser *p) {
  td_str **old = p->names;
  uint32_t old_capacity = p->name_capacity;
  uint32_t capacity = old_capacity ? old_capacity * 2 : 64;
  td_str **names = td_memory_new_zero(capacity * sizeof *names);
  if (!names) return td_parser_memory(p), false;
  p->names = names;
  p->name_capacity = capacity;
  for (uint32_t i = 0; i < old_capacity; i++) {
    if (old[i]) *find_name(p, old[i]->data, old[i]->length) = old[i];
  }
  td_memory_free(old);
  return true;
}

td_str *td_parser_intern(td_parser *p, const char *bytes, uint32_t length) {
  if (p->name_count * 2 >= p->name_capacity && !grow_names(p)) return NULL;
  td_str **place = find_name(p, bytes, length), *str = *place;
  if (str) return str;
  str = td_str_intern(p->interpreter, bytes, length);
  if (!str || !td_arena_hold(p->arena, td_from(str))) return td_parser_memory(p);
  p->name_count++;
  *place = str;
  return str;
}

static td_str *mangle(td_parser *p, const char *bytes, uint32_t length) { // __x in class C: _C__x
  const char *class_name = p->class_name->data;
  while (*class_name == '_') class_name++;
  if (!*class_name) return td_parser_intern(p, bytes, length);
  td_text text = {0};
  td_text_add_char(&text, '_');
  td_text_add(&text, class_name);
  td_text_add_bytes(&text, bytes, length);
  td_str *name = text.failed ? td_parser_memory(p) : td_parser_intern(p, text.data, (uint32_t)text.length);
  td_text_clear(&text);
  return name;
}

td_str *td_parser_name(td_parser *p) {
  const td_token *token = td_parser_token(p);
  if (token->kind != TD_TOKEN_NAME) {
    if (td_token_is_keyword(token->kind)) {
      return td_parser_fail(p, token->begin, token->end, NULL, "'%s' is a keyword: it can't be a name",
                            td_token_rows[token->kind].spelling);
    }
    return td_parser_unexpected(p, "a name");
  }
  p->at++;
  const char *bytes = p->script->text + token->begin;
  uint32_t length = token->end - token->begin;
  bool private = p->class_name && length > 2 && bytes[0] == '_' && bytes[1] == '_' &&
                 (bytes[length - 1] != '_' || bytes[length - 2] != '_');
  return private ? mangle(p, bytes, length) : td_parser_intern(p, bytes, length);
}

bool td_parser_is_word(const td_parser *p, uint32_t token, const char *word) {
  if (token >= p->tokens.count) return false;
  const td_token *t = &p->tokens.items[token];
  size_t length = strlen(word);
  return t->kind == TD_TOKEN_NAME && t->end - t->begin == length &&
         memcmp(p->script->text + t->begin, word, length) == 0;
}

td_prototype *td_parser_prototype(td_parser *p, td_str *name, uint32_t begin) {
  td_prototype *prototype = name ? td_arena_take(p->arena, sizeof *prototype) : NULL;
  if (!prototype) return td_parser_memory(p);
  prototype->name = name;
  prototype->script = p->script;
  prototype->arena = p->arena;
  prototype->span = (td_span){begin, begin};
  return prototype;
}

// ---- targets ----

static const char *noun_of(const td_node *node) {
  switch (node->kind) {
  case TD_NODE_CONSTANT:
    return td_is_none(node->value)          ? "None"
           : node->value.tag != TD_TAG_BOOL ? "a literal"
           : node->value.i                  ? "True"
                                            : "False";
  case TD_NODE_CALL: return "a function call";
  case TD_NODE_COMPARE: return "a comparison";
  case TD_NODE_LAMBDA: return "a lambda";
  case TD_NODE_CONDITIONAL: return "a conditional expression";
  case TD_NODE_FSTRING: return "an f-string";
  case TD_NODE_DICT: return "a dict display";
  case TD_NODE_SET: return "a set display";
  case TD_NODE_GENERATOR: return "a generator expression";
  case TD_NODE_LIST_COMPREHENSION:
  case TD_NODE_SET_COMPREHENSION:
  case TD_NODE_DICT_COMPREHENSION: return "a comprehension";
  default: return "an expression";
  }
}

static bool check_targets(td_parser *p, const td_node *node) { // items of a tuple or list
  bool starred = false;
  for (int32_t i = 0; i < node->count; i++) {
    const td_node *item = node->items[i];
    if (item->kind == TD_NODE_STARRED) {
      if (starred) return td_parser_fail_node(p, item, NULL, "two starred targets in one assignment"), false;
      starred = true;
      item = item->a;
    }
    if (!td_parser_target(p, item)) return false;
  }
  return true;
}

bool td_parser_target(td_parser *p, const td_node *node) {
  switch (node->kind) {
  case TD_NODE_NAME:
  case TD_NODE_ATTRIBUTE:
  case TD_NODE_INDEX: return true;
  case TD_NODE_TUPLE:
  case TD_NODE_LIST: return check_targets(p, node);
  case TD_NODE_STARRED:
    td_parser_fail_node(p, node, "write a comma after it: *x, = values", "a starred target must be in a list or tuple");
    return false;
  default: {
    bool compares = node->kind == TD_NODE_CALL || node->kind == TD_NODE_BINARY || node->kind == TD_NODE_COMPARE;
    td_parser_fail_node(p, node, compares ? "'==' compares, '=' assigns" : NULL, "can't assign to %s", noun_of(node));
    return false;
  }
  }
}
