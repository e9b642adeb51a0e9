// See editor.h. Only this file knows readline. Signals are ours: readline neither catches them nor touches the environment.
#include "repl/line/editor.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "repl/line/history.h"
#include "repl/notebook/complete.h"
#ifdef HAVE_READLINE
#include <readline/history.h>
#include <readline/readline.h>
#endif

static volatile sig_atomic_t interrupted;

void td_editor_interrupt(void) { interrupted = 1; }

bool td_editor_waiting(void) {
  struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&wait, 1, 0) > 0 && (wait.revents & POLLIN);
}

#ifdef HAVE_READLINE

static td_session *completing;
static td_completion completion;
static char *finished_line;
static bool finished;
static const char *wanted_indent;

// ---- completion ----

static char *next_word(const char *text, int state) {
  static int index;
  (void)text;
  if (state == 0) index = 0;
  return index < completion.count ? strdup(completion.words[index++]) : NULL; // readline frees it
}

static char **complete(const char *text, int start, int end) {
  completion = (td_completion){.line = rl_line_buffer, .length = (size_t)end};
  char *head = td_memory_new((size_t)end + 1);
  if (!head) return NULL;
  memcpy(head, rl_line_buffer, (size_t)end);
  head[end] = 0;
  completion.line = head;
  bool asked = td_session_ask(completing, td_complete, &completion);
  rl_attempted_completion_over = !completion.files;
  rl_completion_append_character = '\0';
  bool fits = asked && !completion.files && completion.start == (size_t)start;
  char **matches = fits ? rl_completion_matches(text, next_word) : NULL;
  td_completion_clear(&completion);
  td_memory_free(head);
  return matches;
}

// ---- reading ----

static void on_line(char *line) {
  finished = true;
  finished_line = line;
  rl_callback_handler_remove();
}

static int insert_indent(void) {
  if (wanted_indent) rl_insert_text(wanted_indent);
  return 0;
}

static void remember_one(const char *cell, void *argument) {
  (void)argument;
  add_history(cell);
}

void td_editor_start(td_session *session) {
  completing = session;
  unsetenv("LINES");
  unsetenv("COLUMNS");
  rl_readline_name = "tapedeck";
  rl_catch_signals = 0;
  rl_catch_sigwinch = 1;
  rl_change_environment = 0;
  rl_basic_word_break_characters = " \t\n\"\\'`@$><=;|&{}()[],:+-*/^~!";
  rl_attempted_completion_function = complete;
  rl_startup_hook = insert_indent;
  using_history();
  td_history_load(remember_one, NULL);
}

void td_editor_stop(void) {
  clear_history();
  rl_clear_signals();
}

static void drop_line(void) {
  rl_free_line_state();
  rl_callback_sigcleanup();
  rl_replace_line("", 1);
  rl_callback_handler_remove();
  fputs("^C\n", stdout);
  fflush(stdout);
}

enum td_line_result td_editor_read(const char *prompt, const char *indent, char **line) {
  finished = false;
  finished_line = NULL;
  interrupted = 0;
  wanted_indent = indent;
  rl_callback_handler_install(prompt, on_line);
  struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
  while (!finished) {
    if (interrupted) {
      drop_line();
      return TD_LINE_INTERRUPTED;
    }
    int ready = poll(&wait, 1, -1);
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    if (wait.revents & (POLLERR | POLLNVAL) || (wait.revents & POLLHUP && !(wait.revents & POLLIN))) {
      rl_callback_handler_remove();
      return TD_LINE_END;
    }
    rl_callback_read_char();
  }
  if (!finished_line) return TD_LINE_END;
  *line = td_memory_text(finished_line);
  free(finished_line);
  return *line ? TD_LINE_READ : TD_LINE_END;
}

void td_editor_remember(const char *cell) {
  HIST_ENTRY *last = history_length ? history_get(history_base + history_length - 1) : NULL;
  if (last && strcmp(last->line, cell) == 0) return;
  add_history(cell);
  td_history_append(cell);
}

int td_editor_history_count(void) { return history_length; }

const char *td_editor_history(int index) {
  const HIST_ENTRY *entry = history_get(history_base + index);
  return entry ? entry->line : "";
}

#else

void td_editor_start(td_session *session) { (void)session; }
void td_editor_stop(void) {}

enum td_line_result td_editor_read(const char *prompt, const char *indent, char **line) {
  td_text text = {0};
  char c;
  (void)indent;
  interrupted = 0;
  fputs(prompt, stdout);
  fflush(stdout);
  while (true) {
    ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR && !interrupted) continue;
    if (interrupted || got < 0) {
      td_text_clear(&text);
      fputc('\n', stdout);
      return interrupted ? TD_LINE_INTERRUPTED : TD_LINE_END;
    }
    if (got == 0 && !text.length) return TD_LINE_END;
    if (got == 0 || c == '\n') break;
    td_text_add_char(&text, c);
  }
  *line = td_text_take(&text);
  return *line ? TD_LINE_READ : TD_LINE_END;
}

void td_editor_remember(const char *cell) { td_history_append(cell); }
int td_editor_history_count(void) { return 0; }
const char *td_editor_history(int index) {
  (void)index;
  return "";
}

#endif
