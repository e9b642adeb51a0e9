// The prompt: reads cells, runs them, shows what they say. A block ends with an empty line; an open bracket or string goes on. What is
// pasted runs as one cell with its text unchanged.
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "repl/line/editor.h"
#include "repl/line/line.h"
#include "repl/line/render.h"

typedef struct question { const char *text; size_t length; td_parse_result result; } question;

static void check(td_interpreter *I, void *argument) {
  question *q = argument;
  q->result = td_check_complete(I, q->text, q->length);
}

static bool is_blank(const char *line) { return line[strspn(line, " \t\r")] == 0; }

static bool is_indented(const char *line) { return *line == ' ' || *line == '\t'; }

static const char *last_line(const char *text) {
  const char *newline = strrchr(text, '\n');
  return newline ? newline + 1 : text;
}

// Is the cell whole, after line was added to what stood before it? Asks the parser; a block also needs its empty line.
static bool is_whole(td_session *session, const td_text *text, const char *line, bool first) {
  question q = {text->data, text->length, TD_PARSE_ERROR};
  if (!td_session_ask(session, check, &q)) return true;
  if (q.result == TD_PARSE_INCOMPLETE) return false;
  if (q.result != TD_PARSED || first || strchr(line, '\n')) return true;
  if (is_blank(line)) return !td_editor_waiting();
  return !is_indented(last_line(line));
}

static bool ends_block(const char *line) {
  static const char *const words[] = {"return", "break", "continue", "pass", "raise"};
  line += strspn(line, " \t");
  size_t length = strcspn(line, " \t(");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == length && strncmp(line, words[i], length) == 0) return true;
  return false;
}

// The white space that the next line begins with: the last line's, four more after a colon, four less after return and the like.
static void next_indent(const char *line, char indent[64]) {
  line = last_line(line);
  size_t width = strspn(line, " \t"), length = strlen(line);
  if (width > 56) width = 56;
  memcpy(indent, line, width);
  indent[width] = 0;
  while (length && (line[length - 1] == ' ' || line[length - 1] == '\t')) length--;
  if (length && line[length - 1] == ':') strcat(indent, "    ");
  else if (ends_block(line) && width >= 4) indent[width - 4] = 0;
}

static void add_line(td_text *text, const char *line) {
  for (; *line; line++)
    if (*line != '\r') td_text_add_char(text, *line);
    else if (line[1] != '\n') td_text_add_char(text, '\n');
}

// What was typed, without the automatic indent when the line brings its own.
static const char *typed_line(const char *line, const char *indent) {
  size_t width = strlen(indent);
  return strncmp(line, indent, width) == 0 && is_indented(line + width) ? line + width : line;
}

// Reads one cell; END or INTERRUPTED as the editor says. text is cleared by the caller.
static enum td_line_result read_cell(td_session *session, int number, td_text *text) {
  char prompt[32], more[32], indent[64] = "";
  int width = snprintf(prompt, sizeof prompt, "[%d]> ", number);
  snprintf(more, sizeof more, "%*s", width, "... ");
  for (bool first = true;; first = false) {
    char *line = NULL;
    bool typed = !td_editor_waiting();
    enum td_line_result result = td_editor_read(first ? prompt : more, typed ? indent : "", &line);
    if (result != TD_LINE_READ) return result;
    if (!first) td_text_add_char(text, '\n');
    add_line(text, typed_line(line, indent));
    bool whole = text->failed || (first && is_blank(line)) || is_whole(session, text, line, first);
    next_indent(line, indent);
    td_memory_free(line);
    if (whole) return TD_LINE_READ;
  }
}

static void trim(td_text *text) {
  while (text->length && strchr(" \t\n", text->data[text->length - 1])) text->data[--text->length] = 0;
}

static int run_cell(td_session *session, td_render *render, const td_text *text, int number) {
  char name[32];
  snprintf(name, sizeof name, "cell %d", number);
  td_run_options options = {.name = name, .echo_all = true, .cell = number};
  if (!td_session_run(session, text->data, text->length, &options)) {
    fprintf(stderr, "error: no memory for a cell of %zu bytes\n", text->length);
    return 1;
  }
  return td_line_wait(session, render);
}

static int loop(td_session *session, td_render *render) {
  for (int number = 1;;) {
    td_text text = {0};
    enum td_line_result result = read_cell(session, number, &text);
    if (result == TD_LINE_END) {
      td_text_clear(&text);
      fputc('\n', stdout);
      return 0;
    }
    trim(&text);
    int code = 0;
    if (result == TD_LINE_READ && text.length) {
      td_editor_remember(text.data);
      code = run_cell(session, render, &text, number++);
    }
    td_text_clear(&text);
    if (code & 0x100) return code & 0xff;
    if (render->broken) return 1;
  }
}

int td_line_prompt(const td_line_options *options) {
  td_session *session = td_line_open(options);
  if (!session) return 1;
  td_render render;
  td_render_start(&render, true);
  printf("tapedeck %s. ? is help, Tab completes, Ctrl-D leaves.\n", PACKAGE_VERSION);
  int code = options->path ? td_line_cells(session, &render, options->path) : 0;
  if (code < 0x100) {
    td_editor_start(session);
    code = loop(session, &render);
    td_editor_stop();
  }
  td_render_stop(&render);
  td_line_close(session);
  return code & 0xff;
}
