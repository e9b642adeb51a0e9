// Text files read line by line where they lie: mapped, so that a file of any size takes no memory, and read from any
// place, so that a dataset's position in it is one number. Pages that were read are given back now and then.
#include <string.h>
#include <sys/mman.h>

#include "engine/base/file.h"
#include "engine/base/map.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"

enum { FORGET_BYTES = 8 << 20 };

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

static const td_method lines_methods[] = {
    {"text", "(offset)", lines_text, "(the line at a byte offset, the offset of the next); None after the last one."},
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
    {"_lines_of", "(path)", builtin_lines_of, "The lines of a text file, read where they lie."},
    {NULL, NULL, NULL, NULL}};
