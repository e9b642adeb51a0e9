// What the singular value decomposition gives for matrices of any rank: pinv, matrix_rank, lstsq.
#include <float.h>
#include <string.h>

#include "engine/device/cpu/gemm.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

// Singular values up to this share of the largest count as 0; PyTorch's default.
static double share_of(const td_problem *p, const td_arg *given) {
  int64_t m = p->in[0].rows, n = p->in[0].columns;
  if (given->given) return given->f;
  return (double)(m > n ? m : n) * (p->dtype == TD_FLOAT32 ? (double)FLT_EPSILON : DBL_EPSILON);
}

#define RTOL_PARAM \
  { .name = "rtol", .kind = TD_PARAM_FLOAT, .alias = TD_ALIAS("rcond") }
#define HERMITIAN_PARAM \
  { .name = "hermitian", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }

// ---- pinv ----

static int pinv_one(td_problem *p) {
  td_decomposed d;
  int info = td_decompose(p, 'S', &d);
  int64_t m = d.rows, n = d.columns, k = d.count;
  td_gemm_job job = {.m = n, .n = m, .k = k, .lda = k < 1 ? 1 : k, .ldb = m < 1 ? 1 : m, .ldc = m < 1 ? 1 : m};
  void *work = td_take(p, td_gemm_workspace(p->dtype, &job), 1);
  if (!p->scratch || info) return info;
  double least = k ? share_of(p, &p->call->args[0]) * td_number_at(p, d.s, 0) : 0;
  for (int64_t j = 0; j < k; j++) {
    double s = td_number_at(p, d.s, j), factor = s > least ? 1 / s : 0;
    for (int64_t i = 0; i < m; i++) td_number_put(p, d.u, j * m + i, factor * td_number_at(p, d.u, j * m + i));
  }
  job.a = d.vt; // column by column V^T is V row by row
  job.b = d.u;
  job.c = p->out[0].data;
  td_gemm(NULL, p->dtype, &job, work);
  return 0;
}
TD_SOLVER(pinv, td_fail_convergence, .cost = 1000, .in_axes = {2}, .out_axes = {2})

static int pinv_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0];
  int code = td_infer_matrix(infer, 0, false);
  if (code) return code;
  td_infer_batch(a, &infer->out[0]);
  td_meta_append(&infer->out[0], a->shape[a->rank - 1]);
  td_meta_append(&infer->out[0], a->shape[a->rank - 2]);
  infer->out[0].dtype = td_infer_floating_dtype(infer);
  return TD_OK;
}

// Of P = pinv(A) with cotangent C, n x m: C^T P^T P - (P C^T P)^T + P^T P C^T less what of these A and P take back.
static td_tensor *pinv_slope(td_scope *s, td_tensor *a, td_tensor *p, td_tensor *c) {
  td_tensor *h = td_swap_last(s, c), *pt = td_swap_last(s, p);
  if (!a || !h) return NULL;
  if (a->shape[a->rank - 2] <= a->shape[a->rank - 1]) {
    td_tensor *k = td_matmul(s, h, p), *kpt = td_matmul(s, k, pt);
    td_tensor *first = td_subtract(s, kpt, td_swap_last(s, td_matmul(s, p, k)));
    td_tensor *second = td_matmul(s, td_matmul(s, a, p), kpt);
    td_tensor *third = td_matmul(s, td_matmul(s, pt, p), td_subtract(s, h, td_matmul(s, k, a)));
    return td_add(s, td_subtract(s, first, second), third);
  }
  td_tensor *k = td_matmul(s, p, h), *ptk = td_matmul(s, pt, k);
  td_tensor *first = td_subtract(s, ptk, td_swap_last(s, td_matmul(s, k, p)));
  td_tensor *second = td_matmul(s, td_matmul(s, ptk, p), a);
  td_tensor *third = td_matmul(s, td_matmul(s, td_subtract(s, h, td_matmul(s, a, k)), p), pt);
  return td_add(s, td_subtract(s, first, second), third);
}

static int pinv_vjp(td_rule *rule) {
  rule->din[0] = pinv_slope(&rule->scope, rule->in[0], rule->out[0], rule->cotangent[0]);
  return TD_OK;
}

static const td_op pinv = {
    .name = "pinv",
    .alias = TD_ALIAS("pinverse"),
    .params = {TD_MATRIX_PARAM("a"), RTOL_PARAM, HERMITIAN_PARAM},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = pinv_infer,
    .kernel = pinv_kernel,
    .workspace = pinv_workspace,
    .vjp = pinv_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "Pseudo-inverses (Moore and Penrose's) of matrices of any shape and rank. Singular values up to rtol times the "
        "largest count as 0; None is PyTorch's, the longer side times the dtype's epsilon. hermitian is understood and "
        "changes nothing.\nGradient: right as long as the rank doesn't change.",
    .example = "pinv(tensor([[2., 0.], [0., 0.]])).tolist()  # [[0.5, 0.0], [0.0, 0.0]]",
    .source = "Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems (1973)",
    .samples = TD_SAMPLES{{"3,3 +3", NULL, -1, 1, NULL},
                          {"4,2", NULL, -1, 1, NULL},
                          {"2,4", NULL, -1, 1, NULL},
                          {"2,1,3,2", NULL, -1, 1, NULL},
                          {"0,3", NULL, -1, 1, NULL},
                          {"3,0", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

// ---- matrix_rank ----

static int matrix_rank_one(td_problem *p) {
  const td_arg *args = p->call->args;
  td_decomposed d;
  int info = td_decompose(p, 'N', &d);
  if (!p->scratch || info) return info;
  double largest = d.count ? td_number_at(p, d.s, 0) : 0;
  double least = args[0].given ? args[0].f : share_of(p, &args[2]) * largest;
  if (args[0].given && args[2].given && args[2].f * largest > least) least = args[2].f * largest;
  int64_t rank = 0;
  while (rank < d.count && td_number_at(p, d.s, rank) > least) rank++;
  *(int64_t *)p->out[0].data = rank;
  return 0;
}

static td_solver matrix_rank_solver(const td_call *call) {
  uint8_t dtype = call->in[0].dtype == TD_FLOAT64 ? TD_FLOAT64 : TD_FLOAT32;
  return (td_solver){
      .in_axes = {2}, .dtype = dtype, .cost = 500, .solve = matrix_rank_one, .fail = td_fail_convergence};
}

static int64_t matrix_rank_workspace(const td_call *call) {
  td_solver s = matrix_rank_solver(call);
  return td_matrices_workspace(call, &s);
}

static int matrix_rank_kernel(const td_call *call) {
  td_solver s = matrix_rank_solver(call);
  return td_matrices_run(call, &s);
}

static int matrix_rank_infer(td_infer *infer) {
  int code = td_infer_matrix(infer, 0, false);
  if (code) return code;
  td_infer_batch(&infer->in[0], &infer->out[0]);
  infer->out[0].dtype = TD_INT64;
  return TD_OK;
}

static const td_op matrix_rank = {
    .name = "matrix_rank",
    .params = {TD_MATRIX_PARAM("a"),
               {.name = "tol", .kind = TD_PARAM_FLOAT, .alias = TD_ALIAS("atol")},
               HERMITIAN_PARAM,
               RTOL_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = matrix_rank_infer,
    .kernel = matrix_rank_kernel,
    .workspace = matrix_rank_workspace,
    .no_gradient = "integer result",
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "How many singular values are larger than tol; without tol, than rtol times the largest one, where rtol is the "
        "longer side times the dtype's epsilon when None.",
    .example = "matrix_rank(tensor([[1., 2.], [2., 4.]])).item()  # 1",
    .samples = TD_SAMPLES{{"3,3", NULL, -1, 1, NULL},
                          {"4,2", "tol=100.0", -1, 1, NULL},
                          {"2,1,2,4", NULL, -1, 1, NULL},
                          {"0,3", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
};

// ---- lstsq ----

enum { SOLUTION, RESIDUALS, RANK, VALUES };

static int lstsq_one(td_problem *p) {
  int m = (int)p->in[0].rows, n = (int)p->in[0].columns, columns = (int)p->in[1].columns, info = 0, query = -1,
      rank = 0;
  int tall = m > n ? m : n, leading = m < 1 ? 1 : m, b_leading = tall < 1 ? 1 : tall, integers = 1;
  int sides = columns ? columns : 1; // gelsd takes no b without columns
  double size = 0, share = 0;
  if (!td_work_fits(p)) return TD_TOO_LARGE;
  void *a = td_take(p, (int64_t)m * n, p->bytes), *b = td_take(p, (int64_t)m * columns, p->bytes);
  void *x = td_take(p, (int64_t)tall * sides, p->bytes), *s = td_take(p, m < n ? m : n, p->bytes);
  bool some = m && n;
  td_number_put(p, &share, 0, share_of(p, &p->call->args[0]));
  if (some)
    p->lapack->gelsd(&m, &n, &sides, a, &leading, x, &b_leading, s, &share, &rank, &size, &query, &integers, &info);
  int length = some ? td_work_length(p, &size) : 1;
  void *work = td_take(p, length, p->bytes), *integer_work = td_take(p, integers < 1 ? 1 : integers, sizeof(int));
  if (!p->scratch) return 0;
  td_matrix_load(p, &p->in[0], a);
  td_matrix_load(p, &p->in[1], b);
  if (!td_all_finite(p, a, (int64_t)m * n) || !td_all_finite(p, b, (int64_t)m * columns)) return TD_NOT_FINITE;
  memset(x, 0, (size_t)tall * (size_t)sides * (size_t)p->bytes);
  for (int64_t j = 0; j < columns; j++)
    memcpy((char *)x + j * tall * p->bytes, (char *)b + j * m * p->bytes, (size_t)m * (size_t)p->bytes);
  if (some)
    p->lapack->gelsd(&m, &n, &sides, a, &leading, x, &b_leading, s, &share, &rank, work, &length, integer_work, &info);
  else memset(x, 0, (size_t)tall * (size_t)sides * (size_t)p->bytes);
  if (info) return info;
  td_matrix_load(p, &p->in[0], a);
  for (int64_t j = 0; j < p->out[RESIDUALS].rows; j++) { // there for m > n: |b - A x|^2
    double sum = 0;
    for (int64_t i = 0; i < m; i++) {
      double rest = td_number_at(p, b, j * m + i);
      for (int64_t l = 0; l < n; l++) rest -= td_number_at(p, a, l * m + i) * td_number_at(p, x, j * tall + l);
      sum += rest * rest;
    }
    td_number_put(p, p->out[RESIDUALS].data, j, sum);
  }
  td_matrix_store(p, &p->out[SOLUTION], x, tall);
  *(int64_t *)p->out[RANK].data = rank;
  td_matrix_store(p, &p->out[VALUES], s, m < n ? m : n);
  return 0;
}

static uint8_t side_axes(const td_call *call) { // of b
  const td_view *a = &call->in[0], *b = &call->in[1];
  return td_is_vector_side(a->rank, a->shape, b->rank, b->shape) ? 1 : 2;
}
TD_SOLVER(lstsq, td_fail_convergence, .cost = 2000, .in_axes = {2, side_axes(call)},
          .out_axes = {side_axes(call), 1, 0, 1})

static int lstsq_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  td_meta *out = infer->out, batch = {0};
  int code = td_infer_matrix(infer, 0, false), rank = 0, axis = 0;
  if (code) return code;
  if (!b->rank) return td_infer_fail(infer, TD_ERROR_SHAPE, "b must be a vector or a matrix, and is 0-d");
  int inner = td_is_vector_side(a->rank, a->shape, b->rank, b->shape) ? 1 : 2;
  int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1], rows = b->shape[b->rank - inner];
  int64_t columns = inner == 2 ? b->shape[b->rank - 1] : 1;
  if (m != rows)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the matrices of a have %lld rows, and b has %lld", (long long)m,
                         (long long)rows);
  if (!td_shape_broadcast(a->rank - 2, a->shape, b->rank - inner, b->shape, &rank, batch.shape, &axis))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "batch axes don't broadcast at axis %d", axis);
  batch.rank = (uint8_t)rank;
  batch.dtype = td_infer_floating_dtype(infer);
  for (int k = 0; k < 4; k++) out[k] = batch;
  td_meta_append(&out[SOLUTION], n);
  if (inner == 2) td_meta_append(&out[SOLUTION], columns);
  td_meta_append(&out[RESIDUALS], m > n ? columns : 0);
  out[RANK].dtype = TD_INT64;
  td_meta_append(&out[VALUES], m < n ? m : n);
  return TD_OK;
}

static td_tensor *sum_of(td_scope *s, td_tensor *a, td_tensor *b) { return a && b ? td_add(s, a, b) : a ? a : b; }

// x = pinv(A) b; the residuals have derivatives through A and b alone, since x makes them least.
static int lstsq_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *a = rule->in[0], *b = rule->in[1], *x = rule->out[SOLUTION], *ga = NULL, *gb = NULL;
  td_tensor *gx = rule->cotangent[SOLUTION], *gr = rule->cotangent[RESIDUALS], *gs = rule->cotangent[VALUES];
  if (!a || !b || !x) return TD_OK;
  bool vector = td_is_vector_side(a->rank, a->shape, b->rank, b->shape);
  if (vector) {
    b = td_as_columns(s, b);
    x = td_as_columns(s, x);
    gx = gx ? td_as_columns(s, gx) : NULL;
  }
  if (gx) {
    const td_arg args[] = {rule->args[0], TD_INT_ARG(0)};
    td_tensor *p = td_scope_apply(s, &pinv, args, 1, a);
    gb = td_matmul(s, td_swap_last(s, p), gx);
    ga = pinv_slope(s, a, p, td_matmul(s, gx, td_swap_last(s, b)));
  }
  if (gr && gr->size) {
    td_tensor *rest = td_subtract(s, b, td_matmul(s, a, x));
    td_tensor *t = td_columns_scaled(s, td_scaled(s, rest, 2), gr);
    gb = sum_of(s, gb, t);
    ga = sum_of(s, ga, td_negative(s, td_matmul(s, t, td_swap_last(s, x))));
  }
  if (gs) {
    td_tensor *parts[3];
    if (td_svd(s, a, parts)) return s->context->error.code;
    ga = sum_of(s, ga, td_matmul(s, td_columns_scaled(s, parts[0], gs), parts[2]));
  }
  rule->din[0] = ga;
  rule->din[1] = gb && vector ? td_last_dropped(s, gb) : gb;
  return TD_OK;
}

static const td_op lstsq = {
    .name = "lstsq",
    .params = {TD_MATRIX_PARAM("a"), TD_MATRIX_PARAM("b"), RTOL_PARAM},
    .kind = TD_KIND_OPAQUE,
    .outputs = 4,
    .infer = lstsq_infer,
    .kernel = lstsq_kernel,
    .workspace = lstsq_workspace,
    .vjp = lstsq_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .module = "linalg",
    .missing = td_needs_lapack,
    .doc =
        "x with the least |a @ x - b|, and of those the one with the least |x|; a tuple (x, residuals, rank, singular "
        "values). The residuals are the sums of squares for each column of b, empty unless a has more rows than "
        "columns. "
        "Singular values up to rtol times the largest count as 0, by default the longer side times the dtype's "
        "epsilon. "
        "NaN and infinity are an error.\n"
        "Gradient: that of pinv(a) @ b for x, as long as the rank doesn't change.",
    .example = "lstsq(tensor([[1., 0.], [1., 1.], [1., 2.]]), tensor([1., 3., 5.]))[0].round(3).tolist()  # [1.0, 2.0]",
    .source = "Golub and Pereyra (1973)",
    .samples = TD_SAMPLES{{"4,2; 4", NULL, -1, 1, NULL},
                          {"4,2; 4,3", NULL, -1, 1, NULL},
                          {"2,4; 2,3", NULL, -1, 1, NULL},
                          {"2,4,2; 2,4,3", NULL, -1, 1, NULL},
                          {"3,3 +3; 3,2", NULL, -1, 1, NULL},
                          {"3,0; 3,2", NULL, -1, 1, NULL},
                          {"0,2; 0,1", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

const td_op *const td_family_least_squares[] = {&pinv, &matrix_rank, &lstsq, NULL};
