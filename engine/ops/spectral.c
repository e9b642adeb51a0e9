// Singular values and eigenvalues: svd, svdvals, eigh, eigvalsh.
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/flat.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

// ---- svd ----

static int svd_one(td_problem *p) {
  td_decomposed d;
  int info = td_decompose(p, p->call->args[0].i ? 'A' : 'S', &d);
  if (!p->scratch || info) return info;
  td_matrix_store(p, &p->out[0], d.u, d.rows);
  td_matrix_store(p, &p->out[1], d.s, d.count);
  td_matrix_store(p, &p->out[2], d.vt, d.vt_rows);
  return 0;
}
TD_SOLVER(svd, td_fail_convergence, .cost = 1000, .in_axes = {2}, .out_axes = {2, 1, 2})

static int64_t count_of(const td_meta *a) {
  int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1];
  return m < n ? m : n;
}

static int svd_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0];
  int code = td_infer_matrix(infer, 0, false);
  if (code) return code;
  bool full = infer->args[0].i;
  int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1], k = count_of(a);
  for (int i = 0; i < 3; i++) {
    td_infer_batch(a, &infer->out[i]);
    infer->out[i].dtype = td_infer_floating_dtype(infer);
  }
  td_meta_append(&infer->out[0], m);
  td_meta_append(&infer->out[0], full ? m : k);
  td_meta_append(&infer->out[1], k);
  td_meta_append(&infer->out[2], full ? n : k);
  td_meta_append(&infer->out[2], n);
  return TD_OK;
}

// x - x^T, divided by s_j^2 - s_i^2; 0 on the diagonal, and where it is 0 (as for a pair of equal singular values that
// the target doesn't tell apart).
static td_tensor *turned(td_scope *s, td_tensor *x, td_tensor *values) {
  if (!x || !values) return NULL;
  td_tensor *row = td_as_rows(s, values), *column = td_as_columns(s, values);
  td_tensor *difference = td_multiply(s, td_subtract(s, row, column), td_add(s, row, column));
  td_tensor *one = td_eye(s, values->shape[values->rank - 1], values->dtype);
  return td_chain_quotient(s, td_subtract(s, x, td_swap_last(s, x)), td_add(s, difference, one));
}

static td_tensor *plus(td_scope *s, td_tensor *a, td_tensor *b) { return a ? td_add(s, a, b) : b; }

static td_tensor *columns_divided(td_scope *s, td_tensor *x, td_tensor *v) {
  return td_chain_quotient(s, x, td_as_rows(s, v));
}

// What of gU (m x k) is orthogonal to the k columns of U, over the singular values: (I - U U^T) gU S^-1.
static td_tensor *outside(td_scope *s, td_tensor *u, td_tensor *gu, td_tensor *values) {
  td_tensor *inside = td_matmul(s, u, td_matmul(s, td_swap_last(s, u), gu));
  return columns_divided(s, td_subtract(s, gu, inside), values);
}

static int refuse_full(td_rule *rule, const char *name) {
  return td_error_set(rule->scope.context, TD_ERROR_GRADIENT,
                      "svd: the vectors that full_matrices adds to %s have no derivative; take full_matrices=False",
                      name);
}

static int svd_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *u = rule->out[0], *values = rule->out[1], *vt = rule->out[2];
  td_tensor *gu = rule->cotangent[0], *gs = rule->cotangent[1], *gvt = rule->cotangent[2], *inner = NULL;
  if (!u || !values || !vt) return TD_OK;
  int64_t m = u->shape[u->rank - 2], n = vt->shape[vt->rank - 1], k = values->shape[values->rank - 1];
  if (u->shape[u->rank - 1] > k) {
    if (gu) return refuse_full(rule, "u");
    u = td_columns_of(s, u, 0, k);
  }
  if (vt->shape[vt->rank - 2] > k) {
    if (gvt) return refuse_full(rule, "vh");
    vt = td_rows_of(s, vt, 0, k);
  }
  td_tensor *ut = td_swap_last(s, u), *v = td_swap_last(s, vt), *gv = gvt ? td_swap_last(s, gvt) : NULL;
  if (gu) inner = td_columns_scaled(s, turned(s, td_matmul(s, ut, gu), values), values);
  if (gv) inner = plus(s, inner, td_rows_scaled(s, turned(s, td_matmul(s, vt, gv), values), values));
  if (gs) inner = plus(s, inner, td_columns_scaled(s, td_eye(s, k, values->dtype), gs));
  if (!inner) return TD_OK;
  td_tensor *ga = td_matmul(s, u, td_matmul(s, inner, vt));
  if (gu && m > k) ga = td_add(s, ga, td_matmul(s, outside(s, u, gu, values), vt));
  if (gv && n > k) ga = td_add(s, ga, td_matmul(s, u, td_swap_last(s, outside(s, v, gv, values))));
  rule->din[0] = ga;
  return TD_OK;
}

#define SIGNS "Each pair of vectors has the sign by which the largest element of u's is positive. "

static const td_op svd = {
    .name = "svd",
    .params = {TD_MATRIX_PARAM("a"), {.name = "full_matrices", .kind = TD_PARAM_BOOL, .fallback = TD_INT_DEFAULT(1)}},
    .kind = TD_KIND_OPAQUE,
    .outputs = 3,
    .method = true,
    .infer = svd_infer,
    .kernel = svd_kernel,
    .workspace = svd_workspace,
    .vjp = svd_vjp,
    .saves = TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "a = (u * s) @ vh with orthonormal columns of u, orthonormal rows of vh and the singular values s in "
        "descending "
        "order; a tuple (u, s, vh). u is m x m and vh n x n, or m x k and k x n with k = min(m, n) where full_matrices "
        "is False. " SIGNS "NaN and infinity are an error.\n"
        "Gradient: of s it is always there; of u and vh where the singular values differ (else it is infinite, unless "
        "the target doesn't depend on how they are turned) and are not 0, as in PyTorch. The vectors that "
        "full_matrices adds have none.",
    .example = "svd(tensor([[3., 0.], [0., 2.]]))[1].tolist()  # [3.0, 2.0]",
    .source = "Giles (2008), 3.2; Seeger et al., Auto-differentiating linear algebra (2017)",
    .samples = TD_SAMPLES{{"3,3", "full_matrices=False", -2, 2, NULL},
                          {"4,2", "full_matrices=False", -2, 2, NULL},
                          {"2,4", "full_matrices=False", -2, 2, NULL},
                          {"2,1,3,2", "full_matrices=False", -2, 2, NULL},
                          {"2,2", NULL, -2, 2, NULL},
                          {"1,1", NULL, 1, 2, NULL},
                          {"0,0", NULL, -2, 2, NULL},
                          {"3,0", "full_matrices=False", -2, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

int td_svd(td_scope *s, td_tensor *a, td_tensor *out[3]) {
  return td_scope_apply_all(s, &svd, (const td_arg[]){TD_INT_ARG(0)}, 1, &a, out);
}

// ---- svdvals ----

static int svdvals_one(td_problem *p) {
  td_decomposed d;
  int info = td_decompose(p, 'N', &d);
  if (p->scratch && !info) td_matrix_store(p, &p->out[0], d.s, d.count);
  return info;
}
TD_SOLVER(svdvals, td_fail_convergence, .cost = 500, .in_axes = {2}, .out_axes = {1})

static int svdvals_infer(td_infer *infer) {
  int code = td_infer_matrix(infer, 0, false);
  if (code) return code;
  td_infer_batch(&infer->in[0], &infer->out[0]);
  td_meta_append(&infer->out[0], count_of(&infer->in[0]));
  infer->out[0].dtype = td_infer_floating_dtype(infer);
  return TD_OK;
}

static int svdvals_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *parts[3];
  int code = td_svd(s, rule->in[0], parts);
  if (!code) rule->din[0] = td_matmul(s, td_columns_scaled(s, parts[0], rule->cotangent[0]), parts[2]);
  return code;
}

static const td_op svdvals = {
    .name = "svdvals",
    .params = {TD_MATRIX_PARAM("a")},
    .kind = TD_KIND_OPAQUE,
    .infer = svdvals_infer,
    .kernel = svdvals_kernel,
    .workspace = svdvals_workspace,
    .vjp = svdvals_vjp,
    .saves = TD_SAVES_IN0,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "Singular values of matrices in descending order.\nGradient: (u * c) @ vh of the reduced svd.",
    .example = "svdvals(tensor([[0., 2.], [3., 0.]])).tolist()  # [3.0, 2.0]",
    .source = "Giles (2008), 3.2",
    .samples = TD_SAMPLES{{"3,3", NULL, -2, 2, NULL},
                          {"4,2", NULL, -2, 2, NULL},
                          {"2,1,2,4", NULL, -2, 2, NULL},
                          {"0,2", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

// ---- eigh, eigvalsh ----

static const char *const triangles[] = {"L", "U", NULL};
#define UPLO_PARAM \
  { .name = "UPLO", .kind = TD_PARAM_CHOICE, .choices = triangles, .fallback = TD_INT_DEFAULT(0) }

// vectors: column by column in a, with values ascending in *w
static int eigen_decompose(td_problem *p, const char *job, void **a, void **w) {
  int n = (int)p->in[0].rows, info = 0, query = -1, integers = 1;
  const char *triangle = triangles[p->call->args[0].i];
  double size = 0;
  if (!td_work_fits(p)) return TD_TOO_LARGE;
  *a = td_take(p, (int64_t)n * n, p->bytes);
  *w = td_take(p, n, p->bytes);
  if (n) p->lapack->syevd(job, triangle, &n, *a, &n, *w, &size, &query, &integers, &query, &info, 1, 1);
  int length = n ? td_work_length(p, &size) : 1;
  void *work = td_take(p, length, p->bytes), *integer_work = td_take(p, integers, sizeof(int));
  if (!p->scratch || !n) return 0;
  td_matrix_load(p, &p->in[0], *a);
  if (!td_all_finite(p, *a, (int64_t)n * n)) return TD_NOT_FINITE;
  p->lapack->syevd(job, triangle, &n, *a, &n, *w, work, &length, integer_work, &integers, &info, 1, 1);
  return info;
}

static int eigh_one(td_problem *p) {
  void *a, *w;
  int64_t n = p->in[0].rows;
  int info = eigen_decompose(p, "V", &a, &w);
  if (!p->scratch || info) return info;
  for (int64_t j = 0; j < n; j++) td_sign_fix(p, (char *)a + j * n * p->bytes, n);
  td_matrix_store(p, &p->out[0], w, n);
  td_matrix_store(p, &p->out[1], a, n);
  return 0;
}
TD_SOLVER(eigh, td_fail_convergence, .cost = 400, .in_axes = {2}, .out_axes = {1, 2})

static int eigvalsh_one(td_problem *p) {
  void *a, *w;
  int info = eigen_decompose(p, "N", &a, &w);
  if (p->scratch && !info) td_matrix_store(p, &p->out[0], w, p->in[0].rows);
  return info;
}
TD_SOLVER(eigvalsh, td_fail_convergence, .cost = 100, .in_axes = {2}, .out_axes = {1})

static int eigen_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0];
  int code = td_infer_matrix(infer, 0, true);
  for (int k = 0; k < infer->out_count && !code; k++) {
    td_infer_batch(a, &infer->out[k]);
    for (int i = 0; i <= k; i++) td_meta_append(&infer->out[k], a->shape[a->rank - 1]);
    infer->out[k].dtype = td_infer_floating_dtype(infer);
  }
  return code;
}

// V (diag(gw) + (V^T gV) / (w_j - w_i)) V^T, made symmetric.
static int eigh_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *w = rule->out[0], *v = rule->out[1], *gw = rule->cotangent[0], *gv = rule->cotangent[1], *inner = NULL;
  if (!w || !v) return TD_OK;
  td_tensor *vt = td_swap_last(s, v), *one = td_eye(s, w->shape[w->rank - 1], w->dtype);
  if (gv) {
    td_tensor *apart = td_add(s, td_subtract(s, td_as_rows(s, w), td_as_columns(s, w)), one);
    td_tensor *turns = td_matmul(s, vt, gv); // (x - x^T) / 2 divided by the antisymmetric w_j - w_i: symmetric
    inner = td_chain_quotient(s, td_scaled(s, td_subtract(s, turns, td_swap_last(s, turns)), 0.5), apart);
  }
  if (gw) inner = plus(s, inner, td_columns_scaled(s, one, gw));
  if (inner) rule->din[0] = td_matmul(s, v, td_matmul(s, inner, vt));
  return TD_OK;
}

static const td_op eigh = {
    .name = "eigh",
    .params = {TD_MATRIX_PARAM("a"), UPLO_PARAM},
    .kind = TD_KIND_OPAQUE,
    .outputs = 2,
    .method = true,
    .infer = eigen_infer,
    .kernel = eigh_kernel,
    .workspace = eigh_workspace,
    .vjp = eigh_vjp,
    .saves = TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "Eigenvalues in ascending order and eigenvectors, the columns of v, of symmetric matrices: a @ v = v * w; a "
        "tuple (w, v). Only the triangle that UPLO names is read. Each vector has the sign by which its largest "
        "element "
        "is positive. NaN and infinity are an error. There is no eig of other matrices: its values are complex, and "
        "there are no complex dtypes.\n"
        "Gradient: v @ (diag(cw) + (v.T @ cv) / (w_j - w_i)) @ v.T, made symmetric. Of v it is infinite where "
        "eigenvalues "
        "are equal, unless the target doesn't depend on how they are turned, as in PyTorch; of w it is always there.",
    .example = "eigh(tensor([[2., 1.], [1., 2.]]))[0].tolist()  # [1.0, 3.0]",
    .source = "Giles (2008), 3.1; Seeger et al. (2017)",
    .samples = TD_SAMPLES{{"3,3 symmetric", NULL, -2, 2, NULL},
                          {"3,3 symmetric", "UPLO=\"U\"", -2, 2, NULL},
                          {"2,1,3,3 symmetric", NULL, -2, 2, NULL},
                          {"1,1 symmetric", NULL, 1, 2, NULL},
                          {"0,0 symmetric", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

int td_eigh(td_scope *s, td_tensor *a, td_tensor *out[2], bool upper) {
  return td_scope_apply_all(s, &eigh, (const td_arg[]){TD_INT_ARG(upper)}, 1, &a, out);
}

static int eigvalsh_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *parts[2];
  int code = td_eigh(s, rule->in[0], parts, rule->args[0].i);
  if (!code) rule->din[0] = td_matmul(s, td_columns_scaled(s, parts[1], rule->cotangent[0]), td_swap_last(s, parts[1]));
  return code;
}

static const td_op eigvalsh = {
    .name = "eigvalsh",
    .params = {TD_MATRIX_PARAM("a"), UPLO_PARAM},
    .kind = TD_KIND_OPAQUE,
    .infer = eigen_infer,
    .kernel = eigvalsh_kernel,
    .workspace = eigvalsh_workspace,
    .vjp = eigvalsh_vjp,
    .saves = TD_SAVES_IN0,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc = "Eigenvalues of symmetric matrices in ascending order. Only the triangle that UPLO names is read.\n"
           "Gradient: (v * c) @ v.T with the eigenvectors v.",
    .example = "eigvalsh(tensor([[2., 1.], [1., 2.]])).tolist()  # [1.0, 3.0]",
    .source = "Giles (2008), 3.1",
    .samples = TD_SAMPLES{{"3,3 symmetric", NULL, -2, 2, NULL},
                          {"3,3 symmetric", "UPLO=\"U\"", -2, 2, NULL},
                          {"2,1,3,3 symmetric", NULL, -2, 2, NULL},
                          {"0,0 symmetric", NULL, -2, 2, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-10,
};

const td_op *const td_family_spectral[] = {&svd, &svdvals, &eigh, &eigvalsh, NULL};
