// See editor.h. The terminal's signals and modes are terminal.c's: readline catches no signal and leaves the
// environment alone. Between the lines of a cell the terminal stays as readline set it, so that a paste is never echoed
// twice.
#include "repl/line/editor.h"
#ifdef HAVE_READLINE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <readline/history.h>
#include <readline/readline.h>
#include "engine/base/memory.h"
#include "repl/line/edit_keys.h"
#include "repl/line/terminal.h"

enum { PASTE_MOST = 8 << 20 };

const char td_editor_keys[] = "Tab completes, ";

static char *finished_line;
static bool finished, prepared; // prepared: the terminal is readline's
static const char *wanted_indent;
static FILE *own_output; // of the prompt, when stdout is no terminal

// Lists what follows the last dot: x.shape and x.sum as shape and sum.
static void list_matches(char **matches, int count, int longest) {
  const char *dot = strrchr(matches[0], '.');
  size_t skip = dot && !rl_filename_completion_desired ? (size_t)(dot + 1 - matches[0]) : 0;
  for (int i = 0; i <= count; i++) matches[i] += skip;
  fputc('\n', rl_outstream);
  rl_display_match_list(matches, count, longest - (int)skip);
  for (int i = 0; i <= count; i++) matches[i] -= skip;
  rl_forced_update_display();
}

// A bracketed paste goes in as it is: line ends become newlines, escape sequences lose their escape.
static int insert_paste(int count, int key) {
  static const char end[] = "\033[201~";
  td_text text = {0};
  (void)count, (void)key;
  while (text.length < PASTE_MOST && !text.failed && td_terminal_waiting(1000)) {
    int c = rl_read_key();
    if (c < 0) break;
    td_text_add_char(&text, (char)c);
    if (text.length >= sizeof end - 1 && memcmp(text.data + text.length - (sizeof end - 1), end, sizeof end - 1) == 0) {
      text.length -= sizeof end - 1;
      break;
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < text.length; i++) {
    char c = text.data[i];
    if (c == '\r' && i + 1 < text.length && text.data[i + 1] == '\n') continue;
    if (c == '\r') c = '\n';
    if ((unsigned char)c >= ' ' || c == '\n' || c == '\t') text.data[kept++] = c;
  }
  if (text.data) text.data[kept] = 0;
  if (kept) rl_insert_text(text.data);
  td_text_clear(&text);
  return 0;
}

// ---- reading ----

static void on_line(char *line) {
  finished = true;
  finished_line = line;
  rl_callback_handler_remove();
}

static void keep_terminal(void) {} // in place of rl_deprep_terminal, which td_editor_release calls

static int insert_indent(void) {
  if (wanted_indent) rl_insert_text(wanted_indent);
  return 0;
}

void td_editor_start(td_session *session) {
  td_terminal_start();
  if (!isatty(STDOUT_FILENO)) rl_outstream = own_output = fopen("/dev/tty", "we");
  td_edit_keys_start(session, td_terminal_waiting);
  rl_bind_keyseq("\033[200~", insert_paste);
  rl_completion_display_matches_hook = list_matches;
  rl_startup_hook = insert_indent;
  rl_deprep_term_function = keep_terminal;
  td_terminal_modes(TD_MODES_QUIET);
}

void td_editor_stop(void) {
  clear_history();
  td_terminal_stop();
  if (own_output) fclose(own_output);
}

void td_editor_release(void) {
  rl_deprep_terminal();
  td_terminal_modes(TD_MODES_QUIET);
  prepared = false;
}

static void drop_line(void) {
  rl_point = rl_end;
  rl_redisplay();
  rl_free_line_state();
  rl_callback_sigcleanup();
  rl_replace_line("", 1);
  rl_callback_handler_remove();
  fputs("^C\n", rl_outstream);
  fflush(rl_outstream);
}

static void suspend(void) {
  rl_deprep_terminal();
  td_terminal_suspend();
  td_terminal_modes(TD_MODES_ECHO);
  rl_prep_terminal(1);
  rl_forced_update_display();
}

// true: the line is read or there is none.
static bool read_step(enum td_line_result *result) {
  switch (td_terminal_wait()) {
  case TD_NEWS_INPUT: rl_callback_read_char(); return finished;
  case TD_NEWS_RESIZE: rl_resize_terminal(); return false;
  case TD_NEWS_SUSPEND: suspend(); return false;
  case TD_NEWS_INTERRUPT: drop_line(); *result = TD_LINE_INTERRUPTED; return true;
  default: rl_callback_handler_remove(); return true;
  }
}

// What was typed, without the indent that was put before it when the line brings its own.
static char *typed_line(const char *line, const char *indent) {
  size_t width = strlen(indent);
  bool own = width && strncmp(line, indent, width) == 0 && (line[width] == ' ' || line[width] == '\t');
  return td_memory_text(own ? line + width : line);
}

enum td_line_result td_editor_read(const char *prompt, const char *indent, char **line) {
  enum td_line_result result = TD_LINE_END;
  td_edit_keys_submitted();
  finished = false;
  finished_line = NULL;
  wanted_indent = indent;
  if (!prepared) td_terminal_modes(TD_MODES_ECHO);
  prepared = true;
  rl_callback_handler_install(prompt, on_line);
  while (!read_step(&result)) continue;
  if (!finished_line) return result;
  *line = typed_line(finished_line, indent);
  free(finished_line);
  if (!*line) return TD_LINE_END;
  return td_edit_keys_submitted() ? TD_LINE_SUBMITTED : TD_LINE_READ;
}

void td_editor_remember(const char *cell) { td_edit_keys_remember(cell); }
#endif
