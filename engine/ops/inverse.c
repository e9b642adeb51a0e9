// Through the LU decomposition: det, slogdet, inv, solve, lu. An exactly singular matrix is an error where there is no
// answer, and a value where there is one (det 0).
#include <math.h>
#include <string.h>

#include "engine/device/cpu/gemm.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

// ---- the decomposition ----

typedef struct factors { // P^T A = L U, column by column
  void *lu;
  int *pivots; // row i was exchanged with row pivots[i] - 1
  int rows, columns;
} factors;

static factors factors_take(td_problem *p) {
  factors f = {.rows = (int)p->in[0].rows, .columns = (int)p->in[0].columns};
  f.lu = td_take(p, p->in[0].rows * p->in[0].columns, p->bytes);
  f.pivots = td_take(p, f.rows + 1, sizeof *f.pivots);
  return f;
}

static int at_least_one(int n) { return n < 1 ? 1 : n; }

static int factors_find(const td_problem *p, factors *f) { // returns the first pivot that is 0, from 1; or 0
  int info = 0, leading = at_least_one(f->rows);
  td_matrix_load(p, &p->in[0], f->lu);
  if (f->rows && f->columns) p->lapack->getrf(&f->rows, &f->columns, f->lu, &leading, f->pivots, &info);
  return info;
}

static bool is_odd(const factors *f) { // the permutation
  bool odd = false;
  for (int i = 0; i < f->rows; i++) odd ^= f->pivots[i] != i + 1;
  return odd;
}

static int fail_singular(const td_call *call, const char *matrix, int info) {
  int code =
      td_error_set(call->context, TD_ERROR_VALUE, "%s: %s is singular: pivot %d is 0", call->op->name, matrix, info);
  td_error_hint(call->context, "pinv(a) and lstsq(a, b) work for singular matrices");
  return code;
}

// ---- det, slogdet ----

static int det_one(td_problem *p) {
  factors f = factors_take(p);
  if (!p->scratch) return 0;
  factors_find(p, &f);
  double product = is_odd(&f) ? -1 : 1;
  for (int64_t i = 0; i < f.rows; i++) product *= td_number_at(p, f.lu, i * (f.rows + 1));
  td_number_put(p, p->out[0].data, 0, product);
  return 0;
}

static int slogdet_one(td_problem *p) {
  factors f = factors_take(p);
  if (!p->scratch) return 0;
  factors_find(p, &f);
  double sign = is_odd(&f) ? -1 : 1, sum = 0;
  for (int64_t i = 0; i < f.rows; i++) {
    double pivot = td_number_at(p, f.lu, i * (f.rows + 1));
    sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot; // 0 and NaN stay
    sum += log(fabs(pivot));
  }
  td_number_put(p, p->out[0].data, 0, sign);
  td_number_put(p, p->out[1].data, 0, sum);
  return 0;
}

static int determinant_infer(td_infer *infer) {
  int code = td_infer_matrix(infer, 0, true);
  for (int k = 0; k < infer->out_count && !code; k++) {
    td_infer_batch(&infer->in[0], &infer->out[k]);
    infer->out[k].dtype = td_infer_floating_dtype(infer);
  }
  return code;
}

TD_SOLVER(det, fail_singular, .cost = 50, .in_axes = {2})
TD_SOLVER(slogdet, fail_singular, .cost = 50, .in_axes = {2})

// ---- cofactors: the derivative of det ----

static bool is_reflection(td_problem *p, const void *orthogonal, factors *f) { // its determinant is -1
  int info = 0;
  bool odd;
  memcpy(f->lu, orthogonal, (size_t)f->rows * (size_t)f->rows * (size_t)p->bytes);
  p->lapack->getrf(&f->rows, &f->rows, f->lu, &f->rows, f->pivots, &info);
  odd = is_odd(f);
  for (int64_t i = 0; i < f->rows; i++) odd ^= td_number_at(p, f->lu, i * (f->rows + 1)) < 0;
  return odd;
}

// det(A) inv(A)^T, which by the SVD is there for a singular A too: with A = U S V^T it is det(U V) U R V^T, where R has
// the products of the other singular values.
static int cofactor_one(td_problem *p) {
  factors f = factors_take(p);
  td_decomposed d;
  int info = td_decompose(p, 'A', &d);
  int64_t n = f.rows;
  td_gemm_job job = {.a_transposed = true, .b_transposed = true, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
  void *work = td_take(p, td_gemm_workspace(p->dtype, &job), 1);
  if (!p->scratch || info || !n) return info;
  bool negative = is_reflection(p, d.u, &f) != is_reflection(p, d.vt, &f);
  for (int64_t k = 0; k < n; k++) {
    double product = negative ? -1 : 1;
    for (int64_t j = 0; j < n; j++)
      if (j != k) product *= td_number_at(p, d.s, j);
    for (int64_t i = 0; i < n; i++) td_number_put(p, d.u, k * n + i, product * td_number_at(p, d.u, k * n + i));
  }
  job.a = d.u;
  job.b = d.vt;
  job.c = p->out[0].data;
  td_gemm(NULL, p->dtype, &job, work);
  return 0;
}
TD_SOLVER(cofactor, fail_singular, .cost = 1500, .in_axes = {2}, .out_axes = {2})

static int square_infer(td_infer *infer) {
  int code = td_infer_matrix(infer, 0, true);
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = td_infer_floating_dtype(infer);
  return code;
}

// The derivative of the cofactors along C. In the bases of the SVD, C' = U^T C V, it has on the diagonal the sums of
// C'_jj P_ij over j != i, and -C'_ji P_ij beside it, P_ij being the product of the singular values but the i-th and
// j-th.
static double product_without(const td_problem *p, const void *values, int64_t n, int64_t i, int64_t j) {
  double product = 1;
  for (int64_t k = 0; k < n; k++)
    if (k != i && k != j) product *= td_number_at(p, values, k);
  return product;
}

static void bend(const td_problem *p, const td_decomposed *d, int64_t n, double sign, const void *turned, void *bent) {
  for (int64_t i = 0; i < n * n; i++) td_number_put(p, bent, i, 0);
  for (int64_t i = 0; i < n; i++) {
    double diagonal = 0;
    for (int64_t j = 0; j < n; j++) {
      if (i == j) continue;
      double others = sign * product_without(p, d->s, n, i, j);
      diagonal += td_number_at(p, turned, j * (n + 1)) * others;
      td_number_put(p, bent, j * n + i, -td_number_at(p, turned, i * n + j) * others);
    }
    td_number_put(p, bent, i * (n + 1), diagonal);
  }
}

static void multiply_square(const td_problem *p, td_gemm_job job, const void *a, const void *b, void *c, void *work) {
  job.a = a;
  job.b = b;
  job.c = c;
  td_gemm(NULL, p->dtype, &job, work);
}

// Columns read as rows are transposes: d.u holds U^T, d.vt V, what is loaded C^T.
static int cofactor_slope_one(td_problem *p) {
  factors f = factors_take(p);
  td_decomposed d;
  int info = td_decompose(p, 'A', &d);
  int64_t n = f.rows;
  void *c = td_take(p, n * n, p->bytes), *other = td_take(p, n * n, p->bytes);
  td_gemm_job plain = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n}, first = plain, second = plain;
  void *work = td_take(p, td_gemm_workspace(p->dtype, &plain), 1);
  if (!p->scratch || info || !n) return info;
  first.a_transposed = second.b_transposed = true;
  double sign = is_reflection(p, d.u, &f) != is_reflection(p, d.vt, &f) ? -1 : 1;
  td_matrix_load(p, &p->in[1], c);
  multiply_square(p, first, d.vt, c, other, work);
  multiply_square(p, second, other, d.u, c, work); // C'^T
  bend(p, &d, n, sign, c, other);
  multiply_square(p, plain, d.vt, other, c, work);
  multiply_square(p, plain, c, d.u, other, work);
  td_matrix_store(p, &p->out[0], other, n);
  return 0;
}
TD_SOLVER(cofactor_slope, fail_singular, .cost = 1500, .in_axes = {2, 2}, .out_axes = {2})

static td_tensor *cofactor_slope(td_scope *s, td_tensor *a, td_tensor *c);

static int cofactor_vjp(td_rule *rule) {
  rule->din[0] = cofactor_slope(&rule->scope, rule->in[0], rule->cotangent[0]);
  return TD_OK;
}

static const td_op cofactor = {
    .name = "cofactor",
    .params = {TD_MATRIX_PARAM("a")},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = square_infer,
    .kernel = cofactor_kernel,
    .workspace = cofactor_workspace,
    .vjp = cofactor_vjp,
    .saves = TD_SAVES_IN0,
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "The cofactors of the elements of square matrices: det(a) inv(a).T, also where a is singular.",
    .samples = TD_SAMPLES{{"3,3", NULL, -2, 2, NULL},
                          {"2,2,2", NULL, -2, 2, NULL},
                          {"0,0", NULL, -2, 2, NULL},
                          {"1,1", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

static td_tensor *cofactors(td_scope *s, td_tensor *a) { return td_scope_apply(s, &cofactor, NULL, 1, a); }

// For c it is its own transpose. With K the cofactors and B = inv(A)^T it is <C, K> B - K C^T B: what reaches K is
// <U, B> C - U B^T C, what reaches B is <C, K> U - C K^T U, and of X that reaches B, -B X^T B goes on to A.
static int cofactor_slope_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *a = rule->in[0], *c = rule->in[1], *u = rule->cotangent[0];
  if (rule->needs[1]) rule->din[1] = cofactor_slope(s, a, u);
  if (!rule->needs[0]) return TD_OK;
  td_tensor *b = td_swap_last(s, td_inverse(s, a)), *k = cofactors(s, a);
  td_tensor *to_k = td_subtract(s, td_multiply(s, td_sum_of_matrix(s, td_multiply(s, u, b)), c),
                                td_matmul(s, u, td_matmul(s, td_swap_last(s, b), c)));
  td_tensor *to_b = td_subtract(s, td_multiply(s, td_sum_of_matrix(s, td_multiply(s, c, k)), u),
                                td_matmul(s, c, td_matmul(s, td_swap_last(s, k), u)));
  rule->din[0] = td_subtract(s, cofactor_slope(s, a, to_k), td_matmul(s, b, td_matmul(s, td_swap_last(s, to_b), b)));
  return TD_OK;
}

static int slope_infer(td_infer *infer) {
  int code = square_infer(infer);
  if (code || td_shape_equal(infer->in[0].rank, infer->in[0].shape, infer->in[1].rank, infer->in[1].shape)) return code;
  return td_infer_fail(infer, TD_ERROR_SHAPE, "a and c must have one shape");
}

static const td_op cofactor_slope_op = {
    .name = "cofactor_slope",
    .params = {TD_MATRIX_PARAM("a"), TD_MATRIX_PARAM("c")},
    .kind = TD_KIND_OPAQUE,
    .flags = TD_HIDDEN,
    .infer = slope_infer,
    .kernel = cofactor_slope_kernel,
    .workspace = cofactor_slope_workspace,
    .vjp = cofactor_slope_vjp,
    .saves = TD_SAVES_INPUTS,
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "The derivative of the cofactors of a along c, also where a is singular.\n"
           "Gradient: for c that of u along a; for a by its inverse, so an error where a is singular.",
    .samples = TD_SAMPLES{{"3,3 +2; 3,3", NULL, -1, 1, NULL},
                          {"2,2,2 +2; 2,2,2", NULL, -1, 1, NULL},
                          {"0,0; 0,0", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

static td_tensor *cofactor_slope(td_scope *s, td_tensor *a, td_tensor *c) {
  return td_scope_apply(s, &cofactor_slope_op, NULL, 2, a, c);
}

static int det_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *k = td_scope_apply(s, &cofactor, NULL, 1, rule->in[0]);
  rule->din[0] = td_multiply(s, td_as_numbers(s, rule->cotangent[0]), k);
  return TD_OK;
}

static int slogdet_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  if (!rule->cotangent[1]) return TD_OK;
  td_tensor *back = td_swap_last(s, td_inverse(s, rule->in[0]));
  rule->din[0] = td_multiply(s, td_as_numbers(s, rule->cotangent[1]), back);
  return TD_OK;
}

#define SQUARE_SAMPLES                                                                          \
  TD_SAMPLES {                                                                                  \
    {"3,3", NULL, -2, 2, NULL}, {"2,1,3,3 +2", NULL, -1, 1, NULL}, {"1,1", NULL, 1, 2, NULL},   \
        {"0,0", NULL, -2, 2, NULL}, {"0,2,2", NULL, -2, 2, NULL}, {"2,0,0", NULL, -2, 2, NULL}, \
        {"6,6 +3", NULL, -1, 1, NULL}, TD_SAMPLES_END                                           \
  }

static const td_op det = {
    .name = "det",
    .params = {TD_MATRIX_PARAM("a")},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = determinant_infer,
    .kernel = det_kernel,
    .workspace = det_workspace,
    .vjp = det_vjp,
    .saves = TD_SAVES_IN0,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "Determinants of square matrices, which are the last two axes. That of a 0 x 0 matrix is 1.\n"
           "Gradient: c times the cofactors, det(a) inv(a).T, also where a is singular; there the third derivative is "
           "an error.",
    .example = "det(tensor([[1., 2.], [3., 5.]])).round(3).item()  # -1.0",
    .source = "Giles, Collected matrix derivative results for forward and reverse mode AD (2008), 2.2.4",
    .samples = SQUARE_SAMPLES,
    .tolerance = 1e-11,
};

static const td_op slogdet = {
    .name = "slogdet",
    .params = {TD_MATRIX_PARAM("a")},
    .kind = TD_KIND_OPAQUE,
    .outputs = 2,
    .method = true,
    .infer = determinant_infer,
    .kernel = slogdet_kernel,
    .workspace = slogdet_workspace,
    .vjp = slogdet_vjp,
    .saves = TD_SAVES_IN0,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "Sign and natural logarithm of the absolute value of the determinant, without overflow. Of a singular matrix "
        "they are 0 and -inf.\n"
        "Gradient of the logarithm: c inv(a).T, an error where a is singular; the sign has none.",
    .example = "slogdet(tensor([[2., 0.], [0., -0.5]]))[0].item()  # -1.0",
    .source = "Giles (2008), 2.2.5",
    .samples = SQUARE_SAMPLES,
    .tolerance = 1e-11,
};

// ---- inv ----

static int inv_one(td_problem *p) { // solves for the unit matrix, which leaves zeros where they belong
  factors f = factors_take(p);
  int n = f.rows, info = 0;
  void *x = td_take(p, (int64_t)n * n, p->bytes);
  if (!p->scratch || !n) return 0;
  info = factors_find(p, &f);
  for (int64_t i = 0; i < (int64_t)n * n; i++) td_number_put(p, x, i, i % (n + 1) == 0);
  if (!info) p->lapack->getrs("N", &n, &n, f.lu, &n, f.pivots, x, &n, &info, 1);
  if (!info) td_matrix_store(p, &p->out[0], x, n);
  return info;
}
TD_SOLVER(inv, fail_singular, .cost = 200, .in_axes = {2}, .out_axes = {2})

static int inv_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *back = td_swap_last(s, rule->out[0]);
  rule->din[0] = td_negative(s, td_matmul(s, td_matmul(s, back, rule->cotangent[0]), back));
  return TD_OK;
}

static const td_op inv = {
    .name = "inv",
    .alias = TD_ALIAS("inverse"),
    .params = {TD_MATRIX_PARAM("a")},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = square_infer,
    .kernel = inv_kernel,
    .workspace = inv_workspace,
    .vjp = inv_vjp,
    .saves = TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "Inverses of square matrices, which are the last two axes. A singular one is an error. solve(a, b) is faster "
        "and more accurate than inv(a) @ b.\n"
        "Gradient with y = inv(a): -y.T @ c @ y.T.",
    .example = "inv(tensor([[2., 1.], [1., 1.]])).round(3).tolist()  # [[1.0, -1.0], [-1.0, 2.0]]",
    .source = "Giles (2008), 2.2.3",
    .samples = TD_SAMPLES{{"3,3 +3", NULL, -1, 1, NULL},
                          {"2,1,3,3 +2", NULL, -1, 1, NULL},
                          {"1,1", NULL, 1, 2, NULL},
                          {"0,0", NULL, -2, 2, NULL},
                          {"0,2,2", NULL, -2, 2, NULL},
                          {"6,6 +3", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

td_tensor *td_inverse(td_scope *s, td_tensor *a) { return td_scope_apply(s, &inv, NULL, 1, a); }

// ---- solve ----

bool td_is_vector_side(int a_rank, const int64_t *a, int b_rank, const int64_t *b) {
  return b_rank == 1 || (b_rank == a_rank - 1 && td_shape_equal(b_rank, b, a_rank - 1, a));
}

static bool view_is_vector(const td_call *call) {
  const td_view *a = &call->in[0], *b = &call->in[1];
  return td_is_vector_side(a->rank, a->shape, b->rank, b->shape);
}

static int solve_one(td_problem *p) {
  factors f = factors_take(p);
  int n = f.rows, columns = (int)p->out[0].columns, leading = at_least_one(n), info = 0;
  void *x = td_take(p, (int64_t)n * columns, p->bytes);
  if (!p->scratch || !n) return 0;
  info = factors_find(p, &f);
  td_matrix_load(p, &p->in[1], x);
  if (!info && columns) p->lapack->getrs("N", &n, &columns, f.lu, &n, f.pivots, x, &leading, &info, 1);
  if (!info) td_matrix_store(p, &p->out[0], x, n);
  return info;
}
TD_SOLVER(solve, fail_singular, .cost = 200, .in_axes = {2, view_is_vector(call) ? 1 : 2},
          .out_axes = {view_is_vector(call) ? 1 : 2})

int td_infer_solve(td_infer *infer, bool left) {
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  td_meta *out = &infer->out[0];
  int code = td_infer_matrix(infer, 0, true), rank = 0, axis = 0;
  if (code) return code;
  if (!b->rank) return td_infer_fail(infer, TD_ERROR_SHAPE, "b must be a vector or a matrix, and is 0-d");
  bool vector = td_is_vector_side(a->rank, a->shape, b->rank, b->shape);
  int inner = vector ? 1 : 2;
  int64_t n = a->shape[a->rank - 1], there = b->shape[b->rank - (left ? inner : 1)];
  if (n != there)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the matrices of a are %lld x %lld, and b has %lld %s", (long long)n,
                         (long long)n, (long long)there, left ? "rows" : "columns");
  int64_t shape[TD_RANK_MAX];
  if (!td_shape_broadcast(a->rank - 2, a->shape, b->rank - inner, b->shape, &rank, shape, &axis))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "batch axes don't broadcast: axis %d has %lld and %lld", axis,
                         (long long)a->shape[axis - rank + a->rank - 2],
                         (long long)b->shape[axis - rank + b->rank - inner]);
  *out = (td_meta){.dtype = td_infer_floating_dtype(infer), .rank = (uint8_t)rank};
  for (int i = 0; i < rank; i++) out->shape[i] = shape[i];
  for (int i = inner; i > 0; i--) td_meta_append(out, b->shape[b->rank - i]);
  return TD_OK;
}

static int solve_infer(td_infer *infer) { return td_infer_solve(infer, true); }

// dB = solve(A^T, C), dA = -dB X^T.
static int solve_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *a = rule->in[0], *x = rule->out[0];
  td_tensor *db = td_solve(s, td_swap_last(s, a), rule->cotangent[0]);
  rule->din[1] = db;
  if (!rule->needs[0] || !db || !x) return TD_OK;
  const td_tensor *b = rule->in[1];
  bool vector = td_is_vector_side(a->rank, a->shape, b->rank, b->shape);
  td_tensor *columns = vector ? td_as_columns(s, db) : db;
  rule->din[0] = td_negative(s, td_matmul(s, columns, vector ? td_as_rows(s, x) : td_swap_last(s, x)));
  return TD_OK;
}

static const td_op solve = {
    .name = "solve",
    .params = {TD_MATRIX_PARAM("a"), TD_MATRIX_PARAM("b")},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = solve_infer,
    .kernel = solve_kernel,
    .workspace = solve_workspace,
    .vjp = solve_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .module = "linalg",
    .missing = td_needs_lapack,
    .doc =
        "x with a @ x = b, for square matrices a. b is a vector when it has rank 1, or a's shape without the last "
        "axis; else its last two axes are a matrix of right sides. Leading axes broadcast. A singular a is an error.\n"
        "Gradient: solve(a.T, c) for b; minus that times x.T for a.",
    .example = "solve(tensor([[2., 0.], [0., 4.]]), tensor([2., 2.])).tolist()  # [1.0, 0.5]",
    .source = "Giles (2008), 2.3.1",
    .samples = TD_SAMPLES{{"3,3 +3; 3", NULL, -1, 1, NULL},
                          {"3,3 +3; 3,2", NULL, -1, 1, NULL},
                          {"2,3,3 +3; 2,3", NULL, -1, 1, NULL},
                          {"2,3,3 +3; 3", NULL, -1, 1, NULL},
                          {"2,1,3,3 +3; 4,3,2", NULL, -1, 1, NULL},
                          {"3,3 +3; 2,3,2", NULL, -1, 1, NULL},
                          {"0,0; 0,2", NULL, -1, 1, NULL},
                          {"2,2 +3; 2,0", NULL, -1, 1, NULL},
                          {"1,1; 1", NULL, 1, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

td_tensor *td_solve(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &solve, NULL, 2, a, b); }

// ---- lu ----

static int lu_one(td_problem *p) {
  factors f = factors_take(p);
  int64_t m = f.rows, n = f.columns, k = m < n ? m : n;
  int *rows = td_take(p, m + 1, sizeof *rows);
  void *l = td_take(p, m * k, p->bytes), *u = td_take(p, k * n, p->bytes);
  void *permutation = td_take(p, m * m, p->bytes);
  if (!p->scratch) return 0;
  if (k) factors_find(p, &f);
  for (int64_t i = 0; i < m; i++) rows[i] = (int)i;
  for (int64_t i = 0; i < k; i++) { // rows[i]: the row of A that became row i
    int other = f.pivots[i] - 1, mine = rows[i];
    rows[i] = rows[other];
    rows[other] = mine;
  }
  memset(permutation, 0, (size_t)(m * m * p->bytes));
  for (int64_t i = 0; i < m; i++) td_number_put(p, permutation, i * m + rows[i], 1);
  for (int64_t j = 0; j < k; j++)
    for (int64_t i = 0; i < m; i++) td_number_put(p, l, j * m + i, i > j ? td_number_at(p, f.lu, j * m + i) : i == j);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < k; i++) td_number_put(p, u, j * k + i, i > j ? 0 : td_number_at(p, f.lu, j * m + i));
  td_matrix_store(p, &p->out[0], permutation, m);
  td_matrix_store(p, &p->out[1], l, m);
  td_matrix_store(p, &p->out[2], u, k);
  return 0;
}
TD_SOLVER(lu, fail_singular, .cost = 100, .in_axes = {2}, .out_axes = {2, 2, 2})

static int lu_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0];
  int code = td_infer_matrix(infer, 0, false);
  if (code) return code;
  int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1], k = m < n ? m : n;
  const int64_t sizes[3][2] = {{m, m}, {m, k}, {k, n}};
  for (int i = 0; i < 3; i++) {
    td_infer_batch(a, &infer->out[i]);
    td_meta_append(&infer->out[i], sizes[i][0]);
    td_meta_append(&infer->out[i], sizes[i][1]);
    infer->out[i].dtype = td_infer_floating_dtype(infer);
  }
  return TD_OK;
}

// P^T dA of a square matrix: L^-T (strict lower part of L^T gL, upper part of gU U^T) U^-T.
static td_tensor *lu_square(td_scope *s, td_tensor *l, td_tensor *u, td_tensor *gl, td_tensor *gu) {
  td_tensor *inner = NULL;
  if (gl) inner = td_triangle(s, td_matmul(s, td_swap_last(s, l), gl), false, -1);
  if (gu) {
    td_tensor *upper = td_triangle(s, td_matmul(s, gu, td_swap_last(s, u)), true, 0);
    inner = inner ? td_add(s, inner, upper) : upper;
  }
  td_tensor *left = td_solve_triangular(s, l, inner, false, true, true, true);
  return td_solve_triangular(s, u, left, true, false, true, false);
}

static td_tensor *less(td_scope *s, td_tensor *a, td_tensor *b) { // a may be NULL for 0
  return a ? td_subtract(s, a, b) : td_negative(s, b);
}

// Of a tall matrix the rows below the square, [A1; A2] = [L1; L2] U, give L2 = A2 U^-1; a wide one likewise by columns.
static int lu_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *permutation = rule->out[0], *l = rule->out[1], *u = rule->out[2];
  td_tensor *gl = rule->cotangent[1], *gu = rule->cotangent[2], *below = NULL, *beside = NULL;
  if (!l || !u || (!gl && !gu)) return TD_OK;
  int64_t m = l->shape[l->rank - 2], k = l->shape[l->rank - 1], n = u->shape[u->rank - 1];
  td_tensor *l1 = m > k ? td_rows_of(s, l, 0, k) : l, *u1 = n > k ? td_columns_of(s, u, 0, k) : u;
  td_tensor *gl1 = gl && m > k ? td_rows_of(s, gl, 0, k) : gl, *gu1 = gu && n > k ? td_columns_of(s, gu, 0, k) : gu;
  if (gl && m > k) {
    below = td_solve_triangular(s, u1, td_rows_of(s, gl, k, m - k), true, false, true, false);
    gu1 = less(s, gu1, td_matmul(s, td_swap_last(s, td_rows_of(s, l, k, m - k)), below));
  }
  if (gu && n > k) {
    beside = td_solve_triangular(s, l1, td_columns_of(s, gu, k, n - k), false, true, true, true);
    gl1 = less(s, gl1, td_matmul(s, beside, td_swap_last(s, td_columns_of(s, u, k, n - k))));
  }
  td_tensor *ga = lu_square(s, l1, u1, gl1, gu1);
  if (m > k) ga = below ? td_concat(s, ga, below, -2) : td_pad_matrix(s, ga, m, n);
  if (n > k) ga = beside ? td_concat(s, ga, beside, -1) : td_pad_matrix(s, ga, m, n);
  rule->din[0] = td_matmul(s, permutation, ga);
  return TD_OK;
}

static const td_op lu = {
    .name = "lu",
    .params = {TD_MATRIX_PARAM("a")},
    .kind = TD_KIND_OPAQUE,
    .outputs = 3,
    .infer = lu_infer,
    .kernel = lu_kernel,
    .workspace = lu_workspace,
    .vjp = lu_vjp,
    .saves = TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "a = p @ l @ u with a permutation p, l lower triangular with ones on the diagonal, u upper triangular; a tuple "
        "(p, l, u). Rows are exchanged for the largest pivot. Works for any shape, and for singular matrices.\n"
        "Gradient: p @ inv(l).T @ (strict lower part of l.T @ cl + upper part of cu @ u.T) @ inv(u).T for square a; "
        "an error where u has a 0 on its diagonal.",
    .example = "lu(tensor([[1., 2.], [4., 4.]]))[2].tolist()  # [[4.0, 4.0], [0.0, 1.0]]",
    .source =
        "de Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization (2011)",
    .samples = TD_SAMPLES{{"3,3 +3", NULL, -1, 1, NULL},
                          {"2,4,4", NULL, -1, 1, NULL},
                          {"4,2", NULL, -1, 1, NULL},
                          {"2,4", NULL, -1, 1, NULL},
                          {"0,3", NULL, -1, 1, NULL},
                          {"1,1", NULL, 1, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

const td_op *const td_family_inverse[] = {&det, &cofactor, &cofactor_slope_op, &slogdet, &inv, &solve, &lu, NULL};
