// Progress bars on a terminal, one row a nesting level, redrawn in place; elsewhere plain lines, at most one a second.
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include "repl/line/render.h"

static int terminal_columns(void) {
  struct winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void clock_text(double seconds, char text[32]) {
  long s = seconds < 0 ? 0 : seconds > 3.6e8 ? 360000000 : (long)(seconds + 0.5);
  if (s >= 3600) snprintf(text, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else snprintf(text, 32, "%ld:%02ld", s / 60, s % 60);
}

static void rate_text(const td_bar *bar, char text[32]) {
  if (bar->done <= 0 || bar->seconds <= 0) snprintf(text, 32, "-- it/s");
  else if ((double)bar->done >= bar->seconds) snprintf(text, 32, "%.0f it/s", (double)bar->done / bar->seconds);
  else snprintf(text, 32, "%.1f s/it", bar->seconds / (double)bar->done);
}

static void state_text(const td_bar *bar, char *text, size_t size) {
  char rate[32], left[32], spent[32];
  rate_text(bar, rate);
  clock_text(bar->seconds, spent);
  if (bar->total < 0) {
    snprintf(text, size, "%lld  %s  %s", (long long)bar->done, rate, spent);
    return;
  }
  if (bar->done >= bar->total) snprintf(text, size, "%lld/%lld  %s  in %s", (long long)bar->done, (long long)bar->total, rate, spent);
  else if (bar->done <= 0) snprintf(text, size, "0/%lld", (long long)bar->total);
  else {
    clock_text(bar->seconds / (double)bar->done * (double)(bar->total - bar->done), left);
    snprintf(text, size, "%lld/%lld  %s  %s left", (long long)bar->done, (long long)bar->total, rate, left);
  }
}

// Cuts a UTF-8 text to so many columns; returns the columns used.
static int fit(char *text, int columns) {
  mbstate_t state = {0};
  int used = 0;
  char *at = text;
  while (*at) {
    wchar_t wide;
    size_t bytes = mbrtowc(&wide, at, strlen(at), &state);
    int width = bytes == (size_t)-1 || bytes == (size_t)-2 ? -1 : wcwidth(wide);
    if (width < 0) {
      *at = '?';
      memset(&state, 0, sizeof state);
      bytes = 1;
      width = 1;
    }
    if (used + width > columns) break;
    used += width;
    at += bytes;
  }
  *at = 0;
  return used;
}

int td_bar_line(const td_bar *bar, int columns, bool unicode, char *text, size_t size) {
  char state[128];
  state_text(bar, state, sizeof state);
  int width = columns - 2 - (int)strlen(bar->label) - (int)strlen(state) - (int)(bar->postfix[0] ? strlen(bar->postfix) + 2 : 0) - 7;
  width = width > 30 ? 30 : width;
  double fraction = bar->total > 0 ? (double)bar->done / (double)bar->total : bar->total == 0 ? 1 : 0;
  fraction = fraction > 1 ? 1 : fraction;
  size_t used = (size_t)snprintf(text, size, "%s%s", bar->label, bar->label[0] ? "  " : "");
  if (bar->total >= 0 && width >= 6) {
    used += (size_t)snprintf(text + used, size - used, "%3d%% [", (int)(fraction * 100));
    for (int i = 0; i < width && used + 4 < size; i++) {
      const char *glyph = i < (int)(fraction * width) ? (unicode ? "━" : "=") : " ";
      used += (size_t)snprintf(text + used, size - used, "%s", glyph);
    }
    used += (size_t)snprintf(text + used, size - used, "] ");
  }
  if (used < size) snprintf(text + used, size - used, "%s%s%s", state, bar->postfix[0] ? "  " : "", bar->postfix);
  return fit(text, columns);
}

void td_bars_erase(td_render *r) {
  if (!r->bar_rows) return;
  fputs("\r\033[K", stderr);
  for (int i = 1; i < r->bar_rows; i++) fputs("\033[A\033[K", stderr);
  fflush(stderr);
  r->bar_rows = 0;
}

void td_bars_draw(td_render *r) {
  if (!r->error_terminal || !r->bar_count) return;
  int columns = terminal_columns() - 1;
  bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  for (int i = 0; i < r->bar_count; i++) {
    char text[512];
    td_bar_line(&r->bars[i], columns, unicode, text, sizeof text);
    fprintf(stderr, "%s%s\033[K", i ? "\n" : "\r", text);
  }
  fflush(stderr);
  r->bar_rows = r->bar_count;
}

static td_bar *bar_of(td_render *r, const td_event *event) {
  for (int i = 0; i < r->bar_count; i++)
    if (r->bars[i].id == event->id) return &r->bars[i];
  if (r->bar_count == TD_BARS_MAX) return NULL;
  td_bar *bar = &r->bars[r->bar_count++];
  *bar = (td_bar){.id = event->id, .printed = 0};
  return bar;
}

static void plain_line(const td_bar *bar) {
  char state[128];
  state_text(bar, state, sizeof state);
  fprintf(stderr, "%s%s%s%s%s\n", bar->label, bar->label[0] ? "  " : "", state, bar->postfix[0] ? "  " : "", bar->postfix);
}

// Not a terminal: a line at each tenth or 10 seconds, whichever is rarer, and one at the end; never more than one a second.
static void plain_event(td_render *r, td_bar *bar, bool final) {
  double at = now();
  if (r->line_time && at - r->line_time < 1) return;
  bool tenth = bar->total > 0 && bar->done * 10 / bar->total > (int64_t)(bar->printed * 10);
  if (!final && (!tenth || at - r->line_time < 10 || !r->line_time)) {
    if (!r->line_time) r->line_time = at; // the first line comes ten seconds after the start
    return;
  }
  plain_line(bar);
  bar->printed = bar->total > 0 ? (double)bar->done / (double)bar->total : 0;
  r->line_time = at;
}

static void dots_event(td_bar *bar, bool final) {
  int dots = bar->total > 0 ? (int)(bar->done * 50 / bar->total) : (int)(bar->done / 100);
  for (; bar->dots < dots; bar->dots++) fputc('.', stderr);
  if (final) fputc('\n', stderr);
  fflush(stderr);
}

// A bar that ended stays as a line of text when it is the outermost one; inner ones make room for the next.
static void keep_last(td_render *r, const td_bar *bar) {
  if (bar->level > 0 || r->bar_count > 1) {
    td_bars_erase(r);
    return;
  }
  fputc('\n', stderr);
  r->bar_rows = 0;
}

void td_bars_event(td_render *r, const td_event *event) {
  td_bar *bar = bar_of(r, event);
  if (!bar) return;
  bar->done = event->done;
  bar->total = event->total;
  bar->seconds = event->seconds;
  bar->level = event->level;
  snprintf(bar->label, sizeof bar->label, "%s", event->text ? event->text : "");
  snprintf(bar->postfix, sizeof bar->postfix, "%s", event->detail ? event->detail : "");
  snprintf(bar->style, sizeof bar->style, "%s", event->name ? event->name : "");
  if (strcmp(bar->style, "dots") == 0) dots_event(bar, event->final);
  else if (r->error_terminal) {
    td_bars_erase(r);
    td_bars_draw(r);
    if (event->final) keep_last(r, bar);
  } else plain_event(r, bar, event->final);
  if (event->final) {
    size_t index = (size_t)(bar - r->bars);
    memmove(bar, bar + 1, ((size_t)r->bar_count - index - 1) * sizeof *bar);
    r->bar_count--;
    if (r->error_terminal && !r->bar_rows) td_bars_draw(r);
  }
}
