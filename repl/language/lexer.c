// Text to tokens: lines and indentation, names, operators, brackets, commands. Inside brackets line ends are nothing.
// Indentation is compared twice, with tabs as steps of eight and as single columns; where the two disagree, the line is
// an error, as in Python 3. An f-string is a stretch of tokens: begin, texts and fields, end.
#include "repl/language/lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"

const td_token_row td_token_rows[TD_TOKEN_COUNT] = {
#define X(NAME, spelling) [TD_TOKEN_##NAME] = {spelling, 0, 0},
    TD_TOKENS_LITERAL(X) TD_TOKENS_KEYWORD(X)
#undef X
#define X(NAME, spelling, precedence, operator) [TD_TOKEN_##NAME] = {spelling, precedence, operator},
        TD_TOKENS_OPERATOR(X)
#undef X
};

// Characters that are no letters but come in by pasting, with what to write instead.
static const struct {
  uint32_t character;
  const char *name, *hint;
} strangers[] = {
    {0xa0, "a non-breaking space", "use a plain space"},
    {0x2018, "a curly quote", "use ' or \""},
    {0x2019, "a curly quote", "use ' or \""},
    {0x201c, "a curly quote", "use ' or \""},
    {0x201d, "a curly quote", "use ' or \""},
    {0xab, "a quotation mark", "use ' or \""},
    {0xbb, "a quotation mark", "use ' or \""},
    {0xb4, "an accent", "use ' or \""},
    {0xd7, "a multiplication sign", "use *"},
    {0xb7, "a middle dot", "use * or @"},
    {0xf7, "a division sign", "use /"},
    {0x2212, "a minus sign of typesetting", "use -"},
    {0x2013, "a dash", "use -"},
    {0x2014, "a dash", "use -"},
    {0x2260, "a not-equal sign", "use !="},
    {0x2264, "a less-or-equal sign", "use <="},
    {0x2265, "a greater-or-equal sign", "use >="},
    {0x2190, "an arrow", "use ="},
    {0x2192, "an arrow", "use ->"},
    {0x2026, "an ellipsis", "use ..."},
    {0x221a, "a root sign", "use sqrt(x)"},
    {0xb2, "a superscript", "use **2"},
    {0xb3, "a superscript", "use **3"},
    {0xfeff, "a byte order mark", "remove it"},
    {0x200b, "a zero-width space", "remove it"},
    {0xff08, "a fullwidth bracket", "use ("},
    {0xff09, "a fullwidth bracket", "use )"},
    {0xff0c, "a fullwidth comma", "use ,"},
    {0xff1a, "a fullwidth colon", "use :"},
};

void td_lexer_add(td_lexer *lexer, int kind, uint32_t begin, uint32_t end) {
  td_tokens *tokens = lexer->tokens;
  if (tokens->count == tokens->capacity) {
    uint32_t capacity = tokens->capacity ? tokens->capacity * 2 : lexer->length / 4 + 16;
    td_token *items = capacity < INT32_MAX ? td_memory_resize(tokens->items, capacity * sizeof *items) : NULL;
    if (!items) {
      lexer->no_memory = lexer->stopped = true;
      return;
    }
    tokens->items = items;
    tokens->capacity = capacity;
  }
  int32_t bracket = lexer->bracket_count ? lexer->brackets[lexer->bracket_count - 1].token : -1;
  tokens->items[tokens->count++] = (td_token){begin, end, bracket, -1, (uint8_t)kind};
}

void td_lexer_fail(td_lexer *lexer, uint32_t begin, uint32_t end, const char *hint, const char *format, ...) {
  if (lexer->stopped) return;
  td_diagnostic *problem = &lexer->tokens->problem;
  problem->span = (td_span){begin, end};
  va_list list;
  va_start(list, format);
  vsnprintf(problem->message, sizeof problem->message, format, list);
  va_end(list);
  if (hint) snprintf(problem->hint, sizeof problem->hint, "%s", hint);
  td_lexer_add(lexer, TD_TOKEN_ERROR, begin, end);
  lexer->stopped = true;
}

void td_lexer_incomplete(td_lexer *lexer, uint32_t begin, uint32_t end, const char *message) {
  if (lexer->stopped) return;
  td_lexer_fail(lexer, begin, end, NULL, "%s", message);
  if (!lexer->no_memory) lexer->tokens->items[lexer->tokens->count - 1].kind = TD_TOKEN_INCOMPLETE;
}

// ---- names ----

static bool is_letter(uint32_t c) { // beyond ASCII: all but the blocks of punctuation, signs, arrows and pictures
  if (c < 0xc0) return c == 0xaa || c == 0xb5 || c == 0xba;
  if (c == 0xd7 || c == 0xf7) return false;
  if (c >= 0x2000 && c < 0x2c00) {
    return c == 0x2071 || c == 0x207f || (c >= 0x2090 && c <= 0x209c) || c == 0x2102 || c == 0x2107 || c == 0x2115 ||
           (c >= 0x210a && c <= 0x2113) || (c >= 0x2119 && c <= 0x211d) || c == 0x2124 || (c >= 0x212a && c <= 0x2139);
  }
  if (c >= 0x3000 && c < 0x3041) return c >= 0x3005 && c <= 0x3007;
  if (c >= 0xd800 && c < 0xf900) return false;
  if (c >= 0xfe00 && c < 0xfe70) return c == 0xfe33 || c == 0xfe34;
  if (c >= 0xfeff && c < 0xff66) {
    return (c >= 0xff21 && c <= 0xff3a) || (c >= 0xff41 && c <= 0xff5a) || (c >= 0xff10 && c <= 0xff19);
  }
  return c < 0xfff0 || (c >= 0x10000 && c < 0x1f000) || (c >= 0x20000 && c < 0x3fffe);
}

static bool is_plain(unsigned char c) { // in a name, not counting digits
  return (unsigned)((c | 0x20) - 'a') < 26 || c == '_';
}

static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

bool td_lexer_is_name(const td_lexer *lexer, uint32_t at, uint32_t *size) {
  if (at >= lexer->length) return false;
  unsigned char c = (unsigned char)lexer->text[at];
  *size = 1;
  if (c < 0x80) return is_plain(c) || is_digit(c);
  uint32_t character = 0;
  int bytes = td_source_decode(lexer->text + at, lexer->length - at, &character);
  *size = (uint32_t)bytes;
  return bytes && is_letter(character);
}

static uint64_t word_key(const char *text, uint32_t length) { // of a word of at most 8 bytes
  uint64_t key = 0;
  memcpy(&key, text, length);
  return key;
}

// Below TD_KEYWORD_TABLE.
static uint32_t word_hash(uint64_t key) { return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 57); }

static void fill_tables(td_lexer *lexer) {
  for (int kind = TD_TOKEN_FALSE; kind < TD_TOKEN_COUNT; kind++) {
    const char *spelling = td_token_rows[kind].spelling;
    uint64_t key = lexer->words[kind - TD_TOKEN_FALSE] = word_key(spelling, (uint32_t)strlen(spelling));
    uint32_t at = word_hash(key);
    while (lexer->keywords[at]) at = (at + 1) % TD_KEYWORD_TABLE;
    lexer->keywords[at] = (uint8_t)kind;
  }
  for (int kind = TD_TOKEN_FALSE - 1; kind >= TD_TOKEN_POWER_EQUAL; kind--) {
    lexer->operators[(unsigned char)td_token_rows[kind].spelling[0]] = (uint8_t)kind;
  }
}

static int keyword_kind(const td_lexer *lexer, const char *text, uint32_t length) {
  if (length < 2 || length > 8) return TD_TOKEN_NAME;
  uint64_t key = word_key(text, length);
  for (uint32_t at = word_hash(key); lexer->keywords[at]; at = (at + 1) % TD_KEYWORD_TABLE) {
    if (lexer->words[lexer->keywords[at] - TD_TOKEN_FALSE] == key) return lexer->keywords[at];
  }
  return TD_TOKEN_NAME;
}

static bool is_prefix(const char *text, uint32_t length) { // of a string: r b u f, br rb fr rf
  if (length == 1) return strchr("rRbBuUfF", text[0]);
  if (length != 2) return false;
  char a = (char)(text[0] | 0x20), b = (char)(text[1] | 0x20);
  return (a == 'r' && (b == 'b' || b == 'f')) || (b == 'r' && (a == 'b' || a == 'f'));
}

static void lex_name(td_lexer *lexer) {
  uint32_t begin = lexer->at, size;
  do {
    while (is_plain((unsigned char)lexer->text[lexer->at]) || is_digit((unsigned char)lexer->text[lexer->at]))
      lexer->at++;
  } while (td_lexer_is_name(lexer, lexer->at, &size) && (lexer->at += size));
  uint32_t length = lexer->at - begin;
  char next = lexer->text[lexer->at];
  if ((next == '"' || next == '\'') && is_prefix(lexer->text + begin, length)) {
    td_lexer_string(lexer, begin);
    return;
  }
  td_lexer_add(lexer, keyword_kind(lexer, lexer->text + begin, length), begin, lexer->at);
}

// ---- lines ----

static bool at_line_end(const td_lexer *lexer) {
  return lexer->at >= lexer->length || lexer->text[lexer->at] == '\n' || lexer->text[lexer->at] == '\r';
}

static void skip_line_end(td_lexer *lexer) {
  if (lexer->at >= lexer->length) return;
  bool pair = lexer->text[lexer->at] == '\r' && lexer->text[lexer->at + 1] == '\n';
  lexer->at += pair ? 2 : 1;
}

static void skip_comment(td_lexer *lexer) {
  while (!at_line_end(lexer)) lexer->at++;
}

static void fail_mixed(td_lexer *lexer, uint32_t begin) {
  td_lexer_fail(lexer, begin, lexer->at, "indent the lines of a block alike, best by 4 spaces",
                "tabs and spaces are mixed in the indentation");
}

static void close_blocks(td_lexer *lexer, uint32_t begin, uint32_t column, uint32_t spaces) {
  while (lexer->indent_count && lexer->indents[lexer->indent_count].column > column) {
    lexer->indent_count--;
    td_lexer_add(lexer, TD_TOKEN_DEDENT, lexer->at, lexer->at);
  }
  if (lexer->indents[lexer->indent_count].column != column) {
    td_lexer_fail(lexer, begin, lexer->at, "use the indentation of one of the blocks around it",
                  "the indentation fits no block above");
  } else if (lexer->indents[lexer->indent_count].spaces != spaces) {
    fail_mixed(lexer, begin);
  }
}

static void set_indentation(td_lexer *lexer, uint32_t begin, uint32_t column, uint32_t spaces) {
  uint32_t top = lexer->indents[lexer->indent_count].column, top_spaces = lexer->indents[lexer->indent_count].spaces;
  if (column < top) {
    close_blocks(lexer, begin, column, spaces);
  } else if (column == top) {
    if (spaces != top_spaces) fail_mixed(lexer, begin);
  } else if (spaces <= top_spaces) {
    fail_mixed(lexer, begin);
  } else if (lexer->indent_count == TD_NESTING_MAX) {
    td_lexer_fail(lexer, begin, lexer->at, NULL, "blocks are nested deeper than %d", TD_NESTING_MAX);
  } else {
    lexer->indent_count++;
    lexer->indents[lexer->indent_count].column = column;
    lexer->indents[lexer->indent_count].spaces = spaces;
    td_lexer_add(lexer, TD_TOKEN_INDENT, begin, lexer->at);
  }
}

static void lex_command(td_lexer *lexer) { // a line that begins with % ! or ?; a backslash at its end continues it
  uint32_t begin = lexer->at;
  for (;;) {
    skip_comment(lexer);
    if (lexer->text[lexer->at - 1] != '\\' || lexer->at - begin < 2) break;
    uint32_t slash = lexer->at - 1;
    skip_line_end(lexer);
    if (lexer->at < lexer->length) continue;
    td_lexer_incomplete(lexer, slash, slash + 1, "the line goes on after its '\\', but the text ends");
    return;
  }
  uint32_t end = lexer->at;
  while (end > begin + 1 && (lexer->text[end - 1] == ' ' || lexer->text[end - 1] == '\t')) end--;
  td_lexer_add(lexer, TD_TOKEN_COMMAND, begin, end);
}

static void begin_line(td_lexer *lexer) { // measures the indentation of a line that holds something
  uint32_t begin = lexer->at, column = 0, spaces = 0;
  for (;; lexer->at++) {
    char c = lexer->text[lexer->at];
    if (c == ' ') column++, spaces++;
    else if (c == '\t') column = (column / 8 + 1) * 8, spaces++;
    else if (c == '\f') column = spaces = 0;
    else break;
  }
  if (lexer->text[lexer->at] == '#') skip_comment(lexer);
  if (at_line_end(lexer)) {
    skip_line_end(lexer);
    return;
  }
  lexer->line_begins = false;
  set_indentation(lexer, begin, column, spaces);
  lexer->line_first = (int32_t)lexer->tokens->count;
  char c = lexer->text[lexer->at];
  if (!lexer->stopped && (c == '%' || c == '!' || c == '?')) lex_command(lexer);
}

static void lex_line_end(td_lexer *lexer) {
  uint32_t begin = lexer->at;
  skip_line_end(lexer);
  if (!lexer->bracket_count) {
    td_lexer_add(lexer, TD_TOKEN_NEWLINE, begin, lexer->at);
    lexer->line_begins = true;
  } else if (lexer->fstring_count && !lexer->fstrings[lexer->fstring_count - 1].triple) {
    uint32_t open = lexer->tokens->items[lexer->brackets[lexer->bracket_count - 1].token].begin;
    td_lexer_fail(lexer, open, open + 1, NULL, "f-string: '%c' is not closed on its line", lexer->text[open]);
  }
}

static void lex_backslash(td_lexer *lexer) {
  uint32_t begin = lexer->at++;
  if (lexer->at < lexer->length && !at_line_end(lexer)) {
    td_lexer_fail(lexer, begin, lexer->at, "a '\\' joins two lines only as the last character of the first",
                  "unexpected character after '\\'");
    return;
  }
  skip_line_end(lexer);
  if (lexer->at >= lexer->length) {
    td_lexer_incomplete(lexer, begin, begin + 1, "the line goes on after its '\\', but the text ends");
  }
}

// ---- operators and brackets ----

void td_lexer_open(td_lexer *lexer, int kind, uint32_t begin, bool field) {
  if (lexer->bracket_count == TD_NESTING_MAX) {
    td_lexer_fail(lexer, begin, begin + 1, NULL, "brackets are nested deeper than %d", TD_NESTING_MAX);
    return;
  }
  td_lexer_add(lexer, kind, begin, begin + 1);
  int32_t token = (int32_t)lexer->tokens->count - 1;
  lexer->brackets[lexer->bracket_count].token = token;
  lexer->brackets[lexer->bracket_count].open = lexer->text[begin];
  lexer->brackets[lexer->bracket_count].field = field;
  lexer->brackets[lexer->bracket_count].spec = false;
  lexer->bracket_count++;
  lexer->at = begin + 1;
}

static void close_bracket(td_lexer *lexer, int kind) {
  uint32_t begin = lexer->at;
  char c = lexer->text[begin], open = c == ')' ? '(' : c == ']' ? '[' : '{';
  int32_t floor = lexer->fstring_count ? lexer->fstrings[lexer->fstring_count - 1].level : 0;
  if (lexer->bracket_count <= floor) {
    td_lexer_fail(lexer, begin, begin + 1, NULL, "'%c' has no '%c' before it", c, open);
    return;
  }
  int32_t top = lexer->bracket_count - 1;
  td_token *opener = &lexer->tokens->items[lexer->brackets[top].token];
  if (lexer->brackets[top].open != open) {
    int line, here;
    td_source_position(lexer->script, opener->begin, &line, NULL);
    td_source_position(lexer->script, begin, &here, NULL);
    if (line == here)
      td_lexer_fail(lexer, begin, begin + 1, NULL, "'%c' does not close '%c'", c, lexer->brackets[top].open);
    else
      td_lexer_fail(lexer, begin, begin + 1, NULL, "'%c' does not close '%c' opened at line %d", c,
                    lexer->brackets[top].open, line);
    return;
  }
  opener->pair = (int32_t)lexer->tokens->count;
  if (lexer->brackets[top].field) kind = TD_TOKEN_FIELD_END;
  lexer->bracket_count--;
  td_lexer_add(lexer, kind, begin, begin + 1);
  lexer->at = begin + 1;
}

// Whether the tokens of a line that ends in ? are a name or an expression without effect.
static bool asks_for_help(const td_lexer *lexer) {
  uint32_t first = (uint32_t)lexer->line_first, count = lexer->tokens->count;
  if (first >= count || lexer->bracket_count) return false;
  for (uint32_t i = first; i < count && count - first > 1; i++) {
    int kind = lexer->tokens->items[i].kind;
    if (td_token_is_keyword(kind) || kind == TD_TOKEN_EQUAL || kind == TD_TOKEN_COLON || kind == TD_TOKEN_SEMICOLON)
      return false;
  }
  return true;
}

static void lex_question(td_lexer *lexer) { // name? and name??: the whole line is a command
  uint32_t end = lexer->at;
  while (lexer->text[end] == '?') end++;
  uint32_t rest = end;
  while (lexer->text[rest] == ' ' || lexer->text[rest] == '\t') rest++;
  char c = lexer->text[rest];
  if ((c && c != '\n' && c != '\r' && c != '#') || !asks_for_help(lexer)) {
    td_lexer_fail(lexer, lexer->at, end,
                  "write a if test else b to choose between two values; name? at a line's end shows help",
                  "'?' is no operator");
    return;
  }
  uint32_t begin = lexer->tokens->items[lexer->line_first].begin;
  lexer->tokens->count = (uint32_t)lexer->line_first;
  td_lexer_add(lexer, TD_TOKEN_COMMAND, begin, end);
  lexer->at = end;
}

static void fail_character(td_lexer *lexer) {
  uint32_t begin = lexer->at, c = 0;
  int size = td_source_decode(lexer->text + begin, lexer->length - begin, &c);
  uint32_t end = begin + (uint32_t)(size ? size : 1);
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
    if (strangers[i].character != c) continue;
    td_lexer_fail(lexer, begin, end, strangers[i].hint, "%s (U+%04X) can't stand here", strangers[i].name, (unsigned)c);
    return;
  }
  if (c == '$' || c == '`') td_lexer_fail(lexer, begin, end, NULL, "'%c' is no character of the language", (char)c);
  else if (c < 0x20 || c == 0x7f)
    td_lexer_fail(lexer, begin, end, "remove it", "control character \\x%02x", (unsigned)c);
  else td_lexer_fail(lexer, begin, end, NULL, "character U+%04X can't stand here", (unsigned)c);
}

static void lex_operator(td_lexer *lexer) {
  const char *text = lexer->text + lexer->at;
  int32_t top = lexer->bracket_count - 1;
  bool in_field = top >= 0 && lexer->brackets[top].field;
  int first = (signed char)text[0] >= 0 ? lexer->operators[(unsigned char)text[0]] : 0;
  for (int kind = first ? first : TD_TOKEN_FALSE; kind < TD_TOKEN_FALSE; kind++) {
    const char *spelling = td_token_rows[kind].spelling;
    if (spelling[0] != text[0]) continue;
    size_t size = strlen(spelling);
    if (size > 1 && (strncmp(spelling, text, size) || (in_field && kind == TD_TOKEN_WALRUS))) continue;
    if (strchr("([{", text[0])) {
      td_lexer_open(lexer, kind, lexer->at, false);
    } else if (strchr(")]}", text[0])) {
      close_bracket(lexer, kind);
    } else {
      td_lexer_add(lexer, kind, lexer->at, lexer->at + (uint32_t)size);
      lexer->at += (uint32_t)size;
      if (in_field && kind == TD_TOKEN_COLON) lexer->brackets[top].spec = true;
    }
    return;
  }
  if (text[0] == '?') lex_question(lexer);
  else fail_character(lexer);
}

static void lex_end(td_lexer *lexer) {
  uint32_t end = lexer->length;
  if (lexer->bracket_count) {
    const td_token *open = &lexer->tokens->items[lexer->brackets[lexer->bracket_count - 1].token];
    char message[40];
    snprintf(message, sizeof message, "'%c' is never closed", lexer->text[open->begin]);
    td_lexer_incomplete(lexer, open->begin, open->end, message);
    return;
  }
  if (!lexer->line_begins) td_lexer_add(lexer, TD_TOKEN_NEWLINE, end, end);
  for (; lexer->indent_count; lexer->indent_count--) td_lexer_add(lexer, TD_TOKEN_DEDENT, end, end);
  td_lexer_add(lexer, TD_TOKEN_END, end, end);
  lexer->stopped = true;
}

static void lex_token(td_lexer *lexer) {
  unsigned char c = (unsigned char)lexer->text[lexer->at];
  uint32_t size;
  if (lexer->at >= lexer->length) lex_end(lexer);
  else if (c == ' ' || c == '\t' || c == '\f') lexer->at++;
  else if (c == '\n' || c == '\r') lex_line_end(lexer);
  else if (c == '#') skip_comment(lexer);
  else if (is_digit(c) || (c == '.' && is_digit((unsigned char)lexer->text[lexer->at + 1]))) td_lexer_number(lexer);
  else if (td_lexer_is_name(lexer, lexer->at, &size)) lex_name(lexer);
  else if (c == '"' || c == '\'') td_lexer_string(lexer, lexer->at);
  else if (c == '\\') lex_backslash(lexer);
  else lex_operator(lexer);
}

static void check_bytes(td_lexer *lexer) { // the whole text is UTF-8 without NUL
  for (uint32_t at = 0; at < lexer->length;) {
    uint32_t c = 1;
    if ((signed char)lexer->text[at] > 0) {
      at++;
      continue;
    }
    int size = td_source_decode(lexer->text + at, lexer->length - at, &c);
    if (!c)
      td_lexer_fail(lexer, at, at + 1, "a script is plain UTF-8 text; UTF-16 has such bytes", "NUL byte at offset %u",
                    at);
    else if (!size)
      td_lexer_fail(lexer, at, at + 1, "save the file as UTF-8", "byte 0x%02x at offset %u is not UTF-8",
                    (unsigned char)lexer->text[at], at);
    if (lexer->stopped) return;
    at += (uint32_t)size;
  }
}

bool td_lexer_run(const td_script *script, td_tokens *tokens) {
  td_lexer *lexer = td_memory_new_zero(sizeof *lexer);
  if (!lexer) return false;
  lexer->script = script;
  lexer->text = script->text;
  lexer->length = script->length;
  lexer->tokens = tokens;
  lexer->line_begins = true;
  fill_tables(lexer);
  check_bytes(lexer);
  if (lexer->length >= 3 && memcmp(lexer->text, "\xef\xbb\xbf", 3) == 0) lexer->at = 3;
  while (!lexer->stopped) {
    if (td_lexer_in_text(lexer)) td_lexer_fstring_text(lexer);
    else if (lexer->line_begins && lexer->at < lexer->length) begin_line(lexer);
    else lex_token(lexer);
  }
  bool done = !lexer->no_memory;
  td_memory_free(lexer);
  return done;
}

void td_tokens_clear(td_tokens *tokens) {
  td_memory_free(tokens->items);
  *tokens = (td_tokens){0};
}
