// What stands beside a chart as text: legend, notes, gaps; and all of it together for %plot.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
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

// ---- the legend ----

typedef struct part { // of a legend, behind the name
  char text[64];
  const char *before;  // what stands before it; of the first that is there ":" does
  int worth;           // the least worth goes first
} part;

typedef struct parts { part at[6]; int count; } parts;

__attribute__((format(printf, 4, 5))) static void add_part(parts *p, int worth, const char *before, const char *format,
                                                           ...) {
  part *new = &p->at[p->count++];
  va_list list;
  va_start(list, format);
  vsnprintf(new->text, sizeof new->text, format, list);
  va_end(list);
  new->before = before;
  new->worth = worth;
}

static void add_extremes(parts *p, const td_curve *curve) {
  const td_curve_bin *least = NULL, *most = NULL;
  for (const td_curve_bin *bin = curve->bins; bin < curve->bins + curve->bin_count; bin++) {
    if (bin->finite && (!least || bin->low < least->low)) least = bin;
    if (bin->finite && (!most || bin->high > most->high)) most = bin;
  }
  if (!least) return;
  add_part(p, 3, ",", " least %.6g at %lld", least->low, (long long)least->first);
  add_part(p, 2, ",", " most %.6g at %lld", most->high, (long long)most->first);
}

static void add_smoothed(parts *p, const td_curve *curve, const td_chart_options *options, int64_t step) {
  double mean = options->smoothing > 0 ? td_series_smoothed(curve, options->smoothing, step) : (double)NAN;
  if (isfinite(mean)) add_part(p, 5, ",", " smoothed %.4g", mean);
}

static void add_cursor(parts *p, const td_curve *curve, const td_chart_options *options) {
  td_curve_point at;
  if (!td_chart_value_at(curve, options->cursor, &at)) {
    add_part(p, 6, "", " nothing yet");
    return;
  }
  add_part(p, 6, "", " %.6g", at.value);
  add_smoothed(p, curve, options, options->cursor);
  add_part(p, 4, "", " at %lld", (long long)at.step);
}

static void add_whole(parts *p, const td_curve *curve, const td_chart_options *options) {
  long long points = td_curve_points(curve);
  if (!points || options->smoothing <= 0) add_part(p, 1, "", " %lld point%s", points, points == 1 ? "" : "s");
  if (!points) return;
  add_part(p, 6, ",", " last %.6g", curve->last.value);
  add_smoothed(p, curve, options, curve->last.step);
  add_part(p, 4, "", " at %lld", (long long)curve->last.step);
  add_extremes(p, curve);
}

static int parts_columns(const parts *p) {
  size_t columns = 0;
  for (int i = 0; i < p->count; i++) columns += strlen(i ? p->at[i].before : ":") + strlen(p->at[i].text);
  return (int)columns;
}

static void drop_least(parts *p) {
  int least = 0;
  for (int i = 1; i < p->count; i++)
    if (p->at[i].worth < p->at[least].worth) least = i;
  memmove(&p->at[least], &p->at[least + 1], (size_t)(--p->count - least) * sizeof *p->at);
}

void td_chart_legend(td_text *text, const td_curve *curve, const td_chart_options *options, int columns) {
  enum { NAME_LEAST = 8 };
  parts p = {0};
  size_t length = strlen(curve->name);
  int name = td_source_print(NULL, curve->name, length), least = name < NAME_LEAST ? name : NAME_LEAST;
  if (options->has_cursor) add_cursor(&p, curve, options);
  else add_whole(&p, curve, options);
  while (columns && p.count > 1 && parts_columns(&p) + name > columns) drop_least(&p);
  int room = columns ? columns - parts_columns(&p) : name;
  const char *ellipsis = options->glyphs == TD_GLYPHS_ASCII ? "~" : "…";
  td_source_fit(text, curve->name, length, room > least ? room : least, ellipsis);
  for (int i = 0; i < p.count; i++) td_text_print(text, "%s%s", i ? p.at[i].before : ":", p.at[i].text);
}

// ---- notes ----

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
  td_chart_legend(text, curve, options, 0);
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
