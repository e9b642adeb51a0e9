// See edit.h.
//  1. readline's callback interface reads from a queue of our own, a key's bytes at a time, and draws nothing.
//  2. Enter never ends a line inside readline unless its own search or argument wants it: the key is taken here before,
//     so that the face decides what it means.
#include "repl/screen/edit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <readline/history.h>
#include <readline/readline.h>
#include "engine/base/memory.h"
#include "repl/language/builtins.h"
#include "repl/line/edit_keys.h"

static td_text queue;
static size_t queue_taken;
static bool more_follows, accepted, ended;
static FILE *nowhere;
static td_edit_matches matches;
static char *prompt_text;

// ---- what readline calls ----

static int next_byte(FILE *stream) {
  (void)stream;
  return queue_taken < queue.length ? (unsigned char)queue.data[queue_taken++] : EOF;
}

static int byte_waits(void) { return queue_taken < queue.length; }

static void draw_nothing(void) {}

static bool waiting(int milliseconds) {
  (void)milliseconds;
  return more_follows;
}

static void on_line(char *line) {
  if (line) accepted = true;
  else ended = true;
  free(line);
}

static void keep_matches(char **words, int count, int longest) {
  (void)longest;
  td_edit_matches_drop();
  matches.words = td_memory_new_zero((size_t)count * sizeof *matches.words);
  if (!matches.words) return;
  for (int i = 1; i <= count; i++) matches.words[matches.count++] = td_memory_text(words[i]);
  matches.files = rl_filename_completion_desired;
}

// Keys by one sequence each, whatever the terminal sends for them.
static const struct { uint32_t code; int modifiers; const char *bytes; rl_command_func_t *function; } keys[] = {
    {TD_KEY_UP, 0, "\033[A", NULL},
    {TD_KEY_DOWN, 0, "\033[B", NULL},
    {TD_KEY_RIGHT, 0, "\033[C", NULL},
    {TD_KEY_LEFT, 0, "\033[D", NULL},
    {TD_KEY_HOME, 0, "\033[H", NULL},
    {TD_KEY_END, 0, "\033[F", NULL},
    {TD_KEY_DELETE, 0, "\033[3~", rl_delete},
    {TD_KEY_RIGHT, TD_CONTROL, "\033[1;5C", rl_forward_word},
    {TD_KEY_LEFT, TD_CONTROL, "\033[1;5D", rl_backward_word},
    {TD_KEY_RIGHT, TD_ALT, "\033[1;3C", rl_forward_word},
    {TD_KEY_LEFT, TD_ALT, "\033[1;3D", rl_backward_word},
    {TD_KEY_BACK_TAB, 0, "\033[Z", NULL},
    {TD_KEY_BACKSPACE, 0, "\177", rl_rubout}};

static void bind_special_keys(void) {
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (keys[i].function) rl_bind_keyseq_if_unbound(keys[i].bytes, keys[i].function);
}

// ---- life ----

void td_edit_start(td_session *session) {
  nowhere = fopen("/dev/null", "we");
  rl_outstream = nowhere;
  rl_instream = stdin;
  rl_getc_function = next_byte;
  rl_input_available_hook = byte_waits;
  rl_redisplay_function = draw_nothing;
  rl_prep_term_function = NULL;
  rl_deprep_term_function = NULL;
  rl_completion_query_items = 0;
  rl_completion_display_matches_hook = keep_matches;
  td_edit_keys_start(session, waiting);
  bind_special_keys();
  rl_variable_bind("bell-style", "none");
  rl_variable_bind("enable-bracketed-paste", "off");
  rl_variable_bind("keyseq-timeout", "0");
  rl_callback_handler_install("", on_line);
}

void td_edit_stop(void) {
  rl_callback_handler_remove();
  clear_history();
  td_edit_matches_drop();
  td_text_clear(&queue);
  td_memory_free(prompt_text);
  prompt_text = NULL;
  if (nowhere) fclose(nowhere);
  nowhere = NULL;
}

// ---- the text ----

void td_edit_set(const char *text, size_t length, size_t cursor, const char *prompt) {
  char *copy = td_memory_new(length + 1);
  if (!copy) return;
  memcpy(copy, text, length);
  copy[length] = 0;
  td_memory_free(prompt_text);
  prompt_text = td_memory_text(prompt);
  rl_free_line_state();
  rl_callback_sigcleanup();
  rl_callback_handler_install(prompt_text ? prompt_text : "", on_line);
  rl_replace_line(copy, 1);
  using_history();
  rl_point = (int)(cursor < length ? cursor : length);
  td_memory_free(copy);
  td_edit_matches_drop();
}

const char *td_edit_text(size_t *length, size_t *cursor) {
  *length = (size_t)rl_end;
  *cursor = (size_t)rl_point;
  return rl_line_buffer;
}

const char *td_edit_question(void) {
  bool asks = RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG) != 0;
  return asks && rl_display_prompt ? rl_display_prompt : NULL;
}

const char *td_edit_mode(void) {
  if (rl_editing_mode) return NULL;
  const char *map = rl_get_keymap_name(rl_get_keymap());
  return map && strcmp(map, "vi-insert") == 0 ? "INS" : "NOR";
}

bool td_edit_set_mode(const char *mode) {
  if (strcmp(mode, "emacs") == 0) return rl_emacs_editing_mode(1, 0), true;
  return strcmp(mode, "vi") == 0 ? rl_vi_editing_mode(1, 0), true : false;
}

bool td_edit_takes_escape(void) {
  const char *mode = td_edit_mode();
  return td_edit_question() || (mode && *mode == 'I');
}

// ---- keys ----

static bool is_sequence(const td_key *key) {
  return key->length > 2 && key->bytes[0] == '\033' && (key->bytes[1] == '[' || key->bytes[1] == 'O');
}

static const char *plain_bytes(const td_key *key, size_t *length) { // of a character that came as a sequence
  static char bytes[8];
  *length = 0;
  if (key->modifiers & TD_ALT) bytes[(*length)++] = '\033';
  if (key->modifiers & TD_CONTROL && key->code >= '@' && key->code < 127) bytes[(*length)++] = (char)(key->code & 31);
  else *length += (size_t)td_utf8_encode(bytes + *length, key->code);
  return bytes;
}

// What readline gets for a key. A sequence that nothing is bound to would be taken apart, and its end typed.
static const char *bytes_of(const td_key *key, size_t *length) {
  *length = key->length;
  if (!is_sequence(key)) return key->bytes;
  if (key->code < TD_KEY_FIRST) return plain_bytes(key, length);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (keys[i].code == key->code && keys[i].modifiers == key->modifiers)
      return *length = strlen(keys[i].bytes), keys[i].bytes;
  int type = ISKMAP;
  if (!rl_function_of_keyseq_len(key->bytes, key->length, NULL, &type) || type == ISKMAP) *length = 0;
  return key->bytes;
}

static void feed(const char *bytes, size_t length) {
  queue.length = queue_taken = 0;
  td_text_add_bytes(&queue, bytes, length);
  while (queue_taken < queue.length && !accepted && !ended) rl_callback_read_char();
}

void td_edit_end_question(void) {
  if (RL_ISSTATE(RL_STATE_NSEARCH)) feed("\a", 1);
  else if (td_edit_question()) rl_callback_sigcleanup();
}

static bool is_first_of_more(const char *bytes, size_t length) {
  int type = ISFUNC;
  if (length == 1 && *bytes != '\033') rl_function_of_keyseq_len(bytes, length, NULL, &type);
  return type == ISKMAP;
}

static td_edit_result read_key(const td_key *key, bool more) {
  char *before = td_memory_new((size_t)rl_end + 1);
  int point = rl_point, end = rl_end;
  if (before) memcpy(before, rl_line_buffer, (size_t)rl_end + 1);
  accepted = ended = false;
  more_follows = more;
  size_t length;
  const char *bytes = bytes_of(key, &length);
  if (is_first_of_more(bytes, length)) td_edit_end_question(); // readline crashes on it in a search
  feed(bytes, length);
  td_edit_result result = TD_EDIT_NOTHING;
  if (accepted) { // readline emptied its line; the face decides what becomes of the text
    rl_replace_line(before ? before : "", 0);
    rl_point = point;
    result = td_edit_keys_submitted() ? TD_EDIT_SUBMIT : TD_EDIT_ENTER;
  } else if (ended) result = TD_EDIT_END;
  else if (!before || rl_end != end || memcmp(before, rl_line_buffer, (size_t)end) != 0) result = TD_EDIT_CHANGED;
  td_memory_free(before);
  return result;
}

td_edit_result td_edit_key(const td_key *key, bool more) {
  bool enter = key->code == TD_KEY_ENTER;
  td_edit_matches_drop();
  if (key->code == TD_KEY_PASTE) {
    td_edit_insert(key->bytes, key->length);
    return TD_EDIT_CHANGED;
  }
  if (enter && !td_edit_question()) return key->modifiers ? TD_EDIT_SUBMIT : TD_EDIT_ENTER;
  td_edit_result result = read_key(key, more);
  return result;
}

void td_edit_insert(const char *text, size_t length) {
  char *copy = td_memory_new(length + 1);
  if (!copy) return;
  memcpy(copy, text, length);
  copy[length] = 0;
  rl_begin_undo_group();
  rl_insert_text(copy);
  rl_end_undo_group();
  td_memory_free(copy);
}

void td_edit_newline(const char *indent) {
  rl_begin_undo_group();
  rl_insert_text("\n");
  rl_insert_text(indent);
  rl_end_undo_group();
}

void td_edit_clear(void) {
  rl_free_line_state();
  rl_callback_sigcleanup();
  rl_replace_line("", 1);
  rl_clear_message();
  rl_callback_handler_install(prompt_text ? prompt_text : "", on_line);
  td_edit_matches_drop();
}

void td_edit_remember(const char *cell) { td_edit_keys_remember(cell); }

int td_edit_history_position(void) { return where_history(); }

void td_edit_history_load(int position) {
  if (position >= history_length || !history_set_pos(position)) return;
  const HIST_ENTRY *entry = current_history();
  if (!entry) return;
  rl_replace_line(entry->line, 1);
  rl_point = rl_end;
}

// ---- completion ----

const td_edit_matches *td_edit_matches_now(void) { return &matches; }

void td_edit_matches_drop(void) {
  for (int i = 0; i < matches.count; i++) td_memory_free(matches.words[i]);
  td_memory_free(matches.words);
  matches = (td_edit_matches){0};
}
