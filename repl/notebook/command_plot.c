// %plot, %runs: curves of this session, and of the event files that runs left.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/notebook/charset.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/commands.h"
#include "repl/notebook/curve_choice.h"
#include "repl/notebook/report_runs.h"

enum { COLUMNS = 80, ROWS = 16 };

// ---- %plot ----

// The whole text, where a curve has that name; else words, or texts in quotes.
static bool choose_all(td_interpreter *I, td_curve_choice *c, const char *arguments) {
  if (td_curve_find(I, arguments)) return td_curve_choose(I, c, arguments);
  bool ok = true;
  while (ok && *arguments) {
    bool quoted = *arguments == '"' || *arguments == '\'';
    const char end[] = {quoted ? *arguments : ' ', 0};
    size_t length = strcspn(arguments += quoted, end);
    td_text name = {0};
    td_text_add_bytes(&name, arguments, length);
    if (name.failed) td_raise_memory(I);
    ok = name.data && !name.failed && td_curve_choose(I, c, name.data);
    if (!name.data) td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%plot: a curve's name is empty");
    td_text_clear(&name);
    arguments += length;
    arguments += strspn(arguments, quoted ? "\"' " : " ");
  }
  return ok;
}

static td_value list_curves(td_interpreter *I) {
  td_text text = {0};
  for (int i = 0; i < td_curve_count(I); i++) {
    const td_curve *curve = td_curve_at(I, i);
    size_t start = text.length;
    td_source_print(&text, curve->name, strlen(curve->name));
    td_text_pad(&text, start + 20, ' ');
    long long points = td_curve_points(curve);
    td_text_print(&text, " %8lld point%s", points, points == 1 ? "" : "s");
    if (points) td_text_print(&text, ", last %.6g at %lld", curve->last.value, (long long)curve->last.step);
    td_text_add_char(&text, '\n');
  }
  if (!text.length) td_text_add(&text, "no curve yet: plot(\"loss\", value) adds a point to one, and fit does\n");
  td_output_text(I, &text);
  return TD_NONE;
}

// Takes a word such as --log off the arguments' front.
static bool take_option(const char **arguments, const char *option) {
  size_t length = strlen(option);
  if (strncmp(*arguments, option, length) != 0 || ((*arguments)[length] && (*arguments)[length] != ' ')) return false;
  *arguments += length;
  *arguments += strspn(*arguments, " ");
  return true;
}

// "--smooth 0.6": false: exception.
static bool take_smoothing(td_interpreter *I, const char **arguments, double *smoothing) {
  char *end;
  *smoothing = strtod(*arguments, &end);
  bool ok = end != *arguments && (!*end || *end == ' ') && *smoothing >= 0 && *smoothing < 1;
  if (!ok) td_raise(I, TD_CLASS_VALUE_ERROR, "%%plot: --smooth needs a number from 0 to below 1");
  *arguments = end + strspn(end, " ");
  return ok;
}

static bool take_options(td_interpreter *I, const char **arguments, td_chart_options *options) {
  while (true) {
    if (take_option(arguments, "--log")) options->logarithmic = true;
    else if (take_option(arguments, "--mean")) options->mean = true;
    else if (take_option(arguments, "--ascii")) options->glyphs = TD_GLYPHS_ASCII;
    else if (!take_option(arguments, "--smooth")) return true;
    else if (!take_smoothing(I, arguments, &options->smoothing)) return false;
  }
}

static td_value run_plot(td_interpreter *I, const char *arguments) {
  td_chart_options options = {.glyphs = td_charset_unicode() ? TD_GLYPHS_BRAILLE : TD_GLYPHS_ASCII};
  if (!take_options(I, &arguments, &options)) return TD_NIL;
  if (!*arguments) return list_curves(I);
  td_curve_choice c = {.who = "%plot", .most = TD_CHART_CURVES};
  td_text text = {0};
  bool ok = choose_all(I, &c, arguments);
  if (ok) td_chart_print(&text, c.curves, c.count, COLUMNS, ROWS, &options);
  td_curve_choice_clear(&c);
  td_output_text(I, &text);
  return ok ? TD_NONE : TD_NIL;
}

// ---- %runs ----

static void print_run(const td_run_row *run, td_text *text) {
  td_source_print(text, run->path, strlen(run->path));
  if (run->problem) {
    td_text_add(text, "\n  ");
    td_source_print(text, run->problem, strlen(run->problem));
    td_text_add_char(text, '\n');
    return;
  }
  td_text_add(text, run->curves.count ? "\n" : "  no scalars\n");
  for (int64_t i = 0; i < run->curves.count; i++) {
    const td_event_curve *curve = &run->curves.curves[i];
    size_t start = text->length;
    td_text_add(text, "  ");
    td_source_print(text, curve->name, strlen(curve->name));
    td_text_pad(text, start + 24, ' ');
    td_text_print(text, " %6lld point%s", (long long)curve->count, curve->count == 1 ? "" : "s");
    if (curve->count)
      td_text_print(text, ", last %.6g at %lld", curve->points[curve->count - 1].value,
                    (long long)curve->points[curve->count - 1].step);
    td_text_add_char(text, '\n');
  }
}

static td_value run_runs(td_interpreter *I, const char *path) {
  td_report_runs *report = (td_report_runs *)td_report_runs_make(I, path);
  if (!report) return TD_NIL;
  td_text text = {0};
  for (int64_t i = 0; i < report->count; i++) print_run(&report->rows[i], &text);
  if (!report->count)
    td_text_print(&text, "no runs in %s: summary_writer(\"runs/NAME\") and the callback TensorBoard write there\n",
                  *path ? path : "runs");
  report->payload.release(&report->payload);
  td_output_text(I, &text);
  td_text_clear(&text);
  return TD_NONE;
}

const td_command_row td_commands_plot[] = {
    {"plot", "%plot [--log] [--mean] [--smooth NUMBER] [--ascii] [CURVE ...]", run_plot,
     "Draws curves on one chart: names given to plot(), or FOLDER:SCALAR of event files. Without one, lists them. "
     "--mean draws the mean of a column's points, not their span; --smooth 0.6 their running mean over the points."},
    {"runs", "%runs [FOLDER]", run_runs, "The runs under runs/ (or FOLDER): their scalars and last values."},
    {NULL, NULL, NULL, NULL}};
