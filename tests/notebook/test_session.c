// A session that stays alive while a cell runs: questions, pauses at step boundaries, cells beside a run, the queue.
// Times are bounds on a loaded machine.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/memory.h"
#include "repl/language/tensors.h"
#include "repl/notebook/complete.h"
#include "tests/notebook/sessions.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_for(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

static void run_with(const char *text, int cell, bool at_step) {
  td_run_options options = {.name = "cell", .echo_all = true, .cell = cell, .at_step = at_step};
  ck_assert(td_session_run(session, text, strlen(text), &options));
}

static void run(const char *text, int cell) { run_with(text, cell, false); }

// ---- events ----

typedef struct seen { // what came until the awaited event
  char values[2000], errors[2000], order[2000]; // order: "+1 -1 ": cells that began and ended
  int status;
  td_event last;
} seen;

static void add(char *to, size_t size, const char *format, ...) {
  va_list list;
  size_t length = strlen(to);
  va_start(list, format);
  vsnprintf(to + length, size - length, format, list);
  va_end(list);
}

static void note(seen *s, const td_event *event) {
  if (event->kind == TD_EVENT_VALUE) add(s->values, sizeof s->values, "%s;", event->text);
  if (event->kind == TD_EVENT_ERROR) add(s->errors, sizeof s->errors, "%s", event->text);
  if (event->kind == TD_EVENT_CELL_STARTED) add(s->order, sizeof s->order, "+%d ", event->cell);
  if (event->kind == TD_EVENT_CELL_FINISHED) add(s->order, sizeof s->order, "-%d ", event->cell);
  if (event->kind == TD_EVENT_CELL_DROPPED) add(s->order, sizeof s->order, "x%d ", event->cell);
  if (event->kind == TD_EVENT_CELL_FINISHED) s->status = event->status;
}

static seen await(int kind, int cell) { // cell 0: any
  seen s = {0};
  for (;;) {
    s.last = session_event();
    note(&s, &s.last);
    if (s.last.kind == kind && (!cell || s.last.cell == cell)) return s;
  }
}

static void expect_values(const char *text, const char *values) {
  static int cell = 1000;
  run(text, ++cell);
  seen s = await(TD_EVENT_CELL_FINISHED, cell);
  ck_assert_msg(strcmp(s.values, values) == 0, "%s gives %s, not %s %s", text, s.values, values, s.errors);
}

static void await_state(td_session_state state) {
  for (double end = now() + 30; td_session_get_state(session) != state;) {
    ck_assert_msg(now() < end, "the state stays %d, not %d", (int)td_session_get_state(session), (int)state);
    pause_for(0.001);
  }
}

// ---- questions ----

typedef struct number_report { td_payload payload; int64_t number; } number_report;

static int released;

static void release(td_payload *payload) {
  released++;
  td_memory_free(payload);
}

static td_payload *number_of(td_interpreter *I, const char *argument) { // an int of the session's
  td_str *name = td_str_intern(I, argument, strlen(argument));
  td_value v = td_module_get(I->main, name);
  td_unref(td_from(name));
  if (v.tag != TD_TAG_INT) return td_raise(I, TD_CLASS_NAME_ERROR, "no int is named %s", argument), NULL;
  number_report *report = td_memory_new(sizeof *report);
  *report = (number_report){{release, 77}, v.i};
  return &report->payload;
}

static int64_t number_now(const char *name, double *seconds) {
  static int32_t id;
  double begin = now();
  ck_assert(td_session_inquire(session, number_of, name, ++id));
  seen s = await(TD_EVENT_ANSWER, 0);
  *seconds = now() - begin;
  ck_assert_int_eq((int64_t)s.last.id, id);
  ck_assert_msg(s.last.payload, "%s", s.last.text ? s.last.text : "");
  return ((number_report *)s.last.payload)->number;
}

static void count(td_interpreter *I, void *argument) {
  (void)I;
  ++*(int *)argument;
}

static void expect_answers(const char *text, double bound) { // while text runs, which defines n first
  double seconds, longest = 0;
  int asked = 0, answered = 0;
  run(text, 1);
  await(TD_EVENT_CELL_STARTED, 1);
  pause_for(0.1);
  number_now("n", &seconds); // makes the thread that answers
  for (int i = 0; i < 20; i++) {
    number_now("n", &seconds);
    longest = seconds > longest ? seconds : longest;
    double begin = now();
    answered += td_session_ask(session, count, &asked);
    seconds = now() - begin;
    ck_assert_msg(seconds < slowness(), "ask took %g s", seconds);
  }
  ck_assert_int_eq(td_session_get_state(session), TD_SESSION_RUNNING);
  ck_assert_int_eq(asked, answered);
  ck_assert_int_ge(answered, 18);
  ck_assert_msg(longest < bound * slowness(), "the longest answer took %g s in: %s", longest, text);
  td_session_interrupt(session);
  seen s = await(TD_EVENT_CELL_FINISHED, 1);
  ck_assert_int_eq(s.status, TD_RUN_INTERRUPTED);
}

START_TEST(questions_are_answered_in_a_busy_loop) { expect_answers("n = 0\nwhile True: n += 1", 0.5); }
END_TEST
START_TEST(questions_are_answered_in_sleep) { expect_answers("import time\nn = 5\ntime.sleep(1000)", 0.5); }
END_TEST
START_TEST(questions_are_answered_in_kernels) {
  expect_answers("n = 7\na = randn(700, 700)\nwhile True: b = a @ a @ a @ a", 0.5);
}
END_TEST
START_TEST(questions_are_answered_in_training) {
  expect_answers("n = 7\nm = Sequential([Dense(64, 'relu'), Dense(1)])\nm.compile('adam', 'mse')\n"
                 "m.fit(randn(512, 8), randn(512, 1), epochs=100000, verbose=0)",
                 0.5);
}
END_TEST

START_TEST(answers_come_while_nothing_runs) {
  double seconds;
  expect_values("n = 12", "");
  ck_assert_int_eq(number_now("n", &seconds), 12);
  ck_assert(td_session_inquire(session, number_of, "absent", 5));
  seen s = await(TD_EVENT_ANSWER, 0);
  ck_assert_ptr_null(s.last.payload);
  ck_assert_ptr_nonnull(strstr(s.last.text, "no int is named absent"));
  ck_assert_int_eq(s.last.id, 5);
}
END_TEST

START_TEST(payloads_are_taken_or_released) {
  double seconds;
  expect_values("n = 12", "");
  released = 0;
  number_now("n", &seconds);
  td_payload *taken = td_session_take_payload(session);
  ck_assert_ptr_nonnull(taken);
  ck_assert_ptr_null(td_session_take_payload(session));
  number_now("n", &seconds);
  ck_assert_int_eq(released, 0);
  number_now("n", &seconds);
  ck_assert_int_eq(released, 1);
  taken->release(taken);
  ck_assert_int_eq(released, 2);
  for (int i = 0; i < 50; i++) ck_assert(td_session_inquire(session, number_of, "n", i)); // nobody takes these
  pause_for(0.05);
}
END_TEST

START_TEST(an_inquiry_replaces_one_that_waits) {
  expect_values("n = 1\nm = 2", "");
  ck_assert(td_session_inquire(session, number_of, "n", 1));
  await(TD_EVENT_ANSWER, 0);
  run("l = [0] * 3000000\nfor i in range(20): k = sorted(l, key=lambda x: -x)", 1); // no turn is given away in a sort
  await(TD_EVENT_CELL_STARTED, 1);
  for (int i = 0; i < 2000; i++) ck_assert(td_session_inquire(session, number_of, "m", 9));
  int answers = 0;
  td_event event;
  td_session_interrupt(session);
  do {
    ck_assert(td_session_next(session, &event, 60000));
    answers += event.kind == TD_EVENT_ANSWER;
  } while (event.kind != TD_EVENT_CELL_FINISHED);
  ck_assert_int_lt(answers, 2000);
}
END_TEST

START_TEST(completion_answers_in_training) {
  run("model = Sequential([Dense(4)])\nmodel.compile('sgd', 'mse')\n"
      "model.fit(randn(64, 3), randn(64, 4), epochs=1000000, verbose=0)",
      1);
  await(TD_EVENT_CELL_STARTED, 1);
  pause_for(0.3);
  td_completion c = {.line = "model.pred", .length = 10};
  bool ok = false;
  for (int i = 0; i < 20 && !ok; i++) ok = td_session_ask(session, td_complete, &c);
  ck_assert(ok);
  ck_assert_int_ge(c.count, 1);
  ck_assert_str_eq(c.words[0], "model.predict");
  td_completion_clear(&c);
  td_session_interrupt(session);
  await(TD_EVENT_CELL_FINISHED, 1);
}
END_TEST

static void expect_words(const char *line, const char *words, bool all) { // all: there are no others
  td_completion c = {.line = line, .length = strlen(line)};
  char got[2000] = "";
  ck_assert(td_session_ask(session, td_complete, &c));
  for (int i = 0; i < c.count && strlen(got) < 1900; i++) add(got, sizeof got, "%s ", c.words[i]);
  ck_assert_msg(strncmp(got, words, strlen(words)) == 0 && (!all || strlen(got) == strlen(words)), "%s: %s", line, got);
  td_completion_clear(&c);
}

START_TEST(arguments_come_first) {
  run("def f(zetsu, alpha, *, beta=1): pass\nclass C:\n  def __init__(self, zetsu, alpha): pass\n"
      "alphabet = 1\nalp = 2\nzet = 3", 1);
  await(TD_EVENT_CELL_FINISHED, 1);
  expect_words("f(", "zetsu= alpha= beta= ", true);
  expect_words("f(alph", "alpha= alpha_dropout alphabet ", true);
  expect_words("f(1, ", "alpha= beta= ", true);
  expect_words("f(beta=2, alpha=(1, 2), ", "zetsu= ", true);
  expect_words("f(1,\n  2, b", "beta= ", false);
  expect_words("f('(', \"a,\", ", "beta= ", true); // brackets and commas in strings are no brackets and commas
  expect_words("f(zet", "zetsu= zet zeta ", true);
  expect_words("f(1 + zet", "zet zeta ", true);
  expect_words("f(alpha=zet", "zet zeta ", true);
  expect_words("f([zet", "zet zeta ", true);
  expect_words("C(", "zetsu= alpha= ", true);
  expect_words("C(0, a", "alpha= ", false);
  expect_words("sum(x, ax", "axis= ", false);
  expect_words("f(C(alpha=1, ", "zetsu= ", true);
  expect_words("f(C(1), a", "alpha= ", false);
}
END_TEST

// ---- pause ----

static const char slow_loop[] =
    "import time\nn = 0\nfor i in progress(range(100000), 'slow'):\n  n += 1\n  time.sleep(0.01)";

static int64_t begin_loop(void) { // steps done
  run(slow_loop, 1);
  await(TD_EVENT_CELL_STARTED, 1);
  while (!td_session_pause(session)) pause_for(0.001);
  seen s = await(TD_EVENT_PAUSED, 1);
  ck_assert_int_eq(td_session_get_state(session), TD_SESSION_PAUSED);
  ck_assert_ptr_nonnull(strstr(s.last.text, "slow step "));
  ck_assert_str_eq(s.last.name, "slow");
  ck_assert_int_eq(s.last.total, 100000);
  return s.last.done;
}

START_TEST(a_loop_pauses_within_100_ms) {
  begin_loop();
  for (int i = 0; i < 5; i++) {
    ck_assert(td_session_resume(session));
    seen s = await(TD_EVENT_RESUMED, 1);
    ck_assert_int_eq(s.last.status, TD_RESUMED_ON);
    pause_for(0.05);
    double begin = now();
    ck_assert(td_session_pause(session));
    s = await(TD_EVENT_PAUSED, 1);
    ck_assert_msg(now() - begin < 0.1 * slowness(), "paused after %g s", now() - begin);
    ck_assert_int_gt(s.last.done, 1);
  }
  td_session_interrupt(session);
  seen s = await(TD_EVENT_RESUMED, 1);
  ck_assert_int_eq(s.last.status, TD_RESUMED_STOP);
  s = await(TD_EVENT_CELL_FINISHED, 1);
  ck_assert_int_eq(s.status, TD_RUN_INTERRUPTED);
  ck_assert_ptr_nonnull(strstr(s.errors, "KeyboardInterrupt"));
  expect_values("n > 5", "True;");
}
END_TEST

START_TEST(what_takes_no_steps_is_not_paused) {
  ck_assert(!td_session_pause(session)); // nothing runs
  ck_assert(!td_session_resume(session));
  ck_assert(!td_session_step(session));
  ck_assert(!td_session_stop_run(session));
  run("while True: pass", 1);
  await(TD_EVENT_CELL_STARTED, 1);
  pause_for(0.02);
  ck_assert(!td_session_pause(session));
  td_session_interrupt(session);
  await(TD_EVENT_CELL_FINISHED, 1);
  run("for i in progress(range(3)): pass\nfor i in progress(range(3)): pass\nwhile True: pass", 2);
  await(TD_EVENT_CELL_STARTED, 2);
  pause_for(1.3);
  ck_assert(!td_session_pause(session));
  td_session_interrupt(session);
  await(TD_EVENT_CELL_FINISHED, 2);
}
END_TEST

START_TEST(a_pause_that_meets_no_boundary_is_forgotten) {
  run("for i in progress(range(2)): pass\nimport time\ntime.sleep(0.4)", 1);
  pause_for(0.15);
  ck_assert(td_session_pause(session));
  await(TD_EVENT_CELL_FINISHED, 1);
  run("for i in progress(range(3)): pass\n5", 2);
  seen s = await(TD_EVENT_CELL_FINISHED, 2);
  ck_assert_str_eq(s.values, "5;");
  ck_assert_str_eq(s.order, "+2 -2 ");
}
END_TEST

START_TEST(steps_are_taken_one_by_one) {
  int64_t first = begin_loop();
  for (int i = 1; i < 6; i++) {
    char text[24];
    ck_assert(td_session_step(session));
    seen s = await(TD_EVENT_RESUMED, 1);
    ck_assert_int_eq(s.last.status, TD_RESUMED_STEP);
    s = await(TD_EVENT_PAUSED, 1);
    ck_assert_int_eq(s.last.done, first + i);
    snprintf(text, sizeof text, "%lld;", (long long)s.last.done);
    expect_values("n", text);
  }
  ck_assert(td_session_stop_run(session));
  await(TD_EVENT_CELL_FINISHED, 1);
}
END_TEST

START_TEST(cells_run_in_a_pause) {
  int64_t first = begin_loop();
  expect_values("import math\nx = n + 1\nx * 0 + 3", "3;");
  run("y = 1 / 0", 50);
  seen s = await(TD_EVENT_CELL_FINISHED, 50);
  ck_assert_int_eq(s.status, TD_RUN_FAILED);
  ck_assert_ptr_nonnull(strstr(s.errors, "ZeroDivisionError"));
  ck_assert_ptr_null(strstr(s.errors, "progress")); // the run's frames are no part of it
  ck_assert_int_eq(s.last.level, 1);
  run("while True: pass", 51);
  await_state(TD_SESSION_ASIDE);
  ck_assert(!td_session_pause(session));
  td_session_interrupt(session);
  s = await(TD_EVENT_CELL_FINISHED, 51);
  ck_assert_int_eq(s.status, TD_RUN_INTERRUPTED);
  ck_assert_int_eq(td_session_get_state(session), TD_SESSION_PAUSED);
  expect_values("for i in progress(range(5)): pass\ni", "4;");
  double seconds;
  ck_assert_int_eq(number_now("n", &seconds), first);
  int asked = 0;
  ck_assert(td_session_ask(session, count, &asked));
  expect_values("%stop", "");
  s = await(TD_EVENT_CELL_FINISHED, 1);
  ck_assert_int_eq(s.status, TD_RUN_INTERRUPTED);
  ck_assert_int_eq(s.last.level, 0);
}
END_TEST

START_TEST(commands_pause_resume_and_step) {
  run("for i in progress(range(6)):\n  if i == 2:\n    %pause\n  k = i\n'end'", 1);
  seen s = await(TD_EVENT_PAUSED, 1);
  ck_assert_int_eq(s.last.done, 3);
  expect_values("k", "2;");
  run("%step", 2);
  s = await(TD_EVENT_PAUSED, 1);
  ck_assert_int_eq(s.last.done, 4);
  expect_values("k", "3;");
  run("%resume", 3);
  s = await(TD_EVENT_CELL_FINISHED, 1);
  ck_assert_str_eq(s.values, "'end';");
  run("%resume", 4);
  s = await(TD_EVENT_CELL_FINISHED, 4);
  ck_assert_ptr_nonnull(strstr(s.errors, "nothing is paused"));
}
END_TEST

START_TEST(cells_run_at_a_step) {
  run("import time\nrate = 1\nsum = 0\nfor i in progress(range(10**9)):\n  sum += rate\n  time.sleep(0.005)", 1);
  await(TD_EVENT_CELL_STARTED, 1);
  pause_for(0.1);
  run_with("rate = 1000", 2, true);
  seen s = await(TD_EVENT_CELL_FINISHED, 2);
  ck_assert_int_eq(td_session_get_state(session), TD_SESSION_RUNNING);
  pause_for(0.1);
  run_with("%pause", 3, true);
  await(TD_EVENT_PAUSED, 1);
  expect_values("sum > 2000", "True;");
  ck_assert(td_session_resume(session));
  run_with("%stop", 4, true);
  s = await(TD_EVENT_CELL_FINISHED, 1);
  ck_assert_int_eq(s.status, TD_RUN_INTERRUPTED);
  run_with("7", 5, true); // nothing runs
  s = await(TD_EVENT_CELL_FINISHED, 5);
  ck_assert_str_eq(s.values, "7;");
  run("import time\ntime.sleep(0.3)", 6); // no boundary
  run_with("8", 7, true);
  s = await(TD_EVENT_CELL_FINISHED, 7);
  ck_assert_str_eq(s.order, "+6 -6 +7 -7 ");
}
END_TEST

START_TEST(cells_wait_in_order_and_are_dropped) {
  run("import time\ntime.sleep(1000)", 1);
  await(TD_EVENT_CELL_STARTED, 1);
  for (int i = 2; i < 6; i++) run("1", i);
  ck_assert_int_eq(td_session_queued(session), 4);
  ck_assert_int_eq(td_session_drop_queued(session), 4);
  ck_assert_int_eq(td_session_queued(session), 0);
  run("2", 6);
  run("3", 7);
  td_session_interrupt(session);
  seen s = await(TD_EVENT_CELL_FINISHED, 7);
  ck_assert_str_eq(s.order, "x2 x3 x4 x5 -1 +6 -6 +7 -7 ");
  ck_assert_str_eq(s.values, "2;3;");
  begin_loop();
  ck_assert(td_session_resume(session));
  run("n > 0", 8); // waits for the end of the loop, not for a pause
  ck_assert(td_session_pause(session));
  await(TD_EVENT_PAUSED, 1);
  expect_values("1", "1;");
  ck_assert_int_eq(td_session_queued(session), 1);
  td_session_interrupt(session);
  s = await(TD_EVENT_CELL_FINISHED, 8);
  ck_assert_str_eq(s.order, "-1 +8 -8 ");
}
END_TEST

START_TEST(a_paused_session_ends) {
  begin_loop();
  run("while True: pass", 5);
  ck_assert(td_session_stop(session, 10000));
}
END_TEST

START_TEST(input_in_a_pause) {
  begin_loop();
  run("input('who? ')", 9);
  await(TD_EVENT_INPUT, 9);
  int asked = 0;
  ck_assert(td_session_ask(session, count, &asked));
  ck_assert(td_session_reply(session, "me"));
  seen s = await(TD_EVENT_CELL_FINISHED, 9);
  ck_assert_str_eq(s.values, "'me';");
  td_session_stop_run(session);
  await(TD_EVENT_CELL_FINISHED, 1);
}
END_TEST

// ---- a run that was looked at is the same run ----

#define MODEL \
  "seed(4)\nx, y = randn(256, 6), randn(256, 1)\n" \
  "m = Sequential([Dense(16, 'relu'), Dropout(0.3), BatchNormalization(), Dense(1)])\n" \
  "m.compile(Adam(0.01), 'mse', metrics=['mae'])\n" \
  "h = m.fit(x, y, epochs=4, batch_size=16, verbose=0, validation_data=(x, y))\n" \
  "r = rand(3)\n"
static const char sums[] = "str([w.numpy().tolist() for w in m.variables]) + str(h.history) + str(r.tolist())";

static const char *const looks[] = {
    "randn(5).sum().item() < 1000", "m.predict(x[:3]).shape", "m(x[:4]).shape",
    ("with GradientTape() as t: l = (m(x[:8]) ** 2).mean()\n"
     "len([g for g in t.gradient(l, m.trainable_variables) if g is not None])"),
    "1 / 0", "shuffled = list(Dataset(x, y).shuffle(256).batch(64))\nlen(shuffled)", "get_random_state()[0]",
    "[w.name for w in m.variables][0]", "%whos", "m.evaluate(x, y, verbose=0)", "%step",
    "for i in progress(range(3)): rand(2)"};

START_TEST(a_run_that_was_looked_at_is_the_same) {
  char *expected;
  run(MODEL, 1);
  await(TD_EVENT_CELL_FINISHED, 1);
  run(sums, 2);
  seen s = {0};
  td_text value = {0};
  for (td_event event = {0}; event.kind != TD_EVENT_CELL_FINISHED;) {
    ck_assert(td_session_next(session, &event, 60000));
    if (event.kind == TD_EVENT_VALUE) td_text_add(&value, event.text);
    note(&s, &event);
  }
  expected = td_text_take(&value);
  ck_assert_msg(expected, "%s", s.errors);
  run(MODEL, 3);
  int cell = 100, pauses = 0;
  for (td_event event = {0}; !(event.kind == TD_EVENT_CELL_FINISHED && event.cell == 3);) {
    if (td_session_get_state(session) == TD_SESSION_RUNNING) td_session_pause(session);
    if (!td_session_next(session, &event, 2)) continue;
    if (event.kind != TD_EVENT_PAUSED) continue;
    pauses++;
    for (int i = 0; i < 2; i++) {
      const char *look = looks[cell % (int)(sizeof looks / sizeof *looks)];
      if (look[0] == '%' && look[1] == 's') continue;
      run(look, ++cell);
      await(TD_EVENT_CELL_FINISHED, cell);
    }
    cell++;
    if (cell % 3) td_session_resume(session);
    else td_session_step(session);
  }
  ck_assert_int_gt(pauses, 8);
  run(sums, 4);
  for (td_event event = {0}; event.kind != TD_EVENT_CELL_FINISHED;) {
    ck_assert(td_session_next(session, &event, 60000));
    if (event.kind == TD_EVENT_VALUE) td_text_add(&value, event.text);
  }
  size_t same = 0;
  while (value.data[same] && value.data[same] == expected[same]) same++;
  ck_assert_msg(!value.data[same] && !expected[same], "other after %zu characters: %.40s, not %.40s", same,
                value.data + same, expected + same);
  td_text_clear(&value);
  td_memory_free(expected);
}
END_TEST

START_TEST(tapes_do_not_see_a_pause) {
  const char text[] = "seed(1)\nw = Variable(randn(3))\n"
                      "with GradientTape(persistent=True) as t:\n  l = 0.\n"
                      "  for i in progress(range(4)):\n    if i == 2:\n      %pause\n"
                      "    l = l + (w * w).sum() * rand(1).sum()\n"
                      "g = t.gradient(l, w).tolist()";
  char records[64];
  run(text, 1);
  await(TD_EVENT_PAUSED, 1);
  td_session_resume(session);
  await(TD_EVENT_CELL_FINISHED, 1);
  expect_values("old = g\nimport time", "");
  run("%tape t", 2);
  td_event event = {0};
  while (event.kind != TD_EVENT_OUTPUT) ck_assert(td_session_next(session, &event, 60000));
  snprintf(records, sizeof records, "%.10s", event.text);
  await(TD_EVENT_CELL_FINISHED, 2);
  run(text, 3);
  await(TD_EVENT_PAUSED, 3);
  expect_values("a = (w * 3).sum() + rand(7).sum()\nwith GradientTape() as u: b = (w * w).sum()\n"
                "u.gradient(b, w).tolist() == (w * 2).tolist()",
                "True;");
  td_session_resume(session);
  await(TD_EVENT_CELL_FINISHED, 3);
  expect_values("g == old", "True;");
  run("%tape t", 4);
  for (event.kind = 0; event.kind != TD_EVENT_OUTPUT;) ck_assert(td_session_next(session, &event, 60000));
  ck_assert_int_eq(strncmp(event.text, records, 10), 0);
  await(TD_EVENT_CELL_FINISHED, 4);
}
END_TEST

START_TEST(the_random_state_is_the_runs_when_a_cell_sets_it) {
  run("seed(1)\nfor i in progress(range(2)):\n  if i == 0:\n    %pause\nrand(1).item()", 1);
  await(TD_EVENT_PAUSED, 1);
  expect_values("a = rand(1).item()\nb = rand(1).item()\na != b", "True;");
  td_session_resume(session);
  seen s = await(TD_EVENT_CELL_FINISHED, 1);
  expect_values("seed(1)\nrand(1).item()", s.values);
  run("seed(1)\nfor i in progress(range(2)):\n  if i == 0:\n    %pause\nrand(1).item()", 2);
  await(TD_EVENT_PAUSED, 2);
  expect_values("seed(9)", "");
  td_session_resume(session);
  s = await(TD_EVENT_CELL_FINISHED, 2);
  expect_values("seed(9)\nrand(1).item()", s.values);
}
END_TEST

// ---- anything in any order ----

static const char *const cells[] = {
    "1", "x = 1", "1 / 0", "for i in progress(range(30)): pass", "print('a' * 100)", "import time\ntime.sleep(0.002)",
    "%pause", "%resume", "%step", "%stop", "import time\nfor i in progress(range(20)): time.sleep(0.0005)",
    "rand(200, 200).sum().item()", "for i in progress(range(3)):\n  %pause"};

static int pending(int *open, const td_event *event) {
  if (event->kind == TD_EVENT_CELL_FINISHED || event->kind == TD_EVENT_CELL_DROPPED) --*open;
  return *open;
}

START_TEST(a_thousand_random_operations) {
  int open = 0, asked = 0;
  td_event event;
  srand(7);
  for (int i = 0; i < 1000; i++) {
    switch (rand() % 12) {
    case 0: case 1: case 2:
      if (open < 20) run_with(cells[(unsigned)rand() % (sizeof cells / sizeof *cells)], i + 1, rand() % 2), open++;
      break;
    case 3: td_session_pause(session); break;
    case 4: td_session_resume(session); break;
    case 5: td_session_step(session); break;
    case 6: if (rand() % 4 == 0) td_session_stop_run(session); break;
    case 7: if (rand() % 4 == 0) td_session_interrupt(session); break;
    case 8: td_session_inquire(session, number_of, rand() % 2 ? "x" : "y", rand() % 5); break;
    case 9: td_session_ask(session, count, &asked); break;
    case 10: if (rand() % 8 == 0) td_session_drop_queued(session); break;
    default: while (rand() % 8 && td_session_next(session, &event, 1)) pending(&open, &event);
    }
    td_session_get_state(session);
  }
  for (double end = now() + 60; open > 0;) {
    ck_assert_msg(now() < end, "%d cells never ended, state %d", open, (int)td_session_get_state(session));
    if (td_session_get_state(session) == TD_SESSION_PAUSED) td_session_resume(session);
    if (td_session_next(session, &event, 5)) pending(&open, &event);
  }
  ck_assert_int_eq(open, 0);
  td_session_forget_interrupt(session);
  expect_values("3", "3;");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session");
  TCase *questions = tcase_create("questions"), *pauses = tcase_create("pauses"), *same = tcase_create("same");
  TCase *const all[] = {questions, pauses, same};
  for (int i = 0; i < 3; i++) {
    suite_add_tcase(suite, all[i]);
    tcase_add_checked_fixture(all[i], session_start, session_finish);
    tcase_set_timeout(all[i], 240);
  }
  tcase_add_test(questions, questions_are_answered_in_a_busy_loop);
  tcase_add_test(questions, questions_are_answered_in_sleep);
  tcase_add_test(questions, questions_are_answered_in_kernels);
  tcase_add_test(questions, questions_are_answered_in_training);
  tcase_add_test(questions, answers_come_while_nothing_runs);
  tcase_add_test(questions, payloads_are_taken_or_released);
  tcase_add_test(questions, an_inquiry_replaces_one_that_waits);
  tcase_add_test(questions, completion_answers_in_training);
  tcase_add_test(questions, arguments_come_first);
  tcase_add_test(pauses, a_loop_pauses_within_100_ms);
  tcase_add_test(pauses, what_takes_no_steps_is_not_paused);
  tcase_add_test(pauses, a_pause_that_meets_no_boundary_is_forgotten);
  tcase_add_test(pauses, steps_are_taken_one_by_one);
  tcase_add_test(pauses, cells_run_in_a_pause);
  tcase_add_test(pauses, commands_pause_resume_and_step);
  tcase_add_test(pauses, cells_run_at_a_step);
  tcase_add_test(pauses, cells_wait_in_order_and_are_dropped);
  tcase_add_test(pauses, a_paused_session_ends);
  tcase_add_test(pauses, input_in_a_pause);
  tcase_add_test(same, a_run_that_was_looked_at_is_the_same);
  tcase_add_test(same, tapes_do_not_see_a_pause);
  tcase_add_test(same, the_random_state_is_the_runs_when_a_cell_sets_it);
  tcase_add_test(same, a_thousand_random_operations);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
