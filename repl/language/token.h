// Tokens as rows: name, spelling, and for binary operators their precedence (higher binds tighter) and td_operator.
// In-place forms (+=) have the operator too, with precedence 0. Keywords are rows as well, so that the lexer, messages,
// completion and highlighting read one list.
#ifndef TD_LANGUAGE_TOKEN_H
#define TD_LANGUAGE_TOKEN_H
#include "repl/language/syntax.h"

#define TD_TOKENS_LITERAL(X)                                                                                           \
  X(END, "the end") X(NEWLINE, "the end of the line") X(INDENT, "an indentation") X(DEDENT, "the end of the block")    \
  X(NAME, "a name") X(INT, "a number") X(FLOAT, "a number") X(STRING, "a string") X(FSTRING_BEGIN, "an f-string")      \
  X(FSTRING_TEXT, "text of an f-string") X(FSTRING_END, "the end of an f-string") X(FIELD_BEGIN, "{")                  \
  X(FIELD_END, "}") X(COMMAND, "a command") X(ERROR, "an error") X(INCOMPLETE, "the end of the text")

// X(NAME, spelling, precedence, operator); longer spellings before their beginnings
#define TD_TOKENS_OPERATOR(X)                                                                                          \
  X(POWER_EQUAL, "**=", 0, TD_BINARY_POWER) X(FLOOR_DIVIDE_EQUAL, "//=", 0, TD_BINARY_FLOOR_DIVIDE)                    \
  X(LEFT_SHIFT_EQUAL, "<<=", 0, TD_BINARY_LEFT_SHIFT) X(RIGHT_SHIFT_EQUAL, ">>=", 0, TD_BINARY_RIGHT_SHIFT)            \
  X(ELLIPSIS, "...", 0, 0) X(ADD_EQUAL, "+=", 0, TD_BINARY_ADD) X(SUBTRACT_EQUAL, "-=", 0, TD_BINARY_SUBTRACT)         \
  X(MULTIPLY_EQUAL, "*=", 0, TD_BINARY_MULTIPLY) X(DIVIDE_EQUAL, "/=", 0, TD_BINARY_DIVIDE)                            \
  X(REMAINDER_EQUAL, "%=", 0, TD_BINARY_REMAINDER) X(MATMUL_EQUAL, "@=", 0, TD_BINARY_MATMUL)                          \
  X(AND_EQUAL, "&=", 0, TD_BINARY_AND) X(OR_EQUAL, "|=", 0, TD_BINARY_OR) X(XOR_EQUAL, "^=", 0, TD_BINARY_XOR)         \
  X(POWER, "**", 0, TD_BINARY_POWER) X(FLOOR_DIVIDE, "//", 6, TD_BINARY_FLOOR_DIVIDE)                                  \
  X(LEFT_SHIFT, "<<", 4, TD_BINARY_LEFT_SHIFT) X(RIGHT_SHIFT, ">>", 4, TD_BINARY_RIGHT_SHIFT)                          \
  X(EQUAL_EQUAL, "==", 0, TD_COMPARE_EQUAL) X(NOT_EQUAL, "!=", 0, TD_COMPARE_NOT_EQUAL)                                \
  X(LESS_EQUAL, "<=", 0, TD_COMPARE_LESS_EQUAL) X(GREATER_EQUAL, ">=", 0, TD_COMPARE_GREATER_EQUAL)                    \
  X(WALRUS, ":=", 0, 0) X(ARROW, "->", 0, 0) X(ADD, "+", 5, TD_BINARY_ADD) X(SUBTRACT, "-", 5, TD_BINARY_SUBTRACT)     \
  X(MULTIPLY, "*", 6, TD_BINARY_MULTIPLY) X(DIVIDE, "/", 6, TD_BINARY_DIVIDE)                                          \
  X(REMAINDER, "%", 6, TD_BINARY_REMAINDER) X(MATMUL, "@", 6, TD_BINARY_MATMUL) X(AND_BITS, "&", 3, TD_BINARY_AND)     \
  X(OR_BITS, "|", 1, TD_BINARY_OR) X(XOR, "^", 2, TD_BINARY_XOR) X(INVERT, "~", 0, 0)                                  \
  X(LESS, "<", 0, TD_COMPARE_LESS) X(GREATER, ">", 0, TD_COMPARE_GREATER) X(LEFT_PARENTHESIS, "(", 0, 0)               \
  X(RIGHT_PARENTHESIS, ")", 0, 0) X(LEFT_BRACKET, "[", 0, 0) X(RIGHT_BRACKET, "]", 0, 0) X(LEFT_BRACE, "{", 0, 0)      \
  X(RIGHT_BRACE, "}", 0, 0) X(COMMA, ",", 0, 0) X(COLON, ":", 0, 0) X(SEMICOLON, ";", 0, 0) X(DOT, ".", 0, 0)          \
  X(EQUAL, "=", 0, 0) X(EXCLAMATION, "!", 0, 0)

#define TD_TOKENS_KEYWORD(X)                                                                                           \
  X(FALSE, "False") X(NONE, "None") X(TRUE, "True") X(AND, "and") X(AS, "as") X(ASSERT, "assert") X(ASYNC, "async")    \
  X(AWAIT, "await") X(BREAK, "break") X(CLASS, "class") X(CONTINUE, "continue") X(DEF, "def") X(DEL, "del")            \
  X(ELIF, "elif") X(ELSE, "else") X(EXCEPT, "except") X(FINALLY, "finally") X(FOR, "for") X(FROM, "from")              \
  X(GLOBAL, "global") X(IF, "if") X(IMPORT, "import") X(IN, "in") X(IS, "is") X(LAMBDA, "lambda")                      \
  X(NONLOCAL, "nonlocal") X(NOT, "not") X(OR, "or") X(PASS, "pass") X(RAISE, "raise") X(RETURN, "return")              \
  X(TRY, "try") X(WHILE, "while") X(WITH, "with") X(YIELD, "yield")

enum td_token_kind {
#define X(NAME, ...) TD_TOKEN_##NAME,
  TD_TOKENS_LITERAL(X) TD_TOKENS_OPERATOR(X) TD_TOKENS_KEYWORD(X)
#undef X
  TD_TOKEN_COUNT
};

typedef struct td_token_row { const char *spelling; uint8_t precedence, operator; } td_token_row;
extern const td_token_row td_token_rows[TD_TOKEN_COUNT]; // by kind
static inline bool td_token_is_keyword(int kind) { return kind >= TD_TOKEN_FALSE; }

typedef struct td_token {
  uint32_t begin, end;      // bytes of the script
  int32_t bracket;          // index of the innermost bracket open here; -1: none
  int32_t pair;             // an opening bracket: index of the closing one; -1: never closed
  uint8_t kind;
} td_token;
#endif
