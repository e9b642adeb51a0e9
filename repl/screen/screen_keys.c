// Keys to requests, and who gets them: a question in the status line first, then what has the focus, then everything.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/notebook/charset.h"
#include "repl/notebook/report.h"
#include "repl/screen/display.h"
#include "repl/screen/screen.h"

enum { WHEEL_ROWS = 3, SHARE_STEP = 5, SHARE_USUAL = 45 };

// ---- what is edited ----

static bool is_editing(const td_screen *s) { return s->focus == TD_FOCUS_PROMPT || s->focus == TD_FOCUS_CELL; }

static void keep(td_text *to, const char *text, size_t length) {
  to->length = 0;
  td_text_add_bytes(to, text, length);
}

void td_screen_sync(td_screen *s) {
  if (s->question.answer) return;
  size_t length, cursor;
  const char *text = td_edit_text(&length, &cursor);
  if (s->focus == TD_FOCUS_PROMPT && s->input) keep(&s->input_line, text, length);
  else if (s->focus == TD_FOCUS_PROMPT) {
    keep(&s->draft, text, length);
    s->draft_cursor = cursor;
  } else if (s->focus == TD_FOCUS_CELL && s->view.selected < s->notebook->count) {
    const td_text *old = &s->notebook->cells[s->view.selected]->text;
    if (old->length != length || (length && memcmp(old->data, text, length) != 0))
      td_notebook_type(s->notebook, s->view.selected, text, length);
  }
}

void td_screen_edit_prompt(td_screen *s) {
  const td_text *text = s->input ? &s->input_line : &s->draft;
  size_t cursor = s->input ? text->length : s->draft_cursor;
  td_edit_set(text->data ? text->data : "", text->length, cursor, "");
}

static void load_editor(td_screen *s) {
  if (s->focus == TD_FOCUS_PROMPT) td_screen_edit_prompt(s);
  if (s->focus != TD_FOCUS_CELL || s->view.selected >= s->notebook->count) return;
  const td_text *text = &s->notebook->cells[s->view.selected]->text;
  td_edit_set(text->data ? text->data : "", text->length, text->length, "");
}

void td_screen_focus(td_screen *s, td_focus focus) {
  td_screen_sync(s);
  td_popup_clear(&s->popup);
  if ((focus == TD_FOCUS_CELLS || focus == TD_FOCUS_CELL) && !s->notebook->count) focus = TD_FOCUS_PROMPT;
  if (focus == TD_FOCUS_PROMPT && s->focus != TD_FOCUS_PROMPT) s->view.follow = true;
  if (focus == TD_FOCUS_CELLS && s->focus == TD_FOCUS_PROMPT) // the newest; where one has scrolled to, what is in sight
    td_cells_view_select(&s->view, s->view.follow ? s->notebook->count - 1 : s->view.top_cell + (s->view.top_row > 0));
  s->focus = focus;
  s->dirty = true;
  s->tip.callee[0] = 0;
  load_editor(s);
}

// ---- questions in the status line ----

static void ask(td_screen *s, const char *prompt, void (*answer)(void *, const char *), void *argument, bool key) {
  td_screen_sync(s);
  s->question = (td_question){.answer = answer, .argument = argument, .key = key};
  snprintf(s->question.prompt, sizeof s->question.prompt, "%s", prompt);
  td_edit_set("", 0, 0, "");
  s->dirty = true;
}

void td_screen_ask(td_screen *s, const char *prompt, void (*answer)(void *, const char *), void *argument) {
  ask(s, prompt, answer, argument, false);
}

void td_screen_ask_key(td_screen *s, const char *prompt, void (*answer)(void *, const char *), void *argument) {
  ask(s, prompt, answer, argument, true);
}

static void answer_question(td_screen *s, const char *line) {
  td_question question = s->question;
  char *copy = line ? td_memory_text(line) : NULL;
  s->question.answer = NULL;
  load_editor(s);
  question.answer(question.argument, copy);
  td_memory_free(copy);
}

static void question_key(td_screen *s, const td_key *key) {
  bool leaves = key->code == TD_KEY_ESCAPE || (key->code == 'g' && key->modifiers == TD_CONTROL);
  if (leaves && !td_edit_takes_escape()) {
    answer_question(s, NULL);
  } else if (s->question.key) {
    char letter[5] = "";
    if (key->code < 128) letter[0] = (char)(key->modifiers & TD_CONTROL ? key->code & 31 : key->code);
    else if (key->code == TD_KEY_ENTER) letter[0] = '\n';
    if (*letter) answer_question(s, letter);
  } else {
    td_edit_result result = td_edit_key(key, false);
    size_t length, cursor;
    if (result == TD_EDIT_ENTER || result == TD_EDIT_SUBMIT) answer_question(s, td_edit_text(&length, &cursor));
    else if (result == TD_EDIT_END) answer_question(s, NULL);
  }
}

// ---- the editor's keys ----

static void show_matches(td_screen *s) {
  const td_edit_matches *matches = td_edit_matches_now();
  td_popup_clear(&s->popup);
  if (matches->count) td_popup_fill(&s->popup, s->session, matches);
}

static void edit_key(td_screen *s, const td_key *key, bool more) {
  bool recalls = key->code == TD_KEY_UP || key->code == TD_KEY_DOWN || key->code == TD_KEY_PASTE ||
                 (key->modifiers == TD_CONTROL && strchr("pnrs", (int)key->code & 127));
  td_edit_result result = td_edit_key(key, more);
  if (recalls && result == TD_EDIT_CHANGED) s->line_typed = false;
  switch (result) {
  case TD_EDIT_ENTER: td_screen_enter(s, more); break;
  case TD_EDIT_SUBMIT: td_screen_request(s, TD_REQUEST_SUBMIT); break;
  case TD_EDIT_END:
    if (s->focus == TD_FOCUS_CELL) break;
    if (s->input) {
      td_session_reply(s->session, NULL);
      s->input = false;
      td_screen_edit_prompt(s);
    } else td_screen_quit(s);
    break;
  default: td_screen_sync(s); break;
  }
  size_t length, cursor;
  const char *text = td_edit_text(&length, &cursor);
  td_tip_look(&s->tip, s->session, text, cursor);
  show_matches(s);
}

// Keys that readline joins with Ctrl-X: those that no request took.
static void edit_after_prefix(td_screen *s, const td_key *prefix, const td_key *key, bool more) {
  char bytes[64];
  size_t length = 0;
  if (prefix->modifiers == TD_CONTROL) bytes[length++] = (char)(prefix->code & 31);
  if (length + key->length > sizeof bytes) return;
  memcpy(bytes + length, key->bytes, key->length);
  td_key joined = *key;
  joined.bytes = bytes;
  joined.length = length + key->length;
  edit_key(s, &joined, more);
}

// ---- the mouse ----

static bool inside(td_rect area, const td_key *key) {
  return key->row >= area.row && key->row < area.row + area.rows && key->column >= area.column &&
         key->column < area.column + area.columns;
}

static void click(td_screen *s, const td_key *key) {
  if (inside(s->layout.input, key)) td_screen_focus(s, TD_FOCUS_PROMPT);
  else if (inside(s->layout.cells, key)) {
    size_t byte = 0;
    int index = td_cells_view_at(&s->view, key->row - s->layout.cells.row, key->column - s->layout.cells.column, &byte);
    if (index < 0) return;
    bool again = s->focus == TD_FOCUS_CELLS && s->view.selected == index;
    td_screen_focus(s, TD_FOCUS_CELLS);
    td_cells_view_select(&s->view, index);
    if (again) td_screen_edit_cell(s, index);
  } else if (s->pane >= 0 && inside(s->layout.pane, key)) {
    const td_pane_type *type = td_screen_pane_type(s->pane);
    td_screen_focus(s, TD_FOCUS_PANE);
    td_key local = *key;
    local.row -= s->layout.pane.row + 1;
    local.column -= s->layout.pane.column;
    if (type->click && local.row >= 0) type->click(s->states[s->pane], &local);
  }
}

static void wheel(td_screen *s, const td_key *key) {
  bool up = key->code == TD_KEY_WHEEL_UP;
  if (s->pane >= 0 && inside(s->layout.pane, key)) {
    for (int i = 0; i < WHEEL_ROWS; i++)
      td_screen_pane_type(s->pane)->request(s->states[s->pane], up ? TD_REQUEST_PANE_UP : TD_REQUEST_PANE_DOWN);
  } else td_cells_view_scroll(&s->view, up ? -WHEEL_ROWS : WHEEL_ROWS);
}

static bool mouse_key(td_screen *s, const td_key *key) {
  switch (key->code) {
  case TD_KEY_MOUSE_PRESS: click(s, key); return true;
  case TD_KEY_WHEEL_UP: case TD_KEY_WHEEL_DOWN: wheel(s, key); return true;
  case TD_KEY_MOUSE_DRAG: case TD_KEY_MOUSE_RELEASE: return true;
  default: return false;
  }
}

// ---- all keys ----

enum td_context_kind td_screen_context(const td_screen *s) {
  switch (s->focus) {
  case TD_FOCUS_CELLS: return TD_IN_CELLS;
  case TD_FOCUS_PANE: return s->pane >= 0 ? td_screen_pane_type(s->pane)->context : TD_IN_ANY;
  default: return TD_IN_EDIT;
  }
}

static bool begins_request(const td_screen *s, const td_key *key) { // the first of two keys
  td_key prefix = {0};
  bool pending;
  td_request_find(key, td_screen_context(s), &prefix, &pending);
  return pending;
}

static bool is_beyond_ascii(const td_key *key) {
  if (key->code != TD_KEY_PASTE) return key->code >= 128 && key->code < TD_KEY_FIRST;
  for (size_t i = 0; i < key->length; i++)
    if ((unsigned char)key->bytes[i] >= 128) return true;
  return false;
}

// In a locale of ASCII, once: what the terminal sends it also shows.
static void take_unicode(td_screen *s) {
  enum { SECONDS = 4 }; // while one types on
  if (td_display_shows_unicode()) return;
  if (td_charset_typing()) td_display_show_unicode();
  td_screen_say(s, td_display_shows_unicode()
                       ? "the locale is ASCII, but the terminal sends UTF-8: it is kept"
                       : "the locale is ASCII, what else is typed is lost: LC_ALL=C.UTF-8 keeps it");
  s->message_until = td_screen_now() + SECONDS;
}

void td_screen_key(td_screen *s, const td_key *key, bool more) {
  s->dirty = true;
  if (td_screen_now() >= s->message_until) s->message[0] = 0;
  if (is_beyond_ascii(key)) take_unicode(s);
  if (key->code == 'c' && key->modifiers == TD_CONTROL && !s->prefix.code) {
    td_screen_interrupt(s);
    return;
  }
  if (s->question.answer) {
    question_key(s, key);
    return;
  }
  if (mouse_key(s, key)) return;
  bool editing = is_editing(s), escape = key->code == TD_KEY_ESCAPE && !key->modifiers;
  if (editing && td_edit_question() && begins_request(s, key)) td_edit_end_question();
  if (editing && (key->code == TD_KEY_PASTE || td_edit_question() || (escape && td_edit_takes_escape()))) {
    edit_key(s, key, more);
    return;
  }
  td_key prefix = s->prefix;
  bool pending;
  enum td_request request = td_request_find(key, td_screen_context(s), &s->prefix, &pending);
  if (pending) return;
  if (request) td_screen_request(s, request);
  else if (editing && prefix.code) edit_after_prefix(s, &prefix, key, more);
  else if (editing) edit_key(s, key, more);
}

// ---- requests that are nobody's but the screen's ----

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void help_on_word(td_screen *s) {
  size_t length, cursor;
  const char *text = td_edit_text(&length, &cursor);
  size_t begin = cursor, end = cursor;
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '.')) begin--;
  while (end < length && is_word(text[end])) end++;
  char name[128];
  snprintf(name, sizeof name, "%.*s", (int)(end - begin), text + begin);
  int pane = td_screen_find_pane("help");
  td_screen_show_pane(s, pane, false);
  if (*name) s->host.inquire(s, td_report_help, name, TD_PANE_IDS * (pane + 1));
}

static void external_editor(td_screen *s) {
  const char *program = getenv("VISUAL");
  if (!program || !*program) program = getenv("EDITOR");
  if (!program || !*program) program = "vi";
  char path[] = "/tmp/tapedeck-XXXXXX.deck";
  int file = mkstemps(path, 5);
  size_t length, cursor;
  const char *text = td_edit_text(&length, &cursor);
  if (file < 0 || write(file, text, length) != (ssize_t)length) {
    if (file >= 0) close(file);
    td_screen_say(s, "no temporary file for the editor");
    return;
  }
  close(file);
  td_text command = {0};
  td_text_print(&command, "%s '%s'", program, path);
  td_display_leave();
  int status = command.data ? system(command.data) : -1;
  td_display_return();
  td_text_clear(&command);
  td_context *context = td_context_new(1);
  char *bytes = NULL;
  size_t size;
  if (status == 0 && context && td_file_read(context, path, TD_PASTE_MOST, &bytes, &size) == TD_OK) {
    while (size && bytes[size - 1] == '\n') size--;
    td_edit_set(bytes, size, size, "");
    s->line_typed = false;
    td_screen_sync(s);
  } else td_screen_say(s, "the editor failed: %s", program);
  td_memory_free(bytes);
  td_context_free(context);
  unlink(path);
}

// A pane's key opens it and leaves the focus where it is, goes into it when it is open, and closes it from within.
static bool toggle_pane(td_screen *s, enum td_request request) {
  for (int i = 0; i < TD_PANE_COUNT; i++) {
    if (td_screen_pane_type(i)->toggle != request) continue;
    bool open = s->pane == i, focused = open && s->focus == TD_FOCUS_PANE;
    td_screen_show_pane(s, focused ? -1 : i, open && !focused);
    return true;
  }
  return false;
}

static bool screen_request(td_screen *s, enum td_request request) {
  switch (request) {
  case TD_REQUEST_SHOW_CELLS: td_screen_focus(s, s->focus == TD_FOCUS_CELLS ? TD_FOCUS_PROMPT : TD_FOCUS_CELLS); break;
  case TD_REQUEST_QUIT: td_screen_quit(s); break;
  case TD_REQUEST_SAVE: td_screen_ask_save(s); break;
  case TD_REQUEST_OTHER:
    if (s->pane < 0) td_screen_say(s, "no pane is open: F2 curves, F3 tape, F9 variables");
    else td_screen_focus(s, s->focus == TD_FOCUS_PANE ? TD_FOCUS_PROMPT : TD_FOCUS_PANE);
    break;
  case TD_REQUEST_CLOSE_PANE: td_screen_show_pane(s, -1, false); break;
  case TD_REQUEST_ZOOM: s->zoomed = s->pane >= 0 && !s->zoomed; break;
  case TD_REQUEST_WIDER: s->share += s->share < 80 ? SHARE_STEP : 0; break;
  case TD_REQUEST_NARROWER: s->share -= s->share > 20 ? SHARE_STEP : 0; break;
  case TD_REQUEST_SIZES: s->share = SHARE_USUAL, s->zoomed = false; break;
  case TD_REQUEST_REDRAW: td_display_redraw(); break;
  case TD_REQUEST_SUSPEND: td_display_suspend(); break;
  case TD_REQUEST_EXPORT: td_screen_export(s); break;
  case TD_REQUEST_PANE_LEAVE: td_screen_focus(s, TD_FOCUS_PROMPT); break;
  case TD_REQUEST_PANE_CLOSE: td_screen_show_pane(s, -1, false); break;
  case TD_REQUEST_LEAVE_EDIT: td_screen_leave_edit(s); break;
  case TD_REQUEST_SCROLL_UP: td_cells_view_scroll(&s->view, -s->layout.cells.rows / 2 - 1); break;
  case TD_REQUEST_SCROLL_DOWN: td_cells_view_scroll(&s->view, s->layout.cells.rows / 2 + 1); break;
  case TD_REQUEST_CALL_HELP: help_on_word(s); break;
  case TD_REQUEST_EDITOR: external_editor(s); break;
  default: return false;
  }
  return true;
}

void td_screen_leave_edit(td_screen *s) {
  if (td_edit_matches_now()->count) { // the list of completions goes first
    td_edit_matches_drop();
    td_popup_clear(&s->popup);
    return;
  }
  td_screen_focus(s, TD_FOCUS_CELLS);
}

void td_screen_request(td_screen *s, enum td_request request) {
  s->dirty = true;
  if (s->focus == TD_FOCUS_PANE && s->pane >= 0 &&
      td_screen_pane_type(s->pane)->request(s->states[s->pane], request))
    return;
  if (toggle_pane(s, request) || screen_request(s, request) || td_screen_run_request(s, request)) return;
  td_screen_cells_request(s, request);
}
