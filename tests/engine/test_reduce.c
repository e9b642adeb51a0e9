// Reductions, running sums and searches: values, gradients at ties, zeros and infinities, empty axes, long sums.
#include <math.h>
#include "engine/ops/flat.h"
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"sum", "[[1, 2], [3, 4]]", NULL, "f64 10", "[[1, 1], [1, 1]]"},
    {"sum", "f32 [[1, 2], [3, 4]]", "axis=0", "f32 [4, 6]", "[[1, 1], [1, 1]]"},
    {"sum", "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]", "axis=(0, 2), keepdims=True", "[[[14], [22]]]", NULL},
    {"sum", "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]", "axis=(0, 2)", "[14, 22]", NULL},
    {"sum", "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]", "axis=1", "[[4, 6], [12, 14]]", NULL},
    {"sum", "[1, 2]", "axis=()", "[1, 2]", NULL},
    {"sum", "u8 [200, 100, 50]", NULL, "i64 350", NULL},
    {"sum", "bool [1, 1, 0]", NULL, "i64 2", NULL},
    {"sum", "i32 [2147483647, 1]", NULL, "i64 2147483648", NULL},
    {"sum", "f16 [1, 2]", NULL, "f16 3", "f16 [1, 1]"},
    {"sum", "f32 {0}", NULL, "f32 0", NULL},
    {"sum", "f32 {0, 2}", "axis=0", "f32 [0, 0]", NULL},
    {"sum", "[1, 2]", "axis=1", "!INDEX: axis 1 is out of range for rank 1", NULL},
    {"sum", "[[1]]", "axis=(0, -2)", "!VALUE: axis 0 is named twice", NULL},
    {"mean", "[[1, 2], [3, 5]]", "axis=-1", "[1.5, 4]", "[[.5, .5], [.5, .5]]"},
    {"mean", "i64 [1, 2]", NULL, "f32 1.5", NULL},
    {"prod", "[4, 0]", NULL, "0", "[0, 4]"},
    {"prod", "[0, 2, 3]", NULL, "0", "[6, 0, 0]"},
    {"prod", "[2, 0, 3, 4]", NULL, "0", "[0, 24, 0, 0]"},
    {"prod", "[0, 0, 3]", NULL, "0", "[0, 0, 0]"},
    {"prod", "[[1, 2], [3, 4]]", "axis=0", "[3, 8]", "[[3, 4], [1, 2]]"},
    {"prod", "{0, 2}", "axis=0", "[1, 1]", NULL},
    {"prod", "u8 [200, 2]", NULL, "i64 400", NULL},
    {"max", "[1, 3, 3, 2]", NULL, "3", "[0, .5, .5, 0]"},
    {"max", "[1, nan, 3]", NULL, "nan", "[0, 1, 0]"},
    {"max", "[[1, 5], [7, 3]]", "axis=1", "[5, 7]", "[[0, 1], [1, 0]]"},
    {"max", "i32 [-5, -2147483648]", NULL, "i32 -5", NULL},
    {"max", "[-inf, -inf]", NULL, "-inf", "[.5, .5]"},
    {"max", "{0}", NULL, "!VALUE: no identity", NULL},
    {"max", "{0, 5}", "axis=0", "!VALUE: no identity", NULL},
    {"max", "{0, 5}", "axis=1", "{0}", NULL},
    {"min", "f32 [[4, 2], [2, 9]]", NULL, "f32 2", "f32 [[0, .5], [.5, 0]]"},
    {"min", "bool [1, 0]", NULL, "bool 0", NULL},
    {"min", "[3, nan]", NULL, "nan", NULL},
    {"nansum", "[1, nan, 2]", NULL, "3", "[1, 0, 1]"},
    {"nansum", "f32 [nan, nan]", NULL, "f32 0", NULL},
    {"nansum", "i32 [1, 2]", NULL, "i64 3", NULL},
    {"nanprod", "[2, nan, 0, 3]", NULL, "0", "[0, 0, 6, 0]"},
    {"nanprod", "[nan]", NULL, "1", "[0]"},
    {"nanmax", "[nan, 3, 3, 1]", NULL, "3", "[0, .5, .5, 0]"},
    {"nanmax", "[[nan, nan], [nan, -inf]]", "axis=1", "[nan, -inf]", NULL},
    {"nanmin", "f32 [nan, 3, 1]", NULL, "f32 1", NULL},
    {"nanmin", "{0}", NULL, "!VALUE: no identity", NULL},
    {"nanmean", "[[1, nan, 3], [nan, nan, nan]]", "axis=1", "[2, nan]", "[[.5, 0, .5], [0, 0, 0]]"},
    {"nanmean", "[inf, 1]", NULL, "inf", NULL},
    {"nanvar", "[1, nan, 3]", NULL, "1", "[-1, 0, 1]"},
    {"nanvar", "[[1, 2], [nan, 3]]", "axis=0, ddof=1", "[nan, .5]", NULL},
    {"nanstd", "[1, nan, 5]", "keepdims=True", "[2]", "[-.5, 0, .5]"},
    {"nanstd", "f32 [nan, .1, .1, .1]", NULL, "f32 0", "[0, 0, 0, 0]"},
    {"aminmax", "[3, 1, nan]", NULL, "nan", NULL},
    {"aminmax", "{0}", NULL, "!VALUE: no identity", NULL},
    {"any", "[[0, 0], [0, nan]]", "axis=1", "bool [0, 1]", NULL},
    {"all", "i64 [[1, 2], [0, 3]]", "axis=1", "bool [1, 0]", NULL},
    {"any", "{0}", NULL, "bool 0", NULL},
    {"all", "{0}", NULL, "bool 1", NULL},
    {"count_nonzero", "[[1, 0], [2, -3]]", "axis=0", "i64 [2, 1]", NULL},
    {"var", "[1, 2, 3, 4]", NULL, "1.25", "[-.75, -.25, .25, .75]"},
    {"var", "[[1, 2], [3, 6]]", "axis=1, ddof=1", "[.5, 4.5]", NULL},
    {"std", "[3.4, 5.6, 7.8]", NULL, "1.7962924780409972", NULL},
    {"std", "[3.4, 5.6, 7.8]", "ddof=1", "2.2", NULL},
    {"std", "[2, 2, 2]", NULL, "0", "[0, 0, 0]"},
    {"std", "[2, 2, 2]", "ddof=1", "0", "[0, 0, 0]"},
    {"std", "f32 [.1, .1, .1]", NULL, "f32 0", "[0, 0, 0]"},
    {"logsumexp", "[-inf, -inf]", NULL, "-inf", "[0, 0]"},
    {"logsumexp", "[-inf, 1]", NULL, "1", "[0, 1]"},
    {"logsumexp", "[inf, 1]", NULL, "inf", "[1, 0]"},
    {"logsumexp", "[1000, 1000]", NULL, "1000.6931471805599", "[.5, .5]"},
    {"logsumexp", "{0}", NULL, "-inf", NULL},
    {"norm", "[0, 0, 0]", NULL, "0", "[0, 0, 0]"},
    {"norm", "[3, -4]", NULL, "5", "[.6, -.8]"},
    {"norm", "[3, -4, 0]", "ord=1", "7", "[1, -1, 0]"},
    {"norm", "[3, -4, 4]", "ord=inf", "4", "[0, -.5, .5]"},
    {"norm", "[0, 0]", "ord=inf", "0", "[0, 0]"},
    {"norm", "[1, 2]", "ord=3", "2.0800838230519041", "[.2311204, .9244816]"},
    {"norm", "[3e200, 4e200]", NULL, "5e200", "[.6, .8]"},
    {"norm", "[4, -9, 0]", "ord=0.5", "25", "[2.5, -1.6666666666666667, 0]"},
    {"norm", "[4, -9, 0]", "ord=0", "2", NULL},
    {"norm", "[4, -2, 2]", "ord=-inf", "2", "[0, -.5, .5]"},
    {"norm", "[4, -2, 0]", "ord=-1", "0", "[0, 0, 0]"},
    {"norm", "[4, -4]", "ord=-1", "2", "[.25, -.25]"},
    {"norm", "[3e-200, 4e-200]", NULL, "5e-200", "[.6, .8]"},
    {"norm", "[3e200, 4e200]", "ord=4", "4.284572294953817e200", NULL},
    {"norm", "[inf, 1]", "ord=3", "inf", NULL},
    {"norm", "[nan, 1]", "ord=3", "nan", NULL},
    {"norm", "[nan, 1]", "ord=inf", "nan", NULL},
    {"norm", "[1]", "ord=nan", "!VALUE: ord is NaN", NULL},
    {"norm", "{0}", "ord=inf", "!VALUE: no identity for ord inf", NULL},
    {"norm", "{0}", "ord=-1", "!VALUE: no identity for ord -1", NULL},
    {"norm", "{0, 2}", "axis=1, ord=inf", "{0}", NULL},
    {"cumsum", "u8 [200, 100, 50]", NULL, "i64 [200, 300, 350]", NULL},
    {"cumsum", "[[1, 2], [3, 4]]", "axis=0", "[[1, 2], [4, 6]]", "[[2, 2], [1, 1]]"},
    {"cumsum", "[[1, 2], [3, 4]]", NULL, "[1, 3, 6, 10]", "[[4, 3], [2, 1]]"},
    {"cumprod", "[0]", "axis=0", "[0]", "[1]"},
    {"cumprod", "[2, 0, 3, 4]", NULL, "[2, 0, 0, 0]", "[1, 32, 0, 0]"},
    {"cumsum", "[1, 2, 4]", "axis=0, exclusive=True", "[0, 1, 3]", "[2, 1, 0]"},
    {"cumsum", "[1, 2, 4]", "axis=0, reverse=True", "[7, 6, 4]", "[1, 2, 3]"},
    {"cumsum", "[[1, 2], [3, 4]]", "axis=2", "!INDEX: axis 2 is out of range for rank 2", NULL},
    {"cumprod", "[2, 3, 4]", "axis=0, exclusive=True, reverse=True", "[12, 4, 1]", "[0, 4, 4]"},
    {"cumprod", "f32 {0, 3}", "axis=0", "f32 {0, 3}", NULL},
    {"cummax", "[1, 3, 3, nan, 5]", "axis=0", "[1, 3, 3, nan, nan]", "[1, 1, 1, 2, 0]"},
    {"cummin", "i32 [[3, 1], [2, 2]]", "axis=0", "i32 [[3, 1], [2, 1]]", NULL},
    {"cummin", "bool [1, 0, 1]", NULL, "bool [1, 0, 0]", NULL},
    {"logcumsumexp", "[-inf, -inf, 1]", "axis=0", "[-inf, -inf, 1]", "[0, 0, 1]"},
    {"logcumsumexp", "[1000, 1000]", "axis=0", "[1000, 1000.6931471805599]", "[1.5, .5]"},
    {"logcumsumexp", "[1, inf, 1]", "axis=0", "[1, inf, inf]", NULL},
    {"logcumsumexp", "[-1000, 0]", "axis=0", "[-1000, 0]", "[1, 1]"},
    {"sort", "[3, nan, 1, -0.0, 0]", NULL, "[-0.0, 0, 1, 3, nan]", "[1, 1, 1, 1, 1]"},
    {"sort", "i32 [[3, -1], [-2147483648, 2]]", "axis=0, descending=True", "i32 [[3, 2], [-2147483648, -1]]", NULL},
    {"sort", "bool [1, 0, 1]", NULL, "bool [0, 1, 1]", NULL},
    {"sort", "[1]", "axis=1", "!INDEX: axis 1 is out of range for rank 1", NULL},
    {"argsort", "[nan, nan, nan, 2, nan, nan]", NULL, "i64 [3, 0, 1, 2, 4, 5]", NULL},
    {"argsort", "[2, 1, 2, 1]", "descending=True", "i64 [0, 2, 1, 3]", NULL},
    {"topk", "[1, 5, 5, nan]", "k=2", "[nan, 5]", "[0, 1, 0, 1]"},
    {"topk", "[1]", "k=2", "!VALUE: k must be 0 to 1", NULL},
    {"kthvalue", "[1, 5, 2]", "k=0", "!VALUE: k must be 1 to 3", NULL},
    {"median", "[1, nan, 2]", NULL, "nan", "[0, 1, 0]"},
    {"median", "f32 {0}", NULL, "f32 nan", NULL},
    {"nanmedian", "[[1, nan, 2], [nan, nan, nan]]", "axis=1", "[1.5, nan]", NULL},
    {"nanmedian", "i64 [1, 2, 9]", NULL, "f32 2", NULL},
    {"quantile", "[1, 2]; 2", NULL, "!VALUE: q must be 0 to 1, not 2", NULL},
    {"quantile", "[1, 2]; nan", NULL, "!VALUE: q must be 0 to 1, not nan", NULL},
    {"quantile", "[1, 2]; bool 1", NULL, "!DTYPE: q must be numbers, not bool", NULL},
    {"quantile", "[inf, inf, 1]; 0.75", NULL, "inf", NULL},
    {"quantile", "[5, 1, 2]; [[0.25, 0.75], [0.5, 1]]", NULL, "[[1.5, 3.5], [2, 5]]",
     "[1.5, 0.5, 2]; [[2, 6], [0, 0]]"},
    {"nanquantile", "[[5, nan, 1, 2], [nan, nan, 1, nan]]; 0.25", "axis=1", "[1.5, 1]",
     "[[0, 0, 0.5, 0.5], [0, 0, 1, 0]]; 2"},
    {"percentile", "[5, 1, 2]; 75", "method=\"lower\"", "2", "[0, 0, 1]; 0"},
    {"searchsorted", "1; 2", NULL, "!SHAPE: the sorted sequence must have an axis", NULL},
    {"bincount", "[1]; none", NULL, "!DTYPE: counts integers, not float64", NULL},
    {"argmax", "[[1, 9, 9], [7, 3, 7]]", "axis=1", "i64 [1, 0]", NULL},
    {"argmax", "[[1, 9], [7, 3]]", NULL, "i64 1", NULL},
    {"argmax", "[1, nan, 9]", NULL, "i64 1", NULL},
    {"argmin", "[[4, 9], [7, 3]]", "axis=0, keepdims=True", "i64 [[0, 1]]", NULL},
    {"argmax", "{0}", NULL, "!VALUE: the axis is empty", NULL},
    {"argmax", "{0, 3}", "axis=1", "i64 {0}", NULL},
    {"nonzero", "bool [[0, 1], [1, 0]]", NULL, "i64 [[0, 1], [1, 0]]", NULL},
    {"nonzero", "3", NULL, "i64 {1, 0}", NULL},
};

START_TEST(empty_mean_warns) {
  run_case(&(op_case){"mean", "{0}", NULL, "nan", NULL});
  ck_assert_str_eq(warning, "mean of an empty tensor is NaN");
}
END_TEST

static td_tensor *reduce(td_context *c, const char *name, td_tensor *x, const td_arg *axis) {
  td_arg args[3] = {*axis};
  td_tensor *out[TD_OUTPUT_MAX];
  args[1].given = 1;
  if (td_op_apply(c, td_op_find(name), &x, 1, args, out)) ck_abort_msg("%s: %s", name, c->error.message);
  return out[0];
}

START_TEST(long_means_keep_their_digits) {
  const int64_t all[] = {1 << 25}, tall[] = {1 << 21, 3}, strides[] = {0};
  const td_arg none = {0}, first = {.given = 1, .count = 1, .ints = {0}};
  td_tensor *one = td_tensor_from_float(context, 1, TD_FLOAT32),
            *ones = td_tensor_view(context, one, 1, all, strides, 0);
  td_tensor *mean = reduce(context, "mean", ones, &none);
  ck_assert_double_eq(td_tensor_get_float(mean, 0), 1);
  td_tensor_unref(mean);
  td_tensor_unref(ones);
  td_tensor_unref(one);
  td_tensor *x = td_tensor_new(context, TD_FLOAT32, 2, tall);
  double exact[3] = {0};
  for (int64_t i = 0; i < x->size; i++) {
    ((float *)x->data)[i] = 285 + (float)(i * 7919 % 1000) / 500;
    exact[i % 3] += (double)((float *)x->data)[i] / (double)tall[0];
  }
  td_tensor *narrow = reduce(context, "mean", x, &first), *again = reduce(wide, "mean", x, &first);
  for (int i = 0; i < 3; i++) {
    ck_assert_double_le(fabs(td_tensor_get_float(narrow, i) - exact[i]), 1e-6 * exact[i]);
    ck_assert_double_eq(td_tensor_get_float(narrow, i), td_tensor_get_float(again, i));
  }
  td_tensor_unref(x);
  td_tensor_unref(narrow);
  td_tensor_unref(again);
}
END_TEST

// Neighbours on either axis that add up to more than a float holds, where all of a line are 0.
START_TEST(parts_of_sums_may_overflow) {
  const int64_t shapes[][2] = {{256, 256}, {8192, 8}};
  for (int k = 0; k < 2; k++) {
    td_tensor *x = td_tensor_new(context, TD_FLOAT32, 2, shapes[k]);
    for (int64_t i = 0; i < x->size; i++) {
      int64_t row = i / shapes[k][1], column = i % shapes[k][1];
      ((float *)x->data)[i] = row / 64 % 2 == column / (k ? 4 : 64) % 2 ? 3e38F : -3e38F;
    }
    for (int mask = 1; mask < 4; mask++) {
      td_arg axes = {.given = 1};
      for (int d = 0; d < 2; d++)
        if (mask >> d & 1) axes.ints[axes.count++] = d;
      td_tensor *total = reduce(wide, "sum", x, &axes), *mean = reduce(wide, "mean", x, &axes);
      for (int64_t i = 0; i < total->size; i++) {
        ck_assert_double_eq(td_tensor_get_float(total, i), 0);
        ck_assert_double_eq(td_tensor_get_float(mean, i), 0);
      }
      td_tensor_unref(total);
      td_tensor_unref(mean);
    }
    td_tensor_unref(x);
  }
}
END_TEST

// Every shape of walk (rows, columns, blocks, copies) against plain sums.
START_TEST(walks_agree_with_plain_sums) {
  const int64_t shape[] = {3, 70, 1100};
  static const char *const names[] = {"sum", "max", "min"};
  td_tensor *x = td_tensor_new(context, TD_FLOAT32, 3, shape);
  for (int64_t i = 0; i < x->size; i++) ((float *)x->data)[i] = (float)(i * 37 % 1009) - 500;
  for (int mask = 0; mask < 8; mask++) {
    td_arg axes = {.given = 1};
    for (int d = 0; d < 3; d++)
      if (mask >> d & 1) axes.ints[axes.count++] = d;
    for (int n = 0; n < 3; n++) {
      td_tensor *narrow = reduce(context, names[n], x, &axes), *again = reduce(wide, names[n], x, &axes);
      double *plain = td_memory_new((size_t)narrow->size * sizeof *plain);
      for (int64_t i = 0; i < narrow->size; i++) plain[i] = n == 0 ? 0 : n == 1 ? -INFINITY : INFINITY;
      for (int64_t i = 0; i < x->size; i++) {
        int64_t at[] = {i / (70 * 1100), i / 1100 % 70, i % 1100}, to = 0;
        for (int d = 0; d < 3; d++)
          if (!(mask >> d & 1)) to = to * shape[d] + at[d];
        double value = (double)((float *)x->data)[i];
        plain[to] = n == 0 ? plain[to] + value : n == 1 ? fmax(plain[to], value) : fmin(plain[to], value);
      }
      for (int64_t i = 0; i < narrow->size; i++) {
        double value = td_tensor_get_float(narrow, i);
        if (value != td_tensor_get_float(again, i) || fabs(value - plain[i]) > 1e-6 * fabs(plain[i]))
          ck_abort_msg("%s, mask %d, element %d", names[n], mask, (int)i);
      }
      td_memory_free(plain);
      td_tensor_unref(narrow);
      td_tensor_unref(again);
    }
  }
  td_tensor_unref(x);
}
END_TEST

static td_tensor *apply(td_context *c, const char *name, td_tensor *x, const td_arg *args) {
  td_tensor *out[TD_OUTPUT_MAX];
  if (td_op_apply(c, td_op_find(name), &x, 1, args, out)) ck_abort_msg("%s: %s", name, c->error.message);
  for (int i = 1; i < td_op_outputs(td_op_find(name), out); i++) td_tensor_unref(out[i]);
  return out[0];
}

static void expect_near(const char *name, int view, int mask, const td_tensor *a, const td_tensor *b, double relative) {
  ck_assert_int_eq(a->size, b->size);
  for (int64_t i = 0; i < a->size; i++) {
    double x = td_tensor_get_float(a, i), y = td_tensor_get_float(b, i);
    if (!(fabs(x - y) <= relative * fmax(fabs(y), 1))) // ck_assert writes a file each time
      ck_abort_msg("%s, view %d, mask %d, element %d: %.17g, not %.17g", name, view, mask, (int)i, x, y);
  }
}

// The same elements, lying otherwise, against their copy; on one thread and on several the same bits.
static void compare_views(const char *name, td_tensor *x, int view, int mask, const td_arg *args) {
  td_tensor *plain = td_tensor_contiguous(context, x);
  td_tensor *a = apply(context, name, x, args), *b = apply(wide, name, x, args), *c = apply(wide, name, plain, args);
  expect_near(name, view, mask, a, b, 0);
  expect_near(name, view, mask, a, c, 2e-6);
  td_tensor_unref(a);
  td_tensor_unref(b);
  td_tensor_unref(c);
  td_tensor_unref(plain);
}

static td_tensor *turned_view(td_tensor *x, int view) {
  static const int turns[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}, {1, 0, 2}};
  int64_t shape[3], strides[3], offset = 0;
  for (int d = 0; d < 3; d++) {
    shape[d] = x->shape[turns[view % 6][d]];
    strides[d] = x->strides[turns[view % 6][d]];
    if (view >= 6 && d != 1) { // backwards
      offset += (shape[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
    if (view >= 12 && d == 1 && shape[d] > 1) { // every second one
      shape[d] /= 2;
      strides[d] *= 2;
    }
  }
  return td_tensor_view(context, x, 3, shape, strides, offset);
}

START_TEST(any_strides_give_the_same) {
  static const char *const names[] = {"sum", "max", "mean", "var", "nanstd", "logsumexp", "count_nonzero", "prod"};
  static const char *const scans[] = {"cumsum", "cumprod", "cummax", "logcumsumexp", "softmax", "log_softmax"};
  const int64_t shapes[][3] = {{3, 50, 70}, {2, 12000, 3}, {1, 1, 70000}};
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    td_tensor *x = td_tensor_new(context, TD_FLOAT32, 3, shapes[k]);
    for (int64_t i = 0; i < x->size; i++) ((float *)x->data)[i] = 1 + (float)(i * 7919 % 1009 - 500) / 100000;
    for (int view = 0; view < 18; view += view ? 5 : 1) {
      td_tensor *turned = turned_view(x, view);
      for (int mask = 0; mask < 8; mask += mask < 2 ? 1 : 3) {
        td_arg args[4] = {{.given = 1}, {.given = 1}, {.given = 1}, {.given = 1}}, norm[3] = {TD_FLOAT_ARG(2)};
        for (int d = 0; d < 3; d++)
          if (mask >> d & 1) args[0].ints[args[0].count++] = d;
        norm[1] = args[0];
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) compare_views(names[n], turned, view, mask, args);
        compare_views("norm", turned, view, mask, norm);
        if (mask > 5) continue;
        args[0].count = 0;
        args[0].i = mask / 2;
        compare_views("argmax", turned, view, mask, args);
        compare_views("argmin", turned, view, mask, args);
        for (size_t n = 0; n < sizeof scans / sizeof *scans; n++) compare_views(scans[n], turned, view, mask, args);
      }
      td_tensor_unref(turned);
    }
    td_tensor_unref(x);
  }
}
END_TEST

START_TEST(long_lines_are_sorted) {
  const int64_t shape[] = {2, 150001}, turned[] = {150001, 2}, strides[] = {1, 150001};
  const td_arg last[4] = {TD_INT_ARG(-1), TD_INT_ARG(0), TD_INT_ARG(1)},
               first[4] = {TD_INT_ARG(0), TD_INT_ARG(0), TD_INT_ARG(1)};
  td_tensor *x = td_tensor_new(context, TD_FLOAT32, 2, shape);
  for (int64_t i = 0; i < x->size; i++) ((float *)x->data)[i] = (float)(i * 7919 % 100003) - 50000;
  td_tensor *t = td_tensor_view(context, x, 2, turned, strides, 0);
  td_tensor *a = apply(context, "sort", x, last), *b = apply(wide, "sort", x, last), *c = apply(wide, "sort", t, first);
  int64_t wrong = 0;
  for (int64_t i = 0; i < x->size; i++) {
    const float *values = (const float *)a->data;
    wrong += i % shape[1] && values[i] < values[i - 1];
    wrong += values[i] != ((const float *)b->data)[i];
    wrong += values[i] != ((const float *)c->data)[i % shape[1] * 2 + i / shape[1]];
  }
  ck_assert_int_eq(wrong, 0);
  td_tensor_unref(x);
  td_tensor_unref(t);
  td_tensor_unref(a);
  td_tensor_unref(b);
  td_tensor_unref(c);
}
END_TEST

int main(void) {
  const TTest *tests[] = {empty_mean_warns,           long_means_keep_their_digits, parts_of_sums_may_overflow,
                          walks_agree_with_plain_sums, any_strides_give_the_same,    long_lines_are_sorted};
  return cases_run("reduce", cases, sizeof cases / sizeof *cases, tests, 6);
}
