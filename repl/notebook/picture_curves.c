// See picture_curves.h. Points are gathered by quarters of a pixel. Where one holds several, their span is a pale band
// under the line of their means; a smoothed line has its points pale beneath it.
#include "repl/notebook/picture_curves.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "engine/base/memory.h"
#include "engine/base/text.h"

enum { QUARTERS = 4, FEW_POINTS = 40 };

static const td_picture_theme themes[2] = {
    {.paper = 0xFFFFFF, .frame = 0x7A7A7A, .grid = 0xE4E4E4, .text = 0x262626, .faint = 0x666666, .warning = 0xC62828,
     .curves = {0x1F6FB4, 0xD9600B, 0x2A8C3C, 0x8250B5, 0xB07A00, 0x008B9A, 0xC23B7F, 0x6B6B6B}, .weight = 1.3,
     .band = 0.55, .points = 0.7},
    {.paper = 0x16181D, .frame = 0x7D838F, .grid = 0x2C3038, .text = 0xE2E5EA, .faint = 0x9CA3AF, .warning = 0xFF6B6B,
     .curves = {0x5AAEF5, 0xFF9447, 0x5FCB74, 0xB995F0, 0xE6BC4A, 0x3FCFDD, 0xF07AB4, 0xB4B4B4}, .weight = 1.15,
     .band = 0.2, .points = 0.3}};

const td_picture_theme *td_picture_theme_find(const char *name) {
  return !strcmp(name, "light") ? &themes[0] : !strcmp(name, "dark") ? &themes[1] : NULL;
}

typedef struct styled { // how a curve is drawn
  uint32_t rgb;
  bool dashed;          // a validation curve whose training curve has the same colour
} styled;

typedef struct picture {
  td_raster *raster;
  const td_picture_options *options;
  const td_curve *const *curves;
  int count;
  td_font font, title;
  double scale;
  td_box area;          // inside the frame
  td_axis steps, values;
  bool empty, no_points;
  td_series series[TD_PICTURE_CURVES];
  styled styles[TD_PICTURE_CURVES];
  td_point *points;     // scratch: 2 for each column, and 2
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
  const uint32_t *colours = p->options->theme->curves;
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
      if (is_validation_of(p->curves[i]->name, p->curves[train]->name)) p->styles[i] = (styled){p->styles[train].rgb, true};
}

// ---- places ----

static double x_of(const picture *p, double column) {
  return p->area.left + 0.5 + column / QUARTERS;
}

static double x_of_step(const picture *p, int64_t step) {
  return p->area.left + 0.5 + td_axis_place(&p->steps, (double)step) * (p->area.right - p->area.left - 1);
}

static double y_of(const picture *p, double value) {
  double place = fmin(fmax(td_axis_place(&p->values, value), -100), 100);
  return p->area.bottom - 0.5 - place * (p->area.bottom - p->area.top - 1);
}

static int64_t columns_of(const picture *p) { return (int64_t)(p->area.right - p->area.left - 1) * QUARTERS + 1; }

static bool has_place(const picture *p, double value) { return value > 0 || !p->options->logarithmic; }

static void paint(picture *p, uint32_t rgb, double alpha) { td_raster_paint(p->raster, (td_ink){rgb, alpha}); }

static void write(picture *p, double x, double y, td_align align, const char *text, const td_font *font, uint32_t rgb) {
  td_raster_text(p->raster, (td_point){x, y}, align, false, text, font);
  paint(p, rgb, 1);
}

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
      if (drawn) td_raster_stroke(p->raster, (td_point[]){from, next}, 2, width);
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
  if (count == 1) td_raster_disc(p->raster, p->points[0], width * 1.2); // alone it would be too small to see
  else if (p->styles[curve].dashed) stroke_dashed(p, p->points, count, width);
  else td_raster_stroke(p->raster, p->points, count, width);
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
        td_raster_stroke(p->raster, (td_point[]){p->points[count], {x_of(p, (double)i), y_of(p, low)}}, 2, p->scale);
      count++;
    }
    if (c && !c->odd) continue;
    memmove(p->points + count, back + capacity - count, count * sizeof *back); // in turn, from the right to the left
    if (wide) td_raster_fill(p->raster, p->points, 2 * count);
    count = 0;
    wide = false;
  }
}

static void draw_points(picture *p, int curve) { // of a curve that has few
  const td_series *s = &p->series[curve];
  double value;
  if (td_curve_points(p->curves[curve]) > FEW_POINTS) return;
  for (int64_t i = 0; i < s->columns; i++)
    if (shows(p, &s->at[i], false, &value) && value >= p->values.low && value <= p->values.high)
      td_raster_disc(p->raster, (td_point){x_of(p, (double)i), y_of(p, value)}, 2.3 * p->scale);
}

static void draw_curve(picture *p, int curve) {
  uint32_t rgb = p->styles[curve].rgb;
  fill_band(p, &p->series[curve]);
  paint(p, rgb, is_smoothed(p) ? p->options->theme->band * 0.7 : p->options->theme->band);
  draw_line(p, curve, false, (is_smoothed(p) ? 1.0 : 1.7) * p->scale);
  if (!is_smoothed(p)) draw_points(p, curve);
  paint(p, rgb, is_smoothed(p) ? p->options->theme->points : 1);
  if (!is_smoothed(p)) return;
  draw_line(p, curve, true, 2.0 * p->scale);
  paint(p, rgb, 1);
}

// ---- what has no place ----

enum { UP = -1, DOWN = 1 };

static void triangle(picture *p, double x, double y, int direction) { // its tip at y
  double half = 4 * p->scale, back = y - direction * 7 * p->scale;
  td_raster_fill(p->raster, (td_point[]){{x, y}, {x - half, back}, {x + half, back}}, 3);
}

static void cross(picture *p, double x, double y) {
  double half = 3 * p->scale, width = 1.6 * p->scale;
  td_raster_stroke(p->raster, (td_point[]){{x - half, y - half}, {x + half, y + half}}, 2, width);
  td_raster_stroke(p->raster, (td_point[]){{x - half, y + half}, {x + half, y - half}}, 2, width);
}

static void chevron(picture *p, double x, double y, int direction) {
  double half = 4 * p->scale, back = y - direction * 4 * p->scale;
  td_raster_stroke(p->raster, (td_point[]){{x - half, back}, {x, y}, {x + half, back}}, 3, 1.6 * p->scale);
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
  double top = p->area.top, bottom = p->area.bottom, last[5] = {-1e9, -1e9, -1e9, -1e9, -1e9};
  for (int64_t i = 0; i < s->columns; i++) {
    const td_series_column *c = &s->at[i];
    double x = x_of(p, (double)i);
    bool placed = c->finite && has_place(p, c->high);
    if (c->odd & TD_CURVE_RISES && is_apart(p, x, &last[0])) triangle(p, x, top + p->scale, UP);
    if (falls(p, c) && is_apart(p, x, &last[1])) triangle(p, x, bottom - p->scale, DOWN);
    if (placed && c->high > p->values.high && is_apart(p, x, &last[2])) chevron(p, x, top + 3 * p->scale, UP);
    if (placed && has_place(p, c->low) && c->low < p->values.low && is_apart(p, x, &last[3]))
      chevron(p, x, bottom - 3 * p->scale, DOWN);
  }
  paint(p, p->styles[curve].rgb, 1);
  for (int64_t i = 0; i < s->columns; i++)
    if (s->at[i].odd & TD_CURVE_NAN && is_apart(p, x_of(p, (double)i), &last[4]))
      cross(p, x_of(p, (double)i), bottom - 5 * p->scale);
  paint(p, p->options->theme->warning, 1);
}

static void count_bin(picture *p, const td_curve_bin *bin) {
  bool logarithmic = p->options->logarithmic;
  if (bin->odd & TD_CURVE_NAN && (!p->nans++ || bin->first < p->nan_step)) p->nan_step = bin->first;
  p->rises += (bin->odd & TD_CURVE_RISES) != 0;
  p->falls += (bin->odd & TD_CURVE_FALLS) != 0 || (logarithmic && bin->finite && bin->low <= 0);
  if (!bin->finite || (logarithmic && bin->high <= 0)) return;
  p->above += bin->low > p->values.high ? bin->finite : bin->high > p->values.high;
  p->below += bin->high < p->values.low ? bin->finite : has_place(p, bin->low) && bin->low < p->values.low;
}

static void add_note(td_text *text, const char *format, long long count) {
  if (count) td_text_print(text, "%s", text->length ? "   " : "");
  if (count) td_text_print(text, format, count);
}

static void draw_notes(picture *p) {
  td_text text = {0};
  for (int i = 0; i < p->count; i++)
    for (const td_curve_bin *bin = p->curves[i]->bins; bin < p->curves[i]->bins + p->curves[i]->bin_count; bin++)
      if ((double)bin->first >= p->steps.low && (double)bin->first <= p->steps.high) count_bin(p, bin);
  if (p->nans) td_text_print(&text, "NaN at step %lld", (long long)p->nan_step);
  if (p->nans > 1) td_text_print(&text, " (%lld in all)", (long long)p->nans);
  add_note(&text, "%lld inf", p->rises);
  add_note(&text, p->options->logarithmic ? "%lld not above 0" : "%lld -inf", p->falls);
  add_note(&text, "%lld above", p->above);
  add_note(&text, "%lld below", p->below);
  if (text.length && !text.failed)
    write(p, p->area.left, p->raster->height - 8 * p->scale, TD_ALIGN_LEFT, text.data, &p->font,
          p->options->theme->warning);
  td_text_clear(&text);
}

// ---- frame ----

static double centre_of(double at) { return floor(at) + 0.5; } // of a pixel: lines there are sharp

static void draw_grid(picture *p, const td_tick *steps, int step_count, const td_tick *values, int value_count) {
  double width = fmax(1, floor(p->scale));
  for (int i = 0; i < step_count; i++) {
    double x = centre_of(p->area.left + steps[i].place * (p->area.right - p->area.left - 1));
    td_raster_stroke(p->raster, (td_point[]){{x, p->area.top}, {x, p->area.bottom}}, 2, width);
  }
  for (int i = 0; i < value_count; i++) {
    double y = centre_of(y_of(p, values[i].value));
    if (*values[i].label) td_raster_stroke(p->raster, (td_point[]){{p->area.left, y}, {p->area.right, y}}, 2, width);
  }
  paint(p, p->options->theme->grid, 1);
}

static void draw_frame(picture *p) {
  double width = fmax(1, floor(p->scale)), half = width / 2;
  double left = p->area.left - half, right = p->area.right + half, top = p->area.top - half, bottom = p->area.bottom + half;
  td_raster_stroke(p->raster, (td_point[]){{left, top}, {right, top}, {right, bottom}, {left, bottom}, {left, top}}, 5, width);
  paint(p, p->options->theme->frame, 1);
}

static void draw_step_ticks(picture *p, const td_tick *ticks, int count) {
  double width = fmax(1, floor(p->scale)), bottom = p->area.bottom, free_from = -1e9;
  for (int i = 0; i < count; i++) {
    double x = centre_of(p->area.left + ticks[i].place * (p->area.right - p->area.left - 1));
    double half = td_text_width(ticks[i].label, &p->font) / 2;
    td_raster_stroke(p->raster, (td_point[]){{x, bottom + width}, {x, bottom + 4 * p->scale}}, 2, width);
    paint(p, p->options->theme->frame, 1);
    if (x - half < free_from) continue;
    write(p, x, bottom + 17 * p->scale, TD_ALIGN_CENTRE, ticks[i].label, &p->font, p->options->theme->text);
    free_from = x + half + 6 * p->scale;
  }
}

static void draw_value_ticks(picture *p, const td_tick *ticks, int count) {
  double width = fmax(1, floor(p->scale)), left = p->area.left;
  for (int i = 0; i < count; i++) {
    double y = centre_of(y_of(p, ticks[i].value)), length = *ticks[i].label ? 4 : 2.5;
    td_raster_stroke(p->raster, (td_point[]){{left - width, y}, {left - length * p->scale, y}}, 2, width);
    paint(p, p->options->theme->frame, 1);
    write(p, left - 8 * p->scale, y + 4.5 * p->scale, TD_ALIGN_RIGHT, ticks[i].label, &p->font, p->options->theme->text);
  }
}

// ---- legend ----

typedef struct legend { double width, row, sample; } legend; // sample: length of the piece of line

static legend measure_legend(const picture *p) {
  legend l = {.row = 17 * p->scale, .sample = 24 * p->scale};
  for (int i = 0; i < p->count; i++) l.width = fmax(l.width, td_text_width(p->curves[i]->name, &p->font));
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
  double inset = 8 * p->scale, left = p->area.left + inset, top = p->area.top + inset;
  double right = p->area.right - inset - width, bottom = p->area.bottom - inset - height;
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
  else td_raster_stroke(p->raster, ends, 2, 2 * p->scale);
  if (!is_smoothed(p) && td_curve_points(p->curves[curve]) <= FEW_POINTS)
    td_raster_disc(p->raster, (td_point){x + length / 2, y}, 2.3 * p->scale);
  paint(p, p->styles[curve].rgb, 1);
}

static void draw_legend(picture *p) {
  legend l = measure_legend(p);
  double height = l.row * p->count + 8 * p->scale, room = p->area.bottom - p->area.top - 16 * p->scale;
  if (height > room || l.width > p->area.right - p->area.left - 16 * p->scale) return; // there is no room for one
  td_point at = choose_corner(p, l.width, height);
  td_raster_box(p->raster, at.x, at.y, at.x + l.width, at.y + height);
  paint(p, p->options->theme->paper, 0.82);
  td_point outline[] = {{at.x, at.y}, {at.x + l.width, at.y}, {at.x + l.width, at.y + height}, {at.x, at.y + height}, {at.x, at.y}};
  for (int i = 0; i < 5; i++) outline[i] = (td_point){centre_of(outline[i].x), centre_of(outline[i].y)};
  td_raster_stroke(p->raster, outline, 5, fmax(1, floor(p->scale)));
  paint(p, p->options->theme->grid, 1);
  for (int i = 0; i < p->count; i++) {
    double y = at.y + 4 * p->scale + l.row * (i + 0.5), x = at.x + 8 * p->scale;
    draw_sample(p, i, x, centre_of(y), l.sample);
    write(p, x + l.sample + 8 * p->scale, y + 4 * p->scale, TD_ALIGN_LEFT, p->curves[i]->name, &p->font,
          p->options->theme->text);
  }
}

// ---- all of it ----

static void lay_out(picture *p, double label_width) {
  double s = p->scale;
  int left = (int)ceil(label_width + 14 * s), top = (int)((p->options->title ? 34 : 14) * s);
  p->area = (td_box){left, top, p->raster->width - (int)(16 * s), p->raster->height - (int)(42 * s)};
  if (p->area.right - p->area.left < 8 || p->area.bottom - p->area.top < 8) // a tiny picture is all area
    p->area = (td_box){1, 1, p->raster->width - 1, p->raster->height - 1};
}

static bool gather(picture *p) {
  bool ok = true;
  p->steps = td_series_steps(p->curves, p->count, &p->options->range, &p->no_points);
  if (!p->options->range.is_cut && !p->no_points && p->steps.high - p->steps.low > 1) {
    double room = (p->steps.high - p->steps.low) * 0.02;
    p->steps = (td_axis){.low = p->steps.low - room, .high = p->steps.high + room};
  }
  for (int i = 0; i < p->count; i++) td_series_clear(&p->series[i]);
  for (int i = 0; ok && i < p->count; i++)
    ok = td_series_start(&p->series[i], p->curves[i], &p->steps, columns_of(p), p->options->smoothing);
  if (!ok) return false;
  p->values = td_series_values(p->series, p->count, &p->options->range, p->options->logarithmic, false, 0.05, &p->empty);
  return true;
}

static double widest(const picture *p, const td_tick *ticks, int count) {
  double width = 0;
  for (int i = 0; i < count; i++) width = fmax(width, td_text_width(ticks[i].label, &p->font));
  return width;
}

static void draw_words(picture *p) {
  const td_picture_theme *theme = p->options->theme;
  double middle = (p->area.left + p->area.right) / 2.0;
  const char *word = p->no_points ? "no points" : p->empty ? "no finite value" : NULL;
  if (p->options->title) write(p, middle, 22 * p->scale, TD_ALIGN_CENTRE, p->options->title, &p->title, theme->text);
  write(p, p->area.right, p->raster->height - 8 * p->scale, TD_ALIGN_RIGHT, p->options->steps_label, &p->font, theme->faint);
  if (word) write(p, middle, (p->area.top + p->area.bottom) / 2.0, TD_ALIGN_CENTRE, word, &p->font, theme->faint);
}

static bool draw(picture *p) {
  td_tick steps[TD_TICKS_MAX], values[TD_TICKS_MAX];
  lay_out(p, 40 * p->scale);
  if (!gather(p)) return false;
  int most_values = (int)((p->area.bottom - p->area.top) / (44 * p->scale));
  int value_count = p->empty ? 0 : td_axis_ticks(&p->values, most_values, false, values);
  lay_out(p, widest(p, values, value_count));
  if (!gather(p)) return false;
  int most_steps = (int)((p->area.right - p->area.left) / (80 * p->scale));
  int step_count = p->no_points ? 0 : td_axis_ticks(&p->steps, most_steps, true, steps);
  p->points = td_memory_new((2 * (size_t)columns_of(p) + 4) * sizeof *p->points);
  if (!p->points) return false;
  draw_grid(p, steps, step_count, values, value_count);
  td_raster_clip(p->raster, p->area);
  for (int i = 0; i < p->count; i++) draw_curve(p, i);
  for (int i = 0; i < p->count; i++) draw_odd(p, i);
  td_raster_clip(p->raster, (td_box){0, 0, p->raster->width, p->raster->height});
  draw_frame(p);
  draw_step_ticks(p, steps, step_count);
  draw_value_ticks(p, values, value_count);
  draw_words(p);
  if (!p->no_points) draw_legend(p);
  draw_notes(p);
  return true;
}

bool td_picture_curves(td_raster *raster, const td_curve *const *curves, int count, const td_picture_options *options) {
  int width = (int)lround(options->width * options->scale), height = (int)lround(options->height * options->scale);
  picture p = {.raster = raster, .options = options, .curves = curves, .count = count, .scale = options->scale};
  double weight = options->theme->weight * p.scale;
  p.font = (td_font){p.scale, weight};
  p.title = (td_font){1.3 * p.scale, 1.3 * weight};
  choose_styles(&p);
  bool ok = td_raster_start(raster, width, height, options->theme->paper) && draw(&p);
  for (int i = 0; i < count; i++) td_series_clear(&p.series[i]);
  td_memory_free(p.points);
  if (!ok) td_raster_clear(raster);
  return ok;
}
