// The session's names: what they hold, how large their values and gradients are, how much the last step changed them,
// and how their norms went; one of them with its whole value and histograms. The reports are asked for while the pane
// is in sight; what is kept here is their copies. Rows with NaN or infinities stand first.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/report_variables.h"
#include "repl/screen/finder.h"
#include "repl/screen/numbers.h"
#include "repl/screen/panes.h"

enum { PAST = 24, NAMES_MOST = 4096 };

typedef struct past { // of a path: its norms, the newest last
  char *path;
  double norms[PAST];
  int count;
} past;

typedef enum sorting { BY_NAME, BY_BYTES, BY_NORM, BY_GRADIENT, BY_UPDATE, BY_ZEROS, BY_DEAD, COLUMN_COUNT } sorting;
static const char *const column_names[] = {"name", "bytes", "norm", "gradient", "update", "zeros", "gradient zeros"};

typedef enum extent { NAMES, VARIABLES, SLOTS, EXTENT_COUNT } extent; // what is listed: each with those before it

typedef struct state {
  const td_pane_host *host;
  int32_t id;
  td_list_view list;
  td_report_variables *report; // owned; NULL: none came yet
  int64_t *rows;           // those in sight, in order; owned
  int64_t row_count;
  past *pasts;             // owned
  int past_count;
  extent extent;
  td_report_variable *value; // owned; of the selected row, or NULL
  char *value_of;          // path that it was asked for; NULL: it isn't shown
  bool waiting;
  sorting sort;
  td_finder finder;
} state;

static void drop_value(state *s) {
  if (s->value) s->value->payload.release(&s->value->payload);
  s->value = NULL;
}

static void drop_report(state *s) {
  if (s->report) s->report->payload.release(&s->report->payload);
  s->report = NULL;
}

static void close_variables(void *self) {
  state *s = self;
  drop_report(s);
  drop_value(s);
  td_memory_free(s->value_of);
  for (int i = 0; i < s->past_count; i++) td_memory_free(s->pasts[i].path);
  td_memory_free(s->pasts);
  td_memory_free(s->rows);
  td_finder_clear(&s->finder);
}

// ---- which rows, in which order ----

static double key_of(const td_variable_row *row, sorting by) {
  switch (by) {
  case BY_BYTES: return (double)row->bytes;
  case BY_NORM: return row->norm;
  case BY_GRADIENT: return row->gradient_norm;
  case BY_UPDATE: return row->update_ratio;
  case BY_ZEROS: return row->zeros;
  case BY_DEAD: return row->gradient_zeros;
  default: return 0;
  }
}

static bool is_bad(const td_variable_row *row) { return row->nans > 0 || row->infinities > 0; }

static const td_variable_row *sorted_rows; // qsort has no argument of its own; the face has one thread
static sorting sorted_by;

static int by_key(const void *a, const void *b) {
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  if (is_bad(&sorted_rows[i]) != is_bad(&sorted_rows[j])) return is_bad(&sorted_rows[i]) ? -1 : 1;
  double x = key_of(&sorted_rows[i], sorted_by), y = key_of(&sorted_rows[j], sorted_by);
  if (isnan(x) || isnan(y)) return isnan(x) == isnan(y) ? (i > j) - (i < j) : isnan(x) ? 1 : -1;
  return x == y ? (i > j) - (i < j) : x < y ? 1 : -1;
}

static bool is_listed(const state *s, const td_variable_row *row) {
  if (row->depth > 0 && (s->extent == NAMES || (row->slot && s->extent != SLOTS))) return false;
  const char *filter = s->finder.filter;
  return !filter || strstr(row->path, filter) || strstr(row->type, filter);
}

static void choose_rows(state *s) {
  s->row_count = s->list.count = 0;
  if (!s->report) return;
  int64_t *rows = td_memory_resize(s->rows, ((size_t)s->report->count + 1) * sizeof *rows);
  if (!rows) return;
  s->rows = rows;
  for (int64_t i = 0; i < s->report->count; i++)
    if (is_listed(s, &s->report->rows[i])) rows[s->row_count++] = i;
  sorted_rows = s->report->rows;
  sorted_by = s->sort;
  qsort(rows, (size_t)s->row_count, sizeof *rows, by_key);
  s->list.count = s->row_count; // drawn or not, one can go to them
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

static const td_variable_row *selected(const state *s) {
  return s->report && s->list.selected < s->row_count ? &s->report->rows[s->rows[s->list.selected]] : NULL;
}

static void ask(state *s) {
  if (!s->waiting) s->waiting = s->host->inquire(s->host->owner, td_report_variables_make, "", s->id);
}

static void ask_value(state *s) {
  const td_variable_row *row = selected(s);
  if (!s->value_of || !row) return;
  if (strcmp(s->value_of, row->path) != 0) {
    drop_value(s);
    td_memory_free(s->value_of);
    s->value_of = td_memory_text(row->path);
  }
  s->host->inquire(s->host->owner, td_report_variable_make, row->path, s->id + 1);
}

static void take_value(state *s, const td_event *event) {
  if (!event->payload || event->payload->kind != TD_REPORT_VARIABLE) return;
  const td_report_variable *value = (const td_report_variable *)event->payload;
  if (!s->value_of || strcmp(value->path, s->value_of) != 0) return;
  drop_value(s);
  s->value = (td_report_variable *)s->host->take_payload(s->host->owner);
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (event->kind != TD_EVENT_ANSWER) return;
  if ((int32_t)event->id == s->id + 1) take_value(s, event);
  if ((int32_t)event->id != s->id) return;
  s->waiting = false;
  if (!event->payload || event->payload->kind != TD_REPORT_VARIABLES) return;
  drop_report(s);
  s->report = (td_report_variables *)s->host->take_payload(s->host->owner);
  if (s->report) remember_norms(s);
  choose_rows(s);
  ask_value(s);
}

static void shown(void *self, bool visible) {
  if (visible) ask(self);
}

static void tick(void *self) { ask(self); }

// ---- keys ----

static bool holds(const void *self, int64_t place, const char *text) {
  const state *s = self;
  return strstr(s->report->rows[s->rows[place]].path, text);
}

static void moved(void *self) { ask_value(self); }

static void filtered(void *self) {
  state *s = self;
  choose_rows(s);
  td_list_view_fit(&s->list, s->row_count, s->list.rows);
  ask_value(s);
}

static void open_variables(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  s->host = host;
  s->id = first_id;
  s->extent = VARIABLES;
  s->finder = (td_finder){host, s, &s->list, holds, moved, filtered, NULL, NULL};
}

static void show_value(state *s, bool shown) {
  drop_value(s);
  td_memory_free(s->value_of);
  s->value_of = shown && selected(s) ? td_memory_text(selected(s)->path) : NULL;
  ask_value(s);
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_VARIABLES_ALL: s->extent = (extent)((s->extent + 1) % EXTENT_COUNT), choose_rows(s); return true;
  case TD_REQUEST_PANE_SORT: s->sort = (sorting)((s->sort + 1) % COLUMN_COUNT), choose_rows(s); return true;
  case TD_REQUEST_PANE_OPEN: show_value(s, !s->value_of); return true;
  case TD_REQUEST_PANE_BACK: show_value(s, false); return true;
  default: return td_finder_request(&s->finder, request);
  }
}

static void take_click(void *self, const td_key *key) {
  state *s = self;
  if (key->row < 1 || key->row > s->list.rows) return;
  td_list_view_go(&s->list, s->list.top + key->row - 1);
  ask_value(s);
}

// ---- drawing ----

static void bytes_print(char text[16], int64_t bytes) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = (double)bytes;
  int unit = 0;
  while (value >= 1000 && unit < 4) value /= 1024, unit++;
  if (bytes < 0) *text = 0;
  else snprintf(text, 16, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

enum { SHAPE = 17, SHAPE_NARROW = 12, BYTES = 8, NUMBER = 7, PERCENT = 5, SPARK = 8, WIDE = 60 };

// The columns that fit, the most telling first.
typedef struct table {     // where they begin; -1: not shown
  int name, shape, bytes, norm, gradient, update, zeros, dead, spark, value, shape_columns;
} table;

// In little room float32, which most are, goes without saying.
static void shape_print(const td_variable_row *row, int width, char text[96]) {
  bool usual = width < WIDE && strcmp(row->dtype, "float32") == 0 && *row->shape;
  snprintf(text, 96, "%s%s", usual ? "" : *row->dtype ? row->dtype : row->type, row->shape);
}

enum { NAME_LEAST = 10, VALUE_LEAST = 11 };

typedef struct measures { int name, shape; bool gradient, update, dead; } measures; // of what the rows hold

static measures measure(const state *s, int width) {
  measures m = {.name = 8, .shape = 5};
  for (int64_t i = 0; i < s->row_count; i++) {
    const td_variable_row *row = &s->report->rows[s->rows[i]];
    char shape[96];
    shape_print(row, width, shape);
    int name = (int)strlen(row->path) + is_bad(row), columns = (int)strlen(shape);
    if (name > m.name) m.name = name;
    int most = width < WIDE ? SHAPE_NARROW : SHAPE;
    if (columns > m.shape) m.shape = columns < most ? columns : most;
    m.gradient = m.gradient || !isnan(row->gradient_norm);
    m.dead = m.dead || !isnan(row->gradient_zeros);
    m.update = m.update || !isnan(row->update_ratio);
  }
  return m;
}

// The columns that fit, those without anything left out; what they leave is the names' first, and then the values'.
static table place_columns(const state *s, int width) {
  measures m = measure(s, width);
  table c = {0, -1, -1, -1, -1, -1, -1, -1, -1, -1, m.shape};
  const struct { int *column, columns; bool wanted; } order[] = {
      {&c.shape, m.shape, true}, {&c.norm, NUMBER, true}, {&c.gradient, NUMBER + 1, m.gradient},
      {&c.update, NUMBER, m.update}, {&c.zeros, PERCENT, true}, {&c.spark, SPARK, s->past_count > 0},
      {&c.dead, PERCENT, m.dead}, {&c.bytes, BYTES, true}};
  int least = m.name < width * 3 / 10 ? m.name : width * 3 / 10, at = (least > NAME_LEAST ? least : NAME_LEAST) + 1;
  int *last = NULL;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    if (!order[i].wanted) continue;
    if (at + order[i].columns > width) break;
    *order[i].column = at;
    last = order[i].column;
    at += order[i].columns + 1;
  }
  int left = last ? width - at + 1 : 0, shift = m.name + 1 - c.shape < left ? m.name + 1 - c.shape : left;
  for (size_t i = 0; shift > 0 && i < sizeof order / sizeof *order; i++)
    if (*order[i].column >= 0) *order[i].column += shift;
  if (shift > 0) at += shift;
  if (width - at >= VALUE_LEAST) c.value = at;
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

static void percent_print(char text[16], double part) {
  if (isnan(part)) *text = 0;
  else snprintf(text, 16, "%.0f%%", 100 * part);
}

static void draw_row(const state *s, td_surface *surface, td_rect area, int at, const td_variable_row *row, table c,
                     bool is_selected) {
  char text[64], shape[96];
  bool bad = is_bad(row), dead = row->gradient_zeros >= 0.5;
  td_style style = td_theme_style(s->host->theme, bad ? TD_LOOK_FAILED : row->depth ? TD_LOOK_FAINT : TD_LOOK_TEXT);
  td_style plain = td_theme_style(s->host->theme, bad ? TD_LOOK_FAILED : TD_LOOK_TEXT);
  int room = (c.shape > 0 ? c.shape - 1 : area.columns) - bad;
  const char *path = path_end(row->path, room);
  if (bad) put(surface, area, at, c.name, 1, style, "!");
  put(surface, area, at, c.name + bad, room, style, path);
  if (path != row->path)
    td_surface_put(surface, area.row + at, area.column + bad, td_theme_glyph(s->host->theme, TD_GLYPH_ELLIPSIS), style);
  shape_print(row, area.columns, shape);
  put(surface, area, at, c.shape, c.shape_columns, plain, shape);
  bytes_print(text, row->bytes);
  put(surface, area, at, c.bytes, BYTES, plain, text);
  if (bad) snprintf(text, sizeof text, "%s!", row->nans > 0 ? "NaN" : "inf");
  else td_numbers_figure(text, row->norm);
  put(surface, area, at, c.norm, NUMBER, plain, text);
  (row->gradient_glanced ? td_numbers_rough : td_numbers_figure)(text, row->gradient_norm);
  put(surface, area, at, c.gradient, NUMBER, plain, text);
  td_numbers_figure(text, row->update_ratio);
  put(surface, area, at, c.update, NUMBER, plain, text);
  percent_print(text, row->zeros);
  put(surface, area, at, c.zeros, PERCENT, plain, text);
  percent_print(text, row->gradient_zeros);
  put(surface, area, at, c.dead, PERCENT, dead ? td_theme_style(s->host->theme, TD_LOOK_WARNING) : plain, text);
  draw_spark(s, surface, area, at, c.spark, row->path);
  put(surface, area, at, c.value, area.columns, td_theme_style(s->host->theme, TD_LOOK_FAINT), row->value);
  if (is_selected)
    td_surface_restyle(surface, (td_rect){area.row + at, area.column, 1, area.columns}, (td_style){-1, -1, TD_REVERSE});
}

static void write_title(void *self, td_text *title) {
  const state *s = self;
  static const char *const extents[] = {", names only", "", ", all with the optimizers'"};
  td_text_print(title, "variables: %lld%s", (long long)s->row_count, extents[s->extent]);
  if (s->sort) td_text_print(title, " by %s", column_names[s->sort]);
  if (s->finder.filter) td_text_print(title, " &%s", s->finder.filter);
  if (s->report && !s->report->complete) td_text_add(title, " (not all)");
}

static void draw_head(td_surface *surface, td_rect area, const table *c, td_style style) {
  put(surface, area, 0, c->name, area.columns, style, "name");
  put(surface, area, 0, c->shape, c->shape_columns, style, "shape");
  put(surface, area, 0, c->bytes, BYTES, style, "bytes");
  put(surface, area, 0, c->norm, NUMBER, style, "norm");
  put(surface, area, 0, c->gradient, NUMBER + 1, style, "gradient");
  put(surface, area, 0, c->update, NUMBER, style, "update");
  put(surface, area, 0, c->zeros, PERCENT, style, "zeros");
  put(surface, area, 0, c->dead, PERCENT, style, "dead");
  put(surface, area, 0, c->spark, SPARK, style, "norms");
  put(surface, area, 0, c->value, area.columns, style, "value");
}

// The whole value, and beneath it, if there is one, the gradient; each with its histogram.
static void draw_value(const state *s, td_surface *surface, td_rect area) {
  const td_report_variable *v = s->value;
  const td_theme *theme = s->host->theme;
  td_style plain = td_theme_style(theme, TD_LOOK_TEXT);
  td_surface_fill(surface, (td_rect){area.row, area.column, 1, area.columns},
                  td_theme_glyph(theme, TD_GLYPH_HORIZONTAL), td_theme_style(theme, TD_LOOK_FRAME));
  if (!v) return;
  int parts = (v->values.elements > 0) + (v->gradients.elements > 0), row = 1;
  int lines = area.rows - 2 - parts * TD_NUMBERS_ROWS - (v->dead > 0);
  td_surface_print(surface, area.row + row++, area.column, area.columns, td_theme_style(theme, TD_LOOK_HEADING),
                   "%s  %s", v->path, v->type);
  row = td_lines_draw(surface, area, row, lines > 1 ? (parts > 1 ? lines / 2 : lines) : 1, v->value, plain);
  row = td_numbers_draw(theme, surface, area, row, "values", &v->values);
  if (v->dead > 0 && row < area.rows)
    td_surface_print(surface, area.row + row++, area.column, area.columns, td_theme_style(theme, TD_LOOK_WARNING),
                     "dead: %lld of %lld units get no gradient", (long long)v->dead, (long long)v->units);
  row = td_numbers_draw(theme, surface, area, row, "gradient", &v->gradients);
  td_lines_draw(surface, area, row, area.rows, v->gradient, plain);
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  if (!s->row_count) {
    td_surface_print(surface, area.row + 1, area.column, area.columns, td_theme_style(s->host->theme, TD_LOOK_FAINT),
                     s->report ? "no name holds anything yet" : "looking");
    return;
  }
  int detail = s->value_of && area.rows >= 9 ? area.rows * 2 / 3 : 0, rows = area.rows - detail;
  table c = place_columns(s, area.columns);
  draw_head(surface, area, &c, td_theme_style(s->host->theme, TD_LOOK_HEADING));
  td_list_view_fit(&s->list, s->row_count, rows - 1);
  for (int i = 0; i < rows - 1 && s->list.top + i < s->row_count; i++) {
    int64_t row = s->list.top + i;
    draw_row(s, surface, area, i + 1, &s->report->rows[s->rows[row]], c, (focus || detail) && row == s->list.selected);
  }
  if (detail) draw_value(s, surface, (td_rect){area.row + rows, area.column, detail, area.columns});
}

const td_pane_type td_pane_variables = {.name = "variables", .context = TD_IN_VARIABLES,
  .toggle = TD_REQUEST_SHOW_VARIABLES, .state_size = sizeof(state), .open = open_variables, .close = close_variables,
  .event = take_event, .shown = shown, .tick = tick, .request = take_request, .click = take_click,
  .title = write_title, .draw = draw};
