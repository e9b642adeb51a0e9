// See highlight.h.
#include "repl/screen/highlight.h"
#include <string.h>
#include "repl/language/lexer.h"

static uint8_t look_of(const td_token *token) {
  switch (token->kind) {
  case TD_TOKEN_INT: case TD_TOKEN_FLOAT: return TD_LOOK_LITERAL;
  case TD_TOKEN_STRING: case TD_TOKEN_FSTRING_BEGIN: case TD_TOKEN_FSTRING_TEXT: case TD_TOKEN_FSTRING_END:
    return TD_LOOK_STRING;
  case TD_TOKEN_COMMAND: return TD_LOOK_COMMAND;
  case TD_TOKEN_TRUE: case TD_TOKEN_FALSE: case TD_TOKEN_NONE: return TD_LOOK_LITERAL;
  default: return td_token_is_keyword(token->kind) ? TD_LOOK_KEYWORD : TD_LOOK_TEXT;
  }
}

static void set(uint8_t *looks, size_t begin, size_t end, uint8_t look) {
  if (end > begin) memset(looks + begin, look, end - begin);
}

// Comments are what stands between tokens and begins with #.
static void comments(const char *text, size_t begin, size_t end, uint8_t *looks) {
  for (size_t at = begin; at < end; at++) {
    if (text[at] != '#') continue;
    const char *newline = memchr(text + at, '\n', end - at);
    size_t stop = newline ? (size_t)(newline - text) : end;
    set(looks, at, stop, TD_LOOK_COMMENT);
    at = stop;
  }
}

static void mark_pair(const td_tokens *tokens, size_t cursor, uint8_t *looks) {
  for (uint32_t i = 0; i < tokens->count; i++) {
    const td_token *token = &tokens->items[i];
    if (token->pair < 0 || token->end != token->begin + 1 || (uint32_t)token->pair >= tokens->count) continue;
    uint32_t other = tokens->items[token->pair].begin;
    if (token->begin != cursor && other != cursor && other + 1 != cursor) continue;
    looks[token->begin] = looks[other] = TD_LOOK_BRACKET;
  }
}

static void called_names(const char *text, const td_tokens *tokens, uint8_t *looks) {
  for (uint32_t i = 0; i + 1 < tokens->count; i++) {
    const td_token *token = &tokens->items[i];
    if (token->kind == TD_TOKEN_NAME && tokens->items[i + 1].kind == TD_TOKEN_LEFT_PARENTHESIS)
      set(looks, token->begin, token->end, TD_LOOK_BUILTIN);
    if (token->kind == TD_TOKEN_MATMUL && (token->begin == 0 || text[token->begin - 1] == '\n'))
      looks[token->begin] = TD_LOOK_KEYWORD; // a decorator
  }
}

static void mark_tokens(const char *text, size_t length, size_t cursor, const td_tokens *tokens, uint8_t *looks) {
  size_t end = 0;
  for (uint32_t i = 0; i < tokens->count; i++) {
    const td_token *token = &tokens->items[i];
    if (token->kind == TD_TOKEN_ERROR || token->kind == TD_TOKEN_INCOMPLETE || token->end > length) continue;
    if (token->begin > end) comments(text, end, token->begin, looks);
    set(looks, token->begin, token->end, look_of(token));
    if (token->end > end) end = token->end;
  }
  comments(text, end, length, looks);
  called_names(text, tokens, looks);
  if (cursor <= length) mark_pair(tokens, cursor, looks);
}

void td_highlight(const char *text, size_t length, size_t cursor, uint8_t *looks) {
  memset(looks, TD_LOOK_TEXT, length);
  if (memchr(text, 0, length)) return;
  td_sources sources = {0};
  td_tokens tokens = {0};
  const td_script *script = td_source_add(&sources, "", "", text, length);
  if (script && td_lexer_run(script, &tokens)) mark_tokens(text, length, cursor, &tokens, looks);
  td_tokens_clear(&tokens);
  td_sources_clear(&sources);
}

void td_highlight_markdown(const char *text, size_t length, uint8_t *looks) {
  memset(looks, TD_LOOK_MARKDOWN, length);
  bool code = false;
  for (size_t at = 0; at < length;) {
    const char *newline = memchr(text + at, '\n', length - at);
    size_t end = newline ? (size_t)(newline - text) : length;
    bool fence = end - at >= 3 && memcmp(text + at, "```", 3) == 0;
    if (fence) code = !code;
    if (fence || code) set(looks, at, end, TD_LOOK_STRING);
    else if (text[at] == '#') set(looks, at, end, TD_LOOK_HEADING);
    at = end + 1;
  }
}

static bool is_found(const char *search, const char *text, size_t length) {
  size_t size = search ? strlen(search) : 0;
  return size && size <= length && memcmp(text, search, size) == 0;
}

void td_highlight_draw(td_surface *surface, const td_theme *theme, int row, int column, const char *text, size_t length,
                       size_t begin, size_t end, const uint8_t *looks, const char *search) {
  size_t found_end = 0;
  for (size_t at = begin, used = 0; at < end;) {
    td_shown shown = td_show_character(text + at, length - at, (int)used);
    if (is_found(search, text + at, length - at)) found_end = at + strlen(search);
    enum td_look which = at < found_end ? TD_LOOK_MATCH : looks ? looks[at] : TD_LOOK_TEXT;
    td_surface_text(surface, row, column + (int)used, shown.columns ? shown.columns : 1, text + at, shown.size,
                    td_theme_style(theme, which));
    used += (size_t)shown.columns;
    at += shown.size;
  }
}
