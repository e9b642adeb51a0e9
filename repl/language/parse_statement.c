// Statements with blocks, and the whole script. A block is an indented run of lines or the rest of its header's line.
// Words of other languages at the beginning of a line get an error that says what is written here instead.
#include "repl/language/parse.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"

static bool parse_statement(td_parser *p);

// ---- blocks ----

static void *fail_colon(td_parser *p, const char *what) { // a block's ':' is missing
  const td_token *token = td_parser_token(p);
  uint32_t end = td_parser_end(p);
  switch (token->kind) {
  case TD_TOKEN_EQUAL:
    return td_parser_fail(p, token->begin, token->end, "use '==' to compare",
                          "'=' assigns: it can't stand in a condition");
  case TD_TOKEN_NEWLINE: return td_parser_fail(p, end, end, NULL, "':' is missing at the end of the '%s' line", what);
  case TD_TOKEN_LEFT_BRACE:
    return td_parser_fail(p, token->begin, token->end, "write ':' and indent the block", "blocks have no braces here");
  default: break;
  }
  bool then = td_parser_is_word(p, p->at, "then") || td_parser_is_word(p, p->at, "do");
  char expected[64];
  snprintf(expected, sizeof expected, "':' after the '%s'", what);
  td_parser_unexpected(p, expected);
  if (then && p->result == TD_PARSE_ERROR) td_parser_hint(p, "write ':' instead");
  return NULL;
}

static bool parse_lines(td_parser *p) { // the lines of an indented block, INDENT to DEDENT
  p->at++;
  if (!td_parser_enter(p)) return false;
  while (!td_parser_take(p, TD_TOKEN_DEDENT)) {
    if (!parse_statement(p)) return false;
  }
  td_parser_leave(p);
  return true;
}

// block: ':' ( simple-line | NEWLINE INDENT statement+ DEDENT )
td_node *td_parse_block(td_parser *p, const char *what) {
  if (!td_parser_take(p, TD_TOKEN_COLON)) return fail_colon(p, what);
  const td_token *first = td_parser_token(p);
  int32_t pending = p->pending_count;
  p->blocks++;
  if (td_parser_take(p, TD_TOKEN_NEWLINE)) {
    first = td_parser_token(p);
    if (first->kind != TD_TOKEN_INDENT) {
      uint32_t begin = p->tokens.items[p->at - 2].begin;
      if (td_parser_is_over(p)) return td_parser_incomplete(p, begin, "the block after ':' has no line yet");
      if (first->kind == TD_TOKEN_ERROR || first->kind == TD_TOKEN_INCOMPLETE)
        return td_parser_unexpected(p, "a block");
      return td_parser_fail(p, first->begin, first->end, NULL, "an indented block must follow the '%s' line", what);
    }
    if (!parse_lines(p)) return NULL;
  } else if (!td_parse_simple_line(p)) {
    return NULL;
  }
  p->blocks--;
  td_node *node = td_parser_node(p, TD_NODE_BLOCK, first->begin);
  return td_parser_collect(p, node, pending) ? node : NULL;
}

// ---- compound statements ----

static td_node *begin_statement(td_parser *p, int kind) { // takes the keyword
  uint32_t begin = td_parser_token(p)->begin;
  p->at++;
  return td_parser_node(p, kind, begin);
}

static bool parse_else(td_parser *p, td_node **block) { // [ 'else' block ]
  if (!td_parser_take(p, TD_TOKEN_ELSE)) return true;
  const td_token *token = td_parser_token(p);
  if (token->kind == TD_TOKEN_IF) {
    return td_parser_fail(p, token[-1].begin, token->end, "write 'elif'", "'else if' is one word here"), false;
  }
  return (*block = td_parse_block(p, "else"));
}

// if: 'if' expression block { 'elif' expression block } [ 'else' block ]
static td_node *parse_if(td_parser *p) {
  td_node *first = NULL, **place = &first, *node;
  do {
    const char *what = first ? "elif" : "if";
    if (!(node = begin_statement(p, TD_NODE_IF))) return NULL;
    *place = node;
    if (!(node->a = td_parse_expression(p)) || !(node->b = td_parse_block(p, what))) return NULL;
    node->end = td_parser_end(p);
    place = &node->c;
  } while (td_parser_kind(p) == TD_TOKEN_ELIF);
  return parse_else(p, place) ? first : NULL;
}

// while: 'while' expression block [ 'else' block ]
static td_node *parse_while(td_parser *p) {
  td_node *node = begin_statement(p, TD_NODE_WHILE);
  if (!node || !(node->a = td_parse_expression(p)) || !(node->b = td_parse_block(p, "while"))) return NULL;
  return parse_else(p, &node->c) ? node : NULL;
}

// for: 'for' targets 'in' expressions block [ 'else' block ]
static td_node *parse_for(td_parser *p) {
  td_node *node = begin_statement(p, TD_NODE_FOR);
  if (!node || !(node->a = td_parse_targets(p))) return NULL;
  if (!td_parser_take(p, TD_TOKEN_IN)) {
    td_parser_unexpected(p, "'in' after the loop's variable");
    if (td_parser_kind(p) == TD_TOKEN_EQUAL && p->result == TD_PARSE_ERROR)
      td_parser_hint(p, "write 'for i in range(n):'");
    return NULL;
  }
  node->b = td_parse_value(p);
  if (!node->b || !(node->c = td_parse_block(p, "for"))) return NULL;
  return parse_else(p, &node->d) ? node : NULL;
}

// item: expression [ 'as' target ]; pushes both
static bool parse_with_item(td_parser *p) {
  if (!td_parser_push(p, td_parse_expression(p))) return false;
  td_node *target = NULL;
  if (td_parser_take(p, TD_TOKEN_AS)) {
    target = td_parse_operand(p);
    if (!target || !td_parser_target(p, target)) return false;
  }
  return td_parser_push_optional(p, target);
}

static bool parse_with_parentheses(td_parser *p, uint32_t closing) { // '(' item { ',' item } [ ',' ] ')', nothing else
  p->at++;
  do {
    if (p->at == closing) break;
    if (!parse_with_item(p)) return false;
  } while (td_parser_take(p, TD_TOKEN_COMMA));
  if (p->at != closing) return false;
  p->at++;
  return true;
}

static bool parse_with_items(td_parser *p) {
  const td_token *open = td_parser_token(p);
  uint32_t at = p->at;
  int32_t pending = p->pending_count, depth = p->depth;
  bool enclosed = open->kind == TD_TOKEN_LEFT_PARENTHESIS && open->pair > (int32_t)at + 1 &&
                  p->tokens.items[open->pair + 1].kind == TD_TOKEN_COLON;
  if (enclosed && parse_with_parentheses(p, (uint32_t)open->pair)) return true;
  if (p->result == TD_PARSE_MEMORY) return false;
  p->at = at; // the parentheses belong to an expression
  p->pending_count = pending;
  p->depth = depth;
  p->bytes.length = 0;
  p->result = TD_PARSED;
  do {
    if (!parse_with_item(p)) return false;
  } while (td_parser_take(p, TD_TOKEN_COMMA));
  return true;
}

// with: 'with' ( item { ',' item } | '(' item { ',' item } [ ',' ] ')' ) block
static td_node *parse_with(td_parser *p) {
  td_node *node = begin_statement(p, TD_NODE_WITH);
  int32_t pending = p->pending_count;
  if (!node || !parse_with_items(p) || !td_parser_collect(p, node, pending)) return NULL;
  return (node->c = td_parse_block(p, "with")) ? node : NULL;
}

// except: 'except' [ expression [ 'as' NAME ] ] block
static td_node *parse_except(td_parser *p) {
  td_node *node = begin_statement(p, TD_NODE_EXCEPT);
  if (!node) return NULL;
  const td_token *token = td_parser_token(p);
  if (token->kind == TD_TOKEN_MULTIPLY) {
    return td_parser_fail(p, token->begin, token->end, "write 'except'", "'except*' is not in this language");
  }
  if (token->kind != TD_TOKEN_COLON && !(node->a = td_parse_expression(p))) return NULL;
  token = td_parser_token(p);
  if (token->kind == TD_TOKEN_COMMA) {
    return td_parser_fail(p, node->a->begin, token->end,
                          "write 'except (A, B):' for several classes, 'except A as e:' for a name",
                          "several exception classes need parentheses");
  }
  if (node->a && td_parser_take(p, TD_TOKEN_AS)) {
    uint32_t begin = td_parser_token(p)->begin;
    td_str *name = td_parser_name(p);
    if (!name || !(node->b = td_parser_node(p, TD_NODE_NAME, begin))) return NULL;
    node->b->name = name;
  }
  return (node->c = td_parse_block(p, "except")) ? node : NULL;
}

static bool parse_handlers(td_parser *p, td_node *node) {
  int32_t pending = p->pending_count;
  while (td_parser_kind(p) == TD_TOKEN_EXCEPT) {
    const td_token *token = td_parser_token(p);
    bool follows_bare = p->pending_count > pending && !p->pending[p->pending_count - 1]->a;
    if (follows_bare)
      return td_parser_fail(p, token->begin, token->end, NULL, "an 'except' without a class must be the last one"),
             false;
    if (!td_parser_push(p, parse_except(p))) return false;
  }
  return td_parser_collect(p, node, pending);
}

// try: 'try' block ( except+ [ 'else' block ] [ 'finally' block ] | 'finally' block )
static td_node *parse_try(td_parser *p) {
  td_node *node = begin_statement(p, TD_NODE_TRY);
  if (!node || !(node->a = td_parse_block(p, "try")) || !parse_handlers(p, node)) return NULL;
  if (node->count && !parse_else(p, &node->c)) return NULL;
  if (td_parser_take(p, TD_TOKEN_FINALLY) && !(node->d = td_parse_block(p, "finally"))) return NULL;
  if (node->count || node->d) return node;
  if (td_parser_is_over(p)) return td_parser_incomplete(p, node->begin, "'try' has no 'except' or 'finally' yet");
  td_parser_unexpected(p, "'except' or 'finally' after the 'try' block");
  if (td_parser_is_word(p, p->at, "catch") && p->result == TD_PARSE_ERROR) td_parser_hint(p, "write 'except'");
  return NULL;
}

// ---- statements ----

static td_node *parse_command(td_parser *p) { // %name, !command, ?name, name?
  const td_token *token = td_parser_token(p);
  const char *text = p->script->text + token->begin;
  uint32_t length = token->end - token->begin;
  bool help = text[0] == '?' || (text[0] != '!' && text[length - 1] == '?');
  p->at++;
  td_node *node = td_parser_node(p, TD_NODE_COMMAND, token->begin);
  if (!node) return NULL;
  node->op = help ? '?' : (uint8_t)text[0];
  td_str *line = td_str_new(p->interpreter, help ? text : text + 1, help ? length : length - 1);
  if (!line || !td_arena_hold(p->arena, td_from(line))) return td_parser_memory(p);
  node->value = (td_value){.tag = TD_TAG_OBJECT, .o = &line->object};
  if (!td_parser_take(p, TD_TOKEN_NEWLINE)) return td_parser_unexpected(p, "the end of the line");
  return node;
}

// Words that begin statements elsewhere. whole: any error on the line is the word's, not only one right after it.
static const struct foreign {
  const char *word;
  bool whole;
  const char *message, *hint;
} foreigners[] = {
    {"print", false, "'print' is a function here", "write print(...)"},
    {"exec", false, "'exec' is not in this language", "%run runs a file"},
    {"match", true, "'match' is not in this language", "write if and elif"},
    {"switch", true, "'switch' is not in this language", "write if and elif"},
    {"case", false, "'case' is not in this language", "write if and elif"},
    {"type", false, "'type' statements are not in this language", "assign: Name = value"},
    {"let", false, "a variable needs no declaration", "write name = value"},
    {"var", false, "a variable needs no declaration", "write name = value"},
    {"const", false, "a variable needs no declaration", "write name = value"},
    {"local", false, "a variable needs no declaration", "write name = value"},
    {"function", true, "functions begin with 'def'", "write def name(arguments):"},
    {"func", true, "functions begin with 'def'", "write def name(arguments):"},
    {"fn", true, "functions begin with 'def'", "write def name(arguments):"},
    {"elseif", true, "'elseif' is not a word here", "write 'elif'"},
    {"elsif", true, "'elsif' is not a word here", "write 'elif'"},
    {"unless", true, "'unless' is not a word here", "write 'if not'"},
    {"until", true, "'until' is not a word here", "write 'while not'"},
    {"foreach", true, "'foreach' is not a word here", "write 'for x in xs:'"},
    {"repeat", false, "'repeat' is not a word here", "write 'for _ in range(n):'"},
    {"do", true, "'do' is not a word here", "write 'while True:' with a 'break' at its end"},
    {"catch", true, "'catch' is not a word here", "write 'except'"},
    {"throw", false, "'throw' is not a word here", "write 'raise'"},
    {"delete", false, "'delete' is not a word here", "write 'del'"},
    {"include", false, "'include' is not a word here", "write 'import'"},
    {"require", false, "'require' is not a word here", "write 'import'"},
    {"struct", false, "'struct' is not a word here", "write class Name:"},
    {"echo", false, "'echo' is not a word here", "write print(...)"},
};

static bool on_one_line(const td_parser *p, uint32_t first, uint32_t last) {
  for (uint32_t i = first; i < last; i++) {
    if (p->tokens.items[i].kind == TD_TOKEN_NEWLINE) return false;
  }
  return true;
}

static void explain_foreign(td_parser *p, uint32_t first) { // a line that begins with first failed
  if (p->result != TD_PARSE_ERROR || p->tokens.items[first].kind != TD_TOKEN_NAME) return;
  for (size_t i = 0; i < sizeof foreigners / sizeof *foreigners; i++) {
    const struct foreign *row = &foreigners[i];
    if (!td_parser_is_word(p, first, row->word)) continue;
    bool follows = p->failed_at == first + 1 && td_parse_begins_expression(p->tokens.items[first + 1].kind);
    if (!follows && (!row->whole || !on_one_line(p, first, p->failed_at))) return;
    p->diagnostic->span = (td_span){p->tokens.items[first].begin, p->tokens.items[first].end};
    snprintf(p->diagnostic->message, sizeof p->diagnostic->message, "%s", row->message);
    td_parser_hint(p, row->hint);
    return;
  }
}

static td_node *fail_orphan(td_parser *p) { // a continuation of a statement that isn't there
  const td_token *token = td_parser_token(p);
  const char *word = td_token_rows[token->kind].spelling;
  const char *owner = token->kind == TD_TOKEN_ELIF   ? "an 'if'"
                      : token->kind == TD_TOKEN_ELSE ? "an 'if', 'for', 'while' or 'try'"
                                                     : "a 'try'";
  return td_parser_fail(p, token->begin, token->end, NULL, "'%s' belongs to %s at the same indentation above it", word,
                        owner);
}

static td_node *parse_compound(td_parser *p) { // NULL without failure: no compound statement begins here
  const td_token *token = td_parser_token(p);
  switch (token->kind) {
  case TD_TOKEN_IF: return parse_if(p);
  case TD_TOKEN_WHILE: return parse_while(p);
  case TD_TOKEN_FOR: return parse_for(p);
  case TD_TOKEN_WITH: return parse_with(p);
  case TD_TOKEN_TRY: return parse_try(p);
  case TD_TOKEN_DEF: return td_parse_function(p, token->begin);
  case TD_TOKEN_CLASS: return td_parse_class(p, token->begin);
  case TD_TOKEN_MATMUL: return td_parse_decorated(p);
  case TD_TOKEN_COMMAND: return parse_command(p);
  case TD_TOKEN_ELIF:
  case TD_TOKEN_ELSE:
  case TD_TOKEN_EXCEPT:
  case TD_TOKEN_FINALLY: return fail_orphan(p);
  case TD_TOKEN_ASYNC:
    return td_parser_fail(p, token->begin, token->end, "write it without 'async': calls run to their end",
                          "'async' is not in this language");
  case TD_TOKEN_INDENT:
    return td_parser_fail(p, token->begin, token->end, "does the line above end in ':'?", "unexpected indentation");
  default: return NULL;
  }
}

static bool parse_statement(td_parser *p) { // pushes one node or, for a line of several, all of them
  uint32_t first = p->at;
  td_node *node = parse_compound(p);
  if (node) return node->end = td_parser_end(p), td_parser_push(p, node);
  if (p->result != TD_PARSED) return false;
  if (td_parse_simple_line(p)) return true;
  explain_foreign(p, first);
  return false;
}

static void parse_script(td_parser *p, td_node **tree) {
  while (td_parser_kind(p) != TD_TOKEN_END) {
    if (!parse_statement(p)) return;
  }
  td_node *block = td_parser_node(p, TD_NODE_BLOCK, 0);
  if (td_parser_collect(p, block, 0)) *tree = block;
}

td_parse_result td_parse(td_script *script, td_arena *arena, td_interpreter *interpreter, td_node **tree,
                         td_diagnostic *diagnostic) {
  td_parser p = {
      .script = script, .arena = arena, .interpreter = interpreter, .diagnostic = diagnostic, .result = TD_PARSED};
  *tree = NULL;
  *diagnostic = (td_diagnostic){0};
  td_arena_keep(arena, script);
  td_text_add(&p.bytes, "");
  if (p.bytes.failed || !td_lexer_run(script, &p.tokens)) p.result = TD_PARSE_MEMORY;
  else parse_script(&p, tree);
  td_tokens_clear(&p.tokens);
  td_text_clear(&p.bytes);
  td_memory_free(p.pending);
  td_memory_free(p.names);
  return p.result;
}
