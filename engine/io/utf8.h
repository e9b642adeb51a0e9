// Telling what is UTF-8 in bytes from a file.
#ifndef TD_IO_UTF8_H
#define TD_IO_UTF8_H
#include <stddef.h>
#include <stdint.h>

// Bytes of the character that b, of left > 0 bytes, begins with; 0: with none.
size_t td_utf8_character(const uint8_t *b, size_t left);
int64_t td_utf8_wrong(const uint8_t *bytes, size_t size); // the first byte that is in no character; -1: none
#endif
