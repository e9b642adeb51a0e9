// Curves as they grow: what plot() and fit log, and past runs laid over them. Curves of one kind share a chart: loss,
// val_loss and runs/a:loss. As many charts as there is room for stand one under the other; ] picks one alone.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/notebook/chart.h"
#include "repl/screen/panes.h"

enum { CHART_ROWS = 9, LEGEND_MOST = 3 };
static const double smoothings[] = {0, 0.6, 0.9, 0.98};
static const char *const smoothing_names[] = {"", "light smoothing", "smoothing", "strong smoothing"};

typedef struct state {
  const td_pane_host *host;
  td_curve **curves;       // owned; those of the newest cell that logs first, else in the order of their first points
  int count, capacity;
  int fresh;               // how many of them the newest cell has logged
  int cell;                // the newest that logs
  int pick;                // chart that is shown alone; -1: all
  bool logarithmic;
  int smoothing;
  double zoom;             // part of all steps that is shown; 1: all
  double middle;           // of that part, from 0 to 1
  bool cursor;
  double cursor_at;        // from 0 to 1 of the steps in sight
  td_chart_view view;      // of the chart drawn first
  int first_top;           // chart that stands first
} state;

static void open_curves(void *self, const td_pane_host *host, int32_t first_id) {
  state *s = self;
  (void)first_id;
  s->host = host;
  s->pick = -1;
  s->zoom = 1;
  s->middle = 1;
}

static void close_curves(void *self) {
  state *s = self;
  for (int i = 0; i < s->count; i++) td_curve_free(s->curves[i]);
  td_memory_free(s->curves);
}

// ---- what comes in ----

static td_curve *find_curve(state *s, const char *name, bool make) {
  for (int i = 0; i < s->count; i++)
    if (strcmp(s->curves[i]->name, name) == 0) return s->curves[i];
  if (!make) return NULL;
  if (s->count == s->capacity) {
    int capacity = s->capacity ? 2 * s->capacity : 16;
    td_curve **grown = td_memory_resize(s->curves, (size_t)capacity * sizeof *grown);
    if (!grown) return NULL;
    s->curves = grown;
    s->capacity = capacity;
  }
  td_curve *curve = td_curve_new(name);
  if (curve) s->curves[s->count++] = curve;
  return curve;
}

static void drop_curve(state *s, const td_curve *curve) {
  for (int i = 0; i < s->count; i++)
    if (s->curves[i] == curve) {
      td_curve_free(s->curves[i]);
      if (i < s->fresh) s->fresh--;
      memmove(&s->curves[i], &s->curves[i + 1], (size_t)(--s->count - i) * sizeof *s->curves);
      return;
    }
}

static void bring_forward(state *s, td_curve *curve) {
  int at = 0;
  while (s->curves[at] != curve) at++;
  if (at < s->fresh) return;
  memmove(&s->curves[s->fresh + 1], &s->curves[s->fresh], (size_t)(at - s->fresh) * sizeof *s->curves);
  s->curves[s->fresh++] = curve;
}

static void take_event(void *self, const td_event *event) {
  state *s = self;
  if (event->kind != TD_EVENT_METRIC) return;
  td_curve *curve = find_curve(s, event->text, !event->final);
  if (curve && event->cell > s->cell) {
    s->cell = event->cell;
    s->fresh = 0;
    s->first_top = 0;
  }
  if (curve && event->cell == s->cell && !event->final) bring_forward(s, curve);
  if (event->final && curve) drop_curve(s, curve); // a run that was taken away
  for (int64_t i = 0; curve && !event->final && i < event->done; i++)
    td_curve_add(curve, event->points[i].step, event->points[i].value);
}

// ---- charts: curves of one kind ----

static const char *kind_of(const char *name, size_t *length) {
  const char *colon = strrchr(name, ':');
  if (colon) name = colon + 1;
  if (strncmp(name, "val_", 4) == 0) name += 4;
  else if (strncmp(name, "val/", 4) == 0) name += 4;
  else if (strncmp(name, "train/", 6) == 0) name += 6;
  *length = strlen(name);
  return name;
}

static bool same_kind(const td_curve *a, const td_curve *b) {
  size_t m, n;
  const char *x = kind_of(a->name, &m), *y = kind_of(b->name, &n);
  return m == n && memcmp(x, y, m) == 0;
}

static bool is_first_of_kind(const state *s, int index) {
  for (int i = 0; i < index; i++)
    if (same_kind(s->curves[i], s->curves[index])) return false;
  return true;
}

static int chart_count(const state *s) {
  int charts = 0;
  for (int i = 0; i < s->count; i++) charts += is_first_of_kind(s, i);
  return charts;
}

static int chart_curves(const state *s, int chart, const td_curve *out[TD_CHART_CURVES]) {
  int count = 0;
  for (int i = 0; i < s->count; i++) {
    if (!is_first_of_kind(s, i) || chart-- != 0) continue;
    for (int j = i; j < s->count && count < TD_CHART_CURVES; j++)
      if (same_kind(s->curves[j], s->curves[i])) out[count++] = s->curves[j];
  }
  return count;
}

// ---- keys ----

static double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

static void zoom_by(state *s, double factor) {
  if (s->cursor) s->middle = s->middle - s->zoom / 2 + s->zoom * s->cursor_at;
  s->zoom = clamp(s->zoom * factor, 1e-4, 1);
  s->middle = clamp(s->middle, s->zoom / 2, 1 - s->zoom / 2);
  if (s->zoom >= 1) s->middle = 1;
}

static void move_by(state *s, double part) {
  if (s->zoom < 1 && !s->cursor) {
    s->middle = clamp(s->middle + part * s->zoom, s->zoom / 2, 1 - s->zoom / 2);
    return;
  }
  s->cursor_at = s->cursor ? s->cursor_at + part / 8 : part < 0 ? 1 : 0;
  s->cursor = true;
  if (s->cursor_at < 0 || s->cursor_at > 1) s->middle = clamp(s->middle + part * s->zoom / 8, s->zoom / 2, 1 - s->zoom / 2);
  s->cursor_at = clamp(s->cursor_at, 0, 1);
}

static void pick(state *s, int by) {
  int charts = chart_count(s);
  s->pick += by;
  if (s->pick >= charts) s->pick = -1;
  if (s->pick < -1) s->pick = charts - 1;
}

static void save(state *s) {
  td_text line = {0};
  td_text_print(&line, "plot_save(\"curves.png\"");
  const td_curve *curves[TD_CHART_CURVES];
  int count = s->pick >= 0 ? chart_curves(s, s->pick, curves) : 0;
  for (int i = 0; i < count; i++) td_text_print(&line, ", \"%s\"", curves[i]->name);
  td_text_print(&line, "%s)", s->logarithmic ? ", log=True" : "");
  if (line.data) s->host->run(s->host->owner, line.data);
  td_text_clear(&line);
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_CURVES_LOG: s->logarithmic = !s->logarithmic; break;
  case TD_REQUEST_CURVES_SMOOTH: s->smoothing = (s->smoothing + 1) % (int)(sizeof smoothings / sizeof *smoothings); break;
  case TD_REQUEST_CURVES_IN: zoom_by(s, 0.5); break;
  case TD_REQUEST_CURVES_OUT: zoom_by(s, 2); break;
  case TD_REQUEST_CURVES_ALL: s->zoom = s->middle = 1, s->cursor = false, s->pick = -1; break;
  case TD_REQUEST_CURVES_PICK: pick(s, 1); break;
  case TD_REQUEST_CURVES_PICK_BACK: pick(s, -1); break;
  case TD_REQUEST_CURVES_SAVE: save(s); break;
  case TD_REQUEST_PANE_LEFT: move_by(s, -0.25); break;
  case TD_REQUEST_PANE_RIGHT: move_by(s, 0.25); break;
  case TD_REQUEST_PANE_UP: if (s->first_top > 0) s->first_top--; break;
  case TD_REQUEST_PANE_DOWN: s->first_top++; break;
  case TD_REQUEST_PANE_BACK: s->cursor = false; break;
  default: return false;
  }
  return true;
}

static void take_click(void *self, const td_key *key) {
  state *s = self;
  if (s->view.columns < 2) return;
  s->cursor = true;
  s->cursor_at = clamp((double)(key->column - s->view.left) / (s->view.columns - 1), 0, 1);
}

// ---- drawing ----

static void write_title(void *self, td_text *title) {
  const state *s = self;
  td_text_add(title, "curves");
  if (s->logarithmic) td_text_add(title, ", log");
  if (s->smoothing) td_text_print(title, ", %s", smoothing_names[s->smoothing]);
  if (s->zoom < 1) td_text_print(title, ", %.3g%% of the steps", 100 * s->zoom);
}

static void steps_of(const td_curve *const *curves, int count, int64_t *first, int64_t *last) {
  *first = INT64_MAX;
  *last = INT64_MIN;
  for (int i = 0; i < count; i++) {
    if (!curves[i]->bin_count) continue;
    if (curves[i]->bins[0].first < *first) *first = curves[i]->bins[0].first;
    if (curves[i]->last.step > *last) *last = curves[i]->last.step;
  }
}

static void draw_chart(state *s, int chart, td_surface *surface, td_rect area, bool first) {
  const td_curve *curves[TD_CHART_CURVES];
  int count = chart_curves(s, chart, curves);
  int legend = count < LEGEND_MOST ? count : LEGEND_MOST, rows = area.rows - legend - 1;
  if (rows < 3) {
    legend = 1;
    rows = area.rows - 1;
  }
  int64_t from, to;
  steps_of(curves, count, &from, &to);
  td_chart_options options = {.glyphs = s->host->theme->glyphs, .logarithmic = s->logarithmic, .guides = true,
                              .smoothing = smoothings[s->smoothing]};
  double span = (double)to - (double)from;
  int64_t low = from, high = to;
  if (s->zoom < 1 && to > from) {
    options.is_cut = true;
    options.first = low = from + (int64_t)(span * (s->middle - s->zoom / 2));
    options.last = high = from + (int64_t)ceil(span * (s->middle + s->zoom / 2));
  }
  options.has_cursor = s->cursor;
  options.cursor = low + (int64_t)llround(s->cursor_at * (double)(high - low));
  td_chart_cells cells;
  td_chart_view view = {0};
  if (rows < 1 || !td_chart_cells_start(&cells, area.columns, rows)) return;
  td_chart_draw(&cells, curves, count, &options, &view);
  td_theme_chart(s->host->theme, surface, area.row, area.column, &cells);
  td_chart_cells_clear(&cells);
  if (first) {
    s->view = view;
    s->view.left = view.left;
  }
  for (int i = 0; i < legend && rows + i < area.rows; i++) {
    td_text line = {0};
    char mark = td_chart_mark(options.glyphs, i);
    td_text_print(&line, "%c ", mark == ' ' ? '-' : mark);
    td_chart_legend(&line, curves[i], &options);
    td_style style = td_theme_style(s->host->theme, (enum td_look)(TD_LOOK_CURVE_1 + i % 6));
    if (line.data) td_surface_text(surface, area.row + rows + i, area.column, area.columns, line.data, line.length, style);
    td_text_clear(&line);
  }
  td_text notes = {0};
  td_chart_notes(&notes, &view, &options);
  if (notes.length && rows + legend < area.rows)
    td_surface_text(surface, area.row + rows + legend, area.column, area.columns, notes.data,
                    strcspn(notes.data, "\n"), td_theme_style(s->host->theme, TD_LOOK_FAILED));
  td_text_clear(&notes);
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  (void)focus;
  int charts = chart_count(s);
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  if (!charts) {
    td_surface_print(surface, area.row + 1, area.column, area.columns, faint, "no curve yet");
    td_surface_print(surface, area.row + 2, area.column, area.columns, faint, "plot(\"loss\", value) adds a point; fit logs by itself");
    return;
  }
  if (s->pick >= charts) s->pick = -1;
  int room = area.rows / CHART_ROWS > 1 ? area.rows / CHART_ROWS : 1;
  int shown = s->pick >= 0 ? 1 : charts < room ? charts : room;
  if (s->first_top > charts - shown) s->first_top = charts - shown;
  int first = s->pick >= 0 ? s->pick : s->first_top;
  for (int i = 0; i < shown; i++) {
    int top = area.rows * i / shown, bottom = area.rows * (i + 1) / shown;
    draw_chart(s, first + i, surface, (td_rect){area.row + top, area.column, bottom - top, area.columns}, i == 0);
  }
  if (s->pick < 0 && charts > shown)
    td_surface_print(surface, area.row + area.rows - 1, area.column + area.columns - 12, 12, faint, "%d more: j k", charts - shown);
}

const td_pane_type td_pane_curves = {.name = "curves", .context = TD_IN_CURVES, .toggle = TD_REQUEST_SHOW_CURVES,
  .state_size = sizeof(state), .open = open_curves, .close = close_curves, .event = take_event, .request = take_request,
  .click = take_click, .title = write_title, .draw = draw};
