// See editor.h. Only this file knows readline. The terminal's signals and modes are terminal.c's: readline catches no
// signal and leaves the environment alone. Between the lines of a cell the terminal stays as readline set it, so that a
// paste is never echoed twice.
#include "repl/line/editor.h"
#ifdef HAVE_READLINE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <readline/history.h>
#include <readline/readline.h>
#include "engine/base/memory.h"
#include "repl/line/history.h"
#include "repl/line/terminal.h"
#include "repl/notebook/complete.h"

enum { INDENT = 4, PASTE_MOST = 8 << 20 };

const char td_editor_keys[] = "Tab completes, ";

static td_session *completing;
static td_completion completion;
static char *finished_line;
static bool finished, submitted, prepared; // prepared: the terminal is readline's
static const char *wanted_indent;
static FILE *own_output; // of the prompt, when stdout is no terminal

// ---- completion ----

static char *next_word(const char *text, int state) {
  static int index;
  (void)text;
  if (state == 0) index = 0;
  return index < completion.count ? strdup(completion.words[index++]) : NULL; // readline frees it
}

// Asks what fits at the cursor; false: nobody can say now.
static bool ask_completion(int end) {
  char *head = td_memory_new((size_t)end + 1);
  if (!head) return false;
  memcpy(head, rl_line_buffer, (size_t)end);
  head[end] = 0;
  completion = (td_completion){.line = head, .length = (size_t)end};
  bool asked = td_session_ask(completing, td_complete, &completion);
  completion.line = NULL;
  td_memory_free(head);
  return asked;
}

static bool in_file_name(void) {
  bool files = ask_completion(rl_point) && completion.files;
  td_completion_clear(&completion);
  return files;
}

static char *break_characters(void) { // a file name goes on over characters that end other words
  static char names[] = " \t\n\"\\'`@$><=;|&{}()[],:+-*/^~!", files[] = "\"'\n", words[] = " \t\n";
  if (!in_file_name()) return names;
  return rl_line_buffer[strspn(rl_line_buffer, " \t")] == '!' ? words : files;
}

static char **complete(const char *text, int start, int end) {
  bool asked = ask_completion(end);
  rl_attempted_completion_over = !asked || !completion.files;
  rl_completion_append_character = '\0';
  bool fits = asked && !completion.files && completion.start == (size_t)start;
  char **matches = fits ? rl_completion_matches(text, next_word) : NULL;
  td_completion_clear(&completion);
  return matches;
}

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

static int indent_or_complete(int count, int key) {
  int column = 0;
  bool blank = true;
  (void)count, (void)key;
  for (int at = rl_point; at > 0 && rl_line_buffer[at - 1] != '\n'; at--, column++)
    blank = blank && strchr(" \t", rl_line_buffer[at - 1]);
  if (td_terminal_waiting(10)) return rl_insert(1, '\t'); // part of a paste
  return blank ? rl_insert(INDENT - column % INDENT, ' ')
               : rl_complete_internal(rl_completion_mode(indent_or_complete));
}

// ---- lines inside a cell ----

static int line_begin(int at) {
  while (at > 0 && rl_line_buffer[at - 1] != '\n') at--;
  return at;
}

static int line_end(int at) {
  while (at < rl_end && rl_line_buffer[at] != '\n') at++;
  return at;
}

static void go_to(int begin, int column) {
  int end = line_end(begin);
  rl_point = begin + column < end ? begin + column : end;
  while (rl_point > begin && ((unsigned char)rl_line_buffer[rl_point] & 0xc0) == 0x80)
    rl_point--; // not inside a character
}

static int line_up(int count, int key) {
  int begin = line_begin(rl_point);
  if (!begin) return rl_get_previous_history(count, key);
  go_to(line_begin(begin - 1), rl_point - begin);
  return 0;
}

static int line_down(int count, int key) {
  int begin = line_begin(rl_point), end = line_end(rl_point);
  if (end == rl_end) return rl_get_next_history(count, key);
  go_to(end + 1, rl_point - begin);
  return 0;
}

static int line_home(int count, int key) {
  (void)count, (void)key;
  rl_point = line_begin(rl_point);
  return 0;
}

static int line_last(int count, int key) {
  (void)count, (void)key;
  rl_point = line_end(rl_point);
  return 0;
}

static int kill_line_rest(int count, int key) { // the newline itself when nothing else is left
  int end = line_end(rl_point);
  if (count < 0) return rl_kill_line(count, key);
  return rl_kill_text(rl_point, end == rl_point && end < rl_end ? end + 1 : end);
}

static int insert_newline(int count, int key) {
  (void)count, (void)key;
  rl_insert_text("\n");
  return 0;
}

static int submit(int count, int key) {
  submitted = true;
  return rl_newline(count, key);
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

static void rebind(const char *keys, rl_command_func_t *ours,
                   rl_command_func_t *theirs) { // unless the user's inputrc has other plans
  if (rl_function_of_keyseq(keys, NULL, NULL) == theirs) rl_bind_keyseq(keys, ours);
}

static void bind_keys(void) {
  static const struct { const char *keys; rl_command_func_t *ours, *theirs; } keys[] = {
      {"\033[A", line_up, rl_get_previous_history},   {"\033OA", line_up, rl_get_previous_history},
      {"\020", line_up, rl_get_previous_history},     {"\033[B", line_down, rl_get_next_history},
      {"\033OB", line_down, rl_get_next_history},     {"\016", line_down, rl_get_next_history},
      {"\001", line_home, rl_beg_of_line},            {"\033[H", line_home, rl_beg_of_line},
      {"\033OH", line_home, rl_beg_of_line},          {"\033[1~", line_home, rl_beg_of_line},
      {"\005", line_last, rl_end_of_line},            {"\033[F", line_last, rl_end_of_line},
      {"\033OF", line_last, rl_end_of_line},          {"\033[4~", line_last, rl_end_of_line},
      {"\013", kill_line_rest, rl_kill_line},         {"\t", indent_or_complete, rl_complete},
      {"\n", insert_newline, rl_newline}};
  rl_variable_bind("show-all-if-unmodified", "on"); // the user's inputrc may say otherwise
  rl_initialize();
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) rebind(keys[i].keys, keys[i].ours, keys[i].theirs);
  rl_bind_keyseq("\033\r", submit);
  rl_bind_keyseq("\033[13;2u", insert_newline);
  rl_bind_keyseq("\033[200~", insert_paste);
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

static void remember_one(const char *cell, void *argument) {
  (void)argument;
  add_history(cell);
}

void td_editor_start(td_session *session) {
  td_terminal_start();
  completing = session;
  unsetenv("LINES");
  unsetenv("COLUMNS");
  if (!isatty(STDOUT_FILENO)) rl_outstream = own_output = fopen("/dev/tty", "we");
  rl_readline_name = "tapedeck";
  rl_catch_signals = 0;
  rl_catch_sigwinch = 0;
  rl_change_environment = 0;
  rl_attempted_completion_function = complete;
  rl_completion_word_break_hook = break_characters;
  rl_completion_display_matches_hook = list_matches;
  rl_startup_hook = insert_indent;
  rl_deprep_term_function = keep_terminal;
  bind_keys();
  using_history();
  td_history_load(remember_one, NULL);
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
  finished = submitted = false;
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
  return submitted ? TD_LINE_SUBMITTED : TD_LINE_READ;
}

void td_editor_remember(const char *cell) {
  const HIST_ENTRY *last = history_length ? history_get(history_base + history_length - 1) : NULL;
  if (last && strcmp(last->line, cell) == 0) return;
  add_history(cell);
  td_history_append(cell);
}
#endif
