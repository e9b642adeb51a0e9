// Advanced indexing: NumPy's shapes, negative and repeated indices, errors that name index, axis and size.
#include "tests/engine/cases.h"

#define CUBE "[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]"

static const op_case cases[] = {
    {"index", "[.1]; i64 [0, 0]", "axes=(0,)", "[.1, .1]", "[2]"},
    {"index", "[[1, 2], [3, 4]]; i64 [1, -1]; i64 [0, -2]", "axes=(0, 1)", "[3, 3]", "[[0, 0], [2, 0]]"},
    {"index", "[[1, 2], [3, 4]]; i64 [[1], [0]]; i64 [0, 1]", "axes=(0, 1)", "[[3, 4], [1, 2]]", NULL},
    {"index", CUBE "; i64 [2, 0]", "axes=(1,)",
     "[[[8, 9, 10, 11], [0, 1, 2, 3]], [[20, 21, 22, 23], [12, 13, 14, 15]]]", NULL},
    {"index", CUBE "; i64 [2, 0]; i32 [3, 1]", "axes=(1, 2)", "[[11, 1], [23, 13]]", NULL},
    {"index", CUBE "; i64 [1, 0]; u8 [3, 1]", "axes=(0, 2)", "[[15, 19, 23], [1, 5, 9]]",
     NULL}, // not neighbours: in front
    {"index", CUBE "; i64 1", "axes=(2,)", "[[1, 5, 9], [13, 17, 21]]", NULL},
    {"index", "[1, 2]; i64 {0}", "axes=(0,)", "{0}", "[0, 0]"},
    {"index", "{0, 2}; i64 {0}", "axes=(0,)", "{0, 2}", NULL},
    {"index", "u8 [7, 8]; i64 [1]", "axes=(0,)", "u8 [8]", NULL},
    {"index", "f16 [7, 8]; i64 [1]", "axes=(0,)", "f16 [8]", "f16 [0, 1]"},
    {"index", "[1, 2, 3]; i64 [0, 7]", "axes=(0,)", "!INDEX: index 7 is out of range for axis 0 with size 3", NULL},
    {"index", "[[1, 2, 3]]; i64 [-4]", "axes=(1,)", "!INDEX: index -4 is out of range for axis 1 with size 3", NULL},
    {"index", "[1]; [0]", "axes=(0,)", "!DTYPE: indices must be integers, not float64", NULL},
    {"index", "[[1]]; i64 [0, 0]; i64 [0, 0, 0]", "axes=(0, 1)", "!INDEX: don't broadcast: [2] and [3]", NULL},
    {"index_adjoint", "[[1, 2], [3, 4], [5, 6]]; i64 [0, 1, 0]", "axes=(0,), shape=(2, 2)", "[[6, 8], [3, 4]]", NULL},
    {"index_adjoint", "[[1, 2], [3, 4], [5, 6]]; i64 [0, 1, 0]", "axes=(1,), shape=(2, 2)",
     "!SHAPE: not what the indices read", NULL},
    {"index_put", "[1, 2, 3]; [8, 9]; i64 [2, 0]", "axes=(0,)", "[9, 2, 8]", "[0, 1, 0]; [1, 1]"},
    {"index_put", "[1, 2, 3]; [8, 9]; i64 [1, 1]", "axes=(0,)", "[1, 9, 3]", "[1, 0, 1]; [0, 1]"},
    {"index_put", "[[1, 2], [3, 4]]; 7; i64 [0, 1]; i64 [1, 0]", "axes=(0, 1)", "[[1, 7], [7, 4]]",
     "[[1, 0], [0, 1]]; 2"},
    {"index_put", "i64 [1, 2]; f32 [7.5]; i64 [0, 1]", "axes=(0,)",
     "!DTYPE: float32 numbers are not written into int64", NULL},
    {"index_put", "[1, 2]; [7, 8, 9]; i64 [0, 1]", "axes=(0,)", "!SHAPE: value of shape [3] doesn't broadcast to [2]",
     NULL},
    {"index_put", "[1, 2]; 7; i64 [2]", "axes=(0,)", "!INDEX: index 2 is out of range for axis 0 with size 2", NULL},
    {"take", "[[1, 2], [3, 4], [5, 6]]; i64 [2, 0]", "axis=0", "[[5, 6], [1, 2]]", "[[1, 1], [0, 0], [1, 1]]"},
    {"take", "[[1, 2], [3, 4]]; i64 [[1, 1]]", "axis=-1", "[[[2, 2]], [[4, 4]]]", "[[0, 2], [0, 2]]"},
    {"take", "[1, 2]; i64 0", NULL, "1", NULL},
    {"take", "[1, 2]; i64 2", NULL, "!INDEX: index 2 is out of range for axis 0 with size 2", NULL},
    {"gather", "[[1, 2, 3], [4, 5, 6]]; i64 [[2, 2], [0, -2]]", "axis=1", "[[3, 3], [4, 5]]", "[[0, 0, 2], [1, 1, 0]]"},
    {"take", "[[1, 2], [3, 4]]; i64 [2, 0]", NULL, "[3, 1]", "[[1, 0], [1, 0]]"},
    {"index_add", "[1, 2, 3]; i64 [0, 2, 0]; [10, 20, 30]", NULL, "[41, 2, 23]", "[1, 1, 1]; [1, 1, 1]"},
    {"index_add", "u8 [250, 2]; i64 [0, 0]; u8 [3, 4]", NULL, "u8 [1, 2]", NULL},
    {"index_add", "[1, 2]; i64 [0, 1]; [1, 2, 3]", NULL, "!SHAPE: source of shape [3] doesn't broadcast to [2]", NULL},
    {"index_add", "[1, 2]; i64 [[0]]; 1", NULL, "!SHAPE: index must have rank 1", NULL},
    {"embedding", "i64 [1, 0, 1]; [[1, 2], [3, 4]]", "padding_idx=1", "[[3, 4], [1, 2], [3, 4]]", "[[1, 1], [0, 0]]"},
    {"embedding", "i64 [-1, 0]; [[1, 2], [3, 4]]", "padding_idx=-1", "[[3, 4], [1, 2]]", "[[1, 1], [0, 0]]"},
    {"embedding", "i64 [2]; [[1, 2], [3, 4]]", NULL, "!INDEX: index 2 is out of range for axis 0 with size 2", NULL},
    {"embedding", "i64 [0]; [1, 2]", NULL, "!SHAPE: weight must be a matrix", NULL},
    {"embedding", "i64 [0]; [[1, 2]]", "padding_idx=1", "!INDEX: padding_idx 1 is out of range for 1 rows", NULL},
    {"scatter", "[1, 2, 3]; i64 [2, 2, 0]; [7, 8, 9]", "axis=0", "[9, 2, 8]", "[0, 1, 0]; [0, 1, 1]"},
    {"scatter", "[1, 2, 3]; i64 [2, 2]; [4, 5]", "axis=0, mode=\"mul\"", "[1, 2, 60]", "[1, 1, 20]; [15, 12]"},
    {"scatter", "[1, 2, 3]; i64 [2, 2]; [0, 5]", "axis=0, mode=\"prod\"", "[1, 2, 0]", "[1, 1, 0]; [15, 0]"},
    {"scatter", "[1, 2, 3]; i64 [2, 2]; [3, 3]", "axis=0, mode=\"max\"", "[1, 2, 3]", NULL},
    {"scatter", "[1, 2, 4]; i64 [0, 0]; [4, 4]", "axis=0, mode=\"max\"", "[4, 2, 4]", "[0, 1, 1]; [.5, .5]"},
    {"scatter", "[1, 2]; i64 [0, 1]; [nan, 1]", "axis=0, mode=\"max\"", "[nan, 2]", NULL},
    {"scatter", "bool [0, 1]; i64 [0, 0]; bool [1, 1]", "axis=0, mode=\"add\"", "bool [1, 1]", NULL},
    {"scatter", "i64 [5, 6]; i64 [0, 0]; i64 [7, 3]", "axis=0, mode=\"min\"", "i64 [3, 6]", NULL},
    {"scatter", "[1, 2]; i64 [0]; [[1]]", "axis=0", "!SHAPE: source of shape [1, 1] doesn't broadcast", NULL},
    {"scatter", "[1, 2]; i64 [-3]; 1", "axis=0", "!INDEX: index -3 is out of range for axis 0 with size 2", NULL},
    {"scatter", "[1, 2]; i64 [0]; 1", "axis=1", "!INDEX: axis 1 is out of range for rank 1", NULL},
    {"scatter_add", "[1, 2]; i64 [1, 1, 1]; [1, 2, 3]", "axis=0", "[1, 8]", "[1, 1]; [1, 1, 1]"},
    {"put_along_axis", "[[1, 2], [3, 4]]; i64 [[1]]; 9", "axis=1", "[[1, 9], [3, 9]]", "[[1, 0], [1, 0]]; 2"},
    {"put_along_axis", "[[1, 2]]; i64 [[0], [0]]; 9", "axis=1", "!SHAPE: axis 0: index has size 2, the tensor has 1",
     NULL},
    {"take_along_axis", "[[3, 1], [2, 4]]; i64 [[1, 0]]", "axis=1", "[[1, 3], [4, 2]]", "[[1, 1], [1, 1]]"},
    {"take_along_axis", "[[3, 1]]; i64 [1]", "axis=1", "!SHAPE: index has rank 1, the tensor has rank 2", NULL},
    {"segment_sum", "[1, 2, 4]; i64 [0, 2, 0]", "n=4", "[5, 0, 2, 0]", "[1, 1, 1]"},
    {"segment_sum", "[[1, 2], [3, 4]]; i64 [1, 1]", NULL, "[[0, 0], [4, 6]]", NULL},
    {"segment_sum", "[1]; i64 [3]", "n=3", "!INDEX: ids 3 is out of range for axis 0 with size 3", NULL},
    {"segment_sum", "[1, 2]; i64 [3]", NULL, "!SHAPE: ids must have the shape of source's first axes", NULL},
    {"segment_mean", "i64 [1, 2, 4]; i64 [0, 2, 0]", "n=3", "f32 [2.5, 0, 2]", NULL},
    {"segment_mean", "[1, 2, 4]; i64 [0, 2, 0]", NULL, "[2.5, 0, 2]", "[.5, 1, .5]"},
    {"segment_max", "[1, 4, 4]; i64 [0, 1, 1]", "n=3", "[1, 4, -inf]", "[1, .5, .5]"},
    {"segment_max", "u8 [1, 4]; i64 [0, 0]", "n=2", "u8 [4, 0]", NULL},
    {"segment_min", "[1, 4, 3]; i64 [0, 1, 1]", NULL, "[1, 3]", "[1, 0, 1]"},
    {"gather", "[[1, 2], [3, 4]]; i64 [[0], [1], [0]]", "axis=0", "[[1], [3], [1]]", NULL},
    {"gather", "[[1, 2]]; i64 [[5]]", "axis=1", "!INDEX: index 5 is out of range for axis 1 with size 2", NULL},
    {"gather", "[[1, 2]]; i64 [5]", "axis=1", "!SHAPE: index has rank 1, the tensor has rank 2", NULL},
    {"gather", "[[1, 2]]; i64 [[0], [0]]", "axis=1", "!SHAPE: axis 0: index has size 2, the tensor has 1", NULL},
    {"one_hot", "i64 [2, 0]", "n=3", "f32 [[0, 0, 1], [1, 0, 0]]", NULL},
    {"one_hot", "u8 1", "n=2, dtype=int64", "i64 [0, 1]", NULL},
    {"one_hot", "i64 [1, 2, 8]", "n=4", "!INDEX: element 2 of index is 8, out of range for n = 4", NULL},
    {"one_hot", "i64 [1, -1]", "n=4", "!INDEX: element 1 of index is -1, out of range for n = 4", NULL},
    {"one_hot", "i64 [2, 0]", NULL, "f32 [[0, 0, 1], [1, 0, 0]]", NULL},
    {"one_hot", "i64 [2, 0]", "n=-1, dtype=uint8", "u8 [[0, 0, 1], [1, 0, 0]]", NULL},
    {"one_hot", "i64 [2, 0]", "n=-2", "!VALUE: n is negative", NULL},
    {"one_hot", "[1]", "n=4", "!DTYPE: indices must be integers", NULL},
};

// Repeated rows of a wide table, in chunks: the same bits on any number of threads, and the right sum.
START_TEST(repeated_rows_add_up) {
  const int64_t index_shape[] = {100}, shape[] = {100, 700};
  td_arg args[2] = {{.given = 1, .count = 1}, {.given = 1, .count = 2, .ints = {3, 700}}};
  td_tensor *in[] = {td_tensor_new(context, TD_FLOAT32, 2, shape), td_tensor_new(context, TD_INT64, 1, index_shape)};
  td_tensor *narrow[TD_OUTPUT_MAX], *again[TD_OUTPUT_MAX];
  for (int64_t i = 0; i < in[0]->size; i++) ((float *)in[0]->data)[i] = (float)(i / 700);
  for (int64_t i = 0; i < 100; i++) ((int64_t *)in[1]->data)[i] = i % 3 - 3;
  ck_assert_int_eq(td_op_apply(context, td_op_find("index_adjoint"), in, 2, args, narrow), TD_OK);
  ck_assert_int_eq(td_op_apply(wide, td_op_find("index_adjoint"), in, 2, args, again), TD_OK);
  for (int64_t i = 0; i < narrow[0]->size; i++) {
    int64_t row = i / 700, sum = 0;
    for (int64_t r = row; r < 100; r += 3) sum += r;
    ck_assert_double_eq(td_tensor_get_float(narrow[0], i), (double)sum);
    ck_assert_double_eq(td_tensor_get_float(again[0], i), (double)sum);
  }
  td_tensor_unref(narrow[0]);
  td_tensor_unref(again[0]);
  td_tensor_unref(in[0]);
  td_tensor_unref(in[1]);
}
END_TEST

// Many short rows are dealt out to threads: the same bits as one thread after the other, in every mode.
START_TEST(scattering_does_not_depend_on_threads) {
  enum { ROWS = 40000, TABLE = 500, WIDTH = 3 };
  const int64_t shape[] = {ROWS, WIDTH}, table[] = {TABLE, WIDTH};
  td_tensor *in[] = {td_tensor_new(context, TD_FLOAT32, 2, table), td_tensor_new(context, TD_INT64, 2, shape),
                     td_tensor_new(context, TD_FLOAT32, 2, shape)};
  for (int64_t i = 0; i < in[0]->size; i++) ((float *)in[0]->data)[i] = 1.0f / (float)(i + 1);
  for (int64_t i = 0; i < in[1]->size; i++) {
    ((int64_t *)in[1]->data)[i] = (int64_t)((uint64_t)i * 2654435761u % TABLE);
    ((float *)in[2]->data)[i] = 1 + 1e-3f / (float)(i % 977 - 500.5);
  }
  for (int mode = 0; mode < 5; mode++) {
    td_arg args[2] = {{.given = 1, .i = 0}, {.given = 1, .i = mode}};
    td_tensor *narrow[TD_OUTPUT_MAX], *again[TD_OUTPUT_MAX];
    ck_assert_int_eq(td_op_apply(context, td_op_find("scatter"), in, 3, args, narrow), TD_OK);
    ck_assert_int_eq(td_op_apply(wide, td_op_find("scatter"), in, 3, args, again), TD_OK);
    ck_assert_mem_eq(narrow[0]->data, again[0]->data, (size_t)narrow[0]->size * sizeof(float));
    td_tensor_unref(narrow[0]);
    td_tensor_unref(again[0]);
  }
  for (int i = 0; i < 3; i++) td_tensor_unref(in[i]);
}
END_TEST

int main(void) {
  const TTest *tests[] = {repeated_rows_add_up, scattering_does_not_depend_on_threads};
  return cases_run("index", cases, sizeof cases / sizeof *cases, tests, 2);
}
