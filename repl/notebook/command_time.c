// %time and %timeit.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "repl/notebook/commands.h"

static double wall(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void time_print(td_text *text, double seconds) {
  static const struct { double unit; const char *name; } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  size_t i = 0;
  while (i < 3 && seconds < units[i].unit) i++;
  td_text_print(text, "%.3g %s", seconds / units[i].unit, units[i].name);
}

static td_value run_time(td_interpreter *I, const char *statement) {
  if (!*statement) return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%time needs a statement");
  double start = wall(), spent = processor();
  td_value value = td_evaluate_text(I, statement, "%time");
  if (td_is_nil(value)) return TD_NIL;
  td_text text = {0};
  td_text_add(&text, "CPU ");
  time_print(&text, processor() - spent);
  td_text_add(&text, ", wall ");
  time_print(&text, wall() - start);
  td_text_add_char(&text, '\n');
  td_output_text(I, &text);
  return value;
}

// ---- %timeit ----

enum { RUNS = 7 };

// A function that runs the statement n times and gives the seconds, so that the loop itself is measured in the
// language.
static bool define_loop(td_interpreter *I, const char *statement) {
  td_text text = {0};
  td_text_add(&text, "def _timeit_loop_(_timeit_n_, _timeit_clock_):\n  _timeit_start_ = _timeit_clock_()\n  for "
                     "_timeit_i_ in range(_timeit_n_):\n    ");
  for (const char *at = statement; *at; at++) {
    td_text_add_char(&text, *at);
    if (*at == '\n') td_text_add(&text, "    ");
  }
  td_text_add(&text, "\n  return _timeit_clock_() - _timeit_start_\n");
  td_value done = text.failed ? td_raise_memory(I) : td_evaluate_text(I, text.data, "%timeit");
  td_text_clear(&text);
  td_unref(done);
  return !td_is_nil(done);
}

static double run_loop(td_interpreter *I, int64_t n) {
  char call[128];
  snprintf(call, sizeof call, "_timeit_loop_(%lld, _timeit_perf_)", (long long)n);
  td_value value = td_evaluate_text(I, call, "%timeit");
  double seconds = value.tag == TD_TAG_DOUBLE ? value.f : -1;
  td_unref(value);
  return seconds;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bool prepare(td_interpreter *I, const char *statement) {
  td_value done = td_evaluate_text(I, "from time import perf_counter as _timeit_perf_", "%timeit");
  td_unref(done);
  return !td_is_nil(done) && define_loop(I, statement);
}

static void forget(td_interpreter *I) {
  td_unref(td_evaluate_text(I, "del _timeit_loop_, _timeit_perf_", "%timeit"));
}

static td_value run_timeit(td_interpreter *I, const char *statement) {
  if (!*statement) return td_raise(I, TD_CLASS_SYNTAX_ERROR, "%%timeit needs a statement");
  if (!prepare(I, statement)) return TD_NIL;
  int64_t n = 1;
  double seconds = run_loop(I, n);
  while (seconds >= 0 && seconds < 0.02 && n < 1000000000) seconds = run_loop(I, n *= seconds < 0.002 ? 10 : 4);
  double times[RUNS] = {0};
  int runs = 0, wanted = seconds > 0.3 ? 3 : RUNS;
  for (; seconds >= 0 && runs < wanted; runs++)
    if ((times[runs] = run_loop(I, n) / (double)n) < 0) break;
  if (runs < wanted) return TD_NIL;
  forget(I);
  qsort(times, (size_t)runs, sizeof *times, ascending);
  td_text text = {0};
  time_print(&text, times[runs / 2]);
  td_text_add(&text, " a loop (median of ");
  td_text_print(&text, "%d runs of %lld; ", runs, (long long)n);
  time_print(&text, times[0]);
  td_text_add(&text, " to ");
  time_print(&text, times[runs - 1]);
  td_text_add(&text, ")\n");
  td_output_text(I, &text);
  return TD_NONE;
}

const td_command_row td_commands_time[] = {
    {"time", "%time STATEMENT", run_time, "Runs a statement once and says how long it took."},
    {"timeit", "%timeit STATEMENT", run_timeit, "Runs a statement many times and says how long one takes."},
    {NULL, NULL, NULL, NULL}};
