// Panes that get every kind of event with every kind of value in it, and every request, at every size: they draw in
// their area only, find an answer to everything, and give their memory back.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/screen/bars.h"
#include "repl/screen/panes.h"

static td_theme theme;
static td_surface surface;
static td_pane_host host;
static void (*answer)(void *, const char *);
static void *answer_to;

// ---- a host that has nothing to tell ----

static bool inquire(void *owner, td_inquiry *make, const char *argument, int32_t id) {
  return (void)owner, (void)make, (void)argument, (void)id, false;
}
static td_payload *take_payload(void *owner) { return (void)owner, NULL; }
static void run_line(void *owner, const char *line) { (void)owner, (void)line; }
static void jump(void *owner, const char *script, int line, int column) {
  (void)owner, (void)script, (void)line, (void)column;
}
static void say(void *owner, const char *text) { (void)owner, (void)text; }
static bool reply(void *owner, const char *line) { return (void)owner, (void)line, false; }
static void ask(void *owner, const char *prompt, void (*function)(void *, const char *), void *argument) {
  (void)owner, (void)prompt;
  answer = function;
  answer_to = argument;
}
static bool place(void *owner, const td_pixels *picture, uint64_t serial, td_rect area) {
  return (void)owner, (void)picture, (void)serial, (void)area, false;
}
static void show(void *owner, const char *pane) { (void)owner, (void)pane; }
static void emit(void *owner, const td_event *event) { (void)owner, (void)event; }
static enum td_context_kind context(void *owner) { return (void)owner, TD_IN_EDIT; }
static void beside(void *owner, const char *name, td_text *path) { (void)owner, td_text_add(path, name); }
static double now(void *owner) { return (void)owner, 0; }

static void start(void) {
  surface = (td_surface){0};
  host = (td_pane_host){.theme = &theme, .inquire = inquire, .take_payload = take_payload, .run = run_line,
                        .jump = jump, .say = say, .reply = reply, .ask = ask, .place = place, .show = show,
                        .emit = emit, .now = now,
                        .context = context, .beside = beside};
}

static void finish(void) {
  td_surface_free(&surface);
  ck_assert_int_eq(td_memory_live(), 0);
}

// ---- events ----

static const double values[] = {0, -0.0, 1, -1, 1e300, -1e300, 5e-324, 0.1, NAN, INFINITY, -INFINITY, 1e-9, 123456789};
static const char *const texts[] = {
    "", "loss", "val_loss", "runs/a:loss", ":", "\033]2;x\a", "\xff\xfe", "a\nb\n\nc", "\t\t", "e\xcc\x81",
    "\xe3\x81\x82\xe3\x81\x82", "name that is longer than any column of any pane that there could be, and so on"};
enum { VALUES = sizeof values / sizeof *values, TEXTS = sizeof texts / sizeof *texts };

static int any(int count) { return rand() % count; }

static void feed(const td_pane_type *type, void *state, td_bars *bars) {
  static const int64_t steps[] = {0, 1, 2, 100, 1000000, INT64_MAX / 4, -5};
  td_curve_point points[5];
  for (int i = 0; i < 5; i++) points[i] = (td_curve_point){.step = steps[any(7)] + i, .value = values[any(VALUES)]};
  uint8_t pixels[12 * 7 * 3];
  memset(pixels, any(256), sizeof pixels);
  const char *text = texts[any(TEXTS)];
  td_event event = {.kind = any(TD_EVENT_COUNT), .cell = any(5), .level = any(3), .status = any(5), .line = any(9),
                    .final = any(4) == 0, .id = (uint64_t)any(9), .text = text, .length = strlen(text),
                    .detail = any(2) ? texts[any(TEXTS)] : NULL, .name = any(2) ? texts[any(TEXTS)] : NULL,
                    .done = any(6), .total = any(6) - 1, .seconds = values[any(VALUES)], .points = points,
                    .pixels = any(2) ? pixels : NULL, .width = 12, .height = 7};
  if (event.kind == TD_EVENT_METRIC && event.done > 5) event.done = 5;
  if (event.kind == TD_EVENT_ANSWER) return; // has a payload
  if (type->event) type->event(state, &event);
  td_bars_take(bars, &event);
}

static void stays_inside(td_rect area) {
  for (int row = 0; row < surface.rows; row++)
    for (int column = 0; column < surface.columns; column++)
      if (row < area.row || row >= area.row + area.rows || column < area.column || column >= area.column + area.columns)
        ck_assert_uint_eq(surface.spots[row * surface.columns + column].code, ' ');
}

static void draw(const td_pane_type *type, void *state, const td_bars *bars) {
  static const int sizes[] = {1, 2, 3, 4, 7, 10, 19, 24, 40, 80, 200};
  int rows = sizes[any(9)], columns = sizes[any(11)];
  ck_assert(td_surface_resize(&surface, rows + 2, columns + 2));
  theme.glyphs = any(3);
  td_rect area = {1, 1, rows, columns};
  td_text title = {0};
  type->title(state, &title);
  td_text_clear(&title);
  td_surface_clip(&surface, area);
  type->draw(state, &surface, area, any(2));
  stays_inside(area);
  td_surface_clear(&surface);
  td_surface_clip(&surface, area);
  td_bars_paint(bars, &theme, &surface, area);
  stays_inside(area);
}

static void click(const td_pane_type *type, void *state) {
  td_key key = {.code = TD_KEY_MOUSE_PRESS, .row = any(30), .column = any(100)};
  if (type->click) type->click(state, &key);
}

static void answer_something(const td_pane_type *type) {
  void (*asked)(void *, const char *) = answer;
  answer = NULL;
  const char *line = any(3) && type != &td_pane_images ? texts[any(TEXTS)] : NULL; // images would be saved
  if (asked) asked(answer_to, line);
}

static const td_pane_type *const types[] = {
#define X(name) &td_pane_##name,
    TD_PANES(X)
#undef X
};

START_TEST(test_anything) {
  const td_pane_type *type = types[_i];
  srand((unsigned)_i);
  for (int round = 0; round < 30; round++) {
    void *state = td_memory_new_zero(type->state_size);
    td_bars bars = {0};
    type->open(state, &host, 64);
    if (type->shown) type->shown(state, true);
    for (int i = 0; i < 200; i++) {
      for (int n = any(5); n > 0; n--) feed(type, state, &bars);
      type->request(state, (enum td_request)any(TD_REQUEST_COUNT));
      if (any(3) == 0) answer_something(type);
      if (any(5) == 0) click(type, state);
      if (any(5) == 0 && type->tick) type->tick(state);
      draw(type, state, &bars);
    }
    answer = NULL;
    type->close(state);
    td_memory_free(state);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pane_events");
  TCase *cases = tcase_create("pane_events");
  tcase_add_checked_fixture(cases, start, finish);
  tcase_set_timeout(cases, 120);
  tcase_add_loop_test(cases, test_anything, 0, (int)(sizeof types / sizeof *types));
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
