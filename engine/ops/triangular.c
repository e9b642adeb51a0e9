// Triangular matrices: solve_triangular, cholesky, cholesky_solve.
#include <string.h>

#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

// ---- solve_triangular ----

enum { UPPER, LEFT, UNIT, TRANSPOSED }; // its arguments

static int fail_diagonal(const td_call *call, const char *matrix, int info) {
  return td_error_set(call->context, TD_ERROR_VALUE, "%s: %s is singular: element %d of its diagonal is 0",
                      call->op->name, matrix, info - 1);
}

static int solve_triangular_one(td_problem *p) {
  const td_arg *args = p->call->args;
  int n = (int)p->in[0].rows, rows = (int)p->out[0].rows, columns = (int)p->out[0].columns;
  void *a = td_take(p, (int64_t)n * n, p->bytes), *x = td_take(p, (int64_t)rows * columns, p->bytes);
  if (!p->scratch) return 0;
  td_matrix_load(p, &p->in[0], a);
  for (int64_t i = 0; i < n && !args[UNIT].i; i++)
    if (td_number_at(p, a, i * n + i) == 0) return (int)i + 1;
  td_matrix_load(p, &p->in[1], x);
  double one = 0;
  td_number_put(p, &one, 0, 1);
  if (rows && columns)
    p->lapack->trsm(args[LEFT].i ? "L" : "R", args[UPPER].i ? "U" : "L", args[TRANSPOSED].i ? "T" : "N",
                    args[UNIT].i ? "U" : "N", &rows, &columns, &one, a, &n, x, &rows, 1, 1, 1, 1);
  td_matrix_store(p, &p->out[0], x, rows);
  return 0;
}

static int inner_axes(const td_call *call) { // of b
  const td_view *a = &call->in[0], *b = &call->in[1];
  return td_is_vector_side(a->rank, a->shape, b->rank, b->shape) ? 1 : 2;
}
TD_SOLVER(solve_triangular, fail_diagonal, .cost = 50, .in_axes = {2, (uint8_t)inner_axes(call)},
          .out_axes = {(uint8_t)inner_axes(call)})

static int solve_triangular_infer(td_infer *infer) {
  bool left = infer->args[LEFT].i;
  int code = td_infer_solve(infer, left);
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  if (!code && !left && td_is_vector_side(a->rank, a->shape, b->rank, b->shape))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "b must be a matrix where left=False");
  return code;
}

// With G = dB, which solves with A^T: -G X^T for A on the left, -X^T G on the right; transposed for A^T.
static int solve_triangular_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_arg *args = rule->args;
  td_tensor *a = rule->in[0], *x = rule->out[0];
  bool upper = args[UPPER].i, left = args[LEFT].i, unit = args[UNIT].i, transposed = args[TRANSPOSED].i;
  td_tensor *g = td_solve_triangular(s, a, rule->cotangent[0], upper, left, !transposed, unit);
  rule->din[1] = g;
  if (!rule->needs[0] || !g || !x) return TD_OK;
  const td_tensor *b = rule->in[1];
  if (td_is_vector_side(a->rank, a->shape, b->rank, b->shape)) {
    g = td_as_columns(s, g);
    x = td_as_columns(s, x);
  }
  td_tensor *da = left ? td_matmul(s, g, td_swap_last(s, x)) : td_matmul(s, td_swap_last(s, x), g);
  if (transposed) da = td_swap_last(s, da);
  rule->din[0] = td_negative(s, td_triangle(s, da, upper, !unit ? 0 : upper ? 1 : -1));
  return TD_OK;
}

static const td_op solve_triangular = {
    .name = "solve_triangular",
    .alias = TD_ALIAS("triangular_solve"),
    .params = {TD_MATRIX_PARAM("a"),
               TD_MATRIX_PARAM("b"),
               {.name = "upper", .kind = TD_PARAM_BOOL, .required = true},
               {.name = "left", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)},
               {.name = "unitriangular", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)},
               {.name = "transposed", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0)}},
    .kind = TD_KIND_OPAQUE,
    .infer = solve_triangular_infer,
    .kernel = solve_triangular_kernel,
    .workspace = solve_triangular_workspace,
    .vjp = solve_triangular_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .module = "linalg",
    .missing = td_needs_lapack,
    .doc =
        "x with a @ x = b for triangular a (x @ a = b where left is False, a.T in place of a where transposed). upper "
        "has no default: libraries disagree on it. Only that triangle of a is read, and its diagonal is taken for ones "
        "where unitriangular. b may be a vector, as in solve. A 0 on the diagonal is an error.\n"
        "Gradient: the same with a transposed for b, minus that times x.T for the triangle of a.",
    .example = "solve_triangular(tensor([[2., 0.], [1., 1.]]), tensor([4., 3.]), upper=False).tolist()  # [2.0, 1.0]",
    .source = "Giles (2008), 2.3.1",
    .samples = TD_SAMPLES{{"3,3 +3; 3,2", "upper=False", -1, 1, NULL},
                          {"3,3 +3; 3,2", "upper=True", -1, 1, NULL},
                          {"3,3 +3; 3", "upper=True", -1, 1, NULL},
                          {"3,3 +3; 3,2", "upper=True, transposed=True", -1, 1, NULL},
                          {"3,3 +3; 2,3", "upper=False, left=False", -1, 1, NULL},
                          {"3,3 +3; 2,3", "upper=True, left=False, transposed=True", -1, 1, NULL},
                          {"3,3; 3,2", "upper=False, unitriangular=True", -1, 1, NULL},
                          {"2,1,3,3; 4,3,2", "upper=True, unitriangular=True", -1, 1, NULL},
                          {"0,0; 0,2", "upper=True", -1, 1, NULL},
                          {"2,2 +3; 2,0", "upper=True", -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

td_tensor *td_solve_triangular(td_scope *s, td_tensor *a, td_tensor *b, bool upper, bool left, bool transposed,
                               bool unit) {
  const td_arg args[] = {[UPPER] = TD_INT_ARG(upper),
                         [LEFT] = TD_INT_ARG(left),
                         [UNIT] = TD_INT_ARG(unit),
                         [TRANSPOSED] = TD_INT_ARG(transposed)};
  return td_scope_apply(s, &solve_triangular, args, 2, a, b);
}

// ---- cholesky ----

static int fail_indefinite(const td_call *call, const char *matrix, int info) {
  int code = td_error_set(call->context, TD_ERROR_VALUE,
                          "%s: %s is not positive definite: its leading minor of order %d is not positive",
                          call->op->name, matrix, info);
  td_error_hint(call->context, "a + 1e-6 * eye(n) moves small negative eigenvalues; eigvalsh(a) shows them");
  return code;
}

static int cholesky_one(td_problem *p) {
  int n = (int)p->in[0].rows, info = 0;
  bool upper = p->call->args[0].i;
  void *a = td_take(p, (int64_t)n * n, p->bytes);
  if (!p->scratch || !n) return 0;
  td_matrix_load(p, &p->in[0], a);
  p->lapack->potrf(upper ? "U" : "L", &n, a, &n, &info, 1);
  if (info) return info;
  for (int64_t j = 0; j < n; j++) {
    if (td_number_at(p, a, j * n + j) != td_number_at(p, a, j * n + j)) return (int)j + 1;
    char *column = (char *)a + j * n * p->bytes;
    if (upper) memset(column + (j + 1) * p->bytes, 0, (size_t)((n - j - 1) * p->bytes));
    else memset(column, 0, (size_t)(j * p->bytes));
  }
  td_matrix_store(p, &p->out[0], a, n);
  return 0;
}
TD_SOLVER(cholesky, fail_indefinite, .cost = 20, .in_axes = {2}, .out_axes = {2})

static int cholesky_infer(td_infer *infer) {
  int code = td_infer_matrix(infer, 0, true);
  infer->out[0] = infer->in[0];
  infer->out[0].dtype = td_infer_floating_dtype(infer);
  return code;
}

// L^-T P L^-1 with P the lower half of L^T gL (half its diagonal), made symmetric.
static int cholesky_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  bool upper = rule->args[0].i;
  td_tensor *l = upper ? td_swap_last(s, rule->out[0]) : rule->out[0];
  td_tensor *g = upper ? td_swap_last(s, rule->cotangent[0]) : rule->cotangent[0];
  td_tensor *product = td_matmul(s, td_swap_last(s, l), g);
  td_tensor *half = td_add(s, td_triangle(s, product, false, 0), td_triangle(s, product, false, -1));
  td_tensor *left = td_solve_triangular(s, l, half, false, true, true, false);
  td_tensor *both = td_solve_triangular(s, l, left, false, false, false, false);
  rule->din[0] = td_scaled(s, td_symmetric_part(s, both), 0.5);
  return TD_OK;
}

#define UPPER_PARAM \
  { .name = "upper", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(0) }

static const td_op cholesky = {
    .name = "cholesky",
    .params = {TD_MATRIX_PARAM("a"), UPPER_PARAM},
    .kind = TD_KIND_OPAQUE,
    .method = true,
    .infer = cholesky_infer,
    .kernel = cholesky_kernel,
    .workspace = cholesky_workspace,
    .vjp = cholesky_vjp,
    .saves = TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "The lower triangular l with l @ l.T = a, for symmetric positive definite matrices; the upper u with u.T @ "
           "u = a "
           "where upper. Only that triangle of a is read. A matrix that is not positive definite is an error.\n"
           "Gradient: inv(l).T @ p @ inv(l), made symmetric, with p the lower half of l.T @ c and half its diagonal.",
    .example = "cholesky(tensor([[4., 2.], [2., 2.]])).tolist()  # [[2.0, 0.0], [1.0, 1.0]]",
    .source = "Murray, Differentiation of the Cholesky decomposition (2016)",
    .samples = TD_SAMPLES{{"3,3 symmetric +4", NULL, -1, 1, NULL},
                          {"3,3 symmetric +4", "upper=True", -1, 1, NULL},
                          {"2,1,3,3 symmetric +4", NULL, -1, 1, NULL},
                          {"1,1 symmetric", NULL, 1, 2, NULL},
                          {"0,0 symmetric", NULL, 1, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

// ---- cholesky_solve ----

static int cholesky_solve_one(td_problem *p) { // in[0] is b
  int n = (int)p->in[1].rows, columns = (int)p->in[0].columns, info = 0;
  void *l = td_take(p, (int64_t)n * n, p->bytes), *x = td_take(p, (int64_t)n * columns, p->bytes);
  if (!p->scratch || !n || !columns) return 0;
  td_matrix_load(p, &p->in[1], l);
  for (int64_t i = 0; i < n; i++)
    if (td_number_at(p, l, i * n + i) == 0) return (int)i + 1;
  td_matrix_load(p, &p->in[0], x);
  p->lapack->potrs(p->call->args[0].i ? "U" : "L", &n, &columns, l, &n, x, &n, &info, 1);
  if (!info) td_matrix_store(p, &p->out[0], x, n);
  return info;
}

static int fail_factor(const td_call *call, const char *matrix, int info) { // matrix names b
  return td_error_set(call->context, TD_ERROR_VALUE,
                      "%s: the factor l for %s is singular: element %d of its diagonal is 0", call->op->name, matrix,
                      info - 1);
}
TD_SOLVER(cholesky_solve, fail_factor, .cost = 100, .in_axes = {2, 2}, .out_axes = {2})

static int cholesky_solve_infer(td_infer *infer) {
  const td_meta *b = &infer->in[0], *l = &infer->in[1];
  td_meta *out = &infer->out[0];
  int code = td_infer_matrix(infer, 0, false), rank = 0, axis = 0;
  if (!code) code = td_infer_matrix(infer, 1, true);
  if (code) return code;
  int64_t n = l->shape[l->rank - 1], rows = b->shape[b->rank - 2];
  if (n != rows)
    return td_infer_fail(infer, TD_ERROR_SHAPE, "the matrices of l are %lld x %lld, and b has %lld rows", (long long)n,
                         (long long)n, (long long)rows);
  if (!td_shape_broadcast(b->rank - 2, b->shape, l->rank - 2, l->shape, &rank, out->shape, &axis))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "batch axes don't broadcast at axis %d", axis);
  out->rank = (uint8_t)rank;
  td_meta_append(out, n);
  td_meta_append(out, b->shape[b->rank - 1]);
  out->dtype = td_infer_floating_dtype(infer);
  return TD_OK;
}

// G = dB solves with the same matrix A; dA = -G X^T, and of A = L L^T: dL = (dA + dA^T) L.
static int cholesky_solve_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  bool upper = rule->args[0].i;
  td_tensor *l = td_triangle(s, rule->in[1], upper, 0), *x = rule->out[0];
  td_tensor *g = td_scope_apply(s, rule->op, rule->args, 2, rule->cotangent[0], l);
  rule->din[0] = g;
  if (!rule->needs[1] || !g || !x) return TD_OK;
  td_tensor *half = td_matmul(s, g, td_swap_last(s, x)), *da = td_add(s, half, td_swap_last(s, half));
  td_tensor *dl = upper ? td_matmul(s, l, da) : td_matmul(s, da, l);
  rule->din[1] = td_negative(s, td_triangle(s, dl, upper, 0));
  return TD_OK;
}

static const td_op cholesky_solve = {
    .name = "cholesky_solve",
    .params = {TD_MATRIX_PARAM("b"), TD_MATRIX_PARAM("l"), UPPER_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = cholesky_solve_infer,
    .kernel = cholesky_solve_kernel,
    .workspace = cholesky_solve_workspace,
    .vjp = cholesky_solve_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1 | TD_SAVES_OUTPUT,
    .module = "linalg",
    .missing = td_needs_lapack,
    .doc =
        "x with l @ l.T @ x = b (u.T @ u @ x = b where upper), for l = cholesky(a). b's last two axes are a matrix.\n"
        "Gradient: g = cholesky_solve(c, l) for b; for l the triangle of -(g @ x.T + x @ g.T) @ l.",
    .example =
        "cholesky_solve(tensor([[8.], [6.]]), cholesky(tensor([[4., 2.], [2., 2.]]))).tolist()  # [[1.0], [2.0]]",
    .source = "Giles (2008), 2.3.1",
    .samples = TD_SAMPLES{{"3,2; 3,3 +3", NULL, -1, 1, NULL},
                          {"3,2; 3,3 +3", "upper=True", -1, 1, NULL},
                          {"2,1,3,2; 4,3,3 +3", NULL, -1, 1, NULL},
                          {"0,2; 0,0", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

const td_op *const td_family_triangular[] = {&solve_triangular, &cholesky, &cholesky_solve, NULL};
