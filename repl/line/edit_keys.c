// See edit_keys.h.
#include "repl/line/edit_keys.h"
#ifdef HAVE_READLINE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/history.h>
#include <readline/readline.h>
#include "engine/base/memory.h"
#include "repl/line/history.h"
#include "repl/notebook/charset.h"
#include "repl/notebook/complete.h"
#include "repl/notebook/entry.h"

static td_session *completing;
static bool (*more_input)(int milliseconds);
static td_completion completion;
static bool submitted;

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
  rl_sort_completion_matches = completion.files; // words come in the order in which they are to be listed
  bool fits = asked && !completion.files && completion.start == (size_t)start;
  char **matches = fits ? rl_completion_matches(text, next_word) : NULL;
  td_completion_clear(&completion);
  return matches;
}

static int indent_or_complete(int count, int key) {
  int column = 0;
  bool blank = true;
  (void)count, (void)key;
  for (int at = rl_point; at > 0 && rl_line_buffer[at - 1] != '\n'; at--, column++)
    blank = blank && strchr(" \t", rl_line_buffer[at - 1]);
  if (more_input(10)) return rl_insert(1, '\t'); // part of a paste
  return blank ? rl_insert(TD_ENTRY_INDENT - column % TD_ENTRY_INDENT, ' ')
               : rl_complete_internal(rl_completion_mode(indent_or_complete));
}

// ---- indentation ----

// How many spaces stand before the cursor when nothing else does on its line; -1: something does.
static int spaces_before(void) {
  int at = rl_point;
  while (at > 0 && rl_line_buffer[at - 1] == ' ') at--;
  return at == 0 || rl_line_buffer[at - 1] == '\n' ? rl_point - at : -1;
}

static int rub_indent(int count, int key) { // a level of it at once
  int spaces = spaces_before();
  if (spaces < 2 || count != 1) return rl_rubout(count, key);
  int level = (spaces - 1) % TD_ENTRY_INDENT + 1;
  int point = rl_point - level;
  rl_delete_text(point, rl_point);
  rl_point = point;
  return 0;
}

static int dedent(int count, int key) { // the line, wherever the cursor stands in it
  (void)count, (void)key;
  int begin = rl_point;
  while (begin > 0 && rl_line_buffer[begin - 1] != '\n') begin--;
  int spaces = (int)strspn(rl_line_buffer + begin, " ");
  int level = spaces ? (spaces - 1) % TD_ENTRY_INDENT + 1 : 0, point = rl_point - level;
  if (level) rl_delete_text(begin, begin + level);
  rl_point = point > begin ? point : begin;
  return 0;
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
      {"\177", rub_indent, rl_rubout},                {"\b", rub_indent, rl_rubout},
      {"\n", insert_newline, rl_newline}};
  rl_variable_bind("show-all-if-unmodified", "on"); // the user's inputrc may say otherwise
  rl_variable_bind("bind-tty-special-chars", "off"); // they stand on their keys anyway, and Backspace is ours
  rl_initialize();
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) rebind(keys[i].keys, keys[i].ours, keys[i].theirs);
  rl_bind_keyseq("\033\r", submit);
  rl_bind_keyseq("\033[13;2u", insert_newline);
  rl_bind_keyseq_if_unbound("\033[Z", dedent); // Shift-Tab
}

// ---- life ----

static int keep_charset(void) { // readline sets the locale anew for each line
  td_charset_typing();
  return 0;
}

static void type_unicode(void) { // else it takes a byte above 127 for a key with Meta
  if (td_charset_unicode() || !td_charset_typing()) return;
  rl_pre_input_hook = keep_charset;
  rl_variable_bind("convert-meta", "off");
  rl_variable_bind("input-meta", "on");
  rl_variable_bind("output-meta", "on");
}

static void remember_one(const char *cell, void *argument) {
  (void)argument;
  add_history(cell);
}

void td_edit_keys_start(td_session *session, bool (*waiting)(int milliseconds)) {
  completing = session;
  more_input = waiting;
  unsetenv("LINES");
  unsetenv("COLUMNS");
  rl_readline_name = "tapedeck";
  rl_catch_signals = 0;
  rl_catch_sigwinch = 0;
  rl_change_environment = 0;
  rl_attempted_completion_function = complete;
  rl_completion_word_break_hook = break_characters;
  bind_keys();
  type_unicode();
  using_history();
  td_history_load(remember_one, NULL);
}

void td_edit_keys_remember(const char *cell) {
  const HIST_ENTRY *last = history_length ? history_get(history_base + history_length - 1) : NULL;
  if (last && strcmp(last->line, cell) == 0) return;
  add_history(cell);
  td_history_append(cell);
}

bool td_edit_keys_submitted(void) {
  bool was = submitted;
  submitted = false;
  return was;
}
#endif

