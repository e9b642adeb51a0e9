// Matrix products: ranks, batches, transposes, integers, hints, and large sizes against plain sums.
#include <math.h>
#include <string.h>
#include "engine/device/cpu/gemm.h"
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"matmul", "[[1, 2], [3, 4]]; [[5, 6], [7, 8]]", NULL, "[[19, 22], [43, 50]]",
     "[[11, 15], [11, 15]]; [[4, 4], [6, 6]]"},
    {"matmul", "[1, 2]; [3, 4]", NULL, "11", "[3, 4]; [1, 2]"},
    {"matmul", "[1, 2]; [[3, 4], [5, 6]]", NULL, "[13, 16]", "[7, 11]; [[1, 1], [2, 2]]"},
    {"matmul", "[[3, 4], [5, 6]]; [1, 2]", NULL, "[11, 17]", "[[1, 2], [1, 2]]; [8, 10]"},
    {"matmul", "[[[1, 2]], [[3, 4]]]; [[1], [10]]", NULL, "[[[21]], [[43]]]", "[[[1, 10]], [[1, 10]]]; [[4], [6]]"},
    {"matmul", "[[[1, 2]], [[3, 4]]]; [[[1], [10]]]", NULL, "[[[21]], [[43]]]", "[[[1, 10]], [[1, 10]]]; [[[4], [6]]]"},
    {"matmul", "f32 [[1, 2]]; [[1], [2]]", NULL, "f64 [[5]]", "f32 [[1, 2]]; f64 [[1], [2]]"},
    {"matmul", "i32 [[1, 2]]; f32 [[1], [2]]", NULL, "f32 [[5]]", NULL},
    {"matmul", "i64 [[1, 2]]; i64 [[3], [4]]", NULL, "i64 [[11]]", NULL},
    {"matmul", "u8 [[200]]; u8 [[2]]", NULL, "u8 [[144]]", NULL},
    {"matmul", "bool [[1, 1]]; bool [[1], [1]]", NULL, "bool [[1]]", NULL},
    {"matmul", "f16 [[1, 2]]; f16 [[3], [4]]", NULL, "f16 [[11]]", NULL},
    {"matmul", "{2, 0}; {0, 3}", NULL, "[[0, 0, 0], [0, 0, 0]]", NULL},
    {"matmul", "{0, 2}; [[1], [2]]", NULL, "{0, 1}", NULL},
    {"matmul", "2; [[1]]", NULL, "!SHAPE: operand a is 0-d", NULL},
    {"matmul", "[[1, 2]]; [[1], [2], [3]]", NULL, "!SHAPE: inner sizes differ: 2 and 3", NULL},
    {"matmul", "[[[1]], [[1]], [[1]]]; [[[1]], [[1]]]", NULL, "!SHAPE: axis 0 has 3 and 2", NULL},
};

START_TEST(mismatch_hints_at_what_fits) {
  static const char *const rows[][3] = {{"{2, 3}", "{4, 3}", "a @ b.T fits"},
                                        {"{3, 2}", "{3, 4}", "a.T @ b fits"},
                                        {"{2, 3}", "{4, 2}", "b @ a fits"},
                                        {"{2, 3}", "{4, 5}", ""},
                                        {"{2, 2, 3}", "{2, 4, 3}", "a @ b.mT fits"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *a = rows[i][0], *b = rows[i][1];
    td_tensor *in[] = {read_tensor(&a), read_tensor(&b)}, *out[TD_OUTPUT_MAX];
    ck_assert_int_eq(td_op_apply(context, td_op_find("matmul"), in, 2, NULL, out), TD_ERROR_SHAPE);
    ck_assert_str_eq(context->error.hint, rows[i][2]);
    ck_assert_int_eq(context->error.operand_count, 2);
    td_tensor_unref(in[0]);
    td_tensor_unref(in[1]);
  }
}
END_TEST

static double number(uint64_t *state) { // in [-1, 1], exact in a float
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 40) / 8388608 - 1;
}

static double element(const void *data, uint8_t dtype, int64_t i) {
  return dtype == TD_FLOAT32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void check_product(uint8_t dtype, const td_gemm_job *job, const char *how) {
  double bound = (dtype == TD_FLOAT32 ? 1e-6 : 1e-14) * (double)job->k;
  for (int64_t i = 0; i < job->m; i++)
    for (int64_t j = 0; j < job->ldc; j++) {
      double sum = 77; // between the rows of C nothing is written
      if (j < job->n) {
        sum = 0;
        for (int64_t p = 0; p < job->k; p++)
          sum += element(job->a, dtype, job->a_transposed ? p * job->lda + i : i * job->lda + p) *
                 element(job->b, dtype, job->b_transposed ? j * job->ldb + p : p * job->ldb + j);
      }
      ck_assert_msg(fabs(element(job->c, dtype, i * job->ldc + j) - sum) <= bound, "%s: %d x %d x %d, at %d, %d", how,
                    (int)job->m, (int)job->k, (int)job->n, (int)i, (int)j);
    }
}

static void fill(char *data, uint8_t dtype, int64_t count, uint64_t *state) {
  for (int64_t i = 0; i < count; i++) {
    if (dtype == TD_FLOAT32) ((float *)data)[i] = (float)number(state);
    else ((double *)data)[i] = number(state);
  }
}

static void clear(char *data, uint8_t dtype, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (dtype == TD_FLOAT32) ((float *)data)[i] = 77;
    else ((double *)data)[i] = 77;
  }
}

static void try_size(uint8_t dtype, int64_t m, int64_t k, int64_t n, bool at, bool bt) {
  int64_t lda = (at ? m : k) + 3, ldb = (bt ? k : n) + 1, ldc = n + 2, bytes = td_dtype_bytes(dtype);
  int64_t a_count = (at ? k : m) * lda, b_count = (bt ? n : k) * ldb, c_count = m * ldc;
  char *a = td_memory_new((size_t)(a_count * bytes)), *b = td_memory_new((size_t)(b_count * bytes));
  char *c = td_memory_new((size_t)(c_count * bytes)), *again = td_memory_new((size_t)(c_count * bytes));
  uint64_t state = (uint64_t)(m * 31 + k * 7 + n);
  fill(a, dtype, a_count, &state);
  fill(b, dtype, b_count, &state);
  clear(c, dtype, c_count);
  clear(again, dtype, c_count);
  td_gemm_job job = {.a_transposed = at, .b_transposed = bt, .m = m, .n = n, .k = k, .a = a, .b = b, .c = c};
  job.lda = lda;
  job.ldb = ldb;
  job.ldc = ldc;
  void *work = td_memory_new((size_t)td_gemm_workspace(dtype, &job) + 1024);
  td_gemm(context->pool, dtype, &job, work);
  check_product(dtype, &job, "td_gemm");
  job.c = again;
  td_gemm(wide->pool, dtype, &job, work);
  job.c = c;
  ck_assert_msg(!memcmp(c, again, (size_t)(c_count * bytes)), "threads change bits: %d x %d x %d", (int)m, (int)k,
                (int)n);
  clear(c, dtype, c_count);
  for (int left = 0; left < 2; left++) {
    void *packed = td_memory_new((size_t)td_gemm_packed_bytes(dtype, left, left ? m : n, k));
    td_gemm_pack(wide->pool, dtype, &job, left, packed);
    td_gemm_job with = job;
    *(left ? &with.a_packed : &with.b_packed) = packed;
    clear(c, dtype, c_count);
    void *room = td_memory_new((size_t)td_gemm_single_bytes(dtype, m, n, k));
    td_gemm_single(dtype, &with, room);
    check_product(dtype, &job, left ? "a packed" : "b packed");
    clear(c, dtype, c_count);
    td_gemm(wide->pool, dtype, &with, work);
    check_product(dtype, &job, left ? "a packed, cut" : "b packed, cut");
    td_memory_free(room);
    td_memory_free(packed);
  }
  td_memory_free(work);
  td_memory_free(a);
  td_memory_free(b);
  td_memory_free(c);
  td_memory_free(again);
}

START_TEST(sizes_of_all_kernels_agree_with_plain_sums) {
  static const int64_t sizes[][3] = {{1, 1, 1},    {1, 50, 70},    {70, 50, 1},  {1, 300, 1},   {7, 1, 9},
                                     {3, 5, 4},    {6, 16, 16},    {13, 17, 19}, {32, 784, 64}, {97, 300, 33},
                                     {9, 2500, 7}, {150, 40, 260}, {2, 700, 600},
                                     {70, 3000, 270}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int form = 0; form < 8; form++)
      try_size(form & 4 ? TD_FLOAT64 : TD_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], form & 1, form & 2);
}
END_TEST

// Products of one sign are the hardest to add: every rounding in a register goes the same way.
START_TEST(long_float32_sums_keep_their_digits) {
  static const int64_t sizes[][3] = {{1, 1, 60000}, {1, 70, 9000}, {40, 40, 300}, {40, 40, 70000}, {300, 20, 5000}};
  static const float factors[][2] = {{0.1f, 0.3f}, {0.7f, 0.9f}, {0.123f, 0.77f}, {0.55f, 0.21f}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
      const int64_t *size = sizes[i], shape_a[] = {size[0], size[2]}, shape_b[] = {size[2], size[1]};
      td_tensor *in[] = {td_tensor_new(context, TD_FLOAT32, 2, shape_a),
                         td_tensor_new(context, TD_FLOAT32, 2, shape_b)};
      td_tensor *out[TD_OUTPUT_MAX];
      for (int k = 0; k < 2; k++)
        for (int64_t j = 0; j < in[k]->size; j++) ((float *)in[k]->data)[j] = factors[f][k];
      ck_assert_int_eq(td_op_apply(context, td_op_find("matmul"), in, 2, NULL, out), TD_OK);
      double sum = (double)size[2] * (double)factors[f][0] * (double)factors[f][1];
      for (int64_t j = 0; j < out[0]->size; j++)
        ck_assert_double_le(fabs(td_tensor_get_float(out[0], j) / sum - 1), 10 * 0x1p-23);
      td_tensor_unref(in[0]);
      td_tensor_unref(in[1]);
      td_tensor_unref(out[0]);
    }
}
END_TEST

// Operands as views: transposed, backwards, with gaps, broadcast.
START_TEST(views_are_multiplied_as_they_lie) {
  const int64_t shape[] = {4, 4};
  const int64_t strides[][2] = {{4, 1}, {1, 4}, {-4, 1}, {4, -1}, {8, 2}, {0, 1}, {1, 0}, {0, 0}};
  const int64_t offsets[] = {0, 0, 12, 3, 0, 0, 0, 0}, many[] = {40};
  td_tensor *base = td_tensor_new(context, TD_FLOAT64, 1, many);
  uint64_t state = 1;
  fill(base->data, TD_FLOAT64, 40, &state);
  for (int i = 0; i < 64; i++) {
    td_tensor *in[] = {td_tensor_view(context, base, 2, shape, strides[i / 8], offsets[i / 8]),
                       td_tensor_view(context, base, 2, shape, strides[i % 8], offsets[i % 8])},
              *out[TD_OUTPUT_MAX];
    ck_assert_int_eq(td_op_apply(context, td_op_find("matmul"), in, 2, NULL, out), TD_OK);
    for (int64_t r = 0; r < 16; r++) {
      double sum = 0;
      for (int64_t p = 0; p < 4; p++)
        sum += td_tensor_get_float(in[0], r / 4 * 4 + p) * td_tensor_get_float(in[1], p * 4 + r % 4);
      ck_assert_double_le(fabs(td_tensor_get_float(out[0], r) - sum), 1e-14);
    }
    td_tensor_unref(in[0]);
    td_tensor_unref(in[1]);
    td_tensor_unref(out[0]);
  }
  td_tensor_unref(base);
}
END_TEST

START_TEST(no_memory_is_an_error) {
  const int64_t a[] = {300, 300};
  td_tensor *in[] = {td_tensor_zeros(context, TD_FLOAT32, 2, a), td_tensor_zeros(context, TD_FLOAT64, 2, a)},
            *out[TD_OUTPUT_MAX];
  for (int64_t n = 1;; n++) {
    td_memory_fail(n, false);
    int code = td_op_apply(context, td_op_find("matmul"), in, 2, NULL, out);
    td_memory_fail(0, false);
    if (!code) break;
    ck_assert_int_eq(code, TD_ERROR_MEMORY);
  }
  td_tensor_unref(out[0]);
  td_tensor_unref(in[0]);
  td_tensor_unref(in[1]);
}
END_TEST

int main(void) {
  const TTest *tests[] = {mismatch_hints_at_what_fits, sizes_of_all_kernels_agree_with_plain_sums,
                          long_float32_sums_keep_their_digits, views_are_multiplied_as_they_lie, no_memory_is_an_error};
  return cases_run("matmul", cases, sizeof cases / sizeof *cases, tests, 5);
}
