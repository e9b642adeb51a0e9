// See list.h.
#include "repl/screen/list.h"

static int64_t limit(int64_t value, int64_t least, int64_t most) {
  return value > most ? (most < least ? least : most) : value < least ? least : value;
}

void td_list_view_fit(td_list_view *l, int64_t count, int rows) {
  l->count = count;
  l->rows = rows;
  if (!l->reader) {
    l->selected = limit(l->selected, 0, count - 1);
    if (l->top > l->selected) l->top = l->selected;
    if (l->top < l->selected - rows + 1) l->top = l->selected - rows + 1;
  }
  l->top = limit(l->top, 0, count - rows);
}

void td_list_view_go(td_list_view *l, int64_t row) {
  if (l->reader) l->top = row;
  else l->selected = row;
  td_list_view_fit(l, l->count, l->rows);
}

bool td_list_view_request(td_list_view *l, enum td_request request) {
  int64_t at = l->reader ? l->top : l->selected, page = l->rows > 2 ? l->rows - 1 : 1;
  switch (request) {
  case TD_REQUEST_PANE_UP: at--; break;
  case TD_REQUEST_PANE_DOWN: at++; break;
  case TD_REQUEST_PANE_PAGE_UP: at -= page; break;
  case TD_REQUEST_PANE_PAGE_DOWN: at += page; break;
  case TD_REQUEST_PANE_FIRST: at = 0; break;
  case TD_REQUEST_PANE_LAST: at = l->count; break;
  default: return false;
  }
  td_list_view_go(l, at);
  return true;
}
