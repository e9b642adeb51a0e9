// An interpreter for tests in C: runs a text and keeps what its events said. Kept text lives in fixed buffers, so that
// a test may make any allocation fail.
#ifndef TESTS_LANGUAGE_RUNS_H
#define TESTS_LANGUAGE_RUNS_H
#include "repl/language/interpreter.h"

enum { RUNS_TEXT = 1 << 16 };

typedef struct runs {
  td_interpreter *interpreter;
  td_event_sink sink;
  char printed[RUNS_TEXT]; // output and values of the last text, cut at the end
  char error[RUNS_TEXT];   // the whole diagnosis of its error; empty: none
  size_t printed_length;
  int errors;              // error events of the last text
} runs;

bool runs_open(runs *, int threads);            // false: no memory, and nothing is left to close
void runs_close(runs *);
td_run_result runs_text(runs *, const char *code, size_t length);
td_run_result runs_code(runs *, const char *code);
#endif
