// The stream from the evaluator to its faces. The evaluator emits; faces render and send commands; no face reads the
// evaluator in another way. Kinds are rows with a default rendering, so a face need not know every kind.
#ifndef TD_LANGUAGE_EVENT_H
#define TD_LANGUAGE_EVENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(KIND, "fields used: meaning"). cell, where it is named, is td_run_options.cell of the cell that the event belongs
// to; of cells that run while another one is paused it is their own.
#define TD_EVENTS(X)                                                                                                   \
  X(CELL_STARTED, "cell; text: its source; level: 0, or 1 for one that runs at a step boundary of another")            \
  X(OUTPUT, "cell; text: what print wrote; stream: 1 stdout, 2 stderr")                                                \
  X(VALUE, "cell; text: the value's printed form")                                                                     \
  X(PROGRESS, "cell; id of the bar; level of nesting; text: label; detail: postfix; done, total (-1 unknown), "        \
      "seconds; samples: that went through, 0 unknown; final: bar is closed")                                          \
  X(METRIC, "cell; text: curve's name; points: some of its points, done: how many, in order") \
  X(IMAGE, "text: one-line description; detail: ASCII picture, or NULL; pixels, width, height: the picture")           \
  X(TAPE, "text: tape's name; done: records; total: bytes held")                                                       \
  X(STEP, "cell; a backward pass stopped at a record and asks (INPUT) how to go on: text: op; detail: place; done: "   \
      "record's index; total: records; name, line, column: as WARNING's; payload: a td_report_record, or "         \
      "NULL")                                                                                                          \
  X(WARNING, "cell; text; detail: place; name, line, column: the same, as script and position; name NULL: unknown")    \
  X(LOG, "cell; level: one of td_log_level; text; name: the logger's, empty: the root's")                              \
  X(ERROR, "cell; text: the whole diagnostic; detail: its first line; name, line, column: where; name NULL: unknown")  \
  X(INPUT, "cell; text: prompt; the evaluator waits for td_session_reply")                                             \
  X(TERMINAL, "cell; a command wants the face's terminal and waits for td_session_reply; final: it is given back")     \
  X(PAUSED, "cell: the paused one; text: where it is, as \"epoch 2/5 step 412\"; done, total (-1 unknown): steps of "  \
      "that loop; name: its label")                                                                                    \
  X(RESUMED, "cell; text, done, total, name: as PAUSED's; status: a td_resumption; seconds: how long it was paused")   \
  X(ANSWER, "id: of td_session_inquire; payload, or NULL and text: why there is none; seconds: what making it took")   \
  X(CELL_DROPPED, "cell: one that waited, and won't run")                                                              \
  X(CELL_FINISHED, "cell; seconds; status: a td_run_result; level: as CELL_STARTED's")

enum td_event_kind {
#define X(KIND, doc) TD_EVENT_##KIND,
  TD_EVENTS(X)
#undef X
  TD_EVENT_COUNT
};

// How a pause ended: td_session_resume; td_session_step; td_session_stop_run or an interrupt.
typedef enum td_resumption { TD_RESUMED_ON, TD_RESUMED_STEP, TD_RESUMED_STOP } td_resumption;

// What an event owns: the first member of a larger struct, which kind tells (repl/notebook/report.h). Plain data: it
// refers to nothing of the evaluator's.
typedef struct td_payload {
  void (*release)(struct td_payload *);
  int kind;
} td_payload;

typedef struct td_event {   // texts are borrowed for the time of the call; a queue copies them
  int32_t kind, cell, stream, level, status, line, column;
  bool final;
  uint64_t id;
  const char *text, *detail, *name;
  size_t length;            // of text
  int64_t done, total, samples;
  double seconds;
  const struct td_curve_point *points;
  const uint8_t *pixels;    // width * height * 3 bytes, RGB, the top row first
  int32_t width, height;
  td_payload *payload;      // goes over to the queue
} td_event;

typedef struct td_event_sink {
  void (*emit)(void *owner, const td_event *event); // called on the evaluator's thread; may block when a queue is full
  void *owner;
} td_event_sink;
#endif
