// backward() and requires_grad, what is refused, why a gradient is None, a million records on a small stack, and memory
// that fails. Places are line numbers here.
#include <math.h>
#include "engine/tape/check.h"
#include "tests/engine/tapes.h"

// ---- backward ----

START_TEST(backward_equals_gradient_bit_for_bit) {
  td_variable *v = variable(0.7, "v"), *w = variable(1.3, "w");
  td_tape *tape = tape_on(true);
  td_tensor *a = value_of(v), *b = value_of(w);
  td_tensor *y = multiply(add(multiply(a, b), a), add(b, multiply(a, a)));
  td_tape_close(context, tape);
  td_tensor *g[2];
  td_source sources[] = {{NULL, v}, {NULL, w}};
  ck_assert_int_eq(td_tape_gradient(context, tape, &y, 1, NULL, sources, 2, false, g), TD_OK);
  ck_assert_int_eq(td_backward(context, y, NULL, true, false), TD_OK);
  ck_assert_mem_eq(keep(g[0])->data, v->grad->data, 4);
  ck_assert_mem_eq(keep(g[1])->data, w->grad->data, 4);
  ck_assert_int_eq(warnings, 0);
  ck_assert_int_eq(td_backward(context, y, NULL, false, false), TD_OK); // adds, and says so once
  ck_assert_double_eq(at(v->grad, 0), 2 * at(g[0], 0));
  ck_assert_int_eq(warnings, 1);
  ck_assert_ptr_nonnull(strstr(warning, "grad of v"));
  done(tape);
  td_variable_unref(v);
  td_variable_unref(w);
}
END_TEST

typedef struct walk { // what an observer saw
  char ops[80];
  double in[4], out[4];
  int count;
} walk;

static int walk_step(void *owner, td_context *c, const td_pass_step *step) {
  walk *w = owner;
  ck_assert_ptr_eq(c, context);
  strcat(strcat(w->ops, step->record->op->name), " ");
  w->in[w->count] = at(step->cotangent[0], 0);
  w->out[w->count++] = at(step->din[0], 0);
  if (!strcmp(step->record->op->name, "sin")) // an edited cotangent goes on
    step->din[0] = td_scope_number(step->scope, 100, step->din[0]);
  return TD_OK;
}

static int refuse_step(void *owner, td_context *c, const td_pass_step *step) {
  (void)owner, (void)step;
  return td_error_set(c, TD_ERROR_VALUE, "stop here");
}

START_TEST(a_pass_is_seen_node_by_node) {
  walk w = {.count = 0};
  const td_observer walker = {walk_step, &w}, stopper = {refuse_step, NULL};
  td_tape *tape = tape_on(true);
  td_tensor *x = number(0.5), *out[TD_OUTPUT_MAX];
  watch(tape, x);
  td_tensor *y = multiply(x, number(3)), *z;
  ck_assert_int_eq(td_op_apply(context, td_op_find("sin"), &y, 1, NULL, out), TD_OK);
  z = multiply(keep(out[0]), number(2));
  ck_assert_int_eq(td_tape_observe(context, &walker), TD_OK);
  td_tensor *g = gradient(tape, z, x);
  ck_assert_str_eq(w.ops, "multiply sin multiply ");
  ck_assert_double_eq(w.in[0], 1);
  ck_assert_double_eq(w.out[0], 2);
  ck_assert_double_eq(w.in[1], 2);
  ck_assert_double_eq_tol(w.out[1], 2 * cos(1.5), 1e-6);
  ck_assert_double_eq(w.in[2], 100);
  ck_assert_double_eq(at(g, 0), 300);
  ck_assert_int_eq(td_tape_observe(context, &stopper), TD_OK);
  ck_assert_int_eq(ask(tape, z, x, NULL, &g), TD_ERROR_VALUE);
  ck_assert_int_eq(td_tape_observe(context, NULL), TD_OK);
  ck_assert_double_eq_tol(at(gradient(tape, z, x), 0), 6 * cos(1.5), 1e-6);
  done(tape);
}
END_TEST

START_TEST(backward_without_a_tape) {
  td_variable *v = variable(3, "v");
  v->requires_grad = true;
  td_tensor *x = value_of(v), *y = multiply(x, x);
  ck_assert(td_tensor_requires_grad(y) && !td_tensor_is_leaf(y) && td_tensor_is_leaf(x));
  ck_assert_int_eq(td_backward(context, y, NULL, false, false), TD_OK);
  ck_assert_double_eq(at(v->grad, 0), 6);
  ck_assert_int_eq(td_backward(context, y, NULL, false, false), TD_ERROR_STATE);
  ck_assert_ptr_nonnull(strstr(context->error.hint, "retain_graph=True"));
  td_variable_unref(v);
}
END_TEST

START_TEST(tensors_that_require_grad) {
  td_tensor *x = number(3), *n = keep(td_tensor_from_int(context, 3, TD_INT64));
  ck_assert_int_eq(td_tensor_require_grad(context, n, true), TD_ERROR_DTYPE);
  ck_assert_int_eq(td_tensor_require_grad(context, x, true), TD_OK);
  td_tensor *y = multiply(x, x);
  ck_assert_int_eq(td_tensor_require_grad(context, y, false), TD_ERROR_STATE);
  ck_assert_int_eq(td_backward(context, y, number(10), true, false), TD_OK);
  ck_assert_double_eq(at(td_tensor_grad(x), 0), 60);
  ck_assert_int_eq(td_tensor_set_grad(context, x, NULL), TD_OK);
  ck_assert_ptr_null(td_tensor_grad(x));
  ck_assert_int_eq(td_tensor_require_grad(context, x, false), TD_OK);
  ck_assert(!td_tensor_requires_grad(multiply(x, x)));
  ck_assert_int_eq(td_backward(context, number(1), NULL, true, false), TD_ERROR_STATE);
}
END_TEST

START_TEST(create_graph_makes_gradients_differentiable) {
  td_tensor *x = number(2);
  ck_assert_int_eq(td_tensor_require_grad(context, x, true), TD_OK);
  ck_assert_int_eq(td_backward(context, multiply(multiply(x, x), x), NULL, false, true), TD_OK);
  td_tensor *g = keep(td_tensor_ref(td_tensor_grad(x)));
  ck_assert_double_eq(at(g, 0), 12);
  ck_assert_int_eq(td_tensor_set_grad(context, x, NULL), TD_OK);
  ck_assert_int_eq(td_backward(context, g, NULL, false, false), TD_OK);
  ck_assert_double_eq(at(td_tensor_grad(x), 0), 12);
  // A grad that holds its own graph is forgotten with the context's tapes.
  ck_assert_int_eq(td_tensor_set_grad(context, x, NULL), TD_OK);
  ck_assert_int_eq(td_backward(context, multiply(x, x), NULL, false, true), TD_OK);
}
END_TEST

// ---- refusals ----

START_TEST(integers_have_no_gradients) {
  td_tape *tape = tape_on(true);
  td_tensor *n = keep(td_tensor_from_int(context, 3, TD_INT64)), *x = number(2), *g;
  ck_assert_int_eq(td_tape_watch(context, tape, n), TD_ERROR_DTYPE);
  watch(tape, x);
  td_tensor *y = multiply(x, number(4)), *compared = apply("greater", x, y);
  ck_assert_ptr_null(gradient(tape, y, n));
  ck_assert_ptr_nonnull(strstr(warning, "astype(float32)"));
  expect_why(tape, n, NULL, "integer type", "int64");
  ck_assert_int_eq(ask(tape, compared, x, NULL, &g), TD_ERROR_GRADIENT);
  ck_assert_ptr_nonnull(strstr(context->error.message, "greater at line"));
  td_scope scope;
  td_scope_open(&scope, context);
  td_tensor *back = keep(td_tensor_ref(td_cast(&scope, compared, TD_FLOAT32)));
  td_scope_close(&scope);
  ck_assert_ptr_null(gradient(tape, back, x)); // cut by the comparison
  expect_why(tape, x, NULL, "integer type: greater at line", "bool");
  done(tape);
}
END_TEST

static int infer_same(td_infer *infer) {
  infer->out[0] = infer->in[0];
  return TD_OK;
}

static int copy_kernel(const td_call *call) {
  memcpy(call->out[0].data, call->in[0].data, (size_t)call->out[0].size * (size_t)td_dtype_bytes(call->out[0].dtype));
  return TD_OK;
}

static int doubled_vjp(td_rule *rule) { // wrong for a copy
  rule->din[0] = td_add(&rule->scope, rule->cotangent[0], rule->cotangent[0]);
  return TD_OK;
}

static int misshapen_vjp(td_rule *rule) {
  rule->din[0] = td_scope_filled(&rule->scope, 1, &(td_meta){.dtype = TD_FLOAT32, .rank = 1, .shape = {5}});
  return TD_OK;
}

static const td_op ruleless = {.name = "ruleless",
                               .params = {{.name = "x", .kind = TD_PARAM_TENSOR}},
                               .infer = infer_same,
                               .kernel = copy_kernel,
                               .no_gradient = "its rule is not written"};
static const td_op doubled = {.name = "doubled",
                              .params = {{.name = "x", .kind = TD_PARAM_TENSOR}},
                              .infer = infer_same,
                              .kernel = copy_kernel,
                              .vjp = doubled_vjp};
static const td_op misshapen = {.name = "misshapen",
                                .params = {{.name = "x", .kind = TD_PARAM_TENSOR}},
                                .infer = infer_same,
                                .kernel = copy_kernel,
                                .vjp = misshapen_vjp};

static td_tensor *apply_row(const td_op *op, td_tensor *x) {
  td_tensor *out[TD_OUTPUT_MAX];
  context->place++;
  ck_assert_int_eq(td_op_apply(context, op, &x, 1, NULL, out), TD_OK);
  return keep(out[0]);
}

START_TEST(op_without_a_rule_is_refused_on_the_path_only) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(2), *w = number(5), *g;
  watch(tape, x);
  watch(tape, w);
  context->place = 6;
  td_tensor *y = multiply(apply_row(&ruleless, x), w);
  ck_assert_double_eq(at(gradient(tape, y, w), 0), 2); // not between w and y
  ck_assert_int_eq(ask(tape, y, x, NULL, &g), TD_ERROR_GRADIENT);
  ck_assert_ptr_nonnull(strstr(context->error.message, "ruleless at line 7"));
  ck_assert_uint_eq(context->error.place, 7);
  ck_assert_uint_eq(context->place, 8);
  done(tape);
}
END_TEST

START_TEST(rule_of_a_wrong_shape_is_found_out) {
  td_tape *tape = tape_on(false);
  td_tensor *x = ROW(1, 2), *g;
  watch(tape, x);
  ck_assert_int_eq(ask(tape, apply_row(&misshapen, x), x, NULL, &g), TD_ERROR_INTERNAL);
  ck_assert_ptr_nonnull(strstr(context->error.message, "misshapen"));
  done(tape);
}
END_TEST

START_TEST(interrupt_stops_a_pass) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(2), *g;
  watch(tape, x);
  td_tensor *y = multiply(x, x);
  atomic_store(&context->interrupt, 1);
  ck_assert_int_eq(ask(tape, y, x, NULL, &g), TD_ERROR_INTERRUPT);
  atomic_store(&context->interrupt, 0);
  ck_assert_double_eq(at(gradient(tape, y, x), 0), 4);
  done(tape);
}
END_TEST

static int apply_argument(td_context *c, void *op, td_tensor *const *in, int in_count, td_tensor **out,
                          int *out_count) {
  *out_count = 1;
  return td_op_apply(c, op, in, in_count, NULL, out);
}

START_TEST(gradcheck_tells_right_from_wrong) {
  td_tensor *x = keep(td_tensor_from_float(context, 0.5, TD_FLOAT64));
  td_text report = {0};
  const td_op *right = td_op_find("exp");
  ck_assert_int_eq(td_gradient_check(context, "exp", apply_argument, (void *)right, &x, 1, 1e-5, 1e-6, 3, &report),
                   TD_OK);
  ck_assert_ptr_null(report.data);
  ck_assert_int_eq(
      td_gradient_check(context, "doubled", apply_argument, (void *)&doubled, &x, 1, 1e-5, 1e-6, 2, &report),
      TD_ERROR_GRADIENT);
  ck_assert_ptr_nonnull(strstr(report.data, "doubled, order 1: in input 0, element 0"));
  td_text_clear(&report);
  ck_assert_ptr_null(x->origin);
}
END_TEST

// ---- why ----

static int double_kernel(const td_call *call) {
  for (int64_t i = 0; i < call->out[0].size; i++)
    ((double *)call->out[0].data)[i] = 2 * ((const double *)call->in[0].data)[i];
  return TD_OK;
}

static int square_kernel(const td_call *call) {
  for (int64_t i = 0; i < call->out[0].size; i++) {
    double x = ((const double *)call->in[0].data)[i];
    ((double *)call->out[0].data)[i] = x * x;
  }
  return TD_OK;
}

static const td_op slope_without_rule = {.name = "slope_without_rule",
                                         .params = {{.name = "x", .kind = TD_PARAM_TENSOR}},
                                         .infer = infer_same,
                                         .kernel = double_kernel,
                                         .no_gradient = "its rule is not written"};

static int once_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  rule->din[0] = td_multiply(s, rule->cotangent[0], td_scope_apply(s, &slope_without_rule, NULL, 1, rule->in[0]));
  return TD_OK;
}

static int frozen_vjp(td_rule *rule) { // a slope that is no op's result: x's part in it is lost
  td_scope *s = &rule->scope;
  double slope = 2 * td_tensor_get_float(rule->in[0], 0);
  rule->din[0] = td_multiply(s, rule->cotangent[0], td_scope_number(s, slope, rule->in[0]));
  return TD_OK;
}

static const td_op once = {.name = "once",
                           .params = {{.name = "x", .kind = TD_PARAM_TENSOR}},
                           .infer = infer_same,
                           .kernel = square_kernel,
                           .vjp = once_vjp,
                           .saves = TD_SAVES_IN0};
static const td_op frozen = {.name = "frozen",
                             .params = {{.name = "x", .kind = TD_PARAM_TENSOR}},
                             .infer = infer_same,
                             .kernel = square_kernel,
                             .vjp = frozen_vjp,
                             .saves = TD_SAVES_IN0};

static int check(const td_op *op, td_tensor *x, int order, td_text *report) {
  return td_gradient_check(context, op->name, apply_argument, (void *)op, &x, 1, 1e-5, 1e-6, order, report);
}

START_TEST(second_order_without_a_rule_raises) {
  td_tensor *x = keep(td_tensor_from_float(context, 0.5, TD_FLOAT64));
  td_text report = {0};
  ck_assert_int_eq(check(&once, x, 1, NULL), TD_OK);
  ck_assert_int_eq(check(&once, x, 2, &report), TD_ERROR_GRADIENT);
  ck_assert_ptr_nonnull(strstr(context->error.message, "slope_without_rule"));
  ck_assert_ptr_nonnull(strstr(context->error.message, "its rule is not written"));
  td_text_clear(&report);
}
END_TEST

START_TEST(second_order_that_is_wrong_is_found_out) {
  td_tensor *x = keep(td_tensor_from_float(context, 0.5, TD_FLOAT64));
  td_text report = {0};
  ck_assert_int_eq(check(&frozen, x, 1, NULL), TD_OK);
  ck_assert_int_eq(check(&frozen, x, 2, &report), TD_ERROR_GRADIENT);
  ck_assert_ptr_nonnull(strstr(report.data, "frozen, order 2: in input 0, element 0"));
  td_text_clear(&report);
}
END_TEST

START_TEST(why_names_each_cause) {
  td_variable *fixed = variable(1, "fixed"), *state = variable(1, "state"), *idle = variable(1, "idle");
  fixed->trainable = false;
  context->place = 2;
  td_tensor *replaced = multiply(value_of(idle), number(2)); // line 3
  td_tape *tape = tape_on(true);
  context->place = 9;
  td_tensor *plain = number(1), *stopped = number(2), *assigned = number(3), *off = number(4), *measured = number(5);
  watch(tape, stopped);
  watch(tape, assigned);
  watch(tape, off);
  watch(tape, measured);
  context->place = 20;
  td_tensor *y = multiply(plain, keep(td_stop_gradient(context, stopped)));
  context->place = 30;
  td_tape_note_cut(context, TD_CUT_ASSIGN, assigned, state);
  ck_assert_int_eq(td_variable_assign(context, state, assigned), TD_OK);
  y = multiply(y, value_of(state));
  y = multiply(y, value_of(fixed));
  y = multiply(y, replaced);
  context->place = 50;
  multiply(off, off);
  context->place = 60;
  td_tape_note_cut(context, TD_CUT_NUMBER, multiply(measured, measured), NULL);
  context->place = 69;
  y = multiply(y, value_of(state));
  td_tape_close(context, tape);
  ck_assert_ptr_null(gradient(tape, y, stopped));
  expect_why(tape, plain, NULL, "not watched", "line 9");
  expect_why(tape, NULL, fixed, "not trainable", "fixed");
  expect_why(tape, replaced, NULL, "replaced by a tensor at line 3", "v.assign");
  expect_why(tape, measured, NULL, "left as a number at line 61", "keep it a tensor");
  expect_why(tape, assigned, NULL, "state assign", "Variable state at line 30");
  expect_why(tape, stopped, NULL, "cut by stop_gradient at line 20", "");
  expect_why(tape, off, NULL, "not on the path", "not reached: line 70");
  expect_why(tape, off, NULL, "last used by multiply", "line 51");
  expect_why(tape, NULL, idle, "not on the path", "no op on this tape used");
  expect_why(tape, NULL, state, "reached through", "multiply at line");
  done(tape);
  td_variable_unref(fixed);
  td_variable_unref(state);
  td_variable_unref(idle);
}
END_TEST

START_TEST(why_is_answered_after_the_records_were_given_up) {
  td_tape *tape = tape_on(false);
  td_tensor *x = number(3), *unwatched = number(4);
  watch(tape, x);
  td_tensor *z = add(x, unwatched);
  td_tape_close(context, tape);
  gradient(tape, z, unwatched);
  expect_why(tape, unwatched, NULL, "not watched", "tape.watch(x)");
  expect_why(tape, x, NULL, "reached through 1 record: add at line 1", "");
  done(tape);
}
END_TEST

START_TEST(why_names_the_line_that_overwrote) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(3);
  watch(tape, x);
  td_tensor *old = multiply(x, x), *y = multiply(old, x);
  context->place = 30;
  td_tape_note_cut(context, TD_CUT_OVERWRITTEN, old, NULL);
  td_tensor *updated = multiply(old, number(0)); // what x[i] = v makes from it
  ck_assert_ptr_null(gradient(tape, y, updated));
  expect_why(tape, updated, NULL, "overwritten at line 30", "");
  done(tape);
}
END_TEST

// ---- a million records, on a small stack ----

enum { LONG = 1000000 };

static td_tensor *chain(td_tensor *x, const td_op *op, int length) { // y = y + y * 1e-6, in two ops each
  td_tensor *y = td_tensor_ref(x), *out[TD_OUTPUT_MAX];
  td_tensor *small = number(1e-6);
  const td_op *sum = td_op_find("add");
  for (int i = 0; i < length; i++) {
    ck_assert_int_eq(td_op_apply(context, op, (td_tensor *[]){y, small}, 2, NULL, out), TD_OK);
    td_tensor *step = out[0];
    ck_assert_int_eq(td_op_apply(context, sum, (td_tensor *[]){y, step}, 2, NULL, out), TD_OK);
    td_tensor_unref(step);
    td_tensor_unref(y);
    y = out[0];
  }
  return y;
}

START_TEST(million_records_on_a_tape) {
  td_tape *tape = tape_on(false);
  td_tensor *x = keep(td_tensor_from_float(context, 1, TD_FLOAT64)), *g;
  watch(tape, x);
  td_tensor *y = chain(x, td_op_find("multiply"), LONG / 2);
  ck_assert_int_eq(td_tape_length(tape), LONG);
  td_tape_close(context, tape);
  ck_assert_int_eq(ask(tape, y, x, NULL, &g), TD_OK);
  ck_assert_double_eq_tol(at(keep(g), 0), exp(0.5), 1e-5);
  expect_why(tape, x, NULL, "reached through 1000000 records", "");
  done(tape);
  td_tensor_unref(y);
}
END_TEST

START_TEST(million_records_without_a_tape) { // dropped from the last tensor on
  td_tensor *x = keep(td_tensor_from_float(context, 1, TD_FLOAT64));
  ck_assert_int_eq(td_tensor_require_grad(context, x, true), TD_OK);
  td_tensor *y = chain(x, td_op_find("multiply"), LONG / 2);
  ck_assert_int_eq(td_backward(context, y, NULL, true, false), TD_OK);
  ck_assert_double_eq_tol(at(td_tensor_grad(x), 0), exp(0.5), 1e-5);
  td_tensor_unref(y);
}
END_TEST

// ---- memory that fails ----

static int train_once(td_variable *v) {
  td_tape *tape = td_tape_new(context, false, true);
  td_tensor *x = NULL, *out[TD_OUTPUT_MAX], *g = NULL;
  int code = tape ? td_tape_open(context, tape) : TD_ERROR_MEMORY;
  if (!code && !(x = td_variable_read(context, v))) code = TD_ERROR_MEMORY;
  if (!code) code = td_op_apply(context, td_op_find("multiply"), (td_tensor *[]){x, x}, 2, NULL, out);
  if (!code) {
    code = ask(tape, out[0], NULL, v, &g);
    td_tensor_unref(out[0]);
  }
  td_tensor_unref(g);
  td_tensor_unref(x);
  if (tape) td_tape_unref(context, tape);
  return code;
}

START_TEST(every_allocation_may_fail) {
  td_variable *v = variable(3, "v");
  int n = 1, code = TD_ERROR_MEMORY;
  for (; code && n < 200; n++) {
    td_memory_fail(n, false);
    code = train_once(v);
    td_memory_fail(0, false);
    ck_assert_msg(code == TD_OK || code == TD_ERROR_MEMORY, "allocation %d: %s", n, context->error.message);
    ck_assert_int_eq(train_once(v), TD_OK);
  }
  ck_assert_int_gt(n, 10);
  ck_assert_int_lt(n, 200);
  td_variable_unref(v);
}
END_TEST

int main(void) {
  const TTest *const tests[] = {
      backward_equals_gradient_bit_for_bit,
      a_pass_is_seen_node_by_node,
      backward_without_a_tape,
      tensors_that_require_grad,
      create_graph_makes_gradients_differentiable,
      integers_have_no_gradients,
      op_without_a_rule_is_refused_on_the_path_only,
      rule_of_a_wrong_shape_is_found_out,
      interrupt_stops_a_pass,
      gradcheck_tells_right_from_wrong,
      second_order_without_a_rule_raises,
      second_order_that_is_wrong_is_found_out,
      why_names_each_cause,
      why_is_answered_after_the_records_were_given_up,
      why_names_the_line_that_overwrote,
      million_records_on_a_tape,
      million_records_without_a_tape,
      every_allocation_may_fail,
  };
  return tapes_run("backward", tests, sizeof tests / sizeof *tests);
}
