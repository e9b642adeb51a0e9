// Bars in cells: a row of numbers as a sparkline, a histogram.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "repl/notebook/chart.h"

// ---- sparkline ----

typedef struct extremes {
  double low, high;
} extremes;

static extremes extremes_of(const double *numbers, int64_t count) {
  extremes e = {INFINITY, -INFINITY};
  for (int64_t i = 0; i < count; i++)
    if (isfinite(numbers[i])) {
      e.low = fmin(e.low, numbers[i]);
      e.high = fmax(e.high, numbers[i]);
    }
  return e;
}

static uint32_t bar_glyph(enum td_chart_glyphs glyphs, int eighths) { // 1 to 8
  static const char ascii[] = "..--==##";
  return glyphs == TD_GLYPHS_ASCII ? (uint32_t)ascii[eighths - 1] : (uint32_t)(0x2580 + eighths);
}

static int eighths_of(double number, extremes e) {
  double place = e.high > e.low ? (number / 2 - e.low / 2) / (e.high / 2 - e.low / 2) : 0.5;
  int eighths = 1 + (int)lround(place * 7);
  return eighths < 1 ? 1 : eighths > 8 ? 8 : eighths;
}

void td_sparkline(td_chart_cells *cells, int column, int row, int columns, const double *numbers, int64_t count,
                  enum td_chart_glyphs glyphs, uint8_t colour) {
  if (count > columns) {
    numbers += count - columns;
    count = columns;
  }
  extremes e = extremes_of(numbers, count);
  for (int64_t i = 0; i < count; i++) {
    double number = numbers[i];
    bool finite = isfinite(number);
    uint32_t glyph = finite             ? bar_glyph(glyphs, eighths_of(number, e))
                     : number != number ? '!'
                     : number > 0       ? '^'
                                        : 'v';
    td_chart_cells_put(cells, column + (int)i, row, glyph, finite ? colour : TD_CELL_MARK, finite ? 0 : TD_CELL_BOLD);
  }
}

// ---- histogram ----

static double height_of(int64_t count, int64_t most, bool logarithmic) {
  if (!most) return 0;
  return logarithmic ? log1p((double)count) / log1p((double)most) : (double)count / (double)most;
}

// The greatest count of the bins that column shows of so many columns; with fewer bins one takes several columns.
static int64_t count_at(const td_chart_histogram *h, int column, int columns) {
  int64_t first = h->count * column / columns, last = (h->count * (column + 1) - 1) / columns, most = 0;
  for (int64_t i = first; i <= last && i < h->count; i++) most = h->bins[i] > most ? h->bins[i] : most;
  return most;
}

static void draw_bar(td_chart_cells *cells, int column, int rows, double height, enum td_chart_glyphs glyphs,
                     uint8_t colour) {
  int eighths = (int)lround(height * rows * 8);
  if (height > 0 && eighths < 1) eighths = 1; // what is there shows
  for (int row = rows - 1; row >= 0 && eighths > 0; row--, eighths -= 8)
    td_chart_cells_put(cells, column, row, bar_glyph(glyphs, eighths < 8 ? eighths : 8), colour, 0);
}

static int64_t most_of(const td_chart_histogram *h) {
  int64_t most = 0;
  for (int64_t i = 0; i < h->count; i++) most = h->bins[i] > most ? h->bins[i] : most;
  return most;
}

static void draw_odd(td_chart_cells *cells, const td_chart_histogram *h, int row) {
  char text[96] = "";
  size_t length = 0;
  const struct {
    int64_t count;
    const char *format;
  } odd[] = {{h->nans, "! %lld NaN"}, {h->rises, "^ %lld inf"}, {h->falls, "v %lld -inf"}};
  for (int i = 0; i < 3; i++) {
    if (!odd[i].count) continue;
    if (length) length += (size_t)snprintf(text + length, sizeof text - length, "  ");
    length += (size_t)snprintf(text + length, sizeof text - length, odd[i].format, (long long)odd[i].count);
  }
  int column = cells->columns - (int)length;
  if (length) td_chart_cells_text(cells, column < 0 ? 0 : column, row, text, TD_CELL_MARK, TD_CELL_BOLD);
}

static void draw_edges(td_chart_cells *cells, const td_chart_histogram *h, int left) {
  char low[TD_TICK_LABEL], high[TD_TICK_LABEL];
  snprintf(low, sizeof low, "%.4g", h->low);
  snprintf(high, sizeof high, "%.4g", h->high);
  int row = cells->rows - 1, start = cells->columns - (int)strlen(high);
  td_chart_cells_text(cells, left, row, low, TD_CELL_PLAIN, 0);
  if (start > left + (int)strlen(low)) td_chart_cells_text(cells, start, row, high, TD_CELL_PLAIN, 0);
}

void td_histogram_cells(td_chart_cells *cells, const td_chart_histogram *h, enum td_chart_glyphs glyphs,
                        bool logarithmic, uint8_t colour) {
  char label[24];
  int64_t most = most_of(h);
  bool framed = cells->rows > 2;
  int length = snprintf(label, sizeof label, "%lld", (long long)most), left = 0;
  int rows = framed ? cells->rows - 1 : cells->rows;
  if (framed && cells->columns >= length + 11) left = length + 1;
  for (int column = left; h->count && column < cells->columns; column++)
    draw_bar(cells, column, rows, height_of(count_at(h, column - left, cells->columns - left), most, logarithmic),
             glyphs, colour);
  if (left) td_chart_cells_text(cells, 0, 0, label, TD_CELL_PLAIN, 0);
  if (framed && h->low <= h->high) draw_edges(cells, h, left);
  if (h->nans || h->rises || h->falls) draw_odd(cells, h, 0);
}
