// The stream from the evaluator to its faces. The evaluator emits; faces render and send commands; no face reads the
// evaluator in another way. Kinds are rows with a default rendering, so a face need not know every kind.
#ifndef TD_LANGUAGE_EVENT_H
#define TD_LANGUAGE_EVENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(KIND, "fields used: meaning")
#define TD_EVENTS(X)                                                                                                   \
  X(CELL_STARTED, "cell; text: its source")                                                                            \
  X(OUTPUT, "text: what print wrote; stream: 1 stdout, 2 stderr")                                                      \
  X(VALUE, "cell; text: the value's printed form")                                                                     \
  X(PROGRESS, "id of the bar; level of nesting; text: label; detail: postfix; done, total (-1 unknown), seconds; final: bar is closed") \
  X(METRIC, "text: curve's name; points: some of its points, done: how many, in order") \
  X(IMAGE, "text: one-line description; detail: ASCII picture, or NULL; pixels, width, height: the picture")            \
  X(TAPE, "text: tape's name; done: records; total: bytes held")                                                       \
  X(WARNING, "text; detail: place")                                                                                    \
  X(LOG, "level: one of td_log_level; text; name: the logger's, empty: the root's")                                     \
  X(ERROR, "text: the whole diagnostic; detail: its first line; place fields: name, line, column")                     \
  X(INPUT, "text: prompt; the evaluator waits for td_session_reply")                                                   \
  X(CELL_FINISHED, "cell; seconds; status: a td_run_result")

enum td_event_kind {
#define X(KIND, doc) TD_EVENT_##KIND,
  TD_EVENTS(X)
#undef X
  TD_EVENT_COUNT
};

typedef struct td_event {   // texts are borrowed for the time of the call; a queue copies them
  int32_t kind, cell, stream, level, status, line, column;
  bool final;
  uint64_t id;
  const char *text, *detail, *name;
  size_t length;            // of text
  int64_t done, total;
  double seconds;
  const struct td_curve_point *points;
  const uint8_t *pixels;    // width * height * 3 bytes, RGB, the top row first
  int32_t width, height;
} td_event;

typedef struct td_event_sink {
  void (*emit)(void *owner, const td_event *event); // called on the evaluator's thread; may block when a queue is full
  void *owner;
} td_event_sink;
#endif
