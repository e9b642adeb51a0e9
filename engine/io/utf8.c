// The well-formed sequences of the Unicode standard's table 3-7: no overlong forms, no surrogates, nothing past
// U+10FFFF.
#include "engine/io/utf8.h"

size_t td_utf8_character(const uint8_t *b, size_t left) {
  if (b[0] < 0x80) return 1;
  if (b[0] < 0xc2 || b[0] > 0xf4) return 0;
  size_t length = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
  if (left < length) return 0;
  for (size_t i = 1; i < length; i++)
    if ((b[i] & 0xc0) != 0x80) return 0;
  if (b[0] == 0xe0 && b[1] < 0xa0) return 0;
  if (b[0] == 0xed && b[1] >= 0xa0) return 0;
  if (b[0] == 0xf0 && b[1] < 0x90) return 0;
  return b[0] == 0xf4 && b[1] >= 0x90 ? 0 : length;
}

int64_t td_utf8_wrong(const uint8_t *bytes, size_t size) {
  for (size_t at = 0, length; at < size; at += length) {
    length = td_utf8_character(bytes + at, size - at);
    if (!length) return (int64_t)at;
  }
  return -1;
}
