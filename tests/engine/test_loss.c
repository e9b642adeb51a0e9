// Losses, their reductions and warnings, and optimizer updates.
#include <math.h>
#include <string.h>
#include "engine/ops/optimizer.h"
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"cross_entropy", "[[1, 2, 3]]; i64 [2]", NULL, ".4076059644", "[[.0900305732, .2447284711, -.3347590443]]"},
    {"cross_entropy", "[[1, 2, 3]]; [[0, 0, 1]]", NULL, ".4076059644",
     "[[.0900305732, .2447284711, -.3347590443]]; [[2.4076059644, 1.4076059644, .4076059644]]"},
    {"cross_entropy", "[[1, 2, 3]]; i64 [[0, 0, 1]]", NULL, ".4076059644", NULL},
    {"cross_entropy", "f32 [[1, 2, 3]]; u8 [2]", NULL, "f32 .4076059644", NULL},
    {"cross_entropy", "[1, 2, 3]; i64 2", NULL, ".4076059644", "[.0900305732, .2447284711, -.3347590443]"},
    {"cross_entropy", "[[-431, 279, 427]]; i64 [0]", NULL, "858", "[[-1, 0, 1]]"},
    {"cross_entropy", "f32 [[-1000, 1000]]; i64 [0]", NULL, "f32 2000", "[[-1, 1]]"},
    {"cross_entropy", "[[-inf, 0]]; [[0, 1]]", NULL, "0", NULL},
    {"cross_entropy", "[[0, 0], [0, 0]]; i64 [0, 1]", "reduction=\"sum\"", "1.3862943611", "[[-.5, .5], [.5, -.5]]"},
    {"cross_entropy", "[[0, 0], [0, 0]]; i64 [0, 1]", "reduction=\"none\"", "[.6931471806, .6931471806]", NULL},
    {"cross_entropy", "[[0, 0], [0, 0]]; i64 [0, -100]", NULL, ".6931471806", "[[-.5, .5], [0, 0]]"},
    {"cross_entropy", "[[0, 0], [0, 9]]; i64 [0, 1]", "reduction=\"none\", ignore_index=1", "[.6931471806, 0]",
     "[[-.5, .5], [0, 0]]"},
    {"cross_entropy", "[[[0, 0], [0, 0]]]; i64 [[0, 1]]", NULL, ".6931471806", "[[[-.25, .25], [.25, -.25]]]"},
    {"cross_entropy", "{0, 3}; i64 {0}", "reduction=\"sum\"", "0", "{0, 3}"},
    {"cross_entropy", "[[1, 2]]; i64 [2]", NULL, "!INDEX: label 2 at index [0] is out of range for 2 classes", NULL},
    {"cross_entropy", "[[1, 2], [1, 2]]; i64 [0, -1]", NULL, "!INDEX: label -1 at index [1]", NULL},
    {"cross_entropy", "[[1, 2]]; [2]", NULL,
     "!SHAPE: input [1, 2] needs integer labels [1] or probabilities [1, 2], not float64 [1]", NULL},
    {"cross_entropy", "i64 [2]; [[1, 2]]", NULL, "!DTYPE: input holds logits", NULL},
    {"mse_loss", "[1, 2]; [1, 4]", NULL, "2", "[0, -2]; [0, 2]"},
    {"mse_loss", "f32 [1, 2]; f64 [1, 4]", "reduction=\"sum\"", "f64 4", NULL},
    {"mse_loss", "[1, 2]; [1, 4]", "reduction=\"none\"", "[0, 4]", "[0, -4]; [0, 4]"},
    {"mse_loss", "[[1], [2], [3]]; [1, 2, 3]", NULL, "!SHAPE: shapes [3, 1] and [3] would broadcast to [3, 3]", NULL},
    {"mse_loss", "[[1], [2], [3]]; [1, 2, 3]", "broadcast=True", "1.3333333333", NULL},
    {"cross_entropy", "[[0, 0]]; i64 [0]; [1, 2, 3]", NULL, "!SHAPE: weight needs one number for each of the 2", NULL},
    {"cross_entropy", "[[0, 0]]; i64 [0]", "label_smoothing=1.5", "!VALUE: label_smoothing must be from 0 to 1", NULL},
    {"cross_entropy", "[[-1000, 1000]]; i64 [0]", "label_smoothing=0.5", "1500", "[[-.75, .75]]"},
    {"cross_entropy", "[[0, 0], [0, 0]]; i64 [0, 1]; [1, 3]", NULL, ".6931471806",
     "[[-.125, .125], [.375, -.375]]; [0, 0]"},
    {"cross_entropy", "[[0, 0], [0, 0]]; i64 [0, -100]; [0, 3]", NULL, "0", NULL},
    {"nll_loss", "[[-inf, -1]]; i64 [1]", NULL, "1", "[[0, -1]]"},
    {"nll_loss", "[[1, 2]]; [[1, 2]]", NULL, "!SHAPE: input [1, 2] needs integer labels [1], not float64 [1, 2]", NULL},
    {"nll_loss", "[[1, 2]]; i64 [2]", NULL, "!INDEX: label 2 at index [0] is out of range for 2 classes", NULL},
    {"nll_loss", "2; i64 0", NULL, "!SHAPE: input is 0-d", NULL},
    {"mse_loss", "[nan, 2]; [1, 4]", "reduction=\"none\"", "[nan, 4]", "[nan, -4]; [nan, 4]"},
    {"mse_loss", "[1e200]; [-1e200]", NULL, "inf", "[4e200]; [-4e200]"},
    {"l1_loss", "[1, 2, nan]; [1, 4, 0]", "reduction=\"none\"", "[0, 2, nan]", "[0, -1, 0]; [0, 1, 0]"},
    {"huber_loss", "[1, 3]; [0, 0]", "delta=0.0", "!VALUE: delta must be above 0, not 0", NULL},
    {"huber_loss", "[-1, inf, 3]; [0, 0, 0]", "delta=1.0, reduction=\"none\"", "[.5, inf, 2.5]",
     "[-1, 1, 1]; [1, -1, -1]"},
    {"huber_loss", "[-1, 3]; [0, 0]", "delta=inf, reduction=\"none\"", "[.5, 4.5]", "[-1, 3]; [1, -3]"},
    {"smooth_l1_loss", "[0, 3]; [0, 0]", "beta=0.0, reduction=\"none\"", "[0, 3]", "[0, 1]; [0, -1]"},
    {"smooth_l1_loss", "[0, 3]; [0, 0]", "beta=-1.0", "!VALUE: beta must not be negative, it is -1", NULL},
    {"binary_cross_entropy", "[0, 1, 1]; [0, 1, 0]", "reduction=\"none\"", "[0, 0, 100]", NULL},
    {"binary_cross_entropy", "[[.5, -.5]]; [[0, 1]]", NULL, "!VALUE: element [0, 1] of input is -0.5, which is no",
     NULL},
    {"binary_cross_entropy", "[nan]; [1]", NULL, "nan", NULL},
    {"binary_cross_entropy", "[.5, .5]; [0, 1]; [1, 2, 3]", NULL, "!SHAPE: weight doesn't broadcast to the shape",
     NULL},
    {"binary_cross_entropy_with_logits", "[1000, -1000, 1000, -1000, inf, -inf]; [1, 0, 0, 1, 1, 0]",
     "reduction=\"none\"", "[0, 0, 1000, 1000, 0, 0]", "[0, 0, 1, -1, 0, 0]; [-1000, 1000, -1000, 1000, -inf, inf]"},
    {"kl_div", "[-inf, -1]; [0, 1]", "reduction=\"none\"", "[0, 1]", "[0, -1]; [0, 2]"},
    {"kl_div", "[-inf, -1]; [-inf, 0]", "reduction=\"none\", log_target=True", "[0, 1]", "[0, -1]; [0, 2]"},
    {"kl_div", "[[-1, -1]]; [[1, 1]]", "reduction=\"batchmean\"", "2", NULL},
    {"gaussian_nll_loss", "[1]; [1]; [-1]", NULL, "!VALUE: element [0] of var is -1.0, which is no variance", NULL},
    {"gaussian_nll_loss", "[1]; [2]; [0]", "eps=0.5", ".6534264097", "[-2]; [2]; [-1]"},
    {"hinge_loss", "[1, 2, 0]; [1, 1, -1]", "reduction=\"none\"", "[0, 0, 1]", "[-1, 0, 1]; [-1, 0, 0]"},
    {"soft_margin_loss", "[1000, -1000]; [1, 1]", "reduction=\"none\"", "[0, 1000]", "[0, -1]; [0, 1000]"},
    {"hinge_embedding_loss", "[.5, 1, 2]; i64 [1, -1, -1]", "reduction=\"none\"", "[.5, 0, 0]", "[1, -1, 0]"},
    {"margin_ranking_loss", "[1, 2]; [3, 0]; [1, 1]", "reduction=\"none\"", "[2, 0]", "[-1, 0]; [1, 0]; [2, 0]"},
    {"mse_loss", "{0, 3}; {0, 3}", NULL, "nan", "{0, 3}; {0, 3}"},
    {"adam_update", "[1]; [0]; [0]; [1]", "step=1, eps=0.1", "[.9990909091]; [.1]; [.001]", NULL},
    {"adam_update", "[1]; [0]; [0]; [0]", "step=1, lr=0.1, weight_decay=0.1", "[.99]; [0]; [0]", NULL},
    {"adam_update", "[1]; [0]; [0]; [0]", "step=1, lr=0.1, weight_decay=0.1, decoupled=False",
     "[.90000001]; [.01]; [.00001]", NULL},
    {"adam_update", "[1]; [0]; [0]; [1e-8]", "step=1, lr=1e-3", "[.9995]; [1e-9]; [1e-19]", NULL},
    {"adam_update", "[1]; [0]; [0]; [1]", "step=0", "!VALUE: step counts from 1", NULL},
    {"adam_update", "[1]; [0]; [0, 0]; [1]", "step=1", "!SHAPE: v has another shape than variable", NULL},
    {"sgd_update", "[1]; [0]; [2]", "lr=0.1", "[.8]; [-.2]", NULL},
    {"sgd_update", "[1]; [-.5]; [2]", "lr=0.1, momentum=0.9", "[.35]; [-.65]", NULL},
    {"sgd_update", "[1]; [-.5]; [2]", "lr=0.1, momentum=0.9, nesterov=True", "[.215]; [-.65]", NULL},
};

START_TEST(all_labels_ignored_warns) {
  run_case(&(op_case){"cross_entropy", "[[1, 2, 3]]; i64 [-100]", NULL, "0", "[[0, 0, 0]]"});
  ck_assert_str_eq(warning, "cross_entropy: every label is ignored, so the loss is 0");
}
END_TEST

START_TEST(hints_tell_the_remedy) {
  static const char *const rows[][4] = {
      {"mse_loss", "{3, 1}", "{3}", "target.reshape((3, 1)) fits; broadcast=True compares all pairs"},
      {"mse_loss", "{3}", "{3, 1}", "target.reshape((3,)) fits; broadcast=True compares all pairs"},
      {"mse_loss", "{3}", "{2, 3}", "broadcast=True repeats the smaller one"},
      {"cross_entropy", "i64 {3}", "{3, 2}", "the order is (input, target): swap them"},
      {"cross_entropy", "{3, 2}", "i64 {3, 1}", "target.squeeze(-1) drops its last axis"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *a = rows[i][1], *b = rows[i][2];
    td_tensor *in[] = {read_tensor(&a), read_tensor(&b)}, *out[TD_OUTPUT_MAX];
    ck_assert_int_ne(td_op_apply(context, td_op_find(rows[i][0]), in, 2, NULL, out), TD_OK);
    ck_assert_str_eq(context->error.hint, rows[i][3]);
    td_tensor_unref(in[0]);
    td_tensor_unref(in[1]);
  }
}
END_TEST

static td_tensor *ramp(uint8_t dtype, int64_t size, double from, double by) {
  td_tensor *t = td_tensor_new(context, dtype, 1, &size);
  for (int64_t i = 0; i < size; i++) {
    if (dtype == TD_FLOAT32) ((float *)t->data)[i] = (float)(from + by * (double)i);
    else ((double *)t->data)[i] = from + by * (double)i;
  }
  return t;
}

enum { SIZE = 50001 };

typedef struct updated { // a variable, its slots and a gradient
  td_tensor *variable, *slots[TD_UPDATE_SLOTS], *gradient;
} updated;

static updated updated_new(uint8_t dtype) {
  return (updated){ramp(dtype, SIZE, -1, 1e-4),
                   {ramp(dtype, SIZE, 0, 1e-5), ramp(dtype, SIZE, 1, 1e-5), ramp(dtype, SIZE, 2, 1e-5)},
                   ramp(TD_FLOAT32, SIZE, 2, -1e-4)};
}

static void updated_free(updated *u) {
  td_tensor_unref(u->variable);
  td_tensor_unref(u->gradient);
  for (int i = 0; i < TD_UPDATE_SLOTS; i++) td_tensor_unref(u->slots[i]);
}

static void update(td_context *by, const td_update *rule, const updated *u) {
  td_update_item item = {u->variable, {u->slots[0], u->slots[1], u->slots[2]}, u->gradient};
  ck_assert_int_eq(td_update_run(by, rule, &item, 1), TD_OK);
}

START_TEST(updates_have_the_same_bits_on_any_number_of_threads) {
  const td_update_rule *rule;
  for (int i = 0; (rule = td_update_rule_at(i)); i++) {
    for (int turn = 0; turn < 2; turn++) {
      uint8_t dtype = turn ? TD_FLOAT64 : TD_FLOAT32;
      size_t bytes = (size_t)SIZE * (size_t)td_dtype_bytes(dtype);
      updated one = updated_new(dtype), many = updated_new(dtype);
      td_update step = {rule, .step = 3, .rate = .01, .numbers = {.9, .99, .125, .25}, .scale = 1, .weight_decay = .1};
      update(context, &step, &one);
      update(wide, &step, &many);
      ck_assert_msg(!memcmp(one.variable->data, many.variable->data, bytes), "%s", rule->name);
      for (int k = 0; k < rule->slots; k++)
        ck_assert_msg(!memcmp(one.slots[k]->data, many.slots[k]->data, bytes), "%s, slot %d", rule->name, k);
      updated_free(&one);
      updated_free(&many);
    }
  }
}
END_TEST

START_TEST(adam_in_place_agrees_with_the_op) {
  updated u = updated_new(TD_FLOAT64);
  td_tensor *in[] = {u.variable, u.slots[0], u.slots[1], u.gradient}, *out[TD_OUTPUT_MAX];
  td_arg args[] = {{.given = 1, .i = 3},    {.given = 1, .f = .01}, {.given = 1, .f = .9}, {.given = 1, .f = .99},
                   {.given = 1, .f = 1e-7}, {.given = 1, .f = .1},  {.given = 1, .i = 1}};
  ck_assert_int_eq(td_op_apply(context, td_op_find("adam_update"), in, 4, args, out), TD_OK);
  td_update step = {td_update_rule_find("adam"), 3, .01, {.9, .99, 1e-7}, 1, .1, true};
  update(wide, &step, &u);
  for (int k = 0; k < 3; k++) {
    for (int64_t i = 0; i < SIZE; i++) {
      double got = td_tensor_get_float(in[k], i), wanted = td_tensor_get_float(out[k], i);
      ck_assert_msg(fabs(got - wanted) <= 1e-13, "result %d: %.17g, not %.17g", k, got, wanted);
    }
    td_tensor_unref(out[k]);
  }
  updated_free(&u);
}
END_TEST

START_TEST(plain_descent_goes_against_the_gradient) {
  updated u = updated_new(TD_FLOAT32);
  double before = td_tensor_get_float(u.variable, 7), by = .5 * td_tensor_get_float(u.gradient, 7);
  td_update step = {td_update_rule_find("sgd"), .step = 1, .rate = .5, .scale = 1};
  update(wide, &step, &u);
  ck_assert_double_le(fabs(td_tensor_get_float(u.variable, 7) - (before - by)), 1e-6);
  updated_free(&u);
}
END_TEST

int main(void) {
  const TTest *tests[] = {all_labels_ignored_warns, hints_tell_the_remedy,
                          updates_have_the_same_bits_on_any_number_of_threads, adam_in_place_agrees_with_the_op,
                          plain_descent_goes_against_the_gradient};
  return cases_run("loss", cases, sizeof cases / sizeof *cases, tests, 5);
}
