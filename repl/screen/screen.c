// See screen.h. One thread owns the terminal, readline and the notebook. It waits for keys, signals, events of the
// session and what others print, and draws a frame when something changed, at most 15 times a second; on a slow line
// fewer, so that keys are answered between frames.
#include "repl/screen/screen.h"
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "engine/base/memory.h"
#include "repl/notebook/report.h"
#include "repl/screen/display.h"

enum { FRAME_MILLISECONDS = 66, EVENTS_MILLISECONDS = 20, TICK_MILLISECONDS = 500, STOP_MILLISECONDS = 1000 };
enum { READ_BYTES = 1 << 16, BURST_BYTES = 16 };
static const double EVENT_SECONDS = 0.008; // for events before keys are looked at again
static const double SLOW_LINE = 3;         // frames take at most a part of the time: 1 / (1 + SLOW_LINE)

double td_screen_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void td_screen_say(td_screen *s, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(s->message, sizeof s->message, format, list);
  va_end(list);
  s->message_run = 0;
  s->message_until = 0;
  s->dirty = true;
}

// ---- panes ----

static const td_pane_type *const pane_types[] = {
#define X(name) &td_pane_##name,
    TD_PANES(X)
#undef X
};

int td_screen_find_pane(const char *name) {
  for (int i = 0; i < TD_PANE_COUNT; i++)
    if (strcmp(pane_types[i]->name, name) == 0) return i;
  return -1;
}

const td_pane_type *td_screen_pane_type(int pane) { return pane_types[pane]; }

int td_screen_pane_asking(uint64_t id) {
  return id >= TD_PANE_IDS && id < TD_PANE_IDS * (TD_PANE_COUNT + 1) ? (int)(id / TD_PANE_IDS) - 1 : -1;
}

static bool host_inquire(void *owner, td_inquiry *make, const char *argument, int32_t id) {
  td_screen *s = owner;
  int pane = td_screen_pane_asking((uint64_t)id);
  if (pane >= 0 && s->asked_at[pane] <= 0) s->asked_at[pane] = td_screen_now();
  return td_session_inquire(s->session, make, argument, id);
}
static td_payload *host_take(void *owner) { return td_session_take_payload(((td_screen *)owner)->session); }
static enum td_context_kind host_context(void *owner) { return td_screen_context(owner); }
static void host_say(void *owner, const char *text) { td_screen_say(owner, "%s", text); }
static void host_jump(void *owner, const char *script, int line, int column) {
  td_screen_jump(owner, script, line, column);
}
static void host_ask(void *owner, const char *prompt, void (*answer)(void *, const char *), void *argument) {
  td_screen_ask(owner, prompt, answer, argument);
}
static void host_beside(void *owner, const char *name, td_text *path) { // "train.deck": "train-loss.png"
  const td_screen *s = owner;
  const char *slash = s->path ? strrchr(s->path, '/') : NULL;
  const char *file = slash ? slash + 1 : s->path ? s->path : "", *dot = strrchr(file, '.');
  if (s->path) td_text_add_bytes(path, s->path, (size_t)((dot && dot > file ? dot : file + strlen(file)) - s->path));
  td_text_print(path, "%s%s", s->path ? "-" : "", name);
}
static bool host_reply(void *owner, const char *line) { return td_screen_reply(owner, line); }
static bool host_place(void *owner, const td_pixels *picture, uint64_t serial, td_rect area) {
  td_screen *s = owner;
  if (s->graphics == TD_GRAPHICS_CELLS) return false;
  s->placed = (td_placed){.held = *picture, .serial = serial, .area = area};
  return true;
}
static void host_show(void *owner, const char *pane) { td_screen_show_pane(owner, td_screen_find_pane(pane), false); }
static void host_emit(void *owner, const td_event *event) { td_screen_tell_panes(owner, event); }
static double host_now(void *owner) { return (void)owner, td_screen_now(); }

static bool open_panes(td_screen *s) {
  s->host = (td_pane_host){s, &s->theme, host_inquire, host_take, td_screen_run_line, host_jump, host_context, host_say,
                           host_beside, host_reply, host_ask, host_place, host_show, host_emit, host_now};
  for (int i = 0; i < TD_PANE_COUNT; i++) {
    s->states[i] = td_memory_new_zero(pane_types[i]->state_size);
    if (!s->states[i]) return false;
    pane_types[i]->open(s->states[i], &s->host, TD_PANE_IDS * (i + 1));
  }
  return true;
}

static void close_panes(td_screen *s) {
  for (int i = 0; i < TD_PANE_COUNT; i++)
    if (s->states[i]) {
      pane_types[i]->close(s->states[i]);
      td_memory_free(s->states[i]);
    }
}

void td_screen_show_pane(td_screen *s, int pane, bool focus) {
  if (s->pane >= 0 && s->pane != pane && pane_types[s->pane]->shown)
    pane_types[s->pane]->shown(s->states[s->pane], false);
  bool opens = pane >= 0 && pane != s->pane;
  s->pane = pane;
  if (pane < 0) s->zoomed = false;
  if (opens && pane_types[pane]->shown) pane_types[pane]->shown(s->states[pane], true);
  if (pane < 0 && s->focus == TD_FOCUS_PANE) td_screen_focus(s, TD_FOCUS_PROMPT);
  else if (focus) td_screen_focus(s, TD_FOCUS_PANE);
  s->dirty = true;
}

// ---- what comes in ----

// Nobody types so fast: text with line ends in it that came at once is a paste without its marks.
static bool is_burst(const char *bytes, size_t length) {
  const char *line_end = memchr(bytes, '\r', length);
  return length >= BURST_BYTES && line_end && line_end + 1 < bytes + length;
}

static void cut_short(td_screen *s, int signal) {
  s->leaving = s->cut_short = true;
  s->exit_code = 128 + signal;
}

static void read_keys(td_screen *s) {
  static char bytes[READ_BYTES];
  ssize_t got = read(td_display_input(), bytes, sizeof bytes);
  if (got == 0) cut_short(s, SIGHUP); // the terminal is gone
  if (got <= 0) return;
  td_keyboard_feed(&s->keyboard, bytes, (size_t)got);
  bool burst = is_burst(bytes, (size_t)got);
  td_key key;
  while (!s->leaving && td_keyboard_next(&s->keyboard, false, &key)) {
    if (key.code == TD_KEY_REPLY) td_graphics_answer(key.bytes, key.length, &s->graphics);
    else td_screen_key(s, &key, burst && td_keyboard_waits_text(&s->keyboard));
  }
}

static void late_keys(td_screen *s) { // an Escape that nothing followed
  td_key key;
  while (!s->leaving && td_keyboard_next(&s->keyboard, true, &key))
    if (key.code != TD_KEY_REPLY) td_screen_key(s, &key, false);
}

static void read_stray(td_screen *s) { // what a library or a child printed
  char bytes[4096];
  ssize_t got = read(td_display_stray(), bytes, sizeof bytes);
  if (got <= 0) return;
  td_event event = {.kind = TD_EVENT_OUTPUT, .cell = s->run_number, .stream = 2, .text = bytes, .length = (size_t)got};
  td_screen_event(s, &event);
}

static void read_events(td_screen *s) {
  td_event event;
  double from = td_screen_now();
  while (td_session_next(s->session, &event, 0)) {
    td_screen_event(s, &event);
    if (td_screen_now() - from > EVENT_SECONDS) break;
  }
}

static void take_signals(td_screen *s) {
  int news = td_display_news();
  if (news & TD_SIGNAL_INTERRUPT) td_screen_interrupt(s);
  if (news & TD_SIGNAL_SUSPEND) td_display_suspend();
  if (news & TD_SIGNAL_RESIZE) td_display_redraw(); // there and back: the terminal cut what it showed
  if (news & (TD_SIGNAL_RESIZE | TD_SIGNAL_SUSPEND)) s->dirty = true;
  if (news & TD_SIGNAL_END) cut_short(s, td_display_end_signal());
}

static void tick(td_screen *s) {
  if (s->pane >= 0 && pane_types[s->pane]->tick) pane_types[s->pane]->tick(s->states[s->pane]);
  td_screen_idle(s);
  s->dirty = s->dirty || s->run_number || s->pane >= 0;
}

// ---- the loop ----

static int wait_milliseconds(const td_screen *s, double next_frame, double next_tick, double next_events) {
  double until = next_tick, now = td_screen_now();
  if (s->dirty && next_frame < until) until = next_frame;
  if (next_events > now && next_events < until) until = next_events;
  int wait = until > now ? (int)((until - now) * 1000) + 1 : 0;
  if (td_keyboard_waits(&s->keyboard) && wait > TD_ESCAPE_MILLISECONDS) wait = TD_ESCAPE_MILLISECONDS;
  return wait;
}

static void draw_frame(td_screen *s) {
  double from = td_screen_now();
  td_screen_draw(s);
  s->frame_cost = td_screen_now() - from;
  s->dirty = false;
}

static void loop(td_screen *s) {
  double next_frame = 0, next_tick = 0, next_events = 0, keys_at = 0;
  while (!s->leaving) {
    bool looks = td_screen_now() >= next_events; // a training tells something at every step: not each of them wakes us
    struct pollfd wait[] = {{.fd = td_display_input(), .events = POLLIN},
                            {.fd = td_display_signals(), .events = POLLIN},
                            {.fd = looks ? td_session_descriptor(s->session) : -1, .events = POLLIN},
                            {.fd = td_display_stray(), .events = POLLIN}};
    int ready = poll(wait, 4, wait_milliseconds(s, next_frame, next_tick, next_events));
    bool key = ready > 0 && wait[0].revents & (POLLIN | POLLHUP | POLLERR);
    if (ready > 0 && wait[1].revents) take_signals(s);
    double now = td_screen_now();
    if (key) {
      read_keys(s);
      keys_at = now;
    } else if (td_keyboard_waits(&s->keyboard) && now - keys_at >= TD_ESCAPE_MILLISECONDS / 1000.0) late_keys(s);
    if (ready > 0 && wait[2].revents) {
      read_events(s);
      next_events = now + EVENTS_MILLISECONDS / 1000.0;
    }
    if (ready > 0 && wait[3].revents) read_stray(s);
    if (now >= next_tick) {
      tick(s);
      next_tick = now + TICK_MILLISECONDS / 1000.0;
    }
    if (s->dirty && !s->leaving && (key || now >= next_frame)) {
      draw_frame(s);
      next_frame = td_screen_now() + FRAME_MILLISECONDS / 1000.0 + SLOW_LINE * s->frame_cost;
    }
  }
}

// ---- life ----

static int end(td_screen *s, bool started) {
  td_screen_close_files(s);
  if (started) {
    td_edit_stop();
    td_display_stop();
  }
  close_panes(s);
  if (s->session) td_line_close(s->session, s->exit_code);
  td_popup_clear(&s->popup);
  td_cells_view_free(&s->view);
  td_notebook_free(s->notebook);
  td_surface_free(&s->surface);
  td_keyboard_clear(&s->keyboard);
  td_text_clear(&s->draft);
  td_text_clear(&s->deleted);
  td_text_clear(&s->input_prompt);
  td_memory_free(s->path);
  return s->exit_code;
}

static void ask_graphics(void) {
  td_text question = {0};
  if (td_graphics_question(&question) && question.data) td_display_raw(0, 0, question.data, question.length);
  td_text_clear(&question);
}

int td_screen_run(const td_line_options *options) {
  if (!td_display_possible()) return -1;
  static td_screen screen; // large, and one at a time
  td_screen *s = &screen;
  *s = (td_screen){.options = options, .pane = -1, .share = 45, .dirty = true};
  s->session = td_line_open(options);
  if (!s->session || !td_screen_open(s) || !open_panes(s)) {
    s->exit_code = 1;
    return end(s, false);
  }
  s->view = (td_cells_view){.notebook = s->notebook, .theme = &s->theme, .follow = true};
  if (!td_display_start(-1)) {
    end(s, false);
    return -1;
  }
  s->theme = td_theme_find(td_display_colours(), td_display_unicode());
  td_session_lend_terminal(s->session);
  td_edit_start(s->session);
  td_screen_edit_prompt(s);
  if (s->notebook->count) { // a deck is read from its top
    s->view.follow = false;
    td_screen_say(s, "%d cells: Esc walks them, Ctrl-X a runs all", s->notebook->count);
  }
  td_screen_ask_recovery(s);
  ask_graphics();
  td_session_inquire(s->session, td_report_help, "print", 0); // the thread that answers is there before a kernel runs
  loop(s);
  return end(s, true);
}
