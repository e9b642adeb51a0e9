// Setting the context's error. A later error replaces an earlier one whole: message, hint, operands and place.
#include "engine/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/context.h"

static const char *const names[] = {"OK",
#define X(name, class) #name,
                                    TD_ERRORS(X)
#undef X
};

const char *td_error_name(int code) {
  int count = sizeof names / sizeof *names;
  return code >= 0 && code < count ? names[code] : "UNKNOWN";
}

// Cuts at a whole character: a message that was too long must not end inside a UTF-8 sequence.
static void print_bounded(char *buffer, size_t size, const char *format, va_list list) {
  int length = vsnprintf(buffer, size, format, list);
  if (length < 0) buffer[0] = 0;
  if (length < (int)size) return;
  size_t end = size - 1, start = end;
  while (start > 0 && (buffer[start - 1] & 0xc0) == 0x80) start--;
  if (start > 0 && (unsigned char)buffer[start - 1] >= 0xc0) {
    unsigned char lead = (unsigned char)buffer[start - 1];
    size_t needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (end - (start - 1) < needed) end = start - 1;
  }
  buffer[end] = 0;
}

void td_error_clear(td_context *context) {
  context->error.code = TD_OK;
  context->error.message[0] = context->error.hint[0] = 0;
  context->error.operand_count = 0;
  context->error.place = 0;
}

int td_error_set(td_context *context, int code, const char *format, ...) {
  td_error_clear(context);
  context->error.code = code;
  context->error.place = context->place;
  va_list list;
  va_start(list, format);
  print_bounded(context->error.message, sizeof context->error.message, format, list);
  va_end(list);
  return code;
}

void td_error_hint(td_context *context, const char *format, ...) {
  va_list list;
  va_start(list, format);
  print_bounded(context->error.hint, sizeof context->error.hint, format, list);
  va_end(list);
}

int td_error_within(td_context *context, const char *what) {
  char *message = context->error.message;
  size_t size = sizeof context->error.message, length = strlen(what) + 2, rest = strlen(message);
  if (length >= size) return context->error.code;
  if (rest > size - 1 - length) rest = size - 1 - length;
  memmove(message + length, message, rest);
  memcpy(message, what, length - 2);
  memcpy(message + length - 2, ": ", 2);
  message[length + rest] = 0;
  return context->error.code;
}

int td_error_memory(td_context *context, const char *what, int64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return td_error_set(context, TD_ERROR_MEMORY, "%s: no memory for %lld bytes", what, (long long)bytes);
  double scaled = (double)bytes / 1024;
  int unit = 0;
  while (scaled >= 1024 && unit < 5) {
    scaled /= 1024;
    unit++;
  }
  return td_error_set(context, TD_ERROR_MEMORY, "%s: no memory for %lld bytes (%.1f %s)", what, (long long)bytes,
                      scaled, units[unit]);
}
