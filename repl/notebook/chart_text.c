// What stands beside a chart as text: legend, notes, gaps; and all of it together for %plot.
#include <math.h>
#include <string.h>
#include "repl/language/source.h"
#include "repl/notebook/chart.h"

bool td_chart_value_at(const td_curve *curve, int64_t step, td_curve_point *point) {
  int64_t from = 0, to = curve->bin_count; // the first bin behind step lies in [from, to]
  while (from < to) {
    int64_t middle = from + (to - from) / 2;
    if (curve->bins[middle].first <= step) from = middle + 1;
    else to = middle;
  }
  if (!from) return false;
  *point = (td_curve_point){curve->bins[from - 1].first, td_curve_value(&curve->bins[from - 1])};
  return true;
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

static void add_smoothed(td_text *text, const td_curve *curve, const td_chart_options *options, int64_t step) {
  double mean = options->smoothing > 0 ? td_series_smoothed(curve, options->smoothing, step) : (double)NAN;
  if (isfinite(mean)) td_text_print(text, ", smoothed %.4g", mean);
}

void td_chart_legend(td_text *text, const td_curve *curve, const td_chart_options *options) {
  long long points = td_curve_points(curve);
  td_curve_point at;
  td_source_print(text, curve->name, strlen(curve->name));
  if (options->has_cursor) {
    bool known = td_chart_value_at(curve, options->cursor, &at);
    if (known) td_text_print(text, ": %.6g", at.value);
    else td_text_add(text, ": nothing yet");
    if (known) add_smoothed(text, curve, options, options->cursor);
    if (known) td_text_print(text, " at %lld", (long long)at.step);
    return;
  }
  bool smooths = points && options->smoothing > 0;
  if (!smooths) td_text_print(text, ": %lld point%s", points, points == 1 ? "" : "s");
  if (!points) return;
  td_text_print(text, "%s last %.6g", smooths ? ":" : ",", curve->last.value);
  add_smoothed(text, curve, options, curve->last.step);
  td_text_print(text, " at %lld", (long long)curve->last.step);
  add_extremes(text, curve);
}

static void add_note(td_text *text, const td_chart_view *view, const char *mark, int64_t count, const char *what) {
  if (!count) return;
  if (text->length) td_text_add(text, "  ");
  td_text_print(text, "%s %s%lld %s", mark, view->at_least ? ">=" : "", (long long)count, what);
}

void td_chart_notes(td_text *text, const td_chart_view *view, const td_chart_options *options) {
  bool ascii = options->glyphs == TD_GLYPHS_ASCII;
  td_text notes = {0};
  if (view->nans) td_text_print(&notes, "! NaN at step %lld", (long long)view->nan_step);
  if (view->nans > 1) td_text_print(&notes, " (%s%lld in all)", view->at_least ? ">=" : "", (long long)view->nans);
  add_note(&notes, view, "^", view->rises, "inf");
  add_note(&notes, view, "v", view->falls, options->logarithmic ? "-inf or not above 0" : "-inf");
  add_note(&notes, view, ascii ? "'" : "↑", view->above, "above");
  add_note(&notes, view, ascii ? "," : "↓", view->below, "below");
  if (notes.length) td_text_add_bytes(text, notes.data, notes.length);
  text->failed |= notes.failed;
  td_text_clear(&notes);
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

static void add_legend(td_text *text, const td_curve *curve, int index, const td_chart_options *options) {
  char mark = td_chart_mark(options->glyphs, index);
  if (mark == ' ') td_text_add(text, "⠒ ");
  else td_text_print(text, "%c ", mark);
  td_chart_legend(text, curve, options);
  td_text_add_char(text, '\n');
}

void td_chart_print(td_text *text, const td_curve *const *curves, int count, int columns, int rows,
                    const td_chart_options *options) {
  td_chart_cells cells;
  td_chart_view view = {0};
  if (!td_chart_cells_start(&cells, columns, rows) || !td_chart_draw(&cells, curves, count, options, &view)) {
    text->failed = true;
  } else {
    td_chart_cells_print(text, &cells);
    for (int i = 0; i < count; i++) add_legend(text, curves[i], i, options);
    add_gaps(text, curves, count);
    size_t before = text->length;
    td_chart_notes(text, &view, options);
    if (text->length > before) td_text_add_char(text, '\n');
  }
  td_chart_cells_clear(&cells);
}
