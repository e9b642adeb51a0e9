// See picture_curves.h. Points are gathered by quarters of a pixel. Where one holds several, their span is a pale band
// under the line of their means; a smoothed line has its points pale beneath it.
#include "repl/notebook/picture_curves.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/base/text.h"

enum { QUARTERS = 4, FEW_POINTS = 40 };

typedef struct styled { // how a curve is drawn
  uint32_t rgb;
  bool dashed; // a validation curve whose training curve has the same colour
} styled;

typedef struct picture {
  td_picture_frame frame;
  const td_picture_options *options;
  const td_curve *const *curves;
  int count;
  double scale;
  bool empty, no_points;
  td_series series[TD_PICTURE_CURVES];
  styled styles[TD_PICTURE_CURVES];
  td_point *points; // scratch: 2 for each column, and 2
  bool at_least; // as in td_chart_view
  int64_t nans, rises, falls, above, below, nan_step;
} picture;

// ---- styles ----

// Where a name's last part begins: behind the last ':' or '/'.
static const char *last_part(const char *name) {
  const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');
  const char *at = colon > slash ? colon : slash;
  return at ? at + 1 : name;
}

static bool is_validation_of(const char *name, const char *train) {
  const char *part = last_part(name), *other = last_part(train);
  size_t before = (size_t)(part - name);
  return before == (size_t)(other - train) && !strncmp(name, train, before) && !strncmp(part, "val_", 4) &&
         !strcmp(part + 4, other);
}

static void choose_styles(picture *p) {
  const uint32_t *colours = p->frame.theme->curves;
  int used = 0;
  for (int i = 0; i < p->count; i++) p->styles[i].rgb = 0;
  for (int i = 0; i < p->count; i++) {
    int train = 0;
    while (train < p->count && !is_validation_of(p->curves[i]->name, p->curves[train]->name)) train++;
    if (train < p->count) continue;
    p->styles[i] = (styled){colours[used % 8], used >= 8};
    used++;
  }
  for (int i = 0; i < p->count; i++)
    for (int train = 0; train < p->count; train++)
      if (is_validation_of(p->curves[i]->name, p->curves[train]->name))
        p->styles[i] = (styled){p->styles[train].rgb, true};
}

// ---- places ----

static double x_of(const picture *p, double column) { return p->frame.area.left + 0.5 + column / QUARTERS; }

static double x_of_step(const picture *p, int64_t step) { return td_frame_x(&p->frame, (double)step); }

static double y_of(const picture *p, double value) { return td_frame_y(&p->frame, value); }

static int64_t columns_of(const picture *p) {
  return (int64_t)(p->frame.area.right - p->frame.area.left - 1) * QUARTERS + 1;
}

static bool has_place(const picture *p, double value) { return value > 0 || !p->options->logarithmic; }

static void paint(picture *p, uint32_t rgb, double alpha) { td_frame_paint(&p->frame, rgb, alpha); }

// ---- curves ----

static bool is_smoothed(const picture *p) { return p->options->smoothing > 0; }

static bool shows(const picture *p, const td_series_column *c, bool smooth, double *value) {
  *value = smooth ? c->smooth : c->mean;
  if (c->finite && !smooth && !has_place(p, *value)) *value = c->high;
  return c->finite && has_place(p, *value);
}

static void stroke_dashed(picture *p, const td_point *points, size_t count, double width) {
  double on = 5 * p->scale, off = 3.5 * p->scale, left = on;
  bool drawn = true;
  for (size_t i = 1; i < count; i++) {
    td_point from = points[i - 1], to = points[i];
    for (double length = hypot(to.x - from.x, to.y - from.y); length > 0;) {
      double part = fmin(left, length), share = part / length;
      td_point next = {from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share};
      if (drawn) td_raster_stroke(p->frame.raster, (td_point[]){from, next}, 2, width);
      from = next;
      length -= part;
      left -= part;
      if (left > 1e-9) continue;
      drawn = !drawn;
      left = drawn ? on : off;
    }
  }
}

static void stroke_run(picture *p, int curve, size_t count, double width) { // points that follow each other
  if (count == 1) td_raster_disc(p->frame.raster, p->points[0], width * 1.2); // alone it would be too small to see
  else if (p->styles[curve].dashed) stroke_dashed(p, p->points, count, width);
  else td_raster_stroke(p->frame.raster, p->points, count, width);
}

static void draw_line(picture *p, int curve, bool smooth, double width) {
  const td_series *s = &p->series[curve];
  size_t run = 0;
  double value;
  bool whole = !is_smoothed(p) || smooth; // the points beneath a smoothed line have no neighbours outside
  if (whole && s->has_before && has_place(p, s->before.value))
    p->points[run++] = (td_point){x_of_step(p, s->before.step), y_of(p, s->before.value)};
  for (int64_t i = 0; i < s->columns; i++) {
    const td_series_column *c = &s->at[i];
    bool shown = shows(p, c, smooth, &value), ends = c->odd || (c->finite && !shown);
    if (shown) p->points[run++] = (td_point){x_of(p, (double)i), y_of(p, value)};
    if (!ends) continue;
    stroke_run(p, curve, run, width);
    run = 0;
  }
  if (run && whole && s->has_after && has_place(p, s->after.value))
    p->points[run++] = (td_point){x_of_step(p, s->after.step), y_of(p, s->after.value)};
  stroke_run(p, curve, run, width);
}

// The band from the lowest to the highest of each column, over columns that follow each other.
static void fill_band(picture *p, const td_series *s) {
  size_t count = 0, capacity = (size_t)s->columns;
  bool wide = false;
  td_point *back = p->points + capacity;
  for (int64_t i = 0; i <= s->columns; i++) {
    const td_series_column *c = i < s->columns ? &s->at[i] : NULL;
    bool shown = c && c->finite && has_place(p, c->high);
    if (shown) {
      double low = has_place(p, c->low) ? c->low : c->high;
      p->points[count] = (td_point){x_of(p, (double)i), y_of(p, c->high)};
      back[-(ptrdiff_t)count - 1 + (ptrdiff_t)capacity] = (td_point){x_of(p, (double)i), y_of(p, low)};
      wide = wide || low < c->high;
      if (low < c->high) // a spike in a thin column shows too
        td_raster_stroke(p->frame.raster, (td_point[]){p->points[count], {x_of(p, (double)i), y_of(p, low)}}, 2,
                         p->scale);
      count++;
    }
    if (c && !c->odd) continue;
    memmove(p->points + count, back + capacity - count, count * sizeof *back); // in turn, from the right to the left
    if (wide) td_raster_fill(p->frame.raster, p->points, 2 * count);
    count = 0;
    wide = false;
  }
}

static void draw_points(picture *p, int curve) { // of a curve that has few
  const td_series *s = &p->series[curve];
  double value;
  if (td_curve_points(p->curves[curve]) > FEW_POINTS) return;
  for (int64_t i = 0; i < s->columns; i++)
    if (shows(p, &s->at[i], false, &value) && value >= p->frame.y.low && value <= p->frame.y.high)
      td_raster_disc(p->frame.raster, (td_point){x_of(p, (double)i), y_of(p, value)}, 2.3 * p->scale);
}

static void draw_curve(picture *p, int curve) {
  uint32_t rgb = p->styles[curve].rgb;
  fill_band(p, &p->series[curve]);
  paint(p, rgb, is_smoothed(p) ? p->frame.theme->band * 0.7 : p->frame.theme->band);
  draw_line(p, curve, false, (is_smoothed(p) ? 1.0 : 1.7) * p->scale);
  if (!is_smoothed(p)) draw_points(p, curve);
  paint(p, rgb, is_smoothed(p) ? p->frame.theme->points : 1);
  if (!is_smoothed(p)) return;
  draw_line(p, curve, true, 2.0 * p->scale);
  paint(p, rgb, 1);
}

// ---- what has no place ----

enum { UP = -1, DOWN = 1 };

static void triangle(picture *p, double x, double y, int direction) { // its tip at y
  double half = 4 * p->scale, back = y - direction * 7 * p->scale;
  td_raster_fill(p->frame.raster, (td_point[]){{x, y}, {x - half, back}, {x + half, back}}, 3);
}

static void cross(picture *p, double x, double y) {
  double half = 3 * p->scale, width = 1.6 * p->scale;
  td_raster_stroke(p->frame.raster, (td_point[]){{x - half, y - half}, {x + half, y + half}}, 2, width);
  td_raster_stroke(p->frame.raster, (td_point[]){{x - half, y + half}, {x + half, y - half}}, 2, width);
}

static void chevron(picture *p, double x, double y, int direction) {
  double half = 4 * p->scale, back = y - direction * 4 * p->scale;
  td_raster_stroke(p->frame.raster, (td_point[]){{x - half, back}, {x, y}, {x + half, back}}, 3, 1.6 * p->scale);
}

// Marks stand apart; one stands for those behind it.
static bool is_apart(const picture *p, double x, double *last) {
  if (x - *last < 11 * p->scale) return false;
  *last = x;
  return true;
}

static bool falls(const picture *p, const td_series_column *c) {
  return c->odd & TD_CURVE_FALLS || (p->options->logarithmic && c->finite && c->low <= 0);
}

static void draw_odd(picture *p, int curve) {
  const td_series *s = &p->series[curve];
  double top = p->frame.area.top, bottom = p->frame.area.bottom, last[5] = {-1e9, -1e9, -1e9, -1e9, -1e9};
  for (int64_t i = 0; i < s->columns; i++) {
    const td_series_column *c = &s->at[i];
    double x = x_of(p, (double)i);
    bool placed = c->finite && has_place(p, c->high);
    if (c->odd & TD_CURVE_RISES && is_apart(p, x, &last[0])) triangle(p, x, top + p->scale, UP);
    if (falls(p, c) && is_apart(p, x, &last[1])) triangle(p, x, bottom - p->scale, DOWN);
    if (placed && c->high > p->frame.y.high && is_apart(p, x, &last[2])) chevron(p, x, top + 3 * p->scale, UP);
    if (placed && has_place(p, c->low) && c->low < p->frame.y.low && is_apart(p, x, &last[3]))
      chevron(p, x, bottom - 3 * p->scale, DOWN);
  }
  paint(p, p->styles[curve].rgb, 1);
  for (int64_t i = 0; i < s->columns; i++)
    if (s->at[i].odd & TD_CURVE_NAN && is_apart(p, x_of(p, (double)i), &last[4]))
      cross(p, x_of(p, (double)i), bottom - 5 * p->scale);
  paint(p, p->frame.theme->warning, 1);
}

static void count_bin(picture *p, const td_curve_bin *bin) {
  bool logarithmic = p->options->logarithmic;
  if (bin->odd & TD_CURVE_NAN && (!p->nans++ || bin->first < p->nan_step)) p->nan_step = bin->first;
  p->rises += (bin->odd & TD_CURVE_RISES) != 0;
  p->falls += (bin->odd & TD_CURVE_FALLS) != 0 || (logarithmic && bin->finite && bin->low <= 0);
  if (!bin->finite || (logarithmic && bin->high <= 0)) return;
  p->above += bin->low > p->frame.y.high ? bin->finite : bin->high > p->frame.y.high;
  p->below += bin->high < p->frame.y.low ? bin->finite : has_place(p, bin->low) && bin->low < p->frame.y.low;
}

static void add_note(const picture *p, td_text *text, int64_t count, const char *what) {
  if (!count) return;
  td_text_print(text, "%s%s%lld %s", text->length ? "   " : "", p->at_least ? ">=" : "", (long long)count, what);
}

static void count_odd(picture *p) {
  const td_axis *steps = &p->frame.x;
  for (int i = 0; i < p->count; i++) p->at_least = p->at_least || p->curves[i]->width > 1;
  for (int i = 0; i < p->count; i++)
    for (const td_curve_bin *bin = p->curves[i]->bins; bin < p->curves[i]->bins + p->curves[i]->bin_count; bin++)
      if ((double)bin->first >= steps->low && (double)bin->first <= steps->high) count_bin(p, bin);
}

// Below the frame: what has no place at the left; what the steps are at the right, where it has room.
static void draw_foot(picture *p) {
  td_picture_frame *f = &p->frame;
  td_text text = {0};
  double y = f->raster->height - 8 * p->scale, taken = f->area.left;
  count_odd(p);
  if (p->nans) td_text_print(&text, "NaN at step %lld", (long long)p->nan_step);
  if (p->nans > 1) td_text_print(&text, " (%s%lld in all)", p->at_least ? ">=" : "", (long long)p->nans);
  add_note(p, &text, p->rises, "inf");
  add_note(p, &text, p->falls, p->options->logarithmic ? "not above 0" : "-inf");
  add_note(p, &text, p->above, "above");
  add_note(p, &text, p->below, "below");
  if (text.length && !text.failed) {
    td_frame_write(f, f->area.left, y, TD_ALIGN_LEFT, text.data, f->theme->warning);
    taken += td_text_width(text.data, &f->font) + 8 * p->scale;
  }
  if (f->area.right - td_text_width(p->options->steps_label, &f->font) > taken)
    td_frame_write(f, f->area.right, y, TD_ALIGN_RIGHT, p->options->steps_label, f->theme->faint);
  td_text_clear(&text);
}

static double sharp(double at) { return floor(at) + 0.5; } // the middle of a pixel

// ---- legend ----

typedef struct legend {
  double width, row, sample;
} legend; // sample: length of the piece of line

static legend measure_legend(const picture *p) {
  legend l = {.row = 17 * p->scale, .sample = 24 * p->scale};
  for (int i = 0; i < p->count; i++) l.width = fmax(l.width, td_text_width(p->curves[i]->name, &p->frame.font));
  l.width += l.sample + 22 * p->scale;
  return l;
}

// How many columns have a value under a box.
static int64_t hits(const picture *p, double left, double top, double right, double bottom) {
  int64_t count = 0;
  for (int k = 0; k < p->count; k++)
    for (int64_t i = 0; i < p->series[k].columns; i++) {
      const td_series_column *c = &p->series[k].at[i];
      double x = x_of(p, (double)i);
      if (!c->finite || x < left || x > right || !has_place(p, c->high)) continue;
      double low = has_place(p, c->low) ? c->low : c->high;
      count += y_of(p, c->high) <= bottom && y_of(p, low) >= top;
    }
  return count;
}

static td_point choose_corner(const picture *p, double width, double height) { // where it hides least
  double inset = 8 * p->scale, left = p->frame.area.left + inset, top = p->frame.area.top + inset;
  double right = p->frame.area.right - inset - width, bottom = p->frame.area.bottom - inset - height;
  const td_point corners[4] = {{right, top}, {left, top}, {right, bottom}, {left, bottom}};
  int best = 0;
  int64_t least = INT64_MAX;
  for (int i = 0; i < 4; i++) {
    int64_t hidden = hits(p, corners[i].x, corners[i].y, corners[i].x + width, corners[i].y + height);
    if (hidden < least) best = i, least = hidden;
  }
  return corners[best];
}

static void draw_sample(picture *p, int curve, double x, double y, double length) {
  td_point ends[] = {{x, y}, {x + length, y}};
  if (p->styles[curve].dashed) stroke_dashed(p, ends, 2, 2 * p->scale);
  else td_raster_stroke(p->frame.raster, ends, 2, 2 * p->scale);
  if (!is_smoothed(p) && td_curve_points(p->curves[curve]) <= FEW_POINTS)
    td_raster_disc(p->frame.raster, (td_point){x + length / 2, y}, 2.3 * p->scale);
  paint(p, p->styles[curve].rgb, 1);
}

static void draw_legend(picture *p) {
  legend l = measure_legend(p);
  double height = l.row * p->count + 8 * p->scale, room = p->frame.area.bottom - p->frame.area.top - 16 * p->scale;
  if (height > room || l.width > p->frame.area.right - p->frame.area.left - 16 * p->scale)
    return; // there is no room for one
  td_point at = choose_corner(p, l.width, height);
  td_raster_box(p->frame.raster, at.x, at.y, at.x + l.width, at.y + height);
  paint(p, p->frame.theme->paper, 0.82);
  td_point outline[] = {
      {at.x, at.y}, {at.x + l.width, at.y}, {at.x + l.width, at.y + height}, {at.x, at.y + height}, {at.x, at.y}};
  for (int i = 0; i < 5; i++) outline[i] = (td_point){sharp(outline[i].x), sharp(outline[i].y)};
  td_raster_stroke(p->frame.raster, outline, 5, fmax(1, floor(p->scale)));
  paint(p, p->frame.theme->grid, 1);
  for (int i = 0; i < p->count; i++) {
    double y = at.y + 4 * p->scale + l.row * (i + 0.5), x = at.x + 8 * p->scale;
    draw_sample(p, i, x, sharp(y), l.sample);
    td_frame_write(&p->frame, x + l.sample + 8 * p->scale, y + 4 * p->scale, TD_ALIGN_LEFT, p->curves[i]->name,
                   p->frame.theme->text);
  }
}

// ---- all of it ----

static bool gather(picture *p) {
  bool ok = true;
  td_axis *steps = &p->frame.x;
  *steps = td_series_steps(p->curves, p->count, &p->options->range, &p->no_points);
  if (!p->options->range.is_cut && !p->no_points && steps->high - steps->low > 1) {
    double room = (steps->high - steps->low) * 0.02;
    *steps = (td_axis){.low = steps->low - room, .high = steps->high + room};
  }
  for (int i = 0; i < p->count; i++) td_series_clear(&p->series[i]);
  for (int i = 0; ok && i < p->count; i++)
    ok = td_series_start(&p->series[i], p->curves[i], steps, columns_of(p), p->options->smoothing);
  if (!ok) return false;
  p->frame.y =
      td_series_values(p->series, p->count, &p->options->range, p->options->logarithmic, false, 0.05, &p->empty);
  return true;
}

static void draw_words(picture *p) {
  td_picture_frame *f = &p->frame;
  const char *word = p->no_points ? "no points" : p->empty ? "no finite value" : NULL;
  if (p->options->title) td_frame_title(f, p->options->title);
  if (word)
    td_frame_write(f, (f->area.left + f->area.right) / 2.0, (f->area.top + f->area.bottom) / 2.0, TD_ALIGN_CENTRE, word,
                   f->theme->faint);
}

static void draw_all(picture *p, const td_tick *values, int value_count) {
  td_picture_frame *f = &p->frame;
  td_tick steps[TD_TICKS_MAX];
  int most = (int)((f->area.right - f->area.left) / (80 * p->scale));
  int step_count = p->no_points ? 0 : td_axis_ticks(&f->x, most, true, steps);
  td_frame_grid(f, steps, step_count, values, value_count);
  td_raster_clip(f->raster, f->area);
  for (int i = 0; i < p->count; i++) draw_curve(p, i);
  for (int i = 0; i < p->count; i++) draw_odd(p, i);
  td_raster_clip(f->raster, (td_box){0, 0, f->raster->width, f->raster->height});
  td_frame_outline(f);
  td_frame_x_ticks(f, steps, step_count);
  td_frame_y_ticks(f, values, value_count);
  draw_words(p);
  if (!p->no_points && p->options->legend) draw_legend(p);
  draw_foot(p);
}

static bool draw(picture *p) { // twice laid out: how wide the labels are depends on the values
  enum { RIGHT = 16 };
  td_tick values[TD_TICKS_MAX];
  td_picture_frame *f = &p->frame;
  td_frame_lay_out(f, 40 * p->scale, p->options->title, RIGHT);
  if (!gather(p)) return false;
  int most = (int)((f->area.bottom - f->area.top) / (44 * p->scale));
  int count = p->empty ? 0 : td_axis_ticks(&f->y, most, false, values);
  td_frame_lay_out(f, td_frame_label_width(f, values, count), p->options->title, RIGHT);
  if (!gather(p)) return false;
  p->points = td_memory_new((2 * (size_t)columns_of(p) + 4) * sizeof *p->points);
  if (p->points) draw_all(p, values, count);
  return p->points;
}

bool td_picture_curves(td_raster *raster, const td_curve *const *curves, int count, const td_picture_options *options) {
  picture p = {.options = options, .curves = curves, .count = count, .scale = options->scale};
  bool ok = td_frame_start(&p.frame, raster, options->width, options->height, options->scale, options->theme);
  choose_styles(&p);
  ok = ok && draw(&p);
  for (int i = 0; i < count; i++) td_series_clear(&p.series[i]);
  td_memory_free(p.points);
  if (!ok) td_raster_clear(raster);
  return ok;
}
