// Tapes: what is tracked, what gradient() gives, what is kept and for how long. Places are line numbers here.
#include "tests/engine/tapes.h"

// ---- gradients ----

START_TEST(square_of_a_variable) {
  td_variable *v = variable(3, "x");
  td_tape *tape = tape_on(false);
  td_tensor *x = value_of(v), *y = multiply(x, x);
  td_tape_close(context, tape);
  multiply(value_of(v), y); // outside: not recorded
  ck_assert_int_eq(td_tape_length(tape), 1);
  ck_assert_double_eq(at(gradient_in(tape, y, v), 0), 6);
  done(tape);
  td_variable_unref(v);
}
END_TEST

START_TEST(second_gradient_needs_a_persistent_tape) {
  td_tape *tape = tape_on(false);
  td_tensor *x = number(3), *g;
  watch(tape, x);
  td_tensor *y = multiply(x, x);
  td_tape_close(context, tape);
  ck_assert_double_eq(at(gradient(tape, y, x), 0), 6);
  ck_assert_int_eq(ask(tape, y, x, NULL, &g), TD_ERROR_STATE);
  ck_assert_ptr_nonnull(strstr(context->error.hint, "persistent=True"));
  done(tape);
}
END_TEST

START_TEST(persistent_tape_answers_twice) {
  td_tape *tape = tape_on(true);
  td_tensor *x = ROW(1, 3);
  watch(tape, x);
  td_tensor *y = multiply(x, x), *z = multiply(y, y);
  td_tape_close(context, tape);
  td_tensor *dz = gradient(tape, z, x), *dy = gradient(tape, y, x), *again = gradient(tape, z, x);
  ck_assert_double_eq(at(dz, 0), 4);
  ck_assert_double_eq(at(dz, 1), 108);
  ck_assert_double_eq(at(dy, 1), 6);
  ck_assert_double_eq(at(again, 1), 108);
  done(tape);
}
END_TEST

START_TEST(intermediate_values_are_sources) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(3);
  watch(tape, x);
  td_tensor *y = multiply(x, x), *z = multiply(y, y), *g[2];
  td_source sources[] = {{y, NULL}, {x, NULL}};
  td_tape_close(context, tape);
  ck_assert_int_eq(td_tape_gradient(context, tape, &z, 1, NULL, sources, 2, false, g), TD_OK);
  ck_assert_double_eq(at(keep(g[0]), 0), 18);
  ck_assert_double_eq(at(keep(g[1]), 0), 108);
  ck_assert_double_eq(at(gradient(tape, y, y), 0), 1);
  done(tape);
}
END_TEST

START_TEST(paths_are_counted_once_each) { // c = a + b, d = a b, y = (c + d) + c d
  td_tape *tape = tape_on(true);
  td_tensor *a = number(2), *b = number(3);
  watch(tape, a);
  watch(tape, b);
  td_tensor *c = add(a, b), *d = multiply(a, b), *y = add(add(c, d), multiply(c, d));
  ck_assert_double_eq(at(y, 0), 41);
  ck_assert_double_eq(at(gradient(tape, y, a), 0), 25);
  ck_assert_double_eq(at(gradient(tape, y, b), 0), 19);
  td_tensor *x = number(1), *k = number(1);
  watch(tape, x);
  td_tensor *first = multiply(x, multiply(x, k)), *f = add(add(first, first), multiply(multiply(x, x), k));
  ck_assert_double_eq(at(gradient(tape, f, x), 0), 6);
  done(tape);
}
END_TEST

START_TEST(nested_tapes_give_third_derivatives) { // x**3 at 1: 3, 6, 6
  td_tensor *x = number(1), *y;
  td_tape *tapes[3];
  for (int i = 0; i < 3; i++) {
    tapes[i] = tape_on(false);
    watch(tapes[i], x);
  }
  y = multiply(multiply(x, x), x);
  const double expected[] = {3, 6, 6};
  for (int i = 0; i < 3; i++) {
    td_tape_close(context, tapes[2 - i]);
    y = gradient(tapes[2 - i], y, x);
    ck_assert_double_eq(at(y, 0), expected[i]);
  }
  for (int i = 0; i < 3; i++) done(tapes[i]);
}
END_TEST

START_TEST(persistent_tape_records_its_own_gradient) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(2);
  watch(tape, x);
  td_tensor *g = gradient(tape, multiply(multiply(x, x), x), x);
  ck_assert_double_eq(at(g, 0), 12);
  ck_assert_double_eq(at(gradient(tape, g, x), 0), 12);
  done(tape);
}
END_TEST

START_TEST(inner_tape_takes_an_outer_result_as_its_leaf) {
  td_tensor *x = number(3);
  td_tape *outer = tape_on(false);
  watch(outer, x);
  td_tensor *y = multiply(x, x);
  td_tape *inner = tape_on(false);
  watch(inner, y);
  td_tensor *z = multiply(y, y), *g[2];
  td_tape_close(context, inner);
  td_source sources[] = {{y, NULL}, {x, NULL}};
  ck_assert_int_eq(td_tape_gradient(context, inner, &z, 1, NULL, sources, 2, false, g), TD_OK);
  ck_assert_double_eq(at(keep(g[0]), 0), 18);
  ck_assert_ptr_null(g[1]); // the inner tape knows nothing before y
  td_tape_close(context, outer);
  ck_assert_double_eq(at(gradient(outer, z, x), 0), 108);
  done(outer);
  done(inner);
}
END_TEST

START_TEST(targets_are_summed_and_said_so) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(1), *y, *g;
  watch(tape, x);
  y = multiply(x, ROW(3, 4));
  ck_assert_double_eq(at(gradient(tape, y, x), 0), 7);
  ck_assert_str_eq(warning, "gradient: summed 2 outputs of shape [2]");
  gradient(tape, y, x); // same place: said once
  ck_assert_int_eq(warnings, 1);
  td_tensor *targets[] = {multiply(x, x), multiply(x, number(5))}, *weights[] = {number(10), NULL};
  td_source source = {x, NULL};
  ck_assert_int_eq(td_tape_gradient(context, tape, targets, 2, NULL, &source, 1, false, &g), TD_OK);
  ck_assert_double_eq(at(keep(g), 0), 7);
  ck_assert_str_eq(warning, "gradient: summed 2 outputs");
  ck_assert_int_eq(td_tape_gradient(context, tape, targets, 2, weights, &source, 1, false, &g), TD_OK);
  ck_assert_double_eq(at(keep(g), 0), 25);
  ck_assert_int_eq(td_tape_gradient(context, tape, targets, 1, (td_tensor *[]){ROW(1, 2)}, &source, 1, false, &g),
                   TD_ERROR_SHAPE);
  done(tape);
}
END_TEST

START_TEST(unconnected_sources_are_none_or_zero) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(1), *y = ROW(1, 2, 3), *g[2];
  watch(tape, x);
  watch(tape, y);
  td_tensor *z = multiply(x, number(2));
  td_source sources[] = {{x, NULL}, {y, NULL}};
  ck_assert_int_eq(td_tape_gradient(context, tape, &z, 1, NULL, sources, 2, false, g), TD_OK);
  ck_assert_double_eq(at(keep(g[0]), 0), 2);
  ck_assert_ptr_null(g[1]);
  ck_assert_int_eq(td_tape_gradient(context, tape, &z, 1, NULL, sources, 2, true, g), TD_OK);
  keep(g[0]);
  ck_assert_int_eq(keep(g[1])->size, 3);
  ck_assert_double_eq(at(g[1], 2), 0);
  done(tape);
}
END_TEST

START_TEST(broadcasting_is_undone) {
  td_tensor *x = keep(td_tensor_zeros(context, TD_FLOAT32, 4, (int64_t[]){2, 1, 4, 8}));
  td_tensor *m = keep(td_tensor_new(context, TD_FLOAT32, 4, (int64_t[]){2, 1, 4, 1}));
  for (int64_t i = 0; i < x->size; i++) ((float *)x->data)[i] = 1;
  for (int64_t i = 0; i < m->size; i++) ((float *)m->data)[i] = 1;
  td_tape *tape = tape_on(false);
  watch(tape, m);
  td_tensor *g = gradient(tape, multiply(x, m), m);
  ck_assert(td_shape_equal(g->rank, g->shape, m->rank, m->shape));
  for (int64_t i = 0; i < g->size; i++) ck_assert_double_eq(at(g, i), 8);
  done(tape);
}
END_TEST

START_TEST(gradients_take_their_source_s_dtype) {
  td_tape *tape = tape_on(false);
  td_tensor *x = number(3), *k = keep(td_tensor_from_float(context, 2, TD_FLOAT64));
  watch(tape, x);
  td_tensor *g = gradient(tape, multiply(x, k), x);
  ck_assert_int_eq(g->dtype, TD_FLOAT32);
  ck_assert_double_eq(at(g, 0), 2);
  done(tape);
}
END_TEST

START_TEST(two_sources_never_share_a_gradient) {
  td_tape *tape = tape_on(false);
  td_tensor *a = number(1), *b = number(2), *y, *g[2];
  watch(tape, a);
  watch(tape, b);
  y = add(a, b);
  td_source sources[] = {{a, NULL}, {b, NULL}};
  ck_assert_int_eq(td_tape_gradient(context, tape, &y, 1, NULL, sources, 2, false, g), TD_OK);
  ck_assert_ptr_ne(keep(g[0]), keep(g[1]));
  done(tape);
}
END_TEST

// ---- Variables ----

START_TEST(variable_assigned_between_two_reads_sums_both) {
  td_variable *v = variable(2, "v");
  td_tape *tape = tape_on(false);
  td_tensor *first = value_of(v), *a = multiply(first, first);
  ck_assert_int_eq(td_variable_assign(context, v, number(5)), TD_OK);
  td_tensor *second = value_of(v), *y = add(a, multiply(second, second));
  ck_assert_double_eq(at(gradient_in(tape, y, v), 0), 4 + 10);
  uint64_t ids[4];
  ck_assert_int_eq(td_tape_watched(tape, ids, 4), 1);
  ck_assert_uint_eq(ids[0], v->id);
  done(tape);
  td_variable_unref(v);
}
END_TEST

START_TEST(tensor_that_became_a_variable_is_not_watched_with_it) {
  td_tensor *x = number(3);
  td_variable *v = td_variable_new(context, x, "v", true);
  td_tape *tape = tape_on(true);
  td_tensor *read = value_of(v), *y = multiply(read, read), *z = multiply(x, x);
  ck_assert_double_eq(at(gradient_in(tape, y, v), 0), 6);
  ck_assert_ptr_null(gradient_in(tape, z, v));
  ck_assert_ptr_null(gradient(tape, y, x));
  done(tape);
  td_variable_unref(v);
}
END_TEST

START_TEST(value_read_before_the_tape_is_a_constant) {
  td_variable *v = variable(3, "v");
  td_tensor *before = value_of(v);
  td_tape *tape = tape_on(false);
  td_tensor *now = value_of(v), *y = multiply(before, now);
  ck_assert_double_eq(at(gradient_in(tape, y, v), 0), 3);
  done(tape);
  td_variable_unref(v);
}
END_TEST

START_TEST(variables_can_be_left_unwatched) {
  td_variable *v = variable(3, "v"), *w = variable(4, "w");
  td_tape *tape = td_tape_new(context, true, false);
  ck_assert_int_eq(td_tape_open(context, tape), TD_OK);
  ck_assert_int_eq(td_tape_watch_variable(context, tape, w), TD_OK);
  td_tensor *y = multiply(value_of(v), value_of(w));
  ck_assert_ptr_null(gradient_in(tape, y, v));
  ck_assert_double_eq(at(gradient_in(tape, y, w), 0), 3);
  ck_assert_int_eq(td_variable_assign(context, w, number(7)), TD_OK);
  ck_assert_double_eq(at(gradient_in(tape, multiply(value_of(w), number(2)), w), 0),
                      2); // watched through an assignment
  expect_why(tape, NULL, v, "not watched", "watch_accessed_variables=False");
  done(tape);
  td_variable_unref(v);
  td_variable_unref(w);
}
END_TEST

START_TEST(lost_variable_is_freed_at_once) {
  td_tensor *t = td_tensor_zeros(context, TD_FLOAT32, 1, (int64_t[]){1000000});
  td_variable *v = td_variable_new(context, t, "w", true);
  td_tensor_unref(t);
  td_tape *tape = tape_on(true);
  td_tensor *read = td_variable_read(context, v);
  multiply(read, number(2));
  td_tensor_unref(read);
  int64_t before = td_memory_live();
  td_variable_unref(v);
  forget();
  done(tape);
  ck_assert_int_ge(before - td_memory_live(), 8000000);
  ck_assert_int_eq(td_variable_count(), 0);
}
END_TEST

// ---- tapes ----

START_TEST(paused_tape_records_nothing) { // z = x**2 + (y**2 computed while paused)
  td_tape *tape = tape_on(true);
  td_tensor *x = number(2), *y = number(3), *cut;
  watch(tape, x);
  watch(tape, y);
  ck_assert_int_eq(td_tape_pause(context, tape), TD_OK);
  ck_assert(!td_recording(context));
  context->place = 40;
  cut = multiply(y, y);
  td_tape_resume(context, tape);
  ck_assert(td_recording(context));
  td_tensor *z = add(multiply(x, x), cut);
  ck_assert_double_eq(at(gradient(tape, z, x), 0), 4);
  ck_assert_ptr_null(gradient(tape, z, y));
  expect_why(tape, y, NULL, "recording off at line 41", "");
  td_tape_close(context, tape);
  ck_assert_int_eq(td_tape_pause(context, tape), TD_ERROR_STATE);
  done(tape);
}
END_TEST

START_TEST(reset_forgets_and_reopening_goes_on) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(2);
  watch(tape, x);
  td_tensor *y = multiply(x, x);
  td_tape_close(context, tape);
  ck_assert_int_eq(td_tape_open(context, tape), TD_OK);
  ck_assert_int_eq(td_tape_open(context, tape), TD_ERROR_STATE);
  td_tensor *z = multiply(y, x);
  ck_assert_double_eq(at(gradient(tape, z, x), 0), 12);
  td_tape_reset(context, tape);
  ck_assert_int_eq(td_tape_length(tape), 0);
  ck_assert_ptr_null(gradient(tape, z, x));
  done(tape);
}
END_TEST

START_TEST(slots_are_reused_and_run_out) {
  td_tape *tapes[64];
  td_tensor *x = number(1);
  for (int i = 0; i < 63; i++) {
    tapes[i] = tape_on(false);
    watch(tapes[i], x);
  }
  td_tensor *y = multiply(x, x);
  tapes[63] = td_tape_new(context, false, true);
  ck_assert_int_eq(td_tape_open(context, tapes[63]), TD_ERROR_STATE);
  td_tape_close(context, tapes[5]);
  ck_assert_int_eq(td_tape_open(context, tapes[63]), TD_OK); // takes slot 5
  multiply(y, y);
  ck_assert_int_eq(td_tape_length(tapes[63]), 0);
  ck_assert_int_eq(td_tape_length(tapes[5]), 1);
  ck_assert_int_eq(td_tape_length(tapes[0]), 2);
  for (int i = 0; i < 64; i++) done(tapes[i]);
}
END_TEST

START_TEST(no_grad_records_nothing) {
  td_tape *tape = tape_on(true);
  td_tensor *x = number(2);
  watch(tape, x);
  td_no_grad_enter(context);
  td_no_grad_enter(context);
  td_no_grad_leave(context);
  multiply(x, x);
  ck_assert(!td_recording(context));
  td_no_grad_leave(context);
  ck_assert_int_eq(td_tape_length(tape), 0);
  multiply(x, x);
  ck_assert_int_eq(td_tape_length(tape), 1);
  done(tape);
}
END_TEST

START_TEST(outside_of_tapes_nothing_can_record) {
  td_tape *tape = tape_on(false);
  ck_assert_ptr_nonnull(context->recorder);
  td_tape_close(context, tape);
  ck_assert_ptr_null(context->recorder);
  done(tape);
}
END_TEST

START_TEST(record_can_be_looked_at) {
  td_tape *tape = tape_on(true);
  td_tensor *x = ROW(1, 2);
  watch(tape, x);
  context->place = 10;
  td_tensor *y = multiply(x, x);
  add(y, x);
  const td_record *first = td_tape_record_at(tape, 0), *second = td_tape_record_at(tape, 1);
  ck_assert_ptr_null(td_tape_record_at(tape, 2));
  ck_assert_str_eq(first->op->name, "multiply");
  ck_assert_uint_eq(first->place, 11);
  ck_assert_ptr_eq(second->parents[0], first);
  ck_assert_int_eq(first->out_meta[0].shape[0], 2);
  ck_assert_int_eq(td_record_bytes(first), 8); // x, once
  ck_assert_int_eq(td_record_bytes(second), 0); // a sum needs neither operand
  done(tape);
}
END_TEST

START_TEST(saved_tensors_go_with_the_first_gradient) {
  td_tape *tape = tape_on(false);
  td_tensor *x = ROW(1, 2);
  watch(tape, x);
  td_tensor *y = multiply(x, x);
  ck_assert_int_eq(td_record_bytes(td_tape_record_at(tape, 0)), 8);
  gradient(tape, y, x);
  ck_assert_int_eq(td_tape_length(tape), 1); // the skeleton stays, for why
  ck_assert_int_eq(td_record_bytes(td_tape_record_at(tape, 0)), 0);
  done(tape);
}
END_TEST

START_TEST(outer_tape_keeps_what_an_inner_one_gave_up) {
  td_tensor *x = number(3);
  td_tape *outer = tape_on(false), *inner = tape_on(false);
  watch(outer, x);
  watch(inner, x);
  td_tensor *y = multiply(x, x);
  ck_assert_double_eq(at(gradient(inner, y, x), 0), 6);
  done(inner);
  ck_assert_double_eq(at(gradient(outer, y, x), 0), 6);
  done(outer);
}
END_TEST

START_TEST(value_kept_from_a_gone_tape_holds_no_history) {
  int64_t before = td_memory_live();
  td_tensor *last = NULL;
  for (int step = 0; step < 50; step++) {
    td_tensor *x = td_tensor_from_float(context, 1, TD_FLOAT32), *y = td_tensor_ref(x), *out[TD_OUTPUT_MAX], *g;
    td_tape *tape = tape_on(step % 2);
    watch(tape, x);
    for (int i = 0; i < 20; i++) {
      ck_assert_int_eq(td_op_apply(context, td_op_find("multiply"), (td_tensor *[]){y, x}, 2, NULL, out), TD_OK);
      td_tensor_unref(y);
      y = out[0];
    }
    ck_assert_int_eq(ask(tape, y, x, NULL, &g), TD_OK);
    ck_assert_double_eq(at(keep(g), 0), 21);
    done(tape);
    td_tensor_unref(last);
    td_tensor_unref(x);
    last = y;
  }
  forget();
  ck_assert_int_lt(td_memory_live() - before, 4000); // one tensor with one record, not its chain
  td_tensor_unref(last);
}
END_TEST

int main(void) {
  const TTest *const tests[] = {
      square_of_a_variable,
      second_gradient_needs_a_persistent_tape,
      persistent_tape_answers_twice,
      intermediate_values_are_sources,
      paths_are_counted_once_each,
      nested_tapes_give_third_derivatives,
      persistent_tape_records_its_own_gradient,
      inner_tape_takes_an_outer_result_as_its_leaf,
      targets_are_summed_and_said_so,
      unconnected_sources_are_none_or_zero,
      broadcasting_is_undone,
      gradients_take_their_source_s_dtype,
      two_sources_never_share_a_gradient,
      variable_assigned_between_two_reads_sums_both,
      tensor_that_became_a_variable_is_not_watched_with_it,
      value_read_before_the_tape_is_a_constant,
      variables_can_be_left_unwatched,
      lost_variable_is_freed_at_once,
      paused_tape_records_nothing,
      reset_forgets_and_reopening_goes_on,
      slots_are_reused_and_run_out,
      no_grad_records_nothing,
      outside_of_tapes_nothing_can_record,
      record_can_be_looked_at,
      saved_tensors_go_with_the_first_gradient,
      outer_tape_keeps_what_an_inner_one_gave_up,
      value_kept_from_a_gone_tape_holds_no_history,
  };
  return tapes_run("tape", tests, sizeof tests / sizeof *tests);
}
