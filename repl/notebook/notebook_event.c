// Runs of a notebook's cells: the session's events become their outputs. What a cell puts out is bounded here: a stream
// keeps its head and its tail and counts what is between them, and there is a most of outputs.
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/language/interpreter.h"
#include "repl/language/log.h"
#include "repl/notebook/notebook.h"

enum { OUTPUTS_MOST = 1000 };
#define HEAD_BYTES ((size_t)128 << 10) // of a stream or a value
#define TAIL_BYTES ((size_t)256 << 10)
enum { LINE_LOOK = 64 << 10 }; // how far a cut looks for the end of a line

// ---- a long stream ----

static size_t at_character(const td_text *text, size_t at) { // the character's begin at or before this byte
  for (int i = 0; i < 3 && at && ((unsigned char)text->data[at] & 0xc0) == 0x80; i++) at--;
  return at;
}

static size_t head_end(const td_text *text) {
  const char *newline = memrchr(text->data, '\n', HEAD_BYTES);
  return newline ? (size_t)(newline + 1 - text->data) : at_character(text, HEAD_BYTES);
}

static size_t tail_begin(const td_text *text) {
  size_t at = text->length - TAIL_BYTES;
  const char *newline = memchr(text->data + at, '\n', LINE_LOOK);
  return newline ? (size_t)(newline + 1 - text->data) : at_character(text, at);
}

static void cut_middle(td_cell_output *o) {
  td_text *text = &o->text;
  if (text->length <= HEAD_BYTES + 2 * TAIL_BYTES) return;
  if (!o->bytes_cut) o->cut = head_end(text);
  size_t from = tail_begin(text);
  for (size_t i = o->cut; i < from; i++) o->lines_cut += text->data[i] == '\n';
  o->bytes_cut += (int64_t)(from - o->cut);
  memmove(text->data + o->cut, text->data + from, text->length - from + 1);
  text->length -= from - o->cut;
}

// ---- outputs ----

static td_cell_output *last_stream(td_notebook_cell *cell,
                                   int stream) { // the last output, or of a full cell the last such one
  for (int i = cell->output_count - 1; i >= 0; i--) {
    td_cell_output *o = &cell->outputs[i];
    if (o->kind == TD_OUTPUT_STREAM && o->stream == stream) return o;
    if (cell->output_count < OUTPUTS_MOST) break;
  }
  return NULL;
}

static void add_stream(td_notebook_cell *cell, int stream, const char *text, size_t length);

static td_cell_output *add_output(td_notebook_cell *cell, enum td_output_kind kind) { // NULL: too many, or no memory
  static const char notice[] = "further outputs of this cell are not kept\n";
  if (cell->output_count >= OUTPUTS_MOST) return NULL;
  td_cell_output *output = td_cell_add_output(cell, kind);
  if (output && cell->output_count == OUTPUTS_MOST && kind != TD_OUTPUT_STREAM) {
    *output = (td_cell_output){.kind = TD_OUTPUT_STREAM, .stream = 2};
    add_stream(cell, 2, notice, sizeof notice - 1);
    return NULL;
  }
  return output;
}

static void add_stream(td_notebook_cell *cell, int stream, const char *text, size_t length) {
  td_cell_output *output = last_stream(cell, stream);
  if (!output) output = add_output(cell, TD_OUTPUT_STREAM);
  if (!output) return;
  output->stream = stream;
  td_text_add_bytes(&output->text, text, length);
  if (output->text.failed) { // no memory: what is there stays, what comes is counted
    output->text.failed = false;
    if (!output->bytes_cut) output->cut = output->text.length;
    output->bytes_cut += (int64_t)length;
    for (size_t i = 0; i < length; i++) output->lines_cut += text[i] == '\n';
    return;
  }
  cut_middle(output);
}

static char *copy(const char *text) { return text ? td_memory_text(text) : NULL; }

static void add_error(td_notebook_cell *cell, const td_event *event) {
  td_cell_output *output = add_output(cell, TD_OUTPUT_ERROR);
  if (!output) return;
  td_text_add_bytes(&output->text, event->text, event->length);
  output->detail = copy(event->detail);
  output->name = copy(event->name);
  output->line = event->line;
  output->column = event->column;
}

static void add_image(td_notebook_cell *cell, const td_event *event) {
  td_cell_output *output = add_output(cell, TD_OUTPUT_IMAGE);
  if (!output) return;
  td_text_add(&output->text, event->text);
  output->detail = copy(event->detail);
  size_t bytes = event->pixels ? (size_t)event->width * (size_t)event->height * 3 : 0;
  output->pixels = bytes ? td_memory_new(bytes) : NULL;
  if (!output->pixels) return;
  memcpy(output->pixels, event->pixels, bytes);
  output->width = event->width;
  output->height = event->height;
}

static void add_curve(td_notebook_cell *cell, const td_event *event) {
  td_cell_output *output = NULL;
  for (int i = 0; i < cell->output_count && !output; i++) {
    td_cell_output *o = &cell->outputs[i];
    if (o->kind == TD_OUTPUT_CURVE && o->text.data && strcmp(o->text.data, event->text) == 0) output = o;
  }
  if (!output && (output = add_output(cell, TD_OUTPUT_CURVE))) {
    td_text_add(&output->text, event->text);
    output->curve = td_curve_new(event->text);
  }
  for (int64_t i = 0; output && output->curve && event->points && i < event->done; i++)
    td_curve_add(output->curve, event->points[i].step, event->points[i].value);
}

static void add_value(td_notebook_cell *cell, const td_event *event) {
  td_cell_output *output = add_output(cell, TD_OUTPUT_VALUE);
  if (!output) return;
  td_text_add_bytes(&output->text, event->text, event->length);
  if (!output->text.failed) cut_middle(output);
}

static void add_notice(td_notebook_cell *cell, const td_event *event) { // of warnings and log lines
  td_text text = {0};
  td_text_print(&text, "%s: ", event->kind == TD_EVENT_WARNING ? "warning" : td_log_word(event->level));
  if (event->kind == TD_EVENT_LOG && event->name && *event->name) td_text_print(&text, "%s: ", event->name);
  td_text_add_bytes(&text, event->text, event->length);
  if (event->kind == TD_EVENT_WARNING && event->detail && *event->detail) td_text_print(&text, "\n  %s", event->detail);
  td_text_add_char(&text, '\n');
  if (!text.failed) add_stream(cell, 2, text.data, text.length);
  td_text_clear(&text);
}

// ---- runs ----

int td_notebook_queue(td_notebook *n, int index) {
  if (index < 0 || index >= n->count || n->cells[index]->markdown) return 0;
  td_notebook_cell *cell = n->cells[index];
  if (td_notebook_is_running(cell)) return 0;
  cell->waiting = ++n->last_number;
  cell->before = cell->status;
  cell->status = TD_CELL_QUEUED;
  td_notebook_touch(n, cell);
  return cell->waiting;
}

static void set_status(td_notebook *n, td_notebook_cell *cell, enum td_cell_status status) {
  if (cell->status == status) return;
  cell->status = status;
  td_notebook_touch(n, cell);
}

static void start(td_notebook *n, td_notebook_cell *cell, const td_event *event) {
  td_cell_drop_outputs(cell);
  td_notebook_touch_content(n, cell);
  cell->number = cell->waiting;
  cell->status = TD_CELL_RUNNING;
  cell->ran_at = n->revision;
  cell->ran_text = td_notebook_hash(event->text, event->length);
  cell->stale = false;
  cell->seconds = 0;
}

static void finish(td_notebook_cell *cell, const td_event *event) {
  static const enum td_cell_status ends[] = {[TD_RUN_DONE] = TD_CELL_DONE,
                                             [TD_RUN_FAILED] = TD_CELL_FAILED,
                                             [TD_RUN_INTERRUPTED] = TD_CELL_INTERRUPTED,
                                             [TD_RUN_EXIT] = TD_CELL_DONE};
  cell->status = ends[event->status];
  cell->seconds = event->seconds;
  cell->waiting = 0;
}

static void drop(td_notebook *n, td_notebook_cell *cell) { // it won't run: as it was before
  cell->status = cell->before;
  cell->waiting = 0;
  td_notebook_touch(n, cell);
}

static bool take(td_notebook_cell *cell, const td_event *event) { // false: nothing of the cell changed
  switch (event->kind) {
  case TD_EVENT_OUTPUT: add_stream(cell, event->stream, event->text, event->length); return true;
  case TD_EVENT_VALUE: add_value(cell, event); return true;
  case TD_EVENT_METRIC: add_curve(cell, event); return true;
  case TD_EVENT_IMAGE: add_image(cell, event); return true;
  case TD_EVENT_ERROR: add_error(cell, event); return true;
  case TD_EVENT_WARNING:
  case TD_EVENT_LOG: add_notice(cell, event); return true;
  default: return false;
  }
}

// Cells may run within the pause of another one: an event tells its cell by the number of the run.
int td_notebook_event(td_notebook *n, const td_event *event) {
  td_notebook_cell *cell = td_notebook_waiting(n, event->cell);
  if (!cell) return -1;
  switch (event->kind) {
  case TD_EVENT_CELL_STARTED: start(n, cell, event); break;
  case TD_EVENT_CELL_DROPPED: drop(n, cell); break;
  case TD_EVENT_PAUSED: set_status(n, cell, TD_CELL_PAUSED); break;
  case TD_EVENT_RESUMED: set_status(n, cell, TD_CELL_RUNNING); break;
  case TD_EVENT_CELL_FINISHED:
    finish(cell, event);
    td_notebook_touch_content(n, cell);
    break;
  default:
    if (take(cell, event)) td_notebook_touch_content(n, cell);
  }
  return td_notebook_find(n, cell->id);
}
