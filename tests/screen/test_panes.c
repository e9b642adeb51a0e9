// Panes without a terminal: a session's events go in, keys as requests, and a surface comes out as text.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "repl/language/curve.h"
#include "repl/screen/bars.h"
#include "repl/screen/panes.h"
#include "tests/notebook/sessions.h"

enum { FIRST_ID = 64 }; // of a pane's questions

static td_theme theme;
static td_surface surface;
static td_pane_host host;
static const td_pane_type *type;
static void *state;
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
static char folder[40]; // that files are saved in
static void beside(void *owner, const char *name, td_text *path) { (void)owner, td_text_print(path, "%s/%s", folder, name); }
static bool reply(void *owner, const char *line) { return (void)owner, td_session_reply(session, line); }
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
  host = (td_pane_host){.theme = &theme, .inquire = inquire, .take_payload = take_payload, .run = run_line,
                        .jump = jump, .say = say, .beside = beside, .reply = reply, .ask = ask, .place = place,
                        .show = show, .emit = emit, .now = now};
  type = wanted;
  state = td_memory_new_zero(type->state_size);
  *said = *ran = *jumped = 0;
  type->open(state, &host, FIRST_ID);
}

static void start(void) {
  surface = (td_surface){0};
  session_start();
}

static void close_pane(void) {
  type->close(state);
  td_memory_free(state);
}

static void finish(void) {
  close_pane();
  td_surface_free(&surface);
  session_finish();
}

static td_event pump_one(void) {
  td_event event = session_event();
  if (event.kind == TD_EVENT_ERROR) ck_abort_msg("%s", event.text);
  if (type->event) type->event(state, &event);
  return event;
}

static td_event pump(int kind) { // until an event of that kind has come
  td_event event;
  do event = pump_one();
  while (event.kind != kind);
  return event;
}

static void pump_stop(void) { // until a pass stands and asks, and the pane has looked at its tape
  bool stands = false, asks = false, looked = false;
  while (!asks || !looked) {
    td_event event = pump_one();
    stands |= event.kind == TD_EVENT_STEP;
    asks |= event.kind == TD_EVENT_INPUT;
    looked |= stands && event.kind == TD_EVENT_ANSWER && event.id == FIRST_ID;
  }
}

static void answered(int which) { // until the pane has the answer to one of its kinds of questions
  while (pump(TD_EVENT_ANSWER).id != (uint64_t)(FIRST_ID + which)) continue;
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

static void see(void) { // it comes into sight, and has what it asked for
  type->shown(state, true);
  answered(0);
}

static void answer_with(const char *line) { answer(answer_to, line); }

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
static void comes_to_show(int rows, int columns, const char *text) { // once what the pane has asked for is there
  while (!strstr(draw(rows, columns), text)) pump_one();
}
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
  answer_with(path);
  ck_assert_msg(!strncmp(said, "saved /tmp", 10), "%s", said);
  snprintf(code, sizeof code, "assert load_png('%s').tolist()[0][1] == [255, 255, 255]", path);
  run(code);
  unlink(path);
}
END_TEST

// ---- variables ----

static void see_all(int rows, int columns) { // a report that took too long is cut off: it is asked for again
  int tries = 0;
  do {
    type->tick(state);
    answered(0);
    draw(rows, columns);
  } while (strstr(drawn, "(not all)") && ++tries < 200);
}

START_TEST(variables_stand_once_and_bad_ones_first) {
  open_pane(&td_pane_variables);
  run("m = Sequential([Dense(4, name='first'), Dense(1, name='last')])\nopt = Adam(0.01)\nm.compile(opt, 'mse')\n"
      "x, y = randn(32, 3), randn(32, 1)\nm.fit(x, y, epochs=1, verbose=0)\nz = Variable([1., nan, inf], name='z')");
  see();
  see_all(20, 36);
  shows("variables: 9\n");
  ck_assert_ptr_nonnull(strstr(drawn, "\n!z"));
  ck_assert(strstr(drawn, "\n!z") < strstr(drawn, "\nm "));
  shows("NaN!");
  draw(20, 60);
  shows("m/first/kernel");
  refuses("opt/slots");
  refuses("update"); // nothing was seen yet
  run("m.fit(x, y, epochs=1, verbose=0)");
  see_all(20, 60);
  request(TD_REQUEST_VARIABLES_ALL);
  draw(40, 100);
  shows("all with the optimizers'");
  shows("opt/slots/first/kernel");
  refuses("m/optimizer");
  shows(" zeros");
  shows(" update");
  request(TD_REQUEST_VARIABLES_ALL);
  draw(20, 60);
  shows("variables: 5, names only");
  refuses("m/first");
}
END_TEST

START_TEST(a_variable_with_its_numbers) {
  open_pane(&td_pane_variables);
  run("w = Variable([[1., 2., 3.], [4., 5., 6.]], name='w')");
  see();
  request(TD_REQUEST_PANE_OPEN);
  answered(1);
  draw(24, 60);
  shows("w  float32[2, 3]");
  shows("[[1., 2., 3.],\n [4., 5., 6.]]");
  shows("values: 1 to 6, mean 3.5, 0% zeros");
  run("with GradientTape() as t:\n  loss = (w[:, 1:] ** 2).sum()\ng = t.gradient(loss, w)");
  type->tick(state);
  answered(0);
  answered(1);
  draw(24, 60);
  shows("dead: 1 of 3 units get no gradient");
  shows("gradient: 0 to 12");
  request(TD_REQUEST_PANE_BACK);
  draw(24, 60);
  refuses("values:");
}
END_TEST

// ---- the tape ----

START_TEST(gradients_along_the_tape) {
  open_pane(&td_pane_tape);
  run("w = Variable([3., 4.], name='w')\nwith GradientTape(persistent=True) as t:\n"
      "  a = w * 1e-6\n  b = a * 1e-6\n  c = b.sum() * 1e9\n  d = c * 1.0");
  see();
  draw(30, 79);
  refuses("gradient");
  run("g = t.gradient(d, w)");
  comes_to_show(30, 79, "  op              shape                gradient");
  shows("   2 ^ sum"); // above 1e3
  shows("   4 < mul");
  shows("   - v w");
  run("with GradientTape(persistent=True) as t:\n  a = w * 1.0\n  b = a * 1e-12\n  c = b.sum()\ng = t.gradient(c, w)");
  comes_to_show(30, 36, "   0 v multiply     [2]     1.4e-12");
  request(TD_REQUEST_PANE_FIRST);
  comes_to_show(30, 79, "its gradient vanishes: below 1e-8");
  shows("   1 < multiply");
}
END_TEST

START_TEST(tapes_are_sorted) {
  open_pane(&td_pane_tape);
  run("w = Variable(ones(100))\nwith GradientTape() as t:\n  a = w.sum()\n  b = exp(w)\n  c = a * a");
  see();
  request(TD_REQUEST_PANE_SORT);
  draw(30, 79);
  shows(" by bytes");
  ck_assert(strstr(drawn, " exp ") < strstr(drawn, " sum "));
  request(TD_REQUEST_PANE_SORT);
  request(TD_REQUEST_PANE_SORT);
  request(TD_REQUEST_PANE_SORT);
  draw(30, 79);
  ck_assert(strstr(drawn, " exp ") > strstr(drawn, " sum "));
  request(TD_REQUEST_PANE_FIRST);
  request(TD_REQUEST_TAPE_JUMP);
  ck_assert_msg(strncmp(jumped, "cell ", 5) == 0 && strstr(jumped, ":3"), "%s", jumped);
}
END_TEST

START_TEST(a_pass_by_steps) {
  open_pane(&td_pane_tape);
  run("w = Variable([1., 2.], name='w')\nwith GradientTape(persistent=True) as t:\n  y = w * w\n  z = y.sum()");
  see();
  request(TD_REQUEST_TAPE_STEP);
  answer_with("t.gradient(z, w)");
  ck_assert_str_eq(ran, "%tape t --step t.gradient(z, w)");
  begin(ran);
  pump_stop();
  ck_assert(type->answers(state));
  draw(30, 60);
  shows("a pass stands at 1");
  shows("1 sum(");
  shows("gradient 1");
  shows("to x");
  request(TD_REQUEST_TAPE_SET);
  answer_with("cotangent * 10");
  pump(TD_EVENT_INPUT);
  draw(30, 60);
  shows("[10., 10.]");
  request(TD_REQUEST_PANE_OPEN);
  pump(TD_EVENT_INPUT);
  draw(30, 60);
  shows("a pass stands at 0");
  shows("0 multiply(");
  shows("gradient [10., 10.]");
  shows("to y");
  request(TD_REQUEST_TAPE_GO);
  pump(TD_EVENT_CELL_FINISHED);
  ck_assert(!type->answers(state));
  answered(0);
  draw(30, 60);
  refuses("a pass stands");
  *said = 0;
  request(TD_REQUEST_TAPE_GO);
  ck_assert_ptr_nonnull(strstr(said, "s begins one"));
}
END_TEST

// ---- curves ----

static void log_curve(const char *name, int count, double scale) {
  td_curve_point points[100];
  for (int i = 0; i < count; i++) points[i] = (td_curve_point){i, scale * (i + 1)};
  td_event event = {.kind = TD_EVENT_METRIC, .cell = 0, .text = name, .length = strlen(name), .points = points, .done = count};
  type->event(state, &event);
}

static int style_of(const char *text) { // colour of the legend line that begins so, without its mark
  for (int row = 0; row < surface.rows; row++) {
    int i = 0;
    const td_spot *spots = &surface.spots[row * surface.columns + 2];
    while (text[i] && spots[i].code == (uint32_t)(unsigned char)text[i]) i++;
    if (!text[i]) return spots[0].style.foreground;
  }
  ck_abort_msg("no legend %s in\n%s", text, drawn);
}

START_TEST(the_newest_curves_of_a_kind) {
  open_pane(&td_pane_curves);
  char name[20];
  for (int i = 0; i < 9; i++) {
    snprintf(name, sizeof name, "runs/%c:loss", 'a' + i);
    log_curve(name, 10, i + 1);
  }
  request(TD_REQUEST_PANE_LEFT); // a cursor: all have a line
  draw(24, 70);
  shows("3 older not drawn");
  refuses("runs/c:loss");
  shows("runs/d:loss");
  shows("runs/i:loss: 90 at 9");
  run("plot('loss', 1.0, step=3)"); // of the newest cell
  draw(24, 70);
  shows("loss: 1 at 3");
  refuses("runs/d:loss");
  shows("4 older not drawn");
}
END_TEST

START_TEST(runs_have_colours) {
  open_pane(&td_pane_curves);
  theme.colours = 256;
  log_curve("loss", 5, 1);
  log_curve("val_loss", 5, 2);
  draw(20, 70);
  ck_assert_int_ne(style_of("loss"), style_of("val_loss"));
  log_curve("runs/a:loss", 5, 3);
  log_curve("runs/a:val_loss", 5, 4);
  log_curve("runs/b:loss", 5, 5);
  request(TD_REQUEST_PANE_RIGHT);
  draw(24, 70);
  ck_assert_int_eq(style_of("loss"), style_of("val_loss"));
  ck_assert_int_eq(style_of("runs/a:loss"), style_of("runs/a:val_loss"));
  ck_assert_int_ne(style_of("runs/a:loss"), style_of("loss"));
  ck_assert_int_ne(style_of("runs/a:loss"), style_of("runs/b:loss"));
}
END_TEST

START_TEST(legends_tell_raw_and_smoothed) {
  open_pane(&td_pane_curves);
  run("for i in range(10): plot('loss', float(i % 2), step=i)");
  draw(14, 79);
  refuses("smoothed");
  request(TD_REQUEST_CURVES_SMOOTH);
  draw(14, 79);
  shows("loss: last 1, smoothed 0.62");
  request(TD_REQUEST_PANE_LEFT);
  type->click(state, &(td_key){.row = 3, .column = 0});
  draw(14, 79);
  shows("loss: 0, smoothed 0 at 0");
}
END_TEST

START_TEST(legends_fit_into_narrow_panes) {
  open_pane(&td_pane_curves);
  log_curve("runs/2026-01-05/resnet:val_loss", 10, 1.0 / 3);
  draw(14, 110);
  shows("* runs/2026-01-05/resnet:val_loss: 10 points, last 3.33333 at 9, least 0.333333 at 0, most 3.33333 at 9\n");
  draw(14, 80);
  shows("* runs/2026-01-05/resnet:val_loss: last 3.33333 at 9, least 0.333333 at 0\n");
  draw(14, 60);
  shows("* runs/2026-01-05/resnet:val_loss: last 3.33333 at 9\n");
  draw(14, 40);
  shows("* runs/2026-0~net:val_loss: last 3.33333\n");
  draw(14, 26);
  shows("* runs~_loss: last 3.33333\n");
  request(TD_REQUEST_PANE_LEFT);
  draw(14, 34);
  shows("* runs/2026-0~et:val_loss: 3.33333\n");
}
END_TEST

START_TEST(a_curve_is_found_and_saved) {
  open_pane(&td_pane_curves);
  strcpy(folder, "/tmp/test_panes-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  run("for i in range(20): plot('loss', 1.0 / (i + 1)); plot('train/accuracy', i / 20)");
  draw(40, 60);
  ck_assert(!type->find(state, "nothing"));
  ck_assert(!type->find(state, "loss nothing"));
  ck_assert(type->find(state, "train/accuracy"));
  draw(40, 60);
  refuses("- loss");
  shows("train/accuracy:");
  ck_assert(type->find(state, "loss"));
  request(TD_REQUEST_CURVES_ALL);
  request(TD_REQUEST_CURVES_SAVE);
  ck_assert_msg(strstr(said, "loss.png; saved ") && strstr(said, "accuracy.png"), "%s", said);
  char code[300];
  snprintf(code, sizeof code, "assert load_png('%s/loss.png').shape == (500, 800, 3)\n!rm %s/*.png", folder, folder);
  run(code);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

// ---- help ----

static enum td_context_kind at_prompt(void *owner) { return (void)owner, TD_IN_EDIT; }

START_TEST(help_hangs_its_lines) { // under their text, behind the keys where there is room
  open_pane(&td_pane_help);
  host.context = at_prompt;
  type->shown(state, true);
  draw(60, 44);
  shows("  Type code at the prompt below; Enter runs\n  it. A block ends with an empty line.\n");
  shows("  Ctrl-O                run the entry and\n    bring up the one that followed it\n");
  draw(60, 70);
  shows("  Ctrl-O                run the entry and bring up the one that\n                        followed it\n");
  draw(60, 8);
  draw(3, 1);
}
END_TEST

// ---- searching and filtering: the same in every pane ----

static void search_for(const char *text) {
  *said = 0;
  request(TD_REQUEST_PANE_SEARCH);
  answer_with(text);
}

static bool selects(const char *text) { // the row that is shown the other way round holds it
  for (int row = 0; row < surface.rows; row++) {
    const td_spot *spots = &surface.spots[row * surface.columns];
    char line[200] = "";
    for (int i = 0; i < surface.columns && i < 199; i++) line[i] = (char)spots[i].code;
    if (spots[0].style.attributes & TD_REVERSE && strstr(line, text)) return true;
  }
  return false;
}

START_TEST(panes_are_searched) {
  open_pane(&td_pane_variables);
  run("left = 1\nother = 2\nright = 3\nbright = 4");
  see();
  draw(20, 60);
  search_for("right");
  draw(20, 60);
  ck_assert(selects("right"));
  request(TD_REQUEST_PANE_SEARCH_NEXT);
  draw(20, 60);
  ck_assert(selects("bright"));
  request(TD_REQUEST_PANE_SEARCH_BACK);
  draw(20, 60);
  ck_assert(selects("right") && !selects("bright"));
  search_for("nothing");
  ck_assert_str_eq(said, "not found");
  request(TD_REQUEST_PANE_FILTER);
  answer_with("right");
  draw(20, 60);
  shows("variables: 2 &right");
  refuses("other");
  request(TD_REQUEST_PANE_FILTER);
  answer_with("");
  draw(20, 60);
  shows("variables: 4");
}
END_TEST

START_TEST(the_log_is_searched) {
  open_pane(&td_pane_log);
  run("for i in range(100): print('line', i)");
  draw(10, 40);
  *said = 0;
  request(TD_REQUEST_PANE_SEARCH_NEXT);
  ck_assert_str_eq(said, "nothing was searched for: / asks");
  search_for("line 42");
  draw(10, 40);
  shows("(G: the end)\nline 42\n");
  request(TD_REQUEST_PANE_FILTER);
  answer_with("7");
  search_for("77"); // before it is drawn
  draw(30, 40);
  shows("log &7");
  refuses("line 42");
}
END_TEST

// ---- sizes ----

static void draw_all_sizes(void) { // nothing outside of the area, and nothing read outside of it
  for (int rows = 1; rows < 32; rows++)
    for (int columns = 1; columns < 100; columns += columns < 50 ? 1 : 7) {
      ck_assert(td_surface_resize(&surface, rows + 2, columns + 2));
      td_surface_clip(&surface, (td_rect){1, 1, rows, columns});
      type->draw(state, &surface, (td_rect){1, 1, rows, columns}, true);
      for (int i = 0; i < surface.rows * surface.columns; i++) {
        int row = i / surface.columns, column = i % surface.columns;
        bool inside = row >= 1 && row <= rows && column >= 1 && column <= columns;
        ck_assert(inside || surface.spots[i].code == ' ');
      }
    }
}

START_TEST(any_size) {
  static const char code[] = "w = Variable(ones((3, 4)), name='w')\nbad = tensor([nan, inf])\n"
                             "with GradientTape(persistent=True) as t: loss = (w * w * 1e9).sum()\n"
                             "g = t.gradient(loss, w)\nfor i in range(9): plot('loss', i); plot('val_loss', nan)\n"
                             "show(ones((40, 30)))";
  const td_pane_type *const types[] = {&td_pane_variables, &td_pane_tape, &td_pane_curves, &td_pane_images};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (i) close_pane();
    open_pane(types[i]);
    run(code);
    draw_all_sizes();
    if (type->shown) see();
    request(i == 3 ? TD_REQUEST_IMAGES_IN : i == 2 ? TD_REQUEST_PANE_LEFT : TD_REQUEST_PANE_DOWN);
    if (i == 0) request(TD_REQUEST_PANE_OPEN);
    if (i < 2) answered(1);
    draw_all_sizes();
  }
}
END_TEST

// ---- bars ----

static int64_t samples_told(const char *text) { // by a cell's bars, at last
  td_event event = {0};
  int64_t samples = -1;
  begin(text);
  while (event.kind != TD_EVENT_CELL_FINISHED) {
    event = session_event();
    if (event.kind == TD_EVENT_ERROR) ck_abort_msg("%s", event.text);
    if (event.kind == TD_EVENT_PROGRESS) samples = event.samples;
  }
  return samples;
}

START_TEST(bars_stand_in_each_other) {
  td_bars bars = {0};
  td_text text = {0};
  open_pane(&td_pane_images);
  td_bars_take(&bars, &(td_event){.kind = TD_EVENT_PROGRESS, .id = 1, .text = "epochs", .done = 2, .total = 5, .seconds = 10});
  td_bars_take(&bars, &(td_event){.kind = TD_EVENT_PROGRESS, .id = 2, .level = 1, .text = "batches", .done = 30, .total = 100,
                                  .seconds = 2, .samples = 960});
  ck_assert(td_surface_resize(&surface, 2, 90));
  td_bars_paint(&bars, &theme, &surface, (td_rect){0, 0, 2, 90});
  td_surface_to_text(&surface, &text);
  ck_assert_msg(strstr(text.data, "\n  batches   30% [="), "%s", text.data);
  ck_assert_msg(strstr(text.data, "30/100  15 it/s  0:05 left  480 samples/s\n"), "%s", text.data);
  td_text_clear(&text);
  ck_assert_int_eq(samples_told("for x, y in progress([(zeros(32, 2), 1)] * 3): pass"), 96);
  ck_assert_int_eq(samples_told("for x in progress(range(3)): pass"), 0);
  ck_assert_int_eq(samples_told("with progress(total=2) as bar:\n  bar.update(1, (ones(8), 1))\n  bar.update(1, ones(4))"), 12);
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
  tcase_add_test(cases, variables_stand_once_and_bad_ones_first);
  tcase_add_test(cases, a_variable_with_its_numbers);
  tcase_add_test(cases, gradients_along_the_tape);
  tcase_add_test(cases, tapes_are_sorted);
  tcase_add_test(cases, a_pass_by_steps);
  tcase_add_test(cases, the_newest_curves_of_a_kind);
  tcase_add_test(cases, runs_have_colours);
  tcase_add_test(cases, legends_tell_raw_and_smoothed);
  tcase_add_test(cases, legends_fit_into_narrow_panes);
  tcase_add_test(cases, a_curve_is_found_and_saved);
  tcase_add_test(cases, help_hangs_its_lines);
  tcase_add_test(cases, panes_are_searched);
  tcase_add_test(cases, the_log_is_searched);
  tcase_add_test(cases, any_size);
  tcase_add_test(cases, bars_stand_in_each_other);
  suite_add_tcase(suite, cases);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
