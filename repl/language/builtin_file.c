// Builtins of files as such: paths, folders, texts. What the others share (files.h) is here too.
#include <fnmatch.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/utf8.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"

bool td_str_argument(td_interpreter *I, td_value v, const char *who, const char *what) {
  if (td_is(v, &td_str_type)) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "%s: %s must be a str, not %s", who, what, td_type_name(I, v));
  return false;
}

const char *td_path_argument(td_interpreter *I, td_value v, const char *who) {
  if (!td_str_argument(I, v, who, "the path")) return NULL;
  const td_str *path = td_as_str(v);
  if (strlen(path->data) == path->length && path->length) return path->data;
  td_raise(I, TD_CLASS_VALUE_ERROR, path->length ? "%s: the path holds a NUL character" : "%s: the path is empty", who);
  return NULL;
}

const char *td_existing_path(td_interpreter *I, td_value v, const char *who) {
  const char *path = td_path_argument(I, v, who);
  if (!path || td_file_exists(path)) return path;
  td_raise(I, TD_CLASS_FILE_NOT_FOUND_ERROR, "%s: there is no file '%s'", who, path);
  return NULL;
}

td_tensor *td_saved_tensor(td_interpreter *I, td_value v, const char *who) {
  td_tensor *t = td_to_tensor(I, v, -1);
  if (!t || td_tensor_readable(I, t, who)) return t;
  td_tensor_unref(t);
  return NULL;
}

td_value td_done(td_interpreter *I, int code) { return code == TD_OK ? TD_NONE : td_raise_engine(I); }

// ---- paths ----

static td_value builtin_path_exists(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_path_argument(I, arguments[0], "path_exists");
  return path ? td_bool(td_file_exists(path)) : TD_NIL;
}

static td_value builtin_path_is_folder(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_path_argument(I, arguments[0], "path_is_folder");
  return path ? td_bool(td_file_is_folder(path)) : TD_NIL;
}

static td_value builtin_make_folder(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_path_argument(I, arguments[0], "make_folder");
  return path ? td_done(I, td_file_make_folder(I->context, path)) : TD_NIL;
}

static td_value builtin_remove_file(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_existing_path(I, arguments[0], "remove_file");
  return path ? td_done(I, td_file_remove(I->context, path)) : TD_NIL;
}

typedef struct listing {
  td_interpreter *interpreter;
  td_list *names;
  const char *pattern; // NULL: all
} listing;

static int add_name(void *owner, const char *name) {
  const listing *l = owner;
  if (l->pattern && fnmatch(l->pattern, name, FNM_PERIOD)) return TD_OK;
  td_value text = td_from(td_str_from(l->interpreter, name));
  bool added = !td_is_nil(text) && td_list_append(l->interpreter, l->names, text);
  td_unref(text);
  return added ? TD_OK : td_error_set(l->interpreter->context, TD_ERROR_CALLBACK, "list_folder: no memory");
}

static td_value builtin_list_folder(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_existing_path(I, arguments[0], "list_folder");
  bool all = td_is_none(arguments[1]);
  if (!path || (!all && !td_str_argument(I, arguments[1], "list_folder", "pattern"))) return TD_NIL;
  listing l = {.interpreter = I, .names = td_list_new(I, 0), .pattern = all ? NULL : td_as_str(arguments[1])->data};
  if (!l.names) return TD_NIL;
  td_value names = td_from(l.names), sorted = TD_NIL;
  if (td_file_list(I->context, path, add_name, &l) != TD_OK) td_raise_engine(I);
  else sorted = td_list_sort(I, l.names, TD_NONE, false);
  if (!td_is_nil(sorted)) return td_unref(sorted), names;
  td_unref(names);
  return TD_NIL;
}

// ---- texts ----

static td_value builtin_load_text(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_existing_path(I, arguments[0], "load_text");
  char *bytes;
  size_t size;
  if (!path) return TD_NIL;
  if (td_file_read(I->context, path, UINT32_MAX - 64, &bytes, &size) != TD_OK) return td_raise_engine(I);
  size_t mark = size >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
  int64_t wrong = td_utf8_wrong((const uint8_t *)bytes, size);
  td_value text = TD_NIL;
  if (wrong < 0) text = td_from(td_str_new(I, bytes + mark, size - mark));
  else
    td_raise(I, TD_CLASS_VALUE_ERROR, "load_text: '%s': byte %lld: the text is not UTF-8: %02x is part of no character",
             path, (long long)wrong, (unsigned char)bytes[wrong]);
  td_memory_free(bytes);
  return text;
}

typedef int write_function(td_context *context, const char *path, const void *bytes, size_t size);

static td_value write_text(td_interpreter *I, td_value *arguments, const char *who, write_function *write) {
  const char *path = td_path_argument(I, arguments[0], who);
  if (!path || !td_str_argument(I, arguments[1], who, "the text")) return TD_NIL;
  const td_str *text = td_as_str(arguments[1]);
  return td_done(I, write(I->context, path, text->data, text->length));
}

static td_value builtin_save_text(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return write_text(I, arguments, "save_text", td_file_save);
}

static td_value builtin_append_text(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return write_text(I, arguments, "append_text", td_file_append);
}

const td_method td_file_builtins[] = {
    {"path_exists", "(path)", builtin_path_exists,
     "Whether there is a file or a folder of that name.\n>>> path_exists(\"/no/such\")"},
    {"path_is_folder", "(path)", builtin_path_is_folder,
     "Whether there is a folder of that name.\n>>> path_is_folder(\"/\")"},
    {"list_folder", "(path, pattern=None)", builtin_list_folder,
     "The names in a folder, sorted; with pattern those that fit it (* any text, ? a character, [a-z] a set).\n"
     "Names that begin with a dot are given only without a pattern, or with one that begins with a dot."},
    {"make_folder", "(path)", builtin_make_folder,
     "Makes a folder, and those above it; one that is there already is no error."},
    {"remove_file", "(path)", builtin_remove_file, "Removes a file. Folders are left alone."},
    {"load_text", "(path)", builtin_load_text,
     "A file's text as a str.\n\nThe file must be UTF-8 (ValueError with the byte that is not); a byte order mark at "
     "its "
     "start is left out."},
    {"save_text", "(path, text)", builtin_save_text,
     "Saves a str as UTF-8. The old file or the new one is there at any moment, whole."},
    {"append_text", "(path, text)", builtin_append_text,
     "Puts a str, as UTF-8, behind what the file holds, in one write; makes the file if there is none."},
    {NULL, NULL, NULL, NULL}};
