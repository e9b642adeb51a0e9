// UTF-8 texts and the Unicode properties and case mappings of their characters, from unicode_table.h and independent of
// the locale. Texts given to these functions are well-formed UTF-8.
#include "repl/language/builtins.h"
#include "repl/language/unicode_table.h"

#define COUNT(rows) ((int)(sizeof(rows) / sizeof(*(rows))))

uint32_t td_unicode_properties(uint32_t code) {
  if (code >= 0x100000) return 0;
  int low = 0, high = COUNT(property_runs);
  while (high - low > 1) { // runs[low] begins at code or before, runs[high] after it
    int middle = (low + high) / 2;
    if (property_runs[middle] >> 12 <= code) low = middle;
    else high = middle;
  }
  return property_runs[low] & 0xfff;
}

static uint32_t map_code(const case_run *runs, int count, uint32_t code) {
  int low = 0, high = count;
  while (low < high) { // first run that ends at code or after it
    int middle = (low + high) / 2;
    if (runs[middle].last < code) low = middle + 1;
    else high = middle;
  }
  // Runs of step 2 interleave with their neighbours' characters, so the one before may hold code as well
  for (int i = low; i < count && i < low + 2; i++)
    if (runs[i].first <= code && code <= runs[i].last && (code - runs[i].first) % (uint32_t)runs[i].step == 0)
      return (uint32_t)((int32_t)code + runs[i].delta);
  return code;
}

static const char *find_special(const case_special *rows, int count, uint32_t code) {
  int low = 0, high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (rows[middle].code < code) low = middle + 1;
    else high = middle;
  }
  return low < count && rows[low].code == code ? rows[low].text : NULL;
}

void td_unicode_add_case(td_text *text, uint32_t code, enum td_case which) {
  if (code < 0x80) {
    bool upper = which == TD_CASE_UPPER || which == TD_CASE_TITLE;
    if (upper && code >= 'a' && code <= 'z') code -= 32;
    if (!upper && code >= 'A' && code <= 'Z') code += 32;
    td_text_add_char(text, (char)code);
    return;
  }
  const char *special = which == TD_CASE_TITLE  ? find_special(title_specials, COUNT(title_specials), code)
                        : which == TD_CASE_FOLD ? find_special(fold_specials, COUNT(fold_specials), code)
                                                : NULL;
  bool upper = which == TD_CASE_UPPER || which == TD_CASE_TITLE;
  if (!special)
    special = upper ? find_special(upper_specials, COUNT(upper_specials), code)
                    : find_special(lower_specials, COUNT(lower_specials), code);
  if (special) {
    td_text_add(text, special);
    return;
  }
  td_text_add_code(text, upper ? map_code(upper_runs, COUNT(upper_runs), code)
                               : map_code(lower_runs, COUNT(lower_runs), code));
}

int td_utf8_encode(char bytes[4], uint32_t code) {
  if (code < 0x80) {
    bytes[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    bytes[0] = (char)(0xC0 | code >> 6);
    bytes[1] = (char)(0x80 | (code & 0x3F));
    return 2;
  }
  if (code < 0x10000) {
    bytes[0] = (char)(0xE0 | code >> 12);
    bytes[1] = (char)(0x80 | (code >> 6 & 0x3F));
    bytes[2] = (char)(0x80 | (code & 0x3F));
    return 3;
  }
  bytes[0] = (char)(0xF0 | code >> 18);
  bytes[1] = (char)(0x80 | (code >> 12 & 0x3F));
  bytes[2] = (char)(0x80 | (code >> 6 & 0x3F));
  bytes[3] = (char)(0x80 | (code & 0x3F));
  return 4;
}

void td_text_add_code(td_text *text, uint32_t code) {
  char bytes[4];
  td_text_add_bytes(text, bytes, (size_t)td_utf8_encode(bytes, code));
}

uint32_t td_utf8_decode(const char *bytes, int *size) {
  const unsigned char *b = (const unsigned char *)bytes;
  int count = td_utf8_size(b[0]);
  if (size) *size = count;
  if (count == 1) return b[0];
  uint32_t code = b[0] & (0x7Fu >> count);
  for (int i = 1; i < count; i++) code = code << 6 | (b[i] & 0x3F);
  return code;
}

int64_t td_utf8_count(const char *bytes, size_t length) {
  int64_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
  return count;
}
