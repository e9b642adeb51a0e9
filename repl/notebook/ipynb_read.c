// Reading of .ipynb files (ipynb.h). One pass over the text by the pull reader of JSON; members may stand in any order.
// Pictures are decoded while they are not larger than their share of memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/io/input.h"
#include "engine/io/json.h"
#include "engine/io/png.h"
#include "repl/notebook/base64.h"
#include "repl/notebook/deck_write.h"
#include "repl/notebook/ipynb.h"

enum { DEPTH_MOST = 200 };
#define PIXEL_BYTES ((int64_t)64 << 20) // of all pictures of a file

typedef struct reader {
  td_input in; // for messages
  td_json json;
  td_notebook *notebook;
  int64_t pixels_left;
  int format, minor; // -1: not read yet
  bool old; // has worksheets, as nbformat 3
} reader;

enum { TYPE, NAME, TEXT, ENAME, EVALUE, TRACEBACK, PLAIN, PNG, FOUND }; // texts of an output

// ---- JSON ----

static bool refuse(reader *r, const char *reason) { // false
  if (r->in.context->error.code) return false;
  if (r->json.text.failed) td_error_memory(r->in.context, "open", td_memory_failed());
  else td_input_refuse(&r->in, r->json.at, "%s", r->json.error ? r->json.error : reason);
  return false;
}

static bool refuse_memory(reader *r) {
  td_error_memory(r->in.context, "open", td_memory_failed());
  return false;
}

static void skip_space(reader *r) {
  while (r->json.at < r->json.size && strchr(" \t\r\n", r->json.bytes[r->json.at]) && r->json.bytes[r->json.at])
    r->json.at++;
}

static bool skip_value(reader *r, int depth) {
  td_json *json = &r->json;
  if (depth > DEPTH_MOST) return refuse(r, "nested too deep");
  enum td_json_kind kind = td_json_value(json);
  if (kind == TD_JSON_OBJECT)
    for (bool first = true; td_json_key(json, first); first = false)
      if (!skip_value(r, depth + 1)) return false;
  if (kind == TD_JSON_ARRAY)
    for (bool first = true; td_json_element(json, first); first = false)
      if (!skip_value(r, depth + 1)) return false;
  return (kind != TD_JSON_WRONG && !json->error) || refuse(r, NULL);
}

static bool is_key(const reader *r, const char *key) {
  return r->json.text.length == strlen(key) && r->json.text.data && strcmp(r->json.text.data, key) == 0;
}

static bool add_string(reader *r, td_text *out) { // the string just read
  td_text_add_bytes(out, r->json.text.data, r->json.text.length);
  return !r->json.text.failed && !out->failed ? true : refuse_memory(r);
}

// A text or a list of texts, which are its lines; between joins them.
static bool read_text(reader *r, td_text *out, const char *between) {
  out->length = 0;
  td_text_add(out, "");
  enum td_json_kind kind = td_json_value(&r->json);
  if (kind == TD_JSON_STRING) return add_string(r, out);
  if (kind != TD_JSON_ARRAY) return refuse(r, "a text or a list of texts is expected");
  for (bool first = true; td_json_element(&r->json, first); first = false) {
    if (td_json_value(&r->json) != TD_JSON_STRING) return refuse(r, "a list of texts is expected");
    if (!first) td_text_add(out, between);
    if (!add_string(r, out)) return false;
  }
  return !r->json.error || refuse(r, NULL);
}

static bool read_integer(reader *r, int *out, bool or_null) {
  enum td_json_kind kind = td_json_value(&r->json);
  if (or_null && kind == TD_JSON_NULL) return true;
  if (kind != TD_JSON_INTEGER) return refuse(r, "a whole number is expected");
  long value = r->json.text.data ? strtol(r->json.text.data, NULL, 10) : 0;
  *out = value < 0 ? 0 : value > INT32_MAX ? INT32_MAX : (int)value;
  return true;
}

static char *copy_raw(const reader *r, size_t from, size_t to) {
  char *raw = td_memory_new(to - from + 1);
  if (!raw) return NULL;
  memcpy(raw, r->json.bytes + from, to - from);
  raw[to - from] = 0;
  return raw;
}

// ---- outputs ----

static bool read_data(reader *r, td_text *found) {
  if (td_json_value(&r->json) != TD_JSON_OBJECT) return refuse(r, "an object of MIME types is expected");
  for (bool first = true; td_json_key(&r->json, first); first = false) {
    td_text *to = is_key(r, "text/plain") ? &found[PLAIN] : is_key(r, "image/png") ? &found[PNG] : NULL;
    if (!(to ? read_text(r, to, "") : skip_value(r, 0))) return false;
  }
  return !r->json.error || refuse(r, NULL);
}

static bool read_found(reader *r, td_text *found) {
  static const char *const keys[] = {[TYPE] = "output_type", [NAME] = "name",     [TEXT] = "text",
                                     [ENAME] = "ename",      [EVALUE] = "evalue", [TRACEBACK] = "traceback"};
  if (td_json_value(&r->json) != TD_JSON_OBJECT) return refuse(r, "an output must be an object");
  for (bool first = true; td_json_key(&r->json, first); first = false) {
    int i = TYPE;
    while (i <= TRACEBACK && !is_key(r, keys[i])) i++;
    bool ok = i <= TRACEBACK      ? read_text(r, &found[i], i == TRACEBACK ? "\n" : "")
              : is_key(r, "data") ? read_data(r, found)
                                  : skip_value(r, 0);
    if (!ok) return false;
  }
  return !r->json.error || refuse(r, NULL);
}

static bool says(const td_text *text, const char *word) { return text->data && strcmp(text->data, word) == 0; }

static void move_text(td_text *to, td_text *from) {
  *to = *from;
  *from = (td_text){0};
}

// Without the colours in it: ESC [ ... m.
static void add_uncoloured(td_text *out, const td_text *text) {
  for (size_t at = 0; at < text->length; at++) {
    size_t end = at + 2;
    if (text->data[at] == '\x1b' && text->data[at + 1] == '[') {
      while (end < text->length && strchr("0123456789;", text->data[end]) && text->data[end]) end++;
      if (end < text->length && text->data[end] == 'm') {
        at = end;
        continue;
      }
    }
    td_text_add_char(out, text->data[at]);
  }
}

static void make_error(td_cell_output *output, td_text *found) {
  td_text first = {0};
  if (found[ENAME].length) td_text_print(&first, "%s: ", found[ENAME].data);
  td_text_add_bytes(&first, found[EVALUE].data, found[EVALUE].length);
  output->detail = td_text_take(&first);
  add_uncoloured(&output->text, &found[TRACEBACK]);
  if (!output->text.length && output->detail) td_text_add(&output->text, output->detail);
  td_text_add_char(&output->text, '\n');
}

static uint32_t big_endian(const char *bytes) {
  const unsigned char *b = (const unsigned char *)bytes;
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void add_pixels(td_cell_output *output, const td_tensor *t) { // uint8 of any count of channels; 16 bits as int32
  int64_t height = t->shape[0], width = t->shape[1], channels = t->rank > 2 ? t->shape[2] : 1;
  output->pixels = td_memory_new((size_t)(height * width * 3) + 1);
  if (!output->pixels) return;
  output->width = (int)width;
  output->height = (int)height;
  for (int64_t i = 0; i < height * width; i++)
    for (int64_t c = 0; c < 3; c++) {
      int64_t at = i * channels + (channels > 2 ? c : 0);
      output->pixels[i * 3 + c] =
          t->dtype == TD_UINT8 ? ((const uint8_t *)t->data)[at] : (uint8_t)(((const int32_t *)t->data)[at] >> 8);
    }
}

static void make_image(reader *r, td_cell_output *output, td_text *found) {
  td_text bytes = {0};
  td_tensor *picture = NULL;
  if (td_base64_decode(&bytes, found[PNG].data, found[PNG].length) && bytes.length > 24) {
    uint64_t pixels = (uint64_t)big_endian(bytes.data + 16) * big_endian(bytes.data + 20);
    if (pixels <= (uint64_t)r->pixels_left / 16 && // of 16 bits, widened, while they are read
        td_png_decode(r->in.context, "open", r->in.path, bytes.data, bytes.length, &picture) == TD_OK) {
      r->pixels_left -= (int64_t)pixels * 3;
      add_pixels(output, picture);
    }
  }
  td_tensor_unref(picture);
  td_text_clear(&bytes);
  td_error_clear(r->in.context); // a picture that can't be shown stays in the file as it is
}

static void make_output(reader *r, td_cell_output *output, td_text *found) {
  if (says(&found[TYPE], "stream")) {
    output->kind = TD_OUTPUT_STREAM;
    output->stream = says(&found[NAME], "stderr") ? 2 : 1;
    move_text(&output->text, &found[TEXT]);
  } else if (says(&found[TYPE], "error")) {
    output->kind = TD_OUTPUT_ERROR;
    make_error(output, found);
  } else {
    bool result = says(&found[TYPE], "execute_result");
    output->kind = found[PNG].length ? TD_OUTPUT_IMAGE : result ? TD_OUTPUT_VALUE : TD_OUTPUT_DATA;
    move_text(&output->text, &found[PLAIN]);
    if (found[PNG].length) make_image(r, output, found);
  }
}

static bool read_output(reader *r, td_notebook_cell *cell) {
  td_text found[FOUND] = {0};
  skip_space(r);
  size_t begin = r->json.at;
  bool ok = read_found(r, found);
  td_cell_output *output = ok ? td_cell_add_output(cell, TD_OUTPUT_DATA) : NULL;
  if (output) {
    output->json = copy_raw(r, begin, r->json.at);
    make_output(r, output, found);
    td_text_add(&output->text, "");
  }
  if (ok && (!output || !output->json || output->text.failed)) ok = refuse_memory(r);
  for (int i = 0; i < FOUND; i++) td_text_clear(&found[i]);
  return ok;
}

static bool read_outputs(reader *r, td_notebook_cell *cell) {
  if (td_json_value(&r->json) != TD_JSON_ARRAY) return refuse(r, "outputs must be a list");
  for (bool first = true; td_json_element(&r->json, first); first = false)
    if (!read_output(r, cell)) return false;
  return !r->json.error || refuse(r, NULL);
}

// ---- cells ----

static bool read_name(reader *r, td_notebook_cell *cell) {
  if (td_json_value(&r->json) != TD_JSON_STRING) return refuse(r, "a cell's id must be a text");
  size_t length = r->json.text.length;
  if (length && length <= TD_CELL_NAME && td_cell_name_length(r->json.text.data, length) == length)
    memcpy(cell->name, r->json.text.data, length + 1);
  return true;
}

static bool read_metadata(reader *r, td_text *title) {
  size_t at = r->json.at;
  if (td_json_value(&r->json) != TD_JSON_OBJECT) { // nothing that matters here
    r->json.at = at;
    return skip_value(r, 0);
  }
  for (bool first = true; td_json_key(&r->json, first); first = false)
    if (!(is_key(r, "title") ? read_text(r, title, "") : skip_value(r, 0))) return false;
  return !r->json.error || refuse(r, NULL);
}

// Behind its key; texts: its type and its title.
static bool read_member(reader *r, td_notebook_cell *cell, td_text *type, td_text *title) {
  if (is_key(r, "cell_type")) return read_text(r, type, "");
  if (is_key(r, "metadata")) return read_metadata(r, title);
  if (is_key(r, "source")) return read_text(r, &cell->text, "");
  if (is_key(r, "outputs")) return read_outputs(r, cell);
  if (is_key(r, "execution_count")) return read_integer(r, &cell->number, true);
  if (is_key(r, "id")) return read_name(r, cell);
  return skip_value(r, 0);
}

static bool read_cell(reader *r) {
  td_notebook_cell *cell = td_notebook_append(r->notebook, false, "", 0);
  td_text type = {0}, title = {0};
  if (!cell) return refuse_memory(r);
  bool ok = td_json_value(&r->json) == TD_JSON_OBJECT || refuse(r, "a cell must be an object");
  for (bool first = true; ok && td_json_key(&r->json, first); first = false) ok = read_member(r, cell, &type, &title);
  ok = ok && (!r->json.error || refuse(r, NULL));
  if (ok && !type.length) ok = refuse(r, "a cell without a cell_type");
  cell->markdown = ok && !says(&type, "code"); // raw ones are no code either
  cell->commented = cell->markdown;
  if (ok && title.length && !td_deck_set_title(cell, title.data)) ok = refuse_memory(r);
  td_text_clear(&type);
  td_text_clear(&title);
  return ok;
}

static bool keep_json(reader *r, size_t from, size_t to) { // of the last cell
  char *json = copy_raw(r, from, to);
  r->notebook->cells[r->notebook->count - 1]->json = json;
  return json || refuse_memory(r);
}

static bool read_cells(reader *r) {
  td_notebook *n = r->notebook;
  if (n->json_before) return refuse(r, "a second list of cells");
  if (td_json_value(&r->json) != TD_JSON_ARRAY) return refuse(r, "cells must be a list");
  size_t begin = r->json.at, end = begin; // of a cell's text with the space around it, up to the comma
  n->json_before = copy_raw(r, 0, begin);
  for (bool first = true; td_json_element(&r->json, first); first = false) {
    if (!first && !keep_json(r, begin, r->json.at - 1)) return false;
    if (!first) begin = r->json.at;
    if (!read_cell(r)) return false;
    end = r->json.at;
  }
  if (r->json.error) return refuse(r, NULL);
  if (n->count && !keep_json(r, begin, end)) return false;
  n->json_after = copy_raw(r, end, r->json.size);
  return (n->json_before && n->json_after) || refuse_memory(r);
}

static bool read_notebook(reader *r) {
  if (td_json_value(&r->json) != TD_JSON_OBJECT) return refuse(r, "not a notebook: an object of JSON is expected");
  for (bool first = true; td_json_key(&r->json, first); first = false) {
    bool ok = is_key(r, "cells")            ? read_cells(r)
              : is_key(r, "nbformat")       ? read_integer(r, &r->format, false)
              : is_key(r, "nbformat_minor") ? read_integer(r, &r->minor, false)
                                            : (r->old |= is_key(r, "worksheets"), skip_value(r, 0));
    if (!ok) return false;
  }
  if (r->json.error || r->json.text.failed) return refuse(r, NULL);
  if (!td_json_end(&r->json)) return refuse(r, "more than a notebook follows");
  if (r->old || (r->format >= 0 && r->format != 4)) {
    char reason[80];
    snprintf(reason, sizeof reason, "nbformat %d is not read, only nbformat 4", r->format);
    refuse(r, reason);
    td_error_hint(r->in.context, "jupyter nbconvert --to notebook rewrites it");
    return false;
  }
  if (r->format < 0) return refuse(r, "not a notebook: nbformat is missing");
  return r->notebook->json_before || refuse(r, "not a notebook: there is no list of cells");
}

int td_ipynb_read(td_context *context, const char *path, const char *text, size_t length, td_notebook *n) {
  reader r = {.in = {.context = context, .who = "open", .path = path},
              .json = {.bytes = text, .size = length, .loose = true},
              .notebook = n,
              .pixels_left = PIXEL_BYTES,
              .format = -1};
  td_error_clear(context);
  bool ok = read_notebook(&r);
  td_text_clear(&r.json.text);
  n->json_minor = r.minor;
  td_notebook_saved(n);
  return ok ? TD_OK : context->error.code;
}
