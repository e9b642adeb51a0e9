// See layout.h.
#include "repl/screen/layout.h"

enum { TITLE_ROWS_FROM = 8, LEAST_CELLS = 24, LEAST_PANE = 22 };

static int limit(int value, int least, int most) { return value < least ? least : value > most ? most : value; }

td_layout td_layout_make(const td_layout_wish *w) {
  td_layout layout = {0};
  int rows = w->rows, columns = w->columns;
  layout.too_small = rows < TD_LAYOUT_LEAST_ROWS || columns < TD_LAYOUT_LEAST_COLUMNS;
  if (layout.too_small) return layout;
  int top = rows >= TITLE_ROWS_FROM;
  layout.title = (td_rect){0, 0, top, columns};
  layout.status = (td_rect){rows - 1, 0, 1, columns};
  int left = rows - top - 1; // for everything else
  int input = limit(w->input, 1, left / 2 > 1 ? left / 2 : 1);
  int bars = limit(w->bars, 0, left - input > 3 ? (left - input) / 3 : 0);
  bool beside = w->pane && !w->zoomed && columns >= TD_LAYOUT_WIDE;
  bool over = w->pane && !beside;
  int pane_columns = beside ? limit(columns * w->share / 100, LEAST_PANE, columns - LEAST_CELLS - 1) : 0;
  int cells_columns = beside ? columns - pane_columns - 1 : columns;
  int body = left - input - bars;
  if (over) {
    layout.pane = (td_rect){top, 0, body, columns};
    layout.cells = (td_rect){top, 0, 0, 0};
  } else {
    layout.cells = (td_rect){top, 0, body, cells_columns};
  }
  if (beside) {
    layout.divider = (td_rect){top, cells_columns, left, 1};
    layout.pane = (td_rect){top, cells_columns + 1, left, pane_columns};
  }
  layout.bars = (td_rect){top + body, 0, bars, cells_columns};
  layout.input = (td_rect){top + body + bars, 0, input, cells_columns};
  return layout;
}
