// Where everything stands: a pure function of the screen's size and of what is wanted. Nothing overlaps, everything
// lies inside the screen, at every size from 1x1 on.
#ifndef TD_SCREEN_LAYOUT_H
#define TD_SCREEN_LAYOUT_H
#include "repl/screen/surface.h"

enum { TD_LAYOUT_WIDE = 60, TD_LAYOUT_LEAST_ROWS = 4, TD_LAYOUT_LEAST_COLUMNS = 20 };

typedef struct td_layout_wish {
  int rows, columns;       // of the screen
  bool pane, zoomed;       // a pane is open; it covers the cells
  int share;               // of the columns for the pane, in percent
  int bars;                // rows of progress wanted
  int input;               // rows that the prompt wants
} td_layout_wish;

typedef struct td_layout {
  bool too_small;          // nothing but a word fits
  td_rect title, cells, divider, pane, bars, input, status; // rows 0 or columns 0: not shown
} td_layout;

td_layout td_layout_make(const td_layout_wish *wish);
#endif
