// Requests on cells: walking, editing in place, making, moving, deleting, searching.
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/screen/screen.h"

static td_notebook_cell *selected(const td_screen *s) {
  return s->view.selected < s->notebook->count ? s->notebook->cells[s->view.selected] : NULL;
}

void td_screen_edit_cell(td_screen *s, int index) {
  td_cells_view_select(&s->view, index);
  td_screen_focus(s, TD_FOCUS_CELL);
}

static void insert(td_screen *s, int index) {
  if (!td_notebook_insert(s->notebook, index, false, "", 0)) {
    td_screen_say(s, "no memory for a cell");
    return;
  }
  td_screen_edit_cell(s, index);
}

static void keep_deleted(td_screen *s) {
  const td_notebook_cell *cell = selected(s);
  s->deleted.length = 0;
  td_text_add_bytes(&s->deleted, cell->text.data ? cell->text.data : "", cell->text.length);
  s->deleted_markdown = cell->markdown;
}

static void remove_cell(td_screen *s) {
  const td_notebook_cell *cell = selected(s);
  if (cell->status == TD_CELL_RUNNING || cell->status == TD_CELL_PAUSED) {
    td_screen_say(s, "it runs: stop it first (Ctrl-C)");
    return;
  }
  keep_deleted(s);
  td_notebook_delete(s->notebook, s->view.selected);
  td_cells_view_select(&s->view, s->view.selected);
  if (!s->notebook->count) td_screen_focus(s, TD_FOCUS_PROMPT);
  td_screen_say(s, "deleted: p puts it back below, u undoes");
}

static void move(td_screen *s, int by) {
  int to = s->view.selected + by;
  if (to < 0 || to >= s->notebook->count) return;
  if (td_notebook_move(s->notebook, s->view.selected, to)) td_cells_view_select(&s->view, to);
}

static void undo(td_screen *s, int (*step)(td_notebook *), const char *nothing) {
  int index = step(s->notebook);
  if (index < 0) td_screen_say(s, "%s", nothing);
  else td_cells_view_select(&s->view, index);
  if (!s->notebook->count) td_screen_focus(s, TD_FOCUS_PROMPT);
}

static void go_to_line(td_screen *s, int index, int line, int column) { // edits the cell there
  td_screen_edit_cell(s, index);
  const td_text *text = &s->notebook->cells[index]->text;
  const char *at = text->data ? text->data : "";
  while (line > 1) {
    const char *newline = strchr(at, '\n');
    if (!newline) break;
    at = newline + 1;
    line--;
  }
  size_t byte = (size_t)(at - (text->data ? text->data : at)), end = strcspn(at, "\n");
  byte += column > 1 && (size_t)column - 1 < end ? (size_t)column - 1 : 0;
  td_edit_set(text->data ? text->data : "", text->length, byte, "");
}

void td_screen_jump(td_screen *s, const char *script, int line, int column) {
  int number;
  if (!script || sscanf(script, "cell %d", &number) != 1) {
    td_screen_say(s, "%s:%d is no place in a cell", script ? script : "?", line);
    return;
  }
  int index = td_notebook_find_number(s->notebook, number);
  if (index < 0) td_screen_say(s, "the cell that ran as [%d] is gone or ran again since", number);
  else go_to_line(s, index, line, column);
}

static void jump_to_error(td_screen *s) {
  const td_notebook_cell *cell = selected(s);
  for (int i = 0; i < cell->output_count; i++) {
    const td_cell_output *o = &cell->outputs[i];
    if (o->kind != TD_OUTPUT_ERROR) continue;
    if (o->name && o->line > 0) td_screen_jump(s, o->name, o->line, o->column);
    else td_screen_say(s, "the error names no line");
    return;
  }
  td_screen_say(s, "this cell has no error");
}

static void find(td_screen *s, int direction) {
  if (!s->view.search) {
    td_screen_say(s, "nothing was searched for: / asks");
    return;
  }
  int index = td_cells_view_find(&s->view, s->view.selected, direction);
  if (index < 0) td_screen_say(s, "not found: %s", s->view.search);
  else td_cells_view_select(&s->view, index);
}

static void search(void *screen, const char *line) {
  td_screen *s = screen;
  if (!line) return;
  td_memory_free(s->view.search);
  s->view.search = *line ? td_memory_text(line) : NULL;
  if (s->view.search) {
    s->view.selected--; // the selected one may hold it
    find(s, 1);
    if (s->view.selected < 0) s->view.selected = 0;
  }
}

static void colon(void *screen, const char *line) {
  if (line) td_screen_colon(screen, line);
}

static void split(td_screen *s) {
  size_t length, cursor;
  if (s->focus != TD_FOCUS_CELL) {
    td_screen_say(s, "a cell is split where the cursor stands in it: Esc, Enter");
    return;
  }
  td_screen_sync(s);
  td_edit_text(&length, &cursor);
  s->focus = TD_FOCUS_CELLS; // the editor's text is in the cell
  if (td_notebook_split(s->notebook, s->view.selected, cursor)) td_screen_edit_cell(s, s->view.selected + 1);
}

static void page(td_screen *s, int direction) {
  int rows = s->layout.cells.rows, at = s->view.selected;
  while (rows > 0 && at + direction >= 0 && at + direction < s->notebook->count) {
    at += direction;
    rows -= td_cells_view_rows(&s->view, at);
  }
  td_cells_view_select(&s->view, at);
}

bool td_screen_cells_request(td_screen *s, enum td_request request) {
  if (request == TD_REQUEST_COMMAND_LINE) return td_screen_ask(s, ":", colon, s), true;
  if (request == TD_REQUEST_CELL_SPLIT) return split(s), true;
  if (!selected(s)) return false;
  int at = s->view.selected;
  switch (request) {
  case TD_REQUEST_CELL_UP: td_cells_view_select(&s->view, at - 1); break;
  case TD_REQUEST_CELL_DOWN:
    if (at + 1 < s->notebook->count) td_cells_view_select(&s->view, at + 1);
    else td_screen_focus(s, TD_FOCUS_PROMPT);
    break;
  case TD_REQUEST_CELL_FIRST: td_cells_view_select(&s->view, 0); break;
  case TD_REQUEST_CELL_LAST: td_cells_view_select(&s->view, s->notebook->count - 1); break;
  case TD_REQUEST_CELL_PAGE_UP: page(s, -1); break;
  case TD_REQUEST_CELL_PAGE_DOWN: page(s, 1); break;
  case TD_REQUEST_CELL_EDIT: td_screen_edit_cell(s, at); break;
  case TD_REQUEST_CELL_ABOVE: insert(s, at); break;
  case TD_REQUEST_CELL_BELOW: insert(s, at + 1); break;
  case TD_REQUEST_CELL_DELETE: remove_cell(s); break;
  case TD_REQUEST_CELL_COPY: keep_deleted(s), td_screen_say(s, "copied: p puts it below"); break;
  case TD_REQUEST_CELL_PASTE:
    if (!s->deleted.data) td_screen_say(s, "nothing was deleted or copied");
    else if (td_notebook_insert(s->notebook, at + 1, s->deleted_markdown, s->deleted.data, s->deleted.length))
      td_cells_view_select(&s->view, at + 1);
    break;
  case TD_REQUEST_CELL_MOVE_UP: move(s, -1); break;
  case TD_REQUEST_CELL_MOVE_DOWN: move(s, 1); break;
  case TD_REQUEST_CELL_MERGE: td_notebook_merge(s->notebook, at); break;
  case TD_REQUEST_CELL_MARKDOWN: td_notebook_set_kind(s->notebook, at, true); break;
  case TD_REQUEST_CELL_CODE: td_notebook_set_kind(s->notebook, at, false); break;
  case TD_REQUEST_CELL_FOLD: td_notebook_fold(s->notebook, at, !selected(s)->folded); break;
  case TD_REQUEST_CELL_CLEAR: td_notebook_clear_outputs(s->notebook, at); break;
  case TD_REQUEST_CELL_UNDO: undo(s, td_notebook_undo, "nothing to undo"); break;
  case TD_REQUEST_CELL_REDO: undo(s, td_notebook_redo, "nothing to do again"); break;
  case TD_REQUEST_CELL_ERROR: jump_to_error(s); break;
  case TD_REQUEST_CELL_SEARCH: td_screen_ask(s, "/", search, s); break;
  case TD_REQUEST_CELL_SEARCH_NEXT: find(s, 1); break;
  case TD_REQUEST_CELL_SEARCH_BACK: find(s, -1); break;
  case TD_REQUEST_OUTPUT_UP: td_cells_view_scroll_output(&s->view, -1); break;
  case TD_REQUEST_OUTPUT_DOWN: td_cells_view_scroll_output(&s->view, 1); break;
  case TD_REQUEST_CELL_LEAVE: td_screen_focus(s, TD_FOCUS_PROMPT); break;
  default: return false;
  }
  return true;
}
