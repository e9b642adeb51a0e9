// Reading the scalars of event files. What older and newer programs write is understood: simple_value, and 0-d tensors
// of floats, doubles and integers, by field or as bytes. All other records are passed over.
#include "engine/io/event_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/event_record.h"

typedef struct reading {
  td_input in;
  size_t at; // of the record
  td_event_curves *curves;
} reading;

typedef struct event {
  int64_t step;
  double seconds;
  td_wire_reader summary; // at NULL: none
  bool restarts;
} event;

void td_event_curves_clear(td_event_curves *curves) {
  for (int64_t i = 0; i < curves->count; i++) {
    td_memory_free(curves->curves[i].name);
    td_memory_free(curves->curves[i].points);
  }
  td_memory_free(curves->curves);
  *curves = (td_event_curves){0};
}

static bool grow(void **items, int64_t count, int64_t *capacity, size_t size) {
  if (count < *capacity) return true;
  int64_t larger = *capacity ? *capacity * 2 : 8;
  void *grown = td_memory_resize(*items, (size_t)larger * size);
  if (!grown) return false;
  *items = grown;
  *capacity = larger;
  return true;
}

static td_event_curve *find_curve(td_event_curves *all, const char *name,
                                  size_t length) { // made when absent; NULL: no memory
  for (int64_t i = 0; i < all->count; i++)
    if (!strncmp(all->curves[i].name, name, length) && !all->curves[i].name[length]) return &all->curves[i];
  void *items = all->curves;
  bool fits = grow(&items, all->count, &all->capacity, sizeof *all->curves);
  all->curves = items;
  char *copy = fits ? td_memory_new(length + 1) : NULL;
  if (!copy) return NULL;
  memcpy(copy, name, length);
  copy[length] = 0;
  all->curves[all->count] = (td_event_curve){.name = copy};
  return &all->curves[all->count++];
}

static int add_point(reading *r, const td_wire_field *name, td_event_point point) {
  size_t length = strnlen((const char *)name->bytes, name->length);
  td_event_curve *curve = find_curve(r->curves, (const char *)name->bytes, length);
  void *items = curve ? curve->points : NULL;
  if (!curve || !grow(&items, curve->count, &curve->capacity, sizeof *curve->points))
    return td_error_memory(r->in.context, r->in.who, td_memory_failed());
  curve->points = items;
  curve->points[curve->count++] = point;
  return TD_OK;
}

static void drop_from(td_event_curves *all, int64_t step) { // training began again there
  for (td_event_curve *curve = all->curves; curve < all->curves + all->count; curve++) {
    int64_t kept = 0;
    for (int64_t i = 0; i < curve->count; i++)
      if (curve->points[i].step < step) curve->points[kept++] = curve->points[i];
    curve->count = kept;
  }
}

// ---- messages ----

static td_wire_reader inside(const td_wire_field *f) {
  return (td_wire_reader){.at = f->bytes, .end = f->bytes + f->length};
}

enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_INT64 = 9 };

static bool content_number(const td_wire_field *content, int dtype, double *number) { // 4 tensor_content
  size_t width = dtype == DT_FLOAT || dtype == DT_INT32 ? 4 : 8;
  if (content->length != width) return false;
  td_wire_field f = {.value = td_little_endian(content->bytes, (int)width)};
  *number = dtype == DT_FLOAT    ? (double)td_wire_float(&f)
            : dtype == DT_DOUBLE ? td_wire_double(&f)
            : dtype == DT_INT32  ? (int32_t)f.value
                                 : (double)(int64_t)f.value;
  return true;
}

// The number of a tensor of one element: 1 dtype, 4 tensor_content, 5 float_val, 6 double_val, 7 int_val, 10 int64_val.
static bool tensor_number(td_wire_reader r, double *number) {
  td_wire_field f;
  int dtype = 0;
  bool found = false;
  while (td_wire_next(&r, &f)) {
    td_wire_field value = f;
    if (f.number == 1 && f.kind == TD_WIRE_VARINT) dtype = (int)f.value;
    if (f.kind == TD_WIRE_BYTES && f.number == 4) found = content_number(&f, dtype, number);
    if (f.kind == TD_WIRE_BYTES && (f.number == 5 || f.number == 6) && f.length == (f.number == 5 ? 4 : 8))
      value = (td_wire_field){.number = f.number,
                              .kind = f.number == 5 ? TD_WIRE_FIXED32 : TD_WIRE_FIXED64,
                              .value = td_little_endian(f.bytes, (int)f.length)};
    if (value.kind == TD_WIRE_FIXED32 && f.number == 5) *number = (double)td_wire_float(&value), found = true;
    if (value.kind == TD_WIRE_FIXED64 && f.number == 6) *number = td_wire_double(&value), found = true;
    if (f.kind == TD_WIRE_BYTES && (f.number == 7 || f.number == 10)) {
      td_wire_reader packed = inside(&f);
      *number = (double)(int64_t)td_wire_varint(&packed);
      found = !packed.wrong && packed.at == packed.end;
    }
  }
  return found && !r.wrong && (dtype == DT_FLOAT || dtype == DT_DOUBLE || dtype == DT_INT32 || dtype == DT_INT64);
}

static bool is_of_scalars(td_wire_reader r) { // SummaryMetadata: 1 plugin_data, with 1 plugin_name
  td_wire_field f, name;
  while (td_wire_next(&r, &f)) {
    td_wire_reader plugin = inside(&f);
    while (f.number == 1 && f.kind == TD_WIRE_BYTES && td_wire_next(&plugin, &name))
      if (name.number == 1 && name.kind == TD_WIRE_BYTES) return name.length == 7 && !memcmp(name.bytes, "scalars", 7);
  }
  return false;
}

static int refuse_record(const reading *r) {
  return td_input_refuse(&r->in, r->at, "the record is no Event: its protocol buffer is broken");
}

static int read_value(reading *r, td_wire_reader value, const event *e) {
  td_wire_field f, name = {0};
  bool simple = false, tensor = false, other = false;
  double number = 0;
  while (td_wire_next(&value, &f)) {
    if (f.number == 1 && f.kind == TD_WIRE_BYTES) name = f;
    if (f.number == 2 && f.kind == TD_WIRE_FIXED32) number = (double)td_wire_float(&f), simple = true;
    if (f.number == 8 && f.kind == TD_WIRE_BYTES) tensor = tensor_number(inside(&f), &number);
    if (f.number == 9 && f.kind == TD_WIRE_BYTES) other = !is_of_scalars(inside(&f));
  }
  if (value.wrong) return refuse_record(r);
  if (!name.bytes || !(simple || (tensor && !other))) return TD_OK;
  return add_point(r, &name, (td_event_point){e->step, e->seconds, number});
}

static bool says_start(td_wire_reader r) { // SessionLog: 1 status, START 1
  td_wire_field f;
  while (td_wire_next(&r, &f))
    if (f.number == 1 && f.kind == TD_WIRE_VARINT) return f.value == 1;
  return false;
}

static int read_event(reading *r, td_wire_reader message) {
  td_wire_field f;
  event e = {0};
  while (td_wire_next(&message, &f)) {
    if (f.number == 1 && f.kind == TD_WIRE_FIXED64) e.seconds = td_wire_double(&f);
    if (f.number == 2 && f.kind == TD_WIRE_VARINT) e.step = (int64_t)f.value;
    if (f.number == 5 && f.kind == TD_WIRE_BYTES) e.summary = inside(&f);
    if (f.number == 7 && f.kind == TD_WIRE_BYTES) e.restarts = says_start(inside(&f));
  }
  if (message.wrong) return refuse_record(r);
  if (e.restarts) drop_from(r->curves, e.step);
  int code = TD_OK;
  while (!code && td_wire_next(&e.summary, &f))
    if (f.number == 1 && f.kind == TD_WIRE_BYTES) code = read_value(r, inside(&f), &e);
  return code ? code : e.summary.wrong ? refuse_record(r) : TD_OK;
}

// ---- files ----

static int read_record(reading *r, bool *ended) {
  const td_input *in = &r->in;
  const uint8_t *bytes = in->bytes + r->at;
  size_t left = in->size - r->at;
  *ended = left < 12;
  if (*ended) return TD_OK;
  uint64_t length = td_little_endian(bytes, 8);
  if (td_little_endian(bytes + 8, 4) != td_crc_mask(td_crc32c(bytes, 8)))
    return td_input_refuse(in, r->at + 8, "the checksum of the record's length is wrong");
  *ended = left < 16 || length > left - 16;
  if (*ended) return TD_OK;
  if (td_little_endian(bytes + 12 + length, 4) != td_crc_mask(td_crc32c(bytes + 12, length)))
    return td_input_refuse(in, r->at + 12 + length, "the record's checksum is wrong");
  int code = read_event(r, (td_wire_reader){.at = bytes + 12, .end = bytes + 12 + length});
  r->at += 16 + length;
  return code;
}

static int load_file(td_context *context, const char *path, td_event_curves *curves) {
  reading r = {.curves = curves};
  int code = td_input_open(&r.in, context, "load_events", path);
  for (bool ended = false; !code && !ended;) code = read_record(&r, &ended);
  if (!code) code = td_input_check(&r.in);
  td_input_close(&r.in);
  return code;
}

typedef struct names {
  td_context *context;
  char **items;
  int64_t count, capacity;
} names;

static int add_name(void *owner, const char *name) {
  names *n = owner;
  if (!strstr(name, "tfevents")) return TD_OK;
  void *items = n->items;
  bool fits = grow(&items, n->count, &n->capacity, sizeof *n->items);
  n->items = items;
  char *copy = fits ? td_memory_text(name) : NULL;
  if (!copy) return td_error_memory(n->context, "load_events", td_memory_failed());
  n->items[n->count++] = copy;
  return TD_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int load_folder(td_context *context, const char *path, td_event_curves *curves) {
  names n = {.context = context};
  int code = td_file_list(context, path, add_name, &n);
  if (n.count) qsort(n.items, (size_t)n.count, sizeof *n.items, by_text);
  for (int64_t i = 0; i < n.count; i++) {
    td_text file = {0};
    td_text_print(&file, "%s/%s", path, n.items[i]);
    if (!code)
      code = file.failed ? td_error_memory(context, "load_events", td_memory_failed())
                         : load_file(context, file.data, curves);
    td_text_clear(&file);
    td_memory_free(n.items[i]);
  }
  td_memory_free(n.items);
  return code;
}

int td_event_curves_load(td_context *context, const char *path, td_event_curves *curves) {
  *curves = (td_event_curves){0};
  int code = td_file_is_folder(path) ? load_folder(context, path, curves) : load_file(context, path, curves);
  if (code) td_event_curves_clear(curves);
  return code;
}
