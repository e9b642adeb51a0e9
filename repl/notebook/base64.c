// See base64.h.
#include "repl/notebook/base64.h"
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void td_base64_add(td_text *out, const void *bytes, size_t size) {
  const unsigned char *b = bytes;
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i;
    uint32_t v = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0);
    char four[4] = {letters[v >> 18], letters[v >> 12 & 63], left > 1 ? letters[v >> 6 & 63] : '=',
                    left > 2 ? letters[v & 63] : '='};
    td_text_add_bytes(out, four, 4);
  }
}

bool td_base64_decode(td_text *out, const char *text, size_t length) {
  uint32_t bits = 0;
  int count = 0;
  size_t at = 0;
  for (; at < length && text[at] != '='; at++) {
    if (text[at] == '\n' || text[at] == '\r') continue;
    const char *letter = text[at] ? strchr(letters, text[at]) : NULL;
    if (!letter) return false;
    bits = bits << 6 | (uint32_t)(letter - letters);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    td_text_add_char(out, (char)(bits >> count));
  }
  for (; at < length; at++)
    if (!strchr("=\r\n", text[at])) return false;
  return count < 6;
}
