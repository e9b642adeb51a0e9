// See notebook.h. Cells are blocks of their own, so that the one that runs can be moved, or deleted and brought back,
// while its events come. Here: the list of cells and what is known about them.
#include "repl/notebook/notebook.h"
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/notebook/cell_names.h"

// ---- cells ----

void td_cell_output_clear(td_cell_output *o) {
  td_text_clear(&o->text);
  td_memory_free(o->detail);
  td_memory_free(o->name);
  td_memory_free(o->pixels);
  td_curve_free(o->curve);
  td_memory_free(o->json);
}

void td_cell_drop_outputs(td_notebook_cell *cell) {
  for (int i = 0; i < cell->output_count; i++) td_cell_output_clear(&cell->outputs[i]);
  td_memory_free(cell->outputs);
  cell->outputs = NULL;
  cell->output_count = cell->output_capacity = 0;
}

td_cell_output *td_cell_add_output(td_notebook_cell *cell, enum td_output_kind kind) {
  if (cell->output_count == cell->output_capacity) {
    int capacity = cell->output_capacity ? cell->output_capacity * 2 : 4;
    td_cell_output *outputs = td_memory_resize(cell->outputs, (size_t)capacity * sizeof *outputs);
    if (!outputs) return NULL;
    cell->outputs = outputs;
    cell->output_capacity = capacity;
  }
  td_cell_output *output = &cell->outputs[cell->output_count++];
  *output = (td_cell_output){.kind = kind};
  return output;
}

td_notebook_cell *td_notebook_cell_new(td_notebook *n, bool markdown, const char *text, size_t length) {
  td_notebook_cell *cell = td_memory_new_zero(sizeof *cell);
  if (!cell) return NULL;
  td_text_add_bytes(&cell->text, text, length);
  if (cell->text.failed) {
    td_notebook_cell_free(cell);
    return NULL;
  }
  cell->id = ++n->last_id;
  cell->markdown = cell->commented = markdown;
  return cell;
}

void td_notebook_cell_free(td_notebook_cell *cell) {
  if (!cell) return;
  td_cell_drop_outputs(cell);
  td_text_clear(&cell->text);
  td_cell_names_free(cell->names);
  td_memory_free(cell->divider);
  td_memory_free(cell->tail);
  td_memory_free(cell->json);
  td_memory_free(cell);
}

void td_notebook_touch(td_notebook *n, td_notebook_cell *cell) { cell->revision = ++n->revision; }

void td_notebook_touch_content(td_notebook *n, td_notebook_cell *cell) {
  td_notebook_touch(n, cell);
  cell->content_at = n->revision;
}

// ---- the list ----

td_notebook *td_notebook_new(void) {
  td_notebook *n = td_memory_new_zero(sizeof *n);
  if (n && td_notebook_reserve(n, 1)) return n;
  td_memory_free(n);
  return NULL;
}

void td_notebook_free(td_notebook *n) {
  if (!n) return;
  td_notebook_forget_changes(n, 0);
  td_memory_free(n->changes);
  for (int i = 0; i < n->count; i++) td_notebook_cell_free(n->cells[i]);
  td_memory_free(n->cells);
  td_memory_free(n->json_before);
  td_memory_free(n->json_after);
  td_memory_free(n);
}

bool td_notebook_reserve(td_notebook *n, int count) {
  if (count <= n->capacity) return true;
  int capacity = n->capacity ? n->capacity : 8;
  while (capacity < count) capacity *= 2;
  td_notebook_cell **cells = td_memory_resize(n->cells, (size_t)capacity * sizeof *cells);
  if (!cells) return false;
  n->cells = cells;
  n->capacity = capacity;
  return true;
}

void td_notebook_put(td_notebook *n, int index, td_notebook_cell *cell) {
  memmove(n->cells + index + 1, n->cells + index, (size_t)(n->count - index) * sizeof *n->cells);
  n->cells[index] = cell;
  n->count++;
  td_notebook_touch(n, cell);
  n->edited_at = n->revision;
}

td_notebook_cell *td_notebook_take(td_notebook *n, int index) {
  td_notebook_cell *cell = n->cells[index];
  n->count--;
  memmove(n->cells + index, n->cells + index + 1, (size_t)(n->count - index) * sizeof *n->cells);
  n->edited_at = ++n->revision;
  return cell;
}

td_notebook_cell *td_notebook_append(td_notebook *n, bool markdown, const char *text, size_t length) {
  td_notebook_cell *cell =
      td_notebook_reserve(n, n->count + 1) ? td_notebook_cell_new(n, markdown, text, length) : NULL;
  if (cell) td_notebook_put(n, n->count, cell);
  return cell;
}

// ---- looking ----

int td_notebook_find(const td_notebook *n, uint64_t id) {
  for (int i = 0; i < n->count; i++)
    if (n->cells[i]->id == id) return i;
  return -1;
}

int td_notebook_find_number(const td_notebook *n, int number) {
  int found = -1;
  for (int i = 0; i < n->count && number > 0; i++) { // a file's cell may have the number of another one's run
    const td_notebook_cell *cell = n->cells[i];
    if (cell->waiting == number || (cell->number == number && cell->ran_at)) return i;
    if (cell->number == number) found = i;
  }
  return found;
}

uint64_t td_notebook_hash(const char *text, size_t length) { // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
  return hash;
}

bool td_notebook_is_changed(const td_notebook_cell *cell) {
  return cell->ran_at && cell->changed_at > cell->ran_at &&
         td_notebook_hash(cell->text.data, cell->text.length) != cell->ran_text;
}

bool td_notebook_is_running(const td_notebook_cell *cell) {
  return cell->status == TD_CELL_QUEUED || cell->status == TD_CELL_RUNNING || cell->status == TD_CELL_PAUSED;
}

bool td_notebook_is_saved(const td_notebook *n) { return n->edited_at <= n->saved_at; }

void td_notebook_saved(td_notebook *n) { n->saved_at = n->revision; }

bool td_notebook_in_order(const td_notebook *n, int *first, int *second) {
  const td_notebook_cell *latest = NULL;
  for (int i = 0; i < n->count; i++) {
    const td_notebook_cell *cell = n->cells[i];
    if (!cell->ran_at || cell->markdown) continue;
    if (latest && latest->ran_at > cell->ran_at) {
      *first = latest->number;
      *second = cell->number;
      return false;
    }
    latest = cell;
  }
  return true;
}
