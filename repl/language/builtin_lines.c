// Text files read line by line where they lie: mapped, so that a file of any size takes no memory, and read from any place,
// so that a dataset's position in it is one number. Pages that were read are given back now and then.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/base/file.h"
#include "engine/base/map.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"
#include "repl/language/tensors.h"

enum { FORGET_BYTES = 8 << 20, NUMBER_BYTES = 64 };

typedef struct lines {
  td_object object;
  char *bytes; // NULL: an empty file
  size_t size;
  size_t forgotten; // bytes up to here were read when pages were given back
} lines;

extern const td_type td_lines_type;

static void lines_release(td_object *object) {
  lines *l = (lines *)object;
  if (l->bytes) td_map_drop(l->bytes, l->size);
  l->bytes = NULL;
}

static void forget(lines *l, size_t at) {
  if (at < l->forgotten) l->forgotten = 0; // it is read anew
  if (at - l->forgotten < FORGET_BYTES) return;
  madvise(l->bytes, l->size, MADV_DONTNEED);
  l->forgotten = at;
}

// The line at offset, without its end (a newline, or a carriage return and one); *next: where the following one begins.
// 0: there is none, -1: exception.
static int line_at(td_interpreter *I, lines *l, td_value where, const char **line, size_t *length, size_t *next) {
  int64_t offset;
  if (!td_index_value(I, where, &offset)) return -1;
  if (offset < 0 || (size_t)offset >= l->size) return 0;
  size_t begin = (size_t)offset, mark = begin == 0 && l->size >= 3 && !memcmp(l->bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
  const char *end = memchr(l->bytes + begin, '\n', l->size - begin);
  *line = l->bytes + begin + mark;
  *next = end ? (size_t)(end - l->bytes) + 1 : l->size;
  *length = (end ? (size_t)(end - l->bytes) : l->size) - begin - mark;
  if (*length && (*line)[*length - 1] == '\r') --*length;
  forget(l, begin);
  return 1;
}

static td_value pair(td_interpreter *I, td_value first, size_t next) { // takes over first
  return td_is_nil(first) ? first : td_tuple_pack(I, 2, first, td_int((int64_t)next));
}

static td_value lines_text(td_interpreter *I, td_value self, td_value *arguments) { // offset
  const char *line;
  size_t length, next;
  int found = line_at(I, (lines *)self.o, arguments[0], &line, &length, &next);
  if (found <= 0) return found ? TD_NIL : TD_NONE;
  return pair(I, td_from(td_str_new(I, line, length)), next);
}

// ---- numbers between delimiters ----

static bool field_number(const char *field, size_t length, float *number) {
  char text[NUMBER_BYTES], *end;
  while (length && (*field == ' ' || *field == '"')) field++, length--;
  while (length && (field[length - 1] == ' ' || field[length - 1] == '"')) length--;
  if (!length || length >= sizeof text) return false;
  memcpy(text, field, length);
  text[length] = 0;
  *number = strtof(text, &end);
  return !*end;
}

static td_value refuse_field(td_interpreter *I, size_t offset, const char *field, size_t length) {
  td_raise(I, TD_CLASS_VALUE_ERROR, "csv: byte %zu: '%.*s' is no number", offset, (int)(length < 40 ? length : 40), field);
  td_raise_hint(I, "skip=1 leaves out a line of names");
  return TD_NIL;
}

static td_value row_of(td_interpreter *I, const lines *l, const char *line, size_t length, char delimiter) {
  int64_t count = 1;
  for (size_t i = 0; i < length; i++) count += line[i] == delimiter;
  td_tensor *row = td_tensor_new(I->context, TD_FLOAT32, 1, &count);
  if (!row) return td_raise_engine(I);
  for (int64_t i = 0; i < count; i++) {
    const char *end = memchr(line, delimiter, length);
    size_t size = end ? (size_t)(end - line) : length;
    if (!field_number(line, size, (float *)row->data + i)) {
      td_tensor_unref(row);
      return refuse_field(I, (size_t)(line - l->bytes), line, size);
    }
    line += size + 1;
    length -= end ? size + 1 : size;
  }
  return td_tensor_box(I, row);
}

static td_value lines_numbers(td_interpreter *I, td_value self, td_value *arguments) { // offset, delimiter
  const char *line;
  size_t length, next;
  if (!td_is(arguments[1], &td_str_type) || td_as_str(arguments[1])->length != 1)
    return td_raise(I, TD_CLASS_VALUE_ERROR, "csv: the delimiter must be one character");
  int found = line_at(I, (lines *)self.o, arguments[0], &line, &length, &next);
  if (found <= 0) return found ? TD_NIL : TD_NONE;
  return pair(I, row_of(I, (lines *)self.o, line, length, td_as_str(arguments[1])->data[0]), next);
}

static const td_method lines_methods[] = {
    {"text", "(offset)", lines_text, "(the line at a byte offset, the offset of the next); None after the last one."},
    {"numbers", "(offset, delimiter=',')", lines_numbers, "The same of a line of numbers, as a float32 vector."},
    {NULL, NULL, NULL, NULL}};

const td_type td_lines_type = {.name = "lines",
                               .size = sizeof(lines),
                               .release = lines_release,
                               .methods = lines_methods,
                               .doc = "The lines of a text file, read where they lie."};

static td_value builtin_lines_of(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_existing_path(I, arguments[0], "from_file");
  if (!path) return TD_NIL;
  lines *l = td_object_new(I, &td_lines_type, sizeof *l);
  if (!l) return TD_NIL;
  if (td_file_map(I->context, "from_file", path, &l->bytes, &l->size) == TD_OK) return td_from(l);
  l->bytes = NULL;
  td_unref(td_from(l));
  return td_raise_engine(I);
}

const td_method td_lines_builtins[] = {
    {"_lines_of", "(path)", builtin_lines_of, "The lines of a text file, read where they lie."}, {NULL, NULL, NULL, NULL}};
