// Moving among a pane's rows, searching them and showing only some: / n N and &, whatever the rows are.
#ifndef TD_SCREEN_FINDER_H
#define TD_SCREEN_FINDER_H
#include "repl/screen/list.h"
#include "repl/screen/pane.h"

typedef struct td_finder {
  const td_pane_host *host;
  void *pane;                      // argument of the functions
  td_list_view *list;              // its count is that of the rows
  bool (*holds)(const void *pane, int64_t row, const char *text);
  void (*moved)(void *pane);       // another row is selected, or at the top; NULL: doesn't matter
  void (*filtered)(void *pane);    // another filter holds; NULL: the pane shows all rows
  char *search, *filter;           // owned; NULL: none
} td_finder;

bool td_finder_request(td_finder *finder, enum td_request request); // false: not one of these
void td_finder_show_all(td_finder *finder); // drops the filter
void td_finder_clear(td_finder *finder);
#endif
