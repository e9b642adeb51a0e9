// A tape as a table, and one record of it with its numbers.
#ifndef TD_NOTEBOOK_REPORT_TAPE_H
#define TD_NOTEBOOK_REPORT_TAPE_H
#include "repl/notebook/report.h"

enum td_tape_flags {
  TD_TAPE_ROW_VISITED = 1,   // a backward pass went through it
  TD_TAPE_ROW_KEPT = 2,      // it can still be differentiated
  TD_TAPE_ROW_NAN = 4,       // a value that it made, as far as one is kept, has a NaN
  TD_TAPE_ROW_INFINITE = 8,  // an infinity
  TD_TAPE_ROW_FIRST = 16,    // the first with one of both
  TD_TAPE_ROW_VANISHED = 64, // its gradient is below 1e-8 of the largest that the pass met before it
  TD_TAPE_ROW_EXPLODED = 128, // its gradient is above 1e3, or not finite
  TD_TAPE_ROW_LEAF = 32,     // a watched tensor or a Variable; these rows stand behind the records
  TD_TAPE_ROW_GLANCED = 256  // its gradient is a rough estimate, from a few elements
};

typedef struct td_tape_row { // offsets lead into the report's arrays
  uint32_t op;               // its name: texts + op. Of a leaf the Variable's name, or "watched"
  uint32_t first_input;      // inputs[first_input ...]: a row's index, or -1: a constant
  uint32_t shape;            // shapes[shape ...]: rank sizes, of its first output
  uint32_t source;           // sources[source]
  uint16_t input_count;
  uint16_t flags;
  uint8_t output_count, rank, dtype;
  float gradient;            // norm of the cotangent that the last pass brought to it; below 0: none did
  float seconds;             // of the op; below 0: not measured (ops are timed from the first report on)
  int64_t bytes;             // kept for backward
} td_tape_row;

typedef struct td_tape_source { // a place of the code
  uint32_t name, text;       // texts + name: script; texts + text: the line without indent
  int32_t line, column;      // line 0: unknown
} td_tape_source;

typedef struct td_report_tape {
  td_payload payload;
  char *title;               // the expression, or the name of the newest tape; "" when it has none
  td_tape_row *rows;         // records in order of time, then leaves
  int64_t count, record_count;
  int32_t *inputs;
  int64_t *shapes;
  td_tape_source *sources;
  int64_t source_count;
  char *texts;
  int64_t bytes;             // kept for backward by all records, what several share counted for each
  bool spent, open, complete; // complete: every value that is kept was looked at for NaN and infinities
} td_report_tape;

// A td_inquiry. argument: an expression without side effects that gives a tape (a name or a path), or "": the newest
// tape that a name of the session holds, else the innermost open one.
td_payload *td_report_tape_make(td_interpreter *, const char *argument);

typedef struct td_report_record {
  td_payload payload;
  int64_t index;
  char *op, *place, *source; // "matmul", "train.deck:14", the line's text
  char *arguments;           // "axis=1, keepdims=True"; "" without
  char *value;               // printed form of what it made, shortened; "" when nothing kept it
  char *shape;               // "float32[64, 10]"
  td_histogram values;
  char *cotangent;           // printed form of the last cotangent that is known; "": none is
  td_histogram cotangents;
  char *onward;              // of a record that a pass stands at: what goes on to its inputs, a line each; else ""
} td_report_record;

// A td_inquiry. argument: "INDEX" or "INDEX EXPRESSION": row of the tape that td_report_tape_make would report.
td_payload *td_report_record_make(td_interpreter *, const char *argument);
// Of a record that a pass stands at: with the cotangent that came. NULL: no memory.
td_payload *td_report_record_step(td_interpreter *, const td_tape *tape, int64_t index, const td_tensor *cotangent,
                                  const char *onward);
#endif
