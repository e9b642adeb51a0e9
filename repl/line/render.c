// See render.h.
#include "repl/line/render.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool dumb_terminal(void) {
  const char *term = getenv("TERM");
  return !term || !*term || strcmp(term, "dumb") == 0 || strcmp(term, "unknown") == 0;
}

void td_render_start(td_render *r, bool prompt) {
  memset(r, 0, sizeof *r);
  r->prompt = prompt;
  r->out_terminal = isatty(STDOUT_FILENO) && !dumb_terminal();
  r->error_terminal = isatty(STDERR_FILENO) && !dumb_terminal();
}

static void write_out(td_render *r, const char *text, size_t length) {
  if (fwrite(text, 1, length, stdout) != length) r->broken = true;
}

static void flush_out(td_render *r) {
  if (fflush(stdout) == 0) return;
  if (!r->broken && errno != EPIPE) fprintf(stderr, "error: stdout can't be written: %s\n", strerror(errno));
  r->broken = true;
}

// While bars are drawn, text goes out in whole lines: a line that is not ended waits in tail.
static void output(td_render *r, const char *text, size_t length) {
  bool held = r->bar_count && r->error_terminal && r->out_terminal;
  if (held) {
    td_text_add_bytes(&r->tail, text, length);
    const char *newline = r->tail.length ? memrchr(r->tail.data, '\n', r->tail.length) : NULL;
    if (!newline) return;
    size_t whole = (size_t)(newline + 1 - r->tail.data);
    td_bars_erase(r);
    write_out(r, r->tail.data, whole);
    flush_out(r);
    memmove(r->tail.data, r->tail.data + whole, r->tail.length - whole + 1);
    r->tail.length -= whole;
    td_bars_draw(r);
    return;
  }
  write_out(r, text, length);
  flush_out(r);
}

static void release_tail(td_render *r) {
  if (r->bar_count || !r->tail.length) return;
  write_out(r, r->tail.data, r->tail.length);
  r->tail.length = 0;
  flush_out(r);
}

static void error_text(td_render *r, const char *before, const char *text) {
  td_bars_erase(r);
  flush_out(r);
  fprintf(stderr, "%s%s", before, text);
  size_t length = strlen(text);
  if (!length || text[length - 1] != '\n') fputc('\n', stderr);
  td_bars_draw(r);
}

static void value(td_render *r, const td_event *event) {
  td_bars_erase(r);
  if (r->prompt) {
    char lead[32];
    int length = snprintf(lead, sizeof lead, "[%d]= ", event->cell);
    write_out(r, lead, (size_t)length);
  }
  write_out(r, event->text, event->length);
  write_out(r, "\n", 1);
  flush_out(r);
  td_bars_draw(r);
}

void td_render_event(td_render *r, const td_event *event) {
  switch (event->kind) {
  case TD_EVENT_OUTPUT:
    if (event->stream == 2) error_text(r, "", event->text);
    else output(r, event->text, event->length);
    break;
  case TD_EVENT_VALUE: value(r, event); break;
  case TD_EVENT_PROGRESS:
    td_bars_event(r, event);
    release_tail(r);
    break;
  case TD_EVENT_WARNING: error_text(r, "warning: ", event->text); break;
  case TD_EVENT_ERROR: error_text(r, "", event->text); break;
  case TD_EVENT_IMAGE:
    output(r, event->text, event->length);
    output(r, "\n", 1);
    break;
  case TD_EVENT_CELL_FINISHED:
    td_bars_erase(r);
    r->bar_count = 0;
    release_tail(r);
    flush_out(r);
    break;
  default: break; // CELL_STARTED, METRIC and TAPE have no plain form
  }
}

void td_render_stop(td_render *r) {
  td_bars_erase(r);
  r->bar_count = 0;
  release_tail(r);
  td_text_clear(&r->tail);
  flush_out(r);
}
