// The terminal for a shell command that needs it: which commands do, how it is borrowed from the face, and what job
// control that takes. All functions are for the evaluator's thread, which has its signals blocked.
#ifndef TD_NOTEBOOK_SHELL_TERMINAL_H
#define TD_NOTEBOOK_SHELL_TERMINAL_H
#include <sys/types.h>
#include <termios.h>
#include "repl/language/interpreter.h"

typedef struct td_lent {
  int descriptor;          // of the terminal; -1: it is the face's
  struct termios modes;    // that the face had left it in
} td_lent;

// Whether a line runs a program that looks at what its output is: an editor, a pager, an interpreter without a script.
// All others run beside the face, and get the terminal when they read from it or change its modes.
bool td_shell_is_full_screen(const char *line);
bool td_lent_begin(td_lent *lent, td_interpreter *I);      // false: nobody lends one
void td_lent_give(td_lent *lent, pid_t group);             // to a process group, which goes on
void td_lent_suspend(td_lent *lent, pid_t group);          // Ctrl-Z: this program stops too; returns when it goes on
void td_lent_end(td_lent *lent, td_interpreter *I);
#endif
