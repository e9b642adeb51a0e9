// The session's names: what they hold, how large their values and gradients are, how much the last step changed them, and
// how their norms went. The report is asked for while the pane is in sight; what is kept here is its copy.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/report_variables.h"
#include "repl/screen/list.h"
#include "repl/screen/panes.h"

enum { PAST = 24, NAMES_MOST = 4096 };

typedef struct past { // of a path: its norms, the newest last
  char *path;
  double norms[PAST];
  int count;
} past;

typedef enum sorting { BY_NAME, BY_BYTES, BY_NORM, BY_GRADIENT, BY_UPDATE, BY_ZEROS, COLUMN_COUNT } sorting;
static const char *const column_names[] = {"name", "bytes", "norm", "gradient", "update", "zeros"};

typedef struct state {
  const td_pane_host *host;
  int32_t id;
  td_list_view list;
  td_report_variables *report; // owned; NULL: none came yet
  int64_t *rows;           // those in sight, in order; owned
  int64_t row_count;
  past *pasts;             // owned
  int past_count;
  bool all;                // Variables inside models too
  bool waiting;
  sorting sort;
  char *filter;
} state;

static void open_variables(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  s->host = host;
  s->id = first_id;
  s->all = true;
}

static void drop_report(state *s) {
  if (s->report) s->report->payload.release(&s->report->payload);
  s->report = NULL;
}

static void close_variables(void *self) {
  state *s = self;
  drop_report(s);
  for (int i = 0; i < s->past_count; i++) td_memory_free(s->pasts[i].path);
  td_memory_free(s->pasts);
  td_memory_free(s->rows);
  td_memory_free(s->filter);
}

// ---- which rows, in which order ----

static double key_of(const td_variable_row *row, sorting by) {
  switch (by) {
  case BY_BYTES: return (double)row->bytes;
  case BY_NORM: return row->norm;
  case BY_GRADIENT: return row->gradient_norm;
  case BY_UPDATE: return row->update_ratio;
  case BY_ZEROS: return row->zeros;
  default: return 0;
  }
}

static const td_variable_row *sorted_rows; // qsort has no argument of its own; the face has one thread
static sorting sorted_by;

static int by_key(const void *a, const void *b) {
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  double x = key_of(&sorted_rows[i], sorted_by), y = key_of(&sorted_rows[j], sorted_by);
  if (isnan(x) || isnan(y)) return isnan(x) == isnan(y) ? (i > j) - (i < j) : isnan(x) ? 1 : -1;
  return x == y ? (i > j) - (i < j) : x < y ? 1 : -1;
}

static void choose_rows(state *s) {
  s->row_count = 0;
  if (!s->report) return;
  int64_t *rows = td_memory_resize(s->rows, ((size_t)s->report->count + 1) * sizeof *rows);
  if (!rows) return;
  s->rows = rows;
  for (int64_t i = 0; i < s->report->count; i++) {
    const td_variable_row *row = &s->report->rows[i];
    if (row->depth > 0 && !s->all) continue;
    if (s->filter && !strstr(row->path, s->filter) && !strstr(row->type, s->filter)) continue;
    rows[s->row_count++] = i;
  }
  sorted_rows = s->report->rows;
  sorted_by = s->sort;
  if (s->sort != BY_NAME) qsort(rows, (size_t)s->row_count, sizeof *rows, by_key);
}

static past *past_of(state *s, const char *path, bool make) {
  for (int i = 0; i < s->past_count; i++)
    if (strcmp(s->pasts[i].path, path) == 0) return &s->pasts[i];
  if (!make || s->past_count == NAMES_MOST) return NULL;
  past *grown = td_memory_resize(s->pasts, ((size_t)s->past_count + 1) * sizeof *grown);
  if (!grown) return NULL;
  s->pasts = grown;
  past *p = &s->pasts[s->past_count];
  *p = (past){.path = td_memory_text(path)};
  if (!p->path) return NULL;
  s->past_count++;
  return p;
}

static void remember_norms(state *s) {
  for (int64_t i = 0; i < s->report->count; i++) {
    const td_variable_row *row = &s->report->rows[i];
    past *p = isnan(row->norm) ? NULL : past_of(s, row->path, true);
    if (!p) continue;
    if (p->count && p->norms[p->count - 1] == row->norm) continue; // nothing happened
    if (p->count == PAST) memmove(p->norms, p->norms + 1, (PAST - 1) * sizeof *p->norms);
    else p->count++;
    p->norms[p->count - 1] = row->norm;
  }
}

// ---- what comes in ----

static void ask(state *s) {
  if (!s->waiting) s->waiting = s->host->inquire(s->host->owner, td_report_variables_make, "", s->id);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (event->kind != TD_EVENT_ANSWER || (int32_t)event->id != s->id) return;
  s->waiting = false;
  if (!event->payload || event->payload->kind != TD_REPORT_VARIABLES) return;
  drop_report(s);
  s->report = (td_report_variables *)s->host->take_payload(s->host->owner);
  if (!s->report) return;
  remember_norms(s);
  choose_rows(s);
}

static void shown(void *self, bool visible) {
  if (visible) ask(self);
}

static void tick(void *self) { ask(self); }

// ---- keys ----

static void filtered(void *self, const char *line) {
  state *s = self;
  if (!line) return;
  td_memory_free(s->filter);
  s->filter = *line ? td_memory_text(line) : NULL;
  choose_rows(s);
}

static const td_variable_row *selected(const state *s) {
  return s->list.selected < s->row_count ? &s->report->rows[s->rows[s->list.selected]] : NULL;
}

static void searched(void *self, const char *line) {
  state *s = self;
  for (int64_t step = 1; line && *line && step <= s->row_count; step++) {
    int64_t row = (s->list.selected + step) % s->row_count;
    if (!strstr(s->report->rows[s->rows[row]].path, line)) continue;
    td_list_view_go(&s->list, row);
    return;
  }
}

static void show_value(state *s) { // the whole value, as a cell
  const td_variable_row *row = selected(s);
  if (row && row->depth == 0) s->host->run(s->host->owner, row->path);
  else if (row) s->host->say(s->host->owner, row->value);
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_VARIABLES_ALL: s->all = !s->all, choose_rows(s); return true;
  case TD_REQUEST_PANE_SORT: s->sort = (sorting)((s->sort + 1) % COLUMN_COUNT), choose_rows(s); return true;
  case TD_REQUEST_PANE_FILTER: s->host->ask(s->host->owner, "&", filtered, s); return true;
  case TD_REQUEST_PANE_SEARCH: s->host->ask(s->host->owner, "/", searched, s); return true;
  case TD_REQUEST_PANE_OPEN: show_value(s); return true;
  default: return td_list_view_request(&s->list, request);
  }
}

static void take_click(void *self, const td_key *key) {
  state *s = self;
  if (key->row >= 1) td_list_view_go(&s->list, s->list.top + key->row - 1);
}

// ---- drawing ----

static void number_print(char text[16], double value) {
  if (isnan(value)) *text = 0;
  else snprintf(text, 16, fabs(value) >= 1e4 || (value != 0 && fabs(value) < 1e-3) ? "%.1e" : "%.4g", value);
}

static void bytes_print(char text[16], int64_t bytes) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = (double)bytes;
  int unit = 0;
  while (value >= 1000 && unit < 4) value /= 1024, unit++;
  if (bytes < 0) *text = 0;
  else snprintf(text, 16, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

enum { SHAPE = 17, BYTES = 8, NUMBER = 8, SPARK = 8 };

// The columns that fit, the most telling first.
typedef struct table { int name, shape, bytes, norm, gradient, update, zeros, spark, value; } table; // where they begin; -1: not shown

static table place_columns(const state *s, int width) {
  table c = {0, -1, -1, -1, -1, -1, -1, -1, -1};
  int longest = 8;
  for (int64_t i = 0; i < s->row_count; i++) {
    const td_variable_row *row = &s->report->rows[s->rows[i]];
    int length = (int)strlen(row->path);
    if (length > longest) longest = length;
  }
  int most = width * 3 / 10, name = longest < most ? longest : most;
  if (name < 10) name = 10;
  int at = name + 1;
  int *const wanted[] = {&c.shape, &c.norm, &c.gradient, &c.spark, &c.update, &c.zeros, &c.bytes};
  static const int widths[] = {SHAPE, NUMBER, NUMBER, SPARK, NUMBER, NUMBER, BYTES};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    if (at + widths[i] > width) break;
    *wanted[i] = at;
    at += widths[i] + 1;
  }
  if (width - at > 10) c.value = at;
  return c;
}

static void put(td_surface *surface, td_rect area, int row, int column, int columns, td_style style, const char *text) {
  if (column < 0 || column >= area.columns) return;
  if (columns > area.columns - column) columns = area.columns - column;
  td_surface_text(surface, area.row + row, area.column + column, columns, text, strlen(text), style);
}

// The end of a path tells more than its beginning.
static const char *path_end(const char *path, int columns) {
  size_t length = strlen(path);
  while (length > (size_t)columns) {
    path += td_show_character(path, length, 0).size;
    length = strlen(path);
  }
  return path;
}

static void draw_spark(const state *s, td_surface *surface, td_rect area, int row, int column, const char *path) {
  past *p = past_of((state *)s, path, false);
  td_chart_cells cells;
  if (column < 0 || !p || p->count < 2 || !td_chart_cells_start(&cells, SPARK, 1)) return;
  td_sparkline(&cells, 0, 0, SPARK, p->norms, p->count, s->host->theme->glyphs, TD_CELL_CURVE);
  td_theme_chart(s->host->theme, surface, area.row + row, area.column + column, &cells);
  td_chart_cells_clear(&cells);
}

static void draw_row(const state *s, td_surface *surface, td_rect area, int at, const td_variable_row *row, table c,
                     bool is_selected) {
  char text[64], dims[96];
  bool bad = row->nans > 0 || row->infinities > 0;
  td_style style = td_theme_style(s->host->theme, bad ? TD_LOOK_FAILED : row->depth ? TD_LOOK_FAINT : TD_LOOK_TEXT);
  td_style plain = td_theme_style(s->host->theme, bad ? TD_LOOK_FAILED : TD_LOOK_TEXT);
  int room = c.shape > 0 ? c.shape - 1 : area.columns;
  const char *path = path_end(row->path, room);
  put(surface, area, at, c.name, room, style, path);
  if (path != row->path)
    td_surface_put(surface, area.row + at, area.column, td_theme_glyph(s->host->theme, TD_GLYPH_ELLIPSIS), style);
  snprintf(dims, sizeof dims, "%s%s", *row->dtype ? row->dtype : row->type, row->shape);
  put(surface, area, at, c.shape, SHAPE, plain, dims);
  bytes_print(text, row->bytes);
  put(surface, area, at, c.bytes, BYTES, plain, text);
  if (bad) snprintf(text, sizeof text, "%s!", row->nans > 0 ? "NaN" : "inf");
  else number_print(text, row->norm);
  put(surface, area, at, c.norm, NUMBER, plain, text);
  number_print(text, row->gradient_norm);
  put(surface, area, at, c.gradient, NUMBER, plain, text);
  number_print(text, row->update_ratio);
  put(surface, area, at, c.update, NUMBER, plain, text);
  if (isnan(row->zeros)) *text = 0;
  else snprintf(text, sizeof text, "%.0f%%", 100 * row->zeros);
  put(surface, area, at, c.zeros, NUMBER, plain, text);
  draw_spark(s, surface, area, at, c.spark, row->path);
  put(surface, area, at, c.value, area.columns, td_theme_style(s->host->theme, TD_LOOK_FAINT), row->value);
  if (is_selected)
    td_surface_restyle(surface, (td_rect){area.row + at, area.column, 1, area.columns}, (td_style){-1, -1, TD_REVERSE});
}

static void write_title(void *self, td_text *title) {
  const state *s = self;
  td_text_print(title, "variables: %lld", (long long)s->row_count);
  if (s->sort) td_text_print(title, " by %s", column_names[s->sort]);
  if (s->filter) td_text_print(title, " &%s", s->filter);
  if (s->report && !s->report->complete) td_text_add(title, " (not all)");
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  td_style head = td_theme_style(s->host->theme, TD_LOOK_HEADING);
  if (!s->row_count) {
    td_surface_print(surface, area.row + 1, area.column, area.columns, td_theme_style(s->host->theme, TD_LOOK_FAINT),
                     s->report ? "no name holds anything yet" : "looking");
    return;
  }
  table c = place_columns(s, area.columns);
  put(surface, area, 0, c.name, area.columns, head, "name");
  put(surface, area, 0, c.shape, SHAPE, head, "dtype, shape");
  put(surface, area, 0, c.bytes, BYTES, head, "bytes");
  put(surface, area, 0, c.norm, NUMBER, head, "norm");
  put(surface, area, 0, c.gradient, NUMBER, head, "gradient");
  put(surface, area, 0, c.update, NUMBER, head, "update");
  put(surface, area, 0, c.zeros, NUMBER, head, "zeros");
  put(surface, area, 0, c.spark, SPARK, head, "norms");
  put(surface, area, 0, c.value, area.columns, head, "value");
  td_list_view_fit(&s->list, s->row_count, area.rows - 1);
  for (int i = 0; i < area.rows - 1 && s->list.top + i < s->row_count; i++) {
    int64_t row = s->list.top + i;
    draw_row(s, surface, area, i + 1, &s->report->rows[s->rows[row]], c, focus && row == s->list.selected);
  }
}

const td_pane_type td_pane_variables = {.name = "variables", .context = TD_IN_VARIABLES,
  .toggle = TD_REQUEST_SHOW_VARIABLES, .state_size = sizeof(state), .open = open_variables, .close = close_variables,
  .event = take_event, .shown = shown, .tick = tick, .request = take_request, .click = take_click,
  .title = write_title, .draw = draw};
