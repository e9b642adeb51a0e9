// See numbers.h.
#include "repl/screen/numbers.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "repl/notebook/chart.h"

enum { HISTOGRAM_COLUMNS = 48 };

int td_numbers_draw(const td_theme *theme, td_surface *surface, td_rect area, int row, const char *title,
                    const td_histogram *h) {
  if (!h->elements || row + 1 >= area.rows) return row;
  bool bad = h->nans > 0 || h->infinities > 0;
  if (bad)
    td_surface_print(surface, area.row + row, area.column, area.columns, td_theme_style(theme, TD_LOOK_FAILED),
                     "%s: %lld NaN, %lld infinities of %lld", title, (long long)h->nans, (long long)h->infinities,
                     (long long)h->elements);
  else
    td_surface_print(surface, area.row + row, area.column, area.columns, td_theme_style(theme, TD_LOOK_FAINT),
                     "%s: %.4g to %.4g, mean %.4g, %.0f%% zeros%s", title, h->least, h->most, h->mean,
                     100.0 * (double)h->zeros / (double)h->elements, h->sampled ? " (sampled)" : "");
  row++;
  int rows = area.rows - row < TD_NUMBERS_ROWS - 1 ? area.rows - row : TD_NUMBERS_ROWS - 1;
  td_chart_cells cells;
  td_chart_histogram bars = {h->least, h->most, TD_HISTOGRAM_BINS, h->count, h->nans, h->infinities, 0};
  if (!td_chart_cells_start(&cells, area.columns < HISTOGRAM_COLUMNS ? area.columns : HISTOGRAM_COLUMNS, rows))
    return row;
  td_histogram_cells(&cells, &bars, theme->glyphs, false, TD_CELL_CURVE);
  td_theme_chart(theme, surface, area.row + row, area.column, &cells);
  td_chart_cells_clear(&cells);
  return row + rows;
}

int td_lines_draw(td_surface *surface, td_rect area, int row, int most, const char *text, td_style style) {
  for (int i = 0; i < most && row < area.rows && *text; i++) {
    size_t length = strcspn(text, "\n");
    td_surface_text(surface, area.row + row++, area.column, area.columns, text, length, style);
    text += length + (text[length] == '\n');
  }
  return row;
}

int td_words_draw(td_surface *surface, td_rect area, int row, const char *text, td_style style) {
  td_wrapped words = {.by = TD_WRAP_WORDS};
  for (; td_wrap_next(text, strlen(text), area.columns, &words); row++)
    td_surface_text(surface, area.row + row, area.column, area.columns, text + words.begin, words.end - words.begin,
                    style);
  return row;
}

void td_numbers_figure(char text[16], double value) {
  double size = fabs(value);
  const char *format = size >= 1e4 || (size > 0 && size < 1e-3) ? "%.1e" : size >= 0.1 ? "%.4g" : "%.3g";
  if (isnan(value)) *text = 0;
  else snprintf(text, 16, format, value);
}

void td_numbers_rough(char text[16], double value) {
  if (isnan(value)) *text = 0;
  else snprintf(text, 16, "~%.2g", value);
}
