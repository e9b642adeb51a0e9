// The notebook on a surface: cells with their outputs, one under the other, scrolled so that the newest or the selected
// one is in sight. Long outputs have rows of their own to scroll in. It draws what the notebook holds and changes none
// of it but the scroll of outputs.
#ifndef TD_SCREEN_CELLS_VIEW_H
#define TD_SCREEN_CELLS_VIEW_H
#include "repl/notebook/notebook.h"
#include "repl/screen/picture.h"

typedef struct td_cells_view {
  td_notebook *notebook;   // borrowed
  const td_theme *theme;
  int selected;            // index
  bool walking;            // the selection is shown, and kept in sight
  bool editing;            // the selected cell is edited: edit_cursor is shown
  size_t edit_cursor;      // byte of its text
  bool follow;             // the end is in sight
  int top_cell, top_row;   // else: what the first row in sight is
  int rows, columns;       // when last drawn
  int most_number;         // of its cells
  char *search;            // owned; what is searched for, or NULL
  struct height { uint64_t id, revision; int columns, rows, limit, code, output; } *heights; // by index; owned
  int height_count;
  td_pictures pictures;    // as they were scaled; owned
} td_cells_view;

void td_cells_view_free(td_cells_view *view);
void td_cells_view_draw(td_cells_view *view, td_surface *surface, td_rect area);
void td_cells_view_select(td_cells_view *view, int index);
void td_cells_view_scroll(td_cells_view *view, int rows);   // back: below 0
void td_cells_view_scroll_output(td_cells_view *view, int rows); // of the selected cell
// The cell that stands at a row of the area; -1: none. *byte: of its text, when the row is one of its code.
int td_cells_view_at(td_cells_view *view, int row, int column, size_t *byte);
// The next cell whose text or output holds the text searched for; -1: none.
int td_cells_view_find(const td_cells_view *view, int from, int direction);
int td_cells_view_rows(td_cells_view *view, int index); // that a cell takes
int td_cells_view_gutter(const td_cells_view *view); // columns of "[3]> "
#endif
