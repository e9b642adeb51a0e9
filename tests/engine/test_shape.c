// Views, slices, joining and creation: shapes, what shares memory, errors, gradients.
#include <math.h>
#include "engine/ops/index.h"
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"reshape", "[[1, 2, 3], [4, 5, 6]]", "shape=(3, -1)", "[[1, 2], [3, 4], [5, 6]]", "[[1, 1, 1], [1, 1, 1]]"},
    {"reshape", "[1, 2]", "shape=(3,)", "!SHAPE: 2 elements don't fit shape [3]", NULL},
    {"reshape", "[1, 2]", "shape=(-1, -1)", "!SHAPE: more than one size is -1", NULL},
    {"reshape", "[1, 2]", "shape=(-2,)", "!SHAPE: size of axis 0 is negative: -2", NULL},
    {"reshape", "[1, 2]", "shape=(-1, 0)", "!SHAPE: 2 elements don't fit", NULL},
    {"reshape", "{0, 3}", "shape=(5, 0)", "{5, 0}", NULL},
    {"reshape", "5", "shape=(1, 1)", "[[5]]", NULL},
    {"reshape", "[[5]]", "shape=()", "5", NULL},
    {"flatten", "[[[1, 2]], [[3, 4]]]", "start_dim=1", "[[1, 2], [3, 4]]", NULL},
    {"flatten", "5", NULL, "[5]", NULL},
    {"flatten", "[[1]]", "start_dim=1, end_dim=0", "!VALUE: start_dim 1 is behind end_dim 0", NULL},
    {"transpose", "[[1, 2, 3], [4, 5, 6]]", NULL, "[[1, 4], [2, 5], [3, 6]]", NULL},
    {"transpose", "[[[1, 2, 3]], [[4, 5, 6]]]", "axes=(1, 0, -1)", "[[[1, 2, 3], [4, 5, 6]]]", NULL},
    {"transpose", "[[[1]]]", "axes=(0, 1)", "!SHAPE: 2 axes are named, the tensor has rank 3", NULL},
    {"transpose", "[[1]]", "axes=(0, 0)", "!VALUE: axis 0 is named twice", NULL},
    {"swapaxes", "[[1, 2, 3], [4, 5, 6]]", "axis0=0, axis1=-1", "[[1, 4], [2, 5], [3, 6]]", NULL},
    {"swapaxes", "[1]", "axis0=0, axis1=1", "!INDEX: axis1 1 is out of range for rank 1", NULL},
    {"expand_dims", "[1, 2]", "axis=(0, -1)", "[[[1], [2]]]", NULL},
    {"expand_dims", "[[[[[[[[1]]]]]]]]", "axis=0", "!SHAPE: rank 9 is more than the 8", NULL},
    {"squeeze", "[[[1], [2]]]", NULL, "[1, 2]", NULL},
    {"squeeze", "[[[1], [2]]]", "axis=0", "[[1], [2]]", NULL},
    {"squeeze", "[[1, 2]]", "axis=1", "!SHAPE: axis 1 has size 2, not 1", NULL},
    {"broadcast_to", "[[1], [2]]", "shape=(2, 2, 3)", "[[[1, 1, 1], [2, 2, 2]], [[1, 1, 1], [2, 2, 2]]]", "[[6], [6]]"},
    {"broadcast_to", "[1, 2]", "shape=(3,)", "!SHAPE: shape [2] doesn't broadcast to [3]", NULL},
    {"broadcast_to", "[[1, 2]]", "shape=(2,)", "!SHAPE: shape [1, 2] doesn't broadcast to [2]", NULL},
    {"flip", "[[1, 2], [3, 4]]", NULL, "[[4, 3], [2, 1]]", NULL},
    {"flip", "[[1, 2], [3, 4]]", "axis=1", "[[2, 1], [4, 3]]", NULL},
    {"slice", "[0, 1, 2, 3, 4, 5]", "starts=(5,), steps=(-1,), sizes=(6,)", "[5, 4, 3, 2, 1, 0]", "[1, 1, 1, 1, 1, 1]"},
    {"slice", "[0, 1, 2, 3, 4, 5]", "starts=(4,), steps=(-2,), sizes=(2,)", "[4, 2]", "[0, 0, 1, 0, 1, 0]"},
    {"slice", "[0, 1, 2, 3, 4]", "starts=(4,), steps=(-3,), sizes=(2,)", "[4, 1]", "[0, 1, 0, 0, 1]"},
    {"slice", "[0, 1]", "starts=(2,), steps=(1,), sizes=(0,)", "{0}", "[0, 0]"},
    {"slice", "[0, 1]", "starts=(1,), steps=(1,), sizes=(2,)", "!INDEX: leave axis 0 of size 2", NULL},
    {"slice", "7", "starts=(), steps=(), sizes=()", "7", "1"},
    {"slice_adjoint", "[1, 2]", "starts=(4,), steps=(-2,), sizes=(2,), shape=(5,)", "[0, 0, 2, 0, 1]", NULL},
    {"index_update", "[1, 2, 3, 4]; [8, 9]", "starts=(3,), steps=(-2,), sizes=(2,)", "[1, 9, 3, 8]",
     "[1, 0, 1, 0]; [1, 1]"},
    {"index_update", "i64 [[1, 2], [3, 4]]; f32 7.9", "starts=(0, 1), steps=(1, 1), sizes=(2, 1)",
     "!DTYPE: float32 numbers are not written into int64", NULL},
    {"index_update", "i64 [[1, 2], [3, 4]]; i32 7", "starts=(0, 1), steps=(1, 1), sizes=(2, 1)", "i64 [[1, 7], [3, 7]]",
     NULL},
    {"index_update", "[1, 2]; [1, 2, 3]", "starts=(0,), steps=(1,), sizes=(2,)",
     "!SHAPE: value of shape [3] doesn't broadcast to [2]", NULL},
    {"concat", "f32 [[1, 2]]; f64 [[3, 4], [5, 6]]", NULL, "f64 [[1, 2], [3, 4], [5, 6]]",
     "[[1, 1]]; [[1, 1], [1, 1]]"},
    {"concat", "i64 [[1], [2]]; bool [[1], [0]]", "axis=-1", "i64 [[1, 1], [2, 0]]", NULL},
    {"concat", "[1]; {0}", NULL, "[1]", NULL},
    {"concat", "f16 [1]; f16 [2]", NULL, "f16 [1, 2]", NULL},
    {"concat", "[[1, 2]]; [[1]]", NULL, "!SHAPE: axis 1 differs: tensor 0 has 2, tensor 1 has 1", NULL},
    {"concat", "1; 2", NULL, "!SHAPE: 0-d tensors have no axis", NULL},
    {"concat", "[1]; [[1]]", NULL, "!SHAPE: ranks differ", NULL},
    {"stack", "[1, 2]; [3, 4]", "axis=-1", "[[1, 3], [2, 4]]", "[1, 1]; [1, 1]"},
    {"stack", "1; 2; 3", NULL, "[1, 2, 3]", NULL},
    {"stack", "[1]; [1, 2]", NULL, "!SHAPE: axis 0 differs", NULL},
    {"pad", "[[1, 2]]; i64 [[1, 0], [0, 2]]", "value=9.0", "[[9, 9, 9, 9], [1, 2, 9, 9]]", "[[1, 1]]"},
    {"pad", "i64 [1, 2, 3]; i64 [7, 4]", "mode=reflect", "i64 [2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3]", NULL},
    {"pad", "[1]; i64 2", "mode=reflect", "[1, 1, 1, 1, 1]", "[5]"},
    {"pad", "[1, 2]; i64 3", "mode=symmetric", "[2, 2, 1, 1, 2, 2, 1, 1]", "[4, 4]"},
    {"pad", "[1, 2]; i64 [3, 1]", "mode=wrap", "[2, 1, 2, 1, 2, 1]", "[3, 3]"},
    {"pad", "[4, 8]; i64 2", "mode=linear_ramp", "[0, 2, 4, 8, 4, 0]", "[1.5, 1.5]"},
    {"pad", "[[1, 3]]; i64 1", "mode=mean", "[[2, 1, 3, 2], [2, 1, 3, 2], [2, 1, 3, 2]]", "[[6, 6]]"},
    {"pad", "{0}; i64 1", NULL, "[0, 0]", NULL},
    {"pad", "{0}; i64 1", "mode=edge", "!VALUE: axis 0 is empty: mode \"edge\" has nothing to repeat", NULL},
    {"pad", "[1]; i64 -1", NULL, "!VALUE: axis 0: sizes -1 and -1 must not be negative", NULL},
    {"pad", "[1]; i64 [1, 2, 3]", NULL, "!SHAPE: pairs must be one (before, after), or one for each of 1 axes", NULL},
    {"pad", "[1]; 1", NULL, "!DTYPE: pairs must be integers, not float64", NULL},
    {"pad", "i64 [1]; i64 1", "mode=mean", "!DTYPE: mode \"mean\" needs a floating dtype", NULL},
    {"vstack", "[1, 2]; [[3, 4], [5, 6]]", NULL, "[[1, 2], [3, 4], [5, 6]]", "[1, 1]; [[1, 1], [1, 1]]"},
    {"hstack", "1; [2, 3]", NULL, "[1, 2, 3]", NULL},
    {"hstack", "[[1], [2]]; [[3]]", NULL, "!SHAPE: axis 0 differs: tensor 0 has 2, tensor 1 has 1", NULL},
    {"dstack", "[1, 2]; i64 [3, 4]", NULL, "[[[1, 3], [2, 4]]]", NULL},
    {"diagonal", "[[1, 2, 3], [4, 5, 6]]", "offset=1", "[2, 6]", "[[0, 1, 0], [0, 0, 1]]"},
    {"diagonal", "[[1, 2]]", "axis1=1, axis2=-1", "!VALUE: axis1 and axis2 are both axis 1", NULL},
    {"diagonal", "[1, 2]", NULL, "!SHAPE: needs matrices, the tensor has rank 1", NULL},
    {"diagonal", "[[1, 2]]", "axis1=2", "!INDEX: axis1 2 is out of range for rank 2", NULL},
    {"diag_embed", "[1, 2]", "offset=-1", "[[0, 0, 0], [1, 0, 0], [0, 2, 0]]", "[1, 1]"},
    {"diag", "[1]", "k=1", "[[0, 1], [0, 0]]", "[1]"},
    {"diag", "1", NULL, "!SHAPE: needs a diagonal or a matrix, the tensor has rank 0", NULL},
    {"split", "[1, 2, 3]; i64 [1, 1]", NULL, "!SHAPE: sizes add up to 2, axis 0 has size 3", NULL},
    {"split", "[1, 2, 3]; i64 0", NULL, "!VALUE: size of the parts must be positive, not 0", NULL},
    {"split", "[1, 2, 3]; i64 [-1, 4]", NULL, "!VALUE: size 0 is negative: -1", NULL},
    {"chunk", "{2, 0}", "chunks=3, axis=1", "{2, 0}; {2, 0}; {2, 0}", NULL},
    {"chunk", "[1, 2, 3]", "chunks=0", "!VALUE: chunks must be positive, not 0", NULL},
    {"unstack", "1", NULL, "!INDEX: axis 0 is out of range for rank 0", NULL},
    {"roll", "[1, 2, 3]", "shift=(1, 2)", "!VALUE: shift has 2 numbers, but no axis is named", NULL},
    {"moveaxis", "[[1]]", "source=(0, 0), destination=(0, 1)", "!VALUE: source 0 is named twice", NULL},
    {"rot90", "[[1]]", "axes=(0, 0)", "!VALUE: axis 0 is named twice", NULL},
    {"fliplr", "[1]", NULL, "!SHAPE: needs at least rank 2, the tensor has rank 1", NULL},
    {"meshgrid", "[[1]]; [1]", NULL, "!SHAPE: needs tensors of rank 1, tensor 0 has rank 2", NULL},
    {"broadcast_tensors", "[1, 2]; [1, 2, 3]", NULL, "!SHAPE: tensor 1 doesn't broadcast with those before it: axis 0",
     NULL},
    {"tril", "[[1, 2, 3], [4, 5, 6]]", NULL, "[[1, 0, 0], [4, 5, 0]]", "[[1, 0, 0], [1, 1, 0]]"},
    {"triu", "[[1, 2, 3], [4, 5, 6]]", "k=1", "[[0, 2, 3], [0, 0, 6]]", NULL},
    {"tril", "[1, 2]", NULL, "!SHAPE: needs matrices", NULL},
    {"full", "", "shape=(2,), value=3", "i64 [3, 3]", NULL},
    {"full", "", "shape=(2,), value=3.5", "f32 [3.5, 3.5]", NULL},
    {"full", "", "shape=(), value=1, dtype=bool", "bool 1", NULL},
    {"full", "", "shape=(2,), value=1e300, dtype=int32", "!VALUE: int32 can't hold", NULL},
    {"zeros", "", "shape=(2, 0)", "f32 {2, 0}", NULL},
    {"zeros", "", "shape=(-1,)", "!VALUE: size of axis 0 is negative", NULL},
    {"ones", "", "shape=(2,), dtype=float16", "f16 [1, 1]", NULL},
    {"arange", "", "start=5", "i64 [0, 1, 2, 3, 4]", NULL},
    {"arange", "", "start=0.1, stop=0.5, step=0.05", "f32 [.1, .15, .2, .25, .3, .35, .4, .45]", NULL},
    {"arange", "", "start=0.0, stop=0.3, step=0.1", "f32 [0, .1, .2]", NULL},
    {"arange", "", "start=5, stop=0, step=-2", "i64 [5, 3, 1]", NULL},
    {"arange", "", "start=3.0", "f32 [0, 1, 2]", NULL},
    {"arange", "", "start=1, stop=0", "i64 {0}", NULL},
    {"arange", "", "start=1, stop=4, dtype=float64", "f64 [1, 2, 3]", NULL},
    {"arange", "", "start=0, stop=1, step=0", "!VALUE: step is 0", NULL},
    {"linspace", "", "start=0.0, stop=1.0, num=3", "f32 [0, .5, 1]", NULL},
    {"linspace", "", "start=0.0, stop=1.0, num=4, endpoint=False, dtype=float64", "f64 [0, .25, .5, .75]", NULL},
    {"linspace", "", "start=2.0, stop=9.0, num=1", "f32 [2]", NULL},
    {"linspace", "", "start=0.0, stop=1.0, num=-1", "!VALUE: num is negative", NULL},
    {"eye", "", "n=2, m=3, k=1", "f32 [[0, 1, 0], [0, 0, 1]]", NULL},
    {"eye", "", "n=2, k=-5", "f32 [[0, 0], [0, 0]]", NULL},
    {"softmax", "[[1000, 1001], [-1000, -999]]", NULL, "[[.2689414214, .7310585786], [.2689414214, .7310585786]]",
     NULL},
    {"softmax", "[[1, 2], [1, 2]]", "axis=0", "[[.5, .5], [.5, .5]]", NULL},
    {"log_softmax", "f32 [1000, 0]", NULL, "f32 [0, -1000]", "[-1, 1]"},
    {"softmax", "5", NULL, "!INDEX: axis -1 is out of range for rank 0", NULL},
};

START_TEST(a_fraction_by_its_inverse_counts_right) {
  td_arg args[4] = {{.given = 1}, {.given = 1, .i = 1}, {.given = 1, .count = 1, .f = 1. / 49}};
  td_tensor *out[TD_OUTPUT_MAX];
  ck_assert_int_eq(td_op_apply(context, td_op_find("arange"), NULL, 0, args, out), TD_OK);
  ck_assert_int_eq(out[0]->shape[0], 50); // as NumPy's: ceil(49.000000000000004)
  td_tensor_unref(out[0]);
}
END_TEST

// Reshapes of all views of a cube: right elements, and no copy where none is needed.
START_TEST(reshapes_copy_only_what_lies_apart) {
  const int64_t cube[] = {2, 3, 4}, flat[] = {24};
  static const struct {
    int64_t strides[3], offset, to[3];
    int rank;
    bool shares;
  } rows[] = {{{12, 4, 1}, 0, {24}, 1, true},       {{12, 4, 1}, 0, {6, 4}, 2, true},
              {{-12, 4, 1}, 12, {2, 12}, 2, true},  {{-12, 4, 1}, 12, {24}, 1, false},
              {{1, 2, 6}, 0, {24}, 1, false},       {{0, 4, 1}, 0, {2, 12}, 2, true},
              {{0, 4, 1}, 0, {24}, 1, false},       {{12, 4, 1}, 0, {2, 3, 4}, 3, true},
              {{1, 2, 6}, 0, {1, 2, 12}, 3, false}, {{0, 0, 0}, 5, {4, 6}, 2, true}};
  td_tensor *base = td_tensor_new(context, TD_INT64, 1, flat);
  for (int64_t i = 0; i < 24; i++) ((int64_t *)base->data)[i] = i;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    td_tensor *in = td_tensor_view(context, base, 3, cube, rows[i].strides, rows[i].offset), *out[TD_OUTPUT_MAX];
    td_arg args[1] = {{.given = 1, .count = rows[i].rank, .ints = {rows[i].to[0], rows[i].to[1], rows[i].to[2]}}};
    ck_assert_int_eq(td_op_apply(context, td_op_find("reshape"), &in, 1, args, out), TD_OK);
    ck_assert_msg((out[0]->storage == base->storage) == rows[i].shares, "row %d", (int)i);
    for (int64_t e = 0; e < 24; e++) ck_assert_int_eq(td_tensor_get_int(out[0], e), td_tensor_get_int(in, e));
    td_tensor_unref(in);
    td_tensor_unref(out[0]);
  }
  td_tensor_unref(base);
}
END_TEST

START_TEST(sole_owners_are_updated_in_place) {
  const char *text = "f32 [[1, 2, 3], [4, 5, 6]]", *value_text = "i64 [[7], [8]]", *wrong_text = "[1, 2, 3]";
  td_tensor *x = read_tensor(&text), *value = read_tensor(&value_text), *wrong = read_tensor(&wrong_text);
  const int64_t start[] = {1, 2}, step[] = {-1, -2}, size[] = {2, 2}, outside[] = {1, 3};
  ck_assert(td_tensor_is_sole(x));
  ck_assert_int_eq(td_index_update_in_place(context, x, value, start, step, size), TD_OK);
  expect_tensor("in place", x, "f32 [[8, 2, 8], [7, 5, 7]]");
  ck_assert_int_eq(td_index_update_in_place(context, x, value, outside, step, size), TD_ERROR_INDEX);
  ck_assert_int_eq(td_index_update_in_place(context, x, wrong, start, step, size), TD_ERROR_SHAPE);
  expect_tensor("after errors", x, "f32 [[8, 2, 8], [7, 5, 7]]");
  td_tensor_unref(x);
  td_tensor_unref(value);
  td_tensor_unref(wrong);
}
END_TEST

int main(void) {
  const TTest *tests[] = {a_fraction_by_its_inverse_counts_right, reshapes_copy_only_what_lies_apart,
                          sole_owners_are_updated_in_place};
  return cases_run("shape", cases, sizeof cases / sizeof *cases, tests, 3);
}
