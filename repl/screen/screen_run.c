// Running cells: from the prompt and from the notebook, one after another or at a step boundary; pausing, going on and
// stopping; and the session's events, which go to the notebook, the bars and every pane.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "repl/notebook/cell_names.h"
#include "repl/line/render.h"
#include "repl/notebook/entry.h"
#include "repl/notebook/visible.h"
#include "repl/screen/display.h"
#include "repl/screen/screen.h"

// ---- cells ----

static const char *folder_of(const td_screen *s, char folder[1024]) {
  const char *slash = s->path ? strrchr(s->path, '/') : NULL;
  size_t length = slash ? (size_t)(slash - s->path) : 0;
  if (!slash || length >= 1024) return "";
  if (!length) return "/";
  memcpy(folder, s->path, length);
  folder[length] = 0;
  return folder;
}

void td_screen_run_cell(td_screen *s, int index, bool at_step) {
  const td_notebook_cell *cell = s->notebook->cells[index];
  if (cell->markdown) return;
  if (cell->status == TD_CELL_RUNNING || cell->status == TD_CELL_PAUSED || cell->status == TD_CELL_QUEUED) {
    td_screen_say(s, cell->status == TD_CELL_QUEUED ? "it waits already" : "it runs already");
    return;
  }
  char name[32], folder[1024];
  int number = td_notebook_queue(s->notebook, index);
  snprintf(name, sizeof name, "cell %d", number);
  td_run_options options = {.name = name, .folder = folder_of(s, folder), .echo_last = true, .cell = number,
                            .at_step = at_step};
  cell = s->notebook->cells[index];
  if (!number || !td_session_run(s->session, cell->text.data ? cell->text.data : "", cell->text.length, &options))
    td_screen_say(s, "no memory to run this cell");
}

static void run_range(td_screen *s, int first, int end, bool stale_only) {
  for (int i = first; i < end; i++)
    if (!stale_only || s->notebook->cells[i]->stale) td_screen_run_cell(s, i, false);
}

// A cell that failed takes those that wait for it along: what they need isn't there.
static void drop_queue(td_screen *s) {
  int dropped = td_session_drop_queued(s->session);
  if (dropped > 0) td_screen_say(s, "%d cell%s that waited won't run", dropped, dropped == 1 ? "" : "s");
}

// ---- the prompt ----

static bool is_read_only(const char *line) { // looks at things, and changes none
  static const char *const words[] = {"%who",  "%whos",    "%mem",  "%tape",  "%plot",
                                      "%runs", "%history", "%help", "%health"};
  size_t length = strcspn(line, " \t\n");
  if (*line == '?') return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == length && strncmp(line, words[i], length) == 0) return true;
  size_t end = strlen(line);
  return end > 1 && line[end - 1] == '?';
}

// Commands on the run itself are no cells.
static bool control_run(td_screen *s, const char *line) {
  static const struct { const char *command; enum td_request request; } rows[] = {
      {"%resume", TD_REQUEST_RESUME}, {"%step", TD_REQUEST_STEP}, {"%stop", TD_REQUEST_STOP}};
  if (strcmp(line, "%pause") == 0) {
    if (!td_session_pause(s->session)) td_screen_say(s, "nothing runs that takes steps");
    return true;
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(line, rows[i].command) == 0) {
      bool paused = td_session_get_state(s->session) >= TD_SESSION_PAUSING;
      if (paused || rows[i].request != TD_REQUEST_RESUME) td_screen_run_request(s, rows[i].request);
      else td_screen_say(s, "nothing is paused");
      return true;
    }
  return false;
}

// "%plot loss": the pane draws it, where it has a curve of that name.
static bool show_curve(td_screen *s, const char *line) {
  int pane = td_screen_find_pane("curves");
  size_t command = strlen("%plot");
  const char *name = line + command + strspn(line + command, " ");
  if (strncmp(line, "%plot ", command + 1) != 0 || !td_screen_pane_type(pane)->find(s->states[pane], name))
    return false;
  td_screen_show_pane(s, pane, false);
  return true;
}

static void tell_images(td_screen *s) { // once
  int pane = td_screen_find_pane("images");
  if (!s->images_told && s->pane != pane) td_screen_say(s, "Ctrl-X i shows images larger, one after another");
  s->images_told = true;
}

static void empty_prompt(td_screen *s) {
  s->draft.length = s->draft_cursor = 0;
  if (s->draft.data) *s->draft.data = 0;
  s->line_typed = false;
  if (s->focus == TD_FOCUS_PROMPT) td_screen_edit_prompt(s);
}

// Prompts of a transcript that was pasted: "[3]> ", ">>> " and their continuations go, and so do the lines of output.
static bool is_prompt(const char *line, size_t *size) {
  int used = 0, number;
  if (strncmp(line, ">>> ", 4) == 0 || strncmp(line, "... ", 4) == 0) return *size = 4, true;
  if (sscanf(line, "[%d]> %n", &number, &used) == 1 && used) return *size = (size_t)used, true;
  const char *dots = line + strspn(line, " ");
  if (dots > line && strncmp(dots, "... ", 4) == 0) return *size = (size_t)(dots + 4 - line), true;
  return false;
}

static void strip_prompts(td_text *entry) {
  size_t size;
  if (!entry->length || !is_prompt(entry->data, &size) || entry->data[0] == '.') return;
  td_text plain = {0};
  for (const char *line = entry->data; *line;) {
    size_t length = strcspn(line, "\n");
    if (is_prompt(line, &size) && size <= length) td_text_add_bytes(&plain, line + size, length - size);
    if (is_prompt(line, &size) && size <= length) td_text_add_char(&plain, '\n');
    line += length + (line[length] == '\n');
  }
  td_text_clear(entry);
  *entry = plain;
}

// A body that was pasted with its indentation stands at the margin.
static void dedent(td_text *entry) {
  size_t indent = entry->length ? strspn(entry->data, " \t") : 0;
  for (const char *line = entry->data; indent && line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    size_t own = strspn(line, " \t");
    if (line[own] == '\n' || !line[own]) continue;
    while (indent && (own < indent || memcmp(line, entry->data, indent) != 0)) indent--;
  }
  if (!indent) return;
  td_text plain = {0};
  for (const char *line = entry->data; *line;) {
    size_t length = strcspn(line, "\n"), blank = strspn(line, " \t"), skip = blank < indent ? blank : indent;
    if (skip > length) skip = length;
    td_text_add_bytes(&plain, line + skip, length - skip + (line[length] == '\n'));
    line += length + (line[length] == '\n');
  }
  td_text_clear(entry);
  *entry = plain;
}

static void run_new_cell(td_screen *s, const char *text, size_t length, bool at_step) {
  int index = s->notebook->count;
  if (!td_notebook_insert(s->notebook, index, false, text, length)) {
    td_screen_say(s, "no memory for a cell");
    return;
  }
  s->view.follow = true;
  bool waits = td_session_get_state(s->session) == TD_SESSION_RUNNING;
  td_screen_run_cell(s, index, at_step || is_read_only(text));
  if (waits && at_step && td_session_takes_steps(s->session)) td_screen_say(s, "runs at the next step");
  else if (waits && !is_read_only(text))
    td_screen_say(s, "waits for its turn%s",
                  td_session_takes_steps(s->session) ? "; Alt-Enter runs at the next step" : "");
}

void td_screen_run_line(void *screen, const char *line) { run_new_cell(screen, line, strlen(line), false); }

bool td_screen_reply(td_screen *s, const char *line) {
  if (!s->input) return false;
  td_session_reply(s->session, line);
  s->input = false;
  s->input_line.length = 0;
  if (s->focus == TD_FOCUS_PROMPT) td_screen_edit_prompt(s);
  return true;
}

static void reply(td_screen *s) {
  size_t length, cursor;
  td_screen_reply(s, td_edit_text(&length, &cursor));
}

void td_screen_submit(td_screen *s, bool at_step) {
  if (s->input) {
    reply(s);
    return;
  }
  td_screen_sync(s);
  td_text entry = {0};
  td_text_add_bytes(&entry, s->draft.data ? s->draft.data : "", s->draft.length);
  strip_prompts(&entry);
  dedent(&entry);
  td_entry_trim(&entry);
  int position = td_edit_history_position();
  if (entry.length) td_edit_remember(entry.data);
  empty_prompt(s);
  if (entry.length && entry.data[0] == ':') td_screen_colon(s, entry.data + 1);
  else if (entry.length && td_entry_leaves(entry.data)) td_screen_quit(s);
  else if (entry.length && !td_screen_set_command(s, entry.data) && !control_run(s, entry.data) &&
           !show_curve(s, entry.data))
    run_new_cell(s, entry.data, entry.length, at_step);
  td_text_clear(&entry);
  s->replay_at = position;
}

static void newline(td_screen *s, size_t cursor, const char *text) {
  td_text before = {0};
  char indent[TD_ENTRY_INDENT_MOST] = "";
  td_text_add_bytes(&before, text, cursor);
  if (before.data) td_entry_indent(s->session, &before, indent);
  td_text_clear(&before);
  td_edit_newline(indent);
  s->line_typed = true;
  td_screen_sync(s);
}

static bool is_whole(td_screen *s, const char *text, size_t length, size_t cursor) {
  td_text entry = {0};
  td_text_add_bytes(&entry, text, length);
  bool at_end = cursor + strspn(text + cursor, " \t\n") >= length, whole;
  const char *last = memrchr(text, '\n', length);
  last = last && s->line_typed ? last + 1 : text;
  if (*text == ':' || *text == '%' || *text == '!' || *text == '?') whole = !strchr(text, '\n');
  else if (at_end) whole = td_entry_is_whole(s->session, &entry, last, !memchr(text, '\n', length), false);
  else whole = td_entry_is_parsed(s->session, &entry);
  td_text_clear(&entry);
  return whole;
}

void td_screen_enter(td_screen *s, bool more) {
  size_t length, cursor;
  const char *text = td_edit_text(&length, &cursor);
  if (s->input) reply(s);
  else if (more && length) { // part of a paste that came without its marks
    td_edit_newline("");
    td_screen_sync(s);
  } else if (s->focus == TD_FOCUS_CELL) newline(s, cursor, text);
  else if (!text[strspn(text, " \t\n")]) empty_prompt(s);
  else if (is_whole(s, text, length, cursor)) td_screen_submit(s, false);
  else newline(s, cursor, text);
}

// ---- pausing ----

static void say_of_run(td_screen *s, const char *text) { // until the cell ends
  td_screen_say(s, "%s", text);
  s->message_run = s->run_number;
}

static void say_stopping(td_screen *s) {
  int dropped = td_session_drop_queued(s->session);
  char text[64];
  snprintf(text, sizeof text, "stopping; %d that waited won't run", dropped);
  say_of_run(s, dropped > 0 ? text : "stopping");
}

void td_screen_interrupt(td_screen *s) {
  if (s->question.answer) {
    td_key escape = {.code = TD_KEY_ESCAPE, .bytes = "\033", .length = 1};
    td_screen_key(s, &escape, false);
    return;
  }
  bool typed = s->focus == TD_FOCUS_PROMPT && s->draft.length && !s->input;
  switch (td_session_get_state(s->session)) {
  case TD_SESSION_IDLE:
    if (typed || td_edit_question()) td_edit_clear(), empty_prompt(s);
    else td_screen_say(s, "nothing runs; Ctrl-D or Ctrl-X Ctrl-C leaves");
    td_screen_sync(s);
    break;
  case TD_SESSION_RUNNING:
    if (!s->input && !s->interrupting && td_session_pause(s->session))
      say_of_run(s, "pausing at the next step; Ctrl-C again stops");
    else {
      td_session_interrupt(s->session);
      s->interrupting = true;
      s->input = false;
      say_stopping(s);
    }
    break;
  case TD_SESSION_ASIDE:
    td_session_interrupt(s->session);
    say_of_run(s, "stopping the cell; the run stays paused");
    break;
  default:
    if (typed) td_edit_clear(), empty_prompt(s);
    else td_screen_request(s, TD_REQUEST_STOP);
  }
  s->dirty = true;
}

static void stop(td_screen *s) {
  if (td_session_get_state(s->session) == TD_SESSION_IDLE) {
    td_screen_say(s, "nothing runs");
    return;
  }
  if (!td_session_stop_run(s->session)) td_session_interrupt(s->session);
  say_stopping(s);
}

static void resume(td_screen *s) { // F5: go on; where nothing is paused, run the cell
  if (td_session_resume(s->session)) return;
  if (s->focus == TD_FOCUS_PROMPT) td_screen_submit(s, false);
  else if (s->view.selected < s->notebook->count) {
    td_screen_sync(s);
    td_screen_run_cell(s, s->view.selected, false);
  }
}

static void replay(td_screen *s) {
  if (s->focus != TD_FOCUS_PROMPT || s->input) return;
  td_screen_submit(s, false);
  td_edit_history_load(s->replay_at + 1);
  td_screen_sync(s);
}

bool td_screen_run_request(td_screen *s, enum td_request request) {
  int at = s->view.selected, count = s->notebook->count;
  bool cell = at < count;
  switch (request) {
  case TD_REQUEST_RESUME: resume(s); break;
  case TD_REQUEST_STEP: if (!td_session_step(s->session)) td_screen_say(s, "nothing is paused"); break;
  case TD_REQUEST_STOP: stop(s); break;
  case TD_REQUEST_REPLAY: replay(s); break;
  case TD_REQUEST_RUN_ALL: td_screen_sync(s); run_range(s, 0, count, false); break;
  case TD_REQUEST_SUBMIT:
    if (s->focus == TD_FOCUS_PROMPT) td_screen_submit(s, td_session_get_state(s->session) != TD_SESSION_IDLE);
    else if (cell) {
      td_screen_focus(s, TD_FOCUS_CELLS);
      td_screen_run_cell(s, at, false);
    }
    break;
  case TD_REQUEST_CELL_RUN: if (cell) td_screen_run_cell(s, at, false); break;
  case TD_REQUEST_CELL_RUN_NEXT:
    if (cell) td_screen_run_cell(s, at, false);
    if (at + 1 < count) td_cells_view_select(&s->view, at + 1);
    else td_screen_focus(s, TD_FOCUS_PROMPT);
    break;
  case TD_REQUEST_CELL_RUN_BELOW: run_range(s, at, count, false); break;
  case TD_REQUEST_CELL_RUN_ABOVE: run_range(s, 0, at, false); break;
  case TD_REQUEST_CELL_RUN_STALE: run_range(s, 0, count, true); break;
  default: return false;
  }
  return true;
}

// ---- %set ----

static bool set_mouse(td_screen *s, const char *value) {
  (void)s;
  if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0) return false;
  td_display_mouse(strcmp(value, "on") == 0);
  return true;
}

static bool set_theme(td_screen *s, const char *value) {
  if (strcmp(value, "mono") != 0) s->theme.colours = td_display_colours();
  return td_theme_set(&s->theme, value);
}

static bool set_editing(td_screen *s, const char *value) {
  (void)s;
  return td_edit_set_mode(value);
}

bool td_screen_set_command(td_screen *s, const char *line) {
  static const struct { const char *name; bool (*set)(td_screen *, const char *); const char *values; } settings[] = {
      {"mouse", set_mouse, "on, off"}, {"theme", set_theme, "dark, light, mono"},
      {"glyphs", set_theme, "braille, block, half, ascii"}, {"editing", set_editing, "emacs, vi"}};
  char name[32] = "", value[32] = "";
  if (strncmp(line, "%set", 4) != 0 || (line[4] && line[4] != ' ')) return false;
  sscanf(line + 4, "%31s %31s", name, value);
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    if (strcmp(settings[i].name, name) != 0) continue;
    if (settings[i].set(s, value)) td_screen_say(s, "%s: %s", name, value);
    else td_screen_say(s, "%%set %s: one of %s", name, settings[i].values);
    td_display_redraw();
    return true;
  }
  td_screen_say(s, "%%set mouse on|off, theme dark|light|mono, glyphs braille|block|half|ascii, editing emacs|vi");
  return true;
}

// ---- events ----

static void mark_stale(td_interpreter *I, void *notebook) { td_notebook_stale(notebook, I); }

static void finished(td_screen *s, const td_event *event) {
  if (event->level == 0) {
    s->run_number = 0;
    s->interrupting = false;
    s->input = false;
    if (s->message_run == event->cell) s->message[0] = 0;
    if (event->status == TD_RUN_FAILED || event->status == TD_RUN_INTERRUPTED) drop_queue(s);
  }
  if (event->status == TD_RUN_EXIT) {
    s->leaving = true;
    s->exit_code = (int)(event->total & 0xff);
  }
  td_session_ask(s->session, mark_stale, s->notebook);
}

static bool pane_answers(const td_screen *s) {
  if (s->focus != TD_FOCUS_PANE || s->pane < 0 || !td_screen_pane_type(s->pane)->answers) return false;
  return td_screen_pane_type(s->pane)->answers(s->states[s->pane]);
}

static void wants_input(td_screen *s, const td_event *event) {
  if (!pane_answers(s)) td_screen_focus(s, TD_FOCUS_PROMPT);
  s->input = true;
  s->input_line.length = s->input_prompt.length = 0;
  td_text_add_bytes(&s->input_prompt, event->text, event->length);
  if (s->focus == TD_FOCUS_PROMPT) td_screen_edit_prompt(s);
}

void td_screen_tell_panes(td_screen *s, const td_event *event) {
  for (int i = 0; i < TD_PANE_COUNT; i++)
    if (td_screen_pane_type(i)->event) td_screen_pane_type(i)->event(s->states[i], event);
}

static void show_open_line(const td_screen *s) { // what the running cell has written without its line end: a question
  int index = td_notebook_find_number(s->notebook, s->run_number);
  const td_notebook_cell *cell = index < 0 ? NULL : s->notebook->cells[index];
  const td_cell_output *last = cell && cell->output_count ? &cell->outputs[cell->output_count - 1] : NULL;
  if (!last || last->kind != TD_OUTPUT_STREAM || !last->text.length) return;
  const char *end = last->text.data + last->text.length, *line = memrchr(last->text.data, '\n', last->text.length);
  line = line ? line + 1 : last->text.data;
  td_text visible = {0};
  td_visible_add(&visible, line, (size_t)(end - line), true);
  if (visible.data) td_write_all(STDOUT_FILENO, visible.data, visible.length);
  td_text_clear(&visible);
}

static void answered(td_screen *s, const td_event *event) {
  int pane = td_screen_pane_asking(event->id);
  if (pane >= 0) s->asked_at[pane] = 0;
  if (event->id == TD_TIP_ID) td_tip_answer(&s->tip, event);
}

// Until the command that has the terminal is done with it; what it writes elsewhere is shown as it comes.
static void lend_terminal(td_screen *s) {
  enum { LOOK_MILLISECONDS = 500 };
  td_event event = {0};
  td_display_leave();
  show_open_line(s);
  td_session_reply(s->session, "");
  while (!td_display_end_signal() && !(event.kind == TD_EVENT_TERMINAL && event.final)) {
    if (!td_session_next(s->session, &event, LOOK_MILLISECONDS)) continue;
    if (event.kind == TD_EVENT_OUTPUT) td_write_all(STDOUT_FILENO, event.text, event.length);
    td_screen_event(s, &event);
  }
  if (!td_display_end_signal()) td_display_return();
}

void td_screen_event(td_screen *s, const td_event *event) {
  s->dirty = true;
  int index = td_notebook_event(s->notebook, event);
  if (!s->found.left) td_journal_event(s->journal, s->notebook, index, event);
  td_bars_take(&s->bars, event);
  td_screen_tell_panes(s, event);
  switch (event->kind) {
  case TD_EVENT_CELL_STARTED: if (event->level == 0) s->run_number = event->cell; break;
  case TD_EVENT_CELL_FINISHED: finished(s, event); break;
  case TD_EVENT_INPUT: wants_input(s, event); break;
  case TD_EVENT_TERMINAL: if (!event->final) lend_terminal(s); break;
  case TD_EVENT_IMAGE: tell_images(s); break;
  case TD_EVENT_ANSWER: answered(s, event); break;
  case TD_EVENT_PAUSED:
    if (s->focus == TD_FOCUS_CELLS) td_screen_focus(s, TD_FOCUS_PROMPT); // what is typed now is meant for it
    td_screen_say(s, "paused at %s: look, change, F5 goes on, F6 a step, Ctrl-C stops", event->text ? event->text : "");
    break;
  default: break;
  }
}
