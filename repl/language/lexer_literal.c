// Tokens of numbers, strings and f-strings: where they end, and what is wrong with them. Their values are made by the
// parser (parse_literal.c), which may rely on the shapes checked here.
#include <string.h>

#include "repl/language/lexer.h"

static bool is_digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0' < base;
  return base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
}

static uint32_t skip_digits(const td_lexer *lexer, uint32_t at, int base) { // single underscores between digits allowed
  const char *text = lexer->text;
  while (is_digit_of(text[at], base) || (text[at] == '_' && is_digit_of(text[at + 1], base))) at++;
  return at;
}

static uint32_t rest_of_word(const td_lexer *lexer, uint32_t at) {
  uint32_t size;
  while (td_lexer_is_name(lexer, at, &size)) at += size;
  return at;
}

static bool continues_with_operator(const char *word, uint32_t length) { // "1if x else 2" is a number and a keyword
  static const char *const words[] = {"and", "else", "for", "if", "in", "is", "or", "not"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0) return true;
  }
  return false;
}

static void finish_number(td_lexer *lexer, int kind, uint32_t begin, uint32_t end, const char *what) {
  uint32_t rest = rest_of_word(lexer, end);
  const char *text = lexer->text;
  if (rest > end && !continues_with_operator(text + end, rest - end)) {
    char c = text[end];
    if (rest == end + 1 && (c == 'j' || c == 'J')) {
      td_lexer_fail(lexer, begin, rest, "keep real and imaginary parts in two numbers or tensors",
                    "complex numbers are not in this language");
    } else if (rest == end + 1 && (c == 'l' || c == 'L')) {
      td_lexer_fail(lexer, begin, rest, "write the digits alone", "numbers have no suffix 'L'");
    } else if (c == '_') {
      td_lexer_fail(lexer, begin, rest, NULL, "'_' in a number stands between two digits");
    } else {
      td_lexer_fail(lexer, begin, rest, "a name can't begin with a digit", "'%.*s' is not %s number",
                    (int)(rest - begin < 60 ? rest - begin : 60), text + begin, what);
    }
    return;
  }
  td_lexer_add(lexer, kind, begin, end);
  lexer->at = end;
}

static void based_number(td_lexer *lexer, uint32_t begin, int base, const char *what) { // 0xff 0o17 0b1
  uint32_t end = skip_digits(lexer, begin + 2, base);
  if (lexer->text[begin + 2] == '_') end = skip_digits(lexer, begin + 3, base);
  uint32_t rest = rest_of_word(lexer, end);
  if (lexer->text[end] >= '0' && lexer->text[end] <= '9') {
    td_lexer_fail(lexer, end, end + 1, NULL, "digit '%c' in %s number", lexer->text[end], what);
  } else if (end == begin + 2 || !is_digit_of(lexer->text[end - 1], base)) {
    td_lexer_fail(lexer, begin, rest > end ? rest : end, NULL, "%s number without digits", what);
  } else {
    finish_number(lexer, TD_TOKEN_INT, begin, end, what);
  }
}

static bool has_leading_zero(const td_lexer *lexer, uint32_t begin, uint32_t end) { // 007, but not 000
  if (lexer->text[begin] != '0') return false;
  for (uint32_t i = begin; i < end; i++) {
    if (lexer->text[i] != '0' && lexer->text[i] != '_') return true;
  }
  return false;
}

void td_lexer_number(td_lexer *lexer) {
  const char *text = lexer->text;
  uint32_t begin = lexer->at;
  char second = text[begin] == '0' ? (char)(text[begin + 1] | 0x20) : 0;
  if (second == 'x') return based_number(lexer, begin, 16, "a hexadecimal");
  if (second == 'o') return based_number(lexer, begin, 8, "an octal");
  if (second == 'b') return based_number(lexer, begin, 2, "a binary");
  uint32_t end = skip_digits(lexer, begin, 10), digits_end = end;
  bool is_float = false;
  if (text[end] == '.') {
    is_float = true;
    end++;
    if (is_digit_of(text[end], 10)) end = skip_digits(lexer, end, 10);
  }
  if (text[end] == 'e' || text[end] == 'E') {
    uint32_t exponent = end + 1;
    if (text[exponent] == '+' || text[exponent] == '-') exponent++;
    if (is_digit_of(text[exponent], 10)) {
      is_float = true;
      end = skip_digits(lexer, exponent, 10);
    }
  }
  if (!is_float && has_leading_zero(lexer, begin, digits_end)) {
    td_lexer_fail(lexer, begin, end, "octal numbers begin with 0o", "a decimal number can't begin with 0");
    return;
  }
  finish_number(lexer, is_float ? TD_TOKEN_FLOAT : TD_TOKEN_INT, begin, end, "a decimal");
}

// ---- strings ----

static bool has_letter(const td_lexer *lexer, uint32_t begin, uint32_t end, char letter) { // in a string's prefix
  for (uint32_t i = begin; i < end; i++) {
    if ((lexer->text[i] | 0x20) == letter) return true;
  }
  return false;
}

static void open_fstring(td_lexer *lexer, uint32_t begin, char quote, bool triple) {
  if (lexer->fstring_count == TD_NESTING_MAX) {
    td_lexer_fail(lexer, begin, lexer->at, NULL, "f-strings are nested deeper than %d", TD_NESTING_MAX);
    return;
  }
  uint32_t end = lexer->at + (triple ? 3 : 1);
  td_lexer_add(lexer, TD_TOKEN_FSTRING_BEGIN, begin, end);
  int32_t top = lexer->fstring_count++;
  lexer->fstrings[top].begin = begin;
  lexer->fstrings[top].level = lexer->bracket_count;
  lexer->fstrings[top].quote = quote;
  lexer->fstrings[top].triple = triple;
  lexer->fstrings[top].raw = has_letter(lexer, begin, lexer->at, 'r');
  lexer->at = end;
}

static void fail_open_string(td_lexer *lexer, uint32_t begin, uint32_t end) { // its line ended
  if (lexer->fstring_count && lexer->bracket_count) { // its quote was meant to close the f-string around it
    uint32_t open = lexer->tokens->items[lexer->brackets[lexer->bracket_count - 1].token].begin;
    td_lexer_fail(lexer, open, open + 1, NULL, "f-string: '%c' is not closed", lexer->text[open]);
    return;
  }
  td_lexer_fail(lexer, begin, end, "close it with the quote that opened it, or use three quotes for several lines",
                "the string is not closed on its line");
}

static bool ends_string(const td_lexer *lexer, uint32_t at, char quote, bool triple) {
  const char *text = lexer->text;
  return text[at] == quote && (!triple || (text[at + 1] == quote && text[at + 2] == quote));
}

void td_lexer_string(td_lexer *lexer, uint32_t begin) {
  const char *text = lexer->text;
  char quote = text[lexer->at];
  bool triple = text[lexer->at + 1] == quote && text[lexer->at + 2] == quote;
  if (has_letter(lexer, begin, lexer->at, 'b')) {
    td_lexer_fail(lexer, begin, lexer->at + 1, "use a str, or a uint8 tensor for raw data",
                  "bytes are not in this language");
    return;
  }
  if (has_letter(lexer, begin, lexer->at, 'f')) return open_fstring(lexer, begin, quote, triple);
  uint32_t at = lexer->at + (triple ? 3 : 1);
  bool continued = false; // the last escape was a line end
  for (; !ends_string(lexer, at, quote, triple); at++) {
    if (text[at] == '\\' && at + 1 < lexer->length) {
      at++;
      if (text[at] == '\r' && text[at + 1] == '\n') at++;
      continued = text[at] == '\n' || text[at] == '\r';
    } else if (at >= lexer->length) {
      if (triple || text[at - 1] == '\\' || (continued && (text[at - 1] == '\n' || text[at - 1] == '\r'))) {
        td_lexer_incomplete(lexer, begin, lexer->at + (triple ? 3 : 1), "the string that begins here is never closed");
      } else {
        fail_open_string(lexer, begin, at);
      }
      return;
    } else if (!triple && (text[at] == '\n' || text[at] == '\r')) {
      return fail_open_string(lexer, begin, at);
    }
  }
  lexer->at = at + (triple ? 3 : 1);
  td_lexer_add(lexer, TD_TOKEN_STRING, begin, lexer->at);
}

static void end_text(td_lexer *lexer, uint32_t begin, uint32_t end) {
  if (end > begin) td_lexer_add(lexer, TD_TOKEN_FSTRING_TEXT, begin, end);
  lexer->at = end;
}

static void close_fstring(td_lexer *lexer, uint32_t at) {
  int32_t top = --lexer->fstring_count;
  lexer->at = at + (lexer->fstrings[top].triple ? 3 : 1);
  td_lexer_add(lexer, TD_TOKEN_FSTRING_END, at, lexer->at);
}

static void close_spec(td_lexer *lexer, uint32_t at) { // } that ends a field with a spec
  lexer->bracket_count--;
  td_lexer_add(lexer, TD_TOKEN_FIELD_END, at, at + 1);
  lexer->at = at + 1;
}

static uint32_t skip_escape(const td_lexer *lexer, uint32_t at,
                            bool raw) { // at: a backslash; returns the last byte of it
  const char *text = lexer->text;
  char next = text[at + 1];
  if (at + 1 >= lexer->length || next == '{' || next == '}') return at;
  if (!raw && next == 'N' && text[at + 2] == '{') return at + 2; // refused by the parser
  return at + 1 + (next == '\r' && text[at + 2] == '\n');
}

static bool fail_text(td_lexer *lexer, uint32_t at, bool spec, bool triple) { // the text or the line ends: true
  uint32_t begin = lexer->fstrings[lexer->fstring_count - 1].begin;
  char c = lexer->text[at];
  if (at < lexer->length && (triple || (c != '\n' && c != '\r'))) return false;
  if (at >= lexer->length && triple)
    td_lexer_incomplete(lexer, begin, begin + 1, "the f-string that begins here is never closed");
  else if (spec) fail_open_string(lexer, begin, at);
  else
    td_lexer_fail(lexer, begin, at, "close it with the quote that opened it, or use three quotes for several lines",
                  "the f-string is not closed on its line");
  return true;
}

void td_lexer_fstring_text(td_lexer *lexer) {
  const char *text = lexer->text;
  int32_t top = lexer->fstring_count - 1;
  char quote = lexer->fstrings[top].quote;
  bool triple = lexer->fstrings[top].triple, raw = lexer->fstrings[top].raw;
  bool spec = lexer->bracket_count > lexer->fstrings[top].level;
  uint32_t begin = lexer->at, at = begin;
  for (;; at++) {
    if (fail_text(lexer, at, spec, triple)) return;
    if (ends_string(lexer, at, quote, triple)) {
      end_text(lexer, begin, at);
      if (spec) fail_open_string(lexer, lexer->fstrings[top].begin, at);
      else close_fstring(lexer, at);
      return;
    }
    if (text[at] == '\\') {
      at = skip_escape(lexer, at, raw);
    } else if (text[at] == '{') {
      if (!spec && text[at + 1] == '{') {
        at++;
        continue;
      }
      end_text(lexer, begin, at);
      td_lexer_open(lexer, TD_TOKEN_FIELD_BEGIN, at, true);
      return;
    } else if (text[at] == '}') {
      if (!spec && text[at + 1] == '}') {
        at++;
        continue;
      }
      end_text(lexer, begin, at);
      if (spec) close_spec(lexer, at);
      else td_lexer_fail(lexer, at, at + 1, "write }} for the character itself", "f-string: '}' has no '{' before it");
      return;
    }
  }
}
