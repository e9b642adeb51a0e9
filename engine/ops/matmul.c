// The product of matrices and vectors, NumPy's matmul. product.c says how it runs.
#include "engine/ops/batch.h"
#include "engine/ops/families.h"
#include "engine/ops/map.h"
#include "engine/ops/product.h"

// ---- shapes ----

// An operand as matrices: a vector is one row (left) or one column (right).
static void matrix_of(const td_meta *meta, bool left, int64_t *rows, int64_t *columns) {
  if (meta->rank == 1) {
    *rows = left ? 1 : meta->shape[0];
    *columns = left ? meta->shape[0] : 1;
  } else {
    *rows = meta->shape[meta->rank - 2];
    *columns = meta->shape[meta->rank - 1];
  }
}

static int matmul_mismatch(td_infer *infer, int64_t left, int64_t right) {
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  int64_t a_rows, a_columns, b_rows, b_columns;
  int code =
      td_infer_fail(infer, TD_ERROR_SHAPE, "inner sizes differ: %lld and %lld", (long long)left, (long long)right);
  matrix_of(a, true, &a_rows, &a_columns);
  matrix_of(b, false, &b_rows, &b_columns);
  if (b->rank >= 2 && b_columns == a_columns)
    td_error_hint(infer->context, "a @ b.%s fits", b->rank == 2 ? "T" : "mT");
  else if (a->rank >= 2 && a_rows == b_rows)
    td_error_hint(infer->context, "a.%s @ b fits", a->rank == 2 ? "T" : "mT");
  else if (a->rank >= 2 && b->rank >= 2 && b_columns == a_rows) td_error_hint(infer->context, "b @ a fits");
  return code;
}

static int matmul_infer(td_infer *infer) {
  const td_meta *a = &infer->in[0], *b = &infer->in[1];
  td_meta *out = &infer->out[0];
  int64_t m, k, k_right, n, shape[TD_RANK_MAX];
  if (!a->rank || !b->rank) {
    int code = td_infer_fail(infer, TD_ERROR_SHAPE, "operand %s is 0-d", a->rank ? "b" : "a");
    td_error_hint(infer->context, "a * b multiplies by a number");
    return code;
  }
  matrix_of(a, true, &m, &k);
  matrix_of(b, false, &k_right, &n);
  if (k != k_right) return matmul_mismatch(infer, k, k_right);
  int batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0, rank, axis;
  if (!td_shape_broadcast(batch_a, a->shape, batch_b, b->shape, &rank, shape, &axis))
    return td_infer_fail(infer, TD_ERROR_SHAPE, "batch axes don't broadcast: axis %d has %lld and %lld", axis,
                         (long long)a->shape[axis - rank + batch_a], (long long)b->shape[axis - rank + batch_b]);
  for (int i = 0; i < rank; i++) out->shape[i] = shape[i];
  if (a->rank > 1) out->shape[rank++] = m;
  if (b->rank > 1) out->shape[rank++] = n;
  out->rank = (uint8_t)rank;
  out->dtype = td_dtype_promote(a->dtype, b->dtype);
  return TD_OK;
}

// ---- kernel ----

static void factor_of(const td_view *view, bool left, int rank, td_factor *f) { // rank: batch axes of the result
  int inner = view->rank == 1 ? 1 : 2, own = view->rank - inner;
  *f = (td_factor){.data = view->data, .dtype = view->dtype};
  for (int i = 0; i < rank; i++) {
    int from = i - (rank - own);
    f->batch[i] = from < 0 || view->shape[from] == 1 ? 0 : view->strides[from];
  }
  if (inner == 2 || !left) td_group_add(&f->rows, view->shape[own], view->strides[own]);
  if (inner == 2 || left) td_group_add(&f->columns, view->shape[view->rank - 1], view->strides[view->rank - 1]);
}

static td_product product_of(const td_call *call) {
  const td_view *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  td_product p = {.dtype = out->dtype, .out = out->data};
  p.m = a->rank == 1 ? 1 : a->shape[a->rank - 2];
  p.k = a->shape[a->rank - 1];
  p.n = b->rank == 1 ? 1 : b->shape[b->rank - 1];
  p.rank = out->rank - (a->rank > 1) - (b->rank > 1);
  for (int i = 0; i < p.rank; i++) p.shape[i] = out->shape[i];
  factor_of(a, true, p.rank, &p.a);
  factor_of(b, false, p.rank, &p.b);
  return p;
}

// Two matrices or vectors that can be read as they lie, the common case, are one job and need no plan.
static bool is_single(const td_call *call, td_gemm_job *job) {
  const td_view *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  if (a->rank > 2 || b->rank > 2 || a->dtype != out->dtype || b->dtype != out->dtype) return false;
  job->m = a->rank == 1 ? 1 : a->shape[0];
  job->k = b->shape[0];
  job->n = b->rank == 1 ? 1 : b->shape[1];
  job->a = a->data;
  job->b = b->data;
  job->c = out->data;
  job->ldc = job->n < 1 ? 1 : job->n;
  return td_matrix_reads(job->m, job->k, a->strides[0], a->strides[a->rank - 1], &job->a_transposed, &job->lda) &&
         td_matrix_reads(job->k, job->n, b->strides[0], b->strides[b->rank - 1], &job->b_transposed, &job->ldb);
}

static int64_t matmul_workspace(const td_call *call) {
  td_gemm_job job = {0};
  if (!call->out[0].size) return 0;
  if (is_single(call, &job)) return td_gemm_workspace(call->out[0].dtype, &job);
  td_product p = product_of(call);
  return td_product_workspace(&p);
}

static int matmul_kernel(const td_call *call) {
  td_gemm_job job = {0};
  if (!call->out[0].size) return TD_OK;
  if (is_single(call, &job)) {
    td_gemm(call->context->pool, call->out[0].dtype, &job, call->workspace);
    return TD_OK;
  }
  td_product p = product_of(call);
  td_product_run(call->context->pool, &p, call->workspace);
  return TD_OK;
}

// ---- gradients ----

// dA = C B^T, dB = A^T C, with vectors as matrices of one row or column.
static int matmul_vjp(td_rule *rule) {
  td_scope *s = &rule->scope;
  const td_tensor *a = rule->in[0], *b = rule->in[1];
  const td_meta *out = &rule->out_meta[0];
  int64_t shape[TD_RANK_MAX];
  int rank = 0;
  for (int i = 0; i < out->rank - (a->rank > 1) - (b->rank > 1); i++) shape[rank++] = out->shape[i];
  int batch_rank = rank;
  shape[rank++] = a->rank > 1 ? a->shape[a->rank - 2] : 1;
  shape[rank++] = b->rank > 1 ? b->shape[b->rank - 1] : 1;
  td_tensor *c = rank == out->rank ? rule->cotangent[0] : td_reshape(s, rule->cotangent[0], rank, shape);
  int64_t m = shape[rank - 2], n = shape[rank - 1], k = a->shape[a->rank - 1];
  if (rule->needs[0]) {
    td_tensor *right = b->rank > 1 ? td_swap_last(s, rule->in[1]) : td_reshape(s, rule->in[1], 2, (int64_t[]){1, k});
    td_tensor *da = td_matmul(s, c, right); // [..., m, k]
    shape[batch_rank] = k;
    rule->din[0] = a->rank > 1 ? da : td_reshape(s, da, batch_rank + 1, shape);
  }
  if (!rule->needs[1]) return TD_OK;
  if (b->rank <= 2 && batch_rank) { // one b for all batches: their rows are rows of one product
    int64_t rows = m;
    for (int i = 0; i < batch_rank; i++) rows *= out->shape[i];
    bool whole = a->rank == batch_rank + 2;
    for (int i = 0; i < batch_rank && whole; i++) whole = a->shape[i] == out->shape[i];
    if (whole) {
      td_tensor *left = td_swap_last(s, td_reshape(s, rule->in[0], 2, (int64_t[]){rows, k}));
      td_tensor *db = td_matmul(s, left, td_reshape(s, c, 2, (int64_t[]){rows, n}));
      rule->din[1] = b->rank > 1 ? db : td_reshape(s, db, 1, (int64_t[]){k});
      return TD_OK;
    }
  }
  td_tensor *left = a->rank > 1 ? td_swap_last(s, rule->in[0]) : td_reshape(s, rule->in[0], 2, (int64_t[]){k, 1});
  td_tensor *db = td_matmul(s, left, c); // [..., k, n]
  shape[batch_rank] = k;
  rule->din[1] = b->rank > 1 ? db : td_reshape(s, db, batch_rank + 1, shape);
  return TD_OK;
}

static const td_op matmul = {
    .name = "matmul",
    .alias = TD_ALIAS("mm", "bmm", "mv"),
    .params = {{.name = "a", .kind = TD_PARAM_TENSOR}, {.name = "b", .kind = TD_PARAM_TENSOR}},
    .kind = TD_KIND_GEMM,
    .flags = TD_MULTILINEAR,
    .method = true,
    .infer = matmul_infer,
    .batch = td_batch_matmul,
    .kernel = matmul_kernel,
    .workspace = matmul_workspace,
    .vjp = matmul_vjp,
    .saves = TD_SAVES_IN0 | TD_SAVES_IN1,
    .module = "linalg",
    .doc = "Product of matrices, a @ b: [..., m, k] times [..., k, n] gives [..., m, n].\n"
           "A 1-d operand is a row on the left and a column on the right, and its axis is dropped from the result. "
           "Axes before "
           "the last two are batches and broadcast.\n"
           "Gradient with cotangent c: c @ b.T for a, a.T @ c for b, summed over axes that were broadcast.",
    .example = "matmul(tensor([[1., 2.], [3., 4.]]), tensor([10., 1.])).tolist()  # [12.0, 34.0]",
    .source = "NumPy's matmul",
    .samples = TD_SAMPLES{{"3,4; 4,2", NULL, -2, 2, NULL},
                          {"4; 4", NULL, -2, 2, NULL},
                          {"3,4; 4", NULL, -2, 2, NULL},
                          {"4; 4,3", NULL, -2, 2, NULL},
                          {"2,3,4; 4,2", NULL, -2, 2, NULL},
                          {"2,1,3,4; 3,4,2", NULL, -2, 2, NULL},
                          {"2,3,4; 4", NULL, -2, 2, NULL},
                          {"4; 2,4,3", NULL, -2, 2, NULL},
                          {"3,0; 0,2", NULL, -2, 2, NULL},
                          {"0,4; 4,2", NULL, -2, 2, NULL},
                          {"3,4; 4,2", NULL, -9, 9, "int64; int64"},
                          TD_SAMPLES_END},
};

td_tensor *td_matmul(td_scope *s, td_tensor *a, td_tensor *b) { return td_scope_apply(s, &matmul, NULL, 2, a, b); }

const td_op *const td_family_matmul[] = {&matmul, NULL};
