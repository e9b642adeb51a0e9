// Random draws: the same numbers for any size and thread count, the right distributions, dropout's two faces.
#include <math.h>
#include <string.h>
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"random_normal", "", "shape=(2,), std=-1.0", "!VALUE: std must not be negative", NULL},
    {"random_normal", "", "shape=(2,), dtype=int64", "!DTYPE: dtype must be floating", NULL},
    {"random_normal", "", "shape=(3,), mean=2.0, std=0.0", "f32 [2, 2, 2]", NULL},
    {"random_uniform", "", "shape=(2, 0)", "f32 {2, 0}", NULL},
    {"random_uniform", "", "shape=(-2,)", "!VALUE: size of axis 0 is negative: -2", NULL},
    {"random_randint", "", "low=3, high=4, shape=(3,)", "i64 [3, 3, 3]", NULL},
    {"random_randint", "", "low=4, high=4, shape=(3,)", "!VALUE: no integer is in [4, 4)", NULL},
    {"random_permutation", "", "n=1", "i64 [0]", NULL},
    {"random_permutation", "", "n=-1", "!VALUE: n is negative", NULL},
    {"bernoulli", "[0, 1]", NULL, "[0, 1]", NULL},
    {"bernoulli", "[0, 1.5]", NULL, "!VALUE: element 1 is 1.5, which is no probability", NULL},
    {"bernoulli", "i64 [0, 1]", NULL, "!DTYPE: probabilities must be floating", NULL},
    {"random_truncated_normal", "", "shape=(2,), low=1.0, high=1.0", "!VALUE: low must be below high", NULL},
    {"random_exponential", "", "shape=(2,), scale=-1.0", "!VALUE: scale must not be negative, it is -1", NULL},
    {"random_gumbel", "", "shape=(2,), scale=0.0, loc=3.0", "f32 [3, 3]", NULL},
    {"random_gamma", "[-1]", NULL, "!VALUE: element 0 of concentration is -1", NULL},
    {"random_gamma", "[0, 0]", NULL, "[0, 0]", NULL},
    {"random_poisson", "[nan]", NULL, "!VALUE: element 0 of rate is nan", NULL},
    {"random_poisson", "i64 [1]", NULL, "!DTYPE: rate must be floating, not int64", NULL},
    {"random_categorical", "[[0, -inf], [-inf, 0]]", NULL, "i64 [0, 1]", NULL},
    {"random_categorical", "[-inf, -inf, 7]", "num_samples=3", "i64 [2, 2, 2]", NULL},
    {"random_categorical", "[-inf, -inf]", NULL, "!VALUE: line 0 of the logits gives no probabilities", NULL},
    {"random_categorical", "1", NULL, "!SHAPE: logits need a last axis of categories", NULL},
    {"random_split", "i64 5", "num=0", "i64 {0}", NULL},
    {"random_split", "i64 [5]", NULL, "!VALUE: key is no key", NULL},
    {"random_split", "5", NULL, "!VALUE: key is no key", NULL},
    {"random_fold_in", "5", "data=1", "!VALUE: key is no key", NULL},
    {"dropout1d", "[[inf, nan]]", "rate=1.0", "[[0, 0]]; bool [[0]]", "[[0, 0]]"},
    {"dropout2d", "[[1, 2]]", NULL, "!SHAPE: needs channels before 2 axes: rank 3 or 4, not 2", NULL},
    {"dropout3d", "{0, 2, 2, 2, 2}", NULL, "{0, 2, 2, 2, 2}; bool {0, 2, 1, 1, 1}", NULL},
    {"alpha_dropout", "[1, 2]", "rate=0.0", "[1, 2]; bool [1, 1]", "[1, 1]"},
    {"alpha_dropout", "[1, 2]", "rate=1.0", "[0, 0]; bool [0, 0]", "[0, 0]"},
    {"dropout", "[1, 2]", "rate=1.0", "[0, 0]; bool [0, 0]", "[0, 0]"},
    {"dropout", "[1, 2]", "rate=0.0", "[1, 2]; bool [1, 1]", "[1, 1]"},
    {"dropout", "f32 [1, 2]", "training=False", "f32 [1, 2]", "[1, 1]"},
    {"dropout", "[1, 2]", "rate=1.5", "!VALUE: rate must be from 0 to 1, not 1.5", NULL},
    {"dropout", "i64 [1, 2]", NULL, "!DTYPE: needs a floating tensor, not int64", NULL},
};

static td_tensor *draw(td_context *c, const char *name, const char *args) {
  const td_op *op = td_op_find(name);
  td_sample sample = {"", args, 0, 1, NULL};
  sample_call call;
  char problem[200];
  td_tensor *out[TD_OUTPUT_MAX];
  ck_assert_msg(sample_make(c, op, &sample, SAMPLE_PLAIN, -1, &call, problem), "%s", problem);
  if (sample_run(c, op, &call, out)) ck_abort_msg("%s: %s", name, c->error.message);
  return out[0];
}

START_TEST(first_numbers_depend_on_the_seed_alone) {
  static const char *const rows[][3] = {
      {"random_normal", "shape=(7,)", "shape=(1000,)"},
      {"random_normal", "shape=(7,), dtype=float64", "shape=(100000,), dtype=float64"},
      {"random_uniform", "shape=(7,)", "shape=(8,)"},
      {"random_uniform", "shape=(7,), dtype=float64", "shape=(4, 50000), dtype=float64"},
      {"random_randint", "low=0, high=1000, shape=(7,)", "low=0, high=1000, shape=(200000,)"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    context->counter = wide->counter = 5;
    td_tensor *few = draw(context, rows[i][0], rows[i][1]);
    context->counter = 5;
    td_tensor *many = draw(context, rows[i][0], rows[i][2]), *again = draw(wide, rows[i][0], rows[i][2]);
    for (int64_t k = 0; k < 7; k++) ck_assert_double_eq(td_tensor_get_float(few, k), td_tensor_get_float(many, k));
    ck_assert_int_eq(memcmp(many->data, again->data, (size_t)(many->size * td_dtype_bytes(many->dtype))), 0);
    ck_assert(context->counter == wide->counter && context->counter > 5);
    td_tensor *next = draw(context, rows[i][0], rows[i][1]);
    ck_assert_double_ne(td_tensor_get_float(next, 0) + td_tensor_get_float(next, 1),
                        td_tensor_get_float(few, 0) + td_tensor_get_float(few, 1));
    td_tensor_unref(few);
    td_tensor_unref(many);
    td_tensor_unref(again);
    td_tensor_unref(next);
  }
}
END_TEST

static void expect_moments(const char *name, const char *args, double mean, double variance, double low, double high) {
  td_tensor *t = draw(context, name, args);
  double sum = 0, squares = 0, least = INFINITY, most = -INFINITY, n = (double)t->size;
  for (int64_t i = 0; i < t->size; i++) {
    double x = td_tensor_get_float(t, i);
    sum += x;
    squares += (x - mean) * (x - mean);
    least = fmin(least, x);
    most = fmax(most, x);
  }
  double deviation = sqrt(variance / n);
  ck_assert_msg(fabs(sum / n - mean) < 5 * deviation, "%s(%s): mean %g", name, args, sum / n);
  ck_assert_msg(fabs(squares / n / variance - 1) < .03, "%s(%s): variance %g", name, args, squares / n);
  ck_assert_msg(least >= low && most < high, "%s(%s): from %g to %g", name, args, least, most);
  td_tensor_unref(t);
}

START_TEST(distributions_have_their_moments) {
  expect_moments("random_normal", "shape=(100000,), mean=3.0, std=2.0", 3, 4, -INFINITY, INFINITY);
  expect_moments("random_normal", "shape=(100000,), dtype=float64", 0, 1, -INFINITY, INFINITY);
  expect_moments("random_uniform", "shape=(100000,), low=-1.0, high=2.0", .5, .75, -1, 2);
  expect_moments("random_uniform", "shape=(100000,), dtype=float64", .5, 1. / 12, 0, 1);
  expect_moments("random_gumbel", "shape=(100000,), loc=1.0, scale=2.0", 1 + 2 * .5772156649, 4 * 1.6449340668, -5, 40);
  expect_moments("random_exponential", "shape=(100000,), scale=3.0", 3, 9, 0, INFINITY);
  expect_moments("random_truncated_normal", "shape=(100000,)", 0, .7737413, -2, 2.0000001);
  expect_moments("random_truncated_normal", "shape=(100000,), low=-0.5, high=1.0", .2066312, .1727733, -.5, 1.0000001);
  expect_moments("random_truncated_normal", "shape=(100000,), low=3.0, high=inf", 3.2830986, .0705592, 3, INFINITY);
  expect_moments("random_truncated_normal", "shape=(100000,), low=-3.1, high=-3.0", -3.0474631, .0008291975, -3.1000001,
                 -3);
  expect_moments("random_randint", "low=-2, high=3, shape=(100000,)", 0, 2, -2, 3);
}
END_TEST

// Of 100000 draws, one for each element of a constant tensor of parameters.
static void expect_moments_of(const char *name, double parameter, const char *args, double mean, double variance) {
  const int64_t shape[] = {100000};
  const td_op *op = td_op_find(name);
  td_sample sample = {"", args, 0, 1, NULL};
  sample_call call;
  char problem[200];
  td_tensor *one = td_tensor_from_float(context, parameter, TD_FLOAT64), *out[TD_OUTPUT_MAX];
  ck_assert_msg(sample_make(context, op, &sample, SAMPLE_PLAIN, -1, &call, problem), "%s", problem);
  call.in[0] = td_tensor_view(context, one, 1, shape, (int64_t[]){0}, 0);
  call.in_count = 1;
  if (sample_run(context, op, &call, out)) ck_abort_msg("%s: %s", name, context->error.message);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < shape[0]; i++) {
    double x = td_tensor_get_float(out[0], i) - mean;
    sum += x;
    squares += x * x;
  }
  ck_assert_msg(fabs(sum / 1e5) < 5 * sqrt(variance / 1e5), "%s(%g): mean is off by %g", name, parameter, sum / 1e5);
  ck_assert_msg(fabs(squares / 1e5 / variance - 1) < .05, "%s(%g): variance %g", name, parameter, squares / 1e5);
  td_tensor_unref(out[0]);
  td_tensor_unref(one);
  sample_drop(&call);
}

START_TEST(tensors_of_parameters_have_their_moments) {
  for (int i = 0; i < 5; i++) {
    double rate = (double[]){.3, 1, 4, 12, 300}[i];
    expect_moments_of("random_poisson", rate, NULL, rate, rate);
    expect_moments_of("random_gamma", rate, "scale=2.0", 2 * rate, 4 * rate);
  }
}
END_TEST

START_TEST(neighbours_are_not_correlated) {
  td_tensor *t = draw(context, "random_normal", "shape=(100001,)");
  for (int64_t lag = 1; lag <= 4; lag++) {
    double sum = 0;
    for (int64_t i = lag; i < t->size; i++) sum += td_tensor_get_float(t, i) * td_tensor_get_float(t, i - lag);
    ck_assert_msg(fabs(sum / 1e5) < .02, "lag %d: %g", (int)lag, sum / 1e5);
  }
  td_tensor_unref(t);
}
END_TEST

START_TEST(permutations_are_all_equally_likely) {
  int counts[24] = {0};
  for (int i = 0; i < 24000; i++) {
    td_tensor *t = draw(context, "random_permutation", "n=4");
    const int64_t *p = (const int64_t *)t->data;
    int code = 0;
    for (int k = 0; k < 4; k++) { // Lehmer code
      int smaller = 0;
      for (int j = k + 1; j < 4; j++) smaller += p[j] < p[k];
      code = code * (4 - k) + smaller;
    }
    counts[code]++;
    td_tensor_unref(t);
  }
  double chi = 0;
  for (int i = 0; i < 24; i++) chi += (counts[i] - 1000.) * (counts[i] - 1000.) / 1000;
  ck_assert_msg(chi < 60, "chi squared of 23 degrees is %g", chi);
}
END_TEST

// A key's draw starts anew each time, takes nothing of the session's, and differs from another key's.
START_TEST(keys_are_apart) {
  const int64_t shape[] = {1000};
  td_tensor *keys[2], *out[TD_OUTPUT_MAX], *draws[3];
  for (int i = 0; i < 2; i++) {
    td_arg seed = {.given = 1, .i = i};
    ck_assert_int_eq(td_op_apply(context, td_op_find("random_key"), NULL, 0, &seed, out), TD_OK);
    keys[i] = out[0];
  }
  td_arg args[] = {{.given = 1, .count = 1, .ints = {shape[0]}},
                   {.given = 1, .f = 0},
                   {.given = 1, .f = 1},
                   {.given = 1, .i = TD_FLOAT32}};
  uint64_t before = context->counter;
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(td_op_apply(i ? wide : context, td_op_find("random_normal"), &keys[i == 2], 1, args, out), TD_OK);
    draws[i] = out[0];
  }
  ck_assert(context->counter == before);
  ck_assert_int_eq(memcmp(draws[0]->data, draws[1]->data, sizeof(float) * 1000), 0);
  ck_assert_int_ne(memcmp(draws[0]->data, draws[2]->data, sizeof(float) * 4), 0);
  for (int i = 0; i < 3; i++) td_tensor_unref(draws[i]);
  for (int i = 0; i < 2; i++) td_tensor_unref(keys[i]);
}
END_TEST

START_TEST(half_of_ten_thousand_is_dropped) {
  const int64_t shape[] = {100, 100};
  td_arg args[2] = {{.given = 1, .f = .5}, {.given = 1, .i = 1}};
  td_tensor *one = td_tensor_from_float(context, 1, TD_FLOAT32);
  td_tensor *ones = td_tensor_view(context, one, 2, shape, (int64_t[]){0, 0}, 0), *out[TD_OUTPUT_MAX];
  int dropped = 0;
  ck_assert_int_eq(td_op_apply(context, td_op_find("dropout"), &ones, 1, args, out), TD_OK);
  for (int64_t i = 0; i < 10000; i++) {
    double x = td_tensor_get_float(out[0], i);
    ck_assert(x == 0 || x == 2);
    dropped += x == 0;
  }
  ck_assert(dropped >= 4850 && dropped <= 5150);
  td_tensor_unref(out[0]);
  td_tensor_unref(out[1]);
  uint64_t before = context->counter;
  args[1].i = 0;
  ck_assert_int_eq(td_op_apply(context, td_op_find("dropout"), &ones, 1, args, out), TD_OK);
  ck_assert(context->counter == before);
  td_tensor_unref(out[0]);
  td_tensor_unref(out[1]);
  td_tensor_unref(ones);
  td_tensor_unref(one);
}
END_TEST

int main(void) {
  const TTest *tests[] = {first_numbers_depend_on_the_seed_alone,
                          distributions_have_their_moments,
                          neighbours_are_not_correlated,
                          tensors_of_parameters_have_their_moments,
                          keys_are_apart,
                          permutations_are_all_equally_likely,
                          half_of_ten_thousand_is_dropped};
  return cases_run("random", cases, sizeof cases / sizeof *cases, tests, 7);
}
