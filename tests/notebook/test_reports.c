// What panes show: the session's names and Variables, tapes and their records, help, as copied data.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/memory.h"
#include "repl/notebook/report_tape.h"
#include "repl/notebook/report_variables.h"
#include "tests/notebook/sessions.h"

static void await(int kind, td_event *event) {
  do {
    *event = session_event();
    if (event->kind == TD_EVENT_ERROR) ck_abort_msg("%s", event->text);
  } while (event->kind != kind);
}

static void begin(const char *text) {
  td_run_options options = {.name = "cell", .echo_all = true, .cell = 1};
  ck_assert(td_session_run(session, text, strlen(text), &options));
}

static void run(const char *text) {
  td_event event;
  begin(text);
  await(TD_EVENT_CELL_FINISHED, &event);
}

static double took; // seconds, of the last report

static td_payload *report(td_inquiry *make, const char *argument) { // lives until the next event is asked for
  td_event event;
  ck_assert(td_session_inquire(session, make, argument, 1));
  await(TD_EVENT_ANSWER, &event);
  took = event.seconds;
  ck_assert_msg(event.payload, "%s", event.text);
  return event.payload;
}

static const td_variable_row *row_of(const td_report_variables *r, const char *path) {
  for (int64_t i = 0; i < r->count; i++)
    if (strcmp(r->rows[i].path, path) == 0) return &r->rows[i];
  char paths[2000] = "";
  for (int64_t i = 0; i < r->count && strlen(paths) < 1800; i++) {
    strcat(paths, r->rows[i].path);
    strcat(paths, " ");
  }
  ck_abort_msg("no row %s among %s", path, paths);
}

static const td_variable_row *variable(const char *argument, const char *path) {
  return row_of((td_report_variables *)report(td_report_variables_make, argument), path);
}

// ---- variables ----

START_TEST(names_and_what_they_hold) {
  run("n = 3\ns = 'a' * 1000\nt = tensor([3., 0., 4.])\nw = Variable([1., nan, 2.], name='w')\nl = [1, 'b']\n"
      "_hidden = 1\ni = tensor([[1, 2], [3, 4]])\n"
      "class A:\n  def __repr__(self): return 1 / 0\na = A()\na.inner = [w]");
  const td_report_variables *r = (td_report_variables *)report(td_report_variables_make, "");
  ck_assert(r->complete);
  ck_assert_int_eq(r->payload.kind, TD_REPORT_VARIABLES);
  const td_variable_row *row = row_of(r, "n");
  ck_assert_str_eq(row->type, "int");
  ck_assert_str_eq(row->value, "3");
  ck_assert_int_eq(row->bytes, -1);
  ck_assert_int_lt(strlen(row_of(r, "s")->value), 70);
  row = row_of(r, "t");
  ck_assert_str_eq(row->shape, "[3]");
  ck_assert_str_eq(row->dtype, "float32");
  ck_assert_str_eq(row->device, "cpu");
  ck_assert_str_eq(row->value, "[3, 0, 4]");
  ck_assert_int_eq(row->bytes, 12);
  ck_assert_int_eq(row->elements, 3);
  ck_assert_int_eq(row->nans, 0);
  ck_assert(row->norm == 5);
  ck_assert_double_eq_tol(row->zeros, 1. / 3, 1e-12);
  ck_assert(isnan(row->gradient_norm));
  row = row_of(r, "w");
  ck_assert(row->trainable);
  ck_assert_int_eq(row->nans, 1);
  ck_assert(isnan(row->norm));
  row = row_of(r, "i");
  ck_assert_int_eq(row->nans, -1);
  ck_assert_str_eq(row->value, "[1, 2, 3, 4]");
  ck_assert_str_eq(row_of(r, "l")->value, "[1, 'b']");
  ck_assert_str_eq(row_of(r, "a")->value, "<A>");
  for (int64_t k = 0; k < r->count; k++) ck_assert_str_ne(r->rows[k].path, "_hidden");
  ck_assert_int_ge(variable("a", "a/inner/0")->depth, 1); // where all is listed it stands as w alone
}
END_TEST

START_TEST(variables_inside_models_and_optimizers) {
  run("m = Sequential([Dense(4, 'relu', name='first'), Dense(1, name='last')])\nopt = Adam(0.01)\n"
      "m.compile(opt, 'mse')\nx, y = randn(32, 3), randn(32, 1)\nm(x).shape");
  const td_variable_row *row = variable("m", "m/first/kernel");
  ck_assert_str_eq(row->shape, "[3, 4]");
  ck_assert(row->trainable && row->norm > 0 && isnan(row->update_ratio));
  run("m.fit(x, y, epochs=1, verbose=0)"); // watched by now
  row = variable("m", "m/last/kernel");
  ck_assert_msg(row->gradient_norm > 0 && row->update_ratio > 0, "%g %g", row->gradient_norm, row->update_ratio);
  ck_assert(row->update_ratio < 1);
  const td_report_variables *r = (td_report_variables *)report(td_report_variables_make, "opt");
  int slots = 0;
  for (int64_t i = 0; i < r->count; i++) slots += strncmp(r->rows[i].path, "opt/slots/", 10) == 0;
  ck_assert_int_eq(slots, 8);
  r = (td_report_variables *)report(td_report_variables_make, "");
  row_of(r, "m/first/bias");
  row_of(r, "opt");
  slots = 0;
  for (int64_t i = 0; i < r->count; i++) slots += r->rows[i].slot;
  ck_assert_int_eq(slots, 8); // each once, though m has the optimizer too
  for (int64_t i = 0; i < r->count; i++) ck_assert_msg(!strstr(r->rows[i].path, "m/optimizer"), "%s", r->rows[i].path);
}
END_TEST

START_TEST(one_path_for_each_variable) {
  run("class Net(Layer):\n  def __init__(self):\n    super().__init__()\n"
      "    self.block = Sequential([Dense(2, name='d')])\n"
      "  def call(self, x): return self.block(x)\nnet = Net()\nnet(randn(3, 4)).shape\nopt = Adam(net.parameters())\n"
      "inner = net.block\nk = inner.variables[1]");
  const td_report_variables *r = (td_report_variables *)report(td_report_variables_make, "");
  int variables = 0;
  for (int64_t i = 0; i < r->count; i++) variables += strcmp(r->rows[i].type, "Variable") == 0;
  ck_assert_int_eq(variables, 2);
  row_of(r, "inner/d/kernel"); // shorter than net's, and no position in an optimizer's list
  row_of(r, "k");
}
END_TEST

START_TEST(one_value) {
  run("w = Variable([[1., 2., 3.], [4., 5., nan]])\nclass M:\n  pass\nm = M()\nm.inner = {'w': w}\n");
  const td_report_variable *r = (td_report_variable *)report(td_report_variable_make, "m/inner/w");
  ck_assert_str_eq(r->type, "float32[2, 3]");
  ck_assert_str_eq(r->gradient, "");
  ck_assert(r->values.nans == 1 && r->values.elements == 6 && r->values.most == 5);
  run("with GradientTape() as t:\n  y = sum(w[:, :2] ** 2)\ng = t.gradient(y, w)"); // watched since
  r = (td_report_variable *)report(td_report_variable_make, "m/inner/w");
  ck_assert_msg(strstr(r->gradient, "10"), "%s", r->gradient);
  ck_assert_int_eq(r->units, 3);
  ck_assert_int_eq(r->dead, 1);
  ck_assert(r->gradients.most == 10);
  r = (td_report_variable *)report(td_report_variable_make, "m");
  ck_assert_str_eq(r->type, "M");
  ck_assert_int_eq(r->values.elements, 0);
}
END_TEST

START_TEST(gradients_of_tapes_and_of_backward) {
  run("w = Variable([3., 4.])\nv = Variable([1.], name='v')");
  variable("", "w");
  run("with GradientTape() as t: l = (w * w).sum()\ng = t.gradient(l, w)");
  ck_assert_double_eq_tol(variable("", "w")->gradient_norm, 10, 1e-5);
  run("v.requires_grad = True\n(v * 3.).sum().backward()");
  ck_assert_double_eq_tol(variable("", "v")->gradient_norm, 3, 1e-6);
}
END_TEST

START_TEST(a_large_session_is_reported_in_time) {
  run("big = randn(4000, 1000)\nmany = [Variable(randn(50, 50)) for i in range(3000)]\nnumbers = list(range(2000000))");
  const td_variable_row *row = variable("", "big");
  ck_assert(row->sampled);
  ck_assert_double_eq_tol(row->norm, 2000, 100);
  report(td_report_variables_make, "");
  ck_assert_msg(took < 0.2 * slowness(), "took %g s", took); // on a loaded machine
  report(td_report_variables_make, "numbers");
}
END_TEST

// ---- tapes ----

static const td_report_tape *tape(const char *argument) {
  return (td_report_tape *)report(td_report_tape_make, argument);
}

START_TEST(a_tape_as_rows) {
  run("w = Variable([1., 2.], name='w')\nx = tensor([0., 3.])\nwith GradientTape(persistent=True) as t:\n  y = w * x\n"
      "  z = log(y)\n  l = z.sum()\n  u = exp(w)\nt.gradient(l, w)");
  const td_report_tape *r = tape("t");
  ck_assert_int_eq(r->record_count, 4);
  ck_assert_int_eq(r->count, 5);
  ck_assert_str_eq(r->title, "t");
  ck_assert(!r->open && !r->spent && r->complete);
  const td_tape_row *multiply = &r->rows[0], *logarithm = &r->rows[1], *sum = &r->rows[2], *other = &r->rows[3],
                    *leaf = &r->rows[4];
  ck_assert_str_eq(r->texts + multiply->op, "multiply");
  ck_assert_int_eq(multiply->input_count, 2);
  ck_assert_int_eq(r->inputs[multiply->first_input], 4);
  ck_assert_int_eq(r->inputs[multiply->first_input + 1], -1);
  ck_assert_int_eq(r->inputs[logarithm->first_input], 0);
  ck_assert_int_eq(r->inputs[sum->first_input], 1);
  ck_assert_int_eq(multiply->rank, 1);
  ck_assert_int_eq(r->shapes[multiply->shape], 2);
  ck_assert_int_eq(sum->rank, 0);
  ck_assert_str_eq(r->texts + r->sources[multiply->source].text, "y = w * x");
  ck_assert_int_eq(r->sources[multiply->source].line, 4);
  ck_assert_str_eq(r->texts + r->sources[multiply->source].name, "cell");
  ck_assert(sum->flags & TD_TAPE_ROW_VISITED && multiply->flags & TD_TAPE_ROW_VISITED);
  ck_assert(!(other->flags & TD_TAPE_ROW_VISITED));
  ck_assert(leaf->flags & TD_TAPE_ROW_LEAF);
  ck_assert_str_eq(r->texts + leaf->op, "w");
  ck_assert(sum->flags & TD_TAPE_ROW_KEPT);
  ck_assert_int_gt(r->bytes, 0);
}
END_TEST

START_TEST(the_first_nan_of_a_tape) {
  run("w = Variable([1., 0.])\nwith GradientTape(persistent=True) as t:\n  a = w * 2.\n  b = log(a)\n  c = b * b\n"
      "  d = (c * w).sum()");
  const td_report_tape *r = tape("");
  ck_assert_str_eq(r->title, "t");
  ck_assert(!(r->rows[0].flags & (TD_TAPE_ROW_NAN | TD_TAPE_ROW_INFINITE)));
  ck_assert(r->rows[1].flags & TD_TAPE_ROW_INFINITE && r->rows[1].flags & TD_TAPE_ROW_FIRST);
  ck_assert(!(r->rows[2].flags & TD_TAPE_ROW_FIRST));
}
END_TEST

START_TEST(one_record) {
  run("w = Variable([1., 2., 4.], name='w')\nwith GradientTape(persistent=True) as t:\n  y = exp(w)\n"
      "  z = y.sum(axis=0, keepdims=True)");
  const td_report_record *r = (td_report_record *)report(td_report_record_make, "1 t");
  ck_assert_str_eq(r->op, "sum");
  ck_assert_ptr_nonnull(strstr(r->arguments, "axis=(0,)"));
  ck_assert_ptr_nonnull(strstr(r->arguments, "keepdims=True"));
  ck_assert_str_eq(r->shape, "float32[1]");
  ck_assert_str_eq(r->source, "z = y.sum(axis=0, keepdims=True)");
  r = (td_report_record *)report(td_report_record_make, "0 t");
  ck_assert_str_eq(r->op, "exp");
  ck_assert_ptr_nonnull(strstr(r->value, "2.718"));
  ck_assert_int_eq(r->values.elements, 3);
  ck_assert_double_eq_tol(r->values.most, 54.598, 1e-2);
  int64_t all = 0;
  for (int i = 0; i < TD_HISTOGRAM_BINS; i++) all += r->values.count[i];
  ck_assert_int_eq(all, 3);
  r = (td_report_record *)report(td_report_record_make, "2 t");
  ck_assert_str_eq(r->op, "w");
  ck_assert_double_eq_tol(r->values.mean, 7. / 3, 1e-6);
  td_event event;
  for (int i = 0; i < 3; i++) {
    ck_assert(td_session_inquire(session, td_report_record_make, (const char *[]){"3 t", "-1 t", "0 nothing"}[i], 1));
    await(TD_EVENT_ANSWER, &event);
    ck_assert_ptr_null(event.payload);
    ck_assert_str_ne(event.text, "");
  }
}
END_TEST

START_TEST(gradients_on_the_tape) {
  run("w = Variable([3., 4.])\nwith GradientTape(persistent=True) as t:\n  y = (w * w * 0.5).sum()");
  ck_assert(tape("t")->rows[0].gradient < 0 && tape("t")->rows[3].gradient < 0); // no pass yet
  run("g = t.gradient(y, w)");
  const td_report_tape *r = tape("t");
  ck_assert_int_eq(r->record_count, 3);
  ck_assert_double_eq_tol(r->rows[2].gradient, 1, 1e-6);
  ck_assert_double_eq_tol(r->rows[1].gradient, 1.41421, 1e-4);
  ck_assert_double_eq_tol(r->rows[0].gradient, 0.70711, 1e-4);
  ck_assert_double_eq_tol(r->rows[3].gradient, 5, 1e-6); // the Variable's
}
END_TEST

START_TEST(gradients_are_there_when_somebody_comes) { // of the last of many passes that nobody looked at
  run("w = Variable([3., 4.])\nv = Variable(ones((100, 100)))\nx = ones(3)\n"
      "for i in range(1, 301):\n  with GradientTape() as t:\n    t.watch(x)\n    y = (w * i).sum()\n"
      "    z = (tanh(v * 0.) + v * i).sum() + (x * 2. * i).sum()\n"
      "  g = t.gradient([y, z], [w, v, x])");
  const td_variable_row *row = variable("", "w");
  ck_assert(!row->gradient_glanced);
  ck_assert_double_eq_tol(row->gradient_norm, 300 * 1.41421356, 1e-2);
  row = variable("", "v");
  ck_assert_double_eq_tol(row->gradient_norm, 30000, 1);
  const td_report_tape *r = tape("t");
  ck_assert(r->spent);
  int leaves = 0;
  for (int64_t i = 0; i < r->count; i++) {
    ck_assert_msg(r->rows[i].gradient >= 0, "row %d: %s", (int)i, r->texts + r->rows[i].op);
    leaves += r->rows[i].flags & TD_TAPE_ROW_LEAF && fabsf(r->rows[i].gradient - 600 * 1.7320508f) < 0.1f;
  }
  ck_assert_int_eq(leaves, 1); // x
  run("u = Variable([1., 2.], name='u')\nu.requires_grad = True\n(u * u).sum().backward()");
  ck_assert_double_eq_tol(variable("", "u")->gradient_norm, 2 * 2.2360680, 1e-5);
}
END_TEST

START_TEST(a_glance_is_told) {
  run("v = Variable(arange(10000.).reshape(100, 100))\n"
      "for i in range(100):\n  with GradientTape(persistent=True) as t: y = (v * v * 0.5).sum()\n"
      "  g = t.gradient(y, v)");
  const td_variable_row *row = variable("", "v");
  ck_assert(row->gradient_glanced);
  ck_assert_double_eq_tol(row->gradient_norm, 577000., 577000. / 5);
  run("import time\ntime.sleep(0.1)\ng = t.gradient(y, v)"); // watched by now, and not too soon
  row = variable("", "v");
  ck_assert(!row->gradient_glanced);
  ck_assert_double_eq_tol(row->gradient_norm, 577000., 577000. / 50);
}
END_TEST

START_TEST(long_tapes_are_fast) {
  run("w = Variable(1.)\nwith GradientTape(persistent=True) as t:\n  y = w * 1.\n"
      "  for i in range(5000): y = y * w + 0.001");
  tape("t");
  tape("t");
  ck_assert_msg(took < 0.05 * slowness(), "10,000 records took %g s", took);
  run("with GradientTape(persistent=True) as t:\n  y = w * 1.\n  for i in range(100000): y = y * w + w");
  const td_report_tape *r = tape("t");
  ck_assert_int_eq(r->record_count, 200001);
  ck_assert_int_eq(r->inputs[r->rows[200000].first_input], 199999);
  ck_assert_msg(took < 0.3 * slowness(), "200,000 records took %g s", took);
}
END_TEST

START_TEST(the_tape_of_a_training_step) {
  run("m = Sequential([Dense(4, 'tanh'), Dense(1)])\nm.compile('sgd', 'mse')\n"
      "x, y = randn(64, 3), randn(64, 1)\nm(x).shape");
  td_event event;
  ck_assert(td_session_inquire(session, td_report_tape_make, "", 1)); // somebody looks from now on
  await(TD_EVENT_ANSWER, &event);
  ck_assert_ptr_null(event.payload);
  begin("m.fit(x, y, epochs=100000, verbose=0)");
  await(TD_EVENT_CELL_STARTED, &event);
  int64_t records = 0;
  for (int i = 0; i < 2000 && records <= 3; i++) { // the first steps take their time
    ck_assert(td_session_inquire(session, td_report_tape_make, "", 1));
    await(TD_EVENT_ANSWER, &event);
    const td_report_tape *r = (td_report_tape *)event.payload;
    if (r) records = r->record_count;
    if (r && records > 3) ck_assert(r->rows[records - 1].seconds >= 0);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  ck_assert_int_gt(records, 3);
  td_session_interrupt(session);
  do ck_assert(td_session_next(session, &event, 60000));
  while (event.kind != TD_EVENT_CELL_FINISHED);
}
END_TEST

START_TEST(help_as_text) {
  const td_report_text *r = (td_report_text *)report(td_report_help, "relu");
  ck_assert_ptr_nonnull(strstr(r->text, "relu"));
  ck_assert_int_eq(r->length, strlen(r->text));
  td_event event;
  ck_assert(td_session_inquire(session, td_report_help, "rleu", 1));
  await(TD_EVENT_ANSWER, &event);
  ck_assert_ptr_null(event.payload);
}
END_TEST

START_TEST(help_in_general) { // lists the library by shelves, before any of it is loaded
  static const char *const parts[] = {"\nmodels and layers\n", " Conv2D ", "\nlosses\n", " MeanSquaredError ",
                                      "\noptimizers\n", " Adam ",     "\nfiles\n", " load_npy "};
  const td_report_text *r = (td_report_text *)report(td_report_help, "?");
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    ck_assert_msg(strstr(r->text, parts[i]) != NULL, "%s is not in\n%s", parts[i], r->text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("reports");
  TCase *variables = tcase_create("variables"), *tapes = tcase_create("tapes"), *texts = tcase_create("texts");
  TCase *const all[] = {variables, tapes, texts};
  for (int i = 0; i < 3; i++) {
    suite_add_tcase(suite, all[i]);
    tcase_add_checked_fixture(all[i], session_start, session_finish);
    tcase_set_timeout(all[i], 120);
  }
  tcase_add_test(variables, names_and_what_they_hold);
  tcase_add_test(variables, variables_inside_models_and_optimizers);
  tcase_add_test(variables, one_path_for_each_variable);
  tcase_add_test(variables, one_value);
  tcase_add_test(variables, gradients_of_tapes_and_of_backward);
  tcase_add_test(variables, a_large_session_is_reported_in_time);
  tcase_add_test(tapes, a_tape_as_rows);
  tcase_add_test(tapes, the_first_nan_of_a_tape);
  tcase_add_test(tapes, one_record);
  tcase_add_test(tapes, gradients_on_the_tape);
  tcase_add_test(tapes, gradients_are_there_when_somebody_comes);
  tcase_add_test(tapes, a_glance_is_told);
  tcase_add_test(tapes, long_tapes_are_fast);
  tcase_add_test(tapes, the_tape_of_a_training_step);
  tcase_add_test(texts, help_as_text);
  tcase_add_test(texts, help_in_general);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
