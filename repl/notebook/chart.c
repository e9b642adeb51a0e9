// See chart.h. Everything is drawn as dots, 2 by 4 in a cell, whatever the glyphs: the coarser sets show the same dots,
// several as one. What is drawn later covers a cell's fainter layer, so a smoothed line stays clear of its points.
#include "repl/notebook/chart.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"

enum { ACROSS = 2, DOWN = 4 }; // dots in a cell
enum { MARK_DISTANCE = 6 }; // columns between a curve's marks, at least
enum { LABEL_COLUMNS = 9 }; // of steps: so many ticks have room
static const char marks[] = "*xo+#@";

typedef struct layers { // of a cell
  uint8_t faint, dots; // points under a smoothed line; lines
  uint8_t owner; // the curve that was drawn last
  char mark; // a curve's, or what stands for values that are not there; 0: none
  uint8_t mark_colour;
} layers;

typedef struct chart {
  const td_chart_options *options;
  td_chart_cells *cells;
  td_chart_view view;
  td_series series[TD_CHART_CURVES];
  int count;
  layers *area; // view.columns * view.rows
  bool *nans; // view.columns
} chart;

static bool is_smoothed(const chart *c) { return c->options->smoothing > 0; }

static layers *layers_at(const chart *c, int column, int row) { return &c->area[row * c->view.columns + column]; }

// ---- glyphs ----

typedef struct frame_glyphs {
  uint32_t vertical, tick, corner, horizontal, step, guide, above, below, cursor;
} frame_glyphs;

static const frame_glyphs *frame_of(enum td_chart_glyphs glyphs) {
  static const frame_glyphs ascii = {'|', '+', '+', '-', '+', '.', '\'', ',', '|'},
                            unicode = {0x2502, 0x2524, 0x2514, 0x2500, 0x252C, 0xB7, 0x2191, 0x2193, 0x2502};
  return glyphs == TD_GLYPHS_ASCII ? &ascii : &unicode;
}

char td_chart_mark(enum td_chart_glyphs glyphs, int index) {
  return index || glyphs == TD_GLYPHS_ASCII ? marks[index] : ' ';
}

// ---- dots ----

static double dot_y(const chart *c, double value) { // from the top; may lie far outside
  double place = td_axis_place(&c->view.values, value);
  return fmin(fmax(1 - place, -1e6), 1e6) * (c->view.rows * DOWN - 1);
}

static void set_dot(chart *c, int x, int y, int curve, bool faint) {
  if (x < 0 || y < 0 || x >= c->view.columns * ACROSS || y >= c->view.rows * DOWN) return;
  layers *cell = layers_at(c, x / ACROSS, y / DOWN);
  uint8_t bit = (uint8_t)(1 << (y % DOWN * ACROSS + x % ACROSS));
  if (faint) cell->faint |= bit;
  else cell->dots |= bit;
  if (!faint || !cell->dots) cell->owner = (uint8_t)curve;
}

typedef struct segment {
  double x, y, to_x, to_y;
} segment;

static bool cut(double p, double q, double *from, double *to) { // Liang and Barsky's: one border
  if (p == 0) return q >= 0;
  double r = q / p;
  if (p < 0) *from = fmax(*from, r);
  else *to = fmin(*to, r);
  return *from <= *to;
}

static bool clip(const chart *c, segment *s) {
  double dx = s->to_x - s->x, dy = s->to_y - s->y, from = 0, to = 1;
  double right = c->view.columns * ACROSS - 0.5, bottom = c->view.rows * DOWN - 0.5;
  if (!cut(-dx, s->x + 0.5, &from, &to) || !cut(dx, right - s->x, &from, &to) || !cut(-dy, s->y + 0.5, &from, &to) ||
      !cut(dy, bottom - s->y, &from, &to))
    return false;
  *s = (segment){s->x + from * dx, s->y + from * dy, s->x + to * dx, s->y + to * dy};
  return true;
}

static void draw_segment(chart *c, segment s, int curve, bool faint) { // Bresenham's, between whole dots
  if (!clip(c, &s)) return;
  int x = (int)lround(s.x), y = (int)lround(s.y), to_x = (int)lround(s.to_x), to_y = (int)lround(s.to_y);
  int dx = abs(to_x - x), dy = -abs(to_y - y), step_x = x < to_x ? 1 : -1, step_y = y < to_y ? 1 : -1;
  for (int error = dx + dy;;) {
    set_dot(c, x, y, curve, faint);
    if (x == to_x && y == to_y) return;
    int twice = 2 * error;
    if (twice >= dy) error += dy, x += step_x;
    if (twice <= dx) error += dx, y += step_y;
  }
}

// ---- curves ----

// What a column shows of its values: NaN where the axis has no place for them.
typedef struct span {
  double low, high, mean;
} span;

static span span_of(const chart *c, const td_series_column *column) {
  span s = {column->low, column->high, column->mean};
  if (c->options->mean) s.low = s.high = s.mean;
  bool logarithmic = c->options->logarithmic;
  if (!column->finite || (logarithmic && s.high <= 0)) return (span){NAN, NAN, NAN};
  if (logarithmic && s.low <= 0) s.low = s.high;
  if (logarithmic && s.mean <= 0) s.mean = s.high;
  return s;
}

static double outside_x(const chart *c, int64_t step) {
  return td_axis_place(&c->view.steps, (double)step) * (c->view.columns * ACROSS - 1);
}

static bool has_place(const chart *c, double value) { return value > 0 || !c->options->logarithmic; }

static double smooth_of(const chart *c, const td_series_column *column) {
  return column->finite && has_place(c, column->smooth) ? column->smooth : (double)NAN;
}

// The points: spans of their columns, joined by lines unless a smoothed line goes over them.
static void draw_points(chart *c, int curve) {
  const td_series *s = &c->series[curve];
  bool faint = is_smoothed(c), joined = !faint && s->has_before && has_place(c, s->before.value);
  double from_x = outside_x(c, s->before.step), from_y = joined ? dot_y(c, s->before.value) : 0;
  for (int64_t i = 0; i < s->columns; i++) {
    const td_series_column *column = &s->at[i];
    span shown = span_of(c, column);
    if (shown.mean != shown.mean) {
      joined = joined && !column->odd && !column->finite;
      continue;
    }
    double x = (double)i, y = dot_y(c, shown.mean);
    draw_segment(c, (segment){x, dot_y(c, shown.low), x, dot_y(c, shown.high)}, curve, faint);
    if (joined) draw_segment(c, (segment){from_x, from_y, x, y}, curve, faint);
    from_x = x;
    from_y = y;
    joined = !faint && !column->odd;
  }
  if (joined && s->has_after && has_place(c, s->after.value))
    draw_segment(c, (segment){from_x, from_y, outside_x(c, s->after.step), dot_y(c, s->after.value)}, curve, faint);
}

static void draw_smooth(chart *c, int curve) {
  const td_series *s = &c->series[curve];
  bool joined = s->has_before && has_place(c, s->before.value);
  double from_x = outside_x(c, s->before.step), from_y = joined ? dot_y(c, s->before.value) : 0;
  for (int64_t i = 0; i < s->columns; i++) {
    const td_series_column *column = &s->at[i];
    double value = smooth_of(c, column), x = (double)i;
    if (value != value) {
      joined = joined && !column->odd && !column->finite;
      continue;
    }
    double y = dot_y(c, value);
    draw_segment(c, (segment){joined ? from_x : x, joined ? from_y : y, x, y}, curve, false);
    from_x = x;
    from_y = y;
    joined = !column->odd;
  }
  if (joined && s->has_after && has_place(c, s->after.value))
    draw_segment(c, (segment){from_x, from_y, outside_x(c, s->after.step), dot_y(c, s->after.value)}, curve, false);
}

// Marks on a curve's line, so that it is told from others without colour: at points, some columns apart.
static uint8_t colour_of(const chart *c, int curve) {
  return (uint8_t)(TD_CELL_CURVE + (c->options->colours ? c->options->colours[curve] : curve));
}

static void draw_marks(chart *c, int curve) {
  const td_series *s = &c->series[curve];
  int next = 0;
  for (int64_t i = 0; i < s->columns; i++) {
    int column = (int)(i / ACROSS);
    double value = is_smoothed(c) ? smooth_of(c, &s->at[i]) : span_of(c, &s->at[i]).mean;
    if (value != value || column < next) continue;
    double y = round(dot_y(c, value));
    if (y < 0 || y >= c->view.rows * DOWN) continue;
    layers *cell = layers_at(c, column, (int)y / DOWN);
    cell->mark = marks[curve];
    cell->mark_colour = colour_of(c, curve);
    next = column + MARK_DISTANCE;
  }
}

// ---- what has no place ----

static void put_mark(chart *c, int column, int row, char mark) {
  layers *cell = layers_at(c, column, row);
  cell->mark = mark;
  cell->mark_colour = TD_CELL_MARK;
}

enum { ABOVE = 'A', BELOW = 'B' }; // marks of points outside, whose glyphs the frame has

static void note_outside(chart *c, const td_series_column *column, int x) {
  span shown = span_of(c, column);
  if (shown.mean != shown.mean) return;
  if (shown.high > c->view.values.high) put_mark(c, x, 0, ABOVE);
  if (shown.low < c->view.values.low) put_mark(c, x, c->view.rows - 1, BELOW);
}

static void note_odd(chart *c, const td_series_column *column, int x) {
  bool falls = column->odd & TD_CURVE_FALLS || (c->options->logarithmic && column->finite && column->low <= 0);
  if (column->odd & TD_CURVE_NAN) c->nans[x] = true;
  if (column->odd & TD_CURVE_RISES) put_mark(c, x, 0, '^');
  if (falls) put_mark(c, x, c->view.rows - 1, 'v');
}

static void draw_odd(chart *c, int curve) {
  const td_series *s = &c->series[curve];
  for (int64_t i = 0; i < s->columns; i++) {
    if (c->options->is_clipped) note_outside(c, &s->at[i], (int)(i / ACROSS));
    note_odd(c, &s->at[i], (int)(i / ACROSS));
  }
}

static void count_bin(chart *c, const td_curve_bin *bin) {
  td_chart_view *v = &c->view;
  bool logarithmic = c->options->logarithmic;
  if (bin->odd & TD_CURVE_NAN && !v->nans++) v->nan_step = bin->first;
  v->rises += (bin->odd & TD_CURVE_RISES) != 0;
  v->falls += (bin->odd & TD_CURVE_FALLS) != 0 || (logarithmic && bin->finite && bin->low <= 0);
  if (!c->options->is_clipped || !bin->finite || (logarithmic && bin->high <= 0)) return;
  if (bin->low > v->values.high) v->above += bin->finite;
  else v->above += bin->high > v->values.high;
  if (bin->high < v->values.low) v->below += bin->finite;
  else v->below += bin->low < v->values.low && !(logarithmic && bin->low <= 0);
}

static void count_odd(chart *c, const td_curve *curve) {
  c->view.at_least = c->view.at_least || curve->width > 1;
  bool places = c->options->is_clipped || c->options->logarithmic; // else all that is finite has one
  for (const td_curve_bin *bin = curve->bins; bin < curve->bins + curve->bin_count; bin++)
    if ((places || bin->odd) && (double)bin->first >= c->view.steps.low && (double)bin->first <= c->view.steps.high)
      count_bin(c, bin);
}

// ---- cells ----

static uint32_t mark_glyph(const chart *c, char mark) {
  const frame_glyphs *frame = frame_of(c->options->glyphs);
  return mark == ABOVE ? frame->above : mark == BELOW ? frame->below : (uint32_t)mark;
}

static void show_layers(chart *c, int column, int row) {
  const layers *l = layers_at(c, column, row);
  int x = c->view.left + column, y = c->view.top + row;
  uint8_t colour = colour_of(c, l->owner);
  enum td_chart_glyphs glyphs = c->options->glyphs;
  if (l->mark) td_chart_cells_put(c->cells, x, y, mark_glyph(c, l->mark), l->mark_colour, TD_CELL_BOLD);
  else if (l->dots) td_chart_cells_put(c->cells, x, y, td_chart_glyph(glyphs, l->dots, marks[l->owner]), colour, 0);
  else if (l->faint) td_chart_cells_put(c->cells, x, y, td_chart_glyph(glyphs, l->faint, ':'), colour, TD_CELL_DIM);
}

static void show_area(chart *c) {
  for (int row = 0; row < c->view.rows; row++)
    for (int column = 0; column < c->view.columns; column++) show_layers(c, column, row);
}

static int tick_row(const chart *c, const td_tick *tick) { // -1: outside
  double y = round(dot_y(c, tick->value));
  return y < 0 || y >= c->view.rows * DOWN ? -1 : (int)y / DOWN;
}

static int tick_column(const chart *c, const td_tick *tick) {
  return (int)lround(tick->place * (c->view.columns * ACROSS - 1)) / ACROSS;
}

static void draw_value_axis(chart *c, const td_tick *ticks, int count) {
  const frame_glyphs *frame = frame_of(c->options->glyphs);
  int line = c->view.left - 1;
  for (int row = 0; row < c->view.rows; row++)
    td_chart_cells_put(c->cells, line, c->view.top + row, frame->vertical, TD_CELL_PLAIN, TD_CELL_DIM);
  for (int i = 0, last = -1; i < count; i++) {
    int row = tick_row(c, &ticks[i]), length = (int)strlen(ticks[i].label);
    if (row == last || row < 0 || !length) continue;
    td_chart_cells_text(c->cells, line - 1 - length, c->view.top + row, ticks[i].label, TD_CELL_PLAIN, 0);
    td_chart_cells_put(c->cells, line, c->view.top + row, frame->tick, TD_CELL_PLAIN, TD_CELL_DIM);
    for (int column = 1; c->options->guides && column < c->view.columns; column += 2)
      td_chart_cells_put(c->cells, c->view.left + column, c->view.top + row, frame->guide, TD_CELL_PLAIN, TD_CELL_DIM);
    last = row;
  }
}

static void draw_step_axis(chart *c, const td_tick *ticks, int count) {
  const frame_glyphs *frame = frame_of(c->options->glyphs);
  int row = c->view.top + c->view.rows, free_from = 0;
  td_chart_cells_put(c->cells, c->view.left - 1, row, frame->corner, TD_CELL_PLAIN, TD_CELL_DIM);
  for (int column = 0; column < c->view.columns; column++)
    td_chart_cells_put(c->cells, c->view.left + column, row, frame->horizontal, TD_CELL_PLAIN, TD_CELL_DIM);
  for (int i = 0; i < count; i++) {
    int at = c->view.left + tick_column(c, &ticks[i]), length = (int)strlen(ticks[i].label);
    int start = at - length / 2, most = c->cells->columns - length;
    if (start > most) start = most;
    if (start < free_from) continue;
    td_chart_cells_put(c->cells, at, row, frame->step, TD_CELL_PLAIN, TD_CELL_DIM);
    td_chart_cells_text(c->cells, start, row + 1, ticks[i].label, TD_CELL_PLAIN, 0);
    free_from = start + length + 1;
  }
  for (int column = 0; column < c->view.columns; column++)
    if (c->nans[column]) td_chart_cells_put(c->cells, c->view.left + column, row, '!', TD_CELL_MARK, TD_CELL_BOLD);
}

static void draw_cursor(chart *c) {
  int64_t dot = td_series_column_of(&c->view.steps, (int64_t)c->view.columns * ACROSS, c->options->cursor);
  if (!c->options->has_cursor || dot < 0 || dot >= (int64_t)c->view.columns * ACROSS) return;
  int column = c->view.left + (int)(dot / ACROSS);
  for (int row = 0; row < c->view.rows; row++) {
    td_chart_cell *cell = td_chart_cell_at(c->cells, column, c->view.top + row);
    bool curve = cell->colour != TD_CELL_PLAIN;
    if (!curve) *cell = (td_chart_cell){frame_of(c->options->glyphs)->cursor, TD_CELL_PLAIN, TD_CELL_DIM};
    else cell->attributes |= TD_CELL_REVERSE;
  }
}

// ---- layout ----

static int label_columns(const td_tick *ticks, int count) {
  int width = 0;
  for (int i = 0; i < count; i++) {
    int length = (int)strlen(ticks[i].label);
    width = length > width ? length : width;
  }
  return width;
}

// Rows: the area, the axis, the labels of steps. What doesn't fit is left out, the labels first.
static void lay_rows(chart *c) {
  int rows = c->cells->rows;
  c->view.rows = rows >= 4 ? rows - 2 : rows;
}

static void lay_columns(chart *c, int label_width) {
  int columns = c->cells->columns, left = label_width + 2;
  if (columns - left < 10) left = columns > 10 ? 1 : 0;
  c->view.left = left;
  c->view.columns = columns - left;
}

static td_series_range range_of(const td_chart_options *o) {
  bool clipped = o->is_clipped;
  return (td_series_range){.is_cut = o->is_cut,
                           .first = o->first,
                           .last = o->last,
                           .low = clipped ? o->low : (double)NAN,
                           .high = clipped ? o->high : (double)NAN};
}

static bool gather(chart *c, const td_curve *const *curves) {
  td_series_range range = range_of(c->options);
  bool ok = true, no_values;
  for (int i = 0; i < c->count; i++) td_series_clear(&c->series[i]);
  for (int i = 0; ok && i < c->count; i++)
    ok = td_series_start(&c->series[i], curves[i], &c->view.steps, (int64_t)c->view.columns * ACROSS,
                         c->options->smoothing);
  if (!ok) return false;
  c->view.values =
      td_series_values(c->series, c->count, &range, c->options->logarithmic, c->options->mean, 0, &no_values);
  c->view.empty = no_values;
  return true;
}

static const char *word_for(const chart *c, bool no_points) {
  return no_points ? "no points" : c->view.empty ? "no finite value" : NULL;
}

static void draw_curves(chart *c, const td_curve *const *curves) {
  for (int i = 0; i < c->count; i++) draw_points(c, i);
  for (int i = 0; is_smoothed(c) && i < c->count; i++) draw_smooth(c, i);
  for (int i = 1; i < c->count && c->options->glyphs != TD_GLYPHS_ASCII; i++) draw_marks(c, i);
  for (int i = 0; i < c->count; i++) {
    draw_odd(c, i);
    count_odd(c, curves[i]);
  }
}

static bool draw(chart *c, const td_curve *const *curves) {
  td_tick values[TD_TICKS_MAX], steps[TD_TICKS_MAX];
  td_series_range range = range_of(c->options);
  bool no_points;
  lay_rows(c);
  lay_columns(c, 3);
  if (c->view.columns < 1 || c->view.rows < 1) return c->view.columns = 0, true;
  c->view.steps = td_series_steps(curves, c->count, &range, &no_points);
  if (!gather(c, curves)) return false;
  int most = 2 + c->view.rows / 5, count = td_axis_ticks(&c->view.values, most, false, values);
  int guessed = c->view.columns; // labels depend on the values, which hardly depend on the columns
  lay_columns(c, c->view.empty ? 0 : label_columns(values, count));
  if (c->view.columns != guessed && !gather(c, curves)) return false;
  size_t area = (size_t)c->view.columns * (size_t)c->view.rows;
  c->area = td_memory_new_zero(area * sizeof *c->area + (size_t)c->view.columns);
  if (!c->area) return false;
  c->nans = (bool *)(c->area + area);
  draw_curves(c, curves);
  if (c->view.left > 0) draw_value_axis(c, values, c->view.empty || c->view.left < 3 ? 0 : count);
  show_area(c);
  count = no_points ? 0 : td_axis_ticks(&c->view.steps, c->view.columns / LABEL_COLUMNS, true, steps);
  if (c->view.rows < c->cells->rows) draw_step_axis(c, steps, count);
  draw_cursor(c);
  const char *word = word_for(c, no_points);
  if (word) td_chart_cells_text(c->cells, c->view.left + 2, c->view.rows / 2, word, TD_CELL_PLAIN, 0);
  return true;
}

bool td_chart_draw(td_chart_cells *cells, const td_curve *const *curves, int count, const td_chart_options *options,
                   td_chart_view *view) {
  chart c = {.options = options, .cells = cells, .count = count < TD_CHART_CURVES ? count : TD_CHART_CURVES};
  bool ok = draw(&c, curves);
  for (int i = 0; i < c.count; i++) td_series_clear(&c.series[i]);
  td_memory_free(c.area);
  if (view) *view = c.view;
  return ok;
}

int64_t td_chart_step_at(const td_chart_view *view, int column) {
  double step = td_series_step_of(&view->steps, view->columns, column - view->left);
  return step < -9e18 ? INT64_MIN : step > 9e18 ? INT64_MAX : (int64_t)llround(step);
}
