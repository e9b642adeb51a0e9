// See finder.h.
#include "repl/screen/finder.h"
#include "engine/base/memory.h"

static void moved(td_finder *f) {
  if (f->moved) f->moved(f->pane);
}

static void find(td_finder *f, int direction) { // round the end
  int64_t count = f->list->count, at = f->list->reader ? f->list->top : f->list->selected;
  for (int64_t step = 1; f->search && step <= count; step++) {
    int64_t row = ((at + direction * step) % count + count) % count;
    if (!f->holds(f->pane, row, f->search)) continue;
    td_list_view_go(f->list, row);
    moved(f);
    return;
  }
  f->host->say(f->host->owner, f->search ? "not found" : "nothing was searched for: / asks");
}

static void searched(void *finder, const char *line) {
  td_finder *f = finder;
  if (!line || !*line) return;
  td_memory_free(f->search);
  f->search = td_memory_text(line);
  find(f, 1);
}

static void filtered(void *finder, const char *line) {
  td_finder *f = finder;
  if (!line) return;
  td_memory_free(f->filter);
  f->filter = *line ? td_memory_text(line) : NULL;
  f->filtered(f->pane);
}

void td_finder_show_all(td_finder *f) { filtered(f, ""); }

bool td_finder_request(td_finder *f, enum td_request request) {
  switch (request) {
  case TD_REQUEST_PANE_SEARCH: f->host->ask(f->host->owner, "/", searched, f); return true;
  case TD_REQUEST_PANE_SEARCH_NEXT: find(f, 1); return true;
  case TD_REQUEST_PANE_SEARCH_BACK: find(f, -1); return true;
  case TD_REQUEST_PANE_FILTER:
    if (f->filtered) f->host->ask(f->host->owner, "&", filtered, f);
    return f->filtered;
  default: break;
  }
  if (!td_list_view_request(f->list, request)) return false;
  moved(f);
  return true;
}

void td_finder_clear(td_finder *f) {
  td_memory_free(f->search);
  td_memory_free(f->filter);
  f->search = f->filter = NULL;
}
