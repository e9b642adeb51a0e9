// Nodes of the tree and their printed form, which tests compare and people read: a line for a statement, its blocks
// indented under it, expressions as (kind children). A resolved name shows where it lives: x@2 in a slot, x&2 in a cell
// in a slot, x^2 in a class body's slot; a plain x is global.
#include "repl/language/syntax.h"

#include <ctype.h>
#include <inttypes.h>

static const char *const kinds[] = {
#define X(KIND, text) [TD_NODE_##KIND] = #KIND,
    TD_EXPRESSIONS(X) TD_STATEMENTS(X)
#undef X
};

static const char *const operators[] = {
#define X(NAME, spelling, method) [TD_BINARY_##NAME] = spelling,
    TD_OPERATORS(X)
#undef X
        [TD_UNARY_NEGATIVE] = "-",
    [TD_UNARY_POSITIVE] = "+", [TD_UNARY_INVERT] = "~"};

static const char *const comparisons[] = {
    [TD_COMPARE_EQUAL] = "==",      [TD_COMPARE_NOT_EQUAL] = "!=",  [TD_COMPARE_LESS] = "<",
    [TD_COMPARE_LESS_EQUAL] = "<=", [TD_COMPARE_GREATER] = ">",     [TD_COMPARE_GREATER_EQUAL] = ">=",
    [TD_COMPARE_IN] = "in",         [TD_COMPARE_NOT_IN] = "not in", [TD_COMPARE_IS] = "is",
    [TD_COMPARE_IS_NOT] = "is not"};

td_node *td_node_new(td_arena *arena, td_kind_of_node kind, const td_script *script, uint32_t begin, uint32_t end) {
  td_node *node = td_arena_take(arena, sizeof *node);
  if (!node) return NULL;
  node->kind = (uint8_t)kind;
  node->script = script->id;
  node->begin = begin;
  node->end = end;
  return node;
}

const char *td_node_kind_name(int kind) { return kind >= 0 && kind < TD_NODE_COUNT ? kinds[kind] : "?"; }

static void dump_expression(const td_node *node, td_text *text);

static void dump_text(const td_str *str, td_text *text) {
  td_text_add_char(text, '\'');
  for (uint32_t i = 0; i < str->length; i++) {
    char c = str->data[i];
    if (c == '\n') td_text_add(text, "\\n");
    else if (c == '\'' || c == '\\') td_text_print(text, "\\%c", c);
    else if ((unsigned char)c < 0x20 || c == 0x7f) td_text_print(text, "\\x%02x", (unsigned char)c);
    else td_text_add_char(text, c);
  }
  td_text_add_char(text, '\'');
}

static void dump_value(td_value value, td_text *text) {
  char number[TD_NUMBER_TEXT];
  switch (value.tag) {
  case TD_TAG_NIL: td_text_add(text, "_"); break;
  case TD_TAG_NONE: td_text_add(text, "None"); break;
  case TD_TAG_BOOL: td_text_add(text, value.i ? "True" : "False"); break;
  case TD_TAG_INT: td_text_print(text, "%" PRId64, value.i); break;
  case TD_TAG_DOUBLE:
    td_number_print(number, value.f);
    td_text_add(text, number);
    break;
  default:
    if (td_is(value, &td_str_type)) dump_text(td_as_str(value), text);
    else td_text_add(text, "...");
  }
}

static void dump_kind(const td_node *node, td_text *text) {
  for (const char *c = td_node_kind_name(node->kind); *c; c++) {
    td_text_add_char(text, *c == '_' ? '-' : (char)tolower((unsigned char)*c));
  }
}

static void dump_name(const td_node *node, td_text *text) {
  static const char marks[] = {[TD_SCOPE_LOCAL] = '@', [TD_SCOPE_CELL] = '&', [TD_SCOPE_CLASS] = '^'};
  td_text_add(text, node->name->data);
  if (node->scope != TD_SCOPE_GLOBAL) td_text_print(text, "%c%d", marks[node->scope], node->slot);
}

static void dump_parameters(const td_prototype *prototype, td_text *text) {
  int32_t named = prototype->positional + prototype->keyword_only;
  int32_t count = named + prototype->star + prototype->double_star;
  td_text_add_char(text, '(');
  for (int32_t i = 0; i < count; i++) {
    const td_parameter *parameter = &prototype->parameters[i];
    if (i) td_text_add_char(text, ' ');
    if (i == prototype->positional && i < named) td_text_add(text, "* ");
    if (i >= named) td_text_add(text, i == named && prototype->star ? "*" : "**");
    td_text_add(text, parameter->name->data);
    if (parameter->fallback) {
      td_text_add_char(text, '=');
      dump_expression(parameter->fallback, text);
    }
    if (i + 1 == prototype->positional_only) td_text_add(text, " /");
  }
  td_text_add_char(text, ')');
}

static void dump_child(const td_node *node, td_text *text) {
  td_text_add_char(text, ' ');
  if (node) dump_expression(node, text);
  else td_text_add_char(text, '_');
}

static void dump_children(const td_node *node, td_text *text) { // a, b, c up to the last that is there, then items
  const td_node *parts[] = {node->a, node->b, node->c};
  int last = node->kind == TD_NODE_SLICE ? 3 : node->c ? 3 : node->b ? 2 : node->a ? 1 : 0;
  for (int i = 0; i < last; i++) dump_child(parts[i], text);
  for (int32_t i = 0; i < node->count; i++) {
    if (node->ops) td_text_print(text, " %s", comparisons[node->ops[i]]);
    dump_child(node->items[i], text);
  }
}

static void dump_clause(const td_node *node, td_text *text) { // COMPREHENSION_FOR
  td_text_add(text, "(for");
  dump_child(node->a, text);
  td_text_add(text, " in");
  dump_child(node->b, text);
  for (int32_t i = 0; i < node->count; i++) {
    td_text_add(text, " if");
    dump_child(node->items[i], text);
  }
  td_text_add_char(text, ')');
}

static void dump_expression(const td_node *node, td_text *text) {
  switch (node->kind) {
  case TD_NODE_CONSTANT: dump_value(node->value, text); return;
  case TD_NODE_NAME: dump_name(node, text); return;
  case TD_NODE_COMPREHENSION_FOR: dump_clause(node, text); return;
  case TD_NODE_STARRED:
  case TD_NODE_DOUBLE_STARRED:
    td_text_add(text, node->kind == TD_NODE_STARRED ? "*" : "**");
    dump_expression(node->a, text);
    return;
  case TD_NODE_KEYWORD:
    td_text_print(text, "%s=", node->name->data);
    dump_expression(node->a, text);
    return;
  default: break;
  }
  td_text_add_char(text, '(');
  if (node->kind == TD_NODE_BINARY || node->kind == TD_NODE_UNARY) td_text_add(text, operators[node->op]);
  else dump_kind(node, text);
  if (node->kind == TD_NODE_ATTRIBUTE) td_text_print(text, " %s", node->name->data);
  if (node->kind == TD_NODE_FORMAT && node->op) td_text_print(text, " !%c", node->op);
  if (node->kind == TD_NODE_FORMAT && !td_is_nil(node->value)) {
    td_text_add_char(text, ' ');
    dump_value(node->value, text);
  }
  if (node->kind == TD_NODE_LAMBDA) {
    td_text_add_char(text, ' ');
    dump_parameters(node->prototype, text);
    dump_child(node->prototype->body, text);
  }
  dump_children(node, text);
  td_text_add_char(text, ')');
}

static void new_line(td_text *text, int depth) {
  td_text_add_char(text, '\n');
  for (int i = 0; i < depth; i++) td_text_add(text, "  ");
}

static void dump_block(const td_node *block, td_text *text, int depth) {
  for (int32_t i = 0; i < block->count; i++) td_node_dump(block->items[i], text, depth);
}

static void dump_labelled(const char *label, const td_node *block, td_text *text, int depth) {
  if (!block) return;
  new_line(text, depth);
  td_text_add(text, label);
  dump_block(block, text, depth + 1);
}

static void dump_expression_or_none(const td_node *node, td_text *text) {
  if (node) dump_child(node, text);
}

static void dump_if(const td_node *node, td_text *text, int depth) { // an elif chain may be long: no recursion over it
  td_text_add(text, "if");
  for (;; node = node->c) {
    dump_child(node->a, text);
    dump_block(node->b, text, depth + 1);
    if (!node->c || node->c->kind != TD_NODE_IF) break;
    new_line(text, depth);
    td_text_add(text, "elif");
  }
  dump_labelled("else", node->c, text, depth);
}

static void dump_definition(const td_node *node, td_text *text, int depth) { // FUNCTION, CLASS
  for (int32_t i = 0; i < node->count; i++) {
    td_text_add(text, "@");
    dump_expression(node->items[i], text);
    new_line(text, depth);
  }
  td_text_add(text, node->kind == TD_NODE_CLASS ? "class" : "def");
  dump_child(node->a, text);
  if (node->kind == TD_NODE_FUNCTION) {
    td_text_add_char(text, ' ');
    dump_parameters(node->prototype, text);
  }
  dump_expression_or_none(node->b, text);
  if (node->prototype->doc) {
    td_text_add(text, " doc ");
    dump_text(node->prototype->doc, text);
  }
  dump_block(node->prototype->body, text, depth + 1);
}

static void dump_try(const td_node *node, td_text *text, int depth) {
  td_text_add(text, "try");
  dump_block(node->a, text, depth + 1);
  for (int32_t i = 0; i < node->count; i++) {
    const td_node *handler = node->items[i];
    new_line(text, depth);
    td_text_add(text, "except");
    dump_expression_or_none(handler->a, text);
    if (handler->b) td_text_add(text, " as");
    dump_expression_or_none(handler->b, text);
    dump_block(handler->c, text, depth + 1);
  }
  dump_labelled("else", node->c, text, depth);
  dump_labelled("finally", node->d, text, depth);
}

static void dump_plain(const td_node *node, td_text *text) { // statements without blocks
  dump_kind(node, text);
  if (node->op) {
    if (node->kind == TD_NODE_AUGMENT) td_text_print(text, " %s=", operators[node->op]);
    else if (node->kind == TD_NODE_IMPORT) td_text_add(text, " as");
    else td_text_print(text, " %c", node->op);
  } else if (node->kind == TD_NODE_AUGMENT) {
    td_text_print(text, " %s=", operators[0]);
  }
  if (node->kind == TD_NODE_IMPORT || node->kind == TD_NODE_FROM_IMPORT || node->kind == TD_NODE_COMMAND) {
    td_text_add_char(text, ' ');
    dump_value(node->value, text);
  }
  if (node->kind == TD_NODE_ASSIGN) {
    for (int32_t i = 0; i < node->count; i++) dump_child(node->items[i], text);
    td_text_add(text, " =");
    dump_child(node->b, text);
    return;
  }
  dump_children(node, text);
  if (node->flags & TD_NODE_HIDE) td_text_add(text, " ;");
}

void td_node_dump(const td_node *node, td_text *text, int depth) {
  if (node->kind == TD_NODE_BLOCK) {
    dump_block(node, text, depth);
    return;
  }
  if (node->kind < TD_NODE_BLOCK) {
    dump_expression(node, text);
    return;
  }
  new_line(text, depth);
  switch (node->kind) {
  case TD_NODE_IF: dump_if(node, text, depth); break;
  case TD_NODE_FUNCTION:
  case TD_NODE_CLASS: dump_definition(node, text, depth); break;
  case TD_NODE_TRY: dump_try(node, text, depth); break;
  case TD_NODE_WHILE:
    td_text_add(text, "while");
    dump_child(node->a, text);
    dump_block(node->b, text, depth + 1);
    dump_labelled("else", node->c, text, depth);
    break;
  case TD_NODE_FOR:
    td_text_add(text, "for");
    dump_child(node->a, text);
    dump_child(node->b, text);
    dump_block(node->c, text, depth + 1);
    dump_labelled("else", node->d, text, depth);
    break;
  case TD_NODE_WITH:
    td_text_add(text, "with");
    for (int32_t i = 0; i < node->count; i++) dump_child(node->items[i], text);
    dump_block(node->c, text, depth + 1);
    break;
  default: dump_plain(node, text);
  }
}
