// See render.h. Writes with plain system calls: a signal never cuts an output short, and what was written is out.
#include "repl/line/render.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "repl/language/curve.h"
#include "repl/line/terminal.h"
#include "repl/notebook/visible.h"

enum { TAIL_MOST = 64 << 10 };

// ---- writing ----

bool td_write_all(int descriptor, const char *bytes, size_t length) {
  while (length) {
    ssize_t done = write(descriptor, bytes, length);
    if (done < 0 && errno == EAGAIN) { // somebody made the terminal non-blocking
      struct pollfd room = {.fd = descriptor, .events = POLLOUT};
      poll(&room, 1, -1);
    } else if (done < 0 && errno != EINTR) return false;
    if (done <= 0) continue;
    bytes += done;
    length -= (size_t)done;
  }
  return true;
}

static void write_out(td_render *r, const char *text, size_t length) {
  if (r->broken || !length) return;
  if (r->error_terminal && r->out_terminal) td_render_end_dots(r);
  r->mid_line = r->out_terminal && text[length - 1] != '\n';
  if (td_write_all(STDOUT_FILENO, text, length)) return;
  r->broken = true;
  if (errno == EPIPE) return; // nobody reads any more, and nobody needs to be told
  td_text message = {0};
  td_text_print(&message, "error: stdout can't be written: %s\n", strerror(errno));
  if (message.data) td_write_all(STDERR_FILENO, message.data, message.length);
  td_text_clear(&message);
}

static void write_error(const char *text, size_t length) { td_write_all(STDERR_FILENO, text, length); }

void td_render_fresh_line(td_render *r) {
  if (r->mid_line) td_write_all(STDOUT_FILENO, "\n", 1);
  r->mid_line = false;
}

void td_render_end_dots(td_render *r) {
  if (r->in_dots) write_error("\n", 1);
  r->in_dots = false;
}

void td_render_start(td_render *r, const td_line_options *options, bool prompt) {
  memset(r, 0, sizeof *r);
  r->prompt = prompt;
  r->numbered = prompt && isatty(STDOUT_FILENO);
  r->log = options->log;
  r->out_terminal = isatty(STDOUT_FILENO) && !td_terminal_is_dumb();
  r->error_terminal = isatty(STDERR_FILENO) && !td_terminal_is_dumb();
}

// While bars are drawn, text goes out in whole lines: a line that is not ended waits in tail, unless it is long.
static void output_above(td_render *r, const char *text, size_t length) {
  td_text_add_bytes(&r->tail, text, length);
  const char *newline = r->tail.length ? memrchr(r->tail.data, '\n', r->tail.length) : NULL;
  bool too_long = r->tail.failed || r->tail.length > TAIL_MOST;
  if (!newline && !too_long) return;
  size_t whole = too_long ? r->tail.length : (size_t)(newline + 1 - r->tail.data);
  td_bars_erase(r);
  if (whole) write_out(r, r->tail.data, whole);
  td_render_fresh_line(r);
  if (r->tail.failed) { // no memory to hold it
    write_out(r, text, length);
    td_text_clear(&r->tail);
  } else {
    memmove(r->tail.data, r->tail.data + whole, r->tail.length - whole + 1);
    r->tail.length -= whole;
  }
  td_bars_draw(r);
}

static void output(td_render *r, const char *text, size_t length) {
  if (r->bar_count && r->error_terminal && r->out_terminal) output_above(r, text, length);
  else write_out(r, text, length);
}

static void release_tail(td_render *r) {
  if (r->bar_count || !r->tail.length) return;
  write_out(r, r->tail.data, r->tail.length);
  r->tail.length = 0;
}

// ---- kinds of events ----

static void add_line_end(td_text *text) {
  if (!text->length || text->data[text->length - 1] != '\n') td_text_add_char(text, '\n');
}

static void error_output(td_render *r, const char *text, size_t length) {
  td_bars_erase(r);
  if (r->error_terminal) td_render_fresh_line(r);
  td_render_end_dots(r);
  write_error(text, length);
  td_bars_draw(r);
}

void td_render_error(td_render *r, const char *message) {
  td_text text = {0};
  td_text_add(&text, message);
  add_line_end(&text);
  if (text.failed) error_output(r, message, strlen(message));
  else error_output(r, text.data, text.length);
  td_text_clear(&text);
}

static void warning(td_render *r, const td_event *event) {
  if (r->log > TD_LOG_WARNING) return;
  td_text text = {0};
  td_text_add(&text, "warning: ");
  td_visible_add(&text, event->text, event->length, false);
  if (event->detail && *event->detail) {
    td_text_add(&text, "\n  ");
    td_source_print(&text, event->detail, strlen(event->detail));
  }
  if (text.data) td_render_error(r, text.data);
  td_text_clear(&text);
}

static void logged(td_render *r, const td_event *event) { // "info: text", "info: name: text"
  td_text text = {0};
  td_text_print(&text, "%s: ", td_log_word(event->level));
  if (*event->name) {
    td_source_print(&text, event->name, strlen(event->name));
    td_text_add(&text, ": ");
  }
  td_visible_add(&text, event->text, event->length, false);
  if (text.data) td_render_error(r, text.data);
  td_text_clear(&text);
}

static void value(td_render *r, const td_event *event) { // further lines stand under the first one, behind the number
  td_text text = {0};
  if (r->numbered && event->cell) td_text_print(&text, "[%d]= ", event->cell);
  size_t indent = text.length, at = 0;
  while (at < event->length) {
    const char *line = event->text + at, *end = memchr(line, '\n', event->length - at);
    size_t length = end ? (size_t)(end - line) + 1 : event->length - at;
    if (at) td_text_pad(&text, text.length + indent, ' ');
    td_visible_add(&text, line, length, false);
    at += length;
  }
  td_text_add_char(&text, '\n');
  td_bars_erase(r);
  if (text.failed) write_out(r, event->text, event->length);
  else write_out(r, text.data, text.length);
  td_text_clear(&text);
  td_bars_draw(r);
}

static void note(td_render *r, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void note(td_render *r, int level, const char *format, ...) {
  if (r->log > level) return;
  td_text text = {0};
  va_list list;
  va_start(list, format);
  td_text_print_list(&text, format, list);
  va_end(list);
  if (text.data) td_render_error(r, text.data);
  td_text_clear(&text);
}

// The line about it; then the picture in characters, where it came with one, or as the terminal can show it.
static void image(td_render *r, const td_event *event) {
  td_text text = {0};
  td_visible_add(&text, event->text, event->length, false);
  td_text_add_char(&text, '\n');
  td_pixels pixels = {event->width, event->height, (uint8_t *)event->pixels};
  if (event->detail && *event->detail) td_text_print(&text, "%s\n", event->detail);
  else if (r->out_terminal && event->pixels && td_terminal_picture(&text, &pixels)) td_text_add_char(&text, '\n');
  if (text.data) output(r, text.data, text.length);
  td_text_clear(&text);
}

static void cell_finished(td_render *r, const td_event *event) {
  static const char *const how[] = {"done", "failed", "interrupted", "exit"};
  td_bars_end(r);
  release_tail(r);
  if (r->prompt) td_render_fresh_line(r);
  note(r, TD_LOG_INFO, "info: cell %d: %s after %.3f s", event->cell, how[event->status], event->seconds);
}

static void paused(td_render *r, const td_event *event) {
  td_bars_end(r);
  release_tail(r);
  if (!r->prompt) return;
  td_render_fresh_line(r);
  td_text text = {0};
  td_text_print(&text, "paused at %s: %%resume %%step %%stop\n", event->text);
  if (text.data) write_error(text.data, text.length);
  td_text_clear(&text);
}

void td_render_event(td_render *r, const td_event *event) {
  switch (event->kind) {
  case TD_EVENT_CELL_STARTED: note(r, TD_LOG_DEBUG, "debug: cell %d: %zu bytes", event->cell, event->length); break;
  case TD_EVENT_OUTPUT:
    if (event->stream == 2) error_output(r, event->text, event->length);
    else output(r, event->text, event->length);
    break;
  case TD_EVENT_VALUE: value(r, event); break;
  case TD_EVENT_PROGRESS:
    td_bars_event(r, event);
    release_tail(r);
    break;
  case TD_EVENT_METRIC:
    for (int64_t i = 0; i < event->done; i++)
      note(r, TD_LOG_DEBUG, "debug: %s at step %lld: %.9g", event->text, (long long)event->points[i].step,
           event->points[i].value);
    break;
  case TD_EVENT_TAPE:
    note(r, TD_LOG_DEBUG, "debug: tape %s: %lld records, %lld bytes", event->text, (long long)event->done,
         (long long)event->total);
    break;
  case TD_EVENT_WARNING: warning(r, event); break;
  case TD_EVENT_LOG: logged(r, event); break;
  case TD_EVENT_ERROR: td_render_error(r, event->text); break; // visible text already
  case TD_EVENT_IMAGE: image(r, event); break;
  case TD_EVENT_INPUT: td_bars_end(r), release_tail(r); break;
  case TD_EVENT_PAUSED: paused(r, event); break;
  case TD_EVENT_CELL_FINISHED: cell_finished(r, event); break;
  default: break;
  }
}

void td_render_stop(td_render *r) {
  td_bars_end(r);
  release_tail(r);
  td_text_clear(&r->tail);
  td_text_clear(&r->late_line);
}
