// Fourier transforms: errors, values at the edges, and lengths of every kind against the sum that defines them.
#include <math.h>
#include <string.h>
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"fft", "[1, 2, 3]", NULL, "!SHAPE: needs pairs: a last axis of size 2", NULL},
    {"fft", "1", NULL, "!SHAPE: needs pairs", NULL},
    {"fft", "[[1, 2]]", "axis=1", "!INDEX: axis 1 is out of range for rank 1", NULL},
    {"fft", "[[1, 2]]", "n=0", "!VALUE: a transform of 0 points: n must be at least 1", NULL},
    {"fft", "[[1, 2]]", "n=9223372036854775807", "!VALUE: n is too large", NULL},
    {"fft", "{0, 2}", NULL, "!VALUE: a transform of 0 points", NULL},
    {"fft", "f32 [[1, 2]]", "n=2", "f32 [[1, 2], [1, 2]]", "[[2, 2]]"},
    {"rfft", "1", NULL, "!INDEX: axis -1 is out of range for rank 0", NULL},
    {"rfft", "i64 [1, 2]", NULL, "f32 [[3, 0], [-1, 0]]", NULL},
    {"rfft", "{0, 3}", NULL, "{0, 2, 2}", NULL},
    {"rfft", "{1, 1, 1, 1, 0, 1, 1, 1}", "axis=0", "!SHAPE: no axis is left for the pairs", NULL},
    {"irfft", "[[1, 0]]", NULL, "!VALUE: a transform of 0 points", NULL},
    {"irfft", "[[1, 5], [2, 7]]", NULL, "[1.5, -.5]", "[[1, 0], [0, 0]]"},
};

static td_tensor *line_of(int64_t n) { // n pairs
  const int64_t shape[] = {n, 2};
  td_tensor *t = td_tensor_new(context, TD_FLOAT64, 2, shape);
  for (int64_t i = 0; i < t->size; i++)
    ((double *)t->data)[i] = sin(1.3 * (double)i) + cos(0.7 * (double)(i * i % 101));
  return t;
}

static double distance_from_sum(const td_tensor *x, const td_tensor *y) { // of every so many results
  int64_t n = x->shape[0];
  const double *a = (const double *)x->data, *b = (const double *)y->data;
  double worst = 0;
  for (int64_t k = 0; k < n; k += n / 16 + 1) {
    double re = 0, im = 0;
    for (int64_t j = 0; j < n; j++) {
      double angle = -2 * M_PI * (double)(j * k % n) / (double)n, c = cos(angle), s = sin(angle);
      re += a[2 * j] * c - a[2 * j + 1] * s;
      im += a[2 * j] * s + a[2 * j + 1] * c;
    }
    worst = fmax(worst, fmax(fabs(re - b[2 * k]), fabs(im - b[2 * k + 1])));
  }
  return worst / sqrt((double)n);
}

START_TEST(any_length_agrees_with_the_sum) {
  static const int64_t lengths[] = {1,  2,  3,  4,  5,  6,   7,    8,    9,    11,   13,   17,
                                    26, 34, 49, 64, 97, 121, 1000, 1009, 4096, 5003, 30030};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    td_tensor *x = line_of(lengths[i]), *out[TD_OUTPUT_MAX], *back[TD_OUTPUT_MAX];
    ck_assert_int_eq(td_op_apply(context, td_op_find("fft"), &x, 1, NULL, out), TD_OK);
    double worst = distance_from_sum(x, out[0]);
    ck_assert_msg(worst < 1e-12, "%lld points: %g", (long long)lengths[i], worst);
    ck_assert_int_eq(td_op_apply(wide, td_op_find("ifft"), out, 1, NULL, back), TD_OK);
    for (int64_t k = 0; k < x->size; k++)
      ck_assert_double_le(fabs(td_tensor_get_float(back[0], k) - td_tensor_get_float(x, k)), 1e-13);
    td_tensor_unref(x);
    td_tensor_unref(out[0]);
    td_tensor_unref(back[0]);
  }
}
END_TEST

// Lines beside each other don't touch: one with a NaN leaves the others as they were, on any number of threads.
START_TEST(lines_are_transformed_apart) {
  enum { LINES = 100, POINTS = 60 };
  const int64_t shape[] = {LINES, POINTS};
  td_tensor *x = td_tensor_new(context, TD_FLOAT32, 2, shape), *clean[TD_OUTPUT_MAX], *other[TD_OUTPUT_MAX];
  for (int64_t i = 0; i < x->size; i++) ((float *)x->data)[i] = sinf((float)i);
  ck_assert_int_eq(td_op_apply(context, td_op_find("rfft"), &x, 1, NULL, clean), TD_OK);
  ((float *)x->data)[5 * POINTS + 7] = NAN;
  ck_assert_int_eq(td_op_apply(wide, td_op_find("rfft"), &x, 1, NULL, other), TD_OK);
  size_t line = (POINTS / 2 + 1) * 2 * sizeof(float);
  for (size_t l = 0; l < LINES; l++)
    ck_assert_int_eq(memcmp(clean[0]->data + l * line, other[0]->data + l * line, line) != 0, l == 5);
  td_tensor_unref(x);
  td_tensor_unref(clean[0]);
  td_tensor_unref(other[0]);
}
END_TEST

int main(void) {
  const TTest *tests[] = {any_length_agrees_with_the_sum, lines_are_transformed_apart};
  return cases_run("fourier", cases, sizeof cases / sizeof *cases, tests, 2);
}
