// The pull reader of JSON. Every function leaves at behind what it read, or at the byte that is wrong.
#include "engine/io/json.h"

#include <stdint.h>
#include <string.h>

#include "engine/io/utf8.h"

static int peek(const td_json *json) { return json->at < json->size ? (unsigned char)json->bytes[json->at] : -1; }

static void skip_space(td_json *json) {
  for (int c = peek(json); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(json)) json->at++;
}

static bool wrong(td_json *json, const char *error) {
  if (!json->error) json->error = error;
  return false;
}

static bool accept(td_json *json, const char *word) {
  size_t length = strlen(word);
  if (json->size - json->at < length || memcmp(json->bytes + json->at, word, length)) return false;
  json->at += length;
  return true;
}

// ---- strings ----

static int hex_digit(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
  return -1;
}

static bool read_hex(td_json *json, uint32_t *code) { // four digits
  *code = 0;
  for (int i = 0; i < 4; i++, json->at++) {
    int digit = hex_digit(peek(json));
    if (digit < 0) return wrong(json, "Invalid \\uXXXX escape");
    *code = *code << 4 | (uint32_t)digit;
  }
  return true;
}

static void add_code(td_text *text, uint32_t code) {
  char bytes[4];
  size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = count; i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3f));
  bytes[0] = (char)(leads[count] | code);
  td_text_add_bytes(text, bytes, count);
}

static bool read_unicode(td_json *json) { // behind \u; a pair of surrogates is one character
  uint32_t code, low;
  if (!read_hex(json, &code)) return false;
  if (code >= 0xd800 && code < 0xdc00 && accept(json, "\\u")) {
    if (!read_hex(json, &low)) return false;
    if (low >= 0xdc00 && low < 0xe000) {
      add_code(&json->text, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
      return true;
    }
    add_code(&json->text, 0xfffd);
    code = low;
  }
  add_code(&json->text, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
  return true;
}

static bool read_escape(td_json *json) { // behind the backslash
  static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  int c = peek(json);
  if (c == 'u') {
    json->at++;
    return read_unicode(json);
  }
  const char *found = c > 0 ? strchr(letters, c) : NULL;
  if (!found && c >= 0) json->at--;
  if (!found) return wrong(json, "Invalid \\escape");
  td_text_add_char(&json->text, meant[found - letters]);
  json->at++;
  return true;
}

static bool read_characters(td_json *json) { // up to a quote, a backslash or the end
  size_t begin = json->at;
  for (int c = peek(json); c >= 0 && c != '"' && c != '\\'; c = peek(json)) {
    if (c < 32) return wrong(json, "Invalid control character at");
    size_t length = td_utf8_character((const uint8_t *)json->bytes + json->at, json->size - json->at);
    if (!length) return wrong(json, "Invalid UTF-8");
    json->at += length;
  }
  td_text_add_bytes(&json->text, json->bytes + begin, json->at - begin);
  return true;
}

static void text_start(td_json *json) {
  json->text.length = 0;
  td_text_add_bytes(&json->text, "", 0);
}

static bool read_string(td_json *json) { // behind the opening quote
  size_t begin = json->at - 1;
  text_start(json);
  while (read_characters(json) && json->at < json->size) {
    if (json->bytes[json->at++] == '"') return true;
    if (json->at == json->size || !read_escape(json)) break;
  }
  if (json->error) return false;
  json->at = begin;
  return wrong(json, "Unterminated string starting at");
}

// ---- numbers ----

static bool read_digits(td_json *json) {
  size_t begin = json->at;
  for (int c = peek(json); c >= '0' && c <= '9'; c = peek(json)) json->at++;
  return json->at > begin;
}

static enum td_json_kind read_number(td_json *json) {
  size_t begin = json->at;
  bool whole = true;
  if (peek(json) == '-') json->at++;
  int first = peek(json);
  if (!read_digits(json)) {
    json->at = begin;
    return wrong(json, "Expecting value"), TD_JSON_WRONG;
  }
  size_t digits = json->at - begin - (json->bytes[begin] == '-');
  if (first == '0' && digits > 1) json->at -= digits - 1; // 0 alone; what follows is wrong
  size_t end = json->at;
  if (accept(json, ".") && read_digits(json)) {
    end = json->at;
    whole = false;
  }
  json->at = end;
  if (accept(json, "e") || accept(json, "E")) {
    if (!accept(json, "-")) accept(json, "+");
    if (read_digits(json)) {
      end = json->at;
      whole = false;
    }
  }
  json->at = end;
  text_start(json);
  td_text_add_bytes(&json->text, json->bytes + begin, end - begin);
  return whole ? TD_JSON_INTEGER : TD_JSON_FLOAT;
}

static bool accept_loose(td_json *json) {
  static const char *const words[][2] = {{"NaN", "nan"}, {"Infinity", "inf"}, {"-Infinity", "-inf"}};
  for (int i = 0; i < 3; i++) {
    if (!accept(json, words[i][0])) continue;
    text_start(json);
    td_text_add(&json->text, words[i][1]);
    return true;
  }
  return false;
}

// ---- values ----

enum td_json_kind td_json_value(td_json *json) {
  if (json->error) return TD_JSON_WRONG;
  skip_space(json);
  if (accept(json, "{")) return TD_JSON_OBJECT;
  if (accept(json, "[")) return TD_JSON_ARRAY;
  if (accept(json, "true")) return TD_JSON_TRUE;
  if (accept(json, "false")) return TD_JSON_FALSE;
  if (accept(json, "null")) return TD_JSON_NULL;
  if (accept(json, "\"")) return read_string(json) ? TD_JSON_STRING : TD_JSON_WRONG;
  if (json->loose && accept_loose(json)) return TD_JSON_FLOAT;
  return read_number(json);
}

// true: something follows, behind a comma unless it is the first.
static bool follows(td_json *json, bool first, const char *close, const char *error) {
  if (json->error) return false;
  skip_space(json);
  if (accept(json, close)) return false;
  if (first || accept(json, ",")) return true;
  return wrong(json, error);
}

bool td_json_key(td_json *json, bool first) {
  if (!follows(json, first, "}", "Expecting ',' delimiter")) return false;
  skip_space(json);
  if (!accept(json, "\"")) return wrong(json, "Expecting property name enclosed in double quotes");
  if (!read_string(json)) return false;
  skip_space(json);
  return accept(json, ":") || wrong(json, "Expecting ':' delimiter");
}

bool td_json_element(td_json *json, bool first) { return follows(json, first, "]", "Expecting ',' delimiter"); }

bool td_json_end(td_json *json) {
  td_text_clear(&json->text);
  if (json->error) return true;
  skip_space(json);
  return json->at == json->size;
}

// ---- writing ----

static uint32_t decode(const unsigned char *b, size_t left, size_t *length) {
  *length = td_utf8_character(b, left);
  if (*length == 1) return b[0];
  if (!*length) return *length = 1, 0xfffd;
  uint32_t code = b[0] & (0xffu >> (*length + 1));
  for (size_t i = 1; i < *length; i++) code = code << 6 | (b[i] & 0x3f);
  return code;
}

static void add_escape(td_text *out, uint32_t code) {
  static const char letters[] = "btn.fr";
  if (code == '"' || code == '\\') td_text_print(out, "\\%c", (int)code);
  else if (code >= '\b' && code <= '\r' && code != '\v') td_text_print(out, "\\%c", letters[code - '\b']);
  else if (code < 0x10000) td_text_print(out, "\\u%04x", code);
  else td_text_print(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
}

void td_json_quote(td_text *out, const char *bytes, size_t length, bool ascii) {
  td_text_add_char(out, '"');
  for (size_t at = 0, size; at < length; at += size) {
    uint32_t code = decode((const unsigned char *)bytes + at, length - at, &size);
    if (code < 32 || code == '"' || code == '\\' || (ascii && code > 126)) add_escape(out, code);
    else if (code == 0xfffd) td_text_add(out, "\xef\xbf\xbd"); // for a byte that is no UTF-8, too
    else td_text_add_bytes(out, bytes + at, size);
  }
  td_text_add_char(out, '"');
}
