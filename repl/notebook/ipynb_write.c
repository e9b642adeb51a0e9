// Writing of .ipynb files (ipynb.h), as nbformat 4.5 lays them out.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/io/json.h"
#include "engine/io/png.h"
#include "repl/notebook/base64.h"
#include "repl/notebook/deck_write.h"
#include "repl/notebook/ipynb.h"
#include "repl/notebook/picture_curves.h"

static const char before[] = "{\n \"cells\": [";
static const char after[] = "\n ],\n"
                            " \"metadata\": {\n"
                            "  \"kernelspec\": {\n"
                            "   \"display_name\": \"tapedeck\",\n"
                            "   \"language\": \"tapedeck\",\n"
                            "   \"name\": \"tapedeck\"\n"
                            "  },\n"
                            "  \"language_info\": {\n"
                            "   \"codemirror_mode\": \"python\",\n"
                            "   \"file_extension\": \".deck\",\n"
                            "   \"mimetype\": \"text/x-python\",\n"
                            "   \"name\": \"tapedeck\",\n"
                            "   \"pygments_lexer\": \"python3\"\n"
                            "  }\n"
                            " },\n"
                            " \"nbformat\": 4,\n"
                            " \"nbformat_minor\": 5\n"
                            "}\n";

typedef struct writer {
  td_context *context;
  td_text *out;
  const td_notebook *notebook;
  bool first; // no member of the object was written yet
} writer;

// ---- JSON, laid out ----

static void new_line(writer *w, int indent) {
  td_text_add_char(w->out, '\n');
  for (int i = 0; i < indent; i++) td_text_add_char(w->out, ' ');
}

static void separate(writer *w, int indent) { // before a member or an element
  if (!w->first) td_text_add_char(w->out, ',');
  w->first = false;
  new_line(w, indent);
}

static void key(writer *w, int indent, const char *name) {
  separate(w, indent);
  td_text_print(w->out, "\"%s\": ", name);
}

static void string(writer *w, int indent, const char *name, const char *text) {
  key(w, indent, name);
  td_json_quote(w->out, text, strlen(text), false);
}

static void begin(writer *w, const char *bracket) {
  td_text_add(w->out, bracket);
  w->first = true;
}

static void end(writer *w, int indent, const char *bracket) {
  if (!w->first) new_line(w, indent);
  td_text_add(w->out, bracket);
  w->first = false;
}

static void lines(writer *w, int indent, const char *text, size_t length, bool ends) { // ends: with their line ends
  begin(w, "[");
  for (size_t at = 0, next; at < length; at = next) {
    const char *newline = memchr(text + at, '\n', length - at);
    next = newline ? (size_t)(newline + 1 - text) : length;
    separate(w, indent + 1);
    td_json_quote(w->out, text + at, next - at - (newline && !ends), false);
  }
  end(w, indent, "]");
}

// ---- outputs ----

enum { OUTPUT = 4, MEMBER = 5 }; // indentations

static void print_count(writer *w, int indent, int number) {
  key(w, indent, "execution_count");
  if (number) td_text_print(w->out, "%d", number);
  else td_text_add(w->out, "null");
}

static void print_stream(writer *w, const td_cell_output *o) {
  td_text text = {0};
  size_t cut = o->bytes_cut ? o->cut : o->text.length;
  td_text_add_bytes(&text, o->text.data, cut);
  if (o->bytes_cut)
    td_text_print(&text, "... %lld lines (%lld bytes) are left out ...\n", (long long)o->lines_cut,
                  (long long)o->bytes_cut);
  td_text_add_bytes(&text, o->text.data + cut, o->text.length - cut);
  string(w, MEMBER, "name", o->stream == 2 ? "stderr" : "stdout");
  string(w, MEMBER, "output_type", "stream");
  key(w, MEMBER, "text");
  lines(w, MEMBER, text.data, text.length, true);
  if (text.failed) w->out->failed = true;
  td_text_clear(&text);
}

static void print_picture(writer *w, const td_cell_output *o) {
  td_text png = {0};
  int64_t shape[3] = {o->height, o->width, 3};
  td_tensor *t = td_tensor_new(w->context, TD_UINT8, 3, shape);
  if (t) memcpy(t->data, o->pixels, (size_t)t->size);
  if (t && td_png_encode(w->context, "save", t, &png) == TD_OK) {
    key(w, MEMBER + 1, "image/png");
    td_text_add_char(w->out, '"');
    td_base64_add(w->out, png.data, png.length);
    td_text_add_char(w->out, '"');
  }
  td_error_clear(w->context); // without libpng: the description alone
  td_text_clear(&png);
  td_tensor_unref(t);
}

static void print_data(writer *w, const td_cell_output *o, int number) {
  bool result = o->kind == TD_OUTPUT_VALUE;
  key(w, MEMBER, "data");
  begin(w, "{");
  if (o->pixels && o->width && o->height) print_picture(w, o);
  key(w, MEMBER + 1, "text/plain");
  lines(w, MEMBER + 1, o->text.data, o->text.length, true);
  end(w, MEMBER, "}");
  if (result) print_count(w, MEMBER, number);
  key(w, MEMBER, "metadata");
  td_text_add(w->out, "{}");
  string(w, MEMBER, "output_type", result ? "execute_result" : "display_data");
}

// "error: IndexError: list index out of range" has its name and its text.
static void print_error(writer *w, const td_cell_output *o) {
  static const char sign[] = "error: ";
  const char *first = o->detail ? o->detail : "";
  if (strncmp(first, sign, sizeof sign - 1) == 0) first += sizeof sign - 1;
  const char *colon = strstr(first, ": ");
  size_t name = colon && !memchr(first, ' ', (size_t)(colon - first)) ? (size_t)(colon - first) : 0;
  key(w, MEMBER, "ename");
  td_json_quote(w->out, name ? first : "Error", name ? name : 5, false);
  string(w, MEMBER, "evalue", name ? colon + 2 : first);
  string(w, MEMBER, "output_type", "error");
  key(w, MEMBER, "traceback");
  lines(w, MEMBER, o->text.data, o->text.length, false);
}

static void print_output(writer *w, const td_cell_output *o, int number) {
  separate(w, OUTPUT);
  if (o->json) {
    td_text_add(w->out, o->json);
    return;
  }
  begin(w, "{");
  if (o->kind == TD_OUTPUT_STREAM) print_stream(w, o);
  else if (o->kind == TD_OUTPUT_ERROR) print_error(w, o);
  else print_data(w, o, number);
  end(w, OUTPUT, "}");
}

// ---- cells ----

enum { CELL = 2, FIELD = 3 };

// ---- curves: a picture for each kind, in the place of the first of them ----

enum { CURVES_WIDTH = 640, CURVES_HEIGHT = 400 };

static bool is_curve(const td_cell_output *o) { return o->kind == TD_OUTPUT_CURVE && o->curve && !o->json; }

static bool is_later_of_kind(const td_notebook_cell *cell, int index) {
  for (int i = 0; i < index && is_curve(&cell->outputs[index]); i++)
    if (is_curve(&cell->outputs[i]) &&
        td_curve_same_kind(cell->outputs[i].curve->name, cell->outputs[index].curve->name))
      return true;
  return false;
}

static void print_curves(writer *w, const td_notebook_cell *cell, int index) {
  const td_curve *curves[TD_PICTURE_CURVES];
  int count = 0;
  td_cell_output picture = {.kind = TD_OUTPUT_IMAGE};
  for (int i = index; i < cell->output_count && count < TD_PICTURE_CURVES; i++) {
    const td_cell_output *o = &cell->outputs[i];
    if (!is_curve(o) || !td_curve_same_kind(o->curve->name, cell->outputs[index].curve->name)) continue;
    td_text_print(&picture.text, "%s%s", count ? ", " : "curves: ", o->curve->name);
    curves[count++] = o->curve;
  }
  td_picture_options options = {.width = CURVES_WIDTH, .height = CURVES_HEIGHT, .scale = 1, .legend = true,
                                .theme = td_picture_theme_find("light"), .steps_label = "step",
                                .range = {.low = (double)NAN, .high = (double)NAN}};
  td_raster raster = {0};
  if (td_picture_curves(&raster, curves, count, &options)) {
    picture.width = raster.width;
    picture.height = raster.height;
    picture.pixels = td_memory_new((size_t)raster.width * (size_t)raster.height * 3);
    if (picture.pixels) td_raster_bytes(&raster, picture.pixels);
  }
  td_raster_clear(&raster);
  print_output(w, &picture, cell->number);
  td_cell_output_clear(&picture);
}

static void print_outputs(writer *w, const td_notebook_cell *cell) {
  key(w, FIELD, "outputs");
  begin(w, "[");
  for (int i = 0; i < cell->output_count; i++) {
    if (is_later_of_kind(cell, i)) continue;
    if (is_curve(&cell->outputs[i])) print_curves(w, cell, i);
    else print_output(w, &cell->outputs[i], cell->number);
  }
  end(w, FIELD, "]");
}

static void print_source(writer *w, const td_notebook_cell *cell) {
  key(w, FIELD, "source");
  lines(w, FIELD, cell->text.data, cell->text.length, true);
}

static void print_title(writer *w, const td_notebook_cell *cell) { // as Jupytext has it
  td_text title = {0};
  td_deck_title(cell, &title);
  begin(w, "{");
  if (title.length) string(w, FIELD + 1, "title", title.data);
  end(w, FIELD, "}");
  if (title.failed) w->out->failed = true;
  td_text_clear(&title);
}

// metadata: NULL for a cell that no file had before
static void print_new(writer *w, const td_notebook_cell *cell, const char *metadata, size_t length) {
  string(w, FIELD, "cell_type", cell->markdown ? "markdown" : "code");
  if (!cell->markdown) print_count(w, FIELD, cell->number);
  if (!w->notebook->json_before || w->notebook->json_minor >= 5) string(w, FIELD, "id", cell->name);
  key(w, FIELD, "metadata");
  if (metadata) td_text_add_bytes(w->out, metadata, length);
  else print_title(w, cell);
  if (!cell->markdown) print_outputs(w, cell);
  print_source(w, cell);
}

static void skip(td_json *json) { // a value that was read before
  enum td_json_kind kind = td_json_value(json);
  if (kind == TD_JSON_OBJECT)
    for (bool first = true; td_json_key(json, first); first = false) skip(json);
  if (kind == TD_JSON_ARRAY)
    for (bool first = true; td_json_element(json, first); first = false) skip(json);
}

typedef struct member {
  const char *key, *value;
  size_t key_length, length;
} member; // the key decoded, the value as it stands

// The members of the cell's JSON, one after the other. false: there are no more.
static bool next_member(td_json *json, bool first, member *m) {
  if (!td_json_key(json, first)) return false;
  m->key = json->text.data ? json->text.data : "";
  m->key_length = json->text.length;
  while (json->at < json->size && strchr(" \t\r\n", json->bytes[json->at])) json->at++;
  m->value = json->bytes + json->at;
  return true;
}

static bool is(const member *m, const char *name) {
  return m->key_length == strlen(name) && !memcmp(m->key, name, m->key_length);
}

static void print_kept(writer *w, const member *m, td_json *json) { // reads the value
  separate(w, FIELD);
  td_json_quote(w->out, m->key, m->key_length, false);
  td_text_add(w->out, ": ");
  skip(json);
  td_text_add_bytes(w->out, m->value, (size_t)(json->bytes + json->at - m->value));
}

static void print_changed(writer *w, const td_notebook_cell *cell, td_json *json) { // its members in their old order
  member m;
  for (bool first = true; next_member(json, first, &m); first = false) {
    bool ours = true;
    if (is(&m, "source")) print_source(w, cell);
    else if (is(&m, "outputs")) print_outputs(w, cell);
    else if (is(&m, "execution_count")) print_count(w, FIELD, cell->number);
    else ours = false;
    if (ours) skip(json);
    else print_kept(w, &m, json);
  }
}

// What of the old JSON a cell of another kind keeps.
static bool find_metadata(td_json *json, bool *markdown, member *metadata) {
  member m;
  for (bool first = true; next_member(json, first, &m); first = false) {
    bool type = is(&m, "cell_type"), kept = is(&m, "metadata");
    skip(json);
    m.length = (size_t)(json->bytes + json->at - m.value);
    if (type) *markdown = strcmp(json->text.data ? json->text.data : "", "code") != 0;
    if (kept) *metadata = m;
  }
  return !json->text.failed;
}

static bool is_unchanged(const td_notebook_cell *cell) { return cell->json && !cell->content_at; }

static void print_cell(writer *w, const td_notebook_cell *cell) {
  if (is_unchanged(cell)) {
    td_text_add(w->out, cell->json);
    return;
  }
  member metadata = {0};
  bool markdown = cell->markdown;
  td_json json = {.bytes = cell->json, .size = cell->json ? strlen(cell->json) : 0, .loose = true};
  if (cell->json && td_json_value(&json) == TD_JSON_OBJECT && !find_metadata(&json, &markdown, &metadata))
    w->out->failed = true;
  new_line(w, CELL);
  begin(w, "{");
  json.at = 0;
  if (cell->json && markdown == cell->markdown && td_json_value(&json) == TD_JSON_OBJECT) print_changed(w, cell, &json);
  else print_new(w, cell, metadata.value, metadata.length);
  if (json.text.failed) w->out->failed = true;
  td_text_clear(&json.text);
  end(w, CELL, "}");
}

// ---- names ----

static bool is_taken(const td_notebook *n, const td_notebook_cell *except, const char *name) {
  for (int i = 0; i < n->count; i++)
    if (n->cells[i] != except && strcmp(n->cells[i]->name, name) == 0) return true;
  return false;
}

static void name_cells(td_notebook *n) { // the same text in the same notebook gets the same name
  for (int i = 0; i < n->count; i++) {
    td_notebook_cell *cell = n->cells[i];
    uint64_t hash = td_notebook_hash(cell->text.data, cell->text.length);
    for (; !*cell->name || is_taken(n, cell, cell->name); hash = hash * 0x5851f42d4c957f2du + 1)
      snprintf(cell->name, sizeof cell->name, "%08x", (unsigned)(hash >> 32 ^ hash));
  }
}

int td_ipynb_print(td_context *context, td_notebook *n, td_text *out) {
  writer w = {.context = context, .out = out, .notebook = n};
  name_cells(n);
  td_text_add(out, n->json_before ? n->json_before : before);
  for (int i = 0; i < n->count; i++) {
    if (i) td_text_add_char(out, ',');
    print_cell(&w, n->cells[i]);
  }
  const char *rest = n->json_after ? n->json_after : after;
  if (n->count && *rest == ']' && !is_unchanged(n->cells[n->count - 1])) td_text_add(out, "\n ");
  td_text_add(out, rest + (!n->count && !n->json_after ? 2 : 0));
  return out->failed ? td_error_memory(context, "a notebook", (int64_t)out->length) : TD_OK;
}
