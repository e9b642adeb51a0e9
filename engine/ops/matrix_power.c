// Functions of square matrices: matrix_power, expm. For such a function f, f([[A, E], [0, A]]) has f(A) on its diagonal
// and the derivative of f at A along E above it; the gradient is that with A^T and the cotangent.
#include <math.h>
#include <string.h>

#include "engine/device/cpu/gemm.h"
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

typedef struct square { // n x n matrices in scratch, all in one order, which one doesn't matter
  const td_problem *p;
  int64_t n;
  void *work, *pivots;
} square;

static td_gemm_job square_job(int64_t n) {
  int64_t leading = n < 1 ? 1 : n;
  return (td_gemm_job){.m = n, .n = n, .k = n, .lda = leading, .ldb = leading, .ldc = leading};
}

static square square_take(td_problem *p) {
  int64_t n = p->in[0].rows;
  td_gemm_job job = square_job(n);
  square q = {.p = p, .n = n};
  q.work = td_take(p, td_gemm_workspace(p->dtype, &job), 1);
  q.pivots = td_take(p, n, sizeof(int));
  return q;
}

static void *matrix_take(td_problem *p) { return td_take(p, p->in[0].rows * p->in[0].rows, p->bytes); }

static void multiply(const square *q, const void *a, const void *b, void *c) {
  td_gemm_job job = square_job(q->n);
  job.a = a;
  job.b = b;
  job.c = c;
  td_gemm(NULL, q->p->dtype, &job, q->work);
}

static void set_unit(const square *q, void *a) {
  for (int64_t i = 0; i < q->n * q->n; i++) td_number_put(q->p, a, i, i % (q->n + 1) == 0);
}

// b = inv(a) b; destroys a. Returns the first pivot that is 0.
static int divide(const square *q, void *a, void *b) {
  int n = (int)q->n, info = 0;
  if (!n) return 0;
  q->p->lapack->getrf(&n, &n, a, &n, q->pivots, &info);
  if (!info) q->p->lapack->getrs("N", &n, &n, a, &n, q->pivots, b, &n, &info, 1);
  return info;
}

// ---- matrix_power ----

static int matrix_power_one(td_problem *p) {
  int64_t n = p->call->args[0].i;
  square q = square_take(p);
  void *base = matrix_take(p), *product = matrix_take(p), *next = matrix_take(p), *copy = matrix_take(p);
  if (!p->scratch) return 0;
  uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
  td_matrix_load(p, &p->in[0], base);
  if (n < 0) {
    memcpy(copy, base, (size_t)(q.n * q.n * p->bytes));
    set_unit(&q, base);
    int info = divide(&q, copy, base);
    if (info) return info;
  }
  set_unit(&q, product);
  for (bool first = true; rest; rest >>= 1) {
    void *old = product;
    if (rest & 1) {
      if (first) memcpy(next, base, (size_t)(q.n * q.n * p->bytes));
      else multiply(&q, product, base, next);
      product = next;
      next = old;
      first = false;
    }
    if (rest == 1) break;
    multiply(&q, base, base, copy);
    old = base;
    base = copy;
    copy = old;
  }
  td_matrix_store(p, &p->out[0], product, q.n);
  return 0;
}

static int fail_power(const td_call *call, const char *matrix, int info) {
  return td_error_set(call->context, TD_ERROR_VALUE, "%s: %s is singular and has no negative power: pivot %d is 0",
                      call->op->name, matrix, info);
}
TD_SOLVER(matrix_power, fail_power, .cost = 300, .in_axes = {2}, .out_axes = {2})

static const char *matrix_power_missing(const td_arg *args) { // only inverses need it
  return !args || args[0].i < 0 ? td_lapack_missing() : NULL;
}

static int function_infer(td_infer *infer) {
  int code = td_infer_matrix(infer, 0, true);
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = td_infer_floating_dtype(infer);
  return code;
}

static int function_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *at = td_swap_last(s, rule->in[0]), *c = rule->cotangent[0];
  if (!at || !c) return TD_OK;
  td_meta meta = td_tensor_meta(at);
  int64_t n = meta.shape[meta.rank - 1];
  td_tensor *upper = td_concat(s, at, c, -1), *lower = td_concat(s, td_scope_filled(s, 0, &meta), at, -1);
  td_tensor *both = td_scope_apply(s, rule->op, rule->args, 1, td_concat(s, upper, lower, -2));
  rule->din[0] = td_columns_of(s, td_rows_of(s, both, 0, n), n, n);
  return TD_OK;
}

#define FUNCTION_SAMPLES(args)                                                                   \
  {"3,3 +1", args, -1, 1, NULL}, {"2,1,2,2 +2", args, -1, 1, NULL}, {"1,1", args, 1, 2, NULL}, { \
    "0,0", args, -1, 1, NULL                                                                     \
  }

static const td_op matrix_power = {
    .name = "matrix_power",
    .params = {TD_MATRIX_PARAM("a"), {.name = "n", .kind = TD_PARAM_INT, .required = true}},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = function_infer,
    .kernel = matrix_power_kernel,
    .workspace = matrix_power_workspace,
    .vjp = function_vjp,
    .saves = TD_SAVES_IN0,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = matrix_power_missing,
    .doc = "The n-th power of square matrices, by repeated squaring; of the inverse for negative n.\n"
           "Gradient: the upper right block of the n-th power of [[a.T, c], [0, a.T]].",
    .example = "matrix_power(tensor([[1., 1.], [0., 1.]]), 5).tolist()  # [[1.0, 5.0], [0.0, 1.0]]",
    .source = "Mathias, A chain rule for matrix functions and applications (1996)",
    .samples = TD_SAMPLES{FUNCTION_SAMPLES("n=3"),
                          {"3,3", "n=0", -1, 1, NULL},
                          {"3,3", "n=1", -1, 1, NULL},
                          {"3,3 +3", "n=-2", -1, 1, NULL},
                          {"2,2", "n=6", -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

// ---- expm ----

static double norm_of(const square *q, const void *a) { // the largest sum of a line's absolute values; NaN stays
  double largest = 0;
  for (int64_t j = 0; j < q->n; j++) {
    double sum = 0;
    for (int64_t i = 0; i < q->n; i++) sum += fabs(td_number_at(q->p, a, j * q->n + i));
    if (sum > largest || sum != sum) largest = sum;
  }
  return largest;
}

// out = sum of factors[i] times the powers in[i], plus unit on the diagonal
static void combine(const square *q, void *out, const double factors[3], void *const in[3], double unit) {
  for (int64_t e = 0; e < q->n * q->n; e++) {
    double sum = e % (q->n + 1) == 0 ? unit : 0;
    for (int i = 0; i < 3; i++) sum += factors[i] * td_number_at(q->p, in[i], e);
    td_number_put(q->p, out, e, sum);
  }
}

static void add(const square *q, void *out, const void *a, const void *b, double sign) {
  for (int64_t e = 0; e < q->n * q->n; e++)
    td_number_put(q->p, out, e, td_number_at(q->p, a, e) + sign * td_number_at(q->p, b, e));
}

// Scaling and squaring with the Pade approximant of degree 13 (Higham 2005).
static int expm_one(td_problem *p) {
  static const double b[] = {64764752532480000,
                             32382376266240000,
                             7771770303897600,
                             1187353796428800,
                             129060195264000,
                             10559470521600,
                             670442572800,
                             33522128640,
                             1323241920,
                             40840800,
                             960960,
                             16380,
                             182,
                             1};
  static const double theta = 5.371920351148152; // norm up to which the approximant is exact in float64
  square q = square_take(p);
  void *a = matrix_take(p), *powers[3] = {matrix_take(p), matrix_take(p), matrix_take(p)};
  void *u = matrix_take(p), *v = matrix_take(p), *t = matrix_take(p);
  if (!p->scratch) return 0;
  td_matrix_load(p, &p->in[0], a);
  double norm = norm_of(&q, a);
  if (!isfinite(norm)) return TD_NOT_FINITE;
  int halvings = norm > theta ? (int)ceil(log2(norm / theta)) : 0;
  for (int64_t e = 0; e < q.n * q.n; e++) td_number_put(p, a, e, ldexp(td_number_at(p, a, e), -halvings));
  multiply(&q, a, a, powers[0]);
  multiply(&q, powers[0], powers[0], powers[1]);
  multiply(&q, powers[1], powers[0], powers[2]);
  combine(&q, t, (const double[]){b[9], b[11], b[13]}, powers, 0);
  multiply(&q, powers[2], t, v);
  combine(&q, t, (const double[]){b[3], b[5], b[7]}, powers, b[1]);
  add(&q, t, t, v, 1);
  multiply(&q, a, t, u); // the odd part
  combine(&q, t, (const double[]){b[8], b[10], b[12]}, powers, 0);
  multiply(&q, powers[2], t, v);
  combine(&q, t, (const double[]){b[2], b[4], b[6]}, powers, b[0]);
  add(&q, v, v, t, 1); // the even part
  add(&q, t, v, u, -1);
  add(&q, v, v, u, 1);
  int info = divide(&q, t, v);
  if (info) return info;
  for (; halvings; halvings--) {
    multiply(&q, v, v, u);
    void *old = u;
    u = v;
    v = old;
  }
  td_matrix_store(p, &p->out[0], v, q.n);
  return 0;
}
TD_SOLVER(expm, td_fail_convergence, .cost = 800, .in_axes = {2}, .out_axes = {2})

static const td_op expm = {
    .name = "expm",
    .alias = TD_ALIAS("matrix_exp"),
    .params = {TD_MATRIX_PARAM("a")},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = function_infer,
    .kernel = expm_kernel,
    .workspace = expm_workspace,
    .vjp = function_vjp,
    .saves = TD_SAVES_IN0,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "The exponential of square matrices: the sum of a^k / k!. NaN and infinity are an error.\n"
           "Gradient: the upper right block of expm([[a.T, c], [0, a.T]]).",
    .example = "expm(tensor([[0., 1.], [0., 0.]])).tolist()  # [[1.0, 1.0], [0.0, 1.0]]",
    .source = "Higham, The scaling and squaring method for the matrix exponential revisited (2005); Mathias (1996)",
    .samples = TD_SAMPLES{FUNCTION_SAMPLES(NULL), {"3,3", NULL, -5, 5, NULL}, TD_SAMPLES_END},
    .tolerance = 1e-10,
};

const td_op *const td_family_matrix_power[] = {&matrix_power, &expm, NULL};
