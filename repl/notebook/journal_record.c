// See journal_record.h. Numbers of records, members and kinds of events stay what they are: an older program's journal
// is read by a newer one.
#include "repl/notebook/journal_record.h"
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/io/event_file.h"
#include "engine/io/event_record.h"
#include "engine/io/input.h"
#include "repl/language/curve.h"
#include "repl/language/interpreter.h"

enum record { OWNER = 1, NOTEBOOK, CELL, OUTPUTS, ORDER, EVENT, CURVE };
enum { FRAME = 8 /* length and checksum */, MAGIC = sizeof TD_JOURNAL_MAGIC - 1 };
enum { CURVES_MOST = 64 }; // of a cell whose points are kept
enum { POINT_BYTES = 16, BIN_BYTES = 48 };
enum flag { MARKDOWN = 1, COMMENTED = 2, FOLDED = 4, AS_IN_FILE = 8 };

static const int event_kinds[] = {[1] = TD_EVENT_CELL_STARTED, [2] = TD_EVENT_OUTPUT, [3] = TD_EVENT_VALUE,
                                  [4] = TD_EVENT_METRIC,       [5] = TD_EVENT_IMAGE,  [6] = TD_EVENT_WARNING,
                                  [7] = TD_EVENT_LOG,          [8] = TD_EVENT_ERROR,  [9] = TD_EVENT_CELL_FINISHED};
enum { EVENT_KINDS = sizeof event_kinds / sizeof *event_kinds };

// ---- writing ----

static void begin(td_text *record, enum record kind) { td_wire_add_int(record, 1, kind); }

static void add_string(td_text *record, int field, const char *text) { // NULL: no field
  if (text) td_wire_add_bytes(record, field, text, strlen(text));
}

static uint32_t sum_of(const void *content, size_t length) {
  return td_crc32c(content, length) ^ (uint32_t)length * 0x9e3779b1u;
}

void td_journal_add_record(td_text *out, const void *content, size_t length) {
  td_wire_add_fixed(out, length, 4);
  td_wire_add_fixed(out, sum_of(content, length), 4);
  td_text_add_bytes(out, content, length);
}

static void end(td_text *out, td_text *record) {
  out->failed |= record->failed || record->length > UINT32_MAX;
  if (!out->failed) td_journal_add_record(out, record->data, record->length);
  td_text_clear(record);
}

void td_journal_add_owner(td_text *out, const td_journal_owner *owner) {
  td_text record = {0};
  begin(&record, OWNER);
  td_wire_add_int(&record, 2, owner->process);
  td_wire_add_int(&record, 3, owner->since);
  add_string(&record, 4, owner->host);
  end(out, &record);
}

static bool is_changed(const td_notebook *n) { // it holds what its file does not
  for (int i = 0; i < n->count; i++)
    if (n->cells[i]->content_at) return true;
  return !td_notebook_is_saved(n);
}

void td_journal_add_notebook(td_text *out, const td_notebook *n) {
  td_text record = {0};
  begin(&record, NOTEBOOK);
  td_wire_add_int(&record, 2, n->json_minor);
  td_wire_add_int(&record, 3, n->last_number);
  add_string(&record, 4, n->json_before);
  add_string(&record, 5, n->json_after);
  td_wire_add_int(&record, 6, is_changed(n));
  if (n->has_file) {
    td_wire_add_int(&record, 7, (int64_t)n->file.device);
    td_wire_add_int(&record, 8, (int64_t)n->file.node);
    td_wire_add_int(&record, 9, (int64_t)n->file.size);
    td_wire_add_int(&record, 10, n->file.changed);
    td_wire_add_int(&record, 11, (int64_t)n->file_hash);
  }
  end(out, &record);
}

void td_journal_add_cell(td_text *out, const td_notebook_cell *cell) {
  td_text record = {0};
  begin(&record, CELL);
  td_wire_add_int(&record, 2, (int64_t)cell->id);
  td_wire_add_int(&record, 3,
                  (cell->markdown ? MARKDOWN : 0) | (cell->commented ? COMMENTED : 0) | (cell->folded ? FOLDED : 0) |
                      (cell->content_at ? 0 : AS_IN_FILE));
  add_string(&record, 4, cell->name);
  td_wire_add_bytes(&record, 5, cell->text.data, cell->text.length);
  if (cell->divider) td_wire_add_bytes(&record, 6, cell->divider, cell->divider_length);
  add_string(&record, 7, cell->tail);
  add_string(&record, 8, cell->json);
  end(out, &record);
}

static void add_output(td_text *record, const td_cell_output *o) {
  td_text message = {0};
  td_wire_add_int(&message, 1, o->kind);
  td_wire_add_int(&message, 2, o->stream);
  td_wire_add_bytes(&message, 3, o->text.data, o->text.length);
  if (o->bytes_cut) {
    td_wire_add_int(&message, 4, (int64_t)o->cut);
    td_wire_add_int(&message, 5, o->lines_cut);
    td_wire_add_int(&message, 6, o->bytes_cut);
  }
  add_string(&message, 7, o->detail);
  add_string(&message, 8, o->name);
  td_wire_add_int(&message, 9, o->line);
  td_wire_add_int(&message, 10, o->column);
  if (o->pixels) {
    td_wire_add_int(&message, 11, o->width);
    td_wire_add_int(&message, 12, o->height);
    td_wire_add_bytes(&message, 13, (const char *)o->pixels, (size_t)o->width * (size_t)o->height * 3);
  }
  add_string(&message, 14, o->json);
  td_wire_add_message(record, 6, &message);
}

void td_journal_add_outputs(td_text *out, const td_notebook_cell *cell) {
  td_text record = {0};
  begin(&record, OUTPUTS);
  td_wire_add_int(&record, 2, (int64_t)cell->id);
  td_wire_add_int(&record, 3, cell->number);
  td_wire_add_int(&record, 4, cell->status);
  td_wire_add_double(&record, 5, cell->seconds);
  for (int i = 0; i < cell->output_count; i++) add_output(&record, &cell->outputs[i]);
  end(out, &record);
  for (int i = 0; i < cell->output_count; i++)
    if (cell->outputs[i].curve) cell->outputs[i].curve->kept = 0;
  td_journal_add_curves(out, cell);
}

// ---- curves: a bin that holds one point is that point ----

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void add_bin(td_text *bins, const td_curve_bin *bin, bool is_point) {
  td_wire_add_fixed(bins, (uint64_t)bin->first, 8);
  if (is_point) {
    td_wire_add_fixed(bins, bits_of(td_curve_value(bin)), 8);
    return;
  }
  td_wire_add_fixed(bins, (uint64_t)bin->last, 8);
  td_wire_add_fixed(bins, bits_of(bin->low), 8);
  td_wire_add_fixed(bins, bits_of(bin->high), 8);
  td_wire_add_fixed(bins, bits_of(bin->sum), 8);
  td_wire_add_fixed(bins, (uint32_t)bin->finite, 4);
  td_wire_add_fixed(bins, (uint32_t)bin->odd, 4);
}

static void add_curve(td_text *out, const td_notebook_cell *cell, td_curve *curve) {
  td_text record = {0}, bins = {0};
  begin(&record, CURVE);
  td_wire_add_int(&record, 2, (int64_t)cell->id);
  add_string(&record, 3, curve->name);
  td_wire_add_int(&record, 4, curve->kept);
  td_wire_add_int(&record, 5, curve->width);
  td_wire_add_int(&record, 6, curve->filled);
  td_wire_add_int(&record, 7, curve->last.step);
  td_wire_add_double(&record, 8, curve->last.value);
  for (int64_t i = curve->kept; i < curve->bin_count; i++) add_bin(&bins, &curve->bins[i], curve->width == 1);
  td_wire_add_message(&record, 9, &bins);
  end(out, &record);
  curve->kept = curve->bin_count;
}

static bool is_new(const td_cell_output *o) {
  return o->kind == TD_OUTPUT_CURVE && o->curve && o->curve->kept < o->curve->bin_count;
}

void td_journal_add_curves(td_text *out, const td_notebook_cell *cell) {
  for (int i = 0, curves = 0; i < cell->output_count && curves < CURVES_MOST; i++) {
    curves += cell->outputs[i].kind == TD_OUTPUT_CURVE;
    if (is_new(&cell->outputs[i])) add_curve(out, cell, cell->outputs[i].curve);
  }
}

bool td_journal_has_curves(const td_notebook_cell *cell) {
  int curves = 0;
  bool new = false;
  for (int i = 0; i < cell->output_count && curves < CURVES_MOST && !new; i++) {
    curves += cell->outputs[i].kind == TD_OUTPUT_CURVE;
    new = is_new(&cell->outputs[i]);
  }
  return new;
}

void td_journal_add_order(td_text *out, const td_notebook *n) {
  td_text record = {0}, ids = {0};
  begin(&record, ORDER);
  for (int i = 0; i < n->count; i++) td_wire_add_varint(&ids, n->cells[i]->id);
  td_wire_add_message(&record, 2, &ids);
  end(out, &record);
}

bool td_journal_add_event(td_text *out, const td_notebook_cell *cell, const td_event *e) {
  int kind = 1;
  while (kind < EVENT_KINDS && event_kinds[kind] != e->kind) kind++;
  if (kind == EVENT_KINDS) return false;
  td_text record = {0};
  begin(&record, EVENT);
  td_wire_add_int(&record, 2, (int64_t)cell->id);
  td_wire_add_int(&record, 3, kind);
  td_wire_add_int(&record, 4, cell->number);
  td_wire_add_int(&record, 5, e->stream);
  td_wire_add_int(&record, 6, e->status);
  if (e->text) td_wire_add_bytes(&record, 7, e->text, e->length ? e->length : strlen(e->text));
  add_string(&record, 8, e->detail);
  add_string(&record, 9, e->name);
  td_wire_add_int(&record, 10, e->line);
  td_wire_add_int(&record, 11, e->column);
  td_wire_add_double(&record, 12, e->seconds);
  td_wire_add_int(&record, 13, e->level);
  if (e->pixels) {
    td_wire_add_int(&record, 14, e->width);
    td_wire_add_int(&record, 15, e->height);
    td_wire_add_bytes(&record, 16, (const char *)e->pixels, (size_t)e->width * (size_t)e->height * 3);
  }
  end(out, &record);
  return true;
}

// ---- reading ----

enum { FIELDS = 17 };

typedef struct fields { // of a record or a message: the last of each number
  td_wire_field at[FIELDS];
  bool has[FIELDS];
} fields;

static fields read_fields(const uint8_t *bytes, size_t length) {
  fields f = {0};
  td_wire_reader r = {bytes, bytes + length, false};
  for (td_wire_field field; td_wire_next(&r, &field);) {
    if (field.number < 0 || field.number >= FIELDS) continue;
    f.at[field.number] = field;
    f.has[field.number] = true;
  }
  return f;
}

static int64_t integer(const fields *f, int field) {
  return f->at[field].kind == TD_WIRE_VARINT ? (int64_t)f->at[field].value : 0;
}

static int small(const fields *f, int field) {
  int64_t value = integer(f, field);
  return value < 0 || value > INT32_MAX ? 0 : (int)value;
}

static double number(const fields *f, int field) {
  return f->at[field].kind == TD_WIRE_FIXED64 ? td_wire_double(&f->at[field]) : 0;
}

static bool is_bytes(const fields *f, int field) { return f->has[field] && f->at[field].kind == TD_WIRE_BYTES; }

static char *text_of(const fields *f, int field, bool *failed) { // owned; NULL: there is none
  if (!is_bytes(f, field)) return NULL;
  char *text = td_memory_new(f->at[field].length + 1);
  if (!text) {
    *failed = true;
    return NULL;
  }
  memcpy(text, f->at[field].bytes, f->at[field].length);
  text[f->at[field].length] = 0;
  return text;
}

static void take_text(char **text, const fields *f, int field, bool *failed) {
  td_memory_free(*text);
  *text = text_of(f, field, failed);
}

static bool has_pixels(const fields *f, int width) { // the field of the height and the one of the bytes follow
  uint64_t w = (uint64_t)small(f, width), h = (uint64_t)small(f, width + 1);
  return is_bytes(f, width + 2) && w && h && f->at[width + 2].length / 3 / w == h &&
         f->at[width + 2].length == w * h * 3;
}

static td_notebook_cell *cell_of(const td_notebook *n, const fields *f) {
  int index = td_notebook_find(n, (uint64_t)integer(f, 2));
  return index < 0 ? NULL : n->cells[index];
}

static bool read_owner(const fields *f, td_journal_owner *owner) {
  owner->process = integer(f, 2);
  owner->since = integer(f, 3);
  if (is_bytes(f, 4))
    snprintf(owner->host, sizeof owner->host, "%.*s", (int)f->at[4].length, (const char *)f->at[4].bytes);
  return true;
}

static bool read_notebook(const fields *f, td_notebook *n) {
  bool failed = false;
  n->json_minor = small(f, 2);
  n->last_number = small(f, 3);
  take_text(&n->json_before, f, 4, &failed);
  take_text(&n->json_after, f, 5, &failed);
  n->has_file = f->has[9];
  n->file = (td_file_stamp){(uint64_t)integer(f, 7), (uint64_t)integer(f, 8), (uint64_t)integer(f, 9), integer(f, 10)};
  n->file_hash = (uint64_t)integer(f, 11);
  return !failed;
}

static bool read_cell(const fields *f, td_notebook *n) {
  bool failed = false;
  int64_t flags = integer(f, 3);
  td_notebook_cell *cell = cell_of(n, f);
  if (!cell) {
    cell = td_notebook_append(n, false, "", 0);
    if (!cell) return false;
    cell->id = (uint64_t)integer(f, 2);
    if (cell->id >= n->last_id) n->last_id = cell->id;
  }
  cell->markdown = flags & MARKDOWN;
  cell->commented = flags & COMMENTED;
  cell->folded = flags & FOLDED;
  cell->content_at = flags & AS_IN_FILE ? 0 : ++n->revision;
  cell->text.length = 0;
  if (is_bytes(f, 5)) td_text_add_bytes(&cell->text, (const char *)f->at[5].bytes, f->at[5].length);
  else td_text_add(&cell->text, "");
  take_text(&cell->divider, f, 6, &failed);
  cell->divider_length = cell->divider ? f->at[6].length : 0;
  take_text(&cell->tail, f, 7, &failed);
  take_text(&cell->json, f, 8, &failed);
  if (is_bytes(f, 4))
    snprintf(cell->name, sizeof cell->name, "%.*s", (int)f->at[4].length, (const char *)f->at[4].bytes);
  return !failed && !cell->text.failed;
}

static bool read_output(const td_wire_field *field, td_notebook_cell *cell) {
  fields f = read_fields(field->bytes, field->length);
  int64_t kind = integer(&f, 1);
  bool failed = false;
  if (kind < 0 || kind >= TD_OUTPUT_COUNT) return true; // a newer program's
  td_cell_output *o = td_cell_add_output(cell, (enum td_output_kind)kind);
  if (!o) return false;
  o->stream = small(&f, 2);
  if (is_bytes(&f, 3)) td_text_add_bytes(&o->text, (const char *)f.at[3].bytes, f.at[3].length);
  td_text_add(&o->text, "");
  if (integer(&f, 6) > 0 && integer(&f, 4) >= 0 && (uint64_t)integer(&f, 4) <= o->text.length) {
    o->cut = (size_t)integer(&f, 4);
    o->lines_cut = integer(&f, 5);
    o->bytes_cut = integer(&f, 6);
  }
  o->detail = text_of(&f, 7, &failed);
  o->name = text_of(&f, 8, &failed);
  o->line = small(&f, 9);
  o->column = small(&f, 10);
  if (has_pixels(&f, 11)) o->pixels = (uint8_t *)text_of(&f, 13, &failed);
  if (o->pixels) {
    o->width = small(&f, 11);
    o->height = small(&f, 12);
  }
  o->json = text_of(&f, 14, &failed);
  return !failed && !o->text.failed;
}

static bool read_outputs(const fields *f, const uint8_t *bytes, size_t length, td_notebook *n) {
  td_notebook_cell *cell = cell_of(n, f);
  if (!cell) return true;
  td_cell_drop_outputs(cell);
  int64_t status = integer(f, 4);
  cell->number = small(f, 3);
  cell->status = status >= 0 && status <= TD_CELL_INTERRUPTED ? (enum td_cell_status)status : TD_CELL_IDLE;
  cell->seconds = number(f, 5);
  cell->waiting = td_notebook_is_running(cell) ? cell->number : 0;
  td_wire_reader r = {bytes, bytes + length, false};
  for (td_wire_field field; td_wire_next(&r, &field);)
    if (field.number == 6 && field.kind == TD_WIRE_BYTES && !read_output(&field, cell)) return false;
  return true;
}

// The cells named, in this order; others are gone.
static bool read_order(const fields *f, td_notebook *n) {
  int placed = 0;
  td_wire_reader r = {0};
  if (is_bytes(f, 2)) r = (td_wire_reader){f->at[2].bytes, f->at[2].bytes + f->at[2].length, false};
  while (r.at < r.end && !r.wrong && placed < n->count) {
    uint64_t id = td_wire_varint(&r);
    int index = placed;
    while (index < n->count && n->cells[index]->id != id) index++;
    if (index < n->count && index > placed) td_notebook_put(n, placed, td_notebook_take(n, index));
    placed += index < n->count;
  }
  while (n->count > placed) td_notebook_cell_free(td_notebook_take(n, n->count - 1));
  return true;
}

static double double_at(const uint8_t *bytes) {
  uint64_t bits = td_little_endian(bytes, 8);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static td_curve_bin bin_of(const uint8_t *b, bool is_point) {
  if (is_point) return td_curve_bin_of((td_curve_point){(int64_t)td_little_endian(b, 8), double_at(b + 8)});
  return (td_curve_bin){.first = (int64_t)td_little_endian(b, 8), .last = (int64_t)td_little_endian(b + 8, 8),
                        .low = double_at(b + 16), .high = double_at(b + 24), .sum = double_at(b + 32),
                        .finite = (int32_t)td_little_endian(b + 40, 4), .odd = (int32_t)td_little_endian(b + 44, 4)};
}

static td_cell_output *curve_output(td_notebook_cell *cell, const char *name) { // NULL: no memory
  td_cell_output *found = NULL;
  for (int i = 0; i < cell->output_count && !found; i++) {
    td_cell_output *o = &cell->outputs[i];
    if (o->kind == TD_OUTPUT_CURVE && o->text.data && strcmp(o->text.data, name) == 0) found = o;
  }
  if (!found && (found = td_cell_add_output(cell, TD_OUTPUT_CURVE))) td_text_add(&found->text, name);
  if (found && !found->curve) found->curve = td_curve_new(name);
  return found && found->curve && !found->text.failed ? found : NULL;
}

static bool read_curve(const fields *f, td_notebook *n) {
  td_notebook_cell *cell = cell_of(n, f);
  if (!cell || !is_bytes(f, 3) || !is_bytes(f, 9)) return true;
  bool failed = false, points = integer(f, 5) == 1;
  size_t size = points ? POINT_BYTES : BIN_BYTES, count = f->at[9].length / size;
  char *name = text_of(f, 3, &failed);
  td_curve_bin *bins = td_memory_new((count + 1) * sizeof *bins);
  for (size_t i = 0; bins && i < count; i++) bins[i] = bin_of(f->at[9].bytes + i * size, points);
  td_cell_output *output = name && bins ? curve_output(cell, name) : NULL;
  td_curve_rest rest = {integer(f, 4), integer(f, 5), integer(f, 6), (int64_t)count, bins,
                        {integer(f, 7), number(f, 8)}};
  if (output) td_curve_resume(output->curve, &rest);
  td_memory_free(name);
  td_memory_free(bins);
  return output;
}

static bool read_event(const fields *f, td_notebook *n) {
  td_notebook_cell *cell = cell_of(n, f);
  int64_t kind = integer(f, 3);
  bool failed = false;
  if (!cell || kind < 1 || kind >= EVENT_KINDS) return true;
  char *text = text_of(f, 7, &failed), *detail = text_of(f, 8, &failed), *name = text_of(f, 9, &failed);
  td_event e = {.kind = event_kinds[kind],
                .cell = small(f, 4),
                .stream = small(f, 5),
                .status = small(f, 6),
                .text = text ? text : "",
                .length = text ? f->at[7].length : 0,
                .detail = detail,
                .name = name,
                .line = small(f, 10),
                .column = small(f, 11),
                .seconds = number(f, 12),
                .level = small(f, 13)};
  if (has_pixels(f, 14)) {
    e.pixels = f->at[16].bytes;
    e.width = small(f, 14);
    e.height = small(f, 15);
  }
  if (e.kind == TD_EVENT_CELL_STARTED) {
    cell->waiting = e.cell;
    cell->status = TD_CELL_QUEUED;
    if (e.cell > n->last_number) n->last_number = e.cell;
  }
  if (e.status > TD_RUN_EXIT) e.status = TD_RUN_FAILED;
  if (!failed && e.cell && e.cell == cell->waiting) td_notebook_event(n, &e);
  td_memory_free(text);
  td_memory_free(detail);
  td_memory_free(name);
  return !failed;
}

// false: no memory
static bool read_record(const uint8_t *bytes, size_t length, td_notebook *n, td_journal_content *content) {
  fields f = read_fields(bytes, length);
  int64_t kind = integer(&f, 1);
  content->changed |= content->whole; // what follows the whole notebook changes it
  switch (kind) {
  case OWNER: return read_owner(&f, &content->owner);
  case NOTEBOOK: content->changed = integer(&f, 6); return read_notebook(&f, n);
  case CELL: return read_cell(&f, n);
  case OUTPUTS: return read_outputs(&f, bytes, length, n);
  case ORDER: content->whole = true; return read_order(&f, n);
  case EVENT: return read_event(&f, n);
  case CURVE: return read_curve(&f, n);
  default: return true; // a newer program's
  }
}

static void end_runs(td_notebook *n) { // nothing of it runs any more, or ran in this session
  for (int i = 0; i < n->count; i++) {
    td_notebook_cell *cell = n->cells[i];
    if (cell->status == TD_CELL_QUEUED) cell->status = TD_CELL_IDLE;
    if (td_notebook_is_running(cell)) cell->status = TD_CELL_INTERRUPTED;
    cell->ran_at = cell->changed_at = 0;
    cell->waiting = 0;
  }
}

int td_journal_replay(td_context *context, const char *bytes, size_t size, td_notebook *n,
                      td_journal_content *content) {
  const uint8_t *b = (const uint8_t *)bytes;
  bool ok = true;
  *content = (td_journal_content){0};
  if (size < MAGIC || memcmp(bytes, TD_JOURNAL_MAGIC, MAGIC)) return TD_OK;
  size_t at = MAGIC;
  while (ok && size - at >= FRAME) {
    uint64_t length = td_little_endian(b + at, 4);
    const uint8_t *record = b + at + FRAME;
    if (length > size - at - FRAME || td_little_endian(b + at + 4, 4) != sum_of(record, length)) break;
    ok = read_record(record, length, n, content);
    at += FRAME + length;
  }
  content->good = at;
  end_runs(n);
  return ok ? TD_OK : td_error_memory(context, "a journal", td_memory_failed());
}
