// The log: all that was printed, whole, with less' keys. The newest bytes are kept.
#include <string.h>
#include "engine/base/memory.h"
#include "repl/screen/finder.h"
#include "repl/screen/panes.h"

enum { KEPT_MOST = 8 << 20 };

typedef struct state {
  const td_pane_host *host;
  td_list_view list;
  td_text text;
  int columns;             // that rows were counted for
  int64_t *rows;           // byte where every row begins; owned
  int64_t row_count, row_capacity;
  size_t counted;          // bytes that rows cover
  int64_t lost;            // bytes that went
  bool follow;
  td_finder finder;
} state;

static void close_log(void *self) {
  state *s = self;
  td_text_clear(&s->text);
  td_memory_free(s->rows);
  td_finder_clear(&s->finder);
}

static void make_room(state *s) {
  if (s->text.length < KEPT_MOST) return;
  size_t cut = s->text.length - KEPT_MOST / 4 * 3;
  const char *newline = memchr(s->text.data + cut, '\n', s->text.length - cut);
  if (newline) cut = (size_t)(newline + 1 - s->text.data);
  memmove(s->text.data, s->text.data + cut, s->text.length - cut + 1);
  s->text.length -= cut;
  s->lost += (int64_t)cut;
  s->counted = 0;
  s->row_count = 0;
}

static void add(state *s, const char *text, size_t length, bool whole_line) {
  if (whole_line && s->text.length && s->text.data[s->text.length - 1] != '\n') td_text_add_char(&s->text, '\n');
  td_text_add_bytes(&s->text, text, length);
  if (whole_line && length && text[length - 1] != '\n') td_text_add_char(&s->text, '\n');
  if (s->text.failed) s->text.failed = false;
  make_room(s);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  switch (event->kind) {
  case TD_EVENT_OUTPUT: add(s, event->text, event->length, false); break;
  case TD_EVENT_VALUE: case TD_EVENT_ERROR: case TD_EVENT_WARNING: case TD_EVENT_LOG:
    add(s, event->text, event->length, true);
    break;
  case TD_EVENT_CELL_STARTED: {
    td_text head = {0};
    td_text_print(&head, "--- [%d]", event->cell);
    if (head.data) add(s, head.data, head.length, true);
    td_text_clear(&head);
    break;
  }
  default: break;
  }
}

// ---- rows ----

static bool passes(const state *s, const td_wrapped *row) {
  const char *filter = s->finder.filter;
  return !filter || memmem(s->text.data + row->begin, row->end - row->begin, filter, strlen(filter));
}

static bool add_row(state *s, size_t begin) {
  if (s->row_count == s->row_capacity) {
    int64_t capacity = s->row_capacity ? 2 * s->row_capacity : 256;
    int64_t *grown = td_memory_resize(s->rows, (size_t)capacity * sizeof *grown);
    if (!grown) return false;
    s->rows = grown;
    s->row_capacity = capacity;
  }
  s->rows[s->row_count++] = (int64_t)begin;
  return true;
}

// Only what came since is looked at; a row without its end is counted again.
static void count_rows(state *s, int columns) {
  if (columns != s->columns) s->counted = 0, s->row_count = 0;
  s->columns = columns;
  while (s->row_count && s->rows[s->row_count - 1] >= (int64_t)s->counted) s->row_count--;
  td_wrapped row = {.next = s->counted};
  while (s->counted < s->text.length && td_wrap_next(s->text.data, s->text.length, columns, &row)) {
    if (row.begin == s->text.length && row.last) break;
    if (passes(s, &row) && !add_row(s, row.begin)) break;
    if (row.end == s->text.length) break;
    s->counted = row.next;
  }
}

static bool holds(const void *self, int64_t row, const char *text) {
  const state *s = self;
  if (row >= s->row_count) return false;
  size_t begin = (size_t)s->rows[row], end = row + 1 < s->row_count ? (size_t)s->rows[row + 1] : s->text.length;
  return memmem(s->text.data + begin, end - begin, text, strlen(text));
}

static void moved(void *self) {
  state *s = self;
  s->follow = s->list.top >= s->list.count - s->list.rows;
}

static void filtered(void *self) {
  state *s = self;
  s->counted = 0;
  s->row_count = 0;
}

static void open_log(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  (void)first_id;
  s->host = host;
  s->list.reader = true;
  s->follow = true;
  s->finder = (td_finder){host, s, &s->list, holds, moved, filtered, NULL, NULL};
}

static bool take_request(void *self, enum td_request request) {
  return td_finder_request(&((state *)self)->finder, request);
}

static void write_title(void *self, td_text *title) {
  const state *s = self;
  const char *filter = s->finder.filter;
  td_text_print(title, "log%s%s%s", filter ? " &" : "", filter ? filter : "", s->follow ? "" : " (G: the end)");
  if (s->lost) td_text_print(title, ", the first %lld MB went", (long long)(s->lost >> 20));
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  (void)focus;
  count_rows(s, area.columns);
  if (s->follow) s->list.top = s->row_count;
  td_list_view_fit(&s->list, s->row_count, area.rows);
  td_style style = td_theme_style(s->host->theme, TD_LOOK_TEXT), match = td_theme_style(s->host->theme, TD_LOOK_MATCH);
  for (int i = 0; i < area.rows && s->list.top + i < s->row_count; i++) {
    td_wrapped row = {.next = (size_t)s->rows[s->list.top + i]};
    if (!td_wrap_next(s->text.data, s->text.length, area.columns, &row)) break;
    const char *text = s->text.data + row.begin;
    size_t length = row.end - row.begin;
    const char *search = s->finder.search, *hit = search ? memmem(text, length, search, strlen(search)) : NULL;
    td_surface_text(surface, area.row + i, area.column, area.columns, text, length, style);
    if (hit)
      td_surface_text(surface, area.row + i, area.column + td_text_columns(text, (size_t)(hit - text)), area.columns,
                      hit, strlen(search), match);
  }
}

const td_pane_type td_pane_log = {.name = "log", .context = TD_IN_LOG, .toggle = TD_REQUEST_SHOW_LOG,
  .state_size = sizeof(state), .open = open_log, .close = close_log, .event = take_event, .request = take_request,
  .title = write_title, .draw = draw};
