// The plain face: scripts, pipes, -e, and a prompt with readline. What a program run ends with is its exit code: 0
// done, 1 failed, 130 interrupted, or what exit(n) asked for.
#ifndef TD_LINE_LINE_H
#define TD_LINE_LINE_H
#include "repl/language/log.h"
#include "repl/notebook/session.h"

typedef struct td_line_options {
  const char *path;        // deck to run first; NULL: none
  const char *code;        // -e
  char *const *arguments;  // for the deck: argv[1], ...
  int argument_count;
  bool plain;              // --line: no screen
  bool seeded;
  uint64_t seed;
  int log;                 // what is said on stderr: td_log_level; errors are always
  bool log_given;
} td_line_options;

int td_line_run_deck(const td_line_options *options);  // tapedeck run FILE
int td_line_run_code(const td_line_options *options);  // tapedeck -e CODE
int td_line_run_input(const td_line_options *options); // a script from stdin
// tapedeck convert: run_cells fills the outputs; what it ends with is as of td_line_run_deck, and the file is written.
int td_line_convert(const td_line_options *options, const char *from, const char *to, bool run_cells);
int td_line_prompt(const td_line_options *options);    // the prompt; runs options->path first when it is given

// Shared by the four: a session with argv and seed set and SIGINT wired to it. NULL: said on stderr.
td_session *td_line_open(const td_line_options *options);
// Ends the program, with this exit code or 1, when the code that runs can't be stopped.
void td_line_close(td_session *session, int code);
struct td_render;
enum {
  TD_LINE_EXIT = 0x100,
  TD_LINE_UNREADABLE = 0x200
}; // beside an exit code: exit() was called; the deck can't be read
int td_line_wait(td_session *session, struct td_render *render); // renders events up to CELL_FINISHED; the exit code
int td_line_cells(td_session *session, struct td_render *render, const char *path,
                  int *cells); // runs a deck cell by cell; as td_line_wait
#endif
