// Reading and writing of safetensors. The reader refuses what the format's own library refuses: a file under 8 bytes, a
// header over 100 MB, past the end, not UTF-8, not beginning with '{' or no JSON of the right form, a dtype that it
// doesn't know, offsets that are reversed, overlap, leave a gap, don't fit shape and dtype or overflow, bytes behind
// the last tensor, and a name that comes twice. All is checked before the first tensor is made.
#include "engine/io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/elements.h"
#include "engine/io/json.h"

static const uint64_t HEADER_MAX = 100000000;
enum { SHOWN = 80 }; // bytes of a name in a message

typedef struct entry { // a tensor as the header tells
  size_t place; // of its name, in the file
  enum td_element_kind kind;
  int rank;
  int64_t shape[TD_RANK_MAX];
  uint64_t begin, end; // behind the header
} entry;

typedef struct reader {
  const td_input *in;
  td_json json;
  td_tensor_file *file;
  entry *entries; // as many as file->tensors
  int64_t capacity;
  uint64_t data; // where the tensors' bytes begin
} reader;

// ---- growing lists ----

static bool has_room(void *list, int64_t count, int64_t *capacity, size_t size) { // list: the address of a pointer
  if (count < *capacity) return true;
  void *old, *grown;
  memcpy(&old, list, sizeof old);
  int64_t larger = *capacity ? *capacity * 2 : 16;
  grown = td_memory_resize(old, (size_t)larger * size);
  if (!grown) return false;
  memcpy(list, &grown, sizeof grown);
  *capacity = larger;
  return true;
}

static int refuse_memory(const reader *r) { return td_error_memory(r->in->context, r->in->who, td_memory_failed()); }

static char *copy_text(const td_text *text, size_t *length) {
  char *copy = td_memory_new(text->length + 1);
  if (!copy) return NULL;
  memcpy(copy, text->data, text->length + 1);
  *length = text->length;
  return copy;
}

void td_tensor_file_clear(td_tensor_file *file) {
  for (int64_t i = 0; i < file->count; i++) {
    td_memory_free(file->tensors[i].name);
    td_tensor_unref(file->tensors[i].tensor);
  }
  for (int64_t i = 0; i < file->metadata_count; i++) {
    td_memory_free(file->metadata[i].name);
    td_memory_free(file->metadata[i].text);
  }
  td_memory_free(file->tensors);
  td_memory_free(file->metadata);
  *file = (td_tensor_file){0};
}

// ---- the header's JSON ----

static uint64_t place(const reader *r) { return 8 + r->json.at; }

static int refuse_json(reader *r, const char *otherwise) {
  if (r->json.text.failed) return refuse_memory(r);
  return td_input_refuse(r->in, place(r), "the header: %s", r->json.error ? r->json.error : otherwise);
}

static int refuse_field(reader *r, const char *name, const char *reason) {
  if (r->json.error || r->json.text.failed) return refuse_json(r, NULL);
  return td_input_refuse(r->in, place(r), "tensor '%.*s': %s", SHOWN, name, reason);
}

static int read_number(reader *r, const char *name, uint64_t *number) {
  static const char reason[] = "shape and data_offsets hold whole numbers from 0 up to 2^64 - 1";
  if (td_json_value(&r->json) != TD_JSON_INTEGER || !r->json.text.data) return refuse_field(r, name, reason);
  *number = 0;
  for (const char *c = r->json.text.data; *c; c++)
    if (*c == '-' || __builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(*c - '0'), number))
      return refuse_field(r, name, reason);
  return TD_OK;
}

static int read_dtype(reader *r, const char *name, entry *e) {
  if (td_json_value(&r->json) != TD_JSON_STRING || !r->json.text.data)
    return refuse_field(r, name, "dtype must be a string");
  for (int i = 0; i < TD_ELEMENT_KIND_COUNT; i++)
    if (!strcmp(r->json.text.data, td_element_rows[i].name)) {
      e->kind = i;
      return TD_OK;
    }
  return td_input_refuse(r->in, place(r), "tensor '%.*s': dtype '%.*s' is none that a tensor can hold", SHOWN, name,
                         SHOWN, r->json.text.data);
}

static int read_shape(reader *r, const char *name, entry *e) {
  if (td_json_value(&r->json) != TD_JSON_ARRAY) return refuse_field(r, name, "shape must be an array");
  for (bool first = true; td_json_element(&r->json, first); first = false) {
    uint64_t size = 0;
    int code = read_number(r, name, &size);
    if (code) return code;
    if (e->rank == TD_RANK_MAX) return refuse_field(r, name, "shape has more than 8 axes");
    if (size > INT64_MAX) return refuse_field(r, name, "a size of the shape is larger than any tensor's");
    e->shape[e->rank++] = (int64_t)size;
  }
  return r->json.error ? refuse_json(r, NULL) : TD_OK;
}

static int read_offsets(reader *r, const char *name, entry *e) {
  int count = 0;
  if (td_json_value(&r->json) != TD_JSON_ARRAY) return refuse_field(r, name, "data_offsets must be an array");
  for (; td_json_element(&r->json, !count); count++) {
    uint64_t offset = 0;
    int code = count < 2 ? read_number(r, name, &offset) : refuse_field(r, name, "data_offsets are two");
    if (code) return code;
    *(count ? &e->end : &e->begin) = offset;
  }
  return r->json.error || count != 2 ? refuse_field(r, name, "data_offsets are two") : TD_OK;
}

static int read_entry(reader *r, const char *name, entry *e) {
  static const struct {
    const char *key;
    int (*read)(reader *, const char *, entry *);
  } fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};
  unsigned seen = 0;
  if (td_json_value(&r->json) != TD_JSON_OBJECT) return refuse_field(r, name, "an object must follow");
  for (bool first = true; td_json_key(&r->json, first); first = false) {
    unsigned i = 0;
    while (i < 3 && (!r->json.text.data || strcmp(r->json.text.data, fields[i].key))) i++;
    if (i == 3) return refuse_field(r, name, "a key is none of dtype, shape, data_offsets");
    if (seen & 1u << i) return refuse_field(r, name, "a key comes twice");
    seen |= 1u << i;
    int code = fields[i].read(r, name, e);
    if (code) return code;
  }
  if (r->json.error) return refuse_json(r, NULL);
  return seen == 7 ? TD_OK : refuse_field(r, name, "one of dtype, shape, data_offsets is missing");
}

static int read_metadata(reader *r) {
  td_tensor_file *file = r->file;
  if (td_json_value(&r->json) != TD_JSON_OBJECT) return refuse_json(r, "__metadata__ must be an object of strings");
  for (bool first = true; td_json_key(&r->json, first); first = false) {
    if (r->json.text.failed ||
        !has_room(&file->metadata, file->metadata_count, &file->metadata_capacity, sizeof *file->metadata))
      return refuse_memory(r);
    td_named_text *row = &file->metadata[file->metadata_count];
    *row = (td_named_text){0};
    file->metadata_count++;
    row->name = copy_text(&r->json.text, &row->name_length);
    if (!row->name) return refuse_memory(r);
    if (td_json_value(&r->json) != TD_JSON_STRING) return refuse_json(r, "__metadata__ must be an object of strings");
    row->text = r->json.text.failed ? NULL : copy_text(&r->json.text, &row->text_length);
    if (!row->text) return refuse_memory(r);
  }
  return r->json.error ? refuse_json(r, NULL) : TD_OK;
}

static int read_named(reader *r, size_t begin) { // json's text is the name
  td_tensor_file *file = r->file;
  if (!has_room(&file->tensors, file->count, &file->capacity, sizeof *file->tensors) ||
      !has_room(&r->entries, file->count, &r->capacity, sizeof *r->entries))
    return refuse_memory(r);
  td_named_tensor *row = &file->tensors[file->count];
  *row = (td_named_tensor){0};
  r->entries[file->count] = (entry){.place = begin};
  file->count++;
  row->name = copy_text(&r->json.text, &row->length);
  return row->name ? read_entry(r, row->name, &r->entries[file->count - 1]) : refuse_memory(r);
}

static int read_json(reader *r) {
  bool metadata = false;
  if (td_json_value(&r->json) != TD_JSON_OBJECT) return refuse_json(r, "an object is needed");
  for (bool first = true; td_json_key(&r->json, first); first = false) {
    size_t begin = place(r);
    bool is_metadata = r->json.text.length == 12 && !memcmp(r->json.text.data, "__metadata__", 12);
    if (r->json.text.failed) return refuse_memory(r);
    if (is_metadata && metadata) return refuse_json(r, "__metadata__ comes twice");
    metadata |= is_metadata;
    int code = is_metadata ? read_metadata(r) : read_named(r, begin);
    if (code) return code;
  }
  if (r->json.error || r->json.text.failed) return refuse_json(r, NULL);
  while (r->json.at < r->json.size && r->json.bytes[r->json.at] == ' ') r->json.at++;
  return r->json.at == r->json.size ? TD_OK : refuse_json(r, "text follows the object");
}

// ---- checks over all tensors ----

static int refuse_entry(const reader *r, int64_t i, const char *reason) {
  const entry *e = &r->entries[i];
  td_text shape = {0};
  td_shape_print(&shape, e->rank, e->shape);
  int code = td_input_refuse(r->in, e->place, "tensor '%.*s' (%s%s, data_offsets %" PRIu64 " to %" PRIu64 "): %s",
                             SHOWN, r->file->tensors[i].name, td_element_rows[e->kind].name,
                             shape.data ? shape.data : "", e->begin, e->end, reason);
  td_text_clear(&shape);
  return code;
}

static int check_entry(const reader *r, int64_t i) {
  const entry *e = &r->entries[i];
  int64_t size = td_shape_size(e->rank, e->shape), bytes;
  if (size < 0 || __builtin_mul_overflow(size, (int64_t)td_element_rows[e->kind].bytes, &bytes))
    return refuse_entry(r, i, "the product of the sizes is larger than any tensor's");
  if (e->end < e->begin) return refuse_entry(r, i, "they end before they begin");
  if (e->end > r->in->size - r->data) return refuse_entry(r, i, "they go past the file's end");
  if (e->end - e->begin != (uint64_t)bytes) return refuse_entry(r, i, "they don't fit the shape");
  return TD_OK;
}

typedef struct reference { // where to find an entry when sorted
  const reader *reader;
  int64_t index;
} reference;

static int by_offset(const void *a, const void *b) {
  const reference *x = a, *y = b;
  const entry *e = &x->reader->entries[x->index], *f = &y->reader->entries[y->index];
  if (e->begin != f->begin) return e->begin < f->begin ? -1 : 1;
  return e->end < f->end ? -1 : e->end > f->end;
}

static int by_name(const void *a, const void *b) {
  const reference *x = a, *y = b;
  const td_named_tensor *e = &x->reader->file->tensors[x->index], *f = &y->reader->file->tensors[y->index];
  size_t length = e->length < f->length ? e->length : f->length;
  int order = memcmp(e->name, f->name, length);
  return order ? order : e->length < f->length ? -1 : e->length > f->length;
}

static int check_names(const reader *r, const reference *sorted) {
  for (int64_t i = 1; i < r->file->count; i++)
    if (!by_name(&sorted[i - 1], &sorted[i])) return refuse_entry(r, sorted[i].index, "the name comes twice");
  return TD_OK;
}

static int check_cover(const reader *r, const reference *sorted) { // each tensor begins where the one before it ends
  uint64_t end = 0;
  for (int64_t i = 0; i < r->file->count; i++) {
    const entry *e = &r->entries[sorted[i].index];
    if (e->begin != end)
      return refuse_entry(r, sorted[i].index,
                          e->begin < end ? "they overlap another tensor's" : "they leave a gap before them");
    end = e->end;
  }
  uint64_t there = r->in->size - r->data;
  if (end == there) return TD_OK;
  return td_input_refuse(r->in, r->data + end, "%" PRIu64 " bytes follow the last tensor", there - end);
}

static int check_all(const reader *r) {
  int64_t count = r->file->count;
  for (int64_t i = 0; i < count; i++) {
    int code = check_entry(r, i);
    if (code) return code;
  }
  reference *sorted = td_memory_new((size_t)(count + 1) * sizeof *sorted);
  if (!sorted) return refuse_memory(r);
  for (int64_t i = 0; i < count; i++) sorted[i] = (reference){r, i};
  qsort(sorted, (size_t)count, sizeof *sorted, by_name);
  int code = check_names(r, sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, by_offset);
  if (!code) code = check_cover(r, sorted);
  td_memory_free(sorted);
  return code;
}

// ---- reading ----

static int read_length(reader *r) {
  const td_input *in = r->in;
  if (in->size < 8) return td_input_refuse(in, in->size, "the file is shorter than the 8 bytes of the header's length");
  uint64_t length = td_little_endian(in->bytes, 8);
  bool fits = length <= HEADER_MAX && length <= in->size - 8;
  if (!fits && in->size > 8 && in->bytes[8] != '{')
    return td_input_refuse(in, 0, "this is no .safetensors file, nor one of tapedeck's, which are such files too");
  if (length > HEADER_MAX)
    return td_input_refuse(in, 0, "the header is to be %" PRIu64 " bytes long; %" PRIu64 " are accepted", length,
                           HEADER_MAX);
  if (length > in->size - 8)
    return td_input_refuse(in, 0, "the header is to be %" PRIu64 " bytes long, %zu are there", length, in->size - 8);
  r->data = 8 + length;
  r->json = (td_json){.bytes = (const char *)in->bytes + 8, .size = (size_t)length};
  if (!length || in->bytes[8] != '{') return td_input_refuse(in, 8, "the header doesn't begin with '{'");
  return TD_OK;
}

static int read_tensors(reader *r) {
  for (int64_t i = 0; i < r->file->count; i++) {
    const entry *e = &r->entries[i];
    td_tensor *t = td_tensor_new(r->in->context, td_element_rows[e->kind].dtype, e->rank, e->shape);
    if (!t) return r->in->context->error.code;
    r->file->tensors[i].tensor = t;
    int64_t wrong = td_elements_decode(t->data, r->in->bytes + r->data + e->begin, e->kind, false, t->size);
    if (wrong < 0) continue;
    return td_input_refuse(r->in, r->data + e->begin + (uint64_t)wrong * td_element_rows[e->kind].bytes,
                           "tensor '%.*s': %s", SHOWN, r->file->tensors[i].name,
                           e->kind == TD_ELEMENT_BOOL ? "a bool is 0 or 1" : "an element is past what int64 can hold");
  }
  int code = td_input_check(r->in);
  for (int64_t i = 0; !code && i < r->file->count; i++)
    td_elements_tell(r->in, r->file->tensors[i].name, r->entries[i].kind);
  return code;
}

int td_safetensors_load(td_context *context, const char *path, bool metadata_only, td_tensor_file *file) {
  td_input in;
  reader r = {.in = &in, .file = file};
  *file = (td_tensor_file){0};
  int code = td_input_open(&in, context, "load_safetensors", path);
  if (!code) code = read_length(&r);
  if (!code) code = read_json(&r);
  if (!code) code = check_all(&r);
  if (!code && !metadata_only) code = read_tensors(&r);
  td_text_clear(&r.json.text);
  td_memory_free(r.entries);
  td_input_close(&in);
  if (code) td_tensor_file_clear(file);
  return code;
}

// ---- writing ----

static int by_width(const void *a, const void *b) { // widest first, else by name
  const td_tensor_entry *const *x = a, *const *y = b;
  int width = td_dtype_bytes((*y)->tensor->dtype) - td_dtype_bytes((*x)->tensor->dtype);
  if (width) return width;
  size_t length = (*x)->length < (*y)->length ? (*x)->length : (*y)->length;
  int order = memcmp((*x)->name, (*y)->name, length);
  return order ? order : (*x)->length < (*y)->length ? -1 : (*x)->length > (*y)->length;
}

static uint64_t bytes_of(const td_tensor *t) { return (uint64_t)t->size * (uint64_t)td_dtype_bytes(t->dtype); }

static void add_metadata(td_text *out, const td_text_entry *metadata, int64_t count) {
  td_text_add(out, "\"__metadata__\":{");
  for (int64_t i = 0; i < count; i++) {
    if (i) td_text_add_char(out, ',');
    td_json_quote(out, metadata[i].name, metadata[i].name_length, false);
    td_text_add_char(out, ':');
    td_json_quote(out, metadata[i].text, metadata[i].text_length, false);
  }
  td_text_add_char(out, '}');
}

static void add_entry(td_text *out, const td_tensor_entry *row, uint64_t *offset) {
  const td_tensor *t = row->tensor;
  td_json_quote(out, row->name, row->length, false);
  td_text_print(out, ":{\"dtype\":\"%s\",\"shape\":[", td_element_rows[td_element_of(t->dtype)].name);
  for (int axis = 0; axis < t->rank; axis++) td_text_print(out, "%s%lld", axis ? "," : "", (long long)t->shape[axis]);
  td_text_print(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *offset, *offset + bytes_of(t));
  *offset += bytes_of(t);
}

static void add_header(td_text *out, const td_tensor_entry *const *sorted, int64_t count, const td_text_entry *metadata,
                       int64_t metadata_count) {
  uint64_t offset = 0;
  td_text_add_bytes(out, "\0\0\0\0\0\0\0\0{", 9);
  if (metadata_count) add_metadata(out, metadata, metadata_count);
  for (int64_t i = 0; i < count; i++) {
    if (i || metadata_count) td_text_add_char(out, ',');
    add_entry(out, sorted[i], &offset);
  }
  td_text_add_char(out, '}');
  td_text_pad(out, (out->length + 7) & ~(size_t)7, ' ');
  if (out->failed) return;
  uint64_t length = out->length - 8;
  for (int i = 0; i < 8; i++) out->data[i] = (char)(length >> (8 * i));
}

typedef struct work { // of a save
  const td_tensor_entry **sorted;
  td_tensor **whole; // contiguous
  td_file_part *parts; // the header, and each tensor's bytes
} work;

static int write_all(td_context *context, const char *path, const work *w, int64_t count, const td_text *header) {
  w->parts[0] = (td_file_part){header->data, header->length};
  for (int64_t i = 0; i < count; i++) {
    w->whole[i] = td_tensor_contiguous(context, w->sorted[i]->tensor);
    if (!w->whole[i]) return context->error.code;
    w->parts[i + 1] = (td_file_part){w->whole[i]->data, (size_t)bytes_of(w->whole[i])};
  }
  return td_file_save_parts(context, path, w->parts, (int)count + 1);
}

int td_safetensors_save(td_context *context, const char *path, const td_tensor_entry *tensors, int64_t count,
                        const td_text_entry *metadata, int64_t metadata_count) {
  td_text header = {0};
  work w = {.sorted = td_memory_new((size_t)(count + 1) * sizeof *w.sorted),
            .whole = td_memory_new_zero((size_t)(count + 1) * sizeof *w.whole),
            .parts = td_memory_new((size_t)(count + 1) * sizeof *w.parts)};
  int code = TD_OK;
  if (w.sorted && w.whole && w.parts) {
    for (int64_t i = 0; i < count; i++) w.sorted[i] = &tensors[i];
    qsort(w.sorted, (size_t)count, sizeof *w.sorted, by_width);
    add_header(&header, w.sorted, count, metadata, metadata_count);
  }
  if (!header.data || header.failed) code = td_error_memory(context, "save_safetensors", td_memory_failed());
  else if (header.length - 8 > HEADER_MAX)
    code = td_error_set(context, TD_ERROR_FILE,
                        "save_safetensors: '%s': names and metadata need %zu bytes; %" PRIu64 " are allowed", path,
                        header.length, HEADER_MAX);
  if (!code) code = write_all(context, path, &w, count, &header);
  for (int64_t i = 0; w.whole && i < count; i++) td_tensor_unref(w.whole[i]);
  td_memory_free(w.sorted);
  td_memory_free(w.whole);
  td_memory_free(w.parts);
  td_text_clear(&header);
  return code;
}
