// See history.h. The file is history in the user's data folder.
#include "repl/line/history.h"
#include <stdio.h>
#include <string.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "repl/language/source.h"
#include "repl/notebook/data_folder.h"

#define HISTORY_LIMIT ((size_t)4 << 20) // bytes of the file's end that are read
enum { KEPT = 5000 };

static bool cut_short; // the file's last record has no end: the next one begins on a line of its own

static void complain(const char *reason) {
  static bool said;
  if (!said) fprintf(stderr, "history is not kept: %s\n", reason);
  said = true;
}

static bool is_sound(const char *record, size_t length) {
  for (size_t at = 0; at < length;) {
    uint32_t character;
    int bytes = td_source_decode(record + at, length - at, &character);
    if (bytes <= 0 || !character) return false;
    at += (size_t)bytes;
  }
  return true;
}

static void unescape(char *record) {
  char *to = record;
  for (const char *from = record; *from; from++) {
    if (from[0] == '\\' && from[1]) {
      from++;
      *to++ = *from == 'n' ? '\n' : *from;
    } else *to++ = *from;
  }
  *to = 0;
}

// Hands out the last records; returns how many of the file's are damaged.
static size_t each_record(char *bytes, size_t size, td_history_each *each, void *argument) {
  size_t left = 0, damaged = 0;
  char *end;
  for (size_t i = 0; i < size; i++) left += bytes[i] == '\n';
  for (char *at = bytes; (end = memchr(at, '\n', size - (size_t)(at - bytes))); at = end + 1, left--) {
    size_t length = (size_t)(end - at);
    *end = 0;
    if (!is_sound(at, length)) damaged++;
    else if (length && left <= KEPT) {
      unescape(at);
      each(at, argument);
    }
  }
  return damaged;
}

void td_history_load(td_history_each *each, void *argument) {
  char *path = td_data_path("history", false), *bytes = NULL;
  size_t size = 0, damaged = 0;
  td_context *context = path && td_file_exists(path) ? td_context_new(1) : NULL;
  if (context && td_file_read_end(context, path, HISTORY_LIMIT, &bytes, &size) != TD_OK)
    complain(context->error.message);
  if (bytes) {
    const char *first =
        size == HISTORY_LIMIT ? memchr(bytes, '\n', size) : NULL; // the rest of a record begins the file's end
    size_t skipped = first ? (size_t)(first + 1 - bytes) : 0;
    cut_short = size && bytes[size - 1] != '\n';
    damaged = each_record(bytes + skipped, size - skipped, each, argument) + cut_short;
  }
  if (damaged) fprintf(stderr, "history: skipped %zu damaged records of %s\n", damaged, path);
  td_memory_free(bytes);
  td_memory_free(path);
  td_context_free(context);
}

void td_history_append(const char *cell) {
  char *path = td_data_path("history", true);
  td_context *context = td_context_new(1);
  td_text record = {0};
  if (cut_short) td_text_add_char(&record, '\n');
  for (; *cell; cell++) {
    if (*cell == '\\') td_text_add(&record, "\\\\");
    else if (*cell == '\n') td_text_add(&record, "\\n");
    else td_text_add_char(&record, *cell);
  }
  td_text_add_char(&record, '\n');
  if (path && context && !record.failed) {
    if (td_file_append(context, path, record.data, record.length) == TD_OK) cut_short = false;
    else complain(context->error.message);
  }
  td_text_clear(&record);
  td_memory_free(path);
  td_context_free(context);
}
