// What the module logging and the faces agree on: Python's levels, and the one below which nothing is said.
#ifndef TD_LANGUAGE_LOG_H
#define TD_LANGUAGE_LOG_H
#include "repl/language/interpreter.h"

// X(name, level, word in the output)
#define TD_LOG_LEVELS(X)                                                                                               \
  X(DEBUG, 10, "debug") X(INFO, 20, "info") X(WARNING, 30, "warning") X(ERROR, 40, "error") X(CRITICAL, 50, "critical")
enum td_log_level {
#define X(NAME, level, text) TD_LOG_##NAME = level,
  TD_LOG_LEVELS(X)
#undef X
};

// fixed: a level from the command line, which basicConfig leaves as it is.
void td_log_set(td_interpreter *, int level, bool fixed);
const char *td_log_word(int level); // "info"
#endif
