// Lines that begin with %, ! or ?: one row a command (name, arguments, help, function) in command_*.c. They run on the
// evaluator's thread, like any statement.
#ifndef TD_NOTEBOOK_COMMAND_H
#define TD_NOTEBOOK_COMMAND_H
#include "repl/language/interpreter.h"

typedef struct td_command_row {
  const char *name;        // "timeit"
  const char *usage;       // "%timeit STATEMENT"
  td_value (*run)(td_interpreter *, const char *arguments); // None, or a value to show; NIL: exception
  const char *doc;         // one sentence
} td_command_row;

td_value td_command_run(td_interpreter *, char kind, const char *line); // td_interpreter.command: kind '%', '!' or '?'
void td_shell_hang_up(void); // from a signal handler: the ! command that runs gets SIGHUP
const td_command_row *td_command_at(int index);                         // NULL: past the end; for completion and help
#endif
