// Panes without a terminal: a session's events go in, keys as requests, and a surface comes out as text.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "repl/screen/panes.h"

static td_session *session;
static td_theme theme;
static td_surface surface;
static td_pane_host host;
static const td_pane_type *type;
static void *state;
static int64_t live;
static char drawn[20000], said[200], ran[500], jumped[200];
static void (*answer)(void *, const char *);
static void *answer_to;

// ---- the host ----

static bool inquire(void *owner, td_inquiry *make, const char *argument, int32_t id) {
  (void)owner;
  return td_session_inquire(session, make, argument, id);
}
static td_payload *take_payload(void *owner) { return (void)owner, td_session_take_payload(session); }
static void run_line(void *owner, const char *line) { (void)owner, snprintf(ran, sizeof ran, "%s", line); }
static void jump(void *owner, const char *script, int line, int column) {
  (void)owner, (void)column;
  snprintf(jumped, sizeof jumped, "%s:%d", script, line);
}
static void say(void *owner, const char *text) { (void)owner, snprintf(said, sizeof said, "%s", text); }
static void ask(void *owner, const char *prompt, void (*function)(void *, const char *), void *argument) {
  (void)owner, (void)prompt;
  answer = function;
  answer_to = argument;
}
static bool place(void *owner, const td_pixels *picture, uint64_t serial, td_rect area) {
  return (void)owner, (void)picture, (void)serial, (void)area, false;
}
static void show(void *owner, const char *pane) { (void)owner, (void)pane; }
static void emit(void *owner, const td_event *event) { (void)owner, type->event(state, event); }
static double now(void *owner) { return (void)owner, 0; }

// ---- a pane ----

static void open_pane(const td_pane_type *wanted) {
  theme = (td_theme){.glyphs = TD_GLYPHS_ASCII};
  host = (td_pane_host){.theme = &theme, .inquire = inquire, .take_payload = take_payload, .run = run_line, .jump = jump,
                        .say = say, .ask = ask, .place = place, .show = show, .emit = emit, .now = now};
  type = wanted;
  state = td_memory_new_zero(type->state_size);
  *said = *ran = *jumped = 0;
  type->open(state, &host, 64);
}

static void start(void) {
  live = td_memory_live();
  surface = (td_surface){0};
  session = td_session_new();
  ck_assert_ptr_nonnull(session);
}

static void finish(void) {
  type->close(state);
  td_memory_free(state);
  td_surface_free(&surface);
  td_session_free(session);
  ck_assert_int_eq(td_memory_live(), live);
}

static void pump(int kind) { // until an event of that kind has come
  td_event event;
  do {
    ck_assert_msg(td_session_next(session, &event, 60000), "no event for 60 s");
    if (event.kind == TD_EVENT_ERROR) ck_abort_msg("%s", event.text);
    if (type->event) type->event(state, &event);
  } while (event.kind != kind);
}

static void begin(const char *text) {
  static int cell;
  char name[20];
  snprintf(name, sizeof name, "cell %d", ++cell);
  td_run_options options = {.name = name, .cell = cell};
  ck_assert(td_session_run(session, text, strlen(text), &options));
}

static void run(const char *text) {
  begin(text);
  pump(TD_EVENT_CELL_FINISHED);
}

static void request(enum td_request which) { ck_assert(type->request(state, which)); }

static const char *draw(int rows, int columns) { // without the spaces at the ends of lines
  td_text text = {0};
  ck_assert(td_surface_resize(&surface, rows, columns));
  type->title(state, &text);
  td_text_add_char(&text, '\n');
  type->draw(state, &surface, (td_rect){0, 0, rows, columns}, true);
  td_surface_to_text(&surface, &text);
  ck_assert_uint_lt(text.length, sizeof drawn);
  memcpy(drawn, text.data, text.length + 1);
  td_text_clear(&text);
  return drawn;
}

static void shows(const char *text) { ck_assert_msg(strstr(drawn, text), "no \"%s\" in\n%s", text, drawn); }
static void refuses(const char *text) { ck_assert_msg(!strstr(drawn, text), "\"%s\" in\n%s", text, drawn); }

// ---- pictures ----

START_TEST(pictures_are_scaled_once) {
  td_pictures pictures = {0};
  td_pixels pixels = {1024, 1024, td_memory_new_zero(1024 * 1024 * 3)};
  td_room room = {40, 20, 20};
  open_pane(&td_pane_images);
  ck_assert(td_surface_resize(&surface, 20, 40));
  memset(pixels.rgb, 255, 1024 * 1024 * 3);
  td_picture_draw_row(&pictures, 7, &pixels, &theme, room, &surface, 0, 0, 0);
  ck_assert_uint_eq(surface.spots[0].code, '@');
  memset(pixels.rgb, 0, 1024 * 1024 * 3); // nobody looks at them any more
  for (int i = 0; i < 20; i++) td_picture_draw_row(&pictures, 7, &pixels, &theme, room, &surface, i, 0, i);
  for (int i = 0; i < 20 * 40; i++) ck_assert_uint_eq(surface.spots[i].code, '@');
  for (uint64_t id = 8; id < 100; id++) td_picture_draw_row(&pictures, id, &pixels, &theme, room, &surface, 0, 0, 0);
  ck_assert_uint_eq(surface.spots[0].code, ' ');
  td_pictures_clear(&pictures);
  td_pixels_clear(&pixels);
}
END_TEST

START_TEST(images_keep_marks_in_cells) {
  open_pane(&td_pane_images);
  run("show(tensor([[0.0, 1.0], [nan, inf]]))");
  ck_assert_str_eq(draw(4, 60), "image 1/1 from [1]\nheat map 2x2 float32 [0, 1] mean 0.5, 1 NaN, 1 inf, viridis\n"
                                "from 0 to 1\n..%%\n!!^^\n");
}
END_TEST

START_TEST(a_grid_can_be_looked_at_closer) {
  open_pane(&td_pane_images);
  run("x = zeros((4, 28, 28))\n"
      "x[0] = arange(784).reshape((28, 28)) % 2\n"
      "x[3, 10:20, 10:20] = 1.0\n"
      "show(x, columns=2)");
  draw(22, 79);
  shows("4 images 28x28 float32");
  request(TD_REQUEST_IMAGES_IN);
  draw(22, 79);
  shows("a part of it, x2");
  shows(" @ @ @ @ @ @ @ @ @ @ @ @ @ @"); // every pixel across
  request(TD_REQUEST_PANE_RIGHT);
  request(TD_REQUEST_PANE_DOWN);
  request(TD_REQUEST_PANE_DOWN);
  request(TD_REQUEST_PANE_RIGHT);
  draw(22, 79);
  shows("          @@@@@@@@@@");
  request(TD_REQUEST_IMAGES_OUT);
  draw(22, 79);
  refuses("a part of it");
}
END_TEST

START_TEST(images_are_saved_as_they_are) {
  open_pane(&td_pane_images);
  char path[] = "/tmp/test_panes-XXXXXX.png", code[200];
  int file = mkstemps(path, 4);
  ck_assert_int_ge(file, 0);
  close(file);
  run("show(tensor([[0, 255], [255, 0]], dtype=\"uint8\"))");
  request(TD_REQUEST_IMAGES_SAVE);
  answer(answer_to, path);
  ck_assert_msg(!strncmp(said, "saved /tmp", 10), "%s", said);
  snprintf(code, sizeof code, "assert load_png('%s').tolist()[0][1] == [255, 255, 255]", path);
  run(code);
  unlink(path);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("panes");
  TCase *cases = tcase_create("panes");
  tcase_add_checked_fixture(cases, start, finish);
  tcase_set_timeout(cases, 120);
  tcase_add_test(cases, pictures_are_scaled_once);
  tcase_add_test(cases, images_keep_marks_in_cells);
  tcase_add_test(cases, a_grid_can_be_looked_at_closer);
  tcase_add_test(cases, images_are_saved_as_they_are);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
