// Progress bars on a terminal, one row a nesting level, redrawn in place; elsewhere plain lines, at most one a second.
// While bars are on the screen the cursor stands at the first one's beginning and nothing but bars comes after it. So a
// window may change its size at any time, and wrap rows or join them, before this program hears of it: the terminal
// moves the cursor with the row, and what is to be erased is all that follows.
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "repl/line/render.h"
#include "repl/notebook/charset.h"

enum { BAR_MOST = 30, BAR_LEAST = 6, BAR_FAIR = 12 };

static struct winsize window_size(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) size = (struct winsize){0};
  if (!size.ws_col) size.ws_col = 80;
  if (!size.ws_row) size.ws_row = 24;
  return size;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_text(td_text *text) {
  if (text->data) td_write_all(STDERR_FILENO, text->data, text->length);
  td_text_clear(text);
}

// ---- one bar as text ----

static void clock_print(td_text *text, double seconds) {
  long s = !(seconds > 0) ? 0 : seconds > 3.6e8 ? 360000000 : (long)(seconds + 0.5);
  if (s >= 3600) td_text_print(text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else td_text_print(text, "%ld:%02ld", s / 60, s % 60);
}

static void rate_print(td_text *text, const td_bar *bar) {
  double rate = bar->seconds > 0 ? (double)bar->done / bar->seconds : 0;
  if (!(rate > 0)) td_text_add(text, "-- it/s");
  else if (rate >= 9.95) td_text_print(text, "%.0f it/s", rate);
  else if (rate >= 1) td_text_print(text, "%.1f it/s", rate);
  else td_text_print(text, "%.1f s/it", 1 / rate);
}

// "625/1563  71 it/s  0:13 left"
static void state_print(td_text *text, const td_bar *bar) {
  if (bar->total < 0) td_text_print(text, "%lld", (long long)bar->done);
  else td_text_print(text, "%lld/%lld", (long long)bar->done, (long long)bar->total);
  if (bar->done <= 0) return;
  td_text_add(text, "  ");
  rate_print(text, bar);
  td_text_add(text, "  ");
  if (bar->total > bar->done) {
    clock_print(text, bar->seconds / (double)bar->done * (double)(bar->total - bar->done));
    td_text_add(text, " left");
  } else {
    if (bar->total >= 0) td_text_add(text, "in ");
    clock_print(text, bar->seconds);
  }
}

static int columns_of(const char *text) { return td_source_print(NULL, text, strlen(text)); }

static void gauge_print(td_text *text, const td_bar *bar, int width, bool unicode) {
  double fraction = bar->total > 0 ? (double)bar->done / (double)bar->total : 1;
  fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
  td_text_print(text, "%3d%% [", (int)(fraction * 100));
  for (int i = 0; i < width; i++) td_text_add(text, i < (int)(fraction * width) ? (unicode ? "━" : "=") : " ");
  td_text_add(text, "] ");
}

// As much of a visible text as fits into the columns; returns those used.
static int add_fitting(td_text *text, const td_text *line, int columns) {
  int used = 0;
  for (size_t at = 0; at < line->length;) {
    uint32_t character;
    int bytes = td_source_decode(line->data + at, line->length - at, &character),
        width = bytes ? td_source_width(character) : 1;
    if (used + width > columns) break;
    td_text_add_bytes(text, line->data + at, bytes ? (size_t)bytes : 1);
    used += width;
    at += bytes ? (size_t)bytes : 1;
  }
  return used;
}

static void samples_print(td_text *text, const td_bar *bar) {
  double rate = bar->samples > 0 && bar->seconds > 0 ? (double)bar->samples / bar->seconds : 0;
  if (rate > 0) td_text_print(text, rate < 1e5 ? "  %.0f samples/s" : "  %.3g samples/s", rate);
}

int td_bar_line(const td_bar *bar, int columns, bool unicode, td_text *text) {
  td_text line = {0}, state = {0}, samples = {0};
  state_print(&state, bar);
  int label = columns_of(bar->label), postfix = columns_of(bar->postfix);
  int width =
      columns - (label ? label + 2 : 0) - (int)state.length - (postfix ? postfix + 2 : 0) - (int)strlen("100% [] ");
  samples_print(&samples, bar);
  bool tells_samples = samples.length && width - (int)samples.length >= BAR_FAIR; // else other things are worth more
  if (tells_samples) width -= (int)samples.length;
  td_source_print(&line, bar->label, strlen(bar->label));
  if (label) td_text_add(&line, "  ");
  if (bar->total >= 0 && width >= BAR_LEAST) gauge_print(&line, bar, width < BAR_MOST ? width : BAR_MOST, unicode);
  if (state.data) td_text_add(&line, state.data);
  if (postfix) td_text_add(&line, "  ");
  td_source_print(&line, bar->postfix, strlen(bar->postfix));
  if (tells_samples) td_text_add(&line, samples.data);
  int used = add_fitting(text, &line, columns);
  td_text_clear(&line);
  td_text_clear(&state);
  td_text_clear(&samples);
  return used;
}

// ---- the rows on the screen ----

static const char erase_bars[] = "\r\033[K\033[C\033[J\r"; // from the second column on: some terminals keep a screen
                                                          // that is cleared whole

void td_bars_erase(td_render *r) {
  if (r->bars_shown) td_write_all(STDERR_FILENO, erase_bars, sizeof erase_bars - 1);
  r->bars_shown = false;
}

static bool is_dots(const td_bar *bar) { return strcmp(bar->style, "dots") == 0; }

// Rows are cut off at the window's edge by the terminal, which may be nearer than it was said to be.
static int add_rows(td_render *r, td_text *text) {
  struct winsize size = window_size();
  bool unicode = td_charset_unicode();
  int rows = 0;
  td_text_add(text, "\r\033[?7l");
  for (int i = 0; i < r->bar_count && rows < size.ws_row; i++) {
    if (is_dots(&r->bars[i])) continue;
    if (rows++) td_text_add(text, "\n");
    td_bar_line(&r->bars[i], size.ws_col - 1, unicode, text);
    td_text_add(text, "\033[K");
  }
  td_text_add(text, "\033[?7h");
  return rows;
}

void td_bars_draw(td_render *r) {
  if (!r->error_terminal || !r->bar_count || r->in_dots) return;
  td_text text = {0};
  td_render_fresh_line(r);
  int rows = add_rows(r, &text);
  if (rows > 1) td_text_print(&text, "\033[%dA", rows - 1);
  td_text_add_char(&text, '\r');
  r->bars_shown = rows > 0;
  write_text(&text);
}

// ---- elsewhere ----

static void keep_late(td_render *r, td_text *line) {
  td_text_clear(&r->late_line);
  r->late_line = *line;
  *line = (td_text){0};
}

// A line at each tenth or ten seconds, whichever is rarer, and one at the end; one that comes within a second of
// another waits for the next of its kind, or for the end of the cell.
static void plain_event(td_render *r, td_bar *bar, bool final) {
  double at = now();
  int64_t tenths = bar->total > 0 ? (int64_t)((double)bar->done / (double)bar->total * 10) : bar->tenths + 1;
  if (!final && (bar->seconds < 10 || at - r->line_time < 10 || tenths <= bar->tenths)) return;
  td_text line = {0};
  td_source_print(&line, bar->label, strlen(bar->label));
  if (bar->label[0]) td_text_add(&line, "  ");
  state_print(&line, bar);
  if (bar->postfix[0]) td_text_add(&line, "  ");
  td_source_print(&line, bar->postfix, strlen(bar->postfix));
  td_text_add_char(&line, '\n');
  bar->tenths = tenths;
  if (r->line_time > 0 && at - r->line_time < 1) keep_late(r, &line);
  else {
    r->line_time = at;
    td_text_clear(&r->late_line);
  }
  write_text(&line);
}

static void dots_event(td_render *r, td_bar *bar, bool final) {
  td_text text = {0};
  td_bars_erase(r);
  if (!r->in_dots && bar->label[0] && !bar->dots) {
    td_source_print(&text, bar->label, strlen(bar->label));
    td_text_add_char(&text, ' ');
  }
  int64_t dots = bar->total > 0 ? (int64_t)((double)bar->done / (double)bar->total * 50) : bar->done / 100;
  for (; bar->dots < dots && bar->dots < INT32_MAX; bar->dots++) td_text_add_char(&text, '.');
  r->in_dots = r->in_dots || text.length;
  if (final && r->in_dots) {
    td_text_add_char(&text, '\n');
    r->in_dots = false;
  }
  write_text(&text);
}

// ---- events ----

static td_bar *bar_of(td_render *r, const td_event *event) {
  for (int i = 0; i < r->bar_count; i++)
    if (r->bars[i].id == event->id) return &r->bars[i];
  if (r->bar_count == TD_BARS_MAX) return NULL;
  td_bar *bar = &r->bars[r->bar_count++];
  *bar = (td_bar){.id = event->id};
  return bar;
}

static void copy_cut(char *to, size_t size, const char *from) { // whole characters
  size_t length = from ? strlen(from) : 0;
  if (length >= size) {
    length = size - 1;
    while (length && ((unsigned char)from[length] & 0xc0) == 0x80) length--;
  }
  if (length) memcpy(to, from, length);
  to[length] = 0;
}

static void take_out(td_render *r, td_bar *bar) {
  size_t index = (size_t)(bar - r->bars);
  memmove(bar, bar + 1, ((size_t)r->bar_count - index - 1) * sizeof *bar);
  r->bar_count--;
}

// The outermost bar stays as a line of text when it ends; inner ones make room for the next.
static void terminal_event(td_render *r, td_bar *bar, bool final) {
  td_bars_erase(r);
  if (!final) {
    td_bars_draw(r);
    return;
  }
  bool outermost = r->bar_count == 1;
  if (outermost && !r->in_dots) {
    td_text text = {0};
    td_render_fresh_line(r);
    if (add_rows(r, &text)) td_text_add_char(&text, '\n');
    write_text(&text);
  }
  take_out(r, bar);
  td_bars_draw(r);
}

void td_bars_event(td_render *r, const td_event *event) {
  td_bar *bar = bar_of(r, event);
  if (!bar) return;
  bar->done = event->done;
  bar->total = event->total;
  bar->seconds = event->seconds;
  bar->samples = event->samples;
  bar->level = event->level;
  copy_cut(bar->label, sizeof bar->label, event->text);
  copy_cut(bar->postfix, sizeof bar->postfix, event->detail);
  copy_cut(bar->style, sizeof bar->style, event->name);
  if (is_dots(bar)) dots_event(r, bar, event->final);
  else if (r->error_terminal) {
    terminal_event(r, bar, event->final);
    return;
  } else plain_event(r, bar, event->final);
  if (event->final) take_out(r, bar);
}

void td_bars_end(td_render *r) {
  td_bars_erase(r);
  r->bar_count = 0;
  td_render_end_dots(r);
  write_text(&r->late_line);
}
