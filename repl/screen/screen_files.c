// Opening, saving and leaving.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/notebook/notebook_file.h"
#include "repl/screen/display.h"
#include "repl/screen/screen.h"

// ---- the journal ----

static void open_journal(td_screen *s, td_context *context) {
  td_journal_close(s->journal);
  td_journal_found_clear(&s->found);
  if (td_journal_open(context, s->path, &s->journal, &s->found) != TD_OK)
    td_screen_say(s, "no journal, so a crash would lose what isn't saved: %s", context->error.message);
}

// A curve that came back, to the panes: the point of a bin that holds one, else its first and last step with the least
// and the greatest value.
static void tell_curve(td_screen *s, int number, const td_curve *curve) {
  td_curve_point *points = td_memory_new((size_t)(2 * curve->bin_count + 1) * sizeof *points);
  int64_t count = 0;
  for (int64_t i = 0; points && i < curve->bin_count; i++) {
    const td_curve_bin *bin = &curve->bins[i];
    bool one = curve->width == 1 || !bin->finite;
    points[count++] = (td_curve_point){bin->first, one ? td_curve_value(bin) : bin->low};
    if (!one) points[count++] = (td_curve_point){bin->last, bin->high};
  }
  td_event event = {.kind = TD_EVENT_METRIC, .cell = number, .text = curve->name, .length = strlen(curve->name),
                    .points = points, .done = count};
  if (count) td_screen_tell_panes(s, &event);
  td_memory_free(points);
}

static void tell_curves(td_screen *s) {
  for (int i = 0; i < s->notebook->count; i++) {
    const td_notebook_cell *cell = s->notebook->cells[i];
    for (int k = 0; k < cell->output_count; k++)
      if (cell->outputs[k].curve) tell_curve(s, cell->number, cell->outputs[k].curve);
  }
}

static void recovered(void *screen, const char *key) {
  td_screen *s = screen;
  enum { CTRL_D = 4 };
  if (key && *key != '\n' && *key != CTRL_D) { // somebody types code and has not read the question
    td_screen_ask_recovery(s);
    return;
  }
  if (key && *key == '\n') {
    td_notebook_free(s->notebook);
    s->notebook = s->view.notebook = s->found.left;
    s->found.left = NULL;
    s->view.follow = true;
    td_screen_focus(s, TD_FOCUS_PROMPT);
    tell_curves(s);
    td_screen_say(s, "it is all here again; what it had computed is not: Ctrl-X a runs all");
  }
  if (!key) return; // later: the journal keeps it
  td_journal_begin(s->journal, s->notebook, td_screen_now());
  td_journal_found_clear(&s->found);
}

static void leave(td_screen *s, int code) {
  s->leaving = true;
  s->exit_code = code;
}

static void opened_twice(void *screen, const char *key) {
  td_screen *s = screen;
  if (key && *key == 'q') leave(s, 0);
  else if (key && *key != 'o') td_screen_ask_recovery(s);
  else td_screen_say(s, "without a journal: what is saved last is what stays");
}

void td_screen_ask_recovery(td_screen *s) {
  if (s->found.held) {
    char prompt[120];
    snprintf(prompt, sizeof prompt, "%s is open in process %lld on %.24s. o: open it too, q: leave ",
             s->path ? "the deck" : "this session", (long long)s->found.owner.process, s->found.owner.host);
    td_screen_ask_key(s, prompt, opened_twice, s);
    return;
  }
  if (!s->found.left) {
    td_journal_begin(s->journal, s->notebook, td_screen_now());
    return;
  }
  char prompt[120];
  snprintf(prompt, sizeof prompt,
           "%d cell%s left by a session that died. Enter: get them back, Ctrl-D: drop them ", s->found.left->count,
           s->found.left->count == 1 ? "" : "s");
  td_screen_ask_key(s, prompt, recovered, s);
}

void td_screen_idle(td_screen *s) {
  double now = td_screen_now();
  td_screen_sync(s);
  if (!s->found.left) td_journal_update(s->journal, s->notebook, now, false);
  const char *problem = td_journal_problem(s->journal);
  if (problem) td_screen_say(s, "the journal can't be written: %s", problem);
  if (s->saves && td_autosave_due(&s->autosave, s->notebook, s->path, now)) td_screen_save(s, NULL);
}

void td_screen_close_files(td_screen *s) {
  bool well = !s->cut_short && !s->found.left;
  if (!well && !s->found.left) td_journal_update(s->journal, s->notebook, td_screen_now(), true);
  if (well) td_journal_close(s->journal);
  else td_journal_leave(s->journal);
  td_journal_found_clear(&s->found);
  s->journal = NULL;
}

// ---- files ----

bool td_screen_open(td_screen *s) { // false: said on stderr
  const char *path = s->options->path;
  td_context *context = td_context_new(1);
  bool ok = context && (!path || (s->path = td_memory_text(path)));
  if (ok && path && td_file_exists(path)) ok = td_notebook_open(context, path, &s->notebook) == TD_OK;
  else if (ok) ok = (s->notebook = td_notebook_new()) != NULL;
  if (!ok) fprintf(stderr, "error: %s\n", context && context->error.code ? context->error.message : "no memory");
  if (ok) open_journal(s, context);
  td_context_free(context);
  return ok;
}

bool td_screen_save(td_screen *s, const char *path) {
  td_screen_sync(s);
  if (!path) path = s->path;
  td_context *context = td_context_new(1);
  bool ok = context && td_notebook_save(context, s->notebook, path) == TD_OK;
  if (ok && path != s->path) {
    td_memory_free(s->path);
    s->path = td_memory_text(path);
    open_journal(s, context);
    td_screen_ask_recovery(s);
  }
  s->saves = s->saves || ok;
  if (ok) td_screen_say(s, "saved %s", path);
  else td_screen_say(s, "not saved: %s%s", context ? context->error.message : "no memory",
                     s->notebook->overtaken ? "; Ctrl-X Ctrl-S asks, :w NAME saves elsewhere" : "");
  td_context_free(context);
  return ok;
}

static void save_as(void *screen, const char *line) {
  if (line && *line) td_screen_save(screen, line);
}

static void overwrite(void *screen, const char *key) {
  if (key && *key == 'o') td_screen_save(screen, NULL);
  else td_screen_say(screen, "not saved; :w NAME saves it elsewhere");
}

void td_screen_ask_save(td_screen *s) {
  td_screen_sync(s);
  if (s->path && s->notebook->overtaken)
    td_screen_ask_key(s, "the file was changed by somebody else since it was read. o: write over it, n: leave it ",
                      overwrite, s);
  else if (s->path) td_screen_save(s, NULL);
  else td_screen_ask(s, "save as: ", save_as, s);
}

// ---- leaving ----

static void save_and_leave(void *screen, const char *line) {
  if (line && *line && td_screen_save(screen, line)) leave(screen, 0);
}

static void leave_answer(void *screen, const char *key) {
  td_screen *s = screen;
  if (!key) return;
  if (*key == 'y') leave(s, 0);
  else if (*key == 's' && !s->path) td_screen_ask(s, "save as: ", save_and_leave, s);
  else if (*key == 's' && td_screen_save(s, NULL)) leave(s, 0);
}

void td_screen_quit(td_screen *s) {
  td_screen_sync(s);
  bool runs = td_session_get_state(s->session) != TD_SESSION_IDLE, unsaved = !td_notebook_is_saved(s->notebook);
  if (!runs && !unsaved) leave(s, 0);
  else if (runs)
    td_screen_ask_key(s, "a cell runs. Leave? y: stop it and leave, s: save and leave, n: stay ", leave_answer, s);
  else td_screen_ask_key(s, "not saved. s: save and leave, y: leave, n: stay ", leave_answer, s);
}

void td_screen_colon(td_screen *s, const char *line) {
  char word[8] = "";
  int used = 0;
  sscanf(line, " %7s%n", word, &used);
  const char *name = line + used + strspn(line + used, " ");
  bool writes = strcmp(word, "w") == 0 || strcmp(word, "wq") == 0 || strcmp(word, "x") == 0;
  bool leaves = strcmp(word, "q") == 0 || strcmp(word, "wq") == 0 || strcmp(word, "x") == 0;
  if (strcmp(word, "q!") == 0) leave(s, 0);
  else if (!writes && !leaves) td_screen_say(s, ":%s is unknown; :w [NAME], :q, :q!, :wq", word);
  else if (writes && !s->path && !*name) td_screen_ask(s, "save as: ", leaves ? save_and_leave : save_as, s);
  else if (writes && !td_screen_save(s, *name ? name : NULL)) return;
  else if (leaves && writes) leave(s, 0);
  else if (leaves) td_screen_quit(s);
}

bool td_screen_export(td_screen *s) {
  td_text text = {0};
  td_surface_to_text(&s->surface, &text);
  td_context *context = td_context_new(1);
  bool ok = context && text.data && td_file_save(context, "screen.txt", text.data, text.length) == TD_OK;
  if (ok) td_screen_say(s, "the screen is in screen.txt");
  else td_screen_say(s, "screen.txt: %s", context ? context->error.message : "no memory");
  td_context_free(context);
  td_text_clear(&text);
  return ok;
}
