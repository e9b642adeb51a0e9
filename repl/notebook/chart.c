// See chart.h. Steps and values become dots of the first curve, or cells of the others; lines join points that follow
// each other with no NaN or infinity between them.
#include "repl/notebook/chart.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "repl/language/source.h"

static const char marks[2][TD_CHART_CURVES][4] = {{"*", "x", "o", "+", "#", "@"}, {"⠒", "x", "o", "+", "#", "@"}};

typedef struct chart {
  int columns, rows;
  int across, down; // dots in a cell
  bool unicode, logarithmic, mean;
  double first, last; // steps
  double low, high; // values, or their logarithms; low > high: none is finite
  uint8_t dots[TD_CHART_ROWS][TD_CHART_COLUMNS]; // braille's bits, or 1 for a cell of the first curve
  char over[TD_CHART_ROWS][TD_CHART_COLUMNS]; // the mark of another curve, or of an infinity
  bool nan[TD_CHART_COLUMNS];
} chart;

// ---- scales ----

static int place(double fraction, int count) {
  int at = (int)lround(fraction * (count - 1));
  return at < 0 ? 0 : at >= count ? count - 1 : at;
}

static int column_of(const chart *c, int64_t step, int across) {
  return c->last > c->first ? place(((double)step - c->first) / (c->last - c->first), c->columns * across) : 0;
}

static int row_of(const chart *c, double value, int down) {
  double span = c->high - c->low;
  bool huge = isinf(span); // halves have a difference
  double fraction = huge ? (c->high / 2 - value / 2) / (c->high / 2 - c->low / 2) : (c->high - value) / span;
  return place(fraction, c->rows * down);
}

// ---- bins as they are shown ----

static void take_logarithms(td_curve_bin *bin) {
  double mean = bin->finite ? bin->sum / bin->finite : 0;
  if (bin->finite && bin->low <= 0) bin->odd |= TD_CURVE_FALLS;
  if (bin->finite && bin->high <= 0) {
    *bin = (td_curve_bin){.first = bin->first, .last = bin->last, .low = INFINITY, .high = -INFINITY, .odd = bin->odd};
    return;
  }
  bin->high = log10(bin->high);
  bin->low = bin->low > 0 ? log10(bin->low) : bin->high;
  bin->sum = bin->finite * (mean > 0 ? log10(mean) : bin->high);
}

// The bin at *n, with those behind it that the same column means. false: there is none.
static bool next_bin(const chart *c, const td_curve *curve, int64_t *n, td_curve_bin *bin) {
  if (*n == curve->bin_count) return false;
  *bin = curve->bins[(*n)++];
  if (c->mean) {
    int column = column_of(c, bin->first, c->across);
    while (*n < curve->bin_count && column_of(c, curve->bins[*n].first, c->across) == column)
      td_curve_merge(bin, &curve->bins[(*n)++]);
    if (bin->finite) bin->low = bin->high = bin->sum / bin->finite;
  }
  if (c->logarithmic) take_logarithms(bin);
  return true;
}

static void find_steps(chart *c, const td_curve *const *curves, int count) {
  c->first = INFINITY;
  c->last = -INFINITY;
  for (int i = 0; i < count; i++) {
    if (!curves[i]->bin_count) continue;
    c->first = fmin(c->first, (double)curves[i]->bins[0].first);
    c->last = fmax(c->last, (double)curves[i]->bins[curves[i]->bin_count - 1].last);
  }
}

static void find_values(chart *c, const td_curve *const *curves, int count) {
  td_curve_bin bin;
  c->low = INFINITY;
  c->high = -INFINITY;
  for (int i = 0; i < count; i++)
    for (int64_t n = 0; next_bin(c, curves[i], &n, &bin);) {
      c->low = fmin(c->low, bin.low);
      c->high = fmax(c->high, bin.high);
    }
  if (c->low != c->high) return;
  double room = c->low != 0 ? fabs(c->low) * 0.1 : 1; // a flat curve runs through the middle
  c->high = fmin(c->high + room, 1.7e308);
  c->low = fmax(c->low - room, -1.7e308);
}

// ---- dots ----

static void set_dot(chart *c, int x, int y) {
  static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  uint8_t bit = c->unicode ? bits[y % 4][x % 2] : 1;
  c->dots[y / c->down][x / c->across] |= bit;
}

static void draw_line(chart *c, int x, int y, int to_x, int to_y) { // Bresenham's
  int dx = abs(to_x - x), dy = -abs(to_y - y), step_x = x < to_x ? 1 : -1, step_y = y < to_y ? 1 : -1;
  for (int error = dx + dy;;) {
    set_dot(c, x, y);
    if (x == to_x && y == to_y) return;
    int twice = 2 * error;
    if (twice >= dy) error += dy, x += step_x;
    if (twice <= dx) error += dx, y += step_y;
  }
}

static void draw_first(chart *c, const td_curve *curve) {
  bool joined = false;
  int from_x = 0, from_y = 0;
  td_curve_bin bin;
  for (int64_t n = 0; next_bin(c, curve, &n, &bin);) {
    if (bin.finite) {
      int x = column_of(c, bin.first, c->across);
      int low = row_of(c, bin.low, c->down), high = row_of(c, bin.high, c->down);
      int y = row_of(c, bin.sum / bin.finite, c->down);
      draw_line(c, x, low, x, high);
      if (joined) draw_line(c, from_x, from_y, x, y);
      from_x = x;
      from_y = y;
    }
    joined = bin.finite && !bin.odd;
  }
}

static void draw_marks(chart *c, const td_curve *curve, char mark) {
  td_curve_bin bin;
  for (int64_t n = 0; next_bin(c, curve, &n, &bin);) {
    if (!bin.finite) continue;
    int x = column_of(c, bin.first, 1);
    for (int y = row_of(c, bin.high, 1); y <= row_of(c, bin.low, 1); y++) c->over[y][x] = mark;
  }
}

static void draw_odd(chart *c, const td_curve *curve) {
  td_curve_bin bin;
  for (int64_t n = 0; next_bin(c, curve, &n, &bin);) {
    int x = column_of(c, bin.first, 1);
    if (bin.odd & TD_CURVE_NAN) c->nan[x] = true;
    if (bin.odd & TD_CURVE_RISES) c->over[0][x] = '^';
    if (bin.odd & TD_CURVE_FALLS) c->over[c->rows - 1][x] = 'v';
  }
}

// ---- text ----

static void end_line(td_text *text) { // without spaces at its end
  while (text->length && text->data[text->length - 1] == ' ') text->data[--text->length] = 0;
  td_text_add_char(text, '\n');
}

static void add_cell(const chart *c, td_text *text, int row, int column) {
  uint8_t dots = c->dots[row][column];
  char over = c->over[row][column];
  if (over || !dots) td_text_add_char(text, over ? over : ' ');
  else if (!c->unicode) td_text_add(text, marks[0][0]);
  else {
    char braille[] = {(char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f)), 0}; // U+2800 + dots
    td_text_add(text, braille);
  }
}

static const char *word_for(const chart *c) { // instead of a curve; NULL: there is one
  return c->first > c->last ? "no points" : c->low > c->high ? "no finite value" : NULL;
}

static void add_row(const chart *c, td_text *text, int row, const char *label, int width) {
  const char *word = row == c->rows / 2 ? word_for(c) : NULL;
  td_text_print(text, "%*s %s", width, label, c->unicode ? (*label ? "┤" : "│") : "|");
  if (word) td_text_print(text, "  %s", word);
  for (int column = word ? 2 + (int)strlen(word) : 0; column < c->columns; column++) add_cell(c, text, row, column);
  end_line(text);
}

static void add_foot(const chart *c, td_text *text, int width) {
  char first[24] = "", last[24] = "";
  td_text_print(text, "%*s %s", width, "", c->unicode ? "└" : "+");
  for (int column = 0; column < c->columns; column++) td_text_add(text, c->nan[column] ? "!" : c->unicode ? "─" : "-");
  td_text_add_char(text, '\n');
  if (c->first > c->last) return;
  snprintf(first, sizeof first, "%.12g", c->first);
  if (c->last > c->first) snprintf(last, sizeof last, "%.12g", c->last);
  td_text_print(text, "%*s  %s%*s", width, "", first, c->columns - (int)strlen(first), last);
  end_line(text);
}

static void add_extremes(td_text *text, const td_curve *curve) {
  const td_curve_bin *least = NULL, *most = NULL;
  for (const td_curve_bin *bin = curve->bins; bin < curve->bins + curve->bin_count; bin++) {
    if (bin->finite && (!least || bin->low < least->low)) least = bin;
    if (bin->finite && (!most || bin->high > most->high)) most = bin;
  }
  if (!least) return;
  td_text_print(text, ", least %.6g at %lld, most %.6g at %lld", least->low, (long long)least->first, most->high,
                (long long)most->first);
}

static void add_legend(const chart *c, td_text *text, const td_curve *curve, int index) {
  int64_t points = td_curve_points(curve);
  td_text_print(text, "%s ", marks[c->unicode][index]);
  td_source_print(text, curve->name, strlen(curve->name));
  td_text_print(text, ": %lld point%s", (long long)points, points == 1 ? "" : "s");
  if (points) td_text_print(text, ", last %.6g at %lld", curve->last.value, (long long)curve->last.step);
  add_extremes(text, curve);
  td_text_add_char(text, '\n');
}

static double mean_after(const td_curve *curve, int64_t step) { // NaN: there is no finite value
  double sum = 0;
  int64_t count = 0;
  for (int64_t n = curve->bin_count; n-- && (curve->bins[n].first > step || !count);) {
    sum += curve->bins[n].sum;
    count += curve->bins[n].finite;
  }
  return count ? sum / (double)count : (double)NAN;
}

static void add_gap(td_text *text, const td_curve *train, const td_curve *validation) {
  int64_t before = validation->bin_count > 1 ? validation->bins[validation->bin_count - 2].last : INT64_MIN;
  td_text_print(text, "gap %s - %s: %.6g\n", validation->name, train->name,
                validation->last.value - mean_after(train, before));
}

static void add_gaps(td_text *text, const td_curve *const *curves, int count) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < count; k++) {
      bool pair = strncmp(curves[k]->name, "val_", 4) == 0 && strcmp(curves[k]->name + 4, curves[i]->name) == 0;
      if (pair && curves[i]->bin_count && curves[k]->bin_count) add_gap(text, curves[i], curves[k]);
    }
}

static void add_key(const chart *c, td_text *text) {
  bool nan = false, infinite = false;
  for (int x = 0; x < c->columns; x++) {
    nan |= c->nan[x];
    infinite |= c->over[0][x] == '^' || c->over[c->rows - 1][x] == 'v';
  }
  if (nan) td_text_add(text, "! NaN\n");
  if (infinite) td_text_add(text, c->logarithmic ? "^ inf  v -inf, or not above 0\n" : "^ inf  v -inf\n");
}

static void label_print(const chart *c, double value, char label[32]) {
  snprintf(label, 32, "%.4g", c->logarithmic ? pow(10, value) : value);
}

void td_chart_print(td_text *text, const td_curve *const *curves, int count, const td_chart_options *options) {
  bool unicode = options->unicode;
  chart c = {.columns = options->columns,
             .rows = options->rows,
             .across = unicode ? 2 : 1,
             .down = unicode ? 4 : 1,
             .unicode = unicode,
             .logarithmic = options->logarithmic,
             .mean = options->mean};
  char high[32] = "", low[32] = "";
  find_steps(&c, curves, count);
  find_values(&c, curves, count);
  if (c.low <= c.high) {
    draw_first(&c, curves[0]);
    for (int i = 1; i < count; i++) draw_marks(&c, curves[i], marks[0][i][0]);
    label_print(&c, c.high, high);
    label_print(&c, c.low, low);
  }
  for (int i = 0; i < count; i++) draw_odd(&c, curves[i]);
  int width = (int)(strlen(high) > strlen(low) ? strlen(high) : strlen(low));
  for (int row = 0; row < c.rows; row++) add_row(&c, text, row, row == 0 ? high : row == c.rows - 1 ? low : "", width);
  add_foot(&c, text, width);
  for (int i = 0; i < count; i++) add_legend(&c, text, curves[i], i);
  add_gaps(text, curves, count);
  add_key(&c, text);
}
