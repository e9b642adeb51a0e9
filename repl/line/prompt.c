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

typedef struct question { const char *text; size_t length; td_parse_result result; } question;

static void check(td_interpreter *I, void *argument) {
  question *q = argument;
  q->result = td_check_complete(I, q->text, q->length);
}

static td_parse_result parsed(td_session *session, const td_text *text) {
  question q = {text->data, text->length, TD_PARSE_ERROR};
  td_session_ask(session, check, &q);
  return q.result;
}

// ---- lines ----

static bool is_blank(const char *line) { return line[strspn(line, " \t\r")] == 0; }

static const char *last_line(const char *text) {
  const char *newline = strrchr(text, '\n');
  return newline ? newline + 1 : text;
}

// Could a statement that is indented like the last line, and deeper by so much, stand under it?
static bool takes_statement(td_session *session, const td_text *text, const char *deeper) {
  const char *last = last_line(text->data);
  td_text longer = {0};
  td_text_add_bytes(&longer, text->data, text->length);
  td_text_add_char(&longer, '\n');
  td_text_add_bytes(&longer, last, strspn(last, " \t"));
  td_text_add(&longer, deeper);
  td_text_add(&longer, "pass");
  bool takes = !longer.failed && parsed(session, &longer) == TD_PARSED;
  td_text_clear(&longer);
  return takes;
}

static void trim(td_text *text) {
  while (text->length && strchr(" \t\n", text->data[text->length - 1])) text->data[--text->length] = 0;
}

// Is the cell whole now that line stands at its end? The parser knows what is open; a block that could go on needs an
// empty line, and an empty line also ends a block that has no statement yet.
static bool is_whole(td_session *session, td_text *text, const char *line, bool first) {
  td_parse_result result = parsed(session, text);
  bool blank = is_blank(line) && !strchr(line, '\n');
  if (result == TD_PARSE_INCOMPLETE) {
    if (first || !blank || td_terminal_waiting(10)) return false;
    td_text before = {0};
    td_text_add_bytes(&before, text->data, text->length);
    trim(&before);
    bool empty_block = before.data && takes_statement(session, &before, "    ");
    td_text_clear(&before);
    return empty_block;
  }
  if (result != TD_PARSED || first || strchr(line, '\n')) return true;
  if (blank) return !td_terminal_waiting(10);
  return !(strchr(" \t", *last_line(text->data)) && takes_statement(session, text, ""));
}

static bool ends_block(const char *line) {
  static const char *const words[] = {"return", "break", "continue", "pass", "raise"};
  line += strspn(line, " \t");
  size_t length = strcspn(line, " \t(");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == length && strncmp(line, words[i], length) == 0) return true;
  return false;
}

// The white space that the next line begins with: the last line's, four more where a block opens, four less after
// return and the like.
static void next_indent(td_session *session, const td_text *text, char indent[64]) {
  const char *line = last_line(text->data);
  size_t width = strspn(line, " \t");
  if (width > 56) width = 56;
  memcpy(indent, line, width);
  indent[width] = 0;
  if (parsed(session, text) == TD_PARSE_INCOMPLETE && takes_statement(session, text, "    ")) strcat(indent, "    ");
  else if (ends_block(line) && width >= 4) indent[width - 4] = 0;
}

static void add_line(td_text *text, const char *line) {
  for (; *line; line++)
    if (*line != '\r') td_text_add_char(text, *line);
    else if (line[1] != '\n') td_text_add_char(text, '\n');
}

// ---- cells ----

// Reads the lines of one cell; END or INTERRUPTED as the editor says. text is cleared by the caller.
static enum td_line_result read_lines(td_session *session, int number, td_text *text) {
  char prompt[32], more[32], indent[64] = "";
  int width = snprintf(prompt, sizeof prompt, "[%d]> ", number);
  snprintf(more, sizeof more, "%*s", width, "... ");
  for (bool first = true;; first = false) {
    char *line = NULL;
    if (!first && !td_terminal_waiting(10)) next_indent(session, text, indent);
    else indent[0] = 0;
    enum td_line_result result = td_editor_read(first ? prompt : more, indent, &line);
    if (result == TD_LINE_END || result == TD_LINE_INTERRUPTED) return result;
    if (!first) td_text_add_char(text, '\n');
    add_line(text, line);
    bool whole = text->failed || result == TD_LINE_SUBMITTED || (first && is_blank(line)) ||
                 is_whole(session, text, line, first);
    td_memory_free(line);
    if (whole) return TD_LINE_READ;
  }
}

static enum td_line_result read_cell(td_session *session, int number, td_text *text) {
  td_session_forget_interrupt(session);
  enum td_line_result result = read_lines(session, number, text);
  td_editor_release();
  trim(text);
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
    if (result == TD_LINE_READ && text.length) {
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
    code = loop(session, &render, cells + 1);
    td_render_fresh_line(&render);
    if (isatty(STDERR_FILENO)) fputc('\n', stderr);
    td_editor_stop();
  }
  td_render_stop(&render);
  td_line_close(session);
  return code & 0xff;
}
