// Running without a prompt: a deck file cell by cell, code of -e, a script from a pipe.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "repl/line/editor.h"
#include "repl/line/line.h"
#include "repl/line/render.h"
#include "repl/line/terminal.h"
#include "repl/notebook/deck.h"
#include "repl/notebook/notebook_file.h"

enum { LOOK_MILLISECONDS = 500, STOP_MILLISECONDS = 1000 };

static td_session *volatile interrupted_session;
static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal) {
  (void)signal;
  interrupts = 1;
  td_terminal_interrupt();
  if (interrupted_session) td_session_interrupt(interrupted_session);
}

// ---- a session's life ----

typedef struct setting { const td_line_options *options; bool ok; } setting;

static void apply_settings(td_interpreter *I, void *argument) {
  setting *s = argument;
  const td_line_options *options = s->options;
  if (options->seeded) I->context->seed = options->seed;
  td_log_set(I, options->log, options->log_given);
  td_list *list = td_list_new(I, options->argument_count + 1);
  for (int i = -1; list && i < options->argument_count; i++) {
    const char *text = i < 0 ? (options->path ? options->path : "") : options->arguments[i];
    td_value item = td_from(td_str_from(I, text));
    if (td_is_nil(item) || !td_list_append(I, list, item)) break;
    td_unref(item);
  }
  s->ok = list && list->count == options->argument_count + 1 && td_builtin_define(I, "argv", td_from(list));
}

td_session *td_line_open(const td_line_options *options) {
  td_session *session = td_session_new();
  setting s = {options, false};
  if (!session || !td_session_ask(session, apply_settings, &s) || !s.ok) {
    fprintf(stderr, "error: no memory for a session\n");
    td_session_free(session);
    return NULL;
  }
  interrupted_session = session;
  struct sigaction action = {.sa_handler = on_interrupt};
  sigaction(SIGINT, &action, NULL);
  return session;
}

void td_line_close(td_session *session, int code) {
  signal(SIGINT, SIG_DFL);
  interrupted_session = NULL;
  if (!td_session_stop(session, STOP_MILLISECONDS)) _exit(code ? code : 1); // what runs catches every interrupt
  td_session_free(session);
}

// ---- waiting for a cell ----

static int exit_code(const td_event *finished) {
  switch (finished->status) {
  case TD_RUN_DONE: return 0;
  case TD_RUN_INTERRUPTED: return 130;
  case TD_RUN_EXIT: return (int)(finished->total & 0xff) | TD_LINE_EXIT;
  default: return 1;
  }
}

// A line of stdin for input(); no byte after it is taken. NULL: the end.
static char *read_stdin_line(void) {
  td_text line = {0};
  char c = 0;
  while (c != '\n') {
    ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR && !interrupts) continue;
    if (got <= 0 && !line.length) return NULL;
    if (got <= 0) break;
    if (c != '\n') td_text_add_char(&line, c);
  }
  return td_text_take(&line);
}

static void answer(td_session *session, const td_render *render, const char *prompt) {
  char *line = NULL;
  enum td_line_result result = TD_LINE_READ;
  if (render->prompt) {
    td_terminal_allow_interrupt(false);
    result = td_editor_read(prompt, "", &line);
    td_editor_release();
    td_terminal_allow_interrupt(true);
  } else {
    td_write_all(STDOUT_FILENO, prompt, strlen(prompt));
    line = read_stdin_line();
  }
  if (result != TD_LINE_INTERRUPTED) td_session_reply(session, line);
  td_memory_free(line);
}

static void lend_terminal(td_session *session, td_render *render, bool back) {
  td_terminal_modes(back ? TD_MODES_QUIET : TD_MODES_KEPT);
  if (back) return;
  td_render_fresh_line(render);
  td_session_reply(session, "");
}

// After Ctrl-C at the prompt, what waits to be shown isn't waited for.
static void drop_output(td_session *session, td_render *render) {
  interrupts = 0;
  size_t dropped = render->prompt ? td_session_drop_output(session) : 0;
  td_text text = {0};
  if (dropped) td_text_print(&text, "(%zu bytes of output not shown)", dropped);
  if (text.data) td_render_error(render, text.data);
  td_text_clear(&text);
}

// ---- a run that paused ----

static int wait_cell(td_session *session, td_render *render);

static enum td_line_result read_between(char **line) {
  td_terminal_allow_interrupt(false);
  enum td_line_result result = td_editor_read("(paused) ", "", line);
  td_editor_release();
  td_terminal_allow_interrupt(true);
  return result;
}

// Whether the run went on since it was asked last: it may pause again before anybody looks at its state.
static bool went_on(td_session *session, td_render *render) {
  td_event event;
  while (td_session_next(session, &event, 0)) {
    td_render_event(render, &event);
    if (event.kind == TD_EVENT_RESUMED) return true;
  }
  return false;
}

// Runs what is typed at the boundary until the run goes on; Ctrl-C and Ctrl-D stop it. Without anybody who could type
// it goes on at once. The code of exit(), or 0.
static int serve_pause(td_session *session, td_render *render) {
  if (!render->prompt) td_session_resume(session);
  while (td_session_get_state(session) == TD_SESSION_PAUSED && !went_on(session, render)) {
    char *line = NULL;
    enum td_line_result result = read_between(&line);
    td_run_options options = {.name = "paused", .folder = "", .echo_all = true};
    bool typed = line && (result == TD_LINE_READ || result == TD_LINE_SUBMITTED);
    int code = 0;
    if (!typed) td_session_stop_run(session);
    else if (td_session_run(session, line, strlen(line), &options)) code = wait_cell(session, render);
    td_memory_free(line);
    if (code & TD_LINE_EXIT) return td_session_stop_run(session), code;
  }
  return 0;
}

static bool is_lost(const td_render *render) { return render->broken || (render->prompt && td_terminal_gone()); }

static int wait_cell(td_session *session, td_render *render) {
  td_event event;
  int left = 0; // exit() in a pause
  while (true) {
    bool came = td_session_next(session, &event, LOOK_MILLISECONDS);
    if (interrupts) drop_output(session, render);
    if (came) td_render_event(render, &event);
    if (came && event.kind == TD_EVENT_INPUT) answer(session, render, event.text);
    if (came && event.kind == TD_EVENT_TERMINAL) lend_terminal(session, render, event.final);
    if (came && event.kind == TD_EVENT_PAUSED) left = serve_pause(session, render);
    if (came && event.kind == TD_EVENT_CELL_FINISHED) return render->broken ? 1 : left ? left : exit_code(&event);
    if (!is_lost(render)) continue;
    render->broken = true;
    td_session_stop(session, STOP_MILLISECONDS);
    return 1;
  }
}

int td_line_wait(td_session *session, td_render *render) {
  if (render->prompt) {
    interrupts = 0; // those before it were for the prompt
    td_terminal_allow_interrupt(true);
  }
  int code = wait_cell(session, render);
  if (render->prompt) td_terminal_allow_interrupt(false);
  interrupts = 0;
  return code;
}

// ---- scripts ----

static int run_text(td_session *session, td_render *render, const char *text, size_t length,
                    const td_run_options *options) {
  if (td_session_run(session, text, length, options)) return td_line_wait(session, render);
  td_render_error(render, "error: no memory for this cell");
  return 1;
}

static int run_cells(td_session *session, td_render *render, const td_deck *deck, const char *name, int *cells) {
  for (int i = 0; i < deck->count; i++) {
    const td_cell_text *cell = &deck->cells[i];
    if (cell->markdown) continue;
    *cells = i + 1;
    td_run_options options = {
        .name = name, .folder = deck->folder, .echo_last = true, .cell = i + 1, .line = cell->line};
    int code = run_text(session, render, cell->text, cell->length, &options);
    if (code) return code;
  }
  return 0;
}

static void say_error(td_render *render, const td_context *context) { // NULL: no memory for one
  const char *message = context ? context->error.message : "no memory", *hint = context ? context->error.hint : "";
  td_text text = {0};
  td_text_add(&text, "error: ");
  td_source_print(&text, message, strlen(message));
  if (*hint) td_text_print(&text, "\n  hint: %s", hint);
  td_render_error(render, text.failed ? message : text.data);
  td_text_clear(&text);
}

static bool load_deck(td_render *render, const char *path, td_deck *deck) { // false: said
  td_context *context = td_context_new(1);
  bool loaded = context && td_deck_read(context, path, deck) == TD_OK;
  if (!loaded) say_error(render, context);
  td_context_free(context);
  return loaded;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

int td_line_cells(td_session *session, td_render *render, const char *path, int *cells) {
  td_deck deck;
  if (!load_deck(render, path, &deck)) return 1 | TD_LINE_UNREADABLE;
  int code = run_cells(session, render, &deck, base_name(path), cells);
  td_deck_clear(&deck);
  return code;
}

static int finish(td_session *session, td_render *render, int code) {
  td_render_stop(render);
  td_line_close(session, code & 0xff);
  return render->broken && !(code & 0xff) ? 1 : code & 0xff;
}

int td_line_run_deck(const td_line_options *options) {
  td_session *session = td_line_open(options);
  if (!session) return 1;
  td_render render;
  int cells = 0;
  td_render_start(&render, options, false);
  return finish(session, &render, td_line_cells(session, &render, options->path, &cells));
}

static int run_all(const td_line_options *options, const char *text, size_t length, const char *name) {
  td_session *session = td_line_open(options);
  if (!session) return 1;
  td_render render;
  td_render_start(&render, options, false);
  td_run_options run = {.name = name, .echo_all = true, .cell = 1};
  return finish(session, &render, run_text(session, &render, text, length, &run));
}

int td_line_run_code(const td_line_options *options) {
  return run_all(options, options->code, strlen(options->code), "<-e>");
}

static void say_failure(td_render *render, const td_notebook *n) { // of the cell where a run ended
  for (int i = 0; i < n->count; i++) {
    const td_notebook_cell *cell = n->cells[i];
    for (int k = 0; cell->status == TD_CELL_FAILED && k < cell->output_count; k++)
      if (cell->outputs[k].kind == TD_OUTPUT_ERROR) td_render_error(render, cell->outputs[k].text.data);
  }
}

int td_line_convert(const td_line_options *options, const char *from, const char *to, bool run_cells) {
  td_render render;
  td_notebook *notebook = NULL;
  td_context *context = td_context_new(1);
  int code = 0;
  td_render_start(&render, options, false);
  bool ok = context && td_notebook_open(context, from, &notebook) == TD_OK;
  if (ok && run_cells) code = td_notebook_run_all(notebook, from, options->seeded ? &options->seed : NULL);
  if (code < 0) td_render_error(&render, "error: no memory for a session");
  else if (code) say_failure(&render, notebook);
  ok = ok && code >= 0 && td_notebook_write(context, notebook, to) == TD_OK;
  if (!ok && code >= 0) say_error(&render, context);
  td_notebook_free(notebook);
  td_context_free(context);
  td_render_stop(&render);
  return ok ? code : 1;
}

int td_line_run_input(const td_line_options *options) {
  td_text text = {0};
  char block[65536];
  ssize_t got;
  while ((got = read(STDIN_FILENO, block, sizeof block)) > 0 || (got < 0 && errno == EINTR))
    if (got > 0) td_text_add_bytes(&text, block, (size_t)got);
  int code = 1;
  if (got < 0) fprintf(stderr, "error: stdin can't be read: %s\n", strerror(errno));
  else if (text.failed) fprintf(stderr, "error: no memory for a script of more than %zu bytes\n", text.length);
  else code = run_all(options, text.data ? text.data : "", text.length, "<stdin>");
  td_text_clear(&text);
  return code;
}
