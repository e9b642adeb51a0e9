// The module time: clocks and a sleep that Ctrl-C ends.
#include <errno.h>
#include <math.h>
#include <time.h>

#include "repl/language/builtins.h"

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int64_t nanoseconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// X(name, clock, sentence)
#define CLOCKS(X)                                                                                          \
  X(time, CLOCK_REALTIME, "Seconds since 1970, as a float.")                                               \
  X(perf_counter, CLOCK_MONOTONIC, "Seconds of the finest clock, for measuring how long something takes.") \
  X(monotonic, CLOCK_MONOTONIC, "Seconds of a clock that never goes back.")                                \
  X(process_time, CLOCK_PROCESS_CPUTIME_ID, "Seconds of processor time that the program has used.")
#define X(name, clock, doc)                                                                 \
  static td_value time_##name(td_interpreter *I, td_value self, td_value *arguments) {      \
    return (void)I, (void)self, (void)arguments, td_double(seconds_of(clock));              \
  }                                                                                         \
  static td_value time_##name##_ns(td_interpreter *I, td_value self, td_value *arguments) { \
    return (void)I, (void)self, (void)arguments, td_int(nanoseconds_of(clock));             \
  }
CLOCKS(X)
#undef X

static td_value time_sleep(td_interpreter *I, td_value self, td_value *arguments) {
  (void)self;
  bool ok;
  double seconds = td_to_double(I, arguments[0], &ok);
  if (!ok) return TD_NIL;
  if (seconds != seconds) return td_raise(I, TD_CLASS_VALUE_ERROR, "Invalid value NaN (not a number)");
  if (seconds < 0) return td_raise(I, TD_CLASS_VALUE_ERROR, "sleep length must be non-negative");
  if (seconds > 1e9) return td_raise(I, TD_CLASS_OVERFLOW_ERROR, "timestamp too large to convert to C _PyTime_t");
  td_output_flush(I);
  td_context *context = I->context;
  const double slice = 0.02; // how long an interrupt may wait
  for (double end = seconds_of(CLOCK_MONOTONIC) + seconds, left = seconds; left > 0;
       left = end - seconds_of(CLOCK_MONOTONIC)) {
    double now = left < slice ? left : slice;
    struct timespec pause = {.tv_nsec = (long)(now * 1e9)};
    td_context_leave(context);
    nanosleep(&pause, NULL);
    td_context_enter(context);
    if (td_interrupted(I)) return TD_NIL;
  }
  return td_interrupted(I) ? TD_NIL : TD_NONE;
}

static const td_method rows[] = {
#define X(name, clock, doc) \
  {#name, "()", time_##name, doc}, {#name "_ns", "()", time_##name##_ns, "As " #name ", in nanoseconds, as an int."},
    CLOCKS(X)
#undef X
        {"sleep", "(seconds, /)", time_sleep, "Waits that long; Ctrl-C ends it."},
    {NULL, NULL, NULL, NULL}};

bool td_time_register(td_interpreter *I) { return td_module_define(I, "time", rows) != NULL; }
