// A growable text: capacity doubles, data is NUL-terminated after every addition. A failed allocation leaves what was
// there and sets failed for good, so that a chain of additions is checked once, at its end.
#include "engine/base/text.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"

static bool reserve(td_text *text, size_t extra) { // room for extra bytes and the NUL
  if (text->failed) return false;
  if (extra < text->capacity - text->length) return true; // capacity 0 goes on: nothing is less than 0
  size_t needed, capacity = text->capacity < 24 ? 48 : text->capacity * 2;
  if (__builtin_add_overflow(text->length, extra, &needed) || needed == SIZE_MAX) {
    text->failed = true;
    return false;
  }
  if (capacity < needed + 1) capacity = needed + 1;
  char *data = td_memory_resize(text->data, capacity);
  if (!data) {
    text->failed = true;
    return false;
  }
  text->data = data;
  text->capacity = capacity;
  text->data[text->length] = 0;
  return true;
}

void td_text_add_bytes(td_text *text, const char *bytes, size_t length) {
  if (!reserve(text, length)) return;
  if (length) memcpy(text->data + text->length, bytes, length);
  text->length += length;
  text->data[text->length] = 0;
}

void td_text_add(td_text *text, const char *bytes) { td_text_add_bytes(text, bytes, strlen(bytes)); }

void td_text_add_char(td_text *text, char c) {
  if (!reserve(text, 1)) return;
  text->data[text->length++] = c;
  text->data[text->length] = 0;
}

void td_text_print_list(td_text *text, const char *format, va_list list) {
  va_list again;
  va_copy(again, list);
  size_t room = text->capacity - text->length;
  int length = vsnprintf(room ? text->data + text->length : NULL, room, format, list);
  if (length < 0) {
    text->failed = true;
    if (room) text->data[text->length] = 0;
  } else if (reserve(text, (size_t)length)) {
    if ((size_t)length >= room) vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  } else if (room) {
    text->data[text->length] = 0;
  }
  va_end(again);
}

void td_text_print(td_text *text, const char *format, ...) {
  va_list list;
  va_start(list, format);
  td_text_print_list(text, format, list);
  va_end(list);
}

void td_text_pad(td_text *text, size_t column, char fill) {
  if (text->length >= column || !reserve(text, column - text->length)) return;
  memset(text->data + text->length, fill, column - text->length);
  text->length = column;
  text->data[column] = 0;
}

char *td_text_take(td_text *text) {
  char *data = NULL;
  if (!text->failed) {
    td_text_add_bytes(text, "", 0);
    data = text->data;
  }
  if (text->failed) td_memory_free(text->data), data = NULL;
  *text = (td_text){0};
  return data;
}

void td_text_clear(td_text *text) {
  td_memory_free(text->data);
  *text = (td_text){0};
}
