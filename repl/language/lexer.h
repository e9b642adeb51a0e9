// Text to tokens. The array always ends in END, ERROR or INCOMPLETE; the parser reports the latter two when it gets
// there, so that an error standing earlier in the text is told first.
#ifndef TD_LANGUAGE_LEXER_H
#define TD_LANGUAGE_LEXER_H
#include "repl/language/token.h"

enum { TD_NESTING_MAX = 200 }; // brackets, blocks, expressions within each other
enum { TD_KEYWORD_TABLE = 128 };

typedef struct td_tokens {
  td_token *items;          // owned
  uint32_t count, capacity;
  td_diagnostic problem;    // of the ERROR or INCOMPLETE at the end
} td_tokens;

bool td_lexer_run(const td_script *script, td_tokens *tokens); // false: no memory
void td_tokens_clear(td_tokens *tokens);

// What lexer.c and lexer_literal.c share.
typedef struct td_lexer {
  const td_script *script;
  const char *text;
  uint32_t at, length;
  td_tokens *tokens;
  bool stopped, no_memory;
  bool line_begins;         // the next token is a line's first
  bool tabs;                // a line of this text is indented by tabs (for the message on mixing)
  int32_t line_first;       // index of the line's first token
  int32_t bracket_count, indent_count, fstring_count;
  // field: { of an f-string; spec: after its :
  struct { int32_t token; char open; bool field, spec; } brackets[TD_NESTING_MAX];
  struct { uint32_t column, spaces; } indents[TD_NESTING_MAX + 1]; // spaces: with tabs counted as one
  // level: brackets around it
  struct { uint32_t begin; int32_t level; char quote; bool triple, raw; } fstrings[TD_NESTING_MAX];
  uint64_t words[TD_TOKEN_COUNT - TD_TOKEN_FALSE]; // spelling of each keyword in one number
  uint8_t keywords[TD_KEYWORD_TABLE];              // hash table: kinds; 0: free
  uint8_t operators[128];                          // first row of an operator that begins with the character; 0: none
} td_lexer;

void td_lexer_add(td_lexer *lexer, int kind, uint32_t begin, uint32_t end);
// Stops with an ERROR (or INCOMPLETE) token. hint NULL: none.
void td_lexer_fail(td_lexer *lexer, uint32_t begin, uint32_t end, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void td_lexer_incomplete(td_lexer *lexer, uint32_t begin, uint32_t end, const char *message);
void td_lexer_open(td_lexer *lexer, int kind, uint32_t begin, bool field); // adds an opening bracket
bool td_lexer_is_name(const td_lexer *lexer, uint32_t at, uint32_t *size); // a character that may stand in a name

void td_lexer_number(td_lexer *lexer);
void td_lexer_string(td_lexer *lexer, uint32_t begin); // at: the opening quote; begin: the prefix
void td_lexer_fstring_text(td_lexer *lexer);           // text of an f-string or of a format spec, up to { } or its end
static inline bool td_lexer_in_text(const td_lexer *lexer) {
  if (!lexer->fstring_count) return false;
  int32_t top = lexer->bracket_count - 1;
  return top + 1 == lexer->fstrings[lexer->fstring_count - 1].level ||
         (lexer->brackets[top].field && lexer->brackets[top].spec);
}
#endif
