// Curves as they grow: what plot() and fit log, and past runs laid over them. Curves of one kind share a chart: loss,
// val_loss and runs/a:loss. As many charts as there is room for stand one under the other; ] picks one alone.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/picture_curves.h"
#include "repl/screen/numbers.h"
#include "repl/screen/panes.h"

enum { CHART_ROWS = 9, LEGEND_MOST = 3, PLOT_LEAST = 4, CHARTS_MOST = 16, PICTURE_WIDTH = 800, PICTURE_HEIGHT = 500 };
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
  struct { td_chart_view view; td_rect area; } charts[CHARTS_MOST]; // that are drawn
  int shown;
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
  if (curve && event->cell == s->cell && event->cell && !event->final) bring_forward(s, curve);
  if (event->final && curve) drop_curve(s, curve); // a run that was taken away
  for (int64_t i = 0; curve && !event->final && i < event->done; i++)
    td_curve_add(curve, event->points[i].step, event->points[i].value);
}

// ---- charts: curves of one kind ----

static bool same_kind(const td_curve *a, const td_curve *b) { return td_curve_same_kind(a->name, b->name); }

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

// Of more curves than a chart has room for, the newest: those of the newest cell, then those that came last.
// *left_out: how many others there are.
static int chart_curves(const state *s, int chart, const td_curve *out[TD_CHART_CURVES], int *left_out) {
  int first = 0, all = 0, older = 0, count = 0;
  while (first < s->count && !(is_first_of_kind(s, first) && chart-- == 0)) first++;
  for (int i = first; i < s->count; i++)
    if (same_kind(s->curves[i], s->curves[first])) all++, older += i >= s->fresh;
  *left_out = all > TD_CHART_CURVES ? all - TD_CHART_CURVES : 0;
  int older_left_out = *left_out < older ? *left_out : older, fresh_left_out = *left_out - older_left_out;
  for (int i = first; i < s->count && count < TD_CHART_CURVES; i++) {
    if (!same_kind(s->curves[i], s->curves[first])) continue;
    if (i >= s->fresh ? older_left_out-- > 0 : fresh_left_out-- > 0) continue;
    out[count++] = s->curves[i];
  }
  return count;
}

// Where past runs are laid over, all curves of a run have one colour, and those of this session another.
static size_t run_length(const td_curve *curve) {
  const char *colon = strrchr(curve->name, ':');
  return colon ? (size_t)(colon - curve->name) : 0;
}

static bool same_run(const td_curve *a, const td_curve *b) {
  return run_length(a) == run_length(b) && memcmp(a->name, b->name, run_length(a)) == 0;
}

static uint8_t colour_of_run(const state *s, const td_curve *curve) {
  uint8_t colour = 1;
  if (!run_length(curve)) return 0;
  for (int i = 0; i < s->count && !same_run(s->curves[i], curve); i++) {
    bool first = run_length(s->curves[i]) > 0;
    for (int j = 0; j < i && first; j++) first = !same_run(s->curves[j], s->curves[i]);
    colour += first;
  }
  return (uint8_t)(colour < TD_CHART_CURVES ? colour : 1 + (colour - 1) % (TD_CHART_CURVES - 1));
}

static void choose_colours(const state *s, const td_curve *const *curves, int count, uint8_t colours[TD_CHART_CURVES]) {
  bool overlaid = false;
  for (int i = 0; i < count; i++) overlaid = overlaid || run_length(curves[i]);
  for (int i = 0; i < count; i++) colours[i] = overlaid ? colour_of_run(s, curves[i]) : (uint8_t)i;
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
  if (s->cursor_at < 0 || s->cursor_at > 1)
    s->middle = clamp(s->middle + part * s->zoom / 8, s->zoom / 2, 1 - s->zoom / 2);
  s->cursor_at = clamp(s->cursor_at, 0, 1);
}

static void pick(state *s, int by) {
  int charts = chart_count(s);
  s->pick += by;
  if (s->pick >= charts) s->pick = -1;
  if (s->pick < -1) s->pick = charts - 1;
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

// What part of the steps is in sight; false: there is none.
static bool cut_steps(const state *s, const td_curve *const *curves, int count, bool *is_cut, int64_t *low,
                      int64_t *high) {
  int64_t from, to;
  steps_of(curves, count, &from, &to);
  double span = (double)to - (double)from;
  *low = from;
  *high = to;
  *is_cut = s->zoom < 1 && to > from;
  if (!*is_cut) return to >= from;
  *low = from + (int64_t)(span * (s->middle - s->zoom / 2));
  *high = from + (int64_t)ceil(span * (s->middle + s->zoom / 2));
  return true;
}

// ---- as a picture ----

static bool draw_picture(const state *s, int chart, td_pixels *pixels) { // false: no memory
  const td_curve *curves[TD_CHART_CURVES];
  int left_out, count = chart_curves(s, chart, curves, &left_out);
  td_raster raster = {0};
  td_picture_options options = {.width = PICTURE_WIDTH, .height = PICTURE_HEIGHT, .scale = 1, .steps_label = "step",
                                .legend = true,
                                .theme = td_picture_theme_find(s->host->theme->light ? "light" : "dark"),
                                .logarithmic = s->logarithmic, .smoothing = smoothings[s->smoothing],
                                .range = {.low = NAN, .high = NAN}};
  cut_steps(s, curves, count, &options.range.is_cut, &options.range.first, &options.range.last);
  bool ok = td_picture_curves(&raster, curves, count, &options);
  *pixels = (td_pixels){raster.width, raster.height,
                        ok ? td_memory_new((size_t)raster.width * (size_t)raster.height * 3) : NULL};
  if (pixels->rgb) td_raster_bytes(&raster, pixels->rgb);
  td_raster_clear(&raster);
  return pixels->rgb;
}

static bool save_chart(const state *s, int chart, td_text *message) { // beside the deck, named after it and the curve
  const td_curve *curves[TD_CHART_CURVES];
  size_t length;
  int left_out;
  if (!chart_curves(s, chart, curves, &left_out)) return false;
  const char *kind = td_curve_kind(curves[0]->name, &length);
  td_text name = {0}, path = {0};
  td_pixels pixels = {0};
  for (size_t i = 0; i < length; i++) td_text_add_char(&name, kind[i] == '/' ? '-' : kind[i]);
  td_text_add(&name, ".png");
  if (name.data) s->host->beside(s->host->owner, name.data, &path);
  bool ok = path.data && draw_picture(s, chart, &pixels);
  if (!ok) td_text_add(message, "no memory for the picture");
  else ok = td_pixels_save(&pixels, path.data, message);
  td_pixels_clear(&pixels);
  td_text_clear(&name);
  td_text_clear(&path);
  return ok;
}

static void save(state *s) { // the chart that is shown alone, else each
  td_text message = {0};
  int first = s->pick >= 0 ? s->pick : 0, end = s->pick >= 0 ? s->pick + 1 : chart_count(s);
  for (int chart = first; chart < end; chart++) {
    if (chart > first) td_text_add(&message, "; ");
    if (!save_chart(s, chart, &message)) break;
  }
  s->host->say(s->host->owner, message.length ? message.data : "no curve yet");
  td_text_clear(&message);
}

// All words are curves of this session: the chart of the first comes alone.
static bool find(void *self, const char *names) {
  state *s = self;
  const char *first = NULL;
  for (const char *at = names; *at; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    int i = 0;
    while (i < s->count && !(strlen(s->curves[i]->name) == length && memcmp(s->curves[i]->name, at, length) == 0)) i++;
    if (i == s->count) return false;
    if (!first) first = s->curves[i]->name;
    at += length;
  }
  if (!first) return false;
  const td_curve *wanted = find_curve(s, first, false);
  s->pick = -1;
  for (int i = 0; i < s->count; i++) {
    s->pick += is_first_of_kind(s, i);
    if (same_kind(s->curves[i], wanted)) return true;
  }
  return true;
}

static bool take_request(void *self, enum td_request request) {
  state *s = self;
  switch (request) {
  case TD_REQUEST_CURVES_LOG: s->logarithmic = !s->logarithmic; break;
  case TD_REQUEST_CURVES_SMOOTH:
    s->smoothing = (s->smoothing + 1) % (int)(sizeof smoothings / sizeof *smoothings);
    break;
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
  for (int i = 0; i < s->shown; i++) {
    const td_chart_view *view = &s->charts[i].view;
    td_rect area = s->charts[i].area; // from the pane's corner
    if (view->columns < 2 || key->row < area.row || key->row >= area.row + area.rows) continue;
    s->cursor = true;
    s->cursor_at = clamp((double)(key->column - view->left) / (view->columns - 1), 0, 1);
  }
}

// ---- drawing ----

static void write_title(void *self, td_text *title) {
  const state *s = self;
  td_text_add(title, "curves");
  if (s->logarithmic) td_text_add(title, ", log");
  if (s->smoothing) td_text_print(title, ", %s", smoothing_names[s->smoothing]);
  if (s->zoom < 1) td_text_print(title, ", %.3g%% of the steps", 100 * s->zoom);
}

static void draw_legend(const state *s, td_surface *surface, td_rect area, const td_curve *const *curves, int count,
                        const td_chart_options *options) {
  for (int i = 0; i < count && i < area.rows; i++) {
    td_text line = {0};
    char mark = td_chart_mark(options->glyphs, i);
    td_text_print(&line, "%c ", mark == ' ' ? '-' : mark);
    td_chart_legend(&line, curves[i], options, area.columns - 2);
    td_style style = td_theme_style(s->host->theme, (enum td_look)(TD_LOOK_CURVE_1 + options->colours[i] % 6));
    if (line.data) td_surface_text(surface, area.row + i, area.column, area.columns, line.data, line.length, style);
    td_text_clear(&line);
  }
}

static void draw_notes(const state *s, td_surface *surface, td_rect area, const td_chart_view *view,
                       const td_chart_options *options, int left_out) {
  td_text notes = {0};
  td_chart_notes(&notes, view, options);
  if (left_out) td_text_print(&notes, "%s%d older not drawn", notes.length ? "  " : "", left_out);
  if (notes.length && area.rows > 0)
    td_surface_text(surface, area.row, area.column, area.columns, notes.data, strcspn(notes.data, "\n"),
                    td_theme_style(s->host->theme, view->nans ? TD_LOOK_FAILED : TD_LOOK_WARNING));
  td_text_clear(&notes);
}

// A line for each curve where there is room, and with a cursor for all of them before the plot is large.
static int legend_rows(const state *s, int count, int rows) {
  int most = s->cursor ? count : LEGEND_MOST, room = rows - PLOT_LEAST - 1;
  int legend = count < most ? count : most;
  return legend < room ? legend : room > 1 ? room : 1;
}

static void draw_chart(state *s, int chart, td_surface *surface, td_rect area, td_chart_view *view) {
  const td_curve *curves[TD_CHART_CURVES];
  uint8_t colours[TD_CHART_CURVES];
  int left_out, count = chart_curves(s, chart, curves, &left_out);
  int legend = legend_rows(s, count, area.rows), rows = area.rows - legend - (area.rows > legend + 3);
  int64_t low = 0, high = 0;
  td_chart_options options = {.glyphs = s->host->theme->glyphs, .colours = colours, .logarithmic = s->logarithmic,
                              .guides = true, .smoothing = smoothings[s->smoothing]};
  choose_colours(s, curves, count, colours);
  if (cut_steps(s, curves, count, &options.is_cut, &low, &high)) {
    options.first = low;
    options.last = high;
    options.has_cursor = s->cursor;
    options.cursor = low + (int64_t)llround(s->cursor_at * ((double)high - (double)low));
  }
  td_chart_cells cells;
  if (rows < 1 || !td_chart_cells_start(&cells, area.columns, rows)) return;
  td_chart_draw(&cells, curves, count, &options, view);
  td_theme_chart(s->host->theme, surface, area.row, area.column, &cells);
  td_chart_cells_clear(&cells);
  draw_legend(s, surface, (td_rect){area.row + rows, area.column, legend, area.columns}, curves, count, &options);
  draw_notes(s, surface, (td_rect){area.row + rows + legend, area.column, area.rows - rows - legend, area.columns},
             view, &options, left_out);
}

static void draw(void *self, td_surface *surface, td_rect area, bool focus) {
  state *s = self;
  (void)focus;
  int charts = chart_count(s);
  td_style faint = td_theme_style(s->host->theme, TD_LOOK_FAINT);
  if (!charts) {
    td_words_draw(surface, area, 1, "no curve yet\nplot(\"loss\", value) adds a point; fit logs by itself", faint);
    return;
  }
  if (s->pick >= charts) s->pick = -1;
  int room = area.rows / CHART_ROWS > 1 ? area.rows / CHART_ROWS : 1;
  int shown = s->pick >= 0 ? 1 : charts < room ? charts : room;
  if (s->first_top > charts - shown) s->first_top = charts - shown;
  int first = s->pick >= 0 ? s->pick : s->first_top;
  s->shown = shown < CHARTS_MOST ? shown : CHARTS_MOST;
  for (int i = 0; i < s->shown; i++) {
    int top = area.rows * i / s->shown, bottom = area.rows * (i + 1) / s->shown;
    s->charts[i].view = (td_chart_view){0};
    s->charts[i].area = (td_rect){top, 0, bottom - top, area.columns};
    draw_chart(s, first + i, surface, (td_rect){area.row + top, area.column, bottom - top, area.columns},
               &s->charts[i].view);
  }
  if (s->pick < 0 && charts > shown)
    td_surface_print(surface, area.row + area.rows - 1, area.column + area.columns - 12, 12, faint, "%d more: j k",
                     charts - shown);
}

const td_pane_type td_pane_curves = {.name = "curves", .context = TD_IN_CURVES, .toggle = TD_REQUEST_SHOW_CURVES,
  .state_size = sizeof(state), .open = open_curves, .close = close_curves, .event = take_event, .request = take_request,
  .click = take_click, .find = find, .title = write_title, .draw = draw};
