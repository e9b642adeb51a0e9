// Builtins that read and write files of tensors: IDX, .npy, .npz, PNG, safetensors.
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/io/idx.h"
#include "engine/io/npy.h"
#include "engine/io/npz.h"
#include "engine/io/png.h"
#include "engine/io/safetensors.h"
#include "repl/language/builtins.h"
#include "repl/language/files.h"

static td_value boxed(td_interpreter *I, int code, td_tensor *const *t) {
  return code == TD_OK ? td_tensor_box(I, *t) : td_raise_engine(I);
}

// ---- IDX ----

static td_value builtin_load_idx(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tensor *t = NULL;
  const char *path = td_existing_path(I, arguments[0], "load_idx");
  return path ? boxed(I, td_idx_load(I->context, path, &t), &t) : TD_NIL;
}

static td_value save_one(td_interpreter *I, td_value *arguments, const char *who,
                         int (*save)(td_context *, const char *, td_tensor *)) {
  const char *path = td_path_argument(I, arguments[0], who);
  td_tensor *t = path ? td_saved_tensor(I, arguments[1], who) : NULL;
  if (!t) return TD_NIL;
  int code = save(I->context, path, t);
  td_tensor_unref(t);
  return td_done(I, code);
}

static td_value builtin_save_idx(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return save_one(I, arguments, "save_idx", td_idx_save);
}

// ---- .npy ----

static bool rows_argument(td_interpreter *I, td_value v, td_npy_options *options) { // (start, stop)
  if (td_is_none(v)) return true;
  bool ok = td_is(v, &td_tuple_type) && td_as_tuple(v)->count == 2;
  if (ok) options->start = td_to_int(I, td_as_tuple(v)->items[0], &ok);
  if (ok) options->stop = td_to_int(I, td_as_tuple(v)->items[1], &ok);
  if (ok && options->start >= 0 && options->stop >= 0) return options->part = true;
  if (td_is_nil(I->raised))
    td_raise(I, ok ? TD_CLASS_VALUE_ERROR : TD_CLASS_TYPE_ERROR,
             "load_npy: rows must be a tuple (start, stop) of ints from 0 up");
  return false;
}

static td_value builtin_load_npy(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tensor *t = NULL;
  const char *path = td_existing_path(I, arguments[0], "load_npy");
  int map = path ? td_truth(I, arguments[1]) : -1;
  td_npy_options options = {.map = map > 0};
  if (map < 0 || !rows_argument(I, arguments[2], &options)) return TD_NIL;
  return boxed(I, td_npy_load(I->context, path, &options, &t), &t);
}

static td_value builtin_save_npy(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return save_one(I, arguments, "save_npy", td_npy_save);
}

// ---- .npz ----

static bool put(td_interpreter *I, td_dict *dict, const char *name, size_t length, td_value value) { // takes over value
  td_value key = td_is_nil(value) ? TD_NIL : td_from(td_str_new(I, name, length));
  bool ok = !td_is_nil(key) && td_dict_set(I, dict, key, value);
  td_unref(key);
  td_unref(value);
  return ok;
}

typedef struct collection {
  td_interpreter *interpreter;
  td_dict *dict;
  td_list *names; // those wanted; NULL: all
} collection;

static bool is_wanted(void *owner, const char *name) {
  const collection *c = owner;
  for (int64_t i = 0; i < c->names->count; i++)
    if (td_is(c->names->items[i], &td_str_type) && !strcmp(td_as_str(c->names->items[i])->data, name)) return true;
  return false;
}

static bool all_found(const collection *c, const char *path) {
  td_value unused;
  for (int64_t i = 0; c->names && i < c->names->count; i++) {
    if (td_dict_get(c->interpreter, c->dict, c->names->items[i], &unused) > 0) continue;
    td_text name = {0};
    if (td_repr(c->interpreter, c->names->items[i], &name))
      td_raise(c->interpreter, TD_CLASS_KEY_ERROR, "load_npz: '%s' has no array %s", path, name.data);
    td_text_clear(&name);
    return false;
  }
  return true;
}

static int take_array(void *owner, const char *name, td_tensor *t) {
  const collection *c = owner;
  if (put(c->interpreter, c->dict, name, strlen(name), td_tensor_box(c->interpreter, t))) return TD_OK;
  return td_error_set(c->interpreter->context, TD_ERROR_CALLBACK, "load_npz: no memory");
}

static td_value builtin_load_npz(td_interpreter *I, td_value self, td_value *arguments) { // path, names
  (void)self;
  const char *path = td_existing_path(I, arguments[0], "load_npz");
  td_value names = td_is_none(arguments[1]) ? TD_NIL : td_list_from(I, arguments[1]);
  collection c = {I, path && td_is_nil(I->raised) ? td_dict_new(I) : NULL, td_is_nil(names) ? NULL : td_as_list(names)};
  bool read = c.dict && td_npz_load(I->context, path, c.names ? is_wanted : NULL, take_array, &c) == TD_OK;
  bool ok = read && all_found(&c, path);
  td_unref(names);
  if (ok) return td_from(c.dict);
  if (c.dict && !read) td_raise_engine(I);
  td_unref(td_from(c.dict));
  return TD_NIL;
}

typedef struct arrays { // what save_npz saves
  td_npz_entry *entries; // each holds a reference
  int64_t count;
  char (*numbered)[32]; // names of those without one
} arrays;

static bool add_array(td_interpreter *I, arrays *a, const char *name, td_value v) {
  td_tensor *t = td_saved_tensor(I, v, "save_npz");
  if (!t) return false;
  a->entries[a->count++] = (td_npz_entry){name, t};
  return true;
}

static bool add_arrays(td_interpreter *I, arrays *a, const td_tuple *unnamed, td_dict *named) {
  td_value key, value;
  for (int64_t i = 0; i < unnamed->count; i++) {
    snprintf(a->numbered[i], sizeof a->numbered[i], "arr_%lld", (long long)i);
    if (!add_array(I, a, a->numbered[i], unnamed->items[i])) return false;
  }
  for (int64_t position = 0; td_dict_next(named, &position, &key, &value);) {
    const char *name = td_as_str(key)->data;
    for (int64_t i = 0; i < unnamed->count; i++)
      if (!strcmp(name, a->numbered[i]))
        return td_raise(I, TD_CLASS_VALUE_ERROR, "save_npz: two arrays have the name %s", name), false;
    if (!add_array(I, a, name, value)) return false;
  }
  return true;
}

static td_value builtin_save_npz(td_interpreter *I, td_value self,
                                 td_value *arguments) { // path, compressed, *arrays, **named
  (void)self;
  const char *path = td_path_argument(I, arguments[0], "save_npz");
  int compressed = path ? td_truth(I, arguments[1]) : -1;
  if (compressed < 0) return TD_NIL;
  const td_tuple *unnamed = td_as_tuple(arguments[2]);
  td_dict *named = td_as_dict(arguments[3]);
  arrays a = {.entries = td_memory_new((size_t)(unnamed->count + named->count + 1) * sizeof *a.entries),
              .numbered = td_memory_new((size_t)(unnamed->count + 1) * sizeof *a.numbered)};
  td_value result = TD_NIL;
  if (!a.entries || !a.numbered) td_raise_memory(I);
  else if (add_arrays(I, &a, unnamed, named))
    result = td_done(I, td_npz_save(I->context, path, a.entries, a.count, compressed));
  for (int64_t i = 0; i < a.count; i++) td_tensor_unref(a.entries[i].tensor);
  td_memory_free(a.entries);
  td_memory_free(a.numbered);
  return result;
}

// ---- PNG ----

static td_value builtin_load_png(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tensor *t = NULL;
  const char *path = td_existing_path(I, arguments[0], "load_png");
  return path ? boxed(I, td_png_load(I->context, path, &t), &t) : TD_NIL;
}

static td_value builtin_save_png(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  return save_one(I, arguments, "save_png", td_png_save);
}

// ---- safetensors ----

static td_value builtin_load_safetensors(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tensor_file file;
  const char *path = td_existing_path(I, arguments[0], "load_safetensors");
  if (!path) return TD_NIL;
  if (td_safetensors_load(I->context, path, false, &file) != TD_OK) return td_raise_engine(I);
  td_dict *dict = td_dict_new(I);
  bool ok = dict != NULL;
  for (int64_t i = 0; ok && i < file.count; i++)
    ok = put(I, dict, file.tensors[i].name, file.tensors[i].length,
             td_tensor_box(I, td_tensor_ref(file.tensors[i].tensor)));
  td_tensor_file_clear(&file);
  if (ok) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static td_value builtin_safetensors_metadata(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  td_tensor_file file;
  const char *path = td_existing_path(I, arguments[0], "safetensors_metadata");
  if (!path) return TD_NIL;
  if (td_safetensors_load(I->context, path, true, &file) != TD_OK) return td_raise_engine(I);
  td_dict *dict = td_dict_new(I);
  bool ok = dict != NULL;
  for (int64_t i = 0; ok && i < file.metadata_count; i++) {
    const td_named_text *row = &file.metadata[i];
    ok = put(I, dict, row->name, row->name_length, td_from(td_str_new(I, row->text, row->text_length)));
  }
  td_tensor_file_clear(&file);
  if (ok) return td_from(dict);
  td_unref(td_from(dict));
  return TD_NIL;
}

static bool dict_argument(td_interpreter *I, td_value v, const char *what) {
  if (td_is(v, &td_dict_type)) return true;
  td_raise(I, TD_CLASS_TYPE_ERROR, "save_safetensors: %s must be a dict, not %s", what, td_type_name(I, v));
  return false;
}

static bool fill_tensors(td_interpreter *I, td_dict *dict, td_tensor_entry *entries, int64_t *count) {
  td_value key, value;
  for (int64_t position = 0; td_dict_next(dict, &position, &key, &value); ++*count) {
    if (!td_str_argument(I, key, "save_safetensors", "a tensor's name")) return false;
    const td_str *name = td_as_str(key);
    if (!strcmp(name->data, "__metadata__"))
      return td_raise(I, TD_CLASS_VALUE_ERROR,
                      "save_safetensors: __metadata__ is no name for a tensor: give metadata="),
             false;
    td_tensor *t = td_saved_tensor(I, value, "save_safetensors");
    if (!t) return false;
    entries[*count] = (td_tensor_entry){name->data, name->length, t};
  }
  return true;
}

static bool fill_metadata(td_interpreter *I, td_dict *dict, td_text_entry *entries, int64_t *count) {
  td_value key, value;
  for (int64_t position = 0; td_dict_next(dict, &position, &key, &value); ++*count) {
    if (!td_str_argument(I, key, "save_safetensors", "a key of metadata") ||
        !td_str_argument(I, value, "save_safetensors", "a value of metadata"))
      return false;
    const td_str *name = td_as_str(key), *text = td_as_str(value);
    entries[*count] = (td_text_entry){name->data, text->data, name->length, text->length};
  }
  return true;
}

static td_value builtin_save_safetensors(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  const char *path = td_path_argument(I, arguments[0], "save_safetensors");
  bool told = !td_is_none(arguments[2]);
  if (!path || !dict_argument(I, arguments[1], "tensors") || (told && !dict_argument(I, arguments[2], "metadata")))
    return TD_NIL;
  td_dict *dict = td_as_dict(arguments[1]), *texts = told ? td_as_dict(arguments[2]) : NULL;
  int64_t count = 0, text_count = 0;
  td_tensor_entry *tensors = td_memory_new((size_t)(dict->count + 1) * sizeof *tensors);
  td_text_entry *metadata = td_memory_new((size_t)(texts ? texts->count + 1 : 1) * sizeof *metadata);
  td_value result = TD_NIL;
  if (!tensors || !metadata) td_raise_memory(I);
  else if (fill_tensors(I, dict, tensors, &count) && (!texts || fill_metadata(I, texts, metadata, &text_count)))
    result = td_done(I, td_safetensors_save(I->context, path, tensors, count, metadata, text_count));
  for (int64_t i = 0; i < count; i++) td_tensor_unref(tensors[i].tensor);
  td_memory_free(tensors);
  td_memory_free(metadata);
  return result;
}

const td_method td_tensor_file_builtins[] = {
    {"load_idx", "(path)", builtin_load_idx, "A tensor from an IDX file (MNIST's format), gzipped or not."},
    {"save_idx", "(path, x)", builtin_save_idx,
     "Saves a tensor of uint8, int32, float32 or float64 as an IDX file, gzipped when the name ends in .gz."},
    {"load_npy", "(path, mmap=False, rows=None)", builtin_load_npy,
     "A tensor from one of NumPy's .npy files.\n\n"
     "Any version, byte order and memory order; int8, int16 and uint16 become int32, uint32 and uint64 int64, with a "
     "notice; "
     "two bytes without type are bfloat16, as ml_dtypes writes it. mmap=True reads nothing yet: the file's bytes are "
     "the "
     "tensor's, read as they are needed (where they can serve as they are, and are 1 MiB or more). rows=(start, stop) "
     "reads those rows alone, so that a file larger than memory can be walked through."},
    {"save_npy", "(path, x)", builtin_save_npy,
     "Saves a tensor as a .npy file, which numpy.load reads.\n\nThe old file or the new one is there at any moment, "
     "whole. "
     "bfloat16 is written as ml_dtypes does: NumPy alone sees its bytes without a type."},
    {"load_npz", "(path, names=None)", builtin_load_npz,
     "The arrays of one of NumPy's .npz files, or those named, as a dict by name.\n\nThe archive is checked whole "
     "before anything is "
     "unpacked; each "
     "array's checksum must be right. Types are read as load_npy reads them."},
    {"save_npz", "(path, *arrays, compressed=False, **named)", builtin_save_npz,
     "Saves tensors as a .npz file, which numpy.load reads; those without a name are called arr_0, arr_1, ...\n\nThe "
     "old file or "
     "the new one is there at any moment, whole."},
    {"load_png", "(path)", builtin_load_png,
     "A picture as a tensor: [H, W] when it is grey, else [H, W, C] with 2 (grey, alpha), 3 (RGB) or 4 (RGBA) "
     "channels.\n\n"
     "uint8 from 0 to 255, also of fewer bits; pictures of 16 bits are int32 from 0 to 65535. Palettes become colours "
     "and "
     "transparency an alpha channel; gamma and colour profiles are left aside."},
    {"save_png", "(path, x)", builtin_save_png,
     "Saves a tensor of shape [H, W] or [H, W, C], C from 1 to 4, as a picture.\n\nuint8 as it is, bools as 0 and 255, "
     "floats "
     "from 0 to 1 (cut to that; NaN is 0), int32 and int64 from 0 to 65535 with 16 bits."},
    {"load_safetensors", "(path)", builtin_load_safetensors,
     "The tensors of a .safetensors file, as a dict by name, in the order of the file's header.\n\nThe whole file is "
     "checked "
     "before the first tensor is made. int8, int16 and uint16 become int32, uint32 and uint64 int64, "
     "floats of 8 bits float16."},
    {"save_safetensors", "(path, tensors, metadata=None)", builtin_save_safetensors,
     "Saves a dict of tensors, and a dict of texts as metadata, as a .safetensors file.\n\nEvery dtype keeps its bits. "
     "The "
     "old file or the new one is there at any moment, whole."},
    {"safetensors_metadata", "(path)", builtin_safetensors_metadata,
     "The metadata of a .safetensors file: a dict of texts."},
    {NULL, NULL, NULL, NULL}};
