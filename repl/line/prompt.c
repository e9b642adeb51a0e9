// The prompt: reads cells, runs them, shows what they say. A block ends with an empty line; an open bracket or string
// goes on. What is pasted runs as one cell with its text unchanged.
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "repl/line/editor.h"
#include "repl/line/line.h"
#include "repl/line/render.h"
#include "repl/line/terminal.h"
#include "repl/notebook/entry.h"

static void add_line(td_text *text, const char *line) {
  for (; *line; line++)
    if (*line != '\r') td_text_add_char(text, *line);
    else if (line[1] != '\n') td_text_add_char(text, '\n');
}

// ---- cells ----

// Reads the lines of one cell; END or INTERRUPTED as the editor says. text is cleared by the caller.
static enum td_line_result read_lines(td_session *session, int number, td_text *text) {
  char prompt[32], more[32], indent[TD_ENTRY_INDENT_MOST] = "";
  int width = snprintf(prompt, sizeof prompt, "[%d]> ", number);
  snprintf(more, sizeof more, "%*s", width, "... ");
  for (bool first = true;; first = false) {
    char *line = NULL;
    if (!first && !td_terminal_waiting(10)) td_entry_indent(session, text, indent);
    else indent[0] = 0;
    enum td_line_result result = td_editor_read(first ? prompt : more, indent, &line);
    if (result == TD_LINE_END || result == TD_LINE_INTERRUPTED) return result;
    if (!first) td_text_add_char(text, '\n');
    add_line(text, line);
    bool blank = !line[strspn(line, " \t\r")];
    bool whole = text->failed || result == TD_LINE_SUBMITTED || (first && blank) ||
                 td_entry_is_whole(session, text, line, first, blank && td_terminal_waiting(10));
    td_memory_free(line);
    if (whole) return TD_LINE_READ;
  }
}

static enum td_line_result read_cell(td_session *session, int number, td_text *text) {
  td_session_forget_interrupt(session);
  enum td_line_result result = read_lines(session, number, text);
  td_editor_release();
  td_entry_trim(text);
  return result;
}

static int run_cell(td_session *session, td_render *render, const td_text *text, int number) {
  char name[32];
  snprintf(name, sizeof name, "cell %d", number);
  td_run_options options = {.name = name, .echo_all = true, .cell = number};
  if (text->failed || !td_session_run(session, text->data, text->length, &options)) {
    td_render_error(render, "error: no memory for this cell");
    return 1;
  }
  return td_line_wait(session, render);
}

static int loop(td_session *session, td_render *render, int number) {
  while (true) {
    td_text text = {0};
    enum td_line_result result = read_cell(session, number, &text);
    int code = 0;
    if (result == TD_LINE_READ && text.length && td_entry_leaves(text.data)) result = TD_LINE_END;
    else if (result == TD_LINE_READ && text.length) {
      td_editor_remember(text.data);
      code = run_cell(session, render, &text, number++);
    }
    td_text_clear(&text);
    if (result == TD_LINE_END || code & TD_LINE_EXIT) return code & 0xff;
    if (render->broken) return 1;
  }
}

int td_line_prompt(const td_line_options *options) {
  td_session *session = td_line_open(options);
  if (!session) return 1;
  td_render render;
  int cells = 0;
  td_render_start(&render, options, true);
  int code = options->path ? td_line_cells(session, &render, options->path, &cells) : 0;
  if (!(code & (TD_LINE_EXIT | TD_LINE_UNREADABLE)) && !render.broken) {
    fprintf(stderr, "tapedeck %s. ? is help, %sCtrl-D leaves.\n", PACKAGE_VERSION, td_editor_keys);
    td_editor_start(session);
    td_session_lend_terminal(session);
    code = loop(session, &render, cells + 1);
    td_render_fresh_line(&render);
    if (isatty(STDERR_FILENO)) fputc('\n', stderr);
    td_editor_stop();
  }
  td_render_stop(&render);
  td_line_close(session, code & 0xff);
  return code & 0xff;
}
