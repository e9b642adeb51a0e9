// Values of literals: numbers, strings with their escapes, f-strings with their fields. Ints have 64 bits; an f-string
// is a list of texts and FORMATs, a format spec is again such a list.
#include <stdlib.h>
#include <string.h>

#include "repl/language/parse.h"

static td_node *constant(td_parser *p, td_value value, uint32_t begin) {
  td_node *node = td_parser_node(p, TD_NODE_CONSTANT, begin);
  if (!node) return NULL;
  node->value = value;
  node->slot = 1;
  return node;
}

// ---- numbers ----

static int digit_value(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

static td_node *parse_int(td_parser *p, const td_token *token, bool negative, uint32_t begin) {
  const char *text = p->script->text + token->begin;
  uint32_t length = token->end - token->begin, i = 0;
  unsigned base = 10;
  if (length > 2 && text[0] == '0' && text[1] > '9' && text[1] != '_') {
    char letter = (char)(text[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
    i = 2;
  }
  uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
  bool fits = true;
  for (; i < length && fits; i++) {
    if (text[i] == '_') continue;
    fits = !__builtin_mul_overflow(value, base, &value) &&
           !__builtin_add_overflow(value, (uint64_t)digit_value(text[i]), &value);
  }
  if (!fits || value > limit) {
    return td_parser_fail(p, token->begin, token->end, "ints have 64 bits here; a float such as 1e20 reaches further",
                          "the int %.*s%s needs more than 64 bits", length < 40 ? (int)length : 40, text,
                          length < 40 ? "" : "...");
  }
  p->at++;
  return constant(p, td_int(negative ? (int64_t)(0 - value) : (int64_t)value), begin);
}

static td_node *parse_float(td_parser *p, const td_token *token, bool negative, uint32_t begin) {
  size_t mark = p->bytes.length;
  for (uint32_t i = token->begin; i < token->end; i++) {
    if (p->script->text[i] != '_') td_text_add_char(&p->bytes, p->script->text[i]);
  }
  if (p->bytes.failed) return td_parser_memory(p);
  double value = strtod(p->bytes.data + mark, NULL);
  p->bytes.length = mark;
  p->at++;
  return constant(p, td_double(negative ? -value : value), begin);
}

td_node *td_parse_number(td_parser *p, bool negative) {
  uint32_t begin = td_parser_token(p)->begin;
  if (negative) p->at++;
  const td_token *token = td_parser_token(p);
  return token->kind == TD_TOKEN_INT ? parse_int(p, token, negative, begin) : parse_float(p, token, negative, begin);
}

// ---- escapes ----

static void add_character(td_text *text, uint32_t c) { // as UTF-8
  if (c < 0x80) {
    td_text_add_char(text, (char)c);
  } else if (c < 0x800) {
    td_text_add_char(text, (char)(0xc0 | c >> 6));
    td_text_add_char(text, (char)(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    td_text_add_char(text, (char)(0xe0 | c >> 12));
    td_text_add_char(text, (char)(0x80 | (c >> 6 & 0x3f)));
    td_text_add_char(text, (char)(0x80 | (c & 0x3f)));
  } else {
    td_text_add_char(text, (char)(0xf0 | c >> 18));
    td_text_add_char(text, (char)(0x80 | (c >> 12 & 0x3f)));
    td_text_add_char(text, (char)(0x80 | (c >> 6 & 0x3f)));
    td_text_add_char(text, (char)(0x80 | (c & 0x3f)));
  }
}

static bool decode_hexadecimal(td_parser *p, uint32_t *at, uint32_t end, int digits) { // at: the backslash
  const char *text = p->script->text;
  uint32_t value = 0, i = *at + 2;
  int count = 0;
  for (; count < digits && i < end; count++, i++) {
    char c = text[i];
    bool valid = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    if (!valid) break;
    value = value << 4 | (uint32_t)digit_value(c);
  }
  if (count < digits) {
    return td_parser_fail(p, *at, i, NULL, "\\%c needs %d hexadecimal digits", text[*at + 1], digits), false;
  }
  if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
    return td_parser_fail(p, *at, i, NULL, "U+%04X is no character", (unsigned)value), false;
  }
  add_character(&p->bytes, value);
  *at = i;
  return true;
}

static void decode_octal(td_parser *p, uint32_t *at, uint32_t end) {
  uint32_t value = 0, i = *at + 1;
  for (int count = 0; count < 3 && i < end && p->script->text[i] >= '0' && p->script->text[i] < '8'; count++, i++) {
    value = value << 3 | (uint32_t)(p->script->text[i] - '0');
  }
  add_character(&p->bytes, value);
  *at = i;
}

static bool decode_escape(td_parser *p, uint32_t *at, uint32_t end) { // at: the backslash; goes behind the escape
  static const char letters[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
  char c = *at + 1 < end ? p->script->text[*at + 1] : 0;
  const char *letter = c ? strchr(letters, c) : NULL;
  if (letter) {
    td_text_add_char(&p->bytes, values[letter - letters]);
    *at += 2;
    return true;
  }
  switch (c) {
  case '\n': *at += 2; return true;
  case '\r': *at += *at + 2 < end && p->script->text[*at + 2] == '\n' ? 3 : 2; return true;
  case 'x': return decode_hexadecimal(p, at, end, 2);
  case 'u': return decode_hexadecimal(p, at, end, 4);
  case 'U': return decode_hexadecimal(p, at, end, 8);
  case '0':
  case '1':
  case '2':
  case '3':
  case '4':
  case '5':
  case '6':
  case '7': decode_octal(p, at, end); return true;
  case 'N':
    td_parser_fail(p, *at, *at + 2, "write the character itself, or \\u with its number",
                   "\\N{name} is not in this language");
    return false;
  default:
    td_text_add_char(&p->bytes, '\\'); // an unknown escape stays as it is
    ++*at;
    return true;
  }
}

// Appends the text between begin and end to the scratch. braces: {{ and }} stand for single ones.
static bool decode(td_parser *p, uint32_t begin, uint32_t end, bool raw, bool braces) {
  const char *text = p->script->text;
  for (uint32_t at = begin; at < end;) {
    uint32_t plain = at;
    while (at < end && text[at] != '\\' && text[at] != '\r' && text[at] != '{' && text[at] != '}') at++;
    td_text_add_bytes(&p->bytes, text + plain, at - plain);
    if (at >= end) break;
    if (text[at] == '\\' && !raw) {
      if (!decode_escape(p, &at, end)) return false;
    } else if (text[at] == '\r') {
      td_text_add_char(&p->bytes, '\n');
      at += at + 1 < end && text[at + 1] == '\n' ? 2 : 1;
    } else {
      bool doubled = braces && text[at] != '\\' && at + 1 < end && text[at + 1] == text[at];
      td_text_add_char(&p->bytes, text[at]);
      at += doubled ? 2 : 1;
    }
  }
  return !p->bytes.failed || td_parser_memory(p);
}

static bool is_raw(const td_parser *p, const td_token *token) {
  for (uint32_t i = token->begin; i < token->end; i++) {
    char c = p->script->text[i];
    if (c == '"' || c == '\'') return false;
    if ((c | 0x20) == 'r') return true;
  }
  return false;
}

static bool decode_string(td_parser *p) { // takes a STRING
  const td_token *token = td_parser_token(p);
  const char *text = p->script->text;
  uint32_t begin = token->begin, end = token->end;
  while (text[begin] != '"' && text[begin] != '\'') begin++;
  bool triple = end - begin >= 6 && text[begin + 1] == text[begin] && text[begin + 2] == text[begin];
  uint32_t quotes = triple ? 3 : 1;
  p->at++;
  return decode(p, begin + quotes, end - quotes, is_raw(p, token), false);
}

// ---- strings ----

static bool is_word(const td_text *text) { // short and made of letters: probably a key or an attribute's name
  if (text->length > 32 || !text->length) return false;
  for (size_t i = 0; i < text->length; i++) {
    char c = text->data[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

static td_value take_bytes(td_parser *p, size_t mark) { // the scratch from mark on, as a str that the arena holds
  td_text part = {.data = p->bytes.data + mark, .length = p->bytes.length - mark};
  td_str *str;
  if (is_word(&part)) {
    str = td_parser_intern(p, part.data, (uint32_t)part.length);
  } else {
    str = td_str_new(p->interpreter, part.length ? part.data : "", part.length);
    if (!str || !td_arena_hold(p->arena, td_from(str))) str = td_parser_memory(p);
  }
  p->bytes.length = mark;
  return td_from(str);
}

static bool push_text(td_parser *p, size_t mark, uint32_t begin) { // what was decoded since mark, as a CONSTANT
  if (p->bytes.length == mark) return true;
  td_value value = take_bytes(p, mark);
  return !td_is_nil(value) && td_parser_push(p, constant(p, value, begin));
}

static td_node *parse_field(td_parser *p, bool raw);

static td_node *parse_spec(td_parser *p, bool raw) { // after the colon of a field, up to its FIELD_END
  uint32_t begin = td_parser_token(p)->begin;
  int32_t pending = p->pending_count;
  size_t mark = p->bytes.length;
  for (;;) {
    const td_token *token = td_parser_token(p);
    if (token->kind == TD_TOKEN_FSTRING_TEXT) {
      if (!decode(p, token->begin, token->end, raw, false)) return NULL;
      p->at++;
    } else if (token->kind == TD_TOKEN_FIELD_BEGIN) {
      if (!push_text(p, mark, begin) || !td_parser_push(p, parse_field(p, raw))) return NULL;
    } else {
      break;
    }
  }
  if (!push_text(p, mark, begin)) return NULL;
  td_node *node = td_parser_node(p, TD_NODE_FSTRING, begin);
  return td_parser_collect(p, node, pending) ? td_parser_close(p, node) : NULL;
}

static bool parse_debug(td_parser *p, td_node *node, uint32_t begin) { // {expression=}: its text is shown too
  if (!td_parser_take(p, TD_TOKEN_EQUAL)) return true;
  size_t mark = p->bytes.length;
  if (!decode(p, begin, td_parser_token(p)->begin, true, false)) return false;
  node->value = take_bytes(p, mark);
  return !td_is_nil(node->value);
}

static bool parse_conversion(td_parser *p, td_node *node) { // !r !s !a
  if (!td_parser_take(p, TD_TOKEN_EXCLAMATION)) return true;
  const td_token *token = td_parser_token(p);
  char c = p->script->text[token->begin];
  if (token->kind != TD_TOKEN_NAME || token->end - token->begin != 1 || !strchr("rsa", c)) {
    return td_parser_fail(p, token->begin, token->end, NULL, "f-string: after '!' comes r, s or a"), false;
  }
  node->op = (uint8_t)c;
  p->at++;
  return true;
}

static td_node *parse_field(td_parser *p, bool raw) { // { expression [=] [!conversion] [:spec] }
  const td_token *open = td_parser_token(p);
  uint32_t begin = open->begin;
  if (!td_parser_enter(p)) return NULL;
  p->at++;
  int kind = td_parser_kind(p);
  if (kind == TD_TOKEN_FIELD_END || kind == TD_TOKEN_COLON || kind == TD_TOKEN_EXCLAMATION) {
    return td_parser_fail(p, begin, td_parser_token(p)->end, "write {{ for the character itself",
                          "f-string: the field holds no expression");
  }
  td_node *value = td_parse_value(p), *node = value ? td_parser_node(p, TD_NODE_FORMAT, begin) : NULL;
  if (!node) return NULL;
  node->a = value;
  if (!parse_debug(p, node, begin + 1) || !parse_conversion(p, node)) return NULL;
  if (td_parser_take(p, TD_TOKEN_COLON) && !(node->b = parse_spec(p, raw))) return NULL;
  if (!td_is_nil(node->value) && !node->op && !node->b) node->op = 'r';
  if (!td_parser_take(p, TD_TOKEN_FIELD_END)) return td_parser_unexpected(p, "'}' of the f-string's field");
  td_parser_leave(p);
  return td_parser_close(p, node);
}

static bool parse_fstring(td_parser *p, size_t mark,
                          uint32_t begin) { // pushes its parts; the last text stays in the scratch
  bool raw = is_raw(p, td_parser_token(p));
  p->at++;
  while (!td_parser_take(p, TD_TOKEN_FSTRING_END)) {
    const td_token *token = td_parser_token(p);
    if (token->kind == TD_TOKEN_FSTRING_TEXT) {
      if (!decode(p, token->begin, token->end, raw, true)) return false;
      p->at++;
    } else if (token->kind == TD_TOKEN_FIELD_BEGIN) {
      if (!push_text(p, mark, begin) || !td_parser_push(p, parse_field(p, raw))) return false;
    } else {
      return td_parser_unexpected(p, "the end of the f-string"), false;
    }
  }
  return true;
}

td_node *td_parse_strings(td_parser *p) {
  uint32_t begin = td_parser_token(p)->begin;
  int32_t pending = p->pending_count;
  size_t mark = p->bytes.length;
  bool formatted = false;
  for (;;) {
    int kind = td_parser_kind(p);
    if (kind == TD_TOKEN_STRING) {
      if (!decode_string(p)) return NULL;
    } else if (kind == TD_TOKEN_FSTRING_BEGIN) {
      formatted = true;
      if (!parse_fstring(p, mark, begin)) return NULL;
    } else {
      break;
    }
  }
  if (!formatted) {
    td_value value = take_bytes(p, mark);
    return td_is_nil(value) ? NULL : constant(p, value, begin);
  }
  if (!push_text(p, mark, begin)) return NULL;
  td_node *node = td_parser_node(p, TD_NODE_FSTRING, begin);
  return td_parser_collect(p, node, pending) ? td_parser_close(p, node) : NULL;
}
