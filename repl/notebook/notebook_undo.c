// The notebook's operations and their undo. A change is a record that can be turned over: applied to the notebook it
// becomes its own reverse, since the notebook's state and the record's change places. Steps are one or more changes;
// what was undone is forgotten when something new is done.
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/notebook.h"

enum { CHANGES_MOST = 10000 };

enum change_kind { CHANGE_CELL, CHANGE_MOVE, CHANGE_TEXT, CHANGE_KIND, CHANGE_FOLD, CHANGE_OUTPUTS };

typedef struct td_change {
  enum change_kind kind;
  uint64_t step;
  int index, to; // to: MOVE
  td_notebook_cell *cell; // CELL: owned while it is out of the notebook; NULL while it is in it
  td_text text; // TEXT: the other text; owned
  td_cell_output *outputs; // OUTPUTS: the other ones; owned
  int output_count, output_capacity;
} td_change;

// ---- the list of changes ----

static void free_change(td_change *c) {
  td_notebook_cell_free(c->cell);
  td_text_clear(&c->text);
  td_notebook_cell outputs = {.outputs = c->outputs, .output_count = c->output_count};
  td_cell_drop_outputs(&outputs);
}

void td_notebook_forget_changes(td_notebook *n, int from) {
  for (int i = from; i < n->change_count; i++) free_change(&n->changes[i]);
  n->change_count = from;
  if (n->change_done > from) n->change_done = from;
}

static void forget_oldest(td_notebook *n) { // steps that are half of the changes, at least
  int gone = n->change_done / 2;
  while (gone < n->change_done && gone && n->changes[gone].step == n->changes[gone - 1].step) gone++;
  for (int i = 0; i < gone; i++) free_change(&n->changes[i]);
  n->change_count -= gone;
  n->change_done -= gone;
  memmove(n->changes, n->changes + gone, (size_t)n->change_count * sizeof *n->changes);
}

// Room for count more changes of a new step. false: no memory.
static bool begin_step(td_notebook *n, int count) {
  td_notebook_forget_changes(n, n->change_done);
  if (n->change_count + count > CHANGES_MOST) forget_oldest(n);
  if (n->change_count + count > n->change_capacity) {
    int capacity = n->change_capacity ? n->change_capacity : 16;
    while (capacity < n->change_count + count) capacity *= 2;
    td_change *changes = td_memory_resize(n->changes, (size_t)capacity * sizeof *changes);
    if (!changes) return false;
    n->changes = changes;
    n->change_capacity = capacity;
  }
  n->step++;
  n->typing = false;
  return true;
}

static td_change *add_change(td_notebook *n, td_change change) { // there is room
  change.step = n->step;
  n->changes[n->change_count++] = change;
  n->change_done = n->change_count;
  return &n->changes[n->change_count - 1];
}

td_notebook_cell *td_notebook_waiting(const td_notebook *n, int number) {
  if (number <= 0) return NULL;
  for (int i = 0; i < n->count; i++)
    if (n->cells[i]->waiting == number) return n->cells[i];
  for (int i = 0; i < n->change_count; i++) {
    td_notebook_cell *cell = n->changes[i].cell;
    if (cell && cell->waiting == number) return cell;
  }
  return NULL;
}

// ---- turning a change over ----

static void note_edit(td_notebook *n, td_notebook_cell *cell) {
  td_notebook_touch_content(n, cell);
  cell->changed_at = n->edited_at = n->revision;
}

static void move_cell(td_notebook *n, int from, int to) {
  td_notebook_cell *cell = td_notebook_take(n, from);
  td_notebook_put(n, to, cell);
}

static void turn_cell(td_notebook *n, td_change *c) {
  if (c->cell) {
    td_notebook_put(n, c->index, c->cell);
    c->cell->changed_at = n->revision;
    c->cell = NULL;
  } else {
    c->cell = td_notebook_take(n, c->index);
  }
}

static void turn_outputs(td_notebook_cell *cell, td_change *c) {
  td_change other = *c;
  c->outputs = cell->outputs;
  c->output_count = cell->output_count;
  c->output_capacity = cell->output_capacity;
  cell->outputs = other.outputs;
  cell->output_count = other.output_count;
  cell->output_capacity = other.output_capacity;
}

// Returns the index of the cell that it was about.
static int turn(td_notebook *n, td_change *c) {
  if (c->kind == CHANGE_CELL) {
    turn_cell(n, c);
    return c->index;
  }
  if (c->kind == CHANGE_MOVE) {
    int from = c->index, to = c->to;
    move_cell(n, from, to);
    c->index = to;
    c->to = from;
    return to;
  }
  td_notebook_cell *cell = n->cells[c->index];
  td_text text = cell->text;
  switch (c->kind) {
  case CHANGE_TEXT:
    cell->text = c->text;
    c->text = text;
    break;
  case CHANGE_KIND:
    cell->markdown = !cell->markdown;
    cell->commented = cell->markdown;
    break;
  case CHANGE_FOLD: cell->folded = !cell->folded; break;
  default: turn_outputs(cell, c); break;
  }
  if (c->kind == CHANGE_TEXT || c->kind == CHANGE_KIND) note_edit(n, cell);
  else if (c->kind == CHANGE_OUTPUTS) td_notebook_touch_content(n, cell);
  else td_notebook_touch(n, cell);
  if (c->kind == CHANGE_OUTPUTS) cell->outputs_at = n->revision;
  return c->index;
}

int td_notebook_undo(td_notebook *n) {
  int index = -1;
  n->typing = false;
  for (uint64_t step = n->change_done ? n->changes[n->change_done - 1].step : 0;
       n->change_done && n->changes[n->change_done - 1].step == step; n->change_done--)
    index = turn(n, &n->changes[n->change_done - 1]);
  return index;
}

int td_notebook_redo(td_notebook *n) {
  int index = -1;
  n->typing = false;
  for (uint64_t step = n->change_done < n->change_count ? n->changes[n->change_done].step : 0;
       n->change_done < n->change_count && n->changes[n->change_done].step == step; n->change_done++)
    index = turn(n, &n->changes[n->change_done]);
  return index;
}

// ---- operations ----

static bool has(const td_notebook *n, int index) { return index >= 0 && index < n->count; }

static bool copy_text(td_text *out, const char *text, size_t length) {
  td_text_add_bytes(out, text, length);
  if (!out->failed) return true;
  td_text_clear(out);
  return false;
}

bool td_notebook_insert(td_notebook *n, int index, bool markdown, const char *text, size_t length) {
  if (index < 0 || index > n->count || !td_notebook_reserve(n, n->count + 1) || !begin_step(n, 1)) return false;
  td_notebook_cell *cell = td_notebook_cell_new(n, markdown, text, length);
  if (!cell) return false;
  turn(n, add_change(n, (td_change){.kind = CHANGE_CELL, .index = index, .cell = cell}));
  return true;
}

bool td_notebook_delete(td_notebook *n, int index) {
  if (!has(n, index) || !begin_step(n, 1)) return false;
  turn(n, add_change(n, (td_change){.kind = CHANGE_CELL, .index = index}));
  return true;
}

bool td_notebook_move(td_notebook *n, int from, int to) {
  if (!has(n, from) || !has(n, to)) return false;
  if (from == to) return true;
  if (!begin_step(n, 1)) return false;
  turn(n, add_change(n, (td_change){.kind = CHANGE_MOVE, .index = from, .to = to}));
  return true;
}

static size_t without_line_ends(const char *text, size_t length) {
  while (length && (text[length - 1] == '\n' || text[length - 1] == '\r')) length--;
  return length;
}

bool td_notebook_split(td_notebook *n, int index, size_t byte) {
  if (!has(n, index) || byte > n->cells[index]->text.length) return false;
  const td_notebook_cell *cell = n->cells[index];
  if (!td_notebook_reserve(n, n->count + 1) || !begin_step(n, 2)) return false;
  const char *rest = cell->text.data + byte;
  size_t left = cell->text.length - byte;
  for (; left && *rest == '\n'; left--) rest++;
  td_text head = {0};
  td_notebook_cell *next = td_notebook_cell_new(n, cell->markdown, rest, left);
  if (!next || !copy_text(&head, cell->text.data, without_line_ends(cell->text.data, byte))) {
    td_notebook_cell_free(next);
    return false;
  }
  turn(n, add_change(n, (td_change){.kind = CHANGE_TEXT, .index = index, .text = head}));
  turn(n, add_change(n, (td_change){.kind = CHANGE_CELL, .index = index + 1, .cell = next}));
  return true;
}

bool td_notebook_merge(td_notebook *n, int index) {
  if (!has(n, index) || !has(n, index + 1) || !begin_step(n, 2)) return false;
  const td_text *first = &n->cells[index]->text, *second = &n->cells[index + 1]->text;
  td_text both = {0};
  td_text_add_bytes(&both, first->data, first->length);
  if (first->length && second->length) td_text_add_char(&both, '\n');
  if (!copy_text(&both, second->data, second->length)) return false;
  turn(n, add_change(n, (td_change){.kind = CHANGE_TEXT, .index = index, .text = both}));
  turn(n, add_change(n, (td_change){.kind = CHANGE_CELL, .index = index + 1}));
  return true;
}

bool td_notebook_set_kind(td_notebook *n, int index, bool markdown) {
  if (!has(n, index)) return false;
  if (n->cells[index]->markdown == markdown) return true;
  if (!begin_step(n, 1)) return false;
  turn(n, add_change(n, (td_change){.kind = CHANGE_KIND, .index = index}));
  return true;
}

static bool is_text(const td_notebook_cell *cell, const char *text, size_t length) {
  return cell->text.length == length && (!length || memcmp(cell->text.data, text, length) == 0);
}

bool td_notebook_set_text(td_notebook *n, int index, const char *text, size_t length) {
  if (!has(n, index)) return false;
  if (is_text(n->cells[index], text, length)) return true;
  td_text copy = {0};
  if (!copy_text(&copy, text, length)) return false;
  if (!begin_step(n, 1)) {
    td_text_clear(&copy);
    return false;
  }
  turn(n, add_change(n, (td_change){.kind = CHANGE_TEXT, .index = index, .text = copy}));
  return true;
}

bool td_notebook_type(td_notebook *n, int index, const char *text, size_t length) {
  bool joins = n->typing && has(n, index) && n->changes[n->change_done - 1].index == index;
  if (!joins) {
    uint64_t step = n->step;
    bool ok = td_notebook_set_text(n, index, text, length);
    n->typing = ok && n->step != step;
    return ok;
  }
  td_notebook_cell *cell = n->cells[index];
  if (is_text(cell, text, length)) return true;
  td_text copy = {0};
  if (!copy_text(&copy, text, length)) return false;
  td_text_clear(&cell->text);
  cell->text = copy;
  note_edit(n, cell);
  return true;
}

bool td_notebook_clear_outputs(td_notebook *n, int index) {
  int from = index < 0 ? 0 : index, to = index < 0 ? n->count : index + 1, count = 0;
  if (index >= n->count) return false;
  for (int i = from; i < to; i++) count += n->cells[i]->output_count > 0;
  if (!count) return true;
  if (!begin_step(n, count)) return false;
  for (int i = from; i < to; i++)
    if (n->cells[i]->output_count) turn(n, add_change(n, (td_change){.kind = CHANGE_OUTPUTS, .index = i}));
  return true;
}

bool td_notebook_fold(td_notebook *n, int index, bool folded) {
  if (!has(n, index)) return false;
  if (n->cells[index]->folded == folded) return true;
  if (!begin_step(n, 1)) return false;
  turn(n, add_change(n, (td_change){.kind = CHANGE_FOLD, .index = index}));
  return true;
}
