// Rows that scroll, one of them selected: what moving keys do, whatever the rows are.
#ifndef TD_SCREEN_LIST_H
#define TD_SCREEN_LIST_H
#include "repl/screen/request.h"

typedef struct td_list_view {
  int64_t count, selected, top;    // top: first row in sight
  int rows;                        // in sight, set by td_list_view_fit when it is drawn
  bool reader;                     // a text that is read: keys move the top, and nothing is selected
} td_list_view;

void td_list_view_fit(td_list_view *list, int64_t count, int rows); // the selected row is in sight after it
bool td_list_view_request(td_list_view *list, enum td_request request); // PANE_UP to PANE_LAST; false: another one
void td_list_view_go(td_list_view *list, int64_t row);
#endif
