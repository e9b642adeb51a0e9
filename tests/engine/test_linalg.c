// Linear algebra: what defines each decomposition, on random matrices of many sizes; refusals with their messages;
// forms of einsum against plain sums.
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "engine/base/detached.h"
#include "engine/device/cpu/lapack.h"
#include "engine/ops/families.h"
#include "engine/ops/matrices.h"
#include "tests/engine/cases.h"

static const op_case cases[] = {
    {"inv", "[[1, 2], [2, 4]]", NULL, "!VALUE: a is singular: pivot 2 is 0", NULL},
    {"inv", "[[[1, 0], [0, 1]], [[0, 0], [0, 1]]]", NULL, "!VALUE: a[1] is singular: pivot 1 is 0", NULL},
    {"inv", "[1, 2]", NULL, "!SHAPE: a must be a matrix or a batch of them, and has rank 1", NULL},
    {"inv", "{2, 3}", NULL, "!SHAPE: must be square, and are 2 x 3", NULL},
    {"det", "{0, 0}", NULL, "1", NULL},
    {"det", "[[1, 2], [2, 4]]", NULL, "0", "[[4, -2], [-2, 1]]"},
    {"det", "i64 [[1, 2], [3, 4]]", NULL, "f32 -2", NULL},
    {"slogdet", "[[1, 2], [2, 4]]", NULL, "0; -inf", NULL},
    {"solve", "[[1, 0], [0, 0]]; [1, 1]", NULL, "!VALUE: a is singular: pivot 2 is 0", NULL},
    {"solve", "[[1, 0], [0, 1]]; [1, 2, 3]", NULL, "!SHAPE: the matrices of a are 2 x 2, and b has 3 rows", NULL},
    {"solve", "{2, 2}; 1", NULL, "!SHAPE: b must be a vector or a matrix, and is 0-d", NULL},
    {"solve", "[[2, 0], [0, 4]]; [2, 4]", NULL, "[1, 1]", NULL},
    {"solve_triangular", "[[1, 0], [5, 0]]; [1, 1]", "upper=False", "!VALUE: element 1 of its diagonal is 0", NULL},
    {"cholesky", "[[1, 2], [2, 1]]", NULL, "!VALUE: a is not positive definite: its leading minor of order 2", NULL},
    {"cholesky", "[[4, 9], [2, 2]]", NULL, "[[2, 0], [1, 1]]", NULL},
    {"svd", "[[1, nan], [0, 1]]", NULL, "!VALUE: a has a NaN or an infinity", NULL},
    {"eigh", "[[1, inf], [0, 1]]", "UPLO=\"U\"", "!VALUE: a has a NaN or an infinity", NULL},
    {"eigvalsh", "[[2, 9], [0, 3]]", NULL, "[2, 3]", NULL},
    {"lstsq", "[[2, 0], [0, 1]]; {2, 0}", NULL, "{2, 0}", NULL},
    {"lstsq", "{3, 2}; {2}", NULL, "!SHAPE: the matrices of a have 3 rows, and b has 2", NULL},
    {"matrix_power", "[[0, 0], [0, 1]]", "n=-1", "!VALUE: singular and has no negative power: pivot 1 is 0", NULL},
    {"matrix_power", "[[1, 1], [0, 1]]", "n=9", "[[1, 9], [0, 1]]", NULL},
    {"matrix_norm", "{0, 2}", "ord=2", "!SHAPE: a matrix without elements has no such norm", NULL},
    {"matrix_norm", "[[1, 2], [3, 4]]", "ord=3", "!VALUE: ord must be", NULL},
    {"matrix_norm", "[[0, 0], [0, 0]]", NULL, "0", "[[0, 0], [0, 0]]"},
    {"cond", "[[1, 2], [2, 4]]", "p=1", "inf", NULL},
    {"expm", "[[0, 0], [0, 0]]", NULL, "[[1, 0], [0, 1]]", NULL},
    {"pinv", "[[1, 1], [1, 1]]", NULL, "[[0.25, 0.25], [0.25, 0.25]]", NULL},
    {"matrix_rank", "[[1, 1], [1, 1]]", NULL, "i64 1", NULL},
    {"einsum", "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]", "subscripts=\"iij->ij\"", "[[1, 2], [7, 8]]",
     "[[[1, 1], [0, 0]], [[0, 0], [1, 1]]]"},
    {"einsum", "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]", "subscripts=\"iij->i\"", "[3, 15]", NULL},
    {"einsum", "{2, 3}; {4, 2}", "subscripts=\"ij,jk\"", "!SHAPE: 'j' has size 3 in operand 0 and 4 in operand 1",
     NULL},
    {"einsum", "{2, 3}", "subscripts=\"ij->ii\"", "!SHAPE: the result has 'i' twice", NULL},
    {"einsum", "{2, 3}", "subscripts=\"ij->k\"", "!SHAPE: the result has 'k', which no operand has", NULL},
    {"einsum", "{2, 3}", "subscripts=\"ij,jk\"", "!SHAPE: are for 2 operands, and 1 is given", NULL},
    {"einsum", "{2, 3}", "subscripts=\"i\"", "!SHAPE: operand 0 has rank 2, and its subscripts name 1 axes", NULL},
    {"einsum", "{2, 3}", "subscripts=\"ii\"", "!SHAPE: 'i' stands for two axes of operand 0, of sizes 2 and 3", NULL},
    {"einsum", "{2, 3}", "subscripts=\"...i->i\"", "!SHAPE: the result lacks '...'", NULL},
    {"einsum", "{2, 3}", "subscripts=\"i-j\"", "!SHAPE: '-' in the subscripts", NULL},
    {"tensordot", "{2, 3}; {4, 2}", "axes=1", "!SHAPE: axis 1 of a has size 3, axis 0 of b 4", NULL},
    {"tensordot", "{2, 3}; {3, 2}", "axes=((1, 1), (0, 1))", "!SHAPE: is named twice", NULL},
    {"tensordot", "{2, 3}; {3, 2}", "axes=3", "!SHAPE: 3 axes can't be summed", NULL},
    {"outer", "{2, 3}; {3}", NULL, "!SHAPE: a must be a vector", NULL},
    {"inner", "{3}; {4}", NULL, "!SHAPE: axis 0 of a has size 3, axis 0 of b 4", NULL},
    {"trace", "{3}", NULL, "!SHAPE: x must have rank 2 or more", NULL},
    {"trace", "{3, 3}", "axis1=1, axis2=-1", "!VALUE: axis1 and axis2 are both 1", NULL},
    {"kron", "{1, 1, 1, 1, 1}; {1, 1, 1, 1}", NULL, "!SHAPE: more than 8 together", NULL},
};

static uint64_t state = 1;

static td_tensor *matrix(int64_t rows, int64_t columns) { // numbers in [-1, 1]
  td_tensor *t = td_tensor_new(context, TD_FLOAT64, 2, (const int64_t[]){rows, columns});
  for (int64_t i = 0; i < t->size; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ((double *)t->data)[i] = (double)(int64_t)(state >> 11) / (double)((int64_t)1 << 52) - 1;
  }
  return t;
}

static td_tensor *apply(td_scope *s, const char *name, const char *args, td_tensor *a, td_tensor *b, td_tensor **out) {
  td_arg values[TD_PARAM_MAX];
  char problem[200];
  const td_op *op = td_op_find(name);
  td_tensor *in[] = {a, b}, *made[TD_OUTPUT_MAX];
  ck_assert_msg(sample_arguments(op, args, values, problem), "%s: %s", name, problem);
  if (td_op_apply(context, op, in, b ? 2 : 1, values, made)) ck_abort_msg("%s: %s", name, context->error.message);
  for (int k = 0; k < td_op_outputs(op, made); k++) {
    td_scope_own(s, made[k]);
    if (out) out[k] = made[k];
  }
  return made[0];
}

static void expect_same(const td_tensor *a, const td_tensor *b, double bound, const char *what, int64_t m, int64_t n) {
  ck_assert(a && b && a->size == b->size);
  for (int64_t i = 0; i < a->size; i++) {
    double x = td_tensor_get_float(a, i), y = td_tensor_get_float(b, i);
    ck_assert_msg(fabs(x - y) <= bound, "%s of %lld x %lld: element %lld is %.17g, not %.17g", what, (long long)m,
                  (long long)n, (long long)i, x, y);
  }
}

static void try_matrix(int64_t m, int64_t n) {
  td_scope s;
  td_tensor *out[TD_OUTPUT_MAX], *a;
  double bound = 1e-13 * (double)(m + n + 4);
  td_scope_open(&s, context);
  a = td_scope_own(&s, matrix(m, n));
  apply(&s, "qr", NULL, a, NULL, out);
  expect_same(td_matmul(&s, out[0], out[1]), a, bound, "q @ r", m, n);
  td_tensor *gram = td_matmul(&s, td_swap_last(&s, out[0]), out[0]);
  expect_same(gram, td_eye(&s, m < n ? m : n, TD_FLOAT64), bound, "q.T @ q", m, n);
  apply(&s, "svd", "full_matrices=False", a, NULL, out);
  td_tensor *scaled = td_multiply(&s, out[0], out[1]);
  expect_same(td_matmul(&s, scaled, out[2]), a, 10 * bound, "(u * s) @ vh", m, n);
  apply(&s, "lu", NULL, a, NULL, out);
  expect_same(td_matmul(&s, td_matmul(&s, out[0], out[1]), out[2]), a, bound, "p @ l @ u", m, n);
  td_tensor *p = apply(&s, "pinv", NULL, a, NULL, NULL);
  expect_same(td_matmul(&s, td_matmul(&s, a, p), a), a, 1e-9, "a @ pinv(a) @ a", m, n);
  ck_assert(!s.failed);
  td_scope_close(&s);
}

static void try_square(int64_t n) {
  td_scope s;
  td_tensor *out[TD_OUTPUT_MAX], *a, *b, *x;
  td_scope_open(&s, context);
  a = td_scope_own(&s, matrix(n, n));
  b = td_scope_own(&s, matrix(n, 3));
  a = td_add(&s, a, td_multiply(&s, td_eye(&s, n, TD_FLOAT64), td_scope_number(&s, (double)n + 1, a)));
  x = apply(&s, "solve", NULL, a, b, NULL);
  expect_same(td_matmul(&s, a, x), b, 1e-12, "a @ solve(a, b)", n, n);
  x = apply(&s, "inv", NULL, a, NULL, NULL);
  expect_same(td_matmul(&s, a, x), td_eye(&s, n, TD_FLOAT64), 1e-12, "a @ inv(a)", n, n);
  td_tensor *positive = td_matmul(&s, a, td_swap_last(&s, a));
  double size = (double)(n + 1) * (double)(n + 1);
  td_tensor *l = apply(&s, "cholesky", NULL, positive, NULL, NULL);
  expect_same(td_matmul(&s, l, td_swap_last(&s, l)), positive, 1e-13 * size, "l @ l.T", n, n);
  x = apply(&s, "cholesky_solve", NULL, b, l, NULL);
  expect_same(td_matmul(&s, positive, x), b, 1e-11, "cholesky_solve", n, n);
  apply(&s, "eigh", NULL, positive, NULL, out);
  td_tensor *back = td_matmul(&s, td_multiply(&s, out[1], out[0]), td_swap_last(&s, out[1]));
  expect_same(back, positive, 1e-12 * size, "(v * w) @ v.T", n, n);
  ck_assert(!s.failed);
  td_scope_close(&s);
}

START_TEST(decompositions_multiply_back) {
  static const int64_t sizes[][2] = {{1, 1}, {2, 3}, {5, 2}, {17, 17}, {40, 9}, {9, 60}, {130, 70}, {64, 200}};
  if (td_lapack_missing()) return;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    try_matrix(sizes[i][0], sizes[i][1]);
    try_square(sizes[i][0]);
  }
  try_square(200);
}
END_TEST

START_TEST(batches_have_the_same_bits_on_any_number_of_threads) {
  static const char *const names[] = {"inv", "det", "svdvals", "expm", "qr"};
  if (td_lapack_missing()) return;
  const int64_t shape[] = {200, 6, 6};
  td_tensor *flat = matrix(1200, 6), *x = td_tensor_view(context, flat, 3, shape, (const int64_t[]){36, 6, 1}, 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    td_tensor *one[TD_OUTPUT_MAX], *many[TD_OUTPUT_MAX];
    const td_op *op = td_op_find(names[i]);
    ck_assert_int_eq(td_op_apply(context, op, &x, 1, NULL, one), TD_OK);
    ck_assert_int_eq(td_op_apply(wide, op, &x, 1, NULL, many), TD_OK);
    for (int k = 0; k < td_op_outputs(op, one); k++) {
      ck_assert(!memcmp(one[k]->data, many[k]->data, (size_t)(one[k]->size * 8)));
      td_tensor_unref(one[k]);
      td_tensor_unref(many[k]);
    }
  }
  td_tensor_unref(x);
  td_tensor_unref(flat);
}
END_TEST

static void *interrupt_soon(void *argument) {
  usleep(100000);
  atomic_store(&((td_context *)argument)->interrupt, 1);
  return NULL;
}

START_TEST(a_long_routine_is_left_on_an_interrupt) {
  if (td_lapack_missing()) return;
  td_tensor *x = matrix(1200, 1200), *out[TD_OUTPUT_MAX];
  pthread_t thread;
  struct timespec before, after;
  pthread_create(&thread, NULL, interrupt_soon, context);
  clock_gettime(CLOCK_MONOTONIC, &before);
  ck_assert_int_eq(td_op_apply(context, td_op_find("svd"), &x, 1, NULL, out), TD_ERROR_INTERRUPT);
  clock_gettime(CLOCK_MONOTONIC, &after);
  pthread_join(thread, NULL);
  atomic_store(&context->interrupt, 0);
  td_tensor_unref(x);
#ifdef __GLIBC__
  ck_assert(td_detached_left()); // 3 s on an idle machine
#endif
  ck_assert_int_lt(after.tv_sec - before.tv_sec, 3);
  while (td_detached_left()) usleep(10000);
}
END_TEST

START_TEST(workspaces_are_large_enough) {
  td_problem p = {.dtype = TD_FLOAT32, .in = {{.rows = 3500, .columns = 3500}}};
  const int exact = 1 + 6 * 3500 + 2 * 3500 * 3500; // of syevd: float32 has no such number
  double size = 0;
  *(float *)&size = (float)exact;
  ck_assert_int_lt((int)*(float *)&size, exact);
  ck_assert_int_ge(td_work_length(&p, &size), exact);
  ck_assert(td_work_fits(&p));
  p.in[0].rows = p.in[0].columns = 30000; // 2 * 30000^2 fits, 4 * 30000^2 doesn't
  ck_assert(!td_work_fits(&p));
}
END_TEST

START_TEST(no_memory_is_an_error) {
  if (td_lapack_missing()) return;
  td_tensor *in[] = {matrix(60, 60), matrix(60, 60)}, *out[TD_OUTPUT_MAX];
  td_arg args[1] = {{.given = 1, .text = "ij,jk->ki"}};
  for (int which = 0; which < 2; which++)
    for (int64_t n = 1;; n++) {
      td_memory_fail(n, false);
      int code = td_op_apply(context, td_op_find(which ? "einsum" : "solve"), in, 2, which ? args : NULL, out);
      td_memory_fail(0, false);
      if (!code) {
        td_tensor_unref(out[0]);
        break;
      }
      ck_assert_int_eq(code, TD_ERROR_MEMORY);
    }
  td_tensor_unref(in[0]);
  td_tensor_unref(in[1]);
}
END_TEST

int main(void) {
  const TTest *tests[] = {decompositions_multiply_back, batches_have_the_same_bits_on_any_number_of_threads,
                          no_memory_is_an_error, a_long_routine_is_left_on_an_interrupt, workspaces_are_large_enough};
  return cases_run("linalg", cases, sizeof cases / sizeof *cases, tests, sizeof tests / sizeof *tests);
}
