// What the parser's files share: the parser's state and the functions of the grammar that call each other across files.
// Each function begins at the current token and leaves the parser at the first token it did not take. NULL (false)
// means that the parse failed and the diagnostic is set; the caller returns at once.
#ifndef TD_LANGUAGE_PARSE_H
#define TD_LANGUAGE_PARSE_H
#include "repl/language/lexer.h"

// operations above each other in an expression; parameters, keywords
enum { TD_HEIGHT_MAX = 5000, TD_ARGUMENTS_MAX = 1000 };

typedef struct td_parser {
  td_script *script;
  td_arena *arena;
  td_interpreter *interpreter;
  td_tokens tokens;
  uint32_t at;              // index of the current token
  int32_t depth;            // of nesting, at most TD_NESTING_MAX
  int32_t blocks;           // blocks around the current statement
  td_str *class_name;       // of the class body around, for names like __x; NULL: none
  td_diagnostic *diagnostic;
  td_parse_result result;
  uint32_t failed_at;       // token where the parse failed
  td_node **pending;        // stack of nodes whose list isn't finished; owned
  int32_t pending_count, pending_capacity;
  td_text bytes;            // scratch: decoded strings, comparisons of a chain
  td_str **names;           // hash table of the names seen; owned, its strings are the arena's
  uint32_t name_count, name_capacity;
} td_parser;

// ---- parse.c: tokens, errors, nodes ----
static inline const td_token *td_parser_token(const td_parser *p) { return &p->tokens.items[p->at]; }
static inline int td_parser_kind(const td_parser *p) { return p->tokens.items[p->at].kind; }
static inline int td_parser_next_kind(const td_parser *p) { // of the token after the current one
  return p->at + 1 < p->tokens.count ? p->tokens.items[p->at + 1].kind : TD_TOKEN_END;
}
// of the last token taken
static inline uint32_t td_parser_end(const td_parser *p) { return p->at ? p->tokens.items[p->at - 1].end : 0; }
bool td_parser_take(td_parser *p, int kind);                       // takes the token if it is of this kind
bool td_parser_expect(td_parser *p, int kind, const char *after);  // takes it or fails: "expected ')' after ..."
bool td_parser_enter(td_parser *p);                                // one level deeper; false: too deep
static inline void td_parser_leave(td_parser *p) { p->depth--; }
void *td_parser_fail(td_parser *p, uint32_t begin, uint32_t end, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));                         // the first failure counts; returns NULL
void *td_parser_fail_node(td_parser *p, const td_node *node, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void *td_parser_unexpected(td_parser *p, const char *expected);    // "expected ..., found ..." at the current token
void td_parser_hint(td_parser *p, const char *hint);                // replaces the hint of the failure
bool td_parser_is_over(const td_parser *p);                         // nothing but ends of blocks follows
void *td_parser_incomplete(td_parser *p, uint32_t begin, const char *message); // more lines could make it right
void *td_parser_memory(td_parser *p);
td_node *td_parser_node(td_parser *p, int kind, uint32_t begin);   // ends at the last token taken
td_node *td_parser_close(td_parser *p, td_node *node);             // its children are in: sets end and height
bool td_parser_push(td_parser *p, td_node *node);                  // to the pending list; node NULL fails
bool td_parser_push_optional(td_parser *p, td_node *node);         // NULL is pushed too
bool td_parser_collect(td_parser *p, td_node *node, int32_t mark); // what was pushed since mark becomes node's items
// takes a NAME; interned, private names of classes mangled
td_str *td_parser_name(td_parser *p);
td_str *td_parser_intern(td_parser *p, const char *bytes, uint32_t length);
bool td_parser_is_word(const td_parser *p, uint32_t token, const char *word); // token is the NAME word
// can be assigned to; starred ones inside a tuple or list
bool td_parser_target(td_parser *p, const td_node *node);
td_prototype *td_parser_prototype(td_parser *p, td_str *name, uint32_t begin);

// ---- parse_literal.c ----
td_node *td_parse_number(td_parser *p, bool negative); // negative: '-' stands before it and is taken too
td_node *td_parse_strings(td_parser *p);           // adjacent strings and f-strings

// ---- parse_expression.c, parse_display.c ----
td_node *td_parse_expression(td_parser *p);        // a conditional expression or lambda
td_node *td_parse_disjunction(td_parser *p);       // or, and, not, comparisons and below
td_node *td_parse_operand(td_parser *p);           // | and below: what a target is made of
td_node *td_parse_starred(td_parser *p);           // *operand or expression
td_node *td_parse_expressions(td_parser *p);       // one, or several with commas: a tuple; starred ones inside
td_node *td_parse_value(td_parser *p);             // the same, where a bare *x is no value
bool td_parser_check_value(td_parser *p, const td_node *node); // false: it is one, or NULL; the error is told
td_node *td_parse_targets(td_parser *p);           // of for: checked
bool td_parse_begins_expression(int kind);         // a token of this kind can begin one
td_node *td_parse_parentheses(td_parser *p);       // ( ... )
td_node *td_parse_list(td_parser *p);              // [ ... ]
td_node *td_parse_braces(td_parser *p);            // { ... }
td_node *td_parse_call(td_parser *p, td_node *callee);
td_node *td_parse_index(td_parser *p, td_node *value);
td_node *td_parse_generator(td_parser *p, td_node *element, uint32_t begin); // element for ...

// ---- parse_definition.c ----
// up to closing, not taken
bool td_parse_parameters(td_parser *p, td_prototype *prototype, int closing, bool annotated);
td_node *td_parse_lambda(td_parser *p);
td_node *td_parse_function(td_parser *p, uint32_t begin);
td_node *td_parse_class(td_parser *p, uint32_t begin);
td_node *td_parse_decorated(td_parser *p);

// ---- parse_simple.c, parse_statement.c ----
// statements with ; between them, to the end of the line; pushes them
bool td_parse_simple_line(td_parser *p);
td_node *td_parse_block(td_parser *p, const char *what); // : and an indented block or a rest of line
#endif
