// The notebook and the plain face below the terminal: cutting decks, the session's queues and interrupts, questions and
// replies, completion that runs nothing, bars as text, the history file.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "repl/line/history.h"
#include "repl/line/render.h"
#include "repl/language/curve.h"
#include "repl/notebook/chart.h"
#include "repl/notebook/complete.h"
#include "repl/notebook/deck.h"
#include "repl/notebook/session.h"

static td_session *session;
static int64_t live;

static void start(void) {
  live = td_memory_live();
  session = td_session_new();
  ck_assert_ptr_nonnull(session);
}

static void finish(void) {
  td_session_free(session);
  ck_assert_int_eq(td_memory_live(), live);
}

// ---- decks ----

static void expect_cells(const char *text, int count, const char *const *texts, const int *lines) {
  td_context *context = td_context_new(1);
  td_deck deck;
  ck_assert_int_eq(td_deck_parse(context, text, strlen(text), &deck), TD_OK);
  ck_assert_int_eq(deck.count, count);
  for (int i = 0; i < count; i++) {
    ck_assert_int_eq(deck.cells[i].length, strlen(texts[i]));
    ck_assert_mem_eq(deck.cells[i].text, texts[i], deck.cells[i].length);
    ck_assert_int_eq(deck.cells[i].line, lines[i]);
  }
  td_deck_clear(&deck);
  td_context_free(context);
}

START_TEST(decks_are_cut_at_dividers) {
  expect_cells("", 0, NULL, NULL);
  expect_cells("a\nb", 1, (const char *const[]){"a\nb"}, (const int[]){0});
  expect_cells("# %%\na\n# %% title\nb\n", 2, (const char *const[]){"a\n", "b\n"}, (const int[]){1, 3});
  expect_cells("a\n#%%\n # %%\n", 1, (const char *const[]){"a\n#%%\n # %%\n"}, (const int[]){0});
  expect_cells("a\n# %%\n# %%\nb", 2, (const char *const[]){"a\n", "b"}, (const int[]){0, 3});
}
END_TEST

START_TEST(prose_is_marked) {
  td_context *context = td_context_new(1);
  td_deck deck;
  const char text[] = "# %% [markdown]\n# words\n# %%\nx = 1\n";
  ck_assert_int_eq(td_deck_parse(context, text, strlen(text), &deck), TD_OK);
  ck_assert_int_eq(deck.count, 2);
  ck_assert(deck.cells[0].markdown);
  ck_assert(!deck.cells[1].markdown);
  td_deck_clear(&deck);
  ck_assert_int_eq(td_deck_read(context, "no/such.deck", &deck), TD_ERROR_FILE);
  td_deck_clear(&deck);
  td_context_free(context);
}
END_TEST

// ---- sessions ----

static void run(const char *text, int cell) {
  td_run_options options = {.name = "cell", .echo_all = true, .cell = cell};
  ck_assert(td_session_run(session, text, strlen(text), &options));
}

typedef struct gathered { td_text output, values, errors; int status, progress, inputs; double seconds; } gathered;

static void drop(gathered *g) {
  td_text_clear(&g->output);
  td_text_clear(&g->values);
  td_text_clear(&g->errors);
}

static gathered gather(const char *reply) { // up to CELL_FINISHED; each INPUT is answered with reply
  gathered g = {0};
  td_event event;
  while (true) {
    ck_assert_msg(td_session_next(session, &event, 20000), "no event for 20 s");
    if (event.kind == TD_EVENT_OUTPUT) td_text_add_bytes(&g.output, event.text, event.length);
    if (event.kind == TD_EVENT_VALUE) td_text_print(&g.values, "%s\n", event.text);
    if (event.kind == TD_EVENT_ERROR) td_text_add(&g.errors, event.text);
    g.progress += event.kind == TD_EVENT_PROGRESS;
    if (event.kind == TD_EVENT_INPUT) {
      g.inputs++;
      ck_assert(td_session_reply(session, reply));
    }
    if (event.kind != TD_EVENT_CELL_FINISHED) continue;
    g.status = event.status;
    g.seconds = event.seconds;
    return g;
  }
}

static void expect_values(const char *text, const char *values) {
  static int cell;
  run(text, ++cell);
  gathered g = gather(NULL);
  ck_assert_str_eq(g.values.data ? g.values.data : "", values);
  drop(&g);
}

START_TEST(cells_run_in_order) {
  expect_values("x = 20\nx + 1\nx + 2", "21\n22\n");
  expect_values("_ + _1", "44\n");
  run("a = 1", 3);
  run("a += 1", 4);
  run("a", 5);
  gathered g = gather(NULL);
  drop(&g);
  g = gather(NULL);
  drop(&g);
  g = gather(NULL);
  ck_assert_str_eq(g.values.data, "2\n");
  drop(&g);
}
END_TEST

static void pause_for(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

START_TEST(an_interrupt_stops_the_running_cell) {
  for (int i = 0; i < 30; i++) { // at thirty moments, the first ones before the cell has begun
    run("n = 0\nwhile True: n += 1", i + 1);
    pause_for(i * 0.0003);
    td_session_interrupt(session);
    gathered g = gather(NULL);
    ck_assert_int_eq(g.status, TD_RUN_INTERRUPTED);
    drop(&g);
  }
  expect_values("2 + 2", "4\n");
}
END_TEST

START_TEST(an_interrupt_between_cells_is_kept_or_forgotten) {
  td_session_interrupt(session);
  run("1", 1);
  gathered g = gather(NULL);
  ck_assert_int_eq(g.status, TD_RUN_INTERRUPTED);
  drop(&g);
  td_session_interrupt(session);
  td_session_forget_interrupt(session);
  expect_values("1", "1\n");
}
END_TEST

START_TEST(output_is_bounded_while_nobody_takes_it) {
  run("while True: print('x' * 1000)", 1);
  int64_t before = td_memory_live(), most = 0;
  for (int i = 0; i < 40; i++) {
    pause_for(0.02);
    most = td_memory_live() - before > most ? td_memory_live() - before : most;
  }
  ck_assert_int_lt(most, 32 << 20);
  td_session_interrupt(session);
  ck_assert_uint_gt(td_session_drop_output(session), 1000);
  gathered g = gather(NULL);
  ck_assert_int_eq(g.status, TD_RUN_INTERRUPTED);
  drop(&g);
}
END_TEST

START_TEST(output_comes_before_the_cell_ends) {
  run("import time\nfor i in range(2):\n  print('early', i)\n  time.sleep(1000 * i)", 1);
  td_text seen = {0};
  td_event event;
  while (!seen.data || !strstr(seen.data, "early 1\n")) {
    ck_assert(td_session_next(session, &event, 20000));
    if (event.kind == TD_EVENT_OUTPUT) td_text_add_bytes(&seen, event.text, event.length);
  }
  td_text_clear(&seen);
  td_session_interrupt(session);
  gathered g = gather(NULL);
  drop(&g);
}
END_TEST

START_TEST(waiting_progress_is_replaced) {
  run("b = progress(range(10**9))\nfor i in range(2000): b.update(1); b.close()", 1);
  pause_for(0.2);
  gathered g = gather(NULL);
  ck_assert_int_eq(g.status, TD_RUN_DONE);
  drop(&g);
}
END_TEST

START_TEST(bars_go_from_nothing_to_all) {
  run("import time\nfor i in progress(range(400), 'steps'): time.sleep(0.002)", 1);
  int64_t done = 0, events = 0;
  double seconds = 0;
  td_event event = {0};
  while (event.kind != TD_EVENT_CELL_FINISHED) {
    ck_assert_msg(td_session_next(session, &event, 20000), "no event for 20 s");
    if (event.kind != TD_EVENT_PROGRESS) continue;
    ck_assert_int_eq(event.total, 400);
    ck_assert_int_ge(event.done, done);
    ck_assert(event.done == 0 || events > 0);
    ck_assert(!event.final || event.done == 400);
    done = event.done;
    seconds = event.seconds;
    events++;
  }
  ck_assert_int_eq(done, 400);
  ck_assert_int_ge(events, 4);
  ck_assert_int_le(events, (int64_t)(seconds * 20) + 3);
}
END_TEST

// The postfix of fit's bars: while they run the batch's loss and the mean so far, at the end what fit returns.
START_TEST(bars_of_fit_say_what_a_number_is) {
  run("seed(1)\nm = Sequential([Dense(1)])\nm.compile('sgd', 'mse', metrics=['mae'])\nimport time\n"
      "class Slow(Callback):\n  def on_train_batch_end(self, batch, logs=None): time.sleep(0.01)\n"
      "h = m.fit(Dataset(randn(64, 3), randn(64, 1)).batch(4), epochs=2, callbacks=[Slow()])\n"
      "for i in range(2): print(f\"loss(epoch mean)={h.history['loss'][i]:.4f}, mae={h.history['mae'][i]:.4f}\")",
      1);
  char last[2][128] = {"", ""};
  int bars = 0, labelled = 0;
  td_text output = {0};
  td_event event = {0};
  while (event.kind != TD_EVENT_CELL_FINISHED) {
    ck_assert_msg(td_session_next(session, &event, 60000), "no event for 60 s");
    if (event.kind == TD_EVENT_OUTPUT) td_text_add_bytes(&output, event.text, event.length);
    if (event.kind != TD_EVENT_PROGRESS) continue;
    labelled += strstr(event.detail, "loss(batch)=") && strstr(event.detail, "loss(epoch mean)=");
    if (event.final) snprintf(last[bars++ % 2], sizeof last[0], "%s\n", event.detail);
  }
  ck_assert_int_eq(event.status, TD_RUN_DONE);
  ck_assert_int_eq(bars, 2);
  ck_assert_int_gt(labelled, 0);
  ck_assert_int_eq(output.length, strlen(last[0]) + strlen(last[1]));
  ck_assert_mem_eq(output.data, last[0], strlen(last[0]));
  ck_assert_str_eq(output.data + strlen(last[0]), last[1]);
  td_text_clear(&output);
}
END_TEST

START_TEST(every_point_of_a_curve_comes_once) {
  run("for i in range(100000):\n  plot('a', i)\n  if i % 7 == 0: plot('b', -i, step=i)", 1);
  int64_t next = 0, step = 0, events = 0;
  for (td_event event = {0}; event.kind != TD_EVENT_CELL_FINISHED;) {
    ck_assert_msg(td_session_next(session, &event, 20000), "no event for 20 s");
    if (event.kind != TD_EVENT_METRIC) continue;
    events++;
    bool first = strcmp(event.text, "a") == 0;
    for (int64_t i = 0; i < event.done; i++) {
      int64_t *expected = first ? &next : &step;
      ck_assert_int_eq(event.points[i].step, *expected);
      ck_assert(event.points[i].value == (double)(first ? next : -step));
      *expected += first ? 1 : 7;
    }
  }
  ck_assert_int_eq(next, 100000);
  ck_assert_int_eq(step, 100002);
  ck_assert_int_lt(events, 100000 / 20);
}
END_TEST

START_TEST(curves_as_text_without_unicode) {
  td_curve *train = td_curve_new("loss"), *validation = td_curve_new("val_loss");
  for (int i = 0; i < 5; i++) ck_assert(td_curve_add(train, i, i == 3 ? (double)NAN : 4 - i));
  ck_assert(td_curve_add(validation, 4, 2));
  td_text text = {0};
  td_chart_print(&text, (const td_curve *const[]){train, validation}, 2, 23, 7, &(td_chart_options){0});
  ck_assert_str_eq(text.data, "4 +****\n"
                              "  |   *****\n"
                              "2 +       ****        x\n"
                              "  |\n"
                              "0 +                   *\n"
                              "  ++---------+---!----+\n"
                              "   0         2        4\n"
                              "* loss: 5 points, last 0 at 4, least 0 at 4, most 4 at 0\n"
                              "x val_loss: 1 point, last 2 at 4, least 2 at 4, most 2 at 4\n"
                              "gap val_loss - loss: -0.25\n"
                              "! NaN at step 3\n");
  td_text_clear(&text);
  td_curve *empty = td_curve_new("none");
  td_chart_print(&text, (const td_curve *const[]){empty}, 1, 22, 5, &(td_chart_options){0});
  ck_assert_str_eq(text.data, " |\n |  no points\n |\n +--------------------\n\n* none: 0 points\n");
  td_text_clear(&text);
  td_curve_cut(train, 0);
  for (int i = 0; i < 1000; i++) ck_assert(td_curve_add(train, i, i == 900 ? -1 : pow(10, i / 250 + i % 2)));
  td_chart_print(&text, (const td_curve *const[]){train}, 1, 25, 7,
                 &(td_chart_options){.logarithmic = true, .mean = true});
  ck_assert_str_eq(text.data, "     |              *****\n"
                              "1000 +         *****\n"
                              " 100 +         *\n"
                              "     |    ******\n"
                              "  10 +*****           v\n"
                              "     ++--------+---------\n"
                              "      0       500\n"
                              "* loss: 1000 points, last 10000 at 999, least -1 at 900, most 10000 at 751\n"
                              "v 1 -inf or not above 0\n");
  td_text_clear(&text);
  td_curve_free(train);
  td_curve_free(validation);
  td_curve_free(empty);
}
END_TEST

START_TEST(input_is_asked_and_answered) {
  run("x = input('name? ')\nx * 2", 1);
  gathered g = gather("ab");
  ck_assert_int_eq(g.inputs, 1);
  ck_assert_str_eq(g.values.data, "'abab'\n");
  drop(&g);
  run("input()", 2);
  g = gather(NULL);
  ck_assert_ptr_nonnull(strstr(g.errors.data, "EOFError"));
  drop(&g);
  run("input()", 3);
  td_event event = {0};
  while (event.kind != TD_EVENT_INPUT) ck_assert(td_session_next(session, &event, 20000));
  td_session_interrupt(session);
  g = gather(NULL);
  ck_assert_int_eq(g.status, TD_RUN_INTERRUPTED);
  drop(&g);
  ck_assert(td_session_reply(session, "nobody asked"));
  expect_values("5", "5\n");
}
END_TEST

static void count(td_interpreter *I, void *argument) {
  (void)I;
  ++*(int *)argument;
}

START_TEST(questions_right_after_a_cell) {
  int asked = 0;
  ck_assert(td_session_ask(session, count, &asked));
  for (int i = 0; i < 200; i++) { // right after CELL_FINISHED, however early that is
    run("1", 2);
    gathered g = gather(NULL);
    drop(&g);
    ck_assert(td_session_ask(session, count, &asked));
  }
  ck_assert_int_eq(asked, 201);
}
END_TEST

START_TEST(a_session_is_stopped_while_it_runs) {
  run("while True: print('x')", 1);
  run("2", 2);
  pause_for(0.05);
  ck_assert(td_session_stop(session, 5000));
}
END_TEST

// ---- completion ----

static char *completed(const char *line, size_t *begin) { // "name name ", owned
  td_completion c = {.line = line, .length = strlen(line)};
  ck_assert(td_session_ask(session, td_complete, &c));
  td_text words = {0};
  for (int i = 0; i < c.count; i++) td_text_print(&words, "%s ", c.words[i]);
  if (begin) *begin = c.files ? SIZE_MAX : c.start;
  td_completion_clear(&c);
  return words.data ? td_text_take(&words) : td_memory_text("");
}

static void expect_completed(const char *line, const char *words) {
  char *got = completed(line, NULL);
  ck_assert_str_eq(got, words);
  td_memory_free(got);
}

START_TEST(completion_of_each_kind) {
  expect_values("def travel(steps, *, rate=1, ratio=2): pass\n"
                "class Thing:\n  def __init__(self): self.size = 1\n  def sized(self): pass\n"
                "thing = Thing(); thing.inner = Thing(); x = ones((2, 3)); data = {'a': 1}; été = 1",
                "");
  expect_completed("trave", "travel ");
  expect_completed("thing.si", "thing.size thing.sized ");
  expect_completed("thing.inner.siz", "thing.inner.size thing.inner.sized ");
  expect_completed("travel(1, rat", "rate= ratio= ");
  expect_completed("x.resha", "x.reshape ");
  expect_completed("x.shap", "x.shape ");
  expect_completed("mean(x, keepd", "keepdims= ");
  expect_completed("matmul(", "a= b= ");
  expect_completed("ét", "été ");
  expect_completed("%ti", "%time %timeit ");
  expect_values("plot('val_loss', 1); plot('val_mae', 1); plot('a b', 1); plot('loss', 1)", "");
  expect_completed("%plot loss val_", "val_loss val_mae ");
  expect_completed("%plot a", "");
  expect_completed("contin", "continue ");
  expect_completed("yiel", "");
  expect_completed("nothing.", "");
  expect_completed("1.", "");
  size_t begin;
  char *words = completed("load_csv(\"da", &begin);
  ck_assert_uint_eq(begin, SIZE_MAX);
  td_memory_free(words);
  words = completed("y = x.sh", &begin);
  ck_assert_uint_eq(begin, 4);
  td_memory_free(words);
}
END_TEST

START_TEST(completion_runs_no_code) {
  expect_values("class Counter:\n"
                "  n = 0\n"
                "  @property\n"
                "  def value(self):\n    Counter.n += 1\n    return self\n"
                "  def __getattr__(self, name):\n    Counter.n += 1\n    return 1\n"
                "obj = Counter(); w = Variable([[1., 2.]])\n"
                "tape = GradientTape(persistent=True); t = tape.__enter__()",
                "");
  for (int i = 0; i < 10; i++) {
    static const char *const lines[] = {"obj.", "obj.v", "obj.value.", "obj.missing.",  "w.",
                                        "w.T.", "w.T",   "obj.value(", "len(obj.value."};
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) td_memory_free(completed(lines[k], NULL));
  }
  expect_values("Counter.n", "0\n");
  run("%tape t", 9);
  gathered g = gather(NULL);
  ck_assert_msg(g.output.data && strncmp(g.output.data, "0 records", 9) == 0, "%s%s",
                g.output.data ? g.output.data : "", g.errors.data ? g.errors.data : "");
  drop(&g);
}
END_TEST

// ---- bars ----

static void expect_bar(td_bar bar, int columns, const char *line) {
  td_text text = {0};
  int used = td_bar_line(&bar, columns, false, &text);
  ck_assert_str_eq(text.data ? text.data : "", line);
  ck_assert_int_le(used, columns);
  td_text_clear(&text);
}

START_TEST(bars_as_text) {
  expect_bar((td_bar){.label = "epoch", .done = 50, .total = 100, .seconds = 5}, 60,
             "epoch   50% [=========          ] 50/100  10 it/s  0:05 left");
  expect_bar((td_bar){.label = "none", .total = 0}, 30, "none  100% [=============] 0/0");
  expect_bar((td_bar){.label = "unknown", .done = 7, .total = -1, .seconds = 14}, 60, "unknown  7  2.0 s/it  0:14");
  expect_bar((td_bar){.done = 100, .total = 100, .seconds = 4000}, 30, "100/100  40.0 s/it  in 1:06:40");
  expect_bar((td_bar){.label = "narrow", .done = 1, .total = 3, .seconds = 1}, 10, "narrow  1/");
  expect_bar((td_bar){.label = "x", .done = 0, .total = 3, .seconds = 9}, 12, "x  0/3");
  expect_bar((td_bar){.label = "a\033[31mb", .done = 1, .total = -1, .seconds = 1}, 40,
             "a\\x1b[31mb  1  1.0 it/s  0:01");
  expect_bar((td_bar){.label = "l", .postfix = "loss=1", .done = 3, .total = 3, .seconds = 1e-9}, 60,
             "l  100% [============] 3/3  3000000000 it/s  in 0:00  loss=1");
}
END_TEST

START_TEST(bars_fit_any_width) {
  for (int columns = 1; columns < 130; columns++)
    for (int64_t total = -1; total < 2000; total += 667)
      for (int64_t done = 0; done < 3000; done += 999) {
        td_bar bar = {.label = "日本語 label",
                      .postfix = "loss=0.5, añejo=é",
                      .done = done,
                      .total = total,
                      .seconds = (double)done / 7};
        td_text text = {0};
        int used = td_bar_line(&bar, columns, true, &text);
        ck_assert_int_le(used, columns);
        ck_assert_ptr_null(text.data ? strstr(text.data, "inf") : NULL);
        td_text_clear(&text);
      }
}
END_TEST

// ---- history ----

static char folder[] = "/tmp/tapedeck-history-XXXXXX";

static void make_folder(void) {
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  setenv("XDG_DATA_HOME", folder, 1);
  live = td_memory_live();
}

static void path_of(const char *name, char path[200]) {
  snprintf(path, 200, "%s/tapedeck%s%s", folder, *name ? "/" : "", name);
}

static void drop_folder(void) {
  char path[200];
  ck_assert_int_eq(td_memory_live(), live);
  path_of("history", path);
  unlink(path);
  path_of("", path);
  rmdir(path);
  rmdir(folder);
}

static void join(const char *cell, void *argument) { td_text_print(argument, "<%s>", cell); }

static void expect_history(const char *cells) {
  td_text got = {0};
  td_history_load(join, &got);
  ck_assert_str_eq(got.data ? got.data : "", cells);
  td_text_clear(&got);
}

static void write_history(const char *bytes, size_t length) {
  char path[200];
  path_of("", path);
  mkdir(path, 0700);
  path_of("history", path);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
  fclose(file);
}

START_TEST(cells_come_back_whole) {
  expect_history("");
  td_history_append("one");
  td_history_append("for i in x:\n\n  print(\"\\n\", i)\\");
  td_history_append("été");
  expect_history("<one><for i in x:\n\n  print(\"\\n\", i)\\><été>");
}
END_TEST

START_TEST(damage_is_skipped) {
  static const char bytes[] = "good\n\0bad\nal\0so\n\xff\xfe\n\nlast\ncut sho";
  write_history(bytes, sizeof bytes - 1);
  expect_history("<good><last>");
  td_history_append("new");
  expect_history("<good><last><cut sho><new>");
}
END_TEST

START_TEST(only_the_end_of_a_long_file_is_read) {
  td_text text = {0};
  for (int i = 0; i < 300000; i++) td_text_print(&text, "cell number %d\n", i);
  write_history(text.data, text.length);
  td_text_clear(&text);
  td_text got = {0};
  td_history_load(join, &got);
  ck_assert_int_eq(strncmp(got.data, "<cell number 295000>", 20), 0);
  ck_assert_str_eq(got.data + got.length - 20, "<cell number 299999>");
  td_text_clear(&got);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("notebook");
  TCase *decks = tcase_create("decks"), *sessions = tcase_create("sessions"), *bars = tcase_create("bars"),
        *history = tcase_create("history");
  suite_add_tcase(suite, decks);
  suite_add_tcase(suite, sessions);
  suite_add_tcase(suite, bars);
  suite_add_tcase(suite, history);
  tcase_add_test(decks, decks_are_cut_at_dividers);
  tcase_add_test(decks, prose_is_marked);
  tcase_add_checked_fixture(sessions, start, finish);
  tcase_set_timeout(sessions, 120);
  tcase_add_test(sessions, cells_run_in_order);
  tcase_add_test(sessions, an_interrupt_stops_the_running_cell);
  tcase_add_test(sessions, an_interrupt_between_cells_is_kept_or_forgotten);
  tcase_add_test(sessions, output_is_bounded_while_nobody_takes_it);
  tcase_add_test(sessions, output_comes_before_the_cell_ends);
  tcase_add_test(sessions, waiting_progress_is_replaced);
  tcase_add_test(sessions, bars_go_from_nothing_to_all);
  tcase_add_test(sessions, bars_of_fit_say_what_a_number_is);
  tcase_add_test(sessions, every_point_of_a_curve_comes_once);
  tcase_add_test(sessions, input_is_asked_and_answered);
  tcase_add_test(sessions, questions_right_after_a_cell);
  tcase_add_test(sessions, a_session_is_stopped_while_it_runs);
  tcase_add_test(sessions, completion_of_each_kind);
  tcase_add_test(sessions, completion_runs_no_code);
  tcase_add_test(bars, curves_as_text_without_unicode);
  tcase_add_test(bars, bars_as_text);
  tcase_add_test(bars, bars_fit_any_width);
  tcase_add_checked_fixture(history, make_folder, drop_folder);
  tcase_set_timeout(history, 60);
  tcase_add_test(history, cells_come_back_whole);
  tcase_add_test(history, damage_is_skipped);
  tcase_add_test(history, only_the_end_of_a_long_file_is_read);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
