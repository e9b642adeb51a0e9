// Writing of event files. A record: the length in 8 bytes, its masked CRC32C, an Event, its masked CRC32C. The fields:
// Event: 1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log. Summary: 1 value, each with 1 tag, 2
// simple_value, 4 image, 5 histo, 8 tensor, 9 metadata.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "engine/io/event_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/io/event_record.h"
#include "engine/io/png.h"

enum { BUCKETS = 30 };

struct td_event_writer {
  char *path; // of the file
  bool begun; // its first record is written
  td_event_curves before; // what the folder held; a curve without points has been looked at
};

// Four bits at a time; a record is short, and a picture is deflated for much longer.
uint32_t td_crc32c(const void *bytes, size_t size) {
  static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                     0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                     0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
  const uint8_t *b = bytes;
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < size; i++) {
    crc ^= b[i];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

// ---- opening ----

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static char *choose_path(const char *folder) { // TensorFlow's names: seconds, machine, process, number
  static atomic_uint number;
  char host[65] = "";
  td_text path = {0};
  if (gethostname(host, sizeof host - 1) || !*host) snprintf(host, sizeof host, "localhost");
  for (char *c = host; *c; c++)
    if (*c == '/') *c = '-';
  td_text_print(&path, "%s/events.out.tfevents.%010lld.%s.%ld.%05u", folder, (long long)now(), host, (long)getpid(),
                atomic_fetch_add(&number, 1));
  return td_text_take(&path);
}

// A file that can't be read is no reason to write no other.
static int read_before(td_context *context, const char *folder, td_event_writer *w) {
  int code = td_event_curves_load(context, folder, &w->before);
  if (code != TD_ERROR_FILE) return code;
  if (context->warn) context->warn(context->owner, context->error.message);
  td_error_clear(context);
  return TD_OK;
}

int td_event_writer_open(td_context *context, const char *folder, td_event_writer **out) {
  *out = NULL;
  int code = td_file_make_folder(context, folder);
  if (code) return code;
  td_event_writer *w = td_memory_new_zero(sizeof *w);
  if (w) w->path = choose_path(folder);
  if (!w || !w->path) code = td_error_memory(context, "summary_writer", td_memory_failed());
  else code = read_before(context, folder, w);
  if (code) td_event_writer_close(w);
  else *out = w;
  return code;
}

void td_event_writer_close(td_event_writer *w) {
  if (!w) return;
  td_event_curves_clear(&w->before);
  td_memory_free(w->path);
  td_memory_free(w);
}

const char *td_event_writer_path(const td_event_writer *w) { return w->path; }

// ---- records ----

static void add_record(td_text *out, td_text *event) { // clears event
  size_t begin = out->length;
  td_wire_add_fixed(out, event->length, 8);
  if (!out->failed) td_wire_add_fixed(out, td_crc_mask(td_crc32c(out->data + begin, 8)), 4);
  td_text_add_bytes(out, event->data, event->length);
  td_wire_add_fixed(out, td_crc_mask(td_crc32c(event->data, event->length)), 4);
  out->failed |= event->failed;
  td_text_clear(event);
}

static td_text event_start(int64_t step) {
  td_text event = {0};
  td_wire_add_double(&event, 1, now());
  if (step) td_wire_add_int(&event, 2, step);
  return event;
}

static void add_restart(td_text *out, int64_t step) { // SessionLog 1 status: START 1
  td_text event = event_start(step), log = {0};
  td_wire_add_int(&log, 1, 1);
  td_wire_add_message(&event, 7, &log);
  add_record(out, &event);
}

// Once for each name: does its first step come again?
static bool is_resumed(td_event_writer *w, const char *name, int64_t step) {
  for (int64_t at = 0; at < w->before.count; at++) {
    td_event_curve *curve = &w->before.curves[at];
    if (strcmp(curve->name, name)) continue;
    bool again = false;
    for (int64_t i = 0; i < curve->count; i++) again |= curve->points[i].step >= step;
    curve->count = 0;
    return again;
  }
  return false;
}

static void forget_from(td_event_writer *w, int64_t step) { // they are dropped now, of every name
  for (td_event_curve *curve = w->before.curves; curve < w->before.curves + w->before.count; curve++) {
    int64_t kept = 0;
    for (int64_t i = 0; i < curve->count; i++)
      if (curve->points[i].step < step) curve->points[kept++] = curve->points[i];
    curve->count = kept;
  }
}

// Appends a Summary of the values, which are cleared, and what must stand before it.
static int write_values(td_context *context, td_event_writer *w, const char *name, int64_t step, td_text *values,
                        bool scalar) {
  td_text out = {0}, event;
  if (!w->begun) {
    event = event_start(0);
    td_wire_add_bytes(&event, 3, "brain.Event:2", 13);
    add_record(&out, &event);
  }
  if (scalar && is_resumed(w, name, step)) {
    forget_from(w, step);
    add_restart(&out, step);
  }
  event = event_start(step);
  td_wire_add_message(&event, 5, values);
  add_record(&out, &event);
  int code = out.failed ? td_error_memory(context, "summary", td_memory_failed())
                        : td_file_append(context, w->path, out.data, out.length);
  td_text_clear(&out);
  if (!code) w->begun = true;
  return code;
}

static td_text value_start(const char *name) {
  td_text value = {0};
  td_wire_add_bytes(&value, 1, name, strlen(name));
  return value;
}

int td_event_scalar(td_context *context, td_event_writer *w, const char *name, int64_t step, double number) {
  td_text value = value_start(name), values = {0};
  td_wire_add_float(&value, 2, (float)number);
  td_wire_add_message(&values, 1, &value);
  return write_values(context, w, name, step, &values, true);
}

int td_event_text(td_context *context, td_event_writer *w, const char *name, int64_t step, const char *text,
                  size_t length) {
  td_text value = value_start(name), values = {0}, tensor = {0}, shape = {0}, axis = {0}, metadata = {0}, plugin = {0};
  td_wire_add_int(&axis, 1, 1);
  td_wire_add_message(&shape, 2, &axis);
  td_wire_add_int(&tensor, 1, 7); // DT_STRING
  td_wire_add_message(&tensor, 2, &shape);
  td_wire_add_bytes(&tensor, 8, text, length);
  td_wire_add_bytes(&plugin, 1, "text", 4);
  td_wire_add_message(&metadata, 1, &plugin);
  td_wire_add_int(&metadata, 4, 2); // DATA_CLASS_TENSOR
  td_wire_add_message(&value, 8, &tensor);
  td_wire_add_message(&value, 9, &metadata);
  td_wire_add_message(&values, 1, &value);
  return write_values(context, w, name, step, &values, false);
}

// ---- histograms: 1 min, 2 max, 3 num, 4 sum, 5 sum_squares, 6 bucket_limit, 7 bucket ----

typedef struct histogram {
  double low, high, count, sum, squares, buckets[BUCKETS];
} histogram;

static histogram measure(const td_tensor *t) {
  histogram h = {0};
  for (int64_t i = 0; i < t->size; i++) {
    double x = td_tensor_get_float(t, i);
    if (!isfinite(x)) continue;
    h.low = h.count == 0 || x < h.low ? x : h.low;
    h.high = h.count == 0 || x > h.high ? x : h.high;
    h.count++;
    h.sum += x;
    h.squares += x * x;
  }
  return h;
}

static void sort_in(histogram *h, const td_tensor *t, double begin, double width) {
  for (int64_t i = 0; i < t->size; i++) {
    double x = td_tensor_get_float(t, i), place = (x / BUCKETS - begin / BUCKETS) / (width / BUCKETS) * BUCKETS;
    if (isfinite(x)) h->buckets[place >= BUCKETS ? BUCKETS - 1 : place > 0 ? (int)place : 0]++;
  }
}

static void add_packed(td_text *out, int field, const double *numbers) {
  td_wire_add_key(out, field, TD_WIRE_BYTES);
  td_wire_add_varint(out, BUCKETS * 8);
  for (int i = 0; i < BUCKETS; i++) {
    uint64_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    td_wire_add_fixed(out, bits, 8);
  }
}

int td_event_histogram(td_context *context, td_event_writer *w, const char *name, int64_t step, const td_tensor *t) {
  histogram h = measure(t);
  bool flat = h.low == h.high;
  double begin = flat ? h.low - 0.5 : h.low, width = flat ? 1.0 / BUCKETS : h.high / BUCKETS - h.low / BUCKETS,
         limits[BUCKETS];
  for (int i = 0; i < BUCKETS; i++)
    limits[i] = i + 1 < BUCKETS ? begin + width * (i + 1) : flat ? h.high + 0.5 : h.high;
  sort_in(&h, t, begin, width);
  td_text value = value_start(name), values = {0}, message = {0};
  const double figures[] = {h.low, h.high, h.count, h.sum, h.squares};
  for (int i = 0; i < 5; i++) td_wire_add_double(&message, i + 1, figures[i]);
  add_packed(&message, 6, limits);
  add_packed(&message, 7, h.buckets);
  td_wire_add_message(&value, 5, &message);
  td_wire_add_message(&values, 1, &value);
  return write_values(context, w, name, step, &values, false);
}

// ---- pictures: 1 height, 2 width, 3 colorspace, 4 encoded_image_string ----

static int add_picture(td_context *context, td_text *values, const char *name, int64_t number, const td_tensor *t) {
  td_text png = {0}, tag = {0}, picture = {0};
  int code = td_png_encode(context, "summary.image", t, &png);
  if (code) return td_text_clear(&png), code;
  td_text_add(&tag, name);
  if (number >= 0) td_text_print(&tag, "/%" PRId64, number);
  td_text value = value_start(tag.data ? tag.data : name);
  td_wire_add_int(&picture, 1, t->shape[0]);
  td_wire_add_int(&picture, 2, t->shape[1]);
  td_wire_add_int(&picture, 3, t->rank == 3 ? t->shape[2] : 1);
  td_wire_add_bytes(&picture, 4, png.data, png.length);
  td_wire_add_message(&value, 4, &picture);
  td_wire_add_message(values, 1, &value);
  values->failed |= tag.failed;
  td_text_clear(&tag);
  td_text_clear(&png);
  return TD_OK;
}

int td_event_image(td_context *context, td_event_writer *w, const char *name, int64_t step, td_tensor *t) {
  td_text values = {0};
  int code = TD_OK;
  if (t->rank != 4) code = add_picture(context, &values, name, -1, t);
  for (int64_t i = 0; !code && t->rank == 4 && i < t->shape[0]; i++) {
    td_tensor *one = td_tensor_view(context, t, 3, t->shape + 1, t->strides + 1, i * t->strides[0]);
    code = one ? add_picture(context, &values, name, t->shape[0] > 1 ? i : -1, one) : context->error.code;
    td_tensor_unref(one);
  }
  if (!code && values.length) return write_values(context, w, name, step, &values, false);
  td_text_clear(&values);
  return code;
}
