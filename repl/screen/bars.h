// The progress bars that are open, a row each, the outer ones first.
#ifndef TD_SCREEN_BARS_H
#define TD_SCREEN_BARS_H
#include "repl/line/render.h"
#include "repl/screen/theme.h"

typedef struct td_bars {
  td_bar rows[TD_BARS_MAX];
  int count;
} td_bars;

void td_bars_take(td_bars *bars, const td_event *event); // a PROGRESS event, or the end of a cell
void td_bars_paint(const td_bars *bars, const td_theme *theme, td_surface *surface, td_rect area);
#endif
