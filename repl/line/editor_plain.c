// See editor.h: the editor of a build without readline. The terminal's own line editing is all there is.
#include "repl/line/editor.h"
#ifndef HAVE_READLINE
#include <stdio.h>
#include <termios.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "repl/line/history.h"
#include "repl/line/terminal.h"

const char td_editor_keys[] = "";

void td_editor_start(td_session *session) {
  (void)session;
  td_terminal_start();
}
void td_editor_stop(void) { td_terminal_stop(); }
void td_editor_release(void) {}
void td_editor_remember(const char *cell) { td_history_append(cell); }

// A terminal that edits lines hands over so much of one, and drops the rest of it without a word.
enum { TERMINAL_LINE = 4095 };

static void ask(const char *prompt) {
  fputs(prompt, stdout);
  fflush(stdout);
}

// Reads a byte; false: there is no line.
static bool read_step(const char *prompt, td_text *text, char *c, enum td_line_result *result) {
  switch (td_terminal_wait()) {
  case TD_NEWS_INPUT: break;
  case TD_NEWS_INTERRUPT: *result = TD_LINE_INTERRUPTED; return false;
  case TD_NEWS_SUSPEND: // the terminal has dropped the line
    td_terminal_suspend();
    td_text_clear(text);
    ask(prompt);
    return true;
  case TD_NEWS_RESIZE: return true;
  default: return false;
  }
  ssize_t got = read(STDIN_FILENO, c, 1);
  if (got == 0 && text->length) *c = '\n';
  else if (got <= 0) return false;
  if (*c != '\n') td_text_add_char(text, *c);
  return true;
}

// A line that may have lost its end must not run, and what was pasted with it neither.
static bool was_cut(const td_text *text) {
  if (text->length < TERMINAL_LINE || !isatty(STDIN_FILENO)) return false;
  fprintf(stderr, "error: this line is dropped: the terminal passes on %d bytes of a line at most\n", TERMINAL_LINE);
  tcflush(STDIN_FILENO, TCIFLUSH);
  return true;
}

enum td_line_result td_editor_read(const char *prompt, const char *indent, char **line) {
  enum td_line_result result = TD_LINE_END;
  td_text text = {0};
  char c = 0;
  (void)indent; // nobody could delete it
  ask(prompt);
  while (c != '\n')
    if (!read_step(prompt, &text, &c, &result)) {
      td_text_clear(&text);
      if (result == TD_LINE_INTERRUPTED) fputc('\n', stdout);
      return result;
    }
  if (was_cut(&text)) {
    td_text_clear(&text);
    return TD_LINE_INTERRUPTED;
  }
  *line = td_text_take(&text);
  return *line ? TD_LINE_READ : TD_LINE_END;
}
#endif
