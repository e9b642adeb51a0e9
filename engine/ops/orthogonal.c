// The QR decomposition, by Householder reflections.
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/matrices.h"

enum { REDUCED, COMPLETE, R };
static const char *const modes[] = {"reduced", "complete", "r", NULL};

static int smaller(int a, int b) { return a < b ? a : b; }

static int qr_one(td_problem *p) {
  int m = (int)p->in[0].rows, n = (int)p->in[0].columns, k = smaller(m, n), wide = (int)p->out[1].rows;
  int leading = m < 1 ? 1 : m, columns = n > wide ? n : wide, query = -1, info = 0;
  bool with_q = p->out[0].columns == wide;
  double size[2] = {0};
  void *a = td_take(p, (int64_t)m * columns, p->bytes), *r = td_take(p, (int64_t)wide * n, p->bytes);
  void *tau = td_take(p, k, p->bytes);
  if (k) p->lapack->geqrf(&m, &n, a, &leading, tau, size, &query, &info);
  int length = td_work_length(p, size);
  if (k) p->lapack->orgqr(&m, &wide, &k, a, &leading, tau, size, &query, &info);
  if (td_work_length(p, size) > length) length = td_work_length(p, size);
  void *work = td_take(p, length, p->bytes);
  if (!p->scratch) return 0;
  td_matrix_load(p, &p->in[0], a);
  if (k) p->lapack->geqrf(&m, &n, a, &leading, tau, work, &length, &info);
  for (int64_t j = 0; j < n && !info; j++)
    for (int64_t i = 0; i < wide; i++)
      td_number_put(p, r, j * wide + i, i > j || i >= m ? 0 : td_number_at(p, a, j * m + i));
  if (k && !info && with_q) p->lapack->orgqr(&m, &wide, &k, a, &leading, tau, work, &length, &info);
  if (!k) // no reflection: Q is the identity
    for (int64_t i = 0; i < (int64_t)m * wide; i++) td_number_put(p, a, i, i % m == i / m);
  if (info) return info;
  td_matrix_store(p, &p->out[0], a, m);
  td_matrix_store(p, &p->out[1], r, wide);
  return 0;
}
TD_SOLVER(qr, td_fail_convergence, .cost = 200, .in_axes = {2}, .out_axes = {2, 2})

static int qr_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0];
  int code = td_infer_matrix(infer, 0, false);
  if (code) return code;
  int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1];
  int64_t wide = infer->args[0].i == COMPLETE || m < n ? m : n;
  const int64_t sizes[2][2] = {{m, infer->args[0].i == R ? 0 : wide}, {wide, n}};
  for (int i = 0; i < 2; i++) {
    td_infer_batch(a, &infer->out[i]);
    td_meta_append(&infer->out[i], sizes[i][0]);
    td_meta_append(&infer->out[i], sizes[i][1]);
    infer->out[i].dtype = td_infer_floating_dtype(infer);
  }
  return TD_OK;
}

// For r square: (gQ + Q copy(M)) R^-T with M = R gR^T - gQ^T Q, where copy mirrors the lower triangle.
static td_tensor *qr_tall(td_scope *s, td_tensor *q, td_tensor *r, td_tensor *gq, td_tensor *gr) {
  td_tensor *m = NULL;
  if (gr) m = td_matmul(s, r, td_swap_last(s, gr));
  if (gq) {
    td_tensor *mixed = td_matmul(s, td_swap_last(s, gq), q);
    m = m ? td_subtract(s, m, mixed) : td_negative(s, mixed);
  }
  td_tensor *mirrored = td_add(s, td_triangle(s, m, false, 0), td_swap_last(s, td_triangle(s, m, false, -1)));
  td_tensor *sum = td_matmul(s, q, mirrored);
  if (gq) sum = td_add(s, gq, sum);
  return td_solve_triangular(s, r, sum, true, false, true, false);
}

// A wide A = [A1 A2] = Q [R1 R2] has R2 = Q^T A2: what reaches R2 flows on to A2 and to Q.
static int qr_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  td_tensor *q = rule->out[0], *r = rule->out[1], *gq = rule->cotangent[0], *gr = rule->cotangent[1];
  if (!q || !r || (!gq && !gr)) return TD_OK;
  if (rule->args[0].i == R)
    return td_error_set(s->context, TD_ERROR_GRADIENT, "qr: the gradient needs q, which mode=\"r\" leaves out: take "
                                                       "mode=\"reduced\"");
  int64_t m = q->shape[q->rank - 2], wide = q->shape[q->rank - 1], n = r->shape[r->rank - 1];
  if (wide > n)
    return td_error_set(s->context, TD_ERROR_GRADIENT,
                        "qr: with mode=\"complete\" the columns of q beyond those of a have no derivative: a is %lld x "
                        "%lld; take mode=\"reduced\"",
                        (long long)m, (long long)n);
  if (wide == n) {
    rule->din[0] = qr_tall(s, q, r, gq, gr);
    return TD_OK;
  }
  td_tensor *a2 = td_matmul(s, q, td_columns_of(s, r, m, n - m));
  td_tensor *gr1 = gr ? td_columns_of(s, gr, 0, m) : NULL, *gr2 = gr ? td_columns_of(s, gr, m, n - m) : NULL;
  if (gr2) {
    td_tensor *more = td_matmul(s, a2, td_swap_last(s, gr2));
    gq = gq ? td_add(s, gq, more) : more;
  }
  td_tensor *ga1 = qr_tall(s, q, td_columns_of(s, r, 0, m), gq, gr1);
  rule->din[0] = gr2 ? td_concat(s, ga1, td_matmul(s, q, gr2), -1) : td_pad_matrix(s, ga1, m, n);
  return TD_OK;
}

static const td_op qr = {
    .name = "qr",
    .params = {TD_MATRIX_PARAM("a"),
               {.name = "mode", .kind = TD_PARAM_CHOICE, .choices = modes, .fallback = TD_INT_DEFAULT(REDUCED)}},
    .kind = TD_KIND_OPAQUE,
    .outputs = 2,
    .method = true,
    .infer = qr_infer,
    .kernel = qr_kernel,
    .workspace = qr_workspace,
    .vjp = qr_vjp,
    .saves = TD_SAVES_OUTPUT,
    .module = "linalg",
    .batch = td_batch_axes,
    .missing = td_needs_lapack,
    .doc =
        "a = q @ r with orthonormal columns of q and r upper triangular; a tuple (q, r). q is m x min(m, n), or m x m "
        "with mode=\"complete\", or m x 0 with mode=\"r\", which is faster. The signs on r's diagonal are LAPACK's, as "
        "in NumPy and PyTorch.\n"
        "Gradient: (cq + q @ copy(m)) @ inv(r).T with m = r @ cr.T - cq.T @ q and copy the mirrored lower triangle; "
        "for m < n of the first m columns, which must be independent, as the columns of a must be for m >= n. With "
        "mode=\"complete\" and m > n, and with mode=\"r\", there is none.",
    .example = "qr(tensor([[3., 1.], [4., 2.]], dtype=float64))[1].round(3).tolist()  # [[-5.0, -2.2], [0.0, 0.4]]",
    .source = "Roberts and Roberts, QR and LQ decomposition matrix backpropagation algorithms (2020)",
    .samples = TD_SAMPLES{{"3,3 +2", NULL, -1, 1, NULL},
                          {"4,2", NULL, -1, 1, NULL},
                          {"2,4", NULL, -1, 1, NULL},
                          {"2,1,4,3", NULL, -1, 1, NULL},
                          {"3,5", "mode=\"complete\"", -1, 1, NULL},
                          {"4,2", "mode=\"r\"", -9, 9, "int64"},
                          {"1,1", NULL, 1, 2, NULL},
                          {"0,3", NULL, -1, 1, NULL},
                          {"3,0", NULL, -1, 1, NULL},
                          TD_SAMPLES_END},
    .tolerance = 1e-11,
};

const td_op *const td_family_orthogonal[] = {&qr, NULL};
