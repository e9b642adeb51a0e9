// See tapes.h.
#include "tests/engine/tapes.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

td_context *context;
static int64_t live_before;
int warnings;
char warning[400];
static td_tensor *kept[512]; // dropped at the end of a test
static int kept_count;

static void hear(void *owner, const char *message) {
  (void)owner;
  warnings++;
  snprintf(warning, sizeof warning, "%s", message);
}

static void describe(void *owner, td_place place, char *buffer, int size) {
  (void)owner;
  snprintf(buffer, (size_t)size, "line %d", (int)place);
}

static void start(void) {
  live_before = td_memory_live();
  context = td_context_new(1);
  context->warn = hear;
  context->describe = describe;
  warnings = kept_count = 0;
}

void forget(void) {
  while (kept_count) td_tensor_unref(kept[--kept_count]);
}

static void finish(void) {
  forget();
  td_tapes_free(context);
  td_context_free(context);
  ck_assert_int_eq(td_memory_live(), live_before);
  ck_assert_int_eq(td_variable_count(), 0);
}

// ---- short names for what every test does ----

td_tensor *keep(td_tensor *t) {
  ck_assert_ptr_nonnull(t);
  return kept[kept_count++] = t;
}

td_tensor *number(double value) { return keep(td_tensor_from_float(context, value, TD_FLOAT32)); }

td_tensor *row(int count, const double *values) {
  td_tensor *t = keep(td_tensor_new(context, TD_FLOAT32, 1, (int64_t[]){count}));
  for (int i = 0; i < count; i++) ((float *)t->data)[i] = (float)values[i];
  return t;
}

td_tensor *apply(const char *name, td_tensor *a, td_tensor *b) { // at the next line
  td_tensor *in[2] = {a, b}, *out[TD_OUTPUT_MAX];
  const td_op *op = td_op_find(name);
  ck_assert_ptr_nonnull(op);
  context->place++;
  ck_assert_int_eq(td_op_apply(context, op, in, b ? 2 : 1, NULL, out), TD_OK);
  return keep(out[0]);
}

td_tensor *multiply(td_tensor *a, td_tensor *b) { return apply("multiply", a, b); }
td_tensor *add(td_tensor *a, td_tensor *b) { return apply("add", a, b); }

td_tape *tape_on(bool persistent) {
  td_tape *tape = td_tape_new(context, persistent, true);
  ck_assert_int_eq(td_tape_open(context, tape), TD_OK);
  return tape;
}

void watch(td_tape *tape, td_tensor *t) { ck_assert_int_eq(td_tape_watch(context, tape, t), TD_OK); }

td_variable *variable(double value, const char *name) {
  td_tensor *t = td_tensor_from_float(context, value, TD_FLOAT32);
  td_variable *v = td_variable_new(context, t, name, true);
  td_tensor_unref(t);
  return v;
}

td_tensor *value_of(td_variable *v) { return keep(td_variable_read(context, v)); }

int ask(td_tape *tape, td_tensor *target, td_tensor *x, td_variable *v, td_tensor **gradient) {
  return td_tape_gradient(context, tape, &target, 1, NULL, &(td_source){x, v}, 1, false, gradient);
}

td_tensor *gradient(td_tape *tape, td_tensor *target, td_tensor *x) { // NULL: None
  td_tensor *g;
  ck_assert_msg(ask(tape, target, x, NULL, &g) == TD_OK, "%s", context->error.message);
  return g ? keep(g) : NULL;
}

td_tensor *gradient_in(td_tape *tape, td_tensor *target, td_variable *v) {
  td_tensor *g;
  ck_assert_msg(ask(tape, target, NULL, v, &g) == TD_OK, "%s", context->error.message);
  return g ? keep(g) : NULL;
}

double at(const td_tensor *t, int64_t index) {
  ck_assert_ptr_nonnull(t);
  return td_tensor_get_float(t, index);
}

void done(td_tape *tape) { td_tape_unref(context, tape); }

void expect_why(td_tape *tape, td_tensor *x, td_variable *v, const char *part, const char *line) {
  td_text text = {0};
  ck_assert_int_eq(td_tape_why(context, tape, &(td_source){x, v}, &text), TD_OK);
  ck_assert_ptr_nonnull(text.data);
  ck_assert_msg(strstr(text.data, part) && strstr(text.data, line), "\"%s\" lacks \"%s\" or \"%s\"", text.data, part,
                line);
  td_text_clear(&text);
}

int tapes_run(const char *name, const TTest *const *tests, int count) {
  struct rlimit small;
  getrlimit(RLIMIT_STACK, &small);
  small.rlim_cur = 256 << 10; // of this process from here on, and of each forked test
  setrlimit(RLIMIT_STACK, &small);
  Suite *suite = suite_create(name);
  TCase *all = tcase_create(name);
  tcase_add_checked_fixture(all, start, finish);
  tcase_set_timeout(all, 120);
  for (int i = 0; i < count; i++) tcase_add_test(all, tests[i]);
  suite_add_tcase(suite, all);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
